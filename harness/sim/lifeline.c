/* Lifelines as the kernel keeps them: a connection has holders - the agent that made it, and the
 * worker group that inherited it: its guard, and its workers where they have not closed it - and
 * when the last of them goes its FIN goes out, through the network as it is then. Not so when the
 * node has lost its power, and not when the connection was reset on the way or poisoned by its
 * agent. What the store makes of the end is the core's to say. */
#include "harness/sim/simulation.h"

#include "agent/core/kv_request.h"
#include "agent/core/lifeline.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

struct sim_lifeline {
    struct sim_lifeline *next, *older; /* of all; of its node */
    int node;
    uint64_t life, id; /* of the agent; of the core's request */
    struct lifeline_claim claim;
    bool agent;     /* holds it */
    bool stands;    /* the claim was sent */
    bool over;      /* it can never end in order any more, or has */
    uint64_t group; /* that holds it, 0: none has yet */
};

static bool is_held(const struct sim *c, const struct sim_lifeline *l) {
    const struct group_model *g = &c->nodes[l->node].group;
    bool group = l->group && c->nodes[l->node].shown.group.alive && g->number == l->group;
    return l->agent || (group && !(g->guard_dead && g->closes));
}

static struct sim_lifeline *find(struct sim *c, int node, uint64_t id) {
    for (struct sim_lifeline *l = c->nodes[node].lifelines; l; l = l->older)
        if (l->life == c->nodes[node].shown.life && l->id == id)
            return l;
    return NULL;
}

/* --- the store's side --- */

/* At the store, by itself: whether the compare held. */
static bool apply(struct sim *c, const struct lifeline_certificate *t) {
    struct kv_txn_result result = {0};
    sim_leases_expire(c);
    arena_clear(&c->arena);
    struct kv_txn txn = kv_request_txn(&c->arena, c->run_id, &t->txn, kv_request_plain);
    return kv_txn(c->store->kv, &txn, &c->arena, &result, NULL) == 0 && result.succeeded;
}

static void on_certify(struct sim *c, struct occurrence *o) {
    const struct sim_lifeline *l = o->payload;
    struct lifeline_certificate t;
    lifeline_certify(&l->claim, &t);
    if (!apply(c, &t)) {
        sim_mark(c, SIM_MARK_LIFELINE_REFUSED);
        return;
    }
    sim_say(c, o->node, "the end of its lifeline certifies %s", l->claim.uid);
    sim_mark(c, SIM_MARK_LIFELINE_CERTIFIED);
    c->result->transactions++;
    sim_judge_txn(c, l->claim.uid, t.ops, t.txn.n_ops);
    sim_faults_applied(c, o->node);
    sim_wire_fan_out(c);
}

static void store_sees(struct sim *c, struct sim_lifeline *l, enum lifeline_end how) {
    int64_t due_ns = lifeline_due_ns(how, c->now_ns);
    if (due_ns < INT64_MAX)
        sim_plan(c, due_ns, l->node, on_certify)->payload = l;
}

/* What does not get through is sent again by the kernel, until it gives up. */
static void on_fin(struct sim *c, struct occurrence *o) {
    struct sim_lifeline *l = o->payload;
    if (l->over)
        return;
    if (!sim_node_is_cut(c, o->node)) {
        l->over = true;
        store_sees(c, l, LIFELINE_CLOSED);
    } else if (sim_chance(&c->nodes[o->node].wire, 800)) {
        int64_t back_ns = c->nodes[o->node].cut_until_ns;
        sim_postpone(c, o, back_ns + sim_chance_ns(&c->nodes[o->node].wire, 0, 400 * SIM_MS));
    } else {
        sim_mark(c, SIM_MARK_LIFELINE_UNHEARD);
    }
}

void sim_lifeline_release(struct sim *c, int node) {
    for (struct sim_lifeline *l = c->nodes[node].lifelines; l; l = l->older) {
        if (l->over || !l->stands || is_held(c, l))
            continue;
        l->stands = false; /* its end is on its way */
        sim_plan(c, c->now_ns + sim_delay_ns(c, node), node, on_fin)->payload = l;
    }
}

/* --- the agent's side --- */

static void tell(struct sim *c, const struct sim_lifeline *l, bool open) {
    struct event ev = {.kind = EVENT_LIFELINE, .lifeline = {.id = l->id, .open = open}};
    sim_agent_event(c, l->node, &ev);
}

static void on_standing(struct sim *c, struct occurrence *o) {
    struct sim_lifeline *l = o->payload;
    if (!l->agent)
        return; /* dropped meanwhile */
    l->stands = o->a;
    l->agent = l->stands;
    tell(c, l, l->stands);
}

static void on_broken(struct sim *c, struct occurrence *o) {
    struct sim_lifeline *l = o->payload;
    if (!l->agent)
        return;
    l->agent = false;
    tell(c, l, false);
}

static void open_one(struct sim *c, int node, const struct action *a) {
    struct sim_lifeline *l = mem_new(struct sim_lifeline);
    l->node = node;
    l->life = c->nodes[node].shown.life;
    l->id = a->lifeline.id;
    l->agent = true;
    l->claim = a->lifeline.claim;
    l->next = c->lifelines;
    c->lifelines = l;
    l->older = c->nodes[node].lifelines;
    c->nodes[node].lifelines = l;
    bool fails = sim_node_is_cut(c, node) || (!c->calm_now && sim_chance(&c->nodes[node].wire, 20));
    int64_t takes_ns =
        fails ? 2 * c->judge.job.timing.hb_ns : sim_delay_ns(c, node) + sim_delay_ns(c, node);
    if (!c->calm_now && sim_chance(&c->nodes[node].wire, 50))
        takes_ns += 1000 * SIM_MS; /* its first packet is lost, and sent again */
    struct occurrence *o = sim_plan_agent(c, c->now_ns + takes_ns, node, on_standing);
    o->payload = l;
    o->a = !fails;
}

/* Dropped: who still holds it can only end it with a reset. */
static void drop_one(struct sim *c, int node, uint64_t id) {
    struct sim_lifeline *l = find(c, node, id);
    if (!l)
        return;
    l->agent = false;
    l->over = true;
}

void sim_lifeline_act(struct sim *c, int node, const struct action *a) {
    if (a->kind == ACTION_LIFELINE_OPEN)
        open_one(c, node, a);
    else
        drop_one(c, node, a->lifeline.id);
}

void sim_lifeline_born(struct sim *c, int node) {
    struct sim_node *n = &c->nodes[node];
    for (struct sim_lifeline *l = c->nodes[node].lifelines; l; l = l->older)
        if (l->life == n->shown.life && l->agent && l->stands)
            l->group = n->group.number;
}

void sim_lifeline_agent_gone(struct sim *c, int node) {
    for (struct sim_lifeline *l = c->nodes[node].lifelines; l; l = l->older)
        l->agent = false;
    sim_lifeline_release(c, node);
}

void sim_lifeline_power_off(struct sim *c, int node) {
    for (struct sim_lifeline *l = c->nodes[node].lifelines; l; l = l->older) {
        if (!l->over && l->stands)
            sim_mark(c, SIM_MARK_LIFELINE_UNHEARD);
        l->over = true;
    }
}

/* --- what breaks them --- */

static void break_one(struct sim *c, struct sim_lifeline *l) {
    if (is_held(c, l) && l->group)
        sim_mark(c, SIM_MARK_LIFELINE_RESET);
    l->over = true;
    if (l->agent && c->nodes[l->node].core)
        sim_plan_agent(c, c->now_ns + sim_delay_ns(c, l->node), l->node, on_broken)->payload = l;
}

bool sim_lifeline_reset(struct sim *c, int node) {
    bool any = false;
    for (struct sim_lifeline *l = c->nodes[node].lifelines; l; l = l->older) {
        if (l->over || !l->stands)
            continue;
        store_sees(c, l, LIFELINE_BROKEN);
        break_one(c, l);
        any = true;
    }
    return any;
}

/* A store that starts knows none. */
void sim_lifeline_forget(struct sim *c) {
    for (struct sim_lifeline *l = c->lifelines; l; l = l->next)
        if (!l->over && l->stands)
            break_one(c, l);
}

void sim_lifeline_fini(struct sim *c) {
    for (struct sim_lifeline *l = c->lifelines, *next; l; l = next) {
        next = l->next;
        free(l);
    }
    c->lifelines = NULL;
}
