/* commands.c - one row per command, in the order that help shows. */
#include "cli/commands.h"

#include <limits.h>
#include <string.h>

#include "cli/options.h"
#include "cli/text.h"

const tg_command tg_commands[] = {
    {TG_CMD_GENERATE, "generate", "[PROMPT]", 1, "continue a prompt", tg_cmd_generate},
    {TG_CMD_CHAT, "chat", "[MESSAGE]", 1, "talk with a model, or have one message answered", tg_cmd_chat},
    {TG_CMD_TOKENIZE, "tokenize", "[TEXT]", 1, "show a text as tokens, or tokens as text",
     tg_cmd_tokenize},
    {TG_CMD_LOGITS, "logits", NULL, 0, "write what the model predicts for given tokens",
     tg_cmd_logits},
    {TG_CMD_INSPECT, "inspect", "[MODEL]", 1, "describe a model and the memory it needs",
     tg_cmd_inspect},
    {TG_CMD_BENCH, "bench", NULL, 0, "measure speed, beside what the machine allows",
     tg_cmd_bench},
    {TG_CMD_PERPLEXITY, "perplexity", "[TEXT]", 1,
     "measure how well a model predicts a text, or how far it is from another", tg_cmd_perplexity},
    {TG_CMD_SCORE, "score", NULL, 0, "tell how likely given continuations of a prompt are", tg_cmd_score},
    {TG_CMD_QUANTIZE, "quantize", "IN OUT", 2, "write a model as GGUF, in other number formats",
     tg_cmd_quantize},
    {TG_CMD_PULL, "pull", "WHAT [FILE...]", INT_MAX, "fetch a model (NAME, REPO[:FILE or QUANT], URL) and tell its path",
     tg_cmd_pull},
    {TG_CMD_LIST, "list", NULL, 0, "list the models on this machine", tg_cmd_list},
    {TG_CMD_RM, "rm", "NAME...", INT_MAX, "remove models from this machine", tg_cmd_rm},
    {TG_CMD_COMPLETION, "completion", "bash|fish|zsh", 1, "write what a shell completes command lines by",
     tg_cmd_completion},
    {TG_CMD_HELP, "help", "[COMMAND]", 1, "tell the options of a command", tg_cmd_help},
};
const int tg_n_commands = (int)(sizeof tg_commands / sizeof tg_commands[0]);

const tg_command *tg_command_find(const char *name, tg_error *err)
{
    const char *names[sizeof tg_commands / sizeof tg_commands[0]];
    tg_text_quoted q;
    for (int i = 0; i < tg_n_commands; i++) {
        names[i] = tg_commands[i].name;
        if (!strcmp(names[i], name))
            return &tg_commands[i];
    }
    const char *nearest = tg_options_nearest(name, names, tg_n_commands);
    tg_text_quote(&q, name);
    if (nearest)
        tg_cli_fail(err, TG_E_USAGE, "unknown command '%s' (did you mean %s?)", q.text, nearest);
    else
        tg_cli_fail(err, TG_E_USAGE, "unknown command '%s' (see tinygpt --help)", q.text);
    return NULL;
}
