/* The legacy rendezvous through seeded faults: crashes, stopped and cut-off agents, lost requests
 * and answers, failing workers. SEEDS=FROM:TO tries others. */
#include "base/rand.h"
#include "tests/agent/legacy/fleet.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define S  1000000000LL
#define MS 1000000LL

enum { NODES = 4, FAULTS = 8 };

/* reached: everybody reaches the store all the time. */
static void disturb(struct fleet *f, struct rand *r, bool reached) {
    int i = (int)rand_below(r, NODES);
    const struct fleet_agent *a = fleet_agent(f, i);
    switch (rand_below(r, 7)) {
    case 0:
        if (a->up)
            fleet_crash(f, i);
        break;
    case 1:
        fleet_exit(f, i, SIGKILL);
        break;
    case 2:
        fleet_pause(f, i, reached ? 0 : (int64_t)rand_below(r, 25) * S);
        break;
    case 3:
        fleet_cut(f, i, reached ? 0 : (int64_t)rand_below(r, 25) * S);
        break;
    case 4:
        if (a->up)
            fleet_signal(f, i, SIGTERM);
        break;
    default:
        if (!a->up)
            fleet_start(f, i);
    }
}

/* Faults for a while, then none: all agents come to one round, and end it together. */
static const char *try_seed(uint64_t seed, char *text, size_t size) {
    struct rand r;
    rand_init(&r, seed);
    int min = 1 + (int)rand_below(&r, 2);
    struct fleet *f = fleet_new(seed, min, NODES, 1000);
    int64_t round = 0;
    if (seed % 2)
        fleet_names(f);
    if (seed % 4 == 1)
        fleet_nameless(f, (int)(seed / 4) % NODES);
    fleet_lose(f, rand_below(&r, 2) ? 0.05 : 0);
    for (int i = 0; i < NODES; i++)
        if (i < min || rand_below(&r, 2))
            fleet_start(f, i);
    for (int k = 0; k < FAULTS; k++) {
        fleet_run(f, (int64_t)rand_below(&r, 8000) * MS);
        disturb(f, &r, false);
    }
    fleet_lose(f, 0);
    fleet_run(f, 30 * S); /* who was stopped takes its signals */
    for (int i = 0; i < NODES; i++)
        if (!fleet_agent(f, i)->up)
            fleet_start(f, i);
    fleet_run(f, 150 * S);
    for (int i = 0; i < NODES && !fleet_wrong(f)[0]; i++) {
        const struct fleet_agent *a = fleet_agent(f, i);
        round = round ? round : a->group.round;
        if (!a->group.alive || a->group.n != NODES || a->group.round != round) {
            snprintf(text, size,
                     "seed %llu: agent %d is not in the last round: up %d, alive %d, "
                     "round %lld of %d nodes, exit %d %s",
                     (unsigned long long)seed, i, a->up, a->group.alive, (long long)a->group.round,
                     a->group.n, a->exit_code, a->exit_text);
            fleet_free(f);
            return text;
        }
    }
    for (int i = 0; i < NODES; i++)
        fleet_exit(f, i, 0);
    fleet_run(f, 5 * S);
    snprintf(text, size, "%s", fleet_wrong(f));
    for (int i = 0; i < NODES && !text[0]; i++)
        if (fleet_agent(f, i)->exit_code != 0)
            snprintf(text, size, "seed %llu: agent %d ended with %d", (unsigned long long)seed, i,
                     fleet_agent(f, i)->exit_code);
    fleet_free(f);
    return text;
}

/* Deaths, few restarts and gangs: whatever becomes of the run, no agent says that it succeeded and another that it failed.
 * Who does not reach the store, as it may be in the other test, ends without having told the others. */
static const char *try_outcome(uint64_t seed, char *text, size_t size) {
    struct rand r;
    rand_init(&r, seed);
    int failed = -1, succeeded = -1;
    struct fleet *f = fleet_new(seed, 1 + (int)rand_below(&r, 2), NODES, (int)rand_below(&r, 3));
    if (rand_below(&r, 2))
        fleet_gang(f);
    for (int i = 0; i < NODES; i++)
        if (i < 2 || rand_below(&r, 2))
            fleet_start(f, i);
    for (int k = 0; k < FAULTS; k++) {
        fleet_run(f, (int64_t)rand_below(&r, 8000) * MS);
        disturb(f, &r, true);
        for (int i = 0; i < NODES && rand_below(&r, 4) == 0; i++)
            fleet_exit(f, i, 0);
    }
    for (int k = 0; k < 3; k++) {
        fleet_run(f, 60 * S);
        for (int i = 0; i < NODES; i++)
            fleet_exit(f, i, 0);
    }
    fleet_run(f, 60 * S);
    snprintf(text, size, "%s", fleet_wrong(f));
    for (int i = 0; i < NODES; i++) {
        const struct fleet_agent *a = fleet_agent(f, i);
        bool fails = a->exit_code == 1 && strstr(a->exit_text, "run \"job\" failed");
        failed = fails ? i : failed;
        succeeded = a->exit_code == 0 ? i : succeeded;
    }
    if (failed >= 0 && succeeded >= 0 && !text[0])
        snprintf(text, size, "seed %llu: agent %d succeeded, and agent %d says: %s",
                 (unsigned long long)seed, succeeded, failed, fleet_agent(f, failed)->exit_text);
    fleet_free(f);
    return text;
}

static void try_all(const char *(*try)(uint64_t, char *, size_t)) {
    unsigned long long from = 1, to = 200;
    const char *seeds = getenv("SEEDS");
    int bad = 0;
    char text[1024];
    if (seeds && sscanf(seeds, "%llu:%llu", &from, &to) != 2)
        fail_msg("SEEDS=%s: must be FROM:TO", seeds);
    for (unsigned long long seed = from; seed <= to && bad < 10; seed++)
        if (try(seed, text, sizeof(text))[0]) {
            print_error("%s\n", text);
            bad++;
        }
    assert_int_equal(bad, 0);
}

static void test_no_two_rounds_overlap_and_all_come_together_in_the_end(void **state) {
    (void)state;
    try_all(try_seed);
}

static void test_a_run_has_one_outcome(void **state) {
    (void)state;
    try_all(try_outcome);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_two_rounds_overlap_and_all_come_together_in_the_end),
        cmocka_unit_test(test_a_run_has_one_outcome),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
