/* kv.c - blocks, their holders, and copy on write. */
#include "session/kv.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static size_t lay_out(tg_kv_layers *layers, const tg_config *c, size_t n_blocks, tg_type type_k, tg_type type_v)
{
    layers->first =
        (tg_kv_view){.type_k = type_k, .type_v = type_v, .head_dim = c->head_dim, .n_head_kv = c->n_head_kv};
    return tg_kv_lay_out(&layers->first, c->n_layer, n_blocks, &layers->stride);
}

size_t tg_kv_bytes(const tg_config *c, int n_blocks, tg_type type_k, tg_type type_v)
{
    tg_kv_layers layers;
    return lay_out(&layers, c, (size_t)n_blocks, type_k, type_v);
}

int tg_kv_pool_blocks(int n_ctx, int n_seq_max)
{
    return (n_ctx + TG_KV_BLOCK - 1) / TG_KV_BLOCK + n_seq_max - 1;
}

tg_status tg_kv_create(tg_kv *kv, const tg_config *c, int n_ctx, int n_seq_max, tg_type type_k,
                       tg_type type_v, tg_error *err)
{
    int n_blocks = tg_kv_pool_blocks(n_ctx, n_seq_max);
    size_t blocks = (size_t)n_blocks, seqs = (size_t)n_seq_max;
    *kv = (tg_kv){.n_layer = c->n_layer, .n_blocks = n_blocks, .n_seq_max = n_seq_max};
    kv->n_bytes = lay_out(&kv->layers, c, blocks, type_k, type_v);
    kv->layers.first.data = tg_reserve_huge(kv->n_bytes, "the key and value cache", err);
    kv->holders = tg_alloc(blocks, sizeof *kv->holders, "the cache's blocks", err);
    kv->unused = tg_alloc(blocks, sizeof *kv->unused, "the cache's blocks", err);
    kv->seq = tg_alloc(seqs, sizeof *kv->seq, "sequences", err);
    kv->table = tg_alloc(seqs * blocks, sizeof *kv->table, "sequences", err);
    kv->length = tg_alloc(seqs, sizeof *kv->length, "sequences", err);
    if (!kv->layers.first.data || !kv->holders || !kv->unused || !kv->seq || !kv->table || !kv->length) {
        tg_kv_free(kv);
        return TG_E_RESOURCE;
    }
    for (int i = 0; i < n_blocks; i++)
        kv->unused[i] = n_blocks - 1 - i;
    kv->n_unused = n_blocks;
    for (size_t s = 0; s < seqs; s++) {
        kv->seq[s].block = kv->table + s * blocks;
        kv->length[s] = s == 0 ? 0 : -1;
    }
    return TG_OK;
}

void tg_kv_free(tg_kv *kv)
{
    tg_unreserve(kv->layers.first.data, kv->n_bytes);
    free(kv->holders);
    free(kv->unused);
    free(kv->seq);
    free(kv->table);
    free(kv->length);
    *kv = (tg_kv){0};
}

int tg_kv_capacity(const tg_kv *kv)
{
    return (kv->n_blocks - kv->n_seq_max + 1) * TG_KV_BLOCK;
}

static int32_t *blocks_of(tg_kv *kv, int seq)
{
    return kv->table + (size_t)seq * (size_t)kv->n_blocks;
}

int tg_kv_blocks_for(int length)
{
    return (length + TG_KV_BLOCK - 1) / TG_KV_BLOCK;
}

uint8_t *tg_kv_block(const tg_kv *kv, bool values, int layer, int head, int32_t block, size_t *n_bytes)
{
    const tg_kv_view *v = &kv->layers.first;
    *n_bytes = values ? v->v_block_bytes : v->k_block_bytes;
    return tg_kv_at(v, block, head, values) + (size_t)layer * kv->layers.stride;
}

static void copy_block(tg_kv *kv, int32_t to, int32_t from)
{
    size_t n;
    for (int layer = 0; layer < kv->n_layer; layer++)
        for (int head = 0; head < kv->layers.first.n_head_kv; head++)
            for (int values = 0; values < 2; values++) {
                const uint8_t *source = tg_kv_block(kv, values, layer, head, from, &n);
                memcpy(tg_kv_block(kv, values, layer, head, to, &n), source, n);
            }
}

static void drop(tg_kv *kv, int32_t block)
{
    if (--kv->holders[block] == 0)
        kv->unused[kv->n_unused++] = block;
}

bool tg_kv_append(tg_kv *kv, int seq)
{
    int32_t *last = blocks_of(kv, seq) + kv->length[seq] / TG_KV_BLOCK;
    bool fresh = kv->length[seq] % TG_KV_BLOCK == 0;
    if (fresh || kv->holders[*last] > 1) {
        if (kv->n_unused == 0 || kv->length[seq] / TG_KV_BLOCK >= kv->n_blocks)
            return false;
        int32_t own = kv->unused[--kv->n_unused];
        if (!fresh) {
            copy_block(kv, own, *last);
            drop(kv, *last);
        }
        kv->holders[own] = 1;
        *last = own;
    }
    kv->length[seq]++;
    return true;
}

int tg_kv_seq_new(tg_kv *kv)
{
    for (int s = 0; s < kv->n_seq_max; s++) {
        if (kv->length[s] < 0) {
            kv->length[s] = 0;
            return s;
        }
    }
    return -1;
}

void tg_kv_seq_fork(tg_kv *kv, int from, int to)
{
    int n = tg_kv_blocks_for(kv->length[from]);
    int32_t *source = blocks_of(kv, from);
    memcpy(blocks_of(kv, to), source, (size_t)n * sizeof *source);
    for (int i = 0; i < n; i++)
        kv->holders[source[i]]++;
    kv->length[to] = kv->length[from];
}

void tg_kv_seq_truncate(tg_kv *kv, int seq, int length)
{
    int32_t *block = blocks_of(kv, seq);
    for (int i = tg_kv_blocks_for(kv->length[seq]) - 1; i >= tg_kv_blocks_for(length); i--)
        drop(kv, block[i]);
    kv->length[seq] = length;
}

void tg_kv_seq_free(tg_kv *kv, int seq)
{
    if (kv->length[seq] >= 0)
        tg_kv_seq_truncate(kv, seq, 0);
    kv->length[seq] = -1;
}
