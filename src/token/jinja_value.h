/* jinja_value.h - the values that a chat template works with, and the state of one rendering.
 *
 * A text is an array of 16-bit units: a byte each, with a flag where the byte came from outside (a message's content)
 * and not from the template. Cutting and joining keep the flags, so that the result tells where the template speaks
 * and where a message does, however it got there.
 *
 * All of it lives in one arena, bounded by the size of the input, and goes with it. The first failure sticks: later
 * steps do nothing and yield undefined values, and whoever asked sees `failed` at the end. */
#ifndef TG_TOKEN_JINJA_VALUE_H
#define TG_TOKEN_JINJA_VALUE_H

#include "base/memory.h"

enum {
    TG_UNIT_DATA = 0x100,   /* this byte is a message's */
    TG_UNIT_ANSWER = 0x200, /* and the model's own, of an answer */
    TG_UNIT_FLAGS = 0xff00,
};

typedef struct tg_jtext {
    const uint16_t *s;
    size_t n;
} tg_jtext;

typedef enum tg_jkind { TG_J_UNDEFINED, TG_J_NONE, TG_J_BOOL, TG_J_INT, TG_J_TEXT, TG_J_LIST, TG_J_DICT, TG_J_MACRO } tg_jkind;

typedef struct tg_jvalue {
    tg_jkind kind;
    union {
        int64_t i; /* integers and booleans */
        tg_jtext text;
        struct tg_jlist *list;
        struct tg_jdict *dict;
        const struct tg_jnode *macro;
    };
} tg_jvalue;

typedef struct tg_jlist {
    tg_jvalue *v;
    size_t n, room;
} tg_jlist;

typedef struct tg_jdict { /* in the order of insertion */
    struct tg_jentry {
        tg_jtext key;
        tg_jvalue value;
    } *v;
    size_t n, room;
    bool is_namespace; /* its members may be set */
} tg_jdict;

typedef struct tg_jbuffer {
    uint16_t *s;
    size_t n, room;
} tg_jbuffer;

typedef struct tg_jbinding {
    tg_jtext name;
    tg_jvalue value;
    int depth;
} tg_jbinding;

typedef struct tg_jinja {
    tg_arena *arena;
    char *chunk; /* of the arena, with so many bytes left */
    size_t left;
    uint64_t n_bytes, max_bytes;
    uint64_t work; /* in sixteenths of a step */
    const char *file; /* for messages */
    int line;
    bool failed;
    tg_error *err;
    int64_t now; /* seconds since 1970 */

    tg_jbuffer *out;
    tg_jbinding *bindings; /* innermost last */
    size_t n_bindings, bindings_room;
    size_t frame; /* names of a macro begin here; below it, only the outermost are seen */
    int depth, nested;
    int jump; /* a loop is being left, or its round */
} tg_jinja;

/* Memory that lives as long as the rendering; NULL once that has failed. */
void *tg_jinja_alloc(tg_jinja *j, size_t n, size_t size);

/* Says what cannot be done, once, at the line at hand. The value is undefined. */
tg_jvalue tg_jinja_fail(tg_jinja *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same for a name of the template: "filter 'x' is not supported". */
tg_jvalue tg_jinja_unknown(tg_jinja *j, const char *what, tg_jtext name);

#define TG_JVALUE(k, member, x) ((tg_jvalue){.kind = TG_J_##k, .member = (x)})
static inline tg_jvalue tg_jbool(bool b)
{
    return TG_JVALUE(BOOL, i, b);
}

/* Around whatever calls itself: fails, with false, when it is nested too deep. */
bool tg_jinja_enter(tg_jinja *j);
static inline void tg_jinja_leave(tg_jinja *j)
{
    j->nested--;
}
/* Looking at n bytes is work as well, a sixteenth of a step each, and not without bound: fails, with false, when there
 * has been too much of it. Whatever walks through something without a step or memory for each item says so here. */
bool tg_jinja_work(tg_jinja *j, size_t n);

tg_jtext tg_jtext_from(tg_jinja *j, const void *bytes, size_t n, unsigned flag); /* a flag of above, or 0 */
tg_jvalue tg_jtext_literal(tg_jinja *j, const char *s);
bool tg_jtext_is(tg_jtext text, const char *s);
int tg_jtext_compare(tg_jinja *j, tg_jtext a, tg_jtext b); /* by bytes, whatever their flags */
bool tg_jtext_same(tg_jinja *j, tg_jtext a, tg_jtext b);
/* Where b is in a, from `from` on; a.n + 1 when it is not. */
size_t tg_jtext_find(tg_jinja *j, tg_jtext a, tg_jtext b, size_t from);
static inline tg_jtext tg_jtext_cut(tg_jtext text, size_t from, size_t to)
{
    return (tg_jtext){from ? text.s + from : text.s, to - from}; /* of no text there is no pointer */
}
/* Without white space, or without characters of `set` unless that is NULL, on either side. */
tg_jtext tg_jtext_strip(tg_jinja *j, tg_jtext text, bool left, bool right, const tg_jtext *set);
size_t tg_jtext_length(tg_jinja *j, tg_jtext text); /* in characters */
size_t tg_jtext_at(tg_jtext text, size_t character); /* where it begins; text.n behind the last */

void tg_jbuffer_add(tg_jinja *j, tg_jbuffer *b, tg_jtext text);
void tg_jbuffer_put(tg_jinja *j, tg_jbuffer *b, const char *s); /* of the template */
static inline tg_jtext tg_jbuffer_text(const tg_jbuffer *b)
{
    return (tg_jtext){b->s, b->n};
}

tg_jlist *tg_jlist_new(tg_jinja *j);
void tg_jlist_add(tg_jinja *j, tg_jlist *list, tg_jvalue value);
tg_jdict *tg_jdict_new(tg_jinja *j);
void tg_jdict_set(tg_jinja *j, tg_jdict *dict, tg_jtext key, tg_jvalue value);
tg_jvalue tg_jdict_get(tg_jinja *j, const tg_jdict *dict, tg_jtext key); /* undefined: not there */
tg_jvalue tg_jdict_pair(tg_jinja *j, const struct tg_jentry *entry); /* (key, value) */

bool tg_jvalue_true(tg_jvalue v);
bool tg_jvalue_equal(tg_jinja *j, tg_jvalue a, tg_jvalue b);
const char *tg_jvalue_type(tg_jvalue v); /* for messages */
/* As it is printed. */
void tg_jvalue_print(tg_jinja *j, tg_jbuffer *out, tg_jvalue v);
void tg_jvalue_json(tg_jinja *j, tg_jbuffer *out, tg_jvalue v);
/* Its items: of a list, the keys of a dictionary, the characters of a text. Undefined: none. */
tg_jlist *tg_jvalue_items(tg_jinja *j, tg_jvalue v);

#endif
