/* blas.c - OpenBLAS's only caller. */
#include "kernel/blas.h"

#include <cblas.h>

void tg_blas_gemm(int m, int n, int k, const float *a, size_t lda, const float *b, size_t ldb, bool add, float *c,
                  size_t ldc)
{
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1.0f, a, (blasint)lda, b,
                (blasint)ldb, add ? 1.0f : 0.0f, c, (blasint)ldc);
}

void tg_blas_warm_up(void)
{
    float a[16] = {0}, b[16] = {0}, c[16];
    tg_blas_gemm(4, 4, 4, a, 4, b, 4, false, c, 4);
}

const char *tg_blas_name(void)
{
    return openblas_get_corename();
}
