/* Asks how workers were told to end: which signals reached whom, and when. */
#include "harness/judge/checks/check.h"
#include "harness/judge/checks/lags.h"
#include "harness/judge/checks/spans.h"

#include "base/str.h"

#include <signal.h>

static const char broken[] =
    "Stop signals: a worker that must end is asked, with all of its process group, and ended by "
    "force when its time is up.";

/* For all of a group to be told, and from the end of the time to SIGKILL, on an idle machine. */
static const int64_t SLACK_NS = 1000000000;

struct stops {
    const struct trial *t;
    struct moments signals, groups, agents;
    int told, killed; /* workers */
};

/* What was told to one worker. */
struct stop {
    const struct worker *worker;
    const struct record *asked, *killed; /* the launcher's first signal to end, its first SIGKILL */
};

static bool is_signal(const struct record *r) {
    return r->source == SOURCE_KERNEL && record_is(r, "signal");
}

static bool is_group(const struct record *r) {
    return r->source == SOURCE_KERNEL && record_is(r, "signal-group");
}

static bool is_agent(const struct record *r) {
    return r->source == SOURCE_KERNEL &&
           (record_is(r, "agent-exit") || record_is(r, "agent-start"));
}

static bool asks_to_end(int64_t signo) {
    return signo == SIGTERM || signo == SIGINT || signo == SIGHUP || signo == SIGQUIT;
}

static int64_t last_ns(const struct worker *w) {
    return w->exit_ns ? w->exit_ns : INT64_MAX;
}

static int64_t lag_ns(const struct stops *s, int64_t from_ns, int64_t to_ns) {
    return 2 * lags_most_ns(s->t->lags, from_ns, to_ns);
}

static void keep_first(const struct record **ret, const struct record *r) {
    if (!*ret || r->t_ns < (*ret)->t_ns)
        *ret = r;
}

/* Whatever of its group the launcher has told counts: nobody is told alone. */
static struct stop stop_of(const struct stops *s, const struct worker *w) {
    struct stop stop = {.worker = w};
    const struct record *r;
    for (size_t i = 0; (r = moments_next(&s->signals, &i, w->start_ns, last_ns(w)));) {
        int64_t signo = record_i64(r, "signal", 0);
        if (record_i64(r, "worker", 0) != w->pid || !str_eq(record_text(r, "who"), "launcher"))
            continue;
        if (asks_to_end(signo))
            keep_first(&stop.asked, r);
        else if (signo == SIGKILL && r->pid == w->pid)
            keep_first(&stop.killed, r);
    }
    return stop;
}

/* The signal came to that process between these moments. */
static bool was_sent(const struct stops *s, int64_t pid, int64_t signo, int64_t from_ns,
                     int64_t to_ns) {
    const struct record *r;
    for (size_t i = 0; (r = moments_next(&s->signals, &i, from_ns, to_ns));)
        if (r->pid == pid && record_i64(r, "signal", 0) == signo)
            return true;
    return false;
}

static int64_t heard_by_ns(const struct stops *s, const struct stop *stop) {
    int64_t from = stop->asked->t_ns;
    return from + SLACK_NS + lag_ns(s, from, from + SLACK_NS);
}

/* One that hears of it later, when its launcher repeats itself, was not told in time. */
static bool heard(const struct stops *s, const struct stop *stop, int64_t pid) {
    int64_t from = stop->asked->t_ns - SLACK_NS;
    int64_t signo = record_i64(stop->asked, "signal", 0);
    return was_sent(s, pid, signo, from, heard_by_ns(s, stop)) ||
           was_sent(s, pid, SIGKILL, from, heard_by_ns(s, stop));
}

static bool judge_group(const struct stops *s, struct finding *f, const struct stop *stop) {
    const struct worker *w = stop->worker;
    const struct record *r;
    if (!heard(s, stop, w->pid) && last_ns(w) > heard_by_ns(s, stop))
        return finding_fail(
            f, broken, "the worker itself is told",
            "something of its group was told to end, and rank %d on %s of round %d never", w->rank,
            w->node, w->round);
    for (size_t i = 0;
         (r = moments_next(&s->groups, &i, stop->asked->t_ns, heard_by_ns(s, stop)));) {
        const struct json *members = r->pid == w->pid ? record_get(r, "members") : NULL;
        json_each(m, members) {
            int64_t pid = json_get_i64(m, "pid", 0);
            if (heard(s, stop, pid))
                continue;
            finding_prove(f, stop->asked->seq, r->seq);
            return finding_fail(f, broken, "every process of the worker's group is told",
                                "process %lld (%s) of the group of rank %d on %s of round %d was "
                                "never told to end",
                                (long long)pid, json_get_string(m, "name", ""), w->rank, w->node,
                                w->round);
        }
    }
    return true;
}

/* Whether it stood still when it was told, by what it had been sent. */
static const struct record *stopped_by(const struct stops *s, const struct stop *stop) {
    const struct record *r, *last = NULL;
    const struct worker *w = stop->worker;
    for (size_t i = 0; (r = moments_next(&s->signals, &i, w->start_ns, stop->asked->t_ns));) {
        int64_t signo = record_i64(r, "signal", 0);
        bool counts = signo == SIGSTOP || signo == SIGCONT;
        if (r->pid == w->pid && counts && (!last || r->t_ns >= last->t_ns))
            last = r;
    }
    return last && record_i64(last, "signal", 0) == SIGSTOP ? last : NULL;
}

static bool judge_stopped(const struct stops *s, struct finding *f, const struct stop *stop) {
    const struct worker *w = stop->worker;
    const struct record *by = stopped_by(s, stop);
    int64_t until = heard_by_ns(s, stop);
    if (!by || last_ns(w) <= until || was_sent(s, w->pid, SIGCONT, by->t_ns, until))
        return true;
    finding_prove(f, by->seq, stop->asked->seq);
    return finding_fail(f, broken, "SIGCONT for a worker that stands still, so that it can obey",
                        "rank %d on %s of round %d was stopped, and told to end without SIGCONT",
                        w->rank, w->node, w->round);
}

/* ---- the times ---- */

static bool reaches_beyond_workers(const struct incident *in) {
    for (size_t k = 0; k < in->targets_n; k++)
        if (!str_eq(in->targets[k].what, "worker"))
            return true;
    return in->targets_n == 0;
}

/* By the kernel where a signal ended it; of any other end we may hear late. */
static int64_t failed_by_ns(const struct stops *s, const struct worker *w, int64_t at_ns) {
    if (w->exit_signal && was_sent(s, w->pid, w->exit_signal, w->start_ns, at_ns))
        return at_ns;
    return w->exit_ns - lag_ns(s, at_ns, w->exit_ns);
}

/* Nothing but a worker's failure was wrong by then, which nobody had asked for: then its launcher's
 * short time holds, and nothing else is a reason to end anybody. */
static bool only_failed(const struct stops *s, const struct stop *stop, int64_t to_ns) {
    const struct round *r = s->t->rounds->v[stop->worker->round - 1];
    const struct worker *failed = round_failed(r);
    const struct incidents *is = s->t->incidents;
    size_t at = 0;
    if (!failed || failed == stop->worker || stop_of(s, failed).asked)
        return false;
    /* Over torchelastic's protocol other agents are not told why they begin anew. */
    if (s->t->scenario->torchrun_semantics && !str_eq(failed->node, stop->worker->node))
        return false;
    if (failed_by_ns(s, failed, stop->asked->t_ns) > stop->asked->t_ns)
        return false;
    for (size_t i = 0; i < is->n; i++)
        if (is->v[i]->fired && is->v[i]->fired_ns <= to_ns && reaches_beyond_workers(is->v[i]))
            return false;
    return !moments_next(&s->agents, &at, r->first_start_ns, stop->asked->t_ns) &&
           !check_may_be_fenced(s->t, r, stop->worker, to_ns) &&
           !check_said_fenced(s->t->history, stop->worker->node, stop->worker->start_ns, to_ns);
}

static bool judge_times(struct stops *s, struct finding *f, const struct stop *stop,
                        int64_t seen_ns) {
    const struct worker *w = stop->worker;
    int64_t grace = check_grace_ns(s->t->scenario, true), from = stop->asked->t_ns;
    int64_t until = w->exit_ns && w->exit_ns < seen_ns ? w->exit_ns : seen_ns;
    int64_t killed = stop->killed ? stop->killed->t_ns : until, had = killed - from;
    if (grace < 0 || !only_failed(s, stop, killed))
        return true;
    s->killed += stop->killed != NULL;
    finding_prove(f, stop->asked->seq, stop->killed ? stop->killed->seq : w->exit_seq);
    const char *expected = finding_expected(
        f, "SIGKILL %g s after the signal to end, if it lives then", (double)grace / 1e9);
    if (stop->killed && had < grace - grace / 10)
        return finding_fail(f, broken, expected,
                            "rank %d on %s of round %d was killed %.0f ms after it was told",
                            w->rank, w->node, w->round, (double)had / 1e6);
    if (had > grace + SLACK_NS + lag_ns(s, from, killed))
        return finding_fail(f, broken, expected,
                            "rank %d on %s of round %d was told to end and %s %.1f s later",
                            w->rank, w->node, w->round,
                            stop->killed ? "killed only" : "still alive", (double)had / 1e9);
    return true;
}

/* An agent that is told to leave by another signal passes that one on. */
static bool judge_signal(const struct stops *s, struct finding *f, const struct stop *stop) {
    const struct worker *w = stop->worker;
    int signo = (int)record_i64(stop->asked, "signal", 0);
    if (signo == SIGTERM || !only_failed(s, stop, stop->asked->t_ns))
        return true;
    finding_prove(f, stop->asked->seq);
    return finding_fail(f, broken, "SIGTERM", "rank %d on %s of round %d was told by signal %d",
                        w->rank, w->node, w->round, signo);
}

static bool judge_worker(struct stops *s, struct finding *f, const struct worker *w,
                         int64_t seen_ns) {
    struct stop stop = stop_of(s, w);
    if (!stop.asked || stop.asked->t_ns >= seen_ns)
        return true;
    s->told++;
    return judge_signal(s, f, &stop) && judge_group(s, f, &stop) && judge_stopped(s, f, &stop) &&
           judge_times(s, f, &stop, seen_ns);
}

static const char *idle(const struct scenario *s) {
    return check_by_torchrun(s) || str_eq(s->job.launcher, "template")
               ? "this launcher does not promise which signals its workers get"
               : NULL;
}

static bool judge(const struct trial *t, struct finding *f) {
    struct stops s = {.t = t};
    const struct record *told = history_newest(t->history, SOURCE_HARNESS, "signals");
    const struct record *end = history_newest(t->history, SOURCE_HARNESS, "job-end");
    const struct json *seen = told ? record_get(told, "seen") : NULL;
    if (!check_sees_rounds(t, f))
        return false;
    if (!seen || seen->type != JSON_BOOL || !seen->boolean)
        return finding_skip(f, "%s",
                            told ? record_text(told, "why") : "nobody has recorded signals");
    moments_init(&s.signals, t->arena, t->history, is_signal);
    moments_init(&s.groups, t->arena, t->history, is_group);
    moments_init(&s.agents, t->arena, t->history, is_agent);
    int64_t seen_ns = end             ? end->t_ns
                      : t->history->n ? t->history->records[t->history->n - 1]->t_ns
                                      : 0;
    for (size_t i = 0; i < t->rounds->workers_n; i++)
        if (!judge_worker(&s, f, t->rounds->workers[i], seen_ns))
            return false;
    if (s.told == 0)
        return finding_skip(f, "no worker was told to end");
    return finding_pass(f, "%d worker%s told to end, with all of the group; %d killed in time",
                        s.told, s.told == 1 ? " was" : "s were", s.killed);
}

const struct check check_stop_signals = {
    .name = "stop_signals",
    .summary = "a worker that must end is asked with all of its group, and killed in time",
    .text =
        "The kernel tells the harness of every signal that reaches a worker or a process of the "
        "group that it leads. When the launcher tells one to end (SIGTERM), all that were in its "
        "group must hear it within 1 s; a worker that was stopped gets SIGCONT besides. After a "
        "failure, where nothing else was wrong, SIGKILL comes when the launcher's time for its "
        "workers is over: not a tenth before, and no more than 1 s, and twice what the harness was "
        "late, behind it. The kernel tells root alone, and not in containers that have a pid "
        "namespace: elsewhere this is skipped. So it is where torchrun or a template launches.",
    .example = "rankquake run scenarios/restart/worker-hangs.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(KERNEL) | SOURCES(PROBE) | SOURCES(WIRE) | SOURCES(LAUNCHER),
    .not_applicable = idle,
    .judge = judge,
};
