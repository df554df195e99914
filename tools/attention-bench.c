/* attention-bench - softmax and attention, each algorithm against its opponents, on this machine.
 *
 *     attention-bench [-t THREADS] [-r RUNS] [--csv FILE] [SECTION ...]
 *
 * Every section times its cases in turn, run by run, and takes medians; ratios are medians of the ratios
 * of neighbouring runs. It fills a session's cache, and its own rows. The table of claims comes last, on stdout; the
 * figures of each case go to the CSV file, from which tools/plot.py draws. */
#include <cblas.h>

#include "attn/strategy.h"
#include "base/memory.h"
#include "bench.h"
#include "report.h"
#include "kernel/blas.h"
#include "kernel/isa.h"
#include "kernel/softmax.h"
#include "kernel/vector.h"
#include "session/kv.h"

static struct {
    int n_threads, runs;
    tg_team *team, *one; /* of n_threads, and of one */
    size_t l3_bytes;
} bench = {.n_threads = 2, .runs = 9};

/* ---- numbers ------------------------------------------------------------------------------------- */

static uint64_t random_state = 1;

/* About normal: four uniform ones. */
static float random_normal(void)
{
    float sum = 0;
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    for (int i = 0; i < 4; i++)
        sum += (float)(random_state >> (16 * i) & 0xffff) / 65536.0f - 0.5f;
    return sum * 1.7320508f;
}

static void *memory(size_t n_bytes, const char *purpose)
{
    tg_error err;
    void *p = tg_reserve(n_bytes, purpose, &err);
    if (!p) {
        fprintf(stderr, "attention-bench: %s\n", err.message);
        exit(7);
    }
    return p;
}

static float *random_floats(size_t n)
{
    float *p = memory(n * sizeof *p, "numbers");
    for (size_t i = 0; i < n; i++)
        p[i] = random_normal();
    return p;
}

/* ---- attention problems --------------------------------------------------------------------------- */

enum { DIM = 64 };

typedef struct problem {
    tg_attn a;
    const tg_attn_strategy *strategy;
    int n_keys, n_layer;
    tg_kv cache;
    tg_attn_row *row;
    float *q;
} problem;

static const float *random_row(int i)
{
    static float *table;
    enum { ROWS = 4099 };
    if (!table)
        table = random_floats((size_t)ROWS * DIM);
    return table + (size_t)((unsigned)i * 2654435761u % ROWS) * DIM;
}

static tg_kv_view layer_of(const problem *p, int layer)
{
    tg_kv_view view = p->a.kv;
    view.data += (size_t)layer * p->cache.layers.stride;
    return view;
}

static void fill(const problem *p, int layer)
{
    const tg_kv_view view = layer_of(p, layer);
    for (int i = 0; i < p->n_keys; i++)
        for (int h = 0; h < view.n_head_kv; h++)
            tg_kv_table()->put(&view, i / TG_KV_BLOCK, i % TG_KV_BLOCK, h, random_row(i * 31 + h + layer),
                               random_row(i * 17 + h * 7 + layer + 1));
}

/* n rows of n_head heads against n_keys positions: the last n of them (causal), or each against all. */
static problem problem_make(int n, int n_keys, int n_head, int n_head_kv, int n_layer, tg_type type,
                            bool causal)
{
    problem p = {.strategy = &tg_attn_strategies[0], .n_keys = n_keys, .n_layer = n_layer};
    const tg_config c = {.n_layer = n_layer, .n_head_kv = n_head_kv, .head_dim = DIM};
    tg_error err;
    if (tg_kv_create(&p.cache, &c, n_keys, 1, type, type, &err) != TG_OK) {
        fprintf(stderr, "attention-bench: %s\n", err.message);
        exit(7);
    }
    for (int i = 0; i < n_keys; i++)
        tg_kv_append(&p.cache, 0); /* blocks 0, 1, 2, ... */
    p.a.kv = p.cache.layers.first;
    p.a.seq = p.cache.seq;
    for (int layer = 0; layer < n_layer; layer++)
        fill(&p, layer);
    p.row = memory((size_t)n * sizeof *p.row, "rows");
    for (int i = 0; i < n; i++)
        p.row[i] = (tg_attn_row){0, causal ? n_keys - n + i : n_keys - 1};
    p.q = random_floats((size_t)n * (size_t)n_head * DIM);
    for (size_t i = 0; i < (size_t)n * (size_t)n_head * DIM; i++)
        p.q[i] *= 0.125f;
    p.a.row = p.row;
    p.a.n = n;
    p.a.n_head = n_head;
    p.a.q = p.q;
    p.a.out = memory((size_t)n * (size_t)n_head * DIM * sizeof(float), "outputs");
    p.a.partial = memory(tg_attn_partial_bytes(n_head, DIM), "partial states");
    return p;
}

static void problem_free(problem *p)
{
    const tg_attn *a = &p->a;
    size_t rows = (size_t)a->n * (size_t)a->n_head * DIM * sizeof(float);
    tg_kv_free(&p->cache);
    tg_unreserve(p->row, (size_t)a->n * sizeof *p->row);
    tg_unreserve(p->q, rows);
    tg_unreserve(a->out, rows);
    tg_unreserve(a->partial, tg_attn_partial_bytes(a->n_head, DIM));
}

/* Pairs of a query row and a key, all heads and layers. */
static double pairs(const problem *p)
{
    double n = 0;
    for (int i = 0; i < p->a.n; i++)
        n += p->a.row[i].pos + 1;
    return n * p->a.n_head * p->n_layer;
}

static double cache_bytes(const problem *p)
{
    return (double)p->cache.n_bytes;
}

static void attend(const tg_worker *w, void *arg)
{
    const problem *p = arg;
    for (int layer = 0; layer < p->n_layer; layer++) {
        tg_attn a = p->a;
        a.kv = layer_of(p, layer);
        a.dots = p->strategy->dots;
        if (layer > 0)
            tg_barrier(w);
        p->strategy->run(w, &a);
    }
}

/* The largest difference of some rows of out (layer 0) from float64 over what the cache holds. */
static double error_of(const problem *p)
{
    const tg_attn *a = &p->a;
    double worst = 0, *s = malloc((size_t)p->n_keys * sizeof *s), o[DIM];
    float k[TG_KV_BLOCK * DIM], v[TG_KV_BLOCK * DIM];
    for (int sample = 0; sample < 6; sample++) {
        int r = (int)((long)(a->n - 1) * sample / 5), h = sample % a->n_head, n = a->row[r].pos + 1;
        const float *q = a->q + ((size_t)r * (size_t)a->n_head + (size_t)h) * DIM, *kf, *vf;
        const float *out = a->out + ((size_t)r * (size_t)a->n_head + (size_t)h) * DIM;
        int head = h / (a->n_head / a->kv.n_head_kv);
        double m = -INFINITY, l = 0;
        memset(o, 0, sizeof o);
        for (int pass = 0; pass < 2; pass++)
            for (int b = 0; b * TG_KV_BLOCK < n; b++) {
                const uint8_t *kb = tg_kv_at(&a->kv, b, head, false), *vb = tg_kv_at(&a->kv, b, head, true);
                kf = (const float *)(const void *)kb;
                vf = (const float *)(const void *)vb;
                if (a->kv.type_k != TG_F32) {
                    tg_kv_table()->widen_k(kb, a->kv.type_k, DIM, TG_KV_BLOCK, k);
                    tg_kv_table()->widen_v(vb, a->kv.type_v, DIM, TG_KV_BLOCK, v);
                    kf = k;
                    vf = v;
                }
                for (int j = 0; j < TG_KV_BLOCK && b * TG_KV_BLOCK + j < n; j++) {
                    double *x = &s[b * TG_KV_BLOCK + j];
                    if (pass == 0) {
                        *x = 0;
                        for (int d = 0; d < DIM; d++)
                            *x += (double)q[d] * (double)kf[d * TG_KV_BLOCK + j];
                        m = *x > m ? *x : m;
                        continue;
                    }
                    double e = exp(*x - m);
                    l += e;
                    for (int d = 0; d < DIM; d++)
                        o[d] += e * (double)vf[j * DIM + d];
                }
            }
        for (int d = 0; d < DIM; d++) {
            double e = fabs((double)out[d] - o[d] / l);
            worst = e <= worst ? worst : e;
        }
    }
    free(s);
    return worst;
}

static double scratch_of(const problem *p)
{
    return (double)tg_attn_strategy_scratch(p->strategy, p->a.n, p->n_keys, p->a.n_head, p->a.kv.n_head_kv,
                                            DIM);
}

/* Reports a timed problem, or the reading of its keys and values. */
static void report(const char *section, const char *variant, timed *t)
{
    const problem *p = t->arg;
    bool decode = p->a.n == 1;
    const double keys = (double)p->n_keys * p->n_layer * p->a.kv.n_head_kv;
    if (t->step != attend) {
        const figure f = {section, t->name, variant, (double)p->n_keys, (double)tg_team_size(t->team), t->seconds,
                          keys, cache_bytes(p), 0, t->bytes, NAN, 0};
        put_figure(&f);
        return;
    }
    problem first = *p; /* layer 0 by this strategy: others have written over it */
    first.n_layer = 1;
    timed again = {.team = t->team, .step = attend, .arg = &first, .inner = 1};
    run_once(&again);
    const figure f = {section, t->name, variant, (double)p->n_keys, (double)tg_team_size(t->team), t->seconds,
                      decode ? keys : pairs(p),
                      cache_bytes(p), 4.0 * DIM * pairs(p), t->bytes, error_of(p), scratch_of(p)};
    put_figure(&f);
}

/* ---- opponents ------------------------------------------------------------------------------------- */

/* Attention in three kernels: OpenBLAS for the products, one head a thread, scores in memory. */
typedef struct three {
    int n, n_head;
    bool causal;
    float *q, *k, *v, *out; /* [n_head][n][DIM] */
    float *scores;          /* [threads][n][n] */
} three;

static void three_kernels(const tg_worker *w, void *arg)
{
    const three *p = arg;
    size_t n = (size_t)p->n, head = n * DIM;
    float *s = p->scores + (size_t)w->rank * n * n;
    for (size_t h; (h = tg_take(w, (size_t)p->n_head)) < (size_t)p->n_head;) {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, p->n, p->n, DIM, 1.0f, p->q + h * head, DIM,
                    p->k + h * head, DIM, 0.0f, s, p->n);
        for (size_t i = 0; i < n; i++) {
            size_t n_keys = p->causal ? i + 1 : n;
            tg_softmax()->softmax[TG_SOFTMAX_SAFE].run(s + i * n, n_keys, s + i * n);
            memset(s + i * n + n_keys, 0, (n - n_keys) * sizeof *s);
        }
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, p->n, DIM, p->n, 1.0f, s, p->n,
                    p->v + h * head, DIM, 0.0f, p->out + h * head, DIM);
    }
}

static three three_make(int n, int n_head, bool causal)
{
    size_t all = (size_t)n_head * (size_t)n * DIM;
    three p = {n, n_head, causal, random_floats(all), random_floats(all), random_floats(all),
               random_floats(all), NULL};
    size_t scores = (size_t)bench.n_threads * (size_t)n * (size_t)n;
    p.scores = memory(scores * sizeof *p.scores, "scores");
    for (size_t i = 0; i < scores; i += 1024)
        p.scores[i] = 1.0f; /* touch every page */
    return p;
}

static void three_free(three *p)
{
    size_t all = (size_t)p->n_head * (size_t)p->n * DIM * sizeof(float);
    tg_unreserve(p->q, all);
    tg_unreserve(p->k, all);
    tg_unreserve(p->v, all);
    tg_unreserve(p->out, all);
    tg_unreserve(p->scores, (size_t)bench.n_threads * (size_t)p->n * (size_t)p->n * sizeof(float));
}

/* The rate of OpenBLAS's sgemm, each thread with its own matrices. */
enum { GEMM_N = 1024 };

static void gemm(const tg_worker *w, void *arg)
{
    float *m = (float *)arg + (size_t)w->rank * 3 * GEMM_N * GEMM_N;
    tg_blas_gemm(GEMM_N, GEMM_N, GEMM_N, m, GEMM_N, m + GEMM_N * GEMM_N, GEMM_N, false,
                 m + 2 * GEMM_N * GEMM_N, GEMM_N);
}

/* The plain read loop: each thread takes the same share of the keys and values that attention reads. */
static void read_cache(const tg_worker *w, void *arg)
{
    const problem *p = arg;
    size_t n = p->cache.n_bytes / (size_t)w->size / 256 * 256;
    unsigned all = tg_vector()->read_all(p->a.kv.data + (size_t)w->rank * n, n);
    *(volatile unsigned *)w->scratch = all; /* so that nobody can leave the reading out */
}

/* ---- sections: softmax ------------------------------------------------------------------------------ */

typedef struct softmax_case {
    const tg_softmax_algo *algo;
    const tg_top_k_algo *top_k;
    size_t n;
    float *x, *y; /* [threads][n] */
} softmax_case;

static void softmax_step(const tg_worker *w, void *arg)
{
    const softmax_case *c = arg;
    size_t at = (size_t)w->rank * ((c->n + 15) / 16 * 16);
    c->algo->run(c->x + at, c->n, c->y + at);
}

/* A figure of rows of n elements, one for each thread. */
static void put_rows(const char *section, const char *variant, const timed *t, size_t n, int accesses,
                     double error)
{
    double elements = (double)n * bench.n_threads;
    const figure f = {section,  t->name, variant,  (double)n, bench.n_threads, t->seconds,
                      elements, 4.0 * accesses * elements, 0, t->bytes,  error,           0};
    put_figure(&f);
}

/* Each thread has a row of its own. */
static void section_softmax(void)
{
    static const char *const goal_long = "≥ 1.12 × for rows of at least twice the L3 cache",
                             *const goal_short = "never below 0.95 × from 1,000 elements";
    double least = INFINITY;
    size_t largest = 2 * bench.l3_bytes / sizeof(float);
    const size_t size[] = {100, 1000, 4000, 25000, 100000, 1000000, largest};
    for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
        size_t n = size[i], floats = (size_t)bench.n_threads * ((n + 15) / 16 * 16);
        float *x = random_floats(floats), *y = random_floats(floats);
        softmax_case c[TG_SOFTMAX_COUNT];
        timed t[TG_SOFTMAX_COUNT];
        for (int k = 0; k < TG_SOFTMAX_COUNT; k++) {
            c[k] = (softmax_case){&tg_softmax()->softmax[k], NULL, n, x, y};
            t[k] = (timed){.name = c[k].algo->name, .team = bench.team, .step = softmax_step, .arg = &c[k]};
        }
        int runs = n < 1000000 ? 3 * bench.runs : bench.runs;
        measure(t, TG_SOFTMAX_COUNT, runs);
        double *exact = malloc(n * sizeof *exact), sum = 0, m = -INFINITY;
        for (size_t j = 0; j < n; j++)
            m = (double)x[j] > m ? (double)x[j] : m;
        for (size_t j = 0; j < n; j++)
            sum += exact[j] = exp((double)x[j] - m);
        for (int k = 0; k < TG_SOFTMAX_COUNT; k++) {
            double error = 0;
            c[k].algo->run(x, n, y);
            for (size_t j = 0; j < n; j++) /* relative: probabilities of long rows are tiny */
                error = fmax(error, fabs((double)y[j] - exact[j] / sum) * sum / exact[j]);
            put_rows("softmax", "rows", &t[k], n, c[k].algo->accesses, error);
        }
        free(exact);
        double gain = ratio(&t[TG_SOFTMAX_SAFE], &t[TG_SOFTMAX_ONLINE], runs);
        if (n >= 1000)
            least = fmin(least, gain);
        if (n == largest)
            snprintf(add_claim("online over safe softmax: 1.15–1.3×", goal_long, gain >= 1.12,
                               "memory: 3 accesses an element instead of 4")
                         ->measured, 160, "%.2f × at %zu elements", gain, n);
        tg_unreserve(x, floats * sizeof *x);
        tg_unreserve(y, floats * sizeof *y);
    }
    snprintf(add_claim("the same, shorter rows", goal_short, least >= 0.95,
                       "the exponentials: both compute two an element")
                 ->measured, 160, "%.2f × at worst", least);
}

static void top_k_step(const tg_worker *w, void *arg)
{
    const softmax_case *c = arg;
    size_t at = (size_t)w->rank * ((c->n + 15) / 16 * 16);
    tg_top top[5];
    float lse;
    c->top_k->run(c->x + at, c->n, 5, top, &lse, c->y + at);
}

static void section_top_k(void)
{
    const size_t size[] = {1000, 25000, 128000};
    for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
        size_t n = size[i], floats = (size_t)bench.n_threads * ((n + 15) / 16 * 16);
        float *x = random_floats(floats), *y = random_floats(floats);
        softmax_case c[TG_TOP_K_COUNT];
        timed t[TG_TOP_K_COUNT];
        for (int k = 0; k < TG_TOP_K_COUNT; k++) {
            c[k] = (softmax_case){NULL, &tg_softmax()->top_k[k], n, x, y};
            t[k] = (timed){.name = c[k].top_k->name, .team = bench.team, .step = top_k_step, .arg = &c[k]};
        }
        measure(t, TG_TOP_K_COUNT, 3 * bench.runs);
        for (int k = 0; k < TG_TOP_K_COUNT; k++)
            put_rows("top_k", "k = 5", &t[k], n, c[k].top_k->accesses, NAN);
        double vector = ratio(&t[TG_TOP_K_AFTER], &t[TG_TOP_K_FUSED], 3 * bench.runs);
        double heap = ratio(&t[TG_TOP_K_AFTER_BY_HEAP], &t[TG_TOP_K_FUSED], 3 * bench.runs);
        if (n == 25000) {
            snprintf(add_claim("fused top-5 over safe softmax, then top-k, at 25,000: 5×",
                               "≥ 2 × (vectorised)", vector >= 2,
                               "the exponentials: one an element instead of two, and no division")
                         ->measured,
                     160, "%.2f ×", vector);
            snprintf(add_claim("the same against the textbook's heap", "≥ 5 ×", heap >= 5,
                               "the heap's comparison of each element")
                         ->measured, 160, "%.2f ×", heap);
        }
        tg_unreserve(x, floats * sizeof *x);
        tg_unreserve(y, floats * sizeof *y);
    }
}

/* ---- sections: attention ---------------------------------------------------------------------------- */

static const tg_attn_strategy *by_name(const char *name)
{
    return tg_attn_strategy_by_name(name);
}

static timed timed_problem(problem *p, const char *name)
{
    return (timed){.name = name, .team = bench.team, .step = attend, .arg = p};
}

/* Every strategy over one head, causal: time, error and memory against N. */
static void section_algorithms(void)
{
    for (int n = 64; n <= 16384; n *= 4) {
        problem p = problem_make(n, n, 2, 2, 1, TG_F32, true), q[16];
        timed t[16];
        int count = 0;
        for (int i = 0; i < tg_n_attn_strategies; i++) {
            if (tg_attn_strategies[i].dots ||
                (n > 4096 && tg_attn_strategies[i].run == by_name("online")->run))
                continue;
            q[count] = p;
            q[count].strategy = &tg_attn_strategies[i];
            t[count] = timed_problem(&q[count], tg_attn_strategies[i].name);
            count++;
        }
        measure(t, count, n > 4096 ? 3 : bench.runs);
        for (int i = 0; i < count; i++)
            report("algorithms", "causal f32", &t[i]);
        problem_free(&p);
    }
}

/* The shape of GPT-2 medium: 16 heads of 64. */
static void section_flash(void)
{
    enum { HEADS = 16, N_CASES = 5 };
    static const struct {
        int n;
        double causal, full;
    } goal[] = {{1024, 1.5, 1.0}, {4096, 2.2, 1.3}, {16384, 2.2, 1.3}};
    float *matrices = random_floats((size_t)bench.n_threads * 3 * GEMM_N * GEMM_N);
    for (size_t i = 0; i < sizeof goal / sizeof *goal; i++)
        for (int causal = 1; causal >= 0; causal--) {
            int n = goal[i].n;
            three opponent = three_make(n, HEADS, causal);
            problem p = problem_make(n, n, HEADS, HEADS, 1, TG_F32, causal), q[3];
            static const char *const names[] = {"auto", "flash", "flash2"};
            timed t[N_CASES];
            for (int k = 0; k < 3; k++) {
                q[k] = p;
                q[k].strategy = by_name(names[k]);
                t[k] = timed_problem(&q[k], names[k]);
            }
            t[3] =
                (timed){.name = "three kernels", .team = bench.team, .step = three_kernels, .arg = &opponent};
            t[4] = (timed){.name = "sgemm", .team = bench.team, .step = gemm, .arg = matrices};
            measure(t, N_CASES, bench.runs);
            const char *variant = causal ? "causal" : "full";
            for (int k = 0; k < 3; k++)
                report("flash", variant, &t[k]);
            double scores = (double)n * n * HEADS;
            const figure f = {"flash",
                              "three kernels",
                              variant,
                              n,
                              bench.n_threads,
                              t[3].seconds,
                              causal ? scores / 2 : scores,
                              7 * 4 * scores,
                              4.0 * DIM * scores,
                              t[3].bytes,
                              NAN,
                              (double)n * n * 4};
            put_figure(&f);
            double flops = 2.0 * GEMM_N * GEMM_N * GEMM_N * bench.n_threads, rate = flops / t[4].seconds;
            const figure g = {"flash", "sgemm", variant, GEMM_N, bench.n_threads, t[4].seconds,
                              flops / 2, 0, flops, t[4].bytes, NAN, 0};
            put_figure(&g);
            double gain = ratio(&t[3], &t[0], bench.runs), least = causal ? goal[i].causal : goal[i].full;
            double own = 4.0 * DIM * pairs(&q[0]) / t[0].seconds;
            static char text[6][96];
            char *line = text[i * 2 + (size_t)causal];
            snprintf(line, 96, "%s, N = %d: ≥ %.1f ×, ≥ 75 %% of the sgemm rate", variant, n, least);
            snprintf(add_claim("FlashAttention over three kernels, GPT-2 medium", line,
                               gain >= least && own >= 0.75 * rate,
                               "multiply-adds and exponentials; three kernels: memory and the masked half")
                         ->measured, 160, "%.2f ×, %.0f of %.0f GFLOP/s (%.0f %%)", gain, own * 1e-9,
                     rate * 1e-9, 100 * own / rate);
            problem_free(&p);
            three_free(&opponent);
        }
}

static void section_tiles(void)
{
    static const int side[] = {64, 32, 16};
    for (int i = 0; i < 3; i++) {
        problem p = problem_make(4096, 4096, 4, 4, 1, TG_F32, false), q[2];
        timed t[2];
        for (int k = 0; k < 2; k++) {
            q[k] = p;
            q[k].strategy = by_name(k ? "flash2" : "flash");
            q[k].a.tile_rows = q[k].a.tile_keys = side[i];
            t[k] = timed_problem(&q[k], q[k].strategy->name);
        }
        static char variant[3][16], goal[3][64];
        snprintf(variant[i], sizeof *variant, "%dx%d", side[i], side[i]);
        measure(t, 2, bench.runs);
        for (int k = 0; k < 2; k++)
            report("tiles", variant[i], &t[k]);
        double gain = ratio(&t[0], &t[1], bench.runs);
        snprintf(goal[i], sizeof *goal, "%s at %s tiles", i ? "larger" : "≥ 1.03 ×", variant[i]);
        snprintf(add_claim("FlashAttention-2 over FlashAttention: 2×", goal[i], gain >= 1.03,
                           "one product dominates a core; a GPU's matrix units make the rest dear")
                     ->measured, 160, "%.2f ×", gain);
        problem_free(&p);
    }
}

/* The same problem over caches of several types; decode reads them, prefill computes. */
static void section_low(void)
{
    static const struct {
        const char *name, *strategy;
        tg_type type;
    } form[] = {{"f32", "auto", TG_F32}, {"f16", "auto", TG_F16}, {"bf16", "auto", TG_BF16},
                {"q8_0", "auto", TG_Q8_0}, {"q4", "auto", TG_Q4}, {"bf16 products", "bf16", TG_BF16}};
    enum { N_FORMS = 6, N = 16384 };
    bool dots = tg_isa_has_bf16();
    for (int decode = 0; decode < 2; decode++) {
        problem p[N_FORMS];
        timed t[N_FORMS];
        int count = dots ? N_FORMS : N_FORMS - 1;
        for (int k = 0; k < count; k++) {
            p[k] = decode ? problem_make(1, N, 9, 3, 30, form[k].type, true)
                          : problem_make(N, N, 2, 2, 1, form[k].type, true);
            p[k].strategy = by_name(form[k].strategy);
            t[k] = timed_problem(&p[k], form[k].name);
        }
        measure(t, count, bench.runs);
        for (int k = 0; k < count; k++)
            report("low", decode ? "decode" : "prefill", &t[k]);
        static char text[2][160 + 2 * 30];
        double best = 0;
        char *line = text[decode];
        int at = 0;
        for (int k = 3; k < count; k++) {
            double f32 = ratio(&t[0], &t[k], bench.runs), f16 = ratio(&t[1], &t[k], bench.runs);
            best = fmax(best, fmin(f32, f16));
            at += snprintf(line + at, sizeof *text - (size_t)at, "%s%s %.2f × f32, %.2f × f16",
                           k > 3 ? "; " : "", form[k].name, f32, f16);
        }
        claim *c =
            add_claim("low precision (FP8 in FlashAttention-3), at 16,384",
                      decode ? "decode: the best ≥ 1.5 × f32 and f16" : "prefill: the best ≥ 1.5 × f32 and f16", best >= 1.5,
                      decode ? "memory: 8.5 or 5 bits a number instead of 16 or 32"
                             : "the exponentials, which no format makes cheaper");
        snprintf(c->measured, sizeof c->measured, "%.159s", line);
        for (int k = 0; k < count; k++)
            problem_free(&p[k]);
    }
}

/* What two threads gain over one. */
static void split_gain(tg_type type)
{
    enum { N_KEYS = 65536, RUNS = 3 };
    problem p = problem_make(1, N_KEYS, 1, 1, 1, type, true);
    timed t[4] = {timed_problem(&p, "auto"),
                  {.name = "read", .team = bench.team, .step = read_cache, .arg = &p},
                  {.name = "auto (one thread)", .team = bench.one, .step = attend, .arg = &p},
                  {.name = "read (one thread)", .team = bench.one, .step = read_cache, .arg = &p}};
    measure(t, 4, RUNS * bench.runs);
    for (int i = 0; i < 4; i++)
        report("split", tg_dtypes[type].name, &t[i]);
    const double own = ratio(&t[2], &t[0], RUNS * bench.runs), probe = ratio(&t[3], &t[1], RUNS * bench.runs);
    const bool bytes_first = type == TG_F32 || type == TG_Q8_0;
    snprintf(add_claim("Flash-Decoding: split over keys, one KV head, 65,536 keys",
                       "≥ 0.9 × what reading gains by two threads", own >= 0.9 * probe,
                       bytes_first ? "the last cache, memory behind it; one barrier"
                                   : "the widening and the products of one row, from the caches; one barrier")
                 ->measured,
             160, "%s, %.1f MiB: %.2f × by two threads; reading %.2f ×", tg_dtypes[type].name,
             cache_bytes(&p) / (1 << 20), own, probe);
    problem_free(&p);
}

/* One query against one KV head: what two threads gain, and time per key against length. The lengths take
 * turns, so that none finds its keys in a cache. */
static void section_split(void)
{
    enum { N = 4, RUNS = 3 };
    static const tg_type types[] = {TG_F32, TG_F16, TG_BF16, TG_Q8_0};
    static const int size[N] = {262144, 524288, 1 << 20, 2 << 20};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        split_gain(types[i]);
    problem p[N];
    timed t[2 * N];
    for (int i = 0; i < N; i++) {
        p[i] = problem_make(1, size[i], 1, 1, 1, TG_F16, true);
        t[2 * i] = timed_problem(&p[i], "auto");
        t[2 * i + 1] = (timed){.name = "read", .team = bench.team, .step = read_cache, .arg = &p[i]};
    }
    for (int i = 0; i < 2 * N; i++)
        t[i].inner = 1; /* what is repeated at once finds a part in the caches */
    measure(t, 2 * N, RUNS * bench.runs);
    for (int i = 0; i < 2 * N; i++)
        report("split", tg_dtypes[TG_F16].name, &t[i]);
    double least = 1, most = 1;
    for (int i = 1; i < N; i++) {
        double per_key = ratio(&t[2 * i], &t[0], RUNS * bench.runs) * size[0] / size[i];
        least = fmin(least, per_key);
        most = fmax(most, per_key);
    }
    snprintf(add_claim("attention's time per key constant in context length",
                       "flat within 10 % from 262,144 to 2 M keys", most <= 1.1 * least, "memory")
                 ->measured,
             160, "%.2f ns a key at 262,144; %.2f to %.2f times that behind it", t[0].seconds / size[0] * 1e9, least,
             most);
    for (int i = 0; i < N; i++)
        problem_free(&p[i]);
}

/* All strategies on short rows: one query, and a square. */
static void section_short(void)
{
    for (int square = 0; square < 2; square++) {
        double worst = 0;
        int worst_n = 0, runs = bench.runs < 51 ? 51 : bench.runs;
        const char *worst_name = "";
        for (int n = 1; n <= 512; n *= 2) {
            problem p = problem_make(square ? n : 1, n, 16, 16, 1, TG_F32, true), q[16];
            timed t[16];
            int count = 0, best = 0;
            for (int i = 0; i < tg_n_attn_strategies; i++) {
                if (tg_attn_strategies[i].dots)
                    continue;
                q[count] = p;
                q[count].strategy = &tg_attn_strategies[i];
                t[count] = timed_problem(&q[count], tg_attn_strategies[i].name);
                count++;
            }
            measure(t, count, runs);
            for (int i = 0; i < count; i++) {
                report("short", square ? "square" : "one row", &t[i]);
                best = t[i].seconds < t[best].seconds ? i : best;
            }
            double behind = ratio(&t[0], &t[best], runs);
            if (behind > worst) {
                worst = behind;
                worst_n = n;
                worst_name = t[best].name;
            }
            problem_free(&p);
        }
        snprintf(add_claim(square ? "short prompts, N = 1 ... 512 rows and keys"
                                  : "short rows, one query, N = 1 ... 512 keys",
                           "auto within 10 % of the best strategy", worst <= 1.1, "setting up; fetching what the caches have")
                     ->measured,
                 160, "%.2f × the time of %s at N = %d, at worst", worst, worst_name, worst_n);
    }
}

static void section_decode(void)
{
    problem p = problem_make(1, 16384, 9, 3, 30, TG_F16, true);
    timed t[2] = {{.name = "auto", .team = bench.team, .step = attend, .arg = &p},
                  {.name = "read", .team = bench.team, .step = read_cache, .arg = &p}};
    measure(t, 2, 3 * bench.runs);
    report("decode", "f16", &t[0]);
    report("decode", "f16", &t[1]);
    double part = ratio(&t[1], &t[0], 3 * bench.runs);
    snprintf(add_claim("decode, f16, groups of 3, 16,384 keys × 30 layers × 3 KV heads",
                       "≥ 90 % of the best plain read loop", part >= 0.9,
                       "memory; conversions and products overlap with it in part")
                 ->measured, 160, "%.0f %% of %.1f GB/s", 100 * part, cache_bytes(&p) / t[1].seconds * 1e-9);
    problem_free(&p);
}

static void section_memory(void)
{
    enum { N = 65536 };
    problem p = problem_make(N, N, 1, 1, 1, TG_F16, true);
    timed t = timed_problem(&p, "auto");
    measure(&t, 1, 1);
    report("memory", "causal f16", &t);
    snprintf(add_claim("linear memory: 16 GiB of float32 scores a head at N = 65,536", "< 1 MiB a thread",
                       scratch_of(&p) < 1 << 20, "tiles of 96 rows by chunks of 256 keys")
                 ->measured, 160, "%.0f KiB a thread", scratch_of(&p) / 1024);
    problem_free(&p);
}

/* ---- main ------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(void);
} sections[] = {{"softmax", section_softmax}, {"top_k", section_top_k}, {"short", section_short},
                {"split", section_split},     {"decode", section_decode}, {"low", section_low},
                {"tiles", section_tiles},     {"memory", section_memory}, {"algorithms", section_algorithms},
                {"flash", section_flash}};
enum { N_SECTIONS = sizeof sections / sizeof *sections };

static size_t last_cache_bytes(void)
{
    unsigned long kib = 0;
    FILE *f = fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "r");
    if (f && fscanf(f, "%luK", &kib) != 1)
        kib = 0;
    if (f)
        fclose(f);
    return (kib ? kib : 32768) << 10;
}

static int usage(FILE *to)
{
    fprintf(to, "usage: attention-bench [-t THREADS (2)] [-r RUNS, 1 to %d (9)] [--csv FILE] [SECTION ...]\nsections:",
            RUNS_MAX / 3);
    for (int i = 0; i < N_SECTIONS; i++)
        fprintf(to, " %s", sections[i].name);
    fputc('\n', to);
    return to == stdout ? 0 : 2;
}

/* A whole number from 1 to max, or 0. */
static int number(const char *text, int max)
{
    char *end;
    long n = strtol(text, &end, 10);
    if (!*text || *end || n < 1 || n > max) {
        fprintf(stderr, "attention-bench: '%s' is not a number from 1 to %d\n", text, max);
        return 0;
    }
    return (int)n;
}

static size_t scratch_needed(void)
{
    size_t most = tg_attn_scratch_bytes(16, 1, DIM);
    for (int i = 0; i < tg_n_attn_strategies; i++) {
        size_t n = tg_attn_strategy_scratch(&tg_attn_strategies[i], 16384, 2 << 20, 16, 1, DIM);
        if (tg_attn_strategies[i].score_floats) /* the matrix of `safe` at its largest here */
            n = tg_attn_strategy_scratch(&tg_attn_strategies[i], 16384, 16384, 16, 1, DIM);
        most = n > most ? n : most;
    }
    return most;
}

int main(int argc, char **argv)
{
    bool chosen[N_SECTIONS] = {false}, any = false;
    const char *csv = NULL;
    for (int i = 1; i < argc; i++) {
        bool known = false;
        for (int k = 0; k < N_SECTIONS; k++)
            if (!strcmp(argv[i], sections[k].name))
                known = any = chosen[k] = true;
        if (known)
            continue;
        if (!strcmp(argv[i], "-h") || !strcmp(argv[i], "--help"))
            return usage(stdout);
        bool option = !strcmp(argv[i], "-t") || !strcmp(argv[i], "-r") || !strcmp(argv[i], "--csv");
        if (!option || i + 1 == argc) {
            fprintf(stderr, option ? "attention-bench: %s needs an argument\n"
                                   : "attention-bench: '%s' is no option and no section\n", argv[i]);
            return usage(stderr);
        }
        char kind = argv[i++][1];
        if (kind == 't' && !(bench.n_threads = number(argv[i], 64)))
            return 2;
        if (kind == 'r' && !(bench.runs = number(argv[i], RUNS_MAX / 3)))
            return 2;
        if (kind == '-')
            csv = argv[i];
    }
    tg_error err;
    bench.l3_bytes = last_cache_bytes();
    if (tg_team_create(&bench.team, bench.n_threads, scratch_needed(), &err) ||
        tg_team_create(&bench.one, 1, scratch_needed(), &err)) {
        fprintf(stderr, "attention-bench: %s\n", err.message);
        return 7;
    }
    if (csv && !(report_csv = fopen(csv, "w"))) {
        perror(csv);
        return 9;
    }
    if (report_csv)
        fprintf(report_csv, "section,algorithm,variant,n,threads,seconds,ns_per_unit,bytes_per_unit,"
                           "counted_bytes_per_unit,gb_s,gflop_s,error,extra_bytes\n");
    printf("%d threads, %s kernels, OpenBLAS %s, L3 %zu MiB, medians of %d interleaved runs or more\n",
           bench.n_threads, tg_isa_name(), tg_blas_name(), bench.l3_bytes >> 20, bench.runs);
    if (tg_blas_load(&err)) {
        fprintf(stderr, "attention-bench: %s\n", err.message);
        return 7;
    }
    tg_blas_warm_up(bench.n_threads);
    for (int k = 0; k < N_SECTIONS; k++) {
        if (any && !chosen[k])
            continue;
        printf("\n%s\n", sections[k].name);
        sections[k].run();
    }
    print_claims();
    if (report_csv && fclose(report_csv)) {
        perror(csv);
        return 9;
    }
    return 0;
}
