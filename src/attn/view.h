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

/* One layer. A head's keys of four blocks lie in front of their values, and both are a chunk; behind it lies the
 * head's next one, as far as a slab goes: 4, 8 or 16 blocks. */
typedef struct tg_kv_view {
    uint8_t *data;
    size_t k_block_bytes, v_block_bytes, v_offset, chunk_bytes, head_stride, slab_stride; /* bytes */
    int slab_log2;
    tg_type type_k, type_v; /* TG_F32, TG_F16, TG_BF16, TG_Q8_0 or TG_Q4 */
    int head_dim, v_dim, n_head_kv;
} tg_kv_view;

/* The keys or the values of a block of one KV head. */
static inline uint8_t *tg_kv_at(const tg_kv_view *kv, int32_t block, int head, bool values)
{
    const size_t b = (size_t)block, slab = b >> kv->slab_log2, i = b % TG_KV_CHUNK_BLOCKS;
    return kv->data + slab * kv->slab_stride + (size_t)head * kv->head_stride +
           (b - (slab << kv->slab_log2)) / TG_KV_CHUNK_BLOCKS * kv->chunk_bytes +
           (values ? kv->v_offset + i * kv->v_block_bytes : i * kv->k_block_bytes);
}

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

/* Fills the rest of a view that has types, head_dim and n_head_kv: a layer among n_layer, each *layer_stride bytes
 * behind the one before. Returns the bytes of n_blocks blocks of all layers.
 *
 * What the same positions are in all layers lies together, so that huge pages fill: with a large one for each head
 * a short text would take the memory of a whole context. A slab of 16 blocks is as good to read as one stream, but
 * its pages are taken all at once: for models of many heads it has fewer. */
static inline size_t tg_kv_lay_out(tg_kv_view *kv, int n_layer, size_t n_blocks, size_t *layer_stride)
{
    enum { SLAB_BYTES = 32 << 20, SLAB_LOG2 = 4, CHUNK_LOG2 = 2 };
    const size_t chunk = n_blocks < TG_KV_CHUNK_BLOCKS ? n_blocks : TG_KV_CHUNK_BLOCKS;
    const size_t heads = (size_t)n_layer * (size_t)kv->n_head_kv;
    kv->v_dim = tg_kv_v_dim(kv->head_dim);
    kv->k_block_bytes = tg_kv_k_block_bytes(kv->type_k, kv->head_dim);
    kv->v_block_bytes = tg_kv_v_block_bytes(kv->type_v, kv->head_dim);
    kv->v_offset = chunk * kv->k_block_bytes;
    kv->chunk_bytes = chunk * (kv->k_block_bytes + kv->v_block_bytes);
    kv->slab_log2 = SLAB_LOG2;
    while (kv->slab_log2 > CHUNK_LOG2 && ((size_t)1 << kv->slab_log2 >= 2 * n_blocks ||
                                          (heads * kv->chunk_bytes << (kv->slab_log2 - CHUNK_LOG2)) > SLAB_BYTES))
        kv->slab_log2--;
    kv->head_stride = kv->chunk_bytes << (kv->slab_log2 - CHUNK_LOG2);
    kv->slab_stride = heads * kv->head_stride;
    *layer_stride = (size_t)kv->n_head_kv * kv->head_stride;
    return ((n_blocks - 1) >> kv->slab_log2) * kv->slab_stride + kv->slab_stride;
}

#endif
