/* Compares what each worker was given with what its launcher got, and with what the first worker of
 * that launcher was given. */
#include "harness/judge/checks/check.h"

#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char broken[] =
    "Inheritance: a worker is given what its launcher got and no other worker of it less.";

/* ---- what may differ ---- */

/* Variables that a launcher sets, changes or takes away by its promise; one that ends with * is how
 * they begin. */
static const struct {
    const char *name, *source;
} promised[] = {
    {"RANK", "torchelastic, worker environment"},
    {"LOCAL_RANK", "torchelastic, worker environment"},
    {"GROUP_RANK", "torchelastic, worker environment"},
    {"ROLE_*", "torchelastic, worker environment"},
    {"WORLD_SIZE", "torchelastic, worker environment"},
    {"LOCAL_WORLD_SIZE", "torchelastic, worker environment"},
    {"GROUP_WORLD_SIZE", "torchelastic, worker environment"},
    {"MASTER_ADDR", "torchelastic, worker environment"},
    {"MASTER_PORT", "torchelastic, worker environment"},
    {"TORCHELASTIC_*", "torchelastic: counts, run id, error and timer file of each worker"},
    {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "torchelastic, worker environment"},
    {"NCCL_ASYNC_ERROR_HANDLING", "torchelastic before 2.2"},
    {"CUDA_VISIBLE_DEVICES", "torchrun --virtual-local-rank"},
    {"LC_CTYPE", "Python, PEP 538"},
    {"RANKRUN_ROUND", "docs/torchrun.md"},
    {"RANKRUN_TOKEN", "docs/torchrun.md"},
    {"RANKRUN_STORE_TOKEN", "docs/security.md: workers need no secret of the store"},
    {"RANKRUN_STORE_PASSWORD", "docs/security.md: workers need no secret of the store"},
    {"SLURM*", "Slurm, which tells each task and each attempt of itself"},
    {"PWD", "a shell between launcher and worker"},
    {"OLDPWD", "a shell between launcher and worker"},
    {"SHLVL", "a shell between launcher and worker"},
    {"_", "a shell between launcher and worker"},
};

static bool is_promised(const char *name) {
    for (size_t i = 0; i < sizeof(promised) / sizeof(*promised); i++) {
        const char *p = promised[i].name;
        size_t n = strlen(p) - 1;
        if (p[n] == '*' ? strncmp(p, name, n) == 0 : str_eq(p, name))
            return true;
    }
    return false;
}

/* ---- what is compared ---- */

/* Somebody compared with what the launcher got or the first worker was given. */
struct inheritance {
    const struct trial *trial;
    const struct json *base, *own;
    char *ret; /* how they differ */
    size_t ret_size;
};

#define DIFFER(c, ...) (snprintf((c)->ret, (c)->ret_size, __VA_ARGS__), true)

/* Under torchrun values are not judged: what starts it, as a shim of pyenv, sets PATH anew. */
static bool env_differs(struct inheritance *c) {
    const struct json *own = json_get(c->own, "env");
    json_each(v, json_get(c->base, "env")) {
        const struct json *there = json_get(own, v->key);
        if (is_promised(v->key))
            continue;
        if (!there)
            return DIFFER(c, "the variable %.80s is missing", v->key);
        if (!check_by_torchrun(c->trial->scenario) &&
            !str_eq(json_string(there, ""), json_string(v, "")))
            return DIFFER(c, "the variable %.80s has another value", v->key);
    }
    return false;
}

static bool cwd_differs(struct inheritance *c) {
    const char *base = json_get_string(c->base, "cwd", NULL);
    const char *own = json_get_string(c->own, "cwd", NULL);
    return base && own && !str_eq(base, own) &&
           DIFFER(c, "the directory is %.80s and not %.80s", own, base);
}

static bool umask_differs(struct inheritance *c) {
    int64_t base = json_get_i64(c->base, "umask", -1), own = json_get_i64(c->own, "umask", -1);
    return base >= 0 && own >= 0 && base != own &&
           DIFFER(c, "the umask is %03o and not %03o", (unsigned)own, (unsigned)base);
}

static bool number_differs(struct inheritance *c, const char *key, const char *name) {
    const struct json *base = json_get(c->base, key), *own = json_get(c->own, key);
    return base && own && json_i64(base, 0) != json_i64(own, 0) &&
           DIFFER(c, "%s is %" PRId64 " and not %" PRId64, name, json_i64(own, 0),
                  json_i64(base, 0));
}

static bool priority_differs(struct inheritance *c) {
    return number_differs(c, "nice", "the nice value") ||
           number_differs(c, "policy", "the scheduling policy") ||
           number_differs(c, "oom_score_adj", "oom_score_adj");
}

/* -1 is unlimited. */
static bool is_lower(const struct json *own, const struct json *base) {
    int64_t o = json_i64(own, -1), b = json_i64(base, -1);
    return o >= 0 && (b < 0 || o < b);
}

static bool limits_differ(struct inheritance *c) {
    const struct json *own = json_get(c->own, "limits");
    json_each(b, json_get(c->base, "limits")) {
        const struct json *soft = json_first(b), *o = json_first(json_get(own, b->key));
        if (soft && o && soft->next && o->next &&
            (is_lower(o, soft) || is_lower(o->next, soft->next)))
            return DIFFER(c, "the limit of %.40s is lowered to %" PRId64 " (hard %" PRId64 ")",
                          b->key, json_i64(o, -1), json_i64(o->next, -1));
    }
    return false;
}

static bool has_number(const struct json *list, int64_t v) {
    json_each(it, list) if (json_i64(it, -1) == v) return true;
    return false;
}

static bool signals_differ(struct inheritance *c) {
    static const char *const sets[] = {"blocked", "ignored"};
    for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++) {
        const struct json *base = json_get(c->base, sets[i]), *own = json_get(c->own, sets[i]);
        json_each(it, own) if (base && !has_number(base, json_i64(it, -1))) return DIFFER(
            c, "signal %" PRId64 " is %s", json_i64(it, -1), sets[i]);
    }
    return false;
}

/* A worker outside of it is under none of the limits that the scheduler has set, and is not ended
 * with it. */
static bool cgroup_differs(struct inheritance *c) {
    const char *base = json_get_string(c->base, "cgroup", NULL);
    const char *own = json_get_string(c->own, "cgroup", NULL);
    size_t n = base ? strlen(base) : 0;
    bool below = base && own && strncmp(own, base, n) == 0 &&
                 (!own[n] || own[n] == '/' || str_eq(base, "/"));
    below = below || (own && strstr(own, "/rankquake-node-")); /* a fault has put its node there */
    return base && own && !below && DIFFER(c, "the cgroup %.80s is not within %.80s", own, base);
}

static bool process_differs(struct inheritance *c) {
    static const char *const keys[] = {"leads_group", "leads_session", "terminal"};
    static const char *const names[] = {"a process group of its own", "a session of its own",
                                        "a terminal"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        const struct json *base = json_get(c->base, keys[i]), *own = json_get(c->own, keys[i]);
        if (base && own && json_bool(base, false) != json_bool(own, false))
            return DIFFER(c, "it has %s%s", json_bool(own, false) ? "" : "not ", names[i]);
    }
    return false;
}

/* Beyond the standard streams, by the launcher's leave: rankrun's workers hold the connection that
 * ends with their node (docs/torchrun.md). */
static bool is_allowed(const struct inheritance *c, const struct json *fd, int *sockets) {
    const struct json *what = json_first(fd) ? json_first(fd)->next : NULL;
    return json_i64(json_first(fd), 0) <= 2 ||
           (!check_by_torchrun(c->trial->scenario) && str_eq(json_string(what, ""), "socket") &&
            ++*sockets <= 1);
}

/* The harness starts a launcher with the standard streams alone. */
static bool descriptors_differ(struct inheritance *c) {
    int sockets = 0, standard = 0;
    const struct json *fds = json_get(c->own, "fds");
    json_each(fd, fds) {
        const struct json *what = json_first(fd) ? json_first(fd)->next : NULL;
        standard += json_i64(json_first(fd), 3) <= 2;
        if (!is_allowed(c, fd, &sockets))
            return DIFFER(c, "descriptor %" PRId64 " (%.80s) is left open",
                          json_i64(json_first(fd), -1), json_string(what, ""));
    }
    return fds && standard < 3 && DIFFER(c, "a standard stream is closed");
}

/* How many descriptors there are says what piles up, whoever they are for. rankrun's workers hold a
 * connection that the first may not have had yet, and a template may start rankrun. */
static bool descriptors_grow(struct inheritance *c) {
    const struct json *base = json_get(c->base, "fds"), *own = json_get(c->own, "fds");
    size_t leave = !check_by_torchrun(c->trial->scenario);
    return base && own && own->length > base->length + leave &&
           DIFFER(c, "%zu descriptors are open and not %zu", own->length, base->length);
}

/* Whom a worker is compared with, and what. A template is promised nothing for but that a launcher
 * which starts a worker again does it as before. */
enum { WITH_LAUNCHER = 1, WITH_FIRST = 2 };
static const struct {
    bool (*differs)(struct inheritance *c);
    unsigned with;
} aspects[] = {
    {env_differs, WITH_LAUNCHER | WITH_FIRST},
    {cwd_differs, WITH_LAUNCHER | WITH_FIRST},
    {umask_differs, WITH_LAUNCHER | WITH_FIRST},
    {limits_differ, WITH_LAUNCHER | WITH_FIRST},
    {signals_differ, WITH_LAUNCHER | WITH_FIRST},
    {priority_differs, WITH_LAUNCHER | WITH_FIRST},
    {cgroup_differs, WITH_LAUNCHER},
    {descriptors_differ, WITH_LAUNCHER},
    {descriptors_grow, WITH_FIRST},
    {process_differs, WITH_FIRST},
};

/* ---- who is compared ---- */

struct given {
    const struct record *record, *launcher; /* launcher: what that of its node got, or NULL */
    const struct worker *worker;            /* NULL: no start of it was told */
};

/* It was recorded just before the start; of another host's stamps it is known how far they may be off. */
static const struct worker *worker_of(const struct rounds *rs, const struct record *r) {
    const struct worker *found = NULL;
    for (const struct worker *w = rounds_worker(rs, r->pid);
         w && w->start_ns >= r->t_ns - 2 * r->bound_ns; w = w->former)
        found = w;
    return found;
}

/* The newest of its node. */
static const struct record *launcher_of(const struct record *const *launchers, size_t n,
                                        const struct record *r) {
    while (n-- > 0)
        if (str_eq(launchers[n]->node, r->node))
            return launchers[n];
    return NULL;
}

static struct given *collect(const struct trial *t, size_t *ret_n) {
    struct given *v = arena_array(t->arena, struct given, t->history->n + 1);
    const struct record **launchers =
        arena_array(t->arena, const struct record *, t->history->n + 1);
    size_t n = 0, launchers_n = 0;
    history_each(r, t->history) {
        if (!record_is(r, "given"))
            continue;
        if (r->source == SOURCE_HARNESS)
            launchers[launchers_n++] = r;
        else if (r->source == SOURCE_KERNEL)
            v[n++] =
                (struct given){r, launcher_of(launchers, launchers_n, r), worker_of(t->rounds, r)};
    }
    *ret_n = n;
    return v;
}

/* The first that the same start of a launcher has started; of a template, in the same place. */
static const struct given *first_of(const struct trial *t, const struct given *v,
                                    const struct given *of) {
    for (; v != of; v++)
        if (v->launcher == of->launcher && v->worker && str_eq(v->record->node, of->record->node) &&
            (!check_template(t) || v->worker->local_rank == of->worker->local_rank))
            return v;
    return NULL;
}

static bool compare(const struct trial *t, struct finding *f, const struct given *g,
                    const struct record *base, unsigned with) {
    char how[200];
    struct inheritance c = {t, base->fields, g->record->fields, how, sizeof(how)};
    for (size_t i = 0; i < sizeof(aspects) / sizeof(*aspects); i++)
        if (aspects[i].with & with && aspects[i].differs(&c)) {
            finding_prove(f, base->seq, g->record->seq);
            return finding_fail(f, broken,
                                with == WITH_FIRST
                                    ? "what the first worker of this launcher was given"
                                    : "what the launcher was given itself",
                                "rank %d of round %d on %s: %s", g->worker->rank, g->worker->round,
                                g->worker->node, how);
        }
    return true;
}

/* The launcher's line begins with env, which gives it something else than it gets. */
static bool is_behind_env(const struct scenario *s) {
    const char *const *argv = s->job.launcher_argv;
    return argv && argv[0] && (str_eq(str_base(argv[0]), "env") || strchr(argv[0], '='));
}

static bool judge_one(const struct trial *t, struct finding *f, const struct given *all,
                      const struct given *g) {
    const struct given *first = first_of(t, all, g);
    const char *error = record_text(g->record, "error");
    if (*error)
        return finding_unknown(f, broken,
                               "what rank %d of round %d on %s was given cannot be read: "
                               "%s",
                               g->worker->rank, g->worker->round, g->worker->node, error);
    bool promised_all = !check_template(t) && !is_behind_env(t->scenario);
    if (g->launcher && promised_all && !compare(t, f, g, g->launcher, WITH_LAUNCHER))
        return false;
    return !first || compare(t, f, g, first->record, WITH_FIRST);
}

static bool judge(const struct trial *t, struct finding *f) {
    size_t n, judged = 0;
    if (!check_sees_rounds(t, f))
        return false;
    const struct given *all = collect(t, &n);
    for (size_t i = 0; i < n; i++) {
        if (!all[i].worker)
            continue;
        if (!judge_one(t, f, all, &all[i]))
            return false;
        judged++;
    }
    if (!judged)
        return finding_skip(f, "no record (given) tells what a worker was given");
    return finding_pass(f,
                        "%zu worker%s had the variables, limits, signals and descriptors that "
                        "were due",
                        judged, judged == 1 ? "" : "s");
}

const struct check check_given = {
    .name = "given",
    .summary = "every worker is given what its launcher got, in every round",
    .text =
        "A variable that is gone after the first restart, a descriptor that is left open, a signal "
        "that is ignored, a lower limit: the job behaves otherwise from then on, and nothing says "
        "why. What the kernel shows of each worker before its first instruction is compared with "
        "what its launcher was given (variables, directory, umask, limits, signals blocked or "
        "ignored, priority, cgroup, no descriptor but the standard streams), and with the first "
        "worker of the same launcher (besides: process group, session, terminal, how many "
        "descriptors). Variables that a launcher sets by its promise may differ: ranks, sizes, "
        "MASTER_*, ROLE_*, TORCHELASTIC_*, CUDA_VISIBLE_DEVICES, what torchelastic tells NCCL, and "
        "what a shell or Python sets for itself. Values are compared and never recorded. Of a "
        "template only workers in the same place are compared with each other.",
    .example = "rankquake run scenarios/restart/worker-killed.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(KERNEL) | SOURCES(PROBE),
    .told = true,
    .judge = judge,
};
