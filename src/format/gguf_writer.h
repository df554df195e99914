/* gguf_writer.h - the head of a GGUF file, version 3: metadata, and where the tensors lie.
 *
 * First all pairs, then all tensors, then tg_gguf_writer_head; the tensors' data follow in the same order, each
 * padded to the alignment. Keys and names are not looked for twice: that is for the reader to find. A failure, of
 * which only memory can be the cause, is kept and told at the end. */
#ifndef TG_FORMAT_GGUF_WRITER_H
#define TG_FORMAT_GGUF_WRITER_H

#include "kernel/dtype.h"
#include "tinygpt/tinygpt.h"

typedef struct tg_gguf_writer {
    uint8_t *bytes; /* behind the 24 bytes of the file's begin, which tg_gguf_writer_head fills */
    size_t n, room;
    uint64_t n_pairs, n_tensors;
    uint64_t alignment;  /* a power of two, at least 8; 32 unless the metadata has general.alignment */
    uint64_t data_bytes; /* of the tensors so far, each padded */
    bool failed;
    tg_error *err;
} tg_gguf_writer;

/* err, not NULL, is filled by the first failure. */
void tg_gguf_writer_init(tg_gguf_writer *w, tg_error *err);
void tg_gguf_writer_deinit(tg_gguf_writer *w);

/* Pairs. A text has n bytes of anything. */
void tg_gguf_put_u32(tg_gguf_writer *w, const char *key, uint32_t value);
void tg_gguf_put_f32(tg_gguf_writer *w, const char *key, float value);
void tg_gguf_put_bool(tg_gguf_writer *w, const char *key, bool value);
void tg_gguf_put_text(tg_gguf_writer *w, const char *key, const char *text, size_t n);
void tg_gguf_put_raw(tg_gguf_writer *w, const uint8_t *pair, size_t n); /* as tg_container_pair_at has it */

/* An array, whose n elements are added next, all of one kind. */
typedef enum tg_gguf_elem { TG_GGUF_U32 = 4, TG_GGUF_I32 = 5, TG_GGUF_F32 = 6, TG_GGUF_BOOL = 7, TG_GGUF_TEXT = 8 } tg_gguf_elem;
void tg_gguf_put_array(tg_gguf_writer *w, const char *key, tg_gguf_elem elem, uint64_t n);
void tg_gguf_add_i32(tg_gguf_writer *w, int32_t value);
void tg_gguf_add_f32(tg_gguf_writer *w, float value);
void tg_gguf_add_bool(tg_gguf_writer *w, bool value);
void tg_gguf_add_text(tg_gguf_writer *w, const void *text, size_t n);

/* dim is row-major, outermost first; the name has at most TG_MAX_NAME_GGUF bytes. */
void tg_gguf_put_tensor(tg_gguf_writer *w, const char *name, int n_dim, const uint64_t *dim, uint32_t type_id,
                        uint64_t n_bytes);

/* Ends the head, padded: w->bytes, w->n of them; w->data_bytes follow. */
tg_status tg_gguf_writer_head(tg_gguf_writer *w);

#endif
