/* The recorded run as a trace of the Trace Event Format, which Perfetto's UI and chrome://tracing open:
 * a process for each node with a track for each of its workers, one for the rounds, with a track more
 * for each that goes on beside another, one for the faults, and one for the phases of each recovery. */
#include "reports/report.h"
#include "reports/story.h"

#include "base/str.h"

#include <stdio.h>

/* Processes of the trace; those of the nodes follow. */
enum { ROUNDS = 1, FAULTS, RECOVERIES, NODES };
enum { NODES_MAX = 4096, ROUNDS_MAX = 64 };

struct tracks {
    const struct recorded_run *run;
    struct json_writer w;
    int64_t end_ns;
    const char *nodes[NODES_MAX]; /* by process, from NODES */
    int nodes_n;
    int64_t rounds_end_ns[ROUNDS_MAX]; /* of the last round on each track of rounds */
    int rounds_n;
};

static double us(const struct tracks *t, int64_t t_ns) {
    return story_seconds(t->run, t_ns) * 1e6;
}

static void event(struct tracks *t, const char *type, const char *name, int64_t process,
                  int64_t track, int64_t t_ns) {
    json_object(&t->w, NULL);
    json_put_string(&t->w, "ph", type);
    json_put_string(&t->w, "name", name);
    json_put_i64(&t->w, "pid", process);
    json_put_i64(&t->w, "tid", track);
    json_put_double(&t->w, "ts", us(t, t_ns));
}

/* From one moment to another; its arguments follow, and two ends. */
static void span(struct tracks *t, const char *name, int64_t process, int64_t track,
                 int64_t from_ns, int64_t to_ns) {
    event(t, "X", name, process, track, from_ns);
    json_put_double(&t->w, "dur", to_ns > from_ns ? us(t, to_ns) - us(t, from_ns) : 0);
    json_object(&t->w, "args");
}

static void span_end(struct tracks *t) {
    json_end_object(&t->w);
    json_end_object(&t->w);
}

static void put_name(struct tracks *t, const char *what, int64_t process, int64_t track,
                     const char *name) {
    event(t, "M", what, process, track, t->end_ns);
    json_object(&t->w, "args");
    json_put_string(&t->w, "name", name);
    span_end(t);
}

static int process_of(struct tracks *t, const char *node) {
    for (int i = 0; i < t->nodes_n; i++)
        if (str_eq(t->nodes[i], node))
            return NODES + i;
    if (t->nodes_n == NODES_MAX)
        return NODES + NODES_MAX;
    t->nodes[t->nodes_n] = node;
    put_name(t, "process_name", NODES + t->nodes_n, 0, node);
    return NODES + t->nodes_n++;
}

/* ---- workers and rounds ---- */

static void put_worker(struct tracks *t, const struct worker *k) {
    char name[64];
    int process = process_of(t, k->node);
    int64_t end_ns = k->exit_ns ? k->exit_ns : t->end_ns;
    snprintf(name, sizeof(name), "rank %d of %d", k->rank, k->world_size);
    span(t, name, process, k->local_rank, k->start_ns, end_ns);
    json_put_i64(&t->w, "round", k->round);
    json_put_i64(&t->w, "pid", k->pid);
    json_put_i64(&t->w, "resume_step", k->resume_step);
    json_put_i64(&t->w, "last_step", k->last_step);
    if (k->exit_known)
        json_put_i64(&t->w, k->exit_signal ? "signal" : "code",
                     k->exit_signal ? k->exit_signal : k->exit_code);
    span_end(t);
    if (!k->first_step_ns)
        return;
    span(t, "sets up", process, k->local_rank, k->start_ns, k->first_step_ns);
    span_end(t);
}

/* The first on which no other round goes on; those that are too many for that are on the last. */
static int round_track(struct tracks *t, int64_t from_ns, int64_t to_ns) {
    int at = 0;
    while (at < t->rounds_n && t->rounds_end_ns[at] > from_ns && at < ROUNDS_MAX - 1)
        at++;
    if (at == t->rounds_n) {
        char name[32];
        snprintf(name, sizeof(name), at ? "rounds beside (%d)" : "rounds", at);
        put_name(t, "thread_name", ROUNDS, at, name);
        t->rounds_n++;
    }
    if (to_ns > t->rounds_end_ns[at])
        t->rounds_end_ns[at] = to_ns;
    return at;
}

static void put_round(struct tracks *t, const struct incidents *is, const struct round *r) {
    char name[64];
    BUF_FINI struct buf why = {0};
    int64_t ended_ns = round_ended_ns(r);
    story_round_end(is, r, &why);
    snprintf(name, sizeof(name), "round %d, %d workers", r->number, r->world_size);
    ended_ns = ended_ns ? ended_ns : t->end_ns;
    int track = round_track(t, r->first_start_ns, ended_ns);
    span(t, name, ROUNDS, track, r->first_start_ns, ended_ns);
    json_put_bool(&t->w, "complete", r->complete);
    json_put_string(&t->w, "ended_by", buf_str(&why));
    span_end(t);
}

/* ---- faults and what came of them ---- */

static void put_fault(struct tracks *t, const struct incident *i, int track) {
    BUF_FINI struct buf targets = {0};
    story_targets(i, &targets);
    put_name(t, "thread_name", FAULTS, track, i->id);
    span(t, i->fault, FAULTS, track, i->t0_ns, i->recovered ? i->recovered_ns : i->t0_ns);
    json_put_string(&t->w, "on", buf_str(&targets));
    json_put_string(&t->w, "evidence", i->evidence_seq ? i->evidence : NULL);
    span_end(t);
}

static void put_recovery(struct tracks *t, const struct incident *i, int track) {
    int64_t at_ns = i->t0_ns;
    if (i->recover_ns < 0)
        return;
    put_name(t, "thread_name", RECOVERIES, track, i->id);
    for (int p = 0; p < PHASE_N; p++) {
        if (i->phase_ns[p] < 0)
            continue;
        span(t, phase_name((enum phase)p), RECOVERIES, track, at_ns, at_ns + i->phase_ns[p]);
        span_end(t);
        at_ns += i->phase_ns[p];
    }
}

static void put_all(struct tracks *t) {
    const struct rounds *rs = t->run->rounds;
    struct incidents is;
    incidents_load(&is, t->run->history, rs);
    put_name(t, "process_name", ROUNDS, 0, "rounds");
    put_name(t, "process_name", FAULTS, 0, "faults");
    put_name(t, "process_name", RECOVERIES, 0, "recoveries");
    for (size_t i = 0; i < rs->n; i++)
        put_round(t, &is, rs->v[i]);
    for (size_t i = 0; i < rs->workers_n; i++)
        put_worker(t, rs->workers[i]);
    for (size_t i = 0; i < is.n; i++) {
        if (!is.v[i]->in_force)
            continue;
        put_fault(t, is.v[i], (int)i);
        put_recovery(t, is.v[i], (int)i);
    }
    incidents_fini(&is);
}

static int render(const struct recorded_run *run, const struct report_style *style, struct buf *out,
                  struct err *err) {
    const struct history *h = run->history;
    struct tracks t = {.run = run, .w.out = out, .end_ns = h->n ? h->records[h->n - 1]->t_ns : 0};
    json_object(&t.w, NULL);
    json_put_string(&t.w, "displayTimeUnit", "ms");
    json_array(&t.w, "traceEvents");
    put_all(&t);
    json_end_array(&t.w);
    json_end_object(&t.w);
    buf_putc(out, '\n');
    return 0;
}

const struct report report_trace = {
    .name = "trace",
    .summary = "a trace for Perfetto's UI: workers, rounds, faults, phases",
    .render = render,
};
