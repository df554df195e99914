/* whole.c - is what is here of a folder's model all of it? */
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "fetch/choose.h"

enum { INDEX_MAX_BYTES = 64 << 20, TENSORS_MAX = 65536 };

static bool has(const tg_listing *l, const tg_choice *choice, const char *path)
{
    for (size_t i = 0; i < choice->n; i++)
        if (strcmp(l->files[choice->files[i]].path, path) == 0)
            return true;
    return false;
}

tg_status tg_choice_check(const tg_listing *l, const tg_choice *choice, const char *folder, tg_error *err)
{
    static const char index[] = "model.safetensors.index.json";
    if (!choice->folder || !has(l, choice, index))
        return TG_OK;
    tg_error own = {0};
    err = err ? err : &own;
    char *path = tg_path_join(folder, index, err);
    json_t *root = path ? tg_json_load(path, INDEX_MAX_BYTES, err) : NULL, *value;
    const json_t *map = json_object_get(root, "weight_map");
    tg_status status = root ? TG_OK : err->status;
    if (root && (json_object_size(map) == 0 || json_object_size(map) > TENSORS_MAX))
        status = tg_fail(err, TG_E_MODEL, path, "weight_map (found %zu tensors, allowed 1 to %d)",
                         json_object_size(map), TENSORS_MAX);
    const char *tensor;
    tg_quoted q;
    json_object_foreach((json_t *)(uintptr_t)map, tensor, value)
    {
        const char *shard = json_is_string(value) ? json_string_value(value) : "";
        if (status == TG_OK && !has(l, choice, shard))
            status = tg_fail(err, TG_E_MODEL, path, "names a shard that is not among this model's files: %s",
                             tg_quote_str(&q, shard));
    }
    json_decref(root);
    tg_free(path);
    return status;
}

tg_status tg_choice_check_tokenizer(const tg_listing *l, const tg_choice *choice, tg_error *err)
{
    static const char *const names[] = {"tokenizer.json", "vocab.json", "tokenizer.model"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!choice->folder || has(l, choice, names[i]))
            return TG_OK;
    return tg_fail(err, TG_E_NETWORK, l->repo, "its tokenizer is not here");
}
