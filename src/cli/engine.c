/* engine.c - choices that several commands share: model, context, threads. */
#include "cli/engine.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/locate.h"
#include "cli/prompt.h"
#include "cli/signals.h"
#include "cli/text.h"

enum { CONTEXT_MAX = 1 << 20 }; /* a limit that the library sets as well */

/* ---- model ------------------------------------------------------------------------------------
 */

/* The model that comes with tinygpt: in the tree that the program was built in, up to two folders
 * above it (build/release/tinygpt), or where `make install` puts it. False when there is none. */
static bool find_default(char *path, size_t room)
{
    static const char *const places[] = {"models/tales.gguf", "../models/tales.gguf",
                                         "../../models/tales.gguf", "../share/tinygpt/tales.gguf"};
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0)
        return false;
    self[n] = '\0';
    char *slash = strrchr(self, '/');
    if (!slash)
        return false;
    *slash = '\0';
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        int len = snprintf(path, room, "%s/%s", self, places[i]);
        if (len > 0 && (size_t)len < room && access(path, R_OK) == 0)
            return true;
    }
    return false;
}

/* What of the options makes a need of memory less, or does without what is not there. */
static void hint(tg_error *err, const char *before, const char *option, const char *behind)
{
    const size_t n = strlen(err->message);
    snprintf(err->message + n, sizeof err->message - n, "; %s%s%s", before, option, behind);
}

/* What was asked for and has no use. Returns whether weights are to be laid anew. */
static bool warn_of_idle(const tg_options *opt)
{
    const char *isa = getenv("TINYGPT_ISA");
    tg_text_quoted q;
    if (isa && *isa && strcmp(isa, "scalar") && strcmp(isa, "avx2") && strcmp(isa, "avx512"))
        tg_say_warning("TINYGPT_ISA is %s, none of scalar, avx2 and avx512: the best level is used",
                       tg_text_quote(&q, isa));
    if (opt->interleave && opt->precise)
        tg_say_warning("--interleave is left out: --precise reads the rows of a matrix one by one");
    return opt->interleave && !opt->precise;
}

int tg_engine_load(tg_model **model, const char *path, const tg_options *opt, unsigned flags,
                   tg_error *err)
{
    char found[4200];
    char *at;
    tg_text_quoted q;
    tg_tokenizer_info tokens;
    *model = NULL;
    if (path && opt->model)
        return tg_cli_fail(err, TG_E_USAGE, "the model is given twice: as %s and with -m",
                           tg_text_quote(&q, path));
    if (!path)
        path = opt->model;
    if (path && !*path) /* a variable that was not set: not to be taken for another model */
        return tg_cli_fail(err, TG_E_USAGE, "the name of the model is empty");
    if (!path)
        path = getenv("TINYGPT_MODEL");
    if (!path || !path[0]) {
        if (!find_default(found, sizeof found))
            return tg_cli_fail(err, TG_E_IO,
                               "no model: give one with -m or in TINYGPT_MODEL (the default, "
                               "models/tales.gguf, is not beside the program)");
        path = found;
    }
    int status = tg_locate(&at, path, err);
    if (status)
        return status;
    double begun = tg_seconds();
    tg_signals_advise(" (--no-mmap reads it first)");
    flags |= (opt->no_mmap ? TG_LOAD_NO_MMAP : 0) | (warn_of_idle(opt) ? TG_LOAD_INTERLEAVED : 0);
    status = (int)tg_model_load(model, at, flags, err);
    if (status == TG_E_RESOURCE && flags & (TG_LOAD_NO_MMAP | TG_LOAD_INTERLEAVED))
        hint(err, "without ", opt->no_mmap ? "--no-mmap" : "--interleave", " it takes less");
    if (!status)
        tg_model_get_tokenizer(*model, &tokens);
    if (!status && tokens.pre_assumed)
        tg_say_warning("%s does not say how it cuts texts (tokenizer.ggml.pre): as GPT-2 does, perhaps wrongly",
                       tg_text_quote(&q, at));
    if (!status && opt->verbose)
        tg_say_note("model %s, loaded in %.3f s", tg_text_quote(&q, at), tg_seconds() - begun);
    tg_free(at);
    return status;
}

int tg_engine_check_output(const char *path, const tg_model *model, const tg_options *opt, tg_error *err)
{
    const char *const inputs[] = {opt->file, opt->kl, opt->chat_template, "/dev/stdin"};
    if (tg_output_is_stdout(path))
        return TG_OK;
    return (int)tg_model_check_output(model, path, inputs, sizeof inputs / sizeof *inputs, err);
}

/* ---- text -------------------------------------------------------------------------------------
 */

size_t tg_engine_max_text(const tg_model *model, const tg_options *opt)
{
    enum { NORMALIZED = 3 }; /* bytes of a text that normalising makes one of, at most */
    tg_model_info info;
    tg_tokenizer_info tokens;
    tg_model_get_info(model, &info);
    tg_model_get_tokenizer(model, &tokens);
    const size_t longest = tokens.longest ? tokens.longest : 1;
    int n_ctx = opt->n_ctx > info.n_ctx_train ? opt->n_ctx : info.n_ctx_train;
    return (size_t)(n_ctx < CONTEXT_MAX ? n_ctx : CONTEXT_MAX) * longest * NORMALIZED;
}

size_t tg_engine_max_line(const tg_model *model, const tg_options *opt, bool json)
{
    enum { ESCAPED = 6, FIELDS = 1 << 16 }; /* bytes for one of the text in JSON, and for what is no text */
    size_t most = tg_engine_max_text(model, opt);
    return json ? ESCAPED * most + FIELDS : most;
}

int tg_engine_check_text(const tg_model *model, const tg_options *opt, size_t n_bytes, tg_error *err)
{
    size_t most = tg_engine_max_text(model, opt);
    return n_bytes <= most ? TG_OK : tg_prompt_too_long(most, err);
}

int tg_engine_tokens(int32_t **ids, size_t *n, const tg_model *model, const tg_options *opt, const char *text,
                     size_t n_bytes, tg_error *err)
{
    size_t n_dropped = 0;
    unsigned flags = (opt->no_bos ? 0 : TG_TOK_BOS) | (opt->special ? TG_TOK_SPECIAL : 0);
    int status = (int)tg_tokenize(model, text, n_bytes, flags, ids, n, &n_dropped, err);
    if (!status && n_dropped > 0)
        tg_say_warning(
            "%zu byte%s of the text cannot be expressed in the vocabulary and %s left out",
            n_dropped, n_dropped == 1 ? "" : "s", n_dropped == 1 ? "is" : "are");
    tg_tokenizer_info tokens;
    tg_model_get_tokenizer(model, &tokens);
    if (!status && *n > 1 && (*ids)[0] == tokens.bos && (*ids)[1] == tokens.bos)
        tg_say_warning("the text begins with the token that is put before every text: it is there twice (--no-bos)");
    return status;
}

int tg_engine_encode(int32_t **ids, size_t *n, tg_prompt *prompt, const tg_model *model,
                     const tg_options *opt, size_t max_bytes, tg_error *err)
{
    tg_prompt text;
    int status = tg_prompt_read(&text, opt, max_bytes, err);
    if (status)
        return status;
    status = tg_engine_tokens(ids, n, model, opt, text.bytes ? text.bytes : "", text.n, err);
    if (!status && prompt)
        *prompt = text;
    else
        tg_prompt_free(&text);
    return status;
}

/* ---- session ----------------------------------------------------------------------------------
 */

int tg_engine_context(int *n_ctx, const tg_model *model, const tg_options *opt, size_t n_prompt,
                      int n_more, tg_error *err)
{
    tg_model_info info;
    tg_model_get_info(model, &info);
    int trained = info.n_ctx_train;
    uint64_t need = (uint64_t)n_prompt + (uint64_t)(n_more < 0 ? 0 : n_more);
    if (opt->n_ctx > trained && info.positions_bounded)
        return tg_cli_fail(err, TG_E_USAGE,
                           "-c %d is more than the %d positions that this model has", opt->n_ctx,
                           trained);
    if (opt->n_ctx)
        *n_ctx = opt->n_ctx;
    else if (n_more < 0 || need > (uint64_t)trained)
        *n_ctx = trained;
    else
        *n_ctx = (int)((need + 255) / 256 * 256);
    if (!opt->n_ctx && *n_ctx > trained)
        *n_ctx = trained;
    if (opt->keep > (opt->n_ctx ? opt->n_ctx : trained))
        return tg_cli_fail(err, TG_E_USAGE, "--keep %d is more than the context of %d positions", opt->keep,
                           opt->n_ctx ? opt->n_ctx : trained);
    if (n_prompt > (size_t)*n_ctx)
        return tg_cli_fail(
            err, TG_E_USAGE, "the prompt has %zu tokens and the context %d positions%s", n_prompt,
            *n_ctx, *n_ctx < trained || !info.positions_bounded ? " (-c sets it)" : "");
    if (*n_ctx > trained && (n_more < 0 || need > (uint64_t)trained))
        tg_say_warning("going past the %d positions that the model was trained for: expect worse text",
                       trained);
    return TG_OK;
}

/* The first number of OMP_NUM_THREADS; 0, the library's choice, when it is not set or makes no
 * sense, as OpenMP itself has it. */
static int threads_of_environment(void)
{
    const char *text = getenv("OMP_NUM_THREADS");
    char first[8];
    int64_t n;
    if (!text)
        return 0;
    snprintf(first, sizeof first, "%.*s", (int)strcspn(text, ", "), text);
    return tg_number_int(first, 1, 512, &n) ? (int)n : 0;
}

static int n_cpus(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : CPU_SETSIZE;
}

tg_session_params tg_engine_params(const tg_options *opt, int n_ctx)
{
    return (tg_session_params){
        .n_threads = opt->n_threads ? opt->n_threads : threads_of_environment(),
        .n_ctx = n_ctx,
        .n_ctx_seq = n_ctx,
        .n_batch = opt->n_batch,
        .n_seq_max = 1,
        .type_k = (tg_kv_type)(opt->kv_type_k >= 0 ? opt->kv_type_k : opt->kv_type),
        .type_v = (tg_kv_type)(opt->kv_type_v >= 0 ? opt->kv_type_v : opt->kv_type),
        .window = opt->window,
        .keep = opt->keep,
        .attention = opt->attention,
        .precise = opt->precise,
        .no_blas = opt->blas != 0,
    };
}

int tg_engine_session(tg_session **session, const tg_model *model, const tg_options *opt, int n_ctx,
                      tg_error *err)
{
    return tg_engine_sessions(session, model, opt, n_ctx, 1, n_ctx, err);
}

int tg_engine_sessions(tg_session **session, const tg_model *model, const tg_options *opt, int n_ctx, int n_seq,
                       int n_ctx_all, tg_error *err)
{
    tg_session_params params = tg_engine_params(opt, n_ctx);
    tg_session_info info;
    params.n_seq_max = n_seq;
    params.n_ctx = n_ctx_all < CONTEXT_MAX ? n_ctx_all : CONTEXT_MAX;
    if (params.n_threads > n_cpus())
        tg_say_warning("%d threads on %d processors", params.n_threads, n_cpus());
    *session = NULL;
    int status = (int)tg_session_create(session, model, &params, err);
    if (status == TG_E_RESOURCE)
        hint(err, "-c, -b, --kv-type", opt->blas ? "" : " and --blas off", " make it less");
    if (status == TG_E_IO)
        hint(err, "--blas off", "", " does without it");
    if (status)
        return status;
    tg_session_get_info(*session, &info);
    if (info.n_threads < info.n_threads_asked)
        tg_say_warning("fewer threads can be had than there should be: %d", info.n_threads);
    if (!opt->verbose)
        return TG_OK;
    tg_say_note("%d thread%s, %s kernels, context %d, batch %d", info.n_threads,
                info.n_threads == 1 ? "" : "s", info.isa, info.n_ctx, info.n_batch);
    tg_say_note("memory: cache %.1f MiB when full, scratch %.1f MiB",
                (double)info.kv_bytes / 1048576, (double)info.scratch_bytes / 1048576);
    return TG_OK;
}

void tg_engine_tell_clamped(const tg_session *session)
{
    tg_session_info info;
    tg_session_get_info(session, &info);
    if (info.n_saturated > 0)
        tg_say_warning("%llu values beyond the range of the cache's f16 were clamped (--kv-type f32 holds them)",
                       (unsigned long long)info.n_saturated);
}

uint64_t tg_engine_peak_bytes(void)
{
    char line[128];
    uint64_t kib = 0;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, "VmHWM:", 6))
            kib = strtoull(line + 6, NULL, 10);
    if (f)
        fclose(f);
    return kib * 1024;
}

void tg_engine_forget_peak(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "we");
    if (!f)
        return;
    fputs("5", f);
    fclose(f);
}
