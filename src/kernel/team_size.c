/* team_size.c - how many threads there are processors for. */
#include "kernel/team.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The first number of a file of a control group, and after it the second one where there are two; how many. */
static int read_numbers(const char *root, const char *group, const char *name, long number[2])
{
    char path[1400];
    snprintf(path, sizeof path, "/sys/fs/cgroup%s%s/%s", root, group, name);
    FILE *f = fopen(path, "re");
    int n = f ? fscanf(f, "%ld %ld", &number[0], &number[1]) : 0;
    if (f)
        fclose(f);
    return n;
}

/* Processors that a group may use, rounded down; INT_MAX: no quota. Version 2 writes "max 100000" or "200000 100000". */
static int quota_of(const char *root, const char *group)
{
    long n[2] = {0, 0}, period[2] = {0, 0};
    if (read_numbers(root, group, "cpu.max", n) == 2)
        period[0] = n[1];
    else if (read_numbers(root, group, "cpu.cfs_quota_us", n) >= 1)
        read_numbers(root, group, "cpu.cfs_period_us", period);
    if (n[0] <= 0 || period[0] <= 0)
        return INT_MAX;
    const long most = n[0] / period[0];
    return most < 1 ? 1 : most < INT_MAX ? (int)most : INT_MAX;
}

/* Where the hierarchy that a line of /proc/self/cgroup tells of is mounted; NULL: it has no processors to give. */
static const char *mount_of(const char *controllers)
{
    if (!*controllers)
        return ""; /* version 2 */
    for (size_t n; n = strcspn(controllers, ","), n != 3 || strncmp(controllers, "cpu", 3) != 0; controllers += n + 1)
        if (!controllers[n])
            return NULL;
    return "/cpu";
}

/* The least quota of the groups that hold this process. Those that a container does not see are not there by their
 * names; what it sees as the root is its own. */
static int quota_threads(void)
{
    char line[1024];
    int least = INT_MAX;
    FILE *f = fopen("/proc/self/cgroup", "re");
    while (f && fgets(line, sizeof line, f)) {
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group || group[1] != '/')
            continue;
        *group++ = '\0';
        group[strcspn(group, "\n")] = '\0';
        const char *root = mount_of(controllers + 1);
        for (char *end = group + strlen(group); root; end = strrchr(group, '/')) {
            *end = '\0';
            int quota = quota_of(root, group);
            least = quota < least ? quota : least;
            if (end == group)
                break;
        }
    }
    if (f)
        fclose(f);
    return least;
}

/* Of the processors in `set`, those that are the first of their core's hardware threads. */
static int physical_cores(const cpu_set_t *set)
{
    int n = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET((size_t)cpu, set))
            continue;
        char path[96];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
        FILE *f = fopen(path, "re");
        int first = cpu;
        if (f) {
            if (fscanf(f, "%d", &first) != 1)
                first = cpu;
            fclose(f);
        }
        if (first == cpu || first < 0 || first >= CPU_SETSIZE || !CPU_ISSET((size_t)first, set))
            n++;
    }
    return n;
}

int tg_team_default_size(void)
{
    const char *env = getenv("OMP_NUM_THREADS");
    if (env && *env) {
        char *end;
        long n = strtol(env, &end, 10);
        if ((*end == 0 || *end == ',') && n > 0 && n <= TG_MAX_THREADS)
            return (int)n;
    }
    int n = 1;
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        n = physical_cores(&set);
    } else {
        long online = sysconf(_SC_NPROCESSORS_ONLN);
        n = online > 0 ? (int)online : 1;
    }
    int quota = quota_threads();
    if (quota < n)
        n = quota;
    return n < 1 ? 1 : n > TG_MAX_THREADS ? TG_MAX_THREADS : n;
}
