/* What the judge can see of a state, and what comes of what it says. The judge's counts are a part
 * of the state; where they are kept changes with each copy of a world. */
#include "harness/explore/copy_on_write.h"

#include <string.h>

static void on_broken(void *world, const char *text) {
    world_violation(world, "%s", text);
}

static void on_head(void *world, const struct head_change *h) {
    ((struct world *)world)->rounds += h->to->phase == HEAD_RUN;
}

static const char *session(const void *world, int node) {
    const struct core_share *core = ((const struct world *)world)->nodes[node].core;
    return core ? rendezvous_uid(core->r) : NULL;
}

/* Who could not reach the store does not know. */
static bool may_give_up(const void *world, int node) {
    return ((const struct world *)world)->was_cut;
}

static const struct judge_ops ops = {
    .broken = on_broken, .head = on_head, .session = session, .may_give_up = may_give_up};

void world_judge_init(struct world *w) {
    const struct explore_config *c = w->config;
    w->judge = (struct judge){
        .ops = &ops,
        .job = {.run_id = "job",
                .min = c->min,
                .max = c->max,
                .max_restarts = c->max_restarts,
                .proposals_max = c->agents + 2 * c->together + 1},
        .node_size = sizeof(*w->nodes),
        .n_nodes = c->agents,
        .n_ranks = c->agents * SLOTS,
    };
    world_judge(w);
}

struct judge *world_judge(struct world *w) {
    struct judge *j = &w->judge;
    j->world = w;
    j->kv = w->store->kv;
    j->nodes = w->nodes;
    j->now_ns = w->now_ns;
    j->last = w->last;
    j->form = w->form;
    j->ranks = w->ranks;
    return j;
}
