/* The tables of keys: what explain prints is what the loader does. */
#include "harness/scenario/keys.h"
#include "tests/harness/scenario/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void test_every_key_says_what_it_is(void **state) {
    (void)state;
    for (size_t i = 0; sections[i]; i++)
        for (const struct key *k = sections[i]->keys; k->name; k++) {
            assert_true(k->type && *k->type);
            assert_true(k->text && str_ends(k->text, "."));
            assert_ptr_equal(section_key(sections[i], k->name), k);
        }
}

static void test_a_key_is_found_in_every_section_that_has_it(void **state) {
    (void)state;
    const struct section *s = NULL;
    size_t it = 0;
    assert_non_null(keys_find("start", &it, &s));
    assert_string_equal(s->name, "cluster");
    assert_non_null(keys_find("start", &it, &s));
    assert_string_equal(s->name, "limits");
    assert_null(keys_find("start", &it, &s));
    it = 0;
    assert_non_null(keys_find("limits.start", &it, &s));
    assert_string_equal(s->name, "limits");
    it = 0;
    assert_null(keys_find("job.start", &it, &s));
}

static void test_a_key_is_found_by_its_path_in_the_file(void **state) {
    (void)state;
    static const char *const found[][2] = {
        {"job", "scenario"},
        {"job.run", "job"},
        {"job.checkpoint.complete", "checkpoint"},
        {"timeline.when.step", "when"},
        {"timeline.0.when.step", "when"},
        {"timeline.dark.until.round", "when"},
        {"probe.served.http", "probe"},
        {"expect.log.never", "log"},
        {"expect.log.0.never", "log"},
        {"repeat.runs", "repeat"},
    };
    static const char *const none[] = {"",
                                       "nobody",
                                       "job.start",
                                       "job.checkpoint.dirs",
                                       "job.run.0",
                                       "timeline.0.1.when",
                                       "checkpoint.dir",
                                       ".job",
                                       "job."};
    const struct section *s = NULL;
    for (size_t i = 0; i < sizeof(found) / sizeof(*found); i++) {
        const struct key *k = keys_at(found[i][0], &s);
        if (!k || !str_eq(s->name, found[i][1]) || !str_ends(found[i][0], k->name))
            fail_msg("%s", found[i][0]);
    }
    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
        if (keys_at(none[i], &s))
            fail_msg("%s is found", none[i]);
}

static void test_every_key_of_a_scenario_has_a_path(void **state) {
    (void)state;
    struct arena a = {0};
    const char **paths = keys_paths(&a);
    for (size_t i = 0; sections[i]; i++)
        for (const struct key *k = sections[i]->keys; k->name; k++) {
            const struct section *s = NULL;
            const char **path = paths;
            while (*path && keys_at(*path, &s) != k)
                path++;
            if (!*path && !str_eq(sections[i]->name, "suite")) /* a file of its own */
                fail_msg("%s.%s has no path", sections[i]->name, k->name);
        }
    arena_fini(&a);
}

static const char base[] = "cluster: {nodes: 4, start: 3}\n"
                           "repeat: {runs: 5}\n"
                           "job: {run: [a], nnodes: \"2:3\", workers_per_node: 2, max_restarts: "
                           "20, checkpoint: {dir: x}, build: {run: [b], inputs: [c], "
                           "outputs: [d]}}\n"
                           "timeline:\n"
                           "  - {id: dark, when: {step: 5}, fault: node-kill, on: n2}\n"
                           "  - {id: last, when: {round: 2}, fault: node-start, on: n3}\n"
                           "checks: [{program: [x]}]\n"
                           "probe: {served: {cmd: [x]}}\n";

/* Where a key's example can be put by --set. */
static const char *const places[][2] = {
    {"scenario", ""},
    {"cluster", "cluster."},
    {"job", "job."},
    {"timeline", "timeline.1."},
    {"checkpoint", "job.checkpoint."},
    {"build", "job.build."},
    {"when", "timeline.1.when."},
    {"expect", "expect."},
    {"limits", "limits."},
    {"log", "expect."},
    {"observe", "observe."},
    {"power", "cluster.power."},
    {"random", "random."},
    {"checks", "checks.0."},
    {"repeat", "repeat."},
    {"probe", "probe.served."},
};

static void load_example(const char *prefix, const char *example) {
    const char *colon = strstr(example, ": ");
    struct buf set = {0};
    assert_non_null(colon);
    if (str_starts(example, "when: ")) /* of a key of when, or of an entry of the timeline */
        prefix = "timeline.1.";
    if (str_starts(example, "probe: {")) /* of one that asks otherwise than by a command */
        prefix = str_starts(example, "probe: {served: {") ? "" : prefix;
    buf_printf(&set, "%s%.*s=%s", prefix, (int)(colon - example), example, colon + 2);
    bool power = str_starts(prefix, "cluster.power") || str_starts(example, "power: {");
    const char *const powers[] = {"cluster.provider=ssh", "cluster.hosts=[a, b, c, d]",
                                  "cluster.power={off: [a, '{host}'], on: [b, '{host}']}",
                                  buf_str(&set), NULL};
    bool far = str_starts(example, "provider") || str_starts(example, "ssh") ||
               str_starts(example, "hosts");
    const char *const sets[] = {far ? "cluster.provider=ssh" : buf_str(&set),
                                far ? "cluster.hosts=[a, b, c, d]" : NULL, buf_str(&set), NULL};
    const char *const store[] = {buf_str(&set), "cluster.store=etcd", NULL};
    struct scratch x;
    scratch_load_bytes(&x, base, strlen(base),
                       power                                ? powers
                       : str_starts(example, "store_quota") ? store
                                                            : sets);
    assert_string_equal(buf_str(&x.d.out), "");
    scratch_drop(&x);
    buf_fini(&set);
}

static void test_every_example_of_a_key_loads(void **state) {
    (void)state;
    int loaded = 0;
    for (size_t i = 0; sections[i]; i++)
        for (const struct key *k = sections[i]->keys; k->name; k++) {
            const char *prefix = NULL;
            for (size_t j = 0; j < sizeof(places) / sizeof(*places); j++)
                if (str_eq(places[j][0], sections[i]->name))
                    prefix = places[j][1];
            /* With files of their own: test_suite.c, test_replay.c. */
            if (str_eq(sections[i]->name, "suite") || str_eq(sections[i]->name, "replay"))
                continue;
            assert_non_null(prefix);
            assert_true(k->example || !k->read); /* what is built can be shown */
            /* A new id or a heal instead of the fault would need another base; an include another
             * file. */
            if (k->example && !str_eq(k->name, "heal") && !str_eq(k->name, "id") &&
                !str_eq(k->name, "include") && !str_eq(k->name, "replay")) {
                load_example(prefix, k->example);
                loaded++;
            }
        }
    assert_true(loaded > 30);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_key_says_what_it_is),
        cmocka_unit_test(test_a_key_is_found_in_every_section_that_has_it),
        cmocka_unit_test(test_a_key_is_found_by_its_path_in_the_file),
        cmocka_unit_test(test_every_key_of_a_scenario_has_a_path),
        cmocka_unit_test(test_every_example_of_a_key_loads),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
