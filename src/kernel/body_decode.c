/* body_decode.c - rows of the formats in most use to float32, 16 numbers at a time; compiled once per
 * instruction-set level. The decoders of dtype.c and its kin say what a format means: these give the same
 * bits. */
#include "kernel/blocks.h"
#include "kernel/matmul.h"
#include "kernel/vec.h"

static void f16_to_f32(const void *row, float *out, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        vf_store(out + i, vf_load_f16((const uint16_t *)row + i));
    tg_dtypes[TG_F16].to_f32((const uint8_t *)row + 2 * i, out + i, n - i);
}

static void bf16_to_f32(const void *row, float *out, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        vf_store(out + i, vf_load_bf16((const uint16_t *)row + i));
    tg_dtypes[TG_BF16].to_f32((const uint8_t *)row + 2 * i, out + i, n - i);
}

/* The bits of 16 bytes that the mask has, from bit `shift` of each on. */
VEC vi bits_at(const uint8_t *p, int shift, int mask)
{
    return vi_and(vi_shr(vi_load_u8(p), shift), vi_set1(mask));
}

/* scale * (code - offset) */
VEC vf scaled(vf scale, vi code, int offset)
{
    return vf_mul(scale, vf_from_int(vi_add(code, vi_set1(-offset))));
}

static void q8_0_to_f32(const void *row, float *out, size_t n)
{
    for (const tg_block_q8_0 *b = row; n; n -= 32, out += 32, b++)
        for (int i = 0; i < 32; i += 16)
            vf_store(out + i, scaled(vf_set1(tg_half_at(b->d)), vi_load_s8(b->q + i), 0));
}

static void q4_0_to_f32(const void *row, float *out, size_t n)
{
    for (const tg_block_q4_0 *b = row; n; n -= 32, out += 32, b++)
        for (int half = 0; half < 2; half++)
            vf_store(out + 16 * half, scaled(vf_set1(tg_half_at(b->d)), bits_at(b->q, 4 * half, 15), 8));
}

static void q4_1_to_f32(const void *row, float *out, size_t n)
{
    for (const tg_block_q4_1 *b = row; n; n -= 32, out += 32, b++)
        for (int half = 0; half < 2; half++) {
            vf product = scaled(vf_set1(tg_half_at(b->d)), bits_at(b->q, 4 * half, 15), 0);
            vf_store(out + 16 * half, vf_add(product, vf_set1(tg_half_at(b->m))));
        }
}

static void q4_k_to_f32(const void *row, float *out, size_t n)
{
    for (const tg_block_q4_k *b = row; n; n -= 256, b++) {
        float d = tg_half_at(b->d), m = tg_half_at(b->m);
        for (int part = 0; part < 8; part++, out += 32) {
            int scale, min;
            tg_q4_k_scale(b->scale, (size_t)part, &scale, &min);
            for (int i = 0; i < 32; i += 16) {
                vi code = bits_at(b->q + part / 2 * 32 + i, part % 2 * 4, 15);
                vf product = scaled(vf_set1(d * (float)scale), code, 0);
                vf_store(out + i, vf_sub(product, vf_set1(m * (float)min)));
            }
        }
    }
}

static void q5_k_to_f32(const void *row, float *out, size_t n)
{
    for (const tg_block_q5_k *b = row; n; n -= 256, b++) {
        float d = tg_half_at(b->d), m = tg_half_at(b->m);
        for (int part = 0; part < 8; part++, out += 32) {
            int scale, min;
            tg_q4_k_scale(b->scale, (size_t)part, &scale, &min);
            for (int i = 0; i < 32; i += 16) {
                vi code = bits_at(b->q + part / 2 * 32 + i, part % 2 * 4, 15);
                code = vi_or(code, vi_shl(bits_at(b->high + i, part, 1), 4));
                vf product = scaled(vf_set1(d * (float)scale), code, 0);
                vf_store(out + i, vf_sub(product, vf_set1(m * (float)min)));
            }
        }
    }
}

static void q6_k_to_f32(const void *row, float *out, size_t n)
{
    for (const tg_block_q6_k *b = row; n; n -= 256, b++) {
        float d = tg_half_at(b->d);
        for (int part = 0; part < 16; part++, out += 16) {
            vi code = bits_at(b->q + part / 8 * 64 + part % 4 * 16, part % 8 / 4 * 4, 15);
            vi high = bits_at(b->high + part / 8 * 32 + part % 2 * 16, part % 8 / 2 * 2, 3);
            vf_store(out, scaled(vf_set1(d * (float)b->scale[part]), vi_or(code, vi_shl(high, 4)), 32));
        }
    }
}

extern const tg_decoders TG_ISA_SYMBOL(tg_decoders);
const tg_decoders TG_ISA_SYMBOL(tg_decoders) = {
    .to_f32 = {[TG_F16] = f16_to_f32, [TG_BF16] = bf16_to_f32, [TG_Q8_0] = q8_0_to_f32, [TG_Q4_0] = q4_0_to_f32,
               [TG_Q4_1] = q4_1_to_f32, [TG_Q4_K] = q4_k_to_f32, [TG_Q5_K] = q5_k_to_f32, [TG_Q6_K] = q6_k_to_f32},
};
