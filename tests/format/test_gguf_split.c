/* Tests of gguf_split.c: models in several files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>

#include "support/gguf_samples.h"

/* With one tensor, called by its number. */
static bytes split_part(uint32_t no, uint32_t count)
{
    const char name[2] = {(char)('a' + no), 0};
    gguf g = gguf_new();
    gguf_text(&g, "general.name", name);
    gguf_tensor(&g, name, 2, ne_2x4, 0, eight, sizeof eight);
    gguf_uint(&g, "split.no", GGUF_U16, no);
    gguf_uint(&g, "split.count", GGUF_U16, count);
    gguf_uint(&g, "split.tensors.count", GGUF_I32, 3);
    return gguf_file(&g);
}

static void m33_part_of_a_split_model(void **state)
{
    (void)state;
    refused_as(
        "m-00002-of-00003.gguf", split_part(1, 3),
        "part 2 of 3 of a split model (missing: m-00001-of-00003.gguf, m-00003-of-00003.gguf)");
    refused_as("m-00001-of-00003.gguf", split_part(0, 3), "(missing: m-00003-of-00003.gguf)");
    refused_as("m-00003-of-00003.gguf", split_part(2, 3), "part 3 of 3 of a split model: give the path of the first");
    refused_as("renamed.gguf", split_part(0, 3), "(missing: the other 2)");
    refused_as("n-00001-of-01024.gguf", split_part(0, 1024), "...");
    refused_as("n-00001-of-01025.gguf", split_part(0, 1025), "split.count (found 1025");
    char here[PATH_MAX]; /* a path without a folder */
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(scratch_folder), 0);
    refused_at("m-00003-of-00003.gguf", TG_E_MODEL, "give the path of the first");
    unlink("m-00002-of-00003.gguf");
    refused_at("m-00001-of-00003.gguf", TG_E_MODEL, "(missing: m-00002-of-00003.gguf)");
    assert_int_equal(chdir(here), 0);
    tg_container_free(accepted_as("one-00001-of-00001.gguf", split_part(0, 1)));
}

static void parts_are_joined(void **state)
{
    (void)state;
    for (uint32_t i = 3; i-- > 1;) {
        char name[32];
        snprintf(name, sizeof name, "p-%05u-of-00003.gguf", i + 1);
        bytes b = split_part(i, 3);
        scratch_write(name, b.data, b.n);
        bytes_free(&b);
    }
    tg_container *c = accepted_as("p-00001-of-00003.gguf", split_part(0, 3));
    const char *text;
    size_t n;
    assert_int_equal(tg_meta_string(c, "general.name", &text, &n, NULL), TG_META_FOUND);
    assert_string_equal(text, "a");
    assert_int_equal(tg_container_n_tensors(c), 3);
    for (char name[2] = "a"; name[0] <= 'c'; name[0]++) {
        const tg_tensor *t = tg_container_tensor(c, name);
        assert_non_null(t);
        assert_memory_equal(t->data, eight, sizeof eight);
        assert_int_equal(tg_container_check_output(c, t->file, NULL), TG_E_USAGE);
    }
    assert_int_equal(tg_container_check_output(c, "", NULL), TG_E_USAGE);
    assert_int_equal(tg_container_check_output(c, scratch_write("other", eight, sizeof eight), NULL), TG_OK);
    assert_non_null(strstr(tg_container_tensor(c, "b")->file, "p-00002-of-00003.gguf"));
    const tg_tensor *third = tg_container_tensor(c, "c");
    tg_container_release(c, third->data, sizeof eight); /* is read again when it is needed */
    assert_memory_equal(third->data, eight, sizeof eight);
    assert_int_equal(tg_container_check_unchanged(c, NULL), TG_OK);
    static const char *const touched[] = {"p-00002-of-00003.gguf", "p-00001-of-00003.gguf"};
    for (int i = 0; i < 2; i++) { /* a part, then the first of all */
        assert_int_equal(utimensat(AT_FDCWD, scratch_path(touched[i]), (struct timespec[]){{1, 0}, {1, 0}}, 0), 0);
        assert_int_equal(tg_container_check_unchanged(c, NULL), TG_E_IO);
    }
    tg_container_free(c);

    gguf wrong = gguf_new();
    gguf_uint(&wrong, "split.no", GGUF_U16, 0);
    gguf_uint(&wrong, "split.count", GGUF_U16, 3);
    gguf_text(&wrong, "split.tensors.count", "3");
    refused_as("p-00001-of-00003.gguf", gguf_file(&wrong), "split.tensors.count: wrong type");

    gguf more = gguf_new();
    gguf_uint(&more, "split.no", GGUF_U16, 0);
    gguf_uint(&more, "split.count", GGUF_U16, 3);
    gguf_uint(&more, "split.tensors.count", GGUF_I32, 3);
    refused_as("p-00001-of-00003.gguf", gguf_file(&more), "split.tensors.count (found 3, but the parts have 2)");

    bytes b = split_part(2, 3); /* a part under another's name, one twice, and one that is broken */
    scratch_write("p-00002-of-00003.gguf", b.data, b.n);
    refused_as("p-00001-of-00003.gguf", split_part(0, 3), "p-00002-of-00003.gguf: found part 3 of 3, wanted part 2 of 3");
    scratch_write("p-00002-of-00003.gguf", b.data, b.n - 1);
    bytes_free(&b);
    bytes other = split_part(1, 4);
    refused_as("p-00001-of-00003.gguf", split_part(0, 3), "p-00002-of-00003.gguf: ");
    scratch_write("p-00002-of-00003.gguf", other.data, other.n);
    bytes_free(&other);
    refused_as("p-00001-of-00003.gguf", split_part(0, 3), "found part 2 of 4, wanted part 2 of 3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(m33_part_of_a_split_model),
        cmocka_unit_test(parts_are_joined),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
