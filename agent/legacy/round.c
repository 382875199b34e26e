/* A final state with this agent in it, until its workers are done or it is left. */
#include "agent/legacy/state.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

void round_begin(struct legacy *l, int rank) {
    l->stage = STAGE_ROUND;
    l->round = (struct legacy_round){.version = l->doc.version, .rank = rank, .n = l->doc.n};
    l->round.pure = document_is_pure(&l->doc);
    if (l->round.pure)
        snprintf(l->round.host, sizeof(l->round.host), "%s", document_host(&l->doc, 0));
    l->group = (struct legacy_group){0};
    l->told_spare = false;
    legacy_claim(l, CLAIM_RUN, l->round.version);
}

static void round_leave(struct legacy *l) {
    l->left_version = l->round.version;
    legacy_claim(l, CLAIM_END, l->round.version);
    legacy_join_begin(l);
}

/* Why the round cannot go on, NULL when it can; *ret_grace_ns is what its workers are given then.
 * Where others may have begun already it is little, and none where they take us for dead. A closed
 * round goes on: torchrun's agents close it when they are done, whatever the others still do. */
static const char *disturbance(struct legacy *l, int64_t *ret_grace_ns) {
    const struct document *d = &l->doc;
    bool closed = d->status == DOCUMENT_CLOSED;
    *ret_grace_ns = closed ? l->config.stop_timeout_ns : l->config.shutdown_grace_ns;
    if (closed)
        return document_end(d) && document_end(d)[0] ? "the run was ended" : NULL;
    if (!l->alive.key) {
        *ret_grace_ns = 0;
        return "this node was taken for lost";
    }
    if (d->status != DOCUMENT_FINAL || d->version != l->round.version) {
        *ret_grace_ns = l->config.stop_timeout_ns;
        return "others have begun anew";
    }
    if (l->round.lost)
        return "a node was lost";
    if (d->waiting > 0)
        return "nodes wait to be taken in";
    return waiting_missing(l) ? "a node was lost" : NULL;
}

static void group_kill(struct legacy *l) {
    l->group.stopping = l->group.killed = true;
    legacy_add(l, ACTION_KILL);
}

static void group_stop(struct legacy *l, int signo, int64_t grace_ns) {
    struct action *a = legacy_add(l, ACTION_STOP);
    a->stop.signo = signo;
    a->stop.grace_ms = grace_ns / MS;
    l->group.stopping = true;
    legacy_claim(l, CLAIM_STOP, l->round.version);
}

static void group_watch(struct legacy *l, const char *why, int64_t grace_ns) {
    struct legacy_group *g = &l->group;
    if (!g->killed)
        legacy_wake_at(l, l->now.monotonic_ns + (g->fence_ns - l->now.boottime_ns));
    if (why && grace_ns == 0 && !g->killed)
        group_kill(l);
    if (g->stopping)
        return;
    if (l->signo) {
        group_stop(l, l->signo, l->config.shutdown_grace_ns);
    } else if (g->failed) {
        group_stop(l, SIGTERM, l->config.stop_timeout_ns);
    } else if (why) {
        legacy_log(l, "round %lld ends: %s", (long long)l->round.version, why);
        group_stop(l, SIGTERM, grace_ns);
    }
}

/* Before what the guard's fence brought about is taken for a failure of the job. */
void round_fence(struct legacy *l) {
    struct legacy_group *g = &l->group;
    if (!g->there || l->now.boottime_ns < g->fence_ns || g->killed)
        return;
    legacy_claim(l, CLAIM_FENCED, l->round.version);
    legacy_log(l, "the store has not answered for so long that the others may take this node for "
                  "lost: workers are killed before that");
    group_kill(l);
}

static void round_failed(struct legacy *l) {
    bool closed = l->doc.status == DOCUMENT_CLOSED;
    if (closed || l->spent >= l->config.max_restarts) {
        legacy_leave_begin(l, PART_FAILED);
        return;
    }
    l->spent++;
    round_leave(l);
}

/* torchelastic's exit barrier. A member that began anew, or died, before all were done is followed:
 * its round would be short of us. */
static void barrier(struct legacy *l, const char *why) {
    struct legacy_round *r = &l->round;
    if (!r->told_barrier)
        legacy_claim(l, CLAIM_EXIT_BARRIER, r->version);
    r->told_barrier = true;
    if (barrier_is_done(l) || l->doc.status == DOCUMENT_CLOSED) {
        legacy_leave_begin(l, PART_DONE);
    } else if (why) {
        legacy_log(l, "round %lld ends: %s", (long long)r->version, why);
        round_leave(l);
    } else if (call_may(l, CALL_FLOW)) {
        barrier_tell(l);
    }
}

void round_advance(struct legacy *l) {
    struct legacy_group *g = &l->group;
    int64_t grace_ns;
    gang_look(l);
    const char *why = disturbance(l, &grace_ns);
    if (g->there) {
        group_watch(l, why, grace_ns);
        return;
    }
    if (l->signo)
        legacy_leave_begin(l, PART_LEFT);
    else if (why && l->doc.status == DOCUMENT_CLOSED)
        legacy_leave_closed(l);
    else if (l->round.lost)
        legacy_leave_begin(l, PART_LOST);
    else if (g->failed)
        round_failed(l);
    else if (g->ok)
        barrier(l, why);
    else if (why || g->ran)
        round_leave(l);
    else if (l->doc.status == DOCUMENT_CLOSED)
        legacy_leave_closed(l);
    else
        exchange_advance(l);
}

/* ---- events ---- */

static struct failure *failure_note(struct legacy *l) {
    struct failure *f = &l->group.failure;
    l->group.failed = true;
    memcpy(f->uid, l->uid, sizeof(f->uid));
    snprintf(f->node, sizeof(f->node), "%s", l->config.node);
    return f;
}

/* Only an exit that nobody asked for says something about the job. */
static void worker_exited(struct legacy *l, const struct event *ev) {
    struct legacy_group *g = &l->group;
    g->exited++;
    if (ev->exited.wait_status == 0 || g->stopping || g->failed)
        return;
    struct failure *f = failure_note(l);
    f->rank = l->round.rank_base + ev->exited.local_rank;
    f->local_rank = ev->exited.local_rank;
    f->pid = ev->exited.pid;
    f->wait_status = ev->exited.wait_status;
    snprintf(f->error, sizeof(f->error), "%s", ev->exited.error ? ev->exited.error : "");
    f->realtime_ns = ev->exited.realtime_ns;
}

static void group_reaped(struct legacy *l, bool fenced) {
    struct legacy_group *g = &l->group;
    g->there = false;
    g->ok = !g->stopping && !g->failed && !fenced && g->exited == g->workers;
}

/* As in agent/core: but for its own timer it is a failure, like a worker's. */
static void guard_died(struct legacy *l, const struct event *ev) {
    struct legacy_group *g = &l->group;
    bool over = g->stopping || g->failed || g->exited == g->workers;
    if (!ev->guard_dead.fenced && !over)
        failure_of_guard(failure_note(l), ev->guard_dead.pid, ev->guard_dead.wait_status);
    group_reaped(l, ev->guard_dead.fenced);
}

void round_event(struct legacy *l, const struct event *ev) {
    struct legacy_group *g = &l->group;
    if (ev->kind == EVENT_PORT) {
        snprintf(l->round.addr, sizeof(l->round.addr), "%s", ev->port.addr);
        l->round.port = ev->port.port;
    }
    if (ev->kind == EVENT_LOOKED_UP && ev->looked_up.round == l->round.version) {
        l->round.looked_up = true;
        l->round.is_found = ev->looked_up.found;
    }
    if (!g->there)
        return;
    if (ev->kind == EVENT_WORKERS_STARTED) {
        legacy_claim(l, CLAIM_STARTED, l->round.version);
    } else if (ev->kind == EVENT_WORKER_EXITED) {
        worker_exited(l, ev);
    } else if (ev->kind == EVENT_GROUP_REAPED) {
        group_reaped(l, ev->reaped.fenced);
    } else if (ev->kind == EVENT_GUARD_DEAD) {
        guard_died(l, ev);
    }
}
