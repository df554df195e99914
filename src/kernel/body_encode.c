/* body_encode.c - the formats with 256 numbers a block, and IQ4_NL: encoders that search for the scales.
 *
 * A block is cut into parts of 16 or 32 numbers. In three steps:
 * 1. Each part by itself: scale (and minimum) with the least weighted error, among codes that a grid of scales
 *    gives and the codes that its best is nearest to. For given codes the best scale and minimum are a linear
 *    regression, and its error needs no second look at the numbers: the squares less what it explains.
 * 2. The block's own scale, a half: so that the largest of the parts gets the largest code.
 * 3. Each part again: among the codes of its scale (and minimum) next to what step 1 wanted, those whose decoded
 *    numbers are nearest, since what rounding the one does to the numbers the other can make good.
 * Then the numbers take the codes that decode nearest to them. Large numbers weigh more than small ones: of what a
 * product loses to rounding, most comes from them. */
#include "kernel/blocks.h"
#include "kernel/encode.h"
#include "kernel/vec.h"

enum { BLOCK = 256 };

VEC float as_half(float f)
{
    return tg_f16_to_f32(tg_f32_to_f16(f));
}

/* To the nearest whole number from low to high. */
VEC vf codes(vf v, float low, float high)
{
    return vf_from_int(vi_from_float(vf_min(vf_max(v, vf_set1(low)), vf_set1(high))));
}

VEC int code1(float v, int low, int high)
{
    return (int)vf_first(codes(vf_set1(v), (float)low, (float)high));
}

/* ---- a part with a minimum: x = scale * q - min, q from 0 to top, neither below 0 ---------------------- */

typedef struct pair {
    float scale, min;
} pair;

/* Sums over a part, of weights: alone, times x, times q, q^2 and q x. */
typedef struct sums {
    float w, wx, wq, wqq, wqx;
} sums;

/* The regression of x on the codes; false where all codes are one. *gain is what it explains of the squares. */
VEC bool regress(const sums *s, pair *out, float *gain)
{
    float det = s->w * s->wqq - s->wq * s->wq;
    if (!(det > 0))
        return false;
    pair p = {(s->w * s->wqx - s->wx * s->wq) / det, (s->wq * s->wqx - s->wqq * s->wx) / det};
    if (p.min < 0) {
        p.min = 0;
        p.scale = s->wqx / s->wqq;
    }
    if (!(p.scale > 0))
        return false;
    /* 2 s.wqx - s^2 wqq and the like: right for any scale and minimum */
    *gain = p.scale * (2 * s->wqx - p.scale * s->wqq + 2 * p.min * s->wq) - p.min * (2 * s->wx + p.min * s->w);
    *out = p;
    return true;
}

/* What the codes nearest to (x + min) / scale lead to. */
VEC bool refit(const vf *x, const vf *w, int n, int top, float inverse, float min, sums *s, pair *out,
               float *gain)
{
    vf wq = vf_zero(), wqq = vf_zero(), wqx = vf_zero();
    for (int i = 0; i < n; i++) {
        vf q = codes(vf_mul(vf_add(x[i], vf_set1(min)), vf_set1(inverse)), 0, (float)top);
        vf t = vf_mul(w[i], q);
        wq = vf_add(wq, t);
        wqq = vf_fma(t, q, wqq);
        wqx = vf_fma(t, x[i], wqx);
    }
    s->wq = vf_sum(wq);
    s->wqq = vf_sum(wqq);
    s->wqx = vf_sum(wqx);
    return regress(s, out, gain);
}

VEC pair search_pair(const vf *x, const vf *w, int n, int top)
{
    vf high = x[0], low = x[0], sw = w[0], swx = vf_mul(w[0], x[0]);
    for (int i = 1; i < n; i++) {
        high = vf_max(high, x[i]);
        low = vf_min(low, x[i]);
        sw = vf_add(sw, w[i]);
        swx = vf_fma(w[i], x[i], swx);
    }
    float max = vf_hmax(high), min = vf_hmax(vf_sub(vf_zero(), low));
    min = min > 0 ? min : 0;
    pair best = {max + min > 0 ? (max + min) / (float)top : 0, min}, p;
    if (best.scale <= 0)
        return best;
    sums s = {.w = vf_sum(sw), .wx = vf_sum(swx)};
    float most = -INFINITY, gain;
    for (int step = -10; step <= 10; step++) {
        float inverse = ((float)top + 0.1f * (float)step) / (max + min);
        if (refit(x, w, n, top, inverse, min, &s, &p, &gain) && gain > most) {
            most = gain;
            best = p;
        }
    }
    for (int more = 0; more < 4; more++) {
        if (!refit(x, w, n, top, 1 / best.scale, best.min, &s, &p, &gain) || !(gain > most))
            break;
        most = gain;
        best = p;
    }
    return best;
}

VEC float error_of_pair(const vf *x, const vf *w, int n, int top, float scale, float min)
{
    float inverse = scale > 0 ? 1 / scale : 0;
    vf sum = vf_zero();
    for (int i = 0; i < n; i++) {
        vf q = codes(vf_mul(vf_add(x[i], vf_set1(min)), vf_set1(inverse)), 0, (float)top);
        vf e = vf_sub(vf_fms(q, vf_set1(scale), vf_set1(min)), x[i]);
        sum = vf_fma(vf_mul(w[i], e), e, sum);
    }
    return vf_sum(sum);
}

/* A block of parts with a scale and a minimum each, and one half for all scales and one for all minima. */
typedef struct pairs {
    int n_parts, top, top_scale; /* the codes of numbers, and those of scales and minima */
    float d, dmin;
    uint8_t scale[16], min[16];
    uint8_t q[BLOCK];
} pairs;

VEC void encode_pairs(const float *values, pairs *b)
{
    int n = BLOCK / b->n_parts / VLEN;
    vf x[16], w[16];
    pair part[16];
    float most_scale = 0, most_min = 0;
    for (int j = 0; j < b->n_parts; j++) {
        vf squares = vf_zero();
        for (int i = j * n; i < (j + 1) * n; i++) {
            x[i] = vf_load(values + i * VLEN);
            squares = vf_fma(x[i], x[i], squares);
        }
        vf mean = vf_set1(sqrtf(vf_sum(squares) / (float)(n * VLEN)));
        for (int i = j * n; i < (j + 1) * n; i++)
            w[i] = vf_add(mean, vf_abs(x[i]));
        part[j] = search_pair(x + j * n, w + j * n, n, b->top);
        most_scale = part[j].scale > most_scale ? part[j].scale : most_scale;
        most_min = part[j].min > most_min ? part[j].min : most_min;
    }
    b->d = as_half(most_scale / (float)b->top_scale);
    b->dmin = as_half(most_min / (float)b->top_scale);
    float inverse = b->d > 0 ? 1 / b->d : 0, inverse_min = b->dmin > 0 ? 1 / b->dmin : 0;
    for (int j = 0; j < b->n_parts; j++) {
        int s0 = code1(part[j].scale * inverse, 0, b->top_scale);
        int m0 = code1(part[j].min * inverse_min, 0, b->top_scale);
        float least = INFINITY;
        for (int s = s0 - 1; s <= s0 + 1; s++)
            for (int m = m0 - 1; m <= m0 + 1; m++) {
                if (s < 0 || m < 0 || s > b->top_scale || m > b->top_scale)
                    continue;
                float e = error_of_pair(x + j * n, w + j * n, n, b->top, b->d * (float)s, b->dmin * (float)m);
                if (e < least) {
                    least = e;
                    b->scale[j] = (uint8_t)s;
                    b->min[j] = (uint8_t)m;
                }
            }
        float scale = b->d * (float)b->scale[j], min = b->dmin * (float)b->min[j];
        vf by = vf_set1(scale > 0 ? 1 / scale : 0);
        for (int i = j * n; i < (j + 1) * n; i++)
            vi_store_s8((int8_t *)b->q + i * VLEN,
                        vi_from_float(codes(vf_mul(vf_add(x[i], vf_set1(min)), by), 0, (float)b->top)));
    }
}

/* ---- a part without: x = scale * q, q from -half to half - 1, the scale of any sign ----------------------- */

VEC bool refit_scale(vf x, vf w, int half, float inverse, float *scale, float *gain)
{
    vf q = codes(vf_mul(x, vf_set1(inverse)), (float)-half, (float)(half - 1));
    vf t = vf_mul(w, q);
    float wqq = vf_sum(vf_mul(t, q)), wqx = vf_sum(vf_mul(t, x));
    if (!(wqq > 0))
        return false;
    *scale = wqx / wqq;
    *gain = *scale * wqx;
    return true;
}

VEC float search_scale(vf x, vf w, int half)
{
    float max = vf_hmax(x), min = vf_hmax(vf_sub(vf_zero(), x)), most = -INFINITY, best = 0, scale, gain;
    float end = max > min ? max : -min; /* the largest in size */
    if (end == 0)
        return 0;
    for (int sign = -1; sign <= 1; sign += 2)
        for (int step = -9; step <= 9; step++) {
            float inverse = (float)sign * ((float)half - (sign > 0) + 0.1f * (float)step) / end;
            if (refit_scale(x, w, half, inverse, &scale, &gain) && gain > most) {
                most = gain;
                best = scale;
            }
        }
    for (int more = 0; more < 4; more++) {
        if (!refit_scale(x, w, half, 1 / best, &scale, &gain) || !(gain > most))
            break;
        most = gain;
        best = scale;
    }
    return best;
}

VEC float error_of_scale(vf x, vf w, int half, float scale)
{
    vf q = codes(vf_mul(x, vf_set1(scale != 0 ? 1 / scale : 0)), (float)-half, (float)(half - 1));
    vf e = vf_sub(vf_mul(q, vf_set1(scale)), x);
    return vf_sum(vf_mul(vf_mul(w, e), e));
}

/* A block of 16 parts; scales are codes from -half_scale to half_scale - 1 of one half. */
typedef struct scales {
    int half, half_scale;
    float d;
    int8_t scale[16];
    uint8_t q[BLOCK]; /* from 0 to 2 half - 1 */
} scales;

VEC void encode_scales(const float *values, scales *b)
{
    vf x[16], w[16];
    float wish[16], most = 0;
    for (int j = 0; j < 16; j++) {
        x[j] = vf_load(values + j * VLEN);
        vf squares = vf_mul(x[j], x[j]);
        w[j] = vf_add(squares, vf_set1(vf_sum(squares) / (2 * VLEN)));
        wish[j] = search_scale(x[j], w[j], b->half);
        most = fabsf(wish[j]) > fabsf(most) ? wish[j] : most;
    }
    b->d = as_half(most / (float)-b->half_scale);
    float inverse = b->d != 0 ? 1 / b->d : 0;
    for (int j = 0; j < 16; j++) {
        int s0 = code1(wish[j] * inverse, -b->half_scale, b->half_scale - 1);
        float least = INFINITY;
        for (int s = s0 - 1; s <= s0 + 1; s++) {
            if (s < -b->half_scale || s >= b->half_scale)
                continue;
            float e = error_of_scale(x[j], w[j], b->half, b->d * (float)s);
            if (e < least) {
                least = e;
                b->scale[j] = (int8_t)s;
            }
        }
        float scale = b->d * (float)b->scale[j];
        vf q = codes(vf_mul(x[j], vf_set1(scale != 0 ? 1 / scale : 0)), (float)-b->half, (float)(b->half - 1));
        vi_store_s8((int8_t *)b->q + j * VLEN, vi_add(vi_from_float(q), vi_set1(b->half)));
    }
}

/* ---- laying blocks out ---------------------------------------------------------------------------------- */

/* The low halves of 2 n codes: the first n below, the others above. */
VEC void put_nibbles(uint8_t *p, const uint8_t *q, int n)
{
    for (int l = 0; l < n; l++)
        p[l] = (uint8_t)((q[l] & 15) | q[l + n] << 4);
}

/* One bit of each code: that of number 32 g + l is bit g of byte l. */
VEC void put_bit(uint8_t p[32], const uint8_t *q, int shift)
{
    for (int l = 0; l < 32; l++) {
        unsigned bits = 0;
        for (int g = 0; g < 8; g++)
            bits |= (q[32 * g + l] >> shift & 1u) << g;
        p[l] = (uint8_t)bits;
    }
}

/* Two bits of each code: those of number 128 h + 32 g + l in byte 32 h + l, from bit 2 g on. */
VEC void put_two_bits(uint8_t *p, const uint8_t *q, int shift)
{
    for (int h = 0; h < 2; h++, q += 128, p += 32)
        for (int l = 0; l < 32; l++)
            p[l] = (uint8_t)((q[l] >> shift & 3) | (q[l + 32] >> shift & 3) << 2 |
                             (q[l + 64] >> shift & 3) << 4 | (q[l + 96] >> shift & 3) << 6);
}

static void q2_k(const float *x, void *row, size_t n)
{
    for (tg_block_q2_k *b = row; n; n -= BLOCK, x += BLOCK, b++) {
        pairs p = {.n_parts = 16, .top = 3, .top_scale = 15};
        encode_pairs(x, &p);
        for (int j = 0; j < 16; j++)
            b->scale[j] = (uint8_t)(p.scale[j] | p.min[j] << 4);
        put_two_bits(b->q, p.q, 0);
        tg_put_half(b->d, p.d);
        tg_put_half(b->m, p.dmin);
    }
}

static void q3_k(const float *x, void *row, size_t n)
{
    for (tg_block_q3_k *b = row; n; n -= BLOCK, x += BLOCK, b++) {
        scales s = {.half = 4, .half_scale = 32};
        encode_scales(x, &s);
        put_bit(b->high, s.q, 2);
        put_two_bits(b->q, s.q, 0);
        memset(b->scale, 0, sizeof b->scale);
        for (int j = 0; j < 16; j++) { /* the inverse of tg_q3_k_scale */
            int scale = s.scale[j] + 32;
            b->scale[j % 8] |= (uint8_t)((scale & 15) << j / 8 * 4);
            b->scale[8 + j % 4] |= (uint8_t)(scale >> 4 << j / 4 * 2);
        }
        tg_put_half(b->d, s.d);
    }
}

/* The inverse of tg_q4_k_scale. */
VEC void put_scales(uint8_t packed[12], const pairs *p)
{
    for (int i = 0; i < 4; i++) {
        packed[i] = (uint8_t)(p->scale[i] | p->scale[i + 4] >> 4 << 6);
        packed[4 + i] = (uint8_t)(p->min[i] | p->min[i + 4] >> 4 << 6);
        packed[8 + i] = (uint8_t)((p->scale[i + 4] & 15) | (p->min[i + 4] & 15) << 4);
    }
}

static void q4_k(const float *x, void *row, size_t n)
{
    for (tg_block_q4_k *b = row; n; n -= BLOCK, x += BLOCK, b++) {
        pairs p = {.n_parts = 8, .top = 15, .top_scale = 63};
        encode_pairs(x, &p);
        tg_put_half(b->d, p.d);
        tg_put_half(b->m, p.dmin);
        put_scales(b->scale, &p);
        for (int h = 0; h < 4; h++)
            put_nibbles(b->q + 32 * h, p.q + 64 * h, 32);
    }
}

static void q5_k(const float *x, void *row, size_t n)
{
    for (tg_block_q5_k *b = row; n; n -= BLOCK, x += BLOCK, b++) {
        pairs p = {.n_parts = 8, .top = 31, .top_scale = 63};
        encode_pairs(x, &p);
        tg_put_half(b->d, p.d);
        tg_put_half(b->m, p.dmin);
        put_scales(b->scale, &p);
        put_bit(b->high, p.q, 4);
        for (int h = 0; h < 4; h++)
            put_nibbles(b->q + 32 * h, p.q + 64 * h, 32);
    }
}

static void q6_k(const float *x, void *row, size_t n)
{
    for (tg_block_q6_k *b = row; n; n -= BLOCK, x += BLOCK, b++) {
        scales s = {.half = 32, .half_scale = 128};
        encode_scales(x, &s);
        for (int h = 0; h < 2; h++)
            put_nibbles(b->q + 64 * h, s.q + 128 * h, 64);
        put_two_bits(b->high, s.q, 4);
        memcpy(b->scale, s.scale, sizeof b->scale);
        tg_put_half(b->d, s.d);
    }
}

/* ---- IQ4_NL: x = d * value[q], 16 values (tg_iq4_values) that lie closer where numbers do ---------------------------------- */

/* The nearest values, and which they are. */
VEC vf nl_nearest(vf v, vf *which)
{
    vf value = vf_set1(tg_iq4_values[0]);
    *which = vf_zero();
    for (int k = 1; k < 16; k++) {
        vf middle = vf_set1((float)(tg_iq4_values[k - 1] + tg_iq4_values[k]) / 2);
        value = vf_if_less(middle, v, vf_set1(tg_iq4_values[k]), value);
        *which = vf_if_less(middle, v, vf_set1((float)k), *which);
    }
    return value;
}

VEC bool nl_refit(const vf x[2], const vf w[2], float inverse, float *scale, float *gain)
{
    vf qq = vf_zero(), qx = vf_zero(), which;
    for (int i = 0; i < 2; i++) {
        vf q = nl_nearest(vf_mul(x[i], vf_set1(inverse)), &which), t = vf_mul(w[i], q);
        qq = vf_fma(t, q, qq);
        qx = vf_fma(t, x[i], qx);
    }
    float wqq = vf_sum(qq), wqx = vf_sum(qx);
    if (!(wqq > 0))
        return false;
    *scale = wqx / wqq;
    *gain = *scale * wqx;
    return true;
}

VEC float nl_search(const vf x[2])
{
    float max = vf_hmax(vf_max(x[0], x[1])), min = -vf_hmax(vf_sub(vf_zero(), vf_min(x[0], x[1])));
    float end = max > -min ? max : min, most = -INFINITY, best = 0, scale, gain;
    if (end == 0)
        return 0;
    vf w[2] = {vf_mul(x[0], x[0]), vf_mul(x[1], x[1])};
    vf floor = vf_set1(vf_sum(vf_add(w[0], w[1])) / (4 * VLEN));
    for (int i = 0; i < 2; i++)
        w[i] = vf_add(w[i], floor);
    for (int side = 0; side < 2; side++)
        for (int step = -7; step <= 7; step++)
            if (nl_refit(x, w, (float)(tg_iq4_values[side ? 15 : 0] + step) / end, &scale, &gain) && gain > most) {
                most = gain;
                best = scale;
            }
    for (int more = 0; more < 4; more++) {
        if (!nl_refit(x, w, 1 / best, &scale, &gain) || !(gain > most))
            break;
        most = gain;
        best = scale;
    }
    return best;
}

static void iq4_nl(const float *values, void *row, size_t n)
{
    for (tg_block_iq4_nl *b = row; n; n -= 32, values += 32, b++) {
        vf x[2] = {vf_load(values), vf_load(values + VLEN)}, which;
        float d = as_half(nl_search(x));
        int8_t q[32];
        for (int i = 0; i < 2; i++) {
            nl_nearest(vf_mul(x[i], vf_set1(d != 0 ? 1 / d : 0)), &which);
            vi_store_s8(q + i * VLEN, vi_from_float(which));
        }
        tg_put_half(b->d, d);
        put_nibbles(b->q, (const uint8_t *)q, 16);
    }
}

const tg_encode_kernels TG_ISA_SYMBOL(tg_encode_kernels) = {q2_k, q3_k, q4_k, q5_k, q6_k, iq4_nl};
