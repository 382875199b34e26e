/* What is recorded of a worker that ends, of what the kernel says of it and when. Here the kernel
 * is played: a pidfd is an eventfd that becomes readable, process events come out of a pipe. With
 * the real one in spawn_pidfds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/sys/clock.h"
#include "harness/observe/pidfds.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { LOST = -1, PID = 100, EXIT_3 = 3 << 8 };

struct stage {
    struct loop *loop;
    struct history history;
    struct rounds rounds;
    struct recorder rec;
    struct pidfds *pidfds;
    int kernel;                   /* process events are written here */
    const struct proc_exit *last; /* told when the pidfd has woken */
    int64_t woke_ns;
};

/* The kernel as the test wants it. */
static struct {
    int events[2], opened;
    struct loop *loop;
    bool info_works, refuses;
    int zombie; /* status that /proc tells; -1: it has been reaped */
    int reaped; /* closed by the reaper when the pidfd was asked too early; -1: it was not */
} host = {.reaped = -1};

static int no_zombie(pid_t pid, int *ret_status) {
    (void)pid;
    if (host.zombie >= 0)
        *ret_status = host.zombie;
    return host.zombie < 0 ? -ESRCH : 0;
}

static int info(int pidfd, int *ret_status) {
    (void)pidfd;
    assert_true(host.info_works); /* never asked where it is known not to answer */
    if (host.reaped >= 0) {
        close(host.reaped);
        host.reaped = -1;
        return -EAGAIN;
    }
    *ret_status = EXIT_3;
    return 0;
}

static bool info_works(void) {
    return host.info_works;
}

static int events_open(struct err *err) {
    host.opened++;
    return host.refuses ? err_set(err, -EPERM, "refused") : host.events[0];
}

/* Nothing more to read ends the turn of the loop. */
static int events_read(int fd, struct proc_exit *ret) {
    if (read(fd, ret, sizeof(*ret)) != sizeof(*ret)) {
        loop_stop(host.loop);
        return 0;
    }
    return ret->pid == LOST ? -ENOBUFS : 1;
}

static void events_close(int fd) {
    (void)fd;
    host.opened--;
}

static const struct exit_sources played = {
    .zombie = no_zombie,
    .info = info,
    .info_works = info_works,
    .events_open = events_open,
    .events_read = events_read,
    .events_close = events_close,
};

static void on_record(void *arg, const struct record *r, struct event_client *from) {
    struct stage *s = arg;
    (void)r;
    (void)from;
    loop_stop(s->loop);
}

static void tell(struct stage *s, struct proc_exit e) {
    assert_int_equal(write(s->kernel, &e, sizeof(e)), sizeof(e));
}

static void on_ended(void *arg, pid_t pid) {
    struct stage *s = arg;
    (void)pid;
    s->woke_ns = clock_monotonic_ns();
    if (s->last)
        tell(s, *s->last);
}

static struct stage *stage_new(void) {
    struct stage *s = calloc(1, sizeof(*s));
    struct err err;
    assert_int_equal(pipe2(host.events, O_CLOEXEC | O_NONBLOCK), 0);
    s->kernel = host.events[1];
    s->loop = host.loop = loop_new(&err);
    assert_int_equal(history_create(&s->history, NULL, &err), 0);
    rounds_init(&s->rounds, true);
    s->rec = (struct recorder){&s->history, &s->rounds, on_record, s};
    s->pidfds = pidfds_new(s->loop, &s->rec, &played, on_ended, s);
    return s;
}

static struct stage *stage_reaped(void) {
    host.info_works = host.refuses = false;
    host.zombie = -1;
    return stage_new();
}

static void stage_free(struct stage *s) {
    pidfds_free(s->pidfds);
    assert_int_equal(host.opened, host.refuses);
    host.opened = 0;
    close(host.events[0]);
    close(host.events[1]);
    history_fini(&s->history);
    rounds_fini(&s->rounds);
    loop_free(s->loop);
    free(s);
}

static int watch(struct stage *s, pid_t pid, int64_t since_ns) {
    int pidfd = eventfd(0, EFD_CLOEXEC);
    pidfds_watch(s->pidfds, "n0", pid, pidfd, since_ns);
    return pidfd;
}

/* To be called once per pidfd: it is closed when the record has been written. */
static void die(int pidfd) {
    assert_int_equal(eventfd_write(pidfd, 1), 0);
}

static void turn(struct stage *s) {
    assert_int_equal(loop_run(s->loop, NULL), 0);
}

static struct proc_exit exited(pid_t pid, pid_t thread, int status) {
    return (struct proc_exit){
        .pid = pid, .thread = thread, .status = status, .t_ns = clock_monotonic_ns()};
}

/* The only record there is: 1000 for unknown, minus the signal, or the code. */
static int recorded(const struct stage *s) {
    assert_int_equal(s->history.n, 1);
    const struct record *r = s->history.records[0];
    assert_string_equal(r->kind, "worker-exit");
    assert_int_equal(r->pid, PID);
    assert_int_equal(pidfds_find(s->pidfds, PID), -1);
    if (record_get(r, "unknown"))
        return 1000;
    return record_get(r, "signal") ? -(int)record_i64(r, "signal", 0)
                                   : (int)record_i64(r, "code", 999);
}

static void
test_a_status_that_comes_after_the_end_is_waited_for_and_stamped_with_the_end(void **state) {
    (void)state;
    struct stage *s = stage_reaped();
    struct proc_exit e = exited(PID, PID, EXIT_3);
    assert_string_equal(pidfds_way(s->pidfds), "events");
    int64_t before_ns = clock_monotonic_ns();
    int pidfd = watch(s, PID, before_ns);
    e.t_ns = INT64_MAX;
    s->last = &e;
    die(pidfd);
    turn(s);
    assert_int_equal(recorded(s), 3);
    assert_in_range(s->history.records[0]->t_ns, before_ns, s->woke_ns);
    stage_free(s);
}

static void test_a_signal_is_recorded_as_one(void **state) {
    (void)state;
    struct stage *s = stage_reaped();
    int pidfd = watch(s, PID, 0);
    die(pidfd);
    tell(s, exited(PID, PID, SIGKILL));
    pidfds_drain(s->pidfds);
    assert_int_equal(recorded(s), -SIGKILL);
    stage_free(s);
}

static void test_without_a_word_it_is_unknown_after_a_while(void **state) {
    (void)state;
    for (int drains = 0; drains < 2; drains++) {
        struct stage *s = stage_reaped();
        die(watch(s, PID, 0));
        for (int i = 0; i < 2 && !drains && !s->history.n; i++)
            turn(s); /* the end; the deadline */
        if (drains)
            pidfds_drain(s->pidfds);
        assert_int_equal(recorded(s), 1000);
        assert_true(s->history.records[0]->t_ns <= s->woke_ns);
        stage_free(s);
    }
}

static void test_a_worker_whose_status_is_awaited_is_dead(void **state) {
    (void)state;
    struct stage *s = stage_reaped();
    die(watch(s, PID, 0));
    turn(s);
    assert_int_equal(s->history.n, 0);
    assert_int_equal(pidfds_find(s->pidfds, PID), -1);
    stage_free(s);
}

static void test_threads_that_end_alike_after_the_first_one_make_no_doubt(void **state) {
    (void)state;
    struct stage *s = stage_reaped();
    int pidfd = watch(s, PID, 0);
    tell(s, exited(PID, PID, EXIT_3));
    tell(s, exited(PID, 101, EXIT_3));
    turn(s);
    assert_int_equal(s->history.n, 0);
    die(pidfd);
    tell(s, exited(PID, 102, EXIT_3));
    pidfds_drain(s->pidfds);
    assert_int_equal(recorded(s), 3);
    stage_free(s);
}

static void
test_a_first_thread_that_left_before_another_ended_the_process_is_not_believed(void **state) {
    (void)state;
    for (int order = 0; order < 2; order++) {
        struct stage *s = stage_reaped();
        int pidfd = watch(s, PID, 0);
        tell(s, order ? exited(PID, 101, EXIT_3) : exited(PID, PID, 0));
        turn(s);
        die(pidfd);
        turn(s);
        assert_int_equal(s->history.n, 0);
        tell(s, order ? exited(PID, PID, 0) : exited(PID, 101, EXIT_3));
        pidfds_drain(s->pidfds);
        assert_int_equal(recorded(s), 1000);
        stage_free(s);
    }
}

static void test_what_is_told_behind_the_first_threads_end_is_read_too(void **state) {
    (void)state;
    struct stage *s = stage_reaped();
    int pidfd = watch(s, PID, 0);
    die(pidfd);
    tell(s, exited(PID, PID, 0));
    tell(s, exited(PID, 101, EXIT_3));
    pidfds_drain(s->pidfds);
    assert_int_equal(recorded(s), 1000);
    stage_free(s);
}

static void test_threads_that_leave_or_are_taken_away_by_an_exec_make_no_doubt(void **state) {
    (void)state;
    struct stage *s = stage_reaped();
    int pidfd = watch(s, PID, 0);
    tell(s, exited(PID, 101, 0));
    tell(s, exited(PID, 102, SIGKILL));
    tell(s, exited(PID, PID, SIGKILL));
    turn(s);
    die(pidfd);
    tell(s, exited(PID, PID, EXIT_3));
    pidfds_drain(s->pidfds);
    assert_int_equal(recorded(s), 3);
    stage_free(s);
}

static void test_the_end_of_an_earlier_process_with_the_number_is_not_taken(void **state) {
    (void)state;
    struct stage *s = stage_reaped();
    tell(s, exited(PID, PID, 0)); /* before it was watched */
    turn(s);
    int pidfd = watch(s, PID, clock_monotonic_ns() + 3600000000000);
    tell(s, exited(PID, PID, 0)); /* late news, from before it was there */
    die(pidfd);
    pidfds_drain(s->pidfds);
    assert_int_equal(recorded(s), 1000);
    stage_free(s);
}

static void test_an_end_that_is_told_before_it_is_watched_counts(void **state) {
    (void)state;
    struct stage *s = stage_reaped();
    int64_t since_ns = clock_monotonic_ns();
    for (pid_t other = 1000; other < 1400; other++)
        tell(s, exited(other, other, 0));
    tell(s, exited(PID, PID, EXIT_3));
    turn(s);
    int pidfd = eventfd(1, EFD_CLOEXEC); /* dead already */
    pidfds_watch(s->pidfds, "n0", PID, pidfd, since_ns);
    pidfds_drain(s->pidfds);
    assert_int_equal(recorded(s), 3);
    stage_free(s);
}

static void test_lost_events_make_those_that_wait_unknown_and_nobody_else(void **state) {
    (void)state;
    struct stage *s = stage_reaped();
    int pidfd = watch(s, PID, 0);
    struct proc_exit lost = {.pid = LOST};
    s->last = &lost;
    die(pidfd);
    pidfds_drain(s->pidfds);
    assert_int_equal(recorded(s), 1000);
    s->last = NULL;
    int later = watch(s, PID + 1, 0);
    tell(s, lost);
    turn(s);
    die(later);
    tell(s, exited(PID + 1, PID + 1, 0));
    pidfds_drain(s->pidfds);
    assert_int_equal(s->history.n, 2);
    assert_int_equal(record_i64(s->history.records[1], "code", -1), 0);
    stage_free(s);
}

static void test_a_loss_between_the_ends_of_threads_makes_it_unknown(void **state) {
    (void)state;
    struct stage *s = stage_reaped();
    int pidfd = watch(s, PID, 0);
    tell(s, exited(PID, PID, EXIT_3));
    tell(s, (struct proc_exit){.pid = LOST});
    turn(s);
    die(pidfd);
    tell(s, exited(PID, 101, EXIT_3));
    pidfds_drain(s->pidfds);
    assert_int_equal(recorded(s), 1000);
    stage_free(s);
}

static void test_a_zombie_needs_no_event(void **state) {
    (void)state;
    struct stage *s = stage_reaped();
    host.zombie = EXIT_3;
    die(watch(s, PID, 0));
    turn(s);
    assert_int_equal(recorded(s), 3);
    stage_free(s);
}

static void test_events_are_not_opened_where_the_pidfd_tells(void **state) {
    (void)state;
    host.refuses = false;
    host.zombie = -1;
    host.info_works = true;
    struct stage *s = stage_new();
    assert_int_equal(host.opened, 0);
    assert_string_equal(pidfds_way(s->pidfds), "pidfd");
    die(watch(s, PID, 0));
    turn(s);
    assert_int_equal(recorded(s), 3);
    stage_free(s);
}

static void test_one_that_is_being_reaped_is_waited_for(void **state) {
    (void)state;
    int ends[2];
    host.refuses = false;
    host.zombie = -1;
    host.info_works = true;
    struct stage *s = stage_new();
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    host.reaped = ends[1];
    pidfds_watch(s->pidfds, "n0", PID, ends[0], 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    turn(s);
    assert_int_equal(recorded(s), 3);
    stage_free(s);
}

static void test_where_events_are_refused_it_is_unknown_at_once(void **state) {
    (void)state;
    host.info_works = false;
    host.zombie = -1;
    host.refuses = true;
    struct stage *s = stage_new();
    assert_string_equal(pidfds_way(s->pidfds), "zombie");
    die(watch(s, PID, 0));
    turn(s);
    assert_int_equal(recorded(s), 1000);
    stage_free(s);
}

/* ---- the real kernel ---- */

static const char *self;

static void experiment(const char *name) {
    char command[512], said[512] = "";
    snprintf(command, sizeof(command), "%.*sspawn_pidfds %s", (int)(strrchr(self, '/') + 1 - self),
             self, name);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    if (!fgets(said, sizeof(said), out))
        said[0] = '\0';
    assert_int_equal(pclose(out), 0);
    if (strncmp(said, "skip: ", 6) == 0) {
        print_message("%s", said);
        skip();
    }
    assert_string_equal(said, "ok\n");
}

#define EXPERIMENT(function, name)                                                                 \
    static void function(void **state) {                                                           \
        (void)state;                                                                               \
        experiment(name);                                                                          \
    }

EXPERIMENT(test_codes_and_signals_of_reaped_children_come_by_events, "ends")
EXPERIMENT(test_many_children_that_end_at_once_are_told_apart, "many")
EXPERIMENT(test_a_process_of_many_threads_ends_as_its_first_one, "threads")
EXPERIMENT(test_a_process_whose_first_thread_left_early_is_unknown, "left-early")
EXPERIMENT(test_more_ends_than_the_kernel_keeps_are_unknown_and_hold_nobody_up, "overflow")
EXPERIMENT(test_other_namespaces_are_refused, "refused")

int main(int argc, char **argv) {
    self = argv[0];
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_a_status_that_comes_after_the_end_is_waited_for_and_stamped_with_the_end),
        cmocka_unit_test(test_a_signal_is_recorded_as_one),
        cmocka_unit_test(test_without_a_word_it_is_unknown_after_a_while),
        cmocka_unit_test(test_a_worker_whose_status_is_awaited_is_dead),
        cmocka_unit_test(test_threads_that_end_alike_after_the_first_one_make_no_doubt),
        cmocka_unit_test(
            test_a_first_thread_that_left_before_another_ended_the_process_is_not_believed),
        cmocka_unit_test(test_what_is_told_behind_the_first_threads_end_is_read_too),
        cmocka_unit_test(test_threads_that_leave_or_are_taken_away_by_an_exec_make_no_doubt),
        cmocka_unit_test(test_the_end_of_an_earlier_process_with_the_number_is_not_taken),
        cmocka_unit_test(test_an_end_that_is_told_before_it_is_watched_counts),
        cmocka_unit_test(test_lost_events_make_those_that_wait_unknown_and_nobody_else),
        cmocka_unit_test(test_a_loss_between_the_ends_of_threads_makes_it_unknown),
        cmocka_unit_test(test_a_zombie_needs_no_event),
        cmocka_unit_test(test_events_are_not_opened_where_the_pidfd_tells),
        cmocka_unit_test(test_one_that_is_being_reaped_is_waited_for),
        cmocka_unit_test(test_where_events_are_refused_it_is_unknown_at_once),
        cmocka_unit_test(test_codes_and_signals_of_reaped_children_come_by_events),
        cmocka_unit_test(test_many_children_that_end_at_once_are_told_apart),
        cmocka_unit_test(test_a_process_of_many_threads_ends_as_its_first_one),
        cmocka_unit_test(test_a_process_whose_first_thread_left_early_is_unknown),
        cmocka_unit_test(test_more_ends_than_the_kernel_keeps_are_unknown_and_hold_nobody_up),
        cmocka_unit_test(test_other_namespaces_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
