/* What a token reads and takes, counted, and that measuring the machine gives numbers. Never times. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "attn/view.h"
#include "tinygpt/tinygpt.h"

typedef struct opened {
    tg_model *model;
    tg_model_info info;
    tg_session *session;
} opened;

static opened open_model(const char *path, tg_session_params params)
{
    opened o;
    tg_error err;
    if (tg_model_load(&o.model, path, 0, &err) != TG_OK)
        fail_msg("%s", err.message);
    tg_model_get_info(o.model, &o.info);
    params.n_ctx = params.n_ctx ? params.n_ctx : 256;
    params.n_threads = params.n_threads ? params.n_threads : 2;
    if (tg_session_create(&o.session, o.model, &params, &err) != TG_OK)
        fail_msg("%s", err.message);
    return o;
}

static void close_model(opened *o)
{
    tg_session_free(o->session);
    tg_model_free(o->model);
}

static void append(tg_session *s, int seq, int n)
{
    static const int32_t ids[256];
    int32_t seqs[256];
    for (int i = 0; i < n; i++)
        seqs[i] = seq;
    if (n > 0)
        assert_int_equal(tg_eval(s, &(tg_batch){.n = n, .id = ids, .seq = seqs}, NULL, NULL, NULL), TG_OK);
}

static tg_read read_of(tg_session *s, int seq)
{
    tg_read read;
    assert_int_equal(tg_session_read(s, seq, &read, NULL), TG_OK);
    assert_true(read.seconds > 0 && read.seconds < 1e3);
    return read;
}

/* ---- weights ------------------------------------------------------------------------------------ */

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* All tensors, vectors as the float32 that they become, but those of which a token reads a row alone, and
 * frequencies. */
static uint64_t file_bytes(const opened *o)
{
    uint64_t sum = 0, embedding = 0;
    bool has_head = false;
    for (int i = 0; i < o->info.n_tensors; i++) {
        tg_tensor_info t;
        tg_model_get_tensor(o->model, i, &t);
        if (ends_with(t.name, "wpe.weight") || ends_with(t.name, "position_embd.weight") ||
            strstr(t.name, "_freq"))
            continue;
        if (ends_with(t.name, "embed_tokens.weight") || ends_with(t.name, "token_embd.weight"))
            embedding = t.n_bytes;
        has_head |= ends_with(t.name, "lm_head.weight") || strcmp(t.name, "output.weight") == 0;
        sum += t.n_dim == 1 ? 4 * t.dim[0] : t.n_bytes;
    }
    return sum - (has_head ? embedding : 0);
}

static void weights_are_read_once(void **state)
{
    (void)state;
    static const char *const paths[] = {"tests/golden/llama-plain", "tests/golden/gpt2-tanh",
                                        "tests/golden/llama-biases", "tests/golden/gguf/llama.q8_0.gguf",
                                        "tests/golden/gguf/llama-wide.q4_1.gguf"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        opened o = open_model(paths[i], (tg_session_params){0});
        tg_read read = read_of(o.session, 0);
        if (read.weight_bytes != file_bytes(&o))
            fail_msg("%s: %llu, not %llu", paths[i], (unsigned long long)read.weight_bytes,
                     (unsigned long long)file_bytes(&o));
        assert_int_equal(read.kv_bytes, 0);
        append(o.session, 0, 3);
        assert_int_equal(read_of(o.session, 0).weight_bytes, read.weight_bytes);
        close_model(&o);
    }
}

/* ---- keys and values ---------------------------------------------------------------------------- */

/* Of 16 positions. */
static uint64_t group_bytes(const tg_model_info *m, tg_kv_type k, tg_kv_type v)
{
    static const tg_type type[] = {
        [TG_KV_F32] = TG_F32, [TG_KV_F16] = TG_F16, [TG_KV_BF16] = TG_BF16, [TG_KV_Q8_0] = TG_Q8_0};
    return (uint64_t)m->n_layer * (uint64_t)m->n_head_kv *
           (tg_kv_k_group_bytes(type[k], m->head_dim) + tg_kv_v_block_bytes(type[v], m->head_dim) / 4);
}

static void kv_grows_by_groups(void **state)
{
    (void)state;
    for (tg_kv_type k = TG_KV_F32; k <= TG_KV_Q8_0; k++)
        for (tg_kv_type v = TG_KV_F32; v <= TG_KV_Q8_0; v++) {
            opened o = open_model("tests/golden/llama-plain", (tg_session_params){.type_k = k, .type_v = v});
            static const int lengths[] = {0, 1, 15, 16, 17, 63, 64, 65, 200, 256};
            for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
                append(o.session, 0, lengths[i] - tg_seq_length(o.session, 0));
                uint64_t groups = (uint64_t)(lengths[i] + 15) / 16;
                assert_int_equal(read_of(o.session, 0).kv_bytes, groups * group_bytes(&o.info, k, v));
            }
            assert_int_equal(tg_seq_truncate(o.session, 0, 40, NULL), TG_OK);
            assert_int_equal(read_of(o.session, 0).kv_bytes, 3 * group_bytes(&o.info, k, v));
            close_model(&o);
        }
}

static void sequences_are_read_apart(void **state)
{
    (void)state;
    opened o = open_model("tests/golden/llama-plain", (tg_session_params){.n_seq_max = 3});
    uint64_t group = group_bytes(&o.info, TG_KV_F32, TG_KV_F32);
    int fork, fresh;
    tg_error err;
    tg_read read;
    append(o.session, 0, 70);
    assert_int_equal(tg_seq_fork(o.session, 0, &fork, NULL), TG_OK);
    assert_int_equal(tg_seq_new(o.session, &fresh, NULL), TG_OK);
    append(o.session, fork, 20); /* its last block is a copy, somewhere else */
    assert_int_equal(read_of(o.session, 0).kv_bytes, 5 * group);
    assert_int_equal(read_of(o.session, fork).kv_bytes, 6 * group);
    assert_int_equal(read_of(o.session, fresh).kv_bytes, 0);
    tg_seq_free(o.session, fresh);
    const int none[] = {-1, fresh, 3};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tg_session_read(o.session, none[i], &read, &err), TG_E_USAGE);
        assert_non_null(strstr(err.message, "no such sequence"));
    }
    close_model(&o);
}

/* Behind 200 positions, of the last 20 (its own among them) and the first 4: 181 and on, 0 to 3. */
static void windows(void **state)
{
    (void)state;
    opened o = open_model("tests/golden/llama-plain", (tg_session_params){.window = 20, .keep = 4});
    append(o.session, 0, 200);
    assert_int_equal(read_of(o.session, 0).kv_bytes, 3 * group_bytes(&o.info, TG_KV_F32, TG_KV_F32));
    tg_work one, many = {0};
    for (int i = 0; i < 200; i++) {
        tg_session_work(o.session, i, 1, &one);
        many.f32_flops += one.f32_flops;
    }
    uint64_t per_key = 4 * (uint64_t)o.info.n_head * (uint64_t)o.info.head_dim * (uint64_t)o.info.n_layer;
    tg_session_work(o.session, 0, 1, &one);
    uint64_t products = one.f32_flops - per_key; /* a single key */
    /* 1 to 20 keys, then the kept ones as they leave the window, then all 24 */
    uint64_t keys = 20 * 21 / 2 + 21 + 22 + 23 + 177 * 24;
    assert_int_equal(many.f32_flops, 200 * products + keys * per_key);
    close_model(&o);
}

/* ---- work --------------------------------------------------------------------------------------- */

static tg_work work_of(const char *path, tg_session_params params, int n_past, int n)
{
    opened o = open_model(path, params);
    tg_work work;
    tg_session_work(o.session, n_past, n, &work);
    close_model(&o);
    return work;
}

static void work(void **state)
{
    (void)state;
    const char *path = "tests/golden/gguf/llama-wide.q8_0.gguf";
    const tg_session_params precise = {.precise = true}, plain = {0};
    opened o = open_model(path, plain);
    const tg_model_info *m = &o.info;
    uint64_t per_key = 4 * (uint64_t)m->n_head * (uint64_t)m->head_dim * (uint64_t)m->n_layer;
    uint64_t n_embd = (uint64_t)m->n_embd, q = (uint64_t)(m->n_head * m->head_dim);
    uint64_t kv = (uint64_t)(m->n_head_kv * m->head_dim), ff = (uint64_t)m->n_ff;
    uint64_t layers = (uint64_t)m->n_layer * n_embd * (2 * q + 2 * kv + 3 * ff);
    uint64_t head = (uint64_t)m->n_vocab * n_embd;
    close_model(&o);

    tg_work quantised = work_of(path, plain, 10, 5), floats = work_of(path, precise, 10, 5);
    assert_int_equal(quantised.int8_ops, 2 * (5 * layers + head)); /* the logits of one row alone */
    assert_int_equal(quantised.f32_flops, per_key * (11 + 12 + 13 + 14 + 15));
    assert_int_equal(floats.int8_ops, 0);
    assert_int_equal(floats.f32_flops, quantised.int8_ops + quantised.f32_flops);
}

/* ---- the machine -------------------------------------------------------------------------------- */

static void machine(void **state)
{
    (void)state;
    tg_machine m;
    tg_error err;
    static const int bad[] = {-1, 513};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tg_machine_measure(bad[i], &m, &err), TG_E_USAGE);
        assert_non_null(strstr(err.message, "threads"));
    }
    assert_int_equal(tg_machine_measure(2, &m, &err), TG_OK);
    assert_int_equal(m.n_threads, 2);
    const double rates[] = {m.read_bytes_per_s, m.f32_flops, m.int8_ops};
    for (int i = 0; i < 3; i++)
        assert_true(isfinite(rates[i]) && rates[i] > 0);
    assert_int_equal(tg_machine_measure(0, &m, &err), TG_OK);
    assert_true(m.n_threads >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_read_once),    cmocka_unit_test(kv_grows_by_groups),
        cmocka_unit_test(sequences_are_read_apart), cmocka_unit_test(windows),
        cmocka_unit_test(work),                     cmocka_unit_test(machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
