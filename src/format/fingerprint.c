/* fingerprint.c - by what a model is recognised (container.h says what that sees). */
#include <string.h>

#include "base/memory.h"
#include "base/json.h"
#include "base/sum.h"
#include "format/container.h"

/* Texts, and what the tokenizer has: that is known by another hash. */
static bool is_computed_with(const char *key)
{
    return strcmp(key, "general.architecture") == 0 ||
           (strncmp(key, "general.", 8) != 0 && strncmp(key, "tokenizer.", 10) != 0);
}

static uint64_t sum_pairs(const tg_container *c, uint64_t sum)
{
    const char *key;
    const uint8_t *pair;
    size_t n;
    for (size_t i = 0; (pair = tg_container_pair_at(c, i, &key, &n)); i++)
        if (is_computed_with(key))
            sum = tg_sum_text(sum, pair, n);
    return sum;
}

/* What it is, and some bytes at its beginning, at its end and between. */
static uint64_t sum_tensor(const tg_tensor *t, uint64_t sum)
{
    enum { PLACES = 4, PLACE_BYTES = 64 };
    sum = tg_sum_text(sum, t->name, strlen(t->name));
    sum = tg_sum_text(sum, t->type_name, strlen(t->type_name));
    for (int i = 0; i < TG_MAX_DIMS; i++)
        sum = tg_sum_word(sum, t->dim[i]);
    if (t->n_bytes < PLACES * PLACE_BYTES)
        return tg_sum_text(sum, t->data, t->n_bytes);
    for (uint64_t i = 0; i < PLACES; i++)
        sum = tg_sum_bytes(sum, t->data + (t->n_bytes - PLACE_BYTES) * i / (PLACES - 1), PLACE_BYTES);
    return sum;
}

tg_status tg_container_fingerprint(const tg_container *c, uint64_t *hash, tg_error *err)
{
    uint64_t sum = sum_pairs(c, tg_container_get_kind(c));
    const json_t *config = tg_container_config(c);
    if (config) {
        char *text = tg_json_text(config, JSON_COMPACT | JSON_SORT_KEYS, "the configuration as text", err);
        if (!text)
            return TG_E_RESOURCE;
        sum = tg_sum_text(sum, text, strlen(text));
        tg_free(text);
    }
    for (size_t i = 0; i < tg_container_n_tensors(c); i++)
        sum = sum_tensor(tg_container_tensor_at(c, i), sum);
    *hash = sum;
    return TG_OK;
}
