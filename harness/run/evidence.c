/* Whether a fault was felt: all of its kinds of evidence have been seen of all of its targets. */
#include "harness/carrier/host_process.h"
#include "harness/run/evidence/evidence.h"

#include "harness/run/counting.h"

static bool has(const struct run_entry *a, int kind) {
    return a->course.evidence & UINT64_C(1) << kind;
}

static bool has_any(const struct run_entry *a, bool (*is)(const struct evidence *e)) {
    for (int k = 0; a->plan->fault && k < EVIDENCES_N; k++)
        if (has(a, k) && is(evidences[k]))
            return true;
    return false;
}

static bool counts(const struct evidence *e) {
    return e->counts;
}

static bool answers(const struct evidence *e) {
    return e->answers;
}

static bool is_asked_there(const struct evidence *e) {
    return e->unannounced && !e->told;
}

static bool is_unannounced(const struct evidence *e) {
    return e->unannounced;
}

/* All of what would show it passes with it. */
static bool is_momentary(const struct run_entry *a) {
    for (int k = 0; k < EVIDENCES_N; k++)
        if (has(a, k) && !evidences[k]->momentary)
            return false;
    return true;
}

bool evidence_answers(const struct run_entry *a) {
    return has_any(a, answers);
}

/* ---- one firing ---- */

static bool has_table(const struct run_entry *a) {
    cluster_each(n, a->owner->engine->cluster) {
        if (node_is_cut_by_table(n))
            return true;
    }
    return false;
}

/* Of several kinds the first of the table speaks. */
static void record_felt(struct run_entry *a) {
    int kind = 0;
    while (!has(a, kind))
        kind++;
    const struct evidence *e = evidences[kind];
    bool sockets = e->by_wire && a->owner->engine->plan->isolation != ISOLATION_NAMESPACES;
    enum source source = e->reads_after || e->by_disk ? SOURCE_DISK
                         : e->by_wire && !sockets     ? SOURCE_WIRE
                         : e->by_probe                ? SOURCE_PROBE
                                                      : SOURCE_KERNEL;
    struct json_writer *w = entry_record(a, source, "fault-evidence");
    json_put_string(w, "what", !sockets ? e->what : has_table(a) ? e->at_table : e->at_sockets);
    if (e->put)
        e->put(a, w);
    engine_recorded(a->owner->engine);
}

void evidence_begin(struct run_entry *a) {
    for (int k = 0; k < EVIDENCES_N; k++)
        for (size_t i = 0; has(a, k) && evidences[k]->begin && i < a->bound_n; i++)
            a->bound[i].known[k] = evidences[k]->begin(a, &a->bound[i]);
    if (has_any(a, counts))
        counting_ask(a->owner->engine);
}

const char *evidence_reads(const struct run_entry *a, bool before) {
    for (int k = 0; a->plan->fault && k < EVIDENCES_N; k++)
        if (has(a, k) && evidences[k]->reads_after)
            return before ? evidences[k]->reads_before : evidences[k]->reads_after;
    return NULL;
}

static bool asks_scheduler(const struct evidence *e) {
    return e->of_scheduler;
}

bool evidence_asks_scheduler(const struct run_entry *a) {
    return has_any(a, asks_scheduler);
}

/* What is counted from here on has met the fault. */
void evidence_in_force(struct run_entry *a) {
    evidence_look(a);
    entry_read_store(a, false);
    if (has_any(a, counts))
        counting_ask(a->owner->engine);
}

void evidence_end(struct run_entry *a) {
    evidence_look(a);
    if (has_any(a, counts))
        counting_ask(a->owner->engine);
}

/* The kind that has not been seen, and of whom; -1: all have. */
static int missing(struct run_entry *a, const struct bound **ret) {
    for (int k = 0; k < EVIDENCES_N; k++)
        for (size_t i = 0; has(a, k) && i < a->bound_n; i++)
            if (!evidences[k]->felt(&a->bound[i])) {
                *ret = &a->bound[i];
                return k;
            }
    return -1;
}

static bool is_asked_for(const struct run_entry *a) {
    return a->plan->fault && a->fired && a->in_force >= a->fired && !a->felt;
}

static bool look(struct run_entry *a) {
    const struct bound *whom;
    if (!is_asked_for(a) || missing(a, &whom) >= 0)
        return false;
    a->felt = true;
    record_felt(a);
    return true;
}

/* 0: it is on this host. */
static pid_t number_of(const struct bound *b) {
    pid_t pid = b->target.kind == TARGET_NODE ? node_far_number(b->node) : b->target.pid;
    return host_process_is(pid) ? pid : 0;
}

/* Processes of other hosts are looked at there, as often as there is an occasion. */
static void ask_hosts(struct run_entry *a) {
    pid_t pids[TARGETS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < a->bound_n && n < TARGETS_MAX; i++)
        if ((pids[n] = number_of(&a->bound[i])) != 0)
            n++;
    if (!n || a->looking)
        return;
    a->looking = true;
    cluster_look_far(a->owner->engine->cluster, pids, n);
}

/* Once it is undone, what looks like it is something else. */
void evidence_look(struct run_entry *a) {
    if (a->is_undone && is_momentary(a))
        return;
    if (!look(a) && is_asked_for(a) && has_any(a, is_asked_there))
        ask_hosts(a);
}

void evidence_seen_far(struct run_entry *a) {
    a->looking = false;
    look(a);
}

void evidence_close(struct run_entry *a) {
    const struct bound *whom = NULL;
    int kind = is_asked_for(a) ? missing(a, &whom) : -1;
    if (kind < 0)
        return;
    const struct evidence *e = evidences[kind];
    const char *why = e->why ? e->why(a, whom) : NULL;
    struct json_writer *w = entry_record(a, SOURCE_HARNESS, "fault-unfelt");
    json_put_string(w, "on", whom->target.name);
    json_put_string(w, "why", why ? why : e->absent);
    engine_recorded(a->owner->engine);
}

/* ---- what the records tell ---- */

/* Whatever shows a fault, times count from an end of its target that came before the answer. */
static uint64_t listening(const struct run_entry *a) {
    return evidence_answers(a) ? a->course.evidence : a->course.evidence | EVIDENCE(target_exit);
}

static bool learn(struct run_entry *a, struct bound *b, const struct record *r) {
    bool news = false;
    for (int k = 0; k < EVIDENCES_N; k++)
        if (listening(a) & UINT64_C(1) << k && evidences[k]->learn)
            news |= evidences[k]->learn(a, b, r);
    return news;
}

void entry_seen(struct run_entry *a, const struct record *r) {
    if (!a->fired || a->felt || !a->plan->fault)
        return;
    bool news = has_any(a, is_unannounced);
    for (size_t i = 0; i < a->bound_n; i++)
        if (learn(a, &a->bound[i], r)) {
            news = true;
            if (evidence_answers(a))
                entry_answered(a, &a->bound[i], NULL);
        }
    if (news)
        evidence_look(a);
}
