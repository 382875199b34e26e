/* Settles the keys of --rdzv-conf. */
#include "agent/options_given.h"
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* The keys that mean something here. Torchrun's are in seconds and may be bare numbers; ours say
 * their unit. */
static const struct key {
    const char *name;
    size_t offset;
    bool seconds;
} keys[] = {
    {"hb", offsetof(struct options_rdzv, hb_ms), false},
    {"fence", offsetof(struct options_rdzv, fence_ms), false},
    {"hard", offsetof(struct options_rdzv, hard_ms), false},
    {"suspect", offsetof(struct options_rdzv, suspect_ms), false},
    {"admit", offsetof(struct options_rdzv, admit_ms), false},
    {"stop_timeout", offsetof(struct options_rdzv, stop_timeout_ms), false},
    {"give_up", offsetof(struct options_rdzv, give_up_ms), false},
    {"join_timeout", offsetof(struct options_rdzv, join_timeout_ms), true},
    {"last_call_timeout", offsetof(struct options_rdzv, last_call_timeout_ms), true},
};
enum { KEYS = sizeof(keys) / sizeof(*keys) };

/* Torchelastic's name of it, in its legacy rendezvous. */
static const struct key timeout = {"timeout", offsetof(struct options_rdzv, join_timeout_ms), true};

#define FREE_ROUNDS "max_free_rounds_per_hour"

/* One in 7 s for an hour: more than any job can train between, and fewer than one makes whose node
 * comes and goes as fast as it can. */
enum { FREE_ROUNDS_USUAL = 500 };

/* Torchrun's keys that have nothing to set here. */
static const char *const without_effect[] = {
    "timeout",
    "close_timeout",
    "heartbeat_timeout",
    "heartbeat",
    "keep_alive_interval",
    "read_timeout",
    "is_host",
    "store_type",
    "protocol",
    "keep_alive_max_attempt",
    "ssl_cert",
    "ssl_cert_key",
    "ca_cert",
    "cert",
    "key",
    "cacert",
    "rank",
    "etcd_prefix",
    "use_libuv",
    "user",
    "password",
    "password_file",
    "token",
    "token_file",
    "store_cert",
    "store_key",
    "store_client_ca",
    NULL,
};

static int set_time(struct options_rdzv *r, const struct key *k, const char *value,
                    struct err *err) {
    int64_t ns, seconds;
    int64_t *at = (int64_t *)(void *)((char *)r + k->offset);
    if (k->seconds && str_to_i64(value, 0, 1000000, &seconds)) {
        *at = seconds * 1000;
        return 0;
    }
    if (str_to_duration_ns(value, &ns, NULL) < 0)
        return err_say(err, -EINVAL, "--rdzv-conf %s=%s: must be a duration as 150ms or 2s%s",
                       k->name, value, k->seconds ? ", or seconds" : "");
    *at = ns / 1000000;
    return 0;
}

/* A key that looks like one of ours is a slip of the pen; any other is torchrun's or a plug-in's,
 * and torchrun ignores what it does not know. */
static int unknown_key(struct options_given *g, const char *name, struct err *err) {
    const char *names[KEYS + 6] = {"profile", "attempt", "lifeline", FREE_ROUNDS, "quarantine"};
    for (size_t i = 0; i < KEYS; i++)
        names[i + 5] = keys[i].name;
    for (const char *const *p = without_effect; *p; p++)
        if (str_eq(name, *p)) {
            options_notice(g, "--rdzv-conf: %s has no effect here", name);
            return 0;
        }
    const char *near = str_nearest(name, names);
    if (near)
        return err_say(err, -EINVAL, "--rdzv-conf: unknown key %s; did you mean %s?", name, near);
    options_notice(g, "--rdzv-conf: %s is not known and is ignored", name);
    return 0;
}

/* Torchelastic's protocol times its beats itself, and admits everybody at once. */
static void tell_unused(struct options_given *g, const char *name) {
    static const char *const unused[] = {"hb",      "fence",    "hard",      "suspect",    "admit",
                                         "attempt", "lifeline", FREE_ROUNDS, "quarantine", NULL};
    for (const char *const *p = unused; g->legacy && *p; p++)
        if (str_eq(name, *p))
            options_notice(g, "--rdzv-conf: %s has no effect with --rdzv-backend etcd", name);
}

int options_check_quarantine(const char *what, const char *word, struct err *err) {
    if (str_eq(word, "auto") || str_eq(word, "always") || str_eq(word, "never"))
        return 0;
    return err_say(err, -EINVAL, "%s%s: must be auto, always or never", what, word);
}

static int set_free_rounds(struct options_rdzv *r, const char *value, struct err *err) {
    int64_t n;
    if (!str_to_i64(value, 0, 1000000, &n))
        return err_say(err, -EINVAL,
                       "--rdzv-conf " FREE_ROUNDS
                       "=%s: must be a number from 0 to 1000000; with 0 there is no limit",
                       value);
    r->max_free_rounds = (int)n;
    return 0;
}

/* Slurm starts a job that it requeues again under its id, with one more restart. */
static const char *slurm_attempt(struct arena *a) {
    const char *job = getenv("SLURM_JOB_ID"), *restarts = getenv("SLURM_RESTART_COUNT");
    if (!job || !job[0])
        return NULL;
    return arena_printf(a, "slurm-%.24s-%.24s", job, restarts && restarts[0] ? restarts : "0");
}

static bool uses_etcd(const struct options_given *g) {
    return g->legacy || (g->rdzv_backend && str_eq(g->rdzv_backend, "etcd-v3"));
}

static int set_key(struct options_rdzv *r, struct options_given *g, const char *name,
                   const char *value, struct err *err) {
    tell_unused(g, name);
    for (size_t i = 0; i < KEYS; i++)
        if (str_eq(name, keys[i].name))
            return set_time(r, &keys[i], value, err);
    if (g->legacy && str_eq(name, "timeout"))
        return set_time(r, &timeout, value, err);
    int code = uses_etcd(g) ? options_set_access(&r->access, g, name, value, err)
                            : options_set_token(&r->access, g, name, value, err);
    if (!code && !uses_etcd(g) && g->has_store)
        code = options_set_tls(&r->tls, name, value);
    if (code)
        return code < 0 ? code : 0;
    if (g->legacy && str_eq(name, "etcd_prefix"))
        r->etcd_prefix = value;
    else if (str_eq(name, "attempt"))
        r->attempt = value;
    if (r->etcd_prefix == value || r->attempt == value)
        return 0;
    if (str_eq(name, FREE_ROUNDS))
        return set_free_rounds(r, value, err);
    if (str_eq(name, "quarantine")) {
        r->quarantine = value;
        return options_check_quarantine("--rdzv-conf quarantine=", value, err);
    }
    if (str_eq(name, "lifeline")) {
        if (!str_eq(value, "on") && !str_eq(value, "off"))
            return err_say(err, -EINVAL, "--rdzv-conf lifeline=%s: must be on or off", value);
        r->no_lifeline = str_eq(value, "off");
        g->lifeline = !r->no_lifeline;
        return 0;
    }
    if (!str_eq(name, "profile"))
        return unknown_key(g, name, err);
    if (!str_eq(value, "fast") && !str_eq(value, "default"))
        return err_say(err, -EINVAL, "--rdzv-conf profile=%s: must be fast or default", value);
    r->profile = value;
    return 0;
}

/* In place; returns the first character that is no space. */
static char *strip(char *s) {
    while (isspace((unsigned char)*s))
        s++;
    for (size_t n = strlen(s); n > 0 && isspace((unsigned char)s[n - 1]); n--)
        s[n - 1] = '\0';
    return s;
}

static int set_pair(struct options_rdzv *r, struct options_given *g, char *pair, struct err *err) {
    char *equals = strchr(pair, '=');
    if (equals)
        *equals = '\0';
    const char *name = strip(pair), *value = equals ? strip(equals + 1) : "";
    if (!name[0])
        return err_say(err, -EINVAL,
                       "The rendezvous configuration string must be in format "
                       "<key1>=<value1>,...,<keyN>=<valueN>.");
    for (size_t i = 0; !value[0] && i < KEYS; i++)
        if (str_eq(name, keys[i].name))
            return err_say(err, -EINVAL, "--rdzv-conf %s: give it a value, as %s=%s", name, name,
                           keys[i].seconds ? "30" : "150ms");
    if (!value[0] && (str_eq(name, "profile") || str_eq(name, "attempt")))
        return err_say(err, -EINVAL, "--rdzv-conf %s: give it a value, as %s=%s", name, name,
                       str_eq(name, "profile") ? "fast" : "2");
    if (!value[0])
        return err_say(err, -EINVAL,
                       "The rendezvous configuration option '%s' must have a value specified.",
                       name);
    return set_key(r, g, name, value, err);
}

int options_settle_rdzv(struct options_rdzv *ret, struct options_given *g, struct err *err) {
    struct options_rdzv r = {
        .profile = "default", .quarantine = "auto", .max_free_rounds = FREE_ROUNDS_USUAL};
    size_t n;
    for (size_t i = 0; i < KEYS; i++)
        *(int64_t *)(void *)((char *)&r + keys[i].offset) = -1;
    char *conf = strip(arena_strdup(g->arena, g->rdzv_conf ? g->rdzv_conf : ""));
    char **pairs = str_split(g->arena, conf, ',', &n);
    for (size_t i = 0; conf[0] && i < n; i++) {
        int code = set_pair(&r, g, pairs[i], err);
        if (code)
            return code;
    }
    if (!r.attempt)
        r.attempt = slurm_attempt(g->arena);
    int code = options_settle_tls(&r, err);
    if (!code)
        code = uses_etcd(g) ? options_settle_access(&r.access, g, err)
                            : options_settle_token(&r.access, g, err);
    if (code)
        return code;
    if (g->lifeline && r.access.https && !uses_etcd(g))
        options_notice(g, "--rdzv-conf lifeline=on has no effect over https: the end of a "
                          "connection is signed by nobody");
    *ret = r;
    return 0;
}
