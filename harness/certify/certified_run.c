#include "harness/certify/certified_run.h"

#include "base/str.h"
#include "faults/fault.h"
#include "faults/reach.h"
#include "harness/history/incidents.h"
#include "reports/report.h"
#include "reports/story.h"

#include <stdio.h>

bool certified_is_own(const char *check) {
    return str_starts(check, "own:");
}

/* ---- checks ---- */

/* What was seen is told where it is no pass; what passed says the same of every run. */
static void put_check(const struct finding *f, struct json_writer *w) {
    json_object(w, f->check);
    json_put_string(w, "status", finding_status_name(f->status));
    if (f->status != FINDING_PASS)
        json_put_string(w, "seen", f->seen);
    if (f->status == FINDING_FAIL && *f->expected)
        json_put_string(w, "expected", f->expected);
    json_end_object(w);
}

static void put_checks(const struct verdict *v, struct json_writer *w) {
    json_object(w, "checks");
    for (size_t i = 0; i < v->n; i++)
        put_check(&v->v[i], w);
    json_end_object(w);
}

/* ---- faults ---- */

/* The bound that names the fault, else the one for all. */
static int64_t bound_of(const struct budget *b, size_t n, const char *id) {
    int64_t ns = -1;
    for (size_t i = 0; i < n; i++) {
        if (str_eq(b[i].id, id))
            return b[i].ns;
        if (!b[i].id)
            ns = b[i].ns;
    }
    return ns;
}

static void put_us(struct json_writer *w, const char *key, int64_t ns) {
    json_put_i64(w, key, ns < 0 ? -1 : ns / 1000);
}

static void put_nodes(const struct incident *i, struct json_writer *w) {
    json_array(w, "nodes");
    for (size_t k = 0; k < i->targets_n; k++) {
        bool told = false;
        for (size_t m = 0; m < k; m++)
            told |= str_eq(i->targets[m].node, i->targets[k].node);
        if (!told && i->targets[k].node)
            json_put_string(w, NULL, i->targets[k].node);
    }
    json_end_array(w);
}

/* Those of the nodes that it struck, where they are in any. */
static void put_racks(const struct scenario *s, const struct incident *i, struct json_writer *w) {
    bool any = false;
    for (int rack = 1; rack <= s->cluster.racks; rack++) {
        bool struck = false;
        for (size_t k = 0; k < i->targets_n; k++)
            struck |= i->targets[k].node && scenario_rack_of(s, i->targets[k].node) == rack;
        if (!struck)
            continue;
        char name[32];
        snprintf(name, sizeof(name), "rack %d", rack - 1);
        if (!any)
            json_array(w, "racks");
        any = true;
        json_put_string(w, NULL, name);
    }
    if (any)
        json_end_array(w);
}

static void put_fault(const struct recorded_run *run, const struct incident *i,
                      struct json_writer *w) {
    const struct expect *e = &run->scenario->expect;
    BUF_FINI struct buf on = {0};
    story_targets(i, &on);
    json_object(w, NULL);
    json_put_string(w, "name", i->id);
    json_put_string(w, "fault", i->fault);
    if (fault_find(i->fault))
        json_put_string(
            w, "reach",
            fault_reach_names[incident_hits_store(i) ? REACH_SHARED : fault_reach(i->fault)]);
    json_put_string(w, "on", buf_str(&on));
    put_nodes(i, w);
    put_racks(run->scenario, i, w);
    json_put_bool(w, "felt", i->evidence_seq > 0);
    json_put_bool(w, "recovered", i->recover_ns >= 0);
    put_us(w, "detect_us", i->phase_ns[PHASE_DETECT]);
    put_us(w, "detect_bound_us", bound_of(e->detect_within, e->detect_n, i->id));
    put_us(w, "recover_us", i->recover_ns);
    put_us(w, "recover_bound_us", bound_of(e->recover_within, e->recover_n, i->id));
    json_end_object(w);
}

static void put_faults(const struct recorded_run *run, struct json_writer *w) {
    struct incidents is;
    incidents_load(&is, run->history, run->rounds);
    json_array(w, "faults");
    for (size_t i = 0; i < is.n; i++)
        put_fault(run, is.v[i], w);
    json_end_array(w);
    incidents_fini(&is);
}

void certified_run_put(const struct recorded_run *run, struct json_writer *w) {
    json_put_string(w, "scenario", run->scenario->name);
    json_put_i64(w, "seed", story_seed(run));
    json_put_string(w, "launcher", story_run_text(run, "launcher"));
    json_put_string(w, "version", story_run_text(run, "version"));
    json_put_string(w, "isolation", story_run_text(run, "isolation"));
    json_put_i64(w, "exit_code", run->verdict->exit_code);
    json_put_string(w, "result", report_outcome(run->verdict->exit_code));
    put_checks(run->verdict, w);
    put_faults(run, w);
}
