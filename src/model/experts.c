/* experts.c - the matrices of a mixture of experts, from the layouts that files have for them:
 *
 *     one matrix for each expert                                      a folder's usual way
 *     [n_expert][n_out][n_in], biases [n_expert][n_out]               GGUF
 *     [n_expert][n_in][n_out], gate and up by turns                   gpt-oss, not quantised
 *     blocks and scales in two tensors, gate and up by turns          gpt-oss as it was released (MXFP4) */
#include <stdio.h>
#include <string.h>

#include "model/weights.h"

enum { MXFP4_ID = 39, MXFP4_VALUES = 32 }; /* ggml's number of the type, numbers in a block */

/* The experts of one role: matrices with the same shape, in one piece. */
typedef struct stack {
    const uint8_t *data;
    const tg_dtype *type;
    const float *bias; /* [n_expert][n_out] or NULL */
    int n_out, n_in;
} stack;

static tg_matrix matrix_of(const stack *s, int expert)
{
    const size_t row_bytes = s->data ? tg_dtype_row_bytes(s->type, (size_t)s->n_in) : 0, e = (size_t)expert;
    return s->data ? (tg_matrix){.data = s->data + e * (size_t)s->n_out * row_bytes, .type = s->type,
                                 .n_out = s->n_out, .n_in = s->n_in, .row_bytes = row_bytes,
                                 .bias = s->bias ? s->bias + e * (size_t)s->n_out : NULL}
                   : (tg_matrix){0};
}

static const float *stacked_bias(tg_loader *l, tg_role role, int layer, const char *suffix, int n_out)
{
    const bool must = l->w->config.bias >> role & 1 && l->kind == TG_CONTAINER_HF;
    const uint64_t dim[3] = {(uint64_t)l->w->config.n_expert, (uint64_t)n_out};
    const tg_tensor *t = tg_load_find(l, role, layer, 0, suffix, must);
    if (!t || !tg_load_shape_is(l, t, 2, dim) || !tg_load_type_is_known(l, t))
        return NULL;
    return tg_load_floats(l, t, t->data, (size_t)(dim[0] * dim[1]));
}

/* [n_expert][n_out][n_in] as it lies in a GGUF. */
static stack stacked(tg_loader *l, tg_role role, int layer, int n_out, int n_in)
{
    const uint64_t dim[3] = {(uint64_t)l->w->config.n_expert, (uint64_t)n_out, (uint64_t)n_in};
    const tg_tensor *t = tg_load_find(l, role, layer, 0, ".weight", true);
    if (!t || !tg_load_shape_is(l, t, 3, dim) || !tg_load_type_is_known(l, t))
        return (stack){0};
    return (stack){t->data, t->type, stacked_bias(l, role, layer, ".bias", n_out), n_out, n_in};
}

/* ---- gpt-oss ------------------------------------------------------------------------------------------ */

/* [n_expert][n_in][n_out]; of `turns` matrices, whose outputs stand there by turns, each gets a piece of its
 * own behind the other. */
static stack turned(tg_loader *l, const tg_tensor *t, int n_out, int n_in, int turns)
{
    const size_t n_expert = (size_t)l->w->config.n_expert;
    const uint64_t dim[3] = {n_expert, (uint64_t)n_in, (uint64_t)n_out};
    if (!tg_load_shape_is(l, t, 3, dim) || !tg_load_type_is_known(l, t))
        return (stack){0};
    const uint8_t *data = tg_load_transposed(l, t, (int)n_expert, n_out, n_in, turns);
    return (stack){.data = data, .type = t->type, .n_out = n_out, .n_in = n_in};
}

/* A block here has values 2k and 2k + 1 in byte k; ours has values k and k + 16. */
static void mxfp4_block(const uint8_t *codes, uint8_t scale, uint8_t *out)
{
    uint8_t value[MXFP4_VALUES];
    for (int k = 0; k < MXFP4_VALUES / 2; k++) {
        value[2 * k] = codes[k] & 15;
        value[2 * k + 1] = codes[k] >> 4;
    }
    out[0] = scale;
    for (int k = 0; k < MXFP4_VALUES / 2; k++)
        out[1 + k] = (uint8_t)(value[k] | value[k + MXFP4_VALUES / 2] << 4);
}

/* codes [n_expert][n_out][n_in / 32][16], scales [n_expert][n_out][n_in / 32] */
static stack mxfp4(tg_loader *l, const tg_tensor *codes, const tg_tensor *scales, int n_out, int n_in, int turns)
{
    const tg_dtype *type = tg_dtype_by_gguf_id(MXFP4_ID, NULL);
    const size_t n_expert = (size_t)l->w->config.n_expert, n_rows = (size_t)n_out;
    const size_t n_blocks = (size_t)n_in / MXFP4_VALUES, size = (size_t)type->block_bytes;
    const uint64_t dim[4] = {n_expert, n_rows, n_blocks, MXFP4_VALUES / 2};
    if (n_in % MXFP4_VALUES != 0 || memcmp(codes->dim, dim, sizeof dim) != 0 || memcmp(scales->dim, dim, 3 * sizeof *dim) != 0 ||
        scales->dim[3] != 1 || strcmp(codes->type_name, "U8") != 0 || strcmp(scales->type_name, "U8") != 0) {
        tg_quoted q;
        tg_fail(l->err, TG_E_MODEL, codes->file, "tensor %s and its scales do not fit (wanted U8, %zu x %zu x %zu x 16)",
                tg_quote_str(&q, codes->name), n_expert, n_rows, n_blocks);
        return (stack){0};
    }
    uint8_t *data = tg_arena_alloc(l->arena, n_expert * n_rows * n_blocks, size, "experts laid anew", l->err);
    for (size_t e = 0; data && e < n_expert; e++)
        for (size_t o = 0; o < n_rows; o++) {
            size_t from = (e * n_rows + o) * n_blocks, t = (size_t)turns;
            size_t to = ((o % t * n_expert + e) * (n_rows / t) + o / t) * n_blocks;
            for (size_t b = 0; b < n_blocks; b++)
                mxfp4_block(codes->data + (from + b) * (MXFP4_VALUES / 2), scales->data[from + b], data + (to + b) * size);
        }
    return (stack){.data = data, .type = type, .n_out = n_out, .n_in = n_in};
}

/* A bias [n_expert][n_out] whose numbers stand by turns, in pieces. */
static const float *bias_by_turns(tg_loader *l, const float *bias, int n_out, int turns)
{
    const size_t n_expert = (size_t)l->w->config.n_expert, n = (size_t)n_out, t = (size_t)turns;
    if (!bias || turns == 1)
        return bias;
    float *out = tg_arena_alloc(l->arena, n_expert * n, sizeof *out, "a bias laid anew", l->err);
    for (size_t e = 0; out && e < n_expert; e++)
        for (size_t o = 0; o < n; o++)
            out[(o % t * n_expert + e) * (n / t) + o / t] = bias[e * n + o];
    return out;
}

/* All matrices of a role; `turns` of them stand by turns and get out[0 .. turns - 1]. */
static void gpt_oss(tg_loader *l, tg_role role, int layer, int n_out, int n_in, int turns, stack *out)
{
    const tg_tensor *codes = tg_load_find(l, role, layer, 0, "_blocks", false);
    const tg_tensor *scales = codes ? tg_load_find(l, role, layer, 0, "_scales", true) : NULL;
    const tg_tensor *plain = codes ? NULL : tg_load_find(l, role, layer, 0, "", true);
    stack all = scales  ? mxfp4(l, codes, scales, n_out, n_in, turns)
                : plain ? turned(l, plain, n_out, n_in, turns)
                        : (stack){0};
    all.bias = bias_by_turns(l, stacked_bias(l, role, layer, "_bias", n_out), n_out, turns);
    const size_t n_expert = (size_t)l->w->config.n_expert, n = (size_t)(n_out / turns);
    for (int i = 0; i < turns && all.data && !l->err->status; i++)
        out[i] = (stack){all.data + (size_t)i * n_expert * n * tg_dtype_row_bytes(all.type, (size_t)n_in), all.type,
                         all.bias ? all.bias + (size_t)i * n_expert * n : NULL, (int)n, n_in};
}

/* ---- all ------------------------------------------------------------------------------------------------ */

static bool one_by_one(const tg_loader *l)
{
    const char *name = tg_arch_role_name(l->w->arch, l->kind, TG_ROLE_GATE_EXPERTS), *at = name ? strstr(name, "%d") : NULL;
    return at && strstr(at + 2, "%d");
}

void tg_load_experts(tg_loader *l, int layer, tg_layer *out)
{
    const tg_config *c = &l->w->config;
    const int n_ff = c->n_ff_expert, n_embd = c->n_embd;
    tg_load_matrix(l, TG_ROLE_ROUTER, layer, 0, c->n_expert, n_embd, true, &out->router);
    /* Where something is missing the model is refused, and what is missing is counted: no table for what a few bytes of
     * a file may ask for. */
    tg_ffn unused = {0};
    if (l->n_missing == 0)
        out->expert = tg_arena_alloc(l->arena, (size_t)c->n_expert, sizeof *out->expert, "the table of experts", l->err);
    for (int e = 0; one_by_one(l) && e < c->n_expert; e++) {
        tg_ffn *f = out->expert ? &out->expert[e] : &unused;
        tg_load_matrix(l, TG_ROLE_GATE_EXPERTS, layer, e, n_ff, n_embd, true, &f->gate);
        tg_load_matrix(l, TG_ROLE_UP_EXPERTS, layer, e, n_ff, n_embd, true, &f->up);
        tg_load_matrix(l, TG_ROLE_DOWN_EXPERTS, layer, e, n_embd, n_ff, true, &f->down);
    }
    if (one_by_one(l))
        return;
    stack s[3] = {{0}}; /* gate, up, down */
    if (tg_arch_role_name(l->w->arch, l->kind, TG_ROLE_GATE_UP_EXPERTS)) {
        gpt_oss(l, TG_ROLE_GATE_UP_EXPERTS, layer, 2 * n_ff, n_embd, 2, s);
        gpt_oss(l, TG_ROLE_DOWN_EXPERTS, layer, n_embd, n_ff, 1, s + 2);
    } else {
        s[0] = stacked(l, TG_ROLE_GATE_EXPERTS, layer, n_ff, n_embd);
        s[1] = stacked(l, TG_ROLE_UP_EXPERTS, layer, n_ff, n_embd);
        s[2] = stacked(l, TG_ROLE_DOWN_EXPERTS, layer, n_embd, n_ff);
    }
    for (int e = 0; out->expert && e < c->n_expert; e++)
        out->expert[e] = (tg_ffn){matrix_of(&s[0], e), matrix_of(&s[1], e), matrix_of(&s[2], e)};
}
