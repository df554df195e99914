/* lookup.h - drafts from the text itself: what came behind the same tokens before may come again. */
#ifndef TG_GENERATE_LOOKUP_H
#define TG_GENERATE_LOOKUP_H

#include <stdint.h>

/* Finds where the last tokens of ids [n] stand earlier, by the longest match, the latest among equals, and copies what
 * followed there into out. Returns how many: `most` at most, fewer where little agrees, none where nothing does. */
int tg_lookup(const int32_t *ids, int n, int most, int32_t *out);

#endif
