/* names.c - names of models, repositories, revisions and files. */
#include "fetch/names.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fetch/fetch.h"

enum { NAME_MAX_BYTES = 255, PATH_MAX_BYTES = 1024, REPO_PART_MAX = 96 };

/* ---- forms --------------------------------------------------------------------------------- */

bool tg_is_hex(const char *s, size_t n)
{
    size_t k = 0;
    while (k < n && s[k] && strchr("0123456789abcdef", s[k]))
        k++;
    return k == n && !s[n];
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* One of the two parts: letters, digits, "-._", a word's character at both ends. */
static bool is_repo_part(const char *s, size_t n)
{
    if (n == 0 || n > REPO_PART_MAX || !is_word(s[0]) || !is_word(s[n - 1]))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!is_word(s[i]) && s[i] != '-' && s[i] != '.')
            return false;
    return true;
}

tg_status tg_check_repo(const char *repo, tg_error *err)
{
    const char *slash = strchr(repo, '/'), *name = slash ? slash + 1 : repo;
    size_t n = strlen(repo);
    if ((!slash || is_repo_part(repo, (size_t)(slash - repo))) && is_repo_part(name, strlen(name)) &&
        !strstr(repo, "--") && !strstr(repo, "..") && (n < 4 || strcmp(repo + n - 4, ".git") != 0))
        return TG_OK;
    tg_quoted q;
    return tg_fail(
        err, TG_E_USAGE, NULL,
        "%s is no repository's name (allowed: OWNER/NAME of letters, digits, '-', '_' and '.', each up to %d "
        "bytes, without '--' and '..')",
        tg_quote_str(&q, repo), REPO_PART_MAX);
}

tg_status tg_check_revision(const char *revision, tg_error *err)
{
    size_t n = strlen(revision);
    bool good = n > 0 && revision[0] != '-' && revision[0] != '.' && revision[n - 1] != '.' &&
                !strstr(revision, "..") && !tg_bad_path(revision) && (n < 5 || strcmp(revision + n - 5, ".lock") != 0);
    for (size_t i = 0; i < n; i++)
        good &= is_word(revision[i]) || strchr("-.+@=,", revision[i]);
    tg_quoted q;
    return good ? TG_OK
                : tg_fail(err, TG_E_USAGE, NULL,
                          "%s is no revision (allowed: a branch, tag or commit of letters, digits and \"-._+@=,\", "
                          "without '..')",
                          tg_quote_str(&q, revision));
}

/* Names that are devices elsewhere, whatever follows their first dot. */
static bool is_device(const char *s, size_t n)
{
    static const char *const names[] = {"con", "prn", "aux", "nul", "com", "lpt"};
    const char *dot = memchr(s, '.', n);
    size_t stem = dot ? (size_t)(dot - s) : n;
    for (size_t i = 0; i < 6; i++)
        if (stem == (i < 4 ? 3 : 4) && strncasecmp(s, names[i], 3) == 0 && (i < 4 || (s[3] > '0' && s[3] <= '9')))
            return true;
    return false;
}

const char *tg_bad_path(const char *path)
{
    if (!*path)
        return "it is empty";
    if (strlen(path) > PATH_MAX_BYTES)
        return "it is longer than 1024 bytes";
    if (isalpha((unsigned char)path[0]) && path[1] == ':')
        return "it begins with a drive letter";
    for (const char *s = path; *s; s++)
        if ((unsigned char)*s < ' ' || *s == 0x7f || *s == '\\')
            return *s == '\\' ? "there is a '\\' in it" : "there is a control byte in it";
    for (const char *s = path;; s++) {
        size_t n = strcspn(s, "/");
        if (n == 0)
            return s == path ? "it begins with '/'" : "a component of it is empty";
        if (n > NAME_MAX_BYTES)
            return "a component of it is longer than 255 bytes";
        if ((n == 1 && s[0] == '.') || (n == 2 && s[0] == '.' && s[1] == '.'))
            return "'.' and '..' lead elsewhere";
        if (is_device(s, n))
            return "a component of it is the name of a device";
        s += n;
        if (!*s)
            return NULL;
    }
}

char *tg_percent_encode(const char *s, tg_arena *arena, tg_error *err)
{
    char *out = tg_arena_alloc(arena, strlen(s) + 1, 3, "a URL", err), *p = out;
    for (; out && *s; s++)
        if (isalnum((unsigned char)*s) || strchr("-._~/", *s))
            *p++ = *s;
        else
            p += snprintf(p, 4, "%%%02X", (unsigned char)*s);
    return out;
}

/* ---- quantisations and parts --------------------------------------------------------------- */

/* The length of a quantisation's name at s, which ends where a name's part ends; 0: there is none. */
static size_t quant_at(const char *s, size_t n)
{
    static const char *const whole[] = {"F16", "F32", "BF16", "FP16", "FP32", "MXFP4", "NVFP4", "MXFP4_MOE"};
    static const char *const more[] = {"K", "S", "M", "L", "XS", "XL", "XXS", "XXL", "NL"};
    size_t ud = n > 3 && strncasecmp(s, "UD-", 3) == 0 ? 3 : 0, len = ud;
    while (len < n && s[len] != '-' && s[len] != '.' && s[len] != '/')
        len++;
    const char *q = s + ud;
    size_t k = len - ud;
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (k == strlen(whole[i]) && strncasecmp(q, whole[i], k) == 0)
            return len;
    size_t i = k && strchr("iItT", q[0]) ? 1 : 0;
    if (k < i + 2 || (q[i] != 'q' && q[i] != 'Q') || !isdigit((unsigned char)q[i + 1]))
        return 0;
    for (i += 2; i < k;) {
        size_t part = 1;
        while (i + part < k && q[i + part] != '_')
            part++;
        bool known = q[i] == '_' && part == 2 && isdigit((unsigned char)q[i + 1]);
        for (size_t j = 0; q[i] == '_' && j < sizeof more / sizeof *more; j++)
            known |= strlen(more[j]) == part - 1 && strncasecmp(q + i + 1, more[j], part - 1) == 0;
        if (!known)
            return 0;
        i += part;
    }
    return len;
}

/* The last one in a component of a path. */
static size_t quant_in_part(const char *s, size_t n, const char **at)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        size_t len = i == 0 || strchr("-._", s[i - 1]) ? quant_at(s + i, n - i) : 0;
        if (len) {
            *at = s + i;
            found = len;
            i += len - 1;
        }
    }
    return found;
}

size_t tg_quant_in(const char *path, const char **at)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    int no, of;
    size_t n = strlen(name), stem = tg_split_part(name, &no, &of);
    if (!stem)
        stem = n > 5 && strcasecmp(name + n - 5, ".gguf") == 0 ? n - 5 : n;
    size_t found = quant_in_part(name, stem, at);
    if (found || !slash)
        return found;
    const char *folder = slash;
    while (folder > path && folder[-1] != '/')
        folder--;
    return quant_in_part(folder, (size_t)(slash - folder), at);
}

size_t tg_split_part(const char *path, int *no, int *of)
{
    static const char shape[] = "-00000-of-00000.gguf";
    size_t n = strlen(path), k = sizeof shape - 1;
    if (n <= k)
        return 0;
    const char *s = path + n - k;
    for (size_t i = 0; i < k; i++)
        if (shape[i] == '0' ? !isdigit((unsigned char)s[i]) : s[i] != shape[i])
            return 0;
    *no = atoi(s + 1);
    *of = atoi(s + 10);
    return n - k;
}

/* ---- what a name means --------------------------------------------------------------------- */

/* Takes `prefix` from the beginning of *s. */
static bool take_prefix(const char **s, const char *prefix)
{
    size_t n = strlen(prefix);
    if (strncmp(*s, prefix, n) != 0)
        return false;
    *s += n;
    return true;
}

/* Decodes %XX in place; what it comes to is checked as if it had been written so. */
static void decode(char *s)
{
    char *out = s;
    for (; *s; s++) {
        bool coded = s[0] == '%' && isxdigit((unsigned char)s[1]) && isxdigit((unsigned char)s[2]);
        char hex[3] = {coded ? s[1] : 0, coded ? s[2] : 0, 0}, c = coded ? (char)strtol(hex, NULL, 16) : *s;
        *out++ = c ? c : 1; /* a NUL is as bad as any control byte */
        s += coded ? 2 : 0;
    }
    *out = 0;
}

/* OWNER/NAME, with /blob/REV/FILE or the like behind it or not. False: not a page of a model, or out of memory. */
static bool parse_page(tg_name *name, const char *path, tg_arena *arena, tg_error *err)
{
    static const char *const views[] = {"/blob/", "/resolve/", "/raw/", "/tree/"};
    static const char *const others[] = {"datasets/", "spaces/", "api/"};
    char *repo = tg_arena_string(arena, path, strcspn(path, "?#"), err), *view = NULL, *file = NULL;
    for (size_t i = 0; repo && i < sizeof others / sizeof *others; i++)
        if (strncmp(repo, others[i], strlen(others[i])) == 0)
            return false;
    for (size_t i = 0; repo && i < sizeof views / sizeof *views; i++) {
        char *found = strstr(repo, views[i]);
        view = found && (!view || found < view) ? found : view;
    }
    if (!repo)
        return false;
    if (view) {
        bool tree = view[1] == 't';
        *view++ = 0;
        char *revision = strchr(view, '/') + 1;
        file = strchr(revision, '/');
        if (file)
            *file++ = 0;
        if (tree && file && *file)
            return false;
        decode(revision);
        name->revision = revision;
    } else if (*repo && repo[strlen(repo) - 1] == '/') {
        repo[strlen(repo) - 1] = 0;
    }
    char *slash = strchr(repo, '/');
    if (!*repo || (slash && strchr(slash + 1, '/')))
        return false;
    name->repo = repo;
    if (file && *file) {
        decode(file);
        name->file = file;
    }
    return true;
}

/* Is it an address of the hub? Then *path is what follows the hub's own. */
static bool is_of_hub(const char *what, const char *endpoint, const char **path)
{
    static const char *const hosts[] = {"https://huggingface.co/", "http://huggingface.co/", "https://hf.co/",
                                        "huggingface.co/", "hf.co/"};
    *path = what;
    size_t n = strlen(endpoint);
    if (strncmp(what, endpoint, n) == 0 && what[n] == '/') {
        *path = what + n + 1;
        return true;
    }
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        if (take_prefix(path, hosts[i]))
            return true;
    return false;
}

static bool is_url(const char *s)
{
    return strstr(s, "://") != NULL;
}

/* REPO or NAME, and what is behind its colon. */
static tg_status parse_repo(tg_name *name, const char *what, tg_arena *arena, tg_error *err)
{
    const char *colon = strchr(what, ':'), *wish = colon ? colon + 1 : NULL, *at;
    const char *repo = tg_arena_string(arena, what, colon ? (size_t)(colon - what) : strlen(what), err);
    if (!repo)
        return TG_E_RESOURCE;
    name->repo = repo;
    tg_catalog_entry entry;
    for (size_t i = 0; tg_catalog_get(i, &entry); i++)
        if (strcmp(entry.name, repo) == 0) {
            name->repo = entry.repo;
            name->file = entry.file;
        }
    if (!wish)
        return TG_OK;
    bool quant = *wish && tg_quant_in(wish, &at) == strlen(wish);
    name->file = quant ? NULL : wish;
    name->quant = quant ? wish : NULL;
    return TG_OK;
}

static tg_status check_url(const char *url, tg_error *err)
{
    if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
        return tg_fail(err, TG_E_USAGE, NULL, "only http and https URLs are fetched");
    for (const char *s = url; *s; s++)
        if ((unsigned char)*s <= ' ' || (unsigned char)*s >= 0x7f || *s == '\\')
            return tg_fail(err, TG_E_USAGE, NULL, "there is a byte in the URL that must be written as %%XX");
    return TG_OK;
}

tg_status tg_name_parse(tg_name *name, const char *what, const char *endpoint, tg_arena *arena, tg_error *err)
{
    *name = (tg_name){0};
    const char *rest = what;
    if (take_prefix(&rest, "hf:"))
        take_prefix(&rest, "//");
    const char *path;
    bool hub = is_of_hub(rest, endpoint, &path), url = is_url(rest);
    if (url && rest == what && !(hub && parse_page(name, path, arena, err))) {
        tg_status status = check_url(what, err);
        *name = (tg_name){.url = tg_arena_string(arena, what, strcspn(what, "#"), err)};
        return status != TG_OK ? status : name->url ? TG_OK : TG_E_RESOURCE;
    }
    tg_status status = url && rest == what ? TG_OK : parse_repo(name, hub ? path : rest, arena, err);
    if (status == TG_OK)
        status = tg_check_repo(name->repo, err);
    if (status == TG_OK && name->revision)
        status = tg_check_revision(name->revision, err);
    const char *bad = status == TG_OK && name->file ? tg_bad_path(name->file) : NULL;
    tg_quoted q;
    return bad ? tg_fail(err, TG_E_USAGE, NULL, "%s is no name of a file: %s", tg_quote_str(&q, name->file), bad)
               : status;
}
