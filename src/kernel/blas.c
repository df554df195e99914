/* blas.c - OpenBLAS's only caller. It is loaded when float weights are there: its start takes time and a buffer of
 * 128 MiB of address space, which it asks for again and again where there is none; linked, it would do so before main. */
#include "kernel/blas.h"

#include <cblas.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "kernel/team.h"

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

/* The threads that it wants for itself when it is loaded: one for each processor, allowed or not, or what this says. */
static size_t n_threads_of_its_own(void)
{
    const char *said = getenv("OMP_NUM_THREADS");
    const long n_processors = sysconf(_SC_NPROCESSORS_CONF), n = said ? strtol(said, NULL, 10) : 0;
    return (size_t)(n > 0 && n < n_processors ? n : n_processors > 0 ? n_processors : 1);
}

/* It takes a buffer for each of those, whatever the team will be, beside those of its callers. */
size_t tg_blas_bytes(int n_threads)
{
    const size_t library = (size_t)48 << 20, buffer = (size_t)129 << 20;
    pthread_mutex_lock(&lock);
    const int n_new = n_threads > blas.n_threads ? n_threads - blas.n_threads : 0;
    const size_t first = blas.sgemm ? 0 : library + buffer * n_threads_of_its_own();
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

/* All are held until the last is there: else one could do for all. By this thread: what the others allocate comes from
 * arenas of their own, for which there may be no room. */
void tg_blas_warm_up(int n_threads)
{
    float a[16] = {0}, b[16] = {0}, c[16];
    void *buffer[TG_MAX_THREADS];
    const bool can_take = blas.take_buffer && blas.give_buffer;
    for (int i = 0; i < n_threads && can_take; i++)
        buffer[i] = blas.take_buffer(0);
    for (int i = 0; i < n_threads && can_take; i++)
        blas.give_buffer(buffer[i]);
    tg_blas_gemm(4, 4, 4, a, 4, b, 4, false, c, 4);
    pthread_mutex_lock(&lock);
    blas.n_threads = n_threads > blas.n_threads ? n_threads : blas.n_threads;
    pthread_mutex_unlock(&lock);
}

const char *tg_blas_name(void)
{
    const tg_status status = tg_blas_load(NULL);
    return status == TG_OK           ? blas.name()
           : status == TG_E_RESOURCE ? "has no room here (ulimit -v)"
                                     : "cannot be loaded";
}
