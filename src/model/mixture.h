/* mixture.h - a mixture of experts: for each row the router names the experts that its feed-forward consists of
 * (arXiv 1701.06538), and their outputs are summed, weighted, in the order of their ids. */
#ifndef TG_MODEL_MIXTURE_H
#define TG_MODEL_MIXTURE_H

#include "model/weights.h"

/* A slot is a row at one of its experts. Slots are ordered by expert, then by row, so that an expert meets all of
 * its rows in one product. */
typedef struct tg_mixture {
    float *logits;   /* [n][n_expert] */
    int *expert;     /* [n][n_used]: those of a row, ascending */
    float *weight;   /* [n][n_used]: their shares */
    int *slot;       /* [n][n_used]: where they are worked on */
    int *first;      /* [n_expert + 1]: slots first[e] .. first[e + 1] - 1 are of expert e */
    int *row;        /* [n * n_used]: the row of a slot */
    float *in_f;     /* [n * n_used][n_embd]: what the experts read */
    tg_q8 *in_q;     /* [n * n_used][n_embd / 32] */
    float *gate, *up; /* [n * n_used][n_ff_expert] */
    tg_q8 *ff_q;     /* [n * n_used][n_ff_expert / 32] */
    float *out;      /* [n * n_used][n_embd] */
} tg_mixture;

/* As tg_forward_lay_out: adds to `at`, an offset from base. */
size_t tg_mixture_lay_out(tg_mixture *m, const tg_config *c, int n_batch, void *base, size_t at);

/* out += the experts' outputs for the rows of `in`, whose 8-bit form is there if reads_q8. All threads call it
 * together behind a barrier; it ends with one. */
void tg_mixture_run(const tg_worker *w, tg_mixture *m, const tg_config *c, const tg_layer *l, tg_rows in,
                    tg_matmul_mode mode, float *out);

/* Does any product of a mixture's layer read rows as 8-bit blocks? */
bool tg_mixture_reads_q8(const tg_layer *l, tg_matmul_mode mode);

#endif
