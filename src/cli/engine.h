/* engine.h - from options to a loaded model, the tokens of a text, and an open session. */
#ifndef TG_CLI_ENGINE_H
#define TG_CLI_ENGINE_H

#include "cli/options.h"
#include "cli/prompt.h"

/* Loads what -m names, else TINYGPT_MODEL, else the model that comes with the program. An operand
 * of `inspect` is passed as `path`; NULL elsewhere. */
int tg_engine_load(tg_model **model, const char *path, const tg_options *opt, unsigned flags,
                   tg_error *err);

/* TG_E_USAGE when writing to `path` (NULL: stdout) would take a file away that the command reads. Before any work. */
int tg_engine_check_output(const char *path, const tg_model *model, const tg_options *opt, tg_error *err);

/* Encodes a text as the options say. *ids (tg_free) holds *n; warns of bytes that the vocabulary cannot express. */
int tg_engine_tokens(int32_t **ids, size_t *n, const tg_model *model, const tg_options *opt, const char *text,
                     size_t n_bytes, tg_error *err);
/* The same of the text that the options tell of, which `prompt`, when not NULL, receives (tg_prompt_free). */
int tg_engine_encode(int32_t **ids, size_t *n, tg_prompt *prompt, const tg_model *model,
                     const tg_options *opt, size_t max_bytes, tg_error *err);

/* Bytes above which no text can fit the context that the options allow, and no line that has one, as an object or as
 * it is. check_text: TG_E_USAGE for more. */
size_t tg_engine_max_text(const tg_model *model, const tg_options *opt);
size_t tg_engine_max_line(const tg_model *model, const tg_options *opt, bool json);
int tg_engine_check_text(const tg_model *model, const tg_options *opt, size_t n_bytes, tg_error *err);

/* The context for n_prompt tokens and n_more after them (-1: as many as there is room for): what -c
 * says, or the need rounded up to 256 and at most the trained length. TG_E_USAGE when the prompt
 * does not fit, or learned positions end before. */
int tg_engine_context(int *n_ctx, const tg_model *model, const tg_options *opt, size_t n_prompt,
                      int n_more, tg_error *err);

tg_session_params tg_engine_params(const tg_options *opt, int n_ctx);
int tg_engine_session(tg_session **session, const tg_model *model, const tg_options *opt, int n_ctx,
                      tg_error *err);
/* The same for n_seq sequences of n_ctx positions, n_ctx_all together. */
int tg_engine_sessions(tg_session **session, const tg_model *model, const tg_options *opt, int n_ctx, int n_seq,
                       int n_ctx_all, tg_error *err);

/* Warns when the cache could not hold values as they were. */
void tg_engine_tell_clamped(const tg_session *session);

/* The peak of this process image's memory; getrusage would count what the parent had before exec. */
uint64_t tg_engine_peak_bytes(void);
void tg_engine_forget_peak(void); /* counts from what is in use now, where the system lets us */

#endif
