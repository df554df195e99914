/* body_softmax.c - softmax over a row, and the largest of a row; compiled once per ISA level.
 *
 * Where a row is looked at twice, that is done by blocks, which stay in the L1 cache in between. */
#include "kernel/softmax.h"
#include "kernel/vec.h"

enum {
    WIDE = 4, /* vectors in flight */
    STEP = WIDE * VLEN,
    BLOCK = 1024, /* values */
};

#define FOR_EACH_BLOCK(at, n) for (size_t at = 0; at < (n); at += BLOCK)

VEC size_t block_size(size_t at, size_t n)
{
    return n - at < BLOCK ? n - at : BLOCK;
}

/* ---- loops over a row ---------------------------------------------------------------------- */

/* 16 values; past the end -inf, which is no maximum and weighs nothing. */
VEC vf load(const float *x, size_t i, size_t n)
{
    if (n - i >= VLEN)
        return vf_load(x + i);
    return vf_range(vf_load_n(x + i, (int)(n - i)), vf_set1(-INFINITY), 0, (int)(n - i));
}

/* 16 values, none past the end; asks memory for those of the next block, which come while
 * exponentials keep the processor busy. Without this online softmax waits in one loop and computes
 * in the other, and loses to safe softmax. Beyond a row it does nothing. */
VEC vf stream(const float *x)
{
    __builtin_prefetch((const void *)((uintptr_t)x + BLOCK * sizeof *x));
    return vf_load(x);
}

/* m[lane of 64] = the largest of x[lane], x[lane + 64], ...; never NaN: x > m is false for it. */
VEC void lane_max(const float *x, size_t n, vf m[WIDE])
{
    for (int j = 0; j < WIDE; j++)
        m[j] = vf_set1(-INFINITY);
    size_t i = 0;
    for (; n - i >= STEP; i += STEP)
        for (int j = 0; j < WIDE; j++)
            m[j] = vf_max(stream(x + i + j * VLEN), m[j]);
    for (; i < n; i += VLEN)
        m[0] = vf_max(load(x, i, n), m[0]);
}

VEC float largest(vf m[WIDE])
{
    return vf_hmax(vf_max(vf_max(m[0], m[1]), vf_max(m[2], m[3])));
}

VEC float max_of(const float *x, size_t n)
{
    vf m[WIDE];
    lane_max(x, n, m);
    return largest(m);
}

/* e^(x - m). Without a maximum e^x, as vf_exp gives it up to 88 and from there on by e^(x - 1) e:
 * this overflows where float32 does, as the textbook's exponential would. */
VEC vf weight(vf x, vf m, const bool naive)
{
    if (!naive)
        return vf_weight(vf_sub(x, m));
    vf limit = vf_set1(88.0f), one = vf_set1(1.0f);
    vf low = vf_exp(vf_sub(x, vf_if_less(limit, x, one, vf_zero())));
    return vf_mul(low, vf_if_less(limit, x, vf_set1(2.718281828f), one));
}

VEC float sum_of(const float *x, size_t n, float max, const bool naive)
{
    vf m = vf_set1(max), l[WIDE];
    for (int j = 0; j < WIDE; j++)
        l[j] = vf_zero();
    size_t i = 0;
    for (; n - i >= STEP; i += STEP)
        for (int j = 0; j < WIDE; j++)
            l[j] = vf_add(l[j], weight(stream(x + i + j * VLEN), m, naive));
    for (; i < n; i += VLEN)
        l[0] = vf_add(l[0], weight(load(x, i, n), m, naive));
    return vf_sum(vf_add(vf_add(l[0], l[1]), vf_add(l[2], l[3])));
}

VEC void finish(const float *x, size_t n, float max, float sum, const bool naive, float *y)
{
    vf m = vf_set1(max), l = vf_set1(sum);
    size_t i = 0;
    for (; n - i >= STEP; i += STEP)
        for (int j = 0; j < WIDE; j++)
            vf_store(y + i + j * VLEN, vf_div(weight(stream(x + i + j * VLEN), m, naive), l));
    for (; i < n; i += VLEN)
        vf_store_n(y + i, vf_div(weight(load(x, i, n), m, naive), l),
                   n - i < VLEN ? (int)(n - i) : VLEN);
}

/* ---- softmax --------------------------------------------------------------------------------- */

/* What is known of the scores seen so far: m = max x, l = sum e^(x - m). */
typedef struct norm {
    float m;
    double l;
} norm;

static const norm nothing = {-INFINITY, 0.0};

/* -inf - -inf is never taken: before a score above -inf every weight is 0. */
VEC float shift_of(float m)
{
    return m == -INFINITY ? 0.0f : m;
}

VEC void raise(norm *s, float max)
{
    if (max > s->m) {
        s->l *= (double)weight1(s->m - max);
        s->m = max;
    }
}

/* The block x[n], whose maximum is max. */
VEC void absorb(norm *s, const float *x, size_t n, float max)
{
    raise(s, max);
    s->l += (double)sum_of(x, n, shift_of(s->m), false);
}

static void naive(const float *x, size_t n, float *y)
{
    double l = 0.0;
    FOR_EACH_BLOCK (at, n)
        l += (double)sum_of(x + at, block_size(at, n), 0.0f, true);
    finish(x, n, 0.0f, (float)l, true, y);
}

static norm safe_to(const float *x, size_t n, float *y)
{
    norm s = {max_of(x, n), 0.0};
    FOR_EACH_BLOCK (at, n)
        s.l += (double)sum_of(x + at, block_size(at, n), shift_of(s.m), false);
    finish(x, n, shift_of(s.m), (float)s.l, false, y);
    return s;
}

static void safe(const float *x, size_t n, float *y)
{
    safe_to(x, n, y);
}

static void online_scalar(const float *x, size_t n, float *y)
{
    norm s = nothing;
    for (size_t i = 0; i < n; i++) {
        float old = s.m;
        s.m = x[i] > old ? x[i] : old;
        s.l = s.l * (double)weight1(old - shift_of(s.m)) + (double)weight1(x[i] - shift_of(s.m));
    }
    for (size_t i = 0; i < n; i++)
        y[i] = weight1(x[i] - shift_of(s.m)) / (float)s.l;
}

static void online(const float *x, size_t n, float *y)
{
    norm s = nothing;
    FOR_EACH_BLOCK (at, n)
        absorb(&s, x + at, block_size(at, n), max_of(x + at, block_size(at, n)));
    finish(x, n, shift_of(s.m), (float)s.l, false, y);
}

/* ---- the largest ----------------------------------------------------------------------------- */

/* ln x for x >= 1 (and 0, NaN), within 3 units of float64's last place, in plain operations that
 * give the same bits everywhere. x = 2^e f with sqrt 1/2 <= f < sqrt 2; ln f = 2 artanh s with
 * s = (f - 1) / (f + 1), as a series. */
static double log1(double x)
{
    if (!(x > 0.0))
        return x == 0.0 ? -(double)INFINITY : (double)NAN;
    int e;
    double f = frexp(x, &e);
    if (f < 0.70710678118654752440) {
        f *= 2.0;
        e--;
    }
    double s = (f - 1.0) / (f + 1.0), s2 = s * s, series = 0.0;
    for (int k = 19; k >= 1; k -= 2) /* s^20 / 21 < 2^-55 */
        series = series * s2 + 1.0 / k;
    return 2.0 * s * series + e * 0.69314718055994530942;
}

static float lse_of(norm s)
{
    return (float)((double)s.m + log1(s.l));
}

/* The k best so far, the worst of them first: a sorted list, or a heap. Ids are offered in
 * ascending order. A free place has no id and is NaN, or just below what fills it for certain. */
typedef struct best {
    tg_top *list;
    int k;
    bool heap;
    float max; /* of what was offered, and of a sample: nothing was larger */
} best;

enum {
    SORTED_MAX = 256, /* longer lists are heaps; sorted, a place is found by one wrong branch */
    SAMPLE = 4096,    /* values */
};

/* k values of the row are not below this: the k-th largest of 64 maxima, or -inf. A list is at
 * first open to everything, and most insertions happen then; from here on they are few. max: the largest of them. */
static float floor_of(const float *x, size_t n, int k, float *max)
{
    vf m[WIDE];
    float kth = -INFINITY;
    lane_max(x, n < SAMPLE ? n : SAMPLE, m);
    *max = largest(m);
    for (int i = 0; i < k && k <= STEP; i++) {
        kth = largest(m);
        for (int j = 0; j < WIDE; j++)
            m[j] = vf_if_less(m[j], vf_set1(kth), m[j], vf_set1(-INFINITY));
    }
    return kth;
}

static best best_of(tg_top *top, int k, const float *x, size_t n, bool heap)
{
    k = k < 1 ? 0 : (size_t)k < n ? k : (int)n;
    float max = -INFINITY, floor = heap ? -INFINITY : floor_of(x, n, k, &max), place = NAN;
    if (isfinite(floor))
        place = floor - fabsf(floor) * 1e-6f - 1e-30f; /* lower, and normal */
    for (int i = 0; i < k; i++)
        top[i] = (tg_top){place, -1};
    return (best){top, k, heap, max};
}

VEC bool before(tg_top a, tg_top b)
{
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id) || isnan(b.logit);
}

VEC void insert_sorted(tg_top *list, int k, tg_top t)
{
    int i = 0;
    for (; i + 1 < k && !(t.logit <= list[i + 1].logit); i++)
        list[i] = list[i + 1];
    list[i] = t;
}

/* Puts t where the root is, and restores the order below it. */
VEC void replace_root(tg_top *heap, int k, tg_top t)
{
    int i = 0;
    for (int child; (child = 2 * i + 1) < k; i = child) {
        if (child + 1 < k && before(heap[child], heap[child + 1]))
            child++;
        if (!before(t, heap[child]))
            break;
        heap[i] = heap[child];
    }
    heap[i] = t;
}

/* What is not above it cannot come in; NaN: everything may. */
VEC float bar_of(const best *b)
{
    return b->list[0].logit;
}

VEC void offer(best *b, float x, size_t id)
{
    if (isnan(x) || x <= bar_of(b))
        return;
    tg_top t = {x, (int32_t)id};
    if (b->heap)
        replace_root(b->list, b->k, t);
    else
        insert_sorted(b->list, b->k, t);
    b->max = x > b->max ? x : b->max;
}

/* The lanes set, of 64 values from x[at] on. */
VEC void offer_lanes(best *b, const float *x, size_t at, uint64_t lanes)
{
    for (; lanes; lanes &= lanes - 1) {
        size_t id = at + (size_t)__builtin_ctzll(lanes);
        offer(b, x[id], id);
    }
}

/* Sums of e^(x - *shift) become those of e^(x - max), where that is more. Returns what to take from x then. */
VEC vf raise_sums(vf l[WIDE], float *shift, float max)
{
    if (max > *shift) {
        vf by = vf_set1(weight1(*shift - max));
        for (int j = 0; j < WIDE; j++)
            l[j] = vf_mul(l[j], by);
        *shift = max;
    }
    return vf_set1(shift_of(*shift));
}

/* x[at .. end). Most of a long row is below the bar: the largest of 64 tells. If summed, returns the sum of
 * e^(x - *shift), which is raised first wherever the maximum rises: no weight is above 1, and the largest has exactly 1. */
VEC float offer_block(best *b, const float *x, size_t at, size_t end, const bool summed, float *shift)
{
    vf l[WIDE];
    for (int j = 0; j < WIDE; j++)
        l[j] = vf_zero();
    vf minus = summed ? raise_sums(l, shift, *shift) : vf_zero();
    for (; end - at >= STEP; at += STEP) {
        vf v[WIDE], bar = vf_set1(bar_of(b));
        for (int j = 0; j < WIDE; j++)
            v[j] = stream(x + at + j * VLEN);
        vf max = v[0]; /* in this order NaN hides nothing: it is passed over, or stays */
        for (int j = 1; j < WIDE; j++)
            max = vf_max(v[j], max);
        if (vf_not_le(max, bar)) {
            uint64_t lanes = 0;
            for (int j = 0; j < WIDE; j++)
                lanes |= (uint64_t)vf_not_le(v[j], bar) << j * VLEN;
            offer_lanes(b, x, at, lanes);
            if (summed)
                minus = raise_sums(l, shift, b->max);
        }
        for (int j = 0; j < WIDE && summed; j++)
            l[j] = vf_add(l[j], vf_weight(vf_sub(v[j], minus)));
    }
    for (size_t i = at; i < end; i++)
        offer(b, x[i], i);
    if (!summed)
        return 0.0f;
    minus = raise_sums(l, shift, b->max);
    for (; at < end; at += VLEN)
        l[0] = vf_add(l[0], vf_weight(vf_sub(load(x, at, end), minus)));
    return vf_sum(vf_add(vf_add(l[0], l[1]), vf_add(l[2], l[3])));
}

/* The best first; returns how many are real. */
static int sort(best *b)
{
    for (int n = b->k - 1; b->heap && n > 0; n--) {
        tg_top worst = b->list[0];
        replace_root(b->list, n, b->list[n]);
        b->list[n] = worst;
    }
    for (int i = 0, j = b->k - 1; !b->heap && i < j; i++, j--) {
        tg_top worst = b->list[i];
        b->list[i] = b->list[j];
        b->list[j] = worst;
    }
    int n = b->k;
    while (n > 0 && b->list[n - 1].id < 0)
        n--;
    return n;
}

static int fused(const float *x, size_t n, int k, tg_top *top, float *lse, float *probs)
{
    (void)probs;
    tg_top first;
    best b = k > 0 ? best_of(top, k, x, n, k > SORTED_MAX) : best_of(&first, 1, x, n, false);
    norm s = nothing;
    float shift = b.max;
    FOR_EACH_BLOCK (at, n) {
        const size_t end = at + block_size(at, n);
        if (!lse) {
            offer_block(&b, x, at, end, false, NULL);
            continue;
        }
        const float sum = offer_block(&b, x, at, end, true, &shift);
        raise(&s, shift);
        s.l += (double)sum;
    }
    if (lse)
        *lse = lse_of(s);
    return k > 0 ? sort(&b) : 0;
}

static int ranked(const float *x, tg_top *top, int n) /* probabilities become logits */
{
    for (int i = 0; i < n; i++)
        top[i].logit = x[top[i].id];
    return n;
}

static int after(const float *x, size_t n, int k, tg_top *top, float *lse, float *probs)
{
    norm s = safe_to(x, n, probs);
    if (lse)
        *lse = lse_of(s);
    return ranked(x, top, fused(probs, n, k, top, NULL, NULL));
}

static int after_by_heap(const float *x, size_t n, int k, tg_top *top, float *lse, float *probs)
{
    norm s = safe_to(x, n, probs);
    if (lse)
        *lse = lse_of(s);
    best b = best_of(top, k, probs, n, true);
    for (size_t i = 0; b.k && i < n; i++)
        offer(&b, probs[i], i);
    return ranked(x, top, sort(&b));
}

extern const tg_softmax_kernels TG_ISA_SYMBOL(tg_softmax_kernels);
const tg_softmax_kernels TG_ISA_SYMBOL(tg_softmax_kernels) = {
    .softmax = {[TG_SOFTMAX_NAIVE] = {"naive", 2, 3, naive},
                [TG_SOFTMAX_SAFE] = {"safe", 3, 4, safe},
                [TG_SOFTMAX_ONLINE_SCALAR] = {"online_scalar", 2, 3, online_scalar},
                [TG_SOFTMAX_ONLINE] = {"online", 2, 3, online}},
    .top_k = {[TG_TOP_K_FUSED] = {"top_k", 1, fused},
              [TG_TOP_K_AFTER] = {"top_k_after_softmax", 5, after},
              [TG_TOP_K_AFTER_BY_HEAP] = {"top_k_after_softmax_heap", 5, after_by_heap}},
};
