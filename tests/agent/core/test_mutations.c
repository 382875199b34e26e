/* The rendezvous with one bug of the protocol's list planted at a time: the simulation must see it,
 * and by the invariant it breaks. This file is the core, compiled again with the bugs in it. */
#define RANKRUN_MUTATIONS
#include "agent/core/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

enum mutation rendezvous_mutation;
enum { SEEDS = 5000 };

#include "agent/core/budget.c"
#include "agent/core/coordinator.c"
#include "agent/core/decide.c"
#include "agent/core/detector.c"
#include "agent/core/goodbye.c"
#include "agent/core/lead.c"
#include "agent/core/membership.c"
#include "agent/core/ranks.c"
#include "agent/core/rendezvous.c"
#include "agent/core/request.c"
#include "agent/core/session.c"
#include "agent/core/view.c"
#include "agent/core/watch.c"
#include "agent/core/worker_group.c"

#include "harness/sim/sim.h"

static void seen(enum mutation mutation, const char *as) {
    rendezvous_mutation = mutation;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct sim_config config;
        sim_config_default(&config);
        config.seed = seed;
        config.frozen = mutation == MUTATION_COUNT_FROM_REPLY;
        struct sim_result r;
        sim_run(&config, &r);
        if (!r.violated || strncmp(r.text, as, strlen(as)) != 0)
            continue; /* or seen as something else first: this one is waited for */
        print_message("seen with seed %llu: %s\n", (unsigned long long)seed, r.text);
        rendezvous_mutation = MUTATION_NONE;
        return;
    }
    fail_msg("not seen as %s with %d seeds", as, SEEDS);
}

static void test_a_round_that_does_not_wait_for_acks_is_seen(void **state) {
    (void)state;
    seen(MUTATION_NO_ACK_WAIT, "I1");
}

static void test_a_coordinator_that_does_not_compare_the_lead_is_seen(void **state) {
    (void)state;
    seen(MUTATION_NO_LEAD_COMPARE, "I7");
}

static void test_silence_counted_from_before_the_takeover_is_seen(void **state) {
    (void)state;
    seen(MUTATION_NO_TAKEOVER_RESTART, "CONTRACT");
}

static void test_a_revocation_that_does_not_compare_the_beat_is_seen(void **state) {
    (void)state;
    seen(MUTATION_NO_BEAT_COMPARE, "CONTRACT");
}

static void test_a_beat_without_its_session_is_seen(void **state) {
    (void)state;
    seen(MUTATION_BEAT_UNCONDITIONAL, "I5");
}

static void test_a_deadline_counted_from_the_reply_is_seen(void **state) {
    (void)state;
    seen(MUTATION_COUNT_FROM_REPLY, "CONTRACT");
}

static void test_a_done_carried_to_the_next_round_is_seen(void **state) {
    (void)state;
    seen(MUTATION_DONE_CARRIED, "I6");
}

static void test_a_leave_before_the_workers_are_dead_is_seen(void **state) {
    (void)state;
    seen(MUTATION_LEAVE_FIRST, "CONTRACT");
}

static void test_a_failure_that_costs_though_a_node_was_lost_is_seen(void **state) {
    (void)state;
    seen(MUTATION_FIRST_FAILURE_COSTS, "I4");
}

static void test_old_members_without_a_certificate_is_seen(void **state) {
    (void)state;
    seen(MUTATION_NO_CERTIFICATE, "I1");
}

static void test_a_failure_that_costs_two_is_seen(void **state) {
    (void)state;
    seen(MUTATION_COST_TWICE, "I4");
}

static void test_a_suspicion_shorter_than_the_fence_is_seen(void **state) {
    (void)state;
    seen(MUTATION_SHORT_SUSPECT, "CONTRACT");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_round_that_does_not_wait_for_acks_is_seen),
        cmocka_unit_test(test_a_coordinator_that_does_not_compare_the_lead_is_seen),
        cmocka_unit_test(test_silence_counted_from_before_the_takeover_is_seen),
        cmocka_unit_test(test_a_revocation_that_does_not_compare_the_beat_is_seen),
        cmocka_unit_test(test_a_beat_without_its_session_is_seen),
        cmocka_unit_test(test_a_deadline_counted_from_the_reply_is_seen),
        cmocka_unit_test(test_a_done_carried_to_the_next_round_is_seen),
        cmocka_unit_test(test_a_leave_before_the_workers_are_dead_is_seen),
        cmocka_unit_test(test_a_failure_that_costs_though_a_node_was_lost_is_seen),
        cmocka_unit_test(test_old_members_without_a_certificate_is_seen),
        cmocka_unit_test(test_a_failure_that_costs_two_is_seen),
        cmocka_unit_test(test_a_suspicion_shorter_than_the_fence_is_seen),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
