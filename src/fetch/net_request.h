/* net_request.h - inside net*.c: what all requests share, one request with its redirects, and jobs, which are
 * requests with what is done before, between and after them. */
#ifndef TG_FETCH_NET_REQUEST_H
#define TG_FETCH_NET_REQUEST_H

#include <curl/curl.h>

#include "fetch/net.h"
#include "fetch/net_headers.h"

enum { TG_RETRIES = 5, TG_STALL_SECONDS = 30, TG_STALL_BYTES = 1024, TG_FILES_AT_ONCE = 4 };

struct tg_net {
    CURLM *multi;
    char *endpoint, *authorization; /* the header line, or NULL */
    double max_wait;
    tg_fetch_watch watch;
    double pace; /* times the delays between attempts; less than 1 for tests */
    long stall;  /* seconds that an answer may be slow */
    /* What progress is called with, and when it was. */
    const struct tg_download *downloads;
    tg_fetch_file *files;
    size_t n_files;
    double told_at;
    bool stopped;
    bool reached; /* by some request: there has been an answer */
};

double tg_net_now(void); /* seconds of a clock that only goes forward */

/* Calls `progress` when a tenth of a second has passed since the last time; false: stop. */
bool tg_net_tick(tg_net *net);

/* How a request ended. */
typedef enum tg_http_verdict { TG_VERDICT_DONE, TG_VERDICT_RETRY, TG_VERDICT_FAIL } tg_http_verdict;

typedef struct tg_http {
    /* The owner's, set before tg_http_start. */
    tg_net *net;
    const char *url;
    bool head;
    uint64_t from;        /* > 0: ask for the bytes from here on */
    const char *if_range; /* a strong ETag, or NULL */
    /* The last answer, if it is 2xx, or 416 to a range: `headers` and `reply` are filled. Then the bytes of its
     * body. False ends the request: `verdict` and `err` are set. */
    bool (*begin)(struct tg_http *r);
    bool (*take)(struct tg_http *r, const char *bytes, size_t n);
    void *arg;

    tg_headers *headers; /* of the last answer */
    tg_reply reply;     /* of the hub's, where one was the hub's */
    tg_http_verdict verdict;
    tg_error err;
    char *shown; /* the URL, for messages */

    CURL *easy;
    struct curl_slist *lines;
    char *at; /* the URL of this hop */
    int n_redirects;
    bool trusted;  /* no hop so far has left the origin that may see the token */
    bool hub;      /* this hop is the hub's; */
    bool hub_seen; /* or one before was */
    bool begun, dropped;
    bool no_name; /* the last failure: the resolver knew no address, at once */
    size_t n_dropped; /* bytes of a body that nobody wants */
    char message[CURL_ERROR_SIZE];
} tg_http;

/* Begins; the request is in the multi handle then. */
tg_status tg_http_start(tg_http *r, tg_error *err);

/* libcurl has ended with `code`. True: it goes on with another hop. False: `verdict`, and err unless done. */
bool tg_http_next(tg_http *r, CURLcode code);
void tg_http_free(tg_http *r); /* also one that runs */

/* Fills the request's err, with the URL in front. Returns false. */
bool tg_http_fail(tg_http *r, tg_http_verdict verdict, tg_status status, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* What a job wants next. */
typedef enum tg_step {
    TG_STEP_BUSY,    /* to be called again soon */
    TG_STEP_REQUEST, /* its request made */
    TG_STEP_RETRY,   /* the same after a while: its request's err says why */
    TG_STEP_DONE,
    TG_STEP_FAILED
} tg_step;

typedef struct tg_job {
    tg_http request; /* first: libcurl's handles point to it */
    /* Does a little work, at most some milliseconds of it. Called until it is done or wants a request; after that
     * again when the request is to be repeated, or, with `answered`, when it has ended well. */
    tg_step (*step)(struct tg_job *job, tg_error *err);
    tg_fetch_file *file; /* or NULL: whose state follows */
    bool answered;
    int failures;    /* in a row */
    uint64_t bytes;  /* of bodies, since the last failure */
    bool waited;     /* a server that was busy has had its wish once */
    double due;      /* when to go on */
    enum { TG_JOB_WAITING, TG_JOB_WORKING, TG_JOB_RUNNING, TG_JOB_DONE } state;
} tg_job;

/* Runs them, TG_FILES_AT_ONCE at a time, until all are done or one has failed. */
tg_status tg_jobs_run(tg_net *net, tg_job **jobs, size_t n, tg_error *err);

#endif
