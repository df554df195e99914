/* encode.c - texts to tokens and back, by each of the tokenizers of tests/token/data/cases.json; and as they are shown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/utf8.h"
#include "cli/text.h"
#include "fuzz/fuzz.h"
#include "support/tokenizers.h"

enum { MANY = 64, VOCAB = 2000 };

static struct {
    tg_tokenizer *t;
    bool round_trip, stable;
} kinds[MANY];
static size_t n_kinds;

static void load_all(void)
{
    json_t *sets = load_json(TOKEN_DATA "cases.json");
    const json_t *set;
    size_t i;
    json_array_foreach(sets, i, set)
    {
        MUST(n_kinds < MANY);
        json_t *root = load_patched(json_string_value(json_object_get(set, "file")), json_object_get(set, "patch"));
        kinds[n_kinds].round_trip = json_is_true(json_object_get(set, "round_trip"));
        kinds[n_kinds].stable = json_is_true(json_object_get(set, "stable"));
        kinds[n_kinds++].t = tokenizer_of(root, VOCAB);
    }
    json_decref(sets);
}

typedef struct tokens {
    int32_t *ids;
    size_t n, dropped;
} tokens;

static tokens encode(const tg_tokenizer *t, const void *text, size_t n, unsigned flags)
{
    tokens to;
    tg_error err = {0};
    MUST(tg_tokenizer_encode(t, text, n, flags, &to.ids, &to.n, &to.dropped, &err) == TG_OK);
    for (size_t i = 0; i < to.n; i++)
        MUST(to.ids[i] >= 0 && to.ids[i] < VOCAB);
    MUST(to.dropped <= n);
    return to;
}

static void same_tokens(tokens a, const tokens *b)
{
    MUST(a.n == b->n && (a.n == 0 || memcmp(a.ids, b->ids, a.n * sizeof *a.ids) == 0));
    tg_free(a.ids);
}

/* Bytes in whole characters, and none lost, whatever the tokens are. */
static uint8_t *decode(const tg_tokenizer *t, const tokens *of, size_t *n)
{
    size_t k, all = 0, at = 0, got = 0;
    for (size_t i = 0; i < of->n; i++, all += k)
        tg_tokenizer_bytes(t, of->ids[i], &k);
    uint8_t *bytes = malloc(all + 1), *streamed = malloc(all + 4);
    tg_stream stream = {0};
    for (size_t i = 0; i < of->n; i++, at += k) {
        const char *part = tg_tokenizer_bytes(t, of->ids[i], &k);
        if (k)
            memcpy(bytes + at, part, k);
        got += tg_stream_push(&stream, part, k, (char *)streamed + got);
        MUST(got <= all && stream.n_held >= 0 && stream.n_held <= 3);
    }
    got += tg_stream_flush(&stream, (char *)streamed + got);
    MUST(got == all && memcmp(bytes, streamed, all) == 0);
    free(streamed);
    *n = all;
    return bytes;
}

/* A text of which all is a message's has no special tokens; one of which nothing is has the same as without a word. */
static void check_plain(const tg_tokenizer *t, const uint8_t *text, size_t n, unsigned flags)
{
    tokens to;
    uint8_t *plain = malloc(n + 1);
    memset(plain, 1, n + 1);
    MUST(tg_tokenizer_encode_mixed(t, text, plain, "<|end|>", n, flags, &to.ids, &to.n, NULL, NULL) == TG_OK);
    for (size_t i = 0; i < to.n && !(flags & TG_TOK_BOS); i++)
        MUST(tg_tokenizer_kind(t, to.ids[i]) != TG_TOKEN_SPECIAL || to.ids[i] == t->bpe.unknown);
    tg_free(to.ids);
    memset(plain, 0, n + 1);
    MUST(tg_tokenizer_encode_mixed(t, text, plain, "<|end|>", n, flags, &to.ids, &to.n, NULL, NULL) == TG_OK);
    same_tokens(encode(t, text, n, flags), &to);
    tg_free(to.ids);
    free(plain);
}

/* Any bytes become text, without what moves a terminal; what is text stays as it is. */
static void check_shown(const uint8_t *text, size_t n)
{
    char *shown = malloc(TG_TEXT_GROWTH * n + 1), *again = malloc(TG_TEXT_GROWTH * TG_TEXT_GROWTH * n + 1);
    for (tg_text_mode mode = TG_TEXT_TERMINAL; mode <= TG_TEXT_QUOTED; mode++) {
        size_t k = tg_text_render(mode, text, n, shown);
        MUST(k <= TG_TEXT_GROWTH * n && tg_utf8_valid((const uint8_t *)shown, k));
        for (size_t i = 0; i < k && mode != TG_TEXT_UTF8; i++)
            MUST(((uint8_t)shown[i] >= ' ' && shown[i] != 0x7f) ||
                 (mode == TG_TEXT_TERMINAL && (shown[i] == '\n' || shown[i] == '\t')));
        MUST(mode == TG_TEXT_QUOTED || (tg_text_render(mode, shown, k, again) == k && memcmp(shown, again, k) == 0));
    }
    free(shown);
    free(again);
}

/* The first byte chooses the tokenizer, the second how it is asked. */
void fuzz(const uint8_t *data, size_t n)
{
    if (n_kinds == 0)
        load_all();
    if (n < 2)
        return;
    const size_t kind = data[0] % n_kinds;
    const tg_tokenizer *t = kinds[kind].t;
    const unsigned flags = data[1] & (TG_TOK_BOS | TG_TOK_SPECIAL);
    const uint8_t *text = data + 2;
    n -= 2;
    tokens to = encode(t, text, n, flags);
    size_t n_back;
    uint8_t *back = decode(t, &to, &n_back);
    if (kinds[kind].round_trip && !(flags & TG_TOK_BOS))
        MUST(to.dropped == 0 && n_back == n && memcmp(back, text, n) == 0);
    if (kinds[kind].stable && flags == 0) {
        tg_tokenizer_info info;
        tg_tokenizer_get_info(t, &info);
        size_t strip = info.strips_space && n_back && back[0] == ' ';
        same_tokens(encode(t, back + strip, n_back - strip, 0), &to);
    }
    if (data[1] & 4)
        check_plain(t, text, n, flags);
    if (data[1] & 8)
        check_shown(text, n);
    free(back);
    tg_free(to.ids);
}
