/* Chat templates against transformers: tests/token/data/chat_cases.json, which tools/make-chat-cases.py makes.
 *
 * test_chat CASES compares the cases of another file, of templates that are not here; --templates lists ours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "base/json.h"
#include "support/check_container.h"
#include "support/rand.h"
#include "support/tokenizers.h"
#include "token/chat.h"
#include "token/jinja.h"

static const char *cases_path = "tests/token/data/chat_cases.json";

enum { NOW = 1735822845, MESSAGES_MAX = 16 };

typedef struct rendering {
    tg_status status;
    char *text;
    uint8_t *plain;
    size_t n;
    tg_error err;
} rendering;

static size_t read_messages(const json_t *list, tg_chat_message *messages)
{
    size_t n = json_array_size(list);
    assert_true(n <= MESSAGES_MAX);
    for (size_t i = 0; i < n; i++) {
        const json_t *m = json_array_get(list, i), *content = json_object_get(m, "content");
        messages[i] = (tg_chat_message){json_string_value(json_object_get(m, "role")), json_string_value(content),
                                        json_string_length(content)};
    }
    return n;
}

static rendering render(const char *template, const tg_chat_message *messages, size_t n, const tg_chat_params *params)
{
    rendering r = {0};
    tg_jinja_input in = {.template = template, .n_bytes = strlen(template), .file = "model", .messages = messages,
                         .n_messages = n, .bos = "<s>", .n_bos = 3, .eos = "</s>", .n_eos = 4, .params = params};
    r.status = tg_jinja_render(&in, &r.text, &r.plain, &r.n, &r.err);
    return r;
}

static void done(rendering *r)
{
    free(r->text);
    free(r->plain);
}

static bool same(const rendering *r, const json_t *want)
{
    const json_t *text = json_object_get(want, "text");
    if (!text)
        return r->status != TG_OK;
    return r->status == TG_OK && r->n == json_string_length(text) && memcmp(r->text, json_string_value(text), r->n) == 0;
}

static void test_cases(void **state)
{
    (void)state;
    size_t i, n_bad = 0;
    json_t *cases = tg_json_load(cases_path, 1 << 30, NULL), *c;
    assert_non_null(cases);
    json_array_foreach(cases, i, c)
    {
        tg_chat_message messages[MESSAGES_MAX];
        size_t n = read_messages(json_object_get(c, "messages"), messages);
        const json_t *thinking = json_object_get(c, "thinking");
        tg_chat_params params = {.closed = json_is_true(json_object_get(c, "closed")),
                                 .now = NOW,
                                 .thinking = !thinking                ? TG_THINKING_DEFAULT
                                             : json_is_true(thinking) ? TG_THINKING_ON
                                                                      : TG_THINKING_OFF};
        rendering r = render(json_string_value(json_object_get(c, "template")), messages, n, &params);
        if (!same(&r, c)) {
            const char *text = json_string_value(json_object_get(c, "text"));
            print_error("%s%s\n  want: %s\n  have: %.*s%s\n", json_string_value(json_object_get(c, "name")),
                        params.closed ? ", closed" : "", text ? text : "(refused)", (int)r.n, r.text ? r.text : "",
                        r.status ? r.err.message : "");
            n_bad++;
        }
        done(&r);
    }
    print_message("%zu cases, %zu differ\n", i, n_bad);
    json_decref(cases);
    assert_int_equal(n_bad, 0);
}

static const tg_chat_message hello[] = {{"system", "S", 1}, {"user", "Hello", 5}};

#define A_LIST "{% set a = range(90000) | list %}"
#define A_TEXT                                                                                                          \
    "{% set ns = namespace(x='0') %}{% for i in range(20) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}"                  \
    "{% set b = ns.x ~ '' %}"
#define ROUNDS "{% for i in range(30000) %}"

/* What templates may not do, and what the message says. */
static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *template, *what;
        tg_status status;
    } cases[] = {
        {"\n{{ 'a' | wordcount }}", "line 2: filter 'wordcount' is not supported", TG_E_MODEL},
        {"{% include 'x' %}", "line 1: statement 'include' is not supported", TG_E_MODEL},
        {"{{ 1.5 }}", "number", TG_E_MODEL},
        {"{{ messages.append(1) }}", "method 'append'", TG_E_MODEL},
        {"{{ ''.__class__.__mro__ }}", "something undefined", TG_E_MODEL},
        {"{{ cycler(1) }}", "function 'cycler'", TG_E_MODEL},
        {"{% if 1 %}", "'elif' is missing", TG_E_MODEL},
        {"{{ 1 + }}", "an expression is missing", TG_E_MODEL},
        {"{{ 'a", "a string has no end", TG_E_MODEL},
        {"{# a", "a comment has no end", TG_E_MODEL},
        {"{% set x = 1", "%} is missing", TG_E_MODEL},
        {"{{ 1 ? 2 }}", "'?' is not understood", TG_E_MODEL},
        {"{% endif %}", "statement 'endif'", TG_E_MODEL},
        {"{% break %}", "outside a loop", TG_E_MODEL},
        {"{{ raise_exception('no ' + messages[0].role) }}", "refuses the conversation: no system", TG_E_USAGE},
        {"{{ raise_exception('\033[2J') }}", "refuses the conversation: \\x1b[2J", TG_E_USAGE},
        /* what would never end, or take all there is */
        {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "nested more than", TG_E_MODEL},
        {"{% for i in range(99999999999999) %}{% endfor %}", "", TG_E_MODEL},
        {"{% for i in range(999999) %}{% for k in range(999999) %}{% endfor %}{% endfor %}", "takes more than", TG_E_MODEL},
        {"{% set ns = namespace(x='a') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}", "memory",
         TG_E_MODEL},
        {"{% set ns = namespace(x=[]) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x | tojson }}",
         "nested more than", TG_E_MODEL},
        {"{% set ns = namespace(x='a') %}{% for i in range(19) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}"
         "{{ (ns.x ~ ns.x).replace(ns.x ~ 'b', '') }}", "takes more than", TG_E_MODEL},
        /* and what takes few steps, but long ones */
        {A_LIST "{% set b = range(90000) | list %}" ROUNDS "{{ 'x' if a != b }}{% endfor %}", "steps", TG_E_MODEL},
        {A_LIST ROUNDS "{{ 'x' if -1 in a }}{% endfor %}", "steps", TG_E_MODEL},
        {A_LIST ROUNDS "{{ a | select('undefined') | list | length }}{% endfor %}", "steps", TG_E_MODEL},
        {A_TEXT ROUNDS "{{ 'x' if ns.x < b }}{% endfor %}", "steps", TG_E_MODEL},
        {A_TEXT ROUNDS "{{ 'x' if b.startswith('0') }}{{ ns.x | int }}{% endfor %}", "steps", TG_E_MODEL},
        {"{% set ns = namespace(x=['']) %}{% for i in range(17) %}{% set ns.x = ns.x + ns.x %}{% endfor %}" ROUNDS
         "{{ ns.x | join }}{% endfor %}", "steps", TG_E_MODEL},
        {"{% set m = 2147483646 * 2147483646 * 2 + 2147483646 * 8 %}{{ range(m, m + 7, 2147483646) | length }}", "", TG_OK},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rendering r = render(cases[i].template, hello, 2, &(tg_chat_params){0});
        if (r.status != cases[i].status || !strstr(r.err.message, cases[i].what))
            fail_msg("%s: status %d, %s", cases[i].template, r.status, r.err.message);
        done(&r);
    }
}

static void test_deep(void **state)
{
    (void)state;
    static const char *const parts[] = {"(", "[", "{'a':", "not ", "-", "a[", "a(", "1 if 1 else ", "{% if 1 %}", "{% for a in b %}",
                                        "{% if 1 %}{% elif ", "a|b("};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t length = strlen(parts[i]), n = 20000;
        char *text = malloc(3 + n * length + 1);
        assert_non_null(text);
        strcpy(text, parts[i][1] == '%' ? "   " : "{{ ");
        for (size_t k = 0; k < n; k++)
            memcpy(text + 3 + k * length, parts[i], length + 1);
        rendering r = render(text, hello, 2, &(tg_chat_params){0});
        assert_int_equal(r.status, TG_E_MODEL);
        done(&r);
        free(text);
    }
}

/* What messages say is known as such, wherever a template puts it. */
static void test_plain(void **state)
{
    (void)state;
    static const char template[] = "<{{ messages[0].content }}|{{ messages[1].content | trim | upper }}|"
                                   "{{ ('[' ~ messages[0].content + ']').replace('b', 'B') }}|"
                                   "{{ messages[0].content.split('b')[1] | tojson }}|{% set x %}{{ messages[0].content[1:] }}{% endset %}{{ x }}>";
    static const tg_chat_message messages[] = {{"user", "a\"bc", 4}, {"assistant", " xy ", 4}};
    static const char text[] = "<a\"bc|XY|[a\"Bc]|\"c\"|\"bc>", marks[] = "011110110011010001001110";
    rendering r = render(template, messages, 2, &(tg_chat_params){0});
    assert_int_equal(r.status, TG_OK);
    assert_int_equal(r.n, strlen(text));
    assert_memory_equal(r.text, text, r.n);
    for (size_t i = 0; i < r.n; i++)
        if ((r.plain[i] != 0) != marks[i] - '0')
            fail_msg("byte %zu of %s: %d", i, text, r.plain[i]);
    done(&r);
    r = render(template, messages, 2, &(tg_chat_params){.special = true});
    assert_null(memchr(r.plain, 1, r.n));
    done(&r);
}

/* Tokens that mark the turns, and are not special, come from no message; other ones that the author has added do, and
 * from answers all that are not special. */
static void test_markers(void **state)
{
    (void)state;
    tg_tokenizer *t = tokenizer_of(load_patched("small-a.json", NULL), 1000);
    static const tg_chat_message messages[] = {{"user", "[pause]the end", 14}, {"assistant", "[pause]<|endoftext|>", 20}};
    const tg_chat_params params = {.jinja = "{% for m in messages %}[pause]{{ m.content }}{{ eos_token }}{% endfor %}"};
    enum { END = 0, PAUSE = 900, THE_END = 901 };
    int32_t *ids;
    size_t n, n_end = 0, n_pause = 0, n_the_end = 0;
    assert_int_equal(tg_chat_encode(t, "model", &params, messages, 2, &ids, &n, NULL), TG_OK);
    for (size_t i = 0; i < n; i++) {
        n_end += ids[i] == END;
        n_pause += ids[i] == PAUSE;
        n_the_end += ids[i] == THE_END;
    }
    assert_int_equal(n_pause, 3); /* two of the template, and the answer's */
    assert_int_equal(n_the_end, 1);
    assert_int_equal(n_end, 0); /* this tokenizer names no end of text */
    tg_free(ids);
    tg_tokenizer_free(t);
}

/* No bytes of a template may do harm: pieces of the known ones, cut and put together anew. */
static void test_fuzz(void **state)
{
    (void)state;
    const char *from, *other;
    char text[4096];
    for (int round = 0; round < 20000; round++) {
        tg_chat_template(rand_int(0, 6), &from);
        tg_chat_template(rand_int(0, 6), &other);
        int n = snprintf(text, sizeof text, "%.*s%s", rand_int(0, (int)strlen(from)), from,
                         other + rand_int(0, (int)strlen(other)));
        for (int spoil = n ? rand_int(0, 3) : 0; spoil > 0; spoil--)
            text[rand_int(0, n - 1)] = "{}%#-'\"()[]|.~ \n\\x1"[rand_int(0, 19)];
        rendering r = render(text, hello, 2, &(tg_chat_params){0});
        assert_true(r.status == TG_OK || r.err.message[0]);
        done(&r);
    }
}

/* ---- where a folder has its template -------------------------------------------------------------- */

static void found(const char *const (*files)[2], const char *wanted, tg_status status)
{
    char *text, name[64];
    tg_error err = {0};
    scratch_mkdir("model");
    scratch_text("model/config.json", "{\"model_type\": \"gpt2\"}");
    scratch_write("model/model.safetensors", "\2\0\0\0\0\0\0\0{}", 10);
    for (; (*files)[0]; files++) {
        snprintf(name, sizeof name, "model/%s", (*files)[0]);
        scratch_text(name, (*files)[1]);
    }
    tg_container *c = accepted_at(scratch_path("model"));
    assert_int_equal(tg_chat_find(c, &text, &err), status);
    if (wanted)
        assert_string_equal(text, wanted);
    else
        assert_null(text);
    tg_free(text);
    tg_container_free(c);
    scratch_remove("model");
}

#define FILES(...) ((const char *const[][2]){__VA_ARGS__, {NULL, NULL}})
#define CONFIG     "tokenizer_config.json"

static void test_folder(void **state)
{
    (void)state;
    found(FILES({NULL, NULL}), NULL, TG_OK);
    found(FILES({CONFIG, "{}"}), NULL, TG_OK);
    found(FILES({CONFIG, "{\"chat_template\": null}"}), NULL, TG_OK);
    found(FILES({CONFIG, "{\"chat_template\": [{\"name\": \"tool_use\", \"template\": \"t\"}]}"}), NULL, TG_OK);
    found(FILES({CONFIG, "{\"chat_template\": \"a\\nb\"}"}), "a\nb", TG_OK);
    found(FILES({CONFIG, "{\"chat_template\": [{\"name\": \"tool_use\", \"template\": \"t\"}, "
                         "{\"name\": \"default\", \"template\": \"d\"}]}"}), "d", TG_OK);
    found(FILES({CONFIG, "{\"chat_template\": \"old\"}"}, {"chat_template.json", "{\"chat_template\": \"json\"}"}), "json",
          TG_OK);
    found(FILES({CONFIG, "{\"chat_template\": \"old\"}"}, {"chat_template.json", "{\"chat_template\": \"json\"}"},
                {"chat_template.jinja", "jinja\n"}), "jinja\n", TG_OK);
    found(FILES({CONFIG, "{\"chat_template\": "}), NULL, TG_E_MODEL);
}

static int list_templates(void)
{
    json_t *all = json_object();
    const char *text, *name;
    for (int i = 0; (name = tg_chat_template(i, &text)); i++)
        json_object_set_new(all, name, json_string(text));
    json_dumpf(all, stdout, 0);
    json_decref(all);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "--templates"))
        return list_templates();
    setenv("TZ", "UTC", 1);
    if (argc > 1) {
        cases_path = argv[1];
        const struct CMUnitTest one[] = {cmocka_unit_test(test_cases)};
        return cmocka_run_group_tests(one, NULL, NULL);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases), cmocka_unit_test(test_refused), cmocka_unit_test(test_deep),
        cmocka_unit_test(test_plain), cmocka_unit_test(test_fuzz),    cmocka_unit_test(test_folder),  cmocka_unit_test(test_markers),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
