/* bpe.c - the merges.
 *
 * A piece is a list of symbols, one for each byte at first. A heap holds the pairs that could
 * merge, as rank << 32 | position of the left symbol, so that the smallest key is the next merge. A
 * key goes stale when its pair is gone; the symbol remembers the rank of the pair it begins, which
 * tells. (No other pair with that rank can begin there later: symbols only grow.) Pieces are short
 * and come again, so the ids of recent ones are kept for the length of a call. */
#include "token/bpe.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "token/hash.h"

#define NONE UINT32_MAX

typedef struct tg_bpe_symbol {
    uint32_t id;
    uint32_t previous, next; /* NONE at the ends */
    uint32_t rank; /* of the pair with the next one; NONE: they do not merge, or this is gone */
} symbol;

/* One cache line. */
typedef struct tg_bpe_word {
    uint8_t n_bytes; /* 0: free */
    uint8_t n_ids;
    uint8_t n_dropped;
    uint8_t bytes[29];
    int32_t ids[8];
} word;

/* ---- the table of pairs ------------------------------------------------------------------- */

static tg_bpe_pair *slot_of(const tg_bpe *bpe, uint32_t left, uint32_t right)
{
    uint64_t h = tg_hash_u64(bpe->seed, (uint64_t)left << 32 | right);
    for (size_t i = h & (bpe->n_slots - 1);; i = (i + 1) & (bpe->n_slots - 1)) {
        tg_bpe_pair *p = &bpe->pairs[i];
        if ((p->left == left && p->right == right) || p->left == NONE)
            return p;
    }
}

static bool grow_pairs(tg_bpe *bpe, size_t n_slots, tg_error *err)
{
    tg_bpe old = *bpe;
    tg_bpe_pair *pairs = tg_alloc(n_slots, sizeof *pairs, "the table of merges", err);
    if (!pairs)
        return false;
    for (size_t i = 0; i < n_slots; i++)
        pairs[i].left = NONE;
    bpe->pairs = pairs;
    bpe->n_slots = n_slots;
    for (size_t i = 0; i < old.n_slots; i++)
        if (old.pairs[i].left != NONE)
            *slot_of(bpe, old.pairs[i].left, old.pairs[i].right) = old.pairs[i];
    free(old.pairs);
    return true;
}

tg_status tg_bpe_init(tg_bpe *bpe, tg_error *err)
{
    *bpe = (tg_bpe){.seed = tg_hash_seed(), .unknown = -1};
    for (int b = 0; b < 256; b++)
        bpe->byte_id[b] = -1;
    return grow_pairs(bpe, 1024, err) ? TG_OK : TG_E_RESOURCE;
}

void tg_bpe_deinit(tg_bpe *bpe)
{
    free(bpe->pairs);
    bpe->pairs = NULL;
}

tg_status tg_bpe_add_merge(tg_bpe *bpe, int32_t left, int32_t right, int32_t id, uint32_t rank,
                           tg_error *err)
{
    if (bpe->n_used >= bpe->n_slots / 2 && !grow_pairs(bpe, bpe->n_slots * 2, err))
        return TG_E_RESOURCE;
    tg_bpe_pair *p = slot_of(bpe, (uint32_t)left, (uint32_t)right);
    bpe->n_used += p->left == NONE;
    *p = (tg_bpe_pair){(uint32_t)left, (uint32_t)right, rank, (uint32_t)id};
    return TG_OK;
}

/* ---- scratch ------------------------------------------------------------------------------ */

tg_status tg_bpe_work_init(tg_bpe_work *work, size_t n_bytes, tg_error *err)
{
    *work = (tg_bpe_work){.n_cache = 64};
    while (work->n_cache < n_bytes / 16 && work->n_cache < 8192)
        work->n_cache *= 2;
    work->cache = tg_alloc(work->n_cache, sizeof *work->cache, "the cache of a tokenizer", err);
    return work->cache ? TG_OK : TG_E_RESOURCE;
}

void tg_bpe_work_deinit(tg_bpe_work *work)
{
    free(work->ids);
    free(work->symbols);
    free(work->heap);
    free(work->cache);
    *work = (tg_bpe_work){0};
}

static inline bool reserve_ids(tg_bpe_work *work, size_t n, tg_error *err)
{
    return tg_grow((void **)&work->ids, &work->ids_room, work->n_ids + n, sizeof *work->ids,
                   "token ids", err);
}

tg_status tg_bpe_append_id(tg_bpe_work *work, int32_t id, tg_error *err)
{
    if (!reserve_ids(work, 1, err))
        return TG_E_RESOURCE;
    work->ids[work->n_ids++] = id;
    return TG_OK;
}

/* ---- the heap: the smallest key is heap[0] -------------------------------------------------- */

static void sift_down(uint64_t *heap, size_t n, size_t i)
{
    uint64_t key = heap[i];
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && heap[child + 1] < heap[child];
        if (heap[child] >= key)
            break;
        heap[i] = heap[child];
    }
    heap[i] = key;
}

static void sift_up(uint64_t *heap, size_t i)
{
    uint64_t key = heap[i];
    for (size_t parent; i > 0 && heap[parent = (i - 1) / 2] > key; i = parent)
        heap[i] = heap[parent];
    heap[i] = key;
}

/* ---- merging ------------------------------------------------------------------------------ */

/* The symbols of the n bytes, into work->symbols, which has room. */
static uint32_t make_symbols(const tg_bpe *bpe, tg_bpe_work *work, const uint8_t *s, size_t n)
{
    uint32_t k = 0;
    bool after_unknown = false;
    for (size_t i = 0; i < n; i++) {
        int32_t id = bpe->byte_id[s[i]];
        bool known = id >= 0;
        if (!known)
            id = bpe->unknown;
        if (id < 0)
            work->n_dropped++;
        else if (known || !after_unknown || !bpe->fuse_unknown)
            work->symbols[k++].id = (uint32_t)id;
        /* A byte that is left out never comes here with a token for unknown ones: the run is
         * unbroken. */
        after_unknown = !known;
    }
    for (uint32_t i = 0; i < k; i++) {
        work->symbols[i].previous = i - 1; /* wraps to NONE */
        work->symbols[i].next = i + 1 < k ? i + 1 : NONE;
    }
    return k;
}

/* Looks up the pair that begins at symbol i, and remembers and returns its rank. */
static uint32_t rank_pair(const tg_bpe *bpe, symbol *symbols, uint32_t i)
{
    const tg_bpe_pair *p = slot_of(bpe, symbols[i].id, symbols[symbols[i].next].id);
    return symbols[i].rank = p->left == NONE ? NONE : p->rank;
}

static void merge_all(const tg_bpe *bpe, symbol *symbols, uint32_t n, uint64_t *heap)
{
    size_t n_heap = 0;
    for (uint32_t i = 0; i + 1 < n; i++)
        if (rank_pair(bpe, symbols, i) != NONE)
            heap[n_heap++] = (uint64_t)symbols[i].rank << 32 | i;
    symbols[n - 1].rank = NONE;
    for (size_t i = n_heap / 2; i-- > 0;)
        sift_down(heap, n_heap, i);

    while (n_heap > 0) {
        uint64_t key = heap[0];
        heap[0] = heap[--n_heap];
        if (n_heap)
            sift_down(heap, n_heap, 0);
        uint32_t i = (uint32_t)key;
        if (symbols[i].rank != key >> 32)
            continue;

        uint32_t right = symbols[i].next;
        symbols[i].id = slot_of(bpe, symbols[i].id, symbols[right].id)->id;
        symbols[i].next = symbols[right].next;
        symbols[i].rank = symbols[right].rank = NONE;
        if (symbols[i].next != NONE) {
            symbols[symbols[i].next].previous = i;
            if (rank_pair(bpe, symbols, i) != NONE) {
                heap[n_heap] = (uint64_t)symbols[i].rank << 32 | i;
                sift_up(heap, n_heap++);
            }
        }
        uint32_t left = symbols[i].previous;
        if (left != NONE && rank_pair(bpe, symbols, left) != NONE) {
            heap[n_heap] = (uint64_t)symbols[left].rank << 32 | left;
            sift_up(heap, n_heap++);
        }
    }
}

static tg_status encode(const tg_bpe *bpe, tg_bpe_work *work, const uint8_t *s, size_t n,
                        tg_error *err)
{
    assert(n > 0 && n < NONE);
    int32_t id = bpe->whole ? tg_vocab_find_bytes(bpe->whole, s, n) : -1;
    if (id >= 0 && !bpe->whole->tokens[id].is_special)
        return tg_bpe_append_id(work, id, err);
    /* Each of at most n - 1 merges takes a key out of the heap and puts two in. */
    if (!tg_grow((void **)&work->symbols, &work->symbols_room, n, sizeof *work->symbols, "merges",
                 err) ||
        !tg_grow((void **)&work->heap, &work->heap_room, 2 * n, sizeof *work->heap, "merges", err))
        return TG_E_RESOURCE;
    uint32_t n_symbols = make_symbols(bpe, work, s, n);
    if (n_symbols == 0)
        return TG_OK;
    merge_all(bpe, work->symbols, n_symbols, work->heap);
    if (!reserve_ids(work, n_symbols, err))
        return TG_E_RESOURCE;
    for (uint32_t i = 0; i != NONE; i = work->symbols[i].next)
        work->ids[work->n_ids++] = (int32_t)work->symbols[i].id;
    return TG_OK;
}

tg_status tg_bpe_append_piece(const tg_bpe *bpe, tg_bpe_work *work, const uint8_t *s, size_t n,
                              tg_error *err)
{
    if (n > sizeof work->cache->bytes)
        return encode(bpe, work, s, n, err);

    word *w = &work->cache[tg_hash_bytes(bpe->seed, s, n) & (work->n_cache - 1)];
    if (!reserve_ids(work, sizeof w->ids / sizeof *w->ids, err))
        return TG_E_RESOURCE;
    if (w->n_bytes == n && memcmp(w->bytes, s, n) == 0) {
        memcpy(work->ids + work->n_ids, w->ids, sizeof w->ids); /* all of them: one store */
        work->n_ids += w->n_ids;
        work->n_dropped += w->n_dropped;
        return TG_OK;
    }

    size_t n_ids = work->n_ids, n_dropped = work->n_dropped;
    tg_status status = encode(bpe, work, s, n, err);
    n_ids = work->n_ids - n_ids;
    if (status == TG_OK && n_ids <= sizeof w->ids / sizeof *w->ids) {
        w->n_bytes = (uint8_t)n;
        w->n_ids = (uint8_t)n_ids;
        w->n_dropped = (uint8_t)(work->n_dropped - n_dropped);
        memcpy(w->bytes, s, n);
        memcpy(w->ids, work->ids + work->n_ids - n_ids, n_ids * sizeof *w->ids);
    }
    return status;
}
