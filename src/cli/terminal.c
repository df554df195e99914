/* terminal.c - one write per message, so that lines of several processes do not mix. */
#include "cli/terminal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static bool be_quiet;

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

static void say(const char *prefix, const char *fmt, va_list args)
{
    char line[1400];
    size_t room = sizeof line - 1;
    int n = snprintf(line, room, "%s", prefix);
    int more = vsnprintf(line + n, room - (size_t)n, fmt, args);
    size_t len = (size_t)n + (more > 0 ? (size_t)more : 0);
    if (len > room - 1)
        len = room - 1;
    line[len++] = '\n';
    to_stderr(line, len);
}

#define SAY(prefix)                                                                                \
    va_list args;                                                                                  \
    va_start(args, fmt);                                                                           \
    say(prefix, fmt, args);                                                                        \
    va_end(args)

void tg_say_error(const char *fmt, ...)
{
    SAY("tinygpt: error: ");
}

void tg_say_warning(const char *fmt, ...)
{
    if (be_quiet)
        return;
    SAY("tinygpt: warning: ");
}

void tg_say_note(const char *fmt, ...)
{
    if (be_quiet)
        return;
    SAY("tinygpt: ");
}

void tg_say_line(const char *fmt, ...)
{
    SAY("");
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

void tg_progress_show(tg_progress *progress, const char *what, int64_t done, int64_t of)
{
    double now = tg_seconds();
    if (be_quiet || !isatty(STDERR_FILENO))
        return;
    if (progress->begun == 0)
        progress->begun = now;
    if (now < progress->begun + 1 || now < progress->shown + 0.1)
        return;
    progress->shown = now;
    char line[120];
    int n = snprintf(line, sizeof line, "\r%s: %" PRId64 " of %" PRId64 "\x1b[K", what, done, of);
    to_stderr(line, (size_t)n);
}

void tg_progress_clear(tg_progress *progress)
{
    if (progress->shown > 0)
        to_stderr("\r\x1b[K", 4);
    progress->shown = 0;
}
