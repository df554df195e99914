/* cached.c - what lies in the two caches, by name: listing and finding. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "fetch/choose.h"
#include "fetch/hub_cache.h"
#include "fetch/names.h"
#include "fetch/settings.h"
#include "fetch/url_cache.h"

enum { CARD_MAX_BYTES = 1 << 20, LICENSE_MAX = 63, DEPTH_MAX = 16 };

typedef struct finding {
    tg_settings set;
    tg_arena *arena; /* of one repository or all */
    tg_error *err;
    tg_cached_model *models;
    size_t n, room;
    size_t n_sorted; /* of the repository at hand, the models of the snapshots so far are in order up to here */
} finding;

/* ---- licences ------------------------------------------------------------------------------ */

/* The value of a line `key: value` in the front matter of a card: a name of the usual characters, else NULL. */
static char *card_value(const char *card, const char *key)
{
    const char *end = strncmp(card, "---", 3) == 0 ? strstr(card + 3, "\n---") : NULL;
    size_t k = strlen(key);
    for (const char *line = card; end && line && line < end; line = strchr(line, '\n')) {
        line += line > card || *line == '\n';
        if (strncmp(line, key, k) != 0 || line[k] != ':')
            continue;
        const char *s = line + k + 1;
        s += strspn(s, " \t\"'");
        size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.+-_");
        return n > 0 && n <= LICENSE_MAX && strchr("\r\n \t\"'#", s[n]) ? strndup(s, n) : NULL;
    }
    return NULL;
}

/* As the card of the snapshot says, else as the catalogue does; NULL. */
static char *find_license(const tg_repo_cache *cache, const tg_listing *l)
{
    size_t card = tg_listing_find(l, "README.md");
    char *license = NULL, *text = NULL;
    tg_folder blobs;
    if (card != TG_NO_FILE && l->files[card].etag && l->files[card].size < CARD_MAX_BYTES &&
        tg_folder_enter(&blobs, &cache->folder, "blobs")) {
        text = tg_alloc(CARD_MAX_BYTES, 1, "a card", NULL);
        if (text && tg_folder_read(&blobs, l->files[card].etag, text, CARD_MAX_BYTES))
            license = card_value(text, "license");
        tg_folder_close(&blobs);
    }
    char *name = license && strcmp(license, "other") == 0 ? card_value(text, "license_name") : NULL;
    if (name) {
        free(license);
        license = name;
    }
    tg_free(text);
    tg_catalog_entry entry;
    for (size_t i = 0; !license && tg_catalog_get(i, &entry); i++)
        if (strcmp(entry.repo, l->repo) == 0)
            license = strdup(entry.license);
    return license;
}

/* ---- listing ------------------------------------------------------------------------------- */

static tg_cached_model *add_model(finding *f)
{
    if (!tg_grow((void **)&f->models, &f->room, f->n + 1, sizeof *f->models, "a list of models", f->err))
        return NULL;
    f->models[f->n] = (tg_cached_model){0};
    return &f->models[f->n++];
}

static tg_status check_model(finding *f, const tg_cached_model *m)
{
    return m->name && m->path && (m->commit || strstr(m->name, "://")) ? TG_OK
                                                                       : tg_fail_alloc(f->err, 0, "a list of models");
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const tg_cached_model *)a)->name, ((const tg_cached_model *)b)->name);
}

/* Is it among the models of younger snapshots? Within one snapshot no two have one name. */
static bool is_listed(const finding *f, size_t from, const char *name)
{
    const tg_cached_model wanted = {.name = (char *)(uintptr_t)name};
    return f->n_sorted > from && bsearch(&wanted, f->models + from, f->n_sorted - from, sizeof wanted, by_name);
}

/* The name of the catalogue for a repository, or a file of it; NULL. */
static char *find_alias(const char *repo, const char *file)
{
    tg_catalog_entry e;
    for (size_t i = 0; tg_catalog_get(i, &e); i++)
        if (strcmp(e.repo, repo) == 0 && (file ? e.file && strcmp(e.file, file) == 0 : !e.file))
            return strdup(e.name);
    return NULL;
}

/* Adds the model of a choice, unless a younger snapshot had it: those from `from` on are of this repository. */
static tg_status add_choice(finding *f, const tg_repo_cache *cache, const tg_listing *l, const tg_choice *choice,
                            size_t from)
{
    const char *file = choice->model == TG_NO_FILE ? NULL : l->files[choice->model].path;
    const char *name = file ? tg_arena_format(f->arena, f->err, "%s:%s", l->repo, file) : l->repo;
    if (!name)
        return TG_E_RESOURCE;
    if (is_listed(f, from, name))
        return TG_OK;
    const char *path = tg_arena_format(f->arena, f->err, "%s/snapshots/%s%s%s", cache->folder.path, l->commit,
                                       file ? "/" : "", file ? file : "");
    tg_cached_model *m = path ? add_model(f) : NULL;
    if (!m)
        return TG_E_RESOURCE;
    *m = (tg_cached_model){.name = strdup(name),
                           .path = strdup(path),
                           .commit = strdup(l->commit),
                           .alias = find_alias(l->repo, file),
                           .license = find_license(cache, l)};
    for (size_t i = 0; i < choice->n; i++) {
        const tg_repo_file *part = &l->files[choice->files[i]];
        m->size += part->size;
        m->used_at = part->used_at > m->used_at ? part->used_at : m->used_at;
    }
    return check_model(f, m);
}

static tg_status add_snapshot(finding *f, const tg_repo_cache *cache, tg_listing *l, size_t from)
{
    tg_choice choice;
    const char *path = tg_arena_format(f->arena, f->err, "%s/snapshots/%s", cache->folder.path, l->commit);
    tg_status status = path ? tg_choose_folder(l, &choice, f->arena, f->err) : TG_E_RESOURCE;
    if (status == TG_OK)
        status = tg_choice_check(l, &choice, path, f->err);
    if (status == TG_OK)
        status = add_choice(f, cache, l, &choice, from);
    for (size_t i = 0; status != TG_E_RESOURCE && i < l->n; i++) {
        status = tg_is_model_gguf(l->files[i].path) ? tg_choose_gguf(l, i, &choice, f->arena, f->err) : TG_E_MODEL;
        if (status == TG_OK)
            status = add_choice(f, cache, l, &choice, from);
    }
    return status == TG_E_RESOURCE ? status : TG_OK; /* what is not whole is no model */
}

static tg_status add_repo(finding *f, const char *repo)
{
    tg_repo_cache cache;
    const char **commits;
    tg_status status = tg_repo_cache_open(&cache, f->set.hub_cache, repo, false, f->err);
    if (status != TG_OK)
        return status == TG_E_RESOURCE ? status : TG_OK;
    size_t from = f->n;
    status = tg_snapshots(&cache, &commits, f->arena, f->err);
    for (size_t i = 0; status == TG_OK && commits[i]; i++) {
        tg_listing l = {.repo = repo};
        if (f->n > f->n_sorted)
            qsort(f->models + from, f->n - from, sizeof *f->models, by_name);
        f->n_sorted = f->n;
        status = tg_snapshot_list(&cache, commits[i], &l, f->arena, f->err);
        if (status == TG_OK)
            status = add_snapshot(f, &cache, &l, from);
    }
    tg_repo_cache_close(&cache);
    return status;
}

static tg_status add_repos(finding *f)
{
    tg_folder root;
    char **names;
    tg_status status = tg_folder_root(&root, f->set.hub_cache, false, f->err);
    if (status != TG_OK)
        return status == TG_E_RESOURCE ? status : TG_OK;
    tg_arena *all = f->arena;
    status = tg_folder_names(&root, &names, all, f->err);
    tg_folder_close(&root);
    for (size_t i = 0; status == TG_OK && names[i]; i++) {
        char *repo;
        f->arena = tg_arena_create(f->err); /* what one repository took is given back */
        status = f->arena ? tg_repo_of_folder(names[i], &repo, f->arena, f->err) : TG_E_RESOURCE;
        if (status == TG_OK && repo)
            status = add_repo(f, repo);
        tg_arena_free(f->arena);
    }
    f->arena = all;
    return status;
}

static tg_status add_url(finding *f, const tg_folder *folder, const char *name)
{
    struct stat st;
    tg_url_record record;
    bool here;
    tg_status status = tg_url_record_read(folder, name, &record, &here, f->err);
    if (status != TG_OK || !here || !tg_folder_stat(folder, name, &st))
        return status;
    tg_cached_model *m = add_model(f);
    if (!m)
        return TG_E_RESOURCE;
    *m = (tg_cached_model){.name = strdup(record.url),
                           .path = tg_path_join(folder->path, name, f->err),
                           .size = record.size,
                           .used_at = st.st_atime};
    return check_model(f, m);
}

static tg_status add_urls(finding *f, const tg_folder *folder, int depth)
{
    char **names;
    tg_status status = tg_folder_names(folder, &names, f->arena, f->err);
    for (size_t i = 0; status == TG_OK && names[i]; i++) {
        struct stat st;
        tg_folder below;
        bool is_folder = tg_folder_stat(folder, names[i], &st) && S_ISDIR(st.st_mode);
        if (!is_folder) {
            status = add_url(f, folder, names[i]);
        } else if (depth < DEPTH_MAX && (status = tg_folder_open(&below, folder, names[i], false, f->err)) == TG_OK) {
            status = add_urls(f, &below, depth + 1);
            tg_folder_close(&below);
        }
        status = status == TG_E_RESOURCE ? status : TG_OK;
    }
    return status;
}

tg_status tg_cache_list(tg_cached_model **models, size_t *n, tg_error *err)
{
    finding f = {.arena = tg_arena_create(err), .err = err};
    tg_status status = f.arena ? tg_settings_read(&f.set, true, f.arena, err) : TG_E_RESOURCE;
    if (status == TG_OK)
        status = add_repos(&f);
    tg_folder urls = TG_FOLDER_NONE;
    if (status == TG_OK) {
        status = tg_folder_root(&urls, f.set.url_cache, false, err);
        status = status == TG_OK ? add_urls(&f, &urls, 0) : status == TG_E_RESOURCE ? status : TG_OK;
    }
    tg_folder_close(&urls);
    tg_arena_free(f.arena);
    if (status == TG_OK && f.n)
        qsort(f.models, f.n, sizeof *f.models, by_name);
    *models = status == TG_OK ? f.models : NULL;
    *n = status == TG_OK ? f.n : 0;
    if (status != TG_OK)
        tg_cache_free(f.models, f.n);
    return status;
}

void tg_cache_free(tg_cached_model *models, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        tg_free(models[i].name);
        tg_free(models[i].alias);
        tg_free(models[i].path);
        tg_free(models[i].license);
        tg_free(models[i].commit);
    }
    tg_free(models);
}

/* ---- finding ------------------------------------------------------------------------------- */

static tg_status find_url(const finding *f, const tg_name *name, char **path)
{
    tg_url_copy copy;
    tg_status status = tg_url_open(&copy, name->url, f->set.url_cache, false, false, f->arena, f->err);
    if (status == TG_OK && copy.here)
        status = (*path = tg_path_join(copy.folder.path, copy.name, f->err)) ? TG_OK : TG_E_RESOURCE;
    tg_url_close(&copy);
    return status;
}

/* The model that a snapshot has for a wish. */
static tg_status find_in_snapshot(const finding *f, const tg_repo_cache *cache, tg_listing *l, const tg_wish *wish,
                                  char **path)
{
    tg_choice choice;
    const char *below = tg_arena_format(f->arena, f->err, "%s/snapshots/%s", cache->folder.path, l->commit);
    tg_status status = below ? tg_choose(l, wish, &choice, f->arena, f->err) : TG_E_RESOURCE;
    if (status == TG_OK)
        status = tg_choice_check(l, &choice, below, f->err);
    if (status == TG_OK)
        status = tg_choice_check_tokenizer(l, &choice, f->err);
    if (status != TG_OK)
        return status;
    *path = choice.model == TG_NO_FILE ? strdup(below) : tg_path_join(below, l->files[choice.model].path, NULL);
    return *path ? TG_OK : tg_fail_alloc(f->err, strlen(below), "a path");
}

static tg_status find_repo(const finding *f, const tg_name *name, char **path)
{
    tg_repo_cache cache;
    const char **commits;
    tg_wish wish = {.quant = name->quant, .files = &name->file, .n_files = name->file != NULL};
    tg_status status = tg_repo_cache_open(&cache, f->set.hub_cache, name->repo, false, f->err);
    if (status != TG_OK)
        return status;
    status = tg_snapshots(&cache, &commits, f->arena, f->err);
    for (size_t i = 0; status != TG_E_RESOURCE && !*path && commits[i]; i++) {
        tg_listing l = {.repo = name->repo};
        status = tg_snapshot_list(&cache, commits[i], &l, f->arena, f->err);
        if (status == TG_OK)
            status = find_in_snapshot(f, &cache, &l, &wish, path);
    }
    tg_repo_cache_close(&cache);
    return status;
}

char *tg_cache_find(const char *what, tg_error *err)
{
    tg_error own = {0};
    finding f = {.err = err ? err : &own};
    *f.err = (tg_error){0};
    f.arena = tg_arena_create(f.err);
    tg_name name;
    char *path = NULL;
    tg_status status = f.arena ? tg_settings_read(&f.set, true, f.arena, f.err) : TG_E_RESOURCE;
    if (status == TG_OK)
        status = tg_name_parse(&name, what, f.set.endpoint, f.arena, f.err);
    bool asked = status == TG_OK;
    if (asked)
        status = name.url ? find_url(&f, &name, &path) : find_repo(&f, &name, &path);
    if (asked && status != TG_E_RESOURCE)
        *f.err = (tg_error){0}; /* there is none, for whatever reason */
    tg_arena_free(f.arena);
    return path;
}
