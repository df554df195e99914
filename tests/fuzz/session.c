/* session.c - saved sessions, for a session of a small model. What would refuse nearly every input can be made right, as
 * the bits of its first byte say, so that what stands behind it is reached. */
#include "fuzz/fuzz.h"

#include "base/cursor.h"
#include "base/sum.h"
#include "session/save.h"

enum { FIELDS = 1, LENGTH = 2, SUMS = 4, AGAIN = 8, LENGTH_MAX = 1 << 18 };

static tg_model *model;
static tg_session *session;
static uint64_t own[TG_SAVED_FIELDS]; /* what a file of theirs has */

static uint8_t *save(const tg_saved_text *text, size_t *n)
{
    tg_error err = {0};
    char path[4096];
    snprintf(path, sizeof path, "%s/saved", fuzz_folder());
    MUST(tg_session_save(session, model, 0, text, path, &err) == TG_OK);
    FILE *f = fopen(path, "rb");
    uint8_t *bytes = malloc(LENGTH_MAX);
    *n = fread(bytes, 1, LENGTH_MAX, f);
    fclose(f);
    return bytes;
}

static void load(void)
{
    const tg_session_params params = {.n_threads = 1, .n_ctx = 128, .n_ctx_seq = 128, .n_batch = 16, .type_k = TG_KV_Q8_0,
                                      .type_v = TG_KV_F16};
    tg_error err = {0};
    size_t n;
    MUST(tg_model_load(&model, "tests/golden/gguf/llama.q4_0.gguf", 0, &err) == TG_OK);
    MUST(tg_session_create(&session, model, &params, &err) == TG_OK);
    uint8_t *bytes = save(&(tg_saved_text){0}, &n);
    tg_cursor in = tg_cursor_make(bytes, n);
    tg_cursor_bytes(&in, TG_SAVED_HEADER - 8 * TG_SAVED_FIELDS);
    for (int i = 0; i < TG_SAVED_FIELDS; i++)
        own[i] = tg_cursor_u64(&in);
    free(bytes);
}

static uint64_t *field_of(uint8_t *file, int i)
{
    return (uint64_t *)(void *)(file + TG_SAVED_HEADER - 8 * TG_SAVED_FIELDS + 8 * i);
}

static void put_sum(uint8_t *file, size_t at)
{
    *(uint64_t *)(void *)(file + at) = tg_sum_bytes(0, file, at);
}

/* The input, put right; *n may grow. Numbers are in this machine's order, the lowest byte first. */
static void put_right(uint8_t *file, size_t *n, unsigned what)
{
    if (*n < TG_SAVED_HEADER)
        return;
    if (what & FIELDS)
        file[sizeof TG_SAVED_MAGIC - 1] = TG_SAVED_VERSION; /* seeds may be of an older one */
    for (int i = TG_SAVED_MODEL; i < TG_SAVED_IDS && what & FIELDS; i++)
        *field_of(file, i) = own[i];
    uint64_t n_ids = *field_of(file, TG_SAVED_IDS), n_note = *field_of(file, TG_SAVED_NOTE);
    uint64_t n_cached = *field_of(file, TG_SAVED_CACHED);
    if (n_ids > 4096 || n_note > 4096 || n_cached > 4096)
        return;
    uint64_t text = TG_SAVED_HEADER + tg_round_up(4 * n_ids, 8) + tg_round_up(n_note, 8);
    if (what & LENGTH && *field_of(file, TG_SAVED_TYPE_K) <= TG_KV_Q4 && *field_of(file, TG_SAVED_TYPE_V) <= TG_KV_Q4) {
        uint64_t length = tg_saved_bytes(&session->w->config, field_of(file, 0));
        if (length <= LENGTH_MAX && length > *n)
            memset(file + *n, 0, length - *n);
        *n = length <= LENGTH_MAX ? (size_t)length : *n;
    }
    if (what & SUMS && text + 16 <= *n) {
        put_sum(file, text);
        put_sum(file, (*n - 8) & ~(size_t)7);
    }
}

/* What was restored is saved as a file that gives the same file again. */
static void check_again(const tg_saved_text *text)
{
    size_t n, n_again;
    tg_error err = {0};
    tg_saved *saved;
    uint8_t *first = save(text, &n);
    MUST(tg_saved_open(&saved, model, fuzz_file(first, n), &err) == TG_OK);
    tg_seq_truncate(session, 0, 0, NULL);
    MUST(tg_session_restore(session, 0, saved, &err) == TG_OK);
    uint8_t *again = save(tg_saved_get_text(saved), &n_again);
    MUST(n == n_again && memcmp(first, again, n) == 0);
    tg_saved_free(saved);
    free(first);
    free(again);
}

void fuzz(const uint8_t *data, size_t n)
{
    static uint8_t file[LENGTH_MAX] __attribute__((aligned(8)));
    tg_error err = {0};
    tg_saved *saved;
    if (!model)
        load();
    if (n == 0 || n > LENGTH_MAX)
        return;
    const unsigned what = data[0];
    n--;
    memcpy(file, data + 1, n);
    put_right(file, &n, what);
    tg_status status = tg_saved_open(&saved, model, fuzz_file(file, n), &err);
    MUST(status == TG_OK || (status == TG_E_SESSION && err.message[0] && !saved));
    if (status != TG_OK)
        return;
    const tg_saved_text *text = tg_saved_get_text(saved);
    MUST(text->n_cached <= text->n_ids && text->n_ids <= TG_MAX_CTX);
    for (size_t i = 0; i < text->n_ids; i++)
        MUST(text->ids[i] >= 0 && text->ids[i] < session->w->config.n_vocab);
    status = tg_session_restore(session, 0, saved, &err);
    MUST(status == TG_OK || (status == TG_E_SESSION && err.message[0]));
    MUST(tg_seq_length(session, 0) == (status == TG_OK ? (int)text->n_cached : 0));
    if (status == TG_OK && what & AGAIN)
        check_again(text);
    tg_seq_truncate(session, 0, 0, NULL);
    tg_saved_free(saved);
}
