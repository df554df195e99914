/* measure.h - what the machine can do at best: rates of its own, and one reading of what a token reads.
 *
 * Behind tg_machine_measure, tg_session_read and tg_session_work of tinygpt.h. */
#ifndef TG_SESSION_MEASURE_H
#define TG_SESSION_MEASURE_H

#include "session/kv.h"

/* Which positions of a sequence its next token attends to. */
typedef struct tg_reach {
    int window, keep; /* as tg_forward has them */
} tg_reach;

/* Reads once, by the whole team, all weights and those keys and values that the next token of the
 * sequence would read. */
tg_status tg_measure_read(tg_team *team, const tg_weights *w, const tg_kv *kv, int seq, tg_reach reach,
                          tg_read *read, tg_error *err);

/* The operations that n tokens behind n_past take, with the logits of the last. */
void tg_measure_work(const tg_weights *w, tg_matmul_mode mode, tg_reach reach, int n_past, int n,
                     tg_work *work);

#endif
