/* cmd_bench.c - how fast a model is evaluated, test by test, beside what the machine allows.
 *
 * Token ids depend on their position alone, so that the logits of a test, told by a hash, are the same for
 * any number of threads and any batch. A repetition is timed token by token, from the call to the arrival
 * of the logits; the plain loop that tells the limit runs inside it, while the clock stands. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/bench.h"
#include "cli/engine.h"
#include "cli/signals.h"
#include "cli/text.h"

typedef struct bench {
    const tg_options *opt;
    tg_model *model;
    tg_model_info info;
    char model_type[160], cpu[160];
    int depths[TG_LIST_MAX]; /* ascending: the cache grows from one to the next */
    int n_ctx;               /* for the deepest and longest test */
    int32_t *ids;            /* [n_ctx] by position */
    tg_output *out;
    tg_machine machine;
    int n_rows;

    /* the setting in work */
    tg_session *session;
    tg_bench_row setting; /* what its rows have in common */
} bench;

static bool stopped(const bench *b)
{
    return b->out->error || tg_signals_caught();
}

/* ---- preparing --------------------------------------------------------------------------------
 */

static int largest(const tg_list *list)
{
    int most = 0;
    for (int i = 0; i < list->n; i++)
        most = list->value[i] > most ? list->value[i] : most;
    return most;
}

static int ascending(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Before a model is loaded in vain. */
static int plan(bench *b, tg_error *err)
{
    const tg_options *opt = b->opt;
    int n_prompt = largest(&opt->n_prompts), n_gen = largest(&opt->n_gens);
    int longest = n_prompt > n_gen ? n_prompt : n_gen;
    if (longest == 0)
        return tg_cli_fail(err, TG_E_USAGE,
                           "nothing to measure: -p 0 leaves the prompt out and -n 0 the rest");
    memcpy(b->depths, opt->n_depths.value, sizeof b->depths);
    qsort(b->depths, (size_t)opt->n_depths.n, sizeof b->depths[0], ascending);
    b->n_ctx = largest(&opt->n_depths) + longest;
    return TG_OK;
}

static int check_positions(const bench *b, tg_error *err)
{
    int trained = b->info.n_ctx_train;
    if (b->n_ctx <= trained)
        return TG_OK;
    if (b->info.positions_bounded)
        return tg_cli_fail(err, TG_E_USAGE,
                           "-d with -p or -n makes %d positions, and this model has %d", b->n_ctx, trained);
    tg_say_warning("going past the %d positions that the model was trained for", trained);
    return TG_OK;
}

/* The type that most bytes of the weights have. */
static const char *main_type(const bench *b)
{
    enum { TYPES_MAX = 32 }; /* of any more it is none that counts */
    struct {
        const char *name;
        uint64_t n_bytes;
    } type[TYPES_MAX] = {{"", 0}};
    int n = 0, most = 0;
    for (int i = 0; i < b->info.n_tensors; i++) {
        tg_tensor_info t;
        int at = 0;
        tg_model_get_tensor(b->model, i, &t);
        while (at < n && strcmp(type[at].name, t.type))
            at++;
        if (at == TYPES_MAX)
            continue;
        n = at == n ? n + 1 : n;
        type[at].name = t.type;
        type[at].n_bytes += t.n_bytes;
        most = type[at].n_bytes > type[most].n_bytes ? at : most;
    }
    return type[most].name;
}

static void name_model(bench *b)
{
    tg_text_quoted arch;
    double millions = (double)b->info.n_params / 1e6;
    bool small = millions < 1000;
    snprintf(b->model_type, sizeof b->model_type, "%.60s %.*f%c %.40s",
             tg_text_quote(&arch, b->info.architecture), small ? 0 : 2, small ? millions : millions / 1000,
             small ? 'M' : 'B', b->info.file_type ? b->info.file_type : main_type(b));
}

static void name_cpu(bench *b)
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "re");
    while (f && !b->cpu[0] && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (colon && !strncmp(line, "model name", 10))
            snprintf(b->cpu, sizeof b->cpu, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
    }
    if (f)
        fclose(f);
}

/* SplitMix64 of the position: any id, as llama-bench takes any. */
static int32_t id_at(uint64_t pos, int n_vocab)
{
    uint64_t z = (pos + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (int32_t)((z ^ z >> 31) % (uint64_t)n_vocab);
}

static int prepare(bench *b, tg_error *err)
{
    int status = plan(b, err);
    if (!status)
        status = tg_engine_load(&b->model, NULL, b->opt, 0, err);
    if (status)
        return status;
    tg_model_get_info(b->model, &b->info);
    status = check_positions(b, err);
    if (status)
        return status;
    name_model(b);
    name_cpu(b);
    size_t n_bytes = (size_t)b->n_ctx * sizeof *b->ids;
    b->ids = malloc(n_bytes);
    if (!b->ids)
        return tg_cli_fail_memory(err, n_bytes, "the tokens");
    for (int i = 0; i < b->n_ctx; i++)
        b->ids[i] = id_at((uint64_t)i, b->info.n_vocab);
    return TG_OK;
}

/* ---- one test ---------------------------------------------------------------------------------
 */

typedef struct test {
    bench *b;
    tg_bench_row row;
    double *token;  /* [n_samples * n_gen] seconds */
    int n_tokens;   /* of those, so far */
    double arrived; /* when the last logits came */
    bool last;      /* they are the test's last: to be hashed */
    tg_progress progress;
} test;

static bool arrive(void *arg, int row, const float *logits, int n_vocab)
{
    test *t = arg;
    (void)row;
    t->arrived = tg_seconds();
    if (t->last)
        t->row.logits_hash = tg_bench_hash(logits, n_vocab);
    return !tg_signals_caught();
}

/* The next n tokens of the sequence, with the logits of the last, and the seconds until they came. */
static int eval(test *t, int n, double *seconds, tg_error *err)
{
    tg_session *session = t->b->session;
    const tg_batch batch = {.n = n, .id = t->b->ids + tg_seq_length(session, 0)};
    double begun = tg_seconds();
    int status = (int)tg_eval(session, &batch, arrive, t, err);
    *seconds = fmax(t->arrived - begun, 1e-9); /* less than the clock can tell */
    return status;
}

enum { READINGS = 8 }; /* of what a token reads, in a repetition: no token could be faster than their median */

/* One reading, for the limit of the tokens around it. */
static int read_once(test *t, double *seconds, tg_error *err)
{
    tg_read read = {0};
    int status = (int)tg_session_read(t->b->session, 0, &read, err);
    *seconds = read.seconds;
    t->row.bytes_per_token = (double)(read.weight_bytes + read.kv_bytes);
    return status;
}

/* A prompt must be read once and multiplied through, whichever takes longer: a roofline. */
static int limit_of_prompt(test *t, double *seconds, tg_error *err)
{
    double read[READINGS];
    tg_work work;
    const tg_machine *m = &t->row.machine;
    int status = TG_OK;
    for (int i = 0; i < READINGS && !status; i++)
        status = read_once(t, &read[i], err);
    if (status)
        return status;
    tg_session_work(t->b->session, t->row.n_depth, t->row.n_prompt, &work);
    double compute = (double)work.f32_flops / m->f32_flops + (double)work.int8_ops / m->int8_ops;
    double reading = tg_bench_quantile(read, READINGS, 0.5);
    *seconds = compute > reading ? compute : reading;
    t->row.bytes_per_token /= t->row.n_prompt;
    return TG_OK;
}

static int repeat_prompt(test *t, int i, tg_error *err)
{
    t->last = i == t->row.n_samples - 1;
    int status = eval(t, t->row.n_prompt, &t->row.seconds[i], err);
    return status ? status : limit_of_prompt(t, &t->row.limit_seconds[i], err);
}

/* The readings are spread over the tokens, the clock standing, so that both meet the same machine. */
static int repeat_gen(test *t, int i, tg_error *err)
{
    int status = TG_OK, n = t->row.n_gen, n_read = 0;
    double read[READINGS], middle = 0;
    t->row.seconds[i] = 0;
    for (int k = 0; k < n && !status && !stopped(t->b); k++) {
        double *seconds = &t->token[t->n_tokens++];
        *seconds = 0;
        if (n_read < READINGS && k >= (2 * n_read + 1) * n / (2 * READINGS)) {
            status = read_once(t, &read[n_read++], err);
            middle = k <= n / 2 ? t->row.bytes_per_token : middle;
        }
        t->last = i == t->row.n_samples - 1 && k == n - 1;
        if (!status)
            status = eval(t, 1, seconds, err);
        t->row.seconds[i] += *seconds;
        tg_progress_show(&t->progress, "tokens", t->n_tokens, (int64_t)n * t->row.n_samples);
    }
    if (n_read > 0)
        t->row.limit_seconds[i] = tg_bench_quantile(read, n_read, 0.5) * n;
    t->row.bytes_per_token = middle;
    return status;
}

static int repeat(test *t, tg_error *err)
{
    int status = TG_OK;
    tg_session *session = t->b->session;
    for (int i = 0; i < t->row.n_samples && !status && !stopped(t->b); i++) {
        if (t->row.n_prompt)
            tg_progress_show(&t->progress, "prompts", i, t->row.n_samples);
        status = (int)tg_seq_truncate(session, 0, t->row.n_depth, err);
        if (!status)
            status = t->row.n_prompt ? repeat_prompt(t, i, err) : repeat_gen(t, i, err);
    }
    tg_progress_clear(&t->progress);
    return status;
}

static int warm_up(test *t, tg_error *err)
{
    double unused;
    return t->b->opt->no_warmup ? TG_OK : eval(t, t->row.n_prompt + t->row.n_gen, &unused, err);
}

static void note_time(tg_bench_row *row)
{
    time_t now = time(NULL);
    struct tm utc;
    strftime(row->test_time, sizeof row->test_time, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
}

static int measure(test *t, tg_error *err)
{
    tg_bench_row *row = &t->row;
    note_time(row);
    int status = warm_up(t, err);
    if (!status)
        status = repeat(t, err);
    if (status || stopped(t->b))
        return status;
    if (row->n_gen)
        row->p99_token = tg_bench_quantile(t->token, t->n_tokens, 0.99);
    row->peak_memory_bytes = tg_engine_peak_bytes();
    tg_bench_put(t->b->out, t->b->opt->table, t->b->n_rows++, row);
    return TG_OK;
}

/* One row; the cache holds `depth` tokens, before and after. */
static int run_test(bench *b, int n_prompt, int n_gen, int depth, tg_error *err)
{
    test t = {.b = b, .row = b->setting};
    size_t n = (size_t)b->opt->n_repetitions, n_token = n * (size_t)n_gen;
    t.row.n_prompt = n_prompt;
    t.row.n_gen = n_gen;
    t.row.n_depth = depth;
    t.row.n_samples = b->opt->n_repetitions;
    double *room = malloc((2 * n + n_token) * sizeof *room);
    if (!room)
        return tg_cli_fail_memory(err, (2 * n + n_token) * sizeof *room, "the times of a test");
    t.row.seconds = room;
    t.row.limit_seconds = room + n;
    t.token = room + 2 * n;
    int status = measure(&t, err);
    free(room);
    if (!status)
        status = (int)tg_seq_truncate(b->session, 0, depth, err);
    return status;
}

/* ---- all of them ------------------------------------------------------------------------------
 */

/* Fills the cache up to `depth` tokens. */
static int extend(const bench *b, int depth, tg_error *err)
{
    int status = TG_OK;
    tg_progress progress = {0};
    for (int at; (at = tg_seq_length(b->session, 0)) < depth && !status && !stopped(b);) {
        int n = depth - at < b->setting.n_batch ? depth - at : b->setting.n_batch;
        tg_progress_show(&progress, "tokens before the test", at, depth);
        status = (int)tg_eval(b->session, &(tg_batch){.n = n, .id = b->ids + at}, NULL, NULL, err);
    }
    tg_progress_clear(&progress);
    return status;
}

static int run_depth(bench *b, int depth, tg_error *err)
{
    const tg_list *prompts = &b->opt->n_prompts, *gens = &b->opt->n_gens;
    int status = extend(b, depth, err);
    for (int i = 0; i < prompts->n && !status && !stopped(b); i++)
        if (prompts->value[i] > 0)
            status = run_test(b, prompts->value[i], 0, depth, err);
    for (int i = 0; i < gens->n && !status && !stopped(b); i++)
        if (gens->value[i] > 0)
            status = run_test(b, 0, gens->value[i], depth, err);
    return status;
}

static int measure_machine(bench *b, int n_threads, const char *isa, tg_error *err)
{
    if (b->machine.n_threads == n_threads)
        return TG_OK;
    int status = (int)tg_machine_measure(n_threads, &b->machine, err);
    tg_engine_forget_peak(); /* its buffer is no part of what a model needs */
    if (!status)
        tg_say_note("machine: %d thread%s read %.1f GB/s, compute %.1f GFLOP/s in float32 and "
                    "%.1f GOP/s in 8 bits (%s)",
                    n_threads, n_threads == 1 ? "" : "s", b->machine.read_bytes_per_s / 1e9,
                    b->machine.f32_flops / 1e9, b->machine.int8_ops / 1e9, isa);
    return status;
}

/* The new session is watched before the old one goes: a signal always finds one, and ends the table. */
static int open_session(bench *b, const tg_options *opt, tg_error *err)
{
    tg_session *old = b->session;
    int status = tg_engine_session(&b->session, b->model, opt, b->n_ctx, err);
    tg_signals_watch(b->session);
    tg_session_free(old);
    return status;
}

static int run_setting(bench *b, int n_threads, int n_batch, int type_k, int type_v, tg_error *err)
{
    static const char *const types[] = {
        [TG_KV_F32] = "f32", [TG_KV_F16] = "f16", [TG_KV_BF16] = "bf16",
        [TG_KV_Q8_0] = "q8_0", [TG_KV_Q4] = "q4"};
    tg_session_info info;
    tg_options opt = *b->opt;
    opt.n_threads = n_threads;
    opt.n_batch = n_batch;
    opt.kv_type_k = type_k;
    opt.kv_type_v = type_v;
    int status = open_session(b, &opt, err);
    if (status)
        return status;
    tg_session_get_info(b->session, &info);
    status = measure_machine(b, info.n_threads, info.isa, err);
    b->setting = (tg_bench_row){
        .model = &b->info,
        .model_type = b->model_type,
        .cpu = b->cpu,
        .isa = info.isa,
        .attention = opt.attention ? opt.attention : tg_attention_name(0, NULL),
        .precise = opt.precise,
        .blas = opt.blas == 0,
        .machine = b->machine,
        .n_threads = info.n_threads,
        .n_batch = info.n_batch,
        .type_k = types[type_k],
        .type_v = types[type_v],
    };
    for (int i = 0; i < opt.n_depths.n && !status && !stopped(b); i++)
        status = run_depth(b, b->depths[i], err);
    return status;
}

/* --kv-type names both types of a pair; given apart, each of the keys meets each of the values. */
static int run_types(bench *b, int n_threads, int n_batch, tg_error *err)
{
    const tg_list *both = &b->opt->kv_types, *k = &b->opt->kv_types_k, *v = &b->opt->kv_types_v;
    bool paired = k->n == 0 && v->n == 0;
    int status = TG_OK;
    k = k->n ? k : both;
    v = v->n ? v : both;
    for (int i = 0; i < k->n; i++)
        for (int j = paired ? i : 0; j < (paired ? i + 1 : v->n) && !status && !stopped(b); j++)
            status = run_setting(b, n_threads, n_batch, k->value[i], v->value[j], err);
    return status;
}

static int run_all(bench *b, tg_error *err)
{
    static const tg_list chosen = {.n = 1}; /* by OMP_NUM_THREADS or the library */
    const tg_list *threads = b->opt->thread_counts.n ? &b->opt->thread_counts : &chosen;
    const tg_list *batches = &b->opt->batches;
    int status = TG_OK;
    for (int i = 0; i < threads->n; i++)
        for (int j = 0; j < batches->n && !status && !stopped(b); j++)
            status = run_types(b, threads->value[i], batches->value[j], err);
    return status == TG_E_STOPPED && stopped(b) ? TG_OK : status;
}

int tg_cmd_bench(const tg_options *opt, tg_error *err)
{
    static tg_output out;
    bench b = {.opt = opt, .out = &out};
    int status = prepare(&b, err);
    if (!status)
        status = tg_output_open(&out, NULL, err);
    if (!status) {
        status = run_all(&b, err);
        if (!status)
            status = (int)tg_model_check_unchanged(b.model, err);
        tg_bench_end(&out, opt->table, b.n_rows);
        status = tg_output_close(&out, status, err);
    }
    tg_signals_watch(NULL);
    tg_session_free(b.session);
    free(b.ids);
    tg_model_free(b.model);
    return status;
}
