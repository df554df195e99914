/* cmd_help.c - help by another way than --help, and the manual page. */
#include <stdio.h>
#include <string.h>

#include "cli/options.h"

/* ---- the manual page --------------------------------------------------------------------------
 */

/* Text for roff: backslashes and hyphens are spelled out, and no line begins with a control character. */
static void put_roff(tg_output *out, const char *text)
{
    if (*text == '.' || *text == '\'')
        tg_output_write(out, "\\&", 2);
    for (; *text; text++) {
        if (*text == '\\')
            tg_output_write(out, "\\e", 2);
        else if (*text == '-')
            tg_output_write(out, "\\-", 2);
        else
            tg_output_write(out, text, 1);
    }
}

static void put_manual_option(tg_output *out, const tg_option *o)
{
    char range[TG_RANGE_BYTES];
    tg_output_print(out, ".TP\n");
    if (o->letter)
        tg_output_print(out, "\\fB\\-%c\\fR, ", o->letter);
    tg_output_print(out, "\\fB\\-\\-");
    put_roff(out, o->name);
    tg_output_print(out, "\\fR");
    if (o->arg) {
        tg_output_print(out, " \\fI");
        put_roff(out, o->arg);
        tg_output_print(out, "\\fR");
    }
    tg_output_print(out, "\n");
    put_roff(out, o->help);
    if (o->kind != TG_OPTION_FLAG && o->kind != TG_OPTION_TEXT) {
        tg_output_print(out, "; ");
        put_roff(out, tg_option_describe(o, range));
    }
    if (o->preset) {
        tg_output_print(out, "; default ");
        put_roff(out, o->preset);
    }
    tg_output_print(out, ".\n");
}

static void put_manual_command(tg_output *out, const tg_command *command)
{
    tg_output_print(out, ".SS tinygpt %s [options]%s%s\n", command->name, command->operands ? " " : "",
                    command->operands ? command->operands : "");
    put_roff(out, command->summary);
    tg_output_print(out, ".\n");
    for (int i = 0; i < tg_n_options; i++)
        if (tg_option_table[i].commands & command->bit && !tg_option_is_common(&tg_option_table[i]))
            put_manual_option(out, &tg_option_table[i]);
}

static void put_manual(tg_output *out)
{
    static const struct {
        const char *term, *text;
    } environment[] = {
        {"TINYGPT_MODEL", "The model where -m names none."},
        {"TINYGPT_ISA", "The instruction-set level of the kernels: scalar, avx2 or avx512."},
        {"OMP_NUM_THREADS", "Threads where -t gives none."},
        {"HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME", "Where models from the hub lie, in this order."},
        {"HF_TOKEN, HF_TOKEN_PATH", "The token for repositories that need one, or a file with it."},
        {"HF_ENDPOINT, HF_HUB_OFFLINE", "Another hub; none at all."},
        {"https_proxy, no_proxy, CURL_CA_BUNDLE, SSL_CERT_FILE", "As curl has them."},
        {"NO_COLOR", "No colours."},
    }, statuses[] = {
        {"0", "Success."},
        {"2", "Usage: unknown option, value out of range, prompt longer than the context."},
        {"3", "Malformed or unsupported model, configuration or tokenizer."},
        {"4", "Session file rejected."},
        {"5", "Network or HTTP failure."},
        {"6", "Integrity: size or digest mismatch."},
        {"7", "Resources: memory, disk, threads, descriptors."},
        {"8", "The model computed numbers that are not finite."},
        {"9", "File I/O: missing, unreadable, or changed while in use; output that cannot be written."},
        {"129, 130, 143", "Ended by SIGHUP, SIGINT, SIGTERM."},
        {"141", "The reader of stdout went away."},
    };
    tg_output_print(out, ".TH TINYGPT 1 \"\" \"tinygpt %s\" \"User Commands\"\n.SH NAME\n"
                         "tinygpt \\- run GPT models on CPUs\n.SH SYNOPSIS\n"
                         ".B tinygpt\n.I COMMAND\n[options] [arguments]\n.SH DESCRIPTION\n",
                    TG_VERSION);
    put_roff(out, "tinygpt continues texts, talks, measures and converts models: GGUF files or Hugging Face folders. "
                  "Data goes to standard output, everything else to standard error.");
    tg_output_print(out, "\n.SH COMMANDS\n");
    for (int i = 0; i < tg_n_commands; i++)
        put_manual_command(out, &tg_commands[i]);
    tg_output_print(out, ".SH COMMON OPTIONS\n");
    for (int i = 0; i < tg_n_options; i++)
        if (tg_option_is_common(&tg_option_table[i]))
            put_manual_option(out, &tg_option_table[i]);
    tg_output_print(out, ".SH ENVIRONMENT\n");
    for (size_t i = 0; i < sizeof environment / sizeof *environment; i++)
        tg_output_print(out, ".TP\n.B %s\n%s\n", environment[i].term, environment[i].text);
    tg_output_print(out, ".SH EXIT STATUS\n");
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        tg_output_print(out, ".TP\n.B %s\n%s\n", statuses[i].term, statuses[i].text);
}

/* ---- the command ------------------------------------------------------------------------------
 */

int tg_cmd_help(const tg_options *opt, tg_error *err)
{
    static tg_output out;
    const tg_command *command = opt->operand ? tg_command_find(opt->operand, err) : NULL;
    if (opt->operand && !command)
        return TG_E_USAGE;
    int status = tg_output_open(&out, NULL, err);
    if (status)
        return status;
    if (opt->man)
        put_manual(&out);
    else
        tg_options_help(&out, command);
    return tg_output_close(&out, TG_OK, err);
}
