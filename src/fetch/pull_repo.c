/* pull_repo.c - a repository of the hub, into the hub's cache or a folder of the user's.
 *
 * 1. one request pins the commit and lists what it holds; 2. the choice; 3. what of it is here already; 4. the rest is
 * fetched, all of it under its final name or none; 5. the snapshot's links, and last the ref. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "fetch/choose.h"
#include "fetch/hub_cache.h"
#include "fetch/pull.h"

typedef struct repo_pull {
    tg_puller *p;
    tg_hub hub;
    tg_listing listing;
    tg_choice choice;
    tg_wish wish;
    tg_repo_cache cache; /* unless it goes to local_dir */
    tg_folder local;     /* local_dir */
    tg_folder blobs;
    tg_folder *folders; /* in local_dir, n of them: a file that follows another of the same folder shares it */
    size_t n_folders;
} repo_pull;

static const tg_repo_file *chosen(const repo_pull *r, size_t i)
{
    return &r->listing.files[r->choice.files[i]];
}

/* ---- the wish ------------------------------------------------------------------------------ */

/* A file in the name is the first of those that are asked for. */
static tg_status make_wish(repo_pull *r)
{
    tg_puller *p = r->p;
    const tg_pull_params *params = p->params;
    const char **files = tg_arena_alloc(p->arena, params->n_files + 1, sizeof *files, "names of files", p->err);
    if (!files)
        return TG_E_RESOURCE;
    size_t n = 0;
    /* The file that the catalogue means gives way to files that are named. */
    if (p->name.file && !params->n_include)
        files[n++] = p->name.file;
    for (size_t i = 0; i < params->n_files; i++)
        files[n++] = params->files[i];
    r->wish = (tg_wish){.quant = p->name.quant,
                        .files = files,
                        .n_files = n,
                        .include = params->include,
                        .n_include = params->n_include,
                        .exclude = params->exclude,
                        .n_exclude = params->n_exclude};
    r->listing.repo = p->name.repo;
    r->listing.revision = params->revision ? params->revision : p->name.revision ? p->name.revision : "main";
    return TG_OK;
}

/* ---- results ------------------------------------------------------------------------------- */

/* `below` is the folder that the paths of the choice are relative to. */
static tg_status set_result(repo_pull *r, const char *below)
{
    tg_pull_result *result = r->p->result;
    result->repo = strdup(r->listing.repo);
    result->commit = r->listing.commit ? strdup(r->listing.commit) : NULL;
    result->path = r->choice.model == TG_NO_FILE
                       ? strdup(below)
                       : tg_path_join(below, r->listing.files[r->choice.model].path, r->p->err);
    return result->repo && result->path && (result->commit || !r->listing.commit)
               ? TG_OK
               : tg_fail_alloc(r->p->err, 0, "a result");
}

static const char *snapshot_path(const repo_pull *r)
{
    const tg_puller *p = r->p;
    const char *path = r->cache.folder.path; /* not there yet in a dry run */
    if (!path)
        path = tg_repo_cache_path(p->set.hub_cache, r->listing.repo, p->arena, p->err);
    return path ? tg_arena_format(p->arena, p->err, "%s/snapshots/%s", path, r->listing.commit) : NULL;
}

/* ---- without the hub ----------------------------------------------------------------------- */

/* What lies here already, as if it were the listing. */
static tg_status use_what_is_here(repo_pull *r)
{
    tg_puller *p = r->p;
    const char *below = NULL, *local = p->params->local_dir;
    tg_status status;
    if (local) {
        status = tg_folder_root(&r->local, local, false, p->err);
        if (status == TG_OK)
            status = tg_folder_list(&r->local, &r->listing, p->arena, p->err);
        below = r->local.path;
    } else {
        tg_quoted q;
        char commit[41];
        status = tg_repo_cache_open(&r->cache, p->set.hub_cache, r->listing.repo, false, p->err);
        if (status == TG_E_RESOURCE)
            return status;
        if (status != TG_OK || !tg_ref_read(&r->cache, r->listing.revision, commit))
            return tg_fail(p->err, TG_E_NETWORK, r->listing.repo, "revision %s of it is not in the cache",
                           tg_quote_str(&q, r->listing.revision));
        r->listing.commit = tg_arena_string(p->arena, commit, 40, p->err);
        below = r->listing.commit ? snapshot_path(r) : NULL;
        status = below ? tg_snapshot_list(&r->cache, r->listing.commit, &r->listing, p->arena, p->err) : TG_E_RESOURCE;
    }
    if (status == TG_OK)
        status = tg_choose(&r->listing, &r->wish, &r->choice, p->arena, p->err);
    if (status == TG_OK)
        status = tg_choice_check(&r->listing, &r->choice, below, p->err);
    if (status == TG_OK)
        status = tg_choice_check_tokenizer(&r->listing, &r->choice, p->err);
    if (status == TG_OK)
        status = tg_pull_files(p, r->choice.n);
    for (size_t i = 0; status == TG_OK && i < r->choice.n; i++) {
        status = tg_pull_file(p, i, chosen(r, i)->path, chosen(r, i)->size, &r->local, NULL, chosen(r, i)->etag);
        tg_pull_is_here(p, i, chosen(r, i)->size);
        if (tg_etag_kind(chosen(r, i)->etag) != TG_DIGEST_NONE)
            snprintf(p->result->files[i].digest, sizeof p->result->files[i].digest, "%s", chosen(r, i)->etag);
    }
    return status == TG_OK ? set_result(r, below) : status;
}

static tg_status pull_offline(repo_pull *r)
{
    tg_status status = use_what_is_here(r);
    if (status == TG_OK)
        tg_pull_note(r->p, false, "offline: the cached copy of %s is used", r->listing.repo);
    else if (status == TG_E_NETWORK || status == TG_E_MODEL) {
        tg_error why = *r->p->err;
        return tg_fail(r->p->err, TG_E_NETWORK, NULL, "offline, and there is no complete copy: %s", why.message);
    }
    return status;
}

/* The hub gave no answer, and *err says why. */
static tg_status pull_while_down(repo_pull *r)
{
    tg_error why = *r->p->err;
    tg_listing asked = r->listing;
    if (use_what_is_here(r) == TG_OK) {
        tg_pull_note(r->p, true, "the cached copy of %s is used, since the hub cannot be asked: %s", asked.repo,
                     why.message);
        return TG_OK;
    }
    tg_pull_result_free(r->p->result);
    *r->p->err = why;
    return why.status;
}

/* ---- what is here, and what is to be fetched ------------------------------------------------ */

/* A file that has the bytes of an earlier one, and so its place, needs no fetching of its own. */
static bool is_twin(const repo_pull *r, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (strcmp(chosen(r, j)->etag, chosen(r, i)->etag) == 0)
            return true;
    return false;
}

/* The digest that a file must have: what the user says, else what the hub does. */
static void expect(repo_pull *r, size_t i)
{
    tg_puller *p = r->p;
    tg_download *d = &p->downloads[i];
    const char *digest = p->sha256[0] ? p->sha256 : chosen(r, i)->etag;
    d->kind = p->sha256[0] ? TG_DIGEST_SHA256 : tg_etag_kind(chosen(r, i)->etag);
    d->commit = r->listing.commit;
    if (d->kind != TG_DIGEST_NONE)
        snprintf(d->file->digest, sizeof d->file->digest, "%s", digest);
}

static tg_status bad_sha256(const repo_pull *r, size_t i)
{
    tg_quoted q;
    return tg_fail(r->p->err, TG_E_INTEGRITY, r->listing.repo,
                   "%s has another SHA-256 than the one that is asked for (%s)", tg_quote_str(&q, chosen(r, i)->path),
                   r->p->sha256);
}

static tg_status look_at_blob(repo_pull *r, size_t i)
{
    tg_puller *p = r->p;
    const tg_repo_file *file = chosen(r, i);
    struct stat st;
    tg_blob blob = tg_blob_stat(&r->cache, file->etag, &st);
    tg_quoted q;
    if (blob == TG_BLOB_FOREIGN)
        return tg_fail(p->err, TG_E_IO, r->blobs.path, "%s is in the way: neither a file nor a link of the cache's own",
                       tg_quote_str(&q, file->etag));
    bool right = blob == TG_BLOB_HERE && (file->size == TG_SIZE_UNKNOWN || (uint64_t)st.st_size == file->size);
    p->downloads[i].replace = blob == TG_BLOB_HERE;
    if (p->sha256[0] && tg_etag_kind(file->etag) == TG_DIGEST_SHA256 && strcmp(p->sha256, file->etag) != 0)
        return bad_sha256(r, i);
    if (!right || p->params->force)
        return TG_OK;
    if (p->sha256[0] && strcmp(p->sha256, file->etag) != 0) {
        bool same;
        tg_status status = tg_pull_check(p, i, &r->blobs, TG_DIGEST_SHA256, p->sha256, &same);
        if (status != TG_OK || !same)
            return status != TG_OK ? status : bad_sha256(r, i);
    }
    tg_pull_is_here(p, i, (uint64_t)st.st_size);
    return TG_OK;
}

static tg_status look_at_local(repo_pull *r, size_t i, const tg_folder *folder)
{
    tg_puller *p = r->p;
    tg_download *d = &p->downloads[i];
    struct stat st;
    if (folder->fd < 0 || !tg_folder_stat(folder, d->target, &st))
        return TG_OK;
    tg_quoted q;
    if (!S_ISREG(st.st_mode))
        return tg_fail(p->err, TG_E_IO, folder->path, "%s is in the way: it is no regular file",
                       tg_quote_str(&q, d->target));
    d->replace = true;
    bool same = false;
    tg_status status = TG_OK;
    if (!p->params->force && d->kind != TG_DIGEST_NONE && (uint64_t)st.st_size == chosen(r, i)->size)
        status = tg_pull_check(p, i, folder, d->kind, d->file->digest, &same);
    if (status == TG_OK && same)
        tg_pull_is_here(p, i, (uint64_t)st.st_size);
    return status;
}

/* The folder of a file below local_dir, and its name there. A dry run makes none, and finds none then. */
static tg_status open_local(repo_pull *r, size_t i, const char **name)
{
    const tg_puller *p = r->p;
    const char *path = chosen(r, i)->path, *slash = strrchr(path, '/'), *last = i ? chosen(r, i - 1)->path : NULL;
    size_t n = slash ? (size_t)(slash - path) + 1 : 0;
    *name = path + n;
    if (last && strncmp(last, path, n) == 0 && !strchr(last + n, '/'))
        return TG_OK;
    tg_status status =
        tg_folder_open_for(&r->folders[r->n_folders], &r->local, path, !p->params->dry_run, name, p->err);
    r->n_folders++;
    return p->params->dry_run ? TG_OK : status;
}

static tg_status plan_file(repo_pull *r, size_t i)
{
    tg_puller *p = r->p;
    tg_repo_file *file = &r->listing.files[r->choice.files[i]];
    bool local = p->params->local_dir;
    tg_status status = TG_OK;
    if (!file->etag || file->size == TG_SIZE_UNKNOWN)
        status = tg_hub_ask(&r->hub, &r->listing, file, p->err);
    const char *name = file->etag;
    if (status == TG_OK && local)
        status = open_local(r, i, &name);
    const tg_folder *folder = local ? &r->folders[r->n_folders ? r->n_folders - 1 : 0] : &r->blobs;
    if (status == TG_OK)
        status = tg_pull_file(p, i, file->path, file->size, folder, name, file->etag);
    if (status == TG_OK && !(p->downloads[i].url = tg_hub_url(&r->hub, &r->listing, file->path, p->err)))
        status = TG_E_RESOURCE;
    if (status != TG_OK)
        return status;
    expect(r, i);
    if (local)
        return look_at_local(r, i, folder);
    if (!is_twin(r, i))
        return look_at_blob(r, i);
    tg_pull_is_here(p, i, file->size);
    return TG_OK;
}

static tg_status open_places(repo_pull *r)
{
    const tg_puller *p = r->p;
    bool make = !p->params->dry_run;
    r->folders = tg_arena_alloc(p->arena, r->choice.n, sizeof *r->folders, "folders", p->err);
    if (!r->folders)
        return TG_E_RESOURCE;
    if (p->params->local_dir)
        return tg_folder_root(&r->local, p->params->local_dir, make, p->err);
    tg_status status = tg_repo_cache_open(&r->cache, p->set.hub_cache, r->listing.repo, make, p->err);
    return status == TG_OK ? tg_folder_open(&r->blobs, &r->cache.folder, "blobs", make, p->err) : status;
}

static tg_status plan(repo_pull *r)
{
    tg_puller *p = r->p;
    bool dry = p->params->dry_run;
    if (p->sha256[0] && r->choice.n != 1)
        return tg_fail(p->err, TG_E_USAGE, r->listing.repo, "a SHA-256 is of one file (found %zu that are chosen)",
                       r->choice.n);
    tg_status status = tg_pull_files(p, r->choice.n);
    if (status == TG_OK)
        status = open_places(r);
    if (dry && status == TG_E_IO)
        status = TG_OK; /* nothing is there yet */
    for (size_t i = 0; status == TG_OK && i < r->choice.n; i++)
        status = plan_file(r, i);
    return status;
}

/* ---- all of it ----------------------------------------------------------------------------- */

static tg_status finish(repo_pull *r)
{
    const tg_puller *p = r->p;
    const char *below = p->params->local_dir ? r->local.path : snapshot_path(r);
    tg_status status = below ? TG_OK : TG_E_RESOURCE;
    for (size_t i = 0; status == TG_OK && !p->params->local_dir && i < r->choice.n; i++)
        status = tg_snapshot_link(&r->cache, r->listing.commit, chosen(r, i)->path, chosen(r, i)->etag, p->err);
    if (status == TG_OK)
        status = tg_choice_check(&r->listing, &r->choice, below, p->err);
    if (status == TG_OK && !p->params->local_dir)
        status = tg_ref_write(&r->cache, r->listing.revision, r->listing.commit, p->err);
    return status == TG_OK ? set_result(r, below) : status;
}

static tg_status pull_online(repo_pull *r)
{
    tg_puller *p = r->p;
    bool down = false;
    tg_status status = tg_hub_list(&r->hub, &r->listing, &down, p->err);
    if (status != TG_OK)
        return down && !p->params->force ? pull_while_down(r) : status;
    status = tg_choose(&r->listing, &r->wish, &r->choice, p->arena, p->err);
    if (status == TG_OK)
        status = plan(r);
    if (status != TG_OK)
        return status;
    if (p->params->dry_run)
        return set_result(r, p->params->local_dir ? p->params->local_dir : snapshot_path(r));
    status = tg_net_fetch(p->net, p->downloads, p->result->n_files, p->err);
    return status == TG_OK ? finish(r) : status;
}

tg_status tg_pull_repo(tg_puller *p)
{
    repo_pull r = {.p = p,
                   .hub = {.net = p->net, .endpoint = p->set.endpoint, .token = p->set.token, .arena = p->arena},
                   .cache = {.root = TG_FOLDER_NONE, .folder = TG_FOLDER_NONE},
                   .local = TG_FOLDER_NONE,
                   .blobs = TG_FOLDER_NONE};
    tg_status status = make_wish(&r);
    if (status == TG_OK)
        status = p->net ? pull_online(&r) : pull_offline(&r);
    for (size_t i = 0; i < r.n_folders; i++)
        tg_folder_close(&r.folders[i]);
    tg_folder_close(&r.blobs);
    tg_folder_close(&r.local);
    tg_repo_cache_close(&r.cache);
    return status;
}
