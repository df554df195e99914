/* dtype.c - the table of number formats and their plain decoders.
 *
 * The decoders define what a format means; faster ones elsewhere must give the same bits. Products
 * and sums are rounded one by one (-ffp-contract=off), as numpy rounds them. */
#include "kernel/dtype.h"

#include <string.h>

float tg_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exp = h >> 10 & 31, man = h & 0x3ff, bits;
    if (exp == 31) {
        bits = sign | 0x7f800000 | man << 13;
    } else if (exp) {
        bits = sign | (exp + 112) << 23 | man << 13;
    } else if (man) { /* subnormal: normalise */
        int shift = __builtin_clz(man) - 21;
        bits = sign | (uint32_t)(113 - shift) << 23 | (man << shift & 0x3ff) << 13;
    } else {
        bits = sign;
    }
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

uint16_t tg_f32_to_f16(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, 4);
    uint32_t sign = bits >> 16 & 0x8000, mag = bits & 0x7fffffff;
    if (mag > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (mag >> 13 & 0x1ff)); /* NaN, made quiet */
    if (mag >= 0x477ff000)
        return (uint16_t)(sign | 0x7c00); /* rounds to infinity */
    if (mag < 0x33000001)
        return (uint16_t)sign; /* rounds to zero */
    uint32_t man, half, rest;
    if (mag < 0x38800000) { /* subnormal in half precision */
        int shift = 126 - (int)(mag >> 23);
        man = (mag & 0x7fffff) | 0x800000;
        half = man >> shift;
        rest = man << (32 - shift);
    } else {
        half = (mag >> 13) - (112 << 10);
        rest = mag << 19;
    }
    if (rest > 0x80000000 || (rest == 0x80000000 && (half & 1)))
        half++; /* a carry into the exponent is the right next number */
    return (uint16_t)(sign | half);
}

static float half_at(const uint8_t *p)
{
    uint16_t h;
    memcpy(&h, p, 2);
    return tg_f16_to_f32(h);
}

static void f32_to_f32(const void *row, float *out, size_t n)
{
    memcpy(out, row, n * 4);
}

static void f16_to_f32(const void *row, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = half_at((const uint8_t *)row + 2 * i);
}

static void bf16_to_f32(const void *row, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t h;
        memcpy(&h, (const uint8_t *)row + 2 * i, 2);
        uint32_t bits = (uint32_t)h << 16;
        memcpy(out + i, &bits, 4);
    }
}

/* Q8_0: f16 d, int8 q[32]; x = d * q */
static void q8_0_to_f32(const void *row, float *out, size_t n)
{
    const uint8_t *p = row;
    for (size_t i = 0; i < n; i += 32, p += 34) {
        float d = half_at(p);
        for (size_t j = 0; j < 32; j++)
            out[i + j] = d * (float)(int8_t)p[2 + j];
    }
}

/* Q4_0: f16 d, then 16 bytes whose low halves are q[0..15] and high halves q[16..31]; x = d * (q - 8) */
static void q4_0_to_f32(const void *row, float *out, size_t n)
{
    const uint8_t *p = row;
    for (size_t i = 0; i < n; i += 32, p += 18) {
        float d = half_at(p);
        for (size_t j = 0; j < 16; j++) {
            out[i + j] = d * (float)((p[2 + j] & 15) - 8);
            out[i + 16 + j] = d * (float)((p[2 + j] >> 4) - 8);
        }
    }
}

/* Q4_1: f16 d, f16 m, halves as in Q4_0; x = d * q + m */
static void q4_1_to_f32(const void *row, float *out, size_t n)
{
    const uint8_t *p = row;
    for (size_t i = 0; i < n; i += 32, p += 20) {
        float d = half_at(p), m = half_at(p + 2);
        for (size_t j = 0; j < 16; j++) {
            out[i + j] = d * (float)(p[4 + j] & 15) + m;
            out[i + 16 + j] = d * (float)(p[4 + j] >> 4) + m;
        }
    }
}

const tg_dtype tg_dtypes[TG_TYPE_COUNT] = {
    [TG_F32] = {TG_F32, "F32", 0, "F32", 1, 4, f32_to_f32},
    [TG_F16] = {TG_F16, "F16", 1, "F16", 1, 2, f16_to_f32},
    [TG_BF16] = {TG_BF16, "BF16", 30, "BF16", 1, 2, bf16_to_f32},
    [TG_Q8_0] = {TG_Q8_0, "Q8_0", 8, NULL, 32, 34, q8_0_to_f32},
    [TG_Q4_0] = {TG_Q4_0, "Q4_0", 2, NULL, 32, 18, q4_0_to_f32},
    [TG_Q4_1] = {TG_Q4_1, "Q4_1", 3, NULL, 32, 20, q4_1_to_f32},
};

/* ggml's numbers, for telling a type that is not supported from one that does not exist. */
static const char *const ggml_names[] = {
    "F32",    "F16",     "Q4_0",  "Q4_1",  NULL,      NULL,     "Q5_0",   "Q5_1",
    "Q8_0",   "Q8_1",    "Q2_K",  "Q3_K",  "Q4_K",    "Q5_K",   "Q6_K",   "Q8_K",
    "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S", "IQ2_S", "IQ4_XS",
    "I8",     "I16",     "I32",   "I64",   "F64",     "IQ1_M",  "BF16",   NULL,
    NULL,     NULL,      "TQ1_0", "TQ2_0", NULL,      NULL,     NULL,     "MXFP4",
};

const tg_dtype *tg_dtype_by_gguf_id(uint32_t id, const char **known_name)
{
    if (known_name)
        *known_name = id < sizeof ggml_names / sizeof *ggml_names ? ggml_names[id] : NULL;
    for (int i = 0; i < TG_TYPE_COUNT; i++)
        if ((uint32_t)tg_dtypes[i].gguf_id == id)
            return &tg_dtypes[i];
    return NULL;
}

const tg_dtype *tg_dtype_by_safetensors_name(const char *name)
{
    for (int i = 0; i < TG_TYPE_COUNT; i++)
        if (tg_dtypes[i].safetensors_name && strcmp(tg_dtypes[i].safetensors_name, name) == 0)
            return &tg_dtypes[i];
    return NULL;
}
