/* safetensors.c - a folder of safetensors. Parts of the input: a configuration, the header of a file, of one other file,
 * and the index of both. A header that begins with '{' gets its length, and behind it as much data as its last
 * data_offsets ask for, so that what lies behind those checks is reached; another part is the file as it is. */
#include "fuzz/fuzz.h"

#include "format/container.h"
#include "model/arch.h"
#include "model/weights.h"

enum { DATA_MAX = 1 << 16 };

/* The largest number that stands before a "]". */
static size_t data_of(const fuzz_part *header)
{
    size_t most = 0, number = 0;
    for (size_t i = 0; i < header->n; i++) {
        const uint8_t c = header->bytes[i];
        if (c == ']')
            most = number > most ? number : most;
        number = c >= '0' && c <= '9' && number < DATA_MAX ? number * 10 + c - '0' : 0;
    }
    return most < DATA_MAX ? most : 0;
}

static void put_file(const char *name, const fuzz_part *header)
{
    static uint8_t room[DATA_MAX + (1 << 16)];
    if (header->n == 0 || header->bytes[0] != '{' || header->n > 1 << 15) {
        fuzz_put(name, header->bytes, header->n);
        return;
    }
    size_t n = data_of(header);
    for (int i = 0; i < 8; i++)
        room[i] = (uint8_t)((uint64_t)header->n >> (8 * i));
    memcpy(room + 8, header->bytes, header->n);
    memset(room + 8 + header->n, 0, n);
    fuzz_put(name, room, 8 + header->n + n);
}

static void check(const tg_container *c)
{
    tg_error err = {0};
    uint64_t hash;
    volatile uint8_t seen;
    for (size_t i = 0; i < tg_container_n_tensors(c); i++) {
        const tg_tensor *t = tg_container_tensor_at(c, i);
        MUST(tg_container_tensor(c, t->name) == t && t->n_dim >= 0 && t->n_dim <= 4);
        for (uint64_t k = 0; k < t->n_bytes; k++)
            seen = t->data[k];
    }
    (void)seen;
    MUST(tg_container_fingerprint(c, &hash, &err) == TG_OK);
    tg_arena *arena = tg_arena_create(NULL);
    tg_weights *w = calloc(1, sizeof *w);
    const char *name;
    tg_status status = tg_config_load(c, &w->arch, &name, &w->config, &err);
    if (status == TG_OK)
        status = tg_weights_load(w, c, arena, &err);
    MUST(status == err.status && (status == TG_OK || err.message[0]));
    tg_weights_free(w);
    free(w);
    tg_arena_free(arena);
}

void fuzz(const uint8_t *data, size_t n)
{
    enum { CONFIG, FIRST, SECOND, INDEX, PARTS };
    static const fuzz_part none = {0};
    fuzz_part parts[PARTS];
    tg_container *c;
    tg_error err = {0};
    fuzz_split(data, n, parts, PARTS);
    const bool shards = parts[SECOND].bytes;
    fuzz_put("config.json", parts[CONFIG].bytes, parts[CONFIG].n);
    put_file("model.safetensors", shards ? &none : &parts[FIRST]);
    put_file("model-00001-of-00002.safetensors", shards ? &parts[FIRST] : &none);
    put_file("model-00002-of-00002.safetensors", &parts[SECOND]);
    fuzz_put("model.safetensors.index.json", parts[INDEX].bytes, parts[INDEX].n);
    if (tg_container_open(&c, fuzz_folder(), true, &err) == TG_OK) {
        check(c);
        tg_container_free(c);
    } else {
        MUST(err.status == TG_E_MODEL && strstr(err.message, fuzz_folder()));
    }
}
