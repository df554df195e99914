/* forward.h - one evaluation of a batch, as one program of the thread team.
 *
 * Reads like the diagram of the model: embed, then for each layer
 *     x += attn_out(attention(rope(q), cache with rope(k), v)),  q k v = project(norm(x))
 *     x += down(act(gate) * up),                                 gate up = project(norm(x))
 * and for the rows whose logits are wanted, output(norm(x)). An architecture may have norms at other places, a
 * mixture of experts for the second line, or both lines read the same x. */
#ifndef TG_MODEL_FORWARD_H
#define TG_MODEL_FORWARD_H

#include <signal.h>
#include <stdatomic.h>

#include "attn/strategy.h"
#include "model/mixture.h"
#include "model/weights.h"

enum { TG_HEAD_ROWS = 16 }; /* rows that meet the output projection together */

/* Storage of the cache for all layers; a layer's view is derived from it. */
typedef struct tg_kv_layers {
    tg_kv_view first; /* layer 0 */
    size_t stride; /* bytes from one layer to the next */
} tg_kv_layers;

typedef struct tg_forward {
    const tg_weights *w;
    tg_matmul_mode mode;
    const tg_attn_strategy *attention;
    int window, keep; /* tg_attn_mods, for all layers */
    tg_kv_layers kv;
    const tg_kv_seq *seq;

    /* the batch: n rows, each a token at a position of a sequence (attn_row) */
    int n;
    const int32_t *id;
    tg_attn_row *attn_row;
    /* of these rows the logits are wanted: n_want indices, TG_HEAD_ROWS at most */
    int n_want;
    const int *want;

    /* buffers for n_batch rows, from tg_forward_lay_out */
    float *x;            /* [n][n_embd]: the residual stream */
    float *y;            /* [n][n_embd]: what joins it after a norm or a factor, where the model has these */
    float *in_f;         /* what the projections read: [n][largest n_in but n_ff] */
    tg_q8 *in_q;         /* the same in 8-bit blocks */
    float *q, *k, *v;    /* [n][n_head * head_dim], [n][n_head_kv * head_dim] twice */
    float *gate, *up;    /* [n][n_ff]; up becomes act(gate) * up in place */
    tg_q8 *ff_q;         /* [n][n_ff / 32]: up in 8-bit blocks */
    float *cosine, *sine; /* [n][2][n_rot / 2]: of either rotation */
    tg_mixture mixture;
    void *partial;       /* what attention's threads leave each other */
    float *head_f;       /* what the output projection reads: [TG_HEAD_ROWS][n_embd] */
    tg_q8 *head_q;
    float *logits;       /* [TG_HEAD_ROWS][n_vocab] */
    float *inv_freq[2];  /* [n_rot / 2] of either rotation, scaling applied, and what is multiplied by */
    float magnitude[2];

    /* what happened */
    const volatile sig_atomic_t *interrupted;
    bool stopped;         /* rank 0 saw the interruption; read by all behind a barrier */
    _Atomic int64_t bad;  /* where x was first not finite: behind so many layers, and below 32 bits of it the first row;
                             INT64_MAX */
    atomic_ullong n_clamped;
} tg_forward;

/* Places the buffers for n_batch rows at `base` (NULL: only asks) and returns the bytes they take. */
size_t tg_forward_lay_out(tg_forward *f, const tg_weights *w, int n_batch, void *base);
/* What is the same for all batches in contexts of n_ctx positions; f->w is set and the buffers are there. */
void tg_forward_prepare(tg_forward *f, int n_ctx);
/* Per worker, for batches of n_batch rows and sequences of n_ctx positions. */
size_t tg_forward_scratch_bytes(const tg_weights *w, const tg_attn_strategy *attention, int n_batch, int n_ctx);

/* Evaluates the rows and, where f->n_want > 0, their logits. */
void tg_forward_run(tg_forward *f, tg_team *team);

/* Logits of further rows of the same batch (f->want, f->n_want). */
void tg_forward_head(tg_forward *f, tg_team *team);

/* The positions that a layer attends to: its own window or the session's, whichever is shorter; 0: all. */
int tg_window_of(const tg_config *c, int layer, int session_window);

#endif
