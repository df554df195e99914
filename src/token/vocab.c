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
    uint32_t next_id; /* the id + 1; 0: free */
};

typedef struct key {
    const uint8_t *bytes;
    size_t n;
    bool literal;
} key;

/* ---- the alphabets ------------------------------------------------------------------------ */

/* The byte that a character of the byte-level alphabet stands for, or -1. Printable Latin-1 bytes
 * are their own characters; the other 68, in order, are those from U+0100 on. */
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

int tg_vocab_named_byte(const void *spelling, size_t n)
{
    const uint8_t *s = spelling;
    int byte = 0;
    if (n != 6 || memcmp(s, "<0x", 3) != 0 || s[5] != '>')
        return -1;
    for (int i = 3; i < 5; i++) {
        int digit = s[i] >= '0' && s[i] <= '9'   ? s[i] - '0'
                    : s[i] >= 'A' && s[i] <= 'F' ? s[i] - 'A' + 10
                    : s[i] >= 'a' && s[i] <= 'f' ? s[i] - 'a' + 10
                                                 : -1;
        if (digit < 0)
            return -1;
        byte = byte << 4 | digit;
    }
    return byte;
}

/* The character at s[i], checked: its length in bytes, or 0. */
static inline size_t character(const uint8_t *s, size_t n, size_t i, uint32_t *code)
{
    *code = s[i];
    if (s[i] < 0x80)
        return 1;
    if (s[i] >= 0xc2 && s[i] < 0xe0 && n - i > 1 &&
        (s[i + 1] & 0xc0) == 0x80) { /* most of a spelling */
        *code = (s[i] & 0x1fu) << 6 | (s[i + 1] & 0x3fu);
        return 2;
    }
    return (size_t)tg_utf8_decode(s + i, n - i, code);
}

/* Reads a spelling of at most TG_MAX_TOKEN_BYTES into `out`, which has room for as many; the key
 * borrows from both. False when it is not UTF-8. */
static bool read_spelling(tg_alphabet alphabet, const void *spelling, size_t n, uint8_t *out,
                          key *k)
{
    enum { SPACE = 0x2581 };
    const uint8_t *s = spelling;
    bool text = alphabet == TG_ALPHABET_TEXT;
    size_t used = 0, length;
    uint32_t code;
    *k = (key){.bytes = out, .literal = text && tg_vocab_named_byte(s, n) >= 0};
    for (size_t i = 0; i < n; i += length) {
        length = character(s, n, i, &code);
        if (length == 0)
            return false;
        int byte = !text ? byte_of(code) : code == SPACE ? ' ' : -1;
        if (byte >= 0) {
            out[used++] = (uint8_t)byte;
        } else if (text) {
            memcpy(out + used, s + i, length);
            used += length;
        } else {
            k->literal = true;
        }
    }
    k->n = used;
    if (k->literal)
        *k = (key){.bytes = s, .n = n, .literal = true};
    return true;
}

/* ---- the index ---------------------------------------------------------------------------- */

/* The slot that holds the key, or the free one where it belongs. There is always a free one. */
static tg_vocab_slot *slot_of(const tg_vocab *v, const key *k, uint32_t *upper)
{
    uint64_t h = tg_hash_bytes(v->seed + k->literal, k->bytes, k->n);
    *upper = (uint32_t)(h >> 32);
    for (size_t i = h & (v->n_slots - 1);; i = (i + 1) & (v->n_slots - 1)) {
        tg_vocab_slot *s = &v->slots[i];
        if (s->next_id == 0)
            return s;
        if (s->hash == *upper && s->n == k->n && s->literal == k->literal &&
            memcmp(v->text + s->at, k->bytes, k->n) == 0)
            return s;
    }
}

static bool resize_index(tg_vocab *v, size_t n_slots, tg_error *err)
{
    tg_vocab old = *v;
    v->slots = tg_alloc(n_slots, sizeof *v->slots, "the index of a vocabulary", err);
    if (!v->slots) {
        v->slots = old.slots;
        return false;
    }
    v->n_slots = n_slots;
    for (size_t i = 0; i < old.n_slots; i++) {
        const tg_vocab_slot *s = &old.slots[i];
        uint32_t upper;
        if (s->next_id)
            *slot_of(v, &(key){v->text + s->at, s->n, s->literal}, &upper) = *s;
    }
    free(old.slots);
    return true;
}

static int32_t find_key(const tg_vocab *v, const key *k)
{
    uint32_t upper;
    return v->n_slots && k->n ? (int32_t)slot_of(v, k, &upper)->next_id - 1 : -1;
}

int32_t tg_vocab_find(const tg_vocab *v, const void *spelling, size_t n)
{
    uint8_t room[TG_MAX_TOKEN_BYTES];
    key k;
    return n <= TG_MAX_TOKEN_BYTES && read_spelling(v->alphabet, spelling, n, room, &k)
               ? find_key(v, &k)
               : -1;
}

int32_t tg_vocab_find_bytes(const tg_vocab *v, const uint8_t *bytes, size_t n)
{
    return n <= v->longest ? find_key(v, &(key){bytes, n, false}) : -1;
}

void tg_vocab_find_merge(const tg_vocab *v, const void *left, size_t n_left, const void *right,
                         size_t n_right, int32_t guess, int32_t ids[3])
{
    uint8_t room[2 * TG_MAX_TOKEN_BYTES];
    key l, r;
    ids[0] = ids[1] = ids[2] = -1;
    if (n_left > TG_MAX_TOKEN_BYTES || !read_spelling(v->alphabet, left, n_left, room, &l))
        return;
    ids[0] = find_key(v, &l);
    if (n_right > TG_MAX_TOKEN_BYTES || !read_spelling(v->alphabet, right, n_right, room + l.n, &r))
        return;
    ids[1] = find_key(v, &r);
    if (!l.literal && !r.literal) {
        const tg_vocab_token *token = guess >= 0 && guess < v->n_tokens ? &v->tokens[guess] : NULL;
        bool good = token && token->n == l.n + r.n && !token->is_literal &&
                    memcmp(v->text + token->at, room, token->n) == 0;
        ids[2] = good ? guess : tg_vocab_find_bytes(v, room, l.n + r.n);
        return;
    }
    memcpy(room, left, n_left);
    memcpy(room + n_left, right, n_right);
    ids[2] = tg_vocab_find(v, room, n_left + n_right);
}

/* ---- life --------------------------------------------------------------------------------- */

tg_status tg_vocab_init(tg_vocab *v, int32_t n_ids, tg_error *err)
{
    *v = (tg_vocab){.seed = tg_hash_seed(), .n_ids = n_ids};
    v->tokens = tg_alloc((size_t)n_ids, sizeof *v->tokens, "the vocabulary", err);
    return v->tokens ? TG_OK : TG_E_RESOURCE;
}

tg_status tg_vocab_reserve(tg_vocab *v, uint64_t n, tg_error *err)
{
    size_t n_slots = v->n_slots ? v->n_slots : 1024;
    while (n_slots / 2 < n && n_slots / 2 < (size_t)v->n_ids)
        n_slots *= 2;
    return n_slots == v->n_slots || resize_index(v, n_slots, err) ? TG_OK : TG_E_RESOURCE;
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
    uint8_t room[TG_MAX_TOKEN_BYTES];
    key k;
    if (!read_spelling(v->alphabet, spelling, n, room, &k))
        return tg_fail(err, TG_E_MODEL, file, "token %" PRId64 " is not valid UTF-8 (found '%s')",
                       id, tg_quote(&q, spelling, n));
    if (id >= v->n_tokens)
        v->n_tokens = (int32_t)id + 1;
    if (n == 0)
        return TG_OK;
    if (v->n_used >= v->n_slots / 2 && !resize_index(v, v->n_slots ? v->n_slots * 2 : 1024, err))
        return TG_E_RESOURCE;

    uint32_t upper, at;
    tg_vocab_slot *slot = slot_of(v, &k, &upper);
    if (slot->next_id)
        return tg_fail(err, TG_E_MODEL, file, "tokens %d and %" PRId64 " are the same ('%s')",
                       (int32_t)slot->next_id - 1, id, tg_quote(&q, spelling, n));
    tg_status status = append_text(v, k.bytes, k.n, &at, err);
    if (status != TG_OK)
        return status;
    *slot = (tg_vocab_slot){.hash = upper,
                            .at = at,
                            .n = (uint16_t)k.n,
                            .literal = k.literal,
                            .next_id = (uint32_t)id + 1};
    v->n_used++;
    *token = (tg_vocab_token){.at = at, .n = (uint16_t)k.n, .is_literal = k.literal};
    if (k.n > v->longest)
        v->longest = k.n;
    for (size_t i = 1; v->alphabet == TG_ALPHABET_TEXT && i < k.n; i++)
        v->before_space[k.bytes[i - 1]] |= k.bytes[i] == ' ';
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
        token->is_literal = true;
    }
    return status;
}
