/* jinja_parse.c - the tokens of a chat template as a tree: its statements, and what stands between them. */
#include "token/jinja_parser.h"

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
    tg_jnode *node = new_node(p, TG_JN_IF, tg_jinja_parse_expression(p), NULL);
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
    node->a = tg_jinja_parse_or(p);
    node->e = accept_name(p, "if") ? tg_jinja_parse_expression(p) : NULL;
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
    node->d = tg_jinja_parse_name(p, expect_name(p));
    if (accept_operator(p, ".")) {
        node->d = new_node(p, TG_JN_MEMBER, node->d, NULL);
        node->d->name = expect_name(p);
    }
    if (accept_operator(p, "="))
        node->a = tg_jinja_parse_expression(p);
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
        name->a = accept_operator(p, "=") ? tg_jinja_parse_expression(p) : NULL;
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
        tg_jnode *all = tg_jinja_parse_constant(p, tg_jbool(true)), *node = new_node(p, TG_JN_IF, all, NULL);
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
        node = new_node(p, TG_JN_PRINT, tg_jinja_parse_expression(p), NULL);
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
