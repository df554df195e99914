/* chat.c - finds a model's chat template, and makes tokens of what it renders. */
#include "token/chat.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "token/jinja.h"

/* ---- the template ------------------------------------------------------------------------------- */

static tg_status copy_text(char **out, const char *s, size_t n, tg_error *err)
{
    *out = tg_alloc(n + 1, 1, "a chat template", err);
    if (!*out)
        return TG_E_RESOURCE;
    if (n)
        memcpy(*out, s, n);
    return TG_OK;
}

/* A member "chat_template": the text, or a list of named ones. */
static const json_t *member_of(const json_t *root)
{
    const json_t *value = json_object_get(root, "chat_template");
    for (size_t i = 0; json_is_array(value) && i < json_array_size(value); i++) {
        const json_t *item = json_array_get(value, i);
        const char *name = json_string_value(json_object_get(item, "name"));
        if (name && strcmp(name, "default") == 0)
            return json_object_get(item, "template");
    }
    return value;
}

static tg_status find_in_folder(const tg_container *c, char **text, tg_error *err)
{
    static const char *const names[] = {"chat_template.jinja", "chat_template.json", "tokenizer_config.json"};
    tg_status status = TG_OK;
    for (size_t i = 0; i < sizeof names / sizeof *names && status == TG_OK && !*text; i++) {
        tg_file file;
        char *path;
        status = tg_container_sidecar(c, names[i], TG_MAX_JSON_BYTES, &file, &path, err);
        if (status != TG_OK || !path)
            continue;
        json_t *root = i > 0 ? tg_json_parse(file.data, file.size, path, err) : NULL;
        const json_t *found = member_of(root);
        if (i == 0)
            status = copy_text(text, (const char *)file.data, file.size, err);
        else if (!root)
            status = TG_E_MODEL;
        else if (json_is_string(found))
            status = copy_text(text, json_string_value(found), json_string_length(found), err);
        json_decref(root);
        tg_file_close(&file);
        tg_free(path);
    }
    return status;
}

tg_status tg_chat_find(const tg_container *c, char **text, tg_error *err)
{
    const char *found;
    size_t n;
    *text = NULL;
    if (tg_container_get_kind(c) != TG_CONTAINER_GGUF)
        return find_in_folder(c, text, err);
    tg_meta there = tg_meta_string(c, "tokenizer.chat_template", &found, &n, err);
    return there == TG_META_FOUND ? copy_text(text, found, n, err) : there == TG_META_BAD ? TG_E_MODEL : TG_OK;
}

/* ---- rendering ---------------------------------------------------------------------------------- */

/* The text of a token that there may be. */
static const char *spelling(const tg_tokenizer *t, int32_t id, size_t *n)
{
    *n = 0;
    return id >= 0 ? tg_tokenizer_bytes(t, id, n) : NULL;
}

tg_status tg_chat_render(const tg_tokenizer *t, const char *file, const tg_chat_params *params,
                         const tg_chat_message *messages, size_t n, char **text, uint8_t **plain, size_t *n_bytes,
                         tg_error *err)
{
    tg_tokenizer_info info;
    tg_tokenizer_get_info(t, &info);
    tg_jinja_input in = {.template = params->jinja,
                         .n_bytes = strlen(params->jinja),
                         .file = file,
                         .messages = messages,
                         .n_messages = n,
                         .params = params};
    in.bos = spelling(t, info.bos, &in.n_bos);
    in.eos = spelling(t, info.eos, &in.n_eos);
    return tg_jinja_render(&in, text, plain, n_bytes, err);
}

/* One BOS before it: the template may have written one, as the model's policy would. */
static tg_status begin(const tg_tokenizer *t, int32_t **ids, size_t *n_ids, tg_error *err)
{
    tg_tokenizer_info info;
    tg_tokenizer_get_info(t, &info);
    if (!info.add_bos || info.bos < 0 || (*n_ids && **ids == info.bos))
        return TG_OK;
    int32_t *more = tg_alloc(*n_ids + 1, sizeof *more, "token ids", err);
    if (!more)
        return TG_E_RESOURCE;
    more[0] = info.bos;
    memcpy(more + 1, *ids, *n_ids * sizeof *more);
    free(*ids);
    *ids = more;
    ++*n_ids;
    return TG_OK;
}

tg_status tg_chat_encode(const tg_tokenizer *t, const char *file, const tg_chat_params *params,
                         const tg_chat_message *messages, size_t n, int32_t **ids, size_t *n_ids, tg_error *err)
{
    char *text;
    uint8_t *plain;
    size_t n_bytes;
    tg_status status = tg_chat_render(t, file, params, messages, n, &text, &plain, &n_bytes, err);
    if (status == TG_OK)
        status = tg_tokenizer_encode_mixed(t, text, plain, params->jinja, n_bytes, TG_TOK_SPECIAL, ids, n_ids, NULL, err);
    if (status == TG_OK && begin(t, ids, n_ids, err) != TG_OK) {
        free(*ids);
        *ids = NULL;
        *n_ids = 0;
        status = TG_E_RESOURCE;
    }
    free(text);
    free(plain);
    return status;
}

/* What the template writes behind an answer: the first token of that, when it is a special one. */
int32_t tg_chat_find_end(const tg_tokenizer *t, const char *file, const tg_chat_params *params)
{
    static const tg_chat_message messages[] = {{"user", "a", 1}, {"assistant", "b", 1}};
    tg_chat_params closed = *params;
    char *text;
    uint8_t *plain;
    size_t n, n_ids;
    int32_t *ids, id = -1;
    tg_error unheard;
    closed.closed = true;
    closed.special = false;
    if (tg_chat_render(t, file, &closed, messages, 2, &text, &plain, &n, &unheard) != TG_OK)
        return -1;
    size_t at = n;
    while (at > 0 && !plain[at - 1])
        at--;
    while (at < n && (text[at] == ' ' || text[at] == '\n'))
        at++;
    if (at < n && tg_tokenizer_encode(t, text + at, n - at, TG_TOK_SPECIAL, &ids, &n_ids, NULL, &unheard) == TG_OK) {
        if (n_ids && tg_tokenizer_kind(t, ids[0]) == TG_TOKEN_SPECIAL)
            id = ids[0];
        free(ids);
    }
    free(text);
    free(plain);
    return id;
}
