/* Tests of tokenizer.c: hard texts against the reference, and rows R06 to R11 and R17. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "support/clock.h"
#include "support/rand.h"
#include "support/scratch.h"
#include "support/tokenizers.h"

/* ---- the reference's cases (tools/make-token-cases.py) ----------------------------------------
 */

static size_t unhex(const char *hex, uint8_t *out)
{
    size_t n = strlen(hex) / 2;
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)strtoul((char[]){hex[2 * i], hex[2 * i + 1], 0}, NULL, 16);
    return n;
}

static size_t parse_ids(const char *text, int32_t *ids)
{
    size_t n = 0;
    for (char *end; *text; text = end)
        ids[n++] = (int32_t)strtol(text, &end, 10);
    return n;
}

static bool has_ids(const tg_tokenizer *t, const uint8_t *text, size_t n, unsigned flags,
                    const int32_t *wanted, size_t n_wanted)
{
    int32_t *got;
    size_t n_got;
    assert_int_equal(tg_tokenizer_encode(t, text, n, flags, &got, &n_got, NULL, NULL), TG_OK);
    bool same = n_got == n_wanted && (n_got == 0 || memcmp(got, wanted, n_got * sizeof *got) == 0);
    tg_free(got);
    return same;
}

static bool case_holds(const tg_tokenizer *t, const json_t *set, const char *hex, const char *ids)
{
    uint8_t text[256], back[1024];
    int32_t wanted[256];
    size_t n = unhex(hex, text), n_wanted = parse_ids(ids, wanted), k, n_back = 0;
    unsigned flags = (json_is_true(json_object_get(set, "special")) ? TG_TOK_SPECIAL : 0) |
                     (json_is_true(json_object_get(set, "around")) ? TG_TOK_BOS : 0);
    for (size_t i = 0; i < n_wanted; i++) {
        const char *bytes = tg_tokenizer_bytes(t, wanted[i], &k);
        memcpy(back + n_back, bytes, k);
        n_back += k;
    }
    tg_tokenizer_info info;
    tg_tokenizer_get_info(t, &info);
    k = info.strips_space && n_back && back[0] == ' ';
    return has_ids(t, text, n, flags, wanted, n_wanted) &&
           (!json_is_true(json_object_get(set, "round_trip")) ||
            (n_back == n && memcmp(back, text, n) == 0)) &&
           (!json_is_true(json_object_get(set, "stable")) ||
            has_ids(t, back + k, n_back - k, flags, wanted, n_wanted));
}

static void cases_of_the_reference(void **state)
{
    (void)state;
    json_t *sets = load_json(TOKEN_DATA "cases.json");
    size_t s, i, n_cases = 0, n_bad = 0;
    const json_t *set, *one;
    json_array_foreach(sets, s, set)
    {
        json_t *root = load_patched(json_string_value(json_object_get(set, "file")),
                                    json_object_get(set, "patch"));
        tg_tokenizer *t = tokenizer_of(root, 2000);
        tg_tokenizer_info info;
        tg_tokenizer_get_info(t, &info);
        assert_string_equal(info.pre, json_string_value(json_object_get(set, "name")));
        json_array_foreach(json_object_get(set, "cases"), i, one)
        {
            const char *hex = json_string_value(json_array_get(one, 0));
            n_cases++;
            if (case_holds(t, set, hex, json_string_value(json_array_get(one, 1))))
                continue;
            if (n_bad++ < 10)
                print_error("set %zu, case %zu: %s\n", s, i, hex);
        }
        tg_tokenizer_free(t);
    }
    assert_int_equal(n_bad, 0);
    assert_true(n_cases >= 2000);
    json_decref(sets);
}

/* ---- laws ---------------------------------------------------------------------------------- */

static tg_tokenizer *small_a(void)
{
    return tokenizer_of(load_patched("small-a.json", NULL), 1000);
}

/* The ids of the text stand for it again. */
static size_t round_trip(const tg_tokenizer *t, const uint8_t *text, size_t n)
{
    int32_t *ids;
    size_t n_ids, dropped, at = 0, k;
    assert_int_equal(tg_tokenizer_encode(t, text, n, 0, &ids, &n_ids, &dropped, NULL), TG_OK);
    assert_int_equal(dropped, 0);
    for (size_t i = 0; i < n_ids; i++) {
        const char *bytes = tg_tokenizer_bytes(t, ids[i], &k);
        assert_true(k <= n - at);
        assert_memory_equal(bytes, text + at, k);
        at += k;
    }
    assert_int_equal(at, n);
    tg_free(ids);
    return n_ids;
}

/* R06, R07, R08: any bytes, NUL, CRLF and byte-order marks among them. */
static void any_bytes_come_back(void **state)
{
    (void)state;
    tg_tokenizer *t = small_a();
    static const char words[] = "the miller \xc3\xa9\xff\n'd1";
    static const char odd[] = "a\0b\r\n\xef\xbb\xbf\xff\xc3\xa9 \xe4\xb8";
    round_trip(t, (const uint8_t *)odd, sizeof odd);
    uint8_t text[300];
    for (int k = 0; k < 3000; k++) {
        size_t n = (size_t)rand_int(0, 300);
        for (size_t i = 0; i < n; i++)
            text[i] = (uint8_t)(k % 2 ? rand_int(0, 255) : words[rand_int(0, sizeof words - 2)]);
        round_trip(t, text, n);
    }
    tg_tokenizer_free(t);
}

/* R11: the runs that are slow elsewhere, 1 MiB each. */
static void pathological_texts(void **state)
{
    (void)state;
    enum { N = 1 << 20 };
    static const char *const units[] = {"a",    " ",  "\n", "\xe5\xad\x97", "1", "!",
                                        "\xff", " a", "ab", "\xcc\x81",     "'"};
    uint8_t *text = malloc(N);
    assert_non_null(text);
    tg_tokenizer *t = small_a(), *q, *c = tokenizer_of(load_patched("small-c.json", NULL), 1000);
    json_t *patch = json_pack("{s:{s:s}}", "normalizer", "type", "NFC");
    q = tokenizer_of(load_patched("small-b.json", patch), 1000);
    json_decref(patch);
    double start = clock_seconds();
    for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
        int32_t *ids;
        size_t n_ids;
        for (size_t i = 0; i < N; i++)
            text[i] = (uint8_t)units[u][i % strlen(units[u])];
        round_trip(t, text, N);
        assert_int_equal(tg_tokenizer_encode(q, text, N, TG_TOK_SPECIAL, &ids, &n_ids, NULL, NULL),
                         TG_OK);
        tg_free(ids);
        assert_int_equal(tg_tokenizer_encode(c, text, N, 0, &ids, &n_ids, NULL, NULL), TG_OK);
        tg_free(ids);
    }
    assert_true(clock_seconds() - start < 30);
    tg_tokenizer_free(t);
    tg_tokenizer_free(q);
    tg_tokenizer_free(c);
    free(text);
}

/* The same under a stack of 256 KiB: encoding does not recurse. */
static void *small_stack(void *arg)
{
    pathological_texts(arg);
    return NULL;
}

static void pathological_texts_on_a_small_stack(void **state)
{
    pthread_attr_t attr;
    pthread_t thread;
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, 256 << 10), 0);
    assert_int_equal(pthread_create(&thread, &attr, small_stack, *state), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attr);
}

/* R10. The text is not looked at. */
static void r10_too_large(void **state)
{
    (void)state;
    tg_tokenizer *t = small_a();
    tg_error err;
    int32_t *ids = (int32_t *)1;
    size_t n_ids = 1;
    tg_status status =
        tg_tokenizer_encode(t, "", (size_t)TG_MAX_TEXT_BYTES + 1, 0, &ids, &n_ids, NULL, &err);
    assert_int_equal(status, TG_E_USAGE);
    assert_string_equal(err.message, "text too large (found 1073741825 bytes, allowed 1073741824)");
    assert_null(ids);
    assert_int_equal(n_ids, 0);
    assert_int_equal(tg_tokenizer_encode(t, "", SIZE_MAX, 0, &ids, &n_ids, NULL, NULL), TG_E_USAGE);
    tg_tokenizer_free(t);
}

static void r17_special_text(void **state)
{
    (void)state;
    tg_tokenizer *t = small_a();
    static const char text[] = "<|endoftext|>";
    int32_t *ids;
    size_t n;
    assert_int_equal(tg_tokenizer_encode(t, text, strlen(text), 0, &ids, &n, NULL, NULL), TG_OK);
    assert_true(n > 1);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(tg_tokenizer_kind(t, ids[i]), TG_TOKEN_NORMAL);
    tg_free(ids);
    expect_ids(t, text, strlen(text), TG_TOK_SPECIAL, (int32_t[]){0, -1});
    assert_int_equal(tg_tokenizer_kind(t, 0), TG_TOKEN_SPECIAL);
    assert_memory_equal(tg_tokenizer_bytes(t, 0, &n), text, 13);
    assert_int_equal(n, 13);
    tg_tokenizer_free(t);
}

/* U07: behind a special token of SentencePiece's another piece begins, with a space of its own; the ids are the
 * reference's. */
static void u07_after_a_special_token(void **state)
{
    (void)state;
    tg_tokenizer *t = tokenizer_of(load_patched("small-c.json", NULL), 2000);
    expect_ids(t, "</s> hello", 10, TG_TOK_SPECIAL, (int32_t[]){2, 340, 628, 450, 283, -1});
    expect_ids(t, "</s>hello", 9, TG_TOK_SPECIAL, (int32_t[]){2, 628, 450, 283, -1});
    expect_ids(t, "</s> hello", 10, 0, (int32_t[]){340, 63, 265, 286, 65, 628, 450, 283, -1});
    tg_tokenizer_free(t);
}

/* ---- threads ------------------------------------------------------------------------------- */

typedef struct job {
    const tg_tokenizer *t;
    const char *text;
    const int32_t *ids;
    size_t n_ids;
    bool good;
} job;

static void *encode_often(void *arg)
{
    job *j = arg;
    j->good = true;
    for (int k = 0; k < 200; k++) {
        int32_t *ids;
        size_t n;
        tg_status status =
            tg_tokenizer_encode(j->t, j->text, strlen(j->text), 0, &ids, &n, NULL, NULL);
        j->good &= status == TG_OK && n == j->n_ids && memcmp(ids, j->ids, n * sizeof *ids) == 0;
        tg_free(ids);
    }
    return NULL;
}

static void one_tokenizer_many_threads(void **state)
{
    (void)state;
    tg_tokenizer *t = small_a();
    static const char text[] =
        "The miller had three cats; in 1987 they'd sleep where they liked. \xe5\xad\x97";
    int32_t *ids;
    size_t n;
    assert_int_equal(tg_tokenizer_encode(t, text, strlen(text), 0, &ids, &n, NULL, NULL), TG_OK);
    pthread_t threads[4];
    job jobs[4];
    for (int i = 0; i < 4; i++) {
        jobs[i] = (job){.t = t, .text = text, .ids = ids, .n_ids = n};
        assert_int_equal(pthread_create(&threads[i], NULL, encode_often, &jobs[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(jobs[i].good);
    }
    tg_free(ids);
    tg_tokenizer_free(t);
}

/* ---- GPT-2's vocabulary, where someone has put it
 * ------------------------------------------------ */

static void gpt2_vocabulary(void **state)
{
    (void)state;
    const char *folder = getenv("TINYGPT_GPT2_VOCAB");
    char path[PATH_MAX];
    if (!folder || !realpath(folder, path)) {
        print_message(
            "TINYGPT_GPT2_VOCAB names no folder with GPT-2's vocab.json and merges.txt\n");
        skip();
    }
    static const char *const names[] = {"vocab.json", "merges.txt"};
    char from[PATH_MAX + 16];
    for (int i = 0; i < 2; i++) {
        snprintf(from, sizeof from, "%s/%s", path, names[i]);
        assert_int_equal(symlink(from, scratch_path(names[i])), 0);
    }
    scratch_text("config.json", "{\"model_type\": \"gpt2\"}");
    scratch_write("model.safetensors", "\2\0\0\0\0\0\0\0{}", 10);
    tg_container *c;
    tg_tokenizer *t;
    tg_error err;
    assert_int_equal(tg_container_open(&c, scratch_path("."), false, &err), TG_OK);
    assert_int_equal(tg_tokenizer_load(&t, c, 50257, &err), TG_OK);
    static const char text[] =
        "Hello world, it's 1234! <|endoftext|>\n\n  naive caf\xc3\xa9 \xe4\xbd\xa0\xe5\xa5\xbd";
    expect_ids(t, text, strlen(text), TG_TOK_SPECIAL,
               (int32_t[]){15496, 995, 11,    340,   338, 1105,  2682, 0,     220, 50256,
                           628,   220, 24354, 40304, 220, 19526, 254,  25001, 121, -1});
    assert_int_equal(round_trip(t, (const uint8_t *)text, strlen(text)), 24);
    tg_tokenizer_info info;
    tg_tokenizer_get_info(t, &info);
    assert_int_equal(info.n_tokens, 50257);
    assert_int_equal(info.n_merges, 50000);
    assert_true(tg_tokenizer_kind(t, 50256) == TG_TOKEN_SPECIAL);
    tg_tokenizer_free(t);
    tg_container_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cases_of_the_reference),
        cmocka_unit_test(any_bytes_come_back),
        cmocka_unit_test(pathological_texts),
        cmocka_unit_test(pathological_texts_on_a_small_stack),
        cmocka_unit_test(r10_too_large),
        cmocka_unit_test(r17_special_text),
        cmocka_unit_test(u07_after_a_special_token),
        cmocka_unit_test(one_tokenizer_many_threads),
        cmocka_unit_test(gpt2_vocabulary),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
