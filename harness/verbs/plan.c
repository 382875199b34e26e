/* Prints what a run would do. */
#include "base/str.h"
#include "harness/judge/checks/check.h"
#include "harness/plan/plan.h"
#include "harness/verbs.h"
#include "harness/verbs/wanted_hosts.h"
#include "harness/play/selection.h"

#include <errno.h>

static bool gives_gpus(const struct plan *p) {
    for (size_t i = 0; i < p->nodes_n; i++)
        if (p->nodes[i].devices_n)
            return true;
    return false;
}

/* The plan is printed even where it cannot be carried out: it may be meant for another host. */
static int print_plan(struct plan *p, bool json) {
    BUF_FINI struct buf out = {0};
    struct err err = {0};
    int r = plan_check_host(p, &err);
    if (json)
        plan_json(p, &out);
    else
        plan_print(p, &out);
    if (!json)
        checks_forecast(p->scenario, gives_gpus(p), &out);
    fputs(buf_str(&out), stdout);
    if (r)
        fprintf(stderr, "%s: %s\n", p->scenario->file, err.msg);
    return r == 0 ? EXIT_PASS : r == -ENOENT ? EXIT_USAGE_ERROR : EXIT_SKIPPED;
}

static int plan_file(const char *file, const char *within, const char *const *set,
                     const uint64_t *seed, bool json) {
    ARENA_FINI struct arena a = {0};
    struct diagnostics d = {.within = within};
    struct scenario *s = plan_load(file, seed ? sets_with_seed(&a, set, *seed) : set, &d);
    struct plan *p = s ? plan_make(s, seed ? *seed : s->seed, &d) : NULL;
    fputs(buf_str(&d.out), stderr);
    if (p) {
        p->untrusted = true;
        p->hosts_said = sets_say(set, "cluster.hosts"); /* a stranger's file may name a command */
    }
    int code = p ? print_plan(p, json) : EXIT_USAGE_ERROR;
    plan_free(p);
    scenario_free(s);
    diagnostics_fini(&d);
    return code;
}

/* Every point of its sweep, up to the first that is wrong: of others it would only be said
 * again. */
static int plan_points(const char *file, const char *within, const char *const *set,
                       const uint64_t *seed, bool json) {
    ARENA_FINI struct arena a = {0};
    struct sweep *points = scenario_sweep(file, set, within);
    int code = EXIT_PASS;
    for (size_t i = 0; i < points->n && code != EXIT_USAGE_ERROR; i++) {
        int r = plan_file(file, within, sets_join(&a, points->v[i], set), seed, json);
        code = code ? code : r;
    }
    sweep_free(points);
    return code;
}

/* All that a suite names, or that lies in a folder. */
static int plan_any(const char *path, const char *const *set, const uint64_t *seed, bool json) {
    struct scenario_files files = {0};
    int code = files_add(&files, &verb_plan, path);
    for (size_t i = 0; i < files.n; i++) {
        int r = plan_points(files.v[i], files.within[i], set, seed, json);
        code = code ? code : r;
    }
    files_fini(&files);
    return code;
}

static int plan_all(const struct arguments *a) {
    const char *text = arguments_value(a, "--seed"), *format = arguments_value(a, "--format");
    int64_t seed = 0;
    if (!a->files_n)
        return verb_usage_error(a->verb, "which file?");
    if (text && !str_to_i64(text, 0, INT64_MAX, &seed))
        return verb_usage_error(a->verb, "--seed %s is no whole number", text);
    if (format && !str_eq(format, "json") && !str_eq(format, "text"))
        return verb_usage_error(a->verb, "--format %s is neither text nor json", format);
    ARENA_FINI struct arena arena = {0};
    const char **set = arguments_sets(a, &arena);
    int code = EXIT_PASS;
    if (wanted_hosts_asked(a) && (code = wanted_hosts_add(a, &arena, &set)) != EXIT_PASS)
        return code;
    for (size_t i = 0; i < a->files_n; i++) {
        uint64_t given = (uint64_t)seed;
        int r = plan_any(a->files[i], set, text ? &given : NULL, str_eq(format, "json"));
        code = code ? code : r;
    }
    return code;
}

const struct verb verb_plan = {
    .name = "plan",
    .usage = "plan FILE|DIR... [--seed N] [--set KEY=VALUE] [--format text|json]",
    .summary = "print what a run would do, without doing it: nodes, faults, undo, blast radius",
    .example = "plan scenarios/tour.yaml --seed 7",
    .operands = "SCENARIO|FILE",
    .options =
        (const struct verb_option[]){
            {"--seed", "N", "draw with this seed instead of the scenario's"},
            {"--max-concurrent-faults", "N", "plan for at most N faults in force at once"},
            {"--set", "KEY=VALUE", "plan as if the file said so, e.g. job.max_restarts=2"},
            {"--observe", "KIND=REGEX", "plan for this being read from what workers print"},
            {"--launcher", "LAUNCHER", "plan for this one: torchrun, a command or a template"},
            WANTED_HOSTS_OPTIONS,
            {"--format", "FORMAT", "text (for people) or json (plan.json of a run)"},
            {0}},
    .run = plan_all,
};
