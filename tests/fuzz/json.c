/* json.c - JSON, as a tree and by the walk that does without one: both take the same texts for the same values. Then
 * what reads trees: a model's configuration, and the record of a download. */
#include "fuzz/fuzz.h"

#include "base/json_walk.h"
#include "fetch/part.h"
#include "format/reader.h"
#include "model/arch.h"

/* ---- the walk ------------------------------------------------------------------------------------------ */

/* The value at hand as a tree; NULL where the walk fails, or meets what it does not read, which *other then says. */
static json_t *walk_value(tg_json_walk *w, int depth, bool *other)
{
    const char *type = tg_json_walk_type(w);
    const uint8_t *s;
    size_t n;
    int64_t number;
    if (strcmp(type, "string") == 0 || strcmp(type, "nothing") == 0) /* which is refused */
        return tg_json_walk_string(w, 0, false, &s, &n) ? json_stringn((const char *)s, n) : NULL;
    if (strcmp(type, "integer") == 0)
        return tg_json_walk_int(w, &number) ? json_integer(number) : NULL;
    bool object = strcmp(type, "object") == 0;
    if ((!object && strcmp(type, "array") != 0) || depth == TG_JSON_DEPTH_MAX) {
        *other = true;
        return NULL;
    }
    json_t *value = object ? json_object() : json_array();
    tg_json_walk_open(w, object ? '{' : '[');
    while (tg_json_walk_next(w, object ? '}' : ']')) {
        char *key = NULL;
        if (object && tg_json_walk_string(w, 1, true, &s, &n))
            key = strndup((const char *)s, n);
        json_t *item = object && !key ? NULL : walk_value(w, depth + 1, other);
        int failed = !item || (object ? json_object_set_new(value, key, item) : json_array_append_new(value, item));
        free(key);
        if (failed)
            break;
    }
    if (w->failed || *other) {
        json_decref(value);
        return NULL;
    }
    return value;
}

static void check_walk(const uint8_t *data, size_t n, const json_t *tree, const tg_error *why)
{
    tg_error err = {0};
    bool other = false;
    tg_json_walk w = tg_json_walk_start(data, tg_json_range_all(data, n), "walk", &err);
    json_t *value = walk_value(&w, 0, &other);
    tg_status status = tg_json_walk_end(&w);
    bool twice = why->status && strstr(why->message, "duplicate"); /* which the walk does not look for */
    if (!other && !twice && n > 0) {
        MUST((status == TG_OK) == (tree != NULL));
        MUST(status != TG_OK || json_equal(value, tree));
    }
    json_decref(value);
}

/* ---- parsing around ------------------------------------------------------------------------------------- */

static void check_around(const uint8_t *data, size_t n, const json_t *tree)
{
    static const char *const keys[] = {"vocab", "merges"};
    tg_json_range ranges[2];
    tg_error err = {0};
    json_t *around = tg_json_parse_around(data, n, "around", "model", keys, ranges, 2, &err);
    MUST(!tree || around);
    for (int i = 0; i < 2; i++)
        MUST(ranges[i].from <= ranges[i].to && ranges[i].to <= n);
    const json_t *model = json_object_get(tree, "model");
    for (int i = 0; tree && i < 2; i++) {
        if (ranges[i].to == 0)
            continue;
        json_t *part = tg_json_parse(data + ranges[i].from, ranges[i].to - ranges[i].from, "part", NULL);
        MUST(part && json_equal(part, json_object_get(model, keys[i])));
        MUST(json_is_null(json_object_get(json_object_get(around, "model"), keys[i])));
        json_decref(part);
    }
    json_decref(around);
}

/* ---- trees ------------------------------------------------------------------------------------------------ */

static void check_config(json_t *tree)
{
    tg_error err = {0};
    tg_config *config = malloc(sizeof *config);
    const tg_arch *arch = NULL;
    const char *name = NULL;
    tg_container c = {.kind = TG_CONTAINER_HF, .config = tree, .path = "model", .meta_path = "config.json"};
    if (tg_config_load(&c, &arch, &name, config, &err) == TG_OK) {
        MUST(arch && name);
        MUST(config->n_layer >= 1 && config->n_layer <= TG_MAX_LAYERS && config->n_embd >= 1);
        MUST(config->n_head >= 1 && config->n_head_kv >= 1 && config->n_head % config->n_head_kv == 0);
        MUST(config->head_dim >= 1 && config->n_ctx_train >= 1);
        MUST(config->n_expert == 0 || (config->n_expert_used >= 1 && config->n_expert_used <= config->n_expert));
    } else {
        MUST(err.message[0]);
    }
    free(config);
}

static void check_record(const uint8_t *data, size_t n)
{
    tg_record record;
    if (tg_record_parse(data, n, &record)) {
        MUST(record.size == TG_SIZE_UNKNOWN || record.size <= INT64_MAX);
        MUST(strnlen(record.digest, sizeof record.digest) < sizeof record.digest);
    }
    free(record.url);
}

void fuzz(const uint8_t *data, size_t n)
{
    tg_error err = {0};
    json_t *tree = tg_json_parse(data, n, "tree", &err);
    MUST(tree ? !err.status : err.status && err.message[0]);
    check_walk(data, n, tree, &err);
    check_around(data, n, tree);
    if (json_is_object(tree)) {
        check_config(tree);
        check_record(data, n);
    }
    json_decref(tree);
}
