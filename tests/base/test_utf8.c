/* Tests of utf8.c: all short sequences against the definition, and the Unicode standard's own
 * examples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/utf8.h"

/* The definition: the bits that lead and trail bytes carry, in their shortest form, of a scalar
 * value. */
static int define(const uint8_t *s, size_t n, uint32_t *code)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    int length = s[0] < 0x80             ? 1
                 : (s[0] & 0xe0) == 0xc0 ? 2
                 : (s[0] & 0xf0) == 0xe0 ? 3
                 : (s[0] & 0xf8) == 0xf0 ? 4
                                         : 0;
    if (length == 0 || (size_t)length > n)
        return 0;
    *code = length == 1 ? s[0] : s[0] & (0x7fu >> length);
    for (int i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (s[i] & 0x3f);
    }
    bool scalar = *code <= 0x10ffff && (*code < 0xd800 || *code > 0xdfff);
    return scalar && *code >= least[length] ? length : 0;
}

static void check(const uint8_t *s, size_t n)
{
    uint32_t wanted = 0, got = 0;
    int length = define(s, n, &wanted);
    if (tg_utf8_decode(s, n, &got) != length || (length && got != wanted))
        fail_msg("%02x %02x %02x %02x, %zu bytes: wanted %d, U+%X", s[0], s[1], s[2], s[3], n,
                 length, wanted);
}

static void all_short_sequences(void **state)
{
    (void)state;
    static const uint8_t edges[] = {0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90,
                                    0x9f, 0xa0, 0xbf, 0xc0, 0xff};
    for (uint32_t a = 0; a < 256; a++)
        for (uint32_t b = 0; b < 256; b++)
            for (size_t c = 0; c < sizeof edges; c++)
                for (size_t d = 0; d < sizeof edges; d++) {
                    const uint8_t s[4] = {(uint8_t)a, (uint8_t)b, edges[c], edges[d]};
                    for (size_t n = 1; n <= 4; n++)
                        check(s, n);
                }
}

static void every_character_and_back(void **state)
{
    (void)state;
    for (uint32_t code = 0; code <= 0x10ffff; code++) {
        if (code >= 0xd800 && code <= 0xdfff)
            continue;
        uint8_t s[4] = {0};
        uint32_t back = 0, defined = 0;
        int n = tg_utf8_encode(code, s);
        if (define(s, (size_t)n, &defined) != n || defined != code ||
            tg_utf8_decode(s, (size_t)n, &back) != n || back != code)
            fail_msg("U+%X", code);
    }
}

/* The Unicode standard, chapter 3: tables 3-8 to 3-11. Lengths of the pieces, bad ones negative. */
static void pieces_of_bad_text(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int pieces[10];
    } rows[] = {
        {"\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41", {-1, -1, -1, -1, -1, -1, -1, -1, 1}},
        {"\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41", {-1, -1, -1, -1, -1, -1, -1, -1, 1}},
        {"\xf4\x91\x92\x93\xff\x41\x80\xbf\x42", {-1, -1, -1, -1, -1, 1, -1, -1, 1}},
        {"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", {-2, -1, -3, -2, 1}},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const uint8_t *s = (const uint8_t *)rows[r].text;
        size_t n = strlen(rows[r].text);
        int k = 0;
        for (size_t i = 0; i < n; k++) {
            uint32_t code;
            bool cut;
            int length = tg_utf8_decode(s + i, n - i, &code);
            int piece = length ? length : -tg_utf8_bad(s + i, n - i, &cut);
            assert_int_equal(piece, rows[r].pieces[k]);
            assert_true(length || !cut);
            i += (size_t)(piece < 0 ? -piece : piece);
        }
        assert_int_equal(rows[r].pieces[k], 0);
        assert_false(tg_utf8_valid(s, n));
    }
}

static void cut_characters(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int length;
        bool cut;
    } rows[] = {
        {"\xc3", 1, true},   {"\xe5\xad", 2, true},  {"\xf0\x9f\x98", 3, true},
        {"\xf0", 1, true},   {"\xed\xa0", 1, false}, {"\xe0\x80", 1, false},
        {"\x80", 1, false},  {"\xff", 1, false},     {"\xf0\x9f\x98x", 3, false},
        {"\xc3(", 1, false}, {"\xf4\x90", 1, false}, {"\xc1", 1, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool cut = !rows[i].cut;
        size_t n = strlen(rows[i].text);
        assert_int_equal(tg_utf8_bad((const uint8_t *)rows[i].text, n, &cut), rows[i].length);
        assert_int_equal(cut, rows[i].cut);
    }
}

static void whole_texts(void **state)
{
    (void)state;
    assert_true(tg_utf8_valid(NULL, 0));
    assert_true(tg_utf8_valid((const uint8_t *)"a\0b", 3));
    assert_true(tg_utf8_valid((const uint8_t *)"W\xc3\xb6rter \xe5\xad\x97 \xf0\x9f\x98\x80", 16));
    assert_false(tg_utf8_valid((const uint8_t *)"abc\xc3", 4));
    assert_false(tg_utf8_valid((const uint8_t *)"\xed\xa0\x80", 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_short_sequences), cmocka_unit_test(every_character_and_back),
        cmocka_unit_test(pieces_of_bad_text),  cmocka_unit_test(cut_characters),
        cmocka_unit_test(whole_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
