/* Tests of load_gguf.c: the metadata of a GGUF, and rows M13, M52, M53, M56 to M60 and A17 of the
 * fault catalogue. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "support/check_container.h"
#include "support/gguf_writer.h"
#include "support/tokenizers.h"

#define K(name) "tokenizer.ggml." name

/* A file of the small tokenizer below; members that a test sets to NULL or 0 are left out. */
typedef struct spec {
    const char *model, *pre;
    const char *tokens[12]; /* up to NULL */
    int types[12];          /* 0: no types at all in types[0] */
    int n_types;            /* 0: as many as tokens */
    int n_scores;           /* 0: none */
    const char *merges[4];
    int bos, eos, eot;           /* -2: absent */
    int add_bos, add_eos, space; /* -1: absent */
} spec;

static spec plain(void)
{
    return (spec){
        .model = "gpt2",
        .pre = "gpt-2",
        .tokens = {"a", "b", "\xc4\xa0", "ab", "<|im_end|>", "<tool>", "<|endoftext|>", "",
                   "[PAD]"},
        .types = {1, 1, 1, 1, 3, 4, 1, 1, 5},
        .merges = {"a b"},
        .bos = -2,
        .eos = -2,
        .eot = -2,
        .add_bos = -1,
        .add_eos = -1,
        .space = -1,
    };
}

static int count(const char *const *list)
{
    int n = 0;
    while (list[n])
        n++;
    return n;
}

static void put_strings(gguf *g, const char *key, const char *const *list)
{
    bytes *b = gguf_array(g, key, GGUF_STRING, (uint64_t)count(list));
    for (int i = 0; list[i]; i++)
        gguf_string(b, list[i], strlen(list[i]));
}

static void put_id(gguf *g, const char *key, int id)
{
    if (id != -2)
        gguf_uint(g, key, GGUF_I32, (uint32_t)id);
}

static void put_bool(gguf *g, const char *key, int v)
{
    if (v >= 0)
        gguf_uint(g, key, GGUF_BOOL, (uint64_t)v);
}

static gguf make(const spec *s)
{
    gguf g = gguf_new();
    gguf_text(&g, "general.architecture", "gpt2");
    if (s->model)
        gguf_text(&g, K("model"), s->model);
    if (s->pre)
        gguf_text(&g, K("pre"), s->pre);
    if (s->tokens[0])
        put_strings(&g, K("tokens"), s->tokens);
    if (s->types[0]) {
        int n = s->n_types ? s->n_types : count(s->tokens);
        bytes *b = gguf_array(&g, K("token_type"), GGUF_I32, (uint64_t)n);
        for (int i = 0; i < n; i++)
            put_u32(b, (uint32_t)s->types[i]);
    }
    if (s->n_scores)
        put_zeros(gguf_array(&g, K("scores"), GGUF_F32, (uint64_t)s->n_scores),
                  4 * (size_t)s->n_scores);
    if (s->merges[0])
        put_strings(&g, K("merges"), s->merges);
    put_id(&g, K("bos_token_id"), s->bos);
    put_id(&g, K("eos_token_id"), s->eos);
    put_id(&g, K("eot_token_id"), s->eot);
    put_bool(&g, K("add_bos_token"), s->add_bos);
    put_bool(&g, K("add_eos_token"), s->add_eos);
    put_bool(&g, K("add_space_prefix"), s->space);
    return g;
}

static tg_status load(gguf g, tg_tokenizer **t, int n_vocab, tg_error *err)
{
    tg_container *c = accepted_as("x.gguf", gguf_file(&g));
    tg_status status = tg_tokenizer_load(t, c, n_vocab, err);
    tg_container_free(c); /* nothing is borrowed from it */
    return status;
}

static tg_tokenizer *accepted(spec s)
{
    tg_tokenizer *t = NULL;
    tg_error err = {0};
    if (load(make(&s), &t, 16, &err) != TG_OK)
        print_error("%s\n", err.message);
    assert_non_null(t);
    return t;
}

static void refused_file(gguf g, int n_vocab, const char *wanted)
{
    tg_tokenizer *t = (tg_tokenizer *)1;
    tg_error err = {0};
    tg_status status = load(g, &t, n_vocab, &err);
    if (status != TG_E_MODEL || !strstr(err.message, wanted))
        print_error("wanted '%s': %s\n", wanted, err.message);
    assert_int_equal(status, TG_E_MODEL);
    assert_null(t);
    assert_non_null(strstr(err.message, wanted));
    assert_non_null(strstr(err.message, "x.gguf: "));
    assert_null(strchr(err.message, '\n'));
}

static void refused(spec s, const char *wanted)
{
    refused_file(make(&s), 16, wanted);
}

static void well_formed(void **state)
{
    (void)state;
    spec s = plain();
    s.bos = s.eos = 6;
    tg_tokenizer *t = accepted(s);
    tg_tokenizer_info info;
    size_t n;
    tg_tokenizer_get_info(t, &info);
    assert_string_equal(info.model, "BPE");
    assert_string_equal(info.pre, "gpt-2");
    assert_int_equal(info.n_tokens, 9);
    assert_int_equal(info.n_merges, 1);
    assert_int_equal(info.bos, 6);
    assert_int_equal(info.eos, 6);
    assert_false(info.add_bos || info.add_eos);
    assert_int_equal(expect_ids(t, "ab a!", 5, TG_TOK_BOS, (int32_t[]){3, 2, 0, -1}), 1);
    expect_ids(t, "b<tool>", 7, 0, (int32_t[]){1, 5, -1}); /* user-defined: always */
    expect_ids(t, "b<|im_end|>", 11, TG_TOK_SPECIAL, (int32_t[]){1, 4, -1});
    static const tg_token_kind kinds[] = {
        TG_TOKEN_NORMAL,  TG_TOKEN_NORMAL, TG_TOKEN_NORMAL, TG_TOKEN_NORMAL,
        TG_TOKEN_SPECIAL, TG_TOKEN_NORMAL, TG_TOKEN_NORMAL, TG_TOKEN_UNUSED /* A17 */,
        TG_TOKEN_UNUSED,  TG_TOKEN_UNUSED,
    };
    for (int i = 0; i < 10; i++)
        assert_int_equal(tg_tokenizer_kind(t, i), kinds[i]);
    assert_memory_equal(tg_tokenizer_bytes(t, 2, &n), " ", 1);
    assert_int_equal(n, 1);
    /* eos, and what is named like an end and is a control token */
    for (int i = 0; i < 10; i++)
        assert_int_equal(tg_tokenizer_is_eog(t, i), i == 4 || i == 6);
    tg_tokenizer_free(t);
}

static void without_what_may_be_absent(void **state)
{
    (void)state;
    spec s = plain();
    s.types[0] = 0;
    s.n_scores = 9;
    tg_tokenizer *t = accepted(s);
    assert_int_equal(tg_tokenizer_kind(t, 4), TG_TOKEN_NORMAL);
    tg_tokenizer_free(t);
}

/* U02: a file from before tokenizer.ggml.pre has GPT-2's pattern, and that is told; an unknown one is refused below. */
static void u02_without_pre(void **state)
{
    (void)state;
    spec s = plain();
    tg_tokenizer_info info;
    for (int absent = 0; absent < 2; absent++) {
        s.pre = absent ? NULL : "gpt-2";
        tg_tokenizer *t = accepted(s);
        tg_tokenizer_get_info(t, &info);
        assert_string_equal(info.pre, "gpt-2");
        assert_int_equal(info.pre_assumed, absent);
        tg_tokenizer_free(t);
    }
}

static void policies(void **state)
{
    (void)state;
    static const struct {
        const char *pre;
        int add_bos, add_eos;
        int32_t wanted[4];
    } cases[] = {
        {"gpt-2", -1, -1, {3, -1}},    {"smollm", 1, -1, {6, 3, -1}},
        {"qwen2", 0, 1, {3, 4, -1}},   {"llama-bpe", -1, -1, {6, 3, -1}},
        {"llama-bpe", 0, -1, {3, -1}}, {"llama3", 1, 1, {6, 3, 4, -1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        spec s = plain();
        s.pre = cases[i].pre;
        s.add_bos = cases[i].add_bos;
        s.add_eos = cases[i].add_eos;
        s.bos = 6;
        s.eos = 4;
        tg_tokenizer *t = accepted(s);
        expect_ids(t, "ab", 2, TG_TOK_BOS, cases[i].wanted);
        expect_ids(t, "ab", 2, 0, (int32_t[]){3, -1});
        tg_tokenizer_free(t);
    }
    spec s = plain();
    s.add_bos = 1;
    refused(s, "a text begins with BOS, but there is no bos_token_id");
    s = plain();
    s.add_eos = 1;
    refused(s, "a text ends with EOS, but there is no eos_token_id");
}

static void m59_kinds(void **state)
{
    (void)state;
    spec s = plain();
    s.model = NULL;
    refused(s, "tokenizer.ggml.model is missing");
    s = plain();
    s.model = "t5";
    refused(s, "tokenizer model not supported (found 't5', allowed 'gpt2', 'llama')");
    s.model = "plamo";
    refused(s, "tokenizer model not supported (found 'plamo'");
    s = plain();
    s.pre = "default";
    refused(s, "pre-tokenizer not supported (found 'default')");
    s = plain();
    s.space = 1;
    refused(s, "add_space_prefix");
    s.space = 0;
    tg_tokenizer_free(accepted(s));
    static const char *const booleans[] = {K("add_space_prefix"), K("add_eos_token")};
    for (int i = 0; i < 2; i++) { /* M13 */
        s = plain();
        gguf g = make(&s);
        gguf_text(&g, booleans[i], "true");
        refused_file(g, 16, booleans[i]);
    }
}

static void m52_lengths(void **state)
{
    (void)state;
    spec s = plain();
    s.tokens[0] = NULL;
    s.types[0] = 0;
    refused(s, "tokenizer.ggml.tokens is missing");
    s = plain();
    s.n_types = 8;
    refused(s, "token_type has another length than the tokens (found 8, allowed 9)");
    s = plain();
    s.n_scores = 10;
    refused(s, "scores has another length than the tokens (found 10, allowed 9)");
    s = plain();
    s.tokens[0] = NULL;
    s.types[0] = 0;
    gguf g = make(&s);
    gguf_array(&g, K("tokens"), GGUF_STRING, 0);
    refused_file(g, 16, "x.gguf: the vocabulary is empty");
    s = plain();
    s.types[0] = 0;
    g = make(&s);
    put_zeros(gguf_array(&g, K("token_type"), GGUF_F32, 9), 36);
    refused_file(g, 16, "tokenizer.ggml.token_type");
    s = plain();
    refused_file(make(&s), 8, "token id out of range (found 8, allowed 0 to 7)");
    refused_file(make(&s), 7, "token id out of range (found 7, allowed 0 to 6)");
}

static void m53_m60_tokens(void **state)
{
    (void)state;
    spec s = plain();
    s.tokens[1] = "a";
    refused(s, "tokens 0 and 1 are the same ('a')");
    s = plain();
    s.types[1] = 7;
    refused(s, "token 1 has an unknown type (found 7, allowed 0 to 6)");
    static const char *const bad[] = {"<0x-1>", "<0xZZ>", "<0x1>", "<0x123>",
                                      "<0X12>", "0x12",   "<0x12]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        s = plain();
        s.tokens[8] = bad[i];
        s.types[8] = 6;
        refused(s, "token 8 is no byte token (found '");
    }
    s.tokens[8] = "<0xfF>";
    tg_tokenizer *t = accepted(s);
    size_t n;
    assert_memory_equal(tg_tokenizer_bytes(t, 8, &n), "\xff", 1);
    assert_int_equal(n, 1);
    tg_tokenizer_free(t);
}

static void m56_m57_merges(void **state)
{
    (void)state;
    spec s = plain();
    s.merges[0] = NULL;
    refused(s, "tokenizer.ggml.merges is missing");
    gguf g = make(&s);
    gguf_array(&g, K("merges"), GGUF_STRING, 0);
    refused_file(g, 16, "without merges");
    s.merges[0] = "a b";
    s.merges[1] = "b";
    refused(s, "merge 2 has not two parts (found 'b')");
}

static void m58_ids(void **state)
{
    (void)state;
    spec s = plain();
    s.bos = -1;
    refused(s, "tokenizer.ggml.bos_token_id out of range (found -1, allowed 0 to 8)");
    s = plain();
    s.eos = 16;
    refused(s, "tokenizer.ggml.eos_token_id out of range (found 16, allowed 0 to 8)");
    s = plain();
    s.eos = 7;
    refused(s, "tokenizer.ggml.eos_token_id is no token (found 7)");
    s = plain();
    s.eot = 9;
    refused(s, "tokenizer.ggml.eot_token_id out of range (found 9, allowed 0 to 8)");
    s.eot = 5;
    tg_tokenizer *t = accepted(s);
    assert_true(tg_tokenizer_is_eog(t, 5));
    tg_tokenizer_free(t);
    s = plain();
    gguf g = make(&s);
    gguf_u32(&g, K("unknown_token_id"), 0); /* of no use here */
    tg_error err;
    assert_int_equal(load(g, &t, 16, &err), TG_OK);
    tg_tokenizer_free(t);
    g = make(&s);
    gguf_u32(&g, K("padding_token_id"), UINT32_MAX);
    refused_file(g, 16, "tokenizer.ggml.padding_token_id out of range (found 4294967295");
    g = make(&s);
    gguf_text(&g, K("unknown_token_id"), "0"); /* M13 */
    refused_file(g, 16, "tokenizer.ggml.unknown_token_id");
}

/* ---- SentencePiece ----------------------------------------------------------------------------
 */

#define MARK "\xe2\x96\x81"

enum { N_PIECES = 13 };

/* Pieces with their types and scores, and the 256 bytes behind them. */
static gguf pieces_of(const char *architecture, float score_of_a, bool bytes_too)
{
    static const struct {
        const char *text;
        uint32_t type;
        float score;
    } piece[N_PIECES] = {
        {"<unk>", 2, 0},         {"<s>", 3, 0},     {"</s>", 3, 0},
        {MARK, 1, -9},           {"a", 1, -8},      {"b", 1, -7},
        {"ab", 1, -2},           {MARK "a", 1, -1}, {"ba", 1, -0.5f},
        {"<tool>", 4, -1000},    {MARK "b", 5, 9},  {"\n\n", 4, -1000},
        {"<end_of_turn>", 3, 0},
    };
    gguf g = gguf_new();
    if (architecture)
        gguf_text(&g, "general.architecture", architecture);
    gguf_text(&g, K("model"), "llama");
    uint64_t n = N_PIECES + (bytes_too ? 256 : 0);
    bytes *tokens = gguf_array(&g, K("tokens"), GGUF_STRING, n);
    for (uint64_t i = 0; i < n; i++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", (unsigned)(uint8_t)(i - N_PIECES));
        const char *text = i < N_PIECES ? piece[i].text : name;
        gguf_string(tokens, text, strlen(text));
    }
    bytes *types = gguf_array(&g, K("token_type"), GGUF_I32, n);
    for (uint64_t i = 0; i < n; i++)
        put_u32(types, i < N_PIECES ? piece[i].type : 6);
    bytes *scores = gguf_array(&g, K("scores"), GGUF_F32, n);
    for (uint64_t i = 0; i < n; i++) {
        float score = i == 4 ? score_of_a : i < N_PIECES ? piece[i].score : 0;
        uint32_t bits;
        memcpy(&bits, &score, 4);
        put_u32(scores, bits);
    }
    put_id(&g, K("bos_token_id"), 1);
    put_id(&g, K("eos_token_id"), 2);
    put_id(&g, K("unknown_token_id"), 0);
    return g;
}

static gguf pieces(float score_of_a, bool bytes_too)
{
    return pieces_of("llama", score_of_a, bytes_too);
}

static void sentencepiece(void **state)
{
    (void)state;
    enum { B = N_PIECES };
    tg_tokenizer *t = NULL;
    tg_tokenizer_info info;
    tg_error err = {0};
    size_t n;
    assert_int_equal(load(pieces(-8, true), &t, 300, &err), TG_OK);
    tg_tokenizer_get_info(t, &info);
    assert_string_equal(info.model, "SentencePiece BPE");
    assert_true(info.add_bos && !info.add_eos && info.strips_space);
    assert_int_equal(info.n_merges, 0);
    expect_ids(t, "abab", 4, TG_TOK_BOS, (int32_t[]){1, 7, 8, 5, -1}); /* ba, then _a */
    expect_ids(t, "ab", 2, 0, (int32_t[]){7, 5, -1});                     /* _a before ab */
    expect_ids(t, "b a", 3, 0, (int32_t[]){3, 5, 7, -1});                 /* _b is unused */
    expect_ids(t, "\xc3\xa9<s>", 5, 0,
               (int32_t[]){3, B + 0xc3, B + 0xa9, B + '<', B + 's', B + '>', -1});
    expect_ids(t, "<s>a", 4, TG_TOK_SPECIAL, (int32_t[]){1, 7, -1}); /* a prefix behind it too */
    expect_ids(t, "a<tool>\xff", 8, 0, (int32_t[]){7, 9, 3, B + 0xff, -1});
    assert_memory_equal(tg_tokenizer_bytes(t, 7, &n), " a", 2);
    assert_memory_equal(tg_tokenizer_bytes(t, B + 0xff, &n), "\xff", 1);
    assert_int_equal(n, 1);
    assert_true(tg_tokenizer_is_eog(t, 2) && tg_tokenizer_is_eog(t, 12));
    tg_tokenizer_free(t);

    gguf g = pieces(-8, true);
    put_bool(&g, K("add_space_prefix"), 0);
    put_bool(&g, K("add_bos_token"), 0);
    assert_int_equal(load(g, &t, 300, &err), TG_OK);
    tg_tokenizer_get_info(t, &info);
    assert_true(!info.add_bos && !info.strips_space);
    expect_ids(t, "abab", 4, TG_TOK_BOS, (int32_t[]){4, 8, 5, -1});
    expect_ids(t, "a\n\n b", 5, 0, (int32_t[]){4, 11, 3, 5, -1});
    tg_tokenizer_free(t);

    assert_int_equal(load(pieces(-8, false), &t, 300, &err),
                     TG_OK); /* no bytes: the unknown token */
    expect_ids(t, "axyb", 4, 0, (int32_t[]){7, 0, 5, -1});
    tg_tokenizer_free(t);
    refused_file(pieces(NAN, true), 300, "the score of token 4 is not a number");
    g = pieces(-8, true);
    put_bool(&g, K("remove_extra_whitespaces"), 1);
    refused_file(g, 300, "tokenizer.ggml.remove_extra_whitespaces is not supported");
    static const char *const keys[] = {K("add_space_prefix"), K("remove_extra_whitespaces"), K("precompiled_charsmap")};
    for (int i = 0; i < 3; i++) { /* M13 */
        g = pieces(-8, true);
        gguf_text(&g, keys[i], "1");
        refused_file(g, 300, keys[i]);
    }
    g = pieces_of(NULL, -8, true);
    gguf_u32(&g, "general.architecture", 1);
    refused_file(g, 300, "general.architecture");
    spec s = plain();
    s.model = "llama";
    refused(s, "tokenizer.ggml.scores is missing");
}

/* Where a call ends a turn, too, <|end|> ends one message of several, unless it is the end of all. */
static void ends_of_messages(void **state)
{
    (void)state;
    for (int is_eos = 0; is_eos < 2; is_eos++)
        for (int calls = 0; calls < 2; calls++) {
            spec s = plain();
            s.tokens[4] = "<|end|>";
            s.tokens[5] = calls ? "<|call|>" : "<tool>";
            s.types[5] = 3;
            s.eos = is_eos ? 4 : 6;
            tg_tokenizer *t = accepted(s);
            assert_int_equal(tg_tokenizer_is_eog(t, 4), is_eos || !calls);
            assert_int_equal(tg_tokenizer_is_eog(t, 5), calls);
            tg_tokenizer_free(t);
        }
}

/* In these models special tokens take the white space behind them along. */
static void phi3(void **state)
{
    (void)state;
    tg_tokenizer *t = NULL;
    tg_error err = {0};
    assert_int_equal(load(pieces_of("phi3", -8, true), &t, 300, &err), TG_OK);
    static const char text[] = "<end_of_turn> \n a<s> a";
    expect_ids(t, text, strlen(text), TG_TOK_SPECIAL, (int32_t[]){12, 7, 1, 3, 7, -1});
    tg_tokenizer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(well_formed),    cmocka_unit_test(without_what_may_be_absent), cmocka_unit_test(u02_without_pre),
        cmocka_unit_test(policies),       cmocka_unit_test(m59_kinds),
        cmocka_unit_test(m52_lengths),    cmocka_unit_test(m53_m60_tokens),
        cmocka_unit_test(m56_m57_merges), cmocka_unit_test(m58_ids),
        cmocka_unit_test(sentencepiece),  cmocka_unit_test(ends_of_messages), cmocka_unit_test(phi3),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
