/* Tests of normalize.c: spaces in both spellings, and composition before them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "token/normalize.h"

#define MARK "\xe2\x96\x81"

/* NULL: stays as it is. */
static void expect(tg_normalizer how, const char *text, const char *wanted)
{
    uint8_t *out;
    size_t n = 0;
    assert_int_equal(tg_normalize(&how, (const uint8_t *)text, strlen(text), &out, &n, NULL),
                     TG_OK);
    if (!wanted) {
        assert_null(out);
        return;
    }
    assert_non_null(out);
    assert_int_equal(n, strlen(wanted));
    assert_memory_equal(out, wanted, n);
    tg_free(out);
}

static void spaces(void **state)
{
    (void)state;
    const tg_normalizer nothing = {0}, marks = {.spaces = true},
                        both = {.spaces = true, .prefix = true}, prefix = {.prefix = true},
                        all = {.nfc = true, .spaces = true, .prefix = true};
    expect(nothing, "a" MARK, NULL);
    expect(marks, "a b", NULL);
    expect(marks, "", NULL);
    expect(marks, MARK "a" MARK MARK, " a  ");
    expect(marks, "\xe2\x96\x82\xe2\x96" MARK, "\xe2\x96\x82\xe2\x96 ");
    expect(both, "a", " a");
    expect(both, MARK, "  ");
    expect(both, "", NULL);
    expect(prefix, MARK "a", " " MARK "a");
    expect(all, "e\xcc\x81" MARK, " \xc3\xa9 ");
    expect((tg_normalizer){.nfc = true}, "e\xcc\x81" MARK, "\xc3\xa9" MARK);
}

static void beginnings(void **state)
{
    (void)state;
    assert_true(tg_begins_spaced((const uint8_t *)" a", 2));
    assert_true(tg_begins_spaced((const uint8_t *)MARK, 3));
    assert_false(tg_begins_spaced((const uint8_t *)MARK, 2));
    assert_false(tg_begins_spaced((const uint8_t *)"a ", 2));
    assert_false(tg_begins_spaced((const uint8_t *)" ", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spaces),
        cmocka_unit_test(beginnings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
