/* test_text.c - what people and JSON see of any bytes. The ill-formed sequences and the number of
 * U+FFFD for each are those of the Unicode Standard 16.0, tables 3-8 to 3-11. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "cli/text.h"

#define FFFD "\xEF\xBF\xBD"

static void check(tg_text_mode mode, const char *in, size_t n, const char *want)
{
    char out[4096];
    size_t len = tg_text_render(mode, in, n, out);
    assert_true(len <= TG_TEXT_GROWTH * n);
    assert_int_equal(len, strlen(want));
    assert_memory_equal(out, want, len);
}

#define CHECK(mode, in, want) check(mode, in, sizeof(in) - 1, want)

static void test_well_formed_text_is_kept(void **state)
{
    static const char text[] =
        "plain, caf\xC3\xA9, \xE5\xAD\x97, \xF0\x9F\x99\x82, \xF4\x8F\xBF\xBF";
    (void)state;
    CHECK(TG_TEXT_TERMINAL, text, text);
    CHECK(TG_TEXT_UTF8, text, text);
    CHECK(TG_TEXT_QUOTED, text, text);
    CHECK(TG_TEXT_TERMINAL, "", "");
}

static void test_maximal_parts(void **state)
{
    (void)state;
    CHECK(TG_TEXT_UTF8, "\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41",
          FFFD FFFD FFFD FFFD FFFD FFFD FFFD FFFD "A");
    CHECK(TG_TEXT_UTF8, "\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41",
          FFFD FFFD FFFD FFFD FFFD FFFD FFFD FFFD "A");
    CHECK(TG_TEXT_UTF8, "\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42",
          FFFD FFFD FFFD FFFD FFFD "A" FFFD FFFD "B");
    CHECK(TG_TEXT_UTF8, "\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", FFFD FFFD FFFD FFFD "A");
    CHECK(TG_TEXT_TERMINAL, "a\xE5\xAD", "a" FFFD); /* an incomplete tail */
}

static void test_controls(void **state)
{
    (void)state;
    CHECK(TG_TEXT_TERMINAL, "a\n\tb", "a\n\tb");
    CHECK(TG_TEXT_TERMINAL, "\x1b[2J\r\a\x7f", "\\x1B[2J\\x0D\\x07\\x7F");
    CHECK(TG_TEXT_TERMINAL,
          "\xC2\x9B"
          "1m\xC2\xA0",
          "\\xC2\\x9B1m\xC2\xA0");
    CHECK(TG_TEXT_TERMINAL, "a\0b", "a\\x00b");
    check(TG_TEXT_UTF8, "\x1b\r", 2, "\x1b\r");
    CHECK(TG_TEXT_QUOTED, "a\xE2\x80\xAE\xD8\x9C\xE2\x81\xA9\xE2\x80\x9C",
          "a\\xE2\\x80\\xAE\\xD8\\x9C\\xE2\\x81\\xA9\xE2\x80\x9C");
    CHECK(TG_TEXT_TERMINAL, "\xE2\x80\x8F", "\xE2\x80\x8F"); /* texts may need them */
    CHECK(TG_TEXT_QUOTED, "\"\\\n\t\r\x1b\xE5\xAD", "\\\"\\\\\\n\\t\\r\\x1B\\xE5\\xAD");
}

static void test_quote_is_cut(void **state)
{
    char longest[500];
    tg_text_quoted q;
    (void)state;
    memset(longest, '\a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(strlen(tg_text_quote(&q, longest)), 200 * 4 + 3);
    assert_string_equal(q.text + 800, "...");
    longest[200] = '\0';
    assert_int_equal(strlen(tg_text_quote(&q, longest)), 200 * 4);
    assert_string_equal(tg_text_quote(&q, "it\n"), "it\\n");
    assert_int_equal(strlen(tg_text_quote_name(&q, longest)), 200 * 4);
}

/* D06: of a URL neither the user part nor the query. */
static void test_names_without_secrets(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        {"https://u:p@w@h:1/a@b?token#x", "https://h:1/a@b"},
        {"http://h?u@x", "http://h"},
        {"http://u@", "http://"},
        {"http://", "http://"},
        {"owner/name:file?x", "owner/name:file?x"},
        {"u@h\n", "u@h\\n"},
    };
    tg_text_quoted q;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_string_equal(tg_text_quote_name(&q, names[i][0]), names[i][1]);
    char longest[2000] = "http://";
    memset(longest + 7, 'a', sizeof longest - 8);
    assert_int_equal(strlen(tg_text_quote_name(&q, longest)), 203);
}

/* Any bytes become well-formed: rendering what was rendered changes nothing. */
static void test_idempotent(void **state)
{
    uint64_t random = 1;
    (void)state;
    for (int round = 0; round < 20000; round++) {
        char in[16], once[64], twice[256];
        for (size_t i = 0; i < sizeof in; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            /* mostly bytes that start, continue or break sequences */
            in[i] = (char)(0x80 | (random >> 57));
        }
        for (int mode = TG_TEXT_TERMINAL; mode <= TG_TEXT_UTF8; mode++) {
            size_t n = tg_text_render((tg_text_mode)mode, in, sizeof in, once);
            assert_int_equal(tg_text_render((tg_text_mode)mode, once, n, twice), n);
            assert_memory_equal(once, twice, n);
        }
    }
}

/* ---- amounts and widths -----------------------------------------------------------------------
 */

static void test_bytes(void **state)
{
    static const struct {
        uint64_t n;
        const char *want;
    } cases[] = {
        {0, "0 B"},
        {999, "999 B"},
        {1000, "0.98 KiB"},
        {1024, "1.00 KiB"},
        {10229, "9.99 KiB"},
        {10239, "10.0 KiB"},
        {102348, "99.9 KiB"},
        {102399, "100 KiB"},
        {1022975, "999 KiB"},
        {1023488, "0.98 MiB"},
        {98563072, "94.0 MiB"},
        {UINT64_C(2147483648), "2.00 GiB"},
        {UINT64_MAX, "16.0 EiB"},
    };
    char text[TG_TEXT_BYTES];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(tg_text_bytes(text, cases[i].n), cases[i].want);
    assert_string_equal(tg_text_bytes_of(text, 0, 98563072), "0.0/94.0 MiB");
    assert_string_equal(tg_text_bytes_of(text, 700, 700), "700/700 B");
    assert_string_equal(tg_text_bytes_of(text, UINT64_MAX, UINT64_MAX), "16.0/16.0 EiB");
}

static void test_fit(void **state)
{
    char out[64];
    (void)state;
    assert_int_equal(tg_text_width("caf\xC3\xA9 \xE5\xAD\x97"), 6);
    assert_int_equal(tg_text_fit(out, sizeof out, "name", 6), 6);
    assert_string_equal(out, "name  ");
    tg_text_fit(out, sizeof out, "abcdefghij", 10);
    assert_string_equal(out, "abcdefghij");
    tg_text_fit(out, sizeof out, "abcdefghij", 9);
    assert_string_equal(out, "abc...hij");
    tg_text_fit(out, sizeof out, "abcdefghij", 8);
    assert_string_equal(out, "abc...ij");
    tg_text_fit(out, sizeof out, "abcdefghij", 3);
    assert_string_equal(out, "...");
    tg_text_fit(out, sizeof out, "abcdefghij", 0);
    assert_string_equal(out, "");
    assert_int_equal(tg_text_fit(out, sizeof out, "\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9", 5), 7);
    assert_string_equal(out, "\xC3\xA9...\xC3\xA9");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_well_formed_text_is_kept),
        cmocka_unit_test(test_maximal_parts),
        cmocka_unit_test(test_controls),
        cmocka_unit_test(test_quote_is_cut),
        cmocka_unit_test(test_names_without_secrets),
        cmocka_unit_test(test_idempotent),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
