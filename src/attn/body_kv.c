/* body_kv.c - rotating, writing keys and values into a block of the cache, and widening a block to float32;
 * compiled once per instruction-set level. The layouts are told in view.h. */
#include "attn/attention.h"
#include "kernel/vec.h"

/* ---- rotation ------------------------------------------------------------------------------------ */

/* Of dimension d mod 64: without them, what all keys have in common could add up in one dimension. They are
 * the bits of 2^64 / golden ratio. */
static const float sign[64] = {
    -1, 1, -1, 1, -1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, 1,
    1, -1, 1, -1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, -1, 1,
    -1, 1, 1, -1, -1, -1, 1, -1, -1, 1, 1, -1, -1, -1, -1, 1,
    -1, -1, -1, 1, -1, -1, 1, 1, 1, -1, -1, -1, -1, 1, 1, -1,
};

/* Lanes `by` apart become their sum and their difference. */
VEC vf butterfly(vf x, const int by)
{
    float turn[16];
    for (int i = 0; i < 16; i++)
        turn[i] = i & by ? -1.0f : 1.0f;
    return vf_add(vf_swap(x, by), vf_mul(x, vf_load(turn)));
}

VEC vf butterflies(vf x, int mixed)
{
    if (mixed > 1)
        x = butterfly(x, 1);
    if (mixed > 2)
        x = butterfly(x, 2);
    if (mixed > 4)
        x = butterfly(x, 4);
    return mixed > 8 ? butterfly(x, 8) : x;
}

/* The same for vectors: `by` numbers apart. */
VEC void butterflies_far(float *x, int n, int by)
{
    for (int first = 0; first < n; first += 2 * by)
        for (int d = first; d < first + by; d += 16) {
            vf a = vf_load(x + d), b = vf_load(x + d + by);
            vf_store(x + d, vf_add(a, b));
            vf_store(x + d + by, vf_sub(a, b));
        }
}

/* Signs, butterflies near and far; back in the other order. n dimensions, from a multiple of 64 on, `mixed`
 * of them at a time, which divides n. */
static void turn(float *x, int n, int mixed, bool back)
{
    const float norm = 1.0f / sqrtf((float)mixed);
    for (int d = 0; d < n; d += 16) {
        int m = n - d < 16 ? n - d : 16;
        vf v = m == 16 ? vf_load(x + d) : vf_load_n(x + d, m);
        vf scale = vf_mul(vf_load(sign + d % 64), vf_set1(norm));
        v = back ? butterflies(v, mixed) : butterflies(vf_mul(v, scale), mixed);
        v = back && mixed <= 16 ? vf_mul(v, scale) : v;
        if (m == 16)
            vf_store(x + d, v);
        else
            vf_store_n(x + d, v, m);
    }
    for (int by = 16; by < mixed; by *= 2)
        butterflies_far(x, n, by);
    for (int d = 0; back && mixed > 16 && d < n; d += 16)
        vf_store(x + d, vf_mul(vf_load(x + d), vf_mul(vf_load(sign + d % 64), vf_set1(norm))));
}

static void rotate(float *x, int head_dim, bool back)
{
    turn(x, head_dim, tg_kv_rotation(head_dim), back);
}

/* ---- one number format ------------------------------------------------------------------------- */

VEC vf clamped(vf x, float most, int *n_clamped)
{
    vf limit = vf_set1(most);
    *n_clamped += (int)vf_sum(vf_if_less(limit, vf_abs(x), vf_set1(1.0f), vf_zero()));
    return vf_min(limit, vf_max(vf_sub(vf_zero(), limit), x));
}

/* n <= 16 numbers in 16 bits each; the rest of h is zero. Returns how many were clamped. */
static int to_16_bits(const float *x, int n, tg_type type, uint16_t h[16])
{
    vf v = n >= 16 ? vf_load(x) : vf_load_n(x, n);
    int n_clamped = 0;
    if (type == TG_F16)
        vf_store_f16(h, clamped(v, 65504.0f, &n_clamped));
    else
        vi_store_s16((int16_t *)h, vi_to_bf16(clamped(v, 0x1.fep127f, &n_clamped)));
    return n_clamped;
}

/* n <= 32 numbers as codes with one scale; the rest of `code` is zero. A NaN makes the scale NaN. */
static int to_q8_0(const float *x, int n, int8_t code[32], uint16_t *scale)
{
    float padded[32] = {0};
    memcpy(padded, x, (size_t)n * sizeof *x);
    int n_clamped = 0;
    vf lo = clamped(vf_load(padded), 127.0f * 65504.0f, &n_clamped);
    vf hi = clamped(vf_load(padded + 16), 127.0f * 65504.0f, &n_clamped);
    float taint = vf_sum(vf_fma(lo, vf_zero(), vf_mul(hi, vf_zero()))); /* 0, or NaN when there is one */
    float amax = vf_hmax(vf_max(vf_abs(lo), vf_abs(hi)));
    *scale = tg_f32_to_f16(amax / 127.0f + taint);
    if (tg_f16_to_f32(*scale) * 127.0f < amax && *scale < 0x7bff)
        ++*scale; /* up: no code is cut off, however few bits a small scale has */
    float d = tg_f16_to_f32(*scale);
    if (!(d > 0.0f)) { /* nothing, or NaN */
        memset(code, 0, 32);
        return n_clamped;
    }
    vf most = vf_set1(127.0f), inverse = vf_set1(1.0f / d);
    vi_store_s8(code, vi_from_float(vf_max(vf_sub(vf_zero(), most), vf_min(most, vf_mul(lo, inverse)))));
    vi_store_s8(code + 16, vi_from_float(vf_max(vf_sub(vf_zero(), most), vf_min(most, vf_mul(hi, inverse)))));
    return n_clamped;
}

/* The levels of the codes 8 to 15 of values (TG_KV_LEVELS). */
static const float level[8] = {6, 18, 31, 45, 60, 77, 98, 127};

/* to[i] of the level i that is nearest to each size (which is not negative). */
VEC vf nearest(vf size, const float to[8])
{
    vf y = vf_set1(to[0]);
    for (int i = 1; i < 8; i++)
        y = vf_if_less(vf_set1((level[i - 1] + level[i]) / 2), size, vf_set1(to[i]), y);
    return y;
}

/* The level next to each x of a key, or to each size of a value. */
VEC vf level_of(vf x, const bool key)
{
    vf whole = vf_from_int(vi_from_float(x));
    return key ? vf_max(vf_set1(-16.0f), vf_min(vf_set1(15.0f), whole)) : nearest(x, level);
}

VEC vi code_of(vf x, vf inverse, const bool key)
{
    static const float number[8] = {8, 9, 10, 11, 12, 13, 14, 15};
    if (key)
        return vi_from_float(vf_add(level_of(vf_mul(x, inverse), true), vf_set1(16.0f)));
    vf code = nearest(vf_mul(vf_abs(x), inverse), number);
    return vi_from_float(vf_if_less(x, vf_zero(), vf_sub(vf_set1(15.0f), code), code));
}

/* Squared error of 32 numbers of a key, or sizes of a value, with the given scale. */
VEC float error_of(vf lo, vf hi, float scale, const bool key)
{
    vf s = vf_set1(scale), inverse = vf_set1(1.0f / scale);
    vf a = vf_sub(lo, vf_mul(level_of(vf_mul(lo, inverse), key), s));
    vf b = vf_sub(hi, vf_mul(level_of(vf_mul(hi, inverse), key), s));
    return vf_sum(vf_fma(a, a, vf_mul(b, b)));
}

/* 32 rotated numbers as codes with one scale, the best of six: a key is put once and read as often as tokens
 * follow. Of keys there is one level more on the negative side, so that the largest goes there, if need be
 * with a negative scale. A NaN makes the scale NaN. */
VEC void to_q4(const float x[32], const bool key, int8_t code[32], uint16_t *scale)
{
    static const float part[2][16] = {{0.9f, 0.95f, 1, 1.05f, 1.1f, 1.15f},
                                      {0.85f, 0.88f, 0.91f, 0.94f, 0.97f, 1}};
    enum { N_PARTS = 6 };
    float scales[16], least = INFINITY;
    uint16_t half[16];
    vf lo = vf_load(x), hi = vf_load(x + 16);
    float taint = vf_sum(vf_fma(lo, vf_zero(), vf_mul(hi, vf_zero()))); /* 0, or NaN when there is one */
    float amax = vf_hmax(vf_max(vf_abs(lo), vf_abs(hi)));
    bool flip = key && vf_hmax(vf_max(lo, hi)) == amax;
    lo = flip ? vf_sub(vf_zero(), lo) : lo;
    hi = flip ? vf_sub(vf_zero(), hi) : hi;
    vf seen_lo = key ? lo : vf_abs(lo), seen_hi = key ? hi : vf_abs(hi);
    vf_store_f16(half, vf_mul(vf_load(part[key]), vf_set1(amax / (key ? 16.0f : level[7]))));
    vf_store(scales, vf_load_f16(half));
    int best = -1;
    for (int i = 0; taint == 0.0f && i < N_PARTS; i++) {
        float error = scales[i] > 0.0f ? error_of(seen_lo, seen_hi, scales[i], key) : INFINITY;
        if (error < least) {
            least = error;
            best = i;
        }
    }
    if (best < 0) { /* nothing, or NaN */
        memset(code, key ? 16 : 8, 32);
        *scale = tg_f32_to_f16(taint);
        return;
    }
    vf inverse = vf_set1(1.0f / scales[best]);
    vi_store_s8(code, code_of(lo, inverse, key));
    vi_store_s8(code + 16, code_of(hi, inverse, key));
    *scale = (uint16_t)(half[best] | (flip ? 0x8000 : 0));
}

enum { SPAN = 128 }; /* dimensions rotated together, whatever head_dim is: whole blocks of scales and signs */

/* A span of a key or value from dimension `first` on, padded with zeros. What would be too large for a scale
 * after the rotation is clamped before. Returns how many were. */
static int rotated(const float *x, int first, int head_dim, float out[SPAN])
{
    int n_clamped = 0, n = head_dim - first < SPAN ? head_dim - first : SPAN;
    memset(out, 0, SPAN * sizeof *out);
    memcpy(out, x + first, (size_t)n * sizeof *x);
    vf most = vf_zero();
    for (int d = 0; d < n; d += 16)
        most = vf_max(vf_abs(vf_load(out + d)), most); /* a NaN is passed over */
    for (int d = 0; d < n && vf_hmax(most) > TG_KV_Q4_MOST; d += 16) /* hardly ever */
        vf_store(out + d, clamped(vf_load(out + d), TG_KV_Q4_MOST, &n_clamped));
    turn(out, n, tg_kv_rotation(head_dim), false);
    return n_clamped;
}

/* Block b of 32 numbers of a key or value; its span is rotated into `span` when the first block of it comes.
 * Returns how many numbers were clamped. */
VEC int block_q4(const float *x, int b, int head_dim, const bool key, float span[SPAN], int8_t code[32],
                 uint16_t *scale)
{
    int n_clamped = b * 32 % SPAN == 0 ? rotated(x, b * 32, head_dim, span) : 0;
    to_q4(span + b * 32 % SPAN, key, code, scale);
    return n_clamped;
}

/* ---- keys -------------------------------------------------------------------------------------- */

static int put_key_q8(uint8_t *group, int lane, int head_dim, const float *k)
{
    int n_clamped = 0, n = tg_kv_scales(head_dim);
    for (int b = 0; b < n; b++) {
        int8_t code[32];
        uint16_t scale;
        n_clamped += to_q8_0(k + b * 32, head_dim - b * 32 < 32 ? head_dim - b * 32 : 32, code, &scale);
        for (int i = 0; i < 32; i++)
            group[((b * 8 + i / 4) * 16 + lane) * 4 + i % 4] = (uint8_t)(code[i] + 128);
        memcpy(group + n * 512 + (b * 16 + lane) * 2, &scale, 2);
    }
    return n_clamped;
}

static int put_key_q4(uint8_t *group, int lane, int head_dim, const float *k)
{
    float span[SPAN];
    int n_clamped = 0, n = tg_kv_scales(head_dim);
    for (int b = 0; b < n; b++) {
        int8_t code[32];
        uint16_t scale;
        n_clamped += block_q4(k, b, head_dim, true, span, code, &scale);
        uint8_t fifth[4] = {0};
        for (int i = 0; i < 32; i++)
            fifth[i % 4] |= (uint8_t)(code[i] >> 4 << i / 4);
        for (int i = 0; i < 16; i++) {
            const int8_t *low = code + i / 4 * 8 + i % 4;
            group[((b * 4 + i / 4) * 16 + lane) * 4 + i % 4] = (uint8_t)((low[0] & 15) | (low[4] & 15) << 4);
        }
        memcpy(group + n * 256 + (b * 16 + lane) * 4, fifth, 4);
        memcpy(group + n * 320 + (b * 16 + lane) * 2, &scale, 2);
    }
    return n_clamped;
}

static int put_key(uint8_t *block, tg_type type, int at, int head_dim, const float *k)
{
    uint8_t *group = block + tg_kv_k_group_at(type, head_dim, at / 16);
    size_t stride = tg_kv_k_stride(type);
    int lane = at % 16, n_clamped = 0;
    uint16_t h[16];
    if (type == TG_Q8_0)
        return put_key_q8(group, lane, head_dim, k);
    if (type == TG_Q4)
        return put_key_q4(group, lane, head_dim, k);
    for (int d = 0; d < head_dim; d++) {
        if (d % 16 == 0 && type != TG_F32)
            n_clamped += to_16_bits(k + d, head_dim - d, type, h);
        if (type == TG_F32)
            memcpy(group + (size_t)d * stride + 4 * lane, &k[d], 4);
        else if (type == TG_F16)
            memcpy(group + (size_t)d * stride + 2 * lane, &h[d % 16], 2);
        else
            memcpy(group + (size_t)(d / 2) * stride + 4 * lane + d % 2 * 2, &h[d % 16], 2);
    }
    if (type == TG_BF16 && head_dim % 2)
        memset(group + (size_t)(head_dim / 2) * stride + 4 * lane + 2, 0, 2);
    return n_clamped;
}

/* ---- values ------------------------------------------------------------------------------------ */

static int put_value_q8(uint8_t *block, int at, int head_dim, const float *v)
{
    int n_clamped = 0, v_dim = tg_kv_v_dim(head_dim);
    for (int b = 0; b < tg_kv_scales(head_dim); b++) {
        int8_t code[32];
        uint16_t scale;
        n_clamped += to_q8_0(v + b * 32, head_dim - b * 32 < 32 ? head_dim - b * 32 : 32, code, &scale);
        for (int i = 0; i < 32 && b * 32 + i < v_dim; i++)
            block[(at / 2 * v_dim + b * 32 + i) * 2 + at % 2] = (uint8_t)code[i];
        memcpy(block + TG_KV_BLOCK * (size_t)v_dim + (size_t)(b * TG_KV_BLOCK + at) * 2, &scale, 2);
    }
    return n_clamped;
}

static int put_value_q4(uint8_t *block, int at, int head_dim, const float *v)
{
    float span[SPAN];
    int n_clamped = 0, n = tg_kv_scales(head_dim);
    for (int b = 0; b < n; b++) {
        int8_t code[32];
        uint16_t scale;
        n_clamped += block_q4(v, b, head_dim, false, span, code, &scale);
        uint8_t *to = block + (size_t)((at / 2 * n + b) * 32 + at % 2);
        for (int i = 0; i < 16; i++)
            to[2 * i] = (uint8_t)(code[i] | code[16 + i] << 4);
        memcpy(block + (size_t)(TG_KV_BLOCK * 16 * n + (b * TG_KV_BLOCK + at) * 2), &scale, 2);
    }
    return n_clamped;
}

static int put_value(uint8_t *block, tg_type type, int at, int head_dim, const float *v)
{
    int v_dim = tg_kv_v_dim(head_dim), n_clamped = 0;
    uint16_t h[16];
    if (type == TG_Q8_0)
        return put_value_q8(block, at, head_dim, v);
    if (type == TG_Q4)
        return put_value_q4(block, at, head_dim, v);
    for (int d = 0; d < v_dim; d += 16) {
        int n = head_dim - d < 16 ? head_dim - d : 16;
        uint8_t *to = block + ((size_t)at * (size_t)v_dim + (size_t)d) * (type == TG_F32 ? 4 : 2);
        if (type == TG_F32) {
            vf_store((float *)(void *)to, n == 16 ? vf_load(v + d) : vf_load_n(v + d, n));
            continue;
        }
        n_clamped += to_16_bits(v + d, n, type, h);
        for (int i = 0; type == TG_BF16 && i < 16; i++)
            memcpy(block + ((at / 2 * v_dim + d + i) * 2 + at % 2) * 2, &h[i], 2);
        if (type == TG_F16)
            memcpy(to, h, sizeof h);
    }
    return n_clamped;
}

static int put(const tg_kv_view *kv, int block, int at, int head, const float *k, const float *v)
{
    int n_clamped = put_key(tg_kv_at(kv, block, head, false), kv->type_k, at, kv->head_dim, k);
    return n_clamped + put_value(tg_kv_at(kv, block, head, true), kv->type_v, at, kv->head_dim, v);
}

/* ---- widening ---------------------------------------------------------------------------------- */

static void widen_group_q8(const uint8_t *group, int head_dim, float *out)
{
    int n = tg_kv_scales(head_dim);
    for (int d = 0; d < head_dim; d++) {
        vf scale = vf_load_f16(group + n * 512 + d / 32 * 32);
        float code[16];
        for (int lane = 0; lane < 16; lane++)
            code[lane] = (float)(group[(d / 4 * 16 + lane) * 4 + d % 4] - 128);
        vf_store(out + d * TG_KV_BLOCK, vf_mul(vf_load(code), scale));
    }
}

static void widen_group_q4(const uint8_t *group, int head_dim, float *out)
{
    int n = tg_kv_scales(head_dim);
    for (int lane = 0; lane < 16; lane++) {
        float x[SPAN];
        for (int d = 0, from = 0; d < head_dim; d++) {
            uint16_t scale;
            memcpy(&scale, group + n * 320 + (d / 32 * 16 + lane) * 2, 2);
            uint8_t pair = group[(d / 8 * 16 + lane) * 4 + d % 4];
            uint8_t fifth = group[n * 256 + (d / 32 * 16 + lane) * 4 + d % 4];
            int code = (pair >> d % 8 / 4 * 4 & 15) + (fifth >> d % 32 / 4 & 1) * 16;
            x[d - from] = (float)(code - 16) * tg_f16_to_f32(scale);
            if (d - from + 1 < SPAN && d + 1 < head_dim)
                continue;
            turn(x, d + 1 - from, tg_kv_rotation(head_dim), true);
            for (; from <= d; from++)
                out[from * TG_KV_BLOCK + lane] = x[from % SPAN];
        }
    }
}

/* The first n keys of a block (whole groups of 16) as [head_dim][64]. */
static void widen_k(const uint8_t *block, tg_type type, int head_dim, int n, float *out)
{
    const int n_groups = (n + 15) / 16;
    const size_t stride = tg_kv_k_stride(type);
    for (int g = 0; g < n_groups; g++) {
        if (type == TG_Q8_0)
            widen_group_q8(block + tg_kv_k_group_at(type, head_dim, g), head_dim, out + g * 16);
        if (type == TG_Q4)
            widen_group_q4(block + tg_kv_k_group_at(type, head_dim, g), head_dim, out + g * 16);
    }
    for (int d = 0; type == TG_F16 && d < head_dim; d++, block += stride, out += TG_KV_BLOCK)
        for (int g = 0; g < n_groups; g++)
            vf_store(out + g * 16, vf_load_f16(block + g * 32));
    for (int d = 0; type == TG_BF16 && d < head_dim; d += 2, block += stride, out += 2 * TG_KV_BLOCK)
        for (int g = 0; g < n_groups; g++) {
            vi pair = vi_load(block + g * 64);
            vf_store(out + g * 16, vf_bf16_first(pair));
            if (d + 1 < head_dim)
                vf_store(out + TG_KV_BLOCK + g * 16, vf_bf16_second(pair));
        }
}

static const int8_t levels[16] = TG_KV_LEVELS;

static void widen_values_q4(const uint8_t *block, int head_dim, int n, float *out)
{
    int n_scales = tg_kv_scales(head_dim), v_dim = tg_kv_v_dim(head_dim);
    for (int j = 0; j < n; j++, out += v_dim) {
        memset(out + head_dim, 0, (size_t)(v_dim - head_dim) * sizeof *out);
        for (int d = 0; d < head_dim; d++) {
            uint16_t scale;
            memcpy(&scale, block + (TG_KV_BLOCK * 16 * n_scales + (d / 32 * TG_KV_BLOCK + j) * 2), 2);
            uint8_t pair = block[(j / 2 * n_scales + d / 32) * 32 + d % 16 * 2 + j % 2];
            out[d] = (float)levels[pair >> d % 32 / 16 * 4 & 15] * tg_f16_to_f32(scale);
        }
        rotate(out, head_dim, true);
    }
}

/* The first n values of a block as [n][v_dim]. */
static void widen_v(const uint8_t *block, tg_type type, int head_dim, int n, float *out)
{
    int v_dim = tg_kv_v_dim(head_dim);
    if (type == TG_Q4) {
        widen_values_q4(block, head_dim, n, out);
        return;
    }
    for (int j = 0; j < n; j++)
        for (int d = 0; d < v_dim; d += 16) {
            size_t single = (size_t)j * (size_t)v_dim + (size_t)d;
            size_t paired = (size_t)(j / 2) * (size_t)v_dim + (size_t)d;
            vf x;
            if (type == TG_F16) {
                x = vf_load_f16(block + 2 * single);
            } else if (type == TG_BF16) {
                vi pair = vi_load(block + 4 * paired);
                x = j % 2 ? vf_bf16_second(pair) : vf_bf16_first(pair);
            } else {
                float code[16];
                uint16_t scale;
                memcpy(&scale, block + TG_KV_BLOCK * v_dim + (d / 32 * TG_KV_BLOCK + j) * 2, 2);
                for (int i = 0; i < 16; i++)
                    code[i] = (float)(int8_t)block[2 * (paired + (size_t)i) + (size_t)(j % 2)];
                x = vf_mul(vf_load(code), vf_set1(tg_f16_to_f32(scale)));
            }
            vf_store(out + single, x);
        }
}

extern const tg_kv_kernels TG_ISA_SYMBOL(tg_kv_kernels);
const tg_kv_kernels TG_ISA_SYMBOL(tg_kv_kernels) = {
    .put = put,
    .widen_k = widen_k,
    .widen_v = widen_v,
    .rotate = rotate,
};
