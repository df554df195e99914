/* softmax.h - softmax over one row of scores, by the algorithms of the literature, side by side.
 *
 * All of them share one exponential, one loop shape and one last step, e^(x - m) / l, so that they
 * differ only in how m = max x and l = sum e^(x - m) are found: in how often they read the row. The
 * paper is Milakov and Gimelshein, "Online normalizer calculation for softmax", arXiv 1805.02867;
 * its counts of memory accesses are those below, a store being one.
 *
 * Precision: l is summed in float32 over a block and in float64 over blocks, so that rows of 2^26
 * are as exact as short ones. Against float64 a probability is off by (32 + |x - m|) 2^-24 of
 * itself at most, and for each time that the maximum rose `online` and `online_scalar` may add 4 *
 * 2^-24. What is less than e^-87 of the largest is 0 (vec.h).
 *
 * -inf weighs 0. A row that has NaN, or +inf, or nothing but -inf, has no softmax: NaN.
 *
 * What attention does over keys is the same recurrence with values beside it: attn/attention.h. */
#ifndef TG_KERNEL_SOFTMAX_H
#define TG_KERNEL_SOFTMAX_H

#include <stddef.h>

#include "tinygpt/tinygpt.h"

typedef struct tg_softmax_algo {
    const char *name;
    int passes;   /* over the row */
    int accesses; /* reads and writes of memory for each element, when the row exceeds the caches */
    /* y[n] = softmax of x[n]; n > 0; y may be x. */
    void (*run)(const float *x, size_t n, float *y);
} tg_softmax_algo;

typedef enum tg_softmax_kind {
    /* e^x / sum e^x (algorithm 1): where a score or the log of the sum passes 88.72 it divides by
     * infinity, where all are below -87 by zero */
    TG_SOFTMAX_NAIVE,
    TG_SOFTMAX_SAFE,          /* maximum; sum; write (algorithm 2) */
    TG_SOFTMAX_ONLINE_SCALAR, /* maximum and sum together; write; score by score (algorithm 3) */
    TG_SOFTMAX_ONLINE,        /* the same by blocks: l is scaled only when one raises the maximum */
    TG_SOFTMAX_COUNT
} tg_softmax_kind;

typedef struct tg_top_k_algo {
    const char *name;
    int accesses; /* as above */
    /* The contract of tg_top_k (tinygpt.h). probs[n]: room for probabilities; NULL will do for
     * `fused`. The other two rank by probability: logits so close, or so low, that these are equal
     * come by id, and without a softmax nothing comes. */
    int (*run)(const float *x, size_t n, int k, tg_top *top, float *lse, float *probs);
} tg_top_k_algo;

typedef enum tg_top_k_kind {
    TG_TOP_K_FUSED,         /* one pass with online softmax, nothing written (algorithm 4) */
    TG_TOP_K_AFTER,         /* safe softmax, then the same selection among the probabilities */
    TG_TOP_K_AFTER_BY_HEAP, /* safe softmax, then one probability after the other against a heap */
    TG_TOP_K_COUNT
} tg_top_k_kind;

/* A new algorithm is a name above and a row in body_softmax.c: tests and benchmarks walk the
 * tables. */
typedef struct tg_softmax_kernels {
    tg_softmax_algo softmax[TG_SOFTMAX_COUNT];
    tg_top_k_algo top_k[TG_TOP_K_COUNT];
} tg_softmax_kernels;

const tg_softmax_kernels *tg_softmax(void);

#endif
