/* weights.c - from tensors by name to matrices by role. */
#include "model/weights.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct loader {
    tg_weights *w;
    const tg_container *c;
    tg_arena *arena;
    tg_error *err;
    int n_missing;
    char first_missing[TG_MAX_NAME_SAFETENSORS + 1];
} loader;

/* ---- finding ------------------------------------------------------------------------------------ */

static void make_name(char *out, size_t n, const char *pattern, int layer, const char *suffix)
{
    const char *at = strstr(pattern, "%d");
    if (at)
        snprintf(out, n, "%.*s%d%s%s", (int)(at - pattern), pattern, layer, at + 2, suffix);
    else
        snprintf(out, n, "%s%s", pattern, suffix);
}

/* The tensor of a role, or NULL; a folder's names may lack the prefix. */
static const tg_tensor *find(loader *l, tg_role role, int layer, const char *suffix, bool required)
{
    tg_container_kind kind = tg_container_get_kind(l->c);
    const char *pattern = l->w->arch->name[kind][role];
    if (!pattern || l->err->status) /* the first failure is the one to report */
        return NULL;
    char name[TG_MAX_NAME_SAFETENSORS + 1];
    make_name(name, sizeof name, pattern, layer, suffix);
    const tg_tensor *t = tg_container_tensor(l->c, name);
    size_t prefix = strlen(l->w->arch->hf_prefix);
    if (!t && kind == TG_CONTAINER_HF && strncmp(name, l->w->arch->hf_prefix, prefix) == 0)
        t = tg_container_tensor(l->c, name + prefix);
    if (!t && required && l->n_missing++ == 0)
        memcpy(l->first_missing, name, sizeof name);
    return t;
}

static bool shape_is(loader *l, const tg_tensor *t, int n_dim, uint64_t d0, uint64_t d1)
{
    /* A vector is also [1][n] or the like in old files; a matrix is exactly that. */
    bool ok = n_dim == 2 ? t->n_dim == 2 && t->dim[0] == d0 && t->dim[1] == d1
                         : t->dim[t->n_dim ? t->n_dim - 1 : 0] == d0 &&
                               t->dim[0] * t->dim[1] * t->dim[2] * t->dim[3] == d0;
    if (ok)
        return true;
    char found[100] = "";
    for (int i = 0; i < t->n_dim; i++) {
        size_t used = strlen(found);
        snprintf(found + used, sizeof found - used, "%s%" PRIu64, i ? " x " : "", t->dim[i]);
    }
    char wanted[64];
    if (n_dim == 2)
        snprintf(wanted, sizeof wanted, "%" PRIu64 " x %" PRIu64, d0, d1);
    else
        snprintf(wanted, sizeof wanted, "%" PRIu64, d0);
    tg_quoted q;
    tg_fail(l->err, TG_E_MODEL, t->file, "shape of tensor %s (found %s, wanted %s)",
            tg_quote_str(&q, t->name), found, wanted);
    return false;
}

static bool type_is_known(loader *l, const tg_tensor *t)
{
    if (t->type)
        return true;
    tg_quoted q;
    tg_fail(l->err, TG_E_MODEL, t->file, "type of tensor %s is not supported (found %s)",
            tg_quote_str(&q, t->name), t->type_name);
    return false;
}

/* ---- vectors ------------------------------------------------------------------------------------ */

/* n numbers as float32, in the mapping where they lie so already. NULL: absent or failed. */
static const float *vector(loader *l, tg_role role, int layer, const char *suffix, int n, bool required)
{
    const tg_tensor *t = find(l, role, layer, suffix, required);
    if (!t || !shape_is(l, t, 1, (uint64_t)n, 1) || !type_is_known(l, t))
        return NULL;
    if (t->type->type == TG_F32 && (uintptr_t)t->data % sizeof(float) == 0)
        return (const float *)(const void *)t->data;
    float *v = tg_arena_alloc(l->arena, (size_t)n, sizeof(float), "a vector of weights", l->err);
    if (v)
        t->type->to_f32(t->data, v, (size_t)n);
    return v;
}

static void norm(loader *l, tg_role role, int layer, tg_norm *out)
{
    int n = l->w->config.n_embd;
    out->w = vector(l, role, layer, ".weight", n, true);
    out->b = vector(l, role, layer, ".bias", n, l->w->arch->norm == TG_NORM_LAYER);
}

/* ---- matrices ----------------------------------------------------------------------------------- */

/* [n_in][n_out] -> [n_out][n_in], in tiles that stay in the cache. */
static const uint8_t *transposed(loader *l, const tg_tensor *t, int n_out, int n_in)
{
    size_t size = (size_t)t->type->block_bytes, no = (size_t)n_out, ni = (size_t)n_in;
    if (t->type->block != 1) {
        tg_fail(l->err, TG_E_MODEL, t->file, "a Conv1D matrix in blocks is not supported (found %s)",
                t->type_name);
        return NULL;
    }
    uint8_t *out = tg_arena_alloc(l->arena, no * ni, size, "a matrix laid anew", l->err);
    for (size_t o0 = 0; out && o0 < no; o0 += 32)
        for (size_t i0 = 0; i0 < ni; i0 += 32)
            for (size_t o = o0; o < no && o < o0 + 32; o++)
                for (size_t i = i0; i < ni && i < i0 + 32; i++)
                    memcpy(out + (o * ni + i) * size, t->data + (i * no + o) * size, size);
    return out;
}

/* `linear`: a product, which a folder of this architecture may hold as Conv1D; embeddings are not. */
static bool matrix(loader *l, tg_role role, int layer, int n_out, int n_in, bool linear, bool bias,
                   bool required, tg_matrix *out)
{
    *out = (tg_matrix){0};
    const tg_tensor *t = find(l, role, layer, ".weight", required);
    if (!t)
        return false;
    bool turned = linear && l->w->arch->conv1d && tg_container_get_kind(l->c) == TG_CONTAINER_HF;
    uint64_t no = (uint64_t)n_out, ni = (uint64_t)n_in;
    if (!shape_is(l, t, 2, turned ? ni : no, turned ? no : ni) || !type_is_known(l, t))
        return false;
    const uint8_t *data = turned ? transposed(l, t, n_out, n_in) : t->data;
    if (!data)
        return false;
    *out = (tg_matrix){.data = data, .type = t->type, .n_out = n_out, .n_in = n_in,
                       .row_bytes = tg_dtype_row_bytes(t->type, (size_t)n_in)};
    /* In a folder the configuration says whether biases belong to the model; in a GGUF their presence. */
    if (bias) {
        bool must = tg_container_get_kind(l->c) == TG_CONTAINER_HF;
        out->bias = vector(l, role, layer, ".bias", n_out, must);
    }
    return true;
}

static tg_matrix rows_of(const tg_matrix *m, int first, int n)
{
    tg_matrix part = *m;
    part.data += (size_t)first * m->row_bytes;
    part.n_out = n;
    if (m->bias)
        part.bias += first;
    return part;
}

static void load_layer(loader *l, int i)
{
    const tg_config *c = &l->w->config;
    tg_layer *layer = &l->w->layer[i];
    int n_q = c->n_head * c->head_dim, n_kv = c->n_head_kv * c->head_dim;
    tg_container_kind kind = tg_container_get_kind(l->c);
    norm(l, TG_ROLE_ATTN_NORM, i, &layer->attn_norm);
    if (l->w->arch->name[kind][TG_ROLE_QKV]) {
        tg_matrix m;
        if (matrix(l, TG_ROLE_QKV, i, n_q + 2 * n_kv, c->n_embd, true, c->attn_bias, true, &m)) {
            layer->q = rows_of(&m, 0, n_q);
            layer->k = rows_of(&m, n_q, n_kv);
            layer->v = rows_of(&m, n_q + n_kv, n_kv);
        }
    } else {
        matrix(l, TG_ROLE_Q, i, n_q, c->n_embd, true, c->attn_bias, true, &layer->q);
        matrix(l, TG_ROLE_K, i, n_kv, c->n_embd, true, c->attn_bias, true, &layer->k);
        matrix(l, TG_ROLE_V, i, n_kv, c->n_embd, true, c->attn_bias, true, &layer->v);
    }
    matrix(l, TG_ROLE_ATTN_OUT, i, c->n_embd, n_q, true, c->attn_bias, true, &layer->attn_out);
    norm(l, TG_ROLE_FFN_NORM, i, &layer->ffn_norm);
    if (l->w->arch->gated)
        matrix(l, TG_ROLE_FFN_GATE, i, c->n_ff, c->n_embd, true, c->mlp_bias, true, &layer->gate);
    matrix(l, TG_ROLE_FFN_UP, i, c->n_ff, c->n_embd, true, c->mlp_bias, true, &layer->up);
    matrix(l, TG_ROLE_FFN_DOWN, i, c->n_embd, c->n_ff, true, c->mlp_bias, true, &layer->down);
}

/* ---- rotary frequencies -------------------------------------------------------------------------- */

/* Rounded to float32 where the reference rounds: the frequency itself, then what scaling makes of it. */
static const float *rotary(loader *l)
{
    const tg_rope *r = &l->w->config.rope;
    int n = r->n_rot / 2;
    float *f = tg_arena_alloc(l->arena, (size_t)n, sizeof(float), "rotary frequencies", l->err);
    const float *divide = vector(l, TG_ROLE_ROPE_FREQS, 0, ".weight", n, false);
    for (int i = 0; f && i < n; i++) {
        double exponent = (double)(float)(2 * i) / (double)r->n_rot;
        f[i] = (float)(1.0 / pow(r->theta, (double)(float)exponent));
        if (divide && !(divide[i] > 0.0f && isfinite(divide[i]))) {
            tg_fail(l->err, TG_E_MODEL, tg_container_path(l->c),
                    "rotary factor %d (found %g, allowed: above 0)", i, (double)divide[i]);
            return NULL;
        }
        if (divide)
            f[i] /= divide[i];
        if (r->scaling == TG_ROPE_LINEAR)
            f[i] /= (float)r->factor;
        if (r->scaling == TG_ROPE_LLAMA3) {
            /* Waves longer than the original context slow down by the factor, short ones stay; between
             * them a linear ramp in the number of turns. */
            double turns = r->original_ctx * (double)f[i] / (2.0 * 3.14159265358979323846);
            double smooth = (turns - r->low_freq_factor) / (r->high_freq_factor - r->low_freq_factor);
            smooth = smooth < 0.0 ? 0.0 : smooth > 1.0 ? 1.0 : smooth;
            f[i] = (float)((1.0 - smooth) * (double)f[i] / r->factor + smooth * (double)f[i]);
        }
    }
    return f;
}

/* ---- all ------------------------------------------------------------------------------------------- */

tg_status tg_weights_load(tg_weights *w, const tg_container *c, tg_arena *arena, tg_error *err)
{
    tg_error local = {0}; /* so that a caller without a record still learns of a failure */
    loader l = {.w = w, .c = c, .arena = arena, .err = &local};
    tg_config *config = &w->config;

    const tg_tensor *embd = find(&l, TG_ROLE_TOK_EMBD, 0, ".weight", true);
    if (embd && (embd->n_dim != 2 || embd->dim[0] == 0 || embd->dim[0] > TG_MAX_VOCAB))
        return tg_fail(err, TG_E_MODEL, embd->file,
                       "rows of the token embedding (found %" PRIu64 ", allowed 1 to %d)", embd->dim[0],
                       (int)TG_MAX_VOCAB);
    if (embd) {
        if (config->n_vocab && (uint64_t)config->n_vocab != embd->dim[0])
            return tg_fail(err, TG_E_MODEL, embd->file,
                           "rows of the token embedding (found %" PRIu64 ", wanted %d by the configuration)",
                           embd->dim[0], config->n_vocab);
        config->n_vocab = (int)embd->dim[0];
        matrix(&l, TG_ROLE_TOK_EMBD, 0, config->n_vocab, config->n_embd, false, false, true, &w->tok_embd);
    }
    if (w->arch->pos == TG_POS_LEARNED)
        matrix(&l, TG_ROLE_POS_EMBD, 0, config->n_ctx_train, config->n_embd, false, false, true,
               &w->pos_embd);
    norm(&l, TG_ROLE_OUT_NORM, 0, &w->out_norm);

    w->output = w->tok_embd;
    if (config->tied != TG_TIED) {
        tg_matrix head; /* a plain Linear, also where the other matrices are Conv1D */
        if (matrix(&l, TG_ROLE_OUTPUT, 0, config->n_vocab, config->n_embd, false, false,
                   config->tied == TG_UNTIED, &head))
            w->output = head;
    }

    w->layer = tg_arena_alloc(arena, (size_t)config->n_layer, sizeof *w->layer, "the table of layers",
                              &local);
    for (int i = 0; w->layer && i < config->n_layer && !local.status; i++)
        load_layer(&l, i);
    if (w->arch->pos == TG_POS_ROTARY)
        w->inv_freq = rotary(&l);

    if (local.status)
        return tg_fail(err, local.status, NULL, "%s", local.message);
    if (l.n_missing) {
        tg_quoted q;
        return tg_fail(err, TG_E_MODEL, tg_container_path(c), "required tensors missing: %s%s (%d in all)",
                       tg_quote_str(&q, l.first_missing), l.n_missing > 1 ? " and others" : "",
                       l.n_missing);
    }
    return TG_OK;
}
