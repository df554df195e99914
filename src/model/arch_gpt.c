/* arch_gpt.c - GPT-2 and its kin: LayerNorm with biases, no gate in the feed-forward. */
#include "model/arch.h"

#include <string.h>

#define ATTN_BIAS (TG_BIT(QKV) | TG_BIT(Q) | TG_BIT(K) | TG_BIT(V) | TG_BIT(ATTN_OUT))
#define MLP_BIAS (TG_BIT(FFN_UP) | TG_BIT(FFN_DOWN))

/* ---- GPT-2: learned positions, fused QKV ------------------------------------------------------------- */

static bool gpt2(tg_config_reader *r, tg_config *c)
{
    bool scaled = true, cross = false;
    /* reorder_and_upcast_attn asks for scores in float32, which they always are here. */
    if (r->kind == TG_CONTAINER_HF &&
        (!tg_read_bool(r, "scale_attn_weights", &scaled) ||
         !tg_read_bool(r, "scale_attn_by_inverse_layer_idx", &c->scale_by_layer) ||
         !tg_read_bool(r, "add_cross_attention", &cross)))
        return false;
    if (cross)
        return tg_refuse(r, "cross attention is not supported");
    c->attn_scale = scaled ? 0.0f : 1.0f;
    return true;
}

const tg_arch tg_arch_gpt2 = {
    .gguf_name = "gpt2",
    .hf_name = "gpt2",
    .norm = TG_NORM_LAYER,
    .pos = TG_POS_LEARNED,
    .ff_is_4x = true,
    .conv1d = true,
    .base = {.act = TG_ACT_GELU_TANH, .bias = ATTN_BIAS | MLP_BIAS, .tied = TG_TIED},
    .configure = gpt2,
    .hf_prefix = "transformer.",
    .hf_key = {[TG_KEY_N_LAYER] = "n_layer", [TG_KEY_N_EMBD] = "n_embd", [TG_KEY_N_HEAD] = "n_head",
               [TG_KEY_N_FF] = "n_inner", [TG_KEY_N_CTX] = "n_positions", [TG_KEY_WINDOW] = "",
               [TG_KEY_NORM_EPS] = "layer_norm_epsilon", [TG_KEY_ACT] = "activation_function"},
    .hf =
        {
            [TG_ROLE_TOK_EMBD] = "transformer.wte",
            [TG_ROLE_POS_EMBD] = "transformer.wpe",
            [TG_ROLE_OUT_NORM] = "transformer.ln_f",
            [TG_ROLE_OUTPUT] = "lm_head",
            [TG_ROLE_ATTN_NORM] = "transformer.h.%d.ln_1",
            [TG_ROLE_QKV] = "transformer.h.%d.attn.c_attn",
            [TG_ROLE_ATTN_OUT] = "transformer.h.%d.attn.c_proj",
            [TG_ROLE_FFN_NORM] = "transformer.h.%d.ln_2",
            [TG_ROLE_FFN_UP] = "transformer.h.%d.mlp.c_fc",
            [TG_ROLE_FFN_DOWN] = "transformer.h.%d.mlp.c_proj",
        },
};

/* ---- GPT-Neo: scores are not scaled, every other layer is local ---------------------------------------- */

/* attention_types: [[["global", "local"], 12]]: the kinds, so many times over. */
static bool gpt_neo_layers(tg_config_reader *r, tg_config *c)
{
    const json_t *types, *group;
    size_t g;
    int n = 0;
    if (!tg_read_list(r, "attention_types", &types))
        return false;
    json_array_foreach((json_t *)(uintptr_t)types, g, group)
    {
        const json_t *kinds = json_array_get(group, 0), *times = json_array_get(group, 1);
        size_t n_kinds = json_array_size(kinds);
        json_int_t all = (json_int_t)n_kinds * (json_is_integer(times) ? json_integer_value(times) : -1);
        if (n_kinds == 0 || n_kinds > TG_MAX_LAYERS || json_integer_value(times) > TG_MAX_LAYERS || all < 0 ||
            n + all > c->n_layer)
            return tg_refuse(r, "attention_types does not fit the number of layers (wanted %d)", c->n_layer);
        for (json_int_t i = 0; i < all; i++, n++) {
            const char *kind = json_string_value(json_array_get(kinds, (size_t)i % n_kinds));
            if (!kind || (strcmp(kind, "global") != 0 && strcmp(kind, "local") != 0))
                return tg_refuse(r, "attention_types of layer %d is not supported (allowed: global, local)", n);
            c->layer[n] = strcmp(kind, "local") == 0 ? TG_LAYER_LOCAL : 0;
        }
    }
    return n == c->n_layer || tg_refuse(r, "attention_types (found %d layers, wanted %d)", n, c->n_layer);
}

const tg_arch tg_arch_gpt_neo = {
    .hf_name = "gpt_neo",
    .like = &tg_arch_gpt2,
    .norm = TG_NORM_LAYER,
    .pos = TG_POS_LEARNED,
    .ff_is_4x = true,
    .base = {.act = TG_ACT_GELU_TANH, .attn_scale = 1.0f, .bias = TG_BIT(ATTN_OUT) | MLP_BIAS, .tied = TG_TIED},
    .configure = gpt_neo_layers,
    .hf_prefix = "transformer.",
    .hf_key = {[TG_KEY_N_LAYER] = "num_layers", [TG_KEY_N_EMBD] = "hidden_size", [TG_KEY_N_HEAD] = "num_heads",
               [TG_KEY_N_FF] = "intermediate_size", [TG_KEY_N_CTX] = "max_position_embeddings",
               [TG_KEY_WINDOW] = "window_size"},
    .hf = {[TG_ROLE_QKV] = "",
           [TG_ROLE_Q] = "transformer.h.%d.attn.attention.q_proj",
           [TG_ROLE_K] = "transformer.h.%d.attn.attention.k_proj",
           [TG_ROLE_V] = "transformer.h.%d.attn.attention.v_proj",
           [TG_ROLE_ATTN_OUT] = "transformer.h.%d.attn.attention.out_proj"},
};

/* ---- GPT-J: parallel, one norm for both, rotated neighbours -------------------------------------------- */

static bool gptj(tg_config_reader *r, tg_config *c)
{
    int n_rot = 64;
    if (!tg_read_int(r, "rotary_dim", false, 2, TG_MAX_EMBD, &n_rot))
        return false;
    c->rope[0].n_rot = n_rot;
    return true;
}

const tg_arch tg_arch_gptj = {
    .hf_name = "gptj",
    .like = &tg_arch_gpt2,
    .norm = TG_NORM_LAYER,
    .pos = TG_POS_ROTARY,
    .ff_is_4x = true,
    .base = {.act = TG_ACT_GELU_TANH, .parallel = true, .bias = MLP_BIAS | TG_BIT(OUTPUT), .tied = TG_UNTIED,
             .rope = {{.pairs = TG_ROPE_NEIGHBOURS}}},
    .configure = gptj,
    .hf_prefix = "transformer.",
    .hf = {[TG_ROLE_POS_EMBD] = "",
           [TG_ROLE_QKV] = "",
           [TG_ROLE_Q] = "transformer.h.%d.attn.q_proj",
           [TG_ROLE_K] = "transformer.h.%d.attn.k_proj",
           [TG_ROLE_V] = "transformer.h.%d.attn.v_proj",
           [TG_ROLE_ATTN_OUT] = "transformer.h.%d.attn.out_proj",
           [TG_ROLE_FFN_NORM] = "",
           [TG_ROLE_FFN_UP] = "transformer.h.%d.mlp.fc_in",
           [TG_ROLE_FFN_DOWN] = "transformer.h.%d.mlp.fc_out"},
};

/* ---- GPT-NeoX (Pythia): parallel with two norms, or not; a part of a head rotates ------------------------ */

static bool gpt_neox(tg_config_reader *r, tg_config *c)
{
    bool bias = true;
    if (!tg_read_bool(r, "use_parallel_residual", &c->parallel) || !tg_read_bool(r, "attention_bias", &bias))
        return false;
    c->bias &= bias ? ~0u : ~ATTN_BIAS;
    return true;
}

const tg_arch tg_arch_gpt_neox = {
    .gguf_name = "gptneox",
    .hf_name = "gpt_neox",
    .norm = TG_NORM_LAYER,
    .pos = TG_POS_ROTARY,
    .rotated = 0.25,
    .qkv_by_head = true,
    .base = {.act = TG_ACT_GELU_ERF, .parallel = true, .bias = ATTN_BIAS | MLP_BIAS},
    .configure = gpt_neox,
    .hf_prefix = "gpt_neox.",
    .hf_key = {[TG_KEY_NORM_EPS] = "layer_norm_eps", [TG_KEY_THETA] = "rotary_emb_base",
               [TG_KEY_ROTATED] = "rotary_pct", [TG_KEY_WINDOW] = ""},
    .hf =
        {
            [TG_ROLE_TOK_EMBD] = "gpt_neox.embed_in",
            [TG_ROLE_OUT_NORM] = "gpt_neox.final_layer_norm",
            [TG_ROLE_OUTPUT] = "embed_out",
            [TG_ROLE_ATTN_NORM] = "gpt_neox.layers.%d.input_layernorm",
            [TG_ROLE_QKV] = "gpt_neox.layers.%d.attention.query_key_value",
            [TG_ROLE_ATTN_OUT] = "gpt_neox.layers.%d.attention.dense",
            [TG_ROLE_FFN_NORM] = "gpt_neox.layers.%d.post_attention_layernorm",
            [TG_ROLE_FFN_UP] = "gpt_neox.layers.%d.mlp.dense_h_to_4h",
            [TG_ROLE_FFN_DOWN] = "gpt_neox.layers.%d.mlp.dense_4h_to_h",
        },
};

/* ---- OPT: positions begin at 2, ReLU ------------------------------------------------------------------- */

static bool opt(tg_config_reader *r, tg_config *c)
{
    bool first = true, bias = true, affine = true;
    int n_word = c->n_embd;
    if (!tg_read_bool(r, "do_layer_norm_before", &first) || !tg_read_bool(r, "enable_bias", &bias) ||
        !tg_read_bool(r, "layer_norm_elementwise_affine", &affine) ||
        !tg_read_int(r, "word_embed_proj_dim", false, 1, TG_MAX_EMBD, &n_word))
        return false;
    if (!first || !affine)
        return tg_refuse(r, "%s false is not supported",
                         first ? "layer_norm_elementwise_affine" : "do_layer_norm_before");
    if (n_word != c->n_embd)
        return tg_refuse(r, "word_embed_proj_dim is not supported (found %d, allowed: hidden_size, %d)", n_word,
                         c->n_embd);
    c->bias = bias ? c->bias : 0;
    return true;
}

const tg_arch tg_arch_opt = {
    .hf_name = "opt",
    .norm = TG_NORM_LAYER,
    .pos = TG_POS_LEARNED,
    .base = {.act = TG_ACT_RELU, .pos_offset = 2, .bias = ATTN_BIAS | MLP_BIAS, .tied = TG_TIED},
    .configure = opt,
    .hf_prefix = "model.",
    .hf_key = {[TG_KEY_N_FF] = "ffn_dim", [TG_KEY_NORM_EPS] = "", [TG_KEY_ACT] = "activation_function",
               [TG_KEY_WINDOW] = ""},
    .hf =
        {
            [TG_ROLE_TOK_EMBD] = "model.decoder.embed_tokens",
            [TG_ROLE_POS_EMBD] = "model.decoder.embed_positions",
            [TG_ROLE_OUT_NORM] = "model.decoder.final_layer_norm",
            [TG_ROLE_OUTPUT] = "lm_head",
            [TG_ROLE_ATTN_NORM] = "model.decoder.layers.%d.self_attn_layer_norm",
            [TG_ROLE_Q] = "model.decoder.layers.%d.self_attn.q_proj",
            [TG_ROLE_K] = "model.decoder.layers.%d.self_attn.k_proj",
            [TG_ROLE_V] = "model.decoder.layers.%d.self_attn.v_proj",
            [TG_ROLE_ATTN_OUT] = "model.decoder.layers.%d.self_attn.out_proj",
            [TG_ROLE_FFN_NORM] = "model.decoder.layers.%d.final_layer_norm",
            [TG_ROLE_FFN_UP] = "model.decoder.layers.%d.fc1",
            [TG_ROLE_FFN_DOWN] = "model.decoder.layers.%d.fc2",
        },
};

/* ---- Phi-2, StarCoder2, StableLM: between this family and Llama's ---------------------------------------- */

static bool no_qk_norm(tg_config_reader *r)
{
    bool norm = false;
    return tg_read_bool(r, "qk_layernorm", &norm) && (!norm || tg_refuse(r, "qk_layernorm true is not supported"));
}

static bool phi(tg_config_reader *r, tg_config *c)
{
    (void)c;
    return no_qk_norm(r);
}

const tg_arch tg_arch_phi = {
    .gguf_name = "phi2",
    .hf_name = "phi",
    .like = &tg_arch_llama,
    .norm = TG_NORM_LAYER,
    .pos = TG_POS_ROTARY,
    .rotated = 0.5,
    .base = {.act = TG_ACT_GELU_TANH, .parallel = true, .bias = ATTN_BIAS | MLP_BIAS | TG_BIT(OUTPUT)},
    .configure = phi,
    .hf_prefix = "model.",
    .hf_key = {[TG_KEY_NORM_EPS] = "layer_norm_eps", [TG_KEY_WINDOW] = ""},
    .hf = {[TG_ROLE_OUT_NORM] = "model.final_layernorm",
           [TG_ROLE_ATTN_OUT] = "model.layers.%d.self_attn.dense",
           [TG_ROLE_FFN_NORM] = "",
           [TG_ROLE_FFN_GATE] = "",
           [TG_ROLE_FFN_UP] = "model.layers.%d.mlp.fc1",
           [TG_ROLE_FFN_DOWN] = "model.layers.%d.mlp.fc2"},
};

static bool starcoder2(tg_config_reader *r, tg_config *c)
{
    bool bias = true;
    if (!tg_read_bool(r, "use_bias", &bias))
        return false;
    c->bias = bias ? c->bias : 0;
    return tg_read_local_layers(r, c, 0);
}

const tg_arch tg_arch_starcoder2 = {
    .gguf_name = "starcoder2",
    .hf_name = "starcoder2",
    .like = &tg_arch_llama,
    .norm = TG_NORM_LAYER,
    .pos = TG_POS_ROTARY,
    .base = {.act = TG_ACT_GELU_TANH, .bias = ATTN_BIAS | MLP_BIAS, .tied = TG_TIED},
    .configure = starcoder2,
    .hf_prefix = "model.",
    .hf_key = {[TG_KEY_NORM_EPS] = "norm_epsilon"},
    .hf = {[TG_ROLE_FFN_GATE] = "",
           [TG_ROLE_FFN_UP] = "model.layers.%d.mlp.c_fc",
           [TG_ROLE_FFN_DOWN] = "model.layers.%d.mlp.c_proj"},
};

static bool stablelm(tg_config_reader *r, tg_config *c)
{
    bool bias = false;
    if (!tg_read_bool(r, "use_parallel_residual", &c->parallel) || !tg_read_bool(r, "use_qkv_bias", &bias))
        return false;
    c->bias = bias ? TG_BIT(Q) | TG_BIT(K) | TG_BIT(V) : 0;
    return no_qk_norm(r);
}

const tg_arch tg_arch_stablelm = {
    .gguf_name = "stablelm",
    .hf_name = "stablelm",
    .like = &tg_arch_llama,
    .norm = TG_NORM_LAYER,
    .pos = TG_POS_ROTARY,
    .gated = true,
    .rotated = 0.25,
    .base = {.act = TG_ACT_SILU},
    .configure = stablelm,
    .hf_prefix = "model.",
    .hf_key = {[TG_KEY_NORM_EPS] = "layer_norm_eps", [TG_KEY_WINDOW] = ""},
};
