/* transcode.c - slab by slab: read, lay, encode on all threads; write. */
#include "convert/transcode.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* A unit is what a thread takes at a time: whole blocks of every format. */
enum { UNIT = 8192, SLAB_UNITS = 256, SLAB_BYTES = UNIT * SLAB_UNITS * 4 };

size_t tg_transcode_scratch(void)
{
    return UNIT * sizeof(float);
}

size_t tg_transcode_slab(void)
{
    return SLAB_BYTES;
}

/* ---- reading ---------------------------------------------------------------------------------------- */

/* The row of the input that row `r` of the output is. */
static uint64_t row_of(const tg_source *s, uint64_t r)
{
    uint64_t d = s->head_dim;
    if (s->laid == TG_LAID_NEIGHBOURS)
        return r / d * d + r % 2 * (d / 2) + r % d / 2;
    if (s->laid == TG_LAID_BY_KIND) {
        uint64_t n_head = s->n_rows / (d * s->n_kinds), kind = r / (d * n_head), head = r / d % n_head;
        return (head * s->n_kinds + kind) * d + r % d;
    }
    return r;
}

/* Numbers that lie `stride` apart in a tensor without blocks. */
static void gather(const tg_tensor *t, uint64_t first, uint64_t stride, size_t n, float *out)
{
    enum { AT_ONCE = 256 };
    uint8_t raw[AT_ONCE * 4];
    size_t size = (size_t)t->type->block_bytes;
    for (size_t done = 0; done < n; done += AT_ONCE) {
        size_t m = n - done < AT_ONCE ? n - done : AT_ONCE;
        for (size_t i = 0; i < m; i++)
            memcpy(raw + i * size, t->data + (first + (done + i) * stride) * size, size);
        t->type->to_f32(raw, out + done, m);
    }
}

void tg_source_read(const tg_source *s, uint64_t first, size_t n, float *out)
{
    if (s->floats) {
        memcpy(out, s->floats + first, n * sizeof *out);
        return;
    }
    for (size_t done = 0, run; done < n; done += run) {
        uint64_t row = (first + done) / s->n_columns, column = (first + done) % s->n_columns;
        const tg_tensor *t = s->parts[row / s->n_rows];
        run = s->n_columns - column < n - done ? (size_t)(s->n_columns - column) : n - done;
        row %= s->n_rows;
        if (s->laid == TG_LAID_TURNED)
            gather(t, column * s->n_rows + row, s->n_rows, run, out + done);
        else
            t->type->to_f32(t->data + tg_dtype_row_bytes(t->type, (size_t)(row_of(s, row) * s->n_columns + column)),
                            out + done, run);
    }
    for (size_t i = 0; i < n && s->plus != 0; i++)
        out[i] += s->plus;
}

/* ---- a slab ------------------------------------------------------------------------------------------- */

typedef struct slab {
    const tg_source *source;
    const tg_dtype *to;
    uint64_t first; /* of all numbers */
    size_t n;
    float limit;            /* of their size */
    uint8_t *out;
    _Atomic(uint64_t) bad; /* the first number that is beyond it */
} slab;

static float limit_of(const tg_dtype *t)
{
    return t->type == TG_F32 ? INFINITY : t->type == TG_BF16 ? 3.38e38f : 65504.0f;
}

static void note_bad(slab *s, uint64_t i)
{
    uint64_t seen = atomic_load(&s->bad);
    while (i < seen && !atomic_compare_exchange_weak(&s->bad, &seen, i))
        ;
}

static void encode_units(const tg_worker *w, void *arg)
{
    slab *s = arg;
    float *x = w->scratch;
    size_t n_units = (s->n + UNIT - 1) / UNIT;
    for (size_t u; (u = tg_take(w, n_units)) < n_units;) {
        size_t at = u * UNIT, n = s->n - at < UNIT ? s->n - at : UNIT, i = 0;
        tg_source_read(s->source, s->first + at, n, x);
        while (s->to->type != TG_F32 && i < n && fabsf(x[i]) <= s->limit)
            i++;
        if (s->to->type != TG_F32 && i < n)
            note_bad(s, s->first + at + i);
        else
            s->to->from_f32(x, s->out + tg_dtype_row_bytes(s->to, at), n);
    }
}

static tg_status put(const tg_transcoder *t, const void *bytes, size_t n, tg_error *err)
{
    tg_status status = tg_newfile_write(t->file, bytes, n, err);
    if (status == TG_OK && !t->written(t->arg, n))
        status = tg_fail(err, TG_E_STOPPED, NULL, "stopped");
    return status;
}

tg_status tg_transcode(const tg_transcoder *t, const tg_source *s, const tg_dtype *to, const char *path,
                       const char *name, tg_error *err)
{
    uint64_t n = s->n_parts * s->n_rows * s->n_columns;
    tg_status status = TG_OK;
    for (uint64_t done = 0; done < n && status == TG_OK; done += UNIT * SLAB_UNITS) {
        slab part = {.source = s, .to = to, .first = done, .limit = limit_of(to), .out = t->slab, .bad = UINT64_MAX};
        part.n = n - done < UNIT * SLAB_UNITS ? (size_t)(n - done) : UNIT * SLAB_UNITS;
        tg_team_run(t->team, encode_units, &part);
        uint64_t bad = atomic_load(&part.bad);
        if (bad != UINT64_MAX) {
            float x[256]; /* a block at least */
            tg_quoted q;
            tg_source_read(s, bad / 256 * 256, (size_t)(n - bad / 256 * 256 < 256 ? n - bad / 256 * 256 : 256), x);
            return tg_fail(err, TG_E_MODEL, path, "tensor %s: number %" PRIu64 " (found %g, allowed in %s: up to %g)",
                           tg_quote_str(&q, name), bad, (double)x[bad % 256], to->name, (double)limit_of(to));
        }
        status = put(t, t->slab, tg_dtype_row_bytes(to, part.n), err);
    }
    return status;
}

tg_status tg_transcode_bytes(const tg_transcoder *t, const uint8_t *bytes, uint64_t n, tg_error *err)
{
    tg_status status = TG_OK;
    for (uint64_t done = 0; done < n && status == TG_OK; done += SLAB_BYTES)
        status = put(t, bytes + done, n - done < SLAB_BYTES ? (size_t)(n - done) : SLAB_BYTES, err);
    return status;
}
