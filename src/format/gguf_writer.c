/* gguf_writer.c - the syntax of GGUF, as gguf.c reads it, put together in memory. */
#include "format/gguf_writer.h"

#include <string.h>

#include "base/memory.h"

enum { HEAD_BYTES = 24, VERSION = 3, ARRAY = 9 };

static void put(tg_gguf_writer *w, const void *bytes, size_t n)
{
    void *array = w->bytes;
    w->failed = w->failed || !tg_grow(&array, &w->room, w->n + n, 1, "the head of a GGUF", w->err);
    if (w->failed)
        return;
    w->bytes = array;
    memcpy(w->bytes + w->n, bytes, n);
    w->n += n;
}

/* The low n bytes, the lowest first. */
static void put_uint(tg_gguf_writer *w, uint64_t value, size_t n)
{
    uint8_t b[8];
    for (size_t i = 0; i < n; i++)
        b[i] = (uint8_t)(value >> 8 * i);
    put(w, b, n);
}

static void put_key(tg_gguf_writer *w, const char *key, uint32_t type)
{
    w->n_pairs++;
    tg_gguf_add_text(w, key, strlen(key));
    put_uint(w, type, 4);
}

void tg_gguf_writer_init(tg_gguf_writer *w, tg_error *err)
{
    *w = (tg_gguf_writer){.alignment = 32, .err = err};
    static const uint8_t none[HEAD_BYTES];
    put(w, none, sizeof none);
}

void tg_gguf_writer_deinit(tg_gguf_writer *w)
{
    tg_free(w->bytes);
    *w = (tg_gguf_writer){0};
}

void tg_gguf_put_u32(tg_gguf_writer *w, const char *key, uint32_t value)
{
    put_key(w, key, TG_GGUF_U32);
    put_uint(w, value, 4);
}

void tg_gguf_put_f32(tg_gguf_writer *w, const char *key, float value)
{
    put_key(w, key, TG_GGUF_F32);
    tg_gguf_add_f32(w, value);
}

void tg_gguf_put_bool(tg_gguf_writer *w, const char *key, bool value)
{
    put_key(w, key, TG_GGUF_BOOL);
    tg_gguf_add_bool(w, value);
}

void tg_gguf_put_text(tg_gguf_writer *w, const char *key, const char *text, size_t n)
{
    put_key(w, key, TG_GGUF_TEXT);
    tg_gguf_add_text(w, text, n);
}

void tg_gguf_put_raw(tg_gguf_writer *w, const uint8_t *pair, size_t n)
{
    w->n_pairs++;
    put(w, pair, n);
}

void tg_gguf_put_array(tg_gguf_writer *w, const char *key, tg_gguf_elem elem, uint64_t n)
{
    put_key(w, key, ARRAY);
    put_uint(w, elem, 4);
    put_uint(w, n, 8);
}

void tg_gguf_add_i32(tg_gguf_writer *w, int32_t value)
{
    put_uint(w, (uint32_t)value, 4);
}

void tg_gguf_add_f32(tg_gguf_writer *w, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, 4);
    put_uint(w, bits, 4);
}

void tg_gguf_add_bool(tg_gguf_writer *w, bool value)
{
    put_uint(w, value, 1);
}

void tg_gguf_add_text(tg_gguf_writer *w, const void *text, size_t n)
{
    put_uint(w, n, 8);
    put(w, text, n);
}

void tg_gguf_put_tensor(tg_gguf_writer *w, const char *name, int n_dim, const uint64_t *dim, uint32_t type_id,
                        uint64_t n_bytes)
{
    w->n_tensors++;
    tg_gguf_add_text(w, name, strlen(name));
    put_uint(w, (uint64_t)n_dim, 4);
    for (int i = n_dim - 1; i >= 0; i--)
        put_uint(w, dim[i], 8);
    put_uint(w, type_id, 4);
    put_uint(w, w->data_bytes, 8);
    w->data_bytes += tg_round_up(n_bytes, w->alignment);
}

tg_status tg_gguf_writer_head(tg_gguf_writer *w)
{
    while (w->n % w->alignment != 0 && !w->failed)
        put_uint(w, 0, 1);
    if (w->failed)
        return TG_E_RESOURCE;
    size_t n = w->n;
    w->n = 0;
    put(w, "GGUF", 4);
    put_uint(w, VERSION, 4);
    put_uint(w, w->n_tensors, 8);
    put_uint(w, w->n_pairs, 8);
    w->n = n;
    return TG_OK;
}
