/* judges: a simulated run before both judges: that of the simulator, which sees the store and the
 * machines, and that of live runs, which sees what the harness would have recorded. */
#pragma once

#include "harness/judge/recording.h"
#include "reports/report.h"
#include "harness/invariants/invariant.h"
#include "harness/sim/schedule.h"
#include "harness/judge/verdict.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>

/* Called with both verdicts; what they point to is gone afterwards. */
typedef void judges_seen(void *arg, const struct sim_result *sim, const struct verdict *live);

static inline struct scenario *
judges_scenario(const struct sim_schedule *s, const struct history *h, const struct sim_result *r) {
    struct diagnostics d = {0};
    struct buf text = {0};
    char path[40];
    int fd = memfd_create("scenario", 0);
    sim_scenario(s, h, r, &text);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    bool written = write(fd, text.data, text.len) == (ssize_t)text.len;
    struct scenario *scenario = written ? scenario_load(path, NULL, &d) : NULL;
    if (!scenario)
        fprintf(stderr, "%s\n%s\n", buf_str(&d.out), buf_str(&text));
    diagnostics_fini(&d);
    buf_fini(&text);
    close(fd);
    return scenario;
}

/* Returns false when the run could not be read back as one. */
static inline bool judges_judge(const struct sim_config *config, judges_seen *seen, void *arg) {
    struct sim_schedule s;
    struct sim_result r;
    struct history h;
    struct rounds rounds;
    struct verdict v;
    struct sim_config one = *config;
    one.weights[SIM_FAULT_AGENT_OTHER] = 0; /* two jobs of one name: a live run is about one */
    history_create(&h, NULL, NULL);
    sim_draw(&one, &s);
    sim_record(&s, one.trace, &h, &r);
    struct scenario *scenario = judges_scenario(&s, &h, &r);
    sim_schedule_fini(&s);
    if (scenario) {
        struct trial t = {.scenario = scenario, .history = &h, .rounds = &rounds};
        rounds_load(&rounds, true, &h);
        verdict_judge(&v, &t);
        seen(arg, &r, &v);
        rounds_fini(&rounds);
    }
    history_fini(&h);
    return scenario_free(scenario), scenario != NULL;
}

/* The first promise of a live run that is broken; NULL: none. */
static inline const struct finding *judges_broken(const struct verdict *v) {
    for (size_t i = 0; i < v->n; i++)
        if (v->v[i].status == FINDING_FAIL &&
            (v->v[i].class == CLASS_INVARIANT || v->v[i].class == CLASS_EXPECT))
            return &v->v[i];
    return NULL;
}

/* What happened on the machines is seen from outside, too. What only the store shows (a certificate
 * that is missing, a cost written wrongly) may have done no harm in that run: then the simulator is
 * the sharper judge, and the other one has nothing to see. */
static inline bool judges_must_see(const char *text) {
    static const char *const shown[] = {" starts round ", "I2 ranks: ", "I2 master: rank 0 of ",
                                        " is told something else"};
    for (size_t i = 0; i < sizeof(shown) / sizeof(*shown); i++)
        if (strstr(text, shown[i]))
            return true;
    return false;
}
