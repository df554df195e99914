/* pull_url.c - one file of any URL, into the cache of URLs or a folder of the user's. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "fetch/pull.h"
#include "fetch/url_cache.h"

typedef struct url_pull {
    tg_puller *p;
    const char *place, *shown; /* tg_url_place */
    tg_folder root, folder;
    const char *name;
    bool here; /* a file and its record, which is of this URL */
    tg_url_record record;
} url_pull;

static tg_status open_place(url_pull *u, bool create)
{
    const tg_puller *p = u->p;
    const char *local = p->params->local_dir, *slash = strrchr(u->place, '/');
    tg_status status = tg_folder_root(&u->root, local ? local : p->set.url_cache, create, p->err);
    if (status == TG_OK)
        status = tg_folder_open_for(&u->folder, &u->root, local ? slash + 1 : u->place, create, &u->name, p->err);
    u->name = slash + 1;
    return status;
}

/* ---- pulling ------------------------------------------------------------------------------- */

static tg_status use_it(url_pull *u)
{
    tg_puller *p = u->p;
    if (p->sha256[0] && strcmp(p->sha256, u->record.sha256) != 0)
        return tg_fail(p->err, TG_E_INTEGRITY, u->shown,
                       "has another SHA-256 than the one that is asked for (found %s)", u->record.sha256);
    memcpy(p->result->files[0].digest, u->record.sha256, sizeof u->record.sha256);
    tg_pull_is_here(p, 0, u->record.size);
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
    if (status == TG_OK && u->here && reply.etag[0] && !reply.weak && strcmp(reply.etag, u->record.etag) == 0)
        return use_it(u);
    if (status != TG_OK && reply.down && u->here) {
        tg_pull_note(p, true, "the cached copy of %s is used: %s", u->shown, p->err->message);
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
    tg_status status = tg_pull_check(p, 0, &u->folder, TG_DIGEST_SHA256, p->sha256, &same);
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
    u->record.size = d->file->size;
    snprintf(u->record.url, sizeof u->record.url, "%s", u->shown);
    snprintf(u->record.etag, sizeof u->record.etag, "%s", d->etag);
    snprintf(u->record.sha256, sizeof u->record.sha256, "%s", d->file->digest);
    return tg_url_record_write(&u->folder, u->name, &u->record, p->err);
}

static tg_status plan(url_pull *u)
{
    tg_puller *p = u->p;
    const tg_pull_params *params = p->params;
    struct stat st;
    tg_status status = tg_pull_files(p, 1);
    if (status == TG_OK)
        status = tg_pull_file(p, 0, u->name, TG_SIZE_UNKNOWN, &u->folder, u->name, NULL);
    if (status != TG_OK)
        return status;
    tg_download *d = &p->downloads[0];
    d->url = p->name.url;
    d->kind = TG_DIGEST_SHA256;
    snprintf(d->file->digest, sizeof d->file->digest, "%s", p->sha256);
    if (u->folder.fd >= 0 && tg_folder_stat(&u->folder, u->name, &st)) {
        d->replace = true;
        if (!S_ISREG(st.st_mode))
            return tg_fail(p->err, TG_E_IO, u->folder.path, "%s is in the way: it is no regular file", u->name);
    }
    status = tg_url_record_read(&u->folder, u->name, &u->record, &u->here, p->err);
    if (status != TG_OK)
        return status;
    u->here = u->here && strcmp(u->record.url, u->shown) == 0;
    if (!p->net && !u->here)
        return tg_fail(p->err, TG_E_NETWORK, u->shown, "offline, and there is no complete copy");
    if (!p->net) {
        tg_pull_note(p, false, "offline: the cached copy of %s is used", u->shown);
        return use_it(u);
    }
    if (params->local_dir && d->replace && p->sha256[0] && !params->force)
        status = check_local(u, &st);
    bool ask_first = !params->force && (u->here || params->dry_run) && d->file->state != TG_FETCH_CACHED;
    return status == TG_OK && ask_first ? ask(u) : status;
}

tg_status tg_pull_url(tg_puller *p)
{
    const tg_pull_params *params = p->params;
    url_pull u = {.p = p, .root = TG_FOLDER_NONE, .folder = TG_FOLDER_NONE};
    if (params->n_files || params->n_include || params->n_exclude || params->revision)
        return tg_fail(p->err, TG_E_USAGE, NULL, "files, patterns and revisions are of repositories, not of a URL");
    tg_status status = tg_url_place(p->name.url, &u.place, &u.shown, p->arena, p->err);
    bool make = !params->dry_run && p->net;
    if (status == TG_OK)
        status = open_place(&u, make);
    if (!make && status == TG_E_IO)
        status = TG_OK; /* nothing is there yet */
    if (status == TG_OK)
        status = plan(&u);
    if (status == TG_OK && !params->dry_run && p->result->files[0].state != TG_FETCH_CACHED)
        status = fetch(&u);
    const char *below = params->local_dir ? params->local_dir : p->set.url_cache;
    if (status == TG_OK) {
        const char *folder = u.folder.path ? u.folder.path : below, *path = u.folder.path ? u.name : u.place;
        p->result->path = tg_path_join(folder, path, p->err);
        status = p->result->path ? TG_OK : TG_E_RESOURCE;
    }
    tg_folder_close(&u.folder);
    tg_folder_close(&u.root);
    return status;
}
