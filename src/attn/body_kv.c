/* body_kv.c - writing keys and values into a block of the cache, and widening a block to float32;
 * compiled once per instruction-set level. The layouts are told in view.h. */
#include "attn/attention.h"
#include "kernel/vec.h"

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

static int put_key(uint8_t *block, tg_type type, int at, int head_dim, const float *k)
{
    uint8_t *group = block + (size_t)(at / 16) * tg_kv_k_group_bytes(type, head_dim);
    int lane = at % 16, n_clamped = 0;
    uint16_t h[16];
    if (type == TG_Q8_0)
        return put_key_q8(group, lane, head_dim, k);
    for (int d = 0; d < head_dim; d++) {
        if (d % 16 == 0 && type != TG_F32)
            n_clamped += to_16_bits(k + d, head_dim - d, type, h);
        if (type == TG_F32)
            memcpy(group + 4 * (d * 16 + lane), &k[d], 4);
        else if (type == TG_F16)
            memcpy(group + 2 * (d * 16 + lane), &h[d % 16], 2);
        else
            memcpy(group + 4 * (d / 2 * 16 + lane) + d % 2 * 2, &h[d % 16], 2);
    }
    if (type == TG_BF16 && head_dim % 2)
        memset(group + 4 * (head_dim / 2 * 16 + lane) + 2, 0, 2);
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

static int put_value(uint8_t *block, tg_type type, int at, int head_dim, const float *v)
{
    int v_dim = tg_kv_v_dim(head_dim), n_clamped = 0;
    uint16_t h[16];
    if (type == TG_Q8_0)
        return put_value_q8(block, at, head_dim, v);
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
    uint8_t *kb = kv->k + (size_t)block * kv->k_block_stride + (size_t)head * kv->k_head_stride;
    uint8_t *vb = kv->v + (size_t)block * kv->v_block_stride + (size_t)head * kv->v_head_stride;
    int n_clamped = put_key(kb, kv->type_k, at, kv->head_dim, k);
    return n_clamped + put_value(vb, kv->type_v, at, kv->head_dim, v);
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
        vf_store(out + d * 16, vf_mul(vf_load(code), scale));
    }
}

/* The first n keys of a block (whole groups of 16) as [4][head_dim][16]. */
static void widen_k(const uint8_t *block, tg_type type, int head_dim, int n, float *out)
{
    size_t group_bytes = tg_kv_k_group_bytes(type, head_dim);
    for (int g = 0; g * 16 < n; g++, block += group_bytes, out += 16 * head_dim) {
        if (type == TG_Q8_0)
            widen_group_q8(block, head_dim, out);
        for (int d = 0; type == TG_F16 && d < head_dim; d++)
            vf_store(out + d * 16, vf_load_f16(block + d * 32));
        for (int d = 0; type == TG_BF16 && d < head_dim; d += 2) {
            vi pair = vi_load(block + d * 32);
            vf_store(out + d * 16, vf_bf16_first(pair));
            if (d + 1 < head_dim)
                vf_store(out + (d + 1) * 16, vf_bf16_second(pair));
        }
    }
}

/* The first n values of a block as [n][v_dim]. */
static void widen_v(const uint8_t *block, tg_type type, int v_dim, int n, float *out)
{
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
};
