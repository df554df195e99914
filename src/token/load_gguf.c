/* load_gguf.c - a tokenizer from the metadata of a GGUF file.
 *
 * The pattern goes by its name, tokenizer.ggml.pre; what the reference does beside the pattern, and
 * the file has no key for, stands in the table of pre-tokenizers. */
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "token/build.h"

/* tokenizer.ggml.token_type */
enum {
    TYPE_UNDEFINED = 0,
    TYPE_NORMAL = 1,
    TYPE_UNKNOWN = 2,
    TYPE_CONTROL = 3,
    TYPE_USER_DEFINED = 4,
    TYPE_UNUSED = 5,
    TYPE_BYTE = 6,
};

/* Tokens that end a turn or a text, wherever a control token of that name is. */
static const char *const end_names[] = {
    "<|endoftext|>", "<|end_of_text|>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>",
};

static bool is_end_name(const uint8_t *s, size_t n)
{
    for (size_t i = 0; i < sizeof end_names / sizeof *end_names; i++)
        if (strlen(end_names[i]) == n && memcmp(end_names[i], s, n) == 0)
            return true;
    return false;
}

/* Fails unless the key is there. */
static tg_status need(tg_meta found, const char *path, const char *key, tg_error *err)
{
    if (found == TG_META_ABSENT)
        return tg_fail(err, TG_E_MODEL, path, "%s is missing", key);
    return found == TG_META_FOUND ? TG_OK : err->status;
}

static tg_status check_kind(const tg_container *c, const tg_pretokenizer **pre, tg_error *err)
{
    static const char model_key[] = "tokenizer.ggml.model", pre_key[] = "tokenizer.ggml.pre";
    const char *path = tg_container_path(c), *text = NULL;
    size_t n = 0;
    tg_quoted q;
    tg_status status = need(tg_meta_string(c, model_key, &text, &n, err), path, model_key, err);
    if (status != TG_OK)
        return status;
    if (n != 4 || memcmp(text, "gpt2", 4) != 0)
        return tg_fail(err, TG_E_MODEL, path,
                       "tokenizer model not supported (found '%s', allowed 'gpt2')",
                       tg_quote(&q, text, n));
    status = need(tg_meta_string(c, pre_key, &text, &n, err), path, pre_key, err);
    if (status != TG_OK)
        return status;
    *pre = strlen(text) == n ? tg_pretokenizer_by_name(text) : NULL;
    if (!*pre)
        return tg_fail(err, TG_E_MODEL, path, "pre-tokenizer not supported (found '%s')",
                       tg_quote(&q, text, n));
    bool space = false;
    if (tg_meta_bool(c, "tokenizer.ggml.add_space_prefix", &space, err) == TG_META_BAD)
        return err->status;
    if (space)
        return tg_fail(err, TG_E_MODEL, path,
                       "tokenizer.ggml.add_space_prefix is not supported with byte-level BPE");
    return TG_OK;
}

static int hex_digit(uint8_t c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* What the type of token `id` adds to its text. */
static tg_status apply_type(tg_tokenizer *t, int32_t id, int64_t type, const uint8_t *text,
                            size_t n, tg_error *err)
{
    tg_quoted q;
    tg_added_token added = {.text = (const char *)text, .n_bytes = n, .id = id};
    switch (type) {
    case TYPE_UNDEFINED:
    case TYPE_NORMAL:
        return TG_OK;
    case TYPE_UNUSED:
        t->vocab.tokens[id].is_unused = true;
        return TG_OK;
    case TYPE_USER_DEFINED:
        return tg_build_added(t, &added, err);
    case TYPE_CONTROL:
    case TYPE_UNKNOWN:
        added.special = true;
        t->vocab.tokens[id].is_eog = is_end_name(text, n);
        return tg_build_added(t, &added, err);
    case TYPE_BYTE:
        if (n == 6 && memcmp(text, "<0x", 3) == 0 && text[5] == '>' && hex_digit(text[3]) >= 0 &&
            hex_digit(text[4]) >= 0) {
            uint8_t byte = (uint8_t)(hex_digit(text[3]) << 4 | hex_digit(text[4]));
            return tg_vocab_set_literal(&t->vocab, id, &byte, 1, err);
        }
        return tg_fail(err, TG_E_MODEL, t->file,
                       "token %d is no byte token (found '%s', allowed <0xHH>)", id,
                       tg_quote(&q, text, n));
    default:
        return tg_fail(err, TG_E_MODEL, t->file,
                       "token %d has an unknown type (found %" PRId64 ", allowed 0 to 6)", id,
                       type);
    }
}

static tg_status load_tokens(tg_tokenizer *t, const tg_container *c, tg_error *err)
{
    static const char tokens_key[] = "tokenizer.ggml.tokens",
                      scores_key[] = "tokenizer.ggml.scores",
                      types_key[] = "tokenizer.ggml.token_type";
    tg_meta_array tokens = {0}, types = {0}, scores = {0};
    tg_status status = need(tg_meta_get_array(c, tokens_key, TG_ELEM_STRING, &tokens, err), t->file,
                            tokens_key, err);
    if (status != TG_OK)
        return status;
    tg_meta typed = tg_meta_get_array(c, types_key, TG_ELEM_INT, &types, err);
    tg_meta scored = tg_meta_get_array(c, scores_key, TG_ELEM_REAL, &scores, err);
    if (typed == TG_META_BAD || scored == TG_META_BAD)
        return err->status;
    if (typed == TG_META_FOUND && types.n != tokens.n)
        return tg_fail(err, TG_E_MODEL, t->file,
                       "%s has another length than the tokens (%" PRIu64 " and %" PRIu64 ")",
                       types_key, types.n, tokens.n);
    if (scored == TG_META_FOUND && scores.n != tokens.n)
        return tg_fail(err, TG_E_MODEL, t->file,
                       "%s has another length than the tokens (%" PRIu64 " and %" PRIu64 ")",
                       scores_key, scores.n, tokens.n);

    uint64_t at = 0, n;
    const uint8_t *text;
    for (uint64_t i = 0; i < tokens.n; i++) {
        tg_meta_array_next_string(&tokens, &at, &text, &n);
        status = tg_build_token(t, (int64_t)i, text, n, err);
        if (status == TG_OK && typed == TG_META_FOUND && n > 0)
            status = apply_type(t, (int32_t)i, tg_meta_array_int(&types, i), text, n, err);
        if (status != TG_OK)
            return status;
    }
    return tg_build_check_tokens(t, err);
}

static tg_status load_merges(tg_tokenizer *t, const tg_container *c, tg_error *err)
{
    static const char key[] = "tokenizer.ggml.merges";
    tg_meta_array merges = {0};
    tg_status status =
        need(tg_meta_get_array(c, key, TG_ELEM_STRING, &merges, err), t->file, key, err);
    uint64_t at = 0, n;
    const uint8_t *text;
    for (uint64_t i = 0; status == TG_OK && i < merges.n; i++) {
        tg_meta_array_next_string(&merges, &at, &text, &n);
        status = tg_build_merge_text(t, text, n, i + 1, err);
    }
    return status;
}

/* Every id that the file gives is checked, also those without a use here. */
static tg_status load_ids(tg_tokenizer *t, const tg_container *c, tg_error *err)
{
    static const struct {
        const char *key;
        bool ends;
    } keys[] = {
        {"tokenizer.ggml.bos_token_id", false},       {"tokenizer.ggml.eos_token_id", true},
        {"tokenizer.ggml.eot_token_id", true},        {"tokenizer.ggml.eom_token_id", true},
        {"tokenizer.ggml.unknown_token_id", false},   {"tokenizer.ggml.padding_token_id", false},
        {"tokenizer.ggml.seperator_token_id", false}, /* as the format spells it */
        {"tokenizer.ggml.cls_token_id", false},       {"tokenizer.ggml.mask_token_id", false},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        int64_t value = 0;
        int32_t id;
        tg_meta found = tg_meta_int(c, keys[i].key, INT64_MIN, INT64_MAX, &value, err);
        if (found == TG_META_ABSENT)
            continue;
        tg_status status =
            found == TG_META_BAD ? err->status : tg_build_id(t, keys[i].key, value, &id, err);
        if (status != TG_OK)
            return status;
        t->vocab.tokens[id].is_eog |= keys[i].ends;
        if (i == 0)
            t->bos = id;
        if (i == 1)
            t->eos = id;
    }
    return TG_OK;
}

static tg_status load_policy(tg_tokenizer *t, const tg_container *c, tg_error *err)
{
    static const char bos_key[] = "tokenizer.ggml.add_bos_token",
                      eos_key[] = "tokenizer.ggml.add_eos_token";
    bool add_bos = t->pre->add_bos, add_eos = false;
    if (tg_meta_bool(c, bos_key, &add_bos, err) == TG_META_BAD ||
        tg_meta_bool(c, eos_key, &add_eos, err) == TG_META_BAD)
        return err->status;
    if (add_bos && t->bos < 0)
        return tg_fail(err, TG_E_MODEL, t->file,
                       "a text begins with BOS, but there is no bos_token_id");
    if (add_eos && t->eos < 0)
        return tg_fail(err, TG_E_MODEL, t->file,
                       "a text ends with EOS, but there is no eos_token_id");
    tg_status status = add_bos ? tg_build_around(t, &t->before, t->bos, err) : TG_OK;
    return status == TG_OK && add_eos ? tg_build_around(t, &t->after, t->eos, err) : status;
}

tg_status tg_load_gguf(tg_tokenizer **tokenizer, const tg_container *c, int n_vocab, tg_error *err)
{
    const tg_pretokenizer *pre = NULL;
    tg_status status = check_kind(c, &pre, err);
    if (status != TG_OK)
        return status;
    tg_tokenizer *t = tg_build_start(tg_container_path(c), n_vocab, err);
    if (!t)
        return TG_E_RESOURCE;
    t->pre = pre;
    t->nfc = pre->nfc;
    t->ignore_merges = pre->ignore_merges;
    status = load_tokens(t, c, err);
    if (status == TG_OK)
        status = load_merges(t, c, err);
    if (status == TG_OK)
        status = load_ids(t, c, err);
    if (status == TG_OK)
        status = load_policy(t, c, err);
    if (status == TG_OK)
        status = tg_build_finish(t, err);
    if (status == TG_OK)
        *tokenizer = t;
    else
        tg_tokenizer_free(t);
    return status;
}
