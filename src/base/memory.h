/* memory.h - checked sizes, allocation, and the arena.
 *
 * Sizes are uint64_t or size_t and every product or sum that involves a number from outside goes
 * through the checked forms, which return false on overflow. */
#ifndef TG_BASE_MEMORY_H
#define TG_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

static inline bool tg_mul_u64(uint64_t a, uint64_t b, uint64_t *r)
{
    return !__builtin_mul_overflow(a, b, r);
}

static inline bool tg_add_u64(uint64_t a, uint64_t b, uint64_t *r)
{
    return !__builtin_add_overflow(a, b, r);
}

static inline size_t tg_round_up(size_t n, size_t to) /* `to` is any positive number */
{
    return (n + to - 1) / to * to;
}

/* Zeroed memory for n elements of `size` bytes. NULL, with err filled, when the product overflows or
 * there is none. n = 0 gives a pointer that can be freed. */
void *tg_alloc(size_t n, size_t size, const char *purpose, tg_error *err);

/* Grows *array so that it holds n_need elements; *capacity follows, at least doubling. */
bool tg_grow(void **array, size_t *capacity, size_t n_need, size_t size, const char *purpose,
             tg_error *err);

/* An arena: allocations that live and die together, for what a loaded file leaves behind: names,
 * tables. tg_arena_alloc gives zeroed memory aligned to 64 bytes; strings are packed. */
typedef struct tg_arena tg_arena;

tg_arena *tg_arena_create(tg_error *err);
void *tg_arena_alloc(tg_arena *arena, size_t n, size_t size, const char *purpose, tg_error *err);
char *tg_arena_string(tg_arena *arena, const void *bytes, size_t n, tg_error *err); /* adds a NUL */
char *tg_arena_format(tg_arena *arena, tg_error *err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void tg_arena_free(tg_arena *arena);

/* Lays arrays out one behind the other at `base`, each at a multiple of 64 bytes: `pointer` gets its
 * place and `at`, a size_t that starts at 0, moves on. With base NULL it only adds up what they take. */
#define TG_PLACE(pointer, base, at, count)                                                         \
    do {                                                                                           \
        (pointer) = (void *)((base) ? (char *)(base) + (at) : NULL);                               \
        (at) = tg_round_up((at) + (size_t)(count) * sizeof *(pointer), 64);                        \
    } while (0)

/* Reserves address space, zero and untouched: pages take memory when they are first written. NULL,
 * with err filled, when there is none. */
void *tg_reserve(size_t n_bytes, const char *purpose, tg_error *err);
void tg_unreserve(void *p, size_t n_bytes);

/* Zeroed memory from a boundary of huge pages on, for what is streamed again and again: in huge pages where the
 * system gives them. What the machine has not in all is refused. Given back with tg_unreserve. */
void *tg_alloc_huge(size_t n_bytes, const char *purpose, tg_error *err);

/* tg_reserve in huge pages: 2 MiB take memory when one byte of them is first written. */
void *tg_reserve_huge(size_t n_bytes, const char *purpose, tg_error *err);

#endif
