/* The sampler's filters on distributions small enough to know, and its draws by frequency. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "sample/sampler.h"
#include "sample/sampling_vectors.h"
#include "support/rand.h"

static tg_sampler *make(int n, tg_sampling p)
{
    tg_sampler *s;
    assert_int_equal(tg_sampler_make(&s, n, &p, NULL), TG_OK);
    return s;
}

/* The published outputs for seed 1234567. */
static void generator(void **state)
{
    (void)state;
    static const uint64_t known[] = {6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
                                     4593380528125082431u, 16408922859458223821u};
    tg_rng rng = tg_rng_make(1234567, 0);
    for (int i = 0; i < 5; i++)
        assert_true(tg_rng_next(&rng) == known[i]);
    tg_rng a = tg_rng_make(1, 1), b = tg_rng_make(1, 2), c = tg_rng_make(2, 1);
    assert_true(a.state != b.state && a.state != c.state && b.state != c.state);
}

/* R19 from here on: temperature 0. */
static void greedy(void **state)
{
    (void)state;
    tg_sampler *s = make(5, (tg_sampling){.temp = 0, .top_k = 40, .top_p = 0.1f, .seed = 7});
    const float ties[] = {1, 3, 3, 2, 3}, minus[] = {-5, -4, -4, -9, -4};
    for (int i = 0; i < 10; i++) {
        assert_int_equal(tg_sampler_draw(s, ties, 5), 1);
        assert_int_equal(tg_sampler_draw(s, minus, 5), 1);
    }
    tg_sampler_ban(s, 1);
    tg_sampler_ban(s, -1);
    tg_sampler_ban(s, 5);
    assert_int_equal(tg_sampler_draw(s, ties, 5), 2);
    tg_sampler_free(s);
}

/* Draws n times and compares frequencies with probabilities; an impossible id must not come. */
static void frequencies(tg_sampling p, const float *logits, int n, const double *want)
{
    enum { DRAWS = 40000 };
    int seen[16] = {0};
    tg_sampler *s = make(n, p);
    for (int i = 0; i < DRAWS; i++) {
        int32_t id = tg_sampler_draw(s, logits, n);
        assert_in_range(id, 0, n - 1);
        seen[id]++;
    }
    for (int i = 0; i < n; i++) {
        double sigma = sqrt(want[i] * (1 - want[i]) / DRAWS);
        if (want[i] == 0.0)
            assert_int_equal(seen[i], 0);
        else if (!(fabs((double)seen[i] / DRAWS - want[i]) <= 5 * sigma + 1e-9))
            fail_msg("id %d: %d of %d draws, expected %g", i, seen[i], DRAWS, want[i] * DRAWS);
    }
    tg_sampler_free(s);
}

static void filters(void **state)
{
    (void)state;
    float logits[6];
    const double p[6] = {0.05, 0.4, 0.1, 0.25, 0.05, 0.15};
    for (int i = 0; i < 6; i++)
        logits[i] = (float)log(p[i]);
    frequencies((tg_sampling){.temp = 1, .top_p = 1, .seed = 1}, logits, 6, p);
    frequencies((tg_sampling){.temp = 1, .top_p = 1, .top_k = 6, .seed = 2}, logits, 6, p);
    frequencies((tg_sampling){.temp = 1, .top_p = 1, .top_k = 1000, .seed = 2}, logits, 6, p);

    const double k2[6] = {0, 0.4 / 0.65, 0, 0.25 / 0.65, 0, 0};
    frequencies((tg_sampling){.temp = 1, .top_p = 1, .top_k = 2, .seed = 3}, logits, 6, k2);
    /* of two that tie for the last place the lower id stays */
    const double k5[6] = {0.05 / 0.95, 0.4 / 0.95, 0.1 / 0.95, 0.25 / 0.95, 0, 0.15 / 0.95};
    frequencies((tg_sampling){.temp = 1, .top_p = 1, .top_k = 5, .seed = 4}, logits, 6, k5);

    const double p70[6] = {0, 0.4 / 0.8, 0, 0.25 / 0.8, 0, 0.15 / 0.8};
    frequencies((tg_sampling){.temp = 1, .top_p = 0.7f, .seed = 5}, logits, 6, p70);
    const double one[6] = {0, 1, 0, 0, 0, 0};
    frequencies((tg_sampling){.temp = 1, .top_p = 0, .seed = 6}, logits, 6, one);
    frequencies((tg_sampling){.temp = 1, .top_p = 1, .min_p = 1, .seed = 6}, logits, 6, one);
    frequencies((tg_sampling){.temp = 1, .top_p = 1, .top_k = 1, .seed = 6}, logits, 6, one);

    const double m3[6] = {0, 0.4 / 0.8, 0, 0.25 / 0.8, 0, 0.15 / 0.8};
    frequencies((tg_sampling){.temp = 1, .top_p = 1, .min_p = 0.3f, .seed = 7}, logits, 6, m3);

    double hot[6], sum = 0; /* temperature 2: square roots */
    for (int i = 0; i < 6; i++)
        sum += hot[i] = sqrt(p[i]);
    for (int i = 0; i < 6; i++)
        hot[i] /= sum;
    frequencies((tg_sampling){.temp = 2, .top_p = 1, .seed = 8}, logits, 6, hot);
}

/* R19: none of the ends of the ranges leaves nothing, whatever the row: without order, of one value, with infinities. */
static void something_is_kept(void **state)
{
    enum { N = 300 };
    (void)state;
    static const float ends[] = {0, 1e-30f, 1};
    float row[4][N];
    for (int i = 0; i < N; i++) {
        row[0][i] = rand_normal();
        row[1][i] = -3;
        row[2][i] = i == 77 ? 0 : -INFINITY;
        row[3][i] = i % 2 ? -1e30f : -INFINITY;
    }
    for (int k = 0; k < 4 * 3 * 3 * 3 * 4; k++) {
        static const int top_k[] = {0, 1, N, INT32_MAX};
        const tg_sampling p = {.temp = 1 + 99 * (float)(k % 2), .top_k = top_k[k % 4], .top_p = ends[k / 4 % 3],
                               .min_p = ends[k / 12 % 3], .typical = ends[k / 36 % 3], .seed = (uint64_t)k};
        tg_sampler *s = make(N, p);
        for (int draw = 0; draw < 8; draw++) {
            int32_t id = tg_sampler_draw(s, row[k / 108], N);
            assert_in_range(id, 0, N - 1);
            assert_true(k / 108 != 2 || id == 77);
            assert_true(k / 108 != 3 || id % 2 == 1);
        }
        tg_sampler_free(s);
    }
}

/* All of a large vocabulary in order: what is drawn from k of it in order is drawn from all, where k are enough. */
static void order_of_all(void **state)
{
    enum { N = 20000 };
    static float row[N];
    (void)state;
    for (int i = 0; i < N; i++)
        row[i] = i % 100 == 3 ? -0.0f : i % 100 == 5 ? 0.0f : (float)(rand_int(-40, 20)) / 8; /* many are the same */
    row[17] = -INFINITY;
    for (uint64_t seed = 0; seed < 40; seed++) {
        tg_sampling p = {.temp = 1, .top_p = 0.3f, .seed = seed};
        tg_sampler *all = make(N, p);
        p.top_k = N - 1; /* by selection, not by sorting */
        tg_sampler *most = make(N, p);
        for (int i = 0; i < 10; i++)
            assert_int_equal(tg_sampler_draw(all, row, N), tg_sampler_draw(most, row, N));
        tg_sampler_free(all);
        tg_sampler_free(most);
    }
}

static void seeds(void **state)
{
    (void)state;
    float logits[50];
    for (int i = 0; i < 50; i++)
        logits[i] = (float)(i % 7);
    tg_sampling p = TG_SAMPLING_DEFAULT;
    p.seed = 42;
    tg_sampler *a = make(50, p), *b = make(50, p);
    p.stream = 1;
    tg_sampler *c = make(50, p);
    int differ = 0;
    for (int i = 0; i < 200; i++) {
        int32_t x = tg_sampler_draw(a, logits, 50);
        assert_int_equal(x, tg_sampler_draw(b, logits, 50));
        differ += x != tg_sampler_draw(c, logits, 50);
    }
    assert_true(differ > 100);
    tg_sampler_free(a);
    tg_sampler_free(b);
    tg_sampler_free(c);
}

/* One draw a token, also when there was nothing to decide: later tokens do not shift. */
static void one_draw_a_token(void **state)
{
    (void)state;
    const float sure[] = {100, 0, 0, 0}, open[] = {1, 1, 1, 1};
    tg_sampling p = {.temp = 1, .top_p = 0.9f, .seed = 5};
    tg_sampler *a = make(4, p), *b = make(4, p);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(tg_sampler_draw(a, sure, 4), 0);
        tg_sampler_draw(b, open, 4);
        assert_int_equal(tg_sampler_draw(a, open, 4), tg_sampler_draw(b, open, 4));
    }
    tg_sampler_free(a);
    tg_sampler_free(b);
}

/* A banned id is as if it were not there: the same draws come from the row without it, for any top-k. */
static void bans(void **state)
{
    (void)state;
    enum { N = 700 };
    static const int top_k[] = {0, 1, 2, 40, 255, 300, 650, 1000};
    for (int row = 0; row < 400; row++) {
        rand_state = 1 + (uint64_t)row;
        float logits[N], rest[N];
        int32_t id[N];
        int n = rand_int(2, N), left = 0, often = rand_int(1, 40);
        tg_sampling p = {.temp = 1, .top_k = top_k[row % 8], .top_p = 1, .seed = (uint64_t)row};
        tg_sampler *with = make(n, p), *without = make(n, p);
        for (int i = 0; i < n; i++) {
            logits[i] = (float)rand_int(-20, 20) / 4; /* many ties */
            if (i > 0 && rand_int(0, often) == 0) {
                tg_sampler_ban(with, i);
                tg_sampler_ban(with, i);
            } else {
                id[left] = i;
                rest[left++] = logits[i];
            }
        }
        for (int i = 0; i < 20; i++)
            assert_int_equal(tg_sampler_draw(with, logits, n), id[tg_sampler_draw(without, rest, left)]);
        tg_sampler_free(with);
        tg_sampler_free(without);
    }
}

/* What transformers' warpers keep: every id of it is drawn at a high temperature, and no other. */
static void as_the_reference_cuts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cut_cases / sizeof *cut_cases; i++) {
        const struct cut_case *c = &cut_cases[i];
        char seen[VECTOR_N + 1] = "000000000000000000000000";
        tg_sampler *s = make(VECTOR_N, c->params);
        for (int draw = 0; draw < 1000; draw++)
            seen[tg_sampler_draw(s, c->row, VECTOR_N)] = '1';
        assert_string_equal(seen, c->kept);
        tg_sampler_free(s);
    }
}

static void as_the_reference_penalizes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof repeat_cases / sizeof *repeat_cases; i++) {
        const struct repeat_case *c = &repeat_cases[i];
        tg_sampler *s = make(VECTOR_N, (tg_sampling){.top_p = 1, .last_n = -1, .repeat = c->repeat});
        for (int k = 0; k < c->n; k++)
            tg_sampler_accept(s, c->ids[k]);
        const float *got = tg_sampler_adjusted(s, c->row, VECTOR_N);
        for (int id = 0; id < VECTOR_N; id++)
            if (!(fabsf(got[id] - c->want[id]) <= 1e-6f * fabsf(c->want[id])))
                fail_msg("id %d: %.9g, not %.9g", id, (double)got[id], (double)c->want[id]);
        tg_sampler_free(s);
    }
}

/* U15: the window holds so many tokens, none at 0 and all at -1; what is drawn enters it by itself. */
static void windows(void **state)
{
    (void)state;
    enum { N = 8, TOKENS = 500 };
    static const int windows[] = {0, 1, 2, 3, 7, 64, 499, 500, 1000, -1};
    const float row[N] = {1, -1, 2, -2, 0.5f, -0.5f, 0, 3};
    for (size_t w = 0; w < sizeof windows / sizeof *windows; w++) {
        const tg_sampling p = {.temp = 1, .top_p = 1, .last_n = windows[w], .repeat = 1.25f, .presence = 0.5f,
                               .frequency = 0.25f, .seed = w};
        int ids[TOKENS];
        tg_sampler *s = make(N, p);
        rand_state = 1 + w;
        for (int n = 0; n < TOKENS; n++) {
            float want[N];
            int first = p.last_n < 0 || n < p.last_n ? 0 : n - p.last_n;
            for (int id = 0; id < N; id++) {
                int count = 0;
                for (int k = first; k < n; k++)
                    count += ids[k] == id;
                want[id] = row[id];
                if (count > 0)
                    want[id] = (row[id] > 0 ? row[id] / p.repeat : row[id] * p.repeat) -
                               ((float)count * p.frequency + p.presence);
            }
            assert_memory_equal(tg_sampler_adjusted(s, row, N), want, sizeof want);
            ids[n] = n % 3 ? rand_int(0, N - 1) : tg_sampler_draw(s, row, N);
            if (n % 3)
                tg_sampler_accept(s, ids[n]);
        }
        tg_sampler_free(s);
    }
    tg_sampler *s = make(N, (tg_sampling){.top_p = 1, .last_n = -1, .presence = 1});
    tg_sampler_accept(s, -1); /* no ids of the vocabulary */
    tg_sampler_accept(s, N);
    assert_memory_equal(tg_sampler_adjusted(s, row, N), row, sizeof row);
    tg_sampler_free(s);
}

/* Biases add up, and come before the penalties. */
static void biases(void **state)
{
    (void)state;
    const float row[4] = {1, 2, 3, 4};
    const tg_logit_bias bias[] = {{0, 5}, {1, -4}, {0, 0.5f}};
    tg_sampler *s = make(4, (tg_sampling){.top_p = 1, .last_n = 2, .repeat = 2, .bias = bias, .n_bias = 3});
    assert_int_equal(tg_sampler_draw(s, row, 4), 0);
    tg_sampler_accept(s, 1);
    tg_sampler_ban(s, 3);
    const float *got = tg_sampler_adjusted(s, row, 4);
    assert_true(got[0] == 3.25f && got[1] == -4 && got[2] == 3 && isnan(got[3]));
    tg_sampler_free(s);
}

/* U14, U16: at the ends of their ranges parameters do what they say. */
static void ends_of_ranges(void **state)
{
    (void)state;
    const float logits[3] = {logf(0.3f), logf(0.5f), logf(0.2f)}, ties[3] = {1, 2, 2};
    static const float cold[] = {0, 1e-45f, 1e-9f, 9e-7f};
    for (int i = 0; i < 4; i++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            tg_sampler *s = make(3, (tg_sampling){.temp = cold[i], .top_p = 1, .seed = seed});
            assert_int_equal(tg_sampler_draw(s, logits, 3), 1);
            assert_int_equal(tg_sampler_draw(s, ties, 3), 1);
            tg_sampler_free(s);
        }
    const double all[3] = {0.3, 0.5, 0.2}, two[3] = {0.375, 0.625, 0}, one[3] = {0, 1, 0};
    frequencies((tg_sampling){.temp = 1, .top_p = 1, .seed = 1}, logits, 3, all);
    frequencies((tg_sampling){.temp = 1, .top_p = 1, .top_k = 3000, .seed = 1}, logits, 3, all);
    frequencies((tg_sampling){.temp = 1, .top_p = 0.79f, .seed = 1}, logits, 3, two);
    frequencies((tg_sampling){.temp = 1, .top_p = 0, .seed = 1}, logits, 3, one);
    frequencies((tg_sampling){.temp = 1, .top_p = 1, .typical = 1, .seed = 1}, logits, 3, all);
    frequencies((tg_sampling){.temp = 1, .top_p = 1, .typical = 1e-9f, .seed = 1}, logits, 3,
                (const double[]){1, 0, 0}); /* the most typical one, not the likeliest */
}

/* Chi-square over many ids: the draws as a whole fit the distribution that the parameters make of it. */
static void laws(void **state)
{
    (void)state;
    enum { N = 100, DRAWS = 200000 };
    for (uint64_t seed = 1; seed <= 5; seed++) {
        float logits[N];
        double want[N], sum = 0, chi = 0;
        int seen[N] = {0};
        rand_state = seed;
        for (int i = 0; i < N; i++)
            sum += want[i] = exp((double)(logits[i] = (float)rand_int(-100, 100) / 50) / 0.8);
        tg_sampler *s = make(N, (tg_sampling){.temp = 0.8f, .top_p = 1, .seed = seed});
        for (int i = 0; i < DRAWS; i++)
            seen[tg_sampler_draw(s, logits, N)]++;
        for (int i = 0; i < N; i++) {
            double expected = want[i] / sum * DRAWS;
            chi += (seen[i] - expected) * (seen[i] - expected) / expected;
        }
        assert_true(chi > 55 && chi < 160); /* 99 degrees of freedom: 4 of 10,000 lie outside */
        tg_sampler_free(s);
    }
}

static void bad_parameters(void **state)
{
    (void)state;
    const tg_sampling bad[] = {
        {.temp = -1, .top_p = 1},   {.temp = NAN, .top_p = 1},        {.temp = INFINITY, .top_p = 1},
        {.top_p = 1, .top_k = -1},  {.top_p = 1.01f},                 {.top_p = NAN},
        {.top_p = 1, .min_p = -0.1f}, {.top_p = 1, .min_p = 1.5f},    {.top_p = 1, .typical = -0.1f},
        {.top_p = 1, .typical = NAN}, {.top_p = 1, .last_n = -2},     {.top_p = 1, .last_n = (1 << 20) + 1},
        {.top_p = 1, .repeat = -1},   {.top_p = 1, .repeat = 0.009f}, {.top_p = 1, .presence = 101},
        {.top_p = 1, .frequency = NAN},
        {.top_p = 1, .bias = &(tg_logit_bias){10, 1}, .n_bias = 1},
        {.top_p = 1, .bias = &(tg_logit_bias){-1, 1}, .n_bias = 1},
        {.top_p = 1, .bias = &(tg_logit_bias){1, INFINITY}, .n_bias = 1},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tg_sampler *s;
        tg_error err;
        assert_int_equal(tg_sampler_make(&s, 10, &bad[i], &err), TG_E_USAGE);
        assert_null(s);
        assert_non_null(err.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generator), cmocka_unit_test(greedy),           cmocka_unit_test(filters),
        cmocka_unit_test(seeds),     cmocka_unit_test(one_draw_a_token), cmocka_unit_test(bad_parameters),
        cmocka_unit_test(bans),      cmocka_unit_test(as_the_reference_cuts), cmocka_unit_test(as_the_reference_penalizes),
        cmocka_unit_test(windows),   cmocka_unit_test(biases), cmocka_unit_test(ends_of_ranges), cmocka_unit_test(laws),
        cmocka_unit_test(something_is_kept), cmocka_unit_test(order_of_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
