/* unicode.h - what the pre-tokenizers ask of a character: its classes, as the reference sees them.
 *
 * The tables are generated (tools/make-unicode.py). Normalisation has its own file, nfc.h. */
#ifndef TG_TOKEN_UNICODE_H
#define TG_TOKEN_UNICODE_H

#include "base/utf8.h"

enum {
    TG_CLASS_LETTER = 1,  /* \p{L} */
    TG_CLASS_NUMBER = 2,  /* \p{N} */
    TG_CLASS_SPACE = 4,   /* \s */
    TG_CLASS_NUMERIC = 8, /* what the pre-tokenizer Digits isolates: as \p{N}, of a later Unicode */
    TG_CLASS_WORD = 16,   /* \w */
    TG_CLASS_MARK = 32,   /* \p{M} */
    TG_CLASS_UPPER = 64,  /* \p{Lu}, \p{Lt} */
    TG_CLASS_LOWER = 128, /* \p{Ll} */
};

extern const uint8_t tg_class_ascii[128];

unsigned tg_class_of(uint32_t code); /* any code point */

/* The classes of the character at s, of which n > 0 bytes are there, and its length in *length. A
 * byte that begins no valid character is one by itself, of no class. */
static inline unsigned tg_class_at(const uint8_t *s, size_t n, size_t *length)
{
    *length = 1;
    if (s[0] < 0x80)
        return tg_class_ascii[s[0]];
    uint32_t code;
    int k = tg_utf8_decode(s, n, &code);
    if (k == 0)
        return 0;
    *length = (size_t)k;
    return tg_class_of(code);
}

#endif
