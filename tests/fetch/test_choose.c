/* Tests of choose.c: listings as real repositories have them, and what is taken of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "fetch/choose.h"

enum { MAX = 64 };

/* Listings are names with blanks between them. */
static const char gpt2[] = ".gitattributes 64-8bits.tflite 64-fp16.tflite 64.tflite README.md config.json flax_model.msgpack "
                           "generation_config.json merges.txt model.safetensors onnx/config.json onnx/decoder_model.onnx "
                           "onnx/generation_config.json onnx/merges.txt onnx/tokenizer.json pytorch_model.bin rust_model.ot "
                           "tf_model.h5 tokenizer.json tokenizer_config.json vocab.json";
static const char mistral[] = ".gitattributes README.md config.json consolidated.safetensors generation_config.json "
                              "model-00001-of-00003.safetensors model-00002-of-00003.safetensors "
                              "model-00003-of-00003.safetensors model.safetensors.index.json params.json "
                              "special_tokens_map.json tokenizer.json tokenizer.model tokenizer.model.v3 "
                              "tokenizer_config.json";
static const char tinyllama[] = ".gitattributes README.md config.json tinyllama-1.1b-chat-v1.0.Q2_K.gguf "
                                "tinyllama-1.1b-chat-v1.0.Q3_K_L.gguf tinyllama-1.1b-chat-v1.0.Q4_0.gguf "
                                "tinyllama-1.1b-chat-v1.0.Q4_K_M.gguf tinyllama-1.1b-chat-v1.0.Q4_K_S.gguf "
                                "tinyllama-1.1b-chat-v1.0.Q8_0.gguf";
static const char qwen25[] = "README.md qwen2.5-7b-instruct-fp16-00001-of-00004.gguf qwen2.5-7b-instruct-fp16-00002-of-00004.gguf "
                             "qwen2.5-7b-instruct-fp16-00003-of-00004.gguf qwen2.5-7b-instruct-fp16-00004-of-00004.gguf "
                             "qwen2.5-7b-instruct-q2_k.gguf qwen2.5-7b-instruct-q4_k_m-00001-of-00002.gguf "
                             "qwen2.5-7b-instruct-q4_k_m-00002-of-00002.gguf";
static const char gemma[] = "README.md gemma-3-4b-it-Q4_K_M.gguf gemma-3-4b-it-Q8_0.gguf gemma-3-4b-it-f16.gguf "
                            "mmproj-model-f16.gguf";
static const char unsloth[] = "BF16/Qwen3-30B-A3B-BF16-00001-of-00002.gguf BF16/Qwen3-30B-A3B-BF16-00002-of-00002.gguf "
                              "Qwen3-30B-A3B-Q4_K_M.gguf Qwen3-30B-A3B-Q8_0.gguf Qwen3-30B-A3B-UD-Q4_K_XL.gguf README.md "
                              "config.json imatrix_unsloth.dat params";
static const char google[] = "README.md config.json gemma-2b.gguf generation_config.json "
                             "model-00001-of-00002.safetensors model-00002-of-00002.safetensors "
                             "model.safetensors.index.json special_tokens_map.json tokenizer.json tokenizer.model "
                             "tokenizer_config.json";
static const char phi[] = "LICENSE README.md Phi-3-mini-4k-instruct-fp16.gguf Phi-3-mini-4k-instruct-q4.gguf "
                          "Modelfile_fp16 Modelfile_q4 config.json";
static const char opt[] = ".gitattributes LICENSE.md README.md config.json flax_model.msgpack generation_config.json "
                          "merges.txt pytorch_model.bin special_tokens_map.json tf_model.h5 tokenizer_config.json vocab.json";
static const char lora[] = "README.md adapter_config.json adapter_model.safetensors";

static tg_repo_file files[MAX];

static tg_listing make_listing(const char *names)
{
    static char text[8192];
    tg_listing l = {.repo = "o/n", .revision = "main", .files = files};
    snprintf(text, sizeof text, "%s", names);
    for (char *save, *name = strtok_r(text, " ", &save); name; name = strtok_r(NULL, " ", &save))
        files[l.n++] = (tg_repo_file){.path = name};
    return l;
}

/* The files taken, with blanks between, and behind a "|" the model or nothing; else the status and the message. */
static const char *choose(const char *names, const tg_wish *wish)
{
    static char out[8192];
    tg_arena *arena = tg_arena_create(NULL);
    tg_listing l = make_listing(names);
    tg_choice c;
    tg_error err;
    size_t n = 0;
    out[0] = 0;
    tg_status status = tg_choose(&l, wish, &c, arena, &err);
    for (size_t i = 0; status == TG_OK && i < c.n; i++)
        n += (size_t)snprintf(out + n, sizeof out - n, "%s ", files[c.files[i]].path);
    if (status == TG_OK)
        snprintf(out + n, sizeof out - n, "|%s", c.model == TG_NO_FILE ? "" : files[c.model].path);
    else
        snprintf(out, sizeof out, "%d %s", (int)status, err.message);
    tg_arena_free(arena);
    return out;
}

#define NO_WISH ((tg_wish){0})

static void without_a_wish(void **state)
{
    (void)state;
    assert_string_equal(choose(gpt2, &NO_WISH), "README.md config.json generation_config.json merges.txt model.safetensors "
                                                "tokenizer.json tokenizer_config.json vocab.json |");
    assert_string_equal(choose(mistral, &NO_WISH),
                        "README.md config.json generation_config.json model-00001-of-00003.safetensors "
                        "model-00002-of-00003.safetensors model-00003-of-00003.safetensors model.safetensors.index.json "
                        "special_tokens_map.json tokenizer.json tokenizer.model tokenizer_config.json |");
    assert_string_equal(choose(tinyllama, &NO_WISH),
                        "tinyllama-1.1b-chat-v1.0.Q4_K_M.gguf |tinyllama-1.1b-chat-v1.0.Q4_K_M.gguf");
    assert_string_equal(choose(qwen25, &NO_WISH),
                        "qwen2.5-7b-instruct-q4_k_m-00001-of-00002.gguf qwen2.5-7b-instruct-q4_k_m-00002-of-00002.gguf "
                        "|qwen2.5-7b-instruct-q4_k_m-00001-of-00002.gguf");
    assert_string_equal(choose(gemma, &NO_WISH), "gemma-3-4b-it-Q4_K_M.gguf |gemma-3-4b-it-Q4_K_M.gguf");
    assert_string_equal(choose(unsloth, &NO_WISH), "Qwen3-30B-A3B-Q4_K_M.gguf |Qwen3-30B-A3B-Q4_K_M.gguf");
    /* A GGUF that names no quantisation gives way to safetensors. */
    assert_non_null(strstr(choose(google, &NO_WISH), "model-00002-of-00002.safetensors model.safetensors.index.json"));
    assert_null(strstr(choose(google, &NO_WISH), ".gguf"));
    assert_string_equal(choose(phi, &NO_WISH), "Phi-3-mini-4k-instruct-q4.gguf |Phi-3-mini-4k-instruct-q4.gguf");
    assert_string_equal(choose("Qwen3-0.6B-Q8_0.gguf README.md", &NO_WISH), "Qwen3-0.6B-Q8_0.gguf |Qwen3-0.6B-Q8_0.gguf");
    assert_string_equal(choose("tales.gguf README.md", &NO_WISH), "tales.gguf |tales.gguf");
    assert_string_equal(choose("m-UD-Q4_K_XL.gguf m-UD-Q2_K_XL.gguf", &NO_WISH), "m-UD-Q4_K_XL.gguf |m-UD-Q4_K_XL.gguf");
}

static void by_quantisation(void **state)
{
    (void)state;
    assert_string_equal(choose(tinyllama, &(tg_wish){.quant = "q3_k_l"}),
                        "tinyllama-1.1b-chat-v1.0.Q3_K_L.gguf |tinyllama-1.1b-chat-v1.0.Q3_K_L.gguf");
    assert_string_equal(choose(unsloth, &(tg_wish){.quant = "BF16"}),
                        "BF16/Qwen3-30B-A3B-BF16-00001-of-00002.gguf BF16/Qwen3-30B-A3B-BF16-00002-of-00002.gguf "
                        "|BF16/Qwen3-30B-A3B-BF16-00001-of-00002.gguf");
    assert_string_equal(choose(unsloth, &(tg_wish){.quant = "Q4_K_XL"}),
                        "Qwen3-30B-A3B-UD-Q4_K_XL.gguf |Qwen3-30B-A3B-UD-Q4_K_XL.gguf");
    assert_string_equal(choose(gemma, &(tg_wish){.quant = "F16"}), "gemma-3-4b-it-f16.gguf |gemma-3-4b-it-f16.gguf");
    assert_non_null(strstr(choose(gpt2, &(tg_wish){.quant = "Q4_0"}), "5 o/n: there is no GGUF of quantisation Q4_0"));
    const char *said = choose(gemma, &(tg_wish){.quant = "Q5_0"});
    assert_non_null(strstr(said, "there is gemma-3-4b-it-Q4_K_M.gguf, gemma-3-4b-it-Q8_0.gguf, gemma-3-4b-it-f16.gguf"));
    assert_null(strstr(said, "mmproj"));
}

static void what_cannot_be_decided(void **state)
{
    (void)state;
    assert_string_equal(choose("a-Q4_K_M.gguf b-Q4_K_M.gguf", &NO_WISH),
                        "2 o/n: several files would do: name one (REPO:FILE) of a-Q4_K_M.gguf, b-Q4_K_M.gguf");
    assert_string_equal(choose("a.gguf b.gguf", &NO_WISH), "2 o/n: several files would do: name one (REPO:FILE) of a.gguf, b.gguf");
    assert_string_equal(choose("a-Q4_K_M.gguf old/b-Q4_K_M.gguf", &NO_WISH), "a-Q4_K_M.gguf |a-Q4_K_M.gguf");
    assert_non_null(strstr(choose(opt, &NO_WISH), "3 o/n: weights as pickles alone"));
    assert_non_null(strstr(choose(lora, &NO_WISH), "3 o/n: no model in this repository"));
    assert_non_null(strstr(choose("", &NO_WISH), "3 o/n: no model"));
    /* Shards that cannot be all. */
    assert_non_null(strstr(choose("config.json model-00001-of-00002.safetensors", &NO_WISH), "3 o/n: no model"));
    assert_non_null(strstr(choose("a-Q8_0-00001-of-00002.gguf", &NO_WISH), "5 o/n: of the 2 parts"));
    assert_non_null(strstr(choose("a-Q8_0-00001-of-99999.gguf", &NO_WISH), "number 2 is not there"));
}

static void named_files(void **state)
{
    (void)state;
    static const char *const one[] = {"qwen2.5-7b-instruct-q4_k_m-00002-of-00002.gguf"}, *const two[] = {"config.json", "vocab.json"},
                            *const pickle[] = {"pytorch_model.bin"}, *const none[] = {"x.gguf"};
    assert_string_equal(choose(qwen25, &(tg_wish){.files = one, .n_files = 1}),
                        "qwen2.5-7b-instruct-q4_k_m-00001-of-00002.gguf qwen2.5-7b-instruct-q4_k_m-00002-of-00002.gguf "
                        "|qwen2.5-7b-instruct-q4_k_m-00001-of-00002.gguf");
    assert_string_equal(choose(gpt2, &(tg_wish){.files = two, .n_files = 2}), "config.json vocab.json |");
    assert_string_equal(choose(gpt2, &(tg_wish){.files = two, .n_files = 1}), "config.json |config.json");
    assert_non_null(strstr(choose(gpt2, &(tg_wish){.files = pickle, .n_files = 1}), "3 o/n: weights as pickles"));
    assert_non_null(strstr(choose(gpt2, &(tg_wish){.files = none, .n_files = 1}),
                           "5 o/n: there is no file x.gguf in this repository; of weights there is model.safetensors"));
}

static void patterns(void **state)
{
    (void)state;
    static const char *const json[] = {"*.json"}, *const onnx[] = {"onnx/"}, *const all[] = {"*"}, *const none[] = {"*.xyz"},
                            *const bin[] = {"*.bin"}, *const q4[] = {"*Q4*"};
    assert_string_equal(choose(gpt2, &(tg_wish){.include = json, .n_include = 1, .exclude = onnx, .n_exclude = 1}),
                        "config.json generation_config.json tokenizer.json tokenizer_config.json vocab.json |");
    assert_string_equal(choose(gpt2, &(tg_wish){.include = onnx, .n_include = 1, .exclude = json, .n_exclude = 1}),
                        "onnx/decoder_model.onnx onnx/merges.txt |");
    assert_null(strstr(choose(gpt2, &(tg_wish){.include = all, .n_include = 1}), "pytorch_model.bin"));
    assert_non_null(strstr(choose(gpt2, &(tg_wish){.include = none, .n_include = 1}), "5 o/n: no file"));
    assert_non_null(strstr(choose(gpt2, &(tg_wish){.include = bin, .n_include = 1}), "3 o/n: weights as pickles"));
    /* What is excluded is not chosen either. */
    assert_string_equal(choose(tinyllama, &(tg_wish){.exclude = q4, .n_exclude = 1}),
                        "tinyllama-1.1b-chat-v1.0.Q8_0.gguf |tinyllama-1.1b-chat-v1.0.Q8_0.gguf");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_wish), cmocka_unit_test(by_quantisation), cmocka_unit_test(what_cannot_be_decided),
        cmocka_unit_test(named_files),    cmocka_unit_test(patterns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
