/* spawn_judges: seeds before both judges, for cores with a planted bug, and for many seeds.
 *
 *     spawn_judges FIRST LAST [OPTION...]
 *
 * OPTION: swarm, frozen, agents=N, rate=N, time=N (seconds). Prints each seed that is not well in
 * the eyes of one of them, then "N seeds, N agree that all is well, N agree that it is not, N
 * differ, N by the store alone". Ends with 0 when none differs: of what only the store shows the
 * live judge need not know. */
#include "tests/harness/sim/judges.h"
#include "tests/harness/sim/option.h"

#include <inttypes.h>
#include <stdlib.h>

struct count {
    uint64_t seed, well, broken, differ, hidden;
};

static void seen(void *arg, const struct sim_result *sim, const struct verdict *live) {
    struct count *c = arg;
    const struct finding *f = judges_broken(live);
    c->well += !sim->violated && !f;
    c->broken += sim->violated && f;
    if (sim->violated && f)
        printf("seed %" PRIu64 ": %s; %s: %s\n", c->seed, sim->text, f->check, f->seen);
    if (sim->violated == !!f)
        return;
    if (sim->violated && !judges_must_see(sim->text)) {
        c->hidden++;
        return;
    }
    c->differ++;
    printf("seed %" PRIu64 " DIFFER: %s; %s%s%s\n", c->seed,
           sim->violated ? sim->text : "all is well", f ? f->check : "nothing", f ? ": " : "",
           f ? f->seen : "");
}

int main(int argc, char **argv) {
    struct sim_config config;
    struct count c = {0};
    int64_t first, last;
    sim_config_default(&config);
    config.plain = true; /* of such jobs the live judge knows nothing */
    config.weights[SIM_FAULT_STORE_SET_BACK] = config.weights[SIM_FAULT_STORE_WIPED] = 0;
    config.weights[SIM_FAULT_AGENT_OTHER] = 0;
    if (argc < 3 || !str_to_i64(argv[1], 0, INT64_MAX - 1, &first) ||
        !str_to_i64(argv[2], first, INT64_MAX - 1, &last))
        return 64;
    for (int i = 3; i < argc; i++)
        if (!option_take(&config, argv[i]))
            return 64;
    for (int64_t seed = first; seed <= last; seed++) {
        config.seed = c.seed = (uint64_t)seed;
        if (!judges_judge(&config, seen, &c))
            return 3;
    }
    printf("%" PRId64 " seeds, %" PRIu64 " agree that all is well, %" PRIu64
           " agree that it is not, %" PRIu64 " differ, %" PRIu64 " by the store alone\n",
           last - first + 1, c.well, c.broken, c.differ, c.hidden);
    return c.differ ? EXIT_FAILURE : EXIT_SUCCESS;
}
