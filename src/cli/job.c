/* job.c - collects the pieces of each text, and shows them as JSON or lines. */
#include "cli/job.h"

#include <stdlib.h>
#include <string.h>

#include "cli/engine.h"
#include "cli/signals.h"

/* ---- asking ----------------------------------------------------------------------------------------- */

int tg_job_create(tg_job **job, const tg_model *model, const tg_options *opt, tg_error *err)
{
    *job = calloc(1, sizeof **job);
    if (!*job)
        return tg_cli_fail_memory(err, sizeof **job, "a prompt");
    (*job)->opt = *opt;
    (*job)->model = model;
    return TG_OK;
}

void tg_job_free(tg_job *job)
{
    if (!job)
        return;
    for (int i = 0; job->choice && i < job->opt.n_best; i++) {
        free(job->choice[i].text.bytes);
        json_decref(job->choice[i].scores);
    }
    free(job->choice);
    free(job->prompt);
    tg_free(job->ids);
    json_decref(job->line);
    free(job);
}

/* An empty prompt starts from a token that the model knows as a beginning; and the model's policy may end every
 * text, but this one is to be continued. */
static int continue_from(tg_job *job, tg_error *err)
{
    tg_tokenizer_info tok;
    tg_model_get_tokenizer(job->model, &tok);
    if (tok.add_eos && !job->opt.no_bos && job->n_ids > 0 && job->ids[job->n_ids - 1] == tok.eos)
        job->n_ids--;
    if (job->n_ids > 0)
        return TG_OK;
    int32_t begin = tok.bos >= 0 ? tok.bos : tok.eos;
    if (begin < 0)
        return tg_cli_fail(err, TG_E_USAGE, "the prompt is empty, and the model has no token to begin a text with");
    tg_free(job->ids);
    job->ids = malloc(sizeof *job->ids);
    if (!job->ids)
        return tg_cli_fail_memory(err, sizeof *job->ids, "the prompt");
    job->ids[job->n_ids++] = begin;
    return TG_OK;
}

/* The tokens of the text before, and then the prompt's, which begins nothing. */
static int put_behind(tg_job *job, tg_error *err)
{
    const tg_saved_text *before = &job->before;
    size_t n = before->n_ids + job->n_ids;
    int32_t *ids = malloc(n * sizeof *ids);
    if (!ids)
        return tg_cli_fail_memory(err, n * sizeof *ids, "the prompt");
    memcpy(ids, before->ids, before->n_ids * sizeof *ids);
    if (job->n_ids)
        memcpy(ids + before->n_ids, job->ids, job->n_ids * sizeof *ids);
    tg_free(job->ids);
    job->ids = ids;
    job->n_ids = n;
    return TG_OK;
}

int tg_job_prepare(tg_job *job, const char *bytes, size_t n, tg_error *err)
{
    const tg_options *opt = &job->opt;
    int status = tg_request_make(&job->request, &job->room, opt, err);
    if (!status)
        status = tg_engine_check_text(job->model, opt, n, err);
    if (status)
        return status;
    job->choice = calloc((size_t)opt->n_best, sizeof *job->choice);
    if (opt->echo)
        job->prompt = malloc(n + 1);
    if (!job->choice || (opt->echo && !job->prompt))
        return tg_cli_fail_memory(err, n + 1, "the prompt");
    if (opt->echo)
        memcpy(job->prompt, bytes, job->n_prompt = n);
    for (int i = 0; i < opt->n_best; i++) {
        job->choice[i].job = job;
        job->choice[i].scores = opt->n_logprobs >= 0 ? json_array() : NULL;
    }
    status = tg_engine_tokens(&job->ids, &job->n_ids, job->model, opt, bytes, n, err);
    if (status)
        return status;
    return job->before.n_ids ? put_behind(job, err) : continue_from(job, err);
}

bool tg_job_has_begun(const tg_job *job)
{
    return job->failure.status != TG_OK || job->n_begun == job->opt.n_best;
}

bool tg_job_is_done(const tg_job *job)
{
    return tg_job_has_begun(job) && job->n_done == job->n_begun;
}

/* ---- collecting ------------------------------------------------------------------------------------- */

static json_t *bytes_json(const char *bytes, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_integer((unsigned char)bytes[i]));
    return list;
}

/* JSON has no infinity: what cannot be is -9999, as OpenAI has it. */
static json_t *score_json(const tg_model *model, int32_t id, float logit, float lse)
{
    size_t n;
    const char *bytes = tg_token_bytes(model, id, &n);
    double logprob = (double)logit - (double)lse;
    return json_pack("{s:i, s:o, s:o, s:f}", "id", (int)id, "token", tg_output_json_text(bytes, n), "bytes",
                     bytes_json(bytes, n), "logprob", logprob > -9999 ? logprob : -9999);
}

/* Where the token begins is remembered beside it, until it is known where the text ends. */
static void add_score(tg_choice *c, const tg_piece *piece)
{
    const tg_model *model = c->job->model;
    json_t *likeliest = json_array();
    for (int i = 0; i < piece->n_top; i++)
        json_array_append_new(likeliest, score_json(model, piece->top[i].id, piece->top[i].logit, piece->lse));
    json_t *score = score_json(model, piece->id, piece->logit, piece->lse);
    json_object_set_new(score, "top_logprobs", likeliest);
    json_object_set_new(score, "at", json_integer((json_int_t)piece->at));
    json_array_append_new(c->scores, score);
}

/* Takes away what only the program had use for, and the tokens that a stop has cut off. */
static void finish_scores(tg_choice *c)
{
    for (size_t i = json_array_size(c->scores); i-- > 0;) {
        json_t *score = json_array_get(c->scores, i);
        if (c->finish == TG_FINISH_STOP && json_integer_value(json_object_get(score, "at")) >= (json_int_t)c->text.n)
            json_array_remove(c->scores, i);
        else
            json_object_del(score, "at");
    }
}

static bool append(tg_choice *c, const char *bytes, size_t n)
{
    if (tg_bytes_append(&c->text, bytes, n))
        return true;
    tg_cli_fail_memory(&c->job->failure, c->text.n + n, "a text");
    return false;
}

static bool collect(void *arg, const tg_piece *piece)
{
    tg_choice *c = arg;
    tg_job *job = c->job;
    const bool is_text = piece->id >= 0 && piece->finish != TG_FINISH_END;
    if (piece->id >= 0 && c->n_tokens == job->opt.n_max) { /* more than was asked for: the prompt is in the cache now */
        job->n_done++;
        return false;
    }
    if (job->file)
        tg_session_file_add(job->file, piece);
    c->last = tg_seconds();
    if (c->n_pieces++ == 0)
        c->first = c->last;
    c->n_tokens += is_text;
    c->finish = piece->finish;
    if (job->stream) {
        job->n_done += piece->finish != TG_FINISH_NONE;
        tg_output_text(job->stream, piece->text, piece->n_bytes);
        tg_output_flush(job->stream);
        return !job->stream->error && !tg_signals_caught();
    }
    bool more = append(c, piece->text, piece->n_bytes);
    job->n_done += !more || piece->finish != TG_FINISH_NONE;
    if (c->scores && is_text)
        add_score(c, piece);
    if (c->scores && piece->finish != TG_FINISH_NONE)
        finish_scores(c);
    return more;
}

int tg_job_begin(tg_job *job, tg_generator *generator, tg_error *err)
{
    tg_request *r = &job->request;
    if (job->n_begun == 0) {
        job->begun = tg_seconds();
        if (job->stream) {
            tg_output_text(job->stream, job->prompt, job->n_prompt);
            tg_output_flush(job->stream);
        }
    }
    r->ids = job->ids;
    r->n_ids = job->n_ids;
    r->sampling.stream += job->n_begun > 0;
    r->sink = collect;
    r->arg = &job->choice[job->n_begun];
    int status = (int)tg_generator_add(generator, r, err);
    job->n_begun += !status;
    return status;
}

/* ---- writing ---------------------------------------------------------------------------------------- */

static json_t *choice_json(const tg_job *job, int i)
{
    const tg_choice *c = &job->choice[i];
    const bool ended = c->finish == TG_FINISH_END || c->finish == TG_FINISH_STOP;
    char *text = malloc(job->n_prompt + c->text.n + 1);
    if (!text)
        return NULL;
    if (job->n_prompt)
        memcpy(text, job->prompt, job->n_prompt);
    if (c->text.n)
        memcpy(text + job->n_prompt, c->text.bytes, c->text.n);
    const size_t n = job->n_prompt + c->text.n;
    json_t *exact = json_stringn(text, n); /* NULL: it is no UTF-8 */
    json_t *value = json_pack("{s:i, s:o, s:o*, s:s, s:o}", "index", i, "text",
                              exact ? exact : tg_output_json_text(text, n), "bytes", exact ? NULL : bytes_json(text, n),
                              "finish_reason", ended ? "stop" : "length", "logprobs",
                              c->scores ? json_pack("{s:O}", "content", c->scores) : json_null());
    free(text);
    return value;
}

static double rate(double n, double seconds)
{
    return n > 0 && seconds > 0 ? n / seconds : 0;
}

/* Of all choices: until the first token is there, and from then on. */
static json_t *timings_json(const tg_job *job, int n_decoded)
{
    double first = job->choice[0].first, last = first;
    for (int i = 0; i < job->opt.n_best; i++) {
        first = job->choice[i].first < first ? job->choice[i].first : first;
        last = job->choice[i].last > last ? job->choice[i].last : last;
    }
    return json_pack("{s:f, s:f, s:i, s:f, s:f}", "prompt_seconds", first - job->begun, "prompt_tokens_per_second",
                     rate((double)job->n_ids, first - job->begun), "decoded_tokens", n_decoded, "decode_seconds",
                     last - first, "decoded_tokens_per_second", rate(n_decoded, last - first));
}

/* A number where JSON's readers take 64 bits with a sign, as most do. */
static json_t *seed_json(uint64_t seed)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)seed);
    return seed > INT64_MAX ? json_string(digits) : json_integer((json_int_t)seed);
}

static json_t *completion_json(const tg_job *job)
{
    tg_model_info info;
    tg_model_get_info(job->model, &info);
    int n_tokens = 0, n_decoded = 0;
    json_t *choices = json_array();
    for (int i = 0; i < job->opt.n_best; i++) {
        if (json_array_append_new(choices, choice_json(job, i)) != 0) {
            json_decref(choices);
            return NULL;
        }
        n_tokens += job->choice[i].n_tokens;
        n_decoded += job->choice[i].n_tokens > 1 ? job->choice[i].n_tokens - 1 : 0;
    }
    return json_pack("{s:s, s:o, s:o, s:o, s:{s:i, s:i, s:i}, s:o}", "object", "text_completion", "model",
                     tg_output_json_text(info.path, strlen(info.path)), "seed", seed_json(job->opt.seed), "choices",
                     choices, "usage", "prompt_tokens", (int)job->n_ids, "completion_tokens", n_tokens, "total_tokens",
                     (int)job->n_ids + n_tokens, "timings", timings_json(job, n_decoded));
}

static json_t *failure_json(const tg_job *job)
{
    return json_pack("{s:{s:s, s:o}}", "error", "type",
                     job->failure.status == TG_E_USAGE ? "invalid_request_error" : "server_error", "message",
                     tg_output_json_text(job->failure.message, strlen(job->failure.message)));
}

static void write_json(const tg_job *job, tg_output *out)
{
    json_t *value = job->failure.status ? failure_json(job) : completion_json(job);
    json_t *custom_id = json_object_get(job->line, "custom_id");
    if (custom_id)
        json_object_set(value, "custom_id", custom_id);
    tg_output_json(out, value, JSON_REAL_PRECISION(9) | (job->opt.json ? JSON_INDENT(2) : 0));
    tg_output_write(out, "\n", 1);
}

/* Newlines, carriage returns and backslashes are escaped, so that a line is a text. */
static void write_escaped(tg_output *out, const char *bytes, size_t n)
{
    for (size_t from = 0, i = 0; i <= n && n > 0; i++) {
        const char *as = i == n ? "" : bytes[i] == '\n' ? "\\n" : bytes[i] == '\r' ? "\\r" : bytes[i] == '\\' ? "\\\\" : NULL;
        if (!as)
            continue;
        tg_output_text(out, bytes + from, i - from);
        tg_output_text(out, as, strlen(as));
        from = i + 1;
    }
}

void tg_job_write(const tg_job *job, tg_output *out)
{
    if (job->opt.json || job->opt.jsonl)
        write_json(job, out);
    else if (job->failure.status)
        tg_output_text(out, "\n", 1);
    else
        for (int i = 0; i < job->opt.n_best && !job->stream; i++) {
            write_escaped(out, job->prompt, job->n_prompt);
            write_escaped(out, job->choice[i].text.bytes, job->choice[i].text.n);
            tg_output_text(out, "\n", 1);
        }
    tg_output_flush(out);
}
