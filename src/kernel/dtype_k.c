/* dtype_k.c - plain decoders of the K types: blocks of 256 numbers in parts of 16 or 32, whose scales and
 * minima are small integers under a float16 of the block. */
#include "kernel/blocks.h"

/* Q2_K: 2 bits. In each half of the block, bits 2j and 2j+1 of its 32 bytes are columns 32j .. 32j+31;
 * x = d * scale * q - m * min, for 16 columns each. */
void tg_q2_k_to_f32(const void *row, float *out, size_t n)
{
    for (const tg_block_q2_k *b = row; n; n -= 256, b++) {
        float d = tg_half_at(b->d), m = tg_half_at(b->m);
        for (size_t part = 0; part < 16; part++) {
            float scale = d * (float)(b->scale[part] & 15), min = m * (float)(b->scale[part] >> 4);
            const uint8_t *q = b->q + part / 8 * 32 + part % 2 * 16;
            for (size_t i = 0; i < 16; i++)
                *out++ = scale * (float)(q[i] >> part % 8 / 2 * 2 & 3) - min;
        }
    }
}

/* Q3_K: 2 bits as in Q2_K, and bit k of `high` for the k-th 32 columns; x = d * scale * (q - 4). */
void tg_q3_k_to_f32(const void *row, float *out, size_t n)
{
    for (const tg_block_q3_k *b = row; n; n -= 256, b++) {
        float d = tg_half_at(b->d);
        for (size_t part = 0; part < 16; part++) {
            float scale = d * (float)tg_q3_k_scale(b->scale, part);
            const uint8_t *q = b->q + part / 8 * 32 + part % 2 * 16, *high = b->high + part % 2 * 16;
            for (size_t i = 0; i < 16; i++) {
                int code = (q[i] >> part % 8 / 2 * 2 & 3) | (high[i] >> part / 2 & 1) << 2;
                *out++ = scale * (float)(code - 4);
            }
        }
    }
}

/* Q4_K: of 64 columns the first 32 are the low halves of 32 bytes, the others the high ones;
 * x = d * scale * q - m * min, for 32 columns each. */
void tg_q4_k_to_f32(const void *row, float *out, size_t n)
{
    for (const tg_block_q4_k *b = row; n; n -= 256, b++) {
        float d = tg_half_at(b->d), m = tg_half_at(b->m);
        for (size_t part = 0; part < 8; part++) {
            int s, least;
            tg_q4_k_scale(b->scale, part, &s, &least);
            float scale = d * (float)s, min = m * (float)least;
            const uint8_t *q = b->q + part / 2 * 32;
            for (size_t i = 0; i < 32; i++)
                *out++ = scale * (float)(q[i] >> part % 2 * 4 & 15) - min;
        }
    }
}

/* Q5_K: Q4_K, and bit k of `high` for the k-th 32 columns. */
void tg_q5_k_to_f32(const void *row, float *out, size_t n)
{
    for (const tg_block_q5_k *b = row; n; n -= 256, b++) {
        float d = tg_half_at(b->d), m = tg_half_at(b->m);
        for (size_t part = 0; part < 8; part++) {
            int s, least;
            tg_q4_k_scale(b->scale, part, &s, &least);
            float scale = d * (float)s, min = m * (float)least;
            const uint8_t *q = b->q + part / 2 * 32;
            for (size_t i = 0; i < 32; i++) {
                int code = (q[i] >> part % 2 * 4 & 15) | (b->high[i] >> part & 1) << 4;
                *out++ = scale * (float)code - min;
            }
        }
    }
}

/* Q6_K: in each half of the block, columns 0 .. 63 are the low halves of 64 bytes and 64 .. 127 the high ones;
 * bits 2j and 2j+1 of 32 bytes of `high` go on top of columns 32j .. 32j+31. x = d * scale * (q - 32), for 16
 * columns each. */
void tg_q6_k_to_f32(const void *row, float *out, size_t n)
{
    for (const tg_block_q6_k *b = row; n; n -= 256, b++) {
        float d = tg_half_at(b->d);
        for (size_t part = 0; part < 16; part++) {
            float scale = d * (float)b->scale[part];
            const uint8_t *q = b->q + part / 8 * 64 + part % 4 * 16;
            const uint8_t *high = b->high + part / 8 * 32 + part % 2 * 16;
            for (size_t i = 0; i < 16; i++) {
                int code = (q[i] >> part % 8 / 4 * 4 & 15) | (high[i] >> part % 8 / 2 * 2 & 3) << 4;
                *out++ = scale * (float)(code - 32);
            }
        }
    }
}
