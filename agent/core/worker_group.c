/* The local worker group: when it starts, when it is stopped and how gently, and what is told of
 * it - T7 (it failed, or was fenced), T8 (ack: all of it is dead) and T9 (done). */
#include "agent/core/state.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define SECOND 1000000000LL

static bool alive(const struct rendezvous *r) {
    return r->group.state != GROUP_IDLE;
}

/* The round that head says is running is the group's. */
static bool in_round(const struct rendezvous *r) {
    return r->head.phase == HEAD_RUN && r->group.round == r->head.round;
}

void group_init(struct rendezvous *r) {
    r->group = (struct group){.acked = -1, .port_round = -1};
}

/* What was said under the old session was said by another; what was started stays started. */
void group_new_session(struct rendezvous *r) {
    struct group *g = &r->group;
    g->end = g->done = g->ack = (struct request){0};
    g->acked = g->port_round = -1;
    g->port_asked = false;
    memset(r->places, 0, sizeof(r->places));
    r->places_head = 0;
    r->read_places = (struct request){0};
}

/* --- stopping --- */

/* From SIGKILL until a worker counts as one that cannot be killed. */
static int64_t reap_ns(const struct rendezvous *r) {
    return r->config.stop_timeout_ns + 5 * SECOND;
}

int64_t group_stop_ns(const struct rendezvous *r) {
    int64_t failure_ns = r->config.stop_timeout_ns, change_ns = r->config.shutdown_grace_ns;
    return (failure_ns > change_ns ? failure_ns : change_ns) + reap_ns(r);
}

static void stop(struct rendezvous *r, int signo, int64_t grace_ns) {
    struct group *g = &r->group;
    int64_t kill_by_ns = r->now.monotonic_ns + grace_ns;
    if (!alive(r) || g->killed || (g->stopping && g->kill_by_ns <= kill_by_ns))
        return;
    g->stopping = true;
    g->kill_by_ns = kill_by_ns;
    g->reap_by_ns = kill_by_ns + reap_ns(r);
    g->looked = false;
    struct action *a = action_add(r, ACTION_STOP);
    a->stop.signo = signo;
    a->stop.grace_ms = grace_ns / 1000000;
    action_claim(r, CLAIM_STOP, g->round);
}

void group_kill(struct rendezvous *r) {
    struct group *g = &r->group;
    if (!alive(r) || g->killed)
        return;
    g->stopping = g->killed = true;
    g->reap_by_ns = r->now.monotonic_ns + reap_ns(r);
    g->looked = false;
    action_add(r, ACTION_KILL);
    action_claim(r, CLAIM_STOP, g->round);
}

/* That the workers are dead may have been reported meanwhile, and comes in only now: the time in
 * which this agent did not run is given back, as far as that takes it. */
void group_stalled(struct rendezvous *r, int64_t late_ns) {
    struct group *g = &r->group;
    int64_t least_ns = r->now.monotonic_ns + rendezvous_timing(r).hb_ns;
    int64_t back_ns = g->reap_by_ns + late_ns;
    if (g->stopping && g->reap_by_ns < least_ns)
        g->reap_by_ns = back_ns < least_ns ? back_ns : least_ns;
}

/* A failure in the round: a short grace. A membership change or a signal: the full one. */
static void stop_advance(struct rendezvous *r) {
    struct group *g = &r->group;
    bool failure = r->head.cause == CAUSE_FAILURE;
    if (!alive(r))
        return;
    if (r->giving_up)
        stop(r, SIGTERM, r->config.shutdown_grace_ns);
    if (r->signo)
        stop(r, r->signo, r->config.shutdown_grace_ns);
    if (g->failed || (!in_round(r) && failure))
        stop(r, SIGTERM, r->config.stop_timeout_ns);
    else if (!in_round(r))
        stop(r, SIGTERM, r->config.shutdown_grace_ns);
    if (!g->stopping)
        return;
    if (r->now.monotonic_ns >= g->reap_by_ns && !g->looked) {
        g->looked = true; /* who has slept hears first that they are dead */
        g->reap_by_ns = r->now.monotonic_ns + rendezvous_timing(r).hb_ns;
    }
    if (r->now.monotonic_ns < g->reap_by_ns) {
        wake_at(r, g->reap_by_ns);
    } else if (!g->stuck) {
        g->stuck = true;
        action_exit(r, 1,
                    "a worker cannot be killed (in state D?): this agent ends without a word to "
                    "the others, who will give this node up by its silence",
                    NULL);
    }
}

/* Told once for each group, whether this agent ends it or hears that its guard has. */
static void fence(struct rendezvous *r, const char *why) {
    if (r->group.fenced)
        return;
    r->group.fenced = true;
    action_claim(r, CLAIM_FENCED, r->group.round);
    action_log(r, "%s", why);
}

/* The deadline passed without an accepted beat: the others may count this node as dead soon. Also
 * when the workers ended by themselves meanwhile: what ended them is a cut-off node's trouble. */
static void fence_advance(struct rendezvous *r) {
    struct group *g = &r->group;
    bool concerned = alive(r) || (in_round(r) && !g->ok && !g->end.settled);
    if (!session_armed(r) || !concerned || !r->session.deadline_ns)
        return;
    if (session_in_time(r)) {
        wake_at_boottime(r, r->session.deadline_ns);
        return;
    }
    fence(r, "no beat was accepted in time (the store cannot be reached?): workers are killed "
             "before the others count this node as dead");
    group_kill(r);
}

/* --- telling --- */

/* T7: the first one ends the round, the others are refused and tell it in their ack. */
static void end_advance(struct rendezvous *r) {
    struct group *g = &r->group;
    bool fenced = g->fenced;
    if (!in_round(r) || (!g->failed && !fenced) || g->end.settled || !request_may(r, &g->end))
        return;
    if (fenced && !session_in_time(r))
        return; /* not before a beat is accepted again */
    struct draft *d = draft_new(r);
    draft_compare_session(r, d);
    draft_compare(d, key_job(r, KEY_HEAD), COMPARE_MOD, r->head_revision);
    struct head_value *h = &draft_put(r, d, key_job(r, KEY_HEAD))->head;
    *h = r->head;
    h->phase = HEAD_END;
    h->cause = fenced ? CAUSE_MEMBERSHIP : CAUSE_FAILURE;
    if (!fenced)
        h->failure = g->failure;
    request_txn(r, &g->end, d);
}

/* T9. */
static void done_advance(struct rendezvous *r) {
    struct group *g = &r->group;
    if (!in_round(r) || !g->ok || g->done.settled || !request_may(r, &g->done))
        return;
    struct draft *d = draft_new(r);
    draft_compare_session(r, d);
    draft_compare(d, key_job(r, KEY_HEAD), COMPARE_MOD, r->head_revision);
    struct store_key key = key_own(r, KEY_DONE);
    key.round = g->round;
    draft_compare(d, key, COMPARE_VERSION, 0);
    draft_put(r, d, key)->done.round = g->round;
    request_txn(r, &g->done, d);
    action_claim(r, CLAIM_EXIT_BARRIER, g->round);
}

/* Whether an ack of the last round is asked of this session. */
static bool ack_wanted(const struct rendezvous *r) {
    const struct head_value *h = &r->head;
    bool form = h->phase == HEAD_FORM, end = h->phase == HEAD_END;
    if (alive(r) || (!form && !end) || r->group.acked >= h->last_round)
        return false;
    const struct plan_place *now = place_in(r, h->pid), *last = place_in(r, h->last_pid);
    return (form && now && now->present) || (last && last->present);
}

static void ack_send(struct rendezvous *r) {
    struct group *g = &r->group;
    int64_t last = r->head.last_round;
    bool own = g->round == last && last > 0;
    struct store_key key = key_own(r, KEY_ACK);
    key.round = last;
    if (g->floor < last + 1)
        g->floor = last + 1;
    struct draft *d = draft_new(r);
    draft_compare_session(r, d);
    draft_compare(d, key, COMPARE_VERSION, 0);
    struct ack_value *v = &draft_put(r, d, key)->ack;
    v->why = own && g->fenced ? ACK_FENCED : own && g->failed ? ACK_FAILED : ACK_OK;
    if (v->why == ACK_FAILED)
        r->charge.round = last;
    if (own && g->failed)
        memcpy(v->error, g->failure.error, sizeof(v->error));
    memcpy(v->addr, g->addr, sizeof(v->addr));
    v->port = g->port;
    g->ack_round = last;
    request_txn(r, &g->ack, d);
    action_claim(r, CLAIM_ACK, last);
}

/* T8, with a port for the case that this node becomes rank 0's. */
static void ack_advance(struct rendezvous *r) {
    struct group *g = &r->group;
    int64_t last = r->head.last_round;
    if (!ack_wanted(r) || !request_may(r, &g->ack))
        return;
    if (g->port_round != last && !g->port_asked) {
        g->port_asked = true;
        action_add(r, ACTION_NEED_PORT);
    }
    if (g->port_round == last)
        ack_send(r);
}

/* A store that was away may have been set back to before it heard of it. */
void group_tell_again(struct rendezvous *r) {
    struct group *g = &r->group;
    g->end.settled = g->done.settled = false;
    g->acked = -1;
}

/* --- starting --- */

static const struct round_spec *spec_new(struct rendezvous *r, const struct plan_value *place) {
    struct round_spec *s = arena_new(&r->arena, struct round_spec);
    const struct head_value *h = &r->head;
    int64_t deadline_ns = r->session.deadline_ns;
    *s = (struct round_spec){
        .run_id = r->config.run_id,
        .round = h->round,
        .group_rank = place->group_rank,
        .group_world = h->n,
        .rank_base = place->rank_base,
        .local_world = r->config.slots,
        .world = h->world,
        .role = r->config.role,
        .role_rank_base = place->role_rank_base,
        .role_world = place->role_world,
        .master_addr = h->master_addr,
        .master_port = h->master_port,
        .restart_count = r->cur.restart_mode == RESTART_COUNT_NODE ? r->charge.count : h->restarts,
        .max_restarts = r->cur.max_restarts,
        .token = h->token,
        .deadline_required = session_armed(r),
        .fence_ns = deadline_ns,
        .hard_ns = deadline_ns + (r->cur.timing.hard_ns - r->cur.timing.fence_ns),
        .lifeline = lifeline_inherit(r),
    };
    return s;
}

static void start_advance(struct rendezvous *r) {
    struct group *g = &r->group;
    const struct head_value *h = &r->head;
    if (alive(r) || h->phase != HEAD_RUN || h->round <= g->round || h->round < g->floor)
        return;
    const struct plan_place *p = place_in(r, h->pid);
    if (!p || !p->present || !session_in_time(r))
        return;
    g->round = h->round;
    g->state = GROUP_STARTING;
    g->workers = r->config.slots;
    g->exited = 0;
    g->stopping = g->killed = g->failed = g->fenced = g->ok = false;
    memset(&g->failure, 0, sizeof(g->failure));
    g->end = g->done = (struct request){0};
    action_claim(r, CLAIM_START, g->round);
    const struct round_spec *spec = spec_new(r, &p->value);
    action_add(r, ACTION_START)->start = spec;
}

void group_advance(struct rendezvous *r) {
    fence_advance(r);
    stop_advance(r);
    if (r->session.phase != SESSION_ACTIVE || r->over)
        return;
    end_advance(r);
    done_advance(r);
    if (leave_due(r))
        return;
    ack_advance(r);
    start_advance(r);
}

/* --- events --- */

static struct failure *failure_note(struct rendezvous *r) {
    struct failure *f = &r->group.failure;
    r->group.failed = true;
    memcpy(f->uid, r->session.uid, sizeof(f->uid));
    snprintf(f->node, sizeof(f->node), "%s", r->config.node);
    return f;
}

/* Only an exit that nobody asked for says something about the job. */
static void worker_exited(struct rendezvous *r, const struct event *ev) {
    struct group *g = &r->group;
    g->exited++;
    if (ev->exited.wait_status == 0 || g->stopping || g->failed)
        return;
    const struct plan_place *p = place_in(r, r->head.pid);
    struct failure *f = failure_note(r);
    f->rank = p && p->present ? p->value.rank_base + ev->exited.local_rank : -1;
    f->local_rank = ev->exited.local_rank;
    f->pid = ev->exited.pid;
    f->wait_status = ev->exited.wait_status;
    snprintf(f->error, sizeof(f->error), "%s", ev->exited.error ? ev->exited.error : "");
    f->realtime_ns = ev->exited.realtime_ns;
}

static void group_reaped(struct rendezvous *r, bool fenced) {
    struct group *g = &r->group;
    g->state = GROUP_IDLE;
    if (fenced)
        fence(r, "no beat was accepted in time: the guard has ended the workers before the others "
                 "count this node as dead");
    g->ok = !g->stopping && !g->failed && !g->fenced && g->exited == g->workers;
    if (!g->ok && !g->stopping && !g->failed)
        fence(r, "the workers are gone without a word: the round ends at no cost");
}

/* Its own timer ends a guard when its workers must be dead. Whatever else does - a worker, somebody
 * on this node, the kernel for want of memory - is a failure like a worker's: a round that it ended
 * without cost would be begun for ever. */
static void guard_died(struct rendezvous *r, const struct event *ev) {
    struct group *g = &r->group;
    bool over = g->stopping || g->failed || g->exited == g->workers;
    if (!ev->guard_dead.fenced && !over)
        failure_of_guard(failure_note(r), ev->guard_dead.pid, ev->guard_dead.wait_status);
    group_reaped(r, ev->guard_dead.fenced);
}

void group_event(struct rendezvous *r, const struct event *ev) {
    struct group *g = &r->group;
    if (ev->kind == EVENT_PORT) {
        g->port_asked = false;
        g->port_round = r->head.last_round;
        snprintf(g->addr, sizeof(g->addr), "%s", ev->port.addr);
        g->port = ev->port.port;
    }
    if (g->state == GROUP_IDLE)
        return;
    if (ev->kind == EVENT_WORKERS_STARTED && g->state == GROUP_STARTING) {
        g->state = GROUP_RUNNING;
        action_claim(r, CLAIM_STARTED, g->round);
    } else if (ev->kind == EVENT_WORKER_EXITED) {
        worker_exited(r, ev);
    } else if (ev->kind == EVENT_GROUP_REAPED) {
        group_reaped(r, ev->reaped.fenced);
    } else if (ev->kind == EVENT_GUARD_DEAD) {
        guard_died(r, ev);
    }
}

void group_done(struct rendezvous *r, const struct event *ev) {
    struct group *g = &r->group;
    request_reply(r, &g->end, ev->done.id, ev->done.reached);
    request_reply(r, &g->done, ev->done.id, ev->done.reached);
    if (request_reply(r, &g->ack, ev->done.id, ev->done.reached) && ev->done.reached)
        g->acked = g->ack_round;
}
