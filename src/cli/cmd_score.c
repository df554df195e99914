/* cmd_score.c - how likely given continuations of given prompts are: what evaluation harnesses ask for.
 *
 * A pair is encoded as one text; its continuation are the tokens in which that differs from the prompt alone. Lines
 * that share a prompt share its evaluation, and several continuations are evaluated together. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/engine.h"
#include "cli/given_json.h"
#include "cli/lines.h"
#include "cli/signals.h"

enum { TOGETHER = 16 }; /* continuations in one evaluation */

/* A line: prompt and continuation as tokens, ids[0] what a text begins with if the model wants that. */
typedef struct pair {
    int32_t *ids;     /* [n], the continuation from `split` on */
    size_t n, split;
    double *logprobs; /* [n - split] */
    bool greedy;      /* each token is the likeliest after those before it */
} pair;

/* A row of the batch, which predicts a token of an item. */
typedef struct target {
    pair *of;
    size_t at; /* index in of->ids */
} target;

typedef struct scoring {
    const tg_options *opt;
    const tg_model *model;
    tg_session *session;
    tg_lines lines;
    tg_output out;
    int32_t begin; /* put before every text; -1: nothing */
    int32_t start; /* and before one without a prompt, where there is no `begin` */
    int n_ctx;     /* tokens of a prompt and a continuation */
    int64_t line;

    int32_t *prefix; /* [n_prefix] evaluated in sequence 0, room for n_ctx */
    size_t n_prefix;
    pair item[TOGETHER];
    int n_items;
    int32_t *id, *seq; /* the batch of their rows, [room] */
    uint8_t *want, *none; /* [room] all and no rows wanted */
    target *target;
    int n_rows, room;
    tg_progress progress;
} scoring;

/* ---- lines ------------------------------------------------------------------------------------
 */

typedef struct text {
    const char *bytes;
    size_t n;
} text;

static int too_long(const scoring *s, size_t max_bytes, tg_error *err)
{
    return tg_cli_fail(err, TG_E_USAGE, "%s, line %" PRId64 ": too long (allowed %zu bytes, since no more can fit)",
                       s->lines.name.text, s->line, max_bytes);
}

/* What a line says; *root owns the bytes of JSON. */
static int parse_line(const scoring *s, const char *line, size_t n, text *prompt, text *continuation, json_t **root,
                      tg_error *err)
{
    *prompt = (text){s->opt->prompt ? s->opt->prompt : "", s->opt->prompt ? strlen(s->opt->prompt) : 0};
    *continuation = (text){line, n};
    *root = NULL;
    if (n > s->lines.max_line)
        return too_long(s, s->lines.max_line, err);
    if (!s->opt->jsonl)
        return TG_OK;
    json_error_t why;
    *root = tg_given_json(line, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    if (!*root && json_error_code(&why) == json_error_out_of_memory)
        return tg_cli_fail_memory(err, n, "a line as JSON");
    if (!*root)
        return tg_cli_fail(err, TG_E_USAGE, "%s, line %" PRId64 ": no JSON object (%s)", s->lines.name.text, s->line,
                           why.text);
    const char *unknown = NULL, *key;
    json_t *value;
    continuation->bytes = NULL;
    json_object_foreach(*root, key, value)
    {
        text *t = !strcmp(key, "prompt") ? prompt : !strcmp(key, "continuation") ? continuation : NULL;
        if (t && json_is_string(value))
            *t = (text){json_string_value(value), json_string_length(value)};
        else
            unknown = key;
    }
    if (!unknown && continuation->bytes)
        return TG_OK;
    tg_text_quoted q;
    tg_text_quote(&q, unknown ? unknown : "continuation");
    json_decref(*root);
    return tg_cli_fail(err, TG_E_USAGE, "%s, line %" PRId64 ": %s (allowed: the strings prompt and continuation)",
                       s->lines.name.text, s->line,
                       unknown ? q.text : "no continuation");
}

static int encode(const scoring *s, text t, int32_t **ids, size_t *n, tg_error *err)
{
    return (int)tg_tokenize(s->model, t.bytes, t.n, s->opt->special ? TG_TOK_SPECIAL : 0, ids, n, NULL, err);
}

static size_t common(const int32_t *a, size_t n_a, const int32_t *b, size_t n_b)
{
    size_t n = 0;
    while (n < n_a && n < n_b && a[n] == b[n])
        n++;
    return n;
}

/* The tokens of both, with `begin` before them. */
static int encode_pair(const scoring *s, text prompt, text continuation, pair *item, tg_error *err)
{
    int32_t *alone = NULL, *both = NULL;
    size_t n_alone = 0, n_both = 0, most = tg_engine_max_text(s->model, s->opt);
    if (prompt.n + continuation.n > most)
        return too_long(s, most, err);
    char *joined = malloc(prompt.n + continuation.n + 1);
    if (!joined)
        return tg_cli_fail_memory(err, prompt.n + continuation.n + 1, "a text");
    memcpy(joined, prompt.bytes, prompt.n);
    memcpy(joined + prompt.n, continuation.bytes, continuation.n);
    int status = encode(s, prompt, &alone, &n_alone, err);
    if (!status)
        status = encode(s, (text){joined, prompt.n + continuation.n}, &both, &n_both, err);
    *item = (pair){.greedy = true};
    if (!status) {
        size_t split = common(alone, n_alone, both, n_both);
        int32_t first = s->begin < 0 && split == 0 ? s->start : s->begin;
        size_t head = first >= 0;
        item->n = n_both + head;
        item->split = split + head;
        item->ids = malloc((item->n + 1) * sizeof *item->ids);
        item->logprobs = malloc((item->n + 1) * sizeof *item->logprobs);
        if (!item->ids || !item->logprobs)
            status = tg_cli_fail_memory(err, item->n * sizeof *item->logprobs, "the tokens of a text");
        else if (n_both > 0)
            memcpy(item->ids + head, both, n_both * sizeof *both);
        if (!status && head)
            item->ids[0] = first;
    }
    free(joined);
    tg_free(alone);
    tg_free(both);
    return status;
}

static int check_item(const scoring *s, const pair *item, tg_error *err)
{
    if (item->n > (size_t)s->n_ctx)
        return tg_cli_fail(err, TG_E_USAGE, "%s, line %" PRId64 ": %zu tokens (allowed: the context of %d; -c sets it)",
                           s->lines.name.text, s->line, item->n, s->n_ctx);
    if (item->split == 0 && item->n > 0)
        return tg_cli_fail(err, TG_E_USAGE,
                           "%s, line %" PRId64 ": without a prompt the first token has nothing before it, and the "
                           "model has no token to begin a text with",
                           s->lines.name.text, s->line);
    return TG_OK;
}

/* ---- evaluation -------------------------------------------------------------------------------
 */

static bool take(void *arg, int row, const float *logits, int n_vocab)
{
    scoring *s = arg;
    const target *t = &s->target[row];
    int32_t id = t->of->ids[t->at];
    tg_top best;
    float lse;
    tg_top_k(logits, n_vocab, 1, &best, &lse);
    t->of->logprobs[t->at - t->of->split] = (double)logits[id] - (double)lse;
    t->of->greedy &= best.id == id;
    return !tg_signals_caught();
}

static void put_item(scoring *s, const pair *item)
{
    double sum = 0;
    size_t n = item->n - item->split;
    for (size_t i = 0; i < n; i++)
        sum += item->logprobs[i];
    if (!s->opt->jsonl) {
        tg_output_print(&s->out, "%.6f\t%zu\t%d\n", sum, n, item->greedy);
        return;
    }
    json_t *root = json_object(), *tokens = json_array(), *logprobs = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(tokens, json_integer(item->ids[item->split + i]));
        json_array_append_new(logprobs, json_real(item->logprobs[i]));
    }
    json_object_set_new(root, "logprob", json_real(sum));
    json_object_set_new(root, "greedy", json_boolean(item->greedy));
    json_object_set_new(root, "tokens", tokens);
    json_object_set_new(root, "logprobs", logprobs);
    tg_output_json(&s->out, root, JSON_REAL_PRECISION(9));
    tg_output_write(&s->out, "\n", 1);
}

static void free_item(pair *item)
{
    free(item->ids);
    free(item->logprobs);
}

/* Evaluates what is there, and writes it. */
static int flush(scoring *s, tg_error *err)
{
    int status = TG_OK;
    tg_batch batch = {.n = s->n_rows, .id = s->id, .seq = s->seq, .want = s->want};
    if (s->n_rows > 0)
        status = (int)tg_eval(s->session, &batch, take, s, err);
    for (int i = 0; i < s->n_rows; i++)
        tg_seq_free(s->session, s->seq[i]); /* of one that is free already: nothing */
    for (int i = 0; i < s->n_items && !status; i++)
        put_item(s, &s->item[i]);
    tg_output_flush(&s->out);
    for (int i = 0; i < s->n_items; i++)
        free_item(&s->item[i]);
    s->n_items = s->n_rows = 0;
    tg_progress_show(&s->progress, "lines", s->line, 0);
    return status;
}

/* Sequence 0 becomes ids [n], of which it keeps what is the same. */
static int evaluate_prefix(scoring *s, const int32_t *ids, size_t n, tg_error *err)
{
    size_t kept = common(s->prefix, s->n_prefix, ids, n);
    int status = (int)tg_seq_truncate(s->session, 0, (int)kept, err);
    s->n_prefix = kept;
    if (status || kept == n)
        return status;
    tg_batch batch = {.n = (int)(n - kept), .id = ids + kept, .want = s->none};
    status = (int)tg_eval(s->session, &batch, take, s, err);
    if (status)
        return status;
    memcpy(s->prefix + kept, ids + kept, (n - kept) * sizeof *ids);
    s->n_prefix = n;
    return TG_OK;
}

/* Takes the item over. Its rows begin with the last token before the continuation. */
static int add(scoring *s, pair *item, tg_error *err)
{
    int seq, status = TG_OK, rows = (int)(item->n - item->split);
    size_t before = rows > 0 ? item->split - 1 : 0;
    /* Another prompt takes the place of this one in the cache, where both would not fit. */
    bool turns = rows > 0 && common(s->prefix, s->n_prefix, item->ids, before) < s->n_prefix;
    if (s->n_items == TOGETHER || s->n_rows + rows > s->opt->n_batch || turns)
        status = flush(s, err);
    s->item[s->n_items] = *item;
    item = &s->item[s->n_items++];
    if (status || rows == 0)
        return status;
    status = evaluate_prefix(s, item->ids, before, err);
    if (!status)
        status = (int)tg_seq_fork(s->session, 0, &seq, err);
    for (int i = 0; i < rows && !status; i++, s->n_rows++) {
        s->id[s->n_rows] = item->ids[before + (size_t)i];
        s->seq[s->n_rows] = seq;
        s->target[s->n_rows] = (target){item, item->split + (size_t)i};
    }
    return status;
}

static int score_line(scoring *s, const char *line, size_t n, tg_error *err)
{
    text prompt, continuation;
    json_t *root;
    pair item = {0};
    s->line++;
    int status = parse_line(s, line, n, &prompt, &continuation, &root, err);
    if (status)
        return status;
    status = encode_pair(s, prompt, continuation, &item, err);
    json_decref(root);
    if (!status)
        status = check_item(s, &item, err);
    if (status) {
        free_item(&item);
        return status;
    }
    return add(s, &item, err);
}

static int score_lines(scoring *s, tg_error *err)
{
    char *line;
    size_t n;
    int status = TG_OK;
    while (!status && !tg_signals_caught() && !s->out.error) {
        /* Whoever waits for an answer before the next line gets it. */
        if (s->n_items > 0 && !tg_lines_ready(&s->lines))
            status = flush(s, err);
        if (!status)
            status = tg_lines_next(&s->lines, &line, &n, err);
        if (status || !line)
            break;
        status = score_line(s, line, n, err);
    }
    int last = flush(s, status ? NULL : err); /* what came before a line that cannot be scored is */
    tg_progress_clear(&s->progress);
    return status ? status : last;
}

/* ---- the command ------------------------------------------------------------------------------
 */

static int make_session(scoring *s, tg_error *err)
{
    tg_model_info info;
    tg_tokenizer_info tok;
    tg_model_get_info(s->model, &info);
    tg_model_get_tokenizer(s->model, &tok);
    s->begin = tok.add_bos && !s->opt->no_bos ? tok.bos : -1;
    s->start = tok.bos >= 0 ? tok.bos : tok.eos;
    s->n_ctx = info.n_ctx_train;
    int status = s->opt->n_ctx ? tg_engine_context(&s->n_ctx, s->model, s->opt, 0, 0, err) : TG_OK;
    if (status)
        return status;
    /* A prompt, and what is evaluated together behind it. */
    s->room = s->n_ctx > s->opt->n_batch ? s->n_ctx : s->opt->n_batch;
    size_t room = (size_t)s->room;
    s->prefix = malloc((size_t)s->n_ctx * sizeof *s->prefix);
    s->id = malloc(room * sizeof *s->id);
    s->seq = malloc(room * sizeof *s->seq);
    s->target = malloc(room * sizeof *s->target);
    s->none = calloc(room, 1);
    s->want = malloc(room);
    if (!s->prefix || !s->id || !s->seq || !s->target || !s->none || !s->want)
        return tg_cli_fail_memory(err, room * sizeof *s->target, "the tokens of a batch");
    memset(s->want, 1, room);
    return tg_engine_sessions(&s->session, s->model, s->opt, s->n_ctx, TOGETHER + 1, s->n_ctx + s->room, err);
}

static void free_scoring(scoring *s)
{
    tg_lines_close(&s->lines);
    tg_session_free(s->session);
    free(s->prefix);
    free(s->id);
    free(s->seq);
    free(s->target);
    free(s->none);
    free(s->want);
}

static int with_model(scoring *s, tg_error *err)
{
    int status = make_session(s, err);
    if (!status)
        status = tg_lines_open(&s->lines, s->opt->file, tg_engine_max_line(s->model, s->opt, s->opt->jsonl), err);
    if (!status)
        status = tg_output_open(&s->out, NULL, err);
    if (!status) {
        tg_signals_watch(s->session);
        status = score_lines(s, err);
        if (!status)
            status = (int)tg_model_check_unchanged(s->model, err);
        status = tg_output_close(&s->out, status, err);
        tg_signals_watch(NULL);
        tg_engine_tell_clamped(s->session);
    }
    free_scoring(s);
    return status;
}

int tg_cmd_score(const tg_options *opt, tg_error *err)
{
    static scoring s;
    tg_model *model = NULL;
    s = (scoring){.opt = opt};
    int status = tg_engine_load(&model, NULL, opt, 0, err);
    s.model = model;
    if (!status)
        status = with_model(&s, err);
    tg_model_free(model);
    return status;
}
