/* options.h - the one option table: parsing, defaults, ranges, suggestions and help come from it. */
#ifndef TG_CLI_OPTIONS_H
#define TG_CLI_OPTIONS_H

#include "cli/commands.h"
#include "cli/output.h"

/* The values of an option that takes several. */
enum { TG_LIST_MAX = 64 };
typedef struct tg_list {
    int n;
    bool given; /* by the command line: a preset gives way, later ones are added */
    int value[TG_LIST_MAX];
} tg_list;

/* The texts of an option that may be given again and again, in their order. */
typedef struct tg_texts {
    int n;
    const char *text[TG_LIST_MAX];
} tg_texts;

/* What the command line said, defaults filled in. Strings are borrowed from argv. */
typedef struct tg_options {
    const tg_command *command;
    const char *operand; /* the first argument that is no option, or NULL */
    char **operands;     /* all of them, the first among them */
    int n_operands;

    /* common */
    bool help, version, quiet, verbose, no_mmap;
    int color; /* TG_COLOR_... */
    const char *model; /* NULL: the default one */

    /* evaluation */
    int n_threads; /* 0: chosen by the library */
    int n_ctx;     /* 0: what is needed */
    int n_batch;
    int kv_type, kv_type_k, kv_type_v; /* tg_kv_type; the last two -1 when not given */
    int window, keep;
    const char *attention; /* NULL: auto */
    bool precise;
    int blas; /* 0: on, 1: off */
    bool interleave;

    /* the text */
    const char *prompt, *file;
    bool no_stdin, chomp, special, no_bos;

    /* generate */
    int n_max; /* -1: to the end of the context */
    double temp, typical, top_p, min_p, repeat_penalty, presence_penalty, frequency_penalty;
    int top_k, repeat_last_n;
    tg_texts stop, logit_bias;
    int n_logprobs; /* -1: none */
    bool lookup;
    int n_draft;
    bool each_line;
    int n_best, n_parallel;
    const char *session;
    bool append;
    bool seed_given;
    uint64_t seed;
    bool ignore_eos, echo, stats;

    /* chat */
    const char *system, *chat_template;
    int think; /* 0: on, 1: off, -1: as the template has it */

    /* tokenize */
    bool ids, count;
    const char *decode;

    /* logits */
    const char *ids_text; /* the ids, spelled out */
    bool all;
    int format; /* TG_FORMAT_... */
    int top;
    const char *output;

    /* inspect */
    bool tensors;

    /* bench */
    tg_list n_prompts, n_gens, n_depths, thread_counts, batches;
    tg_list kv_types, kv_types_k, kv_types_v; /* tg_kv_type; the last two empty when not given */
    int n_repetitions;
    int table; /* TG_TABLE_... */
    bool no_warmup;

    /* perplexity */
    int stride; /* 0: half the context */
    const char *save_logits, *kl;

    /* quantize */
    const char *type;
    bool requantize;

    /* pull, list */
    const char *revision, *local_dir, *sha256;
    tg_texts include, exclude;
    bool dry_run, force, offline, catalog;
    double max_wait; /* seconds */

    bool jsonl; /* score */
    bool man;   /* help */
    bool json; /* tokenize, inspect, perplexity */
} tg_options;

enum { TG_FORMAT_TEXT, TG_FORMAT_JSON, TG_FORMAT_NPY }; /* in the order of the table's words */
enum { TG_TABLE_MD, TG_TABLE_CSV, TG_TABLE_JSON, TG_TABLE_JSONL };

#define TG_MAX_WAIT "300" /* the default of --max-wait */

typedef enum tg_option_kind {
    TG_OPTION_FLAG,   /* bool */
    TG_OPTION_INT,    /* int */
    TG_OPTION_REAL,   /* double */
    TG_OPTION_SEED,   /* uint64_t, and a bool seed_given */
    TG_OPTION_TEXT,   /* const char * */
    TG_OPTION_TEXTS,  /* tg_texts: repeating adds */
    TG_OPTION_CHOICE, /* int, the index of the word; -1 when absent without a default */
    TG_OPTION_LIST,    /* tg_list of numbers: 1,2,8, and ranges: 1-8, 1-9+2, 1-8*2; repeating adds */
    TG_OPTION_CHOICES, /* tg_list of indices of words, separated by commas */
} tg_option_kind;

typedef struct tg_option {
    const char *name; /* the long form, without its dashes */
    char letter;      /* the short form, or 0 */
    unsigned commands;
    tg_option_kind kind;
    size_t field;       /* its offset in tg_options */
    const char *arg;    /* help's word for the argument; of choices, the words they take: a|b|c */
    double min, max;    /* of numbers, both allowed */
    const char *preset; /* the default, as it would be typed; NULL: absent, and the field zero */
    const char *help;
} tg_option;

enum { TG_OPTIONS_MAX = 128 };
enum { TG_NAME_MAX = 128 }; /* longer words are near to no name */

extern const tg_option tg_option_table[];
extern const int tg_n_options;

/* Reads argv[1 ..] for a command; argv[0] is not looked at. Operands are moved to its front. On -h and --version it stops there.
 * Errors are TG_E_USAGE and one line that names what is allowed. */
int tg_options_parse(tg_options *opt, const tg_command *command, int argc, char **argv,
                     tg_error *err);

/* Stores a value, as if it had been typed; false when the option does not take it. */
bool tg_option_set(tg_options *opt, const tg_option *o, const char *text);

/* Decimal, with "." as the point in every locale; no sign but "-", no blanks, no hexadecimal, no
 * infinities. False when the text is none or the value outside [min, max]. */
bool tg_number_int(const char *text, int64_t min, int64_t max, int64_t *value);
bool tg_number_u64(const char *text, uint64_t *value);
bool tg_number_real(const char *text, double min, double max, double *value);

/* What an argument may be: "a number from 0 to 1". Returns text. */
enum { TG_RANGE_BYTES = 120 };
const char *tg_option_describe(const tg_option *o, char text[TG_RANGE_BYTES]);

/* The name nearest to a mistyped one among n, or NULL when none is near. names[i] may be NULL. */
const char *tg_options_nearest(const char *typed, const char *const *names, int n);

bool tg_option_is_common(const tg_option *o); /* to all commands that load a model, or to all */
void tg_options_help(tg_output *out, const tg_command *command); /* NULL: the program's */

#endif
