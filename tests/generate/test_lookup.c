/* Guesses from the text itself, against every place tried. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "generate/lookup.h"
#include "support/rand.h"

static int agree(const int32_t *ids, int n, int end)
{
    int k = 0;
    while (k < end && ids[end - 1 - k] == ids[n - 1 - k])
        k++;
    return k < 8 ? k : 8;
}

static void longest_then_latest(void **state)
{
    (void)state;
    enum { N = 80, MOST = 12 };
    for (int round = 0; round < 20000; round++) {
        int32_t ids[N], out[MOST];
        rand_state = 1 + (uint64_t)round;
        int n = rand_int(1, N), most = rand_int(1, MOST), kinds = rand_int(1, 12);
        for (int i = 0; i < n; i++)
            ids[i] = rand_int(0, kinds);
        int best = 0, from = 0;
        for (int end = 1; end < n; end++)
            if (agree(ids, n, end) >= 2 && agree(ids, n, end) >= best) {
                best = agree(ids, n, end);
                from = end;
            }
        int want = !from ? 0 : best < 4 && most > 3 ? 3 : most;
        assert_int_equal(tg_lookup(ids, n, most, out), want);
        for (int i = 0; i < want; i++) /* a text that repeats itself goes on to do so */
            assert_int_equal(out[i], ids[from + i % (n - from)]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(longest_then_latest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
