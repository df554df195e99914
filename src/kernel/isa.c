/* isa.c - which instruction set to use, asked once. */
#include "kernel/isa.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#ifdef TG_LEVELS_x86
#include <cpuid.h>

static int has_f16c(void) /* not every compiler's list of features has it */
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

static const char *const names[] = {"scalar", "avx2", "avx512"};

static int detect(void)
{
    int level = TG_ISA_scalar;
#ifdef TG_LEVELS_x86
    /* These ask the operating system, too, whether it saves the registers. */
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        has_f16c())
        level = TG_ISA_avx2;
    if (level == TG_ISA_avx2 && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni"))
        level = TG_ISA_avx512;
#endif
    const char *wish = getenv("TINYGPT_ISA");
    for (int l = 0; wish && l < level; l++)
        if (strcmp(wish, names[l]) == 0)
            return l;
    return level;
}

int tg_isa_level(void)
{
    static atomic_int cached = -1;
    int level = atomic_load_explicit(&cached, memory_order_relaxed);
    if (level < 0) {
        level = detect(); /* racing callers find the same */
        atomic_store_explicit(&cached, level, memory_order_relaxed);
    }
    return level;
}

const char *tg_isa_name(void)
{
    return names[tg_isa_level()];
}

bool tg_isa_has_bf16(void)
{
#ifdef TG_LEVELS_x86
    if (tg_isa_level() == TG_ISA_avx512)
        return __builtin_cpu_supports("avx512bf16");
#endif
    return true; /* elsewhere it is spelled out */
}
