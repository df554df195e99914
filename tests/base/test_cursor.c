/* Tests of cursor.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cursor.h"

static const uint8_t data[] = {0x01, 0x02, 0x03, 0x04, 0xf5, 0xf6, 0xf7, 0xf8, 0x09,
                               0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11};

static void integers_are_little_endian(void **state)
{
    (void)state;
    tg_cursor c = tg_cursor_make(data, sizeof data);
    assert_int_equal(tg_cursor_u8(&c), 0x01);
    assert_int_equal(tg_cursor_uint(&c, 2), 0x0302);
    assert_int_equal(tg_cursor_u32(&c), 0xf7f6f504);
    assert_true(tg_cursor_u64(&c) == 0x0f0e0d0c0b0a09f8);
    assert_int_equal(tg_cursor_left(&c), 2);
    assert_false(c.failed);
    c = tg_cursor_make(data + 1, 8);
    assert_true(tg_cursor_u64(&c) == 0x09f8f7f6f5040302);
    assert_int_equal(tg_cursor_left(&c), 0);
    assert_false(c.failed);
}

static void bytes_are_borrowed(void **state)
{
    (void)state;
    tg_cursor c = tg_cursor_make(data, sizeof data);
    assert_ptr_equal(tg_cursor_bytes(&c, 3), data);
    assert_ptr_equal(tg_cursor_bytes(&c, 0), data + 3);
    assert_ptr_equal(tg_cursor_bytes(&c, sizeof data - 3), data + 3);
    assert_ptr_equal(tg_cursor_bytes(&c, 0), data + sizeof data);
    assert_false(c.failed);
}

static void every_read_past_the_end_fails(void **state)
{
    (void)state;
    for (uint64_t size = 0; size < 8; size++) {
        for (int n = 1; n <= 8; n *= 2) {
            tg_cursor c = tg_cursor_make(data, size);
            uint64_t v = tg_cursor_uint(&c, n);
            assert_int_equal(c.failed, (uint64_t)n > size);
            if (c.failed) {
                assert_int_equal(v, 0);
                assert_int_equal(c.pos, 0);
            }
        }
    }
    static const uint64_t wrap[] = {sizeof data + 1, 1ull << 32, 1ull << 63, UINT64_MAX,
                                    UINT64_MAX - 4};
    for (size_t i = 0; i < sizeof wrap / sizeof *wrap; i++) {
        tg_cursor c = tg_cursor_make(data, sizeof data);
        tg_cursor_bytes(&c, 5);
        assert_null(tg_cursor_bytes(&c, wrap[i]));
        assert_true(c.failed);
        assert_int_equal(c.pos, 5);
    }
}

static void a_failure_lasts(void **state)
{
    (void)state;
    tg_cursor c = tg_cursor_make(data, 4);
    assert_int_equal(tg_cursor_u64(&c), 0);
    assert_int_equal(tg_cursor_u8(&c), 0);
    assert_null(tg_cursor_bytes(&c, 0));
    assert_true(c.failed);
    assert_int_equal(c.pos, 0);
}

static void nothing_to_read(void **state)
{
    (void)state;
    tg_cursor c = tg_cursor_make(NULL, 0);
    assert_int_equal(tg_cursor_left(&c), 0);
    assert_int_equal(tg_cursor_u8(&c), 0);
    assert_true(c.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_are_little_endian),
        cmocka_unit_test(bytes_are_borrowed),
        cmocka_unit_test(every_read_past_the_end_fails),
        cmocka_unit_test(a_failure_lasts),
        cmocka_unit_test(nothing_to_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
