/* Tests of digest.c against FIPS 180-4's examples and what git prints. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>

#include "fetch/digest.h"
#include "support/scratch.h"

static const struct {
    const char *text;
    tg_digest_kind kind;
    const char *hex;
} rows[] = {
    {"", TG_DIGEST_SHA256, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", TG_DIGEST_SHA256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"", TG_DIGEST_GIT_BLOB, "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"}, /* git hash-object --stdin */
    {"hello\n", TG_DIGEST_GIT_BLOB, "ce013625030ba8dba906f756967f9e9ca394464a"},
};

static void known_values(void **state)
{
    (void)state;
    tg_digest d = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char hex[65];
        size_t n = strlen(rows[i].text);
        assert_int_equal(tg_digest_begin(&d, rows[i].kind, n, NULL), TG_OK); /* one state serves them all */
        for (size_t k = 0; k < n; k++)
            tg_digest_add(&d, rows[i].text + k, 1);
        tg_digest_end(&d, hex);
        assert_string_equal(hex, rows[i].hex);
        assert_int_equal(tg_digest_kind_of(hex), rows[i].kind);

        int fd = open(scratch_text("file", rows[i].text), O_RDONLY);
        assert_int_equal(tg_digest_file(fd, rows[i].kind, n, NULL, NULL, hex, NULL), TG_OK);
        close(fd);
        assert_string_equal(hex, rows[i].hex);
    }
    tg_digest_free(&d);
    tg_digest_free(&d);
}

static void in_slices(void **state)
{
    (void)state;
    static char bytes[200001];
    char whole[65], hex[65];
    uint64_t did, n = 0;
    tg_digest d = {0};
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * i >> 3);
    int fd = open(scratch_write("file", bytes, sizeof bytes), O_RDONLY);
    assert_int_equal(tg_digest_file(fd, TG_DIGEST_SHA256, sizeof bytes, NULL, NULL, whole, NULL), TG_OK);
    assert_int_equal(tg_digest_begin(&d, TG_DIGEST_SHA256, 0, NULL), TG_OK);
    do {
        assert_int_equal(tg_digest_add_file(&d, fd, n, 70000, &did, NULL), TG_OK);
        n += did;
    } while (did == 70000);
    assert_int_equal(n, sizeof bytes);
    tg_digest_end(&d, hex);
    tg_digest_free(&d);
    close(fd);
    assert_string_equal(hex, whole);
    tg_error err = {0};
    assert_int_equal(tg_digest_file(-1, TG_DIGEST_SHA256, 0, NULL, NULL, hex, &err), TG_E_IO);
    assert_string_equal(hex, "");
}

static void kinds(void **state)
{
    (void)state;
    assert_int_equal(tg_digest_kind_of(""), TG_DIGEST_NONE);
    assert_int_equal(tg_digest_kind_of("E69DE29BB2D1D6434B8B29AE775AD8C2E48C5391"), TG_DIGEST_GIT_BLOB);
    assert_int_equal(tg_digest_kind_of("e69de29bb2d1d6434b8b29ae775ad8c2e48c539"), TG_DIGEST_NONE);
    assert_int_equal(tg_digest_kind_of("e69de29bb2d1d6434b8b29ae775ad8c2e48c539g"), TG_DIGEST_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_values),
        cmocka_unit_test(in_slices),
        cmocka_unit_test(kinds),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
