/* request.h - from options to what a generator is asked for: sampling, limits, stop strings. */
#ifndef TG_CLI_REQUEST_H
#define TG_CLI_REQUEST_H

#include "cli/options.h"

/* What a request points to. */
typedef struct tg_request_room {
    tg_logit_bias bias[TG_LIST_MAX];
    tg_stop_text stop[TG_LIST_MAX];
} tg_request_room;

/* Everything but the prompt and the sink. */
int tg_request_make(tg_request *request, tg_request_room *room, const tg_options *opt, tg_error *err);

/* Where the options leave the seed open and draws are random, draws one from the system, into the options. It is
 * told later, when nothing can be wrong with the command any more, so that any run can be repeated. */
int tg_request_seed(tg_options *opt, tg_error *err);
void tg_request_tell_seed(const tg_options *given, const tg_options *used);

#endif
