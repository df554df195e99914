/* normalize.h - what is done to a text before it is cut: Unicode composition, and SentencePiece's
 * spaces.
 *
 * SentencePiece writes a space as U+2581, and the reference turns spaces into it. Here U+2581
 * becomes a space instead, in texts as in vocabularies, which comes to the same: neither tells the
 * two apart. */
#ifndef TG_TOKEN_NORMALIZE_H
#define TG_TOKEN_NORMALIZE_H

#include "base/error.h"

typedef struct tg_normalizer {
    bool nfc;    /* first */
    bool spaces; /* U+2581 becomes a space */
    bool prefix; /* one more space stands before it all */
} tg_normalizer;

/* *out is NULL when the n bytes are what they should be already; else *n_out bytes (free). An empty
 * text stays empty. Linear in n. */
tg_status tg_normalize(const tg_normalizer *how, const uint8_t *text, size_t n, uint8_t **out,
                       size_t *n_out, tg_error *err);

/* Does the text begin with a space, in either spelling? */
bool tg_begins_spaced(const uint8_t *text, size_t n);

#endif
