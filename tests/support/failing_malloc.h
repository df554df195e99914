/* failing_malloc.h - lets the n-th allocation of the program fail, once or from then on, and counts what is allocated.
 * Include it in one file of a test program. Maps of memory and of files count as allocations, too; the sanitizers have
 * allocators of their own: nothing fails under them, and nothing is counted. */
#ifndef TEST_FAILING_MALLOC_H
#define TEST_FAILING_MALLOC_H

#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if !defined(__SANITIZE_ADDRESS__) && defined(__GLIBC__)
#define MALLOC_CAN_FAIL 1
#else
#define MALLOC_CAN_FAIL 0
#endif

/* Volatile: compilers know that their malloc looks at nothing of ours. */
static volatile long malloc_countdown; /* 0: none fails */
static volatile bool malloc_for_ever;  /* with the n-th, all behind it */
static volatile bool malloc_failed;
static volatile int malloc_exempt; /* > 0: not counted */
static volatile long malloc_blocks, malloc_mapped; /* that are there now: blocks, and bytes of maps */

#if MALLOC_CAN_FAIL
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);
void __libc_free(void *p);

static inline bool malloc_fails(void)
{
    if (malloc_countdown == 0 || malloc_exempt > 0 || (malloc_countdown > 1 && malloc_countdown--))
        return false;
    malloc_countdown = malloc_for_ever;
    malloc_failed = true;
    errno = ENOMEM;
    return true;
}

/* Threads allocate, too. */
static inline void *malloc_count(void *p)
{
    if (p)
        __atomic_fetch_add(&malloc_blocks, 1, __ATOMIC_RELAXED);
    return p;
}

void *malloc(size_t n)
{
    return malloc_fails() ? NULL : malloc_count(__libc_malloc(n));
}

void *calloc(size_t n, size_t size)
{
    return malloc_fails() ? NULL : malloc_count(__libc_calloc(n, size));
}

void *realloc(void *p, size_t n)
{
    if (malloc_fails())
        return NULL;
    void *more = __libc_realloc(p, n);
    return p ? more : malloc_count(more);
}

void *memalign(size_t align, size_t n)
{
    return malloc_fails() ? NULL : malloc_count(__libc_memalign(align, n));
}

void *aligned_alloc(size_t align, size_t n)
{
    return memalign(align, n);
}

int posix_memalign(void **p, size_t align, size_t n)
{
    void *block = memalign(align, n);
    if (block)
        *p = block;
    return block ? 0 : ENOMEM;
}

void free(void *p)
{
    if (p)
        __atomic_fetch_sub(&malloc_blocks, 1, __ATOMIC_RELAXED);
    __libc_free(p);
}

static inline void malloc_count_map(size_t n, long sign)
{
    __atomic_fetch_add(&malloc_mapped, sign * (long)((n + 4095) / 4096 * 4096), __ATOMIC_RELAXED);
}

void *mmap(void *p, size_t n, int protection, int flags, int fd, off_t at)
{
    if (malloc_fails())
        return MAP_FAILED;
    long got = syscall(SYS_mmap, p, n, protection, flags, fd, at);
    if (got != -1 && !(flags & MAP_FIXED)) /* that one stands in the room of another */
        malloc_count_map(n, 1);
    return (void *)got;
}

int munmap(void *p, size_t n)
{
    malloc_count_map(n, -1);
    return (int)syscall(SYS_munmap, p, n);
}
#endif

/* From now on the n-th fails. */
static inline void malloc_fail_at(long n)
{
    malloc_countdown = n;
    malloc_for_ever = malloc_failed = false;
}

/* And all behind it. */
static inline void malloc_fail_from(long n)
{
    malloc_fail_at(n);
    malloc_for_ever = true;
}

#endif
