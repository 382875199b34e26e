#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "harness/preflight/slurm_settings.h"

/* As `scontrol show config` of Slurm 22.05 writes it, in excerpts: of a cluster that betrays nobody. */
static const char good[] = "Configuration data as of 2026-11-29T14:00:00\n"
                           "JobRequeue              = 1\n"
                           "KillWait                = 60 sec\n"
                           "MessageTimeout          = 10 sec\n"
                           "PreemptType             = preempt/partition_prio\n"
                           "ProctrackType           = proctrack/cgroup\n"
                           "Prolog                  = (null)\n"
                           "PrologEpilogTimeout     = 65534\n"
                           "PrologFlags             = Alloc,Contain\n"
                           "ResumeProgram           = (null)\n"
                           "ResumeTimeout           = 60 sec\n"
                           "ReturnToService         = 1\n"
                           "SLURM_VERSION           = 22.05.8\n"
                           "TaskPlugin              = task/cgroup,task/affinity\n"
                           "UnkillableStepTimeout   = 60 sec\n";
static const char partitions[] =
    "PartitionName=low AllowGroups=ALL GraceTime=0 PreemptMode=REQUEUE State=UP\n"
    "PartitionName=high AllowGroups=ALL GraceTime=0 PreemptMode=OFF State=UP\n";

static void add(void *arg, const char *sentence) {
    buf_printf(arg, "%s\n", sentence);
}

/* What is said of the good one with one line in the place of another. */
static int judge(const char *line, const char *instead, const char *parts, struct buf *said) {
    BUF_FINI struct buf config = {0};
    const char *at = line ? strstr(good, line) : NULL;
    size_t before = at ? (size_t)(at - good) : strlen(good);
    if (line)
        assert_non_null(at);
    buf_printf(&config, "%.*s", (int)before, good);
    if (at)
        buf_printf(&config, "%s%s", instead, at + strcspn(at, "\n"));
    struct slurm_settings s = {.config = buf_str(&config), .partitions = parts, .grace_s = 30};
    return slurm_settings_judge(&s, add, said);
}

static void test_good_settings_are_passed(void **state) {
    BUF_FINI struct buf said = {0};
    assert_int_equal(judge(NULL, NULL, partitions, &said), 0);
    assert_string_equal(buf_str(&said), "");
}

static void test_each_setting_that_betrays_a_job_is_named_with_what_to_set(void **state) {
    static const struct {
        const char *line, *instead, *said;
    } rows[] = {
        {"JobRequeue ", "JobRequeue = 0", "set JobRequeue=1"},
        {"KillWait ", "KillWait = 29 sec", "set KillWait=35"},
        {"MessageTimeout ", "MessageTimeout = 13 sec", "set 65 or more"},
        {"ProctrackType ", "ProctrackType = proctrack/pgid", "that leads a group of its own"},
        {"ProctrackType ", "ProctrackType = proctrack/linuxproc", "whose agent has died first"},
        {"PrologFlags ", "PrologFlags = (null)", "outlives it; set PrologFlags=Alloc,Contain"},
        {"ResumeProgram ", "ResumeProgram = /sbin/on", "ResumeTimeout is 60 s"},
        {"ReturnToService ", "ReturnToService = 0", "set ReturnToService=1"},
        {"TaskPlugin ", "TaskPlugin = task/affinity", "TaskPlugin is task/affinity"},
        {"UnkillableStepTimeout ", "UnkillableStepTimeout = 49 sec", "set 50 or more"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        BUF_FINI struct buf said = {0};
        int n = judge(rows[i].line, rows[i].instead, partitions, &said);
        if (n != 1 || !strstr(buf_str(&said), rows[i].said))
            fail_msg("%s: %d: %s", rows[i].instead, n, buf_str(&said));
    }
}

static void test_partitions_are_asked_where_jobs_are_preempted(void **state) {
    static const char bad[] = "PartitionName=a GraceTime=7 PreemptMode=REQUEUE\n"
                              "PartitionName=b GraceTime=7 PreemptMode=OFF\n"
                              "PartitionName=c GraceTime=0 PreemptMode=GANG,CANCEL\n";
    BUF_FINI struct buf said = {0}, none = {0};
    assert_int_equal(judge(NULL, NULL, bad, &said), 2);
    assert_non_null(strstr(buf_str(&said), "GraceTime of partition a is 7 s"));
    assert_non_null(strstr(buf_str(&said), "PreemptMode of partition c is GANG,CANCEL"));
    assert_int_equal(judge("PreemptType ", "PreemptType = (null)", bad, &none), 0);
}

static void test_what_is_no_answer_of_slurms_is_none(void **state) {
    BUF_FINI struct buf said = {0};
    struct slurm_settings s = {.config = "Welcome!\n", .partitions = "", .grace_s = 30};
    assert_int_equal(slurm_settings_judge(&s, add, &said), -1);
    s.config = "";
    assert_int_equal(slurm_settings_judge(&s, add, &said), -1);
    s.config = "SLURM_VERSION = 99\nKillWait = soon\n";
    assert_int_equal(slurm_settings_judge(&s, add, &said), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_settings_are_passed),
        cmocka_unit_test(test_each_setting_that_betrays_a_job_is_named_with_what_to_set),
        cmocka_unit_test(test_partitions_are_asked_where_jobs_are_preempted),
        cmocka_unit_test(test_what_is_no_answer_of_slurms_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
