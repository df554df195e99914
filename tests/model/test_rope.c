/* Frequencies of rotary positions. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/rope.h"

/* U24: Llama 3's scaling of 64 dimensions at theta 500,000: of the 32 pairs the first 15 turn as they did, three lie
 * between, and the rest turn 32 times slower. */
static void llama3_pairs(void **state)
{
    (void)state;
    const tg_rope rope = {.n_rot = 64, .theta = 5e5, .scaling = TG_ROPE_LLAMA3, .factor = 32, .original_ctx = 8192,
                          .low_freq_factor = 1, .high_freq_factor = 4};
    float f[32];
    assert_true(tg_rope_frequencies(&rope, (tg_rope_factors){0}, 131072, f) == 1.0f);
    for (int i = 0; i < 32; i++) {
        double plain = pow(5e5, -2.0 * i / 64), ratio = (double)f[i] / plain;
        if (i <= 14)
            assert_true(fabs(ratio - 1) < 1e-6);
        else if (i <= 17)
            assert_true(ratio < 1 - 1e-3 && ratio > 1.0 / 32 + 1e-3);
        else
            assert_true(fabs(ratio * 32 - 1) < 1e-6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(llama3_pairs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
