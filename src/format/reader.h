/* reader.h - what container.c and the readers of the two syntaxes share; private to this folder.
 *
 * A container is filled by one reader and complete when tg_container_open returns: container.c owns
 * the handle, the order and look-up of tensors and the typed metadata; gguf.c, safetensors.c and
 * hf.c own their syntax. Data of tensors is borrowed from `files`, names and texts from `arena`. */
#ifndef TG_FORMAT_READER_H
#define TG_FORMAT_READER_H

#include "base/cursor.h"
#include "base/json.h"
#include "base/memory.h"
#include "format/container.h"

/* One key of a GGUF with its value still as it stands in the file, checked. */
typedef struct tg_gguf_pair {
    const char *key;
    const uint8_t *raw; /* the value: a scalar, the elements of an array, a copied text */
    uint64_t n;         /* elements of an array, bytes of a string; else 1 */
    uint64_t raw_bytes;
    uint32_t type, elem; /* value type; of an array's elements */
    const uint8_t *whole; /* key, type and value in the file */
    uint64_t whole_bytes;
} tg_gguf_pair;

struct tg_container {
    tg_container_kind kind;
    bool read; /* weights are read, not mapped */
    const char *path, *format;
    const char *meta_path; /* where metadata stands, for messages: the GGUF, or config.json */
    tg_arena *arena;

    tg_file *files; /* room for all of them is made before the first is opened */
    size_t n_files;

    tg_tensor *tensors; /* in the files' order */
    size_t n_tensors, tensors_capacity;
    const tg_tensor **by_name;

    tg_gguf_pair *pairs;           /* GGUF: sorted by key */
    const tg_gguf_pair **in_order; /* as they stand in the file */
    size_t n_pairs;

    int part, n_parts;      /* GGUF in parts: which one this is, and of how many; 0: the first, or whole */
    tg_container **parts;   /* of the first: [n_parts], parts[0] NULL */

    const char *folder; /* Hugging Face */
    json_t *config;
};

/* A metadata value, whatever it was read from. */
typedef enum tg_value_kind {
    TG_VALUE_INT,
    TG_VALUE_HUGE, /* an integer above INT64_MAX */
    TG_VALUE_REAL,
    TG_VALUE_BOOL,
    TG_VALUE_STRING,
    TG_VALUE_ARRAY, /* of a GGUF */
    TG_VALUE_OTHER,
} tg_value_kind;

typedef struct tg_value {
    tg_value_kind kind;
    const char *type_name;
    int64_t i; /* also a boolean */
    double real;
    const char *text;
    size_t text_bytes;
    tg_meta_array array;
} tg_value;

/* ---- the readers: `err` is never NULL here, and empty --------------------------------------- */

/* c->path is a GGUF file. */
tg_status tg_gguf_open(tg_container *c, tg_error *err);
bool tg_gguf_value(const tg_container *c, const char *key, tg_value *value);

/* Refuses a part of a split model without the others, and one that is not the part it should be. */
tg_status tg_gguf_check_split(tg_container *c, tg_error *err);
/* Appends the tensors of the other parts. */
tg_status tg_gguf_join(tg_container *c, tg_error *err);

/* c->path is a folder, or a .safetensors file. */
tg_status tg_hf_open(tg_container *c, tg_error *err);
tg_meta tg_hf_value(const tg_container *c, const char *key, tg_value *value, tg_error *err);

/* Appends the tensors of one opened safetensors file to c->tensors. */
tg_status tg_safetensors_read(tg_container *c, const tg_file *file, const char *path,
                              tg_error *err);

/* ---- shared by them (container.c) --------------------------------------------------------- */

/* Opens part `number` of `whole`. */
tg_status tg_container_open_part(tg_container **part, const tg_container *whole, const char *path, int number,
                                 tg_error *err);

/* Makes room for the n files that will be added. */
tg_status tg_container_room_files(tg_container *c, size_t n, tg_error *err);

/* Opens `path` as the next of c->files. */
tg_status tg_container_add_file(tg_container *c, const char *path, const tg_file **file,
                                tg_error *err);

/* *tensor is a zeroed one at the end of c->tensors, which may move when the next is added. */
tg_status tg_container_add_tensor(tg_container *c, const char *path, tg_tensor **tensor,
                                  tg_error *err);

/* The last step of a reader: the order for look-up by name. Refuses a name that stands twice. */
tg_status tg_container_index(tg_container *c, tg_error *err);

/* Refuses a name that is empty, longer than `max`, or has a control byte. `at` is its byte offset.
 */
tg_status tg_tensor_check_name(const void *name, uint64_t n, uint64_t max, const char *path,
                               uint64_t at, tg_error *err);

/* Fills n_bytes from the dimensions: whole blocks along a row, no overflow. */
tg_status tg_tensor_measure(tg_tensor *t, const tg_layout *layout, tg_error *err);

/* Pointers to n tensors, by where their data begins (empty ones first). Free with tg_free. */
const tg_tensor **tg_tensors_by_data(const tg_tensor *tensors, size_t n, tg_error *err);

static inline bool tg_has_suffix(const char *s, const char *suffix)
{
    size_t n = strlen(s), k = strlen(suffix);
    return n >= k && memcmp(s + n - k, suffix, k) == 0;
}

/* What the first bytes of a file that is not what it should be look like ("an HTML page"), or NULL.
 */
const char *tg_looks_like(const uint8_t *data, uint64_t size);

#endif
