/* added.h - finding added tokens in text: those that stand outside the merges and always become one
 * id.
 *
 * The rules are the reference's: the leftmost match, and of those at one place the longest. A match
 * of a special token that is not asked for is passed over as plain text, whatever else begins
 * inside it. */
#ifndef TG_TOKEN_ADDED_H
#define TG_TOKEN_ADDED_H

#include "base/error.h"

typedef struct tg_added_token {
    const char *text;
    size_t n_bytes;
    int32_t id;
    bool special;
    bool single_word; /* not beside a word character */
    bool lstrip;      /* takes the white space before it along */
    bool rstrip;      /* and after it */
    bool
        normalized; /* is looked for after normalisation, and in the pieces that the others leave */
} tg_added_token;

enum { TG_MAX_ADDED_BYTES = 16 << 20 }; /* of all tokens of a set: 16 bytes of memory for each */

/* Tokens ordered by their bytes from the end; the texts are the set's own. */
typedef struct tg_added_set {
    tg_added_token *tokens;
    size_t n, room, longest;
    struct tg_added_state *states; /* see added.c */
    size_t n_states, states_room;
    bool begins[256];   /* does a token begin with this byte? */
    uint32_t root[256]; /* the state that a byte leads to from the first one */
} tg_added_set;

/* Copies the token. The text is not empty. */
tg_status tg_added_add(tg_added_set *set, const tg_added_token *token, tg_error *err);
/* Makes the set ready, once all tokens are in. TG_E_MODEL if two have the same text, or all too many bytes; `file` is for
 * the message. */
tg_status tg_added_finish(tg_added_set *set, const char *file, tg_error *err);
void tg_added_deinit(tg_added_set *set);

enum { TG_ADDED_AHEAD = 512 };

/* Walks a text. Start with {.set, .text, .n, .special}, zero elsewhere. */
typedef struct tg_added_walk {
    const tg_added_set *set;
    const uint8_t *text;
    size_t n;
    bool special;  /* special tokens count */
    const uint8_t *plain; /* [n]: but not where a byte is not 0; NULL: everywhere */
    const uint8_t *written; /* [set->n], where a byte is: nor do tokens for which it is not 0, special or not, where a byte is 1 */
    size_t search; /* matching goes on here */
    size_t done;   /* text up to here is dealt with */
    size_t spaces; /* and up to here white space is known, from the end of a token on */
    bool ended;
    size_t seen, seen_to; /* for text[seen .. seen_to): */
    int32_t found[TG_ADDED_AHEAD]; /* the longest token that begins there, or -1 */
} tg_added_walk;

/* written[i] = 1 for each token i that stands somewhere in the n bytes; linear in them. */
void tg_added_mark(const tg_added_set *set, const void *text, size_t n, uint8_t *written);

/* The next stretch of plain text, which may be empty, and the id of the added token after it, or -1
 * when the text ends instead. False once that has been said. */
bool tg_added_next(tg_added_walk *walk, size_t *from, size_t *to, int32_t *id);

#endif
