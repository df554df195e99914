/* sum.h - a running 64-bit sum of bytes, by which damage is found and things are told apart.
 *
 * It takes words of 8 bytes. For a given word a step is a bijection of the sum, and for a given sum one of the word: an
 * addition of a constant, a product with an odd number, an exclusive or with the upper half. So where two texts of one
 * length differ in one word, in whichever of its bits, their sums differ behind it and stay different to the end: a
 * changed bit is always found, and any other damage but once in 2^64. Nobody is kept from making a text for a sum. */
#ifndef TG_BASE_SUM_H
#define TG_BASE_SUM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t tg_sum_word(uint64_t sum, uint64_t word)
{
    sum = ((sum ^ word) + 0x9e3779b97f4a7c15u) * 0xd6e8feb86659fd93u;
    return sum ^ sum >> 32;
}

/* n bytes, zeros up to a whole word behind them. */
static inline uint64_t tg_sum_bytes(uint64_t sum, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    uint64_t word;
    for (; n >= sizeof word; n -= sizeof word, p += sizeof word) {
        memcpy(&word, p, sizeof word);
        sum = tg_sum_word(sum, word);
    }
    word = 0;
    if (n > 0) {
        memcpy(&word, p, n);
        sum = tg_sum_word(sum, word);
    }
    return sum;
}

/* The same with its length before it, so that of several texts each has its place. */
static inline uint64_t tg_sum_text(uint64_t sum, const void *bytes, size_t n)
{
    return tg_sum_bytes(tg_sum_word(sum, n), bytes, n);
}

#endif
