/* folder.c - openat and its relatives, with O_NOFOLLOW everywhere. */
#include "fetch/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/file.h"
#include "base/newfile.h"

enum { LINK_MAX_BYTES = 4096, DEPTH_MAX = 64 };

/* ---- opening ------------------------------------------------------------------------------- */

static tg_status fail(tg_error *err, const tg_folder *folder, const char *name, const char *what)
{
    int e = errno;
    char *path = name ? tg_path_join(folder->path, name, NULL) : NULL;
    errno = e;
    tg_status status = e == ELOOP || e == ENOTDIR
                           ? tg_fail(err, TG_E_IO, path ? path : folder->path, "%s: a link or a file is in the way", what)
                           : tg_fail_errno(err, path ? path : folder->path, what);
    tg_free(path);
    errno = e;
    return status;
}

/* mkdir -p, above the root. */
static bool make_folders(const char *path)
{
    char *copy = strdup(path);
    bool made = copy != NULL;
    for (char *s = copy; made && (s = strchr(s + 1, '/'));) {
        *s = 0;
        made = mkdir(copy, 0777) == 0 || errno == EEXIST;
        *s = '/';
    }
    made = made && (mkdir(copy, 0777) == 0 || errno == EEXIST);
    free(copy);
    return made;
}

tg_status tg_folder_root(tg_folder *folder, const char *path, bool create, tg_error *err)
{
    *folder = TG_FOLDER_NONE;
    if (!create || make_folders(path))
        folder->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->fd >= 0 && (folder->path = realpath(path, NULL)))
        return TG_OK;
    int e = errno;
    tg_status status = tg_fail_errno(err, path, create ? "cannot be created" : "cannot be opened");
    tg_folder_close(folder);
    errno = e;
    return status;
}

tg_status tg_folder_open(tg_folder *folder, const tg_folder *above, const char *path, bool create, tg_error *err)
{
    *folder = TG_FOLDER_NONE;
    if (above->fd < 0) {
        errno = ENOENT;
        return tg_fail_errno(err, path, "cannot be opened");
    }
    tg_folder f = {.fd = above->fd, .path = tg_path_join(above->path, path, err)};
    tg_status status = f.path ? TG_OK : TG_E_RESOURCE;
    for (const char *s = path; status == TG_OK && *s;) {
        char name[256];
        size_t n = strcspn(s, "/");
        snprintf(name, sizeof name, "%.*s", (int)n, s);
        int fd = -1;
        if (!create || mkdirat(f.fd, name, 0777) == 0 || errno == EEXIST)
            fd = openat(f.fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            status = fail(err, &f, NULL, create ? "cannot be created" : "cannot be opened");
        int e = errno;
        if (f.fd != above->fd)
            close(f.fd);
        errno = e;
        f.fd = fd;
        s += n + (s[n] == '/');
    }
    *folder = status == TG_OK ? f : TG_FOLDER_NONE;
    if (status != TG_OK) {
        int e = errno;
        tg_free(f.path);
        errno = e;
    }
    return status;
}

tg_status tg_folder_open_for(tg_folder *folder, const tg_folder *above, const char *path, bool create, const char **name,
                             tg_error *err)
{
    const char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    if (!slash) {
        *folder = (tg_folder){.fd = fcntl(above->fd, F_DUPFD_CLOEXEC, 0), .path = strdup(above->path)};
        if (folder->fd >= 0 && folder->path)
            return TG_OK;
        tg_status status = tg_fail_errno(err, above->path, "cannot be opened");
        tg_folder_close(folder);
        return status;
    }
    char *copy = strndup(path, (size_t)(slash - path));
    tg_status status = copy ? tg_folder_open(folder, above, copy, create, err) : tg_fail_alloc(err, 0, "a path");
    int e = errno;
    free(copy);
    errno = e;
    return status;
}

void tg_folder_close(tg_folder *folder)
{
    if (folder->fd >= 0)
        close(folder->fd);
    tg_free(folder->path);
    *folder = TG_FOLDER_NONE;
}

/* ---- files --------------------------------------------------------------------------------- */

bool tg_folder_stat(const tg_folder *folder, const char *name, struct stat *st)
{
    return fstatat(folder->fd, name, st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* A name that nothing has yet; what is left of it after a crash is seen to be nobody's. */
static void temporary(char out[32])
{
    uint64_t number = (uint64_t)getpid();
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        number++;
    snprintf(out, 32, ".%016llx.tmp", (unsigned long long)number);
}

tg_status tg_folder_write(const tg_folder *folder, const char *name, const void *bytes, size_t n, tg_error *err)
{
    size_t n_old;
    char *old = tg_folder_read(folder, name, n, &n_old);
    bool same = old && n_old == n && memcmp(old, bytes, n) == 0;
    tg_free(old);
    if (same)
        return TG_OK;
    tg_newfile f;
    tg_status status = tg_newfile_create_at(&f, folder->fd, name, ".tmp", 0600, err);
    if (status == TG_OK)
        status = tg_newfile_write(&f, bytes, n, err);
    return status == TG_OK ? tg_newfile_commit(&f, err) : (tg_newfile_discard(&f), status);
}

tg_status tg_folder_link(const tg_folder *folder, const char *name, const char *target, tg_error *err)
{
    char *old = tg_folder_read_link(folder, name), other[32];
    bool same = old && strcmp(old, target) == 0;
    tg_free(old);
    if (same)
        return TG_OK;
    temporary(other);
    if (symlinkat(target, folder->fd, other) == 0 && renameat(folder->fd, other, folder->fd, name) == 0)
        return TG_OK;
    tg_status status = fail(err, folder, name, "cannot be linked");
    unlinkat(folder->fd, other, 0);
    return status;
}

char *tg_folder_read(const tg_folder *folder, const char *name, size_t max_bytes, size_t *n)
{
    int fd = openat(folder->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    char *text = NULL;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size <= max_bytes)
        text = tg_alloc((size_t)st.st_size + 1, 1, "a file", NULL);
    ssize_t did = 1;
    for (*n = 0; text && did > 0 && *n < (size_t)st.st_size; *n += did > 0 ? (size_t)did : 0)
        did = read(fd, text + *n, (size_t)st.st_size - *n);
    if (fd >= 0)
        close(fd);
    if (text && did >= 0)
        return text;
    tg_free(text);
    return NULL;
}

char *tg_folder_read_link(const tg_folder *folder, const char *name)
{
    char target[LINK_MAX_BYTES];
    ssize_t n = readlinkat(folder->fd, name, target, sizeof target);
    return n > 0 && (size_t)n < sizeof target ? strndup(target, (size_t)n) : NULL;
}

/* ---- trees --------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char **tg_folder_names(const tg_folder *folder, tg_arena *arena)
{
    int fd = openat(folder->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    char **names = NULL, **sorted = NULL;
    size_t n = 0, room = 0;
    bool good = true;
    for (const struct dirent *e; good && (e = readdir(dir));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        good = tg_grow((void **)&names, &room, n + 1, sizeof *names, "names of files", NULL) &&
               (names[n] = tg_arena_string(arena, e->d_name, strlen(e->d_name), NULL));
        n += good;
    }
    closedir(dir);
    if (n)
        qsort(names, n, sizeof *names, compare);
    if (good && (sorted = tg_arena_alloc(arena, n + 1, sizeof *sorted, "names of files", NULL)) && n)
        memcpy(sorted, names, n * sizeof *names);
    tg_free(names);
    return sorted;
}

static tg_status remove_at(const tg_folder *folder, const char *name, int depth, uint64_t *freed, tg_error *err)
{
    struct stat st;
    if (!tg_folder_stat(folder, name, &st))
        return errno == ENOENT ? TG_OK : fail(err, folder, name, "cannot be removed");
    if (!S_ISDIR(st.st_mode)) {
        if (unlinkat(folder->fd, name, 0) != 0 && errno != ENOENT)
            return fail(err, folder, name, "cannot be removed");
        *freed += S_ISREG(st.st_mode) && st.st_nlink < 2 ? (uint64_t)st.st_size : 0;
        return TG_OK;
    }
    if (depth == DEPTH_MAX)
        return tg_fail(err, TG_E_IO, folder->path, "cannot be removed: folders in folders, too deep");
    tg_folder below = TG_FOLDER_NONE;
    tg_arena *arena = tg_arena_create(err);
    tg_status status = arena ? tg_folder_open(&below, folder, name, false, err) : TG_E_RESOURCE;
    char **names = status == TG_OK ? tg_folder_names(&below, arena) : NULL;
    for (size_t i = 0; status == TG_OK && names && names[i]; i++)
        status = remove_at(&below, names[i], depth + 1, freed, err);
    tg_folder_close(&below);
    tg_arena_free(arena);
    if (status == TG_OK && unlinkat(folder->fd, name, AT_REMOVEDIR) != 0)
        status = fail(err, folder, name, "cannot be removed");
    return status;
}

tg_status tg_folder_remove(const tg_folder *folder, const char *name, uint64_t *freed, tg_error *err)
{
    return remove_at(folder, name, 0, freed, err);
}
