/* Products against float64 over the decoded weights, and that a row's bits are its own. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernel/blas.h"
#include "kernel/interleave.h"
#include "kernel/matmul.h"
#include "support/blocks.h"
#include "support/fnv.h"
#include "support/levels.h"

/* Random rows of any type: blocks of random codes under scales that make numbers of order 0.1. */
static uint8_t *random_weights(const tg_dtype *t, int n_out, int n_in)
{
    size_t n = (size_t)n_out * (size_t)(n_in / t->block);
    uint8_t *w = malloc(n * (size_t)t->block_bytes), *b = w;
    random_blocks(t, w, n);
    for (size_t i = 0; i < n; i++, b += t->block_bytes) {
        float x = rand_normal(), y = rand_normal(), small = t->block == 256 ? 0.001f : 0.01f;
        uint16_t half = tg_f32_to_f16(0.01f * x);
        if (t->type == TG_F32)
            memcpy(b, &x, 4);
        else if (t->type == TG_BF16)
            memcpy(b, (uint8_t *)&x + 2, 2);
        else if (t->type == TG_F16)
            memcpy(b, &half, 2);
        else
            set_scales(t, b, x * small, y * small * 5);
    }
    return w;
}

/* The same matrix, laid anew (free .data); of floats a copy. */
static tg_matrix interleaved(const tg_matrix *m)
{
    const size_t bytes = tg_interleaved_bytes(m), plain = (size_t)m->n_out * m->row_bytes;
    tg_matrix out = *m;
    uint8_t *data = malloc(bytes ? bytes : plain);
    if (bytes == 0)
        memcpy(data, m->data, plain);
    for (size_t i = 0; i * TG_PANEL * m->row_bytes < bytes; i++)
        tg_interleave_panel(m, i, data);
    out.data = data;
    out.interleaved = bytes > 0;
    assert_int_equal(tg_interleaved_bytes(&out), 0);
    return out;
}

typedef struct job {
    const tg_rows *x;
    const tg_product *p;
    int n;
    tg_matmul_mode mode;
} job;

static void program(const tg_worker *w, void *arg)
{
    const job *j = arg;
    tg_matmul_job m = {.x = *j->x, .n_products = j->n};
    memcpy(m.product, j->p, (size_t)j->n * sizeof *j->p);
    tg_matmul(w, &m, j->mode, NULL);
}

static void run(const tg_rows *x, const tg_product *p, int n, tg_matmul_mode mode, int n_threads)
{
    tg_team *team;
    assert_int_equal(tg_team_create(&team, n_threads, tg_matmul_scratch_bytes(x->n_in), NULL), TG_OK);
    job j = {x, p, n, mode};
    tg_team_run(team, program, &j);
    tg_team_free(team);
}

static tg_rows random_rows(int n, int n_in)
{
    tg_rows x = {.n = n, .n_in = n_in};
    x.f = malloc((size_t)n * (size_t)n_in * sizeof *x.f);
    x.q = malloc((size_t)n * (size_t)(n_in / 32 + 1) * sizeof *x.q);
    for (int i = 0; i < n * n_in; i++)
        x.f[i] = rand_normal();
    if (n_in % 32 == 0)
        for (int r = 0; r < n; r++)
            tg_quantize_row(x.f + (size_t)r * (size_t)n_in, n_in, x.q + (size_t)r * (size_t)(n_in / 32));
    return x;
}

static void free_rows(tg_rows *x)
{
    free(x->f);
    free(x->q);
}

/* The activation that the integer product sees, or the float one. */
static double activation(const tg_rows *x, int r, int k, bool q8)
{
    const tg_q8 *b = x->q + (size_t)r * (size_t)(x->n_in / 32) + k / 32;
    return q8 ? (double)b->d * b->q[k % 32] : (double)x->f[(size_t)r * (size_t)x->n_in + (size_t)k];
}

static void check(const tg_matrix *m, const tg_rows *x, const float *out, bool q8, double before)
{
    float *w = malloc((size_t)m->n_in * sizeof *w);
    for (int o = 0; o < m->n_out; o++) {
        m->type->to_f32(m->data + (size_t)o * m->row_bytes, w, (size_t)m->n_in);
        for (int r = 0; r < x->n; r++) {
            double sum = before, size = fabs(before) + 1e-6;
            if (m->bias)
                sum += (double)m->bias[o];
            for (int k = 0; k < m->n_in; k++) {
                double a = activation(x, r, k, q8);
                sum += (double)w[k] * a;
                size += fabs((double)w[k] * a);
            }
            /* a minimum meets the sum of a block apart from its codes: their sizes add up */
            double tolerance = (scales_at[m->type->type].m ? 64 : 8) * 0x1p-24 * size + 0x1p-22;
            double error = fabs(sum - (double)out[(size_t)r * (size_t)m->n_out + (size_t)o]);
            if (!(error <= tolerance))
                fail_msg("%s %d x %d, %d rows: row %d, output %d: off by %g of %g", m->type->name, m->n_out,
                         m->n_in, x->n, r, o, error, sum);
        }
    }
    free(w);
}

static void against_float64(void **state)
{
    (void)state;
    for (int i = 0; i < 18 * TG_TYPE_COUNT; i++) {
        rand_state = 1 + (uint64_t)i;
        const tg_dtype *t = &tg_dtypes[i % TG_TYPE_COUNT];
        int n_in = t->block == 1 ? rand_int(1, 200) : t->block * rand_int(1, 256 / t->block + 1);
        int n_out = i % 4 ? rand_int(1, 70) : rand_int(200, 400);
        int n = i % 9 == 8 ? rand_int(64, 150) : rand_int(1, 20);
        uint8_t *w = random_weights(t, n_out, n_in);
        float *bias = malloc((size_t)n_out * sizeof *bias);
        for (int o = 0; o < n_out; o++)
            bias[o] = rand_normal();
        tg_matrix m = {.data = w, .type = t, .n_out = n_out, .n_in = n_in,
                       .row_bytes = tg_dtype_row_bytes(t, (size_t)n_in), .bias = i & 1 ? bias : NULL};
        tg_rows x = random_rows(n, n_in);
        float *out = malloc((size_t)n * (size_t)n_out * sizeof *out);
        for (int mode = 0; mode < 4; mode++) {
            tg_matmul_mode flags = {.precise = mode & 1, .blas = mode & 2};
            bool add = i % 3 == 0;
            for (int k = 0; k < n * n_out; k++)
                out[k] = 1.5f;
            tg_product p = {&m, out, (size_t)n_out, add};
            run(&x, &p, 1, flags, 2);
            check(&m, &x, out, tg_matmul_wants_q8(&m, flags), add ? 1.5 : 0.0);
        }
        free(out);
        free_rows(&x);
        free(bias);
        free(w);
    }
}

/* Rows apart or together, in any company of products, by any number of threads. */
static void same_bits(void **state)
{
    (void)state;
    for (int type = 0; type < TG_TYPE_COUNT; type++) {
        rand_state = 77;
        const tg_dtype *t = &tg_dtypes[type];
        enum { N_IN = 768, N_OUT = 37, N = 81 };
        uint8_t *w = random_weights(t, N_OUT, N_IN);
        tg_matrix m = {.data = w, .type = t, .n_out = N_OUT, .n_in = N_IN,
                       .row_bytes = tg_dtype_row_bytes(t, N_IN)};
        tg_rows x = random_rows(N, N_IN);
        static float a[N * N_OUT], b[N * N_OUT], c[N * N_OUT];
        tg_matmul_mode mode = {.blas = false};
        tg_product one = {&m, a, N_OUT, false};
        run(&x, &one, 1, mode, 1);
        tg_rows some = {x.f, x.q, 33, N_IN}; /* too few for BLAS */
        run(&some, &(tg_product){&m, b, N_OUT, false}, 1, (tg_matmul_mode){.blas = true}, 2);
        assert_memory_equal(a, b, 33 * N_OUT * sizeof *a);
        for (int threads = 1; threads <= 5; threads++) {
            tg_product two[2] = {{&m, b, N_OUT, false}, {&m, c, N_OUT, false}};
            run(&x, two, 2, mode, threads);
            assert_memory_equal(a, b, sizeof a);
            assert_memory_equal(a, c, sizeof a);
        }
        for (int together = 1; together < N; together += 12) {
            memset(b, 0, sizeof b);
            for (int r = 0; r < N; r += together) {
                tg_rows rows = {x.f + r * N_IN, x.q + r * (N_IN / 32), N - r < together ? N - r : together, N_IN};
                tg_product p = {&m, b + r * N_OUT, N_OUT, false};
                run(&rows, &p, 1, mode, 2);
            }
            assert_memory_equal(a, b, sizeof a);
        }
        free_rows(&x);
        free(w);
    }
}

/* However a matrix lies, for few rows of activations and for many, as integers and as floats. */
static void interleaved_keeps_the_bits(void **state)
{
    (void)state;
    for (int i = 0; i < 12 * TG_TYPE_COUNT; i++) {
        rand_state = 1 + (uint64_t)i;
        const tg_dtype *t = &tg_dtypes[i % TG_TYPE_COUNT];
        const int n_in = t->block == 1 ? rand_int(1, 200) : t->block * rand_int(1, t->block == 32 ? 70 : 9);
        const int n_out = rand_int(1, 70), n = i % 3 == 2 ? rand_int(5, i % 2 ? 90 : 17) : rand_int(1, 4);
        uint8_t *w = random_weights(t, n_out, n_in);
        tg_matrix m = {.data = w, .type = t, .n_out = n_out, .n_in = n_in,
                       .row_bytes = tg_dtype_row_bytes(t, (size_t)n_in)};
        tg_matrix anew = interleaved(&m);
        tg_rows x = random_rows(n, n_in);
        const size_t n_bytes = (size_t)n * (size_t)n_out * sizeof(float);
        float *a = malloc(n_bytes), *b = malloc(n_bytes);
        for (int mode = 0; mode < 4; mode++) {
            tg_product of_a = {&m, a, (size_t)n_out, false}, of_b = {&anew, b, (size_t)n_out, false};
            run(&x, &of_a, 1, (tg_matmul_mode){.precise = mode & 1, .blas = mode & 2}, 1);
            run(&x, &of_b, 1, (tg_matmul_mode){.precise = mode & 1, .blas = mode & 2}, 2);
            assert_memory_equal(a, b, n_bytes);
        }
        float *row = malloc(2 * (size_t)n_in * sizeof *row);
        for (int o = 0; o < n_out; o++) {
            tg_matrix_row(&m, o, row);
            tg_matrix_row(&anew, o, row + n_in);
            assert_memory_equal(row, row + n_in, (size_t)n_in * sizeof *row);
        }
        free(row);
        free(b);
        free(a);
        free_rows(&x);
        free((void *)(uintptr_t)anew.data);
        free(w);
    }
}

enum { TOGETHER_OUT = 163, TOGETHER_ROWS_MAX = 300 };

typedef struct outputs {
    float *out[2];    /* of two products */
    float *sum;       /* what `add_up` made of them */
    atomic_int calls; /* outputs that it was called for */
} outputs;

/* What it is given must be there, and nobody else's. */
static void add_up(void *arg, int row, int n_rows, int first, int n)
{
    outputs *o = arg;
    if (first % 32 != 0)
        atomic_fetch_add(&o->calls, 1 << 24);
    for (int r = row; r < row + n_rows; r++)
        for (int i = first; i < first + n; i++) {
            size_t at = (size_t)r * TOGETHER_OUT + (size_t)i;
            o->sum[at] += o->out[0][at] + o->out[1][at];
            atomic_fetch_add(&o->calls, 1);
        }
}

typedef struct pair {
    const tg_matmul_job *job, *next;
} pair;

static void run_pair(const tg_worker *w, void *arg)
{
    const pair *p = arg;
    tg_matmul(w, p->job, (tg_matmul_mode){.blas = true}, p->next);
}

/* Two products cut in the same parts, and a function behind each: every output is handed on once, when both
 * are there; whatever comes next changes nothing. */
static void together(void **state)
{
    (void)state;
    static const int types[][2] = {{TG_Q4_1, TG_Q8_0}, {TG_Q4_0, TG_F32}, {TG_F16, TG_F32}};
    enum { N_SIZES = 12, N_IN_MOST = 4096 };
    static const int rows[N_SIZES] = {1, 3, 4, 5, 16, 17, 33, 57, 64, 65, 129, TOGETHER_ROWS_MAX};
    size_t n_bytes = (size_t)TOGETHER_ROWS_MAX * TOGETHER_OUT * sizeof(float);
    for (int i = 0; i < 3 * N_SIZES * 2; i++) {
        rand_state = 1 + (uint64_t)i;
        int n = rows[i / 3 % N_SIZES], n_threads = i / (3 * N_SIZES) ? 3 : 1;
        const int n_in = n == 57 || n == TOGETHER_ROWS_MAX ? N_IN_MOST : 96; /* so much that rows may be cut */
        tg_matrix m[2];
        for (int k = 0; k < 2; k++) {
            const tg_dtype *t = &tg_dtypes[types[i % 3][k]];
            m[k] = (tg_matrix){.data = random_weights(t, TOGETHER_OUT, n_in),
                               .type = t,
                               .n_out = TOGETHER_OUT,
                               .n_in = n_in,
                               .row_bytes = tg_dtype_row_bytes(t, (size_t)n_in)};
        }
        tg_rows x = random_rows(n, n_in);
        float *alone[2] = {malloc(n_bytes), malloc(n_bytes)};
        outputs o = {.out = {malloc(n_bytes), malloc(n_bytes)}, .sum = calloc(1, n_bytes)};
        tg_matmul_job both = {.x = x, .n_products = 2, .then = add_up, .arg = &o}, last = {.x = x, .n_products = 1};
        for (int k = 0; k < 2; k++) {
            both.product[k] = (tg_product){&m[k], o.out[k], TOGETHER_OUT, false};
            run(&x, &(tg_product){&m[k], alone[k], TOGETHER_OUT, false}, 1, (tg_matmul_mode){.blas = true}, 1);
        }
        last.product[0] = both.product[0];
        tg_team *team;
        assert_int_equal(tg_team_create(&team, n_threads, tg_matmul_scratch_bytes(n_in), NULL), TG_OK);
        tg_team_run(team, run_pair, &(pair){&both, i % 2 ? &last : &both});
        tg_team_free(team);
        assert_int_equal(atomic_load(&o.calls), n * TOGETHER_OUT);
        for (int at = 0; at < n * TOGETHER_OUT; at++) {
            /* BLAS promises a tolerance, and is left out where the other product is none of its */
            assert_true(fabsf(o.out[0][at] - alone[0][at]) <= 1e-4f * (1.0f + fabsf(alone[0][at])));
            assert_true(fabsf(o.out[1][at] - alone[1][at]) <= 1e-4f * (1.0f + fabsf(alone[1][at])));
            assert_true(o.sum[at] == o.out[0][at] + o.out[1][at]);
        }
        if (n < 64) {
            assert_memory_equal(o.out[0], alone[0], (size_t)n * TOGETHER_OUT * sizeof(float));
            assert_memory_equal(o.out[1], alone[1], (size_t)n * TOGETHER_OUT * sizeof(float));
        }
        for (int k = 0; k < 2; k++) {
            free(alone[k]);
            free(o.out[k]);
            free((void *)(uintptr_t)m[k].data);
        }
        free(o.sum);
        free_rows(&x);
    }
}

/* The largest and smallest codes with the largest activations: nothing saturates on the way. */
static void extremes(void **state)
{
    (void)state;
    enum { N_IN = 256, ROWS = 6, OUT = 16 };
    static uint8_t w[OUT * N_IN * 2];
    float out[ROWS * OUT];
    static const uint8_t fills[] = {0x00, 0x77, 0x7f, 0x80, 0xff};
    for (int i = 0; i < TG_TYPE_COUNT * 5 * 2; i++) {
        const tg_dtype *t = &tg_dtypes[i / 10];
        const size_t row = tg_dtype_row_bytes(t, N_IN);
        if (t->block == 1)
            continue;
        memset(w, fills[i % 5], row * OUT);
        for (size_t at = 0; at < row * OUT; at += (size_t)t->block_bytes)
            set_scales(t, w + at, 0.25f, 0.125f);
        tg_rows x = random_rows(ROWS, N_IN);
        for (int k = 0; k < ROWS * N_IN; k++)
            x.f[k] = i % 2 ? 1.0f : -1.0f;
        tg_quantize_row(x.f, ROWS * N_IN, x.q);
        assert_int_equal(x.q[0].q[5], i % 2 ? 127 : -127);
        tg_matrix m = {.data = w, .type = t, .n_out = OUT, .n_in = N_IN, .row_bytes = row};
        for (x.n = 1; x.n <= ROWS; x.n += 5) {
            tg_product p = {&m, out, OUT, false};
            run(&x, &p, 1, (tg_matmul_mode){0}, 1);
            check(&m, &x, out, true, 0.0);
        }
        free_rows(&x);
    }
}

static void quantising(void **state)
{
    (void)state;
    rand_state = 9;
    float x[32];
    tg_q8 q;
    for (int i = 0; i < 200; i++) {
        int32_t sum = 0;
        float amax = 0;
        for (int k = 0; k < 32; k++) {
            x[k] = rand_normal() * powf(10.0f, (float)(i % 20 - 10));
            amax = fabsf(x[k]) > amax ? fabsf(x[k]) : amax;
        }
        tg_quantize_row(x, 32, &q);
        assert_true(q.d == amax / 127.0f);
        for (int k = 0; k < 32; k++) {
            sum += q.q[k];
            assert_true(fabsf(x[k] - q.d * (float)q.q[k]) <= 0.5001f * q.d);
        }
        assert_int_equal(-8 * sum, q.less8);
        assert_int_equal(-128 * sum, q.less128);
        assert_true(q.d_sum == q.d * (float)sum);
    }
    memset(x, 0, sizeof x);
    tg_quantize_row(x, 32, &q);
    assert_true(q.d == 0.0f && q.less8 == 0 && q.less128 == 0);
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        x[i * 13] = bad[i];
        tg_quantize_row(x, 32, &q);
        assert_true(!isfinite(q.d));
        x[i * 13] = 0;
    }
}

static void rows_decode(void **state)
{
    (void)state;
    rand_state = 4;
    for (int type = 0; type < TG_TYPE_COUNT; type++) {
        const tg_dtype *t = &tg_dtypes[type];
        int n_in = t->block == 1 ? 77 : 3 * t->block;
        uint8_t *w = random_weights(t, 3, n_in);
        tg_matrix m = {.data = w, .type = t, .n_out = 3, .n_in = n_in,
                       .row_bytes = tg_dtype_row_bytes(t, (size_t)n_in)};
        float a[768], b[768];
        for (int i = 0; i < 3; i++) {
            t->to_f32(w + (size_t)i * m.row_bytes, a, (size_t)n_in);
            tg_matrix_row(&m, i, b);
            assert_memory_equal(a, b, (size_t)n_in * sizeof *a);
        }
        free(w);
    }
}

/* Weights that start or end where a page does, with nothing mapped beyond: every byte that is read is theirs. */
static void nothing_is_read_outside(void **state)
{
    (void)state;
    enum { ROWS = 5, OUT_MOST = 33 };
    static float out[ROWS * OUT_MOST];
    size_t page = (size_t)sysconf(_SC_PAGESIZE), room = 12 * page;
    uint8_t *map = mmap(NULL, room + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(map != MAP_FAILED);
    assert_int_equal(mprotect(map, page, PROT_NONE) | mprotect(map + page + room, page, PROT_NONE), 0);
    for (int type = 0; type < TG_TYPE_COUNT; type++) {
        const tg_dtype *t = &tg_dtypes[type];
        const int n_in = t->block == 1 ? 77 : t->block;
        tg_rows x = random_rows(ROWS, n_in);
        for (int n_out = 1; n_out <= OUT_MOST; n_out += 16) {
            size_t row = tg_dtype_row_bytes(t, (size_t)n_in), bytes = row * (size_t)n_out;
            uint8_t *w = random_weights(t, n_out, n_in);
            tg_matrix m = {.data = w, .type = t, .n_out = n_out, .n_in = n_in, .row_bytes = row};
            tg_matrix anew = interleaved(&m);
            for (int i = 0; i < 4; i++) {
                const tg_matrix *from = i / 2 ? &anew : &m;
                size_t n_bytes = anew.interleaved && i / 2 ? tg_interleaved_bytes(&m) : bytes;
                uint8_t *at = map + page + (i % 2 ? room - n_bytes : 0);
                assert_true(n_bytes <= room);
                memcpy(at, from->data, n_bytes);
                tg_matrix there = *from;
                there.data = at;
                for (x.n = 1; x.n <= ROWS; x.n += 4) {
                    tg_product p = {&there, out, (size_t)n_out, false};
                    run(&x, &p, 1, (tg_matmul_mode){0}, 1);
                    tg_matrix_row(&there, n_out - 1, x.f);
                }
            }
            free((void *)(uintptr_t)anew.data);
            free(w);
        }
        x.n = ROWS;
        free_rows(&x);
    }
    assert_int_equal(munmap(map, room + 2 * page), 0);
}

/* A line of bits for each type and mode, over 1 to 12 rows of activations and more. */
static void print_bits(void)
{
    enum { N_IN = 1280, N_OUT = 37, N = 81 };
    static float out[N * N_OUT];
    for (int type = 0; type < TG_TYPE_COUNT; type++) {
        rand_state = 1 + (uint64_t)type;
        const tg_dtype *t = &tg_dtypes[type];
        uint8_t *w = random_weights(t, N_OUT, N_IN);
        tg_matrix m = {.data = w, .type = t, .n_out = N_OUT, .n_in = N_IN,
                       .row_bytes = tg_dtype_row_bytes(t, N_IN)};
        tg_matrix anew = interleaved(&m);
        for (int i = 0; i < 4; i++) {
            uint64_t h = FNV_START;
            tg_rows x = random_rows(N, N_IN);
            for (x.n = 1; x.n <= N; x.n += x.n < 12 ? 1 : 21) {
                tg_product p = {i / 2 ? &anew : &m, out, N_OUT, false};
                run(&x, &p, 1, (tg_matmul_mode){.precise = i % 2}, 1);
                h = fnv_bytes(h, (const uint8_t *)out, (size_t)x.n * N_OUT * sizeof *out);
            }
            printf("%s%s%s %016llx\n", t->name, i % 2 ? " precise" : "", i / 2 ? " interleaved" : "",
                   (unsigned long long)h);
            x.n = N;
            free_rows(&x);
        }
        free((void *)(uintptr_t)anew.data);
        free(w);
    }
}

static const char *program_path;

static void same_bits_at_each_level(void **state)
{
    (void)state;
    assert_int_equal(levels_agree(program_path), 4 * TG_TYPE_COUNT);
}

int main(int argc, char **argv)
{
    program_path = argv[0];
    if (tg_blas_load(NULL))
        return 1;
    if (argc > 1) {
        print_bits();
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_float64), cmocka_unit_test(same_bits),   cmocka_unit_test(extremes),
        cmocka_unit_test(quantising),      cmocka_unit_test(rows_decode), cmocka_unit_test(together),
        cmocka_unit_test(interleaved_keeps_the_bits), cmocka_unit_test(nothing_is_read_outside), cmocka_unit_test(same_bits_at_each_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
