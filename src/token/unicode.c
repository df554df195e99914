/* unicode.c - looking a code point up in the table of runs. */
#include "token/unicode.h"

#include "token/unicode_data.h"

unsigned tg_class_of(uint32_t code)
{
    /* The run sought is between those of this page's first code point and the next page's. */
    uint32_t low = class_pages[code >> 10], high = class_pages[(code >> 10) + 1];
    while (low < high) {
        uint32_t middle = (low + high + 1) / 2;
        if (class_runs[middle] >> 8 <= code)
            low = middle;
        else
            high = middle - 1;
    }
    return class_runs[low] & 0xff;
}
