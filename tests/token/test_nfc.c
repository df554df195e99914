/* Tests of nfc.c. */
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
#include "token/nfc.h"

/* The normal form on the heap, NUL-terminated, also when nothing changes. */
static char *nfc(const char *text, size_t n, size_t *n_out)
{
    uint8_t *out;
    tg_error err = {0};
    assert_int_equal(tg_nfc((const uint8_t *)text, n, &out, n_out, &err), TG_OK);
    if (!out)
        *n_out = n;
    char *copy = calloc(*n_out + 1, 1);
    assert_non_null(copy);
    if (*n_out)
        memcpy(copy, out ? out : (const uint8_t *)text, *n_out);
    free(out);
    return copy;
}

static void expect(const char *text, const char *wanted)
{
    size_t n;
    char *got = nfc(text, strlen(text), &n);
    assert_string_equal(got, wanted);
    free(got);
}

static void examples_of_the_standard(void **state)
{
    (void)state;
    expect("", "");
    expect("plain, with e\xcc\x81 and ASCII", "plain, with \xc3\xa9 and ASCII");
    expect("\xe2\x84\xab", "\xc3\x85");                             /* ANGSTROM SIGN */
    expect("\xe2\x84\xa6", "\xce\xa9");                             /* OHM SIGN */
    expect("\xe1\xb8\x8b\xcc\xa3", "\xe1\xb8\x8d\xcc\x87");         /* d, dot above, then below */
    expect("q\xcc\x87\xcc\xa3", "q\xcc\xa3\xcc\x87");               /* ordered, nothing to join */
    expect("\xef\xac\x81", "\xef\xac\x81");                         /* compatibility: fi stays */
    expect("\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8", "\xea\xb0\x81"); /* Hangul L V T */
    expect("\xea\xb0\x80\xe1\x86\xa8", "\xea\xb0\x81");             /* LV and T */
    expect("\xea\xb0\x81\xe1\x86\xa8", "\xea\xb0\x81\xe1\x86\xa8"); /* LVT and T do not join */
    expect("\xe0\xa5\x98", "\xe0\xa4\x95\xe0\xa4\xbc");             /* excluded from composition */
    expect("\xe1\xba\x9b\xcc\xa3", "\xe1\xba\x9b\xcc\xa3"); /* long s, dot above, dot below */
    expect("\xcc\x81"
           "e\xcc\x81",
           "\xcc\x81\xc3\xa9"); /* a mark first */
}

/* Every code point, twice, around marks that join and reorder: as the reference has it. */
static void every_code_point(void **state)
{
    (void)state;
    uint64_t digest = FNV_START;
    for (uint32_t code = 0; code < 0x110000; code++) {
        if (code >= 0xd800 && code <= 0xdfff)
            continue;
        uint8_t text[16] = "e";
        size_t n = 1, n_out;
        n += (size_t)tg_utf8_encode(code, text + n);
        memcpy(text + n, "\xcc\xa3\xcc\x81", 4);
        n += 4;
        n += (size_t)tg_utf8_encode(code, text + n);
        char *out = nfc((const char *)text, n, &n_out);
        digest = fnv_bytes(digest, (const uint8_t *)out, n_out);
        free(out);
    }
    assert_true(digest == nfc_digest);
}

/* A second pass changes nothing, and bytes that are no UTF-8 stay where they are. */
static void any_bytes(void **state)
{
    (void)state;
    static const char *const parts[] = {
        "e",    "\xcc\x81", "\xcc\xa3", "\xe1\x84\x80", "\xe1\x85\xa1", "\xe1\x86\xa8",
        "\xff", "\x80",     "\xe1\x84", "\xcc",         "\xe0\xbe\xb2", "\xe0\xbe\x80",
        " "};
    for (int k = 0; k < 20000; k++) {
        char text[64] = "";
        for (int i = rand_int(0, 12); i > 0; i--)
            strcat(text, parts[rand_int(0, (int)(sizeof parts / sizeof *parts) - 1)]);
        size_t n, n2;
        char *once = nfc(text, strlen(text), &n), *twice = nfc(once, n, &n2);
        assert_int_equal(n, n2);
        assert_memory_equal(once, twice, n);
        int bad = 0;
        for (size_t i = 0; i < strlen(text); i++)
            bad += text[i] == '\xff';
        for (size_t i = 0; i < n; i++)
            bad -= once[i] == '\xff';
        assert_int_equal(bad, 0);
        free(once);
        free(twice);
    }
}

/* A million marks on one letter, out of order: no square of it. */
static void long_unit(void **state)
{
    (void)state;
    size_t n = 1 << 20, n_out;
    char *text = malloc(n + 1);
    assert_non_null(text);
    text[0] = 'a';
    for (size_t i = 1; i + 1 < n; i += 2)
        memcpy(text + i, i / 2 % 2 ? "\xcc\xa3" : "\xcc\x81", 2);
    text[n - 1] = 'b';
    double start = clock_seconds();
    char *out = nfc(text, n, &n_out);
    assert_true(clock_seconds() - start < 5);
    assert_memory_equal(out, "\xe1\xba\xa1\xcc\xa3",
                        5); /* a with dot below, the other dots, the accents */
    assert_memory_equal(out + n_out - 3,
                        "\xcc\x81"
                        "b",
                        3);
    free(out);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples_of_the_standard),
        cmocka_unit_test(every_code_point),
        cmocka_unit_test(any_bytes),
        cmocka_unit_test(long_unit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
