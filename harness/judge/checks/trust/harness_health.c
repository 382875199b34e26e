/* Asks whether the recording itself is whole and was in time. */
#include "harness/judge/checks/check.h"
#include "harness/judge/checks/lost.h"

#include "base/str.h"

#include <stdio.h>

static const char broken[] = "Harness: it recorded the run from beginning to end.";

/* Stamps are taken when something is received, and written in that order. Two threads of events
 * differ by microseconds. */
static const int64_t BACKWARDS_NS = 1000000;

/* The end of a worker is written when its status is known, which may take its time; the start of an agent or store
 * when its node has told of it, with when that was asked for; a signal bears the kernel's own stamp of when it was
 * sent; and what another host has stamped is written when it has come from there. */
static bool may_be_late(const struct record *r) {
    static const char *const kinds[] = {"worker-exit", "agent-start", "store-start", "signal",
                                        "signal-group"};
    for (size_t i = 0; r->source == SOURCE_KERNEL && i < sizeof(kinds) / sizeof(*kinds); i++)
        if (record_is(r, kinds[i]))
            return true;
    return r->bound_ns != 0;
}

struct health {
    size_t evidence;
    int64_t trigger_lag_ns;
    int64_t loop_lag_ns, held_ns; /* held: all that workers waited for the job's own command */
    const struct record *backwards, *before; /* the first stamp that lies before another one's */
    const struct record *set;                /* a clock has been, the last time */
};

/* A lag that says why was no lateness of the loop: it went on, and workers waited. */
static void look_at_lag(struct health *s, const struct record *r) {
    int64_t ns = record_i64(r, "max_ns", 0);
    if (r->source != SOURCE_HARNESS || !record_is(r, "lag"))
        return;
    if (*record_text(r, "why") && ns > 0)
        s->held_ns = ns < INT64_MAX - s->held_ns ? s->held_ns + ns : INT64_MAX;
    else if (ns > s->loop_lag_ns)
        s->loop_lag_ns = ns;
}

static struct health look(const struct history *h) {
    struct health s = {0};
    const struct record *newest = NULL;
    history_each(r, h) {
        s.evidence += source_is_evidence(r->source);
        if (record_is(r, "fault-fired") && record_i64(r, "lag_ns", 0) > s.trigger_lag_ns)
            s.trigger_lag_ns = record_i64(r, "lag_ns", 0);
        look_at_lag(&s, r);
        if (r->source == SOURCE_HARNESS && record_is(r, "clock-step"))
            s.set = r;
        bool late = may_be_late(r);
        if (newest && !late && !s.backwards && r->t_ns < newest->t_ns - BACKWARDS_NS) {
            s.backwards = r;
            s.before = newest;
        }
        if (!late && (!newest || r->t_ns > newest->t_ns))
            newest = r;
    }
    return s;
}

static bool judge_end(const struct history *h, struct finding *f) {
    if (h->torn)
        finding_fail(f, broken, "a history that ends with a whole line",
                     "the last line of the history was cut off: the harness was killed");
    else if (h->missing)
        finding_fail(f, broken, "every record from the first to the last",
                     "%lld record%s missing, the first behind record %lld", (long long)h->missing,
                     h->missing == 1 ? " is" : "s are", (long long)h->gap);
    else if (h->too_long)
        finding_fail(f, broken, "a history that can be held in memory",
                     "the history is longer than can be judged: only its first %lld records are",
                     (long long)(h->n ? h->records[h->n - 1]->seq : 0));
    else if (!history_newest(h, SOURCE_HARNESS, "job-end"))
        finding_fail(f, broken, "a record of how the job ended",
                     "the history stops while the job is running: the harness was killed");
    else if (!history_newest(h, SOURCE_HARNESS, "health"))
        finding_fail(f, broken, "a look over the host after the run",
                     "the history stops before the nodes were down: the harness was killed");
    else
        return true;
    return false;
}

/* Nothing is wrong with what was stamped before and after: each keeps its own bound. */
static void tell_step(const struct health *s, char *out, size_t size, struct finding *f) {
    if (!s->set)
        return;
    double by_s =
        ((double)record_i64(s->set, "ahead_ns", 0) - (double)record_i64(s->set, "was_ns", 0)) / 1e9;
    f->loud = true;
    finding_prove(f, s->set->seq);
    snprintf(out, size, "; the clock of %.40s was set by %+.3f s against ours while the job ran",
             record_text(s->set, "host"), by_s);
}

static bool tell(const struct trial *t, struct finding *f, const struct health *s) {
    const struct history *h = t->history;
    const struct record *last = h->records[h->n - 1];
    const struct record *health = history_newest(h, SOURCE_HARNESS, "health");
    int64_t cpu_ns = record_i64(health, "cpu_ns", 0);
    int64_t took_ns = last->t_ns - h->records[0]->t_ns;
    char cpu[80] = "", held[80] = "", step[110] = "";
    if (cpu_ns > 0 && took_ns > 0)
        snprintf(cpu, sizeof(cpu), "; it took %.0f %% of a processor",
                 100 * (double)cpu_ns / (double)took_ns);
    if (s->held_ns)
        snprintf(held, sizeof(held), "; workers waited %.1f s for job.checkpoint.complete",
                 (double)s->held_ns / 1e9);
    tell_step(s, step, sizeof(step), f);
    return finding_pass(
        f,
        "%lld records, %zu of them evidence; its loop was late by %.1f ms at most, a "
        "trigger by %.1f ms%s%s%s",
        (long long)last->seq, s->evidence, (double)s->loop_lag_ns / 1e6,
        (double)s->trigger_lag_ns / 1e6, cpu, held, step);
}

static bool judge(const struct trial *t, struct finding *f) {
    const struct history *h = t->history;
    const struct health s = look(h);
    if (!judge_end(h, f))
        return false;
    const char *why = record_text(history_newest(h, SOURCE_HARNESS, "job-end"), "why");
    if (s.backwards && !history_is_simulated(h)) {
        finding_prove(f, s.before->seq, s.backwards->seq);
        return finding_fail(
            f, "Harness: its clock never goes back, for all times are differences of it.",
            "stamps in the order of the records",
            "record %lld (%s) is stamped %.1f ms before record %lld (%s)",
            (long long)s.backwards->seq, s.backwards->kind,
            (double)(s.before->t_ns - s.backwards->t_ns) / 1e6, (long long)s.before->seq,
            s.before->kind);
    }
    if (!s.evidence && str_eq(why, "ended"))
        return finding_fail(f, "Harness: what it judges by is evidence.",
                            "a record of some evidence",
                            "nothing of the kernel, the wire, the disk or rankprobe was recorded");
    if (t->lost->blind) {
        finding_prove(f, t->lost->seq);
        return finding_unknown(f, "Harness: it saw the run as it was.", "%s", t->lost->why);
    }
    return tell(t, f, &s);
}

const struct check check_harness_health = {
    .name = "harness_health",
    .summary = "the harness recorded the run from beginning to end",
    .text =
        "A verdict is only worth what was recorded. This check fails when the history is cut "
        "off, lacks its end or a record in between, holds no evidence at all, or when its clock "
        "went back. It is unknown when the harness was away for more than 2 s, as on a virtual "
        "machine that is paused, or when somebody trained who was never seen to start: what "
        "then seems to have failed is not known either. It shows by how much the harness's own "
        "loop and its triggers were late (times that are shorter than five times that are not "
        "judged), how much of a processor it took from the job, and which host's clock was set "
        "meanwhile.",
    .example = "rankquake run scenarios/tour.yaml",
    .class = CLASS_HARNESS,
    .sources = SOURCES(KERNEL) | SOURCES(WIRE) | SOURCES(DISK) | SOURCES(PROBE),
    .judge = judge,
};
