/* build.c - the checks that hold for every source of a tokenizer. */
#include "token/build.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

tg_tokenizer *tg_build_start(const char *file, int n_vocab, tg_error *err)
{
    tg_tokenizer *t = tg_alloc(1, sizeof *t, "a tokenizer", err);
    if (!t)
        return NULL;
    t->file = file;
    t->bos = t->eos = -1;
    if (tg_vocab_init(&t->vocab, n_vocab, err) != TG_OK || tg_bpe_init(&t->bpe, err) != TG_OK) {
        tg_tokenizer_free(t);
        return NULL;
    }
    return t;
}

tg_status tg_build_token(tg_tokenizer *t, int64_t id, const void *spelling, size_t n, tg_error *err)
{
    return tg_vocab_add(&t->vocab, id, spelling, n, t->file, err);
}

tg_status tg_build_reserve(tg_tokenizer *t, uint64_t n_tokens, uint64_t n_merges, tg_error *err)
{
    tg_status status = tg_vocab_reserve(&t->vocab, n_tokens, err);
    return status == TG_OK ? tg_bpe_reserve(&t->bpe, n_merges < TG_MAX_MERGES ? n_merges : TG_MAX_MERGES, err) : status;
}

/* ---- merges ------------------------------------------------------------------------------- */

tg_status tg_build_merge(tg_tokenizer *t, const void *left, size_t n_left, const void *right,
                         size_t n_right, uint64_t line, tg_error *err)
{
    int32_t ids[3];
    tg_quoted q, q2;
    tg_vocab_find_merge(&t->vocab, left, n_left, right, n_right, t->last_merged + 1, ids);
    if (ids[0] < 0 || ids[1] < 0)
        return tg_fail(err, TG_E_MODEL, t->file, "merge %" PRIu64 ": '%s' is no token", line,
                       ids[0] < 0 ? tg_quote(&q, left, n_left) : tg_quote(&q, right, n_right));
    if (ids[2] < 0)
        return tg_fail(err, TG_E_MODEL, t->file, "merge %" PRIu64 ": the result '%s%s' is no token",
                       line, tg_quote(&q, left, n_left), tg_quote(&q2, right, n_right));
    if (t->n_merges == TG_MAX_MERGES)
        return tg_fail(err, TG_E_MODEL, t->file, "too many merges (allowed %d)", TG_MAX_MERGES);
    t->last_merged = ids[2];
    return tg_bpe_add_merge(&t->bpe, ids[0], ids[1], ids[2], t->n_merges++, err);
}

tg_status tg_build_merge_text(tg_tokenizer *t, const void *text, size_t n, uint64_t line,
                              tg_error *err)
{
    const char *s = text, *space = n ? memchr(s, ' ', n) : NULL;
    size_t left = space ? (size_t)(space - s) : n, right = space ? n - left - 1 : 0;
    if (left == 0 || right == 0 || memchr(space + 1, ' ', right)) {
        tg_quoted q;
        return tg_fail(err, TG_E_MODEL, t->file, "merge %" PRIu64 " has not two parts (found '%s')",
                       line, tg_quote(&q, text, n));
    }
    return tg_build_merge(t, s, left, space + 1, right, line, err);
}

tg_status tg_build_score(tg_tokenizer *t, int32_t id, double score, tg_error *err)
{
    if (!t->bpe.token_ranks) {
        size_t n = (size_t)t->vocab.n_ids;
        t->bpe.token_ranks = tg_alloc(n, sizeof *t->bpe.token_ranks, "the ranks of tokens", err);
        if (!t->bpe.token_ranks)
            return TG_E_RESOURCE;
        memset(t->bpe.token_ranks, 0xff, n * sizeof *t->bpe.token_ranks); /* TG_BPE_NO_RANK */
    }
    if (isnan(score))
        return tg_fail(err, TG_E_MODEL, t->file, "the score of token %d is not a number", id);
    /* The bits of a float are in its order when read as sign and magnitude; here the order is
     * turned. */
    float value = (float)score + 0.0f; /* one zero, not two */
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    t->bpe.token_ranks[id] = bits >> 31 ? bits : bits ^ 0x7fffffff;
    return TG_OK;
}

/* ---- added tokens ------------------------------------------------------------------------- */

tg_status tg_build_added(tg_tokenizer *t, const tg_added_token *token, tg_error *err)
{
    tg_vocab *v = &t->vocab;
    if (token->n_bytes > TG_MAX_TOKEN_BYTES)
        return tg_fail(err, TG_E_MODEL, t->file,
                       "token %d is too long (found %zu bytes, allowed %d)", token->id,
                       token->n_bytes, TG_MAX_TOKEN_BYTES);
    if (token->id < 0 || token->id >= v->n_ids)
        return tg_fail(err, TG_E_MODEL, t->file,
                       "token id out of range (found %d, allowed 0 to %d)", token->id,
                       v->n_ids - 1);
    if (token->n_bytes == 0) /* the reference passes over it */
        return TG_OK;
    int32_t known = tg_vocab_find(v, token->text, token->n_bytes);
    tg_vocab_token *entry = &v->tokens[token->id];
    tg_quoted q;
    if (known >= 0 && known != token->id)
        return tg_fail(err, TG_E_MODEL, t->file, "added token '%s' has two ids (%d and %d)",
                       tg_quote(&q, token->text, token->n_bytes), known, token->id);
    if (entry->is_added || (known < 0 && entry->n))
        return tg_fail(err, TG_E_MODEL, t->file, "token id %d is there twice", token->id);

    bool text = v->alphabet == TG_ALPHABET_TEXT;
    if (text && token->normalized && (token->lstrip || token->rstrip))
        return tg_fail(err, TG_E_MODEL, t->file,
                       "added token '%s' is both normalized and stripped, which is not supported",
                       tg_quote(&q, token->text, token->n_bytes));

    tg_added_token looked_for = *token;
    static const tg_normalizer as_it_is = {0};
    const tg_normalizer shown = {.spaces = text};
    uint8_t *normal = NULL, *spaced = NULL;
    size_t n_shown = token->n_bytes;
    tg_status status =
        tg_normalize(token->normalized ? &t->normalizer : &as_it_is, (const uint8_t *)token->text,
                     token->n_bytes, &normal, &looked_for.n_bytes, err);
    if (normal)
        looked_for.text = (const char *)normal;
    if (status == TG_OK)
        status = tg_added_add(token->normalized ? &t->normalized : &t->raw, &looked_for, err);
    free(normal);
    if (status == TG_OK)
        status = tg_normalize(&shown, (const uint8_t *)token->text, token->n_bytes, &spaced,
                              &n_shown, err);
    if (status == TG_OK)
        status = tg_vocab_set_literal(v, token->id, spaced ? (const void *)spaced : token->text,
                                      n_shown, err);
    free(spaced);
    entry->is_added = true;
    entry->is_special |= token->special;
    return status;
}

/* ---- ids ---------------------------------------------------------------------------------- */

tg_status tg_build_id(const tg_tokenizer *t, const char *what, int64_t id, int32_t *out,
                      tg_error *err)
{
    if (id < 0 || id >= t->vocab.n_ids)
        return tg_fail(err, TG_E_MODEL, t->file,
                       "%s out of range (found %" PRId64 ", allowed 0 to %d)", what, id,
                       t->vocab.n_ids - 1);
    if (t->vocab.tokens[id].n == 0)
        return tg_fail(err, TG_E_MODEL, t->file, "%s is no token (found %" PRId64 ")", what, id);
    *out = (int32_t)id;
    return TG_OK;
}

int32_t tg_build_find(const tg_tokenizer *t, const char *text, size_t n)
{
    const tg_added_set *sets[] = {&t->raw, &t->normalized};
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < sets[k]->n; i++)
            if (sets[k]->tokens[i].n_bytes == n && memcmp(sets[k]->tokens[i].text, text, n) == 0)
                return sets[k]->tokens[i].id;
    return tg_vocab_find(&t->vocab, text, n);
}

tg_status tg_build_around(tg_tokenizer *t, tg_around *around, int32_t id, tg_error *err)
{
    if (around->n == TG_MAX_AROUND)
        return tg_fail(err, TG_E_MODEL, t->file, "too many tokens around a text (allowed %d)",
                       TG_MAX_AROUND);
    around->ids[around->n++] = id;
    return TG_OK;
}

/* ---- the end ------------------------------------------------------------------------------ */

tg_status tg_build_check_tokens(const tg_tokenizer *t, tg_error *err)
{
    return t->vocab.n_used ? TG_OK : tg_fail(err, TG_E_MODEL, t->file, "the vocabulary is empty");
}

/* The symbols that a text begins as: bytes, of which one at least must be there. */
static tg_status finish_bytes(tg_tokenizer *t, tg_error *err)
{
    int n_bytes = 0;
    for (int b = 0; b < 256; b++) {
        uint8_t byte = (uint8_t)b;
        t->bpe.byte_id[b] = tg_vocab_find_bytes(&t->vocab, &byte, 1);
        n_bytes += t->bpe.byte_id[b] >= 0;
    }
    return n_bytes ? TG_OK
                   : tg_fail(err, TG_E_MODEL, t->file,
                             "not a byte-level vocabulary: no byte has a token");
}

/* Or characters, with all bytes to fall back on or none. */
static tg_status finish_text(tg_tokenizer *t, tg_error *err)
{
    int n_bytes = 0;
    for (int b = 0; b < 256; b++) {
        uint8_t byte = (uint8_t)b;
        char name[8];
        size_t n = (size_t)snprintf(name, sizeof name, "<0x%02X>", byte);
        int32_t id = t->byte_fallback ? tg_vocab_find(&t->vocab, name, n) : -1;
        t->bpe.byte_id[b] = id;
        n_bytes += id >= 0;
        if (b < 128)
            t->bpe.ascii_id[b] = tg_vocab_find_bytes(&t->vocab, &byte, 1);
        if (id >= 0 && tg_vocab_set_literal(&t->vocab, id, &byte, 1, err) != TG_OK)
            return TG_E_RESOURCE;
    }
    if (n_bytes && n_bytes < 256)
        return tg_fail(err, TG_E_MODEL, t->file, "only %d of the 256 bytes have a token", n_bytes);
    t->bpe.chars = &t->vocab;
    /* Where a space is no token, a run of unknown characters may reach across it. */
    if (t->bpe.ascii_id[' '] < 0)
        memset(t->vocab.before_space, true, sizeof t->vocab.before_space);
    return TG_OK;
}

tg_status tg_build_finish(tg_tokenizer *t, tg_error *err)
{
    bool text = t->vocab.alphabet == TG_ALPHABET_TEXT;
    tg_status status = tg_build_check_tokens(t, err);
    if (status == TG_OK)
        status = text ? finish_text(t, err) : finish_bytes(t, err);
    if (status != TG_OK)
        return status;
    if (t->n_merges == 0 && !t->bpe.token_ranks)
        return tg_fail(err, TG_E_MODEL, t->file, "a BPE vocabulary without merges");
    status = tg_added_finish(&t->raw, t->file, err);
    if (status == TG_OK)
        status = tg_added_finish(&t->normalized, t->file, err);
    if (status != TG_OK)
        return status;
    if (t->ignore_merges)
        t->bpe.whole = &t->vocab;
    else if (!text)
        tg_vocab_drop_index(&t->vocab);
    for (int32_t id = 0; id < t->vocab.n_tokens; id++)
        if (t->vocab.tokens[id].n > t->longest)
            t->longest = t->vocab.tokens[id].n;
    t->file = NULL;
    return TG_OK;
}
