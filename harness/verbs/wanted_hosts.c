#include "harness/verbs/wanted_hosts.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "harness/play/selection.h"
#include "harness/verb.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { HOSTS_MAX = 1024, HOSTFILE_MAX = 1 << 20 };

static const char *const own[] = {"--provider", "--hosts", "--hostfile", "--ssh"};

bool wanted_hosts_asked(const struct arguments *a) {
    for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
        if (arguments_value(a, own[i]))
            return true;
    return false;
}

/* ---- which ---- */

static char *trimmed(char *s) {
    while (isspace((unsigned char)*s))
        s++;
    for (size_t n = strlen(s); n && isspace((unsigned char)s[n - 1]);)
        s[--n] = 0;
    return s;
}

static int add(struct wanted_hosts *h, const char *name, struct err *err) {
    if (!*name)
        return err_say(err, -EINVAL, "a host without a name");
    for (size_t i = 0; i < h->n; i++)
        if (str_eq(h->names[i], name))
            return err_say(err, -EINVAL, "%s is named twice", name);
    if (h->n == HOSTS_MAX)
        return err_say(err, -EINVAL, "more than %d hosts", HOSTS_MAX);
    mem_push(h->names, h->n) = name;
    return 0;
}

static int read_file(struct wanted_hosts *h, const char *path, struct err *err) {
    BUF_FINI struct buf text = {0};
    size_t n;
    int r = file_read_plain(path, HOSTFILE_MAX, &text, err);
    char **lines = r ? NULL : str_split(&h->arena, buf_str(&text), '\n', &n);
    for (size_t i = 0; r == 0 && i < n; i++) {
        char *line = trimmed(lines[i]);
        if (*line && *line != '#' && (r = add(h, line, err)) != 0)
            err_wrap(err, "%s:%zu: ", path, i + 1);
    }
    if (r == 0 && !h->n)
        r = err_say(err, -EINVAL, "%s names no host", path);
    return r;
}

/* A command may have commas in it. */
static int read_list(struct wanted_hosts *h, const char *list, bool commands, struct err *err) {
    size_t n;
    char **names = str_split(&h->arena, list, commands ? '\n' : ',', &n);
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        if ((r = add(h, trimmed(names[i]), err)) != 0)
            err_wrap(err, "--hosts: ");
    return r;
}

static int check_all(const struct wanted_hosts *h, struct err *err) {
    int r = 0;
    for (size_t i = 0; i < h->n && r == 0; i++)
        r = h->provider->check(h->names[i], err);
    return r;
}

/* Those that the provider knows. */
static int read_found(struct wanted_hosts *h, struct err *err) {
    const char *const *names;
    size_t n;
    int r = h->provider->find(&h->arena, &names, &n, err);
    for (size_t i = 0; i < n && r == 0; i++)
        r = add(h, names[i], err);
    return r;
}

static int read_all(const struct arguments *a, struct wanted_hosts *h, struct err *err) {
    const char *list = arguments_value(a, "--hosts"), *file = arguments_value(a, "--hostfile");
    if (list ? file != NULL : !file && !h->provider->find)
        return err_say(err, -EINVAL, "name the hosts by --hosts or by --hostfile; one of %s is %s",
                       h->provider->name, h->provider->hosts);
    int r = list   ? read_list(h, list, str_eq(h->provider->name, "exec"), err)
            : file ? read_file(h, file, err)
                   : read_found(h, err);
    return r ? r : check_all(h, err);
}

int wanted_hosts_read(const struct arguments *a, struct wanted_hosts *ret) {
    const char *name = arguments_value(a, "--provider");
    struct err err;
    *ret = (struct wanted_hosts){.provider = provider_find(name ? name : "ssh"),
                                 .ssh = arguments_value(a, "--ssh")};
    if (!ret->provider)
        return verb_usage_error(a->verb, "--provider %s: there are exec, slurm and ssh", name);
    if (ret->ssh && !str_eq(ret->provider->name, "ssh"))
        return verb_usage_error(a->verb, "--ssh is for hosts that ssh reaches");
    return read_all(a, ret, &err) == 0 ? 0 : verb_usage_error(a->verb, "%s", err.msg);
}

void wanted_hosts_fini(struct wanted_hosts *h) {
    free(h->names);
    arena_fini(&h->arena);
}

int wanted_hosts_add(const struct arguments *a, struct arena *arena, const char ***sets) {
    BUF_FINI struct buf text = {0};
    struct json_writer w = {.out = &text};
    struct wanted_hosts h;
    int r = wanted_hosts_read(a, &h);
    json_array(&w, NULL);
    for (size_t i = 0; i < h.n; i++)
        json_put_string(&w, NULL, h.names[i]);
    json_end_array(&w);
    const char *more[] = {
        arena_printf(arena, "cluster.provider=%s", h.provider ? h.provider->name : ""),
        arena_printf(arena, "cluster.hosts=%s", buf_str(&text)),
        h.ssh ? arguments_set(arena, "cluster.ssh", h.ssh) : NULL, NULL};
    if (r == 0)
        *sets = sets_join(arena, *sets, more);
    wanted_hosts_fini(&h);
    return r;
}
