/* body_matmul.c - integer and float products; compiled once per instruction-set level.
 *
 * The integer product works on panels of 16 weight rows, one in each lane, so that no sum across lanes
 * is ever needed. A block of a panel is taken from memory into small codes that the dot-product instructions
 * take (16 rows x 4 bytes a vector). Few rows of activations meet it there (fused.h); for many, panels are
 * unpacked to the first-level cache once, and meet them here. One row of activations or 512 is the same
 * arithmetic (form.h). */
#include <float.h>

#include "kernel/form.h"

/* Rows of activations that meet two panels together: as many as there are registers for. */
enum { TILE_ROWS = TG_ISA_LEVEL == TG_ISA_avx512 ? 6 : 2, TILE_ROWS_MOST = 6 };

/* ---- integer products ------------------------------------------------------------------------ */

/* R rows of activations, a constant, from row r0 on, against TG_PANELS unpacked panels. */
VEC_MANY void tile(const enum form form, const int R, const tg_panel_block *panels, const uint8_t *ahead, size_t step,
                   const tg_q8 *x, int r0, int n_blocks, const tg_product *p, int first_out, int n_valid)
{
    const int chain = has_halves(form) ? 4 : 8; /* vectors of codes under one scale */
    const int run = vi_dot_run(largest(form)) < chain ? vi_dot_run(largest(form)) : chain;
    vf acc[TILE_ROWS_MOST][TG_PANELS];
    for (int r = 0; r < R; r++)
        for (int i = 0; i < TG_PANELS; i++)
            acc[r][i] = vf_zero();
    x += (size_t)r0 * (size_t)n_blocks;
    for (int b = 0; b < n_blocks; b++, x++, panels++, ahead += step) {
        const tg_panel_block *w[TG_PANELS] = {panels, panels + n_blocks};
        tg_fetch_lines(ahead, step);
        for (int h = 0; h < 8 / chain; h++) {
            vi sum[TILE_ROWS_MOST][TG_PANELS];
            for (int r = 0; r < R; r++)
                for (int i = 0; i < TG_PANELS; i++)
                    sum[r][i] = without_offset(form, x + (size_t)r * (size_t)n_blocks, h);
            for (int j = h * chain; j < (h + 1) * chain; j += run) {
                vi code[TG_PANELS][8];
                for (int i = 0; i < TG_PANELS; i++)
                    for (int k = 0; k < run; k++)
                        code[i][k] = vi_load(w[i]->code[j + k]);
                for (int r = 0; r < R; r++)
                    for (int i = 0; i < TG_PANELS; i++)
                        sum[r][i] = vi_dot(sum[r][i], code[i], x[(size_t)r * (size_t)n_blocks].q + 4 * j, run,
                                           largest(form));
            }
            for (int i = 0; i < TG_PANELS; i++) {
                vf scale = vf_load(w[i]->scale[h]), min = has_min(form) ? vf_load(w[i]->min[h]) : scale;
                for (int r = 0; r < R; r++)
                    acc[r][i] = add_block(form, acc[r][i], sum[r][i], scale, min,
                                          x + (size_t)r * (size_t)n_blocks, h);
            }
        }
    }
    for (int r = 0; r < R; r++)
        for (int i = 0; i < TG_PANELS; i++)
            put(p, r0 + r, first_out + i * TG_PANEL, n_valid - i * TG_PANEL, acc[r][i]);
}

/* A function for each number of rows, so that each has the registers to itself. */
#define TILE(form, R)                                                                                                \
    static __attribute__((noinline)) void tile_##form##_##R(const tg_panel_block *panels, const uint8_t *ahead,      \
                                                            size_t step, const tg_q8 *x, int r0, int n_blocks,       \
                                                            const tg_product *p, int first_out, int n_valid)         \
    {                                                                                                                \
        tile(form, R, panels, ahead, step, x, r0, n_blocks, p, first_out, n_valid);                                  \
    }
#define TILES(form) TILE(form, 6) TILE(form, 4) TILE(form, 2) TILE(form, 1)
#define PANELS(form)                                                                                                 \
    static void panels_##form(const tg_panel_block *panels, const uint8_t *ahead, size_t step, const tg_q8 *x,       \
                              int n, int n_blocks, const tg_product *p, int first_out, int n_valid)                  \
    {                                                                                                                \
        for (int r = 0, rows; r < n; r += rows, step = 0) {                                                          \
            rows = n - r >= TILE_ROWS ? TILE_ROWS : n - r >= 4 ? 4 : n - r >= 2 ? 2 : 1;                             \
            (rows == 6   ? tile_##form##_6                                                                           \
             : rows == 4 ? tile_##form##_4                                                                           \
             : rows == 2 ? tile_##form##_2                                                                           \
                         : tile_##form##_1)(panels, ahead, step, x, r, n_blocks, p, first_out, n_valid);             \
        }                                                                                                            \
    }
TILES(LESS8)
PANELS(LESS8)
TILES(LESS16)
PANELS(LESS16)
TILES(LESS128)
PANELS(LESS128)
TILES(LESS32_HALVES)
PANELS(LESS32_HALVES)
TILES(MIN)
PANELS(MIN)
TILES(MIN_HALVES)
PANELS(MIN_HALVES)

/* ---- float products -------------------------------------------------------------------------- */

/* W weight rows against R rows of activations; lane i sums the columns k with k mod 16 = i. */
VEC void dot_tile(const float *const w[4], const int W, const uint8_t *ahead, size_t step, const float *x,
                  int r0, const int R, int n_in, const tg_product *p, int first_out)
{
    vf acc[4][4];
    for (int i = 0; i < W; i++)
        for (int r = 0; r < R; r++)
            acc[i][r] = vf_zero();
    const float *a = x + (size_t)r0 * (size_t)n_in;
    int k = 0;
    for (; k + 16 <= n_in; k += 16, ahead += step) {
        vf v[4];
        tg_fetch_twice(ahead, step, TG_FETCH_NEARER);
        for (int r = 0; r < R; r++)
            v[r] = vf_load(a + (size_t)r * (size_t)n_in + k);
        for (int i = 0; i < W; i++) {
            vf wk = vf_load(w[i] + k);
            for (int r = 0; r < R; r++)
                acc[i][r] = vf_fma(wk, v[r], acc[i][r]);
        }
    }
    if (k < n_in) {
        for (int i = 0; i < W; i++)
            for (int r = 0; r < R; r++)
                acc[i][r] = vf_fma(vf_load_n(w[i] + k, n_in - k),
                                   vf_load_n(a + (size_t)r * (size_t)n_in + k, n_in - k), acc[i][r]);
    }
    for (int i = 0; i < W; i++)
        for (int r = 0; r < R; r++) {
            float v = vf_sum(acc[i][r]);
            float *out = p->out + (size_t)(r0 + r) * p->out_stride + first_out + i;
            if (p->w->bias)
                v += p->w->bias[first_out + i];
            *out = p->add ? *out + v : v;
        }
}

static void dot(const float *const w[4], int n_w, const uint8_t *ahead, size_t step, const float *x, int n,
                int n_in, const tg_product *p, int first_out)
{
    enum { R_MAX = TG_ISA_LEVEL == TG_ISA_avx512 ? 4 : 2 };
    if (n_w == 4) {
        int r = 0;
        for (; r + R_MAX <= n; r += R_MAX, step = 0)
            dot_tile(w, 4, ahead, step, x, r, R_MAX, n_in, p, first_out);
        for (; r < n; r++, step = 0)
            dot_tile(w, 4, ahead, step, x, r, 1, n_in, p, first_out);
        return;
    }
    for (int i = 0; i < n_w; i++)
        for (int r = 0; r < n; r++)
            dot_tile(w + i, 1, ahead, 0, x, r, 1, n_in, p, first_out + i);
}

/* ---- activations ------------------------------------------------------------------------------ */

static void quantize(const float *x, int n, tg_q8 *out)
{
    for (int b = 0; b < n / 32; b++, x += 32, out++) {
        vf lo = vf_load(x), hi = vf_load(x + 16), top = vf_set1(FLT_MAX);
        float amax = vf_hmax(vf_max(vf_abs(lo), vf_abs(hi)));
        /* what is not finite would get lost in the maximum, or in the codes */
        bool finite = !(vf_not_le(vf_abs(lo), top) | vf_not_le(vf_abs(hi), top));
        float inverse = amax > 1e-30f ? 127.0f / amax : 0.0f;
        out->d = !finite ? NAN : amax > 1e-30f ? amax / 127.0f : 0.0f;
        vi_store_s8(out->q, vi_from_float(vf_mul(lo, vf_set1(inverse))));
        vi_store_s8(out->q + 16, vi_from_float(vf_mul(hi, vf_set1(inverse))));
        int32_t sum[2];
        for (int h = 0; h < 2; h++) {
            sum[h] = vi_sum_s8(out->q + 16 * h);
            out->less32[h] = -32 * sum[h];
        }
        out->d_sum = out->d * (float)(sum[0] + sum[1]);
        out->less8 = -8 * (sum[0] + sum[1]);
        out->less128 = -128 * (sum[0] + sum[1]);
    }
}

#define PANELS_ROW(type, name, columns, group, form) [TG_##type] = panels_##form,

extern const tg_matmul_kernels TG_ISA_SYMBOL(tg_matmul_kernels);
const tg_matmul_kernels TG_ISA_SYMBOL(tg_matmul_kernels) = {
    .panels = {EACH_TYPE(PANELS_ROW)},
    .dot = dot,
    .quantize = quantize,
};
