/* Tests of vocab.c: rows M53, M54, A17 and A18 of the fault catalogue. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "token/tokenizer.h"
#include "token/vocab.h"

static tg_status add(tg_vocab *v, int64_t id, const char *spelling, tg_error *err)
{
    *err = (tg_error){0};
    return tg_vocab_add(v, id, spelling, strlen(spelling), "x.json", err);
}

static void refused(tg_vocab *v, int64_t id, const char *spelling, const char *wanted)
{
    tg_error err;
    assert_int_equal(add(v, id, spelling, &err), TG_E_MODEL);
    if (!strstr(err.message, wanted))
        print_error("%s\n", err.message);
    assert_non_null(strstr(err.message, wanted));
}

static void expect_bytes(const tg_vocab *v, int32_t id, const char *bytes, size_t n)
{
    assert_int_equal(v->tokens[id].n, n);
    assert_memory_equal(v->text + v->tokens[id].at, bytes, n);
}

/* The alphabet as GPT-2 defines it: printable Latin-1 stands for itself, the rest in order from
 * U+0100. */
static void alphabet(void **state)
{
    (void)state;
    tg_vocab v;
    tg_error err;
    assert_int_equal(tg_vocab_init(&v, 256, NULL), TG_OK);
    uint32_t next = 0x100;
    for (uint32_t b = 0; b < 256; b++) {
        bool printable = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
        uint32_t code = printable ? b : next++;
        char spelling[3] = {(char)code};
        if (code >= 0x80) {
            spelling[0] = (char)(0xc0 | code >> 6);
            spelling[1] = (char)(0x80 | (code & 0x3f));
        }
        assert_int_equal(add(&v, b, spelling, &err), TG_OK);
        expect_bytes(&v, (int32_t)b, (const char[]){(char)b}, 1);
        assert_int_equal(tg_vocab_find(&v, spelling, strlen(spelling)), b);
        assert_int_equal(tg_vocab_find_bytes(&v, (const uint8_t[]){(uint8_t)b}, 1), b);
    }
    assert_int_equal(next, 0x144);
    tg_vocab_deinit(&v);
}

static void literal_text(void **state)
{
    (void)state;
    tg_vocab v;
    tg_error err;
    assert_int_equal(tg_vocab_init(&v, 10, NULL), TG_OK);
    assert_int_equal(add(&v, 0,
                         "\xc4\xa0"
                         "a",
                         &err),
                     TG_OK);                         /* in the alphabet: " a" */
    assert_int_equal(add(&v, 1, " a", &err), TG_OK); /* a space is not: itself (A18) */
    assert_int_equal(add(&v, 2, "\xe4\xb8\x80", &err), TG_OK);
    assert_int_equal(add(&v, 3, "\xc3\xa9", &err), TG_OK);         /* the byte E9 */
    assert_int_equal(add(&v, 4, "\xc3\x83\xc2\xa9", &err), TG_OK); /* the bytes C3 A9 */
    expect_bytes(&v, 0, " a", 2);
    expect_bytes(&v, 1, " a", 2);
    expect_bytes(&v, 2, "\xe4\xb8\x80", 3);
    expect_bytes(&v, 3, "\xe9", 1);
    expect_bytes(&v, 4, "\xc3\xa9", 2);
    assert_int_equal(add(&v, 5, "\xc2\xad", &err), TG_OK); /* a soft hyphen: the byte AD is another character */
    expect_bytes(&v, 5, "\xc2\xad", 2);
    assert_int_equal(tg_vocab_find(&v, "\xff", 1), -1);
    assert_int_equal(tg_vocab_find(&v, " a", 2), 1);
    assert_int_equal(tg_vocab_find_bytes(&v, (const uint8_t *)" a", 2), 0);
    assert_int_equal(tg_vocab_find_bytes(&v, (const uint8_t *)"\xe4\xb8\x80", 3), -1);
    assert_int_equal(tg_vocab_set_literal(&v, 3, "\xc3\xa9", 2, NULL), TG_OK);
    expect_bytes(&v, 3, "\xc3\xa9", 2);
    assert_int_equal(tg_vocab_set_literal(&v, 3, "xy", 2, NULL), TG_OK); /* as long, and another */
    expect_bytes(&v, 3, "xy", 2);
    assert_int_equal(tg_vocab_find_bytes(&v, (const uint8_t *)"\xe9", 1),
                     3); /* the index is as before */
    tg_vocab_drop_index(&v);
    assert_int_equal(tg_vocab_find(&v, " a", 2), -1);
    expect_bytes(&v, 1, " a", 2);
    tg_vocab_deinit(&v);
}

/* SentencePiece's spellings are text, but for its spaces and its bytes. */
static void text_alphabet(void **state)
{
    (void)state;
    tg_vocab v;
    tg_error err;
    int32_t ids[3];
    assert_int_equal(tg_vocab_init(&v, 10, NULL), TG_OK);
    v.alphabet = TG_ALPHABET_TEXT;
    assert_int_equal(add(&v, 0,
                         "\xe2\x96\x81"
                         "a",
                         &err),
                     TG_OK);
    assert_int_equal(add(&v, 1, "<0x41>", &err), TG_OK);
    assert_int_equal(add(&v, 2, "b\xe2\x96\x81", &err), TG_OK);
    assert_int_equal(add(&v, 3,
                         "b\xe2\x96\x81\xe2\x96\x81"
                         "a",
                         &err),
                     TG_OK);
    assert_int_equal(add(&v, 4, "\xc4\xa0", &err), TG_OK);
    refused(&v, 5, " a", "tokens 0 and 5 are the same (' a')");
    refused(&v, 5, "<0x41>", "tokens 1 and 5 are the same");
    expect_bytes(&v, 0, " a", 2);
    expect_bytes(&v, 3, "b  a", 4);
    expect_bytes(&v, 4, "\xc4\xa0", 2);
    assert_int_equal(tg_vocab_find(&v, "<0x41>", 6), 1);
    assert_int_equal(tg_vocab_find_bytes(&v, (const uint8_t *)"<0x41>", 6),
                     -1); /* no text leads there */
    assert_int_equal(tg_vocab_find_bytes(&v, (const uint8_t *)" a", 2), 0);
    tg_vocab_find_merge(&v, "b\xe2\x96\x81", 4,
                        "\xe2\x96\x81"
                        "a",
                        4, -1, ids);
    assert_memory_equal(ids, ((int32_t[]){2, 0, 3}), sizeof ids);
    tg_vocab_find_merge(&v, "b", 1, "\xff", 1, 3, ids);
    assert_memory_equal(ids, ((int32_t[]){-1, -1, -1}), sizeof ids);
    assert_true(v.before_space['b'] && v.before_space[' '] && !v.before_space['a']);
    /* a guess that is as long as the merged token, but to which no bytes lead */
    assert_int_equal(tg_vocab_set_literal(&v, 3, "abcd", 4, &err), TG_OK);
    tg_vocab_find_merge(&v, "b\xe2\x96\x81", 4, "\xe2\x96\x81" "a", 4, 3, ids);
    assert_memory_equal(ids, ((int32_t[]){2, 0, 3}), sizeof ids);
    tg_vocab_deinit(&v);

    static const char *const no_bytes[] = {"<0x4>",  "<0x411>", "<0xG0>",
                                           "<0x-1>", "(0x41>",  "<0x41)", "<0xg0>"};
    for (size_t i = 0; i < sizeof no_bytes / sizeof *no_bytes; i++)
        assert_int_equal(tg_vocab_named_byte(no_bytes[i], strlen(no_bytes[i])), -1);
    assert_int_equal(tg_vocab_named_byte("<0xfF>", 6), 255);
}

static void m53_ids_and_duplicates(void **state)
{
    (void)state;
    tg_vocab v;
    tg_error err;
    assert_int_equal(tg_vocab_init(&v, 10, NULL), TG_OK);
    assert_int_equal(add(&v, 9, "a", &err), TG_OK);
    refused(&v, 10, "b", "x.json: token id out of range (found 10, allowed 0 to 9)");
    refused(&v, -1, "b", "found -1");
    refused(&v, INT64_MAX, "b", "found 9223372036854775807");
    refused(&v, 9, "b", "token id 9 is there twice");
    refused(&v, 3, "a", "tokens 9 and 3 are the same ('a')");
    assert_int_equal(v.n_tokens, 10);
    tg_vocab_deinit(&v);
}

static void a17_holes(void **state)
{
    (void)state;
    tg_vocab v;
    tg_error err;
    assert_int_equal(tg_vocab_init(&v, 10, NULL), TG_OK);
    assert_int_equal(add(&v, 1, "", &err), TG_OK);
    assert_int_equal(add(&v, 2, "", &err), TG_OK);
    assert_int_equal(v.n_tokens, 3);
    assert_int_equal(v.tokens[1].n, 0);
    assert_int_equal(tg_vocab_find(&v, "", 0), -1);
    tg_vocab_deinit(&v);
}

static void m54_long_or_not_utf8(void **state)
{
    (void)state;
    tg_vocab v;
    tg_error err;
    char text[TG_MAX_TOKEN_BYTES + 2];
    memset(text, 'x', sizeof text);
    assert_int_equal(tg_vocab_init(&v, 10, NULL), TG_OK);
    text[TG_MAX_TOKEN_BYTES + 1] = 0;
    refused(&v, 7, text, "token 7 is too long (found 4097 bytes, allowed 4096)");
    text[TG_MAX_TOKEN_BYTES] = 0;
    assert_int_equal(add(&v, 7, text, &err), TG_OK);
    assert_int_equal(tg_vocab_find(&v, text, TG_MAX_TOKEN_BYTES), 7);
    refused(&v, 5, "a\xff", "token 5 is not valid UTF-8 (found 'a\\xff')");
    refused(&v, 5, "\xc0\x80", "token 5 is not valid UTF-8");
    refused(&v, 5, "\xc3", "token 5 is not valid UTF-8");
    refused(&v, 5, "\xc3(", "token 5 is not valid UTF-8");
    refused(&v, 5, "\xed\xa0\x80", "token 5 is not valid UTF-8");
    int32_t ids[3];
    tg_vocab_find_merge(&v, text, TG_MAX_TOKEN_BYTES, text, TG_MAX_TOKEN_BYTES + 1, 0, ids);
    assert_memory_equal(ids, ((int32_t[]){7, -1, -1}), sizeof ids);
    v.n_text = UINT32_MAX; /* as if so much were there */
    refused(&v, 5, "a", "vocabulary too large (found more than 4294967295 bytes of tokens)");
    assert_int_equal(tg_vocab_set_literal(&v, 7, "a", 1, NULL), TG_E_MODEL);
    tg_vocab_deinit(&v);
}

static void many(void **state)
{
    (void)state;
    enum { N = 50000 };
    tg_vocab v;
    tg_error err;
    char text[16];
    assert_int_equal(tg_vocab_init(&v, N, NULL), TG_OK);
    for (int i = 0; i < N; i++) {
        snprintf(text, sizeof text, "t%d", i * 7);
        assert_int_equal(add(&v, N - 1 - i, text, &err), TG_OK);
    }
    for (int i = 0; i < N; i++) {
        size_t n = (size_t)snprintf(text, sizeof text, "t%d", i * 7);
        assert_int_equal(tg_vocab_find(&v, text, n), N - 1 - i);
        assert_int_equal(tg_vocab_find_bytes(&v, (const uint8_t *)text, n), N - 1 - i);
    }
    assert_int_equal(tg_vocab_find(&v, "t1", 2), -1);
    tg_vocab_deinit(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alphabet),      cmocka_unit_test(literal_text),
        cmocka_unit_test(text_alphabet), cmocka_unit_test(m53_ids_and_duplicates),
        cmocka_unit_test(a17_holes),     cmocka_unit_test(m54_long_or_not_utf8),
        cmocka_unit_test(many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
