/* group.c - /proc/self/cgroup, and from there up. */
#include "base/group.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"

int tg_group_numbers(const char *folder, const char *name, int64_t number[2])
{
    char path[PATH_MAX], text[64];
    const int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (n >= (int)sizeof path || !tg_file_beginning(path, text, sizeof text))
        return 0;
    const int n_read = sscanf(text, "%" SCNd64 " %" SCNd64, &number[0], &number[1]);
    return n_read > 0 ? n_read : 0;
}

static bool is_among(const char *list, const char *name)
{
    const size_t n = strlen(name);
    while (strncmp(list, name, n) != 0 || (list[n] && list[n] != ',')) {
        list += strcspn(list, ",");
        if (!*list++)
            return false;
    }
    return true;
}

/* Of the group at a path and those above it, in a hierarchy that is mounted there. Those that a container does not see
 * are not there by their names; what it sees as the root is its own. */
static uint64_t least_upwards(char *folder, const char *mount, uint64_t (*limit_of)(const char *folder))
{
    uint64_t least = UINT64_MAX;
    for (const size_t n = strlen(mount);; *strrchr(folder, '/') = '\0') {
        const uint64_t limit = limit_of(folder);
        least = limit < least ? limit : least;
        if (strlen(folder) <= n)
            return least;
    }
}

uint64_t tg_group_least(const char *root, const char *controller, uint64_t (*limit_of)(const char *folder))
{
    char text[1 << 14], mount[PATH_MAX], folder[PATH_MAX], *end;
    uint64_t least = UINT64_MAX;
    snprintf(folder, sizeof folder, "%s/proc/self/cgroup", root);
    if (!tg_file_beginning(folder, text, sizeof text))
        return least;
    for (char *line = text; (end = strchr(line, '\n')); line = end + 1) { /* "5:cpu,cpuacct:/a/b", of version 2 "0::/a/b" */
        *end = '\0';
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group || group[1] != '/')
            continue;
        *controllers++ = *group++ = '\0';
        if (*controllers && !is_among(controllers, controller))
            continue;
        snprintf(mount, sizeof mount, "%s/sys/fs/cgroup%s%s", root, *controllers ? "/" : "", *controllers ? controller : "");
        if (snprintf(folder, sizeof folder, "%s%s", mount, group[1] ? group : "") >= (int)sizeof folder)
            continue;
        const uint64_t limit = least_upwards(folder, mount, limit_of);
        least = limit < least ? limit : least;
    }
    return least;
}
