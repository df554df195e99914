/* Tests of unicode.c: the table of classes. That it is the reference's at every code point is held
 * by the digests of test_pretokenize.c; here are the counts, and what the standard says of some
 * characters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "token/unicode.h"

static void counts_of_unicode_16(void **state)
{
    (void)state;
    int count[8] = {0};
    for (uint32_t c = 0; c < 0x110000; c++)
        for (int bit = 0; bit < 8; bit++)
            count[bit] += (tg_class_of(c) >> bit & 1) != 0;
    assert_int_equal(count[0], 141028); /* \p{L} */
    assert_int_equal(count[1], 1911);   /* \p{N} */
    assert_int_equal(count[2], 25);     /* \s */
    assert_int_equal(count[3], 1924);   /* numeric, of Unicode 17 */
    assert_int_equal(count[4], 144667); /* \w */
    assert_int_equal(count[5], 2501);   /* \p{M} */
    assert_int_equal(count[6], 1889);   /* \p{Lu}, \p{Lt} */
    assert_int_equal(count[7], 2258);   /* \p{Ll} */
}

static void known_characters(void **state)
{
    (void)state;
    enum {
        L = TG_CLASS_LETTER,
        N = TG_CLASS_NUMBER,
        S = TG_CLASS_SPACE,
        D = TG_CLASS_NUMERIC,
        W = TG_CLASS_WORD,
        M = TG_CLASS_MARK,
        U = TG_CLASS_UPPER,
        B = TG_CLASS_LOWER,
    };
    static const struct {
        uint32_t code;
        unsigned classes;
    } known[] = {
        {0, 0},
        {'\t', S},
        {' ', S},
        {'!', 0},
        {'7', N | D | W},
        {'A', L | W | U},
        {'a', L | W | B},
        {'_', W},
        {0x85, S},
        {0xa0, S},
        {0xb2, N | D},
        {0xdf, L | W | B},
        {0x1c5, L | W | U},
        {0x301, W | M},
        {0x663, N | D | W},
        {0x200b, 0},
        {0x2028, S},
        {0x2167, N | D | W},
        {0x3000, S},
        {0x3007, N | D | W},
        {0x4e00, L | W},
        {0xac00, L | W},
        {0xd7a3, L | W},
        {0xfeff, 0},
        {0x1d7d8, N | D | W},
        {0x1f600, 0},
        {0x323af, L | W},
        {0x323b0, 0},
        {0x11de1, D},
        {0xe0100, W | M},
        {0x10ffff, 0},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (tg_class_of(known[i].code) != known[i].classes)
            print_error("U+%04X: %u\n", known[i].code, tg_class_of(known[i].code));
        assert_int_equal(tg_class_of(known[i].code), known[i].classes);
    }
}

static void in_text(void **state)
{
    (void)state;
    size_t length;
    for (unsigned c = 0; c < 0x80; c++) {
        uint8_t byte = (uint8_t)c;
        assert_int_equal(tg_class_at(&byte, 1, &length), tg_class_of(c));
        assert_int_equal(length, 1);
    }
    static const uint8_t text[] = "\xe4\xb8\x80\xff\xe4\xb8";
    assert_int_equal(tg_class_at(text, 6, &length), tg_class_of(0x4e00));
    assert_int_equal(length, 3);
    for (size_t i = 1; i < 6; i++) { /* inside a character, an invalid byte, a cut character */
        assert_int_equal(tg_class_at(text + i, 6 - i, &length), 0);
        assert_int_equal(length, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_of_unicode_16),
        cmocka_unit_test(known_characters),
        cmocka_unit_test(in_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
