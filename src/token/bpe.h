/* bpe.h - byte pair encoding of one piece of text: the lowest rank first, the leftmost on ties.
 *
 * A piece begins as symbols: its bytes, or its characters, where a character that is no token is
 * its bytes. What two of them become is told by a table of pairs, or by what their text is
 * together, whose rank is then the token's own. */
#ifndef TG_TOKEN_BPE_H
#define TG_TOKEN_BPE_H

#include "token/vocab.h"

typedef struct tg_bpe_pair {
    uint32_t left, right; /* ids; left UINT32_MAX: a free slot */
    uint32_t rank;        /* position among the merges */
    uint32_t id;          /* what they become */
} tg_bpe_pair;

typedef struct tg_bpe {
    uint64_t seed;
    tg_bpe_pair *pairs; /* open addressing, n_slots a power of two */
    size_t n_slots, n_used;
    int32_t
        byte_id[256];  /* -1: the vocabulary lacks the byte; beside chars all or none are there */
    int32_t unknown;   /* what stands for what it lacks; -1: nothing, it is left out */
    bool fuse_unknown; /* one for a run of them */
    const tg_vocab *chars; /* not NULL: symbols are characters, where this has them */
    int32_t ascii_id[128]; /* of chars: those of one byte */
    const tg_vocab
        *whole; /* not NULL: a piece that is a token becomes it, whatever the merges say */
    uint32_t *token_ranks; /* not NULL: [chars->n_ids] instead of pairs; TG_BPE_NO_RANK: no merge
                              makes it */
} tg_bpe;

#define TG_BPE_NO_RANK UINT32_MAX

tg_status tg_bpe_init(tg_bpe *bpe, tg_error *err);
void tg_bpe_deinit(tg_bpe *bpe);
/* Room in the table for n merges. More may come, and grow it. */
tg_status tg_bpe_reserve(tg_bpe *bpe, uint64_t n, tg_error *err);

/* The last rank given to a pair is the one it keeps, as in the reference (A23). */
tg_status tg_bpe_add_merge(tg_bpe *bpe, int32_t left, int32_t right, int32_t id, uint32_t rank,
                           tg_error *err);

/* What a call of the tokenizer works with: the ids so far, and scratch. */
typedef struct tg_bpe_work {
    int32_t *ids;
    size_t n_ids, ids_room;
    size_t n_dropped; /* bytes left out */
    struct tg_bpe_symbol *symbols;
    uint64_t *heap;
    size_t symbols_room, heap_room;
    struct tg_bpe_word *cache; /* words met in this call */
    size_t n_cache;
} tg_bpe_work;

/* For a text of about n_bytes. */
tg_status tg_bpe_work_init(tg_bpe_work *work, size_t n_bytes, tg_error *err);
void tg_bpe_work_deinit(tg_bpe_work *work);

tg_status tg_bpe_append_id(tg_bpe_work *work, int32_t id, tg_error *err);
/* Appends the ids of the piece, n > 0 and below 2^32. O(n log n). */
tg_status tg_bpe_append_piece(const tg_bpe *bpe, tg_bpe_work *work, const uint8_t *s, size_t n,
                              tg_error *err);

#endif
