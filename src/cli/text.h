/* text.h - bytes from outside, made fit to be shown. */
#ifndef TG_CLI_TEXT_H
#define TG_CLI_TEXT_H

#include <stdbool.h>
#include <stddef.h>

typedef enum tg_text_mode {
    TG_TEXT_TERMINAL, /* control bytes but newline and tab as \xNN, bad UTF-8 as U+FFFD */
    TG_TEXT_UTF8,     /* bad UTF-8 as U+FFFD and nothing else: what JSON takes */
    TG_TEXT_QUOTED,   /* one line of a listing: \n, \t, \r, \", \\, other control and bad bytes as
                         \xNN */
} tg_text_mode;

enum { TG_TEXT_GROWTH = 4 }; /* bytes out for a byte in, at most */

/* Renders n bytes into out, which has room for TG_TEXT_GROWTH * n of them, and returns how many it
 * put. Each maximal part of an ill-formed sequence counts as one bad character (Unicode 16, 3.9).
 */
size_t tg_text_render(tg_text_mode mode, const void *bytes, size_t n, char *out);

/* For messages: a string in TG_TEXT_QUOTED form, cut at 200 bytes. Returns q->text. */
typedef struct tg_text_quoted {
    char text[200 * TG_TEXT_GROWTH + 8];
} tg_text_quoted;

const char *tg_text_quote(tg_text_quoted *q, const char *s);

#endif
