/* no_net.c - what stands in for net*.c and digest.c in a build without libcurl (make WITH_CURL=0): what lies on
 * this machine can be found, listed and removed; nothing can be fetched. */
#include "base/error.h"
#include "fetch/fetch.h"
#include "fetch/net.h"

bool tg_can_fetch(void)
{
    return false;
}

static tg_status refuse(tg_error *err)
{
    return tg_fail(err, TG_E_USAGE, NULL, "this tinygpt was built without libcurl (make WITH_CURL=0): it cannot fetch");
}

tg_status tg_net_create(tg_net **net, const tg_net_params *params, tg_error *err)
{
    (void)params;
    *net = NULL;
    return refuse(err);
}

void tg_net_free(tg_net *net)
{
    (void)net;
}

tg_status tg_net_get(tg_net *net, const char *url, size_t max_bytes, tg_reply *reply, tg_error *err)
{
    (void)net, (void)url, (void)max_bytes;
    *reply = (tg_reply){.size = TG_SIZE_UNKNOWN};
    return refuse(err);
}

tg_status tg_net_fetch(tg_net *net, tg_download *downloads, size_t n, tg_error *err)
{
    (void)net, (void)downloads, (void)n;
    return refuse(err);
}

tg_status tg_digest_file(int fd, tg_digest_kind kind, uint64_t size, bool (*go_on)(void *arg, uint64_t done), void *arg,
                         char hex[65], tg_error *err)
{
    (void)fd, (void)kind, (void)size, (void)go_on, (void)arg;
    hex[0] = '\0';
    return refuse(err);
}
