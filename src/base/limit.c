/* limit.c - RLIMIT_AS and the memory of control groups. */
#include "base/limit.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "base/group.h"

static uint64_t memory_of(const char *folder)
{
    int64_t limit[2];
    return tg_group_numbers(folder, "memory.max", limit) || tg_group_numbers(folder, "memory.limit_in_bytes", limit)
               ? (uint64_t)limit[0]
               : UINT64_MAX;
}

uint64_t tg_limit_of_groups(const char *root)
{
    return tg_group_least(root, "memory", memory_of);
}

static tg_status fail(tg_error *err, uint64_t n_bytes, const char *purpose, const char *limit, uint64_t all, uint64_t left)
{
    const double mib = 1048576;
    return tg_fail(err, TG_E_RESOURCE, NULL, "%.1f MiB are needed for %s (found a limit of %.1f MiB %s, of which %.1f are left)",
                   (double)n_bytes / mib, purpose, (double)all / mib, limit, (double)left / mib);
}

static uint64_t left_of(uint64_t limit, uint64_t used)
{
    return limit > used ? limit - used : 0;
}

tg_status tg_limit_check(uint64_t n_bytes, const char *purpose, tg_error *err)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t size = 0, resident = 0, shared = 0; /* pages */
    char text[128];
    struct rlimit space;
    if (tg_file_beginning("/proc/self/statm", text, sizeof text))
        sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64, &size, &resident, &shared);
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY && n_bytes > left_of(space.rlim_cur, size * page))
        return fail(err, n_bytes, purpose, "of address space (ulimit -v)", space.rlim_cur, left_of(space.rlim_cur, size * page));
    const uint64_t group = tg_limit_of_groups(""), own = left_of(resident, shared) * page;
    return n_bytes > left_of(group, own)
               ? fail(err, n_bytes, purpose, "of memory (the control group's)", group, left_of(group, own))
               : TG_OK;
}
