/* error.h - the one error path: a status, and one line that a person can act on. */
#ifndef TG_BASE_ERROR_H
#define TG_BASE_ERROR_H

#include "tinygpt/tinygpt.h"

/* What the three below do; they are not called by others. `err` may be NULL. */
void tg_error_set(tg_error *err, tg_status status, const char *file, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void tg_error_set_alloc(tg_error *err, size_t n_bytes, const char *purpose);
tg_status tg_error_set_errno(tg_error *err, const char *file, const char *what);

/* Seen by whoever fails, compilers and analysers too: a failure is never taken for TG_OK. */
static inline tg_status tg_error_is(tg_status status)
{
    return status;
}

/* Fills `err` (may be NULL) and returns `status`, so that failing is one statement:
 *     return tg_fail(err, TG_E_MODEL, path, "dimension count (found %u, allowed 1 to 4)", n);
 * `file` names what was being read, or is NULL. Text that came from outside goes through
 * tg_quote first. */
#define tg_fail(err, status, ...) (tg_error_set(err, status, __VA_ARGS__), tg_error_is(status))

/* Out of memory: size and purpose. */
static inline tg_status tg_fail_alloc(tg_error *err, size_t n_bytes, const char *purpose)
{
    tg_error_set_alloc(err, n_bytes, purpose);
    return TG_E_RESOURCE;
}

/* A system call failed: "<what>: <errno's text>"; TG_E_RESOURCE when memory, descriptors or disk ran
 * out, else TG_E_IO. */
static inline tg_status tg_fail_errno(tg_error *err, const char *file, const char *what)
{
    return tg_error_set_errno(err, file, what) == TG_E_IO ? TG_E_IO : TG_E_RESOURCE;
}

/* A buffer for tg_quote: 200 bytes at 4 characters each, an ellipsis and a NUL. */
typedef struct tg_quoted {
    char text[200 * 4 + 4];
} tg_quoted;

/* Escapes n bytes from outside as \xNN where they are not printable ASCII and cuts them at 200.
 * Returns q->text. */
const char *tg_quote(tg_quoted *q, const void *bytes, size_t n);
const char *tg_quote_str(tg_quoted *q, const char *s);

#endif
