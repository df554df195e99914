/* edit.h - one line from a terminal: edited by readline where the build has it, else by the terminal itself. */
#ifndef TG_CLI_EDIT_H
#define TG_CLI_EDIT_H

#include "cli/input.h"

/* *line (free) is the line without its end; the prompt is shown before. With readline, pasted text is one line,
 * newlines and all; without, lines that are there already when one is read are taken for pasted. */
tg_input_kind tg_edit_line(tg_input *input, const char *prompt, char **line, tg_error *err);
void tg_edit_remember(const char *text); /* for the arrow keys */

#endif
