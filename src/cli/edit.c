/* edit.c - see edit.h. Signals are held here: the first one only sets the flag, so that the terminal is put right. */
#include "cli/edit.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/signals.h"
#ifdef TG_WITH_READLINE
#include <locale.h>
#include <readline/history.h>
#include <readline/readline.h>
#endif

/* Where people see what is not data. */
static FILE *shown_on(void)
{
    return isatty(STDERR_FILENO) || !isatty(STDOUT_FILENO) ? stderr : stdout;
}

/* Until something can be read; false on a signal that was caught. */
static bool await(void)
{
    struct pollfd wait = {.fd = STDIN_FILENO, .events = POLLIN};
    while (!tg_signals_caught())
        if (poll(&wait, 1, -1) > 0 || (errno != EINTR && errno != EAGAIN))
            return !tg_signals_caught();
    return false;
}

/* ---- the terminal's own lines -------------------------------------------------------------------- */

static bool ready(void)
{
    struct pollfd wait = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&wait, 1, 0) > 0;
}

static tg_input_kind read_more(tg_input *in, tg_error *err)
{
    enum { PIECE = 1 << 16 };
    if (in->room - in->n_bytes < PIECE) {
        char *more = realloc(in->bytes, in->n_bytes + 2 * PIECE);
        if (!more) {
            tg_cli_fail_memory(err, in->n_bytes + 2 * PIECE, "a line");
            return TG_INPUT_FAILED;
        }
        in->bytes = more;
        in->room = in->n_bytes + 2 * PIECE;
    }
    if (!await())
        return TG_INPUT_END;
    ssize_t did = read(STDIN_FILENO, in->bytes + in->n_bytes, PIECE);
    if (did < 0 && errno != EINTR && errno != EAGAIN) {
        tg_cli_fail(err, TG_E_IO, "stdin: cannot read: %s", strerror(errno));
        return TG_INPUT_FAILED;
    }
    in->ended = did == 0;
    in->n_bytes += did > 0 ? (size_t)did : 0;
    return TG_INPUT_MESSAGE;
}

/* All whole lines that are there, as one. */
static tg_input_kind read_plain(tg_input *in, const char *prompt, char **line, tg_error *err)
{
    tg_input_kind kind = TG_INPUT_MESSAGE;
    fputs(prompt, shown_on());
    fflush(shown_on());
    while (kind == TG_INPUT_MESSAGE && !in->ended && (!memchr(in->bytes ? in->bytes : "", '\n', in->n_bytes) || ready()))
        kind = read_more(in, err);
    if (kind == TG_INPUT_END || (kind == TG_INPUT_MESSAGE && in->n_bytes == 0)) {
        fputs("\n", shown_on());
        return TG_INPUT_END;
    }
    if (kind == TG_INPUT_FAILED)
        return kind;
    size_t n = in->n_bytes;
    while (n > 0 && !in->ended && in->bytes[n - 1] != '\n')
        n--;
    *line = strndup(in->bytes, n - (n > 0 && in->bytes[n - 1] == '\n'));
    if (!*line) {
        tg_cli_fail_memory(err, n, "a line");
        return TG_INPUT_FAILED;
    }
    in->n_bytes -= n;
    memmove(in->bytes, in->bytes + n, in->n_bytes);
    return TG_INPUT_MESSAGE;
}

/* ---- readline ----------------------------------------------------------------------------------- */

#ifdef TG_WITH_READLINE
static struct {
    bool done;
    char *line; /* NULL: the end */
} edited;

static void on_line(char *line)
{
    edited.done = true;
    edited.line = line;
    rl_callback_handler_remove(); /* the terminal is as it was, before anything is written to it */
}

static tg_input_kind read_edited(const char *prompt, char **line)
{
    setlocale(LC_CTYPE, ""); /* for the widths of characters, and for nothing else */
    rl_outstream = shown_on();
    rl_catch_signals = 0;
    rl_bind_key('\t', rl_insert);
    edited.done = false;
    rl_callback_handler_install(prompt, on_line);
    while (!edited.done && await())
        rl_callback_read_char();
    if (!edited.done) {
        bool typed = rl_end > 0;
        rl_callback_sigcleanup();
        rl_replace_line("", 0);
        rl_callback_handler_remove();
        fputs("^C\n", shown_on());
        return typed ? TG_INPUT_CLEARED : TG_INPUT_END;
    }
    *line = edited.line;
    if (!*line)
        fputs("\n", shown_on());
    return *line ? TG_INPUT_MESSAGE : TG_INPUT_END;
}
#endif

tg_input_kind tg_edit_line(tg_input *in, const char *prompt, char **line, tg_error *err)
{
    tg_input_kind kind;
    *line = NULL;
    tg_signals_hold(true);
#ifdef TG_WITH_READLINE
    if (isatty(fileno(shown_on())))
        kind = read_edited(prompt, line);
    else
#endif
        kind = read_plain(in, prompt, line, err);
    tg_signals_hold(false);
    return kind;
}

void tg_edit_remember(const char *text)
{
#ifdef TG_WITH_READLINE
    enum { REMEMBERED = 1000 };
    stifle_history(REMEMBERED);
    if (*text)
        add_history(text);
#else
    (void)text;
#endif
}
