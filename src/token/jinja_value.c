/* jinja_value.c - see jinja_value.h. */
#include "token/jinja_value.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- memory and failure ------------------------------------------------------------------------ */

enum { CHUNK = 64 << 10 };

void *tg_jinja_alloc(tg_jinja *j, size_t n, size_t size)
{
    uint64_t bytes;
    if (j->failed)
        return NULL;
    if (!tg_mul_u64(n ? n : 1, size, &bytes) || tg_round_up(bytes, 16) > j->max_bytes - j->n_bytes) {
        tg_jinja_fail(j, "takes more than %" PRIu64 " bytes of memory", j->max_bytes);
        return NULL;
    }
    bytes = tg_round_up(bytes, 16);
    j->n_bytes += bytes;
    if (bytes > j->left) {
        size_t room = bytes > CHUNK ? bytes : CHUNK;
        j->chunk = tg_arena_alloc(j->arena, room, 1, "a chat template", j->err);
        j->failed = !j->chunk;
        if (j->failed)
            return NULL;
        j->left = room;
    }
    void *p = j->chunk;
    j->chunk += bytes;
    j->left -= bytes;
    return p;
}

tg_jvalue tg_jinja_fail(tg_jinja *j, const char *fmt, ...)
{
    if (!j->failed) {
        char what[512];
        va_list args;
        va_start(args, fmt);
        vsnprintf(what, sizeof what, fmt, args);
        va_end(args);
        tg_fail(j->err, TG_E_MODEL, j->file, "chat template, line %d: %s", j->line, what);
    }
    j->failed = true;
    return (tg_jvalue){0};
}

tg_jvalue tg_jinja_unknown(tg_jinja *j, const char *what, tg_jtext name)
{
    char bytes[64];
    tg_quoted q;
    size_t n = name.n < sizeof bytes ? name.n : sizeof bytes;
    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)name.s[i];
    return tg_jinja_fail(j, "%s '%s' is not supported", what, tg_quote(&q, bytes, n));
}

enum { STEP = 16 };

bool tg_jinja_work(tg_jinja *j, size_t n)
{
    enum { STEPS_MAX = 10000000 };
    j->work += n;
    if (j->work / STEP > STEPS_MAX)
        tg_jinja_fail(j, "takes more than %d steps", STEPS_MAX);
    return !j->failed;
}

bool tg_jinja_enter(tg_jinja *j)
{
    enum { NESTED_MAX = 128 };
    if (++j->nested > NESTED_MAX)
        tg_jinja_fail(j, "nested more than %d deep", NESTED_MAX);
    return tg_jinja_work(j, STEP);
}

/* Doubles what does not suffice for one more of `size` bytes. */
static bool grow(tg_jinja *j, void *array, size_t *room, size_t need, size_t size)
{
    void **at = array;
    if (need <= *room)
        return true;
    size_t more = need > 2 * *room ? need + 8 : 2 * *room;
    void *p = tg_jinja_alloc(j, more, size);
    if (!p)
        return false;
    if (*room)
        memcpy(p, *at, *room * size);
    *at = p;
    *room = more;
    return true;
}

/* ---- texts ------------------------------------------------------------------------------------- */

tg_jtext tg_jtext_from(tg_jinja *j, const void *bytes, size_t n, unsigned flag)
{
    const uint8_t *from = bytes;
    uint16_t *s = tg_jinja_alloc(j, n, sizeof *s);
    if (!s)
        return (tg_jtext){0};
    for (size_t i = 0; i < n; i++)
        s[i] = (uint16_t)(from[i] | flag);
    return (tg_jtext){s, n};
}

tg_jvalue tg_jtext_literal(tg_jinja *j, const char *s)
{
    return TG_JVALUE(TEXT, text, tg_jtext_from(j, s, strlen(s), 0));
}

static uint8_t byte_at(tg_jtext text, size_t i)
{
    return (uint8_t)text.s[i];
}

/* How far the texts are the same, b from its beginning. */
static size_t common(tg_jtext a, size_t at, tg_jtext b)
{
    size_t i = 0;
    while (i < b.n && byte_at(a, at + i) == byte_at(b, i))
        i++;
    return i;
}

bool tg_jtext_is(tg_jtext text, const char *s)
{
    size_t i = 0;
    while (i < text.n && s[i] && byte_at(text, i) == (uint8_t)s[i])
        i++;
    return i == text.n && !s[i];
}

int tg_jtext_compare(tg_jinja *j, tg_jtext a, tg_jtext b)
{
    size_t i = 0;
    while (i < a.n && i < b.n && byte_at(a, i) == byte_at(b, i))
        i++;
    tg_jinja_work(j, i);
    if (i < a.n && i < b.n)
        return byte_at(a, i) < byte_at(b, i) ? -1 : 1;
    return a.n < b.n ? -1 : a.n > b.n;
}

bool tg_jtext_same(tg_jinja *j, tg_jtext a, tg_jtext b)
{
    enum { TO_REFUSE = 4 }; /* bytes that are as much work as what differs at once */
    tg_jinja_work(j, TO_REFUSE);
    return a.n == b.n && tg_jtext_compare(j, a, b) == 0;
}

size_t tg_jtext_find(tg_jinja *j, tg_jtext a, tg_jtext b, size_t from)
{
    for (size_t same, begin = from; from <= a.n && b.n <= a.n - from && !j->failed; from++) {
        same = common(a, from, b);
        tg_jinja_work(j, same == b.n ? same + from - begin : same);
        if (same == b.n)
            return from;
    }
    tg_jinja_work(j, a.n);
    return a.n + 1;
}

static bool continues(tg_jtext text, size_t i)
{
    return (byte_at(text, i) & 0xc0) == 0x80;
}

/* The end of the character at i. */
static size_t character_end(tg_jtext text, size_t i)
{
    for (i++; i < text.n && continues(text, i);)
        i++;
    return i;
}

static size_t character_begin(tg_jtext text, size_t end)
{
    for (end--; end > 0 && continues(text, end);)
        end--;
    return end;
}

size_t tg_jtext_length(tg_jinja *j, tg_jtext text)
{
    size_t n = 0;
    tg_jinja_work(j, text.n);
    for (size_t i = 0; i < text.n; i = character_end(text, i))
        n++;
    return n;
}

size_t tg_jtext_at(tg_jtext text, size_t character)
{
    size_t i = 0;
    for (; i < text.n && character > 0; character--)
        i = character_end(text, i);
    return i;
}

/* What Python's str.isspace says of a character. */
static bool is_space(tg_jtext c)
{
    uint32_t code = byte_at(c, 0);
    if (c.n == 1)
        return code == ' ' || (code >= 9 && code <= 13) || (code >= 0x1c && code <= 0x1f);
    if (c.n == 2)
        code = (code & 0x1fu) << 6 | (byte_at(c, 1) & 0x3fu);
    else if (c.n == 3)
        code = (code & 0x0fu) << 12 | (byte_at(c, 1) & 0x3fu) << 6 | (byte_at(c, 2) & 0x3fu);
    return code == 0x85 || code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 ||
           code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

static bool goes(tg_jinja *j, tg_jtext character, const tg_jtext *set)
{
    return set ? tg_jtext_find(j, *set, character, 0) <= set->n : is_space(character);
}

tg_jtext tg_jtext_strip(tg_jinja *j, tg_jtext text, bool left, bool right, const tg_jtext *set)
{
    size_t from = 0, to = text.n;
    for (size_t end; left && from < to; from = end) {
        end = character_end(text, from);
        if (!goes(j, tg_jtext_cut(text, from, end), set))
            break;
    }
    for (size_t begin; right && to > from; to = begin) {
        begin = character_begin(text, to);
        if (!goes(j, tg_jtext_cut(text, begin, to), set))
            break;
    }
    tg_jinja_work(j, text.n - (to - from));
    return tg_jtext_cut(text, from, to);
}

void tg_jbuffer_add(tg_jinja *j, tg_jbuffer *b, tg_jtext text)
{
    if (!text.n || !grow(j, &b->s, &b->room, b->n + text.n, sizeof *b->s))
        return;
    memcpy(b->s + b->n, text.s, text.n * sizeof *b->s);
    b->n += text.n;
}

void tg_jbuffer_put(tg_jinja *j, tg_jbuffer *b, const char *s)
{
    for (uint16_t unit; *s; s++) {
        unit = (uint8_t)*s;
        tg_jbuffer_add(j, b, (tg_jtext){&unit, 1});
    }
}

/* ---- lists and dictionaries --------------------------------------------------------------------- */

/* What failed yields something to write into, which nobody reads. */
tg_jlist *tg_jlist_new(tg_jinja *j)
{
    static tg_jlist nothing;
    tg_jlist *list = tg_jinja_alloc(j, 1, sizeof *list);
    return list ? list : &nothing;
}

void tg_jlist_add(tg_jinja *j, tg_jlist *list, tg_jvalue value)
{
    if (!j->failed && grow(j, &list->v, &list->room, list->n + 1, sizeof *list->v))
        list->v[list->n++] = value;
}

tg_jdict *tg_jdict_new(tg_jinja *j)
{
    static tg_jdict nothing;
    tg_jdict *dict = tg_jinja_alloc(j, 1, sizeof *dict);
    return dict ? dict : &nothing;
}

static struct tg_jentry *find(tg_jinja *j, const tg_jdict *dict, tg_jtext key)
{
    for (size_t i = 0; i < dict->n; i++)
        if (tg_jtext_same(j, dict->v[i].key, key))
            return &dict->v[i];
    return NULL;
}

void tg_jdict_set(tg_jinja *j, tg_jdict *dict, tg_jtext key, tg_jvalue value)
{
    struct tg_jentry *entry = find(j, dict, key);
    if (j->failed)
        return;
    if (entry)
        entry->value = value;
    else if (grow(j, &dict->v, &dict->room, dict->n + 1, sizeof *dict->v))
        dict->v[dict->n++] = (struct tg_jentry){key, value};
}

tg_jvalue tg_jdict_get(tg_jinja *j, const tg_jdict *dict, tg_jtext key)
{
    const struct tg_jentry *entry = find(j, dict, key);
    return entry ? entry->value : (tg_jvalue){0};
}

tg_jvalue tg_jdict_pair(tg_jinja *j, const struct tg_jentry *entry)
{
    tg_jlist *pair = tg_jlist_new(j);
    tg_jlist_add(j, pair, TG_JVALUE(TEXT, text, entry->key));
    tg_jlist_add(j, pair, entry->value);
    return TG_JVALUE(LIST, list, pair);
}

/* ---- values ------------------------------------------------------------------------------------ */

bool tg_jvalue_true(tg_jvalue v)
{
    switch (v.kind) {
    case TG_J_UNDEFINED:
    case TG_J_NONE:
        return false;
    case TG_J_BOOL:
    case TG_J_INT:
        return v.i != 0;
    case TG_J_TEXT:
        return v.text.n > 0;
    case TG_J_LIST:
        return v.list->n > 0;
    case TG_J_DICT:
        return v.dict->n > 0 || v.dict->is_namespace;
    case TG_J_MACRO:
        return true;
    }
    return false;
}

static bool is_number(tg_jvalue v)
{
    return v.kind == TG_J_INT || v.kind == TG_J_BOOL;
}

static bool equal_lists(tg_jinja *j, const tg_jlist *a, const tg_jlist *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; same && a != b && i < a->n; i++)
        same = tg_jvalue_equal(j, a->v[i], b->v[i]);
    return same;
}

static bool equal_dicts(tg_jinja *j, const tg_jdict *a, const tg_jdict *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; same && a != b && i < a->n; i++)
        same = tg_jvalue_equal(j, a->v[i].value, tg_jdict_get(j, b, a->v[i].key));
    return same;
}

bool tg_jvalue_equal(tg_jinja *j, tg_jvalue a, tg_jvalue b)
{
    if (!tg_jinja_work(j, 1))
        return false;
    if (is_number(a) && is_number(b))
        return a.i == b.i;
    if (a.kind != b.kind)
        return false;
    if (a.kind == TG_J_TEXT)
        return tg_jtext_same(j, a.text, b.text);
    if (a.kind == TG_J_MACRO)
        return a.macro == b.macro;
    if (a.kind != TG_J_LIST && a.kind != TG_J_DICT)
        return true;
    bool same = tg_jinja_enter(j) &&
                (a.kind == TG_J_LIST ? equal_lists(j, a.list, b.list) : equal_dicts(j, a.dict, b.dict));
    tg_jinja_leave(j);
    return same;
}

const char *tg_jvalue_type(tg_jvalue v)
{
    static const char *const names[] = {"something undefined", "none", "a boolean", "an integer",
                                        "a string",            "a list", "a dictionary", "a macro"};
    return names[v.kind];
}

void tg_jvalue_print(tg_jinja *j, tg_jbuffer *out, tg_jvalue v)
{
    char digits[24];
    switch (v.kind) {
    case TG_J_UNDEFINED:
        return;
    case TG_J_NONE:
        tg_jbuffer_put(j, out, "None");
        return;
    case TG_J_BOOL:
        tg_jbuffer_put(j, out, v.i ? "True" : "False");
        return;
    case TG_J_INT:
        snprintf(digits, sizeof digits, "%" PRId64, v.i);
        tg_jbuffer_put(j, out, digits);
        return;
    case TG_J_TEXT:
        tg_jbuffer_add(j, out, v.text);
        return;
    default:
        tg_jinja_fail(j, "printing %s is not supported", tg_jvalue_type(v));
    }
}

static void put_json_text(tg_jinja *j, tg_jbuffer *out, tg_jtext text)
{
    static const char plain[] = "\"\\\n\r\t\b\f", named[] = "\"\\nrtbf";
    tg_jbuffer_put(j, out, "\"");
    for (size_t i = 0; i < text.n; i++) {
        char escape[8] = "";
        uint8_t c = byte_at(text, i);
        const char *at = c ? strchr(plain, c) : NULL;
        if (at)
            snprintf(escape, sizeof escape, "\\%c", named[at - plain]);
        else if (c < 0x20)
            snprintf(escape, sizeof escape, "\\u%04x", c);
        if (escape[0])
            tg_jbuffer_add(j, out, tg_jtext_from(j, escape, strlen(escape), text.s[i] & TG_UNIT_FLAGS));
        else
            tg_jbuffer_add(j, out, tg_jtext_cut(text, i, i + 1));
    }
    tg_jbuffer_put(j, out, "\"");
}

static void put_json(tg_jinja *j, tg_jbuffer *out, tg_jvalue v)
{
    switch (v.kind) {
    case TG_J_NONE:
        tg_jbuffer_put(j, out, "null");
        return;
    case TG_J_BOOL:
        tg_jbuffer_put(j, out, v.i ? "true" : "false");
        return;
    case TG_J_TEXT:
        put_json_text(j, out, v.text);
        return;
    case TG_J_LIST:
        tg_jbuffer_put(j, out, "[");
        for (size_t i = 0; i < v.list->n; i++) {
            tg_jbuffer_put(j, out, i ? ", " : "");
            tg_jvalue_json(j, out, v.list->v[i]);
        }
        tg_jbuffer_put(j, out, "]");
        return;
    case TG_J_DICT:
        tg_jbuffer_put(j, out, "{");
        for (size_t i = 0; i < v.dict->n; i++) {
            tg_jbuffer_put(j, out, i ? ", " : "");
            put_json_text(j, out, v.dict->v[i].key);
            tg_jbuffer_put(j, out, ": ");
            tg_jvalue_json(j, out, v.dict->v[i].value);
        }
        tg_jbuffer_put(j, out, "}");
        return;
    case TG_J_INT:
        tg_jvalue_print(j, out, v);
        return;
    default:
        tg_jinja_fail(j, "%s is no JSON", tg_jvalue_type(v));
    }
}

void tg_jvalue_json(tg_jinja *j, tg_jbuffer *out, tg_jvalue v)
{
    if (tg_jinja_enter(j))
        put_json(j, out, v);
    tg_jinja_leave(j);
}

tg_jlist *tg_jvalue_items(tg_jinja *j, tg_jvalue v)
{
    if (v.kind == TG_J_LIST)
        return v.list;
    tg_jlist *items = tg_jlist_new(j);
    if (v.kind == TG_J_DICT && !v.dict->is_namespace)
        for (size_t i = 0; i < v.dict->n; i++)
            tg_jlist_add(j, items, TG_JVALUE(TEXT, text, v.dict->v[i].key));
    else if (v.kind == TG_J_TEXT)
        for (size_t i = 0, end; i < v.text.n; i = end) {
            end = character_end(v.text, i);
            tg_jlist_add(j, items, TG_JVALUE(TEXT, text, tg_jtext_cut(v.text, i, end)));
        }
    else if (v.kind != TG_J_UNDEFINED)
        tg_jinja_fail(j, "%s cannot be walked through", tg_jvalue_type(v));
    return items;
}
