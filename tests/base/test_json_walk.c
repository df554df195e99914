/* Tests of json_walk.c: what is walked is what jansson reads, what it refuses is refused (row M36),
 * and members are found and left out whatever stands around them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_walk.h"
#include "support/rand.h"

static tg_error err;

/* Walks a text of arrays, objects of anything, strings and integers. */
static bool walk(tg_json_walk *w, int depth)
{
    const char *type = tg_json_walk_type(w);
    const uint8_t *s;
    size_t n;
    int64_t v;
    bool object = strcmp(type, "object") == 0;
    if (depth < 8 && (object || strcmp(type, "array") == 0)) {
        tg_json_walk_open(w, object ? '{' : '[');
        while (tg_json_walk_next(w, object ? '}' : ']'))
            if ((object && !tg_json_walk_string(w, 0, true, &s, &n)) || !walk(w, depth + 1))
                return false;
        return !w->failed;
    }
    if (strcmp(type, "string") == 0)
        return tg_json_walk_string(w, 1, false, &s, &n);
    return tg_json_walk_int(w, &v);
}

static tg_status whole(const char *text, size_t n)
{
    char *copy =
        malloc(n ? n : 1); /* of its own, so that the address sanitizer sees a byte too many */
    assert_non_null(copy);
    memcpy(copy, text, n);
    err = (tg_error){0};
    tg_json_walk w = tg_json_walk_start(copy, (tg_json_range){0, n}, "x.json", &err);
    walk(&w, 0);
    tg_status status = tg_json_walk_end(&w);
    free(copy);
    return status;
}

static void refused(const char *text, const char *wanted)
{
    assert_int_equal(whole(text, strlen(text)), TG_E_MODEL);
    if (!strstr(err.message, wanted))
        print_error("%s: %s\n", text, err.message);
    assert_non_null(strstr(err.message, wanted));
    assert_memory_equal(err.message, "x.json: not valid JSON: ", 24);
}

static void m36_malformed(void **state)
{
    (void)state;
    refused("", "an integer is due (byte offset 0)");
    refused("[1,]", "an integer is due (byte offset 3)");
    refused("[1 2]", "a comma or the end is due (byte offset 3)");
    refused("[1", "a comma or the end is due (byte offset 2)");
    refused("[1}", "a comma or the end is due");
    refused("[1] ]", "text after the value (byte offset 4)");
    refused("{\"a\" 1}", "a colon is due");
    refused("{1:1}", "a string is due");
    refused("{\"a\":1,}", "a string is due");
    refused("[01]", "a number begins with zero");
    refused("[-]", "an integer is due");
    refused("[--1]", "an integer is due");
    refused("[1.5]", "an integer is due");
    refused("[1e3]", "an integer is due");
    refused("[+1]", "an integer is due");
    refused("[9223372036854775808]", "an integer beyond 64 bits");
    refused("[-9223372036854775809]", "an integer beyond 64 bits");
    refused("[NaN]", "an integer is due");
    refused("[/*c*/1]", "an integer is due");
    refused("\"abc", "a string has no end (byte offset 4)");
    refused("\"a\\", "an unknown escape");
    refused("\"a\nb\"", "a control byte in a string (byte offset 2)");
    refused("\"\\x\"", "an unknown escape");
    refused("\"\\u12g4\"", "an unknown escape");
    refused("\"\\u0000\"", "a NUL in a string");
    refused("\"\\ud800\"", "half of a surrogate pair");
    refused("\"\\ud800\\u0041\"", "half of a surrogate pair");
    refused("\"\\udc00\"", "half of a surrogate pair");
    refused("\"\xff\"", "a string is not UTF-8");
    refused("\"\\n\xed\xa0\x80\"", "a string is not UTF-8");
}

static void values(void **state)
{
    (void)state;
    static const char text[] = " [\"a\\u00e9\\ud83d\\ude00\\n\\/\", \"\", -9223372036854775808, "
                               "9223372036854775807, [], -0]";
    const uint8_t *s;
    size_t n = 0;
    int64_t v;
    tg_json_walk w =
        tg_json_walk_start(text, tg_json_range_all(text, strlen(text)), "x.json", &err);
    assert_true(tg_json_walk_open(&w, '['));
    assert_true(tg_json_walk_next(&w, ']') && tg_json_walk_string(&w, 0, false, &s, &n));
    assert_int_equal(n, 9);
    assert_memory_equal(s, "a\xc3\xa9\xf0\x9f\x98\x80\n/", 9);
    assert_true(tg_json_walk_next(&w, ']') && tg_json_walk_string(&w, 1, false, &s, &n));
    assert_int_equal(n, 0);
    assert_true(tg_json_walk_next(&w, ']') && tg_json_walk_int(&w, &v) && v == INT64_MIN);
    assert_true(tg_json_walk_next(&w, ']') && tg_json_walk_int(&w, &v) && v == INT64_MAX);
    assert_true(tg_json_walk_next(&w, ']') && tg_json_walk_open(&w, '['));
    assert_false(tg_json_walk_next(&w, ']'));
    assert_true(tg_json_walk_next(&w, ']') && tg_json_walk_int(&w, &v) && v == 0);
    assert_false(tg_json_walk_next(&w, ']'));
    assert_int_equal(tg_json_walk_end(&w), TG_OK);
}

/* Bytes of JSON at random: what one reader takes, the other takes. */
static void as_strict_as_the_other(void **state)
{
    (void)state;
    static const char *const bits[] = {
        "[",    "]",     "{",           "}",  ",", ":",  "\"a\"", "\"b\"", "1",   "-2",
        " ",    "\n",    "\"\\u0041\"", "\"", "0", "\\", "[]",    "{\"",   "\":", "\"\xc3\xa9\"",
        "\xc3", "\"c\":"};
    int n_good = 0;
    for (int k = 0; k < 200000; k++) {
        char text[128] = "";
        for (int i = rand_int(1, 9); i > 0; i--)
            strcat(text, bits[rand_int(0, (int)(sizeof bits / sizeof *bits) - 1)]);
        tg_error other = {0};
        json_t *tree = tg_json_parse(text, strlen(text), "x.json", &other);
        bool twice = !tree && strstr(other.message, "duplicate"); /* is the caller's to see */
        bool good = whole(text, strlen(text)) == TG_OK;
        if (!twice && good != (tree != NULL))
            print_error("%s: %s / %s\n", text, err.message, other.message);
        assert_true(twice || good == (tree != NULL));
        n_good += good;
        json_decref(tree);
    }
    assert_true(n_good > 1000);
}

static void members_left_out(void **state)
{
    (void)state;
    static const char text[] =
        "\xef\xbb\xbf { \"x\": {\"b\": [\"}\", 1]}, \"in\": {\"a\": [1, {\"b\": \"]\\\"\"}] , "
        "\"c\": true, \"b\":{\"a\":2}}, \"b\": 3}";
    static const char *const keys[] = {"b", "a", "z"};
    tg_json_range range[3];
    json_t *root = tg_json_parse_around(text, strlen(text), "x.json", "in", keys, range, 3, &err);
    assert_non_null(root);
    char *rest = json_dumps(root, JSON_COMPACT);
    assert_string_equal(
        rest, "{\"x\":{\"b\":[\"}\",1]},\"in\":{\"a\":null,\"c\":true,\"b\":null},\"b\":3}");
    assert_memory_equal(text + range[0].from, "{\"a\":2}", 7);
    assert_int_equal(range[0].to - range[0].from, 7);
    assert_memory_equal(text + range[1].from, "[1, {\"b\": \"]\\\"\"}]", 17);
    assert_int_equal(range[1].to - range[1].from, 17);
    assert_int_equal(range[2].to, 0);
    free(rest);
    json_decref(root);

    assert_null(
        tg_json_parse_around("{\"a\":1,\"a\":2}", 13, "x.json", NULL, &keys[1], range, 1, &err));
    assert_non_null(strstr(err.message, "uplicate"));
    assert_null(tg_json_parse_around("{\"a\":[1,2],\"b\" 2}", 17, "x.json", NULL, &keys[1], range,
                                     1, &err));
    assert_non_null(strstr(err.message, "byte offset 16"));
    assert_null(tg_json_parse_around(NULL, 0, "x.json", "in", keys, range, 3, &err));

    for (size_t n = 0; n < sizeof text; n++) { /* cut anywhere */
        char *copy = malloc(n ? n : 1);
        assert_non_null(copy);
        memcpy(copy, text, n);
        root = tg_json_parse_around(copy, n, "x.json", "in", keys, range, 3, &err);
        assert_true(!root == (n + 1 < sizeof text));
        json_decref(root);
        free(copy);
    }
}

/* The first complaint stays, whatever is asked after it. */
static void after_a_failure(void **state)
{
    (void)state;
    const uint8_t *s;
    size_t n;
    int64_t v;
    tg_json_range range;
    static const char *const key = "a";
    tg_json_walk w = tg_json_walk_start("[1]", (tg_json_range){0, 3}, "x.json", &err);
    assert_false(tg_json_walk_open(&w, '{'));
    assert_non_null(strstr(err.message, "a value of another type is due (byte offset 0)"));
    assert_false(tg_json_walk_string(&w, 0, false, &s, &n) || tg_json_walk_int(&w, &v));
    assert_false(tg_json_walk_open(&w, '['));
    assert_int_equal(tg_json_walk_end(&w), TG_E_MODEL);
    assert_non_null(strstr(err.message, "byte offset 0"));
    assert_null(tg_json_parse_around("{\"a\":1", 6, "x.json", NULL, &key, &range, 1, NULL)); /* nobody listens */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(m36_malformed),
        cmocka_unit_test(values),
        cmocka_unit_test(as_strict_as_the_other),
        cmocka_unit_test(members_left_out),
        cmocka_unit_test(after_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
