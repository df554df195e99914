/* prompt.c - reading and joining; what the bytes mean is the tokenizer's. */
#include "cli/prompt.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/lines.h"
#include "cli/text.h"

enum { PIECE = 1 << 16 };

static bool stdin_is_pipe(void)
{
    struct stat st;
    return fstat(STDIN_FILENO, &st) == 0 && S_ISFIFO(st.st_mode);
}

int tg_prompt_too_long(size_t max_bytes, tg_error *err)
{
    return tg_cli_fail(err, TG_E_USAGE, "the text is too long (allowed %zu bytes, since no more can fit)", max_bytes);
}

static bool append(tg_prompt *prompt, const char *bytes, size_t n, size_t max_bytes, tg_error *err)
{
    if (n > max_bytes - prompt->n) {
        tg_prompt_too_long(max_bytes, err);
        return false;
    }
    if (tg_bytes_append(prompt, bytes, n))
        return true;
    tg_cli_fail_memory(err, prompt->n + n, "the text");
    return false;
}

/* Is what is left of a file more than there is room for? */
static bool is_larger(int fd, size_t room)
{
    struct stat st;
    off_t at = lseek(fd, 0, SEEK_CUR);
    return at >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > at && (uint64_t)(st.st_size - at) > room;
}

static int append_fd(tg_prompt *prompt, int fd, const char *name, size_t max_bytes, tg_error *err)
{
    if (is_larger(fd, max_bytes - prompt->n))
        return tg_prompt_too_long(max_bytes, err);
    char *piece = malloc(PIECE);
    ssize_t n;
    if (!piece)
        return tg_cli_fail_memory(err, PIECE, "reading the text");
    do {
        n = tg_lines_read(fd, name, piece, PIECE, err);
    } while (n > 0 && append(prompt, piece, (size_t)n, max_bytes, err));
    free(piece);
    return n == 0 ? TG_OK : (int)err->status;
}

static int append_stdin(tg_prompt *prompt, size_t max_bytes, tg_error *err)
{
    return append_fd(prompt, STDIN_FILENO, "stdin", max_bytes, err);
}

static int append_file(tg_prompt *prompt, const char *path, size_t max_bytes, tg_error *err)
{
    tg_text_quoted q;
    tg_text_quote(&q, path);
    int fd;
    if (tg_lines_open_file(&fd, path, &q, err))
        return (int)err->status;
    int status = append_fd(prompt, fd, q.text, max_bytes, err);
    close(fd);
    return status;
}

int tg_prompt_check(const tg_options *opt, tg_error *err)
{
    int n = (opt->operand != NULL) + (opt->prompt != NULL) + (opt->file != NULL);
    if (n > 1)
        return tg_cli_fail(err, TG_E_USAGE,
                           "the text is given more than once (as an argument, with -p or with -f)");
    if (n == 0 && (opt->no_stdin || isatty(STDIN_FILENO)))
        return tg_cli_fail(
            err, TG_E_USAGE, "no text: give it %s-f FILE, or through a pipe (tinygpt %s --help)",
            opt->command->operands ? "as an argument, with " : "with -p, ", opt->command->name);
    return TG_OK;
}

static int join(tg_prompt *prompt, const tg_options *opt, size_t max_bytes, tg_error *err)
{
    const char *text = opt->operand ? opt->operand : opt->prompt;
    bool from_stdin = opt->file && !strcmp(opt->file, "-");
    int status;
    if (from_stdin || (!text && !opt->file))
        return append_stdin(prompt, max_bytes, err);
    /* A pipe beside another source comes first, as whole lines. */
    if (!opt->no_stdin && stdin_is_pipe()) {
        if ((status = append_stdin(prompt, max_bytes, err)) != TG_OK)
            return status;
        if (prompt->n > 0 && prompt->bytes[prompt->n - 1] != '\n' &&
            !append(prompt, "\n", 1, max_bytes, err))
            return (int)err->status;
    }
    if (opt->file)
        return append_file(prompt, opt->file, max_bytes, err);
    return append(prompt, text, strlen(text), max_bytes, err) ? TG_OK : (int)err->status;
}

int tg_prompt_read(tg_prompt *prompt, const tg_options *opt, size_t max_bytes, tg_error *err)
{
    *prompt = (tg_prompt){0};
    int status = tg_prompt_check(opt, err);
    if (!status)
        status = join(prompt, opt, max_bytes, err);
    if (status) {
        tg_prompt_free(prompt);
        return status;
    }
    if (opt->chomp && prompt->n > 0 && prompt->bytes[prompt->n - 1] == '\n') {
        prompt->n--;
        prompt->n -= prompt->n > 0 && prompt->bytes[prompt->n - 1] == '\r';
    }
    return TG_OK;
}

void tg_prompt_free(tg_prompt *prompt)
{
    free(prompt->bytes);
    *prompt = (tg_prompt){0};
}

/* ---- ids --------------------------------------------------------------------------------------
 */

/* Reads text[0 .. n), which a NUL follows. */
static int parse_ids(int32_t *ids, size_t *n_ids, char *text, size_t n, int n_vocab, tg_error *err)
{
    static const char between[] = ", \t\r\n";
    tg_text_quoted q;
    size_t count = 0;
    for (char *p = text, *end; p < text + n; p = end) {
        p += strspn(p, between);
        end = p + strcspn(p, between);
        if (p == text + n)
            break;
        bool last = end == text + n;
        int64_t id;
        *end = '\0';
        if (end == p || !tg_number_int(p, 0, n_vocab - 1, &id))
            return tg_cli_fail(err, TG_E_USAGE, "token id '%s' is not a whole number from 0 to %d",
                               tg_text_quote(&q, p), n_vocab - 1);
        ids[count++] = (int32_t)id;
        end += !last;
    }
    *n_ids = count;
    return TG_OK;
}

int tg_prompt_ids(int32_t **ids, size_t *n, const char *text, int n_vocab, tg_error *err)
{
    enum { MAX_BYTES = 1 << 30 };
    tg_prompt list = {0};
    bool from_stdin = !strcmp(text, "-");
    *ids = NULL;
    *n = 0;
    int status = TG_OK;
    if (from_stdin)
        status = append_stdin(&list, MAX_BYTES, err);
    else if (!append(&list, text, strlen(text), MAX_BYTES, err))
        status = (int)err->status;
    /* Each id takes a digit and what separates it from the next. */
    if (!status && !(*ids = malloc((list.n / 2 + 1) * sizeof **ids)))
        status = tg_cli_fail_memory(err, (list.n / 2 + 1) * sizeof **ids, "token ids");
    if (!status && list.n > 0) {
        list.bytes[list.n] = '\0';
        status = parse_ids(*ids, n, list.bytes, list.n, n_vocab, err);
    }
    if (status) {
        free(*ids);
        *ids = NULL;
    }
    tg_prompt_free(&list);
    return status;
}
