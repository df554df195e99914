/* container.h - what a model's files hold, whatever their syntax: metadata and tensors.
 *
 * Two kinds stand behind it: one GGUF file, or a Hugging Face folder (config.json with safetensors).
 * File syntax ends here. All tensors are checked against the real file size, for overlap and for
 * duplicates before one is handed out; their data is borrowed from the mapping and lives as long as
 * the container. Metadata is reached by key: in a GGUF its own keys ("llama.block_count"), in a folder
 * dotted paths into config.json ("rope_scaling.factor"). */
#ifndef TG_FORMAT_CONTAINER_H
#define TG_FORMAT_CONTAINER_H

#include <jansson.h>

#include "base/error.h"
#include "base/file.h"
#include "kernel/dtype.h"

typedef enum tg_container_kind { TG_CONTAINER_GGUF, TG_CONTAINER_HF } tg_container_kind;

typedef struct tg_tensor {
    const char *name;
    const tg_dtype *type; /* NULL: a type that tinygpt does not compute with; see type_name */
    const char *type_name;
    int n_dim;
    uint64_t dim[4]; /* row-major, dim[0] outermost; those past n_dim are 1 */
    const uint8_t *data; /* not aligned */
    uint64_t n_bytes;
    const char *file; /* the path it lies in, for messages */
} tg_tensor;

typedef struct tg_container tg_container;

/* `read` reads the weights instead of mapping them. The path is a GGUF file, a folder, or a .safetensors
 * file beside its config.json. A folder's weights are model.safetensors, else the shards that
 * model.safetensors.index.json names, else all of model-NNNNN-of-NNNNN.safetensors. A .safetensors file
 * that belongs to them stands for its folder; another one is taken as the weights instead of them. */
tg_status tg_container_open(tg_container **container, const char *path, bool read, tg_error *err);
void tg_container_free(tg_container *container);

/* n_bytes of a tensor's data that will hardly be read again: where they are mapped, their pages leave the process. */
void tg_container_release(const tg_container *c, const void *data, size_t n_bytes);

tg_container_kind tg_container_get_kind(const tg_container *c);
const char *tg_container_path(const tg_container *c);   /* as the user gave it */
const char *tg_container_meta_path(const tg_container *c); /* where metadata stands: the GGUF, or config.json */
/* TG_E_IO if a mapped file of weights was overwritten in place since it was opened. */
tg_status tg_container_check_unchanged(const tg_container *c, tg_error *err);
/* TG_E_USAGE if writing `path` would take one of the files away that the model consists of, and for no name at all. */
tg_status tg_container_check_output(const tg_container *c, const char *path, tg_error *err);
const char *tg_container_format(const tg_container *c); /* "GGUF v3", "safetensors" */

size_t tg_container_n_tensors(const tg_container *c);
const tg_tensor *tg_container_tensor_at(const tg_container *c, size_t i); /* in the file's order */
const tg_tensor *tg_container_tensor(const tg_container *c, const char *name); /* NULL: absent */

/* Metadata. TG_META_ABSENT, or JSON's null, leaves *out alone; a value of the wrong type or out of
 * range fails with TG_E_MODEL, naming key, what was found and what is allowed. Integers are taken from
 * any integer width (GGUF) or from JSON integers; reals also from integers. */
typedef enum tg_meta { TG_META_ABSENT, TG_META_FOUND, TG_META_BAD } tg_meta;

tg_meta tg_meta_int(const tg_container *c, const char *key, int64_t min, int64_t max, int64_t *out,
                    tg_error *err);
tg_meta tg_meta_real(const tg_container *c, const char *key, double *out, tg_error *err); /* finite */
tg_meta tg_meta_bool(const tg_container *c, const char *key, bool *out, tg_error *err);
/* *out is UTF-8 or arbitrary bytes (GGUF promises nothing), n_bytes long and NUL-terminated. */
tg_meta tg_meta_string(const tg_container *c, const char *key, const char **out, size_t *n_bytes,
                       tg_error *err);

/* Arrays of a GGUF, element by element; a folder has none behind this interface. */
typedef enum tg_elem { TG_ELEM_INT, TG_ELEM_REAL, TG_ELEM_STRING } tg_elem;

typedef struct tg_meta_array {
    tg_elem elem;
    uint64_t n;
    int gguf_type;      /* value type number of the elements */
    const uint8_t *raw; /* their bytes in the file; for strings use tg_meta_array_next */
    uint64_t raw_bytes;
} tg_meta_array;

tg_meta tg_meta_get_array(const tg_container *c, const char *key, tg_elem elem, tg_meta_array *out,
                          tg_error *err);
/* Walks the strings: *at starts at 0 and moves; n_bytes of *bytes, not NUL-terminated. Bounds were
 * checked when the container was opened. */
void tg_meta_array_next_string(const tg_meta_array *a, uint64_t *at, const uint8_t **bytes,
                               uint64_t *n_bytes);
int64_t tg_meta_array_int(const tg_meta_array *a, uint64_t i);
double tg_meta_array_real(const tg_meta_array *a, uint64_t i);

/* Pair i of a GGUF's metadata in the order of the file: key, type and value as they lie there, n_bytes of them;
 * *key is its name. NULL behind the last, and in a folder. */
const uint8_t *tg_container_pair_at(const tg_container *c, size_t i, const char **key, size_t *n_bytes);

/* A hash by which models are told apart without being read: of the metadata that says what is computed, of the names,
 * types and sizes of all tensors, and of a few places in each. It sees a model trained further, or quantised anew, but
 * not a row or two that were edited; and to be the same, a model must lie in the same kind of container. */
tg_status tg_container_fingerprint(const tg_container *c, uint64_t *hash, tg_error *err);

/* config.json of a folder, parsed; NULL for a GGUF. */
const json_t *tg_container_config(const tg_container *c);

/* Opens a file beside the weights of a folder ("tokenizer.json"), one of those that container.c lists, at most
 * max_bytes; absent: TG_OK with file->data NULL and *path NULL. *path (tg_free) is for messages. A GGUF has none. */
tg_status tg_container_sidecar(const tg_container *c, const char *name, uint64_t max_bytes,
                               tg_file *file, char **path, tg_error *err);

/* Limits, each tested at the limit and one past it. */
enum {
    TG_MAX_PAIRS = 65536,
    TG_MAX_TENSORS = 65536,
    TG_MAX_KEY_BYTES = 65535,
    TG_MAX_NAME_GGUF = 64,
    TG_MAX_NAME_SAFETENSORS = 1024,
    TG_MAX_DIMS = 4,
    TG_MAX_ALIGNMENT = 1 << 20,
    TG_MAX_SHARDS = 1024,
    TG_MAX_SAFETENSORS_HEADER = 100000000,
    TG_MAX_JSON_BYTES = 64 << 20,
};

#endif
