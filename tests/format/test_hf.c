/* Tests of hf.c: rows M46 to M51 of the fault catalogue, and the folders that must be accepted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/resource.h>

#include "support/check_container.h"
#include "support/safetensors_writer.h"

#define CONFIG "m/config.json"
#define SINGLE "m/model.safetensors"
#define INDEX  "m/model.safetensors.index.json"

/* Each test has a fresh folder "m". */
static int fresh(void **state)
{
    (void)state;
    scratch_remove("m");
    scratch_mkdir("m");
    return 0;
}

/* A file of F32 [1] tensors with these names, separated by spaces. */
static void write_weights(const char *file, const char *names)
{
    char header[1024] = "{", list[256];
    int n = 0;
    snprintf(list, sizeof list, "%s", names);
    for (char *at = list, *name; (name = strtok_r(at, " ", &at)); n++) {
        size_t used = strlen(header);
        snprintf(header + used, sizeof header - used,
                 "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[%d,%d]}",
                 n ? "," : "", name, 4 * n, 4 * n + 4);
    }
    strcat(header, "}");
    bytes b = safetensors_file(header, 4 * (size_t)n);
    scratch_write(file, b.data, b.n);
    bytes_free(&b);
}

static void refused(const char *wanted)
{
    refused_at(scratch_path("m"), TG_E_MODEL, wanted);
}

static tg_container *accepted(void)
{
    return accepted_at(scratch_path("m"));
}

static void one_file(void **state)
{
    (void)state;
    scratch_text(CONFIG, "{\"model_type\": \"llama\"}");
    write_weights(SINGLE, "a b");
    tg_container *c = accepted();
    assert_int_equal(tg_container_n_tensors(c), 2);
    assert_string_equal(json_string_value(json_object_get(tg_container_config(c), "model_type")),
                        "llama");
    assert_string_equal(tg_container_path(c), scratch_path("m"));
    tg_container_free(c);
    c = accepted_at(scratch_path("m/"));
    tg_container_free(c);
    scratch_mkdir("m/a.safetensors"); /* a folder, whatever it is called */
    scratch_text("m/a.safetensors/config.json", "{}");
    write_weights("m/a.safetensors/model.safetensors", "a");
    tg_container_free(accepted_at(scratch_path("m/a.safetensors")));
}

static void named_files(void **state)
{
    (void)state;
    scratch_text(CONFIG, "{}");
    write_weights(SINGLE, "a b");
    write_weights("m/other.safetensors", "x");
    write_weights("m/model-00001-of-00002.safetensors", "y");
    tg_container *c = accepted_at(scratch_path(SINGLE));
    assert_non_null(tg_container_tensor(c, "b"));
    tg_container_free(c);
    c = accepted_at(scratch_path("m/other.safetensors"));
    assert_int_equal(tg_container_n_tensors(c), 1);
    assert_non_null(tg_container_tensor(c, "x"));
    tg_container_free(c);
    refused_at(scratch_path("m/model-00001-of-00002.safetensors"), TG_E_MODEL,
               "not part of the model in its folder, whose weights are model.safetensors");
    refused_at(scratch_path("m/absent.safetensors"), TG_E_IO, "No such file");
    /* A path without a folder means this one. */
    char here[PATH_MAX];
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(scratch_path("m")), 0);
    c = accepted_at("model.safetensors");
    tg_container_free(c);
    assert_int_equal(chdir(here), 0);
}

static void write_shards(void)
{
    scratch_text(CONFIG, "{}");
    write_weights("m/model-00001-of-00002.safetensors", "a b");
    write_weights("m/model-00002-of-00002.safetensors", "c");
}

#define S1 "\"model-00001-of-00002.safetensors\""
#define S2 "\"model-00002-of-00002.safetensors\""
#define GOOD_INDEX                                                                                 \
    "{\"metadata\":{\"total_size\":12},\"weight_map\":{\"c\":" S2 ",\"a\":" S1 ",\"b\":" S1 "}}"

static void a14_shards_with_an_index(void **state)
{
    (void)state;
    write_shards();
    scratch_text(INDEX, GOOD_INDEX);
    write_weights("m/model-00003-of-00003.safetensors", "a stray");
    tg_container *c = accepted();
    assert_int_equal(tg_container_n_tensors(c), 3);
    assert_null(tg_container_tensor(c, "stray"));
    assert_string_equal(tg_container_tensor(c, "c")->file,
                        scratch_path("m/model-00002-of-00002.safetensors"));
    tg_container_free(c);
    c = accepted_at(scratch_path("m/model-00002-of-00002.safetensors"));
    assert_int_equal(tg_container_n_tensors(c), 3);
    tg_container_free(c);
    refused_at(scratch_path("m/model-00003-of-00003.safetensors"), TG_E_MODEL,
               "not part of the model");
}

static void a14_the_index_decides(void **state)
{
    (void)state;
    write_shards();
    write_weights("m/model-00002-of-00002.safetensors", "c a");
    scratch_text(INDEX, GOOD_INDEX);
    tg_container *c = accepted();
    assert_int_equal(tg_container_n_tensors(c), 3);
    assert_string_equal(tg_container_tensor(c, "a")->file,
                        scratch_path("m/model-00001-of-00002.safetensors"));
    tg_container_free(c);
}

static void shards_without_an_index(void **state)
{
    (void)state;
    char name[64];
    write_shards();
    tg_container *c = accepted();
    assert_int_equal(tg_container_n_tensors(c), 3);
    tg_container_free(c);
    unlink(scratch_path("m/model-00001-of-00002.safetensors"));
    refused("1 of 2 weight files are missing: model-00001-of-00002.safetensors");
    unlink(scratch_path("m/model-00002-of-00002.safetensors"));
    write_weights("m/model-00001-of-01025.safetensors", "a");
    refused("number of shards (found 1025, allowed 1 to 1024)");
    for (int i = 1024; i < 1036; i++) { /* the least number counts, in whatever order they come */
        snprintf(name, sizeof name, "m/model-00001-of-%05d.safetensors", i);
        write_weights(name, "a");
    }
    refused("1023 of 1024 weight files are missing");
    for (int i = 1024; i < 1036; i++) {
        snprintf(name, sizeof name, "m/model-00001-of-%05d.safetensors", i);
        unlink(scratch_path(name));
    }
    write_weights("m/model-00001-of-00000.safetensors", "a");
    refused("no weights in this folder");
    unlink(scratch_path("m/model-00001-of-00000.safetensors"));
    static const char *const no_shards[] = {"model-0000a-of-00002.safetensors", "model-0000.-of-00002.safetensors",
                                            "model-00001_of-00002.safetensors"};
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "m/%s", no_shards[i]);
        write_weights(name, "a");
        refused("no weights in this folder (found model-0000");
        unlink(scratch_path(name));
    }
}

/* It is opened only where no file is chosen by its name. */
static void a_folder_that_cannot_be_listed(void **state)
{
    (void)state;
    scratch_text(CONFIG, "{}");
    struct rlimit old, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = old;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    tg_container *c;
    tg_error err;
    tg_status status = tg_container_open(&c, scratch_path("m"), false, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(status, TG_E_RESOURCE);
    assert_non_null(strstr(err.message, "cannot be listed"));
}

/* Where one of two files was written to while they are in use. */
static void r30_overwritten_shards(void **state)
{
    (void)state;
    tg_error err;
    write_shards();
    tg_container *c = accepted();
    assert_int_equal(tg_container_check_unchanged(c, &err), TG_OK);
    write_weights("m/model-00001-of-00002.safetensors", "a b b2");
    assert_int_equal(tg_container_check_unchanged(c, &err), TG_E_IO);
    assert_non_null(strstr(err.message, "model-00001-of-00002.safetensors: was overwritten while in use"));
    tg_container_free(c);
}

static void m46_index(void **state)
{
    (void)state;
    write_shards();
    static const struct {
        const char *text, *wanted;
    } rows[] = {
        {"{}", "weight_map (found nothing"},
        {"[]", "weight_map (found nothing"},
        {"{\"weight_map\":[]}", "weight_map (found array"},
        {"{\"weight_map\":{}}", "weight_map (found 0 tensors"},
        {"{\"weight_map\":{\"a\":1}}", "weight_map: a (found integer"},
        {"{\"weight_map\":{\"a\":null}}", "weight_map: a (found null"},
        {"{\"weight_map\":{\"a\":" S1 ",\"a\":" S2 "}}", "duplicate"},
        {"{\"weight_map\":{\"a\":" S1 ",\"\\u0061\":" S1 "}}", "duplicate"},
        {"{\"weight_map\":{\"a\":" S1, "not valid JSON"},
        {"", "not valid JSON"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        scratch_text(INDEX, rows[i].text);
        refused(rows[i].wanted);
    }
}

static void m46_number_of_tensors(void **state)
{
    (void)state;
    scratch_text(CONFIG, "{}");
    bytes text = {0};
    put_text(&text, "{\"weight_map\":{");
    for (int i = 0; i <= TG_MAX_TENSORS; i++) {
        char entry[32];
        snprintf(entry, sizeof entry, "%s\"t%d\":\"s\"", i ? "," : "", i);
        put_text(&text, entry);
    }
    put_text(&text, "}}");
    scratch_write(INDEX, text.data, text.n);
    refused("weight_map (found 65537 tensors, allowed 1 to 65536)");
    bytes_free(&text);
}

static void m46_number_of_shards(void **state)
{
    (void)state;
    scratch_text(CONFIG, "{}");
    for (int more = 0; more < 2; more++) {
        bytes text = {0};
        put_text(&text, "{\"weight_map\":{");
        for (int i = 0; i < TG_MAX_SHARDS + more; i++) {
            char entry[64];
            snprintf(entry, sizeof entry, "%s\"t%d\":\"s%d\"", i ? "," : "", i, i);
            put_text(&text, entry);
        }
        put_text(&text, "}}");
        scratch_write(INDEX, text.data, text.n);
        refused(more ? "number of shards (found 1025, allowed 1024)"
                     : "1024 of 1024 weight files are missing: s0, s1, s10,");
        bytes_free(&text);
    }
}

static void m47_names_of_shards(void **state)
{
    (void)state;
    scratch_text(CONFIG, "{}");
    write_weights("outside.safetensors", "a");
    static const char *const bad[] = {"",
                                      ".",
                                      "..",
                                      "../outside.safetensors",
                                      "/etc/passwd",
                                      "sub/model.safetensors",
                                      "a\\\\b",
                                      "a\\nb",
                                      "a\\u007fb",
                                      "x..y",
                                      "\\u001b[2J"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[128];
        snprintf(text, sizeof text, "{\"weight_map\":{\"a\":\"%s\"}}", bad[i]);
        scratch_text(INDEX, text);
        refused("weight_map: a (found ");
    }
    char text[512], name[257];
    memset(name, 'x', 256);
    name[256] = 0;
    snprintf(text, sizeof text, "{\"weight_map\":{\"a\":\"%s\"}}", name);
    scratch_text(INDEX, text);
    refused("weight_map: a (found xxx");
    scratch_text(INDEX, "{\"weight_map\":{\"a\":\"a\\u0000b\"}}");
    refused("not valid JSON");
    assert_int_equal(
        symlink(scratch_path("outside.safetensors"), scratch_path("m/link.safetensors")), 0);
    scratch_text(INDEX, "{\"weight_map\":{\"a\":\"link.safetensors\"}}");
    refused("a link that leads out of the model's folder");
    /* The neighbour's name begins with the folder's. */
    scratch_mkdir("m2");
    write_weights("m2/w.safetensors", "a");
    unlink(scratch_path("m/link.safetensors"));
    assert_int_equal(symlink("../m2/w.safetensors", scratch_path("m/link.safetensors")), 0);
    refused("a link that leads out of the model's folder");
    unlink(scratch_path("m/link.safetensors"));
    assert_int_equal(symlink("link.safetensors", scratch_path("m/link.safetensors")), 0);
    refused("a link that leads to itself");
    scratch_remove("m2");
}

static void m48_absent_shards(void **state)
{
    (void)state;
    write_shards();
    scratch_text(INDEX, GOOD_INDEX);
    unlink(scratch_path("m/model-00001-of-00002.safetensors"));
    refused("1 of 2 weight files are missing: model-00001-of-00002.safetensors");
    unlink(scratch_path("m/model-00002-of-00002.safetensors"));
    refused("2 of 2 weight files are missing: model-00001-of-00002.safetensors, "
            "model-00002-of-00002.safetensors");
    assert_int_equal(symlink("nowhere", scratch_path("m/model-00002-of-00002.safetensors")), 0);
    refused("2 of 2 weight files are missing");
}

static void m49_tensors_and_shards(void **state)
{
    (void)state;
    write_shards();
    scratch_text(INDEX, "{\"weight_map\":{\"c\":" S2 ",\"a\":" S1 ",\"gone\":" S1 "}}");
    refused("m/model-00001-of-00002.safetensors: tensor gone is not in this file");
    scratch_text(INDEX, "{\"weight_map\":{\"c\":" S2 ",\"a\":" S2 "}}");
    refused("m/model-00002-of-00002.safetensors: tensor a is not in this file");
    unlink(scratch_path(INDEX));
    write_weights("m/model-00002-of-00002.safetensors", "c a");
    refused("duplicate tensor a, also in ");
}

static void m50_config(void **state)
{
    (void)state;
    write_weights(SINGLE, "a");
    refused("m/config.json: missing");
    scratch_text(CONFIG, "[]");
    refused("m/config.json: found array, allowed an object");
    scratch_text(CONFIG, "");
    refused("m/config.json: not valid JSON");
    scratch_text(CONFIG, "{\"a\":1,\"a\":2}");
    refused("duplicate");
    unlink(scratch_path(CONFIG));
    assert_int_equal(mkfifo(scratch_path(CONFIG), 0600), 0);
    refused("a FIFO");
}

/* M30 for a folder's JSON. */
static void m30_every_proper_prefix(void **state)
{
    (void)state;
    static const struct {
        const char *file, *text;
    } cases[] = {{CONFIG, "{\"model_type\": \"llama\", \"rope_scaling\": {\"factor\": 4.0}, \"bias\": false}"},
                 {INDEX, GOOD_INDEX}};
    write_shards();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t n = 0; n < strlen(cases[i].text); n++) {
            scratch_write(cases[i].file, cases[i].text, n);
            refused(cases[i].file);
        }
        scratch_text(cases[i].file, cases[i].text);
        tg_container_free(accepted());
    }
}

static void m51_only_pickle(void **state)
{
    (void)state;
    scratch_text(CONFIG, "{}");
    refused("no weights in this folder (found none");
    static const char *const names[] = {"pytorch_model.bin", "model.pt", "consolidated.00.pth",
                                        "pytorch_model-00001-of-00002.bin"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[64];
        snprintf(name, sizeof name, "m/%s", names[i]);
        scratch_text(name, "\x80\x02.");
        refused("only pickle weights");
        refused(names[i]);
        unlink(scratch_path(name));
    }
    /* What could be read goes first, then the first name, in whatever order they come. */
    for (int round = 0; round < 3; round++) {
        char name[32];
        for (int i = 0; i < 20; i++) {
            snprintf(name, sizeof name, "m/%d%c.bin", round, 'a' + i);
            scratch_text(name, "");
        }
        snprintf(name, sizeof name, "found %da.bin", round);
        refused(name);
        snprintf(name, sizeof name, "m/%dz.gguf", round);
        scratch_text(name, "");
        refused(name + 2);
        scratch_remove("m");
        scratch_mkdir("m");
    }
    scratch_text(CONFIG, "{}");
    scratch_text("m/pytorch_model.bin", "\x80\x02.");
    scratch_text("m/model-q8.gguf", "GGUF");
    refused("found model-q8.gguf");
    write_weights(SINGLE, "a");
    tg_container_free(accepted());
}

static void a15_config_as_people_write_it(void **state)
{
    (void)state;
    write_weights(SINGLE, "a");
    scratch_text(
        CONFIG,
        "\xef\xbb\xbf{\"rms_norm_eps\": 1e-05, \"_unknown\": [{}], \"name\": \"\xe5\xad\x97\"}\n");
    tg_container *c = accepted();
    double eps = 0;
    assert_int_equal(tg_meta_real(c, "rms_norm_eps", &eps, NULL), TG_META_FOUND);
    assert_true(eps == 1e-05);
    tg_container_free(c);
}

static void a21_links_of_the_hubs_cache(void **state)
{
    (void)state;
    write_shards();
    scratch_text(INDEX, GOOD_INDEX);
    scratch_mkdir("m/models--a--b \xc3\xa9");
#define REPO "m/models--a--b \xc3\xa9"
    scratch_mkdir(REPO "/blobs");
    scratch_mkdir(REPO "/snapshots");
    scratch_mkdir(REPO "/snapshots/0123abc");
    static const char *const files[] = {"config.json", "model.safetensors.index.json",
                                        "model-00001-of-00002.safetensors",
                                        "model-00002-of-00002.safetensors"};
    for (int i = 0; i < 4; i++) {
        char from[PATH_MAX], blob[PATH_MAX], target[64];
        snprintf(from, sizeof from, "%s/m/%s", scratch_folder, files[i]);
        snprintf(blob, sizeof blob, "%s/" REPO "/blobs/%d", scratch_folder, i);
        assert_int_equal(rename(from, blob), 0);
        snprintf(target, sizeof target, "../../blobs/%d", i);
        snprintf(from, sizeof from, "%s/" REPO "/snapshots/0123abc/%s", scratch_folder, files[i]);
        assert_int_equal(symlink(target, from), 0);
    }
    tg_container *c = accepted_at(scratch_path(REPO "/snapshots/0123abc"));
    assert_int_equal(tg_container_n_tensors(c), 3);
    tg_container_free(c);
    c = accepted_at(scratch_path(REPO "/snapshots/0123abc/model-00001-of-00002.safetensors"));
    tg_container_free(c);
    /* A link to the folder itself. */
    assert_int_equal(symlink("models--a--b \xc3\xa9/snapshots/0123abc", scratch_path("m/link")), 0);
    c = accepted_at(scratch_path("m/link"));
    tg_container_free(c);
}

/* One file may be a link to wherever the user keeps it. */
static void a21_one_file_linked(void **state)
{
    (void)state;
    scratch_text(CONFIG, "{}");
    write_weights("elsewhere.safetensors", "a");
    assert_int_equal(symlink(scratch_path("elsewhere.safetensors"), scratch_path(SINGLE)), 0);
    tg_container_free(accepted());
}

static void files_of_a_model_are_no_outputs(void **state)
{
    static const char *const of_it[] = {"config.json", "model.safetensors", "tokenizer.json", "chat_template.jinja"};
    (void)state;
    scratch_text(CONFIG, "{}");
    write_weights(SINGLE, "a");
    scratch_text("m/tokenizer.json", "{}");
    scratch_text("m/chat_template.jinja", "");
    tg_container *c = accepted();
    for (size_t i = 0; i < 4; i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/m/../m/%s", scratch_folder, of_it[i]);
        assert_int_equal(tg_container_check_output(c, path, NULL), TG_E_USAGE);
    }
    assert_int_equal(tg_container_check_output(c, scratch_text("m/other.safetensors", ""), NULL), TG_OK);
    assert_int_equal(tg_container_check_output(c, scratch_path("m/tokenizer_config.json"), NULL), TG_OK);
    tg_container_free(c);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, fresh)
    const struct CMUnitTest tests[] = {
        TEST(one_file),
        TEST(named_files),
        TEST(a14_shards_with_an_index),
        TEST(a14_the_index_decides),
        TEST(shards_without_an_index),
        TEST(a_folder_that_cannot_be_listed),
        TEST(r30_overwritten_shards),
        TEST(m46_index),
        TEST(m46_number_of_tensors),
        TEST(m46_number_of_shards),
        TEST(m47_names_of_shards),
        TEST(m48_absent_shards),
        TEST(m49_tensors_and_shards),
        TEST(m50_config),
        TEST(m30_every_proper_prefix),
        TEST(m51_only_pickle),
        TEST(a15_config_as_people_write_it),
        TEST(a21_links_of_the_hubs_cache),
        TEST(a21_one_file_linked),
        TEST(files_of_a_model_are_no_outputs),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
