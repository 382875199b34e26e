#include "harness/sim/transcript.h"

#include <stdio.h>
#include <string.h>

static void put_line(struct sim *c, int node, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void put_line(struct sim *c, int node, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    transcript_line(c, node, fmt, ap);
    va_end(ap);
}

void transcript_line(struct sim *c, int node, const char *fmt, va_list ap) {
    char text[600];
    if (!c->transcript)
        return;
    vsnprintf(text, sizeof(text), fmt, ap);
    buf_printf(c->transcript->out, "%10.3f n%d  %s\n", (double)c->now_ns / 1e6, node, text);
}

/* --- names --- */

static const char *name_of(const struct sim *c, const char *uid) {
    for (int i = 0; i < c->transcript->n_names; i++)
        if (strcmp(c->transcript->names[i].uid, uid) == 0)
            return c->transcript->names[i].name;
    return *uid ? "?" : "nobody";
}

/* The first session of a node bears its name, the next ones count. */
static void name_session(struct sim *c, int node, const char *uid) {
    struct transcript *t = c->transcript;
    int before = 0;
    if (t->n_names == TRANSCRIPT_NAMES || strcmp(name_of(c, uid), "?") != 0)
        return;
    for (int i = 0; i < t->n_names; i++)
        before += strncmp(t->names[i].name, c->nodes[node].name, strlen(c->nodes[node].name)) == 0;
    snprintf(t->names[t->n_names].uid, UID_SIZE, "%s", uid);
    snprintf(t->names[t->n_names].name, sizeof(t->names[0].name), before ? "%s:%d" : "%s",
             c->nodes[node].name, before + 1);
    t->n_names++;
}

/* --- keys --- */

static void put_head(const struct head_value *h, struct buf *out) {
    static const char *const phases[] = {"none", "FORM", "RUN", "END", "CLOSED"};
    static const char *const causes[] = {"", ", a failure", ", membership"};
    static const char *const outcomes[] = {"", ", succeeded", ", failed"};
    buf_printf(out, "head = %s %lld, last %lld, %d nodes, restarts %d%s%s", phases[h->phase],
               (long long)h->round, (long long)h->last_round, h->n, h->restarts, causes[h->cause],
               outcomes[h->outcome]);
}

/* False for what is left out. */
static bool put_key(struct sim *c, const struct store_key *k, const union value *v,
                    struct buf *out) {
    static const char *const acks[] = {"ok", "failed", "fenced"};
    const char *who = name_of(c, k->uid);
    if (k->kind == KEY_HEAD && v)
        put_head(&v->head, out);
    else if (k->kind == KEY_LEAD)
        buf_printf(out, "lead = %s", v ? name_of(c, v->lead.uid) : "nobody");
    else if (k->kind == KEY_GONE && v)
        buf_printf(out, "gone/%s = %s", who, v->gone.why == GONE_LEFT ? "left" : "silent");
    else if (k->kind == KEY_ACK && v)
        buf_printf(out, "ack/%lld/%s = %s", (long long)k->round, who, acks[v->ack.why]);
    else if (k->kind == KEY_DONE && v)
        buf_printf(out, "done/%lld/%s", (long long)k->round, who);
    else if (k->kind == KEY_PLAN && v)
        buf_printf(out, "plan/%s = group rank %d", who, v->plan.group_rank);
    else if (k->kind == KEY_SESSION && (!v || !v->session.seq))
        buf_printf(out, "s/%s%s", who, v ? "" : " is deleted");
    else if (k->kind == KEY_CUR && v)
        buf_printf(out, "cur = a new job, nodes %d:%d", v->cur.min, v->cur.max);
    else
        return false;
    return true;
}

static void put_txn(struct sim *c, int node, const struct action *a) {
    BUF_FINI struct buf text = {0};
    for (size_t i = 0; i < a->txn.txn.n_ops; i++) {
        const struct op *op = &a->txn.txn.ops[i];
        size_t before = text.len;
        if (op->put && op->key.kind == KEY_SESSION)
            name_session(c, node, op->key.uid);
        if (before)
            buf_puts(&text, "; ");
        if (!put_key(c, &op->key, op->put ? op->value : NULL, &text))
            text.len = before;
    }
    struct transcript *t = c->transcript;
    if (text.len) {
        t->shown[t->n_shown % TRANSCRIPT_NAMES].node = node;
        t->shown[t->n_shown++ % TRANSCRIPT_NAMES].id = a->txn.id;
        put_line(c, node, "--> #%llu %.*s", (unsigned long long)a->txn.id, (int)text.len,
                 text.data);
    }
}

static bool is_shown(const struct transcript *t, int node, uint64_t id) {
    for (int i = 0; i < TRANSCRIPT_NAMES; i++)
        if (t->shown[i].node == node && t->shown[i].id == id)
            return true;
    return false;
}

static void put_changes(struct sim *c, int node, const struct event *e) {
    for (size_t i = 0; i < e->changes.n; i++) {
        const struct entry *entry = &e->changes.entries[i];
        struct buf text = {0};
        if (put_key(c, &entry->key, entry->deleted ? NULL : entry->value, &text))
            put_line(c, node, "    sees %.*s", (int)text.len, text.data);
        buf_fini(&text);
    }
}

void transcript_action(struct sim *c, int node, const struct action *a) {
    if (!c->transcript)
        return;
    if (a->kind == ACTION_TXN)
        put_txn(c, node, a);
    else if (a->kind == ACTION_START)
        put_line(c, node, "==> workers: start round %lld as group rank %d of %d, restart count %d",
                 (long long)a->start->round, a->start->group_rank, a->start->group_world,
                 a->start->restart_count);
    else if (a->kind == ACTION_STOP)
        put_line(c, node, "==> workers: stop, SIGKILL after %lld ms", (long long)a->stop.grace_ms);
    else if (a->kind == ACTION_KILL)
        put_line(c, node, "==> workers: SIGKILL");
}

void transcript_event(struct sim *c, int node, const struct event *e) {
    if (!c->transcript)
        return;
    if (e->kind == EVENT_DONE && is_shown(c->transcript, node, e->done.id))
        put_line(c, node, "<-- #%llu %s", (unsigned long long)e->done.id,
                 !e->done.reached  ? "no answer"
                 : e->done.applied ? "applied"
                                   : "refused");
    else if (e->kind == EVENT_BEAT && e->beat.result == BEAT_REFUSED)
        put_line(c, node, "<-- beat refused");
    else if (e->kind == EVENT_CHANGES)
        put_changes(c, node, e);
    else if (e->kind == EVENT_WATCH_LOST)
        put_line(c, node, "    a watch is lost");
    else if (e->kind == EVENT_GROUP_REAPED)
        put_line(c, node, "<== workers: all are reaped%s",
                 e->reaped.fenced ? ", by the fence" : "");
}
