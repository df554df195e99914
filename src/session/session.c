/* session.c - sequences over one cache, and evaluation of batches in parts of n_batch rows. */
#include "session/state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/limit.h"
#include "kernel/blas.h"
#include "kernel/isa.h"
#include "session/measure.h"

/* ---- creation -------------------------------------------------------------------------------------- */

tg_type tg_session_kv_type(tg_kv_type t)
{
    static const tg_type types[] = {
        [TG_KV_F32] = TG_F32, [TG_KV_F16] = TG_F16, [TG_KV_BF16] = TG_BF16, [TG_KV_Q8_0] = TG_Q8_0,
        [TG_KV_Q4] = TG_Q4};
    return types[t];
}

static tg_session_params with_defaults(const tg_weights *w, const tg_session_params *given)
{
    tg_session_params p = *given;
    if (p.n_threads == 0)
        p.n_threads = tg_team_default_size();
    if (p.n_ctx == 0)
        p.n_ctx = w->config.n_ctx_train;
    if (p.n_batch == 0)
        p.n_batch = 512;
    if (p.n_seq_max == 0)
        p.n_seq_max = 1;
    if (!p.attention)
        p.attention = tg_attn_strategies[0].name;
    return p;
}

/* Buffers of the forward, then the session's own; base NULL only asks. */
static size_t lay_out(tg_session *s, void *base)
{
    size_t at = tg_forward_lay_out(&s->forward, s->w, s->params.n_batch, base);
    size_t n = (size_t)s->params.n_batch;
    TG_PLACE(s->forward.attn_row, base, at, n);
    TG_PLACE(s->want, base, at, n);
    TG_PLACE(s->before, base, at, (size_t)s->params.n_seq_max);
    TG_PLACE(s->next_pos, base, at, (size_t)s->params.n_seq_max);
    return at;
}

static tg_status check_params(const tg_session_params *p, tg_error *err)
{
    const struct {
        const char *name;
        int value, min, max;
    } limit[] = {{"threads", p->n_threads, 1, TG_MAX_THREADS},
                 {"context", p->n_ctx, 1, TG_MAX_CTX},
                 {"context of a sequence", p->n_ctx_seq, 0, p->n_ctx},
                 {"batch", p->n_batch, 1, 1 << 16},
                 {"sequences", p->n_seq_max, 1, 1 << 12},
                 {"window", p->window, 0, TG_MAX_CTX},
                 {"positions kept", p->keep, 0, TG_MAX_CTX},
                 {"type of the cached keys", (int)p->type_k, TG_KV_F32, TG_KV_Q4},
                 {"type of the cached values", (int)p->type_v, TG_KV_F32, TG_KV_Q4}};
    for (size_t i = 0; i < sizeof limit / sizeof *limit; i++)
        if (limit[i].value < limit[i].min || limit[i].value > limit[i].max)
            return tg_fail(err, TG_E_USAGE, NULL, "%s (found %d, allowed %d to %d)", limit[i].name,
                           limit[i].value, limit[i].min, limit[i].max);
    return TG_OK;
}

/* Can the attention algorithm do what the session and the model ask for? */
static tg_status check_attention(const tg_session_params *p, const tg_weights *w, tg_error *err)
{
    const tg_config *c = &w->config;
    const tg_attn_strategy *a = tg_attn_strategy_by_name(p->attention);
    if (!a)
        return tg_fail(err, TG_E_USAGE, NULL, "no such attention algorithm");
    if (p->keep > 0 && p->window == 0 && c->window == 0)
        return tg_fail(err, TG_E_USAGE, NULL, "positions are kept under a window only, and there is none");
    const char *modifier = p->window > 0 || c->window > 0 ? "windows"
                           : c->soft_cap != 0.0f          ? "soft caps"
                           : w->layer[0].sink             ? "sinks"
                                                          : NULL;
    if (!a->modifiers && modifier)
        return tg_fail(err, TG_E_USAGE, NULL, "attention '%s' knows no %s (auto, split and bf16 do)", a->name,
                       modifier);
    if (a->dots && (p->type_k != TG_KV_BF16 || p->type_v != TG_KV_BF16))
        return tg_fail(err, TG_E_USAGE, NULL, "attention '%s' needs keys and values of bf16 in the cache", a->name);
    if (a->dots && !tg_isa_has_bf16())
        return tg_fail(err, TG_E_USAGE, NULL, "attention '%s' needs a processor with AVX512_BF16", a->name);
    return TG_OK;
}

static size_t worker_bytes(const tg_weights *w, const tg_session_params *p)
{
    return tg_forward_scratch_bytes(w, tg_attn_strategy_by_name(p->attention), p->n_batch, p->n_ctx);
}

/* Does any product that may have many rows take floats? A router has its own way. */
static bool any_float(const tg_weights *w, tg_matmul_mode mode)
{
    if (!tg_matmul_wants_q8(&w->output, mode))
        return true;
    for (int i = 0; i < w->config.n_layer; i++)
        for (int k = 0; k < TG_LAYER_MATRICES; k++) {
            const tg_matrix *m = tg_layer_matrix(&w->layer[i], k);
            if (m->data && m != &w->layer[i].router && !tg_matmul_wants_q8(m, mode))
                return true;
        }
    for (int i = 0; i < w->config.n_layer && w->layer[i].expert; i++)
        if (!tg_matmul_wants_q8(&w->layer[i].expert[0].up, mode) ||
            !tg_matmul_wants_q8(&w->layer[i].expert[0].down, mode))
            return true;
    return false;
}

/* Is there room for the cache when full, scratch memory, the threads and OpenBLAS? That one asks for a buffer a thread
 * until it gets one, and without room for ever: its part is held until all the rest has found its own. */
static tg_status find_room(const tg_session *s, void **blas, size_t *blas_bytes, tg_error *err)
{
    /* For a moment beside the cache, until it begins with a huge page; for each token, by who draws from them. */
    enum { HUGE_PAGE = 2 << 20, BYTES_TO_DRAW = 48 };
    const tg_session_params *p = &s->params;
    uint64_t kv_bytes, scratch_bytes;
    tg_session_needs(s->w, p, &kv_bytes, &scratch_bytes);
    tg_status status = tg_limit_check(kv_bytes + scratch_bytes, "the cache when full and scratch memory", err);
    if (status != TG_OK)
        return status;
    *blas_bytes = s->uses_blas ? tg_blas_bytes(p->n_threads) : 0;
    const size_t beside = HUGE_PAGE + (size_t)s->w->config.n_vocab * BYTES_TO_DRAW;
    const size_t all = *blas_bytes + kv_bytes + scratch_bytes + tg_team_bytes(p->n_threads, 0) + beside;
    char *room = tg_reserve(all, s->uses_blas ? "OpenBLAS and its buffers, the cache, threads and scratch memory"
                                              : "the cache, threads and scratch memory", err);
    if (!room)
        return TG_E_RESOURCE;
    tg_unreserve(room + *blas_bytes, all - *blas_bytes);
    *blas = *blas_bytes ? room : NULL;
    return TG_OK;
}

/* The same with as many threads as there is room for. */
static tg_status find_threads(tg_session *s, void **blas, size_t *blas_bytes, tg_error *err)
{
    tg_status status;
    s->n_threads_asked = s->params.n_threads;
    s->uses_blas = !s->params.no_blas && any_float(s->w, (tg_matmul_mode){.precise = s->params.precise});
    while ((status = find_room(s, blas, blas_bytes, err)) == TG_E_RESOURCE && s->params.n_threads > 1)
        s->params.n_threads--;
    return status;
}

static tg_status give_room_to_blas(const tg_session *s, void **room, size_t n_bytes, tg_error *err)
{
    tg_unreserve(*room, n_bytes);
    *room = NULL;
    tg_status status = tg_blas_load(err);
    if (status == TG_OK)
        tg_blas_warm_up(tg_team_size(s->team));
    return status;
}

tg_status tg_session_make(tg_session **session, const tg_weights *w, const tg_session_params *params,
                          tg_error *err)
{
    void *room = NULL;
    size_t room_bytes = 0;
    *session = NULL;
    tg_session *s = tg_alloc(1, sizeof *s, "a session", err);
    if (!s)
        return TG_E_RESOURCE;
    s->w = w;
    s->params = with_defaults(w, params);
    tg_status status = check_params(&s->params, err);
    if (status == TG_OK)
        status = check_attention(&s->params, w, err);
    if (status == TG_OK)
        status = find_threads(s, &room, &room_bytes, err);
    if (status == TG_OK)
        status = tg_kv_create(&s->kv, &w->config, s->params.n_ctx, s->params.n_seq_max,
                              tg_session_kv_type(s->params.type_k), tg_session_kv_type(s->params.type_v), err);
    if (status != TG_OK)
        goto fail;
    /* Rotation may depend on what was asked for, and not on what a block has more. */
    const int n_asked = s->params.n_ctx_seq ? s->params.n_ctx_seq : s->params.n_ctx;
    s->params.n_ctx = tg_kv_capacity(&s->kv);
    if (s->params.n_ctx_seq == 0)
        s->params.n_ctx_seq = s->params.n_ctx;
    status = tg_team_create(&s->team, s->params.n_threads, worker_bytes(w, &s->params), err);
    if (status != TG_OK)
        goto fail;
    s->params.n_threads = tg_team_size(s->team);
    s->arena_bytes = lay_out(s, NULL);
    s->arena = tg_reserve(s->arena_bytes, "scratch memory", err);
    if (!s->arena)
        status = TG_E_RESOURCE;
    else if (s->uses_blas)
        status = give_room_to_blas(s, &room, room_bytes, err);
    if (status != TG_OK)
        goto fail;
    lay_out(s, s->arena);

    tg_forward *f = &s->forward;
    f->w = w;
    f->mode = (tg_matmul_mode){.precise = s->params.precise, .blas = s->uses_blas};
    f->attention = tg_attn_strategy_by_name(s->params.attention);
    f->window = s->params.window;
    f->keep = s->params.keep;
    f->kv = s->kv.layers;
    f->seq = s->kv.seq;
    f->interrupted = &s->interrupted;
    tg_forward_prepare(f, n_asked);
    *session = s;
    return TG_OK;
fail:
    tg_unreserve(room, room_bytes);
    tg_session_free(s);
    return status;
}

void tg_session_free(tg_session *s)
{
    if (!s)
        return;
    tg_kv_free(&s->kv);
    tg_team_free(s->team);
    tg_unreserve(s->arena, s->arena_bytes);
    free(s);
}

void tg_session_needs(const tg_weights *w, const tg_session_params *params, uint64_t *kv_bytes,
                      uint64_t *scratch_bytes)
{
    tg_session s = {.w = w, .params = with_defaults(w, params)};
    const tg_session_params *p = &s.params;
    *kv_bytes = *scratch_bytes = 0;
    if (check_params(p, NULL) != TG_OK || check_attention(p, w, NULL) != TG_OK)
        return;
    *kv_bytes = tg_kv_bytes(&w->config, tg_kv_pool_blocks(p->n_ctx, p->n_seq_max), tg_session_kv_type(p->type_k),
                            tg_session_kv_type(p->type_v));
    *scratch_bytes = lay_out(&s, NULL) + (uint64_t)p->n_threads * worker_bytes(w, p);
}

void tg_session_get_info(const tg_session *s, tg_session_info *info)
{
    *info = (tg_session_info){
        .n_threads = s->params.n_threads,
        .n_threads_asked = s->n_threads_asked,
        .n_ctx = s->params.n_ctx,
        .n_ctx_seq = s->params.n_ctx_seq,
        .n_batch = s->params.n_batch,
        .n_seq_max = s->params.n_seq_max,
        .n_block = TG_KV_BLOCK,
        .kv_bytes = s->kv.n_bytes,
        .scratch_bytes = s->arena_bytes + (size_t)s->params.n_threads * worker_bytes(s->w, &s->params),
        .n_saturated = atomic_load(&s->forward.n_clamped),
        .isa = tg_isa_name(),
    };
}

void tg_session_interrupt(tg_session *s)
{
    s->interrupted = 1;
}

/* ---- sequences ------------------------------------------------------------------------------------- */

static bool seq_exists(const tg_session *s, int seq)
{
    return seq >= 0 && seq < s->kv.n_seq_max && s->kv.length[seq] >= 0;
}

static tg_status no_such_seq(const tg_session *s, int seq, tg_error *err)
{
    return tg_fail(err, TG_E_USAGE, NULL, "no such sequence (found %d, allowed: one in use below %d)", seq,
                   s->kv.n_seq_max);
}

tg_status tg_seq_new(tg_session *s, int *seq, tg_error *err)
{
    int n = tg_kv_seq_new(&s->kv);
    if (n < 0)
        return tg_fail(err, TG_E_USAGE, NULL, "too many sequences (allowed %d)", s->kv.n_seq_max);
    *seq = n;
    return TG_OK;
}

tg_status tg_seq_fork(tg_session *s, int from, int *seq, tg_error *err)
{
    if (!seq_exists(s, from))
        return no_such_seq(s, from, err);
    tg_status status = tg_seq_new(s, seq, err);
    if (status == TG_OK)
        tg_kv_seq_fork(&s->kv, from, *seq);
    return status;
}

tg_status tg_seq_truncate(tg_session *s, int seq, int n_tokens, tg_error *err)
{
    if (!seq_exists(s, seq))
        return no_such_seq(s, seq, err);
    if (n_tokens < 0 || n_tokens > s->kv.length[seq])
        return tg_fail(err, TG_E_USAGE, NULL, "length to truncate to (found %d, allowed 0 to %d)", n_tokens,
                       s->kv.length[seq]);
    tg_kv_seq_truncate(&s->kv, seq, n_tokens);
    return TG_OK;
}

void tg_seq_free(tg_session *s, int seq)
{
    if (seq_exists(s, seq))
        tg_kv_seq_free(&s->kv, seq);
}

int tg_seq_length(const tg_session *s, int seq)
{
    return seq_exists(s, seq) ? s->kv.length[seq] : 0;
}

/* ---- evaluation ------------------------------------------------------------------------------------ */

static int seq_of(const tg_batch *b, int row)
{
    return b->seq ? b->seq[row] : 0;
}

static bool wanted(const tg_batch *b, int row)
{
    return b->want ? b->want[row] != 0 : row == b->n - 1;
}

/* Appends the batch's positions to their sequences. */
static tg_status append(tg_session *s, const tg_batch *b, tg_error *err)
{
    const tg_config *c = &s->w->config;
    for (int i = 0; i < b->n; i++) {
        int seq = seq_of(b, i);
        if (b->id[i] < 0 || b->id[i] >= c->n_vocab)
            return tg_fail(err, TG_E_USAGE, NULL, "token id in row %d (found %" PRId32 ", allowed 0 to %d)",
                           i, b->id[i], c->n_vocab - 1);
        if (!seq_exists(s, seq))
            return no_such_seq(s, seq, err);
        int pos = s->kv.length[seq];
        if (b->pos && b->pos[i] != pos)
            return tg_fail(err, TG_E_USAGE, NULL, "position in row %d (found %" PRId32 ", allowed %d)", i,
                           b->pos[i], pos);
        if (s->w->arch->pos == TG_POS_LEARNED && pos >= c->n_ctx_train)
            return tg_fail(err, TG_E_USAGE, NULL,
                           "past the positions that the model has learned (found %d, allowed below %d)",
                           pos, c->n_ctx_train);
        if (pos >= s->params.n_ctx_seq || !tg_kv_append(&s->kv, seq))
            return tg_fail(err, TG_E_USAGE, NULL, "context full (%d positions)", s->params.n_ctx_seq);
    }
    return TG_OK;
}

/* What the forward found. */
static tg_status verdict(const tg_session *s, tg_error *err)
{
    const tg_forward *f = &s->forward;
    if (f->stopped)
        return tg_fail(err, TG_E_STOPPED, NULL, "interrupted");
    const int64_t bad = atomic_load(&f->bad);
    if (bad == INT64_MAX)
        return TG_OK;
    int layer = (int)(bad >> 32), pos = f->attn_row[bad & UINT32_MAX].pos;
    if (layer == 0)
        return tg_fail(err, TG_E_NUMERIC, NULL, "non-finite numbers at position %d, in the embedding", pos);
    return tg_fail(err, TG_E_NUMERIC, NULL, "non-finite numbers at position %d, first behind layer %d of %d",
                   pos, layer - 1, s->w->config.n_layer);
}

/* Evaluates rows first .. first + n - 1 and hands the wanted logits on. */
static tg_status eval_part(tg_session *s, const tg_batch *b, int first, int n, tg_logits_sink sink, void *arg,
                           tg_error *err)
{
    tg_forward *f = &s->forward;
    int n_want = 0;
    for (int i = 0; i < n; i++) {
        int seq = seq_of(b, first + i);
        f->attn_row[i] = (tg_attn_row){.seq = seq, .pos = s->next_pos[seq]++};
        if (sink && wanted(b, first + i))
            s->want[n_want++] = i;
    }
    f->n = n;
    f->id = b->id + first;
    for (int done = 0; done == 0 || done < n_want; done += TG_HEAD_ROWS) {
        f->want = s->want + done;
        f->n_want = n_want - done < TG_HEAD_ROWS ? n_want - done : TG_HEAD_ROWS;
        if (done == 0)
            tg_forward_run(f, s->team);
        else
            tg_forward_head(f, s->team);
        tg_status status = verdict(s, err);
        if (status != TG_OK)
            return status;
        size_t n_vocab = (size_t)s->w->config.n_vocab;
        for (int i = 0; i < f->n_want; i++)
            if (!sink(arg, first + f->want[i], f->logits + (size_t)i * n_vocab, (int)n_vocab))
                return tg_fail(err, TG_E_STOPPED, NULL, "stopped by the caller");
    }
    return TG_OK;
}

tg_status tg_eval(tg_session *s, const tg_batch *batch, tg_logits_sink sink, void *arg, tg_error *err)
{
    if (batch->n < 1)
        return tg_fail(err, TG_E_USAGE, NULL, "rows of a batch (found %d, allowed: at least 1)", batch->n);
    size_t n_seq = (size_t)s->kv.n_seq_max;
    memcpy(s->before, s->kv.length, n_seq * sizeof *s->before);
    tg_status status = append(s, batch, err);
    memcpy(s->next_pos, s->before, n_seq * sizeof *s->before);
    int n_batch = s->params.n_batch;
    for (int first = 0; status == TG_OK && first < batch->n; first += n_batch) {
        int left = batch->n - first;
        status = eval_part(s, batch, first, left < n_batch ? left : n_batch, sink, arg, err);
    }
    if (status != TG_OK) {
        for (int q = 0; q < s->kv.n_seq_max; q++)
            if (s->before[q] >= 0)
                tg_kv_seq_truncate(&s->kv, q, s->before[q]);
        s->interrupted = 0;
    }
    return status;
}

/* ---- measuring ------------------------------------------------------------------------------------- */

static tg_reach reach(const tg_session *s)
{
    return (tg_reach){.window = s->forward.window, .keep = s->forward.keep};
}

tg_status tg_session_read(tg_session *s, int seq, tg_read *read, tg_error *err)
{
    if (!seq_exists(s, seq))
        return no_such_seq(s, seq, err);
    return tg_measure_read(s->team, s->w, &s->kv, seq, reach(s), read, err);
}

void tg_session_work(const tg_session *s, int n_past, int n_tokens, tg_work *work)
{
    tg_measure_work(s->w, s->forward.mode, reach(s), n_past, n_tokens, work);
}
