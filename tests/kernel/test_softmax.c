/* Every softmax and every top-k of the tables against float64, in the bounds that softmax.h states.
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/softmax.h"
#include "support/levels.h"
#include "support/rand.h"

enum { N_MAX = 10000 };

static float x[N_MAX], y[N_MAX], probs[N_MAX];

#define EACH_SOFTMAX(a)                                                                            \
    for (const tg_softmax_algo *a = tg_softmax()->softmax;                                         \
         a < tg_softmax()->softmax + TG_SOFTMAX_COUNT; a++)
#define EACH_TOP_K(a)                                                                              \
    for (const tg_top_k_algo *a = tg_softmax()->top_k; a < tg_softmax()->top_k + TG_TOP_K_COUNT;   \
         a++)

static bool is_naive(const tg_softmax_algo *a)
{
    return a == &tg_softmax()->softmax[TG_SOFTMAX_NAIVE];
}

/* ---- the reference ------------------------------------------------------------------------------
 */

typedef struct truth {
    double m, l, lse;
    int rises; /* how often the maximum rose */
} truth;

static truth truth_of(const float *row, int n)
{
    truth t = {-INFINITY, 0, 0, 0};
    for (int i = 0; i < n; i++)
        if ((double)row[i] > t.m) {
            t.m = (double)row[i];
            t.rises++;
        }
    for (int i = 0; i < n && t.m > -INFINITY; i++)
        t.l += exp((double)row[i] - t.m);
    t.lse = t.m + log(t.l);
    return t;
}

/* The bound of softmax.h, plus what lies below e^-87. */
static void check_probs(const char *name, const float *row, const float *p, int n, truth t,
                        int rises)
{
    for (int i = 0; i < n; i++) {
        double d = (double)row[i] - t.m, want = exp(d) / t.l;
        double slack = d < -100 ? 0 : want * (32 - d + 4 * rises) * 0x1p-24;
        if (!(fabs((double)p[i] - want) <= slack + 2e-38))
            fail_msg("%s of %d: e^(%g - %g) / %g is %.9g, should be %.9g", name, n, (double)row[i],
                     t.m, t.l, (double)p[i], want);
    }
}

static void check_softmax(int n)
{
    truth t = truth_of(x, n);
    EACH_SOFTMAX (a) {
        a->run(x, (size_t)n, y);
        if (!is_naive(a))
            check_probs(a->name, x, y, n, t, t.rises);
        else if (t.lse < 88 && t.m > -80)
            check_probs(a->name, x, y, n, (truth){t.m, t.l, t.lse, 0}, 0);
    }
}

static int by_order(const void *a, const void *b)
{
    const tg_top *c = a, *d = b;
    return c->logit > d->logit || (c->logit == d->logit && c->id < d->id) ? -1 : 1;
}

/* `fused` against a full sort; the others, which see probabilities, by the logits they chose. */
static void check_top_k(int n, int k)
{
    static tg_top all[N_MAX], top[N_MAX + 1];
    truth t = truth_of(x, n);
    int want = k < n ? k : n;
    for (int i = 0; i < n; i++)
        all[i] = (tg_top){x[i], i};
    qsort(all, (size_t)n, sizeof *all, by_order);
    EACH_TOP_K (a) {
        float lse;
        top[want].id = -77;
        assert_int_equal(a->run(x, (size_t)n, k, top, &lse, probs), want);
        assert_int_equal(top[want].id, -77);
        double slack = (fabs(t.lse) + 32 + 4 * t.rises) * 0x1p-24;
        if (!(fabs((double)lse - t.lse) <= slack))
            fail_msg("%s of %d: lse %.9g, should be %.9g", a->name, n, (double)lse, t.lse);
        if (a == &tg_softmax()->top_k[TG_TOP_K_FUSED]) {
            assert_memory_equal(top, all, (size_t)want * sizeof *top);
            assert_int_equal(tg_top_k(x, n, k, top, NULL), want);
            assert_memory_equal(top, all, (size_t)want * sizeof *top);
        } else
            for (int i = 0; i < want; i++)
                assert_true(x[top[i].id] == top[i].logit &&
                            fabs(exp((double)top[i].logit - t.lse) -
                                 exp((double)all[i].logit - t.lse)) < 1e-5);
    }
}

/* ---- random rows ----------------------------------------------------------------------------- */

static void fill(int n, int kind)
{
    float scale = (float)exp(rand_unit() * 12 - 6), offset = rand_normal() * 20;
    for (int i = 0; i < n; i++)
        x[i] = rand_normal() * scale;
    switch (kind) {
    case 1: /* far from zero */
        for (int i = 0; i < n; i++)
            x[i] += offset * 1e4f;
        break;
    case 2: /* banned ids, but one */
        for (int i = 0; i < n; i++)
            x[i] = rand_int(0, 2) ? x[i] : -INFINITY;
        x[rand_int(0, n - 1)] = 1;
        break;
    case 3: /* all equal */
        for (int i = 0; i < n; i++)
            x[i] = offset;
        break;
    case 4: /* nothing but subnormal numbers */
        for (int i = 0; i < n; i++)
            x[i] = (float)rand_int(-100, 100) * 1e-42f;
        break;
    case 5: /* one huge among small */
        x[rand_int(0, n - 1)] = FLT_MAX;
        break;
    case 6: /* huge on both sides */
        for (int i = 0; i < n; i++)
            x[i] = rand_normal() * 1e37f;
        break;
    case 7: /* ties */
        for (int i = 0; i < n; i++)
            x[i] = (float)rand_int(-3, 3);
        break;
    case 8: /* ascending: the maximum never rests */
        for (int i = 0; i < n; i++)
            x[i] = offset + (float)i * 0.01f;
        break;
    default:
        break;
    }
}

static void random_rows(void **state)
{
    (void)state;
    for (int row = 0; row < 3000; row++) {
        rand_state = 7000 + (uint64_t)row;
        int n = row % 10 ? rand_int(1, 300) : rand_int(1, N_MAX);
        fill(n, row % 9);
        check_softmax(n);
        check_top_k(n, row % 7 ? rand_int(1, 80) : rand_int(1, n + 10));
    }
}

/* The largest comes late, behind others that were the largest: no probability is above 1, and the sum is exact. */
static void late_peaks(void **state)
{
    (void)state;
    for (int row = 0; row < 600; row++) {
        rand_state = 90000 + (uint64_t)row;
        const int n = rand_int(N_MAX / 2, N_MAX), n_peaks = rand_int(2, 6);
        float peak[6] = {0.5f}; /* near zero a last place is small */
        for (int k = 1; k < n_peaks; k++)
            peak[k] = peak[k - 1] - (float)exp(rand_unit() * 6 - 3);
        for (int i = 0; i < n; i++)
            x[i] = peak[n_peaks - 1] - (row % 2 ? 60 : fabsf(rand_normal()));
        for (int k = 0; k < n_peaks; k++) /* the lowest first */
            x[rand_int(n * k / n_peaks, n * (k + 1) / n_peaks - 1)] = peak[n_peaks - 1 - k];
        tg_top top[3];
        float lse;
        assert_int_equal(tg_top_k(x, n, 3, top, &lse), 3);
        assert_true(top[0].logit == 0.5f && lse >= 0.5f);
        check_top_k(n, 3);
    }
}

/* 1,000 rows: online and safe differ by what the header allows each. */
static void online_is_safe(void **state)
{
    (void)state;
    const tg_softmax_algo *algo = tg_softmax()->softmax;
    for (int row = 0; row < 1000; row++) {
        rand_state = 1 + (uint64_t)row;
        int n = rand_int(1, 5000);
        fill(n, 0);
        algo[TG_SOFTMAX_SAFE].run(x, (size_t)n, probs);
        algo[TG_SOFTMAX_ONLINE].run(x, (size_t)n, y);
        for (int i = 0; i < n; i++)
            assert_true(fabs((double)y[i] - (double)probs[i]) <= 2e-6 * (double)probs[i] + 2e-38);
        algo[TG_SOFTMAX_ONLINE].run(x, (size_t)n, x); /* in place */
        assert_memory_equal(x, y, (size_t)n * sizeof *x);
    }
}

/* ---- worked examples ------------------------------------------------------------------------- */

static void examples(void **state)
{
    (void)state;
    const float a[4] = {1, 3, 2, 0}, b[4] = {2, 1, 3, 0.5f};
    const double pa[4] = {0.087144, 0.643914, 0.236883, 0.032059},
                 pb[4] = {0.2321, 0.0854, 0.6308, 0.0518};
    EACH_SOFTMAX (s) {
        s->run(a, 4, y);
        for (int i = 0; i < 4; i++)
            assert_true(fabs((double)y[i] - pa[i]) < 1e-6);
        s->run(b, 4, y);
        for (int i = 0; i < 4; i++)
            assert_true(fabs((double)y[i] - pb[i]) < 1e-4);
    }
}

/* (m, l) after each score, seen from outside: m's own probability in the softmax of a prefix is 1 /
 * l. */
static void recurrence(void **state)
{
    (void)state;
    static const struct {
        float x[4];
        int n;
        double m[4], l[4];
    } known[] = {{{1, 5, 3}, 3, {1, 5, 5}, {1, 1.0183156, 1.1536509}},
                 {{2, 1, 3, 0.5f}, 4, {2, 2, 3, 3}, {1.0, 1.3679, 1.5032, 1.5853}}};
    for (int c = 0; c < 2; c++)
        for (int n = 1; n <= known[c].n; n++) {
            tg_top top;
            float lse;
            double m = known[c].m[n - 1], l = known[c].l[n - 1], tolerance = c ? 5e-5 : 1e-6;
            assert_int_equal(tg_top_k(known[c].x, n, 1, &top, &lse), 1);
            assert_true((double)top.logit == m && fabs(exp((double)lse - m) - l) < tolerance);
            EACH_SOFTMAX (a) {
                a->run(known[c].x, (size_t)n, y);
                assert_true(fabs(1 / (double)y[top.id] - l) < tolerance);
            }
        }
}

/* n equal scores: the sum is n, and log n is rounded once. */
static void log_of_counts(void **state)
{
    (void)state;
    memset(x, 0, sizeof x);
    for (int n = 1; n <= N_MAX; n++) {
        tg_top top;
        float lse;
        tg_top_k(x, n, 1, &top, &lse);
        if (lse != (float)log(n))
            fail_msg("log %d is %.9g, should be %.9g", n, (double)lse, log(n));
    }
}

static void overflow(void **state)
{
    (void)state;
    for (float top = 80; top < 100; top += 0.25f) {
        const float row[3] = {top, 0, top - 1};
        EACH_SOFTMAX (a) {
            a->run(row, 3, y);
            if (is_naive(a) && top > 88.4f) { /* e^88.4 + e^87.4 is more than float32 holds */
                assert_true(top > 88.73f ? isnan(y[0]) : y[0] == 0.0f);
                assert_true(y[1] == 0.0f);
            } else {
                assert_true(fabs((double)y[0] - 0.7310586) < 1e-5 && y[1] < 1e-34f);
            }
        }
    }
}

/* softmax(x + c) = softmax(x); exactly, where x + c is exact. */
static void shift(void **state)
{
    (void)state;
    for (int row = 0; row < 200; row++) {
        rand_state = 500 + (uint64_t)row;
        int n = rand_int(1, 2000);
        for (int i = 0; i < n; i++)
            x[i] = (float)rand_int(-4000, 4000) / 256;
        EACH_SOFTMAX (a) {
            if (is_naive(a))
                continue;
            a->run(x, (size_t)n, probs);
            for (int i = 0; i < n; i++)
                x[i] += 512;
            a->run(x, (size_t)n, y);
            for (int i = 0; i < n; i++)
                x[i] -= 512;
            assert_memory_equal(y, probs, (size_t)n * sizeof *y);
        }
    }
}

/* ---- what is no number ----------------------------------------------------------------------- */

static void not_numbers(void **state)
{
    (void)state;
    static const float bad[] = {NAN, -NAN, INFINITY};
    for (int row = 0; row < 300; row++) {
        rand_state = 900 + (uint64_t)row;
        int n = rand_int(1, 3000), at = rand_int(0, n - 1);
        fill(n, 0);
        x[at] = bad[row % 3];
        EACH_SOFTMAX (a) {
            a->run(x, (size_t)n, y);
            assert_true(isnan(y[at]));
        }
        EACH_TOP_K (a) {
            tg_top top[5];
            float lse;
            int found = a->run(x, (size_t)n, 5, top, &lse, probs);
            assert_true(isnan(lse));
            for (int i = 0; i < found; i++)
                assert_true(top[i].id >= 0 && top[i].id < n && !isnan(top[i].logit));
        }
    }
    for (int row = 0; row < 300; row++) { /* NaN hides nothing */
        static tg_top all[500], top[500];
        int n = rand_int(1, 500), k = rand_int(1, 500), real = 0;
        for (int i = 0; i < n; i++) {
            x[i] = rand_int(0, 2) ? NAN : rand_normal();
            if (!isnan(x[i]))
                all[real++] = (tg_top){x[i], i};
        }
        qsort(all, (size_t)real, sizeof *all, by_order);
        int found = tg_top_k(x, n, k, top, NULL);
        assert_int_equal(found, k < real ? k : real);
        assert_memory_equal(top, all, (size_t)found * sizeof *top);
    }
    for (int n = 1; n < 200; n++) { /* all banned */
        tg_top top[200];
        float lse;
        for (int i = 0; i < n; i++)
            x[i] = -INFINITY;
        EACH_SOFTMAX (a) {
            a->run(x, (size_t)n, y);
            assert_true(isnan(y[0]) && isnan(y[n - 1]));
        }
        assert_int_equal(tg_top_k(x, n, 7, top, &lse), n < 7 ? n : 7);
        assert_true(lse == -INFINITY && top[0].id == 0 &&
                    top[(n < 7 ? n : 7) - 1].id == (n < 7 ? n : 7) - 1);
    }
}

static void edges(void **state)
{
    (void)state;
    const float row[3] = {1, 2, 3};
    tg_top top[3];
    float lse;
    assert_int_equal(tg_top_k(row, 0, 3, top, &lse), 0);
    assert_true(lse == -INFINITY);
    assert_int_equal(tg_top_k(row, 3, 0, top, &lse), 0);
    assert_true(fabs((double)lse - 3.4076059) < 1e-6);
    assert_int_equal(tg_top_k(row, 3, -1, top, NULL), 0);
    assert_int_equal(tg_top_k(row, 3, 2147483647, top, &lse), 3);
    assert_int_equal(top[0].id, 2);
}

/* ---- instruction sets ------------------------------------------------------------------------ */

static const char *program;

static uint64_t hash_of(uint64_t hash, const float *v, int n)
{
    for (int i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &v[i], sizeof bits);
        hash = (hash ^ (isnan(v[i]) ? 0x7fc00000u : bits)) * 0x100000001b3u;
    }
    return hash;
}

/* What a child process prints: a hash of each algorithm's results on each row. */
static void print_bits(void)
{
    for (int row = 0; row < 90; row++) {
        rand_state = 3000 + (uint64_t)row;
        int n = rand_int(1, 3000);
        fill(n, row % 9);
        EACH_SOFTMAX (a) {
            a->run(x, (size_t)n, y);
            printf("%s %d %016llx\n", a->name, n, (unsigned long long)hash_of(0, y, n));
        }
        EACH_TOP_K (a) {
            tg_top top[40];
            float lse;
            uint64_t hash = (uint64_t)a->run(x, (size_t)n, 40, top, &lse, probs);
            for (int i = 0; i < 40 && i < n; i++)
                hash = hash_of(hash + (uint64_t)top[i].id, &top[i].logit, 1);
            printf("%s %d %016llx\n", a->name, n, (unsigned long long)hash_of(hash, &lse, 1));
        }
    }
}

static void levels_keep_the_bits(void **state)
{
    (void)state;
    assert_int_equal(levels_agree(program), 90 * (TG_SOFTMAX_COUNT + TG_TOP_K_COUNT));
}

int main(int argc, char **argv)
{
    program = argv[0];
    if (argc > 1) {
        print_bits();
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_rows), cmocka_unit_test(late_peaks),    cmocka_unit_test(online_is_safe),
        cmocka_unit_test(examples),    cmocka_unit_test(recurrence),    cmocka_unit_test(log_of_counts),
        cmocka_unit_test(overflow),    cmocka_unit_test(shift),         cmocka_unit_test(not_numbers),
        cmocka_unit_test(edges),       cmocka_unit_test(levels_keep_the_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
