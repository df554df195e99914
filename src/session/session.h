/* session.h - a session as the library's own layers see it; the calls are those of tinygpt.h. */
#ifndef TG_SESSION_SESSION_H
#define TG_SESSION_SESSION_H

#include "model/weights.h"

/* tg_session_create and tg_session_memory on a model's weights, which the session borrows. */
tg_status tg_session_make(tg_session **session, const tg_weights *w, const tg_session_params *params,
                          tg_error *err);
void tg_session_needs(const tg_weights *w, const tg_session_params *params, uint64_t *kv_bytes,
                      uint64_t *scratch_bytes);

/* Hashes by which a saved session knows what it belongs to. */
typedef struct tg_identity {
    uint64_t model, tokenizer;
} tg_identity;

/* tg_session_save, tg_saved_open and tg_session_restore of a model with this identity and these weights. */
tg_status tg_saved_write(const tg_session *session, tg_identity is, int seq, const tg_saved_text *text, const char *path,
                         tg_error *err);
tg_status tg_saved_read(tg_saved **saved, tg_identity is, const tg_weights *w, const char *path, tg_error *err);

#endif
