/* What tg_eval and the sequences refuse, and that a refusal leaves everything as it was. Through the
 * public header, on two of the golden models. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>

#include "support/bytes.h"
#include "support/scratch.h"
#include "tinygpt/tinygpt.h"

static tg_model *rotary, *learned;

static tg_session *make(const tg_model *m, int n_ctx, int n_batch, int n_seq_max)
{
    tg_session *s;
    tg_error err;
    const tg_session_params p = {.n_threads = 2, .n_ctx = n_ctx, .n_batch = n_batch, .n_seq_max = n_seq_max};
    if (tg_session_create(&s, m, &p, &err) != TG_OK)
        fail_msg("%s", err.message);
    return s;
}

typedef struct seen {
    int rows, stop_after;
    float last;
} seen;

static bool sink(void *arg, int row, const float *logits, int n_vocab)
{
    seen *s = arg;
    (void)row;
    s->last = logits[n_vocab - 1];
    return ++s->rows != s->stop_after;
}

static const int32_t ids[100] = {1, 2, 3, 4, 5, 6, 7, 8, 9};

static tg_status eval(tg_session *s, tg_batch b, seen *out, const char *wanted)
{
    tg_error err;
    tg_status status = tg_eval(s, &b, sink, out, &err);
    if (wanted && !strstr(err.message, wanted))
        fail_msg("no '%s' in: %s", wanted, err.message);
    if (wanted)
        assert_int_equal(err.status, status);
    return status;
}

static void bad_batches(void **state)
{
    (void)state;
    tg_session *s = make(rotary, 64, 4, 2);
    seen r = {0};
    tg_model_info info;
    tg_model_get_info(rotary, &info);
    const int32_t high[] = {1, 2, 3, 4, 5, info.n_vocab}, low[] = {1, -1}, seq[] = {0, 1}, far[] = {0, 7};
    const int32_t pos[] = {0, 2};
    assert_int_equal(eval(s, (tg_batch){.n = 3, .id = ids}, &r, NULL), TG_OK);
    float before = r.last;
    assert_int_equal(eval(s, (tg_batch){.n = 0, .id = ids}, &r, "rows of a batch"), TG_E_USAGE);
    assert_int_equal(eval(s, (tg_batch){.n = 6, .id = high}, &r, "token id in row 5"), TG_E_USAGE);
    assert_int_equal(eval(s, (tg_batch){.n = 2, .id = low}, &r, "token id in row 1"), TG_E_USAGE);
    assert_int_equal(eval(s, (tg_batch){.n = 2, .id = ids, .seq = seq}, &r, "no such sequence"), TG_E_USAGE);
    assert_int_equal(eval(s, (tg_batch){.n = 2, .id = ids, .seq = far}, &r, "no such sequence"), TG_E_USAGE);
    assert_int_equal(eval(s, (tg_batch){.n = 2, .id = ids, .pos = pos}, &r, "position in row 0"), TG_E_USAGE);
    assert_int_equal(eval(s, (tg_batch){.n = 62, .id = ids}, &r, "context full (64"), TG_E_USAGE);
    assert_int_equal(tg_seq_length(s, 0), 3);
    assert_int_equal(r.rows, 1);
    /* and all goes on: the same token again at the same place gives the same logits */
    assert_int_equal(tg_seq_truncate(s, 0, 2, NULL), TG_OK);
    assert_int_equal(eval(s, (tg_batch){.n = 1, .id = ids + 2}, &r, NULL), TG_OK);
    assert_true(r.last == before);
    assert_int_equal(eval(s, (tg_batch){.n = 61, .id = ids}, &r, NULL), TG_OK);
    assert_int_equal(tg_seq_length(s, 0), 64);
    assert_int_equal(eval(s, (tg_batch){.n = 1, .id = ids}, &r, "context full"), TG_E_USAGE);
    tg_session_free(s);
}

static void sequences(void **state)
{
    (void)state;
    tg_session *s = make(rotary, 64, 8, 2);
    tg_error err;
    int seq = -7;
    assert_int_equal(tg_seq_fork(s, 1, &seq, &err), TG_E_USAGE);
    assert_int_equal(tg_seq_fork(s, -1, &seq, &err), TG_E_USAGE);
    assert_int_equal(tg_seq_truncate(s, 0, 1, &err), TG_E_USAGE);
    assert_int_equal(tg_seq_truncate(s, 2, 0, &err), TG_E_USAGE);
    assert_int_equal(tg_seq_new(s, &seq, &err), TG_OK);
    assert_int_equal(seq, 1);
    assert_int_equal(tg_seq_new(s, &seq, &err), TG_E_USAGE);
    assert_non_null(strstr(err.message, "too many sequences"));
    assert_int_equal(tg_seq_fork(s, 0, &seq, &err), TG_E_USAGE);
    tg_seq_free(s, 1);
    tg_seq_free(s, 1);
    tg_seq_free(s, 99);
    assert_int_equal(tg_seq_length(s, 1), 0);
    tg_session_free(s);
    tg_session_free(NULL);
}

/* Stopped by the sink or by an interruption, in the middle of a batch: as long as before, and usable. */
static void stops(void **state)
{
    (void)state;
    tg_session *s = make(rotary, 128, 5, 1);
    uint8_t want[20];
    memset(want, 1, sizeof want);
    seen r = {.stop_after = 13};
    tg_batch b = {.n = 20, .id = ids, .want = want};
    assert_int_equal(eval(s, b, &r, "stopped by the caller"), TG_E_STOPPED);
    assert_int_equal(r.rows, 13);
    assert_int_equal(tg_seq_length(s, 0), 0);
    tg_session_interrupt(s);
    r = (seen){0};
    assert_int_equal(eval(s, b, &r, "interrupted"), TG_E_STOPPED);
    assert_int_equal(r.rows, 0);
    assert_int_equal(tg_seq_length(s, 0), 0);
    assert_int_equal(eval(s, b, &r, NULL), TG_OK);
    assert_int_equal(r.rows, 20);
    /* without a sink the rows are evaluated all the same */
    assert_int_equal(tg_eval(s, &b, NULL, NULL, NULL), TG_OK);
    assert_int_equal(tg_seq_length(s, 0), 40);
    tg_session_free(s);
}

static void learned_positions_end(void **state)
{
    (void)state;
    tg_model_info info;
    tg_model_get_info(learned, &info);
    assert_true(info.positions_bounded);
    tg_session *s = make(learned, info.n_ctx_train + 64, 0, 1);
    int32_t *many = calloc((size_t)info.n_ctx_train + 1, sizeof *many);
    seen r = {0};
    assert_int_equal(eval(s, (tg_batch){.n = info.n_ctx_train + 1, .id = many}, &r, "has learned"),
                     TG_E_USAGE);
    assert_int_equal(eval(s, (tg_batch){.n = info.n_ctx_train, .id = many}, &r, NULL), TG_OK);
    free(many);
    tg_session_free(s);
}

static void parameters(void **state)
{
    (void)state;
    const tg_session_params bad[] = {{.n_threads = -1}, {.n_threads = 513}, {.n_ctx = -1},
                                     {.n_ctx = (1 << 20) + 1}, {.n_batch = -1}, {.n_seq_max = -1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tg_session *s;
        tg_error err;
        assert_int_equal(tg_session_create(&s, rotary, &bad[i], &err), TG_E_USAGE);
        assert_null(s);
    }
    tg_session_info info;
    tg_session *s = make(rotary, 100, 3, 1);
    tg_session_get_info(s, &info);
    assert_int_equal(info.n_ctx, 128);
    const tg_session_params p = {.n_threads = 2, .n_ctx = 100, .n_batch = 3, .n_seq_max = 1};
    uint64_t kv, scratch;
    tg_session_memory(rotary, &p, &kv, &scratch);
    assert_true(kv == info.kv_bytes && scratch == info.scratch_bytes);
    tg_session_free(s);
}

/* R21: numbers that are not finite end an evaluation, and the message says where they came up. */
static void r21_bad_weights(void **state)
{
    (void)state;
    static const struct {
        const char *tensor, *said;
    } cases[] = {{"model.embed_tokens.weight", "in the embedding"},
                 {"model.layers.0.mlp.down_proj.weight", "first behind layer 0"},
                 {"model.layers.1.self_attn.v_proj.weight", "first behind layer 1"},
                 {"model.norm.weight", "first behind layer 1"}};
    FILE *f = fopen("tests/golden/llama-plain/model.safetensors", "rb");
    assert_non_null(f);
    static unsigned char file[1 << 20];
    size_t n = fread(file, 1, sizeof file, f);
    fclose(f);
    uint64_t header;
    memcpy(&header, file, 8);
    scratch_mkdir("bad");
    static const char *const parts[] = {"config.json", "tokenizer.json"};
    for (int i = 0; i < 2; i++) {
        char path[200];
        static unsigned char part[1 << 20];
        snprintf(path, sizeof path, "tests/golden/llama-plain/%s", parts[i]);
        f = fopen(path, "rb");
        assert_non_null(f);
        size_t m = fread(part, 1, sizeof part, f);
        fclose(f);
        snprintf(path, sizeof path, "bad/%s", parts[i]);
        scratch_write(path, part, m);
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static unsigned char spoilt[1 << 20];
        memcpy(spoilt, file, n);
        char *at = memmem(spoilt, n, cases[i].tensor, strlen(cases[i].tensor));
        assert_non_null(at);
        char *offsets = strstr(at, "\"data_offsets\":[");
        assert_non_null(offsets);
        unsigned long begin = strtoul(offsets + strlen("\"data_offsets\":["), NULL, 10);
        const float nan = NAN;
        unsigned char *data = spoilt + 8 + header + begin;
        for (int k = 0; k < 64; k++) /* the first id's row, or the first outputs */
            memcpy(data + 4 * k, &nan, i == 3 && k > 3 ? 0 : 4);
        scratch_write("bad/model.safetensors", spoilt, n);
        tg_model *m;
        tg_error err;
        if (tg_model_load(&m, scratch_path("bad"), 0, &err) != TG_OK)
            fail_msg("%s", err.message);
        tg_session *s = make(m, 64, 0, 1);
        const int32_t zero[3] = {0};
        seen r = {0};
        assert_int_equal(eval(s, (tg_batch){.n = 3, .id = zero}, &r, cases[i].said), TG_E_NUMERIC);
        assert_int_equal(r.rows, 0);
        assert_int_equal(tg_seq_length(s, 0), 0);
        tg_session_free(s);
        tg_model_free(m);
    }
}

static int setup(void **state)
{
    tg_error err;
    return scratch_setup(state) ||
           tg_model_load(&rotary, "tests/golden/llama-plain", 0, &err) != TG_OK ||
           tg_model_load(&learned, "tests/golden/gpt2-tanh", TG_LOAD_NO_MMAP, &err) != TG_OK;
}

static int teardown(void **state)
{
    tg_model_free(rotary);
    tg_model_free(learned);
    return scratch_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_batches),           cmocka_unit_test(sequences),
        cmocka_unit_test(stops),                 cmocka_unit_test(learned_positions_end),
        cmocka_unit_test(parameters),            cmocka_unit_test(r21_bad_weights),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
