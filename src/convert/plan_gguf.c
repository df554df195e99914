/* plan_gguf.c - from GGUF to GGUF: all metadata and all tensors, in their order. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "convert/plan.h"

/* What is said anew, or holds no longer: parts are joined. */
static bool is_left_out(const char *key)
{
    return strcmp(key, "general.file_type") == 0 || strcmp(key, "general.quantization_version") == 0 ||
           strncmp(key, "split.", 6) == 0;
}

/* Pairs as they lie in the file. */
static void carry_over(tg_plan *plan)
{
    const char *key;
    const uint8_t *bytes;
    size_t n;
    for (size_t i = 0; (bytes = tg_container_pair_at(plan->in, i, &key, &n)); i++)
        if (!is_left_out(key))
            tg_gguf_put_raw(&plan->head, bytes, n);
}

/* A number "<architecture>.<key>" that the rules look at; some have a list of one for each layer, of which the
 * rules know nothing: 0, as where there is none. */
static int model_number(const tg_plan *plan, const char *key)
{
    const char *arch = NULL;
    size_t n_bytes;
    int64_t value = 0;
    char name[256];
    if (tg_meta_string(plan->in, "general.architecture", &arch, &n_bytes, NULL) != TG_META_FOUND)
        return 0;
    snprintf(name, sizeof name, "%s.%s", arch, key);
    return tg_meta_int(plan->in, name, 0, INT32_MAX, &value, NULL) == TG_META_FOUND ? (int)value : 0;
}

tg_status tg_plan_gguf(tg_plan *plan)
{
    int64_t alignment = 32;
    carry_over(plan);
    if (tg_meta_int(plan->in, "general.alignment", 8, TG_MAX_ALIGNMENT, &alignment, plan->err) == TG_META_BAD)
        return TG_E_MODEL;
    plan->head.alignment = (uint64_t)alignment;
    int n_head = model_number(plan, "attention.head_count"), n_head_kv = model_number(plan, "attention.head_count_kv");
    plan->model = (tg_recipe_model){
        .n_layer = model_number(plan, "block_count"),
        .n_head = n_head,
        .n_head_kv = n_head_kv ? n_head_kv : n_head,
        .n_expert = model_number(plan, "expert_count"),
        .tied = !tg_container_tensor(plan->in, "output.weight"),
    };
    for (size_t i = 0; i < tg_container_n_tensors(plan->in); i++) {
        const tg_tensor *t = tg_container_tensor_at(plan->in, i);
        tg_planned *p = tg_plan_add(plan);
        const tg_tensor **part = tg_arena_alloc(plan->arena, 1, sizeof *part, "a tensor's place", plan->err);
        if (!p || !part)
            return TG_E_RESOURCE;
        *part = t;
        memcpy(p->name, t->name, strlen(t->name) + 1); /* no longer than that: the reader saw to it */
        p->n_dim = t->n_dim;
        memcpy(p->dim, t->dim, sizeof p->dim);
        uint64_t columns = t->dim[t->n_dim - 1], rows = 1;
        for (int k = 0; k < t->n_dim - 1; k++)
            rows *= t->dim[k];
        p->source = (tg_source){.parts = part, .n_parts = 1, .n_rows = rows, .n_columns = columns};
    }
    return TG_OK;
}
