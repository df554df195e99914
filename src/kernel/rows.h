/* rows.h - the same bytes of 16 weight rows, in vectors.
 *
 * From the file's layout a row's bytes are loaded 16 at a time and transposed. Nothing outside a block is read:
 * its last bytes are reached by loads that end with it. Interleaved (interleave.h) the rows lie in memory as those
 * vectors. Either way `at` is a byte's place in a row whose first is at r.p. */
#ifndef TG_KERNEL_ROWS_H
#define TG_KERNEL_ROWS_H

#include "kernel/matmul.h"
#include "kernel/vec.h"

/* 16 rows, `stride` bytes apart; 0, a constant: interleaved. */
typedef struct rows {
    const uint8_t *p;
    size_t stride;
} rows;

VEC const uint8_t *place(rows r, ptrdiff_t at)
{
    return r.p + (r.stride ? at : TG_PANEL * at);
}

VEC rows behind(rows r, size_t n_bytes)
{
    return (rows){place(r, (ptrdiff_t)n_bytes), r.stride};
}

/* 4 words of 4 bytes each */
VEC void words4(rows r, ptrdiff_t at, vi out[4])
{
    const uint8_t *p = place(r, at);
    if (r.stride)
        vi_rows16(p, r.stride, out);
    else
        for (int j = 0; j < 4; j++)
            out[j] = vi_load(p + 64 * j);
}

VEC void words8(rows r, ptrdiff_t at, vi out[8])
{
    words4(r, at, out);
    words4(r, at + 16, out + 4);
}

/* A word, 16 bytes before the end of a block or more; and one that it ends with. */
VEC vi word_at(rows r, ptrdiff_t at)
{
    return r.stride ? vi_first16(place(r, at), r.stride) : vi_load(place(r, at));
}

VEC vi last_word(rows r, int block_bytes)
{
    vi last[4];
    words4(r, block_bytes - 16, last);
    return last[3];
}

VEC vi first_byte(rows r)
{
    return r.stride ? vi_and(word_at(r, 0), vi_set1(255)) : vi_load_u8(r.p);
}

/* A float16 likewise. */
VEC vf half_at(rows r, ptrdiff_t at)
{
    return r.stride ? vf_from_low_f16(word_at(r, at)) : vf_load_f16(place(r, at));
}

VEC vf from_high_f16(vi a)
{
    return vf_from_low_f16(vi_shr16(a));
}

/* The word behind a float16 that a block begins with. */
VEC vi second_word(rows r)
{
    if (!r.stride)
        return vi_load(place(r, 2));
    vi first[4];
    words4(r, 0, first);
    return vi_or(vi_shr16(first[0]), vi_shl16(first[1]));
}

VEC vf last_half(rows r, int block_bytes)
{
    return r.stride ? from_high_f16(last_word(r, block_bytes)) : vf_load_f16(place(r, block_bytes - 2));
}

#endif
