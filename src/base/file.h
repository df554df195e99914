/* file.h - opening and mapping what the user names. */
#ifndef TG_BASE_FILE_H
#define TG_BASE_FILE_H

#include <sys/stat.h>

#include "base/error.h"

/* A whole file, read-only. Empty files have data == NULL and size == 0. */
typedef struct tg_file {
    const uint8_t *data;
    uint64_t size;
    bool mapped; /* else on the heap */
    const char *path; /* as it was given, borrowed until it is closed */
    dev_t device;     /* what it was when it was opened */
    ino_t inode;
    struct timespec modified;
} tg_file;

/* Maps a regular file, or reads it when `read` is set or the file system does not map. Anything but
 * a regular file (directory, FIFO, device) is refused without blocking. A file above max_bytes is
 * refused before it is read; a missing or unreadable one is TG_E_IO, the other refusals TG_E_MODEL. */
tg_status tg_file_open(tg_file *file, const char *path, uint64_t max_bytes, bool read, tg_error *err);
void tg_file_close(tg_file *file);

/* The pages of n_bytes of it, if it is mapped and has them, leave the process until they are read again. */
void tg_file_release(const tg_file *file, const void *data, size_t n_bytes);
/* A mapped file that was overwritten in place since it was opened is TG_E_IO. One that was removed, or replaced by
 * renaming, is still what it was. */
tg_status tg_file_check_unchanged(const tg_file *file, tg_error *err);

/* The descriptor alone, under the same rules, for what is read as it goes; *st tells of it. */
tg_status tg_file_open_regular(int *fd, struct stat *st, const char *path, tg_error *err);
/* Reads exactly `size` bytes, whatever counts the system returns. A file that ends before is TG_E_IO. */
tg_status tg_file_read(int fd, void *data, uint64_t size, const char *path, tg_error *err);

/* The beginning of a file of the system's (/proc, /sys), with a NUL, without allocating; false when it cannot be read. */
bool tg_file_beginning(const char *path, char *text, size_t room);

/* folder + "/" + name on the heap. */
char *tg_path_join(const char *folder, const char *name, tg_error *err);

bool tg_path_is_folder(const char *path);
/* What cannot be examined is there: who opens it then tells why it cannot be. */
bool tg_path_exists(const char *path);
/* The name is taken, be it by a link that leads nowhere. */
bool tg_path_is_taken(const char *path);

#endif
