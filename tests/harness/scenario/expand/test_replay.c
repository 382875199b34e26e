/* Faults that somebody recorded. */
#include "harness/scenario/expand/schedule.h"
#include "tests/harness/scenario/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define JOB                                                                                        \
    "cluster: {nodes: 3}\n"                                                                        \
    "job: {run: [train], nnodes: \"2:3\", workers_per_node: 2, max_restarts: 9}\n"

static char folder[200], trace[300];

static int make_folder(void **state) {
    (void)state;
    const char *dir = getenv("TMPDIR");
    snprintf(folder, sizeof(folder), "%s/replay-XXXXXX", dir ? dir : "/tmp");
    if (!mkdtemp(folder))
        return -1;
    snprintf(trace, sizeof(trace), "%s/trace.csv", folder);
    return 0;
}

static void load(struct scratch *x, const char *csv, const char *replay) {
    char path[300];
    struct buf text = {0};
    *x = (struct scratch){0};
    FILE *f = fopen(trace, "w");
    assert_non_null(f);
    fputs(csv, f);
    fclose(f);
    snprintf(path, sizeof(path), "%s/s.yaml", folder);
    str_copy(x->path, sizeof(x->path), path);
    f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, JOB "replay: %s\n", replay);
    fclose(f);
    x->s = scenario_load(path, NULL, &x->d);
    buf_fini(&text);
}

/* "fault target time for" of every line, those that follow another with "+". */
static void assert_played(const char *csv, const char *replay, const char *want) {
    struct scratch x;
    struct buf got = {0};
    load(&x, csv, replay);
    assert_string_equal(buf_str(&x.d.out), "");
    assert_non_null(x.s);
    for (size_t i = 0; i < x.s->timeline_n; i++) {
        const struct timeline_entry *a = &x.s->timeline[i];
        int64_t ns = a->when.has_time ? a->when.time_ns : a->when.plus_ns;
        buf_printf(&got, "%s%s %s %s%lld", i ? "; " : "", a->fault, a->on.text,
                   a->when.has_time ? "" : "+", (long long)ns / 1000000);
        if (a->for_ns)
            buf_printf(&got, " for %lld", (long long)a->for_ns / 1000000);
    }
    assert_string_equal(buf_str(&got), want);
    scratch_drop(&x);
    buf_fini(&got);
}

static const char three[] = "start,end,node,cause\n"
                            "100,110,host-7,GPU Xid 79\n"
                            "130,135,host-9,switch port down\n"
                            "200,210,host-7,unknown\n";

static void test_each_fault_comes_at_its_time_on_its_node(void **state) {
    (void)state;
    assert_played(three,
                  "{trace: trace.csv, speed: 10, causes: {gpu: worker-kill, switch: "
                  "net-partition}}",
                  "worker-kill n0/0 0; net-partition n1 3000 for 500; node-poweroff n0 10000; "
                  "node-start n0 +1000");
    assert_played(three, "{trace: trace.csv, into: 1s, causes: {gpu: worker-kill}, else: none}",
                  "worker-kill n0/0 0");
    assert_played(three, "{trace: trace.csv, speed: 10, take: 1}",
                  "node-poweroff n0 0; "
                  "node-start n0 +1000");
}

/* What it is played from is named in a comment, and a time may have any number of digits. */
static void test_what_is_printed_of_it_loads_again(void **state) {
    (void)state;
    struct scratch x, again;
    struct buf text = {0};
    load(&x, three,
         "{trace: trace.csv, speed: 17.3, causes: {gpu: worker-kill, switch: net-partition}}");
    if (!x.s)
        fail_msg("%s", buf_str(&x.d.out));
    x.s->drawn = "x\ntimeline: []\n";
    scenario_print(x.s, &text);
    scratch_load(&again, buf_str(&text));
    if (!again.s)
        fail_msg("%s", buf_str(&again.d.out));
    assert_int_equal(again.s->timeline_n, x.s->timeline_n);
    scratch_drop(&again);
    scratch_drop(&x);
    buf_fini(&text);
}

static void test_columns_in_any_order_dates_quotes_and_other_columns(void **state) {
    (void)state;
    assert_played("rack, Cause ,node,End,START\r\n"
                  "# as exported\r\n"
                  "\r\n"
                  "7,\"fan, \"\"left\"\"\",a,2024-02-29T00:00:30Z,2024-02-29 00:00\r\n"
                  "7,link,b,2024-03-01 00:01,2024-03-01 00:00:00\r\n",
                  "{trace: trace.csv, speed: 1440, causes: {'\"left\"': worker-hang, LINK: "
                  "worker-exit}}",
                  "worker-hang n0/0 0 for 20; worker-exit n1/1 60000");
}

/* Lines are played by their time; what began together in the order of the file. */
static void test_lines_need_not_be_in_order(void **state) {
    (void)state;
    assert_played("start,end,node,cause\n50,51,b,x\n10,11,a,x\n50,51,c,x\n",
                  "{trace: trace.csv, speed: 1, else: worker-kill}",
                  "worker-kill n0/0 0; worker-kill n1/1 40000; worker-kill n2/0 40000");
}

static void test_what_cannot_be_is_left_out_and_said(void **state) {
    (void)state;
    struct scratch x;
    load(&x, "start,end,node,cause\n0,90,a,x\n10,20,a,x\n20,30,b,x\n95,99,b,x\n",
         "{trace: trace.csv, speed: 1}");
    assert_non_null(x.s);
    assert_int_equal(x.s->timeline_n, 4); /* a and, once a is back, b */
    assert_non_null(strstr(x.s->drawn, "2 of 4 faults of "));
    assert_non_null(strstr(x.s->drawn, "; line 3 is left out: n0 is away then; line 4 is left out: "
                                       "the job needs 2 nodes"));
    scratch_drop(&x);
}

static void test_who_would_come_back_after_the_last_fault_stays_away(void **state) {
    (void)state;
    assert_played("start,end,node,cause\n0,900,a,x\n10,20,b,gpu\n",
                  "{trace: trace.csv, speed: 1, causes: {gpu: worker-kill}}",
                  "node-poweroff n0 0; worker-kill n1/1 10000");
}

static void assert_said(const char *csv, const char *replay, const char *want) {
    struct scratch x;
    load(&x, csv, replay);
    assert_null(x.s);
    const char *said = buf_str(&x.d.out);
    said += str_starts(said, folder) ? strlen(folder) + 1 : 0;
    if (!str_starts(said, want))
        fail_msg("said:\n%swanted:\n%s", said, want);
    scratch_drop(&x);
}

static void test_what_is_wrong_in_the_table_is_shown_there(void **state) {
    (void)state;
    static const char play[] = "{trace: trace.csv, speed: 1}";
    assert_said("start,end,node\n1,2,a\n", play,
                "trace.csv:1:1: the first line names no column \"cause\"; it must have start, end, "
                "node and cause\n    start,end,node\n    ^\n");
    assert_said("start,end,node,cause\n1,2,a,b\n3,yesterday,a,b\n", play,
                "trace.csv:3:3: end: \"yesterday\" is no time; write seconds, or a date such as "
                "2024-05-01 13:00\n");
    assert_said("start,end,node,cause\n1,2,a,b\n3,2024-01-01,a,b\n", play,
                "trace.csv:3:3: end: \"2024-01-01\" is a date, which the times above are not");
    assert_said("start,end,node,cause\n5,2,a,b\n", play, "trace.csv:2:3: it ends before it begins");
    assert_said("start,end,node,cause\n1,2,,b\n", play, "trace.csv:2:3: it names no node");
    assert_said("start,end,node,cause\n1,2\n", play,
                "trace.csv:2:1: the line has 2 cells and no "
                "node");
    assert_said("start,end,node,cause\n1,2,\"a,b\n", play,
                "trace.csv:2:5: a quotation does not end in this line");
    assert_said("start,end,node,cause\n", play, "s.yaml:3:17: trace: ");
    assert_said("", "{trace: nowhere.csv, speed: 1}", "s.yaml:3:17: trace: ");
    assert_said("start,end,node,cause\n2024-13-01,2,a,b\n", play,
                "trace.csv:2:1: start: \"2024-13");
}

static void test_what_is_wrong_in_the_words_is_said(void **state) {
    (void)state;
    assert_said(three, "{trace: trace.csv}",
                "s.yaml:3:9: replay needs a speed, such as speed: 750");
    assert_said(three, "{trace: trace.csv, speed: 1, into: 5s}",
                "s.yaml:3:9: replay needs a speed");
    assert_said(three, "{speed: 1}", "s.yaml:3:9: replay needs \"trace\"");
    assert_said(three, "{trace: trace.csv, speed: fast}", "s.yaml:3:35: speed must be a number");
    struct arena a = {0};
    assert_said(three, "{trace: trace.csv, speed: 1, causes: {gpu: worker-kil}}",
                arena_printf(&a,
                             "s.yaml:3:52: gpu must be %s or none, not \"worker-kil\"; did you "
                             "mean \"worker-kill\"?",
                             hit_list(&a)));
    arena_fini(&a);
    assert_said(three, "{trace: trace.csv, speed: 1, else: none}",
                "s.yaml:3:1: replay: none of the 3 faults can be played");
    assert_said("start,end,node,cause\n1,1,a,x\n2,2,a,x\n3,3,a,x\n4,4,a,x\n5,5,a,x\n6,6,a,x\n"
                "7,7,a,x\n8,8,a,x\n9,9,a,x\n10,10,a,x\n",
                "{trace: trace.csv, speed: 1, else: worker-kill}",
                "s.yaml:3:1: replay: 10 of the faults may cost a restart each and "
                "job.max_restarts is 9; write max_restarts: 10");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_fault_comes_at_its_time_on_its_node),
        cmocka_unit_test(test_what_is_printed_of_it_loads_again),
        cmocka_unit_test(test_columns_in_any_order_dates_quotes_and_other_columns),
        cmocka_unit_test(test_lines_need_not_be_in_order),
        cmocka_unit_test(test_what_cannot_be_is_left_out_and_said),
        cmocka_unit_test(test_who_would_come_back_after_the_last_fault_stays_away),
        cmocka_unit_test(test_what_is_wrong_in_the_table_is_shown_there),
        cmocka_unit_test(test_what_is_wrong_in_the_words_is_said),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, make_folder, NULL);
}
