/* bytes.h - a growing run of little-endian bytes, for building files in memory. */
#ifndef TEST_BYTES_H
#define TEST_BYTES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct bytes {
    uint8_t *data;
    size_t n, capacity;
} bytes;

static inline void put(bytes *b, const void *p, size_t n)
{
    if (b->n + n > b->capacity) {
        b->capacity = 2 * (b->n + n);
        b->data = realloc(b->data, b->capacity);
        if (!b->data)
            abort();
    }
    if (n)
        memcpy(b->data + b->n, p, n);
    b->n += n;
}

static inline void put_uint(bytes *b, uint64_t v, int n_bytes)
{
    for (int i = 0; i < n_bytes; i++)
        put(b, &(uint8_t){(uint8_t)(v >> (8 * i))}, 1);
}

static inline void put_u32(bytes *b, uint32_t v)
{
    put_uint(b, v, 4);
}

static inline void put_u64(bytes *b, uint64_t v)
{
    put_uint(b, v, 8);
}

static inline void put_text(bytes *b, const char *s)
{
    put(b, s, strlen(s));
}

static inline void put_zeros(bytes *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put(b, "", 1);
}

static inline void bytes_free(bytes *b)
{
    free(b->data);
    *b = (bytes){0};
}

#endif
