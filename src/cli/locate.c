/* locate.c - a path, a name of the cache, or what hf: names and is fetched. */
#include "cli/locate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/downloads.h"
#include "cli/options.h"
#include "cli/text.h"

static int fetch(char **path, const char *name, tg_error *err)
{
    tg_pull_params params = {.what = name, .max_wait = atof(TG_MAX_WAIT)};
    tg_pull_result result;
    int status = tg_cli_pull(&params, &result, err);
    if (!status) {
        *path = result.path;
        result.path = NULL;
    }
    tg_pull_result_free(&result);
    return status;
}

/* A name that is neither a path nor pulled, but that pull would know. */
static int fail_known(const char *name, tg_error *err)
{
    tg_catalog_entry entry;
    tg_text_quoted q;
    char size[TG_TEXT_BYTES], way[160] = "";
    for (size_t i = 0; tg_catalog_get(i, &entry); i++)
        if (!strcmp(entry.name, name)) {
            if (tg_can_fetch())
                snprintf(way, sizeof way, ": tinygpt pull %s fetches it (%s, %s)", name, tg_text_bytes(size, entry.size),
                         entry.license);
            return tg_cli_fail(err, TG_E_IO, "%s is not on this machine%s", name, way);
        }
    if (!strncmp(name, "https://", 8) || !strncmp(name, "http://", 7))
        return tg_cli_fail(err, TG_E_IO, "%s is not on this machine%s", tg_text_quote_name(&q, name),
                           tg_can_fetch() ? ": fetch it first, with tinygpt pull" : "");
    return TG_OK;
}

/* Names to compare with, copied. */
typedef struct names {
    const char *name[1024];
    int n;
} names;

static void add(names *all, const char *name, size_t len)
{
    if (name && all->n < (int)(sizeof all->name / sizeof all->name[0]))
        all->name[all->n++] = strndup(name, len);
}

char *tg_locate_nearest(const char *typed, bool catalog)
{
    static names all;
    tg_catalog_entry entry;
    tg_cached_model *models = NULL;
    size_t n_models = 0;
    all.n = 0;
    if (tg_cache_list(&models, &n_models, NULL))
        n_models = 0;
    for (size_t i = 0; i < n_models; i++) {
        add(&all, models[i].name, SIZE_MAX);
        add(&all, models[i].commit ? models[i].name : NULL, strcspn(models[i].name, ":")); /* REPO of REPO:FILE */
        add(&all, models[i].alias, SIZE_MAX);
    }
    tg_cache_free(models, n_models);
    for (size_t i = 0; catalog && tg_catalog_get(i, &entry); i++)
        add(&all, entry.name, SIZE_MAX);
    const char *nearest = tg_options_nearest(typed, all.name, all.n);
    for (int i = 0; i < all.n && !catalog; i++)
        nearest = strcmp(all.name[i], typed) ? nearest : typed;
    char *copy = nearest ? strdup(nearest) : NULL;
    for (int i = 0; i < all.n; i++)
        tg_free((void *)(uintptr_t)all.name[i]);
    return copy;
}

/* OWNER/NAME, as the hub has it, rather than the path of a file. */
static bool is_like_repo(const char *name)
{
    const char *slash = strchr(name, '/');
    return slash && slash > name && *name != '.' && slash[1] && !strchr(slash + 1, '/') && !strstr(slash, ".gguf");
}

/* Nothing of that name is here: says so, unless the loader will say it as well. */
static int check_missing(const char *name, tg_error *err)
{
    tg_text_quoted q, near;
    int status = fail_known(name, err);
    char *nearest = status ? NULL : tg_locate_nearest(name, tg_can_fetch());
    if (nearest)
        status = tg_cli_fail(err, TG_E_IO, "no file and no model '%s' (did you mean %s?)", tg_text_quote_name(&q, name),
                             tg_text_quote(&near, nearest));
    else if (!status && is_like_repo(name) && tg_can_fetch())
        status = tg_cli_fail(err, TG_E_IO, "no file and no model '%s' (hf:%s would be pulled)", tg_text_quote(&q, name),
                             q.text);
    else if (!status && !strpbrk(name, "/."))
        status = tg_cli_fail(err, TG_E_IO, "no file and no model '%s' (tinygpt list tells those that are here%s)",
                             tg_text_quote(&q, name), tg_can_fetch() ? ", and with --catalog those that pull knows" : "");
    free(nearest);
    return status;
}

int tg_locate(char **path, const char *name, tg_error *err)
{
    bool exists = access(name, F_OK) == 0;
    *path = NULL;
    err->message[0] = '\0';
    if (!exists && (*path = tg_cache_find(name, err)))
        return TG_OK;
    if (!exists && err->message[0] && err->status != TG_E_USAGE) /* that is: it cannot be such a name */
        return (int)err->status;
    if (!exists && !strncmp(name, "hf:", 3))
        return fetch(path, name, err);
    int status = exists ? TG_OK : check_missing(name, err);
    if (!status && !(*path = strdup(name)))
        status = tg_cli_fail_memory(err, strlen(name) + 1, "a path");
    return status;
}
