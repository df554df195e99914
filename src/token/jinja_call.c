/* jinja_call.c - what a chat template can call: operators, filters, tests, methods and functions.
 *
 * To add one: a function and a row of its table. They do what Jinja's and Python's do, or fail by name. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "token/jinja_run.h"

typedef tg_jvalue (*called)(tg_jinja *j, tg_jvalue of, const tg_jargs *args);

typedef struct row {
    const char *name;
    called call;
    tg_jkind kind; /* of the value that a method is of */
    int max_args;  /* by position; by name a function of the table looks itself */
} row;

static tg_jvalue text_value(tg_jtext text)
{
    return TG_JVALUE(TEXT, text, text);
}

static tg_jvalue argument(tg_jinja *j, const tg_jargs *args, size_t i, const char *name)
{
    return i < args->at->n ? args->at->v[i] : name ? tg_jdict_get(j, args->named, tg_jtext_literal(j, name).text)
                                                   : (tg_jvalue){0};
}

static tg_jtext need_text(tg_jinja *j, tg_jvalue v)
{
    if (v.kind != TG_J_TEXT)
        tg_jinja_fail(j, "%s where a string is needed", tg_jvalue_type(v));
    return v.kind == TG_J_TEXT ? v.text : (tg_jtext){0};
}

static tg_jtext printed(tg_jinja *j, tg_jvalue v)
{
    tg_jbuffer text = {0};
    if (v.kind == TG_J_TEXT)
        return v.text;
    tg_jvalue_print(j, &text, v);
    return tg_jbuffer_text(&text);
}

/* ---- operators ---------------------------------------------------------------------------------- */

static tg_jvalue undefined_operand(tg_jinja *j, tg_jtext name, tg_jvalue a, tg_jvalue b)
{
    char op[4] = "";
    for (size_t i = 0; i < name.n && i < 3; i++)
        op[i] = (char)name.s[i];
    return tg_jinja_fail(j, "%s %s %s is not supported", tg_jvalue_type(a), op, tg_jvalue_type(b));
}

static bool is_in(tg_jinja *j, tg_jvalue a, tg_jvalue b)
{
    if (b.kind == TG_J_TEXT)
        return tg_jtext_find(j, b.text, need_text(j, a), 0) <= b.text.n;
    tg_jlist *items = tg_jvalue_items(j, b);
    bool found = false;
    for (size_t i = 0; i < items->n && !found && !j->failed; i++)
        found = tg_jvalue_equal(j, a, items->v[i]);
    return found;
}

static tg_jvalue join_two(tg_jinja *j, tg_jtext a, tg_jtext b)
{
    tg_jbuffer text = {0};
    if (!a.n || !b.n)
        return text_value(a.n ? a : b);
    tg_jbuffer_add(j, &text, a);
    tg_jbuffer_add(j, &text, b);
    return text_value(tg_jbuffer_text(&text));
}

static tg_jvalue join_lists(tg_jinja *j, const tg_jlist *a, const tg_jlist *b)
{
    tg_jlist *list = tg_jlist_new(j);
    for (size_t i = 0; i < a->n; i++)
        tg_jlist_add(j, list, a->v[i]);
    for (size_t i = 0; i < b->n; i++)
        tg_jlist_add(j, list, b->v[i]);
    return TG_JVALUE(LIST, list, list);
}

/* Of two integers, as Python rounds them. */
static tg_jvalue calculate(tg_jinja *j, tg_jtext name, tg_jvalue a, tg_jvalue b)
{
    int64_t r = 0;
    bool good = false;
    if (tg_jtext_is(name, "+"))
        good = !__builtin_add_overflow(a.i, b.i, &r);
    else if (tg_jtext_is(name, "-"))
        good = !__builtin_sub_overflow(a.i, b.i, &r);
    else if (tg_jtext_is(name, "*"))
        good = !__builtin_mul_overflow(a.i, b.i, &r);
    else if ((tg_jtext_is(name, "//") || tg_jtext_is(name, "%")) && b.i != 0 && b.i != -1) {
        good = true;
        int64_t rest = a.i % b.i;
        bool other_sign = rest != 0 && (rest < 0) != (b.i < 0);
        r = tg_jtext_is(name, "%") ? rest + (other_sign ? b.i : 0) : a.i / b.i - other_sign;
    }
    return good ? TG_JVALUE(INT, i, r) : undefined_operand(j, name, a, b);
}

tg_jvalue tg_jinja_binary(tg_jinja *j, tg_jtext name, tg_jvalue a, tg_jvalue b)
{
    bool ints = (a.kind == TG_J_INT || a.kind == TG_J_BOOL) && (b.kind == TG_J_INT || b.kind == TG_J_BOOL);
    bool texts = a.kind == TG_J_TEXT && b.kind == TG_J_TEXT;
    if (j->failed)
        return a;
    if (tg_jtext_is(name, "=="))
        return tg_jbool(tg_jvalue_equal(j, a, b));
    if (tg_jtext_is(name, "!="))
        return tg_jbool(!tg_jvalue_equal(j, a, b));
    if (tg_jtext_is(name, "in"))
        return tg_jbool(is_in(j, a, b));
    if (tg_jtext_is(name, "~"))
        return join_two(j, printed(j, a), printed(j, b));
    if ((ints || texts) && (name.s[0] == '<' || name.s[0] == '>')) {
        int order = texts ? tg_jtext_compare(j, a.text, b.text) : a.i < b.i ? -1 : a.i > b.i;
        return tg_jbool((name.s[0] == '<' ? order < 0 : order > 0) || (name.n == 2 && order == 0));
    }
    if (texts && tg_jtext_is(name, "+"))
        return join_two(j, a.text, b.text);
    if (a.kind == TG_J_LIST && b.kind == TG_J_LIST && tg_jtext_is(name, "+"))
        return join_lists(j, a.list, b.list);
    return ints ? calculate(j, name, a, b) : undefined_operand(j, name, a, b);
}

tg_jvalue tg_jinja_member(tg_jinja *j, tg_jvalue of, tg_jtext name)
{
    if (of.kind == TG_J_UNDEFINED)
        return tg_jinja_unknown(j, "of something undefined, member", name);
    return of.kind == TG_J_DICT ? tg_jdict_get(j, of.dict, name) : (tg_jvalue){0};
}

/* ---- texts: filters and methods alike ------------------------------------------------------------ */

static tg_jvalue strip(tg_jinja *j, tg_jvalue of, const tg_jargs *args, bool left, bool right)
{
    tg_jvalue set = argument(j, args, 0, "chars");
    bool any = set.kind == TG_J_UNDEFINED || set.kind == TG_J_NONE;
    tg_jtext characters = any ? (tg_jtext){0} : need_text(j, set);
    return text_value(tg_jtext_strip(j, printed(j, of), left, right, any ? NULL : &characters));
}

static tg_jvalue do_strip(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    return strip(j, of, args, true, true);
}

static tg_jvalue do_lstrip(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    return strip(j, of, args, true, false);
}

static tg_jvalue do_rstrip(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    return strip(j, of, args, false, true);
}

enum letters { LOWER, UPPER, CAPITAL };

static tg_jvalue change_case(tg_jinja *j, tg_jvalue of, enum letters how, bool word)
{
    tg_jtext from = printed(j, of);
    uint16_t *s = tg_jinja_alloc(j, from.n, sizeof *s);
    for (size_t i = 0; i < from.n && s; i++) {
        uint16_t c = from.s[i] & 0xff, lower = c | 0x20;
        bool letter = lower >= 'a' && lower <= 'z', up = how == UPPER || (how == CAPITAL && i == 0);
        if (c >= 0x80 || (word && !letter))
            return tg_jinja_fail(j, "the case of letters is changed in plain ones alone");
        s[i] = letter ? (uint16_t)((from.s[i] & TG_UNIT_FLAGS) | (up ? lower & ~0x20 : lower)) : from.s[i];
    }
    return text_value((tg_jtext){s, from.n});
}

static tg_jvalue do_lower(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    (void)args;
    return change_case(j, of, LOWER, false);
}

static tg_jvalue do_upper(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    (void)args;
    return change_case(j, of, UPPER, false);
}

static tg_jvalue do_capitalize(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    (void)args;
    return change_case(j, of, CAPITAL, false);
}

static tg_jvalue do_title(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    (void)args;
    return change_case(j, of, CAPITAL, true);
}

static tg_jvalue do_replace(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    tg_jtext text = printed(j, of), old = need_text(j, argument(j, args, 0, "old")),
             new = need_text(j, argument(j, args, 1, "new"));
    tg_jbuffer out = {0};
    size_t at = 0;
    if (!old.n)
        return tg_jinja_fail(j, "replacing nothing is not supported");
    for (size_t found; (found = tg_jtext_find(j, text, old, at)) <= text.n; at = found + old.n) {
        tg_jbuffer_add(j, &out, tg_jtext_cut(text, at, found));
        tg_jbuffer_add(j, &out, new);
    }
    tg_jbuffer_add(j, &out, tg_jtext_cut(text, at, text.n));
    return text_value(tg_jbuffer_text(&out));
}

static tg_jvalue do_split(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    tg_jvalue most = argument(j, args, 1, "maxsplit");
    tg_jtext by = need_text(j, argument(j, args, 0, "sep"));
    tg_jlist *parts = tg_jlist_new(j);
    int64_t left = most.kind == TG_J_INT && most.i >= 0 ? most.i : INT64_MAX;
    size_t at = 0;
    if (!by.n)
        return tg_jinja_fail(j, "splitting at nothing is not supported");
    for (size_t found; left > 0 && (found = tg_jtext_find(j, of.text, by, at)) <= of.text.n; at = found + by.n, left--)
        tg_jlist_add(j, parts, text_value(tg_jtext_cut(of.text, at, found)));
    tg_jlist_add(j, parts, text_value(tg_jtext_cut(of.text, at, of.text.n)));
    return TG_JVALUE(LIST, list, parts);
}

/* The argument of startswith and endswith: a text, or several. */
static tg_jvalue has_end(tg_jinja *j, tg_jtext text, tg_jvalue what, bool begin)
{
    tg_jlist *list = tg_jlist_new(j);
    if (what.kind == TG_J_LIST)
        list = what.list;
    else
        tg_jlist_add(j, list, what);
    bool found = false;
    for (size_t i = 0; i < list->n && !found && !j->failed; i++) {
        tg_jtext end = need_text(j, list->v[i]);
        size_t at = begin ? 0 : text.n - end.n;
        found = tg_jinja_work(j, 1) && end.n <= text.n && tg_jtext_compare(j, tg_jtext_cut(text, at, at + end.n), end) == 0;
    }
    return tg_jbool(found);
}

static tg_jvalue do_startswith(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    return has_end(j, of.text, argument(j, args, 0, NULL), true);
}

static tg_jvalue do_endswith(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    return has_end(j, of.text, argument(j, args, 0, NULL), false);
}

/* ---- other filters and methods ------------------------------------------------------------------- */

static tg_jvalue do_string(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    (void)args;
    return text_value(printed(j, of));
}

static tg_jvalue do_safe(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    (void)j;
    (void)args;
    return of;
}

static tg_jvalue do_length(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    (void)args;
    size_t n = of.kind == TG_J_TEXT ? tg_jtext_length(j, of.text) : tg_jvalue_items(j, of)->n;
    return TG_JVALUE(INT, i, (int64_t)n);
}

static tg_jvalue do_default(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    tg_jvalue other = argument(j, args, 0, "default_value");
    bool also_false = tg_jvalue_true(argument(j, args, 1, "boolean"));
    if (of.kind != TG_J_UNDEFINED && !(also_false && !tg_jvalue_true(of)))
        return of;
    return other.kind == TG_J_UNDEFINED ? text_value((tg_jtext){0}) : other;
}

static tg_jvalue do_list(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    (void)args;
    return TG_JVALUE(LIST, list, tg_jvalue_items(j, of));
}

static tg_jvalue do_first(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    (void)args;
    tg_jlist *items = tg_jvalue_items(j, of);
    return items->n ? items->v[0] : (tg_jvalue){0};
}

static tg_jvalue do_last(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    (void)args;
    tg_jlist *items = tg_jvalue_items(j, of);
    return items->n ? items->v[items->n - 1] : (tg_jvalue){0};
}

static tg_jvalue do_reverse(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    (void)args;
    tg_jlist *items = tg_jvalue_items(j, of), *list = tg_jlist_new(j);
    if (of.kind == TG_J_TEXT)
        return tg_jinja_fail(j, "reversing a string is not supported");
    for (size_t i = items->n; i > 0; i--)
        tg_jlist_add(j, list, items->v[i - 1]);
    return TG_JVALUE(LIST, list, list);
}

static tg_jvalue do_join(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    tg_jvalue by = argument(j, args, 0, "d");
    tg_jlist *items = tg_jvalue_items(j, of);
    tg_jbuffer out = {0};
    tg_jinja_work(j, items->n);
    for (size_t i = 0; i < items->n && !j->failed; i++) {
        if (i && by.kind != TG_J_UNDEFINED)
            tg_jbuffer_add(j, &out, need_text(j, by));
        tg_jbuffer_add(j, &out, printed(j, items->v[i]));
    }
    return text_value(tg_jbuffer_text(&out));
}

static tg_jvalue do_tojson(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    tg_jbuffer out = {0};
    if (args->named->n)
        return tg_jinja_unknown(j, "argument of tojson", args->named->v[0].key);
    tg_jvalue_json(j, &out, of);
    return text_value(tg_jbuffer_text(&out));
}

static tg_jvalue do_int(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    (void)args;
    int64_t value = 0;
    if (of.kind == TG_J_INT || of.kind == TG_J_BOOL)
        return TG_JVALUE(INT, i, of.i);
    tg_jtext text = need_text(j, of);
    tg_jinja_work(j, text.n);
    for (size_t i = 0; i < text.n; i++) {
        int digit = (text.s[i] & 0xff) - '0';
        if (digit < 0 || digit > 9 || value > INT32_MAX)
            return tg_jinja_fail(j, "a string is no whole number");
        value = value * 10 + digit;
    }
    return TG_JVALUE(INT, i, value);
}

static tg_jdict *need_dict(tg_jinja *j, tg_jvalue of)
{
    if (of.kind != TG_J_DICT)
        tg_jinja_fail(j, "%s where a dictionary is needed", tg_jvalue_type(of));
    return of.kind == TG_J_DICT ? of.dict : tg_jdict_new(j);
}

static tg_jvalue do_items(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    (void)args;
    tg_jlist *list = tg_jlist_new(j);
    tg_jdict *dict = need_dict(j, of);
    for (size_t i = 0; i < dict->n; i++)
        tg_jlist_add(j, list, tg_jdict_pair(j, &dict->v[i]));
    return TG_JVALUE(LIST, list, list);
}

static tg_jvalue do_values(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    (void)args;
    tg_jlist *list = tg_jlist_new(j);
    for (size_t i = 0; i < of.dict->n; i++)
        tg_jlist_add(j, list, of.dict->v[i].value);
    return TG_JVALUE(LIST, list, list);
}

static tg_jvalue do_get(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    tg_jvalue found = tg_jdict_get(j, of.dict, need_text(j, argument(j, args, 0, NULL)));
    tg_jvalue other = argument(j, args, 1, NULL);
    if (found.kind != TG_J_UNDEFINED)
        return found;
    return other.kind != TG_J_UNDEFINED ? other : (tg_jvalue){.kind = TG_J_NONE};
}

/* Of what is false there are none, even where it could not be walked through. */
static tg_jlist *items_if_any(tg_jinja *j, tg_jvalue of)
{
    return tg_jvalue_true(of) ? tg_jvalue_items(j, of) : tg_jlist_new(j);
}

/* select, reject, selectattr and rejectattr: those items, or their members, for which a test holds. */
static tg_jvalue choose(tg_jinja *j, tg_jvalue of, const tg_jargs *args, bool member, bool keep)
{
    tg_jlist *items = items_if_any(j, of), *list = tg_jlist_new(j), rest = *args->at;
    tg_jtext name = member ? need_text(j, argument(j, args, 0, NULL)) : (tg_jtext){0};
    tg_jvalue test = argument(j, args, member, NULL);
    size_t n_used = rest.n < (size_t)member + 1 ? rest.n : (size_t)member + 1;
    rest.n -= n_used;
    if (rest.n)
        rest.v += n_used;
    for (size_t i = 0; i < items->n && tg_jinja_work(j, 4); i++) {
        tg_jvalue item = member ? tg_jinja_member(j, items->v[i], name) : items->v[i];
        bool holds = test.kind == TG_J_UNDEFINED
                         ? tg_jvalue_true(item)
                         : tg_jinja_test(j, need_text(j, test), item, &(tg_jargs){&rest, args->named});
        if (holds == keep)
            tg_jlist_add(j, list, items->v[i]);
    }
    return TG_JVALUE(LIST, list, list);
}

static tg_jvalue do_select(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    return choose(j, of, args, false, true);
}

static tg_jvalue do_reject(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    return choose(j, of, args, false, false);
}

static tg_jvalue do_selectattr(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    return choose(j, of, args, true, true);
}

static tg_jvalue do_rejectattr(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    return choose(j, of, args, true, false);
}

static tg_jvalue do_map(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    tg_jlist *items = items_if_any(j, of), *list = tg_jlist_new(j);
    tg_jvalue member = tg_jdict_get(j, args->named, tg_jtext_literal(j, "attribute").text);
    bool by_name = member.kind != TG_J_UNDEFINED;
    tg_jtext name = need_text(j, by_name ? member : argument(j, args, 0, NULL));
    for (size_t i = 0; i < items->n && !j->failed; i++)
        tg_jlist_add(j, list, by_name ? tg_jinja_member(j, items->v[i], name)
                                      : tg_jinja_filter(j, name, items->v[i], &(tg_jargs){tg_jlist_new(j), tg_jdict_new(j)}));
    return TG_JVALUE(LIST, list, list);
}

static const row filters[] = {
    {"capitalize", do_capitalize, 0, 0}, {"count", do_length, 0, 0},   {"d", do_default, 0, 2},
    {"default", do_default, 0, 2},       {"first", do_first, 0, 0},    {"int", do_int, 0, 0},
    {"items", do_items, 0, 0},           {"join", do_join, 0, 1},      {"last", do_last, 0, 0},
    {"length", do_length, 0, 0},         {"list", do_list, 0, 0},      {"lower", do_lower, 0, 0},
    {"map", do_map, 0, 1},               {"reject", do_reject, 0, 2},  {"rejectattr", do_rejectattr, 0, 3},
    {"replace", do_replace, 0, 2},       {"reverse", do_reverse, 0, 0}, {"safe", do_safe, 0, 0},
    {"select", do_select, 0, 2},         {"selectattr", do_selectattr, 0, 3}, {"string", do_string, 0, 0},
    {"title", do_title, 0, 0},           {"tojson", do_tojson, 0, 0},  {"trim", do_strip, 0, 1},
    {"upper", do_upper, 0, 0},
};

static const row methods[] = {
    {"capitalize", do_capitalize, TG_J_TEXT, 0}, {"endswith", do_endswith, TG_J_TEXT, 1},
    {"lower", do_lower, TG_J_TEXT, 0},           {"lstrip", do_lstrip, TG_J_TEXT, 1},
    {"replace", do_replace, TG_J_TEXT, 2},       {"rstrip", do_rstrip, TG_J_TEXT, 1},
    {"split", do_split, TG_J_TEXT, 2},           {"startswith", do_startswith, TG_J_TEXT, 1},
    {"strip", do_strip, TG_J_TEXT, 1},           {"title", do_title, TG_J_TEXT, 0},
    {"upper", do_upper, TG_J_TEXT, 0},           {"get", do_get, TG_J_DICT, 2},
    {"items", do_items, TG_J_DICT, 0},           {"keys", do_list, TG_J_DICT, 0},
    {"values", do_values, TG_J_DICT, 0},
};

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))

static const row *find_row(const row *rows, size_t n, tg_jtext name, tg_jkind kind)
{
    for (size_t i = 0; i < n; i++)
        if (tg_jtext_is(name, rows[i].name) && rows[i].kind == kind)
            return &rows[i];
    return NULL;
}

static tg_jvalue call_row(tg_jinja *j, const row *r, tg_jtext name, tg_jvalue of, const tg_jargs *args)
{
    if (args->at->n > (size_t)r->max_args)
        return tg_jinja_unknown(j, "so many arguments for", name);
    return r->call(j, of, args);
}

tg_jvalue tg_jinja_filter(tg_jinja *j, tg_jtext name, tg_jvalue of, const tg_jargs *args)
{
    const row *r = find_row(filters, COUNT(filters), name, 0);
    return r ? call_row(j, r, name, of, args) : tg_jinja_unknown(j, "filter", name);
}

tg_jvalue tg_jinja_method(tg_jinja *j, tg_jtext name, tg_jvalue of, const tg_jargs *args)
{
    const row *r = find_row(methods, COUNT(methods), name, of.kind);
    return r ? call_row(j, r, name, of, args) : tg_jinja_unknown(j, "method", name);
}

/* ---- tests ------------------------------------------------------------------------------------- */

static unsigned kinds(tg_jvalue v)
{
    return 1u << v.kind;
}

bool tg_jinja_test(tg_jinja *j, tg_jtext name, tg_jvalue of, const tg_jargs *args)
{
#define KIND(k) (1u << TG_J_##k)
    static const struct {
        const char *name;
        unsigned kinds;
    } by_kind[] = {
        {"undefined", KIND(UNDEFINED)},
        {"defined", ~KIND(UNDEFINED)},
        {"none", KIND(NONE)},
        {"boolean", KIND(BOOL)},
        {"integer", KIND(INT)},
        {"number", KIND(INT) | KIND(BOOL)},
        {"string", KIND(TEXT)},
        {"mapping", KIND(DICT)},
        {"sequence", KIND(TEXT) | KIND(LIST) | KIND(DICT) | KIND(UNDEFINED)},
        {"iterable", KIND(TEXT) | KIND(LIST) | KIND(DICT) | KIND(UNDEFINED)},
        {"callable", KIND(MACRO)},
    };
    for (size_t i = 0; i < COUNT(by_kind); i++)
        if (tg_jtext_is(name, by_kind[i].name))
            return by_kind[i].kinds & kinds(of);
    if (tg_jtext_is(name, "true") || tg_jtext_is(name, "false"))
        return of.kind == TG_J_BOOL && (of.i != 0) == tg_jtext_is(name, "true");
    if (tg_jtext_is(name, "equalto") || tg_jtext_is(name, "eq") || tg_jtext_is(name, "=="))
        return tg_jvalue_equal(j, of, argument(j, args, 0, NULL));
    if (tg_jtext_is(name, "ne"))
        return !tg_jvalue_equal(j, of, argument(j, args, 0, NULL));
    if (tg_jtext_is(name, "in"))
        return is_in(j, of, argument(j, args, 0, NULL));
    tg_jinja_unknown(j, "test", name);
    return false;
}

/* ---- functions ---------------------------------------------------------------------------------- */

static tg_jvalue make_namespace(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    (void)of;
    args->named->is_namespace = !j->failed;
    return TG_JVALUE(DICT, dict, args->named);
}

static tg_jvalue make_dict(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    (void)j;
    (void)of;
    return TG_JVALUE(DICT, dict, args->named);
}

static tg_jvalue raise_exception(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    (void)of;
    tg_jtext text = printed(j, argument(j, args, 0, "message"));
    char why[200];
    tg_quoted q;
    size_t n = text.n < sizeof why ? text.n : sizeof why;
    for (size_t i = 0; i < n; i++)
        why[i] = (char)text.s[i];
    if (!j->failed)
        tg_fail(j->err, TG_E_USAGE, j->file, "the model's chat template refuses the conversation: %s", tg_quote(&q, why, n));
    j->failed = true;
    return (tg_jvalue){0};
}

static tg_jvalue make_range(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    (void)of;
    int64_t end[3] = {0, 0, 1};
    size_t n = args->at->n;
    for (size_t i = 0; i < n; i++) {
        if (args->at->v[i].kind != TG_J_INT)
            return tg_jinja_fail(j, "a range of %s", tg_jvalue_type(args->at->v[i]));
        end[n == 1 ? 1 : i] = args->at->v[i].i;
    }
    tg_jlist *list = tg_jlist_new(j);
    if (n == 0 || end[2] == 0)
        return tg_jinja_fail(j, "a range that does not move");
    bool more = true;
    for (int64_t i = end[0]; more && !j->failed && (end[2] > 0 ? i < end[1] : i > end[1]);) {
        tg_jlist_add(j, list, TG_JVALUE(INT, i, i));
        more = !__builtin_add_overflow(i, end[2], &i);
    }
    return TG_JVALUE(LIST, list, list);
}

static tg_jvalue strftime_now(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    (void)of;
    tg_jtext format = need_text(j, argument(j, args, 0, "format"));
    char spelled[256], shown[256];
    time_t now = (time_t)j->now;
    struct tm tm;
    if (format.n >= sizeof spelled || !localtime_r(&now, &tm))
        return tg_jinja_fail(j, "a date that cannot be shown");
    for (size_t i = 0; i < format.n; i++)
        spelled[i] = (char)format.s[i];
    spelled[format.n] = '\0';
    size_t n = strftime(shown, sizeof shown, spelled, &tm);
    return text_value(tg_jtext_from(j, shown, n, 0));
}

static const row functions[] = {
    {"dict", make_dict, 0, 0},
    {"namespace", make_namespace, 0, 0},
    {"raise_exception", raise_exception, 0, 1},
    {"range", make_range, 0, 3},
    {"strftime_now", strftime_now, 0, 1},
};

bool tg_jinja_is_function(tg_jtext name)
{
    return find_row(functions, COUNT(functions), name, 0) != NULL;
}

tg_jvalue tg_jinja_function(tg_jinja *j, tg_jtext name, const tg_jargs *args)
{
    const row *r = find_row(functions, COUNT(functions), name, 0);
    return r ? call_row(j, r, name, (tg_jvalue){0}, args) : tg_jinja_unknown(j, "function", name);
}
