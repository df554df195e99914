/* Tests of build.c: rows M52 to M58 of the fault catalogue as far as they hold for every source. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "support/tokenizers.h"

static tg_error err;

/* Tokens a, b, c, ab, and "x y", which is literal text; ids 0 to 4 of 8. */
static tg_tokenizer *start(void)
{
    static const char *const spellings[] = {"a", "b", "c", "ab", "x y"};
    err = (tg_error){0};
    tg_tokenizer *t = tg_build_start("x.json", 8, &err);
    assert_non_null(t);
    t->pre = tg_pretokenizer_by_name("gpt-2");
    for (int i = 0; i < 5; i++)
        assert_int_equal(tg_build_token(t, i, spellings[i], strlen(spellings[i]), &err), TG_OK);
    return t;
}

static void refused(tg_tokenizer *t, tg_status status, const char *wanted)
{
    assert_int_equal(status, TG_E_MODEL);
    assert_int_equal(err.status, TG_E_MODEL);
    if (!strstr(err.message, wanted))
        print_error("%s\n", err.message);
    assert_non_null(strstr(err.message, wanted));
    assert_null(strchr(err.message, '\n'));
    tg_tokenizer_free(t);
}

static tg_status merge(tg_tokenizer *t, const char *text)
{
    return tg_build_merge_text(t, text, strlen(text), 7, &err);
}

static void a_small_one(void **state)
{
    (void)state;
    tg_tokenizer *t = start();
    assert_int_equal(merge(t, "a b"), TG_OK);
    assert_int_equal(tg_build_around(t, &t->before, 2, &err), TG_OK);
    assert_int_equal(tg_build_finish(t, &err), TG_OK);
    assert_int_equal(expect_ids(t, "abca", 4, 0, (int32_t[]){3, 2, 0, -1}), 0);
    assert_int_equal(expect_ids(t, "x ab", 4, TG_TOK_BOS, (int32_t[]){2, 3, -1}), 2); /* A22 */
    assert_int_equal(expect_ids(t, "", 0, 0, (int32_t[]){-1}), 0);
    assert_int_equal(expect_ids(t, NULL, 0, TG_TOK_BOS, (int32_t[]){2, -1}), 0);
    tg_tokenizer_free(t);
}

static void m52_empty(void **state)
{
    (void)state;
    tg_tokenizer *t = tg_build_start("x.json", 8, &err);
    assert_non_null(t);
    refused(t, tg_build_finish(t, &err), "x.json: the vocabulary is empty");
}

static void m55_no_byte(void **state)
{
    (void)state;
    tg_tokenizer *t = tg_build_start("x.json", 8, &err);
    assert_non_null(t);
    assert_int_equal(tg_build_token(t, 0, "ab", 2, &err), TG_OK);
    refused(t, tg_build_finish(t, &err), "no byte has a token");
}

static void m56_merges(void **state)
{
    (void)state;
    tg_tokenizer *t;
    static const char *const not_two[] = {"", " ", "ab", "a ", " b", "a  b", "a b c", "a b "};
    for (size_t i = 0; i < sizeof not_two / sizeof *not_two; i++) {
        t = start();
        refused(t, merge(t, not_two[i]), "x.json: merge 7 has not two parts (found '");
    }
    t = start();
    refused(t, merge(t, "z b"), "merge 7: 'z' is no token");
    t = start();
    refused(t, merge(t, "a \xff"), "merge 7: '\\xff' is no token");
    t = start();
    refused(t, merge(t, "b a"), "merge 7: the result 'ba' is no token");
    char wide[3 * TG_MAX_TOKEN_BYTES] = {0};
    memset(wide, 'a', sizeof wide - 1);
    wide[sizeof wide / 2] = ' ';
    t = start();
    refused(t, merge(t, wide), "merge 7: 'aaa");
}

static void m57_no_merges(void **state)
{
    (void)state;
    tg_tokenizer *t = start();
    refused(t, tg_build_finish(t, &err), "a BPE vocabulary without merges");
}

static void m58_ids(void **state)
{
    (void)state;
    int32_t id;
    static const int64_t outside[] = {-1, 8, INT64_MIN, INT64_MAX, UINT32_MAX};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        tg_tokenizer *t = start();
        refused(t, tg_build_id(t, "bos_token_id", outside[i], &id, &err),
                "bos_token_id out of range (found ");
    }
    tg_tokenizer *t = start();
    assert_int_equal(tg_build_id(t, "bos_token_id", 4, &id, &err), TG_OK);
    assert_int_equal(id, 4);
    refused(t, tg_build_id(t, "bos_token_id", 5, &id, &err), "bos_token_id is no token (found 5)");
    t = start();
    for (int i = 0; i < TG_MAX_AROUND; i++)
        assert_int_equal(tg_build_around(t, &t->before, 1, &err), TG_OK);
    refused(t, tg_build_around(t, &t->before, 1, &err),
            "too many tokens around a text (allowed 8)");
}

static tg_status added(tg_tokenizer *t, int32_t id, const char *text, bool special, bool normalized)
{
    tg_added_token token = {.id = id,
                            .text = text,
                            .n_bytes = strlen(text),
                            .special = special,
                            .normalized = normalized};
    return tg_build_added(t, &token, &err);
}

static void m54_m56_limits(void **state)
{
    (void)state;
    static char text[TG_MAX_TOKEN_BYTES + 2];
    memset(text, 'x', sizeof text - 1);
    tg_tokenizer *t = start();
    t->n_merges = TG_MAX_MERGES; /* as if so many were there */
    refused(t, merge(t, "a b"), "too many merges (allowed 4194304)");
    t = start();
    refused(t, added(t, 6, text, true, false), "token 6 is too long (found 4097 bytes, allowed 4096)");
    t = start();
    refused(t, added(t, -1, "<s>", true, false), "token id out of range (found -1, allowed 0 to 7)");
}

static void added_tokens(void **state)
{
    (void)state;
    tg_tokenizer *t = start();
    size_t n;
    t->normalizer.nfc = true;
    assert_int_equal(merge(t, "a b"), TG_OK);
    assert_int_equal(added(t, 6, "<s>", true, false), TG_OK);
    assert_int_equal(added(t, 7, "e\xcc\x81", false, true), TG_OK);
    assert_int_equal(added(t, 4, "x y", false, false), TG_OK);
    assert_int_equal(added(t, 5, "", false, false), TG_OK); /* passed over */
    assert_int_equal(tg_build_find(t, "<s>", 3), 6);
    assert_int_equal(tg_build_find(t, "ab", 2), 3);
    assert_int_equal(tg_build_find(t, "ba", 2), -1);
    assert_int_equal(tg_build_finish(t, &err), TG_OK);
    expect_ids(t, "<s>ab", 5, 0, (int32_t[]){3, -1}); /* R17; < s > have no token here */
    expect_ids(t, "<s>ab", 5, TG_TOK_SPECIAL, (int32_t[]){6, 3, -1});
    expect_ids(t,
               "x y\xc3\xa9"
               "e\xcc\x81",
               8, 0, (int32_t[]){4, 7, 7, -1});
    assert_memory_equal(tg_tokenizer_bytes(t, 7, &n), "e\xcc\x81", 3);
    assert_int_equal(n, 3);
    assert_int_equal(tg_tokenizer_kind(t, 6), TG_TOKEN_SPECIAL);
    assert_int_equal(tg_tokenizer_kind(t, 7), TG_TOKEN_NORMAL);
    assert_int_equal(tg_tokenizer_kind(t, 5), TG_TOKEN_UNUSED);
    assert_int_equal(tg_tokenizer_kind(t, -1), TG_TOKEN_UNUSED);
    assert_int_equal(tg_tokenizer_kind(t, INT32_MAX), TG_TOKEN_UNUSED);
    tg_tokenizer_bytes(t, -1, &n);
    assert_int_equal(n, 0);
    assert_false(tg_tokenizer_is_eog(t, 99));
    tg_tokenizer_free(t);

    t = start();
    refused(t, added(t, 8, "q", false, false), "token id out of range (found 8, allowed 0 to 7)");
    t = start();
    refused(t, added(t, 0, "q", false, false), "token id 0 is there twice");
    t = start();
    refused(t, added(t, 6, "a", false, false), "added token 'a' has two ids (0 and 6)");
    t = start();
    assert_int_equal(added(t, 0, "a", false, false), TG_OK);
    refused(t, added(t, 0, "a", false, true), "token id 0 is there twice");
    t = start();
    t->normalizer.nfc = true;
    assert_int_equal(merge(t, "a b"), TG_OK);
    assert_int_equal(added(t, 6, "e\xcc\x81", false, true), TG_OK);
    assert_int_equal(added(t, 7, "\xc3\xa9", false, true), TG_OK);
    refused(t, tg_build_finish(t, &err), "added token '\\xc3\\xa9' is there twice");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_one),   cmocka_unit_test(m52_empty),
        cmocka_unit_test(m55_no_byte),   cmocka_unit_test(m56_merges),
        cmocka_unit_test(m57_no_merges), cmocka_unit_test(m58_ids),
        cmocka_unit_test(m54_m56_limits), cmocka_unit_test(added_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
