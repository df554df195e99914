/* arch.c - the table of architectures, and the names of tensors by role. */
#include "model/arch.h"

#include <stdio.h>
#include <string.h>

static const tg_arch *const table[] = {
    &tg_arch_gpt2,     &tg_arch_gpt_neo,    &tg_arch_gptj,    &tg_arch_gpt_neox,  &tg_arch_opt,
    &tg_arch_llama,    &tg_arch_mistral,    &tg_arch_mixtral, &tg_arch_qwen2,   &tg_arch_qwen3,     &tg_arch_qwen3_moe,
    &tg_arch_smollm3,  &tg_arch_olmo2,      &tg_arch_granite, &tg_arch_phi3,      &tg_arch_phi,
    &tg_arch_stablelm, &tg_arch_starcoder2, &tg_arch_gemma,   &tg_arch_gemma2,    &tg_arch_gemma3_text,
    &tg_arch_gemma3,   &tg_arch_gpt_oss,
};

enum { N_ARCH = sizeof table / sizeof *table };

static const char *arch_name(const tg_arch *a, tg_container_kind kind)
{
    return kind == TG_CONTAINER_GGUF ? a->gguf_name : a->hf_name;
}

const tg_arch *tg_arch_find(tg_container_kind kind, const char *name)
{
    for (int i = 0; i < N_ARCH; i++)
        if (arch_name(table[i], kind) && strcmp(arch_name(table[i], kind), name) == 0)
            return table[i];
    return NULL;
}

void tg_arch_list(tg_container_kind kind, char *text, size_t n)
{
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < N_ARCH && used < n; i++)
        if (arch_name(table[i], kind))
            used += (size_t)snprintf(text + used, n - used, "%s%s", used ? ", " : "", arch_name(table[i], kind));
}

/* ---- names -------------------------------------------------------------------------------------------- */

static const char *const gguf_names[TG_ROLE_COUNT] = {
    [TG_ROLE_TOK_EMBD] = "token_embd",
    [TG_ROLE_POS_EMBD] = "position_embd",
    [TG_ROLE_OUT_NORM] = "output_norm",
    [TG_ROLE_OUTPUT] = "output",
    [TG_ROLE_ROPE_FREQS] = "rope_freqs",
    [TG_ROLE_ROPE_SHORT] = "rope_factors_short",
    [TG_ROLE_ROPE_LONG] = "rope_factors_long",
    [TG_ROLE_ATTN_NORM] = "blk.%d.attn_norm",
    [TG_ROLE_QKV] = "blk.%d.attn_qkv",
    [TG_ROLE_Q] = "blk.%d.attn_q",
    [TG_ROLE_K] = "blk.%d.attn_k",
    [TG_ROLE_V] = "blk.%d.attn_v",
    [TG_ROLE_Q_NORM] = "blk.%d.attn_q_norm",
    [TG_ROLE_K_NORM] = "blk.%d.attn_k_norm",
    [TG_ROLE_SINK] = "blk.%d.attn_sinks",
    [TG_ROLE_ATTN_OUT] = "blk.%d.attn_output",
    [TG_ROLE_ATTN_POST_NORM] = "blk.%d.post_attention_norm",
    [TG_ROLE_FFN_NORM] = "blk.%d.ffn_norm",
    [TG_ROLE_FFN_GATE] = "blk.%d.ffn_gate",
    [TG_ROLE_FFN_UP] = "blk.%d.ffn_up",
    [TG_ROLE_GATE_UP] = "blk.%d.ffn_up",
    [TG_ROLE_FFN_DOWN] = "blk.%d.ffn_down",
    [TG_ROLE_FFN_POST_NORM] = "blk.%d.post_ffw_norm",
    [TG_ROLE_ROUTER] = "blk.%d.ffn_gate_inp",
    [TG_ROLE_GATE_EXPERTS] = "blk.%d.ffn_gate_exps",
    [TG_ROLE_UP_EXPERTS] = "blk.%d.ffn_up_exps",
    [TG_ROLE_DOWN_EXPERTS] = "blk.%d.ffn_down_exps",
};

/* An architecture has in a GGUF what it has in a folder, unless it says otherwise; the factors of rotation
 * stand there alone. */
const char *tg_arch_role_name(const tg_arch *arch, tg_container_kind kind, tg_role role)
{
    const char *hf = NULL, *gguf = NULL;
    for (const tg_arch *a = arch; a; a = a->like) {
        hf = hf ? hf : a->hf[role];
        gguf = gguf ? gguf : a->gguf[role];
    }
    bool factors = role >= TG_ROLE_ROPE_FREQS && role <= TG_ROLE_ROPE_LONG && arch->pos == TG_POS_ROTARY;
    if (kind == TG_CONTAINER_GGUF)
        hf = gguf ? gguf : factors || (hf && *hf) ? gguf_names[role] : NULL;
    return hf && *hf ? hf : NULL;
}
