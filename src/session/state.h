/* state.h - what a session is, for the files of this folder alone. */
#ifndef TG_SESSION_STATE_H
#define TG_SESSION_STATE_H

#include "session/kv.h"
#include "session/session.h"

struct tg_session {
    const tg_weights *w;
    tg_session_params params; /* defaults filled in, and the threads that are there */
    int n_threads_asked;      /* that there should be */
    tg_kv kv;
    tg_team *team;
    tg_forward forward;
    void *arena; /* the forward's buffers and what follows */
    size_t arena_bytes;
    int *want;   /* [n_batch] rows of the part in work whose logits are wanted */
    int *before; /* [n_seq_max] lengths to go back to on an error */
    int *next_pos; /* [n_seq_max] position of the next row, during an evaluation */
    bool uses_blas; /* for products of float weights */
    volatile sig_atomic_t interrupted;
};

tg_type tg_session_kv_type(tg_kv_type t);

#endif
