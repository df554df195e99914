/* take.h - blocks of 16 weight rows, one in each lane, from the file's layout into registers, for
 * body_matmul.c.
 *
 * A row's bytes are loaded 16 at a time and transposed, so that a vector has the same four bytes of 16 rows.
 * Nothing outside a block is read: its last bytes are reached by loads that end with it.
 * To add a type: its row in EACH_TYPE, and a function that takes 32 columns. */
#ifndef TG_KERNEL_TAKE_H
#define TG_KERNEL_TAKE_H

#include "kernel/blocks.h"
#include "kernel/vec.h"

/* 32 columns: w = scale * (code - offset) + min. */
typedef struct taken {
    vi code[8]; /* columns 4j .. 4j+3 */
    vf scale[2], min[2]; /* of columns 0 .. 15 and 16 .. 31; where all 32 have the same, in the first */
} taken;

/* What products need to know of a type. */
enum form {
    LESS8, /* codes that are 8 too large, and so on; no minimum */
    LESS16,
    LESS128,
    LESS32_HALVES, /* scales for 16 columns each */
    MIN,           /* no offset, but a minimum */
    MIN_HALVES,
};

VEC bool has_halves(const enum form form)
{
    return form == LESS32_HALVES || form == MIN_HALVES;
}

VEC bool has_min(const enum form form)
{
    return form == MIN || form == MIN_HALVES;
}

/* The largest code. */
VEC int largest(const enum form form)
{
    return form == LESS8 ? 15 : form == LESS128 ? 255 : form == LESS32_HALVES ? 63 : form == MIN_HALVES ? 3 : 31;
}

/* Type, its block, the columns of that, how many times 32 columns are a group (taken together, so that nothing
 * is loaded twice), form. */
#define EACH_TYPE(X)                                                                                         \
    X(Q8_0, q8_0, 32, 1, LESS128)                                                                            \
    X(Q4_0, q4_0, 32, 1, LESS8)                                                                              \
    X(Q4_1, q4_1, 32, 4, MIN)                                                                                \
    X(Q5_0, q5_0, 32, 1, LESS16)                                                                             \
    X(Q5_1, q5_1, 32, 1, MIN)                                                                                \
    X(Q2_K, q2_k, 256, 4, MIN_HALVES)                                                                        \
    X(Q3_K, q3_k, 256, 4, LESS32_HALVES)                                                                     \
    X(Q4_K, q4_k, 256, 2, MIN)                                                                               \
    X(Q5_K, q5_k, 256, 2, MIN)                                                                               \
    X(Q6_K, q6_k, 256, 4, LESS32_HALVES)                                                                     \
    X(IQ4_NL, iq4_nl, 32, 1, LESS128)                                                                        \
    X(IQ4_XS, iq4_xs, 256, 1, LESS128)                                                                       \
    X(MXFP4, mxfp4, 32, 1, LESS16)

static const struct {
    size_t bytes;
    int columns, group;
    enum form form;
} shape_of[TG_TYPE_COUNT] = {
#define SHAPE(type, name, columns, group, form) [TG_##type] = {sizeof(tg_block_##name), columns, group, form},
    EACH_TYPE(SHAPE)
#undef SHAPE
};

/* How many times 32 columns are worked on in one go: those of a block of 256, or of a group. */
VEC int whole_of(const int type)
{
    return shape_of[type].columns == 256 ? 8 : shape_of[type].group;
}

/* Bytes of n times 32 columns in `rows` rows. */
VEC size_t bytes_of(const int type, const int n, const int rows)
{
    return (size_t)(rows * n * 32) * shape_of[type].bytes / (size_t)shape_of[type].columns;
}

/* What is kept of a block of 256 columns, or of a group. */
typedef struct kept {
    vi word[20], high[8];
    vf scale[8][2], min[8][2]; /* of each 32 columns, as in `taken` */
} kept;

/* ---- what formats have in common --------------------------------------------------------------- */

VEC vi bytes(uint32_t each)
{
    return vi_set1((int32_t)(each * 0x01010101u));
}

/* Bits `from` and up of each byte, as many as the mask has, moved to bit `to` and up; the mask is for there. */
VEC vi bits(vi a, const int from, const int to, const uint32_t mask)
{
    return vi_and(from > to ? vi_shr(a, from - to) : from < to ? vi_shl(a, to - from) : a, bytes(mask));
}

VEC vf byte(vi a, const int i)
{
    return vf_from_int(vi_and(vi_shr(a, 8 * i), vi_set1(255)));
}

VEC vf from_high_f16(vi a)
{
    return vf_from_low_f16(vi_shr16(a));
}

VEC vf negative(vf a)
{
    return vf_mul(a, vf_set1(-1.0f));
}

/* 32 bytes of each row */
VEC void rows32(const uint8_t *p, size_t stride, vi out[8])
{
    vi_rows16(p, stride, out);
    vi_rows16(p + 16, stride, out + 4);
}

/* Codes of 4 bits: low halves are columns 0 .. 15, high halves 16 .. 31. */
VEC void halves(const vi raw[4], vi code[8])
{
    for (int j = 0; j < 4; j++) {
        code[j] = bits(raw[j], 0, 0, 15);
        code[4 + j] = bits(raw[j], 4, 0, 15);
    }
}

/* What the table has for codes, `more` added. */
VEC void values(vi code[8], const int8_t table[16], int more)
{
    int8_t t[16];
    for (int i = 0; i < 16; i++)
        t[i] = (int8_t)(table[i] + more);
    for (int j = 0; j < 8; j++)
        code[j] = vi_pick(code[j], t);
}

/* ---- blocks of 32 ------------------------------------------------------------------------------- */

VEC_MANY void take_q4_0(const uint8_t *p, size_t stride, taken *out)
{
    vi raw[4];
    vi_rows16(p + offsetof(tg_block_q4_0, q), stride, raw);
    halves(raw, out->code);
    out->scale[0] = vf_from_low_f16(vi_first16(p, stride));
}

VEC void words_q4_1(const vi word[5], taken *out)
{
    halves(word + 1, out->code);
    out->scale[0] = vf_from_low_f16(word[0]);
    out->min[0] = from_high_f16(word[0]);
}

/* One block of several: four are five times 16 bytes. */
VEC_MANY void take_q4_1(const int i, const int n, const uint8_t *p, size_t stride, kept *k, taken *out)
{
    if (n == 1) {
        vi word[5] = {vi_first16(p, stride)};
        vi_rows16(p + offsetof(tg_block_q4_1, q), stride, word + 1);
        words_q4_1(word, out);
        return;
    }
    if (i == 0)
        vi_rows16(p, stride, k->word);
    vi_rows16(p + 16 * (i + 1), stride, k->word + 4 * (i + 1));
    words_q4_1(k->word + 5 * i, out);
}

/* Signed codes become unsigned by adding 128. */
VEC_MANY void take_q8_0(const uint8_t *p, size_t stride, taken *out)
{
    rows32(p + offsetof(tg_block_q8_0, q), stride, out->code);
    for (int j = 0; j < 8; j++)
        out->code[j] = vi_xor(out->code[j], bytes(128));
    out->scale[0] = vf_from_low_f16(vi_first16(p, stride));
}

/* Bit c of `high` becomes bit 4 of column c. */
VEC void fifth_bits(vi high, vi code[8])
{
    for (int j = 0; j < 8; j++)
        code[j] = vi_mark(code[j], high, j, 16);
}

VEC_MANY void take_q5_0(const uint8_t *p, size_t stride, taken *out)
{
    vi head[4], raw[4];
    vi_rows16(p, stride, head);
    vi_rows16(p + offsetof(tg_block_q5_0, q), stride, raw);
    halves(raw, out->code);
    fifth_bits(vi_or(vi_shr16(head[0]), vi_shl16(head[1])), out->code);
    out->scale[0] = vf_from_low_f16(head[0]);
}

VEC_MANY void take_q5_1(const uint8_t *p, size_t stride, taken *out)
{
    vi head[4], raw[4];
    vi_rows16(p, stride, head);
    vi_rows16(p + offsetof(tg_block_q5_1, q), stride, raw);
    halves(raw, out->code);
    fifth_bits(head[1], out->code);
    out->scale[0] = vf_from_low_f16(head[0]);
    out->min[0] = from_high_f16(head[0]);
}

VEC_MANY void take_iq4_nl(const uint8_t *p, size_t stride, taken *out)
{
    take_q4_0(p, stride, out);
    values(out->code, tg_iq4_values, 128);
}

/* The scale 2^(e - 128) as a product of two, neither of which is subnormal. */
VEC_MANY void take_mxfp4(const uint8_t *p, size_t stride, taken *out)
{
    vi raw[4], e = vi_and(vi_first16(p, stride), vi_set1(255));
    vi_rows16(p + offsetof(tg_block_mxfp4, q), stride, raw);
    halves(raw, out->code);
    values(out->code, tg_mxfp4_values, 16);
    vi half = vi_add(vi_shr(e, 1), vi_set1(63)), rest = vi_add(vi_shr(vi_add(e, vi_set1(1)), 1), vi_set1(63));
    out->scale[0] = vf_mul(vf_from_bits(vi_shl23(half)), vf_from_bits(vi_shl23(rest)));
}

/* ---- blocks of 256 ----------------------------------------------------------------------------- */

/* Scales and minima of 16 columns each: byte i of the words, `less` taken off. */
VEC void scales_of_16(const vi word[4], const float less, vf d, vf out[8][2])
{
    for (int i = 0; i < 16; i++)
        out[i / 2][i % 2] = vf_mul(d, vf_sub(byte(word[i / 4], i % 4), vf_set1(less)));
}

VEC_MANY void head_q2_k(const uint8_t *p, size_t stride, kept *k)
{
    vi packed[4], tail[4], scale[4], min[4];
    vi_rows16(p + offsetof(tg_block_q2_k, scale), stride, packed);
    vi_rows16(p + sizeof(tg_block_q2_k) - 16, stride, tail);
    for (int i = 0; i < 4; i++) {
        scale[i] = bits(packed[i], 0, 0, 15);
        min[i] = bits(packed[i], 4, 0, 15);
    }
    scales_of_16(scale, 0.0f, vf_from_low_f16(tail[3]), k->scale);
    scales_of_16(min, 0.0f, negative(from_high_f16(tail[3])), k->min);
}

VEC_MANY void take_q2_k(int g, const int i, const uint8_t *p, size_t stride, kept *k, taken *out)
{
    if (i == 0)
        rows32(p + offsetof(tg_block_q2_k, q) + 32 * g, stride, k->word);
    for (int j = 0; j < 8; j++)
        out->code[j] = bits(k->word[j], 2 * i, 0, 3);
}

/* Codes are taken 8 times as large, their scales as much smaller: then the offset is that of Q6_K. */
VEC_MANY void head_q3_k(const uint8_t *p, size_t stride, kept *k)
{
    vi packed[4], tail[4], scale[4];
    vi_rows16(p + offsetof(tg_block_q3_k, scale) - 4, stride, packed);
    vi_rows16(p + sizeof(tg_block_q3_k) - 16, stride, tail);
    for (int i = 0; i < 4; i++)
        scale[i] = vi_or(bits(packed[1 + i % 2], i / 2 * 4, 0, 15), bits(packed[3], 2 * i, 4, 48));
    scales_of_16(scale, 32.0f, vf_mul(from_high_f16(tail[3]), vf_set1(0.125f)), k->scale);
    rows32(p + offsetof(tg_block_q3_k, high), stride, k->high);
}

VEC_MANY void take_q3_k(int g, const int i, const uint8_t *p, size_t stride, kept *k, taken *out)
{
    if (i == 0)
        rows32(p + offsetof(tg_block_q3_k, q) + 32 * g, stride, k->word);
    for (int j = 0; j < 8; j++)
        out->code[j] = vi_or(bits(k->word[j], 2 * i, 3, 24), bits(k->high[j], i, 5, 32));
    if (i == 3)
        for (int j = 0; j < 8; j++)
            k->high[j] = vi_shr(k->high[j], 4);
}

/* Q4_K and Q5_K: d, m and the bytes that tg_q4_k_scale tells of. */
VEC_MANY void head_q4_k(const uint8_t *p, size_t stride, kept *k)
{
    vi head[4];
    vi_rows16(p, stride, head);
    vf d = vf_from_low_f16(head[0]), m = negative(from_high_f16(head[0]));
    vi scale[2] = {bits(head[1], 0, 0, 63), vi_or(bits(head[3], 0, 0, 15), bits(head[1], 6, 4, 48))};
    vi min[2] = {bits(head[2], 0, 0, 63), vi_or(bits(head[3], 4, 0, 15), bits(head[2], 6, 4, 48))};
    for (int i = 0; i < 8; i++) {
        k->scale[i][0] = vf_mul(d, byte(scale[i / 4], i % 4));
        k->min[i][0] = vf_mul(m, byte(min[i / 4], i % 4));
    }
}

VEC_MANY void take_q4_k(int g, const int i, const uint8_t *p, size_t stride, kept *k, taken *out)
{
    if (i == 0)
        rows32(p + offsetof(tg_block_q4_k, q) + 32 * g, stride, k->word);
    for (int j = 0; j < 8; j++)
        out->code[j] = bits(k->word[j], 4 * i, 0, 15);
}

VEC_MANY void head_q5_k(const uint8_t *p, size_t stride, kept *k)
{
    head_q4_k(p, stride, k);
    rows32(p + offsetof(tg_block_q5_k, high), stride, k->high);
}

VEC_MANY void take_q5_k(int g, const int i, const uint8_t *p, size_t stride, kept *k, taken *out)
{
    if (i == 0)
        rows32(p + offsetof(tg_block_q5_k, q) + 32 * g, stride, k->word);
    for (int j = 0; j < 8; j++)
        out->code[j] = vi_or(bits(k->word[j], 4 * i, 0, 15), bits(k->high[j], i, 4, 16));
    if (i == 1)
        for (int j = 0; j < 8; j++)
            k->high[j] = vi_shr(k->high[j], 2);
}

VEC_MANY void head_q6_k(const uint8_t *p, size_t stride, kept *k)
{
    vi scale[4], tail[4];
    vi_rows16(p + offsetof(tg_block_q6_k, scale), stride, scale);
    vi_rows16(p + sizeof(tg_block_q6_k) - 16, stride, tail);
    for (int i = 0; i < 4; i++)
        scale[i] = vi_xor(scale[i], bytes(128)); /* signed bytes, 128 added */
    scales_of_16(scale, 128.0f, from_high_f16(tail[3]), k->scale);
}

VEC_MANY void take_q6_k(int g, const int i, const uint8_t *p, size_t stride, kept *k, taken *out)
{
    if (i == 0) {
        rows32(p + offsetof(tg_block_q6_k, q) + 64 * g, stride, k->word);
        rows32(p + offsetof(tg_block_q6_k, q) + 64 * g + 32, stride, k->word + 8);
        rows32(p + offsetof(tg_block_q6_k, high) + 32 * g, stride, k->high);
    }
    for (int j = 0; j < 8; j++)
        out->code[j] = vi_or(bits(k->word[i % 2 * 8 + j], i / 2 * 4, 0, 15), bits(k->high[j], 2 * i, 4, 48));
}

VEC_MANY void head_iq4_xs(const uint8_t *p, size_t stride, kept *k)
{
    vi head[4];
    vi_rows16(p, stride, head);
    vf d = vf_from_low_f16(head[0]);
    for (int i = 0; i < 8; i++) {
        vi low = vi_and(vi_shr(head[1], 4 * i), vi_set1(15));
        vi high = vi_and(vi_shr(head[0], 16 + 2 * i), vi_set1(3));
        k->scale[i][0] = vf_mul(d, vf_sub(vf_from_int(vi_or(low, vi_shl(high, 4))), vf_set1(32.0f)));
    }
}

VEC_MANY void take_iq4_xs(int g, const uint8_t *p, size_t stride, taken *out)
{
    vi raw[4];
    vi_rows16(p + offsetof(tg_block_iq4_xs, q) + 16 * g, stride, raw);
    halves(raw, out->code);
    values(out->code, tg_iq4_values, 128);
}

/* ---- by type ------------------------------------------------------------------------------------ */

/* What is kept for the groups of a block of 256 columns at p. */
VEC_MANY void take_head(const int type, const uint8_t *p, size_t stride, kept *k)
{
    switch (type) {
    case TG_Q2_K:
        head_q2_k(p, stride, k);
        break;
    case TG_Q3_K:
        head_q3_k(p, stride, k);
        break;
    case TG_Q4_K:
        head_q4_k(p, stride, k);
        break;
    case TG_Q5_K:
        head_q5_k(p, stride, k);
        break;
    case TG_Q6_K:
        head_q6_k(p, stride, k);
        break;
    case TG_IQ4_XS:
        head_iq4_xs(p, stride, k);
        break;
    default:
        break;
    }
}

/* 32 columns: the i-th of the n in group g of the block at p; groups come in ascending order. */
VEC_MANY void take(const int type, int g, const int i, const int n, const uint8_t *p, size_t stride, kept *k,
                   taken *out)
{
    switch (type) {
    case TG_Q8_0:
        take_q8_0(p, stride, out);
        break;
    case TG_Q4_0:
        take_q4_0(p, stride, out);
        break;
    case TG_Q4_1:
        take_q4_1(i, n, p, stride, k, out);
        break;
    case TG_Q5_0:
        take_q5_0(p, stride, out);
        break;
    case TG_Q5_1:
        take_q5_1(p, stride, out);
        break;
    case TG_IQ4_NL:
        take_iq4_nl(p, stride, out);
        break;
    case TG_MXFP4:
        take_mxfp4(p, stride, out);
        break;
    case TG_Q2_K:
        take_q2_k(g, i, p, stride, k, out);
        break;
    case TG_Q3_K:
        take_q3_k(g, i, p, stride, k, out);
        break;
    case TG_Q4_K:
        take_q4_k(g, i, p, stride, k, out);
        break;
    case TG_Q5_K:
        take_q5_k(g, i, p, stride, k, out);
        break;
    case TG_Q6_K:
        take_q6_k(g, i, p, stride, k, out);
        break;
    default:
        take_iq4_xs(g, p, stride, out);
    }
    for (int h = 0; shape_of[type].columns == 256 && h <= has_halves(shape_of[type].form); h++) {
        out->scale[h] = k->scale[g * n + i][h];
        if (has_min(shape_of[type].form))
            out->min[h] = k->min[g * n + i][h];
    }
}

#endif
