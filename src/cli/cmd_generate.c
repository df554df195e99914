/* cmd_generate.c - a prompt, or one a line, continued by a generator; what is told of it in the end. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/engine.h"
#include "cli/job_line.h"
#include "cli/prompt.h"
#include "cli/signals.h"

enum { WINDOW = 4 }; /* prompts that are held, for each that may run: those behind a long one wait to be written */

typedef struct generation {
    tg_options opt;
    tg_model *model;
    tg_session *session;
    tg_generator *generator;
    tg_output *out;
    tg_session_file file; /* of --session */
    int n_ctx; /* positions of a text */

    tg_job_lines in; /* of --each-line */
    bool ended;      /* there are no more prompts */
    tg_job **job;    /* [window] a ring: n_jobs from `first` on, of which n_begun have all their texts begun */
    int window, first, n_jobs, n_begun;

    uint64_t n_prompt, n_generated, n_decoded; /* tokens; decoded: in steps that read no prompt */
    double prompt_seconds, decode_seconds;     /* of steps that read prompts, and of the others */
    size_t n_failed, n_written;
    tg_error failure; /* the first */
    bool context_full;
} generation;

/* ---- preparing -------------------------------------------------------------------------------------- */

static int check(const tg_options *opt, tg_error *err)
{
    if (opt->json && (opt->jsonl || opt->each_line))
        return tg_cli_fail(err, TG_E_USAGE, "--json writes one object: of several prompts --jsonl does");
    if (opt->n_logprobs >= 0 && !opt->json && !opt->jsonl)
        return tg_cli_fail(err, TG_E_USAGE, "--logprobs needs --json or --jsonl to write them");
    if (opt->session && (opt->each_line || opt->n_best > 1))
        return tg_cli_fail(err, TG_E_USAGE, "--session holds one text: it does not go with --each-line or --n-best");
    if (opt->append && !opt->session)
        return tg_cli_fail(err, TG_E_USAGE, "--append needs --session FILE, whose text the prompt is to follow");
    if (!opt->each_line)
        return tg_prompt_check(opt, err);
    if (opt->operand || opt->prompt || opt->no_stdin)
        return tg_cli_fail(err, TG_E_USAGE, "with --each-line the prompts are the lines of stdin, or of -f FILE");
    return TG_OK;
}

/* The prompt and where it goes: behind the saved text, whose draws go on unless there is a seed, or by itself. */
static int place_job(generation *g, tg_job *job, const tg_prompt *prompt, tg_error *err)
{
    if (g->file.saved && (prompt->n == 0 || g->opt.append))
        job->before = tg_session_file_text(&g->file);
    const bool draws_go_on = job->before.n_drawn > 0 && !g->opt.seed_given;
    g->opt.seed = draws_go_on ? job->before.seed : g->opt.seed;
    int status = draws_go_on ? TG_OK : tg_request_seed(&g->opt, err);
    if (status)
        return status;
    job->opt = g->opt;
    job->opt.no_bos = g->opt.no_bos || job->before.n_ids > 0;
    status = tg_job_prepare(job, prompt->bytes ? prompt->bytes : "", prompt->n, err);
    if (status || !g->opt.session)
        return status;
    if (draws_go_on) {
        job->request.sampling.stream = job->before.stream;
        job->request.sampling.n_drawn = job->before.n_drawn;
    }
    g->file.random = g->opt.seed_given || draws_go_on;
    job->file = &g->file;
    job->request.n_max += g->opt.n_max == 0; /* so that the prompt is computed, and saved */
    return TG_OK;
}

/* The one prompt of the options. */
static int make_job(generation *g, tg_job **job, tg_error *err)
{
    tg_prompt prompt;
    tg_model_info info;
    tg_model_get_info(g->model, &info);
    int status = tg_prompt_read(&prompt, &g->opt, tg_engine_max_text(g->model, &g->opt), err);
    if (status)
        return status;
    if (g->opt.session)
        status = tg_session_file_open(&g->file, g->opt.session, g->model,
                                      g->opt.n_ctx ? g->opt.n_ctx : info.n_ctx_train, err);
    if (!status)
        status = tg_job_create(job, g->model, &g->opt, err);
    if (!status)
        status = place_job(g, *job, &prompt, err);
    if (!status && g->opt.n_best == 1 && !g->opt.json && !g->opt.jsonl)
        (*job)->stream = g->out;
    tg_prompt_free(&prompt);
    return status;
}

/* The context has room for what was saved, too, where the options leave it open. */
static int size_context(generation *g, size_t n_ids, tg_error *err)
{
    const size_t n_saved = tg_session_file_text(&g->file).n_ids;
    int n_more = g->opt.n_max;
    if (g->opt.n_ctx == 0 && n_more >= 0 && n_saved > n_ids + (size_t)n_more)
        n_more = (int)(n_saved - n_ids);
    return tg_engine_context(&g->n_ctx, g->model, &g->opt, n_ids, n_more, err);
}

/* A cache for one prompt and its texts. */
static int prepare_one(generation *g, tg_error *err)
{
    int n_seq = g->opt.n_best < g->opt.n_parallel ? g->opt.n_best : g->opt.n_parallel;
    int status = make_job(g, &g->job[0], err);
    g->n_jobs = g->job[0] != NULL;
    g->ended = true;
    if (!status)
        status = size_context(g, g->job[0]->n_ids, err);
    return status ? status : tg_engine_sessions(&g->session, g->model, &g->opt, g->n_ctx, n_seq, n_seq * g->n_ctx, err);
}

/* A cache for prompts that are not known yet: for any one of them, and for as many as may run if they are short. */
static int prepare_lines(generation *g, tg_error *err)
{
    enum { SHORT = 256 };
    int status = tg_job_lines_open(&g->in, g->opt.file, g->model, &g->opt, err);
    if (!status)
        status = tg_engine_context(&g->n_ctx, g->model, &g->opt, 0, -1, err);
    if (status)
        return status;
    int n_each = g->opt.n_max < 0 || g->opt.n_max > g->n_ctx - SHORT ? g->n_ctx : SHORT + g->opt.n_max;
    int n_all = g->opt.n_parallel * n_each > g->n_ctx ? g->opt.n_parallel * n_each : g->n_ctx;
    return tg_engine_sessions(&g->session, g->model, &g->opt, g->n_ctx, g->opt.n_parallel, n_all, err);
}

static int prepare(generation *g, tg_error *err)
{
    if (g->opt.session && !g->opt.operand && !g->opt.prompt && !g->opt.file && (g->opt.no_stdin || isatty(STDIN_FILENO)))
        g->opt.prompt = ""; /* the saved text is enough */
    int status = check(&g->opt, err);
    if (!status && g->opt.each_line)
        status = tg_request_seed(&g->opt, err);
    if (!status)
        status = tg_engine_load(&g->model, NULL, &g->opt, 0, err);
    if (!status)
        status = tg_engine_check_output(g->opt.session, g->model, &g->opt, err);
    g->window = g->opt.each_line ? WINDOW * g->opt.n_parallel : 1;
    if (!status && !(g->job = calloc((size_t)g->window, sizeof(tg_job *))))
        status = tg_cli_fail_memory(err, (size_t)g->window * sizeof(tg_job *), "prompts");
    if (!status)
        status = g->opt.each_line ? prepare_lines(g, err) : prepare_one(g, err);
    if (!status)
        status = (int)tg_generator_create(&g->generator, g->model, g->session, err);
    if (!status && g->opt.session)
        status = tg_session_file_begin(&g->file, g->generator, g->job[0]->ids, g->job[0]->n_ids,
                                       &g->job[0]->request.sampling, g->n_ctx, err);
    return status;
}

/* ---- running ---------------------------------------------------------------------------------------- */

static tg_job *job_at(const generation *g, int i)
{
    return g->job[(g->first + i) % g->window];
}

static bool stopped(const generation *g)
{
    return g->out->error || tg_signals_caught();
}

static bool has_room(const generation *g)
{
    tg_generator_info info;
    tg_generator_get_info(g->generator, &info);
    return info.n_active < info.n_slots;
}

/* Reads another prompt, if there is one and room for it. While others run it is not waited for. */
static int read_job(generation *g, tg_error *err)
{
    tg_generator_info info;
    tg_generator_get_info(g->generator, &info);
    if (g->ended || g->n_jobs == g->window || (info.n_active > 0 && !tg_lines_ready(&g->in.lines)))
        return TG_OK;
    tg_job *job;
    int status = tg_job_lines_next(&g->in, &job, g->model, &g->opt, err);
    g->ended = !job;
    if (status || !job)
        return status;
    if (!job->failure.status && job->n_ids > (size_t)g->n_ctx)
        tg_cli_fail(&job->failure, TG_E_USAGE, "the prompt has %zu tokens and the context %d positions", job->n_ids,
                    g->n_ctx);
    g->job[(g->first + g->n_jobs++) % g->window] = job;
    return TG_OK;
}

/* Begins as many texts as there are slots for. */
static int fill(generation *g, tg_error *err)
{
    while (has_room(g) && !stopped(g)) {
        if (g->n_begun == g->n_jobs) {
            int status = read_job(g, err);
            if (status || g->n_begun == g->n_jobs)
                return status;
        }
        tg_job *job = job_at(g, g->n_begun);
        if (!tg_job_has_begun(job) && tg_job_begin(job, g->generator, &job->failure) && !g->opt.each_line) {
            *err = job->failure;
            return (int)err->status;
        }
        g->n_begun += tg_job_has_begun(job);
    }
    return TG_OK;
}

static uint64_t n_tokens(const tg_job *job)
{
    uint64_t n = 0;
    for (int i = 0; job->choice && i < job->opt.n_best; i++)
        n += (uint64_t)job->choice[i].n_tokens;
    return n;
}

static void forget(generation *g, tg_job *job)
{
    g->n_prompt += job->n_begun > 0 ? job->n_ids : 0;
    g->n_generated += n_tokens(job);
    for (int i = 0; job->choice && i < job->opt.n_best; i++)
        g->context_full = g->context_full || job->choice[i].finish == TG_FINISH_CONTEXT;
    tg_job_free(job);
}

/* Writes those that are done, in order. Where there is one text, its failure is the command's. */
static int write_done(generation *g, int status, tg_error *err)
{
    if (status && !g->opt.each_line)
        return status;
    for (; g->n_jobs > 0 && tg_job_is_done(job_at(g, 0)); g->n_jobs--, g->n_begun--) {
        tg_job *job = job_at(g, 0);
        if (job->failure.status && g->n_failed++ == 0)
            g->failure = job->failure;
        if (job->failure.status && !g->opt.each_line) {
            *err = job->failure;
            return (int)err->status;
        }
        if (job->failure.status)
            tg_say_error("line %zu: %s", job->number, job->failure.message);
        tg_job_write(job, g->out);
        forget(g, job);
        g->first = (g->first + 1) % g->window;
        g->n_written++;
    }
    return status;
}

static uint64_t drawn(const generation *g)
{
    uint64_t n = g->n_generated;
    for (int i = 0; i < g->n_jobs; i++)
        n += n_tokens(job_at(g, i));
    return n;
}

static void show(const generation *g, tg_progress *progress, const tg_generator_info *info)
{
    if (g->opt.each_line)
        tg_progress_show(progress, "prompts", (int64_t)g->n_written, (int64_t)g->in.number);
    else if (info->n_reading > 0)
        tg_progress_show(progress, "prompt tokens", (int64_t)info->n_prompt_done, (int64_t)info->n_prompt);
    else
        tg_progress_clear(progress);
}

static int step(generation *g, tg_progress *progress, tg_error *err)
{
    tg_generator_info info;
    tg_generator_get_info(g->generator, &info);
    show(g, progress, &info);
    uint64_t before = drawn(g);
    double begun = tg_seconds();
    int status = (int)tg_generator_step(g->generator, err);
    double seconds = tg_seconds() - begun;
    g->n_decoded += info.n_reading > 0 ? 0 : drawn(g) - before;
    *(info.n_reading > 0 ? &g->prompt_seconds : &g->decode_seconds) += seconds;
    return status;
}

static int generate(generation *g, tg_error *err)
{
    tg_progress progress = {0};
    int status = TG_OK;
    while (!status && !stopped(g)) {
        status = write_done(g, fill(g, err), err);
        if (g->ended && g->n_jobs == 0)
            break;
        if (!status && !stopped(g))
            status = step(g, &progress, err);
        if (!status)
            status = write_done(g, status, err);
    }
    tg_progress_clear(&progress);
    return status == TG_E_STOPPED && stopped(g) ? TG_OK : status;
}

/* ---- telling ---------------------------------------------------------------------------------------- */

static double rate(double n, double seconds)
{
    return n > 0 && seconds > 0 ? n / seconds : 0;
}

/* The prompt's evaluation yields the first token; those behind it count as decoded. */
static void tell_stats(const generation *g)
{
    tg_generator_info info;
    tg_generator_get_info(g->generator, &info);
    tg_say_line("prompt tokens:    %llu in %.3f s, %.1f tokens/s", (unsigned long long)g->n_prompt, g->prompt_seconds,
                rate((double)g->n_prompt, g->prompt_seconds));
    if (!g->opt.each_line)
        tg_say_line("first token:      %.3f s", g->prompt_seconds);
    tg_say_line("generated tokens: %llu", (unsigned long long)g->n_generated);
    tg_say_line("decoded tokens:   %llu in %.3f s, %.1f tokens/s", (unsigned long long)g->n_decoded, g->decode_seconds,
                rate((double)g->n_decoded, g->decode_seconds));
    if (g->opt.lookup)
        tg_say_line("guessed tokens:   %llu, %llu of them right", (unsigned long long)info.n_drafted,
                    (unsigned long long)info.n_accepted);
    if (info.n_reused > 0 && g->opt.session)
        tg_say_line("reused tokens:    %llu, of the session", (unsigned long long)info.n_reused);
    else if (info.n_reused > 0)
        tg_say_line("shared tokens:    %llu of prompts, computed once", (unsigned long long)info.n_reused);
    tg_say_line("peak memory:      %.1f MiB", (double)tg_engine_peak_bytes() / 1048576);
}

static void tell(generation *g)
{
    for (; g->n_jobs > 0; g->n_jobs--)
        forget(g, job_at(g, g->n_jobs - 1));
    if (g->context_full)
        tg_say_note("context full: %d positions (-c sets it)", g->n_ctx);
    tg_engine_tell_clamped(g->session);
    if (g->opt.stats)
        tell_stats(g);
}

/* However the text ended, unless it failed. What is told after a signal is told here. */
static int finish(generation *g, int status, tg_error *err)
{
    if (!status)
        status = (int)tg_model_check_unchanged(g->model, err);
    if (!status && g->opt.session)
        status = tg_session_file_save(&g->file, g->generator, err);
    if (status && tg_signals_caught())
        tg_say_error("%s", err->message);
    return status;
}

/* Lines that failed were told one by one. */
static int verdict(const generation *g, tg_error *err)
{
    if (g->n_failed == 0)
        return TG_OK;
    return tg_cli_fail(err, (int)g->failure.status, "%zu of %zu lines could not be continued", g->n_failed, g->n_written);
}

int tg_cmd_generate(const tg_options *opt, tg_error *err)
{
    static tg_output out;
    generation g = {.opt = *opt, .out = &out};
    int status = prepare(&g, err);
    if (!status)
        status = tg_output_open(&out, NULL, err);
    if (!status) {
        tg_request_tell_seed(opt, &g.opt);
        tg_signals_watch(g.session);
        status = generate(&g, err);
        status = status ? status : verdict(&g, err);
        tg_output_text_end(&out);
        status = finish(&g, status, err);
        status = tg_output_close(&out, status, err);
        if (status != TG_EXIT_PIPE)
            tell(&g);
        tg_signals_watch(NULL);
    }
    tg_session_file_free(&g.file);
    tg_generator_free(g.generator);
    tg_session_free(g.session);
    for (; g.n_jobs > 0; g.n_jobs--)
        tg_job_free(job_at(&g, g.n_jobs - 1));
    free(g.job);
    tg_lines_close(&g.in.lines);
    tg_model_free(g.model);
    return status;
}
