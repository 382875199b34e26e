/* Compares what the launcher says, in its log, in torchelastic's events and when it is asked, with what
 * was seen. */
#include "harness/judge/checks/claims/said.h"

#include "base/str.h"

#include <inttypes.h>
#include <string.h>

static bool was_heard(const struct history *h, const char *node) {
    history_each(r, h) {
        if (r->source == SOURCE_HARNESS && record_is(r, "heard") && str_eq(r->node, node))
            return json_get_bool(r->fields, "whole", false);
    }
    return false;
}

const struct agent_end *said_whole_agent(const struct said_trial *s, const char *node) {
    const struct agent_end *only = NULL;
    for (size_t i = 0; i < s->agents_n; i++) {
        if (!str_eq(s->agents[i].node, node))
            continue;
        if (only)
            return NULL;
        only = &s->agents[i];
    }
    if (!only || !only->exit_ns || only->fault_id || only->signal ||
        (only->code != 0 && only->code != 1) || !was_heard(s->t->history, node))
        return NULL;
    return only;
}

/* A job that starts rankruns itself prints their lines too. */
static const char *idle(const struct scenario *s) {
    for (size_t i = 0; i < s->job.run_n; i++)
        if (str_eq(str_base(s->job.run[i]), "rankrun"))
            return "the job starts launchers of its own, and what they say is not told apart";
    if (s->cluster.scheduler)
        return "what agents print below a scheduler is not told apart";
    return str_eq(s->job.launcher, "torchrun") ? "what torchrun says is not read" : NULL;
}

static bool judge(const struct trial *t, struct finding *f) {
    struct said_trial s = {.t = t};
    if (!check_sees_rounds(t, f))
        return false;
    s.agents = check_agents(t, &s.agents_n);
    if (!said_lines(&s, f) || !said_events(&s, f) || !said_status(&s, f))
        return false;
    if (!s.lines && !s.answers)
        return finding_skip(f, "the launcher has said nothing of it");
    if (!s.answers)
        return finding_pass(f, "%" PRId64 " lines of agents agree with what was seen", s.lines);
    return finding_pass(f,
                        "%" PRId64 " lines of agents and %" PRId64
                        " answers about the job agree with what was seen",
                        s.lines, s.answers);
}

const struct check check_said = {
    .name = "said",
    .summary = "what the launcher says of the job is what was seen of it",
    .text =
        "An agent of rankrun prints a line for each round (why there is one, its world, nodes and "
        "restarts, and where the time went), one for the first of its workers that failed, and how "
        "the job ended; with --event-log-handler console torchelastic's events too, and who asks "
        "`rankrun status` (a probe of the scenario) is told of members and ranks. All of these are "
        "claims. Each is compared with what the kernel and rankprobe have told of the same round: "
        "which worker, with which ranks, on which node, ended how. A line that an agent owes, and "
        "that is not there, is looked for where nothing has happened to the agent and any line of "
        "the "
        "launcher was heard. A launcher that says nothing of a thing is not judged by it.",
    .example = "rankquake run scenarios/launcher/says.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(KERNEL) | SOURCES(PROBE) | SOURCES(LAUNCHER) | SOURCES(USER) | SOURCES(WIRE),
    .not_applicable = idle,
    .judge = judge,
};
