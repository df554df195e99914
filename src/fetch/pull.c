/* pull.c - tg_pull: what its two halves have in common. */
#include "fetch/pull.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/open.h"

void tg_pull_note(const tg_puller *p, bool warning, const char *fmt, ...)
{
    char line[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (p->params->watch.note)
        p->params->watch.note(p->params->watch.arg, warning, line);
}

/* ---- files --------------------------------------------------------------------------------- */

tg_status tg_pull_files(tg_puller *p, size_t n)
{
    p->result->files = tg_alloc(n, sizeof *p->result->files, "a list of files", p->err);
    p->downloads = tg_arena_alloc(p->arena, n, sizeof *p->downloads, "a list of files", p->err);
    p->result->n_files = p->result->files ? n : 0;
    return p->result->files && p->downloads ? TG_OK : TG_E_RESOURCE;
}

tg_status tg_pull_file(tg_puller *p, size_t i, const char *name, uint64_t size, const tg_folder *folder,
                       const char *target, const char *etag)
{
    tg_fetch_file *file = &p->result->files[i];
    *file = (tg_fetch_file){.name = strdup(name), .size = size};
    p->downloads[i] = (tg_download){.folder = folder->fd, .target = target, .file = file};
    snprintf(p->downloads[i].etag, sizeof p->downloads[i].etag, "%s", etag ? etag : "");
    return file->name ? TG_OK : tg_fail_alloc(p->err, strlen(name), "the name of a file");
}

void tg_pull_is_here(tg_puller *p, size_t i, uint64_t size)
{
    tg_fetch_file *file = &p->result->files[i];
    file->state = TG_FETCH_CACHED;
    file->size = file->done = size;
}

typedef struct checking {
    tg_puller *p;
    tg_fetch_file *file;
} checking;

static bool tell_check(void *arg, uint64_t done)
{
    const checking *c = arg;
    const tg_fetch_watch *watch = &c->p->params->watch;
    c->file->done = done;
    return !watch->progress || watch->progress(watch->arg, c->p->result->files, c->p->result->n_files);
}

tg_status tg_pull_check(tg_puller *p, size_t i, const tg_folder *folder, tg_digest_kind kind, const char *digest,
                        bool *same)
{
    tg_fetch_file *file = &p->result->files[i];
    checking c = {p, file};
    char hex[65];
    struct stat st;
    int fd = tg_open(folder->fd, p->downloads[i].target, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    file->state = TG_FETCH_CHECKING;
    tg_status status = fd >= 0 && fstat(fd, &st) == 0
                           ? tg_digest_file(fd, kind, (uint64_t)st.st_size, tell_check, &c, hex, p->err)
                           : tg_fail_errno(p->err, folder->path, "a file cannot be opened");
    if (fd >= 0)
        close(fd);
    file->state = TG_FETCH_WAITING;
    file->done = 0;
    *same = status == TG_OK && strcmp(hex, digest) == 0;
    return status;
}

/* ---- the call ------------------------------------------------------------------------------ */

static tg_status check_params(tg_puller *p)
{
    const tg_pull_params *params = p->params;
    size_t n = params->sha256 ? strlen(params->sha256) : 0;
    for (size_t i = 0; i < n && i < 64; i++)
        p->sha256[i] = (char)tolower((unsigned char)params->sha256[i]);
    if (params->sha256 && (n != 64 || !tg_is_hex(p->sha256, 64)))
        return tg_fail(p->err, TG_E_USAGE, NULL, "a SHA-256 has 64 hexadecimal digits (found %zu bytes)", n);
    tg_quoted q;
    for (size_t i = 0; i < params->n_files; i++) {
        const char *bad = tg_bad_path(params->files[i]);
        if (bad)
            return tg_fail(p->err, TG_E_USAGE, NULL, "%s is no name of a file: %s", tg_quote_str(&q, params->files[i]),
                           bad);
    }
    return params->revision ? tg_check_revision(params->revision, p->err) : TG_OK;
}

static tg_status run(tg_puller *p)
{
    const tg_pull_params *params = p->params;
    tg_status status = check_params(p);
    if (status == TG_OK)
        status = tg_settings_read(&p->set, params->offline, p->arena, p->err);
    if (status == TG_OK)
        status = tg_name_parse(&p->name, params->what, p->set.endpoint, p->arena, p->err);
    if (status != TG_OK)
        return status;
    tg_net_params net = {
        .endpoint = p->set.endpoint, .token = p->set.token, .max_wait = params->max_wait, .watch = params->watch};
    if (!p->set.offline)
        status = tg_net_create(&p->net, &net, p->err);
    if (status == TG_OK)
        status = p->name.url ? tg_pull_url(p) : tg_pull_repo(p);
    tg_net_free(p->net);
    return status;
}

tg_status tg_pull(const tg_pull_params *params, tg_pull_result *result, tg_error *err)
{
    tg_error own = {0};
    tg_puller p = {.params = params, .result = result, .err = err ? err : &own};
    *p.err = (tg_error){0};
    *result = (tg_pull_result){0};
    p.arena = tg_arena_create(p.err);
    tg_status status = p.arena ? run(&p) : TG_E_RESOURCE;
    tg_arena_free(p.arena);
    return status;
}

void tg_pull_result_free(tg_pull_result *result)
{
    for (size_t i = 0; i < result->n_files; i++)
        tg_free((char *)(uintptr_t)result->files[i].name);
    tg_free(result->files);
    tg_free(result->path);
    tg_free(result->repo);
    tg_free(result->commit);
    *result = (tg_pull_result){0};
}
