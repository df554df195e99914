/* hub.h - what a repository of the hub holds: its listing, by one request, and what the hub's refusals mean. */
#ifndef TG_FETCH_HUB_H
#define TG_FETCH_HUB_H

#include "base/memory.h"
#include "fetch/net.h"

typedef struct tg_repo_file {
    const char *path; /* checked by tg_bad_path */
    uint64_t size;    /* TG_SIZE_UNKNOWN */
    const char *etag; /* the digest, else the ETag: the name of its blob in the cache; NULL: unknown */
    int64_t used_at;  /* of one that is in the cache: when it was read last, in seconds since 1970 */
} tg_repo_file;

/* What a repository holds at one commit, or what a snapshot in the cache does. Strings are in the arena. */
typedef struct tg_listing {
    const char *repo, *revision, *commit;
    bool gated;
    tg_repo_file *files;
    size_t n;
} tg_listing;

/* SHA-256 by 64 hexadecimal digits, git's SHA-1 by 40; anything else is no digest. */
tg_digest_kind tg_etag_kind(const char *etag);

/* Where the hub is, and how to talk to it. */
typedef struct tg_hub {
    tg_net *net;
    const char *endpoint;
    bool token; /* one is sent */
    tg_arena *arena;
} tg_hub;

/* The listing of listing->repo at listing->revision; *down tells that the hub gave no answer. Statuses: TG_E_NETWORK,
 * TG_E_INTEGRITY for an answer that is no listing, TG_E_NETWORK for names of files that may not be used. */
tg_status tg_hub_list(const tg_hub *hub, tg_listing *listing, bool *down, tg_error *err);

/* Asks for size and digest of a file where the listing has none. */
tg_status tg_hub_ask(const tg_hub *hub, const tg_listing *listing, tg_repo_file *file, tg_error *err);

char *tg_hub_url(const tg_hub *hub, const tg_listing *listing, const char *path, tg_error *err);

#endif
