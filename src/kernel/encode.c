/* encode.c - the formats whose encoding is plain arithmetic, and the way to those that search.
 *
 * Products and sums are rounded one by one, as numpy rounds them. */
#include "kernel/encode.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernel/blocks.h"
#include "kernel/isa.h"

void tg_encode_f32(const float *x, void *row, size_t n)
{
    memcpy(row, x, n * 4);
}

void tg_encode_f16(const float *x, void *row, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tg_put_half((uint8_t *)row + 2 * i, x[i]);
}

/* To nearest, ties to even. */
void tg_encode_bf16(const float *x, void *row, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, 4);
        uint16_t h = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
        memcpy((uint8_t *)row + 2 * i, &h, 2);
    }
}

/* ---- blocks of 32 ---------------------------------------------------------------------------------- */

enum { N = 32 };

static float inverse(float d)
{
    return d == 0 ? 0 : 1 / d;
}

/* x = d * (q - middle): the number largest in size takes code 0. Codes round half up. */
static float symmetric(const float *x, int middle, uint8_t *q)
{
    float most = 0;
    for (int i = 0; i < N; i++)
        most = fabsf(x[i]) > fabsf(most) ? x[i] : most;
    float d = most / (float)-middle, id = inverse(d);
    for (int i = 0; i < N; i++) {
        float code = x[i] * id + ((float)middle + 0.5f), top = (float)(2 * middle - 1);
        q[i] = (uint8_t)(code > top ? top : code);
    }
    return d;
}

/* x = d * q + m */
static float affine(const float *x, int top, uint8_t *q, float *m)
{
    float low = x[0], high = x[0];
    for (int i = 1; i < N; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    float d = (high - low) / (float)top, id = inverse(d);
    for (int i = 0; i < N; i++) {
        float code = (x[i] - low) * id + 0.5f;
        q[i] = (uint8_t)(code > (float)top ? (float)top : code);
    }
    *m = low;
    return d;
}

/* q[0..15] into the low halves of 16 bytes, q[16..31] into the high ones. */
static void put_nibbles(uint8_t *p, const uint8_t *q)
{
    for (int i = 0; i < N / 2; i++)
        p[i] = (uint8_t)((q[i] & 15) | q[i + N / 2] << 4);
}

/* Bit i of the 32 is bit 4 of q[i]. */
static void put_fifth_bits(uint8_t *p, const uint8_t *q)
{
    for (int i = 0; i < N; i++)
        p[i / 8] = (uint8_t)((i % 8 ? p[i / 8] : 0) | q[i] >> 4 << i % 8);
}

void tg_encode_q8_0(const float *x, void *row, size_t n)
{
    for (tg_block_q8_0 *b = row; n; n -= N, x += N, b++) {
        float most = 0;
        for (int i = 0; i < N; i++)
            most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
        float d = most / 127, id = inverse(d);
        tg_put_half(b->d, d);
        for (int i = 0; i < N; i++)
            b->q[i] = (int8_t)roundf(x[i] * id);
    }
}

void tg_encode_q4_0(const float *x, void *row, size_t n)
{
    uint8_t q[N];
    for (tg_block_q4_0 *b = row; n; n -= N, x += N, b++) {
        tg_put_half(b->d, symmetric(x, 8, q));
        put_nibbles(b->q, q);
    }
}

void tg_encode_q5_0(const float *x, void *row, size_t n)
{
    uint8_t q[N];
    for (tg_block_q5_0 *b = row; n; n -= N, x += N, b++) {
        tg_put_half(b->d, symmetric(x, 16, q));
        put_fifth_bits(b->high, q);
        put_nibbles(b->q, q);
    }
}

void tg_encode_q4_1(const float *x, void *row, size_t n)
{
    uint8_t q[N];
    float m;
    for (tg_block_q4_1 *b = row; n; n -= N, x += N, b++) {
        tg_put_half(b->d, affine(x, 15, q, &m));
        tg_put_half(b->m, m);
        put_nibbles(b->q, q);
    }
}

void tg_encode_q5_1(const float *x, void *row, size_t n)
{
    uint8_t q[N];
    float m;
    for (tg_block_q5_1 *b = row; n; n -= N, x += N, b++) {
        tg_put_half(b->d, affine(x, 31, q, &m));
        tg_put_half(b->m, m);
        put_fifth_bits(b->high, q);
        put_nibbles(b->q, q);
    }
}

/* ---- those that search --------------------------------------------------------------------------------- */

TG_ISA_DECLARE(tg_encode_kernels, tg_encode_kernels);

#define SEARCHED(name)                                                                             \
    void tg_encode_##name(const float *x, void *row, size_t n)                                     \
    {                                                                                              \
        TG_ISA_PICK(tg_encode_kernels)->name(x, row, n);                                           \
    }
SEARCHED(q2_k)
SEARCHED(q3_k)
SEARCHED(q4_k)
SEARCHED(q5_k)
SEARCHED(q6_k)
SEARCHED(iq4_nl)
