/* cmd_quantize.c - a model written anew in other number formats. */
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "cli/locate.h"
#include "cli/options.h"
#include "cli/signals.h"
#include "cli/text.h"

static int list_types(tg_error *err)
{
    static tg_output out;
    const char *summary, *name;
    int status = tg_output_open(&out, NULL, err);
    if (status)
        return status;
    for (int i = 0; (name = tg_quantize_type(i, &summary)); i++)
        tg_output_print(&out, "%-7s %s\n", name, summary);
    return tg_output_close(&out, TG_OK, err);
}

static double mib(uint64_t n_bytes)
{
    return (double)n_bytes / 1048576;
}

static bool show(void *arg, uint64_t done, uint64_t of)
{
    tg_progress_show(arg, "MiB written", (int64_t)(done >> 20), (int64_t)(of >> 20));
    return !tg_signals_caught();
}

static void say_result(const char *out, const tg_quantize_result *r)
{
    tg_text_quoted q;
    char rest[96] = "";
    if (r->n_fell_back)
        snprintf(rest, sizeof rest, "; the rows of %d are no whole blocks, so another type took them", r->n_fell_back);
    tg_say_note("%s: %.1f MiB of weights from %.1f, %.2f bits each; %d of %d tensors quantised%s",
                tg_text_quote(&q, out), mib(r->out_bytes), mib(r->in_bytes),
                8 * (double)r->out_bytes / (double)(r->n_params ? r->n_params : 1), r->n_quantized, r->n_tensors, rest);
}

static bool is_type(const char *type)
{
    const char *name;
    for (int i = 0; (name = tg_quantize_type(i, NULL)); i++)
        if (!strcasecmp(name, type))
            return true;
    return false;
}

int tg_cmd_quantize(const tg_options *opt, tg_error *err)
{
    tg_progress progress = {0};
    tg_quantize_result result;
    if (opt->type && !strcmp(opt->type, "help"))
        return list_types(err);
    if (opt->n_operands < 2)
        return tg_cli_fail(err, TG_E_USAGE, "quantize needs IN, a model, and OUT, the file to write");
    if (!opt->type)
        return tg_cli_fail(err, TG_E_USAGE, "no type: give one with --type (--type help lists them)");
    const char *out = opt->operands[1];
    char *in = NULL;
    /* A type that is none is told by tg_quantize, before a model is fetched in vain. */
    int status = is_type(opt->type) ? tg_locate(&in, opt->operands[0], err) : TG_OK;
    if (status)
        return status;
    tg_quantize_params params = {
        .type = opt->type,
        .requantize = opt->requantize,
        .n_threads = opt->n_threads,
        .progress = show,
        .arg = &progress,
    };
    tg_signals_hold(true);
    status = (int)tg_quantize(in ? in : opt->operands[0], out, &params, &result, err);
    tg_signals_hold(false);
    tg_progress_clear(&progress);
    if (!status)
        say_result(out, &result);
    tg_free(in);
    return status;
}
