/* Tests of pull.c, pull_repo.c, pull_url.c against a hub in memory: which requests are made, and what lies where then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/file.h"
#include "fetch/fake_net.h"
#include "support/scratch.h"

#define COMMIT "0123456789abcdef0123456789abcdef01234567"
#define OTHER  "89abcdef0123456789abcdef0123456789abcdef"
#define API    "https://huggingface.co/api/models/"
#define BIG    "weights, and more of them"

static char digest_big[65], digest_config[65], listing[4096], notes[1024];

static void note(void *arg, bool warning, const char *line)
{
    (void)arg;
    snprintf(notes, sizeof notes, "%d %s", warning, line);
}

/* A repository at a commit: config.json, tokenizer.json with the same bytes, and weights. */
static const char *repository(const char *commit, const char *weights)
{
    fake_digest(BIG, digest_big);
    fake_digest("{}", digest_config);
    digest_config[40] = 0;
    snprintf(listing, sizeof listing,
             "{\"sha\": \"%s\", \"gated\": false, \"siblings\": ["
             "{\"rfilename\": \"README.md\", \"size\": 2, \"blobId\": \"%s\", \"lfs\": null},"
             "{\"rfilename\": \"config.json\", \"size\": 2, \"blobId\": \"%s\"},"
             "{\"rfilename\": \"tokenizer.json\", \"size\": 2, \"blobId\": \"%s\"},"
             "{\"rfilename\": \"%s\", \"size\": %zu, \"blobId\": \"%s\", \"lfs\": {\"sha256\": \"%s\", \"size\": %zu}}]}",
             commit, digest_config, digest_config, digest_config, weights, strlen(BIG), digest_config, digest_big,
             strlen(BIG));
    return listing;
}

static void serve_repository(const char *weights)
{
    static char url[256];
    fake_clear();
    fake_serve(API "o/n/revision/main?blobs=true", repository(COMMIT, weights), NULL);
    snprintf(url, sizeof url, "https://huggingface.co/o/n/resolve/" COMMIT "/%s", weights);
    fake_serve(url, BIG, NULL);
    fake_serve("https://huggingface.co/o/n/resolve/" COMMIT "/README.md", "{}", NULL);
}

static void path_is(const tg_pull_result *r, const char *below)
{
    char *real = realpath(scratch_folder, NULL), want[PATH_MAX + 300];
    snprintf(want, sizeof want, "%s/%s", real, below);
    assert_string_equal(r->path, want);
    free(real);
}

static void link_is(const char *name, const char *target)
{
    char found[300] = "";
    assert_true(readlink(scratch_path(name), found, sizeof found - 1) > 0);
    assert_string_equal(found, target);
}

static void holds(const char *path, const char *text)
{
    tg_file f;
    assert_int_equal(tg_file_open(&f, path, 1000, true, NULL), TG_OK);
    assert_int_equal(f.size, strlen(text));
    assert_memory_equal(f.data, text, f.size);
    tg_file_close(&f);
}

static int fresh(void **state)
{
    (void)state;
    scratch_remove("cache");
    scratch_remove("local");
    scratch_mkdir("cache");
    setenv("XDG_CACHE_HOME", scratch_path("cache"), 1);
    setenv("HF_HUB_CACHE", scratch_path("cache/hub"), 1);
    setenv("HF_TOKEN", "hf_secret", 1);
    unsetenv("HF_ENDPOINT");
    unsetenv("HF_HUB_OFFLINE");
    fake_clear();
    notes[0] = 0;
    return 0;
}

static tg_status pull(const tg_pull_params *params, tg_pull_result *result, tg_error *err)
{
    tg_pull_params p = *params;
    p.watch.note = note;
    return tg_pull(&p, result, err);
}

/* ---- repositories -------------------------------------------------------------------------- */

static void repository_into_the_cache(void **state)
{
    (void)state;
    tg_pull_result r;
    tg_error err;
    serve_repository("model.safetensors");
    assert_int_equal(pull(&(tg_pull_params){.what = "o/n"}, &r, &err), TG_OK);
    path_is(&r, "cache/hub/models--o--n/snapshots/" COMMIT);
    assert_string_equal(r.repo, "o/n");
    assert_string_equal(r.commit, COMMIT);
    assert_int_equal(r.n_files, 4);
    /* One request pins the commit; files of the same bytes are fetched once. */
    assert_string_equal(fake_log, "GET " API "o/n/revision/main?blobs=true\n"
                                  "GET https://huggingface.co/o/n/resolve/" COMMIT "/README.md\n"
                                  "GET https://huggingface.co/o/n/resolve/" COMMIT "/model.safetensors\n");
    char target[200];
    snprintf(target, sizeof target, "../../blobs/%s", digest_big);
    link_is("cache/hub/models--o--n/snapshots/" COMMIT "/model.safetensors", target);
    holds(scratch_path("cache/hub/models--o--n/snapshots/" COMMIT "/model.safetensors"), BIG);
    holds(scratch_path("cache/hub/models--o--n/snapshots/" COMMIT "/tokenizer.json"), "{}");
    holds(scratch_path("cache/hub/models--o--n/refs/main"), COMMIT);
    tg_pull_result_free(&r);

    /* A second time nothing but the listing is asked for. */
    fake_requests = 0;
    assert_int_equal(pull(&(tg_pull_params){.what = "hf:o/n"}, &r, &err), TG_OK);
    assert_int_equal(fake_requests, 1);
    for (size_t i = 0; i < r.n_files; i++)
        assert_int_equal(r.files[i].state, TG_FETCH_CACHED);
    tg_pull_result_free(&r);

    /* Offline not even that; nor is there a need while the hub is down. */
    assert_int_equal(pull(&(tg_pull_params){.what = "o/n", .offline = true}, &r, &err), TG_OK);
    assert_int_equal(fake_requests, 1);
    path_is(&r, "cache/hub/models--o--n/snapshots/" COMMIT);
    assert_non_null(strstr(notes, "0 offline"));
    tg_pull_result_free(&r);
    fake_down = true;
    assert_int_equal(pull(&(tg_pull_params){.what = "o/n"}, &r, &err), TG_OK);
    path_is(&r, "cache/hub/models--o--n/snapshots/" COMMIT);
    assert_non_null(strstr(notes, "1 the cached copy of o/n"));
    tg_pull_result_free(&r);
    assert_int_equal(pull(&(tg_pull_params){.what = "o/n", .force = true}, &r, &err), TG_E_NETWORK);
    tg_pull_result_free(&r);

    /* What is not there is not made up. */
    fake_down = false;
    assert_int_equal(pull(&(tg_pull_params){.what = "o/n", .offline = true, .revision = "v2"}, &r, &err), TG_E_NETWORK);
    assert_int_equal(pull(&(tg_pull_params){.what = "o/m", .offline = true}, &r, &err), TG_E_NETWORK);
    assert_non_null(strstr(err.message, "offline, and there is no complete copy: o/m"));
    tg_pull_result_free(&r);

    /* Fetched anew on demand. */
    fake_requests = 0;
    assert_int_equal(pull(&(tg_pull_params){.what = "o/n", .force = true}, &r, &err), TG_OK);
    assert_int_equal(fake_requests, 3);
    tg_pull_result_free(&r);
}

static void file_in_folders(void **state)
{
    (void)state;
    tg_pull_result r;
    tg_error err;
    serve_repository("q/a-Q4_K_M.gguf");
    assert_int_equal(pull(&(tg_pull_params){.what = "o/n:q4_k_m", .dry_run = true}, &r, &err), TG_OK);
    assert_int_equal(fake_requests, 1);
    assert_int_equal(r.n_files, 1);
    assert_int_equal(r.files[0].state, TG_FETCH_WAITING);
    assert_int_equal(r.files[0].size, strlen(BIG));
    assert_false(tg_path_exists(scratch_path("cache/hub")));
    tg_pull_result_free(&r);
    assert_int_equal(pull(&(tg_pull_params){.what = "o/n"}, &r, &err), TG_OK);
    path_is(&r, "cache/hub/models--o--n/snapshots/" COMMIT "/q/a-Q4_K_M.gguf");
    char target[200];
    snprintf(target, sizeof target, "../../../blobs/%s", digest_big);
    link_is("cache/hub/models--o--n/snapshots/" COMMIT "/q/a-Q4_K_M.gguf", target);
    tg_pull_result_free(&r);

    /* A digest of the user's is asked of files that are here, too. */
    assert_int_equal(pull(&(tg_pull_params){.what = "o/n", .sha256 = digest_big}, &r, &err), TG_OK);
    tg_pull_result_free(&r);
    char wrong[65];
    memset(wrong, 'A', 64);
    wrong[64] = 0;
    assert_int_equal(pull(&(tg_pull_params){.what = "o/n", .sha256 = wrong}, &r, &err), TG_E_INTEGRITY);
    tg_pull_result_free(&r);
    assert_int_equal(pull(&(tg_pull_params){.what = "o/n", .sha256 = "12"}, &r, &err), TG_E_USAGE);
    static const char *const two[] = {"config.json", "README.md"};
    assert_int_equal(pull(&(tg_pull_params){.what = "o/n", .files = two, .n_files = 2, .sha256 = wrong}, &r, &err),
                     TG_E_USAGE);
    tg_pull_result_free(&r);
}

static void into_a_folder(void **state)
{
    (void)state;
    tg_pull_result r;
    tg_error err;
    char local[PATH_MAX];
    snprintf(local, sizeof local, "%s/local", scratch_folder);
    serve_repository("q/a-Q4_K_M.gguf");
    tg_pull_params params = {.what = "o/n", .local_dir = local};
    assert_int_equal(pull(&params, &r, &err), TG_OK);
    path_is(&r, "local/q/a-Q4_K_M.gguf");
    holds(r.path, BIG);
    tg_pull_result_free(&r);
    assert_false(tg_path_exists(scratch_path("cache/hub")));

    fake_requests = 0;
    assert_int_equal(pull(&params, &r, &err), TG_OK);
    assert_int_equal(r.files[0].state, TG_FETCH_CACHED);
    tg_pull_result_free(&r);
    scratch_text("local/q/a-Q4_K_M.gguf", "weights, and more of thEm"); /* other bytes of that size */
    assert_int_equal(pull(&params, &r, &err), TG_OK);
    assert_int_equal(r.files[0].state, TG_FETCH_DONE);
    holds(r.path, BIG);
    tg_pull_result_free(&r);
    assert_int_equal(fake_requests, 3);

    params.offline = true;
    assert_int_equal(pull(&params, &r, &err), TG_OK);
    path_is(&r, "local/q/a-Q4_K_M.gguf");
    tg_pull_result_free(&r);
    params.offline = false;

    /* D34: links are not followed, neither as the file nor on the way to it. */
    scratch_text("victim", "old");
    scratch_remove("local/q/a-Q4_K_M.gguf");
    assert_int_equal(symlink("../../victim", scratch_path("local/q/a-Q4_K_M.gguf")), 0);
    assert_int_equal(pull(&params, &r, &err), TG_E_IO);
    tg_pull_result_free(&r);
    scratch_remove("local/q");
    assert_int_equal(symlink("..", scratch_path("local/q")), 0);
    assert_int_equal(pull(&params, &r, &err), TG_E_IO);
    tg_pull_result_free(&r);
    holds(scratch_path("victim"), "old");
    assert_false(tg_path_exists(scratch_path("a-Q4_K_M.gguf")));
}

static void links_in_the_cache(void **state)
{
    (void)state;
    tg_pull_result r;
    tg_error err;
    serve_repository("a-Q4_K_M.gguf");
    scratch_mkdir("cache/hub");
    scratch_mkdir("cache/elsewhere");
    assert_int_equal(symlink("../elsewhere", scratch_path("cache/hub/models--o--n")), 0);
    assert_int_equal(pull(&(tg_pull_params){.what = "o/n"}, &r, &err), TG_E_IO);
    tg_pull_result_free(&r);
    assert_false(tg_path_exists(scratch_path("cache/elsewhere/blobs")));
    scratch_remove("cache/hub/models--o--n");
    scratch_mkdir("cache/hub/models--o--n");
    scratch_mkdir("cache/hub/models--o--n/blobs");
    char blob[200];
    snprintf(blob, sizeof blob, "cache/hub/models--o--n/blobs/%s", digest_big);
    assert_int_equal(symlink("/etc/passwd", scratch_path(blob)), 0);
    assert_int_equal(pull(&(tg_pull_params){.what = "o/n"}, &r, &err), TG_E_IO);
    tg_pull_result_free(&r);
    scratch_remove(blob);

    /* A blob in the store that repositories share is one of the cache's own. */
    scratch_mkdir("cache/hub/blobs");
    scratch_mkdir("cache/hub/blobs/ab");
    scratch_text("cache/hub/blobs/ab/ab23456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", BIG);
    assert_int_equal(symlink("../../blobs/ab/ab23456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                             scratch_path(blob)), 0);
    assert_int_equal(pull(&(tg_pull_params){.what = "o/n"}, &r, &err), TG_OK);
    assert_int_equal(r.files[0].state, TG_FETCH_CACHED);
    holds(r.path, BIG);
    tg_pull_result_free(&r);
}

/* ---- what the hub may say ------------------------------------------------------------------ */

static void refusals_say_which(void **state)
{
    (void)state;
    static const struct {
        int http;
        const char *code, *says;
    } rows[] = {
        {401, "", "not found, or a token is needed"},
        {401, "GatedRepo", "access must be granted at https://huggingface.co/o/n"},
        {403, "GatedRepo", "access must be granted at https://huggingface.co/o/n"},
        {403, "", "access must be granted at https://huggingface.co/o/n"},
        {404, "RepoNotFound", "no such repository"},
        {404, "RevisionNotFound", "no revision main"},
        {404, "", "no such repository"},
    };
    tg_pull_result r;
    tg_error err;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fake_clear();
        fake_refuse(API "o/n/revision/main?blobs=true", rows[i].http, rows[i].code);
        assert_int_equal(pull(&(tg_pull_params){.what = "o/n"}, &r, &err), TG_E_NETWORK);
        assert_non_null(strstr(err.message, rows[i].says));
        assert_null(strstr(err.message, "hf_secret"));
        assert_int_equal(fake_requests, 1);
        tg_pull_result_free(&r);
    }
    serve_repository("a-Q4_K_M.gguf");
    assert_int_equal(pull(&(tg_pull_params){.what = "o/n:b.gguf"}, &r, &err), TG_E_NETWORK);
    assert_non_null(strstr(err.message, "there is no file b.gguf in this repository; of weights there is a-Q4_K_M.gguf"));
    tg_pull_result_free(&r);
}

static void answers_that_are_none(void **state)
{
    (void)state;
    static const char *const integrity[] = {
        "<html>log in</html>", "", "[]", "{\"sha\": 1}", "{\"sha\": \"" COMMIT "\"}",
        "{\"sha\": \"../../x\", \"siblings\": []}",
        "{\"sha\": \"" COMMIT "\", \"siblings\": [1]}",
        "{\"sha\": \"" COMMIT "\", \"siblings\": [{\"rfilename\": \"a.gguf\", \"size\": -1}]}",
        "{\"sha\": \"" COMMIT "\", \"siblings\": [{\"rfilename\": \"a.gguf\", \"size\": 1, \"blobId\": \"../../x\"}]}",
    };
    static const char *const names[] = {"../a.gguf", "/a.gguf", "b\\\\a.gguf", "C:a.gguf", "a\\u0001.gguf", "b//a.gguf",
                                        "./a.gguf",  "b/../a.gguf", "nul.gguf", "a.gguf/"};
    char text[512];
    tg_pull_result r;
    tg_error err;
    for (size_t i = 0; i < sizeof integrity / sizeof *integrity; i++) {
        fake_clear();
        fake_serve(API "o/n/revision/main?blobs=true", integrity[i], NULL);
        assert_int_equal(pull(&(tg_pull_params){.what = "o/n"}, &r, &err), TG_E_INTEGRITY);
        tg_pull_result_free(&r);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) { /* D32 */
        fake_clear();
        snprintf(text, sizeof text, "{\"sha\": \"" COMMIT "\", \"siblings\": [{\"rfilename\": \"%s\", \"size\": 1}]}",
                 names[i]);
        fake_serve(API "o/n/revision/main?blobs=true", text, NULL);
        assert_int_equal(pull(&(tg_pull_params){.what = "o/n"}, &r, &err), TG_E_NETWORK);
        assert_int_equal(fake_requests, 1);
        tg_pull_result_free(&r);
    }
    /* A mirror without sizes and digests is asked for each file. */
    fake_clear();
    fake_serve(API "o/n/revision/main?blobs=true",
               "{\"sha\": \"" COMMIT "\", \"siblings\": [{\"rfilename\": \"a b.gguf\"}]}", NULL);
    fake_serve("https://huggingface.co/o/n/resolve/" COMMIT "/a%20b.gguf", BIG, "some-etag");
    assert_int_equal(pull(&(tg_pull_params){.what = "o/n"}, &r, &err), TG_OK);
    assert_non_null(strstr(fake_log, "HEAD https://huggingface.co/o/n/resolve/" COMMIT "/a%20b.gguf\nGET "));
    holds(r.path, BIG);
    tg_pull_result_free(&r);
}

/* More files than can be chosen from in a second. */
static void listings_have_an_end(void **state)
{
    (void)state;
    enum { MOST = 20000 };
    static char text[64 * MOST];
    for (size_t n_files = MOST; n_files <= MOST + 1; n_files++) {
        tg_pull_result r;
        tg_error err;
        size_t n = (size_t)sprintf(text, "{\"sha\": \"" COMMIT "\", \"siblings\": [{\"rfilename\": \"0\"}");
        for (size_t i = 1; i < n_files; i++)
            n += (size_t)sprintf(text + n, ",{\"rfilename\": \"%zx.bin\"}", i);
        strcpy(text + n, "]}");
        fake_clear();
        fake_serve(API "o/n/revision/main?blobs=true", text, NULL);
        assert_int_not_equal(pull(&(tg_pull_params){.what = "o/n"}, &r, &err), TG_OK);
        assert_int_equal(!strstr(err.message, "too many files (found 20001, allowed 20000)"), n_files == MOST);
        tg_pull_result_free(&r);
    }
}

static void names_before_requests(void **state)
{
    (void)state;
    static const char *const bad[] = {"a/b/c", "../a", "a/..", "o--p/n", "o/n.git", "o/n:../x", "ftp://h/f", "o/", "",
                                      "file:///etc/passwd", "http://h/", "http://h", "http://h/a/../b", "-o/n"};
    tg_pull_result r;
    tg_error err;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) { /* D33 */
        assert_int_equal(pull(&(tg_pull_params){.what = bad[i]}, &r, &err), TG_E_USAGE);
        tg_pull_result_free(&r);
    }
    static const char *const revisions[] = {"a/b", "..", "a..b", "-x", "", "a b", "x.lock", "a\nb"};
    for (size_t i = 0; i < sizeof revisions / sizeof *revisions; i++) {
        assert_int_equal(pull(&(tg_pull_params){.what = "o/n", .revision = revisions[i]}, &r, &err), TG_E_USAGE);
        tg_pull_result_free(&r);
    }
    assert_int_equal(fake_requests, 0);
}

/* ---- URLs ---------------------------------------------------------------------------------- */

static void url_into_its_cache(void **state)
{
    (void)state;
    tg_pull_result r;
    tg_error err;
    const char *url = "http://me:pw@Host:81/d/m.gguf?sig=secret";
    fake_serve(url, BIG, "one");
    assert_int_equal(pull(&(tg_pull_params){.what = url}, &r, &err), TG_OK);
    path_is(&r, "cache/tinygpt/host:81/d/m.gguf");
    holds(r.path, BIG);
    assert_null(r.repo);
    tg_pull_result_free(&r);
    tg_file f;
    assert_int_equal(tg_file_open(&f, scratch_path("cache/tinygpt/host:81/d/.m.gguf.json"), 1000, true, NULL), TG_OK);
    assert_non_null(memmem(f.data, f.size, "\"http://host:81/d/m.gguf\"", 25));
    assert_null(memmem(f.data, f.size, "secret", 6));
    assert_null(memmem(f.data, f.size, "pw", 2));
    tg_file_close(&f);

    fake_log[0] = 0;
    assert_int_equal(pull(&(tg_pull_params){.what = url}, &r, &err), TG_OK);
    assert_int_equal(r.files[0].state, TG_FETCH_CACHED);
    assert_int_equal(strncmp(fake_log, "HEAD ", 5), 0);
    assert_null(strstr(fake_log, "GET "));
    tg_pull_result_free(&r);
    assert_int_equal(pull(&(tg_pull_params){.what = url, .offline = true}, &r, &err), TG_OK);
    assert_int_equal(r.files[0].state, TG_FETCH_CACHED);
    tg_pull_result_free(&r);
    fake_answers[0].etag = "two";
    fake_answers[0].body = "changed";
    assert_int_equal(pull(&(tg_pull_params){.what = url}, &r, &err), TG_OK);
    assert_int_equal(r.files[0].state, TG_FETCH_DONE);
    holds(r.path, "changed");
    tg_pull_result_free(&r);
    fake_down = true;
    assert_int_equal(pull(&(tg_pull_params){.what = url}, &r, &err), TG_OK);
    assert_non_null(strstr(notes, "1 the cached copy of http://host:81/d/m.gguf is used"));
    tg_pull_result_free(&r);
}

static void url_into_a_folder(void **state)
{
    (void)state;
    tg_pull_result r;
    tg_error err;
    const char *url = "https://host/d/m.gguf?x";
    char local[PATH_MAX];
    snprintf(local, sizeof local, "%s/local", scratch_folder);
    fake_digest(BIG, digest_big);
    fake_serve(url, BIG, NULL);
    tg_pull_params params = {.what = url, .local_dir = local, .sha256 = digest_big, .dry_run = true};
    assert_int_equal(pull(&params, &r, &err), TG_OK);
    assert_int_equal(r.files[0].size, strlen(BIG));
    assert_false(tg_path_exists(local));
    tg_pull_result_free(&r);
    params.dry_run = false;
    for (int i = 0; i < 2; i++) {
        fake_requests = 0;
        assert_int_equal(pull(&params, &r, &err), TG_OK);
        path_is(&r, "local/m.gguf");
        holds(r.path, BIG);
        assert_int_equal(r.files[0].state, i ? TG_FETCH_CACHED : TG_FETCH_DONE);
        assert_int_equal(fake_requests, i ? 0 : 1);
        tg_pull_result_free(&r);
    }
    scratch_text("local/m.gguf", "spoilt");
    assert_int_equal(pull(&params, &r, &err), TG_OK);
    holds(r.path, BIG);
    tg_pull_result_free(&r);
    params.revision = "main";
    assert_int_equal(pull(&params, &r, &err), TG_E_USAGE);
    tg_pull_result_free(&r);
    fake_clear();
    params = (tg_pull_params){.what = url, .dry_run = true};
    assert_int_equal(pull(&params, &r, &err), TG_E_NETWORK); /* 404 */
    tg_pull_result_free(&r);
}

static void pages_of_the_hub_are_repositories(void **state)
{
    (void)state;
    static const char *const names[] = {
        "https://huggingface.co/o/n",       "https://huggingface.co/o/n/",     "https://huggingface.co/o/n/tree/main",
        "hf.co/o/n",                        "hf://o/n",                        "https://hf.co/o/n?library=x",
        "https://huggingface.co/o/n/blob/main/q/a-Q4_K_M.gguf",
        "https://huggingface.co/o/n/resolve/main/q%2Fa-Q4_K_M.gguf?download=true",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tg_pull_result r;
        tg_error err;
        serve_repository("q/a-Q4_K_M.gguf");
        assert_int_equal(pull(&(tg_pull_params){.what = names[i]}, &r, &err), TG_OK);
        assert_string_equal(r.repo, "o/n");
        path_is(&r, "cache/hub/models--o--n/snapshots/" COMMIT "/q/a-Q4_K_M.gguf");
        tg_pull_result_free(&r);
    }
}

/* ---- memory that is not there -------------------------------------------------------------- */

/* Each allocation fails once: an error that says so, or no matter; nothing half done; the next run completes. */
static void pull_without_memory(const char *what, bool local)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s/local", scratch_folder);
    tg_pull_params params = {.what = what, .local_dir = local ? folder : NULL};
    for (long n = 1, failed = 1; failed; n++) {
        tg_pull_result r;
        tg_error err;
        scratch_remove("cache/hub");
        scratch_remove("cache/tinygpt");
        scratch_remove("local");
        for (int again = 0; again < 2; again++) { /* with nothing there, and with all */
            malloc_fail_at(n);
            tg_status status = tg_pull(&params, &r, &err);
            failed = malloc_failed || (failed && again);
            malloc_fail_at(0);
            if (status != TG_OK && status != TG_E_RESOURCE)
                fail_msg("allocation %ld: %d %s", n, (int)status, err.message);
            if (status == TG_OK)
                assert_true(tg_path_exists(r.path));
            tg_pull_result_free(&r);
            assert_int_equal(tg_pull(&params, &r, NULL), TG_OK);
            assert_true(tg_path_exists(r.path));
            tg_pull_result_free(&r);
        }
        assert_true(n < 2000);
    }
}

static void no_memory(void **state)
{
    (void)state;
    serve_repository("model.safetensors");
    pull_without_memory("o/n", false);
    pull_without_memory("o/n:model.safetensors", true);
    fake_serve("http://host/d/m.gguf?x", BIG, "etag");
    pull_without_memory("http://host/d/m.gguf?x", false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(repository_into_the_cache, fresh), cmocka_unit_test_setup(file_in_folders, fresh),
        cmocka_unit_test_setup(into_a_folder, fresh),             cmocka_unit_test_setup(links_in_the_cache, fresh),
        cmocka_unit_test_setup(refusals_say_which, fresh),        cmocka_unit_test_setup(answers_that_are_none, fresh),
        cmocka_unit_test_setup(names_before_requests, fresh),     cmocka_unit_test_setup(url_into_its_cache, fresh),
        cmocka_unit_test_setup(url_into_a_folder, fresh),         cmocka_unit_test_setup(listings_have_an_end, fresh),
        cmocka_unit_test_setup(no_memory, fresh),
        cmocka_unit_test_setup(pages_of_the_hub_are_repositories, fresh),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
