/* fused.h - panels of 16 weight rows against few rows of activations, and unpacked for many.
 *
 * The body of body_fused.c and body_fused_interleaved.c, which define TABLE, their table's name, STRIDE, the bytes
 * from a row to the next where the caller says row_bytes, and NEARER (tg_fetch_twice). A function is made for each
 * type and number of rows up to four, so that each has the registers to itself. With more, the products of a block
 * take longer than to take it from memory, and the processor does both at once. */
#include "kernel/take.h"

/* n times 32 columns, a constant: 1 or as many as whole_of says. */
VEC_MANY void unpack_some(const int type, const int n, rows at, tg_panel_block *out)
{
    const enum form form = shape_of[type].form;
    const int group = n < group_of(type, at) ? n : group_of(type, at);
    kept k;
    take_head(type, at, &k);
    for (int g = 0; g < n / group; g++)
        VEC_UNROLL for (int i = 0; i < group; i++, out++) {
            taken w;
            take(type, g, i, group, at, &k, &w);
            for (int j = 0; j < 8; j++)
                vi_store(out->code[j], w.code[j]);
            for (int h = 0; h <= has_halves(form); h++) {
                vf_store(out->scale[h], w.scale[h]);
                if (has_min(form))
                    vf_store(out->min[h], w.min[h]);
            }
        }
}

VEC_MANY void unpack(const int type, rows at, int n_blocks, tg_panel_block *out)
{
    const int n = whole_of(type, at);
    for (; n_blocks >= n; n_blocks -= n, out += n) {
        unpack_some(type, n, at, out);
        at = behind(at, bytes_of(type, n, 1));
    }
    if (n == 4)
        for (; n_blocks; n_blocks--, out++) {
            unpack_some(type, 1, at, out);
            at = behind(at, bytes_of(type, 1, 1));
        }
}

/* The same against R rows of activations, a constant but for many. */
VEC_MANY void fused_some(const int type, const int R, const int n, rows at, const uint8_t *ahead, const tg_q8 *x,
                         int n_blocks, vf *acc)
{
    const enum form form = shape_of[type].form;
    const int group = n < group_of(type, at) ? n : group_of(type, at);
    kept k;
    take_head(type, at, &k);
    for (int g = 0; g < n / group; g++)
        VEC_UNROLL for (int i = 0; i < group; i++, x++) {
            taken w;
            tg_fetch_twice(ahead + bytes_of(type, g * group + i, TG_PANEL), bytes_of(type, 1, TG_PANEL), NEARER);
            take(type, g, i, group, at, &k, &w);
            for (int r = 0; r < R; r++) {
                const tg_q8 *a = x + (size_t)r * (size_t)n_blocks;
                /* two chains, since one of eight would wait for itself; integers add in any order */
                vi sum[2] = {without_offset(form, a, 0),
                             has_halves(form) ? without_offset(form, a, 1) : vi_set1(0)};
                for (int h = 0; h < 2; h++)
                    sum[h] = vi_dot_all(sum[h], w.code + 4 * h, a->q + 16 * h, 4, largest(form));
                if (!has_halves(form))
                    sum[0] = vi_add(sum[0], sum[1]);
                for (int h = 0; h <= has_halves(form); h++)
                    acc[r] = add_block(form, acc[r], sum[h], w.scale[h], w.min[h], a, h);
            }
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
#define FUSED_ALL(type, name, columns, group, form)                                                                  \
    FUSED(type, 1, 1) FUSED(type, 2, 2) FUSED(type, 3, 3) FUSED(type, 4, 4) FUSED(type, n, n)
#define TYPE(type, name, columns, group, form)                                                                       \
    static void fused_##type(const uint8_t *panel, size_t row_bytes, const uint8_t *ahead, const tg_q8 *x, int n,    \
                             int n_blocks, const tg_product *p, int first_out, int n_valid)                          \
    {                                                                                                                \
        (n == 1   ? fused_##type##_1                                                                                 \
         : n == 2 ? fused_##type##_2                                                                                 \
         : n == 3 ? fused_##type##_3                                                                                 \
         : n == 4 ? fused_##type##_4                                                                                 \
                  : fused_##type##_n)(panel, row_bytes, ahead, x, n, n_blocks, p, first_out, n_valid);               \
    }                                                                                                                \
    static void unpack_##type(const uint8_t *panel, size_t row_bytes, int n_blocks, tg_panel_block *out)             \
    {                                                                                                                \
        unpack(TG_##type, (rows){panel, STRIDE(row_bytes)}, n_blocks, out);                                          \
    }
EACH_TYPE(FUSED_ALL)
EACH_TYPE(TYPE)

/* By measurement. AVX2 has too few registers for the codes of a block, and must take those of 8 bits apart for each
 * row: unpacked, they serve two rows and two panels at once. */
#define ROWS_ROW(type, name, columns, group, form)                                                                   \
    [TG_##type] = (TG_ISA_LEVEL == TG_ISA_avx512 ? 64 : form == LESS128 ? 4 : 8),
#define FUSED_ROW(type, name, columns, group, form)  [TG_##type] = fused_##type,
#define UNPACK_ROW(type, name, columns, group, form) [TG_##type] = unpack_##type,

extern const tg_fused_kernels TG_ISA_SYMBOL(TABLE);
const tg_fused_kernels TG_ISA_SYMBOL(TABLE) = {
    .rows = {EACH_TYPE(ROWS_ROW)}, .fused = {EACH_TYPE(FUSED_ROW)}, .unpack = {EACH_TYPE(UNPACK_ROW)}};
