/* jinja_parse.c - the tokens of a chat template as a tree, by recursive descent in the order of Jinja's precedences. */
#include "token/jinja_parse.h"

#include <string.h>

typedef struct parser {
    tg_jinja *j;
    const tg_jtoken *at; /* behind the last, which ends the template, it never goes */
    int loops;           /* around the statement at hand */
    tg_jnode nowhere;    /* what a failure yields */
} parser;

/* ---- tokens ------------------------------------------------------------------------------------- */

static tg_jnode *new_node(parser *p, tg_jnode_kind kind, tg_jnode *a, tg_jnode *b)
{
    tg_jnode *node = tg_jinja_alloc(p->j, 1, sizeof *node);
    node = node ? node : &p->nowhere;
    *node = (tg_jnode){.kind = kind, .line = p->at->line, .a = a, .b = b};
    return node;
}

static const tg_jtoken *next(parser *p)
{
    const tg_jtoken *token = p->at;
    p->j->line = token->line;
    p->at += token->kind != TG_JT_END;
    return token;
}

static bool is(const parser *p, tg_jtoken_kind kind, const char *text)
{
    return p->at->kind == kind && (!text || tg_jtext_is(p->at->text, text));
}

static bool accept(parser *p, tg_jtoken_kind kind, const char *text)
{
    bool found = is(p, kind, text);
    if (found)
        next(p);
    return found;
}

static bool accept_operator(parser *p, const char *text)
{
    return accept(p, TG_JT_OPERATOR, text);
}

static bool accept_name(parser *p, const char *text)
{
    return accept(p, TG_JT_NAME, text);
}

static void expect(parser *p, tg_jtoken_kind kind, const char *text)
{
    p->j->line = p->at->line;
    if (!accept(p, kind, text))
        tg_jinja_fail(p->j, "'%s' is missing", text ? text : kind == TG_JT_CLOSE ? "}}" : "%}");
}

static tg_jtext expect_name(parser *p)
{
    p->j->line = p->at->line;
    if (p->at->kind != TG_JT_NAME)
        tg_jinja_fail(p->j, "a name is missing");
    return next(p)->text;
}

/* ---- expressions -------------------------------------------------------------------------------- */

static tg_jnode *parse_expression(parser *p);
static tg_jnode *parse_unary(parser *p, bool filtered);

/* Items up to the bracket that closes: expressions, pairs of a dictionary, or arguments, which may have names. */
static tg_jnode *parse_items(parser *p, const char *close)
{
    tg_jnode *first = NULL, **last = &first;
    while (!p->j->failed && !accept_operator(p, close)) {
        tg_jtext name = {0};
        if (*close == ')' && p->at->kind == TG_JT_NAME && p->at[1].kind == TG_JT_OPERATOR &&
            tg_jtext_is(p->at[1].text, "=")) {
            name = next(p)->text;
            next(p);
        }
        tg_jnode *item = new_node(p, TG_JN_LIST, parse_expression(p), NULL);
        item->name = name;
        if (*close == '}') {
            expect(p, TG_JT_OPERATOR, ":");
            item->c = parse_expression(p);
        }
        *last = item;
        last = &item->next;
        if (!is(p, TG_JT_OPERATOR, close))
            expect(p, TG_JT_OPERATOR, ",");
    }
    return first;
}

/* ( ... ): an expression, or a tuple when there is a comma or nothing. */
static tg_jnode *parse_parentheses(parser *p)
{
    if (accept_operator(p, ")"))
        return new_node(p, TG_JN_LIST, NULL, NULL);
    tg_jnode *inner = parse_expression(p);
    if (accept_operator(p, ")"))
        return inner;
    expect(p, TG_JT_OPERATOR, ",");
    tg_jnode *first = new_node(p, TG_JN_LIST, inner, NULL);
    first->next = parse_items(p, ")");
    return new_node(p, TG_JN_LIST, NULL, first);
}

static tg_jnode *parse_constant(parser *p, tg_jvalue value)
{
    tg_jnode *node = new_node(p, TG_JN_VALUE, NULL, NULL);
    node->value = value;
    return node;
}

static tg_jnode *parse_name(parser *p, tg_jtext name)
{
    static const struct {
        const char *name;
        tg_jvalue value;
    } constants[] = {{"true", {TG_J_BOOL, {1}}},  {"True", {TG_J_BOOL, {1}}}, {"false", {TG_J_BOOL, {0}}},
                     {"False", {TG_J_BOOL, {0}}}, {"none", {TG_J_NONE, {0}}}, {"None", {TG_J_NONE, {0}}}};
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (tg_jtext_is(name, constants[i].name))
            return parse_constant(p, constants[i].value);
    tg_jnode *node = new_node(p, TG_JN_NAME, NULL, NULL);
    node->name = name;
    return node;
}

static tg_jnode *parse_primary(parser *p)
{
    const tg_jtoken *token = next(p);
    tg_jbuffer joined = {0};
    switch (token->kind) {
    case TG_JT_NAME:
        return parse_name(p, token->text);
    case TG_JT_INT:
        return parse_constant(p, TG_JVALUE(INT, i, token->i));
    case TG_JT_STRING: /* neighbours are one */
        for (tg_jbuffer_add(p->j, &joined, token->text); p->at->kind == TG_JT_STRING;)
            tg_jbuffer_add(p->j, &joined, next(p)->text);
        return parse_constant(p, TG_JVALUE(TEXT, text, tg_jbuffer_text(&joined)));
    case TG_JT_OPERATOR:
        if (tg_jtext_is(token->text, "("))
            return parse_parentheses(p);
        if (tg_jtext_is(token->text, "["))
            return new_node(p, TG_JN_LIST, NULL, parse_items(p, "]"));
        if (tg_jtext_is(token->text, "{"))
            return new_node(p, TG_JN_DICT, NULL, parse_items(p, "}"));
        break;
    default:
        break;
    }
    tg_jinja_fail(p->j, "an expression is missing");
    return new_node(p, TG_JN_VALUE, NULL, NULL);
}

/* Behind the [ of a subscript. */
static tg_jnode *parse_subscript(parser *p, tg_jnode *of)
{
    tg_jnode *part[3] = {NULL, NULL, NULL};
    int n = 0;
    for (; n < 3 && !is(p, TG_JT_OPERATOR, "]"); n++) {
        if (!is(p, TG_JT_OPERATOR, ":"))
            part[n] = parse_expression(p);
        if (!accept_operator(p, ":"))
            break;
    }
    expect(p, TG_JT_OPERATOR, "]");
    if (n == 0 && part[0])
        return new_node(p, TG_JN_ITEM, of, part[0]);
    tg_jnode *slice = new_node(p, TG_JN_SLICE, of, part[0]);
    slice->c = part[1];
    slice->d = part[2];
    if (n == 0)
        tg_jinja_fail(p->j, "a subscript is missing");
    return slice;
}

static tg_jnode *parse_postfix(parser *p, tg_jnode *node)
{
    while (!p->j->failed) {
        if (accept_operator(p, ".")) {
            node = new_node(p, TG_JN_MEMBER, node, NULL);
            node->name = expect_name(p);
        } else if (accept_operator(p, "[")) {
            node = parse_subscript(p, node);
        } else if (accept_operator(p, "(")) {
            node = new_node(p, TG_JN_CALL, node, NULL);
            node->b = parse_items(p, ")");
        } else {
            break;
        }
    }
    return node;
}

/* The argument of a test may stand without parentheses. */
static tg_jnode *parse_test_argument(parser *p)
{
    if (accept_operator(p, "("))
        return parse_items(p, ")");
    bool value = p->at->kind == TG_JT_STRING || p->at->kind == TG_JT_INT ||
                 (p->at->kind == TG_JT_NAME && !is(p, TG_JT_NAME, "else") && !is(p, TG_JT_NAME, "or") &&
                  !is(p, TG_JT_NAME, "and") && !is(p, TG_JT_NAME, "is") && !is(p, TG_JT_NAME, "if") &&
                  !is(p, TG_JT_NAME, "in") && !is(p, TG_JT_NAME, "not")) ||
                 is(p, TG_JT_OPERATOR, "[") || is(p, TG_JT_OPERATOR, "{");
    return value ? new_node(p, TG_JN_LIST, parse_postfix(p, parse_primary(p)), NULL) : NULL;
}

static tg_jnode *parse_test(parser *p, tg_jnode *of)
{
    bool negated = accept_name(p, "not");
    tg_jnode *test = new_node(p, TG_JN_TEST, of, NULL);
    test->name = is(p, TG_JT_OPERATOR, "==") ? next(p)->text : expect_name(p);
    test->b = parse_test_argument(p);
    return negated ? new_node(p, TG_JN_NOT, test, NULL) : test;
}

static tg_jnode *parse_filters(parser *p, tg_jnode *node)
{
    while (!p->j->failed) {
        if (accept_operator(p, "|")) {
            node = new_node(p, TG_JN_FILTER, node, NULL);
            node->name = expect_name(p);
            if (accept_operator(p, "("))
                node->b = parse_items(p, ")");
        } else if (accept_name(p, "is")) {
            node = parse_test(p, node);
        } else {
            break;
        }
    }
    return node;
}

static tg_jnode *parse_unary(parser *p, bool filtered)
{
    tg_jnode *node;
    bool deep = tg_jinja_enter(p->j);
    if (!deep)
        node = new_node(p, TG_JN_VALUE, NULL, NULL);
    else if (accept_operator(p, "-"))
        node = new_node(p, TG_JN_MINUS, parse_unary(p, false), NULL);
    else if (accept_operator(p, "+"))
        node = parse_unary(p, false);
    else
        node = parse_primary(p);
    node = parse_postfix(p, node);
    tg_jinja_leave(p->j);
    return filtered ? parse_filters(p, node) : node;
}

/* Operators of two values, by what they bind; each level is from left to right. */
static const char *const levels[][8] = {
    {"==", "!=", "<=", ">=", "<", ">", "in"}, {"+", "-"}, {"~"}, {"*", "//", "/", "%"}, {"**"}};
enum { N_LEVELS = sizeof levels / sizeof *levels, COMPARISONS = 0 };

static tg_jtext accept_level(parser *p, int level)
{
    for (int i = 0; i < 8 && levels[level][i]; i++)
        if (is(p, TG_JT_OPERATOR, levels[level][i]) || is(p, TG_JT_NAME, levels[level][i]))
            return next(p)->text;
    return (tg_jtext){0};
}

static tg_jnode *parse_binary(parser *p, int level)
{
    if (level == N_LEVELS)
        return parse_unary(p, true);
    tg_jnode *left = parse_binary(p, level + 1), *all = NULL;
    for (;;) {
        bool negated = level == COMPARISONS && is(p, TG_JT_NAME, "not") && p->at[1].kind == TG_JT_NAME &&
                       tg_jtext_is(p->at[1].text, "in") && accept_name(p, "not");
        tg_jtext name = accept_level(p, level);
        if (!name.n || p->j->failed)
            return all ? all : left;
        tg_jnode *right = parse_binary(p, level + 1), *node = new_node(p, TG_JN_BINARY, left, right);
        node->name = name;
        if (negated)
            node = new_node(p, TG_JN_NOT, node, NULL);
        if (level != COMPARISONS) {
            left = node;
        } else { /* a < b < c is a < b and b < c */
            all = all ? new_node(p, TG_JN_AND, all, node) : node;
            left = right;
        }
    }
}

static tg_jnode *parse_not(parser *p)
{
    if (!accept_name(p, "not"))
        return parse_binary(p, 0);
    tg_jnode *node = new_node(p, TG_JN_VALUE, NULL, NULL);
    if (tg_jinja_enter(p->j))
        node = new_node(p, TG_JN_NOT, parse_not(p), NULL);
    tg_jinja_leave(p->j);
    return node;
}

static tg_jnode *parse_and(parser *p)
{
    tg_jnode *left = parse_not(p);
    while (accept_name(p, "and"))
        left = new_node(p, TG_JN_AND, left, parse_not(p));
    return left;
}

/* Without a choice: "if" belongs to a loop. */
static tg_jnode *parse_or(parser *p)
{
    tg_jnode *left = parse_and(p);
    while (accept_name(p, "or"))
        left = new_node(p, TG_JN_OR, left, parse_and(p));
    return left;
}

static tg_jnode *parse_expression(parser *p)
{
    if (!tg_jinja_enter(p->j))
        return new_node(p, TG_JN_VALUE, NULL, NULL);
    tg_jnode *node = parse_or(p);
    while (accept_name(p, "if")) {
        tg_jnode *condition = parse_or(p);
        node = new_node(p, TG_JN_CHOICE, condition, node);
        node->c = accept_name(p, "else") ? parse_expression(p) : NULL;
    }
    tg_jinja_leave(p->j);
    return node;
}

/* ---- statements --------------------------------------------------------------------------------- */

static tg_jnode *parse_body(parser *p, const char *const *ends, tg_jtext *ended);

/* The body behind the block at hand, up to {% and one of the words that may end it, which is taken. */
static tg_jnode *parse_until(parser *p, const char *a, const char *b, const char *c, tg_jtext *ended)
{
    const char *const ends[] = {a, b, c, NULL};
    expect(p, TG_JT_ENDBLOCK, NULL);
    return parse_body(p, ends, ended);
}

static tg_jnode *parse_if(parser *p)
{
    tg_jtext ended = {0};
    tg_jnode *node = new_node(p, TG_JN_IF, parse_expression(p), NULL);
    node->b = parse_until(p, "elif", "else", "endif", &ended);
    if (tg_jtext_is(ended, "elif") && tg_jinja_enter(p->j)) {
        node->c = parse_if(p);
        tg_jinja_leave(p->j);
    } else if (tg_jtext_is(ended, "else")) {
        node->c = parse_until(p, "endif", NULL, NULL, &ended);
    }
    return node;
}

/* Names, separated by commas. */
static tg_jnode *parse_names(parser *p)
{
    tg_jnode *first = NULL, **last = &first;
    bool closed = accept_operator(p, "(");
    do {
        *last = new_node(p, TG_JN_NAME, NULL, NULL);
        (*last)->name = expect_name(p);
        last = &(*last)->next;
    } while (!p->j->failed && accept_operator(p, ","));
    if (closed)
        expect(p, TG_JT_OPERATOR, ")");
    return first;
}

static tg_jnode *parse_for(parser *p)
{
    tg_jtext ended = {0};
    tg_jnode *node = new_node(p, TG_JN_FOR, NULL, NULL);
    node->d = parse_names(p);
    expect(p, TG_JT_NAME, "in");
    node->a = parse_or(p);
    node->e = accept_name(p, "if") ? parse_expression(p) : NULL;
    p->loops++;
    node->b = parse_until(p, "else", "endfor", NULL, &ended);
    p->loops--;
    if (tg_jtext_is(ended, "else"))
        node->c = parse_until(p, "endfor", NULL, NULL, &ended);
    return node;
}

static tg_jnode *parse_set(parser *p)
{
    tg_jtext ended;
    tg_jnode *node = new_node(p, TG_JN_SET, NULL, NULL);
    node->d = parse_name(p, expect_name(p));
    if (accept_operator(p, ".")) {
        node->d = new_node(p, TG_JN_MEMBER, node->d, NULL);
        node->d->name = expect_name(p);
    }
    if (accept_operator(p, "="))
        node->a = parse_expression(p);
    else
        node->b = parse_until(p, "endset", NULL, NULL, &ended);
    return node;
}

static tg_jnode *parse_macro(parser *p)
{
    tg_jtext ended;
    tg_jnode *node = new_node(p, TG_JN_MACRO, NULL, NULL), **last = &node->d;
    node->name = expect_name(p);
    expect(p, TG_JT_OPERATOR, "(");
    while (!p->j->failed && !accept_operator(p, ")")) {
        tg_jnode *name = new_node(p, TG_JN_NAME, NULL, NULL);
        name->name = expect_name(p);
        name->a = accept_operator(p, "=") ? parse_expression(p) : NULL;
        *last = name;
        last = &name->next;
        if (!is(p, TG_JT_OPERATOR, ")"))
            expect(p, TG_JT_OPERATOR, ",");
    }
    int loops = p->loops;
    p->loops = 0;
    node->b = parse_until(p, "endmacro", NULL, NULL, &ended);
    p->loops = loops;
    return node;
}

static tg_jnode *parse_jump(parser *p, tg_jnode_kind kind)
{
    if (p->loops == 0)
        tg_jinja_fail(p->j, "break and continue outside a loop");
    return new_node(p, kind, NULL, NULL);
}

/* What {% name begins, up to the %} of its end, which the caller takes. */
static tg_jnode *parse_statement(parser *p, tg_jtext name)
{
    tg_jtext ended;
    if (tg_jtext_is(name, "if"))
        return parse_if(p);
    if (tg_jtext_is(name, "for"))
        return parse_for(p);
    if (tg_jtext_is(name, "set"))
        return parse_set(p);
    if (tg_jtext_is(name, "macro"))
        return parse_macro(p);
    if (tg_jtext_is(name, "break"))
        return parse_jump(p, TG_JN_BREAK);
    if (tg_jtext_is(name, "continue"))
        return parse_jump(p, TG_JN_CONTINUE);
    if (tg_jtext_is(name, "generation")) { /* marks what a model has written, for training */
        tg_jnode *all = parse_constant(p, tg_jbool(true)), *node = new_node(p, TG_JN_IF, all, NULL);
        node->b = parse_until(p, "endgeneration", NULL, NULL, &ended);
        return node;
    }
    tg_jinja_unknown(p->j, "statement", name);
    return new_node(p, TG_JN_TEXT, NULL, NULL);
}

/* Is the block at hand one of them? */
static bool ends_here(const parser *p, const char *const *ends)
{
    for (; *ends; ends++)
        if (p->at[1].kind == TG_JT_NAME && tg_jtext_is(p->at[1].text, *ends))
            return true;
    return false;
}

static tg_jnode *parse_piece(parser *p)
{
    const tg_jtoken *token = next(p);
    tg_jnode *node = new_node(p, TG_JN_TEXT, NULL, NULL);
    if (token->kind == TG_JT_DATA) {
        node->value = TG_JVALUE(TEXT, text, token->text);
    } else if (token->kind == TG_JT_OPEN) {
        node = new_node(p, TG_JN_PRINT, parse_expression(p), NULL);
        expect(p, TG_JT_CLOSE, NULL);
    } else {
        node = parse_statement(p, expect_name(p));
        expect(p, TG_JT_ENDBLOCK, NULL);
    }
    return node;
}

/* Statements up to {% and one of the words; to the end of the template, where none is given. */
static tg_jnode *parse_body(parser *p, const char *const *ends, tg_jtext *ended)
{
    tg_jnode *first = NULL, **last = &first;
    *ended = (tg_jtext){0};
    bool deep = tg_jinja_enter(p->j);
    while (deep && !p->j->failed && p->at->kind != TG_JT_END) {
        if (p->at->kind == TG_JT_BLOCK && ends_here(p, ends)) {
            next(p);
            *ended = next(p)->text;
            break;
        }
        *last = parse_piece(p);
        last = &(*last)->next;
    }
    if (deep && *ends && !ended->n)
        tg_jinja_fail(p->j, "'%s' is missing", ends[0]);
    tg_jinja_leave(p->j);
    return first;
}

tg_jnode *tg_jinja_parse(tg_jinja *j, const char *source, size_t n)
{
    static const char *const no_ends[] = {NULL};
    tg_jtext ended;
    parser p = {.j = j, .at = tg_jinja_lex(j, source, n)};
    tg_jnode *all = p.at ? parse_body(&p, no_ends, &ended) : NULL;
    return j->failed ? NULL : all;
}
