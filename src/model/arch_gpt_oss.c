/* arch_gpt_oss.c - gpt-oss: learned sinks, experts with biases and a clamped SwiGLU, every other layer local. */
#include "model/arch.h"

static bool gpt_oss(tg_config_reader *r, tg_config *c)
{
    if (r->kind == TG_CONTAINER_HF && !tg_read_float(r, "swiglu_limit", &c->act_limit))
        return false;
    if (r->kind == TG_CONTAINER_GGUF)
        c->rope[0].whole = false; /* which the file cannot say */
    return tg_read_local_layers(r, c, 2);
}

const tg_arch tg_arch_gpt_oss = {
    .gguf_name = "gpt-oss",
    .hf_name = "gpt_oss",
    .like = &tg_arch_llama,
    .norm = TG_NORM_RMS,
    .pos = TG_POS_ROTARY,
    .gated = true,
    .base = {.act = TG_ACT_SWIGLU_CLAMPED,
             .act_limit = 7.0f,
             .norm_eps = 1e-5f,
             .rope = {{.theta = 150000}},
             .bias = TG_BIT(Q) | TG_BIT(K) | TG_BIT(V) | TG_BIT(ATTN_OUT) | TG_BIT(ROUTER) | TG_BIT(GATE_EXPERTS) |
                     TG_BIT(UP_EXPERTS) | TG_BIT(DOWN_EXPERTS) | TG_BIT(GATE_UP_EXPERTS)},
    .configure = gpt_oss,
    .hf_prefix = "model.",
    .hf_key = {[TG_KEY_N_EXPERT] = "num_local_experts", [TG_KEY_ACT] = ""},
    .hf =
        {
            [TG_ROLE_SINK] = "model.layers.%d.self_attn.sinks",
            [TG_ROLE_ROUTER] = "model.layers.%d.mlp.router",
            [TG_ROLE_FFN_GATE] = "",
            [TG_ROLE_FFN_UP] = "",
            [TG_ROLE_FFN_DOWN] = "",
            [TG_ROLE_GATE_UP_EXPERTS] = "model.layers.%d.mlp.experts.gate_up_proj",
            [TG_ROLE_DOWN_EXPERTS] = "model.layers.%d.mlp.experts.down_proj",
        },
    .gguf = {[TG_ROLE_FFN_NORM] = "blk.%d.post_attention_norm",
             [TG_ROLE_GATE_UP_EXPERTS] = "",
             [TG_ROLE_GATE_EXPERTS] = "blk.%d.ffn_gate_exps",
             [TG_ROLE_UP_EXPERTS] = "blk.%d.ffn_up_exps"},
};
