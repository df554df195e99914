/* choose.c - a few rules over a list of paths. */
#include "fetch/choose.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fetch/names.h"

#define INDEX "model.safetensors.index.json"

/* The order of wishes when there is none: the usual compromise, its neighbours, then what is larger, then smaller. */
static const char *const quants[] = {
    "Q4_K_M",    "Q4_K_S", "Q4_K_XL", "Q4_K_L", "Q4_0", "Q4_1", "IQ4_NL", "IQ4_XS", "Q4",   "MXFP4",
    "MXFP4_MOE", "Q5_K_M", "Q5_K_S",  "Q5_K_L", "Q5_0", "Q5_1", "Q6_K",   "Q6_K_L", "Q8_0", "Q3_K_L",
    "Q3_K_M",    "Q3_K_S", "Q2_K",    "BF16",   "F16",  "FP16", "F32",    "FP32",
};

/* What a folder's model needs beside its weights, where it is there. */
static const char *const companions[] = {
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "tokenizer.model",
    "chat_template.jinja",
    "chat_template.json",
    "README.md",
    "LICENSE*",
};

static bool has_suffix(const char *s, const char *suffix)
{
    size_t n = strlen(s), k = strlen(suffix);
    return n >= k && strcasecmp(s + n - k, suffix) == 0;
}

/* Loading these can run any code. */
static bool is_pickle(const char *path)
{
    static const char *const suffixes[] = {".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (has_suffix(path, suffixes[i]))
            return true;
    return false;
}

bool tg_is_model_gguf(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    int no, of;
    return has_suffix(name, ".gguf") && !strcasestr(name, "mmproj") && !strcasestr(name, "imatrix") &&
           (!tg_split_part(name, &no, &of) || no == 1);
}

size_t tg_listing_find(const tg_listing *l, const char *path)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->files[i].path, path) == 0)
            return i;
    return TG_NO_FILE;
}

/* ---- building a choice --------------------------------------------------------------------- */

enum { PARTS_MAX = 1024, FILES_MAX = 10000, NAMES_ROOM = 700 };

typedef struct choosing {
    const tg_listing *l;
    tg_arena *arena;
    tg_error *err;
    bool *left_out; /* by `exclude` */
    bool *taken;
    size_t model;
    bool folder;
} choosing;

static bool begin(choosing *c, const tg_listing *l, tg_arena *arena, tg_error *err)
{
    *c = (choosing){.l = l, .arena = arena, .err = err, .model = TG_NO_FILE};
    c->left_out = tg_arena_alloc(arena, l->n + 1, 1, "a choice of files", err);
    c->taken = tg_arena_alloc(arena, l->n + 1, 1, "a choice of files", err);
    return c->left_out && c->taken;
}

/* Each path once, however often the listing has it. */
static bool is_new(const tg_listing *l, const tg_choice *choice, size_t file)
{
    for (size_t i = 0; i < choice->n; i++)
        if (strcmp(l->files[choice->files[i]].path, l->files[file].path) == 0)
            return false;
    return true;
}

static tg_status finish(const choosing *c, tg_status status, tg_choice *choice)
{
    *choice = (tg_choice){.model = c->model, .folder = c->folder};
    if (status != TG_OK)
        return status;
    choice->files = tg_arena_alloc(c->arena, c->l->n, sizeof *choice->files, "a choice of files", c->err);
    for (size_t i = 0; choice->files && i < c->l->n && choice->n <= FILES_MAX; i++)
        if (c->taken[i] && is_new(c->l, choice, i))
            choice->files[choice->n++] = i;
    if (choice->n > FILES_MAX)
        return tg_fail(c->err, TG_E_USAGE, c->l->repo, "more than %d files of it at once", FILES_MAX);
    return choice->files ? TG_OK : TG_E_RESOURCE;
}

/* The files that `wanted` is true of, for a message; "none". */
static const char *name_files(const choosing *c, bool (*wanted)(const char *path), char out[NAMES_ROOM])
{
    size_t used = 0, n = 0;
    out[0] = 0;
    for (size_t i = 0; i < c->l->n; i++) {
        tg_quoted q;
        if (c->left_out[i] || !wanted(c->l->files[i].path))
            continue;
        const char *name = tg_quote_str(&q, c->l->files[i].path);
        if (used + strlen(name) + 16 > NAMES_ROOM) {
            snprintf(out + used, NAMES_ROOM - used, ", ...");
            break;
        }
        used += (size_t)snprintf(out + used, NAMES_ROOM - used, "%s%s", n++ ? ", " : "", name);
    }
    return n ? out : "none";
}

/* Takes a file, and the others of which it is one part. */
static tg_status take(choosing *c, size_t file)
{
    const char *path = c->l->files[file].path;
    int no, of;
    size_t stem = tg_split_part(path, &no, &of);
    c->taken[file] = true;
    for (int i = 1; stem && i <= of; i++) {
        const char *name =
            i > PARTS_MAX ? NULL : tg_arena_format(c->arena, c->err, "%.*s-%05d-of-%05d.gguf", (int)stem, path, i, of);
        size_t part = name ? tg_listing_find(c->l, name) : TG_NO_FILE;
        tg_quoted q;
        if (part == TG_NO_FILE)
            return tg_fail(c->err, TG_E_NETWORK, c->l->repo, "of the %d parts of %s, number %d is not there", of,
                           tg_quote_str(&q, path), i);
        c->taken[part] = true;
        file = i == 1 ? part : file;
    }
    c->model = file;
    return TG_OK;
}

tg_status tg_choose_gguf(const tg_listing *l, size_t file, tg_choice *choice, tg_arena *arena, tg_error *err)
{
    choosing c;
    int no, of;
    if (tg_split_part(l->files[file].path, &no, &of) && of > 1)
        return begin(&c, l, arena, err) ? finish(&c, take(&c, file), choice) : TG_E_RESOURCE;
    /* One that has no other parts: the rest, of which a cache may hold any number, is not looked at. */
    *choice = (tg_choice){.model = file, .n = 1};
    choice->files = tg_arena_alloc(arena, 1, sizeof *choice->files, "a choice of files", err);
    if (!choice->files)
        return TG_E_RESOURCE;
    choice->files[0] = file;
    return TG_OK;
}

/* ---- GGUFs --------------------------------------------------------------------------------- */

static bool is_quant(const char *path, const char *quant)
{
    const char *at;
    size_t n = tg_quant_in(path, &at), k = strlen(quant);
    return n == k && strncasecmp(at, quant, k) == 0;
}

/* The one GGUF of a quantisation, those nearest to the top first; `quant` NULL: of any or none. *n is how many there
 * are at that depth. */
static size_t find_gguf(const choosing *c, const char *quant, size_t *n)
{
    size_t found = TG_NO_FILE, depth = SIZE_MAX;
    *n = 0;
    for (size_t i = 0; i < c->l->n; i++) {
        const char *path = c->l->files[i].path;
        if (c->left_out[i] || !tg_is_model_gguf(path) || (quant && !is_quant(path, quant)))
            continue;
        size_t slashes = 0;
        for (const char *s = path; (s = strchr(s, '/')); s++)
            slashes++;
        if (slashes < depth) {
            depth = slashes;
            found = i;
            *n = 0;
        }
        *n += slashes == depth;
    }
    return found;
}

static tg_status several(const choosing *c, tg_error *err)
{
    char names[NAMES_ROOM];
    return tg_fail(err, TG_E_USAGE, c->l->repo, "several files would do: name one (REPO:FILE) of %s",
                   name_files(c, tg_is_model_gguf, names));
}

static tg_status take_quant(choosing *c, const char *quant)
{
    char ud[64], names[NAMES_ROOM];
    size_t n, file = find_gguf(c, quant, &n);
    if (file == TG_NO_FILE) {
        snprintf(ud, sizeof ud, "UD-%.50s", quant);
        file = find_gguf(c, ud, &n);
    }
    tg_quoted q;
    if (file == TG_NO_FILE)
        return tg_fail(c->err, TG_E_NETWORK, c->l->repo, "there is no GGUF of quantisation %s here; there is %s",
                       tg_quote_str(&q, quant), name_files(c, tg_is_model_gguf, names));
    return n > 1 ? several(c, c->err) : take(c, file);
}

/* Rule 3; false when no GGUF names a quantisation that is known. */
static bool take_best_quant(choosing *c, tg_status *status)
{
    for (size_t i = 0; i < 2 * sizeof quants / sizeof *quants; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s%s", i % 2 ? "UD-" : "", quants[i / 2]);
        size_t n, file = find_gguf(c, name, &n);
        if (file != TG_NO_FILE) {
            *status = n > 1 ? several(c, c->err) : take(c, file);
            return true;
        }
    }
    return false;
}

/* ---- a folder of safetensors --------------------------------------------------------------- */

/* model-NNNNN-of-NNNNN.safetensors: the last number; 0: it is not called so. */
static int shard_of(const char *path)
{
    static const char shape[] = "model-00000-of-00000.safetensors";
    if (strlen(path) != sizeof shape - 1)
        return 0;
    for (size_t i = 0; shape[i]; i++)
        if (shape[i] == '0' ? path[i] < '0' || path[i] > '9' : path[i] != shape[i])
            return 0;
    return atoi(path + strlen("model-00000-of-"));
}

static bool is_safetensors(const char *path)
{
    return has_suffix(path, ".safetensors");
}

static bool is_companion(const char *path)
{
    for (size_t i = 0; i < sizeof companions / sizeof *companions; i++)
        if (fnmatch(companions[i], path, FNM_PATHNAME) == 0)
            return true;
    return false;
}

/* Rule 4; false when the folder is not such a one. An index tells of all shards; without one their numbers do. */
static bool take_folder(choosing *c)
{
    const tg_listing *l = c->l;
    size_t config = tg_listing_find(l, "config.json"), single = tg_listing_find(l, "model.safetensors"),
           index = tg_listing_find(l, INDEX);
    bool one = single != TG_NO_FILE && !c->left_out[single];
    int of = 0, n = 0;
    for (size_t i = 0; i < l->n; i++) {
        int shard = c->left_out[i] ? 0 : shard_of(l->files[i].path);
        of = shard > of ? shard : of;
        n += shard > 0;
    }
    if (config == TG_NO_FILE || c->left_out[config] || (!one && (n == 0 || (index == TG_NO_FILE && n < of))))
        return false;
    for (size_t i = 0; i < l->n; i++)
        c->taken[i] = !c->left_out[i] && (is_companion(l->files[i].path) || (!one && shard_of(l->files[i].path)));
    c->folder = true;
    c->taken[one ? single : index != TG_NO_FILE ? index : config] = true;
    return true;
}

tg_status tg_choose_folder(const tg_listing *l, tg_choice *choice, tg_arena *arena, tg_error *err)
{
    choosing c;
    if (!begin(&c, l, arena, err))
        return TG_E_RESOURCE;
    return finish(&c, take_folder(&c) ? TG_OK : tg_fail(err, TG_E_NETWORK, l->repo, "there is no model in safetensors"),
                  choice);
}

/* ---- files and patterns -------------------------------------------------------------------- */

static bool matches(const char *path, const char *const *patterns, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t k = strlen(patterns[i]);
        bool folder = k && patterns[i][k - 1] == '/'; /* everything in it */
        if (folder ? strncmp(path, patterns[i], k) == 0 : fnmatch(patterns[i], path, 0) == 0)
            return true;
    }
    return false;
}

static bool is_weights(const char *path)
{
    return tg_is_model_gguf(path) || is_safetensors(path);
}

static tg_status pickles_alone(const choosing *c, tg_error *err)
{
    char names[NAMES_ROOM];
    return tg_fail(err, TG_E_MODEL, c->l->repo,
                   "weights as pickles alone, which can run any code and are never fetched: %s",
                   name_files(c, is_pickle, names));
}

static tg_status take_files(choosing *c, const tg_wish *wish)
{
    for (size_t i = 0; i < wish->n_files; i++) {
        size_t file = tg_listing_find(c->l, wish->files[i]);
        char names[NAMES_ROOM];
        tg_quoted q;
        if (file == TG_NO_FILE)
            return tg_fail(c->err, TG_E_NETWORK, c->l->repo,
                           "there is no file %s in this repository; of weights there is %s",
                           tg_quote_str(&q, wish->files[i]), name_files(c, is_weights, names));
        tg_status status = is_pickle(wish->files[i]) ? pickles_alone(c, c->err) : take(c, file);
        if (status != TG_OK)
            return status;
    }
    return TG_OK;
}

static tg_status take_matching(choosing *c, const tg_wish *wish)
{
    size_t n = 0, pickles = 0;
    for (size_t i = 0; i < c->l->n; i++) {
        const char *path = c->l->files[i].path;
        bool good = !c->left_out[i] && matches(path, wish->include, wish->n_include), pickle = good && is_pickle(path);
        n += c->taken[i] = good && !pickle;
        pickles += pickle;
    }
    return n         ? TG_OK
           : pickles ? pickles_alone(c, c->err)
                     : tg_fail(c->err, TG_E_NETWORK, c->l->repo, "no file of this repository fits the patterns");
}

/* What -m takes of files that were named: the only file, the only GGUF, or the folder. */
static size_t model_among(const choosing *c)
{
    size_t n = 0, n_gguf = 0, last = TG_NO_FILE, gguf = TG_NO_FILE;
    bool folder = false;
    for (size_t i = 0; i < c->l->n; i++) {
        if (!c->taken[i])
            continue;
        const char *path = c->l->files[i].path;
        n++;
        last = i;
        folder |= is_safetensors(path);
        if (tg_is_model_gguf(path)) {
            n_gguf++;
            gguf = i;
        }
    }
    return n_gguf == 1 && !folder ? gguf : n == 1 ? last : TG_NO_FILE;
}

/* ---- the rules ----------------------------------------------------------------------------- */

static tg_status choose(choosing *c, const tg_wish *wish)
{
    tg_status status = TG_OK;
    if (wish->n_include || wish->n_files) {
        status = wish->n_include ? take_matching(c, wish) : take_files(c, wish);
        c->model = model_among(c);
        return status;
    }
    if (wish->quant)
        return take_quant(c, wish->quant);
    if (take_best_quant(c, &status))
        return status;
    if (take_folder(c))
        return TG_OK;
    char names[NAMES_ROOM];
    size_t n, file = find_gguf(c, NULL, &n), pickle = 0;
    if (file != TG_NO_FILE)
        return n > 1 ? several(c, c->err) : take(c, file);
    while (pickle < c->l->n && !is_pickle(c->l->files[pickle].path))
        pickle++;
    return pickle < c->l->n
               ? pickles_alone(c, c->err)
               : tg_fail(c->err, TG_E_MODEL, c->l->repo,
                         "no model in this repository: neither a GGUF, nor config.json with model.safetensors or its "
                         "shards; other safetensors: %s",
                         name_files(c, is_safetensors, names));
}

tg_status tg_choose(const tg_listing *l, const tg_wish *wish, tg_choice *choice, tg_arena *arena, tg_error *err)
{
    choosing c;
    if (!begin(&c, l, arena, err))
        return TG_E_RESOURCE;
    for (size_t i = 0; i < l->n; i++)
        c.left_out[i] = matches(l->files[i].path, wish->exclude, wish->n_exclude);
    return finish(&c, choose(&c, wish), choice);
}
