/* Loads observe: which printed lines tell of steps and the like. */
#include "base/str.h"
#include "harness/scenario/pattern.h"
#include "harness/scenario/reader.h"

#include <stddef.h>

enum { OBSERVED_MAX = 16 };

/* Kinds whose number is the point of them. */
static bool needs_value(const char *kind) {
    return str_eq(kind, "step") || str_eq(kind, "loss") || str_eq(kind, "resume");
}

/* Replaces what the preset says about the kind. */
static void put(struct reader *r, struct observe_spec *o, struct observed fresh) {
    struct observed *v = arena_array(r->arena, struct observed, OBSERVED_MAX);
    size_t at = 0;
    for (size_t i = 0; i < o->n; i++)
        v[i] = o->v[i];
    while (at < o->n && !str_eq(v[at].kind, fresh.kind))
        at++;
    if (at == OBSERVED_MAX)
        return; /* there are fewer keys */
    v[at] = fresh;
    o->v = v;
    o->n += at == o->n;
}

static void read_preset(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct observe_spec *o = out;
    const char *names[OBSERVED_MAX];
    size_t count = 0;
    for (; presets[count].name; count++)
        names[count] = presets[count].name;
    names[count] = NULL;
    int i = reader_choice(r, k, n, names, NULL);
    if (i < 0)
        return;
    o->preset = presets[i].name;
    for (size_t j = 0; j < presets[i].n; j++)
        put(r, o, presets[i].v[j]);
}

static void read_pattern(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct err err = {0};
    if (!reader_is_scalar(r, k, n))
        return;
    struct pattern *p = pattern_new(n->text, &err);
    if (!p)
        diagnostics_add(r->d, n->place, "%s: %s", k->name, err.msg);
    else if (needs_value(k->name) && !pattern_values(p))
        diagnostics_add(r->d, n->place,
                        "%s: /%s/ takes no number out of the line; put it in a group, as in %s",
                        k->name, n->text, k->example);
    else if (pattern_values(p) > PATTERN_VALUES_MAX)
        diagnostics_add(r->d, n->place,
                        "%s: /%s/ has %zu groups; only one is the value: write (?:...) for the "
                        "others",
                        k->name, n->text, pattern_values(p));
    else
        put(r, out, (struct observed){k->name, n->text, true, n->place});
    pattern_free(p);
}

const struct observed *scenario_observes(const struct scenario *s, const char *kind) {
    for (size_t i = 0; i < s->observe.n; i++)
        if (str_eq(s->observe.v[i].kind, kind))
            return &s->observe.v[i];
    return NULL;
}

bool scenario_waits_for_lines(const struct scenario *s) {
    for (size_t i = 0; i < s->timeline_n; i++) {
        const struct timeline_entry *a = &s->timeline[i];
        if (a->when.log || (a->until && a->until->log))
            return true;
    }
    return s->expect.logs_n > 0;
}

bool scenario_reads_output(const struct scenario *s) {
    return s->observe.n > 0 || scenario_waits_for_lines(s);
}

static bool launcher_keeps_output(const struct scenario *s) {
    return scenario_gives_launcher(s, "--tee") || scenario_gives_launcher(s, "-t") ||
           scenario_gives_launcher(s, "--redirects") || scenario_gives_launcher(s, "-r") ||
           scenario_gives_launcher(s, "--log-dir");
}

static bool may_be_of_workers(const struct target_spec *on) {
    return !on->text || (on->what != TARGET_AGENTS && on->what != TARGET_STORES);
}

bool scenario_reads_workers(const struct scenario *s) {
    bool reads = s->observe.n > 0 || (scenario_waits_for_lines(s) && !launcher_keeps_output(s));
    for (size_t i = 0; i < s->timeline_n; i++) {
        const struct timeline_entry *a = &s->timeline[i];
        reads |= (a->when.log || (a->until && a->until->log)) && may_be_of_workers(&a->on);
    }
    for (size_t i = 0; i < s->expect.logs_n; i++)
        reads |= may_be_of_workers(&s->expect.logs[i].on);
    return reads;
}

#define PATTERN "a regular expression"

const struct section section_observe = {
    "observe",
    "What to read from the output of a job that sends no events. Each line (ended by a line feed "
    "or a carriage return) of a worker's standard output and standard error that matches is taken "
    "for an event of that kind: it starts triggers, limits and times, and is judged, as a claim. "
    "The value is the first group. With observe, each worker writes into a file of its own, "
    "logs/NODE/rank-R.log in the run directory. The harness cannot hold a worker at a line: by the "
    "time it is read the job has gone on, so a fault comes some milliseconds after it. What a "
    "program buffers is read late: put stdbuf -oL in front of a program in C; Python's output is "
    "not buffered here.",
    (const struct key[]){
        {"preset", "deepspeed, hf-trainer, lightning, megatron, nanogpt, torchtitan or tqdm", NULL,
         "Expressions for what a tool always prints, to begin with; `rankquake explain tqdm` shows "
         "them. A key of the same name overrides it.",
         "preset: lightning", read_preset, .form = "<preset>"},
        {"step", PATTERN " with a group", NULL,
         "A step is done. Not every step need be told: a trigger on one comes with the first line "
         "that tells it or a later one. Two groups: the step and how many there will be, of the "
         "first such count only. Three: an epoch from 0, the step in it, the steps of an epoch.",
         "step: 'step ([0-9]+)'", read_pattern, .form = "<pattern>"},
        {"loss", PATTERN " with a group", NULL,
         "The loss of the step in the same line, or else of the next step that is printed.",
         "loss: 'loss[:=] *([0-9.]+)'", read_pattern, .form = "<pattern>"},
        {"ready", PATTERN, NULL, "The worker is set up.", "ready: 'starting training'",
         read_pattern, .form = "<pattern>"},
        {"resume", PATTERN " with a group", NULL,
         "The step, or epoch, that the worker goes on from. A worker that does not say so is taken "
         "to begin with the step before the first that it tells.",
         "resume: 'resuming from epoch ([0-9]+)'", read_pattern, .form = "<pattern>"},
        {"first-collective", PATTERN, NULL, "The worker is about to meet the others.",
         "first-collective: 'init_process_group'", read_pattern, .form = "<pattern>"},
        {"checkpoint-begin", PATTERN, NULL, "A checkpoint (of the step in the group) is begun.",
         "checkpoint-begin: 'saving step ([0-9]+)'", read_pattern, .form = "<pattern>"},
        {"checkpoint-write", PATTERN, NULL, "Its bytes are written, neither synced nor renamed.",
         "checkpoint-write: 'wrote step ([0-9]+)'", read_pattern, .form = "<pattern>"},
        {"checkpoint-commit", PATTERN, NULL, "It is complete and durable.",
         "checkpoint-commit: 'saved step ([0-9]+)'", read_pattern, .form = "<pattern>"},
        {"exit-barrier", PATTERN, NULL, "All work is done, the worker is about to leave.",
         "exit-barrier: 'waiting for the others'", read_pattern, .form = "<pattern>"},
        {"done", PATTERN, NULL,
         "The worker has finished. A group is the model it ended with: a checksum, or a number "
         "that a control run gives too.",
         "done: 'final loss ([0-9.]+)'", read_pattern, .form = "<pattern>"},
        {0},
    },
};
