/* What the programs of a node do to its disks, where faults are in force on these, gets what the
 * rules say (disk_rules.h): by the disk itself where it is one of ours, which tells us of it
 * (disk_keeper.h); by the node's helper where that is on another host, which tells us likewise; else each
 * system call waits for us (held_rules.h). */
#include "harness/cluster/parts.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/carrier/host_process.h"
#include "harness/cluster/held_rules.h"

#include <errno.h>
#include <stdlib.h>

/* What a rule has done, each time that it was in force. */
struct done_by {
    struct disk_rule rule;
    struct disk_done done[DISK_VERDICTS_N];
};

struct node_disk {
    struct node *node;
    struct held_rules *rules;
    struct done_by *done;
    size_t done_n;
};

static struct done_by *done_by(const struct node_disk *d, const struct disk_rule *rule) {
    for (size_t i = 0; i < d->done_n; i++)
        if (disk_rule_same(&d->done[i].rule, rule))
            return &d->done[i];
    return NULL;
}

static void note(struct node_disk *d, const struct disk_rule *rule, enum disk_verdict v, bool told,
                 const struct disk_strike *s) {
    struct cluster *cluster = d->node->cluster;
    struct done_by *by = done_by(d, rule);
    if (!by) {
        by = &mem_push(d->done, d->done_n);
        *by = (struct done_by){.rule = *rule};
    }
    by->done[v].count++;
    by->done[v].by_disk = s->by_disk;
    str_copy(by->done[v].path, sizeof(by->done[v].path), s->path);
    if (told && cluster->cb.struck)
        cluster->cb.struck(cluster->arg, d->node, s);
}

static void on_struck(void *arg, const struct disk_rule_state *rule, enum disk_verdict v,
                      const struct disk_strike *s) {
    note(arg, &rule->rule, v, rule->done <= HELD_TOLD_MAX, s);
}

static struct node_disk *disk_of(struct node *n) {
    if (!n->faulty) {
        n->faulty = mem_new(struct node_disk);
        n->faulty->node = n;
        n->faulty->rules = held_rules_new(n->cluster->loop, on_struck, n->faulty);
        held_rules_watch(n->faulty->rules, n->watch);
    }
    return n->faulty;
}

/* ---- by calls ---- */

bool node_disk_call(struct node *n, const struct watched_call *c) {
    return n->faulty && !disk_link_is_wanted(n->cluster) && held_rules_meet(n->faulty->rules, c);
}

/* ---- by a helper ---- */

static bool verdict_of(const char *name, enum disk_verdict *ret) {
    for (int v = DISK_PASSES + 1; v < DISK_VERDICTS_N; v++)
        if (str_eq(name, disk_verdict_names[v])) {
            *ret = (enum disk_verdict)v;
            return true;
        }
    return false;
}

void node_disk_struck_there(struct node *n, const struct json *m) {
    struct disk_rule_state rule;
    enum disk_verdict v;
    held_rules_take(json_get(m, "rule"), &rule);
    if (!verdict_of(json_get_string(m, "verdict", ""), &v))
        return;
    const struct disk_strike s = {
        .verdict = disk_verdict_names[v],
        .does = json_get_string(m, "does", ""),
        .path = json_get_string(m, "path", ""),
        .pid = host_process_number(n->port, json_get_i64(m, "pid", 0)),
        .error = (int)json_get_i64(m, "errno", 0),
    };
    note(disk_of(n), &rule.rule, v, true, &s);
}

/* ---- by the disk ---- */

/* A part of what was to be written, on a disk that is full then, is a failure like the rest. */
void node_disk_struck(struct cluster *c, const struct json *m) {
    struct node *n = cluster_node(c, json_get_string(m, "node", ""));
    struct disk_rule_state *rule =
        n && n->faulty ? held_rules_find(n->faulty->rules, json_get_i64(m, "rule", 0)) : NULL;
    int64_t v = json_get_i64(m, "verdict", 0);
    if (!rule || v <= DISK_PASSES || v >= DISK_VERDICTS_N)
        return;
    const struct disk_strike s = {.by_disk = true,
                                  .verdict = disk_verdict_names[v],
                                  .does = disk_does_text((unsigned)json_get_i64(m, "does", 0)),
                                  .path = json_get_string(m, "path", ""),
                                  .pid = (int)json_get_i64(m, "pid", 0),
                                  .error = (int)json_get_i64(m, "errno", 0)};
    rule->done++;
    note(n->faulty, &rule->rule,
         v == DISK_CUTS && rule->rule.room >= 0 ? DISK_FAILS : (enum disk_verdict)v,
         rule->done <= HELD_TOLD_MAX, &s);
}

static enum node_place place_of(const struct node *n, const struct disk_rule *r) {
    return str_eq(r->root, n->disk) ? NODE_DISK : NODE_SHARED;
}

int node_disk_again(struct node *n, struct err *err) {
    size_t rules_n = 0;
    int r = 0;
    if (!n->faulty || !disk_link_is_wanted(n->cluster))
        return 0;
    const struct disk_rule_state *v = held_rules_all(n->faulty->rules, &rules_n);
    for (size_t i = 0; r == 0 && i < rules_n; i++)
        r = disk_link_rule(n, &v[i].rule, place_of(n, &v[i].rule), true, err);
    return r;
}

/* A node that is off has no disks: they get it when it is on. */
static int tell_disk(struct node *n, const struct disk_rule *rule, bool on, struct err *err) {
    if (!disk_link_is_wanted(n->cluster) || n->state == NODE_OFF)
        return 0;
    return disk_link_rule(n, rule, place_of(n, rule), on, err);
}

/* ---- all ---- */

int node_disk_place(const struct node *n, enum node_place place, struct disk_rule *rule,
                    struct err *err) {
    if (str_copy(rule->root, sizeof(rule->root), place == NODE_DISK ? n->disk : n->cluster->shared))
        return 0;
    return err_say(err, -ENAMETOOLONG, "%s: the path of its disk is too long", n->plan->name);
}

struct disk_done node_disk_done(const struct node *n, const struct disk_rule *rule,
                                enum node_place place, enum disk_verdict v) {
    struct disk_rule r = *rule;
    const struct done_by *by =
        n->faulty && node_disk_place(n, place, &r, NULL) == 0 ? done_by(n->faulty, &r) : NULL;
    return by ? by->done[v] : (struct disk_done){0};
}

int node_disk_rule(struct node *n, const struct disk_rule *rule, enum node_place place, bool on,
                   struct err *err) {
    struct node_disk *d = disk_of(n);
    struct disk_rule r = *rule;
    int code = node_disk_place(n, place, &r, err);
    if (code)
        return code;
    const struct disk_rule_state *there = held_rules_like(d->rules, &r);
    if (on && there)
        return err_say(err, -EBUSY, "%s: an earlier fault does the same to its disk",
                       n->plan->name);
    if (on) {
        r.id = held_rules_add(d->rules, &r);
        return tell_disk(n, &r, true, err);
    }
    if (!there)
        return 0;
    r.id = there->rule.id;
    code = tell_disk(n, &r, false, err);
    disk_link_hear(n->cluster); /* as long as the rule is known */
    held_rules_drop(d->rules, r.id);
    return code;
}

void node_disk_watch(struct node *n) {
    if (n->faulty)
        held_rules_watch(n->faulty->rules, n->watch);
}

void node_disk_free(struct node *n) {
    if (!n->faulty)
        return;
    held_rules_free(n->faulty->rules);
    free(n->faulty->done);
    free(n->faulty);
    n->faulty = NULL;
}
