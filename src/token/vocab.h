/* vocab.h - the tokens of a vocabulary: their bytes, their kinds, and the way back from a spelling
 * to an id.
 *
 * Files spell tokens in one of two alphabets. Byte-level ones have 256 printable characters for the
 * bytes ("Ġ" is a space); a token whose spelling has any other character is literal text: it stands
 * for itself (A18), and no run of bytes leads to it. SentencePiece's are text, in which "▁" is a
 * space; those of the form "<0x0A>" stand for a byte, and no text leads to them. */
#ifndef TG_TOKEN_VOCAB_H
#define TG_TOKEN_VOCAB_H

#include "base/error.h"

/* All zero: a hole. */
typedef struct tg_vocab_token {
    uint32_t at; /* of its bytes in `text` */
    uint16_t n;
    bool is_added, is_special, is_eog;
    bool is_unused;  /* has a text all the same */
    bool is_literal; /* no run of bytes leads to it */
} tg_vocab_token;

typedef struct tg_vocab_slot tg_vocab_slot;

typedef enum tg_alphabet { TG_ALPHABET_BYTES, TG_ALPHABET_TEXT } tg_alphabet;

typedef struct tg_vocab {
    uint64_t seed;
    tg_alphabet alphabet;   /* set before the first token */
    int32_t n_ids;          /* ids are below this */
    int32_t n_tokens;       /* one past the highest id that a file names */
    tg_vocab_token *tokens; /* [n_ids] */
    uint8_t *text;
    size_t n_text, text_room;
    size_t longest;         /* bytes of a token */
    bool before_space[256]; /* of text: bytes that some token has before a space */
    tg_vocab_slot *slots;   /* spelling -> id; NULL once dropped */
    size_t n_slots, n_used;
} tg_vocab;

tg_status tg_vocab_init(tg_vocab *v, int32_t n_ids, tg_error *err);
void tg_vocab_deinit(tg_vocab *v);
/* Room in the index for n tokens, at most n_ids. More may come, and grow it. */
tg_status tg_vocab_reserve(tg_vocab *v, uint64_t n, tg_error *err);

/* Adds what `file` calls token `id`, spelled by n bytes. Refuses (M53, M54) an id out of range or
 * named twice, a spelling already there, too long, or not UTF-8. The empty spelling leaves a hole
 * (A17). */
tg_status tg_vocab_add(tg_vocab *v, int64_t id, const void *spelling, size_t n, const char *file,
                       tg_error *err);

/* Makes the n bytes, as they are, what `id` stands for: for added tokens, which are no spelling,
 * and which the index does not know. */
tg_status tg_vocab_set_literal(tg_vocab *v, int32_t id, const void *bytes, size_t n, tg_error *err);

/* The byte that a spelling of the form "<0x0A>" names, or -1. */
int tg_vocab_named_byte(const void *spelling, size_t n);

/* The id of a spelling, or of the token that stands for the bytes; -1 when there is none. */
int32_t tg_vocab_find(const tg_vocab *v, const void *spelling, size_t n);
int32_t tg_vocab_find_bytes(const tg_vocab *v, const uint8_t *bytes, size_t n);
/* The ids of two spellings, and of the one that they are when joined, which is looked for first at
 * `guess`: merges and what they make mostly stand in the same order. */
void tg_vocab_find_merge(const tg_vocab *v, const void *left, size_t n_left, const void *right,
                         size_t n_right, int32_t guess, int32_t ids[3]);

/* Frees the index that the finds need. */
void tg_vocab_drop_index(tg_vocab *v);

#endif
