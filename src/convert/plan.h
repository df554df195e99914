/* plan.h - what will be written: the metadata, and each tensor with its source and its type. */
#ifndef TG_CONVERT_PLAN_H
#define TG_CONVERT_PLAN_H

#include "base/memory.h"
#include "convert/recipe.h"
#include "convert/transcode.h"
#include "format/gguf_writer.h"

typedef struct tg_planned {
    char name[TG_MAX_NAME_GGUF + 1];
    int n_dim;
    uint64_t dim[4]; /* row-major, outermost first */
    const tg_dtype *type;
    tg_source source;
    const tg_tensor *whole; /* its bytes are copied as they are; source and type count for nothing then */
} tg_planned;

typedef struct tg_plan {
    const tg_container *in;
    tg_arena *arena; /* of what sources borrow */
    tg_planned *tensors;
    size_t n_tensors, room;
    tg_recipe_model model;
    tg_gguf_writer head; /* metadata so far */
    tg_error *err;       /* not NULL */
} tg_plan;

/* A zeroed one at the end of the plan, which moves when the next is added; NULL when there is no memory. */
tg_planned *tg_plan_add(tg_plan *plan);

/* Each takes the metadata and all tensors, their types left open, of a container of its kind. */
tg_status tg_plan_gguf(tg_plan *plan);
tg_status tg_plan_folder(tg_plan *plan);

#endif
