/* Tests of the encoders: bits against the gguf package, and the laws that those that search must keep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "encode_vectors.h"
#include "kernel/dtype.h"
#include "kernel/encode.h"
#include "support/fnv.h"
#include "support/levels.h"

enum { N = 4096 };
static float x[N], back[N];
static uint8_t row[4 * N];
static const char *program;

static void blocks_as_the_gguf_package_encodes_them(void **state)
{
    (void)state;
    static float in[sizeof vec_numbers / 4];
    memcpy(in, vec_numbers, sizeof in);
#define CHECK(name)                                                                                \
    tg_encode_##name(in, row, sizeof in / 4);                                                      \
    assert_memory_equal(row, vec_##name, sizeof vec_##name)
    CHECK(f16);
    CHECK(bf16);
    CHECK(q8_0);
    CHECK(q4_0);
    CHECK(q4_1);
    CHECK(q5_0);
    CHECK(q5_1);
#undef CHECK
}

/* Close to normally distributed, as weights are, from a generator of its own. */
static void fill(uint32_t seed, float size)
{
    for (int i = 0; i < N; i++) {
        int sum = 0;
        for (int k = 0; k < 12; k++) {
            seed = seed * 1664525 + 1013904223;
            sum += (int)(seed >> 16) - 32768;
        }
        x[i] = size * (float)sum / 65536;
    }
}

static double loss(void) /* of the squares, the part that came back wrong */
{
    double lost = 0, all = 0;
    for (int i = 0; i < N; i++) {
        lost += ((double)x[i] - (double)back[i]) * ((double)x[i] - (double)back[i]);
        all += (double)x[i] * (double)x[i];
    }
    return sqrt(lost / all);
}

static void round_trip(const tg_dtype *t)
{
    memset(row, 0xa5, sizeof row);
    t->from_f32(x, row, N);
    t->to_f32(row, back, N);
}

/* The most that each format may lose of normally distributed numbers, at any size of them. */
static const double allowed[TG_TYPE_COUNT] = {
    [TG_F16] = 0.0003, [TG_BF16] = 0.002, [TG_Q8_0] = 0.0055, [TG_Q4_0] = 0.086,  [TG_Q4_1] = 0.08,
    [TG_Q5_0] = 0.044, [TG_Q5_1] = 0.039, [TG_Q2_K] = 0.275,  [TG_Q3_K] = 0.15,   [TG_Q4_K] = 0.072,
    [TG_Q5_K] = 0.036, [TG_Q6_K] = 0.018, [TG_IQ4_NL] = 0.076,
};

static void what_comes_back(void **state)
{
    (void)state;
    static const float sizes[] = {0.02f, 1.0f, 300.0f};
    for (int i = 0; i < TG_TYPE_COUNT; i++) {
        const tg_dtype *t = &tg_dtypes[i];
        for (uint32_t k = 0; k < 3 && t->from_f32; k++) {
            fill(k, sizes[k]);
            round_trip(t);
            if (loss() > allowed[i])
                fail_msg("%s lost %.5f, allowed %.5f", t->name, loss(), allowed[i]);
        }
    }
}

/* Numbers that leave nothing to search: zero, one value, one that stands alone, the largest there may be. */
static void odd_blocks(void **state)
{
    (void)state;
    for (int i = 0; i < TG_TYPE_COUNT; i++) {
        const tg_dtype *t = &tg_dtypes[i];
        if (!t->from_f32)
            continue;
        memset(x, 0, sizeof x);
        round_trip(t);
        for (int k = 0; k < N; k++)
            assert_true(back[k] == 0);
        for (int k = 0; k < N; k++)
            x[k] = k / 512 % 2 ? -0.375f : 0.375f;
        round_trip(t);
        assert_true(loss() < 0.02);
        memset(x, 0, sizeof x);
        for (int k = 0; k < N; k += 256)
            x[k + k / 16 % 256] = k % 512 ? -65504.0f : 65504.0f;
        round_trip(t);
        assert_true(loss() < 0.05); /* IQ4_NL has no zero */
        fill(7, 1e-7f); /* scales far below the smallest half */
        round_trip(t);
        for (int k = 0; k < N; k++)
            assert_true(fabsf(back[k]) < 2e-6f);
    }
}

static void same_bits_at_every_level(void **state)
{
    (void)state;
    assert_int_equal(levels_agree(program), TG_TYPE_COUNT);
}

static int print_bits(void)
{
    for (int i = 0; i < TG_TYPE_COUNT; i++) {
        const tg_dtype *t = &tg_dtypes[i];
        uint64_t h = FNV_START;
        for (uint32_t k = 0; k < 4 && t->from_f32; k++) {
            fill(k, 0.05f);
            t->from_f32(x, row, N);
            for (size_t j = 0; j < tg_dtype_row_bytes(t, N); j++)
                h = fnv_add(h, row[j]);
        }
        printf("%s %016" PRIx64 "\n", t->name, h);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return print_bits();
    program = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_as_the_gguf_package_encodes_them),
        cmocka_unit_test(what_comes_back),
        cmocka_unit_test(odd_blocks),
        cmocka_unit_test(same_bits_at_every_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
