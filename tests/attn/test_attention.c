/* The serving path: the same bits for any threads, batch, schedule and instruction set, and for a cache
 * that grew key by key. */
#include "attn/problem.h"
#include "support/levels.h"

static const tg_attn_strategy *by_name(const char *name)
{
    const tg_attn_strategy *s = tg_attn_strategy_by_name(name);
    assert_non_null(s);
    return s;
}

/* All pairs of types in turn, every other time with modifiers, at times with the rows of a prefill. */
static problem some_problem(int i, int most_keys)
{
    rand_state = 50 + (uint64_t)i;
    const int *heads = head_groups[i % 7];
    sizes s = {.n_seq = i % 3 + 1, .n_keys = i % 4 ? near_edge(most_keys) : rand_int(1, most_keys)};
    s.n_head = heads[0];
    s.n_head_kv = heads[1];
    s.head_dim = i % 2 ? 64 : rand_int(1, 130);
    s.type_k = cache_types[i % N_TYPES];
    s.type_v = cache_types[i / N_TYPES % N_TYPES];
    s.n = i % 5 ? rand_int(2, 30) : rand_int(60, 120);
    problem p = problem_make(s, 0.3f);
    mix_rows(&p);
    if (i / (N_TYPES * N_TYPES) % 2) {
        p.a.mods.window = rand_int(1, s.n_keys);
        p.a.mods.keep = i % 3 ? rand_int(0, 70) : 0;
        p.a.mods.soft_cap = i % 2 ? 5 : 0;
        p.a.mods.sink = i % 5 ? p.sink : NULL;
    }
    put_all(&p);
    return p;
}

/* Rows `first` to `end - 1` of the problem, in a batch of their own. */
static tg_attn part_of(const problem *p, int first, int end)
{
    tg_attn a = p->a;
    a.n = end - first;
    a.row += first;
    a.q += (size_t)first * (size_t)row_width(p);
    a.out += (size_t)first * (size_t)row_width(p);
    return a;
}

static void expect_bits(const problem *p, const float *want, const char *what, int i)
{
    if (memcmp(want, p->a.out, out_floats(p) * sizeof *want))
        fail_msg("case %d: %s changes bits", i, what);
}

static void in_parts(const tg_attn_strategy *s, const problem *p, int most)
{
    for (int first = 0, end; first < p->s.n; first = end) {
        end = first + rand_int(1, most);
        end = end < p->s.n ? end : p->s.n;
        tg_attn a = part_of(p, first, end);
        run(s, p, &a, 1 + first % 2);
    }
}

/* The rows in another order: other neighbours, other tiles. */
static void shuffled(const tg_attn_strategy *s, problem *p)
{
    int n = p->s.n, *at = malloc((size_t)n * sizeof *at);
    size_t width = (size_t)row_width(p), bytes = width * sizeof(float);
    tg_attn_row *row = malloc((size_t)n * sizeof *row);
    float *q = malloc(out_floats(p) * sizeof *q), *out = malloc(out_floats(p) * sizeof *out);
    for (int i = 0; i < n; i++) {
        int j = rand_int(0, i);
        at[i] = at[j];
        at[j] = i;
    }
    for (int i = 0; i < n; i++) {
        row[i] = p->row[at[i]];
        memcpy(q + (size_t)i * width, p->q + (size_t)at[i] * width, bytes);
    }
    tg_attn a = p->a;
    a.row = row;
    a.q = q;
    a.out = out;
    run(s, p, &a, 2);
    for (int i = 0; i < n; i++)
        memcpy(p->a.out + (size_t)at[i] * width, out + (size_t)i * width, bytes);
    free(at);
    free(row);
    free(q);
    free(out);
}

/* Any number of threads, any company in the batch, either schedule. */
static void same_bits(void **state)
{
    (void)state;
    for (int i = 0; i < (DEBUG ? 50 : 150); i++) {
        problem p = some_problem(i, i % 8 == 7 ? 2600 : 600);
        const tg_attn_strategy *s = by_name("auto");
        run(s, &p, &p.a, 1);
        float *first = malloc(out_floats(&p) * sizeof *first);
        memcpy(first, p.a.out, out_floats(&p) * sizeof *first);
        for (int t = 0; t < 2; t++) {
            run(s, &p, &p.a, t == 0 ? 2 : i % 2 ? 3 : 8);
            expect_bits(&p, first, "the number of threads", i);
        }
        in_parts(s, &p, 1);
        expect_bits(&p, first, "a batch of one", i);
        in_parts(s, &p, 20);
        expect_bits(&p, first, "a smaller batch", i);
        shuffled(s, &p);
        expect_bits(&p, first, "the order of rows", i);
        run(by_name("split"), &p, &p.a, 1 + i % 3);
        expect_bits(&p, first, "splitting", i);
        free(first);
        problem_free(&p);
    }
}

/* BF16 products add two keys at a time, and which two may depend on the company: threads alone are promised. */
static void bf16_threads(void **state)
{
    (void)state;
    const tg_attn_strategy *s = by_name("bf16");
    for (int i = 2 + 2 * N_TYPES; i < 200; i += N_TYPES * N_TYPES) {
        problem p = some_problem(i, 2600);
        if (fits(s, &p)) {
            run(s, &p, &p.a, 1);
            uint64_t first = hash_of(&p);
            for (int threads = 2; threads < 9; threads++) {
                run(s, &p, &p.a, threads);
                assert_true(hash_of(&p) == first);
            }
        }
        problem_free(&p);
    }
}

/* A row over a cache that grew key by key, behind which nothing is written yet, is that over the whole
 * cache, and where the blocks lie does not matter. */
static void appending(void **state)
{
    (void)state;
    for (int i = 0; i < (DEBUG ? 25 : 50); i++) {
        rand_state = 800 + (uint64_t)i;
        tg_type k = cache_types[i % N_TYPES], v = cache_types[i / N_TYPES % N_TYPES];
        int n = i % 3 ? near_edge(300) : rand_int(1, 100);
        problem p = problem_make((sizes){1, n, 4, 2, i % 2 ? 48 : 19, k, v, n}, 0.3f);
        size_t bytes = key_at(&p, 1, 0, 0) * sizeof(float);
        float *keys = memcpy(malloc(bytes), p.k, bytes), *values = memcpy(malloc(bytes), p.v, bytes);
        for (int r = 0; r < n; r++) {
            put(&p, 0, r);
            tg_attn one = part_of(&p, r, r + 1);
            run(by_name("auto"), &p, &one, 1);
        }
        uint64_t grown = hash_of(&p);
        run(by_name("auto"), &p, &p.a, 1);
        assert_true(hash_of(&p) == grown);
        shuffle_blocks(&p);
        memcpy(p.k, keys, bytes);
        memcpy(p.v, values, bytes);
        put_all(&p);
        run(by_name("auto"), &p, &p.a, 1);
        assert_true(hash_of(&p) == grown);
        free(keys);
        free(values);
        problem_free(&p);
    }
}

/* ---- instruction sets ---------------------------------------------------------------------------- */

static const char *program;

enum { LEVEL_CASES = DEBUG ? 25 : 75 };

/* All strategies but those with BF16 products, which only some processors have. */
static void print_bits(void)
{
    for (int i = 0; i < LEVEL_CASES; i++) {
        problem p = some_problem(i, i % 8 == 7 ? 2300 : 400);
        uint64_t cache = fnv_bytes(FNV_START, p.a.kv.data, p.kv_bytes);
        printf("case %d, cache: %016llx\n", i, (unsigned long long)cache);
        EACH_STRATEGY (s) {
            bool runs = !s->dots && fits(s, &p);
            if (runs)
                run(s, &p, &p.a, 1);
            printf("case %d, %s: %016llx\n", i, s->name, runs ? (unsigned long long)hash_of(&p) : 0);
        }
        problem_free(&p);
    }
}

static void levels_keep_the_bits(void **state)
{
    (void)state;
    assert_int_equal(levels_agree(program), LEVEL_CASES * (1 + tg_n_attn_strategies));
}

int main(int argc, char **argv)
{
    program = argv[0];
    if (argc > 1) {
        print_bits();
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits),
        cmocka_unit_test(bf16_threads),
        cmocka_unit_test(appending),
        cmocka_unit_test(levels_keep_the_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
