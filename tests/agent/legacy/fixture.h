/* fixture: one fleet at a time, and what of its agents is to run. */
#pragma once

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

static struct fleet *f;

static inline int end(void **state) {
    (void)state;
    f = f ? fleet_free(f) : NULL;
    return 0;
}

static inline void begin(int n, int min, int max, int max_restarts) {
    f = fleet_new(1, min, max, max_restarts);
    for (int i = 0; i < n; i++)
        fleet_start(f, i);
}

/* The agents of the set (a bit each), and no others, have workers, all of one round. */
static inline void assert_round(unsigned set, int64_t round) {
    int world = 0, nodes = 0;
    assert_string_equal(fleet_wrong(f), "");
    for (int i = 0; i < FLEET_MAX; i++) {
        assert_int_equal(fleet_agent(f, i)->group.alive, set >> i & 1);
        world += set >> i & 1 ? 1 + i % 2 : 0;
        nodes += set >> i & 1 ? 1 : 0;
    }
    for (int i = 0; i < FLEET_MAX; i++)
        if (set >> i & 1) {
            assert_int_equal(fleet_agent(f, i)->group.round, round);
            assert_int_equal(fleet_agent(f, i)->group.world, world);
            assert_int_equal(fleet_agent(f, i)->group.n, nodes);
        }
}
