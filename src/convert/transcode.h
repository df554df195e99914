/* transcode.h - the numbers of a tensor from where they lie to where they go: laid anew, in another format.
 *
 * Nothing is held but a slab of the output and a few thousand numbers a thread. What a number becomes depends on
 * its own block alone, so that any number of threads gives the same bits. */
#ifndef TG_CONVERT_TRANSCODE_H
#define TG_CONVERT_TRANSCODE_H

#include "base/newfile.h"
#include "format/container.h"
#include "kernel/team.h"

/* How the rows of the output lie in the input. */
typedef enum tg_laid {
    TG_LAID_AS_IS,
    TG_LAID_TURNED,     /* [n_in][n_out]: a column of the input is a row of the output */
    TG_LAID_NEIGHBOURS, /* rows 2i and 2i + 1 of a head are rows i and i + head_dim / 2 of it */
    TG_LAID_BY_KIND,    /* the parts of all heads, one kind after the other, are those of a head, head after head */
} tg_laid;

/* Where the numbers of a tensor come from: `n_parts` tensors of one shape, one below the other, each n_rows rows of
 * n_columns; or the numbers themselves. Borrowed. */
typedef struct tg_source {
    const tg_tensor *const *parts;
    size_t n_parts;
    uint64_t n_rows, n_columns;
    tg_laid laid;
    uint64_t head_dim, n_kinds; /* for those that have to do with heads */
    float plus;                 /* is added to each */
    const float *floats;        /* instead of parts */
} tg_source;

/* n numbers of it from number `first` on, whole blocks of the input. */
void tg_source_read(const tg_source *s, uint64_t first, size_t n, float *out);

/* Called every few megabytes with how many bytes were written; false stops. */
typedef bool (*tg_written)(void *arg, uint64_t n_bytes);

typedef struct tg_transcoder {
    tg_team *team; /* whose scratch memory is tg_transcode_scratch bytes a thread */
    uint8_t *slab; /* tg_transcode_slab bytes */
    tg_newfile *file;
    tg_written written;
    void *arg;
} tg_transcoder;

size_t tg_transcode_scratch(void);
size_t tg_transcode_slab(void);

/* Appends all numbers of the source in the format `to` to the file. `path` and `name` are for messages: TG_E_MODEL for a number
 * that the format cannot hold; TG_E_STOPPED. */
tg_status tg_transcode(const tg_transcoder *t, const tg_source *s, const tg_dtype *to, const char *path,
                       const char *name, tg_error *err);

/* Appends bytes as they are. */
tg_status tg_transcode_bytes(const tg_transcoder *t, const uint8_t *bytes, uint64_t n, tg_error *err);

#endif
