/* cmd_list.c - the models on this machine, or those that pull knows by name, as a table or as JSON. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/options.h"
#include "cli/text.h"
#include "fetch/fetch.h"

/* ---- a table ----------------------------------------------------------------------------------
 */

typedef struct row {
    const char *name, *last; /* borrowed */
    char license[64], size[TG_TEXT_BYTES], used[16];
} row;

typedef struct table {
    const row *rows; /* [n], the first the heading */
    size_t n;
    int name, license, used, last; /* widths; used or last 0: no such column; last -1: as wide as it is */
} table;

enum { GAP = 2, SIZE = 8, USED = 10, LICENSE_MOST = 18, NAME_LEAST = 16, LAST_LEAST = 20 };

static int wider(int width, const char *s)
{
    int needed = tg_text_width(s);
    return needed > width ? needed : width;
}

/* A pipe (columns 0) gets everything. On a terminal the last column takes what the others leave, or goes; then
 * names are cut. */
static void fit(table *t, int columns)
{
    t->name = t->license = 0;
    for (size_t i = 0; i < t->n; i++) {
        t->name = wider(t->name, t->rows[i].name);
        t->license = wider(t->license, t->rows[i].license);
    }
    t->last = -1;
    if (!columns)
        return;
    t->license = t->license < LICENSE_MOST ? t->license : LICENSE_MOST;
    int rest = columns - 1 - (GAP + SIZE) - (GAP + t->license) - (t->used ? GAP + t->used : 0);
    t->last = rest - t->name - GAP < LAST_LEAST ? 0 : rest - t->name - GAP;
    if (t->name > rest)
        t->name = rest > NAME_LEAST ? rest : NAME_LEAST;
}

/* As wide as it is, or `width` characters. */
static void put_cell(tg_output *out, const char *text, int width)
{
    enum { BYTES_MOST = 1024 };
    char shown[BYTES_MOST * TG_TEXT_GROWTH + 1], cell[sizeof shown + BYTES_MOST];
    size_t n = strlen(text);
    if (width < 0 || n > BYTES_MOST) {
        tg_output_quoted(out, text, n);
        return;
    }
    shown[tg_text_render(TG_TEXT_QUOTED, text, n, shown)] = '\0';
    tg_output_write(out, cell, (size_t)tg_text_fit(cell, sizeof cell, shown, width));
}

static void put_table(tg_output *out, table *t)
{
    int columns = 0, lines;
    if (out->is_terminal)
        tg_terminal_size(out->fd, &columns, &lines);
    fit(t, columns);
    for (size_t i = 0; i < t->n; i++) {
        const row *r = &t->rows[i];
        tg_output_print(out, "%s", i == 0 ? tg_style_for(out->fd, TG_STYLE_BOLD) : "");
        put_cell(out, r->name, t->name);
        tg_output_print(out, "%*s%*s", GAP + SIZE, r->size, GAP, "");
        put_cell(out, r->license[0] ? r->license : "-", t->license);
        if (t->used)
            tg_output_print(out, "%*s", GAP + t->used, r->used);
        if (t->last) {
            tg_output_print(out, "%*s", GAP, "");
            put_cell(out, r->last, t->last);
        }
        tg_output_print(out, "%s\n", i == 0 ? tg_style_for(out->fd, TG_STYLE_PLAIN) : "");
    }
}

/* ---- models on this machine -------------------------------------------------------------------
 */

static void put_age(char *text, size_t room, int64_t seconds)
{
    static const struct {
        int64_t above, unit;
        const char *name;
    } steps[] = {{2 * 86400, 86400, "days"}, {2 * 3600, 3600, "h"}, {60, 60, "min"}};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (seconds >= steps[i].above) {
            int64_t n = seconds / steps[i].unit;
            snprintf(text, room, "%d %s ago", (int)(n < 9999 ? n : 9999), steps[i].name);
            return;
        }
    snprintf(text, room, "just now");
}

static void put_json(tg_output *out, json_t *value)
{
    tg_output_json(out, value, JSON_INDENT(2));
    tg_output_write(out, "\n", 1);
}

/* As the repository's card has it, else the file itself. Looking is no use of it: its time of access stays. */
static void find_license(char *license, size_t room, const tg_cached_model *m)
{
    tg_model *model;
    tg_model_info info;
    struct stat st;
    size_t n = strlen(m->path);
    bool asks = !m->license && n > 5 && !strcmp(m->path + n - 5, ".gguf") && stat(m->path, &st) == 0;
    snprintf(license, room, "%s", m->license ? m->license : "");
    if (!asks || tg_model_load(&model, m->path, TG_LOAD_META_ONLY, NULL))
        return;
    tg_model_get_info(model, &info);
    snprintf(license, room, "%s", info.license ? info.license : "");
    tg_model_free(model);
    utimensat(AT_FDCWD, m->path, (struct timespec[2]){st.st_atim, {.tv_nsec = UTIME_OMIT}}, 0);
}

static void fill_rows(row *rows, const tg_cached_model *models, size_t n)
{
    int64_t now = (int64_t)time(NULL);
    rows[0] = (row){.name = "NAME", .size = "SIZE", .license = "LICENSE", .used = "USED", .last = "PATH"};
    for (size_t i = 0; i < n; i++) {
        const tg_cached_model *m = &models[i];
        row *r = &rows[1 + i];
        *r = (row){.name = m->alias ? m->alias : m->name, .last = m->path};
        tg_text_bytes(r->size, m->size);
        put_age(r->used, sizeof r->used, now - m->used_at);
        find_license(r->license, sizeof r->license, m);
    }
}

static void put_models_json(tg_output *out, const tg_cached_model *models, const row *rows, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        const tg_cached_model *m = &models[i];
        json_array_append_new(list, json_pack("{s:o, s:o, s:I, s:o, s:o, s:o, s:I}", "name", tg_output_json_name(m->name),
                                              "alias", tg_output_json_name(m->alias), "size", (json_int_t)m->size, "license",
                                              tg_output_json_name(rows[1 + i].license), "path", tg_output_json_name(m->path),
                                              "commit", tg_output_json_name(m->commit), "used_at", (json_int_t)m->used_at));
    }
    put_json(out, list);
}

static int put_models(tg_output *out, bool json, tg_error *err)
{
    tg_cached_model *models;
    size_t n;
    int status = (int)tg_cache_list(&models, &n, err);
    if (status)
        return status;
    row *rows = calloc(n + 1, sizeof *rows);
    if (!rows) {
        status = tg_cli_fail_memory(err, (n + 1) * sizeof *rows, "a list");
    } else {
        fill_rows(rows, models, n);
        if (json)
            put_models_json(out, models, rows, n);
        else if (n == 0)
            tg_say_note("no models on this machine yet%s",
                        tg_can_fetch() ? ": tinygpt pull NAME fetches one (--catalog tells names)" : "");
        else
            put_table(out, &(table){.rows = rows, .n = n + 1, .used = USED});
    }
    free(rows);
    tg_cache_free(models, n);
    return status;
}

/* ---- models that pull knows by name -----------------------------------------------------------
 */

enum { CATALOG_MOST = 256 };

static void put_catalog(tg_output *out)
{
    static row rows[CATALOG_MOST + 1];
    static char places[CATALOG_MOST][256];
    tg_catalog_entry e;
    size_t n = 0;
    rows[0] = (row){.name = "NAME", .size = "SIZE", .license = "LICENSE", .last = "REPOSITORY"};
    for (; n < CATALOG_MOST && tg_catalog_get(n, &e); n++) {
        row *r = &rows[1 + n];
        *r = (row){.name = e.name, .last = places[n]};
        snprintf(places[n], sizeof places[n], "%s%s%s", e.repo, e.file ? ":" : "", e.file ? e.file : "");
        snprintf(r->license, sizeof r->license, "%s", e.license);
        tg_text_bytes(r->size, e.size);
    }
    put_table(out, &(table){.rows = rows, .n = n + 1});
}

static void put_catalog_json(tg_output *out)
{
    json_t *list = json_array();
    tg_catalog_entry e;
    for (size_t i = 0; tg_catalog_get(i, &e); i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s?, s:s, s:I}", "name", e.name, "repo", e.repo, "file",
                                              e.file, "license", e.license, "size", (json_int_t)e.size));
    put_json(out, list);
}

int tg_cmd_list(const tg_options *opt, tg_error *err)
{
    static tg_output out;
    int status = tg_output_open(&out, NULL, err);
    if (status)
        return status;
    if (!opt->catalog)
        status = put_models(&out, opt->json, err);
    else if (opt->json)
        put_catalog_json(&out);
    else
        put_catalog(&out);
    return tg_output_close(&out, status, err);
}
