/* Which nodes may reach each other, from all partitions that are in force. */
#include "harness/cluster/parts.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- who is in which group ---- */

static int node_index(const struct cluster *c, const char *name) {
    for (size_t i = 0; i < c->nodes_n && i < CLUSTER_NODES_MAX; i++)
        if (str_eq(c->nodes[i]->plan->name, name))
            return (int)i;
    return -1;
}

static int put_in_group(const struct cluster *c, const char *name, int group, int *ret_rest,
                        int ret[CLUSTER_NODES_MAX], struct err *err) {
    if (str_eq(name, "*")) {
        *ret_rest = group;
        return 0;
    }
    int i = node_index(c, name);
    if (i < 0)
        return err_say(err, -EINVAL, "groups: there is no node \"%s\"", name);
    if (ret[i] >= 0)
        return err_say(err, -EINVAL, "groups: %s is named twice", name);
    ret[i] = group;
    return 0;
}

int cluster_groups(const struct cluster *c, const char *text, int ret[CLUSTER_NODES_MAX],
                   struct err *err) {
    ARENA_FINI struct arena a = {0};
    int group[CLUSTER_NODES_MAX], rest = -1, r = 0;
    for (size_t i = 0; i < CLUSTER_NODES_MAX; i++)
        group[i] = -1;
    char **groups = str_split(&a, text, '|', NULL);
    for (int g = 0; groups[g] && r == 0; g++)
        for (char **name = str_split(&a, groups[g], ',', NULL); *name && r == 0; name++)
            r = put_in_group(c, *name, g, &rest, group, err);
    for (size_t i = 0; i < c->nodes_n && i < CLUSTER_NODES_MAX; i++)
        if (group[i] < 0)
            group[i] = rest;
    if (r == 0)
        memcpy(ret, group, sizeof(group));
    return r;
}

/* ---- those in force ---- */

static struct partition *find_like(struct cluster *c, const struct partition *p) {
    list_each(it, &c->partitions) {
        struct partition *q = list_entry(it, struct partition, link);
        if (q->cut == p->cut && memcmp(&q->how, &p->how, sizeof(p->how)) == 0 &&
            memcmp(q->group, p->group, sizeof(p->group)) == 0)
            return q;
    }
    return NULL;
}

static void drop(struct partition *p) {
    list_remove(&p->link);
    free(p);
}

/* One in force that does the same to all that the new one is about: the wire's counters could not tell
 * which of them was felt. Two cuts of the same frames are one cut, and none is less felt for the other.
 */
static bool is_done_already(const struct cluster *c, const struct partition *p) {
    const struct impairment_reach inner = {&p->how, p->group};
    list_each(it, &c->partitions) {
        const struct partition *q = list_entry(it, struct partition, link);
        const struct impairment_reach outer = {&q->how, q->group};
        if (!p->cut && !q->cut && impairment_does(&q->how) & impairment_does(&p->how) &&
            impairment_covers(outer, inner, CLUSTER_NODES_MAX))
            return true;
    }
    return false;
}

/* The last n of them, which were added last. */
static void drop_last(struct cluster *c, size_t n) {
    while (n--)
        drop(list_entry(c->partitions.prev, struct partition, link));
}

static int add_all(struct cluster *c, const struct partition *like, const struct impairment *how,
                   size_t n, struct err *err) {
    for (size_t i = 0; i < n; i++) {
        struct partition *p = mem_new(struct partition);
        *p = *like;
        p->how = how[i];
        p->since_ns = clock_monotonic_ns();
        p->id = ++c->partitions_made;
        list_append(&c->partitions, &p->link);
    }
    int r = c->isolation->link(c, err);
    if (r)
        drop_last(c, n);
    return r;
}

int partition_set(struct cluster *c, const char *groups, const struct impairment *how, size_t n,
                  bool cut, bool on, struct err *err) {
    struct partition like = {.cut = cut};
    bool found = false;
    int r = cluster_groups(c, groups, like.group, err);
    for (size_t i = 0; i < n && on && r == 0; i++) {
        like.how = how[i];
        if (is_done_already(c, &like))
            r = err_say(err, -EBUSY,
                        "an earlier fault does the same to all frames of %s: end that one first "
                        "(for, heal), or make one entry of both",
                        groups);
    }
    if (r || on)
        return r ? r : add_all(c, &like, how, n, err);
    for (size_t i = 0; i < n; i++) {
        like.how = how[i];
        struct partition *old = find_like(c, &like);
        found |= old != NULL;
        if (old)
            drop(old);
    }
    return found ? c->isolation->link(c, err) : 0;
}

void partitions_free(struct cluster *c) {
    list_each_safe(it, next, &c->partitions) drop(list_entry(it, struct partition, link));
}
