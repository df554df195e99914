/* folder.h - a tree of folders below a root, walked by descriptors: no link below the root is ever followed, so that
 * nothing is read, written or removed elsewhere, whatever others put there (fault-catalogue D34). */
#ifndef TG_FETCH_FOLDER_H
#define TG_FETCH_FOLDER_H

#include <sys/stat.h>

#include "base/memory.h"

/* Zeroed by TG_FOLDER_NONE, it is none. */
typedef struct tg_folder {
    int fd;
    char *path; /* for messages and results; NULL when it was entered. tg_folder_close frees it */
} tg_folder;

#define TG_FOLDER_NONE ((tg_folder){.fd = -1})

/* The root itself, which may be reached over links. `create` makes it and what is missing above it. Its path is made
 * absolute. TG_E_IO with errno ENOENT when it is not there. */
tg_status tg_folder_root(tg_folder *folder, const char *path, bool create, tg_error *err);

/* A folder below another by a relative path, which the caller checked (tg_bad_path). The same errors; a link on the
 * way is one. */
tg_status tg_folder_open(tg_folder *folder, const tg_folder *above, const char *path, bool create, tg_error *err);

/* Like tg_folder_open for the folder of a file, whose last component becomes *name. */
tg_status tg_folder_open_for(tg_folder *folder, const tg_folder *above, const char *path, bool create,
                             const char **name, tg_error *err);
void tg_folder_close(tg_folder *folder);

/* The same for looking only, without memory: false when it is not there, or a link is on the way. */
bool tg_folder_enter(tg_folder *folder, const tg_folder *above, const char *path);
bool tg_folder_enter_for(tg_folder *folder, const tg_folder *above, const char *path, const char **name);

/* What stands under a name, itself and not what it points to; false: nothing. */
bool tg_folder_stat(const tg_folder *folder, const char *name, struct stat *st);

/* Writes a small file, or a link to `target`, that appears whole or not at all, in the place of what was there. What is
 * so already stays untouched. */
tg_status tg_folder_write(const tg_folder *folder, const char *name, const void *bytes, size_t n, tg_error *err);
tg_status tg_folder_link(const tg_folder *folder, const char *name, const char *target, tg_error *err);

/* The contents of a regular file that is shorter than `room`, and a NUL behind them; false: there is none such. */
bool tg_folder_read(const tg_folder *folder, const char *name, char *text, size_t room);
/* Where a link points; false: it is none, or longer than any that is wanted here. */
enum { TG_LINK_ROOM = 1024 };
bool tg_folder_read_link(const tg_folder *folder, const char *name, char target[TG_LINK_ROOM]);

/* The names in a folder, sorted, without "." and "..": an array in the arena that NULL ends; none when it cannot be
 * read. */
tg_status tg_folder_names(const tg_folder *folder, char ***names, tg_arena *arena, tg_error *err);

/* Removes a file, a link, or a folder with all that is in it; *freed grows by the bytes of its files. */
tg_status tg_folder_remove(const tg_folder *folder, const char *name, uint64_t *freed, tg_error *err);

#endif
