/* hub.c - what the hub answers: the listing of a repository, and the choice of files from it. */
#include "fuzz/fuzz.h"

#include "fetch/choose.h"
#include "fetch/names.h"

static const uint8_t *answer;
static size_t n_answer;

/* In the place of net.c's. */
tg_status tg_net_get(tg_net *net, const char *url, size_t max_bytes, tg_reply *reply, tg_error *err)
{
    (void)net, (void)url, (void)max_bytes, (void)err;
    *reply = (tg_reply){.http = 200, .size = n_answer, .n = n_answer, .body = calloc(n_answer + 1, 1)};
    if (n_answer)
        memcpy(reply->body, answer, n_answer);
    return TG_OK;
}

static void check_choice(const tg_listing *l, const char *quant, tg_arena *arena)
{
    tg_choice choice = {0};
    tg_error err = {0};
    const tg_wish wish = {.quant = quant};
    tg_status status = tg_choose(l, &wish, &choice, arena, &err);
    MUST((status == TG_OK) == (err.status == TG_OK) && status == err.status);
    if (status != TG_OK)
        return;
    MUST(choice.n >= 1 && choice.n <= l->n);
    for (size_t i = 0; i < choice.n; i++) {
        MUST(choice.files[i] < l->n && (i == 0 || choice.files[i - 1] < choice.files[i]));
        MUST(!tg_bad_path(l->files[choice.files[i]].path));
    }
    MUST(choice.folder == (choice.model == TG_NO_FILE) || choice.model < l->n);
    if (choice.folder)
        tg_choice_check_tokenizer(l, &choice, &err);
    else
        MUST(choice.model < l->n && tg_is_model_gguf(l->files[choice.model].path));
}

/* The first line is the quantisation that is asked for, if it is not empty. */
void fuzz(const uint8_t *data, size_t n)
{
    tg_error err = {0};
    bool down;
    const uint8_t *end = n ? memchr(data, '\n', n) : NULL;
    char *quant = end && end > data ? strndup((const char *)data, (size_t)(end - data)) : NULL;
    answer = end ? end + 1 : data;
    n_answer = end ? n - (size_t)(end - data) - 1 : n;
    tg_arena *arena = tg_arena_create(NULL);
    tg_hub hub = {.endpoint = "https://huggingface.co", .arena = arena};
    tg_listing l = {.repo = "owner/name", .revision = "main"};
    if (tg_hub_list(&hub, &l, &down, &err) == TG_OK) {
        MUST(strlen(l.commit) == 40 && tg_is_hex(l.commit, 40));
        for (size_t i = 0; i < l.n; i++) {
            const tg_repo_file *f = &l.files[i];
            MUST(!tg_bad_path(f->path) && tg_listing_find(&l, f->path) <= i);
            MUST(!f->etag || tg_etag_kind(f->etag) != TG_DIGEST_NONE);
            MUST(f->size == TG_SIZE_UNKNOWN || f->size <= INT64_MAX);
            char *url = tg_hub_url(&hub, &l, f->path, NULL);
            MUST(url && !strpbrk(url, " ?#\\\n"));
        }
        check_choice(&l, NULL, arena);
        check_choice(&l, quant, arena);
    } else {
        MUST(err.message[0]);
    }
    tg_arena_free(arena);
    free(quant);
}
