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

const struct worker *start_failed(const struct start_end *e) {
    const struct round *r = e->rounds.n ? e->rounds.v[e->rounds.n - 1] : NULL;
    const struct worker *first = NULL;
    for (size_t i = 0; r && i < r->n; i++) {
        const struct worker *w = r->workers[i];
        bool asked = w->exit_signal == SIGTERM;
        if (worker_failed(w) && (!first || (first->exit_signal == SIGTERM && !asked) ||
                                 (!asked && w->exit_ns < first->exit_ns)))
            first = w;
    }
    return first;
}
