/* Tests of load_folder.c: which files are taken, the ids that begin and end a text, vocab.json with
 * merges.txt; rows M56, M58, M59 and A16 of the fault catalogue. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "support/check_container.h"
#include "support/tokenizers.h"

#define VOCAB                                                                                      \
    "{\"a\": 0, \"b\": 1, \"\xc4\xa0\": 2, \"ab\": 3, \"<|endoftext|>\": 4, \"c\": 5, \"<s>\": 6}"
#define MERGES "#version: 0.2\na b\n"

/* Files of the folder up to a name that is NULL; config.json says gpt2 unless it is among them. */
typedef struct files {
    const char *name, *text;
} files;

static tg_status load(const files *f, tg_tokenizer **t, tg_error *err)
{
    scratch_mkdir("model");
    scratch_text("model/config.json", "{\"model_type\": \"gpt2\"}");
    scratch_write("model/model.safetensors", "\2\0\0\0\0\0\0\0{}", 10);
    for (; f->name; f++) {
        char name[64];
        snprintf(name, sizeof name, "model/%s", f->name);
        scratch_text(name, f->text);
    }
    tg_container *c = accepted_at(scratch_path("model"));
    tg_status status = tg_tokenizer_load(t, c, 8, err);
    tg_container_free(c);
    scratch_remove("model");
    return status;
}

static tg_tokenizer *accepted(const files *f)
{
    tg_tokenizer *t = NULL;
    tg_error err = {0};
    if (load(f, &t, &err) != TG_OK)
        print_error("%s\n", err.message);
    assert_non_null(t);
    return t;
}

static void refused(const files *f, tg_status status, const char *wanted)
{
    tg_tokenizer *t = (tg_tokenizer *)1;
    tg_error err = {0};
    tg_status got = load(f, &t, &err);
    if (got != status || !strstr(err.message, wanted))
        print_error("status %d, wanted '%s': %s\n", got, wanted, err.message);
    assert_int_equal(got, status);
    assert_null(t);
    assert_non_null(strstr(err.message, wanted));
    assert_null(strchr(err.message, '\n'));
}

#define PAIR                                                                                       \
    {"vocab.json", VOCAB},                                                                         \
    {                                                                                              \
        "merges.txt", MERGES                                                                       \
    }
#define FILES(...)                                                                                 \
    (const files[])                                                                                \
    {                                                                                              \
        __VA_ARGS__,                                                                               \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

/* A whole tokenizer.json of the same vocabulary. */
#define JSON                                                                                       \
    "{\"added_tokens\":[{\"id\":4,\"content\":\"<|endoftext|>\",\"special\":true}],"               \
    "\"normalizer\":null,"                                                                         \
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},\"decoder\":{\"type\":" \
    "\"ByteLevel\"},"                                                                              \
    "\"model\":{\"type\":\"BPE\",\"vocab\":" VOCAB ",\"merges\":[[\"a\",\"b\"]]}}"

static void tokenizer_json(void **state)
{
    (void)state;
    /* tokenizer.json comes first, and its template is the policy, whatever tokenizer_config.json
     * says. */
    tg_tokenizer *t = accepted(
        FILES({"tokenizer.json", JSON}, {"vocab.json", "x"}, {"merges.txt", ""},
              {"tokenizer_config.json", "{\"add_bos_token\": true, \"bos_token\": \"<s>\"}"}));
    tg_tokenizer_info info;
    tg_tokenizer_get_info(t, &info);
    assert_int_equal(info.n_tokens, 7);
    assert_int_equal(info.bos, 6);
    assert_int_equal(info.eos, -1);
    assert_false(info.add_bos);
    expect_ids(t, "ab<|endoftext|>", 15, TG_TOK_SPECIAL | TG_TOK_BOS, (int32_t[]){3, 4, -1});
    assert_int_equal(tg_tokenizer_kind(t, 4), TG_TOKEN_SPECIAL);
    assert_int_equal(tg_tokenizer_kind(t, 7), TG_TOKEN_UNUSED);
    tg_tokenizer_free(t);
    refused(FILES({"tokenizer.json", "[]"}), TG_E_MODEL,
            "tokenizer.json: not a JSON object (found array)");
    refused(FILES({"tokenizer.json", ""}), TG_E_MODEL, "tokenizer.json: ");
    /* What is walked where it stands. */
#define MODEL(vocab, merges)                                                                                            \
    "{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},\"model\":{\"type\":\"BPE\",\"vocab\":" vocab    \
    ",\"merges\":" merges "}}"
    static const char *const malformed[][2] = {
        {MODEL("{\"a\":0,\"b\" 1}", "[]"), "a colon is due"},
        {MODEL("{\"a\":0,}", "[]"), "a string is due"},
        {MODEL(VOCAB, "[\"\\ud800\"]"), "half of a surrogate pair"},
        {MODEL(VOCAB, "[[\"a\",\"\\x\"]]"), "an unknown escape"},
        {MODEL(VOCAB, "[[\"a\" \"b\"]]"), "a comma or the end is due"},
        {MODEL(VOCAB, "[[\"a\",\"b\"] 1]"), "a comma or the end is due"},
    };
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++)
        refused(FILES({"tokenizer.json", malformed[i][0]}), TG_E_MODEL, malformed[i][1]);
    refused(FILES({"tokenizer.json", JSON "x"}), TG_E_MODEL, "tokenizer.json: ");
    refused(FILES({"tokenizer.json", JSON}, {"tokenizer_config.json", "{"}), TG_E_MODEL,
            "tokenizer_config.json: ");
    refused(FILES({"tokenizer.json", JSON}, {"generation_config.json", "1"}), TG_E_MODEL,
            "generation_config.json: ");
    refused(FILES({"unrelated", ""}), TG_E_MODEL,
            "no tokenizer: neither tokenizer.json, nor vocab.json");
}

static void expect_ends(const files *f, int32_t eos, unsigned ends)
{
    tg_tokenizer *t = accepted(f);
    tg_tokenizer_info info;
    tg_tokenizer_get_info(t, &info);
    assert_int_equal(info.eos, eos);
    for (int i = 0; i < 8; i++)
        assert_int_equal(tg_tokenizer_is_eog(t, i), ends >> i & 1);
    tg_tokenizer_free(t);
}

static void ids_of_the_ends(void **state)
{
    (void)state;
    expect_ends(FILES({"tokenizer.json", JSON}), -1, 0);
    expect_ends(FILES({"tokenizer.json", JSON},
                      {"config.json", "{\"eos_token_id\": 4, \"bos_token_id\": null}"}),
                4, 1 << 4);
    expect_ends(FILES({"tokenizer.json", JSON}, {"config.json", "{\"eos_token_id\": [4, 6]}"}), 4,
                1 << 4 | 1 << 6);
    expect_ends(FILES({"tokenizer.json", JSON},
                      {"generation_config.json", "{\"eos_token_id\": [6, 5]}"},
                      {"config.json", "{\"eos_token_id\": 4}"}),
                4, 1 << 4 | 1 << 5 | 1 << 6);
    expect_ends(
        FILES({"tokenizer.json", JSON}, {"generation_config.json", "{\"eos_token_id\": 6}"}), 6,
        1 << 6);
    expect_ends(FILES({"tokenizer.json", JSON},
                      {"tokenizer_config.json", "{\"eos_token\": {\"content\": \"<s>\"}}"},
                      {"config.json", "{\"eos_token_id\": 4}"}),
                6, 1 << 4 | 1 << 6);
}

static void m58_ids(void **state)
{
    (void)state;
    refused(FILES({"tokenizer.json", JSON}, {"config.json", "{\"eos_token_id\": 8}"}), TG_E_MODEL,
            "eos_token_id out of range (found 8, allowed 0 to 7)");
    refused(FILES({"tokenizer.json", JSON}, {"config.json", "{\"bos_token_id\": -1}"}), TG_E_MODEL,
            "bos_token_id out of range (found -1");
    refused(
        FILES({"tokenizer.json", JSON}, {"generation_config.json", "{\"eos_token_id\": [4, 7]}"}),
        TG_E_MODEL, "eos_token_id is no token (found 7)");
    refused(FILES({"tokenizer.json", JSON}, {"config.json", "{\"eos_token_id\": \"4\"}"}),
            TG_E_MODEL, "eos_token_id has the wrong type (found string, allowed integer)");
    refused(FILES({"tokenizer.json", JSON}, {"tokenizer_config.json", "{\"eos_token\": \"</s>\"}"}),
            TG_E_MODEL, "tokenizer_config.json: eos_token is no token (found '</s>')");
}

static void vocab_and_merges(void **state)
{
    (void)state;
    tg_tokenizer *t = accepted(FILES(PAIR));
    tg_tokenizer_info info;
    tg_tokenizer_get_info(t, &info);
    assert_string_equal(info.pre, "gpt-2");
    assert_int_equal(info.n_merges, 1);
    expect_ids(t, "ab a<|endoftext|>", 17, TG_TOK_SPECIAL, (int32_t[]){3, 2, 0, 4, -1});
    assert_int_equal(tg_tokenizer_kind(t, 4), TG_TOKEN_SPECIAL); /* GPT-2's default */
    assert_int_equal(tg_tokenizer_kind(t, 6), TG_TOKEN_NORMAL);
    tg_tokenizer_free(t);

    t = accepted(FILES(
        PAIR,
        {"tokenizer_config.json",
         "{\"tokenizer_class\": \"GPT2TokenizerFast\", \"add_prefix_space\": true, "
         "\"add_bos_token\": true, \"add_eos_token\": true, \"bos_token\": \"<s>\", \"eos_token\": "
         "\"<|endoftext|>\", \"added_tokens_decoder\": {\"5\": {\"content\": \"c\", \"lstrip\": "
         "true}, \"7\": {\"content\": \"<x>\", \"special\": true}}}"}));
    tg_tokenizer_get_info(t, &info);
    assert_true(info.add_bos && info.add_eos);
    expect_ids(t, "ab  c<x>a", 9, TG_TOK_SPECIAL | TG_TOK_BOS,
               (int32_t[]){6, 2, 3, 5, 7, 2, 0, 4, -1});
    assert_int_equal(tg_tokenizer_kind(t, 6), TG_TOKEN_SPECIAL);
    tg_tokenizer_free(t);

    t = accepted(FILES(PAIR, {"tokenizer_config.json", "{\"add_bos_token\": true, \"add_eos_token\": true}"}));
    tg_tokenizer_get_info(t, &info);
    assert_false(info.add_bos || info.add_eos); /* there is neither */
    tg_tokenizer_free(t);

    t = accepted(
        FILES(PAIR, {"tokenizer_config.json", "{\"tokenizer_class\": \"Qwen2Tokenizer\"}"}));
    tg_tokenizer_get_info(t, &info);
    assert_string_equal(info.pre, "qwen2");
    tg_tokenizer_free(t);
}

static void m59_classes(void **state)
{
    (void)state;
    refused(FILES(PAIR, {"tokenizer_config.json", "{\"tokenizer_class\": \"LlamaTokenizer\"}"}),
            TG_E_MODEL, "(found 'LlamaTokenizer')");
    refused(FILES(PAIR, {"tokenizer_config.json", "{\"tokenizer_class\": \"GPT2TokenizerX\"}"}),
            TG_E_MODEL, "(found 'GPT2TokenizerX')");
    refused(FILES(PAIR, {"config.json", "{\"model_type\": \"llama\"}"}), TG_E_MODEL,
            "(found 'llama')");
    refused(FILES(PAIR, {"config.json", "{}"}), TG_E_MODEL, "(found '')");
    refused(FILES(PAIR, {"added_tokens.json", "{}"}), TG_E_MODEL,
            "added_tokens.json: not supported without added_tokens_decoder");
    refused(FILES(PAIR, {"tokenizer_config.json",
                         "{\"added_tokens_decoder\": {\"x\": {\"content\": \"q\"}}}"}),
            TG_E_MODEL, "not a token id (found 'x')");
    refused(FILES(PAIR, {"tokenizer_config.json",
                         "{\"added_tokens_decoder\": {\"99999999999999999999\": {}}}"}),
            TG_E_MODEL, "not a token id (found '99999999999999999999')");
    refused(FILES(PAIR, {"tokenizer_config.json", "{\"added_tokens_decoder\": {\"2147483648\": {}}}"}), TG_E_MODEL,
            "not a token id (found '2147483648')");
    refused(FILES(PAIR, {"tokenizer_config.json", "{\"added_tokens_decoder\": {\"5\": {\"content\": 1}}}"}), TG_E_MODEL,
            "content of an added token has the wrong type");
    refused(FILES(PAIR, {"tokenizer_config.json", "{\"add_bos_token\": 1}"}), TG_E_MODEL, "add_bos_token has the wrong type");
    refused(FILES(PAIR, {"tokenizer_config.json", "{\"add_eos_token\": 1}"}), TG_E_MODEL, "add_eos_token has the wrong type");
    refused(FILES(PAIR, {"tokenizer_config.json",
                         "{\"added_tokens_decoder\": {\"8\": {\"content\": \"q\"}}}"}),
            TG_E_MODEL, "token id out of range (found 8");
}

/* A16: with or without the version, LF or CRLF, a final newline or none; M56 with the line's
 * number. */
static void merges_txt(void **state)
{
    (void)state;
    static const char *const good[] = {"a b", "a b\n", "a b\r\n", "#version: 0.2\r\na b\r\n",
                                       "a b\n#version x\n"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        tg_tokenizer *t = accepted(FILES({"vocab.json", VOCAB}, {"merges.txt", good[i]}));
        expect_ids(t, "ab", 2, 0, (int32_t[]){3, -1});
        tg_tokenizer_free(t);
    }
    refused(FILES({"vocab.json", VOCAB}, {"merges.txt", "#version: 0.2\na b\nb\n"}), TG_E_MODEL,
            "merges.txt: merge 3 has not two parts (found 'b')");
    refused(FILES({"vocab.json", VOCAB}, {"merges.txt", "a b\n\n"}), TG_E_MODEL,
            "merge 2 has not two parts (found '')");
    refused(FILES({"vocab.json", VOCAB}, {"merges.txt", "a b\r"}), TG_E_MODEL,
            "merges.txt: merge 1: 'b\\x0d' is no");
    refused(FILES({"vocab.json", VOCAB}, {"merges.txt", "a z\n"}), TG_E_MODEL,
            "merges.txt: merge 1: 'z' is no token");
    refused(FILES({"vocab.json", VOCAB}, {"merges.txt", ""}), TG_E_MODEL, "without merges");
    refused(FILES({"vocab.json", VOCAB}), TG_E_MODEL,
            "vocab.json: there is no merges.txt beside it");
    refused(FILES({"vocab.json", "{\"a\": 1, \"a\": 2}"}, {"merges.txt", MERGES}), TG_E_MODEL,
            "tokens 1 and 2 are the same");
}

/* M30 for the tokenizer's files: those that are JSON. A prefix of merges.txt may be fewer merges. */
static void m30_every_proper_prefix(void **state)
{
    (void)state;
    static const struct {
        files whole[3]; /* the first is cut */
    } cases[] = {
        {{{"tokenizer.json", JSON}}},
        {{{"vocab.json", VOCAB}, {"merges.txt", MERGES}}},
        {{{"tokenizer_config.json", "{\"eos_token\": {\"content\": \"<s>\"}}"}, {"tokenizer.json", JSON}}},
        {{{"generation_config.json", "{\"eos_token_id\": [4, 6]}"}, {"tokenizer.json", JSON}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const files *whole = cases[i].whole;
        char text[1024];
        tg_tokenizer_free(accepted(FILES(whole[0], whole[1])));
        for (size_t n = 0; n < strlen(whole[0].text); n++) {
            snprintf(text, sizeof text, "%.*s", (int)n, whole[0].text);
            refused(FILES({whole[0].name, text}, whole[1]), TG_E_MODEL, whole[0].name);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokenizer_json), cmocka_unit_test(ids_of_the_ends),
        cmocka_unit_test(m58_ids),        cmocka_unit_test(vocab_and_merges),
        cmocka_unit_test(m59_classes),    cmocka_unit_test(merges_txt),
        cmocka_unit_test(m30_every_proper_prefix),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
