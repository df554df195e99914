/* blas.c - OpenBLAS's only caller. It is loaded when float weights are there: its start takes time and a buffer of
 * 128 MiB of address space, which it asks for again and again where there is none; linked, it would do so before main. */
#include "kernel/blas.h"

#include <cblas.h>
#include <dlfcn.h>
#include <pthread.h>

#include "base/memory.h"
#include "kernel/team.h"

/* The build for OpenMP first, wherever the system's plain name leads. */
static const char *const libraries[] = {TG_BLAS_DIR "libopenblas.so.0", "libopenblas.so.0"};

static struct {
    __typeof__(&cblas_sgemm) sgemm;
    __typeof__(&openblas_get_corename) name;
} blas;

/* It takes a buffer for each thread that OpenMP has by itself, whatever the team will be, beside those of its callers. */
size_t tg_blas_bytes(int n_threads)
{
    const size_t library = (size_t)48 << 20, buffer = (size_t)129 << 20;
    return library + buffer * (size_t)(tg_team_openmp_size() + n_threads);
}

static tg_status check_room(tg_error *err)
{
    const size_t n_bytes = tg_blas_bytes(1);
    void *room = tg_reserve(n_bytes, "OpenBLAS and its buffers", err);
    tg_unreserve(room, n_bytes);
    return room ? TG_OK : TG_E_RESOURCE;
}

tg_status tg_blas_load(tg_error *err)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    void *library = NULL;
    pthread_mutex_lock(&lock);
    if (!blas.sgemm && check_room(err) != TG_OK) {
        pthread_mutex_unlock(&lock);
        return TG_E_RESOURCE;
    }
    for (size_t i = 0; !blas.sgemm && !library && i < sizeof libraries / sizeof *libraries; i++)
        library = dlopen(libraries[i], RTLD_NOW);
    if (library) {
        blas.name = (__typeof__(blas.name))dlsym(library, "openblas_get_corename");
        blas.sgemm = (__typeof__(blas.sgemm))dlsym(library, "cblas_sgemm");
    }
    const bool is_there = blas.sgemm && blas.name;
    const char *why = is_there ? NULL : dlerror();
    pthread_mutex_unlock(&lock);
    tg_quoted q;
    return is_there ? TG_OK
                    : tg_fail(err, TG_E_IO, NULL, "OpenBLAS cannot be loaded: %s",
                              tg_quote_str(&q, why ? why : "a function is missing"));
}

void tg_blas_gemm(int m, int n, int k, const float *a, size_t lda, const float *b, size_t ldb, bool add, float *c,
                  size_t ldc)
{
    blas.sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1.0f, a, (blasint)lda, b,
               (blasint)ldb, add ? 1.0f : 0.0f, c, (blasint)ldc);
}

void tg_blas_warm_up(void)
{
    float a[16] = {0}, b[16] = {0}, c[16];
    tg_blas_gemm(4, 4, 4, a, 4, b, 4, false, c, 4);
}

const char *tg_blas_name(void)
{
    return tg_blas_load(NULL) == TG_OK ? blas.name() : "not found";
}
