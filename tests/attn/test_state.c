/* The state (m, l, O) and its laws, one query against given scores and values. */
#include "attn/problem.h"

enum { V_DIM = 16, STATE = V_DIM + 16, M = V_DIM, L = V_DIM + 1, PARTS = 16 };

/* One query of head_dim 1: a key is its score. Absorbs keys lo .. hi - 1 of n. Column 1 of the values is 1,
 * so that O there is l. */
static void absorb(float *state, const float *scores, const float *values, int n, int lo, int hi)
{
    static float k[TG_KV_CHUNK], v[TG_KV_CHUNK][V_DIM], s[TG_KV_CHUNK], fresh[STATE];
    for (int i = 0; i < n; i++) {
        k[i] = scores[i];
        v[i][0] = values ? values[i] : 0;
        v[i][1] = 1;
    }
    const float one = 1, *q = &one;
    float row;
    tg_chunk c = {.head_dim = 1, .v_dim = V_DIM, .n = 1, .q = &q, .lo = &lo, .hi = &hi, .scores = s,
                  .states = fresh, .q_rows = &row};
    for (int b = 0; b < TG_KV_CHUNK_BLOCKS; b++) {
        c.k[b] = (const uint8_t *)(k + b * TG_KV_BLOCK);
        c.v[b] = (const uint8_t *)v[b * TG_KV_BLOCK];
    }
    tg_attn_table()->prepare(&c);
    tg_attn_table()->absorb(&c, state);
}

static void begin(float *state)
{
    tg_attn_begin(state, 1, V_DIM);
}

/* The state of keys lo .. hi - 1 alone. */
static void make(float *state, const float *scores, const float *values, int n, int lo, int hi)
{
    begin(state);
    absorb(state, scores, values, n, lo, hi);
}

static void merge(float *a, const float *b)
{
    tg_attn_table()->merge(a, b, V_DIM);
}

static float finish(const float *state)
{
    float out;
    tg_attn_table()->finish(state, 1, V_DIM, 1, 1, 1, false, &out);
    return out;
}

static bool same(const float *a, const float *b)
{
    return !memcmp(a, b, (V_DIM + 2) * sizeof *a);
}

/* ---- worked examples ---------------------------------------------------------------------------- */

static void expect(const float *state, double m, double l, double tolerance)
{
    assert_true(fabs((double)state[M] - m) <= tolerance);
    assert_true(fabs((double)state[L] - l) <= tolerance);
    assert_true(state[1] == state[L]); /* the values of 1 */
}

/* Those of the literature, to the digits printed there. */
static void worked_examples(void **state)
{
    (void)state;
    float s[STATE], t[STATE];
    const float a[] = {1, 5, 3}, b[] = {2, 1, 3, 0.5f}, c[] = {1, 3, 2, 0};

    begin(s);
    absorb(s, a, NULL, 3, 0, 1);
    expect(s, 1, 1, 1e-7);
    absorb(s, a, NULL, 3, 1, 2);
    expect(s, 5, 1.0183156, 1e-6);
    absorb(s, a, NULL, 3, 2, 3);
    expect(s, 5, 1.1536509, 1e-6);

    static const double l[] = {1.0, 1.3679, 1.5032, 1.5853}, m[] = {2, 2, 3, 3};
    begin(s);
    for (int i = 0; i < 4; i++) {
        absorb(s, b, NULL, 4, i, i + 1);
        expect(s, m[i], l[i], 5e-5);
    }
    make(s, b, NULL, 4, 0, 2);
    expect(s, 2, 1.3679, 5e-5);
    make(t, b, NULL, 4, 2, 4);
    expect(t, 3, 1.0821, 5e-5);
    merge(s, t);
    expect(s, 3, 1.5853, 5e-5);

    /* A probability is the output for a value that is 1 at its key and 0 elsewhere. */
    static const double pb[] = {0.2321, 0.0854, 0.6308, 0.0518},
                        pc[] = {0.087144, 0.643914, 0.236883, 0.032059};
    for (int i = 0; i < 4; i++) {
        float v[4] = {0};
        v[i] = 1;
        make(s, b, v, 4, 0, 4);
        assert_true(fabs((double)finish(s) - pb[i]) <= 5e-5);
        for (int split = 0; split <= 4; split += 2) {
            make(s, c, v, 4, 0, split);
            absorb(s, c, v, 4, split, 4);
            assert_true(fabs((double)finish(s) - pc[i]) <= 5e-7);
        }
    }
}

/* ---- random rows ---------------------------------------------------------------------------------- */

typedef struct row {
    int n;
    float x[TG_KV_CHUNK], v[TG_KV_CHUNK];
    double m, l, out, size; /* in float64; size: sum p |v| */
    double tolerance;       /* relative, of l, and of `out` to size */
} row;

/* Normal scores of some width; or odd ones. 16 * 2^-24 * (1 + max |q||k|), where more than 64, or what is
 * lost far below the maximum, need no allowance: scores are exact here. */
static row row_make(int i)
{
    rand_state = 7 + (uint64_t)i;
    row r = {.n = rand_int(1, i % 3 ? 40 : TG_KV_CHUNK), .m = -INFINITY};
    float width = (float)exp(rand_unit() * 8 - 3);
    for (int j = 0; j < r.n; j++) {
        r.x[j] = near_normal() * width;
        r.v[j] = near_normal();
    }
    if (i % 2)
        odd_scores_of(i / 2 % ODD, r.x, r.n);
    double most = 0;
    for (int j = 0; j < r.n; j++) {
        r.m = fmax(r.m, (double)r.x[j]);
        most = fmax(most, fabs((double)r.x[j]));
    }
    for (int j = 0; j < r.n && r.m > -INFINITY; j++)
        r.l += exp((double)r.x[j] - r.m);
    for (int j = 0; j < r.n && r.l > 0; j++) {
        double p = exp((double)r.x[j] - r.m) / r.l;
        r.out += p * (double)r.v[j];
        r.size += p * fabs((double)r.v[j]);
    }
    r.tolerance = 16 * 0x1p-24 * (1 + fmin(most, 3));
    return r;
}

static void check(const row *r, const float *s, const char *what)
{
    double l = (double)s[L], out = (double)finish(s);
    bool exact_m = (double)s[M] == r->m || (s[M] == 0.0f && fabs(r->m) < 0x1p-126);
    if (!exact_m || !(fabs(l - r->l) <= r->tolerance * r->l + 1e-37) ||
        !(fabs(out - r->out) <= r->tolerance * r->size + 1e-35))
        fail_msg("%s: (%.9g, %.9g) of %d keys gives %.9g; should be (%.9g, %.9g), %.9g", what, (double)s[M], l,
                 r->n, out, r->m, r->l, r->out);
    if (r->l > 0)
        assert_true(s[L] >= 1.0f && s[L] <= (float)r->n);
    assert_true(fabs((double)s[1] - l) <= r->tolerance * l);
}

static const int n_rows = DEBUG ? 5000 : 20000;

/* Split anywhere, also into nothing, merged in any grouping and order. */
static void split_and_merge(void **state)
{
    (void)state;
    for (int i = 0; i < n_rows; i++) {
        row r = row_make(i);
        float parts[PARTS][STATE];
        int n = rand_int(1, PARTS), ends[PARTS];
        for (int j = 0; j < n; j++) {
            int end = j == n - 1 ? r.n : rand_int(0, r.n), k = j;
            for (; k > 0 && ends[k - 1] > end; k--)
                ends[k] = ends[k - 1];
            ends[k] = end;
        }
        for (int j = 0, from = 0; j < n; from = ends[j++])
            make(parts[j], r.x, r.v, r.n, from, ends[j]);
        while (n > 1) {
            int a = rand_int(0, n - 1), b = (a + rand_int(1, n - 1)) % n;
            float other[STATE];
            memcpy(other, parts[b], sizeof other);
            merge(other, parts[a]);
            merge(parts[a], parts[b]);
            assert_true(same(parts[a], other)); /* it commutes, to the bit */
            memcpy(parts[b], parts[--n], sizeof *parts);
        }
        check(&r, parts[0], "merged");
    }
}

/* One key more equals all anew. */
static void appending(void **state)
{
    (void)state;
    for (int i = 0; i < n_rows / 10; i++) {
        row r = row_make(i);
        float s[STATE], whole[STATE];
        begin(s);
        for (int j = 0; j < r.n; j++) {
            absorb(s, r.x, r.v, r.n, j, j + 1);
            make(whole, r.x, r.v, r.n, 0, j + 1);
            assert_true(s[M] == whole[M]);
            assert_true(fabs((double)s[L] - (double)whole[L]) <= 2 * r.tolerance * (double)whole[L]);
            assert_true(whole[L] == 0.0f ? s[L] == 0.0f : s[L] >= 1.0f && s[L] <= (float)(j + 1));
        }
        check(&r, whole, "at once");
        check(&r, s, "key by key");
    }
}

/* The empty state changes nothing, from either side, to the bit; two of them are one. */
static void identity(void **state)
{
    (void)state;
    float s[STATE], e[STATE], t[STATE];
    for (int i = 0; i < n_rows / 10; i++) {
        row r = row_make(i);
        make(s, r.x, r.v, r.n, 0, r.n);
        memcpy(t, s, sizeof t);
        begin(e);
        merge(s, e);
        assert_true(same(s, t));
        absorb(s, r.x, r.v, r.n, r.n, r.n); /* no key */
        assert_true(same(s, t));
        merge(e, t);
        assert_true(same(e, t));
    }
    begin(s);
    begin(e);
    merge(s, e);
    assert_true(same(s, e) && s[M] == -INFINITY && s[L] == 0.0f && finish(s) == 0.0f);
}

/* A shift of all scores changes nothing but m. */
static void shift(void **state)
{
    (void)state;
    for (int i = 0; i < n_rows / 10; i++) {
        row r = row_make(2 * i);
        float s[STATE], t[STATE], y[TG_KV_CHUNK], by = 128.0f * (float)rand_int(-20, 20);
        for (int j = 0; j < r.n; j++) {
            r.x[j] = floorf(r.x[j] * 8) / 8; /* exact when shifted */
            y[j] = r.x[j] + by;
        }
        make(s, r.x, r.v, r.n, 0, r.n);
        make(t, y, r.v, r.n, 0, r.n);
        assert_true(t[M] == s[M] + by);
        t[M] = s[M];
        assert_true(same(s, t));
    }
}

/* -inf scores weigh nothing; all of them, and the state stays empty. */
static void nothing_seen(void **state)
{
    (void)state;
    float s[STATE];
    const float v[] = {3, 4, 5};
    const float some[] = {-INFINITY, 2, -INFINITY}, none[] = {-INFINITY, -INFINITY, -INFINITY};
    make(s, some, v, 3, 0, 3);
    assert_true(finish(s) == 4.0f);
    make(s, none, v, 3, 0, 3);
    assert_true(s[L] == 0.0f && finish(s) == 0.0f);
    absorb(s, some, v, 3, 0, 3);
    assert_true(finish(s) == 4.0f);
}

/* A NaN among the scores or the values is one in the end, wherever it comes in. */
static void not_numbers(void **state)
{
    (void)state;
    for (int i = 0; i < n_rows / 10; i++) {
        row r = row_make(2 * i);
        int bad = rand_int(0, r.n - 1), split = rand_int(0, r.n);
        (i % 2 ? r.x : r.v)[bad] = NAN;
        float s[STATE], t[STATE], both[STATE];
        make(s, r.x, r.v, r.n, 0, split);
        make(t, r.x, r.v, r.n, split, r.n);
        memcpy(both, s, sizeof both);
        merge(both, t);
        assert_true(isnan(finish(both)) && isnan(finish(s)) == (bad < split));
        merge(t, s);
        assert_true(isnan(finish(t)));
        absorb(s, r.x, r.v, r.n, split, r.n);
        assert_true(isnan(finish(s)));
        const float only[] = {-INFINITY, NAN, -INFINITY};
        make(s, only, r.v, 3, 0, 3);
        assert_true(isnan(finish(s)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worked_examples), cmocka_unit_test(split_and_merge), cmocka_unit_test(appending),
        cmocka_unit_test(identity),        cmocka_unit_test(shift),           cmocka_unit_test(nothing_seen),
        cmocka_unit_test(not_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
