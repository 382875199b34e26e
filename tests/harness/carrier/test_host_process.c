/* Processes of other hosts: their numbers here, their ends, and what is known of them. */
#include "harness/carrier/host_process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

static bool has_ended(int fd) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

static void test_no_process_of_this_host_has_such_a_number(void **state) {
    (void)state;
    const int most = 4 * 1024 * 1024; /* PID_MAX_LIMIT: no pid reaches it */
    assert_false(host_process_is(most - 1));
    assert_false(host_process_is(getpid()));
    for (int node = 0; node < 64; node++) {
        pid_t last = host_process_number(node, most - 1);
        assert_true(host_process_is(host_process_number(node, 0)));
        assert_true(last > 0 && last < host_process_number(node + 1, 0));
        assert_int_equal(host_process_pid(last), most - 1);
    }
}

static void test_who_watches_is_told_of_an_end_and_how_it_was(void **state) {
    (void)state;
    pid_t number = host_process_number(3, 77);
    int status = 0, fd = host_process_watch(number, 1000);
    assert_true(fd >= 0);
    assert_false(has_ended(fd));
    assert_int_equal(host_process_status(number, &status), -EAGAIN);
    host_process_ended(number, true, SIGKILL, &(struct clock_stamp){.t_ns = 5, .bound_ns = 2});
    assert_true(has_ended(fd));
    assert_int_equal(host_process_status(number, &status), 0);
    assert_int_equal(status, SIGKILL);
    struct clock_stamp at;
    assert_true(host_process_end(number, &at));
    assert_int_equal(at.t_ns, 5);
    close(fd);
    host_process_forget_all();
    assert_int_equal(host_process_status(number, &status), -ESRCH);
}

/* A number that is used again is another process: who watched the first is told of its end. */
static void test_the_next_owner_of_a_number_is_another_process(void **state) {
    (void)state;
    pid_t number = host_process_number(0, 8);
    int first = host_process_watch(number, 1), again = host_process_watch(number, 1);
    assert_false(has_ended(first));
    int second = host_process_watch(number, 2), status;
    assert_true(has_ended(first));
    assert_true(has_ended(again));
    assert_false(has_ended(second));
    assert_int_equal(host_process_start(number), 2);
    assert_int_equal(host_process_status(number, &status), -EAGAIN);
    close(first);
    close(again);
    close(second);
    host_process_forget_all();
}

static void test_a_node_that_is_lost_takes_its_own_along_and_no_others(void **state) {
    (void)state;
    pid_t mine = host_process_number(1, 8), other = host_process_number(2, 8);
    int a = host_process_watch(mine, 1), b = host_process_watch(other, 1), status;
    host_process_node_ended(1, 9);
    assert_true(has_ended(a));
    assert_false(has_ended(b));
    assert_int_equal(host_process_status(mine, &status), -ENODATA); /* nobody knows how */
    /* What is told later says nothing new. */
    host_process_ended(mine, true, 0, &(struct clock_stamp){.t_ns = 10});
    assert_int_equal(host_process_status(mine, &status), -ENODATA);
    close(a);
    close(b);
    host_process_forget_all();
}

static void test_what_was_seen_is_kept_before_and_after(void **state) {
    (void)state;
    pid_t number = host_process_number(0, 8), above = host_process_number(0, 7);
    struct host_process_look look;
    host_process_seen(number, false, &(struct host_process_look){.still = true}); /* of nobody */
    assert_false(host_process_look_at(number, false, &look));
    host_process_note(number, 1, above);
    assert_int_equal(host_process_parent(number), above);
    host_process_seen(number, true, &(struct host_process_look){.caught = 4});
    assert_false(host_process_look_at(number, false, &look));
    host_process_seen(number, false, &(struct host_process_look){.still = true, .call = -1});
    assert_true(host_process_look_at(number, true, &look));
    assert_int_equal(look.caught, 4);
    assert_false(look.still);
    assert_true(host_process_look_at(number, false, &look));
    assert_true(look.still);
    host_process_forget_all();
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_process_of_this_host_has_such_a_number),
        cmocka_unit_test(test_who_watches_is_told_of_an_end_and_how_it_was),
        cmocka_unit_test(test_the_next_owner_of_a_number_is_another_process),
        cmocka_unit_test(test_a_node_that_is_lost_takes_its_own_along_and_no_others),
        cmocka_unit_test(test_what_was_seen_is_kept_before_and_after),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
