/* cmd_tokenize.c - a text as tokens, and tokens as text. */
#include <stdlib.h>
#include <string.h>

#include "cli/engine.h"
#include "cli/prompt.h"

enum { TEXT_MAX = 1 << 30 }; /* bytes */

static void put_ids(tg_output *out, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tg_output_print(out, i ? " %d" : "%d", ids[i]);
    tg_output_write(out, "\n", 1);
}

static void put_table(tg_output *out, const tg_model *model, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t n_bytes;
        const char *bytes = tg_token_bytes(model, ids[i], &n_bytes);
        tg_output_print(out, "%7d  \"", ids[i]);
        tg_output_quoted(out, bytes, n_bytes);
        tg_output_write(out, "\"\n", 2);
    }
}

static json_t *token_json(const tg_model *model, int32_t id)
{
    size_t n;
    const char *bytes = tg_token_bytes(model, id, &n);
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_integer((unsigned char)bytes[i]));
    return json_pack("{s:i, s:o, s:o}", "id", id, "text", tg_output_json_text(bytes, n), "bytes",
                     list);
}

/* One token at a time: a tree of all would take a hundred times the text's size. */
static void put_json(tg_output *out, const tg_model *model, const int32_t *ids, size_t n)
{
    tg_output_print(out, "{\"count\": %zu, \"tokens\": [", n);
    for (size_t i = 0; i < n && !out->error; i++) {
        tg_output_print(out, i ? ",\n" : "\n");
        tg_output_json(out, token_json(model, ids[i]), 0);
    }
    tg_output_print(out, "\n]}\n");
}

static int encode(tg_output *out, const tg_model *model, const tg_options *opt, tg_error *err)
{
    int32_t *ids = NULL;
    size_t n = 0;
    int status = tg_engine_encode(&ids, &n, NULL, model, opt, TEXT_MAX, err);
    if (status)
        return status;
    if (opt->ids)
        put_ids(out, ids, n);
    else if (opt->count)
        tg_output_print(out, "%zu\n", n);
    else if (opt->json)
        put_json(out, model, ids, n);
    else
        put_table(out, model, ids, n);
    tg_free(ids);
    return TG_OK;
}

static int decode(tg_output *out, const tg_model *model, const tg_options *opt, tg_error *err)
{
    tg_tokenizer_info tok;
    int32_t *ids;
    size_t n;
    tg_model_get_tokenizer(model, &tok);
    int status = tg_prompt_ids(&ids, &n, opt->decode, tok.n_tokens, err);
    if (status)
        return status;
    bool begins = tok.strips_space;
    for (size_t i = 0; i < n; i++) {
        size_t n_bytes;
        const char *bytes = tg_token_bytes(model, ids[i], &n_bytes);
        if (!n_bytes || !(opt->special || tg_token_get_kind(model, ids[i]) == TG_TOKEN_NORMAL))
            continue;
        size_t taken = begins && bytes[0] == ' ';
        begins = false;
        tg_output_text(out, bytes + taken, n_bytes - taken);
    }
    tg_output_text_end(out);
    free(ids);
    return TG_OK;
}

int tg_cmd_tokenize(const tg_options *opt, tg_error *err)
{
    static tg_output out;
    tg_model *model = NULL;
    int status = TG_OK;
    if (opt->ids + opt->count + opt->json + (opt->decode != NULL) > 1)
        return tg_cli_fail(err, TG_E_USAGE, "choose one of --ids, --count, --json and --decode");
    if (opt->decode && (opt->operand || opt->file))
        return tg_cli_fail(err, TG_E_USAGE, "--decode takes ids and no text beside them");
    if (!opt->decode)
        status = tg_prompt_check(opt, err);
    if (!status)
        status = tg_engine_load(&model, NULL, opt, TG_LOAD_TOKENIZER, err);
    if (!status)
        status = tg_output_open(&out, NULL, err);
    if (!status)
        status = tg_output_close(
            &out, opt->decode ? decode(&out, model, opt, err) : encode(&out, model, opt, err), err);
    tg_model_free(model);
    return status;
}
