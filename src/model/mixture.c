/* mixture.c - the feed-forward of a mixture of experts. */
#include "model/mixture.h"

#include <math.h>
#include <string.h>

size_t tg_mixture_lay_out(tg_mixture *m, const tg_config *c, int n_batch, void *base, size_t at)
{
    const size_t n = c->n_expert > 0 ? (size_t)n_batch : 0, n_slots = n * (size_t)c->n_expert_used;
    const size_t n_embd = (size_t)c->n_embd, n_ff = (size_t)c->n_ff_expert;
    TG_PLACE(m->logits, base, at, n * (size_t)c->n_expert);
    TG_PLACE(m->expert, base, at, n_slots);
    TG_PLACE(m->weight, base, at, n_slots);
    TG_PLACE(m->slot, base, at, n_slots);
    TG_PLACE(m->first, base, at, (size_t)c->n_expert + 1);
    TG_PLACE(m->row, base, at, n_slots);
    TG_PLACE(m->in_f, base, at, n_slots * n_embd);
    TG_PLACE(m->in_q, base, at, n_slots * (n_embd / 32 + 1));
    TG_PLACE(m->gate, base, at, n_slots * n_ff);
    TG_PLACE(m->up, base, at, n_slots * n_ff);
    TG_PLACE(m->ff_q, base, at, n_slots * (n_ff / 32 + 1));
    TG_PLACE(m->out, base, at, n_slots * n_embd);
    return at;
}

bool tg_mixture_reads_q8(const tg_layer *l, tg_matmul_mode mode)
{
    return tg_matmul_wants_q8(&l->expert[0].up, mode) || tg_matmul_wants_q8(&l->expert[0].gate, mode) ||
           tg_matmul_wants_q8(&l->router, mode);
}

/* What the steps work on. */
typedef struct mix {
    tg_mixture *m;
    const tg_config *c;
    tg_rows in;
    bool in_q8, ff_q8; /* what the products read */
    float *gate, *up;  /* of the expert in work */
    tg_q8 *ff_q;
    float *out;
} mix;

/* ---- routing -------------------------------------------------------------------------------------------- */

/* The largest logits, the lower id among equals; then ascending ids. */
static void pick(const float *logits, int n_expert, int n_used, int *expert)
{
    uint64_t taken[TG_MAX_EXPERTS / 64] = {0};
    for (int k = 0; k < n_used; k++) {
        int best = -1;
        for (int e = 0; e < n_expert; e++)
            if (!(taken[e / 64] >> e % 64 & 1) && (best < 0 || logits[e] > logits[best]))
                best = e;
        taken[best / 64] |= (uint64_t)1 << best % 64;
    }
    for (int e = 0, k = 0; e < n_expert; e++)
        if (taken[e / 64] >> e % 64 & 1)
            expert[k++] = e;
}

/* Softmax of the logits picked, over these or over all. */
static void share(float *logits, int n_expert, const int *expert, int n_used, bool among_all, float *weight)
{
    float max = logits[expert[0]];
    for (int k = 0; k < n_used; k++) {
        weight[k] = logits[expert[k]];
        max = weight[k] > max ? weight[k] : max;
    }
    float sum = tg_vector()->exps(weight, max, 1.0f, n_used, weight);
    if (among_all)
        sum = tg_vector()->exps(logits, max, 1.0f, n_expert, logits);
    for (int k = 0; k < n_used; k++)
        weight[k] /= sum;
}

static void route(void *arg, size_t r)
{
    const mix *x = arg;
    const tg_mixture *m = x->m;
    const size_t n_expert = (size_t)x->c->n_expert, n_used = (size_t)x->c->n_expert_used;
    float *logits = m->logits + r * n_expert, *weight = m->weight + r * n_used;
    const bool finite = tg_vector()->finite(logits, x->c->n_expert);
    pick(logits, x->c->n_expert, x->c->n_expert_used, m->expert + r * n_used);
    share(logits, x->c->n_expert, m->expert + r * n_used, x->c->n_expert_used, x->c->share_all, weight);
    if (!finite) /* no order among these: let it show */
        weight[0] = NAN;
}

/* Counts, then places. */
static void order(void *arg, size_t unit)
{
    const mix *x = arg;
    const tg_mixture *m = x->m;
    const int n_used = x->c->n_expert_used, n_slots = x->in.n * n_used;
    (void)unit;
    memset(m->first, 0, ((size_t)x->c->n_expert + 1) * sizeof *m->first);
    for (int i = 0; i < n_slots; i++)
        m->first[m->expert[i] + 1]++;
    for (int e = 0; e < x->c->n_expert; e++)
        m->first[e + 1] += m->first[e];
    for (int i = 0; i < n_slots; i++) {
        m->slot[i] = m->first[m->expert[i]]++;
        m->row[m->slot[i]] = i / n_used;
    }
    for (int e = x->c->n_expert; e > 0; e--) /* each stands now where the next begins */
        m->first[e] = m->first[e - 1];
    m->first[0] = 0;
}

/* ---- the experts ------------------------------------------------------------------------------------------ */

static void gather(void *arg, size_t slot)
{
    const mix *x = arg;
    const size_t n = (size_t)x->in.n_in, row = (size_t)x->m->row[slot];
    memcpy(x->m->in_f + slot * n, x->in.f + row * n, n * sizeof *x->in.f);
    if (x->in_q8)
        memcpy(x->m->in_q + slot * (n / 32), x->in.q + row * (n / 32), n / 32 * sizeof *x->in.q);
}

/* up = act(gate) * up for a part of them as soon as it is there. */
static void activate(void *arg, int row, int n_rows, int first, int n)
{
    const mix *x = arg;
    const size_t n_ff = (size_t)x->c->n_ff_expert;
    for (int r = row; r < row + n_rows; r++) {
        size_t at = (size_t)r * n_ff + (size_t)first;
        tg_vector()->activate(x->c->act, x->c->act_limit, x->gate + at, x->up + at, n, x->up + at);
        if (x->ff_q8)
            tg_quantize_row(x->up + at, n, x->ff_q + at / 32);
    }
}

static void run_expert(const tg_worker *w, mix *x, const tg_ffn *expert, int e, tg_matmul_mode mode)
{
    tg_mixture *m = x->m;
    const int n = m->first[e + 1] - m->first[e];
    const size_t slot = (size_t)m->first[e], n_embd = (size_t)x->c->n_embd, n_ff = (size_t)x->c->n_ff_expert;
    x->gate = m->gate + slot * n_ff;
    x->up = m->up + slot * n_ff;
    x->ff_q = m->ff_q + slot * (n_ff / 32);
    const tg_matmul_job in = {.x = {m->in_f + slot * n_embd, m->in_q + slot * (n_embd / 32), n, x->c->n_embd},
                              .product = {{&expert->up, x->up, n_ff, false}, {&expert->gate, x->gate, n_ff, false}},
                              .n_products = 2,
                              .then = activate,
                              .arg = x};
    const tg_matmul_job down = {.x = {x->up, x->ff_q, n, x->c->n_ff_expert},
                                .product = {{&expert->down, m->out + slot * n_embd, n_embd, false}},
                                .n_products = 1};
    tg_matmul(w, &in, mode, &down);
    tg_barrier(w);
    tg_matmul(w, &down, mode, NULL);
    tg_barrier(w);
}

/* The weighted outputs of a row's experts, by ascending id. */
static void combine(void *arg, size_t r)
{
    const mix *x = arg;
    const tg_mixture *m = x->m;
    const size_t n_used = (size_t)x->c->n_expert_used, n = (size_t)x->c->n_embd;
    const int *slot = m->slot + r * n_used;
    const float *weight = m->weight + r * n_used;
    float *sum = m->out + (size_t)slot[0] * n;
    tg_vector()->scale(weight[0], (int)n, sum);
    for (size_t k = 1; k < n_used; k++)
        tg_vector()->add(weight[k], m->out + (size_t)slot[k] * n, (int)n, sum);
    tg_vector()->add(1.0f, sum, (int)n, x->out + r * n);
}

void tg_mixture_run(const tg_worker *w, tg_mixture *m, const tg_config *c, const tg_layer *l, tg_rows in,
                    tg_matmul_mode mode, float *out)
{
    mix x = {.m = m, .c = c, .in = in, .out = out,
             .in_q8 = tg_matmul_wants_q8(&l->expert[0].up, mode) || tg_matmul_wants_q8(&l->expert[0].gate, mode),
             .ff_q8 = tg_matmul_wants_q8(&l->expert[0].down, mode)};
    const tg_matmul_job router = {.x = in,
                                  .product = {{&l->router, m->logits, (size_t)c->n_expert, false}},
                                  .n_products = 1};
    /* never by BLAS: another rounding would choose other experts */
    tg_matmul(w, &router, (tg_matmul_mode){.precise = mode.precise}, NULL);
    tg_meet(w, (size_t)in.n, route, &x);
    tg_meet(w, 1, order, &x);
    tg_meet(w, (size_t)(in.n * c->n_expert_used), gather, &x);
    for (int e = 0; e < c->n_expert; e++)
        if (m->first[e + 1] > m->first[e])
            run_expert(w, &x, &l->expert[e], e, mode);
    tg_meet(w, (size_t)in.n, combine, &x);
}
