/* cmd_logits.c - rows of logits, written one by one as they are made. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/engine.h"
#include "cli/prompt.h"
#include "cli/signals.h"

typedef struct writer {
    const tg_options *opt;
    const tg_model *model;
    const int32_t *ids;
    int n_tokens, n_rows, n_vocab;
    int n_written;
    tg_top *best; /* [opt->top], for text */
    tg_output *out;
} writer;

/* ---- formats ----------------------------------------------------------------------------------
 */

/* Version 1.0 of NumPy's format: magic, version, a dictionary padded so that the data is aligned.
 */
static void put_npy_header(writer *w)
{
    enum { HEADER = 128 };
    char order = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '<' : '>';
    char head[HEADER + 1];
    memcpy(head, "\x93NUMPY\x01\x00", 8);
    head[8] = HEADER - 10;
    head[9] = 0;
    int n = 10 + snprintf(head + 10, HEADER - 10,
                          "{'descr': '%cf4', 'fortran_order': False, 'shape': (%d, %d), }", order,
                          w->n_rows, w->n_vocab);
    memset(head + n, ' ', (size_t)(HEADER - n));
    head[HEADER - 1] = '\n';
    tg_output_write(w->out, head, HEADER);
}

static void put_json_row(writer *w, int position, const float *logits)
{
    tg_output_print(w->out, "%s\n{\"position\": %d, \"id\": %d, \"logits\": [",
                    w->n_written ? "," : "", position, w->ids[position]);
    for (int i = 0; i < w->n_vocab; i++)
        tg_output_print(w->out, i ? ", %.9g" : "%.9g", (double)logits[i]);
    tg_output_print(w->out, "]}");
}

static void put_token(writer *w, int32_t id)
{
    size_t n;
    const char *bytes = tg_token_bytes(w->model, id, &n);
    tg_output_write(w->out, "\"", 1);
    tg_output_quoted(w->out, bytes, n);
    tg_output_write(w->out, "\"\n", 2);
}

static void put_text_row(writer *w, int position, const float *logits)
{
    tg_output_print(w->out, "%sposition %d, after ", w->n_written ? "\n" : "", position);
    put_token(w, w->ids[position]);
    float lse;
    int n = tg_top_k(logits, w->n_vocab, w->opt->top, w->best, &lse);
    for (int i = 0; i < n; i++) {
        double logit = (double)w->best[i].logit;
        tg_output_print(w->out, "%7d  %12.6f  %12.6f  ", w->best[i].id, logit, logit - (double)lse);
        put_token(w, w->best[i].id);
    }
}

static bool put_row(void *arg, int row, const float *logits, int n_vocab)
{
    writer *w = arg;
    (void)n_vocab;
    if (w->opt->format == TG_FORMAT_NPY)
        tg_output_write(w->out, logits, (size_t)w->n_vocab * sizeof *logits);
    else if (w->opt->format == TG_FORMAT_JSON)
        put_json_row(w, row, logits);
    else
        put_text_row(w, row, logits);
    w->n_written++;
    return !w->out->error && !tg_signals_caught();
}

/* ---- the command ------------------------------------------------------------------------------
 */

static int evaluate(writer *w, tg_session *session, tg_error *err)
{
    tg_batch batch = {.n = w->n_tokens, .id = w->ids};
    uint8_t *want = NULL;
    if (w->opt->format == TG_FORMAT_NPY && w->out->is_terminal)
        return tg_cli_fail(err, TG_E_USAGE, "npy is no text for a terminal: use -o FILE or a pipe");
    if (w->opt->all) {
        want = malloc((size_t)w->n_tokens);
        if (!want)
            return tg_cli_fail_memory(err, (size_t)w->n_tokens, "the rows wanted");
        memset(want, 1, (size_t)w->n_tokens);
        batch.want = want;
    }
    if (w->opt->format == TG_FORMAT_NPY)
        put_npy_header(w);
    if (w->opt->format == TG_FORMAT_JSON)
        tg_output_print(w->out, "{\"n_vocab\": %d, \"rows\": [", w->n_vocab);
    int status = (int)tg_eval(session, &batch, put_row, w, err);
    if (w->opt->format == TG_FORMAT_JSON)
        tg_output_print(w->out, "\n]}\n");
    free(want);
    return status == TG_E_STOPPED && (w->out->error || tg_signals_caught()) ? TG_OK : status;
}

/* To the output, which becomes a file when the model is still what it was. */
static int write_rows(writer *w, tg_session *session, tg_error *err)
{
    int status = tg_output_open(w->out, w->opt->output, err);
    if (status)
        return status;
    status = evaluate(w, session, err);
    if (!status)
        status = (int)tg_model_check_unchanged(w->model, err);
    return tg_output_close(w->out, status, err);
}

/* The tokens are known. */
static int write_logits(const tg_options *opt, const tg_model *model, const int32_t *ids, size_t n,
                        tg_error *err)
{
    static tg_output out;
    tg_model_info info;
    tg_session *session = NULL;
    int n_ctx;
    tg_model_get_info(model, &info);
    writer w = {.opt = opt,
                .model = model,
                .ids = ids,
                .n_tokens = (int)n,
                .n_rows = opt->all ? (int)n : 1,
                .n_vocab = info.n_vocab,
                .out = &out};
    if (n == 0)
        return tg_cli_fail(err, TG_E_USAGE, "no tokens to evaluate");
    int status = tg_engine_context(&n_ctx, model, opt, n, 0, err);
    if (!status && !(w.best = malloc((size_t)opt->top * sizeof *w.best)))
        status = tg_cli_fail_memory(err, (size_t)opt->top * sizeof *w.best, "the likeliest tokens");
    if (!status)
        status = tg_engine_session(&session, model, opt, n_ctx, err);
    tg_signals_watch(session);
    if (!status)
        status = write_rows(&w, session, err);
    tg_signals_watch(NULL);
    if (!status)
        tg_engine_tell_clamped(session);
    tg_session_free(session);
    free(w.best);
    return status;
}

static int of_ids(const tg_options *opt, const tg_model *model, tg_error *err)
{
    tg_model_info info;
    int32_t *ids;
    size_t n;
    tg_model_get_info(model, &info);
    int status = tg_prompt_ids(&ids, &n, opt->ids_text, info.n_vocab, err);
    if (status)
        return status;
    status = write_logits(opt, model, ids, n, err);
    free(ids);
    return status;
}

static int of_text(const tg_options *opt, const tg_model *model, tg_error *err)
{
    int32_t *ids;
    size_t n;
    int status = tg_engine_encode(&ids, &n, NULL, model, opt, tg_engine_max_text(model, opt), err);
    if (status)
        return status;
    status = write_logits(opt, model, ids, n, err);
    tg_free(ids);
    return status;
}

int tg_cmd_logits(const tg_options *opt, tg_error *err)
{
    tg_model *model = NULL;
    int status = TG_OK;
    if (opt->ids_text && (opt->prompt || opt->file))
        return tg_cli_fail(err, TG_E_USAGE, "--ids takes the place of a text: give one of them");
    if (!opt->ids_text)
        status = tg_prompt_check(opt, err);
    if (!status)
        status = tg_engine_load(&model, NULL, opt, 0, err);
    if (!status)
        status = tg_engine_check_output(opt->output, model, opt, err);
    if (!status)
        status = opt->ids_text ? of_ids(opt, model, err) : of_text(opt, model, err);
    tg_model_free(model);
    return status;
}
