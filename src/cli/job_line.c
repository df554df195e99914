/* job_line.c - the fields of an object are set as options are, by the same table and within the same limits. */
#include "cli/job_line.h"

#include <stdlib.h>
#include <string.h>

#include "cli/engine.h"
#include "cli/given_json.h"

/* What OpenAI's interface calls a field, and the options that a line may set. */
static const struct field {
    const char *name, *option;
} fields[] = {
    {"max_tokens", "max-tokens"},
    {"temperature", "temp"},
    {"top_p", "top-p"},
    {"n", "n-best"},
    {"seed", "seed"},
    {"stop", "stop"},
    {"logprobs", "logprobs"},
    {"echo", "echo"},
    {"presence_penalty", "presence-penalty"},
    {"frequency_penalty", "frequency-penalty"},
    {"top_k", "top-k"},
    {"min_p", "min-p"},
    {"typical_p", "typical"},
    {"repeat_penalty", "repeat-penalty"},
    {"repeat_last_n", "repeat-last-n"},
    {"ignore_eos", "ignore-eos"},
};

static const tg_option *option_of(const char *field)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        for (int k = 0; k < tg_n_options && !strcmp(fields[i].name, field); k++)
            if (tg_option_table[k].commands & TG_CMD_GENERATE && !strcmp(tg_option_table[k].name, fields[i].option))
                return &tg_option_table[k];
    return NULL;
}

/* ---- fields ----------------------------------------------------------------------------------------- */

static int fail_field(tg_error *err, const char *field, const char *allowed)
{
    tg_text_quoted q;
    return tg_cli_fail(err, TG_E_USAGE, "\"%s\" must be %s", tg_text_quote(&q, field), allowed);
}

static bool is_text(const json_t *value)
{
    return json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value);
}

/* A text, or several. They take the place of those on the command line. */
static int set_texts(tg_options *opt, const tg_option *o, const char *field, const json_t *value, tg_error *err)
{
    size_t n = json_is_array(value) ? json_array_size(value) : 1;
    ((tg_texts *)((char *)opt + o->field))->n = 0;
    for (size_t i = 0; i < n; i++) {
        const json_t *text = json_is_array(value) ? json_array_get(value, i) : value;
        if (!is_text(text) || !tg_option_set(opt, o, json_string_value(text)))
            return fail_field(err, field, "a text or a list of up to 64");
    }
    return TG_OK;
}

static int set_number(tg_options *opt, const tg_option *o, const char *field, const json_t *value, tg_error *err)
{
    char text[64], range[TG_RANGE_BYTES];
    size_t n = json_is_number(value) ? json_dumpb(value, text, sizeof text - 1, JSON_ENCODE_ANY) : 0;
    if (n == 0 || n >= sizeof text)
        return fail_field(err, field, tg_option_describe(o, range));
    text[n] = '\0';
    return tg_option_set(opt, o, text) ? TG_OK : fail_field(err, field, tg_option_describe(o, range));
}

static int set_field(tg_job *job, const char *field, const json_t *value, tg_error *err)
{
    tg_text_quoted q;
    const tg_option *o = option_of(field);
    if (!o)
        return tg_cli_fail(err, TG_E_USAGE, "unknown field \"%s\"", tg_text_quote(&q, field));
    if (o->kind == TG_OPTION_TEXTS)
        return set_texts(&job->opt, o, field, value, err);
    if (o->kind != TG_OPTION_FLAG)
        return set_number(&job->opt, o, field, value, err);
    if (!json_is_boolean(value))
        return fail_field(err, field, "true or false");
    *(bool *)((char *)&job->opt + o->field) = json_is_true(value);
    return TG_OK;
}

/* {"15043": -1.5, ...} */
static int set_biases(tg_job *job, const json_t *value, tg_error *err)
{
    const char *id;
    json_t *by;
    int n = 0;
    if (!json_is_object(value) || json_object_size(value) > TG_LIST_MAX)
        return fail_field(err, "logit_bias", "an object of up to 64 token ids with numbers");
    json_object_foreach((json_t *)(uintptr_t)value, id, by) {
        int64_t number;
        if (!tg_number_int(id, 0, INT32_MAX, &number) || !json_is_number(by))
            return fail_field(err, "logit_bias", "an object of token ids with numbers");
        job->room.bias[n++] = (tg_logit_bias){(int32_t)number, (float)json_number_value(by)};
    }
    job->request.sampling.n_bias = n;
    return TG_OK;
}

/* ---- lines ------------------------------------------------------------------------------------------ */

static int prepare_json(tg_job *job, const char *line, size_t n, size_t max_line, tg_error *err)
{
    json_error_t where;
    const char *name;
    json_t *value;
    int status = TG_OK;
    if (n > max_line)
        return tg_cli_fail(err, TG_E_USAGE, "a line is too long (allowed %zu bytes)", max_line);
    job->line = tg_given_json(line, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &where);
    if (!job->line && json_error_code(&where) == json_error_out_of_memory)
        return tg_cli_fail_memory(err, n, "a line as JSON");
    const json_t *prompt = json_object_get(job->line, "prompt"), *biases = json_object_get(job->line, "logit_bias");
    if (!json_is_object(job->line))
        return tg_cli_fail(err, TG_E_USAGE, "no JSON object: %s", job->line ? "another value" : where.text);
    if (!json_is_string(prompt))
        return fail_field(err, "prompt", "a text");
    json_object_foreach(job->line, name, value) {
        bool other = !strcmp(name, "prompt") || !strcmp(name, "logit_bias") || !strcmp(name, "custom_id");
        if (!status && !other && !json_is_null(value))
            status = set_field(job, name, value, err);
    }
    if (!status && job->opt.n_logprobs >= 0 && !job->opt.jsonl)
        status = fail_field(err, "logprobs", "left out: there is no room for them without --jsonl");
    if (!status)
        status = tg_job_prepare(job, json_string_value(prompt), json_string_length(prompt), err);
    if (!status && biases && !json_is_null(biases))
        status = set_biases(job, biases, err);
    return status;
}

static int prepare_text(tg_job *job, const char *line, size_t n, tg_error *err)
{
    n -= job->opt.chomp && n > 0 && line[n - 1] == '\r';
    return tg_job_prepare(job, line, n, err);
}

/* Do objects begin with this line? With one that has a prompt they do; where objects are written, also with a first one
 * that is meant for an object: it gets its error, and the others are not taken for text. */
static bool begins_objects(const tg_job_lines *in, const char *line, size_t n, bool jsonl)
{
    json_error_t unheard;
    const char *begin = line + strspn(line, " \t\xEF\xBB\xBF");
    if (*begin != '{')
        return false;
    if (in->number == 1 && jsonl)
        return true;
    json_t *value = tg_given_json(line, n, JSON_ALLOW_NUL, &unheard);
    bool has_prompt = json_is_string(json_object_get(value, "prompt"));
    json_decref(value);
    return has_prompt;
}

int tg_job_lines_open(tg_job_lines *in, const char *path, const tg_model *model, const tg_options *opt, tg_error *err)
{
    return tg_lines_open(&in->lines, path, tg_engine_max_line(model, opt, true), err); /* which it is, lines tell */
}

int tg_job_lines_next(tg_job_lines *in, tg_job **job, const tg_model *model, const tg_options *opt, tg_error *err)
{
    char *line;
    size_t n;
    *job = NULL;
    do {
        int status = tg_lines_next(&in->lines, &line, &n, err);
        if (status || !line)
            return status;
        in->number++;
        in->jsonl = in->jsonl || begins_objects(in, line, n, opt->jsonl);
        if (tg_json_lacks_memory())
            return tg_cli_fail_memory(err, n, "a line as JSON");
    } while (in->jsonl && strspn(line, " \t\r") == n); /* between objects there may be empty ones */
    int status = tg_job_create(job, model, opt, err);
    if (status)
        return status;
    (*job)->number = in->number;
    if (in->jsonl)
        prepare_json(*job, line, n, in->lines.max_line, &(*job)->failure);
    else
        prepare_text(*job, line, n, &(*job)->failure);
    return TG_OK;
}
