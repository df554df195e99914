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
    char url[2048]; /* as tg_url_place shows it */
    char etag[128]; /* "": the server gave none */
    char sha256[65];
    uint64_t size;
} tg_url_record;

/* The place of a URL's file in the cache, and the URL as it may be shown; both in the arena. TG_E_USAGE when it cannot
 * be kept under its name. */
tg_status tg_url_place(const char *url, const char **place, const char **shown, tg_arena *arena, tg_error *err);

/* The record of a file; *here: there is one, and the file is a regular one of that size. TG_E_RESOURCE. */
tg_status tg_url_record_read(const tg_folder *folder, const char *name, tg_url_record *record, bool *here, tg_error *err);
tg_status tg_url_record_write(const tg_folder *folder, const char *name, const tg_url_record *record, tg_error *err);

/* The name of a file's record. */
void tg_url_record_name(const char *name, char out[256]);

#endif
