/* build.h - putting a tokenizer together, piece by piece: what the loaders do, and tests.
 *
 * Order: tg_build_start; all tokens; added tokens and merges; the fields marked "set";
 * tg_build_finish. On any error the caller frees what it has with tg_tokenizer_free. `file` names
 * the source in messages and lives until tg_build_finish. */
#ifndef TG_TOKEN_BUILD_H
#define TG_TOKEN_BUILD_H

#include "token/added.h"
#include "token/bpe.h"
#include "token/pretokenize.h"
#include "token/tokenizer.h"

enum { TG_MAX_AROUND = 8 };

/* Ids that the model's own policy puts before or after a text. */
typedef struct tg_around {
    int32_t ids[TG_MAX_AROUND];
    int n;
} tg_around;

struct tg_tokenizer {
    const char *file;
    tg_vocab vocab;
    tg_bpe bpe;
    uint32_t n_merges;
    const tg_pretokenizer *pre; /* set */
    bool nfc;                   /* set: normalise first */
    bool prefix_space;          /* set: a piece that does not begin with a space gets one */
    bool ignore_merges;         /* set: a piece that is a token becomes it */
    tg_added_set raw;           /* added tokens looked for in the text as it is */
    tg_added_set normalized;    /* and after normalisation */
    int32_t bos, eos;           /* set; -1: none */
    tg_around before, after;    /* set */
};

tg_tokenizer *tg_build_start(const char *file, int n_vocab, tg_error *err);

/* See tg_vocab_add. */
tg_status tg_build_token(tg_tokenizer *t, int64_t id, const void *spelling, size_t n,
                         tg_error *err);

/* The next merge: two spellings, or one text with a single space between them (M56). `line` is its
 * number for messages, from 1. */
tg_status tg_build_merge(tg_tokenizer *t, const void *left, size_t n_left, const void *right,
                         size_t n_right, uint64_t line, tg_error *err);
tg_status tg_build_merge_text(tg_tokenizer *t, const void *text, size_t n, uint64_t line,
                              tg_error *err);

/* token->id must be a token's or a free id below n_vocab; the token stands for its text from now
 * on. */
tg_status tg_build_added(tg_tokenizer *t, const tg_added_token *token, tg_error *err);

/* Checks that an id that a file gives for `what` is a token's (M58). */
tg_status tg_build_id(const tg_tokenizer *t, const char *what, int64_t id, int32_t *out,
                      tg_error *err);
/* The id of the token, added or not, of this text, or -1. */
int32_t tg_build_find(const tg_tokenizer *t, const char *text, size_t n);
tg_status tg_build_around(tg_tokenizer *t, tg_around *around, int32_t id, tg_error *err);

/* Fails if there is no token yet (M52): to be asked before merges, whose complaint would mislead.
 */
tg_status tg_build_check_tokens(const tg_tokenizer *t, tg_error *err);

tg_status tg_build_finish(tg_tokenizer *t, tg_error *err);

/* ---- loaders: `err` is not NULL ------------------------------------------------------------ */

tg_status tg_load_gguf(tg_tokenizer **t, const tg_container *c, int n_vocab, tg_error *err);
/* tokenizer.json with what stands beside it, or vocab.json with merges.txt. */
tg_status tg_load_folder(tg_tokenizer **t, const tg_container *c, int n_vocab, tg_error *err);
/* A tokenizer.json, up to but not including tg_build_finish. */
tg_status tg_load_json(tg_tokenizer **t, const json_t *root, const char *path, int n_vocab,
                       tg_error *err);

/* Reading JSON members, for the two above. `path` is for messages; *out keeps its value when the
 * member is absent or null. */
tg_status tg_json_get_bool(const json_t *object, const char *key, bool *out, const char *path,
                           tg_error *err);
tg_status tg_json_get_text(const json_t *object, const char *key, const char **out,
                           const char *path, tg_error *err);
/* One entry of added_tokens or added_tokens_decoder, without its id; borrows the text. */
tg_status tg_json_get_added(const json_t *entry, tg_added_token *token, const char *path,
                            tg_error *err);
/* A line of merges that the reference passes over, wherever it stands (A16). */
bool tg_is_version_line(const char *text, size_t n);
/* {"token": id, ...} into the vocabulary. */
tg_status tg_json_load_vocab(tg_tokenizer *t, const json_t *vocab, tg_error *err);

#endif
