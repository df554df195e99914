/* config.h - what a model is: numbers from its metadata, and the behaviours its architecture has. */
#ifndef TG_MODEL_CONFIG_H
#define TG_MODEL_CONFIG_H

#include "base/error.h"
#include "kernel/vector.h"

enum {
    TG_MAX_LAYERS = 512,
    TG_MAX_HEADS = 1024,
    TG_MAX_EMBD = 65536,
    TG_MAX_FF = 1 << 20,
    TG_MAX_VOCAB = 1 << 22,
    TG_MAX_CTX = 1 << 20,
    TG_MAX_EXPERTS = 1024,
    TG_MAX_EXPERTS_USED = 64,
};

typedef enum tg_norm_kind { TG_NORM_RMS, TG_NORM_LAYER } tg_norm_kind;

typedef enum tg_pos_kind {
    TG_POS_LEARNED, /* an embedding per position is added to the token's */
    TG_POS_ROTARY,  /* pairs of query and key dimensions are rotated by position x frequency */
} tg_pos_kind;

/* Which dimensions of a head rotate together. */
typedef enum tg_rope_pairs {
    TG_ROPE_HALVES,     /* i and i + n_rot / 2: Hugging Face's llama */
    TG_ROPE_NEIGHBOURS, /* 2i and 2i + 1: a llama in GGUF, whose Q and K rows are permuted so */
} tg_rope_pairs;

typedef enum tg_rope_scaling {
    TG_ROPE_NONE,
    TG_ROPE_LINEAR,   /* frequencies divided by factor */
    TG_ROPE_DYNAMIC,  /* a larger theta in contexts longer than the original (NTK) */
    TG_ROPE_LLAMA3,   /* low frequencies divided by factor, a ramp between (Llama 3.1) */
    TG_ROPE_YARN,     /* the same with another ramp (arXiv 2309.00071) */
    TG_ROPE_LONGROPE, /* each frequency divided by its own factor, of two sets (arXiv 2402.13753) */
} tg_rope_scaling;

typedef struct tg_rope {
    int n_rot; /* dimensions of a head that rotate: even, at most head_dim */
    double theta;
    tg_rope_pairs pairs;
    tg_rope_scaling scaling;
    double factor, original_ctx;
    double low_freq_factor, high_freq_factor;
    double beta_fast, beta_slow; /* turns in the original context between which YaRN's ramp lies */
    bool whole;                  /* and its ends are rounded to whole dimensions */
    double magnitude; /* rotated queries and keys are multiplied by it; 0: as the scaling has it */
} tg_rope;

/* What a layer is beside the others, in tg_config.layer. */
enum {
    TG_LAYER_LOCAL = 1,    /* attends to `window` positions, and rotates by rope[1] where there is one */
    TG_LAYER_NO_ROPE = 2,  /* does not rotate */
};

typedef struct tg_config {
    int n_layer, n_embd, n_head, n_head_kv, head_dim, n_ff, n_vocab, n_ctx_train;
    float norm_eps;
    tg_act act;
    float act_limit;   /* of the activation that has one */
    int pos_offset;    /* with TG_POS_LEARNED: position p has row p + pos_offset */
    tg_rope rope[2];   /* with TG_POS_ROTARY; [1] is of the local layers, n_rot 0: as [0] */
    int window;        /* positions that a local layer's token attends to; 0: all */
    uint8_t layer[TG_MAX_LAYERS];
    float soft_cap;    /* of attention scores; 0: none */
    float attn_scale;  /* of scores; 0 in a file's place means 1 / sqrt(head_dim) */
    bool scale_by_layer; /* and times 1 / (layer + 1) (GPT-2's option) */
    bool qk_norm_whole;  /* norms of queries and keys over all heads together, not each by itself */
    bool parallel;       /* attention and feed-forward read the same x */
    float embd_scale, residual_scale, logit_scale; /* of embeddings, of what joins x, of logits */
    float logit_cap;                               /* of logits; 0: none */
    uint32_t bias;     /* 1 << role: roles that a folder must give a bias; in a GGUF it is as it is there */
    enum { TG_TIED_IF_ABSENT, TG_TIED, TG_UNTIED } tied; /* output weights and token embedding */
    int n_expert, n_expert_used, n_ff_expert; /* n_expert 0: no mixture */
    bool share_all; /* an expert's weight is its softmax among all, not among those that are used */
} tg_config;

/* Score scale of a layer. */
float tg_config_attn_scale(const tg_config *c, int layer);

static inline bool tg_config_is_local(const tg_config *c, int layer)
{
    return c->layer[layer] & TG_LAYER_LOCAL;
}

/* Which of the two rotations a layer has, or -1: none. */
static inline int tg_config_rope_of(const tg_config *c, int layer)
{
    if (c->rope[0].n_rot == 0 || c->layer[layer] & TG_LAYER_NO_ROPE)
        return -1;
    return tg_config_is_local(c, layer) && c->rope[1].n_rot > 0;
}

#endif
