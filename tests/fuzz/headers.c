/* headers.c - header lines of an answer, and URLs that a server sends. The first line is the URL that was asked for. */
#include "fuzz/fuzz.h"

#include "base/memory.h"
#include "fetch/net_headers.h"

enum { NOW = 1700000000 };

static bool ends_before(const char *text, size_t room)
{
    return strnlen(text, room) < room;
}

static void check_headers(const tg_headers *h)
{
    MUST(ends_before(h->bad, sizeof h->bad) && ends_before(h->location, sizeof h->location));
    MUST(ends_before(h->etag, sizeof h->etag) && ends_before(h->linked_etag, sizeof h->linked_etag));
    MUST(ends_before(h->error_code, sizeof h->error_code) && ends_before(h->content_type, sizeof h->content_type));
    MUST(h->commit[0] == '\0' || strspn(h->commit, "0123456789abcdef") == 40);
    MUST(!strpbrk(h->etag, "\" \r\n") && !strpbrk(h->linked_etag, "\" \r\n"));
    MUST(h->length == TG_SIZE_UNKNOWN || h->length <= INT64_MAX);
    MUST(h->linked_size == TG_SIZE_UNKNOWN || h->linked_size <= INT64_MAX);
    MUST(h->wait >= -1 && h->wait < 1e19);
    if (h->ranged) {
        MUST(h->first <= h->last || (h->first == 1 && h->last == 0));
        MUST(h->total == TG_SIZE_UNKNOWN || h->first == 1 || h->last < h->total);
    }
}

/* What may be shown of a URL has none of its secrets. */
static void check_shown(const char *url)
{
    char *shown = tg_url_redact(url), *again = shown ? tg_url_redact(shown) : NULL;
    MUST(shown && again && strcmp(shown, again) == 0);
    const char *host = strstr(shown, "://");
    MUST(!strpbrk(shown, "?#"));
    MUST(!host || !memchr(host + 3, '@', strcspn(host + 3, "/")));
    free(shown);
    free(again);
}

static void check_redirect(const char *base, const char *location)
{
    char *to = tg_url_resolve(base, location);
    if (!to)
        return;
    for (const char *p = to; *p; p++)
        MUST((unsigned char)*p > ' ' && *p != 0x7f);
    check_shown(to);
    tg_url_is(to, "https");
    MUST(tg_url_same_origin(base, to) == tg_url_same_origin(to, base));
    tg_url_names(to, location);
    /* A URL that has been resolved leads to itself. */
    char *same = tg_url_resolve(base, to);
    MUST(!same || tg_url_same_origin(to, same) == tg_url_same_origin(to, to));
    free(same);
    free(to);
}

void fuzz(const uint8_t *data, size_t n)
{
    tg_headers *h = malloc(sizeof *h);
    tg_headers_begin(h, NOW);
    char *base = NULL;
    for (size_t at = 0, length; at < n; at += length) {
        const uint8_t *end = memchr(data + at, '\n', n - at);
        length = end ? (size_t)(end - data) - at + 1 : n - at;
        if (!base) {
            base = strndup((const char *)data + at, length - (end != NULL));
            continue;
        }
        if (!tg_headers_line(h, (const char *)data + at, length))
            MUST(h->bad[0]);
        check_headers(h);
    }
    if (base) {
        check_shown(base);
        check_redirect(base, h->location);
    }
    free(base);
    free(h);
}
