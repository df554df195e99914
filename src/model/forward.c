/* forward.c - the one forward for all architectures. */
#include "model/forward.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "kernel/vector.h"

enum { COLUMNS = 512 }; /* of a row, where one row is too much for one thread; a multiple of 32 */

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
    TG_PLACE(f->partial, base, at, tg_attn_partial_floats(c->n_head, c->head_dim));
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

/* ---- operators: each shares its units among the threads and ends at a barrier -------------------- */

/* Does any of the products read the rows as 8-bit blocks? */
static bool any_q8(const tg_forward *f, const tg_product *p, int n)
{
    for (int i = 0; i < n; i++)
        if (tg_matmul_wants_q8(p[i].w, f->mode))
            return true;
    return false;
}

static void matmul(const tg_worker *w, const tg_forward *f, const tg_rows *x, const tg_product *p, int n)
{
    tg_matmul(w, x, p, n, f->mode);
    tg_barrier(w);
}

static void note_bad(tg_forward *f, int layer, int row)
{
    int seen = atomic_load(&f->bad_layer);
    while (layer < seen)
        if (atomic_compare_exchange_weak(&f->bad_layer, &seen, layer))
            atomic_store(&f->bad_row, row);
}

static bool norm_row(const tg_forward *f, const tg_norm *norm, const float *x, float *out)
{
    const tg_config *c = &f->w->config;
    if (f->w->arch->norm == TG_NORM_RMS)
        return tg_vector()->rms_norm(x, norm->w, c->norm_eps, c->n_embd, out);
    return tg_vector()->layer_norm(x, norm->w, norm->b, c->norm_eps, c->n_embd, out);
}

/* Returns norm(x), in the forms that the products behind it read. */
static tg_rows norm(const tg_worker *w, tg_forward *f, const tg_norm *norm, int layer, bool q8)
{
    size_t n = (size_t)f->w->config.n_embd;
    for (size_t r; (r = tg_take(w, (size_t)f->n)) < (size_t)f->n;) {
        float *out = f->in_f + r * n;
        if (!norm_row(f, norm, f->x + r * n, out))
            note_bad(f, layer, (int)r);
        if (q8)
            tg_quantize_row(out, (int)n, f->in_q + r * (n / 32));
    }
    tg_barrier(w);
    return (tg_rows){f->in_f, f->in_q, f->n, (int)n};
}

static void quantize(const tg_worker *w, const tg_rows *x)
{
    size_t n = (size_t)x->n_in, parts = (n + COLUMNS - 1) / COLUMNS;
    size_t n_units = (size_t)x->n * parts;
    for (size_t u; (u = tg_take(w, n_units)) < n_units;) {
        size_t r = u / parts, from = u % parts * COLUMNS;
        size_t m = n - from < COLUMNS ? n - from : COLUMNS;
        tg_quantize_row(x->f + r * n + from, (int)m, x->q + (r * n + from) / 32);
    }
    tg_barrier(w);
}

/* up = act(gate) * up, or act(up) without gating. */
static void activate(const tg_worker *w, const tg_forward *f, bool q8)
{
    const tg_config *c = &f->w->config;
    size_t n = (size_t)c->n_ff, parts = (n + COLUMNS - 1) / COLUMNS;
    size_t n_units = (size_t)f->n * parts;
    for (size_t u; (u = tg_take(w, n_units)) < n_units;) {
        size_t from = u / parts * n + u % parts * COLUMNS;
        size_t left = n - u % parts * COLUMNS;
        int m = (int)(left < COLUMNS ? left : COLUMNS);
        float *up = f->up + from;
        if (f->w->arch->gated)
            tg_vector()->activate(c->act, f->gate + from, up, m, up);
        else
            tg_vector()->activate(c->act, up, NULL, m, up);
        if (q8)
            tg_quantize_row(up, m, f->ff_q + from / 32);
    }
    tg_barrier(w);
}

/* Rows of the embeddings, and cosines and sines of the rows' positions: the angle rounded to float32,
 * its cosine and sine in double, then rounded, as the reference does. */
static void embed(const tg_worker *w, const tg_forward *f)
{
    const tg_config *c = &f->w->config;
    size_t n = (size_t)c->n_embd, half = (size_t)(c->rope.n_rot / 2);
    for (size_t r; (r = tg_take(w, (size_t)f->n)) < (size_t)f->n;) {
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
    tg_barrier(w);
}

static void rotate(const tg_rope *rope, const float *cosine, const float *sine, float *head)
{
    int half = rope->n_rot / 2;
    bool neighbours = rope->pairs == TG_ROPE_NEIGHBOURS;
    for (int i = 0; i < half; i++) {
        float *a = head + (neighbours ? 2 * i : i), *b = head + (neighbours ? 2 * i + 1 : i + half);
        float u = *a * cosine[i] - *b * sine[i], v = *b * cosine[i] + *a * sine[i];
        *a = u;
        *b = v;
    }
}

static tg_kv_view layer_view(const tg_forward *f, int layer)
{
    tg_kv_view view = f->kv.first;
    view.k += (size_t)layer * f->kv.k_layer_stride;
    view.v += (size_t)layer * f->kv.v_layer_stride;
    return view;
}

/* Rotates queries and keys, scales the queries, and puts keys and values into the cache. */
static void rope_and_cache(const tg_worker *w, tg_forward *f, int layer)
{
    const tg_config *c = &f->w->config;
    tg_kv_view view = layer_view(f, layer);
    float scale = tg_config_attn_scale(c, layer);
    size_t half = (size_t)(c->rope.n_rot / 2), dim = (size_t)c->head_dim;
    for (size_t r; (r = tg_take(w, (size_t)f->n)) < (size_t)f->n;) {
        float *q = f->q + r * (size_t)n_query(c), *k = f->k + r * (size_t)n_key(c);
        if (f->w->arch->pos == TG_POS_ROTARY) {
            const float *cosine = f->cosine + r * half, *sine = f->sine + r * half;
            for (int h = 0; h < c->n_head; h++)
                rotate(&c->rope, cosine, sine, q + (size_t)h * dim);
            for (int h = 0; h < c->n_head_kv; h++)
                rotate(&c->rope, cosine, sine, k + (size_t)h * dim);
        }
        for (int i = 0; i < n_query(c); i++)
            q[i] *= scale;
        const tg_attn_row *row = &f->attn_row[r];
        int n = tg_kv_put(&view, &f->seq[row->seq], row->pos, k, f->v + r * (size_t)n_key(c));
        if (n)
            atomic_fetch_add(&f->n_clamped, (unsigned long long)n);
    }
    tg_barrier(w);
}

/* ---- the model ----------------------------------------------------------------------------------- */

static void attention_block(const tg_worker *w, tg_forward *f, int i)
{
    const tg_config *c = &f->w->config;
    const tg_layer *l = &f->w->layer[i];
    size_t nq = (size_t)n_query(c), nk = (size_t)n_key(c);
    const tg_product qkv[3] = {{&l->q, f->q, nq, false}, {&l->k, f->k, nk, false}, {&l->v, f->v, nk, false}};
    const tg_rows x = norm(w, f, &l->attn_norm, i, any_q8(f, qkv, 3));
    matmul(w, f, &x, qkv, 3);

    rope_and_cache(w, f, i);
    const tg_attn attn = {.kv = layer_view(f, i), .seq = f->seq, .row = f->attn_row, .n = f->n,
                          .n_head = c->n_head, .q = f->q, .out = f->in_f, .partial = f->partial,
                          .mods = {.window = f->window, .keep = f->keep, .soft_cap = c->soft_cap},
                          .dots = f->attention->dots};
    f->attention->run(w, &attn);
    tg_barrier(w);

    const tg_rows y = {f->in_f, f->in_q, f->n, (int)nq};
    const tg_product out = {&l->attn_out, f->x, (size_t)c->n_embd, true};
    if (any_q8(f, &out, 1))
        quantize(w, &y);
    matmul(w, f, &y, &out, 1);
}

static void feed_forward_block(const tg_worker *w, tg_forward *f, int i)
{
    const tg_config *c = &f->w->config;
    const tg_layer *l = &f->w->layer[i];
    size_t ff = (size_t)c->n_ff;
    const tg_product in[2] = {{&l->up, f->up, ff, false}, {&l->gate, f->gate, ff, false}};
    int n_in = f->w->arch->gated ? 2 : 1;
    const tg_rows x = norm(w, f, &l->ffn_norm, i + 1, any_q8(f, in, n_in));
    matmul(w, f, &x, in, n_in);

    const tg_product down = {&l->down, f->x, (size_t)c->n_embd, true};
    activate(w, f, any_q8(f, &down, 1));
    const tg_rows h = {f->up, f->ff_q, f->n, c->n_ff};
    matmul(w, f, &h, &down, 1);
}

static void head(const tg_worker *w, void *arg)
{
    tg_forward *f = arg;
    const tg_config *c = &f->w->config;
    size_t n = (size_t)c->n_embd, n_vocab = (size_t)c->n_vocab;
    const tg_product out = {&f->w->output, f->logits, n_vocab, false};
    bool q8 = any_q8(f, &out, 1);
    for (size_t i; (i = tg_take(w, (size_t)f->n_want)) < (size_t)f->n_want;) {
        float *row = f->head_f + i * n;
        if (!norm_row(f, &f->w->out_norm, f->x + (size_t)f->want[i] * n, row))
            note_bad(f, c->n_layer, f->want[i]);
        if (q8)
            tg_quantize_row(row, (int)n, f->head_q + i * (n / 32));
    }
    tg_barrier(w);
    const tg_rows rows = {f->head_f, f->head_q, f->n_want, (int)n};
    matmul(w, f, &rows, &out, 1);
    for (size_t i; (i = tg_take(w, (size_t)f->n_want)) < (size_t)f->n_want;)
        if (!tg_vector()->finite(f->logits + i * n_vocab, (int)n_vocab))
            note_bad(f, c->n_layer, f->want[i]);
}

static void program(const tg_worker *w, void *arg)
{
    tg_forward *f = arg;
    embed(w, f);
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
