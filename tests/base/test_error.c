/* Tests of error.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/error.h"

static void one_line_with_the_file(void **state)
{
    (void)state;
    tg_error err = {0};
    assert_int_equal(
        tg_fail(&err, TG_E_MODEL, "a b/\xc3\xa9.gguf", "dimension (found %d, allowed %d)", 5, 4),
        TG_E_MODEL);
    assert_int_equal(err.status, TG_E_MODEL);
    assert_string_equal(err.message, "a b/\\xc3\\xa9.gguf: dimension (found 5, allowed 4)");
    err = (tg_error){0};
    assert_int_equal(tg_fail(&err, TG_E_USAGE, NULL, "plain"), TG_E_USAGE);
    assert_string_equal(err.message, "plain");
}

static void a_record_needs_no_preparation(void **state)
{
    (void)state;
    tg_error err;
    memset(&err, 0xee, sizeof err);
    assert_int_equal(tg_fail(&err, TG_E_IO, NULL, "first"), TG_E_IO);
    assert_string_equal(err.message, "first");
    assert_int_equal(tg_fail(&err, TG_E_MODEL, NULL, "second"), TG_E_MODEL);
    assert_int_equal(err.status, TG_E_MODEL);
    assert_string_equal(err.message, "second");
}

static void no_record(void **state)
{
    (void)state;
    assert_int_equal(tg_fail(NULL, TG_E_NUMERIC, "x", "y"), TG_E_NUMERIC);
    assert_int_equal(tg_fail_alloc(NULL, 1, "y"), TG_E_RESOURCE);
}

static void a_long_message_is_cut(void **state)
{
    (void)state;
    char text[3000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    tg_error err = {0};
    tg_fail(&err, TG_E_MODEL, text, "%s", text);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_memory_equal(err.message + 198, "xx...: xx", 9);
    memset(text, 1, sizeof text - 1);
    err = (tg_error){0};
    tg_fail(&err, TG_E_MODEL, text, "%s", "the end");
    assert_non_null(strstr(err.message, "\\x01...: the end"));
}

static void out_of_memory(void **state)
{
    (void)state;
    tg_error err = {0};
    assert_int_equal(tg_fail_alloc(&err, 4096, "a test"), TG_E_RESOURCE);
    assert_string_equal(err.message, "out of memory: 4096 bytes for a test");
}

static void failed_calls(void **state)
{
    (void)state;
    static const int resources[] = {ENOMEM, EMFILE, ENFILE};
    for (size_t i = 0; i < 3; i++) {
        errno = resources[i];
        assert_int_equal(tg_fail_errno(NULL, "f", "cannot be opened"), TG_E_RESOURCE);
    }
    tg_error err = {0};
    errno = ENOENT;
    assert_int_equal(tg_fail_errno(&err, "f", "cannot be opened"), TG_E_IO);
    assert_string_equal(err.message, "f: cannot be opened: No such file or directory");
}

static void quoting(void **state)
{
    (void)state;
    tg_quoted q;
    assert_string_equal(tg_quote(&q, "", 0), "");
    assert_string_equal(tg_quote(&q, "a\0\n\x7f\\\xff~ ", 8), "a\\x00\\x0a\\x7f\\x5c\\xff~ ");
    assert_string_equal(tg_quote_str(&q, "\x1b[2J"), "\\x1b[2J");
    char text[201];
    memset(text, 0xff, sizeof text);
    assert_int_equal(strlen(tg_quote(&q, text, 200)), 800);
    assert_int_equal(strlen(tg_quote(&q, text, 201)), 803);
    assert_string_equal(q.text + 796, "\\xff...");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_line_with_the_file),
        cmocka_unit_test(a_record_needs_no_preparation),
        cmocka_unit_test(no_record),
        cmocka_unit_test(a_long_message_is_cut),
        cmocka_unit_test(out_of_memory),
        cmocka_unit_test(failed_calls),
        cmocka_unit_test(quoting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
