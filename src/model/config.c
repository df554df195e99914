/* config.c - a model's configuration from its metadata, by the architecture's descriptor. */
#include "model/config.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model/arch.h"

/* ---- keys -------------------------------------------------------------------------------------------- */

static const struct {
    const char *gguf, *hf;
    int min, max;
    bool required;
    size_t at;
} int_keys[TG_KEY_INTS] = {
    [TG_KEY_N_LAYER] = {"block_count", "num_hidden_layers", 1, TG_MAX_LAYERS, true, offsetof(tg_config, n_layer)},
    [TG_KEY_N_EMBD] = {"embedding_length", "hidden_size", 1, TG_MAX_EMBD, true, offsetof(tg_config, n_embd)},
    [TG_KEY_N_HEAD] = {"attention.head_count", "num_attention_heads", 1, TG_MAX_HEADS, true,
                       offsetof(tg_config, n_head)},
    [TG_KEY_N_HEAD_KV] = {"attention.head_count_kv", "num_key_value_heads", 1, TG_MAX_HEADS, false,
                          offsetof(tg_config, n_head_kv)},
    [TG_KEY_HEAD_DIM] = {"attention.key_length", "head_dim", 1, TG_MAX_EMBD, false, offsetof(tg_config, head_dim)},
    [TG_KEY_N_FF] = {"feed_forward_length", "intermediate_size", 1, TG_MAX_FF, false, offsetof(tg_config, n_ff)},
    [TG_KEY_N_CTX] = {"context_length", "max_position_embeddings", 1, TG_MAX_CTX, true,
                      offsetof(tg_config, n_ctx_train)},
    [TG_KEY_WINDOW] = {"attention.sliding_window", "sliding_window", 0, INT32_MAX, false,
                       offsetof(tg_config, window)},
    [TG_KEY_N_EXPERT] = {"expert_count", "num_experts", 0, TG_MAX_EXPERTS, false, offsetof(tg_config, n_expert)},
    [TG_KEY_N_EXPERT_USED] = {"expert_used_count", "num_experts_per_tok", 0, TG_MAX_EXPERTS_USED, false,
                              offsetof(tg_config, n_expert_used)},
    [TG_KEY_N_FF_EXPERT] = {"expert_feed_forward_length", "moe_intermediate_size", 1, TG_MAX_FF, false,
                            offsetof(tg_config, n_ff_expert)},
};

const char *tg_arch_key(const tg_config_reader *r, tg_key key)
{
    static const char *const others[TG_KEY_COUNT] = {[TG_KEY_NORM_EPS] = "rms_norm_eps", [TG_KEY_ACT] = "hidden_act",
                                                     [TG_KEY_THETA] = "rope_theta",
                                                     [TG_KEY_ROTATED] = "partial_rotary_factor"};
    if (r->kind == TG_CONTAINER_GGUF)
        return key < TG_KEY_INTS ? int_keys[key].gguf : NULL;
    for (const tg_arch *a = r->arch; a; a = a->like)
        if (a->hf_key[key])
            return *a->hf_key[key] ? a->hf_key[key] : NULL;
    return key < TG_KEY_INTS ? int_keys[key].hf : others[key];
}

/* ---- reading ------------------------------------------------------------------------------------ */

static const char *full_key(const tg_config_reader *r, const char *key, char buffer[256])
{
    snprintf(buffer, 256, "%s%s%s", r->prefix, r->group, key);
    return buffer;
}

static bool note_missing(tg_config_reader *r, const char *key)
{
    size_t used = strlen(r->missing);
    snprintf(r->missing + used, sizeof r->missing - used, "%s%s", used ? ", " : "", key);
    return true;
}

/* What a look-up that was not found means. */
static bool settle(tg_config_reader *r, tg_meta found, const char *key, bool required)
{
    if (found == TG_META_BAD)
        return false;
    return found == TG_META_FOUND || !required || note_missing(r, key);
}

bool tg_read_int(tg_config_reader *r, const char *key, bool required, int min, int max, int *out)
{
    char buffer[256];
    const char *name = full_key(r, key, buffer);
    int64_t value = 0;
    tg_meta found = tg_meta_int(r->c, name, min, max, &value, r->err);
    if (found == TG_META_FOUND)
        *out = (int)value;
    return settle(r, found, name, required);
}

bool tg_read_real(tg_config_reader *r, const char *key, bool required, double *out)
{
    char buffer[256];
    const char *name = full_key(r, key, buffer);
    double value = 0;
    tg_meta found = tg_meta_real(r->c, name, &value, r->err);
    /* it becomes a float: neither 0 nor infinite there */
    if (found == TG_META_FOUND && !((float)value > 0.0f && isfinite((float)value))) {
        tg_fail(r->err, TG_E_MODEL, tg_container_meta_path(r->c), "%s (found %g, allowed: above 0)", name, value);
        return false;
    }
    if (found == TG_META_FOUND)
        *out = value;
    return settle(r, found, name, required);
}

bool tg_read_bool(tg_config_reader *r, const char *key, bool *out)
{
    char buffer[256];
    const char *name = full_key(r, key, buffer);
    return settle(r, tg_meta_bool(r->c, name, out, r->err), name, false);
}

bool tg_read_choice(tg_config_reader *r, const char *key, bool required, const char *const *names, int n,
                    int *out)
{
    char buffer[256];
    const char *name = full_key(r, key, buffer), *value;
    size_t n_bytes;
    tg_meta found = tg_meta_string(r->c, name, &value, &n_bytes, r->err);
    if (found != TG_META_FOUND)
        return settle(r, found, name, required);
    for (int i = 0; i < n; i++) {
        if (strlen(names[i]) == n_bytes && memcmp(names[i], value, n_bytes) == 0) {
            *out = i;
            return true;
        }
    }
    char list[256] = "";
    for (int i = 0; i < n; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", names[i]);
    }
    tg_quoted q;
    tg_fail(r->err, TG_E_MODEL, tg_container_meta_path(r->c), "%s is not supported (found \"%s\", allowed: %s)",
            name, tg_quote(&q, value, n_bytes), list);
    return false;
}

bool tg_read_float(tg_config_reader *r, const char *key, float *out)
{
    double value = 0;
    if (!tg_read_real(r, key, false, &value))
        return false;
    *out = value != 0 ? (float)value : *out;
    return true;
}

bool tg_read_list(tg_config_reader *r, const char *key, const json_t **list)
{
    char buffer[256];
    const json_t *v = tg_container_config(r->c);
    *list = NULL;
    for (char *at = buffer, *dot; at && v; at = dot ? dot + 1 : NULL) {
        if (at == buffer)
            full_key(r, key, buffer);
        dot = strchr(at, '.');
        if (dot)
            *dot = 0;
        v = json_object_get(v, at);
    }
    if (v && !json_is_null(v) && !json_is_array(v))
        return tg_refuse(r, "%s%s: wrong type (allowed a list)", r->prefix, key);
    *list = json_is_array(v) ? v : NULL;
    return true;
}

bool tg_refuse(tg_config_reader *r, const char *format, ...)
{
    char text[300];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    tg_fail(r->err, TG_E_MODEL, tg_container_meta_path(r->c), "%s", text);
    return false;
}

/* A GGUF may say it by a number, as n is, or by a boolean for each layer (*listed). */
static bool read_pattern(tg_config_reader *r, const tg_config *c, int *n, tg_meta_array *listed)
{
    char buffer[256];
    const char *key = full_key(r, "attention.sliding_window_pattern", buffer);
    tg_error unused = {0};
    int64_t every;
    tg_meta found = tg_meta_int(r->c, key, 0, TG_MAX_LAYERS, &every, &unused);
    if (found == TG_META_FOUND)
        *n = (int)every;
    if (found != TG_META_BAD)
        return true;
    if (tg_meta_get_array(r->c, key, TG_ELEM_INT, listed, r->err) != TG_META_FOUND)
        return false;
    return listed->n == (uint64_t)c->n_layer ||
           tg_refuse(r, "%s (found %" PRIu64 ", wanted %d by the number of layers)", key, listed->n, c->n_layer);
}

bool tg_read_local_layers(tg_config_reader *r, tg_config *c, int n)
{
    const json_t *types;
    tg_meta_array listed = {0};
    if (!tg_read_list(r, "layer_types", &types) ||
        (r->kind == TG_CONTAINER_GGUF && !read_pattern(r, c, &n, &listed)))
        return false;
    if (types && json_array_size(types) != (size_t)c->n_layer)
        return tg_refuse(r, "layer_types (found %zu, wanted %d by the number of layers)", json_array_size(types),
                         c->n_layer);
    for (int i = 0; i < c->n_layer; i++) {
        bool local = listed.n > 0 ? tg_meta_array_int(&listed, (uint64_t)i) != 0 : n == 0 || i % n < n - 1;
        const char *type = types ? json_string_value(json_array_get(types, (size_t)i)) : NULL;
        tg_quoted q;
        if (types)
            local = type && strcmp(type, "sliding_attention") == 0;
        if (types && !local && !(type && strcmp(type, "full_attention") == 0))
            return tg_refuse(r, "layer_types of layer %d is not supported (found %s, allowed: full_attention, "
                                "sliding_attention)", i, type ? tg_quote_str(&q, type) : "no text");
        local = local && c->window > 0;
        c->layer[i] = (uint8_t)((c->layer[i] & ~TG_LAYER_LOCAL) | (local ? TG_LAYER_LOCAL : 0));
    }
    return true;
}

/* ---- the configuration ------------------------------------------------------------------------------ */

/* The activation that a folder names. */
static bool read_act(tg_config_reader *r, tg_config *c)
{
    static const char *const names[] = {"silu", "swish", "gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh",
                                        "relu"};
    static const tg_act acts[] = {TG_ACT_SILU, TG_ACT_SILU, TG_ACT_GELU_ERF, TG_ACT_GELU_TANH, TG_ACT_GELU_TANH,
                                  TG_ACT_GELU_TANH, TG_ACT_RELU};
    const char *key = tg_arch_key(r, TG_KEY_ACT);
    int i = -1;
    if (key && !tg_read_choice(r, key, false, names, sizeof names / sizeof *names, &i))
        return false;
    if (i >= 0)
        c->act = acts[i];
    return true;
}

static bool read_ints(tg_config_reader *r, tg_config *c)
{
    for (int i = 0; i < TG_KEY_INTS; i++) {
        const char *key = tg_arch_key(r, (tg_key)i);
        int *out = (int *)(void *)((char *)c + int_keys[i].at);
        if (key && !tg_read_int(r, key, int_keys[i].required && !*out, int_keys[i].min, int_keys[i].max, out))
            return false;
    }
    if (c->window > TG_MAX_CTX) /* nothing lies outside of either */
        c->window = TG_MAX_CTX;
    if (c->n_ff == 0 && r->arch->ff_is_4x)
        c->n_ff = 4 * c->n_embd;
    if (c->n_ff_expert == 0)
        c->n_ff_expert = c->n_ff;
    return true;
}

/* What both containers say in the same way, by keys. */
static bool read_common(tg_config_reader *r, tg_config *c)
{
    const bool gguf = r->kind == TG_CONTAINER_GGUF, rms = r->arch->norm == TG_NORM_RMS;
    const char *eps_key = !gguf ? tg_arch_key(r, TG_KEY_NORM_EPS)
                          : rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon";
    double eps = c->norm_eps != 0 ? (double)c->norm_eps : 1e-5;
    bool tied = c->tied == TG_TIED;
    int v_dim = 0, method = 0;
    if (!read_ints(r, c) || !tg_read_int(r, "vocab_size", false, 1, TG_MAX_VOCAB, &c->n_vocab) || !read_act(r, c) ||
        (eps_key && !tg_read_real(r, eps_key, rms && c->norm_eps == 0, &eps)))
        return false;
    c->norm_eps = (float)eps;
    if (gguf) {
        int k_dim = c->head_dim ? c->head_dim : c->n_head ? c->n_embd / c->n_head : 0;
        c->tied = TG_TIED_IF_ABSENT;
        if (!tg_read_int(r, "attention.value_length", false, 1, TG_MAX_EMBD, &v_dim))
            return false;
        return !v_dim || v_dim == k_dim ||
               tg_refuse(r, "value heads of another size are not supported (found %d, allowed %d)", v_dim, k_dim);
    }
    static const char *const methods[] = {"mxfp4"};
    if (!tg_read_bool(r, "tie_word_embeddings", &tied) ||
        !tg_read_choice(r, "quantization_config.quant_method", false, methods, 1, &method))
        return false;
    c->tied = tied ? TG_TIED : c->tied == TG_TIED ? TG_UNTIED : c->tied;
    return true;
}

static bool no_mixture(tg_config_reader *r, const tg_config *c)
{
    return c->n_expert == 0 || tg_arch_role_name(r->arch, r->kind, TG_ROLE_ROUTER) ||
           tg_refuse(r, "mixture of experts is not supported in this architecture (found %d experts)", c->n_expert);
}

static bool any_local(const tg_config *c)
{
    for (int i = 0; i < c->n_layer; i++)
        if (tg_config_is_local(c, i))
            return true;
    return false;
}

/* Sizes fit together. */
static bool check(tg_config_reader *r, tg_config *c)
{
    c->window = any_local(c) ? c->window : 0;
    if (c->n_ff == 0 && c->n_expert == 0)
        return tg_refuse(r, "required key missing: %s%s", r->prefix, tg_arch_key(r, TG_KEY_N_FF));
    if (c->n_head % c->n_head_kv != 0)
        return tg_refuse(r, "heads are not divisible by key-value heads (found %d and %d)", c->n_head, c->n_head_kv);
    if (c->n_head * c->head_dim > TG_MAX_FF)
        return tg_refuse(r, "heads too large (found %d of size %d)", c->n_head, c->head_dim);
    for (int i = 0; i < 2 && r->arch->pos == TG_POS_ROTARY; i++)
        if (c->rope[i].n_rot > c->head_dim || c->rope[i].n_rot % 2 != 0)
            return tg_refuse(r, "rotary dimensions (found %d, allowed: even, at most the head size %d)",
                             c->rope[i].n_rot, c->head_dim);
    if (c->rope[1].n_rot > c->rope[0].n_rot)
        return tg_refuse(r, "local layers that rotate more than the others are not supported (found %d dimensions and %d)",
                         c->rope[1].n_rot, c->rope[0].n_rot);
    if (c->soft_cap != 0 && !(c->soft_cap >= 1e-3f && c->soft_cap <= 1e9f))
        return tg_refuse(r, "cap of attention scores (found %g, allowed 0.001 to 1e9)", (double)c->soft_cap);
    if (c->n_expert == 0 && !tg_arch_role_name(r->arch, r->kind, TG_ROLE_FFN_DOWN))
        return tg_refuse(r, "%s%s (found 0, allowed: at least 1)", r->prefix, tg_arch_key(r, TG_KEY_N_EXPERT));
    if (c->n_expert > 0 && (c->n_expert_used < 1 || c->n_expert_used > c->n_expert || c->n_ff_expert == 0))
        return tg_refuse(r, "%s%s (found %d, allowed 1 to %d), or no size of an expert", r->prefix,
                         tg_arch_key(r, TG_KEY_N_EXPERT_USED), c->n_expert_used, c->n_expert);
    return no_mixture(r, c);
}

static bool read_all(tg_config_reader *r, tg_config *c)
{
    if (!read_common(r, c))
        return false;
    if (r->missing[0]) {
        tg_fail(r->err, TG_E_MODEL, tg_container_meta_path(r->c), "required keys missing: %s", r->missing);
        return false;
    }
    if (c->head_dim == 0 && c->n_embd % c->n_head != 0)
        return tg_refuse(r, "embedding is not divisible by heads, and there is no head size (found %d and %d)",
                         c->n_embd, c->n_head);
    if (c->head_dim == 0)
        c->head_dim = c->n_embd / c->n_head;
    if (c->n_head_kv == 0)
        c->n_head_kv = c->n_head;
    if (r->arch->pos == TG_POS_ROTARY && !tg_read_rope(r, c))
        return false;
    if (r->arch->configure && !r->arch->configure(r, c))
        return false;
    if (c->attn_scale == 0)
        c->attn_scale = (float)(1.0 / sqrt((double)c->head_dim));
    return check(r, c);
}

tg_status tg_config_load(const tg_container *c, const tg_arch **arch, const char **name, tg_config *config,
                         tg_error *err)
{
    tg_container_kind kind = tg_container_get_kind(c);
    const char *key = kind == TG_CONTAINER_GGUF ? "general.architecture" : "model_type";
    const char *path = tg_container_meta_path(c);
    size_t n_bytes;
    *arch = NULL;
    *name = "";
    *config = (tg_config){0};
    tg_meta found = tg_meta_string(c, key, name, &n_bytes, err);
    if (found == TG_META_BAD)
        return TG_E_MODEL;
    if (found == TG_META_ABSENT)
        return tg_fail(err, TG_E_MODEL, path, "required key missing: %s", key);
    *arch = strlen(*name) == n_bytes ? tg_arch_find(kind, *name) : NULL;
    if (!*arch) {
        char list[400];
        tg_arch_list(kind, list, sizeof list);
        tg_quoted q;
        return tg_fail(err, TG_E_MODEL, path, "architecture is not supported (found \"%s\", allowed: %s)",
                       tg_quote(&q, *name, n_bytes), list);
    }

    char prefix[64] = "";
    if (kind == TG_CONTAINER_GGUF)
        snprintf(prefix, sizeof prefix, "%s.", (*arch)->gguf_name);
    else if (json_is_object(json_object_get(tg_container_config(c), "text_config")))
        snprintf(prefix, sizeof prefix, "text_config."); /* of a model that also sees */
    tg_error local = {0}; /* so that a caller without a record still learns of a failure */
    tg_config_reader r = {.c = c, .arch = *arch, .kind = kind, .prefix = prefix, .group = "", .err = &local};
    *config = (*arch)->base;
    if (!read_all(&r, config))
        return tg_fail(err, local.status ? local.status : TG_E_MODEL, NULL, "%s", local.message);
    if (r.missing[0])
        return tg_fail(err, TG_E_MODEL, path, "required keys missing: %s", r.missing);
    return TG_OK;
}

float tg_config_attn_scale(const tg_config *c, int layer)
{
    return c->scale_by_layer ? (float)((double)c->attn_scale / (layer + 1)) : c->attn_scale;
}
