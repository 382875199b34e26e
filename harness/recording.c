#include "harness/recording.h"

#include "harness/baseline.h"
#include "harness/own_checks.h"

#include "agent/base/printable.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static int not_a_run(struct buf *complaint, const char *dir, const char *missing) {
    printable_puts(complaint, dir);
    buf_printf(complaint, " is no run: %s is missing\n", missing);
    return -1;
}

static bool is_file(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static int look(const char *dir, const char *scenario, const char *history, struct buf *complaint) {
    struct stat st;
    if (stat(dir, &st) < 0) {
        const char *why = strerror(errno);
        printable_puts(complaint, dir);
        buf_printf(complaint, ": %s; give the directory of a run, as printed at its end\n", why);
        return -1;
    }
    if (!S_ISDIR(st.st_mode)) {
        printable_puts(complaint, dir);
        buf_puts(complaint, " is no directory; give the directory of a run\n");
        return -1;
    }
    if (!is_file(scenario))
        return not_a_run(complaint, dir, "scenario.yaml");
    return is_file(history) ? 0 : not_a_run(complaint, dir, "history.jsonl");
}

static struct scenario *load_scenario(const char *path, struct buf *complaint) {
    struct diagnostics d = {0};
    struct scenario *s = scenario_load(path, NULL, &d);
    if (!s)
        buf_puts(complaint, buf_str(&d.out));
    diagnostics_fini(&d);
    return s;
}

static int load_history(struct history *h, const char *path, struct buf *complaint) {
    struct err err = {0};
    if (history_load(h, path, &err) == 0)
        return 0;
    buf_printf(complaint, "%s\n", err.msg);
    return -1;
}

static void judge(struct recording *r, const char *history, const struct recording_source *from) {
    rounds_load(&r->rounds, !r->scenario->torchrun_semantics, &r->history);
    struct trial t = {.scenario = r->scenario, .history = &r->history, .rounds = &r->rounds};
    verdict_judge(&r->verdict, &t);
    own_checks_judge(&r->verdict, r->scenario, &r->history, history, from->dir, !from->no_programs);
    if (from->dir)
        baseline_recall(from->dir, &r->verdict);
    r->run = (struct recorded_run){.dir = r->dir,
                                   .scenario = r->scenario,
                                   .history = &r->history,
                                   .rounds = &r->rounds,
                                   .verdict = &r->verdict};
}

int recording_read(struct recording *r, const struct recording_source *from,
                   struct buf *complaint) {
    struct arena a = {0};
    *r = (struct recording){.dir = from->dir ? from->dir : from->history};
    const char *scenario =
        from->scenario ? from->scenario : arena_printf(&a, "%s/scenario.yaml", from->dir);
    const char *history =
        from->history ? from->history : arena_printf(&a, "%s/history.jsonl", from->dir);
    int rc = from->dir ? look(from->dir, scenario, history, complaint) : 0;
    if (rc == 0) {
        r->scenario = load_scenario(scenario, complaint);
        rc = r->scenario ? load_history(&r->history, history, complaint) : -1;
    }
    if (rc == 0)
        judge(r, history, from);
    else
        recording_fini(r);
    arena_fini(&a);
    return rc;
}

int recording_load(struct recording *r, const char *dir, struct buf *complaint) {
    return recording_read(r, &(struct recording_source){.dir = dir}, complaint);
}

void recording_fini(struct recording *r) {
    if (!r)
        return;
    rounds_fini(&r->rounds);
    history_fini(&r->history);
    r->scenario = scenario_free(r->scenario);
}
