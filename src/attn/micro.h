/* micro.h - the innermost loops of attention, for the files that are compiled once per instruction set:
 * scores of a few query rows against groups of 16 keys, and weighted sums of values.
 *
 * A score is one chain of fused multiply-adds over head_dim; a column of O is one chain over keys
 * ascending. How many rows, groups and columns stay in registers together changes no bit. */
#ifndef TG_ATTN_MICRO_H
#define TG_ATTN_MICRO_H

#include "attn/attention.h"
#include "kernel/vec.h"

enum {
    ROWS = 6, /* query rows in registers together */
    WIDE = 4, /* groups of 16 keys, or vectors of O, likewise, at most */
};

/* How many of those with R rows: AVX2 has half as many registers of half the width. */
VEC int wide_of(const int R, const tg_type type)
{
    if (TG_ISA_LEVEL != TG_ISA_avx2)
        return TG_ISA_LEVEL == TG_ISA_avx512 ? WIDE : 1;
    return type == TG_BF16 ? R <= 2 ? 2 : 1 : R == 1 ? WIDE : R <= 3 ? 2 : 1;
}

/* Defines name[R] for R = 1 .. ROWS: the inline body(r, R, t, b, form) for rows r .. r + R - 1 with R and
 * form constant, as functions of their own, so that each has all registers to itself. */
#define BY_ROWS(name, body, form, type)                                                            \
    ONE_BY_ROWS(name, 1, body, form, type)                                                         \
    ONE_BY_ROWS(name, 2, body, form, type)                                                         \
    ONE_BY_ROWS(name, 3, body, form, type)                                                         \
    ONE_BY_ROWS(name, 4, body, form, type)                                                         \
    ONE_BY_ROWS(name, 5, body, form, type)                                                         \
    ONE_BY_ROWS(name, 6, body, form, type)                                                         \
    static void (*const name[ROWS + 1])(int, const type *, int) = {                                \
        NULL, name##_1, name##_2, name##_3, name##_4, name##_5, name##_6}
#define ONE_BY_ROWS(name, R, body, form, type)                                                     \
    static __attribute__((noinline)) void name##_##R(int r, const type *t, int b)                  \
    {                                                                                              \
        body(r, R, t, b, form);                                                                    \
    }

VEC size_t size_of(const tg_type type)
{
    return type == TG_F32 ? 4 : 2;
}

VEC vf load_as(const uint8_t *p, const tg_type type)
{
    return type == TG_F16 ? vf_load_f16(p) : vf_load((const float *)(const void *)p);
}

static inline int lower(int a, int b)
{
    return a < b ? a : b;
}

static inline int higher(int a, int b)
{
    return a > b ? a : b;
}

enum { LINE = 64 }; /* bytes of a cache's */

/* Bytes from what is asked for to what is asked for again (tg_fetch_twice). With one row so little is computed that
 * asking again costs more than it brings. */
VEC ptrdiff_t nearer(const int R)
{
    return R == 1 ? 0 : 3072;
}

/* Asks for n_bytes from p on, if `ahead`: what will be read next, while there is much to compute. A
 * hardware prefetcher starts anew at each page, and does not know where the next chunk lies. With all
 * ROWS there is too much to compute for memory to be the limit. */
VEC void fetch(const int R, const uint8_t *p, const bool ahead, size_t n_bytes)
{
    if (R < ROWS && ahead)
        tg_fetch_twice(p, n_bytes, (size_t)nearer(R));
}

/* ---- scores -------------------------------------------------------------------------------------- */

/* Rows one behind the other, as score_groups reads them: [n][head_dim]. */
static inline void gather_rows(const float *const *q, int n, int head_dim, float *rows)
{
    for (int r = 0; r < n; r++)
        memcpy(rows + (size_t)r * (size_t)head_dim, q[r], (size_t)head_dim * sizeof *rows);
}

/* acc[r][i] += x[r * stride] * y[i] */
VEC void outer_step(vf *acc, const int row, const float *x, size_t stride, const int R, const vf *y, const int n,
                    const tg_type type)
{
    for (int r = 0; r < R; r++) {
        vf all = vf_set1(x[(size_t)r * stride]);
        for (int i = 0; i < n; i++)
            acc[r * row + i] = type == TG_F16 ? vf_fma_all(x + (size_t)r * stride, y[i], acc[r * row + i])
                                              : vf_fma(all, y[i], acc[r * row + i]);
    }
}

/* The same vector by vector, of F32 or F16 at y, where registers or conversions are what is short. */
VEC void outer_step_few(vp *acc, const int row, const float *x, size_t stride, const int R, const uint8_t *y, const int n,
                        const tg_type type)
{
    for (int i = 0; i < n; i++) {
        const uint8_t *at = y + (size_t)i * 16 * size_of(type);
        vp all = type == TG_F16 ? vp_load_f16(at) : vp_load((const float *)(const void *)at);
        for (int r = 0; r < R; r++)
            acc[r * row + i] = vp_fma_all(x + (size_t)r * stride, all, acc[r * row + i]);
    }
}

VEC bool is_few(const int R, const tg_type type)
{
    return TG_ISA_LEVEL == TG_ISA_avx512 ? type == TG_F16 && R <= 2
                                         : TG_ISA_LEVEL == TG_ISA_avx2 && type != TG_BF16 && R <= 3;
}

/* One dimension, of F32 or F16. */
VEC void score_one(vf acc[ROWS][WIDE], const float *q, size_t stride, const int R, const uint8_t *k, const int G,
                   const tg_type type)
{
    vf key[WIDE];
    for (int g = 0; g < G; g++)
        key[g] = load_as(k + (size_t)g * 16 * size_of(type), type);
    outer_step(acc[0], WIDE, q, stride, R, key, G, type);
}

/* score_groups of few rows */
VEC void score_groups_few(const float *q, const int R, const uint8_t *k, const int G, const tg_type type, int head_dim,
                          float *s, size_t stride, const uint8_t *next, const bool ahead)
{
    const size_t k_stride = tg_kv_k_stride(type), bytes = k_stride / 4 * (size_t)G;
    vp acc[ROWS][WIDE];
    for (int r = 0; r < R; r++)
        for (int g = 0; g < G; g++)
            acc[r][g] = vp_zero();
    for (int d = 0; d < head_dim; d++, k += k_stride, q++, next += bytes) {
        fetch(R, next, ahead, bytes);
        outer_step_few(acc[0], WIDE, q, (size_t)head_dim, R, k, G, type);
    }
    for (int r = 0; r < R; r++)
        for (int g = 0; g < G; g++)
            vp_store(s + (size_t)r * stride + g * 16, acc[r][g]);
}

/* R rows [head_dim] against the G groups of floating-point keys at k: s[r * stride + 16 g + lane]. From `next`
 * on as many bytes as these keys have are fetched meanwhile; NULL: nothing that is not here already. */
VEC void score_groups(const float *q, const int R, const uint8_t *k, const int G, const tg_type type,
                      int head_dim, float *s, size_t stride, const uint8_t *next)
{
    vf acc[ROWS][WIDE];
    for (int r = 0; r < R; r++)
        for (int g = 0; g < G; g++)
            acc[r][g] = vf_zero();
    const size_t dim = (size_t)head_dim, k_stride = tg_kv_k_stride(type), bytes = k_stride / 4 * (size_t)G;
    const bool ahead = next;
    next = ahead ? next : k;
    if (is_few(R, type)) {
        score_groups_few(q, R, k, G, type, head_dim, s, stride, next, ahead);
        return;
    }
    if (type == TG_BF16) {
        vi pair[WIDE];
        vf key[WIDE];
        for (int d = 0; d < head_dim; d += 2, k += k_stride, q += 2, next += bytes) {
            fetch(R, next, ahead, bytes);
            for (int g = 0; g < G; g++) {
                pair[g] = vi_load(k + g * 64);
                key[g] = vf_bf16_first(pair[g]);
            }
            outer_step(acc[0], WIDE, q, dim, R, key, G, type);
            if (d + 1 == head_dim)
                break;
            for (int g = 0; g < G; g++)
                key[g] = vf_bf16_second(pair[g]);
            outer_step(acc[0], WIDE, q + 1, dim, R, key, G, type);
        }
    } else {
        /* A chain or two wait for themselves: the less stands between them, the sooner comes what is behind. */
        const size_t far = R * G <= 2 && TG_ISA_LEVEL != TG_ISA_scalar ? 4 : 1;
        size_t d = 0;
        for (; d + far <= dim; d += far, k += far * k_stride, q += far, next += far * bytes) {
            fetch(R, next, ahead, far * bytes);
            for (size_t i = 0; i < far; i++)
                score_one(acc, q + i, dim, R, k + i * k_stride, G, type);
        }
        for (; far > 1 && d < dim; d++, k += k_stride, q++)
            score_one(acc, q, dim, R, k, G, type);
    }
    for (int r = 0; r < R; r++)
        for (int g = 0; g < G; g++)
            vf_store(s + (size_t)r * stride + g * 16, acc[r][g]);
}

/* ---- values -------------------------------------------------------------------------------------- */

/* value_columns of few rows */
VEC void value_columns_few(const float *p, size_t p_stride, const int R, const uint8_t *const *v, size_t at, int from,
                           int to, const int C, const tg_type type, int v_dim, float *o, ptrdiff_t ahead)
{
    const size_t row_bytes = (size_t)v_dim * size_of(type), o_stride = tg_attn_state_floats(v_dim);
    vp acc[ROWS][WIDE];
    for (int i = 0; i < R; i++)
        for (int c = 0; c < C; c++)
            acc[i][c] = vp_load(o + (size_t)i * o_stride + c * 16);
    for (int j = from; j < to;) {
        const int end = lower(to, (j / TG_KV_BLOCK + 1) * TG_KV_BLOCK);
        const uint8_t *row = v[j / TG_KV_BLOCK] + at + (size_t)(j % TG_KV_BLOCK) * row_bytes;
        for (; j < end; j++, row += row_bytes) {
            fetch(R, row + ahead, ahead != 0, (size_t)C * 16 * size_of(type));
            outer_step_few(acc[0], WIDE, p + j, p_stride, R, row, C, type);
        }
    }
    for (int i = 0; i < R; i++)
        for (int c = 0; c < C; c++)
            vp_store(o + (size_t)i * o_stride + c * 16, acc[i][c]);
}

/* o[i][0 .. 16 C) += p[i][j] * v[j], j from .. to - 1, for values, not Q8_0, in the blocks at v, from byte `at` of each
 * on; rows of p are p_stride apart, and o belongs to states. `ahead` as above, where all is of one block. */
VEC void value_columns(const float *p, size_t p_stride, const int R, const uint8_t *const *v, size_t at, int from,
                       int to, const int C, const tg_type type, int v_dim, float *o, ptrdiff_t ahead)
{
    if (is_few(R, type)) {
        value_columns_few(p, p_stride, R, v, at, from, to, C, type, v_dim, o, ahead);
        return;
    }
    const bool pairs = type == TG_BF16;
    const size_t row_bytes = (size_t)v_dim * size_of(type);
    vf acc[ROWS][WIDE], value[WIDE];
    for (int i = 0; i < R; i++)
        for (int c = 0; c < C; c++)
            acc[i][c] = vf_load(o + (size_t)i * tg_attn_state_floats(v_dim) + c * 16);
    for (int j = from; j < to;) {
        const int end = lower(to, (j / TG_KV_BLOCK + 1) * TG_KV_BLOCK);
        const uint8_t *row = v[j / TG_KV_BLOCK] + at + (size_t)((pairs ? j & ~1 : j) % TG_KV_BLOCK) * row_bytes;
        for (; j < end && !pairs; j++, row += row_bytes) {
            fetch(R, row + ahead, ahead != 0, (size_t)C * 16 * size_of(type));
            for (int c = 0; c < C; c++)
                value[c] = load_as(row + (size_t)c * 16 * size_of(type), type);
            outer_step(acc[0], WIDE, p + j, p_stride, R, value, C, type);
        }
        for (; j < end; j++, row += 2 * row_bytes) {
            vi pair[WIDE];
            fetch(R, row + ahead, ahead != 0, (size_t)C * 64);
            for (int c = 0; c < C; c++)
                pair[c] = vi_load(row + c * 64);
            if (!(j & 1)) {
                for (int c = 0; c < C; c++)
                    value[c] = vf_bf16_first(pair[c]);
                outer_step(acc[0], WIDE, p + j, p_stride, R, value, C, type);
                if (++j == end)
                    break;
            }
            for (int c = 0; c < C; c++)
                value[c] = vf_bf16_second(pair[c]);
            outer_step(acc[0], WIDE, p + j, p_stride, R, value, C, type);
        }
    }
    for (int i = 0; i < R; i++)
        for (int c = 0; c < C; c++)
            vf_store(o + (size_t)i * tg_attn_state_floats(v_dim) + c * 16, acc[i][c]);
}

/* All columns of the same. */
VEC void value_rows(const float *p, size_t p_stride, const int R, const uint8_t *const *v, int from, int to,
                    const tg_type type, int v_dim, float *o, ptrdiff_t ahead)
{
    const int step = type == TG_F32 || type == TG_BF16 ? 4 : 2; /* bytes from one column to the next */
    int col = 0;
    for (; col + 16 * wide_of(R, type) <= v_dim; col += 16 * wide_of(R, type))
        value_columns(p, p_stride, R, v, (size_t)(col * step), from, to, wide_of(R, type), type, v_dim, o + col, ahead);
    for (; col < v_dim; col += 16)
        value_columns(p, p_stride, R, v, (size_t)(col * step), from, to, 1, type, v_dim, o + col, ahead);
}

/* ---- exponentials -------------------------------------------------------------------------------- */

/* Makes the scores of groups first and last that are not in lo .. hi - 1 weigh nothing. */
VEC void mask_ends(float *s, int lo, int hi)
{
    vf lowest = vf_set1(-INFINITY);
    int first = lo / 16 * 16, last = (hi - 1) / 16 * 16;
    if (lo > first)
        vf_store(s + first, vf_range(vf_load(s + first), lowest, lo - first, 16));
    if (hi < last + 16)
        vf_store(s + last, vf_range(vf_load(s + last), lowest, 0, hi - last));
}

/* The maximum of the scores lo .. hi - 1 (lo < hi) of a row; lanes of the outer groups that are no keys
 * become -inf. */
static __attribute__((noinline)) float row_max(float *s, int lo, int hi, float cap)
{
    int from = lo / 16 * 16;
    vf most = vf_set1(-INFINITY);
    for (int i = from; cap != 0.0f && i < hi; i += 16)
        vf_store(s + i, vf_soft_cap(vf_load(s + i), cap));
    mask_ends(s, lo, hi);
    for (int i = from; i < hi; i += 16)
        most = vf_max(most, vf_load(s + i));
    return vf_hmax(most);
}

/* p = e^(s - m) in place for all groups of lo .. hi - 1 that hold keys; they are added to `sum`, 16 lanes. */
static __attribute__((noinline)) void row_exps_onto(float *s, int lo, int hi, float m, float *sum)
{
    /* Nothing above -inf: every p is 0 (or NaN, which must show), and so is the sum. */
    vf shift = vf_set1(m == -INFINITY ? 0.0f : m), all = vf_load(sum);
    for (int i = lo / 16 * 16; i < hi; i += 16) {
        vf p = vf_weight(vf_sub(vf_load(s + i), shift));
        all = vf_add(all, p);
        vf_store(s + i, p);
    }
    vf_store(sum, all);
}

/* The same, and the sum of the row, by a fixed tree. */
static inline float row_exps(float *s, int lo, int hi, float m)
{
    float sum[16] = {0};
    row_exps_onto(s, lo, hi, m, sum);
    return vf_sum(vf_load(sum));
}

/* Of x[r .. r + R - 1]. */
static inline int min_of(const int *x, int r, int R)
{
    int m = x[r];
    for (int i = r + 1; i < r + R; i++)
        m = lower(m, x[i]);
    return m;
}

static inline int max_of(const int *x, int r, int R)
{
    int m = x[r];
    for (int i = r + 1; i < r + R; i++)
        m = higher(m, x[i]);
    return m;
}

#endif
