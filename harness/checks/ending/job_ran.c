#include "harness/checks/check.h"

#include "agent/base/str.h"

static const char broken[] = "Job: it can be started and trains when nothing disturbs it.";

static const struct record *find(const struct history *h, enum source source, const char *kind) {
    history_each(r, h) {
        if (r->source == source && record_is(r, kind))
            return r;
    }
    return NULL;
}

static void judge(const struct trial *t, struct finding *f) {
    const struct record *control = find(t->history, SOURCE_HARNESS, "control");
    const struct record *end = history_newest(t->history, SOURCE_HARNESS, "job-end");
    const struct record *exec = find(t->history, SOURCE_PROBE, "exec-failed");
    const char *error = control ? record_text(control, "error") : "";
    if (*error) {
        finding_fail(f, broken, "an undisturbed run that ends well", "the control run: %s", error);
        finding_prove(f, control->seq);
    } else if (end && str_eq(record_text(end, "why"), "error")) {
        error = record_text(end, "error");
        finding_fail(f, "Harness: it can build the cluster and watch the job.", "a run to its end",
                     "%s", *error ? error : "the harness gave up");
        finding_prove(f, end->seq);
    } else if (exec && t->rounds->n <= 1) {
        finding_fail(f, broken, "a program that can be executed",
                     "process %lld on %s could not execute it: %s", (long long)exec->pid,
                     exec->node, record_text(exec, "error"));
        finding_prove(f, exec->seq);
    } else if (!find(t->history, SOURCE_KERNEL, "agent-start")) {
        finding_fail(f, "Launcher: it is started on the nodes.", "an agent on every node",
                     "no agent was seen to start");
    } else {
        finding_pass(f, control ? "the control run trained, and the job was started"
                                : "the job was started");
    }
}

const struct check check_job_ran = {
    .name = "job_ran",
    .summary = "the job can be started, and trains when nothing disturbs it",
    .text = "Before a job is disturbed it runs once undisturbed (the control run, cached). When "
            "that does not train, or the job's program cannot be executed, nothing is learnt about "
            "faults: the run is broken, not failed.",
    .example = "rankquake run scenarios/tour.yaml",
    .class = CLASS_HARNESS,
    .sources = SOURCES(KERNEL) | SOURCES(PROBE),
    .judge = judge,
};
