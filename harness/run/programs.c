#include "harness/run/programs.h"

#include "base/str.h"
#include "harness/cluster/mark.h"
#include "harness/plan/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

static const int64_t SECOND_NS = 1000000000;

const char *placeholders_fill(struct arena *a, const char *text, const struct places *p) {
    BUF_FINI struct buf b = {0};
    while (*text) {
        const struct {
            const char *name, *value;
        } known[] = {
            {"{shared}", p->shared}, {"{disk}", p->disk}, {"{tmp}", p->tmp ? p->tmp : "/tmp"},
            {"{out}", p->out},       {"{seed}", p->seed}, {"{node}", p->node}};
        size_t i = 0, n = sizeof(known) / sizeof(*known);
        while (i < n && !str_starts(text, known[i].name))
            i++;
        if (i < n) {
            buf_puts(&b, known[i].value);
            text += strlen(known[i].name);
        } else {
            buf_putc(&b, *text++);
        }
    }
    return arena_strdup(a, buf_str(&b));
}

const char *const *placeholders_fill_all(struct arena *a, const char *const *argv, size_t n,
                                         const struct places *p) {
    const char **filled = arena_array(a, const char *, n + 1);
    for (size_t i = 0; i < n; i++)
        filled[i] = placeholders_fill(a, argv[i], p);
    return filled;
}

/* What a launcher sets for its workers must not leak in from a launcher that started the harness.
 */
static bool begins_with_any(const char *entry, const char *const *names) {
    for (; *names; names++)
        if (str_starts(entry, *names))
            return true;
    return false;
}

/* What is the caller's own on this host: on another its user has that of the helper there. */
static const char *const personal[] = {"HOME=",     "USER=", "LOGNAME=", "SHELL=",      "MAIL=",
                                       "PWD=",      "TERM=", "DISPLAY=", "SSH_",        "XDG_",
                                       "DBUS_",     "TMP",   "TEMP",     "KRB5CCNAME=", "SLURM_",
                                       "HOSTNAME=", NULL};

static bool is_passed_on(const char *entry, bool far) {
    static const char *const dropped[] = {"RANK=",
                                          "LOCAL_RANK=",
                                          "WORLD_SIZE=",
                                          "LOCAL_WORLD_SIZE=",
                                          "GROUP_RANK=",
                                          "ROLE_RANK=",
                                          "ROLE_NAME=",
                                          "ROLE_WORLD_SIZE=",
                                          "GROUP_WORLD_SIZE=",
                                          "MASTER_ADDR=",
                                          "MASTER_PORT=",
                                          "RANKRUN_ROUND=",
                                          "TORCHELASTIC_",
                                          "PET_",
                                          "RANKQUAKE_EVENTS=",
                                          "RANKQUAKE_OUTPUT=",
                                          "RANKQUAKE_WAIT=",
                                          "RANKQUAKE_NODE=",
                                          "GLOO_SOCKET_IFNAME=", /* a card of this host */
                                          "NCCL_SOCKET_IFNAME=",
                                          "TP_SOCKET_IFNAME=",
                                          "PATH=",
                                          NULL};
    return !begins_with_any(entry, dropped) && !(far && begins_with_any(entry, personal));
}

/* Of two of one name the C library finds the first, and a shell the last: there is one. */
static void put(const char **env, size_t *n, const char *entry) {
    size_t name = strcspn(entry, "=") + 1, i = 0;
    while (i < *n && strncmp(env[i], entry, name) != 0)
        i++;
    env[i] = entry;
    *n += i == *n;
}

const char *const *programs_env(struct arena *a, const struct job_spec *job, const char *bin,
                                const struct places *p, const char *const *more) {
    size_t n = 0, inherited = 0, more_n = 0;
    while (environ[inherited])
        inherited++;
    while (more && more[more_n])
        more_n++;
    const char **env = arena_array(a, const char *, inherited + job->env_n + more_n + 9);
    bool own_tmp = p->tmp && !str_eq(p->tmp, "/tmp");
    for (char **e = environ; *e; e++)
        if (is_passed_on(*e, p->far) &&
            !(own_tmp && (str_starts(*e, "TMPDIR=") || str_starts(*e, "XDG_RUNTIME_DIR="))))
            put(env, &n, *e);
    put(env, &n, arena_printf(a, "PATH=%s:%s", bin, placeholders_fill(a, plan_path(job), p)));
    put(env, &n,
        arena_printf(a, "RANKQUAKE_EVENTS=%s", p->events ? p->events : CLUSTER_EVENTS_PATH));
    if (p->wait_ns)
        put(env, &n,
            arena_printf(a, "RANKQUAKE_WAIT=%lld",
                         (long long)((p->wait_ns + SECOND_NS - 1) / SECOND_NS)));
    if (own_tmp) {
        put(env, &n, arena_printf(a, "TMPDIR=%s", p->tmp));
        put(env, &n,
            arena_printf(a, "XDG_RUNTIME_DIR=%s", p->tmp)); /* the store's marker is there */
    }
    if (p->told_node)
        put(env, &n, arena_printf(a, "RANKQUAKE_NODE=%s", p->node));
    put(env, &n, "PYTHONUNBUFFERED=1");
    if (p->output)
        put(env, &n, arena_printf(a, "RANKQUAKE_OUTPUT=%s", p->output));
    if (p->token)
        put(env, &n, p->token);
    for (size_t i = 0; i < job->env_n; i++)
        if (!str_eq(job->env[i].key, "PATH")) /* ours come before it */
            put(env, &n,
                arena_printf(a, "%s=%s", job->env[i].key,
                             placeholders_fill(a, job->env[i].value, p)));
    for (size_t i = 0; i < more_n; i++)
        put(env, &n, more[i]);
    if (*mark_own())
        put(env, &n, arena_strdup(a, mark_own()));
    return env;
}
