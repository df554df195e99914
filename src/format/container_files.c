/* container_files.c - the files that a container consists of: opening them, and whether they are what they were. */
#include <assert.h>
#include <string.h>

#include "base/open.h"
#include "format/reader.h"

/* ---- weights ------------------------------------------------------------------------------------------ */

void tg_container_release(const tg_container *c, const void *data, size_t n_bytes)
{
    for (int i = 1; c->parts && i < c->n_parts; i++)
        tg_container_release(c->parts[i], data, n_bytes);
    for (size_t i = 0; i < c->n_files; i++)
        tg_file_release(&c->files[i], data, n_bytes);
}

tg_status tg_container_room_files(tg_container *c, size_t n, tg_error *err)
{
    c->files = tg_arena_alloc(c->arena, n, sizeof *c->files, "the list of files", err);
    return c->files ? TG_OK : TG_E_RESOURCE;
}

tg_status tg_container_add_file(tg_container *c, const char *path, const tg_file **file,
                                tg_error *err)
{
    tg_file *next = &c->files[c->n_files];
    tg_status status = tg_file_open(next, path, INT64_MAX, c->read, err);
    if (status != TG_OK)
        return status;
    c->n_files++;
    *file = next;
    return TG_OK;
}

tg_status tg_container_check_unchanged(const tg_container *c, tg_error *err)
{
    tg_status status = TG_OK;
    for (size_t i = 0; i < c->n_files && status == TG_OK; i++)
        status = tg_file_check_unchanged(&c->files[i], err);
    for (int i = 1; c->parts && i < c->n_parts && status == TG_OK; i++)
        status = tg_container_check_unchanged(c->parts[i], err);
    return status;
}

/* ---- the others --------------------------------------------------------------------------------------- */

/* What a folder may have beside its weights, and is read. */
static const char *const sidecars[] = {
    "config.json",          "model.safetensors.index.json", "generation_config.json", "tokenizer_config.json",
    "tokenizer.json",       "vocab.json",                   "merges.txt",             "added_tokens.json",
    "tokenizer.model",      "chat_template.jinja",          "chat_template.json",
};
enum { N_SIDECARS = sizeof sidecars / sizeof *sidecars };

static bool is_sidecar(const char *name)
{
    int i = 0;
    while (i < N_SIDECARS && strcmp(sidecars[i], name) != 0)
        i++;
    return i < N_SIDECARS;
}

tg_status tg_container_check_output(const tg_container *c, const char *path, tg_error *err)
{
    tg_status status = *path ? TG_OK : tg_fail(err, TG_E_USAGE, NULL, "the name of the file to write is empty");
    for (size_t i = 0; i < c->n_files && status == TG_OK; i++)
        status = tg_path_check_output(path, c->files[i].path, err);
    for (int i = 1; c->parts && i < c->n_parts && status == TG_OK; i++)
        status = tg_container_check_output(c->parts[i], path, err);
    for (int i = 0; c->folder && i < N_SIDECARS && status == TG_OK; i++) {
        char *file = tg_path_join(c->folder, sidecars[i], err);
        status = file ? tg_path_check_output(path, file, err) : TG_E_RESOURCE;
        tg_free(file);
    }
    return status;
}

tg_status tg_container_sidecar(const tg_container *c, const char *name, uint64_t max_bytes,
                               tg_file *file, char **path, tg_error *err)
{
    assert(is_sidecar(name));
    *file = (tg_file){0};
    *path = NULL;
    if (!c->folder)
        return TG_OK;
    char *joined = tg_path_join(c->folder, name, err);
    if (!joined)
        return TG_E_RESOURCE;
    tg_status status = TG_OK;
    if (tg_path_is_taken(joined)) {
        status = tg_file_open(file, joined, max_bytes, true, err);
        if (status == TG_OK) {
            *path = joined;
            return TG_OK;
        }
    }
    tg_free(joined);
    return status;
}
