/* spawn_seeds: seeds of the simulation, for cores with a planted bug.
 *
 *     spawn_seeds calm N              seeds 1 to N of one to five agents that start together,
 *                                     without any fault: all must succeed, in one round
 *     spawn_seeds N FORM [OPTION...]  looks for a violation whose text FORM (an extended regular
 *                                     expression) matches, in seeds 1 to N
 *
 * OPTION: frozen, swarm, agents=N, rate=N, time=N (seconds). Prints "SEED TEXT" of what it found
 * and ends with 0; with 1 when there was nothing, or when a calm seed did not succeed. */
#include "tests/harness/sim/option.h"

#include <inttypes.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int run_calm(int64_t n) {
    for (int64_t seed = 1; seed <= n; seed++) {
        struct sim_config config;
        struct sim_result r;
        sim_config_default(&config);
        config.seed = (uint64_t)seed;
        config.agents = 1 + (int)(seed % SIM_AGENTS_USUAL);
        config.calm = true;
        sim_run(&config, &r);
        if (!r.violated && r.outcome == SIM_SUCCEEDED && r.rounds == 1)
            continue;
        printf("%" PRId64 " %s\n", seed, r.violated ? r.text : "failed, or in several rounds");
        return 1;
    }
    return 0;
}

static int look_for(const regex_t *form, const struct sim_config *given, int64_t n) {
    struct sim_config config = *given;
    struct sim_result r;
    char other[256] = "no seed violates anything";
    for (int64_t seed = 1; seed <= n; seed++) {
        config.seed = (uint64_t)seed;
        sim_run(&config, &r);
        if (r.violated && regexec(form, r.text, 0, NULL, 0) == 0) {
            printf("%" PRId64 " %s\n", seed, r.text);
            return 0;
        }
        if (r.violated)
            snprintf(other, sizeof(other), "seen otherwise, seed %" PRId64 ": %.200s", seed,
                     r.text);
    }
    printf("%s\n", other);
    return 1;
}

int main(int argc, char **argv) {
    struct sim_config config;
    int64_t n = 0;
    regex_t form;
    sim_config_default(&config);
    if (argc == 3 && str_eq(argv[1], "calm") && str_to_i64(argv[2], 1, INT64_MAX, &n))
        return run_calm(n);
    bool good = argc >= 3 && str_to_i64(argv[1], 1, INT64_MAX, &n);
    for (int i = 3; i < argc; i++)
        good = good && option_take(&config, argv[i]);
    if (!good || regcomp(&form, argv[2], REG_EXTENDED | REG_NOSUB)) {
        fprintf(stderr, "spawn_seeds: calm N, or N FORM [frozen|swarm|agents=|rate=|time=...]\n");
        return 64;
    }
    int r = look_for(&form, &config, n);
    regfree(&form);
    return r;
}
