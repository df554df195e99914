/* options.c - the command line, read by the option table. getopt_long does the walking. */
#include "cli/options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "cli/text.h"

static int word_index(const char *words, const char *word, size_t len)
{
    for (int i = 0;; i++) {
        size_t n = strcspn(words, "|");
        if (n == len && !strncmp(words, word, n))
            return i;
        if (!words[n])
            return -1;
        words += n + 1;
    }
}

static bool append(tg_list *list, int64_t value)
{
    if (list->n == TG_LIST_MAX)
        return false;
    list->value[list->n++] = (int)value;
    return true;
}

/* A number at *text, which moves behind it. */
static bool scan_number(const char **text, int64_t min, int64_t max, int64_t *value)
{
    char digits[24];
    size_t n = strspn(*text, "0123456789");
    if (n >= sizeof digits)
        return false;
    snprintf(digits, sizeof digits, "%.*s", (int)n, *text);
    *text += n;
    return tg_number_int(digits, min, max, value);
}

/* first, first-last, first-last+step or first-last*factor. */
static bool append_range(tg_list *list, const tg_option *o, const char **text)
{
    int64_t min = (int64_t)o->min, max = (int64_t)o->max, first, last, step = 1;
    char how = '+';
    if (!scan_number(text, min, max, &first))
        return false;
    last = first;
    if (**text == '-') {
        ++*text;
        if (!scan_number(text, first, max, &last))
            return false;
        if (**text == '+' || **text == '*') {
            how = *(*text)++;
            if (!scan_number(text, how == '*' ? 2 : 1, max, &step))
                return false;
        }
    }
    if (how == '*' && first == 0)
        return false; /* it would never grow */
    for (; first <= last; first = how == '*' ? first * step : first + step)
        if (!append(list, first))
            return false;
    return true;
}

static bool append_all(tg_list *list, const tg_option *o, const char *text)
{
    if (!list->given)
        list->n = 0;
    list->given = true;
    for (;; text++) {
        if (o->kind == TG_OPTION_LIST) {
            if (!append_range(list, o, &text))
                return false;
        } else {
            size_t len = strcspn(text, ",");
            int word = word_index(o->arg, text, len);
            if (word < 0 || !append(list, word))
                return false;
            text += len;
        }
        if (*text != ',')
            return *text == '\0';
    }
}

static bool append_text(tg_texts *texts, const char *text)
{
    if (texts->n == TG_LIST_MAX)
        return false;
    texts->text[texts->n++] = text;
    return true;
}

bool tg_option_set(tg_options *opt, const tg_option *o, const char *text)
{
    void *field = (char *)opt + o->field;
    int64_t number;
    switch (o->kind) {
    case TG_OPTION_FLAG:
        *(bool *)field = true;
        return true;
    case TG_OPTION_TEXT:
        *(const char **)field = text;
        return true;
    case TG_OPTION_TEXTS:
        return append_text(field, text);
    case TG_OPTION_INT:
        if (!tg_number_int(text, (int64_t)o->min, (int64_t)o->max, &number))
            return false;
        *(int *)field = (int)number;
        return true;
    case TG_OPTION_REAL:
        return tg_number_real(text, o->min, o->max, field);
    case TG_OPTION_SEED:
        opt->seed_given = true;
        return tg_number_u64(text, field);
    case TG_OPTION_CHOICE:
        *(int *)field = word_index(o->arg, text, strlen(text));
        return *(int *)field >= 0;
    case TG_OPTION_LIST:
    case TG_OPTION_CHOICES:
        return append_all(field, o, text);
    }
    return false;
}

static void set_presets(tg_options *opt, unsigned command)
{
    for (int i = 0; i < tg_n_options; i++) {
        const tg_option *o = &tg_option_table[i];
        void *field = (char *)opt + o->field;
        if (!(o->commands & command))
            continue;
        if (o->preset)
            tg_option_set(opt, o, o->preset);
        else if (o->kind == TG_OPTION_CHOICE)
            *(int *)field = -1;
        if (o->kind == TG_OPTION_LIST || o->kind == TG_OPTION_CHOICES)
            ((tg_list *)field)->given = false;
    }
}

static int unknown_long(const tg_command *command, const char *name, tg_error *err)
{
    const char *names[TG_OPTIONS_MAX];
    tg_text_quoted q;
    for (int i = 0; i < tg_n_options; i++) {
        const tg_option *o = &tg_option_table[i];
        names[i] = o->commands & command->bit ? o->name : NULL;
        if (strcmp(o->name, name) || names[i])
            continue;
        for (int c = 0; c < tg_n_commands; c++)
            if (tg_commands[c].bit & o->commands)
                return tg_cli_fail(err, TG_E_USAGE, "%s has no option --%s; %s has one",
                                   command->name, name, tg_commands[c].name);
    }
    const char *nearest = tg_options_nearest(name, names, tg_n_options);
    tg_text_quote(&q, name);
    if (nearest)
        return tg_cli_fail(err, TG_E_USAGE, "unknown option --%s (did you mean --%s?)", q.text,
                           nearest);
    return tg_cli_fail(err, TG_E_USAGE, "unknown option --%s (see tinygpt %s --help)", q.text,
                       command->name);
}

/* Checks a long option before getopt sees it: names are taken in full, so that scripts stay right
 * when options are added, and a miss deserves a better answer than getopt has. */
static int check_word(const tg_command *command, const char *word, tg_error *err)
{
    char name[TG_NAME_MAX + 1];
    bool two = word[0] == '-' && word[1] == '-';
    if (word[0] != '-' || !word[1] || (two && !word[2]))
        return TG_OK;
    size_t len = strcspn(word + 1 + two, "=");
    snprintf(name, sizeof name, "%.*s", (int)(len < TG_NAME_MAX ? len : TG_NAME_MAX), word + 1 + two);
    for (int i = 0; i < tg_n_options; i++) {
        const tg_option *o = &tg_option_table[i];
        if (!(o->commands & command->bit) || strcmp(o->name, name))
            continue;
        if (!two)
            return tg_cli_fail(err, TG_E_USAGE, "-%s: long options take two dashes: --%s", name,
                               name);
        if (o->kind == TG_OPTION_FLAG && word[2 + len] == '=')
            return tg_cli_fail(err, TG_E_USAGE, "--%s takes no argument", name);
        return TG_OK;
    }
    return two ? unknown_long(command, name, err) : TG_OK;
}

static int add_operand(tg_options *opt, const tg_command *command, char *word, tg_error *err)
{
    tg_text_quoted q;
    if (!command->operands)
        return tg_cli_fail(err, TG_E_USAGE, "%s takes options only, not '%s'", command->name,
                           tg_text_quote(&q, word));
    if (opt->n_operands == command->max_operands)
        return tg_cli_fail(err, TG_E_USAGE, "%s takes %s, not '%s' too%s", command->name, command->operands,
                           tg_text_quote(&q, word), opt->n_operands == 1 ? " (quote a text of several words)" : "");
    opt->operands[opt->n_operands++] = word; /* in argv, where this word or an earlier one stood */
    opt->operand = opt->operands[0];
    return TG_OK;
}

/* What getopt is given for one command: short options as "-:p:f:q...", long ones by table row. */
typedef struct spelling {
    char shorts[2 * TG_OPTIONS_MAX + 3];
    struct option longs[TG_OPTIONS_MAX + 1];
} spelling;

enum { LONG_BASE = 256 }; /* above any letter */

static void spell(spelling *s, unsigned command)
{
    char *p = s->shorts;
    struct option *l = s->longs;
    *p++ = '-'; /* operands come in their place, as option 1 */
    *p++ = ':'; /* a missing argument is told as ':' */
    for (int i = 0; i < tg_n_options; i++) {
        const tg_option *o = &tg_option_table[i];
        int takes = o->kind == TG_OPTION_FLAG ? no_argument : required_argument;
        if (!(o->commands & command))
            continue;
        *l++ = (struct option){o->name, takes, NULL, LONG_BASE + i};
        if (o->letter)
            *p++ = o->letter;
        if (o->letter && takes == required_argument)
            *p++ = ':';
    }
    *p = '\0';
    *l = (struct option){0};
}

static const tg_option *by_code(unsigned command, int code)
{
    if (code >= LONG_BASE)
        return &tg_option_table[code - LONG_BASE];
    for (int i = 0; i < tg_n_options; i++)
        if (tg_option_table[i].letter == code && tg_option_table[i].commands & command)
            return &tg_option_table[i];
    return NULL;
}

/* An option as it was typed: "-n" or "--temp". */
static const char *typed(const tg_option *o, int code, char *text, size_t room)
{
    if (code >= LONG_BASE)
        snprintf(text, room, "--%s", o->name);
    else
        snprintf(text, room, "-%c", o->letter);
    return text;
}

int tg_options_parse(tg_options *opt, const tg_command *command, int argc, char **argv,
                     tg_error *err)
{
    char range[TG_RANGE_BYTES], name[TG_NAME_MAX + 3];
    tg_text_quoted q;
    spelling s;
    *opt = (tg_options){.command = command, .operands = argv};
    set_presets(opt, command->bit);
    spell(&s, command->bit);
    optind = 0; /* start afresh, here and in tests */
    opterr = 0;
    for (;;) {
        int at = optind ? optind : 1;
        if (at < argc && check_word(command, argv[at], err))
            return TG_E_USAGE;
        int code = getopt_long(argc, argv, s.shorts, s.longs, NULL);
        if (code == -1)
            break;
        if (code == 1) {
            if (add_operand(opt, command, optarg, err))
                return TG_E_USAGE;
            continue;
        }
        bool missing = code == ':';
        if (missing)
            code = optopt;
        if (code == '?')
            return tg_cli_fail(err, TG_E_USAGE, "unknown option -%c (see tinygpt %s --help)",
                               optopt > 0x20 && optopt < 0x7F ? optopt : '?', command->name);
        const tg_option *o = by_code(command->bit, code);
        typed(o, code, name, sizeof name);
        if (missing)
            return tg_cli_fail(err, TG_E_USAGE, "%s needs an argument: %s", name,
                               tg_option_describe(o, range));
        if (!tg_option_set(opt, o, optarg))
            return tg_cli_fail(err, TG_E_USAGE, "%s: '%s' is not %s", name,
                               tg_text_quote(&q, optarg), tg_option_describe(o, range));
        if (opt->help || opt->version)
            return TG_OK;
    }
    for (; optind < argc; optind++) /* behind -- */
        if (add_operand(opt, command, argv[optind], err))
            return TG_E_USAGE;
    return TG_OK;
}
