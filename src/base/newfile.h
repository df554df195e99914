/* newfile.h - a file that appears under its name only when it is complete.
 *
 * It grows without a name, or under one of its own, in the same folder; tg_newfile_commit brings it to the disk and
 * renames it, so that at any moment, power failures included, the name stands for the old file or for the whole new
 * one. */
#ifndef TG_BASE_NEWFILE_H
#define TG_BASE_NEWFILE_H

#include <sys/types.h>

#include "base/error.h"

/* Zeroed, it is no file, and can be discarded. */
typedef struct tg_newfile {
    int fd;
    int folder;      /* open, of both names */
    char *path;      /* what it will be: behind links, so that those stay */
    char *temporary; /* beside it; NULL: it has no name yet */
    bool borrowed;   /* the folder is the caller's; both names are one component then */
} tg_newfile;

/* Makes room for `size` bytes at once where the file system can, so that a full disk is told before the work. What
 * stands at the path already must be a regular file. TG_E_RESOURCE for want of space, TG_E_IO for the rest. */
tg_status tg_newfile_create(tg_newfile *f, const char *path, uint64_t size, mode_t mode, tg_error *err);

/* In an open folder, which is borrowed until the end: `.<name>.<random><suffix>`, for reading and writing. */
tg_status tg_newfile_create_at(tg_newfile *f, int folder, const char *name, const char *suffix, mode_t mode,
                               tg_error *err);

/* Blocks for the bytes from `from` to `size`; how long the file is does not change. */
tg_status tg_newfile_reserve(const tg_newfile *f, uint64_t from, uint64_t size, tg_error *err);
tg_status tg_newfile_write(const tg_newfile *f, const void *bytes, size_t n, tg_error *err);

/* By what it can be opened while it is not finished: its temporary name, or one in `room`. */
enum { TG_PLACE_BYTES = 32 };
const char *tg_newfile_place(const tg_newfile *f, char room[TG_PLACE_BYTES]);

/* The temporary name becomes the name. Without `replace` a file that has that name by now makes it fail, with
 * errno EEXIST. The file stays open, and its temporary name stays where that name is not given up. */
tg_status tg_newfile_finish(tg_newfile *f, bool replace, tg_error *err);

/* finish, replacing, and discard. */
tg_status tg_newfile_commit(tg_newfile *f, tg_error *err);
/* Closes it and removes what there is of it under the temporary name. */
void tg_newfile_discard(tg_newfile *f);
/* Closes it and leaves it where it is. */
void tg_newfile_keep(tg_newfile *f);

#endif
