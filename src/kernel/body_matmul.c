/* body_matmul.c - products of float weights, and activations as 8-bit blocks; compiled once per instruction-set
 * level. Quantised weights: fused.h. */
#include <float.h>

#include "kernel/matmul.h"
#include "kernel/vec.h"

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
            dot_tile(w + i, 1, ahead, n_w == 1 && r == 0 ? step : 0, x, r, 1, n_in, p, first_out + i);
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

extern const tg_matmul_kernels TG_ISA_SYMBOL(tg_matmul_kernels);
const tg_matmul_kernels TG_ISA_SYMBOL(tg_matmul_kernels) = {
    .dot = dot,
    .quantize = quantize,
};
