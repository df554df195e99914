/* net_file.c - one file's life: its part is adopted or created, what is there is digested, the rest is asked for,
 * compared with what is known of it, written, and brought under its name. */
#include "fetch/net_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/open.h"

enum {
    BUFFER_BYTES = 256 << 10, /* libcurl hands out 16 KiB at a time; digest and disk get this many */
    SLICE_BYTES = 8 << 20,    /* of an older part, between two looks at the rest of the world */
};

static void set_done(file_job *f)
{
    file_of(f)->done = f->part.stored + f->n_buffer;
}

/* ---- bytes ------------------------------------------------------------------------------- */

tg_status tg_file_start_over(file_job *f, tg_error *err)
{
    tg_record *record = &f->part.record;
    memcpy(record->etag, f->wanted.etag, sizeof record->etag);
    memcpy(record->digest, f->wanted.digest, sizeof record->digest);
    record->body_etag[0] = '\0';
    record->size = file_of(f)->size = f->wanted.size;
    f->n_buffer = 0;
    f->digested = 0;
    f->looks = NULL;
    file_of(f)->resumed = 0;
    tg_status status = tg_part_empty(&f->part, err);
    set_done(f);
    return status;
}

/* A page of a captive portal or of a login, or the pointer that stands for a file in git. */
static const char *looks_like(const char *bytes, size_t n)
{
    static const struct {
        const char *front, *what;
    } known[] = {
        {"<!doctype html", "an HTML page"},
        {"<html", "an HTML page"},
        {"version https://git-lfs.github.com/spec/", "a Git LFS pointer"},
    };
    while (n > 0 && (*bytes == ' ' || *bytes == '\n' || *bytes == '\r' || *bytes == '\t'))
        bytes++, n--;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (n >= strlen(known[i].front) && strncasecmp(bytes, known[i].front, strlen(known[i].front)) == 0)
            return known[i].what;
    return NULL;
}

static tg_status flush(file_job *f, tg_error *err)
{
    size_t n = f->n_buffer;
    f->n_buffer = 0;
    if (n == 0)
        return TG_OK;
    if (f->part.stored == 0)
        f->looks = looks_like(f->buffer, n);
    if (f->digested == f->part.stored && f->digest.state) {
        tg_digest_add(&f->digest, f->buffer, n);
        f->digested += n;
    }
    return tg_part_write(&f->part, f->buffer, n, err);
}

tg_status tg_file_begin_digest(file_job *f, tg_error *err)
{
    uint64_t size = f->part.record.size;
    tg_digest_kind wanted = f->dl->kind == TG_DIGEST_NONE ? TG_DIGEST_SHA256 : f->dl->kind;
    f->kind = f->part.record.digest[0] ? tg_digest_kind_of(f->part.record.digest) : wanted;
    f->digested = 0;
    tg_digest_free(&f->digest);
    return f->kind == TG_DIGEST_GIT_BLOB && size == TG_SIZE_UNKNOWN ? TG_OK
                                                                     : tg_digest_begin(&f->digest, f->kind, size, err);
}

static bool take(tg_http *r, const char *bytes, size_t n)
{
    file_job *f = r->arg;
    if (f->part.record.size != TG_SIZE_UNKNOWN && n > f->part.record.size - f->part.stored - f->n_buffer) {
        tg_http_fail(r, TG_VERDICT_FAIL, TG_E_INTEGRITY, "is longer than declared (allowed %" PRIu64 " bytes)",
                     f->part.record.size);
        tg_part_discard(&f->part);
        return false;
    }
    f->job.bytes += n;
    while (n > 0) {
        size_t room = BUFFER_BYTES - f->n_buffer, k = n < room ? n : room;
        memcpy(f->buffer + f->n_buffer, bytes, k);
        f->n_buffer += k;
        bytes += k;
        n -= k;
        if (f->n_buffer == BUFFER_BYTES && flush(f, &r->err) != TG_OK) {
            r->verdict = TG_VERDICT_FAIL;
            return false;
        }
    }
    set_done(f);
    return tg_net_tick(r->net);
}

/* ---- the steps --------------------------------------------------------------------------- */

static tg_step failed(tg_status status)
{
    return status == TG_OK ? TG_STEP_BUSY : TG_STEP_FAILED;
}

static tg_step open_part(file_job *f, tg_error *err)
{
    f->wanted = (tg_record){.url = tg_url_redact(f->dl->url), .size = file_of(f)->size};
    snprintf(f->wanted.etag, sizeof f->wanted.etag, "%s", f->dl->etag);
    snprintf(f->wanted.digest, sizeof f->wanted.digest, "%s", file_of(f)->digest);
    f->buffer = tg_alloc(BUFFER_BYTES, 1, "bytes of a download", err);
    tg_status status = f->buffer && f->wanted.url ? TG_OK : tg_fail_alloc(err, BUFFER_BYTES, "a download");
    if (status == TG_OK)
        status = tg_part_open(&f->part, f->dl->folder, f->dl->target, &f->wanted, err);
    if (status != TG_OK)
        return TG_STEP_FAILED;
    tg_record *record = &f->part.record;
    if (!record->digest[0])
        snprintf(record->digest, sizeof record->digest, "%s", file_of(f)->digest);
    if (record->size == TG_SIZE_UNKNOWN)
        record->size = file_of(f)->size;
    file_of(f)->size = record->size;
    file_of(f)->resumed = f->part.stored;
    file_of(f)->state = f->part.stored > 0 ? TG_FETCH_CHECKING : TG_FETCH_RUNNING;
    set_done(f);
    f->phase = FILE_CHECK;
    return failed(tg_file_begin_digest(f, err));
}

/* Digests what it has not seen yet; true when it has seen all. */
static bool digest_slice(file_job *f, tg_error *err)
{
    uint64_t left = f->part.stored - f->digested, did = 0;
    tg_status status = TG_OK;
    if (!f->digest.state) /* git's, and the size was not known before the end */
        status = tg_digest_begin(&f->digest, f->kind, f->part.stored, err);
    if (status == TG_OK)
        status = tg_digest_add_file(&f->digest, f->part.file.fd, f->digested, left < SLICE_BYTES ? left : SLICE_BYTES,
                                    &did, err);
    if (status == TG_OK && did == 0 && left > 0)
        tg_fail(err, TG_E_IO, f->dl->target, "its part became shorter while it was read");
    f->digested += did;
    return err->status == TG_OK && f->digested == f->part.stored;
}

/* A part of another run, before there is a request. With a digest that must be, a whole one needs none. */
static tg_step check(file_job *f, tg_error *err)
{
    bool later = f->kind == TG_DIGEST_GIT_BLOB && f->part.record.size == TG_SIZE_UNKNOWN;
    if (!later && !digest_slice(f, err))
        return failed(err->status);
    f->phase = f->part.stored == f->part.record.size && f->part.record.digest[0] && f->part.stored > 0 ? FILE_FINISH : FILE_REQUEST;
    return TG_STEP_BUSY;
}

static tg_step request(file_job *f, tg_error *err)
{
    tg_http *r = &f->job.request;
    if (flush(f, err) != TG_OK)
        return TG_STEP_FAILED;
    if (f->job.answered) {
        f->phase = FILE_FINISH;
        return TG_STEP_BUSY;
    }
    const tg_record *record = &f->part.record;
    /* Without an ETag to compare, the digest alone tells that two halves are of one file. */
    bool resumable = f->part.stored > 0 && !f->whole && (record->body_etag[0] || record->digest[0]);
    if (!resumable && f->part.stored > 0 && tg_file_start_over(f, err) != TG_OK)
        return TG_STEP_FAILED;
    r->from = f->part.stored;
    r->if_range = record->body_etag[0] ? record->body_etag : NULL;
    file_of(f)->state = TG_FETCH_RUNNING;
    return TG_STEP_REQUEST;
}

static void tell(file_job *f, const char *what)
{
    const tg_fetch_watch *watch = &f->job.request.net->watch;
    tg_error line;
    tg_fail(&line, TG_OK, f->job.request.shown ? f->job.request.shown : file_of(f)->name, "%s", what);
    if (watch->note)
        watch->note(watch->arg, true, line.message);
}

/* The bytes are not those that they must be: once more from the beginning, once. */
static tg_step mismatch(file_job *f, const char *found, tg_error *err)
{
    tg_fail(err, TG_E_INTEGRITY, f->job.request.shown ? f->job.request.shown : file_of(f)->name,
            "digest differs (found %s, wanted %s)%s%s", found, f->part.record.digest, f->looks ? ": " : "",
            f->looks ? f->looks : "");
    if (f->fresh || f->looks) {
        tg_part_discard(&f->part);
        return TG_STEP_FAILED;
    }
    f->fresh = true;
    tell(f, "digest differs from what it must be: fetching it anew");
    *err = (tg_error){0};
    f->phase = FILE_REQUEST;
    f->job.answered = false;
    return failed(tg_file_start_over(f, err));
}

/* The body ended as it should, but too early: what is there stays for another attempt. */
static tg_step too_short(file_job *f, tg_error *err)
{
    (void)err;
    uint64_t size = f->part.record.size;
    tg_http_fail(&f->job.request, TG_VERDICT_RETRY, TG_E_INTEGRITY,
                    "ended too early (found %" PRIu64 " bytes, wanted %" PRIu64 ")", f->part.stored,
                    size == TG_SIZE_UNKNOWN ? 1 : size);
    f->phase = FILE_REQUEST;
    return TG_STEP_RETRY;
}

/* Another process may have brought the same file under its name in the meantime: then it is there. */
static tg_status bring(file_job *f, const char *digest, tg_error *err)
{
    char there[65];
    tg_status status = tg_part_finish(&f->part, f->dl->replace, err);
    if (status == TG_OK || f->dl->replace)
        return status;
    int fd = tg_open(f->dl->folder, f->dl->target, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd >= 0 && tg_digest_file(fd, f->kind, f->part.stored, NULL, NULL, there, NULL) == TG_OK && strcmp(there, digest) == 0)
        status = TG_OK;
    if (fd >= 0)
        close(fd);
    if (status == TG_OK) {
        tg_part_discard(&f->part);
        *err = (tg_error){0};
    }
    return status;
}

/* What is there stays for another run. */
static void release(file_job *f)
{
    if (f->part.file.path)
        flush(f, NULL);
    tg_part_keep(&f->part);
    tg_digest_free(&f->digest);
    free(f->wanted.url);
    tg_free(f->buffer);
    f->wanted.url = f->buffer = NULL;
}

static tg_step finish(file_job *f, tg_error *err)
{
    tg_record *record = &f->part.record;
    char hex[65];
    uint64_t stored = f->part.stored;
    f->begun = true; /* a part that was whole has asked for no room */
    if (record->size == TG_SIZE_UNKNOWN ? stored == 0 : stored < record->size)
        return too_short(f, err);
    if (!digest_slice(f, err))
        return failed(err->status);
    tg_digest_end(&f->digest, hex);
    tg_digest_free(&f->digest);
    if (record->digest[0] && strcasecmp(hex, record->digest) != 0)
        return mismatch(f, hex, err);
    if (!record->digest[0] && f->looks) {
        tg_part_discard(&f->part);
        tg_fail(err, TG_E_INTEGRITY, f->job.request.shown, "%s came instead of the file", f->looks);
        return TG_STEP_FAILED;
    }
    bool unsure = record->size == TG_SIZE_UNKNOWN && !record->digest[0];
    snprintf(f->dl->etag, sizeof f->dl->etag, "%s", record->etag);
    if (bring(f, hex, err) != TG_OK)
        return TG_STEP_FAILED;
    if (unsure)
        tell(f, "the server told neither size nor digest: whether the file is whole cannot be known");
    snprintf(file_of(f)->digest, sizeof file_of(f)->digest, "%s", hex);
    file_of(f)->size = file_of(f)->done = stored;
    file_of(f)->state = TG_FETCH_DONE;
    release(f);
    return TG_STEP_DONE;
}

static tg_step step(tg_job *job, tg_error *err)
{
    file_job *f = (file_job *)job;
    static tg_step (*const steps[])(file_job *, tg_error *) = {
        [FILE_OPEN] = open_part, [FILE_CHECK] = check, [FILE_REQUEST] = request, [FILE_FINISH] = finish};
    return steps[f->phase](f, err);
}

/* ---- all of them ------------------------------------------------------------------------- */

static void set_up(file_job *f, tg_net *net, tg_download *dl, const file_set *set)
{
    f->dl = dl;
    f->set = set;
    f->job.step = step;
    f->job.file = dl->file;
    f->job.request = (tg_http){.net = net, .url = dl->url, .begin = tg_file_begin, .take = take, .arg = f};
    dl->file->state = TG_FETCH_WAITING;
    dl->file->done = dl->file->resumed = 0;
}

tg_status tg_net_fetch(tg_net *net, tg_download *downloads, size_t n, tg_error *err)
{
    file_set set = {.jobs = tg_alloc(n, sizeof *set.jobs, "downloads", err)};
    tg_job **jobs = set.jobs ? tg_alloc(n, sizeof *jobs, "downloads", err) : NULL;
    net->files = jobs ? tg_alloc(n, sizeof *net->files, "downloads", err) : NULL;
    tg_status status = net->files ? TG_OK : TG_E_RESOURCE;
    for (size_t i = 0; i < n && status == TG_OK; i++) {
        if (i == 0 || downloads[i].folder != downloads[i - 1].folder)
            tg_part_sweep(downloads[i].folder);
        if (downloads[i].file->state == TG_FETCH_CACHED) {
            tg_part_clear(downloads[i].folder, downloads[i].target); /* another tool may have brought it since */
            continue;
        }
        set_up(&set.jobs[set.n], net, &downloads[i], &set);
        jobs[set.n] = &set.jobs[set.n].job;
        set.n++;
    }
    net->downloads = downloads;
    net->n_files = n;
    if (status == TG_OK)
        status = tg_jobs_run(net, jobs, set.n, err);
    net->n_files = 0;
    for (size_t i = 0; i < set.n; i++) {
        tg_http_free(&set.jobs[i].job.request);
        release(&set.jobs[i]);
    }
    tg_free(net->files);
    net->files = NULL;
    tg_free(jobs);
    tg_free(set.jobs);
    return status;
}
