/* Every allocation of reading a small model and its tokenizer fails in turn (R24 of the fault catalogue), for each kind of
 * file that can hold them. Small: so that all of them are tried. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "format/container.h"
#include "support/every_allocation.h"
#include "support/gguf_writer.h"
#include "support/safetensors_writer.h"
#include "support/scratch.h"
#include "token/bpe.h"
#include "token/tokenizer.h"
#include "token/vocab.h"

static tg_status read_model(void *arg, uint64_t *sum, tg_error *err)
{
    tg_container *c;
    tg_tokenizer *t = NULL;
    tg_tokenizer_info info = {0};
    tg_status status = tg_container_open(&c, arg, false, err);
    if (status == TG_OK)
        status = tg_tokenizer_load(&t, c, 300, err);
    if (status == TG_OK)
        status = tg_container_fingerprint(c, sum, err);
    if (status == TG_OK) {
        tg_tokenizer_get_info(t, &info);
        *sum += tg_container_n_tensors(c) * 1000 + (uint64_t)info.n_tokens;
    }
    tg_tokenizer_free(t);
    tg_container_free(c);
    return status;
}

static void every_allocation_of(const char *name)
{
    every_allocation(name, read_model, scratch_path(name));
}

/* ---- folders ------------------------------------------------------------------------------------------ */

#define VOCAB "{\"a\":0,\"b\":1,\"\\u0120\":2,\"ab\":3,\"<|endoftext|>\":4,\"\\u0120a\":5}"
#define JSON                                                                                                           \
    "{\"added_tokens\":[{\"id\":4,\"content\":\"<|endoftext|>\",\"special\":true},{\"id\":6,\"content\":\"e\\u0301\","       \
    "\"normalized\":true}],\"normalizer\":{\"type\":\"NFC\"},\"pre_tokenizer\":{\"type\":\"ByteLevel\","                    \
    "\"add_prefix_space\":false},\"model\":{\"type\":\"BPE\",\"vocab\":" VOCAB ",\"merges\":[[\"a\",\"b\"],[\"\\u0120\",\"a\"]]}}"

static void put_file(const char *folder, const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    scratch_text(path, text);
}

/* A file of one tensor. */
static void put_weights(const char *folder, const char *name, const char *tensor)
{
    char path[128], header[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    snprintf(header, sizeof header, "{\"%s\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", tensor);
    bytes b = safetensors_file(header, 4);
    scratch_write(path, b.data, b.n);
    bytes_free(&b);
}

#define SHARD(i) "model-0000" #i "-of-00002.safetensors"

static void folders(void **state)
{
    (void)state;
    static const char *const names[] = {"one", "one/model.safetensors", "indexed", "numbered"};
    for (int i = 0; i < 4; i++) {
        if (i == 1)
            continue;
        scratch_mkdir(names[i]);
        put_file(names[i], "config.json", "{\"model_type\":\"gpt2\",\"eos_token_id\":[4]}");
    }
    put_weights("one", "model.safetensors", "a");
    put_file("one", "tokenizer.json", JSON);
    put_file("one", "tokenizer_config.json", "{\"bos_token\":\"<|endoftext|>\"}");
    put_file("one", "generation_config.json", "{\"eos_token_id\":4}");
    for (int i = 2; i < 4; i++) {
        put_weights(names[i], SHARD(1), "a");
        put_weights(names[i], SHARD(2), "b");
        put_file(names[i], "vocab.json", VOCAB);
        put_file(names[i], "merges.txt", "#version: 0.2\na b\n");
    }
    put_file("indexed", "model.safetensors.index.json", "{\"weight_map\":{\"a\":\"" SHARD(1) "\",\"b\":\"" SHARD(2) "\"}}");
    put_file("indexed", "tokenizer_config.json",
             "{\"add_bos_token\":true,\"add_eos_token\":true,\"bos_token\":\"<|endoftext|>\",\"eos_token\":\"<|endoftext|>\","
             "\"added_tokens_decoder\":{\"6\":{\"content\":\"<x>\"}}}");
    for (int i = 0; i < 4; i++)
        every_allocation_of(names[i]);
}

/* ---- GGUF --------------------------------------------------------------------------------------------- */

#define K(name) "tokenizer.ggml." name

static void put_gguf(const char *name, gguf *g)
{
    bytes b = gguf_file(g);
    scratch_write(name, b.data, b.n);
    bytes_free(&b);
}

static gguf part(uint32_t no, const char *tensor)
{
    gguf g = gguf_new();
    gguf_uint(&g, "split.no", GGUF_U16, no);
    gguf_uint(&g, "split.count", GGUF_U16, 2);
    gguf_tensor(&g, tensor, 1, (uint64_t[]){1}, 0, "data", 4);
    return g;
}

static void parts(void **state)
{
    static const char *const tokens[] = {"a", "b", "ab", "<e>"};
    (void)state;
    gguf g = part(1, "b");
    for (int i = 0; i < 40; i++) {
        char name[8];
        snprintf(name, sizeof name, "b%d", i);
        gguf_tensor(&g, name, 1, (uint64_t[]){1}, 0, "data", 4);
    }
    put_gguf("p-00002-of-00002.gguf", &g);
    g = part(0, "a");
    gguf_text(&g, K("model"), "gpt2");
    gguf_text(&g, K("pre"), "gpt-2");
    bytes *b = gguf_array(&g, K("tokens"), GGUF_STRING, 4);
    for (int i = 0; i < 4; i++)
        gguf_string(b, tokens[i], strlen(tokens[i]));
    b = gguf_array(&g, K("token_type"), GGUF_I32, 4);
    for (uint32_t i = 0; i < 4; i++)
        put_u32(b, i == 3 ? 3 : 1);
    gguf_string(gguf_array(&g, K("merges"), GGUF_STRING, 1), "a b", 3);
    put_gguf("p-00001-of-00002.gguf", &g);
    every_allocation_of("p-00001-of-00002.gguf");
}

static void sentencepiece(void **state)
{
    enum { N = 3 + 256 };
    (void)state;
    gguf g = gguf_new();
    gguf_text(&g, K("model"), "llama");
    bytes *tokens = gguf_array(&g, K("tokens"), GGUF_STRING, N);
    for (int i = 0; i < N; i++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", (unsigned)(i - 3) & 0xff);
        if (i < 3)
            snprintf(name, sizeof name, "%c", 'a' + i);
        gguf_string(tokens, name, strlen(name));
    }
    bytes *types = gguf_array(&g, K("token_type"), GGUF_I32, N);
    for (int i = 0; i < N; i++)
        put_u32(types, i == 0 ? 3 : i < 3 ? 1 : 6);
    put_zeros(gguf_array(&g, K("scores"), GGUF_F32, N), 4 * N);
    gguf_u32(&g, K("bos_token_id"), 0);
    put_gguf("spm.gguf", &g);
    every_allocation_of("spm.gguf");
}

/* ---- tables that grow beyond what was reserved ------------------------------------------------------------ */

static tg_status grow(void *arg, uint64_t *sum, tg_error *err)
{
    enum { N = 1500 };
    tg_vocab v;
    tg_bpe bpe = {0};
    char name[8];
    (void)arg;
    tg_status status = tg_vocab_init(&v, N, err);
    if (status == TG_OK)
        status = tg_bpe_init(&bpe, err);
    for (int32_t i = 0; i < N && status == TG_OK; i++) {
        status = tg_vocab_add(&v, i, name, (size_t)snprintf(name, sizeof name, "t%d", i), "x.json", err);
        if (status == TG_OK)
            status = tg_bpe_add_merge(&bpe, i, i, i, (uint32_t)i, err);
    }
    *sum = v.n_used * 10000 + bpe.n_used;
    tg_vocab_deinit(&v);
    tg_bpe_deinit(&bpe);
    return status;
}

static void tables(void **state)
{
    (void)state;
    every_allocation("tables that grow", grow, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders),
        cmocka_unit_test(parts),
        cmocka_unit_test(sentencepiece),
        cmocka_unit_test(tables),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
