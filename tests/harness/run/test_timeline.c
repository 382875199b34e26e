/* The timeline against a cluster and an observer of cardboard: what it fires, when, at whom, and
 * who is held meanwhile. Nothing is started here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/base/str.h"
#include "agent/sys/clock.h"
#include "harness/run/engine.h"
#include "scenarios/jobs/rankquake.h"

#include <sys/eventfd.h>

/* ---- cardboard ---- */

enum { NODES = 3, WORKERS_MAX = 64 };

struct node {
    struct plan_node plan;
    bool on;
    bool agent;
};
struct cluster {
    struct node nodes[NODES];
    struct node *list[NODES];
};
struct observer {
    uint32_t kinds;
    uint64_t next_step;
    int released[16];
    int alive_fd;    /* never readable */
    bool dead[2000]; /* by pid */
};
struct client {
    int kept;
};

size_t cluster_nodes(const struct cluster *c, struct node ***ret) {
    *ret = (struct node **)(uintptr_t)c->list;
    return NODES;
}
struct node *cluster_node(const struct cluster *c, const char *name) {
    for (int i = 0; i < NODES; i++)
        if (str_eq(c->list[i]->plan.name, name))
            return c->list[i];
    return NULL;
}
const struct plan_node *node_plan(const struct node *n) {
    return &n->plan;
}
bool node_is_on(const struct node *n) {
    return n->on;
}
void node_target(struct node *n, struct target *ret) {
    *ret = (struct target){.kind = TARGET_NODE, .pidfd = -1, .node = n};
    str_copy(ret->name, sizeof(ret->name), n->plan.name);
}
int node_agent_target(struct node *n, struct target *ret) {
    *ret = (struct target){.kind = TARGET_AGENT, .pid = 500 + n->plan.index, .pidfd = -1};
    str_copy(ret->name, sizeof(ret->name), n->plan.name);
    return n->agent ? 0 : -ESRCH;
}
static char injected[16][64];
static size_t injected_n;
static uint64_t injected_token;
int node_inject(struct node *n, const struct fault *f, const struct target *t,
                const struct fault_args *a, uint64_t token, struct err *err) {
    (void)n, (void)a, (void)err, (void)f;
    str_copy(injected[injected_n++], sizeof(injected[0]), t->name);
    injected_token = token;
    return 0;
}
static int recovered_n;
int node_recover(struct node *n, const struct fault *f, const struct target *t,
                 const struct fault_args *a, uint64_t token, struct err *err) {
    (void)n, (void)f, (void)t, (void)a, (void)token, (void)err;
    recovered_n++;
    return 0;
}
uint32_t observer_kind(const char *name) {
    return 1u << rankquake_kind_of(name);
}
void observer_arm(struct observer *o, uint32_t kinds, uint64_t next_step) {
    o->kinds = kinds;
    o->next_step = next_step;
}
int observer_worker_pidfd(const struct observer *o, pid_t pid) {
    return o->dead[pid] ? -1 : o->alive_fd;
}
void observer_release(struct observer *o, int tag) {
    o->released[tag]++;
}
bool client_is_held(const struct client *c) {
    return c;
}
void client_keep(struct client *c, int tag) {
    c->kept = tag;
}
struct json_writer *engine_record(struct engine *e, enum source s, const char *kind) {
    return recorder_begin(&e->rec, clock_monotonic_ns(), s, kind);
}
void engine_recorded(struct engine *e) {
    recorder_end(&e->rec, NULL);
}

/* ---- a stage ---- */

static const struct fault kill_worker = {.name = "kill-worker",
                                         .targets = TARGET_WORKER,
                                         .where = FAULT_IN_NODE,
                                         .evidence = EVIDENCE_TARGET_EXIT};
static const struct fault hang_worker = {.name = "hang-worker",
                                         .targets = TARGET_WORKER,
                                         .where = FAULT_IN_NODE,
                                         .evidence = EVIDENCE_TARGET_EXIT,
                                         .lasting = true};
static const struct fault kill_agent = {.name = "kill-agent",
                                        .targets = TARGET_AGENT,
                                        .where = FAULT_IN_NODE,
                                        .evidence = EVIDENCE_TARGET_EXIT};
static int killed_nodes;
static int inject_node(const struct target *t, const struct fault_args *a, struct err *err) {
    (void)t, (void)a, (void)err;
    killed_nodes++;
    return 0;
}
static const struct fault kill_node = {.name = "kill-node",
                                       .targets = TARGET_NODE,
                                       .where = FAULT_IN_HARNESS,
                                       .evidence = EVIDENCE_TARGET_EXIT,
                                       .inject = inject_node};

struct stage {
    struct engine engine;
    struct scenario scenario;
    struct plan plan;
    struct history history;
    struct rounds rounds;
    struct cluster cluster;
    struct observer observer;
    struct action actions[8];
    struct plan_action planned[8];
};

static void on_record(void *arg, const struct record *r, struct client *from) {
    struct stage *s = arg;
    timeline_seen(s->engine.timeline, r, from);
}

static struct stage *stage_new(void) {
    static const char *const names[NODES] = {"n0", "n1", "n2"};
    struct stage *s = calloc(1, sizeof(*s));
    struct err err;
    for (int i = 0; i < NODES; i++) {
        s->cluster.nodes[i] = (struct node){{.name = names[i], .index = i}, true, true};
        s->cluster.list[i] = &s->cluster.nodes[i];
    }
    s->observer.alive_fd = eventfd(0, EFD_CLOEXEC);
    assert_int_equal(history_create(&s->history, NULL, &err), 0);
    rounds_init(&s->rounds, true);
    s->scenario.limits.total_ns = 60000000000;
    s->plan = (struct plan){.scenario = &s->scenario, .actions = s->planned};
    s->engine = (struct engine){.plan = &s->plan,
                                .cluster = &s->cluster,
                                .observer = &s->observer,
                                .rec = {&s->history, &s->rounds, on_record, s}};
    s->engine.loop = loop_new(&err);
    rand_init(&s->engine.rand, 1);
    injected_n = 0;
    killed_nodes = recovered_n = 0;
    return s;
}

static struct action *add(struct stage *s, const char *id, const struct fault *f) {
    struct action *a = &s->actions[s->plan.actions_n];
    *a = (struct action){.id = id, .fault = f ? f->name : NULL, .heal = -1, .times_n = 1};
    a->when = (struct trigger){.after = -1, .hold = true};
    a->on = (struct target_spec){.what = TARGET_WORKERS, .pick = PICK_RANDOM, .count = 1};
    s->planned[s->plan.actions_n++] = (struct plan_action){.action = a, .fault = f};
    return a;
}

static void at_step(struct action *a, int64_t step) {
    a->when.has_step = true;
    a->when.step = step;
}

static void aim_at(struct action *a, const char *node, int local_rank) {
    a->on = (struct target_spec){
        .what = TARGET_WORKERS, .pick = PICK_NAMED, .node = node, .local_rank = local_rank};
}

static void begin(struct stage *s) {
    s->engine.timeline = timeline_new(&s->engine);
    timeline_start(s->engine.timeline);
}

static void stage_free(struct stage *s) {
    timeline_free(s->engine.timeline);
    loop_free(s->engine.loop);
    close(s->observer.alive_fd);
    history_fini(&s->history);
    rounds_fini(&s->rounds);
    arena_fini(&s->engine.arena);
    free(s);
}

/* pid = 100 * round + rank: worker `rank` of a round of three nodes with one worker each. */
static void start_round(struct stage *s, int round, int world) {
    for (int rank = 0; rank < world; rank++) {
        char port[16], rank_text[16], world_text[16];
        snprintf(port, sizeof(port), "%d", 20000 + round);
        snprintf(rank_text, sizeof(rank_text), "%d", rank);
        snprintf(world_text, sizeof(world_text), "%d", world);
        struct json_writer *w = engine_record(&s->engine, SOURCE_PROBE, "worker-start");
        json_put_string(w, "node", s->cluster.nodes[rank].plan.name);
        json_put_i64(w, "pid", 100 * round + rank);
        json_object(w, "env");
        json_put_string(w, "RANK", rank_text);
        json_put_string(w, "LOCAL_RANK", "0");
        json_put_string(w, "WORLD_SIZE", world_text);
        json_put_string(w, "MASTER_ADDR", "n0");
        json_put_string(w, "MASTER_PORT", port);
        json_end_object(w);
        engine_recorded(&s->engine);
    }
}

static int step(struct stage *s, int pid, int64_t number) {
    struct client c = {0};
    struct json_writer *w = engine_record(&s->engine, SOURCE_JOB, "step");
    json_put_i64(w, "pid", pid);
    json_put_i64(w, "step", number);
    recorder_end(&s->engine.rec, &c);
    return c.kept;
}

static void end_worker(struct stage *s, int pid) {
    s->observer.dead[pid] = true;
    struct json_writer *w = engine_record(&s->engine, SOURCE_KERNEL, "worker-exit");
    json_put_i64(w, "pid", pid);
    json_put_i64(w, "signal", 9);
    engine_recorded(&s->engine);
}

static int count(const struct stage *s, const char *kind, const char *id) {
    int n = 0;
    history_each(r, &s->history) n +=
        record_is(r, kind) && str_eq(json_get_string(r->fields, "id", NULL), id);
    return n;
}

/* ---- tests ---- */

static void test_step_fires_at_the_target_and_holds_its_sender(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct action *a = add(s, "k", &kill_worker);
    at_step(a, 5);
    aim_at(a, "n1", 0);
    begin(s);
    start_round(s, 1, 3);
    assert_int_equal(s->observer.kinds, 1u << RANKQUAKE_STEP);
    assert_int_equal(s->observer.next_step, 5);
    assert_int_equal(step(s, 100, 5), 0); /* a peer is first: not its business */
    assert_int_equal(step(s, 101, 4), 0);
    assert_int_equal(injected_n, 0);
    assert_int_equal(step(s, 101, 5), 1);
    assert_int_equal(injected_n, 1);
    assert_string_equal(injected[0], "n1/0 (rank 1)");
    assert_int_equal(s->observer.released[1], 0);
    timeline_answer(s->engine.timeline, injected_token, NULL);
    assert_int_equal(s->observer.released[1], 1);
    assert_int_equal(count(s, "fault-in-force", "k"), 1);
    assert_int_equal(s->observer.kinds, 0);
    stage_free(s);
}

static void test_evidence_is_the_exit_of_the_target_and_nothing_else(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct action *a = add(s, "k", &kill_worker);
    at_step(a, 5);
    aim_at(a, "n1", 0);
    begin(s);
    start_round(s, 1, 3);
    step(s, 101, 5);
    timeline_answer(s->engine.timeline, injected_token, NULL);
    end_worker(s, 102);
    assert_int_equal(count(s, "fault-evidence", "k"), 0);
    end_worker(s, 101);
    assert_int_equal(count(s, "fault-evidence", "k"), 1);
    stage_free(s);
}

static void test_time_in_force_is_the_death_when_it_was_seen_before_the_answer(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct action *a = add(s, "k", &kill_worker);
    at_step(a, 5);
    aim_at(a, "n1", 0);
    begin(s);
    start_round(s, 1, 3);
    step(s, 101, 5);
    end_worker(s, 101);
    int64_t died = s->history.records[s->history.n - 1]->t_ns;
    timeline_answer(s->engine.timeline, injected_token, NULL);
    int64_t t0 = -1;
    history_each(r, &s->history) if (record_is(r, "fault-in-force")) t0 =
        json_get_i64(r->fields, "t0", -1);
    assert_true(t0 > 0 && t0 <= died);
    assert_int_equal(count(s, "fault-evidence", "k"), 1);
    stage_free(s);
}

static void test_after_waits_until_the_other_is_in_force(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct action *first = add(s, "first", &kill_worker);
    at_step(first, 5);
    struct action *second = add(s, "second", &kill_node);
    second->on = (struct target_spec){
        .what = TARGET_NODES, .pick = PICK_NAMED, .node = "n2", .local_rank = -1};
    second->when.after = 0;
    begin(s);
    start_round(s, 1, 3);
    assert_int_equal(killed_nodes, 0);
    step(s, 100, 5);
    assert_int_equal(killed_nodes, 0);
    timeline_answer(s->engine.timeline, injected_token, NULL);
    assert_int_equal(killed_nodes, 1);
    stage_free(s);
}

static void test_round_opens_the_gate_and_earlier_steps_do_not_count(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct action *a = add(s, "k", &kill_worker);
    at_step(a, 5);
    a->when.has_round = true;
    a->when.round = 2;
    begin(s);
    start_round(s, 1, 3);
    assert_int_equal(step(s, 100, 5), 0);
    assert_int_equal(s->observer.kinds, 0);
    start_round(s, 2, 3);
    assert_int_equal(s->observer.kinds, 1u << RANKQUAKE_STEP);
    assert_int_equal(step(s, 200, 5), 1);
    assert_int_equal(injected_n, 1);
    stage_free(s);
}

static void test_times_two_fires_twice_and_then_is_done(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct action *a = add(s, "k", &kill_worker);
    at_step(a, 5);
    a->times_n = 2;
    begin(s);
    start_round(s, 1, 3);
    for (int i = 0; i < 3; i++) {
        step(s, 100, 5);
        timeline_answer(s->engine.timeline, injected_token, NULL);
    }
    assert_int_equal(count(s, "fault-in-force", "k"), 2);
    timeline_finish(s->engine.timeline);
    assert_int_equal(count(s, "fault-not-fired", "k"), 0);
    stage_free(s);
}

static void test_what_never_came_true_is_noted_as_not_fired(void **state) {
    (void)state;
    struct stage *s = stage_new();
    at_step(add(s, "k", &kill_worker), 500);
    begin(s);
    start_round(s, 1, 3);
    step(s, 100, 5);
    timeline_finish(s->engine.timeline);
    assert_int_equal(count(s, "fault-not-fired", "k"), 1);
    assert_int_equal(count(s, "fault-fired", "k"), 0);
    stage_free(s);
}

static void test_a_target_that_is_dead_by_then_is_no_firing(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct action *a = add(s, "k", &kill_agent);
    a->on = (struct target_spec){.what = TARGET_AGENTS, .pick = PICK_NAMED, .node = "n1"};
    at_step(a, 5);
    begin(s);
    start_round(s, 1, 3);
    s->cluster.nodes[1].agent = false;
    assert_int_not_equal(step(s, 100, 5), 0); /* an agent has no steps: any worker's counts */
    assert_int_equal(count(s, "fault-not-fired", "k"), 1);
    assert_int_equal(s->observer.released[1], 1);
    stage_free(s);
}

static void test_a_failed_injection_is_recorded_and_its_sender_released(void **state) {
    (void)state;
    struct stage *s = stage_new();
    at_step(add(s, "k", &kill_worker), 5);
    begin(s);
    start_round(s, 1, 3);
    step(s, 100, 5);
    timeline_answer(s->engine.timeline, injected_token, "n0: Operation not permitted");
    assert_int_equal(count(s, "fault-failed", "k"), 1);
    assert_int_equal(count(s, "fault-in-force", "k"), 0);
    assert_int_equal(s->observer.released[1], 1);
    stage_free(s);
}

static void test_what_lasts_is_recovered_in_finally_once(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct action *a = add(s, "h", &hang_worker);
    at_step(a, 5);
    begin(s);
    start_round(s, 1, 3);
    step(s, 100, 5);
    timeline_answer(s->engine.timeline, injected_token, NULL);
    assert_int_equal(recovered_n, 0);
    timeline_finish(s->engine.timeline);
    timeline_finish(s->engine.timeline);
    assert_int_equal(recovered_n, 1);
    assert_int_equal(count(s, "fault-recovered", "h"), 1);
    stage_free(s);
}

static void stop_loop(void *arg, int64_t now) {
    (void)now;
    loop_stop(arg);
}

static void test_time_counts_from_steady_state(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct action *a = add(s, "k", &kill_worker);
    a->when.has_time = true;
    a->when.time_ns = 20000000;
    begin(s);
    start_round(s, 1, 3);
    struct loop_source *end = loop_timer(s->engine.loop, stop_loop, s->engine.loop);
    loop_timer_at(end, clock_monotonic_ns() + 40000000);
    loop_run(s->engine.loop, NULL);
    assert_int_equal(injected_n, 0); /* not steady yet */
    s->engine.steady_ns = clock_monotonic_ns();
    timeline_steady(s->engine.timeline);
    loop_timer_at(end, clock_monotonic_ns() + 2000000000);
    while (!injected_n && clock_monotonic_ns() < s->engine.steady_ns + 1000000000) {
        struct loop_source *turn = loop_timer(s->engine.loop, stop_loop, s->engine.loop);
        loop_timer_at(turn, clock_monotonic_ns() + 5000000);
        loop_run(s->engine.loop, NULL);
        loop_source_free(turn);
    }
    assert_int_equal(injected_n, 1);
    assert_true(clock_monotonic_ns() >= s->engine.steady_ns + 20000000);
    loop_source_free(end);
    stage_free(s);
}

static void test_the_same_seed_draws_the_same_target(void **state) {
    (void)state;
    char first[64] = "";
    for (int i = 0; i < 2; i++) {
        struct stage *s = stage_new();
        at_step(add(s, "k", &kill_worker), 5);
        begin(s);
        start_round(s, 1, 3);
        step(s, 100, 5);
        if (!first[0])
            str_copy(first, sizeof(first), injected[0]);
        assert_string_equal(injected[0], first);
        stage_free(s);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_step_fires_at_the_target_and_holds_its_sender),
        cmocka_unit_test(test_evidence_is_the_exit_of_the_target_and_nothing_else),
        cmocka_unit_test(test_time_in_force_is_the_death_when_it_was_seen_before_the_answer),
        cmocka_unit_test(test_after_waits_until_the_other_is_in_force),
        cmocka_unit_test(test_round_opens_the_gate_and_earlier_steps_do_not_count),
        cmocka_unit_test(test_times_two_fires_twice_and_then_is_done),
        cmocka_unit_test(test_what_never_came_true_is_noted_as_not_fired),
        cmocka_unit_test(test_a_target_that_is_dead_by_then_is_no_firing),
        cmocka_unit_test(test_a_failed_injection_is_recorded_and_its_sender_released),
        cmocka_unit_test(test_what_lasts_is_recovered_in_finally_once),
        cmocka_unit_test(test_time_counts_from_steady_state),
        cmocka_unit_test(test_the_same_seed_draws_the_same_target),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
