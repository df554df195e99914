/* Tests of pretokenize.c. Texts as hard as they come are in test_tokenizer.c; here each code point
 * is held to the reference in every place that a pattern has for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "support/clock.h"
#include "support/fnv.h"
#include "support/rand.h"
#include "token/data/digests.h"
#include "token/pretokenize.h"

enum { N_ROWS = sizeof piece_digests / sizeof *piece_digests };

/* The pieces of `text` are those of `wanted`, which has a | between them. */
static void expect(const char *name, const char *text, const char *wanted)
{
    const tg_pretokenizer *p = tg_pretokenizer_by_name(name);
    char got[256] = "";
    size_t n = strlen(text), k = 0;
    for (size_t i = 0, length; i < n; i += length) {
        length = tg_pretokenizer_piece(p, (const uint8_t *)text + i, n - i);
        if (i)
            got[k++] = '|';
        memcpy(got + k, text + i, length);
        k += length;
    }
    assert_string_equal(got, wanted);
}

static void readable_examples(void **state)
{
    (void)state;
    expect("gpt-2", "Hello my friend, how's it?", "Hello| my| friend|,| how|'s| it|?");
    expect("gpt-2", "a  b\n\n c ", "a| | b|\n\n| c| ");
    expect("gpt-2", "He'Ll 1234 x2", "He|'|Ll| 1234| x|2");
    expect("smollm", "He'll 12  3", "He|'ll| |1|2|  |3");
    expect("llama-bpe", "He'LL 12345 \"Hi\"\r\n\n  x", "He|'LL| |123|45| \"|Hi|\"\r\n\n| | x");
    expect("llama-bpe", "a\t\n \n  b.c\tD", "a|\t\n \n| | b|.c|\tD");
    expect("qwen2", "it'\xc5\xbf 123", "it|'\xc5\xbf| |1|2|3");
    expect("gpt-4o", "camelCase HTTPServer's 12345", "camel|Case| HTTPServer's| |123|45");
    expect("gpt-4o", "\xe6\x97\xa5HTTP'LL //\n/x", "\xe6\x97\xa5|HTTP'LL| //\n/|x");
    expect("tekken", "It's 42 fooBar", "It|'s| |4|2| foo|Bar");
    expect("qwen35", "q\xcc\x81x !\xcc\x81", "q\xcc\x81x| !|\xcc\x81");
}

static void names(void **state)
{
    (void)state;
    assert_ptr_equal(tg_pretokenizer_by_name("gpt2"), tg_pretokenizer_by_name("gpt-2"));
    assert_ptr_equal(tg_pretokenizer_by_name("llama3"), tg_pretokenizer_by_name("llama-bpe"));
    assert_null(tg_pretokenizer_by_name("default"));
    assert_null(tg_pretokenizer_by_name(""));
    assert_ptr_equal(tg_pretokenizer_by_name("llama4"), tg_pretokenizer_by_name("gpt-4o"));
    assert_null(tg_pretokenizer_by_regex("\\s+", false));
    for (size_t i = 0; tg_pretokenizer_at(i); i++) {
        const tg_pretokenizer *p = tg_pretokenizer_at(i);
        assert_ptr_equal(tg_pretokenizer_by_name(p->name), p);
        for (size_t k = 0; k < 2 && p->regex[k]; k++) {
            const tg_pretokenizer *first = tg_pretokenizer_by_regex(p->regex[k], p->isolated != 0);
            assert_ptr_equal(first->scan, p->scan);
            assert_int_equal(first->max_digits, p->max_digits);
        }
    }
}

static void every_code_point(void **state)
{
    (void)state;
    assert_null(tg_pretokenizer_at(N_ROWS)); /* each row of the table has its digest */
    for (size_t row = 0; row < N_ROWS; row++) {
        const tg_pretokenizer *p = tg_pretokenizer_by_name(piece_digests[row].pre);
        uint64_t digest = FNV_START;
        assert_non_null(p);
        for (uint32_t code = 0; code < 0x110000; code++) {
            if (code >= 0xd800 && code <= 0xdfff)
                continue;
            uint8_t c[4], text[64];
            size_t k = (size_t)tg_utf8_encode(code, c), n = 0;
            for (const char *form = "a.1 ..\n'.A.A.b"; *form; form++)
                if (*form == '.') {
                    memcpy(text + n, c, k);
                    n += k;
                } else {
                    text[n++] = (uint8_t)*form;
                }
            for (size_t i = 0, length; i < n; i += length) {
                length = tg_pretokenizer_piece(p, text + i, n - i);
                digest = fnv_add(digest, length);
            }
        }
        if (digest != piece_digests[row].digest)
            print_error("%s\n", p->name);
        assert_true(digest == piece_digests[row].digest);
    }
}

/* Whatever the bytes, pieces are not empty and do not reach past the end. (Each text is a block of
 * its own, so that the address sanitizer sees a byte too many.) */
static void any_bytes(void **state)
{
    (void)state;
    static const char set[] = " \n\r'sSrelLvdm1\xc5\xbf\xc2\xa0\xe4\xb8\x80\xff\xf0\x9f";
    for (int k = 0; k < 40000; k++) {
        const tg_pretokenizer *p = tg_pretokenizer_at((size_t)k % N_ROWS);
        size_t n = (size_t)rand_int(1, 12);
        uint8_t *text = malloc(n);
        assert_non_null(text);
        for (size_t i = 0; i < n; i++)
            text[i] = (uint8_t)set[rand_int(0, sizeof set - 2)];
        for (size_t i = 0, length; i < n; i += length) {
            length = tg_pretokenizer_piece(p, text + i, n - i);
            assert_true(length >= 1 && length <= n - i);
        }
        free(text);
    }
}

/* R11: runs that a backtracking engine takes the square of. */
static void long_runs(void **state)
{
    (void)state;
    static const char *const units[] = {"a",
                                        " ",
                                        "\n",
                                        " \n",
                                        "\n ",
                                        "1",
                                        "'",
                                        "\xe5\xad\x97",
                                        "\xff",
                                        "' ",
                                        "\xcc\x81",
                                        "A",
                                        "A\xcc\x81",
                                        ("\xe5\xad\x97"
                                         "A"),
                                        "/",
                                        "/\n"};
    enum { N = 1 << 20 };
    uint8_t *text = malloc(N);
    assert_non_null(text);
    double start = clock_seconds();
    for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
        for (size_t i = 0; i < N; i++)
            text[i] = (uint8_t)units[u][i % strlen(units[u])];
        for (size_t row = 0; tg_pretokenizer_at(row); row++)
            for (size_t i = 0; i < N;)
                i += tg_pretokenizer_piece(tg_pretokenizer_at(row), text + i, N - i);
    }
    assert_true(clock_seconds() - start < 20);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readable_examples), cmocka_unit_test(names),
        cmocka_unit_test(every_code_point),  cmocka_unit_test(any_bytes),
        cmocka_unit_test(long_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
