/* chat.h - a conversation as the text or the tokens that a model was trained on.
 *
 * How that is written the model says itself, by a chat template (jinja.h). What messages say stays text: a special
 * token that they spell is none, wherever the template puts it. */
#ifndef TG_TOKEN_CHAT_H
#define TG_TOKEN_CHAT_H

#include "token/tokenizer.h"

/* The template that a model comes with: tokenizer.chat_template of a GGUF; of a folder chat_template.jinja, else that
 * member of chat_template.json, else of tokenizer_config.json, where a list has one called "default". *text (tg_free),
 * terminated, is NULL when there is none. */
tg_status tg_chat_find(const tg_container *c, char **text, tg_error *err);

/* As tg_chat_text, tg_chat_tokens and tg_chat_end have it (tinygpt.h); params->jinja is the model's by now. */
tg_status tg_chat_render(const tg_tokenizer *t, const char *file, const tg_chat_params *params,
                         const tg_chat_message *messages, size_t n, char **text, uint8_t **plain, size_t *n_bytes,
                         tg_error *err);
tg_status tg_chat_encode(const tg_tokenizer *t, const char *file, const tg_chat_params *params,
                         const tg_chat_message *messages, size_t n, int32_t **ids, size_t *n_ids, tg_error *err);
int32_t tg_chat_find_end(const tg_tokenizer *t, const char *file, const tg_chat_params *params);

#endif
