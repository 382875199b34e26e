/* Loads replay: failures recorded elsewhere become a timeline. */
#include "base/str.h"
#include "harness/scenario/expand/include.h"
#include "harness/scenario/expand/schedule.h"
#include "harness/scenario/expand/trace.h"
#include "harness/scenario/load.h"

#include <stddef.h>
#include <string.h>

enum { CAUSES_MAX = 100, LEFT_OUT_SHOWN = 4 };
static const int64_t SHORTEST_NS = 10000000;

struct replay_cause {
    const char *word;
    const char *fault; /* NULL: not played */
};

struct replay_spec {
    const char *trace;
    struct place trace_place;
    double speed;
    int64_t into_ns;
    int take;
    struct replay_cause causes[CAUSES_MAX], otherwise;
    size_t causes_n;
};

/* ---- what the file says ---- */

static void read_trace(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct replay_spec *q = out;
    q->trace_place = n->place;
    reader_text(r, k, n, out);
    if (!q->trace)
        return;
    const char *by = n->place.line < 0   ? ""
                     : n->place.file > 0 ? r->d->included[n->place.file - 1].file
                                         : r->d->file;
    q->trace = include_beside(r->arena, by, q->trace);
}

static void read_speed(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    reader_decimal(r, k, n, 0.001, 1e9, &((struct replay_spec *)out)->speed);
}

static bool read_fault(struct reader *r, const struct yaml *n, const char *who, const char **ret) {
    const char *const *drawn = hit_names(r->arena);
    size_t count = 0;
    while (drawn[count])
        count++;
    const char **names = arena_array(r->arena, const char *, count + 2);
    memcpy(names, drawn, count * sizeof(*names));
    names[count] = "none";
    struct key k = {.name = who, .type = arena_printf(r->arena, "%s or none", hit_list(r->arena))};
    int i = reader_choice(r, &k, n, names, NULL);
    if (i >= 0)
        *ret = (size_t)i < count ? names[i] : NULL;
    return i >= 0;
}

static void read_causes(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct replay_spec *q = out;
    if (n->type != YAML_MAP || n->length > CAUSES_MAX) {
        diagnostics_add(r->d, n->place, "causes must be %s", k->type);
        return;
    }
    yaml_each(it, n) {
        struct replay_cause c = {.word = it->key};
        if (read_fault(r, it, it->key, &c.fault))
            q->causes[q->causes_n++] = c;
    }
}

static void read_else(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    read_fault(r, n, k->name, &((struct replay_spec *)out)->otherwise.fault);
}

#define AT(member) .offset = offsetof(struct replay_spec, member)

const struct section section_replay = {
    "replay",
    "Faults from a recorded trace, added after the timeline: each hits a node at its time since "
    "the first, sped up. The nodes of the trace become those of the cluster in the order in which "
    "they appear; when there are more, they start again with the first. A fault that cannot be "
    "(its node is away, fewer nodes would be left than the job needs) is left out, and the plan "
    "says which and why.",
    (const struct key[]){
        {"trace", "a file", NULL,
         "A table of text (CSV), by its path from this file's folder. The first line names the "
         "columns: start and end (seconds, or dates such as 2024-05-01 13:00), node, cause.",
         "trace: faults.csv", read_trace, AT(trace), .required = true, .form = "<text>"},
        {"speed", "a number", NULL, "How many times faster than recorded.", "speed: 750",
         read_speed, .form = "<decimal>"},
        {"into", "a duration", NULL,
         "Instead of speed: how long it takes from the first fault to the last.", "into: 2m",
         reader_duration, AT(into_ns), .min = 1},
        {"take", "a whole number", "300", "At most this many faults, counted from the first.",
         "take: 40", reader_int, AT(take), .min = 1, .max = 300},
        {"causes", "a map of words and faults", NULL,
         "The fault for a cause that contains the word, in upper or lower case; the first match "
         "counts. none: no fault.",
         "causes: {gpu: worker-kill, switch: net-partition, maintenance: node-leave}", read_causes,
         .form = "{<drawn> | none}"},
        {"else", "a fault or none", "node-poweroff", "The fault for all other causes.",
         "else: none", read_else, .form = "<drawn> | none"},
        {0},
    },
    .one_of = "speed into",
};

/* ---- playing it ---- */

struct play {
    struct replay_spec spec;
    struct trace trace;
    struct schedule schedule;
    const char **names; /* of the trace's nodes, in the order in which they came */
    size_t names_n, skipped;
    struct buf left_out;
};

static const char *fault_of(const struct replay_spec *q, const char *cause) {
    for (size_t i = 0; i < q->causes_n; i++)
        if (strcasestr(cause, q->causes[i].word))
            return q->causes[i].fault;
    return q->otherwise.fault;
}

static int node_of(struct play *p, const char *name) {
    size_t i = 0;
    while (i < p->names_n && !str_eq(p->names[i], name))
        i++;
    if (i == p->names_n)
        p->names[p->names_n++] = name;
    return (int)(i % (size_t)p->schedule.nodes);
}

static void leave_out(struct play *p, const struct trace_row *row, const char *why) {
    if (p->skipped++ < LEFT_OUT_SHOWN)
        buf_printf(&p->left_out, "; line %d is left out: %s", row->place.line, why);
}

/* What would come back only after the last fault stays away: nobody could wait for it. */
static int64_t lasts_ns(const struct play *p, const struct trace_row *row, int64_t at_ns,
                        int64_t last_ns) {
    int64_t v = (int64_t)((double)(row->end_ns - row->start_ns) / p->spec.speed);
    v = v < SHORTEST_NS ? SHORTEST_NS : v;
    return at_ns + v > last_ns && at_ns < last_ns ? SCHEDULE_FOR_EVER : v;
}

static void play_row(struct play *p, size_t i, int64_t last_ns) {
    const struct trace_row *row = &p->trace.v[i];
    int64_t at_ns = (int64_t)((double)(row->start_ns - p->trace.v[0].start_ns) / p->spec.speed);
    const char *fault = fault_of(&p->spec, row->cause);
    int node = node_of(p, row->node), workers = p->schedule.r->s->job.workers_per_node;
    if (!fault)
        return;
    const char *why = schedule_why_not(&p->schedule, fault, node, at_ns);
    if (why)
        leave_out(p, row, why);
    else
        schedule_add(&p->schedule, fault, node, (int)(i % (size_t)workers), at_ns,
                     lasts_ns(p, row, at_ns, last_ns));
}

static void settle_speed(struct play *p) {
    int64_t whole = p->trace.v[p->trace.n - 1].start_ns - p->trace.v[0].start_ns;
    if (!p->spec.into_ns)
        return;
    p->spec.speed = whole ? (double)whole / (double)p->spec.into_ns : 1;
}

/* How many of them cost a restart is known, so the budget can be. */
static bool check_budget(const struct play *p, struct place at) {
    const struct scenario *s = p->schedule.r->s;
    int costs = 0;
    for (size_t i = 0; i < p->schedule.n; i++) {
        enum hit hit = hit_of(p->schedule.v[i].fault);
        costs += hit == HIT_WORKER || hit == HIT_HANG;
    }
    if (costs <= s->job.max_restarts || str_eq(s->job.launcher, "template"))
        return true;
    return diagnostics_add(
        p->schedule.r->d, at,
        "replay: %d of the faults may cost a restart each and job.max_restarts is %d; "
        "write max_restarts: %d",
        costs, s->job.max_restarts, costs);
}

static void play(struct play *p, struct place at) {
    struct arena *a = p->schedule.r->arena;
    if (p->trace.n > (size_t)p->spec.take)
        p->trace.n = (size_t)p->spec.take;
    settle_speed(p);
    p->names = arena_array(a, const char *, p->trace.n + 1);
    int64_t last_ns =
        (int64_t)((double)(p->trace.v[p->trace.n - 1].start_ns - p->trace.v[0].start_ns) /
                  p->spec.speed);
    for (size_t i = 0; i < p->trace.n; i++)
        play_row(p, i, last_ns);
    if (p->skipped > LEFT_OUT_SHOWN)
        buf_printf(&p->left_out, "; and %zu more", p->skipped - LEFT_OUT_SHOWN);
    if (!p->schedule.n)
        diagnostics_add(p->schedule.r->d, at, "replay: none of the %zu faults can be played%s",
                        p->trace.n, buf_str(&p->left_out));
    else if (check_budget(p, at))
        schedule_end(&p->schedule, arena_printf(a, "%zu of %zu faults of %s, %.6g times as fast%s",
                                                p->schedule.faults, p->trace.n, p->spec.trace,
                                                p->spec.speed, buf_str(&p->left_out)));
}

void replay_read(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct play p = {0};
    int before = r->d->errors;
    reader_section(r, &section_replay, n, &p.spec);
    if (r->d->errors == before && (p.spec.speed > 0) == (p.spec.into_ns > 0))
        diagnostics_add(r->d, n->place, "replay needs a speed, such as speed: 750, or into: 2m%s",
                        p.spec.speed > 0 ? ", not both" : "");
    if (r->s->drawn)
        diagnostics_add(r->d, n->key_place, "random and replay exclude each other");
    if (r->d->errors > before || r->s->cluster.nodes < 1 || r->s->job.workers_per_node < 1)
        return;
    if (trace_read(r, p.spec.trace, p.spec.trace_place, &p.trace) &&
        schedule_begin(&p.schedule, r, "replayed-", n->key_place))
        play(&p, n->key_place);
    buf_fini(&p.left_out);
}
