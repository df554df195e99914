/* gguf_writer.h - builds GGUF files in memory, well formed or not: counts, offsets and padding
 * follow from what was added unless a knob says otherwise. */
#ifndef TEST_GGUF_WRITER_H
#define TEST_GGUF_WRITER_H

#include "support/bytes.h"

enum {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
};

typedef struct gguf {
    bytes pairs, infos, data;
    uint64_t n_pairs, n_tensors;
    /* Knobs. */
    const char *magic;
    uint32_t version;
    uint64_t alignment;     /* of offsets and data; not written as a key */
    const uint64_t *counts; /* {tensors, pairs} to claim */
    bool pad_end;
} gguf;

static inline gguf gguf_new(void)
{
    return (gguf){.magic = "GGUF", .version = 3, .alignment = 32};
}

static inline void gguf_string(bytes *b, const void *s, size_t n)
{
    put_u64(b, n);
    put(b, s, n);
}

/* The start of a pair; its value is put to g->pairs. */
static inline bytes *gguf_key(gguf *g, const char *key, uint32_t type)
{
    g->n_pairs++;
    gguf_string(&g->pairs, key, strlen(key));
    put_u32(&g->pairs, type);
    return &g->pairs;
}

static inline void gguf_uint(gguf *g, const char *key, uint32_t type, uint64_t v)
{
    static const int bytes_of[13] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    put_uint(gguf_key(g, key, type), v, bytes_of[type]);
}

static inline void gguf_u32(gguf *g, const char *key, uint32_t v)
{
    gguf_uint(g, key, GGUF_U32, v);
}

static inline void gguf_f32(gguf *g, const char *key, float v)
{
    put(gguf_key(g, key, GGUF_F32), &v, 4);
}

static inline void gguf_f64(gguf *g, const char *key, double v)
{
    put(gguf_key(g, key, GGUF_F64), &v, 8);
}

static inline void gguf_text(gguf *g, const char *key, const char *v)
{
    gguf_string(gguf_key(g, key, GGUF_STRING), v, strlen(v));
}

/* An array whose n elements follow. */
static inline bytes *gguf_array(gguf *g, const char *key, uint32_t elem, uint64_t n)
{
    bytes *b = gguf_key(g, key, GGUF_ARRAY);
    put_u32(b, elem);
    put_u64(b, n);
    return b;
}

/* A tensor's description as it stands in the file: ne[0] is the row length. */
static inline void gguf_info(gguf *g, const char *name, uint32_t n_dim, const uint64_t *ne,
                             uint32_t type, uint64_t offset)
{
    g->n_tensors++;
    gguf_string(&g->infos, name, strlen(name));
    put_u32(&g->infos, n_dim);
    for (uint32_t i = 0; i < n_dim && i < 8; i++)
        put_u64(&g->infos, ne[i]);
    put_u32(&g->infos, type);
    put_u64(&g->infos, offset);
}

static inline void gguf_pad(const gguf *g, bytes *b)
{
    put_zeros(b, (g->alignment - b->n % g->alignment) % g->alignment);
}

/* A tensor with n_bytes of data behind those before it. */
static inline void gguf_tensor(gguf *g, const char *name, uint32_t n_dim, const uint64_t *ne,
                               uint32_t type, const void *data, size_t n_bytes)
{
    gguf_pad(g, &g->data);
    gguf_info(g, name, n_dim, ne, type, g->data.n);
    put(&g->data, data, n_bytes);
}

/* The file; frees what it was made from. */
static inline bytes gguf_file(gguf *g)
{
    bytes b = {0};
    put(&b, g->magic, 4);
    put_u32(&b, g->version);
    put_u64(&b, g->counts ? g->counts[0] : g->n_tensors);
    put_u64(&b, g->counts ? g->counts[1] : g->n_pairs);
    put(&b, g->pairs.data, g->pairs.n);
    put(&b, g->infos.data, g->infos.n);
    if (g->n_tensors)
        gguf_pad(g, &b);
    put(&b, g->data.data, g->data.n);
    if (g->pad_end)
        gguf_pad(g, &b);
    bytes_free(&g->pairs);
    bytes_free(&g->infos);
    bytes_free(&g->data);
    return b;
}

#endif
