/* The schedule of a seed. */
#include "harness/sim/simulation.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { FAILURES = 3 /* of workers, in a seed whose job lives through the trouble */ };

int64_t sim_chance_ns(struct rand *r, int64_t from_ns, int64_t to_ns) {
    return from_ns + (int64_t)rand_below(r, (uint64_t)(to_ns - from_ns) + 1);
}

bool sim_chance(struct rand *r, int per_thousand) {
    return rand_below(r, 1000) < (uint64_t)per_thousand;
}

struct rand sim_rand(uint64_t seed, enum sim_concern concern, int node, uint64_t number) {
    struct rand r;
    uint64_t whom = (uint64_t)concern << 56 ^ (uint64_t)node << 40 ^ number;
    rand_init(&r, seed ^ whom * UINT64_C(0xd6e8feb86659fd93));
    return r;
}

void sim_config_default(struct sim_config *ret) {
    *ret = (struct sim_config){.faults_mean = 5};
    for (int i = 0; i < SIM_FAULTS_N; i++)
        ret->weights[i] = sim_faults()[i].weight;
}

/* What a seed may be instead of the usual: rare configurations are drawn more often than chance
 * would have them, as far as their time allows. */
static const struct variety {
    int per_thousand, agents_least, agents_most;
    int64_t trouble_least_s, trouble_most_s;
    int faults_mean;
    bool quiet; /* nothing is lost or late by chance: what takes too long is seen */
    bool again; /* the job ends in the trouble, and then another attempt of it comes */
    bool any;   /* it has any number of agents, and takes any number of them */
    bool brief; /* its trouble lasts a few seconds, with the timing of the profile fast */
} varieties[] = {
    {.per_thousand = 25,
     .agents_least = 70,
     .agents_most = 100,
     .trouble_least_s = 3,
     .trouble_most_s = 6,
     .faults_mean = 12},
    {.per_thousand = 1, .trouble_least_s = 3700, .trouble_most_s = 4200, .faults_mean = 12},
    {.per_thousand = 150, .faults_mean = 3, .quiet = true},
    {.per_thousand = 30, .trouble_least_s = 30, .trouble_most_s = 40, .again = true},
    {.per_thousand = 300, .any = true, .brief = true},
    {.per_thousand = 150, .any = true},
};

/* The config of this seed; *ret_variety: of which kind it is, or of none. */
static struct sim_config vary(const struct sim_config *config, struct variety *ret_variety) {
    struct sim_config c = *config;
    struct rand r = sim_rand(config->seed, CONCERN_DRAW, 4, 0);
    int left = (int)rand_below(&r, 1000);
    *ret_variety = (struct variety){0};
    for (size_t i = 0; i < sizeof(varieties) / sizeof(*varieties) && c.varies; i++) {
        const struct variety *v = &varieties[i];
        if ((left -= v->per_thousand) >= 0)
            continue;
        *ret_variety = *v;
        if (v->agents_most)
            c.agents = (int)sim_chance_ns(&r, v->agents_least, v->agents_most);
        c.agents = v->any ? 0 : c.agents;
        c.trouble_ns = v->brief ? 0 : c.trouble_ns;
        if (v->trouble_most_s)
            c.trouble_ns = sim_chance_ns(&r, v->trouble_least_s, v->trouble_most_s) * 1000 * SIM_MS;
        c.faults_mean = v->faults_mean ? v->faults_mean : c.faults_mean;
        break;
    }
    return c;
}

static void draw_size(const struct sim_config *c, struct rand *r, struct sim_schedule *s) {
    int given = c->agents;
    s->agents = given ? given : (int)sim_chance_ns(r, 1, SIM_AGENTS_USUAL);
    s->max = given ? given : (int)sim_chance_ns(r, 1, s->agents);
    s->min = given ? (c->calm ? given : (given + 1) / 2) : (int)sim_chance_ns(r, 1, s->max);
}

/* A job with fixed ranks has a fixed number of nodes. */
static void draw_seats(const struct sim_config *c, struct sim_schedule *s) {
    struct rand r = sim_rand(c->seed, CONCERN_DRAW, 1, 0);
    s->seated = !c->calm && sim_chance(&r, 60);
    if (s->seated)
        s->min = s->max;
}

static void draw_host(const struct sim_config *c, struct sim_schedule *s) {
    struct rand r = sim_rand(c->seed, CONCERN_DRAW, 2, 0);
    s->hosted = sim_chance(&r, 200);
}

static void draw_odds(struct rand *r, bool *frozen, struct sim_schedule *s) {
    s->loss = sim_chance(r, 500) ? (int)sim_chance_ns(r, 0, 50) : 0;
    s->late = sim_chance(r, 500) ? (int)sim_chance_ns(r, 0, 30) : 0;
    s->fragile = sim_chance(r, 500) ? (int)sim_chance_ns(r, 0, 300) : 0;
    s->slow_ns = sim_chance(r, 200) ? 120 * SIM_MS : 3 * SIM_MS;
    *frozen |= sim_chance(r, 50);
    s->slow_answer_ns = *frozen || sim_chance(r, 50) ? 140 * SIM_MS : 0;
}

/* Where the time of faults was asked for they are to meet a job: most have work beyond the trouble,
 * and more restarts than it can need; the others show what early ends do. Nearly all run with the
 * timing that people run with: a minute of the other one is three times the beats for no more
 * faults. */
static void draw_times(const struct sim_config *c, struct rand *r, struct sim_schedule *s) {
    int64_t asked_ns = c->trouble_ns;
    s->trouble_ns = asked_ns ? asked_ns : sim_chance_ns(r, 500, 4000) * SIM_MS;
    s->work_ns = asked_ns > 2500 * SIM_MS ? asked_ns : 2500 * SIM_MS;
    s->max_restarts = (int)sim_chance_ns(r, 0, asked_ns ? c->faults_mean + 3 : 3);
    s->patient = asked_ns && !c->calm && sim_chance(r, 950);
    if (s->patient && sim_chance(r, 950))
        s->max_restarts = 40;
    s->usual = asked_ns >= 30000 * SIM_MS && !c->calm && sim_chance(r, 950);
}

/* In swarm mode a seed has its own mixture: the bugs that need a certain fault to be absent. */
static int draw_weights(const struct sim_config *c, struct rand *r, int *weights) {
    int sum = 0;
    for (int i = 0; i < SIM_FAULTS_N; i++) {
        weights[i] = c->swarm && sim_chance(r, 500) ? 0 : c->weights[i];
        sum += weights[i];
    }
    return sum;
}

void sim_schedule_add(struct sim_schedule *s, const struct sim_entry *e) {
    int at = s->n_entries++;
    for (; at && s->entries[at - 1].at_ns > e->at_ns; at--)
        s->entries[at] = s->entries[at - 1];
    s->entries[at] = *e;
}

/* The table's spans are about the fence and the silence of the profile fast. */
static int64_t draw_span(struct rand *r, const struct sim_fault *f, const struct sim_schedule *s) {
    int64_t span_ns =
        sim_chance_ns(r, f->span_least_ns / SIM_MS, f->span_most_ns / SIM_MS) * SIM_MS;
    return s->usual && f->span_most_ns <= 2500 * SIM_MS ? span_ns * 6 : span_ns;
}

/* Most strike at a time, a third right behind something that was written. */
static void draw_entry(struct rand *r, int fault, const struct sim_schedule *s,
                       struct sim_entry *ret) {
    const struct sim_fault *f = &sim_faults()[fault];
    *ret = (struct sim_entry){.fault = fault, .node = SIM_NODE_NONE};
    ret->at_ns = sim_chance_ns(r, 0, (s->trouble_ns - 1) / SIM_MS) * SIM_MS;
    if (f->on_node)
        ret->node = (int)rand_below(r, (uint64_t)s->agents);
    if (sim_chance(r, 333)) {
        ret->after = (int)sim_chance_ns(r, 1, 12);
        if (f->on_node && sim_chance(r, 500))
            ret->node = SIM_NODE_WRITER;
    }
    if (f->span_most_ns)
        ret->span_ns = draw_span(r, f, s);
    if (f->returns && sim_chance(r, 600))
        ret->back_ns = sim_chance_ns(r, 1, 2500) * SIM_MS;
    if (f->on_watch)
        ret->watch = (int)rand_below(r, WATCH_SLOTS);
}

/* A quarter of the nodes come later than the others. */
static void draw_starts(struct rand *r, struct sim_schedule *s) {
    struct sim_entry e = {.fault = SIM_FAULT_AGENT_START};
    for (int i = 0; i < s->agents; i++) {
        if (!sim_chance(r, 250))
            continue;
        e.node = i;
        e.at_ns = sim_chance_ns(r, 1, 3000) * SIM_MS;
        sim_schedule_add(s, &e);
    }
}

static int pick(struct rand *r, const int *weights, int sum) {
    int at = 0;
    for (int64_t left = (int64_t)rand_below(r, (uint64_t)sum); (left -= weights[at]) >= 0;)
        at++;
    return at;
}

/* Who does not hear at once of a store that has come back empty works on for what it has forgotten:
 * sometimes it is back soon, and one node is stopped until its workers are ended by its kernel. */
static void draw_unheard(const struct sim_config *c, struct sim_schedule *s) {
    struct rand r = sim_rand(c->seed, CONCERN_DRAW, 3, 0);
    for (int i = s->n_entries - 1; i >= 0; i--) {
        if (s->entries[i].fault != SIM_FAULT_STORE_WIPED || !sim_chance(&r, 300))
            continue;
        s->entries[i].span_ns = sim_chance_ns(&r, 10, s->usual ? 1000 : 100) * SIM_MS;
        struct sim_entry e = s->entries[i];
        e.fault = SIM_FAULT_NODE_STOP;
        e.node = (int)rand_below(&r, (uint64_t)s->agents);
        e.span_ns = sim_chance_ns(&r, 700, 1000) * (s->usual ? 8 : 1) * SIM_MS;
        sim_schedule_add(s, &e);
    }
}

static void draw_entries(const struct sim_config *c, struct rand *r, bool frozen,
                         struct sim_schedule *s) {
    int weights[SIM_FAULTS_N], sum = draw_weights(c, r, weights);
    int n = c->calm ? 0 : (int)sim_chance_ns(r, 0, 2 * c->faults_mean);
    /* A long seed has rounds enough for all that hangs on the one before. */
    bool fails = s->patient && !frozen && weights[SIM_FAULT_WORKER_FAIL];
    int failures = fails ? FAILURES : 0;
    s->entries = mem_array(struct sim_entry, (size_t)(2 * n + failures + 2 * s->agents));
    draw_starts(r, s);
    for (int i = 0; i < failures; i++) {
        struct sim_entry e;
        draw_entry(r, SIM_FAULT_WORKER_FAIL, s, &e);
        sim_schedule_add(s, &e);
    }
    for (int i = 0; i < n && (sum || frozen); i++) {
        struct sim_entry e;
        draw_entry(r, frozen ? SIM_FAULT_NODE_STOP : pick(r, weights, sum), s, &e);
        sim_schedule_add(s, &e);
    }
    if (weights[SIM_FAULT_NODE_STOP])
        draw_unheard(c, s);
}

/* The first attempt has ended by half of the time, and all nodes of it come once more. */
static void draw_again(const struct sim_config *c, struct sim_schedule *s) {
    struct rand r = sim_rand(c->seed, CONCERN_DRAW, 5, 0);
    int64_t from_ms = s->trouble_ns / SIM_MS / 2, spread_ms = sim_chance_ns(&r, 0, 2000);
    s->patient = false;
    s->work_ns = 2500 * SIM_MS;
    for (int i = 0; i < s->agents; i++) {
        struct sim_entry e = {.fault = SIM_FAULT_AGENT_OTHER, .node = i};
        e.at_ns = (from_ms + sim_chance_ns(&r, 0, spread_ms)) * SIM_MS;
        sim_schedule_add(s, &e);
    }
}

/* Jobs with lifelines, jobs with spares, jobs that are all or nothing. */
static void draw_kind(const struct sim_config *c, struct rand *r, struct sim_schedule *s) {
    s->lifeline = sim_chance(r, 700);
    s->gang = sim_chance(r, 60) && !c->calm;
    int spares = sim_chance(r, 200) ? (int)sim_chance_ns(r, 0, s->agents) : 0;
    s->spares = c->calm ? 0 : spares;
}

void sim_draw(const struct sim_config *given, struct sim_schedule *ret) {
    struct rand r = sim_rand(given->seed, CONCERN_DRAW, 0, 0);
    struct variety variety;
    const struct sim_config varied = vary(given, &variety), *config = &varied;
    bool frozen = config->frozen;
    *ret =
        (struct sim_schedule){.seed = config->seed, .calm = config->calm, .plain = config->plain};
    draw_size(config, &r, ret);
    draw_seats(config, ret);
    draw_host(config, ret);
    draw_odds(&r, &frozen, ret);
    if (variety.quiet)
        ret->loss = ret->late = ret->fragile = 0;
    draw_times(config, &r, ret);
    draw_entries(config, &r, frozen, ret);
    if (variety.again)
        draw_again(config, ret);
    draw_kind(config, &r, ret);
}

void sim_beside(const struct sim_schedule *s, struct sim_schedule *ret) {
    struct rand r = sim_rand(s->seed, CONCERN_JOB, 0, 2);
    *ret = *s;
    ret->seed = rand_u64(&r);
    ret->agents = ret->max = (int)sim_chance_ns(&r, 2, 3);
    ret->min = (int)sim_chance_ns(&r, 1, 2);
    ret->fragile = sim_chance(&r, 500) ? 300 : 0;
    ret->max_restarts = (int)sim_chance_ns(&r, 1, 3);
    ret->lifeline = sim_chance(&r, 500);
    ret->plain = true;
    ret->seated = ret->gang = false;
    ret->spares = ret->n_entries = 0;
    ret->entries = NULL;
}

void sim_schedule_copy(const struct sim_schedule *s, struct sim_schedule *ret) {
    struct sim_entry *entries = mem_array(struct sim_entry, (size_t)s->n_entries + 1);
    if (s->n_entries)
        memcpy(entries, s->entries, (size_t)s->n_entries * sizeof(*entries));
    *ret = *s;
    ret->entries = entries;
}

void sim_schedule_fini(struct sim_schedule *s) {
    free(s->entries);
    *s = (struct sim_schedule){0};
}

void sim_run(const struct sim_config *config, struct sim_result *ret) {
    struct sim_schedule s;
    sim_draw(config, &s);
    sim_play(&s, config->trace, ret);
    sim_schedule_fini(&s);
}
