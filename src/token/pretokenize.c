/* pretokenize.c - the table of pre-tokenizers and their three scanners.
 *
 * A new pattern is a row; a scanner too, when none of these can be told to do it. A scanner
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
    if (c & p->isolated)
        return END;
    return c & p->letters ? TG_CLASS_LETTER : c & KIND;
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

/* \p{N}{1,max_digits} where s begins with a number of `length` bytes. */
static size_t digits(const tg_pretokenizer *p, const uint8_t *s, size_t n, size_t length)
{
    size_t i = length;
    for (int k = 1; k < p->max_digits && look(p, s, n, i, &length) == TG_CLASS_NUMBER; k++)
        i += length;
    return i;
}

/* ' ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+' where s begins with a character of class c
 * and `length` bytes, followed by one of class `next`. */
static size_t others(const tg_pretokenizer *p, const uint8_t *s, size_t n, size_t length,
                     unsigned c, unsigned next)
{
    if (c == OTHER || (s[0] == ' ' && next == OTHER)) {
        size_t i = run(p, s, n, length, OTHER);
        while (i < n && (s[i] == '\r' || s[i] == '\n' || (p->slash && s[i] == '/')))
            i++;
        return i;
    }
    size_t newline = 0, all = spaces(p, s, n, &newline);
    return newline ? newline : all;
}

/* (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,max_digits}|
 * ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+ */
static size_t scan_llama(const tg_pretokenizer *p, const uint8_t *s, size_t n)
{
    size_t length = contraction(s, n, true), next_length = 0;
    if (length)
        return length;
    unsigned c = look(p, s, n, 0, &length);
    if (c == TG_CLASS_LETTER)
        return run(p, s, n, length, c);
    if (c == TG_CLASS_NUMBER)
        return digits(p, s, n, length);
    unsigned next = look(p, s, n, length, &next_length);
    if (next == TG_CLASS_LETTER && s[0] != '\r' && s[0] != '\n')
        return run(p, s, n, length + next_length, next);
    return others(p, s, n, length, c, next);
}

/* [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+ from s + i on, or, where that matches
 * nothing, the same with + and *; the end of it, which is i when that matches nothing either. What
 * both sets have may end the first run to be the second; a run of capitals alone is left to the
 * second form. */
static size_t cased_word(const uint8_t *s, size_t n, size_t i)
{
    enum { WORD = TG_CLASS_LETTER | TG_CLASS_MARK };
    size_t length = 0, both = 0;
    unsigned c = 0;
    for (; i < n; i += length) {
        c = tg_class_at(s + i, n - i, &length);
        if (!(c & WORD) || c & TG_CLASS_LOWER)
            break;
        if (!(c & TG_CLASS_UPPER))
            both = i + length;
    }
    if (i == n || !(c & TG_CLASS_LOWER))
        return both ? both : i;
    do
        i += length;
    while (i < n && (c = tg_class_at(s + i, n - i, &length)) & WORD && !(c & TG_CLASS_UPPER));
    return i;
}

/* [^\r\n\p{L}\p{N}]? and a cased_word, each of its forms with (?i:'s|'t|'re|'ve|'m|'ll|'d)? where p
 * says so|\p{N}{1,max_digits}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+ */
static size_t scan_cased(const tg_pretokenizer *p, const uint8_t *s, size_t n)
{
    size_t length, next_length;
    unsigned classes = tg_class_at(s, n, &length), c = classes & KIND;
    /* A mark is one of the word, before it or in it. */
    bool before = !(classes & (TG_CLASS_LETTER | TG_CLASS_NUMBER | TG_CLASS_MARK)) &&
                  s[0] != '\r' && s[0] != '\n';
    size_t start = before ? length : 0, end = cased_word(s, n, start);
    if (end > start)
        return end + (p->contractions ? contraction(s + end, n - end, true) : 0);
    if (c == TG_CLASS_NUMBER)
        return digits(p, s, n, length);
    return others(p, s, n, length, c, look(p, s, n, length, &next_length));
}

/* ---- the table ---------------------------------------------------------------------------- */

const char tg_pretokenizer_gpt2_regex[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

/* The expressions of one family, which differ in the digits. */
#define REGEX_LLAMA(digits)                                                                        \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits                           \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define REGEX_TIKTOKEN(digits)                                                                     \
    "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|" digits                                 \
    "| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"
#define REGEX_CASED(contractions, digits)                                                          \
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*"                                  \
    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+" contractions                                                  \
    "|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+"                                 \
    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*" contractions "|" digits                                       \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static const tg_pretokenizer table[] = {
    {
        .name = "gpt-2",
        .aliases = {"gpt2", "phi-2"},
        .regex = {tg_pretokenizer_gpt2_regex},
        .scan = scan_gpt2,
    },
    {
        .name = "olmo", /* GPT-NeoX and Pythia too */
        .regex = {tg_pretokenizer_gpt2_regex},
        .scan = scan_gpt2,
        .nfc = true,
    },
    {
        .name = "smollm",
        .aliases = {"starcoder", "refact"},
        .regex = {tg_pretokenizer_gpt2_regex},
        .isolated = TG_CLASS_NUMERIC,
        .scan = scan_gpt2,
    },
    {
        .name = "llama-bpe",
        .aliases = {"llama3", "llama-v3"},
        .regex = {REGEX_LLAMA("\\p{N}{1,3}"), REGEX_TIKTOKEN("\\p{N}{1,3}")},
        .max_digits = 3,
        .scan = scan_llama,
        .ignore_merges = true,
        .add_bos = true,
    },
    {
        .name = "dbrx", /* OLMo 2, Granite 4 */
        .regex = {REGEX_LLAMA("\\p{N}{1,3}"), REGEX_TIKTOKEN("\\p{N}{1,3}")},
        .max_digits = 3,
        .scan = scan_llama,
    },
    {
        .name = "smaug-bpe", /* Llama 3's vocabulary without its BOS: SmolLM3 */
        .regex = {REGEX_LLAMA("\\p{N}{1,3}"), REGEX_TIKTOKEN("\\p{N}{1,3}")},
        .max_digits = 3,
        .scan = scan_llama,
        .ignore_merges = true,
    },
    {
        .name = "qwen2",
        .aliases = {"stablelm2", "deepseek-r1-qwen"},
        .regex = {REGEX_LLAMA("\\p{N}"), REGEX_TIKTOKEN("\\p{N}")},
        .max_digits = 1,
        .scan = scan_llama,
        .nfc = true,
    },
    {
        .name = "qwen35",
        .regex = {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}|"
                  " ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
        .letters = TG_CLASS_MARK,
        .max_digits = 1,
        .scan = scan_llama,
        .nfc = true,
    },
    {
        .name = "gpt-4o", /* gpt-oss, Llama 4 */
        .aliases = {"llama4"},
        .regex = {REGEX_CASED("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "\\p{N}{1,3}")},
        .max_digits = 3,
        .contractions = true,
        .slash = true,
        .scan = scan_cased,
    },
    {
        .name = "tekken", /* Mistral since Nemo */
        .regex = {REGEX_CASED("", "\\p{N}")},
        .max_digits = 1,
        .slash = true,
        .scan = scan_cased,
        .ignore_merges = true,
        .add_bos = true,
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
        for (size_t k = 0; k < 2 && table[i].regex[k]; k++)
            if (strcmp(table[i].regex[k], regex) == 0 && (table[i].isolated != 0) == isolate_digits)
                return &table[i];
    return NULL;
}
