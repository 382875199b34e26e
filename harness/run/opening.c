/* The first lines of a history: what is run, by what, on what. */
#include "harness/run/control_weights.h"
#include "harness/run/engine.h"

#include <errno.h>
#include <sys/utsname.h>

static void begin(struct engine *e) {
    const struct run_spec *s = e->spec;
    struct utsname host = {0};
    uname(&host);
    struct json_writer *w = engine_record(e, SOURCE_HARNESS, "run");
    json_put_i64(w, "v", 1);
    json_put_string(w, "scenario", e->plan->scenario->name);
    json_put_i64(w, "seed", (int64_t)e->plan->seed);
    json_put_string(w, "version", RANKQUAKE_VERSION);
    json_put_string(w, "program", program_invocation_name);
    json_put_string(w, "file", e->plan->scenario->file);
    json_put_string(w, "launcher", e->plan->scenario->job.launcher);
    json_put_bool(w, "control", !s->control);
    json_put_string(w, "kernel", host.release);
    json_put_string(w, "isolation",
                    isolation_names[e->plan->isolation != ISOLATION_AUTO ? e->plan->isolation
                                                                         : ISOLATION_NAMESPACES]);
    json_put_string(w, "exits", observer_way(e->observer));
    json_array(w, "set");
    for (const char *const *set = s->sets; set && *set; set++)
        json_put_string(w, NULL, *set);
    json_end_array(w);
    if (e->plan->untrusted)
        json_put_bool(w, "untrusted", true);
    engine_recorded(e);
    if (!s->control || e->plan->scenario->expect.outcome == OUTCOME_REFUSED)
        return;
    w = engine_record(e, SOURCE_HARNESS, "control");
    json_put_string(w, "model", s->control->model);
    json_put_string(w, "label", s->control->label);
    json_put_i64(w, "step_ns", s->control->step_ns);
    if (s->control->pace_ns)
        json_put_i64(w, "pace_ns", s->control->pace_ns);
    if (s->control->last_step >= 0) {
        json_put_i64(w, "first_step", s->control->first_step);
        json_put_i64(w, "last_step", s->control->last_step);
    }
    if (s->control->has_loss)
        json_put_double(w, "loss", s->control->loss);
    if (s->control->kept >= 0)
        json_put_i64(w, "kept", s->control->kept);
    if (s->control->saved >= 0 && s->control->saved_gap > 0) {
        json_put_i64(w, "saved", s->control->saved);
        json_put_i64(w, "saved_gap", s->control->saved_gap);
    }
    json_put_i64(w, "workers", s->control->workers);
    json_put_i64(w, "named", s->control->named);
    json_put_bool(w, "cached", s->control->cached);
    json_put_string(w, "dir", s->control->dir);
    engine_recorded(e);
    if (e->plan->scenario->expect.weights)
        control_weights_record(e, s->control->dir);
}

const struct run_part run_part_opening = {.begin = begin};
