/* every_allocation.h - calls something again and again, and lets another one of its allocations fail each time: once,
 * and from then on (R24 of the fault catalogue). Then there was no crash, nothing is left behind, the call said that
 * memory is short, how much and for what, and the next call gives what it gave before.
 *
 * Calls with many allocations are tried at some of them: at all with FULL in the environment. */
#ifndef TEST_EVERY_ALLOCATION_H
#define TEST_EVERY_ALLOCATION_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "support/failing_malloc.h"
#include "tinygpt/tinygpt.h"

/* A call: *sum tells all that came of it, which is freed again. */
typedef tg_status (*allocating_call)(void *arg, uint64_t *sum, tg_error *err);

enum { ALLOCATIONS_TRIED = 120 };

/* Does it say how much was wanted for what, or as the system says it of a file? */
static inline bool tells_allocation(const tg_error *err)
{
    return err->status == TG_E_RESOURCE && (strstr(err->message, "out of memory: ") || strstr(err->message, "Cannot allocate memory"));
}

static inline void every_allocation(const char *name, allocating_call call, void *arg)
{
    uint64_t wanted, sum;
    tg_error err = {0};
    if (!MALLOC_CAN_FAIL) {
        skip();
        return;
    }
    for (int i = 0; i < 2; i++) /* what is made once for all is there then */
        if (call(arg, &wanted, &err) != TG_OK)
            fail_msg("%s: %s", name, err.message);
    malloc_fail_at(1L << 40);
    call(arg, &sum, &err);
    const long n_points = (1L << 40) - malloc_countdown;
    malloc_fail_at(0);
    assert_true(sum == wanted);
    const long step = getenv("FULL") || n_points <= ALLOCATIONS_TRIED ? 1 : n_points / (ALLOCATIONS_TRIED / 2) | 1;
    long n_tried = 0, n_spared = 0;
    for (int for_ever = 0; for_ever < 2; for_ever++)
        for (long n = 1; n <= n_points; n += n > ALLOCATIONS_TRIED / 2 ? step : 1) {
            const long blocks = malloc_blocks, mapped = malloc_mapped;
            memset(&err, 0, sizeof err);
            (for_ever ? malloc_fail_from : malloc_fail_at)(n);
            const tg_status status = call(arg, &sum, &err);
            const bool failed = malloc_failed;
            malloc_fail_at(0);
            if (!failed || (status == TG_OK ? sum != wanted : !tells_allocation(&err)))
                fail_msg("%s, allocation %ld%s: status %d, %s", name, n, for_ever ? " and all behind it" : "", (int)status,
                         err.message);
            if (call(arg, &sum, &err) != TG_OK || sum != wanted)
                fail_msg("%s, after allocation %ld failed: %s", name, n, err.message);
            if (malloc_blocks != blocks || malloc_mapped != mapped)
                fail_msg("%s, allocation %ld%s: %ld blocks and %ld bytes of maps are left", name, n,
                         for_ever ? " and all behind it" : "", malloc_blocks - blocks, malloc_mapped - mapped);
            n_tried++;
            n_spared += status == TG_OK;
        }
    printf("%s: %ld allocations, %ld failed, %ld of them did not matter\n", name, n_points, n_tried, n_spared);
}

#endif
