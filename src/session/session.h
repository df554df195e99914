/* session.h - a session as the library's own layers see it; the calls are those of tinygpt.h. */
#ifndef TG_SESSION_SESSION_H
#define TG_SESSION_SESSION_H

#include "model/weights.h"

/* tg_session_create and tg_session_memory on a model's weights, which the session borrows. */
tg_status tg_session_make(tg_session **session, const tg_weights *w, const tg_session_params *params,
                          tg_error *err);
void tg_session_needs(const tg_weights *w, const tg_session_params *params, uint64_t *kv_bytes,
                      uint64_t *scratch_bytes);

#endif
