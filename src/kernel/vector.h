/* vector.h - what a model does to rows of numbers beside products: norms, activations, exponentials.
 *
 * Sums run in 16 lanes (index mod 16) with a fixed tree at the end. */
#ifndef TG_KERNEL_VECTOR_H
#define TG_KERNEL_VECTOR_H

#include <stdbool.h>
#include <stddef.h>

typedef enum tg_act {
    TG_ACT_SILU,      /* x / (1 + e^-x) */
    TG_ACT_GELU_TANH, /* x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))) / 2 */
    TG_ACT_GELU_ERF,  /* x * (1 + erf(x / sqrt 2)) / 2 */
    TG_ACT_RELU,      /* max(x, 0) */
    TG_ACT_SWIGLU_CLAMPED, /* gpt-oss: y / (1 + e^(-1.702 y)), y = min(x, limit), times 1 + up within +-limit */
} tg_act;

typedef struct tg_vector_kernels {
    /* out[n] = x / sqrt(mean(x^2) + eps) * w. False when x has a value that is not finite (or when its
     * squares overflow). out may be x. */
    bool (*rms_norm)(const float *x, const float *w, float eps, int n, float *out);
    /* out[n] = (x - mean) / sqrt(variance + eps) * w + b; b may be NULL. */
    bool (*layer_norm)(const float *x, const float *w, const float *b, float eps, int n, float *out);
    /* out[n] = act(x) * up; up may be NULL. out may be x. `limit` is of the clamped one. */
    void (*activate)(tg_act act, float limit, const float *x, const float *up, int n, float *out);
    void (*add)(float by, const float *x, int n, float *out); /* out += by * x */
    /* Turns n pairs (a, b) of x by angles and multiplies them by `scale`: a = (a cos - b sin) * scale,
     * b = (b cos + a sin) * scale. The pairs are x[2i], x[2i + 1] if `neighbours`, else x[i], x[i + n]. */
    void (*rotate)(float *x, const float *cosine, const float *sine, int n, bool neighbours, float scale);
    void (*scale)(float by, int n, float *x); /* x *= by */
    void (*soft_cap)(float cap, int n, float *x); /* x = cap * tanh(x / cap) */
    /* out[n] = e^((x - max) * scale); returns their sum. out may be x. */
    float (*exps)(const float *x, float max, float scale, int n, float *out);
    bool (*finite)(const float *x, int n);
    /* Reads n_bytes, a multiple of 256, and does next to nothing with them: how fast can memory be read?
     * Returns their exclusive or, so that nobody can leave the reading out. */
    unsigned (*read_all)(const void *p, size_t n_bytes);
    /* n rounds of multiply-adds that stay in registers, of float32 and of 8-bit integers by the matrix
     * products' own instruction: how fast can be computed? Return the operations made, two each. */
    size_t (*f32_rounds)(size_t n);
    size_t (*int8_rounds)(size_t n);
} tg_vector_kernels;

const tg_vector_kernels *tg_vector(void);

#endif
