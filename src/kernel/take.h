/* take.h - blocks of 16 weight rows, one in each lane, from memory into registers: a vector has the same four
 * bytes of 16 rows.
 *
 * To add a type: its row in EACH_TYPE, a function that takes 32 columns, and what interleave.c says of it. */
#ifndef TG_KERNEL_TAKE_H
#define TG_KERNEL_TAKE_H

#include "kernel/form.h"
#include "kernel/rows.h"

/* 32 columns: w = scale * (code - offset) + min. */
typedef struct taken {
    vi code[8]; /* columns 4j .. 4j+3 */
    vf scale[2], min[2]; /* of columns 0 .. 15 and 16 .. 31; where all 32 have the same, in the first */
} taken;

/* How many times 32 columns are taken together. Interleaved, only where they share bytes: one stride for all
 * loads of a matrix is what the processor foresees best. */
VEC int group_of(const int type, rows r)
{
    return !r.stride && shape_of[type].columns == 32 ? 1 : shape_of[type].group;
}

/* How many times 32 columns are worked on in one go: those of a block of 256, or of a group. */
VEC int whole_of(const int type, rows r)
{
    return shape_of[type].columns == 256 ? 8 : group_of(type, r);
}

/* Bytes of n times 32 columns in n_rows rows. */
VEC size_t bytes_of(const int type, const int n, const int n_rows)
{
    return (size_t)(n_rows * n * 32) * shape_of[type].bytes / (size_t)shape_of[type].columns;
}

/* What is kept of a block of 256 columns, or of a group. */
typedef struct kept {
    vi word[20], high[8];
    vf scale[8][2], min[8][2]; /* of each 32 columns, as in `taken` */
} kept;

#define AT(block, field) ((int)offsetof(tg_block_##block, field))

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

/* The same and, where those are clear, what `more` has. */
VEC vi bits_and(vi a, const int from, const int to, const uint32_t mask, vi more)
{
    return vi_and_or(from > to ? vi_shr(a, from - to) : from < to ? vi_shl(a, to - from) : a, bytes(mask), more);
}

VEC vf byte(vi a, const int i)
{
    return vf_from_int(vi_and(vi_shr(a, 8 * i), vi_set1(255)));
}

VEC vf negative(vf a)
{
    return vf_mul(a, vf_set1(-1.0f));
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

VEC_MANY void take_q4_0(rows r, taken *out)
{
    vi raw[4];
    words4(r, AT(q4_0, q), raw);
    halves(raw, out->code);
    out->scale[0] = half_at(r, 0);
}

/* Scale and minimum, which a block begins with; `word`: in the file's layout. */
VEC void scale_and_min(rows r, vi word, taken *out)
{
    out->scale[0] = r.stride ? vf_from_low_f16(word) : vf_load_f16(place(r, 0));
    out->min[0] = r.stride ? from_high_f16(word) : vf_load_f16(place(r, 2));
}

/* One block of several: four are five times 16 bytes. */
VEC_MANY void take_q4_1(const int i, const int n, rows r, kept *k, taken *out)
{
    if (n == 1) {
        vi raw[4];
        words4(r, AT(q4_1, q), raw);
        halves(raw, out->code);
        scale_and_min(r, word_at(r, 0), out);
        return;
    }
    if (i == 0)
        words4(r, 0, k->word);
    words4(r, 16 * (i + 1), k->word + 4 * (i + 1));
    halves(k->word + 5 * i + 1, out->code);
    scale_and_min(r, k->word[5 * i], out);
}

/* Signed codes become unsigned by adding 128. */
VEC_MANY void take_q8_0(rows r, taken *out)
{
    words8(r, AT(q8_0, q), out->code);
    for (int j = 0; j < 8; j++)
        out->code[j] = vi_xor(out->code[j], bytes(128));
    out->scale[0] = half_at(r, 0);
}

/* Bit c of `high` becomes bit 4 of column c. */
VEC void fifth_bits(vi high, vi code[8])
{
    for (int j = 0; j < 8; j++)
        code[j] = vi_mark(code[j], high, j, 16);
}

VEC_MANY void take_q5_0(rows r, taken *out)
{
    vi raw[4];
    words4(r, AT(q5_0, q), raw);
    halves(raw, out->code);
    fifth_bits(second_word(r), out->code);
    out->scale[0] = half_at(r, 0);
}

VEC_MANY void take_q5_1(rows r, taken *out)
{
    vi head[4], raw[4];
    words4(r, 0, head);
    words4(r, AT(q5_1, q), raw);
    halves(raw, out->code);
    fifth_bits(head[1], out->code);
    scale_and_min(r, head[0], out);
}

VEC_MANY void take_iq4_nl(rows r, taken *out)
{
    take_q4_0(r, out);
    values(out->code, tg_iq4_values, 128);
}

/* The scale 2^(e - 128) as a product of two, neither of which is subnormal. */
VEC_MANY void take_mxfp4(rows r, taken *out)
{
    vi raw[4], e = first_byte(r);
    words4(r, AT(mxfp4, q), raw);
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

VEC_MANY void head_q2_k(rows r, kept *k)
{
    vi packed[4], scale[4], min[4], both = last_word(r, sizeof(tg_block_q2_k));
    words4(r, AT(q2_k, scale), packed);
    for (int i = 0; i < 4; i++) {
        scale[i] = bits(packed[i], 0, 0, 15);
        min[i] = bits(packed[i], 4, 0, 15);
    }
    scales_of_16(scale, 0.0f, vf_from_low_f16(both), k->scale);
    scales_of_16(min, 0.0f, negative(from_high_f16(both)), k->min);
}

VEC_MANY void take_q2_k(int g, const int i, rows r, kept *k, taken *out)
{
    if (i == 0)
        words8(r, AT(q2_k, q) + 32 * g, k->word);
    for (int j = 0; j < 8; j++)
        out->code[j] = bits(k->word[j], 2 * i, 0, 3);
}

/* Codes are taken 8 times as large, their scales as much smaller: then the offset is that of Q6_K. */
VEC_MANY void head_q3_k(rows r, kept *k)
{
    vi packed[4], scale[4];
    words4(r, AT(q3_k, scale) - 4, packed);
    for (int i = 0; i < 4; i++)
        scale[i] = vi_or(bits(packed[1 + i % 2], i / 2 * 4, 0, 15), bits(packed[3], 2 * i, 4, 48));
    vf d = vf_mul(last_half(r, sizeof(tg_block_q3_k)), vf_set1(0.125f));
    scales_of_16(scale, 32.0f, d, k->scale);
    words8(r, AT(q3_k, high), k->high);
}

VEC_MANY void take_q3_k(int g, const int i, rows r, kept *k, taken *out)
{
    if (i == 0)
        words8(r, AT(q3_k, q) + 32 * g, k->word);
    for (int j = 0; j < 8; j++)
        out->code[j] = bits_and(k->word[j], 2 * i, 3, 24, bits(k->high[j], i, 5, 32));
    if (i == 3)
        for (int j = 0; j < 8; j++)
            k->high[j] = vi_shr(k->high[j], 4);
}

/* Q4_K and Q5_K: d, m and the bytes that tg_q4_k_scale tells of. */
VEC_MANY void head_q4_k(rows r, kept *k)
{
    vi head[4];
    words4(r, 0, head);
    vf d = vf_from_low_f16(head[0]), m = negative(from_high_f16(head[0]));
    vi scale[2] = {bits(head[1], 0, 0, 63), vi_or(bits(head[3], 0, 0, 15), bits(head[1], 6, 4, 48))};
    vi min[2] = {bits(head[2], 0, 0, 63), vi_or(bits(head[3], 4, 0, 15), bits(head[2], 6, 4, 48))};
    for (int i = 0; i < 8; i++) {
        k->scale[i][0] = vf_mul(d, byte(scale[i / 4], i % 4));
        k->min[i][0] = vf_mul(m, byte(min[i / 4], i % 4));
    }
}

VEC_MANY void take_q4_k(int g, const int i, rows r, kept *k, taken *out)
{
    if (i == 0)
        words8(r, AT(q4_k, q) + 32 * g, k->word);
    for (int j = 0; j < 8; j++)
        out->code[j] = bits(k->word[j], 4 * i, 0, 15);
}

VEC_MANY void head_q5_k(rows r, kept *k)
{
    head_q4_k(r, k);
    words8(r, AT(q5_k, high), k->high);
}

VEC_MANY void take_q5_k(int g, const int i, rows r, kept *k, taken *out)
{
    if (i == 0)
        words8(r, AT(q5_k, q) + 32 * g, k->word);
    for (int j = 0; j < 8; j++)
        out->code[j] = bits_and(k->word[j], 4 * i, 0, 15, bits(k->high[j], i, 4, 16));
    if (i == 1)
        for (int j = 0; j < 8; j++)
            k->high[j] = vi_shr(k->high[j], 2);
}

VEC_MANY void head_q6_k(rows r, kept *k)
{
    vi scale[4];
    words4(r, AT(q6_k, scale), scale);
    for (int i = 0; i < 4; i++)
        scale[i] = vi_xor(scale[i], bytes(128)); /* signed bytes, 128 added */
    scales_of_16(scale, 128.0f, last_half(r, sizeof(tg_block_q6_k)), k->scale);
}

VEC_MANY void take_q6_k(int g, const int i, rows r, kept *k, taken *out)
{
    if (i == 0) {
        words8(r, AT(q6_k, q) + 64 * g, k->word);
        words8(r, AT(q6_k, q) + 64 * g + 32, k->word + 8);
        words8(r, AT(q6_k, high) + 32 * g, k->high);
    }
    for (int j = 0; j < 8; j++)
        out->code[j] = bits_and(k->word[i % 2 * 8 + j], i / 2 * 4, 0, 15, bits(k->high[j], 2 * i, 4, 48));
}

VEC_MANY void head_iq4_xs(rows r, kept *k)
{
    vi head[4];
    words4(r, 0, head);
    vf d = vf_from_low_f16(head[0]);
    for (int i = 0; i < 8; i++) {
        vi low = vi_and(vi_shr(head[1], 4 * i), vi_set1(15));
        vi high = vi_and(vi_shr(head[0], 16 + 2 * i), vi_set1(3));
        k->scale[i][0] = vf_mul(d, vf_sub(vf_from_int(vi_or(low, vi_shl(high, 4))), vf_set1(32.0f)));
    }
}

VEC_MANY void take_iq4_xs(int g, rows r, taken *out)
{
    vi raw[4];
    words4(r, AT(iq4_xs, q) + 16 * g, raw);
    halves(raw, out->code);
    values(out->code, tg_iq4_values, 128);
}

/* ---- by type ------------------------------------------------------------------------------------ */

/* What is kept for the groups of a block of 256 columns at p. */
VEC_MANY void take_head(const int type, rows r, kept *k)
{
    switch (type) {
    case TG_Q2_K:
        head_q2_k(r, k);
        break;
    case TG_Q3_K:
        head_q3_k(r, k);
        break;
    case TG_Q4_K:
        head_q4_k(r, k);
        break;
    case TG_Q5_K:
        head_q5_k(r, k);
        break;
    case TG_Q6_K:
        head_q6_k(r, k);
        break;
    case TG_IQ4_XS:
        head_iq4_xs(r, k);
        break;
    default:
        break;
    }
}

/* 32 columns: the i-th of the n in group g of the block at p; groups come in ascending order. */
VEC_MANY void take(const int type, int g, const int i, const int n, rows r, kept *k,
                   taken *out)
{
    switch (type) {
    case TG_Q8_0:
        take_q8_0(r, out);
        break;
    case TG_Q4_0:
        take_q4_0(r, out);
        break;
    case TG_Q4_1:
        take_q4_1(i, n, r, k, out);
        break;
    case TG_Q5_0:
        take_q5_0(r, out);
        break;
    case TG_Q5_1:
        take_q5_1(r, out);
        break;
    case TG_IQ4_NL:
        take_iq4_nl(r, out);
        break;
    case TG_MXFP4:
        take_mxfp4(r, out);
        break;
    case TG_Q2_K:
        take_q2_k(g, i, r, k, out);
        break;
    case TG_Q3_K:
        take_q3_k(g, i, r, k, out);
        break;
    case TG_Q4_K:
        take_q4_k(g, i, r, k, out);
        break;
    case TG_Q5_K:
        take_q5_k(g, i, r, k, out);
        break;
    case TG_Q6_K:
        take_q6_k(g, i, r, k, out);
        break;
    default:
        take_iq4_xs(g, r, out);
    }
    for (int h = 0; shape_of[type].columns == 256 && h <= has_halves(shape_of[type].form); h++) {
        out->scale[h] = k->scale[g * n + i][h];
        if (has_min(shape_of[type].form))
            out->min[h] = k->min[g * n + i][h];
    }
}

#endif
