/* strategy.h - the attention algorithms by name. `auto` serves; the others are there to be compared with
 * it, over the same cache and the same loops. To add one: a row in strategy.c. */
#ifndef TG_ATTN_STRATEGY_H
#define TG_ATTN_STRATEGY_H

#include "attn/attention.h"

typedef struct tg_attn_strategy {
    const char *name, *summary;
    void (*run)(const tg_worker *w, const tg_attn *a);
    bool modifiers; /* does it know windows, kept positions, sinks and soft caps? */
    bool whole;     /* does it take all rows of a head at once? */
    bool dots;      /* BF16 products: needs a BF16 cache for keys and values, and the processor's help */
    /* Floats of scores that a worker needs for n_batch rows and n_ctx keys, beside what all share; NULL:
     * none. */
    size_t (*score_floats)(int n_batch, int n_ctx);
} tg_attn_strategy;

extern const tg_attn_strategy tg_attn_strategies[];
extern const int tg_n_attn_strategies;

/* NULL: none has the name. */
const tg_attn_strategy *tg_attn_strategy_by_name(const char *name);

/* Scratch per worker. */
size_t tg_attn_strategy_scratch(const tg_attn_strategy *s, int n_batch, int n_ctx, int n_head, int n_head_kv,
                                int head_dim);

#endif
