#include "agent/base/str.h"
#include "harness/scenario/load.h"

#include <inttypes.h>

static void fill_defaults(struct scenario *s) {
    if (!s->cluster.start)
        s->cluster.start = s->cluster.nodes;
    if (!s->job.min_nodes) {
        s->job.min_nodes = 1;
        s->job.max_nodes = s->cluster.nodes;
    }
}

static void check_cluster(const struct scenario *s, struct diagnostics *d) {
    const struct cluster_spec *c = &s->cluster;
    const struct job_spec *j = &s->job;
    if (c->start > c->nodes)
        diagnostics_add(d, c->start_place, "start: %d nodes are to be started, %s", c->start,
                        c->nodes == 1 ? "but there is only 1" : "more than there are");
    if (j->min_nodes > c->nodes)
        diagnostics_add(d, j->nnodes_place, "nnodes needs at least %d nodes, the cluster has %d",
                        j->min_nodes, c->nodes);
    if (c->store == STORE_NONE && (c->nodes > 1 || j->max_nodes > 1))
        diagnostics_add(d, c->place,
                        "store: none: rankrun's agents need a store to meet at; write embedded");
    if (j->checkpoint_complete && !j->checkpoint_dir)
        diagnostics_add(d, j->place, "checkpoint: complete needs a dir to look at");
}

static void check_timeline(const struct scenario *s, struct diagnostics *d) {
    for (size_t i = 0; i < s->timeline_n; i++) {
        const struct trigger *t = &s->timeline[i].when;
        if (t->time_ns + t->plus_ns >= s->limits.total_ns)
            diagnostics_add(d, t->place,
                            "%s can never fire: the run ends after limits.total, %" PRId64 " s",
                            s->timeline[i].id, s->limits.total_ns / 1000000000);
    }
}

int scenario_nodes_ever_on(const struct scenario *s) {
    for (size_t i = 0; i < s->timeline_n; i++)
        if (str_eq(s->timeline[i].fault, "node-start"))
            return s->cluster.nodes;
    return s->cluster.start;
}

/* The world the job can have with n nodes is n times workers_per_node. */
static void check_world_sizes(const struct scenario *s, struct diagnostics *d) {
    const struct expect *e = &s->expect;
    const struct job_spec *j = &s->job;
    int on = scenario_nodes_ever_on(s), most = j->max_nodes < on ? j->max_nodes : on;
    if (most < j->min_nodes)
        return; /* the plan says that the job could never begin */
    for (size_t i = 0; i < e->world_sizes_n; i++) {
        int w = e->world_sizes[i], per = j->workers_per_node;
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

static void check_expect(const struct scenario *s, struct diagnostics *d) {
    const struct expect *e = &s->expect;
    if (e->has_restarts && e->restarts_min > s->job.max_restarts)
        diagnostics_add(d, e->restarts_place, "restarts: %d can never be: job.max_restarts is %d",
                        e->restarts_min, s->job.max_restarts);
    if (e->has_world_sizes)
        check_world_sizes(s, d);
}

void validate(struct reader *r) {
    if (r->d->errors)
        return; /* what is missing or wrong already would only be said twice */
    fill_defaults(r->s);
    check_cluster(r->s, r->d);
    check_timeline(r->s, r->d);
    if (!r->d->errors)
        check_expect(r->s, r->d);
}
