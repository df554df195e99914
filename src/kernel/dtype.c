/* dtype.c - the table of number formats, and the plain decoders of floats and of blocks of 32.
 *
 * The decoders define what a format means; faster ones elsewhere must give the same bits. Products
 * and sums are rounded one by one (-ffp-contract=off), as numpy rounds them. */
#include "kernel/dtype.h"

#include <string.h>

#include "kernel/blocks.h"
#include "kernel/encode.h"

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

static void f32_to_f32(const void *row, float *out, size_t n)
{
    memcpy(out, row, n * 4);
}

static void f16_to_f32(const void *row, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = tg_half_at((const uint8_t *)row + 2 * i);
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

/* Q8_0: x = d * q */
static void q8_0_to_f32(const void *row, float *out, size_t n)
{
    for (const tg_block_q8_0 *b = row; n; n -= 32, out += 32, b++) {
        float d = tg_half_at(b->d);
        for (size_t i = 0; i < 32; i++)
            out[i] = d * (float)b->q[i];
    }
}

/* Q4_0: x = d * (q - 8) */
static void q4_0_to_f32(const void *row, float *out, size_t n)
{
    for (const tg_block_q4_0 *b = row; n; n -= 32, out += 32, b++) {
        float d = tg_half_at(b->d);
        for (size_t i = 0; i < 16; i++) {
            out[i] = d * (float)((b->q[i] & 15) - 8);
            out[16 + i] = d * (float)((b->q[i] >> 4) - 8);
        }
    }
}

/* Q4_1: x = d * q + m */
static void q4_1_to_f32(const void *row, float *out, size_t n)
{
    for (const tg_block_q4_1 *b = row; n; n -= 32, out += 32, b++) {
        float d = tg_half_at(b->d), m = tg_half_at(b->m);
        for (size_t i = 0; i < 16; i++) {
            out[i] = d * (float)(b->q[i] & 15) + m;
            out[16 + i] = d * (float)(b->q[i] >> 4) + m;
        }
    }
}

/* Code i of Q5_0 and Q5_1. */
static float code_of_5(const uint8_t q[16], const uint8_t high[4], size_t i)
{
    return (float)((q[i % 16] >> i / 16 * 4 & 15) | (high[i / 8] >> i % 8 & 1) << 4);
}

/* Q5_0: x = d * (q - 16) */
static void q5_0_to_f32(const void *row, float *out, size_t n)
{
    for (const tg_block_q5_0 *b = row; n; n -= 32, out += 32, b++) {
        float d = tg_half_at(b->d);
        for (size_t i = 0; i < 32; i++)
            out[i] = d * (code_of_5(b->q, b->high, i) - 16);
    }
}

/* Q5_1: x = d * q + m */
static void q5_1_to_f32(const void *row, float *out, size_t n)
{
    for (const tg_block_q5_1 *b = row; n; n -= 32, out += 32, b++) {
        float d = tg_half_at(b->d), m = tg_half_at(b->m);
        for (size_t i = 0; i < 32; i++)
            out[i] = d * code_of_5(b->q, b->high, i) + m;
    }
}

/* To add a type of blocks: its layout in blocks.h, a decoder in the file of its kin, an encoder beside those of encode.c or body_encode.c, a row. */
const tg_dtype tg_dtypes[TG_TYPE_COUNT] = {
    [TG_F32] = {TG_F32, "F32", 0, "F32", 1, 4, f32_to_f32, tg_encode_f32},
    [TG_F16] = {TG_F16, "F16", 1, "F16", 1, 2, f16_to_f32, tg_encode_f16},
    [TG_BF16] = {TG_BF16, "BF16", 30, "BF16", 1, 2, bf16_to_f32, tg_encode_bf16},
    [TG_Q8_0] = {TG_Q8_0, "Q8_0", 8, NULL, 32, sizeof(tg_block_q8_0), q8_0_to_f32, tg_encode_q8_0},
    [TG_Q4_0] = {TG_Q4_0, "Q4_0", 2, NULL, 32, sizeof(tg_block_q4_0), q4_0_to_f32, tg_encode_q4_0},
    [TG_Q4_1] = {TG_Q4_1, "Q4_1", 3, NULL, 32, sizeof(tg_block_q4_1), q4_1_to_f32, tg_encode_q4_1},
    [TG_Q5_0] = {TG_Q5_0, "Q5_0", 6, NULL, 32, sizeof(tg_block_q5_0), q5_0_to_f32, tg_encode_q5_0},
    [TG_Q5_1] = {TG_Q5_1, "Q5_1", 7, NULL, 32, sizeof(tg_block_q5_1), q5_1_to_f32, tg_encode_q5_1},
    [TG_Q2_K] = {TG_Q2_K, "Q2_K", 10, NULL, 256, sizeof(tg_block_q2_k), tg_q2_k_to_f32, tg_encode_q2_k},
    [TG_Q3_K] = {TG_Q3_K, "Q3_K", 11, NULL, 256, sizeof(tg_block_q3_k), tg_q3_k_to_f32, tg_encode_q3_k},
    [TG_Q4_K] = {TG_Q4_K, "Q4_K", 12, NULL, 256, sizeof(tg_block_q4_k), tg_q4_k_to_f32, tg_encode_q4_k},
    [TG_Q5_K] = {TG_Q5_K, "Q5_K", 13, NULL, 256, sizeof(tg_block_q5_k), tg_q5_k_to_f32, tg_encode_q5_k},
    [TG_Q6_K] = {TG_Q6_K, "Q6_K", 14, NULL, 256, sizeof(tg_block_q6_k), tg_q6_k_to_f32, tg_encode_q6_k},
    [TG_IQ4_NL] = {TG_IQ4_NL, "IQ4_NL", 20, NULL, 32, sizeof(tg_block_iq4_nl), tg_iq4_nl_to_f32,
                   tg_encode_iq4_nl},
    [TG_IQ4_XS] = {TG_IQ4_XS, "IQ4_XS", 23, NULL, 256, sizeof(tg_block_iq4_xs), tg_iq4_xs_to_f32, NULL},
    [TG_MXFP4] = {TG_MXFP4, "MXFP4", 39, NULL, 32, sizeof(tg_block_mxfp4), tg_mxfp4_to_f32, NULL},
};

/* Where data of a type lies, also for types without a decoder. ggml's table is indexed by its
 * number; an absent row is a number that was withdrawn or never given. */
static const tg_layout ggml_layouts[] = {
    [0] = {"F32", 1, 4},         [1] = {"F16", 1, 2},         [2] = {"Q4_0", 32, 18},
    [3] = {"Q4_1", 32, 20},      [6] = {"Q5_0", 32, 22},      [7] = {"Q5_1", 32, 24},
    [8] = {"Q8_0", 32, 34},      [9] = {"Q8_1", 32, 36},      [10] = {"Q2_K", 256, 84},
    [11] = {"Q3_K", 256, 110},   [12] = {"Q4_K", 256, 144},   [13] = {"Q5_K", 256, 176},
    [14] = {"Q6_K", 256, 210},   [15] = {"Q8_K", 256, 292},   [16] = {"IQ2_XXS", 256, 66},
    [17] = {"IQ2_XS", 256, 74},  [18] = {"IQ3_XXS", 256, 98}, [19] = {"IQ1_S", 256, 50},
    [20] = {"IQ4_NL", 32, 18},   [21] = {"IQ3_S", 256, 110},  [22] = {"IQ2_S", 256, 82},
    [23] = {"IQ4_XS", 256, 136}, [24] = {"I8", 1, 1},         [25] = {"I16", 1, 2},
    [26] = {"I32", 1, 4},        [27] = {"I64", 1, 8},        [28] = {"F64", 1, 8},
    [29] = {"IQ1_M", 256, 56},   [30] = {"BF16", 1, 2},       [34] = {"TQ1_0", 256, 54},
    [35] = {"TQ2_0", 256, 66},   [39] = {"MXFP4", 32, 17},    [40] = {"NVFP4", 64, 36},
    [41] = {"Q1_0", 128, 18},
};

static const tg_layout safetensors_layouts[] = {
    {"F32", 1, 4},         {"F16", 1, 2},     {"BF16", 1, 2},    {"F64", 1, 8},
    {"F8_E4M3", 1, 1},     {"F8_E5M2", 1, 1}, {"F8_E8M0", 1, 1}, {"F8_E4M3FNUZ", 1, 1},
    {"F8_E5M2FNUZ", 1, 1}, {"F6_E2M3", 4, 3}, {"F6_E3M2", 4, 3}, {"F4", 2, 1},
    {"C64", 1, 8},         {"BOOL", 1, 1},    {"I8", 1, 1},      {"U8", 1, 1},
    {"I16", 1, 2},         {"U16", 1, 2},     {"I32", 1, 4},     {"U32", 1, 4},
    {"I64", 1, 8},         {"U64", 1, 8},
};

enum {
    N_GGML = sizeof ggml_layouts / sizeof *ggml_layouts,
    N_SAFETENSORS = sizeof safetensors_layouts / sizeof *safetensors_layouts,
};

const tg_dtype *tg_dtype_by_gguf_id(uint32_t id, const tg_layout **known)
{
    if (known)
        *known = id < N_GGML && ggml_layouts[id].name ? &ggml_layouts[id] : NULL;
    for (int i = 0; i < TG_TYPE_COUNT; i++)
        if ((uint32_t)tg_dtypes[i].gguf_id == id)
            return &tg_dtypes[i];
    return NULL;
}

const tg_dtype *tg_dtype_by_safetensors_name(const char *name, const tg_layout **known)
{
    if (known) {
        *known = NULL;
        for (int i = 0; i < N_SAFETENSORS && !*known; i++)
            if (strcmp(safetensors_layouts[i].name, name) == 0)
                *known = &safetensors_layouts[i];
    }
    for (int i = 0; i < TG_TYPE_COUNT; i++)
        if (tg_dtypes[i].safetensors_name && strcmp(tg_dtypes[i].safetensors_name, name) == 0)
            return &tg_dtypes[i];
    return NULL;
}
