/* Every strategy of the table against float64: random shapes over all types of cache, modifiers where a
 * strategy knows them, odd scores, and what is no number. */
#include "attn/float64.h"

/* ---- random problems ----------------------------------------------------------------------------- */

/* 0: all scores equal; the last is subnormal. */
static const float spreads[] = {0.3f, 0, 0.05f, 1, 3, 30, 1e-41f};

static int some_keys(int i)
{
    return i % 50 == 49 ? rand_int(2049, 3000)
           : i % 10 == 9 ? near_edge(700)
           : i % 3 == 2  ? near_edge(300)
                         : rand_int(0, 150);
}

static sizes some_sizes(int i)
{
    sizes s = {.n_seq = rand_int(1, 3), .n_keys = some_keys(i)};
    const int *heads = head_groups[rand_int(0, i % 40 ? 6 : 7)];
    s.n_head = heads[0];
    s.n_head_kv = heads[1];
    s.head_dim = i % 4 == 0 ? 64 : i % 13 == 0 ? rand_int(1, 256) : rand_int(1, 80);
    s.type_k = cache_types[i % N_TYPES];
    s.type_v = i % 3 ? cache_types[rand_int(0, N_TYPES - 1)] : s.type_k;
    s.n = i % 2 ? rand_int(1, 3) : rand_int(1, s.n_keys > 300 ? 14 : 40);
    return s;
}

static void some_mods(problem *p)
{
    int n = p->s.n_keys > 1 ? p->s.n_keys : 2;
    if (rand_int(0, 3)) {
        p->a.mods.window = rand_int(0, 1) ? rand_int(1, n) : near_edge(n);
        p->a.mods.window = p->a.mods.window > 0 ? p->a.mods.window : 1;
        p->a.mods.keep = rand_int(0, 1) ? rand_int(0, 8) : rand_int(0, 1) ? near_edge(n) : 0;
    }
    p->a.mods.soft_cap = rand_int(0, 1) ? (float)rand_int(1, 100) / 2 : 0;
    p->a.mods.sink = rand_int(0, 1) ? p->sink : NULL;
}

static void tell(const char *strategy, int i, const problem *p, double error)
{
    fail_msg("%s, case %d: %d keys, %d rows, heads %d/%d of %d, types %d %d, window %d keep %d cap %g%s: %g of "
             "the bound",
             strategy, i, p->s.n_keys, p->s.n, p->s.n_head, p->s.n_head_kv, p->s.head_dim, (int)p->s.type_k,
             (int)p->s.type_v, p->a.mods.window, p->a.mods.keep, (double)p->a.mods.soft_cap,
             p->a.mods.sink ? " sink" : "", error);
}

/* The queries of `a` are those of PLAIN, rounded: it is no further off than the rounding explains. */
static void check_shift(const problem *p, int i, const answer *plain, const answer *a)
{
    for (size_t j = 0; j < out_floats(p); j++) {
        double error = fabs(a->want[j] - plain->want[j]);
        if (!(error <= a->shift[j] + 1e-12))
            tell("rounded queries", i, p, error / a->shift[j]);
    }
}

/* All strategies that see queries and weights in one way; `plain`: as they are, or NULL. */
static void check_kind(const problem *p, int i, sight kind, const answer *plain)
{
    answer a = {0};
    EACH_STRATEGY (s) {
        if (!fits(s, p) || kind_of(s, p) != kind)
            continue;
        if (!a.want)
            a = answer_make(p, kind);
        run(s, p, &p->a, 1);
        double error = error_of(p, &a);
        if (!(error <= 1))
            tell(s->name, i, p, error);
    }
    if (a.want && plain)
        check_shift(p, i, plain, &a);
    answer_free(&a);
}

static void check(const problem *p, int i)
{
    bool rounds = in_codes(p->s.type_k) || fits(tg_attn_strategy_by_name("bf16"), p);
    answer plain = {0};
    if (rounds)
        plain = answer_make(p, PLAIN);
    check_kind(p, i, PLAIN, NULL);
    check_kind(p, i, SERVED, rounds ? &plain : NULL);
    check_kind(p, i, DOTS, rounds ? &plain : NULL);
    answer_free(&plain);
}

static problem some_problem(int i)
{
    problem p = problem_make(some_sizes(i), spreads[i / 4 % 7]);
    if (i % 5)
        mix_rows(&p);
    p.a.tile_rows = 16 * rand_int(0, 4);
    p.a.tile_keys = 16 * rand_int(0, 4);
    return p;
}

static void random_shapes(void **state)
{
    (void)state;
    for (int i = 0; i < (DEBUG ? 150 : 1600); i++) {
        rand_state = 1000 + (uint64_t)i;
        problem p = some_problem(i);
        put_all(&p);
        check(&p, i);
        problem_free(&p);
    }
}

static void modifiers(void **state)
{
    (void)state;
    for (int i = 0; i < (DEBUG ? 150 : 1400); i++) {
        rand_state = 90000 + (uint64_t)i;
        problem p = some_problem(i);
        some_mods(&p);
        put_all(&p);
        check(&p, i);
        problem_free(&p);
    }
}

/* Values too small for a scale among ordinary ones, with one sign once they are rotated as Q4 wants it: a scale may
 * become -0, which must weigh nothing. */
static void tiny_values(void **state)
{
    (void)state;
    for (int i = 0; i < 40; i++) {
        rand_state = 70000 + (uint64_t)i;
        sizes s = {.n_seq = 1, .n_keys = rand_int(20, 400), .n = rand_int(1, 8), .n_head = 3, .n_head_kv = 1,
                   .head_dim = i % 2 ? 64 : rand_int(1, 128), .type_k = cache_types[i % N_TYPES],
                   .type_v = i % 4 < 3 ? TG_Q4 : TG_Q8_0};
        problem p = problem_make(s, 0.3f);
        for (int pos = rand_int(0, 8); pos < s.n_keys; pos += rand_int(1, 16)) {
            float *v = p.v + key_at(&p, 0, pos, 0);
            for (int d = 0; d < s.head_dim; d++)
                v[d] = pos % 2 ? 1e-6f : -1e-6f;
            if (s.type_v == TG_Q4)
                tg_kv_table()->rotate(v, s.head_dim, true);
        }
        put_all(&p);
        check(&p, i);
        problem_free(&p);
    }
}

/* 10,000 keys, and the literature's d = 64, N = 4096. */
static void long_rows(void **state)
{
    (void)state;
    for (int i = 0; i < (DEBUG ? 5 : 15); i++) {
        rand_state = 300 + (uint64_t)i;
        tg_type k = cache_types[i % N_TYPES], v = i < N_TYPES ? k : cache_types[rand_int(0, N_TYPES - 1)];
        sizes s = {1, i % 3 ? 10000 - i : 4096, 2, 1, 64, k, v, i % 2 ? 1 : 10};
        problem p = problem_make(s, i < 8 ? 0.125f : 1);
        put_all(&p);
        check(&p, i);
        problem_free(&p);
    }
}

/* ---- scores chosen one by one ------------------------------------------------------------------- */

/* q is 1 and a key is its score: a score is exact, and the bound need not allow for its rounding. */
static void odd_scores(void **state)
{
    (void)state;
    for (int i = 0; i < ODD * (DEBUG ? 6 : 60); i++) {
        rand_state = 700 + (uint64_t)i;
        int n = i % 2 ? near_edge(600) : rand_int(1, 100);
        problem p = problem_make((sizes){1, n, 1, 1, 1, TG_F32, i % 4 ? TG_F32 : TG_F16, n < 9 ? n : 9}, 1);
        for (int j = 0; j < p.s.n; j++)
            p.q[j] = 1;
        odd_scores_of(i % ODD, p.k, n);
        put_all(&p);
        answer a = answer_make(&p, PLAIN);
        for (int r = 0; r < p.s.n; r++) {
            double size = 0; /* 32 * 2^-24 * max |v| instead */
            for (int j = 0; j <= p.row[r].pos; j++)
                size = fmax(size, fabs((double)p.v[j]));
            a.bound[r] = 32 * 0x1p-24 * size;
        }
        EACH_STRATEGY (s) {
            if (!fits(s, &p))
                continue;
            run(s, &p, &p.a, 1);
            double error = error_of(&p, &a);
            if (!(error <= 1))
                fail_msg("scores %d: %s over %d keys: %g of the bound", i % ODD, s->name, n, error);
        }
        answer_free(&a);
        problem_free(&p);
    }
}

/* ---- what is no number --------------------------------------------------------------------------- */

/* Where a NaN is put: at one key, at one value, or in one query; in dimension `dim`. */
enum { IN_KEY, IN_VALUE, IN_QUERY };

typedef struct taint {
    int where, head, dim; /* head: of keys, or of queries */
    tg_attn_row at;       /* of a key */
    int row;              /* of a query */
    const float *k, *v;   /* all keys and values before they were put: twice rounded is not once rounded */
} taint;

static taint some_taint(const problem *p, int where)
{
    return (taint){where, rand_int(0, (where == IN_QUERY ? p->s.n_head : p->s.n_head_kv) - 1),
                   rand_int(0, p->s.head_dim - 1), {rand_int(0, p->s.n_seq - 1), rand_int(0, p->s.n_keys - 1)},
                   rand_int(0, p->s.n - 1), NULL, NULL};
}

/* Dimensions of a value that a NaN takes with it: those of a scale, and those that are rotated together. */
static int reach_of(const problem *p)
{
    int mixed = tg_kv_rotation(p->s.head_dim);
    return p->s.type_v == TG_Q4 && mixed > 32 ? mixed : in_codes(p->s.type_v) ? 32 : 1;
}

/* May it show in dimension d of head h of row r? */
static bool reaches(const problem *p, const taint *t, int r, int h, int d)
{
    if (t->where == IN_QUERY)
        return r == t->row && h == t->head && p->row[r].pos >= 0;
    if (h / (p->s.n_head / p->s.n_head_kv) != t->head || p->row[r].seq != t->at.seq ||
        !sees(&p->a.mods, p->row[r], t->at.pos))
        return false;
    return t->where == IN_KEY || d / reach_of(p) == t->dim / reach_of(p);
}

static void give(problem *p, const taint *t)
{
    size_t at = key_at(p, t->at.seq, t->at.pos, 0), n = (size_t)(p->s.n_head_kv * p->s.head_dim);
    memcpy(p->k + at, t->k + at, n * sizeof *p->k);
    memcpy(p->v + at, t->v + at, n * sizeof *p->v);
}

static void run_tainted(const tg_attn_strategy *s, problem *p, const taint *t)
{
    size_t key = key_at(p, t->at.seq, t->at.pos, t->where == IN_QUERY ? 0 : t->head);
    float *x = t->where == IN_KEY     ? p->k + key
               : t->where == IN_VALUE ? p->v + key
                                      : p->q + (size_t)(t->row * row_width(p) + t->head * p->s.head_dim);
    give(p, t);
    float saved = x[t->dim];
    x[t->dim] = NAN;
    put(p, t->at.seq, t->at.pos);
    run(s, p, &p->a, 1);
    give(p, t);
    x[t->dim] = saved;
    put(p, t->at.seq, t->at.pos);
}

static void check_taint(const tg_attn_strategy *s, problem *p, const taint *t)
{
    run(s, p, &p->a, 1);
    float *before = malloc(out_floats(p) * sizeof *before), *b = before, *out = p->a.out;
    memcpy(before, out, out_floats(p) * sizeof *before);
    run_tainted(s, p, t);
    for (int r = 0; r < p->s.n; r++)
        for (int h = 0; h < p->s.n_head; h++)
            for (int d = 0; d < p->s.head_dim; d++, b++, out++)
                if (reaches(p, t, r, h, d) ? !isnan(*out) : memcmp(b, out, sizeof *b))
                    fail_msg("%s, NaN in %d: row %d at %d, head %d, dimension %d: %g was %g", s->name, t->where,
                             r, p->row[r].pos, h, d, (double)*out, (double)*b);
    free(before);
}

/* A NaN becomes a NaN of all that see it, and changes no bit of what does not. */
static void nan_spreads(void **state)
{
    (void)state;
    for (int i = 0; i < (DEBUG ? 80 : 500); i++) {
        rand_state = 4000 + (uint64_t)i;
        sizes s = some_sizes(i);
        s.n_keys += s.n_keys == 0;
        problem p = problem_make(s, 0.3f);
        mix_rows(&p);
        if (i % 2)
            some_mods(&p);
        taint t = some_taint(&p, i % 3);
        size_t bytes = key_at(&p, s.n_seq, 0, 0) * sizeof(float);
        float *k = memcpy(malloc(bytes), p.k, bytes), *v = memcpy(malloc(bytes), p.v, bytes);
        t.k = k;
        t.v = v;
        for (int seq = 0; seq < s.n_seq; seq++)
            for (int pos = 0; pos < s.n_keys; pos++)
                put(&p, seq, pos);
        EACH_STRATEGY (strategy)
            if (fits(strategy, &p))
                check_taint(strategy, &p, &t);
        free(k);
        free(v);
        problem_free(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(odd_scores), cmocka_unit_test(random_shapes), cmocka_unit_test(modifiers),
        cmocka_unit_test(nan_spreads), cmocka_unit_test(tiny_values), cmocka_unit_test(long_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
