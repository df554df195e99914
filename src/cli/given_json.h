/* given_json.h - JSON that comes from outside. */
#ifndef TG_CLI_GIVEN_JSON_H
#define TG_CLI_GIVEN_JSON_H

#include "base/json.h"

/* As tg_json_decode, which takes up to a hundred bytes of memory for one of "[[],[],[]]": NULL, too, for what would take
 * more than 16 times its bytes and 16 MiB, or more than 240 MiB. why->text says so. A byte-order mark before it is
 * skipped. */
json_t *tg_given_json(const char *bytes, size_t n, size_t flags, json_error_t *why);

#endif
