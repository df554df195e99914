/* npy.h - reads the .npy arrays that the reference scripts write: version 1, little-endian int32 or
 * float32, C order, one or two dimensions. Reference files are ours, so that a fault in one ends
 * the test program. */
#ifndef TEST_NPY_H
#define TEST_NPY_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct npy {
    int n_rows, n_cols; /* n_cols is 1 for one dimension */
    void *data;         /* int32_t or float [n_rows][n_cols]; free() */
} npy;

static inline void npy_fail(const char *path, const char *what)
{
    fprintf(stderr, "%s: %s\n", path, what);
    exit(1);
}

/* `type` is "<i4" or "<f4". */
static inline npy npy_read(const char *path, const char *type)
{
    unsigned char head[10];
    char text[1024], descr[32];
    npy a = {.n_cols = 1};
    FILE *f = fopen(path, "rb");
    if (!f || fread(head, 1, sizeof head, f) != sizeof head ||
        memcmp(head, "\x93NUMPY\x01", 7) != 0)
        npy_fail(path, "missing, or no .npy file of version 1");
    const size_t n_text = (size_t)(head[8] | head[9] << 8);
    if (n_text >= sizeof text || fread(text, 1, n_text, f) != n_text)
        npy_fail(path, "its header is cut or too long");
    text[n_text] = 0;
    const char *shape = strstr(text, "'shape': (");
    snprintf(descr, sizeof descr, "'descr': '%s'", type);
    if (!strstr(text, descr) || !strstr(text, "'fortran_order': False") || !shape ||
        sscanf(shape, "'shape': (%d, %d)", &a.n_rows, &a.n_cols) < 1 || a.n_rows < 1 ||
        a.n_cols < 1)
        npy_fail(path, "another type, order or shape than is read here");
    const size_t n = (size_t)a.n_rows * (size_t)a.n_cols;
    a.data = malloc(4 * n);
    if (!a.data || fread(a.data, 4, n, f) != n || fgetc(f) != EOF)
        npy_fail(path, "its data is cut, or too long");
    fclose(f);
    return a;
}

#endif
