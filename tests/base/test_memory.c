/* Tests of memory.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/memory.h"

static void checked_sizes(void **state)
{
    (void)state;
    uint64_t r = 7;
    assert_true(tg_mul_u64(1ull << 32, (1ull << 32) - 1, &r));
    assert_true(r == 0xffffffff00000000);
    assert_false(tg_mul_u64(1ull << 32, 1ull << 32, &r));
    assert_true(tg_add_u64(UINT64_MAX, 0, &r));
    assert_false(tg_add_u64(UINT64_MAX, 1, &r));
    assert_int_equal(tg_round_up(0, 64), 0);
    assert_int_equal(tg_round_up(1, 64), 64);
    assert_int_equal(tg_round_up(64, 64), 64);
    assert_int_equal(tg_round_up(10, 3), 12);
}

static void allocation(void **state)
{
    (void)state;
    tg_error err = {0};
    uint32_t *p = tg_alloc(100, sizeof *p, "a test", &err);
    assert_non_null(p);
    for (int i = 0; i < 100; i++)
        assert_int_equal(p[i], 0);
    tg_free(p);
    tg_free(tg_alloc(0, 8, "nothing", &err));
    tg_free(NULL);
    assert_int_equal(err.status, TG_OK);
    assert_null(tg_alloc(SIZE_MAX / 2, 3, "too much", &err));
    assert_int_equal(err.status, TG_E_RESOURCE);
    assert_non_null(strstr(err.message, "too much"));
}

static void growing(void **state)
{
    (void)state;
    tg_error err = {0};
    void *array = NULL;
    size_t capacity = 0, moves = 0;
    for (size_t n = 1; n <= 10000; n++) {
        size_t before = capacity;
        assert_true(tg_grow(&array, &capacity, n, sizeof(uint64_t), "a test", &err));
        assert_true(capacity >= n);
        moves += capacity != before;
        ((uint64_t *)array)[n - 1] = n;
    }
    assert_true(moves <= 12);
    for (size_t n = 1; n <= 10000; n++)
        assert_int_equal(((uint64_t *)array)[n - 1], n);
    void *same = array;
    size_t kept = capacity;
    assert_false(tg_grow(&array, &capacity, SIZE_MAX / 4, 8, "too much", &err));
    assert_int_equal(err.status, TG_E_RESOURCE);
    assert_ptr_equal(array, same);
    assert_int_equal(capacity, kept);
    tg_free(array);
}

static void arena(void **state)
{
    (void)state;
    tg_error err = {0};
    tg_arena *a = tg_arena_create(&err);
    assert_non_null(a);
    static const size_t sizes[] = {0,    1,    63,    64,    65,    1000,    8191,
                                   8192, 8193, 65535, 65536, 65537, 1 << 20, 3};
    enum { N = sizeof sizes / sizeof *sizes };
    uint8_t *p[3 * N];
    char *s[3 * N];
    for (size_t i = 0; i < 3 * N; i++) {
        size_t n = sizes[i % N];
        p[i] = tg_arena_alloc(a, n, 1, "a test", &err);
        assert_non_null(p[i]);
        assert_int_equal((uintptr_t)p[i] % 64, 0);
        for (size_t k = 0; k < n; k++)
            assert_int_equal(p[i][k], 0);
        memset(p[i], (int)i + 1, n);
        s[i] = tg_arena_string(a, "words", i % 6, &err);
    }
    for (size_t i = 0; i < 3 * N; i++) { /* nothing was laid over anything */
        for (size_t k = 0; k < sizes[i % N]; k++)
            assert_int_equal(p[i][k], i + 1);
        assert_int_equal(strlen(s[i]), i % 6);
        assert_memory_equal(s[i], "words", i % 6);
    }
    assert_string_equal(tg_arena_string(a, NULL, 0, &err), "");
    assert_int_equal(err.status, TG_OK);
    assert_null(tg_arena_alloc(a, SIZE_MAX / 2, 3, "too much", &err));
    assert_int_equal(err.status, TG_E_RESOURCE);
    assert_null(tg_arena_alloc(a, SIZE_MAX - 3, 1, "too much", NULL));
    assert_null(tg_arena_string(a, "", SIZE_MAX, NULL));
    tg_arena_free(a);
    tg_arena_free(NULL);
}

static void strings_are_packed(void **state)
{
    (void)state;
    tg_arena *a = tg_arena_create(NULL);
    char *first = tg_arena_string(a, "abc", 3, NULL), *second = tg_arena_string(a, "de", 2, NULL);
    assert_ptr_equal(second, first + 4);
    tg_arena_free(a);
}

typedef void *reserve_fn(size_t n_bytes, const char *purpose, tg_error *err);

static void reserves(reserve_fn *reserve)
{
    tg_error err = {0};
    const size_t n = (size_t)1 << 36; /* far more than will be touched */
    uint8_t *p = reserve(n, "a test", &err);
    if (!p) {
        print_message("64 GiB of address space are not to be had here\n");
        skip();
    }
    assert_int_equal(p[n - 1], 0);
    p[n / 2] = 1;
    tg_unreserve(p, n);
    tg_unreserve(reserve(0, "nothing", &err), 0);
    tg_unreserve(NULL, 0);
    assert_int_equal(err.status, TG_OK);
    assert_null(reserve(SIZE_MAX / 2, "too much", &err));
    assert_int_equal(err.status, TG_E_RESOURCE);
}

static void reserving(void **state)
{
    (void)state;
    reserves(tg_reserve);
    reserves(tg_reserve_huge);
}

static void huge(void **state)
{
    (void)state;
    tg_error err = {0};
    static const size_t sizes[] = {1, 4096, 4097, (1 << 21) - 1, 1 << 21, (1 << 21) + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint8_t *p = tg_alloc_huge(sizes[i], "a test", &err);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % (1 << 21), 0);
        assert_int_equal(p[0] | p[sizes[i] - 1], 0);
        p[0] = p[sizes[i] - 1] = 1;
        tg_unreserve(p, sizes[i]);
    }
    assert_null(tg_alloc_huge(SIZE_MAX, "too much", &err));
    assert_int_equal(err.status, TG_E_RESOURCE);
    assert_null(tg_alloc_huge(SIZE_MAX / 4, "too much", NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checked_sizes),
        cmocka_unit_test(allocation),
        cmocka_unit_test(growing),
        cmocka_unit_test(arena),
        cmocka_unit_test(strings_are_packed),
        cmocka_unit_test(reserving),
        cmocka_unit_test(huge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
