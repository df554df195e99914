/* matmul.c - how a product is cut into units of work, and which kernel does a unit. */
#include "kernel/matmul.h"

#include <string.h>

#include "base/memory.h"
#include "kernel/blas.h"
#include "kernel/isa.h"

TG_ISA_DECLARE(tg_matmul_kernels, tg_matmul_kernels);

enum {
    BLAS_ROWS_MIN = 64, /* fewer rows never go to BLAS */
    BLAS_ROWS = 128,    /* rows and outputs of one call: parts cut by us, at fixed sizes */
    BLAS_OUT = 64,
};

static const tg_matmul_kernels *kernels(void)
{
    return TG_ISA_PICK(tg_matmul_kernels);
}

bool tg_matmul_wants_q8(const tg_matrix *w, tg_matmul_mode mode)
{
    return w->data && !mode.precise && w->type->block > 1;
}

void tg_quantize_row(const float *x, int n, tg_q8 *out)
{
    kernels()->quantize(x, n, out);
}

static void row_to_f32(const tg_matmul_kernels *k, const tg_dtype *type, const void *row, float *out,
                       int n)
{
    void (*decode)(const void *, float *, size_t) = k->to_f32[type->type];
    (decode ? decode : type->to_f32)(row, out, (size_t)n);
}

void tg_matrix_row(const tg_matrix *w, int i, float *out)
{
    row_to_f32(kernels(), w->type, w->data + (size_t)i * w->row_bytes, out, w->n_in);
}

size_t tg_matmul_scratch_bytes(int n_in_max)
{
    size_t n = (size_t)n_in_max;
    size_t panel = (n / 32 + 1) * (TG_PANELS * sizeof(tg_panel_block) + (size_t)TG_PANEL * 34);
    size_t rows = 4 * n * sizeof(float);
    size_t blas = (BLAS_OUT * n + (size_t)BLAS_ROWS * BLAS_OUT) * sizeof(float);
    size_t most = panel > rows ? panel : rows;
    return (most > blas ? most : blas) + 64;
}

/* ---- parts of a product ----------------------------------------------------------------------- */

/* Rows row .. row + n_rows - 1 of the batch, outputs first .. first + n_out - 1. */
typedef struct part {
    const tg_worker *w;
    const tg_rows *x;
    const tg_product *p;
    int row, n_rows, first, n_out;
} part;

/* n of the 16 rows of a panel exist: the others become zeros in a copy. */
static const uint8_t *whole_panel(const tg_matrix *m, int first, int n, uint8_t *copy)
{
    const uint8_t *rows = m->data + (size_t)first * m->row_bytes;
    if (n >= TG_PANEL)
        return rows;
    size_t bytes = (size_t)(n > 0 ? n : 0) * m->row_bytes;
    memset(copy + bytes, 0, TG_PANEL * m->row_bytes - bytes);
    return bytes ? memcpy(copy, rows, bytes) : copy;
}

/* All rows of activations; n_out is a multiple of the panels, or the matrix ends there. */
static void q8_part(const part *t)
{
    const tg_matmul_kernels *k = kernels();
    const tg_matrix *m = t->p->w;
    const tg_type type = m->type->type;
    int n_blocks = m->n_in / 32, end = t->first + t->n_out;
    tg_panel_block *panels = t->w->scratch;
    uint8_t *copy = (uint8_t *)(panels + (size_t)TG_PANELS * (size_t)n_blocks);
    if (t->x->n <= TG_FUSED_ROWS) {
        for (int o = t->first; o < end; o += TG_PANEL)
            k->fused[type](whole_panel(m, o, end - o, copy), m->row_bytes, t->x->q, t->x->n, n_blocks, t->p, o,
                           end - o);
        return;
    }
    for (int o = t->first; o < end; o += TG_PANELS * TG_PANEL) {
        for (int i = 0; i < TG_PANELS; i++)
            k->unpack[type](whole_panel(m, o + i * TG_PANEL, end - o - i * TG_PANEL, copy), m->row_bytes,
                            n_blocks, panels + (size_t)i * (size_t)n_blocks);
        k->panels[type](panels, t->x->q, t->x->n, n_blocks, t->p, o, end - o);
    }
}

/* Four float32 weight rows at a time, decoded where they are not float32. */
static void float_part(const part *t)
{
    const tg_matmul_kernels *k = kernels();
    const tg_matrix *m = t->p->w;
    int end = t->first + t->n_out;
    for (int o = t->first; o < end; o += 4) {
        const float *rows[4];
        int n = end - o < 4 ? end - o : 4;
        for (int i = 0; i < n; i++) {
            const uint8_t *src = m->data + (size_t)(o + i) * m->row_bytes;
            if (m->type->type == TG_F32 && (uintptr_t)src % sizeof(float) == 0) {
                rows[i] = (const float *)(const void *)src;
            } else {
                float *dst = (float *)t->w->scratch + (size_t)i * (size_t)m->n_in;
                row_to_f32(k, m->type, src, dst, m->n_in);
                rows[i] = dst;
            }
        }
        k->dot(rows, n, t->x->f, t->x->n, m->n_in, t->p, o);
    }
}

/* BLAS_ROWS and BLAS_OUT at most. */
static void blas_part(const part *t)
{
    const tg_matmul_kernels *k = kernels();
    const tg_matrix *m = t->p->w;
    size_t n_in = (size_t)m->n_in;
    float *c = t->w->scratch, *decoded = c + (size_t)BLAS_ROWS * BLAS_OUT;
    const float *weights = decoded;
    const uint8_t *src = m->data + (size_t)t->first * m->row_bytes;
    if (m->type->type == TG_F32 && (uintptr_t)src % sizeof(float) == 0)
        weights = (const float *)(const void *)src;
    else
        for (int i = 0; i < t->n_out; i++)
            row_to_f32(k, m->type, src + (size_t)i * m->row_bytes, decoded + (size_t)i * n_in, m->n_in);
    tg_blas_gemm(t->n_rows, t->n_out, m->n_in, t->x->f + (size_t)t->row * n_in, n_in, weights, n_in, c, BLAS_OUT);
    for (int r = 0; r < t->n_rows; r++) {
        float *out = t->p->out + (size_t)(t->row + r) * t->p->out_stride + t->first;
        const float *v = c + (size_t)r * BLAS_OUT;
        for (int i = 0; i < t->n_out; i++) {
            float y = m->bias ? v[i] + m->bias[t->first + i] : v[i];
            out[i] = t->p->add ? out[i] + y : y;
        }
    }
}

/* ---- all parts of some products ----------------------------------------------------------------- */

enum way { Q8, FLOAT, BLAS };

static enum way way_of(const tg_rows *x, const tg_product *p, tg_matmul_mode mode)
{
    if (tg_matmul_wants_q8(p->w, mode))
        return Q8;
    return mode.blas && x->n >= BLAS_ROWS_MIN ? BLAS : FLOAT;
}

/* How a product is cut: parts of so many outputs, each by so many rows. */
typedef struct cut {
    int out, rows;
    size_t row_parts, n_parts;
} cut;

static size_t divide_up(int n, int by)
{
    return (size_t)((n + by - 1) / by);
}

static cut cut_by(const tg_rows *x, int n_out, int out, int rows)
{
    size_t row_parts = divide_up(x->n, rows);
    return (cut){out, rows, row_parts, divide_up(n_out, out) * row_parts};
}

static cut cut_of(const tg_rows *x, const tg_product *p, enum way way)
{
    if (way == BLAS)
        return cut_by(x, p->w->n_out, BLAS_OUT, BLAS_ROWS);
    bool many = way == Q8 && x->n > TG_FUSED_ROWS;
    return cut_by(x, p->w->n_out, many ? TG_PANELS * TG_PANEL : TG_PANEL, x->n);
}

static int lower(int a, int b)
{
    return a < b ? a : b;
}

static part part_of(const tg_worker *w, const tg_rows *x, const tg_product *p, const cut *c, size_t i)
{
    int row = (int)(i % c->row_parts) * c->rows, first = (int)(i / c->row_parts) * c->out;
    return (part){w, x, p, row, lower(c->rows, x->n - row), first, lower(c->out, p->w->n_out - first)};
}

static void run_part(const part *t, enum way way)
{
    if (way == Q8)
        q8_part(t);
    else if (way == FLOAT)
        float_part(t);
    else
        blas_part(t);
}

void tg_matmul(const tg_worker *w, const tg_rows *x, const tg_product *products, int n_products,
               tg_matmul_mode mode)
{
    enum { PRODUCTS_MAX = 4 };
    enum way way[PRODUCTS_MAX];
    cut cuts[PRODUCTS_MAX];
    size_t end[PRODUCTS_MAX], n_parts = 0;
    for (int i = 0; i < n_products; i++) {
        way[i] = way_of(x, &products[i], mode);
        cuts[i] = cut_of(x, &products[i], way[i]);
        end[i] = n_parts += cuts[i].n_parts;
    }
    for (size_t unit; (unit = tg_take(w, n_parts)) < n_parts;) {
        int i = 0;
        while (unit >= end[i])
            i++;
        part t = part_of(w, x, &products[i], &cuts[i], i ? unit - end[i - 1] : unit);
        run_part(&t, way[i]);
    }
}

void tg_matmul_together(const tg_worker *w, const tg_rows *x, const tg_product *products, int n_products,
                        tg_matmul_mode mode, tg_matmul_then then, void *arg)
{
    bool blas = true;
    for (int i = 0; i < n_products; i++)
        blas = blas && way_of(x, &products[i], mode) == BLAS;
    const cut c = blas ? cut_of(x, products, BLAS) : cut_by(x, products->w->n_out, 32, x->n);
    for (size_t unit; (unit = tg_take(w, c.n_parts)) < c.n_parts;) {
        part t = part_of(w, x, products, &c, unit);
        for (int i = 0; i < n_products; i++) {
            enum way way = way_of(x, &products[i], mode);
            t.p = &products[i];
            run_part(&t, way == BLAS && !blas ? FLOAT : way);
        }
        then(arg, t.row, t.n_rows, t.first, t.n_out);
    }
}
