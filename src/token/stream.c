/* stream.c - bytes of tokens to whole characters: a character may be split over several tokens
 * (R14). */
#include <string.h>

#include "base/utf8.h"
#include "tinygpt/tinygpt.h"

/* How many bytes at the end begin a character that is not complete: 0 to 3. */
static size_t incomplete_tail(const uint8_t *s, size_t n)
{
    for (size_t k = 1; k <= 3 && k <= n; k++) {
        uint32_t code;
        bool cut;
        if ((s[n - k] & 0xc0) == 0x80)
            continue;
        if (tg_utf8_decode(s + n - k, k, &code) > 0)
            return 0;
        return (size_t)tg_utf8_bad(s + n - k, k, &cut) == k && cut ? k : 0;
    }
    return 0;
}

size_t tg_stream_push(tg_stream *stream, const char *bytes, size_t n, char *out)
{
    size_t n_held = (size_t)stream->n_held, total = n_held + n;
    memcpy(out, stream->held, n_held);
    if (n)
        memcpy(out + n_held, bytes, n);
    size_t tail = incomplete_tail((const uint8_t *)out, total);
    memcpy(stream->held, out + total - tail, tail);
    stream->n_held = (int)tail;
    return total - tail;
}

size_t tg_stream_flush(tg_stream *stream, char *out)
{
    size_t n = (size_t)stream->n_held;
    memcpy(out, stream->held, n);
    stream->n_held = 0;
    return n;
}
