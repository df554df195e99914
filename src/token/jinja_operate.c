/* jinja_operate.c - what a chat template says of values without calling them: operators, members and tests. */
#include "token/jinja_call.h"

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
        return tg_jtext_find(j, b.text, tg_jinja_need_text(j, a), 0) <= b.text.n;
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
        return tg_jinja_text(a.n ? a : b);
    tg_jbuffer_add(j, &text, a);
    tg_jbuffer_add(j, &text, b);
    return tg_jinja_text(tg_jbuffer_text(&text));
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
        return join_two(j, tg_jinja_printed(j, a), tg_jinja_printed(j, b));
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
    for (size_t i = 0; i < TG_JINJA_COUNT(by_kind); i++)
        if (tg_jtext_is(name, by_kind[i].name))
            return by_kind[i].kinds & kinds(of);
    if (tg_jtext_is(name, "true") || tg_jtext_is(name, "false"))
        return of.kind == TG_J_BOOL && (of.i != 0) == tg_jtext_is(name, "true");
    if (tg_jtext_is(name, "equalto") || tg_jtext_is(name, "eq") || tg_jtext_is(name, "=="))
        return tg_jvalue_equal(j, of, tg_jinja_argument(j, args, 0, NULL));
    if (tg_jtext_is(name, "ne"))
        return !tg_jvalue_equal(j, of, tg_jinja_argument(j, args, 0, NULL));
    if (tg_jtext_is(name, "in"))
        return is_in(j, of, tg_jinja_argument(j, args, 0, NULL));
    tg_jinja_unknown(j, "test", name);
    return false;
}
