/* Configuration from metadata: rows M13 and M15 to M18 of the fault catalogue, M31, M32 and M50, and what
 * each container's keys come to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>

#include "model/forward.h"
#include "support/check_container.h"
#include "support/gguf_writer.h"

/* A llama's keys without that of `skip`, so that a test can put its own. */
static gguf llama(const char *skip)
{
    static const struct {
        const char *key;
        uint32_t value;
    } keys[] = {{"llama.block_count", 1},          {"llama.embedding_length", 32},
                {"llama.attention.head_count", 4}, {"llama.attention.head_count_kv", 2},
                {"llama.feed_forward_length", 64}, {"llama.context_length", 128}};
    gguf g = gguf_new();
    gguf_text(&g, "general.architecture", "llama");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i].key, skip) != 0)
            gguf_u32(&g, keys[i].key, keys[i].value);
    if (strcmp("llama.attention.layer_norm_rms_epsilon", skip) != 0)
        gguf_f32(&g, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    return g;
}

static void config_of(tg_container *c, tg_config *config)
{
    const tg_arch *arch;
    const char *name;
    tg_error err = {0};
    if (tg_config_load(c, &arch, &name, config, &err) != TG_OK)
        fail_msg("%s", err.message);
    tg_container_free(c);
}

static void refused_config(tg_container *c, const char *wanted)
{
    const tg_arch *arch;
    const char *name;
    tg_config config;
    tg_error err = {0};
    assert_int_equal(tg_config_load(c, &arch, &name, &config, &err), TG_E_MODEL);
    if (!strstr(err.message, wanted))
        fail_msg("no '%s' in: %s", wanted, err.message);
    assert_int_equal(tg_config_load(c, &arch, &name, &config, NULL), TG_E_MODEL);
    tg_container_free(c);
}

static tg_container *open_gguf(gguf *g)
{
    return accepted_as("x.gguf", gguf_file(g));
}

static void gguf_llama(void **state)
{
    (void)state;
    gguf g = llama("");
    tg_config c;
    config_of(open_gguf(&g), &c);
    assert_int_equal(c.n_layer, 1);
    assert_int_equal(c.head_dim, 8);
    assert_int_equal(c.n_head_kv, 2);
    assert_int_equal(c.rope[0].n_rot, 8);
    assert_int_equal(c.rope[0].pairs, TG_ROPE_NEIGHBOURS);
    assert_true(c.rope[0].theta == 10000.0 && c.norm_eps == 1e-5f);

    g = llama("llama.attention.head_count_kv");
    gguf_u32(&g, "llama.attention.key_length", 10);
    gguf_f32(&g, "llama.rope.freq_base", 5e5f);
    gguf_text(&g, "llama.rope.scaling.type", "linear");
    gguf_f32(&g, "llama.rope.scaling.factor", 4);
    config_of(open_gguf(&g), &c);
    assert_int_equal(c.n_head_kv, 4);
    assert_int_equal(c.head_dim, 10);
    assert_int_equal(c.rope[0].scaling, TG_ROPE_LINEAR);
    assert_true(c.rope[0].factor == 4.0 && c.rope[0].theta == 5e5);

    g = llama("");
    gguf_text(&g, "llama.rope.scaling.type", "none");
    gguf_f32(&g, "llama.rope.scaling.factor", 4);
    config_of(open_gguf(&g), &c);
    assert_int_equal(c.rope[0].scaling, TG_ROPE_NONE);
}

static void m13_wrong_types(void **state)
{
    (void)state;
    gguf g = llama("llama.block_count");
    gguf_f32(&g, "llama.block_count", 2);
    refused_config(open_gguf(&g), "llama.block_count");
    g = llama("llama.block_count");
    gguf_text(&g, "llama.block_count", "2");
    refused_config(open_gguf(&g), "llama.block_count");
    g = llama("");
    gguf_text(&g, "llama.rope.freq_base", "x");
    refused_config(open_gguf(&g), "llama.rope.freq_base");
}

static void m15_missing_and_unsupported(void **state)
{
    (void)state;
    gguf g = llama("llama.block_count");
    refused_config(open_gguf(&g), "required keys missing: llama.block_count");
    g = gguf_new();
    gguf_text(&g, "general.architecture", "llama");
    refused_config(open_gguf(&g), "llama.block_count, llama.embedding_length, ");
    g = gguf_new();
    gguf_u32(&g, "x", 1);
    refused_config(open_gguf(&g), "required key missing: general.architecture");
    g = gguf_new();
    gguf_text(&g, "general.architecture", "mam\nba");
    refused_config(open_gguf(&g), "(found \"mam\\x0aba\", allowed: gpt2, gptneox, llama, ");
}

static void m16_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        uint32_t most;
    } limits[] = {{"llama.block_count", 512},
                  {"llama.attention.head_count", 1024},
                  {"llama.embedding_length", 65536},
                  {"llama.context_length", 1 << 20}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        const uint64_t bad[] = {0, limits[i].most + 1u, (uint64_t)-1};
        for (int k = 0; k < 3; k++) {
            gguf g = llama(limits[i].key);
            gguf_uint(&g, limits[i].key, k == 2 ? GGUF_I64 : GGUF_U32, bad[k]);
            refused_config(open_gguf(&g), limits[i].key);
        }
        if (i == 1)
            continue; /* 1,024 heads do not divide the embedding */
        gguf g = llama(limits[i].key);
        gguf_uint(&g, limits[i].key, GGUF_U64, limits[i].most);
        tg_config c;
        config_of(open_gguf(&g), &c);
    }
}

static void m17_heads(void **state)
{
    (void)state;
    gguf g = llama("llama.attention.head_count");
    gguf_u32(&g, "llama.attention.head_count", 6);
    refused_config(open_gguf(&g), "embedding is not divisible by heads");
    g = llama("llama.attention.head_count_kv");
    gguf_u32(&g, "llama.attention.head_count_kv", 3);
    refused_config(open_gguf(&g), "heads are not divisible by key-value heads");
    g = llama("");
    gguf_u32(&g, "llama.rope.dimension_count", 7);
    refused_config(open_gguf(&g), "rotary dimensions (found 7");
    g = llama("");
    gguf_u32(&g, "llama.rope.dimension_count", 10);
    refused_config(open_gguf(&g), "rotary dimensions (found 10");
}

static void m18_reals(void **state)
{
    (void)state;
    static const char *const keys[] = {"llama.attention.layer_norm_rms_epsilon", "llama.rope.freq_base",
                                       "llama.rope.scaling.factor"};
    static const float bad[] = {0, -1, NAN, INFINITY, -INFINITY};
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < 5; i++) {
            gguf g = llama(keys[k]);
            gguf_f32(&g, keys[k], bad[i]);
            refused_config(open_gguf(&g), keys[k]);
        }
        gguf g = llama(keys[k]);
        gguf_f64(&g, keys[k], 1e-300); /* nothing is left of it in float32 */
        refused_config(open_gguf(&g), keys[k]);
    }
}

static void experts_and_other_values_are_refused(void **state)
{
    (void)state;
    gguf g = llama("");
    gguf_u32(&g, "llama.expert_count", 8);
    refused_config(open_gguf(&g), "llama.expert_used_count (found 0, allowed 1 to 8)");
    g = llama("");
    gguf_u32(&g, "llama.attention.value_length", 16);
    refused_config(open_gguf(&g), "value heads of another size");
    g = llama("");
    gguf_text(&g, "llama.rope.scaling.type", "yarn");
    refused_config(open_gguf(&g), "required keys missing: llama.rope.scaling.factor");
    g = llama("");
    gguf_text(&g, "llama.rope.scaling.type", "dynamic");
    refused_config(open_gguf(&g), "rope.scaling.type is not supported in a GGUF (found \"dynamic\")");
    g = llama("");
    gguf_text(&g, "llama.rope.scaling.type", "ntk");
    refused_config(open_gguf(&g), "(found \"ntk\", allowed: default, none, linear, ");
}

static void windows_of_layers(void **state)
{
    (void)state;
    for (int how = 0; how < 4; how++) {
        gguf g = llama("llama.block_count");
        gguf_u32(&g, "llama.block_count", 4);
        gguf_u32(&g, "llama.attention.sliding_window", 16);
        if (how == 1)
            gguf_u32(&g, "llama.attention.sliding_window_pattern", 2);
        if (how >= 2) {
            bytes *b = gguf_array(&g, "llama.attention.sliding_window_pattern", GGUF_BOOL, how == 2 ? 4 : 3);
            for (int i = 0; i < (how == 2 ? 4 : 3); i++)
                put_uint(b, i == 3, 1);
        }
        if (how == 3) {
            refused_config(open_gguf(&g), "llama.attention.sliding_window_pattern (found 3, wanted 4");
            continue;
        }
        tg_config c;
        config_of(open_gguf(&g), &c);
        static const uint8_t local[3][4] = {{1, 1, 1, 1}, {1, 0, 1, 0}, {0, 0, 0, 1}};
        for (int i = 0; i < 4; i++)
            assert_int_equal(tg_config_is_local(&c, i), local[how][i]);
        assert_int_equal(tg_window_of(&c, 0, 0), local[how][0] ? 16 : 0);
        assert_int_equal(tg_window_of(&c, 3, 9), 9);
        assert_int_equal(tg_window_of(&c, 0, 99), local[how][0] ? 16 : 99);
    }
}

/* ---- folders --------------------------------------------------------------------------------------- */

#define LLAMA_SIZES                                                                                \
    "\"model_type\":\"llama\",\"num_hidden_layers\":1,\"hidden_size\":32,"                         \
    "\"num_attention_heads\":4,\"intermediate_size\":64,\"max_position_embeddings\":128,"          \
    "\"vocab_size\":10"

/* The container of a folder with this config.json and one tensor that nobody asks for. */
static tg_container *folder(const char *config)
{
    static const char header[] = "{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}   ";
    bytes b = {0};
    put_u64(&b, sizeof header - 1);
    put(&b, header, sizeof header - 1);
    put_zeros(&b, 4);
    scratch_remove("m");
    scratch_mkdir("m");
    scratch_text("m/config.json", config);
    scratch_write("m/model.safetensors", b.data, b.n);
    bytes_free(&b);
    return accepted_at(scratch_path("m"));
}

static void m50_folders(void **state)
{
    (void)state;
    tg_config c;
    config_of(folder("{" LLAMA_SIZES ",\"rms_norm_eps\":1e-05,\"rope_scaling\":null,"
                     "\"rope_parameters\":{\"rope_type\":\"llama3\",\"rope_theta\":500000.0,\"factor\":8,"
                     "\"low_freq_factor\":1,\"high_freq_factor\":4,"
                     "\"original_max_position_embeddings\":64}}"),
              &c);
    assert_int_equal(c.rope[0].scaling, TG_ROPE_LLAMA3);
    assert_int_equal(c.rope[0].pairs, TG_ROPE_HALVES);
    assert_int_equal(c.n_head_kv, 4);
    assert_true(c.rope[0].theta == 500000.0 && c.rope[0].factor == 8.0 && c.rope[0].original_ctx == 64.0);
    config_of(folder("{" LLAMA_SIZES ",\"rms_norm_eps\":1e-05,\"rope_theta\":1e6,"
                     "\"rope_scaling\":{\"type\":\"linear\",\"factor\":2.0}}"),
              &c);
    assert_int_equal(c.rope[0].scaling, TG_ROPE_LINEAR);
    assert_true(c.rope[0].theta == 1e6);

    refused_config(folder("{" LLAMA_SIZES "}"), "required keys missing: rms_norm_eps");
    refused_config(folder("{\"model_type\":\"bert\"}"), "(found \"bert\", allowed: gpt2, gpt_neo, gptj, ");
    refused_config(folder("{\"model_type\":7}"), "model_type");
    refused_config(folder("{\"a\":1}"), "required key missing: model_type");
    refused_config(folder("{" LLAMA_SIZES ",\"rms_norm_eps\":1e-5,\"hidden_act\":\"mish\"}"), "hidden_act");
    refused_config(folder("{" LLAMA_SIZES ",\"rms_norm_eps\":1e-5,\"attention_bias\":1}"), "attention_bias");
    refused_config(folder("{" LLAMA_SIZES ",\"rms_norm_eps\":\"1e-5\"}"), "rms_norm_eps");
    refused_config(folder("{" LLAMA_SIZES ",\"rms_norm_eps\":1e-5,\"rope_scaling\":{\"type\":\"ntk\","
                          "\"factor\":2}}"),
                   "(found \"ntk\", allowed: default, none, linear, dynamic, ");
    refused_config(folder("{" LLAMA_SIZES ",\"rms_norm_eps\":1e-5,\"rope_scaling\":{\"type\":\"linear\"}}"),
                   "required keys missing: rope_scaling.factor");
    refused_config(folder("{" LLAMA_SIZES ",\"rms_norm_eps\":1e-5,\"rope_scaling\":{\"rope_type\":"
                          "\"llama3\",\"factor\":2,\"low_freq_factor\":4,\"high_freq_factor\":4,"
                          "\"original_max_position_embeddings\":64}}"),
                   "high_freq_factor");
}

/* Every setting that is not supported is refused by its name, and so is one that does not fit. */
static void settings_are_refused_by_name(void **state)
{
    (void)state;
    static const char sizes[] = "\"num_hidden_layers\":2,\"num_layers\":2,\"n_layer\":2,\"hidden_size\":32,\"n_embd\":32,"
                                "\"num_attention_heads\":4,\"num_heads\":4,\"n_head\":4,\"intermediate_size\":64,"
                                "\"ffn_dim\":64,\"n_positions\":128,\"max_position_embeddings\":128,"
                                "\"rms_norm_eps\":1e-5,\"sliding_window\":16,\"window_size\":16";
    static const struct {
        const char *type, *setting, *wanted;
    } bad[] = {
        {"gpt2", "\"add_cross_attention\":true", "cross attention is not supported"},
        {"gpt2", "\"activation_function\":\"tanh\"", "activation_function is not supported (found \"tanh\""},
        {"gpt_neo", "\"attention_types\":[[[\"global\",\"local\"],2]]", "attention_types does not fit"},
        {"gpt_neo", "\"attention_types\":[[[\"global\",\"linear\"],1]]", "attention_types of layer 1 is not supported"},
        {"gpt_neo", "\"attention_types\":[]", "attention_types (found 0 layers, wanted 2)"},
        {"gpt_neo", "\"attention_types\":[[7,[]],3]", "attention_types does not fit"},
        {"gptj", "\"rotary_dim\":10", "rotary dimensions (found 10, allowed: even, at most the head size 8)"},
        {"gpt_neox", "\"rotary_pct\":0.9", "rotary dimensions (found 7"},
        {"opt", "\"do_layer_norm_before\":false", "do_layer_norm_before false is not supported"},
        {"opt", "\"layer_norm_elementwise_affine\":false", "layer_norm_elementwise_affine false is not supported"},
        {"opt", "\"word_embed_proj_dim\":16", "word_embed_proj_dim is not supported (found 16"},
        {"phi", "\"qk_layernorm\":true", "qk_layernorm true is not supported"},
        {"stablelm", "\"qk_layernorm\":true", "qk_layernorm true is not supported"},
        {"gemma2", "\"layer_types\":[\"full_attention\",\"chunked_attention\"]",
         "layer_types of layer 1 is not supported (found chunked_attention"},
        {"gemma2", "\"layer_types\":[\"full_attention\"]", "layer_types (found 1, wanted 2"},
        {"smollm3", "\"no_rope_layers\":[1]", "no_rope_layers (found 1, wanted 2"},
        {"qwen3_moe", "\"num_experts\":4,\"num_experts_per_tok\":2,\"mlp_only_layers\":[1]", "(mlp_only_layers)"},
        {"qwen3_moe", "\"num_experts\":4,\"num_experts_per_tok\":2,\"decoder_sparse_step\":2", "(decoder_sparse_step)"},
        {"qwen3_moe", "\"num_experts\":4,\"num_experts_per_tok\":5", "num_experts_per_tok (found 5, allowed 1 to 4)"},
        {"mixtral", "\"num_local_experts\":2000", "num_local_experts (found 2000, allowed 0 to 1024)"},
        {"llama", "\"num_experts\":4,\"num_experts_per_tok\":2", "mixture of experts is not supported"},
        {"llama", "\"rope_scaling\":{\"rope_type\":\"mrope\"}", "rope_scaling.rope_type is not supported (found \"mrope\""},
        {"qwen3_moe", "\"num_experts\":4,\"num_experts_per_tok\":2,\"mlp_only_layers\":0", "mlp_only_layers: wrong type"},
        {"gpt_oss", "\"num_local_experts\":0", "num_local_experts (found 0, allowed: at least 1)"},
        {"gpt_oss", "\"x\":0", "num_local_experts (found 0, allowed: at least 1)"},
        {"smollm3", "\"no_rope_layers\":[1,2]", "no_rope_layers of layer 1 (allowed: 0 and 1)"},
        {"smollm3", "\"no_rope_layers\":\"all\"", "no_rope_layers: wrong type (allowed a list)"},
        {"gemma2", "\"layer_types\":\"sliding_attention\"", "layer_types: wrong type (allowed a list)"},
        {"llama", "\"layer_types\":[\"full_attention\",\"linear_attention\"]", "layer_types of layer 1 is not supported"},
        {"phi", "\"partial_rotary_factor\":0.01", "part of a head that rotates (found 0.01, allowed: at least 2 of 8"},
        {"gpt_neox", "\"rotary_pct\":3e38", "part of a head that rotates (found 3e+38"},
        {"llama", "\"quantization_config\":{\"quant_method\":\"gptq\"}",
         "quantization_config.quant_method is not supported (found \"gptq\", allowed: mxfp4)"},
        {"mamba", "\"x\":1", "architecture is not supported (found \"mamba\""},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char config[1024];
        snprintf(config, sizeof config, "{%s,\"model_type\":\"%s\",%s}", bad[i].setting, bad[i].type, sizes);
        refused_config(folder(config), bad[i].wanted);
    }
}

/* ---- weights ---------------------------------------------------------------------------------------- */

enum { V = 7, E = 32, KV = 16, FF = 64 };

static const struct {
    const char *name;
    uint64_t ne[2]; /* row length first, as the file has it */
    uint32_t n_dim;
} tensors[] = {
    {"token_embd.weight", {E, V}, 2},          {"output_norm.weight", {E}, 1},
    {"blk.0.attn_norm.weight", {E}, 1},        {"blk.0.attn_q.weight", {E, E}, 2},
    {"blk.0.attn_k.weight", {E, KV}, 2},       {"blk.0.attn_v.weight", {E, KV}, 2},
    {"blk.0.attn_output.weight", {E, E}, 2},   {"blk.0.ffn_norm.weight", {E}, 1},
    {"blk.0.ffn_gate.weight", {E, FF}, 2},     {"blk.0.ffn_up.weight", {E, FF}, 2},
    {"blk.0.ffn_down.weight", {FF, E}, 2},
};

enum { N_TENSORS = sizeof tensors / sizeof *tensors };

/* All tensors as zeros; number `odd` is left out (how 0), has another shape (1) or type (2: I32). */
static tg_status load_with(int odd, int how, tg_error *err)
{
    static const float zeros[E * FF + FF];
    gguf g = llama("");
    for (int i = 0; i < N_TENSORS; i++) {
        uint64_t ne[2] = {tensors[i].ne[0], tensors[i].n_dim > 1 ? tensors[i].ne[1] : 1};
        if (i == odd && how == 0)
            continue;
        if (i == odd && how == 1)
            ne[tensors[i].n_dim - 1]++;
        gguf_tensor(&g, tensors[i].name, tensors[i].n_dim, ne, i == odd && how == 2 ? 26 : 0, zeros,
                    ne[0] * ne[1] * 4);
    }
    tg_container *c = open_gguf(&g);
    tg_weights w = {0};
    const char *name;
    tg_arena *arena = tg_arena_create(NULL);
    tg_status status = tg_config_load(c, &w.arch, &name, &w.config, err);
    if (status == TG_OK)
        status = tg_weights_load(&w, c, arena, err);
    if (status == TG_OK) {
        assert_int_equal(w.config.n_vocab, V);
        assert_ptr_equal(w.output.data, w.tok_embd.data);
        assert_int_equal(w.layer[0].ffn.down.n_in, FF);
    }
    tg_arena_free(arena);
    tg_container_free(c);
    return status;
}

static void m31_m32_tensors(void **state)
{
    (void)state;
    tg_error err = {0};
    assert_int_equal(load_with(-1, 0, &err), TG_OK);
    for (int i = 0; i < N_TENSORS; i++) {
        static const char *const said[] = {"required tensors missing: ", "shape of tensor ",
                                           "is not supported (found I32)"};
        for (int how = 0; how < 3; how++) {
            if (how == 1 && i == 0)
                continue; /* the embedding's rows are the vocabulary */
            assert_int_equal(load_with(i, how, &err), TG_E_MODEL);
            if (!strstr(err.message, said[how]) || !strstr(err.message, tensors[i].name))
                fail_msg("%s, %d: %s", tensors[i].name, how, err.message);
            assert_int_equal(load_with(i, how, NULL), TG_E_MODEL);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gguf_llama),
        cmocka_unit_test(m13_wrong_types),
        cmocka_unit_test(m15_missing_and_unsupported),
        cmocka_unit_test(m16_sizes),
        cmocka_unit_test(m17_heads),
        cmocka_unit_test(m18_reals),
        cmocka_unit_test(experts_and_other_values_are_refused),
        cmocka_unit_test(windows_of_layers),
        cmocka_unit_test(m50_folders),
        cmocka_unit_test(settings_are_refused_by_name),
        cmocka_unit_test(m31_m32_tensors),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
