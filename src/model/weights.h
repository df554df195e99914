/* weights.h - a model's matrices and vectors by role, checked against its configuration. */
#ifndef TG_MODEL_WEIGHTS_H
#define TG_MODEL_WEIGHTS_H

#include "base/memory.h"
#include "kernel/matmul.h"
#include "model/arch.h"
#include "model/rope.h"

typedef struct tg_norm {
    const float *w, *b; /* [n]; w NULL: no norm here, b NULL: no bias */
} tg_norm;

/* One feed-forward: of a layer, or of one of its experts. */
typedef struct tg_ffn {
    tg_matrix gate, up, down; /* gate.data is NULL without gating */
} tg_ffn;

typedef struct tg_layer {
    tg_norm attn_norm, attn_post_norm, ffn_norm, ffn_post_norm;
    tg_norm q_norm, k_norm;
    tg_matrix q, k, v;        /* views into one matrix where the file fuses them */
    const float *sink;        /* [n_head] or NULL */
    tg_matrix attn_out;
    tg_ffn ffn;               /* all NULL in a mixture of experts */
    tg_matrix router;         /* [n_expert][n_embd]; data NULL: no mixture */
    tg_ffn *expert;           /* [n_expert] */
} tg_layer;

/* Matrix i of a layer that every token meets, i < TG_LAYER_MATRICES; its data may be NULL. */
enum { TG_LAYER_MATRICES = 8 };
static inline tg_matrix *tg_layer_matrix(tg_layer *l, int i)
{
    tg_matrix *const m[TG_LAYER_MATRICES] = {&l->q,        &l->k,      &l->v,        &l->attn_out,
                                                   &l->ffn.gate, &l->ffn.up, &l->ffn.down, &l->router};
    return m[i];
}

/* Everything that evaluation needs of a model. */
typedef struct tg_weights {
    const tg_arch *arch;
    tg_config config;
    tg_matrix tok_embd, pos_embd, output;
    tg_norm out_norm;
    tg_rope_factors rope_factors;
    tg_layer *layer; /* [n_layer] */
    void *interleaved; /* NULL, or where matrices were laid anew */
    size_t interleaved_bytes; /* that this takes, or would take */
} tg_weights;

/* Fills *w, whose arch and config are set; n_vocab may be 0. Matrices stay in the container's mapping;
 * what must be laid anew (vectors in float32, Conv1D matrices) goes to the arena. */
tg_status tg_weights_load(tg_weights *w, const tg_container *c, tg_arena *arena, tg_error *err);

/* Lays the quantised matrices that products read anew (kernel/interleave.h), in memory of their own, on as many
 * threads as there are; what they were read from is no longer kept in memory where it is mapped. Without a
 * container it is only found out how much that takes. */
tg_status tg_weights_interleave(tg_weights *w, const tg_container *c, tg_error *err);

/* Frees what was laid anew. */
void tg_weights_free(tg_weights *w);

/* ---- shared by weights.c and experts.c ---------------------------------------------------------------- */

typedef struct tg_loader {
    tg_weights *w;
    const tg_container *c;
    tg_container_kind kind;
    tg_arena *arena;
    tg_error *err;
    int n_missing;
    char first_missing[TG_MAX_NAME_SAFETENSORS + 1];
} tg_loader;

/* The tensor of a role, or NULL: the model has none, or it failed. */
const tg_tensor *tg_load_find(tg_loader *l, tg_role role, int layer, int expert, const char *suffix, bool required);
/* False, with l->err filled, when shape (dim[n_dim]) or type are others. */
bool tg_load_shape_is(tg_loader *l, const tg_tensor *t, int n_dim, const uint64_t *dim);
bool tg_load_type_is_known(tg_loader *l, const tg_tensor *t);
/* n matrices [n_in][n_out] of single numbers -> [n_out][n_in], in the arena. Outputs that stand by turns (o mod
 * turns = 0, then 1 ...) come apart: n matrices of the first, behind them n of the next. */
const uint8_t *tg_load_transposed(tg_loader *l, const tg_tensor *t, int n, int n_out, int n_in, int turns);
/* n numbers as float32, in the mapping where they lie so already. */
const float *tg_load_floats(tg_loader *l, const tg_tensor *t, const uint8_t *data, size_t n);
bool tg_load_matrix(tg_loader *l, tg_role role, int layer, int expert, int n_out, int n_in, bool required,
                    tg_matrix *out);
/* Of a matrix, n rows from `first` on. */
tg_matrix tg_load_rows_of(const tg_matrix *m, int first, int n);

/* n factors of rotation that a folder's configuration lists, in either spelling; NULL: failed. */
const float *tg_load_rope_list(tg_loader *l, const char *key, int n);

/* The experts of a layer. */
void tg_load_experts(tg_loader *l, int layer, tg_layer *out);

#endif
