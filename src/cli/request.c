/* request.c - option values as the library takes them. */
#include "cli/request.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "cli/text.h"

enum { BIAS_MAX = 10000 }; /* a limit that the library sets as well */

/* "15043+1.5" or "15043-1": an id and what is added to its logit, as llama.cpp has it. */
static int parse_bias(tg_logit_bias *bias, const char *text, tg_error *err)
{
    char id[24];
    double by;
    int64_t number;
    tg_text_quoted q;
    size_t n = strspn(text, "0123456789");
    snprintf(id, sizeof id, "%.*s", (int)(n < sizeof id ? n : 0), text);
    const char *rest = text + n + (text[n] == '+');
    if ((text[n] != '+' && text[n] != '-') || (text[n] == '+' && *rest == '-') ||
        !tg_number_int(id, 0, INT32_MAX, &number) || !tg_number_real(rest, -BIAS_MAX, BIAS_MAX, &by))
        return tg_cli_fail(err, TG_E_USAGE,
                           "--logit-bias: '%s' is not ID+X or ID-X, a token id and a number up to %d",
                           tg_text_quote(&q, text), BIAS_MAX);
    *bias = (tg_logit_bias){(int32_t)number, (float)by};
    return TG_OK;
}

static tg_sampling sampling_of(const tg_options *opt)
{
    return (tg_sampling){.temp = (float)opt->temp,
                         .top_k = opt->top_k,
                         .typical = (float)opt->typical,
                         .top_p = (float)opt->top_p,
                         .min_p = (float)opt->min_p,
                         .last_n = opt->repeat_last_n,
                         .repeat = (float)opt->repeat_penalty,
                         .presence = (float)opt->presence_penalty,
                         .frequency = (float)opt->frequency_penalty,
                         .ignore_eos = opt->ignore_eos,
                         .seed = opt->seed};
}

int tg_request_make(tg_request *r, tg_request_room *room, const tg_options *opt, tg_error *err)
{
    *r = (tg_request){.sampling = sampling_of(opt),
                      .n_max = opt->n_max,
                      .stop = room->stop,
                      .n_stop = opt->stop.n,
                      .special = opt->special,
                      .n_top = opt->n_logprobs,
                      .n_draft = opt->lookup ? opt->n_draft : 0};
    r->sampling.bias = room->bias;
    r->sampling.n_bias = opt->logit_bias.n;
    for (int i = 0; i < opt->stop.n; i++) {
        room->stop[i] = (tg_stop_text){opt->stop.text[i], strlen(opt->stop.text[i])};
        if (room->stop[i].n == 0)
            return tg_cli_fail(err, TG_E_USAGE, "--stop: an empty text would stop everything");
    }
    for (int i = 0; i < opt->logit_bias.n; i++)
        if (parse_bias(&room->bias[i], opt->logit_bias.text[i], err))
            return TG_E_USAGE;
    return TG_OK;
}

int tg_request_seed(tg_options *opt, tg_error *err)
{
    bool random = opt->temp >= 1e-6 && opt->top_k != 1 && opt->n_max != 0;
    if (opt->seed_given || !random)
        return TG_OK;
    if (getrandom(&opt->seed, sizeof opt->seed, 0) != (ssize_t)sizeof opt->seed)
        return tg_cli_fail(err, TG_E_RESOURCE, "no random seed from the system: %s", strerror(errno));
    opt->seed &= ((uint64_t)1 << 53) - 1; /* which every reader of JSON keeps */
    opt->seed_given = true;
    return TG_OK;
}

void tg_request_tell_seed(const tg_options *given, const tg_options *used)
{
    if (used->seed_given && !given->seed_given)
        tg_say_note("seed %llu", (unsigned long long)used->seed);
}
