/* Attention against float64, and its laws: split, merge, identity, shift, any threads and batch. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attn/attention.h"
#include "support/rand.h"

/* ---- a cache and queries ----------------------------------------------------------------------- */

typedef struct problem {
    tg_attn a;
    int n_keys, n_blocks;
    float *k, *v; /* [n_keys][n_head_kv][head_dim], as the cache holds them after rounding */
    int32_t *block;
    tg_kv_seq seq;
    tg_attn_row *row;
    float *q;
    size_t k_bytes, v_bytes;
} problem;

static float rounded(float x, tg_type type)
{
    return type == TG_F16 ? tg_f16_to_f32(tg_f32_to_f16(x)) : x;
}

/* The last n of n_keys positions are query rows. `spread` scales the queries: large makes it peaked. */
static problem problem_make(int n_keys, int n, int n_head, int n_head_kv, int head_dim, tg_type type_k,
                            tg_type type_v, float spread)
{
    problem p = {.n_keys = n_keys, .n_blocks = (n_keys + TG_KV_BLOCK - 1) / TG_KV_BLOCK};
    int v_dim = tg_kv_v_dim(head_dim);
    size_t nb = (size_t)p.n_blocks, kb = TG_KV_BLOCK * (size_t)head_dim * (type_k == TG_F16 ? 2 : 4),
           vb = TG_KV_BLOCK * (size_t)v_dim * (type_v == TG_F16 ? 2 : 4);
    p.k_bytes = nb * kb * (size_t)n_head_kv;
    p.v_bytes = nb * vb * (size_t)n_head_kv;
    tg_kv_view *kv = &p.a.kv;
    *kv = (tg_kv_view){.k_block_stride = kb, .v_block_stride = vb, .k_head_stride = nb * kb,
                       .v_head_stride = nb * vb, .type_k = type_k, .type_v = type_v,
                       .head_dim = head_dim, .v_dim = v_dim, .n_head_kv = n_head_kv};
    kv->k = malloc(p.k_bytes);
    kv->v = malloc(p.v_bytes);
    memset(kv->k, 0xff, p.k_bytes); /* NaN: what is not a key must never be touched */
    memset(kv->v, 0xff, p.v_bytes);
    p.block = malloc(nb * sizeof *p.block);
    for (int i = 0; i < p.n_blocks; i++) /* any order of blocks */
        p.block[i] = p.n_blocks - 1 - i;
    p.seq.block = p.block;
    size_t width = (size_t)n_head_kv * (size_t)head_dim, q_width = (size_t)n_head * (size_t)head_dim;
    p.k = malloc((size_t)n_keys * width * sizeof(float));
    p.v = malloc((size_t)n_keys * width * sizeof(float));
    for (size_t i = 0; i < (size_t)n_keys * width; i++) {
        p.k[i] = rounded(rand_normal(), type_k);
        p.v[i] = rounded(rand_normal(), type_v);
    }
    p.q = malloc((size_t)n * q_width * sizeof(float));
    for (size_t i = 0; i < (size_t)n * q_width; i++)
        p.q[i] = rand_normal() * spread;
    p.row = malloc((size_t)n * sizeof *p.row);
    for (int i = 0; i < n; i++)
        p.row[i] = (tg_attn_row){.seq = 0, .pos = n_keys - n + i};
    p.a.row = p.row;
    p.a.n = n;
    p.a.n_head = n_head;
    p.a.q = p.q;
    p.a.out = malloc((size_t)n * q_width * sizeof(float));
    p.a.partial = malloc(tg_attn_partial_floats(n_head, head_dim) * sizeof(float));
    return p;
}

static void problem_write(problem *p)
{
    size_t width = (size_t)p->a.kv.n_head_kv * (size_t)p->a.kv.head_dim;
    for (int i = 0; i < p->n_keys; i++)
        assert_int_equal(tg_kv_put(&p->a.kv, &p->seq, i, p->k + (size_t)i * width, p->v + (size_t)i * width),
                         0);
    p->a.seq = &p->seq;
}

static void problem_free(problem *p)
{
    free(p->a.kv.k);
    free(p->a.kv.v);
    free(p->block);
    free(p->k);
    free(p->v);
    free(p->q);
    free(p->row);
    free(p->a.out);
    free(p->a.partial);
}

static void program(const tg_worker *w, void *arg)
{
    tg_attention(w, arg);
}

static void run(const tg_attn *a, int n_threads)
{
    tg_team *team;
    size_t scratch = tg_attn_scratch_bytes(a->n_head, a->kv.n_head_kv, a->kv.head_dim);
    assert_int_equal(tg_team_create(&team, n_threads, scratch, NULL), TG_OK);
    tg_team_run(team, program, (void *)(uintptr_t)a);
    tg_team_free(team);
}

/* ---- float64 ------------------------------------------------------------------------------------- */

/* The largest |out - reference| in units of the bound 16 * 2^-24 * (1 + max |q||k|) * sum p |v|. */
static double error_of(const problem *p)
{
    const tg_attn *a = &p->a;
    int dim = a->kv.head_dim, group = a->n_head / a->kv.n_head_kv;
    size_t width = (size_t)a->kv.n_head_kv * (size_t)dim;
    double worst = 0, *s = malloc((size_t)p->n_keys * sizeof *s);
    for (int r = 0; r < a->n; r++) {
        for (int h = 0; h < a->n_head; h++) {
            const float *q = a->q + ((size_t)r * (size_t)a->n_head + (size_t)h) * (size_t)dim;
            const float *out = a->out + ((size_t)r * (size_t)a->n_head + (size_t)h) * (size_t)dim;
            size_t column = (size_t)(h / group) * (size_t)dim;
            double max = -INFINITY, most = 0, l = 0;
            int from = a->mods.window ? a->row[r].pos + 1 - a->mods.window : 0;
            from = from < 0 ? 0 : from;
            for (int j = from; j <= a->row[r].pos; j++) {
                const float *k = p->k + (size_t)j * width + column;
                double dot = 0, qq = 0, kk = 0;
                for (int d = 0; d < dim; d++) {
                    dot += (double)q[d] * (double)k[d];
                    qq += (double)q[d] * (double)q[d];
                    kk += (double)k[d] * (double)k[d];
                }
                s[j] = dot;
                max = dot > max ? dot : max;
                most = sqrt(qq * kk) > most ? sqrt(qq * kk) : most;
            }
            for (int j = from; j <= a->row[r].pos; j++)
                l += s[j] = exp(s[j] - max);
            for (int d = 0; d < dim; d++) {
                double o = 0, size = 0;
                for (int j = from; j <= a->row[r].pos; j++) {
                    double v = (double)p->v[(size_t)j * width + column + (size_t)d];
                    o += s[j] / l * v;
                    size += s[j] / l * fabs(v);
                }
                double bound = 16 * 0x1p-24 * (1 + most) * size + 1e-38;
                double error = fabs((double)out[d] - o) / bound;
                worst = error <= worst ? worst : error; /* a NaN is kept */
            }
        }
    }
    free(s);
    return worst;
}

static void against_float64(void **state)
{
    (void)state;
    static const int groups[][2] = {{1, 1}, {8, 2}, {9, 3}, {4, 4}, {5, 1}, {70, 1}, {6, 2}};
    for (int i = 0; i < 160; i++) {
        rand_state = 1000 + (uint64_t)i;
        const int *g = groups[i % 7];
        int dim = i % 3 == 0 ? 64 : rand_int(1, i % 10 == 0 ? 256 : 80);
        int n_keys = i % 20 == 19 ? rand_int(2049, 3000) : rand_int(1, 700);
        int n = rand_int(1, n_keys < 40 ? n_keys : 40);
        if (i % 2)
            n = n < 3 ? n : 3;
        problem p = problem_make(n_keys, n, g[0], g[1], dim, i & 1 ? TG_F16 : TG_F32,
                                 i & 2 ? TG_F16 : TG_F32, i % 5 == 4 ? 3.0f : 0.3f);
        if (i % 4 == 3)
            p.a.mods.window = rand_int(1, n_keys);
        problem_write(&p);
        run(&p.a, 2);
        double error = error_of(&p);
        if (!(error <= 1.0))
            fail_msg("case %d: %d keys, %d rows, heads %d/%d of %d: %g of the bound", i, n_keys, n, g[0],
                     g[1], dim, error);
        problem_free(&p);
    }
}

/* Any number of threads, any company in the batch. */
static void same_bits(void **state)
{
    (void)state;
    for (int i = 0; i < 12; i++) {
        rand_state = 50 + (uint64_t)i;
        int n = 21;
        problem p = problem_make(i % 2 ? 2500 : 300, n, 6, 2, i % 3 ? 64 : 10, TG_F16, TG_F32, 1.0f);
        problem_write(&p);
        run(&p.a, 1);
        size_t size = (size_t)n * 6 * (size_t)p.a.kv.head_dim;
        float *first = malloc(size * sizeof *first);
        memcpy(first, p.a.out, size * sizeof *first);
        for (int threads = 1; threads <= 8; threads += threads == 3 ? 5 : 1) {
            memset(p.a.out, 0xff, size * sizeof *first);
            run(&p.a, threads);
            assert_memory_equal(first, p.a.out, size * sizeof *first);
        }
        tg_attn part = p.a; /* one row at a time takes the split schedule */
        memset(p.a.out, 0xff, size * sizeof *first);
        for (int r = 0; r < n; r++) {
            part.n = 1;
            part.row = p.row + r;
            part.q = p.q + (size_t)r * 6 * (size_t)p.a.kv.head_dim;
            part.out = p.a.out + (size_t)r * 6 * (size_t)p.a.kv.head_dim;
            run(&part, 2);
        }
        assert_memory_equal(first, p.a.out, size * sizeof *first);
        free(first);
        problem_free(&p);
    }
}

/* ---- states ----------------------------------------------------------------------------------------- */

enum { STATE = 32 };

/* One query of head_dim 1 against given scores and values: absorbs keys lo .. hi - 1. */
static void absorb(float *state, const float *scores, const float *values, int n, int lo, int hi)
{
    static float k[TG_KV_CHUNK], v[TG_KV_CHUNK][16], s[TG_KV_CHUNK], fresh[STATE];
    assert_true(n <= TG_KV_BLOCK);
    memset(v, 0, sizeof v);
    for (int i = 0; i < n; i++) {
        k[i] = scores[i];
        v[i][0] = values ? values[i] : 0;
    }
    const float one = 1, *q = &one;
    float row;
    tg_chunk c = {.k = {(const uint8_t *)k}, .v = {(const uint8_t *)v}, .head_dim = 1, .v_dim = 16,
                        .n = 1, .q = &q, .lo = &lo, .hi = &hi, .scores = s, .states = fresh, .q_rows = &row};
    tg_attn_table()->prepare(&c);
    tg_attn_table()->absorb(&c, state);
}

static void expect(const float *state, double m, double l, double tolerance)
{
    assert_true(fabs((double)state[16] - m) <= tolerance);
    assert_true(fabs((double)state[17] - l) <= tolerance);
}

/* The worked examples of the literature, to the digits printed there. */
static void worked_examples(void **state)
{
    (void)state;
    float s[STATE], t[STATE], out;
    const float a[] = {1, 5, 3}, b[] = {2, 1, 3, 0.5f}, c[] = {1, 3, 2, 0};

    tg_attn_begin(s, 16);
    absorb(s, a, NULL, 3, 0, 1);
    expect(s, 1, 1, 1e-7);
    absorb(s, a, NULL, 3, 1, 2);
    expect(s, 5, 1.0183156, 1e-6);
    absorb(s, a, NULL, 3, 2, 3);
    expect(s, 5, 1.1536509, 1e-6);

    static const double l[] = {1.0, 1.3679, 1.5032, 1.5853}, m[] = {2, 2, 3, 3};
    tg_attn_begin(s, 16);
    for (int i = 0; i < 4; i++) {
        absorb(s, b, NULL, 4, i, i + 1);
        expect(s, m[i], l[i], 5e-5);
    }
    tg_attn_begin(s, 16);
    tg_attn_begin(t, 16);
    absorb(s, b, NULL, 4, 0, 2);
    expect(s, 2, 1.3679, 5e-5);
    absorb(t, b, NULL, 4, 2, 4);
    expect(t, 3, 1.0821, 5e-5);
    tg_attn_table()->merge(s, t, 16);
    expect(s, 3, 1.5853, 5e-5);

    /* A probability is the output for a value that is 1 at its key and 0 elsewhere. */
    static const double pb[] = {0.2321, 0.0854, 0.6308, 0.0518},
                        pc[] = {0.087144, 0.643914, 0.236883, 0.032059};
    for (int i = 0; i < 4; i++) {
        float v[4] = {0};
        v[i] = 1;
        tg_attn_begin(s, 16);
        absorb(s, b, v, 4, 0, 4);
        tg_attn_table()->finish(s, 16, 1, &out);
        assert_true(fabs((double)out - pb[i]) <= 5e-5);
        for (int split = 0; split <= 4; split += 2) {
            tg_attn_begin(s, 16);
            absorb(s, c, v, 4, 0, split);
            absorb(s, c, v, 4, split, 4);
            tg_attn_table()->finish(s, 16, 1, &out);
            assert_true(fabs((double)out - pc[i]) <= 5e-7);
        }
    }
}

static void identity(void **state)
{
    (void)state;
    float s[STATE], e[STATE], t[STATE], out = 7;
    const float x[] = {1, -2, 0.5f}, v[] = {3, 4, 5};
    tg_attn_begin(s, 16);
    absorb(s, x, v, 3, 0, 3);
    memcpy(t, s, sizeof t);
    tg_attn_begin(e, 16);
    tg_attn_table()->merge(s, e, 16);
    assert_memory_equal(s, t, 18 * sizeof *s);
    tg_attn_table()->merge(e, t, 16);
    assert_memory_equal(e, t, 18 * sizeof *s);

    tg_attn_begin(s, 16);
    tg_attn_begin(e, 16);
    tg_attn_table()->merge(s, e, 16);
    assert_true(isinf(s[16]) && s[16] < 0 && s[17] == 0.0f);
    tg_attn_table()->finish(s, 16, 1, &out);
    assert_true(out == 0.0f);
}

/* -inf scores weigh nothing; all of them, and the state stays empty; NaN shows. */
static void odd_scores(void **state)
{
    (void)state;
    float s[STATE], out;
    const float v[] = {3, 4, 5};
    const float some[] = {-INFINITY, 2, -INFINITY}, none[] = {-INFINITY, -INFINITY, -INFINITY};
    tg_attn_begin(s, 16);
    absorb(s, some, v, 3, 0, 3);
    tg_attn_table()->finish(s, 16, 1, &out);
    assert_true(out == 4.0f);
    tg_attn_begin(s, 16);
    absorb(s, none, v, 3, 0, 3);
    assert_true(s[17] == 0.0f);
    absorb(s, some, v, 3, 0, 3);
    tg_attn_table()->finish(s, 16, 1, &out);
    assert_true(out == 4.0f);
    for (int i = 0; i < 3; i++) {
        float bad[] = {1, 2, -INFINITY};
        bad[i] = NAN;
        tg_attn_begin(s, 16);
        absorb(s, bad, v, 3, 0, 3);
        tg_attn_table()->finish(s, 16, 1, &out);
        assert_true(isnan(out));
    }
}

/* 1 <= l <= number of keys, whatever the scores; a shift of all scores changes nothing but m. */
static void bounds_and_shift(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        rand_state = 7 + (uint64_t)i;
        float x[TG_KV_BLOCK], y[TG_KV_BLOCK], v[TG_KV_BLOCK], s[STATE], t[STATE], a, b;
        int n = rand_int(1, TG_KV_BLOCK);
        for (int j = 0; j < n; j++) {
            x[j] = floorf(rand_normal() * (i % 4 == 0 ? 1e4f : 64.0f)) / 8; /* exact when shifted */
            y[j] = x[j] + 128.0f;
            v[j] = rand_normal();
        }
        tg_attn_begin(s, 16);
        tg_attn_begin(t, 16);
        absorb(s, x, v, n, 0, n);
        absorb(t, y, v, n, 0, n);
        assert_true(s[17] >= 1.0f && s[17] <= (float)n);
        tg_attn_table()->finish(s, 16, 1, &a);
        tg_attn_table()->finish(t, 16, 1, &b);
        assert_true(a == b && t[16] == s[16] + 128.0f);
    }
}

/* Values that float16 cannot hold are clamped and counted. */
static void saturation(void **state)
{
    (void)state;
    rand_state = 3;
    problem p = problem_make(1, 1, 1, 1, 20, TG_F16, TG_F16, 1.0f);
    for (int d = 0; d < 20; d++)
        p.k[d] = p.v[d] = 1;
    p.k[3] = 1e6f;
    p.v[19] = -INFINITY;
    p.v[0] = 65504.0f;
    assert_int_equal(tg_kv_put(&p.a.kv, &p.seq, 0, p.k, p.v), 2);
    p.a.seq = &p.seq;
    for (int d = 0; d < 20; d++)
        p.q[d] = 0;
    run(&p.a, 1);
    assert_true(p.a.out[19] == -65504.0f && p.a.out[0] == 65504.0f && p.a.out[1] == 1.0f);
    problem_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worked_examples),  cmocka_unit_test(identity),
        cmocka_unit_test(odd_scores),       cmocka_unit_test(bounds_and_shift),
        cmocka_unit_test(saturation),       cmocka_unit_test(against_float64),
        cmocka_unit_test(same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
