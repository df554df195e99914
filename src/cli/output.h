/* output.h - the one way by which results leave: to stdout, or to the file that -o names.
 *
 * The first failed write is kept and later ones do nothing, so that callers test when it suits them
 * and tg_output_close tells in the end. */
#ifndef TG_CLI_OUTPUT_H
#define TG_CLI_OUTPUT_H

#include "base/json.h"
#include "cli/terminal.h"

enum { TG_EXIT_PIPE = 141 }; /* the reader of our output went away */

typedef struct tg_output {
    int fd;
    int error; /* errno of the first failure, or 0 */
    bool is_terminal;
    bool line_open; /* the last byte written was no newline */
    char *path;     /* a regular target, made by renaming `temporary` to it; else NULL */
    char *temporary;
    tg_stream stream; /* for tg_output_text */
    size_t n;
    char buffer[16384];
} tg_output;

bool tg_output_is_stdout(const char *path); /* NULL and "-" are */

/* Devices and FIFOs are written straight; any other target appears under
 * its name only when it is complete. */
int tg_output_open(tg_output *out, const char *path, tg_error *err);

void tg_output_write(tg_output *out, const void *bytes, size_t n);
void tg_output_print(tg_output *out, const char *fmt, ...) TG_PRINTF(2, 3); /* up to 1 KiB */
void tg_output_quoted(tg_output *out, const void *bytes, size_t n);         /* as TG_TEXT_QUOTED */
/* Frees value. Where jansson has had no memory, it is not written, and that is the output's error. */
void tg_output_json(tg_output *out, json_t *value, size_t flags);
void tg_output_flush(tg_output *out);

/* Text as it streams, by whole characters: the very bytes to a pipe or a file; escaped to a terminal. */
void tg_output_text(tg_output *out, const char *bytes, size_t n);
/* Puts what is held back, and on a terminal ends an open line. */
void tg_output_text_end(tg_output *out);

/* A string value from any bytes: bad UTF-8 becomes U+FFFD. */
json_t *tg_output_json_text(const char *bytes, size_t n);
json_t *tg_output_json_name(const char *s); /* null for NULL and "" */

/* Ends the output of a command that ended with `status`. Returns `status`, or, where that is zero
 * and a write had failed, TG_EXIT_PIPE without a message or TG_E_IO. A file is renamed into place
 * on success alone. */
int tg_output_close(tg_output *out, int status, tg_error *err);

#endif
