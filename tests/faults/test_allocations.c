/* Every allocation of a load, of texts and their tokens, of an evaluation, a generation, a saved session and a
 * quantisation fails in turn (R24 of the fault catalogue), through the public header. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>

#include "support/every_allocation.h"
#include "support/fnv.h"
#include "support/scratch.h"
#include "tinygpt/tinygpt.h"

#define TALES "models/tales.gguf"
#define SMALL "tests/golden/gguf/llama-wide.q8_0.gguf"
#define FLOATS "tests/golden/gguf/llama.f32.gguf"

static uint64_t add_text(uint64_t sum, const char *s)
{
    return s ? fnv_bytes(sum, (const uint8_t *)s, strlen(s)) : sum;
}

/* ---- loading ------------------------------------------------------------------------------------------ */

typedef struct source {
    const char *path;
    unsigned flags;
} source;

static uint64_t sum_of_model(const tg_model *m)
{
    uint64_t sum = FNV_START;
    tg_model_info info;
    tg_tokenizer_info tokens;
    tg_model_get_info(m, &info);
    tg_model_get_tokenizer(m, &tokens);
    sum = add_text(add_text(add_text(sum, info.architecture), info.name), info.unsupported);
    for (int i = 0; i < info.n_tensors; i++) {
        tg_tensor_info t;
        tg_model_get_tensor(m, i, &t);
        sum = fnv_add(add_text(add_text(sum, t.name), t.type), t.dim[0] ^ t.dim[1] << 32);
    }
    for (int32_t id = 0; id < tokens.n_tokens; id++) {
        size_t n;
        const char *bytes = tg_token_bytes(m, id, &n);
        sum = fnv_bytes(fnv_add(sum, tg_token_get_kind(m, id)), (const uint8_t *)bytes, n);
    }
    return add_text(fnv_add(sum, (uint64_t)info.n_params + (uint64_t)info.n_layer), tg_model_chat_template(m));
}

static tg_status load(void *arg, uint64_t *sum, tg_error *err)
{
    const source *from = arg;
    tg_model *m;
    tg_status status = tg_model_load(&m, from->path, from->flags, err);
    if (status == TG_OK)
        *sum = sum_of_model(m);
    else
        assert_null(m);
    tg_model_free(m);
    return status;
}

static void loads(void **state)
{
    static const source sources[] = {
        {SMALL, 0},
        {SMALL, TG_LOAD_NO_MMAP},
        {SMALL, TG_LOAD_INTERLEAVED},
        {SMALL, TG_LOAD_META_ONLY},
        {TALES, 0},
        {TALES, TG_LOAD_TOKENIZER},
        {"tests/golden/gguf/mixtral.f16.gguf", 0},
        {"tests/golden/gguf/gpt-oss-mxfp4.mxfp4_moe.gguf", 0},
        {"tests/golden/gguf/qwen3moe-q.q8_0.gguf", TG_LOAD_INTERLEAVED},
        {"tests/golden/llama-plain", 0},
        {"tests/golden/llama-plain", TG_LOAD_NO_MMAP},
        {"tests/golden/llama-shards", 0},
        {"tests/golden/gpt2-tanh", 0},
        {"tests/golden/gpt_neox-pythia", TG_LOAD_META_ONLY},
    };
    (void)state;
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        char name[128];
        source from = sources[i];
        snprintf(name, sizeof name, "load %s, flags %u", from.path, from.flags);
        every_allocation(name, load, &from);
    }
}

/* ---- what is there for all that follows ------------------------------------------------------------------ */

static tg_model *tales, *small, *floats;

static int setup(void **state)
{
    tg_error err;
    if (scratch_setup(state) || tg_model_load(&tales, TALES, 0, &err) || tg_model_load(&small, SMALL, 0, &err) ||
        tg_model_load(&floats, FLOATS, 0, &err))
        return -1;
    return 0;
}

static int teardown(void **state)
{
    tg_model_free(tales);
    tg_model_free(small);
    tg_model_free(floats);
    return scratch_teardown(state);
}

/* ---- texts ------------------------------------------------------------------------------------------------ */

static tg_status tokenize(void *arg, uint64_t *sum, tg_error *err)
{
    const char *text = arg;
    int32_t *ids;
    size_t n, n_dropped;
    tg_status status = tg_tokenize(tales, text, strlen(text), TG_TOK_BOS | TG_TOK_SPECIAL, &ids, &n, &n_dropped, err);
    *sum = FNV_START;
    for (size_t i = 0; i < n; i++)
        *sum = fnv_add(*sum, (uint64_t)ids[i]);
    tg_free(ids);
    return status;
}

static void texts(void **state)
{
    static char text[1 << 14];
    (void)state;
    for (size_t i = 0; i + 1 < sizeof text; i++)
        text[i] = "Once upon a time, \xc3\xa9\n<|endoftext|>"[i % 34];
    every_allocation("tokenize", tokenize, text);
    every_allocation("tokenize one word", tokenize, (char[]){"word"});
    char *word = text + sizeof text - 3001;
    memset(word, 'a', 3000);
    every_allocation("tokenize a long word", tokenize, word);
}

/* A bit of all that templates can say. */
static const char hard_template[] =
    "{%- macro put(m, n=2) %}{{ '<' ~ m.role ~ '>' }}{{ m['content'] | trim }}{% for i in range(n) %}{{ loop.index }},"
    "{% endfor %}{%- endmacro %}{% set ns = namespace(count=0, seen=[]) %}{% for m in messages %}{% set ns.count = ns.count + 1 %}"
    "{% if loop.first and m.role == 'system' %}{{ put(m) }}{% elif m.content is string %}{{ put(m, n=ns.count) }}"
    "{{ m | tojson }}{% set ns.seen = ns.seen + [m.role] %}{% else %}x{% endif %}{% endfor %}{{ ns.seen | join('-') }}"
    "{{ {'a': 1, 'b': [1, 2, 3]} | tojson }}{{ messages | map(attribute='role') | list | length }}"
    "{{ messages[-1]['content'].split(' ')[0] }}{{ messages[0].content | replace('e', 'EE') }}"
    "{{ messages | selectattr('role', 'equalto', 'user') | list | tojson }}{{ strftime_now('%d %b %Y') }}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";

static const tg_chat_message messages[] = {
    {"system", "Be brief and kind.", 18}, {"user", "Who are you, then?", 18}, {"assistant", "A teller of tales.", 18}, {"user", "And I?", 6}};

static tg_status render(void *arg, uint64_t *sum, tg_error *err)
{
    const tg_chat_params params = {.jinja = arg, .now = 1735822845};
    char *text;
    size_t n;
    tg_status status = tg_chat_text(tales, &params, messages, 4, &text, &n, err);
    *sum = fnv_bytes(FNV_START, (const uint8_t *)text, n);
    tg_free(text);
    return status;
}

static tg_status chat_tokens(void *arg, uint64_t *sum, tg_error *err)
{
    const tg_chat_params params = {.jinja = arg, .now = 1735822845};
    int32_t *ids;
    size_t n;
    tg_status status = tg_chat_tokens(tales, &params, messages, 4, &ids, &n, err);
    *sum = fnv_bytes(FNV_START, (const uint8_t *)ids, n * sizeof *ids);
    tg_free(ids);
    return status;
}

static void conversations(void **state)
{
    (void)state;
    every_allocation("render a template of all kinds", render, (void *)(uintptr_t)hard_template);
    const char *text, *name;
    for (int i = 0; (name = tg_chat_template(i, &text)); i++)
        if (strcmp(name, "chatml") == 0 || strcmp(name, "llama3") == 0 || getenv("FULL")) {
            every_allocation(name, render, (void *)(uintptr_t)text);
            every_allocation(name, chat_tokens, (void *)(uintptr_t)text);
        }
}

/* ---- evaluation ------------------------------------------------------------------------------------------- */

static const int32_t some_ids[] = {1, 5, 9, 2, 8, 30, 7, 7, 12, 4, 3, 11, 2, 1, 9, 30, 29, 14, 5, 6};
enum { N_IDS = sizeof some_ids / sizeof *some_ids };

static bool add_row(void *arg, int row, const float *logits, int n_vocab)
{
    uint64_t *sum = arg;
    *sum = fnv_bytes(fnv_add(*sum, (uint64_t)row), (const uint8_t *)logits, (size_t)n_vocab * sizeof *logits);
    return true;
}

static tg_status evaluate(void *arg, uint64_t *sum, tg_error *err)
{
    const tg_session_params *params = arg;
    const tg_batch batch = {.n = N_IDS, .id = some_ids};
    tg_session *s;
    int fork = -1;
    *sum = FNV_START;
    tg_status status = tg_session_create(&s, params->no_blas ? small : floats, params, err);
    if (status == TG_OK)
        status = tg_eval(s, &batch, add_row, sum, err);
    if (status == TG_OK)
        status = tg_seq_fork(s, 0, &fork, err);
    if (status == TG_OK)
        status = tg_seq_truncate(s, fork, 7, err);
    if (status == TG_OK)
        status = tg_eval(s, &(tg_batch){.n = 3, .id = some_ids, .seq = (int32_t[]){0, fork, fork}}, add_row, sum, err);
    if (status == TG_OK)
        tg_seq_free(s, fork);
    tg_session_free(s);
    return status;
}

static tg_status sample(void *arg, uint64_t *sum, tg_error *err)
{
    static float logits[1 << 16];
    const tg_logit_bias bias[] = {{3, 1.0f}, {4, -1.0f}};
    const tg_sampling p = {.temp = 0.9f, .top_k = 40, .top_p = 0.9f, .typical = 0.9f, .last_n = -1, .repeat = 1.1f, .seed = 7,
                           .bias = bias, .n_bias = 2};
    tg_model_info info;
    tg_sampler *s;
    (void)arg;
    tg_model_get_info(tales, &info);
    for (int i = 0; i < info.n_vocab; i++)
        logits[i] = (float)(i * 37 % 101) / 20.0f;
    *sum = FNV_START;
    tg_status status = tg_sampler_create(&s, tales, &p, err);
    for (int i = 0; status == TG_OK && i < 20; i++)
        *sum = fnv_add(*sum, (uint64_t)tg_sampler_draw(s, logits, info.n_vocab));
    tg_sampler_free(s);
    return status;
}

static void evaluations(void **state)
{
    (void)state;
    every_allocation("evaluate", evaluate, &(tg_session_params){.n_threads = 1, .n_ctx = 512, .n_seq_max = 2, .no_blas = true});
    every_allocation("evaluate, q4", evaluate,
                     &(tg_session_params){.n_threads = 1, .n_ctx = 512, .n_seq_max = 2, .type_k = TG_KV_Q4, .type_v = TG_KV_Q4,
                                          .no_blas = true, .window = 8, .keep = 2});
    every_allocation("evaluate float weights", evaluate, &(tg_session_params){.n_threads = 1, .n_ctx = 128, .n_seq_max = 2});
    every_allocation("sample", sample, NULL);
}

/* ---- generation ------------------------------------------------------------------------------------------- */

static bool add_piece(void *arg, const tg_piece *piece)
{
    uint64_t *sum = arg;
    *sum = fnv_bytes(fnv_add(*sum, (uint64_t)piece->id), (const uint8_t *)piece->text, piece->n_bytes);
    for (int i = 0; i < piece->n_top; i++)
        *sum = fnv_add(*sum, (uint64_t)piece->top[i].id);
    *sum = fnv_add(*sum, piece->finish);
    return true;
}

/* A call that has failed for want of memory goes through when it is made again: nothing was lost by it. */
#define TWICE(status, call)                                                                                            \
    do {                                                                                                               \
        (status) = (call);                                                                                             \
        if ((status) != TG_OK && malloc_failed) {                                                                      \
            assert_true(tells_allocation(err));                                                                        \
            malloc_countdown = 0;                                                                                      \
            (status) = (call);                                                                                         \
        }                                                                                                              \
    } while (0)

static tg_status generate(void *arg, uint64_t *sum, tg_error *err)
{
    enum { N = 3 };
    const tg_stop_text stop[] = {{"forest", 6}, {"\n\n", 2}};
    static const char prompt[] = "Once upon a time there was a king, and once upon a time there was a";
    tg_session *s = NULL;
    tg_generator *g = NULL;
    uint64_t sums[N];
    int32_t *ids = NULL;
    size_t n;
    tg_status status;
    (void)arg;
    TWICE(status, tg_tokenize(tales, prompt, sizeof prompt - 1, TG_TOK_BOS, &ids, &n, NULL, err));
    if (status == TG_OK)
        TWICE(status, tg_session_create(&s, tales, &(tg_session_params){.n_threads = 1, .n_ctx = 512, .n_seq_max = N + 1}, err));
    if (status == TG_OK)
        TWICE(status, tg_generator_create(&g, tales, s, err));
    for (int i = 0; status == TG_OK && i < N; i++) {
        sums[i] = FNV_START;
        const tg_request r = {.ids = ids, .n_ids = n - (size_t)i, .sampling = {.temp = i ? 0.9f : 0, .top_k = 20, .last_n = 16, .repeat = 1.2f, .seed = 5},
                              .n_max = 6, .stop = stop, .n_stop = 2, .n_top = i == 2 ? 3 : -1, .n_draft = i ? 0 : 3,
                              .sink = add_piece, .arg = &sums[i]};
        TWICE(status, tg_generator_add(g, &r, err));
    }
    for (tg_generator_info info = {.n_active = 1}; status == TG_OK && info.n_active > 0;) {
        TWICE(status, tg_generator_step(g, err));
        tg_generator_get_info(g, &info);
    }
    *sum = FNV_START;
    for (int i = 0; status == TG_OK && i < N; i++)
        *sum = fnv_add(*sum, sums[i]);
    tg_generator_free(g);
    tg_session_free(s);
    tg_free(ids);
    return status;
}

static void generations(void **state)
{
    (void)state;
    every_allocation("generate", generate, NULL);
}

/* ---- sessions and files ----------------------------------------------------------------------------------- */

/* Sum of a file's bytes; of none, when it is not there. */
static uint64_t sum_of_file(const char *path)
{
    static uint8_t room[1 << 17];
    uint64_t sum = 0;
    malloc_exempt++;
    FILE *f = fopen(path, "rb");
    if (f) {
        size_t n = fread(room, 1, sizeof room, f);
        assert_true(n < sizeof room);
        sum = fnv_bytes(FNV_START, room, n);
        fclose(f);
    }
    malloc_exempt--;
    return sum;
}

/* How many files there are in the folder. */
static int files_in(const char *name)
{
    int n = -2;
    malloc_exempt++;
    DIR *d = opendir(scratch_path(name));
    while (d && readdir(d))
        n++;
    closedir(d);
    malloc_exempt--;
    return n;
}

typedef struct kept {
    tg_session *session;
    const char *path, *old;
} kept;

static tg_status save(void *arg, uint64_t *sum, tg_error *err)
{
    const kept *k = arg;
    const tg_saved_text text = {.ids = some_ids, .n_ids = N_IDS, .n_cached = N_IDS, .seed = 7, .note = "note", .n_note = 4};
    const uint64_t before = sum_of_file(k->path);
    tg_status status = tg_session_save(k->session, small, 0, &text, k->path, err);
    if (status != TG_OK)
        assert_true(sum_of_file(k->path) == before);
    assert_true(files_in("folder") == 2);
    *sum = sum_of_file(k->path);
    return status;
}

/* After a failure the sequence is empty; and then it takes the file all the same. */
static tg_status restore(void *arg, uint64_t *sum, tg_error *err)
{
    const kept *k = arg;
    const tg_batch batch = {.n = 4, .id = some_ids};
    tg_saved *saved;
    tg_status status = tg_saved_open(&saved, small, k->path, err);
    *sum = FNV_START;
    if (status == TG_OK)
        TWICE(status, tg_session_restore(k->session, 0, saved, err));
    if (status == TG_OK)
        status = tg_eval(k->session, &batch, add_row, sum, err);
    tg_saved_free(saved);
    malloc_exempt++;
    tg_seq_truncate(k->session, 0, 0, NULL);
    malloc_exempt--;
    return status;
}

static void sessions(void **state)
{
    char path[PATH_MAX];
    kept k = {.path = path};
    (void)state;
    scratch_mkdir("folder");
    snprintf(path, sizeof path, "%s", scratch_text("folder/other", "another file"));
    snprintf(path, sizeof path, "%s", scratch_text("folder/s", "an old file"));
    assert_int_equal(tg_session_create(&k.session, small, &(tg_session_params){.n_threads = 1, .n_ctx = 64}, NULL), TG_OK);
    assert_int_equal(tg_eval(k.session, &(tg_batch){.n = N_IDS, .id = some_ids}, NULL, NULL, NULL), TG_OK);
    every_allocation("save a session", save, &k);
    tg_seq_truncate(k.session, 0, 0, NULL);
    every_allocation("restore a session", restore, &k);
    tg_session_free(k.session);
}

static tg_status quantize(void *arg, uint64_t *sum, tg_error *err)
{
    const char *in = arg;
    char out[PATH_MAX];
    const tg_quantize_params params = {.type = "Q4_0", .requantize = true, .n_threads = 1};
    snprintf(out, sizeof out, "%s", scratch_path("out/q.gguf"));
    const uint64_t before = sum_of_file(out);
    tg_status status = tg_quantize(in, out, &params, NULL, err);
    if (status != TG_OK)
        assert_true(sum_of_file(out) == before);
    assert_true(files_in("out") == (sum_of_file(out) != 0));
    *sum = sum_of_file(out);
    return status;
}

static void quantisations(void **state)
{
    static const char *const in[] = {SMALL, FLOATS, "tests/golden/llama-plain", "tests/golden/llama-shards"};
    (void)state;
    for (size_t i = 0; i < sizeof in / sizeof *in; i++) {
        char name[128];
        scratch_mkdir("out");
        snprintf(name, sizeof name, "quantize %s", in[i]);
        every_allocation(name, quantize, (void *)(uintptr_t)in[i]);
        scratch_remove("out");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loads),       cmocka_unit_test(texts),    cmocka_unit_test(conversations), cmocka_unit_test(evaluations),
        cmocka_unit_test(generations), cmocka_unit_test(sessions), cmocka_unit_test(quantisations),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
