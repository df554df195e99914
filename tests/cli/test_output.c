/* output.c: R14 to R16 of the fault catalogue: text that comes in pieces, to a pipe and to a terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <unistd.h>

#include "cli/output.h"

static int ends[2];
static tg_output out;

/* What has arrived since the last time. */
static const char *arrived(void)
{
    static char text[4096];
    tg_output_flush(&out);
    assert_int_equal(write(ends[1], "", 1), 1); /* so that there is something to read */
    ssize_t n = read(ends[0], text, sizeof text - 1);
    assert_true(n > 0);
    assert_int_equal(strlen(text), n - 1);
    return text;
}

static int open_pipe(void **state)
{
    (void)state;
    assert_int_equal(pipe(ends), 0);
    out = (tg_output){.fd = ends[1]};
    return 0;
}

static int close_pipe(void **state)
{
    (void)state;
    close(ends[0]);
    close(ends[1]);
    return 0;
}

static void put(const char *bytes)
{
    tg_output_text(&out, bytes, strlen(bytes));
}

/* R14: each character is written when it is whole, and a tail as it is. */
static void whole_characters_to_a_pipe(void **state)
{
    static const char text[] = "a\xC3\xA9\xE5\xAD\x97\xF0\x9F\x99\x82", *const parts[] = {
        "a", "", "\xC3\xA9", "", "", "\xE5\xAD\x97", "", "", "", "\xF0\x9F\x99\x82"};
    (void)state;
    for (size_t i = 0; i + 1 < sizeof text; i++) {
        tg_output_text(&out, text + i, 1);
        assert_string_equal(arrived(), parts[i]);
    }
    put("b\xE5\xAD");
    assert_string_equal(arrived(), "b");
    tg_output_text_end(&out);
    assert_string_equal(arrived(), "\xE5\xAD");
    put("\n");
    assert_string_equal(arrived(), "\n");
}

/* R15, R16: a pipe gets every byte, in its place. */
static void all_bytes_to_a_pipe(void **state)
{
    static const char text[] = "a\xFF\xE5\n\xED\xA0\x80\xF0\x9F\x1B[2J\x07\x7F\xC2\x9B" "1m\xC0\xAF\xE5\xAD";
    (void)state;
    for (size_t i = 0; i + 1 < sizeof text; i++)
        tg_output_text(&out, text + i, 1);
    tg_output_text_end(&out);
    assert_string_equal(arrived(), text);
}

/* R14 to R16 on a terminal: characters when they are whole, U+FFFD for what is none, and nothing that it would obey. */
static void what_a_terminal_gets(void **state)
{
    (void)state;
    out.is_terminal = true;
    put("\xE5");
    put("\xAD");
    assert_string_equal(arrived(), "");
    put("\x97");
    assert_string_equal(arrived(), "\xE5\xAD\x97");
    put("\xE5\xAD" "a\xFF\xF0\x9F\x99z"); /* one for each maximal part */
    assert_string_equal(arrived(), "\xEF\xBF\xBD" "a\xEF\xBF\xBD\xEF\xBF\xBDz");
    put("\x1B[2J\x1B]0;t\x07\tb\r\n\xC2\x9B" "1m\x7F");
    assert_string_equal(arrived(), "\\x1B[2J\\x1B]0;t\\x07\tb\\x0D\n\\xC2\\x9B1m\\x7F");
    put("\xC2");
    put("\x9B");
    assert_string_equal(arrived(), "\\xC2\\x9B");
    put("\xF0\x9F");
    tg_output_text_end(&out); /* and a whole line, for the shell's prompt */
    assert_string_equal(arrived(), "\xEF\xBF\xBD\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(whole_characters_to_a_pipe, open_pipe, close_pipe),
        cmocka_unit_test_setup_teardown(all_bytes_to_a_pipe, open_pipe, close_pipe),
        cmocka_unit_test_setup_teardown(what_a_terminal_gets, open_pipe, close_pipe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
