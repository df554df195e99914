/* forward.c - the one forward for all architectures. */
#include "model/forward.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "kernel/vector.h"

/* ---- buffers ------------------------------------------------------------------------------------ */

static int n_query(const tg_config *c)
{
    return c->n_head * c->head_dim;
}

static int n_key(const tg_config *c)
{
    return c->n_head_kv * c->head_dim;
}

static int in_max(const tg_config *c)
{
    return c->n_embd > n_query(c) ? c->n_embd : n_query(c);
}

size_t tg_forward_lay_out(tg_forward *f, const tg_weights *w, int n_batch, void *base)
{
    const tg_config *c = &w->config;
    size_t n = (size_t)n_batch, at = 0, half = (size_t)(c->rope.n_rot / 2);
    TG_PLACE(f->x, base, at, n * (size_t)c->n_embd);
    TG_PLACE(f->in_f, base, at, n * (size_t)in_max(c));
    TG_PLACE(f->in_q, base, at, n * (size_t)(in_max(c) / 32 + 1));
    TG_PLACE(f->q, base, at, n * (size_t)n_query(c));
    TG_PLACE(f->k, base, at, n * (size_t)n_key(c));
    TG_PLACE(f->v, base, at, n * (size_t)n_key(c));
    TG_PLACE(f->gate, base, at, w->arch->gated ? n * (size_t)c->n_ff : 0);
    TG_PLACE(f->up, base, at, n * (size_t)c->n_ff);
    TG_PLACE(f->ff_q, base, at, n * (size_t)(c->n_ff / 32 + 1));
    TG_PLACE(f->cosine, base, at, n * half);
    TG_PLACE(f->sine, base, at, n * half);
    f->partial = base ? (char *)base + at : NULL;
    at += tg_round_up(tg_attn_partial_bytes(c->n_head, c->head_dim), 64);
    TG_PLACE(f->head_f, base, at, (size_t)TG_HEAD_ROWS * (size_t)c->n_embd);
    TG_PLACE(f->head_q, base, at, (size_t)TG_HEAD_ROWS * (size_t)(c->n_embd / 32 + 1));
    TG_PLACE(f->logits, base, at, (size_t)TG_HEAD_ROWS * (size_t)c->n_vocab);
    return at;
}

size_t tg_forward_scratch_bytes(const tg_weights *w, const tg_attn_strategy *attention, int n_batch,
                                int n_ctx)
{
    const tg_config *c = &w->config;
    int widest = c->n_ff > in_max(c) ? c->n_ff : in_max(c);
    size_t matmul = tg_matmul_scratch_bytes(widest);
    size_t attn = tg_attn_strategy_scratch(attention, n_batch, n_ctx, c->n_head, c->n_head_kv, c->head_dim);
    return matmul > attn ? matmul : attn;
}

/* ---- what is done to a row between products ----------------------------------------------------- */

/* What a step of the program works on. */
typedef struct step {
    tg_forward *f;
    int layer;
    const tg_norm *norm;
    bool q8;       /* do the products behind it read 8-bit blocks? */
} step;

static void note_bad(tg_forward *f, int layer, int row)
{
    int seen = atomic_load(&f->bad_layer);
    while (layer < seen)
        if (atomic_compare_exchange_weak(&f->bad_layer, &seen, layer))
            atomic_store(&f->bad_row, row);
}

static void norm_row(const step *s, int row, const float *x, float *out, tg_q8 *q)
{
    const tg_config *c = &s->f->w->config;
    bool finite = s->f->w->arch->norm == TG_NORM_RMS
                      ? tg_vector()->rms_norm(x, s->norm->w, c->norm_eps, c->n_embd, out)
                      : tg_vector()->layer_norm(x, s->norm->w, s->norm->b, c->norm_eps, c->n_embd, out);
    if (!finite)
        note_bad(s->f, s->layer, row);
    if (s->q8)
        tg_quantize_row(out, c->n_embd, q);
}

/* norm(x) of a row, in the forms that the products behind it read. */
static void norm(void *arg, size_t r)
{
    const step *s = arg;
    size_t n = (size_t)s->f->w->config.n_embd;
    norm_row(s, (int)r, s->f->x + r * n, s->f->in_f + r * n, s->f->in_q + r * (n / 32));
}

static void head_norm(void *arg, size_t i)
{
    const step *s = arg;
    const tg_forward *f = s->f;
    size_t n = (size_t)f->w->config.n_embd;
    norm_row(s, f->want[i], f->x + (size_t)f->want[i] * n, f->head_f + i * n, f->head_q + i * (n / 32));
}

static void quantize(void *arg, size_t r)
{
    const tg_forward *f = ((const step *)arg)->f;
    size_t n = (size_t)n_query(&f->w->config);
    tg_quantize_row(f->in_f + r * n, (int)n, f->in_q + r * (n / 32));
}

/* A row of the embeddings, and cosines and sines of its position: the angle rounded to float32, its cosine
 * and sine in double, then rounded, as the reference does. */
static void embed(void *arg, size_t r)
{
    const tg_forward *f = ((const step *)arg)->f;
    const tg_config *c = &f->w->config;
    size_t n = (size_t)c->n_embd, half = (size_t)(c->rope.n_rot / 2);
    float *x = f->x + r * n;
    int pos = f->attn_row[r].pos;
    tg_matrix_row(&f->w->tok_embd, f->id[r], x);
    if (f->w->arch->pos == TG_POS_LEARNED) {
        float *p = f->in_f + r * n;
        tg_matrix_row(&f->w->pos_embd, pos, p);
        tg_vector()->add(p, (int)n, x);
    }
    for (size_t i = 0; f->w->arch->pos == TG_POS_ROTARY && i < half; i++) {
        float angle = (float)pos * f->w->inv_freq[i];
        f->cosine[r * half + i] = (float)cos((double)angle);
        f->sine[r * half + i] = (float)sin((double)angle);
    }
}

static tg_kv_view layer_view(const tg_forward *f, int layer)
{
    tg_kv_view view = f->kv.first;
    view.k += (size_t)layer * f->kv.k_layer_stride;
    view.v += (size_t)layer * f->kv.v_layer_stride;
    return view;
}

static void rotate(const tg_forward *f, size_t r, float *heads, int n_head, float scale)
{
    const tg_rope *rope = &f->w->config.rope;
    int half = rope->n_rot / 2;
    const float *cosine = f->cosine + r * (size_t)half, *sine = f->sine + r * (size_t)half;
    for (int h = 0; h < n_head; h++, heads += f->w->config.head_dim) {
        tg_vector()->rotate(heads, cosine, sine, half, rope->pairs == TG_ROPE_NEIGHBOURS, scale);
        tg_vector()->scale(scale, f->w->config.head_dim - rope->n_rot, heads + rope->n_rot);
    }
}

/* Rotates queries and keys, scales the queries, and puts keys and values into the cache. */
static void rope_and_cache(void *arg, size_t r)
{
    const step *s = arg;
    tg_forward *f = s->f;
    const tg_config *c = &f->w->config;
    tg_kv_view view = layer_view(f, s->layer);
    float scale = tg_config_attn_scale(c, s->layer);
    float *q = f->q + r * (size_t)n_query(c), *k = f->k + r * (size_t)n_key(c);
    if (f->w->arch->pos == TG_POS_ROTARY) {
        rotate(f, r, q, c->n_head, scale);
        rotate(f, r, k, c->n_head_kv, 1.0f);
    } else {
        tg_vector()->scale(scale, n_query(c), q);
    }
    const tg_attn_row *row = &f->attn_row[r];
    int n = tg_kv_put(&view, &f->seq[row->seq], row->pos, k, f->v + r * (size_t)n_key(c));
    if (n)
        atomic_fetch_add(&f->n_clamped, (unsigned long long)n);
}

/* up = act(gate) * up, or act(up) without gating, for a part of them as soon as it is there. */
static void activate(void *arg, int row, int n_rows, int first, int n)
{
    const step *s = arg;
    const tg_forward *f = s->f;
    const tg_config *c = &f->w->config;
    for (int r = row; r < row + n_rows; r++) {
        size_t at = (size_t)r * (size_t)c->n_ff + (size_t)first;
        float *up = f->up + at;
        tg_vector()->activate(c->act, f->w->arch->gated ? f->gate + at : up, f->w->arch->gated ? up : NULL, n, up);
        if (s->q8)
            tg_quantize_row(up, n, f->ff_q + at / 32);
    }
}

/* ---- the products ------------------------------------------------------------------------------- */

static tg_matmul_job qkv(const tg_forward *f, int i)
{
    const tg_config *c = &f->w->config;
    const tg_layer *l = &f->w->layer[i];
    size_t nq = (size_t)n_query(c), nk = (size_t)n_key(c);
    return (tg_matmul_job){.x = {f->in_f, f->in_q, f->n, c->n_embd},
                           .product = {{&l->q, f->q, nq, false}, {&l->k, f->k, nk, false}, {&l->v, f->v, nk, false}},
                           .n_products = 3};
}

static tg_matmul_job attn_out(const tg_forward *f, int i)
{
    const tg_config *c = &f->w->config;
    return (tg_matmul_job){.x = {f->in_f, f->in_q, f->n, n_query(c)},
                           .product = {{&f->w->layer[i].attn_out, f->x, (size_t)c->n_embd, true}},
                           .n_products = 1};
}

static tg_matmul_job up_and_gate(const tg_forward *f, int i, step *s)
{
    const tg_config *c = &f->w->config;
    const tg_layer *l = &f->w->layer[i];
    size_t ff = (size_t)c->n_ff;
    return (tg_matmul_job){.x = {f->in_f, f->in_q, f->n, c->n_embd},
                           .product = {{&l->up, f->up, ff, false}, {&l->gate, f->gate, ff, false}},
                           .n_products = f->w->arch->gated ? 2 : 1,
                           .then = activate,
                           .arg = s};
}

static tg_matmul_job down(const tg_forward *f, int i)
{
    const tg_config *c = &f->w->config;
    return (tg_matmul_job){.x = {f->up, f->ff_q, f->n, c->n_ff},
                           .product = {{&f->w->layer[i].down, f->x, (size_t)c->n_embd, true}},
                           .n_products = 1};
}

static tg_matmul_job output(const tg_forward *f)
{
    const tg_config *c = &f->w->config;
    return (tg_matmul_job){.x = {f->head_f, f->head_q, f->n_want, c->n_embd},
                           .product = {{&f->w->output, f->logits, (size_t)c->n_vocab, false}},
                           .n_products = 1};
}

/* Does any of the products read the rows as 8-bit blocks? */
static bool reads_q8(const tg_forward *f, const tg_matmul_job *job)
{
    for (int i = 0; i < job->n_products; i++)
        if (tg_matmul_wants_q8(job->product[i].w, f->mode))
            return true;
    return false;
}

/* ---- the model ----------------------------------------------------------------------------------- */

static void attention_block(const tg_worker *w, tg_forward *f, int i)
{
    const tg_config *c = &f->w->config;
    const tg_layer *l = &f->w->layer[i];
    size_t n = (size_t)f->n;
    const tg_matmul_job in = qkv(f, i), out = attn_out(f, i), next = up_and_gate(f, i, NULL);
    step s = {.f = f, .layer = i, .norm = &l->attn_norm, .q8 = reads_q8(f, &in)};
    tg_meet(w, n, norm, &s);
    tg_matmul(w, &in, f->mode, &out);
    tg_meet(w, n, rope_and_cache, &s);

    const tg_attn attn = {.kv = layer_view(f, i), .seq = f->seq, .row = f->attn_row, .n = f->n,
                          .n_head = c->n_head, .q = f->q, .out = f->in_f, .partial = f->partial,
                          .mods = {.window = f->window, .keep = f->keep, .soft_cap = c->soft_cap},
                          .dots = f->attention->dots};
    f->attention->run(w, &attn);
    tg_meet(w, reads_q8(f, &out) ? n : 0, quantize, &s);
    tg_matmul(w, &out, f->mode, &next);
}

static void feed_forward_block(const tg_worker *w, tg_forward *f, int i)
{
    const tg_layer *l = &f->w->layer[i];
    step s = {.f = f, .layer = i + 1, .norm = &l->ffn_norm};
    const tg_matmul_job in = up_and_gate(f, i, &s), out = down(f, i);
    const tg_matmul_job next = i + 1 < f->w->config.n_layer ? qkv(f, i + 1) : output(f);
    s.q8 = reads_q8(f, &in);
    tg_meet(w, (size_t)f->n, norm, &s);
    s.q8 = reads_q8(f, &out);
    tg_matmul(w, &in, f->mode, &out);
    tg_barrier(w);
    tg_matmul(w, &out, f->mode, next.x.n > 0 ? &next : NULL);
}

static void head(const tg_worker *w, void *arg)
{
    tg_forward *f = arg;
    const tg_config *c = &f->w->config;
    size_t n_vocab = (size_t)c->n_vocab, n_want = (size_t)f->n_want;
    const tg_matmul_job out = output(f), next = qkv(f, 0); /* of the next token, most likely */
    step s = {.f = f, .layer = c->n_layer, .norm = &f->w->out_norm, .q8 = reads_q8(f, &out)};
    tg_meet(w, n_want, head_norm, &s);
    tg_matmul(w, &out, f->mode, &next);
    tg_barrier(w);
    for (size_t i; (i = tg_take(w, n_want)) < n_want;)
        if (!tg_vector()->finite(f->logits + i * n_vocab, (int)n_vocab))
            note_bad(f, c->n_layer, f->want[i]);
}

static void program(const tg_worker *w, void *arg)
{
    tg_forward *f = arg;
    tg_meet(w, (size_t)f->n, embed, &(step){.f = f});
    for (int i = 0; i < f->w->config.n_layer; i++) {
        if (w->rank == 0)
            f->stopped = *f->interrupted != 0;
        attention_block(w, f, i);
        if (f->stopped)
            return;
        feed_forward_block(w, f, i);
    }
    if (f->n_want > 0)
        head(w, f);
}

void tg_forward_run(tg_forward *f, tg_team *team)
{
    f->stopped = false;
    atomic_store(&f->bad_layer, INT_MAX);
    tg_team_run(team, program, f);
}

void tg_forward_head(tg_forward *f, tg_team *team)
{
    tg_team_run(team, head, f);
}
