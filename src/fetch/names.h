/* names.h - what people may call a model, and which names from outside are taken. No name here leads to a request
 * before it was found to be of the form that is allowed. */
#ifndef TG_FETCH_NAMES_H
#define TG_FETCH_NAMES_H

#include "base/memory.h"

/* What a name means; strings are in the arena. */
typedef struct tg_name {
    const char *url; /* of one file, or NULL: a repository of the hub */
    const char *repo;
    const char *file;     /* in it, or NULL */
    const char *quant;    /* quantisation that is wished for, or NULL */
    const char *revision; /* that the address of a hub's page names, or NULL */
} tg_name;

/* Takes REPO, REPO:FILE, REPO:QUANT, a name of the catalogue (with :FILE or :QUANT too), with "hf:" or "hf.co/" before
 * them or not; the address of a page or file of the hub, `endpoint` among them; or any other http(s) URL. TG_E_USAGE
 * for what is none. */
tg_status tg_name_parse(tg_name *name, const char *what, const char *endpoint, tg_arena *arena, tg_error *err);

/* Owner and name as the hub has them (huggingface_hub, validate_repo_id); TG_E_USAGE. */
tg_status tg_check_repo(const char *repo, tg_error *err);
/* A branch, tag or commit, as git has them but of plain characters, without "/" and ".."; TG_E_USAGE. */
tg_status tg_check_revision(const char *revision, tg_error *err);

/* Why the path of a file, relative and with "/" between its components, may not be used below a folder; NULL: it may.
 * For names from a server, an index or a URL. */
const char *tg_bad_path(const char *path);

/* Is s[0 .. n) n hexadecimal digits in lower case? */
bool tg_is_hex(const char *s, size_t n);

/* For a URL: all but letters, digits and "-._~/" as %XX. */
char *tg_percent_encode(const char *s, tg_arena *arena, tg_error *err);

/* The quantisation that a GGUF's path names, in its last part or else its folder: its length, and *at in the path. 0
 * when it names none. "Q4_K_M", "q8_0", "UD-IQ2_XXS", "BF16", "MXFP4". */
size_t tg_quant_in(const char *path, const char **at);

/* `<prefix>-00001-of-00003.gguf`: the length of <prefix>, and the numbers. 0: not one of several. */
size_t tg_split_part(const char *path, int *no, int *of);

#endif
