/* net.h - requests over HTTP: answers into memory, and files that are checked as they come.
 *
 * net.c and what it is split into alone see libcurl; a build without it has no_net.c instead. Only http
 * and https, no cookies, no netrc, no compression; certificates are always checked. Redirects are followed
 * here, not by the library: at most 10, never from https to http, and the token goes to its own origin
 * (scheme, host and port) alone. URLs in messages have lost their user part, query and fragment. */
#ifndef TG_FETCH_NET_H
#define TG_FETCH_NET_H

#include "fetch/fetch.h"

typedef struct tg_net tg_net; /* connections that are kept, and what all requests share */

typedef struct tg_net_params {
    const char *endpoint; /* the hub's address: the origin that may see the token, and whose answers carry
                             the hub's own headers */
    const char *token;    /* or NULL */
    double max_wait;      /* seconds: the longest wait that a server may ask for */
    tg_fetch_watch watch; /* `progress` is called with what tg_net_fetch was given */
} tg_net_params;

tg_status tg_net_create(tg_net **net, const tg_net_params *params, tg_error *err);
void tg_net_free(tg_net *net);

/* What the headers of an answer say; of the hub's own answer, before it redirects to a storage host. */
typedef struct tg_reply {
    int http;            /* its status; 0: there was no answer */
    bool down;           /* no connection, no lookup, or 5xx to the last attempt: a cached copy will do */
    char error_code[64]; /* X-Error-Code: GatedRepo, RepoNotFound, RevisionNotFound, EntryNotFound; "" */
    char commit[41];     /* X-Repo-Commit; "" */
    char etag[128];      /* X-Linked-Etag, else ETag, without W/ and quotes; "" */
    bool weak;           /* it was W/ */
    uint64_t size;       /* X-Linked-Size, else Content-Length; TG_SIZE_UNKNOWN */
    char *body;          /* of tg_net_get: n bytes and a NUL (tg_free) */
    size_t n;
} tg_reply;

/* GET into memory, at most max_bytes, with the retries of a file; or HEAD, when max_bytes is 0. Any answer
 * but 2xx is TG_E_NETWORK with a message that fits no file in particular: callers that know better look at
 * reply->http and reply->error_code and say it themselves. */
tg_status tg_net_get(tg_net *net, const char *url, size_t max_bytes, tg_reply *reply, tg_error *err);

typedef enum tg_digest_kind { TG_DIGEST_NONE, TG_DIGEST_SHA256, TG_DIGEST_GIT_BLOB } tg_digest_kind;

/* One file to fetch. The first five are the caller's and borrowed. */
typedef struct tg_download {
    const char *url;
    int folder;         /* an open folder, in which the file will appear, and its part until then */
    const char *target; /* under this name: one component */
    tg_digest_kind kind;
    const char *commit; /* that X-Repo-Commit must be where the hub sends one; NULL: any */
    bool replace;       /* let the new file take the place of one that is there */
    char etag[128];     /* that the server must show where known, and after it what it showed; "": unknown */
    tg_fetch_file *file; /* name, size and digest as far as known (checked, then) and state: kept up to date */
} tg_download;

/* Fetches n files, several at once, and returns when all are there or one cannot be: the others then keep
 * their parts. Files of state TG_FETCH_CACHED are skipped. Follows fault-catalogue section 2. */
tg_status tg_net_fetch(tg_net *net, tg_download *downloads, size_t n, tg_error *err);

/* The digest of a file that is there, in lower-case hexadecimal. `size` is part of git's. `go_on`, unless NULL, is
 * called every few megabytes with the bytes done; false ends it with TG_E_STOPPED. */
tg_status tg_digest_file(int fd, tg_digest_kind kind, uint64_t size, bool (*go_on)(void *arg, uint64_t done), void *arg,
                         char hex[65], tg_error *err);

#endif
