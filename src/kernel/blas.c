/* blas.c - OpenBLAS's only caller. It is loaded when float weights are there: its start takes time and a buffer of
 * 128 MiB of address space, which it asks for again and again where there is none; linked, it would do so before main. */
#include "kernel/blas.h"

#include <cblas.h>
#include <dlfcn.h>
#include <pthread.h>

#include "base/memory.h"

/* The build for OpenMP first, wherever the system's plain name leads. */
static const char *const libraries[] = {TG_BLAS_DIR "libopenblas.so.0", "libopenblas.so.0"};

static struct {
    __typeof__(&cblas_sgemm) sgemm;
    __typeof__(&openblas_get_corename) name;
    void *(*take_buffer)(int where); /* what its products do first and last, though no header has it: may be NULL */
    void (*give_buffer)(void *buffer);
    int n_threads; /* that have their buffers */
} blas;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* It takes a buffer for each thread that OpenMP has by itself, whatever the team will be, beside those of its callers. */
size_t tg_blas_bytes(int n_threads)
{
    const size_t library = (size_t)48 << 20, buffer = (size_t)129 << 20;
    pthread_mutex_lock(&lock);
    const int n_new = n_threads > blas.n_threads ? n_threads - blas.n_threads : 0;
    const size_t first = blas.sgemm ? 0 : library + buffer * (size_t)tg_team_openmp_size();
    pthread_mutex_unlock(&lock);
    return first + buffer * (size_t)n_new;
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
    void *library = NULL;
    if (check_room(err) != TG_OK)
        return TG_E_RESOURCE;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; !blas.sgemm && !library && i < sizeof libraries / sizeof *libraries; i++)
        library = dlopen(libraries[i], RTLD_NOW);
    if (library) {
        blas.name = (__typeof__(blas.name))dlsym(library, "openblas_get_corename");
        blas.take_buffer = (__typeof__(blas.take_buffer))dlsym(library, "blas_memory_alloc");
        blas.give_buffer = (__typeof__(blas.give_buffer))dlsym(library, "blas_memory_free");
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

/* One after the other, and all are held until each has its own: else one could do for all that come later. */
static void take_buffers(const tg_worker *w, void *arg)
{
    float a[16] = {0}, b[16] = {0}, c[16];
    void *buffer = NULL;
    (void)arg;
    for (int rank = 0; rank < w->size; rank++) {
        if (rank == w->rank && blas.take_buffer && blas.give_buffer)
            buffer = blas.take_buffer(0);
        tg_barrier(w);
    }
    if (buffer)
        blas.give_buffer(buffer);
    else
        tg_blas_gemm(4, 4, 4, a, 4, b, 4, false, c, 4);
}

void tg_blas_warm_up(tg_team *team)
{
    tg_team_run(team, take_buffers, NULL);
    pthread_mutex_lock(&lock);
    blas.n_threads = tg_team_size(team) > blas.n_threads ? tg_team_size(team) : blas.n_threads;
    pthread_mutex_unlock(&lock);
}

const char *tg_blas_name(void)
{
    const tg_status status = tg_blas_load(NULL);
    return status == TG_OK           ? blas.name()
           : status == TG_E_RESOURCE ? "has no room here (ulimit -v)"
                                     : "cannot be loaded";
}
