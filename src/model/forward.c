/* forward.c - the one forward for all architectures. */
#include "model/forward.h"

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

/* Does what a block computes get a norm or a factor before it joins x? Then it is not added by the product. */
static bool joins_aside(const tg_weights *w)
{
    return w->layer[0].attn_post_norm.w || w->config.residual_scale != 0;
}

size_t tg_forward_lay_out(tg_forward *f, const tg_weights *w, int n_batch, void *base)
{
    const tg_config *c = &w->config;
    size_t n = (size_t)n_batch, at = 0, half = (size_t)(c->rope[0].n_rot / 2);
    TG_PLACE(f->x, base, at, n * (size_t)c->n_embd);
    TG_PLACE(f->y, base, at, joins_aside(w) ? n * (size_t)c->n_embd : 0);
    TG_PLACE(f->in_f, base, at, n * (size_t)in_max(c));
    TG_PLACE(f->in_q, base, at, n * (size_t)(in_max(c) / 32 + 1));
    TG_PLACE(f->q, base, at, n * (size_t)n_query(c));
    TG_PLACE(f->k, base, at, n * (size_t)n_key(c));
    TG_PLACE(f->v, base, at, n * (size_t)n_key(c));
    TG_PLACE(f->gate, base, at, w->arch->gated ? n * (size_t)c->n_ff : 0);
    TG_PLACE(f->up, base, at, n * (size_t)c->n_ff);
    TG_PLACE(f->ff_q, base, at, n * (size_t)(c->n_ff / 32 + 1));
    TG_PLACE(f->cosine, base, at, 2 * n * half);
    TG_PLACE(f->sine, base, at, 2 * n * half);
    TG_PLACE(f->inv_freq[0], base, at, half);
    TG_PLACE(f->inv_freq[1], base, at, half);
    at = tg_mixture_lay_out(&f->mixture, c, n_batch, base, at);
    f->partial = base ? (char *)base + at : NULL;
    at += tg_round_up(tg_attn_partial_bytes(c->n_head, c->head_dim), 64);
    TG_PLACE(f->head_f, base, at, (size_t)TG_HEAD_ROWS * (size_t)c->n_embd);
    TG_PLACE(f->head_q, base, at, (size_t)TG_HEAD_ROWS * (size_t)(c->n_embd / 32 + 1));
    TG_PLACE(f->logits, base, at, (size_t)TG_HEAD_ROWS * (size_t)c->n_vocab);
    return at;
}

void tg_forward_prepare(tg_forward *f, int n_ctx)
{
    const tg_config *c = &f->w->config;
    for (int i = 0; i < 2 && f->w->arch->pos == TG_POS_ROTARY; i++)
        f->magnitude[i] = tg_rope_frequencies(&c->rope[i], i == 0 ? f->w->rope_factors : (tg_rope_factors){0}, n_ctx,
                                              f->inv_freq[i]);
}

size_t tg_forward_scratch_bytes(const tg_weights *w, const tg_attn_strategy *attention, int n_batch,
                                int n_ctx)
{
    const tg_config *c = &w->config;
    int widest = c->n_ff > in_max(c) ? c->n_ff : in_max(c);
    widest = c->n_ff_expert > widest ? c->n_ff_expert : widest;
    size_t matmul = tg_matmul_scratch_bytes(widest);
    size_t attn = tg_attn_strategy_scratch(attention, n_batch, n_ctx, c->n_head, c->n_head_kv, c->head_dim);
    return matmul > attn ? matmul : attn;
}

/* ---- what is done to a row between products ----------------------------------------------------- */

/* What a step of the program works on. */
typedef struct step {
    tg_forward *f;
    int layer;
    const tg_norm *join; /* NULL, or the norm of y, which then joins x */
    const tg_norm *norm; /* of x */
    bool q8;             /* do the products behind it read 8-bit blocks? */
} step;

static void note_bad(tg_forward *f, int layer, int row)
{
    int64_t at = (int64_t)layer << 32 | row, seen = atomic_load(&f->bad);
    while (at < seen && !atomic_compare_exchange_weak(&f->bad, &seen, at))
        ;
}

/* out = norm(x), or x where there is none; false if x is not finite. */
static bool norm_of(const tg_weights *w, const tg_norm *norm, const float *x, int n, float *out)
{
    const float eps = w->config.norm_eps;
    if (!norm->w) {
        memmove(out, x, (size_t)n * sizeof *x);
        return tg_vector()->finite(x, n);
    }
    return w->arch->norm == TG_NORM_RMS ? tg_vector()->rms_norm(x, norm->w, eps, n, out)
                                        : tg_vector()->layer_norm(x, norm->w, norm->b, eps, n, out);
}

static void norm_row(const step *s, int row, const float *x, float *out, tg_q8 *q)
{
    const int n = s->f->w->config.n_embd;
    if (!norm_of(s->f->w, s->norm, x, n, out))
        note_bad(s->f, s->layer, row);
    if (s->q8)
        tg_quantize_row(out, n, q);
}

/* x += norm(y) * factor */
static void join(void *arg, size_t r)
{
    const step *s = arg;
    const tg_config *c = &s->f->w->config;
    const size_t n = (size_t)c->n_embd;
    float *y = s->f->y + r * n;
    if (s->join->w)
        norm_of(s->f->w, s->join, y, c->n_embd, y);
    tg_vector()->add(c->residual_scale != 0 ? c->residual_scale : 1.0f, y, c->n_embd, s->f->x + r * n);
}

/* norm(x) of a row, in the forms that the products behind it read, once what was computed before has joined x. */
static void norm(void *arg, size_t r)
{
    const step *s = arg;
    size_t n = (size_t)s->f->w->config.n_embd;
    if (s->join)
        join(arg, r);
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

/* Cosines and sines of a position: the angle rounded to float32, its cosine and sine in double, then rounded, as
 * the reference does. */
static void turn(const tg_forward *f, size_t r, int which)
{
    const tg_config *c = &f->w->config;
    const size_t half = (size_t)(c->rope[0].n_rot / 2), at = (2 * r + (size_t)which) * half;
    const float by = f->magnitude[which];
    for (size_t i = 0; i < (size_t)(c->rope[which].n_rot / 2); i++) {
        float angle = (float)f->attn_row[r].pos * f->inv_freq[which][i];
        f->cosine[at + i] = (float)cos((double)angle) * by;
        f->sine[at + i] = (float)sin((double)angle) * by;
    }
}

/* A row of the embeddings, and what its position comes to. */
static void embed(void *arg, size_t r)
{
    const tg_forward *f = ((const step *)arg)->f;
    const tg_config *c = &f->w->config;
    size_t n = (size_t)c->n_embd;
    float *x = f->x + r * n;
    tg_matrix_row(&f->w->tok_embd, f->id[r], x);
    if (c->embd_scale != 0)
        tg_vector()->scale(c->embd_scale, c->n_embd, x);
    if (f->w->arch->pos == TG_POS_LEARNED) {
        float *p = f->in_f + r * n;
        tg_matrix_row(&f->w->pos_embd, f->attn_row[r].pos + c->pos_offset, p);
        tg_vector()->add(1.0f, p, (int)n, x);
    }
    for (int i = 0; i < 2; i++)
        turn(f, r, i);
}

static tg_kv_view layer_view(const tg_forward *f, int layer)
{
    tg_kv_view view = f->kv.first;
    view.data += (size_t)layer * f->kv.stride;
    return view;
}

/* Rotation `which` of the heads of a row, -1: none; and the scale. */
static void rotate(const tg_forward *f, size_t r, int which, float *heads, int n_head, float scale)
{
    const tg_config *c = &f->w->config;
    const tg_rope *rope = &c->rope[which > 0];
    const int half = which < 0 ? 0 : rope->n_rot / 2;
    const size_t at = (2 * r + (size_t)(which > 0)) * (size_t)(c->rope[0].n_rot / 2);
    for (int h = 0; h < n_head; h++, heads += c->head_dim) {
        tg_vector()->rotate(heads, f->cosine + at, f->sine + at, half, rope->pairs == TG_ROPE_NEIGHBOURS, scale);
        if (scale != 1.0f)
            tg_vector()->scale(scale, c->head_dim - 2 * half, heads + 2 * half);
    }
}

/* The norm of each head, or of all together. */
static void norm_heads(const tg_weights *w, const tg_norm *norm, float *heads, int n_head)
{
    const tg_config *c = &w->config;
    const int n = c->qk_norm_whole ? n_head * c->head_dim : c->head_dim, n_parts = c->qk_norm_whole ? 1 : n_head;
    for (int i = 0; i < n_parts && norm->w; i++, heads += n)
        norm_of(w, norm, heads, n, heads);
}

/* Norms and rotates queries and keys, scales the queries, and puts keys and values into the cache. */
static void rope_and_cache(void *arg, size_t r)
{
    const step *s = arg;
    tg_forward *f = s->f;
    const tg_config *c = &f->w->config;
    const tg_layer *l = &f->w->layer[s->layer];
    const int which = tg_config_rope_of(c, s->layer);
    tg_kv_view view = layer_view(f, s->layer);
    float *q = f->q + r * (size_t)n_query(c), *k = f->k + r * (size_t)n_key(c);
    norm_heads(f->w, &l->q_norm, q, c->n_head);
    norm_heads(f->w, &l->k_norm, k, c->n_head_kv);
    rotate(f, r, which, q, c->n_head, tg_config_attn_scale(c, s->layer));
    rotate(f, r, which, k, c->n_head_kv, 1.0f);
    const tg_attn_row *row = &f->attn_row[r];
    int n = tg_kv_put(&view, &f->seq[row->seq], row->pos, k, f->v + r * (size_t)n_key(c));
    if (n) {
        atomic_fetch_add(&f->n_clamped, (unsigned long long)n);
        if (!tg_vector()->finite(k, n_key(c)) || !tg_vector()->finite(f->v + r * (size_t)n_key(c), n_key(c)))
            note_bad(f, s->layer + 1, (int)r); /* the cache hides it */
    }
    if (s->norm) /* in parallel the feed-forward reads x as it is now */
        norm(arg, r);
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
        tg_vector()->activate(c->act, c->act_limit, f->w->arch->gated ? f->gate + at : up, f->w->arch->gated ? up : NULL, n, up);
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

/* The product whose outputs join x, at once or by way of y. */
static tg_product joining(const tg_forward *f, const tg_matrix *m)
{
    const size_t n = (size_t)f->w->config.n_embd;
    return joins_aside(f->w) ? (tg_product){m, f->y, n, false} : (tg_product){m, f->x, n, true};
}

static tg_matmul_job attn_out(const tg_forward *f, int i)
{
    const tg_config *c = &f->w->config;
    return (tg_matmul_job){.x = {f->in_f, f->in_q, f->n, n_query(c)},
                           .product = {joining(f, &f->w->layer[i].attn_out)},
                           .n_products = 1};
}

static tg_matmul_job up_and_gate(const tg_forward *f, int i, step *s)
{
    const tg_config *c = &f->w->config;
    const tg_layer *l = &f->w->layer[i];
    size_t ff = (size_t)c->n_ff;
    return (tg_matmul_job){.x = {f->in_f, f->in_q, f->n, c->n_embd},
                           .product = {{&l->ffn.up, f->up, ff, false}, {&l->ffn.gate, f->gate, ff, false}},
                           .n_products = f->w->arch->gated ? 2 : 1,
                           .then = activate,
                           .arg = s};
}

static tg_matmul_job down(const tg_forward *f, int i)
{
    const tg_config *c = &f->w->config;
    return (tg_matmul_job){.x = {f->up, f->ff_q, f->n, c->n_ff},
                           .product = {joining(f, &f->w->layer[i].ffn.down)},
                           .n_products = 1};
}

/* Logits as the model scales and caps them, a part as soon as it is there. */
static void finish_logits(void *arg, int row, int n_rows, int first, int n)
{
    tg_forward *f = ((const step *)arg)->f;
    const tg_config *c = &f->w->config;
    for (int r = row; r < row + n_rows; r++) {
        float *logits = f->logits + (size_t)r * (size_t)c->n_vocab + (size_t)first;
        if (c->logit_scale != 0)
            tg_vector()->scale(c->logit_scale, n, logits);
        if (!tg_vector()->finite(logits, n))
            note_bad(f, c->n_layer, f->want[r]);
        if (c->logit_cap != 0)
            tg_vector()->soft_cap(c->logit_cap, n, logits);
    }
}

static tg_matmul_job output(const tg_forward *f, step *s)
{
    const tg_config *c = &f->w->config;
    return (tg_matmul_job){.x = {f->head_f, f->head_q, f->n_want, c->n_embd},
                           .product = {{&f->w->output, f->logits, (size_t)c->n_vocab, false}},
                           .n_products = 1,
                           .then = finish_logits,
                           .arg = s};
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

int tg_window_of(const tg_config *c, int layer, int session_window)
{
    const int own = tg_config_is_local(c, layer) ? c->window : 0;
    return own == 0 || (session_window > 0 && session_window < own) ? session_window : own;
}

static tg_attn attention(tg_forward *f, int i)
{
    const tg_config *c = &f->w->config;
    return (tg_attn){.kv = layer_view(f, i), .seq = f->seq, .row = f->attn_row, .n = f->n, .n_head = c->n_head,
                     .q = f->q, .out = f->in_f, .partial = f->partial,
                     .mods = {.window = tg_window_of(c, i, f->window), .keep = f->keep, .soft_cap = c->soft_cap,
                              .sink = f->w->layer[i].sink},
                     .dots = f->attention->dots};
}

/* The norm of what the layer before has left aside; NULL: nothing. */
static const tg_norm *left_aside(const tg_forward *f, int i)
{
    return i > 0 && joins_aside(f->w) ? &f->w->layer[i - 1].ffn_post_norm : NULL;
}

/* The product in front of attention, whose first keys are fetched behind it when they are many, and otherwise the
 * weights behind attention. */
static void before_attention(const tg_worker *w, const tg_forward *f, const tg_matmul_job *job, const tg_attn *attn,
                             const tg_matmul_job *out)
{
    const bool is_long = tg_attention_is_long(attn);
    tg_matmul(w, job, f->mode, is_long ? NULL : out);
    if (is_long)
        tg_attention_fetch(w, attn);
}

static void attention_block(const tg_worker *w, tg_forward *f, int i)
{
    const tg_config *c = &f->w->config;
    const tg_layer *l = &f->w->layer[i];
    const size_t n = (size_t)f->n;
    step s = {.f = f, .layer = i, .join = left_aside(f, i), .norm = &l->attn_norm}, ff = {.f = f, .layer = i};
    const tg_attn attn = attention(f, i);
    const tg_matmul_job in = qkv(f, i), out = attn_out(f, i), up = up_and_gate(f, i, &ff);
    s.q8 = reads_q8(f, &in) || (c->parallel && reads_q8(f, &up));
    tg_meet(w, n, norm, &s);
    if (c->parallel)
        tg_matmul(w, &in, f->mode, &up);
    else
        before_attention(w, f, &in, &attn, &out);
    s.join = NULL;
    s.norm = c->parallel && l->ffn_norm.w ? &l->ffn_norm : NULL;
    tg_meet(w, n, rope_and_cache, &s);
    if (c->parallel) { /* before attention writes where the norm is */
        const tg_matmul_job behind = down(f, i);
        ff.q8 = reads_q8(f, &behind);
        before_attention(w, f, &up, &attn, &out);
        tg_barrier(w);
    }
    f->attention->run(w, &attn);
    if (tg_attention_is_long(&attn))
        tg_matmul_fetch(w, &out, f->mode);
    tg_meet(w, reads_q8(f, &out) ? n : 0, quantize, &s);
    tg_matmul(w, &out, f->mode, c->parallel || l->expert ? NULL : &up);
}

/* The job behind layer i; none where that has no rows. */
static tg_matmul_job behind(const tg_forward *f, int i)
{
    return i + 1 < f->w->config.n_layer ? qkv(f, i + 1) : output(f, NULL);
}

static void feed_forward_block(const tg_worker *w, tg_forward *f, int i)
{
    const tg_config *c = &f->w->config;
    const tg_layer *l = &f->w->layer[i];
    step s = {.f = f, .layer = i + 1, .join = joins_aside(f->w) ? &l->attn_post_norm : NULL, .norm = &l->ffn_norm};
    const tg_matmul_job in = up_and_gate(f, i, &s), out = down(f, i), next = behind(f, i);
    if (c->parallel) {
        tg_barrier(w);
    } else {
        s.q8 = l->expert ? tg_mixture_reads_q8(l, f->mode) : reads_q8(f, &in);
        tg_meet(w, (size_t)f->n, norm, &s);
        if (l->expert) {
            tg_mixture_run(w, &f->mixture, c, l, in.x, f->mode, f->x);
            return;
        }
        s.q8 = reads_q8(f, &out);
        tg_matmul(w, &in, f->mode, &out);
        tg_barrier(w);
    }
    tg_matmul(w, &out, f->mode, next.x.n > 0 ? &next : NULL);
}

static void head(const tg_worker *w, void *arg)
{
    tg_forward *f = arg;
    const tg_config *c = &f->w->config;
    step s = {.f = f, .layer = c->n_layer, .norm = &f->w->out_norm};
    const tg_matmul_job out = output(f, &s), next = qkv(f, 0); /* of the next token, most likely */
    s.q8 = reads_q8(f, &out);
    tg_meet(w, (size_t)f->n_want, head_norm, &s);
    tg_matmul(w, &out, f->mode, &next);
}

static void program(const tg_worker *w, void *arg)
{
    tg_forward *f = arg;
    const int n_layer = f->w->config.n_layer;
    tg_meet(w, (size_t)f->n, embed, &(step){.f = f});
    for (int i = 0; i < n_layer; i++) {
        if (w->rank == 0)
            f->stopped = *f->interrupted != 0;
        attention_block(w, f, i);
        if (f->stopped)
            return;
        feed_forward_block(w, f, i);
    }
    if (joins_aside(f->w))
        tg_meet(w, (size_t)f->n, join, &(step){.f = f, .join = left_aside(f, n_layer)});
    if (f->n_want > 0)
        head(w, f);
}

void tg_forward_run(tg_forward *f, tg_team *team)
{
    f->stopped = false;
    atomic_store(&f->bad, INT64_MAX);
    tg_team_run(team, program, f);
}

void tg_forward_head(tg_forward *f, tg_team *team)
{
    tg_team_run(team, head, f);
}
