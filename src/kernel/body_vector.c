/* body_vector.c - norms, activations and exponentials; compiled once per instruction-set level. */
#include "kernel/team.h"
#include "kernel/vec.h"
#include "kernel/vector.h"

/* Steps of 16 values; the last may have fewer: absent lanes are 0. */
#define FOR_EACH(i, n) for (int i = 0; i < (n); i += 16)

VEC vf load(const float *p, int i, int n)
{
    return n - i >= 16 ? vf_load(p + i) : vf_load_n(p + i, n - i);
}

VEC void store(float *p, int i, int n, vf v)
{
    if (n - i >= 16)
        vf_store(p + i, v);
    else
        vf_store_n(p + i, v, n - i);
}

static bool rms_norm(const float *x, const float *w, float eps, int n, float *out)
{
    vf squares = vf_zero();
    FOR_EACH (i, n) {
        vf v = load(x, i, n);
        squares = vf_fma(v, v, squares);
    }
    float sum = vf_sum(squares);
    vf inverse = vf_set1(1.0f / sqrtf(sum / (float)n + eps));
    FOR_EACH (i, n)
        store(out, i, n, vf_mul(vf_mul(load(x, i, n), inverse), load(w, i, n)));
    return isfinite(sum);
}

static bool layer_norm(const float *x, const float *w, const float *b, float eps, int n, float *out)
{
    vf sums = vf_zero(), squares = vf_zero();
    FOR_EACH (i, n)
        sums = vf_add(sums, load(x, i, n));
    vf mean = vf_set1(vf_sum(sums) / (float)n);
    FOR_EACH (i, n) {
        vf v = vf_sub(load(x, i, n), mean);
        if (n - i < 16)
            v = vf_range(v, vf_zero(), 0, n - i);
        squares = vf_fma(v, v, squares);
    }
    float sum = vf_sum(squares);
    vf inverse = vf_set1(1.0f / sqrtf(sum / (float)n + eps));
    FOR_EACH (i, n) {
        vf v = vf_mul(vf_sub(load(x, i, n), mean), inverse);
        v = b ? vf_fma(v, load(w, i, n), load(b, i, n)) : vf_mul(v, load(w, i, n));
        store(out, i, n, v);
    }
    return isfinite(sum);
}

/* x / (1 + e^-y) */
VEC vf logistic_times(vf x, vf y)
{
    return vf_div(x, vf_add(vf_set1(1.0f), vf_exp(vf_sub(vf_zero(), y))));
}

/* erf to about 1e-7: x P(x^2) below 1, 1 - e^(-x^2) Q(1/x) above (both fitted by minimax), 1 past 4. */
VEC vf erf16(vf x)
{
    vf a = vf_abs(x), s = vf_mul(x, x);
    vf p = vf_set1(7.647071470e-05f);
    p = vf_fma(p, s, vf_set1(-7.942342781e-04f));
    p = vf_fma(p, s, vf_set1(5.179747939e-03f));
    p = vf_fma(p, s, vf_set1(-2.684859000e-02f));
    p = vf_fma(p, s, vf_set1(1.128343046e-01f));
    p = vf_fma(p, s, vf_set1(-3.761260509e-01f));
    p = vf_fma(p, s, vf_set1(1.128379107e+00f));
    vf small = vf_mul(p, x);

    vf t = vf_div(vf_set1(1.0f), vf_max(vf_set1(1.0f), vf_min(vf_set1(4.0f), a)));
    vf q = vf_set1(2.537794225e-02f);
    q = vf_fma(q, t, vf_set1(-1.387500167e-01f));
    q = vf_fma(q, t, vf_set1(3.086527288e-01f));
    q = vf_fma(q, t, vf_set1(-3.099672198e-01f));
    q = vf_fma(q, t, vf_set1(-3.394401073e-02f));
    q = vf_fma(q, t, vf_set1(5.778755546e-01f));
    q = vf_fma(q, t, vf_set1(-1.661368296e-03f));
    vf large = vf_sub(vf_set1(1.0f), vf_mul(q, vf_exp(vf_sub(vf_zero(), s))));
    large = vf_if_less(x, vf_zero(), vf_sub(vf_zero(), large), large);
    return vf_if_less(vf_set1(1.0f), a, large, small);
}

VEC vf act16(tg_act act, float limit, vf x)
{
    switch (act) {
    case TG_ACT_SILU:
        return logistic_times(x, x);
    case TG_ACT_GELU_TANH: { /* (1 + tanh u) / 2 = 1 / (1 + e^-2u) */
        vf cube = vf_mul(vf_mul(x, x), x);
        vf u = vf_mul(vf_fma(vf_set1(0.044715f), cube, x), vf_set1(0.7978845608f * 2.0f));
        return logistic_times(x, u);
    }
    case TG_ACT_GELU_ERF: {
        vf e = erf16(vf_mul(x, vf_set1(0.7071067812f)));
        return vf_mul(vf_mul(x, vf_set1(0.5f)), vf_add(vf_set1(1.0f), e));
    }
    case TG_ACT_RELU:
        return vf_if_less(x, vf_zero(), vf_zero(), x); /* NaN stays, here and below */
    case TG_ACT_SWIGLU_CLAMPED:
        x = vf_min(vf_set1(limit), x);
        return logistic_times(x, vf_mul(x, vf_set1(1.702f)));
    }
    return x;
}

VEC void activate_all(const tg_act act, float limit, const float *x, const float *up, int n, float *out)
{
    FOR_EACH (i, n) {
        vf v = act16(act, limit, load(x, i, n)), u = up ? load(up, i, n) : vf_set1(1.0f);
        if (act == TG_ACT_SWIGLU_CLAMPED)
            u = vf_add(vf_max(vf_set1(-limit), vf_min(vf_set1(limit), u)), vf_set1(1.0f));
        store(out, i, n, up ? vf_mul(v, u) : v);
    }
}

static void activate(tg_act act, float limit, const float *x, const float *up, int n, float *out)
{
    switch (act) {
    case TG_ACT_SILU:
        activate_all(TG_ACT_SILU, limit, x, up, n, out);
        break;
    case TG_ACT_GELU_TANH:
        activate_all(TG_ACT_GELU_TANH, limit, x, up, n, out);
        break;
    case TG_ACT_GELU_ERF:
        activate_all(TG_ACT_GELU_ERF, limit, x, up, n, out);
        break;
    case TG_ACT_RELU:
        activate_all(TG_ACT_RELU, limit, x, up, n, out);
        break;
    case TG_ACT_SWIGLU_CLAMPED:
        activate_all(TG_ACT_SWIGLU_CLAMPED, limit, x, up, n, out);
        break;
    }
}

static void add(float by, const float *x, int n, float *out)
{
    FOR_EACH (i, n)
        store(out, i, n, vf_fma(vf_set1(by), load(x, i, n), load(out, i, n)));
}

static void soft_cap(float cap, int n, float *x)
{
    FOR_EACH (i, n)
        store(x, i, n, vf_soft_cap(load(x, i, n), cap));
}

static void scale(float by, int n, float *x)
{
    FOR_EACH (i, n)
        store(x, i, n, vf_mul(load(x, i, n), vf_set1(by)));
}

/* Plain loops: compilers make vectors of both, and know better how to take neighbours apart. */
static void rotate(float *restrict x, const float *restrict cosine, const float *restrict sine, int n,
                   bool neighbours, float by)
{
    if (neighbours) {
        for (int i = 0; i < n; i++) {
            float a = x[2 * i], b = x[2 * i + 1];
            x[2 * i] = (a * cosine[i] - b * sine[i]) * by;
            x[2 * i + 1] = (b * cosine[i] + a * sine[i]) * by;
        }
        return;
    }
    for (int i = 0; i < n; i++) {
        float a = x[i], b = x[i + n];
        x[i] = (a * cosine[i] - b * sine[i]) * by;
        x[i + n] = (b * cosine[i] + a * sine[i]) * by;
    }
}

static float exps(const float *x, float max, float scale, int n, float *out)
{
    vf sum = vf_zero();
    FOR_EACH (i, n) {
        vf e = vf_exp(vf_mul(vf_sub(load(x, i, n), vf_set1(max)), vf_set1(scale)));
        if (n - i < 16)
            e = vf_range(e, vf_zero(), 0, n - i);
        sum = vf_add(sum, e);
        store(out, i, n, e);
    }
    return vf_sum(sum);
}

static bool all_finite(const float *x, int n)
{
    vf taint = vf_zero(); /* 0 * x is NaN for what is not finite */
    FOR_EACH (i, n)
        taint = vf_fma(load(x, i, n), vf_zero(), taint);
    return vf_sum(taint) == 0.0f;
}

/* As fast as it goes: what is asked for ahead comes up to 8 % faster from memory. */
static unsigned read_all(const void *p, size_t n_bytes)
{
    enum { AHEAD = 3072 };
    const uint8_t *at = p;
    vi x[4] = {vi_set1(0), vi_set1(0), vi_set1(0), vi_set1(0)};
    for (size_t i = 0; i < n_bytes; i += 256) {
        tg_fetch_lines(at + i + AHEAD, 256);
        for (int k = 0; k < 4; k++)
            x[k] = vi_xor(x[k], vi_load(at + i + (size_t)k * 64));
    }
    int32_t t[16];
    vi_store(t, vi_xor(vi_xor(x[0], x[1]), vi_xor(x[2], x[3])));
    unsigned all = 0;
    for (int i = 0; i < 16; i++)
        all ^= (unsigned)t[i];
    return all;
}

/* Independent chains: as many as keep the pipes full (two of them, four or five cycles deep), and as fit
 * the registers. An AVX2 dot product needs fewer, for its products are no part of the chain, and more
 * registers beside them. */
#if TG_ISA_LEVEL == TG_ISA_avx512
enum { F32_CHAINS = 16, INT8_CHAINS = 16 };
#elif TG_ISA_LEVEL == TG_ISA_avx2
enum { F32_CHAINS = 6, INT8_CHAINS = 4 };
#else
enum { F32_CHAINS = 1, INT8_CHAINS = 1 };
#endif

static size_t f32_rounds(size_t n)
{
    vf acc[F32_CHAINS], x = vf_set1(0.5f), y = vf_set1(0.25f);
    vi end;
    for (int k = 0; k < F32_CHAINS; k++)
        acc[k] = vf_zero();
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < F32_CHAINS; k++)
            acc[k] = vf_fma(x, y, acc[k]);
    for (int k = 0; k < F32_CHAINS; k++) {
        memcpy(&end, &acc[k], sizeof end);
        vi_hide(end);
    }
    return n * F32_CHAINS * VLEN * 2;
}

static size_t int8_rounds(size_t n)
{
    static const int8_t ones[4] = {1, 1, 1, 1};
    vi acc[INT8_CHAINS], codes = vi_all(ones);
    for (int k = 0; k < INT8_CHAINS; k++)
        acc[k] = vi_set1(0);
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < INT8_CHAINS; k++) {
            codes = vi_hide(codes); /* else AVX2's products would leave the loop */
            acc[k] = vi_dot4(acc[k], codes, ones, 1);
        }
    for (int k = 0; k < INT8_CHAINS; k++)
        vi_hide(acc[k]);
    return n * INT8_CHAINS * VLEN * 4 * 2;
}

extern const tg_vector_kernels TG_ISA_SYMBOL(tg_vector_kernels);
const tg_vector_kernels TG_ISA_SYMBOL(tg_vector_kernels) = {
    .rms_norm = rms_norm,
    .layer_norm = layer_norm,
    .activate = activate,
    .add = add,
    .rotate = rotate,
    .scale = scale,
    .soft_cap = soft_cap,
    .exps = exps,
    .finite = all_finite,
    .read_all = read_all,
    .f32_rounds = f32_rounds,
    .int8_rounds = int8_rounds,
};
