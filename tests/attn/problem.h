/* problem.h - a cache with random keys and values, and rows that attend to it. Where no row may look, the
 * cache is NaN. What float64 makes of it is in float64.h. */
#ifndef TESTS_ATTN_PROBLEM_H
#define TESTS_ATTN_PROBLEM_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attn/strategy.h"
#include "kernel/isa.h"
#include "support/fnv.h"
#include "support/rand.h"

#ifdef TG_DEBUG
enum { DEBUG = 1 };
#else
enum { DEBUG = 0 };
#endif

#define EACH_STRATEGY(s)                                                                           \
    for (const tg_attn_strategy *s = tg_attn_strategies; s < tg_attn_strategies + tg_n_attn_strategies; s++)

static const tg_type cache_types[] = {TG_F32, TG_F16, TG_BF16, TG_Q8_0, TG_Q4};
enum { N_TYPES = sizeof cache_types / sizeof *cache_types };
static const int head_groups[][2] = {{1, 1}, {8, 2}, {9, 3}, {4, 4}, {5, 1}, {6, 2}, {3, 1}, {70, 1}};

typedef struct sizes {
    int n_seq, n_keys; /* positions of each sequence */
    int n_head, n_head_kv, head_dim;
    tg_type type_k, type_v;
    int n; /* rows */
} sizes;

typedef struct problem {
    sizes s;
    tg_attn a;
    int seq_blocks;
    int32_t *block; /* [n_seq][seq_blocks] in random order */
    tg_kv_seq *seq;
    tg_attn_row *row;
    float *k, *v;    /* [n_seq][n_keys][n_head_kv][head_dim], once put: as the cache holds them */
    float *v_scale;  /* [n_seq][n_keys][n_head_kv][scales]: of Q8_0 and Q4 values */
    float *q, *sink; /* sink: [n_head], in use when a.mods.sink says so */
    size_t kv_bytes;
} problem;

/* ---- making -------------------------------------------------------------------------------------- */

/* Rounded to BF16, ties to even. */
static inline float to_bf16(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    u = (u + 0x7fff + (u >> 16 & 1)) & 0xffff0000u;
    memcpy(&x, &u, 4);
    return x;
}

/* Close to normal, of one draw: four uniform numbers. */
static inline float near_normal(void)
{
    uint64_t u = rand_u64();
    int64_t sum = (int64_t)(u & 0xffff) + (int64_t)(u >> 16 & 0xffff) + (int64_t)(u >> 32 & 0xffff) +
                  (int64_t)(u >> 48);
    return (float)((double)(sum - 2 * 0xffff) * (1.7320508 / 65536));
}

static inline float *normals(size_t n, float scale)
{
    float *x = malloc((n + 1) * sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = near_normal() * scale;
    return x;
}

/* A count next to one of those at which something ends: a group, a block, a chunk, a round of lanes. */
static inline int near_edge(int most)
{
    static const int units[] = {16, 64, 256, 2048};
    int unit = units[rand_int(0, 3)];
    int n = unit * rand_int(1, most / unit > 0 ? most / unit : 1) + rand_int(-1, 1);
    return n > most ? most : n;
}

static inline int row_width(const problem *p)
{
    return p->s.n_head * p->s.head_dim;
}

static inline size_t out_floats(const problem *p)
{
    return (size_t)p->s.n * (size_t)row_width(p);
}

static inline size_t key_at(const problem *p, int seq, int pos, int head)
{
    return (((size_t)seq * (size_t)p->s.n_keys + (size_t)pos) * (size_t)p->s.n_head_kv + (size_t)head) *
           (size_t)p->s.head_dim;
}

static inline void shuffle_blocks(problem *p)
{
    for (int n = p->s.n_seq * p->seq_blocks, i = 0; i < n; i++) {
        int j = rand_int(0, i);
        p->block[i] = p->block[j];
        p->block[j] = i;
    }
}

/* Rows 0 .. n - 1 are the last positions of sequence 0. `spread` scales the queries: a large one makes
 * peaks. */
static inline problem problem_make(sizes s, float spread)
{
    problem p = {.s = s, .seq_blocks = s.n_keys / TG_KV_BLOCK + 1};
    size_t nb = (size_t)(s.n_seq * p.seq_blocks), n_values = key_at(&p, s.n_seq, 0, 0), layer_stride;
    tg_kv_view *kv = &p.a.kv;
    *kv = (tg_kv_view){.type_k = s.type_k, .type_v = s.type_v, .head_dim = s.head_dim, .n_head_kv = s.n_head_kv};
    p.kv_bytes = tg_kv_lay_out(kv, 1, nb, &layer_stride);
    kv->data = memset(malloc(p.kv_bytes), 0xff, p.kv_bytes); /* NaN: what is not a key must never be touched */
    p.block = malloc(nb * sizeof *p.block);
    shuffle_blocks(&p);
    p.seq = malloc((size_t)s.n_seq * sizeof *p.seq);
    for (int i = 0; i < s.n_seq; i++)
        p.seq[i].block = p.block + i * p.seq_blocks;
    p.k = normals(n_values, 1);
    p.v = normals(n_values, 1);
    p.v_scale = malloc((n_values + 1) * sizeof *p.v_scale);
    p.q = normals(out_floats(&p), spread);
    p.sink = normals((size_t)s.n_head, 2);
    p.row = malloc((size_t)s.n * sizeof *p.row);
    for (int i = 0; i < s.n; i++)
        p.row[i] = (tg_attn_row){.seq = 0, .pos = s.n_keys - s.n + i < 0 ? -1 : s.n_keys - s.n + i};
    p.a.seq = p.seq;
    p.a.row = p.row;
    p.a.n = s.n;
    p.a.n_head = s.n_head;
    p.a.q = p.q;
    p.a.out = malloc(out_floats(&p) * sizeof(float));
    p.a.partial = calloc(1, tg_attn_partial_bytes(s.n_head, s.head_dim));
    return p;
}

static inline void problem_free(problem *p)
{
    free(p->a.kv.data);
    free(p->block);
    free(p->seq);
    free(p->row);
    free(p->k);
    free(p->v);
    free(p->v_scale);
    free(p->q);
    free(p->sink);
    free(p->a.out);
    free(p->a.partial);
}

/* Rows anywhere in any sequence, in runs as prefill has them and single ones as decode has; some have no
 * key. */
static inline void mix_rows(problem *p)
{
    for (int i = 0; i < p->s.n;) {
        int seq = rand_int(0, p->s.n_seq - 1), pos = rand_int(-1, p->s.n_keys - 1);
        for (int run = rand_int(0, 2) ? rand_int(1, 30) : 1; run > 0 && i < p->s.n && pos < p->s.n_keys; run--)
            p->row[i++] = (tg_attn_row){.seq = seq, .pos = pos++};
    }
}

/* ---- scores chosen one by one ---------------------------------------------------------------------- */

enum { ODD = 9 }; /* kinds of scores */

static inline float odd_score(int which, int j, int n)
{
    switch (which) {
    case 0: /* most weigh nothing */
        return rand_int(0, 3) && j != n / 2 ? -INFINITY : near_normal();
    case 1: /* huge on both sides */
        return near_normal() * 1e37f;
    case 2: /* one huge among small */
        return j == n / 2 ? 1e30f : near_normal();
    case 3: /* all equal, and large */
        return 1e8f;
    case 4: /* all equal, and low */
        return -3e38f;
    case 5: /* subnormal */
        return (float)rand_int(-100, 100) * 1e-42f;
    case 6: /* ascending: the maximum never rests */
        return (float)j * 0.25f - 50;
    case 7: /* descending */
        return 50 - (float)j * 0.25f;
    default: /* just where weights end */
        return j == n / 2 ? 0 : -87 + (float)rand_int(-8, 8) / 4;
    }
}

static inline void odd_scores_of(int which, float *x, int n)
{
    for (int j = 0; j < n; j++)
        x[j] = odd_score(which, j, n);
}

/* ---- the cache ----------------------------------------------------------------------------------- */

static inline bool sees(const tg_attn_mods *m, tg_attn_row row, int pos)
{
    return pos <= row.pos && (m->window == 0 || pos > row.pos - m->window || pos < m->keep);
}

/* Reads a position back, as float32 has it. */
static inline void read_back(problem *p, int seq, int pos)
{
    const tg_kv_view *kv = &p->a.kv;
    size_t dim = (size_t)kv->head_dim, v_dim = (size_t)kv->v_dim, at = (size_t)(pos % TG_KV_BLOCK);
    float *wide = malloc(TG_KV_BLOCK * v_dim * sizeof *wide);
    for (int h = 0; h < kv->n_head_kv; h++) {
        int32_t block = p->seq[seq].block[pos / TG_KV_BLOCK];
        size_t to = key_at(p, seq, pos, h);
        const uint8_t *k = tg_kv_at(kv, block, h, false), *v = tg_kv_at(kv, block, h, true);
        if (kv->type_k != TG_F32)
            tg_kv_table()->widen_k(k, kv->type_k, kv->head_dim, (int)at + 1, wide);
        const float *from = kv->type_k == TG_F32 ? (const float *)(const void *)k : wide;
        for (size_t d = 0; d < dim; d++)
            p->k[to + d] = from[d * TG_KV_BLOCK + at];
        if (kv->type_v != TG_F32)
            tg_kv_table()->widen_v(v, kv->type_v, kv->head_dim, (int)at + 1, wide);
        from = kv->type_v == TG_F32 ? (const float *)(const void *)v : wide;
        memcpy(p->v + to, from + at * v_dim, dim * sizeof *from);
        for (size_t d = 0; d < dim; d += 32) {
            float most = 0;
            for (size_t i = d; i < dim && i < d + 32; i++)
                most = fmaxf(most, fabsf(p->v[to + i]));
            p->v_scale[to + d / 32] = most / 127.0f;
            if (kv->type_v == TG_Q4) {
                uint16_t scale;
                memcpy(&scale, v + TG_KV_BLOCK / 2 * tg_kv_v_pair_bytes(TG_Q4, kv->head_dim) +
                                   (d / 32 * TG_KV_BLOCK + at) * 2, 2);
                p->v_scale[to + d / 32] = tg_f16_to_f32(scale);
            }
        }
    }
    free(wide);
}

static inline int put(problem *p, int seq, int pos)
{
    size_t at = key_at(p, seq, pos, 0);
    int n_clamped = tg_kv_put(&p->a.kv, &p->seq[seq], pos, p->k + at, p->v + at);
    read_back(p, seq, pos);
    return n_clamped;
}

/* x rotated as Q4 wants it, or back, in float64: by a matrix that the rotation of unit vectors tells. */
static inline void rotate64(const double *x, int dim, bool back, double *out)
{
    static double matrix[256][256];
    static int of_dim;
    for (int d = 0; d < dim && of_dim != dim; d++) {
        float unit[256] = {0};
        unit[d] = 1;
        tg_kv_table()->rotate(unit, dim, false);
        for (int e = 0; e < dim; e++)
            matrix[e][d] = (double)((unit[e] > 0) - (unit[e] < 0)) / sqrt(tg_kv_rotation(dim));
    }
    of_dim = dim;
    for (int e = 0; e < dim; e++) {
        out[e] = 0;
        for (int d = 0; d < dim; d++)
            out[e] += x[d] * (back ? matrix[d][e] : matrix[e][d]);
    }
}

/* Writes what any row sees, and nothing else. */
static inline void put_all(problem *p)
{
    for (int seq = 0; seq < p->s.n_seq; seq++)
        for (int pos = 0; pos < p->s.n_keys; pos++)
            for (int i = 0; i < p->s.n; i++)
                if (p->row[i].seq == seq && sees(&p->a.mods, p->row[i], pos)) {
                    assert_int_equal(put(p, seq, pos), 0);
                    break;
                }
}

/* ---- running ------------------------------------------------------------------------------------- */

typedef struct call {
    const tg_attn_strategy *s;
    tg_attn a;
} call;

static inline void call_program(const tg_worker *w, void *arg)
{
    const call *c = arg;
    c->s->run(w, &c->a);
}

/* Does the strategy know what the problem asks for? */
static inline bool fits(const tg_attn_strategy *s, const problem *p)
{
    bool modified = p->a.mods.window || p->a.mods.soft_cap != 0.0f || p->a.mods.sink;
    if (modified && !s->modifiers)
        return false;
    return !s->dots || (p->s.type_k == TG_BF16 && p->s.type_v == TG_BF16 && tg_isa_has_bf16());
}

/* `a` is the problem's, or has some of its rows. */
static inline void run(const tg_attn_strategy *s, const problem *p, const tg_attn *a, int n_threads)
{
    call c = {s, *a};
    c.a.dots = s->dots;
    tg_team *team;
    size_t scratch = tg_attn_strategy_scratch(s, a->n, p->s.n_keys, p->s.n_head, p->s.n_head_kv, p->s.head_dim);
    assert_int_equal(tg_team_create(&team, n_threads, scratch, NULL), TG_OK);
    memset(a->out, 0xff, (size_t)a->n * (size_t)row_width(p) * sizeof *a->out);
    tg_team_run(team, call_program, &c);
    tg_team_free(team);
}

static inline uint64_t hash_of(const problem *p)
{
    return fnv_bytes(FNV_START, (const uint8_t *)p->a.out, out_floats(p) * sizeof(float));
}

#endif
