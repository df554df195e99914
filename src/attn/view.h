/* view.h - how attention sees a KV cache. The storage belongs to the session.
 *
 * Positions live in blocks of 64. Four consecutive blocks of a sequence are one chunk of 256 positions;
 * with blocks 0, 1, 2, ... a chunk is one contiguous stream. Inside a block of one KV head:
 *
 *     keys    interleaved, so that a score is one chain over head_dim with keys in the lanes, 16 to a group;
 *             floats so that all of a block are read in the order in which they lie
 *       F32, F16   [head_dim][64]
 *       BF16       [head_dim / 2][64][2]            neighbouring dimensions in one dword (rounded up)
 *       Q8_0       [4]{ code [n / 4][16][4], scale f16 [n / 32][16] }, n = head_dim rounded up to 32;
 *                  the codes are unsigned: 128 is zero
 *       Q4         [4]{ code [n / 8][16][4], fifth [n / 32][16][4], scale f16 [n / 32][16] }; in the low nibbles
 *                  of four bytes lie four bits of the first four of eight dimensions, in the high ones those of
 *                  the others, and bit i of byte j of `fifth` is the fifth bit of dimension 4 i + j; 16 is zero
 *     values  rows of v_dim = head_dim rounded up to 16, padded with zeros
 *       F32, F16   [64][v_dim]
 *       BF16       [32][v_dim][2]                   neighbouring keys in one dword
 *       Q8_0       code [32][v_dim][2], scale f16 [v_dim / 32 rounded up][64]; signed codes
 *       Q4         code [32][n / 32][16][2], scale f16 [n / 32][64], n as for keys; the low nibbles have the
 *                  first 16 of 32 dimensions. No byte belongs to two keys: threads write side by side
 *
 * Q8_0 is x = scale * code with one float16 scale for 32 dimensions of a key, 8.5 bits a number.
 *
 * Q4 is 5 bits a number on average, keys 5.5 and values 4.5: by as many bits, errors of the keys cost a model
 * ten times as much as those of the values. A key is scale * (code - 16). A value is scale * level[code], with
 * the 16 levels that lose least of what is normally distributed; as they are whole numbers up to 127, what
 * follows is Q8_0's arithmetic. To be close to normal a vector is rotated first (tg_kv_kernels.rotate): signs
 * by a fixed pattern, then a Walsh-Hadamard transform over blocks of the largest power of two that divides
 * head_dim, at most 128. Queries are rotated likewise, which leaves scores as they are, and outputs are
 * rotated back. */
#ifndef TG_ATTN_VIEW_H
#define TG_ATTN_VIEW_H

#include <stdbool.h>
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
    tg_type type_k, type_v; /* TG_F32, TG_F16, TG_BF16, TG_Q8_0 or TG_Q4 */
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

/* Bytes from the codes of two values to those of the next two. */
static inline size_t tg_kv_v_pair_bytes(tg_type type, int head_dim)
{
    return type == TG_Q4 ? 32 * (size_t)tg_kv_scales(head_dim) : 2 * (size_t)tg_kv_v_dim(head_dim);
}

/* Bytes of 16 keys, and of the values of a block, of one KV head. */
static inline size_t tg_kv_k_group_bytes(tg_type type, int head_dim)
{
    size_t n = (size_t)head_dim, n_scales = (size_t)tg_kv_scales(head_dim);
    return TG_KV_GROUP * (type == TG_F32    ? 4 * n
                          : type == TG_F16  ? 2 * n
                          : type == TG_BF16 ? 4 * ((n + 1) / 2)
                          : type == TG_Q8_0 ? 34 * n_scales
                                            : 22 * n_scales);
}

static inline size_t tg_kv_k_block_bytes(tg_type type, int head_dim)
{
    return TG_KV_BLOCK / TG_KV_GROUP * tg_kv_k_group_bytes(type, head_dim);
}

/* Bytes from the start of a block to the first dimension of its group g of keys, and from there to the next
 * one (BF16: two). */
static inline size_t tg_kv_k_group_at(tg_type type, int head_dim, int g)
{
    bool codes = type == TG_Q8_0 || type == TG_Q4;
    return (size_t)g * (codes ? tg_kv_k_group_bytes(type, head_dim) : TG_KV_GROUP * (type == TG_F16 ? 2u : 4u));
}

static inline size_t tg_kv_k_stride(tg_type type)
{
    return TG_KV_BLOCK * (type == TG_F16 ? 2u : 4u);
}

static inline size_t tg_kv_v_block_bytes(tg_type type, int head_dim)
{
    size_t n = (size_t)tg_kv_v_dim(head_dim), n_scales = (size_t)tg_kv_scales(head_dim);
    return TG_KV_BLOCK * (type == TG_F32    ? 4 * n
                          : type == TG_Q8_0 ? n + 2 * n_scales
                          : type == TG_Q4   ? 18 * n_scales
                                            : 2 * n);
}

#endif
