/* ahead.h - what the chunk kernel asks memory for before it reads it; a part of body_attn.c.
 *
 * With few rows memory is the limit. A hardware prefetcher starts anew where a stream is interrupted, and stands still
 * while something else is computed. All is asked for twice (tg_fetch_twice), some time ahead and shortly before.
 *
 * Floats are computed with as fast as they are read, so two distances do, in bytes. Of codes much is computed in one
 * place and little in another, and while weights are computed nothing is read at all: what the next chunk has is
 * fetched evenly over the time that this one takes. */
#ifndef TG_ATTN_AHEAD_H
#define TG_ATTN_AHEAD_H

#include "attn/micro.h"

static inline bool has_codes(tg_type type)
{
    return type == TG_Q8_0 || type == TG_Q4;
}

/* Rows r0 .. end - 1 of a chunk, worked on together, and the keys from .. to - 1 that any of them has. */
typedef struct part {
    const tg_chunk *c;
    int r0, end, from, to;
    float *states;     /* of the rows over this chunk alone: O is zero at first */
    int step;          /* blocks of weights, then of values, taken together */
    int ahead;         /* blocks of floats to fetch ahead, or 0 */
    struct rest *rest; /* where keys or values are codes and are to be fetched, or NULL */
} part;

/* ---- floats -------------------------------------------------------------------------------------- */

/* Blocks of keys, of values and of the next chunk's keys, counted in the order in which they are read. */
static inline int order_of_keys(const part *t, int b)
{
    return b - t->from / TG_KV_BLOCK;
}

static inline int order_of_values(const part *t, int b)
{
    return b + (t->to - 1) / TG_KV_BLOCK + 1 - 2 * (t->from / TG_KV_BLOCK);
}

static inline const uint8_t *block_at(const part *t, int i)
{
    const tg_chunk *c = t->c;
    int first = t->from / TG_KV_BLOCK, n = (t->to - 1) / TG_KV_BLOCK + 1 - first;
    return i < n ? c->k[first + i] : i < 2 * n ? c->v[first + i - n] : c->next[i - 2 * n];
}

/* Bytes from what R rows from r on read of block i to what is fetched meanwhile; 0: nothing is. Farther where a block is
 * read in several passes, a part of each line of it or every other line in one. */
VEC ptrdiff_t ahead_of(const part *t, int r, const int R, int i, const int wide)
{
    const uint8_t *there = t->ahead && r == t->r0 ? block_at(t, i + t->ahead) : NULL;
    if (!there)
        return 0;
    const ptrdiff_t distance = there - block_at(t, i);
    const ptrdiff_t far = 2 * t->ahead * (ptrdiff_t)tg_kv_k_block_bytes(t->c->type_k, t->c->head_dim);
    if (distance < 0 || distance > far) /* is the stream interrupted? */
        return distance + nearer(R);
    return (wide < WIDE ? 12288 : R == 1 ? 6144 : 5120) + nearer(R);
}

/* Blocks that what is fetched may lie in. */
static inline int blocks_ahead(const tg_chunk *c)
{
    size_t bytes = tg_kv_k_block_bytes(c->type_k, c->head_dim);
    return bytes >= 8192 ? 1 : bytes >= 4096 ? 2 : TG_KV_CHUNK_BLOCKS;
}

/* ---- codes --------------------------------------------------------------------------------------- */

enum share { WITH_KEYS, WITH_WEIGHTS, WITH_VALUES, N_SHARES };

/* Of the next chunk, what is not fetched yet. */
typedef struct rest {
    const uint8_t *at, *end; /* of a block */
    int next;                /* the block behind it: four of keys, four of values */
    size_t due;              /* lines that should be fetched by now */
    size_t share[N_SHARES];  /* lines for a group of keys, once through a row's weights, 16 columns of a block */
} rest;

/* What a pass over codes is to fetch, and whether also, again, what it will read AGAIN bytes later. */
typedef struct lines {
    const uint8_t *at, *end;
    bool again;
} lines;

enum { AGAIN = 4352 };

/* While rows from r on work on n of a share more lines are due: those of all due that lie together. */
static inline lines lines_due(const part *t, int r, enum share share, int n)
{
    const tg_chunk *c = t->c;
    rest *f = r == t->r0 ? t->rest : NULL;
    lines found = {.again = f};
    for (; f && f->at == f->end && f->next < 2 * TG_KV_CHUNK_BLOCKS; f->next++) {
        f->at = f->end = c->next[f->next];
        if (f->at)
            f->end += f->next < TG_KV_CHUNK_BLOCKS ? tg_kv_k_block_bytes(c->type_k, c->head_dim)
                                                   : tg_kv_v_block_bytes(c->type_v, c->head_dim);
    }
    if (!f || f->at == f->end)
        return found;
    f->due += f->share[share] * (size_t)n;
    size_t left = (size_t)(f->end - f->at), bytes = f->due * LINE;
    found.at = f->at;
    found.end = f->at = f->at + (bytes < left ? bytes : left);
    f->due -= (size_t)(found.end - found.at + LINE - 1) / LINE;
    return found;
}

/* The next n of them, a constant. */
VEC void fetch_some(const int R, lines *l, const size_t n)
{
    if (R == ROWS || l->at >= l->end)
        return;
    tg_fetch_lines(l->at, n * LINE);
    l->at += n * LINE;
}

static inline void fetch_all(lines l)
{
    if (l.at < l.end)
        tg_fetch_lines(l.at, (size_t)(l.end - l.at));
}

static inline void fetch_due(const part *t, enum share share, int n)
{
    fetch_all(lines_due(t, t->r0, share, n));
}

/* What is left in the end. */
static inline void fetch_rest(const part *t)
{
    const rest *f = t->rest;
    while (f && (f->at != f->end || f->next < 2 * TG_KV_CHUNK_BLOCKS))
        fetch_due(t, WITH_VALUES, TG_KV_CHUNK);
}

/* Bytes of a block's values in front of their scales. */
static inline size_t code_bytes(const tg_chunk *c)
{
    return TG_KV_BLOCK / 2 * tg_kv_v_pair_bytes(c->type_v, c->head_dim);
}

/* Three eighths of the next chunk's lines are fetched along with the keys, a quarter with the weights, the others with
 * the values. The scales of all values are wanted before the first of these. */
static void share_out(const part *t, rest *f)
{
    const tg_chunk *c = t->c;
    const bool codes = has_codes(c->type_v);
    size_t v_block = tg_kv_v_block_bytes(c->type_v, c->head_dim);
    size_t n_lines = TG_KV_CHUNK_BLOCKS * (tg_kv_k_block_bytes(c->type_k, c->head_dim) + v_block) / LINE;
    int weights = (t->end - t->r0) * (codes ? 1 + tg_kv_scales(c->v_dim) : TG_KV_CHUNK_BLOCKS);
    *f = (rest){0};
    f->share[WITH_KEYS] = n_lines * 3 / 8 / (TG_KV_CHUNK / TG_KV_GROUP);
    f->share[WITH_WEIGHTS] = n_lines / 4 / (size_t)weights;
    f->share[WITH_VALUES] = n_lines * 3 / 8 / (size_t)(TG_KV_CHUNK_BLOCKS * c->v_dim / 16);
    for (int b = t->from / TG_KV_BLOCK; codes && b * TG_KV_BLOCK < t->to; b++)
        tg_fetch_lines(c->v[b] + code_bytes(c), v_block - code_bytes(c));
}

/* ---- both ---------------------------------------------------------------------------------------- */

/* From now on the part fetches what comes next. Where values are floats the weights of a block are computed right
 * before these are read, lest memory wait for long. */
static inline void look_ahead(part *t, rest *next)
{
    const tg_chunk *c = t->c;
    t->step = has_codes(c->type_v) ? TG_KV_CHUNK_BLOCKS : 1;
    if (!has_codes(c->type_k) && !has_codes(c->type_v)) {
        t->ahead = blocks_ahead(c);
        return;
    }
    t->rest = next;
    share_out(t, next);
}

#endif
