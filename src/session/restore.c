/* restore.c - reading a saved session, which may be anything: the header is checked against the model and the length of
 * the file before memory is taken for what it tells of, the tokens by a sum of their own, the cache by another one. A
 * sequence has all of it or nothing. */
#include "session/save.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/sum.h"

struct tg_saved {
    char *path;
    int fd;
    uint64_t field[TG_SAVED_FIELDS];
    uint64_t sum;   /* of all before the cache */
    off_t cache_at;
    int32_t *ids;   /* behind their last one, zero or one more */
    char *note;     /* up to 8 bytes more */
    tg_saved_text text;
};

/* ---- fields ---------------------------------------------------------------------------------------- */

/* How a field is told. */
typedef enum kind { HASH, NUMBER, TYPE, SWITCH } kind;

static const struct {
    const char *name;
    kind kind;
} fields[TG_SAVED_FIELDS] = {
    [TG_SAVED_MODEL] = {"model", HASH},
    [TG_SAVED_TOKENIZER] = {"tokenizer", HASH},
    [TG_SAVED_LAYERS] = {"layers", NUMBER},
    [TG_SAVED_HEADS] = {"heads of keys and values", NUMBER},
    [TG_SAVED_HEAD_DIM] = {"size of a head", NUMBER},
    [TG_SAVED_VOCAB] = {"size of the vocabulary", NUMBER},
    [TG_SAVED_TYPE_K] = {"type of the cached keys", TYPE},
    [TG_SAVED_TYPE_V] = {"type of the cached values", TYPE},
    [TG_SAVED_ATTENTION] = {"attention algorithm", HASH},
    [TG_SAVED_WINDOW] = {"window", NUMBER},
    [TG_SAVED_KEEP] = {"positions kept under a window", NUMBER},
    [TG_SAVED_PRECISE] = {"precise products", SWITCH},
    [TG_SAVED_BLAS] = {"products by OpenBLAS", SWITCH},
    [TG_SAVED_ROTATION] = {"rotation, which may depend on the context,", HASH},
    [TG_SAVED_IDS] = {"tokens", NUMBER},
    [TG_SAVED_CACHED] = {"tokens in the cache", NUMBER},
    [TG_SAVED_NOTE] = {"bytes of the note", NUMBER},
    [TG_SAVED_DRAWN] = {"draws", NUMBER},
};

static const char *spell(kind k, uint64_t value, char text[24])
{
    static const char *const types[] = {"f32", "f16", "bf16", "q8_0", "q4"};
    if (k == TYPE && value < sizeof types / sizeof *types)
        return types[value];
    if (k == SWITCH && value < 2)
        return value ? "on" : "off";
    snprintf(text, 24, "%" PRIu64, value);
    return text;
}

/* Are the fields from `first` to `last` those that are wanted? */
static tg_status compare(const tg_saved *s, const uint64_t *wanted, int first, int last, tg_error *err)
{
    char found[24], allowed[24];
    for (int i = first; i <= last; i++) {
        if (s->field[i] == wanted[i])
            continue;
        if (fields[i].kind == HASH)
            return tg_fail(err, TG_E_SESSION, s->path, "it was saved with another %s", fields[i].name);
        return tg_fail(err, TG_E_SESSION, s->path, "%s (found %s, allowed %s)", fields[i].name,
                       spell(fields[i].kind, s->field[i], found), spell(fields[i].kind, wanted[i], allowed));
    }
    return TG_OK;
}

static tg_status check_most(const tg_saved *s, tg_saved_field i, uint64_t most, tg_error *err)
{
    if (s->field[i] <= most)
        return TG_OK;
    return tg_fail(err, TG_E_SESSION, s->path, "%s (found %" PRIu64 ", allowed up to %" PRIu64 ")", fields[i].name,
                   s->field[i], most);
}

/* ---- the text -------------------------------------------------------------------------------------- */

static tg_status cut_short(const char *path, uint64_t found, uint64_t wanted, tg_error *err)
{
    return tg_fail(err, TG_E_SESSION, path, "length (found %" PRIu64 " bytes, allowed %" PRIu64 "%s)", found, wanted,
                   found < wanted ? ": it was cut short" : "");
}

static tg_status parse_header(tg_saved *s, const uint8_t *header, tg_error *err)
{
    uint32_t order;
    tg_cursor in = tg_cursor_make(header, TG_SAVED_HEADER);
    if (memcmp(tg_cursor_bytes(&in, 8), TG_SAVED_MAGIC, 8) != 0)
        return tg_fail(err, TG_E_SESSION, s->path, "not a saved session (it should begin with \"%s\")", TG_SAVED_MAGIC);
    uint32_t version = tg_cursor_u32(&in);
    if (version != TG_SAVED_VERSION)
        return tg_fail(err, TG_E_SESSION, s->path, "version of the format (found %" PRIu32 ", allowed %d)", version,
                       TG_SAVED_VERSION);
    memcpy(&order, tg_cursor_bytes(&in, sizeof order), sizeof order);
    if (order != TG_SAVED_ORDER)
        return tg_fail(err, TG_E_SESSION, s->path, "order of bytes (found %08" PRIx32 ", allowed %08x: that of this machine)",
                       order, (unsigned)TG_SAVED_ORDER);
    uint32_t n_header = tg_cursor_u32(&in), zero = tg_cursor_u32(&in);
    if (n_header != TG_SAVED_HEADER || zero != 0)
        return tg_fail(err, TG_E_SESSION, s->path, "size of the header (found %" PRIu32 " and %" PRIu32 ", allowed %d and 0)",
                       n_header, zero, TG_SAVED_HEADER);
    for (int i = 0; i < TG_SAVED_FIELDS; i++)
        s->field[i] = tg_cursor_u64(&in);
    return TG_OK;
}

/* Reads n bytes and what fills them up to 8. */
static tg_status take(tg_saved *s, void *bytes, uint64_t n, tg_error *err)
{
    n = tg_round_up(n, 8);
    tg_status status = tg_file_read(s->fd, bytes, n, s->path, err);
    s->sum = tg_sum_bytes(s->sum, bytes, n);
    return status;
}

/* A sum, as it should be. */
static tg_status take_sum(tg_saved *s, tg_error *err)
{
    uint8_t bytes[8];
    const uint64_t wanted = s->sum;
    tg_status status = take(s, bytes, sizeof bytes, err);
    tg_cursor in = tg_cursor_make(bytes, sizeof bytes);
    if (status == TG_OK && tg_cursor_u64(&in) != wanted)
        status = tg_fail(err, TG_E_SESSION, s->path, "damaged: its checksum does not agree with it");
    return status;
}

/* The header, against the model and the length of the file. */
static tg_status check_header(tg_saved *s, uint64_t n_bytes, tg_identity is, const tg_config *c, tg_error *err)
{
    static const struct {
        tg_saved_field field;
        uint64_t most;
    } limits[] = {{TG_SAVED_TYPE_K, TG_KV_Q4},       {TG_SAVED_TYPE_V, TG_KV_Q4},
                  {TG_SAVED_IDS, TG_MAX_CTX},        {TG_SAVED_CACHED, TG_MAX_CTX},
                  {TG_SAVED_NOTE, TG_SAVED_NOTE_MAX}, {TG_SAVED_DRAWN, TG_SAVED_DRAWN_MAX}};
    uint64_t wanted[TG_SAVED_FIELDS];
    tg_saved_fields_of_model(wanted, is, c);
    tg_status status = compare(s, wanted, TG_SAVED_MODEL, TG_SAVED_VOCAB, err);
    for (size_t i = 0; i < sizeof limits / sizeof *limits && status == TG_OK; i++)
        status = check_most(s, limits[i].field, limits[i].most, err);
    if (status == TG_OK)
        status = check_most(s, TG_SAVED_CACHED, s->field[TG_SAVED_IDS], err);
    /* No product overflows: a context of the longest, in a model of the largest, has fewer than 2^60 bytes. */
    if (status == TG_OK && n_bytes != tg_saved_bytes(c, s->field))
        status = cut_short(s->path, n_bytes, tg_saved_bytes(c, s->field), err);
    return status;
}

/* Ids lie in the file as in memory but for the order of bytes, which is that of this machine or was refused. */
static tg_status take_text(tg_saved *s, int n_vocab, tg_error *err)
{
    const size_t n_ids = (size_t)s->field[TG_SAVED_IDS], n_note = (size_t)s->field[TG_SAVED_NOTE];
    s->ids = tg_alloc(n_ids + 1, sizeof *s->ids, "the tokens of a session", err);
    s->note = tg_alloc(n_note + 8, 1, "the note of a session", err);
    tg_status status = s->ids && s->note ? take(s, s->ids, n_ids * sizeof *s->ids, err) : TG_E_RESOURCE;
    if (status == TG_OK)
        status = take(s, s->note, n_note, err);
    if (status == TG_OK)
        status = take_sum(s, err);
    for (size_t i = 0; i < n_ids && status == TG_OK; i++)
        if (s->ids[i] < 0 || s->ids[i] >= n_vocab)
            status = tg_fail(err, TG_E_SESSION, s->path, "id of token %zu (found %" PRId32 ", allowed 0 to %d)", i,
                             s->ids[i], n_vocab - 1);
    s->text = (tg_saved_text){.ids = s->ids, .n_ids = n_ids, .n_cached = (size_t)s->field[TG_SAVED_CACHED],
                              .seed = s->field[TG_SAVED_SEED], .stream = s->field[TG_SAVED_STREAM],
                              .n_drawn = s->field[TG_SAVED_DRAWN], .note = s->note, .n_note = n_note};
    return status;
}

static tg_status read_text(tg_saved *s, uint64_t n_bytes, tg_identity is, const tg_config *c, tg_error *err)
{
    uint8_t header[TG_SAVED_HEADER];
    if (n_bytes < sizeof header)
        return cut_short(s->path, n_bytes, sizeof header, err);
    tg_status status = take(s, header, sizeof header, err);
    if (status == TG_OK)
        status = parse_header(s, header, err);
    if (status == TG_OK)
        status = check_header(s, n_bytes, is, c, err);
    if (status == TG_OK)
        status = take_text(s, c->n_vocab, err);
    s->cache_at = lseek(s->fd, 0, SEEK_CUR);
    return status;
}

tg_status tg_saved_read(tg_saved **saved, tg_identity is, const tg_weights *w, const char *path, tg_error *err)
{
    struct stat st;
    tg_error own;
    *saved = NULL;
    tg_saved *s = tg_alloc(1, sizeof *s, "a saved session", err);
    if (!s)
        return TG_E_RESOURCE;
    s->path = strdup(path);
    tg_status status = s->path ? tg_file_open_regular(&s->fd, &st, path, &own) : tg_fail_alloc(&own, strlen(path), "a path");
    if (status != TG_OK) {
        tg_free(s->path);
        tg_free(s);
        return tg_fail(err, status == TG_E_MODEL ? TG_E_SESSION : status, NULL, "%s", own.message);
    }
    status = read_text(s, (uint64_t)st.st_size, is, &w->config, err);
    if (status != TG_OK) {
        tg_saved_free(s);
        return status;
    }
    *saved = s;
    return TG_OK;
}

void tg_saved_free(tg_saved *s)
{
    if (!s)
        return;
    close(s->fd);
    tg_free(s->path);
    tg_free(s->ids);
    tg_free(s->note);
    tg_free(s);
}

const tg_saved_text *tg_saved_get_text(const tg_saved *s)
{
    return &s->text;
}

/* ---- the cache ------------------------------------------------------------------------------------- */

/* Are all its numbers finite? `room` holds a block as floats. */
static bool is_finite(const tg_kv_view *view, const uint8_t *block, bool values, float *room)
{
    const tg_kv_kernels *kernels = tg_kv_table();
    const tg_type type = values ? view->type_v : view->type_k;
    const int n = TG_KV_BLOCK * (values ? view->v_dim : view->head_dim);
    if (type == TG_F32)
        return tg_vector()->finite((const float *)(const void *)block, n);
    (values ? kernels->widen_v : kernels->widen_k)(block, type, view->head_dim, TG_KV_BLOCK, room);
    return tg_vector()->finite(room, n);
}

static tg_status take_cache(tg_saved *s, const tg_kv *kv, int seq, float *room, tg_error *err)
{
    const tg_kv_view *view = &kv->layers.first;
    const int n_blocks = tg_kv_blocks_for((int)s->text.n_cached);
    size_t n;
    tg_status status = TG_OK;
    for (int i = 0; i < kv->n_layer * view->n_head_kv; i++)
        for (int b = 0; b < 2 * n_blocks && status == TG_OK; b++) {
            const int layer = i / view->n_head_kv, head = i % view->n_head_kv;
            uint8_t *block = tg_kv_block(kv, b % 2, layer, head, kv->seq[seq].block[b / 2], &n);
            status = take(s, block, n, err);
            if (status == TG_OK && !is_finite(view, block, b % 2, room))
                status = tg_fail(err, TG_E_SESSION, s->path, "%s in layer %d of %d that are not finite",
                                 b % 2 ? "values" : "keys", layer, kv->n_layer);
        }
    return status == TG_OK ? take_sum(s, err) : status;
}

static tg_status check_session(const tg_session *session, const tg_saved *s, tg_error *err)
{
    uint64_t wanted[TG_SAVED_FIELDS];
    tg_saved_fields_of_session(wanted, session);
    tg_status status = compare(s, wanted, TG_SAVED_TYPE_K, TG_SAVED_ROTATION, err);
    return status == TG_OK ? check_most(s, TG_SAVED_IDS, (uint64_t)session->params.n_ctx_seq, err) : status;
}

tg_status tg_session_restore(tg_session *session, int seq, tg_saved *s, tg_error *err)
{
    tg_kv *kv = &session->kv;
    const tg_kv_view *view = &kv->layers.first;
    if (seq < 0 || seq >= kv->n_seq_max || kv->length[seq] != 0)
        return tg_fail(err, TG_E_USAGE, NULL, "sequence to restore (found %d, allowed: one that is empty)", seq);
    tg_status status = check_session(session, s, err);
    if (status != TG_OK)
        return status;
    float *room = tg_alloc((size_t)TG_KV_BLOCK * (size_t)view->v_dim, sizeof *room, "a block of the cache", err);
    if (!room)
        return TG_E_RESOURCE;
    for (size_t i = 0; i < s->text.n_cached && status == TG_OK; i++)
        if (!tg_kv_append(kv, seq))
            status = tg_fail(err, TG_E_USAGE, NULL, "context full (%d positions)", session->params.n_ctx);
    if (status == TG_OK && lseek(s->fd, s->cache_at, SEEK_SET) != s->cache_at)
        status = tg_fail_errno(err, s->path, "cannot be read");
    const uint64_t sum = s->sum;
    if (status == TG_OK)
        status = take_cache(s, kv, seq, room, err);
    s->sum = sum; /* for another time */
    if (status != TG_OK)
        tg_kv_seq_truncate(kv, seq, 0);
    tg_free(room);
    return status;
}
