/* Tests of load_json.c: what a tokenizer.json may say, and rows M52 to M59 and A16 of the fault
 * catalogue. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "support/tokenizers.h"

static const char *base = "small-a.json";

/* That file with `text` as the value at a path of members and places: "model.vocab",
 * "added_tokens.0.id". An empty text removes the member. */
static json_t *with(const char *path, const char *text)
{
    json_t *root = load_patched(base, NULL), *at = root;
    json_t *value = *text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
    assert_true(!*text || value);
    char name[64];
    for (;;) {
        size_t n = strcspn(path, ".");
        memcpy(name, path, n);
        name[n] = 0;
        if (!path[n])
            break;
        at = json_is_array(at) ? json_array_get(at, (size_t)atoi(name)) : json_object_get(at, name);
        path += n + 1;
    }
    assert_non_null(at);
    if (!value)
        json_object_del(at, name);
    else if (json_is_array(at))
        json_array_set_new(at, (size_t)atoi(name), value);
    else
        json_object_set_new(at, name, value);
    return root;
}

static void refused(const char *path, const char *text, const char *wanted)
{
    json_t *root = with(path, text);
    tg_tokenizer *t = NULL;
    tg_error err = {0};
    tg_status status = load_tree(&t, root, 1000, &err);
    if (status == TG_OK) {
        status = tg_build_finish(t, &err);
        tg_tokenizer_free(t);
    }
    if (status != TG_E_MODEL || !strstr(err.message, wanted))
        print_error("%s = %s: status %d, wanted '%s': %s\n", path, text, status, wanted,
                    err.message);
    assert_int_equal(status, TG_E_MODEL);
    assert_non_null(strstr(err.message, wanted));
    assert_memory_equal(err.message, "tokenizer.json: ", 16);
    assert_null(strchr(err.message, '\n'));
}

static tg_tokenizer *accepted(const char *path, const char *text)
{
    return tokenizer_of(with(path, text), 1000);
}

static void accepted_as(const char *path, const char *text, const char *pre)
{
    tg_tokenizer *t = accepted(path, text);
    tg_tokenizer_info info;
    tg_tokenizer_get_info(t, &info);
    assert_string_equal(info.pre, pre);
    tg_tokenizer_free(t);
}

#define LEVEL  "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true}"
#define BARE   "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}"
#define DIGITS "{\"type\":\"Digits\",\"individual_digits\":true}"
#define SPLIT(regex)                                                                               \
    "{\"type\":\"Split\",\"behavior\":\"Isolated\",\"invert\":false,\"pattern\":{\"Regex\":"       \
    "\"" regex "\"}}"
#define GPT2                                                                                       \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\\\p{L}+| ?\\\\p{N}+| "                                            \
    "?[^\\\\s\\\\p{L}\\\\p{N}]+|\\\\s+(?!\\\\S)|\\\\s+"
#define SEQ(parts) "{\"type\":\"Sequence\",\"pretokenizers\":[" parts "]}"

static void well_formed(void **state)
{
    (void)state;
    tg_tokenizer *t = accepted("unknown member", "1");
    tg_tokenizer_info info;
    tg_tokenizer_get_info(t, &info);
    assert_string_equal(info.model, "BPE");
    assert_string_equal(info.pre, "gpt-2");
    assert_int_equal(info.n_tokens, 902);
    assert_int_equal(info.n_merges, 643);
    assert_int_equal(info.bos, -1);
    assert_false(info.add_bos);
    tg_tokenizer_free(t);
}

static void pre_tokenizers(void **state)
{
    (void)state;
    accepted_as("pre_tokenizer", LEVEL, "gpt-2");
    accepted_as("pre_tokenizer", "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}", "gpt-2");
    accepted_as("pre_tokenizer", SEQ(LEVEL), "gpt-2");
    accepted_as("pre_tokenizer", SEQ(DIGITS "," LEVEL), "smollm");
    accepted_as("pre_tokenizer", SEQ(SPLIT(GPT2) "," BARE), "gpt-2");
    accepted_as("pre_tokenizer", SEQ(DIGITS "," SPLIT(GPT2) "," BARE), "smollm");
}

static void m59_pre_tokenizers(void **state)
{
    (void)state;
    static const char key[] = "pre_tokenizer";
    refused(key, "null", "pre-tokenizer not supported (found 'null')");
    refused(key, "[]", "pre_tokenizer has the wrong type (found array, allowed object)");
    refused(key, "{}", "pre-tokenizer not supported (found '')");
    refused(key, "{\"type\":\"Whitespace\"}", "pre-tokenizer not supported (found 'Whitespace')");
    refused(key, "{\"type\":\"Sequence\"}", "pretokenizers has the wrong type");
    refused(key, SEQ(""), "pre-tokenizer not supported");
    refused(key, SEQ("1"), "pre-tokenizer not supported");
    refused(key, SEQ(DIGITS), "no ByteLevel");
    refused(key, SEQ(LEVEL "," LEVEL), "pre-tokenizer not supported");
    refused(key, SEQ(LEVEL "," DIGITS), "pre-tokenizer not supported");
    refused(key, SEQ(SEQ(LEVEL)), "pre-tokenizer not supported (found 'Sequence')");
    refused(key, SEQ("1,2,3,4,5,6,7,8,9"), "pre_tokenizer has too many parts (found 9)");
    refused(key, BARE, "ByteLevel without use_regex");
    refused(key, SEQ(SPLIT(GPT2) "," LEVEL), "Split before a ByteLevel with use_regex");
    refused(key, SEQ(SPLIT("\\\\s+") "," BARE), "(found '\\x5cs+')");
    refused(key,
            SEQ("{\"type\":\"Split\",\"behavior\":\"Removed\",\"invert\":false,\"pattern\":{"
                "\"Regex\":\"" GPT2 "\"}}," BARE),
            "Split that does not isolate a Regex");
    refused(key,
            SEQ("{\"type\":\"Split\",\"behavior\":\"Isolated\",\"invert\":true,\"pattern\":{"
                "\"Regex\":\"" GPT2 "\"}}," BARE),
            "Split that does not isolate a Regex");
    refused(key,
            SEQ("{\"type\":\"Split\",\"behavior\":\"Isolated\",\"invert\":false,\"pattern\":{"
                "\"String\":\"x\"}}," BARE),
            "Split that does not isolate a Regex");
    refused(key, SEQ("{\"type\":\"Digits\",\"individual_digits\":false}," LEVEL),
            "Digits without individual_digits");
    refused(key,
            SEQ(DIGITS ",{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"use_regex\":true}"),
            "add_prefix_space after another pre-tokenizer");
    refused(key, "{\"type\":\"ByteLevel\",\"use_regex\":1}", "use_regex has the wrong type");
    refused(key, "{\"type\":\"ByteLevel\",\"add_prefix_space\":1}",
            "add_prefix_space has the wrong type");
}

#define MARK    "\xe2\x96\x81"
#define REPLACE "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"" MARK "\"}"
#define DECODERS(more)                                                                             \
    "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"" MARK   \
    "\"},\"content\":\" \"}" more "]}"
#define BYTES    ",{\"type\":\"ByteFallback\"}"
#define FUSE     ",{\"type\":\"Fuse\"}"
#define STRIP(n) ",{\"type\":\"Strip\",\"content\":\" \",\"start\":" n ",\"stop\":0}"

static void sentencepiece(void **state)
{
    (void)state;
    static const char key[] = "pre_tokenizer",
                      meta[] = "{\"type\":\"Metaspace\",\"replacement\":\"" MARK "\"";
    char text[256];
    base = "small-c.json";
    tg_tokenizer_info info;
    tg_tokenizer *t = accepted("decoder", DECODERS(BYTES FUSE STRIP("1")));
    tg_tokenizer_get_info(t, &info);
    assert_string_equal(info.model, "SentencePiece BPE");
    assert_string_equal(info.pre, "nothing");
    assert_true(info.strips_space);
    tg_tokenizer_free(t);
    t = accepted("decoder", DECODERS(BYTES FUSE));
    tg_tokenizer_get_info(t, &info);
    assert_false(info.strips_space);
    tg_tokenizer_free(t);
    refused("decoder", "null", "decoder not supported (found 'null')");
    refused("decoder", "{\"type\":\"Metaspace\"}", "decoder not supported (found 'Metaspace')");
    refused("decoder", DECODERS(FUSE), "ByteFallback of the decoder or of the model alone");
    refused("decoder", DECODERS(""), "ByteFallback of the decoder or of the model alone");
    refused("decoder", DECODERS(BYTES), "no Fuse");
    refused("decoder", DECODERS(BYTES FUSE FUSE), "(found 'Fuse')");
    refused("decoder", DECODERS(BYTES FUSE ",{\"type\":\"Strip\",\"content\":\"x\",\"start\":1,\"stop\":0}"), "(found 'Strip')");
    refused("decoder", DECODERS(BYTES FUSE ",{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":1}"), "(found 'Strip')");
    refused("decoder", "{\"type\":\"Replace\",\"pattern\":{\"String\":\"" MARK "\"},\"content\":\"x\"}", "(found 'Replace')");
    refused("decoder", "{\"type\":\"Replace\",\"pattern\":{\"String\":\"x\"},\"content\":\" \"}", "(found 'Replace')");
    refused("decoder", DECODERS(BYTES BYTES FUSE), "(found 'ByteFallback')");
    refused("decoder", DECODERS(BYTES FUSE STRIP("2")), "(found 'Strip')");
    refused("model.byte_fallback", "false", "ByteFallback of the decoder or of the model alone");
    refused("normalizer", "null", "pre-tokenizer not supported (found 'null')");
    refused("normalizer", "{\"type\":\"Prepend\",\"prepend\":\"_\"}",
            "normalizer not supported (found 'Prepend')");
    refused("normalizer",
            "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\" \"},\"content\":\"" MARK "\"}",
            "normalizer not supported (found 'Replace')");
    refused("normalizer", "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"_\"}",
            "normalizer not supported (found 'Replace')");
#define PREPEND "{\"type\":\"Prepend\",\"prepend\":\"" MARK "\"}"
    refused("normalizer", "{\"type\":\"Sequence\",\"normalizers\":[" PREPEND "," PREPEND "]}",
            "normalizer not supported (found 'Prepend')");
    refused(key, "{\"type\":\"Split\",\"behavior\":\"Isolated\",\"invert\":false,\"pattern\":{\"String\":\"x\"}}",
            "Split that does not isolate a Regex");
    refused(key, LEVEL, "Prepend or Replace before ByteLevel");
    refused("model.vocab.<0x00>", "", "only 255 of the 256 bytes have a token");
    refused("added_tokens.0",
            "{\"content\":\"<unk>\",\"id\":0,\"normalized\":true,\"lstrip\":true}",
            "added token '<unk>' is both normalized and stripped");
    refused("added_tokens.0", "{\"content\":\"<unk>\",\"id\":0,\"normalized\":true,\"rstrip\":true}",
            "added token '<unk>' is both normalized and stripped");
    accepted_as(key, strcat(strcpy(text, meta), "}"), "each space");
    accepted_as(key, strcat(strcpy(text, meta), ",\"split\":false}"), "nothing");
    accepted_as(key, strcat(strcpy(text, meta), ",\"add_prefix_space\":false}"), "each space");
    refused(key, strcat(strcpy(text, meta), ",\"add_prefix_space\":1}"), "add_prefix_space has the wrong type");
    refused(key, strcat(strcpy(text, meta), ",\"split\":1}"), "split has the wrong type");
    refused(key, strcat(strcpy(text, meta), ",\"prepend_scheme\":\"last\"}"),
            "prepend_scheme not supported (found 'last')");
    refused(key, "{\"type\":\"Metaspace\",\"replacement\":\"_\"}",
            "Metaspace with another replacement");
    base = "small-a.json";
    refused("normalizer", REPLACE, "Prepend or Replace before ByteLevel");
}

static void m59_other_components(void **state)
{
    (void)state;
    refused("normalizer", "{\"type\":\"Lowercase\"}",
            "normalizer not supported (found 'Lowercase')");
    refused("normalizer",
            "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},{\"type\":\"NFD\"}]}",
            "normalizer not supported (found 'NFD')");
    tg_tokenizer_free(
        accepted("normalizer", "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"}]}"));
    tg_tokenizer_free(accepted("normalizer", ""));
    refused("normalizer", "[]", "normalizer has the wrong type (found array, allowed object)");
    refused("decoder", "[]", "decoder has the wrong type (found array, allowed object)");
    refused("decoder", "{\"type\":\"Sequence\",\"decoders\":[" BARE "," BARE "]}", "decoder not supported (found 'ByteLevel')");
    refused("decoder", "{\"type\":\"WordPiece\"}", "decoder not supported (found 'WordPiece')");
    tg_tokenizer_free(accepted("decoder", "null"));
    refused("post_processor", "{\"type\":\"RobertaProcessing\"}",
            "post-processor not supported (found 'RobertaProcessing')");
    refused("model", "null", "model has the wrong type (found null, allowed object)");
    refused("model", "", "model has the wrong type (found nothing, allowed object)");
    refused("model.type", "\"Unigram\"", "tokenizer model not supported (found 'Unigram')");
    refused("model.dropout", "0.1", "BPE with dropout");
    tg_tokenizer_free(accepted("model.dropout", "0.0"));
    refused("model.byte_fallback", "true", "BPE with byte_fallback");
    refused("model.byte_fallback", "1", "byte_fallback has the wrong type");
    refused("model.continuing_subword_prefix", "1", "continuing_subword_prefix has the wrong type");
    refused("model.end_of_word_suffix", "1", "end_of_word_suffix has the wrong type");
    refused("model.continuing_subword_prefix", "\"##\"", "BPE with subword affixes");
    refused("model.end_of_word_suffix", "\"</w>\"", "BPE with subword affixes");
    tg_tokenizer_free(accepted("model.end_of_word_suffix", "\"\""));
    refused("model.ignore_merges", "1",
            "ignore_merges has the wrong type (found integer, allowed boolean)");
    refused("model.unk_token", "\"zzz\"", "unk_token is no token (found 'zzz')");
    refused("model.unk_token", "7", "unk_token has the wrong type");
}

static void m52_to_m57_vocabularies(void **state)
{
    (void)state;
    refused("model.vocab", "", "vocab has the wrong type (found nothing, allowed object)");
    refused("model.vocab", "[]", "vocab has the wrong type (found array, allowed object)");
    refused("model.vocab", "{}", "the vocabulary is empty");
    refused("model.vocab.!", "\"1\"",
            "an id in vocab has the wrong type (found string, allowed integer)");
    refused("model.vocab.!", "1.0",
            "an id in vocab has the wrong type (found number, allowed integer)");
    refused("model.vocab.!", "2", "token id 2 is there twice");
    refused("model.vocab.!", "-1", "token id out of range (found -1, allowed 0 to 999)");
    refused("model.vocab.!", "1000", "token id out of range (found 1000, allowed 0 to 999)");
    refused("model.merges", "", "merges has the wrong type (found nothing, allowed array)");
    refused("model.merges", "[]", "a BPE vocabulary without merges");
    refused("model.merges.3", "[\"a\"]", "merge 4 has not two parts");
    refused("model.merges.3", "[\"a\",\"b\",\"c\"]", "merge 4 has not two parts");
    refused("model.merges.3", "[\"a\",1]", "merge 4 has not two parts");
    refused("model.merges.3", "7", "merge 4 has not two parts");
    refused("model.merges.3", "[\"a\",\"\"]", "merge 4: '' is no token");
    refused("model.merges.3", "\"a b c\"", "merge 4 has not two parts (found 'a b c')");
    refused("model.merges.3", "[\"a\",\"\\u00e4\\u00f6\"]",
            "merge 4: '\\xc3\\xa4\\xc3\\xb6' is no token");
    refused("model.merges.3", "[\"!\",\"!\"]", "merge 4: the result '!!' is no token");
}

static void m53_added_tokens(void **state)
{
    (void)state;
    refused("added_tokens", "{}", "added_tokens has the wrong type (found object, allowed array)");
    tg_tokenizer_free(accepted("added_tokens", ""));
    tg_tokenizer_free(accepted("added_tokens.2", "{\"content\":\"\",\"id\":5}")); /* passed over */
    refused("added_tokens.0.content", "1", "content of an added token has the wrong type");
    refused("added_tokens.0", "1", "content of an added token has the wrong type (found nothing");
    refused("added_tokens.0.special", "1", "special has the wrong type");
    refused("added_tokens.0.id", "\"0\"", "id of an added token has the wrong type");
    refused("added_tokens.0.id", "1000", "token id out of range (found 1000, allowed 0 to 999)");
    refused("added_tokens.0.id", "-1", "token id out of range (found -1");
    refused("added_tokens.0.id", "950", "added token '<|endoftext|>' has two ids (0 and 950)");
    refused("added_tokens.1.id", "950",
            "added token '[pause]' has an id out of order (found 950, allowed 900)");
    refused("added_tokens.1.id", "0",
            "added token '[pause]' has an id out of order (found 0, allowed 900)");
    refused("added_tokens.2.content", "\"[pause]\"", "added token '[pause]' is there twice");
}

#define TEMPLATE(single, specials)                                                                 \
    "{\"type\":\"TemplateProcessing\",\"single\":" single ",\"special_tokens\":" specials "}"
#define TEXT      "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}"
#define END       "{\"SpecialToken\":{\"id\":\"<e>\",\"type_id\":0}}"
#define ENDS(ids) "{\"<e>\":{\"id\":\"<e>\",\"ids\":" ids ",\"tokens\":[\"<e>\"]}}"

static void m58_templates(void **state)
{
    (void)state;
    static const char key[] = "post_processor";
    refused(key, TEMPLATE("1", "{}"), "single has the wrong type");
    refused(key, TEMPLATE("[]", "{}"), "template not supported (found 'one without the text')");
    refused(key, TEMPLATE("[" END "]", ENDS("[0]")), "one without the text");
    refused(key, TEMPLATE("[" TEXT "," TEXT "]", "{}"),
            "template not supported (found 'a piece of another kind')");
    refused(key, TEMPLATE("[1," TEXT "]", "{}"), "a piece of another kind");
    refused(key, TEMPLATE("[" END "," TEXT "]", "{}"), "template not supported (found '<e>')");
    refused(key, TEMPLATE("[" END "," TEXT "]", ENDS("[-1]")),
            "id of a special token out of range (found -1");
    refused(key, TEMPLATE("[" END "," TEXT "]", ENDS("[1000]")),
            "id of a special token out of range (found 1000");
    refused(key, TEMPLATE("[" END "," TEXT "]", ENDS("[999]")),
            "id of a special token is no token (found 999)");
    refused(key, TEMPLATE("[" END "," TEXT "]", ENDS("[0.5]")),
            "id of a special token has the wrong type");
    refused(key, TEMPLATE("[" END "," TEXT "]", ENDS("[0,0,0,0,0,0,0,0,0]")),
            "too many tokens around a text");
    refused(key,
            "{\"type\":\"Sequence\",\"processors\":[" TEMPLATE("[" TEXT "]", "{}") "," TEMPLATE(
                "[" TEXT "]", "{}") "]}",
            "post-processor not supported");
    tg_tokenizer *t = accepted(key, "{\"type\":\"Sequence\",\"processors\":[" LEVEL "," TEMPLATE(
                                        "[" END "," TEXT "," END "]", ENDS("[0,900]")) "]}");
    tg_tokenizer_info info;
    tg_tokenizer_get_info(t, &info);
    assert_true(info.add_bos && info.add_eos);
    expect_ids(t, "!", 1, TG_TOK_BOS, (int32_t[]){0, 900, 1, 0, 900, -1});
    expect_ids(t, "!", 1, 0, (int32_t[]){1, -1});
    tg_tokenizer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(well_formed),          cmocka_unit_test(pre_tokenizers),
        cmocka_unit_test(m59_pre_tokenizers),   cmocka_unit_test(sentencepiece),
        cmocka_unit_test(m59_other_components), cmocka_unit_test(m52_to_m57_vocabularies),
        cmocka_unit_test(m53_added_tokens),     cmocka_unit_test(m58_templates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
