/* syscalls.so - preloaded into a program: counts its calls of the system that open, write, sync, rename or remove
 * files, and lets one of them go wrong. In the environment:
 *
 *     SYSCALLS_UNDER=FOLDER   only calls on what lies there or below (default: all files)
 *     SYSCALLS_ONLY=a,b       only calls of these names
 *     SYSCALLS_LOG=FILE       one line for each counted call: "number name path"
 *     SYSCALLS_AT=N           the N-th counted call, from 1, is done to:
 *     SYSCALLS_DO=what        kill-before, kill-after: SIGKILL; short: half of the bytes; ENOSPC, EIO, ...: fails so
 *     SYSCALLS_FROM=1         all counted calls from the N-th on
 *
 * Another call: a row here and, in HOW, how its path is found. Calls that libraries make inside themselves (stdio's
 * write, say) are not seen. */
#undef _FORTIFY_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

typedef enum verdict { PASS, FAIL, SHORT, KILL_AFTER } verdict;

static const struct {
    const char *name;
    int number;
} errors[] = {
    {"ENOSPC", ENOSPC}, {"EIO", EIO},       {"EINTR", EINTR},   {"EACCES", EACCES}, {"EROFS", EROFS},
    {"EDQUOT", EDQUOT}, {"EFBIG", EFBIG},   {"EMFILE", EMFILE}, {"ENOENT", ENOENT}, {"EEXIST", EEXIST},
    {"EINVAL", EINVAL}, {"ENOSYS", ENOSYS}, {"EPERM", EPERM},   {"ENOMEM", ENOMEM}, {"EOPNOTSUPP", EOPNOTSUPP},
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

static int counted(const char *name, const char *path)
{
    const char *under = getenv("SYSCALLS_UNDER"), *only = getenv("SYSCALLS_ONLY");
    size_t n = under ? strlen(under) : 0, k = strlen(name);
    if (under && (strncmp(path, under, n) != 0 || (path[n] && path[n] != '/')))
        return 0;
    for (const char *p = only; p && *p; p += strcspn(p, ","), p += *p == ',')
        if (strncmp(p, name, k) == 0 && (p[k] == ',' || !p[k]))
            return 1;
    return !only;
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
    close(fd);
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

/* A call of `name`: `how` fills the path; a short one counts as it is. */
#define CALL(type, name, parameters, how, call)                                                                        \
    type name parameters;                                                                                              \
    type name parameters                                                                                               \
    {                                                                                                                  \
        char path[PATH_MAX];                                                                                           \
        how;                                                                                                           \
        verdict v = judge(#name, path);                                                                                \
        return v == FAIL ? -1 : (type)after(v, (long)REAL(name) call);                                                 \
    }

/* The same where there is a count of bytes to be halved. */
#define CALL_BYTES(name, parameters, call)                                                                             \
    ssize_t name parameters;                                                                                           \
    ssize_t name parameters                                                                                            \
    {                                                                                                                  \
        char path[PATH_MAX];                                                                                           \
        path_of_fd(fd, path);                                                                                          \
        verdict v = judge(#name, path);                                                                                \
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
