/* jinja_run.h - what the parts of the interpreter have of each other: calls into the table of filters, tests, methods
 * and functions, and from there back into macros. */
#ifndef TG_TOKEN_JINJA_RUN_H
#define TG_TOKEN_JINJA_RUN_H

#include "token/jinja_parse.h"

typedef struct tg_jargs {
    tg_jlist *at;    /* by position */
    tg_jdict *named; /* and by name */
} tg_jargs;

/* Runs what was parsed, with these variables; the output goes to j->out. */
void tg_jinja_run(tg_jinja *j, const tg_jdict *variables, const tg_jnode *all);

tg_jvalue tg_jinja_filter(tg_jinja *j, tg_jtext name, tg_jvalue of, const tg_jargs *args);
bool tg_jinja_test(tg_jinja *j, tg_jtext name, tg_jvalue of, const tg_jargs *args);
tg_jvalue tg_jinja_method(tg_jinja *j, tg_jtext name, tg_jvalue of, const tg_jargs *args);
bool tg_jinja_is_function(tg_jtext name);
tg_jvalue tg_jinja_function(tg_jinja *j, tg_jtext name, const tg_jargs *args);
tg_jvalue tg_jinja_member(tg_jinja *j, tg_jvalue of, tg_jtext name);

/* a == b, a in b, a + b ... */
tg_jvalue tg_jinja_binary(tg_jinja *j, tg_jtext name, tg_jvalue a, tg_jvalue b);

#endif
