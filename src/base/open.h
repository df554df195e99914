/* open.h - open, which a signal may interrupt on some file systems (NFS, FUSE). */
#ifndef TG_BASE_OPEN_H
#define TG_BASE_OPEN_H

#include <errno.h>
#include <fcntl.h>

#include "base/error.h"

/* As openat, and again as long as it is interrupted; closed on exec. `folder` may be AT_FDCWD. */
static inline int tg_open(int folder, const char *path, int flags, mode_t mode)
{
    int fd;
    do {
        fd = openat(folder, path, flags | O_CLOEXEC, mode);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

/* TG_E_USAGE where both stand for one regular file, whatever links there are between: writing `output` would take
 * `input` away. */
tg_status tg_path_check_output(const char *output, const char *input, tg_error *err);

#endif
