/* The part of --rdzv-conf that says how an etcd is reached: certificates, user and password. */
#include "agent/base/buf.h"
#include "agent/base/str.h"
#include "agent/options_given.h"
#include "agent/sys/file.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PASSWORD_MAX = 4096 };

static const char PASSWORD_VARIABLE[] = "RANKRUN_STORE_PASSWORD";

/* Torchrun's names: the first of its etcd backend, the second of etcd-v2 and c10d. */
static const struct field {
    const char *name;
    size_t offset;
    bool file;
} fields[] = {
    {"cacert", offsetof(struct store_access, cacert), true},
    {"ca_cert", offsetof(struct store_access, cacert), true},
    {"cert", offsetof(struct store_access, cert), true},
    {"ssl_cert", offsetof(struct store_access, cert), true},
    {"key", offsetof(struct store_access, key), true},
    {"ssl_cert_key", offsetof(struct store_access, key), true},
    {"user", offsetof(struct store_access, user), false},
    {"password", offsetof(struct store_access, password), false},
};

static int read_password(struct store_access *a, struct options_given *g, const char *path,
                         struct err *err) {
    struct buf text = {0};
    int code = file_read(path, PASSWORD_MAX, &text, err);
    if (code < 0)
        return err_wrap(err, "--rdzv-conf password_file: "), code;
    a->password = arena_strndup(g->arena, buf_str(&text), strcspn(buf_str(&text), "\r\n"));
    buf_fini(&text);
    return 0;
}

static int set_protocol(struct store_access *a, const char *value, struct err *err) {
    if (!str_eq(value, "http") && !str_eq(value, "https"))
        return err_say(err, -EINVAL, "--rdzv-conf protocol=%s: must be http or https", value);
    a->https = str_eq(value, "https");
    return 0;
}

int options_set_access(struct store_access *a, struct options_given *g, const char *name,
                       const char *value, struct err *err) {
    if (str_eq(name, "protocol"))
        return set_protocol(a, value, err) ? err->code : 1;
    if (str_eq(name, "password_file"))
        return read_password(a, g, value, err) ? err->code : 1;
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
        const struct field *f = &fields[i];
        if (!str_eq(name, f->name))
            continue;
        if (f->file && access(value, R_OK) < 0)
            return err_set(err, -errno, "--rdzv-conf %s=%s", name, value);
        *(const char **)(void *)((char *)a + f->offset) = value;
        if (str_eq(name, "password"))
            options_notice(g, "--rdzv-conf password: everybody on this host can read command "
                              "lines; use password_file=FILE or RANKRUN_STORE_PASSWORD");
        return 1;
    }
    return 0;
}

/* Workers need no password: the variable goes, unless this is only the start of agents elsewhere.
 */
static void take_variable(struct store_access *a, struct options_given *g) {
    const char *value = getenv(PASSWORD_VARIABLE);
    if (!value)
        return;
    if (!a->password && a->user)
        a->password = arena_strdup(g->arena, value);
    if (!g->hosts && !g->hostfile)
        unsetenv(PASSWORD_VARIABLE);
}

int options_settle_access(struct store_access *a, struct options_given *g, struct err *err) {
    take_variable(a, g);
    if (a->key && !a->cert)
        return err_say(err, -EINVAL, "--rdzv-conf key=%s: its certificate is missing, cert=FILE",
                       a->key);
    if (!a->https && (a->cacert || a->cert))
        options_notice(g, "--rdzv-conf: certificates have no effect without protocol=https");
    if (a->user && !a->password)
        return err_say(err, -EINVAL,
                       "--rdzv-conf user=%s: its password is missing: password_file=FILE, or the "
                       "variable %s",
                       a->user, PASSWORD_VARIABLE);
    if (a->password && !a->user)
        return err_say(err, -EINVAL, "--rdzv-conf: a password without user=NAME");
    if (a->user && g->legacy)
        return err_say(err, -EINVAL,
                       "--rdzv-conf user=%s: torchelastic's rendezvous (--rdzv-backend etcd) knows "
                       "no users; etcd-v3 does",
                       a->user);
    if (a->user && !a->https)
        options_notice(g,
                       "--rdzv-conf user=%s: without protocol=https the password crosses the "
                       "network readable",
                       a->user);
    return 0;
}
