/* lookup.c - a scan of the text: it reads 4 bytes for each token, of which attention reads thousands. */
#include "generate/lookup.h"

enum {
    MATCH_LEAST = 2, /* tokens that must agree */
    MATCH_WELL = 4,  /* and that make a long guess worth while: rows of an evaluation are cheap, not free */
    MATCH_ENOUGH = 8,
    SHORT_GUESS = 3,
};

/* Tokens before `end` that are the same as the last ones. */
static int match(const int32_t *ids, int n, int end)
{
    int k = 0;
    while (k < MATCH_ENOUGH && k < end && ids[end - 1 - k] == ids[n - 1 - k])
        k++;
    return k;
}

int tg_lookup(const int32_t *ids, int n, int most, int32_t *out)
{
    int best = MATCH_LEAST - 1, from = 0;
    for (int end = n - 1; end >= MATCH_LEAST && best < MATCH_ENOUGH; end--) {
        int k = match(ids, n, end);
        if (k > best) {
            best = k;
            from = end;
        }
    }
    if (from == 0)
        return 0;
    if (best < MATCH_WELL && most > SHORT_GUESS)
        most = SHORT_GUESS;
    for (int i = 0; i < most; i++) /* behind the end it goes on with itself, as periodic texts do */
        out[i] = from + i < n ? ids[from + i] : out[from + i - n];
    return most;
}
