/* job.h - a prompt with the texts that continue it: what is asked for, what comes of it, how it is written. */
#ifndef TG_CLI_JOB_H
#define TG_CLI_JOB_H

#include "cli/request.h"
#include "cli/session_file.h"
#include "cli/text.h"

struct tg_job;

typedef struct tg_choice {
    struct tg_job *job;
    tg_bytes text; /* but what was written as it came */
    json_t *scores; /* an array, an object for each token; NULL: not asked for */
    int n_tokens, n_pieces;
    tg_finish finish;
    double first, last; /* when the first piece came, and the last one */
} tg_choice;

typedef struct tg_job {
    tg_options opt; /* its own */
    const tg_model *model;
    json_t *line;   /* the object that it was read from, of which opt has strings; or NULL */
    size_t number;  /* of its line; 0: there are no lines */
    char *prompt;   /* [n_prompt] bytes; NULL unless they are to be written */
    size_t n_prompt;
    int32_t *ids; /* [n_ids] */
    size_t n_ids;
    tg_saved_text before;  /* the text that the prompt goes behind, or none */
    tg_session_file *file; /* that its text is for; or NULL */
    tg_request request;
    tg_request_room room;
    tg_output *stream; /* where its text goes as it comes; NULL: when it is complete */
    tg_error failure;  /* status TG_OK: none */
    int n_begun, n_done;
    tg_choice *choice; /* [opt.n_best] */
    double begun;
} tg_job;

/* A job that asks for nothing yet, but has room for all its choices. */
int tg_job_create(tg_job **job, const tg_model *model, const tg_options *opt, tg_error *err);
void tg_job_free(tg_job *job);

/* Takes the prompt, and the options as they are now. */
int tg_job_prepare(tg_job *job, const char *bytes, size_t n, tg_error *err);

/* Asks for its next choice. */
int tg_job_begin(tg_job *job, tg_generator *generator, tg_error *err);
bool tg_job_has_begun(const tg_job *job);
bool tg_job_is_done(const tg_job *job);

/* As its options say: an object, or each text on a line; of a text that was written as it came, nothing more. */
void tg_job_write(const tg_job *job, tg_output *out);

#endif
