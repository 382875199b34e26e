#include "tests/agent/options_fixture.h"

#include <stdio.h>
#include <unistd.h>

static bool has(size_t host, const char *word) {
    for (const char *const *w = o.host_argv[host]; *w; w++)
        if (str_eq(*w, word))
            return true;
    return false;
}

static void test_each_host_gets_the_options_that_are_not_about_hosts(void **state) {
    (void)state;
    if (parse("rankrun -H a,b:2 --max-restarts=3 --accelerators 4 -t 3 train.py --x") != 0)
        fail_msg("%s", err.msg);
    assert_int_equal(o.verb, OPTIONS_HOSTS);
    assert_int_equal(o.hosts.n, 2);
    assert_int_equal(o.nodes_min, 2);
    assert_true(has(0, "--max-restarts=3") && has(0, "-t") && has(0, "3"));
    assert_true(has(0, "--nnodes=2") && has(0, "--nproc-per-node=4"));
    assert_true(has(1, "--nproc-per-node=2") && !has(1, "--nproc-per-node=4"));
    assert_false(has(0, "-H") || has(0, "--accelerators") || has(0, "a,b:2"));
    size_t n = 0;
    while (o.host_argv[1][n])
        n++;
    assert_string_equal(o.host_argv[1][n - 3], "--");
    assert_string_equal(o.host_argv[1][n - 2], "train.py");
    assert_string_equal(o.host_argv[1][n - 1], "--x");
}

static void test_the_agents_meet_at_the_first_host_or_where_they_are_told(void **state) {
    (void)state;
    char word[64];
    assert_int_equal(parse("rankrun -H me@a,b true"), 0);
    assert_string_equal(o.endpoint_host, "a");
    snprintf(word, sizeof(word), "--rdzv-endpoint=a:%d", o.endpoint_port);
    assert_true(has(0, word) && has(1, word));
    assert_int_equal(parse("rankrun -H me@[fd00::1]:2,b true"), 0);
    assert_string_equal(o.endpoint_host, "fd00::1");
    snprintf(word, sizeof(word), "--rdzv-endpoint=[fd00::1]:%d", o.endpoint_port);
    assert_true(has(0, word) && has(0, "--nproc-per-node=2"));
    assert_int_equal(parse("rankrun -H a,b --rdzv-backend etcd-v3 --rdzv-endpoint e true"), 0);
    assert_true(has(1, "--rdzv-endpoint=e") && has(1, "--rdzv-backend=etcd-v3"));
    assert_int_equal(parse("rankrun -H a,b --rdzv-endpoint e true"), 0);
    assert_true(has(1, "--rdzv-endpoint=e"));
    for (size_t i = 0; o.host_argv[1][i]; i++)
        assert_null(strstr(o.host_argv[1][i], "--rdzv-backend"));
    assert_int_equal(parse("rankrun -H a,b --rdzv-backend static true"), 0);
    assert_true(has(1, "--node-rank=1") && has(1, "--master-addr=a"));
}

static void test_a_range_of_nodes_needs_only_so_many_hosts(void **state) {
    (void)state;
    assert_int_equal(parse("rankrun -H a,b,c --nnodes 2:3 true"), 0);
    assert_int_equal(o.nodes_min, 2);
    REFUSED("rankrun -H a,b --nnodes 3 true", "there are only 2 hosts");
}

static void test_workers_by_the_gpus_of_each_host_are_counted_there(void **state) {
    (void)state;
    assert_int_equal(parse("rankrun -H a,b --nproc-per-node gpu true"), 0);
    assert_true(has(0, "--nproc-per-node") && has(0, "gpu"));
}

static void test_a_host_file_is_read(void **state) {
    (void)state;
    char path[] = "/tmp/test_options_hosts_XXXXXX", line[128];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "n1\nn2 slots=8\n", 14), 14);
    close(fd);
    snprintf(line, sizeof(line), "rankrun --hostfile %s true", path);
    assert_int_equal(parse(line), 0);
    assert_true(has(1, "--nproc-per-node=8"));
    unlink(path);
    REFUSED(line, path);
}

static void test_what_contradicts_the_hosts_is_refused(void **state) {
    (void)state;
    REFUSED("rankrun -H a --standalone true", "--standalone is one node");
    REFUSED("rankrun -H a,b --node-rank 1 true", "--node-rank");
    REFUSED("rankrun -H a --hostfile f true", "give one of them");
    REFUSED("rankrun --ssh x true", "--ssh goes with");
    REFUSED("rankrun -H a --accelerators 0 true", "--accelerators 0");
    REFUSED("rankrun -H a:b true", "--hosts: host a: \"b\" workers");
    REFUSED("rankrun -H a", "no program to run");
}

int main(int argc, char **argv) {
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_each_host_gets_the_options_that_are_not_about_hosts, clear),
        cmocka_unit_test_teardown(test_the_agents_meet_at_the_first_host_or_where_they_are_told,
                                  clear),
        cmocka_unit_test_teardown(test_a_range_of_nodes_needs_only_so_many_hosts, clear),
        cmocka_unit_test_teardown(test_workers_by_the_gpus_of_each_host_are_counted_there, clear),
        cmocka_unit_test_teardown(test_a_host_file_is_read, clear),
        cmocka_unit_test_teardown(test_what_contradicts_the_hosts_is_refused, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
