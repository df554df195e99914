/* saved_logits.c - the least of safetensors (github.com/huggingface/safetensors): a length, a JSON object that
 * says where each tensor lies, and the bytes. */
#include "cli/saved_logits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/open.h"
#include "cli/given_json.h"
#include "cli/options.h"
#include "cli/text.h"

enum { HEADER_MAX = 1 << 20 };

void tg_saved_logits_begin(tg_output *out, const int32_t *ids, size_t n_ids, size_t n_rows, size_t n_vocab, int n_ctx,
                           int stride)
{
    char head[512];
    uint64_t ids_bytes = (uint64_t)n_ids * sizeof *ids, all = ids_bytes + (uint64_t)n_rows * n_vocab * sizeof(float);
    int n = snprintf(head + 8, sizeof head - 16,
                     "{\"__metadata__\":{\"context\":\"%d\",\"stride\":\"%d\"},"
                     "\"ids\":{\"dtype\":\"I32\",\"shape\":[%zu],\"data_offsets\":[0,%" PRIu64 "]},"
                     "\"logits\":{\"dtype\":\"F32\",\"shape\":[%zu,%zu],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}}",
                     n_ctx, stride, n_ids, ids_bytes, n_rows, n_vocab, ids_bytes, all);
    for (; n % 8 != 0; n++)
        head[8 + n] = ' ';
    for (int i = 0; i < 8; i++)
        head[i] = (char)((uint64_t)n >> (8 * i) & 0xFF);
    tg_output_write(out, head, (size_t)n + 8);
    tg_output_write(out, ids, (size_t)ids_bytes);
}

/* n bytes at `at`, or false with errno, which is 0 where the file ends before. */
static bool read_at(int fd, void *bytes, uint64_t n, uint64_t at)
{
    for (char *p = bytes; n > 0;) {
        ssize_t did = pread(fd, p, n < 1u << 30 ? n : 1u << 30, (off_t)at);
        if (did < 0 && errno == EINTR)
            continue;
        if (did <= 0) {
            errno = did == 0 ? 0 : errno;
            return false;
        }
        p += did;
        at += (uint64_t)did;
        n -= (uint64_t)did;
    }
    return true;
}

static int malformed(const tg_saved_logits *saved, const char *what, tg_error *err)
{
    tg_text_quoted q;
    return tg_cli_fail(err, TG_E_MODEL, "%s: no saved logits: %s", tg_text_quote(&q, saved->path), what);
}

static int unreadable(const tg_saved_logits *saved, tg_error *err)
{
    tg_text_quoted q;
    return errno ? tg_cli_fail_errno(err, tg_text_quote(&q, saved->path), "cannot read", errno)
                 : tg_cli_fail(err, TG_E_IO, "%s: cannot read: it ends too early", tg_text_quote(&q, saved->path));
}

/* A tensor of n_dim dimensions and 4 bytes a number, which must lie whole behind the header. */
static bool locate(json_t *root, const char *name, const char *dtype, size_t n_dim, uint64_t data_bytes, size_t *shape,
                   uint64_t *at)
{
    json_t *entry = json_object_get(root, name), *dims = json_object_get(entry, "shape");
    json_t *offsets = json_object_get(entry, "data_offsets");
    const char *type = json_string_value(json_object_get(entry, "dtype"));
    if (!type || strcmp(type, dtype) || json_array_size(dims) != n_dim || json_array_size(offsets) != 2)
        return false;
    uint64_t n_bytes = 4;
    for (size_t i = 0; i < n_dim; i++) {
        json_int_t n = json_integer_value(json_array_get(dims, i));
        if (n < 1 || __builtin_mul_overflow(n_bytes, (uint64_t)n, &n_bytes))
            return false;
        shape[i] = (size_t)n;
    }
    json_int_t from = json_integer_value(json_array_get(offsets, 0)), to = json_integer_value(json_array_get(offsets, 1));
    *at = (uint64_t)from;
    return from >= 0 && to >= from && (uint64_t)to <= data_bytes && (uint64_t)(to - from) == n_bytes;
}

/* A number from 1 to `most` of the metadata, which have only strings; 0 where there is none. */
static int count_in(json_t *metadata, const char *name, int most)
{
    const char *text = json_string_value(json_object_get(metadata, name));
    int64_t n;
    return text && tg_number_int(text, 1, most, &n) ? (int)n : 0;
}

static int read_header(tg_saved_logits *saved, uint64_t file_bytes, tg_error *err)
{
    uint64_t n = 0, ids_at;
    uint8_t length[8];
    size_t shape[2];
    json_error_t why;
    if (file_bytes < 8)
        return malformed(saved, "it is shorter than 8 bytes", err);
    if (!read_at(saved->fd, length, sizeof length, 0))
        return unreadable(saved, err);
    for (int i = 0; i < 8; i++)
        n |= (uint64_t)length[i] << (8 * i);
    if (n > file_bytes - 8 || n > HEADER_MAX)
        return malformed(saved, "its header is too long", err);
    char *text = malloc((size_t)n + 1);
    if (!text)
        return tg_cli_fail_memory(err, (size_t)n + 1, "a header");
    bool whole = read_at(saved->fd, text, n, 8);
    json_t *root = whole ? tg_given_json(text, (size_t)n, JSON_REJECT_DUPLICATES, &why) : NULL;
    free(text);
    if (!whole)
        return unreadable(saved, err);
    if (!root && json_error_code(&why) == json_error_out_of_memory)
        return tg_cli_fail_memory(err, n, "a header as JSON");
    uint64_t data = file_bytes - 8 - n;
    bool ok = locate(root, "ids", "I32", 1, data, &saved->n_ids, &ids_at) &&
              locate(root, "logits", "F32", 2, data, shape, &saved->logits_at) && shape[0] <= saved->n_ids;
    json_t *metadata = json_object_get(root, "__metadata__");
    saved->n_ctx = count_in(metadata, "context", INT32_MAX);
    saved->stride = count_in(metadata, "stride", saved->n_ctx);
    json_decref(root);
    if (!ok)
        return malformed(saved, "it should hold ids I32 [n] and logits F32 [rows up to n, n_vocab]", err);
    saved->n_rows = shape[0];
    saved->n_vocab = shape[1];
    saved->logits_at += 8 + n;
    saved->ids = malloc(saved->n_ids * sizeof *saved->ids);
    if (!saved->ids)
        return tg_cli_fail_memory(err, saved->n_ids * sizeof *saved->ids, "saved token ids");
    saved->row = malloc(saved->n_vocab * sizeof *saved->row);
    if (!saved->row)
        return tg_cli_fail_memory(err, saved->n_vocab * sizeof *saved->row, "a row of saved logits");
    return read_at(saved->fd, saved->ids, saved->n_ids * sizeof *saved->ids, 8 + n + ids_at) ? TG_OK
                                                                                            : unreadable(saved, err);
}

int tg_saved_logits_open(tg_saved_logits *saved, const char *path, tg_error *err)
{
    struct stat st;
    *saved = (tg_saved_logits){.path = path};
    saved->fd = tg_open(AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0);
    if (saved->fd < 0 || fstat(saved->fd, &st) != 0)
        return unreadable(saved, err);
    return S_ISREG(st.st_mode) ? read_header(saved, (uint64_t)st.st_size, err)
                               : malformed(saved, "it is no regular file", err);
}

void tg_saved_logits_close(tg_saved_logits *saved)
{
    if (saved->path && saved->fd >= 0)
        close(saved->fd);
    free(saved->ids);
    free(saved->row);
}

const float *tg_saved_logits_read(tg_saved_logits *saved, tg_error *err)
{
    uint64_t row_bytes = (uint64_t)saved->n_vocab * sizeof *saved->row;
    if (!read_at(saved->fd, saved->row, row_bytes, saved->logits_at + saved->next * row_bytes)) {
        unreadable(saved, err);
        return NULL;
    }
    saved->next++;
    return saved->row;
}
