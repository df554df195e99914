/* pretokenize.h - cutting text into the pieces that merges never cross.
 *
 * The reference does this with regular expressions; here each pattern is a linear scanner with
 * constant stack. The table in pretokenize.c has one row for each, and nothing outside it is
 * accepted (M59). */
#ifndef TG_TOKEN_PRETOKENIZE_H
#define TG_TOKEN_PRETOKENIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_pretokenizer tg_pretokenizer;

struct tg_pretokenizer {
    const char *name;       /* as tokenizer.ggml.pre has it */
    const char *aliases[4]; /* its other spellings there */
    const char *regex[2];   /* as tokenizer.json has it, in its spellings */
    unsigned isolated; /* a character of these classes (unicode.h) is cut out before all else */
    unsigned letters;  /* these go with \p{L}, but for the character that a word may begin with */
    int max_digits;    /* longest piece of \p{N}; 0: any */
    bool contractions; /* a word takes 's, 't and the like along */
    bool slash;        /* as the newlines do, it goes with the punctuation before it */
    size_t (*scan)(const tg_pretokenizer *p, const uint8_t *s, size_t n);
    /* What goes with the name in a GGUF file, which does not say it. */
    bool ignore_merges, nfc, add_bos;
};

/* NULL: unknown. Of the rows that cut alike, an expression gives the first. */
const tg_pretokenizer *tg_pretokenizer_by_name(const char *name);
const tg_pretokenizer *tg_pretokenizer_by_regex(const char *regex, bool isolate_digits);

/* The i-th row, or NULL: for tests and messages. */
const tg_pretokenizer *tg_pretokenizer_at(size_t i);

/* Length in bytes, at least 1, of the piece that begins at s, where n > 0 bytes of text are left. s
 * is the start of the text or the end of the piece before. Bytes that are no UTF-8 are characters
 * of no class, one each. */
static inline size_t tg_pretokenizer_piece(const tg_pretokenizer *p, const uint8_t *s, size_t n)
{
    return p->scan(p, s, n);
}

/* The expression that ByteLevel stands for. */
extern const char tg_pretokenizer_gpt2_regex[];

#endif
