/* Tests of json.c: what is refused before and by jansson, and how much memory a text may take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <malloc.h>

#include "base/json.h"
#include "support/bytes.h"
#include "support/scratch.h"

static void refused(const char *text, size_t n, const char *wanted)
{
    tg_error err = {0};
    json_t *v = tg_json_parse(text, n, "x.json", &err);
    if (v || !strstr(err.message, wanted))
        print_error("'%s': wanted '%s': %s\n", text, wanted, err.message);
    assert_null(v);
    assert_int_equal(err.status, TG_E_MODEL);
    assert_non_null(strstr(err.message, wanted));
    assert_memory_equal(err.message, "x.json: ", 8);
    assert_null(tg_json_parse(text, n, NULL, NULL));
}

static json_t *accepted(const char *text)
{
    tg_error err = {0};
    json_t *v = tg_json_parse(text, strlen(text), "x.json", &err);
    if (!v)
        print_error("%s\n", err.message);
    assert_non_null(v);
    return v;
}

static void values(void **state)
{
    (void)state;
    static const struct {
        const char *text, *type;
    } rows[] = {{"{}", "object"},
                {" [1] ", "array"},
                {"\"a\"", "string"},
                {"-7", "integer"},
                {"1.0", "number"},
                {"1e-05", "number"},
                {"true", "boolean"},
                {"false", "boolean"},
                {"null", "null"},
                {"\xef\xbb\xbf{}", "object"},
                {"9223372036854775807", "integer"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *v = accepted(rows[i].text);
        assert_string_equal(tg_json_type_name(v), rows[i].type);
        json_decref(v);
    }
    json_t *v = accepted("{\"\\u00e9\\ud83d\\ude00\\n\": \"]}[{\\\"\\\\\"}");
    assert_string_equal(json_string_value(json_object_get(v, "\xc3\xa9\xf0\x9f\x98\x80\n")),
                        "]}[{\"\\");
    json_decref(v);
}

static void m36_malformed(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        " ",
        "{",
        "[1,]",
        "{\"a\":1,}",
        "{\"a\"}",
        "[1 2]",
        "{a:1}",
        "// x\n1",
        "/**/1",
        "\"a",
        "\"a\nb\"",
        "\"\\x\"",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\ud800\\ud800\"",
        "\"\\u12g4\"",
        "\"\\u0000\"",
        "{\"\\u0000\":1}",
        "NaN",
        "Infinity",
        "-Infinity",
        "01",
        "-",
        "1.",
        ".5",
        "+1",
        "0x10",
        "1e",
        "1e400",
        "tru",
        "True",
        "'a'",
        "1 1",
        "{} x",
        "]",
        "[[]",
        "9223372036854775808",
        "18446744073709551616",
        "\"\xc0\xaf\"",
        "\"\xed\xa0\x80\"",
        "\"\xf4\x90\x80\x80\"",
        "\"\xc3\"",
        "\"\xff\"",
        "\xff\xfe{",
        "\"\\",
        "\"\\\"",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refused(bad[i], strlen(bad[i]), "byte offset");
    refused("[1]\0", 4, "byte offset");
    refused("[1\0]", 4, "byte offset"); /* jansson passes over that one */
    refused("\"a\0b\"", 5, "byte offset");
}

static void the_offset_counts_from_the_first_byte(void **state)
{
    (void)state;
    refused("[1, 2, x]", 9, "byte offset 8 of");
    refused("\xef\xbb\xbf[1, 2, x]", 12, "byte offset 11 of");
}

static void m37_nesting(void **state)
{
    (void)state;
    char text[200001];
    for (int depth = TG_JSON_DEPTH_MAX; depth <= TG_JSON_DEPTH_MAX + 1; depth++) {
        for (int i = 0; i < depth; i++) {
            text[i] = '[';
            text[2 * depth - 1 - i] = ']';
        }
        text[2 * depth] = 0;
        if (depth == TG_JSON_DEPTH_MAX)
            json_decref(accepted(text));
        else
            refused(text, 2 * (size_t)depth,
                    "nested too deeply (allowed 64 levels, byte offset 64)");
    }
    memset(text, '[', 100000);
    refused(text, 100000, "nested too deeply");
    for (int i = 0; i < 100000; i += 5)
        memcpy(text + i, "{\"\":[", 5);
    refused(text, 100000, "nested too deeply");
    /* Brackets in strings and values side by side are not nesting. */
    json_decref(accepted("[\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
                         "\\\"[[[[[[[[[[[[[[\"]"));
    text[0] = 0;
    for (int i = 0; i < 100; i++)
        strcat(text, i ? ",[{}]" : "[[{}]");
    strcat(text, "]");
    json_decref(accepted(text));
}

static void m38_duplicates(void **state)
{
    (void)state;
    static const char *const bad[] = {"{\"a\":1,\"a\":1}", "{\"a\":1,\"\\u0061\":2}",
                                      "[{\"x\":{\"\":1,\"\":2}}]", "{\"/\":1,\"\\/\":1}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refused(bad[i], strlen(bad[i]), "duplicate");
}

static void text_from_outside_is_escaped(void **state)
{
    (void)state;
    refused("[\xc3\xa9]", 4, "near '\\xc3\\xa9'");
}

/* ---- memory ------------------------------------------------------------------------------- */

static size_t in_use, peak;

static void *counted_malloc(size_t n)
{
    void *p = malloc(n);
    in_use += p ? malloc_usable_size(p) + sizeof(size_t) : 0;
    peak = in_use > peak ? in_use : peak;
    return p;
}

static void counted_free(void *p)
{
    in_use -= p ? malloc_usable_size(p) + sizeof(size_t) : 0;
    free(p);
}

/* Parses `open`, n times `item`, `close`; true when it was accepted. */
static bool parse_many(const char *open, const char *item, const char *close, size_t n)
{
    bytes b = {0};
    put_text(&b, open);
    for (size_t i = 0; i < n; i++) {
        char text[128];
        snprintf(text, sizeof text, item, (int)i, (int)i);
        put_text(&b, text);
    }
    put_text(&b, close);
    tg_error err = {0};
    peak = in_use = 0;
    json_t *v = tg_json_parse(b.data, b.n, NULL, &err);
    bool ok = v;
    assert_true(ok || strstr(err.message, "many small values"));
    const size_t most = b.n < 14 << 20 ? 16 * b.n + (16 << 20) : 240 << 20;
    if (ok && peak > most)
        print_error("%s: %zu bytes took %zu\n", item, b.n, peak);
    assert_true(!ok || peak <= most);
    assert_true(ok || peak == 0);
    json_decref(v);
    bytes_free(&b);
    return ok;
}

/* Up to the largest count that is accepted, no shape of text takes more than it is due; and each
 * shape that would is refused before anything is allocated. */
static void memory_is_bounded(void **state)
{
    (void)state;
    static const struct {
        const char *open, *item, *close;
    } rows[] = {
        {"[0", ",0", "]"},          {"[[]", ",[]", "]"},           {"[{}", ",{}", "]"},
        {"[\"\"", ",\"\"", "]"},    {"{\"\":0", ",\"%x\":0", "}"}, {"[[]", ",[[[]]]", "]"},
        {"[{}", ",{\"\":{}}", "]"}, {"[1.5", ",5.1", "]"},         {"{\"\":[]", ",\"%x\":[]", "}"},
    };
    json_set_alloc_funcs(counted_malloc, counted_free);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t good = 0, bad = 16000;
        while (bad < 800000 && parse_many(rows[i].open, rows[i].item, rows[i].close, bad))
            good = bad, bad *= 4;
        for (int k = 0; k < 2; k++) {
            size_t mid = (good + bad) / 2;
            if (parse_many(rows[i].open, rows[i].item, rows[i].close, mid))
                good = mid;
            else
                bad = mid;
        }
    }
    assert_true(parse_many("[0", ",\"%08x\"", "]", 2000000));
    assert_false(parse_many("[0", ",\"%08x\"", "]", 2300000));
    json_set_alloc_funcs(malloc, free);
}

/* The largest vocabularies in use, spelled without a space. */
static void compact_vocabularies_are_accepted(void **state)
{
    (void)state;
    json_set_alloc_funcs(counted_malloc, counted_free);
    assert_true(parse_many("{\"\":0", ",\"\\u0120tok%x\":%d", "}", 131072));
    assert_true(parse_many("[[]", ",[\"\xc4\xa0t%x\",\"ing%x\"]", "]", 131072));
    json_set_alloc_funcs(malloc, free);
}

static void files(void **state)
{
    (void)state;
    tg_error err = {0};
    json_t *v = tg_json_load(scratch_text("a.json", "[1]"), 3, &err);
    assert_non_null(v);
    json_decref(v);
    assert_null(tg_json_load(scratch_text("a.json", "[1] "), 3, &err));
    assert_int_equal(err.status, TG_E_MODEL);
    assert_non_null(strstr(err.message, "a.json: file too large (found 4 bytes, allowed 3)"));
    err = (tg_error){0};
    assert_null(tg_json_load(scratch_path("absent.json"), 3, &err));
    assert_int_equal(err.status, TG_E_IO);
    err = (tg_error){0};
    assert_null(tg_json_load(scratch_text("empty.json", ""), 3, &err));
    assert_non_null(strstr(err.message, "not valid JSON"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),
        cmocka_unit_test(m36_malformed),
        cmocka_unit_test(the_offset_counts_from_the_first_byte),
        cmocka_unit_test(m37_nesting),
        cmocka_unit_test(m38_duplicates),
        cmocka_unit_test(text_from_outside_is_escaped),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(compact_vocabularies_are_accepted),
        cmocka_unit_test(files),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
