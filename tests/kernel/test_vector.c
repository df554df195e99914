/* Norms, activations and exponentials against float64. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernel/vector.h"
#include "support/rand.h"

enum { N_MAX = 100 };

static void norms(void **state)
{
    (void)state;
    for (int n = 1; n <= N_MAX; n++) {
        rand_state = 100 + (uint64_t)n;
        float x[N_MAX], w[N_MAX], b[N_MAX], rms[N_MAX], layer[N_MAX];
        double sum = 0, squares = 0, variance = 0;
        for (int i = 0; i < n; i++) {
            x[i] = rand_normal() * 3 + 1;
            w[i] = rand_normal();
            b[i] = rand_normal();
            sum += (double)x[i];
            squares += (double)x[i] * (double)x[i];
        }
        double mean = sum / n;
        for (int i = 0; i < n; i++)
            variance += ((double)x[i] - mean) * ((double)x[i] - mean) / n;
        assert_true(tg_vector()->rms_norm(x, w, 1e-5f, n, rms));
        assert_true(tg_vector()->layer_norm(x, w, b, 1e-5f, n, layer));
        for (int i = 0; i < n; i++) {
            double r = (double)x[i] / sqrt(squares / n + 1e-5) * (double)w[i];
            double l = ((double)x[i] - mean) / sqrt(variance + 1e-5) * (double)w[i] + (double)b[i];
            assert_true(fabs(r - (double)rms[i]) < 1e-6 * (1 + fabs(r)));
            assert_true(fabs(l - (double)layer[i]) < 4e-6 * (1 + fabs(l)) || n == 1);
        }
        static const float bad[] = {NAN, INFINITY, -INFINITY};
        for (int k = 0; k < 3; k++) {
            float keep = x[n - 1];
            x[n - 1] = bad[k];
            assert_false(tg_vector()->rms_norm(x, w, 1e-5f, n, rms));
            assert_false(tg_vector()->layer_norm(x, w, b, 1e-5f, n, layer));
            assert_false(tg_vector()->finite(x, n));
            x[n - 1] = keep;
        }
        assert_true(tg_vector()->finite(x, n));
    }
}

static double reference(tg_act act, double x)
{
    switch (act) {
    case TG_ACT_SILU:
        return x / (1 + exp(-x));
    case TG_ACT_GELU_TANH:
        return 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
    case TG_ACT_GELU_ERF:
        return 0.5 * x * (1 + erf(x / sqrt(2.0)));
    case TG_ACT_RELU:
        return fmax(x, 0);
    case TG_ACT_SWIGLU_CLAMPED:
        x = fmin(x, 7);
        return x / (1 + exp(-1.702 * x));
    }
    return NAN;
}

static void activations(void **state)
{
    (void)state;
    for (int act = TG_ACT_SILU; act <= TG_ACT_SWIGLU_CLAMPED; act++) {
        for (int i = -4000; i <= 4000; i++) {
            float x[3] = {(float)i / 200, (float)i * 3, 1}, up[3] = {1, 2, 3}, y[3], z[3];
            tg_vector()->activate((tg_act)act, 7.0f, x, NULL, 3, y);
            tg_vector()->activate((tg_act)act, 7.0f, x, up, 3, z);
            for (int k = 0; k < 3; k++) {
                double r = reference((tg_act)act, (double)x[k]);
                if (!(fabs(r - (double)y[k]) <= 4e-7 * fmax(1, fabs((double)x[k]))))
                    fail_msg("activation %d of %g: %.9g, should be %.9g", act, (double)x[k], (double)y[k], r);
                assert_true(z[k] == y[k] * (up[k] + (act == TG_ACT_SWIGLU_CLAMPED ? 1.0f : 0.0f)));
            }
        }
        float bad[2] = {NAN, INFINITY}, y[2];
        tg_vector()->activate((tg_act)act, 7.0f, bad, NULL, 2, y);
        assert_true(isnan(y[0]) && (act == TG_ACT_SWIGLU_CLAMPED ? fabsf(y[1] - 7.0f) < 1e-4f : y[1] == INFINITY));
    }
}

static void exponentials(void **state)
{
    (void)state;
    double worst = 0;
    for (int i = 0; i < 200000; i++) {
        float x[2] = {(float)i / -2300.0f, -INFINITY}, y[2];
        tg_vector()->exps(x, 0, 1, 2, y);
        double r = exp((double)x[0]);
        double error = fabs(r - (double)y[0]) / (r * 0x1p-24);
        worst = error <= worst ? worst : error;
        assert_true(y[1] == 0.0f && y[0] <= 1.0f);
    }
    assert_true(worst <= 4); /* in half units of the last place, at most 2 units */

    float x[37], y[37];
    double sum = 0;
    for (int i = 0; i < 37; i++) {
        x[i] = (float)i / 10;
        sum += exp(((double)x[i] - 3.6) * 0.5);
    }
    float total = tg_vector()->exps(x, 3.6f, 0.5f, 37, y);
    assert_true(fabs((double)total - sum) < 1e-5 && y[36] == 1.0f);
}

/* 1,000 seeded rows of 1,000: probabilities against softmax in float64. */
static void softmax(void **state)
{
    (void)state;
    enum { N = 1000 };
    static float x[N], p[N];
    for (int row = 0; row < 1000; row++) {
        rand_state = 1 + (uint64_t)row;
        float max = -INFINITY;
        for (int i = 0; i < N; i++) {
            x[i] = rand_normal() * 5;
            max = x[i] > max ? x[i] : max;
        }
        double l = 0;
        for (int i = 0; i < N; i++)
            l += exp((double)x[i] - (double)max);
        float sum = tg_vector()->exps(x, max, 1, N, p);
        assert_true(fabs((double)sum - l) < 1e-5 * l && sum >= 1.0f && sum <= (float)N);
        for (int i = 0; i < N; i++)
            assert_true(fabs((double)(p[i] / sum) - exp((double)x[i] - (double)max) / l) < 1e-6); /* 63 sums a lane */
    }
}

/* Of the loops that measure the machine: they end, and count what they do. */
static void rounds(void **state)
{
    (void)state;
    assert_int_equal(tg_vector()->f32_rounds(0), 0);
    assert_int_equal(tg_vector()->int8_rounds(0), 0);
    size_t f32 = tg_vector()->f32_rounds(1), int8 = tg_vector()->int8_rounds(1);
    assert_true(f32 > 0 && f32 % 32 == 0); /* 16 lanes, two operations */
    assert_true(int8 > 0 && int8 % 128 == 0);
    assert_int_equal(tg_vector()->f32_rounds(1000), 1000 * f32);
    assert_int_equal(tg_vector()->int8_rounds(1000), 1000 * int8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norms),
        cmocka_unit_test(activations),
        cmocka_unit_test(exponentials),
        cmocka_unit_test(softmax),
        cmocka_unit_test(rounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
