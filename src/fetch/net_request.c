/* net_request.c - one request: its handle, its redirects, and what its end means. */
#include "fetch/net_request.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { DROPPED_MAX = 64 << 10 }; /* bytes of an error page; then the connection is given up */

bool tg_http_fail(tg_http *r, tg_http_verdict verdict, tg_status status, const char *fmt, ...)
{
    char text[sizeof r->err.message];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    r->verdict = verdict;
    tg_fail(&r->err, status, r->shown, "%s", text);
    return false;
}

/* ---- while it runs ----------------------------------------------------------------------- */

static bool is_redirect(int http)
{
    return http == 301 || http == 302 || http == 303 || http == 307 || http == 308;
}

static void fill_etag(tg_reply *reply, const tg_headers *h)
{
    bool linked = h->linked_etag[0];
    snprintf(reply->etag, sizeof reply->etag, "%s", linked ? h->linked_etag : h->etag);
    reply->weak = linked ? h->linked_weak : h->weak;
}

/* The size of the whole, whatever part of it this answer brings. */
static uint64_t size_of(const tg_headers *h)
{
    if (h->linked_size != TG_SIZE_UNKNOWN)
        return h->linked_size;
    if (h->ranged)
        return h->total;
    return h->http >= 200 && h->http < 300 ? h->length : TG_SIZE_UNKNOWN;
}

/* What the hub says goes before what a storage host says. That fills in the size where the hub left it open, but its
 * ETag is its own. */
static void note_reply(tg_http *r)
{
    const tg_headers *h = r->headers;
    tg_reply *reply = &r->reply;
    bool first = r->hub || !r->hub_seen;
    reply->http = h->http;
    if (first)
        memcpy(reply->error_code, h->error_code, sizeof reply->error_code);
    if (first && h->commit[0])
        memcpy(reply->commit, h->commit, sizeof reply->commit);
    if (first && (h->linked_etag[0] || h->etag[0]))
        fill_etag(reply, h);
    if (size_of(h) != TG_SIZE_UNKNOWN && (first || reply->size == TG_SIZE_UNKNOWN))
        reply->size = size_of(h);
    r->hub_seen = r->hub_seen || r->hub;
}

static bool wanted(const tg_http *r)
{
    return r->headers->http / 100 == 2 || (r->headers->http == 416 && r->from > 0);
}

/* The empty line behind the headers of an answer. */
static bool headers_end(tg_http *r)
{
    tg_quoted q;
    if (r->headers->http < 200)
        return true;
    r->net->reached = true;
    note_reply(r);
    if (!wanted(r))
        return true;
    r->begun = true;
    if (r->headers->encoding[0])
        return tg_http_fail(r, TG_VERDICT_FAIL, TG_E_NETWORK, "Content-Encoding (found %s, allowed identity)",
                            tg_quote_str(&q, r->headers->encoding));
    if (r->headers->http == 206 && r->from == 0)
        return tg_http_fail(r, TG_VERDICT_FAIL, TG_E_NETWORK, "a part came (HTTP 206), and the whole was asked for");
    return r->begin(r);
}

static size_t on_header(char *line, size_t size, size_t n, void *arg)
{
    tg_http *r = arg;
    n *= size;
    bool end = n > 0 && (line[0] == '\r' || line[0] == '\n'), ok;
    if (r->begun) /* a trailer */
        ok = (r->headers->n_bytes += n) <= TG_HEADERS_MAX;
    else
        ok = tg_headers_line(r->headers, line, n);
    if (!ok)
        tg_http_fail(r, TG_VERDICT_FAIL, TG_E_NETWORK, "%s", r->headers->bad[0] ? r->headers->bad : "trailers too long");
    else if (end && !r->begun)
        ok = headers_end(r);
    return ok ? n : 0;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *arg)
{
    tg_http *r = arg;
    n *= size;
    if (r->begun && r->headers->http != 416)
        return r->take(r, bytes, n) ? n : 0;
    r->n_dropped += n;
    r->dropped = r->n_dropped > DROPPED_MAX;
    return r->dropped ? 0 : n;
}

/* ---- its beginning ----------------------------------------------------------------------- */

static bool add_line(struct curl_slist **lines, const char *line)
{
    struct curl_slist *more = curl_slist_append(*lines, line);
    *lines = more ? more : *lines;
    return more;
}

static bool add_lines(tg_http *r)
{
    char line[160];
    curl_slist_free_all(r->lines);
    r->lines = NULL;
    bool ok = add_line(&r->lines, "Accept-Encoding: identity");
    if (ok && r->trusted && r->net->authorization)
        ok = add_line(&r->lines, r->net->authorization);
    if (ok && r->from > 0 && r->if_range) {
        snprintf(line, sizeof line, "If-Range: \"%s\"", r->if_range);
        ok = add_line(&r->lines, line);
    }
    return ok;
}

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* With the authorities that the user names for curl; the library by itself does not look there. */
static CURL *make_handle(void)
{
    CURL *c = curl_easy_init();
    const char *file = variable("CURL_CA_BUNDLE"), *folder = file ? NULL : variable("SSL_CERT_DIR");
    if (!file)
        file = variable("SSL_CERT_FILE");
    /* The size is refused later on, while a connection hangs on the handle. */
    bool ok = c && curl_easy_setopt(c, CURLOPT_BUFFERSIZE, 512L << 10) == CURLE_OK &&
              (!file || (curl_easy_setopt(c, CURLOPT_CAINFO, file) == CURLE_OK &&
                         curl_easy_setopt(c, CURLOPT_PROXY_CAINFO, file) == CURLE_OK)) &&
              (!folder || (curl_easy_setopt(c, CURLOPT_CAPATH, folder) == CURLE_OK &&
                           curl_easy_setopt(c, CURLOPT_PROXY_CAPATH, folder) == CURLE_OK));
    if (ok)
        return c;
    curl_easy_cleanup(c);
    return NULL;
}

static bool set_options(tg_http *r)
{
    char range[32];
    snprintf(range, sizeof range, "%" PRIu64 "-", r->from);
    CURL *c = r->easy;
#define SET(option, value) (curl_easy_setopt(c, CURLOPT_##option, value) == CURLE_OK)
    bool ok = SET(URL, r->at) && SET(PRIVATE, r) && SET(ERRORBUFFER, r->message) && SET(HEADERFUNCTION, on_header) &&
              SET(HEADERDATA, r) && SET(WRITEFUNCTION, on_body) && SET(WRITEDATA, r) && SET(HTTPHEADER, r->lines) &&
              SET(SUPPRESS_CONNECT_HEADERS, 1L) && SET(NOSIGNAL, 1L) && SET(USERAGENT, "tinygpt/" TG_VERSION) &&
              SET(PIPEWAIT, 1L) && SET(CONNECTTIMEOUT, (long)TG_STALL_SECONDS) &&
              SET(LOW_SPEED_LIMIT, (long)TG_STALL_BYTES) && SET(LOW_SPEED_TIME, r->net->stall) &&
              SET(NOBODY, r->head ? 1L : 0L) && SET(RANGE, r->from > 0 ? range : NULL);
#if LIBCURL_VERSION_NUM >= 0x075700
    ok = ok && SET(QUICK_EXIT, 1L); /* a look-up of a name that hangs must not hold up the end */
#endif
#undef SET
    return ok;
}

/* One hop. */
static bool begin_hop(tg_http *r)
{
    tg_headers_begin(r->headers, time(NULL));
    r->begun = r->dropped = r->no_name = false;
    r->n_dropped = 0;
    r->message[0] = '\0';
    r->hub = tg_url_same_origin(r->at, r->net->endpoint);
    r->trusted = r->trusted && r->hub;
    return add_lines(r) && set_options(r) && curl_multi_add_handle(r->net->multi, r->easy) == CURLM_OK;
}

tg_status tg_http_start(tg_http *r, tg_error *err)
{
    free(r->at);
    free(r->shown);
    r->at = strdup(r->url);
    r->shown = tg_url_redact(r->url);
    r->reply = (tg_reply){.size = TG_SIZE_UNKNOWN};
    r->err = (tg_error){0};
    r->verdict = TG_VERDICT_DONE;
    r->n_redirects = 0;
    r->trusted = true;
    r->hub_seen = false;
    if (!r->easy)
        r->easy = make_handle();
    if (!r->headers)
        r->headers = tg_alloc(1, sizeof *r->headers, "headers", NULL);
    if (!r->at || !r->shown || !r->easy || !r->headers)
        return tg_fail_alloc(err, strlen(r->url), "a request");
    if (!tg_url_is(r->at, "https") && !tg_url_is(r->at, "http"))
        return tg_fail(err, TG_E_USAGE, r->shown, "is no URL that can be fetched (allowed: https:// and http://)");
    return begin_hop(r) ? TG_OK : tg_fail(err, TG_E_RESOURCE, r->shown, "libcurl cannot begin a request");
}

void tg_http_free(tg_http *r)
{
    if (r->easy)
        curl_multi_remove_handle(r->net->multi, r->easy);
    curl_easy_cleanup(r->easy);
    curl_slist_free_all(r->lines);
    free(r->at);
    free(r->shown);
    tg_free(r->headers);
    r->easy = NULL;
    r->lines = NULL;
    r->headers = NULL;
    r->at = r->shown = NULL;
}

/* ---- its end ----------------------------------------------------------------------------- */

/* True: the next hop has begun. */
static bool redirect(tg_http *r)
{
    tg_quoted q;
    if (!r->headers->location[0])
        return tg_http_fail(r, TG_VERDICT_FAIL, TG_E_NETWORK, "redirect (%d) without Location", r->headers->http);
    if (r->n_redirects++ == TG_REDIRECTS_MAX)
        return tg_http_fail(r, TG_VERDICT_FAIL, TG_E_NETWORK, "too many redirects (allowed %d)", TG_REDIRECTS_MAX);
    char *to = tg_url_resolve(r->at, r->headers->location);
    bool web = to && (tg_url_is(to, "https") || (tg_url_is(to, "http") && !tg_url_is(r->at, "https")));
    if (!web) {
        char *shown = to ? tg_url_redact(to) : NULL;
        tg_http_fail(r, TG_VERDICT_FAIL, TG_E_NETWORK, "redirect to where it must not go (found %s, allowed %s)",
                     shown ? tg_quote_str(&q, shown) : "no URL", tg_url_is(r->at, "https") ? "https" : "https and http");
        free(shown);
        free(to);
        return false;
    }
    /* The hub has said it all; an address that is signed for GET may refuse HEAD. */
    if (r->head && r->hub && r->reply.etag[0] && r->reply.size != TG_SIZE_UNKNOWN && !tg_url_same_origin(to, r->at)) {
        free(to);
        return false;
    }
    free(r->at);
    r->at = to;
    return begin_hop(r) || tg_http_fail(r, TG_VERDICT_FAIL, TG_E_RESOURCE, "libcurl cannot begin a request");
}

/* Where a person can ask for access: the page of the repository. */
static int page_length(const char *url)
{
    const char *end = strstr(url, "/resolve/");
    return end ? (int)(end - url) : (int)strlen(url);
}

/* What is said of an answer: the first row that fits its status (0: any 4xx) and the hub's X-Error-Code (NULL: any). */
static const struct {
    int http;
    const char *code, *what;
    bool page; /* and where to go for it */
    const char *more;
} refusals[] = {
    {0, "RepoNotFound", "repository not found, or a token is needed: set HF_TOKEN", false, ""},
    {0, "RevisionNotFound", "no such revision of the repository", false, ""},
    {0, "EntryNotFound", "no such file in the repository", false, ""},
    {401, "GatedRepo", "access must be granted at ", true, ", and a token is needed: set HF_TOKEN"},
    {0, "GatedRepo", "access must be granted at ", true, ""},
    {401, NULL, "not found, or a token is needed: set HF_TOKEN", false, ""},
    {403, NULL, "access must be granted at ", true, ""},
    {404, NULL, "not found", false, ""},
    {407, NULL, "the proxy wants a user and a password", false, ""},
    {429, NULL, "too many requests", false, ""},
};

static void http_failure(tg_http *r)
{
    int http = r->headers->http;
    bool later = http == 408 || http / 100 == 5 || (http == 429 && r->headers->wait >= 0);
    tg_http_verdict verdict = later ? TG_VERDICT_RETRY : TG_VERDICT_FAIL;
    r->reply.down = http / 100 == 5;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const char *code = refusals[i].code;
        if ((refusals[i].http ? refusals[i].http == http : http / 100 == 4) &&
            (!code || strcmp(code, r->reply.error_code) == 0)) {
            tg_http_fail(r, verdict, TG_E_NETWORK, "%s%.*s%s (HTTP %d)", refusals[i].what,
                         refusals[i].page ? page_length(r->shown) : 0, r->shown, refusals[i].more, http);
            return;
        }
    }
    tg_http_fail(r, verdict, TG_E_NETWORK, "the server answered HTTP %d", http);
}

/* What libcurl's errors mean: whether another attempt may help, and whether nothing was reached. */
static const struct {
    CURLcode code;
    tg_http_verdict verdict;
    bool down;
    const char *what; /* instead of libcurl's own message */
} failures[] = {
    {CURLE_COULDNT_RESOLVE_PROXY, TG_VERDICT_RETRY, true, NULL},
    {CURLE_COULDNT_RESOLVE_HOST, TG_VERDICT_RETRY, true, NULL},
    {CURLE_COULDNT_CONNECT, TG_VERDICT_RETRY, true, NULL},
    {CURLE_PROXY, TG_VERDICT_RETRY, true, NULL},
    {CURLE_SSL_CONNECT_ERROR, TG_VERDICT_RETRY, true, NULL},
    {CURLE_OPERATION_TIMEDOUT, TG_VERDICT_RETRY, true, NULL},
    {CURLE_GOT_NOTHING, TG_VERDICT_RETRY, true, NULL},
    {CURLE_SEND_ERROR, TG_VERDICT_RETRY, true, NULL},
    {CURLE_RECV_ERROR, TG_VERDICT_RETRY, true, NULL},
    {CURLE_HTTP2, TG_VERDICT_RETRY, true, NULL},
    {CURLE_HTTP2_STREAM, TG_VERDICT_RETRY, true, NULL},
    {CURLE_PARTIAL_FILE, TG_VERDICT_RETRY, false, "the connection ended before the file did"},
    {CURLE_OUT_OF_MEMORY, TG_VERDICT_FAIL, false, "a header line is far too long, or memory ran out"},
};

/* libcurl does not say whether there is no such name or no answer from the resolver (EAI_NONAME, EAI_AGAIN). But what is
 * said at once, before anything was reached, is a wrong name or no network: waiting changes neither. */
static bool lacks_name(const tg_http *r, CURLcode code)
{
    enum { AT_ONCE_US = 2000000 };
    curl_off_t took = 0;
    curl_easy_getinfo(r->easy, CURLINFO_TOTAL_TIME_T, &took);
    return (code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY) && !r->net->reached &&
           took < AT_ONCE_US;
}

static void transport_failure(tg_http *r, CURLcode code)
{
    const char *message = r->message[0] ? r->message : curl_easy_strerror(code);
    long connect_code = 0;
    tg_http_verdict verdict = TG_VERDICT_FAIL;
    tg_quoted q;
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++)
        if (failures[i].code == code) {
            verdict = failures[i].verdict;
            message = failures[i].what ? failures[i].what : message;
            r->reply.down = failures[i].down;
        }
    r->no_name = lacks_name(r, code);
    curl_easy_getinfo(r->easy, CURLINFO_HTTP_CONNECTCODE, &connect_code);
    bool refused = connect_code >= 400 && connect_code < 500;
    bool proxy = connect_code >= 300 || code == CURLE_COULDNT_RESOLVE_PROXY || code == CURLE_PROXY ||
                 (code == CURLE_COULDNT_CONNECT && strstr(message, " port ") && !tg_url_names(r->at, message));
    tg_http_fail(r, refused ? TG_VERDICT_FAIL : verdict, TG_E_NETWORK, "%s%s", proxy ? "the proxy failed: " : "",
                    tg_quote_str(&q, message));
}

bool tg_http_next(tg_http *r, CURLcode code)
{
    curl_multi_remove_handle(r->net->multi, r->easy);
    if (r->err.status != TG_OK) /* said by one of the callbacks */
        return false;
    if (code != CURLE_OK && !r->dropped)
        transport_failure(r, code);
    else if (is_redirect(r->headers->http))
        return redirect(r);
    else if (!wanted(r))
        http_failure(r);
    return false;
}
