/* Tests of gguf.c: rows M01 to M30 of the fault catalogue as far as they concern the container. Names of tests begin
 * with the row. The rows A: test_gguf_accepted.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <time.h>

#include "support/gguf_samples.h"

static void refused(bytes b, const char *wanted)
{
    refused_as("x.gguf", b, wanted);
}

/* A file whose one tensor is described thus and has 32 bytes of data. */
static bytes one_info(const char *name, uint32_t n_dim, const uint64_t *ne, uint32_t type,
                      uint64_t offset)
{
    gguf g = with_pairs();
    gguf_info(&g, name, n_dim, ne, type, offset);
    put(&g.data, eight, sizeof eight);
    return gguf_file(&g);
}

static void well_formed(void **state)
{
    (void)state;
    gguf g = with_tensor();
    const uint8_t q8[2 * 34] = {1, 2, 3};
    gguf_tensor(&g, "b", 3, (uint64_t[]){32, 1, 2}, 8, q8, sizeof q8);
    tg_container *c = accepted(gguf_file(&g));
    assert_int_equal(tg_container_get_kind(c), TG_CONTAINER_GGUF);
    assert_string_equal(tg_container_format(c), "GGUF v3");
    assert_int_equal(tg_container_n_tensors(c), 2);
    assert_null(tg_container_config(c));
    const tg_tensor *a = tg_container_tensor(c, "a"), *b = tg_container_tensor(c, "b");
    assert_ptr_equal(a, tg_container_tensor_at(c, 0));
    assert_ptr_equal(b, tg_container_tensor_at(c, 1));
    assert_null(tg_container_tensor(c, "c"));
    assert_null(tg_container_tensor(c, ""));
    assert_int_equal(a->n_dim, 2);
    assert_int_equal(a->dim[0], 2);
    assert_int_equal(a->dim[1], 4);
    assert_int_equal(a->dim[2], 1);
    assert_int_equal(a->dim[3], 1);
    assert_int_equal(a->n_bytes, 32);
    assert_memory_equal(a->data, eight, 32);
    assert_int_equal(a->type->type, TG_F32);
    assert_string_equal(a->type_name, "F32");
    assert_string_equal(a->file, tg_container_path(c));
    assert_int_equal(b->dim[0], 2);
    assert_int_equal(b->dim[1], 1);
    assert_int_equal(b->dim[2], 32);
    assert_string_equal(b->type_name, "Q8_0");
    assert_memory_equal(b->data, q8, sizeof q8);
    tg_container_free(c);
    tg_container_free(NULL);
}

static void m01_not_a_file_of_enough_bytes(void **state)
{
    (void)state;
    refused_at(scratch_write("empty.gguf", "", 0), TG_E_MODEL, "empty");
    for (size_t n = 1; n < 24; n++) {
        gguf g = gguf_new();
        bytes b = gguf_file(&g);
        b.n = n;
        refused(b, "too short");
    }
    refused_at(scratch_mkdir("folder.gguf"), TG_E_MODEL, "no weights in this folder");
    char *fifo = scratch_path("fifo.gguf");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    refused_at(fifo, TG_E_MODEL, "a FIFO");
    refused_at("/dev/null", TG_E_MODEL, "a device");
    refused_at(scratch_path("absent.gguf"), TG_E_IO, "cannot be opened");
}

static void m02_wrong_magic_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t n;
        const char *wanted;
    } rows[] = {
#define ROW(text, wanted) {text, sizeof text - 1, wanted}
        ROW("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n",
            "Git LFS pointer"),
        ROW("<!DOCTYPE html><html></html>", "HTML page"),
        ROW("\n  <html lang=\"en\"><head></head></html>", "HTML page"),
        ROW("PK\x03\x04.......................", "zip"),
        ROW("\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.", "pickle"),
        ROW("\x80\x04}........................", "pickle"),
        ROW("lmgg\0\0\0\0", "legacy GGML"),
        ROW("fmgg\1\0\0\0", "legacy GGML"),
        ROW("tjgg\3\0\0\0", "legacy GGML"),
        ROW("{\"a\": 1}", "JSON"),
        ROW("\xef\xbb\xbf [1]", "JSON"),
        ROW("\x02\0\0\0\0\0\0\0{}", "safetensors"),
        ROW("\xff\xfe\xfd\xfc nothing known", "0xfcfdfeff"),
#undef ROW
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        refused_at(scratch_write("x.gguf", rows[i].text, rows[i].n), TG_E_MODEL, rows[i].wanted);
}

static void m03_version_not_supported(void **state)
{
    (void)state;
    static const uint32_t versions[] = {0, 1, 4, 5, UINT32_MAX};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        gguf g = with_tensor();
        g.version = versions[i];
        refused(gguf_file(&g), "allowed 2 and 3");
    }
}

static void m04_big_endian(void **state)
{
    (void)state;
    for (uint32_t v = 1; v <= 3; v++) {
        gguf g = with_tensor();
        g.version = v << 24;
        refused(gguf_file(&g), "big-endian");
    }
}

static void m05_counts_that_cannot_be(void **state)
{
    (void)state;
    static const uint64_t wrong[] = {3,          65536,      65537,     1ull << 31,
                                     1ull << 32, 1ull << 63, UINT64_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        gguf g = with_tensor();
        g.counts = (uint64_t[]){wrong[i], 2};
        refused(gguf_file(&g), i == 0 ? "tensor" : "number of tensors");
        g = with_tensor();
        g.counts = (uint64_t[]){1, wrong[i]};
        refused(gguf_file(&g), i == 0 ? "x.gguf: " : "number of pairs");
    }
}

static void m06_key_length(void **state)
{
    (void)state;
    static const uint64_t lengths[] = {0, 65536, 1000, 1ull << 63, UINT64_MAX, UINT64_MAX - 7};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        gguf g = with_pairs();
        g.n_pairs++;
        put_u64(&g.pairs, lengths[i]);
        put_text(&g.pairs, "some bytes that follow");
        refused(gguf_file(&g), "pair 3: length of the key");
    }
}

static void limit_of_the_key_is_accepted(void **state)
{
    (void)state;
    char key[TG_MAX_KEY_BYTES + 1];
    memset(key, 'k', TG_MAX_KEY_BYTES);
    key[TG_MAX_KEY_BYTES] = 0;
    gguf g = gguf_new();
    gguf_u32(&g, key, 7);
    tg_container *c = accepted(gguf_file(&g));
    int64_t v = 0;
    assert_int_equal(tg_meta_int(c, key, 0, 9, &v, NULL), TG_META_FOUND);
    assert_int_equal(v, 7);
    tg_container_free(c);
}

static void m07_bytes_of_the_key(void **state)
{
    (void)state;
    static const char bad[] = {0, 1, '\n', 0x1f, 0x7f, (char)0x80, (char)0xff};
    for (size_t i = 0; i < sizeof bad; i++) {
        gguf g = with_pairs();
        g.n_pairs++;
        char key[] = "key?";
        key[3] = bad[i];
        gguf_string(&g.pairs, key, 4);
        put_u32(&g.pairs, GGUF_U8);
        put_u32(&g.pairs, 0);
        refused(gguf_file(&g), "byte of the key");
    }
}

static void m08_the_same_key_twice(void **state)
{
    (void)state;
    gguf g = with_pairs();
    gguf_u32(&g, "between", 2);
    gguf_text(&g, "llama.block_count", "other type");
    refused(gguf_file(&g), "duplicate key llama.block_count");
}

static void m09_value_types(void **state)
{
    (void)state;
    static const uint32_t wrong[] = {13, 14, 255, 0x80000000, UINT32_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        gguf g = with_pairs();
        put_u64(gguf_key(&g, "k", wrong[i]), 0);
        refused(gguf_file(&g), "value type");
        g = with_pairs();
        put_u64(gguf_array(&g, "k", wrong[i], 1), 0);
        refused(gguf_file(&g), "type of the array's elements");
    }
    gguf g = with_pairs();
    bytes *b = gguf_array(&g, "k", GGUF_ARRAY, 1);
    put_u32(b, GGUF_U8);
    put_u64(b, 1);
    put_u32(b, 0);
    refused(gguf_file(&g), "array inside an array");
}

static void m10_string_length(void **state)
{
    (void)state;
    static const uint64_t lengths[] = {100, 1ull << 32, 1ull << 63, UINT64_MAX, UINT64_MAX - 100};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        gguf g = with_pairs();
        bytes *b = gguf_key(&g, "k", GGUF_STRING);
        put_u64(b, lengths[i]);
        put_text(b, "abc");
        refused(gguf_file(&g), "length of the string");
        g = with_pairs();
        b = gguf_array(&g, "k", GGUF_STRING, 2);
        gguf_string(b, "first", 5);
        put_u64(b, lengths[i]);
        put_text(b, "abc");
        refused(gguf_file(&g), "length of a string in the array");
    }
}

static void m11_array_count(void **state)
{
    (void)state;
    static const struct {
        uint32_t elem;
        uint64_t n;
    } rows[] = {{GGUF_U64, 1ull << 61}, {GGUF_U64, 1ull << 60},
                {GGUF_U8, 1000},        {GGUF_U32, 1ull << 62},
                {GGUF_U32, 5},          {GGUF_STRING, 1ull << 61},
                {GGUF_STRING, 3},       {GGUF_STRING, UINT64_MAX},
                {GGUF_BOOL, UINT64_MAX}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        gguf g = with_pairs();
        bytes *b = gguf_array(&g, "k", rows[i].elem, rows[i].n);
        put_zeros(b, 16);
        refused(gguf_file(&g), "length of the array");
    }
}

static void m12_booleans(void **state)
{
    (void)state;
    for (unsigned v = 2; v < 256; v += 84) {
        gguf g = with_pairs();
        gguf_uint(&g, "k", GGUF_BOOL, v);
        refused(gguf_file(&g), "boolean");
        g = with_pairs();
        bytes *b = gguf_array(&g, "k", GGUF_BOOL, 3);
        put_uint(b, 0x01, 2);
        put_uint(b, v, 1);
        refused(gguf_file(&g), "boolean");
    }
}

static void m13_alignment_of_the_wrong_type(void **state)
{
    (void)state;
    gguf g = with_tensor();
    gguf_text(&g, "general.alignment", "32");
    refused(gguf_file(&g), "general.alignment: wrong type (found string, allowed an integer)");
    g = with_tensor();
    gguf_f32(&g, "general.alignment", 32);
    refused(gguf_file(&g), "found float32");
    g = with_tensor();
    put_u32(gguf_array(&g, "general.alignment", GGUF_U32, 1), 32);
    refused(gguf_file(&g), "found array");
    g = with_tensor();
    gguf_uint(&g, "general.alignment", GGUF_BOOL, 1);
    refused(gguf_file(&g), "found bool");
}

static void m14_alignment(void **state)
{
    (void)state;
    static const uint32_t wrong[] = {0, 1, 4, 7, 9, 24, 33, (1 << 20) + 1, 1 << 21, UINT32_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        gguf g = with_tensor();
        gguf_u32(&g, "general.alignment", wrong[i]);
        refused(gguf_file(&g), "general.alignment (found");
    }
    gguf g = with_tensor();
    gguf_uint(&g, "general.alignment", GGUF_I32, (uint32_t)-32);
    refused(gguf_file(&g), "general.alignment (found -32");
    g = with_tensor();
    gguf_uint(&g, "general.alignment", GGUF_U64, UINT64_MAX - 31);
    refused(gguf_file(&g), "general.alignment (found");
}

static void m19_tensor_names(void **state)
{
    (void)state;
    char name[66];
    memset(name, 'n', 65);
    name[65] = 0;
    refused(one_info(name, 1, (uint64_t[]){8}, 0, 0), "length of a tensor's name");
    refused(one_info("", 1, (uint64_t[]){8}, 0, 0), "length of a tensor's name");
    name[64] = 0;
    tg_container_free(accepted(one_info(name, 1, (uint64_t[]){8}, 0, 0)));

    static const char bad[] = {0, 1, '\n', 0x1b, 0x7f};
    for (size_t i = 0; i < sizeof bad; i++) {
        gguf g = with_pairs();
        g.n_tensors = 1;
        char text[] = "name?";
        text[4] = bad[i];
        gguf_string(&g.infos, text, 5);
        put_u32(&g.infos, 1);
        put_u64(&g.infos, 8);
        put_u32(&g.infos, 0);
        put_u64(&g.infos, 0);
        put(&g.data, eight, sizeof eight);
        refused(gguf_file(&g), "control byte in the tensor name");
    }
    static const uint64_t lengths[] = {1000, 1ull << 63, UINT64_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        gguf g = with_pairs();
        g.n_tensors = 1;
        put_u64(&g.infos, lengths[i]);
        put_zeros(&g.infos, 64);
        refused(gguf_file(&g), "tensor 1: length of the name");
    }
}

static void m20_the_same_name_twice(void **state)
{
    (void)state;
    gguf g = with_tensor();
    gguf_tensor(&g, "b", 1, (uint64_t[]){8}, 0, eight, sizeof eight);
    gguf_tensor(&g, "a", 1, (uint64_t[]){8}, 0, eight, sizeof eight);
    refused(gguf_file(&g), "duplicate tensor a");
}

static void m21_number_of_dimensions(void **state)
{
    (void)state;
    static const uint32_t wrong[] = {0, 5, 6, 1u << 31, UINT32_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        refused(one_info("t", wrong[i], (uint64_t[8]){1, 1, 1, 1, 1, 1, 1, 1}, 0, 0),
                "number of dimensions");
    tg_container_free(accepted(one_info("t", 4, (uint64_t[]){2, 2, 1, 2}, 0, 0)));
}

static void m22_dimension_at_2_63(void **state)
{
    (void)state;
    refused(one_info("t", 1, (uint64_t[]){1ull << 63}, 0, 0), "dimension");
    refused(one_info("t", 2, (uint64_t[]){8, UINT64_MAX}, 0, 0), "dimension");
    refused(one_info("t", 2, (uint64_t[]){0, UINT64_MAX}, 0, 0), "dimension");
}

static void m23_number_of_elements_overflows(void **state)
{
    (void)state;
    const uint64_t k = 1ull << 32;
    refused(one_info("t", 2, (uint64_t[]){k, k}, 0, 0), "size overflows");
    refused(one_info("t", 4, (uint64_t[]){1 << 16, 1 << 16, 1 << 16, 1 << 16}, 0, 0),
            "size overflows");
    refused(one_info("t", 3, (uint64_t[]){k, 3, k}, 24, 0), "size overflows");
    refused(one_info("t", 3, (uint64_t[]){3, k, k}, 24, 0), "size overflows");
    refused(one_info("t", 2, (uint64_t[]){INT64_MAX, 3}, 24, 0), "size overflows");
}

static void m24_number_of_bytes_overflows(void **state)
{
    (void)state;
    refused(one_info("t", 1, (uint64_t[]){1ull << 62}, 0, 0), "size overflows");
    refused(one_info("t", 2, (uint64_t[]){1ull << 61, 7}, 1, 0), "size overflows");
    refused(one_info("t", 2, (uint64_t[]){INT64_MAX, 2}, 24, 0),
            "size overflows"); /* when padded */
    refused(one_info("t", 1, (uint64_t[]){INT64_MAX}, 24, 1ull << 63), "size overflows");
    refused(one_info("t", 1, (uint64_t[]){INT64_MAX}, 24, 0), "past the end");
}

static void m25_types(void **state)
{
    (void)state;
    static const uint32_t unknown[] = {4, 5, 31, 32, 33, 36, 37, 38, 42, 255, 1u << 31, UINT32_MAX};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        refused(one_info("t", 1, (uint64_t[]){8}, unknown[i], 0), "unknown tensor type");
}

static void m25_a_type_without_decoder_opens(void **state)
{
    (void)state;
    const uint8_t block[110] = {0};
    gguf g = with_pairs();
    gguf_tensor(&g, "iq3_s", 1, (uint64_t[]){256}, 21, block, 110);
    gguf_tensor(&g, "i64", 1, (uint64_t[]){2}, 27, block, 16);
    tg_container *c = accepted(gguf_file(&g));
    const tg_tensor *t = tg_container_tensor(c, "iq3_s");
    assert_null(t->type);
    assert_string_equal(t->type_name, "IQ3_S");
    assert_int_equal(t->n_bytes, 110);
    assert_string_equal(tg_container_tensor(c, "i64")->type_name, "I64");
    tg_container_free(c);
    g = with_pairs();
    gguf_tensor(&g, "iq3_s", 1, (uint64_t[]){256}, 21, block, 109);
    refused(gguf_file(&g), "past the end");
}

static void m26_row_length(void **state)
{
    (void)state;
    refused(one_info("t", 1, (uint64_t[]){33}, 8, 0), "row length");
    refused(one_info("t", 2, (uint64_t[]){16, 2}, 2, 0), "row length");
    refused(one_info("t", 2, (uint64_t[]){128, 2}, 12, 0), "row length");
}

static void m27_offset_not_aligned(void **state)
{
    (void)state;
    refused(one_info("t", 1, (uint64_t[]){1}, 0, 4), "allowed multiples of 32");
    refused(one_info("t", 1, (uint64_t[]){1}, 0, UINT64_MAX), "allowed multiples of 32");
}

static void m28_past_the_end(void **state)
{
    (void)state;
    refused(one_info("t", 1, (uint64_t[]){9}, 0, 0), "incomplete download");
    refused(one_info("t", 1, (uint64_t[]){8}, 0, 32), "incomplete download");
    refused(one_info("t", 1, (uint64_t[]){1}, 0, 1ull << 40), "incomplete download");
    refused(one_info("t", 1, (uint64_t[]){1}, 0, 1ull << 63), "incomplete download");
    refused(one_info("t", 1, (uint64_t[]){8}, 0, UINT64_MAX - 31), "size overflows");
    refused(one_info("t", 1, (uint64_t[]){0}, 0, 64), "incomplete download");
}

static void m29_overlap(void **state)
{
    (void)state;
    gguf g = with_pairs();
    gguf_info(&g, "second", 1, (uint64_t[]){1}, 0, 32);
    gguf_info(&g, "empty", 1, (uint64_t[]){0}, 0, 32);
    gguf_info(&g, "first", 1, (uint64_t[]){9}, 0, 0);
    put_zeros(&g.data, 64);
    refused(gguf_file(&g), "tensors first and second overlap");
    g = with_pairs();
    gguf_info(&g, "one", 1, (uint64_t[]){8}, 0, 0);
    gguf_info(&g, "two", 1, (uint64_t[]){8}, 0, 0);
    put_zeros(&g.data, 64);
    refused(gguf_file(&g), "overlap");
}

static void m30_every_proper_prefix(void **state)
{
    (void)state;
    gguf g = with_tensor();
    bytes *b = gguf_array(&g, "tokenizer.ggml.tokens", GGUF_STRING, 2);
    gguf_string(b, "a", 1);
    gguf_string(b, "", 0);
    gguf_uint(&g, "flag", GGUF_BOOL, 1);
    gguf_tensor(&g, "b", 1, (uint64_t[]){3}, 0, eight, 12);
    bytes file = gguf_file(&g);
    tg_container_free(accepted_at(scratch_write("x.gguf", file.data, file.n)));
    for (size_t n = 0; n < file.n; n++)
        refused_at(scratch_write("x.gguf", file.data, n), TG_E_MODEL, "x.gguf: ");
    bytes_free(&file);
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* At the limits, where keys and names are alike for long; opening takes time linear in the file. */
static bytes full(uint64_t n_pairs, uint64_t n_tensors)
{
    gguf g = gguf_new();
    char name[64];
    for (uint64_t i = 0; i < n_pairs; i++) {
        snprintf(name, sizeof name, "a.key.whose.start.is.the.same.%d", (int)(i * 40503 % n_pairs));
        gguf_uint(&g, name, GGUF_U8, i & 0xff);
    }
    for (uint64_t i = 0; i < n_tensors; i++) {
        snprintf(name, sizeof name, "blk.a.name.whose.start.is.the.same.%d",
                 (int)(i * 40503 % n_tensors));
        gguf_info(&g, name, 1, (uint64_t[]){1}, 24, 32 * (n_tensors - 1 - i));
    }
    put_zeros(&g.data, 32 * n_tensors);
    return gguf_file(&g);
}

static void limits_of_the_counts(void **state)
{
    (void)state;
    refused(full(TG_MAX_PAIRS + 1, 1), "number of pairs");
    refused(full(1, TG_MAX_TENSORS + 1), "number of tensors");
    bytes b = full(TG_MAX_PAIRS, TG_MAX_TENSORS);
    char *path = scratch_write("x.gguf", b.data, b.n);
    double start = cpu_seconds();
    tg_container *c = NULL;
    assert_int_equal(tg_container_open(&c, path, false, NULL), TG_OK);
    double took = cpu_seconds() - start;
    print_message("%zu tensors, %.1f MiB: %.1f ms\n", tg_container_n_tensors(c),
                  (double)b.n / (1 << 20), took * 1e3);
    assert_true(took < 0.1 * (double)b.n / (1 << 20));
    assert_non_null(tg_container_tensor(c, "blk.a.name.whose.start.is.the.same.12345"));
    int64_t v;
    assert_int_equal(tg_meta_int(c, "a.key.whose.start.is.the.same.12345", 0, 255, &v, NULL),
                     TG_META_FOUND);
    tg_container_free(c);
    bytes_free(&b);
}

/* The file is mapped, and written to by others while it is in use: lengths that were checked are others then. */
static void overwritten(void **state)
{
    (void)state;
    gguf g = gguf_new();
    bytes *b = gguf_array(&g, "a.strings", GGUF_STRING, 2);
    gguf_string(b, "one", 3);
    gguf_string(b, "two", 3);
    bytes file = gguf_file(&g);
    const char *path = scratch_write("overwritten.gguf", file.data, file.n);
    tg_container *c;
    tg_meta_array a;
    assert_int_equal(tg_container_open(&c, path, false, NULL), TG_OK);
    assert_int_equal(tg_meta_get_array(c, "a.strings", TG_ELEM_STRING, &a, NULL), TG_META_FOUND);
    const int fd = open(path, O_WRONLY);
    const uint64_t lengths[] = {UINT64_MAX, UINT64_MAX - 8, 15, 1 << 20};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        assert_int_equal(pwrite(fd, &lengths[i], 8, (off_t)(file.n - a.raw_bytes)), 8);
        uint64_t at = 0, n;
        const uint8_t *s;
        for (int k = 0; k < 3; k++) {
            tg_meta_array_next_string(&a, &at, &s, &n);
            assert_non_null(s);
            assert_true(n <= a.raw_bytes && at <= a.raw_bytes);
        }
    }
    close(fd);
    tg_container_free(c);
    bytes_free(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(well_formed),
        cmocka_unit_test(m01_not_a_file_of_enough_bytes),
        cmocka_unit_test(m02_wrong_magic_is_named),
        cmocka_unit_test(m03_version_not_supported),
        cmocka_unit_test(m04_big_endian),
        cmocka_unit_test(m05_counts_that_cannot_be),
        cmocka_unit_test(m06_key_length),
        cmocka_unit_test(limit_of_the_key_is_accepted),
        cmocka_unit_test(m07_bytes_of_the_key),
        cmocka_unit_test(overwritten),
        cmocka_unit_test(m08_the_same_key_twice),
        cmocka_unit_test(m09_value_types),
        cmocka_unit_test(m10_string_length),
        cmocka_unit_test(m11_array_count),
        cmocka_unit_test(m12_booleans),
        cmocka_unit_test(m13_alignment_of_the_wrong_type),
        cmocka_unit_test(m14_alignment),
        cmocka_unit_test(m19_tensor_names),
        cmocka_unit_test(m20_the_same_name_twice),
        cmocka_unit_test(m21_number_of_dimensions),
        cmocka_unit_test(m22_dimension_at_2_63),
        cmocka_unit_test(m23_number_of_elements_overflows),
        cmocka_unit_test(m24_number_of_bytes_overflows),
        cmocka_unit_test(m25_types),
        cmocka_unit_test(m25_a_type_without_decoder_opens),
        cmocka_unit_test(m26_row_length),
        cmocka_unit_test(m27_offset_not_aligned),
        cmocka_unit_test(m28_past_the_end),
        cmocka_unit_test(m29_overlap),
        cmocka_unit_test(m30_every_proper_prefix),
        cmocka_unit_test(limits_of_the_counts),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
