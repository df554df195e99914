/* Tests of gguf.c: the rows A of the fault catalogue, which must be accepted. Names of tests begin with the row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <math.h>

#include "support/gguf_samples.h"

static void a01_both_versions_and_any_keys(void **state)
{
    (void)state;
    gguf g = gguf_new();
    gguf_text(&g, "zzz.unknown", "last first");
    gguf_text(&g, "general.architecture", "llama");
    gguf_f64(&g, "aaa", 1.5);
    gguf_tensor(&g, "a", 2, ne_2x4, 0, eight, sizeof eight);
    g.version = 2;
    tg_container *c = accepted(gguf_file(&g));
    assert_string_equal(tg_container_format(c), "GGUF v2");
    const char *text;
    size_t n;
    assert_int_equal(tg_meta_string(c, "zzz.unknown", &text, &n, NULL), TG_META_FOUND);
    assert_string_equal(text, "last first");
    tg_container_free(c);
}

static void a02_any_integer_width(void **state)
{
    (void)state;
    static const uint32_t widths[] = {GGUF_U8,  GGUF_I8,  GGUF_U16, GGUF_I16,
                                      GGUF_U32, GGUF_I32, GGUF_U64, GGUF_I64};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        gguf g = with_pairs();
        gguf_uint(&g, "general.alignment", widths[i], 64);
        g.alignment = 64;
        gguf_tensor(&g, "a", 2, ne_2x4, 0, eight, sizeof eight);
        gguf_tensor(&g, "b", 2, ne_2x4, 0, eight, sizeof eight);
        tg_container *c = accepted(gguf_file(&g));
        assert_memory_equal(tg_container_tensor(c, "b")->data, eight, sizeof eight);
        tg_container_free(c);
    }
}

static void a03_alignments(void **state)
{
    (void)state;
    static const uint32_t good[] = {8, 16, 32, 64, 4096, TG_MAX_ALIGNMENT};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        gguf g = with_pairs();
        gguf_u32(&g, "general.alignment", good[i]);
        g.alignment = good[i];
        gguf_tensor(&g, "a", 1, (uint64_t[]){1}, 0, eight + 1, 4);
        gguf_tensor(&g, "b", 1, (uint64_t[]){1}, 0, eight + 2, 4);
        tg_container *c = accepted(gguf_file(&g));
        assert_memory_equal(tg_container_tensor(c, "b")->data, eight + 2, 4);
        tg_container_free(c);
    }
}

static void a04_nothing_inside(void **state)
{
    (void)state;
    gguf g = gguf_new();
    tg_container *c = accepted(gguf_file(&g));
    assert_int_equal(tg_container_n_tensors(c), 0);
    assert_null(tg_container_tensor(c, "a"));
    int64_t v = 5;
    assert_int_equal(tg_meta_int(c, "a", 0, 9, &v, NULL), TG_META_ABSENT);
    assert_int_equal(v, 5);
    tg_container_free(c);
    g = gguf_new();
    gguf_tensor(&g, "a", 2, ne_2x4, 0, eight, sizeof eight);
    tg_container_free(accepted(gguf_file(&g)));
    g = with_pairs();
    tg_container_free(accepted(gguf_file(&g)));
}

static void a05_padding_at_the_end(void **state)
{
    (void)state;
    for (int pad = 0; pad < 2; pad++) {
        gguf g = with_pairs();
        gguf_tensor(&g, "a", 1, (uint64_t[]){3}, 0, eight, 12);
        g.pad_end = pad;
        tg_container_free(accepted(gguf_file(&g)));
    }
}

static void a06_tensors_out_of_order(void **state)
{
    (void)state;
    gguf g = with_pairs();
    gguf_info(&g, "c", 1, (uint64_t[]){1}, 0, 64);
    gguf_info(&g, "a", 1, (uint64_t[]){1}, 0, 0);
    gguf_info(&g, "b", 1, (uint64_t[]){1}, 0, 32);
    put_zeros(&g.data, 32);
    put(&g.data, eight + 1, 4);
    put_zeros(&g.data, 28);
    put(&g.data, eight + 2, 4);
    tg_container *c = accepted(gguf_file(&g));
    assert_string_equal(tg_container_tensor_at(c, 0)->name, "c");
    assert_memory_equal(tg_container_tensor(c, "b")->data, eight + 1, 4);
    assert_memory_equal(tg_container_tensor(c, "c")->data, eight + 2, 4);
    tg_container_free(c);
}

static void a08_empty_tensors(void **state)
{
    (void)state;
    gguf g = with_tensor();
    gguf_tensor(&g, "empty", 3, (uint64_t[]){32, 0, 1ull << 62}, 8, "", 0);
    gguf_tensor(&g, "b", 2, ne_2x4, 0, eight, sizeof eight);
    tg_container *c = accepted(gguf_file(&g));
    assert_int_equal(tg_container_tensor(c, "empty")->n_bytes, 0);
    tg_container_free(c);
}

static void a12_mixed_types(void **state)
{
    (void)state;
    gguf g = with_tensor();
    gguf_tensor(&g, "f16", 1, (uint64_t[]){2}, 1, eight, 4);
    gguf_tensor(&g, "bf16", 1, (uint64_t[]){2}, 30, eight, 4);
    tg_container *c = accepted(gguf_file(&g));
    assert_int_equal(tg_container_tensor(c, "f16")->type->type, TG_F16);
    assert_int_equal(tg_container_tensor(c, "bf16")->type->type, TG_BF16);
    tg_container_free(c);
}

static void a19_text_is_kept(void **state)
{
    (void)state;
    static const char text[] = "{{ evil }}\x1b[31m\0\xff%s%n";
    gguf g = with_pairs();
    gguf_string(gguf_key(&g, "tokenizer.chat_template", GGUF_STRING), text, sizeof text - 1);
    tg_container *c = accepted(gguf_file(&g));
    const char *got;
    size_t n;
    assert_int_equal(tg_meta_string(c, "tokenizer.chat_template", &got, &n, NULL), TG_META_FOUND);
    assert_int_equal(n, sizeof text - 1);
    assert_memory_equal(got, text, sizeof text);
    tg_container_free(c);
}

static void a20_weights_that_are_not_numbers(void **state)
{
    (void)state;
    const float bad[2] = {NAN, INFINITY};
    gguf g = with_pairs();
    gguf_tensor(&g, "a", 1, (uint64_t[]){2}, 0, bad, sizeof bad);
    tg_container *c = accepted(gguf_file(&g));
    assert_memory_equal(tg_container_tensor(c, "a")->data, bad, sizeof bad);
    tg_container_free(c);
}

static void a21_links_and_names(void **state)
{
    (void)state;
    gguf g = with_tensor();
    tg_container_free(accepted_as("Gewichte \xe2\x80\x93 \xe5\xad\x97.gguf", gguf_file(&g)));
    char *link = scratch_path("a link");
    assert_int_equal(symlink("Gewichte \xe2\x80\x93 \xe5\xad\x97.gguf", link), 0);
    tg_container_free(accepted_at(link));
}

static void a21_above_4_gib(void **state)
{
    (void)state;
    const uint64_t n = 5ull << 30, at = n - 64;
    gguf g = gguf_new();
    gguf_info(&g, "large", 2, (uint64_t[]){1 << 16, (n - 4096) >> 16}, 24, 0);
    gguf_info(&g, "late", 1, (uint64_t[]){8}, 0, at);
    bytes b = gguf_file(&g);
    char *path = scratch_write("large.gguf", b.data, b.n);
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    bool sparse = pwrite(fd, eight, sizeof eight, (off_t)(b.n + at)) == sizeof eight;
    close(fd);
    tg_container *c;
    tg_error err = {0};
    if (sparse && tg_container_open(&c, path, false, &err) == TG_OK) {
        assert_memory_equal(tg_container_tensor(c, "late")->data, eight, sizeof eight);
        tg_container_free(c);
    }
    unlink(path);
    bytes_free(&b);
    if (!sparse) {
        print_message("no sparse file of 5 GiB can be made here\n");
        skip();
    }
    assert_int_equal(err.status, TG_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a01_both_versions_and_any_keys),
        cmocka_unit_test(a02_any_integer_width),
        cmocka_unit_test(a03_alignments),
        cmocka_unit_test(a04_nothing_inside),
        cmocka_unit_test(a05_padding_at_the_end),
        cmocka_unit_test(a06_tensors_out_of_order),
        cmocka_unit_test(a08_empty_tensors),
        cmocka_unit_test(a12_mixed_types),
        cmocka_unit_test(a19_text_is_kept),
        cmocka_unit_test(a20_weights_that_are_not_numbers),
        cmocka_unit_test(a21_links_and_names),
        cmocka_unit_test(a21_above_4_gib),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
