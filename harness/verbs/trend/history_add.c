/* history add: takes runs into the trend file. */
#include "harness/verbs/trend/trend.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/trend/logbook.h"
#include "harness/trend/origin.h"

#include <stdlib.h>

/* What is not judged here again is not kept: the verdict of a run is what its history says. */
static int take_run(const char *dir, struct arena *arena, const struct trend_origin *origin,
                    struct trend_entry *ret) {
    struct recording *r = mem_new(struct recording);
    BUF_FINI struct buf complaint = {0};
    struct recording_source from = {.dir = dir};
    struct err err = {0};
    int code = 0;
    if (recording_read(r, &from, &complaint) < 0) {
        fprintf(stderr, "rankquake history: %s", buf_str(&complaint));
        code = EXIT_USAGE_ERROR;
    } else {
        if (trend_entry_take(ret, arena, &r->run, origin, &err) < 0)
            code = verb_broken(&verb_history, &err);
        recording_fini(r);
    }
    free(r);
    return code;
}

static int add(const struct arguments *a, struct arena *arena, const struct trend_origin *origin) {
    const char *file = arguments_value(a, "--file");
    struct trend_entry *v = arena_array(arena, struct trend_entry, a->files_n);
    size_t n = a->files_n - 1, added = 0;
    struct err err = {0};
    for (size_t i = 0; i < n; i++) {
        int code = take_run(a->files[i + 1], arena, origin, &v[i]);
        if (code)
            return code;
    }
    file = file ? file : TREND_FILE;
    if (logbook_add(file, v, n, &added, &err) < 0)
        return verb_broken(a->verb, &err);
    printf("%s: %zu run%s added", file, added, added == 1 ? "" : "s");
    if (n > added)
        printf(", %zu %s there already", n - added, n - added == 1 ? "was" : "were");
    printf("; commit %.12s on %s, %s\n", origin->commit, origin->branch, origin->machine);
    return EXIT_PASS;
}

static int check_label(const struct arguments *a, const char *option) {
    const char *value = arguments_value(a, option);
    if (value && !*value)
        return verb_usage_error(a->verb, "%s: it is empty", option);
    return 0;
}

int history_add(const struct arguments *a) {
    ARENA_FINI struct arena arena = {0};
    struct err err = {0};
    struct trend_origin origin = {.commit = arguments_value(a, "--commit"),
                                  .branch = arguments_value(a, "--branch"),
                                  .machine = arguments_value(a, "--machine")};
    int bad = check_label(a, "--commit");
    bad = bad ? bad : check_label(a, "--branch");
    bad = bad ? bad : check_label(a, "--machine");
    if (bad)
        return bad;
    if (a->files_n < 2)
        return verb_usage_error(a->verb, "add which runs? Name their directories");
    if (trend_origin_fill(&origin, &arena, &err) < 0)
        return verb_usage_error(a->verb, "%s", err.msg);
    return add(a, &arena, &origin);
}
