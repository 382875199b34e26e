/* Compares the communicator ids that workers report, within a round and across rounds. */
#include "harness/judge/checks/check.h"

#include "base/str.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

static const char broken[] =
    "Communicator: the workers of a round share one id, and no later round uses it again.";

/* What a worker has said of its communicator, "" when nothing. */
static const char *id_of(const struct record *r) {
    bool device = record_is(r, "device") || str_eq(record_text(r, "said"), "device");
    return r->source == SOURCE_JOB && device ? record_text(r, "communicator") : "";
}

static bool judge_pair(struct finding *f, const struct record *a, const struct worker *wa,
                       const struct record *b, const struct worker *wb) {
    bool same = str_eq(id_of(a), id_of(b));
    if (same == (wa->round == wb->round))
        return true;
    finding_prove(f, a->seq, b->seq);
    if (same)
        return finding_fail(f, broken, "a new id in every round",
                            "rank %d of round %d joined communicator %.16s, which was round %d's",
                            wb->rank, wb->round, id_of(b), wa->round);
    return finding_fail(f, broken, "one id for all workers of a round",
                        "in round %d rank %d joined communicator %.16s, rank %d %.16s", wa->round,
                        wa->rank, id_of(a), wb->rank, id_of(b));
}

/* What was said so far. All of a round have said the same, so its first stands for them. */
struct named {
    const struct record **first; /* by round */
    void *by_id;                 /* of tsearch: the same records */
    bool *told;                  /* by worker: it has said something */
    int rounds, newest;
};

static int by_id(const void *a, const void *b) {
    return strcmp(id_of(a), id_of(b));
}

static const struct worker *teller(const struct trial *t, const struct record *r) {
    return rounds_worker_at(t->rounds, r->pid, r->t_ns);
}

/* Against what was said in its round, and where this was said, before. */
static bool judge_record(const struct trial *t, struct finding *f, struct named *m,
                         const struct record *r, const struct worker *w) {
    const struct record **first = &m->first[w->round - 1];
    void **same = tfind(r, &m->by_id, by_id);
    const struct record *before[] = {*first, same ? *same : NULL};
    for (int i = 0; i < 2; i++)
        if (before[i] && !judge_pair(f, before[i], teller(t, before[i]), r, w))
            return false;
    if (!*first) {
        *first = r;
        if (!tsearch(r, &m->by_id, by_id))
            abort(); /* out of memory */
    }
    m->told[w->index] = true;
    m->rounds += w->round > m->newest;
    m->newest = w->round > m->newest ? w->round : m->newest;
    return true;
}

/* A worker that has made a step has joined its group. */
static bool judge_silent(const struct trial *t, struct finding *f, struct named *m) {
    for (size_t i = 0; i < t->rounds->workers_n; i++) {
        const struct worker *w = t->rounds->workers[i];
        if (!w->first_step_ns || m->told[w->index])
            continue;
        finding_prove(f, w->start_seq);
        if (w->lost_events)
            return finding_unknown(f, broken, "%lld events of rank %d on %s were lost",
                                   (long long)w->lost_events, w->rank, w->node);
        return finding_unknown(f, broken, "rank %d on %s of round %d did not name its communicator",
                               w->rank, w->node, w->round);
    }
    return true;
}

static bool judge_all(const struct trial *t, struct finding *f, struct named *m) {
    history_each(r, t->history) {
        const struct worker *w = *id_of(r) ? teller(t, r) : NULL;
        if (w && !judge_record(t, f, m, r, w))
            return false;
    }
    if (!m->rounds)
        return finding_skip(f, "no worker named a communicator");
    return judge_silent(t, f, m) &&
           finding_pass(f, "a new one in each of %d round%s, the same for all of its workers",
                        m->rounds, m->rounds == 1 ? "" : "s");
}

static void in_the_history(void *record) {
}

static bool judge(const struct trial *t, struct finding *f) {
    struct named m = {.first = arena_array(t->arena, const struct record *, t->rounds->n),
                      .told = arena_array(t->arena, bool, t->rounds->workers_n)};
    bool well = judge_all(t, f, &m);
    tdestroy(m.by_id, in_the_history);
    return well;
}

const struct check check_communicator = {
    .name = "communicator",
    .summary = "the workers of a round share one communicator id, and no other round has it",
    .text = "A communicator that was formed for one set of workers cannot serve another: whoever "
            "brings an old id waits for peers that are gone, or is refused. Judged by the job's "
            "`device` events, {uuid, index, communicator}; the rounds are those seen from outside. "
            "Skipped for jobs that name none.",
    .example = "rankquake run scenarios/gpu/worker-killed.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(JOB) | SOURCES(PROBE) | SOURCES(KERNEL),
    .needs_events = NEEDS_COMMUNICATOR,
    .on_gpus = true,
    .judge = judge,
};
