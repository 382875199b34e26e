/* world: a small run in the middle of its life, and the words in which something is done to it. */
#pragma once

#include "harness/invariants/judge.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define MS JUDGE_MS

enum { NODES = 3 };

struct world {
    struct judge judge;
    struct judged_times times;
    struct judged_node nodes[NODES];
    struct judged_member last[NODES], form[NODES];
    bool ranks[2 * NODES];
    const char *sessions[NODES]; /* of the agents that run */
    bool gives_up, fence_passed;
    char text[512]; /* what is broken first */
};

static inline void on_broken(void *world, const char *text) {
    struct world *w = world;
    if (!*w->text)
        snprintf(w->text, sizeof(w->text), "%s", text);
}

static inline void on_head(void *world, const struct head_change *h) {
    (void)world, (void)h;
}

static inline const char *session(const void *world, int node) {
    return ((const struct world *)world)->sessions[node];
}

static inline bool may_give_up(const void *world, int node) {
    (void)node;
    return ((const struct world *)world)->gives_up;
}

static inline int64_t quiet_ns(const void *world) {
    (void)world;
    return 0;
}

static inline bool fence_passed(const void *world, int node) {
    (void)node;
    return ((const struct world *)world)->fence_passed;
}

/* Three nodes, a and b were the last round (1) and have a worker each; a leads. All is well until a
 * row does something to it. */
static inline struct world *world_new(void) {
    static const struct judge_ops ops = {on_broken,   on_head,  session,
                                         may_give_up, quiet_ns, fence_passed};
    struct world *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    struct judge *j = &w->judge;
    *j = (struct judge){.ops = &ops,
                        .world = w,
                        .job = {.run_id = "job",
                                .min = 2,
                                .max = 3,
                                .max_restarts = 1,
                                .kept = true,
                                .unseen_ns = 1000 * MS,
                                .last_call_ns = 300 * MS,
                                .admit_ns = 50 * MS,
                                .stop_timeout_ns = 200 * MS,
                                .shutdown_grace_ns = 500 * MS,
                                .join_timeout_ns = 20000 * MS},
                        .kv = kv_new(1, 0),
                        .nodes = w->nodes,
                        .node_size = sizeof(*w->nodes),
                        .n_nodes = NODES,
                        .times = &w->times,
                        .last = w->last,
                        .form = w->form,
                        .ranks = w->ranks,
                        .n_ranks = 2 * NODES,
                        .inc = "i",
                        .has_head = true,
                        .head = {.round = 1, .last_round = 1, .phase = HEAD_RUN},
                        .latest_round = 1,
                        .start = {.round = 1},
                        .n_last = 2};
    w->times.healed_ns = INT64_MAX;
    for (int i = 0; i < 2; i++) {
        strcpy(w->last[i].uid, i ? "b" : "a");
        w->last[i].rank = i;
        struct judged_group *g = &w->nodes[i].group;
        *g = (struct judged_group){.alive = true, .round = 1};
        strcpy(g->uid, w->last[i].uid);
    }
    return w;
}

static inline void world_free(struct world *w) {
    kv_free(w->judge.kv);
    judge_fini(&w->judge);
    free(w);
}

static inline struct store_key key_of(enum key_kind kind, const char *uid, int64_t round) {
    struct store_key k = {.kind = kind, .round = round};
    strcpy(k.inc, "i");
    strcpy(k.uid, uid);
    return k;
}

/* As a transaction by `by` puts it. */
static inline void put(struct world *w, const char *by, struct store_key key, union value v) {
    char text[KEY_SIZE], end[KEY_SIZE];
    struct arena a = {0};
    struct kv_txn_result r = {0};
    struct op op = {.key = key, .put = true, .value = &v};
    key_format(&key, "job", text, end);
    struct kv_op put_op = {.kind = KV_PUT, .key = kv_string(text)};
    put_op.value = (struct kv_bytes){(const char *)&v, value_size(key.kind)};
    assert_int_equal(
        kv_txn(w->judge.kv, &(struct kv_txn){.success = &put_op, .n_success = 1}, &a, &r, NULL), 0);
    arena_fini(&a);
    judge_txn(&w->judge, by, &op, 1);
}

static inline void sessions(struct world *w) {
    union value v = {.session = {0}};
    put(w, "a", key_of(KEY_SESSION, "a", 0), v);
    put(w, "b", key_of(KEY_SESSION, "b", 0), v);
    strcpy(v.lead.uid, "a");
    put(w, "a", key_of(KEY_LEAD, "", 0), v);
}

static inline void plan(struct world *w, const char *pid, const char *uid, int rank) {
    struct store_key key = key_of(KEY_PLAN, uid, 0);
    strcpy(key.pid, pid);
    put(w, "a", key, (union value){.plan = {.group_rank = rank}});
}

static inline void plans(struct world *w, int a, int b) {
    plan(w, "p", "a", a);
    plan(w, "p", "b", b);
}

static inline void head(struct world *w, const char *by, struct head_value h) {
    put(w, by, key_of(KEY_HEAD, "", 0), (union value){.head = h});
}

static inline void ack(struct world *w, const char *uid, int64_t round) {
    put(w, uid, key_of(KEY_ACK, uid, round), (union value){.ack = {0}});
}

static inline void acks(struct world *w) {
    ack(w, "a", 1);
    ack(w, "b", 1);
}

static inline void groups_end(struct world *w) {
    for (int i = 0; i < NODES; i++)
        w->nodes[i].group.alive = false;
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
        .phase = HEAD_RUN, .round = 2, .last_round = 2, .restarts = restarts, .token = "t"};
}

/* Its guard was killed. */
static inline struct head_value failed_by(const char *uid) {
    struct head_value h = {.phase = HEAD_END, .round = 1, .last_round = 1, .cause = CAUSE_FAILURE};
    strcpy(h.failure.uid, uid);
    strcpy(h.failure.node, *uid == 'a' ? "n0" : "n1");
    strcpy(h.failure.error, "the guard was killed");
    h.failure.rank = h.failure.local_rank = -1;
    h.failure.wait_status = SIGKILL;
    return h;
}

/* Round 1 fails, round 2 is formed of a and b, whose workers are gone. */
static inline void reform(struct world *w) {
    sessions(w);
    w->nodes[1].group.failed = w->nodes[1].group.unasked = true;
    head(w, "b", failed_by("b"));
    groups_end(w);
    plans(w, 0, 1);
    head(w, "a", form(2));
}

static inline struct round_spec spec(int64_t round, int rank_base) {
    return (struct round_spec){.round = round,
                               .group_world = 2,
                               .local_world = 1,
                               .world = 2,
                               .group_rank = rank_base,
                               .rank_base = rank_base,
                               .role = "default",
                               .role_rank_base = rank_base,
                               .role_world = 2,
                               .master_addr = "n0",
                               .master_port = 1,
                               .token = "t"};
}

/* Node 0 as session a, node 1 as b. */
static inline void start(struct world *w, int node, const struct round_spec *s) {
    static const char *const uids[NODES] = {"a", "b", "c"};
    w->sessions[node] = uids[node];
    judge_start(&w->judge, node, s);
}
