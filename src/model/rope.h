/* rope.h - the frequencies of rotary positions (arXiv 2104.09864) and their scalings. */
#ifndef TG_MODEL_ROPE_H
#define TG_MODEL_ROPE_H

#include "model/config.h"

/* Factors that frequencies are divided by, [n_rot / 2] each; NULL: none. */
typedef struct tg_rope_factors {
    const float *all;              /* whatever the context */
    const float *few, *many;       /* LongRoPE: in contexts up to the original, and beyond */
} tg_rope_factors;

/* inv_freq[n_rot / 2] in contexts of n_ctx positions, rounded to float32 where the reference rounds; returns
 * what rotated vectors are multiplied by. A scaling that looks at the length of a text takes n_ctx for it, as
 * keys in a cache cannot be rotated anew when a text grows. */
float tg_rope_frequencies(const tg_rope *rope, tg_rope_factors factors, int n_ctx, float *inv_freq);

#endif
