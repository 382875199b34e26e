/* Reads what the harness found of each agent after its end. */
#include "harness/judge/checks/check.h"

#include "base/str.h"

#include <stdio.h>

static const char broken[] = "Leftovers: nothing of a node's job outlives its agent.";

/* The count made after the agent's end and before another agent was started there. */
static const struct record *count_after(const struct history *h, const struct agent_end *a) {
    history_each(r, h) {
        if (r->source != SOURCE_KERNEL || !str_eq(r->node, a->node) || r->t_ns < a->exit_ns)
            continue;
        if (record_is(r, "leftovers"))
            return r;
        if (record_is(r, "agent-start") && r->t_ns > a->exit_ns)
            return NULL;
    }
    return NULL;
}

/* A node that was killed or switched off took everything with it. */
static bool node_went_with_it(const struct history *h, const struct agent_end *a) {
    history_each(r, h) {
        if (r->source == SOURCE_HARNESS && record_is(r, "node-down") && str_eq(r->node, a->node) &&
            r->t_ns >= a->start_ns)
            return !str_eq(record_text(r, "why"), "end");
    }
    return false;
}

/* Python gives its objects such names, and takes them away when a process of its own ends in order;
 * who is killed cannot, and its helper that would is ended with it. */
static bool is_of_python(const char *path) {
    static const char *const names[] = {"/dev/shm/sem.mp-", "/dev/shm/sem.loky-", "/dev/shm/psm_",
                                        "/dev/shm/torch_"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (str_starts(path, names[i]))
            return true;
    return false;
}

static bool lists(const struct json *list, const char *text) {
    json_each(it, list) if (*text && str_eq(json_string(it, ""), text)) return true;
    return false;
}

/* Who a fault has ended had it; NULL: nobody that was seen. */
static const struct record *killed_owner(const struct history *h, const struct record *count,
                                         const char *id) {
    history_each(r, h) {
        if (r->source == SOURCE_KERNEL && record_is(r, "shared-memory") &&
            str_eq(r->node, count->node) && r->t_ns <= count->t_ns &&
            lists(record_get(r, "held"), id))
            return r;
    }
    return NULL;
}

/* The first object that is nobody's any more though nobody was kept from taking it away; of the others
 * the first and its owner. */
static const char *first_shm(const struct history *h, const struct record *count,
                             const char **ret_pardoned, const struct record **ret_owner) {
    const struct json *id = json_first(record_get(count, "shm_ids"));
    json_each(it, record_get(count, "shm")) {
        const char *path = json_string(it, "?");
        const struct record *owner =
            is_of_python(path) ? killed_owner(h, count, json_string(id, "")) : NULL;
        if (!owner)
            return path;
        *ret_pardoned = *ret_owner ? *ret_pardoned : path;
        *ret_owner = *ret_owner ? *ret_owner : owner;
        id = id ? id->next : NULL;
    }
    return NULL;
}

/* What was left, "" when nothing was. */
static void describe(char *out, size_t size, const struct record *count, const char *shm) {
    const struct json *processes = record_get(count, "processes"), *first;
    if ((first = json_first(processes))) {
        snprintf(out, size, "%zu process%s (%lld %s)", processes->length,
                 processes->length == 1 ? "" : "es", (long long)json_get_i64(first, "pid", 0),
                 json_get_string(first, "name", "?"));
    } else if ((first = json_first(record_get(count, "ports")))) {
        snprintf(out, size, "port %lld still open", (long long)json_i64(first, 0));
    } else if (shm) { /* a path, or it says itself what it is */
        snprintf(out, size, "%s%s", *shm == '/' ? "shared memory " : "", shm);
    } else {
        first = json_first(record_get(count, "cgroups"));
        snprintf(out, size, "%s%s", first ? "cgroup " : "", json_string(first, ""));
    }
}

/* torchrun ends its workers, not what they have started, and nothing where its agent was killed. */
static bool is_promised(const struct trial *t, const struct agent_end *a) {
    for (size_t i = 0; check_by_torchrun(t->scenario) && i < t->incidents->n; i++)
        if (t->incidents->v[i]->in_force && t->incidents->v[i]->t0_ns <= a->exit_ns)
            return false;
    return true;
}

static void judge_agent(const struct trial *t, struct finding *f, const struct agent_end *a) {
    const struct record *count = count_after(t->history, a);
    const char *pardoned = NULL;
    const struct record *owner = NULL;
    char left[150];
    if (count) {
        describe(left, sizeof(left), count, first_shm(t->history, count, &pardoned, &owner));
        if (!*left && owner && f->status == FINDING_PASS) {
            finding_pass(f,
                         "nothing but Python's %s on %s, which process %lld had when %s ended it: "
                         "who is killed takes nothing away",
                         pardoned, a->node, (long long)owner->pid, record_text(owner, "id"));
            finding_prove(f, owner->seq, count->seq);
        }
        if (!*left)
            return;
        if (!is_promised(t, a)) {
            finding_skip(f, "on %s: %s; after a fault torchrun promises nothing about that",
                         a->node, left);
            return;
        }
        finding_fail(f, broken,
                     "no process, port, shared memory, semaphore, queue or cgroup in the node",
                     "on %s: %s", a->node, left);
        finding_prove(f, count->seq);
    } else if (!node_went_with_it(t->history, a) && f->status != FINDING_UNKNOWN) {
        finding_unknown(f, broken, "%s was not looked at after its agent ended", a->node);
        finding_prove(f, a->seq);
    }
}

/* One that nobody was seen in, found on the host when all nodes were down. The harness makes none,
 * so it is the launcher's or the job's, or another program's of this user in the same moments. */
static void judge_cgroups(const struct trial *t, struct finding *f) {
    const struct record *health = history_newest(t->history, SOURCE_HARNESS, "health");
    json_each(it, health ? record_get(health, "left") : NULL) {
        const char *what = json_string(it, "");
        if (!str_starts(what, "the cgroup "))
            continue;
        if (check_by_torchrun(t->scenario) && t->incidents->n)
            finding_skip(f, "%s: after a fault torchrun promises nothing about that", what);
        else
            finding_fail(f, broken, "no cgroup that outlives the agents",
                         "%s, by launcher or job: nobody was seen in it (rmdir takes it away)",
                         what);
        finding_prove(f, health->seq);
        return;
    }
}

static bool judge(const struct trial *t, struct finding *f) {
    size_t n, ended = 0;
    const struct agent_end *agents = check_agents(t, &n);
    for (size_t i = 0; i < n; i++)
        ended += agents[i].exit_ns != 0;
    if (ended)
        finding_pass(f, "nothing was left in the nodes of %zu agent%s that ended", ended,
                     ended == 1 ? "" : "s");
    else
        finding_unknown(f, broken, "no agent was seen to end");
    for (size_t i = 0; i < n && f->status != FINDING_FAIL; i++)
        if (agents[i].exit_ns)
            judge_agent(t, f, &agents[i]);
    if (f->status == FINDING_PASS)
        judge_cgroups(t, f);
    return f->status == FINDING_PASS;
}

const struct check check_leftovers = {
    .name = "leftovers",
    .summary = "no process, port, shared memory, semaphore, queue or cgroup outlives its agent",
    .text =
        "The harness counts inside the node, after the agent has ended (also when it was "
        "killed) and before the node is taken down. A training process that lives on holds its "
        "accelerators and writes into the next job's checkpoints. System V's segments, "
        "semaphores and message queues are counted where a node has an IPC namespace of its "
        "own: where nodes are processes nobody can tell whose they are. Python's own semaphores "
        "and shared memory (sem.mp-*, psm_*, torch_*) are taken away by who made them; where a "
        "fault has ended a process that had them, which is looked up before, they are named and "
        "do not count. A cgroup counts where "
        "a process that was left is in it, and, once all nodes are down, where it lies below "
        "the harness's own, was not there before the run, is the same user's and holds nobody: "
        "the harness makes none.",
    .example = "rankquake run scenarios/restart/agent-killed.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(KERNEL),
    .judge = judge,
};
