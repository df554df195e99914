/* newfile.c - no name or a temporary one, fsync, rename, fsync of the folder; every call is checked. */
#include "base/newfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/open.h"

static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

static const char *name_of(const char *path)
{
    return path + folder_length(path);
}

/* The target behind links, and whether it is one that can be replaced; its folder. */
static tg_status resolve(tg_newfile *f, const char *path, tg_error *err)
{
    struct stat st;
    bool exists = stat(path, &st) == 0;
    if (exists && !S_ISREG(st.st_mode))
        return tg_fail(err, TG_E_IO, path, "cannot be written: it is not a regular file");
    if (!exists && errno != ENOENT)
        return tg_fail_errno(err, path, "cannot be created");
    f->path = exists ? realpath(path, NULL) : strdup(path);
    char *folder = f->path ? strndup(f->path, folder_length(f->path)) : NULL;
    f->folder = folder ? tg_open(AT_FDCWD, *folder ? folder : ".", O_RDONLY | O_DIRECTORY, 0) : -1;
    free(folder);
    return f->folder >= 0 ? TG_OK : tg_fail_errno(err, path, "cannot be created");
}

const char *tg_newfile_place(const tg_newfile *f, char room[TG_PLACE_BYTES])
{
    snprintf(room, TG_PLACE_BYTES, "/proc/self/fd/%d", f->fd);
    return f->temporary ? f->temporary : room;
}

static bool open_named(tg_newfile *f, mode_t mode)
{
    f->fd = tg_open(f->folder, name_of(f->temporary), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
    return f->fd >= 0;
}

static bool give_name(tg_newfile *f, mode_t mode)
{
    char room[TG_PLACE_BYTES];
    const tg_newfile nameless = {.fd = f->fd};
    (void)mode;
    return linkat(AT_FDCWD, tg_newfile_place(&nameless, room), f->folder, name_of(f->temporary), AT_SYMLINK_FOLLOW) == 0;
}

/* Finds a temporary name that is free, and makes it stand for the file. */
static tg_status take_temporary(tg_newfile *f, const char *suffix, mode_t mode, bool (*take)(tg_newfile *f, mode_t mode),
                                tg_error *err)
{
    size_t room = strlen(f->path) + strlen(suffix) + 16;
    uint32_t number = (uint32_t)getpid();
    f->temporary = tg_alloc(room, 1, "a file name", err);
    if (!f->temporary)
        return TG_E_RESOURCE;
    for (int attempt = 0; attempt < 16; attempt++) {
        if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
            number++;
        snprintf(f->temporary, room, "%.*s.%.200s.%08x%s", (int)folder_length(f->path), f->path, name_of(f->path),
                 number, suffix);
        if (take(f, mode))
            return TG_OK;
        if (errno != EEXIST && errno != EINTR)
            break;
    }
    tg_status status = tg_fail_errno(err, f->path, "cannot be created");
    tg_free(f->temporary);
    f->temporary = NULL;
    return status;
}

/* Without a name, where the file system knows that: then nothing is left of it whatever ends the process. */
static bool open_nameless(tg_newfile *f, mode_t mode)
{
    char room[TG_PLACE_BYTES];
    f->fd = tg_open(f->folder, ".", O_TMPFILE | O_RDWR, mode);
    if (f->fd < 0 || access(tg_newfile_place(f, room), F_OK) == 0) /* which needs /proc */
        return f->fd >= 0;
    close(f->fd);
    f->fd = -1;
    return false;
}

/* Without a change of the length, the system does not compare it with the limit. */
static int reserve(int fd, uint64_t from, uint64_t size)
{
    struct rlimit limit;
    if (size > INT64_MAX || (getrlimit(RLIMIT_FSIZE, &limit) == 0 && size > limit.rlim_cur)) {
        errno = EFBIG;
        return -1;
    }
    int rc;
    do {
        rc = size > from ? fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)from, (off_t)(size - from)) : 0;
    } while (rc != 0 && errno == EINTR);
    return rc;
}

tg_status tg_newfile_reserve(const tg_newfile *f, uint64_t from, uint64_t size, tg_error *err)
{
    if (reserve(f->fd, from, size) == 0 || errno == EOPNOTSUPP || errno == ENOSYS)
        return TG_OK;
    char what[64];
    snprintf(what, sizeof what, "no room for %.1f MiB", (double)(size - from) / 1048576);
    return tg_fail_errno(err, f->path, what);
}

tg_status tg_newfile_create(tg_newfile *f, const char *path, uint64_t size, mode_t mode, tg_error *err)
{
    *f = (tg_newfile){.fd = -1, .folder = -1};
    tg_status status = resolve(f, path, err);
    if (status == TG_OK && !open_nameless(f, mode))
        status = take_temporary(f, ".tmp", mode, open_named, err);
    if (status == TG_OK)
        status = tg_newfile_reserve(f, 0, size, err);
    if (status != TG_OK)
        tg_newfile_discard(f);
    return status;
}

tg_status tg_newfile_create_at(tg_newfile *f, int folder, const char *name, const char *suffix, mode_t mode,
                               tg_error *err)
{
    *f = (tg_newfile){.fd = -1, .folder = folder, .borrowed = true, .path = strdup(name)};
    tg_status status = f->path ? take_temporary(f, suffix, mode, open_named, err)
                               : tg_fail_alloc(err, strlen(name) + 1, "a file name");
    if (status != TG_OK)
        tg_newfile_discard(f);
    return status;
}

tg_status tg_newfile_write(const tg_newfile *f, const void *bytes, size_t n, tg_error *err)
{
    for (const char *p = bytes; n > 0;) {
        ssize_t did = write(f->fd, p, n < (1u << 30) ? n : 1u << 30);
        if (did < 0 && errno != EINTR)
            return tg_fail_errno(err, f->path, "cannot be written");
        if (did > 0) {
            p += did;
            n -= (size_t)did;
        }
    }
    return TG_OK;
}

/* Some file systems (NFS) know no renaming that spares what is there: look first, then. */
static int rename_sparing(int folder, const char *from, const char *to)
{
    int rc = renameat2(folder, from, folder, to, RENAME_NOREPLACE);
    if (rc == 0 || (errno != EINVAL && errno != ENOSYS))
        return rc;
    struct stat st;
    if (fstatat(folder, to, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        errno = EEXIST;
        return -1;
    }
    return renameat(folder, from, folder, to);
}

static int sync_to_disk(int fd)
{
    int rc;
    do {
        rc = fsync(fd);
    } while (rc != 0 && errno == EINTR);
    return rc;
}

tg_status tg_newfile_finish(tg_newfile *f, bool replace, tg_error *err)
{
    int rc = sync_to_disk(f->fd);
    if (rc == 0 && !f->temporary) {
        tg_status status = take_temporary(f, ".tmp", 0, give_name, err);
        if (status != TG_OK)
            return status;
    }
    const char *from = rc == 0 ? name_of(f->temporary) : "", *to = name_of(f->path);
    if (rc == 0)
        rc = replace ? renameat(f->folder, from, f->folder, to) : rename_sparing(f->folder, from, to);
    if (rc != 0)
        return tg_fail_errno(err, f->path, "cannot be written");
    tg_free(f->temporary);
    f->temporary = NULL;
    /* The new name is a matter of the folder. File systems that cannot do it refuse with EINVAL. */
    if (sync_to_disk(f->folder) != 0 && errno != EINVAL)
        return tg_fail_errno(err, f->path, "is complete, but its folder cannot be synced");
    return TG_OK;
}

tg_status tg_newfile_commit(tg_newfile *f, tg_error *err)
{
    tg_status status = tg_newfile_finish(f, true, err);
    tg_newfile_discard(f);
    return status;
}

void tg_newfile_keep(tg_newfile *f)
{
    if (f->path && f->fd >= 0)
        close(f->fd);
    if (f->path && f->folder >= 0 && !f->borrowed)
        close(f->folder);
    tg_free(f->temporary);
    free(f->path);
    *f = (tg_newfile){.fd = -1, .folder = -1};
}

void tg_newfile_discard(tg_newfile *f)
{
    if (f->temporary)
        unlinkat(f->folder, name_of(f->temporary), 0);
    tg_newfile_keep(f);
}
