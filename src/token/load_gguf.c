/* load_gguf.c - a tokenizer from the metadata of a GGUF file.
 *
 * Byte-level ones ("gpt2") have merges and the name of a pattern, tokenizer.ggml.pre; what the
 * reference does beside the pattern, and the file has no key for, stands in the table of
 * pre-tokenizers. A file from before that key has GPT-2's, which is not sure to be right and is told; one that calls it
 * "default" does not say how to cut a text, and is refused. SentencePiece's ("llama") have scores instead of both. */
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
    "<|endoftext|>", "<|end_of_text|>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>",
    "<|end|>",       "<end_of_turn>",   "<|return|>", "<|call|>",
};

#define COUNT(list) (sizeof(list) / sizeof *(list))

static bool is_one_of(const char *const *names, size_t n_names, const uint8_t *s, size_t n)
{
    for (size_t i = 0; i < n_names; i++)
        if (strlen(names[i]) == n && memcmp(names[i], s, n) == 0)
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

/* How a file has it, before its tokens. */
typedef struct kind {
    const tg_pretokenizer *pre; /* NULL: SentencePiece */
    bool add_bos;               /* unless the file says otherwise */
    bool add_space;             /* SentencePiece: a stretch of text begins with one more space */
    bool pre_assumed;           /* the file has none */
    bool strips;                /* special tokens take the white space behind them along */
} kind;

static tg_status check_sentencepiece(const tg_container *c, kind *k, tg_error *err)
{
    static const char extra_key[] = "tokenizer.ggml.remove_extra_whitespaces",
                      map_key[] = "tokenizer.ggml.precompiled_charsmap";
    const char *path = tg_container_path(c), *architecture = "";
    bool extra = false;
    size_t n;
    tg_meta_array map = {0};
    *k = (kind){.add_bos = true, .add_space = true};
    if (tg_meta_bool(c, "tokenizer.ggml.add_space_prefix", &k->add_space, err) == TG_META_BAD ||
        tg_meta_bool(c, extra_key, &extra, err) == TG_META_BAD ||
        tg_meta_get_array(c, map_key, TG_ELEM_INT, &map, err) == TG_META_BAD ||
        tg_meta_string(c, "general.architecture", &architecture, &n, err) == TG_META_BAD)
        return err->status;
    if (extra || map.n)
        return tg_fail(err, TG_E_MODEL, path, "%s is not supported", extra ? extra_key : map_key);
    /* What the tokenizer.json of these models says of their tokens, a GGUF has no key for. */
    k->strips = strcmp(architecture, "phi3") == 0;
    return TG_OK;
}

static tg_status check_byte_level(const tg_container *c, kind *k, tg_error *err)
{
    static const char pre_key[] = "tokenizer.ggml.pre";
    const char *path = tg_container_path(c), *text = "gpt-2";
    size_t n = strlen(text);
    tg_quoted q;
    tg_meta found = tg_meta_string(c, pre_key, &text, &n, err);
    if (found == TG_META_BAD)
        return err->status;
    *k = (kind){.pre = strlen(text) == n ? tg_pretokenizer_by_name(text) : NULL, .pre_assumed = found == TG_META_ABSENT};
    if (!k->pre)
        return tg_fail(err, TG_E_MODEL, path, "pre-tokenizer not supported (found '%s')",
                       tg_quote(&q, text, n));
    k->add_bos = k->pre->add_bos;
    if (tg_meta_bool(c, "tokenizer.ggml.add_space_prefix", &k->add_space, err) == TG_META_BAD)
        return err->status;
    if (k->add_space)
        return tg_fail(err, TG_E_MODEL, path,
                       "tokenizer.ggml.add_space_prefix is not supported with byte-level BPE");
    return TG_OK;
}

static tg_status check_kind(const tg_container *c, kind *k, tg_error *err)
{
    static const char model_key[] = "tokenizer.ggml.model";
    const char *path = tg_container_path(c), *text = NULL;
    size_t n = 0;
    tg_quoted q;
    tg_status status = need(tg_meta_string(c, model_key, &text, &n, err), path, model_key, err);
    if (status != TG_OK)
        return status;
    if (n == 4 && memcmp(text, "gpt2", 4) == 0)
        return check_byte_level(c, k, err);
    if (n == 5 && memcmp(text, "llama", 5) == 0)
        return check_sentencepiece(c, k, err);
    return tg_fail(err, TG_E_MODEL, path,
                   "tokenizer model not supported (found '%s', allowed 'gpt2', 'llama')",
                   tg_quote(&q, text, n));
}

/* What the type of token `id` adds to its text. */
static tg_status apply_type(tg_tokenizer *t, const kind *k, int32_t id, int64_t type,
                            const uint8_t *text, size_t n, tg_error *err)
{
    static const char *const keep[] = {"<unk>", "<s>",
                                       "<|endoftext|>"}; /* what follows them, always */
    tg_quoted q;
    int byte;
    tg_added_token added = {.text = (const char *)text, .n_bytes = n, .id = id};
    switch (type) {
    case TYPE_UNDEFINED:
    case TYPE_NORMAL:
        return TG_OK;
    case TYPE_UNUSED:
        t->vocab.tokens[id].is_unused = true;
        return TG_OK;
    case TYPE_USER_DEFINED:
        /* SentencePiece looks for these in what it has normalised. A prefix would be in their way.
         */
        added.normalized = t->normalizer.spaces && !t->normalizer.prefix;
        return tg_build_added(t, &added, err);
    case TYPE_CONTROL:
    case TYPE_UNKNOWN:
        added.special = true;
        t->vocab.tokens[id].is_eog = is_one_of(end_names, COUNT(end_names), text, n);
        added.rstrip = k->strips && !is_one_of(keep, COUNT(keep), text, n);
        return tg_build_added(t, &added, err);
    case TYPE_BYTE:
        byte = tg_vocab_named_byte(text, n);
        if (byte >= 0)
            return tg_vocab_set_literal(&t->vocab, id, &(uint8_t){(uint8_t)byte}, 1, err);
        return tg_fail(err, TG_E_MODEL, t->file,
                       "token %d is no byte token (found '%s', allowed <0xHH>)", id,
                       tg_quote(&q, text, n));
    default:
        return tg_fail(err, TG_E_MODEL, t->file,
                       "token %d has an unknown type (found %" PRId64 ", allowed 0 to 6)", id,
                       type);
    }
}

static const char tokens_key[] = "tokenizer.ggml.tokens";

/* Ids that there can be: room for a vocabulary of the largest model is not needed where the file has few. */
static int most_ids(const tg_container *c, int n_vocab)
{
    tg_meta_array tokens = {0};
    tg_error unheard;
    tg_meta_get_array(c, tokens_key, TG_ELEM_STRING, &tokens, &unheard);
    return tokens.n < (uint64_t)n_vocab ? (int)tokens.n : n_vocab;
}

static tg_status load_tokens(tg_tokenizer *t, const tg_container *c, const kind *k, tg_error *err)
{
    static const char scores_key[] = "tokenizer.ggml.scores",
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
                       "%s has another length than the tokens (found %" PRIu64 ", allowed %" PRIu64 ")",
                       types_key, types.n, tokens.n);
    if (scored == TG_META_FOUND && scores.n != tokens.n)
        return tg_fail(err, TG_E_MODEL, t->file,
                       "%s has another length than the tokens (found %" PRIu64 ", allowed %" PRIu64 ")",
                       scores_key, scores.n, tokens.n);

    if (!k->pre && (typed != TG_META_FOUND || scored != TG_META_FOUND))
        return tg_fail(err, TG_E_MODEL, t->file, "%s is missing",
                       scored == TG_META_FOUND ? types_key : scores_key);

    uint64_t at = 0, n;
    const uint8_t *text;
    status = tg_build_reserve(t, tokens.n, 0, err);
    for (uint64_t i = 0; status == TG_OK && i < tokens.n; i++) {
        int64_t type = typed == TG_META_FOUND ? tg_meta_array_int(&types, i) : TYPE_NORMAL;
        tg_meta_array_next_string(&tokens, &at, &text, &n);
        status = tg_build_token(t, (int64_t)i, text, n, err);
        if (status == TG_OK && n > 0)
            status = apply_type(t, k, (int32_t)i, type, text, n, err);
        if (status == TG_OK && !k->pre &&
            (type == TYPE_UNDEFINED || type == TYPE_NORMAL || type == TYPE_USER_DEFINED))
            status = tg_build_score(t, (int32_t)i, tg_meta_array_real(&scores, i), err);
    }
    return status == TG_OK ? tg_build_check_tokens(t, err) : status;
}

static tg_status load_merges(tg_tokenizer *t, const tg_container *c, tg_error *err)
{
    static const char key[] = "tokenizer.ggml.merges";
    tg_meta_array merges = {0};
    tg_status status =
        need(tg_meta_get_array(c, key, TG_ELEM_STRING, &merges, err), t->file, key, err);
    uint64_t at = 0, n;
    const uint8_t *text;
    if (status == TG_OK)
        status = tg_build_reserve(t, 0, merges.n, err);
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
    enum { UNKNOWN = 4 };
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
        if (i == UNKNOWN && t->vocab.alphabet == TG_ALPHABET_TEXT)
            t->bpe.unknown = id;
    }
    /* Where calls and returns end a turn, this ends one message of several. */
    static const char end[] = "<|end|>", call[] = "<|call|>";
    int32_t id = tg_build_find(t, end, sizeof end - 1);
    if (id >= 0 && id != t->eos && tg_build_find(t, call, sizeof call - 1) >= 0)
        t->vocab.tokens[id].is_eog = false;
    return TG_OK;
}

static tg_status load_policy(tg_tokenizer *t, const tg_container *c, const kind *k, tg_error *err)
{
    static const char bos_key[] = "tokenizer.ggml.add_bos_token",
                      eos_key[] = "tokenizer.ggml.add_eos_token";
    bool add_bos = k->add_bos, add_eos = false;
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
    kind k;
    tg_status status = check_kind(c, &k, err);
    if (status != TG_OK)
        return status;
    tg_tokenizer *t = tg_build_start(tg_container_path(c), most_ids(c, n_vocab), err);
    if (!t)
        return TG_E_RESOURCE;
    if (k.pre) {
        t->pre = k.pre;
        t->pre_assumed = k.pre_assumed;
        t->normalizer.nfc = k.pre->nfc;
        t->ignore_merges = k.pre->ignore_merges;
    } else {
        t->vocab.alphabet = TG_ALPHABET_TEXT;
        t->normalizer = (tg_normalizer){.spaces = true, .prefix = k.add_space};
        t->strips_space = k.add_space;
        t->byte_fallback = true;
        t->bpe.fuse_unknown = true;
    }
    status = load_tokens(t, c, &k, err);
    if (status == TG_OK && k.pre)
        status = load_merges(t, c, err);
    if (status == TG_OK)
        status = load_ids(t, c, err);
    if (status == TG_OK)
        status = load_policy(t, c, &k, err);
    if (status == TG_OK)
        status = tg_build_finish(t, err);
    if (status == TG_OK)
        *tokenizer = t;
    else
        tg_tokenizer_free(t);
    return status;
}
