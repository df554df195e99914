/* hash.h - hashing of strings and pairs with a random seed, since the keys come from files and
 * prompts. */
#ifndef TG_TOKEN_HASH_H
#define TG_TOKEN_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

/* The seed moves slots about and never shows in a result; without entropy an address has to do. */
static inline uint64_t tg_hash_seed(void)
{
    uint64_t seed = (uint64_t)(uintptr_t)&seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed)
        seed ^= (uint64_t)(uintptr_t)&tg_hash_seed;
    return seed;
}

/* The 128-bit product, folded: every bit of both factors reaches every bit of the result. */
static inline uint64_t tg_hash_fold(uint64_t a, uint64_t b)
{
    __extension__ typedef unsigned __int128 wide;
    wide p = (wide)a * b;
    return (uint64_t)p ^ (uint64_t)(p >> 64);
}

static inline uint64_t tg_hash_u64(uint64_t seed, uint64_t v)
{
    return tg_hash_fold(seed ^ v, 0x9e3779b97f4a7c15u);
}

static inline uint64_t tg_hash_bytes(uint64_t seed, const uint8_t *s, size_t n)
{
    uint64_t h = seed ^ n * 0xd6e8feb86659fd93u, w = 0;
    for (; n > 8; s += 8, n -= 8) {
        memcpy(&w, s, 8);
        h = tg_hash_u64(h, w);
    }
    if (n >= 4) { /* two halves, which may overlap */
        uint32_t low, high;
        memcpy(&low, s, 4);
        memcpy(&high, s + n - 4, 4);
        w = (uint64_t)high << 32 | low;
    } else if (n > 0) {
        w = (uint64_t)s[0] << 16 | (uint64_t)s[n / 2] << 8 | s[n - 1];
    }
    return tg_hash_u64(h, w);
}

#endif
