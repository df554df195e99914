/* hf.c - a Hugging Face folder: config.json, and weights in one or more safetensors files.
 *
 * Owns the choice of files, the index of shards, and metadata by dotted paths into config.json.
 * Shard names come from outside: each is checked before any is opened, and none leads out of the
 * folder, or out of the hub's cache when the folder is a snapshot in one (its files are links to
 * ../../blobs). */
#include "format/reader.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define SINGLE "model.safetensors"
#define INDEX  "model.safetensors.index.json"

typedef struct weights {
    const char **names; /* in the arena; n of them */
    size_t n;
    json_t *index;     /* of the shards, or NULL */
    const json_t *map; /* in it: tensor name to file name */
} weights;

/* ---- the folder's contents ---------------------------------------------------------------- */

/* Is `name` <prefix>-NNNNN-of-NNNNN.safetensors? Then *total is the last number. */
static bool is_shard(const char *name, int *total)
{
    static const char shape[] = "-00000-of-00000.safetensors";
    size_t n = strlen(name), k = sizeof shape - 1;
    if (n <= k)
        return false;
    for (size_t i = 0; i < k; i++) {
        char c = name[n - k + i];
        if (shape[i] == '0' ? c < '0' || c > '9' : c != shape[i])
            return false;
    }
    *total = atoi(name + n - strlen("00000.safetensors"));
    return true;
}

typedef struct listing {
    int n_shards;    /* as the names of model-NNNNN-of-NNNNN.safetensors tell; 0: there are none */
    char other[256]; /* the first name of another file of weights, or "" */
    bool pickle;     /* that is what it is */
} listing;

static tg_status list_folder(const tg_container *c, listing *l, tg_error *err)
{
    static const char *const pickles[] = {".bin", ".pt", ".pth", ".ckpt", ".pkl"};
    *l = (listing){0};
    DIR *dir = opendir(c->folder);
    if (!dir)
        return tg_fail_errno(err, c->folder, "cannot be listed");
    const struct dirent *e;
    while ((e = readdir(dir))) {
        int total;
        bool pickle = false,
             other = tg_has_suffix(e->d_name, ".safetensors") || tg_has_suffix(e->d_name, ".gguf");
        for (size_t i = 0; i < sizeof pickles / sizeof *pickles; i++)
            pickle |= tg_has_suffix(e->d_name, pickles[i]);
        if (strncmp(e->d_name, "model-", 6) == 0 && is_shard(e->d_name, &total)) {
            if (l->n_shards == 0 || total < l->n_shards)
                l->n_shards = total;
        } else if (pickle || other) {
            /* A file that could be read is named rather than a pickle; then the first by name. */
            bool better = !l->other[0] || (l->pickle && other) ||
                          (l->pickle == pickle && strcmp(e->d_name, l->other) < 0);
            if (better) {
                snprintf(l->other, sizeof l->other, "%s", e->d_name);
                l->pickle = pickle;
            }
        }
    }
    closedir(dir);
    return TG_OK;
}

static tg_status no_weights(const tg_container *c, const listing *l, tg_error *err)
{
    tg_quoted q;
    const char *found = l->other[0] ? tg_quote_str(&q, l->other) : "none";
    if (l->pickle)
        return tg_fail(err, TG_E_MODEL, c->folder,
                       "holds only pickle weights, which are never read (found %s, allowed " SINGLE
                       "): convert them to safetensors",
                       found);
    return tg_fail(err, TG_E_MODEL, c->folder,
                   "no weights in this folder (found %s, allowed " SINGLE ", or shards with " INDEX
                   ")%s",
                   found, l->other[0] ? ": give the path of the file itself" : "");
}

/* ---- choosing the files ------------------------------------------------------------------- */

static tg_status one_name(tg_container *c, weights *w, const char *name, tg_error *err)
{
    w->names = tg_arena_alloc(c->arena, 1, sizeof *w->names, "a file name", err);
    if (!w->names || !(w->names[0] = tg_arena_string(c->arena, name, strlen(name), err)))
        return TG_E_RESOURCE;
    w->n = 1;
    return TG_OK;
}

static tg_status numbered_names(tg_container *c, weights *w, int total, tg_error *err)
{
    if (total > TG_MAX_SHARDS)
        return tg_fail(err, TG_E_MODEL, c->folder, "number of shards (found %d, allowed 1 to %d)",
                       total, TG_MAX_SHARDS);
    w->names = tg_arena_alloc(c->arena, (size_t)total, sizeof *w->names, "file names", err);
    if (!w->names)
        return TG_E_RESOURCE;
    for (int i = 0; i < total; i++) {
        char name[64];
        int n = snprintf(name, sizeof name, "model-%05d-of-%05d.safetensors", i + 1, total);
        w->names[i] = tg_arena_string(c->arena, name, (size_t)n, err);
        if (!w->names[i])
            return TG_E_RESOURCE;
    }
    w->n = (size_t)total;
    return TG_OK;
}

static int compare_strings(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_plain_name(const char *s)
{
    if (!*s || strcmp(s, ".") == 0 || strstr(s, "..") || strlen(s) > 255)
        return false;
    for (; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f || *s == '/' || *s == '\\')
            return false;
    return true;
}

/* The distinct file names of the index, sorted. They live as long as the index. */
static tg_status indexed_names(tg_container *c, weights *w, const char *path, tg_error *err)
{
    w->index = tg_json_load(path, TG_MAX_JSON_BYTES, err);
    if (!w->index)
        return err->status;
    json_t *map = json_object_get(w->index, "weight_map"), *value;
    w->map = map;
    size_t n = json_object_size(map), k = 0;
    if (!json_is_object(map))
        return tg_fail(err, TG_E_MODEL, path, "weight_map (found %s, allowed an object)",
                       map ? tg_json_type_name(map) : "nothing");
    if (n == 0 || n > TG_MAX_TENSORS)
        return tg_fail(err, TG_E_MODEL, path, "weight_map (found %zu tensors, allowed 1 to %d)", n,
                       TG_MAX_TENSORS);
    w->names = tg_arena_alloc(c->arena, n, sizeof *w->names, "file names", err);
    if (!w->names)
        return TG_E_RESOURCE;
    tg_quoted q, name;
    const char *tensor;
    json_object_foreach(map, tensor, value)
    {
        if (!json_is_string(value))
            return tg_fail(err, TG_E_MODEL, path, "weight_map: %s (found %s, allowed a string)",
                           tg_quote_str(&q, tensor), tg_json_type_name(value));
        w->names[k] = json_string_value(value);
        if (!is_plain_name(w->names[k]))
            return tg_fail(err, TG_E_MODEL, path,
                           "weight_map: %s (found %s, allowed the name of a file in this folder)",
                           tg_quote_str(&q, tensor), tg_quote_str(&name, w->names[k]));
        k++;
    }
    qsort(w->names, k, sizeof *w->names, compare_strings);
    for (size_t i = 0; i < k; i++)
        if (i == 0 || strcmp(w->names[i], w->names[w->n - 1]) != 0)
            w->names[w->n++] = w->names[i];
    if (w->n > TG_MAX_SHARDS)
        return tg_fail(err, TG_E_MODEL, path, "number of shards (found %zu, allowed %d)", w->n,
                       TG_MAX_SHARDS);
    return TG_OK;
}

static bool folder_has(const tg_container *c, const char *name, char **path, tg_error *err)
{
    *path = tg_path_join(c->folder, name, err);
    return *path && tg_path_is_taken(*path);
}

/* What the folder holds as its model. */
static tg_status folder_names(tg_container *c, weights *w, tg_error *err)
{
    char *path;
    tg_status status = TG_OK;
    bool single = folder_has(c, SINGLE, &path, err);
    tg_free(path);
    if (single)
        return one_name(c, w, SINGLE, err);
    if (folder_has(c, INDEX, &path, err))
        status = indexed_names(c, w, path, err);
    tg_free(path);
    if (status != TG_OK || err->status != TG_OK || w->n)
        return err->status;
    listing l;
    status = list_folder(c, &l, err);
    if (status != TG_OK)
        return status;
    return l.n_shards ? numbered_names(c, w, l.n_shards, err) : no_weights(c, &l, err);
}

/* `file` is a .safetensors file that the user named, or NULL. */
static tg_status choose_weights(tg_container *c, const char *file, weights *w, tg_error *err)
{
    int total;
    if (file && strcmp(file, SINGLE) != 0 && !is_shard(file, &total))
        return one_name(c, w, file, err);
    tg_status status = folder_names(c, w, err);
    if (status != TG_OK || !file)
        return status;
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->names[i], file) == 0)
            return TG_OK;
    tg_quoted q;
    return tg_fail(err, TG_E_MODEL, c->path,
                   "not part of the model in its folder, whose weights are %s%s",
                   tg_quote_str(&q, w->names[0]), w->n > 1 ? " and others" : "");
}

/* ---- opening them ------------------------------------------------------------------------- */

static tg_status check_present(const tg_container *c, char *const *paths, const weights *w,
                               tg_error *err)
{
    char list[600];
    size_t n_missing = 0, used = 0;
    tg_quoted q;
    for (size_t i = 0; i < w->n; i++) {
        if (tg_path_exists(paths[i]))
            continue;
        n_missing++;
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "",
                                     tg_quote_str(&q, w->names[i]));
    }
    if (used >= sizeof list)
        memcpy(list + sizeof list - 4, "...", 4);
    return n_missing == 0
               ? TG_OK
               : tg_fail(err, TG_E_MODEL, c->folder, "%zu of %zu weight files are missing: %s",
                         n_missing, w->n, list);
}

/* Links may lead anywhere inside `root`: the folder, or the cache that it is a snapshot of. */
static tg_status check_inside(const tg_container *c, char *const *paths, const weights *w,
                              tg_error *err)
{
    tg_status status = TG_OK;
    char *root = realpath(c->folder, NULL), *slash = root ? strrchr(root, '/') : NULL;
    if (!slash)
        status = tg_fail_errno(err, c->folder, "cannot be resolved");
    else if (slash - root >= 10 && strncmp(slash - 10, "/snapshots", 10) == 0)
        slash[-10] = 0;
    for (size_t i = 0; i < w->n && status == TG_OK; i++) {
        char *real = realpath(paths[i], NULL);
        size_t n = strlen(root) - (root[1] == 0); /* "/" has its slash already */
        if (!real && errno == ELOOP)
            status = tg_fail(err, TG_E_MODEL, paths[i], "a link that leads to itself");
        else if (!real)
            status = tg_fail_errno(err, paths[i], "cannot be resolved");
        else if (strncmp(real, root, n) != 0 || real[n] != '/')
            status =
                tg_fail(err, TG_E_MODEL, paths[i], "a link that leads out of the model's folder");
        free(real);
    }
    free(root);
    return status;
}

/* Of the tensors from `first` on, keeps those that the index places in this shard. */
static void keep_mapped(tg_container *c, size_t first, const json_t *map, const char *shard)
{
    size_t kept = first;
    for (size_t i = first; i < c->n_tensors; i++) {
        const char *place = json_string_value(json_object_get(map, c->tensors[i].name));
        if (place && strcmp(place, shard) == 0)
            c->tensors[kept++] = c->tensors[i];
    }
    c->n_tensors = kept;
}

static tg_status check_mapped(const tg_container *c, json_t *map, tg_error *err)
{
    const char *tensor;
    json_t *shard;
    tg_quoted q;
    json_object_foreach(map, tensor, shard)
    {
        if (tg_container_tensor(c, tensor))
            continue;
        char *path = tg_path_join(c->folder, json_string_value(shard), err);
        tg_fail(err, TG_E_MODEL, path, "tensor %s is not in this file, where " INDEX " places it",
                tg_quote_str(&q, tensor));
        tg_free(path);
        return err->status;
    }
    return TG_OK;
}

static tg_status read_weights(tg_container *c, char *const *paths, const weights *w, tg_error *err)
{
    tg_status status = check_present(c, paths, w, err);
    if (status == TG_OK && w->map)
        status = check_inside(c, paths, w, err);
    if (status == TG_OK)
        status = tg_container_room_files(c, w->n, err);
    for (size_t i = 0; i < w->n && status == TG_OK; i++) {
        const tg_file *file;
        size_t first = c->n_tensors;
        const char *path = tg_arena_string(c->arena, paths[i], strlen(paths[i]), err);
        status = path ? tg_container_add_file(c, path, &file, err) : TG_E_RESOURCE;
        if (status == TG_OK)
            status = tg_safetensors_read(c, file, path, err);
        if (status == TG_OK && w->map)
            keep_mapped(c, first, w->map, w->names[i]);
    }
    return status == TG_OK ? tg_container_index(c, err) : status;
}

static tg_status load_config(tg_container *c, tg_error *err)
{
    char *path;
    bool found = folder_has(c, "config.json", &path, err);
    if (!path)
        return TG_E_RESOURCE;
    c->meta_path = tg_arena_string(c->arena, path, strlen(path), err);
    tg_free(path);
    if (!c->meta_path)
        return TG_E_RESOURCE;
    if (!found)
        return tg_fail(err, TG_E_MODEL, c->meta_path, "missing: a model folder needs it");
    c->config = tg_json_load(c->meta_path, TG_MAX_JSON_BYTES, err);
    if (c->config && !json_is_object(c->config))
        return tg_fail(err, TG_E_MODEL, c->meta_path, "found %s, allowed an object",
                       tg_json_type_name(c->config));
    return c->config ? TG_OK : err->status;
}

static tg_status open_weights(tg_container *c, const weights *w, tg_error *err)
{
    char **paths = tg_alloc(w->n, sizeof *paths, "file names", err);
    tg_status status = paths ? TG_OK : TG_E_RESOURCE;
    for (size_t i = 0; i < w->n && status == TG_OK; i++) {
        paths[i] = tg_path_join(c->folder, w->names[i], err);
        status = paths[i] ? TG_OK : TG_E_RESOURCE;
    }
    if (status == TG_OK)
        status = read_weights(c, paths, w, err);
    for (size_t i = 0; paths && i < w->n; i++)
        tg_free(paths[i]);
    tg_free(paths);
    return status;
}

tg_status tg_hf_open(tg_container *c, tg_error *err)
{
    c->kind = TG_CONTAINER_HF;
    c->format = "safetensors";
    const char *file = NULL, *slash = strrchr(c->path, '/');
    if (!tg_has_suffix(c->path, ".safetensors") || tg_path_is_folder(c->path)) {
        c->folder = c->path;
    } else {
        if (!tg_path_exists(c->path))
            return tg_fail_errno(err, c->path, "cannot be opened");
        file = slash ? slash + 1 : c->path;
        c->folder = slash ? tg_arena_string(c->arena, c->path, (size_t)(slash - c->path) + (slash == c->path), err)
                          : tg_arena_string(c->arena, ".", 1, err);
        if (!c->folder)
            return TG_E_RESOURCE;
    }
    weights w = {0};
    tg_status status = choose_weights(c, file, &w, err);
    if (status == TG_OK)
        status = load_config(c, err);
    if (status == TG_OK)
        status = open_weights(c, &w, err);
    if (status == TG_OK && w.map)
        status = check_mapped(c, json_object_get(w.index, "weight_map"), err);
    json_decref(w.index);
    return status;
}

/* ---- metadata ----------------------------------------------------------------------------- */

tg_meta tg_hf_value(const tg_container *c, const char *key, tg_value *value, tg_error *err)
{
    const json_t *v = c->config;
    for (const char *at = key; at;) {
        char part[128];
        const char *dot = strchr(at, '.');
        snprintf(part, sizeof part, "%.*s", (int)(dot ? dot - at : (ptrdiff_t)strlen(at)), at);
        if (!json_is_object(v)) {
            tg_fail(err, TG_E_MODEL, c->meta_path, "%.*s: wrong type (found %s, allowed an object)",
                    (int)(at - key - 1), key, tg_json_type_name(v));
            return TG_META_BAD;
        }
        v = json_object_get(v, part);
        if (!v || json_is_null(v))
            return TG_META_ABSENT;
        at = dot ? dot + 1 : NULL;
    }
    *value = (tg_value){.kind = TG_VALUE_OTHER, .type_name = tg_json_type_name(v)};
    switch (json_typeof(v)) {
    case JSON_INTEGER:
        value->kind = TG_VALUE_INT;
        value->i = json_integer_value(v);
        value->real = (double)value->i;
        break;
    case JSON_REAL:
        value->kind = TG_VALUE_REAL;
        value->real = json_real_value(v);
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        value->kind = TG_VALUE_BOOL;
        value->i = json_is_true(v);
        break;
    case JSON_STRING:
        value->kind = TG_VALUE_STRING;
        value->text = json_string_value(v);
        value->text_bytes = json_string_length(v);
        break;
    default:
        break;
    }
    return TG_META_FOUND;
}
