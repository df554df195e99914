/* Tests of names.c: what names mean, and which are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "fetch/fetch.h"
#include "fetch/names.h"

#define HUB "https://huggingface.co"

static void meanings(void **state)
{
    (void)state;
    static const struct {
        const char *what, *repo, *file, *quant, *revision;
    } rows[] = {
        {"o/n", "o/n", NULL, NULL, NULL},
        {"hf:o/n", "o/n", NULL, NULL, NULL},
        {"hf://o/n", "o/n", NULL, NULL, NULL},
        {"hf.co/o/n:Q8_0", "o/n", NULL, "Q8_0", NULL},
        {"o/n:q4_k_m", "o/n", NULL, "q4_k_m", NULL},
        {"o/n:UD-Q4_K_XL", "o/n", NULL, "UD-Q4_K_XL", NULL},
        {"o/n:bf16", "o/n", NULL, "bf16", NULL},
        {"o/n:mxfp4", "o/n", NULL, "mxfp4", NULL},
        {"o/n:Q4_K_M.gguf", "o/n", "Q4_K_M.gguf", NULL, NULL},
        {"o/n:q/m.gguf", "o/n", "q/m.gguf", NULL, NULL},
        {"o/n:latest", "o/n", "latest", NULL, NULL},
        {"o/n:ab:c", "o/n", "ab:c", NULL, NULL},
        {"legacy", "legacy", NULL, NULL, NULL},
        {"gpt2", "openai-community/gpt2", NULL, NULL, NULL},
        {"hf:gpt2", "openai-community/gpt2", NULL, NULL, NULL},
        {"gpt2:config.json", "openai-community/gpt2", "config.json", NULL, NULL},
        {"qwen3-0.6b", "Qwen/Qwen3-0.6B-GGUF", "Qwen3-0.6B-Q8_0.gguf", NULL, NULL},
        {"tinyllama:Q2_K", "TheBloke/TinyLlama-1.1B-Chat-v1.0-GGUF", NULL, "Q2_K", NULL},
        {HUB "/o/n", "o/n", NULL, NULL, NULL},
        {HUB "/o/n/", "o/n", NULL, NULL, NULL},
        {HUB "/gpt2", "gpt2", NULL, NULL, NULL},
        {HUB "/gpt2/blob/main/config.json", "gpt2", "config.json", NULL, "main"},
        {"https://hf.co/o/n/tree/v1", "o/n", NULL, NULL, "v1"},
        {HUB "/o/n/resolve/v1/a%20b/tree/m.gguf?download=true#x", "o/n", "a b/tree/m.gguf", NULL, "v1"},
        {"http://mirror:8080/hub/o/n/raw/main/x.json", "o/n", "x.json", NULL, "main"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tg_arena *arena = tg_arena_create(NULL);
        tg_error err;
        tg_name name;
        const char *endpoint = strstr(rows[i].what, "mirror") ? "http://mirror:8080/hub" : HUB;
        assert_int_equal(tg_name_parse(&name, rows[i].what, endpoint, arena, &err), TG_OK);
        assert_null(name.url);
        assert_string_equal(name.repo, rows[i].repo);
        const char *found[] = {name.file, name.quant, name.revision},
                   *want[] = {rows[i].file, rows[i].quant, rows[i].revision};
        for (int k = 0; k < 3; k++) {
            assert_int_equal(found[k] == NULL, want[k] == NULL);
            if (want[k])
                assert_string_equal(found[k], want[k]);
        }
        tg_arena_free(arena);
    }
}

static void urls(void **state)
{
    (void)state;
    static const char *const whats[] = {"http://h/x.gguf", "https://h:1/a/b?c=d", HUB "/datasets/o/n/resolve/main/x",
                                        HUB "/o/n/discussions/1", "https://huggingface.co.evil.org/o/n"};
    for (size_t i = 0; i < sizeof whats / sizeof *whats; i++) {
        tg_arena *arena = tg_arena_create(NULL);
        tg_name name;
        assert_int_equal(tg_name_parse(&name, whats[i], HUB, arena, NULL), TG_OK);
        assert_string_equal(name.url, whats[i]);
        tg_arena_free(arena);
    }
}

/* What huggingface_hub's validate_repo_id says of these. */
static void repositories(void **state)
{
    (void)state;
    static const char *const good[] = {"foo", "foo/bar", "123", "Foo-BAR_foo.bar123", "_x/y_", "a/b.c"};
    static const char *const bad[] = {"", "/", "datasets/foo/bar", ".repo_id", "foo--bar", "foo.git", "foo..bar", "foo/",
                                      "/foo", "-foo", "foo-", "foo/.bar", "foo/bar.", "foo bar", "foo/b\xc3\xa4r", "a//b",
                                      "foo\n", "foo/%2e"};
    char name[200];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(tg_check_repo(good[i], NULL), TG_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(tg_check_repo(bad[i], NULL), TG_E_USAGE);
    for (int n = 96; n <= 97; n++) {
        memset(name, 'x', sizeof name);
        name[n] = '/';
        name[n + 2] = 0;
        assert_int_equal(tg_check_repo(name, NULL), n == 96 ? TG_OK : TG_E_USAGE);
        name[n] = 0;
        assert_int_equal(tg_check_repo(name, NULL), n == 96 ? TG_OK : TG_E_USAGE);
    }
}

static void revisions(void **state)
{
    (void)state;
    static const char *const good[] = {"main", "v1.0", "gguf-v2", "0123456789abcdef0123456789abcdef01234567", "a+b", "x_1"};
    static const char *const bad[] = {"", "a/b", "..", "a..b", ".x", "x.", "-x", "x.lock", "a b", "a\tb", "a%2fb", "a~1",
                                      "a^", "a:b", "a?b", "a*", "a[b", "a\\b", "a#b", "\xc3\xa4", "con"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(tg_check_revision(good[i], NULL), TG_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(tg_check_revision(bad[i], NULL), TG_E_USAGE);
}

static void paths(void **state)
{
    (void)state;
    static const char *const good[] = {"a", "a/b/c.gguf", ".gitattributes", "..a", "a..", "a b", "\xc3\xa4/\xe5\xad\x97",
                                       "console", "com0", "com10.x", "nulls", "ab:c"};
    static const char *const bad[] = {"", "/a", "a/", "a//b", ".", "..", "./a", "a/.", "a/..", "a/../b", "a\\b", "C:a", "c:/a",
                                      "a\nb", "a\x7f", "\x01", "nul", "NUL.gguf", "a/Con/b", "aux.tar.gz", "com1", "lpt9.x"};
    char name[2000];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_null(tg_bad_path(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_non_null(tg_bad_path(bad[i]));
    for (int n = 255; n <= 256; n++) {
        memset(name, 'x', sizeof name);
        memcpy(name + n, "/y", 3);
        assert_int_equal(tg_bad_path(name) == NULL, n == 255);
    }
    for (int n = 1024; n <= 1025; n++) {
        for (int i = 0; i < n; i++)
            name[i] = i % 2 && i < n - 1 ? '/' : 'x';
        name[n] = 0;
        assert_int_equal(tg_bad_path(name) == NULL, n == 1024);
    }
}

/* Names of real files. */
static void quantisations(void **state)
{
    (void)state;
    static const struct {
        const char *path, *quant;
    } rows[] = {
        {"SmolLM2-135M-Instruct-Q4_K_M.gguf", "Q4_K_M"},
        {"smollm2-360m-instruct-q8_0.gguf", "q8_0"},
        {"tinyllama-1.1b-chat-v1.0.Q4_K_M.gguf", "Q4_K_M"},
        {"Phi-3-mini-4k-instruct-q4.gguf", "q4"},
        {"Phi-3-mini-4k-instruct-fp16.gguf", "fp16"},
        {"qwen2.5-7b-instruct-q4_k_m-00001-of-00002.gguf", "q4_k_m"},
        {"Llama-3.2-1B-Instruct-Q4_0_4_8.gguf", "Q4_0_4_8"},
        {"Meta-Llama-3.1-8B-Instruct-Q6_K_L.gguf", "Q6_K_L"},
        {"Qwen3-4B-UD-Q4_K_XL.gguf", "UD-Q4_K_XL"},
        {"UD-IQ1_S/DeepSeek-R1-UD-IQ1_S-00001-of-00003.gguf", "UD-IQ1_S"},
        {"BF16/gemma-3-270m-it-BF16.gguf", "BF16"},
        {"Q8_0/model-00001-of-00002.gguf", "Q8_0"},
        {"gpt-oss-20b-mxfp4.gguf", "mxfp4"},
        {"model_Q5_K_S.gguf", "Q5_K_S"},
        {"mistral-7b-IQ4_NL.gguf", "IQ4_NL"},
        {"m-f16-Q4_K_M.gguf", "Q4_K_M"},
        {"Qwen3-0.6B.gguf", NULL},
        {"gemma-2b.gguf", NULL},
        {"Q-Star-7B.gguf", NULL},
        {"Q4_model.gguf", NULL},
        {"tales.gguf", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *at = NULL;
        size_t n = tg_quant_in(rows[i].path, &at);
        assert_int_equal(n, rows[i].quant ? strlen(rows[i].quant) : 0);
        if (n)
            assert_memory_equal(at, rows[i].quant, n);
    }
    int no, of;
    assert_int_equal(tg_split_part("a/b-00002-of-00013.gguf", &no, &of), 3);
    assert_int_equal(no, 2);
    assert_int_equal(of, 13);
    assert_int_equal(tg_split_part("-00002-of-00013.gguf", &no, &of), 0);
    assert_int_equal(tg_split_part("b-0002-of-0013.gguf", &no, &of), 0);
}

/* Every row of the catalogue is of the forms that are taken, and is found by its name. */
static void catalogue(void **state)
{
    (void)state;
    tg_catalog_entry e;
    size_t n = 0;
    for (; tg_catalog_get(n, &e); n++) {
        tg_arena *arena = tg_arena_create(NULL);
        tg_name name;
        const char *at;
        assert_int_equal(tg_check_repo(e.repo, NULL), TG_OK);
        assert_null(strchr(e.name, '/'));
        assert_true(e.size > 1000000 && *e.license);
        assert_true(!e.file || (!tg_bad_path(e.file) && tg_quant_in(e.file, &at)));
        assert_int_equal(tg_name_parse(&name, e.name, HUB, arena, NULL), TG_OK);
        assert_string_equal(name.repo, e.repo);
        tg_arena_free(arena);
    }
    assert_true(n >= 25);
}

static void percent(void **state)
{
    (void)state;
    tg_arena *arena = tg_arena_create(NULL);
    assert_string_equal(tg_percent_encode("a b/c%d?e#\xc3\xa4-._~", arena, NULL), "a%20b/c%25d%3Fe%23%C3%A4-._~");
    tg_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(meanings),      cmocka_unit_test(urls),      cmocka_unit_test(repositories),
        cmocka_unit_test(revisions),     cmocka_unit_test(paths),     cmocka_unit_test(quantisations),
        cmocka_unit_test(catalogue),     cmocka_unit_test(percent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
