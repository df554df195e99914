/* fused.h - panels of 16 weight rows, one in each lane, so that no sum across lanes is ever needed, against rows of
 * activations: each block meets them all as it is taken from memory. One row or many are the same arithmetic
 * (form.h).
 *
 * The body of body_fused.c and body_fused_interleaved.c, which define TABLE, their table's name, and STRIDE, the
 * bytes from a row to the next where the caller says row_bytes. A function is made for each type and number of rows
 * up to four, so that each has the registers to itself. With more, the products of a block take longer than to take
 * it, and the processor does both at once. */
#include "kernel/take.h"

/* Rows of activations that meet a block together. AVX2 has registers for no more than their sums, so the codes are in
 * memory, and are loaded once for both. */
enum { TOGETHER = TG_ISA_LEVEL == TG_ISA_avx2 ? 2 : 1 };

/* R rows of activations, a constant up to TOGETHER, against a block of each of 16 weight rows. */
VEC void meet(const int type, const int R, const taken *w, const tg_q8 *x, int n_blocks, vf *acc)
{
    const enum form form = shape_of[type].form;
    /* A dot-product instruction's result is long in coming: two chains of four, for one of eight would wait for
     * itself. Integers add in any order. */
    const int chain = has_halves(form) || TG_ISA_LEVEL == TG_ISA_avx512 ? 4 : 8;
    vi sum[2][TOGETHER];
    for (int h = 0; h < 8 / chain; h++) {
        for (int r = 0; r < R; r++)
            sum[h][r] =
                h == 0 || has_halves(form) ? without_offset(form, x + (size_t)r * (size_t)n_blocks, h) : vi_set1(0);
        vi_dot_rows(sum[h], R, w->code + h * chain, x->q + 4 * h * chain, (size_t)n_blocks * sizeof *x, chain,
                    shape_of[type].most);
    }
    for (int r = 0; r < R; r++, x += n_blocks) {
        if (!has_halves(form) && chain == 4)
            sum[0][r] = vi_add(sum[0][r], sum[1][r]);
        for (int h = 0; h <= has_halves(form); h++)
            acc[r] = add_block(form, acc[r], sum[h][r], w->scale[h], w->min[h], x, h);
    }
}

/* n times 32 columns, a constant, against R rows of activations, a constant but for many. n is 1 or as many as
 * whole_of says. */
VEC_MANY void fused_some(const int type, const int R, const int n, rows at, const uint8_t *ahead, const tg_q8 *x,
                         int n_blocks, vf *acc)
{
    const int group = n < group_of(type, at) ? n : group_of(type, at);
    kept k;
    take_head(type, at, &k);
    for (int g = 0; g < n / group; g++)
        VEC_UNROLL for (int i = 0; i < group; i++, x++) {
            taken w;
            tg_fetch_twice(ahead + bytes_of(type, g * group + i, TG_PANEL), bytes_of(type, 1, TG_PANEL),
                           TG_FETCH_NEARER);
            take(type, g, i, group, at, &k, &w);
            int r = 0;
            for (; r + TOGETHER <= R; r += TOGETHER)
                meet(type, TOGETHER, &w, x + (size_t)r * (size_t)n_blocks, n_blocks, acc + r);
            for (; r < R; r++)
                meet(type, 1, &w, x + (size_t)r * (size_t)n_blocks, n_blocks, acc + r);
        }
}

/* R rows of activations against 16 weight rows. */
VEC_MANY void fused(const int type, const int R, rows at, const uint8_t *ahead, const tg_q8 *x, int n_blocks,
                    const tg_product *p, int first_out, int n_valid)
{
    const int n = whole_of(type, at);
    int b = 0;
    vf acc[TG_FUSED_ROWS];
    for (int r = 0; r < R; r++)
        acc[r] = vf_zero();
    for (; b + n <= n_blocks; b += n) {
        fused_some(type, R, n, at, ahead, x + b, n_blocks, acc);
        at = behind(at, bytes_of(type, n, 1));
        ahead += bytes_of(type, n, TG_PANEL);
    }
    if (n == 4)
        for (; b < n_blocks; b++) {
            fused_some(type, R, 1, at, ahead, x + b, n_blocks, acc);
            at = behind(at, bytes_of(type, 1, 1));
            ahead += bytes_of(type, 1, TG_PANEL);
        }
    for (int r = 0; r < R; r++)
        put(p, r, first_out, n_valid, acc[r]);
}

/* Sums of R rows, a constant, are in registers; those of n, a variable, in memory. */
#define FUSED(type, name, R)                                                                                         \
    static __attribute__((noinline)) void fused_##type##_##name(                                                     \
        const uint8_t *panel, size_t row_bytes, const uint8_t *ahead, const tg_q8 *x, int n, int n_blocks,           \
        const tg_product *p, int first_out, int n_valid)                                                             \
    {                                                                                                                \
        (void)n;                                                                                                     \
        fused(TG_##type, R, (rows){panel, STRIDE(row_bytes)}, ahead, x, n_blocks, p, first_out, n_valid);            \
    }
#define FUSED_ALL(type, name, columns, group, form, most)                                                            \
    FUSED(type, 1, 1) FUSED(type, 2, 2) FUSED(type, 3, 3) FUSED(type, 4, 4) FUSED(type, n, n)
#define TYPE(type, name, columns, group, form, most)                                                                 \
    static void fused_##type(const uint8_t *panel, size_t row_bytes, const uint8_t *ahead, const tg_q8 *x, int n,    \
                             int n_blocks, const tg_product *p, int first_out, int n_valid)                          \
    {                                                                                                                \
        (n == 1   ? fused_##type##_1                                                                                 \
         : n == 2 ? fused_##type##_2                                                                                 \
         : n == 3 ? fused_##type##_3                                                                                 \
         : n == 4 ? fused_##type##_4                                                                                 \
                  : fused_##type##_n)(panel, row_bytes, ahead, x, n, n_blocks, p, first_out, n_valid);               \
    }
EACH_TYPE(FUSED_ALL)
EACH_TYPE(TYPE)

#define FUSED_ROW(type, name, columns, group, form, most) [TG_##type] = fused_##type,

extern const tg_fused_kernels TG_ISA_SYMBOL(TABLE);
const tg_fused_kernels TG_ISA_SYMBOL(TABLE) = {.fused = {EACH_TYPE(FUSED_ROW)}};
