"""The tiny models of tests/golden: configurations, as checkpoints on the hub spell them.

Numbers that a reader could get wrong are far from common defaults, and large enough to be noticed. Of the
configurations of an architecture one is spelled as older files are (rope_theta beside rope_scaling,
torch_dtype, no layer_types), one as transformers 5 writes them (rope_parameters, layer_types).
"""


def common(architecture, model_type, **more):
    return dict(architectures=[architecture], model_type=model_type, vocab_size=33, bos_token_id=0,
                eos_token_id=0) | more


def gpt2(n_embd, n_head, n_layer, **more):
    return dict(architectures=["GPT2LMHeadModel"], model_type="gpt2", n_embd=n_embd, n_head=n_head,
                n_layer=n_layer, n_positions=80, layer_norm_epsilon=1e-3, vocab_size=33,
                activation_function="gelu_new", bos_token_id=0, eos_token_id=0) | more


def llama(n_embd, n_head, n_head_kv, n_ff, **more):
    return dict(architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=n_embd,
                num_attention_heads=n_head, num_key_value_heads=n_head_kv, intermediate_size=n_ff,
                num_hidden_layers=2, hidden_act="silu", rms_norm_eps=1e-3, max_position_embeddings=128,
                rope_parameters=dict(rope_type="default", rope_theta=1e4), vocab_size=33,
                bos_token_id=0, eos_token_id=0) | more


def like_llama(architecture, model_type, *sizes, **more):
    """`more` may set rope_parameters or the older pair to None, which leaves it out."""
    return llama(*sizes, architectures=[architecture], model_type=model_type) | more


def qwen2(*sizes, **more):
    return like_llama("Qwen2ForCausalLM", "qwen2", *sizes, **more)


def qwen3(*sizes, **more):
    return like_llama("Qwen3ForCausalLM", "qwen3", *sizes, **more)


def mistral(*sizes, **more):
    return like_llama("MistralForCausalLM", "mistral", *sizes, **more)


def gemma(architecture, model_type, n_embd, n_head, n_head_kv, n_ff, head_dim, **more):
    return common(architecture, model_type, hidden_size=n_embd, num_attention_heads=n_head,
                  num_key_value_heads=n_head_kv, intermediate_size=n_ff, head_dim=head_dim,
                  num_hidden_layers=2, hidden_activation="gelu_pytorch_tanh", rms_norm_eps=1e-3,
                  max_position_embeddings=128, pad_token_id=0) | more


def gemma2(*sizes, **more):
    return gemma("Gemma2ForCausalLM", "gemma2", *sizes, **more)


def gemma3(*sizes, **more):
    return gemma("Gemma3ForCausalLM", "gemma3_text", *sizes, **more)


def gemma3_nested(*sizes, **more):
    text = gemma("", "gemma3_text", *sizes, **more)
    del text["architectures"]
    return dict(architectures=["Gemma3ForConditionalGeneration"], model_type="gemma3", vocab_size=None,
                bos_token_id=0, eos_token_id=[0, 1], text_config=text, mm_tokens_per_image=256,
                vision_config=dict(hidden_size=8, model_type="siglip_vision_model", num_hidden_layers=1))


def phi3(*sizes, **more):
    return like_llama("Phi3ForCausalLM", "phi3", *sizes, pad_token_id=0, **more)


def smollm3(*sizes, **more):
    return like_llama("SmolLM3ForCausalLM", "smollm3", *sizes, pad_token_id=0, **more)


def olmo2(*sizes, **more):
    return like_llama("Olmo2ForCausalLM", "olmo2", *sizes, **more)


def gpt_neox(n_embd, n_head, n_ff, **more):
    return common("GPTNeoXForCausalLM", "gpt_neox", hidden_size=n_embd, num_attention_heads=n_head,
                  intermediate_size=n_ff, num_hidden_layers=2, layer_norm_eps=1e-3,
                  max_position_embeddings=128, tie_word_embeddings=False) | more


def gpt_neo(n_embd, n_head, n_layer, **more):
    return common("GPTNeoForCausalLM", "gpt_neo", hidden_size=n_embd, num_heads=n_head, num_layers=n_layer,
                  layer_norm_epsilon=1e-3, max_position_embeddings=80, activation_function="gelu_new") | more


def gpt_oss(n_embd, n_head, n_head_kv, n_ff, head_dim, **more):
    return common("GptOssForCausalLM", "gpt_oss", hidden_size=n_embd, num_attention_heads=n_head,
                  num_key_value_heads=n_head_kv, intermediate_size=n_ff, head_dim=head_dim,
                  num_hidden_layers=2, hidden_act="silu", rms_norm_eps=1e-3, max_position_embeddings=128,
                  attention_bias=True, num_local_experts=4, num_experts_per_tok=2, pad_token_id=0,
                  tie_word_embeddings=False) | more


def qwen3_moe(*sizes, **more):
    return like_llama("Qwen3MoeForCausalLM", "qwen3_moe", *sizes, num_experts=5, num_experts_per_tok=2,
                      decoder_sparse_step=1, mlp_only_layers=[], **more)


def mixtral(*sizes, **more):
    return like_llama("MixtralForCausalLM", "mixtral", *sizes, num_local_experts=4,
                      num_experts_per_tok=2, **more)


def gemma1(*sizes, **more):
    return gemma("GemmaForCausalLM", "gemma", *sizes, rms_norm_eps=0.05, **more)


def phi(n_embd, n_head, n_ff, **more):
    return common("PhiForCausalLM", "phi", hidden_size=n_embd, num_attention_heads=n_head,
                  intermediate_size=n_ff, num_hidden_layers=2, hidden_act="gelu_new", layer_norm_eps=1e-3,
                  max_position_embeddings=128, tie_word_embeddings=False) | more


def gptj(n_embd, n_head, **more):
    return common("GPTJForCausalLM", "gptj", n_embd=n_embd, n_head=n_head, n_layer=2, n_positions=128,
                  layer_norm_epsilon=1e-3, activation_function="gelu_new", tie_word_embeddings=False) | more


def opt(n_embd, n_head, n_ff, **more):
    return common("OPTForCausalLM", "opt", hidden_size=n_embd, num_attention_heads=n_head, ffn_dim=n_ff,
                  num_hidden_layers=2, max_position_embeddings=70, activation_function="relu",
                  word_embed_proj_dim=n_embd, pad_token_id=1) | more


def stablelm(*sizes, **more):
    return like_llama("StableLmForCausalLM", "stablelm", *sizes, rms_norm_eps=None,
                      layer_norm_eps=1e-3, **more)


def starcoder2(*sizes, **more):
    return like_llama("Starcoder2ForCausalLM", "starcoder2", *sizes, **dict(
        rms_norm_eps=None, norm_epsilon=1e-3, hidden_act="gelu_pytorch_tanh", use_bias=True) | more)


def granite(*sizes, **more):
    return like_llama("GraniteForCausalLM", "granite", *sizes, **dict(
        rms_norm_eps=0.02, embedding_multiplier=3.0, attention_multiplier=0.5, residual_multiplier=0.6,
        logits_scaling=1.5) | more)


def old_rope(theta, scaling=None):
    return dict(rope_parameters=None, rope_theta=theta, rope_scaling=scaling or NULL)


NULL = "null"  # a key whose value is null, where None leaves the key out
SLIDING, FULL = "sliding_attention", "full_attention"

# Wavelengths 2π·θ^(2i/d) of these lie in all three ranges: kept, blended, and divided by the factor.
LLAMA3 = dict(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)

# name: (config, stored type, tokens, stride, how it is saved)
FOLDERS = {
    "gpt2-tanh": (gpt2(10, 2, 2, vocab_size=259), "F16", 20, 1, []),  # head_dim 5; all 256 bytes
    "gpt2-erf": (gpt2(14, 2, 2, n_inner=30, activation_function="gelu", tie_word_embeddings=False),
                 "F32", 66, 1, ["bare", "masks"]),
    "gpt2-layer-scale": (gpt2(12, 3, 3, n_inner=20, scale_attn_by_inverse_layer_idx=True), "BF16", 66, 1,
                         ["merges.txt"]),
    "gpt2-unscaled": (gpt2(14, 2, 1, n_inner=17, scale_attn_weights=False,
                           activation_function="gelu_pytorch_tanh"), "F16", 66, 1, ["bare"]),
    "gpt2-long": (gpt2(12, 2, 2, n_inner=24, n_positions=304), "F16", 300, 1, []),
    "llama-plain": (llama(20, 2, 2, 22), "F32", 66, 1, ["masks"]),
    "llama-9-3": (llama(18, 9, 3, 30, head_dim=6, tie_word_embeddings=True), "BF16", 66, 1, []),
    "llama-8-2": (llama(16, 8, 2, 26, head_dim=10), "F16", 66, 1, []),
    "llama-one-kv": (llama(15, 5, 1, 21, head_dim=14, vocab_size=31), "BF16", 66, 1, []),
    "llama-biases": (llama(16, 4, 2, 19, attention_bias=True, mlp_bias=True), "F32", 66, 1, []),
    "llama-linear": (llama(16, 2, 1, 20, rope_theta=5e3, rope_parameters=None,
                           rope_scaling=dict(type="linear", factor=2.5)), "F16", 66, 1, []),
    "llama-linear-new": (llama(16, 4, 2, 20, rope_parameters=dict(
        rope_type="linear", rope_theta=1e4, factor=4.0)), "F16", 66, 1, []),
    "llama-3": (llama(15, 3, 1, 20, head_dim=12, rope_parameters=dict(
        rope_type="llama3", rope_theta=5e3, **LLAMA3)), "BF16", 66, 1, []),
    "llama-3-old": (llama(18, 2, 1, 20, head_dim=14, rope_theta=1e3, rope_parameters=None,
                          rope_scaling=dict(rope_type="llama3", **LLAMA3)), "F16", 66, 1, []),
    "llama-shards": (llama(20, 5, 5, 22, mlp_bias=True), "mixed", 66, 1, ["shards"]),
    "llama-long": (llama(12, 4, 2, 16, head_dim=6, max_position_embeddings=2560), "F16", 2400, 97, []),
    # The sequence is longer than the context: its length decides the base.
    "llama-dynamic": (llama(16, 4, 2, 20, max_position_embeddings=40, **old_rope(
        1e3, dict(type="dynamic", factor=3.0))), "BF16", 60, 2, []),
    # The ramp's ends are 1.1 and 3.6: rounded outwards, unless truncate is false.
    "llama-yarn": (llama(18, 3, 1, 20, head_dim=12, rope_parameters=dict(
        rope_type="yarn", rope_theta=150.0, factor=8.0, beta_fast=4.0, beta_slow=0.5, attention_factor=1.3,
        original_max_position_embeddings=64)), "F16", 60, 2, []),
    "llama-longrope": (llama(16, 2, 1, 20, rope_parameters=dict(
        rope_type="longrope", rope_theta=1e3, factor=4.0, original_max_position_embeddings=32,
        short_factor=[1.0, 1.1, 1.2, 1.5], long_factor=[1.5, 2.0, 3.0, 4.0])), "F16", 60, 2, []),

    # A window that is not used, as every Qwen 2.5 has it.
    "qwen2-old": (qwen2(16, 4, 2, 22, tie_word_embeddings=True, sliding_window=8, use_sliding_window=False,
                        max_window_layers=1, torch_dtype="bfloat16", **old_rope(3e3)), "BF16", 60, 2, []),
    # Layers from max_window_layers on slide.
    "qwen2-window": (qwen2(18, 3, 1, 20, num_hidden_layers=3, sliding_window=11, use_sliding_window=True,
                           max_window_layers=1), "F16", 60, 2, []),
    # As the readme of Qwen 2.5 has it: beta_fast 32, beta_slow 1.
    "qwen2-yarn": (qwen2(16, 2, 1, 20, **old_rope(1e3, dict(
        type="yarn", factor=4.0, original_max_position_embeddings=32))), "F16", 60, 2, []),
    "qwen2-yarn-mscale": (qwen2(24, 2, 1, 20, rope_parameters=dict(
        rope_type="yarn", rope_theta=150.0, factor=8.0, beta_fast=4.0, beta_slow=0.5, truncate=False,
        mscale=1.5, mscale_all_dim=0.5, original_max_position_embeddings=64)), "BF16", 60, 2, []),
    "qwen2-dynamic": (qwen2(15, 3, 1, 20, head_dim=8, max_position_embeddings=48, rope_parameters=dict(
        rope_type="dynamic", rope_theta=1e3, factor=2.0)), "F16", 60, 2, []),
    "qwen3-old": (qwen3(18, 3, 1, 20, head_dim=10, attention_bias=False, tie_word_embeddings=True,
                        sliding_window=NULL, use_sliding_window=False, max_window_layers=28,
                        torch_dtype="bfloat16", **old_rope(1e3)), "BF16", 60, 2, []),
    # layer_types wins over max_window_layers.
    "qwen3-window": (qwen3(16, 4, 2, 22, head_dim=6, attention_bias=True, sliding_window=9,
                           use_sliding_window=True, max_window_layers=28, layer_types=[SLIDING, FULL]),
                     "F32", 60, 2, []),
    "mistral-old": (mistral(16, 4, 2, 22, sliding_window=10, torch_dtype="bfloat16",
                            rope_parameters=None, rope_theta=1e4), "BF16", 60, 2, []),
    # head_dim is not n_embd / n_head, as in Nemo, and the window is null.
    "mistral-nemo": (mistral(18, 4, 1, 20, head_dim=8, sliding_window=NULL, rope_parameters=None,
                             rope_theta=1e3), "F16", 60, 2, []),
    # Chunks of the attention are 256 positions: the window of the last rows begins in the one before.
    "mistral-long": (mistral(12, 2, 1, 16, sliding_window=40, max_position_embeddings=512),
                     "F16", 300, 7, []),

    # Caps that bite; hidden_act counts for nothing beside hidden_activation; layers 0 and 2 slide.
    "gemma2-old": (gemma2(16, 4, 2, 22, 6, num_hidden_layers=3, hidden_act="silu", query_pre_attn_scalar=9,
                          sliding_window=8, attn_logit_softcapping=3.0, final_logit_softcapping=8.0,
                          cache_implementation="hybrid", torch_dtype="float32", rope_theta=1e3),
                   "BF16", 60, 2, []),
    "gemma2-new": (gemma2(18, 3, 1, 20, 8, query_pre_attn_scalar=24, sliding_window=12,
                          layer_types=[FULL, SLIDING], attn_logit_softcapping=NULL,
                          final_logit_softcapping=NULL, use_bidirectional_attention=NULL,
                          rope_parameters=dict(rope_type="default", rope_theta=2e3)), "F16", 60, 2, []),
    # Two thetas; only the full layers (every third) are scaled.
    "gemma3-old": (gemma3(16, 4, 2, 22, 6, num_hidden_layers=3, sliding_window_pattern=3, sliding_window=9,
                          query_pre_attn_scalar=11, rope_theta=1e4, rope_local_base_freq=300.0,
                          rope_scaling=dict(factor=4.0, rope_type="linear"), attn_logit_softcapping=NULL,
                          final_logit_softcapping=NULL, torch_dtype="bfloat16"), "BF16", 60, 2, []),
    "gemma3-new": (gemma3(18, 3, 1, 20, 8, sliding_window=12, layer_types=[FULL, SLIDING],
                          attention_bias=False, query_pre_attn_scalar=8, final_logit_softcapping=8.0,
                          use_bidirectional_attention=False,
                          rope_parameters={FULL: dict(rope_type="default", rope_theta=5e3),
                                           SLIDING: dict(rope_type="default", rope_theta=500.0)}),
                   "F16", 60, 2, []),
    # Heads as wide as in the released models.
    "gemma3-wide": (gemma3(12, 2, 1, 16, 256, num_hidden_layers=1, sliding_window=10, query_pre_attn_scalar=256,
                           layer_types=[SLIDING]), "BF16", 60, 2, []),
    # What stands in a text_config of the hub, beside a vision tower.
    "gemma3-nested": (gemma3_nested(16, 2, 1, 12, 8, num_hidden_layers=6, sliding_window=10,
                                    query_pre_attn_scalar=8,
                                    rope_scaling=dict(factor=8.0, rope_type="linear")),
                      "BF16", 60, 2, ["nested"]),

    "phi3-old": (phi3(16, 4, 4, 22, sliding_window=9, original_max_position_embeddings=128,
                      torch_dtype="bfloat16", **old_rope(1e3)), "BF16", 60, 2, []),
    "phi3-short": (phi3(16, 2, 1, 22, max_position_embeddings=4096, original_max_position_embeddings=1024,
                        partial_rotary_factor=0.5, sliding_window=2047, **old_rope(1e3, dict(
                            type="longrope", short_factor=[1.1, 1.5], long_factor=[2.0, 5.0]))),
                   "F16", 60, 2, []),
    "phi3-long": (phi3(18, 3, 1, 20, num_hidden_layers=1, head_dim=None, original_max_position_embeddings=32,
                       sliding_window=NULL, tie_word_embeddings=True, rope_parameters=dict(
                           rope_type="longrope", rope_theta=1e3, partial_rotary_factor=0.75,
                           short_factor=[1.0, 1.2], long_factor=[1.5, 3.0])), "F32", 60, 2, []),

    # Every fourth layer without rope; tied where nothing is said.
    "smollm3-old": (smollm3(12, 2, 1, 16, num_hidden_layers=4, no_rope_layers=[1, 1, 1, 0],
                            no_rope_layer_interval=4, layer_types=[FULL] * 4, sliding_window=NULL,
                            use_sliding_window=False, torch_dtype="bfloat16", **old_rope(5e3)),
                    "BF16", 60, 2, []),
    # Layers without rope slide.
    "smollm3-window": (smollm3(16, 4, 2, 20, num_hidden_layers=2, no_rope_layer_interval=2, sliding_window=9,
                               use_sliding_window=True, attention_bias=True, mlp_bias=True,
                               tie_word_embeddings=False), "F16", 60, 2, []),

    "olmo2-old": (olmo2(16, 4, 4, 22, attention_bias=False, torch_dtype="float32", **old_rope(1e3)),
                  "F32", 60, 2, []),
    "olmo2-new": (olmo2(18, 3, 1, 20, attention_bias=True), "F16", 60, 2, []),

    "gpt_neox-pythia": (gpt_neox(24, 3, 30, rotary_pct=0.5, rotary_emb_base=500, use_parallel_residual=True,
                                 hidden_act="gelu", torch_dtype="float16"), "F16", 60, 2, ["masks"]),
    # A quarter rotates where nothing is said.
    "gpt_neox-sequential": (gpt_neox(32, 2, 20, use_parallel_residual=False, hidden_act="gelu_fast",
                                     attention_bias=False, rope_parameters=dict(
                                         rope_type="default", rope_theta=100.0)), "F16", 60, 2, []),

    "gpt_neo-hub": (gpt_neo(12, 2, 2, window_size=9, attention_types=[[["global", "local"], 1]],
                            attention_layers=["global", "local"], intermediate_size=NULL), "F16", 60, 2,
                    ["masks"]),
    "gpt_neo-local": (gpt_neo(14, 2, 3, window_size=12, attention_types=[[["local"], 2], [["global"], 1]],
                              intermediate_size=20, activation_function="gelu"), "F32", 60, 2, ["bare"]),

    # A limit and a ramp that matter: its ends lie between whole numbers.
    "gpt_oss-bf16": (gpt_oss(16, 4, 2, 10, 12, sliding_window=8, swiglu_limit=1.5,
                             layer_types=[SLIDING, FULL],
                             rope_parameters=dict(
                                 rope_type="yarn", rope_theta=150.0, factor=8.0, beta_fast=4.0, beta_slow=0.5,
                                 truncate=False, original_max_position_embeddings=64)), "BF16", 60, 2, []),
    # Rows over two chunks of the attention: a sink counts once.
    "gpt_oss-long": (gpt_oss(12, 2, 1, 6, 8, sliding_window=40, max_position_embeddings=512,
                             rope_parameters=dict(rope_type="default", rope_theta=1e3)), "BF16", 300, 7, []),
    "gpt_oss-mxfp4": (gpt_oss(32, 2, 1, 64, 16, sliding_window=11, experts_per_token=2, swiglu_limit=7.0,
                              initial_context_length=4096, max_position_embeddings=131072, rope_theta=150000,
                              rope_scaling=dict(beta_fast=32.0, beta_slow=1.0, factor=32.0, rope_type="yarn",
                                                original_max_position_embeddings=4096, truncate=False),
                              quantization_config=dict(quant_method="mxfp4", modules_to_not_convert=[
                                  "model.layers.*.self_attn", "model.layers.*.mlp.router",
                                  "model.embed_tokens", "lm_head"])), "BF16", 60, 2, ["mxfp4"]),

    "qwen3_moe-old": (qwen3_moe(16, 2, 1, 30, head_dim=10, moe_intermediate_size=12, norm_topk_prob=True,
                                sliding_window=NULL, use_sliding_window=False, max_window_layers=48,
                                torch_dtype="bfloat16", **old_rope(1e3)), "BF16", 60, 2, []),
    "qwen3_moe-unnormed": (qwen3_moe(18, 3, 1, 20, head_dim=8, moe_intermediate_size=10,
                                     norm_topk_prob=False),
                           "F16", 60, 2, []),
    "mixtral": (mixtral(16, 4, 2, 12, sliding_window=NULL, rope_parameters=None, rope_theta=1e3,
                        torch_dtype="bfloat16"), "BF16", 60, 2, []),

    # "gelu" means the tanh approximation in a Gemma, and hidden_activation is younger than these files.
    "gemma-old": (gemma1(16, 4, 1, 22, 6, hidden_activation=None, hidden_act="gelu", torch_dtype="bfloat16",
                         rope_scaling=NULL, rope_theta=1e3), "BF16", 60, 2, []),
    "gemma-new": (gemma1(18, 3, 3, 20, 8, hidden_activation=NULL, hidden_act="gelu_pytorch_tanh",
                         attention_bias=False, rope_parameters=dict(rope_type="default", rope_theta=2e3)),
                  "F16", 60, 2, []),

    "phi-old": (phi(20, 2, 24, partial_rotary_factor=0.4, qk_layernorm=False, torch_dtype="float16",
                    num_key_value_heads=NULL, rope_scaling=NULL, rope_theta=1e3), "F16", 60, 2, []),
    # Half of each head rotates where nothing is said.
    "phi-new": (phi(24, 3, 20, num_key_value_heads=1), "F32", 60, 2, []),
    "gptj-old": (gptj(16, 2, rotary_dim=4, n_inner=NULL, torch_dtype="float16"), "F16", 60, 2, ["masks"]),
    "gptj-new": (gptj(20, 2, rotary_dim=10, n_inner=18, activation_function="gelu"), "F32", 60, 2, ["bare"]),
    "opt-old": (opt(16, 4, 20, do_layer_norm_before=True, torch_dtype="float16",
                    _remove_final_layer_norm=False), "F16", 60, 2, []),
    "opt-bare": (opt(18, 3, 20, prefix="</s>", activation_function="gelu"), "F32", 60, 2, ["bare"]),
    "stablelm-old": (stablelm(16, 2, 2, 20, partial_rotary_factor=0.5, use_qkv_bias=True, qk_layernorm=False,
                              use_parallel_residual=False, torch_dtype="float16", **old_rope(1e3)),
                     "F16", 60, 2, []),
    "stablelm-parallel": (stablelm(32, 2, 1, 20, use_parallel_residual=True, rope_parameters=dict(
        rope_type="default", rope_theta=100.0)), "F16", 60, 2, []),
    "starcoder2-old": (starcoder2(16, 4, 2, 20, sliding_window=9, torch_dtype="float32", **old_rope(1e3)),
                       "BF16", 60, 2, []),
    "starcoder2-new": (starcoder2(18, 3, 1, 20, sliding_window=NULL, use_bias=False,
                                  tie_word_embeddings=False), "F16", 60, 2, []),
    "granite-old": (granite(16, 4, 2, 20, attention_bias=False, mlp_bias=False, tie_word_embeddings=True,
                            torch_dtype="bfloat16", **old_rope(1e3)), "BF16", 60, 2, []),
    "granite-new": (granite(18, 3, 1, 20, attention_bias=True, mlp_bias=True, logits_scaling=2,
                            embedding_multiplier=1, attention_multiplier=0.5, residual_multiplier=1.5),
                    "F16", 60, 2, []),
}

FLOATS, QUANTS = ["F32", "F16", "BF16"], ["Q8_0", "Q4_0", "Q4_1"]
GGUF_TOKENS, GGUF_STRIDE = 60, 2
# The float types share one reference: these weights are representable in all three.
GGUFS = {
    "gpt2": (gpt2(32, 4, 1, n_inner=96), ["F16", "Q4_0"]),
    "llama": (llama(32, 4, 2, 32, num_hidden_layers=1, head_dim=16, attention_bias=True,
                    rope_parameters=dict(rope_type="llama3", rope_theta=5e3, **LLAMA3)),
              FLOATS + QUANTS + ["Q5_0", "Q5_1", "IQ4_NL"]),
    "llama-wide": (llama(64, 8, 2, 96, tie_word_embeddings=True, rope_parameters=dict(
        rope_type="linear", rope_theta=1e4, factor=4.0)), QUANTS),
    # Blocks of 256 numbers want rows as wide; the others, of 32, have narrower blocks.
    "llama-blocks": (llama(256, 2, 1, 32, head_dim=16, num_hidden_layers=1, tie_word_embeddings=True),
                     ["Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_XS"]),
    "qwen2": (qwen2(16, 4, 2, 22, rope_parameters=dict(rope_type="default", rope_theta=3e3)), ["F16"]),
    "qwen2-tied": (qwen2(32, 4, 1, 64, num_hidden_layers=1, tie_word_embeddings=True), ["Q8_0"]),
    "qwen3": (qwen3(16, 4, 2, 22, head_dim=6), ["F16"]),
    "qwen3-tied": (qwen3(32, 2, 1, 32, num_hidden_layers=1, head_dim=32, tie_word_embeddings=True), ["Q8_0"]),
    "mistral": (mistral(18, 3, 1, 20, head_dim=8, sliding_window=NULL), ["F32"]),
    "qwen2-yarn": (qwen2(24, 2, 1, 20, rope_parameters=dict(
        rope_type="yarn", rope_theta=150.0, factor=8.0, beta_fast=4.0, beta_slow=0.5,
        original_max_position_embeddings=64)), ["F16"]),
    "gemma2": (gemma2(16, 4, 2, 22, 6, num_hidden_layers=3, query_pre_attn_scalar=6, sliding_window=8,
                      attn_logit_softcapping=3.0, final_logit_softcapping=8.0), ["F16"]),
    "gemma2-q": (gemma2(32, 2, 1, 32, 16, query_pre_attn_scalar=16, sliding_window=12), ["Q8_0"]),
    "gemma3": (gemma3(16, 2, 1, 12, 8, num_hidden_layers=6, sliding_window=10, query_pre_attn_scalar=8,
                      rope_theta=1e4, rope_local_base_freq=300.0,
                      rope_scaling=dict(factor=8.0, rope_type="linear")), ["F16"]),
    "gemma3-q": (gemma3(32, 2, 1, 32, 16, query_pre_attn_scalar=16, sliding_window=12), ["Q8_0"]),
    "phi3": (phi3(18, 3, 1, 20, sliding_window=9, original_max_position_embeddings=128), ["F16"]),
    "phi3-long": (phi3(16, 2, 1, 20, num_hidden_layers=1, original_max_position_embeddings=32,
                       sliding_window=NULL, rope_parameters=dict(
                           rope_type="longrope", rope_theta=1e3, partial_rotary_factor=0.75,
                           short_factor=[1.0, 1.2, 1.3], long_factor=[1.5, 3.0, 4.0])), ["F32"]),
    "smollm3-4": (smollm3(16, 2, 1, 16, num_hidden_layers=4), ["F16"]),
    "olmo2": (olmo2(18, 3, 1, 20), ["F16"]),
    "gptneox": (gpt_neox(24, 3, 30, rotary_pct=0.5), ["F16"]),
    "gptneox-sequential": (gpt_neox(32, 2, 32, rotary_pct=0.25, use_parallel_residual=False), ["Q8_0"]),
    "qwen3moe": (qwen3_moe(16, 2, 1, 24, head_dim=10, moe_intermediate_size=12, norm_topk_prob=True),
                 ["F16"]),
    "qwen3moe-q": (qwen3_moe(32, 2, 1, 64, head_dim=32, num_hidden_layers=1, moe_intermediate_size=32,
                             norm_topk_prob=True), ["Q8_0"]),
    "mixtral": (mixtral(16, 4, 2, 12, sliding_window=NULL), ["F16"]),
    "gemma": (gemma1(16, 4, 1, 22, 6), ["F16"]),
    "phi2": (phi(20, 2, 80, num_hidden_layers=1, partial_rotary_factor=0.4), ["F16"]),
    "stablelm": (stablelm(16, 2, 2, 20, partial_rotary_factor=0.5, use_qkv_bias=True), ["F16"]),
    "stablelm-parallel": (stablelm(32, 2, 1, 32, use_parallel_residual=True), ["Q8_0"]),
    "starcoder2": (starcoder2(18, 3, 1, 20, sliding_window=NULL, rope_parameters=dict(
        rope_type="default", rope_theta=1e3)), ["F16"]),
    "granite": (granite(16, 4, 2, 20, rope_parameters=dict(rope_type="default", rope_theta=1e3)), ["F16"]),
    "granite-tied": (granite(32, 2, 1, 32, tie_word_embeddings=True, num_hidden_layers=1), ["Q8_0"]),
    "gpt-oss": (gpt_oss(16, 4, 2, 10, 12, sliding_window=8, rope_parameters=dict(
        rope_type="yarn", rope_theta=150.0, factor=8.0, beta_fast=32.0, beta_slow=1.0, truncate=False,
        original_max_position_embeddings=64)), ["F16"]),
    "gpt-oss-mxfp4": (gpt_oss(32, 2, 1, 64, 16, sliding_window=11, max_position_embeddings=131072,
                              rope_theta=150000, rope_scaling=dict(
                                  beta_fast=32.0, beta_slow=1.0, factor=32.0, rope_type="yarn",
                                  original_max_position_embeddings=4096, truncate=False)), ["MXFP4_MOE"]),
}
