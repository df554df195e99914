/* Many texts together are the texts that each is alone: whatever stands in the same batch, begins like it, waits for
 * room, is guessed or interrupted. On the model that comes along, whose weights are quantised. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tinygpt/tinygpt.h"

static tg_model *model;

enum { TEXT_MAX = 8192, N_PROMPTS = 12 };

/* Beginnings in common, one prompt twice, one that is the beginning of another, one alone. */
static const char *const prompts[N_PROMPTS] = {
    "There was once a king who had three daughters, and the youngest was so beautiful that the sun himself",
    "There was once a king who had three daughters, and the youngest was so beautiful that the moon",
    "There was once a king who had three daughters, and the eldest said to her sisters in the garden",
    "There was once a king who had three daughters",
    "Once upon a time",
    "Once upon a time",
    "The fox said to the hen that lived in the yard behind the mill, where the miller",
    "The fox said to the hen that lived in the yard behind the mill, where the cat",
    "x",
    "One day he went into the forest, and one day he went into the forest, and one day he",
    "There was once a king who had three daughters, and the youngest was so beautiful that the sun himself",
    "\"What do you want?\" said the wolf. \"What do you want?\" said the wolf. \"What do",
};

typedef struct text {
    char bytes[TEXT_MAX];
    size_t n;
    int n_pieces, n_tokens;
    int32_t ids[512];
    tg_finish finish;
    int end_after; /* pieces; 0: never */
} text;

static bool take(void *arg, const tg_piece *piece)
{
    text *t = arg;
    assert_int_equal(t->finish, TG_FINISH_NONE);
    assert_true(t->n + piece->n_bytes <= TEXT_MAX);
    memcpy(t->bytes + t->n, piece->text, piece->n_bytes);
    t->n += piece->n_bytes;
    if (piece->id >= 0 && piece->finish != TG_FINISH_END)
        t->ids[t->n_tokens++] = piece->id;
    t->finish = piece->finish;
    return ++t->n_pieces != t->end_after;
}

static tg_session *session_of(int n_ctx, int n_ctx_seq, int n_batch, int n_seq)
{
    tg_session *s;
    tg_error err;
    const tg_session_params p = {.n_threads = 2, .n_ctx = n_ctx, .n_ctx_seq = n_ctx_seq, .n_batch = n_batch,
                                 .n_seq_max = n_seq};
    if (tg_session_create(&s, model, &p, &err))
        fail_msg("%s", err.message);
    return s;
}

static tg_generator *generator_of(tg_session *s)
{
    tg_generator *g;
    assert_int_equal(tg_generator_create(&g, model, s, NULL), TG_OK);
    return g;
}

static const tg_sampling warm = {.temp = 0.9f, .top_k = 50, .top_p = 0.95f, .last_n = 64, .repeat = 1.1f, .seed = 7};

static void add(tg_generator *g, const char *prompt, tg_request r, text *t)
{
    tg_error err;
    int32_t *ids;
    assert_int_equal(tg_tokenize(model, prompt, strlen(prompt), TG_TOK_BOS, &ids, &r.n_ids, NULL, NULL), TG_OK);
    r.ids = ids;
    r.sink = take;
    r.arg = t;
    *t = (text){.end_after = t->end_after};
    if (tg_generator_add(g, &r, &err))
        fail_msg("%s", err.message);
    tg_free(ids);
}

static tg_generator_info info_of(const tg_generator *g)
{
    tg_generator_info info;
    tg_generator_get_info(g, &info);
    return info;
}

static void run(tg_generator *g)
{
    tg_error err;
    for (int n = 0; info_of(g).n_active > 0; n++) {
        assert_true(n < 20000);
        if (tg_generator_step(g, &err))
            fail_msg("%s", err.message);
    }
}

static tg_request request_of(int i)
{
    tg_request r = {.sampling = warm, .n_max = 20 + 7 * i, .n_top = -1};
    r.sampling.temp = i % 3 ? 0.9f : 0;
    r.sampling.seed = (uint64_t)i;
    return r;
}

/* Each alone, in a session of its own. */
static const text *alone(int i)
{
    static text known[N_PROMPTS];
    static bool done[N_PROMPTS];
    if (!done[i]) {
        tg_session *s = session_of(512, 0, 64, 1);
        tg_generator *g = generator_of(s);
        add(g, prompts[i], request_of(i), &known[i]);
        run(g);
        tg_generator_free(g);
        tg_session_free(s);
        done[i] = true;
    }
    return &known[i];
}

static void same(const text *a, const text *b)
{
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->bytes, b->bytes, a->n);
    assert_int_equal(a->finish, b->finish);
    assert_int_equal(a->n_tokens, b->n_tokens);
    assert_memory_equal(a->ids, b->ids, (size_t)a->n_tokens * sizeof *a->ids);
}

/* All prompts through n_seq slots, in a cache and in batches of these sizes, with so many guesses. */
static tg_generator_info together(int n_ctx, int n_batch, int n_seq, int n_draft)
{
    static text texts[N_PROMPTS];
    tg_session *s = session_of(n_ctx, n_ctx < 512 ? n_ctx : 512, n_batch, n_seq);
    tg_generator *g = generator_of(s);
    for (int i = 0; i < N_PROMPTS;) {
        for (; i < N_PROMPTS && info_of(g).n_active < n_seq; i++) {
            tg_request r = request_of(i);
            r.n_draft = n_draft;
            add(g, prompts[i], r, &texts[i]);
        }
        assert_int_equal(tg_generator_step(g, NULL), TG_OK);
    }
    run(g);
    for (int i = 0; i < N_PROMPTS; i++)
        same(&texts[i], alone(i));
    tg_generator_info info = info_of(g);
    tg_generator_free(g);
    tg_session_free(s);
    return info;
}

static void as_alone(void **state)
{
    (void)state;
    for (int n_seq = 1; n_seq <= 12; n_seq += n_seq < 3 ? 1 : 5)
        for (int n_batch = 1; n_batch <= 64; n_batch *= 8)
            together(4096, n_batch, n_seq, 0);
    assert_true(together(8192, 512, 12, 0).n_reused > 40); /* of prompts that begin alike */
}

/* A cache that holds one or two of them: the others wait, and none is disturbed. */
static void little_room(void **state)
{
    (void)state;
    together(192, 64, 4, 0);
    together(256, 64, 12, 0);
    together(256, 16, 3, 32);
    together(320, 512, 12, 32);
}

static void guesses(void **state)
{
    (void)state;
    for (int n_draft = 1; n_draft <= TG_DRAFT_MAX; n_draft *= 2) {
        tg_generator_info info = together(4096, 64, n_draft < 8 ? 1 : 3, n_draft);
        assert_true(info.n_drafted > 0 && info.n_accepted > 0 && info.n_accepted <= info.n_drafted);
    }
    together(4096, 3, 4, 31);
}

/* A conversation: what is in the cache is gone on with, what differs is computed anew. */
static void goes_on(void **state)
{
    (void)state;
    static text a, b;
    char prompt[2048];
    tg_session *s = session_of(1024, 0, 64, 1), *fresh = session_of(1024, 0, 64, 1);
    tg_generator *g = generator_of(s), *anew = generator_of(fresh);
    const tg_request r = {.sampling = {.top_p = 1}, .n_max = 30, .n_top = -1};
    add(g, prompts[0], r, &a);
    run(g);
    snprintf(prompt, sizeof prompt, "%s%.*s And then", prompts[0], (int)a.n, a.bytes);
    add(g, prompt, r, &b);
    run(g);
    assert_true(info_of(g).n_reused >= 30);
    add(anew, prompt, r, &a);
    run(anew);
    same(&a, &b);
    add(g, prompts[7], r, &b);
    tg_generator_cancel(g);
    assert_int_equal(info_of(g).n_active, 0);
    add(g, prompt, r, &b);
    run(g);
    same(&a, &b);
    tg_generator_free(anew);
    tg_session_free(fresh);
    tg_generator_free(g);
    tg_session_free(s);
}

/* Interruptions at any step lose nothing; a sink that has enough ends its own text alone. */
static void interruptions(void **state)
{
    (void)state;
    static text texts[4];
    tg_session *s = session_of(2048, 512, 16, 4);
    tg_generator *g = generator_of(s);
    for (int i = 0; i < 4; i++) {
        texts[i].end_after = i == 2 ? 5 : 0;
        add(g, prompts[i], request_of(i), &texts[i]);
    }
    for (int n = 0; info_of(g).n_active > 0; n++) {
        tg_error err;
        if (n % 3 == 0)
            tg_session_interrupt(s);
        tg_status status = tg_generator_step(g, &err);
        assert_true(status == TG_OK || status == TG_E_STOPPED);
    }
    for (int i = 0; i < 4; i++)
        if (i != 2)
            same(&texts[i], alone(i));
    assert_int_equal(texts[2].n_pieces, 5);
    assert_memory_equal(texts[2].bytes, alone(2)->bytes, texts[2].n);
    tg_generator_free(g);
    tg_session_free(s);
}

static text finished(tg_request r, int n_ctx)
{
    static text t;
    tg_session *s = session_of(n_ctx, n_ctx, 64, 1);
    tg_generator *g = generator_of(s);
    add(g, "Once upon a time", r, &t);
    run(g);
    tg_generator_free(g);
    tg_session_free(s);
    return t;
}

/* U11, U13, U21: where a text ends, and why. */
static void finishes(void **state)
{
    (void)state;
    int32_t *ids;
    size_t n;
    tg_request r = {.sampling = {.top_p = 1, .ignore_eos = true}, .n_max = 40, .n_top = -1};
    assert_int_equal(tg_tokenize(model, "Once upon a time", 16, TG_TOK_BOS, &ids, &n, NULL, NULL), TG_OK);
    tg_free(ids);
    const text all = finished(r, 512);
    assert_int_equal(all.finish, TG_FINISH_LENGTH);
    assert_int_equal(all.n_tokens, 40);
    text t = finished(r, (int)n + 4);
    assert_int_equal(t.finish, TG_FINISH_CONTEXT);
    assert_int_equal(t.n_tokens, 4);
    t = finished(r, (int)n);
    assert_int_equal(t.finish, TG_FINISH_CONTEXT);
    assert_int_equal(t.n_tokens, 0);
    r.n_max = 0;
    t = finished(r, 512);
    assert_int_equal(t.finish, TG_FINISH_LENGTH);
    assert_int_equal(t.n_pieces, 1);
    r.n_max = 40;

    /* any piece of the text as a stop: the text before its first place */
    for (size_t from = 0; from + 12 < all.n; from += 7)
        for (size_t len = 1; len <= 12; len += 3) {
            const tg_stop_text stop[] = {{"\x01never", 6}, {all.bytes + from, len}};
            size_t first = 0;
            while (memcmp(all.bytes + first, all.bytes + from, len))
                first++;
            r.stop = stop;
            r.n_stop = 2;
            t = finished(r, 512);
            assert_int_equal(t.finish, TG_FINISH_STOP);
            assert_int_equal(t.n, first);
            assert_memory_equal(t.bytes, all.bytes, first);
        }
}

static void refusals(void **state)
{
    (void)state;
    tg_error err;
    static text t;
    tg_session *s = session_of(64, 0, 8, 1);
    tg_generator *g = generator_of(s);
    const int32_t ids[65] = {1, 2};
    const tg_stop_text empty = {"", 0}, stop = {"a", 1};
    const tg_request good = {.ids = ids, .n_ids = 2, .sampling = {.top_p = 1}, .n_max = 3, .n_top = -1, .sink = take, .arg = &t};
    tg_request r = good;
    r.n_ids = 0;
    assert_int_equal(tg_generator_add(g, &r, &err), TG_E_USAGE);
    r.n_ids = 65;
    assert_int_equal(tg_generator_add(g, &r, &err), TG_E_USAGE);
    assert_non_null(strstr(err.message, "found 65, allowed 1 to 64"));
    r = good;
    r.sampling.top_p = 2;
    assert_int_equal(tg_generator_add(g, &r, &err), TG_E_USAGE);
    r = good;
    r.stop = &empty;
    r.n_stop = 1;
    assert_int_equal(tg_generator_add(g, &r, &err), TG_E_USAGE);
    r.stop = &stop;
    r.n_stop = 65;
    assert_int_equal(tg_generator_add(g, &r, &err), TG_E_USAGE);
    r = good;
    r.n_draft = 33;
    assert_int_equal(tg_generator_add(g, &r, &err), TG_E_USAGE);
    assert_int_equal(info_of(g).n_active, 0);
    assert_int_equal(tg_generator_add(g, &good, &err), TG_OK);
    assert_int_equal(tg_generator_add(g, &good, &err), TG_E_USAGE);
    assert_int_equal(info_of(g).n_active, 1);
    run(g);
    assert_int_equal(t.n_pieces, 3);
    assert_int_equal(tg_generator_step(g, &err), TG_OK);
    tg_generator_free(g);
    tg_generator_free(NULL);
    tg_session_free(s);
}

/* U17: of raw logits, always as many as asked for, sorted, ties by id. */
typedef struct scores {
    int n_top, n;
} scores;

static bool take_scores(void *arg, const tg_piece *p)
{
    scores *s = arg;
    assert_int_equal(p->n_top, s->n_top);
    for (int i = 1; i < p->n_top; i++)
        assert_true(p->top[i - 1].logit > p->top[i].logit ||
                    (p->top[i - 1].logit == p->top[i].logit && p->top[i - 1].id < p->top[i].id));
    for (int i = 0; i < p->n_top; i++)
        if (p->top[i].id == p->id)
            assert_true(p->top[i].logit == p->logit);
    assert_true(p->logit < p->lse);
    s->n++;
    return true;
}

static void log_probabilities(void **state)
{
    (void)state;
    tg_session *s = session_of(64, 0, 8, 1);
    tg_generator *g = generator_of(s);
    const int32_t ids[] = {5, 9, 700};
    const tg_logit_bias bias = {11, 30};
    for (int n_top = 0; n_top <= 60; n_top += 30) {
        scores seen = {.n_top = n_top};
        tg_request r = {.ids = ids, .n_ids = 3, .sampling = warm, .n_max = 10, .n_top = n_top, .sink = take_scores, .arg = &seen};
        r.sampling.ignore_eos = true;
        r.sampling.bias = &bias;
        r.sampling.n_bias = n_top == 30;
        assert_int_equal(tg_generator_add(g, &r, NULL), TG_OK);
        run(g);
        assert_int_equal(seen.n, 10);
    }
    tg_generator_free(g);
    tg_session_free(s);
}

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_alone),      cmocka_unit_test(little_room), cmocka_unit_test(guesses),
        cmocka_unit_test(goes_on),       cmocka_unit_test(interruptions), cmocka_unit_test(finishes),
        cmocka_unit_test(refusals),      cmocka_unit_test(log_probabilities),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
