/* json.c - JSON from outside.
 *
 * jansson does the parsing. What it leaves open stands here: a scan of the bytes before it sees
 * them, which bounds nesting (it recurses) and memory (its small values are large: the two bytes of
 * "[]," ask for 150), so that no file can take more than it is due. */
#include "base/json.h"

#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"

/* What jansson allocates for each thing, with malloc's overhead, at the worst moment: a table that
 * doubles exists twice. Measured by tests/base/test_json.c. */
enum {
    COST_OBJECT = 240,
    COST_ARRAY = 128,
    COST_NUMBER = 32,
    COST_STRING = 80, /* and its bytes; also a key with its entry */
    COST_ITEM = 24,   /* a place in an array past those that COST_ARRAY has */
    COST_KEY = 48,    /* a place in an object, likewise */
    FREE_ITEMS = 8,
};

/* Memory that parsing may take: 16 times the bytes, and 16 MiB so that small files need no
 * counting; but not without end, since no model needs as much. */
static uint64_t memory_allowed(size_t n)
{
    const uint64_t some = 16 * (uint64_t)n + (16u << 20), most = 240u << 20;
    return some < most ? some : most;
}

/* The letters of true, false and null that this also takes for a number make it count too much. */
static bool is_number_byte(char c)
{
    return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

/* One linear pass over the tokens, right up to the first byte that jansson refuses, or should. */
static tg_status check_shape(const char *s, size_t n, size_t skipped, const char *file,
                             tg_error *err)
{
    uint64_t cost = 0;
    uint32_t items[TG_JSON_DEPTH_MAX + 1] = {0}; /* commas seen in each open value */
    int depth = 0;
    for (size_t i = 0; i < n; i++) {
        switch (s[i]) {
        case '"': {
            size_t start = i;
            for (i++; i < n && s[i] != '"'; i++)
                i += s[i] == '\\';
            cost += COST_STRING + (i - start);
            break;
        }
        case '{':
        case '[':
            if (depth == TG_JSON_DEPTH_MAX)
                return tg_fail(err, TG_E_MODEL, file,
                               "JSON nested too deeply (allowed %d levels, byte offset %zu)",
                               TG_JSON_DEPTH_MAX, skipped + i);
            items[++depth] = 0;
            cost += s[i] == '{' ? COST_OBJECT : COST_ARRAY;
            break;
        case '}':
        case ']':
            depth -= depth > 0;
            break;
        case ',':
            cost += ++items[depth] >= FREE_ITEMS ? COST_ITEM : 0;
            break;
        case ':':
            cost += items[depth] >= FREE_ITEMS ? COST_KEY : 0;
            break;
        case '\0': /* which jansson passes over behind a number */
            return tg_fail(err, TG_E_MODEL, file, "not valid JSON: a NUL (byte offset %zu of the JSON)", skipped + i);
        default:
            if (!is_number_byte(s[i]))
                break;
            cost += COST_NUMBER;
            while (i + 1 < n && is_number_byte(s[i + 1]))
                i++;
            break;
        }
    }
    if (cost > memory_allowed(n))
        return tg_fail(err, TG_E_MODEL, file,
                       "JSON of very many small values (found a need of %" PRIu64
                       " bytes of memory, allowed %" PRIu64 ")",
                       cost, memory_allowed(n));
    return TG_OK;
}

/* ---- memory that runs out ---------------------------------------------------------------------
 *
 * jansson goes on when a string gets no more room, and then reads and writes behind what it has: so a parse ends where it
 * stands. What it has allocated by then is listed, and freed. */

typedef struct parse {
    void **block; /* [n] of capacity */
    size_t n, capacity;
    jmp_buf out;
} parse;

static _Thread_local parse *current; /* NULL: values are made by other means */
static atomic_bool lacks_memory;
static json_malloc_t next_malloc; /* what was set before, by whoever uses jansson as well */
static json_free_t next_free;

static void *allocate(size_t n)
{
    parse *p = current;
    void *block = p && !tg_grow((void **)&p->block, &p->capacity, p->n + 1, sizeof *p->block, "", NULL) ? NULL : next_malloc(n);
    if (!block)
        lacks_memory = true;
    if (p && !block)
        longjmp(p->out, 1);
    if (p)
        p->block[p->n++] = block;
    return block;
}

/* Most are freed soon. */
static void release(void *block)
{
    parse *p = current;
    size_t i = p ? p->n : 0;
    while (i > 0 && p->block[i - 1] != block)
        i--;
    if (i > 0)
        p->block[i - 1] = p->block[--p->n];
    next_free(block);
}

static void watch(void)
{
    json_get_alloc_funcs(&next_malloc, &next_free);
    json_set_alloc_funcs(allocate, release);
}

void tg_json_watch(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch);
}

bool tg_json_lacks_memory(void)
{
    return lacks_memory;
}

json_t *tg_json_decode(const char *bytes, size_t n, size_t flags, json_error_t *why)
{
    parse p = {0};
    json_t *volatile value = NULL;
    tg_json_watch();
    current = &p;
    if (setjmp(p.out) == 0) {
        value = json_loadb(bytes, n, flags, why);
    } else {
        for (size_t i = 0; i < p.n; i++)
            next_free(p.block[i]);
        *why = (json_error_t){.text = "out of memory", .position = -1};
        why->text[JSON_ERROR_TEXT_LENGTH - 1] = json_error_out_of_memory;
    }
    current = NULL;
    free(p.block);
    return value;
}

json_t *tg_json_parse(const void *bytes, size_t n, const char *file, tg_error *err)
{
    const char *s = n ? bytes : "";
    size_t skip = n >= 3 && memcmp(s, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    if (check_shape(s + skip, n - skip, skip, file, err) != TG_OK)
        return NULL;
    json_error_t e;
    json_t *value = tg_json_decode(s + skip, n - skip, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);
    if (value)
        return value;
    tg_quoted q;
    if (json_error_code(&e) == json_error_out_of_memory)
        tg_fail(err, TG_E_RESOURCE, file, "out of memory: parsing %zu bytes of JSON", n);
    else
        tg_fail(err, TG_E_MODEL, file, "not valid JSON: %s (byte offset %zu of the JSON)",
                tg_quote_str(&q, e.text), skip + (size_t)e.position);
    return NULL;
}

/* Into room that is there: a key is lost where jansson's own room cannot grow. */
char *tg_json_text(const json_t *value, size_t flags, const char *purpose, tg_error *err)
{
    const size_t n = value ? json_dumpb(value, NULL, 0, flags) : 0;
    char *text = n ? tg_alloc(n + 1, 1, purpose, err) : NULL;
    if (text && json_dumpb(value, text, n, flags) == n)
        return text;
    tg_free(text);
    tg_fail_alloc(err, n + 1, purpose);
    return NULL;
}

json_t *tg_json_load(const char *path, uint64_t max_bytes, tg_error *err)
{
    tg_file file;
    /* Read, not mapped: it is small, and may be cut short by others while it is parsed. */
    if (tg_file_open(&file, path, max_bytes, true, err) != TG_OK)
        return NULL;
    json_t *value = tg_json_parse(file.data, file.size, path, err);
    tg_file_close(&file);
    return value;
}

const char *tg_json_type_name(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "object";
    case JSON_ARRAY:
        return "array";
    case JSON_STRING:
        return "string";
    case JSON_INTEGER:
        return "integer";
    case JSON_REAL:
        return "number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "boolean";
    default:
        return "null";
    }
}
