/* matmul.h - matrices of weights, and their products with rows of activations.
 *
 *     out[r][o] = sum over k of W[o][k] * x[r][k]  (+ bias[o])
 *
 * Quantised weights: activations are quantised to signed 8-bit blocks of 32; inside a block the products
 * are exact integers, and one chain of fused multiply-adds runs over the blocks in ascending order, so
 * that an output depends on its own row alone, bit for bit. In `precise` mode, and for float weights,
 * weights are decoded to float32; the sum then runs in 16 lanes (k mod 16) with a fixed tree at the end.
 * Float weights and 64 rows or more may go to BLAS, which promises tolerance, not bits. */
#ifndef TG_KERNEL_MATMUL_H
#define TG_KERNEL_MATMUL_H

#include "kernel/dtype.h"
#include "kernel/team.h"

/* [n_out][n_in], rows of row_bytes, 16 of which may be interleaved (interleave.h); data is NULL for a role that
 * the model does not have. */
typedef struct tg_matrix {
    const uint8_t *data;
    const tg_dtype *type;
    int n_out, n_in;
    size_t row_bytes;
    bool interleaved;
    const float *bias;    /* [n_out] or NULL */
} tg_matrix;

/* 32 activations: x[i] is about d * q[i]. */
typedef struct tg_q8 {
    int8_t q[32];
    float d;         /* largest |x| / 127 */
    float d_sum;     /* d * sum of q */
    int32_t less8;   /* -8 * sum of q: what codes that are 8 too large bring in too much */
    int32_t less128; /* -128 * sum of q */
    int32_t less32[2]; /* of q[0 .. 15] and q[16 .. 31] */
} tg_q8;

/* Rows of activations in both forms; `q` is made by tg_quantize_rows where a product wants it. */
typedef struct tg_rows {
    float *f; /* [n][n_in] */
    tg_q8 *q; /* [n][n_in / 32] */
    int n, n_in;
} tg_rows;

typedef struct tg_product {
    const tg_matrix *w;
    float *out; /* [n][out_stride] */
    size_t out_stride;
    bool add; /* out += instead of out = */
} tg_product;

typedef struct tg_matmul_mode {
    bool precise; /* float32 activations on quantised weights */
    bool blas;
} tg_matmul_mode;

/* Does the product of w use x.q? */
bool tg_matmul_wants_q8(const tg_matrix *w, tg_matmul_mode mode);

/* One row, n a multiple of 32. Non-finite values give a non-finite d. */
void tg_quantize_row(const float *x, int n, tg_q8 *out);

/* Called for a part of the outputs of all products of a job, as soon as it is there: outputs first ..
 * first + n - 1 of the batch rows row .. row + n_rows - 1. `first` is a multiple of 32, and so is n but at the
 * end. */
typedef void (*tg_matmul_then)(void *arg, int row, int n_rows, int first, int n);

enum { TG_PRODUCTS_MAX = 3 };

/* Products with the same rows of activations, evaluated together. */
typedef struct tg_matmul_job {
    tg_rows x;
    tg_product product[TG_PRODUCTS_MAX];
    int n_products;
    tg_matmul_then then; /* NULL, or the products have the same n_out and are cut in the same parts */
    void *arg;
} tg_matmul_job;

/* Shares a job among the team; meets at no barrier itself, so there must be one before and one behind it.
 * `next`, unless NULL, is the job that comes next: the start of its weights is fetched while the end of these
 * is worked on. */
void tg_matmul(const tg_worker *w, const tg_matmul_job *job, tg_matmul_mode mode, const tg_matmul_job *next);
/* For a job behind something else than a job: the start of its weights is fetched while the thread waits for others. */
void tg_matmul_fetch(const tg_worker *w, const tg_matmul_job *next, tg_matmul_mode mode);

/* Row `i` of a matrix as float32 (embedding look-up). */
void tg_matrix_row(const tg_matrix *w, int i, float *out);

/* Scratch that a worker needs for products with n_in up to the given. */
size_t tg_matmul_scratch_bytes(int n_in_max);

/* ---- the tables that each instruction-set level fills (body_matmul.c) ------------------------- */

enum {
    TG_PANEL = 16,          /* weight rows that are worked on together, one in each lane */
    TG_FUSED_ROWS = 128,    /* rows of activations that meet a panel together, at most */
    TG_FETCH_NEARER = 3072, /* for tg_fetch_twice: `ahead` is farther */
};

/* A table for weights as they lie in files, and one for interleaved ones, where row_bytes says nothing. */
typedef struct tg_fused_kernels {
    /* out[r][first_out .. + n_valid) for the n rows of activations at x, each n_blocks blocks, and a panel of 16
     * weight rows, row_bytes apart; as much memory as these take is fetched from `ahead` on meanwhile.
     * n is at most TG_FUSED_ROWS. NULL for float types. */
    void (*fused[TG_TYPE_COUNT])(const uint8_t *panel, size_t row_bytes, const uint8_t *ahead, const tg_q8 *x, int n,
                                 int n_blocks, const tg_product *p, int first_out, int n_valid);
} tg_fused_kernels;

typedef struct tg_matmul_kernels {
    /* out[r][o] for n_w (at most 4) weight rows and n rows of activations, all float32. For every 16 columns
     * `step` bytes are fetched from `ahead` on. */
    void (*dot)(const float *const w[4], int n_w, const uint8_t *ahead, size_t step, const float *x, int n,
                int n_in, const tg_product *p, int first_out);
    void (*quantize)(const float *x, int n, tg_q8 *out);
} tg_matmul_kernels;

/* As tg_dtype's, faster (body_decode.c); NULL where that one serves. */
typedef struct tg_decoders {
    void (*to_f32[TG_TYPE_COUNT])(const void *row, float *out, size_t n);
} tg_decoders;

#endif
