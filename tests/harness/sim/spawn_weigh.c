/* spawn_weigh: what each kind of fault, and each kind of job, is worth of the decisions that seeds
 * reach.
 *
 *     spawn_weigh FIRST LAST
 *
 * A decision (harness/sim/decisions.h) that n of the seeds reach is worth 1/n to each of them, so
 * that what all reach is worth little and what one reaches 1. Prints for each kind how many seeds
 * had it, and what such a seed is worth against the average one: the weights of
 * harness/sim/faults.c are ten times that. */
#include "base/mem.h"
#include "base/str.h"
#include "harness/sim/schedule.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS_MOST = 100000, JOBS = 16 };

struct seed {
    uint64_t decisions[DECISION_WORDS];
    bool struck[SIM_FAULTS_N], is[JOBS];
    double worth;
};

static const char *const jobs[JOBS] = {
    "lifeline", "gang",    "spares",     "seated", "hosted", "usual", "many",  "count-by-node",
    "bounded",  "unnamed", "neighbours", "beside", "roles",  "late",  "short", "long"};

static void note_job(const struct sim_schedule *s, bool *ret) {
    struct sim_terms t = sim_terms(s);
    const bool is[JOBS] = {s->lifeline,
                           s->gang,
                           s->spares > 0,
                           s->seated,
                           s->hosted,
                           s->usual,
                           s->agents > SIM_AGENTS_USUAL,
                           t.count_by_node,
                           t.max_free_rounds != SIM_FREE_ROUNDS,
                           t.unnamed,
                           t.neighbours,
                           t.beside,
                           t.roles,
                           s->late > 0,
                           t.impatient,
                           t.last_call_ns > 1000 * SIM_MS};
    memcpy(ret, is, sizeof(is));
}

static void play(uint64_t number, struct seed *ret) {
    struct sim_config config;
    struct sim_schedule s;
    struct sim_result r;
    sim_config_default(&config);
    config.seed = number;
    config.swarm = config.varies = true;
    config.agents = SIM_AGENTS_USUAL;
    config.faults_mean = 6;
    config.trouble_ns = 60000 * SIM_MS;
    sim_draw(&config, &s);
    note_job(&s, ret->is);
    sim_play(&s, false, &r);
    sim_schedule_fini(&s);
    memcpy(ret->decisions, r.decisions, sizeof(r.decisions));
    memcpy(ret->struck, r.struck, sizeof(r.struck));
}

static bool has(const struct seed *s, int decision) {
    return s->decisions[decision / 64] >> decision % 64 & 1;
}

/* The worth of the average one. */
static double weigh(struct seed *seeds, size_t n) {
    double all = 0;
    for (int d = 0; d < DECISIONS_N; d++) {
        size_t count = 0;
        for (size_t i = 0; i < n; i++)
            count += has(&seeds[i], d);
        for (size_t i = 0; i < n && count; i++)
            seeds[i].worth += has(&seeds[i], d) ? 1 / (double)count : 0;
        all += count > 0;
    }
    printf("%.0f decisions\n", all);
    return all / (double)n;
}

static void print(const char *name, double worth, size_t n, double average) {
    printf("%-16s %7zu seeds, %5.2f of the average\n", name, n,
           n ? worth / (double)n / average : 0.0);
}

int main(int argc, char **argv) {
    int64_t first, last;
    if (argc != 3 || !str_to_i64(argv[1], 0, INT64_MAX - 1, &first) ||
        !str_to_i64(argv[2], first, first + SEEDS_MOST - 1, &last)) {
        fprintf(stderr, "spawn_weigh: FIRST LAST\n");
        return 64;
    }
    size_t n = (size_t)(last - first + 1);
    struct seed *seeds = mem_array(struct seed, n);
    for (size_t i = 0; i < n; i++)
        play((uint64_t)first + i, &seeds[i]);
    double average = weigh(seeds, n);
    for (int k = 0; k < SIM_FAULTS_N + JOBS; k++) {
        double worth = 0;
        size_t with = 0;
        for (size_t i = 0; i < n; i++) {
            bool is = k < SIM_FAULTS_N ? seeds[i].struck[k] : seeds[i].is[k - SIM_FAULTS_N];
            worth += is ? seeds[i].worth : 0;
            with += is;
        }
        print(k < SIM_FAULTS_N ? sim_faults()[k].name : jobs[k - SIM_FAULTS_N], worth, with,
              average);
    }
    free(seeds);
    return 0;
}
