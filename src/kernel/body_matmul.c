/* body_matmul.c - unpacking, integer and float products; compiled once per instruction-set level.
 *
 * The integer product works on panels of 16 weight rows, one in each lane, so that no sum across lanes
 * is ever needed. A panel is unpacked block by block from the file's own layout into small codes that
 * the dot-product instructions take (16 rows x 4 bytes a vector: a transposition in registers), stays
 * in the first-level cache, and meets all rows of activations there. One row of activations or 512 is
 * the same arithmetic. */
#include "kernel/matmul.h"
#include "kernel/vec.h"

/* ---- unpacking ------------------------------------------------------------------------------ */

/* Asks for the part of the next panel that corresponds to block b: its 16 rows follow in the file, and
 * a walk over 16 rows at once is none that the hardware's prefetcher foresees. */
VEC void prefetch(const uint8_t *const row[16], size_t next, int b, size_t block_bytes)
{
    const uint8_t *p = row[0] + next + (size_t)b * 16 * block_bytes;
    for (size_t i = 0; i < 16 * block_bytes; i += 64)
        __builtin_prefetch(p + i);
}

/* Codes of formats with halves: low halves are columns 0..15, high halves 16..31. */
VEC void unpack_halves(const uint8_t *const row[16], size_t at, tg_panel_block *out)
{
    vi raw[4], mask = vi_set1(0x0f0f0f0f);
    vi_rows16(row, at, raw);
    for (int j = 0; j < 4; j++) {
        vi_store(out->code[j], vi_and(raw[j], mask));
        vi_store(out->code[4 + j], vi_and(vi_shr4(raw[j]), mask));
    }
}

static void unpack_q4_0(const uint8_t *const row[16], size_t next, int n_blocks, tg_panel_block *out)
{
    for (int b = 0; b < n_blocks; b++, out++) {
        size_t at = (size_t)b * 18;
        prefetch(row, next, b, 18);
        unpack_halves(row, at + 2, out);
        vf_store(out->scale, vf_from_low_f16(vi_gather(row, at)));
    }
}

static void unpack_q4_1(const uint8_t *const row[16], size_t next, int n_blocks, tg_panel_block *out)
{
    for (int b = 0; b < n_blocks; b++, out++) {
        size_t at = (size_t)b * 20;
        prefetch(row, next, b, 20);
        unpack_halves(row, at + 4, out);
        vi dm = vi_gather(row, at);
        vf_store(out->scale, vf_from_low_f16(dm));
        vf_store(out->min, vf_from_low_f16(vi_shr16(dm)));
    }
}

/* Signed codes become unsigned by adding 128, which the product takes off again. */
static void unpack_q8_0(const uint8_t *const row[16], size_t next, int n_blocks, tg_panel_block *out)
{
    vi flip = vi_set1((int32_t)0x80808080);
    for (int b = 0; b < n_blocks; b++, out++) {
        size_t at = (size_t)b * 34;
        prefetch(row, next, b, 34);
        for (int half = 0; half < 2; half++) {
            vi raw[4];
            vi_rows16(row, at + 2 + 16 * (size_t)half, raw);
            for (int j = 0; j < 4; j++)
                vi_store(out->code[4 * half + j], vi_xor(raw[j], flip));
        }
        vf_store(out->scale, vf_from_low_f16(vi_gather(row, at)));
    }
}

/* ---- integer products ------------------------------------------------------------------------ */

VEC void put(const tg_product *p, int r, int first_out, int n_valid, vf v)
{
    float *out = p->out + (size_t)r * p->out_stride + first_out;
    if (n_valid == 16) {
        if (p->w->bias)
            v = vf_add(v, vf_load(p->w->bias + first_out));
        vf_store(out, p->add ? vf_add(vf_load(out), v) : v);
    } else {
        if (p->w->bias)
            v = vf_add(v, vf_load_n(p->w->bias + first_out, n_valid));
        vf_store_n(out, p->add ? vf_add(vf_load_n(out, n_valid), v) : v, n_valid);
    }
}

/* R rows of activations, R a constant, against one panel. acc = fma(scale * d, integer sum, acc), then
 * acc = fma(min, d * sum of q, acc): one chain over the blocks. */
VEC void panel_rows(const tg_panel_block *panel, const tg_q8 *x, int r0, const int R, int n_blocks,
                    const tg_product *p, int first_out, int n_valid, const int offset,
                    const int has_min, const int narrow)
{
    vf acc[8];
    for (int r = 0; r < R; r++)
        acc[r] = vf_zero();
    for (int b = 0; b < n_blocks; b++) {
        const tg_panel_block *w = panel + b;
        vi code[8];
        for (int j = 0; j < 8; j++)
            code[j] = vi_load(w->code[j]);
        vf scale = vf_load(w->scale), min = has_min ? vf_load(w->min) : vf_zero();
        for (int r = 0; r < R; r++) {
            const tg_q8 *a = x + (size_t)(r0 + r) * (size_t)n_blocks + b;
            int32_t a4[8];
            memcpy(a4, a->q, 32);
            /* two chains, since one of eight would wait for itself; integers add in any order */
            vi even = vi_set1(-offset * a->sum), odd = vi_set1(0);
            for (int j = 0; j < 8; j += 2) {
                even = vi_dot4(even, code[j], a4[j], narrow);
                odd = vi_dot4(odd, code[j + 1], a4[j + 1], narrow);
            }
            acc[r] = vf_fma(vf_mul(scale, vf_set1(a->d)), vf_from_int(vi_add(even, odd)), acc[r]);
            if (has_min)
                acc[r] = vf_fma(min, vf_set1(a->d_sum), acc[r]);
        }
    }
    for (int r = 0; r < R; r++)
        put(p, r0 + r, first_out, n_valid, acc[r]);
}

VEC void panel_all(const tg_panel_block *panel, const tg_q8 *x, int n, int n_blocks,
                   const tg_product *p, int first_out, int n_valid, const int offset,
                   const int has_min, const int narrow)
{
#define ROWS(R) panel_rows(panel, x, r, R, n_blocks, p, first_out, n_valid, offset, has_min, narrow)
    int r = 0;
    for (; n - r >= 8; r += 8)
        ROWS(8);
    if (n - r >= 4) {
        ROWS(4);
        r += 4;
    }
    if (n - r >= 2) {
        ROWS(2);
        r += 2;
    }
    if (n - r >= 1)
        ROWS(1);
#undef ROWS
}

#define PANEL(name, offset, has_min, narrow)                                                       \
    static void name(const tg_panel_block *panel, const tg_q8 *x, int n, int n_blocks,             \
                     const tg_product *p, int first_out, int n_valid)                              \
    {                                                                                              \
        panel_all(panel, x, n, n_blocks, p, first_out, n_valid, offset, has_min, narrow);          \
    }
PANEL(panel_q4_0, 8, 0, 1)
PANEL(panel_q4_1, 0, 1, 1)
PANEL(panel_q8_0, 128, 0, 0)

/* ---- float products -------------------------------------------------------------------------- */

/* W weight rows against R rows of activations; lane i sums the columns k with k mod 16 = i. */
VEC void dot_tile(const float *const w[4], const int W, const float *x, int r0, const int R, int n_in,
                  const tg_product *p, int first_out)
{
    vf acc[4][4];
    for (int i = 0; i < W; i++)
        for (int r = 0; r < R; r++)
            acc[i][r] = vf_zero();
    const float *a = x + (size_t)r0 * (size_t)n_in;
    int k = 0;
    for (; k + 16 <= n_in; k += 16) {
        vf v[4];
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

static void dot(const float *const w[4], int n_w, const float *x, int n, int n_in, const tg_product *p,
                int first_out)
{
    enum { R_MAX = TG_ISA_LEVEL == TG_ISA_avx512 ? 4 : 2 };
    if (n_w == 4) {
        int r = 0;
        for (; r + R_MAX <= n; r += R_MAX)
            dot_tile(w, 4, x, r, R_MAX, n_in, p, first_out);
        for (; r < n; r++)
            dot_tile(w, 4, x, r, 1, n_in, p, first_out);
        return;
    }
    for (int i = 0; i < n_w; i++)
        for (int r = 0; r < n; r++)
            dot_tile(w + i, 1, x, r, 1, n_in, p, first_out + i);
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
        out->sum = taint == 0 ? sum : 0; /* of a NaN the codes mean nothing, and their sum is huge */
        out->d_sum = out->d * (float)out->sum;
    }
}

extern const tg_matmul_kernels TG_ISA_SYMBOL(tg_matmul_kernels);
const tg_matmul_kernels TG_ISA_SYMBOL(tg_matmul_kernels) = {
    .unpack = {[TG_Q8_0] = unpack_q8_0, [TG_Q4_0] = unpack_q4_0, [TG_Q4_1] = unpack_q4_1},
    .panel = {[TG_Q8_0] = panel_q8_0, [TG_Q4_0] = panel_q4_0, [TG_Q4_1] = panel_q4_1},
    .to_f32 = {[TG_F16] = f16_to_f32, [TG_BF16] = bf16_to_f32},
    .dot = dot,
    .quantize = quantize,
};
