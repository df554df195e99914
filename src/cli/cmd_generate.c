/* cmd_generate.c - a prompt is evaluated, then one token at a time is drawn, shown and evaluated.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "cli/engine.h"
#include "cli/prompt.h"
#include "cli/signals.h"

typedef struct generation {
    const tg_options *opt;
    tg_model *model;
    tg_session *session;
    tg_sampler *sampler;
    tg_prompt prompt;
    int32_t *encoded;   /* its tokens */
    int32_t begin;      /* what an empty one starts from */
    const int32_t *ids; /* [n_prompt], either of the two */
    size_t n_prompt;
    int n_ctx;
    tg_output *out;

    int32_t drawn; /* by the last evaluation */
    int n_generated;
    bool context_full;
    double begun, prompt_seconds, decode_seconds;
} generation;

/* ---- preparing --------------------------------------------------------------------------------
 */

/* An empty prompt starts from a token that the model knows as a beginning. */
static int start_empty(generation *g, const tg_tokenizer_info *tok, tg_error *err)
{
    g->begin = tok->bos >= 0 ? tok->bos : tok->eos;
    if (g->begin < 0)
        return tg_cli_fail(err, TG_E_USAGE,
                           "the prompt is empty, and the model has no token to begin a text with");
    g->ids = &g->begin;
    g->n_prompt = 1;
    return TG_OK;
}

static int read_prompt(generation *g, tg_error *err)
{
    tg_tokenizer_info tok;
    tg_model_get_tokenizer(g->model, &tok);
    int status = tg_engine_encode(&g->encoded, &g->n_prompt, &g->prompt, g->model, g->opt,
                                  tg_engine_max_text(g->model, g->opt), err);
    if (status)
        return status;
    g->ids = g->encoded;
    /* The model's policy may end every text; this one is to be continued. */
    if (tok.add_eos && !g->opt->no_bos && g->n_prompt > 0 && g->ids[g->n_prompt - 1] == tok.eos)
        g->n_prompt--;
    return g->n_prompt > 0 ? TG_OK : start_empty(g, &tok, err);
}

static int create_sampler(generation *g, tg_error *err)
{
    const tg_options *opt = g->opt;
    tg_tokenizer_info tok;
    tg_sampling sampling = {.temp = (float)opt->temp,
                            .top_k = opt->top_k,
                            .top_p = (float)opt->top_p,
                            .min_p = (float)opt->min_p,
                            .seed = opt->seed};
    bool random = opt->temp > 0 && opt->top_k != 1 && opt->n_max != 0;
    if (!opt->seed_given && random &&
        getrandom(&sampling.seed, sizeof sampling.seed, 0) != (ssize_t)sizeof sampling.seed)
        return tg_cli_fail(err, TG_E_RESOURCE, "no random seed from the system: %s",
                           strerror(errno));
    int status = (int)tg_sampler_create(&g->sampler, g->model, &sampling, err);
    if (status)
        return status;
    if (!opt->seed_given && random)
        tg_say_note("seed %llu", (unsigned long long)sampling.seed);
    tg_model_get_tokenizer(g->model, &tok);
    for (int32_t id = 0; opt->ignore_eos && id < tok.n_tokens; id++)
        if (tg_token_is_eog(g->model, id))
            tg_sampler_ban(g->sampler, id);
    return TG_OK;
}

static int prepare(generation *g, tg_error *err)
{
    int status = tg_prompt_check(g->opt, err);
    if (!status)
        status = tg_engine_load(&g->model, NULL, g->opt, 0, err);
    if (!status)
        status = read_prompt(g, err);
    if (!status)
        status = tg_engine_context(&g->n_ctx, g->model, g->opt, g->n_prompt, g->opt->n_max, err);
    if (!status)
        status = tg_engine_session(&g->session, g->model, g->opt, g->n_ctx, err);
    if (!status)
        status = create_sampler(g, err);
    return status;
}

/* ---- generating -------------------------------------------------------------------------------
 */

static bool draw(void *arg, int row, const float *logits, int n_vocab)
{
    generation *g = arg;
    (void)row;
    g->drawn = tg_sampler_draw(g->sampler, logits, n_vocab);
    return true;
}

/* In pieces of a batch, so that progress can be shown; the session would cut it the same way. */
static int eval_prompt(generation *g, tg_error *err)
{
    int step = g->opt->n_batch, status = TG_OK;
    uint8_t *none = calloc((size_t)step, 1);
    tg_progress progress = {0};
    if (!none)
        return tg_cli_fail_memory(err, (size_t)step, "the prompt");
    for (int at = 0, n = (int)g->n_prompt; at < n && !status; at += step) {
        bool last = n - at <= step;
        tg_batch batch = {.n = last ? n - at : step, .id = g->ids + at, .want = last ? NULL : none};
        tg_progress_show(&progress, "prompt tokens", at, n);
        status = (int)tg_eval(g->session, &batch, draw, g, err);
    }
    tg_progress_clear(&progress);
    free(none);
    return status;
}

static void show(generation *g, int32_t id)
{
    size_t n;
    const char *bytes = tg_token_bytes(g->model, id, &n);
    if (tg_token_get_kind(g->model, id) == TG_TOKEN_NORMAL || g->opt->special)
        tg_output_text(g->out, bytes, n);
    tg_output_flush(g->out);
}

static bool stopped(const generation *g)
{
    return g->out->error || tg_signals_caught();
}

static int decode(generation *g, tg_error *err)
{
    int status = TG_OK;
    while (g->n_generated != g->opt->n_max && !stopped(g)) {
        int32_t id = g->drawn;
        if (tg_token_is_eog(g->model, id) && !g->opt->ignore_eos)
            break;
        show(g, id);
        g->n_generated++;
        if (g->n_generated == g->opt->n_max || stopped(g))
            break;
        g->context_full = tg_seq_length(g->session, 0) >= g->n_ctx;
        if (g->context_full)
            break;
        status = (int)tg_eval(g->session, &(tg_batch){.n = 1, .id = &id}, draw, g, err);
        if (status)
            break;
    }
    return status;
}

static int generate(generation *g, tg_error *err)
{
    if (g->opt->echo) {
        tg_output_text(g->out, g->prompt.bytes, g->prompt.n);
        tg_output_flush(g->out);
    }
    g->begun = tg_seconds();
    int status = stopped(g) ? TG_OK : eval_prompt(g, err);
    g->prompt_seconds = tg_seconds() - g->begun;
    if (!status && !stopped(g))
        status = decode(g, err);
    g->decode_seconds = tg_seconds() - g->begun - g->prompt_seconds;
    return status == TG_E_STOPPED && stopped(g) ? TG_OK : status;
}

/* ---- telling ----------------------------------------------------------------------------------
 */

static double rate(double n, double seconds)
{
    return n > 0 && seconds > 0 ? n / seconds : 0;
}

static void tell_stats(const generation *g)
{
    /* The prompt's evaluation yields the first token; each later one is an evaluation of its own.
     */
    int n_decoded = g->n_generated > 1 ? g->n_generated - 1 : 0;
    tg_say_line("prompt tokens:    %zu in %.3f s, %.1f tokens/s", g->n_prompt, g->prompt_seconds,
                rate((double)g->n_prompt, g->prompt_seconds));
    tg_say_line("generated tokens: %d in %.3f s, %.1f tokens/s", g->n_generated, g->decode_seconds,
                rate(n_decoded, g->decode_seconds));
    tg_say_line("first token:      %.3f s", g->prompt_seconds);
    tg_say_line("peak memory:      %.1f MiB", (double)tg_engine_peak_bytes() / 1048576);
}

static void tell(const generation *g)
{
    if (g->context_full)
        tg_say_note("context full: %d positions (-c sets it)", g->n_ctx);
    tg_engine_tell_clamped(g->session);
    if (g->opt->stats)
        tell_stats(g);
}

int tg_cmd_generate(const tg_options *opt, tg_error *err)
{
    static tg_output out;
    generation g = {.opt = opt, .out = &out};
    int status = prepare(&g, err);
    if (!status)
        status = tg_output_open(&out, NULL, err);
    if (!status) {
        tg_signals_watch(g.session);
        status = generate(&g, err);
        tg_output_text_end(&out);
        status = tg_output_close(&out, status, err);
        if (status != TG_EXIT_PIPE)
            tell(&g);
        tg_signals_watch(NULL);
    }
    tg_sampler_free(g.sampler);
    tg_session_free(g.session);
    tg_prompt_free(&g.prompt);
    tg_free(g.encoded);
    tg_model_free(g.model);
    return status;
}
