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

/* ---- one unit of work ------------------------------------------------------------------------- */

/* n_valid of the 16 rows of a panel exist: the others become zeros in a copy. */
static const uint8_t *whole_panel(const tg_matrix *m, int first, int n_valid, uint8_t *copy)
{
    const uint8_t *rows = m->data + (size_t)first * m->row_bytes;
    if (n_valid >= TG_PANEL)
        return rows;
    size_t n = (size_t)(n_valid > 0 ? n_valid : 0) * m->row_bytes;
    memset(copy + n, 0, TG_PANEL * m->row_bytes - n);
    return n ? memcpy(copy, rows, n) : copy;
}

static void panel_unit(const tg_worker *w, const tg_rows *x, const tg_product *p, int first, int n_panels)
{
    const tg_matmul_kernels *k = kernels();
    const tg_matrix *m = p->w;
    int n_valid = m->n_out - first, n_blocks = m->n_in / 32;
    tg_panel_block *panels = w->scratch;
    uint8_t *copy = (uint8_t *)(panels + (size_t)TG_PANELS * (size_t)n_blocks);
    if (n_panels == 1) {
        k->fused[m->type->type](whole_panel(m, first, n_valid, copy), m->row_bytes, x->q, x->n, n_blocks, p,
                                first, n_valid);
        return;
    }
    for (int i = 0; i < TG_PANELS; i++)
        k->unpack[m->type->type](whole_panel(m, first + i * TG_PANEL, n_valid - i * TG_PANEL, copy),
                                 m->row_bytes, n_blocks, panels + (size_t)i * (size_t)n_blocks);
    k->panels[m->type->type](panels, x->q, x->n, n_blocks, p, first, n_valid);
}

/* Four float32 weight rows at a time, decoded where they are not float32. */
static void float_unit(const tg_worker *w, const tg_rows *x, const tg_product *p, int first)
{
    const tg_matmul_kernels *k = kernels();
    const tg_matrix *m = p->w;
    int end = m->n_out - first < TG_PANEL ? m->n_out : first + TG_PANEL;
    for (int o = first; o < end; o += 4) {
        const float *rows[4];
        int n = end - o < 4 ? end - o : 4;
        for (int i = 0; i < n; i++) {
            const uint8_t *src = m->data + (size_t)(o + i) * m->row_bytes;
            if (m->type->type == TG_F32 && (uintptr_t)src % sizeof(float) == 0) {
                rows[i] = (const float *)(const void *)src;
            } else {
                float *dst = (float *)w->scratch + (size_t)i * (size_t)m->n_in;
                row_to_f32(k, m->type, src, dst, m->n_in);
                rows[i] = dst;
            }
        }
        k->dot(rows, n, x->f, x->n, m->n_in, p, o);
    }
}

static void blas_unit(const tg_worker *w, const tg_rows *x, const tg_product *p, int first_row,
                      int first)
{
    const tg_matmul_kernels *k = kernels();
    const tg_matrix *m = p->w;
    int n = m->n_out - first < BLAS_OUT ? m->n_out - first : BLAS_OUT;
    int rows = x->n - first_row < BLAS_ROWS ? x->n - first_row : BLAS_ROWS;
    float *c = w->scratch, *decoded = c + (size_t)BLAS_ROWS * BLAS_OUT;
    const float *weights = decoded;
    const uint8_t *src = m->data + (size_t)first * m->row_bytes;
    if (m->type->type == TG_F32 && (uintptr_t)src % sizeof(float) == 0)
        weights = (const float *)(const void *)src;
    else
        for (int i = 0; i < n; i++)
            row_to_f32(k, m->type, src + (size_t)i * m->row_bytes, decoded + (size_t)i * (size_t)m->n_in,
                       m->n_in);
    tg_blas_gemm(rows, n, m->n_in, x->f + (size_t)first_row * (size_t)m->n_in, (size_t)m->n_in, weights,
                 (size_t)m->n_in, c, BLAS_OUT);
    for (int r = 0; r < rows; r++) {
        float *out = p->out + (size_t)(first_row + r) * p->out_stride + first;
        const float *v = c + (size_t)r * BLAS_OUT;
        for (int i = 0; i < n; i++) {
            float y = m->bias ? v[i] + m->bias[first + i] : v[i];
            out[i] = p->add ? out[i] + y : y;
        }
    }
}

/* ---- all units of some products ---------------------------------------------------------------- */

static size_t divide_up(int n, int by)
{
    return (size_t)((n + by - 1) / by);
}

static int panels_together(const tg_rows *x)
{
    return x->n <= TG_FUSED_ROWS ? 1 : TG_PANELS;
}

static void run_unit(const tg_worker *w, const tg_rows *x, const tg_product *p, tg_matmul_mode mode,
                     bool blas, size_t unit, size_t row_parts)
{
    if (blas)
        blas_unit(w, x, p, (int)(unit % row_parts) * BLAS_ROWS, (int)(unit / row_parts) * BLAS_OUT);
    else if (tg_matmul_wants_q8(p->w, mode))
        panel_unit(w, x, p, (int)unit * TG_PANEL * panels_together(x), panels_together(x));
    else
        float_unit(w, x, p, (int)unit * TG_PANEL);
}

void tg_matmul(const tg_worker *w, const tg_rows *x, const tg_product *products, int n_products,
               tg_matmul_mode mode)
{
    enum { PRODUCTS_MAX = 4 };
    bool blas[PRODUCTS_MAX];
    size_t end[PRODUCTS_MAX], n_units = 0, row_parts = divide_up(x->n, BLAS_ROWS);
    for (int i = 0; i < n_products; i++) {
        const tg_matrix *m = products[i].w;
        blas[i] = mode.blas && x->n >= BLAS_ROWS_MIN && !tg_matmul_wants_q8(m, mode);
        int n_out = tg_matmul_wants_q8(m, mode) ? TG_PANEL * panels_together(x) : TG_PANEL;
        n_units += blas[i] ? divide_up(m->n_out, BLAS_OUT) * row_parts : divide_up(m->n_out, n_out);
        end[i] = n_units;
    }
    for (size_t unit; (unit = tg_take(w, n_units)) < n_units;) {
        int i = 0;
        while (unit >= end[i])
            i++;
        run_unit(w, x, products + i, mode, blas[i], i ? unit - end[i - 1] : unit, row_parts);
    }
}
