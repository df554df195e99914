/* strategy.c - the table of attention algorithms, and the one schedule of the reference ones: a unit of
 * work is a tile of rows of one query head. */
#include "attn/strategy.h"

#include <string.h>

#include "attn/reference.h"
#include "base/memory.h"
#include "kernel/isa.h"

TG_ISA_DECLARE(tg_ref_kernels, tg_ref_kernels);

const tg_ref_kernels *tg_ref_table(void)
{
    return TG_ISA_PICK(tg_ref_kernels);
}

/* ---- scratch ------------------------------------------------------------------------------------- */

typedef struct scratch {
    const float **q;
    float **out;
    int *n_keys;
    float *q_rows, *o, *states, *wide, *scores; /* the scores last: how many there are, each strategy knows */
} scratch;

static size_t lay_out(scratch *s, char *base, int rows, int head_dim, size_t score_floats)
{
    size_t n = (size_t)rows, v_dim = (size_t)tg_kv_v_dim(head_dim), at = 0;
    TG_PLACE(s->q, base, at, n);
    TG_PLACE(s->out, base, at, n);
    TG_PLACE(s->n_keys, base, at, n);
    TG_PLACE(s->q_rows, base, at, n * (size_t)head_dim);
    TG_PLACE(s->o, base, at, n * tg_attn_state_floats((int)v_dim));
    TG_PLACE(s->states, base, at, n * tg_attn_state_floats((int)v_dim));
    TG_PLACE(s->wide, base, at, TG_KV_BLOCK * v_dim);
    TG_PLACE(s->scores, base, at, score_floats);
    return at;
}

/* Columns of scores in a row of all keys, of whole blocks. */
static size_t whole_row(int n_keys)
{
    return ((size_t)n_keys + TG_KV_BLOCK - 1) / TG_KV_BLOCK * TG_KV_BLOCK;
}

/* The multiple of the block that is next to the root of n (Rabe & Staats, arXiv 2112.05682). */
static size_t root_keys(int n)
{
    size_t side = TG_KV_BLOCK;
    while (side * side < (size_t)n)
        side += TG_KV_BLOCK;
    return side;
}

static size_t matrix_floats(int n_batch, int n_ctx)
{
    return (size_t)n_batch * whole_row(n_ctx);
}

static size_t row_floats(int n_batch, int n_ctx)
{
    (void)n_batch;
    return whole_row(n_ctx);
}

static size_t group_floats(int n_batch, int n_ctx)
{
    (void)n_batch, (void)n_ctx;
    return TG_KV_BLOCK;
}

static size_t root_floats(int n_batch, int n_ctx)
{
    (void)n_batch;
    return TG_REF_ROWS * root_keys(n_ctx);
}

static size_t tile_floats(int n_batch, int n_ctx)
{
    (void)n_batch, (void)n_ctx;
    return TG_REF_ROWS * TG_KV_BLOCK;
}

size_t tg_attn_strategy_scratch(const tg_attn_strategy *s, int n_batch, int n_ctx, int n_head, int n_head_kv,
                                int head_dim)
{
    scratch t;
    if (!s->score_floats)
        return tg_attn_scratch_bytes(n_head, n_head_kv, head_dim);
    return lay_out(&t, NULL, s->whole ? n_batch : TG_REF_ROWS, head_dim, s->score_floats(n_batch, n_ctx));
}

/* ---- the schedule -------------------------------------------------------------------------------- */

typedef struct plan {
    void (*kernel)(tg_ref *t);
    int rows;      /* batch rows of a unit */
    int tile_keys; /* keys of a tile */
    size_t stride; /* columns of scores */
} plan;

static void run_unit(const tg_worker *w, const tg_attn *a, const plan *p, int first, int end, int head)
{
    scratch s;
    lay_out(&s, w->scratch, p->rows, a->kv.head_dim, 0);
    for (int i = first; i < end; i++) {
        size_t at = ((size_t)i * (size_t)a->n_head + (size_t)head) * (size_t)a->kv.head_dim;
        s.q[i - first] = a->q + at;
        s.out[i - first] = a->out + at;
        s.n_keys[i - first] = a->row[i].pos + 1;
    }
    tg_ref t = {.kv = &a->kv, .block = a->seq[a->row[first].seq].block,
                .head = head / (a->n_head / a->kv.n_head_kv), .n = end - first, .q = s.q, .out = s.out,
                .n_keys = s.n_keys, .tile_keys = p->tile_keys, .scores = s.scores, .stride = p->stride,
                .q_rows = s.q_rows, .o = s.o, .states = s.states, .wide = s.wide};
    p->kernel(&t);
}

/* The end of the unit of rows that begins with `first`. */
static int unit_end(const tg_attn *a, int first, int rows)
{
    int end = first + 1;
    while (end < a->n && end - first < rows && a->row[end].seq == a->row[first].seq)
        end++;
    return end;
}

static void run(const tg_worker *w, const tg_attn *a, const plan *p)
{
    size_t n_units = 0, unit, at = 0, heads = (size_t)a->n_head;
    for (int first = 0; first < a->n; first = unit_end(a, first, p->rows))
        n_units += heads;
    for (int first = 0; (unit = tg_take(w, n_units)) < n_units;) {
        if (unit / heads < at)
            at = 0, first = 0;
        for (; at < unit / heads; at++)
            first = unit_end(a, first, p->rows);
        run_unit(w, a, p, first, unit_end(a, first, p->rows), (int)(unit % heads));
    }
}

static int most_keys(const tg_attn *a)
{
    int n = 0;
    for (int i = 0; i < a->n; i++)
        n = a->row[i].pos + 1 > n ? a->row[i].pos + 1 : n;
    return n;
}

static int tile_keys(const tg_attn *a)
{
    return a->tile_keys ? a->tile_keys : TG_KV_BLOCK;
}

static int tile_rows(const tg_attn *a)
{
    return a->tile_rows ? a->tile_rows : TG_REF_ROWS;
}

static void run_safe(const tg_worker *w, const tg_attn *a)
{
    const plan p = {tg_ref_table()->safe, a->n, 0, whole_row(most_keys(a))};
    run(w, a, &p);
}

static void run_fused(const tg_worker *w, const tg_attn *a)
{
    const plan p = {tg_ref_table()->fused, TG_REF_ROWS, 0, whole_row(most_keys(a))};
    run(w, a, &p);
}

static void run_online(const tg_worker *w, const tg_attn *a)
{
    const plan p = {tg_ref_table()->online, TG_REF_ROWS, 0, TG_KV_BLOCK};
    run(w, a, &p);
}

static void run_chunked(const tg_worker *w, const tg_attn *a)
{
    size_t side = root_keys(most_keys(a));
    const plan p = {tg_ref_table()->chunked, TG_REF_ROWS, (int)side, side};
    run(w, a, &p);
}

static void run_flash(const tg_worker *w, const tg_attn *a)
{
    const plan p = {tg_ref_table()->flash, tile_rows(a), tile_keys(a), TG_KV_BLOCK};
    run(w, a, &p);
}

static void run_flash2(const tg_worker *w, const tg_attn *a)
{
    const plan p = {tg_ref_table()->flash2, tile_rows(a), tile_keys(a), TG_KV_BLOCK};
    run(w, a, &p);
}

/* ---- the table ----------------------------------------------------------------------------------- */

const tg_attn_strategy tg_attn_strategies[] = {
    {.name = "auto",
     .summary = "what serves: chunks of 256 keys, split over keys for few rows, same bits for any threads",
     .run = tg_attention,
     .modifiers = true},
    {.name = "safe",
     .summary = "three kernels over a matrix of scores, as textbooks have it",
     .run = run_safe,
     .score_floats = matrix_floats,
     .whole = true},
    {.name = "fused",
     .summary = "a row of scores, then sum and weighted values in one loop",
     .run = run_fused,
     .score_floats = row_floats},
    {.name = "online",
     .summary = "online softmax key by key (Milakov & Gimelshein 2018)",
     .run = run_online,
     .score_floats = group_floats},
    {.name = "chunked",
     .summary = "chunks of about the root of the keys (Rabe & Staats 2022)",
     .run = run_chunked,
     .score_floats = root_floats},
    {.name = "flash",
     .summary = "tiles, normalised at each (FlashAttention 2022)",
     .run = run_flash,
     .score_floats = tile_floats},
    {.name = "flash2",
     .summary = "tiles, normalised at the end, rescaled when the maximum rises (FlashAttention-2 2023)",
     .run = run_flash2,
     .score_floats = tile_floats},
    {.name = "split",
     .summary = "as auto, split over keys whatever the rows (Flash-Decoding 2023)",
     .run = tg_attention_split,
     .modifiers = true},
    {.name = "bf16",
     .summary = "as auto with BF16 products, over a cache of bf16; other bits",
     .run = tg_attention,
     .modifiers = true,
     .dots = true},
};
const int tg_n_attn_strategies = sizeof tg_attn_strategies / sizeof *tg_attn_strategies;

const tg_attn_strategy *tg_attn_strategy_by_name(const char *name)
{
    for (int i = 0; i < tg_n_attn_strategies; i++)
        if (!strcmp(tg_attn_strategies[i].name, name))
            return &tg_attn_strategies[i];
    return NULL;
}
