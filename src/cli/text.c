/* text.c - UTF-8 as people and JSON may see it. Pipes never come here: they get the bytes. */
#include "cli/text.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool tg_bytes_append(tg_bytes *to, const void *bytes, size_t n)
{
    size_t need = to->n + n + 1;
    if (need > to->room) {
        char *more = realloc(to->bytes, 2 * need);
        if (!more)
            return false;
        to->bytes = more;
        to->room = 2 * need;
    }
    if (n > 0)
        memcpy(to->bytes + to->n, bytes, n);
    to->n += n;
    to->bytes[to->n] = '\0';
    return true;
}

/* The length of the character at s, or, when it is ill-formed, of the maximal part to replace by
 * one U+FFFD. n > 0. */
static size_t step(const uint8_t *s, size_t n, bool *good)
{
    /* After the first byte, only the second one's range varies (Unicode 16, table 3-7). */
    uint8_t low = 0x80, high = 0xBF;
    size_t want;
    *good = s[0] < 0x80;
    if (s[0] < 0xC2 || s[0] > 0xF4)
        return 1;
    want = s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
    if (s[0] == 0xE0)
        low = 0xA0;
    else if (s[0] == 0xED)
        high = 0x9F;
    else if (s[0] == 0xF0)
        low = 0x90;
    else if (s[0] == 0xF4)
        high = 0x8F;
    for (size_t i = 1; i < want; i++) {
        if (i >= n || s[i] < low || s[i] > high)
            return i;
        low = 0x80, high = 0xBF;
    }
    *good = true;
    return want;
}

/* C0, DEL, and the C1 controls that some terminals obey in their UTF-8 form as well. */
static bool is_control(const uint8_t *s, size_t len)
{
    return len == 1 ? s[0] < 0x20 || s[0] == 0x7F : len == 2 && s[0] == 0xC2 && s[1] < 0xA0;
}

/* What makes the characters around it stand in another order: a name could pass for another. */
static bool is_bidi(const uint8_t *s, size_t len)
{
    if (len == 2)
        return s[0] == 0xD8 && s[1] == 0x9C; /* U+061C */
    if (len != 3 || s[0] != 0xE2)
        return false;
    return s[1] == 0x80 ? s[2] == 0x8E || s[2] == 0x8F || (s[2] >= 0xAA && s[2] <= 0xAE) /* U+200E, F, 202A to E */
                        : s[1] == 0x81 && s[2] >= 0xA6 && s[2] <= 0xA9;                  /* U+2066 to U+2069 */
}

static char short_escape(uint8_t c)
{
    switch (c) {
    case '\n':
        return 'n';
    case '\t':
        return 't';
    case '\r':
        return 'r';
    case '"':
    case '\\':
        return (char)c;
    default:
        return 0;
    }
}

static char *put_hex(char *out, const uint8_t *s, size_t len)
{
    static const char digit[] = "0123456789ABCDEF";
    for (size_t i = 0; i < len; i++) {
        *out++ = '\\';
        *out++ = 'x';
        *out++ = digit[s[i] >> 4];
        *out++ = digit[s[i] & 15];
    }
    return out;
}

static char *put(char *out, const void *bytes, size_t len)
{
    memcpy(out, bytes, len);
    return out + len;
}

size_t tg_text_render(tg_text_mode mode, const void *bytes, size_t n, char *out)
{
    const uint8_t *s = bytes;
    char *start = out;
    for (size_t i = 0, len; i < n; i += len) {
        bool good;
        len = step(s + i, n - i, &good);
        uint8_t c = s[i];
        if (!good && mode != TG_TEXT_QUOTED)
            out = put(out, "\xEF\xBF\xBD", 3);
        else if (!good || (mode == TG_TEXT_QUOTED && is_bidi(s + i, len)))
            out = put_hex(out, s + i, len);
        else if (mode == TG_TEXT_QUOTED && len == 1 && short_escape(c))
            *out++ = '\\', *out++ = short_escape(c);
        else if (mode == TG_TEXT_UTF8 || !is_control(s + i, len) || c == '\n' || c == '\t')
            out = put(out, s + i, len);
        else
            out = put_hex(out, s + i, len);
    }
    return (size_t)(out - start);
}

const char *tg_text_quote(tg_text_quoted *q, const char *s)
{
    size_t n = strlen(s), cut = n > 200 ? 200 : n;
    size_t len = tg_text_render(TG_TEXT_QUOTED, s, cut, q->text);
    memcpy(q->text + len, cut < n ? "..." : "", cut < n ? 4 : 1);
    return q->text;
}

const char *tg_text_quote_name(tg_text_quoted *q, const char *name)
{
    char shown[202]; /* a byte more than is quoted: what is cut is seen to be */
    const char *mark = strstr(name, "://"), *host = mark ? mark + 3 : name, *rest = host;
    if (!mark)
        return tg_text_quote(q, name);
    for (size_t n = strcspn(host, "/?#"); n > 0 && rest == host; n--)
        rest = host[n - 1] == '@' ? host + n : host;
    snprintf(shown, sizeof shown, "%.*s%.*s", (int)(host - name < 201 ? host - name : 201), name,
             (int)(strcspn(rest, "?#") < 201 ? strcspn(rest, "?#") : 201), rest);
    return tg_text_quote(q, shown);
}

static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};

/* The unit in which an amount has at most three digits before the point, and how many it has behind. */
static int unit_of(uint64_t n_bytes, double *divisor, int *n_digits)
{
    int unit = 0;
    for (*divisor = 1; (double)n_bytes / *divisor >= 999.5; *divisor *= 1024)
        unit++;
    double value = (double)n_bytes / *divisor;
    *n_digits = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    return unit;
}

const char *tg_text_bytes(char text[TG_TEXT_BYTES], uint64_t n_bytes)
{
    double divisor;
    int n_digits, unit = unit_of(n_bytes, &divisor, &n_digits);
    snprintf(text, TG_TEXT_BYTES, "%.*f %s", n_digits, (double)n_bytes / divisor, units[unit]);
    return text;
}

const char *tg_text_bytes_of(char text[TG_TEXT_BYTES], uint64_t n_bytes, uint64_t of)
{
    double divisor;
    int n_digits, unit = unit_of(of, &divisor, &n_digits);
    snprintf(text, TG_TEXT_BYTES, "%.*f/%.*f %s", n_digits, (double)n_bytes / divisor, n_digits,
             (double)of / divisor, units[unit]);
    return text;
}

static const char *skip_characters(const char *s, int n)
{
    for (; *s && n > 0; n--)
        for (s++; ((unsigned char)*s & 0xC0) == 0x80; s++)
            ;
    return s;
}

int tg_text_width(const char *s)
{
    int n = 0;
    for (; *s; s = skip_characters(s, 1))
        n++;
    return n;
}

int tg_text_fit(char *out, size_t room, const char *s, int width)
{
    int n = tg_text_width(s), tail = (width - 3) / 2, head = width - 3 - tail;
    if (n <= width)
        return snprintf(out, room, "%s%*s", s, width - n, "");
    if (width <= 3)
        return snprintf(out, room, "%.*s", width < 0 ? 0 : width, "...");
    const char *cut = skip_characters(s, head);
    return snprintf(out, room, "%.*s...%s", (int)(cut - s), s, skip_characters(cut, n - head - tail));
}
