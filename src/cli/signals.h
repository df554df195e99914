/* signals.h - how a run ends from outside. */
#ifndef TG_CLI_SIGNALS_H
#define TG_CLI_SIGNALS_H

#include "tinygpt/tinygpt.h"

/* SIGINT, SIGTERM and SIGHUP end the process with 128 + their number: at once, or, while a session
 * is watched or they are held, by the flag below; a second one ends it at once in any case. SIGPIPE and SIGXFSZ are
 * ignored, so that writes report what happened. SIGBUS ends it with one line that names the file. */
void tg_signals_install(void);

/* From here on the first signal interrupts the session and is told by tg_signals_caught, which the
 * caller asks between tokens. NULL: no session any more. */
void tg_signals_watch(tg_session *session);

/* From here on the first signal does nothing but to be told by tg_signals_caught: for work that has
 * something to clear away. */
void tg_signals_hold(bool hold);

/* From here on what ends the process at once removes this file first, which is of no use unfinished. Borrowed; NULL:
 * there is none any more. */
void tg_signals_remove(const char *path);

/* What to say to whom a mapped file is cut short, behind the line that tells it; NULL: nothing. Borrowed. */
void tg_signals_advise(const char *advice);

int tg_signals_caught(void); /* number of the signal, or 0 */
void tg_signals_forget(void); /* as if none had come: it has done what it should */

#endif
