#include "harness/sim/live.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 32 };

struct live {
    const struct sim_schedule *schedule;
    int64_t steady_ns;
    int *names; /* of each node: those that come later are the last */
    int started, played;
    struct buf lines;
};

/* Not before the job stands. */
static const char *when(const struct live *l, int64_t at_ns, char *ret) {
    int64_t ns = at_ns - l->steady_ns;
    return script_time(ns > 10 * SIM_MS ? ns / SIM_MS * SIM_MS : 10 * SIM_MS, ret);
}

static void line(struct live *l, int64_t at_ns, const char *what) {
    char text[TEXT];
    buf_printf(&l->lines, "  - {when: {time: %s}, %s}\n", when(l, at_ns, text), what);
}

static void on_node(struct live *l, const struct sim_entry *e, const char *fault) {
    char what[96];
    snprintf(what, sizeof(what), "fault: %s, on: n%d", fault, l->names[e->node]);
    line(l, e->at_ns, what);
    if (!e->back_ns)
        return;
    snprintf(what, sizeof(what), "fault: node-start, on: n%d", l->names[e->node]);
    line(l, e->at_ns + e->back_ns, what);
}

static void play_worker(struct live *l, const struct sim_entry *e) {
    char what[96];
    snprintf(what, sizeof(what), "fault: worker-exit, with: {code: 1}, on: n%d/0",
             l->names[e->node]);
    line(l, e->at_ns, what);
}

/* Long enough for frames to be dropped, which are the evidence. */
static int64_t felt_ns(int64_t span_ns) {
    return span_ns > 300 * SIM_MS ? span_ns : 300 * SIM_MS;
}

static void cut(struct live *l, int node, int64_t at_ns, int64_t span_ns) {
    char what[96], span[TEXT];
    snprintf(what, sizeof(what), "fault: net-partition, with: {planes: store}, on: n%d, for: %s",
             l->names[node], script_time(felt_ns(span_ns), span));
    line(l, at_ns, what);
}

static void play_cut(struct live *l, const struct sim_entry *e) {
    cut(l, e->node, e->at_ns, e->span_ns);
}

static void play_flapping(struct live *l, const struct sim_entry *e) {
    for (int i = 0; i < 3; i++)
        cut(l, e->node, e->at_ns + 2 * i * (e->span_ns / 5), e->span_ns / 5);
}

/* Everybody is cut off from the node of the store. */
static void play_store(struct live *l, const struct sim_entry *e) {
    struct buf what = {0};
    char span[TEXT];
    buf_puts(&what, "fault: net-partition, with: {groups: \"");
    for (int i = 0; i < l->schedule->agents; i++)
        buf_printf(&what, "%sn%d", i ? "," : "", i);
    buf_printf(&what, "|store\"}, for: %s", script_time(felt_ns(e->span_ns), span));
    line(l, e->at_ns, buf_str(&what));
    buf_fini(&what);
}

static void play_kill(struct live *l, const struct sim_entry *e) {
    on_node(l, e, e->back_ns ? "node-kill" : "agent-kill");
}

static void play_leave(struct live *l, const struct sim_entry *e) {
    on_node(l, e, "node-leave");
}

static void play_leaves(struct live *l, const struct sim_entry *e) {
    for (int i = 0; i < l->schedule->agents; i++) {
        struct sim_entry one = *e;
        one.node = i;
        if (i != e->node)
            on_node(l, &one, "node-leave");
    }
}

static void play_poweroff(struct live *l, const struct sim_entry *e) {
    on_node(l, e, "node-poweroff");
}

static void play_start(struct live *l, const struct sim_entry *e) {
    on_node(l, e, "node-start");
}

static void (*const plays[SIM_FAULTS_N])(struct live *l, const struct sim_entry *e) = {
    [SIM_FAULT_AGENT_KILL] = play_kill,        [SIM_FAULT_AGENT_LEAVE] = play_leave,
    [SIM_FAULT_AGENT_START] = play_start,      [SIM_FAULT_FLAPPING] = play_flapping,
    [SIM_FAULT_LEAVE_STORM] = play_leaves,     [SIM_FAULT_NODE_CUT] = play_cut,
    [SIM_FAULT_NODE_POWEROFF] = play_poweroff, [SIM_FAULT_STORE_AWAY] = play_store,
    [SIM_FAULT_STORE_LEADER] = play_store,     [SIM_FAULT_STORE_RESTART] = play_store,
    [SIM_FAULT_WORKER_FAIL] = play_worker,
};

static void play(struct live *l, const struct sim_entry *e) {
    const char *name = sim_faults()[e->fault].name;
    if (!plays[e->fault] || e->node == SIM_NODE_WRITER) {
        buf_printf(&l->lines, "  # not played: %s%s: there is no such fault for real nodes\n", name,
                   e->node == SIM_NODE_WRITER ? " of the writer" : "");
        return;
    }
    if (e->after)
        buf_printf(&l->lines, "  # %s: behind transaction %d of this moment, in the simulation\n",
                   name, e->after);
    plays[e->fault](l, e);
    l->played++;
}

/* The nodes that are there from the beginning come first. */
static void name_nodes(struct live *l) {
    const struct sim_schedule *s = l->schedule;
    bool *late = calloc((size_t)s->agents, sizeof(*late));
    l->names = calloc((size_t)s->agents, sizeof(*l->names));
    if (!late || !l->names)
        abort(); /* out of memory */
    for (int i = s->n_entries - 1; i >= 0; i--)
        if (s->entries[i].node >= 0)
            late[s->entries[i].node] = s->entries[i].fault == SIM_FAULT_AGENT_START;
    int name = 0;
    for (int i = 0; i < s->agents; i++)
        if (!late[i])
            l->names[i] = name++;
    l->started = name;
    for (int i = 0; i < s->agents; i++)
        if (late[i])
            l->names[i] = name++;
    free(late);
}

static void write_odds(const struct sim_schedule *s, struct buf *out) {
    if (s->loss || s->late || s->slow_answer_ns)
        buf_puts(out, "# not played: messages that are lost or late by chance\n");
    if (s->fragile)
        buf_puts(out, "# not played: workers that fail by themselves\n");
    if (s->gang || s->spares || s->seated)
        buf_printf(out, "# not played:%s%s%s\n", s->gang ? " all or nothing" : "",
                   s->spares ? " agents that wait as spares" : "", s->seated ? " fixed ranks" : "");
    if (!s->even)
        buf_puts(out, "# not played: clocks that differ in rate\n");
}

int live_write(const struct script *script, int64_t steady_ns, struct buf *out) {
    const struct sim_schedule *s = &script->schedule;
    struct live l = {.schedule = s, .steady_ns = steady_ns};
    name_nodes(&l);
    for (int i = 0; i < s->n_entries; i++)
        play(&l, &s->entries[i]);
    int64_t work_ns = s->trouble_ns + s->work_ns;
    write_odds(s, out);
    buf_printf(out, "scenario: %s\n", script->name);
    buf_printf(out, "cluster: {nodes: %d, start: %d}\n", s->agents, l.started);
    buf_printf(out, "job:\n  nnodes: \"%d:%d\"\n  workers_per_node: 2\n  max_restarts: %d\n",
               s->min, s->max, s->max_restarts);
    buf_printf(out, "  rdzv_conf: {profile: %s, last_call_timeout: 300ms}\n",
               s->usual ? "default" : "fast");
    buf_printf(out, "  run: [sleep, \"%lld\"]\n", (long long)(work_ns / (1000 * SIM_MS) + 2));
    if (l.lines.len)
        buf_printf(out, "timeline:\n%s", buf_str(&l.lines));
    buf_fini(&l.lines);
    free(l.names);
    return l.played;
}
