/* dtype_table.c - plain decoders of the types whose 4-bit codes stand for unevenly spaced values. */
#include "kernel/blocks.h"

const int8_t tg_iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

/* E2M1: sign, two bits of exponent, one of mantissa; doubled, so that they are integers. */
const int8_t tg_mxfp4_values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/* 32 columns: the low halves of 16 bytes, then the high ones. */
static void decode(const uint8_t q[16], float scale, const int8_t values[16], float out[32])
{
    for (size_t i = 0; i < 16; i++) {
        out[i] = scale * (float)values[q[i] & 15];
        out[16 + i] = scale * (float)values[q[i] >> 4];
    }
}

/* IQ4_NL: x = d * value */
void tg_iq4_nl_to_f32(const void *row, float *out, size_t n)
{
    for (const tg_block_iq4_nl *b = row; n; n -= 32, out += 32, b++)
        decode(b->q, tg_half_at(b->d), tg_iq4_values, out);
}

/* IQ4_XS: x = d * (scale - 32) * value, a scale of 4 + 2 bits for 32 columns */
void tg_iq4_xs_to_f32(const void *row, float *out, size_t n)
{
    for (const tg_block_iq4_xs *b = row; n; n -= 256, b++)
        for (size_t part = 0; part < 8; part++, out += 32) {
            int low = b->scale[part / 2] >> part % 2 * 4 & 15;
            int high = b->scale_high[part / 4] >> part % 4 * 2 & 3;
            decode(b->q + 16 * part, tg_half_at(b->d) * (float)((low | high << 4) - 32), tg_iq4_values, out);
        }
}

/* MXFP4: x = 2^(e - 128) * value, the value doubled */
void tg_mxfp4_to_f32(const void *row, float *out, size_t n)
{
    for (const tg_block_mxfp4 *b = row; n; n -= 32, out += 32, b++)
        decode(b->q, tg_mxfp4_scale(b->e), tg_mxfp4_values, out);
}
