/* Doubt: with the clocks of hosts anywhere within their bounds, no check finds what is not so. Each of
 * the planted wrongs is judged again as if a node of it had a clock of its own that is off: what was
 * found with one clock is found again, or is unknown; and what is said is what was said before, word for
 * word: `make verdicts` writes sums over it anew. */
#include "tests/harness/judge/checks/all_cases.h"
#include "tests/harness/judge/checks/planted.h"
#include "tests/harness/judge/checks/verdicts_compare.h"

#include "base/rand.h"
#include "harness/history/clocks.h"
#include "harness/judge/checks/check.h"
#include "harness/judge/checks/lost.h"
#include "harness/judge/doubt.h"
#include "harness/judge/views.h"

#include <inttypes.h>

static const int64_t s = 1000000000;

static struct scenario scenario_of(const struct planted_case *c) {
    struct scenario sc = planted_scenario(c->history);
    sc.torchrun_semantics = c->dialect == DIALECT_TORCHRUN || c->dialect == DIALECT_LEGACY;
    sc.job.rdzv_backend = c->dialect == DIALECT_LEGACY ? "etcd" : NULL;
    sc.job.launcher = c->dialect == DIALECT_TEMPLATE ? "template" : "rankrun";
    return sc;
}

/* As the check finds it when whoever asks does not know that clocks are wrong. */
static struct finding ask(const struct scenario *sc, const struct history *h,
                          const struct check *c) {
    struct views *views = views_new(sc, h);
    struct lost lost;
    struct finding f;
    lost_find(&lost, h, views_rounds(views, VIEWS_OF_ROUNDS));
    views_ask(views, c, &lost, &f);
    views_free(views);
    return f;
}

/* The same, where every answer that hangs on a clock is to be unknown. */
static struct finding ask_in_doubt(const struct scenario *sc, const struct history *h,
                                   const struct check *c) {
    struct doubt *d = doubt_new(sc, h);
    if (!d)
        return ask(sc, h, c);
    struct views *views = views_new(sc, doubt_history(d));
    struct lost lost;
    struct finding found[64];
    lost_find(&lost, doubt_history(d), views_rounds(views, VIEWS_OF_ROUNDS));
    size_t at = 0;
    for (size_t i = 0; checks[i]; i++) {
        found[i] = (struct finding){.check = checks[i]->name, .status = FINDING_UNKNOWN};
        at = checks[i] == c ? i : at;
    }
    views_ask(views, c, &lost, &found[at]);
    doubt_cast(d, found, &lost);
    views_free(views);
    doubt_free(d);
    return found[at];
}

/* What is stamped on the node itself, where the harness is elsewhere. */
static bool stamped_there(const struct record *r, const char *node) {
    return str_eq(r->node, node) && (r->source == SOURCE_KERNEL || r->source == SOURCE_PROBE ||
                                     r->source == SOURCE_JOB || r->source == SOURCE_LAUNCHER);
}

/* The same run, a hundred seconds later, as a node's clock has stamped it that is off by so much. */
static void with_clock(struct history *ret, const struct history *h, const char *node,
                       int64_t off_ns, int64_t bound_ns) {
    int64_t *t = calloc(h->n, sizeof(*t));
    for (size_t i = 0; i < h->n; i++)
        t[i] = h->records[i]->t_ns + 100 * s + (stamped_there(h->records[i], node) ? off_ns : 0);
    history_retime(ret, h, t);
    for (size_t i = 0; i < h->n; i++)
        if (stamped_there(h->records[i], node))
            ret->records[i]->bound_ns = bound_ns;
    free(t);
}

static const char *node_of(const struct history *h, struct rand *r) {
    for (int tries = 0; tries < 1000; tries++) {
        const struct record *one = h->records[rand_below(r, h->n)];
        if (*one->node)
            return one->node;
    }
    return "n0";
}

struct tally {
    size_t asked, kept, open, wrong_alone; /* wrong_alone: found otherwise by who does not doubt */
    uint64_t sum;                          /* of all that was found of this case */
};

static void add_to_sum(struct tally *n, const struct finding *f) {
    struct buf said = {0};
    verdicts_put(&said, f);
    n->sum = verdicts_sum(n->sum, buf_str(&said));
    buf_fini(&said);
}

static void try_clock(const struct planted_case *c, const struct history *h, const char *node,
                      int64_t off_ns, int64_t bound_ns, struct tally *n) {
    const struct scenario sc = scenario_of(c);
    const struct check *check = check_find(c->check);
    struct history off;
    const struct finding truth = ask(&sc, h, check);
    with_clock(&off, h, node, off_ns, bound_ns);
    const struct finding alone = ask(&sc, &off, check), f = ask_in_doubt(&sc, &off, check);
    n->asked++;
    add_to_sum(n, &f);
    n->kept += f.status == truth.status;
    n->open += f.status != truth.status;
    n->wrong_alone += alone.status != truth.status && alone.status != FINDING_UNKNOWN;
    if (f.status != truth.status && f.status != FINDING_UNKNOWN)
        fail_msg("%s: the clock of %s is off by %.3f ms of at most %.3f ms: %s, \"%s\"; it is %s, "
                 "\"%s\"",
                 c->place, node, (double)off_ns / 1e6, (double)bound_ns / 1e6,
                 finding_status_name(f.status), f.seen, finding_status_name(truth.status),
                 truth.seen);
    if (!bound_ns && f.status != truth.status)
        fail_msg("%s: without a bound it is %s", c->place, finding_status_name(f.status));
    history_fini(&off);
}

/* By the case alone, so that one more case leaves all others as they were. */
static struct rand chance_of(const struct planted_case *c) {
    struct rand r;
    uint64_t seed = 23;
    for (const char *at = c->name; *at; at++)
        seed = seed * 31 + (unsigned char)*at;
    rand_init(&r, seed);
    return r;
}

static void test_no_check_finds_what_a_wrong_clock_makes_of_it(void **state) {
    (void)state;
    static const int64_t bounds[] = {0,         20000,      1000000,    30000000,
                                     300000000, 1000000000, 10000000000};
    struct tally n = {0};
    struct buf is = {0};
    for (const struct planted_case *c = cases.first; c; c = c->next) {
        struct rand r = chance_of(c);
        struct history h;
        size_t open = n.open;
        n.sum = VERDICTS_SUM_OF_NOTHING;
        planted_load(&h, c->history, c->edits);
        for (size_t i = 0; i < sizeof(bounds) / sizeof(*bounds); i++) {
            int64_t off =
                bounds[i] ? (int64_t)rand_below(&r, (uint64_t)(2 * bounds[i])) - bounds[i] : 0;
            try_clock(c, &h, node_of(&h, &r), off, bounds[i], &n);
        }
        buf_printf(&is, "%s: %s: %zu open, %016" PRIx64 "\n", c->check, c->name, n.open - open,
                   n.sum);
        history_fini(&h);
    }
    compare("doubt", &is);
    buf_fini(&is);
    print_message("%zu asked, %zu found again, %zu open; without doubt %zu would be wrong\n",
                  n.asked, n.kept, n.open, n.wrong_alone);
    assert_true(n.wrong_alone > n.asked / 50); /* the clocks are wrong enough to matter */
    assert_true(n.kept > n.asked / 2);         /* and not everything is left open */
}

/* ---- several clocks ---- */

/* Up to so long before its stamp, as a helper tells it that was late to look. */
static void tell_late(struct arena *a, struct record *r, int64_t late_ns) {
    struct json *fields = arena_new(a, struct json), *late = arena_new(a, struct json);
    *fields = *r->fields;
    *late =
        (struct json){.key = "late", .type = JSON_INT, .integer = late_ns, .next = fields->first};
    fields->first = late;
    fields->length++;
    r->fields = fields;
}

enum { CLOCKS_MAX = 3 };

/* A run by one clock, by a second one, and so on. */
struct several {
    struct history v[CLOCKS_MAX];
    size_t n;
    struct arena arena;
};

/* Up to three nodes, each off by as much as its bound allows or less, and a third of their records told late. */
static const struct history *with_clocks(struct several *ret, const struct history *h,
                                         struct rand *r) {
    static const int64_t bounds[] = {1000, 400000, 30000000, 900000000, 4000000000};
    const struct history *from = h;
    size_t i = 0;
    *ret = (struct several){0};
    for (ret->n = 1 + rand_below(r, CLOCKS_MAX); i < ret->n; i++) {
        int64_t bound_ns = bounds[rand_below(r, 5)];
        int64_t off_ns = (int64_t)rand_below(r, (uint64_t)(2 * bound_ns)) - bound_ns;
        with_clock(&ret->v[i], from, node_of(h, r), off_ns, bound_ns);
        from = &ret->v[i];
    }
    for (i = 0; i < from->n; i++)
        if (from->records[i]->bound_ns && rand_below(r, 3) == 0)
            tell_late(&ret->arena, from->records[i],
                      (int64_t)rand_below(r, 3 * (uint64_t)from->records[i]->bound_ns));
    return from;
}

static void several_fini(struct several *c) {
    for (size_t i = 0; i < c->n; i++)
        history_fini(&c->v[i]);
    arena_fini(&c->arena);
}

static void
test_what_is_said_where_several_clocks_are_uncertain_is_the_same_as_before(void **state) {
    (void)state;
    enum { DRAWS = 2 };
    struct buf is = {0};
    for (const struct planted_case *c = cases.first; c; c = c->next) {
        const struct scenario sc = scenario_of(c);
        struct rand r = chance_of(c);
        struct tally n = {.sum = VERDICTS_SUM_OF_NOTHING};
        struct history h;
        planted_load(&h, c->history, c->edits);
        for (int i = 0; i < DRAWS; i++) {
            struct several off;
            const struct finding f =
                ask_in_doubt(&sc, with_clocks(&off, &h, &r), check_find(c->check));
            several_fini(&off);
            n.open += f.status == FINDING_UNKNOWN;
            add_to_sum(&n, &f);
        }
        buf_printf(&is, "%s: %s: %zu of %d open, %016" PRIx64 "\n", c->check, c->name, n.open,
                   DRAWS, n.sum);
        history_fini(&h);
    }
    compare("clocks", &is);
    buf_fini(&is);
}

/* ---- one clock ---- */

/* One check of a run in which n1 has a clock of its own that is known to so much. */
static struct finding ask_n1(const char *check, const struct scenario *sc, const struct edit *edits,
                             int64_t bound_ns) {
    struct history h, off;
    planted_load(&h, sc->name, edits);
    with_clock(&off, &h, "n1", 0, bound_ns);
    struct finding f = ask_in_doubt(sc, &off, check_find(check));
    history_fini(&off);
    history_fini(&h);
    return f;
}

/* n0 has noticed it after 809 ms, by our clock, and n1 10 us later, by its own: whatever that says,
 * it was no later; and whether it was earlier is told down to the bound. */
static void
test_a_budget_within_the_bound_is_open_and_says_which_moments_and_whose_clock(void **state) {
    (void)state;
    static const struct edit none[] = {{0}};
    static const struct {
        int64_t budget_ns, bound_ns;
        enum finding_status is;
    } rows[] = {
        {2000000000, 0, FINDING_PASS},
        {2000000000, 400000, FINDING_PASS},
        {2000000000, 10000000000, FINDING_PASS},
        {809100000, 0, FINDING_PASS},
        {808900000, 0, FINDING_FAIL},
        {809100000, 400000, FINDING_PASS},
        {808900000, 400000, FINDING_UNKNOWN},
        {500000000, 400000, FINDING_FAIL},
        {500000000, 1000000000, FINDING_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct scenario sc = planted_scenario("node-powered-off");
        const struct budget budget = {.ns = rows[i].budget_ns};
        sc.expect.detect_within = &budget;
        struct finding f = ask_n1("detect", &sc, none, rows[i].bound_ns);
        if (f.status != rows[i].is)
            fail_msg("row %zu: %s, \"%s\"", i, finding_status_name(f.status), f.seen);
        if (rows[i].bound_ns != 400000 || f.status != FINDING_UNKNOWN)
            continue;
        assert_non_null(strstr(f.seen, "(fault-in-force) came 809."));
        assert_non_null(strstr(f.seen, "(worker-exit of n1), and the clock of n1 is known to "
                                       "within 0.400 ms: too close to tell"));
        assert_int_not_equal(f.evidence[1], 0);
    }
}

/* The verdict of the whole run: what is open makes it inconclusive, and one clock makes it what it was. */
static void test_a_verdict_is_inconclusive_where_a_check_hangs_on_a_clock(void **state) {
    (void)state;
    static const struct edit none[] = {{0}};
    static const struct budget budget = {.ns = 808900000};
    for (int own_clock = 0; own_clock < 2; own_clock++) {
        struct scenario sc = planted_scenario("node-powered-off");
        struct history h, off;
        struct verdict v;
        sc.expect.detect_within = &budget;
        planted_load(&h, sc.name, none);
        with_clock(&off, &h, "n1", 0, own_clock ? 400000 : 0);
        struct trial t = {.scenario = &sc, .history = &off};
        verdict_judge(&v, &t);
        const struct finding *f = finding_of(&v, "detect");
        assert_int_equal(f->status, own_clock ? FINDING_UNKNOWN : FINDING_FAIL);
        assert_int_equal(v.exit_code, own_clock ? 2 : 1);
        assert_true(!own_clock || strstr(f->where, "history.jsonl records 43, 49"));
        for (size_t i = 0; i < v.n; i++)
            assert_true(v.v[i].status != FINDING_FAIL || !own_clock);
        history_fini(&off);
        history_fini(&h);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_check_finds_what_a_wrong_clock_makes_of_it),
        cmocka_unit_test(
            test_what_is_said_where_several_clocks_are_uncertain_is_the_same_as_before),
        cmocka_unit_test(
            test_a_budget_within_the_bound_is_open_and_says_which_moments_and_whose_clock),
        cmocka_unit_test(test_a_verdict_is_inconclusive_where_a_check_hangs_on_a_clock),
    };
    fill = argc == 2 && str_eq(argv[1], "--fill");
    return cmocka_run_group_tests(tests, read_cases, drop_cases);
}
