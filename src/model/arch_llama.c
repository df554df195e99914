/* arch_llama.c - Llama and what is shaped like it: RoPE, RMSNorm, a gated feed-forward, grouped heads. */
#include "model/arch.h"

#define ATTN_BIAS (TG_BIT(QKV) | TG_BIT(Q) | TG_BIT(K) | TG_BIT(V) | TG_BIT(ATTN_OUT))
#define MLP_BIAS (TG_BIT(FFN_GATE) | TG_BIT(FFN_UP) | TG_BIT(FFN_DOWN))

/* Roles with biases, by the two usual keys of a folder. */
static bool biases(tg_config_reader *r, tg_config *c)
{
    bool attn = false, mlp = false;
    if (r->kind == TG_CONTAINER_HF &&
        (!tg_read_bool(r, "attention_bias", &attn) || !tg_read_bool(r, "mlp_bias", &mlp)))
        return false;
    c->bias |= (attn ? ATTN_BIAS : 0) | (mlp ? MLP_BIAS : 0);
    return true;
}

/* ---- Llama 1 to 3, Mistral, Mixtral --------------------------------------------------------------------- */

static bool llama(tg_config_reader *r, tg_config *c)
{
    return biases(r, c) && tg_read_float(r, "attn_logit_softcapping", &c->soft_cap) && tg_read_local_layers(r, c, 0);
}

const tg_arch tg_arch_llama = {
    .gguf_name = "llama",
    .hf_name = "llama",
    .norm = TG_NORM_RMS,
    .pos = TG_POS_ROTARY,
    .gated = true,
    .permuted = true,
    .base = {.act = TG_ACT_SILU},
    .configure = llama,
    .hf_prefix = "model.",
    .hf =
        {
            [TG_ROLE_TOK_EMBD] = "model.embed_tokens",
            [TG_ROLE_OUT_NORM] = "model.norm",
            [TG_ROLE_OUTPUT] = "lm_head",
            [TG_ROLE_ATTN_NORM] = "model.layers.%d.input_layernorm",
            [TG_ROLE_Q] = "model.layers.%d.self_attn.q_proj",
            [TG_ROLE_K] = "model.layers.%d.self_attn.k_proj",
            [TG_ROLE_V] = "model.layers.%d.self_attn.v_proj",
            [TG_ROLE_ATTN_OUT] = "model.layers.%d.self_attn.o_proj",
            [TG_ROLE_FFN_NORM] = "model.layers.%d.post_attention_layernorm",
            [TG_ROLE_FFN_GATE] = "model.layers.%d.mlp.gate_proj",
            [TG_ROLE_FFN_UP] = "model.layers.%d.mlp.up_proj",
            [TG_ROLE_FFN_DOWN] = "model.layers.%d.mlp.down_proj",
        },
    .gguf = /* Mixtral's is a llama there */
        {
            [TG_ROLE_ROUTER] = "blk.%d.ffn_gate_inp",
            [TG_ROLE_GATE_EXPERTS] = "blk.%d.ffn_gate_exps",
            [TG_ROLE_UP_EXPERTS] = "blk.%d.ffn_up_exps",
            [TG_ROLE_DOWN_EXPERTS] = "blk.%d.ffn_down_exps",
        },
};

#define BEHAVES_LIKE_LLAMA .norm = TG_NORM_RMS, .pos = TG_POS_ROTARY, .gated = true, .hf_prefix = "model."
#define LIKE_LLAMA BEHAVES_LIKE_LLAMA, .like = &tg_arch_llama

const tg_arch tg_arch_mistral = {
    .hf_name = "mistral",
    LIKE_LLAMA,
    .base = {.act = TG_ACT_SILU},
    .configure = llama,
};

const tg_arch tg_arch_mixtral = {
    .hf_name = "mixtral",
    LIKE_LLAMA,
    .base = {.act = TG_ACT_SILU, .n_expert_used = 2},
    .configure = llama,
    .hf_key = {[TG_KEY_N_EXPERT] = "num_local_experts"},
    .hf =
        {
            [TG_ROLE_ROUTER] = "model.layers.%d.block_sparse_moe.gate",
            [TG_ROLE_GATE_EXPERTS] = "model.layers.%d.block_sparse_moe.experts.%d.w1",
            [TG_ROLE_UP_EXPERTS] = "model.layers.%d.block_sparse_moe.experts.%d.w3",
            [TG_ROLE_DOWN_EXPERTS] = "model.layers.%d.block_sparse_moe.experts.%d.w2",
        },
};

/* ---- Qwen 2 and 3: windows in the upper layers, if they are asked for -------------------------------------- */

static bool qwen(tg_config_reader *r, tg_config *c)
{
    bool windows = false;
    int first = 28;
    if (!biases(r, c))
        return false;
    if (r->kind == TG_CONTAINER_HF && (!tg_read_bool(r, "use_sliding_window", &windows) ||
                                       !tg_read_int(r, "max_window_layers", false, 0, TG_MAX_LAYERS, &first)))
        return false;
    if (!windows)
        c->window = 0;
    const json_t *types;
    if (!tg_read_list(r, "layer_types", &types))
        return false;
    if (types)
        return tg_read_local_layers(r, c, 0);
    for (int i = first; i < c->n_layer && c->window > 0; i++)
        c->layer[i] = TG_LAYER_LOCAL;
    return true;
}

const tg_arch tg_arch_qwen2 = {
    .gguf_name = "qwen2",
    .hf_name = "qwen2",
    LIKE_LLAMA,
    .base = {.act = TG_ACT_SILU, .bias = TG_BIT(Q) | TG_BIT(K) | TG_BIT(V)},
    .configure = qwen,
};

const tg_arch tg_arch_qwen3 = {
    .gguf_name = "qwen3",
    .hf_name = "qwen3",
    LIKE_LLAMA,
    .base = {.act = TG_ACT_SILU},
    .configure = qwen,
    .hf = {[TG_ROLE_Q_NORM] = "model.layers.%d.self_attn.q_norm",
           [TG_ROLE_K_NORM] = "model.layers.%d.self_attn.k_norm"},
};

static bool qwen3_moe(tg_config_reader *r, tg_config *c)
{
    bool among_used = r->kind == TG_CONTAINER_GGUF;
    int step = 1;
    if (!qwen(r, c))
        return false;
    if (r->kind == TG_CONTAINER_HF &&
        (!tg_read_bool(r, "norm_topk_prob", &among_used) ||
         !tg_read_int(r, "decoder_sparse_step", false, 1, TG_MAX_LAYERS, &step)))
        return false;
    const json_t *dense;
    if (!tg_read_list(r, "mlp_only_layers", &dense))
        return false;
    if (step != 1 || json_array_size(dense) > 0)
        return tg_refuse(r, "layers without a mixture of experts are not supported (%s)",
                         step != 1 ? "decoder_sparse_step" : "mlp_only_layers");
    c->share_all = !among_used;
    return true;
}

const tg_arch tg_arch_qwen3_moe = {
    .gguf_name = "qwen3moe",
    .hf_name = "qwen3_moe",
    BEHAVES_LIKE_LLAMA,
    .like = &tg_arch_qwen3,
    .base = {.act = TG_ACT_SILU},
    .configure = qwen3_moe,
    .hf =
        {
            [TG_ROLE_ROUTER] = "model.layers.%d.mlp.gate",
            [TG_ROLE_GATE_EXPERTS] = "model.layers.%d.mlp.experts.%d.gate_proj",
            [TG_ROLE_UP_EXPERTS] = "model.layers.%d.mlp.experts.%d.up_proj",
            [TG_ROLE_DOWN_EXPERTS] = "model.layers.%d.mlp.experts.%d.down_proj",
        },
};

/* ---- SmolLM3: every fourth layer does not rotate ------------------------------------------------------------ */

static bool smollm3(tg_config_reader *r, tg_config *c)
{
    const json_t *rotates, *types; /* 1: it does */
    bool windows = false;
    int step = 4;
    if (!biases(r, c) || !tg_read_list(r, "no_rope_layers", &rotates) || !tg_read_list(r, "layer_types", &types))
        return false;
    if (r->kind == TG_CONTAINER_HF && (!tg_read_int(r, "no_rope_layer_interval", false, 1, TG_MAX_LAYERS, &step) ||
                                       !tg_read_bool(r, "use_sliding_window", &windows)))
        return false;
    if (rotates && json_array_size(rotates) != (size_t)c->n_layer)
        return tg_refuse(r, "no_rope_layers (found %zu, wanted %d by the number of layers)", json_array_size(rotates),
                         c->n_layer);
    if (!windows)
        c->window = 0;
    for (int i = 0; i < c->n_layer; i++) {
        const json_t *turns = json_array_get(rotates, (size_t)i);
        if (rotates && (!json_is_integer(turns) || json_integer_value(turns) < 0 || json_integer_value(turns) > 1))
            return tg_refuse(r, "no_rope_layers of layer %d (allowed: 0 and 1)", i);
        bool none = rotates ? json_integer_value(turns) == 0 : (i + 1) % step == 0;
        c->layer[i] = none ? TG_LAYER_NO_ROPE | (c->window > 0 ? TG_LAYER_LOCAL : 0) : 0;
    }
    return !types || tg_read_local_layers(r, c, 1);
}

const tg_arch tg_arch_smollm3 = {
    .gguf_name = "smollm3",
    .hf_name = "smollm3",
    LIKE_LLAMA,
    .permuted = true,
    .base = {.act = TG_ACT_SILU, .tied = TG_TIED, .rope = {{.theta = 2e6}}},
    .configure = smollm3,
};

/* ---- OLMo 2: norms of what joins x instead of what is read, and of all queries and keys together --------------- */

static bool olmo2(tg_config_reader *r, tg_config *c)
{
    return biases(r, c) && tg_read_local_layers(r, c, 4);
}

const tg_arch tg_arch_olmo2 = {
    .gguf_name = "olmo2",
    .hf_name = "olmo2",
    LIKE_LLAMA,
    .base = {.act = TG_ACT_SILU, .qk_norm_whole = true},
    .configure = olmo2,
    .hf = {[TG_ROLE_ATTN_NORM] = "",
           [TG_ROLE_Q_NORM] = "model.layers.%d.self_attn.q_norm",
           [TG_ROLE_K_NORM] = "model.layers.%d.self_attn.k_norm",
           [TG_ROLE_ATTN_POST_NORM] = "model.layers.%d.post_attention_layernorm",
           [TG_ROLE_FFN_NORM] = "",
           [TG_ROLE_FFN_POST_NORM] = "model.layers.%d.post_feedforward_layernorm"},
};

/* ---- Granite: multipliers ------------------------------------------------------------------------------------- */

static bool granite(tg_config_reader *r, tg_config *c)
{
    static const char *const keys[2][4] = {
        [TG_CONTAINER_GGUF] = {"embedding_scale", "residual_scale", "attention.scale", "logit_scale"},
        [TG_CONTAINER_HF] = {"embedding_multiplier", "residual_multiplier", "attention_multiplier",
                             "logits_scaling"}};
    const char *const *key = keys[r->kind];
    double divisor = 1;
    if (!biases(r, c) || !tg_read_float(r, key[0], &c->embd_scale) || !tg_read_float(r, key[1], &c->residual_scale) ||
        !tg_read_float(r, key[2], &c->attn_scale) || !tg_read_real(r, key[3], false, &divisor))
        return false;
    c->logit_scale = (float)(1.0 / divisor);
    return true;
}

const tg_arch tg_arch_granite = {
    .gguf_name = "granite",
    .hf_name = "granite",
    LIKE_LLAMA,
    .permuted = true,
    .base = {.act = TG_ACT_SILU},
    .configure = granite,
};

/* ---- Phi-3: fused matrices -------------------------------------------------------------------------------------- */

static bool phi3(tg_config_reader *r, tg_config *c)
{
    /* Factors of LongRoPE are all that a GGUF says of it. */
    if (r->kind == TG_CONTAINER_GGUF && tg_container_tensor(r->c, "rope_factors_long.weight"))
        c->rope[0].scaling = TG_ROPE_LONGROPE;
    return biases(r, c) && tg_read_local_layers(r, c, 0);
}

const tg_arch tg_arch_phi3 = {
    .gguf_name = "phi3",
    .hf_name = "phi3",
    LIKE_LLAMA,
    .base = {.act = TG_ACT_SILU},
    .configure = phi3,
    .hf = {[TG_ROLE_QKV] = "model.layers.%d.self_attn.qkv_proj",
           [TG_ROLE_Q] = "",
           [TG_ROLE_K] = "",
           [TG_ROLE_V] = "",
           [TG_ROLE_GATE_UP] = "model.layers.%d.mlp.gate_up_proj",
           [TG_ROLE_FFN_GATE] = "",
           [TG_ROLE_FFN_UP] = ""},
};
