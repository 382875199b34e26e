/* Records each fault of the simulator as a live run would have recorded it. */
#include "faults/effect.h"
#include "harness/sim/history_writer.h"

#include <stdio.h>

static unsigned effects_of(int fault) {
    return sim_faults()[fault].effects;
}

static bool is_of_network(const struct sim *c, int at) {
    return effects_of(c->schedule->entries[at].fault) & EFFECT_PARTS_NETWORK;
}

/* --- records --- */

struct subject {
    char id[48];
    const char *fault;
    bool ends_node;
    unsigned effects;
};

static struct subject subject_of(const struct sim *c, int at) {
    struct subject s = {.fault = "bad-network"};
    if (at == c->schedule->n_entries) {
        snprintf(s.id, sizeof(s.id), "bad-network");
        return s;
    }
    int fault = c->schedule->entries[at].fault;
    s.fault = sim_fault_live(fault) ? sim_fault_live(fault) : sim_faults()[fault].name;
    s.effects = effects_of(fault);
    s.ends_node = s.effects & EFFECTS_TAKE_AGENT;
    snprintf(s.id, sizeof(s.id), "%s-%d", s.fault, at + 1);
    return s;
}

static struct json_writer *record(struct sim *c, int64_t at_ns, enum source source,
                                  const char *kind, const char *id) {
    struct json_writer *w = history_writer_record(c, at_ns, source, kind, -1, 0);
    json_put_string(w, "id", id);
    json_put_i64(w, "n", 1);
    return w;
}

static void end(struct sim *c) {
    history_end(c->history_writer->history);
}

static void put_target(struct sim *c, struct json_writer *w, const char *fault, int node) {
    const struct history_writer_node *n = &c->history_writer->nodes[node];
    bool worker = fault_effects(fault) & EFFECT_ENDS_WORKER;
    bool agent = fault_effects(fault) & EFFECT_ENDS_AGENT;
    char name[40];
    snprintf(name, sizeof(name), worker ? "%s/0" : "%s", c->nodes[node].name);
    json_object(w, NULL);
    json_put_string(w, "what", worker ? "worker" : agent ? "agent" : "node");
    json_put_string(w, "name", name);
    json_put_string(w, "node", c->nodes[node].name);
    json_put_i64(w, "pid", worker ? n->last_worker : n->last_agent);
    json_end_object(w);
}

enum { ALL = -1, THE_KILLED = -2, THE_SIGNALED = -3 };

static bool is_hit(const struct sim *c, int node, int whom) {
    return whom == ALL || node == whom ||
           (whom == THE_SIGNALED && c->nodes[node].core && c->nodes[node].shown.signaled) ||
           (whom == THE_KILLED && c->history_writer->nodes[node].killed_ns == c->now_ns);
}

static void put_fault(struct sim *c, const struct subject *s, int whom) {
    struct json_writer *w = record(c, c->now_ns, SOURCE_HARNESS, "fault-fired", s->id);
    json_put_string(w, "fault", s->fault);
    json_array(w, "on");
    for (int i = 0; i < c->n_nodes; i++)
        if (is_hit(c, i, whom))
            json_put_string(w, NULL, c->nodes[i].name);
    json_end_array(w);
    json_put_i64(w, "lag_ns", 0);
    json_put_bool(w, "held", false);
    int64_t at_ns = history_end(c->history_writer->history)->t_ns;
    w = record(c, c->now_ns, SOURCE_HARNESS, "fault-in-force", s->id);
    json_put_string(w, "fault", s->fault);
    json_put_i64(w, "t0", at_ns);
    json_put_bool(w, "ends_node", s->ends_node);
    effects_put(w, "effects", s->effects);
    json_array(w, "targets");
    for (int i = 0; i < c->n_nodes; i++)
        if (is_hit(c, i, whom))
            put_target(c, w, s->fault, i);
    json_end_array(w);
    end(c);
}

static void put_evidence(struct sim *c, enum source source, int at, const char *what) {
    struct subject s = subject_of(c, at);
    struct json_writer *w = record(c, c->now_ns, source, "fault-evidence", s.id);
    json_put_string(w, "what", what);
    if (source == SOURCE_WIRE) {
        json_put_i64(w, "dropped_in", 0);
        json_put_i64(w, "dropped_out", 1);
    }
    end(c);
    c->history_writer->faults[at].felt = true;
}

/* --- what the room tells --- */

/* A network that loses or delays messages by chance is a fault that is there from the beginning. */
static void begin_network(struct sim *c) {
    const struct sim_schedule *s = c->schedule;
    struct history_writer_fault *f = &c->history_writer->faults[s->n_entries];
    char what[120];
    if (f->struck || s->calm ||
        (!s->loss && !s->late && s->slow_ns <= 3 * SIM_MS && !s->slow_answer_ns))
        return;
    struct subject subject = subject_of(c, s->n_entries);
    *f = (struct history_writer_fault){.struck = true, .node = ALL};
    f->until_ns = s->slow_answer_ns ? INT64_MAX : s->trouble_ns;
    put_fault(c, &subject, ALL);
    snprintf(what, sizeof(what),
             "of 1000 messages %d are lost and %d late, each takes up to %lld ms", s->loss, s->late,
             (long long)((s->slow_ns + s->slow_answer_ns) / SIM_MS));
    put_evidence(c, SOURCE_WIRE, s->n_entries, what);
}

/* What needs no effect elsewhere to be seen, in words. */
static const char *own_evidence(int fault) {
    switch (fault) {
    case SIM_FAULT_AGENT_STOP:
    case SIM_FAULT_NODE_STOP:
    case SIM_FAULT_NODE_FREEZE:
    case SIM_FAULT_NODE_HALTS:
        return "its processes are stopped";
    case SIM_FAULT_LOST_TOGETHER:
        return "both nodes are off";
    case SIM_FAULT_RACK_POWEROFF:
        return "its nodes are off";
    case SIM_FAULT_WORKER_STUCK:
        return "its workers are in state D";
    case SIM_FAULT_WORKER_FAIL:
        return "it ended with code 1";
    default:
        return effects_of(fault) & (EFFECTS_TAKE_AGENT | EFFECT_PARTS_NETWORK) ? NULL
                                                                               : "it is in force";
    }
}

static int whom(const struct sim_entry *e, int node) {
    switch (e->fault) {
    case SIM_FAULT_LOST_TOGETHER:
    case SIM_FAULT_RACK_POWEROFF:
        return THE_KILLED;
    case SIM_FAULT_LEAVE_STORM:
        return THE_SIGNALED;
    case SIM_FAULT_RACK_CUT:
        return ALL;
    default:
        return sim_faults()[e->fault].on_node ? node : ALL;
    }
}

void history_writer_struck(struct sim *c, const struct sim_entry *e, int node) {
    if (!c->history_writer || e->fault == SIM_FAULT_AGENT_START ||
        e->fault == SIM_FAULT_JOIN_STORM || e->fault == SIM_FAULT_JOIN_TRICKLE ||
        e->fault == SIM_FAULT_NODE_CRASHES)
        return; /* told when the agents come, or go */
    int at = (int)(e - c->schedule->entries);
    struct history_writer_fault *f = &c->history_writer->faults[at];
    struct subject s = subject_of(c, at);
    history_writer_heal(c, false);
    *f = (struct history_writer_fault){
        .struck = true, .node = whom(e, node), .until_ns = e->span_ns ? c->now_ns + e->span_ns : 0};
    put_fault(c, &s, f->node);
    const char *what = own_evidence(e->fault);
    if (what)
        put_evidence(c, SOURCE_KERNEL, at, what);
    else if (f->node >= 0 && !c->history_writer->nodes[f->node].agent)
        history_writer_agent_felt(c, f->node);
}

/* What is no entry of the schedule, in force and seen at once. */
static void put_seen(struct sim *c, int node, const char *fault, const char *name, int number,
                     const char *what) {
    struct subject s = {.fault = fault, .effects = fault_effects(fault)};
    s.ends_node = !(s.effects & EFFECT_STARTS_NODE);
    if (s.ends_node && !(s.effects & EFFECTS_TAKE_AGENT))
        s.effects |= EFFECT_ENDS_AGENT; /* of no live name */
    snprintf(s.id, sizeof(s.id), "%s-%d", name, number);
    put_fault(c, &s, node);
    struct json_writer *w = record(c, c->now_ns, SOURCE_KERNEL, "fault-evidence", s.id);
    json_put_string(w, "what", what);
    end(c);
}

void history_writer_joined(struct sim *c, int node) {
    const char *fault = fault_that(EFFECT_STARTS_NODE);
    put_seen(c, node, fault, fault, ++c->history_writer->starts, "an agent has started");
}

void history_writer_crashed(struct sim *c, int node) {
    if (c->history_writer)
        put_seen(c, node, sim_fault_live(SIM_FAULT_NODE_KILL), "node-crash",
                 ++c->history_writer->crashes, "all its processes have ended");
}

void history_writer_gave_up(struct sim *c, int node) {
    put_seen(c, node, sim_faults()[SIM_FAULT_WORKER_STUCK].name, "gave-up",
             ++c->history_writer->stuck, "workers in state D, and an agent that has ended");
}

void history_writer_dropped(struct sim *c, int node) {
    for (int i = 0; c->history_writer && i < c->schedule->n_entries; i++) {
        struct history_writer_fault *f = &c->history_writer->faults[i];
        if (f->struck && !f->felt && f->until_ns > c->now_ns &&
            (f->node == ALL || f->node == node) && is_of_network(c, i))
            put_evidence(c, SOURCE_WIRE, i, "a message was dropped");
    }
}

void history_writer_agent_felt(struct sim *c, int node) {
    for (int i = 0; i < c->schedule->n_entries; i++) {
        struct history_writer_fault *f = &c->history_writer->faults[i];
        if (f->struck && !f->felt && (f->node == node || f->node == THE_SIGNALED) &&
            effects_of(c->schedule->entries[i].fault) & EFFECTS_TAKE_AGENT)
            put_evidence(c, SOURCE_KERNEL, i, "its agent has ended");
    }
}

/* Calm heals the network; who is stopped wakes when his time has come. */
static int64_t healed_ns(const struct sim *c, int at) {
    const struct history_writer_fault *f = &c->history_writer->faults[at];
    bool network = at < c->schedule->n_entries && is_of_network(c, at);
    return network && f->until_ns > c->schedule->trouble_ns ? c->schedule->trouble_ns : f->until_ns;
}

void history_writer_heal(struct sim *c, bool all) {
    if (!c->history_writer)
        return;
    begin_network(c);
    for (int i = 0; i <= c->schedule->n_entries; i++) {
        struct history_writer_fault *f = &c->history_writer->faults[i];
        int64_t at_ns = healed_ns(c, i);
        if (!f->struck || f->healed || !f->until_ns || (at_ns > c->now_ns && !all))
            continue;
        f->healed = true;
        record(c, at_ns < c->now_ns ? at_ns : c->now_ns, SOURCE_HARNESS, "fault-recovered",
               subject_of(c, i).id);
        end(c);
    }
}
