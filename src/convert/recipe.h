/* recipe.h - which number format each tensor of a quantised model gets.
 *
 * Mixtures have the names, file types and rules of llama.cpp, so that a name means one thing everywhere. */
#ifndef TG_CONVERT_RECIPE_H
#define TG_CONVERT_RECIPE_H

#include "kernel/dtype.h"

typedef struct tg_recipe {
    const char *name;
    tg_type base;    /* the type of most tensors */
    int file_type;   /* general.file_type */
    const char *summary;
} tg_recipe;

/* NULL: there is none. Letters of either case. */
const tg_recipe *tg_recipe_find(const char *name);
const tg_recipe *tg_recipe_at(int i); /* NULL behind the last */

/* What the rules look at beside a tensor's name. */
typedef struct tg_recipe_model {
    int n_layer, n_head, n_head_kv, n_expert;
    bool tied; /* the token embedding is the output matrix too */
} tg_recipe_model;

/* The type of a tensor by its name in a GGUF. *fell_back (may be NULL): its rows are no whole blocks of the one
 * that the rules give. Vectors, norms and what else is small and sensitive stay F32. */
tg_type tg_recipe_type(const tg_recipe *m, const tg_recipe_model *model, const char *name, int n_dim,
                        const uint64_t *dim, bool *fell_back);

#endif
