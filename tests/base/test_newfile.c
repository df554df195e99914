/* Tests of newfile.c: the name stands for the old file or for the whole new one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>

#include "base/file.h"
#include "base/newfile.h"
#include "support/scratch.h"

static void holds(const char *name, const char *text)
{
    tg_file f;
    assert_int_equal(tg_file_open(&f, scratch_path(name), 1000, true, NULL), TG_OK);
    assert_int_equal(f.size, strlen(text));
    assert_memory_equal(f.data, text, f.size);
    tg_file_close(&f);
}

static int n_files(void)
{
    DIR *dir = opendir(scratch_folder);
    int n = 0;
    while (readdir(dir))
        n++;
    closedir(dir);
    return n - 2; /* itself and the one above */
}

static void complete_or_not_there(void **state)
{
    (void)state;
    tg_newfile f;
    assert_int_equal(tg_newfile_create(&f, scratch_path("new"), 8, 0666, NULL), TG_OK);
    assert_int_equal(tg_newfile_write(&f, "all ", 4, NULL), TG_OK);
    assert_false(tg_path_exists(scratch_path("new")));
    assert_int_equal(tg_newfile_write(&f, "of it", 5, NULL), TG_OK); /* more than room was made for */
    assert_int_equal(tg_newfile_commit(&f, NULL), TG_OK);
    tg_newfile_discard(&f);
    holds("new", "all of it");

    assert_int_equal(tg_newfile_create(&f, scratch_path("new"), 4, 0666, NULL), TG_OK);
    assert_int_equal(tg_newfile_write(&f, "half", 4, NULL), TG_OK);
    holds("new", "all of it");
    tg_newfile_discard(&f);
    holds("new", "all of it");
    assert_int_equal(n_files(), 1);

    assert_int_equal(symlink("new", scratch_path("link")), 0);
    assert_int_equal(tg_newfile_create(&f, scratch_path("link"), 0, 0666, NULL), TG_OK);
    assert_int_equal(tg_newfile_write(&f, "through", 7, NULL), TG_OK);
    assert_int_equal(tg_newfile_commit(&f, NULL), TG_OK);
    holds("new", "through");
    assert_int_equal(n_files(), 2);
    scratch_remove("new");
    scratch_remove("link");
}

static void refused(const char *path, const char *wanted)
{
    tg_newfile f;
    tg_error err = {0};
    assert_int_equal(tg_newfile_create(&f, path, 1, 0666, &err), TG_E_IO);
    assert_non_null(strstr(err.message, wanted));
    tg_newfile_discard(&f);
}

static void what_cannot_be(void **state)
{
    (void)state;
    refused(scratch_path("no/file"), "cannot be created: No such file or directory");
    refused(scratch_mkdir("folder"), "cannot be written: it is not a regular file");
    assert_int_equal(mkfifo(scratch_path("fifo"), 0600), 0);
    refused(scratch_path("fifo"), "it is not a regular file");
    refused("/dev/null", "it is not a regular file");
    scratch_remove("folder");
    scratch_remove("fifo");
}

static void no_room(void **state)
{
    (void)state;
    struct rlimit old, limit = {.rlim_cur = 1000, .rlim_max = RLIM_INFINITY};
    tg_newfile f;
    tg_error err = {0};
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    limit.rlim_max = old.rlim_max;
    setrlimit(RLIMIT_FSIZE, &limit);
    assert_int_equal(tg_newfile_create(&f, scratch_path("large"), 2000, 0666, &err), TG_E_RESOURCE);
    assert_non_null(strstr(err.message, "no room for 0.0 MiB: File too large"));
    assert_int_equal(tg_newfile_create(&f, scratch_path("large"), 0, 0666, &err), TG_OK);
    static char bytes[2000];
    assert_int_equal(tg_newfile_write(&f, bytes, sizeof bytes, &err), TG_E_RESOURCE);
    assert_non_null(strstr(err.message, "cannot be written: File too large"));
    tg_newfile_discard(&f);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(n_files(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(complete_or_not_there),
        cmocka_unit_test(what_cannot_be),
        cmocka_unit_test(no_room),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
