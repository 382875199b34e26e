#include "base/mem.h"
#include "harness/sim/history_writer.h"
#include "harness/sim/transcript.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

/* --- the order of things --- */

void sim_say(struct sim *c, int node, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    transcript_line(c, node, fmt, ap);
    va_end(ap);
    if (!c->trace)
        return;
    printf("%10.3f %sn%d ", (double)c->now_ns / 1e6, c == c->store->jobs[0] ? "" : SIM_BESIDE "/",
           node);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
}

uint64_t sim_number(struct sim *c) {
    return ++c->seq;
}

/* Written in its place: what is made elsewhere and copied is read before it has been stored. */
static struct occurrence *plan(struct sim *c, uint64_t number, int64_t at_ns, int node,
                               void (*run)(struct sim *, struct occurrence *)) {
    struct occurrence *o = pool_take(&c->pool, sizeof(*o));
    memset(o, 0, sizeof(*o));
    o->at_ns = at_ns < c->now_ns ? c->now_ns : at_ns;
    o->seq = number;
    o->run = run;
    o->node = node;
    sim_queue_add(c, o);
    return o;
}

struct occurrence *sim_plan(struct sim *c, int64_t at_ns, int node,
                            void (*run)(struct sim *, struct occurrence *)) {
    return plan(c, sim_number(c), at_ns, node, run);
}

struct occurrence *sim_plan_agent_as(struct sim *c, uint64_t number, int64_t at_ns, int node,
                                     void (*run)(struct sim *, struct occurrence *)) {
    struct occurrence *o = plan(c, number, at_ns, node, run);
    o->process = true;
    o->life = c->nodes[node].shown.life;
    return o;
}

struct occurrence *sim_plan_agent(struct sim *c, int64_t at_ns, int node,
                                  void (*run)(struct sim *, struct occurrence *)) {
    return sim_plan_agent_as(c, sim_number(c), at_ns, node, run);
}

void sim_postpone(struct sim *c, struct occurrence *o, int64_t at_ns) {
    struct occurrence *again = pool_take(&c->pool, sizeof(*again));
    *again = *o;
    again->at_ns = at_ns;
    o->drop = NULL;
    sim_queue_add(c, again);
}

static void occurrence_free(struct sim *c, struct occurrence *o) {
    if (o->drop)
        o->drop(c, o->payload);
    pool_give(&c->pool, o, sizeof(*o));
}

/* What is for a stopped process waits for it; what is for an earlier one is nothing. */
static void occurrence_run(struct sim *c, struct occurrence *o) {
    struct sim_node *n = &c->nodes[o->node];
    if (o->life && (o->life != n->shown.life || !n->core)) {
        occurrence_free(c, o);
    } else if (o->process && n->shown.stopped_until_ns > c->now_ns) {
        o->at_ns = n->shown.stopped_until_ns;
        sim_queue_add(c, o); /* with its old number: what waits keeps its order */
    } else {
        o->run(c, o);
        occurrence_free(c, o);
    }
}

/* --- agents --- */

static void on_timer(struct sim *c, struct occurrence *o) {
    c->nodes[o->node].timer = NULL;
    sim_agent_event(c, o->node, &(struct event){.kind = EVENT_TIMER});
}

static void on_port(struct sim *c, struct occurrence *o) {
    struct event ev = {.kind = EVENT_PORT};
    ev.port.addr = c->nodes[o->node].name;
    ev.port.port = (int)sim_chance_ns(&c->nodes[o->node].body, 20000, 30000);
    sim_agent_event(c, o->node, &ev);
}

void sim_agent_gone(struct sim *c, int node) {
    struct sim_node *n = &c->nodes[node];
    if (!n->core)
        return;
    history_writer_agent_end(c, node, 0, SIGKILL);
    sim_mark_agent_gone(c, node);
    n->core = rendezvous_free(n->core);
    n->other = false;
    sim_lifeline_agent_gone(c, node);
    sim_wire_close(c, node);
    sim_machine_agent_gone(c, node);
}

int sim_seat(const struct sim_schedule *s, int node) {
    return s->seated ? node % s->max + 1 : 0;
}

/* A leaver comes back while the job goes on; who has given up is started again by somebody, but not
 * under the name of a run that a store was set back in. */
static void on_exit_done(struct sim *c, struct occurrence *o) {
    sim_agent_gone(c, o->node);
    if (c->judge.set_back)
        return;
    if (c->calm_now && c->judge.outcome == OUTCOME_NONE)
        sim_boot(c, o->node, 100 * SIM_MS);
    else if (o->a == EX_UNAVAILABLE)
        sim_boot(c, o->node, 1000 * SIM_MS);
}

static void set_timer(struct sim *c, int node, int64_t at_ns) {
    struct sim_node *n = &c->nodes[node];
    int64_t real_ns = sim_monotonic_to_real(c, n, at_ns);
    if (c->hasty && sim_chance(&n->body, 200))
        real_ns -= sim_chance_ns(&n->body, 0, SIM_MS); /* one too many does no harm */
    n->timer_local_ns = at_ns;
    if (n->timer)
        sim_queue_move(c, n->timer, real_ns, sim_number(c));
    else
        n->timer = sim_plan_agent(c, real_ns, node, on_timer);
}

void sim_timer_replan(struct sim *c, int node) {
    if (c->nodes[node].timer && c->nodes[node].core)
        set_timer(c, node, c->nodes[node].timer_local_ns);
}

static void act(struct sim *c, int node, const struct action *a) {
    transcript_action(c, node, a);
    switch (a->kind) {
    case ACTION_SNAPSHOT:
    case ACTION_WATCH:
    case ACTION_UNWATCH:
    case ACTION_TXN:
    case ACTION_LEASE_GRANT:
    case ACTION_LEASE_KEEPALIVE:
    case ACTION_BEAT:
        sim_wire_act(c, node, a);
        break;
    case ACTION_DEADLINE:
        sim_machine_deadline(c, node, a->deadline.fence_ns, a->deadline.hard_ns);
        break;
    case ACTION_START:
        sim_machine_start(c, node, a->start);
        break;
    case ACTION_STOP:
        sim_judge_stop(c, node, a);
        sim_machine_stop(c, node, a->stop.grace_ms * SIM_MS);
        break;
    case ACTION_KILL:
        sim_judge_stop(c, node, a);
        sim_machine_kill(c, node);
        break;
    case ACTION_NEED_PORT:
        sim_plan_agent(c, c->now_ns + SIM_MS / 10, node, on_port);
        break;
    case ACTION_TIMER:
        set_timer(c, node, a->timer.at_ns);
        break;
    case ACTION_CLAIM:
        sim_say(c, node, "%s %lld", a->claim.what, (long long)a->claim.round);
        sim_mark_claim(c, node, a->claim.what);
        judge_claim(&c->judge, node, a->claim.what, a->claim.round);
        history_writer_claim(c, node, a->claim.what, a->claim.round);
        break;
    case ACTION_LOG:
        sim_say(c, node, "%s", a->log);
        break;
    case ACTION_STORE:
        sim_say(c, node, "the store %s", a->store.text);
        break;
    case ACTION_TREE:
    case ACTION_TREE_CANCEL:
    case ACTION_LOOK_UP:
        break; /* of agent/legacy alone */
    case ACTION_LIFELINE_OPEN:
    case ACTION_LIFELINE_DROP:
        sim_lifeline_act(c, node, a);
        break;
    case ACTION_EXIT:
        sim_say(c, node, "exit %d %s", a->exit.code, a->exit.text);
        sim_judge_exit(c, node, a->exit.code);
        if (a->exit.failure && !a->exit.earlier)
            judge_failure(&c->judge, node, a->exit.round);
        if (a->exit.outcome || a->exit.earlier)
            judge_said(&c->judge, node, a->exit.text);
        history_writer_agent_end(c, node, a->exit.code, 0);
        sim_plan_agent(c, c->now_ns, node, on_exit_done)->a = a->exit.code;
        break;
    }
}

void sim_agent_event(struct sim *c, int node, const struct event *ev) {
    struct sim_node *n = &c->nodes[node];
    size_t count = 0;
    c->result->steps++;
    transcript_event(c, node, ev);
    const struct action *a = rendezvous_step(n->core, ev, sim_node_now(c, n), &count);
    for (size_t i = 0; i < count; i++) {
        int place = decision_place((int)c->judge.head.phase, ev, &a[i]);
        if (place >= 0)
            c->result->decisions[place / 64] |= UINT64_C(1) << place % 64;
        act(c, node, &a[i]);
    }
}

const char *sim_attempt(const struct sim *c, int node) {
    return c->nodes[node].other ? "2" : c->unnamed ? "" : "1";
}

static void on_boot(struct sim *c, struct occurrence *o) {
    struct sim_node *n = &c->nodes[o->node];
    struct err err = {0};
    if (n->core || (!n->wanted && !c->calm_now))
        return;
    const struct judged_job *job = &c->judge.job;
    struct rendezvous_config config = {
        .run_id = c->run_id,
        .node = n->name,
        .addr = n->name,
        .role = c->roles && o->node % 3 == 1 ? "other" : "default",
        .slots = SIM_WORKERS,
        .seat = n->shown.seat,
        .min = job->min,
        .max = job->max,
        .max_restarts = job->max_restarts,
        .attempt = sim_attempt(c, o->node),
        .max_free_rounds = job->max_free_rounds,
        .restart_mode = job->restart_mode,
        .timing = job->timing,
        .last_call_ns = job->last_call_ns,
        .admit_ns = job->admit_ns,
        .join_timeout_ns = job->join_timeout_ns,
        .stop_timeout_ns = job->stop_timeout_ns,
        .shutdown_grace_ns = job->shutdown_grace_ns,
        .give_up_ns = job->give_up_ns,
        .store_in_process = c->in_process,
        .hosts_store = job->hosted && o->node == 0,
        .lifeline = c->schedule->lifeline,
        .want = o->node >= c->n_nodes - c->schedule->spares ? WANT_STANDBY : WANT_MEMBER,
        .on_node_loss = job->gang ? NODE_LOSS_GANG : NODE_LOSS_REPLACE,
    };
    n->shown = (struct judged_node){.group = n->shown.group,
                                    .life = n->shown.life + 1,
                                    .seat = n->shown.seat,
                                    .booted_ns = c->now_ns,
                                    .stall_until_ns = n->shown.stall_until_ns,
                                    .wiped_life = n->shown.wiped_life};
    n->beat_pending = 0;
    memset(n->pending, 0, sizeof(n->pending));
    n->leads = false;
    n->timer = NULL;
    struct rand r = sim_rand(c->schedule->seed, CONCERN_CORE, o->node, n->shown.life);
    n->core = rendezvous_new(&config, rand_u64(&r), &err);
    if (!n->core) {
        sim_violation(c, "config: %s", err.msg);
        return;
    }
    sim_say(c, o->node, "the agent starts");
    history_writer_agent_start(c, o->node);
    sim_agent_event(c, o->node, &(struct event){.kind = EVENT_START});
}

/* --- what faults do --- */

void sim_boot(struct sim *c, int node, int64_t after_ns) {
    sim_plan(c, c->now_ns + after_ns, node, on_boot);
}

static void on_cut(struct sim *c, struct occurrence *o) {
    int64_t until_ns = c->now_ns + o->a;
    if (!c->calm_now && until_ns > c->nodes[o->node].cut_until_ns)
        c->nodes[o->node].cut_until_ns = until_ns;
}

void sim_cut_later(struct sim *c, int node, int64_t after_ns, int64_t span_ns) {
    sim_plan(c, c->now_ns + after_ns, node, on_cut)->a = span_ns;
}

/* Everything heals (who is stopped wakes within 2.5 s); agents that are not there come back, so
 * that min can be reached. */
static void on_calm(struct sim *c, struct occurrence *o) {
    sim_say(c, o->node, "CALM");
    c->calm_now = true;
    c->times.healed_ns = c->schedule->trouble_ns;
    c->store->compact_until_ns = c->store->full_until_ns = 0;
    for (int i = 0; i < c->n_nodes; i++) {
        struct sim_node *n = &c->nodes[i];
        n->cut_until_ns = n->deaf_until_ns = n->mute_until_ns = 0;
        n->answers_from_ns = n->requests_from_ns = 0;
        struct rand r = sim_rand(c->schedule->seed, CONCERN_CALM, i, 0);
        if (!n->core && !c->judge.set_back)
            sim_boot(c, i, sim_chance_ns(&r, SIM_MS, 500 * SIM_MS));
    }
}

/* --- a run --- */

static void node_init(struct sim *c, int node) {
    const struct sim_schedule *s = c->schedule;
    struct sim_node *n = &c->nodes[node];
    struct rand r = sim_rand(s->seed, CONCERN_CLOCK, node, 0);
    snprintf(n->name, sizeof(n->name), "n%d", node);
    n->shown.seat = sim_seat(s, node);
    n->wanted = true;
    n->rate = 0.991 + (double)sim_chance_ns(&r, 0, 1800) / 100000.0;
    n->clock_offset_ns = sim_chance_ns(&r, 1000 * SIM_MS, 100000 * SIM_MS);
    if (s->even)
        n->rate = 1;
    n->wire = sim_rand(s->seed, CONCERN_WIRE, node, 0);
    n->body = sim_rand(s->seed, CONCERN_BODY, node, 0);
    r = sim_rand(s->seed, CONCERN_BOOT, node, 0);
    if (!n->late)
        sim_boot(c, node, sim_chance_ns(&r, 0, 100 * SIM_MS));
}

/* What agents are told otherwise in some seeds; the shorter patience with missing nodes only where
 * the job may end early. */
static void terms_of_agents(const struct sim_schedule *s, struct sim_terms *t) {
    struct rand r = sim_rand(s->seed, CONCERN_JOB, 0, 1);
    struct timing timing;
    timing_profile(s->usual ? "default" : "fast", &timing);
    timing_stretch(&timing, s->max, TIMING_EMBEDDED);
    if (sim_chance(&r, 100))
        t->last_call_ns = 1200 * SIM_MS;
    if (sim_chance(&r, 150))
        t->give_up_ns = sim_chance_ns(&r, timing.suspect_ns, 2 * timing.suspect_ns);
    if (sim_chance(&r, 200) && !s->patient)
        t->join_timeout_ns = sim_chance_ns(&r, 1500, 6000) * SIM_MS;
    t->roles = sim_chance(&r, 100);
    t->unnamed = sim_chance(&r, 50);
    t->neighbours = sim_chance(&r, 100);
    t->in_process = sim_chance(&r, 300) && s->agents == 1;
    t->beside = sim_chance(&r, 80) && !s->hosted && !t->in_process && s->agents <= SIM_AGENTS_USUAL;
    t->hasty = sim_chance(&r, 150);
}

struct sim_terms sim_terms(const struct sim_schedule *s) {
    struct rand r = sim_rand(s->seed, CONCERN_JOB, 0, 0);
    struct sim_terms t = {.last_call_ns = SIM_LAST_CALL_NS,
                          .max_free_rounds = SIM_FREE_ROUNDS,
                          .give_up_ns = SIM_GIVE_UP_NS,
                          .join_timeout_ns = SIM_JOIN_TIMEOUT_NS};
    if (s->plain)
        return t;
    t.count_by_node = sim_chance(&r, 100);
    if (!s->calm && sim_chance(&r, 150))
        t.max_free_rounds = (int)sim_chance_ns(&r, 1, 3);
    if (!s->calm)
        terms_of_agents(s, &t);
    t.impatient = t.give_up_ns != SIM_GIVE_UP_NS || t.join_timeout_ns != SIM_JOIN_TIMEOUT_NS;
    return t;
}

/* A session that beats, in a store of several jobs: nothing of it is the job's. */
static void neighbour_put(struct sim *c, const char *run_id, enum key_kind kind, union value v) {
    struct store_key key = {.kind = kind, .inc = "neighbour", .uid = "neighbour"};
    struct kv_txn_result reply = {0};
    ARENA_FINI struct arena arena = {0};
    char text[KEY_SIZE], end[KEY_SIZE];
    key_format(&key, run_id, text, end);
    struct kv_op put = {.kind = KV_PUT, .key = kv_string(text)};
    put.value = (struct kv_bytes){(const char *)&v, value_size(kind)};
    kv_txn(c->store->kv, &(struct kv_txn){.success = &put, .n_success = 1}, &arena, &reply, NULL);
}

static void on_neighbours(struct sim *c, struct occurrence *o) {
    static const char *const names[] = {"jo", "job2", "job-"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        neighbour_put(c, names[i], KEY_SESSION, (union value){.session = {o->a}});
        neighbour_put(c, names[i], KEY_MEMBER, (union value){.member = {.node = "n0"}});
        neighbour_put(c, names[i], KEY_LEAD, (union value){.lead = {"neighbour"}});
        neighbour_put(c, names[i], KEY_HEAD, (union value){.head = {.phase = HEAD_CLOSED}});
    }
    sim_wire_fan_out(c);
    if (!c->calm_now)
        sim_plan(c, c->now_ns + 1700 * SIM_MS, 0, on_neighbours)->a = o->a + 1;
}

static void sim_init(struct sim *c) {
    const struct sim_schedule *s = c->schedule;
    struct sim_terms t = sim_terms(s);
    c->roles = t.roles;
    c->unnamed = t.unnamed;
    c->in_process = t.in_process;
    c->hasty = t.hasty;
    c->n_nodes = s->agents;
    c->nodes = mem_array(struct sim_node, (size_t)c->n_nodes);
    c->calm_now = s->calm;
    sim_judge_init(c, &t);
    if (t.neighbours)
        sim_plan(c, 0, 0, on_neighbours);
    sim_faults_plan(c);
    for (int i = 0; i < c->n_nodes; i++)
        node_init(c, i);
    if (!s->calm)
        sim_plan(c, s->trouble_ns, 0, on_calm);
}

static bool anybody_runs(const struct sim *c) {
    for (int i = 0; i < c->n_nodes; i++)
        if (c->nodes[i].core || c->nodes[i].shown.group.alive)
            return true;
    return false;
}

static bool is_over(const struct sim *c) {
    bool ended = c->judge.outcome != OUTCOME_NONE || c->judge.set_back;
    return ended && c->calm_now && !anybody_runs(c);
}

static void sim_fini(struct sim *c) {
    while (c->n_queue)
        occurrence_free(c, sim_queue_take(c));
    free(c->queue);
    free(c->armed);
    for (int i = 0; i < c->n_nodes; i++) {
        rendezvous_free(c->nodes[i].core);
        sim_wire_close(c, i);
    }
    sim_wire_fini(c);
    sim_lifeline_fini(c);
    pool_fini(&c->pool);
    sim_judge_fini(c);
    arena_fini(&c->arena);
    free(c->nodes);
    free(c);
}

/* A run whose agents are all gone keeps its name for as long as its lease lives: another attempt
 * waits for that. */
static bool is_late(const struct sim *c) {
    int64_t lease_ns = c->judge.others ? SIM_LEASE_S * 1000 * SIM_MS : 0;
    return c->now_ns >
           lease_ns + c->schedule->trouble_ns + c->schedule->work_ns + JUDGE_CALM_S * 1000 * SIM_MS;
}

static struct sim *job_new(struct sim_store *store, const char *run_id,
                           const struct sim_schedule *s, struct sim_result *ret) {
    struct sim *c = mem_new(struct sim);
    *ret = (struct sim_result){0};
    c->schedule = s;
    c->run_id = run_id;
    c->result = ret;
    c->store = store;
    store->jobs[store->n_jobs++] = c;
    return c;
}

/* The job whose turn it is; NULL: nothing is left to happen. */
static struct sim *next_job(const struct sim_store *s) {
    struct sim *next = NULL;
    for (int i = 0; i < s->n_jobs; i++) {
        struct sim *c = s->jobs[i];
        if (c->n_queue && (!next || c->queue[0].at_ns < next->queue[0].at_ns))
            next = c;
    }
    return next;
}

static bool goes_on(const struct sim_store *s, bool to_the_end) {
    bool over = true;
    for (int i = 0; i < s->n_jobs; i++) {
        const struct sim *c = s->jobs[i];
        bool ended = is_over(c);
        if ((c->result->violated && !to_the_end) || (is_late(c) && !ended))
            return false;
        over &= ended;
    }
    return !over;
}

/* A history is of one job: who comes by its name when it has ended belongs to another. */
static void end_record(struct sim *c) {
    if (c->judge.outcome == OUTCOME_NONE || anybody_runs(c))
        return;
    c->result->recorded = (enum sim_outcome)c->judge.outcome;
    history_writer_end(c, true);
    c->history_writer = history_writer_free(c->history_writer);
}

static void run(struct sim_store *s, bool to_the_end) {
    struct sim *c;
    while (goes_on(s, to_the_end) && (c = next_job(s))) {
        struct occurrence *o = sim_queue_take(c);
        for (int i = 0; i < s->n_jobs; i++)
            s->jobs[i]->now_ns = s->jobs[i]->judge.now_ns = o->at_ns;
        occurrence_run(c, o);
        if (c->history_writer && c->one_job)
            end_record(c);
    }
    for (int i = 0; i < s->n_jobs; i++)
        judge_end(&s->jobs[i]->judge, is_over(s->jobs[i]), is_late(s->jobs[i]));
}

/* What broke a promise in the other job counts as much. */
static void merge(struct sim_result *r, const struct sim_result *other) {
    r->steps += other->steps;
    r->risked |= other->risked;
    for (int i = 0; i < DECISION_WORDS; i++)
        r->decisions[i] |= other->decisions[i];
    if (!other->violated || r->violated)
        return;
    r->violated = true;
    r->ended_ns = other->ended_ns;
    snprintf(r->text, sizeof(r->text), "%.480s (the other job)", other->text);
}

bool sim_memory_fits(struct kv *kv, size_t *ret_held, size_t *ret_needed) {
    kv_compact(kv, kv_revision(kv), NULL);
    struct kv *copy = kv_copy(kv);
    *ret_held = kv_memory(kv);
    *ret_needed = kv_memory(copy);
    kv_free(copy);
    return *ret_held == *ret_needed;
}

static void judge_memory(struct kv *kv, struct sim_result *r) {
    size_t held, needed;
    if (sim_memory_fits(kv, &held, &needed) || r->violated)
        return;
    r->violated = true;
    snprintf(r->text, sizeof(r->text), "store memory: it holds %zu bytes for %zu keys, of %zu",
             held, kv_count(kv), needed);
}

struct record_wish {
    struct history *history; /* NULL: none */
    bool one_job;            /* else all of it, as what is broken may lie behind the first's end */
};

/* What is recorded goes on to its end, so that the history has one, too. */
static void play(const struct sim_schedule *s, bool trace, struct record_wish in,
                 struct transcript *transcript, struct sim_result *ret) {
    struct sim_store store = {.kv = kv_new(s->seed, 0)};
    struct sim *c = job_new(&store, "job", s, ret);
    struct sim_schedule other;
    struct sim_result result = {0};
    c->trace = trace;
    c->transcript = transcript;
    if (sim_terms(s).beside) {
        sim_beside(s, &other);
        job_new(&store, SIM_BESIDE, &other, &result)->trace = trace;
    }
    c->history_writer = history_writer_new(c, in.history);
    c->one_job = in.one_job;
    for (int i = 0; i < store.n_jobs; i++)
        sim_init(store.jobs[i]);
    run(&store, in.history);
    ret->outcome = (enum sim_outcome)c->judge.outcome;
    if (c->history_writer)
        ret->recorded = ret->outcome;
    history_writer_end(c, is_over(c));
    if (!ret->violated)
        ret->ended_ns = c->now_ns;
    history_writer_free(c->history_writer);
    for (int i = 0; i < store.n_jobs; i++)
        sim_fini(store.jobs[i]);
    merge(ret, &result);
    judge_memory(store.kv, ret);
    kv_free(store.kv);
    kv_free(store.backup);
}

void sim_play(const struct sim_schedule *s, bool trace, struct sim_result *ret) {
    play(s, trace, (struct record_wish){0}, NULL, ret);
}

void sim_record(const struct sim_schedule *s, bool trace, struct history *h,
                struct sim_result *ret) {
    struct sim_result first;
    play(s, false, (struct record_wish){0}, NULL, &first);
    play(s, trace, (struct record_wish){h, !first.violated}, NULL, ret);
}

void sim_transcribe(const struct sim_schedule *s, struct buf *out, struct sim_result *ret) {
    struct transcript t = {.out = out};
    play(s, false, (struct record_wish){0}, &t, ret);
}
