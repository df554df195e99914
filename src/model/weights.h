/* weights.h - a model's matrices and vectors by role, checked against its configuration. */
#ifndef TG_MODEL_WEIGHTS_H
#define TG_MODEL_WEIGHTS_H

#include "base/memory.h"
#include "kernel/matmul.h"
#include "model/arch.h"

typedef struct tg_norm {
    const float *w, *b; /* [n_embd]; b NULL without bias */
} tg_norm;

typedef struct tg_layer {
    tg_norm attn_norm, ffn_norm;
    tg_matrix q, k, v; /* views into one matrix where the file fuses them */
    tg_matrix attn_out;
    tg_matrix gate, up, down; /* gate.data is NULL without gating */
} tg_layer;

/* Matrix i of a layer, i < TG_LAYER_MATRICES; its data may be NULL. */
enum { TG_LAYER_MATRICES = 7 };
static inline const tg_matrix *tg_layer_matrix(const tg_layer *l, int i)
{
    const tg_matrix *const m[TG_LAYER_MATRICES] = {&l->q, &l->k, &l->v, &l->attn_out, &l->gate, &l->up, &l->down};
    return m[i];
}

/* Everything that evaluation needs of a model. */
typedef struct tg_weights {
    const tg_arch *arch;
    tg_config config;
    tg_matrix tok_embd, pos_embd, output;
    tg_norm out_norm;
    const float *inv_freq; /* [n_rot / 2], scaling applied */
    tg_layer *layer;       /* [n_layer] */
} tg_weights;

/* Fills *w, whose arch and config (all but n_vocab) are set. Matrices stay in the container's mapping;
 * what must be laid anew (vectors in float32, Conv1D matrices) goes to the arena. */
tg_status tg_weights_load(tg_weights *w, const tg_container *c, tg_arena *arena, tg_error *err);

#endif
