/* Reads from the device snapshots which worker computes on which GPU. */
#include "harness/judge/checks/check.h"
#include "harness/judge/checks/spans.h"

#include "base/str.h"

#include <stdlib.h>
#include <string.h>

static const char broken[] =
    "One device: each rank computes on one GPU, and no other rank of its node on the same.";

/* What is known of one worker. Devices are named by UUID. */
struct one_device_seat {
    const struct worker *worker;
    const char *seen, *seen_too; /* where the driver lists it; seen_too: on a second one */
    const char *said;            /* by the job itself, NULL */
    bool missed;                 /* a look did not show it where it computed before and after */
    bool untold;                 /* it had the driver open, which did not list it: in a container */
    int64_t seen_seq, said_seq;
    int64_t listed_seq, open_seq; /* of the last look that listed it, that had the driver open */
    int devices, workers;         /* of its node; workers: of this round */
};

/* All workers, and what the history has shown of them so far. */
struct room {
    const struct rounds *rounds;
    struct one_device_seat *v; /* by their index */
    struct one_device_seat *
        *telling; /* those that have said where they compute, and will make more steps */
    size_t telling_n;
    struct moments looks;
};

struct one_device_tally {
    int seen, said, given, crowded; /* workers; given: one device and no other, and it is used */
    const struct worker *untold;    /* that has several, and the driver does not tell which */
    const struct worker *unseen;    /* it says where it computes, and a look did not show it */
    const struct worker *crowd;     /* of a node with fewer devices than workers */
};

static bool is_look(const struct record *r) {
    return r->source == SOURCE_KERNEL && record_is(r, "devices");
}

static bool is_device_event(const struct record *r) {
    return r->source == SOURCE_JOB &&
           (record_is(r, "device") || str_eq(record_text(r, "said"), "device"));
}

static int devices_of(const struct room *m, const char *node) {
    for (size_t i = 0; i < m->looks.when.n; i++) {
        const struct json *given = json_get(record_get(m->looks.v[i], "nodes"), node);
        if (given)
            return (int)given->length;
    }
    return 0;
}

/* Of whom the look shows that process; NULL: of nobody who had started. */
static struct one_device_seat *seat_of(const struct room *m, const struct record *look,
                                       const struct json *process) {
    const struct worker *w =
        rounds_worker_at(m->rounds, json_get_i64(process, "pid", 0), look->t_ns);
    return w && look->t_ns >= w->start_ns ? &m->v[w->index] : NULL;
}

static void note_listed(struct one_device_seat *s, const struct record *look, const char *uuid) {
    s->listed_seq = look->seq;
    if (!s->seen) {
        s->seen = uuid;
        s->seen_seq = look->seq;
    } else if (!str_eq(s->seen, uuid)) {
        s->seen_too = uuid;
        s->seen_seq = look->seq;
    }
}

/* Whoever says where it computes, and goes on to do so, has to be in it. */
static void note_missed(struct room *m, const struct record *look) {
    size_t n = 0;
    for (size_t i = 0; i < m->telling_n; i++) {
        struct one_device_seat *s = m->telling[i];
        if (s->worker->last_step_ns <= look->t_ns)
            continue;
        s->missed |= look->t_ns >= s->worker->start_ns && s->listed_seq != look->seq &&
                     s->open_seq != look->seq;
        m->telling[n++] = s;
    }
    m->telling_n = n;
}

static void note_look(struct room *m, const struct record *look) {
    json_each(d, record_get(look, "devices")) {
        json_each(p, json_get(d, "processes")) {
            struct one_device_seat *s = seat_of(m, look, p);
            if (s)
                note_listed(s, look, json_get_string(d, "uuid", ""));
        }
    }
    json_each(p, record_get(look, "open")) {
        struct one_device_seat *s = seat_of(m, look, p);
        if (!s)
            continue;
        s->open_seq = look->seq;
        s->untold |= s->listed_seq != look->seq;
    }
    note_missed(m, look);
}

static bool says_another(struct finding *f, const struct one_device_seat *s,
                         const struct record *r) {
    if (!s->said || str_eq(s->said, record_text(r, "uuid")))
        return false;
    finding_fail(f, broken, "one device for each rank", "rank %d on %s says that it uses %s and %s",
                 s->worker->rank, s->worker->node, s->said, record_text(r, "uuid"));
    finding_prove(f, s->said_seq, r->seq);
    return true;
}

/* Returns false when it has said something else before. */
static bool note_said(struct room *m, struct finding *f, const struct record *r) {
    const struct worker *w = rounds_worker_at(m->rounds, r->pid, r->t_ns);
    struct one_device_seat *s = w ? &m->v[w->index] : NULL;
    if (!s || !*record_text(r, "uuid"))
        return true;
    if (says_another(f, s, r))
        return false;
    if (!s->said)
        m->telling[m->telling_n++] = s;
    s->said = record_text(r, "uuid");
    s->said_seq = r->seq;
    return true;
}

/* The list of names that a worker was given holds this one, or none that is a UUID. */
static bool was_given(const struct worker *w, const char *uuid) {
    const char *given = json_get_string(w->env, "CUDA_VISIBLE_DEVICES", "");
    return !str_starts(given, "GPU-") || strstr(given, uuid);
}

/* "GPU-a" of a worker that was given that one and no other, "" else. */
static const char *only(const struct worker *w) {
    const char *given = json_get_string(w->env, "CUDA_VISIBLE_DEVICES", "");
    return strchr(given, ',') ? "" : given;
}

static bool judge_alone(struct finding *f, const struct one_device_seat *s,
                        struct one_device_tally *tally) {
    const struct worker *w = s->worker;
    tally->seen += s->seen != NULL;
    tally->said += s->said != NULL;
    if (s->untold && !s->seen && *only(w))
        tally->given++;
    else if (s->untold && !s->seen)
        tally->untold = w;
    if (s->missed)
        tally->unseen = w;
    /* A rank may be meant to use several where each of them can. */
    if (s->seen_too && s->devices / 2 < s->workers)
        finding_fail(f, broken, "one device for each rank", "rank %d on %s was on %s and on %s",
                     w->rank, w->node, s->seen, s->seen_too);
    else if (s->said && s->seen && !str_eq(s->said, s->seen) && !str_eq(s->said, s->seen_too))
        finding_fail(f, broken, "each rank on the device that it names",
                     "rank %d on %s says %s, and the driver lists it on %s", w->rank, w->node,
                     s->said, s->seen);
    else if ((s->said && !was_given(w, s->said)) || (s->seen && !was_given(w, s->seen)))
        finding_fail(f, broken, "each rank on a device that its node was given",
                     "rank %d on %s was on %s, its CUDA_VISIBLE_DEVICES is %.100s", w->rank,
                     w->node, s->said ? s->said : s->seen,
                     json_get_string(w->env, "CUDA_VISIBLE_DEVICES", ""));
    else
        return true;
    finding_prove(f, s->seen_seq ? s->seen_seq : s->said_seq);
    return false;
}

static bool judge_pair(struct finding *f, const struct one_device_seat *a,
                       const struct one_device_seat *b, struct one_device_tally *tally) {
    const struct worker *x = a->worker, *y = b->worker;
    const char *both = a->seen && str_eq(a->seen, b->seen)    ? a->seen
                       : a->said && str_eq(a->said, b->said)  ? a->said
                       : *only(x) && str_eq(only(x), only(y)) ? only(x)
                                                              : NULL;
    if (!both)
        return true;
    if (a->devices < a->workers) {
        tally->crowd = x;
        tally->crowded = a->devices;
        return true;
    }
    finding_prove(f, x->start_seq, y->start_seq, a->seen_seq ? a->seen_seq : a->said_seq);
    return finding_fail(f, broken, "a device for each rank of a node",
                        "ranks %d and %d of round %d are both on %s of %s, which has %d", x->rank,
                        y->rank, x->round, both, x->node, a->devices);
}

/* ---- all of them ---- */

static void room_init(struct room *m, const struct trial *t) {
    size_t n = t->rounds->workers_n;
    *m = (struct room){.rounds = t->rounds,
                       .v = arena_array(t->arena, struct one_device_seat, n),
                       .telling = arena_array(t->arena, struct one_device_seat *, n)};
    for (size_t i = 0; i < n; i++)
        m->v[i] = (struct one_device_seat){
            .worker = t->rounds->workers[i], .listed_seq = -1, .open_seq = -1};
    moments_init(&m->looks, t->arena, t->history, is_look);
}

static bool read_all(struct room *m, struct finding *f, const struct history *h) {
    history_each(r, h) {
        if (is_look(r))
            note_look(m, r);
        else if (is_device_event(r) && !note_said(m, f, r))
            return false;
    }
    return true;
}

/* In order of their nodes, and of their starts there. */
static int by_node(const void *a, const void *b) {
    const struct worker *x = *(const struct worker *const *)a;
    const struct worker *y = *(const struct worker *const *)b;
    int order = strcmp(x->node, y->node);
    return order ? order : (x->index > y->index) - (x->index < y->index);
}

/* Those of one round on one node. */
static bool judge_neighbours(struct room *m, struct finding *f, struct worker *const *v, size_t n,
                             struct one_device_tally *tally) {
    int devices = devices_of(m, v[0]->node);
    for (size_t i = 0; i < n; i++) {
        struct one_device_seat *s = &m->v[v[i]->index];
        s->devices = devices;
        s->workers = (int)n;
        if (!judge_alone(f, s, tally))
            return false;
        for (size_t k = 0; k < i; k++)
            if (!judge_pair(f, &m->v[v[k]->index], s, tally))
                return false;
    }
    return true;
}

static bool judge_round(const struct trial *t, struct room *m, struct finding *f,
                        const struct round *r, struct one_device_tally *tally) {
    struct worker **v = arena_array(t->arena, struct worker *, r->n);
    bool good = true;
    memcpy(v, r->workers, r->n * sizeof(*v));
    qsort(v, r->n, sizeof(*v), by_node);
    for (size_t i = 0, n; good && i < r->n; i += n) {
        for (n = 1; i + n < r->n && str_eq(v[i]->node, v[i + n]->node); n++)
            ;
        good = judge_neighbours(m, f, v + i, n, tally);
    }
    return good;
}

static bool judge_all(const struct trial *t, struct finding *f, struct one_device_tally *tally) {
    struct room m;
    room_init(&m, t);
    bool good = read_all(&m, f, t->history);
    for (size_t i = 0; good && i < t->rounds->n; i++)
        good = judge_round(t, &m, f, t->rounds->v[i], tally);
    return good;
}

static bool was_looked(const struct history *h) {
    history_each(r, h) if (is_look(r)) return true;
    return false;
}

static bool judge(const struct trial *t, struct finding *f) {
    struct one_device_tally tally = {0};
    if (!was_looked(t->history))
        return finding_skip(f, "no node was given a GPU");
    if (!judge_all(t, f, &tally))
        return false;
    if (tally.unseen)
        return finding_unknown(f, broken,
                               "rank %d on %s says that it uses a GPU, and no look shows it",
                               tally.unseen->rank, tally.unseen->node);
    if (tally.untold)
        return finding_skip(f,
                            "the driver does not tell which GPU rank %d on %s is on (a container?)",
                            tally.untold->rank, tally.untold->node);
    if (!tally.seen && tally.given)
        return finding_pass(
            f, "%d workers were given one GPU each and used it; the driver lists nobody",
            tally.given);
    if (!tally.seen && tally.said)
        return finding_unknown(
            f, broken, "%d workers say which GPU they use, and none was seen on any", tally.said);
    if (!tally.seen)
        return finding_skip(f, "no worker was seen on a GPU");
    if (tally.crowd)
        return finding_pass(f, "%d workers on one GPU each; those of %s have to share its %d",
                            tally.seen, tally.crowd->node, tally.crowded);
    return finding_pass(f, "%d worker%s on one GPU each, none with another of its node", tally.seen,
                        tally.seen == 1 ? "" : "s");
}

const struct check check_one_device = {
    .name = "one_device",
    .summary = "each rank computes on one GPU, and no other rank of its node on the same",
    .text =
        "A rank that also opens a context on its neighbour's GPU takes memory there that nobody "
        "planned for; two ranks on one halve each other's speed. Judged by the driver's list of "
        "processes, by CUDA_VISIBLE_DEVICES as each worker was given it, and by what the job "
        "says of itself, which must agree with both. Where a node has fewer GPUs than workers "
        "they have to share, and where it has two for each worker a rank may use several.",
    .example = "rankquake run scenarios/gpu/worker-killed.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(KERNEL) | SOURCES(PROBE) | SOURCES(JOB),
    .on_gpus = true,
    .judge = judge,
};
