/* Tests of part.c: what a later run may go on with, and what it must not touch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>

#include "base/memory.h"
#include "fetch/part.h"
#include "support/failing_malloc.h"
#include "support/scratch.h"

static int folder;
static char url[] = "https://example.com/model.gguf";

static tg_record of(const char *etag, const char *digest, uint64_t size)
{
    tg_record record = {.url = url, .size = size};
    snprintf(record.etag, sizeof record.etag, "%s", etag);
    snprintf(record.digest, sizeof record.digest, "%s", digest);
    return record;
}

/* Files of the folder whose name holds `text`. */
static int n_files(const char *text)
{
    DIR *dir = opendir(scratch_folder);
    int n = 0;
    for (struct dirent *e; (e = readdir(dir));)
        n += e->d_name[0] != 0 && strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 && strstr(e->d_name, text);
    closedir(dir);
    return n;
}

static void clear(void)
{
    scratch_remove("");
    assert_int_equal(mkdir(scratch_folder, 0700), 0);
    close(folder);
    folder = open(scratch_folder, O_RDONLY | O_DIRECTORY);
}

/* Leaves a part of five bytes behind. */
static void leave(const tg_record *record)
{
    tg_part part;
    assert_int_equal(tg_part_open(&part, folder, "m", record, NULL), TG_OK);
    assert_int_equal(part.stored, 0);
    assert_int_equal(tg_part_note(&part, NULL), TG_OK);
    assert_int_equal(tg_part_write(&part, "12345", 5, NULL), TG_OK);
    tg_part_keep(&part);
    assert_int_equal(n_files(".part"), 2);
}

static void goes_on(void **state)
{
    (void)state;
    struct stat st;
    tg_record known = of("v1", "", 8), unknown = of("", "", TG_SIZE_UNKNOWN);
    tg_part part;
    clear();
    leave(&known);
    assert_int_equal(tg_part_open(&part, folder, "m", &unknown, NULL), TG_OK);
    assert_int_equal(part.stored, 5);
    assert_int_equal(part.record.size, 8);
    assert_string_equal(part.record.etag, "v1");
    assert_int_equal(fstat(part.file.fd, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(tg_part_write(&part, "678", 3, NULL), TG_OK);
    assert_false(faccessat(folder, "m", F_OK, 0) == 0);
    assert_int_equal(tg_part_finish(&part, false, NULL), TG_OK);
    tg_part_keep(&part);
    assert_int_equal(n_files(""), 1);
    char bytes[9] = "";
    int fd = openat(folder, "m", O_RDONLY);
    assert_int_equal(read(fd, bytes, 9), 8);
    close(fd);
    assert_string_equal(bytes, "12345678");
}

static void other_versions(void **state)
{
    (void)state;
    tg_record was = of("v1", "aa", 8);
    tg_record others[] = {of("v2", "aa", 8), of("v1", "bb", 8), of("v1", "aa", 9), of("v1", "aa", 8)};
    others[3].url = (char[]){"https://example.com/other"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        tg_part part;
        clear();
        leave(&was);
        assert_int_equal(tg_part_open(&part, folder, "m", &others[i], NULL), TG_OK);
        assert_int_equal(part.stored, 0);
        assert_int_equal(n_files(".part"), 1); /* the old one is gone, the new one has no record yet */
        tg_part_keep(&part);
        assert_int_equal(n_files(""), 0); /* nothing to be kept */
    }
}

static void in_use(void **state)
{
    (void)state;
    tg_record record = of("v1", "aa", 8);
    tg_part first, second, third;
    clear();
    assert_int_equal(tg_part_open(&first, folder, "m", &record, NULL), TG_OK);
    assert_int_equal(tg_part_write(&first, "123", 3, NULL), TG_OK);
    assert_int_equal(tg_part_note(&first, NULL), TG_OK);
    assert_int_equal(tg_part_open(&second, folder, "m", &record, NULL), TG_OK);
    assert_int_equal(second.stored, 0); /* the first one is locked */
    assert_int_equal(tg_part_write(&second, "12345678", 8, NULL), TG_OK);
    assert_int_equal(tg_part_note(&second, NULL), TG_OK);
    tg_part_keep(&first);
    tg_part_keep(&second);
    assert_int_equal(n_files(".part"), 4);
    assert_int_equal(tg_part_open(&third, folder, "m", &record, NULL), TG_OK);
    assert_int_equal(third.stored, 8); /* the larger one; the other is gone */
    assert_int_equal(n_files(".part"), 2);
    assert_int_equal(tg_part_finish(&third, true, NULL), TG_OK);
    tg_part_keep(&third);

    assert_int_equal(tg_part_open(&third, folder, "m", &record, NULL), TG_OK);
    assert_int_equal(tg_part_write(&third, "x", 1, NULL), TG_OK);
    assert_int_not_equal(tg_part_finish(&third, false, NULL), TG_OK); /* there is one */
    assert_int_equal(n_files(".part"), 1);
    tg_part_discard(&third);
    assert_int_equal(n_files(""), 1);
}

/* What another tool has brought since needs no part; one that is written stays, and so do those of other files. */
static void no_more_needed(void **state)
{
    (void)state;
    clear();
    const tg_record record = of("e", "", 10);
    leave(&record);
    tg_part_clear(folder, "other");
    assert_int_equal(n_files(".part"), 2);
    tg_part part;
    assert_int_equal(tg_part_open(&part, folder, "m", &record, NULL), TG_OK);
    tg_part_clear(folder, "m");
    assert_int_equal(n_files(".part"), 2);
    tg_part_keep(&part);
    tg_part_clear(folder, "m");
    assert_int_equal(n_files(".part"), 0);
}

static void foreign_files(void **state)
{
    (void)state;
    tg_record record = of("", "", TG_SIZE_UNKNOWN);
    tg_part part;
    clear();
    /* Records of ours without a part go, whatever else stays. */
    scratch_text(".gone.01234567.part.json", "{}");
    scratch_text(".m.0123456.part", "seven digits");
    scratch_text(".m.01234567.part.old", "another ending");
    scratch_text(".mm.01234567.part", "another file's");
    scratch_text(".other.part.json", "no digits");
    scratch_text("victim", "12345");
    assert_int_equal(symlink("victim", scratch_path(".m.aaaaaaaa.part")), 0);
    assert_int_equal(link(scratch_path("victim"), scratch_path(".m.bbbbbbbb.part")), 0);
    assert_int_equal(mkfifo(scratch_path(".m.cccccccc.part"), 0600), 0);
    assert_int_equal(mkdir(scratch_path(".m.dddddddd.part"), 0700), 0);
    assert_int_equal(n_files(""), 10);
    tg_part_sweep(folder);
    assert_int_equal(tg_part_open(&part, folder, "m", &record, NULL), TG_OK);
    assert_int_equal(part.stored, 0);
    tg_part_discard(&part);
    assert_int_equal(n_files(""), 9);
    assert_int_equal(n_files(".gone"), 0);

    static const char *const bad[] = {"link", "folder", "fifo"};
    assert_int_equal(symlink("victim", scratch_path("link")), 0);
    scratch_mkdir("folder");
    assert_int_equal(mkfifo(scratch_path("fifo"), 0600), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tg_error err = {0};
        assert_int_equal(tg_part_open(&part, folder, bad[i], &record, &err), TG_E_IO);
        assert_non_null(strstr(err.message, "is there already, and "));
        tg_part_discard(&part);
    }
}

#define TOO_LONG                                                                                                       \
    "{\"url\": \"u\", \"etag\": \"\", \"body_etag\": \"\", \"size\": 1, \"stored\": 5, \"digest\": "                         \
    "\"0123456789012345678901234567890123456789012345678901234567890123x\"}"

/* What a record may hold, and what makes its part worthless. */
static void hostile_records(void **state)
{
    (void)state;
    static const char good[] = "{\"url\": \"u\", \"etag\": \"e\", \"body_etag\": \"\", \"digest\": \"\", \"size\": null, "
                               "\"stored\": 5}";
    static const char *const bad[] = {
        "", "{", "[]", "null", "{}", "\"url\"",
        "{\"url\": 1, \"etag\": \"\", \"body_etag\": \"\", \"digest\": \"\", \"size\": 1, \"stored\": 5}",
        "{\"url\": \"u\", \"etag\": null, \"body_etag\": \"\", \"digest\": \"\", \"size\": 1, \"stored\": 5}",
        "{\"url\": \"u\", \"etag\": \"\", \"body_etag\": \"\", \"digest\": \"\", \"size\": -1, \"stored\": 5}",
        "{\"url\": \"u\", \"etag\": \"\", \"body_etag\": \"\", \"digest\": \"\", \"size\": 1.5, \"stored\": 5}",
        "{\"url\": \"u\", \"etag\": \"\", \"body_etag\": \"\", \"digest\": \"\", \"size\": 1, \"stored\": \"5\"}",
        "{\"url\": \"u\", \"etag\": \"\", \"body_etag\": \"\", \"digest\": \"\", \"size\": 1, \"size\": 2, \"stored\": 5}",
        "{\"url\": \"u\", \"etag\": \"\", \"body_etag\": \"\", \"digest\": \"\", \"size\": 99999999999999999999, \"stored\": 5}",
        TOO_LONG,
    };
    tg_record record;
    assert_true(tg_record_parse(good, strlen(good), &record));
    assert_string_equal(record.url, "u");
    assert_int_equal(record.size, TG_SIZE_UNKNOWN);
    assert_int_equal(record.stored, 5);
    free(record.url);
    for (size_t n = 0; n < strlen(good); n++) /* cut anywhere */
        assert_false(tg_record_parse(good, n, &record));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (tg_record_parse(bad[i], strlen(bad[i]), &record))
            fail_msg("%s", bad[i]);

    /* The record of a part that has become shorter since, or is longer than the file can be. */
    tg_record wanted = of("v1", "", 8);
    for (int i = 0; i < 4; i++) {
        static const off_t lengths[] = {4, 9, 5, 5};
        tg_part part;
        clear();
        leave(&wanted);
        DIR *dir = opendir(scratch_folder);
        for (struct dirent *e; (e = readdir(dir));) {
            if (strstr(e->d_name, ".part.json")) {
                if (i == 3)
                    assert_int_equal(truncate(scratch_path(e->d_name), 20), 0);
            } else if (strstr(e->d_name, ".part")) {
                assert_int_equal(truncate(scratch_path(e->d_name), lengths[i]), 0);
            }
        }
        closedir(dir);
        assert_int_equal(tg_part_open(&part, folder, "m", &wanted, NULL), TG_OK);
        assert_int_equal(part.stored, i == 2 ? 5 : 0);
        tg_part_discard(&part);
        assert_int_equal(n_files(""), 0);
    }
}

/* The record in place of a longer one is padded, and one call of the system away from it. */
static void records_anew(void **state)
{
    (void)state;
    tg_record wanted = of("a-rather-long-etag", "", 8);
    tg_part part;
    clear();
    assert_int_equal(tg_part_open(&part, folder, "m", &wanted, NULL), TG_OK);
    assert_int_equal(tg_part_note(&part, NULL), TG_OK);
    assert_int_equal(tg_part_write(&part, "12345", 5, NULL), TG_OK);
    part.record.etag[1] = '\0';
    assert_int_equal(tg_part_note(&part, NULL), TG_OK);
    assert_int_equal(tg_part_empty(&part, NULL), TG_OK);
    assert_int_equal(part.stored, 0);
    assert_int_equal(tg_part_write(&part, "xyz", 3, NULL), TG_OK);
    tg_part_keep(&part);
    wanted.etag[1] = '\0';
    assert_int_equal(tg_part_open(&part, folder, "m", &wanted, NULL), TG_OK);
    assert_int_equal(part.stored, 3);
    tg_part_discard(&part);
    assert_int_equal(n_files(""), 0);
}

/* Each allocation fails once: the record is written whole, or that is told. */
static void no_memory(void **state)
{
    (void)state;
    tg_record wanted = of("v1", "", 8), found;
    if (!MALLOC_CAN_FAIL)
        skip();
    for (long n = 1, failed = 1; failed; n++) {
        tg_part part;
        tg_error err = {0};
        char name[512], bytes[1024];
        clear();
        assert_int_equal(tg_part_open(&part, folder, "m", &wanted, NULL), TG_OK);
        malloc_fail_at(n);
        const tg_status status = tg_part_note(&part, &err);
        failed = malloc_failed;
        malloc_fail_at(0);
        snprintf(name, sizeof name, "%s.json", part.file.temporary);
        const int fd = openat(folder, name, O_RDONLY);
        const ssize_t n_bytes = fd < 0 ? 0 : read(fd, bytes, sizeof bytes);
        if (fd >= 0)
            close(fd);
        if (status == TG_OK) {
            assert_true(tg_record_parse(bytes, (size_t)n_bytes, &found));
            assert_string_equal(found.url, url);
            assert_string_equal(found.etag, "v1");
            assert_int_equal(found.size, 8);
            free(found.url);
        } else {
            assert_int_equal(status, TG_E_RESOURCE);
            assert_non_null(strstr(err.message, "out of memory"));
            assert_int_equal(n_bytes, 0);
        }
        tg_part_discard(&part);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goes_on),       cmocka_unit_test(other_versions),  cmocka_unit_test(in_use),
        cmocka_unit_test(foreign_files), cmocka_unit_test(hostile_records), cmocka_unit_test(records_anew),
        cmocka_unit_test(no_more_needed), cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
