/* Holds the engine, through the public header alone, to the logits that tools/make-golden.py wrote,
 * and to the promise that a row's bits do not depend on what is computed beside it or by how many
 * threads. Runs in the top folder. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <tinygpt/tinygpt.h>

#include "support/npy.h"

enum { MAX_CASES = 192, MAX_ROWS = 320 };

typedef struct golden {
    char name[64];
    tg_model *model;
    npy ids;
    npy logits; /* of the last row and of every stride-th before it, ascending */
    int stride;
    bool quant;
} golden;

static golden cases[MAX_CASES];
static int n_cases;
static const char *program;

static void must(const golden *g, tg_status status, const tg_error *err)
{
    if (status != TG_OK)
        fail_msg("%s: %s", g->name, err->message);
}

/* ---- one evaluation ------------------------------------------------------------------------- */

typedef struct rows {
    float *logits; /* [n][n_vocab], at the place of their row */
    int last;      /* row handed out last */
} rows;

static bool collect(void *arg, int row, const float *logits, int n_vocab)
{
    rows *r = arg;
    assert_true(row > r->last);
    r->last = row;
    memcpy(r->logits + (size_t)row * (size_t)n_vocab, logits, (size_t)n_vocab * sizeof *logits);
    return true;
}

static size_t row_floats(const golden *g)
{
    return (size_t)g->logits.n_cols;
}

static const int32_t *ids_of(const golden *g)
{
    return g->ids.data;
}

static tg_session *open_session(const golden *g, tg_session_params p)
{
    tg_error err;
    tg_session *s = NULL;
    must(g, tg_session_create(&s, g->model, &p, &err), &err);
    return s;
}

/* Continues one sequence by n ids; all their logits go to out [n][n_vocab]. */
static void append(const golden *g, tg_session *s, int seq, const int32_t *id, int n, float *out)
{
    tg_error err;
    int32_t *seqs = malloc((size_t)n * sizeof *seqs);
    uint8_t *want = malloc((size_t)n);
    rows r = {.logits = out, .last = -1};
    memset(want, 1, (size_t)n);
    for (int i = 0; i < n; i++)
        seqs[i] = seq;
    const tg_batch batch = {.n = n, .id = id, .seq = seqs, .want = want};
    must(g, tg_eval(s, &batch, collect, &r, &err), &err);
    assert_int_equal(r.last, n - 1);
    free(want);
    free(seqs);
}

/* Logits [n][n_vocab] (free) of a case's first n ids: `first` of them at one call, then `step` at a
 * call. */
static float *logits_by(const golden *g, int n, int first, int step, tg_session_params p)
{
    float *out = malloc((size_t)n * row_floats(g) * sizeof *out);
    p.n_ctx = p.n_ctx ? p.n_ctx : n;
    tg_session *s = open_session(g, p);
    for (int at = 0, k = first; at < n; at += k, k = step) {
        k = k < n - at ? k : n - at;
        append(g, s, 0, ids_of(g) + at, k, out + (size_t)at * row_floats(g));
    }
    assert_int_equal(tg_seq_length(s, 0), n);
    tg_session_free(s);
    return out;
}

static float *logits_of(const golden *g, int n, tg_session_params p)
{
    return logits_by(g, n, n, 1, p);
}

static const char *golden_path(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "tests/golden/%.200s", name);
    return path;
}

/* ---- comparisons ---------------------------------------------------------------------------- */

static void same_bits(const golden *g, const char *what, const float *a, const float *b, int n)
{
    const size_t row = row_floats(g) * sizeof *a;
    for (int i = 0; i < n; i++)
        if (memcmp((const char *)a + (size_t)i * row, (const char *)b + (size_t)i * row, row) != 0)
            fail_msg("%s: %s: other bits at position %d", g->name, what, i);
}

/* The largest difference to the reference, in units of max(1, largest |logit|). */
static double distance(const golden *g, const float *logits)
{
    const float *ref = g->logits.data;
    double largest = 1, worst = 0;
    for (int i = 0; i < g->logits.n_rows; i++) {
        const int pos = g->ids.n_rows - 1 - (g->logits.n_rows - 1 - i) * g->stride;
        for (size_t j = 0; j < row_floats(g); j++) {
            const float r = ref[(size_t)i * row_floats(g) + j];
            const double d = fabs((double)r - (double)logits[(size_t)pos * row_floats(g) + j]);
            worst = d <= worst ? worst : d; /* a NaN is kept */
            largest = fmax(largest, fabs((double)r));
        }
    }
    return worst / largest;
}

static const int BATCHES[] = {1, 2, 7, 64, 4096};
enum { N_BATCHES = sizeof BATCHES / sizeof *BATCHES };

/* On a busy machine, threads that wait for each other make many small steps slow: these have one.
 */
static int threads_for(int step)
{
    return step < 60 ? 1 : 2;
}

/* The tests that do not look at the reference need no more than this of a long case: two chunks. */
static int few(const golden *g)
{
    return g->ids.n_rows < MAX_ROWS ? g->ids.n_rows : MAX_ROWS;
}

/* Modes in which a row's bits depend on nothing else: own kernels, each cache type, a window, and
 * quantised weights with and without float32 activations. */
static const tg_session_params MODES[] = {
    {.n_threads = 2, .no_blas = true},
    {.n_threads = 2, .no_blas = true, .type_k = TG_KV_F16, .type_v = TG_KV_F16},
    {.n_threads = 2, .no_blas = true, .precise = true, .type_v = TG_KV_F16},
    {.n_threads = 2, .no_blas = true, .type_k = TG_KV_Q8_0, .type_v = TG_KV_Q8_0},
    {.n_threads = 2, .no_blas = true, .type_k = TG_KV_Q4, .type_v = TG_KV_Q4},
    {.n_threads = 2, .no_blas = true, .type_k = TG_KV_BF16, .type_v = TG_KV_BF16, .window = 21, .keep = 3},
};
enum { N_MODES = sizeof MODES / sizeof *MODES };

/* The first, and one of the others by turns: there are many cases. Float weights know no mode but the precise. */
static bool tells(const golden *g, const tg_session_params *mode)
{
    const int i = (int)(mode - MODES);
    return (g->quant || !mode->precise) && (i == 0 || 1 + (int)(g - cases) % (N_MODES - 1) == i);
}

#define EACH_CASE(g) for (golden *g = cases; g < cases + n_cases; g++)
#define EACH_MODE(g, m)                                                                            \
    for (const tg_session_params *m = MODES; m < MODES + N_MODES; m++)                             \
        if (tells(g, m))

/* ---- tests ---------------------------------------------------------------------------------- */

static void logits_match_the_reference(void **state)
{
    (void)state;
    EACH_CASE (g) {
        for (int b = 0; b < N_BATCHES; b++) {
            const tg_session_params p = {
                .n_threads = threads_for(BATCHES[b]), .n_batch = BATCHES[b], .precise = g->quant};
            float *got = logits_of(g, g->ids.n_rows, p);
            const double d = distance(g, got);
            if (!(d <= 1e-4))
                fail_msg("%s: batches of %d differ by %g of the largest logit", g->name, BATCHES[b],
                         d);
            free(got);
        }
    }
}

/* No promise stands behind these bounds: a narrow cache costs about 1e-3 here, 8-bit activations a
 * few hundredths, q8_0 a tenth and q4 up to a half in models as small as these, and a mistake in any far more. */
static void narrow_modes_stay_near(void **state)
{
    (void)state;
    EACH_CASE (g) {
        tg_session_params p = {
            .n_threads = 2, .precise = true, .type_k = TG_KV_F16, .type_v = TG_KV_F16};
        tg_model_info info;
        tg_model_get_info(g->model, &info);
        const double more = info.n_expert ? 5 : 1; /* another expert may be chosen */
        float *narrow = logits_of(g, g->ids.n_rows, p);
        p.precise = false;
        float *coarse = logits_of(g, g->ids.n_rows, p);
        if (!(distance(g, narrow) <= more * 1e-2) || !(distance(g, coarse) <= more * 1e-1))
            fail_msg("%s: off by %g with a narrow cache, %g by default", g->name,
                     distance(g, narrow), distance(g, coarse));
        p.precise = true;
        for (int i = 0; i < 4; i++) {
            p.type_k = p.type_v = i == 0 ? TG_KV_Q8_0 : i == 3 ? TG_KV_Q4 : TG_KV_BF16;
            p.attention = i == 2 ? "bf16" : NULL;
            tg_session *s = NULL;
            if (i == 2 && tg_session_create(&s, g->model, &p, NULL) == TG_E_USAGE)
                continue; /* not on this processor */
            tg_session_free(s);
            float *got = logits_of(g, g->ids.n_rows, p);
            if (!(distance(g, got) <= more * (i == 3 ? 6e-1 : 2e-1)))
                fail_msg("%s: off by %g with cache type %d", g->name, distance(g, got), (int)p.type_k);
            free(got);
        }
        free(coarse);
        free(narrow);
    }
}

/* Every attention algorithm, by whole prompts and in small steps. */
static void every_attention_matches_the_reference(void **state)
{
    (void)state;
    EACH_CASE (g) {
        for (int i = 0; tg_attention_name(i, NULL); i++) {
            tg_session_params p = {.n_threads = 2, .precise = true, .attention = tg_attention_name(i, NULL)};
            if (!strcmp(p.attention, "bf16"))
                continue; /* wants another cache: see below */
            tg_session *s = NULL;
            if (i > 0 && strcmp(p.attention, "split") && tg_session_create(&s, g->model, &p, NULL) == TG_E_USAGE)
                continue; /* knows no windows, caps or sinks */
            tg_session_free(s);
            const int n = g->ids.n_rows;
            float *whole = logits_of(g, n, p), *steps = logits_by(g, n, n > 300 ? n - 9 : n / 2, 3, p);
            if (!(distance(g, whole) <= 1e-4) || !(distance(g, steps) <= 1e-4))
                fail_msg("%s: %s is off by %g and %g", g->name, p.attention, distance(g, whole),
                         distance(g, steps));
            free(steps);
            free(whole);
        }
    }
}

/* A window that holds everything is none; one that does not changes what is behind it, and nothing
 * before; positions kept under it count. */
static void windows_begin_where_they_should(void **state)
{
    (void)state;
    EACH_CASE (g) {
        const int n = few(g), w = 4; /* shorter than windows that the models have */
        tg_model_info info;
        tg_model_get_info(g->model, &info);
        const size_t row = row_floats(g);
        tg_session_params p = MODES[0];
        float *all = logits_of(g, n, p);
        p.window = n;
        float *wide = logits_of(g, n, p);
        same_bits(g, "a wide window", all, wide, n);
        p.window = w;
        float *half = logits_of(g, n, p);
        same_bits(g, "rows within the window", all, half, w);
        assert_memory_not_equal(all + (size_t)w * row, half + (size_t)w * row, row * sizeof *all);
        p.keep = info.window ? 0 : n - w; /* together they hold everything, in two ranges or in one */
        float *kept = logits_of(g, n, p);
        for (size_t i = 0; p.keep && i < (size_t)n * row; i++)
            assert_true(fabs((double)all[i] - (double)kept[i]) <= 1e-2 * fmax(1, fabs((double)all[i])));
        free(kept);
        free(half);
        free(wide);
        free(all);
    }
}

/* Weights laid anew: prefill, decoding at the end of it, and rows as floats. */
static void interleaved_keeps_the_bits(void **state)
{
    (void)state;
    int n_laid = 0;
    EACH_CASE (g) {
        tg_error err;
        tg_model_info info;
        tg_model *anew;
        if (!g->quant)
            continue;
        must(g, tg_model_load(&anew, golden_path(g->name), TG_LOAD_INTERLEAVED, &err), &err);
        tg_model_get_info(anew, &info);
        n_laid += info.interleaved_bytes > 0;
        golden other = *g;
        other.model = anew;
        for (int precise = 0; precise < 2; precise++) {
            tg_session_params p = {.n_threads = 1, .precise = precise, .no_blas = true};
            const int n = few(g);
            float *want = logits_by(g, n, n - 4, 1, p), *got = logits_by(&other, n, n - 4, 1, p);
            same_bits(g, "interleaved", want, got, n);
            free(got);
            free(want);
        }
        tg_model_free(anew);
    }
    assert_true(n_laid > 10);
}

/* Prefill, and decoding at the end of it. */
static void threads_keep_the_bits(void **state)
{
    (void)state;
    static const int threads[] = {2, 3, 8};
    EACH_CASE (g) {
        tg_session_params p = {.n_threads = 1, .type_k = TG_KV_F16, .type_v = TG_KV_F16};
        const int n = few(g);
        float *want = logits_by(g, n, n - 4, 1, p);
        for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
            p.n_threads = threads[i];
            float *got = logits_by(g, n, n - 4, 1, p);
            same_bits(g, "threads", want, got, n);
            free(got);
        }
        free(want);
    }
}

static void batches_keep_the_bits(void **state)
{
    (void)state;
    EACH_CASE (g) {
        EACH_MODE (g, m) {
            tg_session_params p = *m;
            float *want = logits_of(g, few(g), p);
            for (int b = 0; b < N_BATCHES; b++) {
                p.n_batch = BATCHES[b];
                p.n_threads = threads_for(BATCHES[b]);
                float *got = logits_of(g, few(g), p);
                same_bits(g, "batches", want, got, few(g));
                free(got);
            }
            free(want);
        }
    }
}

/* Where OpenBLAS may be used, it must not be for fewer than 64 rows. */
static void small_batches_keep_the_bits_with_blas(void **state)
{
    (void)state;
    EACH_CASE (g) {
        tg_session_params p = {.n_threads = 1, .n_batch = 1};
        float *want = logits_of(g, few(g), p);
        p.n_batch = 63;
        float *got = logits_of(g, few(g), p);
        same_bits(g, "batches of 1 and 63", want, got, few(g));
        free(got);
        free(want);
    }
}

static void prefill_equals_decode(void **state)
{
    (void)state;
    static const int steps[] = {1, 5, 60};
    EACH_CASE (g) {
        EACH_MODE (g, m) {
            float *want = logits_of(g, few(g), *m);
            for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
                tg_session_params p = *m;
                p.n_threads = threads_for(steps[i]);
                float *got = logits_by(g, few(g), steps[i], steps[i], p);
                same_bits(g, "split calls", want, got, few(g));
                free(got);
            }
            free(want);
        }
    }
}

/* Asking for fewer rows changes no row: those at even places here. */
static void wanted_rows_keep_the_bits(void **state)
{
    (void)state;
    EACH_CASE (g) {
        const int n = few(g);
        tg_session_params p = MODES[0];
        p.n_ctx = n;
        float *want = logits_of(g, n, p);
        rows r = {.logits = calloc((size_t)n * row_floats(g), sizeof(float)), .last = -1};
        uint8_t mask[MAX_ROWS];
        for (int i = 0; i < n; i++)
            mask[i] = i % 2 == 0;
        tg_session *s = open_session(g, p);
        tg_error err;
        must(g, tg_eval(s, &(tg_batch){.n = n, .id = ids_of(g), .want = mask}, collect, &r, &err),
             &err);
        assert_int_equal(r.last, (n - 1) / 2 * 2);
        for (int i = 0; i < n; i += 2)
            same_bits(g, "every second row", want + (size_t)i * row_floats(g),
                      r.logits + (size_t)i * row_floats(g), 1);
        tg_session_free(s);
        free(r.logits);
        free(want);
    }
}

/* Continues a sequence by ids from .. to - 1, whose logits must be those of `want`. */
static void expect(const golden *g, const char *what, tg_session *s, int seq, const int32_t *id,
                   const float *want, int from, int to)
{
    const size_t row = row_floats(g);
    float *got = malloc((size_t)(to - from) * row * sizeof *got);
    assert_int_equal(tg_seq_length(s, seq), from);
    append(g, s, seq, id + from, to - from, got);
    same_bits(g, what, want + (size_t)from * row, got, to - from);
    free(got);
}

/* Two texts part in the middle of a block, and are written in turns: a block that is shared must be
 * copied before either writes to it. */
static void forks_and_cuts_keep_the_bits(void **state)
{
    (void)state;
    EACH_CASE (g) {
        EACH_MODE (g, m) {
            const int n = few(g), shared = n / 2 + 1, middle = shared + n / 4;
            const int32_t *id = ids_of(g);
            int32_t other[MAX_ROWS];
            for (int i = 0; i < n; i++)
                other[i] = id[i < shared ? i : n - 1 - (i - shared)];
            tg_session_params p = *m;
            p.n_ctx = 4 * n + 256;
            p.n_seq_max = 3;
            tg_session *s = open_session(g, p);
            tg_session_params alone = *m;
            alone.n_ctx = p.n_ctx;
            float *want = logits_of(g, n, alone),
                  *want_other = malloc(sizeof(float) * (size_t)n * row_floats(g));
            append(g, s, 0, other, n, want_other);

            tg_error err;
            int a = 0, b = 0;
            must(g, tg_seq_truncate(s, 0, n - 1, &err), &err);
            must(g, tg_seq_fork(s, 0, &a, &err), &err);
            must(g, tg_seq_truncate(s, a, shared, &err), &err);
            must(g, tg_seq_fork(s, a, &b, &err), &err);
            expect(g, "a fork, cut", s, a, id, want, shared, middle);
            expect(g, "a fork of a fork", s, b, other, want_other, shared, middle);
            expect(g, "a fork, beside another", s, a, id, want, middle, n);
            expect(g, "the other", s, b, other, want_other, middle, n);
            expect(g, "the first, after its forks wrote", s, 0, other, want_other, n - 1, n);
            tg_seq_free(s, a);
            must(g, tg_seq_truncate(s, 0, shared, &err), &err);
            expect(g, "a cut, after a fork was freed", s, 0, id, want, shared, n);
            must(g, tg_seq_truncate(s, b, 0, &err), &err);
            expect(g, "a cut to nothing", s, b, id, want, 0, n);
            tg_session_free(s);
            free(want_other);
            free(want);
        }
    }
}

/* The text beside shorter ones of itself, their rows interleaved, in batches that divide them
 * anyhow. */
static void sequences_keep_to_themselves(void **state)
{
    (void)state;
    enum { N_SEQ = 3 };
    EACH_CASE (g) {
        EACH_MODE (g, m) {
            const int length[N_SEQ] = {few(g), few(g) / 2, few(g) / 3};
            int32_t id[N_SEQ * MAX_ROWS], seq[N_SEQ * MAX_ROWS], pos[N_SEQ * MAX_ROWS];
            uint8_t mask[N_SEQ * MAX_ROWS];
            int n = 0;
            for (int i = 0; i < few(g); i++) {
                for (int k = N_SEQ - 1; k >= 0; k--) {
                    if (i >= length[k])
                        continue;
                    id[n] = ids_of(g)[i];
                    seq[n] = k;
                    pos[n] = i;
                    mask[n++] = 1;
                }
            }
            tg_session_params p = *m;
            p.n_ctx = n + 64 * N_SEQ;
            p.n_batch = 37;
            p.n_seq_max = N_SEQ;
            tg_session *s = open_session(g, p);
            tg_error err;
            for (int k = 1, made; k < N_SEQ; k++) {
                must(g, tg_seq_new(s, &made, &err), &err);
                assert_int_equal(made, k);
            }
            tg_session_params alone = *m;
            alone.n_ctx = p.n_ctx;
            float *want = logits_of(g, few(g), alone);
            rows r = {.logits = malloc((size_t)n * row_floats(g) * sizeof(float)), .last = -1};
            const tg_batch batch = {.n = n, .id = id, .seq = seq, .pos = pos, .want = mask};
            must(g, tg_eval(s, &batch, collect, &r, &err), &err);
            for (int i = 0; i < n; i++)
                same_bits(g, "several sequences", want + (size_t)pos[i] * row_floats(g),
                          r.logits + (size_t)i * row_floats(g), 1);
            for (int k = 0; k < N_SEQ; k++)
                assert_int_equal(tg_seq_length(s, k), length[k]);
            tg_session_free(s);
            free(r.logits);
            free(want);
        }
    }
}

/* ---- instruction sets ----------------------------------------------------------------------- */

/* What a child process prints: the level, and a hash of all logits of each case in each mode. */
static void print_bits(void)
{
    tg_session_info info;
    tg_session *s = open_session(&cases[0], (tg_session_params){.n_ctx = 64});
    tg_session_get_info(s, &info);
    printf("%s\n", info.isa);
    tg_session_free(s);
    EACH_CASE (g) {
        EACH_MODE (g, m) {
            uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a over 32-bit words */
            float *logits = logits_of(g, few(g), *m);
            for (size_t i = 0; i < (size_t)few(g) * row_floats(g); i++) {
                uint32_t bits;
                memcpy(&bits, &logits[i], sizeof bits);
                hash = (hash ^ bits) * 0x100000001b3u;
            }
            printf("%s, mode %d: %016llx\n", g->name, (int)(m - MODES), (unsigned long long)hash);
            free(logits);
        }
    }
}

static FILE *child(const char *level)
{
    char command[1024];
    snprintf(command, sizeof command, "TINYGPT_ISA=%s '%s' --print-bits", level, program);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    return f;
}

static bool cpu_has(const char *level)
{
#ifdef __x86_64__
    if (strcmp(level, "avx2") == 0)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni");
#else
    (void)level;
    return false;
#endif
}

static void levels_keep_the_bits(void **state)
{
    (void)state;
    static const char *const levels[] = {"avx2", "avx512"};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        if (!cpu_has(levels[i])) {
            print_message("[  SKIPPED ] level %s, which this processor lacks\n", levels[i]);
            continue;
        }
        FILE *plain = child("scalar"), *fast = child(levels[i]);
        char want[256], got[256], level[64];
        snprintf(level, sizeof level, "%s\n", levels[i]);
        assert_non_null(fgets(want, sizeof want, plain));
        assert_string_equal(want, "scalar\n");
        assert_non_null(fgets(got, sizeof got, fast));
        assert_string_equal(got, level);
        int n = 0;
        while (fgets(want, sizeof want, plain)) {
            assert_non_null(fgets(got, sizeof got, fast));
            assert_string_equal(got, want);
            n++;
        }
        assert_true(n >= n_cases);
        assert_int_equal(pclose(plain), 0);
        assert_int_equal(pclose(fast), 0);
    }
}

/* ---- cases ---------------------------------------------------------------------------------- */

static int load_cases(void **state)
{
    (void)state;
    char ids[128], logits[128], kind[16];
    FILE *f = fopen(golden_path("cases.txt"), "r");
    assert_non_null(f);
    for (golden *g = cases; n_cases < MAX_CASES; g++, n_cases++) {
        if (fscanf(f, "%63s %127s %127s %d %15s", g->name, ids, logits, &g->stride, kind) != 5)
            break;
        tg_error err;
        g->ids = npy_read(golden_path(ids), "<i4");
        g->logits = npy_read(golden_path(logits), "<f4");
        g->quant = strcmp(kind, "quant") == 0;
        must(g, tg_model_load(&g->model, golden_path(g->name), 0, &err), &err);
    }
    assert_true(feof(f));
    fclose(f);
    return 0;
}

static int free_cases(void **state)
{
    (void)state;
    EACH_CASE (g) {
        tg_model_free(g->model);
        free(g->ids.data);
        free(g->logits.data);
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_match_the_reference),
        cmocka_unit_test(narrow_modes_stay_near),
        cmocka_unit_test(every_attention_matches_the_reference),
        cmocka_unit_test(windows_begin_where_they_should),
        cmocka_unit_test(interleaved_keeps_the_bits),
        cmocka_unit_test(threads_keep_the_bits),
        cmocka_unit_test(batches_keep_the_bits),
        cmocka_unit_test(small_batches_keep_the_bits_with_blas),
        cmocka_unit_test(prefill_equals_decode),
        cmocka_unit_test(wanted_rows_keep_the_bits),
        cmocka_unit_test(forks_and_cuts_keep_the_bits),
        cmocka_unit_test(sequences_keep_to_themselves),
        cmocka_unit_test(levels_keep_the_bits),
    };
    program = argv[0];
    if (argc == 2 && strcmp(argv[1], "--print-bits") == 0) {
        load_cases(NULL);
        print_bits();
        return free_cases(NULL);
    }
    return cmocka_run_group_tests(tests, load_cases, free_cases);
}
