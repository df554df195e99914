/* sampler.c - from logits to one id: top-k, top-p, min-p, temperature, one draw.
 *
 * Candidates are ordered by logit, the largest first, the lowest id first among equals; every filter
 * keeps a prefix of that order and at least one candidate. */
#include "sample/sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "kernel/vector.h"

struct tg_sampler {
    tg_sampling params;
    tg_rng rng;
    int n_vocab;
    tg_top *c;   /* [n_vocab] candidates */
    float *p;    /* [n_vocab] their weights; before that, the row without banned ids */
    float *bans; /* [n_vocab] NaN for an id that is never drawn, else 0 */
    bool banned; /* is there one? */
};

/* ---- random numbers ------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t tg_rng_next(tg_rng *rng)
{
    rng->state += 0x9e3779b97f4a7c15u;
    return mix(rng->state);
}

tg_rng tg_rng_make(uint64_t seed, uint64_t stream)
{
    return (tg_rng){stream ? mix(seed + mix(stream)) : seed};
}

/* ---- creation -------------------------------------------------------------------------------------- */

static tg_status check(const tg_sampling *p, tg_error *err)
{
    if (!(p->temp >= 0.0f && isfinite(p->temp)))
        return tg_fail(err, TG_E_USAGE, NULL, "temperature (found %g, allowed: 0 or above)", (double)p->temp);
    if (p->top_k < 0)
        return tg_fail(err, TG_E_USAGE, NULL, "top-k (found %d, allowed: 0 or above)", p->top_k);
    if (!(p->top_p >= 0.0f && p->top_p <= 1.0f))
        return tg_fail(err, TG_E_USAGE, NULL, "top-p (found %g, allowed 0 to 1)", (double)p->top_p);
    if (!(p->min_p >= 0.0f && p->min_p <= 1.0f))
        return tg_fail(err, TG_E_USAGE, NULL, "min-p (found %g, allowed 0 to 1)", (double)p->min_p);
    return TG_OK;
}

tg_status tg_sampler_make(tg_sampler **sampler, int n_vocab, const tg_sampling *params, tg_error *err)
{
    *sampler = NULL;
    tg_status status = check(params, err);
    if (status != TG_OK)
        return status;
    tg_sampler *s = tg_alloc(1, sizeof *s, "a sampler", err);
    if (!s)
        return TG_E_RESOURCE;
    s->params = *params;
    s->rng = tg_rng_make(params->seed, params->stream);
    s->n_vocab = n_vocab;
    s->c = tg_alloc((size_t)n_vocab, sizeof *s->c, "candidates", err);
    s->p = tg_alloc((size_t)n_vocab, sizeof *s->p, "probabilities", err);
    s->bans = tg_alloc((size_t)n_vocab, sizeof *s->bans, "banned ids", err);
    if (!s->c || !s->p || !s->bans) {
        tg_sampler_free(s);
        return TG_E_RESOURCE;
    }
    *sampler = s;
    return TG_OK;
}

void tg_sampler_free(tg_sampler *s)
{
    if (!s)
        return;
    free(s->c);
    free(s->p);
    free(s->bans);
    free(s);
}

void tg_sampler_ban(tg_sampler *s, int32_t id)
{
    if (id < 0 || id >= s->n_vocab)
        return;
    s->bans[id] = NAN;
    s->banned = true;
}

/* ---- choosing -------------------------------------------------------------------------------------- */

static int by_order(const void *a, const void *b)
{
    const tg_top *c = a, *d = b;
    return c->logit > d->logit || (c->logit == d->logit && c->id < d->id) ? -1 : 1;
}

/* The row with NaN at banned ids, which is in no order and never among the largest. */
static const float *without_banned(tg_sampler *s, const float *logits, int n)
{
    if (!s->banned)
        return logits;
    memcpy(s->p, logits, (size_t)n * sizeof *s->p);
    tg_vector()->add(1.0f, s->bans, n, s->p);
    return s->p;
}

static int choose_all(tg_sampler *s, const float *row, int n)
{
    int kept = 0;
    for (int32_t id = 0; id < n; id++)
        if (!isnan(row[id]))
            s->c[kept++] = (tg_top){row[id], id};
    qsort(s->c, (size_t)kept, sizeof *s->c, by_order);
    return kept;
}

/* The first k of all candidates in order; k = 0: all. Returns how many. */
static int choose(tg_sampler *s, const float *logits, int n, int k)
{
    const float *row = without_banned(s, logits, n);
    return k > 0 && k < n ? tg_top_k(row, n, k, s->c, NULL) : choose_all(s, row, n);
}

/* p[i] = e^((logit i - logit 0) * scale); returns their sum. */
static float weigh(tg_sampler *s, int n, float scale)
{
    for (int i = 0; i < n; i++)
        s->p[i] = s->c[i].logit;
    return tg_vector()->exps(s->p, s->c[0].logit, scale, n, s->p);
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

int32_t tg_sampler_draw(tg_sampler *s, const float *logits, int n_vocab)
{
    int n = n_vocab < s->n_vocab ? n_vocab : s->n_vocab;
    n = choose(s, logits, n, s->params.temp == 0.0f ? 1 : s->params.top_k);
    if (n == 0)
        return 0; /* all are banned: nothing to choose from */
    uint64_t draw = tg_rng_next(&s->rng); /* one a token, whether it is needed or not */
    if (n > 1 && s->params.top_p < 1.0f)
        n = cut_top_p(s, n);
    if (n > 1 && s->params.min_p > 0.0f)
        n = cut_min_p(s, n);
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
