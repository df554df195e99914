/* blocks.h - blocks of any type for tests: where their scales lie, and random ones. */
#ifndef TESTS_BLOCKS_H
#define TESTS_BLOCKS_H

#include "kernel/blocks.h"
#include "support/rand.h"

/* Where d and m of a block lie; m at 0: there is none. Nowhere: of a type without float16 scales. */
static const struct {
    bool there;
    size_t d, m;
} scales_at[TG_TYPE_COUNT] = {
    [TG_Q8_0] = {true, offsetof(tg_block_q8_0, d), 0},
    [TG_Q4_0] = {true, offsetof(tg_block_q4_0, d), 0},
    [TG_Q4_1] = {true, offsetof(tg_block_q4_1, d), offsetof(tg_block_q4_1, m)},
    [TG_Q5_0] = {true, offsetof(tg_block_q5_0, d), 0},
    [TG_Q5_1] = {true, offsetof(tg_block_q5_1, d), offsetof(tg_block_q5_1, m)},
    [TG_Q2_K] = {true, offsetof(tg_block_q2_k, d), offsetof(tg_block_q2_k, m)},
    [TG_Q3_K] = {true, offsetof(tg_block_q3_k, d), 0},
    [TG_Q4_K] = {true, offsetof(tg_block_q4_k, d), offsetof(tg_block_q4_k, m)},
    [TG_Q5_K] = {true, offsetof(tg_block_q5_k, d), offsetof(tg_block_q5_k, m)},
    [TG_Q6_K] = {true, offsetof(tg_block_q6_k, d), 0},
    [TG_IQ4_NL] = {true, offsetof(tg_block_iq4_nl, d), 0},
    [TG_IQ4_XS] = {true, offsetof(tg_block_iq4_xs, d), 0},
};

/* Gives a block other scales, of about these sizes. */
static inline void set_scales(const tg_dtype *t, uint8_t *block, float d, float m)
{
    const uint16_t half[2] = {tg_f32_to_f16(d), tg_f32_to_f16(m)};
    if (scales_at[t->type].there)
        memcpy(block + scales_at[t->type].d, &half[0], 2);
    if (scales_at[t->type].m)
        memcpy(block + scales_at[t->type].m, &half[1], 2);
    if (t->type == TG_MXFP4)
        block[0] = (uint8_t)(127 + ilogbf(d));
}

/* Random bytes, but scales below 2: tools/make-dtype-vectors.py makes the same ones. */
static inline void random_blocks(const tg_dtype *t, uint8_t *to, size_t n)
{
    for (size_t i = 0; i < n; i++, to += t->block_bytes) {
        for (int k = 0; k < t->block_bytes; k++)
            to[k] = (uint8_t)rand_u64();
        if (scales_at[t->type].there)
            to[scales_at[t->type].d + 1] &= 0xbf;
        if (scales_at[t->type].m)
            to[scales_at[t->type].m + 1] &= 0xbf;
    }
}

#endif
