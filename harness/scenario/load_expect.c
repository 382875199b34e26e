/* Loads expect: what must come of the run. */
#include "base/str.h"
#include "harness/scenario/load.h"
#include "harness/scenario/reader.h"

#include <stddef.h>
#include <string.h>

static void read_sizes(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct expect *e = out;
    const struct yaml *list = n;
    if (n->type == YAML_MAP && n->length == 1 && yaml_get(n, "ends")) {
        e->world_sizes_ends = true;
        list = yaml_get(n, "ends");
    }
    if (list->type != YAML_LIST || !list->length) {
        diagnostics_add(r->d, n->place, "world_sizes must be %s", k->type);
        return;
    }
    int *v = arena_array(r->arena, int, list->length);
    size_t used = 0;
    yaml_each(it, list) {
        int64_t size = 0;
        if (it->type == YAML_SCALAR && str_eq(it->text, "*"))
            v[used++] = -1;
        else if (reader_number(r, k, it, &size))
            v[used++] = (int)size;
    }
    e->has_world_sizes = true;
    e->world_sizes = v;
    e->world_sizes_n = used;
}

/* 1, or 0..2 */
static void read_restarts(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct expect *e = out;
    if (!reader_is_scalar(r, k, n))
        return;
    const char *dots = strstr(n->text, "..");
    const char *low = dots ? arena_strndup(r->arena, n->text, (size_t)(dots - n->text)) : n->text;
    int64_t min, max;
    if (!str_to_i64(low, k->min, k->max, &min) ||
        !str_to_i64(dots ? dots + 2 : n->text, k->min, k->max, &max)) {
        diagnostics_add(r->d, n->place, "restarts must be %s, not \"%s\"", k->type, n->text);
        return;
    }
    if (max < min) {
        diagnostics_add(r->d, n->place, "restarts: %s is empty; the smaller number comes first",
                        n->text);
        return;
    }
    e->has_restarts = true;
    e->restarts_min = (int)min;
    e->restarts_max = (int)max;
}

static void read_budgets(struct reader *r, const struct key *k, const struct yaml *n,
                         const struct budget **ret, size_t *ret_n) {
    struct budget *v = arena_array(r->arena, struct budget, n->length + 1);
    size_t used = 0;
    if (n->type != YAML_MAP) {
        v[0].place = n->place;
        if (reader_time(r, k, n, &v[0].ns))
            used = 1;
    }
    yaml_each(it, n->type == YAML_MAP ? n : NULL) {
        reader_id(r, k, it->key, it->key_place);
        v[used].id = it->key;
        v[used].place = it->key_place;
        if (reader_time(r, k, it, &v[used].ns))
            used++;
    }
    *ret = v;
    *ret_n = used;
}

static void read_detect(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct expect *e = out;
    read_budgets(r, k, n, &e->detect_within, &e->detect_n);
}

static void read_recover(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct expect *e = out;
    read_budgets(r, k, n, &e->recover_within, &e->recover_n);
}

/* The words of harness/history/incidents.h. */
static void read_phases(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    static const char *const names[] = {"detect", "stop", "rendezvous", "start",
                                        "init",   "load", "first step", NULL};
    struct expect *e = out;
    struct budget *v = arena_array(r->arena, struct budget, n->length + 1);
    if (n->type != YAML_MAP || !n->length) {
        diagnostics_add(r->d, n->place, "%s must be %s", k->name, k->type);
        return;
    }
    yaml_each(it, n) {
        bool known = false;
        for (size_t i = 0; names[i] && !known; i++)
            known = str_eq(names[i], it->key);
        const char *near = str_nearest(it->key, names);
        if (!known)
            diagnostics_add(r->d, it->key_place, "%s: there is no phase \"%s\"%s%s%s", k->name,
                            it->key, near ? "; did you mean \"" : "", near ? near : "",
                            near ? "\"?" : "");
        v[e->phases_n].id = it->key;
        v[e->phases_n].place = it->key_place;
        if (reader_time(r, k, it, &v[e->phases_n].ns))
            e->phases_n++;
    }
    e->phases_within = v;
}

/* 20 is steps, 5s is time. */
static void read_lost_work(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct expect *e = out;
    int64_t steps, ns;
    if (!reader_is_scalar(r, k, n))
        return;
    if (!n->quoted && str_to_i64(n->text, k->min, k->max, &steps))
        e->lost_steps = steps;
    else if (str_to_duration_ns(n->text, &ns, NULL) == 0 && ns > 0)
        e->lost_ns = ns;
    else
        diagnostics_add(r->d, n->place, "lost_work must be %s, not \"%s\"", k->type, n->text);
}

/* {1: 2.30..2.31, 40: '<= 0.9'} */
static void read_losses(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct expect *e = out;
    struct loss_expect *v = arena_array(r->arena, struct loss_expect, n->length + 1);
    if (n->type != YAML_MAP || !n->length) {
        diagnostics_add(r->d, n->place, "%s must be %s", k->name, k->type);
        return;
    }
    yaml_each(it, n) {
        struct loss_expect *l = &v[e->losses_n];
        *l = (struct loss_expect){.place = it->key_place};
        if (!str_to_i64(it->key, k->min, k->max, &l->step)) {
            diagnostics_add(r->d, it->key_place,
                            "%s: \"%s\" is no step; expected a whole number from 1 on", k->name,
                            it->key);
            continue;
        }
        if (!reader_is_scalar(r, k, it))
            continue;
        if (!tolerance_is_numeric(it->text)) {
            diagnostics_add(r->d, it->place,
                            "%s: the loss of step %s must be a number, a bound such as <= 0.9, or "
                            "a range such as 0.84..0.86, not \"%s\"",
                            k->name, it->key, it->text);
            continue;
        }
        l->tolerance = it->text;
        e->losses_n++;
    }
    e->losses = v;
}

static const char *const outcomes[] = {"succeeded", "failed",  "stopped",
                                       "unknown",   "refused", NULL};
static const char *const weights[] = {"any", "same-on-all-ranks", "same-as-undisturbed", NULL};
static const char *const epochs[] = {"any", "whole", "shuffled", NULL};
static const char *const models[] = {"same-as-undisturbed", NULL};

#define AT(member)    .offset = offsetof(struct expect, member)
#define PLACE(member) .place = offsetof(struct expect, member)

const struct section section_expect = {
    "expect",
    "What is expected of this scenario; every invariant is judged anyway.",
    (const struct key[]){
        {"outcome", "succeeded, failed, stopped, unknown or refused", "succeeded",
         "How the job must end: every agent 0; every agent 1; by a signal; every agent 69, as none "
         "can reach the store and know; every agent 64 (of another launcher, any but 0) before "
         "there is a worker, as its command line is wrong. There is no control run then.",
         "outcome: succeeded", reader_enum, AT(outcome), .choices = outcomes,
         .form = "succeeded | failed | stopped | unknown | refused"},
        {"world_sizes", "a list of world sizes, \"*\" for any run of rounds, or {ends: [...]}",
         NULL,
         "WORLD_SIZE of the complete rounds, in order, all of them; with ends the last ones only.",
         "world_sizes: [6, 4, 6]", read_sizes, PLACE(world_sizes_place), .min = 1, .max = 1000000,
         .form = "[<int> | *] | {ends: [<int> | *]}"},
        {"restarts", "a whole number or a range such as 0..2", NULL,
         "The restart count of the last complete round.", "restarts: 1", read_restarts,
         PLACE(restarts_place), .min = 0, .max = 1000000, .form = "<int> | <range>"},
        {"detect_within", "a duration, or a map of ids and durations", NULL,
         "From the fault in force to the end of the first other worker.",
         "detect_within: {dark: 2s}", read_detect, .min = 1, .form = "<duration> | {<duration>}"},
        {"recover_within", "a duration, or a map of ids and durations", NULL,
         "From the fault in force to the first step of the last worker.", "recover_within: 5s",
         read_recover, .min = 1, .form = "<duration> | {<duration>}"},
        {"phases_within", "a map of phases and durations", NULL,
         "Each phase of every recovery: detect, stop, rendezvous, start, init, load, first step.",
         "phases_within: {rendezvous: 500ms, start: 100ms}", read_phases, .min = 1,
         .form = "{detect: <duration>, stop: <duration>, rendezvous: <duration>, start: "
                 "<duration>, init: <duration>, load: <duration>, first step: <duration>}"},
        {"lost_work", "a number of steps, or a duration", NULL,
         "No failure may cost more work that must be done again.", "lost_work: 20", read_lost_work,
         .min = 1, .max = INT64_MAX, .form = "<int> | <duration>"},
        {"goodput", "a percentage such as 80%", NULL,
         "The share of the time in which steps were made that count, by the speed of the "
         "control run.",
         "goodput: 60%", reader_percent, AT(goodput), .min = 1, .max = 100, .form = "<percent>"},
        {"loss_within", "a percentage such as 5%", NULL,
         "How far the last loss may be from the control run's, where weights are not the same "
         "bit by bit.",
         "loss_within: 5%", reader_percent, AT(loss_within), .min = 1, .max = 1000,
         .form = "<percent>"},
        {"losses", "a map of steps and losses", NULL,
         "What the loss of a step must be, the mean of all its samples, in whichever round: as it "
         "is "
         "known from elsewhere, for what is wrong without faults, too, is not seen beside a "
         "control "
         "run. A number, a bound or a range.",
         "losses: {1: 2.30..2.31, 40: '<= 0.9'}", read_losses, .min = 1, .max = INT64_MAX,
         .form = "{<scalar>}"},
        {"probe", "a map of probes and always, steady or a duration", NULL,
         "What each answer to a probe must be within its tolerance for: always; steady, before the "
         "first fault and after the last recovery; or steady, and so long after it.",
         "probe: {served: 2s}", load_probe_expects, .form = "{always | steady | <duration>}"},
        {"log", "a map of a line, or a list of them", NULL,
         "Lines that programs must print, or must not; `rankquake explain log`.",
         "log: [{never: /Traceback/}, {seen: /resuming from step/, after: dark, within: 5s}]",
         load_log_expects, .form = "<@log> | [<@log>]"},
        {"model", "same-as-undisturbed", NULL,
         "The final weights must be, bit by bit, those of the control run.",
         "model: same-as-undisturbed", reader_flag, AT(model_same), .choices = models,
         .form = "same-as-undisturbed"},
        {"weights", "any, same-on-all-ranks or same-as-undisturbed", "any",
         "The weights after each step: of all ranks alike, and those of the control run too. The "
         "job is asked for a hash of them with each step.",
         "weights: same-as-undisturbed", reader_enum, AT(weights), .choices = weights,
         .form = "any | same-on-all-ranks | same-as-undisturbed"},
        {"epochs", "any, whole or shuffled", "any",
         "Each epoch trains each sample once; shuffled: and not in the order of another epoch. "
         "The job is asked which samples it trains in each step.",
         "epochs: shuffled", reader_enum, AT(epochs), .choices = epochs,
         .form = "any | whole | shuffled"},
        {0},
    },
};
