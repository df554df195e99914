/* reference.h - attention as the literature has it, for comparison with attention.h: short, float32
 * arithmetic, causality and grouped heads and nothing more. */
#ifndef TG_ATTN_REFERENCE_H
#define TG_ATTN_REFERENCE_H

#include "attn/attention.h"

enum { TG_REF_ROWS = 64 }; /* query rows of a tile at most, but for `safe` */

/* Query rows of one head against the keys of one sequence. */
typedef struct tg_ref {
    const tg_kv_view *kv;
    const int32_t *block;
    int head;              /* of K and V */
    int n;
    const float *const *q; /* [n] pointers to head_dim floats */
    float *const *out;     /* likewise */
    const int *n_keys;     /* [n] row i attends to keys 0 .. n_keys[i] - 1 */
    int tile_keys;
    /* scratch */
    float *scores; /* [n][stride] */
    size_t stride;
    int first;     /* the key of column 0 */
    float *o;      /* [n], each as far from the next as states are */
    float *states; /* [n] states */
    float *wide;   /* [64][head_dim] or [64][v_dim] */
    float *q_rows; /* [n][head_dim] */
    const float *kv_at; /* the keys or values being worked on, of which there are n_at */
    int n_at;
} tg_ref;

typedef struct tg_ref_kernels {
    void (*safe)(tg_ref *t);    /* three kernels over a matrix of scores: stride holds all keys */
    void (*fused)(tg_ref *t);   /* two passes over a row of scores: stride holds all keys */
    void (*online)(tg_ref *t);  /* key by key; stride 16 */
    void (*chunked)(tg_ref *t); /* tile_keys keys at a time, each softmaxed for itself, then merged */
    void (*flash)(tg_ref *t);   /* the same, O normalised at each tile */
    void (*flash2)(tg_ref *t);  /* O normalised at the end, rescaled when the maximum rises */
} tg_ref_kernels;

const tg_ref_kernels *tg_ref_table(void);

#endif
