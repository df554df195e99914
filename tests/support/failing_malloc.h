/* failing_malloc.h - lets the n-th allocation of the program fail, once. Include it in one file of a test program. The
 * sanitizers have allocators of their own: nothing fails under them. */
#ifndef TEST_FAILING_MALLOC_H
#define TEST_FAILING_MALLOC_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* Volatile: compilers know that their malloc looks at nothing of ours. */
static volatile long malloc_countdown; /* 0: none fails */
static volatile bool malloc_failed;
static volatile int malloc_exempt; /* > 0: not counted */

#if !defined(__SANITIZE_ADDRESS__) && defined(__GLIBC__)
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);

static inline bool malloc_fails(void)
{
    if (malloc_countdown == 0 || malloc_exempt > 0 || --malloc_countdown > 0)
        return false;
    malloc_failed = true;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t n)
{
    return malloc_fails() ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    return malloc_fails() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    return malloc_fails() ? NULL : __libc_realloc(p, n);
}
#endif

/* From now on the n-th fails. */
static inline void malloc_fail_at(long n)
{
    malloc_countdown = n;
    malloc_failed = false;
}

#endif
