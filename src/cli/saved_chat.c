/* saved_chat.c - messages are an array of [role, content], as JSON; contents that are not UTF-8 lose what is not. */
#include "cli/saved_chat.h"

#include <stdlib.h>
#include <string.h>

#include "cli/given_json.h"
#include "cli/text.h"

static json_t *messages_json(const tg_conversation *c)
{
    json_t *list = json_array();
    for (size_t i = 0; i < c->n; i++)
        if (c->messages[i].content)
            json_array_append_new(list, json_pack("[s, o]", c->messages[i].role,
                                                  tg_output_json_text(c->messages[i].content, c->messages[i].n_bytes)));
    return list;
}

int tg_saved_chat_save(const tg_conversation *c, const tg_generator *generator, const int32_t *ids, size_t n_ids,
                       const tg_sampling *sampling, const char *path, tg_error *err)
{
    json_t *list = messages_json(c);
    char *note = tg_json_lacks_memory() ? NULL : tg_json_text(list, JSON_COMPACT, "the conversation as JSON", err);
    json_decref(list);
    if (!note)
        return tg_cli_fail_memory(err, 1 << 16, "the conversation as JSON");
    const tg_saved_text text = {.ids = ids, .n_ids = n_ids, .seed = sampling->seed, .stream = sampling->stream, .note = note,
                                .n_note = strlen(note)};
    int status = (int)tg_generator_save(generator, &text, path, err);
    tg_free(note);
    return status;
}

/* The role of a message, as it may be said. */
static const char *role_of(const json_t *message, size_t i)
{
    static const char *const roles[] = {"system", "user", "assistant"};
    const char *role = json_string_value(json_array_get(message, 0));
    for (size_t k = 0; role && k < 3; k++)
        if (!strcmp(roles[k], role) && (k == 0) <= (i == 0))
            return roles[k];
    return NULL;
}

/* Whose content is a text; a system's has no NUL, as none can be typed. */
static bool is_message(const json_t *message, size_t i)
{
    const char *role = role_of(message, i);
    const json_t *content = json_array_get(message, 1);
    return json_array_size(message) == 2 && role && json_is_string(content) &&
           (strcmp(role, "system") != 0 || strlen(json_string_value(content)) == json_string_length(content));
}

static bool is_conversation(const json_t *list)
{
    size_t i;
    const json_t *message;
    json_array_foreach(list, i, message)
        if (!is_message(message, i))
            return false;
    return json_is_array(list);
}

static int take_messages(tg_conversation *c, const json_t *list, tg_error *err)
{
    int status = TG_OK;
    tg_conversation_reset(c);
    bool has_system = json_array_size(list) > 0 && !strcmp(role_of(json_array_get(list, 0), 0), "system");
    status = tg_conversation_set_system(c, has_system ? json_string_value(json_array_get(json_array_get(list, 0), 1)) : NULL, err);
    for (size_t i = has_system; i < json_array_size(list) && !status; i++) {
        const json_t *message = json_array_get(list, i), *content = json_array_get(message, 1);
        status = tg_conversation_add(c, role_of(message, i), json_string_value(content), json_string_length(content), err);
    }
    return status;
}

int tg_saved_chat_load(tg_conversation *c, tg_generator *generator, int32_t *ids, size_t *n_ids, int n_ctx,
                       tg_sampling *sampling, const char *path, tg_error *err)
{
    tg_saved *saved;
    tg_text_quoted q;
    json_error_t why;
    int status = tg_session_file_read(&saved, path, c->model, n_ctx, err);
    if (status)
        return status;
    const tg_saved_text *text = tg_saved_get_text(saved);
    json_t *list = tg_given_json(text->note, text->n_note, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    if (!list && json_error_code(&why) == json_error_out_of_memory)
        status = tg_cli_fail_memory(err, text->n_note, "a conversation");
    else if (!is_conversation(list))
        status = tg_cli_fail(err, TG_E_SESSION, "%s: a text, and no conversation", tg_text_quote(&q, path));
    if (!status)
        status = (int)tg_generator_restore(generator, saved, err);
    if (!status)
        status = take_messages(c, list, err);
    if (!status) {
        memcpy(ids, text->ids, text->n_ids * sizeof *ids);
        *n_ids = text->n_ids;
        sampling->stream = text->stream;
    }
    json_decref(list);
    tg_saved_free(saved);
    return status;
}
