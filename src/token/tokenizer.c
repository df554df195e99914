/* tokenizer.c - bytes to ids and back, once a tokenizer is built.
 *
 * A text passes four cuts: added tokens; after normalisation, the added tokens that are looked for
 * there; the pieces of the pre-tokenizer, or those between spaces; and the merges within each. */
#include "token/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "token/build.h"

tg_status tg_tokenizer_load(tg_tokenizer **tokenizer, const tg_container *c, int n_vocab,
                            tg_error *err)
{
    tg_error unheard = {0};
    *tokenizer = NULL;
    err = err ? err : &unheard; /* the loaders read statuses from it */
    return tg_container_get_kind(c) == TG_CONTAINER_GGUF
               ? tg_load_gguf(tokenizer, c, n_vocab, err)
               : tg_load_folder(tokenizer, c, n_vocab, err);
}

void tg_tokenizer_free(tg_tokenizer *t)
{
    if (!t)
        return;
    tg_vocab_deinit(&t->vocab);
    tg_bpe_deinit(&t->bpe);
    tg_added_deinit(&t->raw);
    tg_added_deinit(&t->normalized);
    free(t);
}

/* ---- encoding ----------------------------------------------------------------------------- */

typedef struct encoder {
    const tg_tokenizer *t;
    bool special;
    const uint8_t *text;  /* the whole of it, to its end, and which of its bytes are plain; NULL: none is */
    const uint8_t *end, *plain;
    const uint8_t *written; /* which tokens, raw ones first, the template writes; NULL: there is none */
    bool first; /* the stretch at hand begins the text */
    tg_bpe_work work;
    tg_error *err;
} encoder;

/* A stage that takes a stretch of text: n > 0 bytes. */
typedef tg_status (*stage)(encoder *e, const uint8_t *s, size_t n);

/* A walk for the added tokens of `set`. What was normalised does not lie in the text any more, and has special tokens
 * only when nothing of the text is plain. */
static tg_added_walk walk_over(const encoder *e, const tg_added_set *set, const uint8_t *s, size_t n)
{
    bool inside = (uintptr_t)s >= (uintptr_t)e->text && (uintptr_t)s < (uintptr_t)e->end;
    return (tg_added_walk){.set = set,
                           .text = s,
                           .n = n,
                           .special = e->special && (inside || !e->plain),
                           .plain = inside && e->plain ? e->plain + (s - e->text) : NULL,
                           .written = e->written && set == &e->t->normalized ? e->written + e->t->raw.n : e->written};
}

/* Gives what lies between the added tokens of `set` to `next`, and appends their ids. */
static tg_status split_added(encoder *e, const tg_added_set *set, const uint8_t *s, size_t n,
                             stage next)
{
    tg_added_walk walk = walk_over(e, set, s, n);
    tg_status status = TG_OK;
    size_t from, to;
    int32_t id;
    bool first = e->first;
    while (status == TG_OK && tg_added_next(&walk, &from, &to, &id)) {
        e->first = first && from == 0;
        if (from < to)
            status = next(e, s + from, to - from);
        if (status == TG_OK && id >= 0)
            status = tg_bpe_append_id(&e->work, id, e->err);
    }
    return status;
}

/* The piece at s where no pattern cuts: up to a space. Unless each space begins a piece, only those
 * do that no merge can reach across: they follow no space, nor a byte that stands before one in a
 * token. */
static size_t piece_at_space(const tg_tokenizer *t, const uint8_t *s, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        const uint8_t *space = memchr(s + i, ' ', n - i);
        if (!space)
            break;
        i = (size_t)(space - s);
        if (t->each_space || (s[i - 1] != ' ' && !t->vocab.before_space[s[i - 1]]))
            return i;
    }
    return n;
}

static tg_status split_pieces(encoder *e, const uint8_t *s, size_t n)
{
    const tg_tokenizer *t = e->t;
    tg_status status = TG_OK;
    for (size_t i = 0, length; status == TG_OK && i < n; i += length) {
        length =
            t->pre ? tg_pretokenizer_piece(t->pre, s + i, n - i) : piece_at_space(t, s + i, n - i);
        status = tg_bpe_append_piece(&t->bpe, &e->work, s + i, length, e->err);
    }
    return status;
}

/* Normalises and goes on with what comes of it. */
static tg_status normalise_for(encoder *e, const tg_normalizer *how, const uint8_t *s, size_t n,
                               stage next)
{
    uint8_t *normal;
    tg_status status = tg_normalize(how, s, n, &normal, &n, e->err);
    if (status == TG_OK)
        status = next(e, normal ? normal : s, n);
    free(normal);
    return status;
}

static tg_status add_prefix(encoder *e, const uint8_t *s, size_t n)
{
    const tg_tokenizer *t = e->t;
    bool due = t->prefix == TG_PREFIX_ALL || (t->prefix == TG_PREFIX_FIRST && e->first);
    bool spaced = t->metaspace.spaces ? tg_begins_spaced(s, n) : s[0] == ' ';
    tg_normalizer how = t->metaspace;
    how.prefix = due && !spaced;
    return normalise_for(e, &how, s, n, split_pieces);
}

static tg_status split_normalized(encoder *e, const uint8_t *s, size_t n)
{
    return split_added(e, &e->t->normalized, s, n, add_prefix);
}

static tg_status normalise(encoder *e, const uint8_t *s, size_t n)
{
    return normalise_for(e, &e->t->normalizer, s, n, split_normalized);
}

static tg_status append_around(encoder *e, const tg_around *around)
{
    tg_status status = TG_OK;
    for (int i = 0; status == TG_OK && i < around->n; i++)
        status = tg_bpe_append_id(&e->work, around->ids[i], e->err);
    return status;
}

tg_status tg_tokenizer_encode(const tg_tokenizer *t, const void *text, size_t n_bytes,
                              unsigned flags, int32_t **ids, size_t *n_ids, size_t *n_dropped,
                              tg_error *err)
{
    return tg_tokenizer_encode_mixed(t, text, NULL, NULL, n_bytes, flags, ids, n_ids, n_dropped, err);
}

tg_status tg_tokenizer_encode_mixed(const tg_tokenizer *t, const void *text, const uint8_t *plain, const char *template,
                                    size_t n_bytes, unsigned flags, int32_t **ids, size_t *n_ids, size_t *n_dropped, tg_error *err)
{
    *ids = NULL;
    *n_ids = 0;
    if (n_dropped)
        *n_dropped = 0;
    if (n_bytes > TG_MAX_TEXT_BYTES)
        return tg_fail(err, TG_E_USAGE, NULL, "text too large (found %zu bytes, allowed %d)",
                       n_bytes, TG_MAX_TEXT_BYTES);
    uint8_t *written = plain ? tg_alloc(t->raw.n + t->normalized.n, 1, "marks of tokens", err) : NULL;
    if (plain && !written)
        return TG_E_RESOURCE;
    if (plain) {
        tg_added_mark(&t->raw, template, strlen(template), written);
        tg_added_mark(&t->normalized, template, strlen(template), written + t->raw.n);
    }
    encoder e = {.t = t, .special = flags & TG_TOK_SPECIAL, .text = text, .plain = plain, .written = written, .first = true,
                 .err = err};
    e.end = n_bytes ? e.text + n_bytes : e.text;
    tg_status status = tg_bpe_work_init(&e.work, n_bytes, err);
    if (status == TG_OK && flags & TG_TOK_BOS)
        status = append_around(&e, &t->before);
    if (status == TG_OK && n_bytes)
        status = split_added(&e, &t->raw, text, n_bytes, normalise);
    if (status == TG_OK && flags & TG_TOK_BOS)
        status = append_around(&e, &t->after);
    if (status == TG_OK) {
        if (n_dropped)
            *n_dropped = e.work.n_dropped;
        *ids = e.work.ids;
        *n_ids = e.work.n_ids;
        e.work.ids = NULL;
    }
    tg_bpe_work_deinit(&e.work);
    tg_free(written);
    return status;
}

/* ---- tokens ------------------------------------------------------------------------------- */

static const tg_vocab_token *token_of(const tg_tokenizer *t, int32_t id)
{
    static const tg_vocab_token hole = {0};
    return id >= 0 && id < t->vocab.n_tokens ? &t->vocab.tokens[id] : &hole;
}

const char *tg_tokenizer_bytes(const tg_tokenizer *t, int32_t id, size_t *n_bytes)
{
    const tg_vocab_token *token = token_of(t, id);
    *n_bytes = token->n;
    return (const char *)t->vocab.text + token->at;
}

tg_token_kind tg_tokenizer_kind(const tg_tokenizer *t, int32_t id)
{
    const tg_vocab_token *token = token_of(t, id);
    if (token->n == 0 || token->is_unused)
        return TG_TOKEN_UNUSED;
    return token->is_special ? TG_TOKEN_SPECIAL : TG_TOKEN_NORMAL;
}

bool tg_tokenizer_is_eog(const tg_tokenizer *t, int32_t id)
{
    return token_of(t, id)->is_eog;
}

void tg_tokenizer_get_info(const tg_tokenizer *t, tg_tokenizer_info *info)
{
    *info = (tg_tokenizer_info){
        .model = t->vocab.alphabet == TG_ALPHABET_TEXT ? "SentencePiece BPE" : "BPE",
        .pre = t->pre          ? t->pre->name
               : t->each_space ? "each space"
                               : "nothing",
        .pre_assumed = t->pre_assumed,
        .n_tokens = t->vocab.n_tokens,
        .n_merges = (int)t->n_merges,
        .longest = t->longest,
        .bos = t->bos,
        .eos = t->eos,
        .add_bos = t->before.n > 0,
        .add_eos = t->after.n > 0,
        .strips_space = t->strips_space,
    };
}
