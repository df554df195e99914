/* body_reference.c - the attention algorithms of the literature over the same loops as the chunk kernel;
 * compiled once per instruction-set level. Other number formats are widened to float32 block by block. */
#include "attn/micro.h"
#include "attn/reference.h"
#include "kernel/softmax.h"

/* ---- the two products ------------------------------------------------------------------------------ */

/* Keys (`at` a multiple of 16) or values of the block of position `at`, from that position on, as float32. */
static const float *keys_from(const tg_ref *t, int at)
{
    const tg_kv_view *kv = t->kv;
    const uint8_t *k = tg_kv_at(kv, t->block[at / TG_KV_BLOCK], t->head, false);
    const float *f = (const float *)(const void *)k;
    if (kv->type_k != TG_F32) {
        tg_kv_table()->widen_k(k, kv->type_k, kv->head_dim, TG_KV_BLOCK, t->wide);
        f = t->wide;
    }
    return f + at % TG_KV_BLOCK;
}

static const float *values_from(const tg_ref *t, int at, int n)
{
    const tg_kv_view *kv = t->kv;
    const uint8_t *v = tg_kv_at(kv, t->block[at / TG_KV_BLOCK], t->head, true);
    const float *f = (const float *)(const void *)v;
    if (kv->type_v != TG_F32) {
        tg_kv_table()->widen_v(v, kv->type_v, kv->head_dim, at % TG_KV_BLOCK + n, t->wide);
        f = t->wide;
    }
    return f + (size_t)(at % TG_KV_BLOCK) * (size_t)kv->v_dim;
}

static float *scores_of(const tg_ref *t, int r, int key)
{
    return t->scores + (size_t)r * t->stride + (key - t->first);
}

static float *o_of(const tg_ref *t, int r)
{
    return t->o + (size_t)r * tg_attn_state_floats(t->kv->v_dim);
}

/* The keys from `at` on that are in t->kv_at; groups in which no row has a key are left out. */
VEC void score_part(int r, const int R, const tg_ref *t, int at, const int form)
{
    int dim = t->kv->head_dim, g = 0;
    int n_groups = (lower(t->n_at, max_of(t->n_keys, r, R) - at) + 15) / 16;
    const float *q = t->q_rows + (size_t)r * (size_t)dim;
    for (; g + wide_of(R, (tg_type)form) <= n_groups; g += wide_of(R, (tg_type)form))
        score_groups(q, R, (const uint8_t *)(t->kv_at + g * 16), wide_of(R, (tg_type)form), (tg_type)form, dim,
                     scores_of(t, r, at + g * 16), t->stride, NULL);
    for (; g < n_groups; g++)
        score_groups(q, R, (const uint8_t *)(t->kv_at + g * 16), 1, (tg_type)form, dim,
                     scores_of(t, r, at + g * 16), t->stride, NULL);
}

/* o += p v: keys that all R rows have together, then what some have beyond. */
VEC void value_part(int r, const int R, const tg_ref *t, int at, const int form)
{
    const uint8_t *v = (const uint8_t *)t->kv_at;
    int v_dim = t->kv->v_dim, common = higher(0, lower(t->n_at, min_of(t->n_keys, r, R) - at));
    value_rows(scores_of(t, r, at), t->stride, R, &v, 0, common, (tg_type)form, v_dim, o_of(t, r), 0);
    for (int i = r; R > 1 && i < r + R; i++)
        if (lower(t->n_at, t->n_keys[i] - at) > common)
            value_rows(scores_of(t, i, at), t->stride, 1, &v, common, lower(t->n_at, t->n_keys[i] - at),
                       (tg_type)form, v_dim, o_of(t, i), 0);
}

BY_ROWS(score_rows, score_part, TG_F32, tg_ref);
BY_ROWS(value_rows_of, value_part, TG_F32, tg_ref);

/* The keys from `at` on that lie in one block and before `end`. */
static int in_block(int at, int end)
{
    return lower(end, (at / TG_KV_BLOCK + 1) * TG_KV_BLOCK) - at;
}

/* Scores of keys from .. end - 1 (from a multiple of 16) for all rows. */
static void all_scores(tg_ref *t, int from, int end)
{
    for (int at = from; at < end; at += t->n_at) {
        t->n_at = in_block(at, end);
        t->kv_at = keys_from(t, at);
        for (int r = 0; r < t->n; r += ROWS)
            score_rows[lower(ROWS, t->n - r)](r, t, at);
    }
}

static void all_values(tg_ref *t, int from, int end)
{
    for (int at = from; at < end; at += t->n_at) {
        t->n_at = in_block(at, end);
        t->kv_at = values_from(t, at, t->n_at);
        for (int r = 0; r < t->n; r += ROWS)
            value_rows_of[lower(ROWS, t->n - r)](r, t, at);
    }
}

static void clear(const tg_ref *t)
{
    memset(t->o, 0, (size_t)t->n * tg_attn_state_floats(t->kv->v_dim) * sizeof(float));
}

/* ---- whole rows -------------------------------------------------------------------------------- */

/* out = O / l; O belongs to a state. */
static void put_out(const tg_ref *t, int r, float *o, float l)
{
    o[t->kv->v_dim + 1] = l;
    tg_attn_table()->finish(o, 1, t->kv->v_dim, t->kv->head_dim, 1, 0, false, t->out[r]);
}

static void safe(tg_ref *t)
{
    int n_keys = max_of(t->n_keys, 0, t->n);
    gather_rows(t->q, t->n, t->kv->head_dim, t->q_rows);
    all_scores(t, 0, n_keys);
    for (int r = 0; r < t->n; r++)
        if (t->n_keys[r] > 0)
            tg_softmax()->softmax[TG_SOFTMAX_SAFE].run(scores_of(t, r, 0), (size_t)t->n_keys[r],
                                                       scores_of(t, r, 0));
    clear(t);
    all_values(t, 0, n_keys);
    for (int r = 0; r < t->n; r++)
        put_out(t, r, o_of(t, r), 1.0f);
}

static tg_ref one_row(const tg_ref *t, int r)
{
    tg_ref u = *t;
    u.q += r;
    u.out += r;
    u.n_keys += r;
    u.n = 1;
    gather_rows(u.q, 1, u.kv->head_dim, u.q_rows);
    return u;
}

static void fused(tg_ref *t)
{
    for (int r = 0; r < t->n; r++) {
        tg_ref u = one_row(t, r);
        int n_keys = u.n_keys[0];
        float l = 0.0f, m = -INFINITY;
        all_scores(&u, 0, n_keys);
        if (n_keys > 0)
            m = row_max(u.scores, 0, n_keys, 0.0f);
        clear(&u);
        for (int at = 0; at < n_keys; at += TG_KV_BLOCK) {
            int n = in_block(at, n_keys);
            l += row_exps(u.scores + at, 0, n, m);
            all_values(&u, at, at + n);
        }
        put_out(&u, 0, u.o, l);
    }
}

/* ---- key by key -------------------------------------------------------------------------------- */

/* O = O a + p v with m = max(m, x), a = e^(m_old - m), p = e^(x - m); l likewise. */
VEC void add_key(float *o, int v_dim, float x, const float *v, float *m, float *l)
{
    float most = *m > x ? *m : x, t[16] = {*m - most, x - most};
    if (x == -INFINITY) /* weighs nothing; two of them must not be subtracted */
        return;
    vf_store(t, vf_weight(vf_load(t)));
    for (int d = 0; d < v_dim; d += 16)
        vf_store(o + d, vf_fma(vf_set1(t[1]), vf_load(v + d), vf_mul(vf_load(o + d), vf_set1(t[0]))));
    *l = fmaf(*l, t[0], t[1]);
    *m = most;
}

static void online(tg_ref *t)
{
    size_t v_dim = (size_t)t->kv->v_dim;
    for (int r = 0; r < t->n; r++) {
        tg_ref u = one_row(t, r);
        float m = -INFINITY, l = 0.0f;
        clear(&u);
        for (; u.first < u.n_keys[0]; u.first += TG_KV_GROUP) {
            int n = lower(TG_KV_GROUP, u.n_keys[0] - u.first);
            all_scores(&u, u.first, u.first + n);
            const float *v = values_from(&u, u.first, n);
            for (int j = 0; j < n; j++)
                add_key(u.o, (int)v_dim, u.scores[j], v + (size_t)j * v_dim, &m, &l);
        }
        put_out(&u, 0, u.o, l);
    }
}

/* ---- tiles of keys ----------------------------------------------------------------------------- */

/* Scores of the next tile of keys; false behind the last. t->first is the tile's first key. */
static bool next_tile(tg_ref *t, int *end)
{
    int n_keys = max_of(t->n_keys, 0, t->n);
    if (*end >= n_keys)
        return false;
    t->first = *end;
    *end = lower(t->first + t->tile_keys, n_keys);
    all_scores(t, t->first, *end);
    return true;
}

/* Keys of the tile that row r has; may be negative. */
static int end_of(const tg_ref *t, int r, int end)
{
    return lower(end, t->n_keys[r]) - t->first;
}

static float *state_of(const tg_ref *t, int r)
{
    return t->states + (size_t)r * tg_attn_state_floats(t->kv->v_dim);
}

/* Merges (m, l) of each row's tile into its state, and says with which weights O must follow. */
VEC void weights(const tg_ref *t, const float *ms, const float *ls, const bool normalised, float *wa,
                 float *wb)
{
    int v_dim = t->kv->v_dim;
    for (int r = 0; r < t->n; r++) {
        float *m = &state_of(t, r)[v_dim], most = *m > ms[r] ? *m : ms[r];
        wa[r] = *m == -INFINITY ? -INFINITY : *m - most;
        wb[r] = ls[r] == 0.0f ? -INFINITY : ms[r] - most;
        *m = most;
    }
    for (int r = 0; r < t->n; r += 16) {
        vf_store(wa + r, vf_weight(vf_load(wa + r)));
        vf_store(wb + r, vf_weight(vf_load(wb + r)));
    }
    for (int r = 0; r < t->n; r++) {
        float *l = &state_of(t, r)[v_dim + 1], before = *l;
        *l = fmaf(*l, wa[r], ls[r] * wb[r]);
        if (normalised && *l != 0.0f) {
            wa[r] *= before / *l;
            wb[r] /= *l;
        }
    }
}

/* Softmax of each row's part of the tile for itself, O of it, and the union with what came before; O is
 * kept normalised, which folds into the two weights, or not. */
VEC void tiles(tg_ref *t, const bool normalised)
{
    int v_dim = t->kv->v_dim;
    gather_rows(t->q, t->n, t->kv->head_dim, t->q_rows);
    tg_attn_begin(t->states, t->n, v_dim);
    for (int end = 0; next_tile(t, &end);) {
        float ms[TG_REF_ROWS], ls[TG_REF_ROWS], wa[TG_REF_ROWS], wb[TG_REF_ROWS];
        for (int r = 0; r < t->n; r++) /* two loops: no row waits for its own maximum */
            ms[r] = end_of(t, r, end) > 0 ? row_max(scores_of(t, r, t->first), 0, end_of(t, r, end), 0.0f)
                                          : -INFINITY;
        for (int r = 0; r < t->n; r++)
            ls[r] = end_of(t, r, end) > 0 ? row_exps(scores_of(t, r, t->first), 0, end_of(t, r, end), ms[r])
                                          : 0.0f;
        clear(t);
        all_values(t, t->first, end);
        weights(t, ms, ls, normalised, wa, wb);
        for (int r = 0; r < t->n; r++) {
            float *state = state_of(t, r);
            for (int d = 0; d < v_dim; d += 16)
                vf_store(state + d, vf_fma(vf_load(state + d), vf_set1(wa[r]),
                                           vf_mul(vf_load(o_of(t, r) + d), vf_set1(wb[r]))));
        }
    }
    for (int r = 0; r < t->n; r++) {
        float *state = state_of(t, r);
        put_out(t, r, state, normalised && state[v_dim + 1] != 0.0f ? 1.0f : state[v_dim + 1]);
    }
}

static void chunked(tg_ref *t)
{
    tiles(t, false);
}

static void flash(tg_ref *t)
{
    tiles(t, true);
}

/* The maximum rises to `most`: what is there is scaled down. */
VEC void raise(float *o, int v_dim, float most, float *m, float *l)
{
    float a = *m == -INFINITY ? 0.0f : weight1(*m - most);
    for (int d = 0; d < v_dim; d += 16)
        vf_store(o + d, vf_mul(vf_load(o + d), vf_set1(a)));
    *l *= a;
    *m = most;
}

static void flash2(tg_ref *t)
{
    float m[TG_REF_ROWS], l[TG_REF_ROWS];
    for (int r = 0; r < t->n; r++) {
        m[r] = -INFINITY;
        l[r] = 0.0f;
    }
    gather_rows(t->q, t->n, t->kv->head_dim, t->q_rows);
    clear(t);
    for (int end = 0; next_tile(t, &end);) {
        for (int r = 0; r < t->n; r++) {
            int n = end_of(t, r, end);
            float most = n > 0 ? row_max(scores_of(t, r, t->first), 0, n, 0.0f) : -INFINITY;
            if (most > m[r])
                raise(o_of(t, r), t->kv->v_dim, most, &m[r], &l[r]);
        }
        for (int r = 0; r < t->n; r++)
            if (end_of(t, r, end) > 0)
                l[r] += row_exps(scores_of(t, r, t->first), 0, end_of(t, r, end), m[r]);
        all_values(t, t->first, end);
    }
    for (int r = 0; r < t->n; r++)
        put_out(t, r, o_of(t, r), l[r]);
}

extern const tg_ref_kernels TG_ISA_SYMBOL(tg_ref_kernels);
const tg_ref_kernels TG_ISA_SYMBOL(tg_ref_kernels) = {
    .safe = safe,
    .fused = fused,
    .online = online,
    .chunked = chunked,
    .flash = flash,
    .flash2 = flash2,
};
