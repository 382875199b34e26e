/* The coordinator's transitions of head (T6). One at a time; each compares the head and the lead it
 * was decided from, so that one that comes late or twice is refused. */
#include "agent/core/state.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define MS 1000000LL

/* A round is brief that ended within this, or within suspect; so many in a row are begun at once,
 * the next so far apart, from the least on twice as far each time. */
#define BRIEF_MOST_NS  (2000 * MS)
#define PAUSE_LEAST_NS (100 * MS)
#define PAUSE_MOST_NS  (5000 * MS)
enum { PLAN_BATCH = 60, BRIEF_AT_ONCE = 8 };

static struct view *view_of(struct rendezvous *r) {
    return &r->coordinator.view;
}

static struct draft *decision_new(struct rendezvous *r) {
    const struct view *v = view_of(r);
    struct draft *d = draft_new(r);
    draft_compare(d, key_job(r, KEY_LEAD), COMPARE_MOD, v->lead_revision);
    draft_compare(d, key_job(r, KEY_HEAD), COMPARE_MOD, v->head_revision);
    return d;
}

static struct head_value *head_put(struct rendezvous *r, struct draft *d) {
    struct head_value *h = &draft_put(r, d, key_job(r, KEY_HEAD))->head;
    *h = view_of(r)->head;
    return h;
}

/* The next decision waits until the view has moved on, which it does when this one was applied and
 * when it was refused. */
static void decision_send(struct rendezvous *r, struct draft *d) {
    struct coordinator *c = &r->coordinator;
    request_txn(r, &c->decide, d);
    c->decide_after = c->view.revision + 1;
}

void decide_done(struct rendezvous *r, const struct event *ev) {
    struct coordinator *c = &r->coordinator;
    if (!request_reply(r, &c->decide, ev->done.id, ev->done.reached))
        return;
    if (ev->done.reached && ev->done.applied)
        c->decide_after = ev->done.revision;
    c->decide.retry_ns = r->now.monotonic_ns + r->cur.timing.hb_ns;
}

static bool decision_may(struct rendezvous *r) {
    const struct coordinator *c = &r->coordinator;
    if (c->decide.id)
        return false;
    return c->view.revision >= c->decide_after || request_may(r, &c->decide);
}

/* --- -> FORM --- */

/* Rounds go on where a store that has forgotten them left off: their number fences what their
 * workers write. */
static int64_t next_round(const struct rendezvous *r) {
    int64_t round = r->coordinator.view.head.round, past = membership_memory(r).round;
    if (r->cur.rounds_before > past)
        past = r->cur.rounds_before;
    return (past > round ? past : round) + 1;
}

static void pid_draw(struct rendezvous *r) {
    struct coordinator *c = &r->coordinator;
    snprintf(c->pid, sizeof(c->pid), "%lld-%lld-%lld", (long long)next_round(r),
             (long long)c->view.lead_revision, (long long)++c->n_plans);
    c->pid_head = c->view.head_revision;
}

static bool is_same_place(const struct plan_value *a, const struct plan_value *b) {
    return a->rank_base == b->rank_base && a->world == b->world &&
           a->role_rank_base == b->role_rank_base && a->role_world == b->role_world;
}

/* Whether the plan being written is still what is wanted: who is behind the batches that are there
 * counts, too, as their worlds do. */
static bool pid_serves(struct rendezvous *r, const struct wanted *w) {
    const struct coordinator *c = &r->coordinator;
    const struct round_plan *p = view_plan(&c->view, c->pid);
    if (!c->pid[0] || c->pid_head != c->view.head_revision || c->pid_n != w->n)
        return false;
    if (!p)
        return true;
    struct plan_value *places = arena_array(&r->arena, struct plan_value, w->n);
    ranks_assign(w, places);
    for (size_t i = 0; i < p->n; i++) {
        int rank = p->entries[i].value.group_rank;
        if ((size_t)rank >= w->n || w->members[rank] != p->entries[i].member ||
            !is_same_place(&p->entries[i].value, &places[rank]))
            return false;
    }
    return true;
}

static void plan_put(struct rendezvous *r, struct draft *d, const struct wanted *w, size_t from,
                     size_t n) {
    struct plan_value *places = arena_array(&r->arena, struct plan_value, w->n);
    ranks_assign(w, places);
    for (size_t i = from; i < from + n; i++) {
        struct store_key key = key_of(r, KEY_PLAN, w->members[i]->uid);
        memcpy(key.pid, r->coordinator.pid, sizeof(key.pid));
        /* A batch is applied whole: its first key stands for all of them. */
        if (i == from)
            draft_compare(d, key, COMPARE_VERSION, 0);
        draft_put(r, d, key)->plan = places[i];
    }
}

static void form_put(struct rendezvous *r, struct draft *d, const struct wanted *w) {
    struct head_value *h = head_put(r, d);
    bool running = h->phase == HEAD_RUN;
    h->round = next_round(r);
    h->phase = HEAD_FORM;
    memcpy(h->pid, r->coordinator.pid, sizeof(h->pid));
    h->n = (int)w->n;
    h->world = h->master_port = 0;
    memset(h->master_addr, 0, sizeof(h->master_addr));
    memset(h->token, 0, sizeof(h->token));
    if (running) {
        h->cause = CAUSE_MEMBERSHIP;
        memset(&h->failure, 0, sizeof(h->failure));
    }
}

/* The plan in batches, each waited for in the view; the last one brings the head along. */
static void form(struct rendezvous *r, const struct wanted *w, bool admits) {
    struct coordinator *c = &r->coordinator;
    if (!pid_serves(r, w)) {
        pid_draw(r);
        c->pid_n = w->n;
    }
    const struct round_plan *p = view_plan(&c->view, c->pid);
    size_t written = p ? p->n : 0, left = w->n - written;
    struct draft *d = decision_new(r);
    if (left)
        plan_put(r, d, w, written, left < PLAN_BATCH ? left : PLAN_BATCH);
    if (left <= PLAN_BATCH) {
        struct store_key done = key_all(r, KEY_DONE);
        done.round = c->view.head.last_round;
        if (admits)
            draft_compare(d, done, COMPARE_VERSION, 0);
        form_put(r, d, w);
        action_claim(r, CLAIM_FORM, next_round(r));
    }
    decision_send(r, d);
}

/* --- rounds that cost no restart --- */

/* A round goes on from another one without cost: a node was lost, left or came. */
static bool is_free(const struct view *v) {
    return v->head.last_round && budget_cost(v) == 0;
}

/* How much of the hour is over: there is no clock in the store, but who leads has seen the last
 * round begin, and head tells how old the hour was then. */
static int64_t free_age_ns(struct rendezvous *r) {
    return view_of(r)->head.free_age_ms * MS + (r->now.monotonic_ns - r->ran_ns);
}

static int free_rounds(struct rendezvous *r) {
    return free_age_ns(r) < DECIDE_HOUR_NS ? view_of(r)->head.free_rounds : 0;
}

static bool is_free_spent(struct rendezvous *r) {
    bool spent = r->cur.max_free_rounds && free_rounds(r) >= r->cur.max_free_rounds;
    if (spent)
        wake_at(r, r->now.monotonic_ns + DECIDE_HOUR_NS - free_age_ns(r));
    return spent;
}

/* In a row, with the round that is about to run: each follows at no cost on one that ended almost
 * as soon as it had begun. */
static int brief_rounds(struct rendezvous *r) {
    int64_t suspect_ns = r->cur.timing.suspect_ns;
    int64_t brief_ns = suspect_ns < BRIEF_MOST_NS ? suspect_ns : BRIEF_MOST_NS;
    bool brief = is_free(view_of(r)) && r->ended_ns - r->ran_ns < brief_ns;
    return brief ? view_of(r)->head.brief_rounds + 1 : 0;
}

/* Nodes may come and go for a while, but not so for ever: after the first few such rounds the next
 * ones begin further and further apart. */
static bool is_paused(struct rendezvous *r) {
    int n = brief_rounds(r) - BRIEF_AT_ONCE;
    if (!r->cur.max_free_rounds || n <= 0)
        return false;
    int64_t pause_ns = n < 8 ? PAUSE_LEAST_NS << (n - 1) : PAUSE_MOST_NS;
    pause_ns = pause_ns < PAUSE_MOST_NS ? pause_ns : PAUSE_MOST_NS;
    int64_t at_ns = r->ran_ns + pause_ns;
    if (r->now.monotonic_ns >= at_ns)
        return false;
    wake_at(r, at_ns);
    if (!r->coordinator.pause_told)
        action_log(r,
                   "%d rounds in a row have ended as soon as they had begun, at no restart: the "
                   "next ones begin up to %lld s apart, at most %d within an hour (--rdzv-conf "
                   "max_free_rounds_per_hour)",
                   brief_rounds(r), (long long)(PAUSE_MOST_NS / (1000 * MS)),
                   r->cur.max_free_rounds);
    r->coordinator.pause_told = true;
    return true;
}

static void free_put(struct rendezvous *r, struct head_value *h) {
    bool anew = free_age_ns(r) >= DECIDE_HOUR_NS || !h->last_round;
    if (!r->cur.max_free_rounds)
        return;
    h->brief_rounds = brief_rounds(r);
    h->free_age_ms = anew ? 0 : free_age_ns(r) / MS;
    h->free_rounds = free_rounds(r) + is_free(view_of(r));
}

/* --- -> RUN, END, CLOSED --- */

static bool all_acked(const struct view *v, const struct member **ret_first) {
    int n = 0;
    for (size_t i = 0; i < v->n; i++) {
        const struct member *m = v->members[i];
        if (m->rank_now < 0)
            continue;
        if (!m->acked)
            return false;
        n++;
        if (m->rank_now == 0)
            *ret_first = m;
    }
    return n == v->head.n;
}

/* With what the last round costs; or with what members remember of a store that has forgotten it,
 * if that is more. */
static int restarts_settled(struct rendezvous *r) {
    const struct view *v = view_of(r);
    int here = v->head.restarts, remembered = membership_memory(r).restarts;
    return (here > remembered ? here : remembered) + budget_cost(v);
}

/* No round is begun with a member known lost: nothing under gone/ is newer than the view. */
static void run(struct rendezvous *r, const struct member *first) {
    const struct view *v = view_of(r);
    struct draft *d = decision_new(r);
    draft_compare_below(d, key_all(r, KEY_GONE), v->revision + 1);
    struct head_value *h = head_put(r, d);
    if (budget_cost(v))
        h->charged_round = h->last_round;
    h->phase = HEAD_RUN;
    free_put(r, h);
    h->restarts = restarts_settled(r);
    h->cause = CAUSE_NONE;
    memset(&h->failure, 0, sizeof(h->failure));
    h->last_round = h->round;
    memcpy(h->last_pid, h->pid, sizeof(h->last_pid));
    h->last_n = h->n;
    h->world = first->place.world;
    memcpy(h->master_addr, first->ack.addr, sizeof(h->master_addr));
    h->master_port = first->ack.port;
    uid_draw(r, h->token);
    decision_send(r, d);
}

static void end(struct rendezvous *r) {
    struct draft *d = decision_new(r);
    struct head_value *h = head_put(r, d);
    h->phase = HEAD_END;
    h->cause = CAUSE_MEMBERSHIP;
    memset(&h->failure, 0, sizeof(h->failure));
    decision_send(r, d);
}

static struct head_value *close_put(struct rendezvous *r, struct draft *d,
                                    enum head_outcome outcome) {
    struct head_value *h = head_put(r, d);
    h->phase = HEAD_CLOSED;
    h->outcome = outcome;
    return h;
}

/* Failed, and by no worker. */
static struct failure *close_put_failed(struct rendezvous *r, struct draft *d) {
    struct failure *f = &close_put(r, d, OUTCOME_FAILED)->failure;
    memset(f, 0, sizeof(*f));
    f->rank = f->local_rank = -1;
    return f;
}

static void close_succeeded(struct rendezvous *r) {
    struct draft *d = decision_new(r);
    close_put(r, d, OUTCOME_SUCCEEDED);
    decision_send(r, d);
}

static void close_over_budget(struct rendezvous *r) {
    struct draft *d = decision_new(r);
    close_put(r, d, OUTCOME_FAILED)->restarts = restarts_settled(r);
    decision_send(r, d);
}

/* A coordinator that was stopped wakes with its time over and has not read who came meanwhile:
 * nobody may have joined since its view. */
static void close_below_min(struct rendezvous *r, const struct wanted *w) {
    struct draft *d = decision_new(r);
    draft_compare_below(d, key_all(r, KEY_MEMBER), view_of(r)->revision + 1);
    struct failure *f = close_put_failed(r, d);
    snprintf(f->error, sizeof(f->error), "fewer than %d nodes (%zu) for %lld s (join_timeout)%s",
             r->cur.min, w->n, (long long)(r->config.join_timeout_ns / 1000000000),
             w->doubled ? "; several nodes have the same node rank" : "");
    decision_send(r, d);
}

static void close_gang(struct rendezvous *r, const struct member *missed) {
    const char *node = missed->known ? missed->value.node : missed->uid;
    struct draft *d = decision_new(r);
    struct failure *f = close_put_failed(r, d);
    snprintf(f->node, sizeof(f->node), "%s", node);
    snprintf(f->error, sizeof(f->error),
             "node %.100s was lost or left, and --on-node-loss=gang ends the run with it", node);
    decision_send(r, d);
}

static void close_over_free(struct rendezvous *r) {
    struct draft *d = decision_new(r);
    struct failure *f = close_put_failed(r, d);
    snprintf(
        f->error, sizeof(f->error),
        "%d rounds within an hour were begun again because nodes came and went, which costs no "
        "restart (--rdzv-conf max_free_rounds_per_hour=%d)",
        view_of(r)->head.free_rounds, r->cur.max_free_rounds);
    decision_send(r, d);
}

/* --- what each phase asks --- */

/* True once the time since `*since_ns` (set here at first) has passed. */
static bool has_lasted(struct rendezvous *r, int64_t *since_ns, int64_t limit_ns) {
    if (!*since_ns)
        *since_ns = r->now.monotonic_ns;
    if (r->now.monotonic_ns >= *since_ns + limit_ns)
        return true;
    wake_at(r, *since_ns + limit_ns);
    return false;
}

/* "2 of 3:4 nodes are here". */
static const char *here_text(struct rendezvous *r, const struct wanted *w) {
    struct arena *a = &r->arena;
    const char *of = r->cur.min == r->cur.max ? arena_printf(a, "%d", r->cur.max)
                                              : arena_printf(a, "%d:%d", r->cur.min, r->cur.max);
    return arena_printf(a, "%zu of %s nodes %s here", w->n, of, w->n == 1 ? "is" : "are");
}

static bool below_min(struct rendezvous *r, const struct wanted *w) {
    struct coordinator *c = &r->coordinator;
    if (w->n >= (size_t)r->cur.min)
        return false;
    if (!c->below_since_ns && !leave_due(r))
        action_log(r, "%s; waiting up to %lld s for more (--rdzv-conf join_timeout=...)",
                   here_text(r, w), (long long)(r->config.join_timeout_ns / 1000000000));
    if (w->doubled && w->doubled != c->doubled_told)
        action_log(r, "node rank %d was given to several nodes: one takes part, the others wait",
                   w->doubled - 1);
    c->doubled_told = w->doubled;
    if (has_lasted(r, &c->below_since_ns, r->config.join_timeout_ns))
        close_below_min(r, w);
    return true;
}

static void last_call(struct rendezvous *r, const struct wanted *w) {
    long long ms = r->config.last_call_ns / 1000000;
    action_claim(r, CLAIM_LAST_CALL, 0);
    if (ms >= 1000 && !leave_due(r))
        action_log(r,
                   "%s; starting with %s in %lld s unless more join (--rdzv-conf "
                   "last_call_timeout=...)",
                   here_text(r, w), w->n == 1 ? "it" : "them", ms / 1000);
}

static void decide_first(struct rendezvous *r, const struct wanted *w) {
    struct coordinator *c = &r->coordinator;
    if (below_min(r, w))
        return;
    if (!c->enough_since_ns && w->n < (size_t)r->cur.max)
        last_call(r, w);
    if (w->n == (size_t)r->cur.max || has_lasted(r, &c->enough_since_ns, r->config.last_call_ns))
        form(r, w, false);
}

static bool over_budget(struct rendezvous *r) {
    const struct view *v = view_of(r);
    return budget_settled(v) && budget_cost(v) > 0 && restarts_settled(r) > r->cur.max_restarts;
}

static bool over_free(struct rendezvous *r) {
    const struct view *v = view_of(r);
    return budget_settled(v) && is_free(v) && is_free_spent(r);
}

/* Workers of before may live: of a store that has come back, or of members that a forgotten round
 * had and this job has not. Each of them has had its last beat before this store was read first. */
static bool is_held(struct rendezvous *r) {
    struct coordinator *c = &r->coordinator;
    int64_t until_ns = c->since_ns + r->cur.timing.suspect_ns;
    bool owed = r->cur.hold || membership_memory(r).missing;
    if (c->view.head.last_round || !owed || r->now.monotonic_ns >= until_ns)
        return false;
    wake_at(r, until_ns);
    if (!c->hold_told)
        action_log(r,
                   "the first round waits %lld ms for workers that the store may have forgotten "
                   "(--rdzv-conf quarantine=auto|never)",
                   (long long)(until_ns - r->now.monotonic_ns + 999999) / 1000000);
    c->hold_told = true;
    return true;
}

/* Who joined is taken after `admit` of quiet, all together. */
static bool admission_due(struct rendezvous *r, const struct wanted *w) {
    int64_t joined_ns;
    if (!membership_newcomers(w, &joined_ns))
        return false;
    int64_t at_ns = joined_ns + r->config.admit_ns;
    if (r->now.monotonic_ns < at_ns)
        wake_at(r, at_ns);
    return r->now.monotonic_ns >= at_ns;
}

static void decide_form(struct rendezvous *r, const struct wanted *w) {
    const struct view *v = view_of(r);
    const struct member *first = NULL;
    if (over_budget(r)) {
        close_over_budget(r);
    } else if (over_free(r)) {
        close_over_free(r);
    } else if (membership_lost(v)) {
        if (!below_min(r, w))
            form(r, w, false);
    } else if (v->head.round < next_round(r) - 1) {
        form(r, w, false); /* somebody came who knows of later rounds */
    } else if (budget_settled(v) && all_acked(v, &first) && first && !is_held(r) && !is_paused(r)) {
        run(r, first);
    } else if (admission_due(r, w)) {
        form(r, w, false);
    }
}

static void decide_end(struct rendezvous *r, const struct wanted *w) {
    if (over_budget(r))
        close_over_budget(r);
    else if (over_free(r))
        close_over_free(r);
    else if (!below_min(r, w))
        form(r, w, false);
}

static void decide_run(struct rendezvous *r, const struct wanted *w) {
    const struct view *v = view_of(r);
    int done = 0;
    bool any_done = false;
    for (size_t i = 0; i < v->n; i++) {
        done += v->members[i]->rank_now >= 0 && v->members[i]->done;
        any_done |= v->members[i]->done;
    }
    if (done == v->head.n) {
        close_succeeded(r);
    } else if (membership_lost(v)) {
        if (w->n >= (size_t)r->cur.min)
            form(r, w, false);
        else
            end(r);
    } else if (!any_done && admission_due(r, w) && !is_free_spent(r)) {
        form(r, w, true);
    }
}

void decide_advance(struct rendezvous *r) {
    if (view_of(r)->head.phase == HEAD_CLOSED || !decision_may(r))
        return;
    const struct member *missed = membership_missed(view_of(r));
    if (missed && r->cur.on_node_loss == NODE_LOSS_GANG) {
        close_gang(r, missed);
        return;
    }
    struct wanted w = membership_wanted(r);
    if (w.n >= (size_t)r->cur.min)
        r->coordinator.below_since_ns = 0;
    else
        r->coordinator.enough_since_ns = 0;
    switch (view_of(r)->head.phase) {
    case HEAD_NONE:
        decide_first(r, &w);
        break;
    case HEAD_FORM:
        decide_form(r, &w);
        break;
    case HEAD_RUN:
        decide_run(r, &w);
        break;
    case HEAD_END:
        decide_end(r, &w);
        break;
    case HEAD_CLOSED:
        break;
    }
}
