/* cmd_generate.c - a prompt is evaluated, then one token at a time is drawn, shown and evaluated.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/engine.h"
#include "cli/prompt.h"
#include "cli/request.h"
#include "cli/signals.h"

typedef struct generation {
    tg_options *opt;
    tg_model *model;
    tg_session *session;
    tg_generator *generator;
    tg_prompt prompt;
    int32_t *encoded;   /* its tokens */
    int32_t begin;      /* what an empty one starts from */
    const int32_t *ids; /* [n_prompt], either of the two */
    size_t n_prompt;
    int n_ctx;
    tg_output *out;

    int n_generated;
    tg_finish finish;
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
        status = (int)tg_generator_create(&g->generator, g->model, g->session, err);
    return status;
}

/* ---- generating -------------------------------------------------------------------------------
 */

static bool stopped(const generation *g)
{
    return g->out->error || tg_signals_caught();
}

static bool show(void *arg, const tg_piece *piece)
{
    generation *g = arg;
    if (g->n_generated == 0)
        g->prompt_seconds = tg_seconds() - g->begun;
    g->n_generated += piece->id >= 0 && piece->finish != TG_FINISH_END;
    g->finish = piece->finish;
    tg_output_text(g->out, piece->text, piece->n_bytes);
    tg_output_flush(g->out);
    return !stopped(g);
}

static int add(generation *g, tg_error *err)
{
    tg_request request;
    tg_request_room room;
    int status = tg_request_seed(g->opt, err);
    if (!status)
        status = tg_request_make(&request, &room, g->opt, err);
    if (status)
        return status;
    request.ids = g->ids;
    request.n_ids = g->n_prompt;
    request.sink = show;
    request.arg = g;
    return (int)tg_generator_add(g->generator, &request, err);
}

static int generate(generation *g, tg_error *err)
{
    tg_progress progress = {0};
    tg_generator_info info;
    if (g->opt->echo) {
        tg_output_text(g->out, g->prompt.bytes, g->prompt.n);
        tg_output_flush(g->out);
    }
    g->begun = tg_seconds();
    int status = add(g, err);
    while (!status && !stopped(g)) {
        tg_generator_get_info(g->generator, &info);
        if (info.n_active == 0)
            break;
        if (info.n_reading > 0)
            tg_progress_show(&progress, "prompt tokens", (int64_t)info.n_prompt_done, (int64_t)info.n_prompt);
        else
            tg_progress_clear(&progress);
        status = (int)tg_generator_step(g->generator, err);
    }
    tg_progress_clear(&progress);
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
    if (g->finish == TG_FINISH_CONTEXT)
        tg_say_note("context full: %d positions (-c sets it)", g->n_ctx);
    tg_engine_tell_clamped(g->session);
    if (g->opt->stats)
        tell_stats(g);
}

int tg_cmd_generate(const tg_options *opt, tg_error *err)
{
    static tg_output out;
    tg_options mine = *opt;
    generation g = {.opt = &mine, .out = &out};
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
    tg_generator_free(g.generator);
    tg_session_free(g.session);
    tg_prompt_free(&g.prompt);
    tg_free(g.encoded);
    tg_model_free(g.model);
    return status;
}
