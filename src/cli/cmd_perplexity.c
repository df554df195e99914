/* cmd_perplexity.c - how well a model predicts a text, token by token, and how far its predictions are from those
 * of another model.
 *
 * The text is walked in windows of n_ctx positions. The first predicts as much as it holds; each later one ends
 * `stride` tokens further and predicts these alone, so that each token is predicted once, from at least
 * n_ctx - stride tokens where so many are before it. Models that begin a text with a token of their own get it at
 * the head of each window. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/engine.h"
#include "cli/prompt.h"
#include "cli/saved_logits.h"
#include "cli/signals.h"
#include "cli/text.h"

typedef struct walk {
    const tg_options *opt;
    const tg_model *model;
    tg_session *session;
    tg_output *out, *saving; /* saving NULL: not */
    tg_saved_logits *base;   /* NULL: none */
    tg_error *err;           /* why a row could not be taken */
    const int32_t *ids;      /* [n], the text */
    size_t n, n_bytes;
    int32_t bos; /* or -1 */
    int n_ctx, stride, n_vocab;

    int32_t *window; /* [n_ctx + 1], and the rows wanted */
    uint8_t *want;
    size_t first;    /* token that is predicted first of all: 0 or 1 */
    size_t from;     /* token that row 0 of the window would predict, were it wanted */
    size_t n_scored;
    double nll, nll2; /* sums of -log p, and of its squares */
    double *kl;       /* [n - first], for each token */
    size_t n_same;    /* likeliest tokens in common */
    tg_progress progress;
} walk;

/* ---- what a row says --------------------------------------------------------------------------
 */

/* Sum of p (log p - log q) over the vocabulary, p the base. */
static double divergence(const float *base, double base_lse, const float *logits, double lse, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        double log_p = (double)base[i] - base_lse, p = exp(log_p);
        sum += p > 0 ? p * (log_p - ((double)logits[i] - lse)) : 0;
    }
    return sum;
}

static bool compare(walk *w, const float *logits, int32_t best, double lse)
{
    tg_top top;
    float base_lse;
    const float *base = tg_saved_logits_read(w->base, w->err);
    if (!base)
        return false;
    int n = tg_top_k(base, w->n_vocab, 1, &top, &base_lse);
    if (n < 1 || !isfinite(base_lse)) {
        tg_text_quoted q;
        tg_cli_fail(w->err, TG_E_NUMERIC, "%s: row %zu is not finite", tg_text_quote(&q, w->opt->kl), w->n_scored);
        return false;
    }
    w->kl[w->n_scored] = divergence(base, (double)base_lse, logits, lse, w->n_vocab);
    w->n_same += top.id == best;
    return true;
}

static bool take(void *arg, int row, const float *logits, int n_vocab)
{
    walk *w = arg;
    tg_top best;
    float lse;
    tg_top_k(logits, n_vocab, 1, &best, &lse);
    double nll = (double)lse - (double)logits[w->ids[w->from + (size_t)row]];
    if (w->saving)
        tg_output_write(w->saving, logits, (size_t)n_vocab * sizeof *logits);
    if (w->base && !compare(w, logits, best.id, (double)lse))
        return false;
    w->nll += nll;
    w->nll2 += nll * nll;
    w->n_scored++;
    tg_progress_show(&w->progress, "tokens", (int64_t)w->n_scored, (int64_t)(w->n - w->first));
    return !tg_signals_caught() && !(w->saving && w->saving->error);
}

/* ---- windows ----------------------------------------------------------------------------------
 */

/* Predicts tokens [at, end) of the text. */
static int run_window(walk *w, size_t at, size_t end, tg_error *err)
{
    size_t head = w->bos >= 0, room = (size_t)w->n_ctx - head;
    size_t begin = end - 1 > room ? end - 1 - room : 0, n = end - 1 - begin;
    if (head)
        w->window[0] = w->bos;
    memcpy(w->window + head, w->ids + begin, n * sizeof *w->ids);
    w->from = begin + 1 - head;
    for (size_t i = 0; i < n + head; i++)
        w->want[i] = w->from + i >= at;
    int status = (int)tg_seq_truncate(w->session, 0, 0, err);
    tg_batch batch = {.n = (int)(n + head), .id = w->window, .want = w->want};
    *w->err = (tg_error){0};
    if (!status)
        status = (int)tg_eval(w->session, &batch, take, w, err);
    if (status == TG_E_STOPPED && w->err->status) {
        *err = *w->err;
        status = (int)err->status;
    }
    return status;
}

static int run_windows(walk *w, tg_error *err)
{
    int status = TG_OK;
    size_t step = (size_t)w->n_ctx; /* of the first window */
    for (size_t at = w->first; at < w->n && !status; step = (size_t)w->stride) {
        size_t end = w->n - at > step ? at + step : w->n;
        status = run_window(w, at, end, err);
        at = end;
    }
    tg_progress_clear(&w->progress);
    return status;
}

/* ---- results ----------------------------------------------------------------------------------
 */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Half the width of what the mean of n values may be off by: its standard error. One value tells none. */
static double standard_error(double sum, double squares, size_t n)
{
    double mean = sum / (double)n, variance = squares / (double)n - mean * mean;
    return n > 1 ? sqrt(fmax(variance, 0) / (double)(n - 1)) : NAN;
}

typedef struct result {
    const char *name, *unit;
    double value; /* not finite where there is none: null, or - */
    int digits;
} result;

/* The value below which a share of them lies: the nearest rank. */
static double quantile(const double *sorted, size_t n, double share)
{
    size_t rank = (size_t)ceil(share * (double)n);
    return sorted[rank > 0 ? rank - 1 : 0];
}

static int add_kl(walk *w, result *r)
{
    double sum = 0, squares = 0;
    size_t n = w->n_scored;
    for (size_t i = 0; i < n; i++) {
        sum += w->kl[i];
        squares += w->kl[i] * w->kl[i];
    }
    qsort(w->kl, n, sizeof *w->kl, ascending);
    const result kl[] = {
        {"kl", "nats", sum / (double)n, 6},
        {"kl_error", "standard error of kl", standard_error(sum, squares, n), 6},
        {"kl_median", "", quantile(w->kl, n, 0.5), 6},
        {"kl_99", "99 of 100 are below", quantile(w->kl, n, 0.99), 6},
        {"kl_max", "", w->kl[n - 1], 6},
        {"same_top", "share of tokens with the same likeliest next one", (double)w->n_same / (double)n, 4},
    };
    memcpy(r, kl, sizeof kl);
    return (int)(sizeof kl / sizeof *kl);
}

static void put_results(walk *w)
{
    double n = (double)w->n_scored, mean = w->nll / n;
    result r[16] = {
        {"tokens", "predicted", n, 0},
        {"bytes", "of text that they stand for", (double)w->n_bytes, 0},
        {"context", "", w->n_ctx, 0},
        {"stride", "", w->stride, 0},
        {"nll", "nats in all", w->nll, 4},
        {"nll_mean", "nats a token", mean, 6},
        {"nll_error", "standard error of nll_mean", standard_error(w->nll, w->nll2, w->n_scored), 6},
        {"perplexity", "", exp(mean), 4},
        {"bits_per_byte", "", w->nll / M_LN2 / (double)w->n_bytes, 6},
    };
    int count = 9;
    if (w->base)
        count += add_kl(w, r + count);
    json_t *root = json_object();
    for (int i = 0; i < count; i++) {
        const bool known = isfinite(r[i].value);
        char text[64] = "-";
        json_t *value = !known        ? json_null()
                        : r[i].digits ? json_real(r[i].value)
                                      : json_integer((json_int_t)r[i].value);
        if (known)
            snprintf(text, sizeof text, "%.*f", r[i].digits, r[i].value);
        json_object_set_new(root, r[i].name, value);
        if (!w->opt->json)
            tg_output_print(w->out, "%-14s %s%s%s\n", r[i].name, text, *r[i].unit ? "  " : "", r[i].unit);
    }
    if (w->opt->json) {
        tg_output_json(w->out, root, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
        tg_output_write(w->out, "\n", 1);
    } else {
        json_decref(root);
    }
}

/* ---- the command ------------------------------------------------------------------------------
 */

/* What the model alone tells, before there is a text. */
static int check_rows(const walk *w, tg_error *err)
{
    const tg_saved_logits *b = w->base;
    if (!b || (b->n_vocab == (size_t)w->n_vocab && b->n_rows == b->n_ids - w->first))
        return TG_OK;
    if (b->n_vocab == (size_t)w->n_vocab && b->n_rows == b->n_ids - !w->first)
        return tg_cli_fail(err, TG_E_USAGE, "--kl: the saved logits are of windows with%s a begin-of-text token (--no-bos)",
                           w->first ? "" : "out");
    return tg_cli_fail(err, TG_E_USAGE, "--kl: the saved logits do not fit the model (found %zu rows of %zu, wanted %zu of %d)",
                       b->n_rows, b->n_vocab, b->n_ids - w->first, w->n_vocab);
}

static int check_ids(const walk *w, tg_error *err)
{
    const tg_saved_logits *b = w->base;
    size_t n = 0;
    while (b && n < w->n && n < b->n_ids && w->ids[n] == b->ids[n])
        n++;
    if (!b || (n == w->n && n == b->n_ids))
        return TG_OK;
    return tg_cli_fail(err, TG_E_USAGE,
                       "--kl: the saved logits are of another text (found %zu tokens, wanted %zu; the first %zu are the same)",
                       b->n_ids, w->n, n);
}

/* Where a token sees less before it, another divergence would be blamed on the model. */
static void warn_of_windows(const walk *w)
{
    const tg_saved_logits *b = w->base;
    const size_t n = w->n - w->first;
    if (!b || !b->stride || (n <= (size_t)b->n_ctx && n <= (size_t)w->n_ctx))
        return; /* or all is one window */
    if (b->n_ctx != w->n_ctx || b->stride != w->stride)
        tg_say_warning("--kl: the saved logits are of windows of %d positions moved by %d, these of %d by %d: "
                       "-c and --stride make them the same",
                       b->n_ctx, b->stride, w->n_ctx, w->stride);
}

static int set_up(walk *w, tg_error *err)
{
    enum { CONTEXT = 2048 }; /* by default, where the model was trained for that much */
    tg_model_info info;
    tg_model_get_info(w->model, &info);
    w->n_ctx = info.n_ctx_train < CONTEXT ? info.n_ctx_train : CONTEXT;
    int status = w->opt->n_ctx ? tg_engine_context(&w->n_ctx, w->model, w->opt, 0, 0, err) : TG_OK;
    if (status)
        return status;
    w->stride = w->opt->stride ? w->opt->stride : (w->n_ctx + 1) / 2;
    if (w->stride > w->n_ctx)
        return tg_cli_fail(err, TG_E_USAGE, "--stride: a window of %d positions cannot move by %d", w->n_ctx,
                           w->stride);
    if (w->n <= w->first) {
        const tg_options *o = w->opt;
        tg_text_quoted q;
        const char *source = o->operand || o->prompt                ? "the argument"
                             : o->file && strcmp(o->file, "-") != 0 ? tg_text_quote_name(&q, o->file)
                                                                    : "stdin";
        return tg_cli_fail(err, TG_E_USAGE, "%s: found a text of %zu bytes, in which there is no token to predict",
                           source, w->n_bytes);
    }
    warn_of_windows(w);
    size_t skipped = 0;
    if (w->first)
        tg_token_bytes(w->model, w->ids[0], &skipped);
    w->n_bytes -= skipped < w->n_bytes ? skipped : 0;
    w->window = malloc((size_t)w->n_ctx * sizeof *w->window);
    w->want = malloc((size_t)w->n_ctx);
    w->kl = malloc((w->n - w->first) * sizeof *w->kl);
    if (!w->window || !w->want || !w->kl)
        return tg_cli_fail_memory(err, w->n * sizeof *w->kl, "the tokens of a window");
    return tg_engine_session(&w->session, w->model, w->opt, w->n_ctx, err);
}

static int evaluate(walk *w, tg_error *err)
{
    int status = run_windows(w, err);
    return status ? status : (int)tg_model_check_unchanged(w->model, err);
}

static int run_saving(walk *w, tg_error *err)
{
    static tg_output saving;
    if (!w->opt->save_logits)
        return evaluate(w, err);
    int status = tg_output_open(&saving, w->opt->save_logits, err);
    if (status)
        return status;
    w->saving = &saving;
    tg_saved_logits_begin(&saving, w->ids, w->n, w->n - w->first, (size_t)w->n_vocab, w->n_ctx, w->stride);
    status = evaluate(w, err);
    if (status == TG_E_STOPPED && saving.error)
        status = TG_OK; /* the output tells why */
    status = tg_output_close(&saving, status ? status : tg_signals_caught(), err);
    return status;
}

static int of_text(walk *w, tg_error *err)
{
    static tg_output out;
    w->out = &out;
    int status = set_up(w, err);
    if (!status) {
        tg_signals_watch(w->session);
        status = run_saving(w, err);
        tg_signals_watch(NULL);
    }
    if (!status)
        status = tg_output_open(&out, NULL, err);
    if (!status) {
        put_results(w);
        status = tg_output_close(&out, TG_OK, err);
        tg_engine_tell_clamped(w->session);
    }
    tg_session_free(w->session);
    free(w->window);
    free(w->want);
    free(w->kl);
    return status;
}

static int with_model(walk *w, tg_error *err)
{
    enum { TEXT_MAX = 1 << 30 };
    tg_options plain = *w->opt;
    tg_model_info info;
    tg_tokenizer_info tok;
    tg_prompt text;
    int32_t *ids = NULL;
    tg_model_get_info(w->model, &info);
    tg_model_get_tokenizer(w->model, &tok);
    w->n_vocab = info.n_vocab;
    w->bos = tok.add_bos && !w->opt->no_bos ? tok.bos : -1;
    w->first = w->bos < 0;
    plain.no_bos = true;
    int status = check_rows(w, err);
    if (!status)
        status = tg_engine_encode(&ids, &w->n, &text, w->model, &plain, TEXT_MAX, err);
    if (status)
        return status;
    w->ids = ids;
    w->n_bytes = text.n;
    tg_prompt_free(&text);
    status = check_ids(w, err);
    status = status ? status : of_text(w, err);
    tg_free(ids);
    return status;
}

int tg_cmd_perplexity(const tg_options *opt, tg_error *err)
{
    tg_model *model = NULL;
    tg_saved_logits base = {0};
    tg_error row_error;
    walk w = {.opt = opt, .err = &row_error, .base = opt->kl ? &base : NULL};
    int status = tg_prompt_check(opt, err);
    if (!status && opt->kl)
        status = tg_saved_logits_open(&base, opt->kl, err);
    if (!status)
        status = tg_engine_load(&model, NULL, opt, 0, err);
    if (!status)
        status = tg_engine_check_output(opt->save_logits, model, opt, err);
    w.model = model;
    if (!status)
        status = with_model(&w, err);
    tg_saved_logits_close(&base);
    tg_model_free(model);
    return status;
}
