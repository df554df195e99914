/* locate.h - from what names a model to where it is. */
#ifndef TG_CLI_LOCATE_H
#define TG_CLI_LOCATE_H

#include "fetch/fetch.h"

/* *path (tg_free) becomes what tg_model_load takes: `name` itself where that is a path that exists; a model on
 * this machine by any of its names; what "hf:REPO[:FILE]" names, fetched. A name that is none of these and
 * nearly one is TG_E_IO; any other is taken for a path, of which the loader will say what is wrong with it. */
int tg_locate(char **path, const char *name, tg_error *err);

/* The name nearest to a mistyped one among those of the models on this machine and, if `catalog`, those that
 * pull knows: NULL, or for free. Without `catalog`, a name that is not mistyped is nearest to itself. */
char *tg_locate_nearest(const char *typed, bool catalog);

#endif
