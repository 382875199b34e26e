#include "harness/plan/entries.h"

#include "base/rand.h"
#include "base/str.h"
#include "faults/shape.h"
#include "harness/plan/wire_claim.h"

#include <stdlib.h>
#include <string.h>

struct checker {
    struct plan *plan; /* NULL: of a scenario that was loaded with errors */
    const struct scenario *s;
    struct diagnostics *d;
    int ever_on; /* so many nodes are on at some time */
    bool starts; /* something of the timeline is switched on */
};

static bool is_start(const struct timeline_entry *a) {
    return fault_effects(a->fault) & EFFECT_STARTS_NODE;
}

static bool comes_back(const struct timeline_entry *a) {
    const struct fault *f = a->fault ? fault_find(a->fault) : NULL;
    return f && fault_returns_node(f);
}

/* Of a node of the job: the store's is on from the beginning, whoever has it. */
static bool is_join(const struct timeline_entry *a) {
    return is_start(a) && a->on.what != TARGET_STORES;
}

static void unknown_fault(struct checker *c, const struct timeline_entry *a) {
    const char *near = str_nearest(a->fault, fault_names());
    if (near)
        diagnostics_add(c->d, a->fault_place, "there is no fault \"%s\"; did you mean \"%s\"?",
                        a->fault, near);
    else
        diagnostics_add(c->d, a->fault_place,
                        "there is no fault \"%s\"; `rankquake list faults` names them", a->fault);
}

static const struct fault_param *find_param(const struct fault *f, const char *name) {
    for (const struct fault_param *p = f->params; p && p->name; p++)
        if (str_eq(p->name, name))
            return p;
    return NULL;
}

static void unknown_param(struct checker *c, const struct fault *f, const struct pair *w) {
    enum { PARAMS_MAX = 40 };
    const char *names[PARAMS_MAX], *near;
    BUF_FINI struct buf list = {0};
    size_t n = 0;
    for (const struct fault_param *p = f->params; p && p->name && n < PARAMS_MAX - 1; p++) {
        buf_printf(&list, "%s%s", n ? ", " : "", p->name);
        names[n++] = p->name;
    }
    names[n] = NULL;
    near = str_nearest(w->key, names);
    if (near)
        diagnostics_add(c->d, w->place, "%s has no parameter \"%s\"; did you mean \"%s\"?", f->name,
                        w->key, near);
    else
        diagnostics_add(c->d, w->place, "%s has no parameter \"%s\"; it takes %s", f->name, w->key,
                        n ? buf_str(&list) : "none");
}

static bool fits_type(const char *type, const char *value) {
    int64_t v;
    if (str_eq(type, "int")) { /* which numbers may stand there, its check knows */
        size_t digits = strspn(value + (*value == '-'), "0123456789");
        return digits && !value[(*value == '-') + digits];
    }
    if (str_eq(type, "bool"))
        return str_eq(value, "true") || str_eq(value, "false");
    if (str_eq(type, "duration"))
        return str_to_duration_ns(value, &v, NULL) == 0;
    return true;
}

static int node_number(const struct plan *p, const char *name) {
    for (size_t i = 0; i < p->nodes_n; i++)
        if (str_eq(p->nodes[i].name, name))
            return (int)i;
    return -1;
}

/* n0,n1|n2: two groups or more, and no node in two of them. Of nodes: n0,n1. */
static void check_groups(struct checker *c, const struct pair *w, const char *type) {
    size_t n;
    bool nodes = str_eq(type, "nodes");
    char **groups = str_split(&c->plan->arena, w->value, nodes ? '\n' : '|', &n);
    bool *seen = arena_array(&c->plan->arena, bool, c->plan->nodes_n + 1);
    int before = c->d->errors;
    for (; *groups; groups++)
        for (char **name = str_split(&c->plan->arena, *groups, ',', NULL); *name; name++) {
            int i = node_number(c->plan, *name);
            if (i < 0 || seen[i])
                diagnostics_add(c->d, w->place,
                                i >= 0  ? "%s: %s is named twice"
                                : nodes ? "%s: there is no node \"%s\"; write n0,n1, without blanks"
                                        : "%s: there is no node \"%s\"; write n0,n1|n2, without "
                                          "blanks",
                                w->key, *name);
            else
                seen[i] = true;
        }
    if (n < 2 && !nodes && c->d->errors == before)
        diagnostics_add(c->d, w->place, "%s: \"%s\" is one group; write two, as in n0,n1|n2",
                        w->key, w->value);
}

static void check_param(struct checker *c, const struct fault *f, const struct pair *w) {
    const struct fault_param *p = find_param(f, w->key);
    if (!p)
        unknown_param(c, f, w);
    else if (!*w->value)
        diagnostics_add(c->d, w->place, "%s is empty: %s", w->key, p->text);
    else if (!fits_type(p->type, w->value))
        diagnostics_add(c->d, w->place, "%s must be %s, not \"%s\"", w->key,
                        str_eq(p->type, "int")    ? "a whole number"
                        : str_eq(p->type, "bool") ? "true or false"
                                                  : "a duration such as 2s",
                        w->value);
    else if (c->plan && (str_eq(p->type, "groups") || str_eq(p->type, "nodes")))
        check_groups(c, w, p->type);
}

/* The value that a fault's own check is about: its sentence begins with the key. Else `absent`. */
static struct place place_of(const struct err *err, const struct pair *v, size_t n,
                             struct place absent) {
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(v[i].key);
        if (strncmp(err->msg, v[i].key, len) == 0 && err->msg[len] == ':')
            return v[i].place;
    }
    return absent;
}

static void refuse_args(struct checker *c, const struct timeline_entry *a, const struct err *err) {
    struct place first = a->with_n ? a->with[0].place : a->fault_place;
    diagnostics_add(c->d, place_of(err, a->with, a->with_n, first), "%s", err->msg);
}

/* What says whom or which traffic it is about does not change. */
static bool is_of_traffic(const char *key) {
    static const char *const keys[] = {"groups", "shape", "planes", "direction"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        if (str_eq(key, keys[i]))
            return true;
    return false;
}

/* All arguments of a step: its own, then those of `with` that it does not change. */
static struct fault_step bind_step(struct checker *c, const struct planned_entry *pa,
                                   const struct profile_step *s) {
    struct fault_arg *v =
        arena_array(&c->plan->arena, struct fault_arg, s->with_n + pa->args.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < s->with_n; i++) {
        check_param(c, pa->fault, &s->with[i]);
        if (is_of_traffic(s->with[i].key))
            diagnostics_add(c->d, s->with[i].place, "profile: %s does not change; write it in with",
                            s->with[i].key);
        v[n++] = (struct fault_arg){s->with[i].key, s->with[i].value};
    }
    for (size_t i = 0; i < pa->args.n; i++)
        v[n++] = pa->args.v[i]; /* the first of a key counts */
    return (struct fault_step){s->at_ns, v, n};
}

static void bind_profile(struct checker *c, struct planned_entry *pa) {
    const struct timeline_entry *a = pa->entry;
    struct fault_step *steps = arena_array(&c->plan->arena, struct fault_step, a->profile_n + 1);
    if (!pa->fault->profile) {
        diagnostics_add(
            c->d, a->profile[0].place,
            "profile: %s does not change while it lasts; what impairs frames does, such "
            "as net-delay, net-loss and net-rate",
            pa->fault->name);
        return;
    }
    for (size_t i = 0; i < a->profile_n; i++) {
        int before = c->d->errors;
        steps[i] = bind_step(c, pa, &a->profile[i]);
        const struct fault_args then = {.v = steps[i].v, .n = steps[i].n, .seed = pa->args.seed};
        struct err err = {0};
        if (c->d->errors == before && pa->fault->check(&then, &err) < 0)
            diagnostics_add(
                c->d, place_of(&err, a->profile[i].with, a->profile[i].with_n, a->profile[i].place),
                "%s", err.msg);
    }
    pa->args.steps = steps;
    pa->args.steps_n = a->profile_n;
}

static void bind_args(struct checker *c, struct planned_entry *pa, uint64_t seed) {
    const struct timeline_entry *a = pa->entry;
    struct fault_arg *v = arena_array(&c->plan->arena, struct fault_arg, a->with_n + 1);
    int before = c->d->errors;
    for (size_t i = 0; i < a->with_n; i++) {
        check_param(c, pa->fault, &a->with[i]);
        v[i] = (struct fault_arg){a->with[i].key, a->with[i].value};
    }
    pa->args = (struct fault_args){.v = v, .n = a->with_n, .seed = seed};
    if (a->profile_n && c->d->errors == before) {
        bind_profile(c, pa);
        return;
    }
    struct err err = {0};
    if (c->d->errors == before && pa->fault->check && pa->fault->check(&pa->args, &err) < 0)
        refuse_args(c, a, &err);
}

/* A node stands for what is on it: its agent, or all of its workers. */
static bool check_kind(struct checker *c, const struct planned_entry *pa) {
    static const unsigned kinds[] = {
        [TARGET_NODES] = TARGET_NODE | TARGET_AGENT | TARGET_WORKER,
        [TARGET_AGENTS] = TARGET_AGENT,
        [TARGET_WORKERS] = TARGET_WORKER,
        [TARGET_STORES] = TARGET_STORE | TARGET_NODE | TARGET_AGENT,
        [TARGET_RACKS] = TARGET_NODE | TARGET_AGENT | TARGET_WORKER,
    };
    const struct timeline_entry *a = pa->entry;
    unsigned t = pa->fault->targets;
    bool racks = a->on.what == TARGET_RACKS || a->on.rack || a->on.rack_of_rank;
    if (t & kinds[a->on.what] ||
        (t & TARGET_RACK && racks && (a->on.pick == PICK_ALL || a->on.pick == PICK_RANK)) ||
        (t & TARGET_RACK && a->on.what == TARGET_RACKS))
        return true;
    if (t & TARGET_RACK) {
        diagnostics_add(c->d, a->on.place,
                        "%s cannot be aimed at %s; it takes whole racks: rack 0, rack of rank 0 or "
                        "random of racks",
                        a->fault, a->on.text);
        return false;
    }
    diagnostics_add(c->d, a->on.place, "%s cannot be aimed at %s; it takes%s%s%s", a->fault,
                    a->on.text, t & TARGET_WORKER ? " workers," : "",
                    t & TARGET_AGENT ? " agents," : "",
                    t & (TARGET_NODE | TARGET_AGENT | TARGET_WORKER) ? " nodes (n0, node of rank 0)"
                                                                     : " the store");
    return false;
}

/* Whether b may be about the node: only one that names another, by its number or by what serves the
 * store, surely is not. */
static bool may_mean(const struct checker *c, const struct timeline_entry *b, int node) {
    const char *host = scenario_store_host(c->s);
    if (b->on.what == TARGET_STORES)
        return host && atoi(host + 1) == node;
    if (b->on.rack)
        return c->s->cluster.rack_of && c->s->cluster.rack_of[node] == b->on.rack;
    return b->on.pick != PICK_NAMED || atoi(b->on.node + 1) == node;
}

/* Of a node that is on nothing else can be started: what ends it must have had its moment, so it
 * does not wait for this start itself. */
static bool may_end(const struct checker *c, const struct timeline_entry *b,
                    const struct timeline_entry *start, int node) {
    const struct fault *f = c->plan->entries[b - c->s->timeline].fault;
    if (!f || !fault_has(f, EFFECTS_TAKE_AGENT) || !may_mean(c, b, node))
        return false;
    for (int i = b->when.after; i >= 0; i = c->s->timeline[i].when.after)
        if (&c->s->timeline[i] == start && start->times == TIMES_N && start->times_n == 1)
            return false;
    return true;
}

/* A node that is on stays on unless something ends it, one that is off stays off unless started. */
static void check_power(struct checker *c, const struct timeline_entry *a, int node) {
    bool on = node < c->s->cluster.start, changes = false;
    for (size_t i = 0; i < c->plan->entries_n; i++) {
        const struct timeline_entry *b = c->plan->entries[i].entry;
        changes |= on ? may_end(c, b, a, node) : b->fault && is_join(b);
    }
    if (on && is_start(a) && !changes)
        diagnostics_add(c->d, a->on.place,
                        "n%d is on from the beginning and nothing switches it "
                        "off, so it cannot be started",
                        node);
    else if (!on && !is_start(a) && !changes)
        diagnostics_add(c->d, a->on.place, "n%d is off and no node-start switches it on", node);
}

/* b comes after a whatever the run does: it waits for it, or for a step that is no earlier. */
static bool surely_follows(const struct scenario *s, const struct timeline_entry *b,
                           const struct timeline_entry *a) {
    for (int i = b->when.after; i >= 0; i = s->timeline[i].when.after)
        if (&s->timeline[i] == a)
            return true;
    const struct trigger *x = &a->when, *y = &b->when;
    return x->has_step && y->has_step && y->step >= x->step && x->after < 0 && !x->has_round &&
           !x->plus_ns;
}

static bool same_target(const struct target_spec *a, const struct target_spec *b) {
    bool stores = a->what == TARGET_STORES && b->what == TARGET_STORES;
    return (stores && a->pick == PICK_ALL && b->pick == PICK_ALL) ||
           (a->pick == PICK_NAMED && b->pick == PICK_NAMED && str_eq(a->node, b->node));
}

/* Two entries that contradict each other: what the second is aimed at, the first has taken away. */
static void check_still_there(struct checker *c, const struct timeline_entry *a) {
    if (c->starts)
        return;
    for (const struct timeline_entry *b = c->s->timeline; b < a; b++) {
        const struct fault *f = c->plan->entries[b - c->s->timeline].fault;
        if (!f || !fault_has(f, EFFECTS_TAKE_AGENT) || fault_returns_node(f) ||
            !same_target(&a->on, &b->on) || !surely_follows(c->s, a, b))
            continue;
        diagnostics_add(c->d, a->on.place,
                        "nothing is left to hit: %s (%s) has ended %s by then, and no node-start "
                        "switches it on again",
                        b->id, b->fault, b->on.node ? b->on.node : b->on.text);
        return;
    }
}

/* Whether the scenario has the node or worker that is named. */
static bool check_is_there(struct checker *c, const struct timeline_entry *a) {
    int node = atoi(a->on.node + 1), nodes = c->s->cluster.nodes,
        per = job_ranks_per_node(&c->s->job);
    if (node >= nodes)
        diagnostics_add(c->d, a->on.place, "there is no n%d: the cluster has %d node%s, n0 first",
                        node, nodes, nodes == 1 ? "" : "s");
    else if (a->on.local_rank >= per)
        diagnostics_add(c->d, a->on.place, "there is no %s: a node has %d worker%s, n%d/0 first",
                        a->on.text, per, per == 1 ? "" : "s", node);
    else
        return true;
    return false;
}

static void check_named(struct checker *c, const struct timeline_entry *a) {
    if (!check_is_there(c, a))
        return;
    check_power(c, a, atoi(a->on.node + 1));
    check_still_there(c, a);
}

/* How many nodes of it there are, and are on at the beginning. */
static int nodes_of_rack(const struct cluster_spec *k, int rack, int *ret_on) {
    int n = 0;
    *ret_on = 0;
    for (int i = 0; i < k->nodes; i++) {
        n += k->rack_of[i] == rack;
        *ret_on += k->rack_of[i] == rack && i < k->start;
    }
    return n;
}

/* As check_power, of all its nodes together. */
static void check_rack_power(struct checker *c, const struct timeline_entry *a, int nodes, int on) {
    bool starts = false, ends = false;
    for (size_t i = 0; i < c->plan->entries_n; i++) {
        const struct fault *f = c->plan->entries[i].fault;
        ends |= f && fault_has(f, EFFECTS_TAKE_AGENT);
        starts |= is_join(c->plan->entries[i].entry);
    }
    if (is_start(a) && on == nodes && !ends)
        diagnostics_add(c->d, a->on.place,
                        "all of rack %d is on from the beginning and nothing switches it off, so "
                        "it cannot be started",
                        a->on.rack - 1);
    else if (!is_start(a) && !on && !starts)
        diagnostics_add(c->d, a->on.place, "all of rack %d is off and no node-start switches it on",
                        a->on.rack - 1);
}

static void check_racks(struct checker *c, const struct timeline_entry *a) {
    const struct cluster_spec *k = &c->s->cluster;
    int on = 0, nodes = 0;
    if (!k->racks)
        diagnostics_add(c->d, a->on.place,
                        "%s: the cluster has no racks; write cluster: {racks: [[n0, n1], [n2]]}",
                        a->on.text);
    else if (a->on.rack > k->racks)
        diagnostics_add(c->d, a->on.place,
                        "there is no rack %d: the cluster has %d rack%s, rack 0 "
                        "first",
                        a->on.rack - 1, k->racks, k->racks == 1 ? "" : "s");
    else if (a->on.rack)
        nodes = nodes_of_rack(k, a->on.rack, &on);
    if (nodes)
        check_rack_power(c, a, nodes, on);
    int most = a->on.what == TARGET_RACKS ? k->racks : nodes;
    if (most && a->on.pick == PICK_RANDOM && a->on.count > most)
        diagnostics_add(c->d, a->on.place, "%s: there are at most %d", a->on.text, most);
}

/* How many nodes serve the store, and whether the one that is named does. */
static int count_serving(const struct checker *c, const char *name, bool *ret_named) {
    int n = 0;
    for (size_t i = 0; i < c->plan->nodes_n; i++) {
        const struct plan_node *node = &c->plan->nodes[i];
        bool serves = plan_serves_store(c->plan, node);
        n += serves;
        *ret_named |= serves && str_eq(node->name, name);
    }
    return n;
}

/* What is asked for of the store's members, in words or by name. */
static bool check_members(struct checker *c, const struct timeline_entry *a) {
    bool named = false;
    int n = count_serving(c, a->on.node, &named);
    if (a->on.pick == PICK_NAMED && !named)
        diagnostics_add(
            c->d, a->on.place, "there is no %s: %s; write on: store, or cluster: {store: etcd-3}",
            a->on.node,
            n == 1 ? "one node alone serves the store" : "three members do, store-0 first");
    else if (a->on.pick == PICK_RANDOM && a->on.count > n)
        diagnostics_add(c->d, a->on.place, "%s: there are at most %d", a->on.text, n);
    else
        return true;
    return false;
}

/* A fault on the store as a program needs one that is a program of its own, and one that it suits. */
static void check_suits(struct checker *c, const struct planned_entry *pa) {
    const struct timeline_entry *a = pa->entry;
    const char *host = scenario_store_host(c->s);
    enum store_kind kind = c->s->cluster.store;
    const struct fault_store store = {.etcd = kind == STORE_ETCD || kind == STORE_ETCD_3,
                                      .members = count_serving(c, NULL, &(bool){false}),
                                      .rankrun = str_eq(c->s->job.launcher, "rankrun"),
                                      .quota_bytes = (int64_t)c->s->cluster.store_quota_mb << 20};
    struct err err = {0};
    bool alone = pa->fault->targets & TARGET_STORE && !(pa->fault->targets & TARGET_NODE);
    if (alone && host)
        diagnostics_add(c->d, a->on.place,
                        "%s: the store is served by the agent of %s; write a fault on that agent, "
                        "or take a store in a node of its own (rankrun's, or etcd)",
                        a->fault, host);
    else if (pa->fault->suits && pa->fault->suits(&pa->args, &store, &err) < 0)
        refuse_args(c, a, &err);
}

/* Whether there is a store, and for a start whether anything switches it off. */
static void check_store(struct checker *c, const struct timeline_entry *a) {
    bool served = count_serving(c, NULL, &(bool){false}) > 0, ends = false;
    for (size_t i = 0; i < c->plan->entries_n; i++)
        ends |=
            c->plan->entries[i].fault && fault_has(c->plan->entries[i].fault, EFFECTS_TAKE_AGENT);
    if (!served)
        diagnostics_add(c->d, a->on.place,
                        "on: %s: %s; name the node that is meant, n0 for example", a->on.text,
                        c->s->cluster.store == STORE_NONE
                            ? "cluster.store is none"
                            : "a template says itself what serves its endpoint");
    else if (is_start(a) && a->on.pick == PICK_LEADER)
        diagnostics_add(c->d, a->on.place, "what leads is on; write on: store to start it again");
    else if (is_start(a) && !ends)
        diagnostics_add(c->d, a->on.place,
                        "the store is on from the beginning and nothing switches it off, so it "
                        "cannot be started");
    else if (check_members(c, a))
        check_still_there(c, a);
}

static void check_coordinator(struct checker *c, const struct timeline_entry *a) {
    if (!str_eq(c->s->job.launcher, "rankrun"))
        diagnostics_add(c->d, a->on.place,
                        "on: coordinator: only agents of rankrun have one that the store names; "
                        "under launcher: %s name a node, n0 for example",
                        c->s->job.launcher);
    else if (!c->plan->endpoint)
        diagnostics_add(c->d, a->on.place,
                        "on: coordinator: one node alone has a store that nobody else reaches; "
                        "write on: n0");
    else if (is_start(a))
        diagnostics_add(c->d, a->on.place, "who coordinates is on, so it cannot be started");
}

static void check_reach(struct checker *c, const struct timeline_entry *a) {
    const struct job_spec *j = &c->s->job;
    if (a->on.what == TARGET_STORES) {
        check_store(c, a);
        return;
    }
    if (a->on.pick == PICK_COORDINATOR)
        check_coordinator(c, a);
    if (a->on.rack || a->on.rack_of_rank || a->on.what == TARGET_RACKS)
        check_racks(c, a);
    int on = c->ever_on, taken = on < j->max_nodes ? on : j->max_nodes;
    int workers = taken * job_ranks_per_node(j);
    if (a->on.pick == PICK_NAMED) {
        check_named(c, a);
    } else if (a->on.pick == PICK_RANK && a->on.rank >= workers) {
        diagnostics_add(c->d, a->on.place,
                        "there is never a rank %d: the job has at most %d worker%s, rank 0 first",
                        a->on.rank, workers, workers == 1 ? "" : "s");
    } else if (a->on.pick == PICK_RANDOM && !a->on.rack && a->on.what != TARGET_RACKS) {
        int most = a->on.what == TARGET_WORKERS ? workers : is_start(a) ? c->s->cluster.nodes : on;
        if (a->on.count > most)
            diagnostics_add(c->d, a->on.place, "%s: there are at most %d", a->on.text, most);
    }
}

/* A shape draws whom it is about, among nodes of which there must be enough at some time. */
static void check_shape(struct checker *c, const struct planned_entry *pa) {
    const struct timeline_entry *a = pa->entry;
    const char *word = fault_arg(&pa->args, "shape", NULL);
    int shape = shape_of(word, NULL);
    if (shape < 0) /* its check has said so */
        return;
    if (a->on.text)
        diagnostics_add(c->d, a->on.place, "on and shape exclude each other: a shape draws whom");
    for (size_t i = 0; i < a->with_n; i++)
        if (str_eq(a->with[i].key, "groups"))
            diagnostics_add(c->d, a->with[i].place,
                            "groups and shape exclude each other: a shape draws whom");
        else if (str_eq(a->with[i].key, "shape") && c->ever_on < shape_least(shape))
            diagnostics_add(c->d, a->with[i].place,
                            "shape: %s takes %d nodes, and at most %d %s on at any time", word,
                            shape_least(shape), c->ever_on, c->ever_on == 1 ? "is" : "are");
}

/* The groups of a shape if it came at once. */
void entries_put_shape(const struct plan *p, const struct planned_entry *pa, struct buf *out) {
    const char *word = fault_arg(&pa->args, "shape", NULL);
    int shape = word ? shape_of(word, NULL) : -1;
    struct shape_nodes nodes = {0};
    for (size_t i = 0; i < p->nodes_n && i < SHAPE_NODES_MAX; i++)
        if (p->nodes[i].is_store)
            nodes.stores[nodes.stores_n++] = p->nodes[i].name;
        else if (p->nodes[i].on_at_start)
            nodes.v[nodes.n++] = p->nodes[i].name;
    if (shape >= 0)
        shape_groups(shape, &nodes, pa->args.seed, out, NULL);
}

/* A fault has a target, unless its groups name all it is about. */
static bool has_target(struct checker *c, const struct planned_entry *pa) {
    const struct timeline_entry *a = pa->entry;
    bool may = find_param(pa->fault, "groups"), shape = may && fault_arg(&pa->args, "shape", NULL);
    bool groups = may && (fault_arg(&pa->args, "groups", NULL) || shape);
    if (shape)
        check_shape(c, pa);
    else if (groups && a->on.text)
        diagnostics_add(c->d, a->on.place, "on and groups exclude each other: groups name all");
    else if (!groups && !a->on.text)
        diagnostics_add(c->d, a->place, "%s needs a target, for example on: %s", a->fault,
                        pa->fault->targets & TARGET_WORKER ? "random of workers" : "n0");
    return !groups && a->on.text;
}

static void check_lasting(struct checker *c, const struct planned_entry *pa) {
    const struct timeline_entry *a = pa->entry;
    if (!a->fault) {
        const struct planned_entry *of = &c->plan->entries[a->heal];
        if (!of->entry->fault)
            diagnostics_add(c->d, a->heal_place, "heal: \"%s\" is itself a heal", of->entry->id);
        else if (of->fault && !fault_has(of->fault, EFFECT_LASTING))
            diagnostics_add(c->d, a->heal_place, "heal: %s (%s) does not last: %s", of->entry->id,
                            of->fault->name, of->fault->undo);
    } else if ((a->for_ns || a->until) && !fault_has(pa->fault, EFFECT_LASTING)) {
        diagnostics_add(c->d, a->until ? a->until->place : a->for_place, "%s: %s does not last: %s",
                        a->until ? "until" : "for", a->fault, pa->fault->undo);
    } else if ((a->for_ns || a->until) && pa->fault->course) {
        diagnostics_add(c->d, a->until ? a->until->place : a->for_place,
                        "%s: %s says itself how long it lasts: %s", a->until ? "until" : "for",
                        a->fault, pa->fault->undo);
    }
}

/* What limits.fault would end before its time contradicts itself. */
static void check_cap(struct checker *c, const struct planned_entry *pa) {
    int64_t most_ns = c->s->limits.fault_ns;
    const struct timeline_entry *a = pa->entry;
    if (most_ns && a->for_ns > most_ns)
        diagnostics_add(c->d, a->for_place, "for: %s would last %g s, and limits.fault allows %g s",
                        a->id, (double)a->for_ns / 1e9, (double)most_ns / 1e9);
}

/* It ends with the run and no sooner, whatever happens. */
static bool stays(const struct checker *c, const struct timeline_entry *a) {
    const struct fault *f = c->plan->entries[a - c->s->timeline].fault;
    if (!f || !fault_has(f, EFFECT_LASTING) || f->course || a->for_ns || a->until ||
        c->s->limits.fault_ns)
        return false;
    for (size_t i = 0; i < c->s->timeline_n; i++)
        if (!c->s->timeline[i].fault && &c->s->timeline[c->s->timeline[i].heal] == a)
            return false;
    return true;
}

/* How many are surely in force when this one's moment has come. */
static void check_concurrent(struct checker *c, const struct timeline_entry *b) {
    int most = c->s->limits.faults, before = 0;
    const struct timeline_entry *one = NULL;
    for (const struct timeline_entry *a = c->s->timeline; most && a < b; a++)
        if (stays(c, a) && surely_follows(c->s, b, a)) {
            before++;
            one = a;
        }
    if (most && before >= most)
        diagnostics_add(c->d, b->place,
                        "%s would be one more than limits.faults allows (%d): %s lasts to the end "
                        "of the run; give it a for or a heal",
                        b->id, most, one->id);
}

/* Both fire at one event. */
static bool is_one_moment(const struct timeline_entry *a, const struct timeline_entry *b) {
    const struct trigger *x = &a->when, *y = &b->when;
    bool alone = !x->has_round && !y->has_round && x->after < 0 && y->after < 0 && !x->has_time &&
                 !y->has_time && !x->plus_ns && !y->plus_ns;
    return alone && x->has_step && y->has_step && x->step == y->step;
}

/* How long after a is in force b comes; -1: nobody knows. */
static int64_t comes_after_ns(const struct checker *c, const struct timeline_entry *a,
                              const struct timeline_entry *b) {
    const struct trigger *w = &b->when;
    if (is_one_moment(a, b))
        return 0;
    bool alone = !w->has_step && !w->has_event && !w->has_round && !w->has_time && !w->phase &&
                 !w->log && !w->store && !trigger_is_call(w);
    return alone && w->after == (int)(a - c->s->timeline) ? w->plus_ns : -1;
}

static bool is_healed(const struct checker *c, const struct timeline_entry *a) {
    for (size_t i = 0; i < c->s->timeline_n; i++)
        if (!c->s->timeline[i].fault && &c->s->timeline[c->s->timeline[i].heal] == a)
            return true;
    return a->until != NULL;
}

/* Surely in force when b comes. */
static bool lasts_until(const struct checker *c, const struct timeline_entry *a,
                        const struct timeline_entry *b) {
    int64_t after_ns = comes_after_ns(c, a, b), most_ns = c->s->limits.fault_ns;
    if (stays(c, a) && surely_follows(c->s, b, a))
        return true;
    return a->for_ns && !is_healed(c, a) && after_ns >= 0 && after_ns < a->for_ns &&
           (!most_ns || after_ns < most_ns);
}

/* ... and when b ends. */
static bool lasts_beyond(const struct checker *c, const struct timeline_entry *a,
                         const struct timeline_entry *b) {
    return stays(c, a) || (b->for_ns && comes_after_ns(c, a, b) + b->for_ns <= a->for_ns &&
                           !c->s->limits.fault_ns);
}

static bool is_one_target(const struct timeline_entry *a, const struct timeline_entry *b) {
    bool workers = a->on.local_rank >= 0 || b->on.local_rank >= 0;
    bool named = a->on.text && b->on.text && a->on.pick == PICK_NAMED && b->on.pick == PICK_NAMED;
    return named && str_eq(a->on.node, b->on.node) &&
           (!workers || a->on.local_rank == b->on.local_rank);
}

/* A node has one wall clock, one limit of a kind, and cannot be stopped twice; what is done to frames
 * already cannot be seen to be done again, and nothing is done to those that do not pass. A worker may
 * be another one later. NULL: it does not contradict. */
static const char *contradiction(const struct checker *c, const struct timeline_entry *a,
                                 const struct timeline_entry *b) {
    const struct planned_entry *x = &c->plan->entries[a - c->s->timeline],
                               *y = &c->plan->entries[b - c->s->timeline];
    struct wire_claim before, now;
    if (!x->fault || !y->fault || !fault_has(x->fault, EFFECT_LASTING))
        return NULL;
    if (wire_claim_of(c->plan, x, &before) && wire_claim_of(c->plan, y, &now)) {
        if (!wire_claim_covers(&before, &now))
            return NULL;
        if (before.cut && !now.cut && lasts_beyond(c, a, b))
            return "lets no frame pass there";
        return before.does & now.does ? "does the same to the same frames" : NULL;
    }
    if (!is_one_target(a, b))
        return NULL;
    if (fault_has(x->fault, EFFECT_MOVES_CLOCK) && fault_has(y->fault, EFFECT_MOVES_CLOCK))
        return fault_has(y->fault, EFFECT_LASTING) ? "moves the same clock" : NULL;
    bool worker = x->fault->targets & TARGET_WORKER;
    return x->fault == y->fault && (!worker || comes_after_ns(c, a, b) == 0)
               ? "does the same to the same target"
               : NULL;
}

/* A node that is off for a while has neither clock nor limits when it is on again. */
static bool some_node_goes_off(const struct checker *c) {
    for (size_t i = 0; i < c->s->timeline_n; i++)
        if (c->plan->entries[i].fault &&
            fault_has(c->plan->entries[i].fault, EFFECT_ENDS_NODE | EFFECT_ENDS_AGENT))
            return true;
    return false;
}

/* What is surely in force when this one's moment has come, and leaves it nothing to do. */
static void check_contradiction(struct checker *c, const struct timeline_entry *b) {
    for (const struct timeline_entry *a = c->s->timeline; a < b; a++) {
        const char *why = lasts_until(c, a, b) ? contradiction(c, a, b) : NULL;
        if (!why || some_node_goes_off(c))
            continue;
        diagnostics_add(c->d, b->fault_place,
                        "%s (%s) contradicts %s (%s) in line %d, column %d, which %s and lasts %s; "
                        "%s, or make one entry of both",
                        b->id, b->fault, a->id, a->fault, a->fault_place.line,
                        a->fault_place.column, why,
                        a->for_ns ? "longer than until then" : "to the end of the run",
                        a->for_ns ? "let one come later" : "give that a for or a heal");
        return;
    }
}

/* A heal that surely finds nothing to end. */
static void check_heal(struct checker *c, const struct timeline_entry *h) {
    const struct timeline_entry *a = &c->s->timeline[h->heal];
    if (!a->fault || a->times != TIMES_N || a->times_n != 1)
        return;
    if (a->for_ns && comes_after_ns(c, a, h) >= a->for_ns)
        diagnostics_add(c->d, h->heal_place,
                        "heal: %s (%s) is over by then: its for ends it after %g s; leave one of "
                        "them out",
                        a->id, a->fault, (double)a->for_ns / 1e9);
    for (const struct timeline_entry *g = c->s->timeline; g < h; g++)
        if (!g->fault && g->heal == h->heal && surely_follows(c->s, h, g)) {
            diagnostics_add(
                c->d, h->heal_place,
                "heal: %s (%s) is over by then: %s in line %d, column %d, has healed it", a->id,
                a->fault, g->id, g->heal_place.line, g->heal_place.column);
            return;
        }
}

/* Agents come back when their node is switched on, and by nothing else. */
static void check_sticky(struct checker *c, const struct planned_entry *pa) {
    const struct timeline_entry *a = pa->entry;
    bool comes = false;
    if (!a->sticky)
        return;
    for (size_t i = 0; i < c->s->timeline_n; i++)
        comes |= is_start(&c->s->timeline[i]) || comes_back(&c->s->timeline[i]);
    if (comes_back(a))
        diagnostics_add(c->d, a->sticky_place,
                        "sticky: %s brings its node back itself, so this would never end; write "
                        "times: or node-flap",
                        a->fault);
    else if (is_start(a))
        diagnostics_add(c->d, a->sticky_place,
                        "sticky: a node that comes back is on, so node-start has "
                        "nothing to do there");
    else if (fault_arg(&pa->args, "groups", NULL) || fault_arg(&pa->args, "shape", NULL))
        diagnostics_add(c->d, a->sticky_place,
                        "sticky: groups are no node that could come back; give on");
    else if (!comes)
        diagnostics_add(c->d, a->sticky_place,
                        "sticky: no node-start brings a node back, so this would come once");
}

/* Only a node-start that waits for nothing the job does can help a job that cannot begin. */
static void check_minimum(struct checker *c) {
    const struct cluster_spec *k = &c->s->cluster;
    if (k->start >= c->s->job.min_nodes)
        return;
    for (size_t i = 0; i < c->s->timeline_n; i++) {
        const struct trigger *t = &c->s->timeline[i].when;
        if (is_join(&c->s->timeline[i]) && !t->has_step && !t->has_event && !t->has_round &&
            !t->has_time && !t->phase && !t->store && !trigger_is_call(t))
            return;
    }
    diagnostics_add(
        c->d, k->start_place.line ? k->start_place : k->place,
        "%d node%s started but nnodes needs %d, and no node-start makes up for it: the job "
        "could never begin",
        k->start, k->start == 1 ? " is" : "s are", c->s->job.min_nodes);
}

/* Operations of a store are read where they pass, which they do for who speaks etcd's HTTP. */
static void check_requests(struct checker *c, const struct trigger *t) {
    const struct scenario *s = c->s;
    bool own = s->cluster.store == STORE_EMBEDDED;
    if (!t || !t->store)
        return;
    if (s->cluster.store == STORE_NONE)
        diagnostics_add(c->d, t->place, "store: %s: cluster.store is none, so nobody is asked",
                        t->store);
    else if (own && str_eq(s->job.launcher, "torchrun"))
        diagnostics_add(c->d, t->place,
                        "store: %s: torch's TCPStore (c10d) speaks a protocol of its own, which is "
                        "not read; write cluster: {store: etcd}, or wait for a step, phase or log",
                        t->store);
    else if (own && scenario_store_host(s) && s->cluster.nodes == 1)
        diagnostics_add(c->d, t->place,
                        "store: %s: one node alone asks itself, and nothing passes the wire; take "
                        "two nodes, or cluster: {store: etcd}",
                        t->store);
}

void entries_make(struct plan *p, struct diagnostics *d) {
    struct checker c = {
        .plan = p, .s = p->scenario, .d = d, .ever_on = scenario_nodes_ever_on(p->scenario)};
    struct rand r;
    rand_init(&r, p->seed);
    p->entries_n = p->scenario->timeline_n;
    p->entries = arena_array(&p->arena, struct planned_entry, p->entries_n + 1);
    for (size_t i = 0; i < p->entries_n; i++)
        c.starts |= is_start(&p->scenario->timeline[i]);
    check_minimum(&c);
    for (size_t i = 0; i < p->entries_n; i++) {
        const struct timeline_entry *a = &p->scenario->timeline[i];
        p->entries[i].entry = a;
        p->entries[i].fault = a->fault ? fault_find(a->fault) : NULL;
        if (a->fault && !p->entries[i].fault)
            unknown_fault(&c, a);
    }
    for (size_t i = 0; i < p->entries_n; i++) {
        struct planned_entry *pa = &p->entries[i];
        uint64_t seed = rand_u64(&r);
        if (pa->entry->fault && !pa->fault) {
            if (pa->entry->on.text && pa->entry->on.pick == PICK_NAMED &&
                pa->entry->on.what != TARGET_STORES)
                check_is_there(&c, pa->entry);
            continue;
        }
        check_requests(&c, &pa->entry->when);
        check_requests(&c, pa->entry->until);
        check_lasting(&c, pa);
        if (!pa->entry->fault)
            check_heal(&c, pa->entry);
        if (!pa->fault)
            continue;
        bind_args(&c, pa, seed);
        check_cap(&c, pa);
        check_concurrent(&c, pa->entry);
        check_contradiction(&c, pa->entry);
        check_sticky(&c, pa);
        if (!has_target(&c, pa) || !check_kind(&c, pa))
            continue;
        check_reach(&c, pa->entry);
        check_suits(&c, pa);
    }
}

/* The values alone, whatever else is wrong. */
static void check_values(struct checker *c, const struct fault *f, const struct timeline_entry *a) {
    ARENA_FINI struct arena arena = {0};
    struct fault_arg *v = arena_array(&arena, struct fault_arg, a->with_n + 1);
    const struct fault_args args = {.v = v, .n = a->with_n};
    int before = c->d->errors;
    struct err err = {0};
    for (size_t i = 0; i < a->with_n; i++) {
        check_param(c, f, &a->with[i]);
        v[i] = (struct fault_arg){a->with[i].key, a->with[i].value};
    }
    if (c->d->errors == before && f->check && f->check(&args, &err) < 0)
        refuse_args(c, a, &err);
}

void plan_check_entries(const struct scenario *s, struct diagnostics *d) {
    struct checker c = {.s = s, .d = d};
    for (size_t i = 0; i < s->timeline_n; i++) {
        const struct timeline_entry *a = &s->timeline[i];
        struct planned_entry pa = {.entry = a, .fault = a->fault ? fault_find(a->fault) : NULL};
        if (a->fault && !pa.fault)
            unknown_fault(&c, a);
        if (pa.fault)
            check_values(&c, pa.fault, a);
        if (pa.fault && a->on.text)
            check_kind(&c, &pa);
        if (s->sound && a->on.text && a->on.pick == PICK_NAMED && a->on.what != TARGET_STORES)
            check_is_there(&c, a);
    }
}
