/* Finds what is wrong with a scenario as a whole, when each key alone is right. */
#include "base/str.h"
#include "faults/effect.h"
#include "harness/scenario/load.h"

#include <inttypes.h>

/* A torchrun that lost a node waits 15 s for its beats and 30 s for others before it goes on. */
static const int64_t STALL_NS = 30000000000, TORCHRUN_STALL_NS = 120000000000;

static void fill_defaults(struct scenario *s) {
    if (!s->cluster.start)
        s->cluster.start = s->cluster.nodes;
    if (!s->job.min_nodes) {
        s->job.min_nodes = 1;
        s->job.max_nodes = s->cluster.nodes;
    }
    /* Over the legacy protocol rankrun too has no count of the job's own (check_by_torchrun). */
    if (!s->has_semantics)
        s->torchrun_semantics = str_eq(s->job.launcher, "torchrun") ||
                                (s->job.rdzv_backend && str_eq(s->job.rdzv_backend, "etcd"));
    if (!s->limits.stall_ns)
        s->limits.stall_ns = s->torchrun_semantics ? TORCHRUN_STALL_NS : STALL_NS;
}

/* What the launcher and the store between them can speak. */
static void check_backend(const struct scenario *s, struct diagnostics *d) {
    static const struct {
        const char *launcher, *own, *etcd, *alone; /* alone: it starts what it meets at */
    } spoken[] = {{"rankrun", "embedded c10d", "etcd-v3 etcd", "embedded etcd-v3 etcd"},
                  {"torchrun", "c10d", "etcd-v2 etcd", "c10d"}};
    const struct job_spec *j = &s->job;
    bool etcd = s->cluster.store == STORE_ETCD || s->cluster.store == STORE_ETCD_3;
    bool none = s->cluster.store == STORE_NONE;
    for (size_t i = 0; j->rdzv_backend && i < 2; i++) {
        ARENA_FINI struct arena a = {0};
        const char *words = etcd ? spoken[i].etcd : none ? spoken[i].alone : spoken[i].own;
        char **w = str_split(&a, words, ' ', NULL);
        while (*w && !str_eq(*w, j->rdzv_backend))
            w++;
        if (str_eq(j->launcher, spoken[i].launcher) && !*w)
            diagnostics_add(d, j->backend_place,
                            "rdzv_backend: %s with %s as the store speaks %s, not %s", j->launcher,
                            etcd ? "etcd" : "its own", words, j->rdzv_backend);
    }
    if (str_eq(j->launcher, "template") && (j->rdzv_backend || j->launcher_args_n))
        diagnostics_add(d, j->rdzv_backend ? j->backend_place : j->place,
                        "a template says all to the launcher itself: write %s into it",
                        j->rdzv_backend ? "the backend" : "launcher_args");
}

static void check_store(const struct scenario *s, struct diagnostics *d) {
    const struct cluster_spec *c = &s->cluster;
    int64_t on;
    if (c->store_quota_mb && c->store != STORE_ETCD && c->store != STORE_ETCD_3)
        diagnostics_add(d, c->quota_place,
                        "store_quota_mb: only an etcd has a quota; write store: etcd or etcd-3");
    if (c->store_args_n &&
        (c->store != STORE_EMBEDDED || c->store_on || !str_eq(s->job.launcher, "rankrun") ||
         (c->nodes == 1 && s->job.max_nodes == 1)))
        diagnostics_add(d, c->args_place,
                        "store_args: only rankrun's store in a node of its own is told options; "
                        "write store: embedded, and more nodes than one");
    if (c->store == STORE_NONE && !str_eq(s->job.launcher, "template") &&
        (c->nodes > 1 || s->job.max_nodes > 1))
        diagnostics_add(d, c->place, "store: none: %s's agents need a store to meet at; write %s",
                        s->job.launcher, "embedded");
    if (c->store_on && (*c->store_on != 'n' || !str_to_i64(c->store_on + 1, 0, c->start - 1, &on)))
        diagnostics_add(d, c->store_place,
                        "store: {on: %s}: the store's node must be on from the beginning, n0 to "
                        "n%d",
                        c->store_on, c->start - 1);
    check_backend(s, d);
}

/* The scheduler starts what starts the workers, which is the script's matter, as a template's is. */
static void settle_scheduler(struct scenario *s, struct diagnostics *d) {
    static const char *const sbatch[] = {"sbatch", NULL};
    if (!s->cluster.scheduler)
        return;
    const char *const *said = s->job.launcher_argv;
    if (said && said != sbatch && (said[1] || !str_eq(said[0], "rankrun"))) /* the default */
        diagnostics_add(d, s->cluster.scheduler_place,
                        "scheduler: slurm starts the job by sbatch: leave launcher out, and write "
                        "it into the script that job.run names");
    if (s->cluster.isolation == ISOLATION_PROCESSES || s->cluster.rootfs)
        diagnostics_add(d, s->cluster.scheduler_place,
                        "scheduler: slurm needs nodes that are namespaces, with this host's root "
                        "file system; leave %s out",
                        s->cluster.rootfs ? "rootfs" : "isolation: processes");
    s->job.launcher = "template";
    s->job.launcher_argv = sbatch;
}

static void check_provider(const struct cluster_spec *c, struct diagnostics *d) {
    if (c->hosts && !c->provider)
        diagnostics_add(d, c->hosts_place,
                        "hosts: how are they reached? Write provider: ssh, slurm or exec");
    if (c->provider && !c->hosts && !str_eq(provider_names[c->provider], "slurm"))
        diagnostics_add(d, c->provider_place, "provider: %s needs hosts: [...], one for each node",
                        provider_names[c->provider]);
    if (c->power.off && !c->provider)
        diagnostics_add(d, c->power.place,
                        "power is for hosts, and without a provider the nodes are on this machine: "
                        "write provider: ssh, slurm or exec");
    if (c->ssh && !str_eq(provider_names[c->provider], "ssh"))
        diagnostics_add(d, c->provider_place.line ? c->provider_place : c->place,
                        "ssh is for hosts that ssh reaches: write provider: ssh");
}

static void check_cluster(const struct scenario *s, struct diagnostics *d) {
    const struct cluster_spec *c = &s->cluster;
    const struct job_spec *j = &s->job;
    check_provider(c, d);
    if (c->start > c->nodes)
        diagnostics_add(d, c->start_place, "start: %d nodes are to be started, %s", c->start,
                        c->nodes == 1 ? "but there is only 1" : "more than there are");
    if (j->min_nodes > c->nodes)
        diagnostics_add(d, j->nnodes_place, "nnodes needs at least %d nodes, the cluster has %d",
                        j->min_nodes, c->nodes);
    if (j->checkpoint_complete && !j->checkpoint_dir)
        diagnostics_add(d, j->place, "checkpoint: complete needs a dir to look at");
}

static bool is_beyond(const struct trigger *t, int64_t total_ns) {
    return t->time_ns >= total_ns || t->plus_ns >= total_ns - t->time_ns;
}

static void check_timeline(const struct scenario *s, struct diagnostics *d) {
    int64_t total_ns = s->limits.total_ns;
    if (s->timeline_n && s->expect.outcome == OUTCOME_REFUSED)
        diagnostics_add(
            d, s->timeline[0].place,
            "%s can never fire: outcome: refused is of a job that does not begin; leave "
            "the timeline out",
            s->timeline[0].id);
    for (size_t i = 0; i < s->timeline_n; i++) {
        const struct timeline_entry *a = &s->timeline[i];
        if (is_beyond(&a->when, total_ns))
            diagnostics_add(d, a->when.place,
                            "%s can never fire: the run ends after limits.total, %" PRId64 " s",
                            a->id, total_ns / 1000000000);
        if (a->until && is_beyond(a->until, total_ns))
            diagnostics_add(d, a->until->place,
                            "until: %s can never end so: the run ends after limits.total, %" PRId64
                            " s; without until it lasts to the end of the run",
                            a->id, total_ns / 1000000000);
    }
}

int scenario_nodes_ever_on(const struct scenario *s) {
    for (size_t i = 0; i < s->timeline_n; i++)
        if ((fault_effects(s->timeline[i].fault) & EFFECT_STARTS_NODE) &&
            s->timeline[i].on.what != TARGET_STORES)
            return s->cluster.nodes;
    return s->cluster.start;
}

const char *job_rdzv_conf(const struct job_spec *job, const char *key) {
    const char *value = NULL;
    for (size_t i = 0; i < job->rdzv_conf_n; i++)
        if (str_eq(job->rdzv_conf[i].key, key))
            value = job->rdzv_conf[i].value;
    return value;
}

const char *scenario_store_host(const struct scenario *s) {
    const struct cluster_spec *c = &s->cluster;
    bool template = str_eq(s->job.launcher, "template");
    bool alone = c->nodes == 1 && s->job.max_nodes == 1;
    if (c->store != STORE_EMBEDDED || template)
        return NULL; /* what a template's endpoint is served by is its own matter */
    if (c->store_on)
        return c->store_on;
    return alone || !str_eq(s->job.launcher, "rankrun") ? "n0" : NULL;
}

int scenario_rack_of(const struct scenario *s, const char *node) {
    int64_t i;
    bool has =
        s->cluster.rack_of && *node == 'n' && str_to_i64(node + 1, 0, s->cluster.nodes - 1, &i);
    return has ? s->cluster.rack_of[i] : 0;
}

int job_ranks_per_node(const struct job_spec *j) {
    return j->workers_per_node * (j->spawns ? j->spawns : 1);
}

/* The world the job can have with n nodes is n times job_ranks_per_node. */
static void check_world_sizes(const struct scenario *s, struct diagnostics *d) {
    const struct expect *e = &s->expect;
    const struct job_spec *j = &s->job;
    int on = scenario_nodes_ever_on(s), most = j->max_nodes < on ? j->max_nodes : on;
    if (most < j->min_nodes)
        return; /* the plan says that the job could never begin */
    for (size_t i = 0; i < e->world_sizes_n; i++) {
        int w = e->world_sizes[i], per = job_ranks_per_node(j);
        if (w >= 0 && (w % per || w / per < j->min_nodes || w / per > most)) {
            diagnostics_add(d, e->world_sizes_place,
                            "world_sizes: %d can never be: %d to %d nodes with %d worker%s each "
                            "make %d to %d",
                            w, j->min_nodes, most, per, per == 1 ? "" : "s", j->min_nodes * per,
                            most * per);
            return;
        }
    }
}

static void check_probe(const struct scenario *s, const struct probe_expect *x,
                        struct diagnostics *d) {
    for (size_t i = 0; i < s->probes_n; i++)
        if (str_eq(s->probes[i].name, x->name))
            return;
    diagnostics_add(d, x->place,
                    "expect.probe: there is no probe \"%s\"; write probe: {%s: {cmd: ...}}",
                    x->name, x->name);
}

static void check_expect(const struct scenario *s, struct diagnostics *d) {
    const struct expect *e = &s->expect;
    for (size_t i = 0; i < e->probes_n; i++)
        check_probe(s, &e->probes[i], d);
    /* torchrun's agents have a budget each. */
    int most = s->job.max_restarts * (s->torchrun_semantics ? s->cluster.nodes : 1);
    if (e->has_restarts && e->restarts_min > most)
        diagnostics_add(d, e->restarts_place, "restarts: %d can never be: job.max_restarts is %d%s",
                        e->restarts_min, s->job.max_restarts,
                        s->torchrun_semantics ? " on each node" : "");
    if (e->has_world_sizes)
        check_world_sizes(s, d);
}

void validate(struct reader *r) {
    if (r->d->errors)
        return; /* what is missing or wrong already would only be said twice */
    fill_defaults(r->s);
    settle_scheduler(r->s, r->d);
    check_cluster(r->s, r->d);
    check_store(r->s, r->d);
    check_timeline(r->s, r->d);
    if (!r->d->errors)
        check_expect(r->s, r->d);
}
