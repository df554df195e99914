/* net.c - the loop over all requests, attempts and waiting between them, and answers into memory. */
#include "fetch/net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/memory.h"
#include "fetch/net_request.h"

enum { POLL_MS = 100, PROGRESS_BYTES = 1 << 20 };
static const double FIRST_DELAY = 1, NO_NAME_DELAY = 1.0 / 32; /* seconds; doubled from attempt to attempt */

double tg_net_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- tg_net ------------------------------------------------------------------------------ */

/* A token goes into a header line: nothing that could end it. */
static tg_status set_token(tg_net *net, const char *token, tg_error *err)
{
    static const char front[] = "Authorization: Bearer ";
    for (const char *p = token; *p; p++)
        if ((unsigned char)*p <= ' ' || (unsigned char)*p >= 0x7f)
            return tg_fail(err, TG_E_USAGE, NULL, "the token holds a blank, a control byte or no ASCII (HF_TOKEN)");
    const size_t room = sizeof front + strlen(token);
    net->authorization = tg_alloc(room, 1, "a header line", err);
    if (!net->authorization)
        return TG_E_RESOURCE;
    snprintf(net->authorization, room, "%s%s", front, token);
    return TG_OK;
}

bool tg_can_fetch(void)
{
    return true;
}

tg_status tg_net_create(tg_net **out, const tg_net_params *params, tg_error *err)
{
    *out = NULL;
    tg_net *net = tg_alloc(1, sizeof *net, "requests", err);
    if (!net)
        return TG_E_RESOURCE;
    const char *pace = getenv("TINYGPT_FETCH_PACE"), *stall = getenv("TINYGPT_FETCH_STALL"); /* for tests */
    net->pace = pace ? strtod(pace, NULL) : 1;
    net->stall = stall ? atol(stall) : TG_STALL_SECONDS;
    net->max_wait = params->max_wait;
    net->watch = params->watch;
    net->endpoint = strdup(params->endpoint);
    net->multi = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? curl_multi_init() : NULL;
    tg_status status = net->endpoint && net->multi ? TG_OK : tg_fail(err, TG_E_RESOURCE, NULL, "libcurl cannot begin");
    if (status == TG_OK && params->token && *params->token)
        status = set_token(net, params->token, err);
    if (status == TG_OK)
        *out = net;
    else
        tg_net_free(net);
    return status;
}

void tg_net_free(tg_net *net)
{
    if (!net)
        return;
    curl_multi_cleanup(net->multi);
    free(net->endpoint);
    tg_free(net->authorization);
    tg_free(net);
}

bool tg_net_tick(tg_net *net)
{
    double now = tg_net_now();
    if (net->stopped || !net->watch.progress || now - net->told_at < POLL_MS * 1e-3)
        return !net->stopped;
    net->told_at = now;
    for (size_t i = 0; i < net->n_files; i++)
        net->files[i] = *net->downloads[i].file;
    net->stopped = !net->watch.progress(net->watch.arg, net->files, net->n_files);
    return !net->stopped;
}

/* ---- attempts ---------------------------------------------------------------------------- */

static void say(tg_net *net, const tg_job *job, const char *what, double seconds)
{
    char line[sizeof job->request.err.message + 64];
    if (!net->watch.note)
        return;
    snprintf(line, sizeof line, "%s: %s %.*f s", job->request.err.message, what, seconds < 10, seconds);
    net->watch.note(net->watch.arg, false, line);
}

static double between_half_and_one(void)
{
    uint32_t r = 0;
    if (getrandom(&r, sizeof r, 0) != (ssize_t)sizeof r)
        r = (uint32_t)(tg_net_now() * 1e6);
    return 0.5 + r / 8589934592.0;
}

/* When to try again after a failure that may pass; false, with the request's err filled, when not at all. */
static bool again(tg_net *net, tg_job *job)
{
    tg_http *r = &job->request;
    double asked = r->headers->wait, delay;
    char what[sizeof r->err.message];
    snprintf(what, sizeof what, "%s", r->err.message);
    if (job->bytes >= PROGRESS_BYTES)
        job->failures = 0;
    job->bytes = 0;
    if (asked > net->max_wait) {
        tg_fail(&r->err, TG_E_NETWORK, NULL, "%s: the server asks to wait %.0f s (allowed %.0f)", what, asked,
                net->max_wait);
        return false;
    }
    if (r->headers->http == 429) {
        if (job->waited)
            return false;
        job->waited = true;
        delay = asked;
    } else {
        if (job->failures++ == TG_RETRIES) {
            tg_fail(&r->err, r->err.status, NULL, "%s (%d attempts)", what, TG_RETRIES + 1);
            return false;
        }
        delay = (r->no_name ? NO_NAME_DELAY : FIRST_DELAY) * net->pace * (double)(1 << (job->failures - 1)) * between_half_and_one();
        delay = asked > delay ? asked : delay;
    }
    if (!r->no_name)
        say(net, job, "trying again in", delay);
    job->due = tg_net_now() + delay;
    job->state = TG_JOB_WAITING;
    if (job->file)
        job->file->state = TG_FETCH_WAITING;
    return true;
}

/* ---- the loop ---------------------------------------------------------------------------- */

static tg_status step(tg_job *job, tg_error *err)
{
    tg_status status = TG_OK;
    switch (job->step(job, err)) {
    case TG_STEP_BUSY:
        break;
    case TG_STEP_REQUEST:
        job->answered = false;
        job->state = TG_JOB_RUNNING;
        status = tg_http_start(&job->request, err);
        break;
    case TG_STEP_RETRY:
        job->answered = false;
        if (!again(job->request.net, job))
            *err = job->request.err, status = err->status;
        break;
    case TG_STEP_DONE:
        job->state = TG_JOB_DONE;
        tg_http_free(&job->request);
        break;
    case TG_STEP_FAILED:
        status = err->status;
        break;
    }
    return status;
}

static tg_status take_ended(tg_net *net, tg_error *err)
{
    int left;
    for (CURLMsg *m; (m = curl_multi_info_read(net->multi, &left));) {
        tg_job *job; /* its first member is the request */
        CURLcode code = m->data.result;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &job);
        if (tg_http_next(&job->request, code))
            continue;
        if (job->request.verdict == TG_VERDICT_DONE) {
            job->answered = true;
            job->state = TG_JOB_WORKING;
        } else if (job->request.verdict == TG_VERDICT_FAIL || !again(net, job)) {
            *err = job->request.err;
            return err->status;
        }
    }
    return TG_OK;
}

/* Lets waiting jobs begin where there is room, and working ones work. *idle is how many milliseconds nothing will
 * have to be done, at most, unless a connection says so. */
static tg_status step_all(tg_job **jobs, size_t n, size_t *n_left, int *idle, tg_error *err)
{
    size_t active = 0;
    tg_status status = TG_OK;
    double now = tg_net_now();
    *n_left = 0;
    *idle = POLL_MS;
    for (size_t i = 0; i < n; i++)
        active += jobs[i]->state == TG_JOB_WORKING || jobs[i]->state == TG_JOB_RUNNING;
    for (size_t i = 0; i < n && status == TG_OK; i++) {
        tg_job *job = jobs[i];
        if (job->state == TG_JOB_WAITING && active < TG_FILES_AT_ONCE && job->due <= now) {
            job->state = TG_JOB_WORKING;
            active++;
        }
        if (job->state == TG_JOB_WORKING)
            status = step(job, err);
        if (job->state == TG_JOB_WORKING)
            *idle = 0;
        if (job->state == TG_JOB_WAITING && job->due > now && (job->due - now) * 1e3 < *idle)
            *idle = (int)((job->due - now) * 1e3) + 1;
        *n_left += job->state != TG_JOB_DONE;
    }
    return status;
}

tg_status tg_jobs_run(tg_net *net, tg_job **jobs, size_t n, tg_error *err)
{
    tg_error own = {0};
    err = err ? err : &own;
    *err = (tg_error){0};
    net->stopped = false;
    for (;;) {
        size_t n_left;
        int running, idle;
        tg_status status = step_all(jobs, n, &n_left, &idle, err);
        if (status == TG_OK && n_left == 0)
            return TG_OK;
        if (status == TG_OK && (curl_multi_poll(net->multi, NULL, 0, idle, NULL) != CURLM_OK ||
                                curl_multi_perform(net->multi, &running) != CURLM_OK))
            status = tg_fail(err, TG_E_RESOURCE, NULL, "libcurl cannot go on");
        if (status == TG_OK && tg_net_tick(net))
            status = take_ended(net, err);
        if (net->stopped)
            return tg_fail(err, TG_E_STOPPED, NULL, "stopped");
        if (status != TG_OK)
            return status;
    }
}

/* ---- answers into memory ----------------------------------------------------------------- */

typedef struct get_job {
    tg_job job; /* first */
    size_t max_bytes, capacity;
    char *body;
    size_t n;
} get_job;

static bool too_large(get_job *g, uint64_t n)
{
    return !tg_http_fail(&g->job.request, TG_VERDICT_FAIL, TG_E_NETWORK,
                            "the answer is too large (found %llu bytes, allowed %zu)", (unsigned long long)n,
                            g->max_bytes);
}

static bool get_begin(tg_http *r)
{
    get_job *g = r->arg;
    g->n = 0;
    return r->head || r->headers->length == TG_SIZE_UNKNOWN || r->headers->length <= g->max_bytes ||
           !too_large(g, r->headers->length);
}

static bool get_take(tg_http *r, const char *bytes, size_t n)
{
    get_job *g = r->arg;
    if (n > g->max_bytes - g->n)
        return !too_large(g, g->n + n);
    void *array = g->body;
    if (!tg_grow(&array, &g->capacity, g->n + n + 1, 1, "an answer", &r->err)) {
        r->verdict = TG_VERDICT_FAIL;
        return false;
    }
    g->body = array;
    memcpy(g->body + g->n, bytes, n);
    g->n += n;
    g->body[g->n] = '\0';
    return true;
}

static tg_step get_step(tg_job *job, tg_error *err)
{
    (void)err;
    return job->answered ? TG_STEP_DONE : TG_STEP_REQUEST;
}

tg_status tg_net_get(tg_net *net, const char *url, size_t max_bytes, tg_reply *reply, tg_error *err)
{
    get_job g = {.max_bytes = max_bytes};
    g.job = (tg_job){.step = get_step};
    g.job.request = (tg_http){.net = net, .url = url, .head = max_bytes == 0, .begin = get_begin, .take = get_take,
                                 .arg = &g, .reply.size = TG_SIZE_UNKNOWN};
    tg_job *jobs[] = {&g.job};
    tg_status status = tg_jobs_run(net, jobs, 1, err);
    *reply = g.job.request.reply;
    if (status == TG_OK) {
        reply->body = g.body ? g.body : tg_alloc(1, 1, "an answer", err);
        reply->n = g.n;
        status = reply->body ? TG_OK : TG_E_RESOURCE;
    } else {
        tg_free(g.body);
    }
    tg_http_free(&g.job.request);
    return status;
}
