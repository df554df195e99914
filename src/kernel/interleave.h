/* interleave.h - quantised weights laid anew: a panel of 16 rows as one stream of whole lines.
 *
 * A row's block is words of 4 bytes and, before or behind them, numbers of 2 (MXFP4: 1), such as a scale. What row
 * i of a panel has at byte b, size bytes long, is at 16 b + size i of the panel, so that a load brings the same word
 * of 16 rows.
 * A panel takes 16 row_bytes; rows behind the last are zeros. */
#ifndef TG_KERNEL_INTERLEAVE_H
#define TG_KERNEL_INTERLEAVE_H

#include "kernel/matmul.h"

/* Bytes of m when interleaved; 0: it is absent, of floats, or so already. */
size_t tg_interleaved_bytes(const tg_matrix *m);

/* Panel i of m, rows 16 i and up, to its place in `all`. */
void tg_interleave_panel(const tg_matrix *m, size_t i, uint8_t *all);

enum { TG_GATHERED = 1024, TG_GATHERED_BYTES = TG_GATHERED / 32 * 34 };

/* Columns `from` and up of an interleaved row, TG_GATHERED at most, in the file's layout. Returns how many;
 * `from` is a multiple of TG_GATHERED. */
size_t tg_interleaved_gather(const tg_matrix *m, int row, int from, uint8_t bytes[TG_GATHERED_BYTES]);

#endif
