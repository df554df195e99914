/* cmd_inspect.c - what a model file says of itself, and what running it takes. */
#include <float.h>
#include <inttypes.h>
#include <string.h>

#include "cli/engine.h"
#include "cli/text.h"

typedef struct report {
    const tg_options *opt;
    const tg_model *model;
    tg_model_info info;
    tg_tokenizer_info tok;
    int n_ctx;
    uint64_t kv_bytes, scratch_bytes;
    tg_output *out;
} report;

/* ---- text -------------------------------------------------------------------------------------
 */

static double mib(uint64_t n_bytes)
{
    return (double)n_bytes / 1048576;
}

static void put_name(report *r, const char *label, const char *value)
{
    if (!value)
        return;
    tg_output_print(r->out, "%-14s ", label);
    tg_output_quoted(r->out, value, strlen(value));
    tg_output_write(r->out, "\n", 1);
}

static void put_config(report *r)
{
    const tg_model_info *i = &r->info;
    tg_output_print(r->out, "%-14s %d\n", "layers", i->n_layer);
    tg_output_print(r->out, "%-14s %d\n", "embedding", i->n_embd);
    tg_output_print(r->out, "%-14s %d of size %d, %d for keys and values\n", "heads", i->n_head,
                    i->head_dim, i->n_head_kv);
    tg_output_print(r->out, "%-14s %d\n", "feed-forward", i->n_ff);
    if (i->n_expert > 0)
        tg_output_print(r->out, "%-14s %d of %d\n", "experts", i->n_expert_used, i->n_expert);
    if (i->window > 0)
        tg_output_print(r->out, "%-14s %d positions\n", "window", i->window);
    tg_output_print(r->out, "%-14s %d\n", "vocabulary", i->n_vocab);
    tg_output_print(r->out, "%-14s %d\n", "trained for", i->n_ctx_train);
    if (i->rope_theta > 0)
        tg_output_print(r->out, "%-14s rotary, theta %g\n", "positions", (double)i->rope_theta);
    else
        tg_output_print(r->out, "%-14s %s\n", "positions",
                        i->positions_bounded ? "learned" : "none");
    tg_output_print(r->out, "%-14s %g\n", "norm epsilon", (double)i->norm_eps);
}

static void put_special(report *r, const char *label, int32_t id, bool added)
{
    size_t n;
    if (id < 0) {
        tg_output_print(r->out, "%-14s none\n", label);
        return;
    }
    const char *bytes = tg_token_bytes(r->model, id, &n);
    tg_output_print(r->out, "%-14s %d \"", label, id);
    tg_output_quoted(r->out, bytes, n);
    tg_output_print(r->out, "\"%s\n", added ? ", added to texts" : "");
}

static void put_tokenizer(report *r)
{
    tg_text_quoted model, pre;
    if (!r->tok.model[0])
        return;
    tg_output_print(r->out, "%-14s %s, splits %s, %d tokens, %d merges\n", "tokenizer",
                    tg_text_quote(&model, r->tok.model), tg_text_quote(&pre, r->tok.pre),
                    r->tok.n_tokens, r->tok.n_merges);
    put_special(r, "begin of text", r->tok.bos, r->tok.add_bos);
    put_special(r, "end of text", r->tok.eos, r->tok.add_eos);
}

static void put_memory(report *r)
{
    uint64_t sum = r->info.weight_bytes + r->kv_bytes + r->scratch_bytes;
    tg_output_print(r->out,
                    "%-14s %.1f MiB at a context of %d: weights %.1f, cache %.1f, scratch %.1f\n",
                    "memory", mib(sum), r->n_ctx, mib(r->info.weight_bytes), mib(r->kv_bytes),
                    mib(r->scratch_bytes));
    if (r->opt->interleave)
        tg_output_print(r->out, "%-14s %.1f MiB of the weights, not shared\n", "interleaved",
                        mib(r->info.interleaved_bytes));
}

static void put_tensors(report *r)
{
    for (int i = 0; i < r->info.n_tensors && !r->out->error; i++) {
        tg_tensor_info t;
        tg_model_get_tensor(r->model, i, &t);
        tg_output_print(r->out, "%-6s %12" PRIu64 "  ", t.type, t.n_bytes);
        tg_output_quoted(r->out, t.name, strlen(t.name));
        tg_output_print(r->out, " [");
        for (int d = 0; d < t.n_dim; d++)
            tg_output_print(r->out, d ? ", %" PRIu64 : "%" PRIu64, t.dim[d]);
        tg_output_print(r->out, "]\n");
    }
}

static void put_text(report *r)
{
    put_name(r, "model", r->info.path);
    put_name(r, "format", r->info.format);
    put_name(r, "architecture", r->info.architecture);
    if (r->info.unsupported)
        tg_output_print(r->out, "%-14s %s\n", r->info.supported ? "tokenizer" : "not supported", r->info.unsupported);
    put_name(r, "name", r->info.name);
    put_name(r, "license", r->info.license);
    put_name(r, "quantised", r->info.file_type);
    tg_output_print(r->out, "%-14s %" PRIu64 "\n", "parameters", r->info.n_params);
    tg_output_print(r->out, "%-14s %.1f MiB in %d tensors\n", "weights", mib(r->info.weight_bytes),
                    r->info.n_tensors);
    if (r->info.supported)
        put_config(r);
    put_tokenizer(r);
    if (r->info.supported)
        put_memory(r);
    if (r->opt->tensors) {
        tg_output_write(r->out, "\n", 1);
        put_tensors(r);
    }
}

/* ---- JSON -------------------------------------------------------------------------------------
 */

static json_t *id_or_null(int32_t id)
{
    return id >= 0 ? json_integer(id) : json_null();
}

static json_t *model_json(const tg_model_info *i)
{
    return json_pack(
        "{s:o, s:o, s:o, s:b, s:o, s:o, s:I, s:I, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:b,"
        " s:f, s:f, s:i, s:i, s:i, s:o}",
        "path", tg_output_json_name(i->path), "format", tg_output_json_name(i->format), "architecture",
        tg_output_json_name(i->architecture), "supported", (int)i->supported, "name",
        tg_output_json_name(i->name), "license", tg_output_json_name(i->license), "n_params",
        (json_int_t)i->n_params, "weight_bytes", (json_int_t)i->weight_bytes, "n_tensors",
        i->n_tensors, "n_layer", i->n_layer, "n_embd", i->n_embd, "n_head", i->n_head, "n_head_kv",
        i->n_head_kv, "head_dim", i->head_dim, "n_ff", i->n_ff, "n_vocab", i->n_vocab,
        "n_ctx_train", i->n_ctx_train, "positions_bounded", (int)i->positions_bounded, "rope_theta",
        (double)i->rope_theta, "norm_eps", (double)i->norm_eps, "window", i->window, "n_expert",
        i->n_expert, "n_expert_used", i->n_expert_used, "file_type", tg_output_json_name(i->file_type));
}

static json_t *tokenizer_json(const tg_tokenizer_info *t)
{
    if (!t->model[0])
        return json_null();
    return json_pack("{s:o, s:o, s:i, s:i, s:o, s:o, s:b, s:b}", "model", tg_output_json_name(t->model),
                     "pre", tg_output_json_name(t->pre), "n_tokens", t->n_tokens, "n_merges", t->n_merges,
                     "bos", id_or_null(t->bos), "eos", id_or_null(t->eos), "add_bos",
                     (int)t->add_bos, "add_eos", (int)t->add_eos);
}

static json_t *tensors_json(const report *r)
{
    json_t *list = json_array();
    for (int i = 0; i < r->info.n_tensors; i++) {
        tg_tensor_info t;
        tg_model_get_tensor(r->model, i, &t);
        json_t *shape = json_array();
        for (int d = 0; d < t.n_dim; d++)
            json_array_append_new(shape, json_integer((json_int_t)t.dim[d]));
        json_array_append_new(list, json_pack("{s:o, s:s, s:o, s:I}", "name", tg_output_json_name(t.name),
                                              "type", t.type, "shape", shape, "bytes",
                                              (json_int_t)t.n_bytes));
    }
    return list;
}

static void put_json(report *r)
{
    json_t *all = model_json(&r->info);
    json_object_set_new(all, "tokenizer", tokenizer_json(&r->tok));
    if (r->info.supported)
        json_object_set_new(all, "memory",
                            json_pack("{s:i, s:I, s:I, s:I}", "n_ctx", r->n_ctx, "kv_bytes",
                                      (json_int_t)r->kv_bytes, "scratch_bytes", (json_int_t)r->scratch_bytes,
                                      "interleaved_bytes", (json_int_t)r->info.interleaved_bytes));
    if (r->opt->tensors)
        json_object_set_new(all, "tensors", tensors_json(r));
    tg_output_json(r->out, all, JSON_INDENT(2) | JSON_REAL_PRECISION(FLT_DIG));
    tg_output_write(r->out, "\n", 1);
}

int tg_cmd_inspect(const tg_options *opt, tg_error *err)
{
    static tg_output out;
    tg_model *model = NULL;
    report r = {.opt = opt, .out = &out};
    int status = tg_engine_load(&model, opt->operand, opt, TG_LOAD_META_ONLY, err);
    if (!status)
        status = tg_output_open(&out, NULL, err);
    if (!status) {
        r.model = model;
        tg_model_get_info(model, &r.info);
        tg_model_get_tokenizer(model, &r.tok);
        r.n_ctx = opt->n_ctx ? opt->n_ctx : r.info.n_ctx_train;
        tg_session_params params = tg_engine_params(opt, r.n_ctx);
        if (r.info.supported)
            tg_session_memory(model, &params, &r.kv_bytes, &r.scratch_bytes);
        if (opt->json)
            put_json(&r);
        else
            put_text(&r);
        status = tg_output_close(&out, TG_OK, err);
    }
    tg_model_free(model);
    return status;
}
