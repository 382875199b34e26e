/* Two states that will behave alike look alike, and others do not. This file stands between the simulator and the core: beside
 * every agent a second one takes every step, whose clocks show another time. */
#define rendezvous_step core_step
#define rendezvous_free core_free
#include "agent/core/rendezvous.c"
#undef rendezvous_step
#undef rendezvous_free
#include "harness/sim/sim.h"
#include "tests/agent/core/seen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

/* How much later it is for the second one: hosts have been up for different times, and slept for some. */
static const int64_t LATER_NS = 7777777777777, BOOT_LATER_NS = 9999999999999;
enum { PAIRS_MAX = 512, COMPARE_EVERY = 3, LOOK_EVERY = 300 };

static struct pair {
    const struct rendezvous *first;
    struct rendezvous *second;
} pairs[PAIRS_MAX];
static uint64_t steps, looked, fields_seen;

static struct pair *pair_of(const struct rendezvous *r) {
    struct pair *spare = NULL;
    for (int i = 0; i < PAIRS_MAX; i++) {
        if (pairs[i].first == r)
            return &pairs[i];
        if (!pairs[i].first)
            spare = &pairs[i];
    }
    assert_non_null(spare);
    *spare = (struct pair){r, rendezvous_copy(r)};
    return spare;
}

/* ---- alike ---- */

/* A time as far as it matters: from how long ago on it is as good as any earlier one. */
static int64_t distance(const struct canonical_number *n, int64_t now_ns) {
    int64_t far_ns = n->value - now_ns;
    return far_ns < -n->past_ns ? -n->past_ns - 1 : far_ns;
}

/* When the last round ran is hashed as it is: an hour is counted from there. */
static void same_state(const struct rendezvous *a, struct rendezvous *b) {
    struct canonical x = {0}, y = {0};
    int64_t ran_ns = b->ran_ns, ended_ns = b->ended_ns;
    assert_true(ran_ns == (a->ran_ns ? a->ran_ns + LATER_NS : 0));
    assert_true(ended_ns == (a->ended_ns ? a->ended_ns + LATER_NS : 0));
    b->ran_ns = a->ran_ns;
    b->ended_ns = a->ended_ns;
    rendezvous_canonical(a, 1, &x);
    rendezvous_canonical(b, 1, &y);
    b->ran_ns = ran_ns;
    b->ended_ns = ended_ns;
    assert_true(x.hash == y.hash);
    assert_int_equal(x.n, y.n);
    for (size_t i = 0; i < x.n; i++) {
        const struct canonical_number *p = &x.numbers[i], *q = &y.numbers[i];
        bool unset = p->is_time && (p->value == 0 || p->value == INT64_MAX) && p->value == q->value;
        assert_int_equal(p->is_time, q->is_time);
        assert_true(p->past_ns == q->past_ns && p->class == q->class);
        if (p->is_time && !unset)
            assert_true(distance(p, a->now.monotonic_ns) == distance(q, b->now.monotonic_ns));
        else
            assert_true(p->value == q->value);
    }
    canonical_fini(&x);
    canonical_fini(&y);
}

/* What it asks for, in the time of the first one. */
static uint64_t asked_for(const struct action *actions, size_t n, int64_t later_ns,
                          int64_t boot_later_ns) {
    seen = 0;
    for (size_t i = 0; i < n; i++) {
        struct action a = actions[i];
        struct round_spec start;
        if (a.kind == ACTION_TIMER) {
            a.timer.at_ns -= later_ns;
        } else if (a.kind == ACTION_DEADLINE) {
            a.deadline.fence_ns -= boot_later_ns;
            a.deadline.hard_ns -= boot_later_ns;
        } else if (a.kind == ACTION_START) {
            start = *a.start;
            start.fence_ns -= start.deadline_required ? boot_later_ns : 0;
            start.hard_ns -= start.deadline_required ? boot_later_ns : 0;
            a.start = &start;
        }
        see_action(&a);
    }
    return seen;
}

/* ---- not alike ---- */

#define FIELD(of, member)                                                                          \
    { #of "." #member, offsetof(struct of, member), sizeof(((struct of *)0)->member) }

struct canonical_field {
    const char *name;
    size_t offset, size;
};

static const struct canonical_field of_agent[] = {
    FIELD(rendezvous, has_cur),
    FIELD(rendezvous, cur.inc),
    FIELD(rendezvous, cur.attempt),
    FIELD(rendezvous, cur.rounds_before),
    FIELD(rendezvous, cur.hold),
    FIELD(rendezvous, cur.min),
    FIELD(rendezvous, cur.max),
    FIELD(rendezvous, cur.max_restarts),
    FIELD(rendezvous, cur.max_free_rounds),
    FIELD(rendezvous, cur.restart_mode),
    FIELD(rendezvous, cur.on_node_loss),
    FIELD(rendezvous, head.round),
    FIELD(rendezvous, head.phase),
    FIELD(rendezvous, head.n),
    FIELD(rendezvous, head.last_round),
    FIELD(rendezvous, head.restarts),
    FIELD(rendezvous, head.charged_round),
    FIELD(rendezvous, head.free_rounds),
    FIELD(rendezvous, head.cause),
    FIELD(rendezvous, head.failure.uid),
    FIELD(rendezvous, head.failure.wait_status),
    FIELD(rendezvous, head.failure.error),
    FIELD(rendezvous, head.token),
    FIELD(rendezvous, head.master_port),
    FIELD(rendezvous, head.outcome),
    FIELD(rendezvous, head_revision),
    FIELD(rendezvous, lead),
    FIELD(rendezvous, lead_revision),
    FIELD(rendezvous, lead_seen),
    FIELD(rendezvous, generations[WATCH_HEAD]),
    FIELD(rendezvous, generations[WATCH_ALL]),
    FIELD(rendezvous, watch_lost[WATCH_LEAD]),
    FIELD(rendezvous, reread.id),
    FIELD(rendezvous, reread.settled),
    FIELD(rendezvous, read_places.id),
    FIELD(rendezvous, session.phase),
    FIELD(rendezvous, session.uid),
    FIELD(rendezvous, session.revision),
    FIELD(rendezvous, session.request.id),
    FIELD(rendezvous, session.new_inc),
    FIELD(rendezvous, session.former.set),
    FIELD(rendezvous, session.former.revision),
    FIELD(rendezvous, session.former.head_revision),
    FIELD(rendezvous, session.former.round),
    FIELD(rendezvous, session.quarantine),
    FIELD(rendezvous, session.created),
    FIELD(rendezvous, session.ever),
    FIELD(rendezvous, session.beat_out),
    FIELD(rendezvous, session.leave.id),
    FIELD(rendezvous, session.leave_without_lead),
    FIELD(rendezvous, session.leave_had_lead),
    FIELD(rendezvous, places[0].pid),
    FIELD(rendezvous, places[0].known),
    FIELD(rendezvous, places[1].present),
    FIELD(rendezvous, places[1].value.rank_base),
    FIELD(rendezvous, asked_pids[1]),
    FIELD(rendezvous, group.state),
    FIELD(rendezvous, group.round),
    FIELD(rendezvous, group.workers),
    FIELD(rendezvous, group.exited),
    FIELD(rendezvous, group.stopping),
    FIELD(rendezvous, group.killed),
    FIELD(rendezvous, group.failed),
    FIELD(rendezvous, group.fenced),
    FIELD(rendezvous, group.ok),
    FIELD(rendezvous, group.stuck),
    FIELD(rendezvous, group.looked),
    FIELD(rendezvous, group.failure.rank),
    FIELD(rendezvous, group.failure.error),
    FIELD(rendezvous, group.end.id),
    FIELD(rendezvous, group.done.settled),
    FIELD(rendezvous, group.ack.id),
    FIELD(rendezvous, group.floor),
    FIELD(rendezvous, group.ack_round),
    FIELD(rendezvous, group.acked),
    FIELD(rendezvous, group.port_round),
    FIELD(rendezvous, group.port_asked),
    FIELD(rendezvous, group.addr),
    FIELD(rendezvous, group.port),
    FIELD(rendezvous, lifeline.id),
    FIELD(rendezvous, lifeline.open),
    FIELD(rendezvous, holder.uid),
    FIELD(rendezvous, holder.known),
    FIELD(rendezvous, holder.present),
    FIELD(rendezvous, holder.beat_revision),
    FIELD(rendezvous, holder.excused),
    FIELD(rendezvous, holder.read.id),
    FIELD(rendezvous, holder.take.id),
    FIELD(rendezvous, holder.rank),
    FIELD(rendezvous, standby.on),
    FIELD(rendezvous, standby.pid),
    FIELD(rendezvous, standby.uid),
    FIELD(rendezvous, standby.known),
    FIELD(rendezvous, standby.rank),
    FIELD(rendezvous, standby.read.id),
    FIELD(rendezvous, coordinator.read.id),
    FIELD(rendezvous, coordinator.loaded),
    FIELD(rendezvous, coordinator.view.revision),
    FIELD(rendezvous, coordinator.view.head_revision),
    FIELD(rendezvous, coordinator.view.lead_revision),
    FIELD(rendezvous, coordinator.view.dirty),
    FIELD(rendezvous, coordinator.view.changed),
    FIELD(rendezvous, coordinator.view.head.round),
    FIELD(rendezvous, coordinator.view.head.last_pid),
    FIELD(rendezvous, coordinator.view.head.free_age_ms),
    FIELD(rendezvous, coordinator.decide.id),
    FIELD(rendezvous, coordinator.n_plans),
    FIELD(rendezvous, coordinator.pid),
    FIELD(rendezvous, coordinator.pid_head),
    FIELD(rendezvous, coordinator.pid_n),
    FIELD(rendezvous, coordinator.doubled_told),
    FIELD(rendezvous, coordinator.pause_told),
    FIELD(rendezvous, coordinator.hold_told),
    FIELD(rendezvous, coordinator.cleaned_round),
    FIELD(rendezvous, coordinator.clean.id),
    FIELD(rendezvous, coordinator.lease.id),
    FIELD(rendezvous, coordinator.claimed),
    FIELD(rendezvous, past.inc),
    FIELD(rendezvous, past.round),
    FIELD(rendezvous, past.member),
    FIELD(rendezvous, charge.round),
    FIELD(rendezvous, charge.count),
    FIELD(rendezvous, contact.wrote),
    FIELD(rendezvous, signo),
    FIELD(rendezvous, giving_up),
    FIELD(rendezvous, over),
    FIELD(rendezvous, stranger),
    FIELD(rendezvous, outcome_code),
};

static const struct canonical_field of_member[] = {
    FIELD(member, uid),           FIELD(member, known),      FIELD(member, value.node),
    FIELD(member, value.slots),   FIELD(member, value.seat), FIELD(member, session),
    FIELD(member, created),       FIELD(member, excused),    FIELD(member, beat_revision),
    FIELD(member, gone),          FIELD(member, acked),      FIELD(member, done),
    FIELD(member, gone_revision), FIELD(member, ack.why),    FIELD(member, ack.port),
    FIELD(member, place.world),   FIELD(member, returned),   FIELD(member, rank_now),
    FIELD(member, rank_last),     FIELD(member, revoke.id),
};

static bool looks_like(const struct rendezvous *a, const struct canonical *was) {
    struct canonical is = {0};
    rendezvous_canonical(a, 1, &is);
    bool same = is.hash == was->hash && is.n == was->n;
    for (size_t i = 0; same && i < is.n; i++) {
        const struct canonical_number *p = &is.numbers[i], *q = &was->numbers[i];
        same = p->is_time == q->is_time && p->class == q->class && p->value == q->value &&
               p->past_ns == q->past_ns;
    }
    canonical_fini(&is);
    return same;
}

/* Each of these fields in turn is another, in a copy. */
static void see_fields(struct rendezvous *p, void *of, const struct canonical_field *fields,
                       size_t n) {
    struct canonical was = {0};
    rendezvous_canonical(p, 1, &was);
    for (size_t i = 0; i < n; i++) {
        char *byte = (char *)of + fields[i].offset;
        char kept = *byte;
        *byte = fields[i].size == 1 ? !kept : (char)(kept ^ 1);
        if (looks_like(p, &was))
            fail_msg("a state that differs in %s looks as it did before", fields[i].name);
        *byte = kept;
    }
    assert_true(looks_like(p, &was));
    fields_seen += n;
    canonical_fini(&was);
}

static void look(const struct rendezvous *r) {
    struct rendezvous *p = rendezvous_copy(r);
    struct view *v = &p->coordinator.view;
    looked++;
    see_fields(p, p, of_agent, sizeof(of_agent) / sizeof(*of_agent));
    for (size_t i = 0; i < v->n && i < 4; i++)
        see_fields(p, v->members[i], of_member, sizeof(of_member) / sizeof(*of_member));
    for (size_t i = 0; i < v->n_plans; i++) {
        const struct canonical_field pid = {"round_plan.pid", offsetof(struct round_plan, pid),
                                            PID_SIZE};
        const struct canonical_field rank = {"plan_entry.value", offsetof(struct plan_entry, value),
                                             sizeof(int)};
        see_fields(p, &v->plans[i], &pid, 1);
        for (size_t k = 0; k < v->plans[i].n; k++)
            see_fields(p, &v->plans[i].entries[k], &rank, 1);
    }
    core_free(p);
}

/* ---- the seam ---- */

const struct action *rendezvous_step(struct rendezvous *r, const struct event *event,
                                     struct now now, size_t *ret_n);
struct rendezvous *rendezvous_free(struct rendezvous *r);

const struct action *rendezvous_step(struct rendezvous *r, const struct event *event,
                                     struct now now, size_t *ret_n) {
    struct pair *p = pair_of(r);
    size_t n = 0;
    struct now later = {now.monotonic_ns + LATER_NS, now.boottime_ns + BOOT_LATER_NS};
    const struct action *a = core_step(r, event, now, ret_n);
    const struct action *b = core_step(p->second, event, later, &n);
    assert_int_equal(*ret_n, n);
    assert_true(asked_for(a, n, 0, 0) == asked_for(b, n, LATER_NS, BOOT_LATER_NS));
    if (++steps % COMPARE_EVERY == 0)
        same_state(r, p->second);
    if (steps % LOOK_EVERY == 0)
        look(r);
    return a;
}

struct rendezvous *rendezvous_free(struct rendezvous *r) {
    for (int i = 0; r && i < PAIRS_MAX; i++) {
        if (pairs[i].first != r)
            continue;
        core_free(pairs[i].second);
        pairs[i] = (struct pair){0};
    }
    return core_free(r);
}

static void play(uint64_t seed, bool varies) {
    struct sim_config config;
    struct sim_result result;
    sim_config_default(&config);
    config.seed = seed;
    config.varies = varies;
    sim_run(&config, &result);
    assert_string_equal(result.text, "");
}

static void test_another_time_is_the_same_and_another_field_is_not(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++)
        play(seed, seed % 2);
    print_message("%llu steps, %llu states with %llu fields\n", (unsigned long long)steps,
                  (unsigned long long)looked, (unsigned long long)fields_seen);
    assert_true(steps > 10000 && looked > 60);
}

/* Every length of what is hashed, and every byte of it. */
static void test_every_byte_is_hashed_whatever_the_length(void **state) {
    (void)state;
    char bytes[40] = {0};
    uint64_t last = 0;
    for (size_t n = 1; n <= sizeof(bytes); n++) {
        struct canonical was = {0};
        canonical_bytes(&was, bytes, n);
        assert_true(was.hash != 0 && (n % sizeof(uint64_t) != 1 || was.hash != last));
        last = was.hash;
        for (size_t i = 0; i < sizeof(bytes); i++) {
            struct canonical is = {0};
            bytes[i] = 1;
            canonical_bytes(&is, bytes, n);
            assert_int_equal(is.hash != was.hash, i < n);
            bytes[i] = 0;
        }
    }
    struct canonical c = {0};
    for (int i = 0; i < 1000; i++)
        canonical_order(&c, 5, i);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(c.numbers[i].value, i);
    canonical_clear(&c);
    assert_true(c.n == 0 && c.hash == 0);
    canonical_bytes(&c, bytes, 3);
    canonical_fini(&c);
    assert_true(!c.numbers && !c.cap && c.hash == 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_another_time_is_the_same_and_another_field_is_not),
        cmocka_unit_test(test_every_byte_is_hashed_whatever_the_length),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
