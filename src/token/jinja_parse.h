/* jinja_parse.h - a chat template as a tree.
 *
 * The language is Jinja's as transformers sets it up (trim_blocks, lstrip_blocks, break and continue, {% generation %}),
 * without what no chat template of note uses: numbers with a fraction, includes, blocks, raw stretches, call and
 * filter blocks, recursive loops. Those are refused by name. */
#ifndef TG_TOKEN_JINJA_PARSE_H
#define TG_TOKEN_JINJA_PARSE_H

#include "token/jinja_value.h"

typedef enum tg_jnode_kind {
    /* expressions */
    TG_JN_VALUE,  /* value */
    TG_JN_NAME,   /* name */
    TG_JN_MEMBER, /* a.name */
    TG_JN_ITEM,   /* a[b] */
    TG_JN_SLICE,  /* a[b:c:d], each but a may be NULL */
    TG_JN_CALL,   /* a(b ...) */
    TG_JN_FILTER, /* a | name(b ...) */
    TG_JN_TEST,   /* a is name(b ...) */
    TG_JN_NOT,    /* not a */
    TG_JN_MINUS,  /* - a */
    TG_JN_BINARY, /* a name b: an operator of two values */
    TG_JN_AND,
    TG_JN_OR,
    TG_JN_CHOICE, /* b if a else c */
    TG_JN_LIST,   /* b ... */
    TG_JN_DICT,   /* b ..., each a key a and a value c */
    /* statements */
    TG_JN_TEXT,   /* value, as it is */
    TG_JN_PRINT,  /* a */
    TG_JN_IF,     /* a, then b ..., else c ... */
    TG_JN_FOR,    /* names d ..., in a, round b ..., without any c ...; only those that e is true for */
    TG_JN_SET,    /* d = a, or the output of b ... where a is NULL */
    TG_JN_MACRO,  /* name(d ...), their defaults in a; b ... */
    TG_JN_BREAK,
    TG_JN_CONTINUE,
} tg_jnode_kind;

typedef struct tg_jnode {
    tg_jnode_kind kind;
    int line;
    tg_jtext name; /* of an argument: by which it is given, if it is */
    tg_jvalue value;
    struct tg_jnode *a, *b, *c, *d, *e;
    struct tg_jnode *next; /* of a list */
} tg_jnode;

/* The statements of the n bytes; NULL when there are none, or when j has failed. */
tg_jnode *tg_jinja_parse(tg_jinja *j, const char *source, size_t n);

/* ---- its tokens --------------------------------------------------------------------------------- */

typedef enum tg_jtoken_kind {
    TG_JT_END,
    TG_JT_DATA,  /* text outside the marks */
    TG_JT_OPEN,  /* {{ */
    TG_JT_CLOSE, /* }} */
    TG_JT_BLOCK, /* {% */
    TG_JT_ENDBLOCK,
    TG_JT_NAME,
    TG_JT_INT,
    TG_JT_STRING,
    TG_JT_OPERATOR,
} tg_jtoken_kind;

typedef struct tg_jtoken {
    tg_jtoken_kind kind;
    int line;
    tg_jtext text;
    int64_t i;
} tg_jtoken;

/* All tokens, the last of them TG_JT_END; NULL when j has failed. */
tg_jtoken *tg_jinja_lex(tg_jinja *j, const char *source, size_t n);

#endif
