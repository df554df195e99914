/* slot.h - the places of a generator, private to this folder: generator.c says what a slot is. */
#ifndef TG_GENERATE_SLOT_H
#define TG_GENERATE_SLOT_H

#include "generate/stop.h"

typedef enum slot_state {
    IDLE,    /* no text; its sequence, if there is one, is what the last text left */
    WAITING, /* a text that has not begun: for room, or for another prompt that begins like it */
    ACTIVE,
} slot_state;

typedef struct slot {
    slot_state state;
    int seq;       /* -1: none */
    int32_t *ids;  /* [tg_slot_need] prompt and text */
    int n_prompt, n_ids;
    tg_request request; /* its pointers but sink and arg are not used any more */
    tg_sampler *sampler;
    tg_stop *stop;
    int32_t *stop_id; /* [n_stop_id] special tokens whose names are stops */
    int n_stop_id;
    int n_drawn;
    size_t n_text; /* bytes of the text, those held back among them */
    int row, n_rows;       /* of this evaluation */
    int n_draft, n_right;  /* the last n_draft of them are guesses, of which n_right have turned out right */
    bool missed;           /* until one did not */
} slot;

struct tg_generator {
    const tg_model *model;
    tg_session *session;
    tg_session_info info;
    int n_ctx_seq; /* positions of a text */
    slot *slot; /* [n_seq_max] */
    tg_top *top; /* [n_vocab] */
    int n_vocab, n_rows, n_active;
    int32_t *id, *seq; /* of the rows */
    uint8_t *want;
    slot **of_row;
    uint64_t n_reused, n_drafted, n_accepted;
};

/* Positions of its text that are in the cache. */
int tg_slot_cached(const tg_generator *g, const slot *s);
/* Nothing of it is any more. */
void tg_slot_forget(tg_generator *g, slot *s);
/* Positions that it may come to take. */
int tg_slot_need(const tg_generator *g, const slot *s);

/* The slot for a new text: the idle one whose cache it can go on with, else one without, else any; NULL: none is idle. */
slot *tg_slot_choose(const tg_generator *g, const int32_t *ids, int n);
/* How many of the first n - 1 ids are, or will be, in a slot's cache: the last one is evaluated for its logits. */
int tg_slot_shared(const tg_generator *g, const slot *s, const int32_t *ids, int n);
/* Begins a waiting text where it can, with what others have computed. */
tg_status tg_slot_begin(tg_generator *g, slot *s, tg_error *err);

#endif
