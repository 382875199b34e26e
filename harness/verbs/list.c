/* Prints a table of the program: faults, checks, scenarios and others. */
#include "base/str.h"
#include "faults/need.h"
#include "harness/judge/checks/check.h"
#include "harness/launch/launcher.h"
#include "harness/plan/features.h"
#include "harness/scenario/scenario.h"
#include "harness/invariants/invariant.h"
#include "harness/play/library.h"
#include "harness/verbs.h"
#include "harness/verbs/language/language.h"
#include "reports/report.h"

#include <string.h>

static void list_checks(void) {
    for (size_t i = 0; checks[i]; i++)
        printf("%-16s %s\n", checks[i]->name, checks[i]->summary);
}

static void list_faults(void) {
    for (size_t i = 0; faults[i]; i++) {
        bool needs = faults[i]->needs;
        printf("%-16s %s%s%s%s\n", faults[i]->name, faults[i]->summary, needs ? " (needs " : "",
               fault_needs_text(faults[i]->needs), needs ? ")" : "");
    }
}

static void list_fault_table(void) {
    BUF_FINI struct buf out = {0};
    catalogue_put(&out);
    fputs(buf_str(&out), stdout);
}

static void list_features(void) {
    for (const struct feature *f = features; f->name; f++) {
        char name[40];
        snprintf(name, sizeof(name), "%s%s%s", f->name, f->argument ? " " : "",
                 f->argument ? f->argument : "");
        printf("%-16s %s\n", name, f->text);
    }
}

static void list_invariants(void) {
    for (size_t i = 0; invariants[i]; i++)
        printf("%-16s %s: %s\n", invariants[i]->name, invariants[i]->number,
               invariants[i]->summary);
}

static void list_launchers(void) {
    for (size_t i = 0; launchers[i]; i++)
        printf("%-16s %s\n", launchers[i]->name, launchers[i]->text);
}

static void list_reports(void) {
    for (size_t i = 0; reports[i]; i++)
        printf("%-16s %s\n", reports[i]->name, reports[i]->summary);
}

/* The first sentence of what it is about. */
static void list_scenario(const char *file) {
    struct diagnostics d = {0};
    struct suite *u = suite_load(file, &d);
    struct scenario *s = u ? NULL : scenario_load(file, NULL, &d);
    const char *about = u ? u->about : s ? s->about : "(not valid: rankquake lint says why)";
    const char *end = strstr(about ? about : "", ". ");
    printf("%s\n    %.*s\n", file,
           (int)(end ? (size_t)(end + 1 - about) : strlen(about ? about : "")), about ? about : "");
    scenario_free(s);
    suite_free(u);
    diagnostics_fini(&d);
}

static void list_scenarios(void) {
    ARENA_FINI struct arena a = {0};
    TEXTS_FINI struct texts files = {0};
    const char *folder = library_folder(&a);
    library_list(&files);
    for (size_t i = 0; i < files.n; i++)
        list_scenario(arena_printf(&a, "%s/%s", folder, files.v[i]));
}

static const struct listing {
    const char *name;
    void (*print)(void);
} listings[] = {
    {"checks", list_checks},         {"faults", list_faults},       {"features", list_features},
    {"invariants", list_invariants}, {"launchers", list_launchers}, {"reports", list_reports},
    {"scenarios", list_scenarios},
};

static int list(int argc, char **argv) {
    if (argc == 3 && str_eq(argv[1], "faults") && str_eq(argv[2], "--table")) {
        list_fault_table();
        return EXIT_PASS;
    }
    for (size_t i = 0; argc == 2 && i < sizeof(listings) / sizeof(*listings); i++)
        if (str_eq(listings[i].name, argv[1])) {
            listings[i].print();
            return EXIT_PASS;
        }
    return argc == 2 ? verb_usage_error(&verb_list, "there is no list of \"%s\"", argv[1])
                     : verb_usage_error(&verb_list, "list what?");
}

const struct verb verb_list = {
    .name = "list",
    .usage = "list checks|faults [--table]|features|invariants|launchers|reports|scenarios",
    .summary = "list faults, checks, scenarios and the like",
    .example = "list faults",
    .operands = "checks|faults|features|invariants|launchers|reports|scenarios",
    .main = list,
};
