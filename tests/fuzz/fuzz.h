/* fuzz.h - what a fuzz target is, and what targets share.
 *
 * A target is one file with one function, `fuzz`, that takes any bytes, gives them to a reader as a file, a server or a
 * user would, frees everything, and demands what must hold then. driver.c calls it, under libFuzzer (make fuzz) or with
 * the inputs that are kept (make check). */
#ifndef TEST_FUZZ_H
#define TEST_FUZZ_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fuzz(const uint8_t *data, size_t n);

/* A law: ends the process, which is a finding, where it does not hold. */
#define MUST(condition) ((condition) ? (void)0 : fuzz_broken(#condition, __FILE__, __LINE__))
void fuzz_broken(const char *law, const char *file, int line) __attribute__((noreturn));

/* A file without a folder, made anew by each call, of these bytes; its path. */
const char *fuzz_file(const void *bytes, size_t n);

/* A folder that lasts. */
const char *fuzz_folder(void);
/* A file in it, or none where bytes is NULL; n is 0 then. */
void fuzz_put(const char *name, const void *bytes, size_t n);

/* Several files in one input stand between lines "%%". */
typedef struct fuzz_part {
    const uint8_t *bytes; /* NULL: there is no such part */
    size_t n;
} fuzz_part;

void fuzz_split(const uint8_t *data, size_t n, fuzz_part *parts, size_t n_parts);

#endif
