/* view.h - how attention sees a KV cache. The storage belongs to the session.
 *
 * Positions live in blocks of 64. Inside a block of one KV head
 *     K is [4][head_dim][16]: groups of 16 keys, interleaved, so that a score is one chain of fused
 *       multiply-adds over head_dim with keys in the lanes;
 *     V is [64][v_dim]: rows, head_dim padded to a multiple of 16 with zeros.
 * Four consecutive blocks of a sequence are one chunk of 256 positions. With blocks 0, 1, 2, ... a
 * chunk is one contiguous stream. */
#ifndef TG_ATTN_VIEW_H
#define TG_ATTN_VIEW_H

#include <stddef.h>
#include <stdint.h>

#include "kernel/dtype.h"

enum {
    TG_KV_BLOCK = 64,
    TG_KV_CHUNK = 256,
    TG_KV_GROUP = 16,
};

/* One layer. Element (block b, KV head h) of K starts at k + b * k_block_stride + h * k_head_stride. */
typedef struct tg_kv_view {
    uint8_t *k, *v;
    size_t k_block_stride, v_block_stride, k_head_stride, v_head_stride; /* bytes */
    tg_type type_k, type_v; /* TG_F32 or TG_F16 */
    int head_dim, v_dim, n_head_kv;
} tg_kv_view;

/* The blocks of one sequence: position p lies in block[p / 64]. */
typedef struct tg_kv_seq {
    const int32_t *block;
} tg_kv_seq;

static inline int tg_kv_v_dim(int head_dim)
{
    return (head_dim + 15) & ~15;
}

#endif
