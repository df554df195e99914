/* write_config.c - a configuration as the metadata of a GGUF. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "convert/folder.h"

typedef struct out {
    tg_gguf_writer *w;
    const char *arch;
} out;

static const char *key_of(const out *o, const char *key, char buffer[128])
{
    snprintf(buffer, 128, "%s.%s", o->arch, key);
    return buffer;
}

/* Numbers that are 0 are not said. */
static void put_int(const out *o, const char *key, int value)
{
    char buffer[128];
    if (value > 0)
        tg_gguf_put_u32(o->w, key_of(o, key, buffer), (uint32_t)value);
}

static void put_real(const out *o, const char *key, double value)
{
    char buffer[128];
    if (value != 0)
        tg_gguf_put_f32(o->w, key_of(o, key, buffer), (float)value);
}

static void put_text(const out *o, const char *key, const char *text)
{
    char buffer[128];
    tg_gguf_put_text(o->w, key_of(o, key, buffer), text, strlen(text));
}

static void put_rope(const out *o, const tg_config *c)
{
    const tg_rope *r = &c->rope[0];
    put_int(o, "rope.dimension_count", r->n_rot);
    put_real(o, "rope.freq_base", r->theta);
    if (c->rope[1].n_rot > 0)
        put_real(o, "rope.freq_base_swa", c->rope[1].theta);
    if (r->scaling == TG_ROPE_LINEAR || r->scaling == TG_ROPE_YARN) {
        put_text(o, "rope.scaling.type", r->scaling == TG_ROPE_LINEAR ? "linear" : "yarn");
        put_real(o, "rope.scaling.factor", r->factor);
    }
    if (r->scaling == TG_ROPE_YARN || r->scaling == TG_ROPE_LONGROPE)
        put_int(o, "rope.scaling.original_context_length", (int)r->original_ctx);
    if (r->scaling == TG_ROPE_YARN) {
        put_real(o, "rope.scaling.yarn_beta_fast", r->beta_fast);
        put_real(o, "rope.scaling.yarn_beta_slow", r->beta_slow);
        /* said as a multiple of what the factor leads to */
        if (r->magnitude != 0)
            put_real(o, "rope.scaling.attn_factor", r->magnitude / (0.1 * log(r->factor) + 1.0));
    }
    if (r->scaling == TG_ROPE_LONGROPE) {
        float unused[TG_MAX_EMBD / 2];
        put_real(o, "rope.scaling.attn_factor",
                 (double)tg_rope_frequencies(r, (tg_rope_factors){0}, c->n_ctx_train, unused));
    }
}

void tg_write_config(tg_gguf_writer *w, const tg_arch *to, const tg_config *c)
{
    const out o = {w, to->gguf_name};
    const bool rms = to->norm == TG_NORM_RMS;
    tg_gguf_put_text(w, "general.architecture", to->gguf_name, strlen(to->gguf_name));
    put_int(&o, "block_count", c->n_layer);
    put_int(&o, "context_length", c->n_ctx_train);
    put_int(&o, "embedding_length", c->n_embd);
    put_int(&o, "feed_forward_length", c->n_ff);
    put_int(&o, "attention.head_count", c->n_head);
    put_int(&o, "attention.head_count_kv", c->n_head_kv);
    put_int(&o, "attention.key_length", c->head_dim);
    put_int(&o, "attention.value_length", c->head_dim);
    put_real(&o, rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon", (double)c->norm_eps);
    put_int(&o, "attention.sliding_window", c->window);
    put_real(&o, "attn_logit_softcapping", (double)c->soft_cap);
    put_real(&o, "final_logit_softcapping", (double)c->logit_cap);
    put_int(&o, "vocab_size", c->n_vocab);
    if (c->n_expert > 0) {
        put_int(&o, "expert_count", c->n_expert);
        put_int(&o, "expert_used_count", c->n_expert_used);
        put_int(&o, "expert_feed_forward_length", c->n_ff_expert);
    }
    if (to->pos == TG_POS_ROTARY)
        put_rope(&o, c);
    if (to->pos == TG_POS_ROTARY && !rms) {
        char buffer[128];
        tg_gguf_put_bool(w, key_of(&o, "use_parallel_residual", buffer), c->parallel);
    }
    if (c->residual_scale != 0 || c->logit_scale != 0) { /* else the embedding's is the architecture's own */
        put_real(&o, "embedding_scale", (double)c->embd_scale);
        put_real(&o, "residual_scale", (double)c->residual_scale);
        put_real(&o, "attention.scale", (double)c->attn_scale);
        put_real(&o, "logit_scale", c->logit_scale != 0 ? 1.0 / (double)c->logit_scale : 0);
    }
}
