/* gguf.c - reading GGUF, versions 2 and 3.
 *
 *     magic "GGUF", u32 version, u64 tensors, u64 pairs
 *     pairs:   key (u64 length, bytes), u32 type, value
 *     tensors: name (u64 length, bytes), u32 n, u64 dimension[n], u32 type, u64 offset
 *     padding to general.alignment; the data, each tensor's offset counted from here
 *
 * Owns this syntax and everything that can be wrong with it: when tg_gguf_open returns, each value
 * and each tensor lies inside the file. What keys mean is left to those who ask for them.
 * Dimensions are stored innermost first and turned round here. */
#include "format/reader.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    MIN_PAIR_BYTES = 8 + 1 + 4 + 1,
    MIN_TENSOR_BYTES = 8 + 1 + 4 + 8 + 4 + 8,
    MIN_ALIGNMENT = 8,
    DEFAULT_ALIGNMENT = 32,
};

/* Value types by number. */
enum { T_BOOL = 7, T_STRING = 8, T_ARRAY = 9, T_COUNT = 13 };

static const struct {
    const char *name;
    uint8_t bytes; /* 0: has a length of its own */
    tg_value_kind kind;
    bool is_signed;
} types[T_COUNT] = {
    {"uint8", 1, TG_VALUE_INT, false},     {"int8", 1, TG_VALUE_INT, true},
    {"uint16", 2, TG_VALUE_INT, false},    {"int16", 2, TG_VALUE_INT, true},
    {"uint32", 4, TG_VALUE_INT, false},    {"int32", 4, TG_VALUE_INT, true},
    {"float32", 4, TG_VALUE_REAL, true},   {"bool", 1, TG_VALUE_BOOL, false},
    {"string", 0, TG_VALUE_STRING, false}, {"array", 0, TG_VALUE_ARRAY, false},
    {"uint64", 8, TG_VALUE_INT, false},    {"int64", 8, TG_VALUE_INT, true},
    {"float64", 8, TG_VALUE_REAL, true},
};

typedef struct reader {
    tg_container *c;
    tg_cursor in;
    tg_error *err;
    tg_quoted quoted;    /* the key or tensor name at hand, for messages */
    const char *label;   /* quoted.text, or "" before the name is known */
    const char *part;    /* "pair" or "tensor" */
    uint64_t number, of; /* which one is being read, from 1 */
} reader;

/* ---- failing ------------------------------------------------------------------------------ */

static tg_status cut_short(reader *r)
{
    return tg_fail(r->err, TG_E_MODEL, r->c->path,
                   "the file ends inside %s %" PRIu64 " of %" PRIu64 "%s%s (byte offset %" PRIu64
                   "; an incomplete download?)",
                   r->part, r->number, r->of, *r->label ? ", " : "", r->label, r->in.pos);
}

/* Something read at `at` is not what is allowed. */
static tg_status out_of_range(reader *r, const char *what, uint64_t found, const char *allowed,
                              uint64_t at)
{
    return tg_fail(r->err, TG_E_MODEL, r->c->path,
                   "%s %" PRIu64 "%s%s: %s (found %" PRIu64 ", allowed %s, byte offset %" PRIu64
                   ")",
                   r->part, r->number, *r->label ? ", " : "", r->label, what, found, allowed, at);
}

static tg_status past_end(reader *r, const char *what, uint64_t found, uint64_t at)
{
    return tg_fail(r->err, TG_E_MODEL, r->c->path,
                   "%s %" PRIu64 "%s%s: %s (found %" PRIu64 ", allowed at most the %" PRIu64
                   " bytes that are left, byte offset %" PRIu64 "; an incomplete download?)",
                   r->part, r->number, *r->label ? ", " : "", r->label, what, found, tg_cursor_left(&r->in), at);
}

static void begin(reader *r, const char *part, uint64_t index, uint64_t n)
{
    r->part = part;
    r->number = index + 1;
    r->of = n;
    r->label = "";
}

/* ---- key-value pairs ---------------------------------------------------------------------- */

static tg_status read_string(reader *r, const char *what, const uint8_t **bytes, uint64_t *n)
{
    uint64_t at = r->in.pos;
    *n = tg_cursor_u64(&r->in);
    if (r->in.failed)
        return cut_short(r);
    if (*n > tg_cursor_left(&r->in))
        return past_end(r, what, *n, at);
    *bytes = tg_cursor_bytes(&r->in, *n);
    return TG_OK;
}

static tg_status check_bools(reader *r, const uint8_t *raw, uint64_t n, uint64_t at)
{
    for (uint64_t i = 0; i < n; i++)
        if (raw[i] > 1)
            return out_of_range(r, "boolean", raw[i], "0 or 1", at + i);
    return TG_OK;
}

static tg_status read_array(reader *r, tg_gguf_pair *p)
{
    uint64_t at = r->in.pos;
    p->elem = tg_cursor_u32(&r->in);
    p->n = tg_cursor_u64(&r->in);
    if (r->in.failed)
        return cut_short(r);
    if (p->elem >= T_COUNT)
        return out_of_range(r, "type of the array's elements", p->elem, "0 to 12", at);
    if (p->elem == T_ARRAY)
        return out_of_range(r, "an array inside an array", p->elem, "no such element type", at);
    uint64_t least = p->elem == T_STRING ? 8 : types[p->elem].bytes, n_bytes;
    if (!tg_mul_u64(p->n, least, &n_bytes) || n_bytes > tg_cursor_left(&r->in))
        return past_end(r, "length of the array", p->n, at + 4);
    uint64_t start = r->in.pos;
    p->raw = r->in.base + start;
    if (p->elem == T_STRING) {
        const uint8_t *s;
        uint64_t n;
        for (uint64_t i = 0; i < p->n; i++)
            if (read_string(r, "length of a string in the array", &s, &n) != TG_OK)
                return TG_E_MODEL;
    } else {
        tg_cursor_bytes(&r->in, n_bytes);
    }
    p->raw_bytes = r->in.pos - start;
    return p->elem == T_BOOL ? check_bools(r, p->raw, p->n, start) : TG_OK;
}

static tg_status read_value(reader *r, tg_gguf_pair *p)
{
    uint64_t at = r->in.pos;
    p->type = tg_cursor_u32(&r->in);
    if (r->in.failed)
        return cut_short(r);
    if (p->type >= T_COUNT)
        return out_of_range(r, "value type", p->type, "0 to 12", at);
    if (p->type == T_ARRAY)
        return read_array(r, p);
    if (p->type == T_STRING) {
        tg_status status = read_string(r, "length of the string", &p->raw, &p->n);
        if (status != TG_OK)
            return status;
        p->raw = (const uint8_t *)tg_arena_string(r->c->arena, p->raw, p->n, r->err);
        return p->raw ? TG_OK : TG_E_RESOURCE;
    }
    p->n = 1;
    p->raw_bytes = types[p->type].bytes;
    p->raw = tg_cursor_bytes(&r->in, p->raw_bytes);
    if (!p->raw)
        return cut_short(r);
    return p->type == T_BOOL ? check_bools(r, p->raw, 1, at + 4) : TG_OK;
}

static tg_status read_pair(reader *r, tg_gguf_pair *p)
{
    uint64_t at = r->in.pos, n = tg_cursor_u64(&r->in);
    if (r->in.failed)
        return cut_short(r);
    if (n == 0 || n > TG_MAX_KEY_BYTES)
        return out_of_range(r, "length of the key", n, "1 to 65535", at);
    const uint8_t *key = tg_cursor_bytes(&r->in, n);
    if (!key)
        return past_end(r, "length of the key", n, at);
    r->label = tg_quote(&r->quoted, key, n);
    for (uint64_t i = 0; i < n; i++)
        if (key[i] < 0x20 || key[i] > 0x7e)
            return out_of_range(r, "byte of the key", key[i], "printable ASCII", at + 8 + i);
    p->key = tg_arena_string(r->c->arena, key, n, r->err);
    return p->key ? read_value(r, p) : TG_E_RESOURCE;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const tg_gguf_pair *)a)->key, ((const tg_gguf_pair *)b)->key);
}

static int by_place(const void *a, const void *b)
{
    const uint8_t *x = (*(const tg_gguf_pair *const *)a)->whole, *y = (*(const tg_gguf_pair *const *)b)->whole;
    return (x > y) - (x < y);
}

static tg_status read_pairs(reader *r, uint64_t n)
{
    tg_container *c = r->c;
    c->pairs = tg_arena_alloc(c->arena, n, sizeof *c->pairs, "metadata", r->err);
    c->in_order = tg_arena_alloc(c->arena, n, sizeof *c->in_order, "metadata", r->err);
    if (!c->pairs || !c->in_order)
        return TG_E_RESOURCE;
    for (uint64_t i = 0; i < n; i++) {
        begin(r, "pair", i, n);
        uint64_t at = r->in.pos;
        tg_status status = read_pair(r, &c->pairs[i]);
        if (status != TG_OK)
            return status;
        c->pairs[i].whole = r->in.base + at;
        c->pairs[i].whole_bytes = r->in.pos - at;
    }
    c->n_pairs = n;
    qsort(c->pairs, n, sizeof *c->pairs, by_key);
    for (uint64_t i = 0; i < n; i++)
        c->in_order[i] = &c->pairs[i];
    qsort(c->in_order, n, sizeof *c->in_order, by_place);
    for (uint64_t i = 1; i < n; i++)
        if (by_key(&c->pairs[i - 1], &c->pairs[i]) == 0)
            return tg_fail(r->err, TG_E_MODEL, c->path, "duplicate key %s",
                           tg_quote_str(&r->quoted, c->pairs[i].key));
    return TG_OK;
}

/* ---- tensors ------------------------------------------------------------------------------ */

static tg_status read_tensor(reader *r, uint64_t *offset)
{
    tg_tensor *t;
    tg_status status = tg_container_add_tensor(r->c, r->c->path, &t, r->err);
    uint64_t at = r->in.pos, n = 0;
    const uint8_t *name = NULL;
    if (status == TG_OK)
        status = read_string(r, "length of the name", &name, &n);
    if (status == TG_OK)
        status = tg_tensor_check_name(name, n, TG_MAX_NAME_GGUF, r->c->path, at + 8, r->err);
    if (status != TG_OK)
        return status;
    r->label = tg_quote(&r->quoted, name, n);
    t->name = tg_arena_string(r->c->arena, name, n, r->err);
    if (!t->name)
        return TG_E_RESOURCE;

    at = r->in.pos;
    uint32_t n_dim = tg_cursor_u32(&r->in);
    if (r->in.failed)
        return cut_short(r);
    if (n_dim == 0 || n_dim > TG_MAX_DIMS)
        return out_of_range(r, "number of dimensions", n_dim, "1 to 4", at);
    t->n_dim = (int)n_dim;
    for (int i = t->n_dim - 1; i >= 0; i--) {
        at = r->in.pos;
        t->dim[i] = tg_cursor_u64(&r->in);
        if (t->dim[i] > INT64_MAX)
            return out_of_range(r, "dimension", t->dim[i], "less than 2^63", at);
    }

    at = r->in.pos;
    uint32_t id = tg_cursor_u32(&r->in);
    *offset = tg_cursor_u64(&r->in);
    if (r->in.failed)
        return cut_short(r);
    const tg_layout *layout;
    t->type = tg_dtype_by_gguf_id(id, &layout);
    if (!layout)
        return out_of_range(r, "unknown tensor type", id, "the types of ggml", at);
    t->type_name = layout->name;
    return tg_tensor_measure(t, layout, r->err);
}

static tg_status place_tensor(reader *r, tg_tensor *t, uint64_t offset, uint64_t alignment,
                              uint64_t start)
{
    const char *name = tg_quote_str(&r->quoted, t->name);
    uint64_t padded, end, size = r->in.size;
    if (offset % alignment != 0)
        return tg_fail(r->err, TG_E_MODEL, r->c->path,
                       "tensor %s: offset (found %" PRIu64 ", allowed multiples of %" PRIu64 ")",
                       name, offset, alignment);
    if (!tg_add_u64(t->n_bytes, alignment - 1, &padded) || !tg_add_u64(offset, padded, &end))
        return tg_fail(r->err, TG_E_MODEL, r->c->path,
                       "tensor %s: size overflows (found %" PRIu64 " bytes at offset %" PRIu64 ")",
                       name, t->n_bytes, offset);
    if (start > size || offset > size - start || t->n_bytes > size - start - offset)
        return tg_fail(r->err, TG_E_MODEL, r->c->path,
                       "tensor %s lies past the end of the file (found %" PRIu64
                       " bytes in the file; the tensor has %" PRIu64 " at %" PRIu64 " + %" PRIu64
                       "; an incomplete download?)",
                       name, size, t->n_bytes, start, offset);
    t->data = r->in.base + start + offset;
    return TG_OK;
}

static tg_status check_overlap(reader *r)
{
    const tg_container *c = r->c;
    const tg_tensor **sorted = tg_tensors_by_data(c->tensors, c->n_tensors, r->err), *last = NULL;
    if (!sorted)
        return TG_E_RESOURCE;
    tg_status status = TG_OK;
    for (size_t i = 0; i < c->n_tensors && status == TG_OK; i++) {
        const tg_tensor *t = sorted[i];
        if (t->n_bytes == 0)
            continue;
        if (last && t->data < last->data + last->n_bytes) {
            tg_quoted other;
            status = tg_fail(r->err, TG_E_MODEL, c->path,
                             "tensors %s and %s overlap (byte offset %" PRIu64 ")",
                             tg_quote_str(&r->quoted, last->name), tg_quote_str(&other, t->name),
                             (uint64_t)(t->data - r->in.base));
        }
        last = t;
    }
    tg_free(sorted);
    return status;
}

static tg_status read_alignment(reader *r, uint64_t *alignment)
{
    int64_t a = DEFAULT_ALIGNMENT;
    if (tg_meta_int(r->c, "general.alignment", MIN_ALIGNMENT, TG_MAX_ALIGNMENT, &a, r->err) ==
        TG_META_BAD)
        return TG_E_MODEL;
    if ((a & (a - 1)) != 0)
        return tg_fail(r->err, TG_E_MODEL, r->c->path,
                       "general.alignment (found %" PRId64 ", allowed powers of two from 8 to %d)",
                       a, TG_MAX_ALIGNMENT);
    *alignment = (uint64_t)a;
    return TG_OK;
}

static tg_status read_tensors(reader *r, uint64_t n)
{
    tg_container *c = r->c;
    uint64_t alignment = 0, *offset = tg_alloc(n, sizeof *offset, "tensor offsets", r->err);
    if (!offset)
        return TG_E_RESOURCE;
    tg_status status = TG_OK;
    for (uint64_t i = 0; i < n && status == TG_OK; i++) {
        begin(r, "tensor", i, n);
        status = read_tensor(r, &offset[i]);
    }
    if (status == TG_OK)
        status = read_alignment(r, &alignment);
    if (status == TG_OK) {
        uint64_t start = (r->in.pos + alignment - 1) / alignment * alignment;
        for (uint64_t i = 0; i < n && status == TG_OK; i++)
            status = place_tensor(r, &c->tensors[i], offset[i], alignment, start);
    }
    tg_free(offset);
    return status == TG_OK ? check_overlap(r) : status;
}

/* ---- the file ----------------------------------------------------------------------------- */

static tg_status check_magic(reader *r)
{
    tg_container *c = r->c;
    const uint8_t *data = r->in.base;
    uint64_t size = r->in.size;
    if (size == 0)
        return tg_fail(r->err, TG_E_MODEL, c->path, "the file is empty");
    if (size >= 4 && memcmp(data, "GGUF", 4) != 0) {
        const char *like = tg_looks_like(data, size);
        uint32_t magic = tg_cursor_u32(&r->in);
        return tg_fail(r->err, TG_E_MODEL, c->path,
                       "not a GGUF file%s%s (found magic 0x%08" PRIx32
                       ", allowed 0x46554747, byte offset 0)",
                       like ? ": it looks like " : "", like ? like : "", magic);
    }
    if (size < 24)
        return tg_fail(r->err, TG_E_MODEL, c->path,
                       "too short for a GGUF file (found %" PRIu64
                       " bytes, allowed 24 or more; an incomplete download?)",
                       size);
    return TG_OK;
}

static tg_status check_count(reader *r, const char *what, uint64_t n, uint64_t max, uint64_t least,
                             uint64_t at)
{
    if (n > max)
        return tg_fail(r->err, TG_E_MODEL, r->c->path,
                       "number of %s (found %" PRIu64 ", allowed %" PRIu64 ", byte offset %" PRIu64
                       ")",
                       what, n, max, at);
    if (n > tg_cursor_left(&r->in) / least)
        return tg_fail(r->err, TG_E_MODEL, r->c->path,
                       "number of %s (found %" PRIu64 ", allowed the %" PRIu64 " that %" PRIu64
                       " bytes could hold, byte offset %" PRIu64 "; an incomplete download?)",
                       what, n, tg_cursor_left(&r->in) / least, tg_cursor_left(&r->in), at);
    return TG_OK;
}

static tg_status read_file(reader *r)
{
    tg_container *c = r->c;
    tg_status status = check_magic(r);
    if (status != TG_OK)
        return status;
    tg_cursor_bytes(&r->in, 4);
    uint32_t version = tg_cursor_u32(&r->in);
    uint32_t swapped = __builtin_bswap32(version);
    if (swapped >= 1 && swapped <= 3)
        return tg_fail(r->err, TG_E_MODEL, c->path,
                       "a big-endian GGUF file (found version 0x%08" PRIx32
                       ", allowed little-endian 2 and 3, byte offset 4)",
                       version);
    if (version < 2 || version > 3)
        return tg_fail(r->err, TG_E_MODEL, c->path,
                       "GGUF version (found %" PRIu32 ", allowed 2 and 3, byte offset 4)", version);
    c->format = version == 2 ? "GGUF v2" : "GGUF v3";
    uint64_t n_tensors = tg_cursor_u64(&r->in), n_pairs = tg_cursor_u64(&r->in);
    status = check_count(r, "tensors", n_tensors, TG_MAX_TENSORS, MIN_TENSOR_BYTES, 8);
    if (status == TG_OK)
        status = check_count(r, "pairs", n_pairs, TG_MAX_PAIRS, MIN_PAIR_BYTES, 16);
    if (status == TG_OK)
        status = read_pairs(r, n_pairs);
    if (status == TG_OK)
        status = tg_gguf_check_split(c, r->err);
    return status == TG_OK ? read_tensors(r, n_tensors) : status;
}

tg_status tg_gguf_open(tg_container *c, tg_error *err)
{
    c->kind = TG_CONTAINER_GGUF;
    c->meta_path = c->path;
    const tg_file *file;
    tg_status status = tg_container_room_files(c, 1, err);
    if (status == TG_OK)
        status = tg_container_add_file(c, c->path, &file, err);
    if (status != TG_OK)
        return status;
    reader r = {.c = c, .in = tg_cursor_make(file->data, file->size), .err = err, .label = ""};
    status = read_file(&r);
    if (status == TG_OK)
        status = tg_gguf_join(c, err);
    return status == TG_OK ? tg_container_index(c, err) : status;
}

const uint8_t *tg_container_pair_at(const tg_container *c, size_t i, const char **key, size_t *n_bytes)
{
    if (i >= c->n_pairs)
        return NULL;
    *key = c->in_order[i]->key;
    *n_bytes = (size_t)c->in_order[i]->whole_bytes;
    return c->in_order[i]->whole;
}

/* ---- values ------------------------------------------------------------------------------- */

/* The integer at p, sign-extended when its type is signed. */
static uint64_t integer_at(const uint8_t *p, uint32_t type)
{
    int n = types[type].bytes;
    tg_cursor in = tg_cursor_make(p, (uint64_t)n);
    uint64_t v = tg_cursor_uint(&in, n);
    if (types[type].is_signed && n < 8 && v >> (8 * n - 1))
        v |= UINT64_MAX << (8 * n);
    return v;
}

static double real_at(const uint8_t *p, uint32_t type)
{
    if (types[type].bytes == 8) {
        double d;
        memcpy(&d, p, 8);
        return d;
    }
    float f;
    memcpy(&f, p, 4);
    return (double)f;
}

bool tg_gguf_value(const tg_container *c, const char *key, tg_value *value)
{
    tg_gguf_pair wanted = {.key = key};
    const tg_gguf_pair *p =
        c->n_pairs ? bsearch(&wanted, c->pairs, c->n_pairs, sizeof *c->pairs, by_key) : NULL;
    if (!p)
        return false;
    *value = (tg_value){.kind = types[p->type].kind, .type_name = types[p->type].name};
    uint64_t u;
    switch (value->kind) {
    case TG_VALUE_INT:
    case TG_VALUE_BOOL:
        u = integer_at(p->raw, p->type);
        value->i = (int64_t)u;
        value->real = (double)value->i;
        if (!types[p->type].is_signed && u > INT64_MAX) {
            value->kind = TG_VALUE_HUGE;
            value->real = (double)u;
        }
        break;
    case TG_VALUE_REAL:
        value->real = real_at(p->raw, p->type);
        break;
    case TG_VALUE_STRING:
        value->text = (const char *)p->raw;
        value->text_bytes = p->n;
        break;
    default:
        value->array =
            (tg_meta_array){.elem = types[p->elem].kind == TG_VALUE_STRING ? TG_ELEM_STRING
                                    : types[p->elem].kind == TG_VALUE_REAL ? TG_ELEM_REAL
                                                                           : TG_ELEM_INT,
                            .n = p->n,
                            .gguf_type = (int)p->elem,
                            .raw = p->raw,
                            .raw_bytes = p->raw_bytes};
        break;
    }
    return true;
}

void tg_meta_array_next_string(const tg_meta_array *a, uint64_t *at, const uint8_t **bytes,
                               uint64_t *n_bytes)
{
    tg_cursor in = tg_cursor_make(a->raw, a->raw_bytes);
    in.pos = *at;
    *n_bytes = tg_cursor_u64(&in);
    *bytes = tg_cursor_bytes(&in, *n_bytes);
    if (!*bytes) { /* it was whole when it was opened: someone has written to the file since */
        *bytes = (const uint8_t *)"";
        *n_bytes = 0;
    }
    *at = in.pos;
}

int64_t tg_meta_array_int(const tg_meta_array *a, uint64_t i)
{
    uint32_t type = (uint32_t)a->gguf_type;
    uint64_t v = integer_at(a->raw + i * types[type].bytes, type);
    return !types[type].is_signed && v > INT64_MAX ? INT64_MAX : (int64_t)v;
}

double tg_meta_array_real(const tg_meta_array *a, uint64_t i)
{
    uint32_t type = (uint32_t)a->gguf_type;
    if (types[type].kind != TG_VALUE_REAL)
        return (double)tg_meta_array_int(a, i);
    return real_at(a->raw + i * types[type].bytes, type);
}
