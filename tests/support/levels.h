/* levels.h - do all instruction-set levels give the same bits? A test program runs itself again with
 * --print-bits at each level, and compares what the children print. */
#ifndef TESTS_LEVELS_H
#define TESTS_LEVELS_H

#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static FILE *level_child(const char *program, const char *level)
{
    char command[1024];
    snprintf(command, sizeof command, "TINYGPT_ISA=%s '%s' --print-bits", level, program);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    return f;
}

/* Returns how many lines there were. A level that the processor lacks is one of the lower ones, and passes. */
static inline int levels_agree(const char *program)
{
    static const char *const levels[] = {"scalar", "avx2", "avx512"};
    FILE *f[3];
    char want[256], got[256];
    int n = 0;
    for (int i = 0; i < 3; i++)
        f[i] = level_child(program, levels[i]);
    for (; fgets(want, sizeof want, f[0]); n++)
        for (int i = 1; i < 3; i++) {
            assert_non_null(fgets(got, sizeof got, f[i]));
            if (strcmp(want, got))
                fail_msg("%s differs: %s%s", levels[i], want, got);
        }
    for (int i = 0; i < 3; i++)
        assert_int_equal(pclose(f[i]), 0);
    return n;
}

#endif
