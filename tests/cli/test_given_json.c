/* Tests of given_json.c: memory that JSON takes, counted where jansson asks for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "cli/given_json.h"

enum { N = 2 << 20, ALLOWED = (16 << 20) + 16 * N };

static size_t now, most;

static void *count_malloc(size_t n)
{
    void *p = malloc(n);
    now += p ? malloc_usable_size(p) + 16 : 0;
    most = now > most ? now : most;
    return p;
}

static void count_free(void *p)
{
    now -= p ? malloc_usable_size(p) + 16 : 0;
    free(p);
}

/* N bytes of a value again and again, in an array or an object. */
static void check(const char *unit, char open, char close)
{
    char *text = malloc(N + 64);
    size_t n = 0;
    json_error_t why;
    text[n++] = open;
    for (unsigned i = 0; n < N; i++)
        n += (size_t)(open == '{' ? sprintf(text + n, "\"%x\":%s,", i, unit) : sprintf(text + n, "%s,", unit));
    n--;
    text[n++] = close;
    most = now = 0;
    json_t *value = tg_given_json(text, n, 0, &why);
    assert_true(most <= ALLOWED);
    assert_true(value || strcmp(why.text, "too many small values") == 0);
    json_decref(value);
    free(text);
}

static void memory_is_bounded(void **state)
{
    static const char *const units[] = {"[]", "{}", "1", "1.5", "\"\"", "\"a,b\"", "null", "[[]]", "{\"a\":{}}", "[1,2,3,4,5,6,7,8,9]"};
    (void)state;
    json_set_alloc_funcs(count_malloc, count_free);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        check(units[i], '[', ']');
        check(units[i], '{', '}');
    }
}

static void marks_in_texts_count_nothing(void **state)
{
    (void)state;
    char *text = malloc(N);
    json_error_t why;
    memset(text, ',', N);
    memcpy(text, "[\"\\\"", 4);
    memcpy(text + N - 2, "\"]", 2);
    json_t *value = tg_given_json(text, N, 0, &why);
    assert_int_equal(json_string_length(json_array_get(value, 0)), N - 5);
    json_decref(value);
    assert_null(tg_given_json("[1,", 3, 0, &why));
    assert_non_null(strstr(why.text, "end of file"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(marks_in_texts_count_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
