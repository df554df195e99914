/* signals.c - the handlers do three things: set a flag, interrupt the session, or leave. */
#include "cli/signals.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include "cli/text.h"

static volatile sig_atomic_t caught, held;
static tg_session *volatile watched;
static const char *volatile unfinished, *volatile against_cuts;

static void leave(int status)
{
    const char *path = unfinished;
    if (path)
        unlink(path);
    _exit(status);
}

static void on_end(int number)
{
    int saved = errno;
    tg_session *session = watched;
    if (caught || (!session && !held))
        leave(128 + number);
    caught = number;
    if (session)
        tg_session_interrupt(session);
    errno = saved;
}

/* A page of a mapped file is gone: someone cut the file short, or its disk fails. Several threads may find that out
 * together. */
static void on_bus(int number, siginfo_t *info, void *context)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    tg_text_quoted q;
    (void)number, (void)context;
    while (atomic_flag_test_and_set(&told))
        pause();
    const char *path = tg_mapped_file(info->si_addr), *advice = against_cuts;
    const char *const parts[] = {
        "tinygpt: error: ",
        path ? tg_text_quote(&q, path) : "memory cannot be read (SIGBUS)",
        path ? ": was cut short while in use, or its disk fails" : "",
        path && advice ? advice : "",
        "\n",
    };
    char line[sizeof q + 200];
    size_t n = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        for (const char *s = parts[i]; *s && n < sizeof line; s++)
            line[n++] = *s;
    ssize_t did = write(STDERR_FILENO, line, n);
    (void)did;
    leave(TG_E_IO);
}

static void install(int number, void (*handler)(int))
{
    struct sigaction old, action = {.sa_handler = handler};
    /* What the parent had ignored stays ignored: nohup, and jobs in the background. */
    if (sigaction(number, NULL, &old) == 0 && old.sa_handler == SIG_IGN)
        return;
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL); /* no SA_RESTART: a blocked write must come back */
}

void tg_signals_install(void)
{
    install(SIGINT, on_end);
    install(SIGTERM, on_end);
    install(SIGHUP, on_end);
    install(SIGPIPE, SIG_IGN);
    install(SIGXFSZ, SIG_IGN);
    sigaction(SIGBUS, &(struct sigaction){.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO}, NULL);
}

void tg_signals_watch(tg_session *session)
{
    watched = session;
}

void tg_signals_hold(bool hold)
{
    held = hold;
}

void tg_signals_remove(const char *path)
{
    unfinished = path;
}

void tg_signals_advise(const char *advice)
{
    against_cuts = advice;
}

int tg_signals_caught(void)
{
    return caught;
}

void tg_signals_forget(void)
{
    caught = 0;
}
