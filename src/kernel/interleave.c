/* interleave.c - from the file's layout to interleaved panels, and a row back. */
#include "kernel/interleave.h"

#include <string.h>

/* Bytes of a block before its first word, which are float16 if there are two or four; what is behind the last follows
 * from its size. To add a type: what it has there, unless it is none. */
static const uint8_t before_words[TG_TYPE_COUNT] = {
    [TG_Q8_0] = 2, [TG_Q4_0] = 2, [TG_Q5_0] = 2, [TG_IQ4_NL] = 2, [TG_MXFP4] = 1, [TG_Q4_1] = 4, [TG_Q5_1] = 4,
};

/* A block in pieces: how many bytes are at `at`. */
static size_t piece(const tg_dtype *t, size_t at)
{
    const size_t before = before_words[t->type], left = (size_t)t->block_bytes - at;
    return at < before ? (before < 2 ? before : 2) : left < 4 ? left : 4;
}

size_t tg_interleaved_bytes(const tg_matrix *m)
{
    if (!m->data || m->type->block == 1 || m->interleaved)
        return 0;
    return ((size_t)m->n_out + TG_PANEL - 1) / TG_PANEL * TG_PANEL * m->row_bytes;
}

void tg_interleave_panel(const tg_matrix *m, size_t i, uint8_t *all)
{
    const size_t bytes = TG_PANEL * m->row_bytes, block = (size_t)m->type->block_bytes;
    const size_t left = (size_t)m->n_out - TG_PANEL * i, n = left < TG_PANEL ? left : TG_PANEL;
    const uint8_t *from = m->data + i * bytes;
    uint8_t *to = all + i * bytes;
    if (n < TG_PANEL)
        memset(to, 0, bytes);
    for (size_t start = 0; start < m->row_bytes; start += block)
        for (size_t at = 0, size; at < block; at += size) {
            const uint8_t *p = from + start + at;
            uint8_t *q = to + TG_PANEL * (start + at);
            size = piece(m->type, at);
            if (size == 4) /* a constant: a move each */
                for (size_t r = 0; r < n; r++)
                    memcpy(q + 4 * r, p + r * m->row_bytes, 4);
            else
                for (size_t r = 0; r < n; r++)
                    memcpy(q + size * r, p + r * m->row_bytes, size);
        }
}

size_t tg_interleaved_gather(const tg_matrix *m, int row, int from, uint8_t bytes[TG_GATHERED_BYTES])
{
    const size_t block = (size_t)m->type->block_bytes, columns = (size_t)m->type->block;
    const size_t left = (size_t)(m->n_in - from), n = left < TG_GATHERED ? left : TG_GATHERED;
    const size_t in_panel = (size_t)row % TG_PANEL, first = (size_t)from / columns * block;
    const uint8_t *panel = m->data + ((size_t)row - in_panel) * m->row_bytes;
    for (size_t start = 0; start < n / columns * block; start += block)
        for (size_t at = 0, size; at < block; at += size) {
            size = piece(m->type, at);
            memcpy(bytes + start + at, panel + TG_PANEL * (first + start + at) + size * in_panel, size);
        }
    return n;
}
