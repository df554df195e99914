/* jinja_expression.c - the expressions of a chat template, by recursive descent in the order of Jinja's precedences. */
#include "token/jinja_parser.h"

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
        tg_jnode *item = new_node(p, TG_JN_LIST, tg_jinja_parse_expression(p), NULL);
        item->name = name;
        if (*close == '}') {
            expect(p, TG_JT_OPERATOR, ":");
            item->c = tg_jinja_parse_expression(p);
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
    tg_jnode *inner = tg_jinja_parse_expression(p);
    if (accept_operator(p, ")"))
        return inner;
    expect(p, TG_JT_OPERATOR, ",");
    tg_jnode *first = new_node(p, TG_JN_LIST, inner, NULL);
    first->next = parse_items(p, ")");
    return new_node(p, TG_JN_LIST, NULL, first);
}

tg_jnode *tg_jinja_parse_constant(parser *p, tg_jvalue value)
{
    tg_jnode *node = new_node(p, TG_JN_VALUE, NULL, NULL);
    node->value = value;
    return node;
}

tg_jnode *tg_jinja_parse_name(parser *p, tg_jtext name)
{
    static const struct {
        const char *name;
        tg_jvalue value;
    } constants[] = {{"true", {TG_J_BOOL, {1}}},  {"True", {TG_J_BOOL, {1}}}, {"false", {TG_J_BOOL, {0}}},
                     {"False", {TG_J_BOOL, {0}}}, {"none", {TG_J_NONE, {0}}}, {"None", {TG_J_NONE, {0}}}};
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (tg_jtext_is(name, constants[i].name))
            return tg_jinja_parse_constant(p, constants[i].value);
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
        return tg_jinja_parse_name(p, token->text);
    case TG_JT_INT:
        return tg_jinja_parse_constant(p, TG_JVALUE(INT, i, token->i));
    case TG_JT_STRING: /* neighbours are one */
        for (tg_jbuffer_add(p->j, &joined, token->text); p->at->kind == TG_JT_STRING;)
            tg_jbuffer_add(p->j, &joined, next(p)->text);
        return tg_jinja_parse_constant(p, TG_JVALUE(TEXT, text, tg_jbuffer_text(&joined)));
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
            part[n] = tg_jinja_parse_expression(p);
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
tg_jnode *tg_jinja_parse_or(parser *p)
{
    tg_jnode *left = parse_and(p);
    while (accept_name(p, "or"))
        left = new_node(p, TG_JN_OR, left, parse_and(p));
    return left;
}

tg_jnode *tg_jinja_parse_expression(parser *p)
{
    if (!tg_jinja_enter(p->j))
        return new_node(p, TG_JN_VALUE, NULL, NULL);
    tg_jnode *node = tg_jinja_parse_or(p);
    while (accept_name(p, "if")) {
        tg_jnode *condition = tg_jinja_parse_or(p);
        node = new_node(p, TG_JN_CHOICE, condition, node);
        node->c = accept_name(p, "else") ? tg_jinja_parse_expression(p) : NULL;
    }
    tg_jinja_leave(p->j);
    return node;
}
