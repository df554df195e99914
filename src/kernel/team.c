/* team.c - OpenMP's only home. */
#include "kernel/team.h"

#include <ctype.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

/* How many units of a thread's share are taken: above them, in the high half, the generation that they
 * were counted in, so that nobody needs to set the counters back. And, for the thread alone, what it took
 * and has not done yet. */
typedef struct share {
    _Alignas(64) _Atomic uint64_t taken;
    _Alignas(64) size_t next, end;
    uint64_t generation;
    const uint8_t *ahead, *ahead_end; /* to fetch while it waits */
} share;

struct tg_team {
    int n_threads;
    int64_t patience; /* nanoseconds before a waiting thread sleeps */
    size_t scratch_bytes;
    char *scratch; /* [n_threads][scratch_bytes] */
    share *share;  /* [n_threads] */
    _Alignas(64) atomic_int n_arrived;
    _Alignas(64) atomic_uint generation; /* changes when a barrier opens */
    atomic_int n_sleeping;
    pthread_mutex_t lock;
    pthread_cond_t open;
};

/* ---- are they to be had? ------------------------------------------------------------------- */

typedef struct probe {
    pthread_mutex_t gate;
    pthread_t thread;
    pid_t id;
} probe;

/* Attributes of threads as OpenMP makes them; returns their stacks' size. OMP_STACKSIZE may say it: "64M"; "512" is KiB. */
static size_t as_openmp(pthread_attr_t *how)
{
    static const char units[] = "BKMG";
    const char *said = getenv("OMP_STACKSIZE");
    char *unit = NULL;
    size_t n = 0;
    const unsigned long long number = said ? strtoull(said, &unit, 10) : 0;
    pthread_attr_init(how);
    if (number > 0 && number < 1ull << 32) {
        unit += strspn(unit, " ");
        const char *known = *unit ? strchr(units, toupper((unsigned char)*unit)) : strchr(units, 'K');
        pthread_attr_setstacksize(how, known ? (size_t)number << 10 * (known - units) : 0); /* not below the least one */
    }
    pthread_attr_getstacksize(how, &n);
    return n;
}

static void *pass(void *arg)
{
    probe *p = arg;
    p->id = (pid_t)syscall(SYS_gettid);
    pthread_mutex_lock(&p->gate);
    pthread_mutex_unlock(&p->gate);
    return NULL;
}

/* How many of n threads can be there together. OpenMP ends the process when it gets fewer than it asks for, or no memory
 * for what it keeps of them: so let them start, and end, before it does. They count as there until the system has
 * forgotten them, which is after they have been joined. */
static tg_status count_startable(int *n, tg_error *err)
{
    enum { KEPT_BYTES = 8192 };
    probe *p = tg_alloc((size_t)*n, sizeof *p + KEPT_BYTES, "threads", err);
    pthread_attr_t how;
    int k = 1;
    if (!p)
        return TG_E_RESOURCE;
    as_openmp(&how);
    for (; k < *n; k++) {
        pthread_mutex_init(&p[k].gate, NULL);
        pthread_mutex_lock(&p[k].gate);
        if (pthread_create(&p[k].thread, &how, pass, &p[k]) != 0)
            break;
    }
    pthread_attr_destroy(&how);
    *n = k;
    while (--k > 0) {
        pthread_mutex_unlock(&p[k].gate);
        pthread_join(p[k].thread, NULL);
        while (syscall(SYS_tgkill, getpid(), p[k].id, 0) == 0)
            sched_yield();
    }
    tg_free(p);
    return TG_OK;
}

/* ---- the team ------------------------------------------------------------------------------ */

/* Scratch memory of all threads, and their counters. */
static size_t all_bytes(const tg_team *t)
{
    return (t->scratch_bytes + sizeof *t->share) * (size_t)t->n_threads;
}

static tg_status give_memory(tg_team *t, int n_threads, tg_error *err)
{
    t->n_threads = n_threads;
    t->scratch = tg_reserve(all_bytes(t), "the threads' memory", err);
    t->share = t->scratch ? (share *)(void *)(t->scratch + t->scratch_bytes * (size_t)n_threads) : NULL;
    return t->scratch ? TG_OK : TG_E_RESOURCE;
}

static tg_status take_less(tg_team *t, int n_threads, tg_error *err)
{
    tg_unreserve(t->scratch, all_bytes(t));
    return give_memory(t, n_threads, err);
}

size_t tg_team_bytes(int n_threads, size_t scratch_bytes)
{
    const tg_team t = {.n_threads = n_threads, .scratch_bytes = tg_round_up(scratch_bytes, 4096)};
    pthread_attr_t how;
    const size_t stack = as_openmp(&how);
    pthread_attr_destroy(&how);
    return all_bytes(&t) + stack * (size_t)(n_threads - 1);
}

static void count(const tg_worker *worker, void *arg)
{
    if (worker->rank == 0)
        *(int *)arg = worker->size;
}

tg_status tg_team_create(tg_team **team, int n_threads, size_t scratch_bytes, tg_error *err)
{
    *team = NULL;
    tg_team *t = NULL;
    if (posix_memalign((void **)&t, 64, sizeof *t) != 0)
        return tg_fail_alloc(err, sizeof *t, "a thread team");
    memset(t, 0, sizeof *t);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->open, NULL);
    t->scratch_bytes = tg_round_up(scratch_bytes, 4096);
    int n_there = n_threads;
    tg_status status = give_memory(t, n_threads, err);
    if (status == TG_OK) /* beside that memory */
        status = count_startable(&n_there, err);
    if (status == TG_OK && n_there < t->n_threads)
        status = take_less(t, n_there, err);
    if (status == TG_OK)
        tg_team_run(t, count, &n_there); /* starts them */
    if (status == TG_OK && n_there < t->n_threads) /* OMP_THREAD_LIMIT, OMP_DYNAMIC */
        status = take_less(t, n_there, err);
    if (status != TG_OK) {
        tg_team_free(t);
        return status;
    }
    cpu_set_t set;
    int cpus = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    t->patience = t->n_threads <= cpus ? 10000000 : 0;
    *team = t;
    return TG_OK;
}

void tg_team_free(tg_team *team)
{
    if (!team)
        return;
    tg_unreserve(team->scratch, all_bytes(team));
    pthread_mutex_destroy(&team->lock);
    pthread_cond_destroy(&team->open);
    free(team);
}

int tg_team_size(const tg_team *team)
{
    return team->n_threads;
}

/* Flush-to-zero and denormals-are-zero: some processors take hundreds of cycles for a subnormal. */
static unsigned long flush_subnormals(void)
{
#if defined(__SSE__)
    unsigned saved = _mm_getcsr();
    _mm_setcsr(saved | 0x8040);
    return saved;
#elif defined(__aarch64__)
    unsigned long saved;
    __asm__ volatile("mrs %0, fpcr" : "=r"(saved));
    __asm__ volatile("msr fpcr, %0" : : "r"(saved | 1ul << 24));
    return saved;
#else
    return 0;
#endif
}

static void restore_subnormals(unsigned long saved)
{
#if defined(__SSE__)
    _mm_setcsr((unsigned)saved);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(saved));
#else
    (void)saved;
#endif
}

static void work(tg_team *team, int rank, int size, void (*fn)(const tg_worker *worker, void *arg), void *arg)
{
    const tg_worker w = {team, rank, size, team->scratch + team->scratch_bytes * (size_t)rank};
    const unsigned long saved = flush_subnormals();
    const int n_nested = size == 1 ? omp_get_max_threads() : 0;
    if (size == 1)
        omp_set_num_threads(1); /* BLAS sees no team, and would make its own */
    fn(&w, arg);
    if (size == 1)
        omp_set_num_threads(n_nested);
    restore_subnormals(saved);
}

void tg_team_run(tg_team *team, void (*fn)(const tg_worker *worker, void *arg), void *arg)
{
    atomic_store(&team->n_arrived, 0);
    atomic_fetch_add(&team->generation, 1);
    if (team->n_threads == 1) { /* OpenMP would allocate, and end the process where it cannot */
        work(team, 0, 1, fn, arg);
        return;
    }
#pragma omp parallel num_threads(team->n_threads)
    work(team, omp_get_thread_num(), omp_get_num_threads(), fn, arg);
}

static void relax(void)
{
#if defined(__SSE__)
    _mm_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Everyone has arrived: lets them go. */
static void open_barrier(tg_team *t, unsigned generation)
{
    atomic_store_explicit(&t->n_arrived, 0, memory_order_relaxed);
    atomic_store(&t->generation, generation + 1);
    if (atomic_load(&t->n_sleeping)) {
        pthread_mutex_lock(&t->lock);
        pthread_cond_broadcast(&t->open);
        pthread_mutex_unlock(&t->lock);
    }
}

static int64_t nanoseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* A line of what the thread will read; false when nothing is left of that. */
static bool fetch_ahead(share *s)
{
    if (s->ahead >= s->ahead_end)
        return false;
    tg_fetch_line(s->ahead);
    s->ahead += 64;
    return true;
}

/* Spins for longer than a scheduler lets another program have a processor: who sleeps meanwhile gives away
 * his own, and waits for that one as well. Whoever is late may wait for this very processor, though: after a
 * while it is offered. */
static void wait_for(tg_team *t, share *mine, unsigned generation)
{
    enum { ROUND = 256, LATE = 100000 }; /* between two looks at the clock; nanoseconds */
    int64_t begun = 0, now = 0;
    do {
        for (int i = 0; i < ROUND; i++) {
            if (atomic_load_explicit(&t->generation, memory_order_acquire) != generation)
                return;
            if (!fetch_ahead(mine))
                relax();
        }
        now = nanoseconds();
        begun = begun ? begun : now;
        if (now - begun > LATE)
            sched_yield();
    } while (now - begun < t->patience);
    /* A sleeper announces itself before it looks again; the opener opens before it looks for sleepers:
     * one of them sees the other. */
    pthread_mutex_lock(&t->lock);
    atomic_fetch_add(&t->n_sleeping, 1);
    while (atomic_load(&t->generation) == generation)
        pthread_cond_wait(&t->open, &t->lock);
    atomic_fetch_sub(&t->n_sleeping, 1);
    pthread_mutex_unlock(&t->lock);
}

static void meet(const tg_worker *w, size_t n_units, void (*fn)(void *arg, size_t unit), void *arg)
{
    tg_team *t = w->team;
    unsigned generation = atomic_load_explicit(&t->generation, memory_order_relaxed);
    if (atomic_fetch_add(&t->n_arrived, 1) == w->size - 1) {
        for (size_t unit = 0; unit < n_units; unit++)
            fn(arg, unit);
        open_barrier(t, generation);
    } else {
        wait_for(t, &t->share[w->rank], generation);
    }
}

void tg_barrier(const tg_worker *w)
{
    meet(w, 0, NULL, NULL);
}

void tg_meet(const tg_worker *w, size_t n_units, void (*fn)(void *arg, size_t unit), void *arg)
{
    enum { FEW = 4 };
    if (n_units <= FEW) {
        meet(w, n_units, fn, arg);
        return;
    }
    tg_barrier(w);
    for (size_t unit; (unit = tg_take(w, n_units)) < n_units;)
        fn(arg, unit);
    tg_barrier(w);
}

void tg_fetch_while_waiting(const tg_worker *w, const uint8_t *at, const uint8_t *end)
{
    enum { AT_ONCE = 32 }; /* a processor forgets more */
    share *s = &w->team->share[w->rank];
    s->ahead = at;
    s->ahead_end = end;
    for (int i = 0; i < AT_ONCE && fetch_ahead(s); i++)
        ;
}

/* Takes a run of the n_units of a share, if more than `leave` are left: a quarter of them, since a long run of a thread
 * that is held up would hold up the others. Where memory is read as a stream it is most of the share at first and then
 * halves: each taking waits for all loads before it, and the stream with it. */
static bool take_run(share *s, uint64_t generation, size_t n_units, size_t leave, bool stream, size_t *first, size_t *end)
{
    uint64_t seen = atomic_load_explicit(&s->taken, memory_order_relaxed), taken, run;
    do {
        taken = seen >> 32 == generation ? seen & UINT32_MAX : 0;
        if (taken + leave >= n_units)
            return false;
        run = !stream ? (n_units - taken + 3) / 4 : taken ? (n_units - taken + 1) / 2 : (3 * n_units + 3) / 4;
    } while (!atomic_compare_exchange_weak_explicit(&s->taken, &seen, generation << 32 | (taken + run),
                                                    memory_order_relaxed, memory_order_relaxed));
    *first = taken;
    *end = taken + run;
    return true;
}

static void share_of(int rank, int size, size_t n_units, size_t *first, size_t *end)
{
    *first = n_units * (size_t)rank / (size_t)size;
    *end = n_units * (size_t)(rank + 1) / (size_t)size;
}

void tg_share(const tg_worker *w, size_t n_units, size_t *first, size_t *end)
{
    share_of(w->rank, w->size, n_units, first, end);
}

bool tg_take_run(const tg_worker *w, size_t n_units, size_t leave, size_t *first, size_t *end)
{
    enum { SHARES_MAX = 4 }; /* looked into: in a large team, to look into all would take longer than to wait */
    uint64_t generation = atomic_load_explicit(&w->team->generation, memory_order_relaxed);
    for (int i = 0; i < w->size && i < SHARES_MAX; i++) {
        int rank = (w->rank + i) % w->size;
        size_t from, to;
        share_of(rank, w->size, n_units, &from, &to);
        if (take_run(&w->team->share[rank], generation, to - from, i > 0 ? leave : 0, leave > 0, first, end)) {
            *first += from;
            *end += from;
            return true;
        }
    }
    return false;
}

size_t tg_take(const tg_worker *w, size_t n_units)
{
    share *mine = &w->team->share[w->rank];
    uint64_t generation = atomic_load_explicit(&w->team->generation, memory_order_relaxed);
    if (mine->generation != generation || mine->next == mine->end) {
        mine->generation = generation;
        mine->next = mine->end = 0;
        if (!tg_take_run(w, n_units, 0, &mine->next, &mine->end))
            return n_units;
    }
    return mine->next++;
}
