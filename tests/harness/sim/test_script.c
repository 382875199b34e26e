#include "harness/sim/script.h"

#include "base/rand.h"
#include "base/sys/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char *path(void) {
    static char p[256];
    const char *dir = getenv("TMPDIR");
    snprintf(p, sizeof(p), "%s/script.yaml", dir ? dir : "/tmp");
    return p;
}

static struct script *read_text(const char *text, struct diagnostics *d) {
    struct err err = {0};
    *d = (struct diagnostics){0};
    assert_int_equal(file_write(path(), text, strlen(text), &err), 0);
    return script_read(path(), d);
}

static void same_run(const struct sim_schedule *a, const struct sim_schedule *b) {
    struct sim_result one, two;
    sim_play(a, false, &one);
    sim_play(b, false, &two);
    assert_int_equal(one.steps, two.steps);
    assert_int_equal(one.ended_ns, two.ended_ns);
    assert_int_equal(one.transactions, two.transactions);
    assert_int_equal(one.faults, two.faults);
}

static void test_a_schedule_that_is_written_reads_back_as_it_was(void **state) {
    (void)state;
    struct sim_config c;
    sim_config_default(&c);
    for (c.seed = 1; c.seed <= 100; c.seed++) {
        struct script s = {.name = "any", .breaks = "I1 one_round", .found = "it \"said\": \\ so"};
        struct buf text = {0}, again = {0};
        struct diagnostics d;
        sim_draw(&c, &s.schedule);
        script_write(&s, &text);
        struct script *read = read_text(buf_str(&text), &d);
        assert_string_equal(buf_str(&d.out), "");
        assert_non_null(read);
        assert_int_equal(read->schedule.n_entries, s.schedule.n_entries);
        assert_string_equal(read->found, s.found);
        script_write(read, &again);
        assert_string_equal(buf_str(&text), buf_str(&again));
        same_run(&s.schedule, &read->schedule);
        script_free(read);
        diagnostics_fini(&d);
        buf_fini(&text);
        buf_fini(&again);
        sim_schedule_fini(&s.schedule);
    }
}

#define HEAD "simulation: x\nagents: 2\nnodes: \"1:2\"\ntrouble: 2s\n"

static void test_what_is_wrong_is_said_with_its_place(void **state) {
    (void)state;
    static const struct {
        const char *text, *said;
    } rows[] = {
        {"agents: 2\n", "simulation needs \"simulation\""},
        {HEAD "colour: red\n", ":5:1: simulation has no key \"colour\""},
        {HEAD "timeline:\n  - {at: 1s, fault: meteor}\n", ":6:21: fault must be a fault of"},
        {HEAD "timeline:\n  - {at: 1s, fault: node-cut, on: n1}\n", ":6:5: node-cut needs \"for\""},
        {HEAD "timeline:\n  - {at: 1s, fault: node-cut, on: n7, for: 1s}\n",
         ":6:35: there is no n7, agents is 2"},
        {HEAD "timeline:\n  - {at: 1s, fault: worker-fail, on: n1, for: 1s}\n",
         ":6:42: worker-fail has no use for \"for\""},
        {HEAD "timeline:\n  - {at: 1s, fault: agent-kill, on: writer}\n",
         ":6:37: writer is who sends the transaction"},
        {HEAD "timeline:\n  - {at: soon, fault: join-storm}\n", ":6:10: at: \"soon\""},
        {HEAD "timeline: {at: 1s}\n", ":5:11: timeline must be a list of entries"},
        {"simulation: x\nagents: 2\nnodes: \"1:3\"\ntrouble: 2s\n", ":3:8: nodes asks for up to 3"},
        {"simulation: x\nagents: 2\nnodes: \"2:1\"\ntrouble: 2s\n", ":3:8: nodes must be MIN:MAX"},
        {"simulation: x\nagents: 20000\nnodes: \"1:2\"\ntrouble: 2s\n",
         ":2:9: agents must be from"},
        {"[1, 2]\n", ":1:1: simulation must be a map"},
        {"", "simulation needs"},
        {HEAD "timeline: [\n", ":"},
        {HEAD "timeline: [{at: 1s, fault: store-away, for: 25h}]\n", "for must be a day"},
        {HEAD "timeline: [{at: 999999h, fault: store-away, for: 1s}]\n", "at must be a day"},
        {HEAD "work: 1000000h\n", "work must be a day (24h) at most, not 1000000h"},
        {HEAD "seated: true\n", "nodes must be one number"},
        {HEAD "slow: &a 3ms\n", "anchors and aliases are not used"},
        {"", "needs \"simulation\""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct diagnostics d;
        assert_null(read_text(rows[i].text, &d));
        assert_true(d.errors > 0);
        if (!strstr(buf_str(&d.out), rows[i].said))
            fail_msg("row %zu does not say %s but: %s", i, rows[i].said, buf_str(&d.out));
        diagnostics_fini(&d);
    }
}

static void test_a_file_that_is_not_there_is_said(void **state) {
    (void)state;
    struct diagnostics d = {0};
    assert_null(script_read("/nowhere/at/all.yaml", &d));
    assert_non_null(strstr(buf_str(&d.out), "/nowhere/at/all.yaml"));
    diagnostics_fini(&d);
}

static void test_lines_are_put_in_the_order_of_their_times(void **state) {
    (void)state;
    struct diagnostics d;
    struct script *s = read_text(HEAD "timeline:\n  - {at: 1.5s, fault: join-storm}\n"
                                      "  - {at: 300ms, fault: store-away, for: 20ms}\n",
                                 &d);
    assert_non_null(s);
    assert_int_equal(s->schedule.entries[0].at_ns, 300 * SIM_MS);
    assert_int_equal(s->schedule.entries[1].at_ns, 1500 * SIM_MS);
    script_free(s);
    diagnostics_fini(&d);
}

/* What a fuzzer finds can be written down, so it must be a schedule that reads back. */
static void test_any_bytes_are_a_schedule(void **state) {
    (void)state;
    struct rand r;
    rand_init(&r, 1);
    for (int i = 0; i < 300; i++) {
        uint8_t bytes[120];
        struct script s = {.name = "bytes", .breaks = "nothing"};
        struct buf text = {0};
        struct diagnostics d;
        size_t n = rand_below(&r, sizeof(bytes));
        for (size_t k = 0; k < n; k++)
            bytes[k] = (uint8_t)rand_u64(&r);
        sim_decode(bytes, n, &s.schedule);
        script_write(&s, &text);
        struct script *read = read_text(buf_str(&text), &d);
        if (!read)
            fail_msg("%s", buf_str(&d.out));
        assert_int_equal(read->schedule.n_entries, s.schedule.n_entries);
        same_run(&s.schedule, &read->schedule);
        script_free(read);
        diagnostics_fini(&d);
        buf_fini(&text);
        sim_schedule_fini(&s.schedule);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_schedule_that_is_written_reads_back_as_it_was),
        cmocka_unit_test(test_what_is_wrong_is_said_with_its_place),
        cmocka_unit_test(test_a_file_that_is_not_there_is_said),
        cmocka_unit_test(test_any_bytes_are_a_schedule),
        cmocka_unit_test(test_lines_are_put_in_the_order_of_their_times),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
