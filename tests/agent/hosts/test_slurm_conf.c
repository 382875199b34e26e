#include "agent/hosts/slurm_conf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static struct slurm_conf of(const char *text, const char *partition) {
    struct slurm_conf c;
    slurm_conf_parse(text, strlen(text), partition, &c);
    return c;
}

static void test_what_is_not_said_is_slurms_default(void **state) {
    (void)state;
    struct slurm_conf c = of("", NULL);
    assert_int_equal(c.kill_wait_s, 30);
    assert_int_equal(c.grace_s, 0);
    assert_false(c.requeues);
}

static void test_keys_are_known_in_any_case_and_the_last_counts(void **state) {
    (void)state;
    assert_int_equal(of("KillWait=5\n", NULL).kill_wait_s, 5);
    assert_int_equal(of("KillWait=5\nkillwait=7", NULL).kill_wait_s, 7);
    assert_int_equal(of("ClusterName=a KILLWAIT=8 # KillWait=9\n", NULL).kill_wait_s, 8);
    assert_int_equal(of("# KillWait=5\nNotKillWait=6\nKillWait=soon\n", NULL).kill_wait_s, 30);
}

static void test_a_partition_counts_only_for_its_own_jobs(void **state) {
    static const char text[] = "PreemptMode=REQUEUE\n"
                               "PartitionName=low,lower Nodes=ALL GraceTime=20\n"
                               "PartitionName=high GraceTime=60 PreemptMode=OFF\n";
    (void)state;
    assert_int_equal(of(text, "low").grace_s, 20);
    assert_true(of(text, "low").requeues);
    assert_int_equal(of(text, "lower").grace_s, 20);
    assert_int_equal(of(text, "high").grace_s, 60);
    assert_false(of(text, "high").requeues);
    assert_int_equal(of(text, "other").grace_s, 0);
    assert_int_equal(of(text, NULL).grace_s, 0);
}

static void test_defaults_of_partitions_and_lines_in_parts_are_read(void **state) {
    (void)state;
    struct slurm_conf c = of("PartitionName=DEFAULT GraceTime=9 PreemptMode=requeue\n"
                             "PartitionName=low \\\n  GraceTime=4 \\\nState=UP\nKillWait=\\\n3",
                             "low");
    assert_int_equal(c.grace_s, 4);
    assert_true(c.requeues);
    assert_int_equal(c.kill_wait_s, 3);
}

static void test_bytes_that_are_no_text_change_nothing(void **state) {
    (void)state;
    struct slurm_conf c;
    static const char text[] = "Kill\0Wait=5\n\xff\xfe\n\\";
    slurm_conf_parse(text, sizeof(text) - 1, "low", &c);
    assert_int_equal(c.kill_wait_s, 30);
    char line[9000];
    memset(line, 'x', sizeof(line));
    memcpy(line + sizeof(line) - 12, "\nKillWait=6 ", 12);
    slurm_conf_parse(line, sizeof(line), "low", &c);
    assert_int_equal(c.kill_wait_s, 6);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_not_said_is_slurms_default),
        cmocka_unit_test(test_keys_are_known_in_any_case_and_the_last_counts),
        cmocka_unit_test(test_a_partition_counts_only_for_its_own_jobs),
        cmocka_unit_test(test_defaults_of_partitions_and_lines_in_parts_are_read),
        cmocka_unit_test(test_bytes_that_are_no_text_change_nothing),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
