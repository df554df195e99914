/* net_answer.c - whether an answer is of the wanted file: its version, its size, its range, room for it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/statvfs.h>

#include "base/memory.h"
#include "fetch/net_file.h"

static bool refuse(file_job *f, tg_status status, const char *what)
{
    tg_part_discard(&f->part);
    return tg_http_fail(&f->job.request, TG_VERDICT_FAIL, status, "%s", what);
}

/* Begin anew with another request. */
static bool ask_again(file_job *f, const char *why)
{
    tg_http *r = &f->job.request;
    if (tg_file_start_over(f, &r->err) != TG_OK) {
        r->verdict = TG_VERDICT_FAIL;
        return false;
    }
    return tg_http_fail(r, TG_VERDICT_RETRY, TG_E_NETWORK, "%s", why);
}

/* The wanted version is the one that the caller asked for, and the one that the part is of. */
static bool same_version(file_job *f)
{
    tg_http *r = &f->job.request;
    const tg_reply *reply = &r->reply;
    const char *commit = f->dl->commit, *etag = f->wanted.etag, *had = f->part.record.etag;
    tg_quoted q;
    char text[400];
    if (commit && reply->commit[0] && strcmp(commit, reply->commit) != 0) {
        snprintf(text, sizeof text, "changed on the server (found commit %s, wanted %.40s)", reply->commit, commit);
        return refuse(f, TG_E_INTEGRITY, text);
    }
    if (*etag && reply->etag[0] && strcmp(etag, reply->etag) != 0) {
        snprintf(text, sizeof text, "changed on the server (found ETag %.128s, wanted %.128s)",
                 tg_quote_str(&q, reply->etag), etag);
        return refuse(f, TG_E_INTEGRITY, text);
    }
    if (r->from > 0 && r->headers->http != 200 && *had && reply->etag[0] && strcmp(had, reply->etag) != 0)
        return ask_again(f, "changed on the server since its part was fetched");
    return true;
}

/* What the file's size and digest must be, from whoever knows: the caller, else the hub, else the answer. */
static bool know(file_job *f)
{
    tg_http *r = &f->job.request;
    tg_record *record = &f->part.record;
    uint64_t size = r->reply.size;
    char text[160];
    snprintf(record->etag, sizeof record->etag, "%s", r->reply.etag);
    if (size == 0 && !r->hub_seen)
        size = TG_SIZE_UNKNOWN; /* an answer without a body is no file */
    if (record->size == TG_SIZE_UNKNOWN) {
        record->size = file_of(f)->size = size;
    } else if (size != TG_SIZE_UNKNOWN && size != record->size && size > 0) {
        snprintf(text, sizeof text, "has another size (found %" PRIu64 " bytes, wanted %" PRIu64 ")", size,
                 record->size);
        return refuse(f, TG_E_INTEGRITY, text);
    }
    if (!record->digest[0] && r->hub_seen && !r->reply.weak && tg_digest_kind_of(r->reply.etag) != TG_DIGEST_NONE)
        snprintf(record->digest, sizeof record->digest, "%.64s", r->reply.etag);
    return true;
}

static bool ends_with(const char *s, const char *suffix)
{
    size_t n = strlen(s), k = strlen(suffix);
    return n >= k && strcasecmp(s + n - k, suffix) == 0;
}

/* Whether an answer that brings the whole file brings as many bytes as it must, and no page instead. */
static bool right_length(file_job *f)
{
    const tg_headers *h = f->job.request.headers;
    uint64_t size = f->part.record.size;
    bool differs = h->length != TG_SIZE_UNKNOWN && h->length != size && h->length > 0;
    char text[200];
    if (strcmp(h->content_type, "text/html") == 0 && (differs || !f->part.record.digest[0]) &&
        !ends_with(file_of(f)->name, ".html"))
        return refuse(f, TG_E_INTEGRITY, "an HTML page came instead of the file");
    if (!differs)
        return true;
    snprintf(text, sizeof text, "has another size (found %" PRIu64 " bytes, wanted %" PRIu64 ")", h->length, size);
    return refuse(f, TG_E_INTEGRITY, text);
}

/* Without a size and a digest, an end that may as well be the server's is none. */
static bool has_end(file_job *f)
{
    const tg_headers *h = f->job.request.headers;
    return f->part.record.size != TG_SIZE_UNKNOWN || f->part.record.digest[0] || h->length != TG_SIZE_UNKNOWN || h->framed ||
           refuse(f, TG_E_NETWORK, "the server does not tell where the file ends (a digest would: --sha256)");
}

/* 206 must go on where the part ends, and end where the file does. */
static bool right_range(file_job *f)
{
    const tg_http *r = &f->job.request;
    const tg_headers *h = r->headers;
    uint64_t size = f->part.record.size, end = size != TG_SIZE_UNKNOWN ? size : h->total;
    if (h->ranged && h->first == r->from && h->last + 1 == end &&
        (h->total == TG_SIZE_UNKNOWN || h->total == end) &&
        (h->length == TG_SIZE_UNKNOWN || h->length == end - r->from))
        return true;
    f->whole = true;
    return ask_again(f, "the server sent another range than was asked for");
}

/* Is there room for this file, and for those that have not begun? */
static tg_status make_room(file_job *f, tg_error *err)
{
    struct statvfs fs;
    uint64_t size = f->part.record.size, need = 0;
    for (size_t i = 0; i < f->set->n; i++) {
        const file_job *other = &f->set->jobs[i];
        uint64_t whole = other->dl->file->size;
        if (!other->begun && whole != TG_SIZE_UNKNOWN && whole > other->part.stored &&
            !tg_add_u64(need, whole - other->part.stored, &need))
            need = UINT64_MAX;
    }
    f->begun = true;
    if (fstatvfs(f->dl->folder, &fs) == 0 && need / fs.f_frsize > fs.f_bavail)
        return tg_fail(err, TG_E_RESOURCE, file_of(f)->name, "no room on the disk (needed %.1f MiB, free %.1f MiB)",
                       (double)need / 1048576, (double)fs.f_bavail * (double)fs.f_frsize / 1048576);
    return size == TG_SIZE_UNKNOWN ? TG_OK : tg_newfile_reserve(&f->part.file, f->part.stored, size, err);
}

bool tg_file_begin(tg_http *r)
{
    file_job *f = r->arg;
    const tg_headers *h = r->headers;
    uint64_t size = f->part.record.size;
    if (!same_version(f))
        return false;
    if (h->http == 416)
        return f->part.stored == size ||
               (size == TG_SIZE_UNKNOWN && h->ranged && h->total == f->part.stored) ||
               ask_again(f, "the server has no such range of it");
    bool goes_on = h->http == 206;
    if (!goes_on && r->from > 0 && tg_file_start_over(f, &r->err) != TG_OK) {
        r->verdict = TG_VERDICT_FAIL;
        return false;
    }
    if ((goes_on && !right_range(f)) || !know(f) || (!goes_on && !(right_length(f) && has_end(f))))
        return false;
    bool strong = h->etag[0] && !h->weak;
    snprintf(f->part.record.body_etag, sizeof f->part.record.body_etag, "%s", strong ? h->etag : "");
    tg_status status = goes_on ? TG_OK : tg_file_begin_digest(f, &r->err);
    if (status == TG_OK)
        status = tg_part_note(&f->part, &r->err);
    if (status == TG_OK)
        status = make_room(f, &r->err);
    r->verdict = status == TG_OK ? TG_VERDICT_DONE : TG_VERDICT_FAIL;
    return status == TG_OK;
}
