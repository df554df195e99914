/* Writing keys and values into a cache, and what is read back, for each type. */
#include "attn/problem.h"

static double most_of(tg_type type)
{
    return type == TG_F16    ? 65504
           : type == TG_BF16 ? 0x1.fep127
           : type == TG_Q8_0 ? 127.0 * 65504
           : type == TG_Q4   ? 65504
                             : (double)INFINITY;
}

/* What x becomes; for Q8_0, what it is before it becomes a code. */
static double rounded(float x, tg_type type)
{
    double most = most_of(type), y = (double)x > most ? most : (double)x < -most ? -most : (double)x;
    if (isnan(x))
        return (double)NAN;
    return type == TG_F16    ? (double)tg_f16_to_f32(tg_f32_to_f16((float)y))
           : type == TG_BF16 ? (double)to_bf16((float)y)
                             : y;
}

/* Half a step of the format at x; for Q8_0, of the 32 numbers around it: the scale is rounded up, to a
 * float16 that may be subnormal. */
static double half_step(double x, tg_type type, double amax)
{
    switch (type) {
    case TG_F16:
        return fmax(fabs(x) * 0x1p-11, 0x1p-25);
    case TG_BF16:
        return fabs(x) * 0x1p-8 + 0x1p-134;
    case TG_Q8_0:
        return (amax / 127 * (1 + 0x1p-10) + 0x1p-24) / 2;
    default:
        return 0;
    }
}

/* The same for Q4, rotated. With one of the scales that are tried no number of a key is off by more than a step
 * (half a step but at the upper end), or of a value half of the largest between two levels; the scale that is
 * chosen is no worse in all.
 * Adds up squares of the errors and of what should be there. */
static int check_q4(const float *x, const float *got, int n, bool key, double sum[2])
{
    int mixed = tg_kv_rotation(n), reach = mixed > 32 ? mixed : 32, too_large = 0;
    double y[256] = {0}, z[256] = {0}, a[256], b[256], norm = 0, half = key ? 1.0 / 16 : 14.5 / 127, top = key ? 16 : 127;
    bool nan[256] = {false};
    for (int d = 0; d < n; d++) {
        nan[d / reach] |= isnan(x[d]) != 0;
        too_large += fabs((double)x[d]) > most_of(TG_Q4);
    }
    for (int d = 0; d < n; d++) {
        bool bad = nan[d / reach];
        assert_true(isnan(got[d]) == bad);
        y[d] = bad ? 0 : fmax(-most_of(TG_Q4), fmin(most_of(TG_Q4), (double)x[d]));
        z[d] = bad ? 0 : (double)got[d];
        norm += y[d] * y[d];
    }
    rotate64(y, n, false, a);
    rotate64(z, n, false, b);
    for (int d = 0; d < n; d += 32) {
        double amax = 0, errors = 0, most = 0;
        for (int i = d; i < n && i < d + 32; i++) {
            amax = fmax(amax, fabs(a[i]));
            errors += (a[i] - b[i]) * (a[i] - b[i]);
            most = fmax(most, fabs(a[i] - b[i]));
            sum[0] += (a[i] - b[i]) * (a[i] - b[i]);
            sum[1] += a[i] * a[i];
        }
        double step = half * amax * (1 + 0x1p-10) + 0x1p-24 * top + 1e-6 * sqrt(norm);
        if (!(errors <= 32 * step * step) || !(most <= 0.17 * amax + step))
            fail_msg("Q4 %s: an error of %g, %g in all, where the largest is %g", key ? "key" : "value", most,
                     sqrt(errors), amax);
    }
    return too_large;
}

/* `got` is what was read back for the n numbers x of one key or value. Returns how many were too large. */
static int check(tg_type type, const float *x, const float *got, int n, bool key)
{
    int too_large = 0;
    double sum[2] = {0};
    if (type == TG_Q4)
        return check_q4(x, got, n, key, sum);
    for (int d = 0; d < n; d++) {
        double amax = 0, y = rounded(x[d], type), out = (double)got[d];
        bool nan = false;
        for (int i = d / 32 * 32; i < n && i < d / 32 * 32 + 32; i++) {
            nan |= isnan(x[i]) != 0;
            amax = fmax(amax, fabs(rounded(x[i], type)));
        }
        too_large += fabs((double)x[d]) > most_of(type);
        if (isnan(x[d]) || (nan && type == TG_Q8_0)) {
            assert_true(isnan(out));
            continue;
        }
        double clamped = fmax(-most_of(type), fmin(most_of(type), (double)x[d]));
        bool right = type == TG_Q8_0 ? fabs(out - y) <= half_step(y, type, amax) : out == y;
        if (!right || (type != TG_F32 && !(fabs(out - clamped) <= half_step(clamped, type, amax))))
            fail_msg("type %d: %.9g came back as %.9g", (int)type, (double)x[d], out);
    }
    return too_large;
}

static void fill(float *x, size_t n, int i)
{
    float scale = i % 3 ? 1 : (float)exp(rand_unit() * 60 - 30);
    for (size_t j = 0; j < n; j++) {
        x[j] = near_normal() * scale;
        int odd = rand_int(0, i % 4 ? 10000 : 100);
        x[j] = odd == 0   ? NAN
               : odd == 1 ? INFINITY
               : odd == 2 ? -INFINITY
               : odd == 3 ? 65505.0f
               : odd == 4 ? -65504.0f
               : odd == 5 ? 0x1.fffffep127f
               : odd == 6 ? 127.0f * 65504.0f
               : odd == 7 ? -0.0f
               : odd == 8 ? 6e-8f
                          : x[j];
    }
}

/* Positions come in any order; each is what was put there, and nothing else. */
static void round_trip(void **state)
{
    (void)state;
    for (int i = 0; i < (DEBUG ? 100 : 600); i++) {
        rand_state = 20 + (uint64_t)i;
        int n = rand_int(1, 150), heads = rand_int(1, 3), dim = i % 5 ? rand_int(1, 80) : rand_int(81, 256);
        tg_type k = cache_types[i % N_TYPES], v = cache_types[i / N_TYPES % N_TYPES];
        problem p = problem_make((sizes){1, n, heads, heads, dim, k, v, 1}, 1);
        size_t width = (size_t)(heads * dim), total = (size_t)n * width;
        fill(p.k, total, i);
        fill(p.v, total, i + 1);
        float *keys = memcpy(malloc(total * sizeof(float)), p.k, total * sizeof(float));
        float *values = memcpy(malloc(total * sizeof(float)), p.v, total * sizeof(float));
        int clamped = 0, want = 0, stride = n == 1 || n % 7 ? 7 : 5;
        stride = n % stride ? stride : 1;
        for (int j = 0; j < n; j++)
            clamped += put(&p, 0, j * stride % n);
        for (int j = 0; j < n; j++)
            read_back(&p, 0, j);
        for (size_t at = 0; at < total; at += (size_t)dim)
            want += check(k, keys + at, p.k + at, dim, true) + check(v, values + at, p.v + at, dim, false);
        assert_int_equal(clamped, want);
        free(keys);
        free(values);
        problem_free(&p);
    }
}

/* Values are padded with zeros up to v_dim. */
static void padding(void **state)
{
    (void)state;
    for (int i = 0; i < N_TYPES; i++)
        for (int dim = 1; dim < 70; dim++) {
            problem p = problem_make((sizes){1, 64, 1, 1, dim, TG_F32, cache_types[i], 1}, 1);
            float wide[TG_KV_BLOCK * 80];
            for (int j = 0; j < 64; j++)
                put(&p, 0, j);
            const uint8_t *block = tg_kv_at(&p.a.kv, p.block[0], 0, true);
            int v_dim = p.a.kv.v_dim;
            if (i == 0)
                memcpy(wide, block, p.a.kv.v_block_bytes);
            else
                tg_kv_table()->widen_v(block, cache_types[i], dim, 64, wide);
            for (int j = 0; j < 64; j++)
                for (int d = dim; d < v_dim; d++)
                    assert_true(wide[j * v_dim + d] == 0.0f);
            problem_free(&p);
        }
}

/* The limits of each type are kept as they are, and what is beyond them is clamped and counted. */
static void saturation(void **state)
{
    (void)state;
    for (int i = 0; i < N_TYPES * N_TYPES; i++) {
        rand_state = 3 + (uint64_t)i;
        tg_type k = cache_types[i % N_TYPES], v = cache_types[i / N_TYPES];
        if (k == TG_Q4 || v == TG_Q4)
            continue; /* round_trip has it: no number stays as it is */
        problem p = problem_make((sizes){1, 1, 1, 1, 40, k, v, 1}, 0);
        for (int d = 0; d < 40; d++)
            p.k[d] = p.v[d] = 1;
        p.k[3] = (float)most_of(k) * 1.01f;
        p.v[0] = k == TG_F32 && v == TG_F32 ? 65504.0f : v == TG_F32 ? 3e38f : (float)most_of(v);
        p.v[20] = -INFINITY;
        assert_int_equal(put(&p, 0, 0), (k != TG_F32) + (v != TG_F32));
        assert_true(k == TG_F32 || (double)p.k[3] == most_of(k));
        if (v != TG_F32) {
            run(tg_attn_strategy_by_name("safe"), &p, &p.a, 1);
            assert_true((double)p.v[0] == most_of(v) && (double)p.v[20] == -most_of(v) &&
                        fabsf(p.v[39] - 1) < 1e-3f);
            assert_true(k == TG_F32 || ((double)p.a.out[20] == -most_of(v) &&
                                         fabsf(p.a.out[39] - 1) < 1e-3f));
        }
        problem_free(&p);
    }
}

/* The rotation is orthonormal, mixes as many dimensions as it says, and has its inverse. */
static void rotation(void **state)
{
    (void)state;
    for (int dim = 1; dim <= 256; dim++) {
        float *x = normals((size_t)dim, 1), y[256];
        double from[256], want[256], norm = 0;
        memcpy(y, x, (size_t)dim * sizeof *x);
        for (int d = 0; d < dim; d++)
            from[d] = (double)x[d];
        rotate64(from, dim, false, want);
        tg_kv_table()->rotate(y, dim, false);
        for (int d = 0; d < dim; d++) {
            assert_true(fabs((double)y[d] - want[d]) < 2e-6);
            norm += want[d] * want[d] - from[d] * from[d];
        }
        assert_true(fabs(norm) < 1e-9);
        tg_kv_table()->rotate(y, dim, true);
        for (int d = 0; d < dim; d++)
            assert_true(fabs((double)y[d] - from[d]) < 2e-6);
        assert_int_equal(dim % tg_kv_rotation(dim), 0);
        free(x);
    }
}

/* What Q4 loses of normal numbers, and of others that the rotation makes so. */
static void quality(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        rand_state = 77;
        problem p = problem_make((sizes){1, 200, 2, 2, i % 2 ? 128 : 64, TG_Q4, TG_Q4, 1}, 1);
        size_t dim = (size_t)p.s.head_dim, total = key_at(&p, 1, 0, 0);
        for (size_t at = 0; i > 1 && at < total; at += dim)
            p.k[at + 7] = p.v[at + 7] = 12 + near_normal();
        float *k = memcpy(malloc(total * sizeof(float)), p.k, total * sizeof(float));
        float *v = memcpy(malloc(total * sizeof(float)), p.v, total * sizeof(float));
        double key[2] = {0}, value[2] = {0};
        for (int j = 0; j < 200; j++)
            put(&p, 0, j);
        for (size_t at = 0; at < total; at += dim) {
            check_q4(k + at, p.k + at, (int)dim, true, key);
            check_q4(v + at, p.v + at, (int)dim, false, value);
        }
        if (!(sqrt(key[0] / key[1]) < 0.042) || !(sqrt(value[0] / value[1]) < 0.081))
            fail_msg("loses %g of keys, %g of values", sqrt(key[0] / key[1]), sqrt(value[0] / value[1]));
        free(k);
        free(v);
        problem_free(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(padding),
        cmocka_unit_test(saturation),
        cmocka_unit_test(rotation),
        cmocka_unit_test(quality),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
