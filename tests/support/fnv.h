/* fnv.h - FNV-1a, to hold much against one expected number. */
#ifndef TEST_FNV_H
#define TEST_FNV_H

#include <stddef.h>
#include <stdint.h>

#define FNV_START 0xcbf29ce484222325u

static inline uint64_t fnv_add(uint64_t h, uint64_t v)
{
    return (h ^ v) * 0x100000001b3u;
}

static inline uint64_t fnv_bytes(uint64_t h, const uint8_t *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = fnv_add(h, s[i]);
    return h;
}

#endif
