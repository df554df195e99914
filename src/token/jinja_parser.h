/* jinja_parser.h - what the two halves of the parser share: where it is among the tokens, and expressions, which statements
 * have in them. */
#ifndef TG_TOKEN_JINJA_PARSER_H
#define TG_TOKEN_JINJA_PARSER_H

#include "token/jinja_parse.h"

typedef struct parser {
    tg_jinja *j;
    const tg_jtoken *at; /* behind the last, which ends the template, it never goes */
    int loops;           /* around the statement at hand */
    tg_jnode nowhere;    /* what a failure yields */
} parser;

/* ---- tokens ------------------------------------------------------------------------------------- */

static inline tg_jnode *new_node(parser *p, tg_jnode_kind kind, tg_jnode *a, tg_jnode *b)
{
    tg_jnode *node = tg_jinja_alloc(p->j, 1, sizeof *node);
    node = node ? node : &p->nowhere;
    *node = (tg_jnode){.kind = kind, .line = p->at->line, .a = a, .b = b};
    return node;
}

static inline const tg_jtoken *next(parser *p)
{
    const tg_jtoken *token = p->at;
    p->j->line = token->line;
    p->at += token->kind != TG_JT_END;
    return token;
}

static inline bool is(const parser *p, tg_jtoken_kind kind, const char *text)
{
    return p->at->kind == kind && (!text || tg_jtext_is(p->at->text, text));
}

static inline bool accept(parser *p, tg_jtoken_kind kind, const char *text)
{
    bool found = is(p, kind, text);
    if (found)
        next(p);
    return found;
}

static inline bool accept_operator(parser *p, const char *text)
{
    return accept(p, TG_JT_OPERATOR, text);
}

static inline bool accept_name(parser *p, const char *text)
{
    return accept(p, TG_JT_NAME, text);
}

static inline void expect(parser *p, tg_jtoken_kind kind, const char *text)
{
    p->j->line = p->at->line;
    if (!accept(p, kind, text))
        tg_jinja_fail(p->j, "'%s' is missing", text ? text : kind == TG_JT_CLOSE ? "}}" : "%}");
}

static inline tg_jtext expect_name(parser *p)
{
    p->j->line = p->at->line;
    if (p->at->kind != TG_JT_NAME)
        tg_jinja_fail(p->j, "a name is missing");
    return next(p)->text;
}

/* ---- expressions -------------------------------------------------------------------------------- */

tg_jnode *tg_jinja_parse_expression(parser *p);
tg_jnode *tg_jinja_parse_or(parser *p); /* one without `if` */
tg_jnode *tg_jinja_parse_constant(parser *p, tg_jvalue value);
tg_jnode *tg_jinja_parse_name(parser *p, tg_jtext name); /* of a constant, or of a variable */

#endif
