/* form.h - what products of blocks need to know of a type, and the arithmetic of one block, which is the same
 * whichever way weights come into registers. */
#ifndef TG_KERNEL_FORM_H
#define TG_KERNEL_FORM_H

#include "kernel/blocks.h"
#include "kernel/matmul.h"
#include "kernel/vec.h"

/* What products need to know of a type. */
enum form {
    LESS8, /* codes that are 8 too large, and so on; no minimum */
    LESS16,
    LESS128,
    LESS32_HALVES, /* scales for 16 columns each */
    MIN,           /* no offset, but a minimum */
    MIN_HALVES,
};

VEC bool has_halves(const enum form form)
{
    return form == LESS32_HALVES || form == MIN_HALVES;
}

VEC bool has_min(const enum form form)
{
    return form == MIN || form == MIN_HALVES;
}

/* Type, its block, the columns of that, how many times 32 columns are a group (taken together, so that nothing
 * is loaded twice), form, the largest code. */
#define EACH_TYPE(X)                                                                                                 \
    X(Q8_0, q8_0, 32, 1, LESS128, 255)                                                                               \
    X(Q4_0, q4_0, 32, 1, LESS8, 15)                                                                                  \
    X(Q4_1, q4_1, 32, 4, MIN, 15)                                                                                    \
    X(Q5_0, q5_0, 32, 1, LESS16, 31)                                                                                 \
    X(Q5_1, q5_1, 32, 1, MIN, 31)                                                                                    \
    X(Q2_K, q2_k, 256, 4, MIN_HALVES, 3)                                                                             \
    X(Q3_K, q3_k, 256, 4, LESS32_HALVES, 63)                                                                         \
    X(Q4_K, q4_k, 256, 2, MIN, 15)                                                                                   \
    X(Q5_K, q5_k, 256, 2, MIN, 31)                                                                                   \
    X(Q6_K, q6_k, 256, 4, LESS32_HALVES, 63)                                                                         \
    X(IQ4_NL, iq4_nl, 32, 1, LESS128, 255)                                                                           \
    X(IQ4_XS, iq4_xs, 256, 1, LESS128, 255)                                                                          \
    X(MXFP4, mxfp4, 32, 1, LESS16, 31)

static const struct {
    size_t bytes;
    int columns, group;
    enum form form;
    int most;
} shape_of[TG_TYPE_COUNT] = {
#define SHAPE(type, name, columns, group, form, most)                                                                \
    [TG_##type] = {sizeof(tg_block_##name), columns, group, form, most},
    EACH_TYPE(SHAPE)
#undef SHAPE
};

VEC void put(const tg_product *p, int r, int first_out, int n_valid, vf v)
{
    float *out = p->out + (size_t)r * p->out_stride + first_out;
    if (n_valid >= 16) {
        if (p->w->bias)
            v = vf_add(v, vf_load(p->w->bias + first_out));
        vf_store(out, p->add ? vf_add(vf_load(out), v) : v);
    } else if (n_valid > 0) {
        if (p->w->bias)
            v = vf_add(v, vf_load_n(p->w->bias + first_out, n_valid));
        vf_store_n(out, p->add ? vf_add(vf_load_n(out, n_valid), v) : v, n_valid);
    }
}

/* What the offset of the codes brings in too much: half h of the columns, or all. */
VEC vi without_offset(const enum form form, const tg_q8 *a, const int h)
{
    switch (form) {
    case LESS8:
        return vi_all(&a->less8);
    case LESS16:
        return vi_shl(vi_all(&a->less8), 1);
    case LESS128:
        return vi_all(&a->less128);
    case LESS32_HALVES:
        return vi_all(&a->less32[h]);
    default:
        return vi_set1(0);
    }
}

/* The sum of the activations that the minimum of half h, or of all, meets. */
VEC vf sum_of(const enum form form, const tg_q8 *a, const int h)
{
    return vf_set1(form == MIN ? a->d_sum : a->d * (float)a->less32[h] * -0.03125f);
}

/* acc = fma(scale * d, integer sum, acc), then acc = fma(min, d * sum of q, acc): the one chain over the
 * blocks that all products have. */
VEC vf add_block(const enum form form, vf acc, vi sum, vf scale, vf min, const tg_q8 *a, const int h)
{
    acc = vf_fma(vf_mul(scale, vf_set1(a->d)), vf_from_int(sum), acc);
    return has_min(form) ? vf_fma(min, sum_of(form, a, h), acc) : acc;
}

#endif
