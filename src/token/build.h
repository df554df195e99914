/* build.h - putting a tokenizer together, piece by piece: what the loaders do, and tests.
 *
 * Order: tg_build_start; all tokens; added tokens and merges; the fields marked "set";
 * tg_build_finish. On any error the caller frees what it has with tg_tokenizer_free. `file` names
 * the source in messages and lives until tg_build_finish. */
#ifndef TG_TOKEN_BUILD_H
#define TG_TOKEN_BUILD_H

#include "base/json_walk.h"
#include "token/added.h"
#include "token/bpe.h"
#include "token/normalize.h"
#include "token/pretokenize.h"
#include "token/tokenizer.h"

enum { TG_MAX_AROUND = 8, TG_MAX_MERGES = 1 << 22 };

/* Ids that the model's own policy puts before or after a text. */
typedef struct tg_around {
    int32_t ids[TG_MAX_AROUND];
    int n;
} tg_around;

/* Which stretches of text get a space before them, unless they begin with one. */
typedef enum tg_prefix { TG_PREFIX_NONE, TG_PREFIX_FIRST, TG_PREFIX_ALL } tg_prefix;

struct tg_tokenizer {
    const char *file;
    tg_vocab vocab; /* set, before the first token: vocab.alphabet */
    tg_bpe bpe;
    uint32_t n_merges;
    size_t longest; /* bytes of a token */
    int32_t last_merged; /* what the last merge makes */
    tg_normalizer normalizer; /* set */
    tg_normalizer metaspace;  /* set: what is done after the tokens looked for in normalised text */
    tg_prefix prefix;         /* set */
    const tg_pretokenizer *pre; /* set; NULL: text is cut at spaces, or not at all */
    bool pre_assumed;           /* set: the file did not say which */
    bool each_space;            /* set: without pre, each space begins a piece */
    bool byte_fallback;         /* set: characters without a token are their bytes' tokens */
    bool ignore_merges;         /* set: a piece that is a token becomes it */
    bool strips_space;          /* set: decoding takes one space from the beginning of a text */
    tg_added_set raw;           /* added tokens looked for in the text as it is */
    tg_added_set normalized;    /* and after normalisation */
    int32_t bos, eos;           /* set; -1: none */
    tg_around before, after;    /* set */
};

tg_tokenizer *tg_build_start(const char *file, int n_vocab, tg_error *err);

/* Makes room for as many tokens and merges as will come, more or less. */
tg_status tg_build_reserve(tg_tokenizer *t, uint64_t n_tokens, uint64_t n_merges, tg_error *err);

/* See tg_vocab_add. */
tg_status tg_build_token(tg_tokenizer *t, int64_t id, const void *spelling, size_t n,
                         tg_error *err);

/* The next merge: two spellings, or one text with a single space between them (M56). `line` is its
 * number for messages, from 1. */
tg_status tg_build_merge(tg_tokenizer *t, const void *left, size_t n_left, const void *right,
                         size_t n_right, uint64_t line, tg_error *err);
tg_status tg_build_merge_text(tg_tokenizer *t, const void *text, size_t n, uint64_t line,
                              tg_error *err);

/* Instead of merges: what becomes token `id`, by its text, has the rank of its score, the highest
 * first. Fails on a score that is not a number. Tokens without a score come from no text. */
tg_status tg_build_score(tg_tokenizer *t, int32_t id, double score, tg_error *err);

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
/* The n bytes of a tokenizer.json, up to but not including tg_build_finish. */
tg_status tg_load_json(tg_tokenizer **t, const void *bytes, size_t n, const char *path, int n_vocab,
                       tg_error *err);

/* Steps of the last: what stands around the model, before its vocabulary is read and after. The
 * model's byte_fallback is set. */
tg_status tg_json_load_parts(tg_tokenizer *t, const json_t *root, tg_error *err);
tg_status tg_json_load_around(tg_tokenizer *t, const json_t *root, tg_error *err);
/* {"token": id, ...} into the vocabulary. */
tg_status tg_json_load_vocab(tg_tokenizer *t, const void *bytes, tg_json_range range,
                             tg_error *err);

/* Reading JSON members, for all of them. `path` is for messages; *out keeps its value when the
 * member is absent or null. */
tg_status tg_json_get_bool(const json_t *object, const char *key, bool *out, const char *path,
                           tg_error *err);
tg_status tg_json_get_text(const json_t *object, const char *key, const char **out,
                           const char *path, tg_error *err);
tg_status tg_json_wrong_type(const json_t *value, const char *key, const char *wanted,
                             const char *path, tg_error *err);
tg_status tg_json_refuse(const char *what, const char *found, const char *path, tg_error *err);
/* One entry of added_tokens or added_tokens_decoder, without its id; borrows the text. */
tg_status tg_json_get_added(const json_t *entry, tg_added_token *token, const char *path,
                            tg_error *err);
/* A line of merges that the reference passes over, wherever it stands (A16). */
bool tg_is_version_line(const char *text, size_t n);

#endif
