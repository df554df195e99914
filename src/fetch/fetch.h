/* fetch.h - models from the Hugging Face hub or any URL, and what of them lies on this machine.
 *
 * A model lies in the hub's own cache (blobs, refs, snapshots), which other tools on this machine share:
 * what they fetched is used, and they see what is fetched here. Files of plain URLs lie in a cache of
 * tinygpt's own. A file appears under its final name only when its size and digest have been found right.
 *
 * Environment, as the hub's own tools have it: HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME; HF_TOKEN,
 * HF_TOKEN_PATH; HF_ENDPOINT; HF_HUB_OFFLINE; and the proxy and certificate variables of libcurl. */
#ifndef TG_FETCH_FETCH_H
#define TG_FETCH_FETCH_H

#include "tinygpt/tinygpt.h"

/* Of a size that is not known. */
#define TG_SIZE_UNKNOWN UINT64_MAX

typedef enum tg_fetch_state {
    TG_FETCH_WAITING, /* for its turn, or before another attempt */
    TG_FETCH_RUNNING,
    TG_FETCH_CHECKING, /* bytes of an earlier run are read again, for the digest */
    TG_FETCH_DONE,     /* fetched by this run */
    TG_FETCH_CACHED,   /* was there already */
} tg_fetch_state;

typedef struct tg_fetch_file {
    const char *name; /* its path in the repository, or the last part of a URL */
    uint64_t size;    /* TG_SIZE_UNKNOWN while it is */
    uint64_t done;    /* bytes that are here */
    uint64_t resumed; /* and of these, from an earlier run or attempt */
    tg_fetch_state state;
    char digest[65]; /* SHA-256, or for a small file of the hub git's SHA-1 of its blob; "" while unknown */
} tg_fetch_file;

/* What a caller of tg_pull may want to tell people. Both may be NULL. */
typedef struct tg_fetch_watch {
    void *arg;
    /* Called at least five times a second while something goes on, with the files of the result in its order
     * (at a later call they may have become more); false ends it with TG_E_STOPPED within
     * a second, and what is here stays for the next run. */
    bool (*progress)(void *arg, const tg_fetch_file *files, size_t n);
    /* One line: what is waited for, that a cached copy is used since the hub is down, and the like. */
    void (*note)(void *arg, bool warning, const char *line);
} tg_fetch_watch;

typedef struct tg_pull_params {
    const char *what;         /* REPO, REPO:FILE, REPO:QUANT, NAME (models/catalog.txt), or a URL; "hf:" may stand
                                 before all but URLs */
    const char *const *files; /* more of the repository, by their paths; then nothing is chosen */
    size_t n_files;
    const char *revision;            /* branch, tag or commit; NULL: main */
    const char *const *include;      /* patterns of fnmatch: these files instead of a choice */
    const char *const *exclude;      /* and not these */
    size_t n_include, n_exclude;
    const char *local_dir; /* put the files below this folder instead of the cache; NULL: the cache */
    const char *sha256;    /* 64 hex digits that the one file must have; NULL: any */
    double max_wait;       /* seconds that a server that is busy may ask for */
    bool offline;          /* make no request at all */
    bool force;            /* fetch anew what is here already; it stays until the new copy is complete */
    bool dry_run;          /* tell what would be fetched, no more */
    tg_fetch_watch watch;
} tg_pull_params;

typedef struct tg_pull_result {
    char *path;   /* what -m takes: the file (of a split model the first part), or the folder */
    char *repo;   /* or NULL: a URL */
    char *commit; /* or NULL: a URL */
    tg_fetch_file *files;
    size_t n_files;
} tg_pull_result;

/* false in a build without libcurl: tg_pull finds there what is here, and says why the rest is not fetched. */
bool tg_can_fetch(void);

/* Fetches what is missing. The command line's statuses; *result is for tg_pull_result_free in any case. */
tg_status tg_pull(const tg_pull_params *params, tg_pull_result *result, tg_error *err);
void tg_pull_result_free(tg_pull_result *result);

/* One model that lies on this machine. */
typedef struct tg_cached_model {
    char *name;      /* what tg_pull and tg_cache_remove take: REPO, REPO:FILE or URL */
    char *alias;     /* its name in the catalogue, or NULL */
    char *path;      /* what -m takes */
    char *license;   /* as the repository's card or the catalogue says, or NULL */
    char *commit;    /* or NULL */
    uint64_t size;   /* bytes of its files */
    int64_t used_at; /* seconds since 1970 of the last access that the file system noted */
} tg_cached_model;

/* All of them, sorted by name: array of *n (tg_cache_free). Whatever in the cache is not understood is
 * left out. */
tg_status tg_cache_list(tg_cached_model **models, size_t *n, tg_error *err);
void tg_cache_free(tg_cached_model *models, size_t n);

/* Removes the files of a model that no other one needs; *freed, which may be NULL, is their bytes.
 * TG_E_IO when there is none of that name. */
tg_status tg_cache_remove(const char *name, uint64_t *freed, tg_error *err);

/* The path of a model on this machine by any of its names, without a request; NULL with *err unset when
 * there is none, or NULL and err filled. Free with tg_free. */
char *tg_cache_find(const char *name, tg_error *err);

/* The names that `pull` knows: entry `i`, false behind the last. */
typedef struct tg_catalog_entry {
    const char *name, *repo, *file /* or NULL: the folder */, *license;
    uint64_t size;
} tg_catalog_entry;
bool tg_catalog_get(size_t i, tg_catalog_entry *entry);

#endif
