#include "harness/scenario/load.h"

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
}

/* The world the job can have with n nodes is n times workers_per_node. */
static void check_world_sizes(const struct scenario *s, struct diagnostics *d) {
    const struct expect *e = &s->expect;
    const struct job_spec *j = &s->job;
    int most = j->max_nodes < s->cluster.nodes ? j->max_nodes : s->cluster.nodes;
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
    if (!r->d->errors)
        check_expect(r->s, r->d);
}
