/* Hosts that ssh reaches, by the user's own configuration and keys. The helper is copied there once,
 * under a name that says which it is: another version of ours finds another file. */
#include "base/buf.h"
#include "base/str.h"
#include "harness/provider/provider.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#define PLACE "d=${XDG_CACHE_HOME:-$HOME/.cache}/rankquake; h=$d/rankquake-node-%.16s; "

/* What ssh could take for an option, or a shell for more than a word, is no name of a host. */
static int check(const char *host, struct err *err) {
    size_t n = 0;
    while (isalnum((unsigned char)host[n]) || (host[n] && strchr("._-@:%[]", host[n])))
        n++;
    if (!*host || host[n] || *host == '-')
        return err_say(err, -EINVAL, "\"%s\" is no name of a host; write it as you would for ssh",
                       host);
    return 0;
}

static const char *const *by_ssh(const struct provider_wish *w, const char *host,
                                 const char *command, struct arena *a) {
    size_t n = 0;
    char **words =
        str_split(a, w->ssh ? w->ssh : "ssh -o BatchMode=yes -o ConnectTimeout=10", ' ', &n);
    const char **v = arena_array(a, const char *, n + 5);
    for (size_t i = 0; i < n; i++)
        v[i] = words[i];
    v[n++] = "-T";
    v[n++] = "--";
    v[n++] = host;
    v[n++] = command;
    v[n] = NULL;
    return v;
}

/* Not every user's shell is a Bourne shell; `script` has no single quote. */
static const char *in_shell(struct arena *a, const char *script) {
    return arena_printf(a, "exec sh -c '%s'", script);
}

static const char *const *reach(const struct provider_wish *w, const char *host, struct arena *a) {
    return by_ssh(w, host,
                  in_shell(a, arena_printf(a, PLACE "[ -x \"$h\" ] || exit %d; exec \"$h\"",
                                           w->helper, PROVIDER_NO_HELPER)),
                  a);
}

/* A path within single quotes, which every shell takes as it stands. */
static const char *const *outpost(const struct provider_wish *w, const char *host,
                                  struct arena *a) {
    BUF_FINI struct buf command = {0};
    buf_puts(&command, "exec '");
    for (const char *c = provider_rankquake(w, a); *c; c++)
        if (*c == '\'')
            buf_puts(&command, "'\\''");
        else
            buf_putc(&command, *c);
    buf_puts(&command, "' preflight --outpost");
    return by_ssh(w, host, arena_strdup(a, buf_str(&command)), a);
}

/* Others may copy it at the same time, and find it whole or not at all; where there is no room nothing of
 * it stays. */
static const char *const *copy(const struct provider_wish *w, const char *host, struct arena *a) {
    return by_ssh(w, host,
                  in_shell(a, arena_printf(a,
                                           PLACE "umask 077; mkdir -p \"$d\" && cat >\"$h.$$\" && "
                                                 "chmod 700 \"$h.$$\" && mv \"$h.$$\" \"$h\" || "
                                                 "{ rm -f \"$h.$$\"; exit 1; }",
                                           w->helper)),
                  a);
}

const struct provider provider_ssh = {
    .name = "ssh",
    .summary = "by ssh, which copies the helper there",
    .hosts = "a name that ssh knows, also USER@HOST",
    .tells_way = true,
    .check = check,
    .reach = reach,
    .outpost = outpost,
    .copy = copy,
};
