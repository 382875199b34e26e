#include "harness/cluster/held_rules.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "faults/mechanism/disk_call.h"

#include <stdlib.h>
#include <string.h>

struct waiting_call {
    uint64_t id;
    int64_t due_ns; /* 0: when the rule is taken away */
    int64_t rule;
};

struct held_rules {
    struct loop_source *timer;
    held_struck_fn *struck;
    void *arg;
    int watch;
    int64_t made;
    struct disk_rule_state *rules;
    struct waiting_call *waiting;
    size_t rules_n, waiting_n;
};

/* ---- what waits ---- */

static void set_timer(struct held_rules *h) {
    int64_t next = 0;
    for (size_t i = 0; i < h->waiting_n; i++) {
        int64_t due = h->waiting[i].due_ns;
        next = due && (!next || due < next) ? due : next;
    }
    if (next)
        loop_timer_at(h->timer, next);
    else
        loop_timer_off(h->timer);
}

/* Those that are due, and those of a rule (0: none), go on. */
static void let_go(struct held_rules *h, int64_t now_ns, int64_t rule) {
    for (size_t i = 0; i < h->waiting_n;) {
        const struct waiting_call *w = &h->waiting[i];
        bool due = (w->due_ns && w->due_ns <= now_ns) || (rule && w->rule == rule);
        if (due && h->watch >= 0)
            call_watch_pass(h->watch, w->id);
        if (due)
            h->waiting[i] = h->waiting[--h->waiting_n];
        else
            i++;
    }
    set_timer(h);
}

static void on_timer(void *arg, int64_t now_ns) {
    let_go(arg, now_ns, 0);
}

static void wait(struct held_rules *h, const struct watched_call *c, const struct disk_rule *rule) {
    mem_push(h->waiting, h->waiting_n) =
        (struct waiting_call){.id = c->id,
                              .due_ns = rule->stuck ? 0 : clock_monotonic_ns() + rule->delay_ns,
                              .rule = rule->id};
    set_timer(h);
}

void held_rules_watch(struct held_rules *h, int watch) {
    h->watch = watch;
    h->waiting_n = 0;
    set_timer(h);
}

/* ---- what is asked ---- */

bool held_rules_meet(struct held_rules *h, const struct watched_call *c) {
    struct disk_call_paths paths;
    struct disk_request q;
    if (!h->rules_n || !disk_call_read(c, &paths, &q))
        return false;
    struct disk_ruling r = disk_rules_decide(h->rules, h->rules_n, &q);
    if (r.verdict == DISK_PASSES)
        return false;
    bool fails = r.verdict == DISK_FAILS;
    if (!fails)
        wait(h, c, r.rule);
    else if (call_watch_answer(h->watch, c->id, -r.rule->error) != 0)
        return true; /* who called has gone */
    const struct disk_strike s = {.verdict = disk_verdict_names[r.verdict],
                                  .does = disk_does_text(q.does),
                                  .path = q.path,
                                  .pid = c->pid,
                                  .error = fails ? r.rule->error : 0};
    h->struck(h->arg, held_rules_find(h, r.rule->id), r.verdict, &s);
    return true;
}

/* ---- which are in force ---- */

struct disk_rule_state *held_rules_like(const struct held_rules *h, const struct disk_rule *r) {
    for (size_t i = 0; i < h->rules_n; i++)
        if (disk_rule_same(&h->rules[i].rule, r))
            return &h->rules[i];
    return NULL;
}

struct disk_rule_state *held_rules_find(const struct held_rules *h, int64_t id) {
    for (size_t i = 0; i < h->rules_n; i++)
        if (h->rules[i].rule.id == id)
            return &h->rules[i];
    return NULL;
}

const struct disk_rule_state *held_rules_all(const struct held_rules *h, size_t *ret_n) {
    *ret_n = h->rules_n;
    return h->rules;
}

int64_t held_rules_add(struct held_rules *h, const struct disk_rule *r) {
    struct disk_rule_state *s = &mem_push(h->rules, h->rules_n);
    *s = (struct disk_rule_state){.rule = *r};
    s->rule.id = ++h->made;
    return s->rule.id;
}

void held_rules_drop(struct held_rules *h, int64_t id) {
    struct disk_rule_state *s = held_rules_find(h, id);
    size_t i = s ? (size_t)(s - h->rules) : h->rules_n;
    if (s)
        memmove(s, s + 1, (--h->rules_n - i) * sizeof(*s));
    let_go(h, 0, id);
}

/* ---- as messages ---- */

void held_rules_put(const struct disk_rule_state *s, struct json_writer *w, const char *key) {
    json_object(w, key);
    disk_rule_put(&s->rule, w);
    json_put_string(w, "root", s->rule.root);
    json_put_i64(w, "matched", s->matched);
    json_put_i64(w, "done", s->done);
    json_put_i64(w, "used", s->used);
    json_end_object(w);
}

void held_rules_take(const struct json *j, struct disk_rule_state *ret) {
    *ret = (struct disk_rule_state){.matched = json_get_i64(j, "matched", 0),
                                    .done = json_get_i64(j, "done", 0),
                                    .used = json_get_i64(j, "used", 0)};
    disk_rule_take(j, &ret->rule);
    str_copy(ret->rule.root, sizeof(ret->rule.root), json_get_string(j, "root", ""));
}

/* ---- its life ---- */

struct held_rules *held_rules_new(struct loop *l, held_struck_fn *struck, void *arg) {
    struct held_rules *h = mem_new(struct held_rules);
    *h = (struct held_rules){.struck = struck, .arg = arg, .watch = -1};
    h->timer = loop_timer(l, on_timer, h);
    return h;
}

struct held_rules *held_rules_free(struct held_rules *h) {
    if (!h)
        return NULL;
    loop_source_free(h->timer);
    free(h->rules);
    free(h->waiting);
    free(h);
    return NULL;
}
