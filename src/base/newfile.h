/* newfile.h - a file that appears under its name only when it is complete.
 *
 * It grows under a name of its own in the same folder; tg_newfile_commit brings it to the disk and renames it, so
 * that at any moment, power failures included, the name stands for the old file or for the whole new one. */
#ifndef TG_BASE_NEWFILE_H
#define TG_BASE_NEWFILE_H

#include "base/error.h"

/* Zeroed, it is no file, and can be discarded. */
typedef struct tg_newfile {
    int fd;
    char *path; /* what it will be: behind links, so that those stay */
    char *temporary;
} tg_newfile;

/* Makes room for `size` bytes at once where the file system can, so that a full disk is told before the work. What
 * stands at the path already must be a regular file. TG_E_RESOURCE for want of space, TG_E_IO for the rest. */
tg_status tg_newfile_create(tg_newfile *f, const char *path, uint64_t size, tg_error *err);
tg_status tg_newfile_write(tg_newfile *f, const void *bytes, size_t n, tg_error *err);
/* Closes the file, whatever comes of it. */
tg_status tg_newfile_commit(tg_newfile *f, tg_error *err);
/* Removes what there is of it; after tg_newfile_commit nothing. */
void tg_newfile_discard(tg_newfile *f);

#endif
