/* downloads.c - what is told while files are fetched: lines of progress on a terminal, and everywhere one
 * line for each file that is finished. */
#include "cli/downloads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/signals.h"
#include "cli/text.h"

/* ---- speed ------------------------------------------------------------------------------------
 */

void tg_speed_add(tg_speed *speed, double now, uint64_t n_bytes)
{
    int last = (speed->n + TG_SPEED_SAMPLES - 1) % TG_SPEED_SAMPLES;
    if (speed->n > 0 && n_bytes < speed->bytes[last])
        speed->n = 0; /* what had come was thrown away, or counts as resumed now */
    else if (speed->n > 0 && now < speed->at[last] + 5.0 / TG_SPEED_SAMPLES)
        return;
    speed->at[speed->n % TG_SPEED_SAMPLES] = now;
    speed->bytes[speed->n % TG_SPEED_SAMPLES] = n_bytes;
    speed->n++;
}

double tg_speed_get(const tg_speed *speed)
{
    if (speed->n < 2)
        return -1;
    int last = (speed->n - 1) % TG_SPEED_SAMPLES;
    int first = speed->n > TG_SPEED_SAMPLES ? speed->n % TG_SPEED_SAMPLES : 0;
    return (double)(speed->bytes[last] - speed->bytes[first]) / (speed->at[last] - speed->at[first]);
}

/* ---- one line ---------------------------------------------------------------------------------
 */

typedef struct row {
    const char *name;
    uint64_t done, size, resumed;
    double speed;     /* -1: not known */
    const char *word; /* in place of the speed, or NULL */
} row;

enum { NAME_LEAST = 12, COLUMNS_MOST = 160 };

static void put_seconds(char *out, size_t room, double seconds)
{
    int s = seconds < 1e6 ? (int)seconds : 1000000;
    if (s < 3600)
        snprintf(out, room, "%d:%02d", s / 60, s % 60);
    else if (s < 36000)
        snprintf(out, room, "%d:%02d:%02d", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(out, room, "%d h", s / 3600);
}

enum { PERCENT, AMOUNT, SPEED, LEFT, N_FIELDS };

static void fill_fields(char field[N_FIELDS][TG_TEXT_BYTES + 4], const row *r)
{
    bool known = r->size != TG_SIZE_UNKNOWN;
    uint64_t done = known && r->done > r->size ? r->size : r->done; /* what a server says may be anything */
    for (int i = 0; i < N_FIELDS; i++)
        field[i][0] = '\0';
    if (known)
        snprintf(field[PERCENT], sizeof field[0], "%d%%", r->size ? (int)(100.0 * (double)done / (double)r->size) : 100);
    if (known)
        tg_text_bytes_of(field[AMOUNT], done, r->size);
    else
        tg_text_bytes(field[AMOUNT], done);
    if (r->word)
        snprintf(field[SPEED], sizeof field[0], "%s", r->word);
    else if (r->speed >= 0)
        snprintf(field[SPEED], sizeof field[0], "%s/s", tg_text_bytes(field[LEFT], (uint64_t)r->speed));
    field[LEFT][0] = '\0';
    if (known && !r->word && r->speed >= 1)
        put_seconds(field[LEFT], sizeof field[0], (double)(r->size - done) / r->speed);
}

/* The name takes what the numbers leave; where that is too little, they go, the least telling first. */
static int put_row(char *out, size_t room, int columns, const row *r)
{
    static const int width[N_FIELDS] = {[PERCENT] = 5, [AMOUNT] = 15, [SPEED] = 12, [LEFT] = 9};
    static const int importance[N_FIELDS] = {PERCENT, LEFT, SPEED, AMOUNT};
    bool shown[N_FIELDS] = {false};
    char field[N_FIELDS][TG_TEXT_BYTES + 4], from[TG_TEXT_BYTES + 8] = "", bytes[TG_TEXT_BYTES];
    int rest = columns - 1; /* some terminals wrap when the last column is written */
    for (int i = 0; i < N_FIELDS && rest - width[importance[i]] >= NAME_LEAST; i++) {
        shown[importance[i]] = true;
        rest -= width[importance[i]];
    }
    fill_fields(field, r);
    if (r->resumed)
        snprintf(from, sizeof from, " from %s", tg_text_bytes(bytes, r->resumed));
    if (rest - (int)strlen(from) < 2 * NAME_LEAST)
        from[0] = '\0';
    int n = tg_text_fit(out, room, r->name, rest - (int)strlen(from));
    n += snprintf(out + n, room - (size_t)n, "%s", from);
    for (int i = 0; i < N_FIELDS; i++)
        if (shown[i])
            n += snprintf(out + n, room - (size_t)n, "%*s", width[i], field[i]);
    return n;
}

/* ---- all of them ------------------------------------------------------------------------------
 */

static bool under_way(const tg_shown_file *shown, const tg_fetch_file *file)
{
    return shown->begun > 0 && (file->state != TG_FETCH_DONE && file->state != TG_FETCH_CACHED);
}

/* Bytes that this run has brought. */
static uint64_t brought(const tg_fetch_file *file)
{
    return file->state != TG_FETCH_CACHED && file->done > file->resumed ? file->done - file->resumed : 0;
}

bool tg_downloads_update(tg_downloads *d, const tg_fetch_file *files, size_t n, double now)
{
    uint64_t all = 0;
    if (n > d->n) {
        tg_shown_file *more = realloc(d->shown, n * sizeof *more);
        if (!more)
            return false;
        memset(more + d->n, 0, (n - d->n) * sizeof *more);
        d->shown = more;
        d->n = n;
    }
    d->kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (files[i].state == TG_FETCH_RUNNING || files[i].state == TG_FETCH_CHECKING) {
            tg_speed_add(&d->shown[i].speed, now, brought(&files[i]));
            if (d->shown[i].begun == 0)
                d->shown[i].begun = now;
        }
        if (files[i].state < TG_FETCH_DONE)
            d->kept += files[i].done;
        all += brought(&files[i]);
    }
    tg_speed_add(&d->speed, now, all);
    return true;
}

static int put_total(const tg_downloads *d, const tg_fetch_file *files, int columns, char *out, size_t room)
{
    char name[48];
    size_t n_done = 0, n = 0;
    row all = {.name = name, .speed = tg_speed_get(&d->speed)};
    for (size_t i = 0; i < d->n; i++) {
        if (files[i].state == TG_FETCH_CACHED)
            continue;
        n++;
        n_done += files[i].state == TG_FETCH_DONE;
        all.done += files[i].done;
        if (files[i].size == TG_SIZE_UNKNOWN)
            all.size = TG_SIZE_UNKNOWN;
        else if (all.size != TG_SIZE_UNKNOWN)
            all.size += files[i].size;
    }
    snprintf(name, sizeof name, "%zu of %zu files", n_done, n);
    return put_row(out, room, columns, &all);
}

void tg_downloads_render(const tg_downloads *d, const tg_fetch_file *files, int columns, int rows,
                         char text[TG_DOWNLOADS_TEXT])
{
    static const char *const word_of[] = {
        [TG_FETCH_WAITING] = "waiting", [TG_FETCH_CHECKING] = "checking", [TG_FETCH_CACHED] = NULL};
    size_t at = 0;
    if (columns > COLUMNS_MOST)
        columns = COLUMNS_MOST;
    int room = rows - 2 < TG_DOWNLOADS_FILES ? rows - 2 : TG_DOWNLOADS_FILES;
    for (size_t i = 0; i < d->n && room > 0; i++) {
        const tg_fetch_file *file = &files[i];
        if (!under_way(&d->shown[i], file))
            continue;
        tg_text_quoted q;
        row r = {.name = tg_text_quote(&q, file->name),
                 .done = file->done,
                 .size = file->size,
                 .resumed = file->resumed,
                 .speed = tg_speed_get(&d->shown[i].speed),
                 .word = word_of[file->state]};
        at += (size_t)put_row(text + at, TG_DOWNLOADS_TEXT - at, columns, &r);
        text[at++] = '\n';
        room--;
    }
    if (d->n > 1)
        at += (size_t)put_total(d, files, columns, text + at, TG_DOWNLOADS_TEXT - at);
    else if (at == 0)
        at = (size_t)snprintf(text, TG_DOWNLOADS_TEXT, "asking the server");
    else
        at--;
    text[at] = '\0';
}

/* ---- telling ----------------------------------------------------------------------------------
 */

static void tell_file(tg_shown_file *shown, const tg_fetch_file *file, double now)
{
    char size[TG_TEXT_BYTES], kept[TG_TEXT_BYTES], rate[TG_TEXT_BYTES + 8] = "", bytes[TG_TEXT_BYTES];
    tg_text_quoted q;
    double seconds = shown->begun > 0 ? now - shown->begun : 0;
    shown->told = true;
    tg_text_quote(&q, file->name);
    tg_text_bytes(size, file->done);
    if (seconds > 0.5)
        snprintf(rate, sizeof rate, ", %s/s", tg_text_bytes(bytes, (uint64_t)((double)brought(file) / seconds)));
    if (file->state == TG_FETCH_CACHED)
        tg_say_note("cached  %s (%s)", q.text, size);
    else if (file->resumed)
        tg_say_note("resumed %s at %s (%s%s)", q.text, tg_text_bytes(kept, file->resumed), size, rate);
    else
        tg_say_note("fetched %s (%s%s)", q.text, size, rate);
}

static void tell_finished(tg_downloads *d, const tg_fetch_file *files, size_t n, double now)
{
    for (size_t i = 0; i < n && i < d->n; i++)
        if (files[i].state >= TG_FETCH_DONE && !d->shown[i].told)
            tell_file(&d->shown[i], &files[i], now);
}

static bool on_progress(void *arg, const tg_fetch_file *files, size_t n)
{
    tg_downloads *d = arg;
    char text[TG_DOWNLOADS_TEXT];
    int columns, rows;
    double now = tg_seconds();
    if (tg_downloads_update(d, files, n, now)) {
        tell_finished(d, files, n, now);
        if (tg_progress_due(&d->progress)) {
            tg_terminal_size(STDERR_FILENO, &columns, &rows);
            tg_downloads_render(d, files, columns, rows, text);
            tg_progress_draw(text);
        }
    }
    return !tg_signals_caught();
}

static void on_note(void *arg, bool warning, const char *line)
{
    (void)arg;
    if (warning)
        tg_say_warning("%s", line);
    else
        tg_say_note("%s", line);
}

int tg_cli_pull(const tg_pull_params *params, tg_pull_result *result, tg_error *err)
{
    tg_downloads d = {0};
    tg_pull_params watched = *params;
    char kept[TG_TEXT_BYTES];
    watched.watch = (tg_fetch_watch){.arg = &d, .progress = on_progress, .note = on_note};
    tg_signals_hold(true);
    int status = (int)tg_pull(&watched, result, err);
    tg_signals_hold(false);
    tg_progress_clear(&d.progress);
    if (!status && !params->dry_run && tg_downloads_update(&d, result->files, result->n_files, tg_seconds()))
        tell_finished(&d, result->files, result->n_files, tg_seconds());
    if (tg_signals_caught() && d.kept > 0)
        tg_say_note("stopped: %s so far is kept; the same command goes on from there",
                    tg_text_bytes(kept, d.kept));
    free(d.shown);
    return status;
}
