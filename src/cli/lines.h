/* lines.h - text that comes from outside in pieces: waiting for it, and taking it line by line. */
#ifndef TG_CLI_LINES_H
#define TG_CLI_LINES_H

#include <sys/types.h>

#include "cli/terminal.h"
#include "cli/text.h"

/* Opens a file to read from; a FIFO too that nobody writes to yet. `name` is for the message. */
int tg_lines_open_file(int *fd, const char *path, const tg_text_quoted *name, tg_error *err);

/* The next bytes of fd: up to n, 0 at the end or when a signal is to end the program, -1 with err filled. When two
 * seconds pass without one, a note says what is waited for. */
ssize_t tg_lines_read(int fd, const char *name, char *bytes, size_t n, tg_error *err);

/* Lines of any number, of which no more is held than one and a piece. */
typedef struct tg_lines {
    int fd;
    tg_text_quoted name; /* for messages */
    char *bytes;         /* [n], of which those before `at` have been given out */
    size_t n, at, room, max_line;
    bool ended;
} tg_lines;

/* `path` NULL or "-" is stdin. TG_E_USAGE when it is the file that stdout goes to. */
int tg_lines_open(tg_lines *lines, const char *path, size_t max_line, tg_error *err);
void tg_lines_close(tg_lines *lines);
/* *line becomes the next one's n bytes, without its newline and with a NUL behind, until the next call, or NULL
 * behind the last, and when a signal is to end the program. What follows the last newline is a line unless it is empty.
 * Of a line that is longer than max_line the first max_line + 1 bytes come, and the rest is passed over. */
int tg_lines_next(tg_lines *lines, char **line, size_t *n, tg_error *err);
/* Is there something to go on with, a line, a part of one or the end, without waiting? */
bool tg_lines_ready(const tg_lines *lines);

#endif
