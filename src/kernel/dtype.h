/* dtype.h - the one table of number formats.
 *
 * A tensor's rows are sequences of blocks: `block` elements in `block_bytes` bytes. To add a format:
 * a row in dtype.c with its decoder and its encoder, and one in take.h for integer products. */
#ifndef TG_KERNEL_DTYPE_H
#define TG_KERNEL_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tg_type {
    TG_F32,
    TG_F16,
    TG_BF16,
    TG_Q8_0,
    TG_Q4_0,
    TG_Q4_1,
    TG_Q5_0,
    TG_Q5_1,
    TG_Q2_K,
    TG_Q3_K,
    TG_Q4_K,
    TG_Q5_K,
    TG_Q6_K,
    TG_IQ4_NL,
    TG_IQ4_XS,
    TG_MXFP4,
    TG_TYPE_COUNT,
    TG_Q4 = TG_TYPE_COUNT, /* of the KV cache alone (attn/view.h): no tensor has it */
} tg_type;

typedef struct tg_dtype {
    tg_type type;
    const char *name; /* as GGUF's tools write it: "F32", "Q4_1" */
    int gguf_id;      /* ggml's number for it */
    const char *safetensors_name; /* NULL when that container has no such type */
    int block, block_bytes;
    /* Decodes n elements (whole blocks) bit for bit as the gguf package does. */
    void (*to_f32)(const void *row, float *out, size_t n);
    /* Encodes n finite numbers, of at most 65504 in size (encode.h); NULL: never written. */
    void (*from_f32)(const float *x, void *row, size_t n);
} tg_dtype;

extern const tg_dtype tg_dtypes[TG_TYPE_COUNT];

/* How a type lies in a file: all that can be told of one that tinygpt does not compute with. */
typedef struct tg_layout {
    const char *name;
    int block, block_bytes;
} tg_layout;

/* NULL when the type is not supported. Then *known (may be passed as NULL) is its layout if ggml, or
 * safetensors, has such a type, or NULL if the number or name means nothing or was withdrawn. */
const tg_dtype *tg_dtype_by_gguf_id(uint32_t id, const tg_layout **known);
const tg_dtype *tg_dtype_by_safetensors_name(const char *name, const tg_layout **known);

static inline size_t tg_dtype_row_bytes(const tg_dtype *t, size_t n)
{
    return n / (size_t)t->block * (size_t)t->block_bytes;
}

/* Conversions of single numbers in plain C; they round to nearest, ties to even. */
float tg_f16_to_f32(uint16_t h);
uint16_t tg_f32_to_f16(float f);

#endif
