/* bench.h - timing for benchmarks: programs of thread teams, interleaved, and their medians. */
#ifndef TOOLS_BENCH_H
#define TOOLS_BENCH_H

#include <linux/perf_event.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "kernel/team.h"

enum { RUNS_MAX = 101 };

/* One thing to time: `step` is run by all threads of the team, `inner` times a run; 0: as often as it needs. */
typedef struct timed {
    const char *name;
    tg_team *team;
    void (*step)(const tg_worker *w, void *arg);
    void *arg;
    int inner;
    double began;         /* the newest run, when all threads were there */
    double run[RUNS_MAX]; /* seconds a step */
    double seconds;       /* their median */
    double bytes;         /* read from memory a step, by the hardware's counter; NAN without one */
} timed;

static inline double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Cache lines that this process' threads fetch from memory; -1 where the machine does not count them. */
static inline int counter_open(void)
{
    struct perf_event_attr a;
    memset(&a, 0, sizeof a);
    a.type = PERF_TYPE_HW_CACHE;
    a.size = sizeof a;
    a.config =
        PERF_COUNT_HW_CACHE_LL | PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16;
    a.inherit = 1;
    a.exclude_kernel = 1;
    return (int)syscall(SYS_perf_event_open, &a, 0, -1, -1, 0);
}

static inline double counter_bytes(int counter)
{
    long long lines;
    if (counter < 0 || read(counter, &lines, sizeof lines) != sizeof lines)
        return NAN;
    return 64.0 * (double)lines;
}

static inline int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline double median(const double *x, int n)
{
    double t[RUNS_MAX];
    memcpy(t, x, (size_t)n * sizeof *t);
    qsort(t, (size_t)n, sizeof *t, by_size);
    return n % 2 ? t[n / 2] : (t[n / 2 - 1] + t[n / 2]) / 2;
}

static inline void steps(const tg_worker *w, void *arg)
{
    timed *t = arg;
    tg_barrier(w); /* a thread may have been asleep */
    if (w->rank == 0)
        t->began = now();
    for (int i = 0; i < t->inner; i++) {
        t->step(w, t->arg);
        tg_barrier(w);
    }
}

static inline double run_once(timed *t)
{
    tg_team_run(t->team, steps, t);
    return (now() - t->began) / t->inner;
}

/* Times n things in turn, `runs` times, so that what disturbs the machine meets all of them. Short steps
 * are repeated until a run takes two milliseconds, unless their number is given: starting the team is no part of
 * them. */
static inline void measure(timed *t, int n, int runs)
{
    static int counter = -2;
    if (counter == -2)
        counter = counter_open();
    if (runs > RUNS_MAX)
        runs = RUNS_MAX;
    for (int i = 0; i < n; i++) {
        const bool wanted = t[i].inner > 0;
        t[i].inner = wanted ? t[i].inner : 1;
        run_once(&t[i]); /* touches everything */
        double once = run_once(&t[i]);
        if (!wanted)
            t[i].inner = once < 2e-3 ? (int)(2e-3 / (once + 1e-9)) + 1 : 1;
        t[i].bytes = NAN;
    }
    for (int r = 0; r < runs; r++)
        for (int i = 0; i < n; i++) {
            double before = counter_bytes(counter);
            t[i].run[r] = run_once(&t[i]);
            if (r == 0)
                t[i].bytes = (counter_bytes(counter) - before) / t[i].inner;
        }
    for (int i = 0; i < n; i++)
        t[i].seconds = median(t[i].run, runs);
}

/* The median over runs of how much longer a takes than b: each pair met the same machine. */
static inline double ratio(const timed *a, const timed *b, int runs)
{
    double x[RUNS_MAX];
    for (int r = 0; r < runs; r++)
        x[r] = a->run[r] / b->run[r];
    return median(x, runs);
}

#endif
