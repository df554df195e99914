/* gguf.c - GGUF files, from the first byte to a model that could run: metadata, tensors, configuration, tokenizer,
 * chat template; and what inspection tells of those that could not. */
#include "fuzz/fuzz.h"

#include "format/container.h"

/* Looks at everything that a loaded model tells. */
static void look_at(const tg_model *m)
{
    tg_model_info info;
    tg_tensor_info tensor;
    tg_tokenizer_info tokens;
    uint64_t kv, scratch;
    volatile char seen;
    tg_model_get_info(m, &info);
    MUST(info.path && info.format && (info.supported || info.unsupported));
    for (int i = 0; i < info.n_tensors; i++) {
        tg_model_get_tensor(m, i, &tensor);
        MUST(tensor.n_dim >= 1 && tensor.n_dim <= 4 && tensor.name[0] && tensor.type[0]);
    }
    tg_session_memory(m, &(tg_session_params){.n_ctx = 256, .n_threads = 1}, &kv, &scratch);
    tg_model_get_tokenizer(m, &tokens);
    for (int32_t id = -1; id <= tokens.n_tokens; id++) {
        size_t n;
        const char *bytes = tg_token_bytes(m, id, &n);
        for (size_t i = 0; i < n; i++)
            seen = bytes[i];
        (void)seen;
        MUST(n > 0 || tg_token_get_kind(m, id) == TG_TOKEN_UNUSED);
    }
    if (tokens.n_tokens > 0) {
        int32_t *ids;
        size_t n, dropped;
        MUST(tg_tokenize(m, "The fox\n\xc3\xa9<s>", 13, TG_TOK_BOS | TG_TOK_SPECIAL, &ids, &n, &dropped, NULL) == TG_OK);
        for (size_t i = 0; i < n; i++)
            MUST(ids[i] >= 0 && ids[i] < tokens.n_tokens);
        tg_free(ids);
    }
    MUST(!tg_model_chat_template(m) || strlen(tg_model_chat_template(m)) < 1 << 24);
}

/* All of a tensor's data can be read, and none of it is another's. */
static void read_tensors(const char *path, size_t n)
{
    tg_container *c;
    tg_error err = {0};
    uint64_t hash, bytes = 0;
    volatile uint8_t seen;
    MUST(tg_container_open(&c, path, true, &err) == TG_OK);
    for (size_t i = 0; i < tg_container_n_tensors(c); i++) {
        const tg_tensor *t = tg_container_tensor_at(c, i);
        MUST(tg_container_tensor(c, t->name) == t);
        for (uint64_t k = 0; k < t->n_bytes; k += 64)
            seen = t->data[k];
        if (t->n_bytes)
            seen = t->data[t->n_bytes - 1];
        bytes += t->n_bytes;
    }
    (void)seen;
    MUST(bytes <= n);
    MUST(tg_container_fingerprint(c, &hash, &err) == TG_OK);
    tg_container_free(c);
}

void fuzz(const uint8_t *data, size_t n)
{
    const char *path = fuzz_file(data, n);
    tg_model *m, *whole;
    tg_model_info info;
    tg_error err = {0}, why = {0};
    tg_status status = tg_model_load(&m, path, TG_LOAD_META_ONLY | TG_LOAD_NO_MMAP, &err);
    MUST(status == TG_OK || (status == err.status && strstr(err.message, path)));
    if (status != TG_OK)
        return;
    read_tensors(path, n);
    look_at(m);
    /* What inspection calls supported can be loaded, and nothing else. */
    tg_model_get_info(m, &info);
    status = tg_model_load(&whole, path, 0, &why);
    MUST(status == TG_OK ? info.supported && !info.unsupported : !info.supported || info.unsupported);
    MUST(status == why.status && (status == TG_OK || why.message[0]));
    if (status == TG_OK)
        look_at(whole);
    tg_model_free(whole);
    tg_model_free(m);
}
