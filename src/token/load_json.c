/* load_json.c - a tokenizer from a parsed tokenizer.json.
 *
 * The file can describe far more than tinygpt implements: each component is recognised whole or
 * refused by name (M59). */
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "token/build.h"

/* ---- reading members ---------------------------------------------------------------------- */

static tg_status wrong_type(const json_t *value, const char *key, const char *wanted,
                            const char *path, tg_error *err)
{
    return tg_fail(err, TG_E_MODEL, path, "%s has the wrong type (found %s, allowed %s)", key,
                   value ? tg_json_type_name(value) : "nothing", wanted);
}

tg_status tg_json_get_bool(const json_t *object, const char *key, bool *out, const char *path,
                           tg_error *err)
{
    const json_t *value = json_object_get(object, key);
    if (!value || json_is_null(value))
        return TG_OK;
    if (!json_is_boolean(value))
        return wrong_type(value, key, "boolean", path, err);
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
        return wrong_type(value, key, "string", path, err);
    *out = json_string_value(value);
    return TG_OK;
}

tg_status tg_json_get_added(const json_t *entry, tg_added_token *token, const char *path,
                            tg_error *err)
{
    const json_t *content = json_object_get(entry, "content");
    if (!json_is_string(content))
        return wrong_type(content, "content of an added token", "string", path, err);
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

tg_status tg_json_load_vocab(tg_tokenizer *t, const json_t *vocab, tg_error *err)
{
    if (!json_is_object(vocab))
        return wrong_type(vocab, "vocab", "object", t->file, err);
    void *at = json_object_iter((json_t *)(uintptr_t)vocab);
    for (; at; at = json_object_iter_next((json_t *)(uintptr_t)vocab, at)) {
        const char *text = json_object_iter_key(at); /* has no NUL inside: the parser saw to it */
        const json_t *id = json_object_iter_value(at);
        if (!json_is_integer(id))
            return wrong_type(id, "an id in vocab", "integer", t->file, err);
        tg_status status = tg_build_token(t, json_integer_value(id), text, strlen(text), err);
        if (status != TG_OK)
            return status;
    }
    return tg_build_check_tokens(t, err);
}

/* ---- components --------------------------------------------------------------------------- */

/* A component and its parts, if it is a Sequence. */
typedef struct parts {
    const json_t *part[8];
    size_t n;
} parts;

static const char *type_of(const json_t *component)
{
    const char *type = json_string_value(json_object_get(component, "type"));
    return type ? type : "";
}

static bool is_type(const json_t *component, const char *type)
{
    return strcmp(type_of(component), type) == 0;
}

static tg_status refuse(const char *what, const char *found, const char *path, tg_error *err)
{
    tg_quoted q;
    return tg_fail(err, TG_E_MODEL, path, "%s not supported (found '%s')", what,
                   tg_quote_str(&q, found));
}

/* Member `key` of the root; the parts of a Sequence stand under `list`. */
static tg_status get_parts(const json_t *root, const char *key, const char *list, parts *p,
                           const char *path, tg_error *err)
{
    const json_t *component = json_object_get(root, key);
    *p = (parts){.n = 0};
    if (!component || json_is_null(component))
        return TG_OK;
    if (!json_is_object(component))
        return wrong_type(component, key, "object", path, err);
    if (!is_type(component, "Sequence")) {
        p->part[p->n++] = component;
        return TG_OK;
    }
    const json_t *members = json_object_get(component, list);
    if (!json_is_array(members))
        return wrong_type(members, list, "array", path, err);
    if (json_array_size(members) > sizeof p->part / sizeof *p->part)
        return tg_fail(err, TG_E_MODEL, path, "%s has too many parts (found %zu)", key,
                       json_array_size(members));
    while (p->n < json_array_size(members)) {
        p->part[p->n] = json_array_get(members, p->n);
        p->n++;
    }
    return TG_OK;
}

static tg_status load_normalizer(tg_tokenizer *t, const json_t *root, tg_error *err)
{
    parts p;
    tg_status status = get_parts(root, "normalizer", "normalizers", &p, t->file, err);
    for (size_t i = 0; status == TG_OK && i < p.n; i++) {
        if (!is_type(p.part[i], "NFC"))
            return refuse("normalizer", type_of(p.part[i]), t->file, err);
        t->nfc = true;
    }
    return status;
}

/* The expression of a Split whose pieces are its matches, in either way of saying so: the expressions
 * of the table leave nothing out. *regex stays NULL for any other. */
static void get_split(const json_t *split, const char **regex)
{
    const char *behavior = json_string_value(json_object_get(split, "behavior"));
    const char *wanted = json_is_true(json_object_get(split, "invert")) ? "Removed" : "Isolated";
    if (behavior && strcmp(behavior, wanted) == 0)
        *regex = json_string_value(json_object_get(json_object_get(split, "pattern"), "Regex"));
}

/* [Digits] [Split] ByteLevel, where the last either brings the expression of GPT-2 or leaves it to
 * Split. */
static tg_status load_pre_tokenizer(tg_tokenizer *t, const json_t *root, tg_error *err)
{
    static const char what[] = "pre-tokenizer";
    parts p;
    tg_status status = get_parts(root, "pre_tokenizer", "pretokenizers", &p, t->file, err);
    if (status != TG_OK)
        return status;
    if (p.n == 0)
        return refuse(what, "null", t->file, err);
    size_t i = 0;
    bool digits = is_type(p.part[i], "Digits");
    if (digits && !json_is_true(json_object_get(p.part[i], "individual_digits")))
        return refuse(what, "Digits without individual_digits", t->file, err);
    i += digits;

    const char *regex = NULL;
    bool split = i < p.n && is_type(p.part[i], "Split");
    if (split)
        get_split(p.part[i], &regex);
    if (split && !regex)
        return refuse(what, "Split that does not isolate a Regex", t->file, err);
    i += split;

    if (i + 1 != p.n || !is_type(p.part[i], "ByteLevel"))
        return refuse(what, i < p.n ? type_of(p.part[i]) : "no ByteLevel", t->file, err);
    bool own_regex = true;
    status = tg_json_get_bool(p.part[i], "use_regex", &own_regex, t->file, err);
    if (status == TG_OK)
        status = tg_json_get_bool(p.part[i], "add_prefix_space", &t->prefix_space, t->file, err);
    if (status != TG_OK)
        return status;
    if (own_regex == split)
        return refuse(
            what, split ? "Split before a ByteLevel with use_regex" : "ByteLevel without use_regex",
            t->file, err);
    if (t->prefix_space && p.n > 1)
        return refuse(what, "add_prefix_space after another pre-tokenizer", t->file, err);
    t->pre = tg_pretokenizer_by_regex(own_regex ? tg_pretokenizer_gpt2_regex : regex, digits);
    return t->pre ? TG_OK : refuse(what, regex, t->file, err);
}

static tg_status check_decoder(tg_tokenizer *t, const json_t *root, tg_error *err)
{
    parts p;
    tg_status status = get_parts(root, "decoder", "decoders", &p, t->file, err);
    for (size_t i = 0; status == TG_OK && i < p.n; i++)
        if (p.n > 1 || !is_type(p.part[i], "ByteLevel"))
            return refuse("decoder", type_of(p.part[i]), t->file, err);
    return status;
}

/* ---- the post-processor: what stands around a text ------------------------------------------ */

static tg_status load_template(tg_tokenizer *t, const json_t *processor, tg_error *err)
{
    const json_t *single = json_object_get(processor, "single"), *piece, *id;
    const json_t *specials = json_object_get(processor, "special_tokens");
    tg_around *around = &t->before;
    size_t i, k;
    if (!json_is_array(single))
        return wrong_type(single, "single", "array", t->file, err);
    json_array_foreach(single, i, piece)
    {
        const json_t *sequence = json_object_get(piece, "Sequence");
        const json_t *special = json_object_get(piece, "SpecialToken");
        if (sequence && around == &t->before) {
            around = &t->after;
            continue;
        }
        const char *name = json_string_value(json_object_get(special, "id"));
        const json_t *ids = name ? json_object_get(json_object_get(specials, name), "ids") : NULL;
        if (!json_is_array(ids))
            return refuse("template", name ? name : "a piece of another kind", t->file, err);
        json_array_foreach(ids, k, id)
        {
            int32_t checked;
            if (!json_is_integer(id))
                return wrong_type(id, "an id of a special token", "integer", t->file, err);
            tg_status status =
                tg_build_id(t, "id of a special token", json_integer_value(id), &checked, err);
            if (status == TG_OK)
                status = tg_build_around(t, around, checked, err);
            if (status != TG_OK)
                return status;
        }
    }
    return around == &t->after ? TG_OK : refuse("template", "one without the text", t->file, err);
}

static tg_status load_post_processor(tg_tokenizer *t, const json_t *root, tg_error *err)
{
    parts p;
    bool seen = false;
    tg_status status = get_parts(root, "post_processor", "processors", &p, t->file, err);
    for (size_t i = 0; status == TG_OK && i < p.n; i++) {
        if (is_type(p.part[i], "ByteLevel")) /* moves offsets, not ids */
            continue;
        if (!is_type(p.part[i], "TemplateProcessing") || seen)
            return refuse("post-processor", type_of(p.part[i]), t->file, err);
        seen = true;
        status = load_template(t, p.part[i], err);
    }
    return status;
}

/* ---- the model ---------------------------------------------------------------------------- */

/* What changes the result and is not implemented must be off. */
static tg_status check_model(tg_tokenizer *t, const json_t *model, tg_error *err)
{
    bool byte_fallback = false;
    const char *prefix = "", *suffix = "";
    if (!json_is_object(model))
        return wrong_type(model, "model", "object", t->file, err);
    if (!is_type(model, "BPE"))
        return refuse("tokenizer model", type_of(model), t->file, err);
    const json_t *dropout = json_object_get(model, "dropout");
    if (dropout && !json_is_null(dropout) && json_number_value(dropout) != 0)
        return refuse("tokenizer model", "BPE with dropout", t->file, err);
    tg_status status = tg_json_get_bool(model, "byte_fallback", &byte_fallback, t->file, err);
    if (status == TG_OK)
        status = tg_json_get_text(model, "continuing_subword_prefix", &prefix, t->file, err);
    if (status == TG_OK)
        status = tg_json_get_text(model, "end_of_word_suffix", &suffix, t->file, err);
    if (status == TG_OK && (byte_fallback || *prefix || *suffix))
        status = refuse("tokenizer model",
                        byte_fallback ? "BPE with byte_fallback" : "BPE with subword affixes",
                        t->file, err);
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

bool tg_is_version_line(const char *text, size_t n)
{
    static const char start[] = "#version";
    return n >= sizeof start - 1 && memcmp(text, start, sizeof start - 1) == 0;
}

static tg_status load_merges(tg_tokenizer *t, const json_t *merges, tg_error *err)
{
    const json_t *merge;
    size_t i;
    tg_status status = TG_OK;
    if (!json_is_array(merges))
        return wrong_type(merges, "merges", "array", t->file, err);
    json_array_foreach(merges, i, merge)
    {
        const json_t *left = json_array_get(merge, 0), *right = json_array_get(merge, 1);
        if (json_is_string(merge) &&
            tg_is_version_line(json_string_value(merge), json_string_length(merge)))
            continue;
        if (json_is_string(merge))
            status = tg_build_merge_text(t, json_string_value(merge), json_string_length(merge),
                                         i + 1, err);
        else if (json_array_size(merge) == 2 && json_is_string(left) && json_is_string(right))
            status =
                tg_build_merge(t, json_string_value(left), json_string_length(left),
                               json_string_value(right), json_string_length(right), i + 1, err);
        else
            status = tg_fail(err, TG_E_MODEL, t->file, "merge %zu has not two parts", i + 1);
        if (status != TG_OK)
            break;
    }
    return status;
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
        return wrong_type(added, "added_tokens", "array", t->file, err);
    json_array_foreach(added, i, entry)
    {
        tg_added_token token;
        tg_status status = tg_json_get_added(entry, &token, t->file, err);
        if (status != TG_OK)
            return status;
        const json_t *id = json_object_get(entry, "id");
        if (!json_is_integer(id))
            return wrong_type(id, "id of an added token", "integer", t->file, err);
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

tg_status tg_load_json(tg_tokenizer **tokenizer, const json_t *root, const char *path, int n_vocab,
                       tg_error *err)
{
    const json_t *model = json_object_get(root, "model"), *vocab = json_object_get(model, "vocab");
    tg_tokenizer *t = tg_build_start(path, n_vocab, err);
    *tokenizer = NULL;
    if (!t)
        return TG_E_RESOURCE;
    tg_status status = check_model(t, model, err);
    if (status == TG_OK)
        status = load_normalizer(t, root, err);
    if (status == TG_OK)
        status = load_pre_tokenizer(t, root, err);
    if (status == TG_OK)
        status = check_decoder(t, root, err);
    if (status == TG_OK)
        status = tg_json_load_vocab(t, vocab, err);
    if (status == TG_OK)
        status = load_merges(t, json_object_get(model, "merges"), err);
    if (status == TG_OK)
        status = load_unknown(t, model, err);
    if (status == TG_OK)
        status = load_added(t, json_object_get(root, "added_tokens"), json_object_size(vocab), err);
    if (status == TG_OK)
        status = load_post_processor(t, root, err);
    if (status == TG_OK)
        *tokenizer = t;
    else
        tg_tokenizer_free(t);
    return status;
}
