/* hub.c - requests to the hub's interface, and its answers. */
#include "fetch/hub.h"

#include <ctype.h>
#include <string.h>

#include "base/json.h"
#include "fetch/names.h"

/* What is chosen from a listing takes more than linear time. */
enum { LISTING_MAX_BYTES = 8 << 20, LISTING_MAX_FILES = 20000 };

tg_digest_kind tg_etag_kind(const char *etag)
{
    size_t n = etag ? strlen(etag) : 0;
    if ((n != 64 && n != 40) || !tg_is_hex(etag, n))
        return TG_DIGEST_NONE;
    return n == 64 ? TG_DIGEST_SHA256 : TG_DIGEST_GIT_BLOB;
}

char *tg_hub_url(const tg_hub *hub, const tg_listing *l, const char *path, tg_error *err)
{
    char *encoded = tg_percent_encode(path, hub->arena, err);
    return encoded ? tg_arena_format(hub->arena, err, "%s/%s/resolve/%s/%s", hub->endpoint, l->repo, l->commit, encoded)
                   : NULL;
}

/* ---- refusals ------------------------------------------------------------------------------ */

/* Says what a refusal means here; leaves err as it is for those that mean nothing in particular. */
static tg_status explain(const tg_hub *hub, const tg_listing *l, const char *path, const tg_reply *reply, tg_error *err)
{
    tg_quoted q, r;
    const char *code = reply->error_code;
    bool gated = strcmp(code, "GatedRepo") == 0;
    if (reply->http == 403 || (reply->http == 401 && gated))
        return tg_fail(err, TG_E_NETWORK, NULL, "%s: access must be granted at %s/%s%s", l->repo, hub->endpoint,
                       l->repo, hub->token ? "" : "; then set HF_TOKEN");
    if (reply->http == 401)
        return tg_fail(err, TG_E_NETWORK, NULL, "%s: not found, or a token is needed: set HF_TOKEN%s", l->repo,
                       hub->token ? " (the one that was sent was not accepted)" : "");
    if (reply->http != 404)
        return err->status;
    if (path && strcmp(code, "RepoNotFound") != 0 && strcmp(code, "RevisionNotFound") != 0)
        return tg_fail(err, TG_E_NETWORK, NULL, "%s: there is no file %s in this repository", l->repo,
                       tg_quote_str(&q, path));
    if (strcmp(code, "RevisionNotFound") == 0)
        return tg_fail(err, TG_E_NETWORK, NULL, "%s: there is no revision %s in this repository", l->repo,
                       tg_quote_str(&r, l->revision));
    return tg_fail(err, TG_E_NETWORK, NULL, "%s: there is no such repository%s", l->repo,
                   hub->token ? "" : ", or it is private: set HF_TOKEN");
}

/* ---- the listing --------------------------------------------------------------------------- */

static tg_status no_listing(const tg_listing *l, const char *what, tg_error *err)
{
    return tg_fail(err, TG_E_INTEGRITY, l->repo, "the hub's answer is no listing of a repository: %s", what);
}

/* A size that is one; TG_SIZE_UNKNOWN for what is not there. */
static bool get_size(const json_t *object, uint64_t *size)
{
    const json_t *value = json_object_get(object, "size");
    *size = json_is_integer(value) ? (uint64_t)json_integer_value(value) : TG_SIZE_UNKNOWN;
    return !value || json_is_null(value) || (json_is_integer(value) && json_integer_value(value) >= 0);
}

static tg_status read_file(const json_t *value, const tg_listing *l, tg_repo_file *file, tg_arena *arena, tg_error *err)
{
    const char *path = json_string_value(json_object_get(value, "rfilename"));
    const json_t *lfs = json_object_get(value, "lfs");
    lfs = json_is_object(lfs) ? lfs : NULL;
    const char *digest = json_string_value(lfs ? json_object_get(lfs, "sha256") : json_object_get(value, "blobId"));
    if (!path)
        return no_listing(l, "a file without a name", err);
    tg_quoted q;
    const char *bad = tg_bad_path(path);
    if (bad)
        return tg_fail(err, TG_E_NETWORK, l->repo, "the hub names a file %s, which is refused: %s",
                       tg_quote_str(&q, path), bad);
    if (!get_size(lfs && json_object_get(lfs, "size") ? lfs : value, &file->size))
        return no_listing(l, "the size of a file is no number", err);
    if (digest && (lfs ? tg_etag_kind(digest) != TG_DIGEST_SHA256 : tg_etag_kind(digest) != TG_DIGEST_GIT_BLOB))
        return no_listing(l, "the digest of a file is none", err);
    file->path = tg_arena_string(arena, path, strlen(path), err);
    file->etag = digest ? tg_arena_string(arena, digest, strlen(digest), err) : NULL;
    return file->path && (file->etag || !digest) ? TG_OK : TG_E_RESOURCE;
}

static tg_status read_listing(const json_t *root, tg_listing *l, tg_arena *arena, tg_error *err)
{
    const char *commit = json_string_value(json_object_get(root, "sha"));
    const json_t *files = json_object_get(root, "siblings"), *gated = json_object_get(root, "gated"), *value;
    if (!commit || strlen(commit) != 40 || !tg_is_hex(commit, 40))
        return no_listing(l, "it names no commit", err);
    if (!json_is_array(files))
        return no_listing(l, "it has no files", err);
    if (json_array_size(files) > LISTING_MAX_FILES)
        return tg_fail(err, TG_E_NETWORK, l->repo, "too many files (found %zu, allowed %d)", json_array_size(files),
                       LISTING_MAX_FILES);
    l->gated = gated && !json_is_false(gated) && !json_is_null(gated);
    l->commit = tg_arena_string(arena, commit, 40, err);
    l->files = tg_arena_alloc(arena, json_array_size(files), sizeof *l->files, "a listing", err);
    if (!l->commit || !l->files)
        return TG_E_RESOURCE;
    size_t i;
    json_array_foreach(files, i, value)
    {
        tg_status status = read_file(value, l, &l->files[l->n], arena, err);
        if (status != TG_OK)
            return status;
        l->n++;
    }
    return TG_OK;
}

tg_status tg_hub_list(const tg_hub *hub, tg_listing *l, bool *down, tg_error *err)
{
    tg_reply reply = {0};
    char *revision = tg_percent_encode(l->revision, hub->arena, err);
    char *url = revision ? tg_arena_format(hub->arena, err, "%s/api/models/%s/revision/%s?blobs=true", hub->endpoint,
                                           l->repo, revision)
                         : NULL;
    if (!url)
        return TG_E_RESOURCE;
    tg_status status = tg_net_get(hub->net, url, LISTING_MAX_BYTES, &reply, err);
    *down = reply.down;
    if (status != TG_OK)
        return explain(hub, l, NULL, &reply, err);
    json_t *root = tg_json_parse(reply.body, reply.n, l->repo, err);
    if (!root && err->status == TG_E_MODEL)
        status = no_listing(l, "not JSON; is there a login page before the network?", err);
    else if (!root)
        status = err->status;
    else
        status = read_listing(root, l, hub->arena, err);
    json_decref(root);
    tg_free(reply.body);
    return status;
}

tg_status tg_hub_ask(const tg_hub *hub, const tg_listing *l, tg_repo_file *file, tg_error *err)
{
    tg_reply reply = {0};
    char *url = tg_hub_url(hub, l, file->path, err);
    if (!url)
        return TG_E_RESOURCE;
    if (tg_net_get(hub->net, url, 0, &reply, err) != TG_OK)
        return explain(hub, l, file->path, &reply, err);
    tg_free(reply.body);
    if (file->size == TG_SIZE_UNKNOWN)
        file->size = reply.size;
    /* The commit is pinned: an ETag names the bytes whether it is a digest or not, if it can be a blob's name. */
    if (!file->etag && reply.etag[0] && !reply.weak && !strchr(reply.etag, '/') && !tg_bad_path(reply.etag))
        file->etag = tg_arena_string(hub->arena, reply.etag, strlen(reply.etag), err);
    if (file->etag)
        return TG_OK;
    tg_quoted q;
    return tg_fail(err, TG_E_NETWORK, l->repo, "the hub gives neither digest nor ETag of %s",
                   tg_quote_str(&q, file->path));
}
