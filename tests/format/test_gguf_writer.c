/* Tests of gguf_writer.c: what is written is what the strict reader finds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/memory.h"
#include "format/container.h"
#include "format/gguf_writer.h"
#include "support/scratch.h"

/* The head and zeros for the data, in a file. */
static char *write_file(tg_gguf_writer *w)
{
    assert_int_equal(tg_gguf_writer_head(w), TG_OK);
    assert_int_equal(w->n % w->alignment, 0);
    uint8_t *all = tg_alloc(w->n + w->data_bytes, 1, "a file", NULL);
    memcpy(all, w->bytes, w->n);
    char *path = scratch_write("w.gguf", all, w->n + w->data_bytes);
    tg_free(all);
    return path;
}

static void everything_comes_back(void **state)
{
    (void)state;
    static const uint64_t dim[3] = {2, 3, 32};
    static const uint8_t text[] = {'a', 0, 0xff};
    for (uint64_t alignment = 8; alignment <= 128; alignment *= 4) {
        tg_error err = {0};
        tg_gguf_writer w;
        tg_gguf_writer_init(&w, &err);
        w.alignment = alignment;
        tg_gguf_put_u32(&w, "general.alignment", (uint32_t)alignment);
        tg_gguf_put_f32(&w, "z.real", -1.5f);
        tg_gguf_put_bool(&w, "a.bool", true);
        tg_gguf_put_text(&w, "m.text", (const char *)text, sizeof text);
        tg_gguf_put_array(&w, "t", TG_GGUF_TEXT, 3);
        tg_gguf_add_text(&w, "one", 3);
        tg_gguf_add_text(&w, "", 0);
        tg_gguf_add_text(&w, text, sizeof text);
        tg_gguf_put_array(&w, "i", TG_GGUF_I32, 2);
        tg_gguf_add_i32(&w, -7);
        tg_gguf_add_i32(&w, INT32_MAX);
        tg_gguf_put_array(&w, "f", TG_GGUF_F32, 1);
        tg_gguf_add_f32(&w, 0.25f);
        tg_gguf_put_array(&w, "none", TG_GGUF_I32, 0);
        tg_gguf_put_tensor(&w, "x", 3, dim, 0, 2 * 3 * 32 * 4);
        tg_gguf_put_tensor(&w, "y", 1, dim + 2, 2, 18);
        tg_gguf_put_tensor(&w, "z", 1, dim, 1, 4);

        tg_container *c;
        assert_int_equal(tg_container_open(&c, write_file(&w), true, &err), TG_OK);
        assert_string_equal(tg_container_format(c), "GGUF v3");
        double real;
        bool flag;
        const char *found;
        size_t n;
        assert_int_equal(tg_meta_real(c, "z.real", &real, NULL), TG_META_FOUND);
        assert_true(real == -1.5);
        assert_int_equal(tg_meta_bool(c, "a.bool", &flag, NULL), TG_META_FOUND);
        assert_true(flag);
        assert_int_equal(tg_meta_string(c, "m.text", &found, &n, NULL), TG_META_FOUND);
        assert_int_equal(n, sizeof text);
        assert_memory_equal(found, text, n);
        tg_meta_array a;
        uint64_t at = 0, n_text;
        const uint8_t *bytes;
        assert_int_equal(tg_meta_get_array(c, "t", TG_ELEM_STRING, &a, NULL), TG_META_FOUND);
        assert_int_equal(a.n, 3);
        for (int i = 0; i < 3; i++)
            tg_meta_array_next_string(&a, &at, &bytes, &n_text);
        assert_int_equal(n_text, sizeof text);
        assert_memory_equal(bytes, text, sizeof text);
        assert_int_equal(tg_meta_get_array(c, "i", TG_ELEM_INT, &a, NULL), TG_META_FOUND);
        assert_int_equal(tg_meta_array_int(&a, 0), -7);
        assert_int_equal(tg_meta_array_int(&a, 1), INT32_MAX);
        assert_int_equal(tg_meta_get_array(c, "f", TG_ELEM_REAL, &a, NULL), TG_META_FOUND);
        assert_true(tg_meta_array_real(&a, 0) == 0.25);

        assert_int_equal(tg_container_n_tensors(c), 3);
        const tg_tensor *t = tg_container_tensor_at(c, 0);
        assert_string_equal(t->name, "x");
        assert_int_equal(t->n_dim, 3);
        assert_memory_equal(t->dim, dim, sizeof dim);
        assert_string_equal(tg_container_tensor(c, "y")->type_name, "Q4_0");
        assert_int_equal(tg_container_tensor(c, "z")->n_bytes, 4);

        /* pairs in their order, and the same bytes when they are carried over */
        static const char *const order[] = {"general.alignment", "z.real", "a.bool", "m.text", "t", "i", "f", "none"};
        tg_gguf_writer again;
        const char *key;
        tg_gguf_writer_init(&again, &err);
        for (size_t i = 0; (bytes = tg_container_pair_at(c, i, &key, &n)); i++) {
            assert_string_equal(key, order[i]);
            tg_gguf_put_raw(&again, bytes, n);
        }
        assert_int_equal(again.n_pairs, w.n_pairs);
        assert_memory_equal(again.bytes + 24, w.bytes + 24, again.n - 24);
        tg_gguf_writer_deinit(&again);
        tg_container_free(c);
        tg_gguf_writer_deinit(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(everything_comes_back)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
