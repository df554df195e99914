/* Conversations as tokens, on the model that comes along: one BOS, no special token out of a message, the token that
 * ends an answer, and turns over the cache. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "tinygpt/tinygpt.h"

static tg_model *model;
enum { MARK = 0 }; /* <|endoftext|>: it begins texts and ends them, and the model adds it before them */

static int load(void **state)
{
    (void)state;
    return (int)tg_model_load(&model, "models/tales.gguf", 0, NULL);
}

static int unload(void **state)
{
    (void)state;
    tg_model_free(model);
    return 0;
}

static const char *const story = "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}{{ eos_token }}\n"
                                 "{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}";
static const char *const bare = "{% for m in messages %}{{ m.content }}\n{% endfor %}";

static int32_t *tokens(const char *jinja, bool special, const tg_chat_message *messages, size_t n, size_t *n_ids)
{
    int32_t *ids;
    tg_error err = {0};
    tg_status status = tg_chat_tokens(model, &(tg_chat_params){.jinja = jinja, .special = special}, messages, n, &ids, n_ids, &err);
    if (status != TG_OK)
        fail_msg("%s", err.message);
    return ids;
}

static size_t count_marks(const int32_t *ids, size_t n)
{
    size_t n_marks = 0;
    for (size_t i = 0; i < n; i++)
        n_marks += ids[i] == MARK;
    return n_marks;
}

/* U09: whether the template writes BOS, the model adds it, or both, there is one. */
static void u09_one_bos(void **state)
{
    (void)state;
    const tg_chat_message hello[] = {{"user", "Hello", 5}};
    const char *const templates[] = {bare, "{{ bos_token }}{% for m in messages %}{{ m.content }}\n{% endfor %}"};
    size_t n, n_plain;
    int32_t *plain;
    assert_int_equal(tg_tokenize(model, "Hello\n", 6, TG_TOK_BOS, &plain, &n_plain, NULL, NULL), TG_OK);
    assert_int_equal(plain[0], MARK);
    for (size_t i = 0; i < 2; i++) {
        int32_t *ids = tokens(templates[i], false, hello, 1, &n);
        assert_int_equal(n, n_plain);
        assert_memory_equal(ids, plain, n * sizeof *ids);
        tg_free(ids);
    }
    tg_free(plain);
}

/* U06, R17: what a message spells is text, unless that is asked for; what the template writes is not. */
static void u06_messages_are_text(void **state)
{
    (void)state;
    const tg_chat_message messages[] = {{"user", "a<|endoftext|>b", 15}, {"assistant", "<|endoftext|>", 13}};
    size_t n;
    int32_t *ids = tokens(story, false, messages, 2, &n);
    assert_int_equal(count_marks(ids, n), 3); /* the beginning, and behind each message */
    char text[256] = "";
    for (size_t i = 0; i < n; i++) {
        size_t n_bytes;
        const char *bytes = tg_token_bytes(model, ids[i], &n_bytes);
        strncat(text, bytes, n_bytes);
    }
    assert_string_equal(text, "<|endoftext|>user: a<|endoftext|>b<|endoftext|>\n"
                              "assistant: <|endoftext|><|endoftext|>\nassistant:");
    tg_free(ids);
    ids = tokens(story, true, messages, 2, &n);
    assert_int_equal(count_marks(ids, n), 5);
    tg_free(ids);
    /* Nor does a half in the template and a half in a message make one. */
    const tg_chat_message half[] = {{"user", "oftext|>", 8}};
    ids = tokens("{% for m in messages %}<|end{{ m.content }}{% endfor %}", false, half, 1, &n);
    assert_int_equal(count_marks(ids, n), 1);
    tg_free(ids);
}

/* Where no message spells one, the tokens are those of the text. */
static void tokens_are_the_text_s(void **state)
{
    (void)state;
    const tg_chat_message messages[] = {{"system", " Be brief.\n", 11}, {"user", "\n\nOnce ", 7}, {"assistant", "upon", 4}, {"user", "", 0}};
    const char *jinja = story, *name = "";
    for (int i = 0; name; name = tg_chat_template(i++, &jinja)) {
        const tg_chat_params params = {.jinja = jinja};
        char *text;
        size_t n_bytes, n, n_want;
        int32_t *want, *ids = tokens(jinja, false, messages, 4, &n);
        assert_int_equal(tg_chat_text(model, &params, messages, 4, &text, &n_bytes, NULL), TG_OK);
        assert_int_equal(tg_tokenize(model, text, n_bytes, TG_TOK_SPECIAL, &want, &n_want, NULL, NULL), TG_OK);
        size_t added = n_want == 0 || want[0] != MARK;
        assert_int_equal(n, n_want + added);
        assert_memory_equal(ids + added, want, n_want * sizeof *ids);
        tg_free(text);
        tg_free(want);
        tg_free(ids);
    }
}

static void end_of_an_answer(void **state)
{
    (void)state;
    const struct {
        const char *jinja;
        int32_t end;
    } cases[] = {
        {story, MARK},
        {bare, -1},
        {"{% for m in messages %}{{ m.content }} \n{{ eos_token }}{% endfor %}", MARK},
        {"{% for m in messages %}{{ m.content }}.{{ eos_token }}{% endfor %}", -1},
        {"{{ raise_exception('no') }}", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(tg_chat_end(model, &(tg_chat_params){.jinja = cases[i].jinja}), cases[i].end);
    int32_t *ids;
    size_t n;
    tg_error err = {0};
    assert_null(tg_model_chat_template(model));
    assert_int_equal(tg_chat_tokens(model, NULL, NULL, 0, &ids, &n, &err), TG_E_MODEL);
    assert_non_null(strstr(err.message, "no chat template"));
    assert_null(ids);
}

/* ---- turns ------------------------------------------------------------------------------------- */

enum { ANSWER = 12, TURNS = 3 };

typedef struct answer {
    char text[512];
    size_t n;
} answer;

static bool keep(void *arg, const tg_piece *piece)
{
    answer *a = arg;
    memcpy(a->text + a->n, piece->text, piece->n_bytes);
    a->n += piece->n_bytes;
    return true;
}

static tg_generator *new_generator(tg_session **session)
{
    tg_generator *g;
    assert_int_equal(tg_session_create(session, model, &(tg_session_params){.n_ctx = 512, .n_threads = 1}, NULL), TG_OK);
    assert_int_equal(tg_generator_create(&g, model, *session, NULL), TG_OK);
    return g;
}

static uint64_t ask(tg_generator *g, const int32_t *ids, size_t n, answer *a)
{
    tg_generator_info before, info;
    tg_generator_get_info(g, &before);
    *a = (answer){.n = 0};
    const tg_request r = {.ids = ids, .n_ids = n, .n_max = ANSWER, .n_top = -1, .sink = keep, .arg = a,
                          .sampling = {.ignore_eos = true}};
    assert_int_equal(tg_generator_add(g, &r, NULL), TG_OK);
    do {
        assert_int_equal(tg_generator_step(g, NULL), TG_OK);
        tg_generator_get_info(g, &info);
    } while (info.n_active > 0);
    return info.n_reused - before.n_reused;
}

/* Turn by turn over one cache, answers are what they are when the whole is evaluated at once, and only what is new
 * is computed. */
static void turns_over_the_cache(void **state)
{
    (void)state;
    tg_session *session, *fresh;
    tg_generator *g = new_generator(&session);
    tg_chat_message messages[2 * TURNS];
    answer answers[TURNS], at_once;
    size_t before = 0;
    for (int i = 0; i < TURNS; i++) {
        size_t n;
        messages[2 * i] = (tg_chat_message){"user", "The fox said to the hen:", 24};
        int32_t *ids = tokens(story, false, messages, (size_t)(2 * i + 1), &n);
        uint64_t reused = ask(g, ids, n, &answers[i]);
        tg_generator *alone = new_generator(&fresh);
        assert_int_equal(ask(alone, ids, n, &at_once), 0);
        assert_int_equal(answers[i].n, at_once.n);
        assert_memory_equal(answers[i].text, at_once.text, at_once.n);
        /* the last token drawn is not in the cache; the rest may be cut otherwise when it is text again */
        assert_true(i == 0 ? reused == 0 : reused >= before && reused <= before + ANSWER - 1);
        before = n;
        messages[2 * i + 1] = (tg_chat_message){"assistant", answers[i].text, answers[i].n};
        tg_generator_free(alone);
        tg_session_free(fresh);
        tg_free(ids);
    }
    tg_generator_free(g);
    tg_session_free(session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(u09_one_bos),      cmocka_unit_test(u06_messages_are_text),
        cmocka_unit_test(tokens_are_the_text_s), cmocka_unit_test(end_of_an_answer),
        cmocka_unit_test(turns_over_the_cache),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
