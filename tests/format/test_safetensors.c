/* Tests of safetensors.c: rows M34 to M45 of the fault catalogue, and what must be accepted. The
 * file lies beside a config.json and is opened by its path. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/check_container.h"
#include "support/safetensors_writer.h"

#define FILE_NAME "weights.safetensors"

static int setup(void **state)
{
    if (scratch_setup(state) != 0)
        return -1;
    scratch_text("config.json", "{}");
    return 0;
}

static void refused(bytes b, const char *wanted)
{
    refused_as(FILE_NAME, b, wanted);
}

/* The header of one tensor F32 [2] with 8 bytes of data, of which one field is spelled thus. */
static bytes one(const char *dtype, const char *shape, const char *offsets)
{
    char text[2048];
    snprintf(text, sizeof text, "{\"t\":{%s,%s,%s}}", dtype ? dtype : "\"dtype\":\"F32\"",
             shape ? shape : "\"shape\":[2]", offsets ? offsets : "\"data_offsets\":[0,8]");
    return safetensors_file(text, 8);
}

static const char three[] = "{\"__metadata__\":{\"format\":\"pt\"},"
                            "\"b\":{\"dtype\":\"F16\",\"shape\":[2,3],\"data_offsets\":[4,16]},"
                            "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                            "\"c\":{\"shape\":[],\"data_offsets\":[16,18],\"dtype\":\"BF16\"}}";

static void well_formed(void **state)
{
    (void)state;
    tg_container *c = accepted_as(FILE_NAME, safetensors_file(three, 18));
    assert_int_equal(tg_container_get_kind(c), TG_CONTAINER_HF);
    assert_string_equal(tg_container_format(c), "safetensors");
    assert_non_null(tg_container_config(c));
    assert_int_equal(tg_container_n_tensors(c), 3);
    const tg_tensor *b = tg_container_tensor(c, "b");
    assert_ptr_equal(b, tg_container_tensor_at(c, 0));
    assert_int_equal(b->type->type, TG_F16);
    assert_string_equal(b->type_name, "F16");
    assert_int_equal(b->n_dim, 2);
    assert_int_equal(b->dim[0], 2);
    assert_int_equal(b->dim[1], 3);
    assert_int_equal(b->dim[2], 1);
    assert_int_equal(b->n_bytes, 12);
    assert_memory_equal(b->data, "\4\5\6\7", 4);
    assert_string_equal(b->file, scratch_path(FILE_NAME));
    tg_container_free(c);
}

static void m34_length_of_the_header(void **state)
{
    (void)state;
    for (size_t n = 0; n < 8; n++) {
        bytes b = safetensors_file("{}", 0);
        b.n = n;
        refused(b, "too short");
    }
    static const uint64_t lengths[] = {
        0, 3, 100000001, 1ull << 32, 1ull << 63, UINT64_MAX - 7, UINT64_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        bytes b = {0};
        put_u64(&b, lengths[i]);
        put_text(&b, "{}");
        refused(b, "length of the header");
    }
    static const struct {
        const char *text, *wanted;
    } foreign[] = {
        {"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "Git LFS pointer"},
        {"<!doctype html>\n<html></html>", "HTML page"},
        {"PK\x03\x04 and so on and on", "zip"},
        {"{\"error\": \"not found\"}", "JSON"},
        {"GGUF\3   and so on", "GGUF"},
    };
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        refused_at(scratch_text(FILE_NAME, foreign[i].text), TG_E_MODEL, foreign[i].wanted);
}

static void m34_header_at_the_limit(void **state)
{
    (void)state;
    const uint64_t limit = TG_MAX_SAFETENSORS_HEADER;
    bytes b = {0};
    put_u64(&b, limit);
    put_text(&b, "{}");
    put(&b, NULL, 0);
    char *spaces = malloc(limit);
    memset(spaces, ' ', limit);
    put(&b, spaces, limit - 2);
    tg_container *c = NULL;
    assert_int_equal(tg_container_open(&c, scratch_write(FILE_NAME, b.data, b.n), false, NULL),
                     TG_OK);
    tg_container_free(c);
    b.n = 0;
    put_u64(&b, limit + 1);
    put_text(&b, "{}");
    put(&b, spaces, limit - 1);
    refused_at(scratch_write(FILE_NAME, b.data, b.n), TG_E_MODEL, "length of the header");
    free(spaces);
    bytes_free(&b);
    scratch_remove(FILE_NAME);
}

static void m35_not_utf8(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
        "\xc3",     "\xe2\x82",     "\x80",         "\xff"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[128];
        snprintf(text, sizeof text,
                 "{\"%s\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", bad[i]);
        refused(safetensors_file(text, 8), "not valid JSON");
    }
}

static void m36_malformed_json(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "{",
        "{\"t\":",
        "{\"t\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},}",
        "{\"t\":{\"dtype\":\"F32\",\"shape\":[2,],\"data_offsets\":[0,8]}}",
        "{/* */}",
        "{} // ",
        "{\"a\nb\":{}}",
        "{\"\\x\":{}}",
        "{\"\\ud800\":{}}",
        "{\"\\ud800\\u0041\":{}}",
        "{\"\\u12\":{}}",
        "{\"t\":NaN}",
        "{\"t\":Infinity}",
        "{\"t\":{\"dtype\":\"F32\",\"shape\":[02],\"data_offsets\":[0,8]}}",
        "{} {}",
        "{}x",
        "{'t':1}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refused(safetensors_file(bad[i], 8), "byte offset");
    bytes b = safetensors_file("{} ", 0);
    b.data[10] = 0; /* a NUL after the object */
    refused(b, "byte offset");
    refused(safetensors_file("[]", 0), "header (found array, allowed an object)");
    refused(safetensors_file("1", 0), "header (found integer, allowed an object)");
}

static void m37_nesting(void **state)
{
    (void)state;
    char *text = malloc(100001);
    memset(text, '[', 100000);
    text[100000] = 0;
    refused(safetensors_file(text, 0), "nested too deeply");
    free(text);
}

static void m38_duplicates(void **state)
{
    (void)state;
#define T "{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}"
    refused(safetensors_file("{\"ab\":" T ",\"ab\":" T "}", 4), "duplicate");
    refused(safetensors_file("{\"ab\":" T ",\"\\u0061b\":" T "}", 4), "duplicate");
    refused(safetensors_file("{\"\xc3\xa9\":" T ",\"\\u00E9\":" T "}", 4), "duplicate");
#undef T
    refused(one("\"dtype\":\"F32\",\"dtype\":\"F32\"", NULL, NULL), "duplicate");
    refused(one(NULL, NULL, "\"data_offsets\":[0,8],\"data_off\\u0073ets\":[0,8]"), "duplicate");
}

static void m39_fields(void **state)
{
    (void)state;
    refused(one("\"type\":\"F32\"", NULL, NULL), "tensor t: dtype (found nothing");
    refused(one("\"dtype\":1", NULL, NULL), "tensor t: dtype (found integer");
    refused(one("\"dtype\":\"F31\"", NULL, NULL), "tensor t: unknown dtype (found F31");
    refused(one("\"dtype\":\"f32\"", NULL, NULL), "unknown dtype");
    refused(one("\"dtype\":\"\"", NULL, NULL), "unknown dtype");
    refused(one(NULL, "\"shap\":[2]", NULL), "tensor t: shape (found nothing");
    refused(one(NULL, "\"shape\":2", NULL), "tensor t: shape (found integer");
    refused(one(NULL, "\"shape\":{}", NULL), "tensor t: shape (found object");
    refused(one(NULL, "\"shape\":[1,1,1,1,2]", NULL), "tensor t: shape (found 5 numbers");
    refused(one(NULL, NULL, "\"x\":0"), "tensor t: data_offsets (found nothing");
    refused(one(NULL, NULL, "\"data_offsets\":[0]"), "tensor t: data_offsets (found 1 numbers");
    refused(one(NULL, NULL, "\"data_offsets\":[0,8,8]"), "tensor t: data_offsets (found 3 numbers");
    refused(one(NULL, NULL, "\"data_offsets\":\"0,8\""), "tensor t: data_offsets (found string");
    refused(safetensors_file("{\"t\":[]}", 0), "tensor t: entry (found array");
}

static void m40_numbers(void **state)
{
    (void)state;
    static const char *const bad[] = {"-1",
                                      "2.0",
                                      "2e0",
                                      "1e400",
                                      "18446744073709551616",
                                      "\"2\"",
                                      "null",
                                      "true",
                                      "9223372036854775808"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char shape[64], offsets[64];
        snprintf(shape, sizeof shape, "\"shape\":[%s]", bad[i]);
        snprintf(offsets, sizeof offsets, "\"data_offsets\":[0,%s]", bad[i]);
        refused(one(NULL, shape, NULL), FILE_NAME ": ");
        refused(one(NULL, NULL, offsets), FILE_NAME ": ");
    }
    refused(one(NULL, "\"shape\":[-1]", NULL), "found a negative number");
}

static void m41_ranges(void **state)
{
    (void)state;
    refused(one(NULL, NULL, "\"data_offsets\":[8,0]"), "begin 8 after end 0");
    refused(one(NULL, "\"shape\":[3]", "\"data_offsets\":[0,12]"), "past the end of the file");
    refused(one(NULL, NULL, "\"data_offsets\":[9223372036854775799,9223372036854775807]"),
            "past the end of the file");
    bytes b = safetensors_file(three, 17);
    refused(b, "incomplete download");
}

static void m42_size_of_the_shape(void **state)
{
    (void)state;
    refused(one(NULL, "\"shape\":[3]", NULL), "shape and dtype need 12");
    refused(one("\"dtype\":\"F16\"", NULL, NULL), "shape and dtype need 4");
    refused(one(NULL, "\"shape\":[0]", NULL), "shape and dtype need 0");
    refused(one(NULL, "\"shape\":[4294967296,4294967296]", "\"data_offsets\":[0,0]"),
            "size overflows");
    refused(one(NULL, "\"shape\":[4611686018427387904]", "\"data_offsets\":[0,0]"),
            "size overflows");
    refused(one(NULL, "\"shape\":[9223372036854775807,9223372036854775807]", NULL),
            "size overflows");
}

static void m43_holes_and_overlaps(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b, *wanted;
    } rows[] = {
        {"[0,4]", "[8,12]", "a hole in the data before tensor b (found offset 8, allowed 4)"},
        {"[4,8]", "[8,12]", "a hole in the data before tensor a (found offset 4, allowed 0)"},
        {"[0,4]", "[2,6]", "tensors a and b overlap"},
        {"[0,4]", "[0,4]", "overlap"},
        {"[4,8]", "[0,4]", "bytes after the last tensor (found 12 bytes of data, allowed 8)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "{\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":%s},"
                 "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":%s}}",
                 rows[i].b, rows[i].a);
        refused(safetensors_file(text, 12), rows[i].wanted);
    }
    refused(safetensors_file("{}", 1), "bytes after the last tensor");
}

static void m44_metadata(void **state)
{
    (void)state;
    refused(safetensors_file("{\"__metadata__\":[]}", 0), "__metadata__ (found array");
    refused(safetensors_file("{\"__metadata__\":null}", 0), "__metadata__ (found null");
    refused(safetensors_file("{\"__metadata__\":{\"a\":1}}", 0), "__metadata__: a (found integer");
    refused(safetensors_file("{\"__metadata__\":{\"a\":{}}}", 0), "__metadata__: a (found object");
}

static void m45_types_that_hold_no_weights_open(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int shape, n_bytes;
    } rows[] = {{"BOOL", 3, 3},    {"I64", 3, 24},    {"F64", 1, 8}, {"U8", 5, 5},
                {"I32", 2, 8},     {"F8_E4M3", 3, 3}, {"C64", 1, 8}, {"F4", 4, 2},
                {"F6_E2M3", 4, 3}, {"U16", 1, 2},     {"I16", 1, 2}, {"F8_E5M2", 1, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[128];
        snprintf(text, sizeof text,
                 "{\"t\":{\"dtype\":\"%s\",\"shape\":[%d],\"data_offsets\":[0,%d]}}", rows[i].name,
                 rows[i].shape, rows[i].n_bytes);
        tg_container *c = accepted_as(FILE_NAME, safetensors_file(text, (size_t)rows[i].n_bytes));
        const tg_tensor *t = tg_container_tensor(c, "t");
        assert_null(t->type);
        assert_string_equal(t->type_name, rows[i].name);
        assert_int_equal(t->n_bytes, rows[i].n_bytes);
        tg_container_free(c);
    }
}

static void names_of_tensors(void **state)
{
    (void)state;
    char name[1100], text[1200];
    memset(name, 'n', sizeof name);
    static const size_t lengths[] = {0, 1, 1024, 1025};
    for (size_t i = 0; i < 4; i++) {
        snprintf(text, sizeof text,
                 "{\"%.*s\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
                 (int)lengths[i], name);
        if (i == 1 || i == 2)
            tg_container_free(accepted_as(FILE_NAME, safetensors_file(text, 4)));
        else
            refused(safetensors_file(text, 4), "length of a tensor's name");
    }
    refused(safetensors_file(
                "{\"a\\u0000b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4),
            "not valid JSON");
    refused(safetensors_file(
                "{\"a\\u001bb\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4),
            "control byte in the tensor name a\\x1bb");
}

static void m30_every_proper_prefix(void **state)
{
    (void)state;
    bytes file = safetensors_file(three, 18);
    tg_container_free(accepted_at(scratch_write(FILE_NAME, file.data, file.n)));
    for (size_t n = 0; n < file.n; n++)
        refused_at(scratch_write(FILE_NAME, file.data, n), TG_E_MODEL, FILE_NAME ": ");
    bytes_free(&file);
}

static void a08_a10_empty_rank_0_unaligned(void **state)
{
    (void)state;
    tg_container *c = accepted_as(
        FILE_NAME,
        safetensors_file(
            "{\"z\":{\"dtype\":\"F32\",\"shape\":[0,4],\"data_offsets\":[1,1]},"
            "\"s\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[1,5]},"
            "\"e\":{\"dtype\":\"F16\",\"shape\":[0],\"data_offsets\":[5,5]},"
            "\"u\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
            "\"y\":{\"dtype\":\"F16\",\"shape\":[2,0,9223372036854775807],\"data_offsets\":[0,0]}}",
            5));
    const tg_tensor *s = tg_container_tensor(c, "s");
    assert_int_equal(s->n_dim, 0);
    assert_int_equal(s->dim[0], 1);
    assert_int_equal(s->n_bytes, 4);
    assert_memory_equal(s->data, "\1\2\3\4", 4);
    assert_int_equal(tg_container_tensor(c, "z")->n_bytes, 0);
    tg_container_free(c);
}

static void a09_a11_spaces_metadata_unknown_fields(void **state)
{
    (void)state;
    static const char *const good[] = {
        "  {} ",
        "{}                                          ",
        "\n\t{\"__metadata__\":{}}\r\n",
        "{\"__metadata__\":{\"\":\"\",\"format\":\"pt\",\"\xc3\xa9\":\"\xe5\xad\x97\"}}",
        "{\"e\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0],\"x\":{\"a\":[1.5,null]}}}",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        tg_container_free(accepted_as(FILE_NAME, safetensors_file(good[i], 0)));
}

/* At the limit of tensors, and one past it. */
static void number_of_tensors(void **state)
{
    (void)state;
    for (int more = 0; more < 2; more++) {
        bytes text = {0};
        for (int i = 0; i < TG_MAX_TENSORS + more; i++) {
            char entry[96];
            snprintf(entry, sizeof entry,
                     "%c\"t%d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%d,%d]}",
                     i ? ',' : '{', i, i, i + 1);
            put_text(&text, entry);
        }
        put(&text, "}", 2);
        bytes b = safetensors_file((char *)text.data, (size_t)(TG_MAX_TENSORS + more));
        if (more)
            refused(b, "too many tensors");
        else
            tg_container_free(accepted_as(FILE_NAME, b));
        bytes_free(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(well_formed),
        cmocka_unit_test(m34_length_of_the_header),
        cmocka_unit_test(m34_header_at_the_limit),
        cmocka_unit_test(m35_not_utf8),
        cmocka_unit_test(m36_malformed_json),
        cmocka_unit_test(m37_nesting),
        cmocka_unit_test(m38_duplicates),
        cmocka_unit_test(m39_fields),
        cmocka_unit_test(m40_numbers),
        cmocka_unit_test(m41_ranges),
        cmocka_unit_test(m42_size_of_the_shape),
        cmocka_unit_test(m43_holes_and_overlaps),
        cmocka_unit_test(m44_metadata),
        cmocka_unit_test(m45_types_that_hold_no_weights_open),
        cmocka_unit_test(names_of_tensors),
        cmocka_unit_test(m30_every_proper_prefix),
        cmocka_unit_test(a08_a10_empty_rank_0_unaligned),
        cmocka_unit_test(a09_a11_spaces_metadata_unknown_fields),
        cmocka_unit_test(number_of_tensors),
    };
    return cmocka_run_group_tests(tests, setup, scratch_teardown);
}
