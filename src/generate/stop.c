/* stop.c - the automaton of Knuth, Morris and Pratt, one for each stop. */
#include "generate/stop.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { PUSH_MAX = 4096 };

typedef struct automaton {
    const char *text;
    size_t n;
    size_t *back; /* [n]: after i + 1 bytes that match, the longest shorter beginning that they end in */
    size_t at;    /* bytes of `text` that the bytes seen end in */
} automaton;

struct tg_stop {
    int n;
    automaton *of;
    char *texts;
    size_t *backs;
    /* What is held back: n_held bytes from `held` on. It moves to the front when room is short, which
     * is there for twice what one call can bring. */
    char *buffer;
    size_t room, held, n_held;
};

static void prepare(automaton *a)
{
    for (size_t i = 1, k = 0; i < a->n; i++) {
        while (k > 0 && a->text[i] != a->text[k])
            k = a->back[k - 1];
        k += a->text[i] == a->text[k];
        a->back[i] = k;
    }
}

/* True when this byte completes the stop. */
static bool step(automaton *a, char c)
{
    while (a->at > 0 && a->text[a->at] != c)
        a->at = a->back[a->at - 1];
    a->at += a->text[a->at] == c;
    return a->at == a->n;
}

tg_status tg_stop_create(tg_stop **stop, const tg_stop_text *texts, int n, tg_error *err)
{
    *stop = NULL;
    size_t total = 0;
    if (n < 0 || n > TG_STOPS_MAX)
        return tg_fail(err, TG_E_USAGE, NULL, "stop strings (found %d, allowed up to %d)", n, TG_STOPS_MAX);
    for (int i = 0; i < n; i++) {
        if (texts[i].n < 1 || texts[i].n > TG_STOP_BYTES_MAX)
            return tg_fail(err, TG_E_USAGE, NULL, "length of a stop string (found %zu, allowed 1 to %d bytes)",
                           texts[i].n, TG_STOP_BYTES_MAX);
        total += texts[i].n;
    }
    tg_stop *s = tg_alloc(1, sizeof *s, "stop strings", err);
    if (!s)
        return TG_E_RESOURCE;
    s->n = n;
    s->room = 2 * (TG_STOP_BYTES_MAX + PUSH_MAX);
    s->of = tg_alloc((size_t)n, sizeof *s->of, "stop strings", err);
    s->texts = tg_alloc(total, 1, "stop strings", err);
    s->backs = tg_alloc(total, sizeof *s->backs, "stop strings", err);
    s->buffer = tg_alloc(s->room, 1, "stop strings", err);
    if (!s->of || !s->texts || !s->backs || !s->buffer) {
        tg_stop_free(s);
        return TG_E_RESOURCE;
    }
    for (size_t i = 0, at = 0; i < (size_t)n; at += texts[i++].n) {
        memcpy(s->texts + at, texts[i].bytes, texts[i].n);
        s->of[i] = (automaton){.text = s->texts + at, .n = texts[i].n, .back = s->backs + at};
        prepare(&s->of[i]);
    }
    *stop = s;
    return TG_OK;
}

void tg_stop_free(tg_stop *s)
{
    if (!s)
        return;
    free(s->of);
    free(s->texts);
    free(s->backs);
    free(s->buffer);
    free(s);
}

/* The first n of the bytes held back are certain. */
static void give(tg_stop *s, size_t n, tg_stop_text *certain)
{
    *certain = (tg_stop_text){s->buffer + s->held, n};
    s->held += n;
    s->n_held -= n;
}

/* Bytes that the text may share with a stop, all stops having seen its end. */
static size_t longest_match(const tg_stop *s)
{
    size_t most = 0;
    for (int i = 0; i < s->n; i++)
        most = s->of[i].at > most ? s->of[i].at : most;
    return most;
}

bool tg_stop_push(tg_stop *s, const char *bytes, size_t n, tg_stop_text *certain)
{
    if (s->held + s->n_held + n > s->room) {
        memmove(s->buffer, s->buffer + s->held, s->n_held);
        s->held = 0;
    }
    for (size_t k = 0; k < n; k++) {
        size_t stop = 0; /* the longest that ends here */
        s->buffer[s->held + s->n_held++] = bytes[k];
        for (int i = 0; i < s->n; i++)
            if (step(&s->of[i], bytes[k]) && s->of[i].n > stop)
                stop = s->of[i].n;
        if (stop) {
            give(s, s->n_held - stop, certain);
            s->n_held = 0;
            return true;
        }
    }
    give(s, s->n_held - longest_match(s), certain);
    return false;
}

void tg_stop_flush(tg_stop *s, tg_stop_text *rest)
{
    give(s, s->n_held, rest);
}
