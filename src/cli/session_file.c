/* session_file.c - a text that is saved when it ends, however it ends. */
#include "cli/session_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/text.h"

int tg_session_file_read(tg_saved **saved, const char *path, const tg_model *model, int n_ctx, tg_error *err)
{
    tg_text_quoted q;
    int status = (int)tg_saved_open(saved, model, path, err);
    const size_t n = status ? 0 : tg_saved_get_text(*saved)->n_ids;
    if (n <= (size_t)n_ctx)
        return status;
    tg_saved_free(*saved);
    *saved = NULL;
    return tg_cli_fail(err, TG_E_SESSION, "%s: tokens (found %zu, allowed %d: the context, which -c sets)",
                       tg_text_quote(&q, path), n, n_ctx);
}

int tg_session_file_open(tg_session_file *f, const char *path, const tg_model *model, int n_ctx, tg_error *err)
{
    struct stat st;
    tg_text_quoted q;
    f->path = path;
    if (stat(path, &st) != 0 && errno == ENOENT)
        return TG_OK;
    int status = tg_session_file_read(&f->saved, path, model, n_ctx, err);
    if (!status && tg_saved_get_text(f->saved)->n_note > 0) /* its messages, which a text would take the place of */
        status = tg_cli_fail(err, TG_E_SESSION, "%s: a conversation, and no text (chat goes on with it)",
                             tg_text_quote(&q, path));
    return status;
}

void tg_session_file_free(tg_session_file *f)
{
    tg_saved_free(f->saved);
    free(f->ids);
    free(f->at);
}

tg_saved_text tg_session_file_text(const tg_session_file *f)
{
    return f->saved ? *tg_saved_get_text(f->saved) : (tg_saved_text){0};
}

int tg_session_file_begin(tg_session_file *f, tg_generator *generator, const int32_t *ids, size_t n_ids,
                          const tg_sampling *sampling, int n_ctx, tg_error *err)
{
    f->n_ids = f->n_prompt = n_ids;
    f->room = (size_t)n_ctx + 1 > f->n_ids ? (size_t)n_ctx + 1 : f->n_ids;
    f->ids = calloc(f->room, sizeof *f->ids);
    f->at = calloc(f->room, sizeof *f->at);
    if (!f->ids || !f->at)
        return tg_cli_fail_memory(err, f->room * (sizeof *f->ids + sizeof *f->at), "the text of a session");
    memcpy(f->ids, ids, n_ids * sizeof *f->ids);
    f->text = (tg_saved_text){.ids = f->ids, .seed = sampling->seed, .stream = sampling->stream,
                              .n_drawn = sampling->n_drawn};
    return f->saved ? (int)tg_generator_restore(generator, f->saved, err) : TG_OK;
}

void tg_session_file_add(tg_session_file *f, const tg_piece *piece)
{
    f->text.n_drawn += f->random && piece->id >= 0;
    if (piece->id >= 0 && piece->finish != TG_FINISH_END && f->n_ids < f->room) {
        f->at[f->n_ids] = piece->at;
        f->ids[f->n_ids++] = piece->id;
    }
    f->n_text += piece->n_bytes;
    while (piece->finish == TG_FINISH_STOP && f->n_ids > f->n_prompt && f->at[f->n_ids - 1] >= f->n_text)
        f->n_ids--;
}

int tg_session_file_save(const tg_session_file *f, const tg_generator *generator, tg_error *err)
{
    tg_saved_text text = f->text;
    text.n_ids = f->n_ids;
    return (int)tg_generator_save(generator, &text, f->path, err);
}
