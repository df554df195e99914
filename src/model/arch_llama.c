/* arch_llama.c - Llama 1 to 3 and what is shaped like them: RoPE, RMSNorm, SwiGLU, grouped heads. */
#include "model/arch.h"

static bool sizes(tg_config_reader *r, tg_config *c, const char *const key[8])
{
    double eps = 0;
    bool ok = tg_read_int(r, key[0], true, 1, TG_MAX_LAYERS, &c->n_layer) &&
              tg_read_int(r, key[1], true, 1, TG_MAX_EMBD, &c->n_embd) &&
              tg_read_int(r, key[2], true, 1, TG_MAX_HEADS, &c->n_head) &&
              tg_read_int(r, key[3], false, 1, TG_MAX_HEADS, &c->n_head_kv) &&
              tg_read_int(r, key[4], false, 1, TG_MAX_EMBD, &c->head_dim) &&
              tg_read_int(r, key[5], true, 1, TG_MAX_FF, &c->n_ff) &&
              tg_read_int(r, key[6], true, 1, TG_MAX_CTX, &c->n_ctx_train) &&
              tg_read_real(r, key[7], true, &eps);
    c->norm_eps = (float)eps;
    c->act = TG_ACT_SILU;
    c->scale_by_head_dim = true;
    c->rope.theta = 10000.0;
    return ok;
}

static bool configure_gguf(tg_config_reader *r, tg_config *c)
{
    static const char *const key[8] = {"block_count",           "embedding_length",
                                       "attention.head_count",  "attention.head_count_kv",
                                       "attention.key_length",  "feed_forward_length",
                                       "context_length",        "attention.layer_norm_rms_epsilon"};
    static const char *const scalings[] = {"none", "linear"};
    int scaling = 1, v_dim = 0, n_expert = 0; /* a factor without a type means linear */
    double factor = 0, soft_cap = 0;
    if (!sizes(r, c, key) || !tg_read_int(r, "attention.value_length", false, 1, TG_MAX_EMBD, &v_dim) ||
        !tg_read_int(r, "rope.dimension_count", false, 1, TG_MAX_EMBD, &c->rope.n_rot) ||
        !tg_read_real(r, "rope.freq_base", false, &c->rope.theta) ||
        !tg_read_choice(r, "rope.scaling.type", false, scalings, 2, &scaling) ||
        !tg_read_real(r, "rope.scale_linear", false, &factor) || /* the older spelling */
        !tg_read_real(r, "rope.scaling.factor", false, &factor) ||
        !tg_read_int(r, "attention.sliding_window", false, 0, TG_MAX_CTX, &c->window) ||
        !tg_read_real(r, "attn_logit_softcapping", false, &soft_cap) ||
        !tg_read_int(r, "expert_count", false, 0, 65536, &n_expert))
        return false;
    if (soft_cap != 0 && !(soft_cap >= 1e-3 && soft_cap <= 1e9)) {
        tg_fail(r->err, TG_E_MODEL, tg_container_path(r->c),
                "attn_logit_softcapping (found %g, allowed 0.001 to 1e9)", soft_cap);
        return false;
    }
    c->soft_cap = (float)soft_cap;
    if (n_expert > 0) {
        tg_fail(r->err, TG_E_MODEL, tg_container_path(r->c),
                "mixture of experts is not supported (found %d experts)", n_expert);
        return false;
    }
    int k_dim = c->head_dim ? c->head_dim : c->n_head ? c->n_embd / c->n_head : 0;
    if (v_dim && v_dim != k_dim) {
        tg_fail(r->err, TG_E_MODEL, tg_container_path(r->c),
                "value heads of another size are not supported (found %d, allowed %d)", v_dim, k_dim);
        return false;
    }
    c->rope.pairs = TG_ROPE_NEIGHBOURS;
    if (scaling == 1 && factor > 0) {
        c->rope.scaling = TG_ROPE_LINEAR;
        c->rope.factor = factor;
    }
    c->attn_bias = c->mlp_bias = true;
    return true;
}

/* RoPE settings under `parent` ("rope_parameters." or "rope_scaling."); the type is spelled rope_type, or
 * type in older files. */
static bool rope_settings(tg_config_reader *r, tg_config *c, const char *parent)
{
    static const char *const names[] = {"default", "linear", "llama3"};
    const char *outer = r->prefix;
    r->prefix = parent;
    int type = 0;
    double partial = 1.0;
    tg_rope *rope = &c->rope;
    bool ok = tg_read_choice(r, "type", false, names, 3, &type) &&
              tg_read_choice(r, "rope_type", false, names, 3, &type) &&
              tg_read_real(r, "rope_theta", false, &rope->theta) &&
              tg_read_real(r, "partial_rotary_factor", false, &partial);
    if (ok && partial != 1.0) {
        tg_fail(r->err, TG_E_MODEL, tg_container_path(r->c),
                "%spartial_rotary_factor is not supported (found %g, allowed 1)", parent, partial);
        ok = false;
    }
    if (ok && type >= 1)
        ok = tg_read_real(r, "factor", true, &rope->factor);
    if (ok && type == 2)
        ok = tg_read_real(r, "low_freq_factor", true, &rope->low_freq_factor) &&
             tg_read_real(r, "high_freq_factor", true, &rope->high_freq_factor) &&
             tg_read_real(r, "original_max_position_embeddings", true, &rope->original_ctx);
    if (ok && type == 2 && !(rope->high_freq_factor > rope->low_freq_factor)) {
        tg_fail(r->err, TG_E_MODEL, tg_container_path(r->c),
                "%shigh_freq_factor (found %g, allowed: above low_freq_factor, %g)", parent,
                rope->high_freq_factor, rope->low_freq_factor);
        ok = false;
    }
    if (type)
        rope->scaling = type == 1 ? TG_ROPE_LINEAR : TG_ROPE_LLAMA3;
    r->prefix = outer;
    return ok;
}

static bool configure_hf(tg_config_reader *r, tg_config *c)
{
    static const char *const key[8] = {"num_hidden_layers",   "hidden_size",
                                       "num_attention_heads", "num_key_value_heads",
                                       "head_dim",            "intermediate_size",
                                       "max_position_embeddings", "rms_norm_eps"};
    static const char *const acts[] = {"silu", "swish"};
    int act = 0;
    bool tied = false;
    if (!sizes(r, c, key) || !tg_read_choice(r, "hidden_act", false, acts, 2, &act) ||
        !tg_read_bool(r, "attention_bias", &c->attn_bias) || !tg_read_bool(r, "mlp_bias", &c->mlp_bias) ||
        !tg_read_bool(r, "tie_word_embeddings", &tied) ||
        !tg_read_real(r, "rope_theta", false, &c->rope.theta) ||
        !rope_settings(r, c, "rope_scaling.") || !rope_settings(r, c, "rope_parameters."))
        return false;
    c->rope.pairs = TG_ROPE_HALVES;
    c->tied = tied ? TG_TIED : TG_TIED_IF_ABSENT;
    return true;
}

const tg_arch tg_arch_llama = {
    .gguf_name = "llama",
    .hf_name = "llama",
    .norm = TG_NORM_RMS,
    .pos = TG_POS_ROTARY,
    .conv1d = false,
    .gated = true,
    .hf_prefix = "model.",
    .configure = {[TG_CONTAINER_GGUF] = configure_gguf, [TG_CONTAINER_HF] = configure_hf},
    .name =
        {
            [TG_CONTAINER_GGUF] =
                {
                    [TG_ROLE_TOK_EMBD] = "token_embd",
                    [TG_ROLE_OUT_NORM] = "output_norm",
                    [TG_ROLE_OUTPUT] = "output",
                    [TG_ROLE_ROPE_FREQS] = "rope_freqs",
                    [TG_ROLE_ATTN_NORM] = "blk.%d.attn_norm",
                    [TG_ROLE_Q] = "blk.%d.attn_q",
                    [TG_ROLE_K] = "blk.%d.attn_k",
                    [TG_ROLE_V] = "blk.%d.attn_v",
                    [TG_ROLE_ATTN_OUT] = "blk.%d.attn_output",
                    [TG_ROLE_FFN_NORM] = "blk.%d.ffn_norm",
                    [TG_ROLE_FFN_GATE] = "blk.%d.ffn_gate",
                    [TG_ROLE_FFN_UP] = "blk.%d.ffn_up",
                    [TG_ROLE_FFN_DOWN] = "blk.%d.ffn_down",
                },
            [TG_CONTAINER_HF] =
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
        },
};
