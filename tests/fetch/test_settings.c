/* Tests of settings.c: the order of variables, and their spellings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fetch/settings.h"
#include "support/scratch.h"

static tg_arena *arena;
static tg_settings s;

static tg_status read_settings(void)
{
    return tg_settings_read(&s, false, arena, NULL);
}

static int fresh(void **state)
{
    (void)state;
    static const char *const names[] = {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "HF_TOKEN",
                                        "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_ENDPOINT", "HF_HUB_OFFLINE",
                                        "TRANSFORMERS_OFFLINE", "HF_HUB_DISABLE_IMPLICIT_TOKEN"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    setenv("HOME", scratch_path("home"), 1);
    arena = tg_arena_create(NULL);
    return 0;
}

static int end(void **state)
{
    (void)state;
    tg_arena_free(arena);
    return 0;
}

static void caches(void **state)
{
    (void)state;
    /* Each is stronger than those before it. */
    static const struct {
        const char *name, *value, *hub, *urls;
    } rows[] = {
        {"X", "", "home/.cache/huggingface/hub", "home/.cache/tinygpt"},
        {"XDG_CACHE_HOME", "/xdg", "/xdg/huggingface/hub", "/xdg/tinygpt"},
        {"HF_HOME", "/hf", "/hf/hub", "/xdg/tinygpt"},
        {"HUGGINGFACE_HUB_CACHE", "/old", "/old", "/xdg/tinygpt"},
        {"HF_HUB_CACHE", "/new", "/new", "/xdg/tinygpt"},
        {"HF_HUB_CACHE", "~/c", "home/c", "/xdg/tinygpt"},
        {"HF_HUB_CACHE", "$HF_HOME/${X_Y}z/$", "/hf/${X_Y}z/$", "/xdg/tinygpt"},
        {"HF_HUB_CACHE", "", "/old", "/xdg/tinygpt"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        setenv(rows[i].name, rows[i].value, 1);
        assert_int_equal(read_settings(), TG_OK);
        const char *want[] = {rows[i].hub, rows[i].urls}, *found[] = {s.hub_cache, s.url_cache};
        for (int k = 0; k < 2; k++)
            assert_string_equal(found[k], want[k][0] == '/' ? want[k] : scratch_path(want[k]));
    }
}

static void tokens(void **state)
{
    (void)state;
    assert_int_equal(read_settings(), TG_OK);
    assert_null(s.token);
    scratch_mkdir("home");
    scratch_mkdir("home/.cache");
    scratch_mkdir("home/.cache/huggingface");
    scratch_text("home/.cache/huggingface/token", "\n  hf_home\r\n");
    scratch_text("path", "hf_path");
    static const struct {
        const char *name, *value, *token;
    } rows[] = {
        {"X", "", "hf_home"},
        {"HF_TOKEN_PATH", "path", "hf_path"},
        {"HUGGING_FACE_HUB_TOKEN", "hf_old", "hf_old"},
        {"HF_TOKEN", " hf_new\n", "hf_new"},
        {"HF_TOKEN", " \n", "hf_path"},
        {"HF_HUB_DISABLE_IMPLICIT_TOKEN", "on", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        setenv(rows[i].name, strcmp(rows[i].value, "path") == 0 ? scratch_path("path") : rows[i].value, 1);
        assert_int_equal(read_settings(), TG_OK);
        if (rows[i].token)
            assert_string_equal(s.token, rows[i].token);
        else
            assert_null(s.token);
    }
    static const char *const bad[] = {"hf_a b", "hf_a\tb", "hf_a\nb", "hf_\x01", "hf_\x7f", "hf_\xc3\xa4"};
    unsetenv("HF_HUB_DISABLE_IMPLICIT_TOKEN");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        setenv("HF_TOKEN", bad[i], 1);
        assert_int_equal(read_settings(), TG_E_USAGE);
        tg_error err;
        assert_int_equal(tg_settings_read(&s, false, arena, &err), TG_E_USAGE);
        assert_null(strstr(err.message, bad[i])); /* never shown */
        assert_int_equal(tg_settings_read(&s, true, arena, NULL), TG_OK); /* nor needed */
    }
    unsetenv("HF_TOKEN");
    unsetenv("HUGGING_FACE_HUB_TOKEN");
    setenv("HF_TOKEN_PATH", scratch_folder, 1);
    assert_int_equal(read_settings(), TG_E_IO);
}

static void offline(void **state)
{
    (void)state;
    static const struct {
        const char *hub, *transformers;
        bool offline;
    } rows[] = {{"1", "", true},   {"ON", "", true},  {"yes", "", true}, {"True", "", true}, {"0", "1", false},
                {"", "1", true},   {"no", "", false}, {"", "", false},   {"2", "", false},   {"auto", "", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        setenv("HF_HUB_OFFLINE", rows[i].hub, 1);
        setenv("TRANSFORMERS_OFFLINE", rows[i].transformers, 1);
        assert_int_equal(read_settings(), TG_OK);
        assert_int_equal(s.offline, rows[i].offline);
    }
}

static void endpoints(void **state)
{
    (void)state;
    assert_int_equal(read_settings(), TG_OK);
    assert_string_equal(s.endpoint, "https://huggingface.co");
    setenv("HF_ENDPOINT", "http://mirror:80/hub//", 1);
    assert_int_equal(read_settings(), TG_OK);
    assert_string_equal(s.endpoint, "http://mirror:80/hub");
    static const char *const bad[] = {"mirror", "ftp://x", "https://", "https:///x", "http://me:pw@x", "http://x?y", "http://x#y",
                                      "http://x y", "http://\xc3\xa4"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        setenv("HF_ENDPOINT", bad[i], 1);
        assert_int_equal(read_settings(), TG_E_USAGE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(caches, fresh, end),  cmocka_unit_test_setup_teardown(tokens, fresh, end),
        cmocka_unit_test_setup_teardown(offline, fresh, end), cmocka_unit_test_setup_teardown(endpoints, fresh, end),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
