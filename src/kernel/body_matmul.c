/* body_matmul.c - integer and float products; compiled once per instruction-set level.
 *
 * The integer product works on panels of 16 weight rows, one in each lane, so that no sum across lanes
 * is ever needed. A block of a panel is taken from the file's own layout into small codes that the
 * dot-product instructions take (16 rows x 4 bytes a vector: a transposition in registers). Few rows of
 * activations meet it there; for many, panels are unpacked to the first-level cache once. One row of
 * activations or 512 is the same arithmetic. */
#include "kernel/matmul.h"
#include "kernel/take.h"
#include "kernel/vec.h"

/* Rows of activations that meet two panels together: as many as there are registers for. */
enum { TILE_ROWS = TG_ISA_LEVEL == TG_ISA_avx512 ? 6 : 2, TILE_ROWS_MOST = 6 };

/* ---- panels of unpacked blocks ------------------------------------------------------------------ */

/* Asks for what will be read next. A walk over 16 rows at once is none that the hardware foresees. */
VEC void fetch(const uint8_t *p, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i += 64)
        __builtin_prefetch(p + i);
}

/* n blocks, a constant: 1 or as many as whole_of says. */
VEC_MANY void unpack_some(const int type, const int n, const uint8_t *p, const uint8_t *ahead, size_t stride,
                     tg_panel_block *out)
{
    const enum form form = shape_of[type].form;
    const int group = n < shape_of[type].group ? n : shape_of[type].group;
    kept k;
    take_head(type, p, stride, &k);
    for (int g = 0; g < n / group; g++)
        VEC_UNROLL for (int i = 0; i < group; i++, out++) {
            taken w;
            fetch(ahead + bytes_of(type, g * group + i, TG_PANEL), bytes_of(type, 1, TG_PANEL));
            take(type, g, i, group, p, stride, &k, &w);
            for (int j = 0; j < 8; j++)
                vi_store(out->code[j], w.code[j]);
            for (int h = 0; h <= has_halves(form); h++) {
                vf_store(out->scale[h], w.scale[h]);
                if (has_min(form))
                    vf_store(out->min[h], w.min[h]);
            }
        }
}

VEC_MANY void unpack(const int type, const uint8_t *rows, size_t row_bytes, const uint8_t *ahead, int n_blocks,
                tg_panel_block *out)
{
    const int n = whole_of(type);
    for (; n_blocks >= n; n_blocks -= n, out += n) {
        unpack_some(type, n, rows, ahead, row_bytes, out);
        rows += bytes_of(type, n, 1);
        ahead += bytes_of(type, n, TG_PANEL);
    }
    if (n == 4)
        for (; n_blocks; n_blocks--, out++) {
            unpack_some(type, 1, rows, ahead, row_bytes, out);
            rows += bytes_of(type, 1, 1);
            ahead += bytes_of(type, 1, TG_PANEL);
        }
}

/* ---- integer products ------------------------------------------------------------------------ */

VEC void put(const tg_product *p, int r, int first_out, int n_valid, vf v)
{
    float *out = p->out + (size_t)r * p->out_stride + first_out;
    if (n_valid >= 16) {
        if (p->w->bias)
            v = vf_add(v, vf_load(p->w->bias + first_out));
        vf_store(out, p->add ? vf_add(vf_load(out), v) : v);
    } else if (n_valid > 0) {
        if (p->w->bias)
            v = vf_add(v, vf_load_n(p->w->bias + first_out, n_valid));
        vf_store_n(out, p->add ? vf_add(vf_load_n(out, n_valid), v) : v, n_valid);
    }
}

/* What the offset of the codes brings in too much: half h of the columns, or all. */
VEC vi without_offset(const enum form form, const tg_q8 *a, const int h)
{
    switch (form) {
    case LESS8:
        return vi_all(&a->less8);
    case LESS16:
        return vi_shl(vi_all(&a->less8), 1);
    case LESS128:
        return vi_all(&a->less128);
    case LESS32_HALVES:
        return vi_all(&a->less32[h]);
    default:
        return vi_set1(0);
    }
}

/* The sum of the activations that the minimum of half h, or of all, meets. */
VEC vf sum_of(const enum form form, const tg_q8 *a, const int h)
{
    return vf_set1(form == MIN ? a->d_sum : a->d * (float)a->less32[h] * -0.03125f);
}

/* acc = fma(scale * d, integer sum, acc), then acc = fma(min, d * sum of q, acc): the one chain over the
 * blocks that all products have. */
VEC vf add_block(const enum form form, vf acc, vi sum, vf scale, vf min, const tg_q8 *a, const int h)
{
    acc = vf_fma(vf_mul(scale, vf_set1(a->d)), vf_from_int(sum), acc);
    return has_min(form) ? vf_fma(min, sum_of(form, a, h), acc) : acc;
}

/* n blocks of 16 weight rows, as in unpack_some, against R rows of activations, a constant. */
VEC_MANY void fused_some(const int type, const int R, const int n, const uint8_t *p, const uint8_t *ahead,
                    size_t stride, const tg_q8 *x, int n_blocks, vf acc[TG_FUSED_ROWS])
{
    const enum form form = shape_of[type].form;
    const int group = n < shape_of[type].group ? n : shape_of[type].group;
    kept k;
    take_head(type, p, stride, &k);
    for (int g = 0; g < n / group; g++)
        VEC_UNROLL for (int i = 0; i < group; i++, x++) {
            taken w;
            fetch(ahead + bytes_of(type, g * group + i, TG_PANEL), bytes_of(type, 1, TG_PANEL));
            take(type, g, i, group, p, stride, &k, &w);
            for (int r = 0; r < R; r++) {
                const tg_q8 *a = x + (size_t)r * (size_t)n_blocks;
                /* two chains, since one of eight would wait for itself; integers add in any order */
                vi sum[2] = {without_offset(form, a, 0),
                             has_halves(form) ? without_offset(form, a, 1) : vi_set1(0)};
                for (int h = 0; h < 2; h++)
                    sum[h] = vi_dot(sum[h], w.code + 4 * h, a->q + 16 * h, 4, largest(form));
                if (!has_halves(form))
                    sum[0] = vi_add(sum[0], sum[1]);
                for (int h = 0; h <= has_halves(form); h++)
                    acc[r] = add_block(form, acc[r], sum[h], w.scale[h], w.min[h], a, h);
            }
        }
}

/* R rows of activations, a constant, against 16 weight rows in the file's layout. */
VEC_MANY void fused(const int type, const int R, const uint8_t *rows, size_t row_bytes, const uint8_t *ahead,
               const tg_q8 *x, int n_blocks, const tg_product *p, int first_out, int n_valid)
{
    const int n = whole_of(type);
    int b = 0;
    vf acc[TG_FUSED_ROWS];
    for (int r = 0; r < R; r++)
        acc[r] = vf_zero();
    for (; b + n <= n_blocks; b += n) {
        fused_some(type, R, n, rows, ahead, row_bytes, x + b, n_blocks, acc);
        rows += bytes_of(type, n, 1);
        ahead += bytes_of(type, n, TG_PANEL);
    }
    if (n == 4)
        for (; b < n_blocks; b++) {
            fused_some(type, R, 1, rows, ahead, row_bytes, x + b, n_blocks, acc);
            rows += bytes_of(type, 1, 1);
            ahead += bytes_of(type, 1, TG_PANEL);
        }
    for (int r = 0; r < R; r++)
        put(p, r, first_out, n_valid, acc[r]);
}

/* R rows of activations, a constant, from row r0 on, against TG_PANELS unpacked panels. */
VEC_MANY void tile(const enum form form, const int R, const tg_panel_block *panels, const tg_q8 *x, int r0,
              int n_blocks, const tg_product *p, int first_out, int n_valid)
{
    const int chain = has_halves(form) ? 4 : 8; /* vectors of codes under one scale */
    const int run = vi_dot_run(largest(form)) < chain ? vi_dot_run(largest(form)) : chain;
    vf acc[TILE_ROWS_MOST][TG_PANELS];
    for (int r = 0; r < R; r++)
        for (int i = 0; i < TG_PANELS; i++)
            acc[r][i] = vf_zero();
    x += (size_t)r0 * (size_t)n_blocks;
    for (int b = 0; b < n_blocks; b++, x++, panels++) {
        const tg_panel_block *w[TG_PANELS] = {panels, panels + n_blocks};
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
#define TILE(form, R)                                                                                        \
    static __attribute__((noinline)) void tile_##form##_##R(const tg_panel_block *panels, const tg_q8 *x,    \
                                                            int r0, int n_blocks, const tg_product *p,       \
                                                            int first_out, int n_valid)                      \
    {                                                                                                        \
        tile(form, R, panels, x, r0, n_blocks, p, first_out, n_valid);                                       \
    }
#define PANELS(form)                                                                                         \
    TILE(form, 6) TILE(form, 4) TILE(form, 2) TILE(form, 1)                                                  \
    static void panels_##form(const tg_panel_block *panels, const tg_q8 *x, int n, int n_blocks,             \
                              const tg_product *p, int first_out, int n_valid)                               \
    {                                                                                                        \
        int r = 0;                                                                                           \
        for (; n - r >= TILE_ROWS; r += TILE_ROWS)                                                           \
            (TILE_ROWS == 6 ? tile_##form##_6 : tile_##form##_2)(panels, x, r, n_blocks, p, first_out, n_valid); \
        for (; n - r >= 4; r += 4)                                                                           \
            tile_##form##_4(panels, x, r, n_blocks, p, first_out, n_valid);                                  \
        for (; n - r >= 2; r += 2)                                                                           \
            tile_##form##_2(panels, x, r, n_blocks, p, first_out, n_valid);                                  \
        for (; n - r >= 1; r += 1)                                                                           \
            tile_##form##_1(panels, x, r, n_blocks, p, first_out, n_valid);                                  \
    }
PANELS(LESS8)
PANELS(LESS16)
PANELS(LESS128)
PANELS(LESS32_HALVES)
PANELS(MIN)
PANELS(MIN_HALVES)

#define FUSED(type, R)                                                                                       \
    static __attribute__((noinline)) void fused_##type##_##R(                                                \
        const uint8_t *rows, size_t row_bytes, const uint8_t *ahead, const tg_q8 *x, int n_blocks,           \
        const tg_product *p, int first_out, int n_valid)                                                     \
    {                                                                                                        \
        fused(TG_##type, R, rows, row_bytes, ahead, x, n_blocks, p, first_out, n_valid);                     \
    }
#define TYPE(type, name, columns, group, form)                                                               \
    FUSED(type, 1) FUSED(type, 2) FUSED(type, 3) FUSED(type, 4)                                              \
    static void fused_##type(const uint8_t *rows, size_t row_bytes, const uint8_t *ahead, const tg_q8 *x,    \
                             int n, int n_blocks, const tg_product *p, int first_out, int n_valid)           \
    {                                                                                                        \
        (n == 1   ? fused_##type##_1                                                                         \
         : n == 2 ? fused_##type##_2                                                                         \
         : n == 3 ? fused_##type##_3                                                                         \
                  : fused_##type##_4)(rows, row_bytes, ahead, x, n_blocks, p, first_out, n_valid);           \
    }                                                                                                        \
    static void unpack_##type(const uint8_t *rows, size_t row_bytes, const uint8_t *ahead, int n_blocks,     \
                              tg_panel_block *out)                                                           \
    {                                                                                                        \
        unpack(TG_##type, rows, row_bytes, ahead, n_blocks, out);                                            \
    }
EACH_TYPE(TYPE)

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
        fetch(ahead, step);
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
        vf lo = vf_load(x), hi = vf_load(x + 16);
        float amax = vf_hmax(vf_max(vf_abs(lo), vf_abs(hi)));
        /* 0 * x is 0, or NaN for what is not finite: it would get lost in the maximum */
        float taint = vf_sum(vf_fma(lo, vf_zero(), vf_mul(hi, vf_zero())));
        float inverse = amax > 1e-30f ? 127.0f / amax : 0.0f;
        out->d = (amax > 1e-30f ? amax / 127.0f : 0.0f) + taint;
        vi qlo = vi_from_float(vf_mul(lo, vf_set1(inverse)));
        vi qhi = vi_from_float(vf_mul(hi, vf_set1(inverse)));
        vi_store_s8(out->q, qlo);
        vi_store_s8(out->q + 16, qhi);
        const float exact[2] = {vf_sum(vf_from_int(qlo)), vf_sum(vf_from_int(qhi))}; /* whole and small */
        int32_t sum[2];
        for (int h = 0; h < 2; h++) {
            sum[h] = taint == 0 ? (int32_t)exact[h] : 0; /* of a NaN the codes mean nothing, and their sum is huge */
            out->less32[h] = -32 * sum[h];
        }
        out->d_sum = out->d * (float)(sum[0] + sum[1]);
        out->less8 = -8 * (sum[0] + sum[1]);
        out->less128 = -128 * (sum[0] + sum[1]);
    }
}

#define FUSED_ROW(type, name, columns, group, form)  [TG_##type] = fused_##type,
#define UNPACK_ROW(type, name, columns, group, form) [TG_##type] = unpack_##type,
#define PANELS_ROW(type, name, columns, group, form) [TG_##type] = panels_##form,

extern const tg_matmul_kernels TG_ISA_SYMBOL(tg_matmul_kernels);
const tg_matmul_kernels TG_ISA_SYMBOL(tg_matmul_kernels) = {
    .fused = {EACH_TYPE(FUSED_ROW)},
    .unpack = {EACH_TYPE(UNPACK_ROW)},
    .panels = {EACH_TYPE(PANELS_ROW)},
    .dot = dot,
    .quantize = quantize,
};
