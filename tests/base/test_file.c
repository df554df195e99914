/* Tests of file.c: what is opened, what is refused, and that nothing blocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>

#include "base/file.h"
#include "base/open.h"
#include "support/scratch.h"

static void contents(void **state)
{
    (void)state;
    char *path = scratch_write("f", "some\0bytes", 10);
    for (int read = 0; read < 2; read++) {
        tg_file f;
        tg_error err = {0};
        assert_int_equal(tg_file_open(&f, path, 10, read, &err), TG_OK);
        assert_int_equal(f.size, 10);
        assert_int_equal(f.mapped, !read);
        assert_memory_equal(f.data, "some\0bytes", 10);
        tg_file_close(&f);
        assert_null(f.data);
        tg_file_close(&f);
        assert_int_equal(tg_file_open(&f, path, 9, read, &err), TG_E_MODEL);
        assert_null(f.data);
        assert_non_null(strstr(err.message, "file too large (found 10 bytes, allowed 9)"));
    }
}

static void empty(void **state)
{
    (void)state;
    for (int read = 0; read < 2; read++) {
        tg_file f;
        assert_int_equal(tg_file_open(&f, scratch_text("e", ""), 10, read, NULL), TG_OK);
        assert_null(f.data);
        assert_int_equal(f.size, 0);
        tg_file_close(&f);
    }
}

static void refused(const char *path, tg_status status, const char *wanted)
{
    tg_file f;
    tg_error err = {0};
    assert_int_equal(tg_file_open(&f, path, 1000, false, &err), status);
    assert_null(f.data);
    assert_non_null(strstr(err.message, wanted));
}

static void m01_only_regular_files(void **state)
{
    (void)state;
    refused(scratch_path("absent"), TG_E_IO, "absent: cannot be opened: No such file or directory");
    refused(scratch_mkdir("d"), TG_E_MODEL, "not a regular file (found a directory)");
    assert_int_equal(mkfifo(scratch_path("fifo"), 0600), 0);
    refused(scratch_path("fifo"), TG_E_MODEL, "a FIFO");
    refused("/dev/zero", TG_E_MODEL, "a device");
    assert_int_equal(symlink("loop", scratch_path("loop")), 0);
    refused(scratch_path("loop"), TG_E_IO, "cannot be opened");
    if (geteuid() != 0) {
        char *path = scratch_text("secret", "x");
        assert_int_equal(chmod(path, 0), 0);
        refused(path, TG_E_IO, "cannot be opened: Permission denied");
    }
}

static void no_descriptor_left(void **state)
{
    (void)state;
    char *path = scratch_text("f", "x");
    struct rlimit old, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = old;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    tg_file f;
    tg_status status = tg_file_open(&f, path, 10, false, NULL);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(status, TG_E_RESOURCE);
}

/* Short reads, and those that a signal interrupts. */
static int interrupted_pipe[2];

static void write_to_pipe(int signal)
{
    (void)signal;
    if (write(interrupted_pipe[1], "some", 4) != 4)
        abort();
}

static void reads(void **state)
{
    (void)state;
    char data[4];
    tg_error err;
    assert_int_equal(pipe(interrupted_pipe), 0);
    const struct sigaction on_alarm = {.sa_handler = write_to_pipe}; /* no SA_RESTART */
    const struct itimerval soon = {{0, 0}, {0, 20000}};
    sigaction(SIGALRM, &on_alarm, NULL);
    setitimer(ITIMER_REAL, &soon, NULL);
    assert_int_equal(tg_file_read(interrupted_pipe[0], data, 4, "p", &err), TG_OK);
    assert_memory_equal(data, "some", 4);
    signal(SIGALRM, SIG_DFL);
    assert_int_equal(write(interrupted_pipe[1], "xyz", 3), 3);
    close(interrupted_pipe[1]);
    assert_int_equal(tg_file_read(interrupted_pipe[0], data, 4, "p", &err), TG_E_IO);
    assert_non_null(strstr(err.message, "p: became shorter while it was read (found 3 bytes of 4)"));
    close(interrupted_pipe[0]);
    assert_int_equal(tg_file_read(interrupted_pipe[0], data, 4, "p", &err), TG_E_IO);
    assert_non_null(strstr(err.message, "p: cannot be read"));
    /* This system says 4096 bytes of such a file, has fewer, and maps none. */
    static const char told_longer[] = "/sys/kernel/mm/transparent_hugepage/enabled";
    tg_file f;
    if (tg_path_exists(told_longer)) {
        assert_int_equal(tg_file_open(&f, told_longer, 1 << 20, false, &err), TG_E_IO);
        assert_non_null(strstr(err.message, "became shorter"));
        assert_null(f.data);
    }
}

static void set_time(const char *path, time_t s, long ns)
{
    assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[]){{s, ns}, {s, ns}}, 0), 0);
}

static void files_in_use(void **state)
{
    (void)state;
    char *path = scratch_text("used", "some bytes");
    tg_file f;
    tg_error err;
    set_time(path, 1000, 1000);
    assert_int_equal(tg_file_open(&f, path, 10, false, &err), TG_OK);
    assert_int_equal(tg_file_check_unchanged(&f, &err), TG_OK);
    set_time(path, 1000, 2000);
    assert_int_equal(tg_file_check_unchanged(&f, &err), TG_E_IO);
    set_time(path, 1001, 1000);
    assert_int_equal(tg_file_check_unchanged(&f, &err), TG_E_IO);
    assert_non_null(strstr(err.message, "was overwritten while in use"));
    assert_int_equal(truncate(path, 11), 0);
    set_time(path, 1000, 1000);
    assert_int_equal(tg_file_check_unchanged(&f, &err), TG_E_IO);
    unlink(path); /* what is mapped stays */
    assert_int_equal(tg_file_check_unchanged(&f, &err), TG_OK);
    tg_file_release(&f, f.data - 1, 1); /* not of this file */
    tg_file_release(&f, f.data + f.size, 1);
    tg_file_release(&f, f.data + 1, 1);
    assert_memory_equal(f.data, "some bytes", 10);
    tg_file_close(&f);
}

/* Whatever is mapped is known by its address as long as it is; beyond the places for names, nothing breaks. */
static void names_of_mappings(void **state)
{
    (void)state;
    enum { MANY = 1100 };
    static tg_file files[MANY];
    char *path = scratch_text("mapped", "some bytes");
    tg_file read, one;
    assert_int_equal(tg_file_open(&read, path, 10, true, NULL), TG_OK);
    assert_null(tg_mapped_file(read.data));
    assert_int_equal(tg_file_open(&one, path, 10, false, NULL), TG_OK);
    assert_ptr_equal(tg_mapped_file(one.data), path);
    assert_ptr_equal(tg_mapped_file(one.data + 9), path);
    assert_null(tg_mapped_file(one.data + 10));
    assert_null(tg_mapped_file(one.data - 1));
    assert_null(tg_mapped_file(NULL));
    for (int round = 0; round < 2; round++) {
        size_t n_named = 0;
        for (int i = 0; i < MANY; i++)
            assert_int_equal(tg_file_open(&files[i], path, 10, false, NULL), TG_OK);
        for (int i = 0; i < MANY; i++)
            n_named += tg_mapped_file(files[i].data) == path;
        assert_int_equal(n_named, 1023);
        assert_ptr_equal(tg_mapped_file(one.data), path);
        for (int i = 0; i < MANY; i++)
            tg_file_close(&files[i]);
    }
    const uint8_t *at = one.data;
    tg_file_close(&one);
    assert_null(tg_mapped_file(at));
    tg_file_close(&read);
}

static void paths(void **state)
{
    (void)state;
    static const char *const rows[][3] = {
        {"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"/", "b", "/b"}, {"", "b", "/b"}, {".", "b c", "./b c"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *path = tg_path_join(rows[i][0], rows[i][1], NULL);
        assert_string_equal(path, rows[i][2]);
        tg_free(path);
    }
    assert_true(tg_path_is_folder(scratch_folder));
    assert_true(tg_path_exists(scratch_folder));
    char *path = scratch_text("file", "x");
    assert_false(tg_path_is_folder(path));
    assert_true(tg_path_exists(path));
    assert_false(tg_path_exists(scratch_path("absent")));
    assert_int_equal(symlink("absent", scratch_path("dangling")), 0);
    assert_false(tg_path_exists(scratch_path("dangling")));
    assert_true(tg_path_is_taken(scratch_path("dangling")));
    assert_false(tg_path_is_taken(scratch_path("absent")));
    assert_false(tg_path_exists(scratch_path("file/below")));
    assert_false(tg_path_is_taken(scratch_path("file/below")));
    assert_int_equal(symlink("circle", scratch_path("circle")), 0); /* what cannot be examined, even by root */
    assert_true(tg_path_exists(scratch_path("circle")));
    assert_true(tg_path_is_taken(scratch_path("circle/below")));
}

static void outputs(void **state)
{
    (void)state;
    const char *input = scratch_text("input", "x"), *soft = scratch_path("soft"), *hard = scratch_path("hard");
    assert_int_equal(symlink("input", soft), 0);
    assert_int_equal(link(input, hard), 0);
    const char *const taken[] = {input, soft, hard}, *const free_to_take[] = {"/dev/null", "/proc/version", "/absent", "/tmp"};
    for (size_t i = 0; i < 3; i++) {
        tg_error err = {0};
        assert_int_equal(tg_path_check_output(taken[i], input, &err), TG_E_USAGE);
        assert_non_null(strstr(err.message, ": is read from, and cannot be written to"));
        assert_int_equal(tg_path_check_output(input, taken[i], NULL), TG_E_USAGE);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(tg_path_check_output(free_to_take[i], input, NULL), TG_OK);
        assert_int_equal(tg_path_check_output(input, free_to_take[i], NULL), TG_OK);
    }
    assert_int_equal(tg_path_check_output("/dev/null", "/dev/null", NULL), TG_OK);
    assert_int_equal(tg_path_check_output(scratch_text("other", "x"), input, NULL), TG_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contents),
        cmocka_unit_test(empty),
        cmocka_unit_test(m01_only_regular_files),
        cmocka_unit_test(no_descriptor_left),
        cmocka_unit_test(reads),
        cmocka_unit_test(files_in_use),
        cmocka_unit_test(names_of_mappings),
        cmocka_unit_test(paths),
        cmocka_unit_test(outputs),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
