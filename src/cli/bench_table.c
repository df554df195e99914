/* bench_table.c - rows of a benchmark in four formats. The names and units are those of llama-bench where
 * it has one; what follows the samples is ours. */
#include "cli/bench.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ----------------------------------------------------------------------------------
 */

uint64_t tg_bench_hash(const float *logits, int n)
{
    const unsigned char *bytes = (const unsigned char *)logits;
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < (size_t)n * sizeof *logits; i++)
        h = (h ^ bytes[i]) * 0x100000001b3u;
    return h;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double tg_bench_quantile(double *values, int n, double share)
{
    qsort(values, (size_t)n, sizeof *values, ascending);
    int rank = (int)ceil(share * n);
    return values[rank < 1 ? 0 : rank - 1];
}

static double mean(const double *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i];
    return sum / n;
}

/* Of a sample, as llama-bench has it; 0 for a single value. */
static double deviation(const double *x, int n)
{
    double m = mean(x, n), sum = 0;
    for (int i = 0; i < n; i++)
        sum += (x[i] - m) * (x[i] - m);
    return n > 1 ? sqrt(sum / (n - 1)) : 0;
}

/* What is derived from a row's samples. */
typedef struct summary {
    double avg_s, stddev_s;
    double avg_ts, stddev_ts, median_ts, limit_ts;
} summary;

enum { MAX_SAMPLES = 1000 }; /* what -r allows */

static double median(const double *x, int n)
{
    double sorted[MAX_SAMPLES];
    memcpy(sorted, x, (size_t)n * sizeof *x);
    qsort(sorted, (size_t)n, sizeof *sorted, ascending);
    return (sorted[n / 2] + sorted[(n - 1) / 2]) / 2;
}

static double n_tokens(const tg_bench_row *row)
{
    return row->n_prompt + row->n_gen;
}

static summary summarize(const tg_bench_row *row)
{
    double ts[MAX_SAMPLES];
    int n = row->n_samples;
    for (int i = 0; i < n; i++)
        ts[i] = n_tokens(row) / row->seconds[i];
    return (summary){
        .avg_s = mean(row->seconds, n),
        .stddev_s = deviation(row->seconds, n),
        .avg_ts = mean(ts, n),
        .stddev_ts = deviation(ts, n),
        .median_ts = median(ts, n),
        .limit_ts = n_tokens(row) / median(row->limit_seconds, n),
    };
}

/* ---- Markdown ---------------------------------------------------------------------------------
 */

enum { CELL_BYTES = 160 };

typedef enum column_id {
    MODEL, SIZE, PARAMS, THREADS, N_BATCH, TYPE_K, TYPE_V, SETTING, TEST,
    SPEED, MEDIAN, P99, RATE, LIMIT, BYTES, HASH
} column_id;

/* llama-bench's columns, then what it lacks. To add one: a row here and a case in `cell`. */
static const struct {
    const char *title;
    int width;
    bool left; /* text; numbers stand on the right */
} columns[] = {
    [MODEL] = {"model", 20, true},
    [SIZE] = {"size", 10, false},
    [PARAMS] = {"params", 10, false},
    [THREADS] = {"threads", 7, false},
    [N_BATCH] = {"n_batch", 7, false},
    [TYPE_K] = {"type_k", 6, false},
    [TYPE_V] = {"type_v", 6, false},
    [SETTING] = {"setting", 20, true},
    [TEST] = {"test", 15, false},
    [SPEED] = {"t/s", 18, false},
    [MEDIAN] = {"median t/s", 10, false},
    [P99] = {"p99 ms", 8, false},
    [RATE] = {"GB/s", 7, false},
    [LIMIT] = {"% of limit", 10, false},
    [BYTES] = {"MB/token", 8, false},
    [HASH] = {"logits hash", 16, false},
};
enum { N_COLUMNS = sizeof columns / sizeof columns[0] };

/* What holds beyond what has a column of its own; all rows of a table have the same. */
static const char *setting_of(const tg_bench_row *row, char text[CELL_BYTES])
{
    const bool chosen = strcmp(row->attention, tg_attention_name(0, NULL));
    snprintf(text, CELL_BYTES, "%s%s%s%s%s", chosen ? " " : "", chosen ? row->attention : "",
             row->model->interleaved_bytes ? " interleave" : "", row->precise ? " precise" : "",
             row->blas ? "" : " no blas");
    return text + (*text == ' ');
}

static bool is_shown(const tg_bench_row *row, int column)
{
    char text[CELL_BYTES];
    return column != SETTING || *setting_of(row, text);
}

static void cell(const tg_bench_row *row, const summary *s, column_id column, char *text)
{
    const tg_model_info *m = row->model;
    double mib = (double)m->weight_bytes / (1 << 20), millions = (double)m->n_params / 1e6;
    const char *between = row->n_depth ? " @ d" : "";
    switch (column) {
#define CELL(id, ...)                                                                              \
    case id:                                                                                       \
        snprintf(text, CELL_BYTES, __VA_ARGS__);                                                   \
        return
        CELL(MODEL, "%s", row->model_type);
        CELL(SIZE, "%.2f %s", mib < 1024 ? mib : mib / 1024, mib < 1024 ? "MiB" : "GiB");
        CELL(PARAMS, "%.2f %s", millions < 1000 ? millions : millions / 1000, millions < 1000 ? "M" : "B");
        CELL(THREADS, "%d", row->n_threads);
        CELL(N_BATCH, "%d", row->n_batch);
        CELL(TYPE_K, "%s", row->type_k);
        CELL(TYPE_V, "%s", row->type_v);
        CELL(SETTING, "%s", setting_of(row, (char[CELL_BYTES]){0}));
        CELL(TEST, "%s%d%s%.0d", row->n_prompt ? "pp" : "tg", row->n_prompt + row->n_gen, between,
             row->n_depth); /* of a depth of 0, nothing */
        CELL(SPEED, "%.2f ± %.2f", s->avg_ts, s->stddev_ts);
        CELL(MEDIAN, "%.2f", s->median_ts);
        CELL(P99, row->n_gen ? "%.3f" : "-", row->p99_token * 1e3);
        CELL(RATE, "%.2f", row->bytes_per_token * s->median_ts / 1e9);
        CELL(LIMIT, "%.1f", 100 * s->median_ts / s->limit_ts);
        CELL(BYTES, "%.3f", row->bytes_per_token / 1e6);
        CELL(HASH, "%016" PRIx64, row->logits_hash);
#undef CELL
    }
}

/* Columns on a screen, of UTF-8 without wide characters. */
static int width_of(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

static void put_cell(tg_output *out, column_id column, const char *text)
{
    int pad = columns[column].width - width_of(text);
    pad = pad < 0 ? 0 : pad;
    tg_output_print(out, "| %*s%s%*s ", columns[column].left ? 0 : pad, "", text,
                    columns[column].left ? pad : 0, "");
}

static void put_md_head(tg_output *out, const tg_bench_row *row)
{
    for (int c = 0; c < N_COLUMNS; c++)
        if (is_shown(row, c))
            put_cell(out, (column_id)c, columns[c].title);
    tg_output_print(out, "|\n");
    for (int c = 0; c < N_COLUMNS; c++) {
        if (!is_shown(row, c))
            continue;
        char line[CELL_BYTES] = "";
        memset(line, '-', (size_t)columns[c].width);
        if (!columns[c].left)
            line[columns[c].width - 1] = ':';
        put_cell(out, (column_id)c, line);
    }
    tg_output_print(out, "|\n");
}

static void put_md(tg_output *out, const tg_bench_row *row)
{
    summary s = summarize(row);
    char text[CELL_BYTES];
    for (int c = 0; c < N_COLUMNS; c++) {
        if (!is_shown(row, c))
            continue;
        cell(row, &s, (column_id)c, text);
        put_cell(out, (column_id)c, text);
    }
    tg_output_print(out, "|\n");
}

/* ---- all fields, by name ----------------------------------------------------------------------
 */

enum { DIGITS = 12 }; /* of numbers that are not whole */

static void put_text(json_t *o, const char *name, const char *text)
{
    json_object_set_new(o, name, tg_output_json_text(text, strlen(text)));
}

static void put_whole(json_t *o, const char *name, double value)
{
    json_object_set_new(o, name, json_integer((json_int_t)llround(value)));
}

static void put_real(json_t *o, const char *name, double value)
{
    json_object_set_new(o, name, json_real(value));
}

static void put_samples(json_t *o, const tg_bench_row *row)
{
    json_t *ns = json_array(), *ts = json_array();
    for (int i = 0; i < row->n_samples; i++) {
        json_array_append_new(ns, json_integer((json_int_t)llround(row->seconds[i] * 1e9)));
        json_array_append_new(ts, json_real(n_tokens(row) / row->seconds[i]));
    }
    json_object_set_new(o, "samples_ns", ns);
    json_object_set_new(o, "samples_ts", ts);
}

/* In the order of the columns of CSV. */
static json_t *fields_of(const tg_bench_row *row)
{
    summary s = summarize(row);
    char hash[20];
    json_t *o = json_object();
    put_text(o, "cpu_info", row->cpu);
    put_text(o, "model_filename", row->model->path);
    put_text(o, "model_type", row->model_type);
    put_whole(o, "model_size", (double)row->model->weight_bytes);
    put_whole(o, "model_n_params", (double)row->model->n_params);
    put_whole(o, "n_batch", row->n_batch);
    put_whole(o, "n_ubatch", row->n_batch);
    put_whole(o, "n_threads", row->n_threads);
    put_text(o, "type_k", row->type_k);
    put_text(o, "type_v", row->type_v);
    put_whole(o, "n_prompt", row->n_prompt);
    put_whole(o, "n_gen", row->n_gen);
    put_whole(o, "n_depth", row->n_depth);
    put_text(o, "test_time", row->test_time);
    put_whole(o, "avg_ns", s.avg_s * 1e9);
    put_whole(o, "stddev_ns", s.stddev_s * 1e9);
    put_real(o, "avg_ts", s.avg_ts);
    put_real(o, "stddev_ts", s.stddev_ts);
    put_samples(o, row);
    put_real(o, "median_ts", s.median_ts);
    if (row->n_gen)
        put_whole(o, "p99_token_ns", row->p99_token * 1e9);
    else
        json_object_set_new(o, "p99_token_ns", json_null());
    put_real(o, "bytes_per_token", row->bytes_per_token);
    put_real(o, "achieved_bytes_per_s", row->bytes_per_token * s.median_ts);
    put_real(o, "limit_ts", s.limit_ts);
    put_real(o, "percent_of_limit", 100 * s.median_ts / s.limit_ts);
    put_whole(o, "peak_memory_bytes", (double)row->peak_memory_bytes);
    snprintf(hash, sizeof hash, "%016" PRIx64, row->logits_hash);
    put_text(o, "logits_hash", hash);
    put_text(o, "attention", row->attention);
    json_object_set_new(o, "precise", json_boolean(row->precise));
    json_object_set_new(o, "blas", json_boolean(row->blas));
    put_whole(o, "interleaved_bytes", (double)row->model->interleaved_bytes);
    put_text(o, "isa", row->isa);
    put_real(o, "machine_read_bytes_per_s", row->machine.read_bytes_per_s);
    put_real(o, "machine_f32_flops", row->machine.f32_flops);
    put_real(o, "machine_int8_ops", row->machine.int8_ops);
    return o;
}

/* ---- CSV --------------------------------------------------------------------------------------
 */

/* In quotes, as llama-bench has it: quotes inside are doubled. */
static void put_csv_value(tg_output *out, const char *text)
{
    tg_output_write(out, "\"", 1);
    for (; *text; text++)
        tg_output_write(out, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
    tg_output_write(out, "\"", 1);
}

/* Numbers and arrays are spelled as in JSON; null is empty. */
static void put_csv(tg_output *out, json_t *fields, bool header)
{
    const char *name, *between = "";
    bool whole = !tg_json_lacks_memory();
    json_t *value;
    json_object_foreach (fields, name, value) {
        tg_output_print(out, "%s%s", between, header ? name : "");
        between = ",";
        if (header)
            continue;
        if (json_is_string(value) || json_is_null(value)) {
            put_csv_value(out, json_is_string(value) ? json_string_value(value) : "");
            continue;
        }
        char *text = tg_json_text(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(DIGITS), "a row of the table", NULL);
        whole = whole && text;
        put_csv_value(out, text ? text : "");
        tg_free(text);
    }
    tg_output_print(out, "\n");
    if (!whole && !out->error)
        out->error = ENOMEM;
}

/* ---- the table --------------------------------------------------------------------------------
 */

void tg_bench_put(tg_output *out, int table, int i, const tg_bench_row *row)
{
    json_t *fields = table == TG_TABLE_MD ? NULL : fields_of(row);
    switch (table) {
    case TG_TABLE_MD:
        if (i == 0)
            put_md_head(out, row);
        put_md(out, row);
        break;
    case TG_TABLE_CSV:
        if (i == 0)
            put_csv(out, fields, true);
        put_csv(out, fields, false);
        json_decref(fields);
        break;
    case TG_TABLE_JSON:
        tg_output_print(out, i == 0 ? "[\n" : ",\n");
        tg_output_json(out, fields, JSON_INDENT(2) | JSON_REAL_PRECISION(DIGITS));
        break;
    case TG_TABLE_JSONL:
        tg_output_json(out, fields, JSON_REAL_PRECISION(DIGITS));
        tg_output_print(out, "\n");
        break;
    }
    tg_output_flush(out);
}

void tg_bench_end(tg_output *out, int table, int n_rows)
{
    if (table == TG_TABLE_JSON)
        tg_output_print(out, n_rows == 0 ? "[]\n" : "\n]\n");
}
