#include "harness/run/evidence/links.h"

#include "base/str.h"
#include "faults/network/traffic.h"

/* Frames by pair of nodes: at the first count after the fault fired, which was asked for before it
 * was brought in force, and at the newest. */
struct links {
    int group[CLUSTER_NODES_MAX];
    bool answers[CLUSTER_NODES_MAX]; /* of a group: stores alone, which say nothing unasked */
    bool counted[CLUSTER_NODES_MAX]; /* there is a first count of this sender */
    int direction;                   /* enum impairment_direction */
    int64_t first[CLUSTER_NODES_MAX][CLUSTER_NODES_MAX],
        newest[CLUSTER_NODES_MAX][CLUSTER_NODES_MAX];
};

bool links_counted(const struct record *r) {
    return (r->source == SOURCE_WIRE && record_is(r, "wire")) ||
           (r->source == SOURCE_KERNEL && record_is(r, "socket-drops"));
}

/* The groups of stores, and of those the ones in which nobody else is. */
static void find_stores(const struct engine *e, struct links *l) {
    struct node **nodes = cluster_nodes(e->cluster);
    for (int store = 1; store >= 0; store--)
        for (size_t i = 0; nodes[i] && i < CLUSTER_NODES_MAX; i++)
            if (l->group[i] >= 0 && node_plan(nodes[i])->is_store == store)
                l->answers[l->group[i]] = store;
}

void *links_begin(struct run_entry *a, struct bound *b) {
    struct engine *e = a->owner->engine;
    struct links *l = arena_new(&e->arena, struct links);
    char groups[FAULT_GROUPS_MAX];
    fault_groups(&b->target, &a->plan->args, groups, sizeof(groups));
    if (cluster_groups(e->cluster, groups, l->group, NULL) != 0)
        return NULL;
    l->direction = fault_direction(&a->plan->args, NULL);
    find_stores(e, l);
    return l;
}

bool links_learn(const struct run_entry *a, struct links *l, const struct record *r,
                 const char *key) {
    struct node **nodes = cluster_nodes(a->owner->engine->cluster);
    size_t from = 0;
    if (!l || !links_counted(r))
        return false;
    while (nodes[from] && !str_eq(node_plan(nodes[from])->name, r->node))
        from++;
    if (!nodes[from] || from >= CLUSTER_NODES_MAX)
        return false;
    for (size_t to = 0; nodes[to] && to < CLUSTER_NODES_MAX; to++) {
        int64_t frames = json_get_i64(json_get(r->fields, key), node_plan(nodes[to])->name, 0);
        l->newest[from][to] = frames;
        if (!l->counted[from])
            l->first[from][to] = frames;
    }
    l->counted[from] = true;
    return true;
}

static int64_t frames_between(const struct links *l, int g, int h) {
    int64_t frames = 0;
    for (size_t from = 0; from < CLUSTER_NODES_MAX; from++)
        for (size_t to = 0; to < CLUSTER_NODES_MAX; to++)
            if (l->group[from] == g && l->group[to] == h)
                frames += l->newest[from][to] - l->first[from][to];
    return frames;
}

static int groups_of(const struct links *l) {
    int groups = 0;
    for (size_t i = 0; l && i < CLUSTER_NODES_MAX; i++)
        groups = l->group[i] >= groups ? l->group[i] + 1 : groups;
    return groups;
}

int64_t links_all(const struct links *l) {
    int64_t all = 0;
    int groups = groups_of(l);
    for (int g = 0; g < groups; g++)
        for (int h = 0; h < groups; h++)
            all += impairment_is_between(l->direction, g, h) ? frames_between(l, g, h) : 0;
    return all;
}

int64_t links_fewest(const struct links *l, bool unasked) {
    int groups = groups_of(l);
    int64_t fewest = -1;
    for (int g = 0; g < groups; g++)
        for (int h = 0; h < groups; h++) {
            bool silent = unasked && l->answers[g] && !l->answers[h];
            int64_t frames = !impairment_is_between(l->direction, g, h) || silent
                                 ? fewest
                                 : frames_between(l, g, h);
            fewest = fewest < 0 || frames < fewest ? frames : fewest;
        }
    return fewest;
}

static int group_of(const struct run_entry *a, const struct links *l, const char *node,
                    bool store) {
    struct node **nodes = cluster_nodes(a->owner->engine->cluster);
    for (size_t i = 0; nodes[i] && i < CLUSTER_NODES_MAX; i++)
        if (store ? node_plan(nodes[i])->is_store : str_eq(node_plan(nodes[i])->name, node))
            return l->group[i];
    return -1;
}

int links_group_of(const struct run_entry *a, const struct links *l, const char *node) {
    return group_of(a, l, node, false);
}

int links_group_of_store(const struct run_entry *a, const struct links *l) {
    return group_of(a, l, "", true);
}
