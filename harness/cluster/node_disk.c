/* What the programs of a node do to its disks, where faults are in force on these, gets what the
 * rules say (disk_rules.h): by the disk itself where it is one of ours, which tells us of it
 * (disk_keeper.h); else each system call waits for us, and goes on, fails, or waits longer. */
#include "harness/cluster/parts.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "faults/mechanism/disk_call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct waiting_call {
    struct watched_call call;
    int64_t due_ns; /* 0: when the rule is taken away */
    struct disk_rule rule;
};

/* So many operations that a fault has struck are told one by one; then they are counted. */
enum { TOLD_MAX = 8 };

struct node_disk {
    struct node *node;
    int64_t rules_made;
    struct disk_rule_state *rules;
    struct waiting_call *waiting;
    size_t rules_n, waiting_n;
    struct disk_done done[DISK_VERDICTS_N];
    struct loop_source *timer;
};

/* ---- what waits ---- */

static void set_timer(struct node_disk *d) {
    int64_t next = 0;
    for (size_t i = 0; i < d->waiting_n; i++) {
        int64_t due = d->waiting[i].due_ns;
        next = due && (!next || due < next) ? due : next;
    }
    if (next)
        loop_timer_at(d->timer, next);
    else
        loop_timer_off(d->timer);
}

/* Those that are due, and those of a rule (NULL: none), go on. */
static void let_go(struct node_disk *d, int64_t now_ns, const struct disk_rule *of) {
    for (size_t i = 0; i < d->waiting_n;) {
        struct waiting_call *w = &d->waiting[i];
        bool due = (w->due_ns && w->due_ns <= now_ns) || (of && disk_rule_same(&w->rule, of));
        if (due && d->node->watch >= 0)
            call_watch_pass(d->node->watch, w->call.id);
        if (due)
            *w = d->waiting[--d->waiting_n];
        else
            i++;
    }
    set_timer(d);
}

static void on_timer(void *arg, int64_t now) {
    let_go(arg, now, NULL);
}

static void wait(struct node_disk *d, const struct watched_call *c, const struct disk_rule *rule,
                 bool for_ever) {
    mem_push(d->waiting, d->waiting_n) = (struct waiting_call){
        .call = *c, .due_ns = for_ever ? 0 : clock_monotonic_ns() + rule->delay_ns, .rule = *rule};
    set_timer(d);
}

/* ---- what is asked ---- */

static struct node_disk *disk_of(struct node *n) {
    if (!n->faulty) {
        n->faulty = mem_new(struct node_disk);
        n->faulty->node = n;
        n->faulty->timer = loop_timer(n->cluster->loop, on_timer, n->faulty);
    }
    return n->faulty;
}

static void note(struct node_disk *d, enum disk_verdict v, const struct disk_rule_state *rule,
                 const struct disk_strike *s) {
    struct cluster *cluster = d->node->cluster;
    d->done[v].count++;
    d->done[v].by_disk = s->by_disk;
    str_copy(d->done[v].path, sizeof(d->done[v].path), s->path);
    if (rule->done <= TOLD_MAX && cluster->cb.struck)
        cluster->cb.struck(cluster->arg, d->node, s);
}

/* ---- by calls ---- */

bool node_disk_call(struct node *n, const struct watched_call *c) {
    struct node_disk *d = n->faulty;
    struct disk_call_paths paths;
    struct disk_request q;
    if (!d || !d->rules_n || disk_link_is_wanted(n->cluster) || !disk_call_read(c, &paths, &q))
        return false;
    struct disk_ruling r = disk_rules_decide(d->rules, d->rules_n, &q);
    if (r.verdict == DISK_PASSES)
        return false;
    if (r.verdict == DISK_FAILS) {
        if (call_watch_answer(n->watch, c->id, -r.rule->error) != 0)
            return true; /* who called has gone */
    } else {
        wait(d, c, r.rule, r.verdict == DISK_STICKS);
    }
    const struct disk_strike s = {.verdict = disk_verdict_names[r.verdict],
                                  .does = disk_does_text(q.does),
                                  .path = q.path,
                                  .pid = c->pid,
                                  .error = r.verdict == DISK_FAILS ? r.rule->error : 0};
    note(d, r.verdict, (const struct disk_rule_state *)(const void *)r.rule, &s);
    return true;
}

/* ---- by the disk ---- */

static struct disk_rule_state *rule_of(struct node_disk *d, int64_t id) {
    for (size_t i = 0; d && i < d->rules_n; i++)
        if (d->rules[i].rule.id == id)
            return &d->rules[i];
    return NULL;
}

/* A part of what was to be written, on a disk that is full then, is a failure like the rest. */
void node_disk_struck(struct cluster *c, const struct json *m) {
    struct node *n = cluster_node(c, json_get_string(m, "node", ""));
    struct disk_rule_state *rule = n ? rule_of(n->faulty, json_get_i64(m, "rule", 0)) : NULL;
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
    note(n->faulty, v == DISK_CUTS && rule->rule.room >= 0 ? DISK_FAILS : (enum disk_verdict)v,
         rule, &s);
}

static void forget_rule(struct node_disk *d, int64_t id) {
    struct disk_rule_state *s = rule_of(d, id);
    size_t i = s ? (size_t)(s - d->rules) : d->rules_n;
    if (s)
        memmove(s, s + 1, (--d->rules_n - i) * sizeof(*s));
}

static enum node_place place_of(const struct node *n, const struct disk_rule *r) {
    return str_eq(r->root, n->disk) ? NODE_DISK : NODE_SHARED;
}

int node_disk_again(struct node *n, struct err *err) {
    struct node_disk *d = n->faulty;
    int r = 0;
    for (size_t i = 0; d && r == 0 && disk_link_is_wanted(n->cluster) && i < d->rules_n; i++)
        r = disk_link_rule(n, &d->rules[i].rule, place_of(n, &d->rules[i].rule), true, err);
    return r;
}

/* A node that is off has no disks: they get it when it is on. */
static int tell_disk(struct node *n, const struct disk_rule *rule, bool on, struct err *err) {
    if (!disk_link_is_wanted(n->cluster) || n->state == NODE_OFF)
        return 0;
    return disk_link_rule(n, rule, place_of(n, rule), on, err);
}

/* ---- both ---- */

struct disk_done node_disk_done(const struct node *n, enum disk_verdict v) {
    return n->faulty ? n->faulty->done[v] : (struct disk_done){0};
}

int node_disk_rule(struct node *n, const struct disk_rule *rule, enum node_place place, bool on,
                   struct err *err) {
    struct node_disk *d = disk_of(n);
    struct disk_rule r = *rule;
    size_t i = 0;
    if (!str_copy(r.root, sizeof(r.root), place == NODE_DISK ? n->disk : n->cluster->shared))
        return err_say(err, -ENAMETOOLONG, "%s: the path of its disk is too long", n->plan->name);
    while (i < d->rules_n && !disk_rule_same(&d->rules[i].rule, &r))
        i++;
    if (on && i < d->rules_n)
        return err_say(err, -EBUSY, "%s: an earlier fault does the same to its disk",
                       n->plan->name);
    if (on) {
        r.id = ++d->rules_made;
        mem_push(d->rules, d->rules_n) = (struct disk_rule_state){.rule = r};
        return tell_disk(n, &r, true, err);
    }
    if (i == d->rules_n)
        return 0;
    r.id = d->rules[i].rule.id;
    int code = tell_disk(n, &r, false, err);
    disk_link_hear(n->cluster); /* as long as the rule is known */
    forget_rule(d, r.id);
    let_go(d, 0, &r);
    return code;
}

void node_disk_forget(struct node *n) {
    if (!n->faulty)
        return;
    n->faulty->waiting_n = 0;
    set_timer(n->faulty);
}

void node_disk_free(struct node *n) {
    if (!n->faulty)
        return;
    loop_source_free(n->faulty->timer);
    free(n->faulty->rules);
    free(n->faulty->waiting);
    free(n->faulty);
    n->faulty = NULL;
}
