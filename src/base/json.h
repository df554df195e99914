/* json.h - JSON from outside, through jansson: strict UTF-8, duplicates refused, nesting bounded. */
#ifndef TG_BASE_JSON_H
#define TG_BASE_JSON_H

#include <jansson.h>

#include "base/error.h"

enum { TG_JSON_DEPTH_MAX = 64 };

/* Parses the n bytes as one JSON value (a byte-order mark before it is skipped). NULL, with err filled
 * (TG_E_MODEL, the byte offset), for whatever is not one: also for a name that stands twice in an object
 * ("duplicate"), nesting above the limit, a NUL in a string, an integer beyond 64 bits, and for a value
 * that would take more than 16 times its bytes (and 16 MiB) of memory, or more than 240 MiB. Free with json_decref. */
json_t *tg_json_parse(const void *bytes, size_t n, const char *file, tg_error *err);

/* The same for a file of at most max_bytes. */
json_t *tg_json_load(const char *path, uint64_t max_bytes, tg_error *err);

/* jansson's json_loadb, which must not run out of memory, by whatever bytes are given: then the error's code is
 * json_error_out_of_memory. For what a person or a program asks for; files take tg_json_parse. */
json_t *tg_json_decode(const char *bytes, size_t n, size_t flags, json_error_t *why);

/* The value as text, with a NUL (tg_free). NULL, with err filled, without memory, and for no value, which is what jansson
 * makes without. Its own json_dumps loses keys then. */
char *tg_json_text(const json_t *value, size_t flags, const char *purpose, tg_error *err);

/* From now on it is noted when jansson gets no memory; values that were made since may lack something. */
void tg_json_watch(void);
bool tg_json_lacks_memory(void);

/* "object", "array", "string", "integer", "number", "boolean", "null"; "number" is one with a fraction or an
 * exponent. */
const char *tg_json_type_name(const json_t *value);

#endif
