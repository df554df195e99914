/* Tests of stream.c: row R14, and R15's bytes untouched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "support/rand.h"
#include "tinygpt/tinygpt.h"

static void push(tg_stream *s, const char *bytes, const char *wanted)
{
    char out[64];
    size_t n = tg_stream_push(s, bytes, strlen(bytes), out);
    assert_int_equal(n, strlen(wanted));
    assert_memory_equal(out, wanted, n);
}

static void characters_in_parts(void **state)
{
    (void)state;
    tg_stream s = {0};
    char out[4];
    push(&s, "", "");
    push(&s, "abc", "abc");
    push(&s, "a\xc3", "a");
    push(&s, "\xa9x", "\xc3\xa9x");
    push(&s, "\xf0", "");
    push(&s, "\x9f\x98", "");
    push(&s, "\x80\xe4", "\xf0\x9f\x98\x80");
    push(&s, "\xb8", "");
    push(&s, "\x80", "\xe4\xb8\x80");
    /* U10: GPT-2's tokens 8582, 99 and 247 */
    push(&s, "\xf0\x9f", "");
    push(&s, "\xa6", "");
    push(&s, "\x99", "\xf0\x9f\xa6\x99");
    push(&s, "\xe4\xb8", "");
    assert_int_equal(tg_stream_flush(&s, out), 2);
    assert_memory_equal(out, "\xe4\xb8", 2);
    assert_int_equal(tg_stream_flush(&s, out), 0);
}

/* What can no longer become a character is not held back. */
static void invalid_bytes(void **state)
{
    (void)state;
    tg_stream s = {0};
    push(&s, "\xff", "\xff");
    push(&s, "\x80\x80\x80", "\x80\x80\x80");
    push(&s, "\xc0", "\xc0");
    push(&s, "\xe0\x80", "\xe0\x80"); /* overlong */
    push(&s, "\xed\xa0", "\xed\xa0"); /* a surrogate */
    push(&s, "\xf4\x90", "\xf4\x90"); /* above U+10FFFF */
    push(&s, "\xe4", "");
    push(&s, "a",
         "\xe4"
         "a");
    push(&s, "\xe4\xb8", "");
    push(&s, "\xe4", "\xe4\xb8");
    push(&s, "\xb8\x80", "\xe4\xb8\x80");
}

/* However bytes are cut, all of them come out, in order. */
static void nothing_is_lost(void **state)
{
    (void)state;
    static const char set[] = "ab\xc3\xa9\xe4\xb8\x80\xf0\x9f\x98\x80\xff\xed\xa0\xf4";
    for (int round = 0; round < 5000; round++) {
        char text[40], out[80];
        size_t n = (size_t)rand_int(0, 40), got = 0;
        tg_stream s = {0};
        for (size_t i = 0; i < n; i++)
            text[i] = set[rand_int(0, sizeof set - 2)];
        for (size_t i = 0; i < n;) {
            size_t k = (size_t)rand_int(0, 5);
            k = k < n - i ? k : n - i;
            got += tg_stream_push(&s, text + i, k, out + got);
            i += k;
            assert_true(got <= i && i - got <= 3);
        }
        got += tg_stream_flush(&s, out + got);
        assert_int_equal(got, n);
        assert_memory_equal(out, text, n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_in_parts),
        cmocka_unit_test(invalid_bytes),
        cmocka_unit_test(nothing_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
