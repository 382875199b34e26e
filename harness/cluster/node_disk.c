/* What the programs of a node do to its disks, where faults are in force on these: each system call
 * waits for us, and goes on, fails, or waits longer as the rules say (disk_rules.h). */
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

struct node_disk {
    struct node *node;
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

static const char *const verdicts[DISK_VERDICTS_N] = {
    [DISK_FAILS] = "failed", [DISK_WAITS] = "slowed", [DISK_STICKS] = "stuck"};

static void note(struct node_disk *d, enum disk_verdict v, const struct disk_rule *rule,
                 const struct watched_call *c, const struct disk_request *q) {
    struct cluster *cluster = d->node->cluster;
    d->done[v].count++;
    str_copy(d->done[v].path, sizeof(d->done[v].path), q->path);
    for (size_t i = 0; i < d->rules_n; i++)
        if (&d->rules[i].rule == rule && d->rules[i].done == 1 && cluster->cb.struck)
            cluster->cb.struck(cluster->arg, d->node, c, verdicts[v], q->path);
}

bool node_disk_call(struct node *n, const struct watched_call *c) {
    struct node_disk *d = n->faulty;
    const struct disk_rule *rule = NULL;
    struct disk_call_paths paths;
    struct disk_request q;
    if (!d || !d->rules_n || !disk_call_read(c, &paths, &q))
        return false;
    enum disk_verdict v = disk_rules_decide(d->rules, d->rules_n, &q, &rule);
    if (v == DISK_PASSES)
        return false;
    if (v == DISK_FAILS) {
        if (call_watch_answer(n->watch, c->id, -rule->error) != 0)
            return true; /* who called has gone */
    } else {
        wait(d, c, rule, v == DISK_STICKS);
    }
    note(d, v, rule, c, &q);
    return true;
}

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
        mem_push(d->rules, d->rules_n) = (struct disk_rule_state){.rule = r};
        return 0;
    }
    if (i < d->rules_n) {
        memmove(&d->rules[i], &d->rules[i + 1], (--d->rules_n - i) * sizeof(*d->rules));
        let_go(d, 0, &r);
    }
    return 0;
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
