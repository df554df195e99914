/* verify.c - does the GGUF that was made of a folder say what the folder says? */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "convert/folder.h"
#include "token/tokenizer.h"

/* What must be the same; the rest is compared by what follows from it, or is said by the tensors. */
typedef enum kind { INTEGER, SINGLE, FLAG } kind;

static const struct {
    const char *name;
    size_t at;
    kind kind;
} fields[] = {
    {"number of layers", offsetof(tg_config, n_layer), INTEGER},
    {"size of the embedding", offsetof(tg_config, n_embd), INTEGER},
    {"number of heads", offsetof(tg_config, n_head), INTEGER},
    {"number of key-value heads", offsetof(tg_config, n_head_kv), INTEGER},
    {"size of a head", offsetof(tg_config, head_dim), INTEGER},
    {"size of the feed-forward", offsetof(tg_config, n_ff), INTEGER},
    {"size of the vocabulary", offsetof(tg_config, n_vocab), INTEGER},
    {"trained context", offsetof(tg_config, n_ctx_train), INTEGER},
    {"activation", offsetof(tg_config, act), INTEGER},
    {"limit of the activation", offsetof(tg_config, act_limit), SINGLE},
    {"first position", offsetof(tg_config, pos_offset), INTEGER},
    {"window of attention", offsetof(tg_config, window), INTEGER},
    {"number of experts", offsetof(tg_config, n_expert), INTEGER},
    {"number of experts used", offsetof(tg_config, n_expert_used), INTEGER},
    {"epsilon of norms", offsetof(tg_config, norm_eps), SINGLE},
    {"cap of attention scores", offsetof(tg_config, soft_cap), SINGLE},
    {"scale of attention scores", offsetof(tg_config, attn_scale), SINGLE},
    {"scale of attention scores by layer", offsetof(tg_config, scale_by_layer), FLAG},
    {"scale of embeddings", offsetof(tg_config, embd_scale), SINGLE},
    {"scale of residuals", offsetof(tg_config, residual_scale), SINGLE},
    {"scale of logits", offsetof(tg_config, logit_scale), SINGLE},
    {"cap of logits", offsetof(tg_config, logit_cap), SINGLE},
    {"norm over all heads", offsetof(tg_config, qk_norm_whole), FLAG},
    {"parallel residual", offsetof(tg_config, parallel), FLAG},
    {"weights of experts among all", offsetof(tg_config, share_all), FLAG},
};

static bool near(float a, float b)
{
    return fabsf(a - b) <= 2e-6f * fmaxf(fabsf(a), fabsf(b));
}

static double value_at(const tg_config *c, size_t i)
{
    const void *p = (const char *)c + fields[i].at;
    return fields[i].kind == INTEGER  ? *(const int *)p
           : fields[i].kind == SINGLE ? (double)*(const float *)p
                                      : *(const bool *)p;
}

/* The name of what differs, or NULL. */
static const char *differing_field(const tg_config *a, const tg_config *b)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (!near((float)value_at(a, i), (float)value_at(b, i)))
            return fields[i].name;
    for (int i = 0; i < a->n_layer; i++)
        if (a->layer[i] != b->layer[i])
            return "kinds of layers";
    return NULL;
}

/* Frequencies and magnitudes, in short contexts, in the longest and beyond. */
static tg_status compare_rope(const tg_weights *a, const tg_weights *b, tg_arena *arena, bool *same, tg_error *err)
{
    *same = true;
    for (int k = 0; k < 2 && *same; k++) {
        const tg_rope *ra = &a->config.rope[k], *rb = &b->config.rope[k];
        const int n = ra->n_rot / 2, n_ctx[] = {1, a->config.n_ctx_train, 4 * a->config.n_ctx_train};
        *same = ra->n_rot == rb->n_rot;
        if (n == 0 || !*same)
            continue;
        float *f = tg_arena_alloc(arena, 2 * (size_t)n, sizeof *f, "frequencies", err);
        if (!f)
            return TG_E_RESOURCE;
        for (int c = 0; c < 3 && *same; c++) {
            const tg_rope_factors none = {0};
            float ma = tg_rope_frequencies(ra, k ? none : a->rope_factors, n_ctx[c], f);
            *same = near(ma, tg_rope_frequencies(rb, k ? none : b->rope_factors, n_ctx[c], f + n));
            for (int i = 0; i < n; i++)
                *same &= near(f[i], f[n + i]);
        }
    }
    return TG_OK;
}

/* Do both give the same ids to texts whose spaces, numbers, words and compositions tokenizers treat in their own
 * ways? Texts of added tokens are not among them: their flags (lstrip and the like) have no place in a GGUF. */
static tg_status compare_ids(const tg_tokenizer *a, const tg_tokenizer *b, bool *same, tg_error *err)
{
    static const char *const texts[] = {
        "Hello world", " leading", "  two  spaces  ", "\n\n\tlines \r\n end\n", "e\xcc\x81 \xe2\x84\xab \xef\xac\x81",
        "It's 12345 and 6.7%, don't", "camelCase(x_1) // \xe4\xbd\xa0\xe5\xa5\xbd \xf0\x9f\x98\x80", "\xe2\x96\x81mark \xff\x01",
    };
    tg_status status = TG_OK;
    for (size_t i = 0; i < sizeof texts / sizeof *texts && status == TG_OK && *same; i++) {
        int32_t *x = NULL, *y = NULL;
        size_t n = 0, m = 0, dropped;
        status = tg_tokenizer_encode(a, texts[i], strlen(texts[i]), TG_TOK_BOS, &x, &n, &dropped, err);
        if (status == TG_OK)
            status = tg_tokenizer_encode(b, texts[i], strlen(texts[i]), TG_TOK_BOS, &y, &m, &dropped, err);
        *same = n == m && (n == 0 || status != TG_OK || memcmp(x, y, n * sizeof *x) == 0);
        tg_free(x);
        tg_free(y);
    }
    return status;
}

static const char *differing_tokenizer(const tg_tokenizer *a, const tg_tokenizer *b)
{
    tg_tokenizer_info x, y;
    tg_tokenizer_get_info(a, &x);
    tg_tokenizer_get_info(b, &y);
    const struct {
        const char *name;
        bool same;
    } parts[] = {
        {"model of the tokenizer", strcmp(x.model, y.model) == 0},
        {"pre-tokenizer", strcmp(x.pre, y.pre) == 0},
        {"begin of text", x.bos == y.bos && x.add_bos == y.add_bos},
        {"end of text", x.eos == y.eos && x.add_eos == y.add_eos},
        {"space before a text", x.strips_space == y.strips_space},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!parts[i].same)
            return parts[i].name;
    for (int32_t id = 0; id < x.n_tokens || id < y.n_tokens; id++) {
        size_t n, m;
        const char *s = tg_tokenizer_bytes(a, id, &n), *t = tg_tokenizer_bytes(b, id, &m);
        if (tg_tokenizer_kind(a, id) != tg_tokenizer_kind(b, id) ||
            (tg_tokenizer_kind(a, id) != TG_TOKEN_UNUSED && (n != m || memcmp(s, t, n) != 0)))
            return "vocabulary";
        if (tg_tokenizer_is_eog(a, id) && !tg_tokenizer_is_eog(b, id))
            return "tokens that end a text, of which it has more than three";
    }
    return NULL;
}

/* Numbers of a tensor that is planned, or NULL. */
static const float *planned_floats(const tg_plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->n_tensors; i++)
        if (strcmp(plan->tensors[i].name, name) == 0)
            return plan->tensors[i].source.floats;
    return NULL;
}

/* Of the folder, what needs no matrices. */
static tg_status read_folder(tg_weights *w, const tg_plan *plan, int n_vocab, tg_error *err)
{
    const char *name;
    tg_status status = tg_config_load(plan->in, &w->arch, &name, &w->config, err);
    w->config.n_vocab = w->config.n_vocab ? w->config.n_vocab : n_vocab;
    w->rope_factors.few = planned_floats(plan, "rope_factors_short.weight");
    w->rope_factors.many = planned_floats(plan, "rope_factors_long.weight");
    return status;
}

/* By the name that it will have: until then it has none, or one that says nothing. */
static tg_status open_written(tg_container **c, const tg_newfile *file, const char *place, tg_error *err)
{
    tg_error own;
    const tg_status status = tg_container_open(c, place, false, &own);
    return status == TG_OK ? TG_OK : tg_fail(err, status, file->path, "cannot be read again: %s", own.message);
}

tg_status tg_verify_folder(const tg_plan *plan, const tg_newfile *file, tg_error *err)
{
    tg_container *c = NULL;
    tg_tokenizer *there = NULL, *here = NULL;
    tg_weights a = {0}, b = {0};
    const char *name, *what = NULL;
    bool same = true;
    char place[TG_PLACE_BYTES];
    tg_arena *arena = tg_arena_create(err);
    tg_status status = arena ? open_written(&c, file, tg_newfile_place(file, place), err) : TG_E_RESOURCE;
    if (status == TG_OK)
        status = tg_config_load(c, &b.arch, &name, &b.config, err);
    if (status == TG_OK)
        status = tg_weights_load(&b, c, arena, err);
    if (status == TG_OK)
        status = read_folder(&a, plan, b.config.n_vocab, err);
    if (status == TG_OK)
        what = differing_field(&a.config, &b.config);
    if (status == TG_OK && !what)
        status = compare_rope(&a, &b, arena, &same, err);
    what = what || same ? what : "rotation";
    if (status == TG_OK && !what)
        status = tg_tokenizer_load(&there, plan->in, a.config.n_vocab, err);
    if (status == TG_OK && !what)
        status = tg_tokenizer_load(&here, c, b.config.n_vocab, err);
    if (status == TG_OK && !what)
        what = differing_tokenizer(there, here);
    if (status == TG_OK && !what)
        status = compare_ids(there, here, &same, err);
    what = what || same ? what : "way of cutting a text into tokens";
    if (status == TG_OK && what)
        status = tg_fail(err, TG_E_MODEL, tg_container_path(plan->in),
                         "cannot become a GGUF, which has no way to say this model's %s", what);
    tg_tokenizer_free(there);
    tg_tokenizer_free(here);
    tg_container_free(c);
    tg_arena_free(arena);
    return status;
}
