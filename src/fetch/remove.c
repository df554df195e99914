/* remove.c - tg_cache_remove: the files of a model, and what only they needed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fetch/choose.h"
#include "fetch/hub_cache.h"
#include "fetch/names.h"
#include "fetch/settings.h"
#include "fetch/url_cache.h"

typedef struct removal {
    tg_settings set;
    tg_arena *arena;
    tg_error *err;
    uint64_t freed;
} removal;

static tg_status none(const char *what, tg_error *err)
{
    tg_quoted q;
    return tg_fail(err, TG_E_IO, NULL, "there is no model %s on this machine", tg_quote_str(&q, what));
}

/* Removes folders from `path` up as long as they are empty. */
static void prune(const tg_folder *root, const char *path)
{
    char copy[2048];
    snprintf(copy, sizeof copy, "%s", path);
    for (char *slash; (slash = strrchr(copy, '/'));) {
        *slash = 0;
        const char *name;
        tg_folder above;
        bool empty = tg_folder_enter_for(&above, root, copy, &name) && unlinkat(above.fd, name, AT_REMOVEDIR) == 0;
        tg_folder_close(&above);
        if (!empty)
            return;
    }
}

/* ---- URLs ---------------------------------------------------------------------------------- */

static tg_status remove_url(removal *r, const char *url)
{
    tg_url_copy copy;
    char note[256];
    tg_status status = tg_url_open(&copy, url, r->set.url_cache, false, false, r->arena, r->err);
    if (copy.here) {
        tg_url_record_name(copy.name, note);
        status = tg_folder_remove(&copy.folder, copy.name, &r->freed, r->err);
        if (status == TG_OK)
            status = tg_folder_remove(&copy.folder, note, &r->freed, r->err);
        prune(&copy.root, copy.place);
    } else if (status != TG_E_RESOURCE && status != TG_E_USAGE) {
        status = none(copy.shown, r->err);
    }
    tg_url_close(&copy);
    return status;
}

/* ---- repositories -------------------------------------------------------------------------- */

/* A repository's snapshots, and what is to go. */
typedef struct plan {
    tg_repo_cache cache;
    const char **commits;
    tg_listing *listings;
    bool **goes; /* [snapshot][file] */
    size_t n, n_goes;
} plan;

static tg_status read_snapshots(removal *r, plan *p, const char *repo)
{
    tg_status status = tg_snapshots(&p->cache, &p->commits, r->arena, r->err);
    if (status != TG_OK)
        return status;
    while (p->commits[p->n])
        p->n++;
    p->listings = tg_arena_alloc(r->arena, p->n, sizeof *p->listings, "a cache", r->err);
    p->goes = tg_arena_alloc(r->arena, p->n, sizeof *p->goes, "a cache", r->err);
    status = p->listings && p->goes ? TG_OK : TG_E_RESOURCE;
    for (size_t i = 0; status == TG_OK && i < p->n; i++) {
        p->listings[i].repo = repo;
        status = tg_snapshot_list(&p->cache, p->commits[i], &p->listings[i], r->arena, r->err);
        p->goes[i] = tg_arena_alloc(r->arena, p->listings[i].n, sizeof *p->goes[i], "a cache", r->err);
        status = p->goes[i] ? status : TG_E_RESOURCE;
    }
    return status;
}

/* The files of the name's model, in all snapshots. REPO alone is the folder's model, if there is one, and leaves the
 * GGUFs; else all that there is. */
static tg_status choose_files(removal *r, plan *p, const tg_name *name)
{
    tg_wish wish = {.quant = name->quant, .files = &name->file, .n_files = name->file != NULL};
    bool all = !name->quant && !name->file, folder = false;
    tg_choice choice;
    tg_status status = TG_OK;
    for (size_t i = 0; all && status != TG_E_RESOURCE && i < p->n; i++)
        folder |= (status = tg_choose_folder(&p->listings[i], &choice, r->arena, r->err)) == TG_OK;
    for (size_t i = 0; status != TG_E_RESOURCE && i < p->n; i++) {
        const tg_listing *l = &p->listings[i];
        if (!all)
            status = tg_choose(l, &wish, &choice, r->arena, r->err);
        for (size_t k = 0; !all && status == TG_OK && k < choice.n; k++)
            p->goes[i][choice.files[k]] = true;
        for (size_t k = 0; k < l->n; k++) {
            p->goes[i][k] |= all && !(folder && strstr(l->files[k].path, ".gguf"));
            p->n_goes += p->goes[i][k];
        }
    }
    return status == TG_E_RESOURCE ? status : TG_OK;
}

static bool is_kept(const plan *p, const char *etag)
{
    for (size_t i = 0; i < p->n; i++)
        for (size_t k = 0; k < p->listings[i].n; k++)
            if (!p->goes[i][k] && p->listings[i].files[k].etag && strcmp(p->listings[i].files[k].etag, etag) == 0)
                return true;
    return false;
}

/* Nothing but cards and licences is left: the repository's folder can go, with parts of fetches and all. */
static bool is_whole_repo(const plan *p)
{
    for (size_t i = 0; i < p->n; i++)
        for (size_t k = 0; k < p->listings[i].n; k++) {
            const char *path = p->listings[i].files[k].path;
            if (!p->goes[i][k] && strcmp(path, "README.md") != 0 && strncmp(path, "LICENSE", 7) != 0 &&
                strcmp(path, ".gitattributes") != 0)
                return false;
        }
    return true;
}

/* Refs to a snapshot that is gone would lead nowhere. */
static tg_status remove_refs(const tg_folder *folder, const char *commit, int depth, tg_arena *arena, tg_error *err)
{
    char **names;
    tg_status status = tg_folder_names(folder, &names, arena, err);
    for (size_t i = 0; status == TG_OK && names[i]; i++) {
        char text[64];
        uint64_t freed = 0;
        tg_folder below;
        if (tg_folder_read(folder, names[i], text, sizeof text)) {
            if (strncmp(text, commit, 40) == 0)
                status = tg_folder_remove(folder, names[i], &freed, err);
        } else if (depth < 4 && tg_folder_enter(&below, folder, names[i])) {
            status = remove_refs(&below, commit, depth + 1, arena, err);
            tg_folder_close(&below);
        }
    }
    return status;
}

static tg_status remove_links(removal *r, const plan *p, size_t i)
{
    const tg_listing *l = &p->listings[i];
    tg_folder snapshots, snapshot = TG_FOLDER_NONE, folder;
    tg_status status = tg_folder_open(&snapshots, &p->cache.folder, "snapshots", false, r->err);
    if (status == TG_OK)
        status = tg_folder_open(&snapshot, &snapshots, l->commit, false, r->err);
    for (size_t k = 0; status == TG_OK && k < l->n; k++) {
        const char *name;
        if (!p->goes[i][k])
            continue;
        status = tg_folder_open_for(&folder, &snapshot, l->files[k].path, false, &name, r->err);
        if (status == TG_OK)
            status = tg_folder_remove(&folder, name, &r->freed, r->err);
        tg_folder_close(&folder);
        prune(&snapshot, l->files[k].path);
    }
    tg_folder_close(&snapshot);
    bool empty = status == TG_OK && unlinkat(snapshots.fd, l->commit, AT_REMOVEDIR) == 0;
    tg_folder_close(&snapshots);
    if (empty && tg_folder_enter(&folder, &p->cache.folder, "refs")) {
        status = remove_refs(&folder, l->commit, 0, r->arena, r->err);
        tg_folder_close(&folder);
    }
    return status;
}

static tg_status remove_blobs(removal *r, const plan *p)
{
    tg_folder blobs;
    tg_status status = TG_OK;
    if (!tg_folder_enter(&blobs, &p->cache.folder, "blobs"))
        return TG_OK;
    for (size_t i = 0; i < p->n; i++)
        for (size_t k = 0; status == TG_OK && k < p->listings[i].n; k++) {
            const char *etag = p->listings[i].files[k].etag;
            if (p->goes[i][k] && etag && !is_kept(p, etag))
                status = tg_folder_remove(&blobs, etag, &r->freed, r->err);
        }
    tg_folder_close(&blobs);
    return status;
}

static tg_status remove_repo(removal *r, const tg_name *name, const char *what)
{
    plan p = {0};
    tg_status status = tg_repo_cache_open(&p.cache, r->set.hub_cache, name->repo, false, r->err);
    if (status != TG_OK)
        return status == TG_E_RESOURCE ? status : none(what, r->err);
    status = read_snapshots(r, &p, name->repo);
    if (status == TG_OK)
        status = choose_files(r, &p, name);
    if (status == TG_OK && p.n_goes == 0)
        status = none(what, r->err);
    if (status == TG_OK && is_whole_repo(&p)) {
        status = tg_folder_remove(&p.cache.root, strrchr(p.cache.folder.path, '/') + 1, &r->freed, r->err);
    } else {
        for (size_t i = 0; status == TG_OK && i < p.n; i++)
            status = remove_links(r, &p, i);
        if (status == TG_OK)
            status = remove_blobs(r, &p);
    }
    tg_repo_cache_close(&p.cache);
    return status;
}

tg_status tg_cache_remove(const char *what, uint64_t *freed, tg_error *err)
{
    removal r = {.arena = tg_arena_create(err), .err = err};
    tg_name name;
    tg_status status = r.arena ? tg_settings_read(&r.set, true, r.arena, err) : TG_E_RESOURCE;
    if (status == TG_OK)
        status = tg_name_parse(&name, what, r.set.endpoint, r.arena, err);
    if (status == TG_OK)
        status = name.url ? remove_url(&r, name.url) : remove_repo(&r, &name, what);
    tg_arena_free(r.arena);
    if (freed)
        *freed = r.freed;
    return status;
}
