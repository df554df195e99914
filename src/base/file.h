/* file.h - opening and mapping what the user names. */
#ifndef TG_BASE_FILE_H
#define TG_BASE_FILE_H

#include "base/error.h"

/* A whole file, read-only. Empty files have data == NULL and size == 0. */
typedef struct tg_file {
    const uint8_t *data;
    uint64_t size;
    bool mapped; /* else on the heap */
} tg_file;

/* Maps a regular file, or reads it when `read` is set or the file system does not map. Anything but
 * a regular file (directory, FIFO, device) is refused without blocking. A file above max_bytes is
 * refused before it is read; a missing or unreadable one is TG_E_IO, the other refusals TG_E_MODEL. */
tg_status tg_file_open(tg_file *file, const char *path, uint64_t max_bytes, bool read, tg_error *err);
void tg_file_close(tg_file *file);

/* The pages of n_bytes of it, if it is mapped and has them, leave the process until they are read again. */
void tg_file_release(const tg_file *file, const void *data, size_t n_bytes);

/* folder + "/" + name on the heap. */
char *tg_path_join(const char *folder, const char *name, tg_error *err);

bool tg_path_is_folder(const char *path);
bool tg_path_exists(const char *path);

#endif
