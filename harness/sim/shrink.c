#include "harness/sim/shrink.h"

#include "base/sys/clock.h"
#include "harness/shrink/delta.h"

#include <stdlib.h>
#include <string.h>

enum { INVARIANT_SIZE = 32, ROUNDS_MAX = 8 };

/* A schedule that became smaller may need other luck with its messages: these are tried as well. */
static const uint64_t lucks[] = {1, 2, 3, 4, 5, 6};
enum { LUCKS = sizeof(lucks) / sizeof(*lucks), OTHERS_MAX = 4000, TROUBLE_LEAST = 500 * SIM_MS };

struct shrink_state {
    struct delta delta;
    struct shrunk best;
    struct shrink_spec spec;
    int64_t until_ns;
    char invariant[INVARIANT_SIZE];
};

const char *shrink_invariant(const char *violation, char *ret) {
    size_t n = strcspn(violation, ":");
    n = n < INVARIANT_SIZE ? n : INVARIANT_SIZE - 1;
    memcpy(ret, violation, n);
    ret[n] = '\0';
    return ret;
}

static bool is_out(const struct shrink_state *s) {
    bool stopped = s->spec.stop && *s->spec.stop;
    return stopped || s->best.runs >= s->spec.runs || clock_monotonic_ns() > s->until_ns;
}

static enum delta_answer breaks(void *arg, void *candidate) {
    struct shrink_state *s = arg;
    struct sim_schedule *c = candidate;
    struct sim_result r;
    char invariant[INVARIANT_SIZE];
    if (is_out(s))
        return DELTA_STOP;
    s->best.runs++;
    s->spec.play(c, false, &r);
    if (!r.violated || strcmp(shrink_invariant(r.text, invariant), s->invariant) != 0)
        return DELTA_OTHER;
    sim_schedule_fini(&s->best.schedule);
    s->best.schedule = *c;
    s->best.result = r;
    return DELTA_SAME;
}

/* Takes c: it is the best from now on, or freed. */
static bool try(struct shrink_state *s, struct sim_schedule *c, bool other_luck) {
    bool good = delta_try(&s->delta, c);
    uint64_t seed = c->seed;
    for (int i = 0; i < LUCKS && !good && other_luck; i++) {
        c->seed = lucks[i];
        good = c->seed != seed && delta_try(&s->delta, c);
    }
    if (!good)
        sim_schedule_fini(c);
    return good;
}

static struct sim_schedule candidate(const struct shrink_state *s) {
    struct sim_schedule c;
    sim_schedule_copy(&s->best.schedule, &c);
    return c;
}

/* --- fewer --- */

static size_t faults_n(void *arg) {
    return (size_t)((const struct shrink_state *)arg)->best.schedule.n_entries;
}

/* The first of those that are left. */
static size_t without_faults(void *arg, size_t left, size_t many) {
    struct shrink_state *s = arg;
    if (left < many)
        return 0;
    struct sim_schedule c = candidate(s);
    struct sim_entry *first = &c.entries[(size_t)c.n_entries - left];
    memmove(first, first + many, (left - many) * sizeof(*first));
    c.n_entries -= (int)many;
    try(s, &c, true);
    return left - many;
}

static void fewer_faults(void *arg) {
    struct shrink_state *s = arg;
    delta_halves(&s->delta, faults_n, without_faults);
}

/* The node with all that strikes it; those behind it move up. */
static void without_node(struct shrink_state *s, int node) {
    struct sim_schedule c = candidate(s);
    int kept = 0;
    for (int i = 0; i < c.n_entries; i++) {
        struct sim_entry e = c.entries[i];
        if (e.node == node)
            continue;
        e.node -= e.node > node;
        c.entries[kept++] = e;
    }
    c.n_entries = kept;
    c.agents--;
    c.max = c.max > c.agents ? c.agents : c.max;
    c.min = c.min > c.max ? c.max : c.min;
    try(s, &c, true);
}

static void fewer_agents(void *arg) {
    struct shrink_state *s = arg;
    for (int node = s->best.schedule.agents - 1; node >= 0; node--)
        if (s->best.schedule.agents > 1)
            without_node(s, node);
}

/* --- plainer --- */

/* Sets one number of the schedule, unless it is that already. */
#define PLAINER(s, member, value)                                                                  \
    do {                                                                                           \
        if ((s)->best.schedule.member != (value)) {                                                \
            struct sim_schedule c_ = candidate(s);                                                 \
            c_.member = (value);                                                                   \
            try((s), &c_, true);                                                                   \
        }                                                                                          \
    } while (0)

static void plainer_world(void *arg) {
    struct shrink_state *s = arg;
    PLAINER(s, fragile, 0);
    PLAINER(s, patient, false);
    PLAINER(s, loss, 0);
    PLAINER(s, late, 0);
    PLAINER(s, slow_answer_ns, 0);
    PLAINER(s, slow_ns, 3 * SIM_MS);
    PLAINER(s, even, true);
    PLAINER(s, usual, false);
    PLAINER(s, lifeline, false);
    PLAINER(s, gang, false);
    PLAINER(s, spares, 0);
    PLAINER(s, seated, false);
    PLAINER(s, hosted, false);
    PLAINER(s, work_ns, 2500 * SIM_MS);
    if (!s->best.schedule.seated) { /* whose number of nodes is fixed */
        PLAINER(s, max, s->best.schedule.agents);
        PLAINER(s, min, 1);
    }
    PLAINER(s, max_restarts, 3);
}

/* --- shorter, rounder --- */

static bool set_time(struct shrink_state *s, int at, size_t member, int64_t ns) {
    struct sim_schedule c = candidate(s);
    struct sim_entry e = c.entries[at];
    *(int64_t *)(void *)((char *)&e + member) = ns;
    memmove(&c.entries[at], &c.entries[at + 1],
            (size_t)(c.n_entries - at - 1) * sizeof(*c.entries));
    c.n_entries--;
    sim_schedule_add(&c, &e);
    return try(s, &c, false);
}

static int64_t time_of(const struct shrink_state *s, int at, size_t member) {
    return *(const int64_t *)(const void *)((const char *)&s->best.schedule.entries[at] + member);
}

static void rounder(struct shrink_state *s, int at, size_t member) {
    static const int64_t units_ms[] = {1000, 500, 100, 50, 10};
    int64_t ns = time_of(s, at, member);
    for (size_t i = 0; i < sizeof(units_ms) / sizeof(*units_ms) && ns; i++) {
        int64_t unit = units_ms[i] * SIM_MS, round = (ns + unit / 2) / unit * unit;
        if (round == ns || (round && set_time(s, at, member, round)))
            return;
    }
}

static void shorter(struct shrink_state *s, int at, size_t member) {
    int64_t ns;
    do
        ns = time_of(s, at, member);
    while (ns >= 20 * SIM_MS && set_time(s, at, member, ns / 2 / SIM_MS * SIM_MS));
}

/* All entries from this one on come sooner, and the end of the trouble with them. */
static void sooner(struct shrink_state *s, int at) {
    bool good = true;
    while (good) {
        struct sim_schedule c = candidate(s);
        int64_t before_ns = at ? c.entries[at - 1].at_ns : 0;
        int64_t by_ns = (c.entries[at].at_ns - before_ns) / 2 / SIM_MS * SIM_MS;
        for (int i = at; i < c.n_entries; i++)
            c.entries[i].at_ns -= by_ns;
        c.trouble_ns = c.trouble_ns - by_ns > TROUBLE_LEAST ? c.trouble_ns - by_ns : TROUBLE_LEAST;
        good = by_ns >= 200 * SIM_MS;
        if (good)
            good = try(s, &c, true);
        else
            sim_schedule_fini(&c);
    }
}

static bool try_entry(struct shrink_state *s, int at, struct sim_entry e) {
    struct sim_schedule c = candidate(s);
    c.entries[at] = e;
    return try(s, &c, true);
}

/* Another kind that does it as well and is better known, the best first: what real nodes can have
 * done to them too. */
static void plainer_kind(struct shrink_state *s, int at) {
    static const enum sim_fault_kind kinds[] = {SIM_FAULT_WORKER_FAIL, SIM_FAULT_NODE_CUT,
                                                SIM_FAULT_STORE_AWAY,  SIM_FAULT_AGENT_KILL,
                                                SIM_FAULT_AGENT_LEAVE, SIM_FAULT_NODE_POWEROFF};
    struct sim_entry e = s->best.schedule.entries[at];
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds) && e.fault != (int)kinds[i]; i++) {
        const struct sim_fault *f = &sim_faults()[kinds[i]];
        struct sim_entry other = {.at_ns = e.at_ns, .after = e.after, .fault = kinds[i]};
        bool known = e.fault == SIM_FAULT_AGENT_START;
        other.node = !f->on_node ? SIM_NODE_NONE : e.node == SIM_NODE_NONE ? 0 : e.node;
        other.span_ns = !f->span_most_ns ? 0 : e.span_ns ? e.span_ns : 1000 * SIM_MS;
        other.back_ns = f->returns ? e.back_ns : 0;
        if (!known && try_entry(s, at, other))
            return;
    }
}

/* At a time rather than behind a transaction, a node by name; who is gone stays away. */
static void plainer_entry(struct shrink_state *s, int at) {
    struct sim_entry e = s->best.schedule.entries[at];
    for (int node = 0; e.node == SIM_NODE_WRITER && node < s->best.schedule.agents; node++) {
        struct sim_entry named = e;
        named.node = node;
        if (try_entry(s, at, named))
            e = named;
    }
    for (int after = 0; after < e.after; after++) {
        struct sim_entry sooner = e;
        sooner.after = after;
        if ((e.node != SIM_NODE_WRITER || after) && try_entry(s, at, sooner))
            e = sooner;
    }
    e.back_ns = 0;
    if (s->best.schedule.entries[at].back_ns)
        try_entry(s, at, e);
}

/* Moving an entry in time may move it among the others; the next round comes by again. */
static void plainer_entries(void *arg) {
    struct shrink_state *s = arg;
    for (int i = 0; i < s->best.schedule.n_entries; i++) {
        sooner(s, i);
        plainer_kind(s, i);
        plainer_entry(s, i);
        shorter(s, i, offsetof(struct sim_entry, span_ns));
        rounder(s, i, offsetof(struct sim_entry, span_ns));
        rounder(s, i, offsetof(struct sim_entry, back_ns));
        rounder(s, i, offsetof(struct sim_entry, at_ns));
    }
}

/* All heals soon after the last fault. */
static void shorter_trouble(void *arg) {
    struct shrink_state *s = arg;
    int n = s->best.schedule.n_entries, before = s->delta.found;
    int64_t unit = 500 * SIM_MS, last_ns = n ? s->best.schedule.entries[n - 1].at_ns : 0;
    int64_t most_ns = (s->best.schedule.trouble_ns + unit - 1) / unit * unit;
    for (int64_t ns = (last_ns / unit + 1) * unit; ns <= most_ns && s->delta.found == before;
         ns += unit)
        PLAINER(s, trouble_ns, ns);
}

/* --- other faults instead of chance --- */

/* What hangs on which messages are lost, or on workers that fail by themselves, is shown better by
 * faults that stand there: some drawn ones are tried in the place of chance. */
static void named_faults(void *arg) {
    struct shrink_state *s = arg;
    struct sim_config config;
    sim_config_default(&config);
    const struct sim_schedule *b = &s->best.schedule;
    if (!b->loss && !b->late && !b->fragile && !b->slow_answer_ns)
        return;
    for (config.seed = 1; config.seed <= OTHERS_MAX && !s->delta.stopped; config.seed++) {
        struct sim_schedule c;
        config.agents = b->agents;
        config.trouble_ns = b->trouble_ns;
        sim_draw(&config, &c);
        c.max = b->max;
        c.min = b->min;
        c.max_restarts = b->max_restarts;
        c.work_ns = b->work_ns;
        c.loss = c.late = c.fragile = 0;
        c.slow_answer_ns = 0;
        if (try(s, &c, false))
            return;
    }
}

bool shrink(const struct sim_schedule *given, const struct shrink_spec *spec, struct shrunk *ret) {
    static void (*const passes[])(void *) = {
        fewer_faults,    fewer_agents, plainer_world, plainer_entries,
        shorter_trouble, named_faults, NULL};
    struct shrink_state s = {.spec = *spec, .until_ns = clock_monotonic_ns() + spec->time_ns};
    s.delta = (struct delta){.try = breaks, .arg = &s};
    s.spec.play = spec->play ? spec->play : sim_play;
    s.spec.play(given, false, &s.best.result);
    if (!s.best.result.violated)
        return false;
    shrink_invariant(s.best.result.text, s.invariant);
    sim_schedule_copy(given, &s.best.schedule);
    plainer_world(&s); /* while all faults are there that could do what chance does */
    delta_run(&s.delta, passes, ROUNDS_MAX);
    s.best.cut_short = s.delta.stopped;
    *ret = s.best;
    return true;
}
