/* lines.c - reading from descriptors that may make us wait. */
#include "cli/lines.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/open.h"
#include "cli/signals.h"

enum { PATIENCE_MS = 2000, PIECE = 1 << 16 };

static bool can_read(int fd, int timeout)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    int ready = poll(&wait, 1, timeout);
    return ready > 0 || (ready < 0 && errno != EINTR);
}

/* Until a byte or the end is there; after two seconds a note says what is waited for, once. False when a signal
 * that ends the program came instead. */
static bool await(int fd, const char *name)
{
    static bool told;
    double begun = tg_seconds();
    while (!can_read(fd, PATIENCE_MS)) {
        if (tg_signals_caught())
            return false;
        if (told || tg_seconds() - begun < PATIENCE_MS / 1000.0)
            continue;
        tg_say_note("waiting for text from %s%s", name, fd == STDIN_FILENO ? " (--no-stdin to go without)" : "");
        told = true;
    }
    return true;
}

int tg_lines_open_file(int *fd, const char *path, const tg_text_quoted *name, tg_error *err)
{
    /* Not blocking: a FIFO without a writer then waits where a message can be given. */
    *fd = tg_open(AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0);
    return *fd >= 0 ? TG_OK : tg_cli_fail_errno(err, name->text, "cannot open", errno);
}

ssize_t tg_lines_read(int fd, const char *name, char *bytes, size_t n, tg_error *err)
{
    for (;;) {
        if (tg_signals_caught() || !await(fd, name))
            return 0;
        ssize_t did = read(fd, bytes, n);
        if (did >= 0)
            return did;
        if (errno != EINTR && errno != EAGAIN) {
            tg_cli_fail_errno(err, name, "cannot read", errno);
            return -1;
        }
    }
}

int tg_lines_open(tg_lines *lines, const char *path, size_t max_line, tg_error *err)
{
    *lines = (tg_lines){.max_line = max_line};
    bool from_stdin = !path || !strcmp(path, "-");
    tg_text_quote(&lines->name, from_stdin ? "stdin" : path);
    /* Answers that go behind the lines would be lines, too, and so on until the disk is full. */
    int status = (int)tg_path_check_output("/dev/stdout", from_stdin ? "/dev/stdin" : path, err);
    return status || from_stdin ? status : tg_lines_open_file(&lines->fd, path, &lines->name, err);
}

void tg_lines_close(tg_lines *lines)
{
    if (lines->fd > STDIN_FILENO)
        close(lines->fd);
    free(lines->bytes);
    *lines = (tg_lines){0};
}

/* Reads another piece behind what is not given out yet, which moves to the front. */
static int read_more(tg_lines *lines, tg_error *err)
{
    size_t left = lines->n - lines->at;
    if (lines->at > 0)
        memmove(lines->bytes, lines->bytes + lines->at, left);
    lines->at = 0;
    lines->n = left;
    if (lines->room - left <= PIECE) {
        size_t room = 2 * lines->room + PIECE + 1; /* one more, for a NUL */
        char *bytes = realloc(lines->bytes, room);
        if (!bytes)
            return tg_cli_fail_memory(err, room, "a line of text");
        lines->bytes = bytes;
        lines->room = room;
    }
    ssize_t did = tg_lines_read(lines->fd, lines->name.text, lines->bytes + left, PIECE, err);
    if (did < 0)
        return (int)err->status;
    lines->n += (size_t)did;
    lines->ended = did == 0;
    return TG_OK;
}

static char *find_end(const tg_lines *lines, size_t from)
{
    return lines->n > from ? memchr(lines->bytes + from, '\n', lines->n - from) : NULL;
}

int tg_lines_next(tg_lines *lines, char **line, size_t *n, tg_error *err)
{
    size_t searched = 0; /* bytes of the line in which there is no end */
    char *end;
    *line = NULL;
    *n = 0;
    while (!(end = find_end(lines, lines->at + searched)) && !lines->ended) {
        searched = lines->n - lines->at;
        if (searched > lines->max_line) { /* no more of it is kept */
            searched = lines->max_line + 1;
            lines->n = lines->at + searched;
        }
        int status = read_more(lines, err);
        if (status)
            return status;
    }
    if (tg_signals_caught() || (!end && lines->n == lines->at))
        return TG_OK;
    *n = (end ? (size_t)(end - lines->bytes) : lines->n) - lines->at;
    *line = lines->bytes + lines->at;
    lines->at += *n + (end != NULL);
    if (*n > lines->max_line)
        *n = lines->max_line + 1;
    (*line)[*n] = '\0';
    return TG_OK;
}

bool tg_lines_ready(const tg_lines *lines)
{
    return lines->ended || find_end(lines, lines->at) || can_read(lines->fd, 0);
}
