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

/* Asks for the helper by a frame of 13 bytes, and takes it in. Others may copy it at the same time, and find it whole or not at
 * all; what a connection that is lost has brought is not it. */
static const char *copying(const struct provider_wish *w, struct arena *a) {
    return arena_printf(
        a,
        "c() { umask 077; mkdir -p \"$d\" && printf \"\\000\\000\\000\\015\" && "
        "printf \"%%s\" \"{\\\"op\\\":\\\"copy\\\"}\" && head -c %zu >\"$h.$$\" && "
        "[ \"$(($(wc -c <\"$h.$$\")))\" = %zu ] && chmod 700 \"$h.$$\" && mv \"$h.$$\" \"$h\"; }; "
        "[ -x \"$h\" ] || (c || { rm -f \"$h.$$\"; exit 1; }) || exit 1; ",
        w->offered, w->offered);
}

/* Not every user's shell is a Bourne shell; the script has no single quote. */
static const char *const *reach(const struct provider_wish *w, const char *host, struct arena *a) {
    const char *place = arena_printf(a, PLACE, w->helper);
    const char *copy = w->offered ? copying(w, a) : "";
    return by_ssh(w, host, arena_printf(a, "exec sh -c '%s%sexec \"$h\"'", place, copy), a);
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

const struct provider provider_ssh = {
    .name = "ssh",
    .summary = "by ssh, which copies the helper there",
    .hosts = "a name that ssh knows, also USER@HOST",
    .tells_way = true,
    .copies = true,
    .check = check,
    .reach = reach,
    .outpost = outpost,
};
