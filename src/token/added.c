/* added.c - a sorted list instead of an automaton: the candidates at a place are a range of it that
 * narrows with each byte. That is linear in the text times the longest token, which is bounded. */
#include "token/added.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "token/unicode.h"

tg_status tg_added_add(tg_added_set *set, const tg_added_token *token, tg_error *err)
{
    if (!tg_grow((void **)&set->tokens, &set->room, set->n + 1, sizeof *set->tokens, "added tokens",
                 err))
        return TG_E_RESOURCE;
    char *text = tg_alloc(token->n_bytes, 1, "an added token", err);
    if (!text)
        return TG_E_RESOURCE;
    memcpy(text, token->text, token->n_bytes);
    set->tokens[set->n] = *token;
    set->tokens[set->n++].text = text;
    return TG_OK;
}

static int by_text(const void *pa, const void *pb)
{
    const tg_added_token *a = pa, *b = pb;
    size_t n = a->n_bytes < b->n_bytes ? a->n_bytes : b->n_bytes;
    int order = memcmp(a->text, b->text, n);
    return order ? order : (a->n_bytes > b->n_bytes) - (a->n_bytes < b->n_bytes);
}

bool tg_added_finish(tg_added_set *set, const tg_added_token **twice)
{
    if (set->n)
        qsort(set->tokens, set->n, sizeof *set->tokens, by_text);
    size_t at = 0;
    for (unsigned b = 0; b < 257; b++) {
        while (at < set->n && (uint8_t)set->tokens[at].text[0] < b)
            at++;
        set->first[b] = at;
    }
    for (size_t i = 1; i < set->n; i++)
        if (by_text(&set->tokens[i - 1], &set->tokens[i]) == 0) {
            *twice = &set->tokens[i];
            return false;
        }
    return true;
}

void tg_added_deinit(tg_added_set *set)
{
    for (size_t i = 0; i < set->n; i++)
        free((void *)(uintptr_t)set->tokens[i].text);
    free(set->tokens);
    *set = (tg_added_set){0};
}

/* ---- matching ----------------------------------------------------------------------------- */

/* The first token in [low, high), which agree before byte `depth`, whose byte there is at least b.
 */
static size_t lower_bound(const tg_added_set *set, size_t low, size_t high, size_t depth,
                          unsigned b)
{
    while (low < high) {
        size_t middle = (low + high) / 2;
        if ((uint8_t)set->tokens[middle].text[depth] < b)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The longest token that begins at s, or NULL. */
static const tg_added_token *longest_at(const tg_added_set *set, const uint8_t *s, size_t n)
{
    size_t low = set->first[s[0]], high = set->first[s[0] + 1];
    const tg_added_token *best = NULL;
    for (size_t depth = 1; low < high; depth++) {
        if (set->tokens[low].n_bytes == depth) /* what is a prefix of others stands before them */
            best = &set->tokens[low++];
        if (depth == n)
            break;
        low = lower_bound(set, low, high, depth, s[depth]);
        high = lower_bound(set, low, high, depth, s[depth] + 1u);
    }
    return best;
}

/* The class of the character that ends before s + i, i > 0, and where it begins. */
static unsigned class_before(const uint8_t *s, size_t i, size_t *begin)
{
    for (size_t k = 1; k <= 4 && k <= i; k++) {
        size_t length;
        unsigned c = tg_class_at(s + i - k, k, &length);
        if (length == k && (s[i - k] & 0xc0) != 0x80) {
            *begin = i - k;
            return c;
        }
    }
    *begin = i - 1;
    return 0;
}

static unsigned class_after(const uint8_t *s, size_t n, size_t i, size_t *end)
{
    size_t length;
    unsigned c = tg_class_at(s + i, n - i, &length);
    *end = i + length;
    return c;
}

/* Does a token count there? */
static bool counts(const tg_added_walk *w, const tg_added_token *token, size_t start, size_t stop)
{
    bool plain = false, foreign = false;
    for (size_t i = start; w->plain && i < stop; i++) {
        plain |= w->plain[i] != 0;
        foreign |= w->plain[i] == 1;
    }
    if (token->special)
        return w->special && !plain;
    return !(foreign && memmem(w->template, strlen(w->template), token->text, token->n_bytes));
}

static bool stands_alone(const tg_added_walk *w, size_t start, size_t stop)
{
    size_t at;
    return !(start > 0 && class_before(w->text, start, &at) & TG_CLASS_WORD) &&
           !(stop < w->n && class_after(w->text, w->n, stop, &at) & TG_CLASS_WORD);
}

bool tg_added_next(tg_added_walk *w, size_t *from, size_t *to, int32_t *id)
{
    if (w->ended)
        return false;
    while (w->set->n && w->search < w->n) {
        const tg_added_token *token = longest_at(w->set, w->text + w->search, w->n - w->search);
        if (!token) {
            w->search++;
            continue;
        }
        size_t start = w->search, stop = start + token->n_bytes, at;
        w->search =
            stop; /* also past a match that does not count, and before white space it takes along */
        if (!counts(w, token, start, stop) ||
            (token->single_word && !stands_alone(w, start, stop)))
            continue;
        if (token->lstrip)
            while (start > w->done && class_before(w->text, start, &at) & TG_CLASS_SPACE)
                start = at;
        if (token->rstrip)
            while (stop < w->n && class_after(w->text, w->n, stop, &at) & TG_CLASS_SPACE)
                stop = at;
        *from = w->done;
        *to = start > w->done ? start : w->done;
        *id = token->id;
        w->done = stop;
        return true;
    }
    w->ended = true;
    *from = w->done;
    *to = w->n;
    *id = -1;
    return true;
}
