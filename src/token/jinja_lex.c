/* jinja_lex.c - a chat template as tokens, with Jinja's rules for the white space around its marks. */
#include <string.h>

#include "base/utf8.h"
#include "token/jinja_parse.h"

typedef struct lexer {
    tg_jinja *j;
    const char *s;
    size_t n, at;
    int line;
    int open;        /* brackets */
    bool line_begins; /* what was read last ended a line */
    tg_jtoken *tokens;
    size_t n_tokens;
} lexer;

/* A token takes a byte of the source at least, but for texts before marks and the end: room was made for all. */
static tg_jtoken *add(lexer *l, tg_jtoken_kind kind, tg_jtext text)
{
    tg_jtoken *t = &l->tokens[l->n_tokens++];
    *t = (tg_jtoken){.kind = kind, .line = l->line, .text = text};
    return t;
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool looking_at(const lexer *l, const char *what)
{
    size_t n = strlen(what);
    return l->n - l->at >= n && memcmp(l->s + l->at, what, n) == 0;
}

static void advance(lexer *l, size_t to)
{
    for (; l->at < to; l->at++)
        l->line += l->s[l->at] == '\n';
    l->j->line = l->line;
}

static void skip_blanks(lexer *l)
{
    size_t to = l->at;
    while (to < l->n && is_blank(l->s[to]))
        to++;
    advance(l, to);
}

/* ---- outside the marks --------------------------------------------------------------------------- */

/* Behind a mark that closes; the newline after all but {{ }} goes. */
static void close_mark(lexer *l, char sign, bool block)
{
    if (sign == '-')
        skip_blanks(l);
    else if (block && sign != '+' && l->at < l->n && l->s[l->at] == '\n')
        advance(l, l->at + 1);
    l->line_begins = l->at > 0 && l->s[l->at - 1] == '\n';
}

static void add_data(lexer *l, size_t from, size_t to, char sign, bool block)
{
    size_t line = to;
    if (sign == '-')
        while (to > from && is_blank(l->s[to - 1]))
            to--;
    while (line > from && l->s[line - 1] != '\n' && is_blank(l->s[line - 1]))
        line--;
    /* A block that stands first in its line takes the blanks before it along. */
    if (block && !sign && (line > from ? l->s[line - 1] == '\n' : l->line_begins))
        to = line;
    if (to > from)
        add(l, TG_JT_DATA, tg_jtext_from(l->j, l->s + from, to - from, 0));
}

static void lex_comment(lexer *l)
{
    const char *end = memmem(l->s + l->at, l->n - l->at, "#}", 2);
    if (!end) {
        tg_jinja_fail(l->j, "a comment has no end");
        return;
    }
    size_t close = (size_t)(end - l->s);
    char sign = close > l->at ? end[-1] : '\0';
    advance(l, close + 2);
    close_mark(l, sign, true);
}

/* The text up to the next mark, and the mark; false at the end. */
static bool lex_outside(lexer *l)
{
    size_t from = l->at, i = from;
    while (i < l->n && !(l->s[i] == '{' && i + 1 < l->n && strchr("{%#", l->s[i + 1])))
        i++;
    char sign = i + 2 < l->n && (l->s[i + 2] == '-' || l->s[i + 2] == '+') ? l->s[i + 2] : '\0';
    char mark = i < l->n ? l->s[i + 1] : '\0';
    add_data(l, from, i, sign, mark == '%' || mark == '#');
    advance(l, i < l->n ? i + 2 + (sign != 0) : i);
    if (mark == '#')
        lex_comment(l);
    else if (mark)
        add(l, mark == '%' ? TG_JT_BLOCK : TG_JT_OPEN, (tg_jtext){0});
    return mark;
}

/* ---- inside ------------------------------------------------------------------------------------ */

static bool is_name(char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (!first && c >= '0' && c <= '9');
}

/* The number of n hexadecimal digits, or -1. */
static int32_t hex(const char *s, size_t n)
{
    int32_t value = 0;
    for (size_t i = 0; i < n; i++) {
        const char *digits = "0123456789abcdef0123456789ABCDEF", *at = s[i] ? strchr(digits, s[i]) : NULL;
        if (!at)
            return -1;
        value = value * 16 + (int32_t)((at - digits) % 16);
    }
    return value;
}

/* The escape at l->at, behind its backslash, into out; how many bytes it is. */
static size_t lex_escape(lexer *l, char out[4])
{
    static const char names[] = "nrtbfav\\'\"", bytes[] = "\n\r\t\b\f\a\v\\'\"";
    char c = l->at < l->n ? l->s[l->at] : '\0';
    const char *at = c ? strchr(names, c) : NULL;
    size_t n_digits = c == 'x' ? 2 : c == 'u' ? 4 : 0;
    if (at) {
        l->at++;
        out[0] = bytes[at - names];
        return 1;
    }
    int32_t code = n_digits && l->n - l->at > n_digits ? hex(l->s + l->at + 1, n_digits) : -1;
    if (code < 0 || (code >= 0xd800 && code < 0xe000)) {
        tg_jinja_fail(l->j, "an escape that is not supported in a string");
        return 0;
    }
    l->at += 1 + n_digits;
    return (size_t)tg_utf8_encode((uint32_t)code, (uint8_t *)out);
}

static void lex_string(lexer *l)
{
    char quote = l->s[l->at++], escape[4];
    tg_jbuffer text = {0};
    while (!l->j->failed && l->at < l->n && l->s[l->at] != quote) {
        char c = l->s[l->at++];
        size_t n = 1;
        l->line += c == '\n';
        if (c == '\\')
            n = lex_escape(l, escape);
        else
            escape[0] = c;
        tg_jbuffer_add(l->j, &text, tg_jtext_from(l->j, escape, n, 0));
    }
    if (l->at >= l->n)
        tg_jinja_fail(l->j, "a string has no end");
    l->at++;
    add(l, TG_JT_STRING, tg_jbuffer_text(&text));
}

static void lex_int(lexer *l)
{
    int64_t value = 0;
    for (; l->at < l->n && l->s[l->at] >= '0' && l->s[l->at] <= '9' && value < INT32_MAX; l->at++)
        value = value * 10 + (l->s[l->at] - '0');
    if (value >= INT32_MAX || (l->at + 1 < l->n && l->s[l->at] == '.' && l->s[l->at + 1] >= '0' && l->s[l->at + 1] <= '9'))
        tg_jinja_fail(l->j, "a number that is not supported (allowed 0 to %d, without a fraction)", INT32_MAX - 1);
    add(l, TG_JT_INT, (tg_jtext){0})->i = value;
}

static bool lex_operator(lexer *l)
{
    static const char *const operators[] = {"==", "!=", "<=", ">=", "//", "**", "<", ">", "=", "+", "-", "*",
                                            "/",  "%",  "~",  "|",  ".",  ",",  ":", "(", ")", "[", "]", "{", "}"};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        if (!looking_at(l, operators[i]))
            continue;
        size_t n = strlen(operators[i]);
        l->open += strchr("([{", operators[i][0]) ? 1 : strchr(")]}", operators[i][0]) ? -1 : 0;
        add(l, TG_JT_OPERATOR, tg_jtext_from(l->j, operators[i], n, 0));
        l->at += n;
        return true;
    }
    return false;
}

/* Up to the mark that closes what `block` says is open. */
static void lex_inside(lexer *l, bool block)
{
    const char *close = block ? "%}" : "}}";
    for (l->open = 0; !l->j->failed; l->j->line = l->line) {
        skip_blanks(l);
        size_t signs = l->at < l->n && (l->s[l->at] == '-' || (block && l->s[l->at] == '+')), begin = l->at;
        l->at += signs;
        if (l->open <= 0 && looking_at(l, close)) {
            add(l, block ? TG_JT_ENDBLOCK : TG_JT_CLOSE, (tg_jtext){0});
            l->at += 2;
            close_mark(l, signs ? l->s[begin] : '\0', block);
            return;
        }
        l->at = begin;
        if (l->at >= l->n) {
            tg_jinja_fail(l->j, "%s is missing", close);
        } else if (is_name(l->s[l->at], true)) {
            while (l->at < l->n && is_name(l->s[l->at], false))
                l->at++;
            add(l, TG_JT_NAME, tg_jtext_from(l->j, l->s + begin, l->at - begin, 0));
        } else if (l->s[l->at] >= '0' && l->s[l->at] <= '9') {
            lex_int(l);
        } else if (l->s[l->at] == '\'' || l->s[l->at] == '"') {
            lex_string(l);
        } else if (!lex_operator(l)) {
            tg_quoted q;
            tg_jinja_fail(l->j, "'%s' is not understood", tg_quote(&q, l->s + l->at, 1));
        }
    }
}

/* Lines end in LF, and the last one without. */
static size_t normalise(char *to, const char *s, size_t n)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        to[at++] = s[i] == '\r' ? '\n' : s[i];
        i += s[i] == '\r' && i + 1 < n && s[i + 1] == '\n';
    }
    return at - (at > 0 && to[at - 1] == '\n');
}

tg_jtoken *tg_jinja_lex(tg_jinja *j, const char *source, size_t n)
{
    char *s = tg_jinja_alloc(j, n, 1);
    lexer l = {.j = j, .s = s, .line = 1, .line_begins = true};
    l.tokens = tg_jinja_alloc(j, n + 2, sizeof *l.tokens);
    if (j->failed)
        return NULL;
    l.n = normalise(s, source, n);
    while (!j->failed && lex_outside(&l)) {
        tg_jtoken_kind last = l.n_tokens ? l.tokens[l.n_tokens - 1].kind : TG_JT_END;
        if (last == TG_JT_BLOCK || last == TG_JT_OPEN)
            lex_inside(&l, last == TG_JT_BLOCK);
    }
    add(&l, TG_JT_END, (tg_jtext){0});
    return j->failed ? NULL : l.tokens;
}
