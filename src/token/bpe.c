/* bpe.c - the merges.
 *
 * A piece is a list of symbols. A long one has a heap of the pairs that could merge, as
 * rank << 32 | position of the left symbol, so that the smallest key is the next merge. A key goes
 * stale when its pair is gone; the symbol remembers the rank of the pair it begins, which tells.
 * (Should another pair of that rank begin there, it is due at the same time.) In a short one the
 * smallest is looked for each time. Pieces are short and come again, so the ids of recent ones are
 * kept for the length of a call. */
#include "token/bpe.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "token/hash.h"

#define NONE UINT32_MAX

enum { SHORT = 24 }; /* symbols, up to which the heap costs more than it saves */

typedef struct tg_bpe_symbol {
    uint32_t id;
    uint32_t at;             /* where its text begins */
    uint32_t previous, next; /* NONE at the ends */
    uint32_t rank; /* of the pair with the next one; NONE: they do not merge, or this is gone */
    uint32_t into; /* what that pair becomes */
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

tg_status tg_bpe_reserve(tg_bpe *bpe, uint64_t n, tg_error *err)
{
    size_t n_slots = bpe->n_slots;
    while (n_slots / 2 < n)
        n_slots *= 2;
    return n_slots == bpe->n_slots || grow_pairs(bpe, n_slots, err) ? TG_OK : TG_E_RESOURCE;
}

tg_status tg_bpe_init(tg_bpe *bpe, tg_error *err)
{
    *bpe = (tg_bpe){.seed = tg_hash_seed(), .unknown = -1};
    memset(bpe->byte_id, 0xff, sizeof bpe->byte_id);
    return grow_pairs(bpe, 1024, err) ? TG_OK : TG_E_RESOURCE;
}

void tg_bpe_deinit(tg_bpe *bpe)
{
    free(bpe->pairs);
    free(bpe->token_ranks);
    *bpe = (tg_bpe){0};
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

/* A list of symbols as it is made: into work->symbols, which has room for one a byte. */
typedef struct maker {
    tg_bpe_work *work;
    const tg_bpe *bpe;
    uint32_t n;
    bool after_unknown; /* a run of unknown ones is open */
} maker;

static void add_symbol(maker *m, int32_t id, size_t at)
{
    m->work->symbols[m->n++] = (symbol){.id = (uint32_t)id, .at = (uint32_t)at};
}

static void add_unknown(maker *m, size_t at, size_t n_bytes)
{
    if (m->bpe->unknown < 0)
        m->work->n_dropped += n_bytes;
    else if (!m->after_unknown || !m->bpe->fuse_unknown)
        add_symbol(m, m->bpe->unknown, at);
    m->after_unknown = true;
}

static void make_of_bytes(maker *m, const uint8_t *s, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        int32_t id = m->bpe->byte_id[s[i]];
        if (id < 0) {
            add_unknown(m, i, 1);
            continue;
        }
        add_symbol(m, id, i);
        m->after_unknown = false;
    }
}

static void make_of_characters(maker *m, const uint8_t *s, size_t n)
{
    uint32_t code;
    for (size_t i = 0, length; i < n; i += length) {
        length = 1;
        int32_t id = -1;
        if (s[i] < 0x80)
            id = m->bpe->ascii_id[s[i]];
        else if ((length = (size_t)tg_utf8_decode(s + i, n - i, &code)) == 0)
            length = 1; /* no character: a byte */
        else
            id = tg_vocab_find_bytes(m->bpe->chars, s + i, length);
        if (id >= 0) {
            add_symbol(m, id, i);
            m->after_unknown = false;
        } else if (m->bpe->byte_id[0] >= 0) { /* then all are there */
            make_of_bytes(m, s, i, i + length);
        } else {
            add_unknown(m, i, length);
        }
    }
}

static uint32_t make_symbols(const tg_bpe *bpe, tg_bpe_work *work, const uint8_t *s, size_t n)
{
    maker m = {.work = work, .bpe = bpe};
    if (bpe->chars)
        make_of_characters(&m, s, n);
    else
        make_of_bytes(&m, s, 0, n);
    for (uint32_t i = 0; i < m.n; i++) {
        work->symbols[i].previous = i - 1; /* wraps to NONE */
        work->symbols[i].next = i + 1 < m.n ? i + 1 : NONE;
        work->symbols[i].rank = NONE;
    }
    return m.n;
}

/* A piece of text with its symbols. */
typedef struct piece {
    const tg_bpe *bpe;
    const uint8_t *s;
    size_t n;
    symbol *symbols;
} piece;

/* Looks up the pair that begins at symbol i, which is not the last, and remembers and returns its
 * rank. */
static uint32_t rank_pair(const piece *p, uint32_t i)
{
    const tg_bpe *bpe = p->bpe;
    symbol *left = &p->symbols[i], *right = &p->symbols[left->next];
    left->rank = NONE;
    if (!bpe->token_ranks) {
        const tg_bpe_pair *pair = slot_of(bpe, left->id, right->id);
        if (pair->left != NONE) {
            left->rank = pair->rank;
            left->into = pair->id;
        }
    } else if (bpe->token_ranks[left->id] != NONE && bpe->token_ranks[right->id] != NONE) {
        size_t end = right->next == NONE ? p->n : p->symbols[right->next].at;
        int32_t id = tg_vocab_find_bytes(bpe->chars, p->s + left->at, end - left->at);
        if (id >= 0) {
            left->rank = bpe->token_ranks[id];
            left->into = (uint32_t)id;
        }
    }
    return left->rank;
}

/* Joins symbol i with the next; their neighbours' pairs are to be ranked anew. */
static void join(symbol *symbols, uint32_t i)
{
    uint32_t right = symbols[i].next;
    symbols[i].id = symbols[i].into;
    symbols[i].next = symbols[right].next;
    symbols[i].rank = symbols[right].rank = NONE;
    if (symbols[i].next != NONE)
        symbols[symbols[i].next].previous = i;
}

static void merge_few(const piece *p, uint32_t n)
{
    symbol *symbols = p->symbols;
    for (uint32_t i = 0; i + 1 < n; i++)
        rank_pair(p, i);
    for (;;) {
        uint32_t best = NONE, rank = NONE;
        for (uint32_t i = 0; i != NONE; i = symbols[i].next)
            if (symbols[i].rank < rank) {
                rank = symbols[i].rank;
                best = i;
            }
        if (best == NONE)
            return;
        join(symbols, best);
        if (symbols[best].next != NONE)
            rank_pair(p, best);
        if (symbols[best].previous != NONE)
            rank_pair(p, symbols[best].previous);
    }
}

static void merge_many(const piece *p, uint32_t n, uint64_t *heap)
{
    symbol *symbols = p->symbols;
    size_t n_heap = 0;
    for (uint32_t i = 0; i + 1 < n; i++)
        if (rank_pair(p, i) != NONE)
            heap[n_heap++] = (uint64_t)symbols[i].rank << 32 | i;
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
        join(symbols, i);
        const uint32_t around[2] = {symbols[i].next == NONE ? NONE : i, symbols[i].previous};
        for (int k = 0; k < 2; k++)
            if (around[k] != NONE && rank_pair(p, around[k]) != NONE) {
                heap[n_heap] = (uint64_t)symbols[around[k]].rank << 32 | around[k];
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
    if (!tg_grow((void **)&work->symbols, &work->symbols_room, n, sizeof *work->symbols,
                 "the symbols of a text", err))
        return TG_E_RESOURCE;
    /* A merge takes one key out and puts two in at most, and there are fewer than n merges. */
    if (n > SHORT && !tg_grow((void **)&work->heap, &work->heap_room, 2 * n, sizeof *work->heap,
                              "the merges of a text", err))
        return TG_E_RESOURCE;
    uint32_t n_symbols = make_symbols(bpe, work, s, n);
    if (n_symbols == 0)
        return TG_OK;
    const piece p = {bpe, s, n, work->symbols};
    if (n_symbols <= SHORT)
        merge_few(&p, n_symbols);
    else
        merge_many(&p, n_symbols, work->heap);
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
