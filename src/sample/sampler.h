/* sampler.h - the sampler as the library's own layers see it; the calls are those of tinygpt.h. */
#ifndef TG_SAMPLE_SAMPLER_H
#define TG_SAMPLE_SAMPLER_H

#include "base/error.h"

/* tg_sampler_create for a vocabulary of n_vocab ids; which are never drawn, tg_sampler_ban tells. */
tg_status tg_sampler_make(tg_sampler **sampler, int n_vocab, const tg_sampling *params, tg_error *err);

/* The row as its candidates are chosen from it: biases and penalties applied. */
const float *tg_sampler_adjusted(tg_sampler *sampler, const float *logits, int n);

/* SplitMix64 (Steele, Lea, Flood 2014): one 64-bit state, one output a step. */
typedef struct tg_rng {
    uint64_t state;
} tg_rng;

uint64_t tg_rng_next(tg_rng *rng);
/* The state that (seed, stream) names: streams of one seed are far apart. */
tg_rng tg_rng_make(uint64_t seed, uint64_t stream);

#endif
