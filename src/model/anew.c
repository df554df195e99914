/* anew.c - quantised matrices laid anew, interleaved, once they are loaded. */
#include "base/limit.h"
#include "kernel/interleave.h"
#include "model/weights.h"

enum { OF_FFN = 3 };

static size_t matrices_of_layer(const tg_weights *w)
{
    return TG_LAYER_MATRICES + OF_FFN * (size_t)w->config.n_expert;
}

static size_t n_matrices(const tg_weights *w)
{
    return (size_t)w->config.n_layer * matrices_of_layer(w) + 1;
}

/* Those that products read, in the order in which a token meets them; the output comes last. */
static tg_matrix *matrix_at(tg_weights *w, size_t i)
{
    const size_t layer = i / matrices_of_layer(w), k = i % matrices_of_layer(w);
    if (layer == (size_t)w->config.n_layer)
        return &w->output;
    if (k < TG_LAYER_MATRICES)
        return tg_layer_matrix(&w->layer[layer], (int)k);
    tg_ffn *f = &w->layer[layer].expert[(k - TG_LAYER_MATRICES) / OF_FFN];
    tg_matrix *const of[OF_FFN] = {&f->gate, &f->up, &f->down};
    return of[(k - TG_LAYER_MATRICES) % OF_FFN];
}

static size_t room_of(const tg_matrix *m)
{
    return tg_round_up(tg_interleaved_bytes(m), 64);
}

/* What is in work: some panels of a matrix, and where that goes. */
typedef struct laying {
    tg_weights *w;
    const tg_container *c;
    tg_matrix *m;
    uint8_t *to;
    size_t first, end, n_panels;
} laying;

/* All threads are done with it. */
static void leave(void *arg, size_t unit)
{
    const laying *l = arg;
    const size_t bytes = TG_PANEL * l->m->row_bytes;
    (void)unit;
    tg_container_release(l->c, l->m->data + l->first * bytes, (l->end - l->first) * bytes);
    if (l->end == l->n_panels) {
        l->m->data = l->to;
        l->m->interleaved = true;
    }
}

/* All threads at a time on a few megabytes, so that not much is in memory twice. Before that pages are made, which
 * takes longer than to fill them: of one, huge as it is, all would wait for the thread that makes it. */
static void lay_all(const tg_worker *worker, void *arg)
{
    enum { AT_ONCE = 4 << 20, PAGE = 1 << 21 };
    laying l = *(const laying *)arg;
    const size_t n_pages = (l.w->interleaved_bytes + PAGE - 1) / PAGE;
    for (size_t page; (page = tg_take(worker, n_pages)) < n_pages;)
        l.to[page * PAGE] = 0;
    tg_barrier(worker);
    for (size_t i = 0; i < n_matrices(l.w); i++) {
        l.m = matrix_at(l.w, i);
        const size_t room = room_of(l.m), some = room ? AT_ONCE / (TG_PANEL * l.m->row_bytes) + 1 : 0;
        l.n_panels = room ? ((size_t)l.m->n_out + TG_PANEL - 1) / TG_PANEL : 0;
        for (l.first = 0; l.first < l.n_panels; l.first = l.end) {
            l.end = l.first + some < l.n_panels ? l.first + some : l.n_panels;
            for (size_t k; (k = tg_take(worker, l.end - l.first)) < l.end - l.first;)
                tg_interleave_panel(l.m, l.first + k, l.to);
            tg_meet(worker, 1, leave, &l);
        }
        l.to += room;
    }
}

tg_status tg_weights_interleave(tg_weights *w, const tg_container *c, tg_error *err)
{
    const bool tied = w->output.data == w->tok_embd.data;
    tg_team *team;
    for (size_t i = 0; i < n_matrices(w); i++)
        w->interleaved_bytes += room_of(matrix_at(w, i));
    if (!c || w->interleaved_bytes == 0)
        return TG_OK;
    if (tg_limit_check(w->interleaved_bytes, "weights laid anew", err) != TG_OK)
        return TG_E_RESOURCE;
    w->interleaved = tg_alloc_huge(w->interleaved_bytes, "weights laid anew", err);
    if (!w->interleaved)
        return TG_E_RESOURCE;
    tg_status status = tg_team_create(&team, tg_team_default_size(), 0, err);
    if (status != TG_OK)
        return status;
    tg_team_run(team, lay_all, &(laying){.w = w, .c = c, .to = w->interleaved});
    tg_team_free(team);
    if (tied)
        w->tok_embd = w->output;
    return TG_OK;
}

void tg_weights_free(tg_weights *w)
{
    tg_unreserve(w->interleaved, w->interleaved_bytes);
}
