/* jinja_run.c - evaluates the tree of a chat template.
 *
 * Nothing can be reached from here but the values that were given, and nothing is changed but namespaces: steps,
 * memory and nesting are bounded, so that a hostile template ends with a message. */
#include "token/jinja_run.h"

#include <string.h>

enum { JUMP_NONE, JUMP_BREAK, JUMP_CONTINUE };

static tg_jvalue eval(tg_jinja *j, const tg_jnode *node);
static void run(tg_jinja *j, const tg_jnode *node);

/* ---- names ------------------------------------------------------------------------------------- */

static void bind(tg_jinja *j, tg_jtext name, tg_jvalue value)
{
    for (size_t i = j->n_bindings; i > 0 && j->bindings[i - 1].depth == j->depth; i--)
        if (tg_jtext_same(j, j->bindings[i - 1].name, name)) {
            j->bindings[i - 1].value = value;
            return;
        }
    if (j->n_bindings == j->bindings_room) {
        size_t room = 2 * j->bindings_room + 32;
        tg_jbinding *more = tg_jinja_alloc(j, room, sizeof *more);
        if (!more)
            return;
        if (j->n_bindings)
            memcpy(more, j->bindings, j->n_bindings * sizeof *more);
        j->bindings = more;
        j->bindings_room = room;
    }
    j->bindings[j->n_bindings++] = (tg_jbinding){name, value, j->depth};
}

/* In a macro the names around its call are not seen, but for the outermost. */
static tg_jvalue look_up(tg_jinja *j, tg_jtext name)
{
    for (size_t i = j->n_bindings; i > 0; i--) {
        const tg_jbinding *b = &j->bindings[i - 1];
        if (tg_jtext_same(j, b->name, name) && (i > j->frame || b->depth == 0))
            return b->value;
    }
    return tg_jinja_is_function(name) ? TG_JVALUE(MACRO, macro, NULL) : (tg_jvalue){0};
}

/* ---- expressions -------------------------------------------------------------------------------- */

static tg_jargs eval_args(tg_jinja *j, const tg_jnode *item)
{
    tg_jargs args = {tg_jlist_new(j), tg_jdict_new(j)};
    for (; item && !j->failed; item = item->next) {
        tg_jvalue value = eval(j, item->a);
        if (item->name.n)
            tg_jdict_set(j, args.named, item->name, value);
        else
            tg_jlist_add(j, args.at, value);
    }
    return args;
}

/* The text that statements print. */
static tg_jvalue run_to_text(tg_jinja *j, const tg_jnode *body)
{
    tg_jbuffer text = {0}, *out = j->out;
    j->out = &text;
    run(j, body);
    j->out = out;
    return TG_JVALUE(TEXT, text, tg_jbuffer_text(&text));
}

static tg_jvalue call_macro(tg_jinja *j, const tg_jnode *macro, const tg_jargs *args)
{
    size_t frame = j->frame, n_bindings = j->n_bindings, i = 0, n_known = 0;
    j->frame = n_bindings;
    j->depth++;
    for (const tg_jnode *p = macro->d; p && !j->failed; p = p->next, i++) {
        tg_jvalue value = i < args->at->n ? args->at->v[i] : tg_jdict_get(j, args->named, p->name);
        n_known += i >= args->at->n && value.kind != TG_J_UNDEFINED;
        if (value.kind == TG_J_UNDEFINED && p->a)
            value = eval(j, p->a);
        bind(j, p->name, value);
    }
    if (args->at->n > i || args->named->n > n_known)
        tg_jinja_unknown(j, "an argument that is too much for macro", macro->name);
    tg_jvalue text = run_to_text(j, macro->b);
    j->depth--;
    j->n_bindings = n_bindings;
    j->frame = frame;
    return text;
}

static tg_jvalue call(tg_jinja *j, const tg_jnode *node)
{
    const tg_jnode *callee = node->a;
    if (callee->kind == TG_JN_MEMBER) {
        tg_jvalue of = eval(j, callee->a);
        tg_jargs args = eval_args(j, node->b);
        return j->failed ? (tg_jvalue){0} : tg_jinja_method(j, callee->name, of, &args);
    }
    tg_jvalue what = eval(j, callee);
    tg_jargs args = eval_args(j, node->b);
    if (j->failed)
        return (tg_jvalue){0};
    if (what.kind != TG_J_MACRO)
        return callee->kind == TG_JN_NAME ? tg_jinja_unknown(j, "function", callee->name)
                                          : tg_jinja_fail(j, "%s cannot be called", tg_jvalue_type(what));
    return what.macro ? call_macro(j, what.macro, &args) : tg_jinja_function(j, callee->name, &args);
}

/* Of a list, or of a text's characters. */
static tg_jvalue item_at(tg_jinja *j, tg_jvalue of, int64_t i)
{
    int64_t n = (int64_t)(of.kind == TG_J_LIST ? of.list->n : tg_jtext_length(j, of.text));
    i += i < 0 ? n : 0;
    if (i < 0 || i >= n)
        return (tg_jvalue){0};
    if (of.kind == TG_J_LIST)
        return of.list->v[i];
    size_t from = tg_jtext_at(of.text, (size_t)i), to = tg_jtext_at(of.text, (size_t)i + 1);
    return TG_JVALUE(TEXT, text, tg_jtext_cut(of.text, from, to));
}

static tg_jvalue subscript(tg_jinja *j, tg_jvalue of, tg_jvalue key)
{
    if (key.kind == TG_J_TEXT)
        return tg_jinja_member(j, of, key.text);
    if (of.kind == TG_J_UNDEFINED)
        return tg_jinja_fail(j, "an item of something undefined");
    bool ordered = of.kind == TG_J_LIST || of.kind == TG_J_TEXT;
    return ordered && key.kind == TG_J_INT ? item_at(j, of, key.i) : (tg_jvalue){0};
}

/* One end of a slice: absent, or clipped to what there is as Python does. */
static int64_t slice_end(tg_jinja *j, const tg_jnode *node, int64_t absent, int64_t low, int64_t n)
{
    tg_jvalue v = node ? eval(j, node) : (tg_jvalue){.kind = TG_J_NONE};
    if (v.kind == TG_J_NONE)
        return absent;
    if (v.kind != TG_J_INT)
        tg_jinja_fail(j, "a slice from or to %s", tg_jvalue_type(v));
    int64_t i = v.i < 0 ? v.i + n : v.i;
    return i < low ? low : i > n + low ? n + low : i;
}

static tg_jvalue slice(tg_jinja *j, const tg_jnode *node)
{
    tg_jvalue of = eval(j, node->a), step = node->d ? eval(j, node->d) : TG_JVALUE(INT, i, 1);
    if (of.kind != TG_J_LIST && of.kind != TG_J_TEXT)
        return tg_jinja_fail(j, "%s cannot be sliced", tg_jvalue_type(of));
    if (step.kind != TG_J_INT || (step.i != 1 && step.i != -1))
        return tg_jinja_fail(j, "a slice in steps other than 1 and -1 is not supported");
    bool back = step.i < 0;
    int64_t n = (int64_t)(of.kind == TG_J_LIST ? of.list->n : tg_jtext_length(j, of.text));
    int64_t from = slice_end(j, node->b, back ? n - 1 : 0, -back, n);
    int64_t to = slice_end(j, node->c, back ? -1 : n, -back, n);
    if (of.kind == TG_J_TEXT && !back) {
        size_t begin = tg_jtext_at(of.text, (size_t)from), end = tg_jtext_at(of.text, (size_t)(to > from ? to : from));
        return TG_JVALUE(TEXT, text, tg_jtext_cut(of.text, begin, end));
    }
    tg_jlist *items = tg_jvalue_items(j, of), *list = tg_jlist_new(j);
    for (int64_t i = from; !j->failed && (back ? i > to : i < to); i += step.i)
        tg_jlist_add(j, list, items->v[i]);
    if (of.kind == TG_J_LIST)
        return TG_JVALUE(LIST, list, list);
    tg_jbuffer text = {0};
    for (size_t i = 0; i < list->n; i++)
        tg_jbuffer_add(j, &text, list->v[i].text);
    return TG_JVALUE(TEXT, text, tg_jbuffer_text(&text));
}

static tg_jvalue eval_dict(tg_jinja *j, const tg_jnode *pair)
{
    tg_jdict *dict = tg_jdict_new(j);
    for (; pair && !j->failed; pair = pair->next) {
        tg_jvalue key = eval(j, pair->a), value = eval(j, pair->c);
        if (key.kind != TG_J_TEXT)
            tg_jinja_fail(j, "%s as a key is not supported", tg_jvalue_type(key));
        else
            tg_jdict_set(j, dict, key.text, value);
    }
    return TG_JVALUE(DICT, dict, dict);
}

static tg_jvalue eval_node(tg_jinja *j, const tg_jnode *node)
{
    tg_jvalue a;
    tg_jargs args;
    switch (node->kind) {
    case TG_JN_VALUE:
        return node->value;
    case TG_JN_NAME:
        return look_up(j, node->name);
    case TG_JN_MEMBER:
        return tg_jinja_member(j, eval(j, node->a), node->name);
    case TG_JN_ITEM:
        a = eval(j, node->a);
        return subscript(j, a, eval(j, node->b));
    case TG_JN_SLICE:
        return slice(j, node);
    case TG_JN_CALL:
        return call(j, node);
    case TG_JN_FILTER:
        a = eval(j, node->a);
        args = eval_args(j, node->b);
        return j->failed ? a : tg_jinja_filter(j, node->name, a, &args);
    case TG_JN_TEST:
        a = eval(j, node->a);
        args = eval_args(j, node->b);
        return tg_jbool(!j->failed && tg_jinja_test(j, node->name, a, &args));
    case TG_JN_NOT:
        return tg_jbool(!tg_jvalue_true(eval(j, node->a)));
    case TG_JN_MINUS:
        a = eval(j, node->a);
        return a.kind == TG_J_INT && a.i != INT64_MIN ? TG_JVALUE(INT, i, -a.i)
                                                      : tg_jinja_fail(j, "minus %s", tg_jvalue_type(a));
    case TG_JN_BINARY:
        a = eval(j, node->a);
        return tg_jinja_binary(j, node->name, a, eval(j, node->b));
    case TG_JN_AND:
        a = eval(j, node->a);
        return tg_jvalue_true(a) ? eval(j, node->b) : a;
    case TG_JN_OR:
        a = eval(j, node->a);
        return tg_jvalue_true(a) ? a : eval(j, node->b);
    case TG_JN_CHOICE:
        node = tg_jvalue_true(eval(j, node->a)) ? node->b : node->c;
        return node ? eval(j, node) : (tg_jvalue){0};
    case TG_JN_LIST:
        return TG_JVALUE(LIST, list, eval_args(j, node->b).at);
    case TG_JN_DICT:
        return eval_dict(j, node->b);
    default:
        return (tg_jvalue){0}; /* statements are no expressions */
    }
}

static tg_jvalue eval(tg_jinja *j, const tg_jnode *node)
{
    tg_jvalue value = {0};
    if (tg_jinja_enter(j)) {
        j->line = node->line;
        value = eval_node(j, node);
    }
    tg_jinja_leave(j);
    return value;
}

/* ---- statements --------------------------------------------------------------------------------- */

static void set(tg_jinja *j, const tg_jnode *target, tg_jvalue value)
{
    if (target->kind == TG_JN_MEMBER) {
        tg_jvalue of = eval(j, target->a);
        if (of.kind != TG_J_DICT || !of.dict->is_namespace)
            tg_jinja_fail(j, "only members of a namespace can be set");
        else
            tg_jdict_set(j, of.dict, target->name, value);
    } else {
        bind(j, target->name, value);
    }
}

static void bind_item(tg_jinja *j, const tg_jnode *names, tg_jvalue item)
{
    if (!names->next) {
        bind(j, names->name, item);
        return;
    }
    tg_jlist *parts = tg_jvalue_items(j, item);
    size_t i = 0;
    for (; names && i < parts->n; names = names->next)
        bind(j, names->name, parts->v[i++]);
    if (names || i < parts->n)
        tg_jinja_fail(j, "an item has %zu parts, and not as many as there are names", parts->n);
}

static tg_jlist *select_items(tg_jinja *j, const tg_jnode *node, tg_jlist *all)
{
    tg_jlist *chosen = tg_jlist_new(j);
    size_t n_bindings = j->n_bindings;
    for (size_t i = 0; i < all->n && !j->failed; i++) {
        bind_item(j, node->d, all->v[i]);
        if (tg_jvalue_true(eval(j, node->e)))
            tg_jlist_add(j, chosen, all->v[i]);
        j->n_bindings = n_bindings;
    }
    return chosen;
}

static void bind_loop(tg_jinja *j, const tg_jlist *items, size_t i)
{
    tg_jdict *loop = tg_jdict_new(j);
    const struct {
        const char *name;
        tg_jvalue value;
    } members[] = {
        {"index", TG_JVALUE(INT, i, (int64_t)i + 1)},
        {"index0", TG_JVALUE(INT, i, (int64_t)i)},
        {"revindex", TG_JVALUE(INT, i, (int64_t)(items->n - i))},
        {"revindex0", TG_JVALUE(INT, i, (int64_t)(items->n - i) - 1)},
        {"length", TG_JVALUE(INT, i, (int64_t)items->n)},
        {"first", tg_jbool(i == 0)},
        {"last", tg_jbool(i + 1 == items->n)},
        {"previtem", i > 0 ? items->v[i - 1] : (tg_jvalue){0}},
        {"nextitem", i + 1 < items->n ? items->v[i + 1] : (tg_jvalue){0}},
    };
    for (size_t k = 0; k < sizeof members / sizeof *members; k++)
        tg_jdict_set(j, loop, tg_jtext_literal(j, members[k].name).text, members[k].value);
    bind(j, tg_jtext_literal(j, "loop").text, TG_JVALUE(DICT, dict, loop));
}

static void run_for(tg_jinja *j, const tg_jnode *node)
{
    size_t n_bindings = j->n_bindings;
    tg_jlist *items = tg_jvalue_items(j, eval(j, node->a));
    j->depth++;
    if (node->e)
        items = select_items(j, node, items);
    for (size_t i = 0; i < items->n && !j->failed && j->jump != JUMP_BREAK; i++) {
        j->jump = JUMP_NONE;
        bind_loop(j, items, i);
        bind_item(j, node->d, items->v[i]);
        run(j, node->b);
        j->n_bindings = n_bindings;
    }
    j->jump = JUMP_NONE;
    if (items->n == 0)
        run(j, node->c);
    j->n_bindings = n_bindings;
    j->depth--;
}

static void run_one(tg_jinja *j, const tg_jnode *node)
{
    switch (node->kind) {
    case TG_JN_TEXT:
        tg_jbuffer_add(j, j->out, node->value.text);
        break;
    case TG_JN_PRINT:
        tg_jvalue_print(j, j->out, eval(j, node->a));
        break;
    case TG_JN_IF:
        run(j, tg_jvalue_true(eval(j, node->a)) ? node->b : node->c);
        break;
    case TG_JN_FOR:
        run_for(j, node);
        break;
    case TG_JN_SET:
        set(j, node->d, node->a ? eval(j, node->a) : run_to_text(j, node->b));
        break;
    case TG_JN_MACRO:
        if (j->depth > 0)
            tg_jinja_fail(j, "a macro inside a loop or a macro is not supported");
        bind(j, node->name, TG_JVALUE(MACRO, macro, node));
        break;
    case TG_JN_BREAK:
        j->jump = JUMP_BREAK;
        break;
    case TG_JN_CONTINUE:
        j->jump = JUMP_CONTINUE;
        break;
    default:
        break; /* expressions are no statements */
    }
}

static void run(tg_jinja *j, const tg_jnode *node)
{
    if (tg_jinja_enter(j))
        for (; node && !j->failed && j->jump == JUMP_NONE; node = node->next) {
            j->line = node->line;
            run_one(j, node);
        }
    tg_jinja_leave(j);
}

void tg_jinja_run(tg_jinja *j, const tg_jdict *variables, const tg_jnode *all)
{
    for (size_t i = 0; i < variables->n; i++)
        bind(j, variables->v[i].key, variables->v[i].value);
    run(j, all);
}
