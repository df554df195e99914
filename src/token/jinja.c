/* jinja.c - the variables of a chat template, as transformers names them, and its output. */
#include "token/jinja.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "token/jinja_run.h"

static void set(tg_jinja *j, tg_jdict *dict, const char *name, tg_jvalue value)
{
    tg_jdict_set(j, dict, tg_jtext_literal(j, name).text, value);
}

static tg_jvalue text_of(tg_jinja *j, const void *bytes, size_t n, unsigned flag)
{
    return TG_JVALUE(TEXT, text, tg_jtext_from(j, bytes, n, flag));
}

static tg_jdict *variables(tg_jinja *j, const tg_jinja_input *in)
{
    tg_jdict *all = tg_jdict_new(j);
    tg_jlist *messages = tg_jlist_new(j);
    for (size_t i = 0; i < in->n_messages; i++) {
        const tg_chat_message *m = &in->messages[i];
        unsigned flag = in->params->special ? 0 : strcmp(m->role, "assistant") ? TG_UNIT_DATA : TG_UNIT_ANSWER;
        tg_jdict *message = tg_jdict_new(j);
        set(j, message, "role", tg_jtext_literal(j, m->role));
        set(j, message, "content", text_of(j, m->content, m->n_bytes, flag));
        tg_jlist_add(j, messages, TG_JVALUE(DICT, dict, message));
    }
    set(j, all, "messages", TG_JVALUE(LIST, list, messages));
    set(j, all, "tools", (tg_jvalue){.kind = TG_J_NONE});
    set(j, all, "documents", (tg_jvalue){.kind = TG_J_NONE});
    set(j, all, "add_generation_prompt", tg_jbool(!in->params->closed));
    if (in->params->thinking != TG_THINKING_DEFAULT)
        set(j, all, "enable_thinking", tg_jbool(in->params->thinking == TG_THINKING_ON));
    if (in->bos)
        set(j, all, "bos_token", text_of(j, in->bos, in->n_bos, 0));
    if (in->eos)
        set(j, all, "eos_token", text_of(j, in->eos, in->n_eos, 0));
    return all;
}

static tg_status hand_out(tg_jtext from, char **text, uint8_t **plain, size_t *n, tg_error *err)
{
    *text = tg_alloc(from.n, 1, "a conversation", err);
    *plain = tg_alloc(from.n, 1, "a conversation", err);
    if (!*text || !*plain) {
        free(*text);
        free(*plain);
        *text = NULL;
        *plain = NULL;
        return TG_E_RESOURCE;
    }
    for (size_t i = 0; i < from.n; i++) {
        (*text)[i] = (char)from.s[i];
        (*plain)[i] = (uint8_t)(from.s[i] >> 8);
    }
    *n = from.n;
    return TG_OK;
}

/* A template works with copies of the messages; this many of each byte, and something to work with. */
enum { BYTES_PER_BYTE = 256, BYTES_MORE = 64 << 20 };

tg_status tg_jinja_render(const tg_jinja_input *in, char **text, uint8_t **plain, size_t *n, tg_error *err)
{
    tg_error unheard = {0};
    tg_jbuffer out = {0};
    uint64_t size = in->n_bytes;
    *text = NULL;
    *plain = NULL;
    *n = 0;
    err = err ? err : &unheard;
    if (in->n_bytes > TG_MAX_TEMPLATE_BYTES)
        return tg_fail(err, TG_E_MODEL, in->file, "chat template too large (found %zu bytes, allowed %d)", in->n_bytes,
                       TG_MAX_TEMPLATE_BYTES);
    for (size_t i = 0; i < in->n_messages; i++)
        size += in->messages[i].n_bytes + 64;
    tg_jinja j = {.max_bytes = BYTES_MORE + BYTES_PER_BYTE * size, .file = in->file, .err = err, .out = &out};
    j.now = in->params->now ? in->params->now : (int64_t)time(NULL);
    j.arena = tg_arena_create(err);
    if (!j.arena)
        return TG_E_RESOURCE;
    tg_jnode *all = tg_jinja_parse(&j, in->template, in->n_bytes);
    tg_jinja_run(&j, variables(&j, in), all);
    tg_status status = j.failed ? err->status : hand_out(tg_jbuffer_text(&out), text, plain, n, err);
    tg_arena_free(j.arena);
    return status;
}
