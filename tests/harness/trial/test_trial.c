/* Each trial's scenario can be run, and only what the history shows is said to work. */
#include "harness/trial/trial.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- scenarios ---- */

static char dir[] = "/tmp/trial_XXXXXX";

static int set_up(void **state) {
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    return file_remove_tree(dir, NULL);
}

static void check_scenario(const struct fault_trial *t) {
    BUF_FINI struct buf text = {0};
    struct diagnostics d = {0};
    char path[100];
    snprintf(path, sizeof(path), "%s/s.yaml", dir);
    trial_scenario(t, "/bin/rankquake", &text);
    assert_int_equal(file_write(path, text.data, text.len, NULL), 0);
    struct scenario *s = plan_load(path, NULL, &d);
    struct plan *p = s ? plan_make(s, 1, &d) : NULL;
    if (!p)
        print_error("%s\n%s", buf_str(&d.out), buf_str(&text));
    assert_non_null(p);
    const struct timeline_entry *it = &s->timeline[0];
    assert_ptr_equal(p->entries[0].fault, t->fault);
    assert_int_equal(it->for_ns, 0);
    assert_int_equal(s->timeline_n, fault_has(t->fault, EFFECT_LASTING) ? 2 : 1);
    if (it->on.node)
        assert_string_equal(it->on.node, fault_has(t->fault, EFFECT_STARTS_NODE) ? "n2" : "n1");
    plan_free(p);
    scenario_free(s);
    diagnostics_fini(&d);
}

static void test_the_scenario_of_every_trial_can_be_run(void **state) {
    (void)state;
    ARENA_FINI struct arena a = {0};
    for (size_t i = 0; faults[i]; i++) {
        struct fault_trial some[TRIALS_OF_FAULT];
        size_t n = trials_of(&a, faults[i], true, some);
        assert_true(n >= 1);
        for (size_t k = 0; k < n; k++)
            check_scenario(&some[k]);
    }
}

static void test_a_fault_on_the_store_is_tried_on_each_store_that_it_suits(void **state) {
    (void)state;
    ARENA_FINI struct arena a = {0};
    struct fault_trial some[TRIALS_OF_FAULT];
    assert_int_equal(trials_of(&a, fault_find("worker-kill"), true, some), 1);
    assert_int_equal(trials_of(&a, fault_find("store-kill"), false, some), 1);
    assert_false(some[0].etcd);
    assert_int_equal(trials_of(&a, fault_find("store-kill"), true, some), 2);
    assert_true(some[1].etcd);
    /* rankrun's own has no database that could be full */
    assert_int_equal(trials_of(&a, fault_find("store-full"), false, some), 1);
    assert_true(some[0].etcd);
}

/* ---- outcomes ---- */

#define RUN       "{'seq':1,'t':1,'source':'harness','kind':'run','v':1,'isolation':'namespaces'}\n"
#define PROCESSES "{'seq':1,'t':1,'source':'harness','kind':'run','v':1,'isolation':'processes'}\n"
#define FIRED                                                                                      \
    "{'seq':2,'t':2,'source':'harness','kind':'fault-fired','id':'it','n':1,'fault':'x',"          \
    "'on':['n1/0'],'lag_ns':0,'held':true}\n"
#define IN_FORCE                                                                                   \
    "{'seq':3,'t':3,'source':'harness','kind':'fault-in-force','id':'it','n':1,'fault':'x',"       \
    "'t0':3,'ends_node':false,'effects':[],'targets':[{'what':'worker','name':'n1/0',"             \
    "'node':'n1','pid':7}]}\n"
#define STORE_IN_FORCE                                                                             \
    "{'seq':3,'t':3,'source':'harness','kind':'fault-in-force','id':'it','n':1,'fault':'x',"       \
    "'t0':3,'ends_node':false,'effects':[],'targets':[{'what':'store','name':'store',"             \
    "'node':'store','pid':7}]}\n"
#define EVIDENCE_BY(source, by)                                                                    \
    "{'seq':4,'t':4,'source':'" source "','kind':'fault-evidence','id':'it','n':1,"                \
    "'what':'it stands still'" by "}\n"
#define FELT EVIDENCE_BY("kernel", "")
#define UNDONE(more)                                                                               \
    "{'seq':6,'t':6,'source':'harness','kind':'fault-recovered','id':'it','n':1" more "}\n"
#define EXIT(seq, node, code)                                                                      \
    "{'seq':" seq ",'t':" seq ",'source':'kernel','kind':'worker-exit','node':'" node              \
    "','pid':7,'code':" code "}\n"
#define LEFT(what)                                                                                 \
    "{'seq':9,'t':9,'source':'harness','kind':'health','left':[" what "],'complete':true,"         \
    "'cpu_ns':1}\n"
#define WHOLE FIRED IN_FORCE FELT UNDONE("") EXIT("7", "n1", "0")

static void load(struct history *h, const char *lines) {
    char *text = mem_strdup(lines);
    for (char *c = text; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    int fd = memfd_create("history", MFD_CLOEXEC);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    lseek(fd, 0, SEEK_SET);
    struct err err = {0};
    if (history_load_from(h, fd, "history", &err) != 0)
        fail_msg("%s", err.msg);
    free(text);
}

static void expect(const char *fault, const char *lines, enum trial_kind kind, const char *why) {
    ARENA_FINI struct arena a = {0};
    struct history h = {0};
    load(&h, lines);
    struct trial_outcome o = trial_read(&a, fault_find(fault), &h);
    if (o.kind != kind || (why && (!o.why || !strstr(o.why, why))) || (!why && o.why))
        fail_msg("%s: kind %d, why %s\n%s", fault, (int)o.kind, o.why ? o.why : "-", lines);
    history_fini(&h);
}

static void test_what_was_felt_and_undone_and_goes_on_works(void **state) {
    (void)state;
    expect("worker-hang", RUN WHOLE, TRIAL_WORKS, NULL);
    expect("worker-hang", RUN WHOLE LEFT(""), TRIAL_WORKS, NULL);
    expect("worker-hang", PROCESSES WHOLE, TRIAL_WORKS, NULL);
    /* of what does not last nothing is undone */
    expect("worker-kill", RUN FIRED IN_FORCE FELT, TRIAL_WORKS, NULL);
    /* workers are not the store's, and any of them will do */
    expect("store-freeze", RUN FIRED STORE_IN_FORCE FELT UNDONE("") EXIT("7", "n0", "0"),
           TRIAL_WORKS, NULL);
    expect("node-memory",
           RUN FIRED IN_FORCE EVIDENCE_BY("kernel", ",'by':'a control group'") UNDONE("")
               EXIT("7", "n1", "0"),
           TRIAL_WORKS, NULL);
}

static void test_what_was_done_by_less_is_said_so(void **state) {
    (void)state;
    expect("node-freeze", PROCESSES WHOLE, TRIAL_LESS, "nodes are processes of this host");
    expect("net-partition", PROCESSES WHOLE, TRIAL_LESS, "dropped at their sockets");
    expect("node-memory",
           RUN FIRED IN_FORCE EVIDENCE_BY("kernel", ",'by':'RLIMIT_AS of each process'") UNDONE("")
               EXIT("7", "n1", "0"),
           TRIAL_LESS, "by RLIMIT_AS of each process");
}

static void test_what_did_not_come_in_force_cannot_be_had(void **state) {
    (void)state;
    expect("worker-hang", RUN, TRIAL_CANNOT, "did not come in force");
    expect("worker-hang", RUN FIRED, TRIAL_CANNOT, "did not come in force");
    expect("worker-hang",
           RUN FIRED "{'seq':3,'t':3,'source':'harness','kind':'fault-failed','id':'it','n':1,"
                     "'error':'PTRACE_SEIZE: Operation not permitted'}\n",
           TRIAL_CANNOT, "PTRACE_SEIZE: Operation not permitted");
    expect("worker-hang",
           RUN "{'seq':2,'t':2,'source':'harness','kind':'fault-not-fired','id':'it',"
               "'why':'nobody was there'}\n",
           TRIAL_CANNOT, "its moment did not come: nobody was there");
}

/* Planted: everybody but the kernel, the wire, the disk and the probe says that it was felt. */
static void test_what_nothing_has_shown_does_not_work(void **state) {
    (void)state;
    expect("worker-hang", RUN FIRED IN_FORCE UNDONE("") EXIT("7", "n1", "0"), TRIAL_CANNOT,
           "nothing showed it");
    expect("worker-hang",
           RUN FIRED IN_FORCE UNDONE("")
               EXIT("7", "n1",
                    "0") "{'seq':8,'t':8,'source':'harness','kind':'fault-unfelt','id':'it','n':1,"
                         "'on':'n1/0','why':'it ran all the time'}\n",
           TRIAL_CANNOT, "nothing showed it: it ran all the time");
    expect("worker-hang",
           RUN FIRED IN_FORCE
           "{'seq':4,'t':4,'source':'job','kind':'fault-evidence','node':'n1','pid':7,'id':'it',"
           "'n':1,'what':'x'}\n" UNDONE("") EXIT("7", "n1", "0"),
           TRIAL_CANNOT, "nothing showed it");
    expect("worker-hang",
           RUN FIRED IN_FORCE
           "{'seq':4,'t':4,'source':'kernel','kind':'fault-evidence','id':'another','n':1,"
           "'what':'x'}\n" UNDONE("") EXIT("7", "n1", "0"),
           TRIAL_CANNOT, "nothing showed it");
}

static void test_what_is_not_gone_afterwards_does_not_work(void **state) {
    (void)state;
    expect("worker-hang", RUN FIRED IN_FORCE FELT EXIT("7", "n1", "0"), TRIAL_CANNOT,
           "and not undone");
    expect("worker-hang",
           RUN FIRED IN_FORCE FELT UNDONE(",'error':'no such process'") EXIT("7", "n1", "0"),
           TRIAL_CANNOT, "could not be undone: no such process");
    static const char *const ends[] = {"", EXIT("7", "n1", "9"), EXIT("7", "n0", "0"),
                                       "{'seq':7,'t':7,'source':'kernel','kind':'worker-exit',"
                                       "'node':'n1','pid':7,'signal':9}\n"};
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
        char lines[4000];
        snprintf(lines, sizeof(lines), "%s%s", RUN FIRED IN_FORCE FELT UNDONE(""), ends[i]);
        expect("worker-hang", lines, TRIAL_CANNOT, "did not go on");
    }
    /* it had ended before the fault was undone */
    expect("worker-hang", RUN FIRED IN_FORCE FELT EXIT("5", "n1", "0") UNDONE(""), TRIAL_CANNOT,
           "did not go on");
    expect("worker-hang", RUN WHOLE LEFT("'a mount'"), TRIAL_CANNOT,
           "left something behind: a mount");
}

static void test_what_works_on_one_of_two_stores_works_with_less(void **state) {
    (void)state;
    ARENA_FINI struct arena a = {0};
    const struct trial_outcome works = {.kind = TRIAL_WORKS},
                               less = {.kind = TRIAL_LESS, .why = "so"},
                               cannot = {.kind = TRIAL_CANNOT, .why = "that"};
    assert_int_equal(trial_both(&a, works, works, "etcd").kind, TRIAL_WORKS);
    assert_string_equal(trial_both(&a, works, less, "etcd").why, "so");
    assert_string_equal(trial_both(&a, works, cannot, "etcd").why, "not on etcd: that");
    struct trial_outcome o = trial_both(&a, cannot, works, "etcd");
    assert_int_equal(o.kind, TRIAL_LESS);
    assert_string_equal(o.why, "not on rankrun's own store: that");
    assert_int_equal(trial_both(&a, cannot, cannot, "etcd").kind, TRIAL_CANNOT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_scenario_of_every_trial_can_be_run),
        cmocka_unit_test(test_a_fault_on_the_store_is_tried_on_each_store_that_it_suits),
        cmocka_unit_test(test_what_was_felt_and_undone_and_goes_on_works),
        cmocka_unit_test(test_what_was_done_by_less_is_said_so),
        cmocka_unit_test(test_what_did_not_come_in_force_cannot_be_had),
        cmocka_unit_test(test_what_nothing_has_shown_does_not_work),
        cmocka_unit_test(test_what_is_not_gone_afterwards_does_not_work),
        cmocka_unit_test(test_what_works_on_one_of_two_stores_works_with_less),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
