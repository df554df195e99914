/* quantize.c - a model in other number formats: checks, then head and tensors, one after the other. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "convert/folder.h"
#include "tinygpt/tinygpt.h"

enum { QUANTIZATION_VERSION = 2 }; /* of ggml's formats */

const char *tg_quantize_type(int i, const char **summary)
{
    const tg_recipe *m = tg_recipe_at(i);
    if (m && summary)
        *summary = m->summary;
    return m ? m->name : NULL;
}

tg_planned *tg_plan_add(tg_plan *plan)
{
    void *array = plan->tensors;
    if (!tg_grow(&array, &plan->room, plan->n_tensors + 1, sizeof *plan->tensors, "the plan of tensors", plan->err))
        return NULL;
    plan->tensors = array;
    tg_planned *p = &plan->tensors[plan->n_tensors++];
    *p = (tg_planned){.dim = {1, 1, 1, 1}};
    return p;
}

/* ---- checks ------------------------------------------------------------------------------------------- */

static tg_status find_recipe(const tg_recipe **m, const char *name, tg_error *err)
{
    char list[256] = "";
    size_t used = 0;
    tg_quoted q;
    *m = tg_recipe_find(name);
    for (int i = 0; tg_recipe_at(i) && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", tg_recipe_at(i)->name);
    return *m ? TG_OK
              : tg_fail(err, TG_E_USAGE, NULL, "unknown type '%s' (allowed: %s)", tg_quote_str(&q, name), list);
}

/* What stands at `out` may be replaced: nothing, or a GGUF file that is not read from. */
static tg_status check_target(const tg_container *in, const char *out, tg_error *err)
{
    struct stat target;
    tg_status status = tg_container_check_output(in, out, err);
    if (status != TG_OK)
        return status;
    if (strcmp(out, "-") == 0)
        return tg_fail(err, TG_E_USAGE, NULL, "a GGUF cannot go to stdout: give the path of a file");
    if (stat(out, &target) != 0 || !S_ISREG(target.st_mode))
        return TG_OK; /* tg_newfile_create tells what is wrong, if anything is */
    char magic[4] = "";
    int fd;
    if (target.st_size >= 4)
        status = tg_file_open_regular(&fd, &target, out, err);
    if (status == TG_OK && target.st_size >= 4) {
        status = tg_file_read(fd, magic, 4, out, err);
        close(fd);
    }
    if (status != TG_OK || target.st_size == 0 || memcmp(magic, "GGUF", 4) == 0)
        return status;
    return tg_fail(err, TG_E_USAGE, out, "exists and is no GGUF file: it is not replaced");
}

/* ---- types -------------------------------------------------------------------------------------------- */

static bool is_quantized(const tg_dtype *t)
{
    return t->block > 1;
}

/* Decides how a tensor is written. */
static tg_status choose_type(const tg_plan *plan, const tg_recipe *m, bool requantize, tg_planned *p,
                             tg_quantize_result *result)
{
    const tg_tensor *t = p->source.parts ? p->source.parts[0] : NULL;
    const bool as_is = p->source.n_parts == 1 && p->source.laid == TG_LAID_AS_IS && p->source.plus == 0;
    bool fell_back;
    tg_type wanted = tg_recipe_type(m, &plan->model, p->name, p->n_dim, p->dim, &fell_back);
    const bool kept = wanted == TG_F32 && m->base != TG_F32;
    tg_quoted q;
    p->type = &tg_dtypes[wanted];
    if (t && as_is && (t->type == p->type || (kept && (!t->type || is_quantized(t->type)))))
        p->whole = t;
    else if (t && !t->type)
        return tg_fail(plan->err, TG_E_MODEL, t->file, "type of tensor %s is not supported (found %s)",
                       tg_quote_str(&q, t->name), t->type_name);
    else if (t && is_quantized(t->type) && wanted != TG_F32 && !requantize)
        return tg_fail(plan->err, TG_E_MODEL, t->file,
                       "tensor %s is quantised already (found %s, wanted F32, F16 or BF16, unless --requantize)",
                       tg_quote_str(&q, t->name), t->type_name);
    result->n_fell_back += fell_back;
    result->n_quantized += p->whole ? p->whole->type && is_quantized(p->whole->type) : is_quantized(p->type);
    return TG_OK;
}

static uint64_t numbers_of(const tg_planned *p)
{
    return p->dim[0] * p->dim[1] * p->dim[2] * p->dim[3];
}

static uint64_t bytes_of(const tg_planned *p)
{
    return p->whole ? p->whole->n_bytes : tg_dtype_row_bytes(p->type, numbers_of(p));
}

/* ggml's number of a type, which a tensor that is only copied may have without tinygpt's knowing more of it. */
static uint32_t type_id(const tg_planned *p)
{
    const tg_layout *known;
    if (!p->whole || p->whole->type)
        return (uint32_t)(p->whole ? p->whole->type : p->type)->gguf_id;
    for (uint32_t id = 0; id < 256; id++) {
        tg_dtype_by_gguf_id(id, &known);
        if (known && strcmp(known->name, p->whole->type_name) == 0)
            return id;
    }
    return 0;
}

static tg_status finish_plan(tg_plan *plan, const tg_recipe *m, bool requantize, tg_quantize_result *result)
{
    tg_status status = TG_OK;
    tg_gguf_put_u32(&plan->head, "general.quantization_version", QUANTIZATION_VERSION);
    tg_gguf_put_u32(&plan->head, "general.file_type", (uint32_t)m->file_type);
    for (size_t i = 0; i < plan->n_tensors && status == TG_OK; i++) {
        tg_planned *p = &plan->tensors[i];
        status = choose_type(plan, m, requantize, p, result);
        if (status != TG_OK)
            break;
        tg_gguf_put_tensor(&plan->head, p->name, p->n_dim, p->dim, type_id(p), bytes_of(p));
        result->n_params += numbers_of(p);
        result->out_bytes += bytes_of(p);
    }
    for (size_t i = 0; i < tg_container_n_tensors(plan->in); i++)
        result->in_bytes += tg_container_tensor_at(plan->in, i)->n_bytes;
    result->n_tensors = (int)plan->n_tensors;
    return status == TG_OK ? tg_gguf_writer_head(&plan->head) : status;
}

/* ---- writing ------------------------------------------------------------------------------------------ */

typedef struct progress {
    const tg_quantize_params *params;
    uint64_t done, of;
} progress;

static bool written(void *arg, uint64_t n_bytes)
{
    progress *p = arg;
    p->done += n_bytes;
    return !p->params->progress || p->params->progress(p->params->arg, p->done, p->of);
}

static tg_status write_tensor(const tg_transcoder *t, const tg_plan *plan, const tg_planned *p)
{
    static const uint8_t zeros[TG_MAX_ALIGNMENT];
    uint64_t n = bytes_of(p);
    tg_status status = p->whole ? tg_transcode_bytes(t, p->whole->data, n, plan->err)
                                : tg_transcode(t, &p->source, p->type, tg_container_path(plan->in), p->name, plan->err);
    size_t padding = (size_t)(tg_round_up(n, plan->head.alignment) - n);
    return status == TG_OK && padding ? tg_transcode_bytes(t, zeros, padding, plan->err) : status;
}

static tg_status write_all(tg_transcoder *t, const tg_plan *plan)
{
    tg_status status = tg_transcode_bytes(t, plan->head.bytes, plan->head.n, plan->err);
    for (size_t i = 0; i < plan->n_tensors && status == TG_OK; i++)
        status = write_tensor(t, plan, &plan->tensors[i]);
    return status;
}

static tg_status write_file(const tg_plan *plan, const char *out, const tg_quantize_params *params)
{
    progress p = {params, 0, plan->head.n + plan->head.data_bytes};
    tg_newfile file = {0};
    tg_transcoder t = {.file = &file, .written = written, .arg = &p};
    tg_status status = tg_newfile_create(&file, out, p.of, 0666, plan->err);
    int n_threads = params->n_threads ? params->n_threads : tg_team_default_size();
    if (status == TG_OK)
        status = tg_team_create(&t.team, n_threads, tg_transcode_scratch(), plan->err);
    if (status == TG_OK && !(t.slab = tg_alloc(tg_transcode_slab(), 1, "a slab of a tensor", plan->err)))
        status = TG_E_RESOURCE;
    if (status == TG_OK)
        status = write_all(&t, plan);
    if (status == TG_OK && tg_container_get_kind(plan->in) == TG_CONTAINER_HF)
        status = tg_verify_folder(plan, &file, plan->err);
    if (status == TG_OK)
        status = tg_container_check_unchanged(plan->in, plan->err);
    if (status == TG_OK)
        status = tg_newfile_commit(&file, plan->err);
    tg_newfile_discard(&file);
    tg_team_free(t.team);
    tg_free(t.slab);
    return status;
}

tg_status tg_quantize(const char *in, const char *out, const tg_quantize_params *params, tg_quantize_result *result,
                      tg_error *err)
{
    tg_quantize_result unused = {0};
    tg_error own = {0}; /* the parts count on a record */
    tg_container *container = NULL;
    const tg_recipe *recipe;
    tg_plan plan = {.err = &own};
    result = result ? result : &unused;
    *result = (tg_quantize_result){0};
    tg_gguf_writer_init(&plan.head, &own);
    plan.arena = tg_arena_create(&own);
    tg_status status = plan.arena ? find_recipe(&recipe, params->type, &own) : TG_E_RESOURCE;
    if (status == TG_OK)
        status = tg_container_open(&container, in, false, &own);
    if (status == TG_OK)
        status = check_target(container, out, &own);
    plan.in = container;
    if (status == TG_OK)
        status = tg_container_get_kind(container) == TG_CONTAINER_GGUF ? tg_plan_gguf(&plan) : tg_plan_folder(&plan);
    if (status == TG_OK)
        status = finish_plan(&plan, recipe, params->requantize, result);
    if (status == TG_OK)
        status = write_file(&plan, out, params);
    tg_free(plan.tensors);
    tg_gguf_writer_deinit(&plan.head);
    tg_arena_free(plan.arena);
    tg_container_free(container);
    return status == TG_OK ? TG_OK : tg_fail(err, status, NULL, "%s", own.message);
}
