/* Each node's clocks: both go at its rate, CLOCK_MONOTONIC may have stood still for a while. */
#include "harness/sim/simulation.h"

static const int64_t boot_ns = 7777 * SIM_MS; /* between the two, when none has stood still */

static int64_t local_ns(const struct sim_node *n, int64_t now_ns) {
    return n->clock_offset_ns + (int64_t)((double)now_ns * n->rate);
}

/* What CLOCK_MONOTONIC has lost by then. */
static int64_t lag_ns(const struct sim_node *n, int64_t now_ns) {
    int64_t until_ns = now_ns < n->shown.stall_until_ns ? now_ns : n->shown.stall_until_ns;
    return n->lag_ns + (int64_t)((double)(until_ns - n->stall_from_ns) * n->rate);
}

struct now sim_node_now(const struct sim *c, const struct sim_node *n) {
    int64_t local = local_ns(n, c->now_ns);
    return (struct now){local - lag_ns(n, c->now_ns), local + boot_ns};
}

int64_t sim_node_to_real(const struct sim_node *n, int64_t boottime_ns) {
    double local = (double)(boottime_ns - boot_ns - n->clock_offset_ns);
    return (int64_t)(local / n->rate) + 1000;
}

int64_t sim_monotonic_to_real(const struct sim *c, const struct sim_node *n, int64_t at_ns) {
    if (at_ns <= sim_node_now(c, n).monotonic_ns)
        return c->now_ns;
    int64_t last_ns = n->shown.stall_until_ns > c->now_ns ? n->shown.stall_until_ns : c->now_ns;
    return sim_node_to_real(n, at_ns + lag_ns(n, last_ns) + boot_ns);
}

static void changed(struct sim *c, int node) {
    sim_timer_replan(c, node);
    sim_machine_replan(c, node);
}

void sim_clock_rate(struct sim *c, int node, double rate) {
    struct sim_node *n = &c->nodes[node];
    int64_t local = local_ns(n, c->now_ns);
    n->lag_ns = lag_ns(n, c->now_ns);
    n->stall_from_ns = c->now_ns;
    if (n->shown.stall_until_ns < c->now_ns)
        n->shown.stall_until_ns = c->now_ns;
    n->rate = rate;
    n->clock_offset_ns = local - (int64_t)((double)c->now_ns * rate);
    changed(c, node);
}

void sim_clock_stall(struct sim *c, int node, int64_t span_ns) {
    struct sim_node *n = &c->nodes[node];
    n->lag_ns = lag_ns(n, c->now_ns);
    n->stall_from_ns = c->now_ns;
    n->shown.stall_until_ns = c->now_ns + span_ns;
    changed(c, node);
}
