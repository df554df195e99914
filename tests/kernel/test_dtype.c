/* Tests of dtype.c and its kin: halves against their definition in double, blocks against the gguf package. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dtype_vectors.h"
#include "kernel/dtype.h"
#include "kernel/matmul.h"
#include "support/blocks.h"
#include "support/fnv.h"

/* What the standard says a half is, for one that is not NaN; infinity counts as 2^16, where it
 * stands in the rounding. */
static double half_value(uint32_t h)
{
    int exp = (int)(h >> 10 & 31), man = (int)(h & 1023);
    double v = exp ? ldexp(1024 + man, exp - 25) : ldexp(man, -24);
    return h & 0x8000 ? -v : v;
}

static uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

static void every_half_to_float(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        float f = tg_f16_to_f32((uint16_t)h);
        if ((h & 0x7fff) > 0x7c00) {
            assert_true(isnan(f));
            assert_int_equal(bits_of(f) >> 13 & 1023, h & 1023);
        } else if ((h & 0x7fff) == 0x7c00) {
            assert_true(isinf(f));
        } else {
            assert_true((double)f == half_value(h));
        }
        assert_int_equal(bits_of(f) >> 31, h >> 15);
    }
}

static void every_half_and_back(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        uint16_t back = tg_f32_to_f16(tg_f16_to_f32((uint16_t)h));
        if ((h & 0x7fff) > 0x7c00)
            assert_true((back & 0x7fff) > 0x7c00 && (back & 0x200)); /* a quiet NaN */
        else
            assert_int_equal(back, h);
    }
}

/* x, positive, lies between halves h and h + 1: the nearer one, on a tie the even one. */
static void check_rounding(float x, uint32_t h)
{
    double below = (double)x - half_value(h), above = half_value(h + 1) - (double)x;
    uint32_t wanted = below < above || (below == above && !(h & 1)) ? h : h + 1;
    uint32_t got = tg_f32_to_f16(x), negative = tg_f32_to_f16(-x);
    if (got != wanted)
        print_error("%a: found %04x, wanted %04x\n", (double)x, got, wanted);
    assert_int_equal(got, wanted);
    assert_int_equal(negative, wanted | 0x8000);
}

static void rounding_between_neighbours(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x7c00; h++) {
        float mid = (float)((half_value(h) + half_value(h + 1)) / 2); /* exact */
        check_rounding(mid, h);
        check_rounding(nextafterf(mid, 0), h);
        check_rounding(nextafterf(mid, INFINITY), h);
        float low = (float)half_value(h), high = (float)half_value(h + 1);
        check_rounding(nextafterf(low, INFINITY), h);
        check_rounding(nextafterf(high, 0), h);
    }
}

static void beyond_the_halves(void **state)
{
    (void)state;
    assert_int_equal(tg_f32_to_f16(65504), 0x7bff);
    assert_int_equal(tg_f32_to_f16(65520), 0x7c00);
    assert_int_equal(tg_f32_to_f16(1e30f), 0x7c00);
    assert_int_equal(tg_f32_to_f16(-INFINITY), 0xfc00);
    assert_int_equal(tg_f32_to_f16(1e-30f), 0);
    assert_int_equal(tg_f32_to_f16(-1e-45f), 0x8000);
    assert_true((tg_f32_to_f16(NAN) & 0x7fff) > 0x7c00);
}

/* One row of n numbers by the table's decoder, in one go and a block at a time, and by the fastest one. */
static void check_row(const tg_dtype *t, const uint8_t *raw, size_t n, float *out, float *again)
{
    t->to_f32(raw, out, n);
    for (size_t i = 0; i < n; i += (size_t)t->block)
        t->to_f32(raw + tg_dtype_row_bytes(t, i), again + i, (size_t)t->block);
    assert_memory_equal(out, again, n * sizeof *out);
    tg_matrix m = {.data = raw, .type = t, .n_out = 1, .n_in = (int)n};
    tg_matrix_row(&m, 0, again);
    assert_memory_equal(out, again, n * sizeof *out);
}

static void blocks_as_the_gguf_package_decodes_them(void **state)
{
    (void)state;
    enum { MOST = 256 * n_hashed };
    static float out[MOST], again[MOST];
    static uint8_t random[MOST * 2];
    for (int type = TG_BF16; type < TG_TYPE_COUNT; type++) {
        const tg_dtype *t = &tg_dtypes[type];
        size_t i = 0, n = (size_t)t->block * n_hashed;
        while (vec_types[i].id != (uint32_t)t->gguf_id)
            assert_true(++i < sizeof vec_types / sizeof *vec_types);
        assert_int_equal(tg_dtype_row_bytes(t, vec_types[i].n), vec_types[i].n_raw);
        check_row(t, vec_types[i].raw, vec_types[i].n, out, again);
        assert_memory_equal(out, vec_types[i].bits, vec_types[i].n * sizeof *out);

        rand_state = 1 + vec_types[i].id;
        random_blocks(t, random, n_hashed);
        check_row(t, random, n, out, again);
        uint64_t h = FNV_START;
        for (size_t k = 0; k < n; k++)
            h = fnv_add(h, bits_of(out[k]));
        if (h != vec_types[i].hash)
            fail_msg("%s decodes to other numbers", t->name);
    }
}

static void float_rows(void **state)
{
    (void)state;
    const float f32[3] = {1, -0.0f, 1e-40f};
    float out[3];
    tg_dtypes[TG_F32].to_f32(f32, out, 3);
    assert_memory_equal(out, f32, sizeof f32);
    const uint16_t f16[3] = {0x3c00, 0xc000, 0x0001};
    tg_dtypes[TG_F16].to_f32(f16, out, 3);
    assert_true(out[0] == 1 && out[1] == -2 && out[2] == ldexpf(1, -24));
}

static void layouts_as_the_gguf_package_has_them(void **state)
{
    (void)state;
    uint32_t next = 0;
    for (size_t i = 0; i < sizeof vec_layouts / sizeof *vec_layouts; i++) {
        const tg_layout *known;
        const tg_dtype *t = tg_dtype_by_gguf_id(vec_layouts[i].id, &known);
        assert_non_null(known);
        assert_string_equal(known->name, vec_layouts[i].name);
        assert_int_equal(known->block, vec_layouts[i].block);
        assert_int_equal(known->block_bytes, vec_layouts[i].block_bytes);
        assert_ptr_equal(tg_dtype_by_gguf_id(vec_layouts[i].id, NULL), t);
        for (; next < vec_layouts[i].id; next++) { /* a number between two has no meaning */
            if (next == 9)
                continue; /* Q8_1: see tools/make-dtype-vectors.py */
            assert_null(tg_dtype_by_gguf_id(next, &known));
            assert_null(known);
        }
        next = vec_layouts[i].id + 1;
    }
    const tg_layout *known;
    assert_null(tg_dtype_by_gguf_id(next, &known));
    assert_null(known);
    assert_null(tg_dtype_by_gguf_id(UINT32_MAX, &known));
    assert_null(known);
}

/* Each row of the table is found by its number and its names, with the same layout. */
static void the_table_walked(void **state)
{
    (void)state;
    for (int i = 0; i < TG_TYPE_COUNT; i++) {
        const tg_dtype *t = &tg_dtypes[i];
        const tg_layout *known;
        assert_int_equal(t->type, i);
        assert_ptr_equal(tg_dtype_by_gguf_id((uint32_t)t->gguf_id, &known), t);
        assert_string_equal(known->name, t->name);
        assert_int_equal(known->block, t->block);
        assert_int_equal(known->block_bytes, t->block_bytes);
        if (!t->safetensors_name)
            continue;
        assert_ptr_equal(tg_dtype_by_safetensors_name(t->safetensors_name, &known), t);
        assert_string_equal(known->name, t->safetensors_name);
        assert_int_equal(known->block, t->block);
        assert_int_equal(known->block_bytes, t->block_bytes);
    }
    const tg_layout *known;
    assert_null(tg_dtype_by_safetensors_name("F64", &known));
    assert_int_equal(known->block_bytes, 8);
    assert_null(tg_dtype_by_safetensors_name("Q8_0", &known));
    assert_null(known);
    assert_null(tg_dtype_by_safetensors_name("", NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_to_float),
        cmocka_unit_test(every_half_and_back),
        cmocka_unit_test(rounding_between_neighbours),
        cmocka_unit_test(beyond_the_halves),
        cmocka_unit_test(blocks_as_the_gguf_package_decodes_them),
        cmocka_unit_test(float_rows),
        cmocka_unit_test(layouts_as_the_gguf_package_has_them),
        cmocka_unit_test(the_table_walked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
