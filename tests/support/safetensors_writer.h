/* safetensors_writer.h - builds safetensors files in memory from a header's text, well formed or
 * not. */
#ifndef TEST_SAFETENSORS_WRITER_H
#define TEST_SAFETENSORS_WRITER_H

#include "support/bytes.h"

/* The length of the header and its text, then n_data bytes 0, 1, 2, ... */
static inline bytes safetensors_file(const char *header, size_t n_data)
{
    bytes b = {0};
    put_u64(&b, strlen(header));
    put_text(&b, header);
    for (size_t i = 0; i < n_data; i++)
        put(&b, &(uint8_t){(uint8_t)i}, 1);
    return b;
}

#endif
