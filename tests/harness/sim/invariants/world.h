/* world: a small run in the middle of its life, and the words in which something is done to it. */
#pragma once

#include "harness/sim/invariants/judging.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* Three nodes, a and b were the last round (1) and have a worker each; a leads. All is well until a
 * row does something to it. */
static inline struct sim *world_new(void) {
    struct sim *c = calloc(1, sizeof(*c));
    assert_non_null(c);
    c->result = calloc(1, sizeof(*c->result));
    assert_non_null(c->result);
    static const struct sim_schedule schedule;
    c->schedule = &schedule;
    c->kv = kv_new(1, 0);
    c->last_call_ns = SIM_LAST_CALL_NS;
    c->join_timeout_ns = SIM_JOIN_TIMEOUT_NS;
    sim_nodes_init(c, 3);
    for (int i = 0; i < c->n_nodes; i++)
        snprintf(c->nodes[i].name, sizeof(c->nodes[i].name), "n%d", i);
    c->min = 2;
    c->max = 3;
    c->max_restarts = 1;
    struct judge *j = &c->judge;
    strcpy(j->inc, "i");
    j->has_head = true;
    j->head = (struct head_value){.round = 1, .phase = HEAD_RUN, .last_round = 1, .n = 2};
    j->facts.round = 1;
    j->n_last = 2;
    for (int i = 0; i < 2; i++) {
        strcpy(j->last[i].uid, i ? "b" : "a");
        j->last[i].rank = i;
        struct group_model *g = &c->nodes[i].group;
        *g = (struct group_model){.alive = true, .round = 1};
        strcpy(g->uid, j->last[i].uid);
    }
    return c;
}

static inline void world_free(struct sim *c) {
    kv_free(c->kv);
    sim_nodes_fini(c);
    free(c->joins);
    free(c->result);
    free(c);
}

static inline struct key key_of(enum key_kind kind, const char *uid, int64_t round) {
    struct key k = {.kind = kind, .round = round};
    strcpy(k.inc, "i");
    strcpy(k.uid, uid);
    return k;
}

/* As a transaction by `by` puts it. */
static inline void put(struct sim *c, const char *by, struct key key, union value v) {
    char text[KEY_SIZE], end[KEY_SIZE];
    struct arena a = {0};
    struct kv_txn_result r = {0};
    struct op op = {.key = key, .put = true, .value = &v};
    key_format(&key, "job", text, end);
    struct kv_op put_op = {.kind = KV_PUT, .key = kv_string(text)};
    put_op.value = (struct kv_bytes){(const char *)&v, value_size(key.kind)};
    assert_int_equal(
        kv_txn(c->kv, &(struct kv_txn){.success = &put_op, .n_success = 1}, &a, &r, NULL), 0);
    arena_fini(&a);
    sim_judge_txn(c, by, &op, 1);
}

static inline void sessions(struct sim *c) {
    union value v = {.session = {0}};
    put(c, "a", key_of(KEY_SESSION, "a", 0), v);
    put(c, "b", key_of(KEY_SESSION, "b", 0), v);
    strcpy(v.lead.uid, "a");
    put(c, "a", key_of(KEY_LEAD, "", 0), v);
}

static inline void plan(struct sim *c, const char *pid, const char *uid, int rank) {
    struct key key = key_of(KEY_PLAN, uid, 0);
    strcpy(key.pid, pid);
    put(c, "a", key, (union value){.plan = {.group_rank = rank}});
}

static inline void plans(struct sim *c, int a, int b) {
    plan(c, "p", "a", a);
    plan(c, "p", "b", b);
}

static inline void head(struct sim *c, const char *by, struct head_value h) {
    put(c, by, key_of(KEY_HEAD, "", 0), (union value){.head = h});
}

static inline void ack(struct sim *c, const char *uid, int64_t round) {
    put(c, uid, key_of(KEY_ACK, uid, round), (union value){.ack = {0}});
}

static inline void acks(struct sim *c) {
    ack(c, "a", 1);
    ack(c, "b", 1);
}

static inline void groups_end(struct sim *c) {
    for (int i = 0; i < c->n_nodes; i++)
        c->nodes[i].group.alive = false;
}

static inline struct head_value form(int n) {
    return (struct head_value){.phase = HEAD_FORM,
                               .round = 2,
                               .last_round = 1,
                               .pid = "p",
                               .n = n,
                               .cause = CAUSE_FAILURE};
}

static inline struct head_value run(int restarts) {
    return (struct head_value){
        .phase = HEAD_RUN, .round = 2, .last_round = 2, .restarts = restarts};
}

static inline struct head_value failed_by(const char *uid) {
    struct head_value h = {.phase = HEAD_END, .round = 1, .last_round = 1, .cause = CAUSE_FAILURE};
    strcpy(h.failure.uid, uid);
    return h;
}

/* Round 1 fails, round 2 is formed of a and b, whose workers are gone. */
static inline void reform(struct sim *c) {
    sessions(c);
    c->nodes[1].group.failed = true;
    head(c, "b", failed_by("b"));
    groups_end(c);
    plans(c, 0, 1);
    head(c, "a", form(2));
}

static inline struct round_spec spec(int64_t round, int rank_base) {
    return (struct round_spec){.round = round,
                               .group_world = 2,
                               .local_world = 1,
                               .world = 2,
                               .rank_base = rank_base,
                               .master_addr = "n0",
                               .master_port = 1,
                               .token = "t"};
}
