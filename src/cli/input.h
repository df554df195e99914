/* input.h - messages that a person types: lines that go on, blocks, pasted text, and Ctrl-C. */
#ifndef TG_CLI_INPUT_H
#define TG_CLI_INPUT_H

#include "cli/terminal.h"
#include "cli/text.h"

typedef enum tg_input_kind {
    TG_INPUT_MESSAGE,
    TG_INPUT_CLEARED, /* Ctrl-C took away what was typed so far */
    TG_INPUT_END,     /* Ctrl-D, or the end of the file; or a signal, as tg_signals_caught tells: Ctrl-C where nothing
                         was typed for one */
    TG_INPUT_FAILED,
} tg_input_kind;

typedef struct tg_input {
    tg_bytes message;
    char *bytes; /* read and not given out yet */
    size_t n_bytes, room;
    bool ended;
} tg_input;

/* Waits for a message on stdin, a terminal. A line that ends in a backslash goes on in the next one; """ begins a block
 * that ends with """. What is pasted arrives whole. */
tg_input_kind tg_input_read(tg_input *input, tg_error *err);
void tg_input_free(tg_input *input);

#endif
