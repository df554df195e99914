/* vocab.h - the tokens of a byte-level vocabulary: their bytes, their kinds, and the way back from
 * a spelling to an id.
 *
 * Files spell the bytes of a token in an alphabet of 256 printable characters ("Ġ" is a space). A
 * token whose spelling has any other character is literal text: it stands for itself (A18), and no
 * run of bytes leads to it. */
#ifndef TG_TOKEN_VOCAB_H
#define TG_TOKEN_VOCAB_H

#include "base/error.h"

/* All zero: a hole. */
typedef struct tg_vocab_token {
    uint32_t at; /* of its bytes in `text` */
    uint16_t n;
    bool is_added, is_special, is_eog;
    bool is_unused; /* has a text all the same */
} tg_vocab_token;

typedef struct tg_vocab_slot tg_vocab_slot;

typedef struct tg_vocab {
    uint64_t seed;
    int32_t n_ids;          /* ids are below this */
    int32_t n_tokens;       /* one past the highest id that a file names */
    tg_vocab_token *tokens; /* [n_ids] */
    uint8_t *text;
    size_t n_text, text_room;
    tg_vocab_slot *slots; /* spelling -> id; NULL once dropped */
    size_t n_slots, n_used;
} tg_vocab;

tg_status tg_vocab_init(tg_vocab *v, int32_t n_ids, tg_error *err);
void tg_vocab_deinit(tg_vocab *v);

/* Adds what `file` calls token `id`, spelled by n bytes. Refuses (M53, M54) an id out of range or
 * named twice, a spelling already there, too long, or not UTF-8. The empty spelling leaves a hole
 * (A17). */
tg_status tg_vocab_add(tg_vocab *v, int64_t id, const void *spelling, size_t n, const char *file,
                       tg_error *err);

/* Makes the n bytes, as they are, what `id` stands for: for added tokens, which are no spelling,
 * and which the index does not know. */
tg_status tg_vocab_set_literal(tg_vocab *v, int32_t id, const void *bytes, size_t n, tg_error *err);

/* The id of a spelling, or of the token that stands for the bytes; -1 when there is none. */
int32_t tg_vocab_find(const tg_vocab *v, const void *spelling, size_t n);
int32_t tg_vocab_find_bytes(const tg_vocab *v, const uint8_t *bytes, size_t n);

/* Frees the index that both finds need. */
void tg_vocab_drop_index(tg_vocab *v);

#endif
