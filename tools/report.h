/* report.h - what a benchmark found: figures, as lines on stdout and rows of a CSV file, and claims, as a
 * table. */
#ifndef TOOLS_REPORT_H
#define TOOLS_REPORT_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

static FILE *report_csv; /* NULL: none is wanted */

typedef struct claim {
    const char *paper, *goal, *bound;
    char measured[160];
    bool met;
} claim;

static claim claims[64];
static int n_claims;

/* `bound` says what limits the figure. */
static claim *add_claim(const char *paper, const char *goal, bool met, const char *bound)
{
    claim *c = &claims[n_claims++];
    *c = (claim){.paper = paper, .goal = goal, .bound = bound, .met = met};
    return c;
}

typedef struct figure {
    const char *section, *algorithm, *variant;
    double n, threads, seconds;
    double units, bytes, flops; /* of a step: elements or keys; modelled bytes; modelled operations */
    double counted;             /* bytes by the hardware's counter, NAN without one */
    double error, extra_bytes;  /* NAN where it means nothing */
} figure;

static void put_number(const char *format, double x)
{
    if (isnan(x))
        fputs(",", report_csv);
    else
        fprintf(report_csv, format, x);
}

static void put_figure(const figure *f)
{
    printf("  %-22s %-12s n %9.0f  %9.3f ms  %9.3f ns/unit", f->algorithm, f->variant, f->n,
           f->seconds * 1e3, f->seconds * 1e9 / f->units);
    if (f->bytes > 0)
        printf("  %6.1f GB/s", f->bytes / f->seconds * 1e-9);
    if (f->flops > 0)
        printf("  %6.1f GFLOP/s", f->flops / f->seconds * 1e-9);
    if (!isnan(f->error))
        printf("  error %.1e", f->error);
    putchar('\n');
    fflush(stdout);
    if (!report_csv)
        return;
    fprintf(report_csv, "%s,%s,%s,%.0f,%.0f", f->section, f->algorithm, f->variant, f->n, f->threads);
    put_number(",%.6g", f->seconds);
    put_number(",%.6g", f->seconds * 1e9 / f->units);
    put_number(",%.6g", f->bytes > 0 ? f->bytes / f->units : NAN);
    put_number(",%.6g", f->counted / f->units);
    put_number(",%.6g", f->bytes > 0 ? f->bytes / f->seconds * 1e-9 : NAN);
    put_number(",%.6g", f->flops > 0 ? f->flops / f->seconds * 1e-9 : NAN);
    put_number(",%.3g", f->error);
    put_number(",%.0f", f->extra_bytes);
    fputc('\n', report_csv);
}

static void print_claims(void)
{
    printf("\n| claim of the papers, on their hardware | goal here | measured | | bounded by |\n"
           "| --- | --- | --- | --- | --- |\n");
    for (int i = 0; i < n_claims; i++)
        printf("| %s | %s | %s | %s | %s |\n", claims[i].paper, claims[i].goal, claims[i].measured,
               claims[i].met ? "met" : "**missed**", claims[i].bound);
}

#endif
