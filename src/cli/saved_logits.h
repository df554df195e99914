/* saved_logits.h - rows of logits in a safetensors file, for comparison with those of another model.
 *
 * Two tensors: `ids` I32 [n_ids], the tokens of a text, and `logits` F32 [n_rows, n_vocab], of which row i
 * predicts token n_ids - n_rows + i. Any tool that writes such a file can be compared with. Ours say in the metadata
 * in what windows the text was walked: `context` positions each, moved by `stride`. */
#ifndef TG_CLI_SAVED_LOGITS_H
#define TG_CLI_SAVED_LOGITS_H

#include "cli/output.h"

typedef struct tg_saved_logits {
    int fd;
    const char *path;
    uint64_t logits_at; /* offset in the file */
    size_t n_ids, n_rows, n_vocab;
    int n_ctx, stride; /* of the windows; stride is 0 where the file does not say */
    size_t next; /* row */
    int32_t *ids;
    float *row; /* [n_vocab] */
} tg_saved_logits;

/* The header and the ids of a file to which n_rows rows are written then. */
void tg_saved_logits_begin(tg_output *out, const int32_t *ids, size_t n_ids, size_t n_rows, size_t n_vocab, int n_ctx,
                           int stride);

/* TG_E_IO when it cannot be read, TG_E_MODEL when it is no such file. */
int tg_saved_logits_open(tg_saved_logits *saved, const char *path, tg_error *err);
void tg_saved_logits_close(tg_saved_logits *saved);
/* The next row [n_vocab], until the next call; NULL, with err filled. */
const float *tg_saved_logits_read(tg_saved_logits *saved, tg_error *err);

#endif
