/* added.c - the automaton of Aho and Corasick over the tokens read backwards: running over a text from its end, it tells at
 * each place the longest token that begins there. Forwards it would tell where tokens end, and the leftmost would have to
 * be found by looking back; so each byte costs the same, however long the tokens are and however near they come. */
#include "token/added.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "token/unicode.h"

/* ---- the automaton ------------------------------------------------------------------------ */

/* A state is the end of some tokens, the root of none. States stand level by level, and so those that a byte more leads
 * to one behind the other, in the order of that byte. */
struct tg_added_state {
    uint32_t child;      /* the first of them */
    uint32_t fail;       /* the longest other state that this one begins with */
    int32_t token;       /* the longest token that it begins with, or -1 */
    uint16_t n_children; /* up to 256 */
    uint8_t byte;        /* that leads here */
};

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

static uint8_t byte_from_end(const tg_added_token *token, size_t i)
{
    return (uint8_t)token->text[token->n_bytes - 1 - i];
}

static int from_end(const void *pa, const void *pb)
{
    const tg_added_token *a = pa, *b = pb;
    for (size_t i = 0; i < a->n_bytes && i < b->n_bytes; i++)
        if (byte_from_end(a, i) != byte_from_end(b, i))
            return byte_from_end(a, i) < byte_from_end(b, i) ? -1 : 1;
    return (a->n_bytes > b->n_bytes) - (a->n_bytes < b->n_bytes);
}

/* The state that a byte before leads to, or 0. */
static uint32_t child_of(const tg_added_set *set, uint32_t at, uint8_t byte)
{
    uint32_t low = set->states[at].child, high = low + set->states[at].n_children;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (set->states[middle].byte == byte)
            return middle;
        if (set->states[middle].byte < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

static uint32_t step(const tg_added_set *set, uint32_t at, uint8_t byte)
{
    for (; at; at = set->states[at].fail) {
        uint32_t child = child_of(set, at, byte);
        if (child)
            return child;
    }
    return set->root[byte];
}

/* The state of what `parent` stands for with a byte before; 0 where there is no memory. */
static uint32_t add_state(tg_added_set *set, uint32_t parent, uint8_t byte, tg_error *err)
{
    if (!tg_grow((void **)&set->states, &set->states_room, set->n_states + 1, sizeof *set->states, "added tokens", err))
        return 0;
    const uint32_t fail = parent ? step(set, set->states[parent].fail, byte) : 0, at = (uint32_t)set->n_states++;
    set->states[at] = (struct tg_added_state){.fail = fail, .token = set->states[fail].token, .byte = byte};
    if (set->states[parent].n_children++ == 0)
        set->states[parent].child = at;
    if (parent == 0)
        set->root[byte] = at;
    return at;
}

/* The states of depth + 1 bytes. `token` [n] are the tokens that have so many, in order, and `at` [n] their states of
 * `depth` bytes. The tokens that are longer stay, *n of them, with their new states. */
static tg_status add_level(tg_added_set *set, size_t depth, uint32_t *token, uint32_t *at, size_t *n, const char *file,
                           tg_error *err)
{
    size_t left = 0;
    for (size_t i = 0; i < *n; i++) {
        const tg_added_token *t = &set->tokens[token[i]];
        const uint8_t byte = byte_from_end(t, depth);
        uint32_t next = (uint32_t)set->n_states - 1; /* as the token before, if that came from there by this byte */
        if (set->states[at[i]].n_children == 0 || set->states[next].byte != byte)
            next = add_state(set, at[i], byte, err);
        if (!next)
            return TG_E_RESOURCE;
        at[left] = next;
        token[left] = token[i];
        left += t->n_bytes > depth + 1;
        if (t->n_bytes > depth + 1)
            continue;
        tg_quoted q;
        int32_t *ends = &set->states[next].token;
        if (*ends >= 0 && set->tokens[*ends].n_bytes == t->n_bytes)
            return tg_fail(err, TG_E_MODEL, file, "added token '%s' is there twice", tg_quote(&q, t->text, t->n_bytes));
        *ends = (int32_t)token[i];
    }
    *n = left;
    return TG_OK;
}

/* Builds it level by level, so that what a state fails to is complete before it. */
static tg_status build(tg_added_set *set, const char *file, tg_error *err)
{
    uint32_t *token = tg_alloc(set->n, sizeof *token, "added tokens", err), *at = tg_alloc(set->n, sizeof *at, "added tokens", err);
    const bool has_root = tg_grow((void **)&set->states, &set->states_room, 1, sizeof *set->states, "added tokens", err);
    tg_status status = token && at && has_root ? TG_OK : TG_E_RESOURCE;
    if (has_root)
        set->states[set->n_states++] = (struct tg_added_state){.token = -1};
    for (size_t i = 0; i < set->n && status == TG_OK; i++)
        token[i] = (uint32_t)i;
    for (size_t depth = 0, n = set->n; n > 0 && status == TG_OK; depth++)
        status = add_level(set, depth, token, at, &n, file, err);
    tg_free(token);
    tg_free(at);
    return status;
}

tg_status tg_added_finish(tg_added_set *set, const char *file, tg_error *err)
{
    size_t n_bytes = 0;
    if (set->n == 0)
        return TG_OK;
    for (size_t i = 0; i < set->n; i++) {
        set->begins[(uint8_t)set->tokens[i].text[0]] = true;
        n_bytes += set->tokens[i].n_bytes;
        if (set->tokens[i].n_bytes > set->longest)
            set->longest = set->tokens[i].n_bytes;
    }
    if (n_bytes > TG_MAX_ADDED_BYTES)
        return tg_fail(err, TG_E_MODEL, file, "added tokens are too long together (found %zu bytes, allowed %d)", n_bytes,
                       TG_MAX_ADDED_BYTES);
    qsort(set->tokens, set->n, sizeof *set->tokens, from_end);
    return build(set, file, err);
}

void tg_added_deinit(tg_added_set *set)
{
    for (size_t i = 0; i < set->n; i++)
        free((void *)(uintptr_t)set->tokens[i].text);
    free(set->tokens);
    free(set->states);
    *set = (tg_added_set){0};
}

/* ---- matching ----------------------------------------------------------------------------- */

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Finds the tokens that begin in the next bytes from `search` on. Behind those it sees as far as a token may reach, so
 * they should not be much fewer. */
static void look_ahead(tg_added_walk *w)
{
    enum { LEAST = 32 };
    const size_t longest = w->set->longest, begin = w->search;
    const size_t end = smaller(w->n, begin + (longest < LEAST ? LEAST : smaller(longest, TG_ADDED_AHEAD)));
    const size_t reach = smaller(w->n, end + longest);
    uint32_t at = 0;
    for (size_t i = reach; i-- > begin;) {
        at = step(w->set, at, w->text[i]);
        if (i < end)
            w->found[i - begin] = w->set->states[at].token;
    }
    w->seen = begin;
    w->seen_to = end;
}

void tg_added_mark(const tg_added_set *set, const void *text, size_t n, uint8_t *written)
{
    uint32_t at = 0;
    for (const uint8_t *s = text; set->n && n-- > 0;) {
        at = step(set, at, s[n]);
        /* With a token, those that it begins with. Where it is marked already, so are they. */
        int32_t last = -1;
        for (uint32_t i = at; set->states[i].token >= 0; i = set->states[i].fail) {
            const int32_t token = set->states[i].token;
            if (token != last && written[token])
                break;
            written[token] = 1;
            last = token;
        }
    }
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
    return !(foreign && w->written[token - w->set->tokens]);
}

static bool stands_alone(const tg_added_walk *w, size_t start, size_t stop)
{
    size_t at;
    return !(start > 0 && class_before(w->text, start, &at) & TG_CLASS_WORD) &&
           !(stop < w->n && class_after(w->text, w->n, stop, &at) & TG_CLASS_WORD);
}

/* The next token in the text, which begins at `search` then, or NULL. */
static const tg_added_token *next_token(tg_added_walk *w)
{
    while (w->set->n && w->search < w->n) {
        while (w->search < w->seen_to && w->found[w->search - w->seen] < 0)
            w->search++;
        if (w->search < w->seen_to)
            return &w->set->tokens[w->found[w->search - w->seen]];
        while (w->search < w->n && !w->set->begins[w->text[w->search]])
            w->search++;
        look_ahead(w);
    }
    return NULL;
}

bool tg_added_next(tg_added_walk *w, size_t *from, size_t *to, int32_t *id)
{
    if (w->ended)
        return false;
    for (const tg_added_token *token; (token = next_token(w));) {
        size_t start = w->search, stop = start + token->n_bytes, at;
        w->search =
            stop; /* also past a match that does not count, and before white space it takes along */
        if (!counts(w, token, start, stop) ||
            (token->single_word && !stands_alone(w, start, stop)))
            continue;
        if (token->lstrip)
            while (start > w->done && class_before(w->text, start, &at) & TG_CLASS_SPACE)
                start = at;
        if (token->rstrip) {
            stop = stop < w->spaces ? w->spaces : stop; /* within what another took along */
            while (stop < w->n && class_after(w->text, w->n, stop, &at) & TG_CLASS_SPACE)
                stop = at;
            w->spaces = stop;
        }
        if (token->lstrip && stop <= w->done)
            continue; /* all of it was taken along */
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
