/* The observer at the other end of a socket pair: what it records of what it is told, whom it
 * believes, and who is held. The test itself plays the job; the observer is told that rankprobe is
 * this very program, or that it is not. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "base/sys/clock.h"
#include "harness/carrier/host_process.h"
#include "harness/observe/observe.h"
#include "scenarios/jobs/rankquake.h"

struct stage {
    struct loop *loop;
    struct history history;
    struct rounds rounds;
    struct recorder rec;
    struct observer *observer;
    int job; /* the job's end */
    int keep_tag;
    int early_tag; /* kept and let go while the listener is told */
    const struct rankquake_page *page;
};

static void on_record(void *arg, const struct record *r, struct event_client *from) {
    struct stage *s = arg;
    (void)r;
    if (s->early_tag && from && client_is_held(from)) {
        client_keep(from, s->early_tag);
        observer_release(s->observer, s->early_tag);
        assert_true(client_is_held(from));
    }
    if (s->keep_tag && from && client_is_held(from))
        client_keep(from, s->keep_tag);
}

static struct stage *stage_new(const char *probe) {
    struct stage *s = calloc(1, sizeof(*s));
    struct err err;
    int pair[2];
    s->loop = loop_new(&err);
    assert_int_equal(history_create(&s->history, NULL, &err), 0);
    rounds_init(&s->rounds, true);
    s->rec = (struct recorder){&s->history, &s->rounds, on_record, s};
    s->observer = observer_new(s->loop, &s->rec, probe, &err);
    assert_non_null(s->observer);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    observer_connect(s->observer, "n0", pair[0], getpid());
    s->job = pair[1];
    int fd = rankquake_receive_page_(s->job);
    assert_true(fd >= 0);
    s->page = mmap(NULL, sizeof(*s->page), PROT_READ, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(s->page, MAP_FAILED);
    assert_ptr_equal(mmap(NULL, sizeof(*s->page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0),
                     MAP_FAILED); /* a job cannot write what the harness waits for */
    close(fd);
    return s;
}

static void stage_free(struct stage *s) {
    observer_free(s->observer);
    munmap((void *)(uintptr_t)s->page, sizeof(*s->page));
    close(s->job);
    history_fini(&s->history);
    rounds_fini(&s->rounds);
    loop_free(s->loop);
    free(s);
}

static const struct record *say(struct stage *s, const char *text) {
    size_t before = s->history.n;
    assert_int_equal(send(s->job, text, strlen(text), 0), strlen(text));
    observer_drain(s->observer);
    assert_int_equal(s->history.n, before + 1);
    return s->history.records[before];
}

static bool may_go_on(const struct stage *s) {
    char byte;
    return recv(s->job, &byte, 1, MSG_DONTWAIT) == 1 && byte == 'G';
}

static void test_a_step_is_recorded_as_a_claim_with_its_fields(void **state) {
    (void)state;
    struct stage *s = stage_new("/bin/sh");
    const struct record *r = say(
        s, "{\"v\":1,\"seq\":3,\"lost\":1,\"kind\":\"step\",\"step\":7,\"loss\":0.5,\"x\":[1]}");
    assert_int_equal(r->source, SOURCE_JOB);
    assert_true(record_is(r, "step"));
    assert_int_equal(json_get_i64(r->fields, "step", -1), 7);
    assert_int_equal(json_get_i64(r->fields, "job_seq", -1), 3);
    assert_int_equal(json_get_i64(r->fields, "lost", -1), 1);
    assert_non_null(json_get(r->fields, "x")); /* unknown fields are kept */
    assert_int_equal(r->pid, getpid());
    assert_string_equal(r->node, "n0");
    stage_free(s);
}

static void test_an_unknown_kind_and_no_json_at_all_become_other(void **state) {
    (void)state;
    struct stage *s = stage_new("/bin/sh");
    assert_true(record_is(say(s, "{\"kind\":\"lunch\"}"), "other"));
    assert_true(record_is(say(s, "certainly {not JSON"), "other"));
    stage_free(s);
}

/* What the kernel says that the descriptor is of. */
static void assert_pidfd_of(int fd, pid_t pid) {
    char path[64], text[1024] = "", wanted[32];
    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
    fclose(f);
    snprintf(wanted, sizeof(wanted), "\nPid:\t%d\n", (int)pid);
    assert_non_null(strstr(text, wanted));
}

static void test_a_job_cannot_speak_for_rankprobe(void **state) {
    (void)state;
    const char *text = "{\"kind\":\"worker-start\",\"env\":{\"RANK\":\"0\",\"WORLD_SIZE\":\"1\"}}";
    struct stage *s = stage_new("/bin/sh");
    const struct record *r = say(s, text);
    assert_int_equal(r->source, SOURCE_JOB);
    assert_true(record_is(r, "other"));
    assert_int_equal(s->rounds.n, 0);
    stage_free(s);
    s = stage_new("/proc/self/exe");
    r = say(s, text);
    assert_int_equal(r->source, SOURCE_PROBE);
    assert_int_equal(s->rounds.n, 1);
    assert_pidfd_of(observer_worker_pidfd(s->observer, getpid()), getpid());
    assert_int_equal(observer_worker_pidfd(s->observer, getppid()), -1);
    stage_free(s);
}

/* Another process on the node; the test's end. */
static int connect_as(struct stage *s, pid_t pid) {
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    observer_connect(s->observer, "n0", pair[0], pid);
    close(rankquake_receive_page_(pair[1]));
    return pair[1];
}

/* Who runs the test plays rankprobe, and the test its child. */
static void test_a_child_that_speaks_before_the_start_is_read_belongs_to_the_worker(void **state) {
    char probe[64];
    (void)state;
    snprintf(probe, sizeof(probe), "/proc/%d/exe", (int)getppid());
    struct stage *s = stage_new(probe);
    assert_int_equal(say(s, "{\"kind\":\"done\"}")->pid, getpid());
    int worker = connect_as(s, getppid()), own = s->job;
    s->job = connect_as(s, getpid());
    const struct record *r = say(s, "{\"kind\":\"done\"}");
    assert_int_equal(r->pid, getppid());
    assert_int_equal(json_get_i64(r->fields, "speaker", 0), getpid());
    close(worker);
    close(own);
    stage_free(s);
}

/* The test's parent plays rankprobe and is given RANK 0 of 1; the test is below it. */
static struct stage *stage_below_a_worker(int *ret_worker) {
    char probe[64];
    snprintf(probe, sizeof(probe), "/proc/%d/exe", (int)getppid());
    struct stage *s = stage_new(probe);
    *ret_worker = connect_as(s, getppid());
    int own = s->job;
    s->job = *ret_worker;
    say(s, "{\"kind\":\"worker-start\",\"env\":{\"RANK\":\"0\",\"WORLD_SIZE\":\"1\"}}");
    close(own);
    s->job = connect_as(s, getpid());
    return s;
}

static void test_a_rank_that_says_who_it_is_becomes_a_worker(void **state) {
    (void)state;
    int worker;
    struct stage *s = stage_below_a_worker(&worker);
    size_t before = s->history.n;
    const char *text = "{\"kind\":\"rank\",\"env\":{\"RANK\":\"1\",\"WORLD_SIZE\":\"2\"}}";
    assert_int_equal(send(s->job, text, strlen(text), 0), strlen(text));
    observer_drain(s->observer);
    assert_int_equal(s->history.n, before + 2); /* its start and its exec */
    const struct record *r = s->history.records[before];
    assert_true(record_is(r, "worker-start"));
    assert_int_equal(r->pid, getpid());
    assert_int_equal(json_get_i64(r->fields, "below", 0), getppid());
    assert_string_equal(json_get_string(r->fields, "by", ""), "job");
    assert_int_equal(say(s, "{\"kind\":\"step\",\"step\":1}")->pid, getpid());
    assert_int_equal(s->rounds.n, 1);
    assert_int_equal(s->rounds.v[0]->world_size, 2);
    assert_true(observer_worker_pidfd(s->observer, getpid()) >= 0);
    before = s->history.n; /* said again it is nothing new */
    assert_int_equal(send(s->job, text, strlen(text), 0), strlen(text));
    observer_drain(s->observer);
    assert_int_equal(s->history.n, before);
    close(worker);
    stage_free(s);
}

static void test_a_child_of_the_same_rank_and_no_rank_at_all_are_no_workers(void **state) {
    (void)state;
    static const char *const texts[] = {
        "{\"kind\":\"rank\",\"env\":{\"RANK\":\"0\",\"WORLD_SIZE\":\"1\"}}",
        "{\"kind\":\"rank\",\"env\":{\"RANK\":\"2\",\"WORLD_SIZE\":\"2\"}}",
        "{\"kind\":\"rank\",\"env\":{\"RANK\":\"one\",\"WORLD_SIZE\":\"2\"}}",
        "{\"kind\":\"rank\"}",
    };
    int worker;
    struct stage *s = stage_below_a_worker(&worker);
    size_t before = s->history.n;
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        assert_int_equal(send(s->job, texts[i], strlen(texts[i]), 0), strlen(texts[i]));
    observer_drain(s->observer);
    assert_int_equal(s->history.n, before);
    assert_int_equal(say(s, "{\"kind\":\"step\",\"step\":1}")->pid, getppid());
    close(worker);
    stage_free(s);
}

/* What it was started with stands in /proc: the kernel is asked, not the process. */
static void test_a_child_that_was_given_a_rank_is_a_worker_from_its_first_connection(void **state) {
    (void)state;
    int worker, ready[2];
    struct stage *s = stage_below_a_worker(&worker);
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        char *const env[] = {"RANK=1", "WORLD_SIZE=2", "HOME=/secret", NULL};
        dup2(ready[1], STDOUT_FILENO);
        execle("/bin/sh", "sh", "-c", "echo; exec sleep 1000", (char *)NULL, env);
        _exit(1);
    }
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    size_t before = s->history.n;
    int its = connect_as(s, child);
    assert_int_equal(s->history.n, before + 2);
    const struct record *r = s->history.records[before];
    assert_int_equal(r->pid, child);
    assert_int_equal(json_get_i64(r->fields, "below", 0), getppid());
    assert_string_equal(json_get_string(r->fields, "by", ""), "kernel");
    assert_string_equal(json_get_string(json_get(r->fields, "env"), "RANK", ""), "1");
    assert_null(json_get(json_get(r->fields, "env"), "HOME"));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_int_equal(rounds_worker(&s->rounds, child)->world_size, 2);
    close(its);
    close(worker);
    close(ready[0]);
    close(ready[1]);
    stage_free(s);
}

static void test_a_job_cannot_name_the_source_node_or_stamp_of_a_record(void **state) {
    (void)state;
    struct stage *s = stage_new("/bin/sh");
    const struct record *r = say(s, "{\"kind\":\"done\",\"source\":\"kernel\",\"node\":\"n9\","
                                    "\"t\":1,\"pid\":1}");
    assert_int_equal(r->source, SOURCE_JOB);
    assert_string_equal(r->node, "n0");
    assert_true(r->t_ns > 1);
    assert_int_equal(r->pid, getpid());
    stage_free(s);
}

static void test_an_armed_event_waits_until_it_is_released(void **state) {
    (void)state;
    struct stage *s = stage_new("/bin/sh");
    observer_arm(s->observer, 1u << RANKQUAKE_STEP, 5);
    assert_int_equal(s->page->kinds, 1u << RANKQUAKE_STEP);
    assert_int_equal(s->page->next_step, 5);
    s->keep_tag = 3;
    say(s, "{\"kind\":\"step\",\"step\":5,\"armed\":1}");
    assert_false(may_go_on(s));
    observer_release(s->observer, 2);
    assert_false(may_go_on(s));
    observer_release(s->observer, 3);
    assert_true(may_go_on(s));
    observer_release(s->observer, 3);
    assert_false(may_go_on(s));
    stage_free(s);
}

static void count(void *arg, const char *node, pid_t pid, pid_t speaker) {
    assert_string_equal(node, "n0");
    assert_int_equal(pid, getpid());
    ++*(int *)arg;
}

static int kept(const struct stage *s, int tag) {
    int n = 0;
    observer_kept(s->observer, tag, count, &n);
    return n;
}

/* One entry may be in force before the next has so much as heard of the event. */
static void test_a_sender_that_several_keep_goes_on_with_the_last(void **state) {
    (void)state;
    struct stage *s = stage_new("/bin/sh");
    s->early_tag = 1;
    s->keep_tag = 2;
    say(s, "{\"kind\":\"step\",\"step\":5,\"armed\":1}");
    assert_false(may_go_on(s));
    assert_int_equal(kept(s, 1), 0);
    assert_int_equal(kept(s, 2), 1);
    observer_release(s->observer, 1);
    assert_false(may_go_on(s));
    observer_release(s->observer, 2);
    assert_true(may_go_on(s));
    s->keep_tag = 0;
    say(s, "{\"kind\":\"step\",\"step\":6,\"armed\":1}");
    assert_true(may_go_on(s)); /* the only one is in force already */
    assert_false(may_go_on(s));
    stage_free(s);
}

static void test_an_armed_event_that_nobody_wants_goes_on_at_once(void **state) {
    (void)state;
    struct stage *s = stage_new("/bin/sh");
    say(s, "{\"kind\":\"step\",\"step\":5,\"armed\":1}");
    assert_true(may_go_on(s));
    say(s, "{\"kind\":\"step\",\"step\":6}");
    assert_false(may_go_on(s)); /* not armed: never answered */
    stage_free(s);
}

static void test_arming_anew_is_seen_by_its_number(void **state) {
    (void)state;
    struct stage *s = stage_new("/bin/sh");
    uint64_t before = s->page->armed_seq;
    observer_arm(s->observer, 1u << RANKQUAKE_READY, 0);
    observer_arm(s->observer, 1u << RANKQUAKE_READY, 0); /* the same: nothing new */
    assert_int_equal(s->page->armed_seq, before + 1);
    stage_free(s);
}

/* A job that sends as fast as it can: its socket is never empty. */
static void flood(void *arg, int fd, int what) {
    static const char text[] = "{\"v\":1,\"kind\":\"step\",\"step\":1}";
    (void)arg, (void)what;
    while (send(fd, text, sizeof(text) - 1, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        ;
}

static void enough(void *arg, int64_t now) {
    (void)now;
    loop_stop(arg);
}

static void test_whoever_sends_without_end_is_not_read_without_end(void **state) {
    (void)state;
    struct stage *s = stage_new("/bin/sh");
    struct err err = {0};
    struct loop_source *sender = loop_fd(s->loop, s->job, LOOP_WRITE, flood, s);
    struct loop_source *end = loop_timer(s->loop, enough, s->loop);
    int64_t began = clock_monotonic_ns();
    do {
        loop_timer_at(end, clock_monotonic_ns() + 600000000);
        assert_int_equal(loop_run(s->loop, &err), 0);
    } while (s->history.n <= 100);
    int64_t windows = (clock_monotonic_ns() - began) / 250000000 + 2;
    assert_true((int64_t)s->history.n <= windows * 2000);
    loop_source_free(sender);
    loop_source_free(end);
    observer_drain(s->observer); /* comes to an end too */
    stage_free(s);
}

static int let_go, forgotten;
static void on_let_go(void *arg) {
    let_go++;
}
static void on_forgotten(void *arg) {
    forgotten++;
}

/* What a helper tells of a process on another host is recorded as what is heard here, and who waits
 * there is let go by word. */
static void test_a_job_on_another_host_is_heard_held_and_followed_to_its_end(void **state) {
    (void)state;
    struct stage *s = stage_new("/bin/sh");
    pid_t number = host_process_number(1, 44);
    const struct clock_stamp at = {.t_ns = 9, .bound_ns = 3, .there_ns = 7000000009};
    static const char start[] = "{\"kind\":\"worker-start\",\"env\":{\"RANK\":\"0\"}}";
    static const char step[] = "{\"kind\":\"step\",\"step\":3,\"armed\":1}";
    let_go = forgotten = 0;
    struct event_client *c =
        observer_join(s->observer, &(struct far_speaker){.node = "n1",
                                                         .pid = number,
                                                         .probe = true,
                                                         .end = host_process_watch(number, 5),
                                                         .release = on_let_go,
                                                         .forgotten = on_forgotten});
    observer_hear(c, start, strlen(start), &at);
    assert_true(observer_worker_pidfd(s->observer, number) >= 0);
    s->keep_tag = 6;
    observer_hear(c, step, strlen(step), &at);
    const struct record *r = s->history.records[s->history.n - 1];
    assert_true(record_is(r, "step"));
    assert_string_equal(r->node, "n1");
    assert_int_equal(r->pid, number);
    assert_int_equal(let_go, 0);
    observer_release(s->observer, 6);
    assert_int_equal(let_go, 1);
    host_process_ended(number, true, SIGKILL, &at);
    observer_drain(s->observer);
    r = s->history.records[s->history.n - 1];
    assert_true(record_is(r, "worker-exit"));
    assert_int_equal(json_get_i64(r->fields, "signal", 0), SIGKILL);
    observer_leave(c, false);
    assert_int_equal(forgotten, 0); /* who says that it has gone knows it */
    stage_free(s);
    host_process_forget_all();
}

static void test_a_missing_rankprobe_is_an_error_that_names_it(void **state) {
    (void)state;
    struct err err = {0};
    assert_null(observer_new(NULL, NULL, "/nowhere/rankprobe", &err));
    assert_non_null(strstr(err.msg, "/nowhere/rankprobe"));
}

/* ---- what was given ---- */

static const struct record *first_of(const struct stage *s, const char *kind) {
    history_each(r, &s->history) if (record_is(r, kind)) return r;
    return NULL;
}

static void test_what_a_worker_is_given_is_read_when_its_probe_connects(void **state) {
    (void)state;
    struct stage *s = stage_new("/bin/sh");
    assert_null(first_of(s, "given"));
    stage_free(s);
    s = stage_new("/proc/self/exe");
    const struct record *r = first_of(s, "given");
    assert_non_null(r);
    assert_int_equal(r->source, SOURCE_KERNEL);
    assert_string_equal(r->node, "n0");
    assert_int_equal(r->pid, getpid());
    assert_non_null(json_first(r->fields));
    stage_free(s);
}

static void test_what_a_program_will_be_given_is_the_word_of_the_harness(void **state) {
    (void)state;
    struct stage *s = stage_new("/bin/sh");
    static const char *const env[] = {"A=B", NULL};
    observer_record_planned(s->observer, "n3", getpid(), env, "/tmp");
    const struct record *r = first_of(s, "given");
    assert_non_null(r);
    assert_int_equal(r->source, SOURCE_HARNESS);
    assert_string_equal(r->node, "n3");
    assert_int_equal(r->pid, 0);
    stage_free(s);
}

static void test_what_was_given_on_another_host_is_told_with_its_stamp(void **state) {
    (void)state;
    struct stage *s = stage_new("/bin/sh");
    ARENA_FINI struct arena a = {0};
    const struct clock_stamp at = {.t_ns = 9, .bound_ns = 3, .there_ns = 7000000009};
    static const char text[] = "{\"node\":\"x\",\"t\":1,\"pid\":5,\"umask\":18}";
    const struct json *given = json_parse(&a, text, strlen(text), NULL);
    for (pid_t pid = 0; pid <= 77; pid += 77) {
        observer_record_given(s->observer, "n1", pid, given, &at);
        const struct record *r = s->history.records[s->history.n - 1];
        assert_true(record_is(r, "given"));
        assert_int_equal(r->source, pid ? SOURCE_KERNEL : SOURCE_HARNESS);
        assert_string_equal(r->node, "n1");
        assert_int_equal(r->pid, pid);
        assert_int_equal(r->t_ns, 9);
        assert_int_equal(json_get_i64(r->fields, "umask", -1), 18);
        assert_null(json_get(r->fields, "node"));
    }
    assert_non_null(observer_given_key(s->observer));
    stage_free(s);
}

/* Once it runs something else, and not where that could not be executed. */
static void test_a_probe_that_has_become_the_worker_is_told(void **state) {
    (void)state;
    static const char start[] =
        "{\"kind\":\"worker-start\",\"env\":{\"RANK\":\"0\",\"WORLD_SIZE\":\"1\"}}";
    for (int failed = 0; failed <= 1; failed++) {
        struct stage *s = stage_new("/proc/self/exe");
        int go[2], done[2];
        char byte = 0;
        assert_int_equal(pipe2(go, O_CLOEXEC), 0);
        assert_int_equal(pipe2(done, O_CLOEXEC), 0);
        pid_t child = fork();
        if (child == 0) {
            (void)!read(go[0], &byte, 1);
            execl("/bin/sh", "sh", "-c", "exec sleep 1000", (char *)NULL);
            _exit(1);
        }
        close(done[1]);
        int own = s->job;
        s->job = connect_as(s, child);
        assert_int_equal(say(s, start)->pid, child);
        if (failed)
            assert_true(record_is(say(s, "{\"kind\":\"exec-failed\"}"), "exec-failed"));
        assert_int_equal(write(go[1], "", 1), 1);
        assert_int_equal(read(done[0], &byte, 1), 0); /* it is executed */
        assert_null(first_of(s, "worker-exec"));
        close(s->job);
        observer_drain(s->observer);
        const struct record *r = first_of(s, "worker-exec");
        assert_int_equal(r == NULL, failed);
        if (r) {
            assert_int_equal(r->source, SOURCE_PROBE);
            assert_int_equal(r->pid, child);
            assert_string_equal(r->node, "n0");
        }
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        s->job = own;
        close(go[0]), close(go[1]), close(done[0]);
        stage_free(s);
    }
}

/* ---- what is asked of jobs ---- */

static void test_when_a_job_has_sent_it_is_noted_where_that_is_wanted(void **state) {
    (void)state;
    struct stage *s = stage_new("/bin/sh");
    assert_null(json_get(say(s, "{\"kind\":\"step\",\"step\":1}")->fields, "sent"));
    observer_note_sent(s->observer);
    int own = s->job;
    s->job = connect_as(s, getpid());
    int64_t before_ns = clock_monotonic_ns();
    const struct record *r = say(s, "{\"kind\":\"step\",\"step\":2,\"sent\":7}");
    int64_t sent_ns = json_get_i64(r->fields, "sent", -1);
    assert_true(sent_ns >= before_ns - 1000000 && sent_ns <= r->t_ns);
    close(s->job);
    s->job = own;
    stage_free(s);
}

static struct {
    int n;
    uint32_t kinds;
    uint64_t step;
} armed;
static void on_arm(void *arg, uint32_t kinds, uint64_t next_step) {
    ++*(int *)arg;
    armed.kinds = kinds;
    armed.step = next_step;
}

static void test_whoever_arms_elsewhere_is_told_at_once_and_ever_after(void **state) {
    (void)state;
    struct stage *s = stage_new("/bin/sh");
    int told = 0;
    observer_ask(s->observer, true, false);
    uint32_t asked = 1u << RANKQUAKE_ASK_WEIGHTS;
    assert_int_equal(s->page->kinds, asked);
    observer_arm(s->observer, observer_kind("step"), 5);
    observer_on_arm(s->observer, on_arm, &told);
    assert_int_equal(told, 1);
    assert_int_equal(armed.kinds, 1u << RANKQUAKE_STEP | asked);
    assert_int_equal(armed.step, 5);
    observer_arm(s->observer, observer_kind("ready"), 0);
    assert_int_equal(told, 2);
    assert_int_equal(armed.kinds, 1u << RANKQUAKE_READY | asked);
    assert_int_equal(s->page->kinds, armed.kinds);
    observer_ask(s->observer, false, true);
    assert_int_equal(armed.kinds, 1u << RANKQUAKE_ASK_SAMPLES);
    assert_int_equal(observer_kind("lunch"), 1u << RANKQUAKE_OTHER);
    stage_free(s);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_step_is_recorded_as_a_claim_with_its_fields),
        cmocka_unit_test(test_an_unknown_kind_and_no_json_at_all_become_other),
        cmocka_unit_test(test_a_job_cannot_speak_for_rankprobe),
        cmocka_unit_test(test_a_child_that_speaks_before_the_start_is_read_belongs_to_the_worker),
        cmocka_unit_test(test_a_rank_that_says_who_it_is_becomes_a_worker),
        cmocka_unit_test(test_a_child_of_the_same_rank_and_no_rank_at_all_are_no_workers),
        cmocka_unit_test(test_a_child_that_was_given_a_rank_is_a_worker_from_its_first_connection),
        cmocka_unit_test(test_a_job_cannot_name_the_source_node_or_stamp_of_a_record),
        cmocka_unit_test(test_an_armed_event_waits_until_it_is_released),
        cmocka_unit_test(test_a_sender_that_several_keep_goes_on_with_the_last),
        cmocka_unit_test(test_an_armed_event_that_nobody_wants_goes_on_at_once),
        cmocka_unit_test(test_arming_anew_is_seen_by_its_number),
        cmocka_unit_test(test_whoever_sends_without_end_is_not_read_without_end),
        cmocka_unit_test(test_a_job_on_another_host_is_heard_held_and_followed_to_its_end),
        cmocka_unit_test(test_what_a_worker_is_given_is_read_when_its_probe_connects),
        cmocka_unit_test(test_what_a_program_will_be_given_is_the_word_of_the_harness),
        cmocka_unit_test(test_what_was_given_on_another_host_is_told_with_its_stamp),
        cmocka_unit_test(test_a_probe_that_has_become_the_worker_is_told),
        cmocka_unit_test(test_when_a_job_has_sent_it_is_noted_where_that_is_wanted),
        cmocka_unit_test(test_whoever_arms_elsewhere_is_told_at_once_and_ever_after),
        cmocka_unit_test(test_a_missing_rankprobe_is_an_error_that_names_it),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
