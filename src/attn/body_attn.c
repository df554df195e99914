/* body_attn.c - the chunk kernel of attention; compiled once per instruction-set level.
 *
 * Steps for a chunk of up to 256 keys and up to TG_ATTN_SUB query rows:
 *   1. scores: [n][256], keys in the lanes, one chain over head_dim each;
 *   2. per row: maximum m over its own keys, p = e^(score - m) in place, l = sum p;
 *   3. O = sum p v, one chain over keys ascending per row, a few rows sharing each load of v;
 *   4. the state (m, l, O) of the chunk merges into the row's.
 * With many rows the keys and values of 16-bit types are widened to float32 once for all of them.
 * Q8_0 stays in integers, exact inside 32 dimensions of a score and inside the chunk of a sum; so does
 * Q4, whose codes grow to 8 bits in registers. */
#include <float.h>

#include "attn/ahead.h"
#include "attn/micro.h"

enum {
    WIDEN_ROWS = 2 * ROWS,   /* query rows from which widening a chunk pays */
    DOT = TG_Q4 + 1, /* BF16 by dot-product instructions: a form of the loops beside the types' */
    N_FORMS,
    FIXED = TG_ISA_LEVEL == TG_ISA_avx512 ? 2 : 1, /* scales by which weights are multiplied together */
    Q8_GROUPS = TG_ISA_LEVEL == TG_ISA_avx512 ? 2 : 1,
    Q8_COLUMNS = TG_ISA_LEVEL == TG_ISA_avx512 ? 2 : 1, /* vectors of one scale */
};

/* Of the keys or values of a form. */
VEC tg_type type_of(const int form)
{
    return form == DOT ? TG_BF16 : (tg_type)form;
}

static inline float *scores_of(const part *t, int r)
{
    return t->c->scores + (size_t)(r - t->r0) * TG_ATTN_SCORES;
}

static inline float *o_of(const part *t, int r)
{
    return t->states + (size_t)(r - t->r0) * tg_attn_state_floats(t->c->v_dim);
}

/* ---- 1. scores --------------------------------------------------------------------------------- */

/* The same as score_groups in BF16 products: q in pairs of dimensions, the last padded with zero. */
VEC void score_groups_dot(const uint32_t *q, const int R, const uint8_t *k, const int G, int head_dim,
                          float *s, const uint8_t *next)
{
    vf acc[ROWS][WIDE];
    vi key[WIDE];
    for (int r = 0; r < R; r++)
        for (int g = 0; g < G; g++)
            acc[r][g] = vf_zero();
    const int n = (head_dim + 1) / 2;
    const size_t bytes = (size_t)G * 64;
    const bool ahead = next;
    next = ahead ? next : k;
    for (int d = 0; d < n; d++, k += tg_kv_k_stride(TG_BF16), next += bytes) {
        fetch(R, next, ahead, bytes);
        for (int g = 0; g < G; g++)
            key[g] = vi_load(k + g * 64);
        for (int r = 0; r < R; r++)
            for (int g = 0; g < G; g++)
                acc[r][g] = vf_dot_bf16(acc[r][g], key[g], (int32_t)q[r * n + d]);
    }
    for (int r = 0; r < R; r++)
        for (int g = 0; g < G; g++)
            vf_store(s + r * TG_ATTN_SCORES + g * 16, acc[r][g]);
}

/* Four dimensions of 16 keys of Q4: the low or the high nibbles, and bit i of each byte of `fifth`. */
VEC vi codes_of(vi nibbles, vi fifth, const int i)
{
    vi low = vi_and(i % 2 ? vi_shr4(nibbles) : nibbles, vi_set1(0x0f0f0f0f));
    return vi_or(low, vi_and(i < 4 ? vi_shl(fifth, 4 - i) : vi_shr(fifth, i - 4), vi_set1(0x10101010)));
}

/* Exact integers within 32 dimensions, then one chain over those: (integer * key's scale) * query's. */
VEC void score_groups_q8(const tg_q8 *q, int q_stride, const int R, const uint8_t *k, const int G,
                         const tg_type type, int head_dim, float *s, lines ahead)
{
    const bool narrow = type == TG_Q4;
    const int halves = narrow ? 2 : 1; /* of a byte */
    vf sum[ROWS][Q8_GROUPS];
    for (int r = 0; r < R; r++)
        for (int g = 0; g < G; g++)
            sum[r][g] = vf_zero();
    const int n = tg_kv_scales(head_dim);
    const size_t group_bytes = tg_kv_k_group_bytes(type, head_dim);
    const uint8_t *fifths = k + (size_t)n * 256, *scales = k + (size_t)n * (narrow ? 320 : 512);
    for (int g = 0; g < G && R < ROWS && ahead.again; g++)
        tg_fetch_lines((narrow ? fifths : scales) + (size_t)g * group_bytes + AGAIN, (size_t)n * (narrow ? 96 : 32));
    for (int b = 0; b < n; b++, q++) {
        vi acc[ROWS][Q8_GROUPS], load[Q8_GROUPS], fifth[Q8_GROUPS], key[Q8_GROUPS];
        for (int r = 0; r < R; r++)
            for (int g = 0; g < G; g++)
                acc[r][g] = narrow ? vi_shl(vi_all(&q[r * q_stride].less8), 1) : vi_all(&q[r * q_stride].less128);
        for (int g = 0; g < G && narrow; g++)
            fifth[g] = vi_load(fifths + (size_t)g * group_bytes + (size_t)b * 64);
        for (int i = 0; i < 8; i += halves, k += 64) {
            fetch_some(R, &ahead, 2);
            for (int g = 0; g < G; g++) {
                load[g] = vi_hide(vi_load(k + (size_t)g * group_bytes)); /* gcc would load it for each row */
                if (R < ROWS && ahead.again)
                    tg_fetch_line(k + (size_t)g * group_bytes + AGAIN);
            }
            for (int h = 0; h < halves; h++) {
                for (int g = 0; g < G; g++)
                    key[g] = narrow ? codes_of(load[g], fifth[g], i + h) : load[g];
                for (int r = 0; r < R; r++)
                    for (int g = 0; g < G; g++)
                        acc[r][g] = vi_dot4(acc[r][g], key[g], q[r * q_stride].q + 4 * (i + h), narrow);
            }
        }
        for (int g = 0; g < G; g++) {
            vf scale = vf_load_f16(scales + (size_t)g * group_bytes + (size_t)b * 32);
            for (int r = 0; r < R; r++)
                sum[r][g] =
                    vf_fma(vf_mul(vf_from_int(acc[r][g]), scale), vf_set1(q[r * q_stride].d), sum[r][g]);
        }
    }
    fetch_all(ahead);
    for (int r = 0; r < R; r++)
        for (int g = 0; g < G; g++)
            vf_store(s + r * TG_ATTN_SCORES + g * 16, sum[r][g]);
}

VEC void score_some(int r, const int R, const part *t, int g, const int G, const int form)
{
    const tg_chunk *c = t->c;
    int n = tg_kv_scales(c->head_dim), half = (c->head_dim + 1) / 2;
    const tg_type type = type_of(form);
    const uint8_t *k = c->k[g / 4] + tg_kv_k_group_at(type, c->head_dim, g % 4);
    float *s = scores_of(t, r) + g * 16;
    if (has_codes(type)) {
        score_groups_q8(c->q8 + (size_t)r * (size_t)n, n, R, k, G, type, c->head_dim, s,
                        lines_due(t, r, WITH_KEYS, G));
        return;
    }
    /* What these groups are of this block is fetched of what comes next, in the order in which it lies. */
    const ptrdiff_t ahead = ahead_of(t, r, R, order_of_keys(t, g / 4), wide_of(R, type));
    const uint8_t *next = ahead ? c->k[g / 4] + ahead + (size_t)(g % 4) * tg_kv_k_group_bytes(type, c->head_dim) : NULL;
    if (form == DOT)
        score_groups_dot(c->q_bf16 + (size_t)r * (size_t)half, R, k, G, c->head_dim, s, next);
    else
        score_groups(c->q_rows + (size_t)r * (size_t)c->head_dim, R, k, G, type, c->head_dim, s,
                     TG_ATTN_SCORES, next);
}

/* R rows against those groups of block b that hold keys of theirs. */
VEC void score_block(int r, const int R, const part *t, int b, const int form)
{
    const tg_type type = type_of(form);
    const int most = has_codes(type) ? (int)Q8_GROUPS : wide_of(R, type);
    int from = min_of(t->c->lo, r, R) / 16, to = (max_of(t->c->hi, r, R) + 15) / 16;
    int g = higher(from, b * 4), end = lower(to, b * 4 + 4);
    for (; g + most <= end; g += most)
        score_some(r, R, t, g, most, form);
    for (; g < end; g++)
        score_some(r, R, t, g, 1, form);
}

BY_ROWS(scores_f32, score_block, TG_F32, part);
BY_ROWS(scores_f16, score_block, TG_F16, part);
BY_ROWS(scores_bf16, score_block, TG_BF16, part);
BY_ROWS(scores_q8_0, score_block, TG_Q8_0, part);
BY_ROWS(scores_q4, score_block, TG_Q4, part);
BY_ROWS(scores_dot, score_block, DOT, part);

typedef void (*const *by_rows)(int r, const part *t, int b); /* [R] */

static const by_rows scores_by_form[N_FORMS] = {[TG_F32] = scores_f32, [TG_F16] = scores_f16,
                                                [TG_BF16] = scores_bf16, [TG_Q8_0] = scores_q8_0,
                                                [TG_Q4] = scores_q4, [DOT] = scores_dot};

static int form_of(const tg_chunk *c, tg_type type)
{
    return type == TG_BF16 && c->dots ? (int)DOT : (int)type;
}

/* Rows worked on together: those that fetch ahead are fewer (micro.h). */
static int row_step(const tg_chunk *c)
{
    return c->n < WIDEN_ROWS ? ROWS - 1 : ROWS;
}

/* A block for all rows: it stays in the first-level cache meanwhile. */
static void for_rows(const part *t, by_rows fn, int b)
{
    const int step = row_step(t->c);
    for (int r = t->r0; r < t->end; r += step)
        fn[lower(step, t->end - r)](r, t, b);
}

/* ---- 3. weighted values of float types ----------------------------------------------------------- */

/* Two keys, the second or the first of which `mask` may leave out: it must not be touched. */
VEC void value_pair_dot(vf acc[ROWS][WIDE], const uint16_t *p, const int R, const uint8_t *v, const int C,
                        const bool masked, uint32_t mask)
{
    vi value[WIDE];
    for (int c = 0; c < C; c++) {
        value[c] = vi_load(v + c * 64);
        if (masked)
            value[c] = vi_and(value[c], vi_set1((int32_t)mask));
    }
    for (int i = 0; i < R; i++) {
        int32_t pair;
        memcpy(&pair, p + i * TG_KV_CHUNK, 4);
        for (int c = 0; c < C; c++)
            acc[i][c] = vf_dot_bf16(acc[i][c], value[c], pair);
    }
}

/* value_columns in BF16 products: p in pairs of keys; from < to. */
VEC void value_columns_dot(const uint16_t *p, const int R, const uint8_t *v, int from, int to, const int C,
                           int v_dim, float *o, ptrdiff_t ahead)
{
    const size_t pair_bytes = (size_t)v_dim * 4;
    vf acc[ROWS][WIDE];
    for (int i = 0; i < R; i++)
        for (int c = 0; c < C; c++)
            acc[i][c] = vf_load(o + (size_t)i * tg_attn_state_floats(v_dim) + c * 16);
    int j = from & ~1, end = to & ~1;
    v += (size_t)(j / 2) * pair_bytes;
    if (j < from) {
        value_pair_dot(acc, p + j, R, v, C, true, 0xffff0000u);
        j += 2;
        v += pair_bytes;
    }
    for (; j < end; j += 2, v += pair_bytes) {
        fetch(R, v + ahead, ahead != 0, (size_t)(64 * C));
        value_pair_dot(acc, p + j, R, v, C, false, 0);
    }
    if (j < to)
        value_pair_dot(acc, p + j, R, v, C, true, 0xffffu);
    for (int i = 0; i < R; i++)
        for (int c = 0; c < C; c++)
            vf_store(o + (size_t)i * tg_attn_state_floats(v_dim) + c * 16, acc[i][c]);
}

/* Keys from .. to - 1 for R rows that all have them. */
VEC void value_some(int r, const int R, const part *t, int from, int to, const int form)
{
    const tg_chunk *c = t->c;
    const int wide = wide_of(R, type_of(form)), n = 16 * wide;
    ptrdiff_t ahead = ahead_of(t, r, R, order_of_values(t, from / TG_KV_BLOCK), wide);
    float *o = o_of(t, r);
    if (form != DOT) {
        value_rows(scores_of(t, r), TG_ATTN_SCORES, R, c->v, from, to, (tg_type)form, c->v_dim, o, ahead);
        return;
    }
    for (int end; from < to; from = end) {
        int b = from / TG_KV_BLOCK, base = b * TG_KV_BLOCK, col = 0;
        const uint16_t *p = c->p_bf16 + (size_t)(r - t->r0) * TG_KV_CHUNK + base;
        end = lower(to, base + TG_KV_BLOCK);
        for (; col + n <= c->v_dim; col += n)
            value_columns_dot(p, R, c->v[b] + col * 4, from - base, end - base, wide, c->v_dim, o + col, ahead);
        for (; col < c->v_dim; col += 16)
            value_columns_dot(p, R, c->v[b] + col * 4, from - base, end - base, 1, c->v_dim, o + col, ahead);
    }
}

/* Keys that all R rows have go together; what one row has alone, before and behind, goes alone: a key
 * outside a row's range never touches it. */
VEC void value_blocks(int r, const int R, const part *t, int b, const int form)
{
    const tg_chunk *c = t->c;
    int first = b * TG_KV_BLOCK, end = first + t->step * TG_KV_BLOCK;
    int lo = higher(max_of(c->lo, r, R), first), hi = lower(min_of(c->hi, r, R), end);
    if (lo >= hi)
        lo = hi = end;
    for (int i = r; R > 1 && i < r + R; i++) {
        int from = higher(c->lo[i], first), to = lower(c->hi[i], lo);
        if (from < to)
            value_some(i, 1, t, from, to, form);
    }
    if (lo < hi)
        value_some(r, R, t, lo, hi, form);
    for (int i = r; R > 1 && i < r + R; i++) {
        int from = higher(c->lo[i], hi), to = lower(c->hi[i], end);
        if (from < to)
            value_some(i, 1, t, from, to, form);
    }
}

BY_ROWS(values_f32, value_blocks, TG_F32, part);
BY_ROWS(values_f16, value_blocks, TG_F16, part);
BY_ROWS(values_bf16, value_blocks, TG_BF16, part);
BY_ROWS(values_dot, value_blocks, DOT, part);

static void round_rows(const part *t, int b)
{
    const int end = lower((b + t->step) * TG_KV_BLOCK, t->to);
    for (int r = t->r0; r < t->end; r++) {
        uint16_t *p = t->c->p_bf16 + (size_t)(r - t->r0) * TG_KV_CHUNK;
        for (int i = b * TG_KV_BLOCK; i < end; i += 16)
            vf_store_bf16(p + i, vf_load(scores_of(t, r) + i));
    }
}

/* ---- 3. weighted values of Q8_0 and Q4 ----------------------------------------------------------- */

/* Groups of the part in which a row has no key hold old scores: weights of 0. */
static void clear_outside(const part *t, int r)
{
    const int end = t->to + TG_KV_GROUP - 1;
    int lo = t->c->lo[r] / TG_KV_GROUP, hi = (t->c->hi[r] + TG_KV_GROUP - 1) / TG_KV_GROUP;
    if (t->c->lo[r] >= t->c->hi[r])
        lo = hi = end / TG_KV_GROUP;
    for (int g = t->from / TG_KV_GROUP; g < lo; g++)
        vf_store(scores_of(t, r) + g * TG_KV_GROUP, vf_zero());
    for (int g = hi; g < end / TG_KV_GROUP; g++)
        vf_store(scores_of(t, r) + g * TG_KV_GROUP, vf_zero());
}

/* S of the scales of the group of values from j on, which lie `at` in their block. */
VEC void load_scales(const uint8_t *const *v, size_t at, size_t j, const int S, vf scale[FIXED])
{
    const uint8_t *p = v[j / TG_KV_BLOCK] + at + j % TG_KV_BLOCK * 2;
    for (int k = 0; k < S; k++)
        scale[k] = vf_load_f16(p + k * TG_KV_BLOCK * 2);
}

/* The weights of R rows times S of the values' scales as 15-bit fixed point: relative to the largest product of the
 * chunk, a step is 2^-15, far below that of the values' own codes, and 256 products of it with a code fit 32 bits.
 * p_scale gets the largest / 32767, or NaN where a key's scale is no number: codes could not show it. */
VEC void fix_some(int r, const int R, const part *t, int s, const int S)
{
    const tg_chunk *c = t->c;
    const uint8_t *const *v = c->v;
    const size_t n = (size_t)tg_kv_scales(c->v_dim), scales = code_bytes(c) + (size_t)s * TG_KV_BLOCK * 2;
    const size_t at = (size_t)(r - t->r0) * n + (size_t)s, end = (size_t)t->to;
    const size_t first = (size_t)t->from / TG_KV_GROUP * TG_KV_GROUP;
    const float *p = scores_of(t, r);
    int16_t *out = c->p_fixed + at * TG_KV_CHUNK;
    vf scale[FIXED], inverse[ROWS][FIXED];
    vi most[ROWS][FIXED]; /* as bits of magnitudes (a scale may be -0): what is no number is above all numbers */
    for (int i = 0; i < R; i++)
        for (int k = 0; k < S; k++)
            most[i][k] = vi_set1(0);
    lines ahead = lines_due(t, r, WITH_WEIGHTS, R * S);
    for (size_t j = first; j < end; j += TG_KV_GROUP) {
        fetch_some(R, &ahead, 1);
        load_scales(v, scales, j, S, scale);
        for (int i = 0; i < R; i++) {
            vf weight = vf_load(p + (size_t)i * TG_ATTN_SCORES + j);
            for (int k = 0; k < S; k++) { /* what is no key may have any scale */
                vf product = vf_if_less(vf_zero(), weight, vf_mul(weight, scale[k]), vf_zero());
                most[i][k] = vi_max_unsigned(most[i][k], vf_bits(vf_abs(product)));
            }
        }
    }
    for (int i = 0; i < R; i++)
        for (int k = 0; k < S; k++) {
            vf products = vf_from_bits(most[i][k]);
            float largest = vf_not_le(products, vf_set1(FLT_MAX)) ? NAN : vf_hmax(products);
            inverse[i][k] = vf_set1(largest > 1e-30f ? 32767.0f / largest : 0.0f);
            c->p_scale[at + (size_t)i * n + (size_t)k] = largest / 32767.0f;
        }
    for (size_t j = first; j < end; j += TG_KV_GROUP) {
        fetch_some(R, &ahead, 1);
        load_scales(v, scales, j, S, scale);
        for (int i = 0; i < R; i++) {
            vf weight = vf_load(p + (size_t)i * TG_ATTN_SCORES + j);
            for (int k = 0; k < S; k++) /* of NaN the low half is 0 */
                vi_store_s16(out + ((size_t)i * n + (size_t)k) * TG_KV_CHUNK + j,
                             vi_from_float(vf_mul(vf_mul(weight, scale[k]), inverse[i][k])));
        }
    }
    fetch_all(ahead);
}

VEC void fix_rows(int r, const int R, const part *t, int b, const int form)
{
    (void)b, (void)form;
    int s = 0, n = tg_kv_scales(t->c->v_dim);
    for (int i = r; i < r + R; i++)
        clear_outside(t, i);
    for (; s + FIXED <= n; s += FIXED)
        fix_some(r, R, t, s, FIXED);
    for (; s < n; s++)
        fix_some(r, R, t, s, 1);
}

BY_ROWS(fix, fix_rows, TG_Q8_0, part);

static const int8_t value_level[16] = TG_KV_LEVELS;

/* O[r][col .. col + 16 C) over all keys of the part. Two sums in turn hide the instruction's latency:
 * integers do not mind the order. */
VEC void value_columns_q8(int r, const int R, const part *t, int col, const int C, const tg_type type)
{
    const tg_chunk *c = t->c;
    const size_t n = (size_t)tg_kv_scales(c->v_dim), row = n * TG_KV_CHUNK;
    const size_t pair_bytes = tg_kv_v_pair_bytes(type, c->head_dim);
    size_t i0 = (size_t)(r - t->r0) * n + (size_t)(col / 32);
    const int16_t *p = c->p_fixed + i0 * TG_KV_CHUNK;
    vi acc[2][ROWS][2 * Q8_COLUMNS];
    for (int h = 0; h < 2; h++)
        for (int i = 0; i < R; i++)
            for (int k = 0; k < C; k++)
                acc[h][i][k] = vi_set1(0);
    for (int j = t->from / 16 * 16; j < t->to;) {
        int block = j / TG_KV_BLOCK, end = lower((block + 1) * TG_KV_BLOCK, (t->to + 15) / 16 * 16);
        const uint8_t *v = c->v[block] + (size_t)(j % TG_KV_BLOCK / 2) * pair_bytes;
        v += type == TG_Q4 ? (size_t)(col / 32 * 32) : (size_t)col * 2;
        lines ahead = lines_due(t, r, WITH_VALUES, C);
        for (; j < end; j += 4) {
            fetch_some(R, &ahead, 4);
            for (size_t h = 0; h < 2 && R < ROWS && ahead.again; h++)
                tg_fetch_lines(v + AGAIN + h * pair_bytes, (size_t)C * (type == TG_Q4 ? 16 : 32));
            for (int h = 0; h < 2; h++, v += pair_bytes) {
                vi value[2 * Q8_COLUMNS];
                for (int k = 0; k < C; k++) {
                    int at = col % 32 / 16 + k; /* in halves of 32 columns */
                    value[k] = type == TG_Q4 ? vi_pick_pairs(v + at / 2 * 32, at % 2, value_level)
                                             : vi_load_s8_pairs((const int8_t *)v + k * 32);
                }
                for (int i = 0; i < R; i++)
                    for (int k = 0; k < C; k++) { /* by weights of the scale that the column has */
                        const int16_t *w = p + (size_t)i * row + (col % 32 + k * 16) / 32 * TG_KV_CHUNK;
                        acc[h][i][k] = vi_dot2_all(acc[h][i][k], value[k], w + j + 2 * h);
                    }
            }
        }
        fetch_all(ahead);
    }
    for (int i = 0; i < R; i++)
        for (int k = 0; k < C; k++)
            vf_store(o_of(t, r + i) + col + k * 16,
                     vf_mul(vf_from_int(vi_add(acc[0][i][k], acc[1][i][k])),
                            vf_set1(c->p_scale[i0 + (size_t)i * n + (size_t)((col % 32 + k * 16) / 32)])));
}

VEC void value_chunk_q8(int r, const int R, const part *t, int b, const int form)
{
    (void)b;
    const int most = R <= ROWS / 2 ? 2 * Q8_COLUMNS : (int)Q8_COLUMNS;
    int col = 0;
    for (; col + 16 * most <= t->c->v_dim; col += 16 * most)
        value_columns_q8(r, R, t, col, most, (tg_type)form);
    for (; col < t->c->v_dim; col += 16)
        value_columns_q8(r, R, t, col, 1, (tg_type)form);
}

BY_ROWS(values_q8_0, value_chunk_q8, TG_Q8_0, part);
BY_ROWS(values_q4, value_chunk_q8, TG_Q4, part);

static const by_rows values_by_form[N_FORMS] = {[TG_F32] = values_f32, [TG_F16] = values_f16,
                                                [TG_BF16] = values_bf16, [TG_Q8_0] = values_q8_0,
                                                [TG_Q4] = values_q4, [DOT] = values_dot};

/* ---- 2. weights, 3. values ----------------------------------------------------------------------- */

/* The weights of t->step blocks from b on in place of their scores; `sum` of each row gets them by lanes. */
static void weigh(const part *t, int b, float sum[TG_ATTN_SUB][16])
{
    const tg_chunk *c = t->c;
    for (int r = t->r0; r < t->end; r++) {
        int lo = higher(c->lo[r], b * TG_KV_BLOCK), hi = lower(c->hi[r], (b + t->step) * TG_KV_BLOCK);
        if (lo < hi)
            row_exps_onto(scores_of(t, r), lo, hi, o_of(t, r)[c->v_dim], sum[r - t->r0]);
        fetch_due(t, WITH_WEIGHTS, 1);
    }
}

/* l and O of each row, by t->step blocks: where that is the chunk, O stays in registers all the time. */
static void weigh_values(const part *t)
{
    const tg_chunk *c = t->c;
    const int form = form_of(c, c->type_v);
    const bool codes = has_codes(c->type_v);
    float sum[TG_ATTN_SUB][16];
    memset(sum, 0, (size_t)(t->end - t->r0) * sizeof *sum);
    for (int b = t->from / TG_KV_BLOCK; b * TG_KV_BLOCK < t->to; b += t->step) {
        weigh(t, b, sum);
        if (form == DOT)
            round_rows(t, b);
        if (!codes) {
            fetch_due(t, WITH_VALUES, c->v_dim / 16);
            for_rows(t, values_by_form[form], b);
        }
    }
    if (codes) {
        for_rows(t, fix, 0);
        for_rows(t, values_by_form[form], 0); /* the whole chunk */
    }
    for (int r = t->r0; r < t->end; r++)
        o_of(t, r)[c->v_dim + 1] = vf_sum(vf_load(sum[r - t->r0]));
}

/* ---- 4. merge ------------------------------------------------------------------------------------ */

/* Of the two weights one is e^0. An empty state is the identity: -inf - (-inf) is never taken. */
static void merge(float *a, const float *b, int v_dim)
{
    float ma = a[v_dim], la = a[v_dim + 1], mb = b[v_dim], lb = b[v_dim + 1];
    if (lb == 0.0f)
        return;
    if (la == 0.0f) {
        for (int d = 0; d < v_dim; d += 16)
            vf_store(a + d, vf_load(b + d));
        a[v_dim] = mb;
        a[v_dim + 1] = lb;
    } else if (mb <= ma) {
        float w = weight1(mb - ma);
        for (int d = 0; d < v_dim; d += 16)
            vf_store(a + d, vf_fma(vf_load(b + d), vf_set1(w), vf_load(a + d)));
        a[v_dim + 1] = fmaf(lb, w, la);
    } else {
        float w = weight1(ma - mb);
        for (int d = 0; d < v_dim; d += 16)
            vf_store(a + d, vf_fma(vf_load(a + d), vf_set1(w), vf_load(b + d)));
        a[v_dim] = mb;
        a[v_dim + 1] = fmaf(la, w, lb);
    }
}

static void finish(const float *states, int n, int v_dim, int head_dim, int group, size_t stride, bool rotated,
                   float *out)
{
    for (int i = 0, head = 0; i < n; i++, states += tg_attn_state_floats(v_dim)) {
        float l = states[v_dim + 1], *to = out + (size_t)head * (size_t)head_dim;
        vf divisor = vf_set1(l);
        for (int d = 0; d < head_dim; d += 16) {
            vf o = l == 0.0f ? vf_zero() : vf_div(vf_load(states + d), divisor);
            if (head_dim - d >= 16)
                vf_store(to + d, o);
            else
                vf_store_n(to + d, o, head_dim - d);
        }
        if (rotated)
            tg_kv_table()->rotate(to, head_dim, true);
        if (++head == group) {
            head = 0;
            out += stride;
        }
    }
}

/* ---- the chunk ----------------------------------------------------------------------------------- */

/* The keys of the chunk that any of the rows has; false when none has one. */
static bool key_range(const tg_chunk *c, int r0, int end, int *from, int *to)
{
    *from = TG_KV_CHUNK;
    *to = 0;
    for (int r = r0; r < end; r++) {
        if (c->lo[r] >= c->hi[r])
            continue;
        *from = lower(*from, c->lo[r]);
        *to = higher(*to, c->hi[r]);
    }
    return *from < *to;
}

static void absorb_part(const tg_chunk *c, int r0, int end, float *states)
{
    part t = {.c = c, .r0 = r0, .end = end, .step = TG_KV_CHUNK_BLOCKS};
    rest next;
    if (!key_range(c, r0, end, &t.from, &t.to))
        return;
    if (c->stream && c->n < WIDEN_ROWS)
        look_ahead(&t, &next);
    size_t size = tg_attn_state_floats(c->v_dim);
    bool first = true; /* into empty states nothing need be merged */
    states += (size_t)r0 * size;
    for (int r = r0; r < end && first; r++)
        first = states[(size_t)(r - r0) * size + (size_t)c->v_dim + 1] == 0.0f;
    t.states = first ? states : c->states;
    if (!first)
        memset(c->states, 0, (size_t)(end - r0) * size * sizeof *states);

    for (int b = t.from / TG_KV_BLOCK; b * TG_KV_BLOCK < t.to; b++) {
        if (!has_codes(c->type_k))
            fetch_due(&t, WITH_KEYS, TG_KV_BLOCK / TG_KV_GROUP);
        for_rows(&t, scores_by_form[form_of(c, c->type_k)], b);
    }
    for (int r = r0; r < end; r++)
        o_of(&t, r)[c->v_dim] =
            c->lo[r] < c->hi[r] ? row_max(scores_of(&t, r), c->lo[r], c->hi[r], c->soft_cap) : -INFINITY;
    weigh_values(&t);
    fetch_rest(&t);
    for (int r = r0; r < end && !first; r++)
        merge(states + (size_t)(r - r0) * size, o_of(&t, r), c->v_dim);
}

/* Puts float32 copies of the chunk's 16-bit blocks in their place, where many rows will read them. */
static void widen(tg_chunk *c, int from, int to)
{
    size_t k_floats = (size_t)TG_KV_BLOCK * (size_t)c->head_dim;
    size_t v_floats = (size_t)TG_KV_BLOCK * (size_t)c->v_dim;
    bool keys = c->type_k == TG_F16 || (c->type_k == TG_BF16 && !c->dots);
    bool values = c->type_v == TG_F16 || (c->type_v == TG_BF16 && !c->dots);
    for (int b = from / TG_KV_BLOCK; b * TG_KV_BLOCK < to; b++) {
        float *wide_k = c->wide_k + (size_t)b * k_floats, *wide_v = c->wide_v + (size_t)b * v_floats;
        int n = lower(to - b * TG_KV_BLOCK, TG_KV_BLOCK);
        if (keys) {
            tg_kv_table()->widen_k(c->k[b], c->type_k, c->head_dim, n, wide_k);
            c->k[b] = (const uint8_t *)wide_k;
        }
        if (values) {
            tg_kv_table()->widen_v(c->v[b], c->type_v, c->head_dim, n, wide_v);
            c->v[b] = (const uint8_t *)wide_v;
        }
    }
    c->type_k = keys ? TG_F32 : c->type_k;
    c->type_v = values ? TG_F32 : c->type_v;
}

static void absorb(const tg_chunk *c, float *states)
{
    tg_chunk wide;
    int from, to;
    bool narrow = c->type_k != TG_F32 || c->type_v != TG_F32;
    if (narrow && c->n >= WIDEN_ROWS && key_range(c, 0, c->n, &from, &to)) {
        wide = *c;
        widen(&wide, from, to);
        c = &wide;
    }
    for (int r = 0; r < c->n; r += TG_ATTN_SUB)
        absorb_part(c, r, lower(r + TG_ATTN_SUB, c->n), states);
}

/* The queries in the form that the scores of this type of keys read. */
static void prepare(const tg_chunk *c)
{
    int n = tg_kv_scales(c->head_dim), half = (c->head_dim + 1) / 2;
    bool dots = form_of(c, c->type_k) == DOT, rotated = c->type_k == TG_Q4;
    bool floats = !dots && !rotated && c->type_k != TG_Q8_0;
    if (floats || rotated)
        gather_rows(c->q, c->n, c->head_dim, c->q_rows);
    if (floats)
        return;
    for (int r = 0; r < c->n; r++) {
        const float *row = rotated ? c->q_rows + r * c->head_dim : c->q[r];
        if (rotated)
            tg_kv_table()->rotate(c->q_rows + r * c->head_dim, c->head_dim, false);
        for (int b = 0; b < n; b++) {
            float q[32] = {0};
            int16_t h[32];
            int m = lower(32, c->head_dim - b * 32);
            memcpy(q, row + b * 32, (size_t)m * sizeof *q);
            if (!dots) {
                tg_quantize_row(q, 32, c->q8 + r * n + b);
                continue;
            }
            vi_store_s16(h, vi_to_bf16(vf_load(q)));
            vi_store_s16(h + 16, vi_to_bf16(vf_load(q + 16)));
            memcpy(c->q_bf16 + r * half + b * 16, h, (size_t)((m + 1) / 2) * 4);
        }
    }
}

extern const tg_attn_kernels TG_ISA_SYMBOL(tg_attn_kernels);
const tg_attn_kernels TG_ISA_SYMBOL(tg_attn_kernels) = {
    .prepare = prepare,
    .absorb = absorb,
    .merge = merge,
    .finish = finish,
};
