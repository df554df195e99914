/* check_container.h - opening files that must be refused, or must not. Include after <cmocka.h>. */
#ifndef TEST_CHECK_CONTAINER_H
#define TEST_CHECK_CONTAINER_H

#include "format/container.h"
#include "support/bytes.h"
#include "support/scratch.h"

/* The file or folder at `path` is refused with `status`, mapped and read, in one line that has
 * `wanted`. */
static inline void refused_at(const char *path, tg_status status, const char *wanted)
{
    for (int read = 0; read < 2; read++) {
        tg_container *c = (tg_container *)1;
        tg_error err = {0};
        tg_status got = tg_container_open(&c, path, read, &err);
        if (got != status || !strstr(err.message, wanted))
            print_error("%s: status %d, wanted %d with '%s': %s\n", path, got, status, wanted,
                        err.message);
        assert_int_equal(got, status);
        assert_int_equal(err.status, status);
        assert_null(c);
        assert_non_null(strstr(err.message, wanted));
        assert_null(strchr(err.message, '\n'));
        assert_int_equal(tg_container_open(&c, path, read, NULL), status);
    }
}

/* These bytes, as a file of this name, are refused; frees them. */
static inline void refused_as(const char *name, bytes b, const char *wanted)
{
    refused_at(scratch_write(name, b.data, b.n), TG_E_MODEL, wanted);
    bytes_free(&b);
}

static inline tg_container *accepted_at(const char *path)
{
    tg_container *c;
    tg_error err = {0};
    if (tg_container_open(&c, path, true, &err) != TG_OK)
        print_error("%s\n", err.message);
    assert_int_equal(err.status, TG_OK);
    tg_container_free(c);
    assert_int_equal(tg_container_open(&c, path, false, &err), TG_OK);
    return c;
}

/* The container of these bytes, as a file of this name; frees the bytes. */
static inline tg_container *accepted_as(const char *name, bytes b)
{
    tg_container *c = accepted_at(scratch_write(name, b.data, b.n));
    bytes_free(&b);
    return c;
}

#endif
