/* input.c - makes messages of lines. */
#include "cli/input.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cli/edit.h"
#include "cli/signals.h"

static const char block[] = "\"\"\"";
enum { BLOCK = sizeof block - 1 };

static bool append(tg_input *in, const char *s, size_t n, tg_error *err)
{
    if (tg_bytes_append(&in->message, s, n))
        return true;
    tg_cli_fail_memory(err, in->message.n + n, "a message");
    return false;
}

static bool ends_with(const tg_input *in, size_t from, const char *end)
{
    size_t n = strlen(end);
    return in->message.n - from >= n && !memcmp(in->message.bytes + in->message.n - n, end, n);
}

/* Does the message go on? What says so is taken away, and a newline put where the next line comes. */
static bool goes_on(tg_input *in, bool *in_block)
{
    size_t begin = 0;
    if (!*in_block && in->message.n >= BLOCK && !memcmp(in->message.bytes, block, BLOCK)) {
        *in_block = true;
        begin = BLOCK;
    }
    if (*in_block && !ends_with(in, begin, block)) {
        in->message.bytes[in->message.n++] = '\n'; /* where the NUL stood */
        return true;
    }
    if (*in_block) {
        size_t from = BLOCK + (in->message.bytes[BLOCK] == '\n'), to = in->message.n - BLOCK;
        to -= to > from && in->message.bytes[to - 1] == '\n';
        in->message.n = to > from ? to - from : 0;
        memmove(in->message.bytes, in->message.bytes + from, in->message.n);
        in->message.bytes[in->message.n] = '\0';
        return false;
    }
    if (!ends_with(in, 0, "\\"))
        return false;
    in->message.bytes[in->message.n - 1] = '\n';
    return true;
}

tg_input_kind tg_input_read(tg_input *in, tg_error *err)
{
    bool in_block = false, first = true;
    in->message.n = 0;
    for (;; first = false) {
        char *line;
        tg_input_kind kind = tg_edit_line(in, first ? ">>> " : "... ", &line, err);
        if (kind == TG_INPUT_END && !first && (!tg_signals_caught() || tg_signals_caught() == SIGINT))
            kind = TG_INPUT_CLEARED; /* what went on does not any more */
        if (kind == TG_INPUT_CLEARED)
            tg_signals_forget();
        if (kind != TG_INPUT_MESSAGE)
            return kind;
        bool good = append(in, line, strlen(line), err);
        free(line);
        if (!good)
            return TG_INPUT_FAILED;
        if (!goes_on(in, &in_block))
            break;
    }
    tg_edit_remember(in->message.bytes);
    return TG_INPUT_MESSAGE;
}

void tg_input_free(tg_input *in)
{
    free(in->message.bytes);
    free(in->bytes);
}
