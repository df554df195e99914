/* arch.c - the table of architectures, and reading configuration by it. */
#include "model/arch.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const tg_arch *const table[] = {&tg_arch_gpt2, &tg_arch_llama};

enum { N_ARCH = sizeof table / sizeof *table };

static const char *arch_name(const tg_arch *a, tg_container_kind kind)
{
    return kind == TG_CONTAINER_GGUF ? a->gguf_name : a->hf_name;
}

const tg_arch *tg_arch_find(tg_container_kind kind, const char *name)
{
    for (int i = 0; i < N_ARCH; i++)
        if (strcmp(arch_name(table[i], kind), name) == 0)
            return table[i];
    return NULL;
}

void tg_arch_list(tg_container_kind kind, char *text, size_t n)
{
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < N_ARCH && used < n; i++)
        used += (size_t)snprintf(text + used, n - used, "%s%s", i ? ", " : "", arch_name(table[i], kind));
}

/* ---- reading ------------------------------------------------------------------------------------ */

static const char *full_key(const tg_config_reader *r, const char *key, char buffer[256])
{
    snprintf(buffer, 256, "%s%s", r->prefix, key);
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
        tg_fail(r->err, TG_E_MODEL, tg_container_path(r->c), "%s (found %g, allowed: above 0)", name, value);
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
    tg_fail(r->err, TG_E_MODEL, tg_container_path(r->c), "%s is not supported (found \"%s\", allowed: %s)",
            name, tg_quote(&q, value, n_bytes), list);
    return false;
}

/* What holds for every architecture: sizes fit together. */
static tg_status check(const tg_container *c, const tg_arch *arch, tg_config *config, tg_error *err)
{
    const char *path = tg_container_path(c);
    if (config->head_dim == 0) {
        if (config->n_embd % config->n_head != 0)
            return tg_fail(err, TG_E_MODEL, path,
                           "embedding is not divisible by heads, and there is no head size (found %d and %d)",
                           config->n_embd, config->n_head);
        config->head_dim = config->n_embd / config->n_head;
    }
    if (config->n_head_kv == 0)
        config->n_head_kv = config->n_head;
    if (config->n_head % config->n_head_kv != 0)
        return tg_fail(err, TG_E_MODEL, path,
                       "heads are not divisible by key-value heads (found %d and %d)", config->n_head,
                       config->n_head_kv);
    if (config->n_head * config->head_dim > TG_MAX_FF)
        return tg_fail(err, TG_E_MODEL, path, "heads too large (found %d of size %d)", config->n_head,
                       config->head_dim);
    if (arch->pos == TG_POS_ROTARY) {
        if (config->rope.n_rot == 0)
            config->rope.n_rot = config->head_dim;
        if (config->rope.n_rot > config->head_dim || config->rope.n_rot % 2 != 0)
            return tg_fail(err, TG_E_MODEL, path,
                           "rotary dimensions (found %d, allowed: even, at most the head size %d)",
                           config->rope.n_rot, config->head_dim);
    }
    return TG_OK;
}

tg_status tg_config_load(const tg_container *c, const tg_arch **arch, const char **name, tg_config *config,
                         tg_error *err)
{
    tg_container_kind kind = tg_container_get_kind(c);
    const char *key = kind == TG_CONTAINER_GGUF ? "general.architecture" : "model_type";
    const char *path = tg_container_path(c);
    size_t n_bytes;
    *arch = NULL;
    *name = "";
    *config = (tg_config){0};
    tg_meta found = tg_meta_string(c, key, name, &n_bytes, err);
    if (found == TG_META_BAD)
        return TG_E_MODEL;
    if (found == TG_META_ABSENT)
        return tg_fail(err, TG_E_MODEL, path, "required key missing: %s", key);
    *arch = tg_arch_find(kind, *name);
    if (!*arch) {
        char list[256];
        tg_arch_list(kind, list, sizeof list);
        tg_quoted q;
        return tg_fail(err, TG_E_MODEL, path, "architecture is not supported (found \"%s\", allowed: %s)",
                       tg_quote(&q, *name, n_bytes), list);
    }

    char prefix[64] = "";
    if (kind == TG_CONTAINER_GGUF)
        snprintf(prefix, sizeof prefix, "%s.", (*arch)->gguf_name);
    tg_error local = {0}; /* so that a caller without a record still learns of a failure */
    tg_config_reader r = {.c = c, .prefix = prefix, .err = &local};
    bool ok = (*arch)->configure[kind](&r, config) &&
              (kind == TG_CONTAINER_GGUF || /* there the embedding's rows say it */
               tg_read_int(&r, "vocab_size", false, 1, TG_MAX_VOCAB, &config->n_vocab));
    if (!ok)
        return tg_fail(err, local.status ? local.status : TG_E_MODEL, NULL, "%s", local.message);
    if (r.missing[0])
        return tg_fail(err, TG_E_MODEL, path, "required keys missing: %s", r.missing);
    return check(c, *arch, config, err);
}

float tg_config_attn_scale(const tg_config *c, int layer)
{
    double scale = c->scale_by_head_dim ? 1.0 / sqrt((double)c->head_dim) : 1.0;
    return (float)(c->scale_by_layer ? scale / (layer + 1) : scale);
}
