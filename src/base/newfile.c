/* newfile.c - temporary name, fsync, rename, fsync of the folder; every call is checked. */
#include "base/newfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* The target behind links, and whether it is one that can be replaced. */
static tg_status resolve(tg_newfile *f, const char *path, tg_error *err)
{
    struct stat st;
    bool exists = stat(path, &st) == 0;
    if (exists && !S_ISREG(st.st_mode))
        return tg_fail(err, TG_E_IO, path, "cannot be written: it is not a regular file");
    if (!exists && errno != ENOENT)
        return tg_fail_errno(err, path, "cannot be created");
    f->path = exists ? realpath(path, NULL) : strdup(path);
    return f->path ? TG_OK : tg_fail_errno(err, path, "cannot be created");
}

static tg_status open_temporary(tg_newfile *f, tg_error *err)
{
    size_t room = strlen(f->path) + 32, folder = folder_length(f->path);
    uint32_t number = (uint32_t)getpid();
    f->temporary = tg_alloc(room, 1, "a file name", err);
    if (!f->temporary)
        return TG_E_RESOURCE;
    for (int attempt = 0; attempt < 16; attempt++) {
        if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
            number++;
        snprintf(f->temporary, room, "%.*s.%.200s.%08x.tmp", (int)folder, f->path, f->path + folder, number);
        f->fd = open(f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (f->fd >= 0)
            return TG_OK;
        if (errno != EEXIST && errno != EINTR)
            break;
    }
    tg_status status = tg_fail_errno(err, f->path, "cannot be created");
    tg_free(f->temporary);
    f->temporary = NULL;
    return status;
}

static tg_status make_room(tg_newfile *f, uint64_t size, tg_error *err)
{
    int rc;
    do {
        rc = size > 0 && size <= INT64_MAX ? fallocate(f->fd, 0, 0, (off_t)size) : 0;
    } while (rc != 0 && errno == EINTR);
    if (rc == 0 || errno == EOPNOTSUPP || errno == ENOSYS)
        return TG_OK;
    char what[64];
    snprintf(what, sizeof what, "no room for %.1f MiB", (double)size / 1048576);
    return tg_fail_errno(err, f->path, what);
}

tg_status tg_newfile_create(tg_newfile *f, const char *path, uint64_t size, tg_error *err)
{
    *f = (tg_newfile){.fd = -1};
    tg_status status = resolve(f, path, err);
    if (status == TG_OK)
        status = open_temporary(f, err);
    if (status == TG_OK)
        status = make_room(f, size, err);
    if (status != TG_OK)
        tg_newfile_discard(f);
    return status;
}

tg_status tg_newfile_write(tg_newfile *f, const void *bytes, size_t n, tg_error *err)
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

/* The new name is a matter of the folder. File systems that cannot do it refuse with EINVAL. */
static bool sync_folder(const char *path)
{
    size_t n = folder_length(path);
    char *folder = n ? strndup(path, n) : strdup(".");
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    bool ok = fd >= 0 && (fsync(fd) == 0 || errno == EINVAL);
    if (fd >= 0)
        close(fd);
    free(folder);
    return ok;
}

tg_status tg_newfile_commit(tg_newfile *f, tg_error *err)
{
    int synced = fsync(f->fd), closed = synced == 0 ? close(f->fd) : -1;
    f->fd = synced == 0 ? -1 : f->fd;
    if (closed != 0 || rename(f->temporary, f->path) != 0) {
        tg_status status = tg_fail_errno(err, f->path, "cannot be written");
        tg_newfile_discard(f);
        return status;
    }
    tg_free(f->temporary);
    f->temporary = NULL;
    tg_status status =
        sync_folder(f->path) ? TG_OK : tg_fail_errno(err, f->path, "is complete, but its folder cannot be synced");
    tg_newfile_discard(f);
    return status;
}

void tg_newfile_discard(tg_newfile *f)
{
    if (f->temporary && f->fd >= 0)
        close(f->fd);
    if (f->temporary)
        unlink(f->temporary);
    tg_free(f->temporary);
    free(f->path);
    *f = (tg_newfile){.fd = -1};
}
