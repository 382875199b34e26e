#include "harness/sim/live.h"

#include "base/mem.h"
#include "base/str.h"
#include "faults/effect.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* LEFT: its agent has ended, the machine is on. */
enum where { OFF, HERE, LEFT };

struct spot {
    enum where where;
    int name;            /* those that come later are the last */
    int64_t back_ns;     /* 0: it does not come back */
    bool late, promoted; /* promoted: there from the beginning, so that the job can begin */
};

struct live_words {
    const struct sim_schedule *schedule;
    int64_t steady_ns, shift_ns; /* shift: so much later than in the simulation */
    struct spot *spots;          /* of each node */
    int started, here, played;
    int64_t failed_ns; /* the last failure of a worker that ends a round */
    int failures;
    bool hosted; /* n0's agent serves the store */
    bool wire;   /* something strikes between an agent and the store */
    bool gang_lost;
    bool told; /* the last that went was told to leave */
    struct buf lines;
};

/* A cut must drop frames, which are its evidence; a node must be seen to be off before it comes
 * back. Failures belong to one round when they are nearly at once, and to two when the second comes
 * so long after: what comes between could be either. */
enum { FELT_NS = 300 * SIM_MS, AT_ONCE_NS = 20 * SIM_MS };

/* --- entries --- */

/* Not before the job stands. */
static int64_t live_ns(const struct live_words *l, int64_t at_ns) {
    int64_t ns = at_ns - l->steady_ns;
    return (ns > 10 * SIM_MS ? ns / SIM_MS * SIM_MS : 10 * SIM_MS) + l->shift_ns;
}

__attribute__((format(printf, 3, 4))) static void line(struct live_words *l, int64_t live_at_ns,
                                                       const char *format, ...) {
    char time[32], what[96];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof(what), format, list);
    va_end(list);
    buf_printf(&l->lines, "  - {when: {time: %s}, fault: %s}\n", script_time(live_at_ns, time),
               what);
}

static bool refuse(struct live_words *l, const struct sim_entry *e, const char *why) {
    buf_printf(&l->lines, "  # not played: %s", sim_faults()[e->fault].name);
    if (e->node >= 0)
        buf_printf(&l->lines, " on n%d", l->spots[e->node].name);
    buf_printf(&l->lines, ": %s\n", why);
    return false;
}

static bool is_over(const struct live_words *l) {
    int coming = 0;
    for (int i = 0; i < l->schedule->agents; i++)
        coming += l->spots[i].back_ns > 0;
    return l->gang_lost || l->failures > l->schedule->max_restarts || (!l->here && !coming);
}

/* --- who is there --- */

static void come(struct live_words *l, int node, int64_t live_at_ns) {
    struct spot *p = &l->spots[node];
    if (p->where == LEFT)
        line(l, live_at_ns - FELT_NS, "%s, on: n%d", sim_fault_live(SIM_FAULT_NODE_KILL), p->name);
    line(l, live_at_ns, "%s, on: n%d", fault_that(EFFECT_STARTS_NODE), p->name);
    p->where = HERE;
    p->back_ns = 0;
    l->here++;
}

static void go(struct live_words *l, const struct sim_entry *e, int node, enum where where) {
    struct spot *p = &l->spots[node];
    int64_t least_ns = where == LEFT ? 4 * FELT_NS : FELT_NS;
    p->where = where;
    p->back_ns =
        e->back_ns ? live_ns(l, e->at_ns) + (e->back_ns > least_ns ? e->back_ns : least_ns) : 0;
    l->here--;
}

/* Who was to come back by then has. */
static void settle(struct live_words *l, int64_t live_at_ns) {
    for (;;) {
        int next = -1;
        for (int i = 0; i < l->schedule->agents; i++) {
            int64_t ns = l->spots[i].back_ns;
            if (ns && ns <= live_at_ns && (next < 0 || ns < l->spots[next].back_ns))
                next = i;
        }
        if (next < 0)
            return;
        come(l, next, l->spots[next].back_ns);
    }
}

/* All heals in the simulation, and who is away comes, unless the job is over. */
static void settle_calm(struct live_words *l) {
    int64_t at_ns = live_ns(l, l->schedule->trouble_ns) + 4 * FELT_NS;
    bool any = false;
    if (is_over(l))
        return;
    settle(l, INT64_MAX);
    for (int i = 0; i < l->schedule->agents; i++) {
        if (l->spots[i].where == HERE)
            continue;
        if (!any)
            buf_puts(&l->lines, "  # all heals: who is away comes\n");
        any = true;
        come(l, i, at_ns);
    }
}

/* Those that are there from the beginning come first, and are as many as a job needs to begin. */
static void name_spots(struct live_words *l) {
    const struct sim_schedule *s = l->schedule;
    for (int i = s->n_entries - 1; i >= 0; i--)
        if (s->entries[i].node >= 0)
            l->spots[s->entries[i].node].late = s->entries[i].fault == SIM_FAULT_AGENT_START;
    for (int i = 0; i < s->agents; i++)
        l->started += !l->spots[i].late;
    for (int i = 0; i < s->n_entries && l->started < s->min; i++) {
        int node = s->entries[i].node;
        if (node < 0 || !l->spots[node].late || l->spots[node].promoted)
            continue;
        l->spots[node].promoted = true;
        l->started++;
    }
    int first = 0, later = l->started;
    for (int i = 0; i < s->agents; i++) {
        struct spot *p = &l->spots[i];
        bool begins = !p->late || p->promoted;
        p->name = begins ? first++ : later++;
        p->where = begins ? HERE : OFF;
    }
    l->here = l->started;
}

/* --- faults on agents, workers and nodes --- */

static const char nobody[] = "nobody is there whom it would strike";

static bool is_here(struct live_words *l, const struct sim_entry *e) {
    return l->spots[e->node].where == HERE || refuse(l, e, nobody);
}

/* As a fault that a live run has, too. */
static bool end_node(struct live_words *l, const struct sim_entry *e, int node, int like) {
    unsigned effects = sim_faults()[like].effects;
    bool leaves = effects & EFFECT_ASKS_TO_LEAVE, goes_off = effects & EFFECT_ENDS_NODE;
    line(l, live_ns(l, e->at_ns), "%s, on: n%d", sim_fault_live(like), l->spots[node].name);
    go(l, e, node, goes_off ? OFF : LEFT);
    l->told = leaves;
    l->gang_lost |= l->schedule->gang && !leaves;
    return true;
}

static bool play_agent_kill(struct live_words *l, const struct sim_entry *e) {
    int like = e->back_ns ? SIM_FAULT_NODE_KILL : SIM_FAULT_AGENT_KILL;
    return is_here(l, e) && end_node(l, e, e->node, like);
}

static bool play_end(struct live_words *l, const struct sim_entry *e) {
    return is_here(l, e) && end_node(l, e, e->node, e->fault);
}

static bool play_agent_start(struct live_words *l, const struct sim_entry *e) {
    struct spot *p = &l->spots[e->node];
    if (p->promoted && p->where == HERE)
        return refuse(l, e, "it is there from the beginning, or the job could not begin");
    if (p->where == HERE)
        return refuse(l, e, "it is there");
    come(l, e->node, live_ns(l, e->at_ns) + (p->where == LEFT ? 4 * FELT_NS : 0));
    return true;
}

static bool play_join_storm(struct live_words *l, const struct sim_entry *e) {
    bool any = false;
    for (int i = 0; i < l->schedule->agents; i++) {
        int wait = l->spots[i].where == LEFT ? 4 : !l->spots[i].late;
        if (l->spots[i].where == HERE)
            continue;
        come(l, i, live_ns(l, e->at_ns) + wait * FELT_NS);
        any = true;
    }
    return any || refuse(l, e, "everybody is there");
}

static bool play_leave_storm(struct live_words *l, const struct sim_entry *e) {
    bool any = false;
    for (int i = 0; i < l->schedule->agents; i++)
        if (i != e->node && l->spots[i].where == HERE)
            any |= end_node(l, e, i, e->fault);
    return any || refuse(l, e, nobody);
}

/* Who coordinates is known inside only; who starts first does, as a rule. */
static bool play_lost_together(struct live_words *l, const struct sim_entry *e) {
    int first = -1;
    for (int i = l->schedule->agents - 1; i >= 0; i--)
        if (i != e->node && l->spots[i].where == HERE)
            first = i;
    if (first < 0 || l->spots[e->node].where != HERE)
        return refuse(l, e, nobody);
    buf_printf(&l->lines, "  # lost-together: n%d in the place of the coordinator\n",
               l->spots[first].name);
    return end_node(l, e, first, SIM_FAULT_NODE_POWEROFF) &&
           end_node(l, e, e->node, SIM_FAULT_NODE_POWEROFF);
}

static bool play_rack_poweroff(struct live_words *l, const struct sim_entry *e) {
    bool any = false;
    for (int i = 0; i < l->schedule->agents; i++)
        if (sim_in_rack(l->schedule->agents, e->node, i) && l->spots[i].where == HERE)
            any |= end_node(l, e, i, SIM_FAULT_NODE_POWEROFF);
    return any || refuse(l, e, nobody);
}

static bool play_worker_fail(struct live_words *l, const struct sim_entry *e) {
    if (!is_here(l, e))
        return false;
    int64_t at_ns = live_ns(l, e->at_ns), since_ns = at_ns - l->failed_ns;
    bool another = !l->failures || since_ns > AT_ONCE_NS;
    if (l->failures && another && since_ns < FELT_NS) {
        l->shift_ns += FELT_NS - since_ns;
        at_ns += FELT_NS - since_ns;
    }
    line(l, at_ns, "%s, with: {code: 1}, on: n%d/0", sim_fault_live(SIM_FAULT_WORKER_FAIL),
         l->spots[e->node].name);
    l->failures += another;
    l->failed_ns = another ? at_ns : l->failed_ns;
    return true;
}

/* --- faults on the network and the store --- */

static bool has_wire(struct live_words *l, const struct sim_entry *e) {
    if (l->here < 2)
        return refuse(
            l, e,
            "the store tells nothing to one agent alone: no frame from it would be dropped, "
            "which shows a cut");
    if (l->hosted && e->node == 0)
        return refuse(l, e, "the store is in its own agent");
    return true;
}

static void cut(struct live_words *l, int node, int64_t live_at_ns, int64_t span_ns) {
    char span[32];
    span_ns = span_ns > FELT_NS ? span_ns : FELT_NS;
    line(l, live_at_ns, "%s, with: {planes: store}, on: n%d, for: %s",
         sim_fault_live(SIM_FAULT_NODE_CUT), l->spots[node].name, script_time(span_ns, span));
}

/* Given up for good by a job that is all or nothing. */
static void outlive(struct live_words *l, int64_t span_ns) {
    int64_t fast_ns = 800 * SIM_MS, usual_ns = 6000 * SIM_MS;
    l->gang_lost |= l->schedule->gang && span_ns >= (l->schedule->usual ? usual_ns : fast_ns);
}

static bool play_node_cut(struct live_words *l, const struct sim_entry *e) {
    if (!is_here(l, e) || !has_wire(l, e))
        return false;
    cut(l, e->node, live_ns(l, e->at_ns), e->span_ns);
    outlive(l, e->span_ns);
    return true;
}

static bool play_rack_cut(struct live_words *l, const struct sim_entry *e) {
    bool any = false;
    for (int i = 0; i < l->schedule->agents; i++) {
        struct sim_entry one = *e;
        one.node = i;
        if (sim_in_rack(l->schedule->agents, e->node, i) && l->spots[i].where == HERE)
            any |= play_node_cut(l, &one);
    }
    return any || refuse(l, e, nobody);
}

static bool play_node_freeze(struct live_words *l, const struct sim_entry *e) {
    char span[32];
    if (!is_here(l, e))
        return false;
    if (l->hosted && e->node == 0)
        return refuse(l, e, "the store stands on its node, and would stand still as well");
    line(l, live_ns(l, e->at_ns), "%s, on: n%d, for: %s", sim_fault_live(SIM_FAULT_NODE_FREEZE),
         l->spots[e->node].name, script_time(e->span_ns, span));
    outlive(l, e->span_ns);
    return true;
}

static bool play_flapping(struct live_words *l, const struct sim_entry *e) {
    if (!is_here(l, e) || !has_wire(l, e))
        return false;
    int64_t one_ns = e->span_ns / 5 > FELT_NS ? e->span_ns / 5 : FELT_NS;
    for (int i = 0; i < 3; i++)
        cut(l, e->node, live_ns(l, e->at_ns) + 2 * i * one_ns, one_ns);
    return true;
}

/* Everybody who is there is cut off from the node of the store. */
static bool part_store(struct live_words *l, const struct sim_entry *e, const char *missing) {
    BUF_FINI struct buf nodes = {0};
    char span[32], time[32];
    if (!has_wire(l, e))
        return false;
    for (int i = 0; i < l->schedule->agents; i++)
        if (l->spots[i].where == HERE && (i || !l->hosted))
            buf_printf(&nodes, "%sn%d", nodes.len ? "," : "", l->spots[i].name);
    int64_t span_ns = e->span_ns > FELT_NS ? e->span_ns : FELT_NS;
    if (missing)
        buf_printf(&l->lines, "  # %s: %s\n", sim_faults()[e->fault].name, missing);
    buf_printf(
        &l->lines,
        "  - {when: {time: %s}, fault: %s, with: {groups: \"%s|%s\", planes: store}, for: %s}\n",
        script_time(live_ns(l, e->at_ns), time), sim_fault_live(SIM_FAULT_NODE_CUT),
        buf_str(&nodes), l->hosted ? "n0" : "store", script_time(span_ns, span));
    return true;
}

static bool play_store_away(struct live_words *l, const struct sim_entry *e) {
    return part_store(l, e, NULL);
}

static bool play_store_leader(struct live_words *l, const struct sim_entry *e) {
    return part_store(l, e, "out of reach for as long; its leases do not begin anew");
}

static bool play_store_restart(struct live_words *l, const struct sim_entry *e) {
    return part_store(l, e, "out of reach for as long; it does not restart");
}

/* --- the table --- */

static const char stopped[] = "no fault stops an agent or its guard without its workers";
static const char held[] = "the wire drops frames, or passes them: it holds none back";
static const char one_way[] = "the wire cuts both ways at once";
static const char clocks[] = "all nodes have this machine's clock";
static const char connections[] = "no fault breaks one connection and leaves the others";

static const struct {
    bool (*play)(struct live_words *l, const struct sim_entry *e);
    const char *lacks;
} plays[SIM_FAULTS_N] = {
    [SIM_FAULT_AGENT_KILL] = {play_agent_kill, NULL},
    [SIM_FAULT_AGENT_LEAVE] = {play_end, NULL},
    [SIM_FAULT_AGENT_OTHER] =
        {NULL, "a node that is switched on runs the same command line, thus the attempt"},
    [SIM_FAULT_AGENT_START] = {play_agent_start, NULL},
    [SIM_FAULT_AGENT_STOP] = {NULL, stopped},
    [SIM_FAULT_ANSWERS_LATE] = {NULL, held},
    [SIM_FAULT_ANSWERS_LOST] = {NULL, one_way},
    [SIM_FAULT_CLOCK_RATE] = {NULL, clocks},
    [SIM_FAULT_CLOCK_STALL] = {NULL, clocks},
    [SIM_FAULT_FLAPPING] = {play_flapping, NULL},
    [SIM_FAULT_GUARD_KILL] = {NULL, "no fault is aimed at a guard"},
    [SIM_FAULT_JOIN_STORM] = {play_join_storm, NULL},
    [SIM_FAULT_JOIN_TRICKLE] = {play_join_storm, NULL},
    [SIM_FAULT_LEAVE_STORM] = {play_leave_storm, NULL},
    [SIM_FAULT_LIFELINE_RESET] = {NULL, connections},
    [SIM_FAULT_LOST_TOGETHER] = {play_lost_together, NULL},
    [SIM_FAULT_NODE_CRASHES] = {NULL, "no fault strikes whenever workers begin"},
    [SIM_FAULT_NODE_CUT] = {play_node_cut, NULL},
    [SIM_FAULT_NODE_FREEZE] = {play_node_freeze, NULL},
    [SIM_FAULT_NODE_HALTS] = {NULL, "no fault strikes every second anew"},
    [SIM_FAULT_NODE_KILL] = {play_end, NULL},
    [SIM_FAULT_NODE_POWEROFF] = {play_end, NULL},
    [SIM_FAULT_NODE_STOP] = {NULL, stopped},
    [SIM_FAULT_RACK_CUT] = {play_rack_cut, NULL},
    [SIM_FAULT_RACK_POWEROFF] = {play_rack_poweroff, NULL},
    [SIM_FAULT_REQUESTS_LATE] = {NULL, held},
    [SIM_FAULT_REQUESTS_LOST] = {NULL, one_way},
    [SIM_FAULT_STORE_AWAY] = {play_store_away, NULL},
    [SIM_FAULT_STORE_COMPACT] = {NULL, "nobody tells a real store to forget"},
    [SIM_FAULT_STORE_FULL] = {NULL, "no fault is aimed at the store"},
    [SIM_FAULT_STORE_LEADER] = {play_store_leader, NULL},
    [SIM_FAULT_STORE_RESTART] = {play_store_restart, NULL},
    [SIM_FAULT_STORE_SET_BACK] = {NULL, "no fault is aimed at the store"},
    [SIM_FAULT_STORE_WIPED] = {NULL, "no fault is aimed at the store"},
    [SIM_FAULT_WATCH_LOST] = {NULL, connections},
    [SIM_FAULT_WATCH_STALLED] = {NULL, connections},
    [SIM_FAULT_WORKER_FAIL] = {play_worker_fail, NULL},
    [SIM_FAULT_WORKER_STUCK] = {NULL, "no fault puts a process into state D"},
};

const char *live_lacks(enum sim_fault_kind fault) {
    return plays[fault].lacks;
}

static bool play(struct live_words *l, const struct sim_entry *e) {
    settle(l, live_ns(l, e->at_ns));
    if (plays[e->fault].lacks)
        return refuse(l, e, plays[e->fault].lacks);
    if (e->node == SIM_NODE_WRITER)
        return refuse(l, e, "only the simulation knows who wrote that transaction");
    if (is_over(l))
        return refuse(l, e, "the job is over by then");
    if (e->after)
        buf_printf(&l->lines, "  # %s: behind transaction %d of this moment, in the simulation\n",
                   sim_faults()[e->fault].name, e->after);
    return plays[e->fault].play(l, e);
}

/* --- the rest of the file --- */

static void put_odds(const struct live_words *l, struct buf *out) {
    const struct sim_schedule *s = l->schedule;
    struct sim_terms terms = sim_terms(s);
    if (s->loss || s->late || s->slow_answer_ns)
        buf_puts(out, "# not played: messages that are lost or late by chance\n");
    if (s->fragile)
        buf_puts(out, "# not played: workers that fail by themselves\n");
    if (s->spares || s->seated)
        buf_puts(out,
                 "# not played: spares and fixed ranks, for all nodes have one command line\n");
    if (s->hosted && !l->hosted)
        buf_puts(out, "# not played: n0's agent has the store; it would go with what ends n0\n");
    if (terms.count_by_node || terms.max_free_rounds != SIM_FREE_ROUNDS)
        buf_puts(out, "# not played: restarts counted by the node, or rounds without cost bounded; "
                      "the judge knows neither\n");
    if (terms.impatient)
        buf_puts(out, "# not played: agents that wait for nodes or for the store but shortly\n");
    if (terms.roles || terms.unnamed)
        buf_puts(out, "# not played: roles that differ, agents that name no attempt\n");
    if (terms.neighbours || terms.beside)
        buf_puts(out, "# not played: other jobs in the store\n");
    if (!s->even)
        buf_puts(out, "# not played: clocks that differ in rate\n");
}

/* The store goes with its agent; in the simulation it does not. One that is told to leave stays for
 * the others. */
static bool ends_host(int nodes, const struct sim_entry *e) {
    unsigned effects = sim_faults()[e->fault].effects;
    bool whom = e->fault == SIM_FAULT_LEAVE_STORM     ? e->node != 0
                : e->fault == SIM_FAULT_RACK_POWEROFF ? sim_in_rack(nodes, e->node, 0)
                                                      : e->node == 0;
    bool ends = effects & EFFECTS_TAKE_AGENT && (!(effects & EFFECT_ASKS_TO_LEAVE) || e->back_ns);
    return e->fault == SIM_FAULT_LOST_TOGETHER || (whom && ends);
}

static bool can_host(const struct live_words *l) {
    const struct sim_schedule *s = l->schedule;
    bool can = s->hosted && s->agents > 1 && l->spots[0].where == HERE;
    for (int i = 0; i < s->n_entries && can; i++)
        can = !ends_host(s->agents, &s->entries[i]);
    return can;
}

static void put_cluster(const struct live_words *l, struct buf *out) {
    const struct sim_schedule *s = l->schedule;
    buf_printf(out, "cluster: {nodes: %d, start: %d", s->agents, l->started);
    buf_puts(out, l->hosted ? ", store: {on: n0}}\n" : "}\n");
}

/* Of every round: until all has been played. */
static int64_t work_s(const struct sim_schedule *s) {
    return (s->trouble_ns + s->work_ns) / (1000 * SIM_MS) + 2;
}

static void put_job(const struct live_words *l, struct buf *out) {
    const struct sim_schedule *s = l->schedule;
    int64_t last_call_ms = sim_terms(s).last_call_ns / SIM_MS;
    buf_printf(out, "job:\n  nnodes: \"%d:%d\"\n  workers_per_node: 2\n  max_restarts: %d\n",
               s->min, s->max, s->max_restarts);
    if (s->gang)
        buf_puts(out, "  launcher_args: [--on-node-loss=gang]\n");
    buf_printf(out, "  rdzv_conf: {profile: %s, last_call_timeout: %" PRId64 "ms%s}\n",
               s->usual ? "default" : "fast", last_call_ms,
               s->lifeline ? "" : ", lifeline: \"off\"");
    buf_printf(out, "  run: [sleep, \"%" PRId64 "\"]\n", work_s(s));
}

/* Of a job that does as it should, whatever the simulated one did. */
static void put_expect(const struct live_words *l, struct buf *out) {
    int most = l->schedule->max_restarts;
    bool failed = l->gang_lost || l->failures > most;
    bool stopped_by_us = !l->here && l->told && !failed;
    int restarts = l->failures < most ? l->failures : most;
    if (!l->here && !stopped_by_us && !failed)
        buf_puts(out, "# nobody is left who could say what became of the job\n");
    buf_printf(out, "expect:\n  outcome: %s\n",
               stopped_by_us        ? "stopped"
               : failed || !l->here ? "failed"
                                    : "succeeded");
    buf_printf(out, restarts ? "  restarts: 0..%d\n" : "  restarts: %d\n", restarts);
}

/* A job with a bug may stand still, and tells of no steps by which that would be seen: it is ended
 * when it could have begun anew some times. */
static void put_limits(const struct live_words *l, struct buf *out) {
    buf_printf(out, "limits: {total: %" PRId64 "s}\n", 60 + 4 * work_s(l->schedule));
}

int live_write(const struct script *script, const struct sim_result *seen, struct buf *out) {
    const struct sim_schedule *s = &script->schedule;
    struct live_words l = {.schedule = s, .steady_ns = seen ? seen->steady_ns : 0};
    l.spots = mem_array(struct spot, (size_t)s->agents);
    name_spots(&l);
    l.hosted = can_host(&l);
    for (int i = 0; i < s->n_entries; i++)
        l.played += play(&l, &s->entries[i]);
    settle_calm(&l);
    if (seen && seen->violated)
        buf_printf(out, "# There: %s\n", seen->text);
    put_odds(&l, out);
    buf_printf(out, "scenario: %s\n", script->name);
    put_cluster(&l, out);
    put_job(&l, out);
    if (l.lines.len)
        buf_printf(out, "timeline:\n%s", buf_str(&l.lines));
    put_expect(&l, out);
    put_limits(&l, out);
    buf_fini(&l.lines);
    free(l.spots);
    return l.played;
}
