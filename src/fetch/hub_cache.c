/* hub_cache.c - the layout of the hub's cache: names, links and refs. */
#include "fetch/hub_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fetch/names.h"

enum { DEPTH_MAX = 16, FILES_MAX = 100000, REF_MAX_BYTES = 64, ROOM = 512 };

/* ---- repositories -------------------------------------------------------------------------- */

static const char *folder_name(const char *repo, char name[ROOM])
{
    const char *slash = strchr(repo, '/');
    snprintf(name, ROOM, "models--%.*s%s%s", slash ? (int)(slash - repo) : 0, repo, slash ? "--" : "",
             slash ? slash + 1 : repo);
    return name;
}

char *tg_repo_cache_path(const char *root, const char *repo, tg_arena *arena, tg_error *err)
{
    char name[ROOM];
    return tg_arena_format(arena, err, "%s/%s", root, folder_name(repo, name));
}

tg_status tg_repo_cache_open(tg_repo_cache *cache, const char *root, const char *repo, bool create, tg_error *err)
{
    char name[ROOM];
    *cache = (tg_repo_cache){.root = TG_FOLDER_NONE, .folder = TG_FOLDER_NONE};
    tg_status status = tg_folder_root(&cache->root, root, create, err);
    if (status == TG_OK)
        status = tg_folder_open(&cache->folder, &cache->root, folder_name(repo, name), create, err);
    if (status != TG_OK)
        tg_repo_cache_close(cache);
    return status;
}

void tg_repo_cache_close(tg_repo_cache *cache)
{
    tg_folder_close(&cache->folder);
    tg_folder_close(&cache->root);
}

tg_status tg_repo_of_folder(const char *folder, char **repo, tg_arena *arena, tg_error *err)
{
    static const char prefix[] = "models--";
    size_t k = sizeof prefix - 1;
    *repo = NULL;
    if (strncmp(folder, prefix, k) != 0)
        return TG_OK;
    char *name = tg_arena_string(arena, folder + k, strlen(folder) - k, err);
    char *dashes = name ? strstr(name, "--") : NULL;
    if (dashes) {
        *dashes = '/';
        memmove(dashes + 1, dashes + 2, strlen(dashes + 2) + 1);
    }
    if (name && tg_check_repo(name, NULL) == TG_OK)
        *repo = name;
    return name ? TG_OK : TG_E_RESOURCE;
}

/* ---- blobs --------------------------------------------------------------------------------- */

/* A file of the store that repositories share, by the link that stands for it: ../../blobs/XX/HASH. */
static bool stat_shared(const tg_repo_cache *cache, const char *link, struct stat *st)
{
    static const char prefix[] = "../../blobs/";
    size_t k = sizeof prefix - 1;
    if (strncmp(link, prefix, k) != 0 || strlen(link) != k + 3 + 64 || link[k + 2] != '/' ||
        !tg_is_hex(link + k + 3, 64) || strncmp(link + k, link + k + 3, 2) != 0)
        return false;
    tg_folder folder;
    const char *name;
    bool found = tg_folder_enter_for(&folder, &cache->root, link + 6, &name) && tg_folder_stat(&folder, name, st) &&
                 S_ISREG(st->st_mode);
    tg_folder_close(&folder);
    return found;
}

tg_blob tg_blob_stat(const tg_repo_cache *cache, const char *etag, struct stat *st)
{
    tg_folder blobs;
    char link[TG_LINK_ROOM];
    if (!tg_folder_enter(&blobs, &cache->folder, "blobs"))
        return TG_BLOB_NONE;
    tg_blob blob = tg_folder_stat(&blobs, etag, st) ? TG_BLOB_FOREIGN : TG_BLOB_NONE;
    if (blob != TG_BLOB_NONE &&
        (S_ISREG(st->st_mode) || (tg_folder_read_link(&blobs, etag, link) && stat_shared(cache, link, st))))
        blob = TG_BLOB_HERE;
    tg_folder_close(&blobs);
    return blob;
}

/* ---- refs ---------------------------------------------------------------------------------- */

bool tg_ref_read(const tg_repo_cache *cache, const char *revision, char commit[41])
{
    char text[REF_MAX_BYTES];
    tg_folder refs;
    snprintf(text, sizeof text, "%s", revision);
    if (strlen(revision) != 40 || !tg_is_hex(revision, 40)) {
        if (!tg_folder_enter(&refs, &cache->folder, "refs"))
            return false;
        tg_folder_read(&refs, revision, text, sizeof text);
        tg_folder_close(&refs);
        text[strcspn(text, "\r\n ")] = 0;
    }
    memcpy(commit, text, 41);
    commit[40] = 0;
    return strlen(text) == 40 && tg_is_hex(text, 40);
}

tg_status tg_ref_write(const tg_repo_cache *cache, const char *revision, const char *commit, tg_error *err)
{
    if (strcmp(revision, commit) == 0)
        return TG_OK;
    tg_folder refs;
    tg_status status = tg_folder_open(&refs, &cache->folder, "refs", true, err);
    if (status == TG_OK)
        status = tg_folder_write(&refs, revision, commit, strlen(commit), err);
    tg_folder_close(&refs);
    return status;
}

/* ---- snapshots ----------------------------------------------------------------------------- */

/* Where the link of a file in `depth` folders of a snapshot points: ../../, as often as needed, blobs/ETAG. */
static void link_prefix(char out[ROOM], int depth)
{
    for (int i = 0; i < depth + 2; i++, out += 3)
        memcpy(out, "../", 3);
    memcpy(out, "blobs/", sizeof "blobs/");
}

tg_status tg_snapshot_link(const tg_repo_cache *cache, const char *commit, const char *path, const char *etag,
                           tg_error *err)
{
    int depth = 0;
    for (const char *s = path; (s = strchr(s, '/')); s++)
        depth++;
    if (depth >= DEPTH_MAX)
        return tg_fail(err, TG_E_NETWORK, cache->folder.path, "a file in more than %d folders", DEPTH_MAX - 1);
    char target[2 * ROOM], place[ROOM / 4];
    link_prefix(target, depth);
    strncat(target, etag, ROOM);
    snprintf(place, sizeof place, "snapshots/%s", commit);
    tg_folder snapshot, folder = TG_FOLDER_NONE;
    const char *name;
    tg_status status = tg_folder_open(&snapshot, &cache->folder, place, true, err);
    if (status == TG_OK)
        status = tg_folder_open_for(&folder, &snapshot, path, true, &name, err);
    if (status == TG_OK)
        status = tg_folder_link(&folder, name, target, err);
    tg_folder_close(&folder);
    tg_folder_close(&snapshot);
    return status;
}

typedef struct aged {
    const char *commit;
    bool main;
    struct timespec time;
} aged;

static int younger_first(const void *pa, const void *pb)
{
    const aged *a = pa, *b = pb;
    if (a->main != b->main)
        return a->main ? -1 : 1;
    if (a->time.tv_sec != b->time.tv_sec)
        return a->time.tv_sec > b->time.tv_sec ? -1 : 1;
    return (a->time.tv_nsec < b->time.tv_nsec) - (a->time.tv_nsec > b->time.tv_nsec);
}

tg_status tg_snapshots(const tg_repo_cache *cache, const char ***commits, tg_arena *arena, tg_error *err)
{
    tg_folder folder;
    char main[41], **names = NULL;
    bool has_main = tg_ref_read(cache, "main", main);
    size_t n_names = 0, n = 0;
    tg_status status = TG_OK;
    bool here = tg_folder_enter(&folder, &cache->folder, "snapshots");
    if (here)
        status = tg_folder_names(&folder, &names, arena, err);
    while (names && names[n_names])
        n_names++;
    aged *list = tg_arena_alloc(arena, n_names, sizeof *list, "a list of snapshots", err);
    *commits = tg_arena_alloc(arena, n_names + 1, sizeof **commits, "a list of snapshots", err);
    status = list && *commits ? status : TG_E_RESOURCE;
    for (size_t i = 0; status == TG_OK && i < n_names; i++) {
        struct stat st;
        if (strlen(names[i]) == 40 && tg_is_hex(names[i], 40) && tg_folder_stat(&folder, names[i], &st))
            list[n++] = (aged){.commit = names[i], .main = has_main && strcmp(main, names[i]) == 0, .time = st.st_mtim};
    }
    if (here)
        tg_folder_close(&folder);
    if (status == TG_OK && n)
        qsort(list, n, sizeof *list, younger_first);
    for (size_t i = 0; status == TG_OK && i < n; i++)
        (*commits)[i] = list[i].commit;
    return status;
}

/* ---- listing ------------------------------------------------------------------------------- */

typedef struct walk {
    const tg_repo_cache *cache; /* NULL: links are nothing */
    tg_listing *l;
    size_t room;
    tg_arena *arena;
    tg_error *err;
} walk;

static tg_status add_file(walk *w, const char *path, const struct stat *st, const char *etag)
{
    if (!tg_grow((void **)&w->l->files, &w->room, w->l->n + 1, sizeof *w->l->files, "a listing", w->err))
        return TG_E_RESOURCE;
    tg_repo_file *file = &w->l->files[w->l->n];
    *file = (tg_repo_file){.path = path, .size = (uint64_t)st->st_size, .used_at = st->st_atime};
    file->etag = etag ? tg_arena_string(w->arena, etag, strlen(etag), w->err) : NULL;
    w->l->n++;
    return file->etag || !etag ? TG_OK : TG_E_RESOURCE;
}

/* The file that a link of the snapshot stands for, if it is one of the layout. */
static tg_status add_link(walk *w, const tg_folder *folder, const char *name, const char *path, int depth)
{
    char prefix[ROOM], link[TG_LINK_ROOM];
    struct stat st;
    link_prefix(prefix, depth);
    size_t k = strlen(prefix);
    bool ours = w->cache && tg_folder_read_link(folder, name, link) && strncmp(link, prefix, k) == 0 &&
                !strchr(link + k, '/') && !tg_bad_path(link + k);
    return ours && tg_blob_stat(w->cache, link + k, &st) == TG_BLOB_HERE ? add_file(w, path, &st, link + k) : TG_OK;
}

static tg_status walk_folder(walk *w, const tg_folder *folder, const char *above, int depth)
{
    char **names;
    tg_status status = tg_folder_names(folder, &names, w->arena, w->err);
    for (size_t i = 0; status == TG_OK && names[i] && w->l->n < FILES_MAX; i++) {
        struct stat st;
        if (tg_bad_path(names[i]) || !tg_folder_stat(folder, names[i], &st))
            continue;
        const char *path = tg_arena_format(w->arena, w->err, "%s%s%s", above, *above ? "/" : "", names[i]);
        tg_folder below;
        if (!path)
            status = TG_E_RESOURCE;
        else if (S_ISREG(st.st_mode))
            status = add_file(w, path, &st, NULL);
        else if (S_ISLNK(st.st_mode))
            status = add_link(w, folder, names[i], path, depth);
        else if (S_ISDIR(st.st_mode) && depth + 1 < DEPTH_MAX && tg_folder_enter(&below, folder, names[i])) {
            status = walk_folder(w, &below, path, depth + 1);
            tg_folder_close(&below);
        }
    }
    return status;
}

/* Moves the files to the arena, so that a listing needs no freeing. */
static tg_status list(walk *w, const tg_folder *folder)
{
    w->l->files = NULL;
    w->l->n = 0;
    tg_status status = walk_folder(w, folder, "", 0);
    tg_repo_file *grown = w->l->files;
    w->l->files = tg_arena_alloc(w->arena, w->l->n, sizeof *grown, "a listing", w->err);
    if (w->l->files && w->l->n)
        memcpy(w->l->files, grown, w->l->n * sizeof *grown);
    tg_free(grown);
    return w->l->files ? status : TG_E_RESOURCE;
}

tg_status tg_folder_list(const tg_folder *folder, tg_listing *l, tg_arena *arena, tg_error *err)
{
    return list(&(walk){.l = l, .arena = arena, .err = err}, folder);
}

tg_status tg_snapshot_list(const tg_repo_cache *cache, const char *commit, tg_listing *l, tg_arena *arena,
                           tg_error *err)
{
    char place[ROOM / 4];
    snprintf(place, sizeof place, "snapshots/%.40s", commit);
    tg_folder snapshot;
    walk w = {.cache = cache, .l = l, .arena = arena, .err = err};
    l->commit = commit;
    l->n = 0;
    if (!tg_folder_enter(&snapshot, &cache->folder, place))
        return TG_OK;
    tg_status status = list(&w, &snapshot);
    tg_folder_close(&snapshot);
    return status;
}
