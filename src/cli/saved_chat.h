/* saved_chat.h - a conversation in the file of a saved session: the messages in its note, what they are as tokens with
 * the cache beside them. */
#ifndef TG_CLI_SAVED_CHAT_H
#define TG_CLI_SAVED_CHAT_H

#include "cli/conversation.h"
#include "cli/session_file.h"

/* Saves the conversation, and of its cache what the generator has of the text of the last turn, [n_ids]. */
int tg_saved_chat_save(const tg_conversation *c, const tg_generator *generator, const int32_t *ids, size_t n_ids,
                       const tg_sampling *sampling, const char *path, tg_error *err);

/* The saved conversation takes the place of this one, and its cache goes to the generator; ids [n_ctx] gets
 * its tokens, and the sampling its stream. TG_E_SESSION, and this one stays, where the file is none of a
 * conversation. */
int tg_saved_chat_load(tg_conversation *c, tg_generator *generator, int32_t *ids, size_t *n_ids, int n_ctx,
                       tg_sampling *sampling, const char *path, tg_error *err);

#endif
