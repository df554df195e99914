/* logits.c - saved logits. A header that begins with '{' gets its length, as in safetensors.c. */
#include "fuzz/fuzz.h"

#include "cli/saved_logits.h"

void fuzz(const uint8_t *data, size_t n)
{
    enum { NUMBERS = 64 };
    static uint8_t room[8 + (1 << 14) + 4 * NUMBERS];
    tg_saved_logits saved;
    tg_error err = {0};
    const char *path = NULL;
    if (n > 0 && n <= 1 << 14 && data[0] == '{') {
        for (int i = 0; i < 8; i++)
            room[i] = (uint8_t)((uint64_t)n >> (8 * i));
        memcpy(room + 8, data, n);
        path = fuzz_file(room, 8 + n + 4 * NUMBERS);
    } else {
        path = fuzz_file(data, n);
    }
    int status = tg_saved_logits_open(&saved, path, &err);
    MUST(status == TG_OK || (status == (int)err.status && err.message[0]));
    if (status == TG_OK) {
        volatile float seen;
        MUST(saved.n_rows >= 1 && saved.n_rows <= saved.n_ids && saved.n_vocab >= 1);
        /* Whatever the header says, all of it is there. */
        for (size_t i = 0; i < saved.n_rows; i++) {
            const float *row = tg_saved_logits_read(&saved, &err);
            MUST(row);
            seen = row[saved.n_vocab - 1];
        }
        (void)seen;
    }
    tg_saved_logits_close(&saved);
}
