/* rand.h - seeded numbers for tests. */
#ifndef TESTS_RAND_H
#define TESTS_RAND_H

#include <math.h>
#include <stdint.h>

static uint64_t rand_state = 1;

static inline uint64_t rand_u64(void) /* xorshift64* */
{
    rand_state ^= rand_state >> 12;
    rand_state ^= rand_state << 25;
    rand_state ^= rand_state >> 27;
    return rand_state * 0x2545f4914f6cdd1dull;
}

static inline int rand_int(int from, int to) /* both included */
{
    return from + (int)(rand_u64() % (uint64_t)(to - from + 1));
}

static inline double rand_unit(void)
{
    return (double)(rand_u64() >> 11) * 0x1p-53;
}

static inline float rand_normal(void)
{
    double u = 1.0 - rand_unit(), v = rand_unit();
    return (float)(sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v));
}

#endif
