/* blocks.h - how blocks of the quantised types lie in a file.
 *
 * All fields are bytes: a block may lie at any address. `d` and `m` are float16, little-endian. The layouts are
 * ggml's; what a block means is said beside its decoder (dtype.c, dtype_k.c, dtype_table.c). */
#ifndef TG_KERNEL_BLOCKS_H
#define TG_KERNEL_BLOCKS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernel/dtype.h"

#define TG_BLOCK_BYTES(name, bytes) \
    _Static_assert(sizeof(tg_block_##name) == (bytes), "the size of a block of " #name)

typedef struct tg_block_q8_0 {
    uint8_t d[2];
    int8_t q[32];
} tg_block_q8_0;
TG_BLOCK_BYTES(q8_0, 34);

/* Nibbles: low halves are columns 0 .. 15, high halves 16 .. 31. */
typedef struct tg_block_q4_0 {
    uint8_t d[2], q[16];
} tg_block_q4_0;
TG_BLOCK_BYTES(q4_0, 18);

typedef struct tg_block_q4_1 {
    uint8_t d[2], m[2], q[16];
} tg_block_q4_1;
TG_BLOCK_BYTES(q4_1, 20);

/* high: bit c is bit 4 of column c's code. */
typedef struct tg_block_q5_0 {
    uint8_t d[2], high[4], q[16];
} tg_block_q5_0;
TG_BLOCK_BYTES(q5_0, 22);

typedef struct tg_block_q5_1 {
    uint8_t d[2], m[2], high[4], q[16];
} tg_block_q5_1;
TG_BLOCK_BYTES(q5_1, 24);

/* 16 scales, for 16 columns each: the scale in the low half, the minimum in the high one. */
typedef struct tg_block_q2_k {
    uint8_t scale[16], q[64], d[2], m[2];
} tg_block_q2_k;
TG_BLOCK_BYTES(q2_k, 84);

typedef struct tg_block_q3_k {
    uint8_t high[32], q[64], scale[12], d[2];
} tg_block_q3_k;
TG_BLOCK_BYTES(q3_k, 110);

/* scale: tg_q4_k_scale. */
typedef struct tg_block_q4_k {
    uint8_t d[2], m[2], scale[12], q[128];
} tg_block_q4_k;
TG_BLOCK_BYTES(q4_k, 144);

typedef struct tg_block_q5_k {
    uint8_t d[2], m[2], scale[12], high[32], q[128];
} tg_block_q5_k;
TG_BLOCK_BYTES(q5_k, 176);

typedef struct tg_block_q6_k {
    uint8_t q[128], high[64];
    int8_t scale[16];
    uint8_t d[2];
} tg_block_q6_k;
TG_BLOCK_BYTES(q6_k, 210);

typedef struct tg_block_iq4_nl {
    uint8_t d[2], q[16];
} tg_block_iq4_nl;
TG_BLOCK_BYTES(iq4_nl, 18);

typedef struct tg_block_iq4_xs {
    uint8_t d[2], scale_high[2], scale[4], q[128];
} tg_block_iq4_xs;
TG_BLOCK_BYTES(iq4_xs, 136);

/* e: the exponent of a power of two, as in E8M0. */
typedef struct tg_block_mxfp4 {
    uint8_t e, q[16];
} tg_block_mxfp4;
TG_BLOCK_BYTES(mxfp4, 17);

#undef TG_BLOCK_BYTES

static inline float tg_half_at(const uint8_t p[2])
{
    uint16_t h;
    memcpy(&h, p, 2);
    return tg_f16_to_f32(h);
}

static inline void tg_put_half(uint8_t p[2], float f)
{
    uint16_t h = tg_f32_to_f16(f);
    memcpy(p, &h, 2);
}

/* Scale and minimum (6 bits each) of the i-th of 8 parts of a block of Q4_K or Q5_K: the first four have a byte
 * each, whose upper two bits are those of the last four, whose lower four bits come at the end. */
static inline void tg_q4_k_scale(const uint8_t packed[12], size_t i, int *scale, int *min)
{
    if (i < 4) {
        *scale = packed[i] & 63;
        *min = packed[4 + i] & 63;
    } else {
        *scale = (packed[4 + i] & 15) | packed[i - 4] >> 6 << 4;
        *min = packed[4 + i] >> 4 | packed[i] >> 6 << 4;
    }
}

/* Scale of the i-th of 16 parts of a block of Q3_K: -32 .. 31. */
static inline int tg_q3_k_scale(const uint8_t packed[12], size_t i)
{
    int low = packed[i % 8] >> i / 8 * 4 & 15, high = packed[8 + i % 4] >> i / 4 * 2 & 3;
    return (low | high << 4) - 32;
}

/* What the codes of IQ4_NL and IQ4_XS stand for; those of MXFP4, times 2. */
extern const int8_t tg_iq4_values[16], tg_mxfp4_values[16];

/* 2^(e - 128), what a code of MXFP4 is multiplied by. */
static inline float tg_mxfp4_scale(uint8_t e)
{
    uint32_t bits = e < 2 ? 0x200000u << e : (uint32_t)(e - 1) << 23;
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

/* The decoders that are not in dtype.c; see tg_dtype. */
void tg_q2_k_to_f32(const void *row, float *out, size_t n);
void tg_q3_k_to_f32(const void *row, float *out, size_t n);
void tg_q4_k_to_f32(const void *row, float *out, size_t n);
void tg_q5_k_to_f32(const void *row, float *out, size_t n);
void tg_q6_k_to_f32(const void *row, float *out, size_t n);
void tg_iq4_nl_to_f32(const void *row, float *out, size_t n);
void tg_iq4_xs_to_f32(const void *row, float *out, size_t n);
void tg_mxfp4_to_f32(const void *row, float *out, size_t n);

#endif
