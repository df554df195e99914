/* float64.h - what float64 makes of a problem, and how far a strategy may be from that.
 *
 * The reference works on keys and values that the cache holds after rounding, and on queries as a strategy
 * sees them, so that its bounds are of arithmetic alone and stay tight. */
#ifndef TESTS_ATTN_FLOAT64_H
#define TESTS_ATTN_FLOAT64_H

#include "attn/problem.h"

/* How a strategy sees queries and weights: PLAIN as they are; SERVED with queries in 8 bits for Q8_0 and Q4
 * keys and weights in 15-bit fixed point for such values; DOTS with both in BF16. */
typedef enum sight { PLAIN, SERVED, DOTS } sight;

static inline bool in_codes(tg_type type)
{
    return type == TG_Q8_0 || type == TG_Q4;
}

static inline sight kind_of(const tg_attn_strategy *s, const problem *p)
{
    bool codes = in_codes(p->s.type_k) || in_codes(p->s.type_v);
    return s->dots ? DOTS : s->modifiers && codes ? SERVED : PLAIN;
}

typedef struct answer {
    sight kind;
    double *want, *bound; /* [n][n_head][head_dim] */
    double *shift; /* likewise: by how much rounding the queries may have moved `want` */
} answer;

/* A query as the scores see it; of Q4 keys it is rotated, rounded, and rotated back. Returns by how much a score may differ from that of the query itself at
 * a key k: sum over blocks of 32 of error[b] * sum |k|, k rotated likewise. */
static inline void query_of(const problem *p, sight kind, const float *q, double *out, double error[8])
{
    bool rotated = kind == SERVED && p->s.type_k == TG_Q4;
    float seen[256];
    memcpy(seen, q, (size_t)p->s.head_dim * sizeof *seen);
    if (rotated)
        tg_kv_table()->rotate(seen, p->s.head_dim, false);
    for (int d = 0; d < p->s.head_dim; d += 32) {
        int n = p->s.head_dim - d < 32 ? p->s.head_dim - d : 32;
        float x[32] = {0}, most = 0;
        memcpy(x, seen + d, (size_t)n * sizeof *x);
        for (int i = 0; i < n; i++)
            most = fmaxf(most, fabsf(x[i]));
        tg_q8 code;
        bool codes = kind == SERVED && in_codes(p->s.type_k);
        if (codes)
            tg_quantize_row(x, 32, &code);
        for (int i = 0; i < n; i++)
            out[d + i] = codes ? (double)code.d * code.q[i] : (double)(kind == DOTS ? to_bf16(x[i]) : x[i]);
        /* half a step of the codes (and what rounding their inverse adds); half of BF16's last place */
        error[d / 32] = codes ? (double)most / 127 * 0.5001 : kind == DOTS ? (double)most * 0x1p-8 : 0;
    }
    if (rotated) {
        double y[256];
        memcpy(y, out, (size_t)p->s.head_dim * sizeof *y);
        rotate64(y, p->s.head_dim, true, out);
    }
}

/* With scores off by e at most, weights are off by a factor of e^(2 e): returns that, less 1. */
static inline double factor_of(const problem *p, tg_attn_row row, int head, const double error[8])
{
    double most = 0;
    for (int j = 0; j < p->s.n_keys; j++) {
        if (!sees(&p->a.mods, row, j))
            continue;
        const float *k = p->k + key_at(p, row.seq, j, head);
        double e = 0, kk = 0, ee = 0;
        for (int d = 0; d < p->s.head_dim; d++) {
            e += error[d / 32] * fabs((double)k[d]);
            kk += (double)k[d] * (double)k[d];
            ee += error[d / 32] * error[d / 32];
        }
        e = p->s.type_k == TG_Q4 ? sqrt(kk * ee) : e; /* whatever the rotation */
        most = fmax(most, e);
    }
    return expm1(2 * most);
}

/* One row and head. w: [n_keys], weights of the keys that are seen, else 0, and normalised.
 * Returns max |q||k|, or |sink| if that is more. */
static inline double weights_of(const problem *p, int r, int h, const double *q, double *w)
{
    const tg_attn_mods *m = &p->a.mods;
    tg_attn_row row = p->row[r];
    double most = 0, max = -INFINITY, l = 0, qq = 0;
    for (int d = 0; d < p->s.head_dim; d++)
        qq += q[d] * q[d];
    if (m->sink) {
        max = (double)m->sink[h];
        most = fabs(max);
    }
    for (int j = 0; j < p->s.n_keys; j++) {
        if (!sees(m, row, j)) {
            w[j] = -INFINITY;
            continue;
        }
        const float *k = p->k + key_at(p, row.seq, j, h / (p->s.n_head / p->s.n_head_kv));
        double dot = 0, kk = 0;
        for (int d = 0, dim = p->s.head_dim; d < dim; d++) {
            dot += q[d] * (double)k[d];
            kk += (double)k[d] * (double)k[d];
        }
        double cap = (double)m->soft_cap;
        w[j] = cap != 0 ? cap * tanh(dot / cap) : dot;
        max = fmax(max, w[j]);
        most = fmax(most, isinf(kk) ? 0 : sqrt(qq * kk));
    }
    if (max == -INFINITY)
        max = 0;
    for (int j = 0; j < p->s.n_keys; j++)
        l += w[j] = exp(w[j] - max);
    if (m->sink)
        l += exp((double)m->sink[h] - max);
    for (int j = 0; j < p->s.n_keys && l > 0; j++)
        w[j] /= l;
    return most;
}

/* Q8_0 and Q4 values: in a chunk all weights times scales are whole numbers of steps, of which the largest has
 * 32767, so that each code comes with half a step too much or too little. */
static inline void add_fixed_point(const problem *p, tg_attn_row row, int head, const double *w, double *bound)
{
    for (int from = 0; from < p->s.n_keys; from += TG_KV_CHUNK) {
        double most[8] = {0}, codes[256] = {0}, more[256];
        for (int j = from; j < p->s.n_keys && j < from + TG_KV_CHUNK; j++) {
            size_t at = key_at(p, row.seq, j, head);
            for (int b = 0; b < tg_kv_scales(p->s.head_dim) && w[j] > 0; b++) {
                double scale = (double)p->v_scale[at + (size_t)b], inverse = scale > 0 ? 1 / scale : 0;
                most[b] = fmax(most[b], w[j] * scale);
                for (int d = b * 32; d < p->s.head_dim && d < b * 32 + 32; d++)
                    codes[d] += p->s.type_v == TG_Q4 ? 127 : fabs((double)p->v[at + (size_t)d]) * inverse;
            }
        }
        for (int d = 0; d < p->s.head_dim; d++)
            more[d] = 0.5001 / 32767 * most[d / 32] * codes[d];
        int mixed = p->s.type_v == TG_Q4 ? tg_kv_rotation(p->s.head_dim) : 1;
        for (int d = 0; d < p->s.head_dim; d++)
            for (int i = 0; i < mixed; i++)
                bound[d] += more[d / mixed * mixed + i] / sqrt(mixed);
    }
}

/* |v[d]|; or what a number of v's rotation may bring into d when `mixed` of them are rotated back. */
static inline double size_of(const float *v, int d, int mixed)
{
    double vv = 0;
    v += d / mixed * mixed;
    for (int i = 0; i < mixed; i++)
        vv += (double)v[i] * (double)v[i];
    return mixed == 1 ? fabs((double)v[0]) : sqrt(vv);
}

/* Invariant 3: 16 * 2^-24 * (1 + max |q||k|) * sum p |v|, p normalised; what flushing takes, on top; half
 * of BF16's last place in the weights of DOTS. */
static inline void answer_row(const problem *p, answer *a, int r, int h, double *w)
{
    double q[256] = {0}, error[8], size[256] = {0};
    size_t at = ((size_t)r * (size_t)p->s.n_head + (size_t)h) * (size_t)p->s.head_dim;
    double *want = a->want + at, *bound = a->bound + at;
    int head = h / (p->s.n_head / p->s.n_head_kv), dim = p->s.head_dim;
    query_of(p, a->kind, p->q + at, q, error);
    double most = weights_of(p, r, h, q, w);
    double factor = a->kind == PLAIN ? 0 : factor_of(p, p->row[r], head, error) + 1e-12;
    int mixed = a->kind == SERVED && p->s.type_v == TG_Q4 ? tg_kv_rotation(dim) : 1;
    memset(want, 0, (size_t)dim * sizeof *want);
    for (int j = 0; j < p->s.n_keys; j++) {
        const float *v = p->v + key_at(p, p->row[r].seq, j, head);
        if (!(w[j] > 0))
            continue;
        for (int d = 0; d < dim; d++) {
            want[d] += w[j] * (double)v[d];
            size[d] += w[j] * size_of(v, d, mixed);
        }
    }
    for (int d = 0; d < dim; d++) {
        bound[d] = (16 * 0x1p-24 * (1 + most) + (a->kind == DOTS ? 0x1p-8 : 0)) * size[d] + 1e-37;
        a->shift[at + (size_t)d] = factor * size[d];
    }
    if (a->kind == SERVED && in_codes(p->s.type_v))
        add_fixed_point(p, p->row[r], head, w, bound);
}

static inline answer answer_make(const problem *p, sight kind)
{
    answer a = {.kind = kind};
    a.want = malloc(out_floats(p) * sizeof *a.want);
    a.bound = malloc(out_floats(p) * sizeof *a.bound);
    a.shift = malloc(out_floats(p) * sizeof *a.shift);
    double *w = malloc(((size_t)p->s.n_keys + 1) * sizeof *w);
    for (int r = 0; r < p->s.n; r++)
        for (int h = 0; h < p->s.n_head; h++)
            answer_row(p, &a, r, h, w);
    free(w);
    return a;
}

static inline void answer_free(answer *a)
{
    free(a->want);
    free(a->bound);
    free(a->shift);
}

/* The largest error of the problem's output in units of the bound; NaN when there is one. */
static inline double error_of(const problem *p, const answer *a)
{
    double worst = 0;
    for (size_t i = 0; i < out_floats(p); i++) {
        double error = fabs((double)p->a.out[i] - a->want[i]) / a->bound[i];
        worst = error <= worst ? worst : error;
    }
    return worst;
}

#endif
