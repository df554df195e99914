/* isa.h - instruction-set levels, and the level in use.
 *
 * Files named body_*.c are compiled once per level; each defines a table of functions named after it.
 * All levels give the same bits: a level is a matter of speed. */
#ifndef TG_KERNEL_ISA_H
#define TG_KERNEL_ISA_H

#include <stdbool.h>

#define TG_ISA_scalar 0 /* plain C */
#define TG_ISA_avx2   1 /* AVX2, FMA, F16C */
#define TG_ISA_avx512 2 /* AVX-512 F, BW, DQ, VL, VNNI */

/* The best level that processor and operating system support; TINYGPT_ISA=scalar|avx2|avx512 in the
 * environment lowers it. Decided at the first call. */
int tg_isa_level(void);
const char *tg_isa_name(void);

/* May BF16 products be used (vf_dot_bf16)? At the AVX-512 level a processor may lack the instruction. */
bool tg_isa_has_bf16(void);

/* Names a level's own symbol: TG_ISA_SYMBOL(tg_matmul_kernels) -> tg_matmul_kernels_avx2 */
#define TG_ISA_PASTE(a, b)   a##_##b
#define TG_ISA_PASTE2(a, b)  TG_ISA_PASTE(a, b)
#define TG_ISA_SYMBOL(name)  TG_ISA_PASTE2(name, TG_ISA_NAME)

/* Picks among the tables `name`_scalar, `name`_avx2, ... */
#ifdef TG_LEVELS_x86
#define TG_ISA_DECLARE(type, name) extern const type name##_scalar, name##_avx2, name##_avx512
#define TG_ISA_PICK(name)                                                                          \
    (tg_isa_level() == TG_ISA_avx512 ? &name##_avx512                                              \
     : tg_isa_level() == TG_ISA_avx2 ? &name##_avx2                                                \
                                     : &name##_scalar)
#else
#define TG_ISA_DECLARE(type, name) extern const type name##_scalar
#define TG_ISA_PICK(name)          (&name##_scalar)
#endif

#endif
