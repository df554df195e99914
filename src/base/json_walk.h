/* json_walk.h - a large JSON text value by value, as strict as json.h and without a tree.
 *
 * For objects and arrays of very many small values, where a tree costs ten times what reading does.
 * A walk stands before a value, or fails: then `err` is filled, with the byte offset, and every
 * later step fails as well. */
#ifndef TG_BASE_JSON_WALK_H
#define TG_BASE_JSON_WALK_H

#include <stdint.h>

#include "base/json.h"

typedef struct tg_json_walk {
    const uint8_t *s; /* the whole text, of n bytes */
    size_t n, at;
    const char *file;
    tg_error *err; /* not NULL */
    bool failed, begun;
    uint8_t *room[2]; /* strings that had escapes */
    size_t rooms[2];
} tg_json_walk;

/* A value inside a text: [from, to). None: both 0. */
typedef struct tg_json_range {
    size_t from, to;
} tg_json_range;

/* The whole text, but for a byte-order mark. */
tg_json_range tg_json_range_all(const void *bytes, size_t n);

/* Parses like tg_json_parse, all but the values of the n members keys[i] of the root's member
 * `parent`, or of the root itself if that is NULL. Those become null, and ranges[i] says where they
 * stand, for walks: they are not checked yet. A key is found as it is spelled. */
json_t *tg_json_parse_around(const void *bytes, size_t n_bytes, const char *file,
                             const char *parent, const char *const *keys, tg_json_range *ranges,
                             size_t n, tg_error *err);

/* A walk that stands before the value of the range. tg_json_walk_end frees what it holds, and fails
 * unless the range ends where the walk does. */
tg_json_walk tg_json_walk_start(const void *bytes, tg_json_range range, const char *file,
                                tg_error *err);
tg_status tg_json_walk_end(tg_json_walk *w);

/* The type of the value at hand, as tg_json_type_name has it (a number that is not an integer by
 * its spelling is "number"), or "nothing". */
const char *tg_json_walk_type(tg_json_walk *w);

/* Steps into an array or an object, `open` being '[' or '{'. Then each call of _next stands before
 * the next item, or key, until it returns false behind the end; there a failure looks like the end.
 */
bool tg_json_walk_open(tg_json_walk *w, char open);
bool tg_json_walk_next(tg_json_walk *w, char close);

/* A string: *n bytes of valid UTF-8 without a NUL, which stay until the next string of the same
 * `slot`, 0 or 1. With `key`, the colon behind it too. */
bool tg_json_walk_string(tg_json_walk *w, int slot, bool key, const uint8_t **bytes, size_t *n);
bool tg_json_walk_int(tg_json_walk *w, int64_t *value);

#endif
