/* tokenizer.h - text to ids and back. Below this interface nothing sees text.
 *
 * Byte-level and SentencePiece's BPE, exactly as Hugging Face's tokenizers computes them. The vocabulary
 * comes from GGUF metadata, from tokenizer.json, or from vocab.json with merges.txt; what the table of
 * pre-tokenizers does not have is refused by name, never approximated, and so is a model without a
 * tokenizer. */
#ifndef TG_TOKEN_TOKENIZER_H
#define TG_TOKEN_TOKENIZER_H

#include "format/container.h"

typedef struct tg_tokenizer tg_tokenizer;

/* n_vocab is the number of rows of the embedding: ids at or above it are refused (M53, M58), and
 * those between the vocabulary's size and it are unused. */
tg_status tg_tokenizer_load(tg_tokenizer **tokenizer, const tg_container *c, int n_vocab,
                            tg_error *err);
void tg_tokenizer_free(tg_tokenizer *tokenizer);

/* As tg_tokenize (tinygpt.h). Time is near-linear in n_bytes and stack use constant for any input.
 */
tg_status tg_tokenizer_encode(const tg_tokenizer *t, const void *text, size_t n_bytes,
                              unsigned flags, int32_t **ids, size_t *n_ids, size_t *n_dropped,
                              tg_error *err);

/* The same for a text that a template made of messages. Bytes with plain[i] != 0 are a message's and spell no special
 * token, whatever the flags; with 1, not the model's own either, no added token that the template writes: some models
 * mark the turns by such that are not special. */
tg_status tg_tokenizer_encode_mixed(const tg_tokenizer *t, const void *text, const uint8_t *plain, const char *template,
                                    size_t n_bytes, unsigned flags, int32_t **ids, size_t *n_ids, size_t *n_dropped, tg_error *err);

const char *tg_tokenizer_bytes(const tg_tokenizer *t, int32_t id, size_t *n_bytes);
tg_token_kind tg_tokenizer_kind(const tg_tokenizer *t, int32_t id);
bool tg_tokenizer_is_eog(const tg_tokenizer *t, int32_t id);
void tg_tokenizer_get_info(const tg_tokenizer *t, tg_tokenizer_info *info);

enum {
    TG_MAX_TOKEN_BYTES = 4096,
    TG_MAX_TEXT_BYTES = 1 << 30, /* at once: more is TG_E_USAGE (R10) */
};

#endif
