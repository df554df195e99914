/* blas.h - the one door to OpenBLAS. */
#ifndef TG_KERNEL_BLAS_H
#define TG_KERNEL_BLAS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* To come before all else but the name; again costs nothing. TG_E_IO when it is not there, TG_E_RESOURCE when it has no
 * room. */
tg_status tg_blas_load(tg_error *err);

/* Of address space, at most, that it has not taken yet, in whole pages: the library, the buffers that it takes when it is
 * loaded, and those of n threads that call it together. Without them it does not return. */
size_t tg_blas_bytes(int n_threads);

/* c[m][n] = a[m][k] * b[n][k]^T, or with `add` c += that, row-major with the given row lengths; single-threaded
 * when called from inside a team's program. */
void tg_blas_gemm(int m, int n, int k, const float *a, size_t lda, const float *b, size_t ldb, bool add, float *c,
                  size_t ldc);

/* OpenBLAS ends the process when it cannot get its buffers: have it take those of so many threads (TG_MAX_THREADS at
 * most) before there is much to lose. */
void tg_blas_warm_up(int n_threads);

const char *tg_blas_name(void); /* its kernels' name, or why there is none */

#endif
