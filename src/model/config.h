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
    TG_ROPE_LINEAR, /* frequencies divided by factor */
    TG_ROPE_LLAMA3, /* low frequencies divided by factor, a ramp between (Llama 3.1) */
} tg_rope_scaling;

typedef struct tg_rope {
    int n_rot; /* dimensions of a head that rotate: even, at most head_dim */
    double theta;
    tg_rope_pairs pairs;
    tg_rope_scaling scaling;
    double factor, low_freq_factor, high_freq_factor, original_ctx;
} tg_rope;

typedef struct tg_config {
    int n_layer, n_embd, n_head, n_head_kv, head_dim, n_ff, n_vocab, n_ctx_train;
    float norm_eps;
    tg_act act;
    tg_rope rope;               /* with TG_POS_ROTARY */
    int window;                 /* positions that a token attends to; 0: all (overridden by the session) */
    float soft_cap;             /* of attention scores; 0: none */
    bool scale_by_head_dim;     /* scores times 1 / sqrt(head_dim) */
    bool scale_by_layer;        /* and times 1 / (layer + 1) (GPT-2's option) */
    bool attn_bias, mlp_bias;   /* Hugging Face: whether biases belong to the model; GGUF: if present */
    enum { TG_TIED_IF_ABSENT, TG_TIED, TG_UNTIED } tied; /* output weights and token embedding */
} tg_config;

/* Score scale of a layer. */
float tg_config_attn_scale(const tg_config *c, int layer);

#endif
