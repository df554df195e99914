/* gguf_split.c - a model in several GGUF files, <prefix>-00001-of-00003.gguf and so on: the first has the metadata,
 * each has its own tensors. The first stands for all of them. */
#include "format/reader.h"

#include <inttypes.h>
#include <stdio.h>

enum { SUFFIX_ROOM = 48 };

static size_t make_suffix(char out[SUFFIX_ROOM], int no, int n)
{
    return (size_t)snprintf(out, SUFFIX_ROOM, "-%05d-of-%05d.gguf", no + 1, n);
}

/* The path of part `no` of n beside part `own`, in the arena. NULL with err empty: that is not called as parts are. */
static char *part_path(const tg_container *c, int own, int no, int n, tg_error *err)
{
    char suffix[SUFFIX_ROOM];
    size_t n_path = strlen(c->path), n_suffix = make_suffix(suffix, own, n);
    if (n_path < n_suffix || strcmp(c->path + n_path - n_suffix, suffix) != 0)
        return NULL;
    char *path = tg_arena_string(c->arena, c->path, n_path, err);
    make_suffix(suffix, no, n);
    if (path)
        memcpy(path + n_path - n_suffix, suffix, n_suffix);
    return path;
}

/* Writes the names of the parts that are not there; "" if all are. */
static tg_status list_missing(const tg_container *c, int own, int n, char *out, size_t size, tg_error *err)
{
    size_t used = 0;
    out[0] = 0;
    for (int i = 0; i < n && used < size; i++) {
        char *path = part_path(c, own, i, n, err);
        if (!path && err->status)
            return TG_E_RESOURCE;
        if (!path) {
            snprintf(out, size, "the other %d", n - 1);
            return TG_OK;
        }
        const char *slash = strrchr(path, '/');
        tg_quoted q;
        if (!tg_path_exists(path))
            used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "",
                                     tg_quote_str(&q, slash ? slash + 1 : path));
    }
    if (used >= size)
        memcpy(out + size - 4, "...", 4);
    return TG_OK;
}

tg_status tg_gguf_check_split(tg_container *c, tg_error *err)
{
    int64_t n = 1, no = 0;
    if (tg_meta_int(c, "split.count", 0, TG_MAX_SHARDS, &n, err) == TG_META_BAD ||
        tg_meta_int(c, "split.no", 0, TG_MAX_SHARDS - 1, &no, err) == TG_META_BAD)
        return TG_E_MODEL;
    if (c->part > 0)
        return n == c->n_parts && no == c->part
                   ? TG_OK
                   : tg_fail(err, TG_E_MODEL, c->path, "found part %" PRId64 " of %" PRId64 ", wanted part %d of %d",
                             no + 1, n, c->part + 1, c->n_parts);
    if (n <= 1)
        return TG_OK;
    char missing[600];
    tg_status status = list_missing(c, (int)no, (int)n, missing, sizeof missing, err);
    if (status == TG_OK && missing[0])
        return tg_fail(err, TG_E_MODEL, c->path, "part %" PRId64 " of %" PRId64 " of a split model (missing: %s)",
                       no + 1, n, missing);
    if (status == TG_OK && no != 0)
        return tg_fail(err, TG_E_MODEL, c->path, "part %" PRId64 " of %" PRId64
                       " of a split model: give the path of the first", no + 1, n);
    c->n_parts = (int)n;
    return status;
}

tg_status tg_gguf_join(tg_container *c, tg_error *err)
{
    if (c->part > 0 || c->n_parts == 0)
        return TG_OK;
    c->parts = tg_arena_alloc(c->arena, (size_t)c->n_parts, sizeof *c->parts, "the parts of a model", err);
    if (!c->parts)
        return TG_E_RESOURCE;
    for (int i = 1; i < c->n_parts; i++) {
        char *path = part_path(c, 0, i, c->n_parts, err);
        tg_status status = path ? tg_container_open_part(&c->parts[i], c, path, i, err) : TG_E_RESOURCE;
        for (size_t k = 0; status == TG_OK && k < c->parts[i]->n_tensors; k++) {
            tg_tensor *t;
            status = tg_container_add_tensor(c, path, &t, err);
            if (status == TG_OK)
                *t = c->parts[i]->tensors[k];
        }
        if (status != TG_OK)
            return status;
    }
    const int64_t n = (int64_t)c->n_tensors;
    int64_t said = n;
    tg_meta found = tg_meta_int(c, "split.tensors.count", 0, TG_MAX_TENSORS, &said, err);
    if (found == TG_META_BAD || said == n)
        return err->status;
    return tg_fail(err, TG_E_MODEL, c->path, "split.tensors.count (found %" PRId64 ", but the parts have %" PRId64 ")",
                   said, n);
}
