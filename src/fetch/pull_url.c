/* pull_url.c - one file of any URL, into the cache of URLs or a folder of the user's. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "fetch/pull.h"
#include "fetch/url_cache.h"

typedef struct url_pull {
    tg_puller *p;
    tg_url_copy copy;
} url_pull;

static tg_status use_it(url_pull *u)
{
    tg_puller *p = u->p;
    if (p->sha256[0] && strcmp(p->sha256, u->copy.record.sha256) != 0)
        return tg_fail(p->err, TG_E_INTEGRITY, u->copy.shown,
                       "has another SHA-256 than the one that is asked for (found %s)", u->copy.record.sha256);
    memcpy(p->result->files[0].digest, u->copy.record.sha256, sizeof u->copy.record.sha256);
    tg_pull_is_here(p, 0, u->copy.record.size);
    return TG_OK;
}

/* Asks whether what is here is what the server has; in a dry run, how much it is. A server may refuse HEAD and yet give
 * the file: the download will tell. */
static tg_status ask(url_pull *u)
{
    tg_puller *p = u->p;
    tg_reply reply = {0};
    tg_status status = tg_net_get(p->net, p->name.url, 0, &reply, p->err);
    tg_free(reply.body);
    if (status == TG_E_STOPPED)
        return status;
    if (status == TG_OK && u->copy.here && reply.etag[0] && !reply.weak && strcmp(reply.etag, u->copy.record.etag) == 0)
        return use_it(u);
    if (status != TG_OK && reply.down && u->copy.here) {
        tg_pull_note(p, true, "the cached copy of %s is used: %s", u->copy.shown, p->err->message);
        return use_it(u);
    }
    if (!p->params->dry_run)
        return TG_OK;
    p->result->files[0].size = reply.size;
    return status;
}

/* Is the file of local_dir the one that is asked for? */
static tg_status check_local(url_pull *u, const struct stat *st)
{
    tg_puller *p = u->p;
    bool same = false;
    tg_status status = tg_pull_check(p, 0, &u->copy.folder, TG_DIGEST_SHA256, p->sha256, &same);
    if (same)
        tg_pull_is_here(p, 0, (uint64_t)st->st_size);
    return status;
}

static tg_status fetch(url_pull *u)
{
    tg_puller *p = u->p;
    tg_status status = tg_net_fetch(p->net, p->downloads, 1, p->err);
    if (status != TG_OK || p->params->local_dir)
        return status;
    const tg_download *d = &p->downloads[0];
    u->copy.record.size = d->file->size;
    snprintf(u->copy.record.url, sizeof u->copy.record.url, "%s", u->copy.shown);
    snprintf(u->copy.record.etag, sizeof u->copy.record.etag, "%s", d->etag);
    snprintf(u->copy.record.sha256, sizeof u->copy.record.sha256, "%s", d->file->digest);
    return tg_url_record_write(&u->copy.folder, u->copy.name, &u->copy.record, p->err);
}

static tg_status plan(url_pull *u)
{
    tg_puller *p = u->p;
    const tg_pull_params *params = p->params;
    struct stat st;
    tg_status status = tg_pull_files(p, 1);
    if (status == TG_OK)
        status = tg_pull_file(p, 0, u->copy.name, TG_SIZE_UNKNOWN, &u->copy.folder, u->copy.name, NULL);
    if (status != TG_OK)
        return status;
    tg_download *d = &p->downloads[0];
    d->url = p->name.url;
    d->kind = TG_DIGEST_SHA256;
    snprintf(d->file->digest, sizeof d->file->digest, "%s", p->sha256);
    if (u->copy.folder.fd >= 0 && tg_folder_stat(&u->copy.folder, u->copy.name, &st)) {
        d->replace = true;
        if (!S_ISREG(st.st_mode))
            return tg_fail(p->err, TG_E_IO, u->copy.folder.path, "%s is in the way: it is no regular file", u->copy.name);
    }
    if (!p->net && !u->copy.here)
        return tg_fail(p->err, TG_E_NETWORK, u->copy.shown, "offline, and there is no complete copy");
    if (!p->net) {
        tg_pull_note(p, false, "offline: the cached copy of %s is used", u->copy.shown);
        return use_it(u);
    }
    if (params->local_dir && d->replace && p->sha256[0] && !params->force)
        status = check_local(u, &st);
    bool ask_first = !params->force && (u->copy.here || params->dry_run) && d->file->state != TG_FETCH_CACHED;
    return status == TG_OK && ask_first ? ask(u) : status;
}

tg_status tg_pull_url(tg_puller *p)
{
    const tg_pull_params *params = p->params;
    url_pull u = {.p = p};
    if (params->n_files || params->n_include || params->n_exclude || params->revision)
        return tg_fail(p->err, TG_E_USAGE, NULL, "files, patterns and revisions are of repositories, not of a URL");
    const bool make = !params->dry_run && p->net;
    const char *below = params->local_dir ? params->local_dir : p->set.url_cache;
    tg_status status = tg_url_open(&u.copy, p->name.url, below, params->local_dir, make, p->arena, p->err);
    if (!make && status == TG_E_IO)
        status = TG_OK; /* nothing is there yet */
    if (status == TG_OK)
        status = plan(&u);
    if (status == TG_OK && !params->dry_run && p->result->files[0].state != TG_FETCH_CACHED)
        status = fetch(&u);
    if (status == TG_OK) {
        const bool open = u.copy.folder.path;
        p->result->path = tg_path_join(open ? u.copy.folder.path : below, open ? u.copy.name : u.copy.place, p->err);
        status = p->result->path ? TG_OK : TG_E_RESOURCE;
    }
    tg_url_close(&u.copy);
    return status;
}
