#include "harness/play/start.h"

#include "base/str.h"
#include "base/sys/folder.h"
#include "harness/run/control.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static int make_plan(const struct start_spec *s, struct start_end *e, struct err *err) {
    e->scenario = control_scenario(s->scenario);
    struct diagnostics d = {.file = e->scenario.file};
    e->plan = plan_make(&e->scenario, s->seed, &d);
    int r = e->plan ? 0 : err_say(err, -EINVAL, "%s", buf_str(&d.out));
    diagnostics_fini(&d);
    if (r)
        return r;
    e->plan->disks = s->disks;
    plan_find_commands(e->plan);
    r = plan_check_host(e->plan, err);
    return r ? r : plan_find_launcher(e->plan, err);
}

int start_once(const struct start_spec *s, struct start_end *ret, struct err *err) {
    *ret = (struct start_end){0};
    rounds_init(&ret->rounds, !s->scenario->torchrun_semantics);
    int r = make_plan(s, ret, err);
    int file = r ? r : folder_create(s->run, "history.jsonl", err);
    if (file < 0)
        return file;
    history_create_in(&ret->history, file);
    struct run_spec spec = {.plan = ret->plan, .folder = s->run, .bin = s->bin};
    return run_execute(&spec, &ret->history, &ret->rounds, err);
}

void start_end_fini(struct start_end *e) {
    history_fini(&e->history);
    rounds_fini(&e->rounds);
    plan_free(e->plan);
}

/* Of each node the last end of its agent. */
bool start_ended_well(const struct start_end *e) {
    const struct record *end = history_newest(&e->history, SOURCE_HARNESS, "job-end");
    bool any = false, well = true;
    if (!end || !str_eq(record_text(end, "why"), "ended"))
        return false;
    history_each(r, &e->history) {
        if (!record_is(r, "agent-exit") || r->source != SOURCE_KERNEL)
            continue;
        any = true;
        well &= json_get_i64(r->fields, "code", -1) == 0;
    }
    return any && well;
}

/* Without faults only a launcher asks a worker to end: because another one had failed, whose end may
 * have been seen later. */
static const struct worker *failed_of(const struct round *r) {
    const struct worker *first = round_failed(r);
    for (size_t i = 0; first && i < r->n; i++) {
        const struct worker *w = r->workers[i];
        bool earlier = first->exit_signal == SIGTERM || w->exit_ns < first->exit_ns;
        if (worker_failed(w) && w->exit_signal != SIGTERM && earlier)
            first = w;
    }
    return first;
}

const struct worker *start_failed(const struct rounds *rs) {
    const struct worker *w = NULL;
    for (size_t i = 0; i < rs->n && !w; i++)
        w = failed_of(rs->v[i]);
    return w;
}
