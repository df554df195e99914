/* load_folder.c - the tokenizer of a Hugging Face folder.
 *
 * tokenizer.json is taken when it is there; else vocab.json and merges.txt, whose pattern goes by
 * the class of the tokenizer. Beside them, tokenizer_config.json, config.json and
 * generation_config.json say which ids begin and end a text. */
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "token/build.h"

typedef struct folder {
    const tg_container *c;
    int n_vocab;
    tg_tokenizer *t;
    char *path;        /* of the vocabulary */
    char *config_path; /* of tokenizer_config.json */
    json_t *config;    /* its contents; NULL: absent */
    tg_error *err;
} folder;

/* Reads a file of the folder. Absent: *path stays NULL. */
static tg_status read_sidecar(folder *f, const char *name, tg_file *file, char **path)
{
    return tg_container_sidecar(f->c, name, TG_MAX_JSON_BYTES, file, path, f->err);
}

/* Parses one. Absent: *root and *path stay NULL. */
static tg_status load_sidecar(folder *f, const char *name, json_t **root, char **path)
{
    tg_file file;
    *root = NULL;
    tg_status status = read_sidecar(f, name, &file, path);
    if (status != TG_OK || !*path)
        return status;
    *root = tg_json_parse(file.data, file.size, *path, f->err);
    tg_file_close(&file);
    if (json_is_object(*root))
        return TG_OK;
    if (*root)
        tg_fail(f->err, TG_E_MODEL, *path, "not a JSON object (found %s)",
                tg_json_type_name(*root));
    json_decref(*root);
    *root = NULL;
    return f->err->status;
}

/* ---- which ids begin and end a text ---------------------------------------------------------- */

/* The text of a token that tokenizer_config.json names: a string, or an object with its content. */
static const char *named_token(const folder *f, const char *key)
{
    const json_t *value = json_object_get(f->config, key);
    return json_string_value(json_is_object(value) ? json_object_get(value, "content") : value);
}

static tg_status find_named(folder *f, const char *key, int32_t *id)
{
    const char *text = named_token(f, key);
    tg_quoted q;
    if (!text)
        return TG_OK;
    *id = tg_build_find(f->t, text, strlen(text));
    return *id >= 0 ? TG_OK
                    : tg_fail(f->err, TG_E_MODEL, f->config_path, "%s is no token (found '%s')",
                              key, tg_quote_str(&q, text));
}

/* An id of the file at `path`, or a list of them; the first becomes *id, unless it is set. */
static tg_status take_ids(folder *f, const json_t *root, const char *path, const char *key, bool ends, int32_t *id)
{
    const json_t *value = json_object_get(root, key);
    if (!value || json_is_null(value))
        return TG_OK;
    f->t->file = path;
    size_t n = json_is_array(value) ? json_array_size(value) : 1;
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_is_array(value) ? json_array_get(value, i) : value;
        int32_t checked;
        if (!json_is_integer(item))
            return tg_json_wrong_type(item, key, "integer", path, f->err);
        tg_status status = tg_build_id(f->t, key, json_integer_value(item), &checked, f->err);
        if (status != TG_OK)
            return status;
        f->t->vocab.tokens[checked].is_eog |= ends;
        if (*id < 0)
            *id = checked;
    }
    f->t->file = f->path;
    return TG_OK;
}

static tg_status load_ids(folder *f)
{
    char *path = NULL;
    json_t *generation;
    const json_t *config = tg_container_config(f->c);
    const char *config_path = tg_container_meta_path(f->c);
    tg_tokenizer *t = f->t;
    tg_status status = load_sidecar(f, "generation_config.json", &generation, &path);
    if (status == TG_OK)
        status = find_named(f, "bos_token", &t->bos);
    if (status == TG_OK)
        status = find_named(f, "eos_token", &t->eos);
    if (status == TG_OK)
        status = take_ids(f, config, config_path, "bos_token_id", false, &t->bos);
    if (status == TG_OK)
        status = take_ids(f, config, config_path, "eos_token_id", true, &t->eos);
    if (status == TG_OK)
        status = take_ids(f, generation, path, "eos_token_id", true, &t->eos);
    if (status == TG_OK && t->eos >= 0)
        t->vocab.tokens[t->eos].is_eog = true;
    json_decref(generation);
    tg_free(path);
    return status;
}

/* ---- vocab.json and merges.txt --------------------------------------------------------------- */

/* The pattern, by the class that the reference would take. */
static tg_status choose_pattern(folder *f)
{
    static const struct {
        const char *class, *model_type, *pre;
    } known[] = {
        {"GPT2Tokenizer", "gpt2", "gpt-2"},
        {"Qwen2Tokenizer", "qwen2", "qwen2"},
    };
    tg_quoted q;
    const char *class = json_string_value(json_object_get(f->config, "tokenizer_class"));
    const char *model_type =
        json_string_value(json_object_get(tg_container_config(f->c), "model_type"));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t n = strlen(known[i].class);
        bool same = class ? strncmp(class, known[i].class, n) == 0 &&
                                (!class[n] || strcmp(class + n, "Fast") == 0)
                          : model_type && strcmp(model_type, known[i].model_type) == 0;
        if (!same)
            continue;
        f->t->pre = tg_pretokenizer_by_name(known[i].pre);
        f->t->normalizer.nfc = f->t->pre->nfc;
        bool prefix = false;
        tg_status status =
            tg_json_get_bool(f->config, "add_prefix_space", &prefix, f->config_path, f->err);
        f->t->prefix = prefix ? TG_PREFIX_ALL : TG_PREFIX_NONE;
        return status;
    }
    return tg_fail(
        f->err, TG_E_MODEL, f->path,
        "without tokenizer.json, the tokenizer class must be GPT2Tokenizer or Qwen2Tokenizer "
        "(found '%s')",
        tg_quote_str(&q, class        ? class
                         : model_type ? model_type
                                      : ""));
}

static tg_status load_merge_lines(folder *f)
{
    tg_file file;
    char *path;
    tg_tokenizer *t = f->t;
    tg_status status = read_sidecar(f, "merges.txt", &file, &path);
    if (status != TG_OK)
        return status;
    if (!path)
        return tg_fail(f->err, TG_E_MODEL, f->path, "there is no merges.txt beside it");
    t->file = path;
    const char *s = (const char *)file.data;
    uint64_t line = 1;
    for (size_t i = 0, n; status == TG_OK && i < file.size; i += n + 1, line++) {
        const char *end = memchr(s + i, '\n', file.size - i);
        n = end ? (size_t)(end - s) - i : file.size - i;
        size_t length = n && end && s[i + n - 1] == '\r' ? n - 1 : n;
        if (!tg_is_version_line(s + i, length))
            status = tg_build_merge_text(t, s + i, length, line, f->err);
    }
    t->file = f->path;
    tg_file_close(&file);
    tg_free(path);
    return status;
}

/* added_tokens.json, from before tokenizer_config.json listed them, says too little of its tokens.
 */
static tg_status refuse_old_list(folder *f)
{
    tg_file file;
    char *path;
    tg_status status = read_sidecar(f, "added_tokens.json", &file, &path);
    if (status == TG_OK && path)
        status = tg_fail(f->err, TG_E_MODEL, path,
                         "not supported without added_tokens_decoder in tokenizer_config.json");
    tg_file_close(&file);
    tg_free(path);
    return status;
}

/* Tokens that stand outside the merges: those that tokenizer_config.json lists, and those it names.
 */
static tg_status load_added(folder *f)
{
    const char *key;
    json_t *entry;
    tg_added_token token;
    json_t *listed = json_object_get(f->config, "added_tokens_decoder");
    if (!listed) {
        tg_status status = refuse_old_list(f);
        if (status != TG_OK)
            return status;
    }
    json_object_foreach(listed, key, entry)
    {
        int64_t id = 0;
        size_t i = 0;
        for (; key[i] >= '0' && key[i] <= '9' && id <= INT32_MAX; i++)
            id = id * 10 + (key[i] - '0');
        if (i == 0 || key[i] || id > INT32_MAX) {
            tg_quoted q;
            return tg_fail(f->err, TG_E_MODEL, f->config_path, "not a token id (found '%s')",
                           tg_quote_str(&q, key));
        }
        tg_status status = tg_json_get_added(entry, &token, f->config_path, f->err);
        token.id = (int32_t)id;
        if (status == TG_OK)
            status = tg_build_added(f->t, &token, f->err);
        if (status != TG_OK)
            return status;
    }
    static const char *const names[] = {"bos_token", "eos_token", "unk_token", "pad_token"};
    for (size_t i = 0; i <= sizeof names / sizeof *names; i++) {
        const char *text =
            i < sizeof names / sizeof *names ? named_token(f, names[i]) : "<|endoftext|>";
        int32_t id = text ? tg_build_find(f->t, text, strlen(text)) : -1;
        if (id < 0 || f->t->vocab.tokens[id].is_added)
            continue;
        token = (tg_added_token){.text = text, .n_bytes = strlen(text), .id = id, .special = true};
        tg_status status = tg_build_added(f->t, &token, f->err);
        if (status != TG_OK)
            return status;
    }
    return TG_OK;
}

static tg_status load_pair(folder *f, const tg_file *vocab)
{
    f->t = tg_build_start(f->path, f->n_vocab, f->err);
    if (!f->t)
        return TG_E_RESOURCE;
    tg_status status = choose_pattern(f);
    if (status == TG_OK)
        status = tg_json_load_vocab(f->t, vocab->data, tg_json_range_all(vocab->data, vocab->size),
                                    f->err);
    if (status == TG_OK)
        status = load_merge_lines(f);
    return status == TG_OK ? load_added(f) : status;
}

/* Without a template, tokenizer_config.json says whether BOS and EOS stand around a text. */
static tg_status load_policy(folder *f)
{
    bool add_bos = false, add_eos = false;
    tg_tokenizer *t = f->t;
    tg_status status =
        tg_json_get_bool(f->config, "add_bos_token", &add_bos, f->config_path, f->err);
    if (status == TG_OK)
        status = tg_json_get_bool(f->config, "add_eos_token", &add_eos, f->config_path, f->err);
    if (status == TG_OK && add_bos && t->bos >= 0)
        status = tg_build_around(t, &t->before, t->bos, f->err);
    if (status == TG_OK && add_eos && t->eos >= 0)
        status = tg_build_around(t, &t->after, t->eos, f->err);
    return status;
}

static tg_status no_tokenizer(const folder *f)
{
    tg_file model;
    char *path = NULL;
    tg_status status = tg_container_sidecar(f->c, "tokenizer.model", INT64_MAX, &model, &path, f->err);
    if (status != TG_OK)
        return status;
    const char *found = path ? " (found tokenizer.model, which is not read)" : "";
    tg_file_close(&model);
    tg_free(path);
    return tg_fail(f->err, TG_E_MODEL, tg_container_path(f->c),
                   "no tokenizer: neither tokenizer.json, nor vocab.json with merges.txt%s", found);
}

/* ---- the folder ------------------------------------------------------------------------------ */

static tg_status load(folder *f)
{
    tg_file file = {0};
    tg_status status = load_sidecar(f, "tokenizer_config.json", &f->config, &f->config_path);
    if (status == TG_OK)
        status = read_sidecar(f, "tokenizer.json", &file, &f->path);
    if (status != TG_OK)
        return status;
    bool whole = f->path != NULL;
    if (whole) {
        status = tg_load_json(&f->t, file.data, file.size, f->path, f->n_vocab, f->err);
    } else {
        status = read_sidecar(f, "vocab.json", &file, &f->path);
        if (status == TG_OK && !f->path)
            status = no_tokenizer(f);
        if (status == TG_OK)
            status = load_pair(f, &file);
    }
    tg_file_close(&file);
    if (status == TG_OK)
        status = load_ids(f);
    if (status == TG_OK && !whole)
        status = load_policy(f);
    return status == TG_OK ? tg_build_finish(f->t, f->err) : status;
}

tg_status tg_load_folder(tg_tokenizer **tokenizer, const tg_container *c, int n_vocab,
                         tg_error *err)
{
    folder f = {.c = c, .n_vocab = n_vocab, .err = err};
    tg_status status = load(&f);
    if (status == TG_OK)
        *tokenizer = f.t;
    else
        tg_tokenizer_free(f.t);
    json_decref(f.config);
    tg_free(f.path);
    tg_free(f.config_path);
    return status;
}
