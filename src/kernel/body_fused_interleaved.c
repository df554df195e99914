/* body_fused_interleaved.c - quantised weights that interleave.c has laid anew; compiled once per
 * instruction-set level. */
#define TABLE             tg_interleaved_kernels
#define STRIDE(row_bytes) ((void)(row_bytes), (size_t)0)
#include "kernel/fused.h"
