/* attention.h - exact attention over a KV cache by online softmax.
 *
 * For one query row the state over any set of keys with scores x and values v is
 *     m = max x,  l = sum e^(x - m),  O = sum e^(x - m) v        (float32, whatever the cache holds)
 * Two states merge into that of the union:
 *     m = max(mA, mB),  l = lA e^(mA - m) + lB e^(mB - m),  O likewise
 * and O / l, once, at the end, is the result (Milakov & Gimelshein 2018, arXiv 1805.02867; split over
 * keys as in Flash-Decoding).
 *
 * A row's arithmetic depends on its own keys and the model alone, never on threads or on other rows:
 *     chunk c holds the positions 256 c .. 256 c + 255 and is absorbed in two passes: all scores and
 *       their maximum over the row's keys, then exponentials, l in 16 lanes with a fixed tree, and O
 *       as one chain over keys ascending (for Q8_0 and Q4: exact integers);
 *     chunk c belongs to lane c mod 8; a lane merges its chunks in ascending order;
 *     the 8 lanes are merged by a fixed binary tree.
 * What varies is only who does which part when: with few rows the lanes of one (row, KV head) go to
 * different threads (Flash-Decoding); with many, a thread takes a tile of rows through all lanes. All
 * query heads of a KV head go together, so that each key and value is read once for the group.
 *
 * That is the strategy `auto`. Others, chosen by name, serve comparison (strategy.h). */
#ifndef TG_ATTN_ATTENTION_H
#define TG_ATTN_ATTENTION_H

#include "attn/view.h"
#include "kernel/matmul.h"
#include "kernel/team.h"

enum {
    TG_ATTN_LANES = 8,
    TG_ATTN_TILE = 96, /* query rows (tokens x heads of a group) worked on together, at least a group */
    TG_ATTN_SUB = 24,  /* of these, rows whose scores are in the first-level cache together */
};

/* One batch row: position `pos` of sequence `seq`. */
typedef struct tg_attn_row {
    int seq, pos;
} tg_attn_row;

/* To which positions j <= pos a row attends, and what becomes of a score. All zero: to all, as it is. */
typedef struct tg_attn_mods {
    int window;        /* j > pos - window; 0: no limit */
    int keep;          /* j < keep as well, wherever the window is (StreamingLLM, arXiv 2309.17453) */
    float soft_cap;    /* scores become cap * tanh(score / cap); 0: none */
    const float *sink; /* [n_head] learned logits that take their share of the sum and have no value */
} tg_attn_mods;

typedef struct tg_attn {
    tg_kv_view kv;
    const tg_kv_seq *seq;
    const tg_attn_row *row; /* [n]; rows of one sequence that follow each other are tiled together */
    int n;
    int n_head;     /* query heads; head h reads KV head h / (n_head / n_head_kv) */
    tg_attn_mods mods;
    const float *q; /* [n][n_head * head_dim], already multiplied by the score's scale */
    float *out;     /* [n][n_head * head_dim]; a row without a key gets zeros */
    void *partial;  /* tg_attn_partial_bytes(...) for the split schedule, zeros at first */
    int tile_rows, tile_keys; /* of the strategies that have tiles, multiples of 16 up to 64; 0: 64 */
    bool dots;      /* BF16 products where the cache is BF16: faster, and outside the promise of same bits */
} tg_attn;

/* A state takes v_dim + 16 floats: O[v_dim], then m and l. */
static inline size_t tg_attn_state_floats(int v_dim)
{
    return (size_t)v_dim + 16;
}

/* Storage for what threads leave each other under the split schedule, whatever the batch, and scratch per worker. */
size_t tg_attn_partial_bytes(int n_head, int head_dim);
size_t tg_attn_scratch_bytes(int n_head, int n_head_kv, int head_dim);

/* Runs on every thread of the team; may meet at barriers inside, ends without one. */
void tg_attention(const tg_worker *w, const tg_attn *a);

/* Is a single row to read so many keys that what was fetched before is gone behind them? Then the first of those that
 * the thread will read can be fetched while it waits for others. */
bool tg_attention_is_long(const tg_attn *a);
void tg_attention_fetch(const tg_worker *w, const tg_attn *a);

/* The same with the lanes of keys as units of work, however many rows there are. */
void tg_attention_split(const tg_worker *w, const tg_attn *a);

/* Writes n_head_kv heads of K and V of one position into its block: k and v are [n_head_kv * head_dim].
 * Returns how many values a narrow type could not hold and were clamped. */
int tg_kv_put(const tg_kv_view *kv, const tg_kv_seq *seq, int pos, const float *k, const float *v);

/* ---- the tables that each instruction-set level fills (body_attn.c, body_kv.c) ------------------ */

/* Floats from a row of scores to the next: rows a power of two apart would share few sets of a cache. */
enum { TG_ATTN_SCORES = TG_KV_CHUNK + 16 };

/* Query rows against one chunk of one KV head. */
typedef struct tg_chunk {
    const uint8_t *k[TG_KV_CHUNK_BLOCKS], *v[TG_KV_CHUNK_BLOCKS]; /* those without a key may be NULL */
    const uint8_t *next[2 * TG_KV_CHUNK_BLOCKS]; /* the keys, then the values read behind this chunk; NULL: unknown */
    bool stream; /* are there so many keys that reading ahead pays? */
    tg_type type_k, type_v;
    bool dots;
    int head_dim, v_dim;
    float soft_cap;
    int n;                 /* query rows */
    const float *const *q; /* [n] pointers to head_dim floats */
    const int *lo, *hi;    /* [n] row i attends to keys lo <= j < hi of the chunk, 0 <= lo, hi <= 256 */
    /* queries as `prepare` makes them of q for the type of the keys: one of these */
    float *q_rows;    /* [n][head_dim] */
    tg_q8 *q8;        /* [n][scales] */
    uint32_t *q_bf16; /* [n][head_dim / 2 rounded up] */
    /* scratch */
    float *scores;           /* [sub][TG_ATTN_SCORES] */
    float *states;           /* [sub] */
    float *wide_k, *wide_v;  /* [256][head_dim], [256][v_dim] */
    int16_t *p_fixed;        /* [sub][scales][256] */
    float *p_scale;          /* [sub][scales] */
    uint16_t *p_bf16;        /* [sub][256] */
} tg_chunk;

typedef struct tg_attn_kernels {
    void (*prepare)(const tg_chunk *c);
    /* Absorbs the chunk into states[i], i < n; rows without a key in it are left alone. */
    void (*absorb)(const tg_chunk *c, float *states);
    /* a = merge(a, b) */
    void (*merge)(float *a, const float *b, int v_dim);
    /* O / l of n states, zeros for an empty one: `group` results of head_dim floats one behind the other,
     * each group `stride` floats behind the last; rotated back if the values are `rotated`. */
    void (*finish)(const float *states, int n, int v_dim, int head_dim, int group, size_t stride, bool rotated,
                   float *out);
} tg_attn_kernels;

typedef struct tg_kv_kernels {
    int (*put)(const tg_kv_view *kv, int block, int at, int head, const float *k, const float *v);
    /* The first n keys (whole groups of 16) and values of a block, not F32, as F32 has them; what a block has
     * beyond is left as it is. */
    void (*widen_k)(const uint8_t *block, tg_type type, int head_dim, int n, float *out);
    void (*widen_v)(const uint8_t *block, tg_type type, int head_dim, int n, float *out);
    /* The orthonormal rotation of Q4, in place, or its inverse. */
    void (*rotate)(float *x, int head_dim, bool back);
} tg_kv_kernels;

const tg_attn_kernels *tg_attn_table(void);
const tg_kv_kernels *tg_kv_table(void);

/* Dimensions that the rotation mixes. */
static inline int tg_kv_rotation(int head_dim)
{
    int n = head_dim & -head_dim;
    return n < 128 ? n : 128;
}

/* Of the numbers that Q4 takes: after the rotation the largest may be sqrt(128) times that. */
#define TG_KV_Q4_MOST 65504.0f

/* The levels of the codes of Q4's values. */
#define TG_KV_LEVELS                                                                               \
    {-127, -98, -77, -60, -45, -31, -18, -6, 6, 18, 31, 45, 60, 77, 98, 127}

/* n empty states (-inf, 0, 0), the identity of merge. */
void tg_attn_begin(float *states, int n, int v_dim);

#endif
