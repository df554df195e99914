/* driver - fetches files as tinygpt pull does, for the tests of this folder:
 *     driver [-e ENDPOINT] [-t TOKEN] [-w MAX_WAIT] [-r] FOLDER (URL NAME SIZE|- DIGEST|-)...
 *     driver -g URL                answer on stdout
 * Messages go to stderr; the status is the command line's. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/open.h"
#include "fetch/digest.h"
#include "fetch/net.h"

enum { MAX_FILES = 64 };
static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    interrupted = number;
}

static bool progress(void *arg, const tg_fetch_file *files, size_t n)
{
    (void)arg, (void)files, (void)n;
    return !interrupted;
}

static void note(void *arg, bool warning, const char *line)
{
    (void)arg;
    fprintf(stderr, "%s: %s\n", warning ? "warning" : "note", line);
}

static tg_status get(tg_net *net, const char *url, tg_error *err)
{
    tg_reply reply;
    tg_status status = tg_net_get(net, url, 1 << 20, &reply, err);
    if (status == TG_OK)
        fwrite(reply.body, 1, reply.n, stdout);
    tg_free(reply.body);
    return status;
}

static tg_status fetch(tg_net *net, char **args, size_t n, bool replace, tg_error *err)
{
    static tg_download downloads[MAX_FILES];
    static tg_fetch_file files[MAX_FILES];
    int folder = tg_open(AT_FDCWD, args[0], O_RDONLY | O_DIRECTORY, 0);
    for (size_t i = 0; i < n; i++) {
        char **a = args + 1 + 4 * i;
        files[i] = (tg_fetch_file){.name = a[1], .size = *a[2] == '-' ? TG_SIZE_UNKNOWN : strtoull(a[2], NULL, 10)};
        if (*a[3] != '-')
            snprintf(files[i].digest, sizeof files[i].digest, "%s", a[3]);
        downloads[i] = (tg_download){.url = a[0], .folder = folder, .target = a[1], .replace = replace,
                                     .kind = tg_digest_kind_of(files[i].digest), .file = &files[i]};
    }
    tg_status status = tg_net_fetch(net, downloads, n, err);
    for (size_t i = 0; i < n; i++)
        printf("%s %d %" PRIu64 " %" PRIu64 " %s\n", files[i].name, files[i].state, files[i].done, files[i].resumed,
               files[i].digest);
    close(folder);
    return status;
}

int main(int argc, char **argv)
{
    tg_net_params params = {.endpoint = "https://huggingface.co", .max_wait = 5,
                            .watch = {.progress = progress, .note = note}};
    tg_error err = {0};
    tg_net *net;
    bool replace = false, into_memory = false;
    for (int c; (c = getopt(argc, argv, "e:t:w:rg")) != -1;)
        switch (c) {
        case 'e': params.endpoint = optarg; break;
        case 't': params.token = optarg; break;
        case 'w': params.max_wait = atof(optarg); break;
        case 'r': replace = true; break;
        case 'g': into_memory = true; break;
        default: return 2;
        }
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    tg_status status = tg_net_create(&net, &params, &err);
    if (status == TG_OK)
        status = into_memory ? get(net, argv[optind], &err)
                             : fetch(net, argv + optind, (size_t)(argc - optind) / 4, replace, &err);
    tg_net_free(net);
    if (status != TG_OK)
        fprintf(stderr, "error: %s\n", err.message);
    return interrupted ? 128 + interrupted : (int)status;
}
