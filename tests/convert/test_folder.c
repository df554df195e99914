/* Tests of the way from a Hugging Face folder to a GGUF: the reference's logits, or one line that says what a GGUF
 * cannot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "support/npy.h"
#include "support/scratch.h"
#include "tinygpt/tinygpt.h"

/* Golden models that are no GGUFs, and why. The others of cases.txt become one, or are told to be beyond it. */
static const struct {
    const char *folder, *why;
} refusals[] = {
    {"gpt2-erf", "activation"},
    {"gpt2-layer-scale", "scale of attention scores by layer"},
    {"gpt2-unscaled", "scale of attention scores"},
    {"gpt_neo-", "an architecture that GGUF does not have (found gpt_neo)"},
    {"gptj-", "an architecture that GGUF does not have (found gptj)"},
    {"opt-", "an architecture that GGUF does not have (found opt)"},
    {"gpt_neox-sequential", "activation"},
    {"gpt_oss-", "a folder of this architecture cannot become a GGUF here (found gpt_oss)"},
    {"gemma2-", "scale of attention scores"},
    {"gemma3-old", "scale of attention scores"},
    {"gemma3-new", "kinds of layers"},
    {"llama-dynamic", "rotation"},
    {"llama-longrope", "rotation"},
    {"qwen2-window", "window of attention"},
    {"qwen2-yarn-mscale", "rotation"},
    {"qwen3-window", "window of attention"},
    {"qwen3_moe-unnormed", "weights of experts among all"},
    {"smollm3-window", "window of attention"},
};

static const char *refusal_of(const char *folder)
{
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        if (strncmp(folder, refusals[i].folder, strlen(refusals[i].folder)) == 0)
            return refusals[i].why;
    return NULL;
}

static const char *golden_path(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "tests/golden/%.200s", name);
    return path;
}

/* Of the last row: the largest difference, in units of max(1, largest |logit|). */
typedef struct last_row {
    const npy *wanted;
    double distance;
} last_row;

static bool compare(void *arg, int row, const float *logits, int n_vocab)
{
    last_row *r = arg;
    (void)row;
    assert_int_equal(n_vocab, r->wanted->n_cols);
    const float *wanted = (const float *)r->wanted->data + (size_t)(r->wanted->n_rows - 1) * (size_t)n_vocab;
    double largest = 1, worst = 0;
    for (int i = 0; i < n_vocab; i++) {
        double d = fabs((double)wanted[i] - (double)logits[i]);
        worst = d <= worst ? worst : d; /* a NaN is kept */
        largest = fmax(largest, fabs((double)wanted[i]));
    }
    r->distance = worst / largest;
    return true;
}

static double distance(const char *path, const char *ids_file, const char *logits_file)
{
    npy ids = npy_read(golden_path(ids_file), "<i4"), logits = npy_read(golden_path(logits_file), "<f4");
    tg_error err = {0};
    tg_model *model;
    tg_session *session;
    last_row r = {.wanted = &logits, .distance = INFINITY};
    if (tg_model_load(&model, path, 0, &err) != TG_OK)
        fail_msg("%s", err.message);
    const tg_session_params params = {.n_threads = 1, .n_ctx = ids.n_rows, .precise = true};
    const tg_batch batch = {.n = ids.n_rows, .id = ids.data};
    if (tg_session_create(&session, model, &params, &err) != TG_OK ||
        tg_eval(session, &batch, compare, &r, &err) != TG_OK)
        fail_msg("%s: %s", ids_file, err.message);
    tg_session_free(session);
    tg_model_free(model);
    free(ids.data);
    free(logits.data);
    return r.distance;
}

static void golden_models(void **state)
{
    (void)state;
    char name[64], ids[128], logits[128];
    int n_written = 0;
    FILE *f = fopen(golden_path("cases.txt"), "r");
    assert_non_null(f);
    while (fscanf(f, "%63s %127s %127s %*d %*s", name, ids, logits) == 3) {
        if (strncmp(name, "gguf/", 5) == 0)
            continue;
        tg_error err = {0};
        const tg_quantize_params params = {.type = "f32", .n_threads = 1};
        const char *why = refusal_of(name), *out = scratch_path("out.gguf");
        tg_status status = tg_quantize(golden_path(name), out, &params, NULL, &err);
        if (why && (status != TG_E_MODEL || !strstr(err.message, why)))
            fail_msg("%s should be refused for %s: %s", name, why, err.message);
        if (!why && status != TG_OK && !strstr(err.message, "cannot become a GGUF, which has no way to say"))
            fail_msg("%s: %s", name, err.message);
        assert_int_equal(access(out, F_OK) == 0, status == TG_OK);
        if (status != TG_OK)
            continue;
        n_written++;
        if (!(distance(out, ids, logits) <= 1e-4))
            fail_msg("%s: off by %g", name, distance(out, ids, logits));
        scratch_remove("out.gguf");
    }
    fclose(f);
    assert_true(n_written >= 40);
}

/* A text becomes the same tokens. */
static void tokenizers(void **state)
{
    (void)state;
    static const char *const folders[] = {"gpt2-tanh", "gpt2-long", "llama-plain", "llama-3"};
    static const char text[] = "The hen's 17 eggs, it's said, \xc3\xa4\xe2\x82\xac\n\n  and  \tmore<|endoftext|>";
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        tg_error err = {0};
        const tg_quantize_params params = {.type = "q8_0"};
        const char *path[] = {golden_path(folders[i]), scratch_path("out.gguf")};
        assert_int_equal(tg_quantize(path[0], path[1], &params, NULL, &err), TG_OK);
        int32_t *ids[2];
        size_t n[2];
        for (int k = 0; k < 2; k++) {
            tg_model *model;
            assert_int_equal(tg_model_load(&model, path[k], 0, &err), TG_OK);
            assert_int_equal(tg_tokenize(model, text, sizeof text - 1, TG_TOK_BOS | TG_TOK_SPECIAL, &ids[k], &n[k],
                                         NULL, &err), TG_OK);
            tg_model_free(model);
        }
        assert_int_equal(n[0], n[1]);
        assert_memory_equal(ids[0], ids[1], n[0] * sizeof *ids[0]);
        tg_free(ids[0]);
        tg_free(ids[1]);
        scratch_remove("out.gguf");
    }
}

static void incomplete_folder(void **state)
{
    (void)state;
    tg_error err = {0};
    const tg_quantize_params params = {.type = "f16"};
    scratch_mkdir("empty");
    assert_int_equal(tg_quantize(scratch_path("empty"), scratch_path("out.gguf"), &params, NULL, &err), TG_E_MODEL);
    assert_int_not_equal(access(scratch_path("out.gguf"), F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_models),
        cmocka_unit_test(tokenizers),
        cmocka_unit_test(incomplete_folder),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
