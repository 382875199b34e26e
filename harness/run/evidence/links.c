#include "harness/run/evidence/links.h"

#include "base/str.h"
#include "faults/network/traffic.h"

#include <string.h>

/* At the first count after the fault fired, which was asked for before it was brought in force, and
 * at the newest. */
struct frames {
    int64_t first, newest;
};

/* By pair of nodes: no more room than there are nodes, as all of it is touched between the trigger
 * and the fault. */
struct links {
    size_t n;
    int group[CLUSTER_NODES_MAX];
    bool answers[CLUSTER_NODES_MAX]; /* of a group: stores alone, which say nothing unasked */
    bool counted[CLUSTER_NODES_MAX]; /* there is a first count of this sender */
    struct impairment between;       /* of it only between which groups it is */
    struct frames *done, *passed;    /* n by n, those of a sender in a row */
    int heard[CLUSTER_NODES_MAX];    /* how many records of what has passed this sender */
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
    fault_groups(&b->target, &a->args, groups, sizeof(groups));
    if (cluster_groups(e->cluster, groups, l->group, NULL) != 0)
        return NULL;
    if (fault_between(&a->args, &l->between, NULL) != 0)
        return NULL;
    find_stores(e, l);
    while (cluster_nodes(e->cluster)[l->n] && l->n < CLUSTER_NODES_MAX)
        l->n++;
    l->done = arena_array(&e->arena, struct frames, l->n * l->n);
    l->passed = arena_array(&e->arena, struct frames, l->n * l->n);
    return l;
}

void *links_begin_one_way(struct run_entry *a, struct bound *b) {
    struct links *l = links_begin(a, b);
    if (l)
        l->between.direction = DIRECTION_FROM;
    return l;
}

/* The sender's place among the nodes; -1: the record is not about one. */
static int sender_of(const struct run_entry *a, const struct record *r) {
    struct node **nodes = cluster_nodes(a->owner->engine->cluster);
    for (int i = 0; links_counted(r) && nodes[i] && i < CLUSTER_NODES_MAX; i++)
        if (str_eq(node_plan(nodes[i])->name, r->node))
            return i;
    return -1;
}

static struct frames *row_of(const struct links *l, struct frames *counted, int from) {
    return counted + (size_t)from * l->n;
}

static void begin_count(const struct links *l, struct frames *row) {
    for (size_t to = 0; to < l->n; to++)
        row[to].newest = 0;
}

/* Adds the frames of a map of receivers. */
static void take(const struct run_entry *a, const struct links *l, struct frames *row,
                 const struct json *map) {
    struct node **nodes = cluster_nodes(a->owner->engine->cluster);
    for (size_t to = 0; to < l->n; to++)
        row[to].newest += json_get_i64(map, node_plan(nodes[to])->name, 0);
}

static void end_count(const struct links *l, struct frames *row, bool first) {
    for (size_t to = 0; first && to < l->n; to++)
        row[to].first = row[to].newest;
}

bool links_learn(const struct run_entry *a, struct links *l, const struct record *r,
                 const char *key) {
    int from = l ? sender_of(a, r) : -1;
    if (from < 0)
        return false;
    struct frames *row = row_of(l, l->done, from);
    begin_count(l, row);
    take(a, l, row, json_get(r->fields, key));
    end_count(l, row, !l->counted[from]);
    l->counted[from] = true;
    return true;
}

void links_learn_passed(const struct run_entry *a, struct links *l, const struct record *r) {
    const struct json *planes = json_get(r->fields, "passed_to");
    int from = l && planes ? sender_of(a, r) : -1, meant = fault_planes(&a->args, NULL);
    if (from < 0)
        return;
    struct frames *row = row_of(l, l->passed, from);
    begin_count(l, row);
    for (int i = 0; i < PLANES_N; i++)
        if (meant >> i & 1)
            take(a, l, row, json_get(planes, plane_names[i]));
    end_count(l, row, ++l->heard[from] <= 2);
}

static int64_t frames_between(const struct links *l, const struct frames *counted, int g, int h) {
    int64_t frames = 0;
    for (size_t from = 0; from < l->n; from++)
        for (size_t to = 0; to < l->n; to++, counted++)
            if (l->group[from] == g && l->group[to] == h)
                frames += counted->newest - counted->first;
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
            all += impairment_is_between(&l->between, g, h) ? frames_between(l, l->done, g, h) : 0;
    return all;
}

int64_t links_fewest(const struct links *l, bool unasked) {
    int groups = groups_of(l);
    int64_t fewest = -1;
    for (int g = 0; g < groups; g++)
        for (int h = 0; h < groups; h++) {
            bool silent = unasked && l->answers[g] && !l->answers[h];
            int64_t frames = !impairment_is_between(&l->between, g, h) || silent
                                 ? fewest
                                 : frames_between(l, l->done, g, h);
            fewest = fewest < 0 || frames < fewest ? frames : fewest;
        }
    return fewest;
}

/* Each of group g has been counted since the fault came in force. */
static bool is_known(const struct links *l, int g) {
    for (size_t i = 0; i < CLUSTER_NODES_MAX; i++)
        if (l->group[i] == g && l->heard[i] < 3)
            return false;
    return true;
}

static bool nothing_passed(const struct links *l, int g, int h) {
    return is_known(l, g) && frames_between(l, l->passed, g, h) == 0;
}

/* What is meant of this way has been dropped, or nothing came. */
static bool is_shut(const struct links *l, int g, int h) {
    return !impairment_is_between(&l->between, g, h) || frames_between(l, l->done, g, h) ||
           nothing_passed(l, g, h);
}

static bool is_parted(const struct links *l, int g, int h) {
    bool dropped = frames_between(l, l->done, g, h) || frames_between(l, l->done, h, g);
    return dropped && is_shut(l, g, h) && is_shut(l, h, g);
}

/* Of a ring most never have anything to say to each other: all that is closed is shut, and somebody
 * has met it. */
static bool is_ring_parted(const struct links *l) {
    int groups = groups_of(l);
    bool dropped = false;
    for (int g = 0; g < groups; g++)
        for (int h = 0; h < groups; h++) {
            if (!is_shut(l, g, h))
                return false;
            dropped |= impairment_is_between(&l->between, g, h) && frames_between(l, l->done, g, h);
        }
    return dropped;
}

bool links_parted(const struct links *l) {
    int groups = l ? groups_of(l) : 0;
    if (groups && l->between.ring)
        return is_ring_parted(l);
    for (int g = 0; g < groups; g++)
        for (int h = g + 1; h < groups; h++)
            if (!is_parted(l, g, h))
                return false;
    return groups > 1;
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
