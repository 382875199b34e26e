#include "agent/hosts/slurm_conf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
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

/* ---- in full ---- */

/* "30 0 no" of a job in partition p. */
static const char *told(const char *text) {
    static char said[64];
    struct slurm_conf c = of(text, "p");
    snprintf(said, sizeof(said), "%d %d %s", c.kill_wait_s, c.grace_s, c.requeues ? "yes" : "no");
    return said;
}

static void test_each_text_is_read_as_a_whole(void **state) {
    (void)state;
    static const struct {
        const char *text, *told;
    } rows[] = {
        {"", "30 0 no"},
        {"KillWait=0", "0 0 no"},
        {"KillWait=65534", "65534 0 no"},
        {"KillWait=65535", "30 0 no"},
        {"KillWait=-1", "30 0 no"},
        {"KillWait=", "30 0 no"},
        {"KillWait =5", "30 0 no"},
        {"KillWait=5x", "30 0 no"},
        {"KillWait=5\"6", "5 0 no"},
        {"KillWait=5\r\n", "5 0 no"},
        {"KillWait=5\tGraceTime=6", "5 0 no"},
        {" \tKillWait=5", "5 0 no"},
        {"xKillWait=5", "30 0 no"},
        {"xKillWait=5 KillWait=6", "6 0 no"},
        {"KillWaitx=5 KillWait=6", "6 0 no"},
        {"KillWaitKillWait=5", "30 0 no"},
        {"KillWait=5 KillWait=6", "5 0 no"},
        {"KillWait=5\nKillWait=6", "6 0 no"},
        {"KillWait=5\n\n\n", "5 0 no"},
        {"#KillWait=5", "30 0 no"},
        {"KillWait=5#6", "5 0 no"},
        {"KillWait=5 # \\\nKillWait=6", "6 0 no"},
        {"KillWait=5\\\n6", "56 0 no"},
        {"KillWait=5\\\n\\\n\\\n6", "56 0 no"},
        {"KillWait=5\\", "5 0 no"},
        {"KillWait=5\\\n", "5 0 no"},
        {"\\\nKillWait=5", "5 0 no"},
        {"\n\\x\nKillWait=5", "5 0 no"},
        {"PreemptMode=REQUEUE", "30 0 yes"},
        {"PreemptMode=requeue", "30 0 yes"},
        {"PreemptMode=GANG,REQUEUE", "30 0 yes"},
        {"PreemptMode=CANCEL", "30 0 no"},
        {"PreemptMode=REQUEUE\nPreemptMode=OFF", "30 0 no"},
        {"PreemptMode=REQUEUE\nKillWait=3", "3 0 yes"},
        {"GraceTime=5", "30 0 no"},
        {"PartitionName=p GraceTime=5", "30 5 no"},
        {"PartitionName=p GraceTime=65535", "30 0 no"},
        {"PartitionName=p KillWait=5", "30 0 no"},
        {"PartitionName=p PreemptMode=REQUEUE", "30 0 yes"},
        {"PreemptMode=REQUEUE\nPartitionName=p GraceTime=4", "30 4 yes"},
        {"PartitionName=P GraceTime=5", "30 0 no"},
        {"PartitionName=pp GraceTime=5", "30 0 no"},
        {"PartitionName=a,p,b GraceTime=5", "30 5 no"},
        {"PartitionName=a,b GraceTime=5", "30 0 no"},
        {"PartitionName=DEFAULT GraceTime=5", "30 5 no"},
        {"partitionname=default gracetime=5 preemptmode=REQUEUE", "30 5 yes"},
        {"PartitionName=DEFAULTS GraceTime=5", "30 0 no"},
        {"PartitionName=a,DEFAULT GraceTime=5", "30 0 no"},
        {"PartitionName=q PreemptMode=REQUEUE GraceTime=5", "30 0 no"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (strcmp(told(rows[i].text), rows[i].told) != 0)
            fail_msg("%s: %s", rows[i].text, told(rows[i].text));
}

/* What is longer is as if it were not there, and what follows is read. */
static void test_what_is_too_long_is_left_out(void **state) {
    (void)state;
    static char text[9000];
    for (int n = 254; n < 260; n++) {
        sprintf(text, "KillWait=%0*d PreemptMode=REQUEUE\n", n, 7);
        assert_string_equal(told(text), n < 256 ? "7 0 yes" : "30 0 yes");
    }
    for (int n = 4000; n < 4200; n++) {
        sprintf(text, "%*s\nPreemptMode=REQUEUE", n, " KillWait=7");
        assert_string_equal(told(text), n < 4096 ? "7 0 yes" : "30 0 yes");
        sprintf(text, "%*s\\\n KillWait=7\nPreemptMode=REQUEUE", n, "");
        assert_string_equal(told(text), n + 11 < 4096 ? "7 0 yes"
                                        : n < 4096    ? "30 0 yes"
                                                      : "7 0 yes");
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_not_said_is_slurms_default),
        cmocka_unit_test(test_keys_are_known_in_any_case_and_the_last_counts),
        cmocka_unit_test(test_a_partition_counts_only_for_its_own_jobs),
        cmocka_unit_test(test_defaults_of_partitions_and_lines_in_parts_are_read),
        cmocka_unit_test(test_bytes_that_are_no_text_change_nothing),
        cmocka_unit_test(test_each_text_is_read_as_a_whole),
        cmocka_unit_test(test_what_is_too_long_is_left_out),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
