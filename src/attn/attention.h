/* attention.h - exact attention over a KV cache by online softmax.
 *
 * For one query row the state over any set of keys with scores x and values v is
 *     m = max x,  l = sum e^(x - m),  O = sum e^(x - m) v        (float32, whatever the cache holds)
 * Two states merge into that of the union:
 *     m = max(mA, mB),  l = lA e^(mA - m) + lB e^(mB - m),  O likewise
 * and O / l, once, at the end, is the result (Milakov & Gimelshein 2018, arXiv 1805.02867; split over
 * keys as in Flash-Decoding).
 *
 * A row's arithmetic depends on its own keys alone, never on threads or on other rows:
 *     chunk c holds the positions 256 c .. 256 c + 255 and is absorbed in two passes: all scores and
 *       their maximum over the row's keys, then exponentials, l in 16 lanes with a fixed tree, and O
 *       as one chain over keys ascending;
 *     chunk c belongs to lane c mod 8; a lane merges its chunks in ascending order;
 *     the 8 lanes are merged by a fixed binary tree.
 * What varies is only who does which part when: with few rows the lanes of one (row, KV head) go to
 * different threads (Flash-Decoding); with many, a thread takes a tile of rows through all lanes. All
 * query heads of a KV head go together, so that each key and value is read once for the group. */
#ifndef TG_ATTN_ATTENTION_H
#define TG_ATTN_ATTENTION_H

#include "attn/view.h"
#include "kernel/team.h"

enum {
    TG_ATTN_LANES = 8,
    TG_ATTN_TILE = 64, /* query rows (tokens x heads of a group) worked on together, at least a group */
};

/* One batch row: position `pos` of sequence `seq` attends to positions from .. pos. */
typedef struct tg_attn_row {
    int seq, pos, from;
} tg_attn_row;

typedef struct tg_attn {
    tg_kv_view kv;
    const tg_kv_seq *seq;
    const tg_attn_row *row; /* [n]; rows of one sequence that follow each other are tiled together */
    int n;
    int n_head;     /* query heads; head h reads KV head h / (n_head / n_head_kv) */
    const float *q; /* [n][n_head * head_dim], already multiplied by the score's scale */
    float *out;     /* [n][n_head * head_dim] */
    float *partial; /* tg_attn_partial_floats(...) for the split schedule */
} tg_attn;

/* A state takes v_dim + 16 floats: O[v_dim], then m and l. */
static inline size_t tg_attn_state_floats(int v_dim)
{
    return (size_t)v_dim + 16;
}

/* Storage for the partial states of the split schedule, whatever the batch, and scratch per worker. */
size_t tg_attn_partial_floats(int n_head, int head_dim);
size_t tg_attn_scratch_bytes(int n_head, int n_head_kv, int head_dim);

/* Runs on every thread of the team; meets at a barrier inside, ends without one. */
void tg_attention(const tg_worker *w, const tg_attn *a);

/* Writes n_head_kv heads of K and V of one position into its block: k and v are [n_head_kv * head_dim].
 * Returns how many values a narrow type could not hold and were clamped. */
int tg_kv_put(const tg_kv_view *kv, const tg_kv_seq *seq, int pos, const float *k, const float *v);

/* ---- the table that each instruction-set level fills (body_attn.c) ----------------------------- */

/* Query rows against one chunk of one KV head. */
typedef struct tg_chunk {
    const uint8_t *k[4], *v[4]; /* its blocks; those past the last key may be NULL */
    tg_type type_k, type_v;
    int head_dim, v_dim;
    int n;                /* query rows, at most the tile */
    const float *const *q; /* [n] pointers to head_dim floats */
    const int *lo, *hi;   /* [n] row i attends to keys lo <= j < hi of the chunk, 0 <= lo, hi <= 256 */
    float *scores;        /* scratch [n][256] */
    float *o;             /* scratch [n][v_dim] */
    float *m, *l;         /* scratch [n] */
} tg_chunk;

typedef struct tg_attn_kernels {
    /* Absorbs the chunk into states[i], i < n; rows without a key in it are left alone. */
    void (*absorb)(const tg_chunk *c, float *states);
    /* a = merge(a, b) */
    void (*merge)(float *a, const float *b, int v_dim);
    /* out[head_dim] = O / l; zeros for the empty state */
    void (*finish)(const float *state, int v_dim, int head_dim, float *out);
    int (*put)(const tg_kv_view *kv, int block, int at, int head, const float *k, const float *v);
} tg_attn_kernels;

const tg_attn_kernels *tg_attn_table(void);

/* The empty state (-inf, 0, 0), the identity of merge. */
void tg_attn_begin(float *state, int v_dim);

#endif
