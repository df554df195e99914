/* error.c - filling the caller's error record. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void tg_error_set(tg_error *err, tg_status status, const char *file, const char *fmt, ...)
{
    if (!err)
        return;
    err->status = status;
    size_t used = 0;
    if (file) {
        tg_quoted q;
        used = (size_t)snprintf(err->message, sizeof err->message, "%s: ", tg_quote_str(&q, file));
    }
    if (used >= sizeof err->message)
        return;
    va_list args;
    va_start(args, fmt);
    vsnprintf(err->message + used, sizeof err->message - used, fmt, args);
    va_end(args);
}

void tg_error_set_alloc(tg_error *err, size_t n_bytes, const char *purpose)
{
    tg_error_set(err, TG_E_RESOURCE, NULL, "out of memory: %zu bytes for %s", n_bytes, purpose);
}

tg_status tg_error_set_errno(tg_error *err, const char *file, const char *what)
{
    int e = errno;
    bool resource = e == ENOMEM || e == EMFILE || e == ENFILE || e == ENOSPC || e == EDQUOT || e == EFBIG;
    return tg_fail(err, resource ? TG_E_RESOURCE : TG_E_IO, file, "%s: %s", what, strerror(e));
}

const char *tg_quote(tg_quoted *q, const void *bytes, size_t n)
{
    static const char hex[] = "0123456789abcdef";
    const unsigned char *s = bytes;
    size_t cut = n > 200 ? 200 : n, k = 0;
    for (size_t i = 0; i < cut; i++) {
        if (s[i] >= 0x20 && s[i] < 0x7f && s[i] != '\\') {
            q->text[k++] = (char)s[i];
        } else {
            q->text[k++] = '\\';
            q->text[k++] = 'x';
            q->text[k++] = hex[s[i] >> 4];
            q->text[k++] = hex[s[i] & 15];
        }
    }
    if (cut < n) {
        memcpy(q->text + k, "...", 3);
        k += 3;
    }
    q->text[k] = 0;
    return q->text;
}

const char *tg_quote_str(tg_quoted *q, const char *s)
{
    return tg_quote(q, s, strlen(s));
}
