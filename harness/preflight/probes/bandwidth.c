/* Latency and bandwidth of every pair, in a tournament in which each host plays one at a time. */
#include "harness/preflight/probe.h"

#include "base/sys/clock.h"
#include "harness/preflight/spread.h"

#include <stdio.h>

enum { LASTING_MS = 50, AGAIN = 3, AGAIN_PEERS = 8, FAILURES_MOST = 8 };
static const double LATENCY_LEAST_NS = 1e6;                 /* what is less is the scheduler's */
static const int64_t RESERVE_NS = INT64_C(20) * 1000000000; /* for measuring again */

struct tournament {
    struct probing *p;
    const struct json *const *ports;
    double *kb_s, *latency_ns;  /* from i to k, at i * n + k; below 0: none */
    size_t *failed, *succeeded; /* measurements of each host */
    bool *left_out;
};

/* The circle method: in round r of n - 1 (n even) each meets another; who is n sits out. */
static size_t opponent(size_t i, size_t round, size_t n) {
    if (i == n - 1)
        return round;
    if (i == round)
        return n - 1;
    return (2 * round + (n - 1) - i) % (n - 1);
}

static int64_t port_of(const struct json *listening) {
    return json_i64(json_first(json_get(listening, "ports")), 0);
}

/* Of many hosts there are many pairs, which may share a switch, or in tests a processor. */
static int64_t bytes_of_pair(size_t n) {
    int64_t share = (int64_t)((256 << 20) / n);
    return share > 2 << 20 ? share : 2 << 20;
}

static void begin_pair(const struct tournament *t, size_t i, size_t k) {
    BUF_FINI struct buf out = {0};
    struct json_writer w = {.out = &out};
    json_object(&w, NULL);
    json_put_string(&w, "do", "measure");
    json_put_string(&w, "host", t->p->v[k].address);
    json_put_i64(&w, "port", port_of(t->ports[k]));
    json_put_i64(&w, "lasting_ms", LASTING_MS);
    json_put_i64(&w, "bytes", bytes_of_pair(t->p->n));
    json_put_i64(&w, "within_ms", 5000);
    json_end_object(&w);
    station_ask(&t->p->v[i], buf_str(&out));
}

/* What does not get through has its time limit to wait for, again in each round, with its opponent. */
static void leave_out(const struct tournament *t, size_t i) {
    bool none = t->failed[i] >= 2 && t->succeeded[i] == 0;
    if (t->left_out[i] || (!none && t->failed[i] < FAILURES_MOST))
        return;
    t->left_out[i] = true;
    probe_fail(t->p, "%s: left out of what follows, after %zu failures", t->p->v[i].host,
               t->failed[i]);
}

/* Of several measurements the best: the others met something else that went on. */
static void keep_best(double *at, double x, bool least) {
    if (*at < 0 || (least ? x < *at : x > *at))
        *at = x;
}

static void end_pair(const struct tournament *t, size_t i, size_t k) {
    struct probing *p = t->p;
    const struct json *j = probe_hear(p, i);
    const char *failed = json_get_string(j, "failed", NULL);
    if (failed)
        probe_fail(p, "%s to %s: %s", p->v[i].host, p->v[k].host, failed);
    if (!j || failed) {
        t->failed[i]++;
        t->failed[k]++;
        return;
    }
    t->succeeded[i]++;
    t->succeeded[k]++;
    keep_best(&t->kb_s[i * p->n + k], (double)json_get_i64(j, "kb_s", 0), false);
    keep_best(&t->latency_ns[i * p->n + k], (double)json_get_i64(j, "latency_ns", 0), true);
}

static bool can_meet(const struct tournament *t, size_t i, size_t k) {
    return t->ports[i] && t->ports[k] && !t->left_out[i] && !t->left_out[k];
}

/* One way, then the other: a link may be slow in one direction. */
static void play_round(const struct tournament *t, size_t round, size_t even) {
    struct probing *p = t->p;
    for (int part = 0; part < 4; part++)
        for (size_t i = 0; i < p->n; i++) {
            size_t k = opponent(i, round, even);
            bool first = part < 2, begins = part % 2 == 0;
            if (k >= p->n || (k < i) == first || !can_meet(t, i, k))
                continue;
            if (!first && t->kb_s[k * p->n + i] < 0) /* it failed in the other direction */
                continue;
            if (begins)
                begin_pair(t, i, k);
            else
                end_pair(t, i, k);
        }
}

/* Of both ways the worse one: below 0, where one is not known. */
static double of_pair(const struct tournament *t, const double *v, size_t i, size_t k) {
    double there = v[i * t->p->n + k], back = v[k * t->p->n + i];
    bool least = v == t->kb_s;
    return there < 0 || back < 0 ? -1 : (there < back) == least ? there : back;
}

/* The median of what a host had with all others; below 0: it had nothing. */
static double of_host(const struct tournament *t, const double *v, size_t i) {
    double *mine = arena_array(t->p->arena, double, t->p->n);
    size_t n = 0;
    for (size_t k = 0; k < t->p->n; k++)
        if (k != i && of_pair(t, v, i, k) >= 0)
            mine[n++] = of_pair(t, v, i, k);
    return n ? spread_median(mine, n) : -1;
}

/* What the hosts have, one with the others: which are out of line, and what is in the middle (-1:
 * nobody has anything). With two there is nobody to be out of line with. */
static double find_out(const struct tournament *t, const double *v, bool latency, double *of,
                       bool *out) {
    struct probing *p = t->p;
    double *all = arena_array(p->arena, double, p->n);
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        of[i] = of_host(t, v, i);
        if (of[i] >= 0)
            all[n++] = of[i];
    }
    if (!n)
        return -1;
    double middle = spread_median(all, n), mad = spread_mad(all, n, middle);
    for (size_t i = 0; i < p->n; i++) {
        bool beyond = of[i] >= 0 && n >= 3 && spread_is_out(of[i], middle, mad, latency);
        out[i] |= beyond && (!latency || of[i] - middle > LATENCY_LEAST_NS);
    }
    return middle;
}

/* Alone, with some of the others, and by these figures only: on a busy machine the first time says little. */
static void measure_host(const struct tournament *t, size_t i, const bool *out) {
    size_t n = t->p->n, met = 0;
    for (size_t k = 0; k < n; k++)
        t->kb_s[i * n + k] = t->latency_ns[i * n + k] = t->kb_s[k * n + i] =
            t->latency_ns[k * n + i] = -1;
    for (size_t at = 1; at < n && met < AGAIN_PEERS; at++) {
        size_t k = (i + at) % n;
        if (!can_meet(t, i, k) || out[k])
            continue;
        met++;
        begin_pair(t, i, k);
        end_pair(t, i, k);
        begin_pair(t, k, i);
        end_pair(t, k, i);
    }
}

/* Who is out of line is measured again. */
static void measure_again(const struct tournament *t) {
    struct probing *p = t->p;
    double *of = arena_array(p->arena, double, p->n);
    bool *out = arena_array(p->arena, bool, p->n);
    find_out(t, t->kb_s, false, of, out);
    find_out(t, t->latency_ns, true, of, out);
    for (size_t i = 0; i < p->n; i++)
        if (out[i])
            measure_host(t, i, out);
}

static double judge(const struct tournament *t, const double *v, bool latency) {
    struct probing *p = t->p;
    double *of = arena_array(p->arena, double, p->n);
    bool *out = arena_array(p->arena, bool, p->n);
    double middle = find_out(t, v, latency, of, out);
    for (size_t i = 0; i < p->n; i++)
        if (out[i] && latency)
            probe_fail(p, "%s: a round trip takes it %.0f us, and its peers %.0f us", p->v[i].host,
                       of[i] / 1e3, middle / 1e3);
        else if (out[i])
            probe_fail(p, "%s: it has %.0f MB/s with its peers, they have %.0f MB/s", p->v[i].host,
                       of[i] / 1e3, middle / 1e3);
    return middle;
}

static void judge_floor(const struct tournament *t) {
    struct probing *p = t->p;
    int64_t floor_mb_s = json_get_i64(p->given, "floor_mb_s", 0);
    for (size_t i = 0; i < p->n; i++)
        for (size_t k = i + 1; k < p->n; k++) {
            double kb_s = of_pair(t, t->kb_s, i, k);
            if (kb_s >= 0 && kb_s < (double)floor_mb_s * 1e3)
                probe_fail(p, "%s and %s have %.0f MB/s, and %lld is the floor (--floor)",
                           p->v[i].host, p->v[k].host, kb_s / 1e3, (long long)floor_mb_s);
        }
}

static void put_figures(const struct tournament *t) {
    struct probing *p = t->p;
    for (size_t i = 0; i < p->n; i++) {
        json_object(p->figures, p->v[i].host);
        json_put_i64(p->figures, "kb_s", (int64_t)of_host(t, t->kb_s, i));
        json_put_i64(p->figures, "latency_ns", (int64_t)of_host(t, t->latency_ns, i));
        json_end_object(p->figures);
    }
}

static struct tournament tournament_of(struct probing *p) {
    struct tournament t = {.p = p, .ports = probe_ask_all(p, "{\"do\":\"listen\"}")};
    t.kb_s = arena_array(p->arena, double, p->n * p->n);
    t.latency_ns = arena_array(p->arena, double, p->n * p->n);
    t.failed = arena_array(p->arena, size_t, p->n);
    t.succeeded = arena_array(p->arena, size_t, p->n);
    t.left_out = arena_array(p->arena, bool, p->n);
    for (size_t i = 0; i < p->n * p->n; i++)
        t.kb_s[i] = t.latency_ns[i] = -1;
    return t;
}

/* All rounds, or those for which there is time: then how many these were is said. */
static void play(const struct tournament *t) {
    struct probing *p = t->p;
    size_t even = p->n + p->n % 2, round = 0;
    for (; round + 1 < even && clock_monotonic_ns() < p->until_ns - RESERVE_NS; round++) {
        play_round(t, round, even);
        for (size_t i = 0; i < p->n; i++)
            leave_out(t, i);
    }
    json_put_i64(p->figures, "rounds", (int64_t)round);
    if (round + 1 < even)
        probe_fail(p, "%zu of %zu rounds were played in the time that there is", round, even - 1);
}

static void ask(struct probing *p) {
    struct tournament t = tournament_of(p);
    play(&t);
    for (int i = 0; i < AGAIN; i++)
        measure_again(&t);
    double kb_s = judge(&t, t.kb_s, false), latency_ns = judge(&t, t.latency_ns, true);
    judge_floor(&t);
    put_figures(&t);
    probe_pass(p,
               "%.0f MB/s and %.0f us there and back between two hosts, in the middle; nobody out "
               "of line",
               kb_s / 1e3, latency_ns / 1e3);
}

const struct probe probe_bandwidth = {
    .name = "bandwidth",
    .text = "latency and bandwidth of every pair; who is out of line, or below the floor",
    .within_ns = INT64_C(120) * 1000000000,
    .for_many = true,
    .ask = ask,
};
