/* view.h - how attention sees a KV cache. The storage belongs to the session.
 *
 * Positions live in blocks of 64. Four consecutive blocks of a sequence are one chunk of 256 positions;
 * with blocks 0, 1, 2, ... a chunk is one contiguous stream. Inside a block of one KV head:
 *
 *     keys    four groups of 16, interleaved, so that a score is one chain over head_dim with keys in
 *             the lanes
 *       F32, F16   [4][head_dim][16]
 *       BF16       [4][head_dim / 2][16][2]         neighbouring dimensions in one dword (rounded up)
 *       Q8_0       [4]{ code [n / 4][16][4], scale f16 [n / 32][16] }, n = head_dim rounded up to 32;
 *                  the codes are unsigned: 128 is zero
 *     values  rows of v_dim = head_dim rounded up to 16, padded with zeros
 *       F32, F16   [64][v_dim]
 *       BF16       [32][v_dim][2]                   neighbouring keys in one dword
 *       Q8_0       code [32][v_dim][2], scale f16 [v_dim / 32 rounded up][64]; signed codes
 *
 * Q8_0 is x = scale * code with one float16 scale for 32 dimensions of a key, 8.5 bits a number. */
#ifndef TG_ATTN_VIEW_H
#define TG_ATTN_VIEW_H

#include <stddef.h>
#include <stdint.h>

#include "kernel/dtype.h"

enum {
    TG_KV_BLOCK = 64,
    TG_KV_CHUNK = 256,
    TG_KV_GROUP = 16,
    TG_KV_CHUNK_BLOCKS = TG_KV_CHUNK / TG_KV_BLOCK,
};

/* One layer. Element (block b, KV head h) of K starts at k + b * k_block_stride + h * k_head_stride. */
typedef struct tg_kv_view {
    uint8_t *k, *v;
    size_t k_block_stride, v_block_stride, k_head_stride, v_head_stride; /* bytes */
    tg_type type_k, type_v; /* TG_F32, TG_F16, TG_BF16 or TG_Q8_0 */
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

/* Scales of 32 dimensions each that a key or a value has. */
static inline int tg_kv_scales(int head_dim)
{
    return (head_dim + 31) / 32;
}

/* Bytes of 16 keys, and of the values of a block, of one KV head. */
static inline size_t tg_kv_k_group_bytes(tg_type type, int head_dim)
{
    size_t n = (size_t)head_dim, n_scales = (size_t)tg_kv_scales(head_dim);
    return TG_KV_GROUP * (type == TG_F32    ? 4 * n
                          : type == TG_F16  ? 2 * n
                          : type == TG_BF16 ? 4 * ((n + 1) / 2)
                                            : 34 * n_scales);
}

static inline size_t tg_kv_k_block_bytes(tg_type type, int head_dim)
{
    return TG_KV_BLOCK / TG_KV_GROUP * tg_kv_k_group_bytes(type, head_dim);
}

static inline size_t tg_kv_v_block_bytes(tg_type type, int head_dim)
{
    size_t n = (size_t)tg_kv_v_dim(head_dim), n_scales = (size_t)tg_kv_scales(head_dim);
    return TG_KV_BLOCK * (type == TG_F32 ? 4 * n : type == TG_Q8_0 ? n + 2 * n_scales : 2 * n);
}

#endif
