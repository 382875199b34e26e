/* Prints every mistake of the files it is given. */
#include "harness/plan/plan.h"
#include "harness/verbs.h"
#include "harness/play/selection.h"

/* Prints every error; true when there is none. */
static bool lint_point(const char *file, const char *const *set, const char *within) {
    struct diagnostics d = {.within = within};
    struct scenario *s = plan_load(file, set, &d);
    if (s)
        plan_free(plan_make(s, s->seed, &d));
    fputs(buf_str(&d.out), stderr);
    bool good = !d.errors;
    scenario_free(s);
    diagnostics_fini(&d);
    return good;
}

/* What is wrong in one point of a sweep would only be said again of others. */
static bool lint_file(const char *file, const char *const *set, const char *within) {
    ARENA_FINI struct arena a = {0};
    struct sweep *points = scenario_sweep(file, set, within);
    bool good = true;
    for (size_t i = 0; i < points->n && good; i++)
        good = lint_point(file, sets_join(&a, points->v[i], set), within);
    if (good && points->n > 1)
        printf("%s: valid, %zu runs\n", file, points->n);
    else if (good)
        printf("%s: valid\n", file);
    sweep_free(points);
    return good;
}

/* A suite is as valid as all it names, a folder as all in it. */
static int lint_any(const char *path, const char *const *set) {
    struct scenario_files files = {0};
    int code = files_add(&files, &verb_lint, path);
    for (size_t i = 0; i < files.n; i++)
        if (!lint_file(files.v[i], set, files.within[i]))
            code = EXIT_USAGE_ERROR;
    files_fini(&files);
    return code;
}

static int lint(const struct arguments *a) {
    ARENA_FINI struct arena arena = {0};
    const char **set = arguments_sets(a, &arena);
    int code = a->files_n ? EXIT_PASS : verb_usage_error(a->verb, "which file?");
    for (size_t i = 0; i < a->files_n; i++)
        code |= lint_any(a->files[i], set);
    return code;
}

const struct verb verb_lint = {
    .name = "lint",
    .usage = "lint FILE|DIR... [--set KEY=VALUE]",
    .summary = "validate scenarios: list every mistake, with line and column",
    .example = "lint scenarios/tour.yaml --set job.max_restarts=2",
    .operands = "SCENARIO|FILE",
    .options =
        (const struct verb_option[]){
            {"--set", "KEY=VALUE", "lint as if the file said so, e.g. job.max_restarts=2"},
            {"--observe", "KIND=REGEX", "the same for observe: step=REGEX, or a preset"},
            {"--launcher", "LAUNCHER", "the same for launcher: torchrun, a command or a template"},
            {0}},
    .run = lint,
};
