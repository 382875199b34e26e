/* Any command whose standard streams are a helper's: podman, docker and kubectl have such. */
#include "harness/provider/provider.h"

#include <errno.h>
#include <string.h>

static int check(const char *host, struct err *err) {
    if (strspn(host, " \t") == strlen(host))
        return err_say(err, -EINVAL, "a host of exec is a command, and this one is empty");
    return 0;
}

static const char *const *reach(const struct provider_wish *w, const char *host, struct arena *a) {
    const char **v = arena_array(a, const char *, 4);
    v[0] = "sh";
    v[1] = "-c";
    v[2] = arena_printf(a, "exec %s", host);
    v[3] = NULL;
    return v;
}

/* The command ends with a rankquake-node, which starts the rankquake beside it. */
static const char *const *outpost(const struct provider_wish *w, const char *host,
                                  struct arena *a) {
    (void)w;
    return reach(NULL, arena_printf(a, "%s --outpost", host), a);
}

const struct provider provider_exec = {
    .name = "exec",
    .summary = "by a command each that reaches a rankquake-node on its host",
    .hosts = "a command: podman exec -i c1 rankquake-node",
    .check = check,
    .reach = reach,
    .outpost = outpost,
};
