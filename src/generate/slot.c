/* slot.c - what the slots have in the cache: for which text there is room, and what it can go on with. */
#include "generate/slot.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { SHARE_LEAST = 16 }; /* tokens that are worth a fork, which may copy a block */

void tg_slot_forget(tg_generator *g, slot *s)
{
    if (s->seq >= 0)
        tg_seq_free(g->session, s->seq);
    s->seq = -1;
}

int tg_slot_cached(const tg_generator *g, const slot *s)
{
    return s->seq >= 0 ? tg_seq_length(g->session, s->seq) : 0;
}

/* ---- what prompts have in common ------------------------------------------------------------------- */

static int in_common(const int32_t *a, int n_a, const int32_t *b, int n_b)
{
    int n = 0;
    while (n < n_a && n < n_b && a[n] == b[n])
        n++;
    return n;
}

int tg_slot_shared(const tg_generator *g, const slot *s, const int32_t *ids, int n)
{
    if (s->seq < 0)
        return 0;
    return in_common(s->ids, s->state == ACTIVE ? s->n_ids : tg_slot_cached(g, s), ids, n - 1);
}

slot *tg_slot_choose(const tg_generator *g, const int32_t *ids, int n)
{
    slot *best = NULL;
    int most = -1;
    for (int i = 0; i < g->info.n_seq_max; i++) {
        slot *s = &g->slot[i];
        if (s->state != IDLE)
            continue;
        int worth = tg_slot_shared(g, s, ids, n);
        if (worth < SHARE_LEAST && s->seq >= 0 && g->info.n_seq_max > 1)
            worth = -1;
        if (!best || worth > most) {
            best = s;
            most = worth;
        }
    }
    return best;
}

int tg_slot_need(const tg_generator *g, const slot *s)
{
    int more = s->request.n_max;
    return more < 0 || more > g->n_ctx_seq - s->n_prompt ? g->n_ctx_seq : s->n_prompt + more;
}

static int in_blocks(const tg_generator *g, int n)
{
    return (n + g->info.n_block - 1) / g->info.n_block * g->info.n_block;
}

/* Is there room for a text beside those that are active? Idle caches give way, but for the first `most` positions
 * of `from`, with which it begins. */
static bool make_room(tg_generator *g, const slot *text, slot *from, int most)
{
    int left = g->info.n_ctx - in_blocks(g, tg_slot_need(g, text));
    for (int i = 0; i < g->info.n_seq_max; i++)
        left -= g->slot[i].state == ACTIVE ? in_blocks(g, tg_slot_need(g, &g->slot[i])) : 0;
    if (left < 0)
        return false;
    for (int i = 0; i < g->info.n_seq_max; i++) {
        slot *s = &g->slot[i];
        int idle = s->state == ACTIVE || s == from ? 0 : in_blocks(g, tg_slot_cached(g, s));
        if (idle > left)
            tg_slot_forget(g, s);
        else
            left -= idle;
    }
    if (from != text && from->state == IDLE && in_blocks(g, tg_slot_cached(g, from)) > left)
        tg_seq_truncate(g->session, from->seq, most, NULL);
    return true;
}

tg_status tg_slot_begin(tg_generator *g, slot *s, tg_error *err)
{
    slot *from = s;
    int most = tg_slot_cached(g, s);
    for (int i = 0; i < g->info.n_seq_max; i++) {
        slot *other = &g->slot[i];
        int n = other->state == WAITING ? 0 : tg_slot_shared(g, other, s->ids, s->n_prompt);
        if (n >= most + SHARE_LEAST) {
            from = other;
            most = n;
        }
    }
    tg_status status = TG_OK;
    if (most > tg_slot_cached(g, from) || !make_room(g, s, from, most))
        return status;
    if (from != s) {
        tg_slot_forget(g, s);
        status = tg_seq_fork(g->session, from->seq, &s->seq, err);
    } else if (s->seq < 0) {
        status = tg_seq_new(g->session, &s->seq, err);
    }
    if (status == TG_OK)
        status = tg_seq_truncate(g->session, s->seq, most, err);
    g->n_reused += (uint64_t)most;
    s->state = status == TG_OK ? ACTIVE : s->state;
    return status;
}

/* ---- saved texts ----------------------------------------------------------------------------------- */

tg_status tg_generator_save(const tg_generator *g, const tg_saved_text *text, const char *path, tg_error *err)
{
    tg_saved_text found = *text;
    int seq = -1;
    found.n_cached = 0;
    for (int i = 0; i < g->info.n_seq_max; i++) {
        const slot *s = &g->slot[i];
        int n = s->seq < 0 || text->n_ids > INT_MAX ? 0 : in_common(s->ids, tg_slot_cached(g, s), text->ids, (int)text->n_ids);
        if ((size_t)n > found.n_cached) {
            found.n_cached = (size_t)n;
            seq = s->seq;
        }
    }
    return tg_session_save(g->session, g->model, seq, &found, path, err);
}

tg_status tg_generator_restore(tg_generator *g, tg_saved *saved, tg_error *err)
{
    const tg_saved_text *text = tg_saved_get_text(saved);
    slot *s = tg_slot_choose(g, NULL, 0);
    if (!s)
        return tg_fail(err, TG_E_USAGE, NULL, "texts at once (allowed %d)", g->info.n_seq_max);
    int32_t *ids = tg_alloc(text->n_cached, sizeof *ids, "the tokens of a text", err);
    if (!ids)
        return TG_E_RESOURCE;
    tg_slot_forget(g, s);
    memcpy(ids, text->ids, text->n_cached * sizeof *ids);
    free(s->ids);
    s->ids = ids;
    s->n_prompt = (int)text->n_cached;
    s->request.n_max = 0;
    if (!make_room(g, s, s, 0))
        return tg_fail(err, TG_E_USAGE, NULL, "the texts that go on leave no room for the saved one");
    tg_status status = tg_seq_new(g->session, &s->seq, err);
    if (status == TG_OK)
        status = tg_session_restore(g->session, s->seq, saved, err);
    if (status != TG_OK)
        tg_slot_forget(g, s);
    return status;
}
