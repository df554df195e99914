/* Limits of memory: of address space, of a control group and those above it (R25 of the fault catalogue). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/resource.h>

#include "base/limit.h"
#include "support/scratch.h"

/* Of a made-up machine, whose process is in these groups. */
static uint64_t limit_in(const char *groups)
{
    scratch_text("proc/self/cgroup", groups);
    return tg_limit_of_groups(scratch_folder);
}

static void groups(void **state)
{
    (void)state;
    assert_true(tg_limit_of_groups("/none") == UINT64_MAX);
    const char *const folders[] = {"proc", "proc/self", "sys", "sys/fs", "sys/fs/cgroup", "sys/fs/cgroup/a", "sys/fs/cgroup/a/b"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        scratch_mkdir(folders[i]);
    assert_true(limit_in("") == UINT64_MAX);
    assert_true(limit_in("0::/a/b\n") == UINT64_MAX);
    scratch_text("sys/fs/cgroup/a/b/memory.max", "max\n");
    assert_true(limit_in("0::/a/b\n") == UINT64_MAX);
    scratch_text("sys/fs/cgroup/a/memory.max", "4294967296\n");
    assert_true(limit_in("0::/a/b\n") == 4294967296u);
    assert_true(limit_in("0::/a\n") == 4294967296u);
    assert_true(limit_in("0::/\n") == UINT64_MAX);
    scratch_text("sys/fs/cgroup/a/b/memory.max", "1048576\n");
    assert_true(limit_in("0::/a/b\n") == 1048576);
    assert_true(limit_in("0::/a/b/c\n") == 1048576); /* one that is not seen */
    scratch_text("sys/fs/cgroup/memory.max", "4096\n"); /* of the root, in a container */
    assert_true(limit_in("0::/a/b\n") == 4096);
    assert_true(limit_in("0::/\n") == 4096);
    assert_true(limit_in("0::a\n") == UINT64_MAX);
    assert_true(limit_in("0:/a\n") == UINT64_MAX);
    assert_true(limit_in("no colons\n") == UINT64_MAX);
    assert_true(limit_in("0::/a/b") == UINT64_MAX); /* no line */
}

/* Version 1 has a hierarchy for each controller, or for some together; version 2 may stand beside it. */
static void groups_of_version_1(void **state)
{
    (void)state;
    const char *const folders[] = {"sys/fs/cgroup/memory", "sys/fs/cgroup/memory/a", "sys/fs/cgroup/memory/a/b"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        scratch_mkdir(folders[i]);
    scratch_remove("sys/fs/cgroup/memory.max");
    scratch_text("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"); /* none */
    assert_true(limit_in("4:memory:/a/b\n") == 9223372036854771712u);
    scratch_text("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "2097152\n");
    assert_true(limit_in("4:memory:/a/b\n") == 2097152);
    assert_true(limit_in("12:pids:/a\n4:hugetlb,memory:/a/b\n1:name=systemd:/a\n") == 2097152);
    assert_true(limit_in("4:memory2,xmemory,mem:/a/b\n") == UINT64_MAX);
    assert_true(limit_in("4:cpu:/a/b\n") == UINT64_MAX);
    assert_true(limit_in("4:memory:/\n") == 9223372036854771712u);
    assert_true(limit_in("4:memory:/a\n0::/a/b\n") == 1048576);
    scratch_text("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "4096\n");
    assert_true(limit_in("4:memory:/a/b\n0::/a/b\n") == 4096);
    char many[1 << 13]; /* more than a page of other hierarchies before it */
    size_t n = 0;
    while (n < sizeof many - 200)
        n += (size_t)sprintf(many + n, "9:name=other:/%0100d\n", 0);
    strcpy(many + n, "4:memory:/a/b\n");
    assert_true(limit_in(many) == 4096);
    char deep[6000] = "0::"; /* too long a path is nowhere */
    for (n = 3; n < sizeof deep - 4; n += 2)
        memcpy(deep + n, "/d", 2);
    strcpy(deep + n, "\n");
    assert_true(limit_in(deep) == UINT64_MAX);
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups),
        cmocka_unit_test(groups_of_version_1),
        cmocka_unit_test(address_space),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
