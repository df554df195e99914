/* prompt.h - where the text comes from: an argument, -p, -f, and stdin. */
#ifndef TG_CLI_PROMPT_H
#define TG_CLI_PROMPT_H

#include "cli/options.h"
#include "cli/text.h"

typedef tg_bytes tg_prompt; /* free with tg_prompt_free */

/* Is there one source, and one only, apart from what stdin may add? TG_E_USAGE if not. */
int tg_prompt_check(const tg_options *opt, tg_error *err);

int tg_prompt_too_long(size_t max_bytes, tg_error *err); /* TG_E_USAGE */

/* Joins the sources. Nothing is changed or trimmed but by --chomp; more than max_bytes in all is
 * TG_E_USAGE. */
int tg_prompt_read(tg_prompt *prompt, const tg_options *opt, size_t max_bytes, tg_error *err);
void tg_prompt_free(tg_prompt *prompt);

/* Token ids spelled out, with commas or blanks between them; "-" reads them from stdin. Each is
 * checked against the vocabulary. *ids (free) holds *n. */
int tg_prompt_ids(int32_t **ids, size_t *n, const char *text, int n_vocab, tg_error *err);

#endif
