/* clock.h - seconds, for tests that bound a time generously. */
#ifndef TEST_CLOCK_H
#define TEST_CLOCK_H

#include <time.h>

static inline double clock_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#endif
