/* tokenizer.c - what a folder has of a tokenizer. Parts of the input: tokenizer.json or, where the second is not empty,
 * vocab.json; merges.txt; tokenizer_config.json; generation_config.json; config.json; a chat template. */
#include "fuzz/fuzz.h"

#include "base/json.h"
#include "format/reader.h"
#include "token/chat.h"
#include "token/tokenizer.h"

enum { VOCAB = 512 };

static void check(const tg_tokenizer *t)
{
    static const char text[] = "The fox\n said: \xc3\xa9\xff<s>\0 1234</s>";
    tg_tokenizer_info info;
    tg_error err = {0};
    int32_t *ids;
    size_t n, n_ids, dropped;
    tg_tokenizer_get_info(t, &info);
    MUST(info.n_tokens >= 1 && info.n_tokens <= VOCAB && info.bos < info.n_tokens && info.eos < info.n_tokens);
    for (unsigned flags = 0; flags < 4; flags++) {
        MUST(tg_tokenizer_encode(t, text, sizeof text, flags, &ids, &n_ids, &dropped, &err) == TG_OK);
        MUST(dropped <= sizeof text);
        for (size_t i = 0; i < n_ids; i++) {
            MUST(ids[i] >= 0 && ids[i] < info.n_tokens);
            tg_tokenizer_bytes(t, ids[i], &n);
            MUST(n > 0);
        }
        tg_free(ids);
    }
}

void fuzz(const uint8_t *data, size_t n)
{
    enum { VOCABULARY, MERGES, TOKENIZER_CONFIG, GENERATION_CONFIG, CONFIG, TEMPLATE, PARTS };
    fuzz_part parts[PARTS];
    tg_error err = {0};
    fuzz_split(data, n, parts, PARTS);
    const fuzz_part *p = parts, none = {0}, *vocab = p[MERGES].n ? &p[VOCABULARY] : &none;
    const fuzz_part *whole = p[MERGES].n ? &none : &p[VOCABULARY];
    fuzz_put("tokenizer.json", whole->bytes, whole->n);
    fuzz_put("vocab.json", vocab->bytes, vocab->n);
    fuzz_put("merges.txt", vocab->bytes ? p[MERGES].bytes : NULL, vocab->bytes ? p[MERGES].n : 0);
    fuzz_put("tokenizer_config.json", p[TOKENIZER_CONFIG].bytes, p[TOKENIZER_CONFIG].n);
    fuzz_put("generation_config.json", p[GENERATION_CONFIG].bytes, p[GENERATION_CONFIG].n);
    fuzz_put("chat_template.jinja", p[TEMPLATE].bytes, p[TEMPLATE].n);
    tg_container c = {.kind = TG_CONTAINER_HF, .path = fuzz_folder(), .folder = fuzz_folder(), .meta_path = "config.json"};
    c.config = p[CONFIG].n ? tg_json_parse(p[CONFIG].bytes, p[CONFIG].n, "config.json", NULL) : NULL;
    tg_tokenizer *t;
    tg_status status = tg_tokenizer_load(&t, &c, VOCAB, &err);
    MUST(status == err.status && (status == TG_OK) == (t != NULL) && (t || err.message[0]));
    if (t)
        check(t);
    char *template;
    if (tg_chat_find(&c, &template, &err) == TG_OK)
        tg_free(template);
    tg_tokenizer_free(t);
    json_decref(c.config);
}
