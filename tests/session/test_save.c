/* Saved sessions, through the public header: what is restored goes on with the same bits, and whatever is not such a
 * file, whole, of this model and of such a session, is refused with nothing left behind (rows M61 to M68, R37 and R40 of
 * the fault catalogue). Sums are made anew by this file's own means where a header is forged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <math.h>

#include "support/rand.h"
#include "support/scratch.h"
#include "tinygpt/tinygpt.h"

enum { MANY = 110, MORE = 12, VOCAB_MAX = 512 };

static int32_t ids[MANY];

static tg_model *load(const char *path)
{
    tg_model *m;
    tg_error err;
    if (tg_model_load(&m, path, 0, &err) != TG_OK)
        fail_msg("%s", err.message);
    return m;
}

static tg_session *make(const tg_model *m, tg_session_params p)
{
    tg_session *s;
    tg_error err;
    if (tg_session_create(&s, m, &p, &err) != TG_OK)
        fail_msg("%s", err.message);
    return s;
}

static int vocab_of(const tg_model *m)
{
    tg_model_info info;
    tg_model_get_info(m, &info);
    return info.n_vocab;
}

/* Some tokens of the model's vocabulary. */
static void draw_ids(const tg_model *m)
{
    for (int i = 0; i < MANY; i++)
        ids[i] = rand_int(0, vocab_of(m) - 1);
}

static bool keep_row(void *arg, int row, const float *logits, int n_vocab)
{
    (void)row;
    memcpy(arg, logits, (size_t)n_vocab * sizeof *logits);
    return true;
}

static void eval(tg_session *s, int from, int n, float *logits)
{
    tg_error err;
    const tg_batch b = {.n = n, .id = ids + from};
    if (n > 0 && tg_eval(s, &b, keep_row, logits, &err) != TG_OK)
        fail_msg("%s", err.message);
}

static void save(const tg_session *s, const tg_model *m, int n_ids, int n_cached, const char *path)
{
    tg_error err;
    const tg_saved_text text = {.ids = ids, .n_ids = (size_t)n_ids, .n_cached = (size_t)n_cached, .seed = 7, .stream = 3,
                                .n_drawn = 11, .note = "a note", .n_note = 6};
    if (tg_session_save(s, m, 0, &text, path, &err) != TG_OK)
        fail_msg("%s", err.message);
}

/* Opens and restores, whichever of them fails first. */
static tg_status restore(tg_session *s, const tg_model *m, const char *path, tg_error *err)
{
    tg_saved *saved;
    tg_status status = tg_saved_open(&saved, m, path, err);
    if (status == TG_OK)
        status = tg_session_restore(s, 0, saved, err);
    tg_saved_free(saved);
    if (status != TG_OK)
        assert_int_equal(tg_seq_length(s, 0), 0);
    return status;
}

static uint8_t *slurp(const char *path, size_t *n)
{
    static uint8_t room[1 << 20];
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    *n = fread(room, 1, sizeof room, f);
    fclose(f);
    assert_true(*n < sizeof room);
    return room;
}

static void same_file(const char *a, const char *b)
{
    static uint8_t first[1 << 20];
    size_t n, other;
    memcpy(first, slurp(a, &n), sizeof first);
    const uint8_t *second = slurp(b, &other);
    assert_int_equal(n, other);
    assert_memory_equal(first, second, n);
}

/* ---- the same bits --------------------------------------------------------------------------------- */

/* A session evaluates n tokens, is saved, and goes on; another one is restored and goes on likewise. */
static void goes_on_from(const tg_model *m, tg_session_params p, int n)
{
    static float wanted[VOCAB_MAX], found[VOCAB_MAX];
    tg_error err;
    tg_saved *saved;
    const char *path = scratch_path("s");
    tg_session *a = make(m, p);
    p.n_threads = 4 - p.n_threads;
    p.n_batch = 5;
    tg_session *b = make(m, p);
    /* what the cache had before, and has no more, is not in the file */
    eval(a, n / 2, MANY - n / 2 < n + 9 ? MANY - n / 2 : n + 9, found);
    assert_int_equal(tg_seq_truncate(a, 0, 0, NULL), TG_OK);
    eval(a, 0, n, found);
    save(a, m, n + 1, n, path);

    if (tg_saved_open(&saved, m, path, &err) != TG_OK)
        fail_msg("%s", err.message);
    const tg_saved_text *t = tg_saved_get_text(saved);
    assert_int_equal(t->n_ids, n + 1);
    assert_int_equal(t->n_cached, n);
    assert_memory_equal(t->ids, ids, ((size_t)n + 1) * sizeof *ids);
    assert_true(t->seed == 7 && t->stream == 3 && t->n_drawn == 11 && t->n_note == 6 && !memcmp(t->note, "a note", 6));
    for (int twice = 0; twice < 2; twice++) {
        assert_int_equal(tg_seq_truncate(b, 0, 0, NULL), TG_OK);
        if (tg_session_restore(b, 0, saved, &err) != TG_OK)
            fail_msg("%s", err.message);
        assert_int_equal(tg_seq_length(b, 0), n);
    }
    tg_saved_free(saved);
    save(b, m, n + 1, n, scratch_path("t"));
    same_file(path, scratch_path("t"));
    for (int i = 0; i < MORE && n + i < MANY; i++) {
        eval(a, n + i, 1, wanted);
        eval(b, n + i, 1, found);
        assert_memory_equal(wanted, found, (size_t)vocab_of(m) * sizeof *wanted);
    }
    tg_session_free(a);
    tg_session_free(b);
}

static void goes_on(void **state)
{
    (void)state;
    static const char *const models[] = {
        "tests/golden/gpt2-tanh",        "tests/golden/llama-8-2",     "tests/golden/gemma3-new",
        "tests/golden/gpt_oss-mxfp4",    "tests/golden/llama-longrope", "tests/golden/mistral-old",
        "tests/golden/qwen3_moe-old",    "tests/golden/gguf/llama-wide.q8_0.gguf",
        "tests/golden/gguf/gemma3-q.q8_0.gguf", "tests/golden/gguf/gpt2.q4_0.gguf"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        tg_model *m = load(models[i]);
        tg_model_info info;
        tg_model_get_info(m, &info);
        const int n = info.positions_bounded && info.n_ctx_train < MANY ? info.n_ctx_train / 2 : 75;
        draw_ids(m);
        for (tg_kv_type type = TG_KV_F32; type <= TG_KV_Q4; type++)
            for (int threads = 1; threads <= 3; threads += 2)
                goes_on_from(m, (tg_session_params){.n_threads = threads, .n_ctx = MANY, .n_batch = 16, .type_k = type,
                                                    .type_v = (type + (threads == 3)) % 5},
                             n);
        goes_on_from(m, (tg_session_params){.n_threads = 1, .n_ctx = MANY, .window = 20, .keep = 3, .precise = true,
                                            .no_blas = true},
                     n);
        tg_model_free(m);
    }
}

static void any_length(void **state)
{
    (void)state;
    tg_model *m = load("tests/golden/llama-8-2");
    const int lengths[] = {0, 1, 2, 16, 63, 64, 65, 100};
    draw_ids(m);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        goes_on_from(m, (tg_session_params){.n_threads = 1, .n_ctx = MANY}, lengths[i]);
    tg_model_free(m);
}

/* ---- a small file, damaged ------------------------------------------------------------------------- */

static tg_model *small;
static const tg_session_params plain = {.n_threads = 1, .n_ctx = 64, .type_k = TG_KV_Q4, .type_v = TG_KV_Q4};

/* A file of few bytes: its path, and a session to restore. */
static const char *small_file(tg_session **s, tg_session_params p)
{
    static char path[PATH_MAX];
    float row[VOCAB_MAX];
    tg_session *first = make(small, p);
    snprintf(path, sizeof path, "%s", scratch_path("small"));
    eval(first, 0, 5, row);
    save(first, small, 6, 5, path);
    tg_session_free(first);
    *s = make(small, p);
    return path;
}

/* M65 */
static void prefixes(void **state)
{
    (void)state;
    tg_session *s;
    tg_error err;
    size_t n;
    const char *path = small_file(&s, plain);
    assert_int_equal(restore(s, small, path, &err), TG_OK);
    assert_int_equal(tg_seq_truncate(s, 0, 0, NULL), TG_OK);
    const uint8_t *data = slurp(path, &n);
    scratch_write("more", data, n + 1);
    assert_int_equal(restore(s, small, scratch_path("more"), &err), TG_E_SESSION);
    scratch_write("cut", data, n);
    while (n-- > 0) {
        assert_int_equal(truncate(scratch_path("cut"), (off_t)n), 0);
        assert_int_equal(restore(s, small, scratch_path("cut"), &err), TG_E_SESSION);
        assert_non_null(strstr(err.message, "it was cut short"));
    }
    tg_session_free(s);
}

/* M66 */
static void flips(void **state)
{
    (void)state;
    tg_session *s;
    tg_error err;
    size_t n;
    const char *path = small_file(&s, plain);
    const uint8_t *data = slurp(path, &n);
    int fd = open(path, O_RDWR);
    for (size_t i = 0; i < n; i++)
        for (int bit = 0; bit < 8; bit++) {
            const uint8_t flipped = (uint8_t)(data[i] ^ 1 << bit);
            assert_int_equal(pwrite(fd, &flipped, 1, (off_t)i), 1);
            if (restore(s, small, path, &err) != TG_E_SESSION)
                fail_msg("bit %d of byte %zu", bit, i);
            assert_int_equal(pwrite(fd, &data[i], 1, (off_t)i), 1);
        }
    assert_int_equal(restore(s, small, path, &err), TG_OK);
    close(fd);
    tg_session_free(s);
}

/* ---- forged headers -------------------------------------------------------------------------------- */

enum { FIELDS = 24, N_FIELDS = 20, IDS_AT = FIELDS + 8 * N_FIELDS, SUM_AT = IDS_AT + 32 }; /* six tokens, a note */

static uint64_t sum_of(const uint8_t *p, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i += 8) {
        uint64_t word = 0;
        for (int k = 0; k < 8; k++)
            word |= (uint64_t)p[i + (size_t)k] << (8 * k);
        sum = ((sum ^ word) + 0x9e3779b97f4a7c15u) * 0xd6e8feb86659fd93u;
        sum ^= sum >> 32;
    }
    return sum;
}

static void put_u64_at(uint8_t *p, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

/* The file with both sums right. */
static const char *sealed(uint8_t *data, size_t n)
{
    put_u64_at(data + SUM_AT, sum_of(data, SUM_AT));
    put_u64_at(data + n - 8, sum_of(data, n - 8));
    return scratch_write("forged", data, n);
}

static void refused(tg_session *s, const char *path, const char *wanted)
{
    tg_error err;
    assert_int_equal(restore(s, small, path, &err), TG_E_SESSION);
    if (!strstr(err.message, wanted))
        fail_msg("no '%s' in: %s", wanted, err.message);
}

/* M61 */
static void other_formats(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        uint8_t value;
        const char *wanted;
    } cases[] = {{0, 'T', "not a saved session"},       {7, 0, "not a saved session"},
                 {8, 0, "version of the format (found 0"}, {8, 1, "version of the format (found 1, allowed 2)"},
                 {11, 1, "version of the format"},      {12, 1, "order of bytes"},
                 {16, 8, "size of the header"},         {20, 1, "size of the header"}};
    tg_session *s;
    size_t n;
    const char *path = small_file(&s, plain);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t *data = slurp(path, &n);
        data[cases[i].at] = cases[i].value;
        refused(s, sealed(data, n), cases[i].wanted);
    }
    uint8_t *data = slurp(path, &n);
    for (int i = 0; i < 2; i++) {
        uint8_t byte = data[12 + i];
        data[12 + i] = data[15 - i];
        data[15 - i] = byte;
    }
    refused(s, sealed(data, n), "order of bytes (found 04030201");
    tg_session_free(s);
}

/* M62, M63, M64, M67: each field, with numbers that are near, wrap, or are large. */
static void forged_fields(void **state)
{
    (void)state;
    static const char *const names[N_FIELDS] = {
        "another model", "another tokenizer", "layers (", "heads of keys", "size of a head", "size of the vocabulary",
        "type of the cached keys", "type of the cached values", "another attention", "window (", "positions kept",
        "precise", "OpenBLAS", "another rotation", "", "", "", NULL, NULL, "draws ("};
    static const uint64_t values[] = {0, 1, 5, 7, 64, 65, 1u << 20, 1u << 31, 1ull << 32, 1ull << 40, (1ull << 40) + 1,
                                      1ull << 61, 1ull << 62, 1ull << 63, UINT64_MAX - 63, UINT64_MAX};
    tg_session *s;
    size_t n;
    tg_error err;
    const char *path = small_file(&s, plain);
    for (int f = 0; f < N_FIELDS; f++)
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
            uint8_t *data = slurp(path, &n), before[8];
            memcpy(before, data + FIELDS + 8 * f, 8);
            put_u64_at(data + FIELDS + 8 * f, values[i]);
            if (!memcmp(before, data + FIELDS + 8 * f, 8))
                continue;
            if (f >= 14 && f <= 16 && values[i] < 8) { /* what fills up to 8 bytes, or a block, may hide it */
                if (restore(s, small, sealed(data, n), &err) == TG_OK)
                    assert_int_equal(tg_seq_truncate(s, 0, 0, NULL), TG_OK);
                continue;
            }
            if (names[f] && !(f == 19 && values[i] <= 1ull << 40)) {
                const bool length = (f == 6 || f == 7) && values[i] <= TG_KV_Q4; /* of another type it would be another */
                refused(s, sealed(data, n), length ? "length (" : names[f]);
                continue;
            }
            assert_int_equal(restore(s, small, sealed(data, n), &err), TG_OK);
            assert_int_equal(tg_seq_truncate(s, 0, 0, NULL), TG_OK);
        }
    const int32_t bad[] = {-1, vocab_of(small), INT32_MAX, INT32_MIN};
    for (int i = 0; i < 4; i++) {
        uint8_t *data = slurp(path, &n);
        memcpy(data + IDS_AT + 4 * i, &bad[i], 4);
        refused(s, sealed(data, n), "id of token");
    }
    tg_session_free(s);
}

/* M67 */
static void not_finite(void **state)
{
    (void)state;
    for (tg_kv_type type = TG_KV_F32; type <= TG_KV_Q4; type++)
        for (int values = 0; values < 2; values++) {
            tg_session_params p = plain;
            tg_session *s;
            size_t n;
            p.type_k = p.type_v = type;
            uint8_t *data = slurp(small_file(&s, p), &n);
            /* the first 64 bytes, and the last ones, where scales are if there are any */
            memset(data + (values ? n - 8 - 64 : SUM_AT + 8), 0xFF, 64);
            if (!values && type >= TG_KV_Q8_0)
                memset(data + SUM_AT + 8, 0xFF, 600);
            refused(s, sealed(data, n), values ? "values in layer" : "keys in layer");
            tg_session_free(s);
        }
}

/* M68, and files that are not there. */
static void no_files(void **state)
{
    (void)state;
    tg_session *s;
    tg_error err;
    small_file(&s, plain);
    assert_int_equal(mkfifo(scratch_path("fifo"), 0600), 0);
    refused(s, scratch_path("fifo"), "found a FIFO");
    refused(s, "/dev/zero", "found a device");
    refused(s, scratch_folder, "found a directory");
    refused(s, scratch_text("empty", ""), "found 0 bytes");
    assert_int_equal(restore(s, small, scratch_path("none"), &err), TG_E_IO);
    tg_session_free(s);
}

/* A file that is cut, in the cache or before its last sum, after it was opened. */
static void cut_in_use(void **state)
{
    (void)state;
    tg_session *s;
    tg_saved *saved;
    tg_error err;
    size_t n;
    const char *path = small_file(&s, plain);
    slurp(path, &n);
    assert_int_equal(tg_saved_open(&saved, small, path, &err), TG_OK);
    const size_t cuts[] = {n - 8, SUM_AT + 10};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(truncate(path, (off_t)cuts[i]), 0);
        assert_int_equal(tg_session_restore(s, 0, saved, &err), TG_E_IO);
        assert_non_null(strstr(err.message, "became shorter"));
        assert_int_equal(tg_seq_length(s, 0), 0);
    }
    tg_saved_free(saved);
    tg_session_free(s);
}

/* Other sequences have taken what it needs. */
static void no_room_left(void **state)
{
    (void)state;
    float row[VOCAB_MAX];
    int other;
    tg_session *s;
    tg_saved *saved;
    tg_error err;
    tg_session_params p = plain;
    const char *path = scratch_path("s");
    p.n_ctx = 100;
    p.n_seq_max = 2;
    s = make(small, p);
    draw_ids(small);
    eval(s, 0, 100, row);
    save(s, small, 100, 100, path);
    assert_int_equal(tg_saved_open(&saved, small, path, &err), TG_OK);
    assert_int_equal(tg_seq_new(s, &other, &err), TG_OK);
    assert_int_equal(tg_session_restore(s, other, saved, &err), TG_E_USAGE);
    assert_non_null(strstr(err.message, "context full ("));
    assert_int_equal(tg_seq_length(s, other), 0);
    tg_saved_free(saved);
    tg_session_free(s);
}

/* ---- what must agree ------------------------------------------------------------------------------- */

/* M62: other sessions, and other models. */
static void others(void **state)
{
    (void)state;
    tg_session *s;
    const char *path = small_file(&s, plain);
    tg_session_free(s);
    const struct {
        tg_session_params p;
        const char *wanted;
    } cases[] = {
        {{.n_ctx = 64, .type_v = TG_KV_Q4}, "type of the cached keys (found q4, allowed f32)"},
        {{.n_ctx = 64, .type_k = TG_KV_Q4, .type_v = TG_KV_F16}, "type of the cached values (found q4, allowed f16)"},
        {{.n_ctx = 64, .type_k = TG_KV_Q4, .type_v = TG_KV_Q4, .window = 9}, "window (found 0, allowed 9)"},
        {{.n_ctx = 64, .type_k = TG_KV_Q4, .type_v = TG_KV_Q4, .precise = true}, "precise products (found off, allowed on)"},
        {{.n_ctx = 64, .type_k = TG_KV_Q4, .type_v = TG_KV_Q4, .no_blas = true}, "OpenBLAS (found on, allowed off)"},
        {{.n_ctx = 64, .type_k = TG_KV_Q4, .type_v = TG_KV_Q4, .attention = "split"}, "another attention algorithm"},
        {{.n_ctx = 64, .n_ctx_seq = 5, .type_k = TG_KV_Q4, .type_v = TG_KV_Q4}, "tokens (found 6, allowed up to 5)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        s = make(small, cases[i].p);
        refused(s, path, cases[i].wanted);
        tg_session_free(s);
    }
    tg_model *keep = small;
    small = load("tests/golden/llama-9-3");
    s = make(small, plain);
    refused(s, path, "another model");
    tg_session_free(s);
    tg_model_free(small);
    /* the context changes the frequencies */
    small = load("tests/golden/llama-dynamic");
    draw_ids(small);
    tg_session_params p = plain;
    path = small_file(&s, p);
    tg_session_free(s);
    p.n_ctx = 1024;
    s = make(small, p);
    refused(s, path, "another rotation");
    tg_session_free(s);
    tg_model_free(small);
    small = keep;
    draw_ids(small);
}

/* R40, and what cannot be saved. */
static void saving(void **state)
{
    (void)state;
    tg_session *s;
    tg_error err;
    struct stat st;
    mode_t old = umask(0);
    const char *path = small_file(&s, plain);
    umask(old);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    const int32_t bad[] = {1, vocab_of(small)};
    const tg_saved_text good = {.ids = ids, .n_ids = 3};
    tg_saved_text texts[] = {good, good, good, good};
    texts[0].n_cached = 1; /* the session has nothing */
    texts[1].ids = bad;
    texts[2].n_drawn = ((uint64_t)1 << 40) + 1;
    texts[3].n_note = ((size_t)64 << 20) + 1;
    for (int i = 0; i < 4; i++)
        assert_int_equal(tg_session_save(s, small, 0, &texts[i], path, &err), TG_E_USAGE);
    assert_int_equal(tg_session_save(s, small, 0, &good, scratch_path("no/such"), &err), TG_E_IO);
    assert_int_equal(restore(s, small, path, &err), TG_OK);
    tg_saved *saved;
    assert_int_equal(tg_saved_open(&saved, small, path, &err), TG_OK);
    assert_int_equal(tg_session_restore(s, 0, saved, &err), TG_E_USAGE); /* it is not empty any more */
    assert_int_equal(tg_session_restore(s, 1, saved, &err), TG_E_USAGE);
    assert_int_equal(tg_session_restore(s, -1, saved, &err), TG_E_USAGE);
    assert_int_equal(tg_seq_length(s, 0), 5);
    tg_saved_free(saved);
    tg_session_free(s);
}

/* ---- generators ------------------------------------------------------------------------------------ */

typedef struct text {
    int32_t ids[MANY];
    int n;
} text;

static bool take(void *arg, const tg_piece *piece)
{
    text *t = arg;
    if (piece->id >= 0)
        t->ids[t->n++] = piece->id;
    return true;
}

/* Draws so many tokens behind those that are there. */
static void draw(tg_generator *g, text *t, int n, tg_sampling sampling)
{
    tg_error err;
    tg_generator_info info = {.n_active = 1};
    const tg_request r = {.ids = t->ids, .n_ids = (size_t)t->n, .sampling = sampling, .n_max = n, .n_top = -1, .n_draft = 4,
                          .sink = take, .arg = t};
    if (tg_generator_add(g, &r, &err) != TG_OK)
        fail_msg("%s", err.message);
    for (; info.n_active > 0; tg_generator_get_info(g, &info))
        if (tg_generator_step(g, &err) != TG_OK)
            fail_msg("%s", err.message);
}

static text begin(void)
{
    text t = {.n = 20};
    memcpy(t.ids, ids, 20 * sizeof *ids);
    return t;
}

static void generators(void **state)
{
    (void)state;
    tg_error err;
    tg_model *m = load("tests/golden/gguf/llama-wide.q8_0.gguf");
    const tg_session_params p = {.n_threads = 1, .n_ctx = 256, .n_ctx_seq = 128, .n_seq_max = 3};
    tg_sampling sampling = {.temp = 1.5f, .top_p = 1, .last_n = 16, .repeat = 1.3f, .presence = 0.2f, .seed = 99,
                            .stream = 2, .ignore_eos = true};
    const char *path = scratch_path("g");
    draw_ids(m);
    tg_generator *g;
    tg_session *s = make(m, p);
    assert_int_equal(tg_generator_create(&g, m, s, NULL), TG_OK);
    text whole = begin();
    draw(g, &whole, 60, sampling);
    tg_generator_free(g);
    tg_session_free(s);
    for (int n = 1; n < 60; n += 7) {
        text t = begin();
        tg_saved *saved;
        tg_generator_info info;
        for (int part = 0; part < 2; part++) {
            s = make(m, p);
            assert_int_equal(tg_generator_create(&g, m, s, NULL), TG_OK);
            if (part == 1) {
                assert_int_equal(tg_saved_open(&saved, m, path, NULL), TG_OK);
                assert_int_equal(tg_saved_get_text(saved)->n_cached, 20 + n - 1);
                sampling.n_drawn = tg_saved_get_text(saved)->n_drawn;
                if (tg_generator_restore(g, saved, &err) != TG_OK)
                    fail_msg("%s", err.message);
                tg_saved_free(saved);
            }
            draw(g, &t, part == 0 ? n : 60 - n, sampling);
            tg_generator_get_info(g, &info);
            const tg_saved_text as = {.ids = t.ids, .n_ids = (size_t)t.n, .n_drawn = (uint64_t)n};
            if (part == 0)
                assert_int_equal(tg_generator_save(g, &as, path, NULL), TG_OK);
            tg_generator_free(g);
            tg_session_free(s);
        }
        sampling.n_drawn = 0;
        assert_int_equal(info.n_reused, 20 + n - 1);
        assert_int_equal(t.n, whole.n);
        assert_memory_equal(t.ids, whole.ids, (size_t)t.n * sizeof *t.ids);
    }
    tg_model_free(m);
}

static int setup(void **state)
{
    small = load("tests/golden/llama-one-kv");
    draw_ids(small);
    return scratch_setup(state);
}

static int teardown(void **state)
{
    tg_model_free(small);
    return scratch_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goes_on),       cmocka_unit_test(any_length),    cmocka_unit_test(prefixes),
        cmocka_unit_test(flips),         cmocka_unit_test(other_formats), cmocka_unit_test(forged_fields),
        cmocka_unit_test(not_finite),    cmocka_unit_test(no_files), cmocka_unit_test(cut_in_use), cmocka_unit_test(no_room_left),      cmocka_unit_test(others),
        cmocka_unit_test(saving),        cmocka_unit_test(generators),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
