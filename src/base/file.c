/* file.c - regular files only, and never a blocking open. */
#include "base/file.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limit.h"
#include "base/memory.h"
#include "base/open.h"

tg_status tg_file_read(int fd, void *data, uint64_t size, const char *path, tg_error *err)
{
    for (uint64_t done = 0; done < size;) {
        uint64_t want = size - done;
        ssize_t n = read(fd, (uint8_t *)data + done, want > (1u << 30) ? 1u << 30 : (size_t)want);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return tg_fail_errno(err, path, "cannot be read");
        if (n == 0)
            return tg_fail(err, TG_E_IO, path,
                           "became shorter while it was read (found %" PRIu64 " bytes of %" PRIu64 ")",
                           done, size);
        done += (uint64_t)n;
    }
    return TG_OK;
}

bool tg_file_beginning(const char *path, char *text, size_t room)
{
    const int fd = tg_open(AT_FDCWD, path, O_RDONLY, 0);
    size_t n = 0;
    for (ssize_t did = 1; fd >= 0 && did > 0; n += did > 0 ? (size_t)did : 0)
        did = read(fd, text + n, room - 1 - n);
    if (fd >= 0)
        close(fd);
    text[n] = '\0';
    return n > 0;
}

static const char *kind_of(mode_t mode)
{
    return S_ISDIR(mode)    ? "a directory"
           : S_ISFIFO(mode) ? "a FIFO"
           : S_ISSOCK(mode) ? "a socket"
                            : "a device";
}

/* Maps a file from a boundary of huge pages on, and asks for them. Where the file system has large folios, a
 * file that is first read through such a mapping stays in huge pages, for this process and those to come;
 * weights are then streamed with few misses of the translation buffer. Elsewhere nothing is lost. */
static void *map(int fd, size_t size)
{
#ifdef MADV_HUGEPAGE
    const size_t huge = (size_t)1 << 21;
    if (size >= huge && size <= SIZE_MAX - huge) {
        char *room = mmap(NULL, size + huge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (room == MAP_FAILED)
            return room;
        size_t before = -(uintptr_t)room % huge, page = (size_t)sysconf(_SC_PAGESIZE);
        size_t used = (size + page - 1) / page * page;
        char *p = mmap(room + before, size, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);
        munmap(room, before); /* of nothing, it only says no */
        munmap(room + before + used, size + huge - before - used);
        if (p != MAP_FAILED)
            madvise(p, size, MADV_HUGEPAGE);
        else
            munmap(room + before, used);
        return p;
    }
#endif
    return mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
}

/* ---- what is mapped where ------------------------------------------------------------------ */

/* Read by signal handlers, which may come between any two lines here: what stands at a `from` that is not NULL is
 * whole. One file more than there are places, beyond what a model may have, goes without a name. */
static struct {
    const uint8_t *_Atomic from;
    uint64_t size;
    const char *path;
} mappings[1 << 10];
enum { N_MAPPINGS = sizeof mappings / sizeof *mappings };
static pthread_mutex_t mapping = PTHREAD_MUTEX_INITIALIZER;

static int find_mapping(const uint8_t *from)
{
    int i = 0;
    while (i < N_MAPPINGS && mappings[i].from != from)
        i++;
    return i;
}

static void note_mapping(const tg_file *file)
{
    pthread_mutex_lock(&mapping);
    const int i = find_mapping(NULL);
    if (i < N_MAPPINGS) {
        mappings[i].size = file->size;
        mappings[i].path = file->path;
        mappings[i].from = file->data;
    }
    pthread_mutex_unlock(&mapping);
}

static void forget_mapping(const tg_file *file)
{
    pthread_mutex_lock(&mapping);
    const int i = find_mapping(file->data);
    if (i < N_MAPPINGS)
        mappings[i].from = NULL;
    pthread_mutex_unlock(&mapping);
}

const char *tg_mapped_file(const void *address)
{
    for (int i = 0; i < N_MAPPINGS; i++) {
        const uintptr_t from = (uintptr_t)mappings[i].from, at = (uintptr_t)address;
        if (from && at >= from && at - from < mappings[i].size)
            return mappings[i].path;
    }
    return NULL;
}

/* ---- opening and closing ------------------------------------------------------------------- */

tg_status tg_file_open_regular(int *fd, struct stat *st, const char *path, tg_error *err)
{
    *fd = tg_open(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    if (*fd < 0)
        return tg_fail_errno(err, path, "cannot be opened");
    tg_status status = TG_OK;
    if (fstat(*fd, st) != 0)
        status = tg_fail_errno(err, path, "cannot be examined");
    else if (!S_ISREG(st->st_mode))
        status = tg_fail(err, TG_E_MODEL, path, "not a regular file (found %s)", kind_of(st->st_mode));
    if (status != TG_OK)
        close(*fd);
    return status;
}

tg_status tg_file_open(tg_file *file, const char *path, uint64_t max_bytes, bool read, tg_error *err)
{
    int fd;
    struct stat st;
    *file = (tg_file){.path = path};
    tg_status status = tg_file_open_regular(&fd, &st, path, err);
    if (status != TG_OK)
        return status;
    uint64_t size = (uint64_t)st.st_size;
    file->device = st.st_dev;
    file->inode = st.st_ino;
    file->modified = st.st_mtim;
    if (size > max_bytes) {
        status = tg_fail(err, TG_E_MODEL, path,
                         "file too large (found %" PRIu64 " bytes, allowed %" PRIu64 ")", size,
                         max_bytes);
        goto done;
    }
    file->size = size;
    if (size == 0)
        goto done;
    if (!read) {
        void *p = map(fd, size);
        if (p != MAP_FAILED) {
            file->data = p;
            file->mapped = true;
            note_mapping(file);
            goto done;
        }
    }
    uint8_t *data = NULL;
    status = tg_limit_check(size, "the contents of a file", err);
    if (status != TG_OK)
        goto done;
    if (posix_memalign((void **)&data, 64, size) != 0) {
        status = tg_fail_alloc(err, size, "the contents of a file");
        goto done;
    }
    status = tg_file_read(fd, data, size, path, err);
    if (status != TG_OK)
        free(data);
    else
        file->data = data;
done:
    close(fd);
    if (status != TG_OK)
        *file = (tg_file){0};
    return status;
}

void tg_file_close(tg_file *file)
{
    if (file->mapped) {
        forget_mapping(file);
        munmap((void *)(uintptr_t)file->data, file->size);
    } else {
        free((void *)(uintptr_t)file->data);
    }
    *file = (tg_file){0};
}

void tg_file_release(const tg_file *file, const void *data, size_t n_bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)file->data, from = (uintptr_t)data;
    if (file->mapped && from >= start && from - start < file->size) {
        uintptr_t first = from / page * page;
        madvise((void *)first, from + n_bytes - first, MADV_DONTNEED);
    }
}

tg_status tg_file_check_unchanged(const tg_file *file, tg_error *err)
{
    struct stat st;
    if (!file->mapped || stat(file->path, &st) != 0 || st.st_dev != file->device || st.st_ino != file->inode)
        return TG_OK;
    if ((uint64_t)st.st_size == file->size && st.st_mtim.tv_sec == file->modified.tv_sec &&
        st.st_mtim.tv_nsec == file->modified.tv_nsec)
        return TG_OK;
    return tg_fail(err, TG_E_IO, file->path, "was overwritten while in use: what came of it may be wrong");
}

char *tg_path_join(const char *folder, const char *name, tg_error *err)
{
    size_t nf = strlen(folder), nn = strlen(name);
    bool slash = nf && folder[nf - 1] == '/';
    char *path = tg_alloc(nf + nn + 2, 1, "a path", err);
    if (!path)
        return NULL;
    memcpy(path, folder, nf);
    if (!slash)
        path[nf++] = '/';
    memcpy(path + nf, name, nn + 1);
    return path;
}

bool tg_path_is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_there(int rc)
{
    return rc == 0 || (errno != ENOENT && errno != ENOTDIR);
}

bool tg_path_exists(const char *path)
{
    struct stat st;
    return is_there(stat(path, &st));
}

bool tg_path_is_taken(const char *path)
{
    struct stat st;
    return is_there(lstat(path, &st));
}

tg_status tg_path_check_output(const char *output, const char *input, tg_error *err)
{
    struct stat out, in;
    bool is_same = stat(output, &out) == 0 && S_ISREG(out.st_mode) && stat(input, &in) == 0 &&
                   in.st_dev == out.st_dev && in.st_ino == out.st_ino;
    return is_same ? tg_fail(err, TG_E_USAGE, output, "is read from, and cannot be written to") : TG_OK;
}
