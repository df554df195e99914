/* text.c - UTF-8 as people and JSON may see it. Pipes never come here: they get the bytes. */
#include "cli/text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

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
        else if (!good)
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
    snprintf(q->text + len, sizeof q->text - len, "%s", cut < n ? "..." : "");
    return q->text;
}
