/* save.h - the file of a saved session, version 2; private to this folder.
 *
 *     magic "tinygpts", u32 version, u32 order, u32 bytes of the header (all up to the tokens), u32 0
 *     u64 fields [TG_SAVED_FIELDS]
 *     i32 tokens [n_ids]                  zeros up to 8 bytes
 *     note [n_note]                       zeros up to 8 bytes
 *     u64 sum of all before
 *     cache [layer][KV head][block]{ keys, values }
 *     u64 sum of all before
 *
 * Numbers are little-endian; `order` is 0x01020304 as the machine writes it, whose numbers the cache has. Sums are those
 * of sum.h: every changed bit is found. Blocks are as view.h lays them out, with zeros for positions that the text does
 * not have, so that nothing else leaks and one state gives one file.
 *
 * What must agree, and is named where it does not: the model (the fingerprint of container.h, which does not read it
 * whole: weights of gigabytes are mapped and read as they are needed) and with it layers, heads and vocabulary; the
 * tokenizer, by all its tokens, since ids are saved; and all of a session that cached numbers depend on: their types,
 * windows, the attention algorithm, --precise, whether OpenBLAS computes, the frequencies of the rotation (which may
 * depend on the context). What they do not depend on may differ: threads, batch, instruction set, context, seed. */
#ifndef TG_SESSION_SAVE_H
#define TG_SESSION_SAVE_H

#include "session/state.h"

typedef enum tg_saved_field {
    /* of the model */
    TG_SAVED_MODEL,
    TG_SAVED_TOKENIZER,
    TG_SAVED_LAYERS,
    TG_SAVED_HEADS,
    TG_SAVED_HEAD_DIM,
    TG_SAVED_VOCAB,
    /* of the session */
    TG_SAVED_TYPE_K,
    TG_SAVED_TYPE_V,
    TG_SAVED_ATTENTION,
    TG_SAVED_WINDOW,
    TG_SAVED_KEEP,
    TG_SAVED_PRECISE,
    TG_SAVED_BLAS,
    TG_SAVED_ROTATION,
    /* of the text */
    TG_SAVED_IDS,
    TG_SAVED_CACHED, /* the first of them, of which the cache follows */
    TG_SAVED_NOTE,   /* bytes */
    TG_SAVED_SEED,
    TG_SAVED_STREAM,
    TG_SAVED_DRAWN,
    TG_SAVED_FIELDS
} tg_saved_field;

#define TG_SAVED_MAGIC "tinygpts"
enum {
    TG_SAVED_VERSION = 2,
    TG_SAVED_ORDER = 0x01020304,
    TG_SAVED_HEADER = 24 + 8 * TG_SAVED_FIELDS,
    TG_SAVED_NOTE_MAX = 64 << 20,
};
#define TG_SAVED_DRAWN_MAX ((uint64_t)1 << 40)

/* What a file must have to go with a model, and with a session: the fields of each. */
void tg_saved_fields_of_model(uint64_t *field, tg_identity is, const tg_config *c);
void tg_saved_fields_of_session(uint64_t *field, const tg_session *s);

/* Bytes of the file; the counts are within their limits. */
uint64_t tg_saved_bytes(const tg_config *c, const uint64_t *field);

#endif
