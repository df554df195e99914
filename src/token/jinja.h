/* jinja.h - renders a chat template. */
#ifndef TG_TOKEN_JINJA_H
#define TG_TOKEN_JINJA_H

#include "base/error.h"

enum { TG_MAX_TEMPLATE_BYTES = 1 << 20 };

typedef struct tg_jinja_input {
    const char *template;
    size_t n_bytes;
    const char *file; /* for messages */
    const tg_chat_message *messages;
    size_t n_messages;
    const char *bos, *eos; /* texts of these tokens, not terminated; NULL: undefined */
    size_t n_bos, n_eos;
    const tg_chat_params *params;
} tg_jinja_input;

/* *text and *plain (both free), each of *n bytes: what the template makes of the messages, and for each byte whether
 * it is the template's own (0), a message's (1) or an answer's (2), as tg_tokenizer_encode_mixed takes it. TG_E_MODEL for a template that is not understood, TG_E_USAGE where
 * it refuses the messages. */
tg_status tg_jinja_render(const tg_jinja_input *input, char **text, uint8_t **plain, size_t *n, tg_error *err);

#endif
