/* Fires an entry of the timeline: chooses its targets, injects the fault and records what came of
 * it. */
#include "harness/run/entry.h"
#include "harness/run/hand.h"

#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/process.h"
#include "base/sys/shared_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the records of a firing ---- */

struct json_writer *entry_record_at(const struct run_entry *a, const struct clock_stamp *at,
                                    enum source s, const char *kind) {
    struct json_writer *w = recorder_begin_at(&a->owner->engine->rec, at, s, kind);
    json_put_string(w, "id", a->entry->id);
    json_put_i64(w, "n", a->fired);
    return w;
}

struct json_writer *entry_record(const struct run_entry *a, enum source s, const char *kind) {
    return entry_record_at(a, &(struct clock_stamp){.t_ns = clock_monotonic_ns()}, s, kind);
}

/* Nobody was held at the step that was asked for: how far the job had come. */
static int64_t steps_done(const struct run_entry *a) {
    const struct rounds *rs = a->owner->engine->rec.rounds;
    int64_t most = -1;
    for (size_t i = 0; rs->n && i < rs->v[rs->n - 1]->n; i++)
        if (rs->v[rs->n - 1]->workers[i]->last_step > most)
            most = rs->v[rs->n - 1]->workers[i]->last_step;
    return most;
}

/* "5000000000: delay 200ms" */
static void put_profile(const struct run_entry *a, struct json_writer *w) {
    const struct timeline_entry *e = a->entry;
    if (!e->profile_n)
        return;
    json_array(w, "profile");
    for (size_t i = 0; i < e->profile_n; i++) {
        BUF_FINI struct buf text = {0};
        buf_printf(&text, "%lld:", (long long)e->profile[i].at_ns);
        for (size_t k = 0; k < e->profile[i].with_n; k++)
            buf_printf(&text, " %s %s", e->profile[i].with[k].key, e->profile[i].with[k].value);
        json_put_string(w, NULL, buf_str(&text));
    }
    json_end_array(w);
}

static void record_fired(struct run_entry *a) {
    const struct trigger *when = &a->entry->when;
    /* Of its own accord: nobody was waited for. */
    bool again = a->stuck || a->again_n < a->course.times - 1;
    struct json_writer *w = entry_record(a, SOURCE_HARNESS, "fault-fired");
    json_put_string(w, "fault", a->plan->fault->name);
    json_array(w, "on");
    for (size_t i = 0; i < a->bound_n; i++)
        json_put_string(w, NULL, a->bound[i].target.name);
    json_end_array(w);
    if (fault_arg(&a->args, "shape", NULL)) {
        json_put_string(w, "shape", fault_arg(&a->args, "shape", NULL));
        json_put_string(w, "groups", fault_arg(&a->args, "groups", NULL));
    }
    put_profile(a, w);
    if (when->has_step && !again)
        json_put_i64(w, "step", when->step);
    json_put_i64(w, "lag_ns", a->fired_ns - a->condition_ns - (again ? 0 : when->plus_ns));
    json_put_bool(w, "held", !again && a->holds);
    if (when->has_step && !when->hold && !again)
        json_put_i64(w, "done", steps_done(a));
    engine_recorded(a->owner->engine);
}

/* A node that is there for the store alone has neither agent nor workers that would be struck. */
static const char *what_name(const struct bound *b) {
    enum target_kind k = b->target.kind;
    if (node_plan(b->node)->is_store)
        return "store";
    return k == TARGET_WORKER ? "worker" : k == TARGET_AGENT ? "agent" : "node";
}

static void put_target(struct json_writer *w, const struct bound *b) {
    json_object(w, NULL);
    json_put_string(w, "what", what_name(b));
    json_put_string(w, "name", b->target.name);
    json_put_string(w, "node", node_plan(b->node)->name);
    json_put_i64(w, "pid", b->target.pid);
    if (b->worker)
        json_put_i64(w, "rank", b->worker->rank);
    if (b->kept)
        json_put_string(w, "kept", b->kept);
    json_end_object(w);
}

/* The moment from which times count: a death may have been seen before the answer came. */
static int64_t in_force_ns(const struct run_entry *a, int64_t answered_ns) {
    int64_t t0 = answered_ns;
    for (size_t i = 0; i < a->bound_n; i++)
        if (a->bound[i].exit_ns && a->bound[i].exit_ns < t0)
            t0 = a->bound[i].exit_ns;
    return t0;
}

/* The last answer has just come: where it is from another host, it has a moment of its own. NULL: none
 * has. */
static const struct node *answered_by(const struct run_entry *a, struct clock_stamp *ret) {
    for (size_t i = 0; i < a->bound_n; i++)
        if (node_moment(a->bound[i].node, ret))
            return a->bound[i].node;
    return NULL;
}

static void record_in_force(struct run_entry *a) {
    struct clock_stamp at = {.t_ns = clock_monotonic_ns()};
    const struct node *by = answered_by(a, &at);
    struct json_writer *w = entry_record_at(a, &at, SOURCE_HARNESS, "fault-in-force");
    if (by)
        json_put_string(w, "node", node_plan(by)->name);
    json_put_string(w, "fault", a->plan->fault->name);
    json_put_i64(w, "t0", in_force_ns(a, at.t_ns));
    json_put_bool(w, "ends_node", fault_has(a->plan->fault, EFFECTS_TAKE_AGENT));
    effects_put(w, "effects", a->course.effects);
    if (a->course.effects & EFFECT_ASKS_TO_LEAVE && a->plan->fault->status)
        json_put_i64(w, "signal", WTERMSIG(a->plan->fault->status(&a->args)));
    json_array(w, "targets");
    for (size_t i = 0; i < a->bound_n; i++)
        put_target(w, &a->bound[i]);
    json_end_array(w);
    engine_recorded(a->owner->engine);
}

static void record_error(struct run_entry *a) {
    struct json_writer *w = entry_record(a, SOURCE_HARNESS, "fault-failed");
    json_put_string(w, "error", a->error);
    engine_recorded(a->owner->engine);
}

/* ---- firing ---- */

/* The wire goes from step to step by itself: it is counted when the next one begins. */
void entry_count_step(struct run_entry *a) {
    if (a->stepped < a->args.steps_n)
        loop_timer_at(a->step, a->in_force_ns + a->args.steps[a->stepped].at_ns);
}

/* How it goes on from here by itself. */
static void set_timers(struct run_entry *a) {
    int64_t for_ns = a->entry->for_ns ? a->entry->for_ns : a->course.lasts_ns;
    int64_t most_ns = a->owner->engine->plan->scenario->limits.fault_ns;
    if (most_ns && (!for_ns || for_ns > most_ns))
        for_ns = most_ns;
    if (a->lasts && for_ns)
        loop_timer_at(a->until, clock_monotonic_ns() + for_ns);
    a->stepped = 1;
    entry_count_step(a);
    if (a->plan->fault->follow)
        loop_timer_at(a->follow, clock_monotonic_ns() + a->course.follow_ns);
    if (a->again_n)
        loop_timer_at(a->next, a->fired_ns + a->course.every_ns);
}

/* What a fault keeps of a worker: one that has kept nothing after all leaves no empty file. */
static void forget_empty(struct run_entry *a) {
    for (size_t i = 0; i < a->bound_n; i++) {
        struct bound *b = &a->bound[i];
        struct stat st;
        if (!b->kept)
            continue;
        const struct folder *run = a->owner->engine->spec->folder;
        FILE_CLOSE int fd = folder_find(run, b->kept, NULL);
        if (fd < 0 || (fstat(fd, &st) == 0 && st.st_size > 0))
            continue;
        folder_unlink(run, b->kept);
        b->kept = NULL;
    }
}

/* 0 or a -errno; *ret stays where it keeps nothing. */
static int open_kept(struct run_entry *a, struct bound *b, int *ret, struct err *err) {
    const char *what = a->plan->fault->keeps ? a->plan->fault->keeps(&a->plan->args) : NULL;
    if (!what || !b->worker)
        return 0;
    const struct folder *run = a->owner->engine->spec->folder;
    char *folder = arena_printf(&a->owner->engine->arena, "%ss", what);
    b->kept =
        arena_printf(&a->owner->engine->arena, "%s/%s-%d-%d.%s", folder, node_plan(b->node)->name,
                     b->worker->local_rank, (int)b->target.pid, what);
    int r = folder_make(run, folder, 0777, err);
    int fd = r ? r : folder_create(run, b->kept, err);
    if (fd < 0)
        return fd;
    *ret = fd;
    return 0;
}

/* A token says which entry an answer is for, and whether it is about the end of a fault: of the how
 * manyeth, as the answer to an earlier one may come later. */
enum { TOKEN_TAG_BITS = 20, TOKEN_TAG_MASK = (1 << TOKEN_TAG_BITS) - 1 };

static uint64_t token_of(const struct run_entry *a) {
    return (uint64_t)a->tag;
}

static uint64_t undo_token_of(const struct run_entry *a) {
    return (uint64_t)a->undone << TOKEN_TAG_BITS | (uint64_t)a->tag;
}

/* By the node's helper, which answers. */
static bool is_done_there(const struct run_entry *a, const struct bound *b) {
    const struct fault *f = a->plan->fault;
    return f->where == FAULT_IN_NODE || (fault_is_of_helper(f) && node_far_number(b->node));
}

static int recover(struct run_entry *a, struct bound *b, uint64_t token, struct err *err) {
    const struct fault *f = a->plan->fault;
    if (is_done_there(a, b))
        return node_recover(b->node, f, &b->target, &a->args, token, err);
    return f->recover(&b->target, &a->args, err);
}

/* Where it failed on one target it may be in force on another. Where it failed there is nothing to undo:
 * another entry may have done there what could not be done twice. */
static void undo_all(struct run_entry *a) {
    struct err err;
    bool lasts = fault_has(a->plan->fault, EFFECT_LASTING);
    for (size_t i = 0; lasts && i < a->bound_n; i++)
        if (!a->bound[i].failed)
            recover(a, &a->bound[i], 0, &err);
    entry_let_go(a);
}

static void let_go(struct bound *b) {
    if (b->kept_pidfd > 0) {
        close(b->kept_pidfd);
        b->target.pidfd = -1;
    }
    b->kept_pidfd = 0;
}

/* Of several that a fault ends the first take others with them, before their turn comes: these are
 * none of its targets. */
static bool has_ended(const struct bound *b) {
    struct process p = {b->target.pid, b->target.pidfd};
    return p.pidfd >= 0 && process_wait_end(&p, 0) == 0;
}

static void leave_out_ended(struct run_entry *a) {
    size_t struck = 0;
    for (size_t i = 0; i < a->bound_n; i++) {
        if (a->bound[i].failed && !has_ended(&a->bound[i]))
            return;
        struck += !a->bound[i].failed;
    }
    if (!struck || !(a->course.effects & (EFFECT_ENDS_WORKER | EFFECT_ENDS_AGENT)))
        return;
    struck = 0;
    for (size_t i = 0; i < a->bound_n; i++)
        if (a->bound[i].failed)
            let_go(&a->bound[i]);
        else
            a->bound[struck++] = a->bound[i];
    a->bound_n = struck;
    a->error[0] = '\0';
}

static void finished(struct run_entry *a) {
    forget_empty(a);
    if (a->error[0])
        leave_out_ended(a);
    if (a->error[0]) {
        record_error(a);
        undo_all(a);
        a->state = ENTRY_FAILED;
        a->again_n = 0;
    } else {
        a->in_force++;
        a->in_force_ns = clock_monotonic_ns();
        a->lasts = fault_has(a->plan->fault, EFFECT_LASTING);
        a->is_undone = false;
        set_timers(a);
        entry_look_again(a);
        record_in_force(a);
        if (a->holds)
            entry_record_held(a);
        evidence_in_force(a);
        if (!a->lasts)
            entry_let_go(a);
    }
    entry_release(a);
}

/* While the store is being read before it, nothing has been done to anybody yet. */
void entry_withdraw(struct run_entry *a, const char *why) {
    forget_empty(a);
    if (a->looks_open)
        entry_let_go(a);
    else
        undo_all(a);
    a->again_n = 0;
    entry_fail(a, why);
}

void entry_answered(struct run_entry *a, struct bound *b, const char *error) {
    b->answered = true;
    b->failed = error;
    if (error && !a->error[0])
        str_copy(a->error, sizeof(a->error), error);
    if (a->state == ENTRY_INJECTING && ++a->answers >= a->bound_n)
        finished(a);
}

static void inject(struct run_entry *a, struct bound *b) {
    const struct fault *f = a->plan->fault;
    struct err err = {0};
    if (is_done_there(a, b)) {
        struct target t = b->target;
        FILE_CLOSE int keep = -1;
        int opened = open_kept(a, b, &keep, &err);
        t.keep = keep < 0 ? 0 : keep;
        if (opened || node_inject(b->node, f, &t, &a->args, token_of(a), &err) < 0)
            entry_answered(a, b, err.msg);
        return;
    }
    int r = f->inject(&b->target, &a->args, &err);
    if (r == -EINPROGRESS) /* timeline_powered answers for it */
        return;
    if (r < 0 || !evidence_answers(a)) /* a node that is switched on: entry_seen answers for it */
        entry_answered(a, b, r < 0 ? err.msg : NULL);
}

/* Nobody can ask them afterwards. What is gone with its node needs no owner. */
static void record_shared_memory(struct run_entry *a, const struct bound *b) {
    TEXTS_FINI struct texts held = {0};
    pid_t *below;
    size_t n = process_list_descendants(b->target.pid, &below);
    shared_memory_held(b->target.pid, &held);
    for (size_t i = 0; i < n; i++)
        shared_memory_held(below[i], &held);
    free(below);
    if (!held.n)
        return;
    struct json_writer *w = entry_record(a, SOURCE_KERNEL, "shared-memory");
    json_put_string(w, "node", node_plan(b->node)->name);
    json_put_i64(w, "pid", b->target.pid);
    json_put_strings(w, "held", texts_list(&held));
    engine_recorded(a->owner->engine);
}

void entry_inject(struct run_entry *a) {
    for (size_t i = 0; i < a->bound_n; i++)
        if (a->course.effects & (EFFECT_ENDS_WORKER | EFFECT_ENDS_AGENT) &&
            a->bound[i].target.pid > 0)
            record_shared_memory(a, &a->bound[i]);
    for (size_t i = 0; i < a->bound_n; i++)
        inject(a, &a->bound[i]);
}

/* Its moment has come, and there is nothing to do: nothing fails by that, but somebody meant it to. */
static void record_idle_heal(const struct run_entry *a, const struct run_entry *of) {
    struct json_writer *w = engine_record(a->owner->engine, SOURCE_HARNESS, "heal-idle");
    json_put_string(w, "id", a->entry->id);
    json_put_string(w, "of", of->entry->id);
    json_put_string(w, "why", of->in_force ? "it had ended by then" : "it was never in force");
    engine_recorded(a->owner->engine);
}

static void heal(struct run_entry *a) {
    struct run_entry *of = &a->owner->entries[a->entry->heal];
    if (!of->lasts && !of->again_n)
        record_idle_heal(a, of);
    a->fired++;
    a->in_force++;
    of->again_n = 0;
    of->again = false;
    loop_timer_off(of->next);
    entry_recover(of);
    entry_look_again(a);
    entry_release(a);
}

/* Whom it has chosen it must find again, when the store has been read before and when it is undone. Who
 * ends has its pidfd closed by whoever watches it, and the number is soon another's. */
static void keep_pidfds(struct run_entry *a) {
    for (size_t i = 0; i < a->bound_n; i++) {
        struct target *t = &a->bound[i].target;
        if (t->pidfd >= 0)
            t->pidfd = a->bound[i].kept_pidfd = fcntl(t->pidfd, F_DUPFD_CLOEXEC, 0);
    }
}

void entry_let_go(struct run_entry *a) {
    for (size_t i = 0; i < a->bound_n; i++)
        let_go(&a->bound[i]);
}

/* Whom it strikes now; 0: nobody, and what follows from that has been done. */
static size_t choose(struct run_entry *a, const struct planned_entry *pa,
                     struct bound found[TARGETS_MAX]) {
    size_t n = targets_resolve(a->owner->engine, &a->owner->rand, pa, found);
    if (entry_must_wait(a, found, n)) {
        entry_wait_for_target(a);
        return 0;
    }
    if (!n)
        entry_fail(a, fault_has(pa->fault, EFFECT_STARTS_NODE)
                          ? "its target was on already when the trigger came true: only a node "
                            "that is off can be started"
                          : "its target matched nothing that was alive when the trigger came true");
    return n;
}

/* Of the others: what lasts, and what is being brought in force. */
static int in_force_now(const struct run_entry *a) {
    const struct timeline *t = a->owner;
    int n = 0;
    for (size_t i = 0; i < t->n; i++)
        n += &t->entries[i] != a && (t->entries[i].lasts || t->entries[i].state == ENTRY_INJECTING);
    return n;
}

static bool is_one_too_many(struct run_entry *a) {
    int most = a->owner->engine->plan->scenario->limits.faults, n = most ? in_force_now(a) : 0;
    if (!most || n < most)
        return false;
    entry_fail(a, arena_printf(&a->owner->engine->arena,
                               "%d fault%s in force when its moment came, and limits.faults allows "
                               "%d at once",
                               n, n == 1 ? " was" : "s were", most));
    return true;
}

static void strike(struct run_entry *a, const struct bound *found, size_t n) {
    if (is_one_too_many(a))
        return;
    entry_undone(a);
    loop_timer_off(a->within);
    a->bound = arena_array(&a->owner->engine->arena, struct bound, n);
    memcpy(a->bound, found, n * sizeof(*found));
    a->bound_n = n;
    a->answers = 0;
    a->felt = false;
    a->error[0] = '\0';
    a->fired++;
    a->fired_ns = clock_monotonic_ns();
    a->state = ENTRY_INJECTING;
    keep_pidfds(a);
    record_fired(a);
    entry_stick(a);
    evidence_begin(a);
    if (!entry_read_store(a, true))
        entry_inject(a);
}

/* pa is the entry, or the entry with the target that the store has named. */
static void fire_at(struct run_entry *a, const struct planned_entry *pa) {
    struct planned_entry one = *pa;
    struct bound found[TARGETS_MAX];
    struct err err;
    if (targets_shape(a->owner->engine, pa, &one.args, &err) != 0) {
        entry_fail(a, err.msg);
        return;
    }
    a->args = one.args;
    size_t n = choose(a, &one, found);
    a->again_n = n ? a->course.times - 1 : 0;
    if (n)
        strike(a, found, n);
}

void entry_fire(struct run_entry *a) {
    a->round_base = (int)a->owner->engine->rec.rounds
                        ->n; /* the next may begin before it is known to be in force */
    if (a->stops) {
        hand_stopped(a);
        return;
    }
    if (!a->plan->fault) {
        heal(a);
        return;
    }
    entry_recover(a); /* what an earlier firing has left in force */
    if (entry_asks(a))
        entry_ask(a);
    else
        fire_at(a, a->plan);
}

void entry_told(struct run_entry *a, const char *node, const char *why) {
    struct timeline_entry line = *a->entry;
    const struct planned_entry one = {
        .entry = &line, .fault = a->plan->fault, .args = a->plan->args};
    if (!node && a->entry->when.patient) {
        entry_wait_for_target(a);
    } else if (!node) {
        entry_fail(a, why);
    } else {
        line.on.pick = PICK_NAMED;
        line.on.node = node;
        line.on.local_rank = -1;
        fire_at(a, &one);
    }
}

void entry_fire_again(struct run_entry *a) {
    struct bound found[TARGETS_MAX];
    size_t n = entry_find_again(a, found);
    if (!n)
        return;
    entry_recover(a);
    a->condition_ns = clock_monotonic_ns();
    strike(a, found, n);
}

/* Who is gone already needs no second part. */
void entry_follow(struct run_entry *a) {
    struct err err;
    for (size_t i = 0; i < a->bound_n; i++) {
        struct target t;
        node_target(a->bound[i].node, &t);
        int r = t.pidfd < 0 ? 0 : a->plan->fault->follow(&t, &a->plan->args, &err);
        if (r < 0 && r != -ESRCH && r != -EINPROGRESS)
            str_copy(a->error, sizeof(a->error), err.msg);
    }
    if (a->error[0])
        record_error(a);
}

void entry_come_again(struct run_entry *a) {
    struct bound found[TARGETS_MAX];
    if (!a->again || !a->felt || a->lasts || !a->again_n)
        return;
    for (size_t i = 0; i < a->bound_n; i++) {
        found[i] = (struct bound){.node = a->bound[i].node};
        node_target(found[i].node, &found[i].target);
    }
    a->again = false;
    a->again_n--;
    a->condition_ns = clock_monotonic_ns();
    strike(a, found, a->bound_n);
}

/* ---- the end of what lasts ---- */

/* It is undone, or nobody will say any more whether it is. */
void entry_undone(struct run_entry *a) {
    if (!a->undoing)
        return;
    a->undoing = false;
    for (size_t i = 0; i < a->bound_n; i++)
        a->bound[i].undoing = false;
    entry_let_go(a);
    struct json_writer *w = entry_record(a, SOURCE_HARNESS, "fault-recovered");
    if (a->undo_error[0])
        json_put_string(w, "error", a->undo_error);
    engine_recorded(a->owner->engine);
}

static void look_undone(struct run_entry *a) {
    for (size_t i = 0; i < a->bound_n; i++)
        if (a->bound[i].undoing)
            return;
    entry_undone(a);
}

static void undo(struct run_entry *a, struct bound *b) {
    struct err err;
    int r = recover(a, b, undo_token_of(a), &err);
    b->undoing = r == 0 && is_done_there(a, b);
    if (r < 0 && r != -ESRCH) /* a node that is off, a worker that has ended: undone as well */
        str_copy(a->undo_error, sizeof(a->undo_error), err.msg);
}

void entry_recover(struct run_entry *a) {
    if (!a->lasts)
        return;
    a->lasts = a->overdue = false;
    loop_timer_off(a->until);
    evidence_end(a);
    a->is_undone = true;
    if (a->owner->finished && fault_returns_node(a->plan->fault))
        return; /* it stays off, as all nodes are about to be */
    a->undoing = true;
    a->undone++;
    a->undo_error[0] = '\0';
    for (size_t i = 0; i < a->bound_n; i++)
        undo(a, &a->bound[i]);
    if (a->end)
        entry_rest(a->end);
    look_undone(a);
}

/* Each node answers once for each of its own, in the order in which it was told; NULL: any. */
static void inject_answered(struct run_entry *a, const struct node *n, const char *error) {
    for (size_t i = 0; i < a->bound_n; i++)
        if ((!n || a->bound[i].node == n) && !a->bound[i].answered) {
            entry_answered(a, &a->bound[i], error);
            return;
        }
}

/* The same of an end. */
static void undo_answered(struct run_entry *a, const struct node *n, const char *error) {
    for (size_t i = 0; i < a->bound_n; i++) {
        struct bound *b = &a->bound[i];
        if (b->node != n || !b->undoing)
            continue;
        b->undoing = false;
        break;
    }
    if (error)
        str_copy(a->undo_error, sizeof(a->undo_error), error);
    look_undone(a);
}

void entry_node_gone(struct run_entry *a, const char *node) {
    for (size_t i = 0; a->undoing && i < a->bound_n; i++)
        if (str_eq(node_plan(a->bound[i].node)->name, node))
            a->bound[i].undoing = false;
    if (a->undoing)
        look_undone(a);
}

bool timeline_powered(struct engine *e, const struct node *n, const char *error) {
    struct timeline *t = own(e, timeline);
    for (size_t i = 0; i < t->n; i++) {
        struct run_entry *a = &t->entries[i];
        for (size_t k = 0; a->state == ENTRY_INJECTING && k < a->bound_n; k++)
            if (a->bound[k].node == n && !a->bound[k].answered && !is_done_there(a, &a->bound[k])) {
                entry_answered(a, &a->bound[k], error);
                return true;
            }
    }
    return false;
}

void timeline_answer(struct engine *e, struct node *n, uint64_t token, const char *error) {
    struct timeline *t = own(e, timeline);
    uint64_t tag = token & TOKEN_TAG_MASK, undone = token >> TOKEN_TAG_BITS;
    if (tag < 1 || tag > t->n)
        return;
    struct run_entry *a = &t->entries[tag - 1];
    if (!undone)
        inject_answered(a, n, error);
    else if (a->undoing && undone == (uint64_t)a->undone)
        undo_answered(a, n, error);
}
