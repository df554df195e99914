/* arch_gpt2.c - GPT-2: learned positions, LayerNorm with biases, fused QKV, GELU. */
#include "model/arch.h"

static bool sizes(tg_config_reader *r, tg_config *c, const char *const key[6])
{
    double eps = 1e-5;
    bool ok = tg_read_int(r, key[0], true, 1, TG_MAX_LAYERS, &c->n_layer) &&
              tg_read_int(r, key[1], true, 1, TG_MAX_EMBD, &c->n_embd) &&
              tg_read_int(r, key[2], true, 1, TG_MAX_HEADS, &c->n_head) &&
              tg_read_int(r, key[3], false, 1, TG_MAX_FF, &c->n_ff) &&
              tg_read_int(r, key[4], true, 1, TG_MAX_CTX, &c->n_ctx_train) &&
              tg_read_real(r, key[5], false, &eps);
    if (c->n_ff == 0)
        c->n_ff = 4 * c->n_embd;
    c->norm_eps = (float)eps;
    c->scale_by_head_dim = true;
    c->attn_bias = c->mlp_bias = true;
    return ok;
}

static bool configure_gguf(tg_config_reader *r, tg_config *c)
{
    static const char *const key[6] = {"block_count",         "embedding_length",
                                       "attention.head_count", "feed_forward_length",
                                       "context_length",       "attention.layer_norm_epsilon"};
    c->act = TG_ACT_GELU_TANH; /* the file names none; this is meant */
    return sizes(r, c, key);
}

static bool configure_hf(tg_config_reader *r, tg_config *c)
{
    static const char *const key[6] = {"n_layer",     "n_embd",     "n_head", "n_inner",
                                       "n_positions", "layer_norm_epsilon"};
    static const char *const acts[] = {"gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu"};
    int act = 0;
    bool scaled = true, cross = false, tied = true;
    if (!sizes(r, c, key) || !tg_read_choice(r, "activation_function", false, acts, 4, &act) ||
        !tg_read_bool(r, "scale_attn_weights", &scaled) ||
        !tg_read_bool(r, "scale_attn_by_inverse_layer_idx", &c->scale_by_layer) ||
        !tg_read_bool(r, "add_cross_attention", &cross) || !tg_read_bool(r, "tie_word_embeddings", &tied))
        return false;
    /* reorder_and_upcast_attn asks for scores in float32, which they always are here. */
    if (cross) {
        tg_fail(r->err, TG_E_MODEL, tg_container_path(r->c), "cross attention is not supported");
        return false;
    }
    c->act = act == 3 ? TG_ACT_GELU_ERF : TG_ACT_GELU_TANH;
    c->scale_by_head_dim = scaled;
    c->tied = tied ? TG_TIED : TG_UNTIED;
    return true;
}

const tg_arch tg_arch_gpt2 = {
    .gguf_name = "gpt2",
    .hf_name = "gpt2",
    .norm = TG_NORM_LAYER,
    .pos = TG_POS_LEARNED,
    .conv1d = true,
    .gated = false,
    .hf_prefix = "transformer.",
    .configure = {[TG_CONTAINER_GGUF] = configure_gguf, [TG_CONTAINER_HF] = configure_hf},
    .name =
        {
            [TG_CONTAINER_GGUF] =
                {
                    [TG_ROLE_TOK_EMBD] = "token_embd",
                    [TG_ROLE_POS_EMBD] = "position_embd",
                    [TG_ROLE_OUT_NORM] = "output_norm",
                    [TG_ROLE_OUTPUT] = "output",
                    [TG_ROLE_ATTN_NORM] = "blk.%d.attn_norm",
                    [TG_ROLE_QKV] = "blk.%d.attn_qkv",
                    [TG_ROLE_ATTN_OUT] = "blk.%d.attn_output",
                    [TG_ROLE_FFN_NORM] = "blk.%d.ffn_norm",
                    [TG_ROLE_FFN_UP] = "blk.%d.ffn_up",
                    [TG_ROLE_FFN_DOWN] = "blk.%d.ffn_down",
                },
            [TG_CONTAINER_HF] =
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
        },
};
