/* cmd_rm.c - removes models that were pulled. */
#include <stdlib.h>
#include <string.h>

#include "cli/locate.h"
#include "cli/options.h"
#include "cli/text.h"

static int remove_one(const char *name, tg_error *err)
{
    tg_text_quoted q, near;
    uint64_t freed;
    char size[TG_TEXT_BYTES];
    int status = (int)tg_cache_remove(name, &freed, err);
    if (!status)
        tg_say_note("removed %s, %s freed", tg_text_quote_name(&q, name), tg_text_bytes(size, freed));
    char *nearest = status == TG_E_IO ? tg_locate_nearest(name, false) : NULL;
    if (nearest && strcmp(nearest, name))
        tg_cli_fail(err, status, "no model '%s' on this machine (did you mean %s?)", tg_text_quote_name(&q, name),
                    tg_text_quote(&near, nearest));
    free(nearest);
    return status;
}

int tg_cmd_rm(const tg_options *opt, tg_error *err)
{
    int status = TG_OK;
    if (!opt->operand)
        return tg_cli_fail(err, TG_E_USAGE, "rm needs the name of a model (tinygpt list tells them)");
    for (int i = 0; i < opt->n_operands && !status; i++)
        status = remove_one(opt->operands[i], err);
    return status;
}
