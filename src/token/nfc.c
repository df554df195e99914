/* nfc.c - normalisation form C, section 3.11 of the Unicode standard.
 *
 * Text is cut in front of every character that is a starter and never joins what stands before it.
 * Such a unit is copied if it is that one character, and else decomposed, ordered and composed by
 * itself. */
#include "token/nfc.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "token/nfc_data.h"

enum {
    CLASS_MASK = 0xff,   /* of a character's properties: the combining class */
    BAD_BYTE = 0x110000, /* "code point" of a byte that is no UTF-8, added to it */
    PLAIN_LEAD =
        0xcc, /* below U+0300, the first character that the tables name, no byte is above */
    HANGUL_S = 0xac00,
    HANGUL_L = 0x1100,
    HANGUL_V = 0x1161,
    HANGUL_T = 0x11a7,
    N_L = 19,
    N_V = 21,
    N_T = 28,
};

typedef struct mark {
    uint32_t code;
    uint32_t ccc; /* combining class */
} mark;

typedef struct composer {
    mark *marks, *sorted; /* of one unit */
    size_t n, room, sorted_room;
    uint8_t *out;
    size_t n_out, out_room;
    tg_error *err;
} composer;

static uint32_t props_of(uint32_t code)
{
    size_t low = 0, high = sizeof nfc_runs / sizeof *nfc_runs - 1;
    if (code >= BAD_BYTE)
        return 0;
    while (low < high) {
        size_t middle = (low + high + 1) / 2;
        if (nfc_runs[middle] >> 9 <= code)
            low = middle;
        else
            high = middle - 1;
    }
    return nfc_runs[low] & 0x1ff;
}

static uint32_t code_at(const uint8_t *s, size_t n, size_t *length)
{
    uint32_t code;
    int k = tg_utf8_decode(s, n, &code);
    *length = k ? (size_t)k : 1;
    return k ? code : (uint32_t)BAD_BYTE + s[0];
}

/* ---- one unit ----------------------------------------------------------------------------- */

static bool push(composer *c, uint32_t code)
{
    if (!tg_grow((void **)&c->marks, &c->room, c->n + 1, sizeof *c->marks, "normalisation", c->err))
        return false;
    c->marks[c->n++] = (mark){code, props_of(code) & CLASS_MASK};
    return true;
}

static const uint32_t *mapping_of(uint32_t code)
{
    size_t low = 0, high = sizeof nfc_maps / sizeof *nfc_maps;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (nfc_maps[middle][0] == code)
            return nfc_maps[middle];
        if (nfc_maps[middle][0] < code)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static bool decompose(composer *c, uint32_t code)
{
    if (code - HANGUL_S < N_L * N_V * N_T) {
        uint32_t s = code - HANGUL_S, t = s % N_T;
        return push(c, HANGUL_L + s / (N_V * N_T)) && push(c, HANGUL_V + s / N_T % N_V) &&
               (t == 0 || push(c, HANGUL_T + t));
    }
    uint32_t seconds[4]; /* no character is mapped more often than that */
    int depth = 0;
    for (const uint32_t *map; depth < 4 && (map = mapping_of(code)) != NULL;) {
        code = map[1];
        if (map[2])
            seconds[depth++] = map[2];
    }
    bool ok = push(c, code);
    while (ok && depth > 0)
        ok = push(c, seconds[--depth]);
    return ok;
}

/* Orders marks [from, to), whose classes are not 0, by class and keeps the order within a class: by
 * counting, since a run may be as long as the text. */
static bool order_run(composer *c, size_t from, size_t to)
{
    size_t start[257] = {0};
    for (size_t i = from; i < to; i++)
        start[c->marks[i].ccc + 1]++;
    for (size_t k = 1; k < 257; k++)
        start[k] += start[k - 1];
    if (!tg_grow((void **)&c->sorted, &c->sorted_room, to - from, sizeof *c->sorted,
                 "normalisation", c->err))
        return false;
    for (size_t i = from; i < to; i++)
        c->sorted[start[c->marks[i].ccc]++] = c->marks[i];
    memcpy(c->marks + from, c->sorted, (to - from) * sizeof *c->sorted);
    return true;
}

static bool order(composer *c)
{
    for (size_t i = 0; i < c->n;) {
        size_t from = i;
        bool ordered = true;
        for (; i < c->n && c->marks[i].ccc; i++)
            ordered &= i == from || c->marks[i - 1].ccc <= c->marks[i].ccc;
        if (!ordered && !order_run(c, from, i))
            return false;
        i += i == from;
    }
    return true;
}

/* The character that the two make, or 0. */
static uint32_t composite_of(uint32_t a, uint32_t b)
{
    if (a - HANGUL_L < N_L && b - HANGUL_V < N_V)
        return HANGUL_S + ((a - HANGUL_L) * N_V + (b - HANGUL_V)) * N_T;
    if (a - HANGUL_S < N_L * N_V * N_T && (a - HANGUL_S) % N_T == 0 && b - HANGUL_T - 1 < N_T - 1)
        return a + (b - HANGUL_T);
    size_t low = 0, high = sizeof nfc_composites / sizeof *nfc_composites;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const uint32_t *map = nfc_maps[nfc_composites[middle]];
        if (map[1] == a && map[2] == b)
            return map[0];
        if (map[1] < a || (map[1] == a && map[2] < b))
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

/* Joins each mark with the last starter unless another, of the same or a higher class, stands
 * between. */
static void compose(composer *c)
{
    size_t n = 0, starter = SIZE_MAX;
    for (size_t i = 0; i < c->n; i++) {
        mark m = c->marks[i];
        if (starter != SIZE_MAX && (n == starter + 1 || c->marks[n - 1].ccc < m.ccc)) {
            uint32_t joined = composite_of(c->marks[starter].code, m.code);
            if (joined) {
                c->marks[starter].code = joined;
                continue;
            }
        }
        if (m.ccc == 0)
            starter = n;
        c->marks[n++] = m;
    }
    c->n = n;
}

static bool append(composer *c, const void *bytes, size_t n)
{
    if (n == 0)
        return true;
    if (!tg_grow((void **)&c->out, &c->out_room, c->n_out + n, 1, "normalised text", c->err))
        return false;
    memcpy(c->out + c->n_out, bytes, n);
    c->n_out += n;
    return true;
}

static bool normalise_unit(composer *c, const uint8_t *s, size_t n)
{
    c->n = 0;
    for (size_t i = 0, length; i < n; i += length)
        if (!decompose(c, code_at(s + i, n - i, &length)))
            return false;
    if (!order(c))
        return false;
    compose(c);
    for (size_t i = 0; i < c->n; i++) {
        uint32_t code = c->marks[i].code;
        uint8_t bytes[4] = {(uint8_t)code};
        if (!append(c, bytes, code < BAD_BYTE ? (size_t)tg_utf8_encode(code, bytes) : 1))
            return false;
    }
    return true;
}

/* ---- the text ----------------------------------------------------------------------------- */

tg_status tg_nfc(const uint8_t *text, size_t n, uint8_t **out, size_t *n_out, tg_error *err)
{
    composer c = {.err = err};
    size_t copied = 0; /* text up to here is in c.out */
    size_t unit = 0;   /* where the current unit began */
    bool touched = false, ok = true;
    *out = NULL;
    for (size_t i = 0, length = 0; ok && i <= n; i += length) {
        length = 1;
        if (i < n && text[i] < PLAIN_LEAD && !touched) {
            if (text[i] < 0x80 || text[i] >= 0xc0)
                unit = i;
            continue;
        }
        uint32_t props = i < n ? props_of(code_at(text + i, n - i, &length)) : 0;
        if (props) {
            touched = true;
            continue;
        }
        if (touched) {
            ok = append(&c, text + copied, unit - copied) &&
                 normalise_unit(&c, text + unit, i - unit);
            copied = i;
        }
        touched = false;
        unit = i;
    }
    if (ok && copied > 0)
        ok = append(&c, text + copied, n - copied);
    free(c.marks);
    free(c.sorted);
    if (!ok || copied == 0) {
        free(c.out);
        return ok ? TG_OK : TG_E_RESOURCE;
    }
    *out = c.out;
    *n_out = c.n_out;
    return TG_OK;
}
