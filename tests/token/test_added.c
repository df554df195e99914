/* Tests of added.c. What the flags do in the company of a tokenizer is in the cases of
 * test_tokenizer.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/clock.h"
#include "support/rand.h"
#include "token/added.h"

static void add(tg_added_set *set, tg_added_token token)
{
    token.n_bytes = strlen(token.text);
    assert_int_equal(tg_added_add(set, &token, NULL), TG_OK);
}

static void finish(tg_added_set *set)
{
    assert_int_equal(tg_added_finish(set, NULL, NULL), TG_OK);
}

/* Writes the walk as text: stretches as they are, ids in brackets. */
static void show(const tg_added_set *set, const char *text, bool special, char *out)
{
    tg_added_walk walk = {
        .set = set, .text = (const uint8_t *)text, .n = strlen(text), .special = special};
    size_t from, to;
    int32_t id;
    while (tg_added_next(&walk, &from, &to, &id)) {
        memcpy(out, text + from, to - from);
        out += to - from;
        if (id >= 0) {
            *out++ = '[';
            *out++ = (char)('0' + id);
            *out++ = ']';
        }
    }
    *out = 0;
}

static void expect(const tg_added_set *set, const char *text, bool special, const char *wanted)
{
    char got[256];
    show(set, text, special, got);
    assert_string_equal(got, wanted);
}

static void leftmost_longest(void **state)
{
    (void)state;
    tg_added_set set = {0};
    finish(&set);
    expect(&set, "", true, "");
    expect(&set, "abc", true, "abc");
    tg_added_deinit(&set);
    add(&set, (tg_added_token){.text = "ab", .id = 1});
    add(&set, (tg_added_token){.text = "abcd", .id = 2});
    add(&set, (tg_added_token){.text = "bcde", .id = 3});
    add(&set, (tg_added_token){.text = "e", .id = 4});
    add(&set, (tg_added_token){.text = "\xff\xfe", .id = 5});
    finish(&set);
    expect(&set, "xab", true, "x[1]");
    expect(&set, "abc", true, "[1]c");
    expect(&set, "abcde", true, "[2][4]");
    expect(&set, "bcdeab", true, "[3][1]");
    expect(&set, "bcdab", true, "bcd[1]");
    expect(&set, "\xff\xff\xfe\xff", true, "\xff[5]\xff");
    tg_added_deinit(&set);
}

/* R17: a special token that is not asked for is text, and hides what begins inside it, as in the
 * reference. */
static void special_tokens(void **state)
{
    (void)state;
    tg_added_set set = {0};
    add(&set, (tg_added_token){.text = "<|a|>", .id = 1, .special = true});
    add(&set, (tg_added_token){.text = "a|", .id = 2});
    add(&set, (tg_added_token){.text = "<|", .id = 3});
    finish(&set);
    expect(&set, "x<|a|>y<|a", true, "x[1]y[3]a");
    expect(&set, "x<|a|>y<|a", false, "x<|a|>y[3]a");
    expect(&set, "a|<|a|>a|", false, "[2]<|a|>[2]");
    tg_added_deinit(&set);
}

static void strips_and_words(void **state)
{
    (void)state;
    tg_added_set set = {0};
    add(&set, (tg_added_token){.text = "L", .id = 1, .lstrip = true});
    add(&set, (tg_added_token){.text = "R", .id = 2, .rstrip = true});
    add(&set, (tg_added_token){.text = "W", .id = 3, .single_word = true});
    finish(&set);
    expect(&set, "a \t\xe3\x80\x80L b", true, "a[1] b");
    expect(&set, "a R \xc2\xa0\n b", true, "a [2]b");
    expect(&set, "R L", true, "[2][1]");
    expect(&set, "  L", true, "[1]");
    expect(&set, "R  ", true, "[2]");
    expect(&set, "\xa0L\xff", true, "\xa0[1]\xff"); /* a stray byte is no space */
    expect(&set, "W W. -W-", true, "[3] [3]. -[3]-");
    expect(&set, "aW Wa W1 _W \xc3\xa9W W\xcc\x81", true, "aW Wa W1 _W \xc3\xa9W W\xcc\x81");
    expect(&set, "\xffW\xc3", true, "\xff[3]\xc3");
    tg_added_deinit(&set);
}

static void the_same_text_twice(void **state)
{
    (void)state;
    tg_added_set set = {0};
    tg_error err;
    add(&set, (tg_added_token){.text = "b", .id = 1});
    add(&set, (tg_added_token){.text = "a", .id = 2});
    add(&set, (tg_added_token){.text = "b", .id = 3});
    assert_int_equal(tg_added_finish(&set, "file", &err), TG_E_MODEL);
    assert_string_equal(err.message, "file: added token 'b' is there twice");
    tg_added_deinit(&set);
}

/* Against trying every token at every place. */
static void equals_the_definition(void **state)
{
    (void)state;
    for (int round = 0; round < 300; round++) {
        tg_added_set set = {0};
        char texts[8][8], text[64], got[256], wanted[256], *w = wanted;
        int n = 0;
        for (int k = rand_int(1, 8); k > 0; k--) {
            int length = rand_int(1, 6), same = 0;
            for (int i = 0; i < length; i++)
                texts[n][i] = (char)('a' + rand_int(0, 1));
            texts[n][length] = 0;
            for (int i = 0; i < n; i++)
                same |= strcmp(texts[i], texts[n]) == 0;
            if (!same)
                add(&set, (tg_added_token){.text = texts[n], .id = n}), n++;
        }
        finish(&set);
        int length = rand_int(0, 60);
        for (int i = 0; i < length; i++)
            text[i] = (char)('a' + rand_int(0, 1));
        text[length] = 0;
        for (const char *s = text; *s;) {
            int best = -1;
            for (int i = 0; i < n; i++)
                if (strncmp(s, texts[i], strlen(texts[i])) == 0 &&
                    (best < 0 || strlen(texts[i]) > strlen(texts[best])))
                    best = i;
            if (best < 0) {
                *w++ = *s++;
                continue;
            }
            *w++ = '[', *w++ = (char)('0' + best), *w++ = ']';
            s += strlen(texts[best]);
        }
        *w = 0;
        show(&set, text, true, got);
        assert_string_equal(got, wanted);
        tg_added_deinit(&set);
    }
}

static void long_text(void **state)
{
    (void)state;
    enum { N = 1 << 20 };
    tg_added_set set = {0};
    char *spaces = malloc(N + 1);
    assert_non_null(spaces);
    memset(spaces, ' ', N);
    spaces[N] = 0;
    add(&set, (tg_added_token){.text = "<l>", .id = 1, .lstrip = true});
    add(&set,
        (tg_added_token){.text = "               x", .id = 2, .lstrip = true, .rstrip = true});
    finish(&set);
    memcpy(spaces + N - 3, "<l>", 3);
    tg_added_walk walk = {.set = &set, .text = (const uint8_t *)spaces, .n = N};
    size_t from, to;
    int32_t id;
    double start = clock_seconds();
    assert_true(tg_added_next(&walk, &from, &to, &id));
    assert_int_equal(from, 0);
    assert_int_equal(to, 0);
    assert_int_equal(id, 1);
    assert_true(tg_added_next(&walk, &from, &to, &id));
    assert_int_equal(id, -1);
    assert_false(tg_added_next(&walk, &from, &to, &id));
    assert_true(clock_seconds() - start < 5);
    tg_added_deinit(&set);
    free(spaces);
}

/* Tokens that take white space along, and are white space: what another took along is theirs as well unless they take it
 * from the left, as in the reference (which aborts where there is less than nothing left). */
static void white_space(void **state)
{
    static const struct {
        tg_added_token first, second;
        const char *text, *wanted;
    } cases[] = {
        {{.text = " ", .rstrip = true}, {.text = "x"}, "a   b", "a[1][1][1]b"},
        {{.text = " ", .rstrip = true, .lstrip = true}, {.text = "x"}, "a   b   ", "a[1]b[1]"},
        {{.text = " ", .rstrip = true, .lstrip = true}, {.text = "\n"}, "a  \n b \nc", "a[1][2][1]b[1][2]c"},
        {{.text = "x", .rstrip = true}, {.text = " "}, "x \n b", "[1][2]\n[2]b"},
        {{.text = "x", .rstrip = true}, {.text = " ", .lstrip = true}, "x   b ", "[1]b[2]"},
        {{.text = "x", .rstrip = true}, {.text = "\n", .lstrip = true}, "x \n b\n", "[1]b[2]"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tg_added_set set = {0};
        tg_added_token first = cases[i].first, second = cases[i].second;
        first.id = 1;
        second.id = 2;
        add(&set, first);
        add(&set, second);
        finish(&set);
        expect(&set, cases[i].text, true, cases[i].wanted);
        tg_added_deinit(&set);
    }
}

/* Each would look to its end anew. */
static void much_white_space(void **state)
{
    enum { N = 1 << 20 };
    static char text[N];
    (void)state;
    tg_added_set set = {0};
    add(&set, (tg_added_token){.text = " ", .id = 1, .rstrip = true});
    finish(&set);
    memset(text, ' ', N);
    tg_added_walk walk = {.set = &set, .text = (const uint8_t *)text, .n = N};
    size_t from, to, n = 0;
    int32_t id;
    double start = clock_seconds();
    while (tg_added_next(&walk, &from, &to, &id))
        n += id == 1;
    assert_int_equal(n, N);
    assert_true(clock_seconds() - start < 5);
    tg_added_deinit(&set);
}

/* Texts that nearly spell long tokens, again and again, and long tokens that others stand in. */
static void long_tokens(void **state)
{
    enum { N = 4 << 20, LONG = 4000 };
    static char text[N], tokens[4][LONG + 2];
    (void)state;
    for (int round = 0; round < 4; round++) {
        tg_added_set set = {0};
        memset(text, 'a', N);
        for (int i = 0; i < 4; i++) {
            memset(tokens[i], i < 3 ? 'a' : 'b', LONG);
            tokens[i][LONG] = (char)('b' + i);
            tokens[i][round & 2 && i > 0 ? LONG / (1 << i) : LONG + 1] = 0;
            if (round & 1)
                tokens[i][0] = 'c';
            add(&set, (tg_added_token){.text = tokens[i], .id = i});
        }
        finish(&set);
        tg_added_walk walk = {.set = &set, .text = (const uint8_t *)text, .n = N};
        size_t from, to, n = 0;
        int32_t id;
        double start = clock_seconds();
        while (tg_added_next(&walk, &from, &to, &id))
            n++;
        assert_true(clock_seconds() - start < 5);
        assert_int_equal(n, round == 2 ? N / (LONG / 2) + 1 + (N % (LONG / 2) >= LONG / 4) : 1);
        tg_added_deinit(&set);
    }
}

/* What stands in a text, against looking for each; and linear in it, with tokens that hold each other. */
static void marked(void **state)
{
    enum { N = 1 << 20 };
    static char text[N];
    uint8_t written[200] = {0};
    (void)state;
    for (int round = 0; round < 300; round++) {
        tg_added_set set = {0};
        char token[8];
        for (int k = 0; k < 126; k++) { /* all of one to six bytes */
            int length = 1, first = 2;
            for (; k >= first * 2 - 2; first *= 2)
                length++;
            for (int i = 0; i < length; i++)
                token[i] = (char)('a' + ((k - first + 2) >> i & 1));
            token[length] = 0;
            if (rand_int(0, 3) == 0)
                add(&set, (tg_added_token){.text = token, .id = k});
        }
        finish(&set);
        size_t n = (size_t)rand_int(0, 20);
        for (size_t i = 0; i < n; i++)
            text[i] = (char)('a' + rand_int(0, 2) / 2);
        memset(written, 0, sizeof written);
        tg_added_mark(&set, text, n, written);
        for (size_t i = 0; i < set.n; i++)
            assert_int_equal(written[i], memmem(text, n, set.tokens[i].text, set.tokens[i].n_bytes) != NULL);
        tg_added_deinit(&set);
    }
    tg_added_set set = {0};
    char token[201];
    memset(token, 'a', sizeof token);
    for (int i = 0; i < 200; i++) {
        token[200 - i] = 0;
        add(&set, (tg_added_token){.text = token, .id = i});
    }
    finish(&set);
    memset(text, 'a', N);
    memset(written, 0, sizeof written);
    double start = clock_seconds();
    tg_added_mark(&set, text, N, written);
    assert_true(clock_seconds() - start < 5);
    for (int i = 0; i < 200; i++)
        assert_int_equal(written[i], 1);
    tg_added_deinit(&set);
}

/* Limits: of all bytes together, and what no test of a model comes near to. */
static void very_many_bytes(void **state)
{
    enum { EACH = 4096, MOST = TG_MAX_ADDED_BYTES / EACH };
    static char text[EACH + 1];
    (void)state;
    for (int more = 0; more < 2; more++) {
        tg_added_set set = {0};
        tg_error err;
        memset(text, 'a', EACH);
        for (int i = 0; i < MOST; i++) {
            snprintf(text, sizeof text, "%4d", i);
            text[4] = 'a';
            add(&set, (tg_added_token){.text = text, .id = i});
        }
        if (more)
            add(&set, (tg_added_token){.text = "x", .id = MOST});
        assert_int_equal(tg_added_finish(&set, "file", &err), more ? TG_E_MODEL : TG_OK);
        if (more)
            assert_string_equal(err.message, "file: added tokens are too long together (found 16777217 bytes, allowed 16777216)");
        tg_added_deinit(&set);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leftmost_longest),      cmocka_unit_test(special_tokens),
        cmocka_unit_test(strips_and_words),      cmocka_unit_test(the_same_text_twice),
        cmocka_unit_test(equals_the_definition), cmocka_unit_test(long_text),
        cmocka_unit_test(white_space),           cmocka_unit_test(much_white_space),
        cmocka_unit_test(marked),
        cmocka_unit_test(long_tokens),           cmocka_unit_test(very_many_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
