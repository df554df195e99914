/* arch_gemma.c - Gemma 1 to 3: scaled embeddings, norms of 1 + w, and from 2 on windows and norms on both sides. */
#include "model/arch.h"

#include <math.h>

static void scale_embedding(tg_config *c)
{
    c->embd_scale = (float)sqrt((double)c->n_embd);
}

/* The largest model of a family divides scores by other than the root of the head size; a GGUF does not say so. */
static bool score_scale(tg_config_reader *r, tg_config *c, int n_layer_of_27b)
{
    double d = 0;
    if (r->kind == TG_CONTAINER_HF && !tg_read_real(r, "query_pre_attn_scalar", false, &d))
        return false;
    if (r->kind == TG_CONTAINER_GGUF && c->n_layer == n_layer_of_27b)
        d = (double)c->n_embd / c->n_head;
    if (d != 0)
        c->attn_scale = (float)(1.0 / sqrt(d));
    return true;
}

static bool final_cap(tg_config_reader *r, tg_config *c)
{
    return tg_read_float(r, "final_logit_softcapping", &c->logit_cap);
}

static bool gemma(tg_config_reader *r, tg_config *c)
{
    (void)r;
    scale_embedding(c);
    return true;
}

const tg_arch tg_arch_gemma = {
    .gguf_name = "gemma",
    .hf_name = "gemma",
    .like = &tg_arch_llama,
    .norm = TG_NORM_RMS,
    .pos = TG_POS_ROTARY,
    .gated = true,
    .norm_plus_one = true,
    .base = {.act = TG_ACT_GELU_TANH, .tied = TG_TIED, .norm_eps = 1e-6f},
    .configure = gemma,
    .hf_prefix = "model.",
    .hf_key = {[TG_KEY_ACT] = "", [TG_KEY_WINDOW] = ""}, /* hidden_act says "gelu" where the other one is meant */
};

static bool gemma2(tg_config_reader *r, tg_config *c)
{
    scale_embedding(c);
    return score_scale(r, c, 46) && final_cap(r, c) && tg_read_float(r, "attn_logit_softcapping", &c->soft_cap) &&
           tg_read_local_layers(r, c, 2);
}

const tg_arch tg_arch_gemma2 = {
    .gguf_name = "gemma2",
    .hf_name = "gemma2",
    .like = &tg_arch_gemma,
    .norm = TG_NORM_RMS,
    .pos = TG_POS_ROTARY,
    .gated = true,
    .norm_plus_one = true,
    .base = {.act = TG_ACT_GELU_TANH, .tied = TG_TIED, .norm_eps = 1e-6f},
    .configure = gemma2,
    .hf_prefix = "model.",
    .hf_key = {[TG_KEY_ACT] = "hidden_activation", [TG_KEY_WINDOW] = "sliding_window"},
    .hf = {[TG_ROLE_ATTN_POST_NORM] = "model.layers.%d.post_attention_layernorm",
           [TG_ROLE_FFN_NORM] = "model.layers.%d.pre_feedforward_layernorm",
           [TG_ROLE_FFN_POST_NORM] = "model.layers.%d.post_feedforward_layernorm"},
};

static bool gemma3(tg_config_reader *r, tg_config *c)
{
    int pattern = 6;
    scale_embedding(c);
    if (r->kind == TG_CONTAINER_HF &&
        (!tg_read_int(r, "_sliding_window_pattern", false, 1, TG_MAX_LAYERS, &pattern) ||
         !tg_read_int(r, "sliding_window_pattern", false, 1, TG_MAX_LAYERS, &pattern)))
        return false;
    return score_scale(r, c, 62) && final_cap(r, c) && tg_read_local_layers(r, c, pattern);
}

#define GEMMA3                                                                                               \
    .like = &tg_arch_gemma2, .norm = TG_NORM_RMS, .pos = TG_POS_ROTARY, .gated = true, .norm_plus_one = true,  \
    .configure = gemma3, .hf_prefix = "model.",                                                              \
    .hf = {[TG_ROLE_Q_NORM] = "model.layers.%d.self_attn.q_norm",                                            \
           [TG_ROLE_K_NORM] = "model.layers.%d.self_attn.k_norm"}

const tg_arch tg_arch_gemma3_text = {
    .gguf_name = "gemma3",
    .hf_name = "gemma3_text",
    .base = {.act = TG_ACT_GELU_TANH, .tied = TG_TIED, .norm_eps = 1e-6f, .rope = {{.theta = 1e6}, {.theta = 1e4}}},
    GEMMA3,
};

/* The text of a model that also sees. Its text_config leaves out what is as usual. */
const tg_arch tg_arch_gemma3 = {
    .hf_name = "gemma3",
    .base = {.act = TG_ACT_GELU_TANH, .tied = TG_TIED, .norm_eps = 1e-6f, .rope = {{.theta = 1e6}, {.theta = 1e4}},
             .n_layer = 26, .n_embd = 2304, .n_head = 8, .n_head_kv = 4, .head_dim = 256, .n_ff = 9216,
             .n_ctx_train = 131072, .window = 4096},
    GEMMA3,
};
