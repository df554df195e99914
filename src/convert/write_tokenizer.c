/* write_tokenizer.c - a folder's tokenizer as the metadata of a GGUF.
 *
 * Spellings and merges are copied as the files have them; what they are for is asked of the tokenizer that reading
 * them gives. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "convert/folder.h"
#include "token/build.h"

enum { TYPE_NORMAL = 1, TYPE_UNKNOWN = 2, TYPE_CONTROL = 3, TYPE_USER_DEFINED = 4, TYPE_UNUSED = 5, TYPE_BYTE = 6 };

typedef struct tables {
    tg_gguf_writer *w;
    const tg_container *in;
    tg_tokenizer *tokenizer;
    tg_tokenizer_info info;
    bool sentence_piece;
    int n_vocab;
    json_t *root, *vocab;  /* tokenizer.json, or vocab.json alone */
    int32_t unknown;       /* -1: none */
    const char **spelling; /* [n_vocab], of the tokens in `vocab` */
    float *score;          /* [n_vocab] with SentencePiece, else NULL */
    tg_error *err;
} tables;

/* ---- reading -------------------------------------------------------------------------------------------- */

/* NULL when there is no such file, or it failed. */
static json_t *read_json(tables *t, const char *name)
{
    tg_file file;
    char *path;
    if (tg_container_sidecar(t->in, name, TG_MAX_JSON_BYTES, &file, &path, t->err) != TG_OK || !path)
        return NULL;
    json_t *root = tg_json_parse(file.data, file.size, path, t->err);
    tg_file_close(&file);
    tg_free(path);
    return root;
}

static tg_status read_vocab(tables *t)
{
    const char *spelling;
    json_t *id;
    t->root = read_json(t, "tokenizer.json");
    t->vocab = json_object_get(json_object_get(t->root, "model"), "vocab");
    if (!t->root && t->err->status == TG_OK)
        t->vocab = t->root = read_json(t, "vocab.json");
    if (t->err->status != TG_OK)
        return t->err->status;
    t->spelling = tg_alloc((size_t)t->n_vocab, sizeof *t->spelling, "spellings of tokens", t->err);
    if (!t->spelling)
        return TG_E_RESOURCE;
    json_object_foreach(t->vocab, spelling, id)
    {
        json_int_t i = json_integer_value(id);
        if (i >= 0 && i < t->n_vocab)
            t->spelling[i] = spelling;
    }
    const char *unknown = json_string_value(json_object_get(json_object_get(t->root, "model"), "unk_token"));
    id = unknown && t->sentence_piece ? json_object_get(t->vocab, unknown) : NULL;
    if (id && json_integer_value(id) >= 0 && json_integer_value(id) < t->n_vocab)
        t->unknown = (int32_t)json_integer_value(id);
    return TG_OK;
}

/* A merge as "left right", which may stand as a text or as a pair; reading saw to its length. */
static size_t merge_text(const json_t *merge, char *text, size_t room)
{
    const char *whole = json_string_value(merge), *left = json_string_value(json_array_get(merge, 0));
    const char *right = json_string_value(json_array_get(merge, 1));
    int n = whole ? snprintf(text, room, "%s", whole)
                  : snprintf(text, room, "%s %s", left ? left : "", right ? right : "");
    return n < (int)room ? (size_t)n : room - 1;
}

/* SentencePiece's merges have an order; a GGUF has scores instead, the highest first, of what they make. */
static tg_status rank_tokens(tables *t)
{
    const json_t *merges = json_object_get(json_object_get(t->root, "model"), "merges");
    const size_t n = json_array_size(merges);
    t->score = tg_alloc((size_t)t->n_vocab, sizeof *t->score, "scores of tokens", t->err);
    if (!t->score)
        return TG_E_RESOURCE;
    for (size_t i = n; i-- > 0;) { /* the first that makes a token counts */
        char text[2 * TG_MAX_TOKEN_BYTES + 2];
        size_t length = merge_text(json_array_get(merges, i), text, sizeof text);
        char *space = memchr(text, ' ', length);
        if (!space)
            continue;
        memmove(space, space + 1, length - (size_t)(space - text)); /* and the end of the text */
        json_int_t id = json_integer_value(json_object_get(t->vocab, text));
        if (json_object_get(t->vocab, text) && id >= 0 && id < t->n_vocab)
            t->score[id] = -(float)(i + 1);
    }
    for (int id = 0; id < t->n_vocab; id++)
        t->score[id] = t->score[id] != 0 ? t->score[id] : -(float)(n + 1);
    return TG_OK;
}

/* Does a text get a space before it? */
static bool has_space_prefix(const tables *t)
{
    static const char space[] = "\xe2\x96\x81";
    int32_t *ids = NULL;
    size_t n = 0;
    tg_tokenizer_encode(t->tokenizer, "a", 1, 0, &ids, &n, NULL, NULL);
    const char *first = n && ids[0] < t->n_vocab ? t->spelling[ids[0]] : NULL;
    bool prefixed = first && strncmp(first, space, sizeof space - 1) == 0;
    tg_free(ids);
    return prefixed;
}

/* ---- tokens --------------------------------------------------------------------------------------------- */

static bool is_byte(const char *spelling)
{
    unsigned value;
    int n = 0;
    return spelling && sscanf(spelling, "<0x%2X>%n", &value, &n) == 1 && n == 6 && spelling[6] == 0;
}

static int32_t type_of(const tables *t, int32_t id)
{
    tg_token_kind kind = tg_tokenizer_kind(t->tokenizer, id);
    if (kind == TG_TOKEN_UNUSED)
        return TYPE_UNUSED;
    if (id == t->unknown)
        return TYPE_UNKNOWN;
    if (kind == TG_TOKEN_SPECIAL)
        return TYPE_CONTROL;
    return t->tokenizer->vocab.tokens[id].is_added       ? TYPE_USER_DEFINED
           : t->sentence_piece && is_byte(t->spelling[id]) ? TYPE_BYTE
                                                           : TYPE_NORMAL;
}

static void put_tokens(const tables *t)
{
    tg_gguf_put_array(t->w, "tokenizer.ggml.tokens", TG_GGUF_TEXT, (uint64_t)t->n_vocab);
    for (int32_t id = 0; id < t->n_vocab; id++) {
        char hole[32];
        size_t n;
        const char *text = t->spelling[id];
        n = text ? strlen(text) : 0;
        if (!text)
            text = tg_tokenizer_bytes(t->tokenizer, id, &n); /* added tokens stand for themselves */
        if (n == 0) {
            n = (size_t)snprintf(hole, sizeof hole, "[PAD%d]", id);
            text = hole;
        }
        tg_gguf_add_text(t->w, text, n);
    }
    tg_gguf_put_array(t->w, "tokenizer.ggml.token_type", TG_GGUF_I32, (uint64_t)t->n_vocab);
    for (int32_t id = 0; id < t->n_vocab; id++)
        tg_gguf_add_i32(t->w, type_of(t, id));
    if (t->score)
        tg_gguf_put_array(t->w, "tokenizer.ggml.scores", TG_GGUF_F32, (uint64_t)t->n_vocab);
    for (int32_t id = 0; id < t->n_vocab && t->score; id++)
        tg_gguf_add_f32(t->w, t->score[id]);
}

/* ---- merges --------------------------------------------------------------------------------------------- */

static size_t n_merges_of(const json_t *merges)
{
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(merges); i++) {
        const char *text = json_string_value(json_array_get(merges, i));
        n += !text || !tg_is_version_line(text, strlen(text));
    }
    return n;
}

/* The two parts of a merge, as one text. */
static void add_merge(const tables *t, const json_t *merge)
{
    char text[2 * TG_MAX_TOKEN_BYTES + 2];
    size_t n = merge_text(merge, text, sizeof text);
    if (!tg_is_version_line(text, n))
        tg_gguf_add_text(t->w, text, n);
}

static void put_merges(const tables *t)
{
    const json_t *merges = json_object_get(json_object_get(t->root, "model"), "merges");
    tg_gguf_put_array(t->w, "tokenizer.ggml.merges", TG_GGUF_TEXT, n_merges_of(merges));
    for (size_t i = 0; i < json_array_size(merges); i++)
        add_merge(t, json_array_get(merges, i));
}

/* A line of merges.txt that is one, without its end. */
static bool next_line(const tg_file *file, size_t *at, const char **line, size_t *n)
{
    while (*at < file->size) {
        const char *s = (const char *)file->data + *at, *end = memchr(s, '\n', file->size - *at);
        *n = end ? (size_t)(end - s) : file->size - *at;
        *at += *n + (end != NULL);
        *n -= *n > 0 && s[*n - 1] == '\r';
        *line = s;
        if (*n > 0 && !tg_is_version_line(s, *n))
            return true;
    }
    return false;
}

static tg_status put_merges_txt(const tables *t)
{
    tg_file file;
    char *path;
    tg_status status = tg_container_sidecar(t->in, "merges.txt", TG_MAX_JSON_BYTES, &file, &path, t->err);
    if (status != TG_OK)
        return status;
    const char *line;
    size_t at = 0, n, n_lines = 0;
    while (next_line(&file, &at, &line, &n))
        n_lines++;
    tg_gguf_put_array(t->w, "tokenizer.ggml.merges", TG_GGUF_TEXT, n_lines);
    for (at = 0; next_line(&file, &at, &line, &n);)
        tg_gguf_add_text(t->w, line, n);
    tg_file_close(&file);
    tg_free(path);
    return TG_OK;
}

/* ---- all ------------------------------------------------------------------------------------------------- */

static void put_template(tables *t)
{
    json_t *config = read_json(t, "tokenizer_config.json");
    const char *text = json_string_value(json_object_get(config, "chat_template"));
    if (text)
        tg_gguf_put_text(t->w, "tokenizer.chat_template", text, strlen(text));
    json_decref(config);
}

/* A GGUF has three keys for what ends a text. */
static void put_ends(const tables *t)
{
    static const char *const keys[] = {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"};
    int n = 0;
    if (t->info.eos >= 0)
        tg_gguf_put_u32(t->w, "tokenizer.ggml.eos_token_id", (uint32_t)t->info.eos);
    for (int32_t id = 0; id < t->info.n_tokens && n < 2; id++)
        if (id != t->info.eos && tg_tokenizer_is_eog(t->tokenizer, id))
            tg_gguf_put_u32(t->w, keys[n++], (uint32_t)id);
}

static tg_status put_all(tables *t)
{
    tg_status status = TG_OK;
    const char *model = t->sentence_piece ? "llama" : "gpt2", *pre = t->sentence_piece ? "default" : t->info.pre;
    tg_gguf_put_text(t->w, "tokenizer.ggml.model", model, strlen(model));
    tg_gguf_put_text(t->w, "tokenizer.ggml.pre", pre, strlen(pre));
    put_tokens(t);
    if (t->sentence_piece)
        tg_gguf_put_bool(t->w, "tokenizer.ggml.add_space_prefix", has_space_prefix(t));
    else if (t->vocab == t->root)
        status = put_merges_txt(t);
    else
        put_merges(t);
    if (t->info.bos >= 0)
        tg_gguf_put_u32(t->w, "tokenizer.ggml.bos_token_id", (uint32_t)t->info.bos);
    put_ends(t);
    if (t->unknown >= 0)
        tg_gguf_put_u32(t->w, "tokenizer.ggml.unknown_token_id", (uint32_t)t->unknown);
    tg_gguf_put_bool(t->w, "tokenizer.ggml.add_bos_token", t->info.add_bos);
    tg_gguf_put_bool(t->w, "tokenizer.ggml.add_eos_token", t->info.add_eos);
    put_template(t);
    return status == TG_OK ? t->err->status : status;
}

tg_status tg_write_tokenizer(tg_gguf_writer *w, const tg_container *in, int n_vocab, tg_error *err)
{
    tables t = {.w = w, .in = in, .n_vocab = n_vocab, .unknown = -1, .err = err};
    tg_status status = tg_tokenizer_load(&t.tokenizer, in, n_vocab, err);
    if (status == TG_OK) {
        tg_tokenizer_get_info(t.tokenizer, &t.info);
        t.sentence_piece = strncmp(t.info.model, "SentencePiece", 13) == 0;
        status = read_vocab(&t);
    }
    if (status == TG_OK && t.sentence_piece)
        status = rank_tokens(&t);
    if (status == TG_OK)
        status = put_all(&t);
    tg_tokenizer_free(t.tokenizer);
    tg_free(t.spelling);
    tg_free(t.score);
    json_decref(t.root);
    return status;
}
