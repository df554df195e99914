/* settings.c - the environment, read as huggingface_hub 0.x to 2.x reads it (constants.py, utils/_auth.py). */
#include "fetch/settings.h"

#include <ctype.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/file.h"

enum { TOKEN_FILE_MAX = 1 << 16 };

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static const char *home(void)
{
    const char *value = variable("HOME");
    const struct passwd *user = value ? NULL : getpwuid(getuid());
    return value ? value : user ? user->pw_dir : "/";
}

/* The value of $NAME or ${NAME} at `s`, and where it ends; NULL when there is none: the text stays. */
static const char *value_at(const char *s, const char **end)
{
    bool braces = s[1] == '{';
    const char *name = s + 1 + braces;
    size_t n = 0;
    while (isalnum((unsigned char)name[n]) || name[n] == '_')
        n++;
    char copy[256];
    if (n == 0 || n >= sizeof copy || (braces && name[n] != '}'))
        return NULL;
    memcpy(copy, name, n);
    copy[n] = 0;
    *end = name + n + braces;
    return getenv(copy);
}

/* Adds n bytes to what is written; into `out` unless that is NULL. */
static void put(char *out, size_t *used, const char *s, size_t n)
{
    if (out)
        memcpy(out + *used, s, n);
    *used += n;
}

/* The length of a path with ~ and variables replaced; written to `out` unless that is NULL. */
static size_t expand_to(char *out, const char *s)
{
    size_t used = 0;
    if (s[0] == '~' && (s[1] == '/' || !s[1])) {
        put(out, &used, home(), strlen(home()));
        s++;
    }
    while (*s) {
        const char *end = NULL, *value = *s == '$' ? value_at(s, &end) : NULL;
        put(out, &used, value ? value : s, value ? strlen(value) : 1);
        s = value ? end : s + 1;
    }
    return used;
}

static const char *expand(const char *s, tg_arena *arena, tg_error *err)
{
    char *path = tg_arena_alloc(arena, expand_to(NULL, s) + 1, 1, "a path", err);
    if (path)
        expand_to(path, s);
    return path;
}

/* The first variable of `names` (ended by NULL) that is set, else `folder`/`name`; expanded. */
static const char *place(const char *const *names, const char *folder, const char *name, tg_arena *arena, tg_error *err)
{
    for (; *names; names++)
        if (variable(*names))
            return expand(variable(*names), arena, err);
    const char *path = folder ? tg_arena_format(arena, err, "%s/%s", folder, name) : NULL;
    return path ? expand(path, arena, err) : NULL;
}

static bool is_true(const char *name)
{
    static const char *const spellings[] = {"1", "ON", "YES", "TRUE"};
    const char *value = variable(name);
    for (size_t i = 0; value && i < sizeof spellings / sizeof *spellings; i++)
        if (strcasecmp(value, spellings[i]) == 0)
            return true;
    return false;
}

static tg_status set_endpoint(tg_settings *s, tg_arena *arena, tg_error *err)
{
    const char *url = variable("HF_ENDPOINT") ? variable("HF_ENDPOINT") : "https://huggingface.co";
    size_t scheme = strncmp(url, "https://", 8) == 0 ? 8 : strncmp(url, "http://", 7) == 0 ? 7 : 0, n = strlen(url);
    bool good = scheme && url[scheme] && url[scheme] != '/';
    for (size_t i = 0; i < n; i++)
        good &= url[i] > ' ' && url[i] < 0x7f && !strchr("@?#\\", url[i]);
    if (!good) /* it may hold a password: not shown */
        return tg_fail(err, TG_E_USAGE, "HF_ENDPOINT",
                       "allowed is the address of a hub, such as https://huggingface.co, without a user part");
    while (url[n - 1] == '/')
        n--;
    s->endpoint = tg_arena_string(arena, url, n, err);
    return s->endpoint ? TG_OK : TG_E_RESOURCE;
}

/* Blanks and line ends around a token are none of it. */
static tg_status set_token(tg_settings *s, const char *text, size_t n, const char *from, tg_arena *arena, tg_error *err)
{
    while (n && isspace((unsigned char)text[n - 1]))
        n--;
    while (n && isspace((unsigned char)*text))
        text++, n--;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] <= ' ' || (unsigned char)text[i] >= 0x7f)
            return tg_fail(err, TG_E_USAGE, from, "is no token: there is a byte in it that is not allowed in a header");
    s->token = n ? tg_arena_string(arena, text, n, err) : NULL;
    return n && !s->token ? TG_E_RESOURCE : TG_OK;
}

static tg_status find_token(tg_settings *s, const char *hf_home, tg_arena *arena, tg_error *err)
{
    static const char *const names[] = {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"};
    static const char *const path_names[] = {"HF_TOKEN_PATH", NULL};
    for (int i = 0; i < 2; i++)
        if (variable(names[i])) {
            const char *text = variable(names[i]);
            tg_status status = set_token(s, text, strlen(text), names[i], arena, err);
            if (status != TG_OK || s->token)
                return status;
            break; /* blanks alone: the second variable is not asked either */
        }
    const char *path = place(path_names, hf_home, "token", arena, err);
    if (!path)
        return TG_E_RESOURCE;
    if (!tg_path_exists(path))
        return TG_OK;
    tg_file file;
    tg_status status = tg_file_open(&file, path, TOKEN_FILE_MAX, true, err);
    if (status == TG_OK) {
        status = set_token(s, (const char *)file.data, file.size, path, arena, err);
        tg_file_close(&file);
    }
    return status == TG_E_MODEL ? tg_fail(err, TG_E_IO, path, "is no file that a token could be read from") : status;
}

tg_status tg_settings_read(tg_settings *s, bool offline, tg_arena *arena, tg_error *err)
{
    static const char *const cache_names[] = {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", NULL};
    static const char *const home_names[] = {"HF_HOME", NULL}, *const xdg_names[] = {"XDG_CACHE_HOME", NULL};
    *s = (tg_settings){.offline =
                           offline || is_true(variable("HF_HUB_OFFLINE") ? "HF_HUB_OFFLINE" : "TRANSFORMERS_OFFLINE")};
    const char *cache = place(xdg_names, home(), ".cache", arena, err);
    const char *hf_home = place(home_names, cache, "huggingface", arena, err);
    s->hub_cache = place(cache_names, hf_home, "hub", arena, err);
    s->url_cache = cache ? tg_arena_format(arena, err, "%s/tinygpt", cache) : NULL;
    if (!s->hub_cache || !s->url_cache)
        return TG_E_RESOURCE;
    tg_status status = set_endpoint(s, arena, err);
    return status != TG_OK || s->offline || is_true("HF_HUB_DISABLE_IMPLICIT_TOKEN")
               ? status
               : find_token(s, hf_home, arena, err);
}
