/* utf8.c - table 3-7 of the Unicode standard, as code. */
#include "base/utf8.h"

/* The length that a lead byte announces, and the range of the byte that may follow it. */
static int lead(uint8_t b, uint8_t *low, uint8_t *high)
{
    *low = 0x80;
    *high = 0xbf;
    if (b < 0x80)
        return 1;
    if (b < 0xc2)
        return 0;
    if (b < 0xe0)
        return 2;
    if (b < 0xf0) {
        if (b == 0xe0)
            *low = 0xa0;
        if (b == 0xed)
            *high = 0x9f;
        return 3;
    }
    if (b < 0xf5) {
        if (b == 0xf0)
            *low = 0x90;
        if (b == 0xf4)
            *high = 0x8f;
        return 4;
    }
    return 0;
}

/* How many bytes at s, at most those of one character, are as they should be. */
static int good_bytes(const uint8_t *s, size_t n, int length, uint8_t low, uint8_t high)
{
    int k = 1;
    for (; k < length && (size_t)k < n; k++) {
        if (s[k] < low || s[k] > high)
            break;
        low = 0x80;
        high = 0xbf;
    }
    return k;
}

int tg_utf8_decode(const uint8_t *s, size_t n, uint32_t *code)
{
    uint8_t low, high;
    int length = lead(s[0], &low, &high);
    if (length == 0 || good_bytes(s, n, length, low, high) < length)
        return 0;
    static const uint8_t mask[5] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = s[0] & mask[length];
    for (int k = 1; k < length; k++)
        c = c << 6 | (s[k] & 0x3fu);
    *code = c;
    return length;
}

int tg_utf8_bad(const uint8_t *s, size_t n, bool *cut)
{
    uint8_t low, high;
    int length = lead(s[0], &low, &high);
    int good = length ? good_bytes(s, n, length, low, high) : 1;
    *cut = length && (size_t)good == n;
    return good;
}

int tg_utf8_encode(uint32_t code, uint8_t out[4])
{
    if (code < 0x80) {
        out[0] = (uint8_t)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (uint8_t)(0xc0 | code >> 6);
        out[1] = (uint8_t)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (uint8_t)(0xe0 | code >> 12);
        out[1] = (uint8_t)(0x80 | (code >> 6 & 0x3f));
        out[2] = (uint8_t)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (uint8_t)(0xf0 | code >> 18);
    out[1] = (uint8_t)(0x80 | (code >> 12 & 0x3f));
    out[2] = (uint8_t)(0x80 | (code >> 6 & 0x3f));
    out[3] = (uint8_t)(0x80 | (code & 0x3f));
    return 4;
}

bool tg_utf8_valid(const uint8_t *s, size_t n)
{
    uint32_t code;
    for (size_t i = 0; i < n;) {
        int k = tg_utf8_decode(s + i, n - i, &code);
        if (k == 0)
            return false;
        i += (size_t)k;
    }
    return true;
}
