/* json_walk.c - see json_walk.h. */
#include "base/json_walk.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static size_t skip_spaces(const uint8_t *s, size_t n, size_t i)
{
    while (i < n && is_space(s[i]))
        i++;
    return i;
}

/* ---- finding members: no checks, those come later -------------------------------------------- */

/* Behind the string whose quote is at i. */
static size_t skip_string(const uint8_t *s, size_t n, size_t i)
{
    for (i++; i < n && s[i] != '"'; i++)
        i += s[i] == '\\';
    return i < n ? i + 1 : n;
}

/* Behind the value at i, and what white space there is up to the comma or the end if it has no
 * brackets. */
static size_t skip_value(const uint8_t *s, size_t n, size_t i)
{
    size_t depth = 0;
    for (; i < n; i++) {
        switch (s[i]) {
        case '"':
            i = skip_string(s, n, i) - 1;
            break;
        case '{':
        case '[':
            depth++;
            break;
        case '}':
        case ']':
            if (depth == 0)
                return i;
            if (--depth == 0)
                return i + 1;
            break;
        case ',':
            if (depth == 0)
                return i;
            break;
        default:
            break;
        }
    }
    return n;
}

/* The values of the members keys[0 .. n) of the object at i. With `begins`, the first found is
 * enough, and only where it begins is told. */
static void find_members(const uint8_t *s, size_t n_bytes, size_t i, const char *const *keys,
                         size_t n, bool begins, tg_json_range *ranges)
{
    memset(ranges, 0, n * sizeof *ranges);
    if (i >= n_bytes || s[i] != '{')
        return;
    for (i = skip_spaces(s, n_bytes, i + 1); i < n_bytes && s[i] == '"';
         i = skip_spaces(s, n_bytes, i + 1)) {
        size_t name = i + 1;
        i = skip_string(s, n_bytes, i);
        size_t n_name = i - 1 - name, k = 0, value = skip_spaces(s, n_bytes, i);
        if (value == n_bytes || s[value] != ':')
            return;
        value = skip_spaces(s, n_bytes, value + 1);
        while (k < n && !(strlen(keys[k]) == n_name && memcmp(s + name, keys[k], n_name) == 0))
            k++;
        if (k < n && begins) {
            ranges[k].from = value;
            return;
        }
        i = skip_value(s, n_bytes, value);
        if (k < n && ranges[k].to == 0 && i > value) /* no value at all is the parser's to refuse */
            ranges[k] = (tg_json_range){value, i};
        i = skip_spaces(s, n_bytes, i);
        if (i == n_bytes || s[i] != ',')
            return;
    }
}

tg_json_range tg_json_range_all(const void *bytes, size_t n)
{
    return (tg_json_range){n >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0, n};
}

json_t *tg_json_parse_around(const void *bytes, size_t n_bytes, const char *file,
                             const char *parent, const char *const *keys, tg_json_range *ranges,
                             size_t n, tg_error *err)
{
    const uint8_t *s = n_bytes ? bytes : (const void *)"";
    size_t start = skip_spaces(s, n_bytes, tg_json_range_all(bytes, n_bytes).from);
    if (parent) {
        find_members(s, n_bytes, start, &parent, 1, true, ranges);
        start = ranges[0].from ? ranges[0].from : n_bytes;
    }
    find_members(s, n_bytes, start, keys, n, false, ranges);
    char *rest = tg_alloc(n_bytes + 4 * n, 1, "parsing JSON", err);
    if (!rest)
        return NULL;

    size_t at = 0, used = 0;
    for (size_t k = 0; k <= n; k++) { /* the ranges, in the text's order */
        const tg_json_range *next = NULL;
        for (size_t i = 0; i < n; i++)
            if (ranges[i].to && ranges[i].from >= at && (!next || ranges[i].from < next->from))
                next = &ranges[i];
        size_t to = next ? next->from : n_bytes;
        memcpy(rest + used, s + at, to - at);
        used += to - at;
        at = to;
        if (next) {
            memcpy(rest + used, "null", 4);
            used += 4;
            at = next->to;
        }
    }
    json_t *root = tg_json_parse(rest, used, file, err);
    free(rest);
    /* Offsets in a complaint are those of the whole text. */
    return root || (err && err->status == TG_E_RESOURCE) ? root
                                                         : tg_json_parse(bytes, n_bytes, file, err);
}

/* ---- walking ------------------------------------------------------------------------------- */

static bool fail(tg_json_walk *w, const char *what)
{
    if (!w->failed)
        tg_fail(w->err, TG_E_MODEL, w->file, "not valid JSON: %s (byte offset %zu)", what, w->at);
    w->failed = true;
    return false;
}

static uint8_t peek(tg_json_walk *w)
{
    w->at = skip_spaces(w->s, w->n, w->at);
    return w->failed || w->at == w->n ? 0 : w->s[w->at];
}

tg_json_walk tg_json_walk_start(const void *bytes, tg_json_range range, const char *file,
                                tg_error *err)
{
    return (tg_json_walk){.s = bytes, .n = range.to, .at = range.from, .file = file, .err = err};
}

tg_status tg_json_walk_end(tg_json_walk *w)
{
    peek(w);
    if (!w->failed && w->at < w->n) /* a NUL as well */
        fail(w, "text after the value");
    free(w->room[0]);
    free(w->room[1]);
    return w->failed ? w->err->status : TG_OK;
}

static size_t number_end(const tg_json_walk *w, bool *integer)
{
    size_t i = w->at;
    *integer = true;
    for (; i < w->n && memchr("+-.0123456789Ee", w->s[i], 15); i++)
        *integer &= (w->s[i] >= '0' && w->s[i] <= '9') || (w->s[i] == '-' && i == w->at);
    return i;
}

const char *tg_json_walk_type(tg_json_walk *w)
{
    bool integer;
    switch (peek(w)) {
    case 0:
        return "nothing";
    case '{':
        return "object";
    case '[':
        return "array";
    case '"':
        return "string";
    case 't':
    case 'f':
        return "boolean";
    case 'n':
        return "null";
    default:
        number_end(w, &integer);
        return integer ? "integer" : "number";
    }
}

bool tg_json_walk_open(tg_json_walk *w, char open)
{
    if (peek(w) != (uint8_t)open)
        return fail(w, "a value of another type is due");
    w->at++;
    w->begun = true;
    return true;
}

bool tg_json_walk_next(tg_json_walk *w, char close)
{
    uint8_t c = peek(w);
    bool first = w->begun;
    w->begun = false;
    if (c == (uint8_t)close) {
        w->at++;
        return false;
    }
    if (first)
        return !w->failed;
    if (c != ',')
        return fail(w, "a comma or the end is due");
    w->at++;
    return true;
}

/* The four hexadecimal digits at i, or -1. */
static int32_t hex4(const tg_json_walk *w, size_t i)
{
    int32_t v = 0;
    for (size_t k = i; k < i + 4; k++) {
        uint8_t c = k < w->n ? w->s[k] : 0;
        int digit = c >= '0' && c <= '9'                     ? c - '0'
                    : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                             : -1;
        if (digit < 0)
            return -1;
        v = v << 4 | digit;
    }
    return v;
}

/* What the escape at w->at, behind the backslash, stands for; w->at moves behind it. */
static bool unescape(tg_json_walk *w, uint32_t *code)
{
    static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    uint8_t c = w->at < w->n ? w->s[w->at] : 0;
    const char *known = c ? strchr(names, c) : NULL;
    if (known) {
        *code = (uint8_t)meant[known - names];
        w->at++;
        return true;
    }
    int32_t high = c == 'u' ? hex4(w, w->at + 1) : -1;
    if (high <= 0)
        return fail(w, high < 0 ? "an unknown escape" : "a NUL in a string");
    *code = (uint32_t)high;
    w->at += 5;
    if (high < 0xd800 || high > 0xdfff)
        return true;
    int32_t low =
        high < 0xdc00 && w->n - w->at >= 6 && w->s[w->at] == '\\' && w->s[w->at + 1] == 'u'
            ? hex4(w, w->at + 2)
            : -1;
    if (low < 0xdc00 || low > 0xdfff)
        return fail(w, "half of a surrogate pair");
    *code = 0x10000 + ((uint32_t)(high - 0xd800) << 10) + (uint32_t)(low - 0xdc00);
    w->at += 6;
    return true;
}

/* Bytes from `from` on that are a string's own, up to its quote, a backslash, or what it may not
 * have. */
static size_t plain_end(const tg_json_walk *w, size_t from, bool *ascii)
{
    size_t i = from;
    uint8_t seen = 0;
    while (i < w->n && w->s[i] != '"' && w->s[i] != '\\' && w->s[i] >= 0x20)
        seen |= w->s[i++];
    *ascii = seen < 0x80;
    return i;
}

/* The rest of a string that has escapes, from its beginning on. */
static bool read_escaped(tg_json_walk *w, int slot, size_t *n)
{
    for (*n = 0;;) {
        bool ascii;
        size_t end = plain_end(w, w->at, &ascii), plain = end - w->at;
        uint32_t code = 0;
        if (!tg_grow((void **)&w->room[slot], &w->rooms[slot], *n + plain + 4, 1, "a JSON string",
                     w->err)) {
            w->failed = true;
            return false;
        }
        memcpy(w->room[slot] + *n, w->s + w->at, plain);
        if (!ascii && !tg_utf8_valid(w->s + w->at, plain))
            return fail(w, "a string is not UTF-8");
        *n += plain;
        w->at = end;
        if (end == w->n || w->s[end] != '\\')
            return true;
        w->at++;
        if (!unescape(w, &code))
            return false;
        *n += (size_t)tg_utf8_encode(code, w->room[slot] + *n);
    }
}

bool tg_json_walk_string(tg_json_walk *w, int slot, bool key, const uint8_t **bytes, size_t *n)
{
    if (peek(w) != '"')
        return fail(w, "a string is due");
    size_t from = ++w->at;
    bool ascii;
    size_t end = plain_end(w, from, &ascii);
    *bytes = w->s + from;
    *n = end - from;
    if (end < w->n && w->s[end] == '\\') {
        if (!read_escaped(w, slot, n))
            return false;
        *bytes = w->room[slot];
    } else if (!ascii && !tg_utf8_valid(*bytes, *n)) {
        return fail(w, "a string is not UTF-8");
    } else {
        w->at = end;
    }
    if (w->at == w->n || w->s[w->at] != '"')
        return fail(w, w->at == w->n ? "a string has no end" : "a control byte in a string");
    w->at++;
    if (key && peek(w) != ':')
        return fail(w, "a colon is due");
    w->at += key;
    return true;
}

bool tg_json_walk_int(tg_json_walk *w, int64_t *value)
{
    peek(w);
    bool integer;
    size_t end = number_end(w, &integer), i = w->at;
    bool minus = i < end && w->s[i] == '-';
    i += minus;
    if (w->failed || !integer || i == end)
        return fail(w, "an integer is due");
    if (w->s[i] == '0' && end - i > 1)
        return fail(w, "a number begins with zero");
    int64_t v = 0;
    for (; i < end; i++)
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_sub_overflow(v, w->s[i] - '0', &v)) /* downwards: there is one more */
            return fail(w, "an integer beyond 64 bits");
    if (!minus && __builtin_sub_overflow(0, v, &v))
        return fail(w, "an integer beyond 64 bits");
    *value = v;
    w->at = end;
    return true;
}
