/* given_json.c - counts before it parses. */
#include "cli/given_json.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* What a bracket, a comma or a colon may bring along, measured by tests/cli/test_given_json.c. */
enum { MARK_BYTES = 256, MORE_BYTES = 16 << 20, BYTES_PER_BYTE = 16, MOST_BYTES = 240 << 20 };

static size_t count_marks(const char *bytes, size_t n)
{
    size_t marks = 0;
    bool in_text = false;
    for (size_t i = 0; i < n; i++) {
        char c = bytes[i];
        if (c == '"')
            in_text = !in_text;
        else if (in_text)
            i += c == '\\';
        else
            marks += c == '[' || c == '{' || c == ',' || c == ':';
    }
    return marks;
}

json_t *tg_given_json(const char *bytes, size_t n, size_t flags, json_error_t *why)
{
    const size_t mark = n >= 3 && !memcmp(bytes, "\xEF\xBB\xBF", 3) ? 3 : 0;
    bytes += mark;
    n -= mark;
    const size_t some = MORE_BYTES + BYTES_PER_BYTE * n, most = MOST_BYTES;
    if (count_marks(bytes, n) <= (some < most ? some : most) / MARK_BYTES)
        return tg_json_decode(bytes, n, flags, why);
    *why = (json_error_t){.position = -1};
    snprintf(why->text, sizeof why->text, "too many small values");
    return NULL;
}
