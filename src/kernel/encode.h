/* encode.h - writing rows of numbers in the number formats: what the table in dtype.c points to.
 *
 * Each takes n finite numbers of at most 65504 in size, whole blocks of them, and is the inverse of the decoder as
 * far as the format goes. What is plain arithmetic gives the gguf package's bits; the other formats search for the
 * scales with the smallest weighted error. All give the same bits at every instruction-set level. */
#ifndef TG_KERNEL_ENCODE_H
#define TG_KERNEL_ENCODE_H

#include <stddef.h>

typedef void tg_encode(const float *x, void *row, size_t n);

tg_encode tg_encode_f32, tg_encode_f16, tg_encode_bf16;
tg_encode tg_encode_q8_0, tg_encode_q4_0, tg_encode_q4_1, tg_encode_q5_0, tg_encode_q5_1;
tg_encode tg_encode_q2_k, tg_encode_q3_k, tg_encode_q4_k, tg_encode_q5_k, tg_encode_q6_k, tg_encode_iq4_nl;

/* Those that search, by instruction-set level. */
typedef struct tg_encode_kernels {
    tg_encode *q2_k, *q3_k, *q4_k, *q5_k, *q6_k, *iq4_nl;
} tg_encode_kernels;

#endif
