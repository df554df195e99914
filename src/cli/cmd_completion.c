/* cmd_completion.c - what shells need to complete a command line, from the tables of commands and options. */
#include <string.h>

#include "cli/options.h"
#include "cli/text.h"

/* ---- what the tables say ----------------------------------------------------------------------
 */

static bool has(const tg_command *command, const tg_option *o)
{
    return (o->commands & command->bit) != 0;
}

/* The words an argument is one of, with `between` for the bars; NULL: it is no such thing. */
static const char *choices(const tg_option *o, char between, char *text, size_t room)
{
    if (o->kind != TG_OPTION_CHOICE && o->kind != TG_OPTION_CHOICES)
        return NULL;
    snprintf(text, room, "%s", o->arg);
    for (char *p = text; *p; p++)
        *p = *p == '|' ? between : *p;
    return text;
}

static bool is_among(const char *text, const char *const *list, size_t n)
{
    for (size_t i = 0; text && i < n; i++)
        if (!strcmp(text, list[i]))
            return true;
    return false;
}

#define IS_AMONG(text, ...) \
    is_among(text, (const char *const[]){__VA_ARGS__}, sizeof(const char *[]){__VA_ARGS__} / sizeof(char *))

static bool takes_path(const tg_option *o)
{
    return IS_AMONG(o->arg, "FILE", "FOLDER", "MODEL");
}

/* What a shell runs for the names that may stand as an argument of this kind, be it beside paths; NULL: none. */
static const char *names_for(const char *argument)
{
    if (IS_AMONG(argument, "MODEL", "[MODEL]", "IN OUT", "NAME..."))
        return "tinygpt list 2>/dev/null | sed 1d | cut -d\\  -f1";
    if (IS_AMONG(argument, "WHAT [FILE...]"))
        return "tinygpt list --catalog 2>/dev/null | sed 1d | cut -d\\  -f1";
    if (IS_AMONG(argument, "TYPE"))
        return "tinygpt quantize --type help 2>/dev/null | cut -d\\  -f1";
    return NULL;
}

/* Commands whose operands are words of the program. */
static bool takes_command(const tg_command *command)
{
    return command->bit == TG_CMD_HELP;
}

static const char shells[] = "bash fish zsh";

static void put_commands(tg_output *out)
{
    for (int i = 0; i < tg_n_commands; i++)
        tg_output_print(out, "%s%s", i ? " " : "", tg_commands[i].name);
}

/* Within single quotes, with a backslash before each byte of `special`. */
static void put_quoted(tg_output *out, const char *text, const char *special)
{
    for (; *text; text++) {
        if (*text == '\'')
            tg_output_write(out, "'\\'", 3);
        else if (strchr(special, *text))
            tg_output_write(out, "\\", 1);
        tg_output_write(out, text, 1);
    }
}

/* ---- bash -------------------------------------------------------------------------------------
 */

static void put_bash_argument(tg_output *out, const tg_command *command, const tg_option *o)
{
    char words[256];
    if (o->kind == TG_OPTION_FLAG)
        return;
    tg_output_print(out, "    %s:--%s", command->name, o->name);
    if (o->letter)
        tg_output_print(out, "|%s:-%c", command->name, o->letter);
    if (choices(o, ' ', words, sizeof words))
        tg_output_print(out, ") words='%s' files= ;;\n", words); /* whatever operands may be */
    else if (names_for(o->arg))
        tg_output_print(out, ") words=$(%s) files=%s ;;\n", names_for(o->arg), takes_path(o) ? "1" : "");
    else
        tg_output_print(out, ") %s ;;\n", takes_path(o) ? "return" : "compopt +o default; return");
}

static void put_bash(tg_output *out)
{
    tg_output_print(out, "# bash completion of tinygpt\n_tinygpt() {\n"
                         "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words= files=\n"
                         "    COMPREPLY=()\n    [[ $current == -* ]] || case $COMP_CWORD:${COMP_WORDS[1]}:$before in\n"
                         "    1:*) words='");
    put_commands(out);
    tg_output_print(out, "' ;;\n");
    for (int c = 0; c < tg_n_commands; c++) {
        if (takes_command(&tg_commands[c])) {
            tg_output_print(out, "    2:%s:*) words='", tg_commands[c].name);
            put_commands(out);
            tg_output_print(out, "' ;;\n");
        } else if (tg_commands[c].bit == TG_CMD_COMPLETION) {
            tg_output_print(out, "    2:%s:*) words='%s' ;;\n", tg_commands[c].name, shells);
        } else if (names_for(tg_commands[c].operands)) {
            tg_output_print(out, "    *:%s:*) words=$(%s) files=1 ;;\n", tg_commands[c].name,
                            names_for(tg_commands[c].operands));
        }
    }
    tg_output_print(out, "    esac\n    case ${COMP_WORDS[1]}:$before in\n");
    for (int c = 0; c < tg_n_commands; c++)
        for (int i = 0; i < tg_n_options; i++)
            if (has(&tg_commands[c], &tg_option_table[i]))
                put_bash_argument(out, &tg_commands[c], &tg_option_table[i]);
    tg_output_print(out, "    esac\n    [[ $words || $current != -* ]] || case ${COMP_WORDS[1]} in\n");
    for (int c = 0; c < tg_n_commands; c++) {
        tg_output_print(out, "    %s) words='", tg_commands[c].name);
        for (int i = 0, n = 0; i < tg_n_options; i++)
            if (has(&tg_commands[c], &tg_option_table[i]))
                tg_output_print(out, "%s--%s", n++ ? " " : "", tg_option_table[i].name);
        tg_output_print(out, "' ;;\n");
    }
    tg_output_print(out, "    esac\n    [[ $files ]] && compopt -o filenames\n"
                         "    [[ $words ]] && mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\"\n"
                         "        [[ ! $files ]] || compgen -f -- \"$current\")\n"
                         "}\ncomplete -o default -F _tinygpt tinygpt\n");
}

/* ---- zsh --------------------------------------------------------------------------------------
 */

static void put_zsh_names(tg_output *out, const char *command, bool files)
{
    tg_output_print(out, ":name:{compadd -- ${(f)\"$(%s)\"}%s}", command, files ? "; _files" : "");
}

static void put_zsh_option(tg_output *out, const tg_option *o)
{
    char words[256];
    const char *again = o->kind == TG_OPTION_TEXTS || o->kind == TG_OPTION_LIST ? "*" : "";
    if (o->letter && *again)
        tg_output_print(out, " \\\n        '*'{-%c,--%s}'[", o->letter, o->name);
    else if (o->letter)
        tg_output_print(out, " \\\n        '(-%c --%s)'{-%c,--%s}'[", o->letter, o->name, o->letter, o->name);
    else
        tg_output_print(out, " \\\n        '%s--%s[", again, o->name);
    put_quoted(out, o->help, "[]:\\");
    tg_output_print(out, "]");
    if (choices(o, ' ', words, sizeof words))
        tg_output_print(out, ":word:(%s)", words);
    else if (names_for(o->arg))
        put_zsh_names(out, names_for(o->arg), takes_path(o));
    else if (o->kind != TG_OPTION_FLAG)
        tg_output_print(out, ":%s:%s", o->arg, takes_path(o) ? "_files" : "");
    tg_output_print(out, "'");
}

static void put_zsh(tg_output *out)
{
    tg_output_print(out, "#compdef tinygpt\n_tinygpt() {\n    local -a commands\n    commands=(\n");
    for (int c = 0; c < tg_n_commands; c++) {
        tg_output_print(out, "        '%s:", tg_commands[c].name);
        put_quoted(out, tg_commands[c].summary, ":\\");
        tg_output_print(out, "'\n");
    }
    tg_output_print(out, "    )\n    if ((CURRENT == 2)); then\n        _describe command commands\n        return\n    fi\n"
                         "    local command=$words[2]\n    shift words\n    ((CURRENT--))\n    case $command in\n");
    for (int c = 0; c < tg_n_commands; c++) {
        tg_output_print(out, "    %s)\n        _arguments -s", tg_commands[c].name);
        for (int i = 0; i < tg_n_options; i++)
            if (has(&tg_commands[c], &tg_option_table[i]))
                put_zsh_option(out, &tg_option_table[i]);
        if (takes_command(&tg_commands[c])) {
            tg_output_print(out, " \\\n        '1:command:(");
            put_commands(out);
            tg_output_print(out, ")'");
        } else if (tg_commands[c].bit == TG_CMD_COMPLETION) {
            tg_output_print(out, " \\\n        '1:shell:(%s)'", shells);
        } else if (names_for(tg_commands[c].operands)) {
            tg_output_print(out, " \\\n        '*");
            put_zsh_names(out, names_for(tg_commands[c].operands), true);
            tg_output_print(out, "'");
        } else if (tg_commands[c].max_operands > 0) {
            tg_output_print(out, " \\\n        '*:argument:_files'");
        }
        tg_output_print(out, "\n        ;;\n");
    }
    tg_output_print(out, "    esac\n}\nif [[ $funcstack[1] == _tinygpt ]]; then\n    _tinygpt \"$@\"\nelse\n"
                         "    compdef _tinygpt tinygpt\nfi\n");
}

/* ---- fish -------------------------------------------------------------------------------------
 */

static void put_fish_option(tg_output *out, const tg_command *command, const tg_option *o)
{
    char words[256];
    tg_output_print(out, "complete -c tinygpt -n '__fish_seen_subcommand_from %s' -l %s", command->name, o->name);
    if (o->letter)
        tg_output_print(out, " -s %c", o->letter);
    if (choices(o, ' ', words, sizeof words))
        tg_output_print(out, " -x -a '%s'", words);
    else if (names_for(o->arg))
        tg_output_print(out, " -%c -a '(%s)'", takes_path(o) ? 'r' : 'x', names_for(o->arg));
    else if (o->kind != TG_OPTION_FLAG)
        tg_output_print(out, takes_path(o) ? " -r" : " -x");
    tg_output_print(out, " -d '");
    for (const char *p = o->help; *p; p++) {
        if (*p == '\'' || *p == '\\')
            tg_output_write(out, "\\", 1);
        tg_output_write(out, p, 1);
    }
    tg_output_print(out, "'\n");
}

static void put_fish(tg_output *out)
{
    for (int c = 0; c < tg_n_commands; c++) {
        const tg_command *command = &tg_commands[c];
        tg_output_print(out, "complete -c tinygpt -n __fish_use_subcommand -f -a %s -d '%s'\n", command->name,
                        command->summary);
        if (takes_command(command) || command->bit == TG_CMD_COMPLETION) {
            tg_output_print(out, "complete -c tinygpt -n '__fish_seen_subcommand_from %s' -f -a '", command->name);
            if (takes_command(command))
                put_commands(out);
            else
                tg_output_print(out, "%s", shells);
            tg_output_print(out, "'\n");
        }
        if (names_for(command->operands))
            tg_output_print(out, "complete -c tinygpt -n '__fish_seen_subcommand_from %s' -a '(%s)'\n", command->name,
                            names_for(command->operands));
        for (int i = 0; i < tg_n_options; i++)
            if (has(command, &tg_option_table[i]))
                put_fish_option(out, command, &tg_option_table[i]);
    }
}

/* ---- the command ------------------------------------------------------------------------------
 */

int tg_cmd_completion(const tg_options *opt, tg_error *err)
{
    static const struct {
        const char *name;
        void (*put)(tg_output *out);
    } shell[] = {{"bash", put_bash}, {"fish", put_fish}, {"zsh", put_zsh}};
    static tg_output out;
    tg_text_quoted q;
    for (size_t i = 0; opt->operand && i < sizeof shell / sizeof *shell; i++) {
        if (strcmp(opt->operand, shell[i].name))
            continue;
        int status = tg_output_open(&out, NULL, err);
        if (status)
            return status;
        shell[i].put(&out);
        return tg_output_close(&out, TG_OK, err);
    }
    return tg_cli_fail(err, TG_E_USAGE, "completion needs a shell (found %s, allowed %s)",
                       opt->operand ? tg_text_quote(&q, opt->operand) : "none", shells);
}
