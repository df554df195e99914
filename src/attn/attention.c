/* attention.c - who attends to what, and the merge tree. The arithmetic is in body_attn.c. */
#include "attn/attention.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "kernel/isa.h"

TG_ISA_DECLARE(tg_attn_kernels, tg_attn_kernels);
TG_ISA_DECLARE(tg_kv_kernels, tg_kv_kernels);

enum { SPLIT_ROWS_MAX = 8 }; /* batch rows up to which the lanes of a row are units of work */

const tg_attn_kernels *tg_attn_table(void)
{
    return TG_ISA_PICK(tg_attn_kernels);
}

const tg_kv_kernels *tg_kv_table(void)
{
    return TG_ISA_PICK(tg_kv_kernels);
}

void tg_attn_begin(float *states, int n, int v_dim)
{
    size_t size = tg_attn_state_floats(v_dim);
    memset(states, 0, (size_t)n * size * sizeof *states);
    for (int i = 0; i < n; i++)
        states[(size_t)i * size + (size_t)v_dim] = -INFINITY;
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

/* What threads leave for each other under the split schedule. */
typedef struct partial {
    atomic_int *n_done; /* of each tile: its units that are done; 0 between the phases */
    float *states;      /* [rows x heads][lanes] */
} partial;

static size_t lay_out_partial(partial *p, void *base, int n_head, int head_dim)
{
    size_t n = (size_t)SPLIT_ROWS_MAX * (size_t)n_head, at = 0;
    TG_PLACE(p->n_done, base, at, n);
    TG_PLACE(p->states, base, at, n * TG_ATTN_LANES * tg_attn_state_floats(tg_kv_v_dim(head_dim)));
    return at;
}

size_t tg_attn_partial_bytes(int n_head, int head_dim)
{
    partial p;
    return lay_out_partial(&p, NULL, n_head, head_dim);
}

/* ---- a worker's scratch ------------------------------------------------------------------------- */

enum { TREE_DEPTH = 4 }; /* states alive at once while 8 leaves are merged in order: 3 and the newest */

typedef struct scratch {
    const tg_attn_kernels *kernels;
    tg_chunk chunk; /* its scratch, and where its queries go */
    const float **q;
    int *lo, *hi;
    int ranges_of; /* the chunk and its range that lo and hi tell of, see set_ranges; -1: none */
    float *sink; /* a state */
    float *states;
} scratch;

static size_t lay_out(scratch *s, char *base, int rows, int head_dim)
{
    tg_chunk *c = &s->chunk;
    int v_dim = tg_kv_v_dim(head_dim);
    size_t n = (size_t)rows, sub = TG_ATTN_SUB, n_scales = (size_t)tg_kv_scales(head_dim), at = 0;
    TG_PLACE(s->q, base, at, n);
    TG_PLACE(s->lo, base, at, n);
    TG_PLACE(s->hi, base, at, n);
    TG_PLACE(c->q_rows, base, at, n * (size_t)head_dim);
    TG_PLACE(c->q8, base, at, n * n_scales);
    TG_PLACE(c->q_bf16, base, at, n * (size_t)((head_dim + 1) / 2));
    TG_PLACE(c->scores, base, at, sub * TG_ATTN_SCORES);
    TG_PLACE(c->states, base, at, sub * tg_attn_state_floats(v_dim));
    TG_PLACE(c->wide_k, base, at, TG_KV_CHUNK * (size_t)head_dim);
    TG_PLACE(c->wide_v, base, at, TG_KV_CHUNK * (size_t)v_dim);
    TG_PLACE(c->p_fixed, base, at, sub * n_scales * TG_KV_CHUNK);
    TG_PLACE(c->p_scale, base, at, sub * n_scales);
    TG_PLACE(c->p_bf16, base, at, sub * TG_KV_CHUNK);
    TG_PLACE(s->sink, base, at, tg_attn_state_floats(v_dim));
    TG_PLACE(s->states, base, at, TREE_DEPTH * n * tg_attn_state_floats(v_dim));
    return at;
}

size_t tg_attn_scratch_bytes(int n_head, int n_head_kv, int head_dim)
{
    scratch s;
    return lay_out(&s, NULL, tile_rows_max(n_head / n_head_kv), head_dim);
}

/* ---- which keys --------------------------------------------------------------------------------- */

/* A row attends to two ranges of positions at most: those that are kept, and the window. They are apart,
 * or all is in the second. */
enum { KEPT, WINDOW, N_RANGES };

typedef struct range {
    int from, end;
} range;

static inline range range_of(const tg_attn *a, const tg_attn_row *row, int which)
{
    const tg_attn_mods *mods = &a->mods;
    if (mods->window <= 0)
        return (range){0, which == WINDOW ? row->pos + 1 : 0};
    int end = row->pos + 1, from = end > mods->window ? end - mods->window : 0;
    if (from <= mods->keep)
        return which == KEPT ? (range){0, 0} : (range){0, end};
    return which == KEPT ? (range){0, mods->keep} : (range){from, end};
}

/* ---- tiles --------------------------------------------------------------------------------------- */

/* Batch rows first .. end - 1, all of one sequence, with the query heads of one KV head: of one after the
 * other, and only `head` changes. */
typedef struct tile {
    const tg_attn *a;
    int first, end, head;     /* head: of K and V */
    int group, n;             /* query rows: token-major, n = tokens * group */
    range chunks[N_RANGES];   /* that any row has keys in, by the row's ranges */
    int last_block;           /* of the sequence, that any row has keys in */
    unsigned lanes;           /* a bit for each that has a chunk */
} tile;

static int tile_end(const tg_attn *a, int first, int tokens)
{
    int end = first + 1;
    while (end < a->n && end - first < tokens && a->row[end].seq == a->row[first].seq)
        end++;
    return end;
}

static void tile_make(tile *t, const tg_attn *a, int first, int end, int group)
{
    *t = (tile){.a = a, .first = first, .end = end, .group = group, .n = (end - first) * group};
    for (int which = a->mods.window > 0 ? KEPT : WINDOW; which < N_RANGES; which++) {
        range *all = &t->chunks[which];
        for (int i = first; i < end; i++) {
            range r = range_of(a, &a->row[i], which);
            if (r.from >= r.end)
                continue;
            range c = {r.from / TG_KV_CHUNK, (r.end - 1) / TG_KV_CHUNK + 1};
            bool none = all->from >= all->end;
            all->from = none || c.from < all->from ? c.from : all->from;
            all->end = none || c.end > all->end ? c.end : all->end;
            int last = (r.end - 1) / TG_KV_BLOCK;
            t->last_block = last > t->last_block ? last : t->last_block;
        }
        for (int c = all->from; c < all->end && c < all->from + TG_ATTN_LANES; c++)
            t->lanes |= 1u << (c & (TG_ATTN_LANES - 1));
    }
}

static bool in_range(range r, int i)
{
    return i >= r.from && i < r.end;
}

/* The floats of the tile's first query row in q or out; those of its other heads follow, and those of
 * the next token are a->n_head heads further. */
static size_t first_offset(const tile *t)
{
    const tg_attn *a = t->a;
    return ((size_t)t->first * (size_t)a->n_head + (size_t)(t->head * t->group)) * (size_t)a->kv.head_dim;
}

/* ---- lanes --------------------------------------------------------------------------------------- */

/* What all KV heads of the tile share. */
static void prepare_tile(const tile *t, scratch *s)
{
    const tg_kv_view *kv = &t->a->kv;
    tg_chunk *c = &s->chunk;
    s->ranges_of = -1;
    c->type_k = kv->type_k;
    c->type_v = kv->type_v;
    c->dots = t->a->dots;
    c->head_dim = kv->head_dim;
    c->v_dim = kv->v_dim;
    c->soft_cap = t->a->mods.soft_cap;
    /* A layer finds its keys in no cache, but in tests. One row of floats has so little to compute that inside two
     * chunks the processor's own loads run far enough ahead. */
    c->stream = t->last_block >= (t->n == 1 && kv->type_k == TG_F32 ? 2 * TG_KV_CHUNK_BLOCKS : 1);
    c->n = t->n;
    c->q = s->q;
    c->lo = s->lo;
    c->hi = s->hi;
}

/* The queries of one. */
static void prepare_head(const tile *t, scratch *s)
{
    size_t dim = (size_t)t->a->kv.head_dim;
    const float *q = t->a->q + first_offset(t);
    for (int i = 0; i < t->n; q += (size_t)t->a->n_head * dim)
        for (int h = 0; h < t->group; h++, i++)
            s->q[i] = q + (size_t)h * dim;
    s->kernels->prepare(&s->chunk);
}

/* Which keys of a chunk each row has, unless they are known from another head. */
static void set_ranges(const tile *t, int c, int which, scratch *s)
{
    const tg_attn *a = t->a;
    int base = c * TG_KV_CHUNK;
    if (s->ranges_of == c * N_RANGES + which)
        return;
    s->ranges_of = c * N_RANGES + which;
    for (int token = t->first, i = 0; token < t->end; token++) {
        range r = range_of(a, &a->row[token], which);
        int lo = r.from - base, hi = r.end - base;
        lo = lo < 0 ? 0 : lo;
        hi = hi > TG_KV_CHUNK ? TG_KV_CHUNK : hi < 0 ? 0 : hi;
        for (int h = 0; h < t->group; h++, i++) {
            s->lo[i] = lo;
            s->hi[i] = hi;
        }
    }
}

/* `next`: the chunk behind this one, to be fetched ahead. */
static void absorb_chunk(const tile *t, int c, int next, int which, scratch *s, float *states)
{
    const tg_attn *a = t->a;
    const tg_kv_view *kv = &a->kv;
    int first = c * TG_KV_CHUNK_BLOCKS, n_blocks = t->last_block - first + 1;
    set_ranges(t, c, which, s);
    const int32_t *block = a->seq[a->row[t->first].seq].block;
    bool more = in_range(t->chunks[WINDOW], next);
    for (int i = 0; i < TG_KV_CHUNK_BLOCKS && i < n_blocks; i++) {
        s->chunk.k[i] = tg_kv_at(kv, block[first + i], t->head, false);
        s->chunk.v[i] = tg_kv_at(kv, block[first + i], t->head, true);
    }
    for (int i = 0; i < 2 * TG_KV_CHUNK_BLOCKS && s->chunk.stream; i++) {
        int b = next * TG_KV_CHUNK_BLOCKS + i % TG_KV_CHUNK_BLOCKS;
        s->chunk.next[i] =
            more && b <= t->last_block ? tg_kv_at(kv, block[b], t->head, i >= TG_KV_CHUNK_BLOCKS) : NULL;
    }
    s->kernels->absorb(&s->chunk, states);
}

/* Lanes lane .. lane + n - 1 of a tile, all their chunks in ascending order: neighbouring lanes read
 * memory in longer runs. states: of one lane behind the other. */
static void run_lanes(const tile *t, int lane, int n, scratch *s, float *states)
{
    range kept = t->chunks[KEPT], window = t->chunks[WINDOW];
    int end = kept.end > window.end ? kept.end : window.end;
    size_t size = (size_t)t->n * tg_attn_state_floats(t->a->kv.v_dim);
    tg_attn_begin(states, n * t->n, t->a->kv.v_dim);
    for (int c = kept.from < kept.end ? kept.from : window.from; c < end; c++) {
        int at = (c & (TG_ATTN_LANES - 1)) - lane, next = at == n - 1 ? c + TG_ATTN_LANES - n + 1 : c + 1;
        if (at < 0 || at >= n)
            continue;
        if (in_range(kept, c))
            absorb_chunk(t, c, next, KEPT, s, states + (size_t)at * size);
        if (in_range(window, c))
            absorb_chunk(t, c, next, WINDOW, s, states + (size_t)at * size);
    }
}

static void merge_all(const scratch *s, float *a, const float *b, int n, int v_dim)
{
    size_t size = tg_attn_state_floats(v_dim);
    for (int i = 0; i < n; i++)
        s->kernels->merge(a + (size_t)i * size, b + (size_t)i * size, v_dim);
}

/* The lanes from .. from + n - 1 of a tile, merged by the fixed tree: NULL when all are empty. Lanes that
 * others have run are in `done`; with NULL they are run here, into s->states from `free` on. */
static float *merge_tree(const tile *t, int from, int n, float *done, scratch *s, float *free)
{
    int v_dim = t->a->kv.v_dim;
    size_t size = (size_t)t->n * tg_attn_state_floats(v_dim);
    unsigned mine = t->lanes >> from & ((1u << n) - 1);
    if (!mine)
        return NULL;
    if (!(mine & (mine - 1))) { /* a single lane */
        int lane = from + __builtin_ctz(mine);
        if (done)
            return done + (size_t)lane * size;
        run_lanes(t, lane, 1, s, free);
        return free;
    }
    float *a = merge_tree(t, from, n / 2, done, s, free);
    float *b = merge_tree(t, from + n / 2, n / 2, done, s, a ? free + size : free);
    if (a && b)
        merge_all(s, a, b, t->n, v_dim);
    return a ? a : b;
}

/* A learned sink is the state (sink, 1, 0): a key without a value. */
static void add_sinks(const tile *t, scratch *s, float *states)
{
    int v_dim = t->a->kv.v_dim;
    tg_attn_begin(s->sink, 1, v_dim);
    s->sink[v_dim + 1] = 1.0f;
    for (int i = 0; i < t->n; i++) {
        s->sink[v_dim] = t->a->mods.sink[t->head * t->group + i % t->group];
        s->kernels->merge(states + (size_t)i * tg_attn_state_floats(v_dim), s->sink, v_dim);
    }
}

static void finish_all(const tile *t, scratch *s, float *states)
{
    const tg_kv_view *kv = &t->a->kv;
    if (!states)
        tg_attn_begin(states = s->states, t->n, kv->v_dim);
    if (t->a->mods.sink)
        add_sinks(t, s, states);
    s->kernels->finish(states, t->n, kv->v_dim, kv->head_dim, t->group,
                       (size_t)(t->a->n_head * kv->head_dim), kv->type_v == TG_Q4,
                       t->a->out + first_offset(t));
}

/* ---- schedules ----------------------------------------------------------------------------------- */

enum schedule { WHOLE, LANES };

/* Lanes that one unit of work takes: neighbours, as many as leave each thread two units, or the same number to all.
 * Long runs are read faster, by 2 % from four units to two; of a single one nobody could take a part. */
static int lanes_together(const tg_worker *w, int n_tiles)
{
    int n = TG_ATTN_LANES;
    for (int units = n_tiles; n > 1; n /= 2, units *= 2)
        if (units >= 2 * w->size || w->size == 1)
            break;
    return n;
}

/* All lanes of a tile. Of few rows all states fit, and the chunks are read in the order in which they
 * lie; of many, a lane at a time. */
static void run_whole(const tile *t, scratch *s)
{
    bool one_lane = !(t->lanes & (t->lanes - 1));
    float *done = NULL;
    if (!one_lane && t->n * TG_ATTN_LANES <= TREE_DEPTH * tile_rows_max(t->group))
        run_lanes(t, 0, TG_ATTN_LANES, s, done = s->states);
    finish_all(t, s, merge_tree(t, 0, TG_ATTN_LANES, done, s, s->states));
}

/* n_lanes lanes of a tile, for others to see; who is the last at a tile merges all its lanes. */
static void run_some_lanes(const tile *t, int lane, int n_lanes, scratch *s)
{
    const tg_attn *a = t->a;
    size_t row = (size_t)t->first * (size_t)a->n_head + (size_t)(t->head * t->n);
    size_t size = (size_t)t->n * tg_attn_state_floats(a->kv.v_dim);
    partial p;
    lay_out_partial(&p, a->partial, a->n_head, a->kv.head_dim);
    float *states = p.states + row * TG_ATTN_LANES * tg_attn_state_floats(a->kv.v_dim);
    run_lanes(t, lane, n_lanes, s, states + (size_t)lane * size);
    if (atomic_fetch_add_explicit(&p.n_done[row], n_lanes, memory_order_acq_rel) + n_lanes < TG_ATTN_LANES)
        return;
    atomic_store_explicit(&p.n_done[row], 0, memory_order_relaxed);
    finish_all(t, s, merge_tree(t, 0, TG_ATTN_LANES, states, s, NULL));
}

/* Goes on to the rows of the tiles number `index`, from the start when they lie behind. */
typedef struct cursor {
    int index, first, end;
} cursor;

static void seek(cursor *c, const tg_attn *a, int tokens, int index)
{
    if (index < c->index || c->end == 0)
        *c = (cursor){.end = tile_end(a, 0, tokens)};
    for (; c->index < index; c->index++) {
        c->first = c->end;
        c->end = tile_end(a, c->first, tokens);
    }
}

static int count_tiles(const tg_attn *a, int tokens)
{
    int n = 0;
    for (int first = 0; first < a->n; first = tile_end(a, first, tokens))
        n += a->kv.n_head_kv;
    return n;
}

/* Heads that go together when a whole unit takes less than handing it out: one tile of rows that see a
 * single chunk. */
static size_t grain_of(const tg_worker *w, const tg_attn *a)
{
    int grain = a->kv.n_head_kv / (2 * w->size);
    if (a->n > 16 || a->row[a->n - 1].pos >= TG_KV_CHUNK || grain < 1)
        return 1;
    return (size_t)grain;
}

/* The units that this thread draws: one for each tile, or for each run of lanes of it. */
static void run(const tg_worker *w, const tg_attn *a, enum schedule schedule, scratch *s)
{
    int group = a->n_head / a->kv.n_head_kv, tokens = tile_tokens(group), n_tiles = count_tiles(a, tokens);
    int step = schedule == LANES ? lanes_together(w, n_tiles) : TG_ATTN_LANES;
    size_t parts = (size_t)(TG_ATTN_LANES / step), n_units = (size_t)n_tiles * parts;
    /* Tiny units are taken several at a time. */
    size_t grain = schedule == WHOLE ? grain_of(w, a) : 1, n_takes = (n_units + grain - 1) / grain;
    cursor c = {0};
    tile t = {.a = a};
    for (size_t take; (take = tg_take(w, n_takes)) < n_takes;) {
        for (size_t unit = take * grain; unit < (take + 1) * grain && unit < n_units; unit++) {
            int index = (int)(unit / parts), head = index % a->kv.n_head_kv;
            seek(&c, a, tokens, index / a->kv.n_head_kv);
            if (c.first != t.first || c.end != t.end) {
                tile_make(&t, a, c.first, c.end, group);
                prepare_tile(&t, s);
            }
            t.head = head;
            prepare_head(&t, s);
            if (schedule == WHOLE)
                run_whole(&t, s);
            else
                run_some_lanes(&t, (int)(unit % parts) * step, step, s);
        }
    }
}

static scratch scratch_of(const tg_worker *w, const tg_attn *a)
{
    scratch s;
    lay_out(&s, w->scratch, tile_rows_max(a->n_head / a->kv.n_head_kv), a->kv.head_dim);
    s.kernels = tg_attn_table();
    return s;
}

static void attention_whole(const tg_worker *w, const tg_attn *a)
{
    scratch s = scratch_of(w, a);
    run(w, a, WHOLE, &s);
}

void tg_attention_split(const tg_worker *w, const tg_attn *a)
{
    scratch s = scratch_of(w, a);
    tg_attn some = *a;
    for (int first = 0; first < a->n; first += SPLIT_ROWS_MAX) {
        some.row = a->row + first;
        some.n = a->n - first < SPLIT_ROWS_MAX ? a->n - first : SPLIT_ROWS_MAX;
        some.q = a->q + (size_t)first * (size_t)(a->n_head * a->kv.head_dim);
        some.out = a->out + (size_t)first * (size_t)(a->n_head * a->kv.head_dim);
        if (first > 0)
            tg_barrier(w);
        run(w, &some, LANES, &s);
    }
}

/* Of a single chunk there is nothing to split, and with tiles enough for all there is no need. */
static bool is_split(const tg_worker *w, const tg_attn *a)
{
    int last = 0;
    for (int i = 0; i < a->n && i < SPLIT_ROWS_MAX; i++)
        last = a->row[i].pos > last ? a->row[i].pos : last;
    return a->n <= SPLIT_ROWS_MAX && last >= TG_KV_CHUNK &&
           count_tiles(a, tile_tokens(a->n_head / a->kv.n_head_kv)) < 4 * w->size;
}

void tg_attention(const tg_worker *w, const tg_attn *a)
{
    if (is_split(w, a))
        tg_attention_split(w, a);
    else
        attention_whole(w, a);
}

bool tg_attention_is_long(const tg_attn *a)
{
    enum { LONG = 4 * TG_KV_CHUNK };
    range r = range_of(a, a->row, WINDOW);
    return a->n == 1 && r.end - r.from >= LONG;
}

void tg_attention_fetch(const tg_worker *w, const tg_attn *a)
{
    const tg_kv_view *kv = &a->kv;
    const int step = is_split(w, a) ? lanes_together(w, kv->n_head_kv) : TG_ATTN_LANES;
    const size_t parts = (size_t)(TG_ATTN_LANES / step);
    size_t unit, end;
    tg_share(w, (size_t)kv->n_head_kv * parts, &unit, &end);
    const int lane = (int)(unit % parts) * step;
    int chunk = range_of(a, a->row, WINDOW).from / TG_KV_CHUNK;
    while ((chunk & (TG_ATTN_LANES - 1)) < lane || (chunk & (TG_ATTN_LANES - 1)) >= lane + step)
        chunk++;
    if (unit >= end || chunk * TG_KV_CHUNK > a->row->pos)
        return;
    const int32_t block = a->seq[a->row->seq].block[chunk * TG_KV_CHUNK_BLOCKS];
    const uint8_t *at = tg_kv_at(kv, block, (int)(unit / parts), false);
    const size_t n_bytes = kv->chunk_bytes < TG_FETCH_MOST ? kv->chunk_bytes : TG_FETCH_MOST;
    tg_fetch_while_waiting(w, at, at + n_bytes);
}

int tg_kv_put(const tg_kv_view *kv, const tg_kv_seq *seq, int pos, const float *k, const float *v)
{
    int n_clamped = 0;
    for (int h = 0; h < kv->n_head_kv; h++)
        n_clamped += tg_kv_table()->put(kv, seq->block[pos / TG_KV_BLOCK], pos % TG_KV_BLOCK, h,
                                        k + (size_t)h * (size_t)kv->head_dim,
                                        v + (size_t)h * (size_t)kv->head_dim);
    return n_clamped;
}
