/* jinja_call.c - what a chat template can call of a value: filters and methods.
 *
 * To add one: a function and a row of its table. They do what Jinja's and Python's do, or fail by name. */
#include "token/jinja_call.h"

#include <inttypes.h>
#include <string.h>

tg_jvalue tg_jinja_argument(tg_jinja *j, const tg_jargs *args, size_t i, const char *name)
{
    return i < args->at->n ? args->at->v[i] : name ? tg_jdict_get(j, args->named, tg_jtext_literal(j, name).text)
                                                   : (tg_jvalue){0};
}

tg_jtext tg_jinja_need_text(tg_jinja *j, tg_jvalue v)
{
    if (v.kind != TG_J_TEXT)
        tg_jinja_fail(j, "%s where a string is needed", tg_jvalue_type(v));
    return v.kind == TG_J_TEXT ? v.text : (tg_jtext){0};
}

tg_jtext tg_jinja_printed(tg_jinja *j, tg_jvalue v)
{
    tg_jbuffer text = {0};
    if (v.kind == TG_J_TEXT)
        return v.text;
    tg_jvalue_print(j, &text, v);
    return tg_jbuffer_text(&text);
}

/* ---- texts: filters and methods alike ------------------------------------------------------------ */

static tg_jvalue strip(tg_jinja *j, tg_jvalue of, const tg_jargs *args, bool left, bool right)
{
    tg_jvalue set = tg_jinja_argument(j, args, 0, "chars");
    bool any = set.kind == TG_J_UNDEFINED || set.kind == TG_J_NONE;
    tg_jtext characters = any ? (tg_jtext){0} : tg_jinja_need_text(j, set);
    return tg_jinja_text(tg_jtext_strip(j, tg_jinja_printed(j, of), left, right, any ? NULL : &characters));
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
    tg_jtext from = tg_jinja_printed(j, of);
    uint16_t *s = tg_jinja_alloc(j, from.n, sizeof *s);
    for (size_t i = 0; i < from.n && s; i++) {
        uint16_t c = from.s[i] & 0xff, lower = c | 0x20;
        bool letter = lower >= 'a' && lower <= 'z', up = how == UPPER || (how == CAPITAL && i == 0);
        if (c >= 0x80 || (word && !letter))
            return tg_jinja_fail(j, "the case of letters is changed in plain ones alone");
        s[i] = letter ? (uint16_t)((from.s[i] & TG_UNIT_FLAGS) | (up ? lower & ~0x20 : lower)) : from.s[i];
    }
    return tg_jinja_text((tg_jtext){s, from.n});
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
    tg_jtext text = tg_jinja_printed(j, of), old = tg_jinja_need_text(j, tg_jinja_argument(j, args, 0, "old")),
             new = tg_jinja_need_text(j, tg_jinja_argument(j, args, 1, "new"));
    tg_jbuffer out = {0};
    size_t at = 0;
    if (!old.n)
        return tg_jinja_fail(j, "replacing nothing is not supported");
    for (size_t found; (found = tg_jtext_find(j, text, old, at)) <= text.n; at = found + old.n) {
        tg_jbuffer_add(j, &out, tg_jtext_cut(text, at, found));
        tg_jbuffer_add(j, &out, new);
    }
    tg_jbuffer_add(j, &out, tg_jtext_cut(text, at, text.n));
    return tg_jinja_text(tg_jbuffer_text(&out));
}

static tg_jvalue do_split(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    tg_jvalue most = tg_jinja_argument(j, args, 1, "maxsplit");
    tg_jtext by = tg_jinja_need_text(j, tg_jinja_argument(j, args, 0, "sep"));
    tg_jlist *parts = tg_jlist_new(j);
    int64_t left = most.kind == TG_J_INT && most.i >= 0 ? most.i : INT64_MAX;
    size_t at = 0;
    if (!by.n)
        return tg_jinja_fail(j, "splitting at nothing is not supported");
    for (size_t found; left > 0 && (found = tg_jtext_find(j, of.text, by, at)) <= of.text.n; at = found + by.n, left--)
        tg_jlist_add(j, parts, tg_jinja_text(tg_jtext_cut(of.text, at, found)));
    tg_jlist_add(j, parts, tg_jinja_text(tg_jtext_cut(of.text, at, of.text.n)));
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
        tg_jtext end = tg_jinja_need_text(j, list->v[i]);
        size_t at = begin ? 0 : text.n - end.n;
        found = tg_jinja_work(j, 1) && end.n <= text.n && tg_jtext_compare(j, tg_jtext_cut(text, at, at + end.n), end) == 0;
    }
    return tg_jbool(found);
}

static tg_jvalue do_startswith(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    return has_end(j, of.text, tg_jinja_argument(j, args, 0, NULL), true);
}

static tg_jvalue do_endswith(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    return has_end(j, of.text, tg_jinja_argument(j, args, 0, NULL), false);
}

/* ---- other filters and methods ------------------------------------------------------------------- */

static tg_jvalue do_string(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    (void)args;
    return tg_jinja_text(tg_jinja_printed(j, of));
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
    tg_jvalue other = tg_jinja_argument(j, args, 0, "default_value");
    bool also_false = tg_jvalue_true(tg_jinja_argument(j, args, 1, "boolean"));
    if (of.kind != TG_J_UNDEFINED && !(also_false && !tg_jvalue_true(of)))
        return of;
    return other.kind == TG_J_UNDEFINED ? tg_jinja_text((tg_jtext){0}) : other;
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
    tg_jvalue by = tg_jinja_argument(j, args, 0, "d");
    tg_jlist *items = tg_jvalue_items(j, of);
    tg_jbuffer out = {0};
    tg_jinja_work(j, items->n);
    for (size_t i = 0; i < items->n && !j->failed; i++) {
        if (i && by.kind != TG_J_UNDEFINED)
            tg_jbuffer_add(j, &out, tg_jinja_need_text(j, by));
        tg_jbuffer_add(j, &out, tg_jinja_printed(j, items->v[i]));
    }
    return tg_jinja_text(tg_jbuffer_text(&out));
}

static tg_jvalue do_tojson(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    tg_jbuffer out = {0};
    if (args->named->n)
        return tg_jinja_unknown(j, "argument of tojson", args->named->v[0].key);
    tg_jvalue_json(j, &out, of);
    return tg_jinja_text(tg_jbuffer_text(&out));
}

static tg_jvalue do_int(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    (void)args;
    int64_t value = 0;
    if (of.kind == TG_J_INT || of.kind == TG_J_BOOL)
        return TG_JVALUE(INT, i, of.i);
    tg_jtext text = tg_jinja_need_text(j, of);
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
    tg_jvalue found = tg_jdict_get(j, of.dict, tg_jinja_need_text(j, tg_jinja_argument(j, args, 0, NULL)));
    tg_jvalue other = tg_jinja_argument(j, args, 1, NULL);
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
    tg_jtext name = member ? tg_jinja_need_text(j, tg_jinja_argument(j, args, 0, NULL)) : (tg_jtext){0};
    tg_jvalue test = tg_jinja_argument(j, args, member, NULL);
    size_t n_used = rest.n < (size_t)member + 1 ? rest.n : (size_t)member + 1;
    rest.n -= n_used;
    if (rest.n)
        rest.v += n_used;
    for (size_t i = 0; i < items->n && tg_jinja_work(j, 4); i++) {
        tg_jvalue item = member ? tg_jinja_member(j, items->v[i], name) : items->v[i];
        bool holds = test.kind == TG_J_UNDEFINED
                         ? tg_jvalue_true(item)
                         : tg_jinja_test(j, tg_jinja_need_text(j, test), item, &(tg_jargs){&rest, args->named});
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
    tg_jtext name = tg_jinja_need_text(j, by_name ? member : tg_jinja_argument(j, args, 0, NULL));
    for (size_t i = 0; i < items->n && !j->failed; i++)
        tg_jlist_add(j, list, by_name ? tg_jinja_member(j, items->v[i], name)
                                      : tg_jinja_filter(j, name, items->v[i], &(tg_jargs){tg_jlist_new(j), tg_jdict_new(j)}));
    return TG_JVALUE(LIST, list, list);
}

static const tg_jinja_row filters[] = {
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

static const tg_jinja_row methods[] = {
    {"capitalize", do_capitalize, TG_J_TEXT, 0}, {"endswith", do_endswith, TG_J_TEXT, 1},
    {"lower", do_lower, TG_J_TEXT, 0},           {"lstrip", do_lstrip, TG_J_TEXT, 1},
    {"replace", do_replace, TG_J_TEXT, 2},       {"rstrip", do_rstrip, TG_J_TEXT, 1},
    {"split", do_split, TG_J_TEXT, 2},           {"startswith", do_startswith, TG_J_TEXT, 1},
    {"strip", do_strip, TG_J_TEXT, 1},           {"title", do_title, TG_J_TEXT, 0},
    {"upper", do_upper, TG_J_TEXT, 0},           {"get", do_get, TG_J_DICT, 2},
    {"items", do_items, TG_J_DICT, 0},           {"keys", do_list, TG_J_DICT, 0},
    {"values", do_values, TG_J_DICT, 0},
};

const tg_jinja_row *tg_jinja_find_row(const tg_jinja_row *rows, size_t n, tg_jtext name, tg_jkind kind)
{
    for (size_t i = 0; i < n; i++)
        if (tg_jtext_is(name, rows[i].name) && rows[i].kind == kind)
            return &rows[i];
    return NULL;
}

tg_jvalue tg_jinja_call_row(tg_jinja *j, const tg_jinja_row *r, tg_jtext name, tg_jvalue of, const tg_jargs *args)
{
    if (args->at->n > (size_t)r->max_args)
        return tg_jinja_unknown(j, "so many arguments for", name);
    return r->call(j, of, args);
}

tg_jvalue tg_jinja_filter(tg_jinja *j, tg_jtext name, tg_jvalue of, const tg_jargs *args)
{
    const tg_jinja_row *r = tg_jinja_find_row(filters, TG_JINJA_COUNT(filters), name, 0);
    return r ? tg_jinja_call_row(j, r, name, of, args) : tg_jinja_unknown(j, "filter", name);
}

tg_jvalue tg_jinja_method(tg_jinja *j, tg_jtext name, tg_jvalue of, const tg_jargs *args)
{
    const tg_jinja_row *r = tg_jinja_find_row(methods, TG_JINJA_COUNT(methods), name, of.kind);
    return r ? tg_jinja_call_row(j, r, name, of, args) : tg_jinja_unknown(j, "method", name);
}
