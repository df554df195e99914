/* url_cache.h - files of plain URLs, in a cache of tinygpt's own:
 *
 *     $XDG_CACHE_HOME/tinygpt/HOST[:PORT]/PATH            the file
 *     $XDG_CACHE_HOME/tinygpt/HOST[:PORT]/.../.NAME.json  its record: URL, ETag, size, SHA-256
 *
 * The query, which may hold a signature, and the user part are in neither. */
#ifndef TG_FETCH_URL_CACHE_H
#define TG_FETCH_URL_CACHE_H

#include "fetch/folder.h"

typedef struct tg_url_record {
    char url[2048]; /* as it may be shown */
    char etag[128]; /* "": the server gave none */
    char sha256[65];
    uint64_t size;
} tg_url_record;

/* A URL's place in the cache, or in a folder of the user's, and what is there. */
typedef struct tg_url_copy {
    const char *place, *name; /* of the file, below the root and in its folder */
    const char *shown;        /* the URL as it may be shown */
    tg_folder root, folder;
    bool here;                /* a regular file and its record, which is of this URL */
    tg_url_record record;
} tg_url_copy;

/* Opens the place of a URL below `root`, or, if `flat`, in it; names are in the arena. TG_E_USAGE when the URL cannot be
 * kept under its name, the errors of tg_folder_open. To be closed in any case. */
tg_status tg_url_open(tg_url_copy *copy, const char *url, const char *root, bool flat, bool create, tg_arena *arena,
                      tg_error *err);
void tg_url_close(tg_url_copy *copy);

/* The record of a file; *here: there is one, and the file is a regular one of that size. TG_E_RESOURCE. */
tg_status tg_url_record_read(const tg_folder *folder, const char *name, tg_url_record *record, bool *here, tg_error *err);
tg_status tg_url_record_write(const tg_folder *folder, const char *name, const tg_url_record *record, tg_error *err);

/* The name of a file's record. */
void tg_url_record_name(const char *name, char out[256]);

#endif
