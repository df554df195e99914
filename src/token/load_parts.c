/* load_parts.c - the components of a tokenizer.json around its model.
 *
 * The file can describe far more than tinygpt implements: each component is recognised whole or
 * refused by name (M59). */
#include <string.h>

#include "base/json.h"
#include "token/build.h"

#define MARK "\xe2\x96\x81" /* U+2581, a space of SentencePiece's */
#define PRE  "pre-tokenizer"

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

/* Member `key` of the root; the parts of a Sequence stand under `list`. */
static tg_status get_parts(const json_t *root, const char *key, const char *list, parts *p,
                           const char *path, tg_error *err)
{
    const json_t *component = json_object_get(root, key);
    *p = (parts){.n = 0};
    if (!component || json_is_null(component))
        return TG_OK;
    if (!json_is_object(component))
        return tg_json_wrong_type(component, key, "object", path, err);
    if (!is_type(component, "Sequence")) {
        p->part[p->n++] = component;
        return TG_OK;
    }
    const json_t *members = json_object_get(component, list);
    if (!json_is_array(members))
        return tg_json_wrong_type(members, list, "array", path, err);
    if (json_array_size(members) > sizeof p->part / sizeof *p->part)
        return tg_fail(err, TG_E_MODEL, path, "%s has too many parts (found %zu)", key,
                       json_array_size(members));
    while (p->n < json_array_size(members)) {
        p->part[p->n] = json_array_get(members, p->n);
        p->n++;
    }
    return TG_OK;
}

/* Is the text of member `key` this one? */
static bool says(const json_t *component, const char *key, const char *text)
{
    const char *found = json_string_value(json_object_get(component, key));
    return found && strcmp(found, text) == 0;
}

/* ---- before the pieces: normalizer and pre-tokenizer ------------------------------------------
 */

static tg_status load_normalizer(tg_tokenizer *t, const json_t *root, tg_error *err)
{
    parts p;
    tg_status status = get_parts(root, "normalizer", "normalizers", &p, t->file, err);
    for (size_t i = 0; status == TG_OK && i < p.n; i++) {
        const json_t *part = p.part[i];
        if (is_type(part, "NFC"))
            t->normalizer.nfc = true;
        else if (is_type(part, "Prepend") && says(part, "prepend", MARK) && !t->normalizer.prefix)
            t->normalizer.prefix = true;
        else if (is_type(part, "Replace") && says(part, "content", MARK) &&
                 says(json_object_get(part, "pattern"), "String", " "))
            t->normalizer.spaces = true;
        else
            return tg_json_refuse("normalizer", type_of(part), t->file, err);
    }
    return status;
}

/* The expression of a Split whose pieces are its matches, in either way of saying so: the
 * expressions of the table leave nothing out. *regex stays NULL for any other. */
static void get_split(const json_t *split, const char **regex)
{
    const char *wanted = json_is_true(json_object_get(split, "invert")) ? "Removed" : "Isolated";
    if (says(split, "behavior", wanted))
        *regex = json_string_value(json_object_get(json_object_get(split, "pattern"), "Regex"));
}

/* [Digits] [Split] ByteLevel, where the last either brings the expression of GPT-2 or leaves it to
 * Split. */
static tg_status load_byte_level(tg_tokenizer *t, const parts *p, tg_error *err)
{
    size_t i = 0;
    bool digits = is_type(p->part[i], "Digits");
    if (digits && !json_is_true(json_object_get(p->part[i], "individual_digits")))
        return tg_json_refuse(PRE, "Digits without individual_digits", t->file, err);
    i += digits;

    const char *regex = NULL;
    bool split = i < p->n && is_type(p->part[i], "Split");
    if (split)
        get_split(p->part[i], &regex);
    if (split && !regex)
        return tg_json_refuse(PRE, "Split that does not isolate a Regex", t->file, err);
    i += split;

    if (i + 1 != p->n || !is_type(p->part[i], "ByteLevel"))
        return tg_json_refuse(PRE, i < p->n ? type_of(p->part[i]) : "no ByteLevel", t->file, err);
    bool own_regex = true, prefix = false;
    tg_status status = tg_json_get_bool(p->part[i], "use_regex", &own_regex, t->file, err);
    if (status == TG_OK)
        status = tg_json_get_bool(p->part[i], "add_prefix_space", &prefix, t->file, err);
    if (status != TG_OK)
        return status;
    if (own_regex == split)
        return tg_json_refuse(
            PRE, split ? "Split before a ByteLevel with use_regex" : "ByteLevel without use_regex",
            t->file, err);
    if (prefix && p->n > 1)
        return tg_json_refuse(PRE, "add_prefix_space after another pre-tokenizer", t->file, err);
    if (t->normalizer.prefix || t->normalizer.spaces)
        return tg_json_refuse("normalizer", "Prepend or Replace before ByteLevel", t->file, err);
    if (t->byte_fallback)
        return tg_json_refuse("tokenizer model", "BPE with byte_fallback", t->file, err);
    t->prefix = prefix ? TG_PREFIX_ALL : TG_PREFIX_NONE;
    t->pre = tg_pretokenizer_by_regex(own_regex ? tg_pretokenizer_gpt2_regex : regex, digits);
    return t->pre ? TG_OK : tg_json_refuse(PRE, regex, t->file, err);
}

static tg_status load_metaspace(tg_tokenizer *t, const json_t *part, tg_error *err)
{
    static const char *const schemes[] = {"never", "first", "always"}; /* as tg_prefix */
    const char *scheme = "always";
    bool prefix = true;
    t->each_space = true;
    t->metaspace.spaces = true;
    tg_status status = tg_json_get_bool(part, "add_prefix_space", &prefix, t->file, err);
    if (status == TG_OK)
        status = tg_json_get_bool(part, "split", &t->each_space, t->file, err);
    if (status == TG_OK)
        status = tg_json_get_text(part, "prepend_scheme", &scheme, t->file, err);
    if (status != TG_OK)
        return status;
    if (!says(part, "replacement", MARK))
        return tg_json_refuse(PRE, "Metaspace with another replacement", t->file, err);
    for (int i = 0; i < 3; i++)
        if (strcmp(scheme, schemes[i]) == 0) {
            t->prefix = prefix ? (tg_prefix)i : TG_PREFIX_NONE;
            return TG_OK;
        }
    return tg_json_refuse("prepend_scheme", scheme, t->file, err);
}

/* Byte-level, or SentencePiece's text with spaces that are marked here or by the normalizer. */
static tg_status load_pre_tokenizer(tg_tokenizer *t, const json_t *root, tg_error *err)
{
    parts p;
    tg_status status = get_parts(root, "pre_tokenizer", "pretokenizers", &p, t->file, err);
    if (status != TG_OK)
        return status;
    t->vocab.alphabet = TG_ALPHABET_TEXT;
    if (p.n == 1 && is_type(p.part[0], "Metaspace"))
        return load_metaspace(t, p.part[0], err);
    /* Gemma's: there is no space left to split at. */
    bool idle = p.n == 1 && is_type(p.part[0], "Split") &&
                says(json_object_get(p.part[0], "pattern"), "String", " ");
    if (t->normalizer.spaces && (p.n == 0 || idle))
        return TG_OK;
    t->vocab.alphabet = TG_ALPHABET_BYTES;
    return p.n ? load_byte_level(t, &p, err) : tg_json_refuse(PRE, "null", t->file, err);
}

/* ---- decoder: what the bytes of a token are ----------------------------------------------------
 */

/* Replace [ByteFallback] Fuse [Strip], for SentencePiece. */
static tg_status load_text_decoder(tg_tokenizer *t, const parts *p, tg_error *err)
{
    size_t i = 0;
    if (i < p->n && is_type(p->part[i], "Replace") && says(p->part[i], "content", " ") &&
        says(json_object_get(p->part[i], "pattern"), "String", MARK))
        i++;
    else
        return tg_json_refuse("decoder", p->n ? type_of(p->part[0]) : "null", t->file, err);
    bool fallback = i < p->n && is_type(p->part[i], "ByteFallback");
    i += fallback;
    if (fallback != t->byte_fallback)
        return tg_json_refuse("decoder", "ByteFallback of the decoder or of the model alone",
                              t->file, err);
    if (i == p->n || !is_type(p->part[i], "Fuse"))
        return tg_json_refuse("decoder", i < p->n ? type_of(p->part[i]) : "no Fuse", t->file, err);
    i++;
    t->strips_space = i < p->n && is_type(p->part[i], "Strip") &&
                      says(p->part[i], "content", " ") &&
                      json_integer_value(json_object_get(p->part[i], "start")) == 1 &&
                      json_integer_value(json_object_get(p->part[i], "stop")) == 0;
    i += t->strips_space;
    return i == p->n ? TG_OK : tg_json_refuse("decoder", type_of(p->part[i]), t->file, err);
}

static tg_status load_decoder(tg_tokenizer *t, const json_t *root, tg_error *err)
{
    parts p;
    tg_status status = get_parts(root, "decoder", "decoders", &p, t->file, err);
    if (status == TG_OK && t->vocab.alphabet == TG_ALPHABET_TEXT)
        return load_text_decoder(t, &p, err);
    for (size_t i = 0; status == TG_OK && i < p.n; i++)
        if (p.n > 1 || !is_type(p.part[i], "ByteLevel"))
            return tg_json_refuse("decoder", type_of(p.part[i]), t->file, err);
    return status;
}

tg_status tg_json_load_parts(tg_tokenizer *t, const json_t *root, tg_error *err)
{
    tg_status status = load_normalizer(t, root, err);
    if (status == TG_OK)
        status = load_pre_tokenizer(t, root, err);
    return status == TG_OK ? load_decoder(t, root, err) : status;
}

/* ---- the post-processor: what stands around a text ------------------------------------------ */

static tg_status load_template(tg_tokenizer *t, const json_t *processor, tg_error *err)
{
    const json_t *single = json_object_get(processor, "single"), *piece, *id;
    const json_t *specials = json_object_get(processor, "special_tokens");
    tg_around *around = &t->before;
    size_t i, k;
    if (!json_is_array(single))
        return tg_json_wrong_type(single, "single", "array", t->file, err);
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
            return tg_json_refuse("template", name ? name : "a piece of another kind", t->file,
                                  err);
        json_array_foreach(ids, k, id)
        {
            int32_t checked;
            if (!json_is_integer(id))
                return tg_json_wrong_type(id, "an id of a special token", "integer", t->file, err);
            tg_status status =
                tg_build_id(t, "id of a special token", json_integer_value(id), &checked, err);
            if (status == TG_OK)
                status = tg_build_around(t, around, checked, err);
            if (status != TG_OK)
                return status;
        }
    }
    return around == &t->after ? TG_OK
                               : tg_json_refuse("template", "one without the text", t->file, err);
}

tg_status tg_json_load_around(tg_tokenizer *t, const json_t *root, tg_error *err)
{
    parts p;
    bool seen = false;
    tg_status status = get_parts(root, "post_processor", "processors", &p, t->file, err);
    for (size_t i = 0; status == TG_OK && i < p.n; i++) {
        if (is_type(p.part[i], "ByteLevel")) /* moves offsets, not ids */
            continue;
        if (!is_type(p.part[i], "TemplateProcessing") || seen)
            return tg_json_refuse("post-processor", type_of(p.part[i]), t->file, err);
        seen = true;
        status = load_template(t, p.part[i], err);
    }
    return status;
}
