/* matmul.c - how a product is cut into units of work, and which kernel does a unit. */
#include "kernel/matmul.h"

#include <string.h>

#include "base/memory.h"
#include "kernel/blas.h"
#include "kernel/blocks.h"
#include "kernel/interleave.h"
#include "kernel/isa.h"
#include "kernel/vector.h"

TG_ISA_DECLARE(tg_matmul_kernels, tg_matmul_kernels);
TG_ISA_DECLARE(tg_fused_kernels, tg_fused_kernels);
TG_ISA_DECLARE(tg_fused_kernels, tg_interleaved_kernels);
TG_ISA_DECLARE(tg_decoders, tg_decoders);

enum {
    BLAS_ROWS_MIN = 64, /* fewer rows never go to BLAS */
    FEW_ROWS = 4,       /* of activations, so few that memory is what takes the time: for float weights */
    FEW_Q8_ROWS = 64,   /* and for quantised ones, where from 16 rows on it is no more, but nothing is lost */
    BLAS_ROWS = 256,    /* rows and outputs of one call: parts cut by us, at fixed sizes */
    BLAS_OUT = 128,
};

static const tg_matmul_kernels *kernels(void)
{
    return TG_ISA_PICK(tg_matmul_kernels);
}

static const tg_fused_kernels *fused_kernels(const tg_matrix *m)
{
    return m->interleaved ? TG_ISA_PICK(tg_interleaved_kernels) : TG_ISA_PICK(tg_fused_kernels);
}

bool tg_matmul_wants_q8(const tg_matrix *w, tg_matmul_mode mode)
{
    return w->data && !mode.precise && fused_kernels(w)->fused[w->type->type];
}

void tg_quantize_row(const float *x, int n, tg_q8 *out)
{
    kernels()->quantize(x, n, out);
}

void tg_matrix_row(const tg_matrix *w, int i, float *out)
{
    void (*decode)(const void *, float *, size_t) = TG_ISA_PICK(tg_decoders)->to_f32[w->type->type];
    decode = decode ? decode : w->type->to_f32;
    if (!w->interleaved) {
        decode(w->data + (size_t)i * w->row_bytes, out, (size_t)w->n_in);
        return;
    }
    uint8_t bytes[TG_GATHERED_BYTES];
    for (int from = 0; from < w->n_in; from += TG_GATHERED)
        decode(bytes, out + from, tg_interleaved_gather(w, i, from, bytes));
}

/* A copy of a panel's rows is largest in Q8_0. */
size_t tg_matmul_scratch_bytes(int n_in_max)
{
    size_t n = (size_t)n_in_max;
    size_t panel = (n / 32 + 1) * TG_PANEL * sizeof(tg_block_q8_0);
    size_t rows = 4 * n * sizeof(float);
    size_t blas = BLAS_OUT * n * sizeof(float);
    size_t most = panel > rows ? panel : rows;
    return (most > blas ? most : blas) + 64;
}

/* ---- how a job is cut ----------------------------------------------------------------------------- */

enum way { Q8, FLOAT, BLAS };

static enum way way_of(const tg_rows *x, const tg_product *p, tg_matmul_mode mode)
{
    if (tg_matmul_wants_q8(p->w, mode))
        return Q8;
    return mode.blas && x->n >= BLAS_ROWS_MIN ? BLAS : FLOAT;
}

/* A product in parts of `out` outputs by `rows` rows: all outputs of the first rows, then of the next, so that the
 * rows stay in the cache. */
typedef struct cut {
    enum way way;
    bool few; /* rows: memory is what takes the time */
    int out, rows;
    size_t out_parts, first, end; /* its parts among those of the job */
} cut;

typedef struct plan {
    const tg_matmul_job *job;
    cut cut[TG_PRODUCTS_MAX];
    size_t n_parts, share_first, share_end; /* the worker's own */
    const uint8_t *behind; /* what is read behind that share, or NULL */
} plan;

static size_t divide_up(int n, int by)
{
    return (size_t)((n + by - 1) / by);
}

static int lower(int a, int b)
{
    return a < b ? a : b;
}

/* The rows of a part: n cut evenly, and no more than meet a panel together. Few are never cut. */
static int rows_together(int n)
{
    const int n_parts = (int)divide_up(n, TG_FUSED_ROWS);
    return n_parts > 0 ? (int)divide_up(n, n_parts) : 1;
}

static void make_plan(plan *pl, const tg_worker *w, const tg_matmul_job *job, tg_matmul_mode mode)
{
    const int n = job->x.n;
    bool blas = job->then != NULL; /* of parts across products all must be */
    *pl = (plan){.job = job};
    for (int i = 0; i < job->n_products; i++) {
        pl->cut[i].way = way_of(&job->x, &job->product[i], mode);
        blas = blas && pl->cut[i].way == BLAS;
    }
    for (int i = 0; i < job->n_products; i++) {
        cut *c = &pl->cut[i];
        if (job->then && c->way == BLAS && !blas)
            c->way = FLOAT;
        c->few = n <= (c->way == Q8 ? FEW_Q8_ROWS : FEW_ROWS);
        c->out = c->way == BLAS ? BLAS_OUT : job->then ? 2 * TG_PANEL : TG_PANEL; /* behind it, whole blocks */
        c->rows = c->way == BLAS ? BLAS_ROWS : rows_together(n);
        c->out_parts = divide_up(job->product[i].w->n_out, c->out);
        c->first = job->then ? 0 : pl->n_parts;
        c->end = c->first + c->out_parts * divide_up(n, c->rows);
        pl->n_parts = c->end;
    }
    tg_share(w, pl->n_parts, &pl->share_first, &pl->share_end);
}

/* ---- what to fetch ahead ---------------------------------------------------------------------------- */

/* How far ahead, by measurement: of weights that are read as they lie, and of rows that are read together. Panels are
 * walked through by columns, so that the last rows of the next one are wanted at once when this one is done: where a
 * panel is large, what is fetched must have got beyond the next. */
enum { AHEAD = 7168, AHEAD_OF_ROWS = 13312, AHEAD_OF_PANEL = 4096 };

static size_t ahead_for(const plan *pl, int product)
{
    const tg_matrix *m = pl->job->product[product].w;
    const bool blocks = m->type->block > 1;
    const size_t panel = TG_PANEL * m->row_bytes + AHEAD_OF_PANEL;
    if (m->interleaved || (!blocks && pl->job->x.n == 1))
        return AHEAD;
    return blocks && panel > AHEAD_OF_ROWS ? panel : AHEAD_OF_ROWS;
}

/* The weights that some parts of a product take end here; what the thread reads behind them, or NULL. */
typedef struct stream {
    const uint8_t *end, *behind;
    size_t ahead;
} stream;

/* Which it is of the parts over the same rows. Those of the first rows, which are all when there are few, need no
 * division: it would take longer than all else here. */
static size_t place_of(const cut *c, size_t part)
{
    const size_t i = part - c->first;
    return i < c->out_parts ? i : i % c->out_parts;
}

static int first_out(const cut *c, size_t part)
{
    return (int)place_of(c, part) * c->out;
}

/* The end of those parts that follow `part` over the same rows. */
static size_t rows_end(const cut *c, size_t part)
{
    return part + c->out_parts - place_of(c, part);
}

static const uint8_t *weights_at(const plan *pl, int product, size_t part)
{
    const tg_matrix *m = pl->job->product[product].w;
    return m->data + (size_t)first_out(&pl->cut[product], part) * m->row_bytes;
}

/* Behind the weights of a part. */
static const uint8_t *weights_end(const plan *pl, int product, size_t part)
{
    const tg_matrix *m = pl->job->product[product].w;
    const cut *c = &pl->cut[product];
    return m->data + (size_t)lower(first_out(c, part) + c->out, m->n_out) * m->row_bytes;
}

static int product_of(const plan *pl, size_t part)
{
    int i = 0;
    while (!pl->job->then && i < pl->job->n_products - 1 && part >= pl->cut[i].end)
        i++;
    return i;
}

/* The first weights of the worker's share, or NULL. */
static const uint8_t *share_start(const plan *pl)
{
    if (pl->share_first >= pl->share_end)
        return NULL;
    return weights_at(pl, product_of(pl, pl->share_first), pl->share_first);
}

/* Of the parts i .. end - 1 of a product. */
static stream stream_of(const plan *pl, int product, size_t i, size_t end)
{
    const tg_matmul_job *job = pl->job;
    stream s = {weights_end(pl, product, end - 1), pl->behind, ahead_for(pl, product)};
    if (job->then && product + 1 < job->n_products)
        s.behind = weights_at(pl, product + 1, i);
    else if (end < pl->share_end)
        s.behind = weights_at(pl, product_of(pl, end), end);
    return s;
}

/* What to fetch while `at` is worked on. */
static const uint8_t *ahead_of(const stream *s, const uint8_t *at)
{
    if (!s->behind || at >= s->end || (size_t)(s->end - at) > s->ahead)
        return at + s->ahead;
    return s->behind + (s->ahead - (size_t)(s->end - at));
}

/* Of the first weights of the next job's share those behind `fetched` bytes. */
static void fetch_while_waiting(const tg_worker *w, const plan *next, size_t fetched)
{
    const uint8_t *at = NULL, *end = NULL;
    if (next->share_first < next->share_end) {
        const int product = product_of(next, next->share_first);
        const size_t rows = rows_end(&next->cut[product], next->share_first);
        at = share_start(next);
        end = weights_end(next, product, (next->share_end < rows ? next->share_end : rows) - 1);
        if (end - at > TG_FETCH_MOST)
            end = at + TG_FETCH_MOST;
        at += fetched;
    }
    tg_fetch_while_waiting(w, at, end);
}

/* ---- parts of a product ----------------------------------------------------------------------- */

/* Outputs first .. first + n_out - 1 of some rows, which are row 0 and on of x and of p. */
typedef struct part {
    const tg_worker *w;
    tg_rows x;
    tg_product p;
    stream stream;
    int first, n_out;
} part;

/* n of the 16 rows of a panel exist: the others become zeros in a copy, unless they are there. */
static const uint8_t *whole_panel(const tg_matrix *m, const uint8_t *rows, int n, uint8_t *copy)
{
    if (n >= TG_PANEL || m->interleaved)
        return rows;
    size_t bytes = (size_t)n * m->row_bytes;
    memset(copy + bytes, 0, TG_PANEL * m->row_bytes - bytes);
    return memcpy(copy, rows, bytes);
}

/* All rows meet the blocks of a panel as they are taken from memory. */
static void q8_part(const part *t)
{
    const tg_matrix *m = t->p.w;
    const int n_blocks = m->n_in / 32, end = t->first + t->n_out;
    for (int o = t->first; o < end; o += TG_PANEL) {
        const uint8_t *at = m->data + (size_t)o * m->row_bytes;
        const uint8_t *rows = whole_panel(m, at, end - o, t->w->scratch);
        fused_kernels(m)->fused[m->type->type](rows, m->row_bytes, ahead_of(&t->stream, at), t->x.q, t->x.n, n_blocks,
                                               &t->p, o, end - o);
    }
}

/* Weight rows in float32, decoded where they are not: four at a time, but one as they lie for a single row of
 * activations, for which memory is what takes the time. */
static void float_part(const part *t)
{
    const tg_matmul_kernels *k = kernels();
    const tg_matrix *m = t->p.w;
    const int together = t->x.n == 1 ? 1 : 4;
    const size_t step = m->type->block == 1 ? (size_t)together * 16 * (size_t)m->type->block_bytes : 0;
    int end = t->first + t->n_out;
    for (int o = t->first; o < end; o += together) {
        const float *rows[4];
        const uint8_t *src = m->data + (size_t)o * m->row_bytes, *ahead = ahead_of(&t->stream, src);
        const int n = lower(together, end - o);
        for (int i = 0; i < n; i++, src += m->row_bytes) {
            if (m->type->type == TG_F32 && (uintptr_t)src % sizeof(float) == 0) {
                rows[i] = (const float *)(const void *)src;
            } else {
                float *dst = (float *)t->w->scratch + (size_t)i * (size_t)m->n_in;
                tg_matrix_row(m, o + i, dst);
                rows[i] = dst;
            }
        }
        k->dot(rows, n, ahead, step, t->x.f, t->x.n, m->n_in, &t->p, o);
    }
}

/* n outputs from `first` on, BLAS_OUT at most, by BLAS_ROWS rows at most. */
static void blas_outputs(const part *t, int first, int n)
{
    const tg_matrix *m = t->p.w;
    size_t n_in = (size_t)m->n_in;
    float *decoded = t->w->scratch, *out = t->p.out + first;
    const float *weights = decoded;
    const uint8_t *src = m->data + (size_t)first * m->row_bytes;
    if (m->type->type == TG_F32 && (uintptr_t)src % sizeof(float) == 0)
        weights = (const float *)(const void *)src;
    else
        for (int i = 0; i < n; i++)
            tg_matrix_row(m, first + i, decoded + (size_t)i * n_in);
    tg_blas_gemm(t->x.n, n, m->n_in, t->x.f, n_in, weights, n_in, t->p.add, out, t->p.out_stride);
    for (int r = 0; m->bias && r < t->x.n; r++, out += t->p.out_stride)
        tg_vector()->add(1.0f, m->bias + first, n, out);
}

static void blas_part(const part *t)
{
    for (int o = t->first, end = t->first + t->n_out; o < end; o += BLAS_OUT)
        blas_outputs(t, o, lower(BLAS_OUT, end - o));
}

/* ---- all parts of a job --------------------------------------------------------------------------- */

/* The first row of those that part i takes. */
static int row_of(const cut *c, size_t i)
{
    return i - c->first < c->out_parts ? 0 : (int)((i - c->first) / c->out_parts) * c->rows;
}

/* The parts i .. end - 1 of a product, neighbours over the same rows. */
static part part_of(const tg_worker *w, const plan *pl, int product, size_t i, size_t end)
{
    const cut *c = &pl->cut[product];
    const tg_rows *x = &pl->job->x;
    part t = {w, *x, pl->job->product[product], stream_of(pl, product, i, end), first_out(c, i), 0};
    const int row = row_of(c, i);
    t.n_out = lower(first_out(c, end - 1) + c->out, t.p.w->n_out) - t.first;
    t.x.n = lower(c->rows, x->n - row);
    t.x.f = x->f ? x->f + (size_t)row * (size_t)x->n_in : NULL;
    t.x.q = x->q ? x->q + (size_t)row * (size_t)(x->n_in / 32) : NULL;
    t.p.out += (size_t)row * t.p.out_stride;
    return t;
}

static void run_part(const part *t, const cut *c)
{
    if (c->way == Q8)
        q8_part(t);
    else if (c->way == FLOAT)
        float_part(t);
    else
        blas_part(t);
}

/* Part i of all products; of few rows those up to `end` as well, since one long stream of weights is read faster than
 * two by turns. Returns the part behind. */
static size_t run_across(const tg_worker *w, const plan *pl, size_t i, size_t end)
{
    part t;
    end = pl->cut[0].few ? end : i + 1;
    for (int k = 0; k < pl->job->n_products; k++) {
        t = part_of(w, pl, k, i, end);
        run_part(&t, &pl->cut[k]);
    }
    pl->job->then(pl->job->arg, row_of(&pl->cut[0], i), t.x.n, t.first, t.n_out);
    return end;
}

/* Part i of its product, and those up to `end` that follow over the same rows. Returns the part behind. */
static size_t run_within(const tg_worker *w, const plan *pl, size_t i, size_t end)
{
    int k = product_of(pl, i);
    const size_t rows = rows_end(&pl->cut[k], i);
    end = end < rows ? end : rows;
    const part t = part_of(w, pl, k, i, end);
    run_part(&t, &pl->cut[k]);
    return end;
}

/* How many parts a thread has fetched ahead where the weights are what takes the time. */
static size_t parts_ahead(const plan *pl)
{
    const tg_matrix *m = pl->job->product[0].w;
    const size_t n = pl->job->then ? (size_t)pl->job->n_products : 1;
    const size_t bytes = (size_t)pl->cut[0].out * m->row_bytes * n;
    return pl->cut[0].few ? (ahead_for(pl, 0) + bytes - 1) / bytes : 0;
}

void tg_matmul(const tg_worker *w, const tg_matmul_job *job, tg_matmul_mode mode, const tg_matmul_job *next)
{
    plan mine, after = {0};
    make_plan(&mine, w, job, mode);
    if (next)
        make_plan(&after, w, next, mode);
    mine.behind = share_start(&after);
    const size_t leave = parts_ahead(&mine);
    size_t i, end;
    while (tg_take_run(w, mine.n_parts, leave, &i, &end))
        while (i < end)
            i = job->then ? run_across(w, &mine, i, end) : run_within(w, &mine, i, end);
    fetch_while_waiting(w, &after, ahead_for(&mine, job->n_products - 1));
}

void tg_matmul_fetch(const tg_worker *w, const tg_matmul_job *next, tg_matmul_mode mode)
{
    plan p;
    make_plan(&p, w, next, mode);
    fetch_while_waiting(w, &p, 0);
}
