/* typed.c - what people type: numbers, and names that are nearly right. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"

/* ---- numbers ----------------------------------------------------------------------------------
 */

static size_t count_digits(const char *s)
{
    return strspn(s, "0123456789");
}

bool tg_number_int(const char *text, int64_t min, int64_t max, int64_t *value)
{
    size_t sign = text[0] == '-', digits = count_digits(text + sign);
    if (digits == 0 || text[sign + digits])
        return false;
    errno = 0;
    *value = strtoll(text, NULL, 10);
    return errno == 0 && *value >= min && *value <= max;
}

bool tg_number_u64(const char *text, uint64_t *value)
{
    size_t digits = count_digits(text);
    if (digits == 0 || text[digits])
        return false;
    errno = 0;
    *value = strtoull(text, NULL, 10);
    return errno == 0;
}

bool tg_number_real(const char *text, double min, double max, double *value)
{
    const char *s = text + (text[0] == '-');
    size_t whole = count_digits(s), part = 0;
    s += whole;
    if (*s == '.') {
        part = count_digits(s + 1);
        s += 1 + part;
    }
    if (whole + part == 0)
        return false;
    if (*s == 'e' || *s == 'E') {
        s += 1 + (s[1] == '-' || s[1] == '+');
        if (count_digits(s) == 0)
            return false;
        s += count_digits(s);
    }
    if (*s)
        return false;
    *value = strtod(text, NULL); /* the locale is never set: "." is the point */
    return *value >= min && *value <= max;
}

/* ---- near misses ------------------------------------------------------------------------------
 */

/* Insertions, deletions, substitutions and swaps of neighbours that make b of a. */
static int distance(const char *a, const char *b)
{
    int n = (int)strlen(a), m = (int)strlen(b);
    int row[3][TG_NAME_MAX + 1]; /* the last three rows of the table, by i mod 3 */
    for (int i = 0; i <= n; i++) {
        int *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            if (i == 0) {
                now[j] = j;
                continue;
            }
            int best = last[j - 1] + (a[i - 1] != b[j - 1]);
            best = last[j] + 1 < best ? last[j] + 1 : best;
            best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = before[j - 2] + 1 < best ? before[j - 2] + 1 : best;
            now[j] = best;
        }
    }
    return row[n % 3][m];
}

const char *tg_options_nearest(const char *typed, const char *const *names, int n)
{
    size_t len = strlen(typed);
    const char *nearest = NULL;
    int least = 1 + (int)len / 4; /* more than that is another word */
    if (len == 0 || len > TG_NAME_MAX)
        return NULL;
    for (int i = 0; i < n; i++) {
        if (!names[i] || strlen(names[i]) > TG_NAME_MAX)
            continue;
        size_t name_len = strlen(names[i]), common = len < name_len ? len : name_len;
        int d = common >= 3 && !strncmp(typed, names[i], common) ? 1 : distance(typed, names[i]);
        if (d < least || (d == least && !nearest)) {
            least = d;
            nearest = names[i];
        }
    }
    return nearest;
}
