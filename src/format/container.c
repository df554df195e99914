/* container.c - the handle over a model's files: tensors by index and by name, metadata by key and
 * type.
 *
 * Owns memory, look-up and the rules that both syntaxes share. The readers (gguf.c, hf.c with
 * safetensors.c) fill it and are not seen by anybody else. */
#include "format/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>

/* ---- opening ------------------------------------------------------------------------------ */

static tg_status fill(tg_container *c, const char *path, tg_error *err)
{
    c->arena = tg_arena_create(err);
    if (!c->arena)
        return TG_E_RESOURCE;
    c->path = tg_arena_string(c->arena, path, strlen(path), err);
    if (!c->path)
        return TG_E_RESOURCE;
    errno = 0;
    if (tg_path_is_folder(path) || tg_has_suffix(path, ".safetensors"))
        return tg_hf_open(c, err);
    if (errno && errno != ENOENT)
        return tg_fail_errno(err, path, "cannot be examined");
    return tg_gguf_open(c, err);
}

/* `start` says what the container is before it is filled. */
static tg_status open_as(tg_container **container, tg_container start, const char *path, tg_error *err)
{
    *container = NULL;
    tg_container *c = tg_alloc(1, sizeof *c, "a container", err);
    if (!c)
        return TG_E_RESOURCE;
    *c = start;
    tg_error own = {0}; /* the readers count on a record, and on an empty one */
    tg_status status = fill(c, path, &own);
    if (status == TG_OK) {
        *container = c;
        return TG_OK;
    }
    tg_container_free(c);
    return tg_fail(err, status, NULL, "%s", own.message);
}

tg_status tg_container_open(tg_container **container, const char *path, bool read, tg_error *err)
{
    return open_as(container, (tg_container){.read = read}, path, err);
}

tg_status tg_container_open_part(tg_container **part, const tg_container *whole, const char *path, int number,
                                 tg_error *err)
{
    return open_as(part, (tg_container){.read = whole->read, .part = number, .n_parts = whole->n_parts}, path, err);
}

void tg_container_free(tg_container *c)
{
    if (!c)
        return;
    for (int i = 1; c->parts && i < c->n_parts; i++)
        tg_container_free(c->parts[i]);
    for (size_t i = 0; i < c->n_files; i++)
        tg_file_close(&c->files[i]);
    tg_free(c->tensors);
    tg_free(c->by_name);
    json_decref(c->config);
    tg_arena_free(c->arena);
    tg_free(c);
}

/* ---- tensors ------------------------------------------------------------------------------ */

tg_status tg_container_add_tensor(tg_container *c, const char *path, tg_tensor **tensor,
                                  tg_error *err)
{
    if (c->n_tensors == TG_MAX_TENSORS)
        return tg_fail(err, TG_E_MODEL, path, "too many tensors (allowed %d in a model)",
                       TG_MAX_TENSORS);
    void *array = c->tensors;
    if (!tg_grow(&array, &c->tensors_capacity, c->n_tensors + 1, sizeof *c->tensors,
                 "the list of tensors", err))
        return TG_E_RESOURCE;
    c->tensors = array;
    *tensor = &c->tensors[c->n_tensors++];
    **tensor = (tg_tensor){.dim = {1, 1, 1, 1}, .file = path};
    return TG_OK;
}

tg_status tg_tensor_check_name(const void *name, uint64_t n, uint64_t max, const char *path,
                               uint64_t at, tg_error *err)
{
    const uint8_t *s = name;
    if (n == 0 || n > max)
        return tg_fail(err, TG_E_MODEL, path,
                       "length of a tensor's name (found %" PRIu64 ", allowed 1 to %" PRIu64
                       ", byte offset %" PRIu64 ")",
                       n, max, at);
    tg_quoted q;
    for (uint64_t i = 0; i < n; i++)
        if (s[i] < 0x20 || s[i] == 0x7f)
            return tg_fail(err, TG_E_MODEL, path,
                           "control byte in the tensor name %s (byte offset %" PRIu64 ")",
                           tg_quote(&q, s, n), at + i);
    return TG_OK;
}

tg_status tg_tensor_measure(tg_tensor *t, const tg_layout *layout, tg_error *err)
{
    tg_quoted q;
    uint64_t n = 1, row = t->n_dim ? t->dim[t->n_dim - 1] : 1;
    bool empty = false, fits = true;
    for (int i = 0; i < t->n_dim; i++)
        empty |= t->dim[i] == 0;
    for (int i = 0; i < t->n_dim && !empty && fits; i++)
        fits = tg_mul_u64(n, t->dim[i], &n);
    if (empty)
        n = 0;
    if (fits && row % (uint64_t)layout->block != 0)
        return tg_fail(err, TG_E_MODEL, t->file,
                       "tensor %s: row length (found %" PRIu64
                       ", allowed multiples of %s's block, %d)",
                       tg_quote_str(&q, t->name), row, layout->name, layout->block);
    if (!fits ||
        !tg_mul_u64(n / (uint64_t)layout->block, (uint64_t)layout->block_bytes, &t->n_bytes))
        return tg_fail(err, TG_E_MODEL, t->file,
                       "tensor %s: size overflows (found [%" PRIu64 ", %" PRIu64 ", %" PRIu64
                       ", %" PRIu64 "] of %s)",
                       tg_quote_str(&q, t->name), t->dim[0], t->dim[1], t->dim[2], t->dim[3],
                       layout->name);
    return TG_OK;
}

static int compare_data(const void *a, const void *b)
{
    const tg_tensor *x = *(const tg_tensor *const *)a, *y = *(const tg_tensor *const *)b;
    if (x->data != y->data)
        return x->data < y->data ? -1 : 1;
    return (x->n_bytes > y->n_bytes) - (x->n_bytes < y->n_bytes);
}

static int compare_name(const void *a, const void *b)
{
    return strcmp((*(const tg_tensor *const *)a)->name, (*(const tg_tensor *const *)b)->name);
}

static const tg_tensor **pointers(const tg_tensor *tensors, size_t n, tg_error *err)
{
    const tg_tensor **p = tg_alloc(n, sizeof *p, "an order of tensors", err);
    for (size_t i = 0; p && i < n; i++)
        p[i] = &tensors[i];
    return p;
}

const tg_tensor **tg_tensors_by_data(const tg_tensor *tensors, size_t n, tg_error *err)
{
    const tg_tensor **p = pointers(tensors, n, err);
    if (p)
        qsort(p, n, sizeof *p, compare_data);
    return p;
}

tg_status tg_container_index(tg_container *c, tg_error *err)
{
    c->by_name = pointers(c->tensors, c->n_tensors, err);
    if (!c->by_name)
        return TG_E_RESOURCE;
    qsort(c->by_name, c->n_tensors, sizeof *c->by_name, compare_name);
    tg_quoted q, other;
    for (size_t i = 1; i < c->n_tensors; i++) {
        const tg_tensor *a = c->by_name[i - 1], *b = c->by_name[i];
        if (strcmp(a->name, b->name) == 0)
            return tg_fail(err, TG_E_MODEL, a->file, "duplicate tensor %s%s%s",
                           tg_quote_str(&q, a->name), a->file == b->file ? "" : ", also in ",
                           a->file == b->file ? "" : tg_quote_str(&other, b->file));
    }
    return TG_OK;
}

size_t tg_container_n_tensors(const tg_container *c)
{
    return c->n_tensors;
}

const tg_tensor *tg_container_tensor_at(const tg_container *c, size_t i)
{
    return &c->tensors[i];
}

const tg_tensor *tg_container_tensor(const tg_container *c, const char *name)
{
    tg_tensor wanted = {.name = name};
    const tg_tensor *key = &wanted;
    const tg_tensor **found =
        c->n_tensors ? bsearch(&key, c->by_name, c->n_tensors, sizeof key, compare_name) : NULL;
    return found ? *found : NULL;
}

/* ---- metadata ----------------------------------------------------------------------------- */

static tg_meta look_up(const tg_container *c, const char *key, tg_value *v, tg_error *err)
{
    if (c->kind == TG_CONTAINER_HF)
        return tg_hf_value(c, key, v, err);
    return tg_gguf_value(c, key, v) ? TG_META_FOUND : TG_META_ABSENT;
}

static tg_meta wrong_type(const tg_container *c, const char *key, const tg_value *v,
                          const char *allowed, tg_error *err)
{
    tg_fail(err, TG_E_MODEL, c->meta_path, "%s: wrong type (found %s, allowed %s)", key,
            v->type_name, allowed);
    return TG_META_BAD;
}

tg_meta tg_meta_int(const tg_container *c, const char *key, int64_t min, int64_t max, int64_t *out,
                    tg_error *err)
{
    tg_value v;
    tg_meta found = look_up(c, key, &v, err);
    if (found != TG_META_FOUND)
        return found;
    if (v.kind != TG_VALUE_INT && v.kind != TG_VALUE_HUGE)
        return wrong_type(c, key, &v, "an integer", err);
    if (v.kind == TG_VALUE_INT && v.i >= min && v.i <= max) {
        *out = v.i;
        return TG_META_FOUND;
    }
    tg_fail(err, TG_E_MODEL, c->meta_path,
            "%s (found %" PRId64 "%s, allowed %" PRId64 " to %" PRId64 ")", key,
            v.kind == TG_VALUE_HUGE ? INT64_MAX : v.i, v.kind == TG_VALUE_HUGE ? " or more" : "",
            min, max);
    return TG_META_BAD;
}

tg_meta tg_meta_real(const tg_container *c, const char *key, double *out, tg_error *err)
{
    tg_value v;
    tg_meta found = look_up(c, key, &v, err);
    if (found != TG_META_FOUND)
        return found;
    if (v.kind != TG_VALUE_REAL && v.kind != TG_VALUE_INT && v.kind != TG_VALUE_HUGE)
        return wrong_type(c, key, &v, "a number", err);
    if (!isfinite(v.real)) {
        tg_fail(err, TG_E_MODEL, c->meta_path, "%s (found %g, allowed a finite number)", key,
                v.real);
        return TG_META_BAD;
    }
    *out = v.real;
    return TG_META_FOUND;
}

tg_meta tg_meta_bool(const tg_container *c, const char *key, bool *out, tg_error *err)
{
    tg_value v;
    tg_meta found = look_up(c, key, &v, err);
    if (found != TG_META_FOUND)
        return found;
    if (v.kind != TG_VALUE_BOOL)
        return wrong_type(c, key, &v, "a boolean", err);
    *out = v.i != 0;
    return TG_META_FOUND;
}

tg_meta tg_meta_string(const tg_container *c, const char *key, const char **out, size_t *n_bytes,
                       tg_error *err)
{
    tg_value v;
    tg_meta found = look_up(c, key, &v, err);
    if (found != TG_META_FOUND)
        return found;
    if (v.kind != TG_VALUE_STRING)
        return wrong_type(c, key, &v, "a string", err);
    *out = v.text;
    *n_bytes = v.text_bytes;
    return TG_META_FOUND;
}

tg_meta tg_meta_get_array(const tg_container *c, const char *key, tg_elem elem, tg_meta_array *out,
                          tg_error *err)
{
    static const char *const names[] = {"integers", "numbers", "strings"};
    tg_value v;
    if (c->kind != TG_CONTAINER_GGUF || !tg_gguf_value(c, key, &v))
        return TG_META_ABSENT;
    bool fits = v.kind == TG_VALUE_ARRAY &&
                (v.array.elem == elem || (v.array.elem == TG_ELEM_INT && elem == TG_ELEM_REAL));
    if (!fits) {
        tg_fail(err, TG_E_MODEL, c->meta_path,
                "%s: wrong type (found %s%s, allowed an array of %s)", key, v.type_name,
                v.kind == TG_VALUE_ARRAY ? "" : ", a single value", names[elem]);
        return TG_META_BAD;
    }
    *out = v.array;
    return TG_META_FOUND;
}

/* ---- the rest ----------------------------------------------------------------------------- */

tg_container_kind tg_container_get_kind(const tg_container *c)
{
    return c->kind;
}

const char *tg_container_path(const tg_container *c)
{
    return c->path;
}

const char *tg_container_meta_path(const tg_container *c)
{
    return c->meta_path;
}

const char *tg_container_format(const tg_container *c)
{
    return c->format;
}

const json_t *tg_container_config(const tg_container *c)
{
    return c->config;
}

/* ---- telling what a foreign file is ------------------------------------------------------- */

static bool starts(const uint8_t *data, uint64_t size, const char *with)
{
    size_t n = strlen(with);
    return size >= n && strncasecmp((const char *)data, with, n) == 0;
}

const char *tg_looks_like(const uint8_t *data, uint64_t size)
{
    static const struct {
        const char *magic, *name;
    } magics[] = {
        {"version https://git-lfs", "a Git LFS pointer (the file itself was not downloaded)"},
        {"PK\x03\x04", "a zip archive, such as a PyTorch checkpoint"},
        {"\x80\x02", "a pickle, such as a PyTorch checkpoint"},
        {"\x80\x03", "a pickle"},
        {"\x80\x04", "a pickle"},
        {"\x80\x05", "a pickle"},
        {"lmgg", "a legacy GGML file, older than GGUF"},
        {"fmgg", "a legacy GGML file (GGMF), older than GGUF"},
        {"tjgg", "a legacy GGML file (GGJT), older than GGUF"},
        {"GGUF", "a GGUF file"},
    };
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if (starts(data, size, magics[i].magic))
            return magics[i].name;
    tg_cursor in = tg_cursor_make(data, size);
    uint64_t n = tg_cursor_u64(&in);
    if (n > 1 && n <= tg_cursor_left(&in) && data[8] == '{')
        return "a safetensors file";

    if (starts(data, size, "\xef\xbb\xbf"))
        data += 3, size -= 3;
    while (size && (*data == ' ' || *data == '\t' || *data == '\r' || *data == '\n'))
        data++, size--;
    if (size && *data == '<')
        return "an HTML page";
    if (size && (*data == '{' || *data == '['))
        return "JSON text";
    return NULL;
}
