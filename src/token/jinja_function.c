/* jinja_function.c - the functions that a chat template finds. To add one: a function and a row of the table. */
#include <time.h>

#include "token/jinja_call.h"

static tg_jvalue make_namespace(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    (void)of;
    args->named->is_namespace = !j->failed;
    return TG_JVALUE(DICT, dict, args->named);
}

static tg_jvalue make_dict(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    (void)j;
    (void)of;
    return TG_JVALUE(DICT, dict, args->named);
}

static tg_jvalue raise_exception(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    (void)of;
    tg_jtext text = tg_jinja_printed(j, tg_jinja_argument(j, args, 0, "message"));
    char why[200];
    tg_quoted q;
    size_t n = text.n < sizeof why ? text.n : sizeof why;
    for (size_t i = 0; i < n; i++)
        why[i] = (char)text.s[i];
    if (!j->failed)
        tg_fail(j->err, TG_E_USAGE, j->file, "the model's chat template refuses the conversation: %s", tg_quote(&q, why, n));
    j->failed = true;
    return (tg_jvalue){0};
}

static tg_jvalue make_range(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    (void)of;
    int64_t end[3] = {0, 0, 1};
    size_t n = args->at->n;
    for (size_t i = 0; i < n; i++) {
        if (args->at->v[i].kind != TG_J_INT)
            return tg_jinja_fail(j, "a range of %s", tg_jvalue_type(args->at->v[i]));
        end[n == 1 ? 1 : i] = args->at->v[i].i;
    }
    tg_jlist *list = tg_jlist_new(j);
    if (n == 0 || end[2] == 0)
        return tg_jinja_fail(j, "a range that does not move");
    bool more = true;
    for (int64_t i = end[0]; more && !j->failed && (end[2] > 0 ? i < end[1] : i > end[1]);) {
        tg_jlist_add(j, list, TG_JVALUE(INT, i, i));
        more = !__builtin_add_overflow(i, end[2], &i);
    }
    return TG_JVALUE(LIST, list, list);
}

static tg_jvalue strftime_now(tg_jinja *j, tg_jvalue of, const tg_jargs *args)
{
    (void)of;
    tg_jtext format = tg_jinja_need_text(j, tg_jinja_argument(j, args, 0, "format"));
    char spelled[256], shown[256];
    time_t now = (time_t)j->now;
    struct tm tm;
    if (format.n >= sizeof spelled || !localtime_r(&now, &tm))
        return tg_jinja_fail(j, "a date that cannot be shown");
    for (size_t i = 0; i < format.n; i++)
        spelled[i] = (char)format.s[i];
    spelled[format.n] = '\0';
    size_t n = strftime(shown, sizeof shown, spelled, &tm);
    return tg_jinja_text(tg_jtext_from(j, shown, n, 0));
}

static const tg_jinja_row functions[] = {
    {"dict", make_dict, 0, 0},
    {"namespace", make_namespace, 0, 0},
    {"raise_exception", raise_exception, 0, 1},
    {"range", make_range, 0, 3},
    {"strftime_now", strftime_now, 0, 1},
};

bool tg_jinja_is_function(tg_jtext name)
{
    return tg_jinja_find_row(functions, TG_JINJA_COUNT(functions), name, 0) != NULL;
}

tg_jvalue tg_jinja_function(tg_jinja *j, tg_jtext name, const tg_jargs *args)
{
    const tg_jinja_row *r = tg_jinja_find_row(functions, TG_JINJA_COUNT(functions), name, 0);
    return r ? tg_jinja_call_row(j, r, name, (tg_jvalue){0}, args) : tg_jinja_unknown(j, "function", name);
}
