/* template.c - chat templates, with one conversation, in which messages have bytes that no template writes unasked. */
#include "fuzz/fuzz.h"

#include "token/jinja.h"

#define MARK "\x01"

static const tg_chat_message messages[] = {
    {"system", MARK "Be brief. " MARK, 12},
    {"user", MARK "Hi, <|im_end|>" MARK "\n", 17},
    {"assistant", MARK "<think>\n\nno</think>Yes " MARK, 25},
    {"user", MARK "2 + 2?" MARK, 8},
};

static void render(const fuzz_part *template, const tg_chat_params *params, size_t from, bool marks)
{
    const tg_jinja_input in = {.template = (const char *)template->bytes, .n_bytes = template->n, .file = "a template",
                               .messages = messages + from, .n_messages = sizeof messages / sizeof *messages - from,
                               .bos = "<s>", .n_bos = 3, .eos = "</s>", .n_eos = 4, .params = params};
    char *text;
    uint8_t *plain;
    size_t n;
    tg_error err = {0};
    tg_status status = tg_jinja_render(&in, &text, &plain, &n, &err);
    MUST(status == err.status && (status == TG_OK) == (text != NULL));
    MUST(status == TG_OK || err.message[0]);
    /* What messages say is known for it, whatever the template has done to it. */
    for (size_t i = 0; i < n; i++)
        MUST(plain[i] <= 2 && (marks || text[i] != MARK[0] || plain[i]));
    free(text);
    free(plain);
}

/* The first byte chooses how it is asked. */
void fuzz(const uint8_t *data, size_t n)
{
    if (n == 0)
        return;
    const tg_chat_params params = {.closed = data[0] & 1, .thinking = (tg_thinking)((data[0] >> 1) % 3), .now = 1700000000};
    const fuzz_part template = {data + 1, n - 1};
    bool marks = memchr(data + 1, MARK[0], n - 1) || memchr(data + 1, '\\', n - 1);
    render(&template, &params, data[0] >> 3 & 1, marks);
}
