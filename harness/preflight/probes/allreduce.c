/* Whether all hosts together add up numbers rightly; where not, which of them spoils it. */
#include "harness/preflight/probe.h"

#include "base/sys/clock.h"
#include "harness/preflight/bisection.h"

#include <stdio.h>

/* All together have longer than the parts that are tried when it has failed. */
enum { COUNT = 1 << 16, WITHIN_MS = 20000, PART_WITHIN_MS = 5000 };

static void ask_ring(struct probing *p, const size_t *v, size_t n, size_t rank, int64_t port) {
    BUF_FINI struct buf out = {0};
    struct json_writer w = {.out = &out};
    json_object(&w, NULL);
    json_put_string(&w, "do", "ring");
    json_put_i64(&w, "rank", (int64_t)rank);
    json_put_i64(&w, "ranks", (int64_t)n);
    json_put_i64(&w, "count", COUNT);
    json_put_string(&w, "host", p->v[v[(rank + 1) % n]].address);
    json_put_i64(&w, "port", port);
    json_put_i64(&w, "within_ms", n == p->n ? WITHIN_MS : PART_WITHIN_MS);
    json_end_object(&w);
    station_ask(&p->v[v[rank]], buf_str(&out));
}

/* Whether all of these have the right sums. What goes wrong is no failure of its own: it is looked
 * for who is at fault. */
static bool reduce(void *arg, const size_t *v, size_t n) {
    struct probing *p = arg;
    int64_t *ports = arena_array(p->arena, int64_t, n);
    bool well = true;
    for (size_t i = 0; i < n; i++)
        station_ask(&p->v[v[i]], "{\"do\":\"ring-listen\"}");
    for (size_t i = 0; i < n; i++)
        ports[i] = json_get_i64(station_hear(&p->v[v[i]], p->arena, p->until_ns), "port", 0);
    for (size_t i = 0; i < n; i++)
        ask_ring(p, v, n, i, ports[(i + 1) % n]);
    for (size_t i = 0; i < n; i++) {
        const struct json *j = station_hear(&p->v[v[i]], p->arena, p->until_ns);
        well &= json_get_i64(j, "wrong", -1) == 0;
    }
    return well;
}

static void blame(struct probing *p) {
    size_t *found = arena_array(p->arena, size_t, p->n);
    size_t n = bisection_find(p->n, reduce, p, found);
    for (size_t i = 0; i < p->n; i++)
        if (*p->v[i].why) {
            probe_fail(p, "%s: %s", p->v[i].host, p->v[i].why);
            return;
        }
    if (n == 1)
        probe_fail(p,
                   "%s spoils it: without it the sums are right, and with it they are wrong or do "
                   "not come",
                   p->v[found[0]].host);
    else if (n == 2)
        probe_fail(p, "%s or %s spoils it, and there is no third that would tell which",
                   p->v[found[0]].host, p->v[found[1]].host);
    else
        probe_fail(
            p,
            "the sums of all %zu hosts are wrong or do not come, and no smaller part of them "
            "shows it",
            p->n);
}

static void ask(struct probing *p) {
    size_t *all = arena_array(p->arena, size_t, p->n);
    int64_t began = clock_monotonic_ns();
    for (size_t i = 0; i < p->n; i++)
        all[i] = i;
    bool well = reduce(p, all, p->n);
    int64_t us = (clock_monotonic_ns() - began) / 1000;
    json_put_i64(p->figures, "us", us);
    json_put_i64(p->figures, "numbers", COUNT);
    if (!well)
        blame(p);
    probe_pass(p, "%d numbers of %zu hosts were added up rightly in %.0f ms", COUNT, p->n,
               (double)us / 1e3);
}

const struct probe probe_allreduce = {
    .name = "allreduce",
    .text = "one all-reduce of all hosts with right sums; who spoils it, by halves",
    .within_ns = INT64_C(90) * 1000000000,
    .for_many = true,
    .ask = ask,
};
