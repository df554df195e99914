/* net_headers.h - what the header lines of an answer and the parts of a URL say: pure, for tests. */
#ifndef TG_FETCH_NET_HEADERS_H
#define TG_FETCH_NET_HEADERS_H

#include <time.h>

#include "base/error.h"
#include "fetch/net.h"

enum { TG_HEADER_LINE_MAX = 16 << 10, TG_HEADERS_MAX = 256 << 10, TG_REDIRECTS_MAX = 10 };

/* One answer; a status line makes it anew. */
typedef struct tg_headers {
    time_t now;                        /* what dates are compared with */
    size_t n_bytes;                    /* of all lines, also of 100 Continue */
    char bad[160];                     /* why this answer cannot be used, or "" */
    int http;                          /* its status */
    uint64_t length;                   /* Content-Length, or TG_SIZE_UNKNOWN */
    bool framed;                       /* by chunks, or by HTTP/2: its end shows that it is the end */
    bool ranged;                       /* a Content-Range that could be read: */
    uint64_t first, last, total;       /* as tg_content_range has it */
    uint64_t linked_size;              /* X-Linked-Size, or TG_SIZE_UNKNOWN */
    char etag[128], linked_etag[128];  /* without W/ and quotes; "" */
    bool weak, linked_weak;            /* it was W/ */
    char commit[41], error_code[64];   /* X-Repo-Commit, X-Error-Code; "" */
    char content_type[64];             /* in lower case, without parameters; "" */
    char encoding[32];                 /* Content-Encoding; "": none, or identity */
    double wait;                       /* seconds that Retry-After or RateLimit ask for; < 0: neither does */
    char location[TG_HEADER_LINE_MAX]; /* "" */
} tg_headers;

/* Before the first line of a request. */
void tg_headers_begin(tg_headers *h, time_t now);

/* One line, with or without its line end. False, and `bad` says why, for what makes the answer worthless. */
bool tg_headers_line(tg_headers *h, const char *line, size_t n);

/* Seconds from now: digits, or a date; < 0 when it is neither. */
double tg_retry_after(const char *value, time_t now);

/* "bytes 5-99/1000"; with * for the total, which is TG_SIZE_UNKNOWN then; with * for the range, which is 1 to 0
 * then. False for all else, and what contradicts itself. */
bool tg_content_range(const char *value, uint64_t *first, uint64_t *last, uint64_t *total);

/* Decimal digits alone, below 2^63. */
bool tg_decimal(const char *s, uint64_t *value);

/* Scheme, host, port and path: what may be shown and stored (tg_free; NULL: no memory). */
char *tg_url_redact(const char *url);

bool tg_url_is(const char *url, const char *scheme);
bool tg_url_same_origin(const char *a, const char *b); /* scheme, host and port */

/* Is it this server that a message of libcurl's names, "... HOST port PORT ..."? Else it is a proxy. */
bool tg_url_names(const char *url, const char *message);

/* Where a redirect from `base` leads to; NULL when that is no URL (tg_free). */
char *tg_url_resolve(const char *base, const char *location);

#endif
