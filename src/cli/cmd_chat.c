/* cmd_chat.c - a conversation: each message is answered, and both are remembered.
 *
 * Every turn renders the whole conversation anew and asks the generator to go on with it. What is in the cache from
 * the turns before is not computed again, and what the template writes otherwise than before, as one that leaves out
 * old thoughts, is. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/conversation.h"
#include "cli/engine.h"
#include "cli/input.h"
#include "cli/prompt.h"
#include "cli/request.h"
#include "cli/saved_chat.h"
#include "cli/signals.h"
#include "cli/text.h"

typedef struct chat {
    tg_options *opt;
    tg_model *model;
    tg_session *session;
    tg_generator *generator;
    tg_conversation conversation;
    tg_request request;
    tg_request_room room;
    tg_output *out;
    int n_ctx;
    bool strips_space;

    /* the last turn */
    int32_t *ids; /* [n_ids] its prompt and its answer, for /save */
    size_t n_ids;
    tg_bytes answer;
    bool no_memory;
    size_t n_prompt, n_reused;
    int n_generated;
    tg_finish finish;
    double begun, prompt_seconds, decode_seconds;
} chat;

/* ---- preparing ---------------------------------------------------------------------------------- */

/* The token that the template ends answers with, by its name, where the model does not know it as an end. */
static void add_end(chat *c)
{
    tg_stop_text *end = &c->room.stop[c->request.n_stop];
    if (c->conversation.end < 0 || tg_token_is_eog(c->model, c->conversation.end) || c->request.n_stop == TG_LIST_MAX)
        return;
    end->bytes = tg_token_bytes(c->model, c->conversation.end, &end->n);
    c->request.n_stop++;
}

static int load(chat *c, const char *path, tg_error *err)
{
    return tg_saved_chat_load(&c->conversation, c->generator, c->ids, &c->n_ids, c->n_ctx, &c->request.sampling, path, err);
}

static int save(chat *c, const char *path, tg_error *err)
{
    return tg_saved_chat_save(&c->conversation, c->generator, c->ids, c->n_ids, &c->request.sampling, path, err);
}

static int prepare(chat *c, tg_error *err)
{
    enum { CONTEXT = 8192 };
    tg_tokenizer_info tokens;
    int status = tg_engine_load(&c->model, NULL, c->opt, 0, err);
    if (!status)
        status = tg_engine_check_output(c->opt->session, c->model, c->opt, err);
    if (!status)
        status = tg_conversation_open(&c->conversation, c->model, c->opt, err);
    if (!status)
        status = tg_engine_context(&c->n_ctx, c->model, c->opt, 0, CONTEXT, err);
    if (!status)
        status = tg_engine_session(&c->session, c->model, c->opt, c->n_ctx, err);
    if (!status)
        status = (int)tg_generator_create(&c->generator, c->model, c->session, err);
    if (!status)
        status = tg_request_seed(c->opt, err);
    if (!status)
        status = tg_request_make(&c->request, &c->room, c->opt, err);
    if (!status && !(c->ids = calloc((size_t)c->n_ctx + 1, sizeof *c->ids)))
        status = tg_cli_fail_memory(err, ((size_t)c->n_ctx + 1) * sizeof *c->ids, "the tokens of a turn");
    if (!status && c->opt->session && access(c->opt->session, F_OK) == 0)
        status = load(c, c->opt->session, err);
    if (status)
        return status;
    c->request.n_top = -1;
    add_end(c);
    tg_model_get_tokenizer(c->model, &tokens);
    c->strips_space = tokens.strips_space;
    return TG_OK;
}

/* ---- a turn ------------------------------------------------------------------------------------- */

static bool stopped(const chat *c)
{
    return c->out->error || c->no_memory || tg_signals_caught();
}

static bool show(void *arg, const tg_piece *piece)
{
    chat *c = arg;
    /* The space that a vocabulary of words with spaces begins every text with is no part of it. */
    size_t skip = c->answer.n == 0 && c->strips_space && piece->n_bytes && piece->text[0] == ' ';
    if (c->n_generated == 0)
        c->prompt_seconds = tg_seconds() - c->begun;
    c->n_generated += piece->id >= 0 && piece->finish != TG_FINISH_END;
    if (piece->id >= 0 && c->n_ids < (size_t)c->n_ctx)
        c->ids[c->n_ids++] = piece->id;
    c->finish = piece->finish;
    c->no_memory = !tg_bytes_append(&c->answer, piece->text, piece->n_bytes);
    tg_output_text(c->out, piece->text + skip, piece->n_bytes - skip);
    tg_output_flush(c->out);
    return !stopped(c);
}

static int generate(chat *c, tg_error *err)
{
    tg_progress progress = {0};
    tg_generator_info info;
    int status = (int)tg_generator_add(c->generator, &c->request, err);
    while (!status && !stopped(c)) {
        tg_generator_get_info(c->generator, &info);
        if (info.n_active == 0)
            break;
        if (info.n_reading > 0)
            tg_progress_show(&progress, "prompt tokens", (int64_t)info.n_prompt_done, (int64_t)info.n_prompt);
        else
            tg_progress_clear(&progress);
        status = (int)tg_generator_step(c->generator, err);
        if (status == TG_E_STOPPED) /* a signal, seen above, or one that came too late for the last turn */
            status = TG_OK;
    }
    tg_progress_clear(&progress);
    tg_generator_cancel(c->generator);
    tg_output_text_end(c->out);
    tg_output_flush(c->out);
    return status || !c->no_memory ? status : tg_cli_fail_memory(err, c->answer.n, "the answer");
}

static int answer(chat *c, const int32_t *ids, size_t n_ids, tg_error *err)
{
    tg_generator_info before, after;
    tg_generator_get_info(c->generator, &before);
    if (n_ids > 0) /* a template may write nothing */
        memcpy(c->ids, ids, n_ids * sizeof *ids);
    c->n_ids = n_ids;
    c->request.ids = ids;
    c->request.n_ids = n_ids;
    c->request.sink = show;
    c->request.arg = c;
    c->request.sampling.stream++;
    c->n_prompt = n_ids;
    c->answer.n = 0;
    c->n_generated = 0;
    c->finish = TG_FINISH_NONE;
    c->begun = tg_seconds();
    c->prompt_seconds = 0;
    tg_signals_watch(c->session);
    int status = generate(c, err);
    tg_signals_watch(NULL);
    tg_generator_get_info(c->generator, &after);
    c->n_reused = after.n_reused - before.n_reused;
    c->decode_seconds = tg_seconds() - c->begun - c->prompt_seconds;
    return status;
}

static double rate(double n, double seconds)
{
    return n > 0 && seconds > 0 ? n / seconds : 0;
}

static void tell_stats(const chat *c)
{
    size_t n_new = c->n_prompt - c->n_reused;
    tg_say_line("conversation:     %zu tokens of %d, %zu of them in the cache before", c->n_prompt, c->n_ctx, c->n_reused);
    tg_say_line("prompt tokens:    %zu in %.3f s, %.1f tokens/s", n_new, c->prompt_seconds,
                rate((double)n_new, c->prompt_seconds));
    tg_say_line("generated tokens: %d in %.3f s, %.1f tokens/s", c->n_generated, c->decode_seconds,
                rate(c->n_generated > 1 ? c->n_generated - 1 : 0, c->decode_seconds));
}

/* What an answer has room for at least: what is older gives way to it. */
static size_t room_for_answer(const chat *c)
{
    int quarter = c->n_ctx / 4, most = c->opt->n_max;
    return (size_t)(most >= 0 && most < quarter ? most : quarter);
}

/* Answers a message. Where that fails it is not remembered. */
static int turn(chat *c, const char *text, size_t n, tg_error *err)
{
    int32_t *ids = NULL;
    size_t n_ids;
    int n_forgotten = 0;
    int status = tg_engine_check_text(c->model, c->opt, n, err);
    if (!status)
        status = tg_conversation_add(&c->conversation, "user", text, n, err);
    if (status)
        return status;
    status = tg_conversation_tokens(&c->conversation, (size_t)c->n_ctx - room_for_answer(c), &ids, &n_ids, &n_forgotten,
                                    err);
    if (n_forgotten)
        tg_say_warning("context full: the first %d messages are forgotten (-c sets its size, now %d; /reset begins anew)",
                       n_forgotten, c->n_ctx);
    if (!status)
        status = answer(c, ids, n_ids, err);
    tg_free(ids);
    if (status || c->answer.n == 0) {
        tg_conversation_drop_last(&c->conversation);
        return status;
    }
    if (c->finish == TG_FINISH_CONTEXT)
        tg_say_warning("context full: the answer ends here (-c sets its size, now %d)", c->n_ctx);
    if (c->opt->stats)
        tell_stats(c);
    return tg_conversation_add(&c->conversation, "assistant", c->answer.bytes, c->answer.n, err);
}

/* ---- commands ----------------------------------------------------------------------------------- */

static int do_help(chat *c, const char *rest, tg_error *err);

static int do_system(chat *c, const char *rest, tg_error *err)
{
    const tg_chat_message *now = &c->conversation.messages[0];
    tg_text_quoted q;
    if (*rest)
        return tg_conversation_set_system(&c->conversation, rest, err);
    tg_say_line(now->content ? "%s" : "there is no system message", now->content ? tg_text_quote(&q, now->content) : "");
    return TG_OK;
}

static int do_reset(chat *c, const char *rest, tg_error *err)
{
    (void)rest;
    (void)err;
    tg_conversation_reset(&c->conversation);
    return TG_OK;
}

static int do_save(chat *c, const char *rest, tg_error *err)
{
    if (!*rest)
        return tg_cli_fail(err, TG_E_USAGE, "/save needs the name of a file");
    int status = tg_engine_check_output(rest, c->model, c->opt, err);
    status = status ? status : save(c, rest, err);
    if (!status)
        tg_say_note("saved: %zu tokens", c->n_ids);
    return status;
}

static int do_load(chat *c, const char *rest, tg_error *err)
{
    if (!*rest)
        return tg_cli_fail(err, TG_E_USAGE, "/load needs the name of a file");
    int status = load(c, rest, err);
    if (!status)
        tg_say_note("loaded: %zu tokens", c->n_ids);
    return status;
}

static int do_stats(chat *c, const char *rest, tg_error *err)
{
    (void)rest;
    (void)err;
    tell_stats(c);
    return TG_OK;
}

static const struct {
    const char *name, *arg, *help;
    int (*run)(chat *c, const char *rest, tg_error *err); /* NULL: ends the program */
} commands[] = {
    {"/help", "", "this list", do_help},
    {"/system", " [TEXT]", "show the system message, or replace it; the conversation goes on", do_system},
    {"/reset", "", "forget the conversation, all but the system message", do_reset},
    {"/save", " FILE", "save the conversation with its cache", do_save},
    {"/load", " FILE", "go on with a saved one instead of this", do_load},
    {"/stats", "", "counts and speeds of the last answer", do_stats},
    {"/exit", "", "end, as Ctrl-D does", NULL},
    {"/bye", "", "the same", NULL},
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

static int do_help(chat *c, const char *rest, tg_error *err)
{
    (void)c;
    (void)rest;
    (void)err;
    for (int i = 0; i < N_COMMANDS; i++)
        tg_say_line("  %s%-*s  %s", commands[i].name, 16 - (int)strlen(commands[i].name), commands[i].arg, commands[i].help);
    tg_say_line("  A line that ends in \\ goes on in the next; \"\"\" begins and ends a message of many lines.\n"
                "  Ctrl-C stops an answer, and ends the program where nothing was typed.");
    return TG_OK;
}

/* Runs a line that begins with a slash; false ends the program. */
static bool command(chat *c, const char *line, tg_error *err)
{
    const char *names[N_COMMANDS], *rest = line + strcspn(line, " \t\n");
    char name[TG_NAME_MAX + 1];
    tg_text_quoted q;
    snprintf(name, sizeof name, "%.*s", (int)(rest - line), line);
    rest += strspn(rest, " \t");
    for (int i = 0; i < N_COMMANDS; i++) {
        names[i] = commands[i].name;
        if (strcmp(names[i], name) != 0)
            continue;
        if (commands[i].run && commands[i].run(c, rest, err))
            tg_say_error("%s", err->message);
        return commands[i].run;
    }
    const char *nearest = tg_options_nearest(name, names, N_COMMANDS);
    tg_say_error("unknown command %s (%s%s%s)", tg_text_quote(&q, name), nearest ? "did you mean " : "/help lists them",
                 nearest ? nearest : "", nearest ? "?" : "");
    return true;
}

/* ---- the two ways of talking --------------------------------------------------------------------- */

/* An error that concerns one message is told, and the next one may fare better. */
static bool goes_on(int status)
{
    return status == TG_E_USAGE || status == TG_E_NUMERIC;
}

static int converse(chat *c, tg_error *err)
{
    tg_input input = {0};
    int status = TG_OK;
    tg_say_note("/help lists the commands, Ctrl-D ends");
    while (!status && !c->out->error) {
        tg_input_kind kind = tg_input_read(&input, err);
        if (kind == TG_INPUT_FAILED)
            status = (int)err->status;
        if (kind == TG_INPUT_FAILED || kind == TG_INPUT_END)
            break;
        if (kind == TG_INPUT_CLEARED || input.message.n == 0)
            continue;
        if (input.message.bytes[0] == '/') {
            if (!command(c, input.message.bytes, err))
                break;
            continue;
        }
        status = turn(c, input.message.bytes, input.message.n, err);
        if (tg_signals_caught() == SIGINT)
            tg_signals_forget();
        else if (tg_signals_caught())
            break;
        if (goes_on(status)) {
            tg_say_error("%s", err->message);
            status = TG_OK;
        }
        if (c->out->line_open)
            tg_output_write(c->out, "\n", 1);
        tg_output_flush(c->out);
    }
    tg_input_free(&input);
    return status;
}

static int answer_once(chat *c, const tg_options *given, tg_error *err)
{
    tg_prompt text;
    c->opt->chomp = true; /* a message that is piped is what it would be when typed */
    int status = tg_prompt_read(&text, c->opt, tg_engine_max_text(c->model, c->opt), err);
    if (!status && text.n == 0)
        status = tg_cli_fail(err, TG_E_USAGE, "the message is empty");
    if (!status) {
        tg_request_tell_seed(given, c->opt);
        status = turn(c, text.bytes ? text.bytes : "", text.n, err);
    }
    tg_prompt_free(&text);
    return status;
}

int tg_cmd_chat(const tg_options *opt, tg_error *err)
{
    static tg_output out;
    tg_options mine = *opt;
    chat c = {.opt = &mine, .out = &out};
    bool once = opt->operand || opt->file || !isatty(STDIN_FILENO);
    int status = once ? tg_prompt_check(opt, err) : TG_OK;
    if (!status)
        status = prepare(&c, err);
    if (!status)
        status = tg_output_open(&out, NULL, err);
    if (!status) {
        if (!once)
            tg_request_tell_seed(opt, &mine);
        status = once ? answer_once(&c, opt, err) : converse(&c, err);
        if (!status)
            status = (int)tg_model_check_unchanged(c.model, err);
        if (!status && opt->session)
            status = save(&c, opt->session, err);
        status = tg_output_close(&out, status, err);
        tg_engine_tell_clamped(c.session);
    }
    tg_conversation_free(&c.conversation);
    tg_generator_free(c.generator);
    tg_session_free(c.session);
    tg_model_free(c.model);
    free(c.answer.bytes);
    free(c.ids);
    return status;
}
