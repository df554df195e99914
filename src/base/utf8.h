/* utf8.h - decoding UTF-8 strictly: no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef TG_BASE_UTF8_H
#define TG_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes the character at s, of which n > 0 bytes are there. Returns its length in bytes, 1 to 4,
 * and the code point; 0 when no valid character starts here. */
int tg_utf8_decode(const uint8_t *s, size_t n, uint32_t *code);

/* When no valid character starts at s: the length of the maximal prefix that could begin one, at
 * least 1 (Unicode 16, section 3.9: one U+FFFD stands for it). *cut tells whether it is valid so far
 * and only ends too early. */
int tg_utf8_bad(const uint8_t *s, size_t n, bool *cut);

int tg_utf8_encode(uint32_t code, uint8_t out[4]); /* length in bytes */
bool tg_utf8_valid(const uint8_t *s, size_t n);

#endif
