/* terminal.h - what people are told: messages and progress, all on stderr.
 *
 * Every message is one line, written at once: "tinygpt: error: ...", "tinygpt: warning: ...",
 * "tinygpt: ...". Strings from outside must have passed tg_text_quote or come from a tg_error. */
#ifndef TG_CLI_TERMINAL_H
#define TG_CLI_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

#include "tinygpt/tinygpt.h"

#define TG_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* Fills err and returns `status`, so that failing is one statement. */
int tg_cli_fail(tg_error *err, int status, const char *fmt, ...) TG_PRINTF(3, 4);
/* A call of the system failed with the errno `number`: TG_E_RESOURCE when something ran out, else TG_E_IO. The file's
 * name is quoted. */
int tg_cli_fail_errno(tg_error *err, const char *file, const char *what, int number);
int tg_cli_fail_memory(tg_error *err, size_t n_bytes, const char *purpose);

void tg_say_error(const char *fmt, ...) TG_PRINTF(1, 2);
void tg_say_warning(const char *fmt, ...) TG_PRINTF(1, 2); /* silent under -q */
void tg_say_note(const char *fmt, ...) TG_PRINTF(1, 2);    /* silent under -q */
void tg_say_line(const char *fmt, ...) TG_PRINTF(1, 2);    /* as it is: asked for by an option */
void tg_say_quiet(bool quiet);                             /* -q: errors alone */

/* Colours, as --color says: those of a terminal that is able to, unless NO_COLOR is set, for TG_COLOR_AUTO. */
enum { TG_COLOR_AUTO, TG_COLOR_ALWAYS, TG_COLOR_NEVER }; /* in the order of the option's words */
void tg_color_when(int when);

typedef enum tg_style { TG_STYLE_PLAIN, TG_STYLE_BOLD, TG_STYLE_ERROR, TG_STYLE_WARNING } tg_style;
/* What begins a style in a text that goes to fd, TG_STYLE_PLAIN what ends it; "" where there are no colours. */
const char *tg_style_for(int fd, tg_style style);

/* Seconds on a clock that never runs backwards. */
double tg_seconds(void);

/* Columns and rows of the terminal that fd is; 80 and 24 where it does not say. */
void tg_terminal_size(int fd, int *columns, int *rows);

/* Lines that are written over themselves: only when stderr is a terminal, not under -q, and only for
 * what takes longer than a second. A message takes them away, so that they stay the last thing on the
 * screen. One at a time; zeroed before use. */
typedef struct tg_progress {
    double begun, shown; /* seconds; 0: not yet */
} tg_progress;

void tg_progress_show(tg_progress *progress, const char *what, int64_t done, int64_t of);
/* The same for any lines, which fit the terminal, with newlines between them, when it is time to. */
bool tg_progress_due(tg_progress *progress);
void tg_progress_draw(const char *lines);
void tg_progress_clear(tg_progress *progress);

#endif
