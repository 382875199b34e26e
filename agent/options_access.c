/* The part of --rdzv-conf that says how a store is reached: of an etcd certificates, user and
 * password, of an embedded store its token. */
#include "agent/options_given.h"
#include "agent/store/token.h"
#include "base/buf.h"
#include "base/str.h"
#include "base/sys/file.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PASSWORD_MAX = 4096 };

static const char PASSWORD_VARIABLE[] = "RANKRUN_STORE_PASSWORD";
static const char TOKEN_VARIABLE[] = OPTIONS_TOKEN_VARIABLE;

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

/* The first line of a file. what: what was typed before its name. */
static int read_secret(const char **ret, struct options_given *g, const char *what,
                       const char *path, struct err *err) {
    BUF_FINI struct buf text = {0};
    int code = file_read(path, PASSWORD_MAX, &text, err);
    if (code < 0)
        return err_wrap(err, "%s: ", what), code;
    *ret = arena_strndup(g->arena, buf_str(&text), strcspn(buf_str(&text), "\r\n"));
    return 0;
}

static int set_protocol(struct store_access *a, const char *value, struct err *err) {
    if (!str_eq(value, "http") && !str_eq(value, "https"))
        return err_say(err, -EINVAL, "--rdzv-conf protocol=%s: must be http or https", value);
    a->https = str_eq(value, "https");
    a->plain = !a->https;
    return 0;
}

/* What is said of TLS: the protocol, and the fields that are files. 1, 0 or negative. */
static int set_field(struct store_access *a, const char *name, const char *value, bool tls_alone,
                     struct err *err) {
    if (str_eq(name, "protocol"))
        return set_protocol(a, value, err) ? err->code : 1;
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
        const struct field *f = &fields[i];
        if (!str_eq(name, f->name) || (tls_alone && !f->file))
            continue;
        if (f->file && access(value, R_OK) < 0)
            return err_set(err, -errno, "--rdzv-conf %s=%s", name, value);
        *(const char **)(void *)((char *)a + f->offset) = value;
        return 1;
    }
    return 0;
}

int options_set_access(struct store_access *a, struct options_given *g, const char *name,
                       const char *value, struct err *err) {
    if (str_eq(name, "password_file"))
        return read_secret(&a->password, g, "--rdzv-conf password_file", value, err) ? err->code
                                                                                     : 1;
    if (str_eq(name, "password"))
        options_notice(g, "--rdzv-conf password: everybody on this host can read command "
                          "lines; use password_file=FILE or RANKRUN_STORE_PASSWORD");
    return set_field(a, name, value, false, err);
}

static int check_certificates(const struct store_access *a, struct options_given *g,
                              struct err *err) {
    if (a->key && !a->cert)
        return err_say(err, -EINVAL, "--rdzv-conf key=%s: its certificate is missing, cert=FILE",
                       a->key);
    if (!a->https && (a->cacert || a->cert))
        options_notice(g, "--rdzv-conf: certificates have no effect without protocol=https");
    return 0;
}

/* Workers need no secret of ours: the variable goes, unless this is only the start of agents
 * elsewhere. Its bytes go too, as /proc/PID/environ shows them to every process of the user. */
static const char *take_variable(struct options_given *g, const char *name) {
    char *value = getenv(name);
    if (!value)
        return NULL;
    const char *taken = arena_strdup(g->arena, value);
    if (!g->hosts && !g->hostfile) {
        explicit_bzero(value, strlen(value));
        unsetenv(name);
    }
    return taken;
}

int options_settle_access(struct store_access *a, struct options_given *g, struct err *err) {
    const char *password = take_variable(g, PASSWORD_VARIABLE);
    take_variable(g, TOKEN_VARIABLE);
    if (!a->password && a->user)
        a->password = password;
    int code = check_certificates(a, g, err);
    if (code)
        return code;
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

/* ---- an embedded store: a token, and TLS ---- */

/* file: that it is from; NULL: from none. */
static int check_token(const char *what, const char *file, const char *token, struct err *err) {
    int code = token_check(token, err);
    return code ? (err_wrap(err, "%s%s%s: ", what, file ? " " : "", file ? file : ""), code) : 0;
}

int options_set_token(struct store_access *a, struct options_given *g, const char *name,
                      const char *value, struct err *err) {
    const char *file = str_eq(name, "token_file") ? value : NULL;
    int code = 0;
    if (file) {
        code = read_secret(&a->token, g, "--rdzv-conf token_file", value, err);
    } else if (str_eq(name, "token")) {
        a->token = value;
        options_notice(g, "--rdzv-conf token: everybody on this host can read command lines; use "
                          "token_file=FILE or RANKRUN_STORE_TOKEN");
    } else {
        return g->has_store ? set_field(a, name, value, true, err) : 0;
    }
    if (!code)
        code =
            check_token(file ? "--rdzv-conf token_file" : "--rdzv-conf token", file, a->token, err);
    return code ? code : 1;
}

void options_ask_sealed(struct store_access *a, struct options_given *g) {
    if (!a->token)
        a->sealed = arena_alloc(g->arena, sizeof(*a->sealed));
}

/* Hosts of a Slurm cluster share the key of MUNGE: that a token is told by. */
static bool is_slurm_job(void) {
    const char *job = getenv("SLURM_JOB_ID");
    return job && job[0];
}

static int settle_said_token(struct store_access *a, struct options_given *g, struct err *err) {
    const char *token = take_variable(g, TOKEN_VARIABLE);
    take_variable(g, PASSWORD_VARIABLE);
    int code = check_certificates(a, g, err);
    if (!code && !a->token && g->token_file)
        code = read_secret(&a->token, g, "--token-file", g->token_file, err);
    if (!code && g->token_file)
        return check_token("--token-file", g->token_file, a->token, err);
    if (code || a->token || !token || !token[0])
        return code;
    a->token = token;
    return check_token(TOKEN_VARIABLE, NULL, token, err);
}

int options_settle_token(struct store_access *a, struct options_given *g, struct err *err) {
    int code = settle_said_token(a, g, err);
    if (!code && is_slurm_job())
        options_ask_sealed(a, g);
    return code;
}
