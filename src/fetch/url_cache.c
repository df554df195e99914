/* url_cache.c - where files of URLs lie, and what is noted of them. */
#include "fetch/url_cache.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "fetch/names.h"

enum { RECORD_MAX_BYTES = 1 << 14, HOST_MAX = 255 };

/* The place of a URL's file in the cache, and the URL as it may be shown. */
static tg_status place_of(const char *url, const char **place, const char **shown, tg_arena *arena, tg_error *err)
{
    const char *host = strstr(url, "://") + 3;
    size_t n_scheme = (size_t)(host - url), n_host = strcspn(host, "/?");
    for (size_t i = n_host; i > 0; i--)
        if (host[i - 1] == '@') { /* user and password before it */
            host += i;
            n_host -= i;
            break;
        }
    size_t n = strcspn(host, "?");
    char *copy = tg_arena_string(arena, host, n, err);
    for (size_t i = 0; copy && i < n_host; i++)
        copy[i] = (char)tolower((unsigned char)copy[i]);
    *place = copy;
    *shown = copy ? tg_arena_format(arena, err, "%.*s%s", (int)n_scheme, url, copy) : NULL;
    if (!*shown)
        return TG_E_RESOURCE;
    bool host_good = isalnum((unsigned char)copy[0]) || copy[0] == '[';
    for (size_t i = 0; i < n_host; i++)
        host_good &= isalnum((unsigned char)copy[i]) || strchr("-._:[]", copy[i]);
    const char *bad = !host_good || n_host > HOST_MAX     ? "its host is none"
                      : n == n_host || copy[n - 1] == '/' ? "it names no file"
                                                          : tg_bad_path(copy + n_host + 1);
    return bad ? tg_fail(err, TG_E_USAGE, *shown, "cannot be kept under its name: %s", bad) : TG_OK;
}

void tg_url_record_name(const char *name, char out[256])
{
    snprintf(out, 256, ".%.240s.json", name);
}

tg_status tg_url_record_read(const tg_folder *folder, const char *name, tg_url_record *record, bool *here,
                             tg_error *err)
{
    char file[256], text[RECORD_MAX_BYTES];
    struct stat st;
    tg_error own = {0};
    tg_url_record_name(name, file);
    bool read = tg_folder_read(folder, file, text, sizeof text);
    json_t *root = read ? tg_json_parse(text, strlen(text), file, &own) : NULL;
    const char *url = json_string_value(json_object_get(root, "url")),
               *etag = json_string_value(json_object_get(root, "etag")),
               *digest = json_string_value(json_object_get(root, "sha256"));
    const json_t *size = json_object_get(root, "size");
    bool good = url && strstr(url, "://") && strlen(url) < sizeof record->url && etag && strlen(etag) < sizeof record->etag && digest &&
                strlen(digest) == 64 && tg_is_hex(digest, 64) && json_is_integer(size) &&
                tg_folder_stat(folder, name, &st) && S_ISREG(st.st_mode) && st.st_size == json_integer_value(size);
    if (good) {
        snprintf(record->url, sizeof record->url, "%s", url);
        snprintf(record->etag, sizeof record->etag, "%s", etag);
        snprintf(record->sha256, sizeof record->sha256, "%s", digest);
        record->size = (uint64_t)st.st_size;
    }
    json_decref(root);
    *here = good;
    if (own.status != TG_E_RESOURCE)
        return TG_OK;
    if (err)
        *err = own;
    return TG_E_RESOURCE;
}

tg_status tg_url_record_write(const tg_folder *folder, const char *name, const tg_url_record *record, tg_error *err)
{
    char file[256];
    tg_url_record_name(name, file);
    json_t *root = json_pack("{s:s, s:s, s:I, s:s}", "url", record->url, "etag", record->etag, "size",
                             (json_int_t)record->size, "sha256", record->sha256);
    char *text = tg_json_text(root, JSON_INDENT(1), "the record of a file", err);
    tg_status status = text ? tg_folder_write(folder, file, text, strlen(text), err) : TG_E_RESOURCE;
    tg_free(text);
    json_decref(root);
    return status;
}

tg_status tg_url_open(tg_url_copy *copy, const char *url, const char *root, bool flat, bool create, tg_arena *arena,
                      tg_error *err)
{
    *copy = (tg_url_copy){.root = TG_FOLDER_NONE, .folder = TG_FOLDER_NONE};
    tg_status status = place_of(url, &copy->place, &copy->shown, arena, err);
    if (status != TG_OK)
        return status;
    copy->name = strrchr(copy->place, '/') + 1;
    copy->place = flat ? copy->name : copy->place;
    status = tg_folder_root(&copy->root, root, create, err);
    if (status == TG_OK)
        status = tg_folder_open_for(&copy->folder, &copy->root, copy->place, create, &copy->name, err);
    if (status == TG_OK)
        status = tg_url_record_read(&copy->folder, copy->name, &copy->record, &copy->here, err);
    copy->here = copy->here && strcmp(copy->record.url, copy->shown) == 0;
    return status;
}

void tg_url_close(tg_url_copy *copy)
{
    tg_folder_close(&copy->folder);
    tg_folder_close(&copy->root);
}
