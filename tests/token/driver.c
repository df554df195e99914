/* driver.c - a tokenizer behind a pipe, for tools/check-tokenizer.py; no test by itself.
 *
 *     driver MODEL [special]    texts to ids
 *     driver -p NAME            texts to the pieces of a pre-tokenizer
 *
 * stdin: texts, each as u32 length and bytes. stdout, for each, little-endian: u32 count and i32
 * ids, u32 bytes left out, u32 length and the bytes that the ids stand for at the beginning of a text;
 * with -p: u32 count and u32 lengths. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "token/pretokenize.h"
#include "token/tokenizer.h"

static void put(const void *bytes, size_t n)
{
    if (n && fwrite(bytes, 1, n, stdout) != n)
        exit(1);
}

static void put_u32(size_t v)
{
    uint32_t u = (uint32_t)v;
    put(&u, 4);
}

static void encode(const tg_tokenizer *t, const char *text, size_t n, unsigned flags)
{
    int32_t *ids;
    size_t n_ids, n_dropped, n_bytes = 0, k;
    tg_error err = {0};
    if (tg_tokenizer_encode(t, text, n, flags, &ids, &n_ids, &n_dropped, &err) != TG_OK) {
        fprintf(stderr, "%s\n", err.message);
        exit((int)err.status);
    }
    put_u32(n_ids);
    put(ids, n_ids * sizeof *ids);
    put_u32(n_dropped);
    char *back = NULL;
    for (size_t i = 0; i < n_ids; i++) {
        const char *bytes = tg_tokenizer_bytes(t, ids[i], &k);
        back = realloc(back, n_bytes + k + 1);
        if (!back)
            exit(1);
        memcpy(back + n_bytes, bytes, k);
        n_bytes += k;
    }
    tg_tokenizer_info info;
    tg_tokenizer_get_info(t, &info);
    k = info.strips_space && n_bytes && back[0] == ' ';
    put_u32(n_bytes - k);
    put(back + k, n_bytes - k);
    free(back);
    tg_free(ids);
}

static void cut(const tg_pretokenizer *p, const uint8_t *s, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; count++)
        i += tg_pretokenizer_piece(p, s + i, n - i);
    put_u32(count);
    for (size_t i = 0, k; i < n; i += k) {
        k = tg_pretokenizer_piece(p, s + i, n - i);
        put_u32(k);
    }
}

int main(int argc, char **argv)
{
    tg_container *c = NULL;
    tg_tokenizer *t = NULL;
    const tg_pretokenizer *p = NULL;
    tg_error err = {0};
    if (argc < 2)
        return 2;
    if (strcmp(argv[1], "-p") == 0) {
        p = argc > 2 ? tg_pretokenizer_by_name(argv[2]) : NULL;
        if (!p)
            return 2;
    } else if (tg_container_open(&c, argv[1], false, &err) != TG_OK ||
               tg_tokenizer_load(&t, c, 1 << 22, &err) != TG_OK) {
        fprintf(stderr, "%s\n", err.message);
        return (int)err.status;
    }
    unsigned flags = argc > 2 && strcmp(argv[2], "special") == 0 ? TG_TOK_SPECIAL : 0;
    uint32_t n;
    while (fread(&n, 4, 1, stdin) == 1) {
        char *text = malloc(n + 1);
        if (!text || fread(text, 1, n, stdin) != n)
            return 1;
        if (t)
            encode(t, text, n, flags);
        else
            cut(p, (const uint8_t *)text, n);
        free(text);
    }
    tg_tokenizer_free(t);
    tg_container_free(c);
    return fflush(stdout) == 0 ? 0 : 1;
}
