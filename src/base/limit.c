/* limit.c - RLIMIT_AS and the control group's memory.max. */
#include "base/limit.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* The beginning of a small file, with a NUL; false when it cannot be read. */
static bool read_text(const char *path, char *text, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, room - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

uint64_t tg_limit_of_group(const char *root, const char *group)
{
    uint64_t least = UINT64_MAX, limit;
    char path[PATH_MAX], text[64];
    for (size_t n = strlen(group);;) {
        while (n > 0 && group[n - 1] == '/')
            n--;
        int length = snprintf(path, sizeof path, "%s%.*s/memory.max", root, (int)n, group);
        if (length > 0 && (size_t)length < sizeof path && read_text(path, text, sizeof text) &&
            sscanf(text, "%" SCNu64, &limit) == 1 && limit < least)
            least = limit;
        if (n == 0)
            return least;
        while (n > 0 && group[n - 1] != '/')
            n--;
    }
}

static uint64_t limit_of_own_group(void)
{
    char text[PATH_MAX];
    char *group = read_text("/proc/self/cgroup", text, sizeof text) ? strstr(text, "0::/") : NULL;
    if (!group)
        return UINT64_MAX;
    group[strcspn(group, "\n")] = '\0';
    return tg_limit_of_group("/sys/fs/cgroup", group + 3);
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
    if (read_text("/proc/self/statm", text, sizeof text))
        sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64, &size, &resident, &shared);
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY && n_bytes > left_of(space.rlim_cur, size * page))
        return fail(err, n_bytes, purpose, "of address space (ulimit -v)", space.rlim_cur, left_of(space.rlim_cur, size * page));
    const uint64_t group = limit_of_own_group(), own = left_of(resident, shared) * page;
    return n_bytes > left_of(group, own)
               ? fail(err, n_bytes, purpose, "of memory (the control group's)", group, left_of(group, own))
               : TG_OK;
}
