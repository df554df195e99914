/* sampler.c - from logits to one id: biases, penalties, top-k, typical, top-p, min-p, temperature, one draw.
 *
 * Candidates are ordered by logit, the largest first, the lowest id first among equals; every filter
 * keeps that order and at least one candidate. */
#include "sample/sampler.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "kernel/vector.h"

struct tg_sampler {
    tg_sampling params;
    tg_rng rng;
    int n_vocab;
    tg_top *c;     /* [n_vocab] candidates */
    tg_top *order; /* [n_vocab] the same by another order; NULL where none is needed */
    tg_top *room;  /* [n_vocab] for sorting */
    float *p;      /* [n_vocab] their weights; before that, the row with biases and penalties */
    float *bias;   /* [n_vocab] added to the row; NaN for an id that is never drawn */
    bool biased;   /* is any not 0? */
    int *count;    /* [n_vocab] of each id in the window; NULL: no penalties */
    int32_t *window; /* [last_n] a ring of the last ids; NULL: all count */
    size_t n_accepted;
};

enum { LAST_N_MAX = 1 << 20, BIAS_MAX = 10000 };
static const float TEMP_LEAST = 1e-6f;

/* ---- random numbers ------------------------------------------------------------------------------- */

static const uint64_t STEP = 0x9e3779b97f4a7c15u;

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t tg_rng_next(tg_rng *rng)
{
    rng->state += STEP;
    return mix(rng->state);
}

tg_rng tg_rng_make(uint64_t seed, uint64_t stream)
{
    return (tg_rng){stream ? mix(seed + mix(stream)) : seed};
}

/* ---- creation -------------------------------------------------------------------------------------- */

static tg_status check(const tg_sampling *p, int n_vocab, tg_error *err)
{
    const struct {
        const char *name;
        float value, min, max;
    } limit[] = {{"temperature", p->temp, 0, FLT_MAX},
                 {"typical", p->typical, 0, 1},
                 {"top-p", p->top_p, 0, 1},
                 {"min-p", p->min_p, 0, 1},
                 {"repeat penalty", p->repeat != 0 ? p->repeat : 1, 0.01f, 100},
                 {"presence penalty", p->presence, -100, 100},
                 {"frequency penalty", p->frequency, -100, 100}};
    for (size_t i = 0; i < sizeof limit / sizeof *limit; i++)
        if (!(limit[i].value >= limit[i].min && limit[i].value <= limit[i].max))
            return tg_fail(err, TG_E_USAGE, NULL, "%s (found %g, allowed %g to %g)", limit[i].name,
                           (double)limit[i].value, (double)limit[i].min, (double)limit[i].max);
    if (p->top_k < 0)
        return tg_fail(err, TG_E_USAGE, NULL, "top-k (found %d, allowed: 0 or above)", p->top_k);
    if (p->last_n < -1 || p->last_n > LAST_N_MAX)
        return tg_fail(err, TG_E_USAGE, NULL, "window of the penalties (found %d, allowed -1 to %d)", p->last_n,
                       LAST_N_MAX);
    for (int i = 0; i < p->n_bias; i++) {
        if (p->bias[i].id < 0 || p->bias[i].id >= n_vocab)
            return tg_fail(err, TG_E_USAGE, NULL, "token id of a logit bias (found %d, allowed 0 to %d)",
                           (int)p->bias[i].id, n_vocab - 1);
        if (!(fabsf(p->bias[i].by) <= BIAS_MAX))
            return tg_fail(err, TG_E_USAGE, NULL, "logit bias of token %d (found %g, allowed -%d to %d)",
                           (int)p->bias[i].id, (double)p->bias[i].by, BIAS_MAX, BIAS_MAX);
    }
    return TG_OK;
}

static bool penalizes(const tg_sampling *p)
{
    return p->last_n != 0 && ((p->repeat != 0 && p->repeat != 1) || p->presence != 0 || p->frequency != 0);
}

static bool is_typical(const tg_sampling *p)
{
    return p->typical > 0 && p->typical < 1;
}

/* Memory for what the parameters need; false when there is none. */
static bool allocate(tg_sampler *s, tg_error *err)
{
    const tg_sampling *p = &s->params;
    const size_t n = (size_t)s->n_vocab;
    s->c = tg_alloc(n, sizeof *s->c, "candidates", err);
    s->room = tg_alloc(n, sizeof *s->room, "candidates", err);
    s->p = tg_alloc(n, sizeof *s->p, "probabilities", err);
    s->bias = tg_alloc(n, sizeof *s->bias, "biases of logits", err);
    if (is_typical(p))
        s->order = tg_alloc(n, sizeof *s->order, "candidates", err);
    if (penalizes(p))
        s->count = tg_alloc(n, sizeof *s->count, "counts of tokens", err);
    if (s->count && p->last_n > 0)
        s->window = tg_alloc((size_t)p->last_n, sizeof *s->window, "the last tokens", err);
    return s->c && s->room && s->p && s->bias && (s->order || !is_typical(p)) && (s->count || !penalizes(p)) &&
           (s->window || !s->count || p->last_n < 0);
}

tg_status tg_sampler_make(tg_sampler **sampler, int n_vocab, const tg_sampling *params, tg_error *err)
{
    *sampler = NULL;
    tg_status status = check(params, n_vocab, err);
    if (status != TG_OK)
        return status;
    tg_sampler *s = tg_alloc(1, sizeof *s, "a sampler", err);
    if (!s)
        return TG_E_RESOURCE;
    s->params = *params;
    s->rng = tg_rng_make(params->seed, params->stream);
    s->rng.state += params->n_drawn * STEP;
    s->n_vocab = n_vocab;
    if (!allocate(s, err)) {
        tg_sampler_free(s);
        return TG_E_RESOURCE;
    }
    s->biased = params->n_bias > 0;
    for (int i = 0; i < params->n_bias; i++)
        s->bias[params->bias[i].id] += params->bias[i].by;
    *sampler = s;
    return TG_OK;
}

void tg_sampler_free(tg_sampler *s)
{
    if (!s)
        return;
    free(s->c);
    free(s->order);
    free(s->room);
    free(s->p);
    free(s->bias);
    free(s->count);
    free(s->window);
    free(s);
}

void tg_sampler_ban(tg_sampler *s, int32_t id)
{
    if (id < 0 || id >= s->n_vocab)
        return;
    s->bias[id] = NAN;
    s->biased = true;
}

/* ---- penalties ------------------------------------------------------------------------------------- */

void tg_sampler_accept(tg_sampler *s, int32_t id)
{
    if (!s->count || id < 0 || id >= s->n_vocab)
        return;
    if (s->window) {
        int32_t *place = &s->window[s->n_accepted % (size_t)s->params.last_n];
        if (s->n_accepted >= (size_t)s->params.last_n)
            s->count[*place]--;
        *place = id;
    }
    s->count[id]++;
    s->n_accepted++;
}

static void penalize(const tg_sampler *s, float *row, int n)
{
    const float repeat = s->params.repeat != 0 ? s->params.repeat : 1;
    for (int id = 0; id < n; id++) {
        if (s->count[id] == 0)
            continue;
        row[id] = row[id] > 0 ? row[id] / repeat : row[id] * repeat;
        row[id] -= (float)s->count[id] * s->params.frequency + s->params.presence;
    }
}

/* ---- choosing -------------------------------------------------------------------------------------- */

/* The larger the logit, the smaller. Both zeros are one. */
static uint32_t key_of(float logit)
{
    uint32_t bits;
    logit += 0.0f;
    memcpy(&bits, &logit, sizeof bits);
    return bits >> 31 ? bits : ~bits & INT32_MAX;
}

/* Puts candidates in order; equal ones stay in theirs. By the four bytes of the key, the least first: comparing all
 * of a large vocabulary takes longer than a small model's evaluation. */
static void sort(tg_top *c, int n, tg_top *room)
{
    enum { BYTES = 4, VALUES = 256 };
    int at[BYTES][VALUES] = {{0}};
    for (int i = 0; i < n; i++)
        for (int b = 0; b < BYTES; b++)
            at[b][key_of(c[i].logit) >> 8 * b & 0xFF]++;
    for (int b = 0; b < BYTES; b++) {
        for (int v = 0, next = 0, count; v < VALUES; v++, next += count) {
            count = at[b][v];
            at[b][v] = next;
        }
        for (int i = 0; i < n; i++)
            room[at[b][key_of(c[i].logit) >> 8 * b & 0xFF]++] = c[i];
        tg_top *swap = c;
        c = room;
        room = swap;
    }
}

/* The row with biases and penalties. What is banned is NaN, in no order and never among the largest. */
const float *tg_sampler_adjusted(tg_sampler *s, const float *logits, int n)
{
    if (!s->biased && !s->count)
        return logits;
    memcpy(s->p, logits, (size_t)n * sizeof *s->p);
    if (s->biased)
        tg_vector()->add(1.0f, s->bias, n, s->p);
    if (s->count)
        penalize(s, s->p, n);
    return s->p;
}

static int choose_all(tg_sampler *s, const float *row, int n)
{
    int kept = 0;
    for (int32_t id = 0; id < n; id++)
        if (!isnan(row[id]))
            s->c[kept++] = (tg_top){row[id], id};
    sort(s->c, kept, s->room);
    return kept;
}

/* The first k of all candidates in order; k = 0: all. Returns how many. */
static int choose(tg_sampler *s, const float *logits, int n, int k)
{
    const float *row = tg_sampler_adjusted(s, logits, n);
    return k > 0 && k < n ? tg_top_k(row, n, k, s->c, NULL) : choose_all(s, row, n);
}

/* p[i] = e^((logit i - logit 0) * scale); returns their sum. */
static float weigh(tg_sampler *s, int n, float scale)
{
    for (int i = 0; i < n; i++)
        s->p[i] = s->c[i].logit;
    return tg_vector()->exps(s->p, s->c[0].logit, scale, n, s->p);
}

/* How far the information -log p of candidate i is from the expected one. Of log p = x - log sum e^x the sum
 * is the same in both: x and its mean do. */
static float oddness(const tg_sampler *s, int i, float mean)
{
    return fabsf(s->c[i].logit - mean);
}

/* Those nearest to the expected information, as few as reach `typical`; at one distance all or none. */
static int cut_typical(tg_sampler *s, int n)
{
    float sum = weigh(s, n, 1.0f), mean = 0.0f, seen = 0.0f;
    for (int i = 0; i < n; i++)
        mean += s->p[i] > 0 ? s->p[i] / sum * s->c[i].logit : 0;
    for (int i = 0; i < n; i++)
        s->order[i] = (tg_top){-oddness(s, i, mean), i};
    sort(s->order, n, s->room);
    int last = 0;
    while (last < n - 1 && (seen += s->p[s->order[last].id]) < s->params.typical * sum)
        last++;
    const float most = -s->order[last].logit;
    int kept = 0;
    for (int i = 0; i < n; i++)
        if (oddness(s, i, mean) <= most)
            s->c[kept++] = s->c[i];
    return kept;
}

/* The shortest prefix whose probability reaches top_p. */
static int cut_top_p(tg_sampler *s, int n)
{
    float sum = weigh(s, n, 1.0f), seen = 0.0f;
    for (int i = 0; i < n; i++) {
        seen += s->p[i];
        if (seen >= s->params.top_p * sum)
            return i + 1;
    }
    return n;
}

/* Those at least min_p times as probable as the first. */
static int cut_min_p(tg_sampler *s, int n)
{
    weigh(s, n, 1.0f);
    int kept = 1;
    while (kept < n && s->p[kept] >= s->params.min_p)
        kept++;
    return kept;
}

/* What is left of the candidates. */
static int filter(tg_sampler *s, int n)
{
    if (n > 1 && is_typical(&s->params))
        n = cut_typical(s, n);
    if (n > 1 && s->params.top_p < 1.0f)
        n = cut_top_p(s, n);
    if (n > 1 && s->params.min_p > 0.0f)
        n = cut_min_p(s, n);
    return n;
}

/* One of n candidates; draw: 64 random bits. */
static int32_t pick(tg_sampler *s, int n, uint64_t draw)
{
    if (n == 1)
        return s->c[0].id;
    float sum = weigh(s, n, 1.0f / s->params.temp);
    double at = (double)(draw >> 11) * 0x1p-53 * (double)sum, seen = 0.0;
    for (int i = 0; i < n - 1; i++) {
        seen += (double)s->p[i];
        if (at < seen)
            return s->c[i].id;
    }
    return s->c[n - 1].id;
}

int32_t tg_sampler_draw(tg_sampler *s, const float *logits, int n_vocab)
{
    int n = n_vocab < s->n_vocab ? n_vocab : s->n_vocab;
    uint64_t draw = tg_rng_next(&s->rng); /* one a token, whether it is needed or not */
    n = choose(s, logits, n, s->params.temp < TEMP_LEAST ? 1 : s->params.top_k);
    if (n == 0)
        return 0; /* all are banned: nothing to choose from */
    int32_t id = pick(s, filter(s, n), draw);
    tg_sampler_accept(s, id);
    return id;
}
