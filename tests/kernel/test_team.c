/* Every unit is done once, barriers hold, and waiting threads sleep rather than hang. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "kernel/team.h"

enum { UNITS = 1000, ROUNDS = 200 };

typedef struct shared {
    atomic_int done[UNITS];
    atomic_int wrong;
    int round; /* written by rank 0 between barriers, read by all */
} shared;

static void program(const tg_worker *w, void *arg)
{
    shared *s = arg;
    memset(w->scratch, w->rank, 100);
    for (int round = 0; round < ROUNDS; round++) {
        if (w->rank == 0)
            s->round = round;
        for (size_t u; (u = tg_take(w, UNITS)) < UNITS;)
            atomic_fetch_add(&s->done[u], 1);
        tg_barrier(w);
        if (s->round != round)
            atomic_fetch_add(&s->wrong, 1);
        for (int i = w->rank; i < UNITS; i += w->size)
            if (atomic_load(&s->done[i]) != round + 1)
                atomic_fetch_add(&s->wrong, 1);
        tg_barrier(w);
    }
    if (((char *)w->scratch)[99] != (char)w->rank)
        atomic_fetch_add(&s->wrong, 1);
}

static void units_and_barriers(void **state)
{
    (void)state;
    static const int sizes[] = {1, 2, 3, 8};
    for (int i = 0; i < 4; i++) {
        tg_team *team;
        assert_int_equal(tg_team_create(&team, sizes[i], 100, NULL), TG_OK);
        assert_int_equal(tg_team_size(team), sizes[i]);
        for (int twice = 0; twice < 2; twice++) {
            shared *s = calloc(1, sizeof *s);
            tg_team_run(team, program, s);
            assert_int_equal(atomic_load(&s->wrong), 0);
            for (int u = 0; u < UNITS; u++)
                assert_int_equal(atomic_load(&s->done[u]), ROUNDS);
            free(s);
        }
        tg_team_free(team);
    }
}

/* The same by runs, with the last of others' shares left to them or not; and what everybody meets for. */
static void count_unit(void *arg, size_t unit)
{
    shared *s = arg;
    atomic_fetch_add(&s->done[unit], 1);
}

static void runs_and_meetings(const tg_worker *w, void *arg)
{
    shared *s = arg;
    for (int round = 0; round < ROUNDS; round++) {
        size_t n = (size_t)(round * 7 % UNITS), first, end, own, own_end;
        tg_share(w, n, &own, &own_end);
        bool begun = false;
        while (tg_take_run(w, n, (size_t)round % 2, &first, &end)) {
            if (first >= end || end > n || (!begun && w->size == 1 && first != own) || own_end > n)
                atomic_fetch_add(&s->wrong, 1);
            begun = true;
            for (; first < end; first++)
                count_unit(s, first);
        }
        tg_meet(w, UNITS - n, count_unit, (atomic_int *)(void *)s + n);
        for (size_t i = 0; w->rank == 0 && i < UNITS; i++)
            if (atomic_load(&s->done[i]) != round + 1)
                atomic_fetch_add(&s->wrong, 1);
        tg_meet(w, (size_t)round % 6, count_unit, s);
        if (w->rank == 0)
            for (size_t i = 0; i < (size_t)round % 6; i++)
                atomic_fetch_sub(&s->done[i], 1);
        tg_barrier(w);
    }
}

static void runs(void **state)
{
    (void)state;
    static const int sizes[] = {1, 2, 5, 9};
    for (int i = 0; i < 4; i++) {
        tg_team *team;
        assert_int_equal(tg_team_create(&team, sizes[i], 0, NULL), TG_OK);
        shared *s = calloc(1, sizeof *s);
        tg_team_run(team, runs_and_meetings, s);
        assert_int_equal(atomic_load(&s->wrong), 0);
        free(s);
        tg_team_free(team);
    }
}

static void late(const tg_worker *w, void *arg)
{
    (void)arg;
    if (w->rank == 0)
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    tg_barrier(w);
}

static void sleepers_wake(void **state)
{
    (void)state;
    tg_team *team;
    assert_int_equal(tg_team_create(&team, 4, 0, NULL), TG_OK);
    for (int i = 0; i < 3; i++)
        tg_team_run(team, late, NULL);
    tg_team_free(team);
}

static void subnormal(const tg_worker *w, void *arg)
{
    volatile float *x = arg;
    x[1 + w->rank] = x[0] * 0.5f;
}

/* R23: inside a program subnormals are zero, on every thread; outside they are what they were. */
static void subnormals(void **state)
{
    enum { MOST = 9 };
    (void)state;
    for (int n = 1; n <= MOST; n++) {
        volatile float x[1 + MOST] = {1.2e-38f, 1, 1, 1, 1, 1, 1, 1, 1, 1};
        tg_team *team;
        assert_int_equal(tg_team_create(&team, n, 0, NULL), TG_OK);
        tg_team_run(team, subnormal, (void *)(uintptr_t)x);
        tg_team_free(team);
#if defined(__SSE__) || defined(__aarch64__)
        for (int i = 1; i <= n; i++)
            assert_true(x[i] == 0.0f);
#endif
        assert_true(x[0] * 0.5f > 0.0f);
    }
}

/* R31; tests/runtime/machine.py has the rest. */
static void default_size(void **state)
{
    (void)state;
    setenv("OMP_NUM_THREADS", "3", 1);
    assert_int_equal(tg_team_default_size(), 3);
    setenv("OMP_NUM_THREADS", "4,2", 1);
    assert_int_equal(tg_team_default_size(), 4);
    setenv("OMP_NUM_THREADS", "-1", 1);
    assert_in_range(tg_team_default_size(), 1, TG_MAX_THREADS);
    unsetenv("OMP_NUM_THREADS");
    assert_in_range(tg_team_default_size(), 1, TG_MAX_THREADS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(units_and_barriers),
        cmocka_unit_test(runs),
        cmocka_unit_test(sleepers_wake),
        cmocka_unit_test(subnormals),
        cmocka_unit_test(default_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
