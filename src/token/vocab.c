/* vocab.c - one blob of bytes, one array by id, one open-addressing index by content. */
#include "token/vocab.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "token/hash.h"
#include "token/tokenizer.h"

/* Bytes and literal texts are different keys: "é" in the alphabet is the byte E9, as text C3 A9. */
struct tg_vocab_slot {
    uint32_t hash; /* its upper half */
    uint32_t at;
    uint16_t n;
    bool literal;
    int32_t id; /* -1: free */
};

typedef struct key {
    const uint8_t *bytes;
    size_t n;
    bool literal;
    uint8_t decoded[TG_MAX_TOKEN_BYTES];
} key;

tg_status tg_vocab_init(tg_vocab *v, int32_t n_ids, tg_error *err)
{
    *v = (tg_vocab){.seed = tg_hash_seed(), .n_ids = n_ids};
    v->tokens = tg_alloc((size_t)n_ids, sizeof *v->tokens, "the vocabulary", err);
    return v->tokens ? TG_OK : TG_E_RESOURCE;
}

void tg_vocab_deinit(tg_vocab *v)
{
    free(v->tokens);
    free(v->text);
    free(v->slots);
    *v = (tg_vocab){0};
}

void tg_vocab_drop_index(tg_vocab *v)
{
    free(v->slots);
    v->slots = NULL;
    v->n_slots = v->n_used = 0;
}

/* ---- the alphabet ------------------------------------------------------------------------- */

/* The byte that a character of the alphabet stands for, or -1. Printable Latin-1 bytes are their
 * own characters; the other 68, in order, are those from U+0100 on. */
static int byte_of(uint32_t code)
{
    if ((code >= 0x21 && code <= 0x7e) || (code >= 0xa1 && code <= 0xff && code != 0xad))
        return (int)code;
    if (code < 0x100)
        return -1;
    code -= 0x100;
    return code < 33    ? (int)code /* 00 to 20 */
           : code == 33 ? 0x7f
           : code < 67  ? (int)code - 34 + 0x80 /* 80 to a0 */
           : code == 67 ? 0xad
                        : -1;
}

/* Reads a spelling, valid UTF-8 of at most TG_MAX_TOKEN_BYTES. */
static void read_spelling(key *k, const uint8_t *s, size_t n)
{
    size_t used = 0;
    uint32_t code;
    for (size_t i = 0; i < n;) {
        i += (size_t)tg_utf8_decode(s + i, n - i, &code);
        int byte = byte_of(code);
        if (byte < 0) {
            k->bytes = s;
            k->n = n;
            k->literal = true;
            return;
        }
        k->decoded[used++] = (uint8_t)byte;
    }
    k->bytes = k->decoded;
    k->n = used;
    k->literal = false;
}

/* ---- the index ---------------------------------------------------------------------------- */

/* The slot that holds the key, or the free one where it belongs. There is always a free one. */
static tg_vocab_slot *slot_of(const tg_vocab *v, const uint8_t *bytes, size_t n, bool literal,
                              uint32_t *upper)
{
    uint64_t h = tg_hash_bytes(v->seed + literal, bytes, n);
    *upper = (uint32_t)(h >> 32);
    for (size_t i = h & (v->n_slots - 1);; i = (i + 1) & (v->n_slots - 1)) {
        tg_vocab_slot *s = &v->slots[i];
        if (s->id < 0)
            return s;
        if (s->hash == *upper && s->n == n && s->literal == literal &&
            memcmp(v->text + s->at, bytes, n) == 0)
            return s;
    }
}

static bool grow_index(tg_vocab *v, tg_error *err)
{
    size_t n = v->n_slots ? v->n_slots * 2 : 1024;
    tg_vocab old = *v;
    v->slots = tg_alloc(n, sizeof *v->slots, "the index of a vocabulary", err);
    if (!v->slots) {
        v->slots = old.slots;
        return false;
    }
    v->n_slots = n;
    for (size_t i = 0; i < n; i++)
        v->slots[i].id = -1;
    for (size_t i = 0; i < old.n_slots; i++) {
        const tg_vocab_slot *s = &old.slots[i];
        uint32_t upper;
        if (s->id >= 0)
            *slot_of(v, v->text + s->at, s->n, s->literal, &upper) = *s;
    }
    free(old.slots);
    return true;
}

static int32_t find_key(const tg_vocab *v, const uint8_t *bytes, size_t n, bool literal)
{
    uint32_t upper;
    return v->n_slots ? slot_of(v, bytes, n, literal, &upper)->id : -1;
}

int32_t tg_vocab_find(const tg_vocab *v, const void *spelling, size_t n)
{
    if (n == 0 || n > TG_MAX_TOKEN_BYTES || !tg_utf8_valid(spelling, n))
        return -1;
    key k;
    read_spelling(&k, spelling, n);
    return find_key(v, k.bytes, k.n, k.literal);
}

int32_t tg_vocab_find_bytes(const tg_vocab *v, const uint8_t *bytes, size_t n)
{
    return n > 0 && n <= TG_MAX_TOKEN_BYTES ? find_key(v, bytes, n, false) : -1;
}

/* ---- tokens ------------------------------------------------------------------------------- */

static tg_status append_text(tg_vocab *v, const uint8_t *bytes, size_t n, uint32_t *at,
                             tg_error *err)
{
    if (n > UINT32_MAX - v->n_text)
        return tg_fail(err, TG_E_MODEL, NULL,
                       "vocabulary too large (found more than %u bytes of tokens)", UINT32_MAX);
    if (!tg_grow((void **)&v->text, &v->text_room, v->n_text + n, 1, "the text of a vocabulary",
                 err))
        return TG_E_RESOURCE;
    memcpy(v->text + v->n_text, bytes, n);
    *at = (uint32_t)v->n_text;
    v->n_text += n;
    return TG_OK;
}

tg_status tg_vocab_add(tg_vocab *v, int64_t id, const void *spelling, size_t n, const char *file,
                       tg_error *err)
{
    tg_quoted q;
    if (id < 0 || id >= v->n_ids)
        return tg_fail(err, TG_E_MODEL, file,
                       "token id out of range (found %" PRId64 ", allowed 0 to %d)", id,
                       v->n_ids - 1);
    tg_vocab_token *token = &v->tokens[id];
    if (token->n)
        return tg_fail(err, TG_E_MODEL, file, "token id %" PRId64 " is there twice", id);
    if (n > TG_MAX_TOKEN_BYTES)
        return tg_fail(err, TG_E_MODEL, file,
                       "token %" PRId64 " is too long (found %zu bytes, allowed %d)", id, n,
                       TG_MAX_TOKEN_BYTES);
    if (!tg_utf8_valid(spelling, n))
        return tg_fail(err, TG_E_MODEL, file, "token %" PRId64 " is not valid UTF-8 (found '%s')",
                       id, tg_quote(&q, spelling, n));
    if (id >= v->n_tokens)
        v->n_tokens = (int32_t)id + 1;
    if (n == 0)
        return TG_OK;
    if (v->n_used >= v->n_slots / 2 && !grow_index(v, err))
        return TG_E_RESOURCE;

    key k;
    read_spelling(&k, spelling, n);
    uint32_t upper, at;
    tg_vocab_slot *slot = slot_of(v, k.bytes, k.n, k.literal, &upper);
    if (slot->id >= 0)
        return tg_fail(err, TG_E_MODEL, file, "tokens %d and %" PRId64 " are the same ('%s')",
                       slot->id, id, tg_quote(&q, spelling, n));
    tg_status status = append_text(v, k.bytes, k.n, &at, err);
    if (status != TG_OK)
        return status;
    *slot = (tg_vocab_slot){
        .hash = upper, .at = at, .n = (uint16_t)k.n, .literal = k.literal, .id = (int32_t)id};
    v->n_used++;
    *token = (tg_vocab_token){.at = at, .n = (uint16_t)k.n};
    return TG_OK;
}

tg_status tg_vocab_set_literal(tg_vocab *v, int32_t id, const void *bytes, size_t n, tg_error *err)
{
    tg_vocab_token *token = &v->tokens[id];
    if (id >= v->n_tokens)
        v->n_tokens = id + 1;
    if (token->n == n && memcmp(v->text + token->at, bytes, n) == 0)
        return TG_OK;
    uint32_t at;
    tg_status status = append_text(v, bytes, n, &at, err);
    if (status == TG_OK) {
        token->at = at;
        token->n = (uint16_t)n;
    }
    return status;
}
