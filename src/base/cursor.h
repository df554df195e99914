/* cursor.h - the checked byte cursor: the only way that bytes of a file are read.
 *
 * A cursor walks [base, base + size). Every read is checked against what remains by subtraction; the
 * first read past the end sets `failed`, and all later ones return zero without moving, so that a
 * parser may read a group of fields and test once. Integers are little-endian. */
#ifndef TG_BASE_CURSOR_H
#define TG_BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct tg_cursor {
    const uint8_t *base;
    uint64_t size, pos;
    bool failed;
} tg_cursor;

static inline tg_cursor tg_cursor_make(const void *base, uint64_t size)
{
    return (tg_cursor){.base = base, .size = size};
}

static inline uint64_t tg_cursor_left(const tg_cursor *c)
{
    return c->size - c->pos;
}

/* n bytes, borrowed from the range; NULL when fewer remain. */
static inline const uint8_t *tg_cursor_bytes(tg_cursor *c, uint64_t n)
{
    if (c->failed || n > tg_cursor_left(c)) {
        c->failed = true;
        return NULL;
    }
    const uint8_t *p = c->base + c->pos;
    c->pos += n;
    return p;
}

static inline uint64_t tg_cursor_uint(tg_cursor *c, int n_bytes) /* 1, 2, 4 or 8 */
{
    const uint8_t *p = tg_cursor_bytes(c, (uint64_t)n_bytes);
    uint64_t v = 0;
    for (int i = 0; p && i < n_bytes; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static inline uint8_t tg_cursor_u8(tg_cursor *c)
{
    return (uint8_t)tg_cursor_uint(c, 1);
}

static inline uint32_t tg_cursor_u32(tg_cursor *c)
{
    return (uint32_t)tg_cursor_uint(c, 4);
}

static inline uint64_t tg_cursor_u64(tg_cursor *c)
{
    return tg_cursor_uint(c, 8);
}

#endif
