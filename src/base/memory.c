/* memory.c - allocation with a purpose, so that running out can be explained. */
#include "base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void tg_free(void *p)
{
    free(p);
}

void *tg_alloc(size_t n, size_t size, const char *purpose, tg_error *err)
{
    size_t total;
    if (__builtin_mul_overflow(n, size, &total)) {
        tg_fail_alloc(err, SIZE_MAX, purpose);
        return NULL;
    }
    void *p = calloc(total ? total : 1, 1);
    if (!p)
        tg_fail_alloc(err, total, purpose);
    return p;
}

bool tg_grow(void **array, size_t *capacity, size_t n_need, size_t size, const char *purpose,
             tg_error *err)
{
    if (n_need <= *capacity)
        return true;
    size_t n = *capacity < SIZE_MAX / 2 ? *capacity * 2 : SIZE_MAX;
    if (n < n_need)
        n = n_need;
    if (n < 16)
        n = 16;
    size_t total;
    void *p = __builtin_mul_overflow(n, size, &total) ? NULL : realloc(*array, total);
    if (!p) {
        tg_fail_alloc(err, __builtin_mul_overflow(n, size, &total) ? SIZE_MAX : total, purpose);
        return false;
    }
    *array = p;
    *capacity = n;
    return true;
}

/* ---- arena ------------------------------------------------------------------------------- */

/* Small where `make coverage` lets each allocation fail: nearly all have a chunk to themselves then. */
#ifndef TG_ARENA_CHUNK
#define TG_ARENA_CHUNK (1 << 16)
#endif
enum { ARENA_ALIGN = 64, ARENA_CHUNK = TG_ARENA_CHUNK };

typedef struct chunk {
    struct chunk *next;
    size_t used, size; /* of the bytes that follow this header, which takes ARENA_ALIGN bytes */
} chunk;

struct tg_arena {
    chunk *head;
};

tg_arena *tg_arena_create(tg_error *err)
{
    return tg_alloc(1, sizeof(tg_arena), "an arena", err);
}

/* n_bytes that begin at a multiple of `align`, a power of two up to ARENA_ALIGN; not zeroed. */
static void *take(tg_arena *arena, size_t n_bytes, size_t align, const char *purpose, tg_error *err)
{
    if (n_bytes > SIZE_MAX / 2) {
        tg_fail_alloc(err, SIZE_MAX, purpose);
        return NULL;
    }
    chunk *c = arena->head;
    size_t at = c ? tg_round_up(c->used, align) : 0;
    if (!c || at > c->size || c->size - at < n_bytes) {
        bool large = n_bytes > ARENA_CHUNK / 8;
        size_t room = tg_round_up(large ? n_bytes : ARENA_CHUNK, ARENA_ALIGN);
        c = aligned_alloc(ARENA_ALIGN, room + ARENA_ALIGN);
        if (!c) {
            tg_fail_alloc(err, room, purpose);
            return NULL;
        }
        c->size = room;
        /* A large allocation has a chunk to itself, behind the head, which may have room for small
         * ones. */
        if (arena->head && large) {
            c->next = arena->head->next;
            arena->head->next = c;
        } else {
            c->next = arena->head;
            arena->head = c;
        }
        at = 0;
    }
    c->used = at + n_bytes;
    return (char *)c + ARENA_ALIGN + at;
}

void *tg_arena_alloc(tg_arena *arena, size_t n, size_t size, const char *purpose, tg_error *err)
{
    size_t total;
    if (__builtin_mul_overflow(n, size, &total))
        total = SIZE_MAX;
    void *p = take(arena, total, ARENA_ALIGN, purpose, err);
    return p ? memset(p, 0, total) : NULL;
}

char *tg_arena_string(tg_arena *arena, const void *bytes, size_t n, tg_error *err)
{
    char *s = n < SIZE_MAX ? take(arena, n + 1, 1, "a string", err) : NULL;
    if (!s)
        return NULL;
    if (n)
        memcpy(s, bytes, n);
    s[n] = 0;
    return s;
}

char *tg_arena_format(tg_arena *arena, tg_error *err, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    char *s = take(arena, (size_t)n + 1, 1, "a string", err);
    if (s)
        vsnprintf(s, (size_t)n + 1, fmt, again);
    va_end(again);
    va_end(args);
    return s;
}

void tg_arena_free(tg_arena *arena)
{
    if (!arena)
        return;
    for (chunk *c = arena->head, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    free(arena);
}

/* ---- reserved ranges ---------------------------------------------------------------------- */

void *tg_reserve(size_t n_bytes, const char *purpose, tg_error *err)
{
    void *p = mmap(NULL, n_bytes ? n_bytes : 1, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        tg_fail_alloc(err, n_bytes, purpose);
        return NULL;
    }
    return p;
}

static void *map_huge(size_t n_bytes, int flags, const char *purpose, tg_error *err)
{
    const size_t huge = (size_t)1 << 21, page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t used = n_bytes < SIZE_MAX / 2 ? tg_round_up(n_bytes ? n_bytes : 1, page) : SIZE_MAX / 2;
    char *room = mmap(NULL, used + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if (room == MAP_FAILED) {
        tg_fail_alloc(err, n_bytes, purpose);
        return NULL;
    }
    size_t before = -(uintptr_t)room % huge;
    if (before)
        munmap(room, before);
    munmap(room + before + used, huge - before);
#ifdef MADV_HUGEPAGE
    madvise(room + before, used, MADV_HUGEPAGE);
#endif
    return room + before;
}

void *tg_alloc_huge(size_t n_bytes, const char *purpose, tg_error *err)
{
    return map_huge(n_bytes, 0, purpose, err);
}

void *tg_reserve_huge(size_t n_bytes, const char *purpose, tg_error *err)
{
    return map_huge(n_bytes, MAP_NORESERVE, purpose, err);
}

void tg_unreserve(void *p, size_t n_bytes)
{
    if (p)
        munmap(p, n_bytes ? n_bytes : 1);
}
