/* What the judge can see of a simulated run, and what comes of what it says. */
#include "base/mem.h"
#include "harness/sim/simulation.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void sim_violation(struct sim *c, const char *fmt, ...) {
    va_list ap;
    if (c->result->violated)
        return;
    c->result->violated = true;
    c->result->ended_ns = c->now_ns;
    va_start(ap, fmt);
    vsnprintf(c->result->text, sizeof(c->result->text), fmt, ap);
    va_end(ap);
}

static void on_broken(void *world, const char *text) {
    sim_violation(world, "%s", text);
}

static void say_round(struct sim *c) {
    const struct traffic *t = &c->traffic;
    sim_say(c, 0,
            "ROUND %lld runs with %d nodes: %lld store operations, %lld messages, %lld watch "
            "events, %lld bytes",
            (long long)c->judge.head.round, c->judge.n_form, (long long)t->operations,
            (long long)t->messages, (long long)t->events, (long long)t->bytes);
    c->traffic = (struct traffic){0};
    if (!c->result->rounds++)
        c->result->steady_ns = c->now_ns;
}

static void on_head(void *world, const struct head_change *h) {
    struct sim *c = world;
    sim_mark_head(c, h);
    if (h->to->phase == HEAD_RUN)
        say_round(c);
}

static const char *session(const void *world, int node) {
    const struct sim *c = world;
    return c->nodes[node].core ? rendezvous_uid(c->nodes[node].core) : NULL;
}

/* In the trouble; or right after it, or when it has just woken: then it has not had the time to
 * hear the store. Or it has given up before, and its workers could not be reaped until now. */
static bool may_give_up(const void *world, int node) {
    const struct sim *c = world;
    const struct sim_node *n = &c->nodes[node];
    int64_t from_ns = c->now_ns - 1000 * SIM_MS - 3 * c->judge.job.timing.hb_ns;
    return !c->calm_now || from_ns < c->schedule->trouble_ns ||
           from_ns < n->shown.stopped_until_ns || from_ns < n->stuck_until_ns;
}

/* Messages are lost for as long as there is trouble, and what is late then comes afterwards; else it is what has struck, and how long that
 * lasts: stops and stalls outlast the trouble. */
static int64_t quiet_ns(const void *world) {
    const struct sim *c = world;
    int64_t from_ns = c->schedule->loss ? c->schedule->trouble_ns : 0;
    if (c->schedule->late)
        from_ns = c->schedule->trouble_ns + c->judge.job.unseen_ns;
    int64_t struck_ns = c->times.struck_until_ns;
    return struck_ns > from_ns ? struck_ns : from_ns;
}

static bool fence_passed(const void *world, int node) {
    const struct sim *c = world;
    const struct sim_node *n = &c->nodes[node];
    return n->fence_ns <= sim_node_now(c, n).boottime_ns;
}

/* The profile's timing, and what else the seed says of its job. */
static void job_init(const char *run_id, const struct sim_schedule *s, const struct sim_terms *t,
                     struct judged_job *job) {
    *job = (struct judged_job){.run_id = run_id,
                               .min = s->min,
                               .max = s->max,
                               .max_restarts = s->max_restarts,
                               .max_free_rounds = t->max_free_rounds,
                               .gang = s->gang,
                               .seated = s->seated,
                               .hosted = s->hosted,
                               .kept = true,
                               .unseen_ns = (s->late ? 5000 : 1000) * SIM_MS,
                               .last_call_ns = t->last_call_ns,
                               .join_timeout_ns = t->join_timeout_ns,
                               .give_up_ns = t->give_up_ns,
                               .admit_ns = SIM_ADMIT_NS,
                               .stop_timeout_ns = SIM_STOP_TIMEOUT_NS,
                               .shutdown_grace_ns = SIM_GRACE_NS};
    job->hb_ns = (s->usual ? 500 : 150) * SIM_MS; /* as the protocol has it */
    if (t->count_by_node)
        job->restart_mode = RESTART_COUNT_NODE;
    timing_profile(s->usual ? "default" : "fast", &job->timing);
    timing_stretch(&job->timing, s->max, TIMING_EMBEDDED);
}

void sim_judge_init(struct sim *c, const struct sim_terms *terms) {
    static const struct judge_ops ops = {.broken = on_broken,
                                         .head = on_head,
                                         .session = session,
                                         .may_give_up = may_give_up,
                                         .quiet_ns = quiet_ns,
                                         .fence_passed = fence_passed};
    const struct sim_schedule *s = c->schedule;
    struct judge *j = &c->judge;
    *j = (struct judge){.ops = &ops,
                        .world = c,
                        .kv = c->store->kv,
                        .nodes = c->nodes,
                        .node_size = sizeof(*c->nodes),
                        .n_nodes = c->n_nodes,
                        .times = &c->times,
                        .last = mem_array(struct judged_member, (size_t)c->n_nodes),
                        .form = mem_array(struct judged_member, (size_t)c->n_nodes),
                        .ranks = mem_array(bool, (size_t)c->n_nodes *SIM_WORKERS),
                        .n_ranks = c->n_nodes * SIM_WORKERS};
    c->times.healed_ns = s->calm ? s->trouble_ns : INT64_MAX;
    job_init(c->run_id, s, terms, &j->job);
}

void sim_judge_fini(struct sim *c) {
    c->result->risked |= c->judge.risked;
    free(c->judge.last);
    free(c->judge.form);
    free(c->judge.ranks);
    judge_fini(&c->judge);
}

void sim_judge_txn(struct sim *c, const char *uid, const struct op *ops, size_t n) {
    sim_mark_txn(c, uid, ops, n);
    judge_txn(&c->judge, uid, ops, n);
}

void sim_judge_exit(struct sim *c, int node, int code) {
    sim_mark_if(c, SIM_MARK_STORE_FULL_LONG, code == 69 && c->nodes[node].shown.denied_ns);
    sim_mark_if(c, SIM_MARK_AGENT_STUCK, judge_waits_for_workers(&c->judge, node));
    judge_exit(&c->judge, node, code);
}

void sim_judge_stop(struct sim *c, int node, const struct action *a) {
    struct judged_stop s = {.fenced = fence_passed(c, node), .kill = a->kind == ACTION_KILL};
    if (!s.kill) {
        s.signo = a->stop.signo;
        s.grace_ns = a->stop.grace_ms * SIM_MS;
    }
    judge_stop(&c->judge, node, &s);
}

void sim_leases_expire(struct sim *c) {
    struct sim_store *s = c->store;
    int64_t before = kv_revision(s->kv);
    kv_lease_expire(s->kv, c->now_ns);
    for (int i = 0; i < s->n_jobs && kv_revision(s->kv) != before; i++)
        judge_expired(&s->jobs[i]->judge);
}

void sim_store_replace(struct sim_store *s, struct kv *kv) {
    kv_free(s->kv);
    s->kv = kv;
    for (int i = 0; i < s->n_jobs; i++)
        s->jobs[i]->judge.kv = kv;
}
