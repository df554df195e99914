/* save.c - what a saved session says of itself, and writing it. */
#include "session/save.h"

#include <string.h>

#include "base/memory.h"
#include "base/newfile.h"
#include "base/sum.h"

/* ---- fields ---------------------------------------------------------------------------------------- */

void tg_saved_fields_of_model(uint64_t *field, tg_identity is, const tg_config *c)
{
    field[TG_SAVED_MODEL] = is.model;
    field[TG_SAVED_TOKENIZER] = is.tokenizer;
    field[TG_SAVED_LAYERS] = (uint64_t)c->n_layer;
    field[TG_SAVED_HEADS] = (uint64_t)c->n_head_kv;
    field[TG_SAVED_HEAD_DIM] = (uint64_t)c->head_dim;
    field[TG_SAVED_VOCAB] = (uint64_t)c->n_vocab;
}

/* As they are in use: a scaling that looks at the context has been applied. */
static uint64_t sum_of_rotation(const tg_session *s)
{
    const tg_forward *f = &s->forward;
    uint64_t sum = 0;
    for (int i = 0; i < 2 && s->w->arch->pos == TG_POS_ROTARY; i++) {
        sum = tg_sum_text(sum, f->inv_freq[i], (size_t)s->w->config.rope[i].n_rot / 2 * sizeof *f->inv_freq[i]);
        sum = tg_sum_text(sum, &f->magnitude[i], sizeof f->magnitude[i]);
    }
    return sum;
}

void tg_saved_fields_of_session(uint64_t *field, const tg_session *s)
{
    field[TG_SAVED_TYPE_K] = (uint64_t)s->params.type_k;
    field[TG_SAVED_TYPE_V] = (uint64_t)s->params.type_v;
    field[TG_SAVED_ATTENTION] = tg_sum_text(0, s->forward.attention->name, strlen(s->forward.attention->name));
    field[TG_SAVED_WINDOW] = (uint64_t)s->forward.window;
    field[TG_SAVED_KEEP] = (uint64_t)s->forward.keep;
    field[TG_SAVED_PRECISE] = s->forward.mode.precise;
    field[TG_SAVED_BLAS] = s->uses_blas;
    field[TG_SAVED_ROTATION] = sum_of_rotation(s);
}

uint64_t tg_saved_bytes(const tg_config *c, const uint64_t *field)
{
    const uint64_t n_blocks = (field[TG_SAVED_CACHED] + TG_KV_BLOCK - 1) / TG_KV_BLOCK;
    return TG_SAVED_HEADER + tg_round_up(4 * field[TG_SAVED_IDS], 8) + tg_round_up(field[TG_SAVED_NOTE], 8) + 8 +
           n_blocks * tg_kv_bytes(c, 1, tg_session_kv_type((tg_kv_type)field[TG_SAVED_TYPE_K]),
                                        tg_session_kv_type((tg_kv_type)field[TG_SAVED_TYPE_V])) + 8;
}

/* ---- writing --------------------------------------------------------------------------------------- */

typedef struct writer {
    tg_newfile file;
    uint64_t sum;
    size_t n; /* bytes that wait */
    uint8_t buffer[1 << 16];
} writer;

static tg_status flush(writer *w, tg_error *err)
{
    tg_status status = tg_newfile_write(&w->file, w->buffer, w->n, err);
    w->n = 0;
    return status;
}

/* n bytes, and zeros up to 8. */
static tg_status put(writer *w, const void *bytes, size_t n, tg_error *err)
{
    tg_status status = TG_OK;
    w->sum = tg_sum_bytes(w->sum, bytes, n);
    for (const uint8_t *p = bytes; n > 0 && status == TG_OK;) {
        size_t now = n < sizeof w->buffer - w->n ? n : sizeof w->buffer - w->n;
        memcpy(w->buffer + w->n, p, now);
        w->n += now;
        p += now;
        n -= now;
        while (w->n % 8 != 0)
            w->buffer[w->n++] = 0;
        if (w->n == sizeof w->buffer)
            status = flush(w, err);
    }
    return status;
}

/* Little-endian, in n_bytes. */
static void spell(uint8_t *out, uint64_t number, int n_bytes)
{
    for (int i = 0; i < n_bytes; i++)
        out[i] = (uint8_t)(number >> (8 * i));
}

static tg_status put_sum(writer *w, tg_error *err)
{
    uint8_t bytes[8];
    spell(bytes, w->sum, 8);
    return put(w, bytes, sizeof bytes, err);
}

static tg_status put_header(writer *w, const uint64_t *field, tg_error *err)
{
    uint8_t header[TG_SAVED_HEADER] = {0};
    const uint32_t order = TG_SAVED_ORDER;
    memcpy(header, TG_SAVED_MAGIC, 8);
    spell(header + 8, TG_SAVED_VERSION, 4);
    memcpy(header + 12, &order, 4);
    spell(header + 16, TG_SAVED_HEADER, 4);
    for (int i = 0; i < TG_SAVED_FIELDS; i++)
        spell(header + 24 + 8 * i, field[i], 8);
    return put(w, header, sizeof header, err);
}

static tg_status put_text(writer *w, const tg_saved_text *text, tg_error *err)
{
    tg_status status = TG_OK;
    uint8_t pair[8];
    for (size_t i = 0; i < text->n_ids && status == TG_OK; i += 2) {
        spell(pair, (uint32_t)text->ids[i], 4);
        spell(pair + 4, i + 1 < text->n_ids ? (uint32_t)text->ids[i + 1] : 0, 4);
        status = put(w, pair, sizeof pair, err);
    }
    return status == TG_OK ? put(w, text->note, text->n_note, err) : status;
}

/* A copy of a block, keys and values, with zeros for the positions from n on. */
static void cut_off(const tg_kv *kv, int n, const float *zeros, uint8_t *block)
{
    tg_kv_view alone = kv->layers.first;
    alone.data = block;
    alone.v_offset = alone.k_block_bytes;
    for (int i = n; i < TG_KV_BLOCK; i++)
        tg_kv_table()->put(&alone, 0, i, 0, zeros, zeros);
}

/* The first n positions of a sequence. `room` holds a block's keys, its values and a head of zeros. */
static tg_status put_cache(writer *w, const tg_kv *kv, int seq, int n, uint8_t *room, tg_error *err)
{
    const tg_kv_view *view = &kv->layers.first;
    const int n_blocks = tg_kv_blocks_for(n);
    uint8_t *k = room, *v = k + view->k_block_bytes;
    const float *zeros = (const float *)(const void *)(v + view->v_block_bytes);
    size_t n_k, n_v;
    tg_status status = TG_OK;
    for (int i = 0; i < kv->n_layer * view->n_head_kv; i++)
        for (int b = 0; b < n_blocks && status == TG_OK; b++) {
            const int32_t block = kv->seq[seq].block[b];
            const int layer = i / view->n_head_kv, head = i % view->n_head_kv, n_here = n - b * TG_KV_BLOCK;
            const uint8_t *keys = tg_kv_block(kv, false, layer, head, block, &n_k);
            const uint8_t *values = tg_kv_block(kv, true, layer, head, block, &n_v);
            if (n_here < TG_KV_BLOCK) {
                keys = memcpy(k, keys, n_k);
                values = memcpy(v, values, n_v);
                cut_off(kv, n_here, zeros, room);
            }
            status = put(w, keys, n_k, err);
            if (status == TG_OK)
                status = put(w, values, n_v, err);
        }
    return status;
}

static tg_status put_all(writer *w, const tg_session *s, int seq, const tg_saved_text *text, const uint64_t *field,
                         tg_error *err)
{
    const tg_kv_view *view = &s->kv.layers.first;
    uint8_t *room = tg_alloc(view->k_block_bytes + view->v_block_bytes + (size_t)view->head_dim * sizeof(float), 1,
                             "a block of the cache", err);
    tg_status status = room ? put_header(w, field, err) : TG_E_RESOURCE;
    if (status == TG_OK)
        status = put_text(w, text, err);
    if (status == TG_OK)
        status = put_sum(w, err);
    if (status == TG_OK)
        status = put_cache(w, &s->kv, seq, (int)text->n_cached, room, err);
    if (status == TG_OK)
        status = put_sum(w, err);
    tg_free(room);
    return status == TG_OK ? flush(w, err) : status;
}

static tg_status check_text(const tg_session *s, int seq, const tg_saved_text *text, tg_error *err)
{
    const int length = tg_seq_length(s, seq), n_vocab = s->w->config.n_vocab;
    if (text->n_ids > TG_MAX_CTX || text->n_cached > text->n_ids || text->n_cached > (size_t)length)
        return tg_fail(err, TG_E_USAGE, NULL, "tokens to save (found %zu and %zu cached, allowed %d and %d)",
                       text->n_ids, text->n_cached, TG_MAX_CTX, length);
    for (size_t i = 0; i < text->n_ids; i++)
        if (text->ids[i] < 0 || text->ids[i] >= n_vocab)
            return tg_fail(err, TG_E_USAGE, NULL, "token id %zu to save (found %d, allowed 0 to %d)", i,
                           (int)text->ids[i], n_vocab - 1);
    if (text->n_note > TG_SAVED_NOTE_MAX || text->n_drawn > TG_SAVED_DRAWN_MAX)
        return tg_fail(err, TG_E_USAGE, NULL, "note to save, or draws (found %zu bytes and %llu, allowed %d and 2^40)",
                       text->n_note, (unsigned long long)text->n_drawn, TG_SAVED_NOTE_MAX);
    return TG_OK;
}

tg_status tg_saved_write(const tg_session *s, tg_identity is, int seq, const tg_saved_text *text, const char *path,
                         tg_error *err)
{
    uint64_t field[TG_SAVED_FIELDS] = {
        [TG_SAVED_IDS] = text->n_ids,   [TG_SAVED_CACHED] = text->n_cached, [TG_SAVED_NOTE] = text->n_note,
        [TG_SAVED_SEED] = text->seed,   [TG_SAVED_STREAM] = text->stream,   [TG_SAVED_DRAWN] = text->n_drawn,
    };
    tg_saved_fields_of_model(field, is, &s->w->config);
    tg_saved_fields_of_session(field, s);
    tg_status status = check_text(s, seq, text, err);
    if (status != TG_OK)
        return status;
    writer *w = tg_alloc(1, sizeof *w, "writing a session", err);
    if (!w)
        return TG_E_RESOURCE;
    status = tg_newfile_create(&w->file, path, tg_saved_bytes(&s->w->config, field), 0600, err);
    if (status == TG_OK)
        status = put_all(w, s, seq, text, field, err);
    if (status == TG_OK)
        status = tg_newfile_commit(&w->file, err);
    else
        tg_newfile_discard(&w->file);
    tg_free(w);
    return status;
}
