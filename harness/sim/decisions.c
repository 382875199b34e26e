#include "harness/sim/decisions.h"

#include "agent/core/rendezvous.h"

/* The first for each key of a transaction that puts it, by what it says. */
enum act {
    ACT_DEADLINE,
    ACT_START,
    ACT_START_ANEW, /* with restarts behind it */
    ACT_STOP_SOON,
    ACT_STOP_LATE,
    ACT_KILL,
    ACT_NEED_PORT,
    ACT_LIFELINE_OPEN,
    ACT_LIFELINE_DROP,
    ACT_STORE,
    ACT_GRANT,
    ACT_KEEPALIVE,
    ACT_EXIT,                   /* 0, 1, 64, 69, 128 + signal */
    ACT_HEAD = ACT_EXIT + 5,    /* its phases, and closed as failed */
    ACT_FAILURE = ACT_HEAD + 6, /* a round ends by one */
    ACT_GONE,                   /* left, silent, otherwise */
    ACT_ACK = ACT_GONE + 3,     /* ok, failed, fenced */
    ACT_TAKE = ACT_ACK + 3,     /* the lead, and that with a certificate */
    ACT_CUR = ACT_TAKE + 2,     /* the first, and one for another */
    ACT_JOIN = ACT_CUR + 2,
    ACT_DONE,
    ACT_PLAN,
    ACT_DELETE, /* one session; the own of who ends; what is over */
    ACTS = ACT_DELETE + 3,
};
_Static_assert((int)ACTS <= (int)DECISION_ACTS, "each has a place");
_Static_assert((int)HEAD_CLOSED < (int)DECISION_PHASES, "each has a place");
_Static_assert((int)EVENT_LOOKED_UP < (int)DECISION_EVENTS, "each has a place");

static const struct op *find(const struct txn *t, enum key_kind kind) {
    for (size_t i = 0; i < t->n_ops; i++)
        if (t->ops[i].put && t->ops[i].key.kind == kind)
            return &t->ops[i];
    return NULL;
}

static int of_head(const struct head_value *h) {
    if (h->phase == HEAD_END && h->cause == CAUSE_FAILURE)
        return ACT_FAILURE;
    return ACT_HEAD + (int)h->phase + (h->phase == HEAD_CLOSED && h->outcome == OUTCOME_FAILED);
}

static int of_delete(const struct txn *t) {
    for (size_t i = 0; i < t->n_ops; i++)
        if (t->ops[i].key.kind == KEY_SESSION && t->ops[i].key.scope == KEYS_ONE)
            return ACT_DELETE + (t->compares[0].key.kind == KEY_SESSION);
    return ACT_DELETE + 2;
}

static int of_txn(const struct txn *t) {
    const struct op *op;
    if ((op = find(t, KEY_HEAD)))
        return of_head(&op->value->head);
    if ((op = find(t, KEY_LEAD)))
        return ACT_TAKE + (find(t, KEY_GONE) != NULL);
    if ((op = find(t, KEY_GONE)))
        return ACT_GONE + (int)op->value->gone.why % 3;
    if ((op = find(t, KEY_ACK)))
        return ACT_ACK + (int)op->value->ack.why % 3;
    if ((op = find(t, KEY_CUR)))
        return ACT_CUR + (op->value->cur.former[0] != '\0');
    if (find(t, KEY_MEMBER))
        return ACT_JOIN;
    if (find(t, KEY_DONE))
        return ACT_DONE;
    return find(t, KEY_PLAN) ? ACT_PLAN : of_delete(t);
}

static int of_exit(int code) {
    return ACT_EXIT + (code == 0 ? 0 : code == 1 ? 1 : code == 64 ? 2 : code == 69 ? 3 : 4);
}

static int act_of(const struct action *a) {
    switch (a->kind) {
    case ACTION_TXN:
        return of_txn(&a->txn.txn);
    case ACTION_LEASE_GRANT:
        return ACT_GRANT;
    case ACTION_LEASE_KEEPALIVE:
        return ACT_KEEPALIVE;
    case ACTION_DEADLINE:
        return ACT_DEADLINE;
    case ACTION_START:
        return a->start->restart_count ? ACT_START_ANEW : ACT_START;
    case ACTION_STOP:
        return a->stop.grace_ms < 500 ? ACT_STOP_SOON : ACT_STOP_LATE;
    case ACTION_KILL:
        return ACT_KILL;
    case ACTION_NEED_PORT:
        return ACT_NEED_PORT;
    case ACTION_STORE:
        return ACT_STORE;
    case ACTION_LIFELINE_OPEN:
        return ACT_LIFELINE_OPEN;
    case ACTION_LIFELINE_DROP:
        return ACT_LIFELINE_DROP;
    case ACTION_EXIT:
        return of_exit(a->exit.code);
    case ACTION_SNAPSHOT:
    case ACTION_WATCH:
    case ACTION_UNWATCH:
    case ACTION_BEAT:
    case ACTION_TIMER:
    case ACTION_CLAIM:
    case ACTION_LOG:
    case ACTION_TREE:
    case ACTION_TREE_CANCEL:
    case ACTION_LOOK_UP:
        break;
    }
    return -1;
}

int decision_place(int phase, const struct event *ev, const struct action *a) {
    int act = act_of(a);
    return act < 0 ? -1 : (phase * DECISION_EVENTS + (int)ev->kind) * DECISION_ACTS + act;
}
