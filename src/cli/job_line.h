/* job_line.h - prompts that come one a line, as text or as JSON. */
#ifndef TG_CLI_JOB_LINE_H
#define TG_CLI_JOB_LINE_H

#include "cli/job.h"
#include "cli/lines.h"

typedef struct tg_job_lines {
    tg_lines lines;
    size_t number; /* of the last line */
    bool jsonl;    /* they are objects by now, and stay so */
} tg_job_lines;

/* Opens `path` as tg_lines_open does, for prompts of this model. */
int tg_job_lines_open(tg_job_lines *in, const char *path, const tg_model *model, const tg_options *opt, tg_error *err);

/* *job becomes that of the next line, NULL behind the last. What is wrong with a line is the job's failure. */
int tg_job_lines_next(tg_job_lines *in, tg_job **job, const tg_model *model, const tg_options *opt, tg_error *err);

#endif
