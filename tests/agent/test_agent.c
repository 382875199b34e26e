/* The agent's wiring: which call each action of the core becomes, with which words; which event of the core each thing is that
 * happens to it; what is made at the start, and what is given back when one part of it cannot be made. */
#include "agent/agent.h"

#include "agent/core/rendezvous.h"
#include "agent/options.h"
#include "base/str.h"
#include "tests/agent/agent_doubles.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static struct options o;
static struct err err;
static char something[1];

static int set_up(void **state) {
    (void)state;
    doubles_reset();
    err = (struct err){0};
    o = (struct options){.backend = BACKEND_EMBEDDED,
                         .run_id = "job",
                         .endpoints = "h:1",
                         .node_rank = -1,
                         .signals = UINT64_C(1) << SIGTERM | UINT64_C(1) << 63,
                         .outcome_file = "/outcome"};
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    doubles_reset();
    return 0;
}

/* What was said since the last time, all of it. */
static void assert_said(const char *text) {
    assert_string_equal(buf_str(&doubles.said), text);
    buf_clear(&doubles.said);
}

static void quiet(void) {
    buf_clear(&doubles.said);
}

static bool is_open(int fd) {
    return fcntl(fd, F_GETFD) >= 0;
}

/* Which of the first descriptors are open: as many, and the same, when an agent has ended. */
static uint64_t open_ones(void) {
    uint64_t bits = 0;
    for (int fd = 0; fd < 64; fd++)
        bits |= (uint64_t)is_open(fd) << fd;
    return bits;
}

static int run(void (*scene)(void)) {
    uint64_t before = open_ones();
    doubles.scene = scene;
    int code = agent_run(&o, (struct guard *)something, NULL, &err);
    if (open_ones() != before)
        fail_msg("open were %" PRIx64 ", are %" PRIx64, before, open_ones());
    return code;
}

/* The core asks for these in its next step, which is that of a timer. */
#define ASK(...)                                                                                   \
    do {                                                                                           \
        const struct action asked[] = {__VA_ARGS__};                                               \
        memcpy(doubles.actions, asked, sizeof(asked));                                             \
        doubles.n = sizeof(asked) / sizeof(*asked);                                                \
        doubles.timer_fn(doubles.arg, 0);                                                          \
    } while (0)

#define HEARD "core hears 1\n"

/* ---- actions ---- */

static void each_action(void) {
    static const enum action_kind of_store[] = {
        ACTION_SNAPSHOT,    ACTION_WATCH,           ACTION_UNWATCH, ACTION_TXN,
        ACTION_LEASE_GRANT, ACTION_LEASE_KEEPALIVE, ACTION_BEAT};
    char text[128];
    quiet();
    for (size_t i = 0; i < sizeof(of_store) / sizeof(*of_store); i++) {
        ASK({.kind = of_store[i]});
        snprintf(text, sizeof(text), HEARD "store does %d within 501 ms\n", of_store[i]);
        assert_said(text);
    }
    ASK({.kind = ACTION_LIFELINE_OPEN}, {.kind = ACTION_LIFELINE_DROP});
    snprintf(text, sizeof(text), HEARD "lifeline does %d\nlifeline does %d\n", ACTION_LIFELINE_OPEN,
             ACTION_LIFELINE_DROP);
    assert_said(text);
    ASK({.kind = ACTION_DEADLINE, .deadline = {.fence_ns = 5, .hard_ns = 6}});
    assert_said(HEARD "guard's deadline 5, 6\n");
    ASK({.kind = ACTION_STOP, .stop = {.signo = SIGTERM, .grace_ms = 70}});
    assert_said(HEARD "guard stops with 15, grace 70\n");
    ASK({.kind = ACTION_KILL});
    assert_said(HEARD "guard kills\n");
    ASK({.kind = ACTION_TIMER, .timer = {.at_ns = 99}});
    assert_said(HEARD "timer at 99\n");
    ASK({.kind = ACTION_CLAIM, .claim = {.what = "join", .round = 3}});
    assert_said(HEARD "claim join of round 3\nround line: join at 1000, own count 0\n");
    ASK({.kind = ACTION_LOG, .log = "one % line"});
    assert_said(HEARD "info, log: one % line\n");
    ASK({0});
    assert_said(HEARD "store does 0 within 501 ms\n");
}

static void test_each_action_is_done_by_whom_it_is_for(void **state) {
    (void)state;
    assert_int_equal(run(each_action), 0);
    assert_int_equal(doubles.alive, 0);
}

static void of_the_store(void) {
    quiet();
    ASK({.kind = ACTION_STORE, .store = {.text = "answers again"}});
    assert_said(HEARD "info, store: the store answers again\n");
    doubles.trouble = "refused";
    ASK({.kind = ACTION_STORE, .store = {.text = "answers again"}});
    assert_said(HEARD "info, store: the store answers again\n");
    ASK({.kind = ACTION_STORE, .store = {.text = "does not answer", .lost = true}});
    assert_said(HEARD "warning, store: the store does not answer: refused\n");
    doubles.trouble = "";
    ASK({.kind = ACTION_STORE, .store = {.text = "does not answer", .lost = true}});
    assert_said(HEARD "warning, store: the store does not answer\n");
}

static void test_what_a_store_does_is_told_with_its_place_and_why(void **state) {
    (void)state;
    assert_int_equal(run(of_the_store), 0);
}

/* ---- ports ---- */

static void ports(void) {
    quiet();
    ASK({.kind = ACTION_NEED_PORT});
    assert_said(HEARD "any port is reserved\ncore hears 11: 10.0.0.1:7001\n");
    int first = doubles.port_fd;
    assert_true(is_open(first));
    ASK({.kind = ACTION_NEED_PORT});
    assert_said(HEARD "any port is reserved\ncore hears 11: 10.0.0.1:7001\n");
    assert_int_equal(doubles.port_fd, first); /* the one before was let go first */
    doubles.failing = "port";
    ASK({.kind = ACTION_NEED_PORT});
    assert_said(HEARD "any port is reserved\nerror, port: no port\ncore hears 11: 10.0.0.1:0\n");
    assert_false(is_open(first));
    doubles.failing = NULL;
    ASK({.kind = ACTION_NEED_PORT});
    quiet();
}

/* With descriptor 0 as the port too: who was started without standard input. */
static void test_a_port_is_kept_until_another_is_asked_for_or_the_end(void **state) {
    (void)state;
    assert_int_equal(run(ports), 0);
    assert_false(is_open(doubles.port_fd));
    int kept = fcntl(0, F_DUPFD_CLOEXEC, 10);
    close(0);
    int code = run(ports), port = doubles.port_fd;
    dup2(kept, 0);
    close(kept);
    assert_int_equal(code, 0);
    assert_int_equal(port, 0);
}

static void of_the_master(void) {
    quiet();
    ASK({.kind = ACTION_NEED_PORT});
    assert_said(HEARD "port 29500 is reserved\ncore hears 11: m:29500\n");
    doubles.failing = "port";
    ASK({.kind = ACTION_NEED_PORT});
    assert_said(HEARD "port 29500 is reserved\nerror, port: --master-port: no port\n"
                      "core hears 11: m:29500\n");
}

static void of_another(void) {
    quiet();
    ASK({.kind = ACTION_NEED_PORT});
    assert_said(HEARD "any port is reserved\ncore hears 11: 10.0.0.1:7001\n");
}

static void test_the_masters_port_is_that_of_rank_0_alone(void **state) {
    (void)state;
    o.master_addr = "m";
    o.master_port = 29500;
    o.node_rank = 0;
    assert_int_equal(run(of_the_master), 0);
    doubles.failing = NULL;
    o.node_rank = -1;
    assert_int_equal(run(of_the_master), 0);
    doubles.failing = NULL;
    o.node_rank = 1;
    assert_int_equal(run(of_another), 0);
    o.node_rank = 0;
    o.master_port = 0;
    assert_int_equal(run(of_another), 0);
}

/* ---- a round ---- */

static const struct round_spec round_2 = {.run_id = "job",
                                          .round = 2,
                                          .group_rank = 3,
                                          .group_world = 4,
                                          .rank_base = 5,
                                          .local_world = 6,
                                          .world = 7,
                                          .role = "r",
                                          .role_rank_base = 8,
                                          .role_world = 9,
                                          .master_addr = "m",
                                          .master_port = 10,
                                          .restart_count = 11,
                                          .max_restarts = 12,
                                          .token = "t",
                                          .deadline_required = true,
                                          .fence_ns = 13,
                                          .hard_ns = 14,
                                          .lifeline = true};

#define BEGINS(round)                                                                              \
    "timers of workers begin anew\nevent log: round " round "\nround line: round " round           \
    " at 1000, own count 0\nguard is renewed\n"
#define STARTS_2                                                                                   \
    "guard starts job, round 2: world 7 on 4, restart 11 of 12, master m:10, group 3, ranks from " \
    "5, 6 here, role r from 8 of 9, token t, virtual 0, deadline 1, lifeline 77, timer /fifo\n"

static void a_round(void) {
    struct round_spec second = round_2;
    quiet();
    ASK({.kind = ACTION_NEED_PORT});
    quiet();
    ASK({.kind = ACTION_START, .start = &round_2});
    assert_said(HEARD
                "neighbours ends\n" BEGINS("2") "guard's deadline 13, 14\n" STARTS_2
                                                "the port is let go\n"
                                                "info, output: the workers' output is in /out\n");
    second.round = 3;
    second.deadline_required = second.lifeline = false;
    doubles.port_fd = -1;
    ASK({.kind = ACTION_START, .start = &second}); /* the folder is told once */
    assert_said(HEARD BEGINS("3") "guard starts job, round 3: world 7 on 4, restart 11 of 12, "
                                  "master m:10, group 3, ranks from 5, 6 here, role r from 8 of 9, "
                                  "token t, virtual 0, deadline 0, lifeline 0, timer /fifo\n");
}

static void test_a_round_is_started_with_all_that_the_core_says_of_it(void **state) {
    (void)state;
    doubles.output_dir = "/out";
    assert_int_equal(run(a_round), 0);
    assert_int_equal(doubles.alive, 0);
}

static void output_that_nobody_named(void) {
    quiet();
    ASK({.kind = ACTION_START, .start = &round_2});
    assert_null(strstr(buf_str(&doubles.said), "output"));
    assert_non_null(strstr(buf_str(&doubles.said), ", virtual 1, "));
    quiet();
}

static void test_output_is_told_only_where_there_is_a_folder(void **state) {
    (void)state;
    o.virtual_local_rank = true;
    assert_int_equal(run(output_that_nobody_named), 0);
}

/* At descriptor 0 as well. */
static void the_port_is_let_go(void) {
    ASK({.kind = ACTION_NEED_PORT});
    assert_true(is_open(doubles.port_fd));
    ASK({.kind = ACTION_START, .start = &round_2});
    assert_false(is_open(doubles.port_fd));
    quiet();
}

static void test_a_start_lets_the_port_go(void **state) {
    (void)state;
    assert_int_equal(run(the_port_is_let_go), 0);
    int kept = fcntl(0, F_DUPFD_CLOEXEC, 10);
    close(0);
    int code = run(the_port_is_let_go);
    dup2(kept, 0);
    close(kept);
    assert_int_equal(code, 0);
    assert_int_equal(doubles.port_fd, 0);
}

static void starts_that_fail(void) {
    quiet();
    doubles.start_rc = -EBUSY;
    ASK({.kind = ACTION_START, .start = &round_2});
    assert_said(HEARD "neighbours ends\n" BEGINS(
        "2") "guard's deadline 13, 14\n" STARTS_2
             "core hears 8: 0, pid 0, status 7e00, \"no workers\", at 3000\n"
             "core hears 9: fenced 0\n");
    ASK({.kind = ACTION_LOG, .log = "x"});
    assert_said(HEARD "info, log: x\n"); /* once */
    doubles.start_rc = -EPIPE;
    ASK({.kind = ACTION_START, .start = &round_2});
    assert_said(HEARD BEGINS("2") "guard's deadline 13, 14\n" STARTS_2);
    doubles.renew_rc = -ENOMEM;
    doubles.start_rc = 0;
    ASK({.kind = ACTION_START, .start = &round_2});
    assert_said(HEARD BEGINS("2") "core hears 8: 0, pid 0, status 7e00, \"no guard\", at 3000\n"
                                  "core hears 9: fenced 0\n");
}

static void test_workers_that_cannot_be_started_have_failed(void **state) {
    (void)state;
    assert_int_equal(run(starts_that_fail), 0);
}

/* ---- what happens ---- */

static void workers(void) {
    const struct guard_events *g = doubles.guard_events;
    void *arg = doubles.guard_arg;
    quiet();
    ASK({.kind = ACTION_START, .start = &round_2});
    quiet();
    g->started(arg, 1, 101, 55);
    assert_said("event log: 1 is pid 101\n");
    g->running(arg);
    assert_said("core hears 7\n");
    g->exec_failed(arg, 1, "why");
    assert_said("");
    g->exited(arg, 0, 100, 0, "", 20);
    assert_said("timer of pid 100 ends\nevent log: 0 ended with 0, \"of a timer\", by itself 1\n"
                "core hears 8: 0, pid 100, status 0, \"of a timer\", at 20\n");
    g->exited(arg, 1, 101, 9, "left", 21);
    assert_said("timer of pid 101 ends\nevent log: 1 ended with 9, \"left\", by itself 1\n"
                "failed: round 2, 1, pid 101, 9, \"left\"\n"
                "core hears 8: 1, pid 101, status 9, \"left\", at 21\n");
    g->exited(arg, 2, 102, 0x100, "too", 22); /* after the first: it is being ended */
    assert_said("timer of pid 102 ends\nevent log: 2 ended with 100, \"too\", by itself 0\n"
                "core hears 8: 2, pid 102, status 100, \"too\", at 22\n");
    /* Each round anew, and asked for in either way. */
    static const struct action ends[] = {{.kind = ACTION_STOP}, {.kind = ACTION_KILL}};
    for (int i = 0; i < 2; i++) {
        ASK({.kind = ACTION_START, .start = &round_2});
        quiet();
        g->exited(arg, 1, 103, 0, "", 23);
        assert_said("timer of pid 103 ends\nevent log: 1 ended with 0, \"of a timer\", by itself "
                    "1\ncore hears 8: 1, pid 103, status 0, \"of a timer\", at 23\n");
        ASK(ends[i]);
        quiet();
        g->exited(arg, 1, 104, 15, "x", 24);
        assert_said("timer of pid 104 ends\nevent log: 1 ended with f, \"x\", by itself 0\n"
                    "core hears 8: 1, pid 104, status f, \"x\", at 24\n");
    }
}

static void test_what_workers_do_is_told_to_the_core_and_the_first_failure_noted(void **state) {
    (void)state;
    assert_int_equal(run(workers), 0);
}

static void ends_of_groups(void) {
    const struct guard_events *g = doubles.guard_events;
    void *arg = doubles.guard_arg;
    quiet();
    g->reaped(arg, GUARD_ENDED);
    g->reaped(arg, GUARD_STOPPED);
    g->reaped(arg, GUARD_KILLED);
    g->reaped(arg, GUARD_FENCED);
    g->reaped(arg, GUARD_REFUSED);
    assert_said("core hears 9: fenced 0\ncore hears 9: fenced 0\ncore hears 9: fenced 0\n"
                "core hears 9: fenced 1\ncore hears 9: fenced 1\n");
    g->dead(arg, 7, SIGKILL, true);
    assert_said("core hears 10: pid 7, status 9, fenced 1\n");
    g->dead(arg, 8, 0, false);
    assert_said("core hears 10: pid 8, status 0, fenced 0\n");
    g->dead(arg, 9, ENOMEM << 8, false);
    assert_said("error, guard: the workers' guard (pid 9) cannot go on: Cannot allocate memory\n"
                "core hears 10: pid 9, status c00, fenced 0\n");
}

static void test_ends_of_groups_and_guards_are_told_to_the_core(void **state) {
    (void)state;
    assert_int_equal(run(ends_of_groups), 0);
}

static void signals(void) {
    assert_non_null(strstr(buf_str(&doubles.said), "signal 10 is watched\nsignal 12 is watched\n"
                                                   "signal 15 is watched\n"
                                                   "signal 63 is watched\nerrors of writes"));
    assert_null(strstr(buf_str(&doubles.said), "signal 1 is"));
    quiet();
    doubles.signal_fn(doubles.arg, SIGUSR1);
    assert_said("guard passes signal 10 on\n");
    doubles.signal_fn(doubles.arg, SIGTERM);
    assert_said("core hears 12: 15\n");
    doubles.signal_fn(doubles.arg, 63);
    assert_said("core hears 12: 63\n");
    doubles.store_fn(doubles.arg, &(struct event){.kind = EVENT_WATCH_LOST});
    assert_said("core hears 4\n");
}

static void test_signals_are_left_on_or_passed_on(void **state) {
    (void)state;
    assert_int_equal(run(signals), 0);
}

static void without_two(void) {
    assert_null(strstr(buf_str(&doubles.said), "signal 15"));
    assert_null(strstr(buf_str(&doubles.said), "signal 12"));
    assert_non_null(strstr(buf_str(&doubles.said), "signal 10 is watched\nsignal 63"));
}

static void test_a_signal_that_was_ignored_stays_so(void **state) {
    (void)state;
    signal(SIGTERM, SIG_IGN);
    signal(SIGUSR2, SIG_IGN);
    int code = run(without_two);
    signal(SIGTERM, SIG_DFL);
    signal(SIGUSR2, SIG_DFL);
    assert_int_equal(code, 0);
}

/* ---- the end ---- */

static const struct failure failure = {.node = "n1", .rank = 4, .local_rank = 2, .pid = 101};

static void an_end(void) {
    quiet();
    ASK({.kind = ACTION_EXIT,
         .exit = {.code = 1,
                  .text = "the job failed",
                  .failure = &failure,
                  .round = 2,
                  .outcome = true}},
        {.kind = ACTION_KILL}); /* behind the end nothing is done */
    assert_said(HEARD "error, exit: the job failed\nclaim first failure of round 2: n1, rank 4\n"
                      "first failure: n1 of round 2, earlier 0\n"
                      "pid 0 is handed on for n1 to node\noutcome 1 to /outcome\n"
                      "event log: the end, 1 at 1000\nloop stops\n");
    doubles.timer_fn(doubles.arg, 0); /* nor heard */
    assert_said("");
}

static void test_the_end_of_a_job_is_told_to_all_who_ask(void **state) {
    (void)state;
    assert_int_equal(run(an_end), 1);
    assert_int_equal(doubles.alive, 0);
}

static void other_end(const struct action *a, const char *text) {
    quiet();
    ASK(*a);
    assert_said(text);
}

static void succeeds(void) {
    other_end(&(struct action){.kind = ACTION_EXIT, .exit = {.text = "all is done"}},
              HEARD "info, exit: all is done\nevent log: the end, 0 at 1000\nloop stops\n");
}

static void says_nothing(void) {
    other_end(&(struct action){.kind = ACTION_EXIT, .exit = {.code = 143, .text = ""}},
              HEARD "event log: the end, 143 at 1000\nloop stops\n");
}

static void has_no_text(void) {
    other_end(&(struct action){.kind = ACTION_EXIT, .exit = {.code = 1}},
              HEARD "event log: the end, 1 at 1000\nloop stops\n");
}

static void earlier(void) {
    other_end(
        &(struct action){
            .kind = ACTION_EXIT,
            .exit = {.code = 1, .text = "t", .failure = &failure, .round = 5, .earlier = true}},
        HEARD "error, exit: t\nfirst failure: n1 of round 5, earlier 1\n"
              "pid 0 is handed on for n1 to node\nevent log: the end, 1 at 1000\n"
              "loop stops\n");
}

static void of_nobody(void) {
    static struct failure of_none = {.node = "n1", .rank = -1};
    other_end(
        &(struct action){.kind = ACTION_EXIT, .exit = {.code = 1, .failure = &of_none, .round = 5}},
        HEARD "first failure: n1 of round 5, earlier 0\n"
              "pid 0 is handed on for n1 to node\nevent log: the end, 1 at 1000\n"
              "loop stops\n");
}

static void of_rank_0(void) {
    static struct failure of_0 = {.node = "n1", .rank = 0};
    other_end(
        &(struct action){.kind = ACTION_EXIT, .exit = {.code = 1, .failure = &of_0, .round = 5}},
        HEARD "claim first failure of round 5: n1, rank 0\n"
              "first failure: n1 of round 5, earlier 0\n"
              "pid 0 is handed on for n1 to node\nevent log: the end, 1 at 1000\n"
              "loop stops\n");
}

static void without_store(void) {
    other_end(&(struct action){.kind = ACTION_EXIT, .exit = {.code = 69, .text = "gone"}},
              HEARD "error, exit: gone\nerror, store: the store: no request has failed\n"
                    "event log: the end, 69 at 1000\nloop stops\n");
}

static void test_each_end_has_its_lines_and_its_code(void **state) {
    (void)state;
    assert_int_equal(run(succeeds), 0);
    assert_int_equal(run(says_nothing), 143);
    assert_int_equal(run(has_no_text), 1);
    assert_int_equal(run(earlier), 1);
    assert_int_equal(run(of_nobody), 1);
    assert_int_equal(run(of_rank_0), 1);
    assert_int_equal(run(without_store), 69);
}

static void gone_and_why(void) {
    doubles.trouble = "refused";
    other_end(&(struct action){.kind = ACTION_EXIT, .exit = {.code = 69, .text = "gone"}},
              HEARD "error, exit: gone\nerror, store: the store: refused\n"
                    "event log: the end, 69 at 1000\nloop stops\n");
}

static void test_a_store_that_was_not_reached_is_named_with_what_went_wrong(void **state) {
    (void)state;
    assert_int_equal(run(gone_and_why), 69);
}

/* What failed in the round is handed on with what was noted of it. */
static void noted(void) {
    ASK({.kind = ACTION_START, .start = &round_2});
    doubles.guard_events->exited(doubles.guard_arg, 2, 101, 256, "e", 9);
    quiet();
    ASK({.kind = ACTION_EXIT, .exit = {.code = 1, .failure = &failure, .round = 2}});
    assert_non_null(strstr(buf_str(&doubles.said), "pid 101 is handed on for n1 to node\n"));
}

static void test_the_failed_worker_is_handed_on(void **state) {
    (void)state;
    assert_int_equal(run(noted), 1);
}

/* ---- the beginning ---- */

#define UP_AND                                                                                     \
    "event log from 1000\na timer of workers is made\nguard is attached\n"                         \
    "signal 10 is watched\nsignal 12 is watched\nsignal 15 is watched\nsignal 63 is watched\n"     \
    "errors of writes end nobody\n"
#define LOOKED       "neighbours are looked for after 6000\n"
#define DOWN_SIGNALS "source ends\nsource ends\nsource ends\nsource ends\nsource ends\n"

static void test_all_is_made_at_the_beginning_and_given_back_at_the_end(void **state) {
    (void)state;
    assert_int_equal(run(NULL), 0);
    assert_int_equal(doubles.event, 1);
    assert_said(
        "a lifeline is made\n"
        "core of node at 10.0.0.1: store in process 0, hosted 0, lifeline 1, seed 42\n" LOOKED
            UP_AND "events open\ncore hears 0\n"
        "events close\nlifeline ends\ntimer of workers ends\nevent log ends\n"
        "neighbours ends\nstore ends\ncore ends\n" DOWN_SIGNALS "guard ends\nloop ends\n");
    assert_int_equal(doubles.alive, 0);
}

static void assert_core(const char *text) {
    assert_int_equal(run(NULL), 0);
    if (!strstr(buf_str(&doubles.said), text))
        fail_msg("\"%s\" is not in \"%s\"", text, buf_str(&doubles.said));
    quiet();
    assert_int_equal(doubles.alive, 0);
}

static void test_where_the_store_is_decides_on_the_lifeline(void **state) {
    (void)state;
    doubles.hosted = true;
    assert_core("info, store: serving the store for this job: the address is this host's and "
                "nothing listened there\n"
                "core of node at 10.0.0.1: store in process 0, hosted 1, lifeline 0, seed 42\n");
    doubles.hosted = false;
    o.rdzv.no_lifeline = true;
    assert_core("core of node at 10.0.0.1: store in process 0, hosted 0, lifeline 0, seed 42\n");
    o.rdzv.no_lifeline = false;
    o.rdzv.access.https = true;
    assert_core("core of node at 10.0.0.1: store in process 0, hosted 0, lifeline 0, seed 42\n");
    o.rdzv.access.https = false;
    o.backend = BACKEND_ETCD_V3;
    assert_core("core of node at 10.0.0.1: store in process 0, hosted 0, lifeline 0, seed 42\n");
    o.backend = BACKEND_IN_PROCESS;
    assert_core("core of node at 10.0.0.1: store in process 1, hosted 0, lifeline 0, seed 42\n");
}

static void claims(void) {
    quiet();
    ASK({.kind = ACTION_CLAIM, .claim = {.what = "join", .round = -1}});
    assert_said(HEARD "claim join of round -1\nround line: join at 1000, own count 1\n");
}

static void test_restarts_of_a_node_are_told_as_its_own(void **state) {
    (void)state;
    o.restarts_by_node = true;
    assert_int_equal(run(claims), 0);
}

/* Each part that may not be had: what the agent exits with, and that nothing is left. */
static void test_what_cannot_be_made_ends_the_agent_and_leaves_nothing(void **state) {
    static const char *const parts[] = {"loop_new", "agent_config_await", "agent_store_new",
                                        "rendezvous_new", "agent_timer_new"};
    static const char *const of_legacy[] = {"tree_client_new", "legacy_new"};
    static const struct {
        int code, exit_code;
    } ways[] = {{-EINVAL, 64}, {-EHOSTUNREACH, 69}, {-EIO, 1}};
    (void)state;
    for (size_t w = 0; w < sizeof(ways) / sizeof(*ways); w++) {
        for (size_t i = 0; i < 7; i++) {
            o.backend = i < 5 ? BACKEND_EMBEDDED : BACKEND_ETCD_LEGACY;
            doubles.failing = i < 5 ? parts[i] : of_legacy[i - 5];
            doubles.failing_code = ways[w].code;
            err = (struct err){0};
            assert_int_equal(run(NULL), ways[w].exit_code);
            assert_int_equal(err.code, ways[w].code);
            assert_non_null(strstr(err.msg, doubles.failing));
            assert_int_equal(doubles.alive, 0);
            assert_int_equal(doubles.event, 0);
            assert_non_null(strstr(buf_str(&doubles.said), "guard ends\n"));
            quiet();
        }
    }
}

static void test_a_loop_that_breaks_ends_the_agent(void **state) {
    (void)state;
    doubles.loop_rc = -EIO;
    assert_int_equal(run(NULL), 1);
    assert_string_equal(err.msg, "the loop broke");
    assert_int_equal(doubles.alive, 0);
}

/* An end in the first step: no loop is run. */
static void never(void) {
    fail_msg("the loop was run");
}

static void test_who_is_to_end_at_once_does_not_wait(void **state) {
    (void)state;
    doubles.actions[0] = (struct action){.kind = ACTION_EXIT, .exit = {.code = 64, .text = "no"}};
    doubles.n = 1;
    assert_int_equal(run(never), 64);
}

/* ---- torchelastic's own rendezvous ---- */

static void legacy(void) {
    struct tree_answer answer = {.result = TREE_MISSING};
    quiet();
    ASK({.kind = ACTION_TREE, .tree = {.id = 5, .request = {.key = "/k"}}},
        {.kind = ACTION_TREE_CANCEL, .tree = {.id = 6}});
    assert_said("legacy core hears 1\ntree is sent 5: /k\ntree forgets 6\n");
    doubles.tree_fn(doubles.arg, 5, &answer);
    assert_said("legacy core hears 13: 5, 2\n");
    ASK({.kind = ACTION_LOOK_UP, .look_up = {.host = "a b", .round = 8}});
    assert_said("legacy core hears 1\na b is looked up\n");
    ASK({.kind = ACTION_LOOK_UP, .look_up = {.host = "c d", .round = 9}});
    assert_said("legacy core hears 1\nlook-up ends\nc d is looked up\n");
    doubles.alive--; /* it is over when it tells */
    doubles.host_fn(doubles.arg, true);
    assert_said("legacy core hears 15: round 9, found 1\n");
    ASK({.kind = ACTION_LOOK_UP, .look_up = {.host = "e f", .round = 10}});
    assert_said("legacy core hears 1\ne f is looked up\n");
    ASK({.kind = ACTION_STORE, .store = {.text = "is away", .lost = true}});
    assert_said("legacy core hears 1\nwarning, store: the etcd at h:1 is away: cut\n");
    ASK({.kind = ACTION_CLAIM, .claim = {.what = "join", .round = 1}});
    assert_said("legacy core hears 1\nclaim join of round 1\n"
                "round line: join at 1000, own count 1\n");
}

static void test_a_job_of_torchelastics_rendezvous_asks_a_tree(void **state) {
    (void)state;
    o.backend = BACKEND_ETCD_LEGACY;
    o.rdzv.etcd_prefix = "/p";
    doubles.trouble = "cut";
    assert_int_equal(run(legacy), 0);
    assert_int_equal(doubles.alive, 0);
    assert_said("events close\ntimer of workers ends\nevent log ends\nlegacy core ends\n"
                "look-up ends\ntree ends\n" DOWN_SIGNALS "guard ends\nloop ends\n");
    assert_int_equal(run(NULL), 0);
    assert_said("tree at h:1\nlegacy core of node below /p, seed 42\n" UP_AND
                "events open\nlegacy core hears 0\nevents close\ntimer of workers ends\n"
                "event log ends\nlegacy core ends\ntree ends\n" DOWN_SIGNALS
                "guard ends\nloop ends\n");
}

/* ---- an etcd of the job's own ---- */

static void etcd_ends(void) {
    assert_non_null(strstr(buf_str(&doubles.said), "etcd is watched\nevents open\n"));
    quiet();
    doubles.etcd_fn(doubles.arg, "no space");
    assert_said("error, store: the store, this job's own, has ended: no space\nloop stops\n");
    doubles.timer_fn(doubles.arg, 0);
    assert_said("");
}

static void etcd_ends_too(void) {
    doubles.signal_fn(doubles.arg, SIGTERM);
    quiet();
    doubles.etcd_fn(doubles.arg, "asked to");
    assert_said("error, store: the store, this job's own, has ended: asked to\n");
    doubles.timer_fn(doubles.arg, 0);
    assert_said(HEARD);
}

static void etcd_ends_at_last(void) {
    ASK({.kind = ACTION_EXIT, .exit = {.code = 3}});
    quiet();
    doubles.etcd_fn(doubles.arg, "bye");
    assert_said("error, store: the store, this job's own, has ended: bye\n");
}

static void test_the_end_of_an_own_etcd_is_the_end_unless_all_leave(void **state) {
    struct etcd *own = (struct etcd *)something;
    (void)state;
    doubles.scene = etcd_ends;
    assert_int_equal(agent_run(&o, (struct guard *)something, own, &err), 69);
    doubles.scene = etcd_ends_too;
    assert_int_equal(agent_run(&o, (struct guard *)something, own, &err), 0);
    doubles.scene = etcd_ends_at_last;
    assert_int_equal(agent_run(&o, (struct guard *)something, own, &err), 3);
    assert_int_equal(doubles.alive, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        TEST(test_each_action_is_done_by_whom_it_is_for),
        TEST(test_what_a_store_does_is_told_with_its_place_and_why),
        TEST(test_a_port_is_kept_until_another_is_asked_for_or_the_end),
        TEST(test_the_masters_port_is_that_of_rank_0_alone),
        TEST(test_a_round_is_started_with_all_that_the_core_says_of_it),
        TEST(test_output_is_told_only_where_there_is_a_folder),
        TEST(test_a_start_lets_the_port_go),
        TEST(test_workers_that_cannot_be_started_have_failed),
        TEST(test_what_workers_do_is_told_to_the_core_and_the_first_failure_noted),
        TEST(test_ends_of_groups_and_guards_are_told_to_the_core),
        TEST(test_signals_are_left_on_or_passed_on),
        TEST(test_a_signal_that_was_ignored_stays_so),
        TEST(test_the_end_of_a_job_is_told_to_all_who_ask),
        TEST(test_each_end_has_its_lines_and_its_code),
        TEST(test_a_store_that_was_not_reached_is_named_with_what_went_wrong),
        TEST(test_the_failed_worker_is_handed_on),
        TEST(test_all_is_made_at_the_beginning_and_given_back_at_the_end),
        TEST(test_where_the_store_is_decides_on_the_lifeline),
        TEST(test_restarts_of_a_node_are_told_as_its_own),
        TEST(test_what_cannot_be_made_ends_the_agent_and_leaves_nothing),
        TEST(test_a_loop_that_breaks_ends_the_agent),
        TEST(test_who_is_to_end_at_once_does_not_wait),
        TEST(test_a_job_of_torchelastics_rendezvous_asks_a_tree),
        TEST(test_the_end_of_an_own_etcd_is_the_end_unless_all_leave),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
