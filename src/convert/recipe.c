/* recipe.c - the tables of mixtures, of rules and of what takes the place of a type that does not fit. */
#include "convert/recipe.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- the mixtures ----------------------------------------------------------------------------------- */

/* To add one: a row, and rules where it is more than its base. */
static const tg_recipe mixtures[] = {
    {"F32", TG_F32, 0, "float32, 4 bytes a number"},
    {"F16", TG_F16, 1, "float16"},
    {"BF16", TG_BF16, 32, "bfloat16"},
    {"Q8_0", TG_Q8_0, 7, "8.5 bits: next to no loss"},
    {"Q6_K", TG_Q6_K, 18, "6.6 bits"},
    {"Q5_K_M", TG_Q5_K, 17, "5.5 bits, parts of attention and feed-forward in Q6_K"},
    {"Q5_K_S", TG_Q5_K, 16, "5.5 bits"},
    {"Q5_1", TG_Q5_1, 9, "6 bits, an older kind"},
    {"Q5_0", TG_Q5_0, 8, "5.5 bits, an older kind"},
    {"Q4_K_M", TG_Q4_K, 15, "4.5 bits, parts of attention and feed-forward in Q6_K: the usual choice"},
    {"Q4_K_S", TG_Q4_K, 14, "4.5 bits, the first layers with more"},
    {"IQ4_NL", TG_IQ4_NL, 25, "4.5 bits, steps of unequal size"},
    {"Q4_1", TG_Q4_1, 3, "5 bits, an older kind"},
    {"Q4_0", TG_Q4_0, 2, "4.5 bits, an older kind"},
    {"Q3_K_L", TG_Q3_K, 13, "3.4 bits, more for half of the tensors"},
    {"Q3_K_M", TG_Q3_K, 12, "3.4 bits, more for half of the tensors"},
    {"Q3_K_S", TG_Q3_K, 11, "3.4 bits: a clear loss"},
    {"Q2_K", TG_Q2_K, 10, "2.6 bits, more for half of the tensors: a large loss"},
};

enum { N_MIXTURES = sizeof mixtures / sizeof *mixtures };

const tg_recipe *tg_recipe_at(int i)
{
    return i >= 0 && i < N_MIXTURES ? &mixtures[i] : NULL;
}

const tg_recipe *tg_recipe_find(const char *name)
{
    for (int i = 0; i < N_MIXTURES; i++)
        if (strcasecmp(mixtures[i].name, name) == 0)
            return &mixtures[i];
    return NULL;
}

/* ---- the rules ---------------------------------------------------------------------------------------- */

/* What a tensor is for, by its name. */
typedef enum kind {
    KIND_OUTPUT,  /* also a token embedding that serves as one */
    KIND_EMBD,
    KIND_V, /* and the fused QKV: values bear rounding worst */
    KIND_K,
    KIND_ATTN_OUT,
    KIND_DOWN,
    KIND_OTHER,
} kind;

/* A circumstance of the layer or the model. */
typedef enum when {
    ALWAYS,
    MORE_BITS,       /* the first and the last eighth of the layers, and every third between */
    FIRST_EIGHTH,
    FIRST_SIXTEENTH,
    FIRST_TWO,
    FIRST_FOUR,
    GROUPS_OF_4,     /* as many query heads or more share keys and values, which are small then */
    LLAMA_70B,       /* the same in the one model that was measured so */
    EIGHT_EXPERTS,   /* attention is a small part of the whole */
} when;

#define FT(n)    (1u << (n)) /* by file type */
#define Q2_K     FT(10)
#define Q3_K_S   FT(11)
#define Q3_K_M   FT(12)
#define Q3_K_L   FT(13)
#define Q4_K_S   FT(14)
#define Q4_K_M   FT(15)
#define Q5_K_M   FT(17)
#define IQ4_NL   FT(25)
#define ALL      UINT32_MAX

/* The first row that holds decides; where none does, the base does. */
static const struct {
    uint32_t mixtures;
    kind kind;
    when when;
    tg_type type;
} rules[] = {
    {ALL, KIND_V, EIGHT_EXPERTS, TG_Q8_0},
    {Q4_K_M | Q5_K_M, KIND_V, MORE_BITS, TG_Q6_K},
    {Q2_K | Q3_K_S | Q3_K_M | Q4_K_S | Q4_K_M, KIND_V, LLAMA_70B, TG_Q5_K},
    {Q4_K_S, KIND_V, FIRST_FOUR, TG_Q5_K},
    {IQ4_NL, KIND_V, GROUPS_OF_4, TG_Q5_K},
    {Q3_K_M, KIND_V, FIRST_TWO, TG_Q5_K},
    {Q3_K_M, KIND_V, ALWAYS, TG_Q4_K},
    {Q3_K_L, KIND_V, ALWAYS, TG_Q5_K},
    {Q2_K, KIND_V, GROUPS_OF_4, TG_Q4_K},
    {Q2_K, KIND_V, ALWAYS, TG_Q3_K},

    {ALL, KIND_K, EIGHT_EXPERTS, TG_Q8_0},

    {Q4_K_M | Q5_K_M, KIND_DOWN, MORE_BITS, TG_Q6_K},
    {Q4_K_S | IQ4_NL, KIND_DOWN, FIRST_EIGHTH, TG_Q5_K},
    {Q3_K_M, KIND_DOWN, FIRST_SIXTEENTH, TG_Q5_K},
    {Q3_K_M, KIND_DOWN, ALWAYS, TG_Q4_K},
    {Q3_K_L, KIND_DOWN, ALWAYS, TG_Q5_K},
    {Q2_K, KIND_DOWN, ALWAYS, TG_Q3_K},

    {Q2_K | Q3_K_S | Q3_K_M | Q4_K_S | Q4_K_M | IQ4_NL, KIND_ATTN_OUT, EIGHT_EXPERTS, TG_Q5_K},
    {Q3_K_L, KIND_ATTN_OUT, EIGHT_EXPERTS, TG_Q3_K},
    {Q2_K, KIND_ATTN_OUT, ALWAYS, TG_Q3_K},
    {Q3_K_M, KIND_ATTN_OUT, ALWAYS, TG_Q4_K},
    {Q3_K_L, KIND_ATTN_OUT, ALWAYS, TG_Q5_K},
};

/* Names that hold one of these stay F32: norms, routers, positions, and the small matrices of other kinds of
 * model. */
static const char *const kept[] = {
    "_norm.weight", "ffn_gate_inp",        "position_embd",  "token_types", "attn_rel_b", "altup",
    "laurel",       "per_layer_model_proj", "ssm_conv1d",     "shortconv.conv",
};

/* Where rows are no whole blocks. */
static const struct {
    tg_type type, instead;
} fallbacks[] = {
    {TG_Q2_K, TG_Q4_0}, {TG_Q3_K, TG_Q4_0}, {TG_Q4_K, TG_Q5_0}, {TG_Q5_K, TG_Q5_1}, {TG_Q6_K, TG_Q8_0},
};

static bool has(const char *name, const char *part)
{
    return strstr(name, part) != NULL;
}

static kind kind_of(const tg_recipe_model *model, const char *name)
{
    if (strcmp(name, "output.weight") == 0)
        return KIND_OUTPUT;
    if (strcmp(name, "token_embd.weight") == 0)
        return model->tied ? KIND_OUTPUT : KIND_EMBD;
    return has(name, "attn_v.weight") || has(name, "attn_qkv.weight") ? KIND_V
           : has(name, "attn_k.weight")                               ? KIND_K
           : has(name, "attn_output.weight")                          ? KIND_ATTN_OUT
           : has(name, "ffn_down")                                    ? KIND_DOWN
                                                                      : KIND_OTHER;
}

static bool holds(when w, const tg_recipe_model *m, int layer)
{
    int n = m->n_layer, eighth = n / 8;
    switch (w) {
    case ALWAYS:
        return true;
    case MORE_BITS:
        return layer < eighth || layer >= 7 * n / 8 || (layer - eighth) % 3 == 2;
    case FIRST_EIGHTH:
        return layer < eighth;
    case FIRST_SIXTEENTH:
        return layer < n / 16;
    case FIRST_TWO:
        return layer < 2;
    case FIRST_FOUR:
        return layer < 4;
    case GROUPS_OF_4:
        return m->n_head_kv > 0 && m->n_head / m->n_head_kv >= 4;
    case LLAMA_70B:
        return n == 80 && m->n_head != m->n_head_kv;
    case EIGHT_EXPERTS:
        return m->n_expert == 8;
    }
    return false;
}

static bool fits(tg_type type, uint64_t row)
{
    return row % (uint64_t)tg_dtypes[type].block == 0;
}

static tg_type wanted(const tg_recipe *m, const tg_recipe_model *model, const char *name, uint64_t row)
{
    if (tg_dtypes[m->base].block == 1)
        return m->base;
    kind k = kind_of(model, name);
    if (k == KIND_OUTPUT)
        return !fits(m->base, row) || m->base == TG_Q8_0 ? TG_Q8_0 : TG_Q6_K;
    int layer = 0;
    if (sscanf(name, "blk.%d.", &layer) != 1)
        return m->base;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].kind == k && rules[i].mixtures >> m->file_type & 1 && holds(rules[i].when, model, layer))
            return rules[i].type;
    return m->base;
}

tg_type tg_recipe_type(const tg_recipe *m, const tg_recipe_model *model, const char *name, int n_dim,
                        const uint64_t *dim, bool *fell_back)
{
    static const char weight[] = "weight";
    size_t n = strlen(name), k = sizeof weight - 1;
    bool matrix = false;
    for (int i = 0; i < n_dim - 1; i++)
        matrix |= dim[i] > 1;
    bool keep = !matrix || n < k || strcmp(name + n - k, weight) != 0;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        keep |= has(name, kept[i]);
    if (fell_back)
        *fell_back = false;
    if (keep)
        return TG_F32;
    uint64_t row = dim[n_dim - 1];
    tg_type type = wanted(m, model, name, row);
    if (fits(type, row))
        return type;
    if (fell_back)
        *fell_back = true;
    for (size_t i = 0; i < sizeof fallbacks / sizeof *fallbacks; i++)
        if (fallbacks[i].type == type && fits(fallbacks[i].instead, row))
            return fallbacks[i].instead;
    return TG_F16;
}
