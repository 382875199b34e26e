/* Compares the device snapshots at the beginning of each round and after the job. */
#include "harness/judge/checks/check.h"

#include "base/str.h"

#include <stdio.h>

static const char broken[] =
    "Device memory: what a worker had on a device is gone with it, before the next round begins.";

/* What a driver may keep for itself once somebody has computed: a context is some hundred MB. */
static const int64_t SLACK = 128 << 20;
/* No device has more; what a damaged history says beyond that is not known. */
static const int64_t BYTES_MAX = INT64_C(1) << 50;

struct device_memory_tally {
    const struct record *first, *last; /* looks before the job and after its end */
    int workers;                       /* that ended and were on a device */
    int64_t gone_ns;                   /* the longest until such a one was seen to be gone */
};

static bool is_look(const struct record *r) {
    return r->source == SOURCE_KERNEL && record_is(r, "devices");
}

static bool is_at(const struct record *r, const char *at) {
    return str_eq(record_text(r, "at"), at);
}

/* "300 MB on GPU 1", "the driver open". */
static void describe(const struct record *look, int64_t pid, char *out, size_t size) {
    json_each(d, record_get(look, "devices")) {
        long long index = json_get_i64(d, "index", -1);
        json_each(p, json_get(d, "processes")) {
            int64_t bytes = json_get_i64(p, "bytes", -1);
            if (json_get_i64(p, "pid", 0) != pid)
                continue;
            if (bytes >= 0)
                snprintf(out, size, "%lld MB on GPU %lld", (long long)bytes >> 20, index);
            else
                snprintf(out, size, "memory on GPU %lld", index);
            return;
        }
    }
    snprintf(out, size, "the driver open");
}

/* ---- between rounds ---- */

static bool judge_process(const struct trial *t, struct finding *f, const struct record *look,
                          int64_t pid) {
    const struct worker *w = rounds_worker_at(t->rounds, pid, look->t_ns);
    int64_t round = record_i64(look, "round", 0);
    char what[64], since[80] = "had not ended";
    if (!w || w->round >= round)
        return true;
    describe(look, pid, what, sizeof(what));
    if (w->exit_ns && w->exit_ns <= look->t_ns)
        snprintf(since, sizeof(since), "had ended %.1f ms before",
                 (double)(look->t_ns - w->exit_ns) / 1e6);
    finding_prove(f, w->start_seq, look->seq);
    return finding_fail(f, broken, "no worker of an earlier round has anything on a device",
                        "rank %d of round %d on %s had %s when round %lld began; it %s", w->rank,
                        w->round, w->node, what, (long long)round, since);
}

static bool judge_beginning(const struct trial *t, struct finding *f, const struct record *look) {
    json_each(d, record_get(look, "devices")) {
        json_each(p, json_get(d, "processes")) {
            if (!judge_process(t, f, look, json_get_i64(p, "pid", 0)))
                return false;
        }
    }
    json_each(p, record_get(look, "open")) {
        if (!judge_process(t, f, look, json_get_i64(p, "pid", 0)))
            return false;
    }
    return true;
}

/* ---- how soon they are gone ---- */

/* A worker that a look has shown on a device. */
struct guest {
    const struct worker *worker; /* NULL: none has shown it yet */
    int64_t shown_seq;           /* of the last look that did */
};

struct guests {
    const struct rounds *rounds;
    struct guest *v;      /* of all workers, by their index */
    struct guest **there; /* those that were shown and are not known to be gone */
    size_t n;
};

static void note_guest(struct guests *g, const struct record *look, const struct json *process) {
    const struct worker *w =
        rounds_worker_at(g->rounds, json_get_i64(process, "pid", 0), look->t_ns);
    if (!w || look->t_ns < w->start_ns)
        return;
    struct guest *one = &g->v[w->index];
    if (!one->worker) {
        one->worker = w;
        g->there[g->n++] = one;
    }
    one->shown_seq = look->seq;
}

/* How long after its end a worker that had been on a device was first seen not to be. */
static void see_off(struct guests *g, const struct record *look,
                    struct device_memory_tally *tally) {
    size_t n = 0;
    for (size_t i = 0; i < g->n; i++) {
        const struct guest *one = g->there[i];
        int64_t exit_ns = one->worker->exit_ns;
        if (one->shown_seq == look->seq || !exit_ns || look->t_ns < exit_ns) {
            g->there[n++] = g->there[i];
            continue;
        }
        tally->workers++;
        if (look->t_ns - exit_ns > tally->gone_ns)
            tally->gone_ns = look->t_ns - exit_ns;
    }
    g->n = n;
}

static void measure_workers(const struct trial *t, struct device_memory_tally *tally) {
    size_t n = t->rounds->workers_n;
    struct guests g = {t->rounds, arena_array(t->arena, struct guest, n),
                       arena_array(t->arena, struct guest *, n), 0};
    history_each(r, t->history) {
        if (!is_look(r) || record_get(r, "error"))
            continue;
        json_each(d, record_get(r, "devices")) {
            json_each(p, json_get(d, "processes")) note_guest(&g, r, p);
        }
        json_each(p, record_get(r, "open")) note_guest(&g, r, p);
        see_off(&g, r, tally);
    }
}

/* ---- at the end ---- */

static bool judge_left(struct finding *f, const struct record *look, const struct json *p) {
    int64_t pid = json_get_i64(p, "pid", 0);
    const char *node = json_get_string(p, "node", "");
    char what[64];
    if (!*node)
        return true; /* somebody else's */
    describe(look, pid, what, sizeof(what));
    finding_prove(f, look->seq);
    return finding_fail(f, broken,
                        "no process of a node has anything on a device when the job has ended",
                        "process %lld on %s still had %s", (long long)pid, node, what);
}

static bool judge_processes_left(struct finding *f, const struct record *look) {
    json_each(d, record_get(look, "devices")) {
        json_each(p, json_get(d, "processes")) {
            if (!judge_left(f, look, p))
                return false;
        }
    }
    json_each(p, record_get(look, "open")) {
        if (!judge_left(f, look, p))
            return false;
    }
    return true;
}

static const struct json *device_of(const struct record *look, const char *uuid) {
    json_each(d, record_get(look, "devices")) {
        if (str_eq(json_get_string(d, "uuid", ""), uuid))
            return d;
    }
    return NULL;
}

static int64_t bytes_of(const struct json *device, bool *ret_known) {
    int64_t sum = 0;
    json_each(p, json_get(device, "processes")) {
        int64_t bytes = json_get_i64(p, "bytes", -1);
        bool known = bytes >= 0 && bytes <= BYTES_MAX;
        *ret_known &= known;
        sum += known ? bytes : 0;
    }
    *ret_known &= json_get_i64(device, "hidden", 0) == 0;
    return sum;
}

/* More memory in use than before the job, less what the processes of others account for. */
static bool judge_memory_left(struct finding *f, const struct device_memory_tally *t,
                              const struct json *after) {
    const struct json *before = device_of(t->first, json_get_string(after, "uuid", ""));
    int64_t used_before = json_get_i64(before, "used", -1), used = json_get_i64(after, "used", -1);
    bool known = true;
    if (used_before < 0 || used_before > BYTES_MAX || used < 0 || used > BYTES_MAX)
        return true;
    int64_t more = used - used_before - (bytes_of(after, &known) - bytes_of(before, &known));
    long long index = json_get_i64(after, "index", -1);
    if (more <= SLACK)
        return true;
    finding_prove(f, t->first->seq, t->last->seq);
    if (known)
        return finding_fail(f, broken, "as much memory in use on each device as before the job",
                            "%lld MB more in use on GPU %lld, and no process to show for it",
                            (long long)more >> 20, index);
    return finding_unknown(f, broken,
                           "%lld MB more in use on GPU %lld, but not all who use it can be told",
                           (long long)more >> 20, index);
}

static bool judge_end(struct finding *f, const struct device_memory_tally *t) {
    if (!t->last || record_get(t->last, "error"))
        return finding_unknown(f, broken, "the devices were not seen after the job's end%s%s",
                               t->last ? ": " : "", t->last ? record_text(t->last, "error") : "");
    if (!judge_processes_left(f, t->last))
        return false;
    json_each(d, record_get(t->last, "devices")) {
        if (!judge_memory_left(f, t, d))
            return false;
    }
    return true;
}

static bool judge(const struct trial *t, struct finding *f) {
    struct device_memory_tally tally = {0};
    history_each(r, t->history) {
        if (!is_look(r))
            continue;
        tally.first = tally.first ? tally.first : r;
        if (is_at(r, "job-end"))
            tally.last = r;
        if (is_at(r, "round-start") && !judge_beginning(t, f, r))
            return false;
    }
    if (!tally.first)
        return finding_skip(f, "no node was given a GPU");
    measure_workers(t, &tally);
    if (!judge_end(f, &tally) || !check_sees_rounds(t, f))
        return false;
    const struct json *devices = record_get(tally.last, "devices");
    size_t n = devices ? devices->length : 0;
    if (tally.workers)
        return finding_pass(
            f, "nothing left on %zu GPU%s; %d ended worker%s seen to be gone within %.1f ms", n,
            n == 1 ? "" : "s", tally.workers, tally.workers == 1 ? " was" : "s were",
            (double)tally.gone_ns / 1e6);
    return finding_pass(f, "nothing left on %zu GPU%s, and no worker was seen on any", n,
                        n == 1 ? "" : "s");
}

const struct check check_device_memory = {
    .name = "device_memory",
    .summary =
        "no old process or memory is on a GPU when a round begins, and none when the job has ended",
    .text = "The driver's list of processes and the memory in use are read when a round begins, "
            "runs and has ended, and when the job has. Nothing of an earlier round's workers may "
            "be on a device when the next one begins: two sets of workers do not fit. At the end "
            "no process of a node may be on one or have the driver open. The time that is shown "
            "ends when a reading no longer shows an ended worker, so it is an upper bound. Where "
            "the driver hides who computes, it is unknown.",
    .example = "rankquake run scenarios/gpu/worker-killed.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(KERNEL) | SOURCES(PROBE),
    .on_gpus = true,
    .judge = judge,
};
