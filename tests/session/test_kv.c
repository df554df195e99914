/* Blocks and their holders: nothing leaks, nothing shared is written, the pool's end is an answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "session/kv.h"
#include "support/rand.h"

static const tg_config config = {.n_layer = 2, .n_head_kv = 2, .head_dim = 5};

static tg_kv make(int n_ctx, int n_seq_max)
{
    tg_kv kv;
    assert_int_equal(tg_kv_create(&kv, &config, n_ctx, n_seq_max, TG_F32, TG_F16, NULL), TG_OK);
    return kv;
}

/* A mark in a position's K and V, in the last layer and head. */
static float *mark(tg_kv *kv, int seq, int pos)
{
    tg_kv_view *v = &kv->layers.first;
    uint8_t *p = tg_kv_at(v, kv->seq[seq].block[pos / TG_KV_BLOCK], 1, false) + kv->layers.stride;
    return (float *)(void *)p + pos % TG_KV_BLOCK;
}

typedef struct place {
    const uint8_t *at;
    size_t n_bytes;
} place;

static int by_address(const void *a, const void *b)
{
    const place *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

/* No block of any layer, head and kind lies where another does, and all are inside of what was reserved; small slabs
 * for many heads, one that is not full, and pools of less than one. */
static void blocks_have_places(void **state)
{
    (void)state;
    static const struct {
        int n_layer, n_head_kv, head_dim, n_ctx, slab;
    } cases[] = {{3, 2, 64, 64, 4},   {3, 2, 64, 65, 4},    {2, 1, 5, 300, 8},    {3, 2, 64, 1024, 16},
                 {3, 2, 64, 1025, 16}, {3, 1, 7, 3000, 16}, {8, 8, 128, 600, 8}, {16, 8, 128, 600, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tg_config c = {.n_layer = cases[i].n_layer, .n_head_kv = cases[i].n_head_kv, .head_dim = cases[i].head_dim};
        tg_kv kv;
        assert_int_equal(tg_kv_create(&kv, &c, cases[i].n_ctx, 1, TG_F32, TG_F32, NULL), TG_OK);
        assert_int_equal(1 << kv.layers.first.slab_log2, cases[i].slab);
        const size_t n = (size_t)(c.n_layer * c.n_head_kv * kv.n_blocks * 2);
        place *places = malloc(n * sizeof *places), *p = places;
        for (int layer = 0; layer < c.n_layer; layer++)
            for (int head = 0; head < c.n_head_kv; head++)
                for (int32_t block = 0; block < kv.n_blocks; block++)
                    for (int values = 0; values < 2; values++, p++)
                        p->at = tg_kv_block(&kv, values, layer, head, block, &p->n_bytes);
        qsort(places, n, sizeof *places, by_address);
        const uint8_t *free_from = kv.layers.first.data;
        for (p = places; p < places + n; p++) {
            assert_true(p->at >= free_from);
            free_from = p->at + p->n_bytes;
        }
        assert_true(free_from <= kv.layers.first.data + kv.n_bytes);
        free(places);
        tg_kv_free(&kv);
    }
}

static void capacity(void **state)
{
    (void)state;
    tg_kv kv = make(130, 1);
    assert_int_equal(tg_kv_capacity(&kv), 192);
    for (int i = 0; i < 192; i++)
        assert_true(tg_kv_append(&kv, 0));
    assert_false(tg_kv_append(&kv, 0));
    assert_int_equal(kv.length[0], 192);
    tg_kv_seq_truncate(&kv, 0, 128);
    assert_true(tg_kv_append(&kv, 0));
    tg_kv_seq_free(&kv, 0);
    assert_int_equal(kv.n_unused, kv.n_blocks);
    tg_kv_free(&kv);
}

static void forks_copy_before_writing(void **state)
{
    (void)state;
    tg_kv kv = make(256, 3);
    for (int i = 0; i < 70; i++) {
        assert_true(tg_kv_append(&kv, 0));
        *mark(&kv, 0, i) = (float)i;
    }
    int a = tg_kv_seq_new(&kv), b = tg_kv_seq_new(&kv);
    assert_int_equal(tg_kv_seq_new(&kv), -1);
    tg_kv_seq_fork(&kv, 0, a);
    tg_kv_seq_fork(&kv, 0, b);
    assert_int_equal(kv.seq[a].block[1], kv.seq[0].block[1]);
    assert_true(tg_kv_append(&kv, a));
    *mark(&kv, a, 70) = -1;
    assert_true(tg_kv_append(&kv, 0));
    *mark(&kv, 0, 70) = -2;
    assert_true(tg_kv_append(&kv, b));
    *mark(&kv, b, 70) = -3;
    assert_true(kv.seq[a].block[1] != kv.seq[0].block[1] && kv.seq[a].block[1] != kv.seq[b].block[1]);
    assert_int_equal(kv.seq[a].block[0], kv.seq[0].block[0]);
    for (int i = 0; i < 70; i++)
        assert_true(*mark(&kv, a, i) == (float)i && *mark(&kv, b, i) == (float)i &&
                    *mark(&kv, 0, i) == (float)i);
    assert_true(*mark(&kv, a, 70) == -1 && *mark(&kv, 0, 70) == -2 && *mark(&kv, b, 70) == -3);

    /* cut back into the shared block, and on again: the others keep theirs */
    tg_kv_seq_truncate(&kv, a, 10);
    assert_true(tg_kv_append(&kv, a));
    *mark(&kv, a, 10) = -4;
    assert_true(*mark(&kv, 0, 10) == 10 && *mark(&kv, b, 10) == 10 && *mark(&kv, a, 9) == 9);
    for (int s = 0; s < 3; s++)
        tg_kv_seq_free(&kv, s);
    assert_int_equal(kv.n_unused, kv.n_blocks);
    tg_kv_free(&kv);
}

/* Random traffic: holders always add up, and every sequence reads back what it wrote. */
static void traffic(void **state)
{
    (void)state;
    enum { SEQS = 5, LONGEST = 700 };
    static float want[SEQS][LONGEST];
    tg_kv kv = make(640, SEQS);
    rand_state = 11;
    for (int step = 0; step < 30000; step++) {
        int s = rand_int(0, SEQS - 1), what = rand_int(0, 99);
        if (kv.length[s] < 0) {
            int t = tg_kv_seq_new(&kv), from = rand_int(0, SEQS - 1);
            if (from != t && kv.length[from] >= 0) {
                tg_kv_seq_fork(&kv, from, t);
                memcpy(want[t], want[from], sizeof want[t]);
            }
        } else if (what < 1) {
            tg_kv_seq_free(&kv, s);
        } else if (what < 3) {
            tg_kv_seq_truncate(&kv, s, rand_int(0, kv.length[s]));
        } else if (tg_kv_append(&kv, s)) {
            int at = kv.length[s] - 1;
            *mark(&kv, s, at) = want[s][at] = (float)step;
        }
        if (step % 100)
            continue;
        int held = 0, listed = 0;
        for (int i = 0; i < kv.n_blocks; i++)
            held += kv.holders[i];
        for (int t = 0; t < SEQS; t++) {
            for (int i = 0; i < kv.length[t]; i++)
                assert_true(*mark(&kv, t, i) == want[t][i]);
            listed += kv.length[t] > 0 ? (kv.length[t] + TG_KV_BLOCK - 1) / TG_KV_BLOCK : 0;
        }
        assert_int_equal(held, listed);
    }
    tg_kv_free(&kv);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_have_places),
        cmocka_unit_test(capacity),
        cmocka_unit_test(forks_copy_before_writing),
        cmocka_unit_test(traffic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
