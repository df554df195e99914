/* body_fused.c - quantised weights as they lie in files; compiled once per instruction-set level. */
#define TABLE             tg_fused_kernels
#define STRIDE(row_bytes) (row_bytes)
#include "kernel/fused.h"
