/* normalize.c - see normalize.h; composition itself is nfc.c's. */
#include "token/normalize.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "token/nfc.h"

static const uint8_t mark[] = {0xe2, 0x96, 0x81};

/* Copies the text with a space for each mark; returns the length of the copy. */
static size_t copy_spaced(uint8_t *out, const uint8_t *text, size_t n)
{
    size_t used = 0;
    for (size_t i = 0; i < n;) {
        const uint8_t *next = memmem(text + i, n - i, mark, sizeof mark);
        size_t plain = next ? (size_t)(next - text) - i : n - i;
        memcpy(out + used, text + i, plain);
        used += plain;
        i += plain;
        if (next) {
            out[used++] = ' ';
            i += sizeof mark;
        }
    }
    return used;
}

tg_status tg_normalize(const tg_normalizer *how, const uint8_t *text, size_t n, uint8_t **out,
                       size_t *n_out, tg_error *err)
{
    uint8_t *composed = NULL;
    *out = NULL;
    if (n == 0)
        return TG_OK;
    if (how->nfc && tg_nfc(text, n, &composed, &n, err) != TG_OK)
        return TG_E_RESOURCE;
    const uint8_t *s = composed ? composed : text;
    if (!how->prefix && !(how->spaces && memmem(s, n, mark, sizeof mark))) {
        *out = composed;
        *n_out = n;
        return TG_OK;
    }
    uint8_t *spaced = tg_alloc(n + 1, 1, "text", err);
    if (spaced) {
        spaced[0] = ' ';
        if (how->spaces)
            n = copy_spaced(spaced + how->prefix, s, n);
        else
            memcpy(spaced + how->prefix, s, n);
        *n_out = n + how->prefix;
    }
    free(composed);
    *out = spaced;
    return spaced ? TG_OK : TG_E_RESOURCE;
}

bool tg_begins_spaced(const uint8_t *text, size_t n)
{
    return n > 0 && (text[0] == ' ' || (n >= sizeof mark && memcmp(text, mark, sizeof mark) == 0));
}
