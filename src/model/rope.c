/* rope.c - rotary positions: how the two containers say what they are, and the frequencies that follow. */
#include "model/rope.h"

#include <math.h>
#include <string.h>

#include "model/arch.h"

#define PI 3.14159265358979323846

/* ---- settings --------------------------------------------------------------------------------------- */

static const char *const scalings[] = {"default", "none", "linear", "dynamic", "llama3", "yarn", "longrope", "su"};
static const tg_rope_scaling scaling_of[] = {TG_ROPE_NONE,   TG_ROPE_NONE, TG_ROPE_LINEAR,   TG_ROPE_DYNAMIC,
                                             TG_ROPE_LLAMA3, TG_ROPE_YARN, TG_ROPE_LONGROPE, TG_ROPE_LONGROPE};
enum { N_SCALINGS = sizeof scalings / sizeof *scalings };

/* The factor of YaRN's paper by which attention gets sharper. */
static double yarn_magnitude(double factor, double by)
{
    return factor <= 1.0 ? 1.0 : 0.1 * by * log(factor) + 1.0;
}

static bool read_yarn(tg_config_reader *r, tg_rope *rope)
{
    double mscale = 0, all_dim = 0;
    rope->beta_fast = 32;
    rope->beta_slow = 1;
    rope->whole = true;
    if (!tg_read_real(r, "beta_fast", false, &rope->beta_fast) ||
        !tg_read_real(r, "beta_slow", false, &rope->beta_slow) ||
        !tg_read_bool(r, "truncate", &rope->whole) || !tg_read_real(r, "mscale", false, &mscale) ||
        !tg_read_real(r, "mscale_all_dim", false, &all_dim))
        return false;
    if (rope->magnitude == 0 && mscale != 0 && all_dim != 0)
        rope->magnitude = yarn_magnitude(rope->factor, mscale) / yarn_magnitude(rope->factor, all_dim);
    return true;
}

/* The part of a head that rotates; 0: nothing said. */
static bool set_part(tg_config_reader *r, const tg_config *c, double part, tg_rope *rope)
{
    if (part == 0)
        return true;
    if (!(part <= 1.0) || (int)(c->head_dim * part) < 2)
        return tg_refuse(r, "part of a head that rotates (found %g, allowed: at least 2 of %d dimensions, at most all)", part,
                         c->head_dim);
    rope->n_rot = (int)(c->head_dim * part);
    return true;
}

/* One group of a folder's settings: that of r->group. */
static bool read_group(tg_config_reader *r, const tg_config *c, double original_ctx, tg_rope *rope)
{
    int kind = -1;
    double part = 0;
    if (!tg_read_choice(r, "type", false, scalings, N_SCALINGS, &kind) ||
        !tg_read_choice(r, "rope_type", false, scalings, N_SCALINGS, &kind) ||
        !tg_read_real(r, "rope_theta", false, &rope->theta) ||
        !tg_read_real(r, "partial_rotary_factor", false, &part) || !set_part(r, c, part, rope))
        return false;
    if (kind < 0)
        return true; /* nothing said */
    rope->scaling = scaling_of[kind];
    const bool own_factor = rope->scaling == TG_ROPE_LINEAR || rope->scaling == TG_ROPE_DYNAMIC ||
                            rope->scaling == TG_ROPE_LLAMA3;
    const bool ramp = rope->scaling == TG_ROPE_LLAMA3;
    rope->original_ctx = c->n_ctx_train;
    if (!tg_read_real(r, "factor", own_factor, &rope->factor) ||
        !tg_read_real(r, "attention_factor", false, &rope->magnitude) ||
        !tg_read_real(r, "low_freq_factor", ramp, &rope->low_freq_factor) ||
        !tg_read_real(r, "high_freq_factor", ramp, &rope->high_freq_factor))
        return false;
    /* The dynamic scaling always measures against the longest context. */
    if (rope->scaling != TG_ROPE_DYNAMIC &&
        !tg_read_real(r, "original_max_position_embeddings", false, &rope->original_ctx))
        return false;
    if (original_ctx != 0 && rope->scaling != TG_ROPE_DYNAMIC)
        rope->original_ctx = original_ctx;
    if (ramp && r->missing[0] == 0 && !(rope->low_freq_factor < rope->high_freq_factor))
        return tg_refuse(r, "low_freq_factor is not below high_freq_factor (found %g and %g)", rope->low_freq_factor,
                         rope->high_freq_factor);
    if (rope->factor == 0)
        rope->factor = c->n_ctx_train / rope->original_ctx;
    return rope->scaling != TG_ROPE_YARN || read_yarn(r, rope);
}

static bool read_groups(tg_config_reader *r, const tg_config *c, double original_ctx, tg_rope *rope,
                        const char *const *groups)
{
    bool ok = true;
    for (; ok && *groups; groups++) {
        r->group = *groups;
        ok = read_group(r, c, original_ctx, rope);
        r->group = "";
    }
    return ok;
}

static bool read_hf(tg_config_reader *r, tg_config *c, const char *theta_key, const char *part_key)
{
    static const char *const full[] = {"rope_parameters.", "rope_scaling.", "rope_parameters.full_attention.",
                                       "rope_scaling.full_attention.", NULL};
    static const char *const local[] = {"rope_parameters.sliding_attention.", "rope_scaling.sliding_attention.", NULL};
    tg_rope *rope = &c->rope[0];
    double original_ctx = 0, part = r->arch->rotated, local_theta = c->rope[1].theta;
    if (!tg_read_real(r, theta_key, false, &rope->theta) || !tg_read_real(r, part_key, false, &part) ||
        !tg_read_real(r, "original_max_position_embeddings", false, &original_ctx) ||
        !tg_read_real(r, "rope_local_base_freq", false, &local_theta) || !set_part(r, c, part, rope))
        return false;
    c->rope[1] = *rope;
    c->rope[1].theta = local_theta;
    return read_groups(r, c, original_ctx, rope, full) && read_groups(r, c, original_ctx, &c->rope[1], local);
}

static bool read_gguf(tg_config_reader *r, tg_config *c)
{
    tg_rope *rope = &c->rope[0];
    int kind = -1;
    double local_theta = c->rope[1].theta, more = 0;
    rope->original_ctx = c->n_ctx_train;
    if (!tg_read_int(r, "rope.dimension_count", false, 1, TG_MAX_EMBD, &rope->n_rot) ||
        !tg_read_real(r, "rope.freq_base", false, &rope->theta) ||
        !tg_read_real(r, "rope.freq_base_swa", false, &local_theta) ||
        !tg_read_choice(r, "rope.scaling.type", false, scalings, N_SCALINGS, &kind) ||
        !tg_read_real(r, "rope.scale_linear", false, &rope->factor) || /* the older spelling */
        !tg_read_real(r, "rope.scaling.factor", false, &rope->factor) ||
        !tg_read_real(r, "rope.scaling.original_context_length", false, &rope->original_ctx) ||
        !tg_read_real(r, "rope.scaling.attn_factor", false, &more))
        return false;
    c->rope[1] = (tg_rope){.n_rot = rope->n_rot, .theta = local_theta};
    rope->scaling = kind >= 0 ? scaling_of[kind] : rope->factor > 0 ? TG_ROPE_LINEAR : TG_ROPE_NONE;
    if (rope->scaling == TG_ROPE_LINEAR && rope->factor == 0)
        rope->scaling = TG_ROPE_NONE;
    if (rope->scaling == TG_ROPE_DYNAMIC || rope->scaling == TG_ROPE_LLAMA3)
        return tg_refuse(r, "rope.scaling.type is not supported in a GGUF (found \"%s\")", scalings[kind]);
    rope->magnitude = more;
    if (rope->scaling != TG_ROPE_YARN)
        return true;
    rope->beta_fast = 32;
    rope->beta_slow = 1;
    rope->whole = true;
    rope->magnitude = yarn_magnitude(rope->factor, 1.0) * (more != 0 ? more : 1.0);
    return tg_read_real(r, "rope.scaling.factor", true, &rope->factor) &&
           tg_read_real(r, "rope.scaling.yarn_beta_fast", false, &rope->beta_fast) &&
           tg_read_real(r, "rope.scaling.yarn_beta_slow", false, &rope->beta_slow);
}

bool tg_read_rope(tg_config_reader *r, tg_config *c)
{
    const bool gguf = r->kind == TG_CONTAINER_GGUF;
    const double local_theta = c->rope[1].theta;
    if (c->rope[0].theta == 0)
        c->rope[0].theta = 10000.0;
    bool ok = gguf ? read_gguf(r, c) : read_hf(r, c, tg_arch_key(r, TG_KEY_THETA), tg_arch_key(r, TG_KEY_ROTATED));
    for (int i = 0; ok && i < 2; i++) {
        tg_rope *rope = &c->rope[i];
        rope->n_rot = rope->n_rot > 0 ? rope->n_rot : c->head_dim;
        if (gguf)
            rope->pairs = r->arch->permuted ? TG_ROPE_NEIGHBOURS : TG_ROPE_HALVES;
    }
    if (ok && local_theta == 0) /* all layers rotate alike */
        c->rope[1] = (tg_rope){0};
    return ok;
}

/* ---- frequencies -------------------------------------------------------------------------------------- */

/* Waves longer than the original context slow down by the factor, short ones stay; between them a linear ramp
 * in the number of turns. */
static float llama3(const tg_rope *r, float f)
{
    double turns = r->original_ctx * (double)f / (2.0 * PI);
    double smooth = (turns - r->low_freq_factor) / (r->high_freq_factor - r->low_freq_factor);
    smooth = smooth < 0.0 ? 0.0 : smooth > 1.0 ? 1.0 : smooth;
    return (float)((1.0 - smooth) * (double)f / r->factor + smooth * (double)f);
}

/* The dimension that turns so many times in the original context. */
static double dimension_of(const tg_rope *r, double turns)
{
    return r->n_rot * log(r->original_ctx / (turns * 2.0 * PI)) / (2.0 * log(r->theta));
}

static float yarn(const tg_rope *r, int i, float pos_freq)
{
    double low = dimension_of(r, r->beta_fast), high = dimension_of(r, r->beta_slow);
    low = fmax(r->whole ? floor(low) : low, 0.0);
    high = fmin(r->whole ? ceil(high) : high, r->n_rot - 1.0);
    high += low == high ? 0.001 : 0.0;
    float ramp = ((float)i - (float)low) / (float)(high - low);
    float keep = 1.0f - (ramp < 0.0f ? 0.0f : ramp > 1.0f ? 1.0f : ramp);
    return 1.0f / ((float)r->factor * pos_freq) * (1.0f - keep) + 1.0f / pos_freq * keep;
}

static double theta_of(const tg_rope *r, int n_ctx)
{
    double longer = n_ctx / r->original_ctx, d = r->n_rot;
    if (r->scaling != TG_ROPE_DYNAMIC || longer <= 1.0 || r->n_rot == 2)
        return r->theta;
    return r->theta * pow(r->factor * longer - (r->factor - 1.0), d / (d - 2.0));
}

static float magnitude_of(const tg_rope *r)
{
    if (r->magnitude != 0)
        return (float)r->magnitude;
    if (r->scaling == TG_ROPE_YARN)
        return (float)yarn_magnitude(r->factor, 1.0);
    if (r->scaling == TG_ROPE_LONGROPE && r->factor > 1.0)
        return (float)sqrt(1.0 + log(r->factor) / log(r->original_ctx));
    return 1.0f;
}

float tg_rope_frequencies(const tg_rope *r, tg_rope_factors factors, int n_ctx, float *inv_freq)
{
    const float *own = n_ctx > r->original_ctx ? factors.many : factors.few;
    const double theta = theta_of(r, n_ctx);
    for (int i = 0; i < r->n_rot / 2; i++) {
        float exponent = (float)((double)(float)(2 * i) / (double)r->n_rot);
        double pos_freq = pow(theta, (double)exponent);
        float f = (float)(1.0 / pos_freq);
        if (factors.all)
            f /= factors.all[i];
        if (r->scaling == TG_ROPE_LINEAR)
            f /= (float)r->factor;
        if (r->scaling == TG_ROPE_LLAMA3)
            f = llama3(r, f);
        if (r->scaling == TG_ROPE_YARN)
            f = yarn(r, i, (float)pos_freq);
        if (own)
            f = 1.0f / (own[i] * (float)pos_freq);
        inv_freq[i] = f;
    }
    return magnitude_of(r);
}
