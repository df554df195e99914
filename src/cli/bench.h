/* bench.h - what one test of `tinygpt bench` gave, and the tables that hold such rows. */
#ifndef TG_CLI_BENCH_H
#define TG_CLI_BENCH_H

#include "cli/options.h"

/* Evaluates n_prompt tokens at once, or n_gen tokens one at a time, behind n_depth others. */
typedef struct tg_bench_row {
    /* the setting */
    const tg_model_info *model;
    const char *model_type; /* "llama 135M Q4_1" */
    const char *cpu;        /* as the system names it */
    const char *isa, *attention;
    bool precise, blas;
    tg_machine machine;
    int n_threads, n_batch;
    const char *type_k, *type_v;
    int n_prompt, n_gen, n_depth; /* one of the first two is 0 */

    /* the result */
    char test_time[32]; /* its start: ISO 8601, UTC */
    int n_samples;
    double *seconds;       /* [n_samples] of each repetition */
    double *limit_seconds; /* [n_samples] what it could not have been faster than, measured within it */
    double p99_token;      /* seconds of a token; 0 for a prompt, whose tokens have no times */
    double bytes_per_token; /* of weights, keys and values that must be read */
    uint64_t peak_memory_bytes;
    uint64_t logits_hash; /* FNV-1a over the logits of the last token */
} tg_bench_row;

/* What a token's row of logits is told by: 64-bit FNV-1a over its bytes. */
uint64_t tg_bench_hash(const float *logits, int n);

/* The value of n that `share` of them do not exceed, by nearest rank; sorts them. */
double tg_bench_quantile(double *values, int n, double share);

/* Row `i` of a table of format TG_TABLE_..., written at once; and its end, behind n_rows of them. */
void tg_bench_put(tg_output *out, int table, int i, const tg_bench_row *row);
void tg_bench_end(tg_output *out, int table, int n_rows);

#endif
