/* generator.c - many texts continued together: whose rows an evaluation has, and what its logits become.
 *
 * A slot has a sequence of the cache and knows the tokens of its text, of which the first are in the cache. The rest
 * waits for an evaluation: of a prompt many, later the one that was drawn last, and behind it perhaps guesses. What
 * an evaluation leaves in the cache beyond the known tokens is cut off again. So nothing has to be undone where one
 * fails: what it did not put into the cache still waits.
 *
 * This is a client of the public interface. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "generate/lookup.h"
#include "generate/slot.h"

/* ---- creation -------------------------------------------------------------------------------------- */

tg_status tg_generator_create(tg_generator **generator, const tg_model *model, tg_session *session, tg_error *err)
{
    tg_model_info info;
    *generator = NULL;
    tg_generator *g = tg_alloc(1, sizeof *g, "a generator", err);
    if (!g)
        return TG_E_RESOURCE;
    tg_model_get_info(model, &info);
    tg_session_get_info(session, &g->info);
    g->model = model;
    g->session = session;
    g->n_vocab = info.n_vocab;
    g->n_ctx_seq = g->info.n_ctx_seq;
    if (info.positions_bounded && g->n_ctx_seq > info.n_ctx_train)
        g->n_ctx_seq = info.n_ctx_train;
    const size_t n_slots = (size_t)g->info.n_seq_max, n_rows = (size_t)g->info.n_batch + n_slots * (TG_DRAFT_MAX + 1);
    g->slot = tg_alloc(n_slots, sizeof *g->slot, "texts", err);
    g->top = tg_alloc((size_t)g->n_vocab, sizeof *g->top, "likeliest tokens", err);
    g->id = tg_alloc(n_rows, sizeof *g->id, "rows", err);
    g->seq = tg_alloc(n_rows, sizeof *g->seq, "rows", err);
    g->want = tg_alloc(n_rows, sizeof *g->want, "rows", err);
    g->of_row = tg_alloc(n_rows, sizeof *g->of_row, "rows", err);
    if (!g->slot || !g->top || !g->id || !g->seq || !g->want || !g->of_row) {
        tg_generator_free(g);
        return TG_E_RESOURCE;
    }
    for (int i = 0; i < g->info.n_seq_max; i++) {
        tg_seq_free(session, i);
        g->slot[i].seq = -1;
    }
    *generator = g;
    return TG_OK;
}

static void empty(slot *s)
{
    tg_sampler_free(s->sampler);
    tg_stop_free(s->stop);
    free(s->stop_id);
    s->sampler = NULL;
    s->stop = NULL;
    s->stop_id = NULL;
    s->n_stop_id = 0;
    s->state = IDLE;
}

void tg_generator_free(tg_generator *g)
{
    if (!g)
        return;
    for (int i = 0; g->slot && i < g->info.n_seq_max; i++) {
        empty(&g->slot[i]);
        free(g->slot[i].ids);
        tg_slot_forget(g, &g->slot[i]);
    }
    free(g->slot);
    free(g->top);
    free(g->id);
    free(g->seq);
    free(g->want);
    free(g->of_row);
    free(g);
}

void tg_generator_get_info(const tg_generator *g, tg_generator_info *info)
{
    *info = (tg_generator_info){.n_slots = g->info.n_seq_max, .n_reused = g->n_reused, .n_drafted = g->n_drafted,
                                .n_accepted = g->n_accepted};
    for (int i = 0; i < g->info.n_seq_max; i++) {
        const slot *s = &g->slot[i];
        if (s->state == IDLE)
            continue;
        int done = s->state == ACTIVE ? tg_slot_cached(g, s) : 0;
        info->n_active++;
        info->n_reading += s->n_drawn == 0;
        info->n_prompt += (uint64_t)s->n_prompt;
        info->n_prompt_done += (uint64_t)(done < s->n_prompt ? done : s->n_prompt);
    }
}

/* ---- requests -------------------------------------------------------------------------------------- */

/* Special tokens whose names are among the stops. */
static tg_status find_stop_ids(const tg_generator *g, slot *s, const tg_request *r, tg_error *err)
{
    s->stop_id = tg_alloc((size_t)r->n_stop, sizeof *s->stop_id, "stop strings", err);
    if (!s->stop_id)
        return TG_E_RESOURCE;
    for (int32_t id = 0; id < g->n_vocab && r->n_stop > 0; id++) {
        if (tg_token_get_kind(g->model, id) != TG_TOKEN_SPECIAL)
            continue;
        size_t n;
        const char *name = tg_token_bytes(g->model, id, &n);
        for (int i = 0; i < r->n_stop && s->n_stop_id < r->n_stop; i++)
            if (r->stop[i].n == n && !memcmp(r->stop[i].bytes, name, n))
                s->stop_id[s->n_stop_id++] = id;
    }
    return TG_OK;
}

static tg_status take_ids(const tg_generator *g, slot *s, const tg_request *r, int common, tg_error *err)
{
    size_t room = (size_t)tg_slot_need(g, s);
    int32_t *ids = tg_alloc(room, sizeof *ids, "the tokens of a text", err);
    tg_status status = ids ? TG_OK : TG_E_RESOURCE;
    if (ids && s->seq >= 0)
        status = tg_seq_truncate(g->session, s->seq, common, err);
    if (status != TG_OK) {
        free(ids);
        return status;
    }
    memcpy(ids, r->ids, r->n_ids * sizeof *ids);
    free(s->ids);
    s->ids = ids;
    return TG_OK;
}

tg_status tg_generator_add(tg_generator *g, const tg_request *r, tg_error *err)
{
    if (r->n_ids < 1 || r->n_ids > (size_t)g->n_ctx_seq)
        return tg_fail(err, TG_E_USAGE, NULL, "tokens of a prompt (found %zu, allowed 1 to %d)", r->n_ids, g->n_ctx_seq);
    if (r->n_top > g->n_vocab || r->n_draft < 0 || r->n_draft > TG_DRAFT_MAX)
        return tg_fail(err, TG_E_USAGE, NULL, "likeliest tokens, or guesses (found %d and %d, allowed up to %d and %d)",
                       r->n_top, r->n_draft, g->n_vocab, TG_DRAFT_MAX);
    slot *s = tg_slot_choose(g, r->ids, (int)r->n_ids);
    if (!s)
        return tg_fail(err, TG_E_USAGE, NULL, "texts at once (allowed %d)", g->info.n_seq_max);
    int common = tg_slot_shared(g, s, r->ids, (int)r->n_ids);
    s->request = *r;
    s->n_prompt = s->n_ids = (int)r->n_ids;
    s->n_drawn = s->n_rows = s->n_draft = 0;
    s->n_text = 0;
    tg_status status = tg_sampler_create(&s->sampler, g->model, &r->sampling, err);
    if (status == TG_OK)
        status = tg_stop_create(&s->stop, r->stop, r->n_stop, err);
    if (status == TG_OK)
        status = find_stop_ids(g, s, r, err);
    if (status == TG_OK)
        status = take_ids(g, s, r, common, err);
    if (status != TG_OK) {
        empty(s);
        return status;
    }
    for (int i = 0; i < s->n_prompt; i++)
        tg_sampler_accept(s->sampler, s->ids[i]);
    s->state = WAITING;
    return TG_OK;
}

void tg_generator_cancel(tg_generator *g)
{
    for (int i = 0; i < g->info.n_seq_max; i++)
        empty(&g->slot[i]);
}

/* ---- what a row of logits becomes ------------------------------------------------------------------ */

static bool is_stop_id(const slot *s, int32_t id)
{
    for (int i = 0; i < s->n_stop_id; i++)
        if (s->stop_id[i] == id)
            return true;
    return false;
}

static tg_finish finish_of(const tg_generator *g, const slot *s, int32_t id)
{
    if (is_stop_id(s, id))
        return TG_FINISH_STOP;
    if (tg_token_is_eog(g->model, id) && !s->request.sampling.ignore_eos)
        return TG_FINISH_END;
    if (s->n_drawn == s->request.n_max)
        return TG_FINISH_LENGTH;
    return s->n_ids >= g->n_ctx_seq ? TG_FINISH_CONTEXT : TG_FINISH_NONE;
}

/* Hands a piece on, and ends the text where that is due. */
static void hand_on(slot *s, const tg_piece *piece)
{
    bool more = s->request.sink(s->request.arg, piece);
    if (!more || piece->finish != TG_FINISH_NONE)
        empty(s);
}

/* The token's bytes, as far as the text has them. */
static const char *bytes_of(const tg_generator *g, const slot *s, int32_t id, size_t *n)
{
    const char *bytes = tg_token_bytes(g->model, id, n);
    if (tg_token_get_kind(g->model, id) != TG_TOKEN_NORMAL && !s->request.special)
        *n = 0;
    return bytes;
}

/* The bytes that a token adds, and with a finish those that were held back. A stop may finish the text earlier. */
static void add_text(const tg_generator *g, slot *s, tg_piece *piece)
{
    tg_stop_text text, rest;
    size_t n = 0;
    const char *bytes = "";
    piece->at = s->n_text;
    if (piece->finish != TG_FINISH_END && piece->finish != TG_FINISH_STOP)
        bytes = bytes_of(g, s, piece->id, &n);
    s->n_text += n;
    if (tg_stop_push(s->stop, bytes, n, &text))
        piece->finish = TG_FINISH_STOP;
    if (piece->finish != TG_FINISH_NONE) {
        tg_stop_flush(s->stop, &rest); /* follows it in memory */
        text.n += rest.n;
    }
    piece->text = text.bytes;
    piece->n_bytes = text.n;
}

static void score(const tg_generator *g, const slot *s, const float *logits, tg_piece *piece)
{
    const int n = s->request.n_top;
    if (n < 0)
        return;
    piece->n_top = tg_top_k(logits, g->n_vocab, n, g->top, &piece->lse);
    piece->top = g->top;
    piece->logit = logits[piece->id];
}

/* Draws the next token of a slot from the row behind its last one. */
static void draw(tg_generator *g, slot *s, const float *logits)
{
    tg_piece piece = {.id = tg_sampler_draw(s->sampler, logits, g->n_vocab)};
    s->ids[s->n_ids++] = piece.id;
    s->n_drawn++;
    score(g, s, logits, &piece);
    piece.finish = finish_of(g, s, piece.id);
    add_text(g, s, &piece);
    hand_on(s, &piece);
}

static bool on_logits(void *arg, int row, const float *logits, int n_vocab)
{
    tg_generator *g = arg;
    slot *s = g->of_row[row];
    const bool guess = row - s->row >= s->n_rows - s->n_draft;
    (void)n_vocab;
    s->missed = s->missed || s->state != ACTIVE || (guess && g->id[row] != s->ids[s->n_ids - 1]);
    if (s->missed)
        return true;
    s->n_right += guess;
    draw(g, s, logits);
    return true;
}

/* ---- steps ----------------------------------------------------------------------------------------- */

static void add_row(tg_generator *g, slot *s, int32_t id, bool want)
{
    int row = g->n_rows++;
    g->id[row] = id;
    g->seq[row] = s->seq;
    g->want[row] = want;
    g->of_row[row] = s;
    s->n_rows++;
}

/* Guesses behind the last known token, of which all logits are wanted. Texts share the rows that are cheap. */
static void add_guesses(tg_generator *g, slot *s)
{
    int32_t guess[TG_DRAFT_MAX];
    int room = tg_slot_need(g, s) - s->n_ids, most = (s->request.n_draft + 1) / g->n_active - 1;
    most = most < room ? most : room;
    s->n_draft = most > 0 ? tg_lookup(s->ids, s->n_ids, most, guess) : 0;
    for (int i = 0; i < s->n_draft; i++)
        add_row(g, s, guess[i], true);
}

/* The known tokens of a slot that are not in the cache, `most` of them. */
static void add_known(tg_generator *g, slot *s, int most)
{
    int from = tg_slot_cached(g, s), end = s->n_ids - from > most ? from + most : s->n_ids;
    s->row = g->n_rows;
    s->n_rows = s->n_draft = s->n_right = 0;
    s->missed = false;
    for (int i = from; i < end; i++)
        add_row(g, s, s->ids[i], i == s->n_ids - 1);
    if (end == s->n_ids)
        add_guesses(g, s);
}

/* Rows of texts that go on, then of prompts as many as the batch still takes. */
static void gather(tg_generator *g)
{
    g->n_rows = g->n_active = 0;
    for (int i = 0; i < g->info.n_seq_max; i++)
        g->n_active += g->slot[i].state == ACTIVE;
    for (int prompts = 0; prompts < 2; prompts++)
        for (int i = 0; i < g->info.n_seq_max; i++) {
            slot *s = &g->slot[i];
            int most = prompts ? g->info.n_batch - g->n_rows : 1;
            if (s->state == ACTIVE && (s->n_drawn == 0) == prompts && most > 0)
                add_known(g, s, most);
        }
}

/* Counts the guesses, and cuts those off that were wrong. */
static tg_status settle(tg_generator *g, slot *s, tg_error *err)
{
    int known = s->n_ids - 1; /* the last one waits for the next evaluation */
    g->n_drafted += (uint64_t)s->n_draft;
    g->n_accepted += (uint64_t)s->n_right;
    s->n_draft = s->n_right = 0;
    if (s->seq < 0 || tg_slot_cached(g, s) <= known)
        return TG_OK;
    return tg_seq_truncate(g->session, s->seq, known, err);
}

tg_status tg_generator_step(tg_generator *g, tg_error *err)
{
    tg_status status = TG_OK;
    for (int i = 0; i < g->info.n_seq_max && status == TG_OK; i++) {
        slot *s = &g->slot[i];
        if (s->state == IDLE)
            continue;
        if (tg_slot_need(g, s) == s->n_prompt)
            hand_on(s, &(tg_piece){.id = -1, .text = "",
                                   .finish = s->request.n_max ? TG_FINISH_CONTEXT : TG_FINISH_LENGTH});
        else if (s->state == WAITING)
            status = tg_slot_begin(g, s, err);
    }
    gather(g);
    if (status != TG_OK || g->n_rows == 0)
        return status;
    const tg_batch batch = {.n = g->n_rows, .id = g->id, .seq = g->seq, .want = g->want};
    status = tg_eval(g->session, &batch, on_logits, g, err);
    for (int i = 0; i < g->info.n_seq_max && status == TG_OK; i++)
        status = settle(g, &g->slot[i], err);
    return status;
}
