/* body_matmul.c - integer and float products; compiled once per instruction-set level.
 *
 * The integer product works on panels of 16 weight rows, one in each lane, so that no sum across lanes
 * is ever needed. A block of a panel is taken from the file's own layout into small codes that the
 * dot-product instructions take (16 rows x 4 bytes a vector: a transposition in registers). Few rows of
 * activations meet it there; for many, panels are unpacked to the first-level cache once. One row of
 * activations or 512 is the same arithmetic. */
#include "kernel/matmul.h"
#include "kernel/vec.h"

/* Rows of activations that meet two panels together: as many as there are registers for. */
enum { TILE_ROWS = TG_ISA_LEVEL == TG_ISA_avx512 ? 6 : 2, TILE_ROWS_MOST = 6 };

/* ---- blocks of a panel ------------------------------------------------------------------------- */

/* w = scale * (code - offset) + min */
typedef struct block {
    vi code[8]; /* columns 4j .. 4j+3 */
    vf scale, min;
} block;

/* Codes of formats with halves: low halves are columns 0..15, high halves 16..31. */
VEC void halves(const vi raw[4], block *out)
{
    vi mask = vi_set1(0x0f0f0f0f);
    for (int j = 0; j < 4; j++) {
        out->code[j] = vi_and(raw[j], mask);
        out->code[4 + j] = vi_and(vi_shr4(raw[j]), mask);
    }
}

VEC void take_q4_0(const uint8_t *p, size_t stride, block *out)
{
    vi raw[4];
    vi_rows16(p + 2, stride, raw);
    halves(raw, out);
    out->scale = vf_from_low_f16(vi_first16(p, stride));
}

VEC void words_q4_1(const vi word[5], block *out)
{
    halves(word + 1, out);
    out->scale = vf_from_low_f16(word[0]);
    out->min = vf_from_low_f16(vi_shr16(word[0]));
}

VEC void take_q4_1(const uint8_t *p, size_t stride, block *out)
{
    vi word[5] = {vi_first16(p, stride)};
    vi_rows16(p + 4, stride, word + 1);
    words_q4_1(word, out);
}

/* Block i of four, which are five times 16 bytes, so that nothing is loaded twice: i = 0, 1, 2, 3 in turn. */
VEC void take_q4_1_of_4(const int i, const uint8_t *p, size_t stride, vi word[20], block *out)
{
    if (i == 0)
        vi_rows16(p, stride, word);
    vi_rows16(p + 16 * (i + 1), stride, word + 4 * (i + 1));
    words_q4_1(word + 5 * i, out);
}

/* Signed codes become unsigned by adding 128, which the product takes off again. */
VEC void take_q8_0(const uint8_t *p, size_t stride, block *out)
{
    vi flip = vi_set1((int32_t)0x80808080);
    for (size_t half = 0; half < 2; half++) {
        vi raw[4];
        vi_rows16(p + 2 + 16 * half, stride, raw);
        for (int j = 0; j < 4; j++)
            out->code[4 * half + (size_t)j] = vi_xor(raw[j], flip);
    }
    out->scale = vf_from_low_f16(vi_first16(p, stride));
}

/* Blocks of 16 rows that are taken at once; `word` keeps what was loaded of them. */
enum { AT_ONCE = 4, WORDS = 20 };

VEC int at_once(const int type)
{
    return type == TG_Q4_1 ? AT_ONCE : 1;
}

/* Block i of n at p, 1 or at_once(type). */
VEC void take(const int type, const int i, const int n, const uint8_t *p, size_t stride, vi word[WORDS], block *out)
{
    if (type == TG_Q4_0)
        take_q4_0(p, stride, out);
    else if (type == TG_Q8_0)
        take_q8_0(p, stride, out);
    else if (n == 1)
        take_q4_1(p, stride, out);
    else
        take_q4_1_of_4(i, p, stride, word, out);
}

VEC size_t bytes_of(const int type)
{
    return type == TG_Q4_0 ? 18 : type == TG_Q4_1 ? 20 : 34;
}

/* Asks for what will be read next. A walk over 16 rows at once is none that the hardware foresees. */
VEC void fetch(const uint8_t *p, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i += 64)
        __builtin_prefetch(p + i);
}

VEC void unpack_some(const int type, const uint8_t *p, size_t stride, const uint8_t *ahead, const int n,
                     tg_panel_block *out)
{
    vi word[WORDS];
    fetch(ahead, (size_t)n * TG_PANEL * bytes_of(type));
#pragma GCC unroll 4
    for (int i = 0; i < n; i++, out++) {
        block w;
        take(type, i, n, p, stride, word, &w);
        for (int j = 0; j < 8; j++)
            vi_store(out->code[j], w.code[j]);
        vf_store(out->scale, w.scale);
        if (type == TG_Q4_1)
            vf_store(out->min, w.min);
    }
}

VEC void unpack(const int type, const uint8_t *rows, size_t row_bytes, const uint8_t *ahead, int n_blocks,
                tg_panel_block *out)
{
    const size_t size = bytes_of(type), panel_size = TG_PANEL * size;
    int b = 0;
    for (const int n = at_once(type); b + n <= n_blocks; b += n)
        unpack_some(type, rows + (size_t)b * size, row_bytes, ahead + (size_t)b * panel_size, n, out + b);
    for (; b < n_blocks; b++)
        unpack_some(type, rows + (size_t)b * size, row_bytes, ahead + (size_t)b * panel_size, 1, out + b);
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

/* What the codes' offset brings in too much. */
VEC vi without_offset(const int type, const tg_q8 *a)
{
    return type == TG_Q4_1 ? vi_set1(0) : vi_all(type == TG_Q4_0 ? &a->less8 : &a->less128);
}

/* acc = fma(scale * d, integer sum, acc), then acc = fma(min, d * sum of q, acc): the one chain over the
 * blocks that all products have. */
VEC vf add_block(const int type, vf acc, vi sum, vf scale, vf min, const tg_q8 *a)
{
    acc = vf_fma(vf_mul(scale, vf_set1(a->d)), vf_from_int(sum), acc);
    return type == TG_Q4_1 ? vf_fma(min, vf_set1(a->d_sum), acc) : acc;
}

/* n blocks of 16 weight rows against R rows of activations, both constants. */
VEC void fused_blocks(const int type, const int R, const int n, const uint8_t *p, const uint8_t *ahead,
                      size_t stride, const tg_q8 *x, int n_blocks, vf acc[TG_FUSED_ROWS])
{
    vi word[WORDS];
    fetch(ahead, (size_t)n * TG_PANEL * bytes_of(type));
#pragma GCC unroll 4
    for (int i = 0; i < n; i++, x++) {
        block w;
        take(type, i, n, p, stride, word, &w);
        for (int r = 0; r < R; r++) {
            const tg_q8 *a = x + (size_t)r * (size_t)n_blocks;
            /* two chains, since one of eight would wait for itself; integers add in any order */
            vi even = without_offset(type, a), odd = vi_set1(0);
            for (int j = 0; j < 8; j += 2) {
                even = vi_dot4(even, w.code[j], a->q + 4 * j, type != TG_Q8_0);
                odd = vi_dot4(odd, w.code[j + 1], a->q + 4 * j + 4, type != TG_Q8_0);
            }
            acc[r] = add_block(type, acc[r], vi_add(even, odd), w.scale, w.min, a);
        }
    }
}

/* R rows of activations, a constant, against 16 weight rows in the file's layout. */
VEC void fused(const int type, const int R, const uint8_t *rows, size_t row_bytes, const uint8_t *ahead,
               const tg_q8 *x, int n_blocks, const tg_product *p, int first_out, int n_valid)
{
    const size_t size = bytes_of(type), panel_size = TG_PANEL * size;
    vf acc[TG_FUSED_ROWS];
    for (int r = 0; r < R; r++)
        acc[r] = vf_zero();
    int b = 0;
    for (const int n = at_once(type); b + n <= n_blocks; b += n)
        fused_blocks(type, R, n, rows + (size_t)b * size, ahead + (size_t)b * panel_size, row_bytes, x + b,
                     n_blocks, acc);
    for (; b < n_blocks; b++)
        fused_blocks(type, R, 1, rows + (size_t)b * size, ahead + (size_t)b * panel_size, row_bytes, x + b,
                     n_blocks, acc);
    for (int r = 0; r < R; r++)
        put(p, r, first_out, n_valid, acc[r]);
}

/* R rows of activations, a constant, from row r0 on, against TG_PANELS unpacked panels. */
VEC void tile(const int type, const int R, const tg_panel_block *panels, const tg_q8 *x, int r0,
              int n_blocks, const tg_product *p, int first_out, int n_valid)
{
    vf acc[TILE_ROWS_MOST][TG_PANELS];
    for (int r = 0; r < R; r++)
        for (int i = 0; i < TG_PANELS; i++)
            acc[r][i] = vf_zero();
    x += (size_t)r0 * (size_t)n_blocks;
    for (int b = 0; b < n_blocks; b++, x++, panels++) {
        const tg_panel_block *w[TG_PANELS] = {panels, panels + n_blocks};
        vi sum[TILE_ROWS_MOST][TG_PANELS];
        for (int r = 0; r < R; r++)
            for (int i = 0; i < TG_PANELS; i++)
                sum[r][i] = without_offset(type, x + (size_t)r * (size_t)n_blocks);
        for (int j = 0; j < 8; j++) {
            vi code[TG_PANELS];
            for (int i = 0; i < TG_PANELS; i++)
                code[i] = vi_load(w[i]->code[j]);
            for (int r = 0; r < R; r++)
                for (int i = 0; i < TG_PANELS; i++)
                    sum[r][i] = vi_dot4(sum[r][i], code[i], x[(size_t)r * (size_t)n_blocks].q + 4 * j,
                                        type != TG_Q8_0);
        }
        for (int i = 0; i < TG_PANELS; i++) {
            vf scale = vf_load(w[i]->scale), min = type == TG_Q4_1 ? vf_load(w[i]->min) : scale;
            for (int r = 0; r < R; r++)
                acc[r][i] = add_block(type, acc[r][i], sum[r][i], scale, min, x + (size_t)r * (size_t)n_blocks);
        }
    }
    for (int r = 0; r < R; r++)
        for (int i = 0; i < TG_PANELS; i++)
            put(p, r0 + r, first_out + i * TG_PANEL, n_valid - i * TG_PANEL, acc[r][i]);
}

/* A function for each number of rows, so that each has the registers to itself. */
#define FUSED(type, R)                                                                                       \
    static __attribute__((noinline)) void fused_##type##_##R(                                                \
        const uint8_t *rows, size_t row_bytes, const uint8_t *ahead, const tg_q8 *x, int n_blocks,           \
        const tg_product *p, int first_out, int n_valid)                                                     \
    {                                                                                                        \
        fused(TG_##type, R, rows, row_bytes, ahead, x, n_blocks, p, first_out, n_valid);                     \
    }
#define TILE(type, R)                                                                                        \
    static __attribute__((noinline)) void tile_##type##_##R(const tg_panel_block *panels, const tg_q8 *x,    \
                                                            int r0, int n_blocks, const tg_product *p,       \
                                                            int first_out, int n_valid)                      \
    {                                                                                                        \
        tile(TG_##type, R, panels, x, r0, n_blocks, p, first_out, n_valid);                                  \
    }
#define INTEGER(type)                                                                                        \
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
    }                                                                                                        \
    TILE(type, 6) TILE(type, 4) TILE(type, 2) TILE(type, 1)                                                  \
    static void panels_##type(const tg_panel_block *panels, const tg_q8 *x, int n, int n_blocks,             \
                              const tg_product *p, int first_out, int n_valid)                               \
    {                                                                                                        \
        int r = 0;                                                                                           \
        for (; n - r >= TILE_ROWS; r += TILE_ROWS)                                                           \
            (TILE_ROWS == 6 ? tile_##type##_6 : tile_##type##_2)(panels, x, r, n_blocks, p, first_out, n_valid); \
        for (; n - r >= 4; r += 4)                                                                           \
            tile_##type##_4(panels, x, r, n_blocks, p, first_out, n_valid);                                  \
        for (; n - r >= 2; r += 2)                                                                           \
            tile_##type##_2(panels, x, r, n_blocks, p, first_out, n_valid);                                  \
        for (; n - r >= 1; r += 1)                                                                           \
            tile_##type##_1(panels, x, r, n_blocks, p, first_out, n_valid);                                  \
    }
INTEGER(Q4_0)
INTEGER(Q4_1)
INTEGER(Q8_0)

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

/* ---- rows to float32 ------------------------------------------------------------------------- */

static void f16_to_f32(const void *row, float *out, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        vf_store(out + i, vf_load_f16((const uint16_t *)row + i));
    tg_dtypes[TG_F16].to_f32((const uint8_t *)row + 2 * i, out + i, n - i);
}

static void bf16_to_f32(const void *row, float *out, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        vf_store(out + i, vf_load_bf16((const uint16_t *)row + i));
    tg_dtypes[TG_BF16].to_f32((const uint8_t *)row + 2 * i, out + i, n - i);
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
        int32_t t[16], sum = 0;
        vi_store(t, vi_add(qlo, qhi));
        for (int i = 0; i < 16; i++)
            sum = (int32_t)((uint32_t)sum + (uint32_t)t[i]);
        sum = taint == 0 ? sum : 0; /* of a NaN the codes mean nothing, and their sum is huge */
        out->d_sum = out->d * (float)sum;
        out->less8 = -8 * sum;
        out->less128 = -128 * sum;
    }
}

extern const tg_matmul_kernels TG_ISA_SYMBOL(tg_matmul_kernels);
const tg_matmul_kernels TG_ISA_SYMBOL(tg_matmul_kernels) = {
    .fused = {[TG_Q8_0] = fused_Q8_0, [TG_Q4_0] = fused_Q4_0, [TG_Q4_1] = fused_Q4_1},
    .unpack = {[TG_Q8_0] = unpack_Q8_0, [TG_Q4_0] = unpack_Q4_0, [TG_Q4_1] = unpack_Q4_1},
    .panels = {[TG_Q8_0] = panels_Q8_0, [TG_Q4_0] = panels_Q4_0, [TG_Q4_1] = panels_Q4_1},
    .to_f32 = {[TG_F16] = f16_to_f32, [TG_BF16] = bf16_to_f32},
    .dot = dot,
    .quantize = quantize,
};
