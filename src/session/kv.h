/* kv.h - storage of the KV cache: a pool of blocks of 64 positions, and who holds which.
 *
 * Laid out [slab of 4 to 16 blocks][layer][KV head][chunk of 4 blocks][K, V][block]: consecutive blocks of a head are one
 * stream, and what the same positions are in all layers lies together, so that whole huge pages fill.
 * Sequences are lists of block ids. A fork shares all blocks; a block that is shared is copied before
 * one of its holders writes to it. Address space is reserved at creation and touched as it is used. */
#ifndef TG_SESSION_KV_H
#define TG_SESSION_KV_H

#include "model/forward.h"

typedef struct tg_kv {
    tg_kv_layers layers;
    int n_layer, n_blocks, n_seq_max;
    size_t n_bytes; /* of the storage */
    int *holders;    /* [n_blocks] how many sequences hold a block */
    int32_t *unused; /* stack of free block ids, the lowest on top at first */
    int n_unused;
    tg_kv_seq *seq;  /* [n_seq_max] views for attention */
    int32_t *table;  /* [n_seq_max][n_blocks] */
    int *length;     /* [n_seq_max] its positions; -1: no such sequence */
} tg_kv;

/* Bytes of the storage of so many blocks. */
size_t tg_kv_bytes(const tg_config *c, int n_blocks, tg_type type_k, tg_type type_v);

/* Blocks of a pool: each sequence may end in a block of its own that is not full. */
int tg_kv_pool_blocks(int n_ctx, int n_seq_max);

tg_status tg_kv_create(tg_kv *kv, const tg_config *c, int n_ctx, int n_seq_max, tg_type type_k,
                       tg_type type_v, tg_error *err);
void tg_kv_free(tg_kv *kv);

/* Appends a position, not yet written, to a sequence, in a block that it alone holds. False when the
 * pool is exhausted: then the sequence is unchanged. */
bool tg_kv_append(tg_kv *kv, int seq);
/* The keys or the values of one block in one layer and KV head: *n_bytes of them. */
uint8_t *tg_kv_block(const tg_kv *kv, bool values, int layer, int head, int32_t block, size_t *n_bytes);

int tg_kv_blocks_for(int length); /* blocks that so many positions take */
int tg_kv_capacity(const tg_kv *kv); /* positions of the whole pool */

int tg_kv_seq_new(tg_kv *kv); /* -1: all in use */
void tg_kv_seq_fork(tg_kv *kv, int from, int to);
void tg_kv_seq_truncate(tg_kv *kv, int seq, int length);
void tg_kv_seq_free(tg_kv *kv, int seq);

#endif
