/* output.c - buffered writing that checks every call. */
#include "cli/output.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/open.h"
#include "cli/signals.h"
#include "cli/text.h"

/* ---- opening ----------------------------------------------------------------------------------
 */

/* A new file beside `path`, so that the rename stays within one file system. */
static int create_temporary(tg_output *out, tg_error *err)
{
    tg_text_quoted q;
    uint64_t number = 0;
    const char *slash = strrchr(out->path, '/');
    int folder = slash ? (int)(slash - out->path) + 1 : 0;
    size_t room = strlen(out->path) + 32;
    out->temporary = malloc(room);
    if (!out->temporary)
        return tg_cli_fail_memory(err, room, "a file name");
    for (int attempt = 0; attempt < 16; attempt++) {
        if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
            number += (uint64_t)getpid();
        snprintf(out->temporary, room, "%.*s.%.200s.%08x.tmp", folder, out->path,
                 out->path + folder, (unsigned)number);
        out->fd = tg_open(AT_FDCWD, out->temporary, O_WRONLY | O_CREAT | O_EXCL, 0666);
        if (out->fd >= 0 || errno != EEXIST)
            break;
    }
    if (out->fd >= 0) {
        tg_signals_remove(out->temporary);
        return TG_OK;
    }
    int why = errno;
    free(out->temporary);
    out->temporary = NULL;
    return tg_cli_fail_errno(err, tg_text_quote(&q, out->path), "cannot create it", why);
}

/* A link below /dev or /proc may lead to a regular file that its opener still writes to. */
bool tg_output_is_stdout(const char *path)
{
    return !path || !strcmp(path, "-") || !strcmp(path, "/dev/stdout");
}

int tg_output_open(tg_output *out, const char *path, tg_error *err)
{
    struct stat st;
    tg_text_quoted q;
    *out = (tg_output){.fd = STDOUT_FILENO};
    if (tg_output_is_stdout(path)) {
        out->is_terminal = isatty(out->fd);
        return TG_OK;
    }
    bool exists = stat(path, &st) == 0;
    if (!exists && errno != ENOENT)
        return tg_cli_fail_errno(err, tg_text_quote(&q, path), "cannot create it", errno);
    if (!exists || S_ISREG(st.st_mode)) {
        out->path = exists ? realpath(path, NULL) : strdup(path); /* keep what links to it */
        if (!out->path)
            return tg_cli_fail_errno(err, tg_text_quote(&q, path), "cannot create it", errno);
        int status = create_temporary(out, err);
        if (status)
            free(out->path);
        return status;
    }
    out->fd = tg_open(AT_FDCWD, path, O_WRONLY, 0);
    if (out->fd < 0)
        return tg_cli_fail_errno(err, tg_text_quote(&q, path), "cannot open", errno);
    out->is_terminal = isatty(out->fd);
    return TG_OK;
}

/* ---- writing ----------------------------------------------------------------------------------
 */

/* A signal was caught, and what is left might wait for ever; a terminal takes it at once when Ctrl-C was typed, behind
 * which a chat goes on. */
static bool ends_writing(const tg_output *out)
{
    const int caught = tg_signals_caught();
    return caught && !(caught == SIGINT && out->is_terminal);
}

static void write_all(tg_output *out, const char *bytes, size_t n)
{
    while (n > 0 && !out->error) {
        ssize_t did = write(out->fd, bytes, n);
        if (did >= 0) {
            bytes += did;
            n -= (size_t)did;
        } else if (errno == EAGAIN) { /* someone who shares the terminal or pipe made it so */
            poll(&(struct pollfd){.fd = out->fd, .events = POLLOUT}, 1, -1);
        } else if (errno != EINTR || ends_writing(out)) {
            out->error = errno;
        }
    }
}

void tg_output_flush(tg_output *out)
{
    write_all(out, out->buffer, out->n);
    out->n = 0;
}

void tg_output_write(tg_output *out, const void *bytes, size_t n)
{
    if (n == 0)
        return;
    out->line_open = ((const char *)bytes)[n - 1] != '\n';
    if (n > sizeof out->buffer - out->n)
        tg_output_flush(out);
    if (n > sizeof out->buffer) {
        write_all(out, bytes, n);
        return;
    }
    memcpy(out->buffer + out->n, bytes, n);
    out->n += n;
}

void tg_output_print(tg_output *out, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (n > 0)
        tg_output_write(out, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

/* ---- text -------------------------------------------------------------------------------------
 */

enum { PIECE = 1024 }; /* bytes rendered at a time */

/* The pieces end anywhere: only for modes and bytes where that does not matter. */
static void render(tg_output *out, tg_text_mode mode, const char *bytes, size_t n)
{
    char shown[(PIECE + 3) * TG_TEXT_GROWTH];
    tg_output_write(out, shown, tg_text_render(mode, bytes, n, shown));
}

void tg_output_quoted(tg_output *out, const void *bytes, size_t n)
{
    const char *p = bytes;
    for (size_t len; n > 0; p += len, n -= len) {
        len = n < PIECE ? n : PIECE;
        /* not through the middle of a character */
        for (int back = 0; len < n && back < 3 && ((unsigned char)p[len] & 0xC0) == 0x80; back++)
            len--;
        render(out, TG_TEXT_QUOTED, p, len);
    }
}

/* Characters that are whole. */
static void put_text(tg_output *out, const char *bytes, size_t n)
{
    if (out->is_terminal)
        render(out, TG_TEXT_TERMINAL, bytes, n);
    else
        tg_output_write(out, bytes, n);
}

void tg_output_text(tg_output *out, const char *bytes, size_t n)
{
    for (size_t len; n > 0; bytes += len, n -= len) {
        char whole[PIECE + 3];
        len = n < PIECE ? n : PIECE;
        put_text(out, whole, tg_stream_push(&out->stream, bytes, len, whole));
    }
}

void tg_output_text_end(tg_output *out)
{
    char rest[8];
    put_text(out, rest, tg_stream_flush(&out->stream, rest));
    if (out->is_terminal && out->line_open)
        tg_output_write(out, "\n", 1);
}

/* ---- JSON -------------------------------------------------------------------------------------
 */

json_t *tg_output_json_text(const char *bytes, size_t n)
{
    json_malloc_t get; /* so that a lack of it is noted */
    json_free_t give;
    json_get_alloc_funcs(&get, &give);
    char *fit = get(n * TG_TEXT_GROWTH + 1);
    if (!fit)
        return NULL;
    json_t *value = json_stringn(fit, tg_text_render(TG_TEXT_UTF8, bytes, n, fit));
    give(fit);
    return value;
}

json_t *tg_output_json_name(const char *s)
{
    return s && *s ? tg_output_json_text(s, strlen(s)) : json_null();
}

static int put_json(const char *bytes, size_t n, void *out)
{
    tg_output_write(out, bytes, n);
    return 0;
}

void tg_output_json(tg_output *out, json_t *value, size_t flags)
{
    if (!value || tg_json_lacks_memory() || json_dump_callback(value, put_json, out, flags | JSON_ENCODE_ANY) != 0)
        out->error = out->error ? out->error : ENOMEM;
    json_decref(value);
}

/* ---- closing ----------------------------------------------------------------------------------
 */

/* The complete file takes its name, or what was written of it goes. */
static void settle_file(tg_output *out, bool complete)
{
    if (close(out->fd) != 0 && errno != EINTR && !out->error) /* Linux closes it all the same */
        out->error = errno;
    if (!out->temporary)
        return;
    bool settled = complete && !out->error && rename(out->temporary, out->path) == 0;
    if (complete && !out->error && !settled)
        out->error = errno;
    if (!settled)
        unlink(out->temporary);
    tg_signals_remove(NULL);
}

int tg_output_close(tg_output *out, int status, tg_error *err)
{
    tg_text_quoted q;
    tg_output_flush(out);
    if (out->fd != STDOUT_FILENO)
        settle_file(out, !status && !tg_signals_caught());
    if (!status && out->error == EPIPE)
        status = TG_EXIT_PIPE;
    else if (!status && out->error && !out->path && out->error != ENOMEM)
        status = tg_cli_fail(err, TG_E_IO, "output: cannot write: %s", strerror(out->error));
    else if (!status && out->error)
        status = tg_cli_fail_errno(err, out->path ? tg_text_quote(&q, out->path) : "output", "cannot write", out->error);
    free(out->path);
    free(out->temporary);
    return status;
}
