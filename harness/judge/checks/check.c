#include "harness/judge/checks/check.h"

#include "base/str.h"
#include "harness/history/clocks.h"
#include "faults/effect.h"
#include "harness/judge/checks/lags.h"

#include <string.h>

bool check_sees_rounds(const struct trial *t, struct finding *f) {
    if (t->rounds->n)
        return true;
    if (t->scenario->expect.outcome == OUTCOME_SUCCEEDED)
        return finding_unknown(
            f, "No worker was seen to start, so nothing is known about the workers.",
            "no worker-start from rankprobe");
    return finding_skip(f, "no worker started, so there is nothing to judge");
}

bool check_unknown_exit(const struct trial *t, struct finding *f, const char *broken,
                        const struct worker *w) {
    const struct record *run = history_newest(t->history, SOURCE_HARNESS, "run");
    const char *way = run ? record_text(run, "exits") : "";
    if (str_eq(way, "zombie"))
        return finding_unknown(
            f, broken,
            "how rank %d on %s ended was told to its parent alone: on Linux before "
            "6.15 (this is %s) only root can see it, and not in a container",
            w->rank, w->node, record_text(run, "kernel"));
    if (str_eq(way, "events"))
        return finding_unknown(
            f, broken,
            "the kernel's word of how rank %d on %s ended was lost: too many processes "
            "ended at once on this host; run again",
            w->rank, w->node);
    return finding_unknown(f, broken, "the kernel did not tell how rank %d on %s ended", w->rank,
                           w->node);
}

/* When it was undone; INT64_MAX: it was not. What does not last is undone by nobody: what it has done
 * lies there from its moment on. */
static int64_t undone_ns(const struct history *h, const struct record *in_force, unsigned effects) {
    const char *id = record_text(in_force, "id");
    int64_t n = record_i64(in_force, "n", 0);
    if (!(effects & EFFECT_LASTING))
        return in_force->t_ns;
    history_each(r, h) if (r->seq > in_force->seq && record_is(r, "fault-recovered") &&
                           record_i64(r, "n", 0) == n &&
                           str_eq(record_text(r, "id"), id)) return r->t_ns;
    return INT64_MAX;
}

const struct record *check_disk_fault(const struct trial *t, int64_t from_ns, int64_t to_ns) {
    const struct record *found = NULL;
    history_each(r, t->history) {
        if (r->source != SOURCE_HARNESS || !record_is(r, "fault-in-force") || r->t_ns > to_ns)
            continue;
        unsigned effects = effects_take(record_get(r, "effects"));
        if (effects & EFFECT_DAMAGES_DISK && undone_ns(t->history, r, effects) >= from_ns)
            found = r;
    }
    return found;
}

static const int64_t second_ns = 1000000000;

const struct record *check_said_fenced(const struct history *h, const char *node, int64_t from_ns,
                                       int64_t to_ns) {
    history_each(r, h) {
        const char *what = record_text(r, "what");
        if (r->source == SOURCE_LAUNCHER && record_is(r, "launcher") &&
            (!node || str_eq(r->node, node)) && (str_eq(what, "fenced") || str_eq(what, "lost")) &&
            r->t_ns >= from_ns && r->t_ns <= to_ns + second_ns)
            return r;
    }
    return NULL;
}

/* --rdzv-conf of rankrun: how long an agent's last word counts. */
static int64_t fence_ns(const struct job_spec *job) {
    const char *profile = job_rdzv_conf(job, "profile"), *fence = job_rdzv_conf(job, "fence");
    int64_t ns = profile && str_eq(profile, "fast") ? 600000000 : 5400000000;
    if (fence)
        str_to_duration_ns(fence, &ns, NULL);
    return ns;
}

/* A beat and what answers it wait for the agent, the wire, the store, the wire and the agent again,
 * each of them as long as the harness may have, and longer. */
enum { WAITS = 10 };

bool check_may_be_fenced(const struct trial *t, const struct round *r, const struct worker *w,
                         int64_t by_ns) {
    int64_t fence = fence_ns(&t->scenario->job), ended_ns = by_ns;
    if (t->scenario->torchrun_semantics || check_template(t))
        return false;
    for (size_t i = 0; i < r->n; i++)
        if ((!w || w == r->workers[i]) && r->workers[i]->exit_ns &&
            r->workers[i]->exit_ns < ended_ns)
            ended_ns = r->workers[i]->exit_ns;
    /* When it began every agent had been heard a moment before. */
    if (fence <= 0 || by_ns - r->first_start_ns < fence - fence / 4)
        return false;
    int64_t from_ns = ended_ns / 2 > fence ? ended_ns - 2 * fence : 0;
    from_ns = from_ns > r->first_start_ns ? from_ns : r->first_start_ns;
    return lags_most_ns(t->lags, from_ns, by_ns) > fence / WAITS;
}

bool check_output_has_gaps(const struct history *h) {
    const struct record *o = history_newest(h, SOURCE_HARNESS, "observed");
    return !o || record_i64(o, "skipped_bytes", 0) || record_i64(o, "thinned", 0);
}

bool check_template(const struct trial *t) {
    return str_eq(t->scenario->job.launcher, "template");
}

const char *check_no_checkpoints(const struct scenario *s) {
    const char *dir = s->job.checkpoint_dir;
    return !dir || strstr(dir, "{disk}") || strstr(dir, "{tmp}") || strstr(dir, "{node}")
               ? "the scenario names no directory of checkpoints that all nodes share"
               : NULL;
}

const struct record *check_commit_before(const struct trial *t, int64_t seq) {
    const struct record *newest = NULL;
    history_each(r, t->history) {
        if (r->seq >= seq)
            break;
        if (r->source == SOURCE_JOB && record_is(r, "checkpoint-commit"))
            newest = r;
    }
    return newest;
}

bool check_knows_checkpoints(const struct trial *t) {
    if (t->scenario->job.checkpoint_complete)
        return true;
    history_each(r, t->history) {
        if (r->source == SOURCE_DISK && record_is(r, "checkpoints") &&
            (json_first(record_get(r, "complete")) || json_first(record_get(r, "damaged"))))
            return true;
    }
    return false;
}

/* ---- what a launcher gives its workers ---- */

int64_t check_grace_ns(const struct scenario *s, bool after_failure) {
    const struct job_spec *job = &s->job;
    const int64_t second = 1000000000;
    const char *said = job_rdzv_conf(job, "stop_timeout");
    int64_t short_ns = 2 * second;
    if (said && str_to_duration_ns(said, &short_ns, NULL) < 0)
        return -1;
    if (scenario_gives_launcher(s, "--shutdown-timeout") || str_eq(job->launcher, "template"))
        return -1;
    return after_failure && !check_by_torchrun(s) ? short_ns : 30 * second;
}

/* ---- times between two hosts ---- */

int64_t check_off_ns(const struct worker *ended, const struct worker *w, enum worker_moment m) {
    return str_eq(ended->node, w->node) ? 0 : ended->bound_ns[WORKER_ENDS] + w->bound_ns[m];
}

const char *check_off_text(char *out, size_t size, const struct worker *ended,
                           const struct worker *w, enum worker_moment m) {
    return clocks_text(out, size, check_off_ns(ended, w, m), false);
}

/* ---- agents ---- */

static void note_end(struct agent_end *v, size_t n, const struct record *r) {
    for (size_t i = n; i-- > 0;)
        if (v[i].pid == r->pid && str_eq(v[i].node, r->node) && !v[i].exit_ns) {
            v[i].exit_ns = r->t_ns;
            v[i].code = (int)record_i64(r, "code", 0);
            v[i].signal = (int)record_i64(r, "signal", 0);
            v[i].seq = r->seq;
            return;
        }
}

/* The fault must have fired while the agent lived; that it came in force says that it took it. */
static void note_fault(struct agent_end *a, const struct incidents *is) {
    for (size_t i = 0; i < is->n; i++) {
        const struct incident *f = is->v[i];
        if (!incident_has(f, EFFECTS_TAKE_AGENT) || !f->in_force || f->t0_ns < a->start_ns ||
            (a->exit_ns && f->fired_ns > a->exit_ns))
            continue;
        for (size_t k = 0; k < f->targets_n; k++)
            if (str_eq(f->targets[k].node, a->node)) {
                a->fault_id = f->id;
                a->told_to_leave = incident_has(f, EFFECT_ASKS_TO_LEAVE) ? f->leave_signal : 0;
            }
    }
}

static bool had_workers(const struct trial *t, const struct agent_end *a) {
    for (size_t i = 0; i < t->rounds->workers_n; i++) {
        const struct worker *w = t->rounds->workers[i];
        if (str_eq(w->node, a->node) && w->start_ns >= a->start_ns &&
            (!a->exit_ns || w->start_ns <= a->exit_ns))
            return true;
    }
    return false;
}

/* --rdzv-conf of rankrun: for how long a store may be silent. */
static int64_t give_up_ns(const struct job_spec *job) {
    const char *said = job_rdzv_conf(job, "give_up");
    int64_t ns = 300 * second_ns;
    if (said)
        str_to_duration_ns(said, &ns, NULL);
    return ns;
}

/* Whether it was felt, on the wire, is asked by `fired`: not every check sees that. */
static bool keeps_from_store(const struct incident *i, const char *node) {
    return i->in_force && check_names_node(i, node) &&
           incident_has(i, EFFECT_PARTS_NETWORK | EFFECT_ENDS_STORE | EFFECT_HINDERS_STORE);
}

/* The first of the faults that kept an agent from the store until it ended, without a gap. */
static const struct incident *find_cut(const struct agent_end *a, const struct incidents *is) {
    const struct incident *first = NULL;
    for (bool more = true; more;) {
        int64_t since_ns = first ? first->t0_ns : a->exit_ns;
        more = false;
        for (size_t i = 0; i < is->n; i++) {
            const struct incident *f = is->v[i];
            if (keeps_from_store(f, a->node) && f->t0_ns < since_ns &&
                (!f->recovered || f->recovered_ns >= since_ns)) {
                first = f;
                since_ns = f->t0_ns;
                more = true;
            }
        }
    }
    return first;
}

/* Who was kept from the store for so long cannot know how the job ends, and says so. It has had the
 * last answer some time before. */
static void note_cut(struct agent_end *a, const struct trial *t) {
    int64_t least_ns = give_up_ns(&t->scenario->job) / 4 * 3;
    if (a->fault_id || a->code != CHECK_EXIT_UNKNOWN)
        return;
    const struct incident *cut = find_cut(a, t->incidents);
    if (cut && a->exit_ns - cut->t0_ns >= least_ns)
        a->fault_id = cut->id;
}

struct agent_end *check_agents(const struct trial *t, size_t *ret_n) {
    enum { AGENTS_MAX = 1024 };
    struct agent_end *ret = arena_array(t->arena, struct agent_end, AGENTS_MAX);
    size_t n = 0;
    history_each(r, t->history) {
        if (r->source != SOURCE_KERNEL)
            continue;
        if (record_is(r, "agent-start") && n < AGENTS_MAX)
            ret[n++] = (struct agent_end){
                .node = r->node, .pid = r->pid, .start_ns = r->t_ns, .seq = r->seq};
        else if (record_is(r, "agent-exit"))
            note_end(ret, n, r);
    }
    for (size_t i = 0; i < n; i++) {
        note_fault(&ret[i], t->incidents);
        note_cut(&ret[i], t);
        if (check_template(t) && ret[i].code)
            ret[i].code = 1;
        ret[i].spare = check_by_torchrun(t->scenario) && t->rounds->n && !had_workers(t, &ret[i]);
    }
    *ret_n = n;
    return ret;
}

bool check_refused(const struct trial *t, const struct agent_end *a) {
    bool ours = str_eq(t->scenario->job.launcher, "rankrun");
    return a->exit_ns && !a->signal && !a->fault_id &&
           (ours ? a->code == CHECK_EXIT_REFUSED : a->code != 0);
}

struct agent_moves check_agent_moves(const struct trial *t) {
    struct agent_moves m = {0};
    history_each(r, t->history) m.n +=
        r->source == SOURCE_KERNEL && (record_is(r, "agent-start") || record_is(r, "agent-exit"));
    m.v = arena_array(t->arena, struct agent_move, m.n + 1);
    m.n = 0;
    history_each(r, t->history) {
        bool came = record_is(r, "agent-start");
        if (r->source == SOURCE_KERNEL && (came || record_is(r, "agent-exit")))
            m.v[m.n++] = (struct agent_move){r->t_ns, came};
    }
    return m;
}

/* ---- what torchrun does not promise ---- */

bool check_by_torchrun(const struct scenario *s) {
    bool legacy = s->job.rdzv_backend && str_eq(s->job.rdzv_backend, "etcd");
    return s->torchrun_semantics && !(legacy && str_eq(s->job.launcher, "rankrun"));
}

bool check_names_node(const struct incident *i, const char *node) {
    for (size_t k = 0; k < i->targets_n; k++)
        if (!str_eq(i->targets[k].what, "worker") &&
            (str_eq(i->targets[k].node, node) || str_eq(i->targets[k].what, "store") ||
             strchr(i->targets[k].name, '|')))
            return true; /* groups, n0|n1, leave nobody out */
    return false;
}

bool check_took_store(const struct trial *t, const struct incident *i) {
    const char *host = scenario_store_host(t->scenario);
    for (size_t k = 0; host && incident_has(i, EFFECTS_TAKE_AGENT) && k < i->targets_n; k++)
        if (str_eq(i->targets[k].node, host))
            return true;
    return incident_has(i, EFFECTS_TAKE_AGENT | EFFECT_ENDS_STORE) && incident_hits_store(i);
}

const struct incident *check_forsaken(const struct trial *t, const char *node, int64_t by_ns) {
    for (size_t k = 0; check_by_torchrun(t->scenario) && k < t->incidents->n; k++) {
        const struct incident *i = t->incidents->v[k];
        if (i->in_force && i->t0_ns <= by_ns && check_names_node(i, node))
            return i;
    }
    return NULL;
}
