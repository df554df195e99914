/* net_headers.c - header lines by a table; URLs by libcurl's own parser. */
#include "fetch/net_headers.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <curl/curl.h>

/* ---- values ------------------------------------------------------------------------------ */

bool tg_decimal(const char *s, uint64_t *value)
{
    uint64_t v = 0;
    if (!*s)
        return false;
    for (; *s; s++) {
        if (*s < '0' || *s > '9' || v > (INT64_MAX - 9) / 10)
            return false;
        v = v * 10 + (uint64_t)(*s - '0');
    }
    *value = v;
    return true;
}

double tg_retry_after(const char *value, time_t now)
{
    uint64_t seconds;
    if (tg_decimal(value, &seconds))
        return (double)seconds;
    if (!isalpha((unsigned char)*value)) /* a date begins with its weekday */
        return -1;
    time_t at = curl_getdate(value, NULL);
    if (at == -1)
        return -1;
    return at > now ? difftime(at, now) : 0;
}

/* `"name";r=0;t=55`, or `limit=100, remaining=0, reset=55`: the seconds until there is more. */
static double rate_limit(const char *value)
{
    for (const char *p = value; *p; p += strcspn(p, ";, \t"), p += strspn(p, ";, \t")) {
        const char *number = strncasecmp(p, "t=", 2) == 0 ? p + 2 : strncasecmp(p, "reset=", 6) == 0 ? p + 6 : NULL;
        char digits[20];
        size_t n = number ? strspn(number, "0123456789") : 0;
        uint64_t seconds;
        if (n == 0 || n >= sizeof digits)
            continue;
        memcpy(digits, number, n);
        digits[n] = '\0';
        if (tg_decimal(digits, &seconds))
            return (double)seconds;
    }
    return -1;
}

bool tg_content_range(const char *value, uint64_t *first, uint64_t *last, uint64_t *total)
{
    char from[24], to[24], all[24], end;
    int n = 0;
    if (sscanf(value, "bytes */%23[0-9]%c", all, &end) == 1) {
        *first = 1, *last = 0;
        return tg_decimal(all, total);
    }
    if (sscanf(value, "bytes %23[0-9]-%23[0-9]/%n%23[0-9*]%c", from, to, &n, all, &end) != 3)
        return false;
    *total = TG_SIZE_UNKNOWN;
    if (!tg_decimal(from, first) || !tg_decimal(to, last) || *first > *last)
        return false;
    return strcmp(all, "*") == 0 || (tg_decimal(all, total) && *last < *total);
}

/* Strong: "abc". Weak: W/"abc". What is longer than any etag of use counts as none. */
static void read_etag(const char *value, char etag[128], bool *weak)
{
    *weak = strncmp(value, "W/", 2) == 0;
    value += *weak ? 2 : 0;
    size_t n = strlen(value);
    if (n >= 2 && value[0] == '"' && value[n - 1] == '"') {
        value++;
        n -= 2;
    }
    for (size_t i = 0; i < n; i++)
        if (n >= 128 || (unsigned char)value[i] <= ' ' || value[i] == '"' || (unsigned char)value[i] >= 0x7f)
            n = 0;
    memcpy(etag, value, n);
    etag[n] = '\0';
}

/* ---- lines ------------------------------------------------------------------------------- */

static void on_length(tg_headers *h, const char *value)
{
    uint64_t length;
    tg_quoted q;
    if (!tg_decimal(value, &length))
        snprintf(h->bad, sizeof h->bad, "Content-Length is no size (found '%.100s')", tg_quote_str(&q, value));
    else if (h->length != TG_SIZE_UNKNOWN && h->length != length)
        snprintf(h->bad, sizeof h->bad, "Content-Length twice, and different (found %" PRIu64 " and %" PRIu64 ")",
                 h->length, length);
    else
        h->length = length;
}

static void on_transfer(tg_headers *h, const char *value)
{
    h->framed = h->framed || strcasecmp(value, "chunked") == 0;
}

static void on_range(tg_headers *h, const char *value)
{
    h->ranged = tg_content_range(value, &h->first, &h->last, &h->total);
}

static void on_type(tg_headers *h, const char *value)
{
    size_t n = strcspn(value, "; \t");
    if (n >= sizeof h->content_type)
        return;
    for (size_t i = 0; i < n; i++)
        h->content_type[i] = (char)tolower((unsigned char)value[i]);
    h->content_type[n] = '\0';
}

static void on_encoding(tg_headers *h, const char *value)
{
    if (*value && strcasecmp(value, "identity") != 0)
        snprintf(h->encoding, sizeof h->encoding, "%s", value);
}

static void on_etag(tg_headers *h, const char *value)
{
    read_etag(value, h->etag, &h->weak);
}

static void on_location(tg_headers *h, const char *value)
{
    snprintf(h->location, sizeof h->location, "%s", value);
}

static void on_rate_limit(tg_headers *h, const char *value)
{
    if (h->wait < 0)
        h->wait = rate_limit(value);
}

static void on_retry_after(tg_headers *h, const char *value)
{
    double wait = tg_retry_after(value, h->now);
    if (wait >= 0)
        h->wait = wait;
}

static void on_linked_etag(tg_headers *h, const char *value)
{
    read_etag(value, h->linked_etag, &h->linked_weak);
}

static void on_linked_size(tg_headers *h, const char *value)
{
    if (!tg_decimal(value, &h->linked_size))
        h->linked_size = TG_SIZE_UNKNOWN;
}

static void on_commit(tg_headers *h, const char *value)
{
    if (strlen(value) == 40 && strspn(value, "0123456789abcdef") == 40)
        memcpy(h->commit, value, 41);
}

static void on_error_code(tg_headers *h, const char *value)
{
    size_t n = strspn(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
    if (!value[n] && n < sizeof h->error_code)
        memcpy(h->error_code, value, n + 1);
}

/* Another header that means something: a row, and a function that takes its value. */
static const struct {
    const char *name;
    void (*take)(tg_headers *h, const char *value);
} headers[] = {
    {"Content-Length", on_length},      {"Content-Range", on_range},      {"Content-Type", on_type},
    {"Content-Encoding", on_encoding},  {"ETag", on_etag},                {"Location", on_location},
    {"RateLimit", on_rate_limit},       {"Retry-After", on_retry_after},  {"X-Linked-ETag", on_linked_etag},
    {"X-Linked-Size", on_linked_size},  {"X-Repo-Commit", on_commit},     {"X-Error-Code", on_error_code},
    {"Transfer-Encoding", on_transfer},
};

void tg_headers_begin(tg_headers *h, time_t now)
{
    *h = (tg_headers){.now = now, .length = TG_SIZE_UNKNOWN, .linked_size = TG_SIZE_UNKNOWN, .wait = -1};
}

/* "HTTP/1.1 200 OK", "HTTP/2 200": whatever stood in an answer before it (100 Continue) is gone, but its bytes. */
static void on_status(tg_headers *h, const char *line)
{
    size_t n_bytes = h->n_bytes;
    const char *space = strchr(line, ' ');
    tg_headers_begin(h, h->now);
    h->n_bytes = n_bytes;
    h->framed = line[5] > '1';
    h->http = space ? atoi(space + 1) : 0;
}

bool tg_headers_line(tg_headers *h, const char *bytes, size_t n)
{
    char line[TG_HEADER_LINE_MAX + 1];
    h->n_bytes += n;
    while (n > 0 && (bytes[n - 1] == '\n' || bytes[n - 1] == '\r' || bytes[n - 1] == ' ' || bytes[n - 1] == '\t'))
        n--;
    if (n > TG_HEADER_LINE_MAX)
        snprintf(h->bad, sizeof h->bad, "a header line is too long (found %zu bytes, allowed %d)", n, TG_HEADER_LINE_MAX);
    else if (h->n_bytes > TG_HEADERS_MAX)
        snprintf(h->bad, sizeof h->bad, "the headers are too long (found %zu bytes, allowed %d)", h->n_bytes, TG_HEADERS_MAX);
    else if (memchr(bytes, '\0', n))
        snprintf(h->bad, sizeof h->bad, "a header line with a NUL");
    if (h->bad[0])
        return false;
    memcpy(line, bytes, n);
    line[n] = '\0';
    char *colon = strchr(line, ':');
    if (strncmp(line, "HTTP/", 5) == 0)
        on_status(h, line);
    if (!colon)
        return true;
    *colon = '\0';
    const char *value = colon + 1 + strspn(colon + 1, " \t");
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        if (strcasecmp(line, headers[i].name) == 0)
            headers[i].take(h, value);
    return !h->bad[0];
}

/* ---- URLs -------------------------------------------------------------------------------- */

static char *part_of(CURLU *u, CURLUPart part, unsigned flags)
{
    char *text = NULL;
    return curl_url_get(u, part, &text, flags) == CURLUE_OK ? text : NULL;
}

static CURLU *parse(const char *url)
{
    CURLU *u = curl_url();
    if (u && curl_url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK) {
        curl_url_cleanup(u);
        u = NULL;
    }
    return u;
}

char *tg_url_redact(const char *url)
{
    static const CURLUPart hidden[] = {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_OPTIONS, CURLUPART_QUERY,
                                       CURLUPART_FRAGMENT};
    CURLU *u = parse(url);
    for (size_t i = 0; u && i < sizeof hidden / sizeof *hidden; i++)
        curl_url_set(u, hidden[i], NULL, 0);
    char *text = u ? part_of(u, CURLUPART_URL, 0) : NULL, *copy = strdup(text ? text : "the URL");
    curl_free(text);
    curl_url_cleanup(u);
    return copy;
}

static bool scheme_is(CURLU *u, const char *wanted)
{
    char *scheme = part_of(u, CURLUPART_SCHEME, 0);
    bool is = scheme && strcasecmp(scheme, wanted) == 0;
    curl_free(scheme);
    return is;
}

bool tg_url_is(const char *url, const char *scheme)
{
    CURLU *u = parse(url);
    bool is = u && scheme_is(u, scheme);
    curl_url_cleanup(u);
    return is;
}

static bool same(CURLU *a, CURLU *b, CURLUPart part)
{
    char *x = part_of(a, part, CURLU_DEFAULT_PORT), *y = part_of(b, part, CURLU_DEFAULT_PORT);
    bool is = x && y && strcasecmp(x, y) == 0;
    curl_free(x);
    curl_free(y);
    return is;
}

bool tg_url_same_origin(const char *a, const char *b)
{
    CURLU *x = parse(a), *y = parse(b);
    bool is = x && y && same(x, y, CURLUPART_SCHEME) && same(x, y, CURLUPART_HOST) && same(x, y, CURLUPART_PORT);
    curl_url_cleanup(x);
    curl_url_cleanup(y);
    return is;
}

bool tg_url_names(const char *url, const char *message)
{
    CURLU *u = parse(url);
    char *host = u ? part_of(u, CURLUPART_HOST, 0) : NULL, *port = u ? part_of(u, CURLUPART_PORT, CURLU_DEFAULT_PORT) : NULL;
    char text[300] = "";
    if (host && port) {
        size_t brackets = host[0] == '[';
        snprintf(text, sizeof text, " %.*s port %s ", (int)(strlen(host) - 2 * brackets), host + brackets, port);
    }
    curl_free(host);
    curl_free(port);
    curl_url_cleanup(u);
    return text[0] && strstr(message, text);
}

char *tg_url_resolve(const char *base, const char *location)
{
    CURLU *u = parse(base);
    char *text = NULL;
    if (u && curl_url_set(u, CURLUPART_URL, location, CURLU_URLENCODE) == CURLUE_OK)
        text = part_of(u, CURLUPART_URL, 0);
    char *copy = text ? strdup(text) : NULL;
    curl_free(text);
    curl_url_cleanup(u);
    return copy;
}
