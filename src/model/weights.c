/* weights.c - from tensors by name to matrices by role. */
#include "model/weights.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- finding ------------------------------------------------------------------------------------ */

/* The pattern with its %d filled in: the layer, then the expert. */
static void make_name(char *out, size_t n, const char *pattern, int layer, int expert, const char *suffix)
{
    const int number[2] = {layer, expert};
    size_t used = 0;
    for (int i = 0; i < 2; i++) {
        const char *at = strstr(pattern, "%d");
        if (!at)
            break;
        used += (size_t)snprintf(out + used, n - used, "%.*s%d", (int)(at - pattern), pattern, number[i]);
        pattern = at + 2;
    }
    snprintf(out + used, n - used, "%s%s", pattern, suffix);
}

/* A folder's names may lack the prefix, and those of a model that also sees have another before them. */
static const tg_tensor *by_folder_name(const tg_loader *l, const char *name)
{
    static const char *const outer[] = {"", "language_model.", "model.language_model."};
    size_t prefix = strlen(l->w->arch->hf_prefix);
    const char *bare = strncmp(name, l->w->arch->hf_prefix, prefix) == 0 ? name + prefix : name;
    const tg_tensor *t = NULL;
    char full[TG_MAX_NAME_SAFETENSORS + 32];
    for (size_t i = 0; !t && i < sizeof outer / sizeof *outer; i++) {
        snprintf(full, sizeof full, "%s%s", outer[i], name);
        t = tg_container_tensor(l->c, full);
        snprintf(full, sizeof full, "%s%s", outer[i], bare);
        t = t ? t : tg_container_tensor(l->c, full);
    }
    return t;
}

const tg_tensor *tg_load_find(tg_loader *l, tg_role role, int layer, int expert, const char *suffix, bool required)
{
    const char *pattern = tg_arch_role_name(l->w->arch, l->kind, role);
    if (!pattern || l->err->status) /* the first failure is the one to report */
        return NULL;
    char name[TG_MAX_NAME_SAFETENSORS + 1];
    make_name(name, sizeof name, pattern, layer, expert, suffix);
    const tg_tensor *t = l->kind == TG_CONTAINER_HF ? by_folder_name(l, name) : tg_container_tensor(l->c, name);
    if (!t && required && l->n_missing++ == 0)
        memcpy(l->first_missing, name, sizeof name);
    return t;
}

static void write_shape(char *out, size_t n, int n_dim, const uint64_t *dim)
{
    size_t used = 0;
    out[0] = 0;
    for (int i = 0; i < n_dim && used < n; i++)
        used += (size_t)snprintf(out + used, n - used, "%s%" PRIu64, i ? " x " : "", dim[i]);
}

bool tg_load_shape_is(tg_loader *l, const tg_tensor *t, int n_dim, const uint64_t *dim)
{
    /* A vector is also [1][n] or the like in old files; others are exactly what they are. */
    bool ok = n_dim == 1 ? t->dim[t->n_dim ? t->n_dim - 1 : 0] == dim[0] &&
                               t->dim[0] * t->dim[1] * t->dim[2] * t->dim[3] == dim[0]
                         : t->n_dim == n_dim && memcmp(t->dim, dim, (size_t)n_dim * sizeof *dim) == 0;
    if (ok)
        return true;
    char found[100], wanted[100];
    write_shape(found, sizeof found, t->n_dim, t->dim);
    write_shape(wanted, sizeof wanted, n_dim, dim);
    tg_quoted q;
    tg_fail(l->err, TG_E_MODEL, t->file, "shape of tensor %s (found %s, wanted %s)",
            tg_quote_str(&q, t->name), found, wanted);
    return false;
}

bool tg_load_type_is_known(tg_loader *l, const tg_tensor *t)
{
    if (t->type)
        return true;
    tg_quoted q;
    tg_fail(l->err, TG_E_MODEL, t->file, "type of tensor %s is not supported (found %s)",
            tg_quote_str(&q, t->name), t->type_name);
    return false;
}

/* ---- vectors ------------------------------------------------------------------------------------ */

const float *tg_load_floats(tg_loader *l, const tg_tensor *t, const uint8_t *data, size_t n)
{
    if (t->type->type == TG_F32 && (uintptr_t)data % sizeof(float) == 0)
        return (const float *)(const void *)data;
    float *v = tg_arena_alloc(l->arena, n, sizeof(float), "a vector of weights", l->err);
    if (v)
        t->type->to_f32(data, v, n);
    return v;
}

/* NULL: absent or failed. */
static const float *vector(tg_loader *l, tg_role role, int layer, const char *suffix, int n, bool required)
{
    const tg_tensor *t = tg_load_find(l, role, layer, 0, suffix, required);
    if (!t || !tg_load_shape_is(l, t, 1, (const uint64_t[]){(uint64_t)n}) || !tg_load_type_is_known(l, t))
        return NULL;
    return tg_load_floats(l, t, t->data, (size_t)n);
}

static const float *plus_one(tg_loader *l, const float *w, int n)
{
    float *v = w ? tg_arena_alloc(l->arena, (size_t)n, sizeof(float), "a norm", l->err) : NULL;
    for (int i = 0; v && i < n; i++)
        v[i] = w[i] + 1.0f;
    return v;
}

/* A norm whose role the architecture has must be there, unless it is `optional`. */
static tg_norm norm(tg_loader *l, tg_role role, int layer, int n, bool optional)
{
    tg_norm out = {.w = vector(l, role, layer, ".weight", n, !optional)};
    if (out.w && l->w->arch->norm == TG_NORM_LAYER)
        out.b = vector(l, role, layer, ".bias", n, true);
    if (l->w->arch->norm_plus_one && l->kind == TG_CONTAINER_HF)
        out.w = plus_one(l, out.w, n);
    return out;
}

/* ---- matrices ----------------------------------------------------------------------------------- */

const uint8_t *tg_load_transposed(tg_loader *l, const tg_tensor *t, int n, int n_out, int n_in, int turns)
{
    const size_t size = (size_t)t->type->block_bytes, no = (size_t)n_out, ni = (size_t)n_in, by = (size_t)turns;
    if (t->type->block != 1) {
        tg_fail(l->err, TG_E_MODEL, t->file, "a transposed matrix in blocks is not supported (found %s)", t->type_name);
        return NULL;
    }
    uint8_t *out = tg_arena_alloc(l->arena, (size_t)n * no * ni, size, "a matrix laid anew", l->err);
    for (size_t m = 0; out && m < (size_t)n; m++)
        for (size_t o0 = 0; o0 < no; o0 += 32) /* tiles that stay in the cache */
            for (size_t i0 = 0; i0 < ni; i0 += 32)
                for (size_t o = o0; o < no && o < o0 + 32; o++)
                    for (size_t i = i0; i < ni && i < i0 + 32; i++) {
                        size_t to = ((o % by * (size_t)n + m) * (no / by) + o / by) * ni + i;
                        memcpy(out + to * size, t->data + ((m * ni + i) * no + o) * size, size);
                    }
    return out;
}

/* Is it a product, which a folder of this architecture may hold as Conv1D? */
static bool is_turned(const tg_loader *l, tg_role role)
{
    return l->w->arch->conv1d && l->kind == TG_CONTAINER_HF && role >= TG_ROLE_ATTN_NORM;
}

bool tg_load_matrix(tg_loader *l, tg_role role, int layer, int expert, int n_out, int n_in, bool required,
                    tg_matrix *out)
{
    *out = (tg_matrix){0};
    const tg_tensor *t = tg_load_find(l, role, layer, expert, ".weight", required);
    if (!t)
        return false;
    const bool turned = is_turned(l, role);
    const uint64_t no = (uint64_t)n_out, ni = (uint64_t)n_in;
    if (!tg_load_shape_is(l, t, 2, (const uint64_t[]){turned ? ni : no, turned ? no : ni}) ||
        !tg_load_type_is_known(l, t))
        return false;
    const uint8_t *data = turned ? tg_load_transposed(l, t, 1, n_out, n_in, 1) : t->data;
    if (!data)
        return false;
    *out = (tg_matrix){.data = data, .type = t->type, .n_out = n_out, .n_in = n_in,
                       .row_bytes = tg_dtype_row_bytes(t->type, (size_t)n_in)};
    const bool biased = l->w->config.bias >> role & 1;
    if (biased || l->kind == TG_CONTAINER_GGUF)
        out->bias = vector(l, role, layer, ".bias", n_out, biased && l->kind == TG_CONTAINER_HF);
    return true;
}

tg_matrix tg_load_rows_of(const tg_matrix *m, int first, int n)
{
    tg_matrix part = *m;
    part.data += (size_t)first * m->row_bytes;
    part.n_out = n;
    if (m->bias)
        part.bias += first;
    return part;
}

/* Rows of Q, K and V of a head, then those of the next, laid anew: all of Q, all of K, all of V. */
static bool by_kind(tg_loader *l, tg_matrix *m)
{
    const tg_config *c = &l->w->config;
    const size_t d = (size_t)c->head_dim, n_head = (size_t)c->n_head;
    uint8_t *data = tg_arena_alloc(l->arena, (size_t)m->n_out, m->row_bytes, "a matrix laid anew", l->err);
    float *bias = m->bias ? tg_arena_alloc(l->arena, (size_t)m->n_out, sizeof *bias, "a bias laid anew", l->err) : NULL;
    if (!data || (m->bias && !bias))
        return false;
    for (size_t h = 0; h < n_head; h++)
        for (size_t kind = 0; kind < 3; kind++) {
            size_t from = (h * 3 + kind) * d, to = (kind * n_head + h) * d;
            memcpy(data + to * m->row_bytes, m->data + from * m->row_bytes, d * m->row_bytes);
            if (bias)
                memcpy(bias + to, m->bias + from, d * sizeof *bias);
        }
    m->data = data;
    m->bias = bias;
    return true;
}

static void load_qkv(tg_loader *l, int i, tg_layer *out)
{
    const tg_config *c = &l->w->config;
    const int n_q = c->n_head * c->head_dim, n_kv = c->n_head_kv * c->head_dim;
    const bool apart = tg_arch_role_name(l->w->arch, l->kind, TG_ROLE_Q) != NULL;
    tg_matrix m;
    if (tg_load_matrix(l, TG_ROLE_QKV, i, 0, n_q + 2 * n_kv, c->n_embd, !apart, &m)) {
        if (l->w->arch->qkv_by_head && l->kind == TG_CONTAINER_HF && !by_kind(l, &m))
            return;
        out->q = tg_load_rows_of(&m, 0, n_q);
        out->k = tg_load_rows_of(&m, n_q, n_kv);
        out->v = tg_load_rows_of(&m, n_q + n_kv, n_kv);
    } else if (apart) {
        tg_load_matrix(l, TG_ROLE_Q, i, 0, n_q, c->n_embd, true, &out->q);
        tg_load_matrix(l, TG_ROLE_K, i, 0, n_kv, c->n_embd, true, &out->k);
        tg_load_matrix(l, TG_ROLE_V, i, 0, n_kv, c->n_embd, true, &out->v);
    }
}

static void load_ffn(tg_loader *l, int i, tg_ffn *out)
{
    const tg_config *c = &l->w->config;
    tg_matrix m;
    if (tg_load_matrix(l, TG_ROLE_GATE_UP, i, 0, 2 * c->n_ff, c->n_embd, true, &m)) {
        out->gate = tg_load_rows_of(&m, 0, c->n_ff);
        out->up = tg_load_rows_of(&m, c->n_ff, c->n_ff);
    } else {
        if (l->w->arch->gated)
            tg_load_matrix(l, TG_ROLE_FFN_GATE, i, 0, c->n_ff, c->n_embd, true, &out->gate);
        tg_load_matrix(l, TG_ROLE_FFN_UP, i, 0, c->n_ff, c->n_embd, true, &out->up);
    }
    tg_load_matrix(l, TG_ROLE_FFN_DOWN, i, 0, c->n_embd, c->n_ff, true, &out->down);
}

static void check_finite(tg_loader *l, const float *v, int n, const char *what, float above)
{
    for (int i = 0; v && i < n; i++)
        if (!(v[i] > above && isfinite(v[i]))) {
            tg_fail(l->err, TG_E_MODEL, tg_container_path(l->c), "%s %d (found %g, allowed: finite, above %g)", what, i,
                    (double)v[i], (double)above);
            return;
        }
}

static void load_layer(tg_loader *l, int i)
{
    const tg_config *c = &l->w->config;
    const int n_q = c->n_head * c->head_dim, n_kv = c->n_head_kv * c->head_dim;
    tg_layer *out = &l->w->layer[i];
    out->attn_norm = norm(l, TG_ROLE_ATTN_NORM, i, c->n_embd, false);
    load_qkv(l, i, out);
    out->q_norm = norm(l, TG_ROLE_Q_NORM, i, c->qk_norm_whole ? n_q : c->head_dim, false);
    out->k_norm = norm(l, TG_ROLE_K_NORM, i, c->qk_norm_whole ? n_kv : c->head_dim, false);
    if (tg_arch_role_name(l->w->arch, l->kind, TG_ROLE_SINK))
        out->sink = vector(l, TG_ROLE_SINK, i, l->kind == TG_CONTAINER_HF ? "" : ".weight", c->n_head, true);
    check_finite(l, out->sink, c->n_head, "sink", -INFINITY);
    tg_load_matrix(l, TG_ROLE_ATTN_OUT, i, 0, c->n_embd, n_q, true, &out->attn_out);
    out->attn_post_norm = norm(l, TG_ROLE_ATTN_POST_NORM, i, c->n_embd, false);
    out->ffn_norm = norm(l, TG_ROLE_FFN_NORM, i, c->n_embd, c->parallel);
    if (c->n_expert > 0)
        tg_load_experts(l, i, out);
    else
        load_ffn(l, i, &out->ffn);
    out->ffn_post_norm = norm(l, TG_ROLE_FFN_POST_NORM, i, c->n_embd, false);
}

/* ---- factors of rotation --------------------------------------------------------------------------- */

const float *tg_load_rope_list(tg_loader *l, const char *key, int n)
{
    static const char *const groups[] = {"rope_parameters", "rope_scaling"};
    const json_t *list = NULL;
    for (int i = 0; !list && i < 2; i++)
        list = json_object_get(json_object_get(tg_container_config(l->c), groups[i]), key);
    if (json_array_size(list) != (size_t)n) {
        tg_fail(l->err, TG_E_MODEL, tg_container_meta_path(l->c), "%s of the rotation (found %zu numbers, wanted %d)", key,
                json_array_size(list), n);
        return NULL;
    }
    float *v = tg_arena_alloc(l->arena, (size_t)n, sizeof *v, "factors of rotation", l->err);
    for (int i = 0; v && i < n; i++)
        v[i] = (float)json_number_value(json_array_get(list, (size_t)i));
    return v;
}

/* What would be passed over in silence. */
static void refuse_factors(tg_loader *l, tg_role role)
{
    const tg_tensor *t = tg_load_find(l, role, 0, 0, ".weight", false);
    tg_quoted q;
    if (t)
        tg_fail(l->err, TG_E_MODEL, t->file, "factors of rotation are not supported in this architecture (found %s)",
                tg_quote_str(&q, t->name));
}

static void load_rope_factors(tg_loader *l)
{
    const tg_rope *r = &l->w->config.rope[0];
    const int n = r->n_rot / 2;
    tg_rope_factors *f = &l->w->rope_factors;
    f->all = vector(l, TG_ROLE_ROPE_FREQS, 0, ".weight", n, false);
    if (r->scaling == TG_ROPE_LONGROPE) {
        const bool hf = l->kind == TG_CONTAINER_HF;
        f->few = hf ? tg_load_rope_list(l, "short_factor", n) : vector(l, TG_ROLE_ROPE_SHORT, 0, ".weight", n, true);
        f->many = hf ? tg_load_rope_list(l, "long_factor", n) : vector(l, TG_ROLE_ROPE_LONG, 0, ".weight", n, true);
    } else {
        refuse_factors(l, TG_ROLE_ROPE_SHORT);
        refuse_factors(l, TG_ROLE_ROPE_LONG);
    }
    check_finite(l, f->all, n, "rotary factor", 0.0f);
    check_finite(l, f->few, n, "rotary factor", 0.0f);
    check_finite(l, f->many, n, "rotary factor", 0.0f);
}

/* ---- all ------------------------------------------------------------------------------------------- */

static void load_embedding(tg_loader *l)
{
    tg_config *config = &l->w->config;
    const tg_tensor *embd = tg_load_find(l, TG_ROLE_TOK_EMBD, 0, 0, ".weight", true);
    if (!embd)
        return;
    if (embd->n_dim != 2 || embd->dim[0] == 0 || embd->dim[0] > TG_MAX_VOCAB)
        tg_fail(l->err, TG_E_MODEL, embd->file, "rows of the token embedding (found %" PRIu64 ", allowed 1 to %d)",
                embd->dim[0], (int)TG_MAX_VOCAB);
    else if (config->n_vocab && (uint64_t)config->n_vocab != embd->dim[0])
        tg_fail(l->err, TG_E_MODEL, embd->file,
                "rows of the token embedding (found %" PRIu64 ", wanted %d by the configuration)", embd->dim[0],
                config->n_vocab);
    config->n_vocab = (int)(embd->dim[0] & INT32_MAX);
    tg_load_matrix(l, TG_ROLE_TOK_EMBD, 0, 0, config->n_vocab, config->n_embd, true, &l->w->tok_embd);
}

static void load_output(tg_loader *l)
{
    const tg_config *c = &l->w->config;
    tg_matrix head;
    l->w->out_norm = norm(l, TG_ROLE_OUT_NORM, 0, c->n_embd, false);
    l->w->output = l->w->tok_embd;
    if (c->tied != TG_TIED &&
        tg_load_matrix(l, TG_ROLE_OUTPUT, 0, 0, c->n_vocab, c->n_embd, c->tied == TG_UNTIED, &head))
        l->w->output = head;
}

tg_status tg_weights_load(tg_weights *w, const tg_container *c, tg_arena *arena, tg_error *err)
{
    tg_error local = {0}; /* so that a caller without a record still learns of a failure */
    tg_loader l = {.w = w, .c = c, .kind = tg_container_get_kind(c), .arena = arena, .err = &local};
    const tg_config *config = &w->config;
    enum { ENOUGH = 10000 }; /* missing: a few bytes of a file may ask for a million */

    load_embedding(&l);
    if (w->arch->pos == TG_POS_LEARNED)
        tg_load_matrix(&l, TG_ROLE_POS_EMBD, 0, 0, config->n_ctx_train + config->pos_offset, config->n_embd, true,
                       &w->pos_embd);
    load_output(&l);
    w->layer = tg_arena_alloc(arena, (size_t)config->n_layer, sizeof *w->layer, "the table of layers", &local);
    for (int i = 0; w->layer && i < config->n_layer && !local.status && l.n_missing < ENOUGH; i++)
        load_layer(&l, i);
    if (w->arch->pos == TG_POS_ROTARY)
        load_rope_factors(&l);

    if (local.status)
        return tg_fail(err, local.status, NULL, "%s", local.message);
    if (l.n_missing) {
        tg_quoted q;
        return tg_fail(err, TG_E_MODEL, tg_container_path(c), "required tensors missing: %s%s (%d %s)",
                       tg_quote_str(&q, l.first_missing), l.n_missing > 1 ? " and others" : "", l.n_missing,
                       l.n_missing < ENOUGH ? "in all" : "and more");
    }
    return TG_OK;
}
