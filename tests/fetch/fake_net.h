/* fake_net.h - a hub in memory, in the place of net.h's functions: what tg_pull asks for, and what it makes of the
 * answers. Include it in one file of a test program. */
#ifndef TEST_FAKE_NET_H
#define TEST_FAKE_NET_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "fetch/net.h"
#include "support/failing_malloc.h"

typedef struct fake_answer {
    const char *url, *body;
    int http;
    const char *error_code, *etag;
} fake_answer;

static fake_answer fake_answers[64];
static int fake_n, fake_requests;
static bool fake_down;
static char fake_log[8192]; /* the requests, a line each */

static inline void fake_clear(void)
{
    fake_n = fake_requests = 0;
    fake_down = false;
    fake_log[0] = 0;
}

static inline void fake_serve(const char *url, const char *body, const char *etag)
{
    fake_answers[fake_n++] = (fake_answer){.url = url, .body = body, .http = 200, .etag = etag};
}

static inline void fake_refuse(const char *url, int http, const char *error_code)
{
    fake_answers[fake_n++] = (fake_answer){.url = url, .http = http, .error_code = error_code};
}

static inline const fake_answer *fake_ask(const char *method, const char *url)
{
    static const fake_answer missing = {.http = 404};
    size_t n = strlen(fake_log);
    snprintf(fake_log + n, sizeof fake_log - n, "%s %s\n", method, url);
    fake_requests++;
    for (int i = 0; i < fake_n; i++)
        if (strcmp(fake_answers[i].url, url) == 0)
            return &fake_answers[i];
    return &missing;
}

tg_status tg_net_create(tg_net **net, const tg_net_params *params, tg_error *err)
{
    (void)err;
    malloc_exempt++;
    *net = malloc(sizeof params->watch);
    malloc_exempt--;
    memcpy(*net, &params->watch, sizeof params->watch);
    return TG_OK;
}

void tg_net_free(tg_net *net)
{
    free(net);
}

tg_status tg_net_get(tg_net *net, const char *url, size_t max_bytes, tg_reply *reply, tg_error *err)
{
    (void)net;
    *reply = (tg_reply){.size = TG_SIZE_UNKNOWN, .down = fake_down};
    const fake_answer *a = fake_ask(max_bytes ? "GET" : "HEAD", url);
    if (fake_down)
        return tg_fail(err, TG_E_NETWORK, NULL, "no connection");
    reply->http = a->http;
    snprintf(reply->error_code, sizeof reply->error_code, "%s", a->error_code ? a->error_code : "");
    snprintf(reply->etag, sizeof reply->etag, "%s", a->etag ? a->etag : "");
    if (a->http != 200)
        return tg_fail(err, TG_E_NETWORK, NULL, "status %d", a->http);
    reply->size = strlen(a->body);
    if (max_bytes) {
        malloc_exempt++;
        reply->body = strdup(a->body);
        malloc_exempt--;
        reply->n = strlen(a->body);
    }
    return TG_OK;
}

/* Not a digest of anything, but equal for equal bytes. */
static inline void fake_digest(const char *bytes, char hex[65])
{
    unsigned long long h = 14695981039346656037u;
    for (; *bytes; bytes++)
        h = (h ^ (unsigned char)*bytes) * 1099511628211u;
    for (int i = 0; i < 4; i++, h *= 31)
        snprintf(hex + 16 * i, 17, "%016llx", h);
}

tg_status tg_digest_file(int fd, tg_digest_kind kind, uint64_t size, bool (*go_on)(void *arg, uint64_t done), void *arg,
                         char hex[65], tg_error *err)
{
    if (go_on && !go_on(arg, size))
        return tg_fail(err, TG_E_STOPPED, NULL, "stopped");
    malloc_exempt++;
    char *text = calloc(size + 1, 1);
    malloc_exempt--;
    if (pread(fd, text, size, 0) != (ssize_t)size)
        abort();
    fake_digest(text, hex);
    if (kind == TG_DIGEST_GIT_BLOB)
        hex[40] = 0;
    free(text);
    return TG_OK;
}

tg_status tg_net_fetch(tg_net *net, tg_download *downloads, size_t n, tg_error *err)
{
    (void)net;
    for (size_t i = 0; i < n; i++) {
        tg_download *d = &downloads[i];
        if (d->file->state == TG_FETCH_CACHED)
            continue;
        const fake_answer *a = fake_ask("GET", d->url);
        if (a->http != 200)
            return tg_fail(err, TG_E_NETWORK, d->file->name, "status %d", a->http);
        char hex[65] = "";
        fake_digest(a->body, hex);
        if (d->kind == TG_DIGEST_GIT_BLOB)
            hex[40] = 0;
        if (d->file->digest[0] && strcmp(d->file->digest, hex) != 0)
            return tg_fail(err, TG_E_INTEGRITY, d->file->name, "digest (found %s, wanted %s)", hex, d->file->digest);
        snprintf(d->file->digest, sizeof d->file->digest, "%s", hex);
        snprintf(d->etag, sizeof d->etag, "%s", a->etag ? a->etag : d->etag);
        int fd = openat(d->folder, d->target, O_WRONLY | O_CREAT | (d->replace ? O_TRUNC : O_EXCL) | O_NOFOLLOW, 0600);
        if (fd < 0 || write(fd, a->body, strlen(a->body)) != (ssize_t)strlen(a->body) || close(fd) != 0)
            return tg_fail_errno(err, d->target, "cannot be written");
        d->file->size = d->file->done = strlen(a->body);
        d->file->state = TG_FETCH_DONE;
    }
    return TG_OK;
}

#endif
