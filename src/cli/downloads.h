/* downloads.h - files that are being fetched, as people see them, and the one way to tg_pull. */
#ifndef TG_CLI_DOWNLOADS_H
#define TG_CLI_DOWNLOADS_H

#include "cli/terminal.h"
#include "fetch/fetch.h"

/* tg_pull with progress, a line for each file that is finished, and signals that stop it and keep what is
 * here. The watch of params is not looked at. */
int tg_cli_pull(const tg_pull_params *params, tg_pull_result *result, tg_error *err);

/* A rate over the last five seconds. Zeroed before use. */
enum { TG_SPEED_SAMPLES = 16 };
typedef struct tg_speed {
    int n; /* samples so far; sample i stands at i mod TG_SPEED_SAMPLES */
    double at[TG_SPEED_SAMPLES];
    uint64_t bytes[TG_SPEED_SAMPLES];
} tg_speed;

void tg_speed_add(tg_speed *speed, double now, uint64_t n_bytes); /* bytes since the beginning */
double tg_speed_get(const tg_speed *speed);                       /* bytes a second; -1: not known yet */

typedef struct tg_shown_file {
    tg_speed speed;
    double begun; /* when it was first seen under way; 0: not yet */
    bool told;    /* that it is finished */
} tg_shown_file;

/* What is remembered of the files from one call of a watch to the next. Zeroed before use. */
typedef struct tg_downloads {
    tg_progress progress;
    tg_speed speed;       /* of all together */
    tg_shown_file *shown; /* [n] (free) */
    size_t n;
    uint64_t kept; /* bytes of files that are not finished */
} tg_downloads;

/* Takes note of how far n files are; at a later call they may have become more. False: no memory. */
bool tg_downloads_update(tg_downloads *d, const tg_fetch_file *files, size_t n, double now);

/* Lines of progress that fit the terminal, with newlines between them: one for each file under way and,
 * where there are several files, one for all that are not here already. */
enum { TG_DOWNLOADS_TEXT = 8192, TG_DOWNLOADS_FILES = 8 };
void tg_downloads_render(const tg_downloads *d, const tg_fetch_file *files, int columns, int rows,
                         char text[TG_DOWNLOADS_TEXT]);

#endif
