/* pretokenize.c - the table of pre-tokenizers and their two scanners.
 *
 * A new pattern is a row; a scanner too, when neither of these can be told to do it. A scanner
 * gives the first alternative of the expression that matches, with the longest repetition that its
 * look-ahead allows: what a backtracking engine finds, without backtracking. Expected pieces come
 * from the reference (tools/make-token-cases.py). */
#include "token/pretokenize.h"

#include <string.h>

#include "token/unicode.h"

enum { KIND = TG_CLASS_LETTER | TG_CLASS_NUMBER | TG_CLASS_SPACE, OTHER = 0 };

/* The class of the character at s + i among KIND and the isolated ones, with its length. The end of
 * the text and a character that is cut out look the same to what stands before them: no look-ahead
 * sees it. */
enum { END = 1 << 8 };

static inline unsigned look(const tg_pretokenizer *p, const uint8_t *s, size_t n, size_t i,
                            size_t *length)
{
    if (i == n)
        return END;
    unsigned c = tg_class_at(s + i, n - i, length);
    return c & p->isolated ? END : c & KIND;
}

/* The end of the run of one kind that goes on at s + i. */
static inline size_t run(const tg_pretokenizer *p, const uint8_t *s, size_t n, size_t i,
                         unsigned kind)
{
    unsigned mask = KIND | p->isolated;
    for (;;) {
        while (i < n && s[i] < 0x80 && (tg_class_ascii[s[i]] & mask) == kind)
            i++;
        size_t length;
        if (i == n || s[i] < 0x80 || look(p, s, n, i, &length) != kind)
            return i;
        i += length;
    }
}

/* \s+(?!\S)|\s+ where s begins with white space: all of it at the end, else all but the last
 * character, unless that is the only one. *newline, where asked for, is the end of the last \r or
 * \n, or 0. */
static size_t spaces(const tg_pretokenizer *p, const uint8_t *s, size_t n, size_t *newline)
{
    size_t i = 0, last = 0, length;
    unsigned c;
    while ((c = look(p, s, n, i, &length)) == TG_CLASS_SPACE) {
        last = i;
        i += length;
        if (newline && (s[last] == '\n' || s[last] == '\r'))
            *newline = i;
    }
    return c == END || last == 0 ? i : last;
}

/* The length of 's 't 're 've 'm 'll 'd at s, or 0. The expressions that ignore case do so by
 * Unicode's folding, in which U+017F is an s. */
static size_t contraction(const uint8_t *s, size_t n, bool any_case)
{
    if (n < 2 || s[0] != '\'')
        return 0;
    if (any_case && n > 2 && s[1] == 0xc5 && s[2] == 0xbf)
        return 3;
    unsigned fold = any_case ? 0x20 : 0;
    unsigned a = s[1] | fold, b = n > 2 ? s[2] | fold : 0;
    if (a == 's' || a == 't' || a == 'm' || a == 'd')
        return 2;
    return (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l') ? 3 : 0;
}

/* 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
static size_t scan_gpt2(const tg_pretokenizer *p, const uint8_t *s, size_t n)
{
    size_t length = contraction(s, n, false);
    if (length)
        return length;
    unsigned c = look(p, s, n, 0, &length);
    if (c == END)
        return length; /* an isolated character */
    size_t start = 0;
    if (s[0] == ' ') {
        unsigned next = look(p, s, n, 1, &length);
        if (next != TG_CLASS_SPACE && next != END) {
            start = 1;
            c = next;
        }
    }
    return c == TG_CLASS_SPACE ? spaces(p, s, n, NULL) : run(p, s, n, start + length, c);
}

/* (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,max_digits}|
 * ?[^\s\p{L}\p{N}]+[\r\n]*
 * |\s*[\r\n]+|\s+(?!\S)|\s+ */
static size_t scan_llama(const tg_pretokenizer *p, const uint8_t *s, size_t n)
{
    size_t length = contraction(s, n, true), next_length = 0;
    if (length)
        return length;
    unsigned c = look(p, s, n, 0, &length);
    if (c == TG_CLASS_LETTER)
        return run(p, s, n, length, c);
    if (c == TG_CLASS_NUMBER) {
        size_t i = length;
        for (int k = 1; k < p->max_digits && look(p, s, n, i, &length) == c; k++)
            i += length;
        return i;
    }
    unsigned next = look(p, s, n, length, &next_length);
    if (next == TG_CLASS_LETTER && s[0] != '\r' && s[0] != '\n')
        return run(p, s, n, length + next_length, next);
    if (c == OTHER || (s[0] == ' ' && next == OTHER)) {
        size_t i = run(p, s, n, length, OTHER);
        while (i < n && (s[i] == '\r' || s[i] == '\n'))
            i++;
        return i;
    }
    size_t newline = 0, all = spaces(p, s, n, &newline);
    return newline ? newline : all;
}

/* ---- the table ---------------------------------------------------------------------------- */

const char tg_pretokenizer_gpt2_regex[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

static const tg_pretokenizer table[] = {
    {
        .name = "gpt-2",
        .aliases = {"gpt2"},
        .regex = tg_pretokenizer_gpt2_regex,
        .scan = scan_gpt2,
    },
    {
        .name = "smollm",
        .regex = tg_pretokenizer_gpt2_regex,
        .isolated = TG_CLASS_NUMERIC,
        .scan = scan_gpt2,
    },
    {
        .name = "llama-bpe",
        .aliases = {"llama3", "llama-v3"},
        .regex = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|"
                 " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
        .max_digits = 3,
        .scan = scan_llama,
        .ignore_merges = true,
        .add_bos = true,
    },
    {
        .name = "qwen2",
        .regex = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|"
                 " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
        .max_digits = 1,
        .scan = scan_llama,
        .nfc = true,
    },
};

const tg_pretokenizer *tg_pretokenizer_at(size_t i)
{
    return i < sizeof table / sizeof *table ? &table[i] : NULL;
}

const tg_pretokenizer *tg_pretokenizer_by_name(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
        for (const char *const *a = table[i].aliases; *a; a++)
            if (strcmp(*a, name) == 0)
                return &table[i];
    }
    return NULL;
}

const tg_pretokenizer *tg_pretokenizer_by_regex(const char *regex, bool isolate_digits)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].regex, regex) == 0 && (table[i].isolated != 0) == isolate_digits)
            return &table[i];
    return NULL;
}
