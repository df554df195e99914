/* team_size.c - how many threads there are processors for. */
#include "kernel/team.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/group.h"

/* Processors that a group may use, rounded down. Version 2 writes "max 100000" or "200000 100000". */
static uint64_t quota_of(const char *folder)
{
    int64_t quota[2], period[2];
    if (tg_group_numbers(folder, "cpu.max", quota) == 2)
        period[0] = quota[1];
    else if (!tg_group_numbers(folder, "cpu.cfs_quota_us", quota) || !tg_group_numbers(folder, "cpu.cfs_period_us", period))
        return UINT64_MAX;
    if (quota[0] <= 0 || period[0] <= 0)
        return UINT64_MAX;
    return quota[0] < period[0] ? 1 : (uint64_t)(quota[0] / period[0]);
}

/* Of the processors in `set`, those that are the first of their core's hardware threads. */
static int physical_cores(const cpu_set_t *set)
{
    int n = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET((size_t)cpu, set))
            continue;
        char path[96], siblings[16];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
        int first;
        if (!tg_file_beginning(path, siblings, sizeof siblings) || sscanf(siblings, "%d", &first) != 1)
            first = cpu;
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
    const uint64_t quota = tg_group_least("", "cpu", quota_of);
    if (quota < (uint64_t)n)
        n = (int)quota;
    return n < 1 ? 1 : n > TG_MAX_THREADS ? TG_MAX_THREADS : n;
}
