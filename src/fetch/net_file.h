/* net_file.h - inside net*.c: the job that fetches one file. net_file.c has its steps, net_answer.c judges what a
 * server answers. */
#ifndef TG_FETCH_NET_FILE_H
#define TG_FETCH_NET_FILE_H

#include "fetch/digest.h"
#include "fetch/net_request.h"
#include "fetch/part.h"

typedef struct file_job {
    tg_job job; /* first */
    tg_download *dl;
    const struct file_set *set;
    enum { FILE_OPEN, FILE_CHECK, FILE_REQUEST, FILE_FINISH } phase;
    tg_record wanted; /* what the caller knows of it */
    tg_part part;
    tg_digest digest;
    tg_digest_kind kind; /* what is computed */
    uint64_t digested;   /* bytes of the part that the digest has seen */
    char *buffer;        /* what comes behind the part's bytes */
    size_t n_buffer;
    bool begun;        /* its room on the disk is reserved */
    bool whole;        /* do not ask for a range again: the server gets it wrong */
    bool fresh;        /* the one new attempt after a wrong digest is under way */
    const char *looks; /* what the first bytes are instead of a model, or NULL */
} file_job;

typedef struct file_set {
    file_job *jobs;
    size_t n;
} file_set;

static inline tg_fetch_file *file_of(file_job *f)
{
    return f->dl->file;
}

/* The request's `begin`: compares the answer with all that is known of the file, and makes ready for its body. */
bool tg_file_begin(tg_http *r);

/* Forgets the bytes that are there, and what a server has said of them. */
tg_status tg_file_start_over(file_job *f, tg_error *err);

/* Digests as the bytes come, unless git's kind has to wait for the size. */
tg_status tg_file_begin_digest(file_job *f, tg_error *err);

#endif
