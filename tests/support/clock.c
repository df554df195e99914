/* clock.so - preloaded into a program: its clocks are poor ones. In the environment:
 *
 *     CLOCK_GRAIN=SECONDS     CLOCK_MONOTONIC moves on in steps of so much
 *     CLOCK_JUMP=SECONDS      CLOCK_REALTIME and time() go back by so much at every second call */
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double setting(const char *name)
{
    const char *text = getenv(name);
    return text ? strtod(text, NULL) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
    static atomic_uint calls;
    double grain = setting("CLOCK_GRAIN");
    long rc = syscall(SYS_clock_gettime, clock, t);
    if (rc == 0 && clock == CLOCK_REALTIME && atomic_fetch_add(&calls, 1) % 2)
        t->tv_sec -= (time_t)setting("CLOCK_JUMP");
    if (rc == 0 && clock == CLOCK_MONOTONIC && grain > 0) {
        long long ns = (long long)t->tv_sec * 1000000000 + t->tv_nsec, step = (long long)(grain * 1e9);
        ns -= ns % step;
        t->tv_sec = (time_t)(ns / 1000000000);
        t->tv_nsec = (long)(ns % 1000000000);
    }
    return (int)rc;
}

time_t time(time_t *out)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    if (out)
        *out = t.tv_sec;
    return t.tv_sec;
}
