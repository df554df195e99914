/* Stop strings against a naive search of the whole text, however it is cut into tokens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "generate/stop.h"
#include "support/rand.h"

/* Does `text` end in the stop? */
static bool ends_in(const char *text, size_t n, const tg_stop_text *stop)
{
    return n >= stop->n && !memcmp(text + n - stop->n, stop->bytes, stop->n);
}

/* Bytes of text [n] that are certain once all of it was seen: false when a stop ends within, and how many then. */
static bool naive(const char *text, size_t n, const tg_stop_text *stops, int n_stops, size_t *certain)
{
    for (size_t end = 1; end <= n; end++) {
        size_t longest = 0;
        for (int i = 0; i < n_stops; i++)
            if (ends_in(text, end, &stops[i]) && stops[i].n > longest)
                longest = stops[i].n;
        *certain = end - longest;
        if (longest)
            return false;
    }
    size_t held = 0;
    for (int i = 0; i < n_stops; i++)
        for (size_t len = 1; len < stops[i].n; len++)
            if (len > held && ends_in(text, n, &(tg_stop_text){stops[i].bytes, len}))
                held = len;
    *certain = n - held;
    return true;
}

/* Few letters, so that much matches in part. */
static void as_a_naive_search(void **state)
{
    (void)state;
    enum { TEXT = 60, STOPS = 4, LONGEST = 9 };
    for (int round = 0; round < 20000; round++) {
        rand_state = 1 + (uint64_t)round;
        char text[TEXT], stop[STOPS][LONGEST], got[TEXT];
        tg_stop_text stops[STOPS];
        int n_stops = rand_int(0, STOPS), letters = rand_int(1, 3);
        for (int i = 0; i < TEXT; i++)
            text[i] = (char)('a' + rand_int(0, letters));
        for (int i = 0; i < n_stops; i++) {
            stops[i] = (tg_stop_text){stop[i], (size_t)rand_int(1, LONGEST)};
            for (size_t k = 0; k < stops[i].n; k++)
                stop[i][k] = (char)('a' + rand_int(0, letters));
        }
        tg_stop *s;
        assert_int_equal(tg_stop_create(&s, stops, n_stops, NULL), TG_OK);
        size_t at = 0, n_got = 0, certain;
        bool stopped = false;
        while (at < TEXT && !stopped) {
            size_t n = (size_t)rand_int(0, 5);
            n = n < TEXT - at ? n : TEXT - at;
            tg_stop_text out;
            stopped = tg_stop_push(s, text + at, n, &out);
            at += n;
            memcpy(got + n_got, out.bytes, out.n);
            n_got += out.n;
            assert_int_equal(stopped, !naive(text, at, stops, n_stops, &certain));
            assert_int_equal(n_got, at ? certain : 0);
        }
        tg_stop_text rest;
        tg_stop_flush(s, &rest);
        memcpy(got + n_got, rest.bytes, rest.n);
        n_got += rest.n;
        if (!stopped)
            assert_int_equal(n_got, TEXT);
        assert_memory_equal(got, text, n_got);
        tg_stop_free(s);
    }
}

/* U11, as it was reported. */
static void across_tokens(void **state)
{
    (void)state;
    static const char *const tokens[] = {" abc", "O", " P", " Q", "never"};
    tg_stop *s;
    tg_stop_text out;
    assert_int_equal(tg_stop_create(&s, (tg_stop_text[]){{"O P Q", 5}, {"DE", 2}}, 2, NULL), TG_OK);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(tg_stop_push(s, tokens[i], strlen(tokens[i]), &out), i == 3);
        assert_int_equal(out.n, i == 0 ? 4 : 0);
    }
    tg_stop_free(s);
    assert_int_equal(tg_stop_create(&s, &(tg_stop_text){"DE", 2}, 1, NULL), TG_OK);
    assert_true(tg_stop_push(s, "ABDEF", 5, &out));
    assert_int_equal(out.n, 2);
    assert_memory_equal(out.bytes, "AB", 2);
    tg_stop_free(s);
}

/* A stop that almost comes, a million times: in linear time, and nothing is lost where the buffer turns round. */
static void almost(void **state)
{
    (void)state;
    static char stop[TG_STOP_BYTES_MAX];
    memset(stop, 'a', sizeof stop);
    stop[sizeof stop - 1] = 'b';
    tg_stop *s;
    tg_stop_text out;
    size_t n = 0;
    assert_int_equal(tg_stop_create(&s, &(tg_stop_text){stop, sizeof stop}, 1, NULL), TG_OK);
    for (int i = 0; i < 1000000; i++) {
        assert_false(tg_stop_push(s, i % 9 == 8 ? "aaa" : "a", i % 9 == 8 ? 3 : 1, &out));
        for (size_t k = 0; k < out.n; k++)
            assert_true(out.bytes[k] == 'a');
        n += out.n;
    }
    tg_stop_flush(s, &out);
    assert_int_equal(out.n, sizeof stop - 1);
    assert_int_equal(n + out.n, 1000000 + 2 * 111111);
    tg_stop_free(s);
}

static void refusals(void **state)
{
    (void)state;
    static char longer[TG_STOP_BYTES_MAX + 1];
    tg_stop *s;
    assert_int_equal(tg_stop_create(&s, &(tg_stop_text){"", 0}, 1, NULL), TG_E_USAGE);
    assert_int_equal(tg_stop_create(&s, &(tg_stop_text){longer, sizeof longer}, 1, NULL), TG_E_USAGE);
    assert_int_equal(tg_stop_create(&s, NULL, TG_STOPS_MAX + 1, NULL), TG_E_USAGE);
    assert_int_equal(tg_stop_create(&s, NULL, -1, NULL), TG_E_USAGE);
    assert_null(s);
    tg_stop_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_a_naive_search),
        cmocka_unit_test(almost),
        cmocka_unit_test(across_tokens),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
