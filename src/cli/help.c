/* help.c - the option table as text for people. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/options.h"

/* What a number may be: "0 to 1". */
static const char *limits(const tg_option *o, char *text)
{
    if (o->kind == TG_OPTION_SEED)
        snprintf(text, TG_RANGE_BYTES, "0 to %" PRIu64, UINT64_MAX);
    else
        snprintf(text, TG_RANGE_BYTES, o->kind == TG_OPTION_REAL ? "%g to %g" : "%.0f to %.0f", o->min,
                 o->max);
    return text;
}

/* What an argument may be: "a number from 0 to 1". */
const char *tg_option_describe(const tg_option *o, char text[TG_RANGE_BYTES])
{
    char range[TG_RANGE_BYTES];
    if (o->kind == TG_OPTION_CHOICE)
        snprintf(text, TG_RANGE_BYTES, "one of %s", o->arg);
    else if (o->kind == TG_OPTION_CHOICES)
        snprintf(text, TG_RANGE_BYTES, "a list, separated by commas, of %s", o->arg);
    else if (o->kind == TG_OPTION_TEXTS)
        snprintf(text, TG_RANGE_BYTES, "%s, given up to %d times", o->arg, TG_LIST_MAX);
    else if (o->kind == TG_OPTION_LIST)
        snprintf(text, TG_RANGE_BYTES, "a list (1,2 or 1-8 or 1-9+2 or 1-8*2) of up to %d from %.40s",
                 TG_LIST_MAX, limits(o, range));
    else if (o->kind == TG_OPTION_REAL)
        snprintf(text, TG_RANGE_BYTES, "a number from %.40s", limits(o, range));
    else if (o->kind == TG_OPTION_INT || o->kind == TG_OPTION_SEED)
        snprintf(text, TG_RANGE_BYTES, "a whole number from %.40s", limits(o, range));
    else
        snprintf(text, TG_RANGE_BYTES, "%s", o->arg);
    return text;
}

/* ---- help -------------------------------------------------------------------------------------
 */

enum { HELP_WIDTH = 80, HELP_LEFT = 28 };

/* Wraps `text` between the columns; the cursor stands at `column`. */
static void put_wrapped(tg_output *out, int column, const char *text)
{
    bool fresh = column > HELP_LEFT - 2;
    if (fresh)
        tg_output_print(out, "\n%*s", HELP_LEFT, "");
    else
        tg_output_print(out, "%*s", HELP_LEFT - column, "");
    column = HELP_LEFT;
    while (*text) {
        int word = (int)strcspn(text, " ");
        if (column > HELP_LEFT && column + 1 + word > HELP_WIDTH) {
            tg_output_print(out, "\n%*s", HELP_LEFT, "");
            column = HELP_LEFT;
        }
        tg_output_print(out, "%s%.*s", column > HELP_LEFT ? " " : "", word, text);
        column += word + (column > HELP_LEFT);
        text += word;
        text += strspn(text, " ");
    }
    tg_output_write(out, "\n", 1);
}

bool tg_option_is_common(const tg_option *o)
{
    return (o->commands & TG_CMD_MODEL) == TG_CMD_MODEL;
}

static void put_option(tg_output *out, const tg_option *o)
{
    char left[64], text[400], range[TG_RANGE_BYTES];
    bool ranged = o->kind == TG_OPTION_INT || o->kind == TG_OPTION_REAL || o->kind == TG_OPTION_LIST;
    int n = o->letter ? snprintf(left, sizeof left, "  -%c, --%s", o->letter, o->name)
                      : snprintf(left, sizeof left, "      --%s", o->name);
    if (o->arg)
        n += snprintf(left + n, sizeof left - (size_t)n, " %s", o->arg);
    const char *gap = ranged && o->preset ? "; " : "";
    if (ranged || o->preset)
        snprintf(text, sizeof text, "%s (%s%s%s%s)", o->help, ranged ? limits(o, range) : "", gap,
                 o->preset ? "default " : "", o->preset ? o->preset : "");
    else
        snprintf(text, sizeof text, "%s%s", o->help, o->kind == TG_OPTION_TEXTS ? " (may be repeated)" : "");
    tg_output_write(out, left, (size_t)n);
    put_wrapped(out, n, text);
}

static void put_program(tg_output *out)
{
    tg_output_print(out, "usage: tinygpt COMMAND [options]\n\n");
    for (int i = 0; i < tg_n_commands; i++)
        tg_output_print(out, "  %-10s %s\n", tg_commands[i].name, tg_commands[i].summary);
    tg_output_print(out, "\ntinygpt help COMMAND tells the options of a command, and\n"
                         "tinygpt --version what this build is.\n");
}

void tg_options_help(tg_output *out, const tg_command *command)
{
    if (!command) {
        put_program(out);
        return;
    }
    tg_output_print(out, "usage: tinygpt %s [options]", command->name);
    if (command->operands)
        tg_output_print(out, " %s", command->operands);
    tg_output_print(out, "\n\n%s\n", command->summary);
    for (int common = 0; common < 2; common++) {
        const char *heading = common ? "\ncommon to all commands:\n" : "\noptions:\n";
        for (int i = 0; i < tg_n_options; i++) {
            const tg_option *o = &tg_option_table[i];
            if (!(o->commands & command->bit) || tg_option_is_common(o) != common)
                continue;
            tg_output_print(out, "%s", heading);
            heading = "";
            put_option(out, o);
        }
    }
}
