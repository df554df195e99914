/* commands.c - one row per command, in the order that help shows. */
#include "cli/commands.h"

#include <string.h>

const tg_command tg_commands[] = {
    {TG_CMD_GENERATE, "generate", "[PROMPT]", 1, "continue a prompt", tg_cmd_generate},
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
    {TG_CMD_QUANTIZE, "quantize", "IN OUT", 2, "write a model as GGUF, in other number formats",
     tg_cmd_quantize},
};
const int tg_n_commands = (int)(sizeof tg_commands / sizeof tg_commands[0]);

const tg_command *tg_command_find(const char *name)
{
    for (int i = 0; i < tg_n_commands; i++)
        if (!strcmp(tg_commands[i].name, name))
            return &tg_commands[i];
    return NULL;
}
