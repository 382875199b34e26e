/* Asks whether each expression under observe has matched a line. */
#include "harness/judge/checks/check.h"

#include "base/str.h"

#include <stdio.h>

static const char broken[] = "Output: what the scenario reads from the job's output is there.";

static bool any_ended_well(const struct rounds *rs) {
    for (size_t i = 0; i < rs->workers_n; i++)
        if (worker_ended_well(rs->workers[i]))
            return true;
    return false;
}

/* There was a checkpoint to go on from, and a round that could. */
static bool could_resume(const struct trial *t) {
    int last = 0; /* round in which somebody ended well */
    for (size_t i = 0; i < t->rounds->workers_n; i++)
        if (worker_ended_well(t->rounds->workers[i]) && t->rounds->workers[i]->round > last)
            last = t->rounds->workers[i]->round;
    history_each(r, t->history) {
        if (r->source == SOURCE_DISK && record_is(r, "checkpoints") &&
            record_i64(r, "newest", -1) > 0 && record_i64(r, "round", 0) < last)
            return true;
    }
    return false;
}

static bool is_control(const struct history *h) {
    const struct record *run = history_newest(h, SOURCE_HARNESS, "run");
    return run && json_get_bool(run->fields, "control", false);
}

/* Of a preset only its steps must be there: not every job has everything that the tool can say. A
 * job that did not come to a good end need not have said anything. */
static bool is_wanted(const struct trial *t, const struct json *pattern) {
    const char *event = json_get_string(pattern, "event", "");
    bool own = json_get_bool(pattern, "own", true);
    if (!own && !str_eq(event, "step"))
        return false;
    if (str_eq(event, "resume"))
        return could_resume(t);
    return is_control(t->history) || any_ended_well(t->rounds);
}

static void tell_unmatched(struct finding *f, const struct json *p, int64_t lines) {
    const char *closest = json_get_string(p, "closest", "");
    const char *event = json_get_string(p, "event", "");
    const char *expected =
        finding_expected(f, "a line that matches /%.150s/", json_get_string(p, "pattern", ""));
    if (!lines)
        finding_fail(f, broken, expected, "observe.%s: the workers printed nothing at all", event);
    else if (*closest)
        finding_fail(f, broken, expected, "observe.%s matched none of %lld lines; the closest: %s",
                     event, (long long)lines, closest);
    else
        finding_fail(f, broken, expected,
                     "observe.%s matched none of %lld lines, and none is like it", event,
                     (long long)lines);
    str_copy(f->where, sizeof(f->where), "what workers printed: logs/NODE/rank-R.log");
}

static bool judge_pattern(const struct trial *t, struct finding *f, const struct record *observed,
                          const struct json *p) {
    int64_t matched = json_get_i64(p, "matched", 0), unread = json_get_i64(p, "unread", 0);
    if (!matched && is_wanted(t, p))
        tell_unmatched(f, p, record_i64(observed, "lines", 0));
    else if (matched && matched == unread)
        finding_fail(
            f, broken, "a number in the group of the expression",
            "observe.%s: /%.120s/ matched %lld lines, but what its group takes out of them "
            "is no number",
            json_get_string(p, "event", ""), json_get_string(p, "pattern", ""), (long long)matched);
    else
        return true;
    finding_prove(f, observed->seq);
    return false;
}

static bool tell_counts(struct finding *f, const struct record *observed) {
    char text[200] = "";
    size_t at = 0;
    json_each(p, record_get(observed, "patterns")) {
        int64_t n = json_get_i64(p, "matched", 0);
        if (at < sizeof(text))
            at += (size_t)snprintf(text + at, sizeof(text) - at, n ? "%s%s %lld" : "%s%s never",
                                   at ? ", " : "", json_get_string(p, "event", ""), (long long)n);
    }
    int64_t skipped = record_i64(observed, "skipped_bytes", 0);
    int64_t thinned = record_i64(observed, "thinned", 0), lines = record_i64(observed, "lines", 0);
    char more[120] = "";
    if (skipped)
        snprintf(more, sizeof(more),
                 "; %lld kB more came faster than anybody reads and were skipped",
                 (long long)(skipped / 1024));
    else if (thinned)
        snprintf(more, sizeof(more), "; %lld events came too fast for each to be recorded",
                 (long long)thinned);
    return finding_pass(f, "%s, in %lld lines%s", at ? text : "a line of the log", (long long)lines,
                        more);
}

static const char *idle(const struct scenario *s) {
    return !scenario_reads_output(s) ? "the scenario sets no observe" : NULL;
}

/* A program of C that writes into a file keeps its lines until there are some thousand bytes. */
static bool tell_buffered(struct finding *f, const struct record *observed) {
    finding_prove(f, observed->seq);
    return finding_fail(
        f, broken, "each step printed when it is made",
        "observe.step: steps were told in bursts, long after they were made: the output is "
        "buffered; put stdbuf -oL in front of the program, or let it flush its lines");
}

static bool judge(const struct trial *t, struct finding *f) {
    const struct record *observed = history_newest(t->history, SOURCE_HARNESS, "observed");
    const struct record *unwatched = history_newest(t->history, SOURCE_HARNESS, "unwatched");
    if (unwatched) {
        finding_prove(f, unwatched->seq);
        return finding_unknown(f, broken, "what a program on %s printed was not read: %s",
                               unwatched->node, record_text(unwatched, "why"));
    }
    if (!observed)
        return finding_unknown(f, broken, "nobody counted what was printed");
    json_each(p, record_get(observed, "patterns")) {
        if (!judge_pattern(t, f, observed, p))
            return false;
    }
    /* In a control run it is a matter of the program; later it would be one of a host that
     * is slow. */
    if (record_i64(observed, "buffered", 0) && is_control(t->history))
        return tell_buffered(f, observed);
    return tell_counts(f, observed);
}

const struct check check_observed = {
    .name = "observed",
    .summary = "every expression of observe matched something the job has printed",
    .text = "An expression that matches no line would leave everything that depends on it unseen, "
            "and a run in which nothing was seen proves nothing. It is asked of the control "
            "run first, before anything is broken. resume is wanted only of a round that had a "
            "complete checkpoint to go on from; of a preset only its steps are.",
    .example = "rankquake run scenarios/restart/printed-steps.yaml",
    .class = CLASS_FAULTS,
    .sources = SOURCES(PROBE) | SOURCES(KERNEL) | SOURCES(DISK),
    .not_applicable = idle,
    .judge = judge,
};
