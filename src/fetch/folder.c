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
#include "base/open.h"

enum { SAME_MAX = 1 << 14, DEPTH_MAX = 64 };

/* ---- opening ------------------------------------------------------------------------------- */

static tg_status fail(tg_error *err, const tg_folder *folder, const char *name, const char *what)
{
    int e = errno;
    char *path = name && folder->path ? tg_path_join(folder->path, name, NULL) : NULL;
    const char *shown = path ? path : folder->path ? folder->path : name;
    errno = e;
    tg_status status = e == ELOOP || e == ENOTDIR
                           ? tg_fail(err, TG_E_IO, shown, "%s: a link or a file is in the way", what)
                           : tg_fail_errno(err, shown, what);
    tg_free(path);
    errno = e;
    return status;
}

/* mkdir -p, above the root. */
static bool make_folders(const char *path)
{
    char *copy = strdup(path);
    bool made = copy != NULL;
    for (char *s = copy; made && *s && (s = strchr(s + 1, '/'));) {
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
        folder->fd = tg_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    if (folder->fd >= 0 && (folder->path = realpath(path, NULL)))
        return TG_OK;
    int e = errno;
    tg_status status = tg_fail_errno(err, path, create ? "cannot be created" : "cannot be opened");
    tg_folder_close(folder);
    errno = e;
    return status;
}

/* From folder to folder along the n bytes of a path; -1 with errno. */
static int walk(int above, const char *path, size_t n, bool create)
{
    int at = fcntl(above, F_DUPFD_CLOEXEC, 0);
    for (const char *end = path + n; at >= 0 && path < end;) {
        char name[256];
        size_t k = strcspn(path, "/");
        k = k < (size_t)(end - path) ? k : (size_t)(end - path);
        snprintf(name, sizeof name, "%.*s", (int)k, path);
        int next = -1;
        if (!create || mkdirat(at, name, 0777) == 0 || errno == EEXIST)
            next = tg_open(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
        int e = errno;
        close(at);
        errno = e;
        at = next;
        path += k + (path + k < end);
    }
    return at;
}

static size_t folder_length(const char *path, const char **name)
{
    const char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    return slash ? (size_t)(slash - path) : 0;
}

static tg_status open_length(tg_folder *folder, const tg_folder *above, const char *path, size_t n, bool create,
                             tg_error *err)
{
    *folder = (tg_folder){.fd = -1, .path = tg_alloc(strlen(above->path) + n + 2, 1, "a path", err)};
    if (!folder->path)
        return TG_E_RESOURCE;
    sprintf(folder->path, "%s%s%.*s", above->path, n ? "/" : "", (int)n, path);
    folder->fd = walk(above->fd, path, n, create);
    if (folder->fd >= 0)
        return TG_OK;
    tg_status status = fail(err, folder, NULL, create ? "cannot be created" : "cannot be opened");
    tg_folder_close(folder);
    return status;
}

tg_status tg_folder_open(tg_folder *folder, const tg_folder *above, const char *path, bool create, tg_error *err)
{
    *folder = TG_FOLDER_NONE;
    return above->path ? open_length(folder, above, path, strlen(path), create, err)
                       : tg_fail(err, TG_E_IO, path, "is in no folder that is there");
}

tg_status tg_folder_open_for(tg_folder *folder, const tg_folder *above, const char *path, bool create,
                             const char **name, tg_error *err)
{
    *folder = TG_FOLDER_NONE;
    size_t n = folder_length(path, name);
    return above->path ? open_length(folder, above, path, n, create, err)
                       : tg_fail(err, TG_E_IO, path, "is in no folder that is there");
}

bool tg_folder_enter(tg_folder *folder, const tg_folder *above, const char *path)
{
    *folder = (tg_folder){.fd = walk(above->fd, path, strlen(path), false)};
    return folder->fd >= 0;
}

bool tg_folder_enter_for(tg_folder *folder, const tg_folder *above, const char *path, const char **name)
{
    *folder = (tg_folder){.fd = walk(above->fd, path, folder_length(path, name), false)};
    return folder->fd >= 0;
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
    char old[SAME_MAX];
    if (n + 1 < sizeof old && tg_folder_read(folder, name, old, n + 2) && strlen(old) == n &&
        memcmp(old, bytes, n) == 0)
        return TG_OK;
    tg_newfile f;
    tg_status status = tg_newfile_create_at(&f, folder->fd, name, ".tmp", 0666, err);
    if (status == TG_OK)
        status = tg_newfile_write(&f, bytes, n, err);
    return status == TG_OK ? tg_newfile_commit(&f, err) : (tg_newfile_discard(&f), status);
}

tg_status tg_folder_link(const tg_folder *folder, const char *name, const char *target, tg_error *err)
{
    char old[TG_LINK_ROOM], other[32];
    if (tg_folder_read_link(folder, name, old) && strcmp(old, target) == 0)
        return TG_OK;
    temporary(other);
    if (symlinkat(target, folder->fd, other) == 0 && renameat(folder->fd, other, folder->fd, name) == 0)
        return TG_OK;
    tg_status status = fail(err, folder, name, "cannot be linked");
    unlinkat(folder->fd, other, 0);
    return status;
}

bool tg_folder_read(const tg_folder *folder, const char *name, char *text, size_t room)
{
    int fd = tg_open(folder->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    struct stat st;
    bool good = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size < room;
    size_t n = 0;
    for (ssize_t did = 1; good && did != 0 && n + 1 < room;) {
        did = read(fd, text + n, room - 1 - n);
        good = did >= 0 || errno == EINTR;
        n += did > 0 ? (size_t)did : 0;
    }
    if (fd >= 0)
        close(fd);
    text[good ? n : 0] = 0;
    return good;
}

bool tg_folder_read_link(const tg_folder *folder, const char *name, char target[TG_LINK_ROOM])
{
    ssize_t n = readlinkat(folder->fd, name, target, TG_LINK_ROOM);
    target[n > 0 && n < TG_LINK_ROOM ? n : 0] = 0;
    return *target;
}

/* ---- trees --------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

tg_status tg_folder_names(const tg_folder *folder, char ***names, tg_arena *arena, tg_error *err)
{
    int fd = tg_open(folder->fd, ".", O_RDONLY | O_DIRECTORY, 0);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (fd >= 0 && !dir)
        close(fd);
    if (!dir && errno == ENOMEM)
        return tg_fail_alloc(err, 0, "the names in a folder");
    char **found = NULL;
    size_t n = 0, room = 0;
    bool good = true;
    for (const struct dirent *e; good && dir && (e = readdir(dir));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        good = tg_grow((void **)&found, &room, n + 1, sizeof *found, "names of files", err) &&
               (found[n] = tg_arena_string(arena, e->d_name, strlen(e->d_name), err));
        n += good;
    }
    if (dir)
        closedir(dir);
    *names = good ? tg_arena_alloc(arena, n + 1, sizeof **names, "names of files", err) : NULL;
    if (*names && n) {
        qsort(found, n, sizeof *found, compare);
        memcpy(*names, found, n * sizeof *found);
    }
    tg_free(found);
    return *names ? TG_OK : TG_E_RESOURCE;
}

static tg_status remove_at(const tg_folder *folder, const char *name, int depth, uint64_t *freed, tg_error *err);

static tg_status empty_at(const tg_folder *folder, const char *name, int depth, uint64_t *freed, tg_error *err)
{
    tg_folder below;
    char **names = NULL;
    if (depth == DEPTH_MAX || !tg_folder_enter(&below, folder, name))
        return fail(err, folder, name, "cannot be removed");
    tg_arena *arena = tg_arena_create(err);
    tg_status status = arena ? tg_folder_names(&below, &names, arena, err) : TG_E_RESOURCE;
    for (size_t i = 0; status == TG_OK && names[i]; i++)
        status = remove_at(&below, names[i], depth + 1, freed, err);
    tg_folder_close(&below);
    tg_arena_free(arena);
    return status;
}

static tg_status remove_at(const tg_folder *folder, const char *name, int depth, uint64_t *freed, tg_error *err)
{
    struct stat st;
    if (!tg_folder_stat(folder, name, &st))
        return errno == ENOENT ? TG_OK : fail(err, folder, name, "cannot be removed");
    bool is_folder = S_ISDIR(st.st_mode);
    tg_status status = is_folder ? empty_at(folder, name, depth, freed, err) : TG_OK;
    if (status != TG_OK)
        return status;
    if (unlinkat(folder->fd, name, is_folder ? AT_REMOVEDIR : 0) != 0)
        return errno == ENOENT ? TG_OK : fail(err, folder, name, "cannot be removed");
    *freed += S_ISREG(st.st_mode) && st.st_nlink < 2 ? (uint64_t)st.st_size : 0;
    return TG_OK;
}

tg_status tg_folder_remove(const tg_folder *folder, const char *name, uint64_t *freed, tg_error *err)
{
    return remove_at(folder, name, 0, freed, err);
}
