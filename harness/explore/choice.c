/* What can happen in a state. Time passes only when nothing else has to happen first. */
#include "harness/explore/copy_on_write.h"

#include <string.h>

static const struct {
    const char *name;
    int bound; /* of a fault */
} kinds[CHOICES_N] = {
    [CHOICE_TICK] = {"tick", -1},
    [CHOICE_TIMER] = {"timer", -1},
    [CHOICE_TELL] = {"tell", -1},
    [CHOICE_SERVE] = {"serve", -1},
    [CHOICE_REPLY] = {"reply", -1},
    [CHOICE_TIMEOUT] = {"timeout", -1},
    [CHOICE_HEAR] = {"hear", -1},
    [CHOICE_TERMED] = {"termed", -1},
    [CHOICE_ORPHANED] = {"orphaned", -1},
    [CHOICE_FENCE] = {"fence", -1},
    [CHOICE_HARD] = {"hard", -1},
    [CHOICE_SUCCEED] = {"succeed", -1},
    [CHOICE_RESUME] = {"resume", -1},
    [CHOICE_HEAL] = {"heal", -1},
    [CHOICE_ARRIVE] = {"arrive", -1},
    [CHOICE_VANISH] = {"vanish", -1},
    [CHOICE_UNSLOW] = {"unslow", -1},
    [CHOICE_JOIN] = {"join", BOUND_AGENT_JOIN},
    [CHOICE_KILL] = {"kill", BOUND_AGENT_KILL},
    [CHOICE_LEAVE] = {"leave", BOUND_AGENT_LEAVE},
    [CHOICE_STOP] = {"stop", BOUND_AGENT_STOP},
    [CHOICE_STOP_NODE] = {"stop-node", BOUND_NODE_STOP},
    [CHOICE_CUT] = {"cut", BOUND_NODE_CUT},
    [CHOICE_HOLD] = {"hold", BOUND_REQUEST_LATE},
    [CHOICE_LOSE] = {"lose-answer", BOUND_ANSWER_LOST},
    [CHOICE_SLOW] = {"slow-answer", BOUND_ANSWER_SLOW},
    [CHOICE_BEAT_LOST] = {"beat-answer-lost", BOUND_ANSWER_LOST},
    [CHOICE_BEAT_LATE] = {"beat-late", BOUND_REQUEST_LATE},
    [CHOICE_BEAT_SLOW] = {"beat-answer-slow", BOUND_ANSWER_SLOW},
    [CHOICE_BEAT_UNSEEN] = {"beat-unseen", BOUND_WATCH_SLOW},
    [CHOICE_WATCH_LOST] = {"watch-lost", BOUND_WATCH_LOST},
    [CHOICE_WATCH_SLOW] = {"watch-slow", BOUND_WATCH_SLOW},
    [CHOICE_FAIL] = {"fail", BOUND_WORKER_FAIL},
};

const char *choice_name(struct choice c) {
    return kinds[c.kind].name;
}

bool choice_find(const char *name, uint8_t *ret_kind) {
    for (int i = 0; i < CHOICES_N; i++)
        if (strcmp(kinds[i].name, name) == 0) {
            *ret_kind = (uint8_t)i;
            return true;
        }
    return false;
}

struct choices {
    const struct world *w;
    struct choice *all;
    int n;
    bool urgent; /* one of them must be taken before time passes */
};

static void add(struct choices *c, bool urgent, enum choice_kind kind, int node, int arg) {
    int bound = kinds[kind].bound;
    if (bound >= 0 && (!c->w->left[bound] || !c->w->together))
        return;
    if (c->n < CHOICES_MAX)
        c->all[c->n++] = (struct choice){(uint8_t)kind, (uint8_t)node, (uint8_t)arg};
    c->urgent |= urgent;
}

/* --- messages --- */

static int64_t patience_ns(const struct explore_message *m) {
    return m->kind == ACTION_BEAT ? EXPLORE_STEP_NS : 2 * EXPLORE_STEP_NS;
}

static void under_way(struct choices *c, int node, int i) {
    const struct explore_node *n = &c->w->nodes[node];
    const struct pending *p = &n->pending[i];
    bool awake = n->core && !n->stopped, reachable = !n->cut;
    bool is_txn = p->message->kind == ACTION_TXN, is_read = !message_writes(p->message);
    if (is_read && !awake)
        return;
    if (p->held && reachable)
        add(c, false, CHOICE_ARRIVE, node, i);
    if (p->held && p->ghost)
        add(c, false, CHOICE_VANISH, node, i);
    if (p->ghost)
        return;
    bool waiting = !p->held && !p->answered && !p->deaf;
    if (waiting && reachable) {
        add(c, true, CHOICE_SERVE, node, i);
        if (is_txn)
            add(c, false, CHOICE_LOSE, node, i);
        if (is_txn)
            add(c, false, CHOICE_SLOW, node, i);
        if (is_txn)
            add(c, false, CHOICE_HOLD, node, i);
    }
    if (p->answered && awake && (reachable || p->slow)) /* it may have come before the cut */
        add(c, !p->slow, CHOICE_REPLY, node, i);
    if (awake && c->w->now_ns >= p->sent_ns + patience_ns(p->message))
        add(c, true, CHOICE_TIMEOUT, node, i);
}

static void streams(struct choices *c, int node) {
    const struct explore_node *n = &c->w->nodes[node];
    for (int k = 0; k < WATCH_SLOTS; k++) {
        const struct explore_stream *s = &n->streams[k];
        bool waits = stream_waits(c->w, node, k);
        if (s->generation && !n->stopped)
            add(c, false, CHOICE_WATCH_LOST, node, k);
        if (waits && s->slow)
            add(c, false, CHOICE_UNSLOW, node, k);
        if (waits && !s->slow)
            add(c, false, CHOICE_WATCH_SLOW, node, k);
    }
    if (!n->stopped && !n->cut && stream_hears(c->w, node))
        add(c, true, CHOICE_HEAR, node, 0);
}

/* --- agents and machines --- */

static bool beats_at(const struct world *w, const struct explore_node *n) {
    return n->timer_ns <= w->now_ns && !n->cut;
}

static void injections(struct choices *c, int node) {
    const struct explore_node *n = &c->w->nodes[node];
    add(c, false, CHOICE_KILL, node, 0);
    if (!n->stopped && !n->shown.signaled)
        add(c, false, CHOICE_LEAVE, node, 0);
    if (!n->stopped)
        add(c, false, CHOICE_STOP, node, 0);
    if (!n->stopped)
        add(c, false, CHOICE_STOP_NODE, node, 0);
    if (!n->cut)
        add(c, false, CHOICE_CUT, node, 0);
}

static void agents(struct choices *c, int node) {
    const struct explore_node *n = &c->w->nodes[node];
    if (!n->core && !n->shown.group.alive)
        add(c, false, CHOICE_JOIN, node, 0);
    if (!n->core)
        return;
    if (!n->stopped && n->timer_ns <= c->w->now_ns)
        add(c, true, CHOICE_TIMER, node, 0);
    if (!n->stopped && beats_at(c->w, n))
        for (int kind = CHOICE_BEAT_LOST; kind <= CHOICE_BEAT_UNSEEN; kind++)
            add(c, false, (enum choice_kind)kind, node, 0);
    if (!n->stopped && n->n_pipe)
        add(c, true, CHOICE_TELL, node, 0);
    if (n->cut)
        add(c, false, CHOICE_HEAL, node, 0);
    injections(c, node);
}

static void machines(struct choices *c, int node) {
    const struct explore_node *n = &c->w->nodes[node];
    const struct judged_group *g = &n->shown.group;
    bool passed = n->fence_ns && n->fence_ns <= c->w->now_ns;
    if (n->stopped || n->guard_stopped)
        add(c, false, CHOICE_RESUME, node, 0);
    if (!g->alive)
        return;
    if (passed)
        add(c, true, n->guard_stopped ? CHOICE_HARD : CHOICE_FENCE, node, 0);
    if (n->guard_stopped)
        return;
    if (!n->core)
        add(c, true, CHOICE_ORPHANED, node, 0);
    if (n->stopping)
        add(c, true, CHOICE_TERMED, node, 0);
    if (n->stopping || g->failed)
        return;
    if (c->w->whole_round == g->round)
        add(c, false, CHOICE_SUCCEED, node, 0);
    add(c, false, CHOICE_FAIL, node, 0);
}

/* What an agent is told of the store comes before all else, and one agent after the other: that
 * commutes. What may strike there is what strikes that agent, before it has heard of it. */
static bool is_prompt(struct choices *c, int node) {
    const struct explore_node *n = &c->w->nodes[node];
    if (!n->core || n->stopped || n->cut || c->w->config->free_watches)
        return false;
    for (int i = 0; i < n->n_pending; i++) {
        const struct pending *p = &n->pending[i];
        if (p->held || p->answered || p->deaf || p->ghost || message_writes(p->message))
            continue;
        add(c, true, CHOICE_SERVE, node, i);
        add(c, false, CHOICE_HOLD, node, i);
        injections(c, node);
        return true;
    }
    if (!stream_hears(c->w, node))
        return false;
    streams(c, node);
    injections(c, node);
    return true;
}

int choice_list(const struct world *w, struct choice ret[CHOICES_MAX]) {
    struct choices c = {.w = w, .all = ret};
    for (int i = 0; i < w->config->agents; i++)
        if (is_prompt(&c, i))
            return c.n;
    for (int i = 0; i < w->config->agents; i++) {
        agents(&c, i);
        machines(&c, i);
        for (int k = 0; k < w->nodes[i].n_pending; k++)
            under_way(&c, i, k);
        streams(&c, i);
    }
    if (!c.urgent && !world_is_over(w))
        add(&c, false, CHOICE_TICK, 0, 0);
    return c.n;
}

/* --- taking one --- */

static void watch_lost(struct world *w, int node, int slot) {
    struct explore_stream *s = &w->nodes[node].streams[slot];
    struct event ev = {.kind = EVENT_WATCH_LOST};
    ev.watch_lost.slot = (enum watch_slot)slot;
    ev.watch_lost.generation = s->generation;
    memset(s, 0, sizeof(*s));
    agent_event(w, node, &ev);
}

static void agent_killed(struct world *w, int node) {
    bool guard_stopped = w->nodes[node].guard_stopped;
    agent_gone(w, node);
    w->nodes[node].guard_stopped = guard_stopped && w->nodes[node].shown.group.alive;
}

static void timer(struct world *w, int node) {
    w->nodes[node].timer_ns = INT64_MAX;
    agent_event(w, node, &(struct event){.kind = EVENT_TIMER});
}

/* A timer at which no beat is sent is no choice of how it is sent. */
static bool beat(struct world *w, int node, enum choice_kind kind) {
    static const enum beat_way ways[] = {BEAT_LOST, BEAT_LATE, BEAT_SLOW, BEAT_PROMPT};
    w->beat_way = ways[kind - CHOICE_BEAT_LOST];
    w->quiet_beats = kind == CHOICE_BEAT_UNSEEN;
    w->beat_seen = false;
    timer(w, node);
    return w->beat_seen;
}

static void stop(struct world *w, int node, bool guard) {
    w->nodes[node].stopped = true;
    w->nodes[node].guard_stopped = guard;
}

static void leave(struct world *w, int node) {
    struct event ev = {.kind = EVENT_SIGNAL};
    ev.signal.signo = 15;
    w->nodes[node].shown.signaled = true;
    agent_event(w, node, &ev);
}

static bool take_fault(struct world *w, struct choice c) {
    struct explore_node *n = &w->nodes[c.node];
    switch (c.kind) {
    case CHOICE_JOIN:
        agent_boot(w, c.node);
        break;
    case CHOICE_KILL:
        agent_killed(w, c.node);
        break;
    case CHOICE_LEAVE:
        leave(w, c.node);
        break;
    case CHOICE_STOP:
    case CHOICE_STOP_NODE:
        stop(w, c.node, c.kind == CHOICE_STOP_NODE);
        break;
    case CHOICE_CUT:
        n->cut = w->was_cut = true;
        break;
    case CHOICE_HOLD:
        n->pending[c.arg].held = true;
        break;
    case CHOICE_LOSE:
        n->pending[c.arg].deaf = true;
        message_serve(w, c.node, c.arg, false);
        break;
    case CHOICE_SLOW:
        n->pending[c.arg].slow = true;
        message_serve(w, c.node, c.arg, false);
        break;
    case CHOICE_WATCH_LOST:
        watch_lost(w, c.node, c.arg);
        break;
    case CHOICE_WATCH_SLOW:
        n->streams[c.arg].slow = true;
        break;
    case CHOICE_FAIL:
        machine_fail(w, c.node);
        break;
    default:
        return beat(w, c.node, (enum choice_kind)c.kind);
    }
    return true;
}

static void take_course(struct world *w, struct choice c) {
    struct explore_node *n = &w->nodes[c.node];
    switch (c.kind) {
    case CHOICE_TICK:
        w->now_ns += EXPLORE_STEP_NS;
        break;
    case CHOICE_TIMER:
        timer(w, c.node);
        break;
    case CHOICE_TELL:
        machine_tell(w, c.node);
        break;
    case CHOICE_SERVE:
    case CHOICE_ARRIVE:
        message_serve(w, c.node, c.arg, !n->stopped && n->core);
        break;
    case CHOICE_REPLY:
        message_reply(w, c.node, c.arg);
        break;
    case CHOICE_TIMEOUT:
        message_timeout(w, c.node, c.arg);
        break;
    case CHOICE_HEAR:
        stream_deliver(w, c.node);
        break;
    case CHOICE_TERMED:
        machine_die(w, c.node, 15, false, false);
        break;
    case CHOICE_ORPHANED:
        machine_die(w, c.node, 9, false, false);
        break;
    case CHOICE_FENCE:
        machine_die(w, c.node, 9, true, false);
        break;
    case CHOICE_HARD:
        n->guard_stopped = false;
        machine_die(w, c.node, 9, true, true);
        break;
    case CHOICE_SUCCEED:
        machine_succeed(w, c.node);
        break;
    case CHOICE_RESUME:
        n->stopped = n->guard_stopped = false;
        break;
    case CHOICE_HEAL:
        n->cut = false;
        break;
    case CHOICE_VANISH:
        message_drop(w, c.node, c.arg);
        break;
    case CHOICE_UNSLOW:
        n->streams[c.arg].slow = false;
        break;
    default:
        break;
    }
}

bool choice_take(struct world *w, struct choice c) {
    int bound = kinds[c.kind].bound;
    bool good = true;
    if (bound >= 0) {
        w->left[bound]--;
        w->together--;
        good = take_fault(w, c);
    } else {
        take_course(w, c);
    }
    if (w->beat_seen)
        stream_beats(w);
    world_settle(w);
    return good;
}
