/* syscalls.so - preloaded into a program: counts its calls of the system that open, read, write, map, sync, rename or
 * remove files, that allocate memory, or that start threads, and lets one of them go wrong. In the environment:
 *
 *     SYSCALLS_UNDER=FOLDER   only calls on what lies there or below (default: all files)
 *     SYSCALLS_ONLY=a,b       only calls of these names; `malloc` (all that allocate, by whoever calls it),
 *                             pthread_create and dlopen are counted when they are named alone
 *     SYSCALLS_SPARE=a,b      no allocations by libraries with this in their path
 *     SYSCALLS_LOG=FILE       one line for each counted call: "number name path"
 *     SYSCALLS_AT=N           the N-th counted call, from 1, is done to:
 *     SYSCALLS_DO=what        kill-before, kill-after: SIGKILL; short: half of the bytes; ENOSPC, EIO, ...: fails so
 *     SYSCALLS_FROM=1         all counted calls from the N-th on
 *     SYSCALLS_THREADS=N      no more than N threads at once
 *
 * Another call: a row here and, in HOW, how its path is found. Calls that libraries make inside themselves (stdio's
 * write, say) are not seen. Allocations count from the beginning of main. */
#undef _FORTIFY_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

typedef enum verdict { PASS, FAIL, SHORT, KILL_AFTER } verdict;

static const struct {
    const char *name;
    int number;
} errors[] = {
    {"ENOSPC", ENOSPC}, {"EIO", EIO},       {"EINTR", EINTR},   {"EACCES", EACCES}, {"EROFS", EROFS},
    {"EDQUOT", EDQUOT}, {"EFBIG", EFBIG},   {"EMFILE", EMFILE}, {"ENFILE", ENFILE}, {"ENOENT", ENOENT},
    {"EEXIST", EEXIST}, {"EINVAL", EINVAL}, {"ENOSYS", ENOSYS}, {"EPERM", EPERM},   {"ENOMEM", ENOMEM},
    {"EAGAIN", EAGAIN}, {"ENODEV", ENODEV}, {"EBADF", EBADF},   {"EOPNOTSUPP", EOPNOTSUPP},
};

/* The real function; looked up at every call, which is cheap beside the call. */
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static void path_of_fd(int fd, char path[PATH_MAX])
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = fd == AT_FDCWD ? readlink("/proc/self/cwd", path, PATH_MAX - 1) : readlink(link, path, PATH_MAX - 1);
    path[n > 0 ? n : 0] = '\0';
}

static void path_at(int folder, const char *name, char path[PATH_MAX])
{
    if (name[0] == '/') {
        snprintf(path, PATH_MAX, "%s", name);
        return;
    }
    path_of_fd(folder, path);
    size_t n = strlen(path);
    snprintf(path + n, PATH_MAX - n, "/%s", name);
}

/* Is one of the names in a list? An empty one has no names. */
static int listed(const char *list, const char *name)
{
    const size_t k = strlen(name);
    for (const char *p = list; p && *p; p += strcspn(p, ","), p += *p == ',')
        if (strncmp(p, name, k) == 0 && (p[k] == ',' || !p[k]))
            return 1;
    return 0;
}

static int counted(const char *name, const char *path)
{
    const char *under = getenv("SYSCALLS_UNDER"), *only = getenv("SYSCALLS_ONLY");
    size_t n = under ? strlen(under) : 0;
    if (under && (strncmp(path, under, n) != 0 || (path[n] && path[n] != '/')))
        return 0;
    return !only || listed(only, name);
}

static void note(unsigned number, const char *name, const char *path)
{
    const char *log = getenv("SYSCALLS_LOG");
    char line[PATH_MAX + 64];
    int fd = log ? REAL(open)(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (fd < 0)
        return;
    int n = snprintf(line, sizeof line, "%u %s %s\n", number, name, path);
    if (REAL(write)(fd, line, (size_t)n) != n)
        abort();
    REAL(close)(fd);
}

/* What becomes of this call; errno is set when it is to fail. */
static verdict judge(const char *name, const char *path)
{
    static atomic_uint calls;
    const char *at = getenv("SYSCALLS_AT"), *act = getenv("SYSCALLS_DO");
    if (!counted(name, path))
        return PASS;
    unsigned number = atomic_fetch_add(&calls, 1) + 1, wanted = at ? (unsigned)atoi(at) : 0;
    note(number, name, path);
    if (!act || wanted == 0 || (getenv("SYSCALLS_FROM") ? number < wanted : number != wanted))
        return PASS;
    if (strcmp(act, "kill-before") == 0)
        raise(SIGKILL);
    if (strcmp(act, "kill-after") == 0)
        return KILL_AFTER;
    if (strcmp(act, "short") == 0)
        return SHORT;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (strcmp(act, errors[i].name) == 0) {
            errno = errors[i].number;
            return FAIL;
        }
    fprintf(stderr, "SYSCALLS_DO: what is %s?\n", act);
    abort();
}

static long after(verdict v, long result)
{
    if (v == KILL_AFTER)
        raise(SIGKILL);
    return result;
}

/* A call of `name`: `how` fills the path; a short one counts as it is. It gives `bad` when it fails. */
#define CALL_OR(type, name, parameters, how, call, bad)                                                                \
    type name parameters;                                                                                              \
    type name parameters                                                                                               \
    {                                                                                                                  \
        char path[PATH_MAX];                                                                                           \
        how;                                                                                                           \
        verdict v = judge(#name, path);                                                                                \
        return v == FAIL ? (bad) : (type)after(v, (long)REAL(name) call);                                              \
    }
#define CALL(type, name, parameters, how, call) CALL_OR(type, name, parameters, how, call, -1)

/* The same where there is a count of bytes to be halved. */
#define CALL_BYTES(name, parameters, call) CALL_BYTES_AS(#name, name, parameters, call)
#define CALL_BYTES_AS(label, name, parameters, call)                                                                   \
    ssize_t name parameters;                                                                                           \
    ssize_t name parameters                                                                                            \
    {                                                                                                                  \
        char path[PATH_MAX];                                                                                           \
        path_of_fd(fd, path);                                                                                          \
        verdict v = judge(label, path);                                                                                \
        n = v == SHORT && n > 1 ? n / 2 : n;                                                                           \
        return v == FAIL ? -1 : (ssize_t)after(v, (long)REAL(name) call);                                              \
    }

/* The same where a mode follows if the flags say so. */
#define CALL_OPEN(name, parameters, how, call_with_mode)                                                               \
    int name parameters;                                                                                               \
    int name parameters                                                                                                \
    {                                                                                                                  \
        char path[PATH_MAX];                                                                                           \
        mode_t mode = 0;                                                                                               \
        if (flags & (O_CREAT | O_TMPFILE)) {                                                                           \
            va_list args;                                                                                              \
            va_start(args, flags);                                                                                     \
            mode = va_arg(args, mode_t);                                                                               \
            va_end(args);                                                                                              \
        }                                                                                                              \
        how;                                                                                                           \
        verdict v = judge(#name, path);                                                                                \
        return v == FAIL ? -1 : (int)after(v, REAL(name) call_with_mode);                                              \
    }

CALL_OPEN(open, (const char *p, int flags, ...), path_at(AT_FDCWD, p, path), (p, flags, mode))
CALL_OPEN(open64, (const char *p, int flags, ...), path_at(AT_FDCWD, p, path), (p, flags, mode))
CALL_OPEN(openat, (int d, const char *p, int flags, ...), path_at(d, p, path), (d, p, flags, mode))
CALL_OPEN(openat64, (int d, const char *p, int flags, ...), path_at(d, p, path), (d, p, flags, mode))

CALL_BYTES(read, (int fd, void *p, size_t n), (fd, p, n))
CALL_BYTES(pread, (int fd, void *p, size_t n, off_t at), (fd, p, n, at))
CALL_BYTES_AS("read", __read_chk, (int fd, void *p, size_t n, size_t room), (fd, p, n, room)) /* of fortified programs */
CALL_BYTES_AS("pread", __pread_chk, (int fd, void *p, size_t n, off_t at, size_t room), (fd, p, n, at, room))
CALL_BYTES(write, (int fd, const void *p, size_t n), (fd, p, n))
CALL_BYTES(pwrite, (int fd, const void *p, size_t n, off_t at), (fd, p, n, at))

CALL(int, fsync, (int fd), path_of_fd(fd, path), (fd))
CALL(int, fdatasync, (int fd), path_of_fd(fd, path), (fd))
CALL(int, ftruncate, (int fd, off_t n), path_of_fd(fd, path), (fd, n))
CALL(int, fallocate, (int fd, int mode, off_t at, off_t n), path_of_fd(fd, path), (fd, mode, at, n))
CALL(int, fchmod, (int fd, mode_t mode), path_of_fd(fd, path), (fd, mode))
CALL(int, flock, (int fd, int how), path_of_fd(fd, path), (fd, how))
CALL(int, rename, (const char *a, const char *b), path_at(AT_FDCWD, b, path), (a, b))
CALL(int, renameat, (int d, const char *a, int e, const char *b), path_at(e, b, path), (d, a, e, b))
CALL(int, renameat2, (int d, const char *a, int e, const char *b, unsigned f), path_at(e, b, path), (d, a, e, b, f))
CALL(int, link, (const char *a, const char *b), path_at(AT_FDCWD, b, path), (a, b))
CALL(int, linkat, (int d, const char *a, int e, const char *b, int f), path_at(e, b, path), (d, a, e, b, f))
CALL(int, symlink, (const char *a, const char *b), path_at(AT_FDCWD, b, path), (a, b))
CALL(int, symlinkat, (const char *a, int e, const char *b), path_at(e, b, path), (a, e, b))
CALL(int, unlink, (const char *p), path_at(AT_FDCWD, p, path), (p))
CALL(int, unlinkat, (int d, const char *p, int flags), path_at(d, p, path), (d, p, flags))
CALL(int, rmdir, (const char *p), path_at(AT_FDCWD, p, path), (p))
CALL(int, mkdir, (const char *p, mode_t mode), path_at(AT_FDCWD, p, path), (p, mode))
CALL(int, mkdirat, (int d, const char *p, mode_t mode), path_at(d, p, path), (d, p, mode))
CALL(int, stat, (const char *p, struct stat *st), path_at(AT_FDCWD, p, path), (p, st))
CALL(int, lstat, (const char *p, struct stat *st), path_at(AT_FDCWD, p, path), (p, st))
CALL(int, fstat, (int fd, struct stat *st), path_of_fd(fd, path), (fd, st))
CALL(int, fstatat, (int d, const char *p, struct stat *st, int flags), path_at(d, p, path), (d, p, st, flags))
CALL(int, access, (const char *p, int mode), path_at(AT_FDCWD, p, path), (p, mode))
CALL_OR(FILE *, fopen, (const char *p, const char *mode), path_at(AT_FDCWD, p, path), (p, mode), NULL)
CALL_OR(DIR *, opendir, (const char *p), path_at(AT_FDCWD, p, path), (p), NULL)
CALL_OR(DIR *, fdopendir, (int fd), path_of_fd(fd, path), (fd), NULL)
CALL_OR(struct dirent *, readdir, (DIR *d), path_of_fd(dirfd(d), path), (d), NULL)
CALL_OR(char *, realpath, (const char *p, char *room), path_at(AT_FDCWD, p, path), (p, room), NULL)
CALL_OR(void *, mmap, (void *p, size_t n, int protection, int flags, int fd, off_t at), path_of_fd(fd, path),
        (p, n, protection, flags, fd, at), MAP_FAILED)

/* Closed in any case, as Linux has it. */
int close(int fd)
{
    char path[PATH_MAX];
    path_of_fd(fd, path);
    verdict v = judge("close", path);
    int e = errno, rc = REAL(close)(fd);
    errno = v == FAIL ? e : errno;
    return (int)after(v, v == FAIL ? -1 : rc);
}

/* ---- memory ---------------------------------------------------------------------------------------------- */

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

static atomic_int in_main;

static int allocation_fails(const void *caller)
{
    Dl_info info;
    if (!in_main || !listed(getenv("SYSCALLS_ONLY"), "malloc"))
        return 0;
    if (dladdr(caller, &info) == 0)
        info = (Dl_info){.dli_fname = "?"};
    const char *spare = getenv("SYSCALLS_SPARE");
    for (const char *p = spare; p && *p; p += strcspn(p, ","), p += *p == ',') {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(p, ","), p);
        if (strstr(info.dli_fname, name))
            return 0;
    }
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s+%#lx", info.dli_fname, (unsigned long)((const char *)caller - (const char *)info.dli_fbase));
    const int e = errno;
    const verdict v = judge("malloc", path);
    errno = v == FAIL ? ENOMEM : e;
    return v == FAIL;
}
#define ALLOCATION_FAILS() allocation_fails(__builtin_return_address(0))

void *malloc(size_t n)
{
    return ALLOCATION_FAILS() ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    return ALLOCATION_FAILS() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    return ALLOCATION_FAILS() ? NULL : __libc_realloc(p, n);
}

void *memalign(size_t align, size_t n)
{
    return ALLOCATION_FAILS() ? NULL : __libc_memalign(align, n);
}

void *aligned_alloc(size_t align, size_t n)
{
    return ALLOCATION_FAILS() ? NULL : __libc_memalign(align, n);
}

int posix_memalign(void **p, size_t align, size_t n)
{
    void *block = ALLOCATION_FAILS() ? NULL : __libc_memalign(align, n);
    if (block)
        *p = block;
    return block ? 0 : ENOMEM;
}

/* ---- threads --------------------------------------------------------------------------------------------- */

int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *arg)
{
    const char *most = getenv("SYSCALLS_THREADS");
    int n = 0;
    DIR *tasks = most ? REAL(opendir)("/proc/self/task") : NULL;
    for (struct dirent *d; tasks && (d = REAL(readdir)(tasks));)
        n += d->d_name[0] != '.';
    if (tasks)
        closedir(tasks);
    if (most && n >= atoi(most))
        return EAGAIN;
    return listed(getenv("SYSCALLS_ONLY"), "pthread_create") && judge("pthread_create", "") == FAIL
               ? errno
               : REAL(pthread_create)(thread, how, run, arg);
}

/* ---- libraries ------------------------------------------------------------------------------------------- */

void *dlopen(const char *path, int how)
{
    const int fails = listed(getenv("SYSCALLS_ONLY"), "dlopen") && judge("dlopen", "") == FAIL;
    return REAL(dlopen)(fails ? "libnowhere.so" : path, how);
}

/* ---- main ------------------------------------------------------------------------------------------------ */

static int (*real_main)(int, char **, char **);

static int counted_main(int argc, char **argv, char **env)
{
    in_main = 1;
    return real_main(argc, argv, env);
}

int __libc_start_main(int (*start)(int, char **, char **), int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void *stack_end);
int __libc_start_main(int (*start)(int, char **, char **), int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void *stack_end)
{
    real_main = start;
    return REAL(__libc_start_main)(counted_main, argc, argv, init, fini, rtld_fini, stack_end);
}
