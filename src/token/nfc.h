/* nfc.h - Unicode normalisation form C, for the tokenizers whose reference applies it. */
#ifndef TG_TOKEN_NFC_H
#define TG_TOKEN_NFC_H

#include "base/error.h"

/* Composes n bytes of text. *out is NULL when the text is what it should be already, which is found
 * at little cost and for ASCII at next to none; else *n_out bytes (free). Bytes that are no UTF-8
 * stay, and nothing composes across them. Linear in n. */
tg_status tg_nfc(const uint8_t *text, size_t n, uint8_t **out, size_t *n_out, tg_error *err);

#endif
