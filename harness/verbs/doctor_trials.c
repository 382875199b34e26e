#include "harness/verbs/doctor_trials.h"

#include "base/str.h"
#include "base/sys/file.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool want(struct doctor_trials *d, const char *word) {
    bool known = false;
    for (size_t i = 0; faults[i]; i++)
        if (str_eq(word, "all") || str_eq(word, fault_family(faults[i])) ||
            str_eq(word, faults[i]->name))
            known = d->wanted[i] = true;
    return known;
}

static int read_faults(const struct arguments *a, struct doctor_trials *d, const char *text) {
    struct arena *m = &d->trials.arena;
    const char *near;
    d->wanted = arena_array(m, bool, faults_n);
    for (char **word = str_split(m, text, ',', NULL); *word; word++)
        if (!want(d, *word)) {
            near = str_nearest(*word, fault_names());
            return verb_usage_error(a->verb,
                                    "--faults: there is no fault \"%s\"%s%s; write all, a family "
                                    "(process, node, network, clock, store) or names of faults",
                                    *word, near ? "; did you mean " : "", near ? near : "");
        }
    return 0;
}

/* Most of a trial is waiting. */
static int at_once(void) {
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
    return 3 * (n < 8 ? n : 8);
}

int doctor_trials_read(const struct arguments *a, struct doctor_trials *ret) {
    const char *which = arguments_value(a, "--faults");
    const char *isolation = arguments_value(a, "--isolation");
    *ret = (struct doctor_trials){.trials = {.isolation = isolation ? isolation : "auto",
                                             .keep = arguments_value(a, "--keep"),
                                             .at_once = at_once()}};
    if (!which && (isolation || ret->trials.keep))
        return verb_usage_error(a->verb, "%s goes with --faults",
                                isolation ? "--isolation" : "--keep");
    if (isolation && !str_eq(isolation, "auto") && !str_eq(isolation, "namespaces") &&
        !str_eq(isolation, "processes"))
        return verb_usage_error(a->verb, "--isolation is auto, namespaces or processes");
    char folder[4000];
    ret->trials.program =
        arena_printf(&ret->trials.arena, "%s/rankquake", file_own_folder(folder, sizeof(folder)));
    return which ? read_faults(a, ret, which) : 0;
}

static void tell(void *arg, size_t done, size_t all) {
    fprintf(stderr, "\rtried %zu of %zu%s", done, all, done == all ? "\n" : "");
}

/* What was to be expected has the better fix; else what was refused says itself what would help. */
static const char *fix_of(const struct doctor_trials *d, const struct outlook *o,
                          const struct trial_outcome *t) {
    bool asked = !str_eq(d->trials.isolation, "auto");
    if (t->kind == TRIAL_WORKS || t->fix)
        return t->fix;
    if (o->kind != OUTLOOK_WORKS && o->fix)
        return o->fix;
    if (asked && (t->refused || t->kind == TRIAL_LESS))
        return "leave out --isolation: nodes in namespaces can be had here";
    return t->refused || t->kind == TRIAL_LESS
               ? NULL
               : "what was recorded says more: rankquake doctor --faults NAME --keep";
}

static void take(const struct doctor_trials *d, struct outlook *o, const struct trial_outcome *t) {
    static const enum outlook_kind kinds[] = {[TRIAL_WORKS] = OUTLOOK_WORKS,
                                              [TRIAL_LESS] = OUTLOOK_LESS,
                                              [TRIAL_CANNOT] = OUTLOOK_CANNOT,
                                              [TRIAL_UNTRIED] = OUTLOOK_OPEN};
    *o = (struct outlook){.kind = kinds[t->kind], .why = t->why, .fix = fix_of(d, o, t)};
}

int doctor_trials_run(struct doctor_trials *d, struct outlook *outlooks, bool loud) {
    struct err err = {0};
    if (loud && isatty(STDERR_FILENO))
        d->trials.told = tell;
    if (trials_run(&d->trials, d->wanted, &err) != 0)
        return verb_broken(&verb_doctor, &err);
    if (d->trials.interrupted) {
        fprintf(stderr, "rankquake doctor: interrupted; everything is taken down\n");
        return EXIT_INTERRUPTED;
    }
    for (size_t i = 0; faults[i]; i++)
        if (d->wanted[i])
            take(d, &outlooks[i], &d->trials.outcomes[i]);
    return 0;
}

void doctor_trials_fini(struct doctor_trials *d) {
    trials_fini(&d->trials);
}
