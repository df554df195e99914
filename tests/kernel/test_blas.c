/* OpenBLAS takes all its memory before there is much to lose (R26 of the fault catalogue). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "kernel/blas.h"
#include "kernel/team.h"

enum { N_THREADS = 4, N = 160, ROUNDS = 50 };

static float a[N * N], b[N * N], c[N_THREADS][N * N];

static void multiply(const tg_worker *w, void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        tg_barrier(w);
        tg_blas_gemm(N, N, N, a, N, b, N, false, c[w->rank], N);
    }
}

/* Address space that the process has. */
static rlim_t taken(void)
{
    char text[128];
    assert_true(tg_file_beginning("/proc/self/statm", text, sizeof text));
    return strtoull(text, NULL, 10) * (rlim_t)sysconf(_SC_PAGESIZE);
}

static void name_without_room(void **state)
{
    struct rlimit before, less;
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip();
#endif
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    less = before;
    less.rlim_cur = taken() + (32 << 20);
    assert_int_equal(setrlimit(RLIMIT_AS, &less), 0);
    tg_error err;
    assert_int_equal(tg_blas_load(&err), TG_E_RESOURCE);
    assert_string_equal(tg_blas_name(), "has no room here (ulimit -v)");
    setrlimit(RLIMIT_AS, &before);
    assert_int_equal(tg_blas_load(&err), TG_OK);
    assert_null(strchr(tg_blas_name(), ' '));
}

/* Nothing is left to be taken, and products by all threads at once take nothing. */
static void buffers_of_all_threads(void **state)
{
    struct rlimit before, less;
    tg_team *team;
    (void)state;
    assert_int_equal(tg_blas_load(NULL), TG_OK);
    assert_int_equal(tg_team_create(&team, N_THREADS, 0, NULL), TG_OK);
    assert_true(tg_blas_bytes(N_THREADS) >= (size_t)N_THREADS << 27);
    const rlim_t cold = taken();
    tg_blas_warm_up(N_THREADS);
    assert_true(taken() - cold >= (rlim_t)N_THREADS << 27);
    assert_int_equal(tg_blas_bytes(N_THREADS), 0);
    assert_true(tg_blas_bytes(N_THREADS + 1) >= (size_t)1 << 27);
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    less = before;
    less.rlim_cur = taken() + (1 << 20);
#ifndef __SANITIZE_ADDRESS__
    assert_int_equal(setrlimit(RLIMIT_AS, &less), 0);
#endif
    for (int i = 0; i < N * N; i++) {
        a[i] = (float)(i % 7);
        b[i] = (float)(i % 5);
    }
    tg_team_run(team, multiply, NULL);
    setrlimit(RLIMIT_AS, &before);
    float sum = 0;
    for (int k = 0; k < N; k++)
        sum += a[k] * b[k];
    for (int i = 0; i < N_THREADS; i++)
        assert_true(c[i][0] == sum && memcmp(c[i], c[0], sizeof c[0]) == 0);
    tg_team_free(team);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(name_without_room), cmocka_unit_test(buffers_of_all_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
