/* How far the clocks of the hosts are from ours, within which bound. */
#include "harness/preflight/probe.h"

#include "base/sys/clock.h"

enum { TIMES = 8 };
static const int64_t FAR_NS =
    1000000000; /* rendezvous and tokens compare wall clocks to the second */

/* The answer was stamped between question and answer: the quickest of several says it best. */
static bool measure(struct probing *p, size_t i, int64_t *ret_ns, int64_t *ret_bound_ns) {
    *ret_bound_ns = -1;
    for (int k = 0; k < TIMES; k++) {
        int64_t before = clock_realtime_ns(), began = clock_monotonic_ns();
        station_ask(&p->v[i], "{\"do\":\"time\"}");
        const struct json *j = probe_hear(p, i);
        int64_t took = clock_monotonic_ns() - began;
        if (!j)
            return false;
        if (*ret_bound_ns >= 0 && took / 2 >= *ret_bound_ns)
            continue;
        *ret_bound_ns = took / 2;
        *ret_ns = json_get_i64(j, "ns", 0) - (before + took / 2);
    }
    return true;
}

static void ask(struct probing *p) {
    int64_t most = 0;
    for (size_t i = 0; i < p->n; i++) {
        int64_t offset, bound;
        if (!measure(p, i, &offset, &bound))
            continue;
        int64_t away = (offset < 0 ? -offset : offset) - bound;
        json_object(p->figures, p->v[i].host);
        json_put_i64(p->figures, "offset_us", offset / 1000);
        json_put_i64(p->figures, "bound_us", bound / 1000 + 1);
        json_end_object(p->figures);
        most = away > most ? away : most;
        if (away > FAR_NS)
            probe_fail(
                p, "%s: its clock is off by %.3f s (to within %.3f s); is chrony or ntpd there?",
                p->v[i].host, (double)offset / 1e9, (double)bound / 1e9);
    }
    probe_pass(p, "no clock is known to be off by more than %.3f s from this host's",
               (double)most / 1e9);
}

const struct probe probe_clock = {
    .name = "clock",
    .text = "the wall clocks of all hosts, to within half of a round trip",
    .within_ns = INT64_C(10) * 1000000000,
    .ask = ask,
};
