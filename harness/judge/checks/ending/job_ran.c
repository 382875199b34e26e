/* Asks whether the job could be started, and whether its control run trained. */
#include "harness/judge/checks/check.h"

#include "base/str.h"

static const char broken[] = "Job: it can be started and trains when nothing disturbs it.";

static const struct record *find(const struct history *h, enum source source, const char *kind) {
    history_each(r, h) {
        if (r->source == source && record_is(r, kind))
            return r;
    }
    return NULL;
}

static const struct record *ended_badly_or_not(const struct history *h) {
    const struct record *first = NULL;
    history_each(r, h) {
        if (r->source == SOURCE_KERNEL && record_is(r, "agent-exit") &&
            (!first || record_i64(r, "code", 1)))
            first = first && record_i64(first, "code", 1) ? first : r;
    }
    return first;
}

/* What an agent that ended had left running: it has gone into the background. */
static const struct record *left_behind(const struct history *h) {
    history_each(r, h) {
        if (r->source == SOURCE_KERNEL && record_is(r, "leftovers") &&
            json_first(record_get(r, "processes")))
            return r;
    }
    return NULL;
}

static void say_how_it_ended(const struct trial *t, struct finding *f, const char *expected) {
    static const char promise[] = "Launcher: it starts the job's workers.";
    const struct record *limit = history_newest(t->history, SOURCE_HARNESS, "limit");
    const struct record *exit = ended_badly_or_not(t->history), *left = left_behind(t->history);
    if (limit)
        finding_fail(f, promise, expected, "the launcher started no worker within limits.%s, %g s",
                     record_text(limit, "name"), (double)record_i64(limit, "ns", 0) / 1e9);
    else if (!exit)
        finding_fail(f, promise, expected, "the launcher started no worker");
    else if (left && !record_get(exit, "signal") && !record_i64(exit, "code", 0))
        finding_fail(f, promise, expected,
                     "the launcher on %s ended 0 and left %zu process%s running (%s): it must stay "
                     "in the foreground for as long as its workers run",
                     left->node, record_get(left, "processes")->length,
                     record_get(left, "processes")->length == 1 ? "" : "es",
                     json_get_string(json_first(record_get(left, "processes")), "name", "?"));
    else if (record_get(exit, "signal"))
        finding_fail(f, promise, expected, "the launcher on %s died on signal %lld before that",
                     exit->node, (long long)record_i64(exit, "signal", 0));
    else if (record_i64(exit, "code", 0))
        finding_fail(f, promise, expected, "the launcher on %s ended %lld and had started none",
                     exit->node, (long long)record_i64(exit, "code", 0));
    else
        finding_fail(f, promise, expected,
                     "the launcher on %s ended 0 and none was seen to start: the worker's command "
                     "must run on the node, in the environment that the launcher was given",
                     exit->node);
    if (limit || exit)
        finding_prove(f, limit ? limit->seq : exit->seq);
}

/* Nothing disturbed it, and yet there is no worker at all. */
static bool never_began(const struct trial *t, struct finding *f) {
    const struct record *end = history_newest(t->history, SOURCE_HARNESS, "job-end");
    const char *why = end ? record_text(end, "why") : "";
    if (t->rounds->n || (!str_eq(why, "ended") && !str_eq(why, "limit")) ||
        history_newest(t->history, SOURCE_HARNESS, "fault-in-force"))
        return false;
    say_how_it_ended(t, f, "workers on the nodes, each behind rankprobe");
    return true;
}

/* Who belongs together cannot be told. */
static bool nobody_has_a_rank(const struct trial *t, struct finding *f) {
    const struct rounds *rs = t->rounds;
    for (size_t i = 0; i < rs->workers_n; i++)
        if (rs->workers[i]->rank >= 0 && rs->workers[i]->world_size > 0)
            return false;
    if (!rs->workers_n || !check_template(t))
        return false;
    finding_fail(f, "Launcher: it tells every worker its place in the group.",
                 "RANK and WORLD_SIZE in the environment of every worker",
                 "no worker was given them (RANK, WORLD_SIZE); let the template do it, for example "
                 "env RANK={node} WORLD_SIZE={nodes} {worker}");
    finding_prove(f, rs->workers[0]->start_seq);
    return true;
}

/* A job that tells no step may have trained, or may be no training at all. */
static const char *what_control_did(const struct record *control) {
    if (!control)
        return "";
    return record_i64(control, "step_ns", 0) > 0 || record_i64(control, "last_step", -1) >= 0
               ? "the control run trained, and "
               : "the control run ended well and told no step, and ";
}

static bool judge(const struct trial *t, struct finding *f) {
    const struct record *control = find(t->history, SOURCE_HARNESS, "control");
    const struct record *end = history_newest(t->history, SOURCE_HARNESS, "job-end");
    const struct record *exec = find(t->history, SOURCE_PROBE, "exec-failed");
    const char *error = control ? record_text(control, "error") : "";
    if (*error) {
        finding_prove(f, control->seq);
        return finding_fail(f, broken, "a control run that ends well", "the control run: %s",
                            error);
    }
    if (end && str_eq(record_text(end, "why"), "error")) {
        error = record_text(end, "error");
        finding_prove(f, end->seq);
        return finding_fail(f, "Harness: it can build the cluster and watch the job.",
                            "a run to its end", "%s", *error ? error : "the harness gave up");
    }
    if (exec && t->rounds->n <= 1) {
        finding_prove(f, exec->seq);
        return finding_fail(f, broken, "a program that can be executed",
                            "process %lld on %s could not execute it: %s", (long long)exec->pid,
                            exec->node, record_text(exec, "error"));
    }
    if (!find(t->history, SOURCE_KERNEL, "agent-start"))
        return finding_fail(f, "Launcher: it is started on the nodes.", "an agent on every node",
                            "no agent was seen to start");
    if (t->scenario->expect.outcome == OUTCOME_REFUSED)
        return finding_pass(f, "the launcher was started, and is to refuse");
    return !never_began(t, f) && !nobody_has_a_rank(t, f) &&
           finding_pass(f, "%sthe job was started", what_control_did(control));
}

const struct check check_job_ran = {
    .name = "job_ran",
    .summary = "the job can be started, and trains when nothing disturbs it",
    .text = "Before any fault, the job runs once without faults (the control run, cached). When "
            "that does not train, or the job's program cannot be executed, the run says nothing "
            "about faults: it is broken, not failed.",
    .example = "rankquake run scenarios/tour.yaml",
    .class = CLASS_HARNESS,
    .sources = SOURCES(KERNEL) | SOURCES(PROBE),
    .judge = judge,
};
