/* Tests of container.c: metadata by type over both kinds, arrays, files beside the weights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "support/check_container.h"
#include "support/gguf_writer.h"
#include "support/safetensors_writer.h"

static tg_container *both[2]; /* a GGUF and a folder that say the same under the same keys */

static int open_both(void **state)
{
    if (scratch_setup(state) != 0)
        return -1;
    gguf g = gguf_new();
    gguf_uint(&g, "n.small", GGUF_I8, (uint8_t)-5);
    gguf_uint(&g, "n.large", GGUF_I64, 1ull << 40);
    gguf_uint(&g, "n.huge", GGUF_U64, UINT64_MAX);
    gguf_f32(&g, "r.half", 0.5f);
    gguf_f64(&g, "r.fine", 1e-05);
    gguf_f32(&g, "r.nan", NAN);
    gguf_f64(&g, "r.inf", -INFINITY);
    gguf_uint(&g, "b.yes", GGUF_BOOL, 1);
    gguf_uint(&g, "b.no", GGUF_BOOL, 0);
    gguf_text(&g, "t.text", "W\xc3\xb6rter");
    gguf_text(&g, "t.empty", "");
    bytes *b = gguf_array(&g, "a.strings", GGUF_STRING, 3);
    gguf_string(b, "one", 3);
    gguf_string(b, "", 0);
    gguf_string(b, "t\0ee", 4);
    b = gguf_array(&g, "a.i8", GGUF_I8, 3);
    put(b, "\xff\x00\x7f", 3);
    b = gguf_array(&g, "a.u64", GGUF_U64, 2);
    put_u64(b, UINT64_MAX);
    put_u64(b, 7);
    b = gguf_array(&g, "a.f32", GGUF_F32, 2);
    put(b, (float[]){1.5f, -2}, 8);
    b = gguf_array(&g, "a.f64", GGUF_F64, 1);
    put(b, (double[]){1e-300}, 8);
    b = gguf_array(&g, "a.bool", GGUF_BOOL, 2);
    put(b, "\0\1", 2);
    gguf_array(&g, "a.none", GGUF_STRING, 0);
    bytes file = gguf_file(&g);
    both[0] = accepted_as("x.gguf", file);

    scratch_mkdir("folder");
    scratch_text("folder/config.json",
                 "{\"n\": {\"small\": -5, \"large\": 1099511627776}, \"r\": {\"half\": 0.5, "
                 "\"fine\": 1e-05},"
                 " \"b\": {\"yes\": true, \"no\": false}, \"t\": {\"text\": \"W\\u00f6rter\", "
                 "\"empty\": \"\"},"
                 " \"null\": null, \"a\": {\"strings\": [\"one\"]}, \"top\": 3}");
    file = safetensors_file("{}", 0);
    scratch_write("folder/model.safetensors", file.data, file.n);
    bytes_free(&file);
    scratch_text("folder/tokenizer.json", "{}");
    scratch_text("folder/merges.txt", "");
    both[1] = accepted_at(scratch_path("folder"));
    return 0;
}

static int close_both(void **state)
{
    tg_container_free(both[0]);
    tg_container_free(both[1]);
    return scratch_teardown(state);
}

static void check_bad(tg_meta got, const tg_error *err, const char *wanted)
{
    assert_int_equal(got, TG_META_BAD);
    assert_int_equal(err->status, TG_E_MODEL);
    if (!strstr(err->message, wanted))
        print_error("'%s' is not in: %s\n", wanted, err->message);
    assert_non_null(strstr(err->message, wanted));
}

static void integers(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const tg_container *c = both[i];
        int64_t v = 99;
        assert_int_equal(tg_meta_int(c, "n.absent", 0, 9, &v, NULL), TG_META_ABSENT);
        assert_int_equal(v, 99);
        assert_int_equal(tg_meta_int(c, "n.small", -5, -5, &v, NULL), TG_META_FOUND);
        assert_int_equal(v, -5);
        assert_int_equal(tg_meta_int(c, "n.large", 0, INT64_MAX, &v, NULL), TG_META_FOUND);
        assert_int_equal(v, 1ll << 40);
        tg_error e1 = {0}, e2 = {0}, e3 = {0}, e4 = {0};
        check_bad(tg_meta_int(c, "n.small", -4, 9, &v, &e1), &e1,
                  "n.small (found -5, allowed -4 to 9)");
        check_bad(tg_meta_int(c, "n.large", 0, 512, &v, &e2), &e2, "found 1099511627776");
        check_bad(tg_meta_int(c, "r.half", 0, 9, &v, &e3), &e3, "r.half: wrong type");
        check_bad(tg_meta_int(c, "b.yes", 0, 9, &v, &e4), &e4, "allowed an integer");
        assert_int_equal(v, 1ll << 40);
    }
    int64_t v = 1;
    tg_error err = {0};
    check_bad(tg_meta_int(both[0], "n.huge", 0, INT64_MAX, &v, &err), &err, "n.huge (found ");
}

static void m13_wrong_types(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const tg_container *c = both[i];
        int64_t v;
        double d;
        bool b;
        const char *s;
        size_t n;
        tg_error e[8] = {0};
        check_bad(tg_meta_int(c, "t.text", 0, 9, &v, &e[0]), &e[0], "found string");
        check_bad(tg_meta_int(c, "a.strings", 0, 9, &v, &e[1]), &e[1], "found array");
        check_bad(tg_meta_real(c, "t.text", &d, &e[2]), &e[2], "allowed a number");
        check_bad(tg_meta_real(c, "b.yes", &d, &e[3]), &e[3], "allowed a number");
        check_bad(tg_meta_bool(c, "n.small", &b, &e[4]), &e[4], "allowed a boolean");
        check_bad(tg_meta_string(c, "n.small", &s, &n, &e[5]), &e[5], "allowed a string");
        check_bad(tg_meta_string(c, "a.strings", &s, &n, &e[6]), &e[6], "allowed a string");
    }
}

static void reals(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        double d = 3;
        assert_int_equal(tg_meta_real(both[i], "r.absent", &d, NULL), TG_META_ABSENT);
        assert_true(d == 3);
        assert_int_equal(tg_meta_real(both[i], "r.half", &d, NULL), TG_META_FOUND);
        assert_true(d == 0.5);
        assert_int_equal(tg_meta_real(both[i], "r.fine", &d, NULL), TG_META_FOUND);
        assert_true(d == 1e-05);
        assert_int_equal(tg_meta_real(both[i], "n.small", &d, NULL), TG_META_FOUND);
        assert_true(d == -5);
    }
    double d = 3;
    tg_error e1 = {0}, e2 = {0};
    check_bad(tg_meta_real(both[0], "r.nan", &d, &e1), &e1, "allowed a finite number");
    check_bad(tg_meta_real(both[0], "r.inf", &d, &e2), &e2, "allowed a finite number");
    assert_true(d == 3);
    assert_int_equal(tg_meta_real(both[0], "n.huge", &d, NULL), TG_META_FOUND);
    assert_true(d == 18446744073709551616.0);
}

static void booleans_and_texts(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        bool b = false;
        assert_int_equal(tg_meta_bool(both[i], "b.yes", &b, NULL), TG_META_FOUND);
        assert_true(b);
        assert_int_equal(tg_meta_bool(both[i], "b.no", &b, NULL), TG_META_FOUND);
        assert_false(b);
        const char *s = NULL;
        size_t n = 9;
        assert_int_equal(tg_meta_string(both[i], "t.none", &s, &n, NULL), TG_META_ABSENT);
        assert_int_equal(n, 9);
        assert_int_equal(tg_meta_string(both[i], "t.text", &s, &n, NULL), TG_META_FOUND);
        assert_string_equal(s, "W\xc3\xb6rter");
        assert_int_equal(n, 7);
        assert_int_equal(tg_meta_string(both[i], "t.empty", &s, &n, NULL), TG_META_FOUND);
        assert_int_equal(n, 0);
    }
}

static void paths_into_the_configuration(void **state)
{
    (void)state;
    int64_t v = 0;
    tg_error err = {0};
    assert_int_equal(tg_meta_int(both[1], "top", 0, 9, &v, NULL), TG_META_FOUND);
    assert_int_equal(v, 3);
    assert_int_equal(tg_meta_int(both[1], "null", 0, 9, &v, NULL), TG_META_ABSENT);
    assert_int_equal(tg_meta_int(both[1], "null.x", 0, 9, &v, NULL), TG_META_ABSENT);
    assert_int_equal(tg_meta_int(both[1], "none.x.y", 0, 9, &v, NULL), TG_META_ABSENT);
    check_bad(tg_meta_int(both[1], "top.x", 0, 9, &v, &err), &err,
              "config.json: top: wrong type (found integer, allowed an object)");
}

static void arrays(void **state)
{
    (void)state;
    const tg_container *c = both[0];
    tg_meta_array a;
    uint64_t at = 0, n;
    const uint8_t *s;
    assert_int_equal(tg_meta_get_array(c, "a.strings", TG_ELEM_STRING, &a, NULL), TG_META_FOUND);
    assert_int_equal(a.n, 3);
    tg_meta_array_next_string(&a, &at, &s, &n);
    assert_int_equal(n, 3);
    assert_memory_equal(s, "one", 3);
    tg_meta_array_next_string(&a, &at, &s, &n);
    assert_int_equal(n, 0);
    tg_meta_array_next_string(&a, &at, &s, &n);
    assert_int_equal(n, 4);
    assert_memory_equal(s, "t\0ee", 4);
    assert_int_equal(at, a.raw_bytes);

    assert_int_equal(tg_meta_get_array(c, "a.i8", TG_ELEM_INT, &a, NULL), TG_META_FOUND);
    assert_int_equal(tg_meta_array_int(&a, 0), -1);
    assert_int_equal(tg_meta_array_int(&a, 2), 127);
    assert_int_equal(tg_meta_get_array(c, "a.u64", TG_ELEM_INT, &a, NULL), TG_META_FOUND);
    assert_int_equal(tg_meta_array_int(&a, 0), INT64_MAX);
    assert_int_equal(tg_meta_array_int(&a, 1), 7);
    assert_int_equal(tg_meta_get_array(c, "a.bool", TG_ELEM_INT, &a, NULL), TG_META_FOUND);
    assert_int_equal(tg_meta_array_int(&a, 1), 1);
    assert_int_equal(tg_meta_get_array(c, "a.f32", TG_ELEM_REAL, &a, NULL), TG_META_FOUND);
    assert_true(tg_meta_array_real(&a, 0) == 1.5 && tg_meta_array_real(&a, 1) == -2);
    assert_int_equal(tg_meta_get_array(c, "a.f64", TG_ELEM_REAL, &a, NULL), TG_META_FOUND);
    assert_true(tg_meta_array_real(&a, 0) == 1e-300);
    assert_int_equal(tg_meta_get_array(c, "a.i8", TG_ELEM_REAL, &a, NULL), TG_META_FOUND);
    assert_true(tg_meta_array_real(&a, 0) == -1);
    assert_int_equal(tg_meta_get_array(c, "a.none", TG_ELEM_STRING, &a, NULL), TG_META_FOUND);
    assert_int_equal(a.n, 0);

    tg_error e[3] = {0};
    check_bad(tg_meta_get_array(c, "a.f32", TG_ELEM_INT, &a, &e[0]), &e[0], "an array of integers");
    check_bad(tg_meta_get_array(c, "a.i8", TG_ELEM_STRING, &a, &e[1]), &e[1],
              "an array of strings");
    check_bad(tg_meta_get_array(c, "t.text", TG_ELEM_STRING, &a, &e[2]), &e[2], "a single value");
    assert_int_equal(tg_meta_get_array(c, "a.absent", TG_ELEM_INT, &a, NULL), TG_META_ABSENT);
    assert_int_equal(tg_meta_get_array(both[1], "a.strings", TG_ELEM_STRING, &a, NULL),
                     TG_META_ABSENT);
}

static void sidecars(void **state)
{
    (void)state;
    tg_file file;
    char *path;
    tg_error err = {0};
    assert_int_equal(tg_container_sidecar(both[1], "tokenizer.json", 100, &file, &path, &err),
                     TG_OK);
    assert_int_equal(file.size, 2);
    assert_memory_equal(file.data, "{}", 2);
    assert_string_equal(path, scratch_path("folder/tokenizer.json"));
    tg_file_close(&file);
    tg_free(path);
    assert_int_equal(tg_container_sidecar(both[1], "merges.txt", 100, &file, &path, &err), TG_OK);
    assert_null(file.data);
    assert_non_null(path);
    tg_file_close(&file);
    tg_free(path);
    assert_int_equal(tg_container_sidecar(both[1], "vocab.json", 100, &file, &path, &err), TG_OK);
    assert_null(file.data);
    assert_null(path);
    assert_int_equal(tg_container_sidecar(both[0], "tokenizer.json", 100, &file, &path, &err),
                     TG_OK);
    assert_null(path);
    assert_int_equal(tg_container_sidecar(both[1], "tokenizer.json", 1, &file, &path, &err),
                     TG_E_MODEL);
    assert_null(path);
    assert_non_null(
        strstr(err.message, "tokenizer.json: file too large (found 2 bytes, allowed 1)"));
}

/* A path through a file. */
static void no_such_folder(void **state)
{
    (void)state;
    scratch_text("file", "x");
    refused_at(scratch_path("file/model"), TG_E_IO, "cannot be examined");
}

static void a_used_record_is_no_obstacle(void **state)
{
    (void)state;
    tg_error err = {.status = TG_E_USAGE, .message = "earlier"};
    tg_container *c;
    assert_int_equal(tg_container_open(&c, scratch_path("folder"), false, &err), TG_OK);
    tg_container_free(c);
    assert_int_equal(tg_container_open(&c, scratch_path("absent"), false, &err), TG_E_IO);
    assert_int_equal(err.status, TG_E_IO);
    assert_null(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers),
        cmocka_unit_test(m13_wrong_types),
        cmocka_unit_test(reals),
        cmocka_unit_test(booleans_and_texts),
        cmocka_unit_test(paths_into_the_configuration),
        cmocka_unit_test(arrays),
        cmocka_unit_test(sidecars),
        cmocka_unit_test(no_such_folder),
        cmocka_unit_test(a_used_record_is_no_obstacle),
    };
    return cmocka_run_group_tests(tests, open_both, close_both);
}
