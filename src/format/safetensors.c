/* safetensors.c - reading one safetensors file.
 *
 *     u64 n, n bytes of JSON, the data
 *     {"__metadata__": {text: text}, name: {"dtype": "F32", "shape": [2, 3], "data_offsets": [0,
 * 24]}, ...}
 *
 * Offsets count from the start of the data, which the tensors cover without hole or overlap. Owns
 * this syntax; which tensors of which file make the model is hf.c's. */
#include "format/reader.h"

#include <inttypes.h>

typedef struct reader {
    tg_container *c;
    const char *path;
    const uint8_t *data; /* size bytes of tensors */
    uint64_t size;
    tg_error *err;
    tg_quoted quoted; /* the tensor's name */
} reader;

static tg_status bad_field(reader *r, const char *field, const char *found, const char *allowed)
{
    tg_quoted q;
    return tg_fail(r->err, TG_E_MODEL, r->path, "tensor %s: %s (found %s, allowed %s)",
                   r->quoted.text, field, tg_quote_str(&q, found), allowed);
}

static const char *type_of(const json_t *v)
{
    return v ? tg_json_type_name(v) : "nothing";
}

/* A list of at least min and at most max sizes; *n of them. */
static tg_status read_sizes(reader *r, const json_t *entry, const char *field, size_t min,
                            size_t max, uint64_t *out, size_t *n)
{
    const json_t *list = json_object_get(entry, field);
    if (!json_is_array(list))
        return bad_field(r, field, type_of(list), "an array");
    *n = json_array_size(list);
    if (*n < min || *n > max)
        return tg_fail(r->err, TG_E_MODEL, r->path,
                       "tensor %s: %s (found %zu numbers, allowed %zu to %zu)", r->quoted.text,
                       field, *n, min, max);
    for (size_t i = 0; i < *n; i++) {
        const json_t *v = json_array_get(list, i);
        if (!json_is_integer(v))
            return bad_field(r, field, type_of(v), "integers");
        if (json_integer_value(v) < 0)
            return bad_field(r, field, "a negative number", "sizes");
        out[i] = (uint64_t)json_integer_value(v);
    }
    return TG_OK;
}

static tg_status read_tensor(reader *r, const char *name, const json_t *entry)
{
    tg_tensor *t;
    tg_status status =
        tg_tensor_check_name(name, strlen(name), TG_MAX_NAME_SAFETENSORS, r->path, 8, r->err);
    if (status == TG_OK)
        status = tg_container_add_tensor(r->c, r->path, &t, r->err);
    if (status != TG_OK)
        return status;
    t->name = tg_arena_string(r->c->arena, name, strlen(name), r->err);
    if (!t->name)
        return TG_E_RESOURCE;
    tg_quote_str(&r->quoted, name);
    if (!json_is_object(entry))
        return bad_field(r, "entry", type_of(entry), "an object");

    const json_t *dtype = json_object_get(entry, "dtype");
    if (!json_is_string(dtype))
        return bad_field(r, "dtype", type_of(dtype), "a string");
    const tg_layout *layout;
    t->type = tg_dtype_by_safetensors_name(json_string_value(dtype), &layout);
    if (!layout)
        return bad_field(r, "unknown dtype", json_string_value(dtype), "F32, F16, BF16, ...");
    t->type_name = layout->name;

    size_t n;
    status = read_sizes(r, entry, "shape", 0, TG_MAX_DIMS, t->dim, &n);
    if (status != TG_OK)
        return status;
    t->n_dim = (int)n;
    status = tg_tensor_measure(t, layout, r->err);
    uint64_t range[2] = {0, 0};
    if (status == TG_OK)
        status = read_sizes(r, entry, "data_offsets", 2, 2, range, &n);
    if (status != TG_OK)
        return status;
    if (range[0] > range[1])
        return tg_fail(r->err, TG_E_MODEL, r->path,
                       "tensor %s: data_offsets (found begin %" PRIu64 " after end %" PRIu64 ")",
                       r->quoted.text, range[0], range[1]);
    if (range[1] > r->size)
        return tg_fail(r->err, TG_E_MODEL, r->path,
                       "tensor %s lies past the end of the file (found %" PRIu64
                       " bytes of data, needed %" PRIu64 "; an incomplete download?)",
                       r->quoted.text, r->size, range[1]);
    if (range[1] - range[0] != t->n_bytes)
        return tg_fail(r->err, TG_E_MODEL, r->path,
                       "tensor %s: size (found %" PRIu64 " bytes, shape and dtype need %" PRIu64
                       ")",
                       r->quoted.text, range[1] - range[0], t->n_bytes);
    t->data = r->data + range[0];
    return TG_OK;
}

static tg_status check_metadata(reader *r, json_t *metadata)
{
    const char *key;
    json_t *value;
    if (!json_is_object(metadata))
        return tg_fail(r->err, TG_E_MODEL, r->path, "__metadata__ (found %s, allowed an object)",
                       type_of(metadata));
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value))
            return tg_fail(r->err, TG_E_MODEL, r->path,
                           "__metadata__: %s (found %s, allowed a string)",
                           tg_quote_str(&r->quoted, key), type_of(value));
    }
    return TG_OK;
}

/* The tensors from `first` on cover the data exactly. */
static tg_status check_cover(reader *r, size_t first)
{
    size_t n = r->c->n_tensors - first;
    const tg_tensor **sorted = tg_tensors_by_data(n ? r->c->tensors + first : NULL, n, r->err);
    if (!sorted)
        return TG_E_RESOURCE;
    tg_status status = TG_OK;
    tg_quoted other;
    uint64_t end = 0;
    for (size_t i = 0; i < n && status == TG_OK; i++) {
        const tg_tensor *t = sorted[i];
        uint64_t begin = (uint64_t)(t->data - r->data);
        tg_quote_str(&r->quoted, t->name);
        if (begin < end)
            status = tg_fail(r->err, TG_E_MODEL, r->path,
                             "tensors %s and %s overlap (data offset %" PRIu64 ")",
                             tg_quote_str(&other, sorted[i - 1]->name), r->quoted.text, begin);
        else if (begin > end)
            status = tg_fail(r->err, TG_E_MODEL, r->path,
                             "a hole in the data before tensor %s (found offset %" PRIu64
                             ", allowed %" PRIu64 ")",
                             r->quoted.text, begin, end);
        end = begin + t->n_bytes;
    }
    tg_free(sorted);
    if (status == TG_OK && end != r->size)
        status = tg_fail(r->err, TG_E_MODEL, r->path,
                         "bytes after the last tensor (found %" PRIu64
                         " bytes of data, allowed %" PRIu64 ")",
                         r->size, end);
    return status;
}

static tg_status read_header(reader *r, json_t *header)
{
    size_t first = r->c->n_tensors;
    const char *name;
    json_t *entry;
    if (!json_is_object(header))
        return tg_fail(r->err, TG_E_MODEL, r->path, "header (found %s, allowed an object)",
                       type_of(header));
    json_object_foreach(header, name, entry)
    {
        tg_status status = strcmp(name, "__metadata__") == 0 ? check_metadata(r, entry)
                                                             : read_tensor(r, name, entry);
        if (status != TG_OK)
            return status;
    }
    return check_cover(r, first);
}

tg_status tg_safetensors_read(tg_container *c, const tg_file *file, const char *path, tg_error *err)
{
    tg_cursor in = tg_cursor_make(file->data, file->size);
    uint64_t n = tg_cursor_u64(&in);
    if (in.failed)
        return tg_fail(err, TG_E_MODEL, path,
                       "too short for a safetensors file (found %" PRIu64
                       " bytes, allowed 8 or more)",
                       file->size);
    uint64_t left = tg_cursor_left(&in);
    uint64_t max = left < TG_MAX_SAFETENSORS_HEADER ? left : TG_MAX_SAFETENSORS_HEADER;
    if (n == 0 || n > max) {
        const char *like = n > left ? tg_looks_like(file->data, file->size) : NULL;
        if (like)
            return tg_fail(err, TG_E_MODEL, path, "not a safetensors file: it looks like %s", like);
        return tg_fail(err, TG_E_MODEL, path,
                       "length of the header (found %" PRIu64 ", allowed 1 to %" PRIu64
                       " in %" PRIu64 " bytes, byte offset 0; an incomplete download?)",
                       n, max, file->size);
    }
    const uint8_t *text = tg_cursor_bytes(&in, n);
    json_t *header = tg_json_parse(text, n, path, err);
    if (!header)
        return err->status;
    reader r = {.c = c, .path = path, .data = text + n, .size = left - n, .err = err};
    tg_status status = read_header(&r, header);
    json_decref(header);
    return status;
}
