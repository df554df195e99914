/* terminal.c - one write per message, so that lines of several processes do not mix. */
#include "cli/terminal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static bool be_quiet;
static int color_when;
static int n_drawn; /* lines of progress on the screen; the cursor is at the end of the last */

void tg_say_quiet(bool quiet)
{
    be_quiet = quiet;
}

/* stderr is where failures are told; when it fails there is nobody left to tell. */
static void to_stderr(const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t did = write(STDERR_FILENO, bytes, n);
        if (did <= 0)
            return;
        bytes += did;
        n -= (size_t)did;
    }
}

/* Does fd understand more than lines of text? */
static bool is_capable(int fd)
{
    const char *term = getenv("TERM");
    return isatty(fd) && term && strcmp(term, "dumb") != 0;
}

void tg_color_when(int when)
{
    color_when = when;
}

const char *tg_style_for(int fd, tg_style style)
{
    static const char *const codes[] = {"\x1b[0m", "\x1b[1m", "\x1b[1;31m", "\x1b[1;35m"};
    const char *refused = getenv("NO_COLOR");
    if (color_when == TG_COLOR_NEVER)
        return "";
    if (color_when == TG_COLOR_AUTO && ((refused && *refused) || !is_capable(fd)))
        return "";
    return codes[style];
}

/* Puts what takes the cursor back to where progress began and, unless it is drawn anew, clears from there. */
static int put_home(char *text, bool clear)
{
    int n = 0;
    if (n_drawn > 0)
        n = sprintf(text, "\r");
    if (n_drawn > 1)
        n += sprintf(text + n, "\x1b[%dA", n_drawn - 1);
    if (n_drawn > 0 && clear)
        n += sprintf(text + n, "\x1b[J");
    n_drawn = 0;
    return n;
}

/* "tinygpt: ", a word in a style or none, and the message. */
static void say(const char *prefix, tg_style style, const char *word, const char *fmt, va_list args)
{
    char line[1400];
    size_t room = sizeof line - 1;
    int n = put_home(line, true);
    n += snprintf(line + n, room - (size_t)n, "%s", prefix);
    if (*word)
        n += snprintf(line + n, room - (size_t)n, "%s%s%s ", tg_style_for(STDERR_FILENO, style), word,
                      tg_style_for(STDERR_FILENO, TG_STYLE_PLAIN));
    int more = vsnprintf(line + n, room - (size_t)n, fmt, args);
    size_t len = (size_t)n + (more > 0 ? (size_t)more : 0);
    if (len > room - 1)
        len = room - 1;
    line[len++] = '\n';
    to_stderr(line, len);
}

#define SAY(prefix, style, word)                                                                   \
    va_list args;                                                                                  \
    va_start(args, fmt);                                                                           \
    say(prefix, style, word, fmt, args);                                                           \
    va_end(args)

void tg_say_error(const char *fmt, ...)
{
    SAY("tinygpt: ", TG_STYLE_ERROR, "error:");
}

void tg_say_warning(const char *fmt, ...)
{
    if (be_quiet)
        return;
    SAY("tinygpt: ", TG_STYLE_WARNING, "warning:");
}

void tg_say_note(const char *fmt, ...)
{
    if (be_quiet)
        return;
    SAY("tinygpt: ", TG_STYLE_PLAIN, "");
}

void tg_say_line(const char *fmt, ...)
{
    SAY("", TG_STYLE_PLAIN, "");
}

int tg_cli_fail(tg_error *err, int status, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    err->status = (tg_status)status;
    vsnprintf(err->message, sizeof err->message, fmt, args);
    va_end(args);
    return status;
}

int tg_cli_fail_errno(tg_error *err, const char *file, const char *what, int number)
{
    static const int resources[] = {ENOMEM, EMFILE, ENFILE, ENOSPC, EDQUOT, EFBIG};
    int status = TG_E_IO;
    for (size_t i = 0; i < sizeof resources / sizeof *resources; i++)
        status = number == resources[i] ? TG_E_RESOURCE : status;
    return tg_cli_fail(err, status, "%s: %s: %s", file, what, strerror(number));
}

int tg_cli_fail_memory(tg_error *err, size_t n_bytes, const char *purpose)
{
    return tg_cli_fail(err, TG_E_RESOURCE, "out of memory: %zu bytes for %s", n_bytes, purpose);
}

double tg_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void tg_terminal_size(int fd, int *columns, int *rows)
{
    struct winsize size = {0};
    ioctl(fd, TIOCGWINSZ, &size);
    *columns = size.ws_col ? size.ws_col : 80;
    *rows = size.ws_row ? size.ws_row : 24;
}

bool tg_progress_due(tg_progress *progress)
{
    double now = tg_seconds();
    if (be_quiet || !is_capable(STDERR_FILENO))
        return false;
    if (progress->begun == 0)
        progress->begun = now;
    if (now < progress->begun + 1 || now < progress->shown + 0.1)
        return false;
    progress->shown = now;
    return true;
}

/* One write, and nothing is cleared before its place is written again: no flicker. Without automatic
 * margins a line that is wider than it seemed is cut, and cannot move the ones below. */
void tg_progress_draw(const char *lines)
{
    char text[8192];
    size_t n = (size_t)put_home(text, false), line;
    n += (size_t)sprintf(text + n, "\x1b[?7l");
    for (n_drawn = 1;; n_drawn++, lines += line + 1) {
        line = strcspn(lines, "\n");
        if (n + line + 32 > sizeof text)
            break;
        n += (size_t)sprintf(text + n, "%.*s\x1b[K%s", (int)line, lines, lines[line] ? "\r\n" : "");
        if (!lines[line])
            break;
    }
    n += (size_t)sprintf(text + n, "\x1b[J\x1b[?7h");
    to_stderr(text, n);
}

void tg_progress_show(tg_progress *progress, const char *what, int64_t done, int64_t of)
{
    char line[120];
    if (!tg_progress_due(progress))
        return;
    if (of > 0)
        snprintf(line, sizeof line, "%s: %" PRId64 " of %" PRId64, what, done, of);
    else
        snprintf(line, sizeof line, "%s: %" PRId64, what, done);
    tg_progress_draw(line);
}

void tg_progress_clear(tg_progress *progress)
{
    char text[32];
    to_stderr(text, (size_t)put_home(text, true));
    progress->shown = 0;
}
