/* driver.c - runs a target: under libFuzzer, or, in all other builds, once on each input that is kept.
 *
 * An input may take a second of the processor's time: a clock that other programs do not move, as libFuzzer's own limit
 * does. Under libFuzzer it may also have 256 MiB on the heap at once. */
#include "fuzz/fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

/* ---- limits ------------------------------------------------------------------------------------------ */

enum { TICKS_A_SECOND = 4 };

static volatile sig_atomic_t n_ticks, running; /* libFuzzer's own work between inputs may take longer */
static int most_ticks;

void fuzz_broken(const char *law, const char *file, int line)
{
    fprintf(stderr, "%s:%d: a law is broken: %s\n", file, line, law);
    abort();
}

static void tick(int signal)
{
    static const char text[] = "an input takes too long\n";
    (void)signal;
    if (!running || ++n_ticks <= most_ticks)
        return;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
        _exit(1);
    abort();
}

/* The first tick may come at once. */
static void limit_time(int seconds)
{
    const struct itimerval every = {{0, 1000000 / TICKS_A_SECOND}, {0, 1000000 / TICKS_A_SECOND}};
    struct sigaction on_tick = {.sa_handler = tick, .sa_flags = SA_RESTART};
    most_ticks = seconds * TICKS_A_SECOND;
    sigaction(SIGPROF, &on_tick, NULL);
    setitimer(ITIMER_PROF, &every, NULL);
}

static void run(const uint8_t *data, size_t n)
{
    n_ticks = 0;
    running = true;
    fuzz(data, n);
    running = false;
}

/* ---- files -------------------------------------------------------------------------------------------- */

static void must(bool done, const char *what)
{
    if (done)
        return;
    perror(what);
    exit(1);
}

static int file = -1;

const char *fuzz_file(const void *bytes, size_t n)
{
    static char path[64];
    if (file < 0) {
        must((file = memfd_create("input", MFD_CLOEXEC)) >= 0, "memfd_create");
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    must((n == 0 || pwrite(file, bytes, n, 0) == (ssize_t)n) && ftruncate(file, (off_t)n) == 0, path);
    return path;
}

static char folder[PATH_MAX];
static int folder_fd = -1;

static void remove_folder(void)
{
    DIR *dir = opendir(folder);
    for (const struct dirent *e; dir && (e = readdir(dir));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            unlinkat(folder_fd, e->d_name, 0);
    if (dir)
        closedir(dir);
    rmdir(folder);
}

const char *fuzz_folder(void)
{
    if (folder_fd >= 0)
        return folder;
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.4000s/tinygpt-fuzz-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    must(mkdtemp(folder) && (folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0, folder);
    atexit(remove_folder);
    return folder;
}

/* What its files are, as far as they were put by this: most inputs change one of them. */
static struct {
    char name[40];
    uint8_t *bytes;
    size_t n;
} files[16];

void fuzz_put(const char *name, const void *bytes, size_t n)
{
    size_t i = 0;
    fuzz_folder();
    while (files[i].name[0] && strcmp(files[i].name, name) != 0)
        MUST(++i < sizeof files / sizeof *files);
    bool same = files[i].name[0] && !files[i].bytes == !bytes && files[i].n == n;
    if (same && (n == 0 || memcmp(files[i].bytes, bytes, n) == 0))
        return;
    snprintf(files[i].name, sizeof files[i].name, "%s", name);
    free(files[i].bytes);
    files[i].bytes = bytes ? malloc(n + 1) : NULL;
    files[i].n = n;
    if (!bytes) {
        unlinkat(folder_fd, name, 0);
        return;
    }
    if (n)
        memcpy(files[i].bytes, bytes, n);
    int fd = openat(folder_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    must(fd >= 0 && (n == 0 || write(fd, bytes, n) == (ssize_t)n), name);
    close(fd);
}

void fuzz_split(const uint8_t *data, size_t n, fuzz_part *parts, size_t n_parts)
{
    static const char line[] = "\n%%\n";
    memset(parts, 0, n_parts * sizeof *parts);
    for (size_t i = 0; i < n_parts; i++) {
        const uint8_t *end = i + 1 < n_parts ? memmem(data, n, line, 4) : NULL;
        parts[i] = (fuzz_part){data, end ? (size_t)(end - data) : n};
        if (!end)
            return;
        n -= parts[i].n + 4;
        data = end + 4;
    }
}

#ifdef TG_FUZZ

/* ---- under libFuzzer ---------------------------------------------------------------------------------- */

#include <sanitizer/allocator_interface.h>

static int64_t on_heap, before;

static void count_malloc(const volatile void *p, size_t n)
{
    (void)p;
    on_heap += (int64_t)n;
    if (on_heap - before > 256 << 20)
        fuzz_broken("an input takes 256 MiB at most", __FILE__, __LINE__);
}

static void count_free(const volatile void *p)
{
    on_heap -= p ? (int64_t)__sanitizer_get_allocated_size(p) : 0;
}

/* Little of what was freed is kept for its detection: inputs are small, and run by the million. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=1:thread_local_quarantine_size_kb=128:allocator_release_to_os_interval_ms=-1:"
           "detect_stack_use_after_return=0:malloc_context_size=8";
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    __sanitizer_install_malloc_and_free_hooks(count_malloc, count_free);
    limit_time(1);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    before = on_heap;
    run(data, n);
    return 0;
}

#else

/* ---- what is kept --------------------------------------------------------------------------------------- */

/* A copy of just its size, so that a sanitizer sees what is read behind it. */
static void replay(const uint8_t *data, size_t n, const char *name)
{
    uint8_t *copy = malloc(n ? n : 1);
    must(copy, name);
    if (n)
        memcpy(copy, data, n);
    printf("%s\n", name);
    run(copy, n);
    free(copy);
}

static uint8_t *read_file(const char *path, size_t *n)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    must(fd >= 0 && fstat(fd, &st) == 0, path);
    *n = (size_t)st.st_size;
    uint8_t *bytes = malloc(*n + 1);
    must(bytes && read(fd, bytes, *n) == (ssize_t)*n, path);
    close(fd);
    return bytes;
}

static void replay_file(const char *path)
{
    size_t n;
    uint8_t *bytes = read_file(path, &n);
    replay(bytes, n, path);
    free(bytes);
}

/* A corpus: of each input its length in four bytes, the lowest first, and the bytes. */
static void replay_corpus(const char *path)
{
    size_t n, n_here, number = 0;
    char name[64];
    uint8_t *bytes = read_file(path, &n);
    for (size_t at = 0; at < n; at += 4 + n_here) {
        n_here = n - at < 4 ? n : bytes[at] | (size_t)bytes[at + 1] << 8 | (size_t)bytes[at + 2] << 16;
        MUST(n - at >= 4 && n - at - 4 >= n_here);
        snprintf(name, sizeof name, "input %zu of the corpus", number++);
        replay(bytes + at + 4, n_here, name);
    }
    free(bytes);
}

static void replay_folder(const char *path)
{
    char name[PATH_MAX + NAME_MAX + 2];
    DIR *dir = opendir(path);
    for (const struct dirent *e; dir && (e = readdir(dir));) {
        snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        if (e->d_name[0] != '.')
            replay_file(name);
    }
    if (dir)
        closedir(dir);
}

/* The inputs that the arguments are, or, without any, all that are kept of the target of this name. */
int main(int argc, char **argv)
{
    char path[PATH_MAX];
    const char *slash = strrchr(argv[0], '/'), *target = slash ? slash + 1 : argv[0];
    setvbuf(stdout, NULL, _IOLBF, 0); /* the last line names the input that ended it */
    limit_time(10);
    for (int i = 1; i < argc; i++)
        replay_file(argv[i]);
    if (argc > 1)
        return 0;
    snprintf(path, sizeof path, "tests/fuzz/corpus/%s", target);
    replay_corpus(path);
    snprintf(path, sizeof path, "tests/fuzz/found/%s", target);
    replay_folder(path);
    return 0;
}

#endif
