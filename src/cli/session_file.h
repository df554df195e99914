/* session_file.h - the file of --session: what was saved in it, the text as it grows, and saving that. */
#ifndef TG_CLI_SESSION_FILE_H
#define TG_CLI_SESSION_FILE_H

#include "cli/options.h"

/* Zeroed, it stands for no file. */
typedef struct tg_session_file {
    const char *path;
    tg_saved *saved; /* NULL: there was no file */
    tg_saved_text text; /* as it is to be saved */
    int32_t *ids; /* [room] prompt and text */
    size_t *at;   /* [room] where each token begins in the text */
    size_t n_ids, n_prompt, room, n_text;
    bool random;  /* do the draws count? */
} tg_session_file;

/* TG_E_SESSION, and *saved NULL, for a file that is rejected, or is of more tokens than a context has room for. */
int tg_session_file_read(tg_saved **saved, const char *path, const tg_model *model, int n_ctx, tg_error *err);

/* The same, but that a file which is not there is a new session, and a conversation is rejected. */
int tg_session_file_open(tg_session_file *f, const char *path, const tg_model *model, int n_ctx, tg_error *err);
void tg_session_file_free(tg_session_file *f);

/* What was saved, or nothing. */
tg_saved_text tg_session_file_text(const tg_session_file *f);

/* Gives the generator the saved cache, and room for a text of `n_ctx` tokens that begins with the prompt's
 * [n_ids] and is drawn so. */
int tg_session_file_begin(tg_session_file *f, tg_generator *generator, const int32_t *ids, size_t n_ids,
                          const tg_sampling *sampling, int n_ctx, tg_error *err);

/* A piece joins the text. Tokens that end it, or that a stop cuts off whole, are no part of it. */
void tg_session_file_add(tg_session_file *f, const tg_piece *piece);

int tg_session_file_save(const tg_session_file *f, const tg_generator *generator, tg_error *err);

#endif
