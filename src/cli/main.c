/* main.c - from argv to a command, and from its outcome to an exit status. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/options.h"
#include "cli/signals.h"
#include "cli/text.h"

/* A descriptor below 3 that is closed would be taken by the next file opened, and text written into
 * it. Each is opened on /dev/null, 0 and 1 for the wrong direction, so that their use is an error.
 */
static bool occupy_standard_descriptors(void)
{
    static const int mode[3] = {O_WRONLY, O_RDONLY, O_WRONLY};
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", mode[fd]) != fd)
            return false;
    return true;
}

static int show(const tg_options *opt, tg_error *err)
{
    tg_output out;
    int status = tg_output_open(&out, NULL, err);
    if (status)
        return status;
    if (opt->version)
        tg_output_print(&out, "%s\n", tg_build_info());
    else
        tg_options_help(&out, opt->command);
    return tg_output_close(&out, TG_OK, err);
}

static int list_attention(tg_error *err)
{
    static tg_output out;
    const char *summary, *name;
    int status = tg_output_open(&out, NULL, err);
    if (status)
        return status;
    for (int i = 0; (name = tg_attention_name(i, &summary)); i++)
        tg_output_print(&out, "%-9s %s\n", name, summary);
    return tg_output_close(&out, TG_OK, err);
}

/* Before a model is loaded in vain. */
static int check_attention(const char *wish, tg_error *err)
{
    tg_text_quoted q;
    for (int i = 0; tg_attention_name(i, NULL); i++)
        if (!strcmp(tg_attention_name(i, NULL), wish))
            return TG_OK;
    return tg_cli_fail(err, TG_E_USAGE, "--attention: '%s' is none (--attention help lists them)",
                       tg_text_quote(&q, wish));
}

static int run(int argc, char **argv, tg_error *err)
{
    tg_options opt = {0};
    if (argc < 2)
        return tg_cli_fail(err, TG_E_USAGE, "no command (see tinygpt --help)");
    opt.help = !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h");
    opt.version = !strcmp(argv[1], "--version");
    if (opt.help || opt.version)
        return show(&opt, err);
    if (argv[1][0] == '-')
        return tg_cli_fail(err, TG_E_USAGE,
                           "the command comes first, then its options "
                           "(see tinygpt --help)");
    const tg_command *command = tg_command_find(argv[1], err);
    if (!command)
        return TG_E_USAGE;
    int status = tg_options_parse(&opt, command, argc - 1, argv + 1, err);
    if (status)
        return status;
    if (opt.help || opt.version)
        return show(&opt, err);
    if (opt.attention && !strcmp(opt.attention, "help"))
        return list_attention(err);
    if (opt.attention && (status = check_attention(opt.attention, err)))
        return status;
    tg_say_quiet(opt.quiet);
    tg_color_when(opt.color);
    return command->run(&opt, err);
}

int main(int argc, char **argv)
{
    tg_error err = {0};
    if (!occupy_standard_descriptors())
        return TG_E_RESOURCE;
    tg_signals_install();
    tg_json_watch();
    int status = run(argc, argv, &err);
    if (tg_signals_caught())
        return 128 + tg_signals_caught();
    if (status && status != TG_EXIT_PIPE)
        tg_say_error("%s", err.message[0] ? err.message : "failed for no stated reason");
    return status;
}
