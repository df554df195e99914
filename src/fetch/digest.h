/* digest.h - the digests by which the hub names files, computed as the bytes come; libcrypto stands behind. */
#ifndef TG_FETCH_DIGEST_H
#define TG_FETCH_DIGEST_H

#include "fetch/net.h"

typedef struct tg_digest {
    void *state; /* EVP_MD_CTX */
} tg_digest;

/* "" when `hex` is none: 64 digits are SHA-256, 40 git's SHA-1 of a blob. Upper case counts too. */
tg_digest_kind tg_digest_kind_of(const char *hex);

/* Zeroed before the first time; begins anew. git's digest begins with `size`, the length of the whole. */
tg_status tg_digest_begin(tg_digest *d, tg_digest_kind kind, uint64_t size, tg_error *err);
void tg_digest_add(tg_digest *d, const void *bytes, size_t n);
void tg_digest_end(tg_digest *d, char hex[65]); /* in lower case */
void tg_digest_free(tg_digest *d);

/* Adds at most `n` bytes of a file from `at` on; *did of them, fewer at its end alone. */
tg_status tg_digest_add_file(tg_digest *d, int fd, uint64_t at, uint64_t n, uint64_t *did, tg_error *err);

#endif
