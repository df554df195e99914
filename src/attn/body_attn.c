/* body_attn.c - the chunk kernel of attention; compiled once per instruction-set level.
 *
 * Steps for a chunk of up to 256 keys and a tile of query rows:
 *   1. scores: [n][256], keys in the lanes, one chain over head_dim each;
 *   2. per row: maximum m over its own keys, p = e^(score - m) in place, l = sum p;
 *   3. O = sum p v, one chain over keys ascending per row, a few rows sharing each load of v;
 *   4. (m, l, O) merges into the row's state. */
#include "attn/attention.h"
#include "kernel/vec.h"

enum {
    ROWS = 4,                                               /* query rows in registers together */
    GROUPS = TG_ISA_LEVEL == TG_ISA_avx512 ? 4 : 1,         /* key groups, likewise */
    COLUMNS = TG_ISA_LEVEL == TG_ISA_avx512 ? 4 : 2,        /* vectors of O, likewise */
};

VEC vf load_as(const uint8_t *p, const tg_type type)
{
    return type == TG_F16 ? vf_load_f16(p) : vf_load((const float *)(const void *)p);
}

VEC size_t size_of(const tg_type type)
{
    return type == TG_F16 ? 2 : 4;
}

/* ---- 1. scores --------------------------------------------------------------------------------- */

/* R rows against the G groups of 16 keys that start at k; scores go to s[r][...]. */
VEC void score_tile(const float *const *q, const int R, const uint8_t *k, const int G, const tg_type type,
                    int head_dim, float *s)
{
    vf acc[ROWS][GROUPS];
    for (int r = 0; r < R; r++)
        for (int g = 0; g < G; g++)
            acc[r][g] = vf_zero();
    size_t group_bytes = (size_t)head_dim * 16 * size_of(type);
    for (int d = 0; d < head_dim; d++) {
        vf key[GROUPS];
        for (int g = 0; g < G; g++)
            key[g] = load_as(k + (size_t)g * group_bytes + (size_t)d * 16 * size_of(type), type);
        for (int r = 0; r < R; r++) {
            vf x = vf_set1(q[r][d]);
            for (int g = 0; g < G; g++)
                acc[r][g] = vf_fma(x, key[g], acc[r][g]);
        }
    }
    for (int r = 0; r < R; r++)
        for (int g = 0; g < G; g++)
            vf_store(s + r * TG_KV_CHUNK + g * 16, acc[r][g]);
}

VEC void score_rows(const tg_chunk *c, int r, const int R, int from, int to, const tg_type type)
{
    size_t group_bytes = (size_t)c->head_dim * 16 * size_of(type);
    for (int g = from / 16 / GROUPS * GROUPS; g * 16 < to; g += GROUPS)
        score_tile(c->q + r, R, c->k[g / 4] + (size_t)(g % 4) * group_bytes, GROUPS, type, c->head_dim,
                   c->scores + r * TG_KV_CHUNK + g * 16);
}

VEC void scores(const tg_chunk *c, int from, int to, const tg_type type)
{
    int r = 0;
    for (; r + 4 <= c->n; r += 4)
        score_rows(c, r, 4, from, to, type);
    if (c->n - r == 3)
        score_rows(c, r, 3, from, to, type);
    else if (c->n - r == 2)
        score_rows(c, r, 2, from, to, type);
    else if (c->n - r == 1)
        score_rows(c, r, 1, from, to, type);
}

/* ---- 2. softmax of a row over its own keys --------------------------------------------------------- */

VEC float row_softmax(float *s, int lo, int hi, float *l)
{
    int first = lo / 16, last = (hi - 1) / 16;
    vf lowest = vf_set1(-INFINITY), most = lowest;
    for (int g = first; g <= last; g++) {
        vf x = vf_load(s + g * 16);
        if (g == first || g == last)
            x = vf_range(x, lowest, g == first ? lo - g * 16 : 0, g == last ? hi - g * 16 : 16);
        most = vf_max(most, x);
        vf_store(s + g * 16, x);
    }
    float m = vf_hmax(most);
    /* Nothing above -inf: every p is 0 (or NaN, which must show), and so is l. */
    float shift = m == -INFINITY ? 0.0f : m;
    vf sum = vf_zero();
    for (int g = first; g <= last; g++) {
        vf p = vf_exp(vf_sub(vf_load(s + g * 16), vf_set1(shift)));
        sum = vf_add(sum, p);
        vf_store(s + g * 16, p);
    }
    *l = vf_sum(sum);
    return m;
}

/* ---- 3. weighted values ---------------------------------------------------------------------------- */

/* O[r][col .. col + 16 C) += p[r][j] * v[j], j from .. to, for R rows. */
VEC void value_tile(const tg_chunk *c, int r, const int R, int col, const int C, int from, int to,
                    const tg_type type)
{
    vf acc[ROWS][COLUMNS];
    float *o = c->o + (size_t)r * (size_t)c->v_dim + col;
    for (int i = 0; i < R; i++)
        for (int k = 0; k < C; k++)
            acc[i][k] = vf_load(o + (size_t)i * (size_t)c->v_dim + k * 16);
    size_t row_bytes = (size_t)c->v_dim * size_of(type);
    for (int j = from; j < to;) {
        int end = (j / TG_KV_BLOCK + 1) * TG_KV_BLOCK;
        if (end > to)
            end = to;
        const uint8_t *v = c->v[j / TG_KV_BLOCK] + (size_t)(j % TG_KV_BLOCK) * row_bytes +
                           (size_t)col * size_of(type);
        for (; j < end; j++, v += row_bytes) {
            vf value[COLUMNS];
            for (int k = 0; k < C; k++)
                value[k] = load_as(v + (size_t)k * 16 * size_of(type), type);
            for (int i = 0; i < R; i++) {
                vf p = vf_set1(c->scores[(r + i) * TG_KV_CHUNK + j]);
                for (int k = 0; k < C; k++)
                    acc[i][k] = vf_fma(p, value[k], acc[i][k]);
            }
        }
    }
    for (int i = 0; i < R; i++)
        for (int k = 0; k < C; k++)
            vf_store(o + (size_t)i * (size_t)c->v_dim + k * 16, acc[i][k]);
}

VEC void value_rows(const tg_chunk *c, int r, const int R, int from, int to, const tg_type type)
{
    int col = 0;
    for (; col + 16 * COLUMNS <= c->v_dim; col += 16 * COLUMNS)
        value_tile(c, r, R, col, COLUMNS, from, to, type);
    for (; col < c->v_dim; col += 16)
        value_tile(c, r, R, col, 1, from, to, type);
}

/* Keys that all R rows have go together; what one row has alone, before and behind, goes alone: a key
 * outside a row's range never touches it. */
VEC void values_of(const tg_chunk *c, int r, const int R, const tg_type type)
{
    int lo = c->lo[r], hi = c->hi[r];
    for (int i = r + 1; i < r + R; i++) {
        lo = c->lo[i] > lo ? c->lo[i] : lo;
        hi = c->hi[i] < hi ? c->hi[i] : hi;
    }
    if (lo >= hi) {
        for (int i = r; i < r + R; i++)
            value_rows(c, i, 1, c->lo[i], c->hi[i], type);
        return;
    }
    for (int i = r; i < r + R; i++)
        if (c->lo[i] < lo)
            value_rows(c, i, 1, c->lo[i], lo, type);
    value_rows(c, r, R, lo, hi, type);
    for (int i = r; i < r + R; i++)
        if (hi < c->hi[i])
            value_rows(c, i, 1, hi, c->hi[i], type);
}

VEC void values(const tg_chunk *c, const tg_type type)
{
    int r = 0;
    for (; r + 4 <= c->n; r += 4)
        values_of(c, r, 4, type);
    if (c->n - r == 3)
        values_of(c, r, 3, type);
    else if (c->n - r == 2)
        values_of(c, r, 2, type);
    else if (c->n - r == 1)
        values_of(c, r, 1, type);
}

/* ---- 4. merge ---------------------------------------------------------------------------------------- */

VEC float exp1(float x)
{
    float t[16];
    vf_store(t, vf_exp(vf_set1(x)));
    return t[0];
}

VEC void merge_parts(float *a, const float *o, float mb, float lb, int v_dim)
{
    float ma = a[v_dim], la = a[v_dim + 1];
    if (lb == 0.0f) /* an empty state is the identity: -inf - (-inf) is never taken */
        return;
    float m = ma > mb ? ma : mb;
    float wa = ma == -INFINITY ? 0.0f : exp1(ma - m), wb = exp1(mb - m);
    for (int d = 0; d < v_dim; d += 16)
        vf_store(a + d, vf_fma(vf_load(a + d), vf_set1(wa), vf_mul(vf_load(o + d), vf_set1(wb))));
    a[v_dim] = m;
    a[v_dim + 1] = fmaf(la, wa, lb * wb);
}

static void merge(float *a, const float *b, int v_dim)
{
    merge_parts(a, b, b[v_dim], b[v_dim + 1], v_dim);
}

static void finish(const float *state, int v_dim, int head_dim, float *out)
{
    float l = state[v_dim + 1];
    vf divisor = vf_set1(l);
    for (int d = 0; d < head_dim; d += 16) {
        vf o = l == 0.0f ? vf_zero() : vf_div(vf_load(state + d), divisor);
        if (head_dim - d >= 16)
            vf_store(out + d, o);
        else
            vf_store_n(out + d, o, head_dim - d);
    }
}

static void absorb(const tg_chunk *c, float *states)
{
    int from = TG_KV_CHUNK, to = 0;
    for (int i = 0; i < c->n; i++) {
        if (c->lo[i] >= c->hi[i])
            continue;
        from = c->lo[i] < from ? c->lo[i] : from;
        to = c->hi[i] > to ? c->hi[i] : to;
    }
    if (from >= to)
        return;
    if (c->type_k == TG_F16)
        scores(c, from, to, TG_F16);
    else
        scores(c, from, to, TG_F32);

    for (int i = 0; i < c->n; i++) {
        c->m[i] = -INFINITY;
        c->l[i] = 0.0f;
        if (c->lo[i] < c->hi[i])
            c->m[i] = row_softmax(c->scores + i * TG_KV_CHUNK, c->lo[i], c->hi[i], &c->l[i]);
    }

    memset(c->o, 0, (size_t)c->n * (size_t)c->v_dim * sizeof(float));
    if (c->type_v == TG_F16)
        values(c, TG_F16);
    else
        values(c, TG_F32);

    for (int i = 0; i < c->n; i++)
        merge_parts(states + (size_t)i * tg_attn_state_floats(c->v_dim), c->o + (size_t)i * (size_t)c->v_dim,
                    c->m[i], c->l[i], c->v_dim);
}

/* ---- writing the cache --------------------------------------------------------------------------------- */

/* Returns how many of the 16 values were clamped to what a float16 holds. */
VEC int to_half(const float *x, int n, uint16_t h[16])
{
    vf v = n >= 16 ? vf_load(x) : vf_load_n(x, n), most = vf_set1(65504.0f);
    vf over = vf_if_less(most, vf_abs(v), vf_set1(1.0f), vf_zero());
    vf t = vf_min(most, vf_max(vf_sub(vf_zero(), most), v));
    vf_store_f16(h, t);
    return (int)vf_sum(over);
}

static int put(const tg_kv_view *kv, int block, int at, int head, const float *k, const float *v)
{
    int n_clamped = 0, n = kv->head_dim;
    uint16_t h[16];
    uint8_t *kb = kv->k + (size_t)block * kv->k_block_stride + (size_t)head * kv->k_head_stride;
    uint8_t *vb = kv->v + (size_t)block * kv->v_block_stride + (size_t)head * kv->v_head_stride;
    size_t first = (size_t)(at / 16) * (size_t)n * 16 + (size_t)(at % 16);
    for (int d = 0; d < n; d += 16) {
        int m = n - d < 16 ? n - d : 16;
        if (kv->type_k == TG_F16) {
            n_clamped += to_half(k + d, m, h);
            for (int i = 0; i < m; i++)
                memcpy(kb + 2 * (first + (size_t)(d + i) * 16), &h[i], 2);
        } else {
            for (int i = 0; i < m; i++)
                memcpy(kb + 4 * (first + (size_t)(d + i) * 16), &k[d + i], 4);
        }
        size_t column = (size_t)at * (size_t)kv->v_dim + (size_t)d;
        if (kv->type_v == TG_F16) {
            n_clamped += to_half(v + d, m, h);
            memcpy(vb + 2 * column, h, 32);
        } else {
            vf_store((float *)(void *)(vb + 4 * column), m == 16 ? vf_load(v + d) : vf_load_n(v + d, m));
        }
    }
    return n_clamped;
}

extern const tg_attn_kernels TG_ISA_SYMBOL(tg_attn_kernels);
const tg_attn_kernels TG_ISA_SYMBOL(tg_attn_kernels) = {
    .absorb = absorb,
    .merge = merge,
    .finish = finish,
    .put = put,
};
