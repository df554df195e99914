/* conversation.h - the messages of a chat, as many of them as fit the context. */
#ifndef TG_CLI_CONVERSATION_H
#define TG_CLI_CONVERSATION_H

#include "cli/options.h"

typedef struct tg_conversation {
    const tg_model *model;
    tg_chat_params params;
    char *template; /* read from a file; NULL: none was */
    int32_t end;    /* tg_chat_end */
    tg_chat_message *messages; /* [n]; their contents are owned. The first is the system's: NULL where there is none */
    size_t n, room;
} tg_conversation;

/* The template that the options name, else the model's, tried on a message; and --system. */
int tg_conversation_open(tg_conversation *c, const tg_model *model, const tg_options *opt, tg_error *err);
void tg_conversation_free(tg_conversation *c);

int tg_conversation_add(tg_conversation *c, const char *role, const char *content, size_t n, tg_error *err);
void tg_conversation_drop_last(tg_conversation *c);
/* NULL or "": none. On failure the one before stays. */
int tg_conversation_set_system(tg_conversation *c, const char *text, tg_error *err);
void tg_conversation_reset(tg_conversation *c); /* all but the system's message is forgotten */

/* The tokens (tg_free) of it with an answer begun. Where they are more than `most`, the oldest turns are forgotten,
 * and *n_forgotten tells how many messages that were; TG_E_USAGE when the last message alone is too long. */
int tg_conversation_tokens(tg_conversation *c, size_t most, int32_t **ids, size_t *n_ids, int *n_forgotten,
                           tg_error *err);

#endif
