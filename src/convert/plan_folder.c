/* plan_folder.c - from a Hugging Face folder to GGUF: tensors by role.
 *
 * The table of architectures names a role's tensors in both containers and tells how a folder lays them otherwise;
 * what it does not tell of a GGUF, or a GGUF cannot say, is found when the result is read again (verify.c). */
#include <stdio.h>
#include <string.h>

#include "convert/folder.h"

typedef struct folder {
    tg_plan *plan;
    tg_loader loader; /* finds tensors */
    const tg_arch *to; /* the architecture that the GGUF has */
} folder;

/* ---- a tensor --------------------------------------------------------------------------------------- */

static tg_status refuse(const folder *f, const tg_tensor *t, const char *why)
{
    tg_quoted q;
    return tg_fail(f->plan->err, TG_E_MODEL, t->file, "tensor %s: %s", tg_quote_str(&q, t->name), why);
}

static bool is_norm(tg_role role)
{
    const uint32_t norms = TG_BIT(OUT_NORM) | TG_BIT(ATTN_NORM) | TG_BIT(Q_NORM) | TG_BIT(K_NORM) |
                           TG_BIT(ATTN_POST_NORM) | TG_BIT(FFN_NORM) | TG_BIT(FFN_POST_NORM);
    return norms >> role & 1;
}

/* How the folder lays the rows of a role. */
static tg_status lay(const folder *f, tg_role role, const tg_tensor *t, tg_source *s)
{
    const tg_config *c = &f->loader.w->config;
    const tg_arch *arch = f->loader.w->arch;
    const uint64_t n_kinds = arch->qkv_by_head && role == TG_ROLE_QKV ? 3 : 1;
    s->head_dim = (uint64_t)c->head_dim;
    s->n_kinds = n_kinds;
    if (arch->conv1d && role >= TG_ROLE_ATTN_NORM && t->n_dim == 2) {
        s->laid = TG_LAID_TURNED;
        s->n_rows = t->dim[1];
        s->n_columns = t->dim[0];
    } else if (f->to->permuted && (role == TG_ROLE_Q || role == TG_ROLE_K)) {
        s->laid = TG_LAID_NEIGHBOURS;
    } else if (n_kinds > 1) {
        s->laid = TG_LAID_BY_KIND;
    }
    if (s->laid > TG_LAID_TURNED && (s->n_rows % (s->head_dim * n_kinds) != 0 || s->head_dim % 2 != 0))
        return refuse(f, t, "its rows are not those of whole heads");
    return TG_OK;
}

/* Plans the `n` tensors of a role, one, or one for each expert, as one. */
static tg_status add(folder *f, tg_role role, int layer, const tg_tensor *const *parts, size_t n, const char *suffix)
{
    const tg_tensor *t = parts[0];
    tg_planned *p = tg_plan_add(f->plan);
    if (!p)
        return TG_E_RESOURCE;
    const bool weight = strcmp(suffix, ".weight") == 0;
    const char *pattern = tg_arch_role_name(f->to, TG_CONTAINER_GGUF, role), *at = strstr(pattern, "%d");
    if (at)
        snprintf(p->name, sizeof p->name, "%.*s%d%s%s", (int)(at - pattern), pattern, layer, at + 2, suffix);
    else
        snprintf(p->name, sizeof p->name, "%s%s", pattern, suffix);
    if (!t->type || t->type->block != 1)
        return refuse(f, t, "its type is not supported here");
    for (size_t i = 1; i < n; i++)
        if (parts[i]->type != t->type || memcmp(parts[i]->dim, t->dim, sizeof t->dim) != 0)
            return refuse(f, parts[i], "it has another shape than that of the first expert");

    const bool matrix = t->n_dim == 2 && !is_norm(role);
    const uint64_t n_numbers = t->dim[0] * t->dim[1] * t->dim[2] * t->dim[3];
    p->source = (tg_source){.parts = parts, .n_parts = n, .n_rows = matrix ? t->dim[0] : n_numbers,
                            .n_columns = matrix ? t->dim[1] : 1};
    tg_status status = lay(f, role, t, &p->source);
    if (!matrix && p->source.laid == TG_LAID_AS_IS) { /* one long row */
        p->source.n_rows = 1;
        p->source.n_columns = n_numbers;
    }
    p->source.plus = f->loader.w->arch->norm_plus_one && is_norm(role) && weight ? 1.0f : 0.0f;
    p->n_dim = 0;
    if (n > 1)
        p->dim[p->n_dim++] = n;
    if (matrix)
        p->dim[p->n_dim++] = p->source.n_rows;
    p->dim[p->n_dim++] = matrix ? p->source.n_columns : n_numbers;
    return status;
}

/* ---- roles -------------------------------------------------------------------------------------------- */

/* The tensors of a role with a suffix: none, one, or as many as there are experts. */
static tg_status add_role(folder *f, tg_role role, int layer, const char *from, const char *to, bool required)
{
    const char *pattern = tg_arch_role_name(f->loader.w->arch, TG_CONTAINER_HF, role), *at = strstr(pattern, "%d");
    const size_t n = at && strstr(at + 2, "%d") ? (size_t)f->loader.w->config.n_expert : 1;
    const tg_tensor **parts = tg_arena_alloc(f->plan->arena, n, sizeof *parts, "the tensors of a role", f->plan->err);
    if (!parts)
        return TG_E_RESOURCE;
    for (size_t i = 0; i < n; i++)
        if (!(parts[i] = tg_load_find(&f->loader, role, layer, (int)i, from, required)))
            return TG_OK; /* noted, if it must be there */
    return add(f, role, layer, parts, n, to);
}

static tg_status plan_role(folder *f, tg_role role, int layer)
{
    const tg_arch *arch = f->loader.w->arch;
    const tg_config *c = &f->loader.w->config;
    const bool of_mixture = role >= TG_ROLE_ROUTER, plain_ffn = role >= TG_ROLE_FFN_GATE && role <= TG_ROLE_FFN_DOWN;
    if (!tg_arch_role_name(arch, TG_CONTAINER_HF, role) || (c->n_expert > 0 ? plain_ffn : of_mixture) ||
        (role == TG_ROLE_OUTPUT && c->tied == TG_TIED))
        return TG_OK;
    if (!tg_arch_role_name(f->to, TG_CONTAINER_GGUF, role))
        return tg_fail(f->plan->err, TG_E_MODEL, tg_container_path(f->plan->in),
                       "a folder of this architecture cannot become a GGUF here (found %s)", arch->hf_name);
    const bool apart = role == TG_ROLE_QKV && tg_arch_role_name(arch, TG_CONTAINER_HF, TG_ROLE_Q);
    const bool optional = apart || (role == TG_ROLE_OUTPUT && c->tied != TG_UNTIED) ||
                          (role == TG_ROLE_FFN_NORM && c->parallel);
    if (role == TG_ROLE_SINK)
        return add_role(f, role, layer, "", ".weight", true);
    tg_status status = add_role(f, role, layer, ".weight", ".weight", !optional);
    const bool biased = c->bias >> role & 1 || (is_norm(role) && arch->norm == TG_NORM_LAYER);
    return status == TG_OK && biased ? add_role(f, role, layer, ".bias", ".bias", !optional) : status;
}

static tg_status add_floats(tg_plan *plan, const char *name, const float *v, int n)
{
    tg_planned *p = tg_plan_add(plan);
    if (!p)
        return TG_E_RESOURCE;
    snprintf(p->name, sizeof p->name, "%s.weight", name);
    p->n_dim = 1;
    p->dim[0] = (uint64_t)n;
    p->source = (tg_source){.floats = v, .n_parts = 1, .n_rows = 1, .n_columns = (uint64_t)n};
    return TG_OK;
}

/* ---- factors of rotation -------------------------------------------------------------------------------- */

/* Llama 3's scaling is, in a GGUF, what each frequency is divided by. */
static tg_status plan_llama3(folder *f, const tg_rope *scaled)
{
    const int n = scaled->n_rot / 2;
    float *v = tg_arena_alloc(f->plan->arena, 2 * (size_t)n, sizeof *v, "factors of rotation", f->plan->err);
    tg_rope plain = *scaled;
    plain.scaling = TG_ROPE_NONE;
    if (!v)
        return TG_E_RESOURCE;
    tg_rope_frequencies(&plain, (tg_rope_factors){0}, 1, v);
    tg_rope_frequencies(scaled, (tg_rope_factors){0}, 1, v + n);
    for (int i = 0; i < n; i++)
        v[i] /= v[n + i];
    return add_floats(f->plan, tg_arch_role_name(f->to, TG_CONTAINER_GGUF, TG_ROLE_ROPE_FREQS), v, n);
}

static tg_status plan_longrope(folder *f, tg_role role, const char *key, int n)
{
    const float *v = tg_load_rope_list(&f->loader, key, n);
    return v ? add_floats(f->plan, tg_arch_role_name(f->to, TG_CONTAINER_GGUF, role), v, n) : f->plan->err->status;
}

static tg_status plan_rope(folder *f)
{
    const tg_rope *r = &f->loader.w->config.rope[0];
    if (r->scaling == TG_ROPE_LLAMA3)
        return plan_llama3(f, r);
    if (r->scaling != TG_ROPE_LONGROPE)
        return TG_OK;
    tg_status status = plan_longrope(f, TG_ROLE_ROPE_LONG, "long_factor", r->n_rot / 2);
    return status == TG_OK ? plan_longrope(f, TG_ROLE_ROPE_SHORT, "short_factor", r->n_rot / 2) : status;
}

/* ---- all --------------------------------------------------------------------------------------------------- */

/* Architectures that a GGUF knows by the name of another. */
static const struct {
    const char *folder, *gguf;
} written_as[] = {{"mistral", "llama"}, {"mixtral", "llama"}, {"gemma3", "gemma3"}};

static const tg_arch *target_of(const tg_arch *arch)
{
    for (size_t i = 0; i < sizeof written_as / sizeof *written_as; i++)
        if (strcmp(written_as[i].folder, arch->hf_name) == 0)
            return tg_arch_find(TG_CONTAINER_GGUF, written_as[i].gguf);
    return arch->gguf_name ? arch : NULL;
}

static tg_status plan_tensors(folder *f)
{
    const int n_layer = f->loader.w->config.n_layer;
    tg_status status = plan_rope(f);
    for (int role = 0; role < TG_ROLE_ATTN_NORM && status == TG_OK; role++)
        if (role < TG_ROLE_ROPE_FREQS || role > TG_ROLE_ROPE_LONG)
            status = plan_role(f, (tg_role)role, 0);
    for (int layer = 0; layer < n_layer; layer++)
        for (int role = TG_ROLE_ATTN_NORM; role < TG_ROLE_COUNT && status == TG_OK; role++)
            status = plan_role(f, (tg_role)role, layer);
    tg_quoted q;
    if (status == TG_OK && f->loader.n_missing)
        status = tg_fail(f->plan->err, TG_E_MODEL, tg_container_path(f->plan->in),
                         "required tensors missing: %s%s (%d in all)", tg_quote_str(&q, f->loader.first_missing),
                         f->loader.n_missing > 1 ? " and others" : "", f->loader.n_missing);
    return status;
}

tg_status tg_plan_folder(tg_plan *plan)
{
    tg_weights w = {0};
    const char *name;
    tg_status status = tg_config_load(plan->in, &w.arch, &name, &w.config, plan->err);
    if (status != TG_OK)
        return status;
    folder f = {.plan = plan, .to = target_of(w.arch)};
    f.loader = (tg_loader){.w = &w, .c = plan->in, .kind = TG_CONTAINER_HF, .arena = plan->arena, .err = plan->err};
    if (!f.to)
        return tg_fail(plan->err, TG_E_MODEL, tg_container_path(plan->in),
                       "an architecture that GGUF does not have (found %s)", name);
    status = plan_tensors(&f);
    if (status == TG_OK)
        status = plan->err->status; /* what the head had no memory for, for one */
    if (status != TG_OK)
        return status;
    const tg_tensor *embd = tg_load_find(&f.loader, TG_ROLE_TOK_EMBD, 0, 0, ".weight", true);
    w.config.n_vocab = (int)(embd->dim[0] & INT32_MAX);
    tg_write_config(&plan->head, f.to, &w.config);
    plan->model = (tg_recipe_model){w.config.n_layer, w.config.n_head, w.config.n_head_kv, w.config.n_expert, true};
    for (size_t i = 0; i < plan->n_tensors; i++)
        plan->model.tied &= strcmp(plan->tensors[i].name, "output.weight") != 0;
    return tg_write_tokenizer(&plan->head, plan->in, w.config.n_vocab, plan->err);
}
