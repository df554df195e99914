/* team.h - the thread team: one program on all threads, with barriers and work to share.
 *
 * The only file that knows OpenMP is team.c. A program is a function that every thread of the team runs
 * from start to end; its operators share work by tg_take and meet at tg_barrier. Flush-to-zero is set
 * while it runs and restored behind it. */
#ifndef TG_KERNEL_TEAM_H
#define TG_KERNEL_TEAM_H

#include <stdint.h>

#include "base/error.h"

typedef struct tg_team tg_team;

typedef struct tg_worker {
    tg_team *team;
    int rank, size;
    void *scratch; /* this thread's own memory, of the size given at creation, aligned to 64 bytes */
} tg_worker;

enum { TG_MAX_THREADS = 512 };

/* The smallest of affinity mask, cgroup quota (rounded down, at least 1) and physical cores; a positive
 * OMP_NUM_THREADS comes before them. */
int tg_team_default_size(void);

/* Of fewer threads, where the system starts no more of them: tg_team_size tells. */
tg_status tg_team_create(tg_team **team, int n_threads, size_t scratch_bytes, tg_error *err);
/* What that takes of address space, the threads' stacks among it. */
size_t tg_team_bytes(int n_threads, size_t scratch_bytes);
void tg_team_free(tg_team *team);
int tg_team_size(const tg_team *team);

/* Runs fn(worker, arg) on every thread and returns when all have returned. If the system gives fewer
 * threads than asked for, the program runs with those (worker->size). */
void tg_team_run(tg_team *team, void (*fn)(const tg_worker *worker, void *arg), void *arg);

/* All threads meet; work is counted anew. Spins a while, then sleeps. */
void tg_barrier(const tg_worker *w);

/* All threads meet, fn(arg, unit) is done for each unit 0 .. n_units - 1, and they meet again. A few units
 * are done by the last thread to arrive, while the others wait, for less than a second barrier takes. All
 * callers name the same. */
void tg_meet(const tg_worker *w, size_t n_units, void (*fn)(void *arg, size_t unit), void *arg);

/* Asks for a line of 64 bytes, into the second-level cache: what is asked for into the first takes one of the few places
 * in which loads wait, until memory has answered. */
static inline __attribute__((always_inline)) void tg_fetch_line(const void *p)
{
    __builtin_prefetch(p, 0, 2);
}

/* For n_bytes from p on, one line after the other. */
static inline __attribute__((always_inline)) void tg_fetch_lines(const uint8_t *p, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i += 64)
        tg_fetch_line(p + i);
}

/* The same, and again for as many that lie `nearer` bytes before them, unless that is 0: what was asked for while the
 * processor had no place left for it is lost, and to find out only when it is read costs the whole wait. */
static inline __attribute__((always_inline)) void tg_fetch_twice(const uint8_t *p, size_t n_bytes, size_t nearer)
{
    if (nearer)
        tg_fetch_lines(p - nearer, n_bytes);
    tg_fetch_lines(p, n_bytes);
}

/* The thread will soon read what is from `at` up to `end`, at most a small part of the second-level cache: the first of
 * it is fetched now, and more while it waits for others. */
enum { TG_FETCH_MOST = 128 * 1024 };
void tg_fetch_while_waiting(const tg_worker *w, const uint8_t *at, const uint8_t *end);

/* A unit of work since the last barrier, of 0 .. n_units - 1, each handed out once; n_units when no more are
 * to be had. Every caller names the same n_units, below 2^32. A thread gets its own contiguous share in
 * ascending order, so that it reads memory as a stream, and then what others have left of theirs. Which
 * thread gets which must not matter to the result. */
size_t tg_take(const tg_worker *w, size_t n_units);
/* The same, a run of units first .. end - 1 at a time; false when no more are to be had. Of another's share the last
 * `leave` are left to him: what he will read next he has fetched already. Where it is not 0 memory is what takes the
 * time, and runs are longer. */
bool tg_take_run(const tg_worker *w, size_t n_units, size_t leave, size_t *first, size_t *end);
/* A thread's own share of them: first .. end - 1. */
void tg_share(const tg_worker *w, size_t n_units, size_t *first, size_t *end);

#endif
