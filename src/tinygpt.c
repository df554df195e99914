/* tinygpt.c - joins the layers behind the public header: a model is a container, weights, a tokenizer. */
#include "tinygpt/tinygpt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn/strategy.h"
#include "base/memory.h"
#include "base/open.h"
#include "base/sum.h"
#include "convert/recipe.h"
#include "format/container.h"
#include "kernel/blas.h"
#include "kernel/isa.h"
#include "model/weights.h"
#include "sample/sampler.h"
#include "session/session.h"
#include "token/chat.h"

struct tg_model {
    tg_container *container;
    tg_arena *arena;
    tg_weights weights;
    tg_tokenizer *tokenizer; /* NULL under TG_LOAD_META_ONLY when it is not supported */
    char *chat_template;     /* NULL: it has none */
    const char *architecture;
    bool supported;
    tg_error why; /* not, or its tokenizer */
};

/* ---- models ---------------------------------------------------------------------------------------- */

/* For inspection what cannot be used is no error: it is left out. */
static bool is_fatal(unsigned flags, tg_status status)
{
    return status != TG_OK && (!(flags & TG_LOAD_META_ONLY) || status == TG_E_RESOURCE);
}

static tg_status load_parts(tg_model *m, unsigned flags, tg_error *err)
{
    if (flags & TG_LOAD_TOKENIZER)
        return tg_tokenizer_load(&m->tokenizer, m->container, TG_MAX_VOCAB, err);
    tg_status status = tg_config_load(m->container, &m->weights.arch, &m->architecture, &m->weights.config,
                                      err);
    if (status == TG_OK)
        status = tg_weights_load(&m->weights, m->container, m->arena, err);
    if (status == TG_OK && flags & TG_LOAD_INTERLEAVED)
        status = tg_weights_interleave(&m->weights, flags & TG_LOAD_META_ONLY ? NULL : m->container, err);
    m->supported = status == TG_OK;
    if (is_fatal(flags, status))
        return status;
    if (status != TG_OK)
        m->why = *err;
    status = tg_tokenizer_load(&m->tokenizer, m->container, m->supported ? m->weights.config.n_vocab : TG_MAX_VOCAB, err);
    if (status != TG_OK && m->supported)
        m->why = *err;
    if (status == TG_OK)
        status = tg_chat_find(m->container, &m->chat_template, err);
    return is_fatal(flags, status) ? status : TG_OK;
}

tg_status tg_model_load(tg_model **model, const char *path, unsigned flags, tg_error *err)
{
    tg_error own = {0};
    *model = NULL;
    tg_model *m = tg_alloc(1, sizeof *m, "a model", err);
    if (!m)
        return TG_E_RESOURCE;
    m->arena = tg_arena_create(&own);
    tg_status status = m->arena ? tg_container_open(&m->container, path, flags & TG_LOAD_NO_MMAP, &own)
                                : TG_E_RESOURCE;
    if (status == TG_OK)
        status = load_parts(m, flags, &own);
    if (status != TG_OK) {
        tg_model_free(m);
        if (err)
            *err = own;
        return status;
    }
    *model = m;
    return TG_OK;
}

void tg_model_free(tg_model *m)
{
    if (!m)
        return;
    tg_tokenizer_free(m->tokenizer);
    tg_free(m->chat_template);
    tg_weights_free(&m->weights);
    tg_container_free(m->container);
    tg_arena_free(m->arena);
    free(m);
}

static const char *text_of(const tg_container *c, const char *key)
{
    const char *text = NULL;
    size_t n;
    return tg_meta_string(c, key, &text, &n, NULL) == TG_META_FOUND ? text : NULL;
}

static const char *file_type_of(const tg_container *c)
{
    int64_t number = -1;
    tg_meta_int(c, "general.file_type", 0, INT32_MAX, &number, NULL);
    for (int i = 0; tg_recipe_at(i); i++)
        if (tg_recipe_at(i)->file_type == number)
            return tg_recipe_at(i)->name;
    return NULL;
}

void tg_model_get_info(const tg_model *m, tg_model_info *info)
{
    const tg_config *c = &m->weights.config;
    const tg_arch *arch = m->weights.arch;
    *info = (tg_model_info){
        .path = tg_container_path(m->container),
        .format = tg_container_format(m->container),
        .architecture = m->architecture,
        .supported = m->supported,
        .unsupported = m->why.status ? m->why.message : NULL,
        .n_layer = c->n_layer,
        .n_embd = c->n_embd,
        .n_head = c->n_head,
        .n_head_kv = c->n_head_kv,
        .head_dim = c->head_dim,
        .n_ff = c->n_ff,
        .n_vocab = c->n_vocab,
        .n_ctx_train = c->n_ctx_train,
        .positions_bounded = arch && arch->pos == TG_POS_LEARNED,
        .rope_theta = arch && arch->pos == TG_POS_ROTARY ? (float)c->rope[0].theta : 0.0f,
        .window = c->window,
        .n_expert = c->n_expert,
        .n_expert_used = c->n_expert_used,
        .norm_eps = c->norm_eps,
        .interleaved_bytes = m->weights.interleaved_bytes,
        .n_tensors = (int)tg_container_n_tensors(m->container),
    };
    if (tg_container_get_kind(m->container) == TG_CONTAINER_GGUF) {
        info->name = text_of(m->container, "general.name");
        info->license = text_of(m->container, "general.license");
        info->file_type = file_type_of(m->container);
    }
    for (int i = 0; i < info->n_tensors; i++) {
        const tg_tensor *t = tg_container_tensor_at(m->container, (size_t)i);
        info->n_params += t->dim[0] * t->dim[1] * t->dim[2] * t->dim[3];
        info->weight_bytes += t->n_bytes;
    }
}

void tg_model_get_tensor(const tg_model *m, int i, tg_tensor_info *info)
{
    const tg_tensor *t = tg_container_tensor_at(m->container, (size_t)i);
    *info = (tg_tensor_info){.name = t->name, .type = t->type_name, .n_dim = t->n_dim, .n_bytes = t->n_bytes};
    memcpy(info->dim, t->dim, sizeof info->dim);
}

/* ---- tokens ------------------------------------------------------------------------------------------ */

tg_status tg_tokenize(const tg_model *m, const void *text, size_t n_bytes, unsigned flags, int32_t **ids,
                      size_t *n_ids, size_t *n_dropped, tg_error *err)
{
    *ids = NULL;
    *n_ids = 0;
    if (!m->tokenizer)
        return tg_fail(err, TG_E_MODEL, tg_container_path(m->container), "no tokenizer that is supported");
    return tg_tokenizer_encode(m->tokenizer, text, n_bytes, flags, ids, n_ids, n_dropped, err);
}

const char *tg_token_bytes(const tg_model *m, int32_t id, size_t *n_bytes)
{
    *n_bytes = 0;
    return m->tokenizer ? tg_tokenizer_bytes(m->tokenizer, id, n_bytes) : "";
}

tg_token_kind tg_token_get_kind(const tg_model *m, int32_t id)
{
    return m->tokenizer ? tg_tokenizer_kind(m->tokenizer, id) : TG_TOKEN_UNUSED;
}

bool tg_token_is_eog(const tg_model *m, int32_t id)
{
    return m->tokenizer && tg_tokenizer_is_eog(m->tokenizer, id);
}

void tg_model_get_tokenizer(const tg_model *m, tg_tokenizer_info *info)
{
    *info = (tg_tokenizer_info){.model = "", .pre = "", .bos = -1, .eos = -1};
    if (m->tokenizer)
        tg_tokenizer_get_info(m->tokenizer, info);
}

/* ---- conversations --------------------------------------------------------------------------------------- */

/* The parameters with the template filled in. */
static tg_status chat_params(const tg_model *m, const tg_chat_params *given, tg_chat_params *params, tg_error *err)
{
    static const tg_chat_params none;
    *params = given ? *given : none;
    if (!params->jinja)
        params->jinja = m->chat_template;
    if (!m->tokenizer)
        return tg_fail(err, TG_E_MODEL, tg_container_path(m->container), "no tokenizer that is supported");
    if (!params->jinja)
        return tg_fail(err, TG_E_MODEL, tg_container_path(m->container), "no chat template in the model");
    return TG_OK;
}

tg_status tg_chat_text(const tg_model *m, const tg_chat_params *params, const tg_chat_message *messages, size_t n,
                       char **text, size_t *n_bytes, tg_error *err)
{
    tg_chat_params p;
    uint8_t *plain = NULL;
    *text = NULL;
    *n_bytes = 0;
    tg_status status = chat_params(m, params, &p, err);
    if (status == TG_OK)
        status = tg_chat_render(m->tokenizer, tg_container_path(m->container), &p, messages, n, text, &plain, n_bytes, err);
    free(plain);
    return status;
}

tg_status tg_chat_tokens(const tg_model *m, const tg_chat_params *params, const tg_chat_message *messages, size_t n,
                         int32_t **ids, size_t *n_ids, tg_error *err)
{
    tg_chat_params p;
    *ids = NULL;
    *n_ids = 0;
    tg_status status = chat_params(m, params, &p, err);
    return status != TG_OK ? status
                           : tg_chat_encode(m->tokenizer, tg_container_path(m->container), &p, messages, n, ids, n_ids, err);
}

int32_t tg_chat_end(const tg_model *m, const tg_chat_params *params)
{
    tg_chat_params p;
    tg_error unheard;
    return chat_params(m, params, &p, &unheard) == TG_OK
               ? tg_chat_find_end(m->tokenizer, tg_container_path(m->container), &p)
               : -1;
}

const char *tg_model_chat_template(const tg_model *m)
{
    return m->chat_template;
}

/* ---- sessions ------------------------------------------------------------------------------------------- */

const char *tg_attention_name(int i, const char **summary)
{
    if (i < 0 || i >= tg_n_attn_strategies)
        return NULL;
    if (summary)
        *summary = tg_attn_strategies[i].summary;
    return tg_attn_strategies[i].name;
}

tg_status tg_session_create(tg_session **session, const tg_model *m, const tg_session_params *params,
                            tg_error *err)
{
    *session = NULL;
    if (!m->supported)
        return tg_fail(err, TG_E_USAGE, NULL, "a model opened for inspection cannot be evaluated");
    return tg_session_make(session, &m->weights, params, err);
}

void tg_session_memory(const tg_model *m, const tg_session_params *params, uint64_t *kv_bytes,
                       uint64_t *scratch_bytes)
{
    *kv_bytes = *scratch_bytes = 0;
    if (m->supported)
        tg_session_needs(&m->weights, params, kv_bytes, scratch_bytes);
}

/* ---- saved sessions ---------------------------------------------------------------------------------------- */

tg_status tg_model_check_unchanged(const tg_model *m, tg_error *err)
{
    return tg_container_check_unchanged(m->container, err);
}

tg_status tg_model_check_output(const tg_model *m, const char *path, const char *const *others, size_t n, tg_error *err)
{
    tg_status status = tg_container_check_output(m->container, path, err);
    for (size_t i = 0; i < n && status == TG_OK; i++)
        status = others[i] ? tg_path_check_output(path, others[i], err) : TG_OK;
    return status;
}

/* All that ids stand for. */
static uint64_t sum_of_tokens(const tg_model *m)
{
    tg_tokenizer_info info;
    tg_model_get_tokenizer(m, &info);
    uint64_t sum = tg_sum_word(tg_sum_word(0, (uint32_t)info.bos), (uint32_t)info.eos);
    for (int32_t id = 0; id < info.n_tokens; id++) {
        size_t n;
        const char *bytes = tg_token_bytes(m, id, &n);
        sum = tg_sum_word(tg_sum_text(sum, bytes, n), tg_token_get_kind(m, id));
    }
    return sum;
}

static tg_status identify(const tg_model *m, tg_identity *is, tg_error *err)
{
    is->tokenizer = sum_of_tokens(m);
    return tg_container_fingerprint(m->container, &is->model, err);
}

tg_status tg_session_save(const tg_session *session, const tg_model *m, int seq, const tg_saved_text *text,
                          const char *path, tg_error *err)
{
    tg_identity is;
    tg_status status = identify(m, &is, err);
    if (status == TG_OK)
        status = tg_model_check_unchanged(m, err);
    return status == TG_OK ? tg_saved_write(session, is, seq, text, path, err) : status;
}

tg_status tg_saved_open(tg_saved **saved, const tg_model *m, const char *path, tg_error *err)
{
    tg_identity is;
    *saved = NULL;
    tg_status status = identify(m, &is, err);
    return status == TG_OK ? tg_saved_read(saved, is, &m->weights, path, err) : status;
}

/* ---- samplers ----------------------------------------------------------------------------------------------- */

tg_status tg_sampler_create(tg_sampler **sampler, const tg_model *m, const tg_sampling *params, tg_error *err)
{
    int n_vocab = m->weights.config.n_vocab;
    tg_status status = tg_sampler_make(sampler, n_vocab, params, err);
    for (int32_t id = 0; status == TG_OK && id < n_vocab; id++)
        if (tg_token_get_kind(m, id) == TG_TOKEN_UNUSED || (params->ignore_eos && tg_token_is_eog(m, id)))
            tg_sampler_ban(*sampler, id);
    return status;
}

/* ---- build --------------------------------------------------------------------------------------------------- */

const char *tg_build_info(void)
{
    static char line[256];
#ifdef __clang__
    const char *compiler = __VERSION__; /* names itself */
#else
    const char *compiler = "gcc " __VERSION__;
#endif
    snprintf(line, sizeof line, "tinygpt %s (%s, kernels: %s, BLAS: OpenBLAS %s)", TG_VERSION, compiler,
             tg_isa_name(), tg_blas_name());
    return line;
}
