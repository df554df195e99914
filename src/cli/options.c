/* options.c - the option table and everything that reads it. getopt_long does the walking. */
#include "cli/options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/text.h"

/* ---- the table --------------------------------------------------------------------------------
 */

/* To add an option: a field in tg_options and a row here. Rows of one command differ in name and
 * letter; tests/cli/test_options.c walks the table. Limits are those of the library. */

#define KV_TYPES "f32|f16|bf16|q8_0|q4" /* in the order of tg_kv_type */

#define GEN                            TG_CMD_GENERATE
#define TOK                            TG_CMD_TOKENIZE
#define LOG                            TG_CMD_LOGITS
#define INS                            TG_CMD_INSPECT
#define BEN                            TG_CMD_BENCH
#define QUA                            TG_CMD_QUANTIZE
#define FIELD(f)                       offsetof(tg_options, f)
#define FLAG(f)                        TG_OPTION_FLAG, FIELD(f), NULL, 0, 0, NULL
#define TEXT(f, arg)                   TG_OPTION_TEXT, FIELD(f), arg, 0, 0, NULL
#define INT(f, arg, min, max, preset)  TG_OPTION_INT, FIELD(f), arg, min, max, preset
#define REAL(f, arg, min, max, preset) TG_OPTION_REAL, FIELD(f), arg, min, max, preset
#define CHOICE(f, words, preset)       TG_OPTION_CHOICE, FIELD(f), words, 0, 0, preset
#define LIST(f, min, max, preset)      TG_OPTION_LIST, FIELD(f), "N,...", min, max, preset
#define CHOICES(f, words, preset)      TG_OPTION_CHOICES, FIELD(f), words, 0, 0, preset

/* clang-format off */
const tg_option tg_option_table[] = {
    {"prompt", 'p', GEN | LOG, TEXT(prompt, "STR"), "the text to start from"},
    {"file", 'f', GEN | TOK | LOG, TEXT(file, "FILE"), "read the text from FILE; - is stdin"},
    {"no-stdin", 0, GEN | TOK | LOG, FLAG(no_stdin),
     "leave stdin alone; else what a pipe brings goes before the text given, and is the text when "
     "none is given"},
    {"chomp", 0, GEN | TOK | LOG, FLAG(chomp), "drop one newline (LF or CRLF) at the end of the text"},

    {"max-tokens", 'n', GEN, INT(n_max, "N", -1, 1048576, "256"),
     "tokens to generate; -1: to the end of the context"},
    {"temp", 0, GEN, REAL(temp, "X", 0, 100, "0.8"),
     "temperature of the draw; 0 always takes the likeliest token"},
    {"top-k", 0, GEN, INT(top_k, "N", 0, 2147483647, "40"), "draw from the N likeliest; 0: from all"},
    {"top-p", 0, GEN, REAL(top_p, "X", 0, 1, "0.95"),
     "draw from the fewest tokens that have probability X together; 1: from all"},
    {"min-p", 0, GEN, REAL(min_p, "X", 0, 1, "0.05"),
     "drop tokens less likely than X times the likeliest; 0: none"},
    {"seed", 0, GEN, TG_OPTION_SEED, FIELD(seed), "N", 0, 0, NULL,
     "start of the random draws; the same seed gives the same text"},
    {"ignore-eos", 0, GEN, FLAG(ignore_eos), "go on where the model would end"},
    {"echo", 0, GEN, FLAG(echo), "write the prompt before the text"},
    {"stats", 0, GEN, FLAG(stats), "tell counts, speeds and peak memory on stderr at the end"},

    {"ids", 0, TOK, FLAG(ids), "the ids alone, on one line"},
    {"count", 0, TOK, FLAG(count), "the number of tokens alone"},
    {"decode", 0, TOK, TEXT(decode, "IDS"),
     "write the text of IDS, which commas or blanks separate; - reads them from stdin"},

    {"ids", 0, LOG, TEXT(ids_text, "IDS"),
     "token ids instead of a text, which commas or blanks separate; - reads them from stdin"},
    {"all", 0, LOG, FLAG(all), "a row for every position, not for the last alone"},
    {"format", 0, LOG, CHOICE(format, "text|json|npy", "text"),
     "text: the likeliest tokens of each row; json, npy: whole rows in the order of ids"},
    {"top", 0, LOG, INT(top, "N", 1, 4194304, "10"), "tokens shown of each row as text"},
    {"output", 'o', LOG, TEXT(output, "FILE"), "write to FILE; - is stdout"},

    {"special", 0, GEN | TOK | LOG, FLAG(special),
     "special tokens spelled in the text count as such, and are shown"},
    {"no-bos", 0, GEN | TOK | LOG, FLAG(no_bos), "add no begin-of-text token"},

    {"tensors", 0, INS, FLAG(tensors), "list the tensors too"},
    {"json", 0, TOK | INS, FLAG(json), "write JSON"},

    {"n-prompt", 'p', BEN, LIST(n_prompts, 0, 1048576, "512"),
     "tokens of a prompt to evaluate; 0: no such test. A list is 1,2,8, with ranges 1-8, 1-9+2 or "
     "1-8*2, and all combinations of the lists are run"},
    {"n-gen", 'n', BEN, LIST(n_gens, 0, 1048576, "128"),
     "tokens to generate, one at a time; 0: no such test"},
    {"n-depth", 'd', BEN, LIST(n_depths, 0, 1048576, "0"), "tokens in the cache before"},
    {"repetitions", 'r', BEN, INT(n_repetitions, "N", 1, 1000, "5"), "runs of each test"},
    {"output", 'o', BEN, CHOICE(table, "md|csv|json|jsonl", "md"),
     "the format, as llama-bench has it (and not a file, as logits has it)"},
    {"no-warmup", 0, BEN, FLAG(no_warmup), "no run before those that count"},
    {"threads", 't', BEN, LIST(thread_counts, 0, 512, NULL),
     "threads; 0 or absent: OMP_NUM_THREADS, else one per core that may be used"},
    {"batch", 'b', BEN, LIST(batches, 1, 65536, "512"), "prompt tokens computed at once"},
    {"kv-type", 0, BEN, CHOICES(kv_types, KV_TYPES, "f16"),
     "number formats of the cached keys and values, separated by commas"},
    {"kv-type-k", 0, BEN, CHOICES(kv_types_k, KV_TYPES, NULL), "those of the keys alone"},
    {"kv-type-v", 0, BEN, CHOICES(kv_types_v, KV_TYPES, NULL),
     "those of the values alone"},

    {"type", 0, QUA, TEXT(type, "TYPE"),
     "number formats of the weights: Q4_K_M, Q8_0, F16 and others, as llama.cpp names them; help lists them"},
    {"requantize", 0, QUA, FLAG(requantize),
     "take weights that are quantised already, too: what was lost stays lost, and more is"},

    {"context", 'c', GEN | LOG | INS, INT(n_ctx, "N", 1, 1048576, NULL),
     "positions that the cache holds; by default what the run needs, rounded up to 256, but at most "
     "what the model was trained for"},
    {"batch", 'b', GEN | LOG | INS, INT(n_batch, "N", 1, 65536, "512"),
     "prompt tokens computed at once"},
    {"threads", 't', GEN | LOG | INS | QUA, INT(n_threads, "N", 0, 512, NULL),
     "threads; 0 or absent: OMP_NUM_THREADS, else one per core that may be used"},
    {"kv-type", 0, GEN | LOG | INS, CHOICE(kv_type, KV_TYPES, "f16"),
     "number format of the cached keys and values"},
    {"kv-type-k", 0, GEN | LOG | INS, CHOICE(kv_type_k, KV_TYPES, NULL),
     "that of the keys alone"},
    {"kv-type-v", 0, GEN | LOG | INS, CHOICE(kv_type_v, KV_TYPES, NULL),
     "that of the values alone"},
    {"window", 0, GEN | LOG, INT(window, "N", 1, 1048576, NULL),
     "attend to the last N positions only; absent: as the model has it"},
    {"keep", 0, GEN | LOG, INT(keep, "N", 0, 1048576, NULL),
     "under a window, attend to the first N positions as well"},
    {"attention", 0, GEN | LOG | BEN, TEXT(attention, "NAME"),
     "the attention algorithm, for comparison; help lists them (default auto)"},
    {"precise", 0, GEN | LOG | INS | BEN, FLAG(precise), "keep activations in float32 on quantised weights"},
    {"blas", 0, GEN | LOG | BEN, CHOICE(blas, "on|off", "on"),
     "off: float weights give the same bits for any batch size"},

    {"model", 'm', TG_CMD_MODEL, TEXT(model, "MODEL"),
     "a GGUF file or a Hugging Face folder; else TINYGPT_MODEL, else the model that comes with "
     "tinygpt"},
    {"no-mmap", 0, TG_CMD_MODEL, FLAG(no_mmap), "read the model instead of mapping it"},
    {"quiet", 'q', TG_CMD_ALL, FLAG(quiet), "errors alone on stderr"},
    {"verbose", 'v', TG_CMD_ALL, FLAG(verbose), "tell what was chosen"},
    {"help", 'h', TG_CMD_ALL, FLAG(help), "this text"},
    {"version", 0, TG_CMD_ALL, FLAG(version), "version and build"},
};
/* clang-format on */
enum { N_OPTIONS = sizeof tg_option_table / sizeof tg_option_table[0] };
const int tg_n_options = N_OPTIONS;

/* ---- numbers ----------------------------------------------------------------------------------
 */

static size_t count_digits(const char *s)
{
    return strspn(s, "0123456789");
}

bool tg_number_int(const char *text, int64_t min, int64_t max, int64_t *value)
{
    size_t sign = text[0] == '-', digits = count_digits(text + sign);
    if (digits == 0 || text[sign + digits])
        return false;
    errno = 0;
    *value = strtoll(text, NULL, 10);
    return errno == 0 && *value >= min && *value <= max;
}

bool tg_number_u64(const char *text, uint64_t *value)
{
    size_t digits = count_digits(text);
    if (digits == 0 || text[digits])
        return false;
    errno = 0;
    *value = strtoull(text, NULL, 10);
    return errno == 0;
}

bool tg_number_real(const char *text, double min, double max, double *value)
{
    const char *s = text + (text[0] == '-');
    size_t whole = count_digits(s), part = 0;
    s += whole;
    if (*s == '.') {
        part = count_digits(s + 1);
        s += 1 + part;
    }
    if (whole + part == 0)
        return false;
    if (*s == 'e' || *s == 'E') {
        s += 1 + (s[1] == '-' || s[1] == '+');
        if (count_digits(s) == 0)
            return false;
        s += count_digits(s);
    }
    if (*s)
        return false;
    *value = strtod(text, NULL); /* the locale is never set: "." is the point */
    return *value >= min && *value <= max;
}

/* ---- near misses ------------------------------------------------------------------------------
 */

enum { NAME_MAX_ = 32 }; /* longer words are near to nothing */

/* Insertions, deletions, substitutions and swaps of neighbours that make b of a. */
static int distance(const char *a, const char *b)
{
    int n = (int)strlen(a), m = (int)strlen(b);
    int row[3][NAME_MAX_ + 1]; /* the last three rows of the table, by i mod 3 */
    for (int i = 0; i <= n; i++) {
        int *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            if (i == 0) {
                now[j] = j;
                continue;
            }
            int best = last[j - 1] + (a[i - 1] != b[j - 1]);
            best = last[j] + 1 < best ? last[j] + 1 : best;
            best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = before[j - 2] + 1 < best ? before[j - 2] + 1 : best;
            now[j] = best;
        }
    }
    return row[n % 3][m];
}

const char *tg_options_nearest(const char *typed, const char *const *names, int n)
{
    size_t len = strlen(typed);
    const char *nearest = NULL;
    int least = 1 + (int)len / 4; /* more than that is another word */
    if (len == 0 || len > NAME_MAX_)
        return NULL;
    for (int i = 0; i < n; i++) {
        if (!names[i])
            continue;
        size_t name_len = strlen(names[i]), common = len < name_len ? len : name_len;
        int d = common >= 3 && !strncmp(typed, names[i], common) ? 1 : distance(typed, names[i]);
        if (d < least || (d == least && !nearest)) {
            least = d;
            nearest = names[i];
        }
    }
    return nearest;
}

/* ---- parsing ----------------------------------------------------------------------------------
 */

enum { RANGE_BYTES = 120 };

/* What a number may be: "0 to 1". */
static const char *limits(const tg_option *o, char *text)
{
    if (o->kind == TG_OPTION_SEED)
        snprintf(text, RANGE_BYTES, "0 to %" PRIu64, UINT64_MAX);
    else
        snprintf(text, RANGE_BYTES, o->kind == TG_OPTION_REAL ? "%g to %g" : "%.0f to %.0f", o->min,
                 o->max);
    return text;
}

/* What an argument may be: "a number from 0 to 1". */
static const char *describe(const tg_option *o, char *text)
{
    char range[RANGE_BYTES];
    if (o->kind == TG_OPTION_CHOICE)
        snprintf(text, RANGE_BYTES, "one of %s", o->arg);
    else if (o->kind == TG_OPTION_CHOICES)
        snprintf(text, RANGE_BYTES, "a list, separated by commas, of %s", o->arg);
    else if (o->kind == TG_OPTION_LIST)
        snprintf(text, RANGE_BYTES, "a list (1,2 or 1-8 or 1-9+2 or 1-8*2) of up to %d from %.40s",
                 TG_LIST_MAX, limits(o, range));
    else if (o->kind == TG_OPTION_REAL)
        snprintf(text, RANGE_BYTES, "a number from %.40s", limits(o, range));
    else if (o->kind == TG_OPTION_INT || o->kind == TG_OPTION_SEED)
        snprintf(text, RANGE_BYTES, "a whole number from %.40s", limits(o, range));
    else
        snprintf(text, RANGE_BYTES, "%s", o->arg);
    return text;
}

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
    size_t n = count_digits(*text);
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

/* Stores a value; false when the option does not take it. */
static bool set(tg_options *opt, const tg_option *o, const char *text)
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
    for (int i = 0; i < N_OPTIONS; i++) {
        const tg_option *o = &tg_option_table[i];
        void *field = (char *)opt + o->field;
        if (!(o->commands & command))
            continue;
        if (o->preset)
            set(opt, o, o->preset);
        else if (o->kind == TG_OPTION_CHOICE)
            *(int *)field = -1;
        if (o->kind == TG_OPTION_LIST || o->kind == TG_OPTION_CHOICES)
            ((tg_list *)field)->given = false;
    }
}

static int unknown_long(const tg_command *command, const char *name, tg_error *err)
{
    const char *names[N_OPTIONS];
    tg_text_quoted q;
    for (int i = 0; i < N_OPTIONS; i++) {
        const tg_option *o = &tg_option_table[i];
        names[i] = o->commands & command->bit ? o->name : NULL;
        if (strcmp(o->name, name) || names[i])
            continue;
        for (int c = 0; c < tg_n_commands; c++)
            if (tg_commands[c].bit & o->commands)
                return tg_cli_fail(err, TG_E_USAGE, "%s has no option --%s; %s has one",
                                   command->name, name, tg_commands[c].name);
    }
    const char *nearest = tg_options_nearest(name, names, N_OPTIONS);
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
    char name[NAME_MAX_ + 1];
    bool two = word[0] == '-' && word[1] == '-';
    if (word[0] != '-' || !word[1] || (two && !word[2]))
        return TG_OK;
    size_t len = strcspn(word + 1 + two, "=");
    snprintf(name, sizeof name, "%.*s", (int)(len < NAME_MAX_ ? len : NAME_MAX_), word + 1 + two);
    for (int i = 0; i < N_OPTIONS; i++) {
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

static int add_operand(tg_options *opt, const tg_command *command, const char *word, tg_error *err)
{
    tg_text_quoted q;
    if (!command->operand)
        return tg_cli_fail(err, TG_E_USAGE, "%s takes options only, not '%s'", command->name,
                           tg_text_quote(&q, word));
    if (opt->operand && command->second) {
        if (opt->second)
            return tg_cli_fail(err, TG_E_USAGE, "%s takes %s and %s, not '%s' too", command->name,
                               command->operand, command->second, tg_text_quote(&q, word));
        opt->second = word;
        return TG_OK;
    }
    if (opt->operand)
        return tg_cli_fail(err, TG_E_USAGE,
                           "%s takes one %s (quote a text of several words), not '%s' too",
                           command->name, command->operand, tg_text_quote(&q, word));
    opt->operand = word;
    return TG_OK;
}

/* What getopt is given for one command: short options as "-:p:f:q...", long ones by table row. */
typedef struct spelling {
    char shorts[2 * N_OPTIONS + 3];
    struct option longs[N_OPTIONS + 1];
} spelling;

enum { LONG_BASE = 256 }; /* above any letter */

static void spell(spelling *s, unsigned command)
{
    char *p = s->shorts;
    struct option *l = s->longs;
    *p++ = '-'; /* operands come in their place, as option 1 */
    *p++ = ':'; /* a missing argument is told as ':' */
    for (int i = 0; i < N_OPTIONS; i++) {
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
    for (int i = 0; i < N_OPTIONS; i++)
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
    char range[RANGE_BYTES], name[NAME_MAX_ + 3];
    tg_text_quoted q;
    spelling s;
    *opt = (tg_options){.command = command};
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
                               describe(o, range));
        if (!set(opt, o, optarg))
            return tg_cli_fail(err, TG_E_USAGE, "%s: '%s' is not %s", name,
                               tg_text_quote(&q, optarg), describe(o, range));
        if (opt->help || opt->version)
            return TG_OK;
    }
    for (; optind < argc; optind++) /* behind -- */
        if (add_operand(opt, command, argv[optind], err))
            return TG_E_USAGE;
    return TG_OK;
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

static void put_option(tg_output *out, const tg_option *o)
{
    char left[64], text[400], range[RANGE_BYTES];
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
        snprintf(text, sizeof text, "%s", o->help);
    tg_output_write(out, left, (size_t)n);
    put_wrapped(out, n, text);
}

static void put_program(tg_output *out)
{
    tg_output_print(out, "usage: tinygpt COMMAND [options]\n\n");
    for (int i = 0; i < tg_n_commands; i++)
        tg_output_print(out, "  %-10s %s\n", tg_commands[i].name, tg_commands[i].summary);
    tg_output_print(out, "\ntinygpt COMMAND --help tells the options of a command, and\n"
                         "tinygpt --version what this build is.\n");
}

void tg_options_help(tg_output *out, const tg_command *command)
{
    if (!command) {
        put_program(out);
        return;
    }
    tg_output_print(out, "usage: tinygpt %s [options]", command->name);
    if (command->second)
        tg_output_print(out, " %s %s", command->operand, command->second);
    else if (command->operand)
        tg_output_print(out, " [%s]", command->operand);
    tg_output_print(out, "\n\n%s\n", command->summary);
    for (int common = 0; common < 2; common++) {
        tg_output_print(out, common ? "\ncommon to all commands:\n" : "\noptions:\n");
        for (int i = 0; i < N_OPTIONS; i++) {
            const tg_option *o = &tg_option_table[i];
            if (o->commands & command->bit && ((o->commands & TG_CMD_MODEL) == TG_CMD_MODEL) == common)
                put_option(out, o);
        }
    }
}
