/* load_json.c - a tokenizer from a tokenizer.json: its model. The components around that are read
 * by load_parts.c.
 *
 * Nearly all of the file is the vocabulary and the merges. They are walked where they stand; the
 * rest is parsed. */
#include <inttypes.h>
#include <string.h>

#include "base/json_walk.h"
#include "token/build.h"

/* ---- reading members ---------------------------------------------------------------------- */

tg_status tg_json_wrong_type(const json_t *value, const char *key, const char *wanted,
                             const char *path, tg_error *err)
{
    return tg_fail(err, TG_E_MODEL, path, "%s has the wrong type (found %s, allowed %s)", key,
                   value ? tg_json_type_name(value) : "nothing", wanted);
}

tg_status tg_json_refuse(const char *what, const char *found, const char *path, tg_error *err)
{
    tg_quoted q;
    return tg_fail(err, TG_E_MODEL, path, "%s not supported (found '%s')", what,
                   tg_quote_str(&q, found));
}

tg_status tg_json_get_bool(const json_t *object, const char *key, bool *out, const char *path,
                           tg_error *err)
{
    const json_t *value = json_object_get(object, key);
    if (!value || json_is_null(value))
        return TG_OK;
    if (!json_is_boolean(value))
        return tg_json_wrong_type(value, key, "boolean", path, err);
    *out = json_is_true(value);
    return TG_OK;
}

tg_status tg_json_get_text(const json_t *object, const char *key, const char **out,
                           const char *path, tg_error *err)
{
    const json_t *value = json_object_get(object, key);
    if (!value || json_is_null(value))
        return TG_OK;
    if (!json_is_string(value))
        return tg_json_wrong_type(value, key, "string", path, err);
    *out = json_string_value(value);
    return TG_OK;
}

tg_status tg_json_get_added(const json_t *entry, tg_added_token *token, const char *path,
                            tg_error *err)
{
    const json_t *content = json_object_get(entry, "content");
    if (!json_is_string(content))
        return tg_json_wrong_type(content, "content of an added token", "string", path, err);
    *token = (tg_added_token){.text = json_string_value(content),
                              .n_bytes = json_string_length(content)};
    const struct {
        const char *key;
        bool *out;
    } flags[] = {
        {"special", &token->special},       {"single_word", &token->single_word},
        {"lstrip", &token->lstrip},         {"rstrip", &token->rstrip},
        {"normalized", &token->normalized},
    };
    tg_status status = TG_OK;
    for (size_t i = 0; status == TG_OK && i < sizeof flags / sizeof *flags; i++)
        status = tg_json_get_bool(entry, flags[i].key, flags[i].out, path, err);
    return status;
}

/* ---- vocabulary and merges ------------------------------------------------------------------ */

/* How many items the range has, judged by the commas near its beginning. */
static uint64_t about(const void *bytes, tg_json_range range, unsigned commas)
{
    size_t n = range.to - range.from, seen = n < 65536 ? n : 65536;
    uint64_t found = commas;
    for (size_t i = 0; i < seen; i++)
        found += ((const char *)bytes)[range.from + i] == ',';
    return seen ? (uint64_t)((double)found * (double)n / (double)seen) / commas : 0;
}

/* The walk stands before a value of another type than `wanted`. */
static bool is_other(tg_json_walk *w, const char *what, const char *wanted)
{
    const char *type = tg_json_walk_type(w);
    if (strcmp(type, wanted) == 0)
        return false;
    tg_fail(w->err, TG_E_MODEL, w->file, "%s has the wrong type (found %s, allowed %s)", what, type,
            wanted);
    w->failed = true;
    return true;
}

tg_status tg_json_load_vocab(tg_tokenizer *t, const void *bytes, tg_json_range range, tg_error *err)
{
    tg_json_walk w = tg_json_walk_start(bytes, range, t->file, err);
    tg_status status = tg_build_reserve(t, about(bytes, range, 1), 0, err);
    if (status != TG_OK || is_other(&w, "vocab", "object"))
        return err->status;
    tg_json_walk_open(&w, '{');
    while (status == TG_OK && tg_json_walk_next(&w, '}')) {
        const uint8_t *text;
        size_t n;
        int64_t id;
        if (!tg_json_walk_string(&w, 0, true, &text, &n) ||
            is_other(&w, "an id in vocab", "integer") || !tg_json_walk_int(&w, &id))
            break;
        status = tg_build_token(t, id, text, n, err);
    }
    w.failed |= status != TG_OK;
    status = tg_json_walk_end(&w);
    return status == TG_OK ? tg_build_check_tokens(t, err) : status;
}

bool tg_is_version_line(const char *text, size_t n)
{
    static const char start[] = "#version";
    return n >= sizeof start - 1 && memcmp(text, start, sizeof start - 1) == 0;
}

/* One merge: a text, or a pair. */
static tg_status load_merge(tg_tokenizer *t, tg_json_walk *w, uint64_t line, tg_error *err)
{
    const uint8_t *part[2];
    size_t n[2];
    int k = 0;
    if (strcmp(tg_json_walk_type(w), "string") == 0) {
        if (!tg_json_walk_string(w, 0, false, &part[0], &n[0]) ||
            tg_is_version_line((const char *)part[0], n[0]))
            return err->status;
        return tg_build_merge_text(t, part[0], n[0], line, err);
    }
    bool more = false;
    if (strcmp(tg_json_walk_type(w), "array") == 0) {
        tg_json_walk_open(w, '[');
        while ((more = tg_json_walk_next(w, ']')) && k < 2 &&
               strcmp(tg_json_walk_type(w), "string") == 0 &&
               tg_json_walk_string(w, k, false, &part[k], &n[k]))
            k++;
    }
    if (w->failed)
        return err->status;
    if (k != 2 || more)
        return tg_fail(err, TG_E_MODEL, t->file, "merge %" PRIu64 " has not two parts", line);
    return tg_build_merge(t, part[0], n[0], part[1], n[1], line, err);
}

static tg_status load_merges(tg_tokenizer *t, const void *bytes, tg_json_range range, tg_error *err)
{
    tg_json_walk w = tg_json_walk_start(bytes, range, t->file, err);
    if (is_other(&w, "merges", "array"))
        return err->status;
    tg_json_walk_open(&w, '[');
    unsigned commas = strcmp(tg_json_walk_type(&w), "array") == 0 ? 2 : 1; /* of a merge */
    tg_status status = tg_build_reserve(t, 0, about(bytes, range, commas), err);
    for (uint64_t line = 1; status == TG_OK && tg_json_walk_next(&w, ']'); line++)
        status = load_merge(t, &w, line, err);
    w.failed |= status != TG_OK;
    return tg_json_walk_end(&w);
}

/* ---- the model ---------------------------------------------------------------------------- */

/* What changes the result and is not implemented must be off. */
static tg_status check_model(tg_tokenizer *t, const json_t *model, tg_error *err)
{
    const char *prefix = "", *suffix = "";
    if (!json_is_object(model))
        return tg_json_wrong_type(model, "model", "object", t->file, err);
    const char *type = json_string_value(json_object_get(model, "type"));
    if (!type || strcmp(type, "BPE") != 0)
        return tg_json_refuse("tokenizer model", type ? type : "", t->file, err);
    const json_t *dropout = json_object_get(model, "dropout");
    if (dropout && !json_is_null(dropout) && json_number_value(dropout) != 0)
        return tg_json_refuse("tokenizer model", "BPE with dropout", t->file, err);
    tg_status status = tg_json_get_bool(model, "byte_fallback", &t->byte_fallback, t->file, err);
    if (status == TG_OK)
        status = tg_json_get_text(model, "continuing_subword_prefix", &prefix, t->file, err);
    if (status == TG_OK)
        status = tg_json_get_text(model, "end_of_word_suffix", &suffix, t->file, err);
    if (status == TG_OK && (*prefix || *suffix))
        status = tg_json_refuse("tokenizer model", "BPE with subword affixes", t->file, err);
    if (status == TG_OK)
        status = tg_json_get_bool(model, "ignore_merges", &t->ignore_merges, t->file, err);
    return status == TG_OK ? tg_json_get_bool(model, "fuse_unk", &t->bpe.fuse_unknown, t->file, err)
                           : status;
}

static tg_status load_unknown(tg_tokenizer *t, const json_t *model, tg_error *err)
{
    const char *text = NULL;
    tg_quoted q;
    tg_status status = tg_json_get_text(model, "unk_token", &text, t->file, err);
    if (status != TG_OK || !text)
        return status;
    t->bpe.unknown = tg_vocab_find(&t->vocab, text, strlen(text));
    return t->bpe.unknown >= 0
               ? TG_OK
               : tg_fail(err, TG_E_MODEL, t->file, "unk_token is no token (found '%s')",
                         tg_quote_str(&q, text));
}

/* The reference gives an added token that the model does not know the next free id, whatever the
 * file says: only where both agree can ids be trusted. */
static tg_status load_added(tg_tokenizer *t, const json_t *added, size_t n_model, tg_error *err)
{
    int64_t next = (int64_t)n_model;
    const json_t *entry;
    size_t i;
    tg_quoted q;
    if (added && !json_is_array(added))
        return tg_json_wrong_type(added, "added_tokens", "array", t->file, err);
    json_array_foreach(added, i, entry)
    {
        tg_added_token token;
        tg_status status = tg_json_get_added(entry, &token, t->file, err);
        if (status != TG_OK)
            return status;
        const json_t *id = json_object_get(entry, "id");
        if (!json_is_integer(id))
            return tg_json_wrong_type(id, "id of an added token", "integer", t->file, err);
        int64_t value = json_integer_value(id);
        if (value < 0 || value >= t->vocab.n_ids)
            return tg_fail(err, TG_E_MODEL, t->file,
                           "token id out of range (found %" PRId64 ", allowed 0 to %d)", value,
                           t->vocab.n_ids - 1);
        token.id = (int32_t)value;
        bool known = tg_vocab_find(&t->vocab, token.text, token.n_bytes) >= 0;
        if (!known && token.n_bytes && value != next)
            return tg_fail(err, TG_E_MODEL, t->file,
                           "added token '%s' has an id out of order (found %" PRId64
                           ", allowed %" PRId64 ")",
                           tg_quote(&q, token.text, token.n_bytes), value, next);
        next += !known && token.n_bytes;
        status = tg_build_added(t, &token, err);
        if (status != TG_OK)
            return status;
    }
    return TG_OK;
}

tg_status tg_load_json(tg_tokenizer **tokenizer, const void *bytes, size_t n, const char *path,
                       int n_vocab, tg_error *err)
{
    static const char *const keys[] = {"vocab", "merges"};
    tg_json_range ranges[2];
    *tokenizer = NULL;
    json_t *root = tg_json_parse_around(bytes, n, path, "model", keys, ranges, 2, err);
    if (!root)
        return err->status;
    if (!json_is_object(root)) {
        tg_fail(err, TG_E_MODEL, path, "not a JSON object (found %s)", tg_json_type_name(root));
        json_decref(root);
        return err->status;
    }
    const json_t *model = json_object_get(root, "model");
    tg_tokenizer *t = tg_build_start(path, n_vocab, err);
    tg_status status = t ? check_model(t, model, err) : TG_E_RESOURCE;
    if (status == TG_OK)
        status = tg_json_load_parts(t, root, err);
    if (status == TG_OK)
        status = tg_json_load_vocab(t, bytes, ranges[0], err);
    size_t n_model = t ? t->vocab.n_used : 0;
    if (status == TG_OK)
        status = load_merges(t, bytes, ranges[1], err);
    if (status == TG_OK)
        status = load_unknown(t, model, err);
    if (status == TG_OK)
        status = load_added(t, json_object_get(root, "added_tokens"), n_model, err);
    if (status == TG_OK)
        status = tg_json_load_around(t, root, err);
    json_decref(root);
    if (status == TG_OK)
        *tokenizer = t;
    else
        tg_tokenizer_free(t);
    return status;
}
