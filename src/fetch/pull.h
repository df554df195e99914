/* pull.h - what the halves of tg_pull share: one for repositories of the hub, one for other URLs. */
#ifndef TG_FETCH_PULL_H
#define TG_FETCH_PULL_H

#include "fetch/folder.h"
#include "fetch/names.h"
#include "fetch/net.h"
#include "fetch/settings.h"

typedef struct tg_puller {
    const tg_pull_params *params;
    tg_settings set;
    tg_name name;
    tg_net *net;     /* NULL: offline */
    tg_arena *arena; /* of everything that need not outlive the call */
    tg_pull_result *result;
    tg_download *downloads; /* [result->n_files] (arena) */
    char sha256[65];        /* that is asked for, in lower case; "" */
    tg_error *err;          /* not NULL */
} tg_puller;

tg_status tg_pull_repo(tg_puller *p);
tg_status tg_pull_url(tg_puller *p);

/* Room for n files in the result, all waiting, and their downloads. */
tg_status tg_pull_files(tg_puller *p, size_t n);

/* Fills file i. The name is copied; the folder, url, target and etag are borrowed. */
tg_status tg_pull_file(tg_puller *p, size_t i, const char *name, uint64_t size, const tg_folder *folder,
                       const char *target, const char *etag);

/* File i is here already. */
void tg_pull_is_here(tg_puller *p, size_t i, uint64_t size);

/* Does the file of this name in its folder have the digest? Read for it, with progress told. */
tg_status tg_pull_check(tg_puller *p, size_t i, const tg_folder *folder, tg_digest_kind kind, const char *digest,
                        bool *same);

void tg_pull_note(const tg_puller *p, bool warning, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
