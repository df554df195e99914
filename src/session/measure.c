/* measure.c - plain loops over memory and registers, timed. */
#include "session/measure.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/limit.h"
#include "base/memory.h"
#include "kernel/vector.h"

/* ---- timing ------------------------------------------------------------------------------------- */

typedef struct timed {
    void (*work)(const tg_worker *w, void *arg); /* by all threads together */
    void *arg;
    double seconds;
} timed;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Waking the team is no part of it: the first barrier waits until all are there, and the second holds the
 * others back until the clock runs. */
static void time_work(const tg_worker *w, void *arg)
{
    timed *t = arg;
    tg_barrier(w);
    double begun = now();
    tg_barrier(w);
    t->work(w, t->arg);
    tg_barrier(w);
    if (w->rank == 0)
        t->seconds = now() - begun;
}

static double seconds_of(tg_team *team, void (*work)(const tg_worker *, void *), void *arg)
{
    timed t = {.work = work, .arg = arg};
    tg_team_run(team, time_work, &t);
    return fmax(t.seconds, 1e-9); /* less than the clock can tell */
}

/* The best of n_runs: whatever disturbs one makes it slower. */
static double best_of(int n_runs, tg_team *team, void (*work)(const tg_worker *, void *), void *arg)
{
    double best = seconds_of(team, work, arg);
    for (int i = 1; i < n_runs; i++) {
        double seconds = seconds_of(team, work, arg);
        best = seconds < best ? seconds : best;
    }
    return best;
}

/* ---- memory as one stream ----------------------------------------------------------------------- */

/* Bytes that a thread takes at a time. Of 64 KiB to 4 MiB the middle ones read fastest; a fixed half for each
 * of two threads is slower wherever one of them is disturbed. */
enum { UNIT = 1 << 18 };

typedef struct span {
    const uint8_t *at;
    size_t n_bytes;
    size_t first_unit; /* units of the spans before it */
} span;

typedef struct spans {
    span *item;
    size_t n, capacity, n_units;
    atomic_uint sum; /* of all that was read, so that no compiler leaves the reading out */
    tg_error *err;
    bool failed;
} spans;

static void add(spans *s, const void *at, size_t n_bytes)
{
    const uint8_t *p = at;
    span *last = s->n > 0 ? &s->item[s->n - 1] : NULL;
    if (!p || n_bytes == 0 || s->failed)
        return;
    if (last && last->at + last->n_bytes == p) {
        last->n_bytes += n_bytes;
        return;
    }
    void *items = s->item;
    s->failed = !tg_grow(&items, &s->capacity, s->n + 1, sizeof *s->item, "ranges to read", s->err);
    s->item = items;
    if (!s->failed)
        s->item[s->n++] = (span){.at = p, .n_bytes = n_bytes};
}

static int by_address(const void *a, const void *b)
{
    const span *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

/* In the order of addresses, neighbours joined, cut into units. */
static void settle(spans *s)
{
    size_t n = s->n;
    if (n > 1)
        qsort(s->item, n, sizeof *s->item, by_address);
    s->n = 0;
    for (size_t i = 0; i < n; i++)
        add(s, s->item[i].at, s->item[i].n_bytes); /* never more than were there */
    s->n_units = 0;
    for (size_t i = 0; i < s->n; i++) {
        s->item[i].first_unit = s->n_units;
        s->n_units += (s->item[i].n_bytes + UNIT - 1) / UNIT;
    }
}

/* read_all takes whole steps of 256 bytes and likes them aligned: what is before and behind goes through
 * a buffer. */
static unsigned read_range(const uint8_t *p, size_t n)
{
    enum { STEP = 256, LINE = 64 };
    uint8_t edge[2 * STEP] = {0};
    size_t head = -(uintptr_t)p % LINE;
    head = head < n ? head : n;
    size_t tail = (n - head) % STEP;
    memcpy(edge, p, head);
    memcpy(edge + STEP, p + n - tail, tail);
    return tg_vector()->read_all(p + head, n - head - tail) ^ tg_vector()->read_all(edge, sizeof edge);
}

static void read_spans(const tg_worker *w, void *arg)
{
    spans *s = arg;
    const span *at = s->item;
    unsigned sum = 0;
    for (size_t unit; (unit = tg_take(w, s->n_units)) < s->n_units;) {
        at = unit < at->first_unit ? s->item : at; /* what another thread left lies behind us */
        while (at + 1 < s->item + s->n && unit >= at[1].first_unit)
            at++;
        size_t from = (unit - at->first_unit) * UNIT, left = at->n_bytes - from;
        sum ^= read_range(at->at + from, left < UNIT ? left : UNIT);
    }
    atomic_fetch_xor(&s->sum, sum);
}

/* ---- what a token reads ------------------------------------------------------------------------- */

static size_t add_floats(spans *s, const float *v, int n)
{
    size_t n_bytes = v ? (size_t)n * sizeof *v : 0;
    add(s, v, n_bytes);
    return n_bytes;
}

static size_t add_matrix(spans *s, const tg_matrix *m)
{
    size_t n_bytes = m->data ? (size_t)m->n_out * m->row_bytes : 0;
    add(s, m->data, n_bytes);
    return n_bytes + add_floats(s, m->bias, m->n_out);
}

static size_t add_norm(spans *s, const tg_norm *norm, int n)
{
    return add_floats(s, norm->w, n) + add_floats(s, norm->b, n);
}

/* Of a mixture the first experts stand for those that a token will use. */
static size_t add_weights(spans *s, const tg_weights *w)
{
    int n = w->config.n_embd;
    size_t n_bytes = add_norm(s, &w->out_norm, n) + add_matrix(s, &w->output);
    for (int i = 0; i < w->config.n_layer; i++) {
        tg_layer *l = &w->layer[i];
        n_bytes += add_norm(s, &l->attn_norm, n) + add_norm(s, &l->ffn_norm, n);
        n_bytes += add_norm(s, &l->attn_post_norm, n) + add_norm(s, &l->ffn_post_norm, n);
        for (int k = 0; k < TG_LAYER_MATRICES; k++)
            n_bytes += add_matrix(s, tg_layer_matrix(l, k));
        for (int e = 0; l->expert && e < w->config.n_expert_used; e++)
            n_bytes += add_matrix(s, &l->expert[e].gate) + add_matrix(s, &l->expert[e].up) +
                       add_matrix(s, &l->expert[e].down);
    }
    return n_bytes;
}

/* Does a row at `pos` attend to one of the positions first .. first + n - 1 before it? */
static bool reaches(int window, int keep, int pos, int first, int n)
{
    return window == 0 || first + n > pos - window + 1 || first < keep;
}

/* Attention reads keys in groups of 16, and their values with them. Of a block that is not full as many bytes count,
 * though groups of floats lie side by side. */
static size_t add_kv(spans *s, const tg_config *c, const tg_kv *kv, int seq, tg_reach reach)
{
    const tg_kv_view *v = &kv->layers.first;
    size_t k_group = tg_kv_k_group_bytes(v->type_k, v->head_dim), n_bytes = 0, block_bytes;
    size_t v_group = tg_kv_v_block_bytes(v->type_v, v->head_dim) / (TG_KV_BLOCK / TG_KV_GROUP);
    int length = kv->length[seq];
    for (int of_values = 0; of_values < 2; of_values++)
        for (int h = 0; h < kv->n_layer * v->n_head_kv; h++)
            for (int pos = 0; pos < length; pos += TG_KV_GROUP) {
                int layer = h / v->n_head_kv, window = tg_window_of(c, layer, reach.window);
                size_t group = of_values ? v_group : k_group;
                if (!reaches(window, reach.keep, length, pos, TG_KV_GROUP))
                    continue;
                const uint8_t *block = tg_kv_block(kv, of_values, layer, h % v->n_head_kv,
                                                   kv->seq[seq].block[pos / TG_KV_BLOCK], &block_bytes);
                add(s, block + (size_t)(pos % TG_KV_BLOCK / TG_KV_GROUP) * group, group);
                n_bytes += group;
            }
    return n_bytes;
}

tg_status tg_measure_read(tg_team *team, const tg_weights *w, const tg_kv *kv, int seq, tg_reach reach,
                          tg_read *read, tg_error *err)
{
    spans s = {.err = err};
    *read = (tg_read){.weight_bytes = add_weights(&s, w), .kv_bytes = add_kv(&s, &w->config, kv, seq, reach)};
    settle(&s);
    if (!s.failed)
        read->seconds = seconds_of(team, read_spans, &s);
    free(s.item);
    return s.failed ? TG_E_RESOURCE : TG_OK;
}

/* ---- what tokens take --------------------------------------------------------------------------- */

static void add_product(tg_work *work, const tg_matrix *m, tg_matmul_mode mode, uint64_t n)
{
    uint64_t ops = m->data ? 2 * n * (uint64_t)m->n_out * (uint64_t)m->n_in : 0;
    if (tg_matmul_wants_q8(m, mode))
        work->int8_ops += ops;
    else
        work->f32_flops += ops;
}

/* Keys that a row at `pos` attends to, itself included. */
static uint64_t n_keys(int window, int keep, int pos)
{
    int before = window == 0 || window > pos ? pos + 1 : window;
    int kept = pos + 1 - before < keep ? pos + 1 - before : keep;
    return (uint64_t)(before + kept);
}

void tg_measure_work(const tg_weights *w, tg_matmul_mode mode, tg_reach reach, int n_past, int n,
                     tg_work *work)
{
    const tg_config *c = &w->config;
    uint64_t keys = 0;
    *work = (tg_work){0};
    for (int i = 0; i < c->n_layer; i++) {
        tg_layer *l = &w->layer[i];
        for (int k = 0; k < TG_LAYER_MATRICES; k++)
            add_product(work, tg_layer_matrix(l, k), mode, (uint64_t)n);
        const uint64_t n_met = l->expert ? (uint64_t)n * (uint64_t)c->n_expert_used : 0;
        for (int k = 0; l->expert && k < 3; k++)
            add_product(work, k == 0 ? &l->expert->gate : k == 1 ? &l->expert->up : &l->expert->down, mode, n_met);
        for (int p = 0; p < n; p++)
            keys += n_keys(tg_window_of(c, i, reach.window), reach.keep, n_past + p);
    }
    add_product(work, &w->output, mode, 1);
    /* a score and a share of a value, a multiply-add each, for every dimension */
    work->f32_flops += 4 * keys * (uint64_t)c->n_head * (uint64_t)c->head_dim;
}

/* ---- the machine -------------------------------------------------------------------------------- */

enum { READS = 7, ROUNDS = 15 }; /* of each loop */

typedef struct rounds {
    size_t (*run)(size_t n);
    size_t n;
    size_t n_ops; /* of all threads, that there are */
} rounds;

static void run_rounds(const tg_worker *w, void *arg)
{
    rounds *r = arg;
    size_t n_ops = r->run(r->n);
    if (w->rank == 0)
        r->n_ops = n_ops * (size_t)w->size;
}

/* Rounds that take one thread so long. By itself: a team that is disturbed would seem to need few. */
static size_t rounds_for(double seconds, size_t (*run)(size_t n))
{
    enum { TRIES = 3 };
    for (size_t n = 1000;; n *= 2) {
        double best = seconds;
        for (int i = 0; i < TRIES; i++) {
            double begun = now();
            run(n);
            double took = now() - begun;
            best = took < best ? took : best;
        }
        if (best >= seconds)
            return n;
    }
}

/* Operations a second by all threads. */
static double best_rate(tg_team *team, size_t (*run)(size_t n))
{
    rounds r = {.run = run, .n = rounds_for(2e-3, run)};
    double seconds = best_of(ROUNDS, team, run_rounds, &r);
    return (double)r.n_ops / seconds;
}

static void touch(const tg_worker *w, void *arg)
{
    const spans *s = arg;
    enum { PAGE = 4096 };
    for (size_t unit; (unit = tg_take(w, s->n_units)) < s->n_units;)
        for (size_t i = 0; i < UNIT; i += PAGE)
            ((volatile uint8_t *)(uintptr_t)s->item->at)[unit * UNIT + i] = 1;
}

/* Well past any cache, and at most a quarter of the memory that is free and of what the control groups allow. */
static size_t buffer_bytes(void)
{
    const uint64_t least = (uint64_t)64 << 20, most = (uint64_t)512 << 20, group = tg_limit_of_groups("");
    const long pages = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    const uint64_t left = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    const uint64_t n = (group < left ? group : left) / 4;
    return (size_t)(n < least ? least : n > most ? most : n / UNIT * UNIT);
}

static tg_status read_rate(tg_team *team, double *bytes_per_s, tg_error *err)
{
    static const char purpose[] = "a buffer to read";
    const size_t n_bytes = buffer_bytes();
    const tg_status status = tg_limit_check(n_bytes, purpose, err);
    if (status != TG_OK)
        return status;
    uint8_t *buffer = tg_reserve(n_bytes, purpose, err);
    spans s = {.err = err};
    if (buffer)
        add(&s, buffer, n_bytes);
    if (!buffer || s.failed) {
        tg_unreserve(buffer, n_bytes);
        return TG_E_RESOURCE;
    }
    settle(&s);
    tg_team_run(team, touch, &s);
    *bytes_per_s = (double)n_bytes / best_of(READS, team, read_spans, &s);
    free(s.item);
    tg_unreserve(buffer, n_bytes);
    return TG_OK;
}

tg_status tg_machine_measure(int n_threads, tg_machine *machine, tg_error *err)
{
    tg_team *team;
    *machine = (tg_machine){.n_threads = n_threads ? n_threads : tg_team_default_size()};
    if (n_threads < 0 || n_threads > TG_MAX_THREADS)
        return tg_fail(err, TG_E_USAGE, NULL, "threads (found %d, allowed 0 to %d)", n_threads,
                       TG_MAX_THREADS);
    tg_status status = tg_team_create(&team, machine->n_threads, 0, err);
    machine->n_threads = status == TG_OK ? tg_team_size(team) : 0;
    if (status == TG_OK)
        status = read_rate(team, &machine->read_bytes_per_s, err);
    if (status == TG_OK) {
        machine->f32_flops = best_rate(team, tg_vector()->f32_rounds);
        machine->int8_ops = best_rate(team, tg_vector()->int8_rounds);
    }
    tg_team_free(team);
    return status;
}
