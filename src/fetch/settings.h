/* settings.h - what the environment says about the hub, in the hub's own order and spellings. */
#ifndef TG_FETCH_SETTINGS_H
#define TG_FETCH_SETTINGS_H

#include "base/memory.h"

typedef struct tg_settings {
    const char *hub_cache; /* HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME/hub, XDG_CACHE_HOME/huggingface/hub */
    const char *url_cache; /* XDG_CACHE_HOME/tinygpt */
    const char *endpoint;  /* HF_ENDPOINT without the slashes at its end */
    const char *token;     /* HF_TOKEN, HUGGING_FACE_HUB_TOKEN, the file HF_TOKEN_PATH, HF_HOME/token; NULL: none, or
                              HF_HUB_DISABLE_IMPLICIT_TOKEN */
    bool offline;          /* HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE */
} tg_settings;

/* Strings are in the arena. An empty variable is one that is not set. TG_E_USAGE for an endpoint or a token that
 * cannot be one; TG_E_IO for a token file that cannot be read, unless `offline` makes it needless. */
tg_status tg_settings_read(tg_settings *settings, bool offline, tg_arena *arena, tg_error *err);

#endif
