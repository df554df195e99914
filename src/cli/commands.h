/* commands.h - the table of commands.
 *
 * A new command is a bit (among those of TG_CMD_MODEL if it loads a model), a row in commands.c, a file
 * cmd_<name>.c, and its bit in the rows of the option table (option_table.c) that it shares. */
#ifndef TG_CLI_COMMANDS_H
#define TG_CLI_COMMANDS_H

#include "tinygpt/tinygpt.h"

struct tg_options;

enum {
    TG_CMD_GENERATE = 1 << 0,
    TG_CMD_TOKENIZE = 1 << 1,
    TG_CMD_LOGITS = 1 << 2,
    TG_CMD_INSPECT = 1 << 3,
    TG_CMD_BENCH = 1 << 4,
    TG_CMD_PERPLEXITY = 1 << 5,
    TG_CMD_SCORE = 1 << 6,
    TG_CMD_CHAT = 1 << 7,
    TG_CMD_MODEL = (1 << 16) - 1, /* all that load a model and run it, or tell of it: the bits up to here */
    TG_CMD_QUANTIZE = 1 << 16,
    TG_CMD_PULL = 1 << 17,
    TG_CMD_LIST = 1 << 18,
    TG_CMD_RM = 1 << 19,
    TG_CMD_COMPLETION = 1 << 22,
    TG_CMD_HELP = 1 << 23,
    TG_CMD_ALL = (1 << 24) - 1,
};

typedef struct tg_command {
    unsigned bit;
    const char *name;
    const char *operands; /* what help calls its arguments: "[PROMPT]"; NULL: it takes none */
    int max_operands;
    const char *summary;
    /* Returns the exit status; for any but 0 and TG_EXIT_PIPE, err says why. A signal that was
     * caught overrides it. */
    int (*run)(const struct tg_options *opt, tg_error *err);
} tg_command;

extern const tg_command tg_commands[];
extern const int tg_n_commands;

/* NULL, with err filled and the nearest name told: there is none. */
const tg_command *tg_command_find(const char *name, tg_error *err);

int tg_cmd_generate(const struct tg_options *opt, tg_error *err);
int tg_cmd_chat(const struct tg_options *opt, tg_error *err);
int tg_cmd_tokenize(const struct tg_options *opt, tg_error *err);
int tg_cmd_logits(const struct tg_options *opt, tg_error *err);
int tg_cmd_inspect(const struct tg_options *opt, tg_error *err);
int tg_cmd_bench(const struct tg_options *opt, tg_error *err);
int tg_cmd_perplexity(const struct tg_options *opt, tg_error *err);
int tg_cmd_score(const struct tg_options *opt, tg_error *err);
int tg_cmd_quantize(const struct tg_options *opt, tg_error *err);
int tg_cmd_pull(const struct tg_options *opt, tg_error *err);
int tg_cmd_list(const struct tg_options *opt, tg_error *err);
int tg_cmd_rm(const struct tg_options *opt, tg_error *err);
int tg_cmd_completion(const struct tg_options *opt, tg_error *err);
int tg_cmd_help(const struct tg_options *opt, tg_error *err);

#endif
