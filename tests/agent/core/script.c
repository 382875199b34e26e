#include "tests/agent/core/script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct rendezvous *r;
const struct action *actions;
size_t n_actions;
int64_t now_ns;
static uint64_t generations[WATCH_SLOTS];
char uid[UID_SIZE];
bool port_needed;

struct rendezvous_config config_of(void) {
    struct rendezvous_config c = {
        .run_id = "job",
        .node = "n0",
        .addr = "10.0.0.1",
        .role = "default",
        .slots = 2,
        .min = 1,
        .max = 2,
        .max_restarts = 3,
        .attempt = "",
        .last_call_ns = 1000 * MS,
        .admit_ns = 50 * MS,
        .join_timeout_ns = 600000 * MS,
        .stop_timeout_ns = 2000 * MS,
        .shutdown_grace_ns = 30000 * MS,
        .give_up_ns = 300000 * MS,
    };
    timing_profile("default", &c.timing);
    return c;
}

void step(struct event ev) {
    struct now now = {now_ns, now_ns + 5000 * MS};
    actions = rendezvous_step(r, &ev, now, &n_actions);
    for (size_t i = 0; i < n_actions; i++)
        if (actions[i].kind == ACTION_WATCH)
            generations[actions[i].watch.slot] = actions[i].watch.generation;
        else if (actions[i].kind == ACTION_NEED_PORT)
            port_needed = true;
    memcpy(uid, rendezvous_uid(r), strlen(rendezvous_uid(r)) + 1);
}

const struct action *find(enum action_kind kind) {
    for (size_t i = 0; i < n_actions; i++)
        if (actions[i].kind == kind)
            return &actions[i];
    return NULL;
}

const struct action *need(enum action_kind kind) {
    const struct action *a = find(kind);
    if (!a)
        fail_msg("no action of kind %d among %zu", kind, n_actions);
    return a;
}

/* The transaction that puts this kind of key, or NULL. */
const struct action *find_put(enum key_kind kind, const union value **ret) {
    for (size_t i = 0; i < n_actions; i++) {
        for (size_t k = 0; actions[i].kind == ACTION_TXN && k < actions[i].txn.txn.n_ops; k++) {
            const struct op *op = &actions[i].txn.txn.ops[k];
            if (op->put && op->key.kind == kind) {
                if (ret)
                    *ret = op->value;
                return &actions[i];
            }
        }
    }
    return NULL;
}

struct entry entry_of(enum key_kind kind, int64_t mod, const union value *v) {
    struct entry e = {.key = {.kind = kind}, .value = v, .deleted = !v};
    if (kind != KEY_CUR)
        strcpy(e.key.inc, INC);
    e.create_revision = e.mod_revision = mod;
    e.version = 1;
    return e;
}

void answer(const struct action *a, const struct entry *entries, size_t n, int64_t rev) {
    struct event ev = {.kind = EVENT_SNAPSHOT};
    ev.snapshot.id = a->snapshot.id;
    ev.snapshot.reached = true;
    ev.snapshot.revision = rev;
    ev.snapshot.entries = entries;
    ev.snapshot.n = n;
    step(ev);
}

void done(uint64_t id, bool reached, bool applied, int64_t rev) {
    struct event ev = {.kind = EVENT_DONE};
    ev.done.id = id;
    ev.done.reached = reached;
    ev.done.applied = applied;
    ev.done.revision = rev;
    step(ev);
}

void changed(enum watch_slot slot, struct entry e) {
    struct event ev = {.kind = EVENT_CHANGES};
    ev.changes.slot = slot;
    ev.changes.generation = generations[slot];
    ev.changes.entries = &e;
    ev.changes.n = 1;
    step(ev);
}

void tick(int64_t ns) {
    now_ns += ns;
    step((struct event){.kind = EVENT_TIMER});
}

void beat(int64_t seq, enum beat_result result) {
    struct event ev = {.kind = EVENT_BEAT};
    ev.beat.seq = seq;
    ev.beat.result = result;
    step(ev);
}

union value cur_of(const char *attempt) {
    union value v = {.cur = {.inc = INC, .min = 1, .max = 2, .max_restarts = 3}};
    timing_profile("default", &v.cur.timing);
    snprintf(v.cur.attempt, sizeof(v.cur.attempt), "%s", attempt);
    return v;
}

void begin(const struct rendezvous_config *c) {
    struct err err = {0};
    r = rendezvous_new(c, 1, &err);
    assert_non_null(r);
    now_ns = 1000 * MS;
    step((struct event){.kind = EVENT_START});
}

/* The incarnation is there, held by an attempt; the head as given. */
void come_to_head(const char *attempt, const union value *head) {
    union value cur = cur_of(attempt);
    struct entry e = entry_of(KEY_CUR, 3, &cur), h = entry_of(KEY_HEAD, 9, head);
    answer(need(ACTION_SNAPSHOT), &e, 1, 10);
    answer(need(ACTION_SNAPSHOT), &h, head ? 1 : 0, 10);
}

void come_back(int64_t revision) {
    union value cur = cur_of("");
    struct entry e = entry_of(KEY_CUR, 3, &cur);
    answer(need(ACTION_SNAPSHOT), &e, 1, revision);
    if (find(ACTION_SNAPSHOT))
        answer(need(ACTION_SNAPSHOT), NULL, 0, revision);
}

void join(void) {
    struct rendezvous_config c = config_of();
    begin(&c);
    come_to_head("", NULL);
    done(find_put(KEY_MEMBER, NULL)->txn.id, true, true, 11);
    assert_int_equal(strlen(uid), 32);
}

union value head_of(enum head_phase phase, int64_t round, int64_t last) {
    union value v = {.head = {.round = round, .phase = phase, .n = 1, .last_round = last}};
    snprintf(v.head.pid, sizeof(v.head.pid), "%lld-1-1", (long long)round);
    if (last)
        snprintf(v.head.last_pid, sizeof(v.head.last_pid), "%lld-1-1", (long long)last);
    v.head.last_n = last > 0;
    v.head.world = 2;
    v.head.master_port = 777;
    strcpy(v.head.master_addr, "10.0.0.1");
    return v;
}

/* FORM names a plan that this session is in. */
void form(int64_t round, int64_t last, int64_t rev) {
    union value head = head_of(HEAD_FORM, round, last), place = {.plan = {.world = 2}};
    changed(WATCH_HEAD, entry_of(KEY_HEAD, rev, &head));
    const struct action *a = find(ACTION_SNAPSHOT);
    if (!a || a->snapshot.keys[0].kind != KEY_PLAN)
        return;
    struct entry e = entry_of(KEY_PLAN, rev - 1, &place);
    memcpy(e.key.pid, head.head.pid, sizeof(e.key.pid));
    memcpy(e.key.uid, uid, sizeof(e.key.uid));
    answer(a, &e, 1, rev);
}

void port(void) {
    struct event ev = {.kind = EVENT_PORT};
    assert_true(port_needed);
    port_needed = false;
    ev.port.addr = "10.0.0.1";
    ev.port.port = 777;
    step(ev);
}

void run(int64_t round, int64_t rev) {
    union value head = head_of(HEAD_RUN, round, round);
    changed(WATCH_HEAD, entry_of(KEY_HEAD, rev, &head));
}

/* Joined, and the workers of round 1 run. */
void work(void) {
    join();
    form(1, 0, 20);
    port();
    done(find_put(KEY_ACK, NULL)->txn.id, true, true, 21);
    run(1, 22);
    need(ACTION_START);
    step((struct event){.kind = EVENT_WORKERS_STARTED});
}

void exited(int local_rank, int status) {
    struct event ev = {.kind = EVENT_WORKER_EXITED};
    ev.exited.local_rank = local_rank;
    ev.exited.wait_status = status;
    ev.exited.error = status ? "boom" : "";
    step(ev);
}

void reaped(void) {
    step((struct event){.kind = EVENT_GROUP_REAPED});
}

void signaled(int signo) {
    struct event ev = {.kind = EVENT_SIGNAL};
    ev.signal.signo = signo;
    step(ev);
}

int script_end(void **state) {
    (void)state;
    port_needed = false;
    r = rendezvous_free(r);
    return 0;
}
