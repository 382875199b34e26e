/* Two entries that contradict each other: every fault of the table that lasts with itself, and every two on
 * the wire with each other. What is known before the run is refused with both places; what composes is
 * accepted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "harness/plan/wire_claim.h"
#include "tests/harness/plan/world.h"

/* "fault: x, on: y, with: {..}" of its example, without trigger and end. */
static void entry_of(const struct fault *f, char *ret, size_t size) {
    world_entry(f, "", ret, size);
    char *from = strstr(ret, "fault: "), *end = strstr(from, ", for: ");
    *(end ? end : strrchr(from, '}')) = '\0';
    memmove(ret, from, strlen(from) + 1);
}

/* Both entries, each with its trigger and its end; NULL: they are accepted. */
static const char *two(struct scratch *x, const char *world, const struct fault *f,
                       const char *first, const struct fault *g, const char *then) {
    static char said[2000];
    char a[400], b[400], entry[1200];
    entry_of(f, a, sizeof(a));
    entry_of(g, b, sizeof(b));
    snprintf(entry, sizeof(entry), "{id: one, %s, %s}\n  - {id: two, %s, %s}", a, first, b, then);
    const char *why = world_refusal(x, world, entry);
    if (why)
        snprintf(said, sizeof(said), "%s", why);
    scratch_drop(x);
    return why ? said : NULL;
}

static bool is_contradiction(const char *said, const char *world, const struct fault *f,
                             const struct fault *g) {
    char second[200], first[200];
    snprintf(second, sizeof(second), ":%d:%zu: two (%s) contradicts one (%s) in line %d, column ",
             world_line(world) + 1, strlen("  - {id: two, fault: ") + 1, g->name, f->name,
             world_line(world));
    snprintf(first, sizeof(first), "column %zu, which ", strlen("  - {id: one, fault: ") + 1);
    return said && strstr(said, second) && strstr(said, first);
}

static void assert_refused(const char *said, const char *world, const struct fault *f,
                           const struct fault *g) {
    if (!is_contradiction(said, world, f, g))
        fail_msg("%s, then %s: %s", f->name, g->name, said ? said : "is accepted");
}

static void assert_accepted(const char *said, const struct fault *f, const struct fault *g) {
    if (said)
        fail_msg("%s, then %s: %s", f->name, g->name, said);
}

static bool lasts(const struct fault *f) {
    return fault_has(f, EFFECT_LASTING) && !f->course;
}

static void test_every_fault_that_lasts_contradicts_itself_while_it_does(void **state) {
    (void)state;
    int n = 0;
    for (size_t i = 0; faults[i]; i++) {
        const struct fault *f = faults[i];
        const char *world = world_of(i);
        struct scratch x;
        bool named = strstr(f->example, ", on: n") || strstr(f->example, ", on: rank");
        if (!lasts(f) || !named || strstr(f->example, "on: rank"))
            continue; /* who is rank 0 may change */
        assert_refused(two(&x, world, f, "when: {step: 20}", f, "when: {after: one}"), world, f, f);
        assert_refused(two(&x, world, f, "when: {step: 20}, for: 5s", f, "when: {after: one}"),
                       world, f, f);
        assert_refused(two(&x, world, f, "when: {step: 20}, for: 5s", f, "when: {step: 20}"), world,
                       f, f);
        if (!(f->targets & TARGET_WORKER))
            assert_refused(two(&x, world, f, "when: {step: 20}, for: 5s", f,
                               "when: {after: one, plus: 4s}, for: 1s"),
                           world, f, f);
        assert_accepted(
            two(&x, world, f, "when: {step: 20}, for: 5s", f, "when: {after: one, plus: 6s}"), f,
            f);
        assert_accepted(two(&x, world, f, "when: {step: 20}, for: 5s", f, "when: {step: 30}"), f,
                        f);
        n++;
    }
    assert_true(n > 20);
}

/* A worker has each limit once as well, at one moment; later it may be another one. */
static void test_two_limits_of_one_worker_contradict_each_other_at_one_moment(void **state) {
    (void)state;
    int n = 0;
    for (size_t i = 0; faults[i]; i++) {
        const struct fault *f = faults[i];
        struct scratch x;
        char entry[600];
        if (!lasts(f) || f->targets != TARGET_WORKER)
            continue;
        for (int later = 0; later < 2; later++) {
            snprintf(entry, sizeof(entry),
                     "{id: one, fault: %s, on: n1/0, when: {step: 20}}\n"
                     "  - {id: two, fault: %s, on: n1/0, when: {after: one%s}}",
                     f->name, f->name, later ? ", plus: 1s" : "");
            const char *why = world_refusal(&x, world_of(i), entry);
            if (later)
                assert_accepted(why, f, f);
            else
                assert_refused(why, world_of(i), f, f);
            scratch_drop(&x);
        }
        n++;
    }
    assert_true(n > 5);
}

static bool is_on_wire(const struct fault *f) {
    return lasts(f) && strcmp(fault_family(f), "network") == 0;
}

/* By what they do to a frame, as a table that nobody derives from the code. */
static bool do_the_same(const struct fault *f, const struct fault *g) {
    static const char *const same[] = {"net-corrupt net-corrupt-silent", "net-block net-refuse",
                                       "net-dns-fail net-dns-wrong", "net-partition net-flap",
                                       NULL};
    bool both = f == g;
    for (const char *const *s = same; *s && !both; s++) {
        char words[64], *space;
        snprintf(words, sizeof(words), "%s", *s);
        space = strchr(words, ' ');
        *space = '\0';
        both = (str_eq(f->name, words) && str_eq(g->name, space + 1)) ||
               (str_eq(g->name, words) && str_eq(f->name, space + 1));
    }
    return both;
}

/* What each does at least; arguments that are about other ports or names would be of their own. */
static void test_every_two_faults_on_the_wire_compose_or_contradict(void **state) {
    (void)state;
    int composed = 0, refused = 0;
    for (size_t i = 0; faults[i]; i++)
        for (size_t k = 0; faults[k]; k++) {
            struct scratch x;
            const struct fault *f = faults[i], *g = faults[k];
            char entry[600];
            if (!is_on_wire(f) || !is_on_wire(g))
                continue;
            snprintf(entry, sizeof(entry),
                     "{id: one, fault: %s, on: n2, when: {step: 20}}\n"
                     "  - {id: two, fault: %s, on: n2, when: {after: one}}",
                     f->name, g->name);
            const char *why = world_refusal(&x, worlds[0], entry);
            if (do_the_same(f, g) || str_eq(f->name, "net-partition")) {
                assert_refused(why, worlds[0], f, g);
                refused++;
            } else {
                assert_accepted(why, f, g);
                composed++;
            }
            scratch_drop(&x);
        }
    print_message("%d pairs compose, %d are refused\n", composed, refused);
    assert_true(composed > 150 && refused > 20);
}

static void test_what_differs_in_whom_or_what_it_is_about_does_not_contradict(void **state) {
    static const struct {
        const char *first, *then;
        bool good;
    } rows[] = {
        {"net-delay, on: n1", "net-delay, on: n2", true},
        {"net-delay, on: n1, with: {planes: data}", "net-delay, on: n1, with: {planes: store}",
         true},
        {"net-delay, on: n1, with: {planes: data}", "net-delay, on: n1", true},
        {"net-delay, on: n1", "net-delay, on: n1, with: {planes: data}", false},
        {"net-delay, on: n1", "net-delay, with: {groups: \"n0|n1\"}", false},
        {"net-delay, with: {groups: \"n0|n1\"}", "net-delay, with: {groups: \"n0|n2\"}", true},
        {"net-delay, on: n1, with: {direction: to}", "net-delay, on: n1, with: {direction: from}",
         true},
        {"net-refuse, on: n1, with: {port: 80}", "net-block, on: n1, with: {port: 81}", true},
        {"net-refuse, on: n1, with: {port: 80}", "net-block, on: n1, with: {port: 80}", false},
        {"net-dns-fail, on: n1, with: {names: n0}", "net-dns-wrong, on: n1, with: {names: n2}",
         true},
        {"net-partition, on: n1, with: {planes: data}", "net-loss, on: n1, with: {planes: store}",
         true},
        {"net-partition, on: n1, with: {planes: data}", "net-loss, on: n1, with: {planes: data}",
         false},
        {"net-partition, on: n1", "net-delay, on: n1, with: {delay: 1s}", false},
        {"net-partition, on: n1", "net-delay, on: n2, with: {delay: 1s}", true},
        {"net-delay, on: random of nodes", "net-delay, on: n1", true},
        {"net-delay, with: {shape: halves}", "net-delay, with: {shape: halves}", true},
        {"node-cpu, on: n1", "node-memory, on: n1", true},
        {"clock-jump, on: n1", "clock-strobe, on: n1", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct scratch x;
        char entry[600];
        snprintf(entry, sizeof(entry),
                 "{id: one, when: {step: 20}, fault: %s}\n"
                 "  - {id: two, when: {after: one}, fault: %s}",
                 rows[i].first, rows[i].then);
        const char *why = world_refusal(&x, worlds[0], entry);
        if (rows[i].good != !why || (why && !strstr(why, "two (")))
            fail_msg("%s\n%s", entry, why ? why : "is accepted");
        scratch_drop(&x);
    }
}

/* A partition that ends leaves a delay to be felt. */
static void test_what_outlives_a_partition_is_felt(void **state) {
    static const struct {
        const char *cut, *then;
        bool good;
    } rows[] = {{"for: 5s", "when: {after: cut}, for: 10s", true},
                {"for: 5s", "when: {after: cut}", true},
                {"for: 5s", "when: {after: cut, plus: 1s}, for: 4s", false},
                {"for: 5s", "when: {after: cut, plus: 1s}, for: 4001ms", true},
                {"until: {round: 2}", "when: {after: cut}, for: 1s", true}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct scratch x;
        char entry[600];
        snprintf(entry, sizeof(entry),
                 "{id: cut, when: {step: 20}, fault: net-partition, on: n2, %s}\n"
                 "  - {id: slow, fault: net-delay, on: n2, %s}",
                 rows[i].cut, rows[i].then);
        const char *why = world_refusal(&x, worlds[0], entry);
        if (rows[i].good != !why || (why && !strstr(why, "lets no frame pass there")))
            fail_msg("%s\n%s", entry, why ? why : "is accepted");
        scratch_drop(&x);
    }
}

static void test_a_heal_of_what_is_over_is_refused(void **state) {
    static const struct {
        const char *fault, *heal, *said;
    } rows[] = {
        {"for: 5s", "{when: {after: it, plus: 4s}, heal: it}", NULL},
        {"for: 5s", "{when: {after: it, plus: 5s}, heal: it}",
         ":41: heal: it (net-delay) is over by then: its for ends it after 5 s"},
        {"for: 5s, times: each-round", "{when: {after: it, plus: 5s}, heal: it}", NULL},
        {"times: 1",
         "{id: h, when: {after: it}, heal: it}\n  - {when: {after: h, plus: 5s}, heal: it}",
         ":40: heal: it (net-delay) is over by then: h in line "},
        {"times: 2",
         "{id: h, when: {after: it}, heal: it}\n  - {when: {after: h, plus: 5s}, heal: it}", NULL},
        {"times: 1", "{id: h, when: {after: it}, heal: it}\n  - {when: {time: 5s}, heal: it}",
         NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct scratch x;
        char entry[600];
        snprintf(entry, sizeof(entry),
                 "{id: it, when: {step: 20}, fault: net-delay, on: n2, %s}\n  - %s", rows[i].fault,
                 rows[i].heal);
        const char *why = world_refusal(&x, worlds[0], entry);
        if (!rows[i].said != !why || (why && !strstr(why, rows[i].said)))
            fail_msg("%s\n%s", entry, why ? why : "is accepted");
        scratch_drop(&x);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_fault_that_lasts_contradicts_itself_while_it_does),
        cmocka_unit_test(test_two_limits_of_one_worker_contradict_each_other_at_one_moment),
        cmocka_unit_test(test_every_two_faults_on_the_wire_compose_or_contradict),
        cmocka_unit_test(test_what_differs_in_whom_or_what_it_is_about_does_not_contradict),
        cmocka_unit_test(test_what_outlives_a_partition_is_felt),
        cmocka_unit_test(test_a_heal_of_what_is_over_is_refused),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
