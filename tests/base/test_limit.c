/* Limits of memory: of address space, of a control group and those above it (R25 of the fault catalogue). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/resource.h>

#include "base/limit.h"
#include "support/scratch.h"

static void groups(void **state)
{
    (void)state;
    assert_true(tg_limit_of_group(scratch_folder, "/") == UINT64_MAX);
    scratch_mkdir("a");
    scratch_mkdir("a/b");
    assert_true(tg_limit_of_group(scratch_folder, "/a/b") == UINT64_MAX);
    scratch_text("a/b/memory.max", "max\n");
    assert_true(tg_limit_of_group(scratch_folder, "/a/b") == UINT64_MAX);
    scratch_text("a/memory.max", "4294967296\n");
    assert_true(tg_limit_of_group(scratch_folder, "/a/b") == 4294967296u);
    assert_true(tg_limit_of_group(scratch_folder, "/a/b/") == 4294967296u);
    assert_true(tg_limit_of_group(scratch_folder, "/a") == 4294967296u);
    assert_true(tg_limit_of_group(scratch_folder, "/") == UINT64_MAX);
    scratch_text("a/b/memory.max", "1048576\n");
    assert_true(tg_limit_of_group(scratch_folder, "/a/b") == 1048576);
    assert_true(tg_limit_of_group(scratch_folder, "/a/b/c") == 1048576);
    scratch_text("memory.max", "4096\n"); /* of the root, in a container */
    assert_true(tg_limit_of_group(scratch_folder, "/a/b") == 4096);
    assert_true(tg_limit_of_group(scratch_folder, "") == 4096);
    assert_true(tg_limit_of_group("/none", "/a") == UINT64_MAX);
}

static void address_space(void **state)
{
    struct rlimit before, less;
    tg_error err;
    (void)state;
    getrlimit(RLIMIT_AS, &before);
    less = before;
    less.rlim_cur = (rlim_t)1 << 44;
    assert_int_equal(setrlimit(RLIMIT_AS, &less), 0);
    assert_int_equal(tg_limit_check((uint64_t)1 << 20, "something", &err), TG_OK);
    assert_int_equal(tg_limit_check((uint64_t)1 << 45, "something", &err), TG_E_RESOURCE);
    assert_non_null(strstr(err.message, "33554432.0 MiB are needed for something (found a limit of 16777216.0 MiB of address space"));
    assert_int_equal(tg_limit_check(UINT64_MAX, "something", &err), TG_E_RESOURCE);
    setrlimit(RLIMIT_AS, &before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(groups), cmocka_unit_test(address_space)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
