/* scratch.h - a folder of the test's own below $TMPDIR, removed at the end. */
#ifndef TEST_SCRATCH_H
#define TEST_SCRATCH_H

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char scratch_folder[PATH_MAX / 2];

/* A path below the folder; four of them live at a time. */
static inline char *scratch_path(const char *name)
{
    static char paths[4][PATH_MAX];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, PATH_MAX, "%s/%s", scratch_folder, name);
    return path;
}

static inline char *scratch_write(const char *name, const void *data, size_t n)
{
    char *path = scratch_path(name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, n, f) != n || fclose(f) != 0) {
        perror(path);
        abort();
    }
    return path;
}

static inline char *scratch_text(const char *name, const char *text)
{
    return scratch_write(name, text, strlen(text));
}

static inline int scratch_remove_one(const char *path, const struct stat *st, int type,
                                     struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

/* Removes `name` and all below it. */
static inline void scratch_remove(const char *name)
{
    nftw(scratch_path(name), scratch_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static inline char *scratch_mkdir(const char *name)
{
    char *path = scratch_path(name);
    if (mkdir(path, 0700) != 0) {
        perror(path);
        abort();
    }
    return path;
}

/* For cmocka_run_group_tests. */
static inline int scratch_setup(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(scratch_folder, sizeof scratch_folder, "%s/tinygpt-test-XXXXXX",
             tmp && *tmp ? tmp : "/tmp");
    return mkdtemp(scratch_folder) ? 0 : -1;
}

static inline int scratch_teardown(void **state)
{
    (void)state;
    return nftw(scratch_folder, scratch_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

#endif
