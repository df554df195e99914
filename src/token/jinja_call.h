/* jinja_call.h - tables of what can be called by name, and how its arguments are taken. */
#ifndef TG_TOKEN_JINJA_CALL_H
#define TG_TOKEN_JINJA_CALL_H

#include "token/jinja_run.h"

typedef struct tg_jinja_row {
    const char *name;
    tg_jvalue (*call)(tg_jinja *j, tg_jvalue of, const tg_jargs *args);
    tg_jkind kind; /* of the value that a method is of */
    int max_args;  /* by position; by name a function of the table looks itself */
} tg_jinja_row;

#define TG_JINJA_COUNT(rows) (sizeof(rows) / sizeof *(rows))

/* NULL: there is none of that name for values of that kind. */
const tg_jinja_row *tg_jinja_find_row(const tg_jinja_row *rows, size_t n, tg_jtext name, tg_jkind kind);
tg_jvalue tg_jinja_call_row(tg_jinja *j, const tg_jinja_row *r, tg_jtext name, tg_jvalue of, const tg_jargs *args);

/* Argument i, or else the one of that name, which may be NULL; undefined where it is not given. */
tg_jvalue tg_jinja_argument(tg_jinja *j, const tg_jargs *args, size_t i, const char *name);
/* A value that must be a text; and the text that any is printed as. */
tg_jtext tg_jinja_need_text(tg_jinja *j, tg_jvalue v);
tg_jtext tg_jinja_printed(tg_jinja *j, tg_jvalue v);

static inline tg_jvalue tg_jinja_text(tg_jtext text)
{
    return TG_JVALUE(TEXT, text, text);
}

#endif
