/* attention.c - who attends to what, and the merge tree. The arithmetic is in body_attn.c. */
#include "attn/attention.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "kernel/isa.h"

TG_ISA_DECLARE(tg_attn_kernels, tg_attn_kernels);

enum { SPLIT_ROWS_MAX = 8 }; /* batch rows up to which the lanes of a row are units of work */

const tg_attn_kernels *tg_attn_table(void)
{
    return TG_ISA_PICK(tg_attn_kernels);
}

void tg_attn_begin(float *state, int v_dim)
{
    memset(state, 0, tg_attn_state_floats(v_dim) * sizeof(float));
    state[v_dim] = -INFINITY;
}

static void begin_all(float *states, int n, int v_dim)
{
    for (int i = 0; i < n; i++)
        tg_attn_begin(states + (size_t)i * tg_attn_state_floats(v_dim), v_dim);
}

/* Tokens of one tile, and query rows at most in one. */
static int tile_tokens(int group)
{
    return group < TG_ATTN_TILE ? TG_ATTN_TILE / group : 1;
}

static int tile_rows_max(int group)
{
    return tile_tokens(group) * group;
}

size_t tg_attn_partial_floats(int n_head, int head_dim)
{
    return (size_t)SPLIT_ROWS_MAX * (size_t)n_head * TG_ATTN_LANES *
           tg_attn_state_floats(tg_kv_v_dim(head_dim));
}

/* ---- a worker's scratch ------------------------------------------------------------------------- */

enum { TREE_DEPTH = 4 }; /* states alive at once while 8 leaves are merged in order: 3 and the newest */

typedef struct scratch {
    const float **q;
    int *lo, *hi;
    float *m, *l, *scores, *o, *states;
} scratch;

static size_t lay_out(scratch *s, char *base, int rows, int v_dim)
{
    size_t n = (size_t)rows, at = 0;
    TG_PLACE(s->q, base, at, n);
    TG_PLACE(s->lo, base, at, n);
    TG_PLACE(s->hi, base, at, n);
    TG_PLACE(s->m, base, at, n);
    TG_PLACE(s->l, base, at, n);
    TG_PLACE(s->scores, base, at, n * TG_KV_CHUNK);
    TG_PLACE(s->o, base, at, n * (size_t)v_dim);
    TG_PLACE(s->states, base, at, TREE_DEPTH * n * tg_attn_state_floats(v_dim));
    return at;
}

size_t tg_attn_scratch_bytes(int n_head, int n_head_kv, int head_dim)
{
    scratch s;
    return lay_out(&s, NULL, tile_rows_max(n_head / n_head_kv), tg_kv_v_dim(head_dim));
}

/* ---- tiles ---------------------------------------------------------------------------------------- */

/* Batch rows first .. end - 1, all of one sequence, with the query heads of one KV head. */
typedef struct tile {
    const tg_attn *a;
    int first, end, head; /* head: of K and V */
    int group, n;         /* query rows: token-major, n = tokens * group */
    int chunk_first, chunk_last;
} tile;

static int tile_end(const tg_attn *a, int first, int tokens)
{
    int end = first + 1;
    while (end < a->n && end - first < tokens && a->row[end].seq == a->row[first].seq)
        end++;
    return end;
}

static tile tile_make(const tg_attn *a, int first, int end, int head)
{
    tile t = {a, first, end, head, a->n_head / a->kv.n_head_kv, 0, 0, 0};
    t.n = (end - first) * t.group;
    int from = a->row[first].from, to = a->row[first].pos;
    for (int i = first + 1; i < end; i++) {
        from = a->row[i].from < from ? a->row[i].from : from;
        to = a->row[i].pos > to ? a->row[i].pos : to;
    }
    t.chunk_first = from / TG_KV_CHUNK;
    t.chunk_last = to / TG_KV_CHUNK;
    return t;
}

/* The floats of query row i of the tile in q or out. */
static size_t row_offset(const tile *t, int i)
{
    const tg_attn *a = t->a;
    size_t token = (size_t)(t->first + i / t->group), head = (size_t)(t->head * t->group + i % t->group);
    return (token * (size_t)a->n_head + head) * (size_t)a->kv.head_dim;
}

static void absorb_chunk(const tile *t, int c, scratch *s, float *states)
{
    const tg_attn *a = t->a;
    const tg_kv_view *kv = &a->kv;
    tg_chunk chunk = {.type_k = kv->type_k, .type_v = kv->type_v, .head_dim = kv->head_dim,
                      .v_dim = kv->v_dim, .n = t->n, .q = s->q, .lo = s->lo, .hi = s->hi,
                      .scores = s->scores, .o = s->o, .m = s->m, .l = s->l};
    int base = c * TG_KV_CHUNK, last = 0;
    for (int i = 0; i < t->n; i++) {
        const tg_attn_row *row = &a->row[t->first + i / t->group];
        int lo = row->from - base, hi = row->pos + 1 - base;
        s->lo[i] = lo < 0 ? 0 : lo;
        s->hi[i] = hi > TG_KV_CHUNK ? TG_KV_CHUNK : hi < 0 ? 0 : hi;
        last = s->hi[i] > last ? s->hi[i] : last;
    }
    const int32_t *block = a->seq[a->row[t->first].seq].block + base / TG_KV_BLOCK;
    for (int b = 0; b * TG_KV_BLOCK < last; b++) {
        chunk.k[b] = kv->k + (size_t)block[b] * kv->k_block_stride + (size_t)t->head * kv->k_head_stride;
        chunk.v[b] = kv->v + (size_t)block[b] * kv->v_block_stride + (size_t)t->head * kv->v_head_stride;
    }
    tg_attn_table()->absorb(&chunk, states);
}

/* One lane of a tile: its chunks in ascending order. */
static void run_lane(const tile *t, int lane, scratch *s, float *states)
{
    for (int i = 0; i < t->n; i++)
        s->q[i] = t->a->q + row_offset(t, i);
    begin_all(states, t->n, t->a->kv.v_dim);
    int skip = (lane - t->chunk_first) & (TG_ATTN_LANES - 1);
    for (int c = t->chunk_first + skip; c <= t->chunk_last; c += TG_ATTN_LANES)
        absorb_chunk(t, c, s, states);
}

static void merge_all(float *a, const float *b, int n, int v_dim)
{
    size_t size = tg_attn_state_floats(v_dim);
    for (int i = 0; i < n; i++)
        tg_attn_table()->merge(a + (size_t)i * size, b + (size_t)i * size, v_dim);
}

static void finish_all(const tile *t, const float *states)
{
    const tg_kv_view *kv = &t->a->kv;
    for (int i = 0; i < t->n; i++)
        tg_attn_table()->finish(states + (size_t)i * tg_attn_state_floats(kv->v_dim), kv->v_dim,
                                kv->head_dim, t->a->out + row_offset(t, i));
}

/* All lanes of a tile in order; each finished pair of subtrees is merged at once. */
static void run_tile(const tile *t, scratch *s)
{
    int v_dim = t->a->kv.v_dim, depth = 0;
    size_t size = (size_t)t->n * tg_attn_state_floats(v_dim);
    for (int lane = 0; lane < TG_ATTN_LANES; lane++) {
        run_lane(t, lane, s, s->states + (size_t)depth * size);
        for (int bit = lane; bit & 1; bit >>= 1) {
            depth--;
            merge_all(s->states + (size_t)depth * size, s->states + (size_t)(depth + 1) * size, t->n, v_dim);
        }
        depth++;
    }
    finish_all(t, s->states);
}

/* The same tree over lanes that others have run; lanes[0] becomes the result. */
static void merge_lanes(const tile *t, float *lanes)
{
    int v_dim = t->a->kv.v_dim;
    size_t size = (size_t)t->n * tg_attn_state_floats(v_dim);
    for (int step = 1; step < TG_ATTN_LANES; step *= 2)
        for (int lane = 0; lane < TG_ATTN_LANES; lane += 2 * step)
            merge_all(lanes + (size_t)lane * size, lanes + (size_t)(lane + step) * size, t->n, v_dim);
    finish_all(t, lanes);
}

/* Where the states of the lanes of a tile lie in a->partial. */
static float *partial_of(const tile *t)
{
    size_t rows = (size_t)t->first * (size_t)t->a->n_head + (size_t)(t->head * t->n);
    return t->a->partial + rows * TG_ATTN_LANES * tg_attn_state_floats(t->a->kv.v_dim);
}

enum phase { WHOLE, LANES, MERGE };

/* Goes through all units of a phase and does those that this thread draws. */
static void run_phase(const tg_worker *w, const tg_attn *a, enum phase phase, scratch *s)
{
    int tokens = tile_tokens(a->n_head / a->kv.n_head_kv), parts = phase == LANES ? TG_ATTN_LANES : 1;
    size_t unit = 0, mine = tg_take(w);
    for (int first = 0, end; first < a->n; first = end) {
        end = tile_end(a, first, tokens);
        for (int head = 0; head < a->kv.n_head_kv; head++) {
            for (int part = 0; part < parts; part++, unit++) {
                if (unit != mine)
                    continue;
                tile t = tile_make(a, first, end, head);
                size_t size = (size_t)t.n * tg_attn_state_floats(a->kv.v_dim);
                if (phase == WHOLE)
                    run_tile(&t, s);
                else if (phase == LANES)
                    run_lane(&t, part, s, partial_of(&t) + (size_t)part * size);
                else
                    merge_lanes(&t, partial_of(&t));
                mine = tg_take(w);
            }
        }
    }
}

void tg_attention(const tg_worker *w, const tg_attn *a)
{
    scratch s;
    lay_out(&s, w->scratch, tile_rows_max(a->n_head / a->kv.n_head_kv), a->kv.v_dim);
    if (a->n > SPLIT_ROWS_MAX) {
        run_phase(w, a, WHOLE, &s);
        return;
    }
    run_phase(w, a, LANES, &s);
    tg_barrier(w);
    run_phase(w, a, MERGE, &s);
}

int tg_kv_put(const tg_kv_view *kv, const tg_kv_seq *seq, int pos, const float *k, const float *v)
{
    int n_clamped = 0;
    for (int h = 0; h < kv->n_head_kv; h++)
        n_clamped += tg_attn_table()->put(kv, seq->block[pos / TG_KV_BLOCK], pos % TG_KV_BLOCK, h,
                                          k + (size_t)h * (size_t)kv->head_dim,
                                          v + (size_t)h * (size_t)kv->head_dim);
    return n_clamped;
}
