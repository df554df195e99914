/* Tests of cached.c, remove.c, hub_cache.c: laws of a cache that others fill, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <time.h>

#include "base/file.h"
#include "fetch/hub_cache.h"
#include "fetch/url_cache.h"
#include "support/clock.h"
#include "support/failing_malloc.h"
#include "support/scratch.h"

#define OLD  "1111111111111111111111111111111111111111"
#define NEW  "2222222222222222222222222222222222222222"
#define REPO "cache/hub/models--o--n"

static char below[PATH_MAX];

static int fresh(void **state)
{
    (void)state;
    scratch_remove("cache");
    static const char *const folders[] = {"cache", "cache/hub", REPO, REPO "/blobs", REPO "/refs", REPO "/snapshots",
                                          REPO "/snapshots/" OLD, REPO "/snapshots/" NEW};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        scratch_mkdir(folders[i]);
    setenv("XDG_CACHE_HOME", scratch_path("cache"), 1);
    setenv("HF_HUB_CACHE", scratch_path("cache/hub"), 1);
    unsetenv("HF_ENDPOINT");
    char *real = realpath(scratch_path("cache/hub"), NULL);
    snprintf(below, sizeof below, "%s/models--o--n/snapshots/", real);
    free(real);
    scratch_text(REPO "/refs/main", NEW);
    return 0;
}

/* A file of a snapshot, by a link to a blob of n bytes. */
static void put(const char *commit, const char *path, const char *blob, size_t n)
{
    char name[500], target[300], zeros[1000] = "";
    snprintf(name, sizeof name, REPO "/blobs/%s", blob);
    scratch_write(name, zeros, n);
    snprintf(target, sizeof target, "../../%sblobs/%s", strchr(path, '/') ? "../" : "", blob);
    snprintf(name, sizeof name, REPO "/snapshots/%s/%s", commit, path);
    if (symlink(target, scratch_path(name)) != 0)
        abort();
}

/* The names of all models, one a line. */
static const char *names(void)
{
    static char text[4096];
    tg_cached_model *m;
    size_t n, used = 0;
    assert_int_equal(tg_cache_list(&m, &n, NULL), TG_OK);
    text[0] = 0;
    for (size_t i = 0; i < n; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s\n", m[i].name);
    tg_cache_free(m, n);
    return text;
}

static bool here(const char *name)
{
    struct stat st;
    return lstat(scratch_path(name), &st) == 0;
}

static void found_at(const char *name, const char *path)
{
    tg_error err;
    char *found = tg_cache_find(name, &err), want[PATH_MAX + 300];
    snprintf(want, sizeof want, "%s%s", below, path ? path : "");
    if (path)
        assert_string_equal(found, want);
    else
        assert_null(found);
    assert_int_equal(err.status, TG_OK);
    tg_free(found);
}

static void models_by_their_names(void **state)
{
    (void)state;
    scratch_mkdir(REPO "/snapshots/" NEW "/q");
    put(NEW, "m-Q4_K_M.gguf", "a", 100);
    put(NEW, "q/b-Q8_0-00001-of-00002.gguf", "b", 30);
    put(NEW, "q/b-Q8_0-00002-of-00002.gguf", "c", 40);
    put(NEW, "mmproj-m-f16.gguf", "d", 10);
    put(NEW, "c-F16-00001-of-00002.gguf", "e", 10); /* half of it */
    put(OLD, "m-Q4_K_M.gguf", "f", 50);
    put(OLD, "x-Q2_K.gguf", "g", 20);
    assert_string_equal(names(), "o/n:m-Q4_K_M.gguf\no/n:q/b-Q8_0-00001-of-00002.gguf\no/n:x-Q2_K.gguf\n");
    tg_cached_model *m;
    size_t n;
    assert_int_equal(tg_cache_list(&m, &n, NULL), TG_OK);
    assert_int_equal(m[0].size, 100); /* that of refs/main */
    assert_string_equal(m[0].commit, NEW);
    assert_int_equal(m[1].size, 70);
    assert_true(time(NULL) - m[0].used_at < 1000);
    tg_cache_free(m, n);
    found_at("o/n", NEW "/m-Q4_K_M.gguf");
    found_at("hf:o/n:q8_0", NEW "/q/b-Q8_0-00001-of-00002.gguf");
    found_at("o/n:x-Q2_K.gguf", OLD "/x-Q2_K.gguf");
    found_at("o/n:c-F16-00001-of-00002.gguf", NULL);
    found_at("o/other", NULL);
    found_at("http://host/x.gguf", NULL);

    uint64_t freed;
    assert_int_equal(tg_cache_remove("o/n:Q4_K_M", &freed, NULL), TG_OK);
    assert_int_equal(freed, 150); /* in both snapshots */
    assert_string_equal(names(), "o/n:q/b-Q8_0-00001-of-00002.gguf\no/n:x-Q2_K.gguf\n");
    assert_int_equal(tg_cache_remove("o/n:q/b-Q8_0-00001-of-00002.gguf", &freed, NULL), TG_OK);
    assert_int_equal(freed, 70);
    assert_false(here(REPO "/snapshots/" NEW "/q"));
    assert_int_equal(tg_cache_remove("o/n:q/b-Q8_0-00001-of-00002.gguf", &freed, NULL), TG_E_IO);
    assert_int_equal(tg_cache_remove("o/n:x-Q2_K.gguf", &freed, NULL), TG_OK);
    assert_false(here(REPO "/snapshots/" OLD));
    assert_true(here(REPO "/blobs/d"));
    assert_int_equal(tg_cache_remove("o/n", &freed, NULL), TG_OK);
    assert_false(here(REPO));
    assert_int_equal(tg_cache_remove("o/n", &freed, NULL), TG_E_IO);
}

static void folders_of_safetensors(void **state)
{
    (void)state;
    static const char card[] = "---\nlanguage: en\nlicense: apache-2.0\n---\nlicense: no\n";
    put(NEW, "config.json", "a", 2);
    put(NEW, "model.safetensors", "b", 500);
    put(NEW, "README.md", "c", 1);
    put(NEW, "other.gguf", "d", 7);
    scratch_text(REPO "/blobs/c", card);
    tg_cached_model *m;
    size_t n;
    assert_int_equal(tg_cache_list(&m, &n, NULL), TG_OK);
    assert_int_equal(n, 2);
    assert_string_equal(m[0].name, "o/n");
    assert_string_equal(m[0].license, "apache-2.0");
    assert_int_equal(m[0].size, 502 + strlen(card));
    assert_string_equal(m[1].name, "o/n:other.gguf");
    tg_cache_free(m, n);
    found_at("o/n", NULL); /* what a model library left: without a tokenizer nothing can be run */
    put(NEW, "tokenizer.json", "e", 3);
    found_at("o/n", NEW);
    assert_int_equal(tg_cache_remove("o/n", NULL, NULL), TG_OK);
    assert_string_equal(names(), "o/n:other.gguf\n");

    /* Shards: all that the index names. */
    fresh(NULL);
    put(NEW, "config.json", "a", 2);
    put(NEW, "model-00001-of-00002.safetensors", "b", 5);
    put(NEW, "model.safetensors.index.json", "c", 1);
    put(NEW, "vocab.json", "d", 1);
    scratch_text(REPO "/blobs/c", "{\"weight_map\": {\"x\": \"model-00001-of-00002.safetensors\","
                                  "\"y\": \"model-00002-of-00002.safetensors\"}}");
    assert_string_equal(names(), "");
    found_at("o/n", NULL);
    put(NEW, "model-00002-of-00002.safetensors", "e", 5);
    assert_string_equal(names(), "o/n\n");
    found_at("o/n", NEW);
}

static void shared_bytes_stay(void **state)
{
    (void)state;
    put(NEW, "a.gguf", "same", 100);
    put(OLD, "b.gguf", "same", 100);
    put(OLD, "tokenizer.json", "t", 5);
    scratch_text(REPO "/refs/v1", OLD);
    uint64_t freed;
    assert_int_equal(tg_cache_remove("o/n:a.gguf", &freed, NULL), TG_OK);
    assert_int_equal(freed, 0);
    assert_true(here(REPO "/blobs/same") && !here(REPO "/snapshots/" NEW) && !here(REPO "/refs/main"));
    assert_true(here(REPO "/refs/v1"));
    assert_int_equal(tg_cache_remove("o/n:b.gguf", &freed, NULL), TG_OK);
    assert_int_equal(freed, 100);
    assert_true(here(REPO "/blobs/t") && here(REPO "/refs/v1")); /* another tool's */
}

/* Whatever others put there: nothing is read, told of or removed outside. */
static void hostile_contents(void **state)
{
    (void)state;
    scratch_mkdir("cache/outside");
    scratch_text("cache/outside/x.gguf", "kept");
    static const struct {
        const char *name, *target;
    } links[] = {
        {REPO "/snapshots/" NEW "/abs.gguf", "/etc/passwd"},
        {REPO "/snapshots/" NEW "/up.gguf", "../../../../outside/x.gguf"},
        {REPO "/snapshots/" NEW "/blob-up.gguf", "../../blobs/../../../outside/x.gguf"},
        {REPO "/snapshots/" NEW "/self.gguf", "self.gguf"},
        {REPO "/snapshots/" NEW "/gone.gguf", "../../blobs/gone"},
        {REPO "/snapshots/" NEW "/link.gguf", "../../blobs/link"},
        {REPO "/snapshots/" NEW "/folder", "../../../../outside"},
        {REPO "/snapshots/" NEW "/loop", "."},
        {REPO "/snapshots/3333333333333333333333333333333333333333", "../../../outside"},
        {REPO "/blobs/link", "../../../outside/x.gguf"},
        {REPO "/refs/evil", "../../../outside/x.gguf"},
        {"cache/hub/models--o--linked", "../outside"},
        {"cache/hub/models--loop--x", "."},
        {"cache/tinygpt", "outside"},
    };
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        assert_int_equal(symlink(links[i].target, scratch_path(links[i].name)), 0);
    put(NEW, "good.gguf", "a", 9);
    put(NEW, "b\x1b[2J.gguf", "b", 9);
    put(NEW, "a\nb.gguf", "c", 9);
    scratch_mkdir("cache/hub/models--");
    scratch_mkdir("cache/hub/models--a--b--c");
    scratch_mkdir("cache/hub/models--..--x");
    scratch_mkdir("cache/hub/datasets--o--d");
    scratch_text("cache/hub/models--o--file", "no folder");
    char huge[1 << 12];
    memset(huge, 'a', sizeof huge);
    scratch_write(REPO "/refs/huge", huge, sizeof huge);
    assert_string_equal(names(), "o/n:good.gguf\n");
    found_at("o/linked", NULL);
    assert_int_equal(tg_cache_remove("o/linked", NULL, NULL), TG_E_IO);
    assert_int_equal(tg_cache_remove("o/n:link.gguf", NULL, NULL), TG_E_IO);
    assert_int_equal(tg_cache_remove("../outside", NULL, NULL), TG_E_USAGE);
    assert_int_equal(tg_cache_remove("o/n", NULL, NULL), TG_OK);
    assert_false(here(REPO));
    tg_file f;
    assert_int_equal(tg_file_open(&f, scratch_path("cache/outside/x.gguf"), 10, true, NULL), TG_OK);
    assert_int_equal(f.size, 4);
    tg_file_close(&f);

    /* A refs/main that is none. */
    fresh(NULL);
    static const char *const refs[] = {"", "x", "../../../outside", OLD "junk", "2222"};
    put(OLD, "a.gguf", "a", 3);
    for (size_t i = 0; i < sizeof refs / sizeof *refs; i++) {
        scratch_text(REPO "/refs/main", refs[i]);
        found_at("o/n", OLD "/a.gguf");
    }
}

/* A cache may hold any number of files: looking through them takes time in proportion to it, near enough. */
static void many_files(void **state)
{
    (void)state;
    enum { MANY = 20000 };
    char name[300];
    tg_cached_model *m;
    size_t n;
    put(NEW, "m.gguf", "a", 9);
    put(OLD, "m0.gguf", "a", 9);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, REPO "/snapshots/" NEW "/m%d.gguf", i);
        assert_int_equal(symlink("../../blobs/a", scratch_path(name)), 0);
    }
    double began = clock_seconds();
    assert_int_equal(tg_cache_list(&m, &n, NULL), TG_OK);
    assert_true(clock_seconds() - began < 10);
    assert_int_equal(n, MANY + 1);
    tg_cache_free(m, n);
    assert_int_equal(tg_cache_remove("o/n", NULL, NULL), TG_OK);
}

static void urls(void **state)
{
    (void)state;
    scratch_mkdir("cache/tinygpt");
    scratch_mkdir("cache/tinygpt/h:1");
    scratch_mkdir("cache/tinygpt/h:1/d");
    scratch_text("cache/tinygpt/h:1/d/m.gguf", "12345");
    scratch_text("cache/tinygpt/h:1/d/half.gguf", "12345");
    static const char record[] = "{\"url\": \"http://h:1/d/%s\", \"etag\": \"e\", \"size\": %d, \"sha256\": "
                                 "\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"}";
    char text[512];
    snprintf(text, sizeof text, record, "m.gguf", 5);
    scratch_text("cache/tinygpt/h:1/d/.m.gguf.json", text);
    snprintf(text, sizeof text, record, "half.gguf", 9);
    scratch_text("cache/tinygpt/h:1/d/.half.gguf.json", text);
    assert_string_equal(names(), "http://h:1/d/m.gguf\n");
    char *path = tg_cache_find("http://H:1/d/m.gguf?sig=x", NULL);
    assert_non_null(path);
    assert_true(tg_path_exists(path));
    tg_free(path);
    assert_null(tg_cache_find("http://h:1/d/half.gguf", NULL));
    assert_int_equal(tg_cache_remove("http://h:1/d/half.gguf", NULL, NULL), TG_E_IO);
    /* A record that is none leaves the others to be listed; another URL's file is not removed. */
    scratch_text("cache/tinygpt/h:1/none.gguf", "12345");
    scratch_text("cache/tinygpt/h:1/.none.gguf.json",
                 "{\"url\": \"o/n\", \"etag\": \"\", \"size\": 5, \"sha256\": "
                 "\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"}");
    assert_string_equal(names(), "http://h:1/d/m.gguf\n");
    assert_int_equal(tg_cache_remove("https://h:1/d/m.gguf", NULL, NULL), TG_E_IO);
    uint64_t freed;
    assert_int_equal(tg_cache_remove("http://h:1/d/m.gguf", &freed, NULL), TG_OK);
    assert_true(freed > 5);
    assert_false(here("cache/tinygpt/h:1/d/m.gguf") || here("cache/tinygpt/h:1/d/.m.gguf.json"));
    assert_true(here("cache/tinygpt/h:1/d/half.gguf"));
}

static void no_cache_at_all(void **state)
{
    (void)state;
    scratch_remove("cache");
    assert_string_equal(names(), "");
    found_at("o/n", NULL);
    assert_int_equal(tg_cache_remove("o/n", NULL, NULL), TG_E_IO);
    assert_false(here("cache"));
}

/* Each allocation fails once: an error that says so, or the whole answer. */
static void no_memory(void **state)
{
    (void)state;
    static const char card[] = "---\nlicense: mit\n---\n";
    put(NEW, "config.json", "a", 2);
    put(NEW, "tokenizer.json", "b", 2);
    put(NEW, "model.safetensors", "c", 500);
    put(NEW, "README.md", "d", 1);
    scratch_text(REPO "/blobs/d", card);
    for (long n = 1, failed = 1; failed; n++) {
        tg_cached_model *m;
        size_t n_models;
        tg_error err;
        malloc_fail_at(n);
        tg_status status = tg_cache_list(&m, &n_models, &err);
        failed = malloc_failed;
        malloc_fail_at(n);
        char *path = tg_cache_find("o/n", &err);
        failed |= malloc_failed;
        tg_error found = err;
        malloc_fail_at(0);
        assert_int_equal(status, status ? TG_E_RESOURCE : TG_OK);
        if (status == TG_OK && n_models != 1) fail_msg("allocation %ld n %zu", n, n_models);
        assert_true(status != TG_OK || (n_models == 1 && m->name && m->path && m->commit));
        assert_true(path || found.status == TG_E_RESOURCE);
        tg_cache_free(m, n_models);
        tg_free(path);
    }
    for (long n = 1, failed = 1; failed; n++) {
        fresh(NULL);
        put(NEW, "a.gguf", "a", 100);
        put(OLD, "b.gguf", "b", 100);
        malloc_fail_at(n);
        tg_status status = tg_cache_remove("o/n:a.gguf", NULL, NULL);
        failed = malloc_failed;
        malloc_fail_at(0);
        assert_true(status == TG_OK || status == TG_E_RESOURCE);
        if (status != TG_OK)
            tg_cache_remove("o/n:a.gguf", NULL, NULL);
        assert_false(here(REPO "/snapshots/" NEW "/a.gguf"));
        assert_true(here(REPO "/snapshots/" OLD "/b.gguf") && here(REPO "/blobs/b"));
    }
    tg_folder folder;
    tg_url_record record = {.size = 5}, read;
    strcpy(record.url, "http://h:1/m.gguf");
    memset(record.sha256, 'a', 64);
    assert_int_equal(tg_folder_root(&folder, scratch_folder, false, NULL), TG_OK);
    scratch_text("m.gguf", "12345");
    for (long n = 1, failed = 1; failed; n++) {
        bool whole;
        scratch_remove(".m.gguf.json");
        malloc_fail_at(n);
        const tg_status status = tg_url_record_write(&folder, "m.gguf", &record, NULL);
        failed = malloc_failed;
        malloc_fail_at(0);
        assert_int_equal(status, status ? TG_E_RESOURCE : TG_OK);
        assert_int_equal(tg_url_record_read(&folder, "m.gguf", &read, &whole, NULL), TG_OK);
        assert_int_equal(whole, status == TG_OK);
    }
    tg_folder_close(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(models_by_their_names, fresh), cmocka_unit_test_setup(folders_of_safetensors, fresh),
        cmocka_unit_test_setup(shared_bytes_stay, fresh),     cmocka_unit_test_setup(hostile_contents, fresh),
        cmocka_unit_test_setup(urls, fresh),                  cmocka_unit_test_setup(no_cache_at_all, fresh),
        cmocka_unit_test_setup(many_files, fresh),            cmocka_unit_test_setup(no_memory, fresh),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
