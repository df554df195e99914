/* digest.c - SHA-256, and git's SHA-1 of "blob <size>\0" and the bytes. */
#include "fetch/digest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "base/error.h"
#include "base/memory.h"

tg_digest_kind tg_digest_kind_of(const char *hex)
{
    size_t n = strlen(hex);
    if (strspn(hex, "0123456789abcdefABCDEF") != n)
        return TG_DIGEST_NONE;
    return n == 64 ? TG_DIGEST_SHA256 : n == 40 ? TG_DIGEST_GIT_BLOB : TG_DIGEST_NONE;
}

tg_status tg_digest_begin(tg_digest *d, tg_digest_kind kind, uint64_t size, tg_error *err)
{
    bool git = kind == TG_DIGEST_GIT_BLOB;
    if (!d->state)
        d->state = EVP_MD_CTX_new();
    if (!d->state || EVP_DigestInit_ex(d->state, git ? EVP_sha1() : EVP_sha256(), NULL) != 1)
        return tg_fail(err, TG_E_RESOURCE, NULL, "libcrypto cannot compute %s", git ? "SHA-1" : "SHA-256");
    if (git) {
        char head[32];
        int n = snprintf(head, sizeof head, "blob %" PRIu64, size);
        tg_digest_add(d, head, (size_t)n + 1);
    }
    return TG_OK;
}

void tg_digest_add(tg_digest *d, const void *bytes, size_t n)
{
    EVP_DigestUpdate(d->state, bytes, n);
}

void tg_digest_end(tg_digest *d, char hex[65])
{
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    EVP_DigestFinal_ex(d->state, bytes, &n);
    hex[0] = '\0';
    for (unsigned i = 0; i < n; i++)
        snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
}

void tg_digest_free(tg_digest *d)
{
    EVP_MD_CTX_free(d->state);
    d->state = NULL;
}

tg_status tg_digest_add_file(tg_digest *d, int fd, uint64_t at, uint64_t n, uint64_t *did, tg_error *err)
{
    unsigned char bytes[1 << 16];
    *did = 0;
    while (*did < n) {
        uint64_t left = n - *did;
        ssize_t got = pread(fd, bytes, left < sizeof bytes ? (size_t)left : sizeof bytes, (off_t)(at + *did));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tg_fail_errno(err, NULL, "a file cannot be read");
        if (got == 0)
            break;
        tg_digest_add(d, bytes, (size_t)got);
        *did += (uint64_t)got;
    }
    return TG_OK;
}

tg_status tg_digest_file(int fd, tg_digest_kind kind, uint64_t size, bool (*go_on)(void *arg, uint64_t done), void *arg,
                         char hex[65], tg_error *err)
{
    const uint64_t slice = 4 << 20;
    tg_digest d = {0};
    uint64_t did = slice, done = 0;
    tg_status status = tg_digest_begin(&d, kind, size, err);
    for (; status == TG_OK && did == slice; done += did) {
        status = tg_digest_add_file(&d, fd, done, slice, &did, err);
        if (status == TG_OK && go_on && !go_on(arg, done + did))
            status = tg_fail(err, TG_E_STOPPED, NULL, "stopped");
    }
    hex[0] = '\0';
    if (status == TG_OK)
        tg_digest_end(&d, hex);
    tg_digest_free(&d);
    return status;
}
