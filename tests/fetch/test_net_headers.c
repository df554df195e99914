/* Tests of net_headers.c: what servers may say, and what nobody should. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "fetch/net_headers.h"

static const time_t NOW = 1700000000; /* Tue, 14 Nov 2023 22:13:20 GMT */

static tg_headers h;

static bool line(const char *text)
{
    return tg_headers_line(&h, text, strlen(text));
}

static void answer(const char *status)
{
    tg_headers_begin(&h, NOW);
    assert_true(line(status));
}

static void lines_of_an_answer(void **state)
{
    (void)state;
    answer("HTTP/1.1 302 Found\r\n");
    assert_int_equal(h.http, 302);
    assert_int_equal(h.length, TG_SIZE_UNKNOWN);
    assert_int_equal(h.linked_size, TG_SIZE_UNKNOWN);
    assert_true(h.wait < 0);
    assert_true(line("content-LENGTH:  1034 \r\n"));
    assert_true(line("Content-Length: 1034\r\n")); /* once more, and the same */
    assert_true(line("X-Linked-Size: 94371840\r\n"));
    assert_true(line("X-Linked-ETag: \"ab12\"\r\n"));
    assert_true(line("ETag: W/\"other\"\r\n"));
    assert_true(line("X-Repo-Commit: 0123456789abcdef0123456789abcdef01234567\r\n"));
    assert_true(line("X-Error-Code: GatedRepo\r\n"));
    assert_true(line("Content-Type: Text/HTML; charset=utf-8\r\n"));
    assert_true(line("Content-Encoding: identity\r\n"));
    assert_true(line("Location: /a/b?c\r\n"));
    assert_true(line("Unknown: x\r\n"));
    assert_true(line("no colon\r\n"));
    assert_true(line("\r\n"));
    assert_int_equal(h.length, 1034);
    assert_int_equal(h.linked_size, 94371840);
    assert_string_equal(h.linked_etag, "ab12");
    assert_false(h.linked_weak);
    assert_string_equal(h.etag, "other");
    assert_true(h.weak);
    assert_string_equal(h.commit, "0123456789abcdef0123456789abcdef01234567");
    assert_string_equal(h.error_code, "GatedRepo");
    assert_string_equal(h.content_type, "text/html");
    assert_string_equal(h.encoding, "");
    assert_string_equal(h.location, "/a/b?c");

    assert_true(line("HTTP/2 200 \r\n")); /* the next answer knows nothing of the last */
    assert_int_equal(h.http, 200);
    assert_int_equal(h.length, TG_SIZE_UNKNOWN);
    assert_string_equal(h.location, "");
    assert_int_equal(h.now, NOW);
}

static void values_that_are_none(void **state)
{
    (void)state;
    static const char *const lengths[] = {"-1", "", "12a", "0x10", "1 2", "1,1", "+1", "9223372036854775808",
                                          "99999999999999999999999"};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char text[64];
        snprintf(text, sizeof text, "Content-Length: %s\r\n", lengths[i]);
        answer("HTTP/1.1 200 OK\r\n");
        assert_false(line(text));
        assert_non_null(strstr(h.bad, "Content-Length is no size (found '"));
    }
    answer("HTTP/1.1 200 OK\r\n");
    assert_true(line("Content-Length: 5\r\n"));
    assert_false(line("Content-Length: 6\r\n"));
    assert_string_equal(h.bad, "Content-Length twice, and different (found 5 and 6)");

    answer("HTTP/1.1 200 OK\r\n"); /* what is not understood of the rest is as if it were not there */
    assert_true(line("X-Linked-Size: many\r\n"));
    assert_true(line("X-Repo-Commit: main\r\n"));
    assert_true(line("X-Repo-Commit: ../../../../../../../../../../../../../\r\n"));
    assert_true(line("X-Error-Code: \033[31m\r\n"));
    assert_true(line("Content-Range: bytes 5-3/10\r\n"));
    assert_true(line("Retry-After: soon\r\n"));
    assert_int_equal(h.linked_size, TG_SIZE_UNKNOWN);
    assert_string_equal(h.commit, "");
    assert_string_equal(h.error_code, "");
    assert_false(h.ranged);
    assert_true(h.wait < 0);
    assert_true(line("Content-Encoding: gzip\r\n"));
    assert_string_equal(h.encoding, "gzip");
}

static void limits(void **state)
{
    (void)state;
    static char text[TG_HEADER_LINE_MAX + 2];
    memset(text, 'x', sizeof text - 1);
    memcpy(text, "Location: ", 10);
    answer("HTTP/1.1 302 Found\r\n");
    assert_true(tg_headers_line(&h, text, TG_HEADER_LINE_MAX));
    assert_int_equal(strlen(h.location), TG_HEADER_LINE_MAX - 10);
    assert_false(tg_headers_line(&h, text, TG_HEADER_LINE_MAX + 1));
    assert_string_equal(h.bad, "a header line is too long (found 16385 bytes, allowed 16384)");

    answer("HTTP/1.1 200 OK");
    size_t n = strlen("HTTP/1.1 200 OK");
    for (; n + 1000 <= TG_HEADERS_MAX; n += 1000)
        assert_true(tg_headers_line(&h, text, 1000));
    assert_true(tg_headers_line(&h, text, TG_HEADERS_MAX - n));
    assert_false(line("\n"));
    assert_string_equal(h.bad, "the headers are too long (found 262145 bytes, allowed 262144)");

    answer("HTTP/1.1 100 Continue\r\n"); /* answers before the last one count */
    for (n = 0; n < TG_HEADERS_MAX / 27 && line("HTTP/1.1 100 Continue      \n"); n++)
        continue;
    assert_true(h.bad[0]);
    answer("HTTP/1.1 200 OK\r\n");
    assert_false(tg_headers_line(&h, "Etag: \0", 7));
    assert_string_equal(h.bad, "a header line with a NUL");
}

static void etags(void **state)
{
    (void)state;
    static const struct {
        const char *value, *etag;
        bool weak;
    } rows[] = {
        {"\"a\xE9\"", "", false}, /* no ASCII, whether char has a sign or not */
        {"\"abc\"", "abc", false}, {"W/\"abc\"", "abc", true}, {"abc", "abc", false}, {"\"\"", "", false},
        {"\"a b\"", "", false},    {"\"a\"b\"", "", false},    {"\"", "", false},     {"W/", "", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[300];
        snprintf(text, sizeof text, "ETag: %s", rows[i].value);
        answer("HTTP/1.1 200 OK");
        assert_true(line(text));
        assert_string_equal(h.etag, rows[i].etag);
        assert_int_equal(h.weak, rows[i].weak);
    }
    char text[300];
    answer("HTTP/1.1 200 OK");
    snprintf(text, sizeof text, "ETag: \"%0127d\"", 0);
    assert_true(line(text));
    assert_int_equal(strlen(h.etag), 127);
    snprintf(text, sizeof text, "ETag: \"%0128d\"", 0);
    assert_true(line(text));
    assert_string_equal(h.etag, "");
}

static void waits(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        double wait;
    } rows[] = {
        {"Retry-After: 120", 120},
        {"Retry-After: 0", 0},
        {"Retry-After: Tue, 14 Nov 2023 22:14:20 GMT", 60},
        {"Retry-After: Tuesday, 14-Nov-23 22:14:20 GMT", 60},
        {"Retry-After: Tue Nov 14 22:14:20 2023", 60},
        {"Retry-After: Tue, 14 Nov 2023 22:13:00 GMT", 0}, /* is over */
        {"Retry-After: -5", -1},
        {"Retry-After: 1e9", -1},
        {"RateLimit: \"api\";r=0;t=55", 55},
        {"RateLimit: limit=100, remaining=0, reset=50", 50},
        {"RateLimit: \"t=9\";r=0", -1},
        {"RateLimit: \"api\";r=0;t=", -1},
        {"RateLimit: \"api\";r=0;t=99999999999999999999", -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        answer("HTTP/1.1 429 Too Many Requests");
        assert_true(line(rows[i].line));
        if (h.wait != rows[i].wait)
            fail_msg("%s: %g", rows[i].line, h.wait);
    }
    answer("HTTP/1.1 429 Too Many Requests"); /* Retry-After goes before, in either order */
    line("RateLimit: \"api\";r=0;t=55");
    line("Retry-After: 3");
    line("RateLimit: \"api\";r=0;t=56");
    assert_true(h.wait == 3);
}

static void ranges(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        bool ok;
        uint64_t first, last, total;
    } rows[] = {
        {"bytes 0-99/1000", true, 0, 99, 1000},
        {"bytes 999-999/1000", true, 999, 999, 1000},
        {"bytes 5-9/*", true, 5, 9, TG_SIZE_UNKNOWN},
        {"bytes */1000", true, 1, 0, 1000},
        {"bytes 0-1000/1000", false, 0, 0, 0},
        {"bytes 9-5/1000", false, 0, 0, 0},
        {"bytes */*", false, 0, 0, 0},
        {"bytes -5/1000", false, 0, 0, 0},
        {"bytes 5-/1000", false, 0, 0, 0},
        {"bytes 0-99/1000 ", false, 0, 0, 0},
        {"bytes 0-99/1000x", false, 0, 0, 0},
        {"bytes 0-99/1*0", false, 0, 0, 0},
        {"bytes 0-99", false, 0, 0, 0},
        {"items 0-99/1000", false, 0, 0, 0},
        {"bytes 0-99999999999999999999/1000", false, 0, 0, 0},
        {"", false, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t first, last, total;
        bool ok = tg_content_range(rows[i].value, &first, &last, &total);
        if (ok != rows[i].ok)
            fail_msg("%s", rows[i].value);
        if (ok) {
            assert_int_equal(first, rows[i].first);
            assert_int_equal(last, rows[i].last);
            assert_int_equal(total, rows[i].total);
        }
    }
}

static void redaction(void **state)
{
    (void)state;
    static const struct {
        const char *url, *shown;
    } rows[] = {
        {"https://user:secret@example.com:8443/a/b.gguf?X-Signature=secret#secret", "https://example.com:8443/a/b.gguf"},
        {"https://example.com/a%20b", "https://example.com/a%20b"},
        {"http://secret@[::1]:80/", "http://[::1]:80/"},
        {"https://example.com?secret", "https://example.com/"},
        {"no url secret", "the URL"},
        {"https://exa mple.com/?secret", "the URL"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *shown = tg_url_redact(rows[i].url);
        assert_string_equal(shown, rows[i].shown);
        free(shown);
    }
}

static void origins(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {
        {"https://example.com/a", "https://EXAMPLE.com:443/b?c", true},
        {"http://example.com:80", "http://u@example.com/", true},
        {"https://example.com", "http://example.com", false},
        {"https://example.com", "https://example.com:8443", false},
        {"https://example.com", "https://example.com.", false},
        {"https://example.com", "https://example.com.evil.org", false},
        {"https://example.com", "https://example.com@evil.org/", false},
        {"https://example.com", "https://evil.org/https://example.com", false},
        {"https://example.com", "not a url", false},
        {"not a url", "not a url", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (tg_url_same_origin(rows[i].a, rows[i].b) != rows[i].same || tg_url_same_origin(rows[i].b, rows[i].a) != rows[i].same)
            fail_msg("%s %s", rows[i].a, rows[i].b);
    assert_true(tg_url_is("HTTPS://example.com", "https"));
    assert_false(tg_url_is("httpsx://example.com", "https"));
    assert_false(tg_url_is("file:///etc/passwd", "http"));
}

static void redirects(void **state)
{
    (void)state;
    static const struct {
        const char *base, *location, *to; /* NULL: no URL */
    } rows[] = {
        {"https://a.org/x/y?q", "/z", "https://a.org/z"},
        {"https://a.org/x/y?q", "z", "https://a.org/x/z"},
        {"https://a.org/x/y", "../z?r", "https://a.org/z?r"},
        {"https://a.org/x/y", "?r", "https://a.org/x/y?r"},
        {"https://a.org/x", "//b.org/y", "https://b.org/y"},
        {"https://a.org/x", "http://b.org/y", "http://b.org/y"},
        {"https://u:p@a.org/x", "/y", "https://u:p@a.org/y"},
        {"https://u:p@a.org/x", "https://b.org/y", "https://b.org/y"},
        {"https://u:p@a.org/x", "//b.org/y", "https://b.org/y"},
        {"https://a.org/x", "/with blank", "https://a.org/with%20blank"},
        {"https://a.org/x", "https://", NULL},
        {"https://a.org/x", "http://b.org:99999/", NULL},
        {"https://a.org/x", "/a\nHeader: b", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *to = tg_url_resolve(rows[i].base, rows[i].location);
        if (!rows[i].to != !to || (to && strcmp(to, rows[i].to) != 0))
            fail_msg("%s + %s: %s", rows[i].base, rows[i].location, to ? to : "no URL");
        free(to);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_an_answer), cmocka_unit_test(values_that_are_none), cmocka_unit_test(limits),
        cmocka_unit_test(etags),              cmocka_unit_test(waits),                cmocka_unit_test(ranges),
        cmocka_unit_test(redaction),          cmocka_unit_test(origins),              cmocka_unit_test(redirects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
