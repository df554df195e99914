/* stop.h - texts that end a generation, found in bytes as they come, across the borders of tokens.
 *
 * Bytes that may be the beginning of a stop are held back, and no others. Time is linear in the text. */
#ifndef TG_GENERATE_STOP_H
#define TG_GENERATE_STOP_H

#include "base/error.h"

enum { TG_STOP_BYTES_MAX = 4096, TG_STOPS_MAX = 64 };

typedef struct tg_stop tg_stop;

/* Copies n texts. */
tg_status tg_stop_create(tg_stop **stop, const tg_stop_text *texts, int n, tg_error *err);
void tg_stop_free(tg_stop *stop);

/* Takes n bytes. *certain receives those that are part of no stop, which live until the next call. True when a
 * stop is complete: it begins behind them, the longest of those that end at the same byte, and what followed it
 * is dropped: there is nothing more to push then. At most 4096 bytes at once. */
bool tg_stop_push(tg_stop *stop, const char *bytes, size_t n, tg_stop_text *certain);

/* Gives what is held back: no stop will come of it. */
void tg_stop_flush(tg_stop *stop, tg_stop_text *rest);

#endif
