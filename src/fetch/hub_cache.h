/* hub_cache.h - the hub's cache, as huggingface_hub lays it out:
 *
 *     models--OWNER--NAME/blobs/ETAG               the bytes, under their digest; or a link ../../blobs/XX/HASH into
 *     models--OWNER--NAME/snapshots/COMMIT/PATH    a store that repositories share      -> ../../blobs/ETAG
 *     models--OWNER--NAME/refs/REVISION            the commit that a branch or tag stood for when it was asked for
 *
 * Links of these forms alone are understood; whatever is not of the layout is as if it were not there. */
#ifndef TG_FETCH_HUB_CACHE_H
#define TG_FETCH_HUB_CACHE_H

#include "fetch/folder.h"
#include "fetch/hub.h"

/* One repository in the cache. */
typedef struct tg_repo_cache {
    tg_folder root, folder;
} tg_repo_cache;

/* TG_E_IO when it is not there and is not to be created. */
tg_status tg_repo_cache_open(tg_repo_cache *cache, const char *root, const char *repo, bool create, tg_error *err);
void tg_repo_cache_close(tg_repo_cache *cache);

/* The path of a repository's folder. */
char *tg_repo_cache_path(const char *root, const char *repo, tg_arena *arena, tg_error *err);

/* OWNER/NAME of a folder's name in the cache, in the arena; *repo NULL: it is no model's. */
tg_status tg_repo_of_folder(const char *folder, char **repo, tg_arena *arena, tg_error *err);

/* What stands under the name of a blob. FOREIGN: neither a file nor a link into the shared store. */
typedef enum tg_blob { TG_BLOB_NONE, TG_BLOB_HERE, TG_BLOB_FOREIGN } tg_blob;
tg_blob tg_blob_stat(const tg_repo_cache *cache, const char *etag, struct stat *st);

/* The commit that a revision stands for: itself, or what refs/ says; false: it is not known. */
bool tg_ref_read(const tg_repo_cache *cache, const char *revision, char commit[41]);
/* Written last, so that it never leads to a snapshot that is not complete. */
tg_status tg_ref_write(const tg_repo_cache *cache, const char *revision, const char *commit, tg_error *err);

/* Puts a file into the snapshot: a link to its blob. */
tg_status tg_snapshot_link(const tg_repo_cache *cache, const char *commit, const char *path, const char *etag,
                           tg_error *err);

/* The commits of which there are snapshots, in the arena, ended by NULL: the one that refs/main names first, then by
 * their folders' times, the youngest first. */
tg_status tg_snapshots(const tg_repo_cache *cache, const char ***commits, tg_arena *arena, tg_error *err);

/* The files of snapshots/COMMIT that are there, with their sizes. An empty listing when there is none. */
tg_status tg_snapshot_list(const tg_repo_cache *cache, const char *commit, tg_listing *listing, tg_arena *arena,
                           tg_error *err);
/* The regular files below any folder, likewise. */
tg_status tg_folder_list(const tg_folder *folder, tg_listing *listing, tg_arena *arena, tg_error *err);

#endif
