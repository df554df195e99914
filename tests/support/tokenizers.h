/* tokenizers.h - tokenizers for tests, from the committed vocabularies. Include after <cmocka.h>.
 */
#ifndef TEST_TOKENIZERS_H
#define TEST_TOKENIZERS_H

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "token/build.h"

#define TOKEN_DATA "tests/token/data/"

/* A JSON file of the repository; ends the test when it is not there. */
static inline json_t *load_json(const char *path)
{
    json_error_t e;
    json_t *root = json_load_file(path, 0, &e);
    if (!root)
        print_error("%s: %s (tests run from the top of the source tree)\n", path, e.text);
    assert_non_null(root);
    return root;
}

/* A vocabulary of TOKEN_DATA with the members of `patch` (NULL: none) instead of its own; those of
 * "model" are replaced one by one. */
static inline json_t *load_patched(const char *file, json_t *patch)
{
    char path[256];
    snprintf(path, sizeof path, TOKEN_DATA "%s", file);
    json_t *root = load_json(path), *value;
    const char *key;
    json_object_foreach(patch, key, value)
    {
        if (strcmp(key, "model") == 0)
            json_object_update(json_object_get(root, "model"), value);
        else
            json_object_set(root, key, value);
    }
    return root;
}

/* tg_load_json of a tree, which is given back to jansson. */
static inline tg_status load_tree(tg_tokenizer **t, json_t *root, int n_vocab, tg_error *err)
{
    char *text = json_dumps(root, JSON_ENCODE_ANY | JSON_COMPACT);
    assert_non_null(text);
    tg_status status = tg_load_json(t, text, strlen(text), "tokenizer.json", n_vocab, err);
    free(text);
    json_decref(root);
    return status;
}

/* The finished tokenizer of a tokenizer.json, which is given back to jansson. */
static inline tg_tokenizer *tokenizer_of(json_t *root, int n_vocab)
{
    tg_tokenizer *t = NULL;
    tg_error err = {0};
    tg_status status = load_tree(&t, root, n_vocab, &err);
    if (status == TG_OK)
        status = tg_build_finish(t, &err);
    if (status != TG_OK)
        print_error("%s\n", err.message);
    assert_int_equal(status, TG_OK);
    return t;
}

/* The ids of a text must be these, -1 at the end; returns the bytes left out. */
static inline size_t expect_ids(const tg_tokenizer *t, const void *text, size_t n, unsigned flags,
                                const int32_t *wanted)
{
    int32_t *ids;
    size_t n_ids, dropped, n_wanted = 0;
    tg_error err = {0};
    assert_int_equal(tg_tokenizer_encode(t, text, n, flags, &ids, &n_ids, &dropped, &err), TG_OK);
    while (wanted[n_wanted] >= 0)
        n_wanted++;
    assert_int_equal(n_ids, n_wanted);
    for (size_t i = 0; i < n_ids; i++)
        assert_int_equal(ids[i], wanted[i]);
    tg_free(ids);
    return dropped;
}

#endif
