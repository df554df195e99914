/* Tests of bpe.c: against merging by the definition, one pair at a time, and rows A22, A23 and R11.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "support/clock.h"
#include "support/rand.h"
#include "token/bpe.h"

enum { MAX_TOKENS = 200, MAX_BYTES = 400 };

/* Bytes 'a' to 'e' are ids 0 to 4; each merge of a pair makes the next id. */
typedef struct toy {
    tg_bpe bpe;
    int n_tokens;
    char text[MAX_TOKENS][16];
    struct {
        int left, right, id;
    } merges[MAX_TOKENS];
    int n_merges;
} toy;

static toy *toy_new(void)
{
    toy *t = calloc(1, sizeof *t);
    assert_non_null(t);
    assert_int_equal(tg_bpe_init(&t->bpe, NULL), TG_OK);
    for (; t->n_tokens < 5; t->n_tokens++) {
        t->text[t->n_tokens][0] = (char)('a' + t->n_tokens);
        t->bpe.byte_id['a' + t->n_tokens] = t->n_tokens;
    }
    return t;
}

static void toy_free(toy *t)
{
    tg_bpe_deinit(&t->bpe);
    free(t);
}

static int toy_find(const toy *t, const char *text)
{
    for (int i = 0; i < t->n_tokens; i++)
        if (strcmp(t->text[i], text) == 0)
            return i;
    return -1;
}

static void toy_merge(toy *t, int left, int right)
{
    char both[32];
    strcpy(both, t->text[left]);
    strcat(both, t->text[right]);
    int id = toy_find(t, both);
    if (id < 0) {
        id = t->n_tokens++;
        strcpy(t->text[id], both);
    }
    assert_int_equal(tg_bpe_add_merge(&t->bpe, left, right, id, (uint32_t)t->n_merges, NULL),
                     TG_OK);
    t->merges[t->n_merges].left = left;
    t->merges[t->n_merges].right = right;
    t->merges[t->n_merges++].id = id;
}

static void toy_merge_text(toy *t, const char *left, const char *right)
{
    toy_merge(t, toy_find(t, left), toy_find(t, right));
}

/* The definition: of all pairs the one of the lowest rank, the leftmost of those, until there is
 * none. */
static size_t by_definition(const toy *t, int32_t *ids, size_t n)
{
    for (;;) {
        int best = -1;
        size_t at = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            int rank = t->n_merges; /* a merge given twice has its last rank */
            while (--rank >= 0 &&
                   (t->merges[rank].left != ids[i] || t->merges[rank].right != ids[i + 1]))
                ;
            if (rank >= 0 && (best < 0 || rank < best)) {
                best = rank;
                at = i;
            }
        }
        if (best < 0)
            return n;
        ids[at] = t->merges[best].id;
        memmove(ids + at + 1, ids + at + 2, (n - at - 2) * sizeof *ids);
        n--;
    }
}

static void expect(const tg_bpe *bpe, const char *text, const char *wanted, size_t dropped)
{
    tg_bpe_work work;
    char got[64] = "";
    assert_int_equal(tg_bpe_work_init(&work, 100, NULL), TG_OK);
    for (int again = 0; again < 2; again++) { /* the second time from the cache */
        work.n_ids = work.n_dropped = 0;
        assert_int_equal(tg_bpe_append_piece(bpe, &work, (const uint8_t *)text, strlen(text), NULL),
                         TG_OK);
        for (size_t i = 0; i <= work.n_ids; i++)
            got[i] = i < work.n_ids ? (char)('0' + work.ids[i]) : 0;
        assert_string_equal(got, wanted);
        assert_int_equal(work.n_dropped, dropped);
    }
    tg_bpe_work_deinit(&work);
}

static void equals_the_definition(void **state)
{
    (void)state;
    for (int round = 0; round < 60; round++) {
        toy *t = toy_new();
        tg_bpe_work work;
        assert_int_equal(tg_bpe_work_init(&work, 4096, NULL), TG_OK);
        for (int i = rand_int(1, 120); i > 0; i--) {
            int left = rand_int(0, t->n_tokens - 1), right = rand_int(0, t->n_tokens - 1);
            if (strlen(t->text[left]) + strlen(t->text[right]) < sizeof t->text[0])
                toy_merge(t, left, right);
        }
        for (int k = 0; k < 200; k++) {
            uint8_t text[MAX_BYTES];
            int32_t ids[MAX_BYTES];
            size_t n = (size_t)rand_int(1, k % 10 ? 30 : MAX_BYTES);
            int letters = rand_int(1, 5);
            for (size_t i = 0; i < n; i++) {
                text[i] = (uint8_t)('a' + rand_int(0, letters - 1));
                ids[i] = text[i] - 'a';
            }
            size_t n_ids = by_definition(t, ids, n), before = work.n_ids;
            assert_int_equal(tg_bpe_append_piece(&t->bpe, &work, text, n, NULL), TG_OK);
            assert_int_equal(work.n_ids - before, n_ids);
            assert_memory_equal(work.ids + before, ids, n_ids * sizeof *ids);
        }
        tg_bpe_work_deinit(&work);
        toy_free(t);
    }
}

/* With ranks of tokens: of all neighbours that make one, the best, the leftmost of those.
 * Characters beyond the vocabulary are bytes, which never merge. */
static void ranks_of_tokens(void **state)
{
    (void)state;
    enum { N = 60, BYTES = 256 };
    static const char *const letters[] = {"a", "b", "\xc3\xa9", " "};
    for (int round = 0; round < 30; round++) {
        tg_bpe bpe;
        tg_vocab v;
        char text[N][64];
        int32_t n_tokens = 0;
        assert_int_equal(tg_bpe_init(&bpe, NULL), TG_OK);
        assert_int_equal(tg_vocab_init(&v, N + BYTES, NULL), TG_OK);
        v.alphabet = TG_ALPHABET_TEXT;
        bpe.chars = &v;
        bpe.token_ranks = malloc((N + BYTES) * sizeof *bpe.token_ranks);
        assert_non_null(bpe.token_ranks);
        memset(bpe.token_ranks, 0xff, (N + BYTES) * sizeof *bpe.token_ranks);
        memset(bpe.ascii_id, 0xff, sizeof bpe.ascii_id);
        while (n_tokens < N) {
            char *s = text[n_tokens];
            strcpy(s, n_tokens < 4 ? letters[n_tokens] : text[rand_int(0, n_tokens - 1)]);
            if (n_tokens >= 4)
                strcat(s, text[rand_int(0, n_tokens < 12 ? n_tokens - 1 : 11)]);
            if (strlen(s) > 20 || tg_vocab_find(&v, s, strlen(s)) >= 0)
                continue;
            assert_int_equal(tg_vocab_add(&v, n_tokens, s, strlen(s), NULL, NULL), TG_OK);
            if (!s[1])
                bpe.ascii_id[(uint8_t)s[0]] = n_tokens;
            bpe.token_ranks[n_tokens++] = (uint32_t)rand_int(0, 40); /* ties too */
        }
        for (int b = 0; b < BYTES; b++)
            bpe.byte_id[b] = N + b;
        tg_bpe_work work;
        assert_int_equal(tg_bpe_work_init(&work, 0, NULL), TG_OK);
        for (int k = 0; k < 200; k++) {
            struct {
                int32_t id;
                char s[160];
            } part[400];
            char all[1600] = "";
            int n = rand_int(1, k % 8 ? 20 : 300);
            for (int i = 0; i < n; i++) {
                const char *c = rand_int(0, 9) ? letters[rand_int(0, 3)] : "x";
                strcat(all, c);
                strcpy(part[i].s, c);
                part[i].id = *c == 'x' ? N + 'x' : tg_vocab_find(&v, c, strlen(c));
            }
            for (;;) {
                int best = -1;
                uint32_t rank = UINT32_MAX;
                int32_t into = -1;
                for (int i = 0; i + 1 < n; i++) {
                    char both[320];
                    strcat(strcpy(both, part[i].s), part[i + 1].s);
                    int32_t id = part[i].id < N && part[i + 1].id < N
                                     ? tg_vocab_find(&v, both, strlen(both))
                                     : -1;
                    if (id >= 0 && bpe.token_ranks[id] < rank) {
                        rank = bpe.token_ranks[id];
                        best = i;
                        into = id;
                    }
                }
                if (best < 0)
                    break;
                strcpy(part[best].s, text[into]);
                part[best].id = into;
                memmove(&part[best + 1], &part[best + 2], (size_t)(n - best - 2) * sizeof *part);
                n--;
            }
            work.n_ids = 0;
            assert_int_equal(
                tg_bpe_append_piece(&bpe, &work, (const uint8_t *)all, strlen(all), NULL), TG_OK);
            assert_int_equal(work.n_ids, n);
            for (int i = 0; i < n; i++)
                assert_int_equal(work.ids[i], part[i].id);
        }
        tg_bpe_work_deinit(&work);
        tg_vocab_deinit(&v);
        tg_bpe_deinit(&bpe);
    }
}

static void a23_the_last_rank(void **state)
{
    (void)state;
    toy *t = toy_new();
    toy_merge_text(t, "a", "b"); /* 5 */
    toy_merge_text(t, "b", "c"); /* 6 */
    expect(&t->bpe, "abc", "52", 0);
    toy_merge_text(t, "a", "b");
    expect(&t->bpe, "abc", "06", 0);
    toy_free(t);
}

static void a22_bytes_without_a_token(void **state)
{
    (void)state;
    toy *t = toy_new();
    toy_merge_text(t, "a", "b");      /* 5 */
    toy_merge_text(t, "e", "a");      /* 6 */
    toy_merge_text(t, "b", "e");      /* 7 */
    expect(&t->bpe, "xaxbx", "5", 3); /* left out before merging, as the reference does */
    expect(&t->bpe, "xx", "", 2);
    t->bpe.unknown = 4; /* a token like any other: it merges too */
    expect(&t->bpe, "xxa", "46", 0);
    expect(&t->bpe, "bxxx", "744", 0);
    t->bpe.fuse_unknown = true;
    expect(&t->bpe, "xxa", "6", 0);
    expect(&t->bpe, "cxxdxxx", "2434", 0);
    toy_free(t);
}

static void whole_pieces(void **state)
{
    (void)state;
    toy *t = toy_new();
    tg_vocab v;
    static const char *const spellings[] = {"a", "b", "c", "d", "e", "ab", "abc", "cd"};
    assert_int_equal(tg_vocab_init(&v, 8, NULL), TG_OK);
    for (int i = 0; i < 8; i++)
        assert_int_equal(tg_vocab_add(&v, i, spellings[i], strlen(spellings[i]), NULL, NULL),
                         TG_OK);
    toy_merge_text(t, "a", "b");
    v.tokens[7].is_special = true;
    expect(&t->bpe, "abc", "52", 0);
    t->bpe.whole = &v;
    expect(&t->bpe, "abc", "6", 0); /* no merge leads there */
    expect(&t->bpe, "cd", "23", 0); /* text never becomes a special token */
    expect(&t->bpe, "abcd", "523", 0);
    tg_vocab_deinit(&v);
    toy_free(t);
}

/* Pieces and results at the edge of what the cache holds, many of them in few places. */
static void cache_changes_nothing(void **state)
{
    (void)state;
    toy *t = toy_new();
    toy_merge_text(t, "a", "a");
    toy_merge_text(t, "aa", "aa");
    tg_bpe_work work;
    assert_int_equal(tg_bpe_work_init(&work, 0, NULL), TG_OK);
    for (int k = 0; k < 20000; k++) {
        uint8_t text[40];
        int32_t ids[40];
        size_t n = (size_t)rand_int(1, 40);
        for (size_t i = 0; i < n; i++) {
            text[i] = rand_int(0, 9) ? 'a' : 'b';
            ids[i] = text[i] - 'a';
        }
        work.n_ids = 0;
        assert_int_equal(tg_bpe_append_piece(&t->bpe, &work, text, n, NULL), TG_OK);
        assert_int_equal(work.n_ids, by_definition(t, ids, n));
        assert_memory_equal(work.ids, ids, work.n_ids * sizeof *ids);
    }
    tg_bpe_work_deinit(&work);
    toy_free(t);
}

static void r11_long_pieces(void **state)
{
    (void)state;
    enum { N = 1 << 20 };
    toy *t = toy_new();
    for (int i = 0; i < 3; i++)
        toy_merge(t, i ? 4 + i : 0, i ? 4 + i : 0); /* aa, aaaa, aaaaaaaa */
    toy_merge_text(t, "a", "b");
    toy_merge_text(t, "ab", "ab");
    uint8_t *text = malloc(N);
    assert_non_null(text);
    tg_bpe_work work;
    assert_int_equal(tg_bpe_work_init(&work, N, NULL), TG_OK);
    double start = clock_seconds();
    memset(text, 'a', N);
    assert_int_equal(tg_bpe_append_piece(&t->bpe, &work, text, N, NULL), TG_OK);
    assert_int_equal(work.n_ids, N / 8);
    for (size_t i = 1; i < N; i += 2)
        text[i] = 'b';
    work.n_ids = 0;
    assert_int_equal(tg_bpe_append_piece(&t->bpe, &work, text, N, NULL), TG_OK);
    assert_int_equal(work.n_ids, N / 4);
    assert_true(clock_seconds() - start < 10);
    tg_bpe_work_deinit(&work);
    free(text);
    toy_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_of_tokens),
        cmocka_unit_test(equals_the_definition),
        cmocka_unit_test(a22_bytes_without_a_token),
        cmocka_unit_test(a23_the_last_rank),
        cmocka_unit_test(whole_pieces),
        cmocka_unit_test(cache_changes_nothing),
        cmocka_unit_test(r11_long_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
