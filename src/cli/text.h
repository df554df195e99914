/* text.h - bytes from outside, made fit to be shown. */
#ifndef TG_CLI_TEXT_H
#define TG_CLI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that grow; zeroed before use. */
typedef struct tg_bytes {
    char *bytes; /* n of them, any values, and a NUL behind; NULL until the first; free() */
    size_t n, room;
} tg_bytes;

/* False, with nothing changed, when there is no memory. */
bool tg_bytes_append(tg_bytes *to, const void *bytes, size_t n);

typedef enum tg_text_mode {
    TG_TEXT_TERMINAL, /* control bytes but newline and tab as \xNN, bad UTF-8 as U+FFFD */
    TG_TEXT_UTF8,     /* bad UTF-8 as U+FFFD and nothing else: what JSON takes */
    TG_TEXT_QUOTED,   /* one line of a listing: \n, \t, \r, \", \\, other control and bad bytes as
                         \xNN, and so the controls of the order of characters (U+202E and the like) */
} tg_text_mode;

enum { TG_TEXT_GROWTH = 4 }; /* bytes out for a byte in, at most */

/* Renders n bytes into out, which has room for TG_TEXT_GROWTH * n of them, and returns how many it
 * put. Each maximal part of an ill-formed sequence counts as one bad character (Unicode 16, 3.9).
 */
size_t tg_text_render(tg_text_mode mode, const void *bytes, size_t n, char *out);

/* Amounts of bytes for people, in three digits: "512 B", "1.23 KiB", "94.2 MiB"; of another, in its
 * unit: "3.0/94.2 MiB". Both return text. */
enum { TG_TEXT_BYTES = 24 };
const char *tg_text_bytes(char text[TG_TEXT_BYTES], uint64_t n_bytes);
const char *tg_text_bytes_of(char text[TG_TEXT_BYTES], uint64_t n_bytes, uint64_t of);

/* Columns that a string takes where each character takes one. */
int tg_text_width(const char *s);
/* A string of `width` columns: filled with blanks, or cut in the middle, since names differ at their ends. Returns
 * its bytes; `room` must be enough for them. */
int tg_text_fit(char *out, size_t room, const char *s, int width);

/* For messages: a string in TG_TEXT_QUOTED form, cut at 200 bytes. Returns q->text. */
typedef struct tg_text_quoted {
    char text[200 * TG_TEXT_GROWTH + 8];
} tg_text_quoted;

const char *tg_text_quote(tg_text_quoted *q, const char *s);

/* The name of a model; of a URL neither the user part nor the query, which may hold secrets. */
const char *tg_text_quote_name(tg_text_quoted *q, const char *name);

#endif
