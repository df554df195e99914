/* choose.h - which files of a repository make the model. The same rules serve what is fetched and what lies in the
 * cache. */
#ifndef TG_FETCH_CHOOSE_H
#define TG_FETCH_CHOOSE_H

#include "fetch/hub.h"

typedef struct tg_wish {
    const char *quant;        /* or NULL */
    const char *const *files; /* these, by their paths */
    size_t n_files;
    const char *const *include, *const *exclude; /* patterns of fnmatch, in which '*' takes '/' too */
    size_t n_include, n_exclude;
} tg_wish;

#define TG_NO_FILE SIZE_MAX

typedef struct tg_choice {
    size_t *files; /* places in the listing, ascending; n of them (arena) */
    size_t n;
    size_t model; /* place in the listing of what -m takes, of a split model the first part; TG_NO_FILE: the folder */
    bool folder;  /* by rule 4 */
} tg_choice;

/* 1. `include` or `files`: those. 2. `quant`: the GGUF of that quantisation. 3. GGUFs that name a quantisation: the
 * first of Q4_K_M and what comes nearest. 4. config.json, tokenizer and safetensors. 5. The only GGUF. Parts of a
 * split file come all together; pickles never. TG_E_NETWORK for what is not there, TG_E_MODEL when only pickles are,
 * TG_E_USAGE when several would do. Messages list what there is. */
tg_status tg_choose(const tg_listing *listing, const tg_wish *wish, tg_choice *choice, tg_arena *arena, tg_error *err);

/* A folder of safetensors alone (4.), and a GGUF by its place. */
tg_status tg_choose_folder(const tg_listing *listing, tg_choice *choice, tg_arena *arena, tg_error *err);
tg_status tg_choose_gguf(const tg_listing *listing, size_t file, tg_choice *choice, tg_arena *arena, tg_error *err);

/* Of a folder (4.) that is here, below `folder`: are the shards that its index names among the files of the choice
 * (TG_E_MODEL), and is there a tokenizer (TG_E_NETWORK)? Other tools may have fetched weights alone. */
tg_status tg_choice_check(const tg_listing *listing, const tg_choice *choice, const char *folder, tg_error *err);
tg_status tg_choice_check_tokenizer(const tg_listing *listing, const tg_choice *choice, tg_error *err);

/* Is it a GGUF with a model in it, and of several parts the first? */
bool tg_is_model_gguf(const char *path);

/* The place of a path; TG_NO_FILE. */
size_t tg_listing_find(const tg_listing *listing, const char *path);

#endif
