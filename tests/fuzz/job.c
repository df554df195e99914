/* job.c - prompts, one a line, as text or as JSON with options of its own. */
#include "fuzz/fuzz.h"

#include "cli/job_line.h"

static tg_model *model;
static tg_options options;

static void load(void)
{
    tg_error err = {0};
    static char name[] = "generate", *arguments[] = {name, NULL};
    MUST(tg_model_load(&model, "tests/golden/gguf/llama.q4_0.gguf", 0, &err) == TG_OK);
    MUST(tg_options_parse(&options, tg_command_find(name, &err), 1, arguments, &err) == TG_OK);
    options.each_line = true;
    tg_say_quiet(true);
}

static void check(const tg_job *job)
{
    const tg_options *o = &job->opt;
    tg_model_info info;
    tg_model_get_info(model, &info);
    if (job->failure.status != TG_OK) {
        MUST(job->failure.message[0]);
        return;
    }
    MUST(o->n_max >= -1 && o->n_best >= 1 && o->n_logprobs >= -1 && o->top_k >= 0 && o->repeat_last_n >= -1);
    MUST(o->temp >= 0 && o->top_p >= 0 && o->top_p <= 1 && o->min_p >= 0 && o->min_p <= 1);
    MUST(o->stop.n >= 0 && o->stop.n <= TG_LIST_MAX && job->request.sampling.n_bias <= TG_LIST_MAX);
    MUST(job->n_ids >= 1 && job->choice);
    for (size_t i = 0; i < job->n_ids; i++)
        MUST(job->ids[i] >= 0 && job->ids[i] < info.n_vocab);
    for (int i = 0; i < job->request.n_stop; i++)
        MUST(job->request.stop[i].n >= 1);
}

/* The first byte chooses how it is asked. */
void fuzz(const uint8_t *data, size_t n)
{
    if (!model)
        load();
    if (n == 0)
        return;
    tg_error err = {0};
    tg_job_lines in = {0};
    tg_job *job = NULL;
    tg_options asked = options;
    asked.jsonl = data[0] & 1;
    asked.chomp = data[0] & 2;
    asked.special = data[0] & 4;
    asked.echo = data[0] & 8;
    MUST(tg_lines_open(&in.lines, fuzz_file(data + 1, n - 1), 1 << 16, &err) == TG_OK);
    for (size_t line = 0;; line++) {
        MUST(line <= n);
        int status = tg_job_lines_next(&in, &job, model, &asked, &err);
        MUST(status == TG_OK);
        if (!job)
            break;
        check(job);
        tg_job_free(job);
    }
    tg_lines_close(&in.lines);
}
