/* build.c - the checks that hold for every source of a tokenizer. */
#include "token/build.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "token/nfc.h"

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

/* ---- merges ------------------------------------------------------------------------------- */

tg_status tg_build_merge(tg_tokenizer *t, const void *left, size_t n_left, const void *right,
                         size_t n_right, uint64_t line, tg_error *err)
{
    uint8_t both[2 * TG_MAX_TOKEN_BYTES];
    tg_quoted q;
    int32_t l = tg_vocab_find(&t->vocab, left, n_left);
    if (l < 0)
        return tg_fail(err, TG_E_MODEL, t->file, "merge %" PRIu64 ": '%s' is no token", line,
                       tg_quote(&q, left, n_left));
    int32_t r = tg_vocab_find(&t->vocab, right, n_right);
    if (r < 0)
        return tg_fail(err, TG_E_MODEL, t->file, "merge %" PRIu64 ": '%s' is no token", line,
                       tg_quote(&q, right, n_right));
    memcpy(both, left, n_left); /* tokens are no longer than half of it */
    memcpy(both + n_left, right, n_right);
    int32_t id = tg_vocab_find(&t->vocab, both, n_left + n_right);
    if (id < 0)
        return tg_fail(err, TG_E_MODEL, t->file, "merge %" PRIu64 ": the result '%s' is no token",
                       line, tg_quote(&q, both, n_left + n_right));
    if (t->n_merges == INT32_MAX)
        return tg_fail(err, TG_E_MODEL, t->file, "too many merges (allowed %d)", INT32_MAX);
    return tg_bpe_add_merge(&t->bpe, l, r, id, t->n_merges++, err);
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

    tg_added_token looked_for = *token;
    uint8_t *composed = NULL;
    tg_status status = TG_OK;
    if (token->normalized && t->nfc)
        status = tg_nfc((const uint8_t *)token->text, token->n_bytes, &composed,
                        &looked_for.n_bytes, err);
    if (composed)
        looked_for.text = (const char *)composed;
    if (status == TG_OK)
        status = tg_added_add(token->normalized ? &t->normalized : &t->raw, &looked_for, err);
    free(composed);
    if (status == TG_OK)
        status = tg_vocab_set_literal(v, token->id, token->text, token->n_bytes, err);
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

tg_status tg_build_finish(tg_tokenizer *t, tg_error *err)
{
    tg_quoted q;
    tg_status status = tg_build_check_tokens(t, err);
    if (status != TG_OK)
        return status;
    int n_bytes = 0;
    for (int b = 0; b < 256; b++) {
        uint8_t byte = (uint8_t)b;
        t->bpe.byte_id[b] = tg_vocab_find_bytes(&t->vocab, &byte, 1);
        n_bytes += t->bpe.byte_id[b] >= 0;
    }
    if (n_bytes == 0)
        return tg_fail(err, TG_E_MODEL, t->file,
                       "not a byte-level vocabulary: no byte has a token");
    if (t->n_merges == 0)
        return tg_fail(err, TG_E_MODEL, t->file, "a BPE vocabulary without merges");
    const tg_added_token *twice;
    if (!tg_added_finish(&t->raw, &twice) || !tg_added_finish(&t->normalized, &twice))
        return tg_fail(err, TG_E_MODEL, t->file, "added token '%s' is there twice",
                       tg_quote(&q, twice->text, twice->n_bytes));
    if (t->ignore_merges)
        t->bpe.whole = &t->vocab;
    else
        tg_vocab_drop_index(&t->vocab);
    t->file = NULL;
    return TG_OK;
}
