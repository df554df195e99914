/* cmd_pull.c - fetches a model and tells its path. */
#include <string.h>

#include "cli/downloads.h"
#include "cli/options.h"
#include "cli/text.h"

/* What a file's state is called; in a dry run, what would become of it. */
static const char *state_name(const tg_fetch_file *file, bool dry_run)
{
    if (file->state == TG_FETCH_CACHED)
        return "cached";
    if (dry_run)
        return file->done ? "resume" : "fetch";
    return file->resumed ? "resumed" : "fetched";
}

static uint64_t brought(const tg_fetch_file *file)
{
    return file->state == TG_FETCH_DONE ? file->done - file->resumed : 0;
}

static json_t *size_or_null(uint64_t size)
{
    return size == TG_SIZE_UNKNOWN ? json_null() : json_integer((json_int_t)size);
}

static void put_json(tg_output *out, const tg_pull_result *r, bool dry_run)
{
    json_t *files = json_array();
    uint64_t fetched = 0;
    for (size_t i = 0; i < r->n_files; i++) {
        const tg_fetch_file *f = &r->files[i];
        fetched += brought(f);
        json_array_append_new(files, json_pack("{s:o, s:o, s:o, s:s, s:I, s:I}", "name", tg_output_json_name(f->name), "size",
                                               size_or_null(f->size), "digest", tg_output_json_name(f->digest), "state",
                                               state_name(f, dry_run), "resumed", (json_int_t)f->resumed, "fetched",
                                               (json_int_t)brought(f)));
    }
    tg_output_json(out,
                   json_pack("{s:o, s:o, s:o, s:o, s:I}", "path", tg_output_json_name(r->path), "repo", tg_output_json_name(r->repo),
                             "commit", tg_output_json_name(r->commit), "files", files, "fetched", (json_int_t)fetched),
                   JSON_INDENT(2));
    tg_output_write(out, "\n", 1);
}

/* What would be fetched. */
static void put_plan(tg_output *out, const tg_pull_result *r)
{
    uint64_t total = 0;
    size_t n = 0;
    char size[TG_TEXT_BYTES];
    for (size_t i = 0; i < r->n_files; i++) {
        const tg_fetch_file *f = &r->files[i];
        bool known = f->size != TG_SIZE_UNKNOWN;
        tg_output_print(out, "%-6s  %8s  ", state_name(f, true), known ? tg_text_bytes(size, f->size) : "?");
        tg_output_quoted(out, f->name, strlen(f->name));
        tg_output_write(out, "\n", 1);
        if (f->state == TG_FETCH_CACHED)
            continue;
        n++;
        if (known && total != TG_SIZE_UNKNOWN)
            total += f->size - f->done;
        else
            total = TG_SIZE_UNKNOWN;
    }
    tg_output_flush(out);
    tg_say_note("%zu of %zu file%s to fetch, %s", n, r->n_files, r->n_files == 1 ? "" : "s",
                total == TG_SIZE_UNKNOWN ? "of sizes that are not known" : tg_text_bytes(size, total));
}

static void put_result(tg_output *out, const tg_options *opt, const tg_pull_result *r)
{
    if (opt->json) {
        put_json(out, r, opt->dry_run);
    } else if (opt->dry_run) {
        put_plan(out, r);
    } else {
        tg_output_text(out, r->path, strlen(r->path));
        tg_output_write(out, "\n", 1);
    }
}

int tg_cmd_pull(const tg_options *opt, tg_error *err)
{
    static tg_output out;
    tg_pull_result result;
    if (!opt->operand)
        return tg_cli_fail(err, TG_E_USAGE, "pull needs a model: REPO, REPO:FILE, a URL, or a name of tinygpt list --catalog");
    tg_pull_params params = {
        .what = opt->operand,
        .files = (const char *const *)opt->operands + 1,
        .n_files = (size_t)opt->n_operands - 1,
        .revision = opt->revision,
        .include = opt->include.text,
        .exclude = opt->exclude.text,
        .n_include = (size_t)opt->include.n,
        .n_exclude = (size_t)opt->exclude.n,
        .local_dir = opt->local_dir,
        .sha256 = opt->sha256,
        .max_wait = opt->max_wait,
        .offline = opt->offline,
        .force = opt->force,
        .dry_run = opt->dry_run,
    };
    int status = tg_cli_pull(&params, &result, err);
    if (!status)
        status = tg_output_open(&out, NULL, err);
    if (!status) {
        put_result(&out, opt, &result);
        status = tg_output_close(&out, TG_OK, err);
    }
    tg_pull_result_free(&result);
    return status;
}
