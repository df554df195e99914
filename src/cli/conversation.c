/* conversation.c - see conversation.h. */
#include "cli/conversation.h"

#include <stdlib.h>
#include <string.h>

#include "cli/prompt.h"
#include "cli/text.h"

/* ---- messages ----------------------------------------------------------------------------------- */

static void free_content(tg_chat_message *m)
{
    free((void *)(uintptr_t)m->content);
}

void tg_conversation_free(tg_conversation *c)
{
    for (size_t i = 0; i < c->n; i++)
        free_content(&c->messages[i]);
    free(c->messages);
    free(c->template);
}

static char *copy(const char *bytes, size_t n, tg_error *err)
{
    char *mine = malloc(n + 1);
    if (!mine) {
        tg_cli_fail_memory(err, n + 1, "a message");
        return NULL;
    }
    memcpy(mine, bytes, n);
    mine[n] = '\0';
    return mine;
}

/* `content` is owned from here on. */
static int add(tg_conversation *c, const char *role, char *content, tg_error *err)
{
    if (c->n == c->room) {
        size_t room = 2 * c->room + 16;
        tg_chat_message *more = realloc(c->messages, room * sizeof *more);
        if (!more)
            return tg_cli_fail_memory(err, room * sizeof *more, "messages");
        c->messages = more;
        c->room = room;
    }
    c->messages[c->n++] = (tg_chat_message){role, content, 0};
    return TG_OK;
}

static void drop(tg_conversation *c, size_t at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free_content(&c->messages[at + i]);
    c->n -= n;
    memmove(c->messages + at, c->messages + at + n, (c->n - at) * sizeof *c->messages);
}

/* ---- the template ------------------------------------------------------------------------------- */

static void list_names(char *text, size_t room)
{
    const char *body, *name;
    size_t n = 0;
    for (int i = 0; n < room && (name = tg_chat_template(i, &body)); i++)
        n += (size_t)snprintf(text + n, room - n, i ? ", %s" : "%s", name);
}

/* NULL: none has that name. */
static const char *find_by_name(const char *wish)
{
    const char *text, *name;
    for (int i = 0; (name = tg_chat_template(i, &text)); i++)
        if (!strcmp(name, wish))
            return text;
    return NULL;
}

static int read_template(tg_conversation *c, const char *path, tg_error *err)
{
    enum { MAX_BYTES = 1 << 20 };
    tg_prompt text;
    tg_options from = {.file = path, .no_stdin = true};
    int status = tg_prompt_read(&text, &from, MAX_BYTES, err);
    if (status)
        return status;
    if (!text.bytes || memchr(text.bytes, '\0', text.n)) {
        tg_text_quoted q;
        tg_prompt_free(&text);
        return tg_cli_fail(err, TG_E_MODEL, "%s: not a chat template", tg_text_quote(&q, path));
    }
    text.bytes[text.n] = '\0'; /* for which there is room */
    c->template = text.bytes;
    c->params.jinja = c->template;
    return TG_OK;
}

static int choose_template(tg_conversation *c, const char *wish, tg_error *err)
{
    char names[200];
    tg_text_quoted q;
    tg_model_info info;
    list_names(names, sizeof names);
    c->params.jinja = wish ? find_by_name(wish) : NULL;
    if (c->params.jinja)
        return TG_OK;
    if (wish && strpbrk(wish, "./"))
        return read_template(c, wish, err);
    if (wish)
        return tg_cli_fail(err, TG_E_USAGE, "--chat-template: '%s' is none of %s, nor a file (with a . or a / in its name)",
                           tg_text_quote(&q, wish), names);
    if (tg_model_chat_template(c->model))
        return TG_OK;
    tg_model_get_info(c->model, &info);
    return tg_cli_fail(err, TG_E_MODEL, "%s: no chat template in the model (--chat-template takes %s or a Jinja file)",
                       tg_text_quote(&q, info.path), names);
}

/* Renders n messages, and the system's before them if there is one. */
static int encode(const tg_conversation *c, const tg_chat_message *messages, size_t n, int32_t **ids, size_t *n_ids,
                  tg_error *err)
{
    bool without = !c->messages[0].content;
    return (int)tg_chat_tokens(c->model, &c->params, messages + without, n - without, ids, n_ids, err);
}

static int try_template(const tg_conversation *c, tg_error *err)
{
    const tg_chat_message messages[] = {c->messages[0], {"user", "a", 1}};
    int32_t *ids;
    size_t n;
    int status = encode(c, messages, 2, &ids, &n, err);
    tg_free(ids);
    return status;
}

int tg_conversation_open(tg_conversation *c, const tg_model *model, const tg_options *opt, tg_error *err)
{
    *c = (tg_conversation){.model = model, .params = {.special = opt->special}};
    if (opt->think >= 0)
        c->params.thinking = opt->think ? TG_THINKING_OFF : TG_THINKING_ON;
    int status = choose_template(c, opt->chat_template, err);
    if (!status)
        status = add(c, "system", NULL, err);
    if (!status)
        status = tg_conversation_set_system(c, opt->system, err);
    c->end = status ? -1 : tg_chat_end(model, &c->params);
    return status;
}

/* ---- turns ------------------------------------------------------------------------------------- */

int tg_conversation_add(tg_conversation *c, const char *role, const char *content, size_t n, tg_error *err)
{
    char *mine = copy(content, n, err);
    int status = mine ? add(c, role, mine, err) : TG_E_RESOURCE;
    if (status)
        free(mine);
    else
        c->messages[c->n - 1].n_bytes = n;
    return status;
}

void tg_conversation_drop_last(tg_conversation *c)
{
    drop(c, c->n - 1, 1);
}

void tg_conversation_reset(tg_conversation *c)
{
    drop(c, 1, c->n - 1);
}

int tg_conversation_set_system(tg_conversation *c, const char *text, tg_error *err)
{
    tg_chat_message old = c->messages[0], new = {.role = "system"};
    if (text && *text) {
        new.content = copy(text, strlen(text), err);
        new.n_bytes = strlen(text);
        if (!new.content)
            return TG_E_RESOURCE;
    }
    c->messages[0] = new;
    int status = try_template(c, err);
    if (status)
        c->messages[0] = old;
    free_content(status ? &new : &old);
    return status;
}

/* ---- tokens ------------------------------------------------------------------------------------- */

static bool begins_turn(const tg_conversation *c, size_t i)
{
    return i == 1 || !strcmp(c->messages[i].role, "user");
}

/* Where the turn stands that follows `n` others. */
static size_t turn_at(const tg_conversation *c, size_t n)
{
    size_t i = 1;
    while (n > 0)
        n -= begins_turn(c, ++i);
    return i;
}

/* Renders it as if it began with the message at `from`. */
static int encode_from(tg_conversation *c, size_t from, int32_t **ids, size_t *n_ids, tg_error *err)
{
    tg_chat_message *first = &c->messages[from - 1], forgotten = *first;
    *first = c->messages[0];
    int status = encode(c, first, c->n - (from - 1), ids, n_ids, err);
    *first = forgotten;
    return status;
}

/* Each rendering halves what is left to try: a file may bring a great many turns. */
int tg_conversation_tokens(tg_conversation *c, size_t most, int32_t **ids, size_t *n_ids, int *n_forgotten,
                           tg_error *err)
{
    size_t few = 0, many = 0; /* so many turns must be forgotten, at least and at most */
    for (size_t i = 2; i < c->n; i++)
        many += begins_turn(c, i);
    *n_forgotten = 0;
    for (size_t n = 0;; n = few + (many - few) / 2) {
        size_t from = turn_at(c, n);
        int status = encode_from(c, from, ids, n_ids, err);
        if (status)
            return status;
        bool fits = *n_ids <= most;
        if (fits)
            many = n;
        else
            few = n + 1;
        if (fits && few == many) {
            drop(c, 1, from - 1);
            *n_forgotten = (int)(from - 1);
            return TG_OK;
        }
        tg_free(*ids);
        *ids = NULL;
        if (few > many)
            return tg_cli_fail(err, TG_E_USAGE,
                               "the message has %zu tokens with what stands around it, and the context room for %zu "
                               "beside an answer (-c sets it)", *n_ids, most);
    }
}
